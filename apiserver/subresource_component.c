/* componentstatuses: whether the parts of the control plane that run beside this server answer. They are asked on the spot. */
#include "apiserver/apiserver.h"
#include "apiserver/kubelet_client.h"
#include "apiserver/list_options.h"
#include "apiserver/subresource.h"
#include "base/fiber.h"
#include "codec/atoms.h"
#include "codec/types.h"

enum { PROBE_MS = 20000, MESSAGE_MAX = 10 << 10 };

struct health {
	bool good;
	str message, error;
};

static struct health probe_store(struct request *q)
{
	int64_t revision;
	struct err why = ERR_INIT;
	DEADLINE_SCOPE(PROBE_MS);
	if (store_revision(q->server->store, &revision, &why) == 0)
		return (struct health){ true, STR("ok"), STR_NONE };
	return (struct health){ false, STR_NONE, arena_str(q->arena, err_str(&why)) };
}

static struct health probe_url(struct request *q, const char *url)
{
	CLEANUP(http_call_freep) struct http_call *call = NULL;
	struct http_client *client;
	const struct http1_head *head;
	struct err why = ERR_INIT;
	str body = STR_NONE;
	DEADLINE_SCOPE(PROBE_MS);
	int r = kubelet_http(q->server, KUBELET_OTHERS, &client, &why);
	if (r == 0)
		r = http_call_open(client, &(struct http_request){ .method = STR("GET"), .url = str_of(url) }, &call, &why);
	if (r == 0)
		r = http_call_head(call, &head, &why);
	if (r == 0)
		r = http_call_read_all(call, MESSAGE_MAX, &body, &why);
	if (r < 0)
		return (struct health){ false, arena_str(q->arena, err_str(&why)), STR_NONE };
	if (head->status < 200 || head->status >= 400)
		return (struct health){ false, arena_printf(q->arena, "HTTP probe failed with statuscode: %d",
							    head->status), STR_NONE };
	return (struct health){ true, arena_str(q->arena, body), STR_NONE };
}

static const struct component {
	str name;
	const char *url;              /* NULL: the store */
} components[] = {
	{ STR_INIT("controller-manager"), "https://127.0.0.1:10257/healthz" },
	{ STR_INIT("etcd-0"), NULL },
	{ STR_INIT("scheduler"), "https://127.0.0.1:10259/healthz" },
};

/* item: of a list, which says itself what its items are. */
static struct val status_val(struct request *q, const struct component *c, bool item)
{
	struct health h = c->url ? probe_url(q, c->url) : probe_store(q);
	struct val condition = OBJECT(q->arena, F(type, VAL_LIT("Healthy")),
				      F(status, h.good ? VAL_LIT("True") : VAL_LIT("False")),
				      F(message, h.message.n ? val_of_str(h.message) : VAL_EMPTY),
				      F(error, h.error.n ? val_of_str(h.error) : VAL_EMPTY));
	return OBJECT(q->arena, F(kind, item ? VAL_EMPTY : VAL_LIT("ComponentStatus")),
		      F(apiVersion, item ? VAL_EMPTY : VAL_LIT("v1")),
		      F(metadata, OBJECT(q->arena, F(name, val_of_str(c->name)))), F(conditions, LIST(q->arena, condition)));
}

static int list(struct request *q, struct err *err)
{
	struct list_options o;
	int r = list_options_read(q, &o, err);
	if (r < 0)
		return r;
	struct val_builder items = val_builder(q->arena);
	for (size_t i = 0; i < ARRAY_LEN(components); i++) {
		bool named = !o.name.n || str_eq(o.name, components[i].name);
		if (named && selector_matches(&o.labels, VAL_EMPTY))
			val_add_item(&items, status_val(q, &components[i], true));
	}
	struct val v = OBJECT(q->arena, F(kind, VAL_LIT("ComponentStatusList")), F(apiVersion, VAL_LIT("v1")),
			      F(metadata, VAL_EMPTY_OBJECT), F(items, val_end_list(&items)));
	answer_val(q, 200, v, TYPE(core_v1, ComponentStatusList));
	return 0;
}

int component_handle(struct request *q, struct err *err)
{
	if (!q->name.n)
		return list(q, err);
	for (size_t i = 0; i < ARRAY_LEN(components); i++) {
		if (!str_eq(components[i].name, q->name))
			continue;
		answer_val(q, 200, status_val(q, &components[i], false), TYPE(core_v1, ComponentStatus));
		return 0;
	}
	return fail_not_found(q, STR_NONE, STR("componentstatus"), q->name);
}
