/*
 * Asking other servers. One client per webhook: it keeps connections, so that a question costs no handshake, and any number
 * of fibers may ask at a time. A Service is looked up in the cache at every question: it may have moved.
 */
#include "apiserver/webhook.h"

#include "apiserver/apiserver.h"
#include "apiserver/cache.h"
#include "apiserver/version.h"
#include "apiserver/webhook_priv.h"
#include "base/clock.h"
#include "base/encoding.h"
#include "base/fiber.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "net/http_client.h"
#include "net/url.h"

enum {
	ANSWER_MAX = 16 << 20,        /* a patch of the largest object there can be, in base64 */
	QUESTION_MAX = 16 << 20,
	TEXT_SHOWN = 2048,            /* of an answer that is no answer */
	TOKEN_MAX = 1 << 16,
	IDLE_CONNECTIONS = 25,
	TIMEOUT_MS = 30 * 1000,
	FILES_AGAIN_S = 60,
	DEFAULT_PORT = 443,
};

struct webhook {
	struct apiserver *server;
	struct arena arena;
	struct tls_context *tls;
	struct http_client *http;
	str url;                      /* without query */
	str service_namespace, service_name;
	uint16_t service_port;
	str authorization;            /* the header; empty: none */
	const char *token_file;
	struct buf token_header;      /* made of the file's content */
	bool tls_files;               /* something of tls is in files */
	int64_t files_read_ns;
};

/* ---- making ---- */

/* An empty text stands for none. */
static const char *text_or_null(struct arena *a, str s) { return s.n ? arena_str(a, s).p : NULL; }

static int read_token(struct webhook *w, struct err *err)
{
	CLEANUP(buf_done) struct buf content = BUF_INIT(TOKEN_MAX);
	int r = file_read(w->token_file, &content, err);
	if (r < 0)
		return r;
	str token = str_trim(buf_str(&content));
	if (!token.n)
		return err_set(err, ERR_INVALID, "read empty token from file \"%s\"", w->token_file);
	buf_reset(&w->token_header);
	buf_addf(&w->token_header, "Bearer " STR_FMT, STR_ARG(token));
	return 0;
}

static int make_authorization(struct webhook *w, const struct webhook_options *o, const char *token_file, struct err *err)
{
	buf_init(&w->token_header, TOKEN_MAX + 16);
	if (token_file) {
		w->token_file = arena_str(&w->arena, str_of(token_file)).p;
		return read_token(w, err);
	}
	if (o->token.n) {
		w->authorization = arena_printf(&w->arena, "Bearer " STR_FMT, STR_ARG(o->token));
	} else if (o->user.n || o->password.n) {
		CLEANUP(buf_done) struct buf plain = BUF_INIT(TOKEN_MAX), coded = BUF_INIT(2 * TOKEN_MAX);
		buf_addf(&plain, STR_FMT ":" STR_FMT, STR_ARG(o->user), STR_ARG(o->password));
		buf_add(&coded, STR("Basic "));
		base64_encode_buf(&coded, buf_str(&plain));
		w->authorization = arena_str(&w->arena, buf_str(&coded));
	}
	return 0;
}

/* The path without a slash at its end, but not empty. */
static str clean_path(str path)
{
	while (path.n > 1 && path.p[path.n - 1] == '/')
		path.n--;
	return path.n ? path : STR("/");
}

static int make_url(struct webhook *w, const struct webhook_options *o, struct err *err)
{
	struct url u;
	if (o->url.n) {
		int r = url_parse(&w->arena, arena_str(&w->arena, o->url), &u, err);
		if (r < 0)
			return err_wrap(err, r, "parse \"" STR_FMT "\"", STR_ARG(str_head(o->url, 250)));
		str path = clean_path(u.path);
		w->url = arena_printf(&w->arena, STR_FMT "://" STR_FMT STR_FMT, STR_ARG(u.scheme), STR_ARG(u.authority),
				      STR_ARG(path));
		return 0;
	}
	if (!o->service_name.n || !o->service_namespace.n)
		return err_set(err, ERR_INVALID, "webhook configuration must have either service or URL");
	if (o->service_port < 0 || o->service_port > 65535)
		return err_set(err, ERR_INVALID, "%d is no port", o->service_port);
	w->service_namespace = arena_str(&w->arena, o->service_namespace);
	w->service_name = arena_str(&w->arena, o->service_name);
	w->service_port = o->service_port ? (uint16_t)o->service_port : DEFAULT_PORT;
	str path = clean_path(o->service_path), slash = path.p[0] == '/' ? STR("") : STR("/");
	w->url = arena_printf(&w->arena, "https://" STR_FMT "." STR_FMT ".svc:%u" STR_FMT STR_FMT, STR_ARG(w->service_name),
			      STR_ARG(w->service_namespace), w->service_port, STR_ARG(slash), STR_ARG(path));
	return 0;
}

