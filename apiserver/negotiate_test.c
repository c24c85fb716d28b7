#include "apiserver/negotiate.h"

#include "base/test.h"
#include "codec/atoms.h"

#define META "g=meta.k8s.io"
#define TAKEN "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"
#define ROUTED "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, " \
	       "application/vnd.kubernetes.protobuf"
#define STREAMS "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"

struct call {
	struct arena arena;
	struct http_header headers[3];
	struct http_exchange http;
	struct query_parameter query;
	struct request q;
};

static void call_init(struct call *c, enum request_verb verb, const char *accept, const char *agent, const char *pretty)
{
	*c = (struct call){ .arena = ARENA_INIT };
	if (accept)
		c->headers[c->http.n_headers++] = (struct http_header){ STR("accept"), str_of(accept) };
	if (agent)
		c->headers[c->http.n_headers++] = (struct http_header){ STR("user-agent"), str_of(agent) };
	c->http.headers = c->headers;
	c->q = (struct request){ .http = &c->http, .arena = &c->arena, .verb = verb, .is_resource = true };
	if (pretty) {
		c->query = (struct query_parameter){ STR("pretty"), str_of(pretty) };
		c->q.query = &c->query;
		c->q.n_query = 1;
	}
}

TEST(accept_chooses_a_form)
{
	static const struct {
		const char *accept;
		enum media media;
		enum media_as as;
		const char *version;
	} t[] = {
		{ NULL, MEDIA_JSON, AS_OBJECT, "" },
		{ "*/*", MEDIA_JSON, AS_OBJECT, "" },
		{ "application/json", MEDIA_JSON, AS_OBJECT, "" },
		{ "application/yaml", MEDIA_YAML, AS_OBJECT, "" },
		{ "application/vnd.kubernetes.protobuf", MEDIA_PROTO, AS_OBJECT, "" },
		{ "application/vnd.kubernetes.protobuf,application/json", MEDIA_PROTO, AS_OBJECT, "" },
		{ "application/json;q=0.5, application/yaml", MEDIA_YAML, AS_OBJECT, "" },
		{ "*/*, application/yaml", MEDIA_YAML, AS_OBJECT, "" },
		{ "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", MEDIA_JSON, AS_OBJECT, "" },
		{ "application/json;as=Table;v=v1;" META, MEDIA_JSON, AS_TABLE, "v1" },
		{ "application/json;as=Table;v=v1;" META ";q=0.5", MEDIA_JSON, AS_TABLE, "v1" },
		{ "application/json;as=Table;v=v1beta1;" META, MEDIA_JSON, AS_TABLE, "v1beta1" },
		{ "application/json;as=Table;v=v9;" META ",application/json", MEDIA_JSON, AS_OBJECT, "" },
		{ "application/json;as=Table;v=v1;" META ",application/json;as=Table;v=v1beta1;" META ",application/json", MEDIA_JSON,
		  AS_TABLE, "v1" },
		{ "application/vnd.kubernetes.protobuf;as=Table;v=v1;" META ",application/yaml", MEDIA_YAML, AS_OBJECT, "" },
		{ "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;" META, MEDIA_PROTO, AS_PARTIAL_LIST, "v1" },
		{ "application/json;as=PartialObjectMetadata;v=v1;" META, MEDIA_JSON, AS_PARTIAL, "v1" },
		{ "application/json; charset=utf-8", MEDIA_JSON, AS_OBJECT, "" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct call c;
		call_init(&c, REQUEST_LIST, t[i].accept, NULL, NULL);
		CHECK_ROW(i, negotiate_accept(&c.q, NULL) == 0);
		CHECK_ROW(i, c.q.accept.media == t[i].media && c.q.accept.as == t[i].as);
		CHECK_STR_ROW(i, c.q.accept.as_version ? c.q.accept.as_version->version : STR(""), t[i].version);
		arena_done(&c.arena);
	}
}

TEST(accept_refuses)
{
	static const struct {
		enum request_verb verb;
		const char *accept, *message;
		bool details;
	} t[] = {
		{ REQUEST_LIST, "text/plain", ROUTED ", " STREAMS, true },
		{ REQUEST_WATCH, "text/plain", ROUTED ", " STREAMS, true },
		{ REQUEST_GET, "text/plain", ROUTED, true },
		{ REQUEST_GET, "application/cbor", ROUTED, true },
		{ REQUEST_GET, "application/*", ROUTED, true },
		{ REQUEST_LIST, "application/json;as=Table;v=v9;" META, TAKEN, false },
		{ REQUEST_LIST, "application/json;as=Foo;v=v1;" META, TAKEN, false },
		{ REQUEST_LIST, "application/vnd.kubernetes.protobuf;as=Table;v=v1;" META, TAKEN, false },
		{ REQUEST_WATCH, "application/yaml", "only the following media types are accepted: " STREAMS, false },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct call c;
		call_init(&c, t[i].verb, t[i].accept, NULL, NULL);
		CHECK_ROW(i, negotiate_accept(&c.q, NULL) == -ERR_NOT_ACCEPTABLE);
		CHECK_STR_ROW(i, val_str(c.q.failure, message), t[i].message);
		CHECK_ROW(i, val_int(c.q.failure, code) == 406 && val_has(c.q.failure, details) == t[i].details);
		arena_done(&c.arena);
	}
}

TEST(accept_is_pretty_for_people)
{
	static const struct {
		const char *accept, *agent, *pretty;
		bool want;
	} t[] = {
		{ NULL, "curl/8.0", NULL, true },
		{ NULL, "Wget/1.21", NULL, true },
		{ NULL, "Mozilla/5.0 (X11)", NULL, true },
		{ NULL, "kubectl/v1.36.0", NULL, false },
		{ NULL, "kubectl/v1.36.0", "true", true },
		{ NULL, "curl/8.0", "false", false },
		{ NULL, "curl/8.0", "perhaps", false },
		{ "application/json;pretty=1", "kubectl", NULL, true },
		{ "application/vnd.kubernetes.protobuf", "curl/8.0", "1", false },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct call c;
		call_init(&c, REQUEST_GET, t[i].accept, t[i].agent, t[i].pretty);
		CHECK_ROW(i, negotiate_accept(&c.q, NULL) == 0);
		CHECK_ROW(i, c.q.accept.pretty == t[i].want);
		arena_done(&c.arena);
	}
}

TEST(failures_are_never_tables)
{
	struct call c;
	struct accept accept;
	call_init(&c, REQUEST_GET, "application/json;as=Table;v=v1;" META ",application/yaml", NULL, NULL);
	CHECK(negotiate_status(&c.q, &accept));
	CHECK(accept.media == MEDIA_YAML && accept.as == AS_OBJECT);
	arena_done(&c.arena);
	call_init(&c, REQUEST_GET, "application/json;as=Table;v=v1;" META, NULL, NULL);
	CHECK(!negotiate_status(&c.q, &accept));
	arena_done(&c.arena);
}

TEST(body_media)
{
	static const struct {
		const char *type;
		int r;
		enum media media;
	} t[] = {
		{ NULL, 0, MEDIA_JSON },
		{ "application/json", 0, MEDIA_JSON },
		{ "application/json; charset=utf-8", 0, MEDIA_JSON },
		{ "Application/YAML", 0, MEDIA_YAML },
		{ "application/vnd.kubernetes.protobuf", 0, MEDIA_PROTO },
		{ "text/plain", -ERR_UNSUPPORTED_MEDIA, 0 },
		{ "bogus", -ERR_UNSUPPORTED_MEDIA, 0 },
		{ "application/merge-patch+json", -ERR_UNSUPPORTED_MEDIA, 0 },
		{ "application/json/x", -ERR_UNSUPPORTED_MEDIA, 0 },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct call c;
		enum media media = MEDIA_CBOR;
		call_init(&c, REQUEST_CREATE, NULL, NULL, NULL);
		if (t[i].type)
			c.headers[c.http.n_headers++] = (struct http_header){ STR("content-type"), str_of(t[i].type) };
		CHECK_ROW(i, negotiate_body(&c.q, &media, NULL) == t[i].r);
		if (t[i].r == 0)
			CHECK_ROW(i, media == t[i].media);
		else
			CHECK_STR_ROW(i, val_str(c.q.failure, message),
				      "the body of the request was in an unknown format - accepted media types include: application/json, "
				      "application/yaml, application/vnd.kubernetes.protobuf");
		arena_done(&c.arena);
	}
}
