/*
 * Which path is answered by whom, and where documents are kept. A kept document is never changed or dropped while the
 * server lives, so that answers may borrow its bytes. Only names that the server itself makes up get in, so their number
 * is bounded.
 */
#include "apiserver/documents.h"

#include <openssl/sha.h>
#include <stdlib.h>
#include <zlib.h>

#include "apiserver/documents_priv.h"
#include "apiserver/fairness/fairness.h"
#include "apiserver/metrics.h"
#include "apiserver/negotiate.h"
#include "apiserver/version.h"
#include "base/encoding.h"
#include "base/fiber.h"
#include "base/mem.h"

struct documents {
	struct map by_name;
	bool busy;
	struct fiber_cond idle;
};

static struct documents *documents_of(struct apiserver *s)
{
	if (!s->documents) {
		s->documents = mem_zalloc(sizeof *s->documents);
		map_init(&s->documents->by_name);
		fiber_cond_init(&s->documents->idle, "a document in the making");
	}
	return s->documents;
}

void documents_free(struct documents *d)
{
	if (!d)
		return;
	struct map_iter it = map_iter(&d->by_name);
	for (struct document *doc; (doc = map_next(&it, NULL));) {
		free((char *)doc->name.p);
		free((char *)doc->bytes.p);
		free(doc);
	}
	map_done(&d->by_name);
	free(d);
}

struct document *documents_find(struct apiserver *s, str name) { return map_get(&documents_of(s)->by_name, name); }

static str copy(str s)
{
	char *p = mem_alloc(s.n + 1);
	if (s.n)
		memcpy(p, s.p, s.n);
	return str_span(p, s.n);
}

struct document *documents_keep(struct apiserver *s, str name, str bytes)
{
	struct document *doc = mem_zalloc(sizeof *doc);
	doc->name = copy(name);
	doc->bytes = copy(bytes);
	doc->n = bytes.n;
	map_put(&documents_of(s)->by_name, doc->name, doc);
	return doc;
}

int documents_lock(struct apiserver *s, struct err *err)
{
	struct documents *d = documents_of(s);
	while (d->busy) {
		int r = fiber_cond_wait(&d->idle, err);
		if (r < 0)
			return r;
	}
	d->busy = true;
	return 0;
}

void documents_unlock(struct apiserver *s)
{
	s->documents->busy = false;
	fiber_cond_signal(&s->documents->idle);
}

/* ---- gzip ---- */

enum { GZIP_WINDOW = 15 + 16 }; /* zlib's largest window, with gzip's header */