static int make_client(struct webhook *w, const struct webhook_options *o, const struct webhook_files *files, struct err *err)
{
	static const char *const alpn[] = { "http/1.1", NULL };
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct tls_options tls = {
		.cert_file = files->client_cert, .key_file = files->client_key, .ca_file = files->ca,
		.cert_pem = text_or_null(&a, o->client_cert), .key_pem = text_or_null(&a, o->client_key),
		.ca_pem = text_or_null(&a, o->ca_bundle), .insecure_skip_verify = o->insecure,
		.server_name = text_or_null(&a, o->server_name), .alpn = alpn,
	};
	if (!tls.server_name && w->service_name.n)
		tls.server_name = arena_printf(&a, STR_FMT "." STR_FMT ".svc", STR_ARG(w->service_name),
					       STR_ARG(w->service_namespace)).p;
	w->tls_files = files->client_cert || files->client_key || files->ca;
	int r = tls_client_new(&tls, &w->tls, err);
	if (r < 0)
		return r;
	w->http = http_client_new(&(struct http_client_options){ .tls = w->tls, .max_idle_per_host = IDLE_CONNECTIONS });
	return 0;
}

int webhook_make(struct apiserver *s, const struct webhook_options *o, const struct webhook_files *files,
		 struct webhook **ret, struct err *err)
{
	int r;
	struct webhook *w = mem_zalloc(sizeof *w);
	arena_init(&w->arena);
	w->server = s;
	w->files_read_ns = clock_now_ns();
	if ((r = make_url(w, o, err)) < 0 || (r = make_authorization(w, o, files->token, err)) < 0 ||
	    (r = make_client(w, o, files, err)) < 0) {
		webhook_free(w);
		return r;
	}
	*ret = w;
	return 0;
}

int webhook_new(struct apiserver *s, const struct webhook_options *o, struct webhook **ret, struct err *err)
{
	return webhook_make(s, o, &(const struct webhook_files){ 0 }, ret, err);
}

void webhook_free(struct webhook *w)
{
	if (!w)
		return;
	if (w->http)
		http_client_free(w->http);
	tls_context_free(w->tls);
	buf_done(&w->token_header);
	arena_done(&w->arena);
	free(w);
}

/* ---- where it is now ---- */

struct place {
	const char *host;             /* NULL: as the URL says */
	uint16_t port;
};

static bool has_port(struct val service, uint16_t port)
{
	VAL_EACH(p, val_get(service, spec, ports))
		if (val_int(*p, port) == port)
			return true;
	return false;
}

/* The server itself: it need not go through the Service. */
static bool is_ourselves(const struct webhook *w)
{
	return str_eq(w->service_namespace, STR("default")) && str_eq(w->service_name, STR("kubernetes")) &&
	       w->service_port == DEFAULT_PORT && w->server->port;
}

static struct place own_place(const struct apiserver *s)
{
	const char *address = s->options.bind_address;
	bool any = !address || !*address || strcmp(address, "0.0.0.0") == 0 || strcmp(address, "::") == 0;
	return (struct place){ any ? "127.0.0.1" : address, s->port };
}

static int find_service(struct webhook *w, struct arena *a, struct place *ret, struct err *err)
{
	str key = arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(w->service_namespace), STR_ARG(w->service_name));
	const struct object *o = cache_get(kinds_find(&w->server->kinds, STR_NONE, STR("services")), key);
	if (!o)
		return err_set(err, ERR_UNAVAILABLE, "service \"" STR_FMT "\" not found", STR_ARG(w->service_name));
	str type = val_str(o->val, spec, type), ip = val_str(o->val, spec, clusterIP);
	ret->port = w->service_port;
	if (str_eq(type, STR("ExternalName"))) {
		ret->host = arena_str(a, val_str(o->val, spec, externalName)).p;
		return 0;
	}
	if (str_eq(ip, STR("None")))
		return err_set(err, ERR_UNAVAILABLE, "cannot route to service with ClusterIP \"None\"");
	if (!has_port(o->val, w->service_port))
		return err_set(err, ERR_UNAVAILABLE, "no service port %u found for service \"" STR_FMT "\"", w->service_port,
			       STR_ARG(w->service_name));
	ret->host = arena_str(a, ip).p;
	return 0;
}

