/*
 * Paths belong to one of three sorts, which answer differently when something does not fit: those that are no path of ours at all
 * (404, nobody is asked for a name), those that stand for themselves (any method), and those with parameters, whose methods count.
 */
#include "kubelet/server.h"

#include <limits.h>

#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "kubelet/server_priv.h"

enum { BODY_MAX = 256 << 20 };

#define TEXT_TYPE "text/plain; charset=utf-8"

/* ---- answers ---- */

void call_answer(struct kubelet_call *c, int status, str content_type, str body)
{
	struct http_header header = { STR("content-type"), content_type };
	http_answer(c->x, status, &header, 1, body);
}

void call_error(struct kubelet_call *c, int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	str text = arena_vprintf(c->arena, fmt, ap);
	va_end(ap);
	call_answer(c, status, STR(TEXT_TYPE), text);
}

void call_http_error(struct kubelet_call *c, int status, str text)
{
	const struct http_header headers[] = { { STR("content-type"), STR(TEXT_TYPE) }, { STR("x-content-type-options"), STR("nosniff") } };

	http_answer(c->x, status, headers, ARRAY_LEN(headers), arena_join(c->arena, text, STR("\n")));
}

void call_runtime_error(struct kubelet_call *c, const struct err *err)
{
	const struct http_header headers[] = { { STR("content-type"), STR(TEXT_TYPE) }, { STR("retry-after"), STR("60") } };
	bool busy = err->code == ERR_TOO_MANY_REQUESTS;

	http_answer(c->x, busy ? 429 : err->code == ERR_NOT_FOUND ? 404 : 500, headers, busy ? 2 : 1, cri_error_text(c->arena, err));
}

void call_json(struct kubelet_call *c, struct val v, const struct type *type, unsigned indent)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(BODY_MAX);
	struct err err = ERR_INIT;

	if (json_encode(&b, v, &(struct json_encode_options){ .type = type, .indent = indent }, &err) < 0) {
		call_error(c, 500, "%s", err.msg);
		return;
	}
	if (type)
		buf_addc(&b, '\n');
	call_answer(c, 200, STR("application/json"), buf_str(&b));
}

/* ---- questions ---- */

str call_query(const struct kubelet_call *c, str name)
{
	for (size_t i = 0; i < c->query.n; i++)
		if (str_eq(c->query.params[i].key, name))
			return c->query.params[i].value;
	return STR_NONE;
}

static bool has_query(const struct kubelet_call *c, str name)
{
	for (size_t i = 0; i < c->query.n; i++)
		if (str_eq(c->query.params[i].key, name))
			return true;
	return false;
}

struct val call_pod(struct kubelet_call *c) { return c->o->pod(c->o->arg, c->arena, c->parts[1], c->parts[2]); }

struct val container_spec_of(struct val pod, str name)
{
	const struct val lists[] = { val_get(pod, spec, containers), val_get(pod, spec, initContainers),
				     val_get(pod, spec, ephemeralContainers) };

	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		VAL_EACH(one, lists[i])
			if (str_eq(val_str(*one, name), name))
				return *one;
	return VAL_EMPTY;
}

str call_quoted(struct kubelet_call *c, str text)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(64 << 10);

	buf_add_quoted(&b, text);
	return arena_str(c->arena, buf_str(&b));
}

/* ---- health ---- */

struct health_check {
	const char *name;
	bool ok, excluded;
};

static bool is_excluded(const struct kubelet_call *c, const char *name)
{
	for (size_t i = 0; i < c->query.n; i++)
		if (str_eq(c->query.params[i].key, STR("exclude")) && str_eq(c->query.params[i].value, str_of(name)))
			return true;
	return false;
}

static int health_all(struct kubelet_call *c, bool alive)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(4096);
	const struct http_header headers[] = { { STR("content-type"), STR(TEXT_TYPE) }, { STR("x-content-type-options"), STR("nosniff") } };
	const struct health_check checks[] = { { "ping", true, is_excluded(c, "ping") }, { "log", true, is_excluded(c, "log") },
					       { "syncloop", alive, is_excluded(c, "syncloop") } };
	bool failed = false;

	for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
		bool bad = !checks[i].excluded && !checks[i].ok;
		failed = failed || bad;
		buf_addf(&b, bad ? "[-]%s failed: reason withheld\n" : checks[i].excluded ? "[+]%s excluded: ok\n" : "[+]%s ok\n",
			 checks[i].name);
	}
	if (failed) {
		buf_add(&b, STR("healthz check failed"));
		call_http_error(c, 500, buf_str(&b));
		return 0;
	}
	buf_add(&b, STR("healthz check passed\n"));
	http_answer(c->x, 200, headers, ARRAY_LEN(headers), has_query(c, STR("verbose")) ? buf_str(&b) : STR("ok"));
	return 0;
}

