#include "kubelet/objects.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/fiber_test.h"
#include "base/mem.h"
#include "client/client_priv.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "codec/types.h"

/* ---- a server: what a test says about an object goes to the watches of its name ---- */

enum { WATCHES_MAX = 16, EVENTS_MAX = 8 };

struct server_watch {
	struct client_watch watch;
	struct server *server;
	str name;
	struct frozen *events[EVENTS_MAX]; /* NULL: the bookmark that ends the list */
	enum client_event_type types[EVENTS_MAX];
	size_t n, at;
};

struct server {
	struct client client;
	struct server_watch *watches[WATCHES_MAX];
	struct fiber_cond more;
	struct arena arena;
	struct val there;             /* objects by name, when a watch begins */
	bool slow;                    /* lists do not come */
	struct val parting;           /* when a watch ends all others tell of this one; "": of nothing */
	size_t n_gets, n_begun;
	struct buf told;
};

static void push(struct server_watch *w, enum client_event_type type, struct val object)
{
	w->types[w->n] = type;
	w->events[w->n++] = val_exists(object) ? val_freeze(object) : NULL;
}

static struct server *server_of(struct client *c) { return CONTAINER_OF(c, struct server, client); }

static int server_call(struct client *c, const struct client_request *q, struct client_reply *ret, struct err *err)
{
	struct server *s = server_of(c);
	struct val object = val_find(s->there, q->name);

	s->n_gets++;
	*ret = (struct client_reply){ .status = 200, .retry_after_s = -1 };
	if (!val_exists(object))
		return err_set(err, ERR_NOT_FOUND, "nothing");
	ret->object = val_freeze(object);
	return 0;
}

static int server_watch(struct client *c, const struct client_request *q, struct client_watch **ret_watch, struct client_reply *ret,
			struct err *err)
{
	struct server *s = server_of(c);
	struct server_watch *w = mem_zalloc(sizeof(*w));
	str head, rest, name;

	(void)err;
	*ret = (struct client_reply){ .status = 200, .retry_after_s = -1 };
	CHECK(str_find(q->query, STR("fieldSelector=metadata.name%3D")) >= 0);
	rest = str_skip(q->query, (size_t)str_find(q->query, STR("fieldSelector=metadata.name%3D")) + 30);
	(void)str_cut(rest, '&', &name, &head);
	w->watch.client = c;
	w->server = s;
	w->name = arena_str(&s->arena, name);
	for (size_t i = 0; i < WATCHES_MAX; i++)
		if (!s->watches[i]) {
			s->watches[i] = w;
			break;
		}
	s->n_begun++;
	if (!s->slow) {
		if (val_exists(val_find(s->there, name)))
			push(w, CLIENT_ADDED, val_find(s->there, name));
		push(w, CLIENT_BOOKMARK, VAL_EMPTY);
	}
	*ret_watch = &w->watch;
	return 0;
}

static int server_watch_next(struct client_watch *watch, struct client_event *ret, struct err *err)
{
	static struct frozen *mark;
	struct server_watch *w = CONTAINER_OF(watch, struct server_watch, watch);
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	int r;

	while (w->at == w->n)
		if ((r = fiber_cond_wait(&w->server->more, err)) < 0)
			return r;
	struct frozen *object = w->events[w->at];
	frozen_unref(mark);
	mark = object ? NULL : val_freeze(OBJECT(&a, F(metadata, OBJECT(&a, F(resourceVersion, VAL_LIT("9"))))));
	*ret = (struct client_event){ .type = w->types[w->at++], .object = object ? object : mark, .initial_end = !object };
	return 1;
}

static void server_watch_free(struct client_watch *watch)
{
	struct server_watch *w = CONTAINER_OF(watch, struct server_watch, watch);

	for (size_t i = 0; i < WATCHES_MAX; i++)
		if (w->server->watches[i] == w)
			w->server->watches[i] = NULL;
	for (size_t i = 0; i < WATCHES_MAX && val_exists(w->server->parting); i++)
		if (w->server->watches[i])
			push(w->server->watches[i], CLIENT_MODIFIED, w->server->parting);
	fiber_cond_broadcast(&w->server->more);
	for (size_t i = 0; i < w->n; i++)
		frozen_unref(w->events[i]);
	free(w);
}

static const struct client_transport transport = { .call = server_call, .watch = server_watch, .watch_next = server_watch_next,
						   .watch_free = server_watch_free };

/* ---- scenes ---- */

struct scene {
	struct server server;
	struct objects *objects;
	struct fiber *fiber;
	struct arena arena;
};

static void changed(void *arg, str uid, bool appeared)
{
	struct scene *s = arg;
	buf_addf(&s->server.told, "%s" STR_FMT "%s", s->server.told.n ? " " : "", STR_ARG(uid), appeared ? "+" : "");
}

static int run(void *arg)
{
	struct scene *s = arg;
	return objects_run(s->objects, NULL);
}

