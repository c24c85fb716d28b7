/*
 * /openapi/v2 and /openapi/v3. The documents are functions of the schema and of what is served, so each is made once, when
 * it or (version 3) the index with everybody's hash is first asked for: on a thread of the pool, since that takes many
 * milliseconds, and kept compressed, a tenth of its size.
 */
#include <malloc.h>
#include <stdlib.h>
#include <time.h>

#include "apiserver/documents_priv.h"
#include "apiserver/negotiate.h"
#include "apiserver/openapi_proto.h"
#include "apiserver/version.h"
#include "base/clock.h"
#include "base/fiber.h"
#include "base/fiber_io.h"
#include "codec/atoms.h"
#include "machinery/openapi.h"

/* The subtypes of protobuf: as answers name it, and an older spelling that clients may ask for. */
#define PROTO(version) "com.github.proto-openapi.spec." version ".v1.0+protobuf"
#define PROTO_OLD(version) "com.github.proto-openapi.spec." version "@v1.0+protobuf"

static bool is_served(const struct resource *r, void *arg)
{
	const struct kinds *k = arg;
	for (size_t i = 0; i < k->n_endpoints; i++)
		if (k->endpoints[i].resource == r)
			return true;
	return false;
}

/* ---- making ---- */

/* One document to be made on another thread. */
struct job {
	struct kinds *kinds;      /* does not change while the server runs */
	bool v2, proto;
	str name, group, version; /* version 3: "apis/apps/v1", "apps", "v1"; without a version: no group's resources */
	struct document made;     /* bytes, n, gzip and etag */
};

static struct val job_tree(const struct job *j, struct arena *a)
{
	struct val doc;
	if (j->v2)
		doc = openapi_v2(a, is_served, j->kinds);
	else if (j->version.n)
		doc = openapi_v3(a, j->group, j->version, is_served, j->kinds);
	else
		doc = openapi_v3_root(a, j->name);
	return val_with(a, doc, val_of_str(str_of(version_info.git_version)), info, version);
}

static int job_encode(struct job *j, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf json = BUF_INIT(DOCUMENT_MAX);
	CLEANUP(buf_done) struct buf proto = BUF_INIT(DOCUMENT_MAX);

	struct val doc = job_tree(j, &a);
	int r = json_encode(&json, doc, &(struct json_encode_options){ .plain = true }, err);
	if (r < 0)
		return r;
	etag_of(buf_str(&json), j->made.etag);
	if (j->proto && (r = (j->v2 ? openapi_proto_v2 : openapi_proto_v3)(doc, &proto, err)) < 0)
		return r;
	return document_compress(&j->made, buf_str(j->proto ? &proto : &json), err);
}

/* Runs on a thread of the pool: touches nothing but the job and the schema. */
static int job_run(void *arg, struct err *err)
{
	int r = job_encode(arg, err);
	(void)malloc_trim(0); /* many megabytes were needed for a moment; an idle server should not keep them */
	return r;
}

/* (suspends) With the lock held. */
static int make(struct request *q, struct job *j, str key, struct document **ret, struct err *err)
{
	j->kinds = &q->server->kinds;
	int r = fiber_self() ? fiber_blocking(job_run, j, err) : job_run(j, err);
	if (r < 0)
		return r;
	struct document *doc = documents_keep(q->server, key, j->made.bytes);
	doc->n = j->made.n;
	doc->gzip = true;
	memcpy(doc->etag, j->made.etag, sizeof doc->etag);
	free((char *)j->made.bytes.p);
	*ret = doc;
	return 0;
}

/* (suspends) The document of that key: kept, or made by the job. */
static int get(struct request *q, struct job *j, str key, struct document **ret, struct err *err)
{
	*ret = documents_find(q->server, key);
	if (*ret)
		return 0;
	int r = documents_lock(q->server, err);
	if (r < 0)
		return r;
	*ret = documents_find(q->server, key); /* somebody else may have made it meanwhile */
	r = *ret ? 0 : make(q, j, key, ret, err);
	documents_unlock(q->server);
	return r;
}

/* ---- negotiation ---- */

enum doc_form { DOC_NONE = -1, DOC_JSON, DOC_PROTO, DOC_PROTO_OLD, N_DOC_FORMS };

/* The form that the client prefers among those that there are. */
static enum doc_form choose(struct request *q, const str subtypes[static N_DOC_FORMS])
{
	struct accept_clause *clauses;
	str header = http_request_header(q->http, STR("accept"));
	size_t n = accept_parse(q->arena, header.n ? header : STR("*/*"), &clauses);

	answer_header(q, STR("vary"), STR("Accept"));
	for (size_t i = 0; i < n; i++) {
		const struct accept_clause *c = &clauses[i];
		if (!str_eq(c->type, STR("application")) && !str_eq(c->type, STR("*")))
			continue;
		for (enum doc_form f = DOC_JSON; f < N_DOC_FORMS; f++)
			if (str_eq(c->subtype, subtypes[f]) || str_eq(c->subtype, STR("*")))
				return f;
	}
	answer_empty(q, 406);
	return DOC_NONE;
}

/* ---- version 2 ---- */

int openapi_v2_handle(struct request *q, struct err *err)
{
	static const str subtypes[] = { STR_INIT("json"), STR_INIT(PROTO("v2")), STR_INIT(PROTO_OLD("v2")) };
	struct document *doc;
	enum doc_form form = choose(q, subtypes);

	if (form == DOC_NONE)
		return 0;
	struct job j = { .v2 = true, .proto = form != DOC_JSON };
	int r = get(q, &j, j.proto ? STR("/openapi/v2 protobuf") : STR("/openapi/v2 json"), &doc, err);
	if (r < 0)
		return r;
	return answer_document(q, doc, j.proto ? STR("application/" PROTO("v2")) : STR("application/json"), err);
}