static int call_healthz(struct kubelet_call *c)
{
	bool alive = !c->o->alive || c->o->alive(c->o->arg);

	if (c->n_parts == 1)
		return health_all(c, alive);
	if (str_eq(c->parts[1], STR("syncloop")) && !alive)
		call_http_error(c, 500, STR("internal server error: sync Loop took longer than expected"));
	else
		call_answer(c, 200, STR(TEXT_TYPE), STR("ok"));
	return 0;
}

/* ---- what others have made ---- */

static int call_pods(struct kubelet_call *c)
{
	struct val list = OBJECT(c->arena, F(kind, VAL_LIT("PodList")), F(apiVersion, VAL_LIT("v1")), F(metadata, VAL_EMPTY_OBJECT),
				 F(items, c->o->pods(c->o->arg, c->arena)));
	call_json(c, list, TYPE(core_v1, PodList), 0);
	return 0;
}

static int call_metrics(struct kubelet_call *c)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(BODY_MAX);

	c->o->metrics(c->o->arg, c->n_parts > 1 ? c->parts[1] : STR_NONE, &b);
	call_answer(c, 200, STR("text/plain; version=0.0.4; charset=utf-8"), buf_str(&b));
	return 0;
}

static int call_config(struct kubelet_call *c)
{
	struct val all = val_put(c->arena, VAL_EMPTY_OBJECT, atom_make(c->arena, STR("kubeletconfig")), c->o->config(c->o->arg, c->arena));

	call_json(c, all, NULL, 0);
	return 0;
}

/* The members that only_cpu_and_memory leaves. */
static struct val lean(struct arena *a, struct val stats, const atom *keep, size_t n)
{
	struct val_builder b = val_builder(a);

	VAL_EACH_MEMBER(m, stats)
		for (size_t i = 0; i < n; i++)
			if (m->key == keep[i])
				val_add_member(&b, m->key, m->val);
	return val_end_object(&b);
}

static struct val lean_containers(struct arena *a, struct val list)
{
	static const atom keep[] = { A_name, A_startTime, A_cpu, A_memory, A_swap };
	struct val_builder b = val_builder(a);

	VAL_EACH(one, list)
		val_add_item(&b, lean(a, *one, keep, ARRAY_LEN(keep)));
	return val_end_list(&b);
}

static struct val lean_summary(struct arena *a, struct val summary)
{
	const atom of_node[] = { A_nodeName, A_startTime, A_cpu, A_memory, A_swap, atom_find(STR("systemContainers")) };
	static const atom of_pod[] = { A_podRef, A_startTime, A_containers, A_cpu, A_memory, A_swap };
	struct val_builder pods = val_builder(a);

	VAL_EACH(p, val_get(summary, pods)) {
		struct val pod = lean(a, *p, of_pod, ARRAY_LEN(of_pod));
		val_add_item(&pods, val_with(a, pod, lean_containers(a, val_get(pod, containers)), containers));
	}
	return OBJECT(a, F(node, lean(a, val_get(summary, node), of_node, ARRAY_LEN(of_node))), F(pods, val_end_list(&pods)));
}

static int call_summary(struct kubelet_call *c)
{
	struct val summary = c->o->summary(c->o->arg, c->arena);

	if (str_eq(call_query(c, STR("only_cpu_and_memory")), STR("true")))
		summary = lean_summary(c->arena, summary);
	call_json(c, summary, NULL, 1);
	return 0;
}

/* ---- which path leads where ---- */

enum { GET = 1, POST = 2, ANY = 0 };

struct route {
	const char *path;             /* its first parts */
	unsigned least, most;         /* parts that it has in all */
	unsigned methods;             /* ANY: it stands for itself */
	int (*handle)(struct kubelet_call *c);
};