static void begin(struct scene *s, bool no_watches)
{
	*s = (struct scene){ .server = { .client.transport = &transport, .told = BUF_INIT(1 << 12), .there = VAL_EMPTY_OBJECT } };
	fiber_cond_init(&s->server.more, "the server's next word");
	s->objects = objects_new(&(struct objects_options){ .client = &s->server.client, .no_watches = no_watches, .changed = changed, .arg = s });
	CHECK_INT(fiber_spawn(run, s, &s->fiber, NULL, "objects"), 0);
}

static void end(struct scene *s)
{
	fiber_stop(s->fiber);
	objects_free(s->objects);
	for (size_t i = 0; i < WATCHES_MAX; i++)
		CHECK(!s->server.watches[i]);
	buf_done(&s->server.told);
	arena_done(&s->server.arena);
	arena_done(&s->arena);
}

static struct val thing(struct scene *s, const char *name, const char *value, bool immutable)
{
	static int revision;
	str text = arena_printf(&s->arena, "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\","
				"\"uid\":\"u\",\"resourceVersion\":\"%d\"},\"data\":{\"k\":\"%s\"}%s}",
				name, ++revision, value, immutable ? ",\"immutable\":true" : "");
	struct val v = VAL_EMPTY;
	CHECK_INT(json_decode(&s->arena, text, &(struct json_decode_options){ 0 }, &v, NULL), 0);
	return v;
}

static void there(struct scene *s, const char *name, struct val object)
{
	s->server.there = val_put(&s->arena, s->server.there, atom_make(&s->arena, str_of(name)), object);
}

static void tell(struct scene *s, enum client_event_type type, const char *name, struct val object)
{
	for (size_t i = 0; i < WATCHES_MAX; i++)
		if (s->server.watches[i] && str_eq(s->server.watches[i]->name, str_of(name)))
			push(s->server.watches[i], type, object);
	fiber_cond_broadcast(&s->server.more);
	fiber_settle();
}

static void follow(struct scene *s, const char *uid, const char *spec, const char *labels)
{
	str text = arena_printf(&s->arena, "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"%s\",\"labels\":%s},\"spec\":%s}", uid, labels, spec);
	struct val v = VAL_EMPTY;
	CHECK_INT(json_decode(&s->arena, text, &(struct json_decode_options){ .type = TYPE(core_v1, Pod) }, &v, NULL), 0);
	CLEANUP(frozen_unrefp) struct frozen *pod = val_freeze(v);
	objects_follow(s->objects, pod);
	objects_follow(s->objects, pod);
	fiber_settle();
}

static str get(struct scene *s, const struct type *type, const char *name)
{
	struct err err = ERR_INIT;
	struct val v;
	int r = objects_get(s->objects, type, &s->arena, STR("ns"), str_of(name), &v, &err);
	return r < 0 ? arena_str(&s->arena, err_str(&err)) : val_as_str(val_find(val_get(v, data), STR("k")));
}

static str news(struct scene *s)
{
	str text = arena_str(&s->arena, buf_str(&s->server.told));
	buf_reset(&s->server.told);
	return text;
}

#define VOLUME(name) "{\"volumes\":[{\"name\":\"v\",\"configMap\":{\"name\":\"" name "\"}}]}"
#define MAP TYPE(core_v1, ConfigMap)

FIBER_TEST(objects_are_watched_while_pods_refer_to_them)
{
	struct scene s;
	begin(&s, false);
	there(&s, "a", thing(&s, "a", "one", false));
	follow(&s, "u1", VOLUME("a"), "{}");
	follow(&s, "u2", VOLUME("a"), "{}");
	CHECK_INT(objects_watched(s.objects), 1);
	CHECK_STR(get(&s, MAP, "a"), "one");
	CHECK_STR(news(&s), "");
	tell(&s, CLIENT_MODIFIED, "a", thing(&s, "a", "two", false));
	str both = news(&s);
	CHECK(str_eq(both, STR("u1 u2")) || str_eq(both, STR("u2 u1")));
	CHECK_STR(get(&s, MAP, "a"), "two");
	CHECK_INT(s.server.n_gets, 0);
	objects_forget(s.objects, STR("u1"));
	fiber_settle();
	CHECK_INT(objects_watched(s.objects), 1);
	tell(&s, CLIENT_DELETED, "a", thing(&s, "a", "two", false));
	CHECK_STR(news(&s), "u2");
	CHECK_STR(get(&s, MAP, "a"), "configmap \"a\" not found");
	tell(&s, CLIENT_ADDED, "a", thing(&s, "a", "three", false));
	CHECK_STR(news(&s), "u2+");
	objects_forget(s.objects, STR("u2"));
	objects_forget(s.objects, STR("u2"));
	fiber_settle();
	CHECK_INT(objects_watched(s.objects), 0);
	CHECK_INT(s.server.n_begun, 1);
	end(&s);
}