static int find_place(struct webhook *w, struct arena *a, struct place *ret, struct err *err)
{
	*ret = (struct place){ 0 };
	if (!w->service_name.n)
		return 0;
	if (!is_ourselves(w))
		return find_service(w, a, ret, err);
	*ret = own_place(w->server);
	return 0;
}

/* ---- asking ---- */

/* Certificates and tokens are replaced from time to time. What cannot be read now leaves the old one in place. */
static void look_at_files(struct webhook *w)
{
	struct err err = ERR_INIT;
	int64_t now = clock_now_ns();
	if ((!w->tls_files && !w->token_file) || now - w->files_read_ns < FILES_AGAIN_S * NS_PER_S)
		return;
	w->files_read_ns = now;
	if (w->tls_files && tls_reload(w->tls, &err) < 0)
		log_warn("ignoring: certificates of a webhook cannot be read again", KV("url", w->url), KV("error", &err));
	if (w->token_file && read_token(w, &err) < 0)
		log_warn("ignoring: the token of a webhook cannot be read again", KV("url", w->url), KV("error", &err));
}

static str authorization(const struct webhook *w, struct arena *a)
{
	return w->token_file ? arena_str(a, buf_str(&w->token_header)) : w->authorization;
}

/* (suspends) */
static int call(struct webhook *w, struct arena *a, str url, const struct place *place, str body, struct webhook_reply *ret,
		struct err *err)
{
	const struct http1_head *head;
	struct http_header headers[4] = {
		{ STR("accept"), STR("application/json, */*") },
		{ STR("content-type"), STR("application/json") },
		{ STR("user-agent"), arena_printf(a, "kube-apiserver/%s", version_info.git_version) },
		{ STR("authorization"), authorization(w, a) },
	};
	struct http_request q = { .method = STR("POST"), .url = url, .dial = place->host, .dial_port = place->port,
				  .headers = headers, .n_headers = headers[3].value.n ? 4 : 3, .body = body };
	CLEANUP(http_call_freep) struct http_call *c = NULL;
	int r;
	if ((r = http_call_open(w->http, &q, &c, err)) < 0 || (r = http_call_head(c, &head, err)) < 0 ||
	    (r = http_call_read_all(c, ANSWER_MAX, &ret->body, err)) < 0)
		return r;
	ret->status = head->status;
	ret->content_type = arena_str(a, http_header_find(head->headers, head->n_headers, STR("content-type")));
	ret->body = arena_str(a, ret->body);
	return 0;
}

int webhook_post(struct webhook *w, struct arena *a, str query, str body, int64_t timeout_ms, struct webhook_reply *ret,
		 struct err *err)
{
	struct place place;
	str url = query.n ? arena_printf(a, STR_FMT "?" STR_FMT, STR_ARG(w->url), STR_ARG(query)) : w->url;
	*ret = (struct webhook_reply){ 0 };
	look_at_files(w);
	int r = find_place(w, a, &place, err);
	if (r < 0)
		return err_wrap(err, r, "Post \"" STR_FMT "\"", STR_ARG(str_head(url, 250)));
	DEADLINE_SCOPE(timeout_ms > 0 ? timeout_ms : TIMEOUT_MS);
	r = call(w, a, url, &place, body, ret, err);
	if (r == -ERR_TIMEOUT || r == -ERR_CANCELED)
		return err_set(err, (enum err_code)-r, "Post \"" STR_FMT "\": context %s", STR_ARG(str_head(url, 250)),
			       r == -ERR_TIMEOUT ? "deadline exceeded" : "canceled");
	return r;
}

/* ---- answers that are none ---- */