static const struct route routes[] = {
	{ "healthz", 1, 1, ANY, call_healthz },
	{ "healthz/ping", 2, 2, ANY, call_healthz },
	{ "healthz/log", 2, 2, ANY, call_healthz },
	{ "healthz/syncloop", 2, 2, ANY, call_healthz },
	{ "configz", 1, 1, ANY, call_config },
	{ "metrics", 1, 1, ANY, call_metrics },
	{ "metrics/cadvisor", 2, 2, ANY, call_metrics },
	{ "metrics/resource", 2, 2, ANY, call_metrics },
	{ "metrics/probes", 2, 2, ANY, call_metrics },
	{ "pods", 1, 1, GET, call_pods },
	{ "runningpods", 1, 1, GET, call_running_pods },
	{ "stats/summary", 2, 2, GET, call_summary },
	{ "containerLogs", 4, 4, GET, call_logs },
	{ "exec", 4, 5, GET | POST, call_exec },
	{ "attach", 4, 5, GET | POST, call_attach },
	{ "portForward", 3, 4, GET | POST, call_port_forward },
	{ "run", 4, 5, POST, call_run },
	{ "checkpoint", 4, 4, POST, call_checkpoint },
	{ "logs", 1, UINT_MAX, GET, call_files },
};

static bool route_begins(const struct route *r, const struct kubelet_call *c)
{
	str path = str_of(r->path), part;

	for (size_t i = 0; path.n; i++) {
		str_cut(path, '/', &part, &path);
		if (i >= c->n_parts || !str_eq(part, c->parts[i]))
			return false;
	}
	return true;
}

/* Those with parameters own all that is below their first part. */
static bool is_ours(const struct route *r, const struct kubelet_call *c)
{
	str first, rest;

	if (r->methods == ANY)
		return route_begins(r, c) && c->n_parts == r->most && !str_ends(c->path, STR("/"));
	str_cut(str_of(r->path), '/', &first, &rest);
	return c->n_parts && str_eq(first, c->parts[0]);
}

static unsigned method_of(str method)
{
	return str_eq(method, STR("GET")) ? GET : str_eq(method, STR("POST")) ? POST : 4;
}

static int not_allowed(struct kubelet_call *c, const struct route *r)
{
	const struct http_header headers[] = {
		{ STR("content-type"), STR(TEXT_TYPE) },
		{ STR("allow"), r->methods == GET ? STR("GET") : r->methods == POST ? STR("POST") : STR("GET, POST") },
	};
	http_answer(c->x, 405, headers, ARRAY_LEN(headers), STR("405: Method Not Allowed"));
	return 0;
}

/* What enableDebuggingHandlers: false takes away. */
static bool is_debugging(const struct route *r)
{
	return r->handle == call_running_pods || r->handle == call_logs || r->handle == call_exec || r->handle == call_attach ||
	       r->handle == call_port_forward || r->handle == call_run || r->handle == call_files;
}

static int dispatch(struct kubelet_call *c, const struct route *r)
{
	if (!call_is_allowed(c))
		return 0;
	if (c->o->no_debugging && is_debugging(r)) {
		call_http_error(c, 405, STR("Debug endpoints are disabled."));
		return 0;
	}
	/* Of these it leaves nothing, not even that answer. */
	if (c->o->no_debugging && (r->handle == call_checkpoint || r->handle == call_config)) {
		call_http_error(c, 404, STR("404 page not found"));
		return 0;
	}
	if (!route_begins(r, c) || c->n_parts < r->least || c->n_parts > r->most) {
		call_answer(c, 404, STR(TEXT_TYPE), STR("404: Page Not Found"));
		return 0;
	}
	if (r->methods != ANY && !(r->methods & method_of(c->x->method)))
		return not_allowed(c, r);
	return r->handle(c);
}

/* Empty parts do not count: //pods/ is /pods. More parts than any path has are counted, not kept. */
static void split(struct kubelet_call *c)
{
	str rest = c->path, part;

	while (rest.n) {
		str_cut(rest, '/', &part, &rest);
		if (!part.n)
			continue;
		if (c->n_parts < CALL_PARTS_MAX)
			c->parts[c->n_parts] = part;
		c->n_parts++;
	}
}

int kubelet_server_handle(struct http_exchange *x, void *arg)
{
	struct kubelet_call c = { .x = x, .o = arg, .arena = x->arena };

	if (url_path_unescape(c.arena, x->path, &c.path, NULL) < 0) {
		call_http_error(&c, 400, STR("400 Bad Request"));
		return 0;
	}
	(void)url_query_parse(c.arena, x->query, &c.query, NULL); /* what cannot be decoded counts as not said, as in Go */
	split(&c);
	for (size_t i = 0; i < ARRAY_LEN(routes); i++)
		if (is_ours(&routes[i], &c))
			return dispatch(&c, &routes[i]);
	call_http_error(&c, 404, STR("404 page not found"));
	return 0;
}
