/* What a watch tells. */
#include "client/client_priv.h"
#include "codec/atoms.h"

static const struct client_request any_watch = { .verb = "watch", .method = STR_INIT("GET") };

int client_event_make(str type, struct frozen *object, struct client_event *ret, struct err *err)
{
	static const str names[] = {
		[CLIENT_ADDED] = STR_INIT("ADDED"), [CLIENT_MODIFIED] = STR_INIT("MODIFIED"),
		[CLIENT_DELETED] = STR_INIT("DELETED"), [CLIENT_BOOKMARK] = STR_INIT("BOOKMARK"),
	};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (!str_eq(type, names[i]))
			continue;
		struct val notes = val_get(object->val, metadata, annotations);
		*ret = (struct client_event){ .type = (enum client_event_type)i, .object = object };
		ret->initial_end = i == CLIENT_BOOKMARK &&
				   str_eq(val_as_str(val_find(notes, STR("k8s.io/initial-events-end"))), STR("true"));
		return 1;
	}
	int r;
	if (str_eq(type, STR("ERROR")))
		r = client_status_fail(&any_watch, 500, object->val, STR_NONE, err);
	else
		r = err_set(err, ERR_UNAVAILABLE, "invalid watch event: unknown type \"" STR_FMT "\"", STR_ARG(str_head(type, 40)));
	frozen_unref(object);
	return r;
}