/* ---- version 3 ---- */

struct names {
	struct job *jobs;
	size_t n;
};

static void add(struct names *names, str name, str group, str version)
{
	names->jobs[names->n++] = (struct job){ .name = name, .group = group, .version = version };
}

/* All documents of version 3, in byte order of their names. */
static struct names all_names(struct request *q)
{
	struct arena *a = q->arena;
	const struct api_version **versions;
	size_t n = served_versions(q, &versions);
	struct names names = { .jobs = ARENA_ARRAY(a, struct job, 2 * n + 8) };

	add(&names, STR(".well-known/openid-configuration"), STR_NONE, STR_NONE);
	add(&names, STR("api"), STR_NONE, STR_NONE);
	add(&names, STR("apis"), STR_NONE, STR_NONE);
	add(&names, STR("openid/v1/jwks"), STR_NONE, STR_NONE);
	add(&names, STR("version"), STR_NONE, STR_NONE);
	for (size_t i = 0; i < n; i++) {
		str group = versions[i]->group, version = versions[i]->version;
		if (group.n && (!i || !str_eq(group, versions[i - 1]->group)))
			add(&names, arena_join(a, STR("apis/"), group), STR_NONE, STR_NONE);
		add(&names, group.n ? arena_printf(a, "apis/" STR_FMT "/" STR_FMT, STR_ARG(group), STR_ARG(version)) :
				      arena_join(a, STR("api/"), version), group, version);
	}
	for (size_t i = 1; i < names.n; i++)
		for (size_t k = i; k && str_cmp(names.jobs[k].name, names.jobs[k - 1].name) < 0; k--) {
			struct job j = names.jobs[k];
			names.jobs[k] = names.jobs[k - 1];
			names.jobs[k - 1] = j;
		}
	return names;
}

static str key_of(struct request *q, str name) { return arena_join(q->arena, STR("/openapi/v3/"), name); }

static str etag_text(const struct document *doc) { return str_span(doc->etag + 1, ETAG_HEX); }

static str url_of(struct request *q, str name, const struct document *doc)
{
	return arena_printf(q->arena, "/openapi/v3/" STR_FMT "?hash=" STR_FMT, STR_ARG(name), STR_ARG(etag_text(doc)));
}

/* (suspends) {"paths":{"api/v1":{"serverRelativeURL":"/openapi/v3/api/v1?hash=..."}, ...}} */
static int answer_index(struct request *q, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(DOCUMENT_MAX);
	struct names names = all_names(q);
	struct val_builder paths = val_builder(q->arena);

	for (size_t i = 0; i < names.n; i++) {
		struct document *doc;
		int r = get(q, &names.jobs[i], key_of(q, names.jobs[i].name), &doc, err);
		if (r < 0)
			return r;
		val_add_member(&paths, atom_make(q->arena, names.jobs[i].name),
			       OBJECT(q->arena, F(serverRelativeURL, val_of_str(url_of(q, names.jobs[i].name, doc)))));
	}
	struct val index = OBJECT(q->arena, F(paths, val_end_object(&paths)));
	int r = json_encode(&b, index, &(struct json_encode_options){ 0 }, err);
	if (r < 0)
		return r;
	/* As Kubernetes, which does not say that it is JSON. */
	answer_bytes(q, 200, STR("text/plain; charset=utf-8"), arena_str(q->arena, buf_str(&b)));
	return 0;
}

/* A URL with the right hash names one document for ever. */
static void allow_caching(struct request *q)
{
	char text[64];
	struct tm tm;
	time_t t = (time_t)(clock_wall_ns() / NS_PER_S + 365 * 86400);

	(void)gmtime_r(&t, &tm);
	size_t n = strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &tm);
	answer_header(q, STR("cache-control"), STR("public, immutable"));
	answer_header(q, STR("expires"), arena_str(q->arena, str_span(text, n)));
}

static int answer_v3(struct request *q, struct job *j, struct err *err)
{
	static const str subtypes[] = { STR_INIT("json"), STR_INIT(PROTO("v3")), STR_INIT(PROTO_OLD("v3")) };
	struct document *doc;
	enum doc_form form = choose(q, subtypes);

	if (form == DOC_NONE)
		return 0;
	j->proto = form != DOC_JSON;
	str key = key_of(q, j->name), type = j->proto ? STR("application/" PROTO("v3")) : STR("application/json");
	int r = get(q, j, j->proto ? arena_join(q->arena, key, STR(" protobuf")) : key, &doc, err);
	if (r < 0)
		return r;
	str hash = request_query(q, STR("hash"));
	if (hash.n && !str_eq(hash, etag_text(doc))) {
		answer_header(q, STR("etag"), str_of(doc->etag));
		answer_header(q, STR("location"), url_of(q, j->name, doc));
		answer_bytes(q, 301, type, STR_NONE);
		return 0;
	}
	if (hash.n)
		allow_caching(q);
	return answer_document(q, doc, type, err);
}

int openapi_v3_handle(struct request *q, str name, struct err *err)
{
	if (!name.n)
		return answer_index(q, err);
	struct names names = all_names(q);
	for (size_t i = 0; i < names.n; i++)
		if (str_eq(names.jobs[i].name, name))
			return answer_v3(q, &names.jobs[i], err);
	answer_empty(q, 404);
	return 0;
}
