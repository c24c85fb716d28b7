/*
 * Inside the API server's process: no socket and no encoding, but every stage of its pipeline (apiserver/local.h). Objects
 * are the blocks that the server's cache has, so that a thousand informers cost the memory of one.
 */
#include <stdlib.h>

#include "apiserver/local.h"
#include "base/mem.h"
#include "client/client_priv.h"

enum { ANSWER_TEXT_MAX = 1 << 20 };

struct inside {
	struct client client;
	struct apiserver *server;
	struct arena arena;              /* of what follows */
	struct user user;
	str user_agent;
};

struct inside_watch {
	struct client_watch watch;
	struct local_watch *local;
	struct frozen *object;           /* of the last event */
};

static struct inside *inside_of(struct client *c) { return CONTAINER_OF(c, struct inside, client); }

/* (suspends) */
static int ask(struct client *c, const struct client_request *q, bool raw, size_t max, struct local_answer *ret_answer,
	       struct client_reply *ret, struct err *err)
{
	const struct inside *i = inside_of(c);
	const struct local_request request = {
		.user = &i->user, .user_agent = i->user_agent, .method = q->method, .path = q->path, .query = q->query,
		.content_type = q->content_type, .body = q->body, .body_type = q->body_type, .raw = raw, .max = max,
	};
	int r = local_call(i->server, &request, ret_answer, err);
	if (r < 0)
		return r;
	ret->status = ret_answer->status;
	ret->retry_after_s = ret_answer->retry_after_s;
	if (ret->status >= 200 && ret->status <= 206)
		return 0;
	const struct frozen *f = ret_answer->object;
	return client_status_fail(q, ret->status, f ? f->val : VAL_EMPTY, buf_str(&ret_answer->text), err);
}

static int inside_call(struct client *c, const struct client_request *q, struct client_reply *ret, struct err *err)
{
	CLEANUP(local_answer_done) struct local_answer answer;
	int r = ask(c, q, false, ANSWER_TEXT_MAX, &answer, ret, err);
	if (r < 0 || !q->wants_object)
		return r;
	if (!answer.object)
		return err_set(err, ERR_UNAVAILABLE, "the server answered with something that is no object");
	ret->object = TAKE(answer.object);
	return 0;
}

static int inside_call_raw(struct client *c, const struct client_request *q, struct arena *a, size_t max, str *ret_body,
			   struct client_reply *ret, struct err *err)
{
	CLEANUP(local_answer_done) struct local_answer answer;
	int r = ask(c, q, true, max, &answer, ret, err);
	if (r == 0)
		*ret_body = arena_str(a, buf_str(&answer.text));
	return r;
}

/* ---- watches ---- */

static int inside_watch(struct client *c, const struct client_request *q, struct client_watch **ret_watch,
			struct client_reply *ret, struct err *err)
{
	CLEANUP(local_answer_done) struct local_answer answer;
	int r = ask(c, q, false, ANSWER_TEXT_MAX, &answer, ret, err);
	if (r < 0)
		return r;
	if (!answer.watch)
		return err_set(err, ERR_UNAVAILABLE, "the server answered with something that is no watch");
	struct inside_watch *w = mem_zalloc(sizeof(*w));
	w->watch.client = c;
	w->local = TAKE(answer.watch);
	*ret_watch = &w->watch;
	return 0;
}

static int inside_watch_next(struct client_watch *watch, struct client_event *ret, struct err *err)
{
	static const str names[] = {
#define NAME(name) [WATCH_##name] = STR_INIT(#name),
		WATCH_EVENT_TYPES(NAME)
#undef NAME
	};
	struct inside_watch *w = CONTAINER_OF(watch, struct inside_watch, watch);
	enum watch_event_type type;
	struct frozen *object;
	frozen_unref(TAKE(w->object));
	int r = local_watch_next(w->local, &type, &object, err);
	if (r <= 0)
		return r;
	r = client_event_make(names[type], object, ret, err);
	if (r > 0)
		w->object = object;
	return r;
}

static void inside_watch_free(struct client_watch *watch)
{
	struct inside_watch *w = CONTAINER_OF(watch, struct inside_watch, watch);
	frozen_unref(w->object);
	local_watch_free(w->local);
	free(w);
}

/* ---- the client ---- */

static void inside_free(struct client *c)
{
	struct inside *i = inside_of(c);
	arena_done(&i->arena);
	free(i);
}

static const struct client_transport transport = {
	.call = inside_call,
	.call_raw = inside_call_raw,
	.watch = inside_watch,
	.watch_next = inside_watch_next,
	.watch_free = inside_watch_free,
	.free = inside_free,
};

struct client *client_inside(struct apiserver *s, const struct user *user, const char *user_agent)
{
	struct inside *i = mem_zalloc(sizeof(*i));
	struct arena *a = &i->arena;
	i->client.transport = &transport;
	i->server = s;
	i->user_agent = arena_str(a, str_of(user_agent));
	str *groups = ARENA_ARRAY(a, str, user->n_groups + 1);
	for (size_t k = 0; k < user->n_groups; k++)
		groups[k] = arena_str(a, user->groups[k]);
	i->user = (struct user){
		.name = arena_str(a, user->name), .uid = arena_str(a, user->uid), .groups = groups, .n_groups = user->n_groups,
		.extra = val_copy(a, user->extra),
	};
	return &i->client;
}