int document_compress(struct document *doc, str plain, struct err *err)
{
	z_stream z = { .next_in = (Bytef *)plain.p, .avail_in = (uInt)plain.n };
	if (plain.n > DOCUMENT_MAX ||
	    deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return err_set(err, ERR_INTERNAL, "a document of %zu bytes cannot be compressed", plain.n);
	size_t room = deflateBound(&z, (uLong)plain.n);
	char *out = mem_alloc(room);
	z.next_out = (Bytef *)out;
	z.avail_out = (uInt)room;
	int r = deflate(&z, Z_FINISH);
	size_t n = z.total_out;
	(void)deflateEnd(&z);
	if (r != Z_STREAM_END) {
		free(out);
		return err_set(err, ERR_INTERNAL, "a document cannot be compressed: zlib says %d", r);
	}
	free((char *)doc->bytes.p);
	doc->bytes = str_span(mem_resize(out, n), n);
	doc->n = plain.n;
	doc->gzip = true;
	return 0;
}

static int decompress(struct arena *a, const struct document *doc, str *ret, struct err *err)
{
	char *out = arena_alloc(a, doc->n, 1);
	z_stream z = { .next_in = (Bytef *)doc->bytes.p, .avail_in = (uInt)doc->bytes.n, .next_out = (Bytef *)out,
		       .avail_out = (uInt)doc->n };
	int r = inflateInit2(&z, GZIP_WINDOW);
	if (r == Z_OK)
		r = inflate(&z, Z_FINISH);
	(void)inflateEnd(&z);
	if (r != Z_STREAM_END || z.total_out != doc->n)
		return err_set(err, ERR_INTERNAL, "a kept document cannot be decompressed: zlib says %d", r);
	*ret = str_span(out, doc->n);
	return 0;
}

/* ---- ETags ---- */

void etag_of(str text, char ret[ETAG_HEX + 3])
{
	static const char digits[] = "0123456789ABCDEF";
	unsigned char sum[SHA512_DIGEST_LENGTH];

	(void)SHA512((const unsigned char *)text.p, text.n, sum);
	*ret++ = '"';
	for (size_t i = 0; i < sizeof sum; i++) {
		*ret++ = digits[sum[i] >> 4];
		*ret++ = digits[sum[i] & 15];
	}
	memcpy(ret, "\"", 2);
}

bool etag_matches(const struct request *q, str etag)
{
	str rest = http_request_header(q->http, STR("if-none-match")), one;
	while (rest.n) {
		str_cut(rest, ',', &one, &rest);
		one = str_trim(one);
		if (str_starts(one, STR("W/")))
			one = str_skip(one, 2);
		if (str_eq(one, etag) || str_eq(one, STR("*")))
			return true;
	}
	return false;
}

/* ---- answering ---- */

int answer_document(struct request *q, const struct document *doc, str content_type, struct err *err)
{
	str bytes = doc->bytes, etag = str_of(doc->etag);
	if (etag.n) {
		answer_header(q, STR("etag"), etag);
		if (etag_matches(q, etag)) {
			answer_empty(q, 304);
			return 0;
		}
	}
	if (doc->gzip) {
		answer_header(q, STR("vary"), STR("Accept-Encoding"));
		if (negotiate_gzip(q)) {
			answer_header(q, STR("content-encoding"), STR("gzip"));
		} else {
			int r = decompress(q->arena, doc, &bytes, err);
			if (r < 0)
				return r;
		}
	}
	answer_bytes(q, 200, content_type, bytes);
	return 0;
}

int answer_indented(struct request *q, struct val v, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(DOCUMENT_MAX);
	int r = json_encode(&b, v, &(struct json_encode_options){ .indent = 2 }, err);
	if (r < 0)
		return r;
	answer_bytes(q, 200, STR("application/json"), arena_str(q->arena, buf_str(&b)));
	return 0;
}

void answer_text(struct request *q, int status, str text)
{
	answer_header(q, STR("x-content-type-options"), STR("nosniff"));
	answer_bytes(q, status, STR("text/plain; charset=utf-8"), text);
}

void answer_empty(struct request *q, int status) { answer_bytes(q, status, STR_NONE, STR_NONE); }

void answer_page_not_found(struct request *q) { answer_text(q, 404, STR("404 page not found\n")); }

int require_get(struct request *q) { return str_eq(q->method, STR("GET")) ? 0 : fail_method_not_allowed(q); }

/* ---- what is served ---- */

bool serves_version(const struct request *q, str group, str version)
{
	str name = arena_printf(q->arena, STR_FMT "/" STR_FMT, STR_ARG(group), STR_ARG(version));
	return map_get(&q->server->kinds.served, name);
}

size_t served_versions(const struct request *q, const struct api_version ***ret)
{
	size_t n = 0;
	*ret = ARENA_ARRAY(q->arena, const struct api_version *, schema_n_api_versions);
	for (size_t i = 0; i < schema_n_api_versions; i++)
		if (serves_version(q, schema_api_versions[i].group, schema_api_versions[i].version))
			(*ret)[n++] = &schema_api_versions[i];
	return n;
}

/* ---- paths ---- */

/* Is path this one, or below it? *ret_rest is what follows, without its slash; *ret_slash whether there is a slash. */
static bool below(str path, str root, str *ret_rest, bool *ret_slash)
{
	if (!str_starts(path, root) || (path.n > root.n && path.p[root.n] != '/'))
		return false;
	*ret_slash = path.n > root.n;
	*ret_rest = str_skip(path, root.n + *ret_slash);
	return true;
}

int nonresource_handle(struct request *q, struct err *err)
{
	str path = q->path, rest;
	bool slash;

	if (str_eq(path, STR("/")) || str_eq(path, STR("/index.html")))
		return root_handle(q, err);
	if (below(path, STR("/version"), &rest, &slash) && !rest.n)
		return version_handle(q, err);
	if (below(path, STR("/api"), &rest, &slash))
		return discovery_handle(q, true, rest, err);
	if (below(path, STR("/apis"), &rest, &slash))
		return discovery_handle(q, false, rest, err);
	if (str_eq(path, STR("/openapi/v2")))
		return openapi_v2_handle(q, err);
	if (below(path, STR("/openapi/v3"), &rest, &slash))
		return openapi_v3_handle(q, slash && !rest.n ? STR("/") : rest, err);
	if (str_eq(path, STR("/.well-known/openid-configuration")))
		return openid_configuration_answer(q, err);
	if (str_eq(path, STR("/openid/v1/jwks")))
		return openid_keys_answer(q, err);
	if (str_eq(path, STR("/metrics")))
		return metrics_handle(q, err);
	static const str health[] = { STR_INIT("/healthz"), STR_INIT("/livez"), STR_INIT("/readyz") };
	for (size_t i = 0; i < ARRAY_LEN(health); i++)
		if (below(path, health[i], &rest, &slash) && !(slash && !rest.n))
			return health_handle(q, str_skip(health[i], 1), rest, err);
	if (below(path, STR("/debug/api_priority_and_fairness"), &rest, &slash))
		return fairness_dump(q, rest, err);
	if (below(path, STR("/debug"), &rest, &slash))
		return debug_handle(q, rest, err);
	return err_set(err, ERR_NOT_FOUND, "no such path");
}