FIBER_TEST(objects_of_all_places_are_followed)
{
	struct scene s;
	begin(&s, false);
	follow(&s, "u",
	       "{\"imagePullSecrets\":[{\"name\":\"s1\"},{\"name\":\"\"}],"
	       "\"initContainers\":[{\"name\":\"i\",\"envFrom\":[{\"configMapRef\":{\"name\":\"c1\"}},{\"secretRef\":{\"name\":\"s2\"}}]}],"
	       "\"containers\":[{\"name\":\"c\",\"env\":[{\"name\":\"A\",\"valueFrom\":{\"configMapKeyRef\":{\"name\":\"c2\",\"key\":\"k\"}}},"
	       "{\"name\":\"B\",\"valueFrom\":{\"secretKeyRef\":{\"name\":\"s3\",\"key\":\"k\"}}}]}],"
	       "\"volumes\":[{\"name\":\"v\",\"secret\":{\"secretName\":\"s4\"}},{\"name\":\"w\",\"projected\":{\"sources\":["
	       "{\"configMap\":{\"name\":\"c3\"}},{\"secret\":{\"name\":\"s5\"}},{\"configMap\":{\"name\":\"c1\"}}]}}]}", "{}");
	CHECK_INT(objects_watched(s.objects), 8);
	CHECK_STR(get(&s, TYPE(core_v1, Secret), "s4"), "secret \"s4\" not found");
	/* What the next version does not name any more is let go; what both name is not watched anew. */
	follow(&s, "u", VOLUME("c1"), "{}");
	CHECK_INT(objects_watched(s.objects), 1);
	CHECK_INT(s.server.n_begun, 8);
	/* Others are asked for. */
	there(&s, "x", thing(&s, "x", "y", false));
	CHECK_STR(get(&s, MAP, "x"), "y");
	CHECK_INT(s.server.n_gets, 1);
	end(&s);
}

FIBER_TEST(objects_that_are_immutable_need_no_watch)
{
	struct scene s;
	begin(&s, false);
	there(&s, "a", thing(&s, "a", "for ever", true));
	follow(&s, "u1", VOLUME("a"), "{}");
	CHECK_INT(objects_watched(s.objects), 0);
	CHECK_STR(get(&s, MAP, "a"), "for ever");
	there(&s, "b", thing(&s, "b", "one", false));
	follow(&s, "u2", VOLUME("b"), "{}");
	CHECK_INT(objects_watched(s.objects), 1);
	tell(&s, CLIENT_MODIFIED, "b", thing(&s, "b", "two", true));
	CHECK_INT(objects_watched(s.objects), 0);
	CHECK_STR(get(&s, MAP, "b"), "two");
	CHECK_STR(news(&s), "u2");
	CHECK_INT(s.server.n_gets, 0);
	end(&s);
}

FIBER_TEST(objects_are_waited_for_a_second)
{
	struct scene s;
	begin(&s, false);
	s.server.slow = true;
	follow(&s, "u", VOLUME("a"), "{}");
	CHECK_STR(get(&s, MAP, "a"), "failed to sync configmap cache: timed out waiting for the condition");
	push(s.server.watches[0], CLIENT_ADDED, thing(&s, "a", "late", false));
	tell(&s, CLIENT_BOOKMARK, "a", VAL_EMPTY);
	CHECK_STR(news(&s), "u+");
	CHECK_STR(get(&s, MAP, "a"), "late");
	end(&s);
}

FIBER_TEST(objects_tell_of_labels_and_bundles)
{
	static const char bundle[] = "{\"volumes\":[{\"name\":\"v\",\"projected\":{\"sources\":[{\"clusterTrustBundle\":{\"name\":\"x\",\"path\":\"y\"}}]}}]}";
	struct scene s;
	begin(&s, true);
	follow(&s, "u", VOLUME("a"), "{\"a\":\"b\"}");
	follow(&s, "w", bundle, "{}");
	CHECK_INT(objects_watched(s.objects), 0);
	CHECK_STR(news(&s), "");
	follow(&s, "u", VOLUME("a"), "{\"a\":\"b\"}");
	CHECK_STR(news(&s), "");
	follow(&s, "u", VOLUME("a"), "{\"a\":\"c\"}");
	CHECK_STR(news(&s), "u");
	objects_touch_bundles(s.objects);
	objects_touch(s.objects, STR("nobody"));
	fiber_settle();
	CHECK_STR(news(&s), "w");
	CHECK_STR(get(&s, MAP, "a"), "configmap \"a\" not found");
	CHECK_INT(s.server.n_gets, 1);
	end(&s);
}

/* The watches of a kubelet that ends do so one after the other: what the last ones still tell is for pods that are gone. */
FIBER_TEST(objects_end_while_others_change)
{
	struct scene s;
	begin(&s, false);
	for (const char *const *name = (const char *const[]){ "a", "b", "c", "d", NULL }; *name; name++) {
		there(&s, *name, thing(&s, *name, "one", false));
		follow(&s, *name, arena_printf(&s.arena, "{\"volumes\":[{\"name\":\"v\",\"configMap\":{\"name\":\"%s\"}}]}", *name).p, "{}");
	}
	CHECK_INT(objects_watched(s.objects), 4);
	s.server.parting = thing(&s, "d", "two", false);
	end(&s);
}
