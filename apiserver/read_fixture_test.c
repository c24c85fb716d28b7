#include "apiserver/read_fixture.h"

#include <stdlib.h>
#include <unistd.h>

#include "codec/atoms.h"
#include "machinery/testing.h"
#include "net/url.h"

static int follow(void *arg)
{
	struct err err = ERR_INIT;
	return cache_run(arg, &err);
}

static bool serve_default(const struct resource *r, void *arg)
{
	(void)arg;
	return r->flags & RESOURCE_DEFAULT;
}

void read_fixture_init(struct read_fixture *f)
{
	struct err err = ERR_INIT;
	const char *base = getenv("TMPDIR");
	*f = (struct read_fixture){ .server.options.min_request_timeout_s = 1800 };
	(void)snprintf(f->folder, sizeof f->folder, "%s/c8s-read-XXXXXX", base && strlen(base) < 40 ? base : "/tmp");
	CHECK(mkdtemp(f->folder));
	(void)snprintf(f->file, sizeof f->file, "%s/store.db", f->folder);
	buf_init(&f->text, 1 << 26);
	CHECK_INT(store_open(&(struct store_options){ .path = f->file }, &f->server.store, &err), 0);
	kinds_init(&f->server.kinds, serve_default, NULL);
	f->server.cache = cache_new(f->server.store, &f->server.kinds);
	CHECK_INT(cache_load(f->server.cache, &err), 0);
	CHECK_INT(fiber_spawn(follow, f->server.cache, &f->follower, &err, "follower"), 0);
}

void read_fixture_done(struct read_fixture *f)
{
	static const char *const tails[] = { "", "-wal", "-shm", ".snapshot" };
	(void)fiber_stop(f->follower);
	cache_free(f->server.cache);
	kinds_done(&f->server.kinds);
	store_free(f->server.store);
	for (size_t i = 0; i < ARRAY_LEN(tails); i++) {
		char path[128];
		(void)snprintf(path, sizeof path, "%s%s", f->file, tails[i]);
		(void)unlink(path);
	}
	(void)rmdir(f->folder);
	buf_done(&f->text);
	arena_done(&f->arena);
}

int64_t read_fixture_put(struct read_fixture *f, str resource, const char *key, const char *json)
{
	struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;
	struct kind *kind = kinds_find(&f->server.kinds, STR(""), resource);
	int64_t revision = 0;
	CHECK(kind);
	str store_key = cache_store_key(&a, kind, str_of(key));
	if (json) {
		const struct type *type;
		struct store_value *value;
		struct val v;
		CHECK_INT(json_decode_object(&a, testing_json(&a, json), NULL, &v, &type, &err), 0);
		CHECK(type == kind->hub);
		CLEANUP(object_unrefp) struct object *o = object_new(kind, str_of(key), v);
		CHECK_INT(cache_encode(o, &value, &err), 0);
		CHECK_INT(store_put(f->server.store, store_key, value, STORE_ANY, 0, &revision, NULL, &err), 1);
		store_value_unref(value);
	} else {
		CHECK_INT(store_delete(f->server.store, store_key, STORE_ANY, &revision, NULL, &err), 1);
	}
	CHECK_INT(cache_wait(f->server.cache, revision, 5000, &err), 0);
	arena_done(&a);
	return revision;
}

int read_fixture_call(struct read_fixture *f, const char *verb, const char *resource, const char *namespace, const char *name,
		      const char *query, const char *accept)
{
	static const struct {
		const char *name;
		enum request_verb verb;
		int (*read)(struct request *q, struct err *err);
	} verbs[] = {
		{ "GET", REQUEST_GET, read_get }, { "LIST", REQUEST_LIST, read_list }, { "WATCH", REQUEST_WATCH, read_watch },
	};
	struct err err = ERR_INIT;
	struct url_query params;
	arena_reset(&f->arena);
	f->http = (struct http_exchange){ .arena = &f->arena, .headers = f->headers };
	if (accept)
		f->headers[f->http.n_headers++] = (struct http_header){ STR("accept"), str_of(accept) };
	f->q = (struct request){
		.server = &f->server, .http = &f->http, .arena = &f->arena, .is_resource = true, .version = STR("v1"),
		.resource = str_of(resource), .namespace = str_of(namespace), .name = str_of(name),
	};
	f->q.endpoint = kinds_endpoint(&f->server.kinds, STR(""), STR("v1"), f->q.resource, STR(""));
	CHECK(f->q.endpoint);
	CHECK_INT(url_query_parse(&f->arena, str_of(query), &params, &err), 0);
	f->q.query = ARENA_ARRAY(&f->arena, struct query_parameter, params.n);
	for (size_t i = 0; i < params.n; i++)
		f->q.query[f->q.n_query++] = (struct query_parameter){ params.params[i].key, params.params[i].value };
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
		if (strcmp(verbs[i].name, verb) != 0)
			continue;
		f->q.verb = verbs[i].verb;
		int r = negotiate_accept(&f->q, &err);
		return r < 0 ? r : verbs[i].read(&f->q, &err);
	}
	fail_msg("no verb %s", verb);
	return -1;
}

str read_fixture_drain(struct read_fixture *f, size_t step, bool *ret_end)
{
	struct http_source *s = f->q.answer.list->source;
	char piece[512];
	buf_reset(&f->text);
	for (;;) {
		ssize_t n = s->fill(s, piece, MIN(step, sizeof piece));
		*ret_end = n == 0;
		if (n <= 0) {
			CHECK(n == 0 || n == HTTP_LATER);
			return buf_str(&f->text);
		}
		buf_add(&f->text, str_span(piece, (size_t)n));
	}
}

void read_fixture_stop(struct read_fixture *f)
{
	if (f->q.answer.kind == ANSWER_LIST)
		f->q.answer.list->source->stop(f->q.answer.list->source);
	object_unref(TAKE(f->q.answer.object));
	f->q.answer.kind = ANSWER_NONE;
}