static enum err_code status_code(int status)
{
	switch (status) {
	case 400: return ERR_BAD_REQUEST;
	case 401: return ERR_UNAUTHORIZED;
	case 403: return ERR_FORBIDDEN;
	case 404: return ERR_NOT_FOUND;
	case 405: return ERR_METHOD_NOT_ALLOWED;
	case 406: return ERR_NOT_ACCEPTABLE;
	case 409: return ERR_ALREADY_EXISTS;
	case 415: return ERR_UNSUPPORTED_MEDIA;
	case 422: return ERR_INVALID;
	case 429: return ERR_TOO_MANY_REQUESTS;
	case 503: return ERR_UNAVAILABLE;
	case 504: return ERR_SERVER_TIMEOUT;
	default: return status >= 500 ? ERR_INTERNAL : ERR_INVALID;
	}
}

/* The message of a Status in the body; n == 0: it is none. */
static str status_message(struct arena *a, str body)
{
	struct val v;
	const struct json_decode_options opt = { .type = TYPE(meta_v1, Status) };
	if (json_decode(a, body, &opt, &v, NULL) < 0 || !str_eq(val_str(v, kind), STR("Status")) ||
	    !str_eq(val_str(v, status), STR("Failure")))
		return STR_NONE;
	return val_str(v, message);
}

int webhook_reply_check(const struct webhook_reply *reply, struct arena *a, struct err *err)
{
	if (reply->status >= 200 && reply->status <= 206)
		return 0;
	enum err_code code = status_code(reply->status);
	str message = status_message(a, reply->body);
	if (message.n)
		return err_set(err, code, STR_FMT, STR_ARG(message));
	const char *known = err_status_text(reply->status);
	if (known)
		return err_set(err, code, "%s", known);
	bool is_text = !reply->content_type.n || str_starts(reply->content_type, STR("text/"));
	str text = is_text ? str_trim(str_head(reply->body, TEXT_SHOWN)) : STR("unknown");
	if (reply->status == 406 && (!text.n || str_eq(text, STR("unknown"))))
		text = STR("the server was unable to respond with a content type that the client supports");
	if (reply->status == 403 || reply->status == 406 || reply->status == 415)
		return err_set(err, code, STR_FMT, STR_ARG(text));
	if (reply->status < 500)
		return err_set(err, code, "the server responded with the status code %d but did not return more information",
			       reply->status);
	CLEANUP(buf_done) struct buf quoted = BUF_INIT(4 * TEXT_SHOWN + 2);
	buf_add_quoted(&quoted, text);
	return err_set(err, code, "an error on the server (" STR_FMT ") has prevented the request from succeeding",
		       STR_ARG(buf_str(&quoted)));
}

/* ---- typed questions ---- */

static int decode_answer(struct arena *a, const struct type *type, const struct webhook_reply *reply, struct val *ret,
			 struct err *err)
{
	const struct type *got;
	struct object_kind kind;
	if (!reply->body.n)
		return err_set(err, ERR_INVALID, "0-length response with status code: %d and content type: " STR_FMT,
			       reply->status, STR_ARG(reply->content_type));
	int r = json_decode_expected(a, reply->body, type, NULL, ret, &got, &kind, err);
	if (r < 0)
		return r;
	if (got == type)
		return 0;
	str version = val_str(*ret, apiVersion), name = val_str(*ret, kind);
	return err_set(err, ERR_INVALID, "unexpected answer of kind \"" STR_FMT "\" in version \"" STR_FMT "\"", STR_ARG(name),
		       STR_ARG(version));
}

int webhook_ask(struct webhook *w, struct arena *a, const struct type *type, struct val question, int64_t timeout_ms,
		struct val *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf body = BUF_INIT(QUESTION_MAX);
	struct webhook_reply reply;
	char text[DURATION_TEXT_MAX];
	const struct json_encode_options opt = { .type = type };
	int r = json_encode(&body, question, &opt, err);
	if (r < 0)
		return r;
	int64_t ms = timeout_ms > 0 ? timeout_ms : TIMEOUT_MS;
	str query = arena_printf(a, "timeout=" STR_FMT, STR_ARG(duration_format(ms * NS_PER_MS, text)));
	if ((r = webhook_post(w, a, query, buf_str(&body), ms, &reply, err)) < 0 ||
	    (r = webhook_reply_check(&reply, a, err)) < 0)
		return r;
	return decode_answer(a, type, &reply, ret, err);
}
