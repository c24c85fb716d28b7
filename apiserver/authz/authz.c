/*
 * STAGE_AUTHORIZE: may they. The privileged group may everything; then those of --authorization-mode (or of the
 * configuration file) are asked in their order. Whoever allows or denies decides; reasons of those without an opinion
 * are told together.
 */
#include "apiserver/authz/authz_priv.h"

#include <stdlib.h>

#include "apiserver/authz/rbac.h"
#include "apiserver/pipeline.h"
#include "apiserver/user.h"
#include "base/fiber.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"

enum { WAYS_MAX = 64, BOOTSTRAP_RETRY_MS = 1000 };

struct authz {
	struct apiserver *server;
	struct arena memory;          /* of the configuration */
	struct rbac *rbac;
	struct authz_way ways[WAYS_MAX];
	size_t n_ways;
};

struct rbac *authz_rbac(struct apiserver *s) { return s->authz->rbac; }

/* ---- roles ---- */

static int rbac_way_decide(void *self, struct arena *a, const struct authz_attributes *what, str *ret_reason, struct err *err)
{
	(void)err;
	return (int)rbac_decide(self, a, what, ret_reason);
}

static struct val own_list(struct arena *a, struct val list) { return val_len(list) ? val_copy(a, list) : VAL_EMPTY; }

static void add_rule(struct arena *a, struct val rule, struct authz_rules *rules)
{
	struct val verbs = own_list(a, val_get(rule, verbs));
	if (val_len(val_get(rule, resources)))
		val_add_item(&rules->resources,
			     OBJECT(a, F(verbs, verbs), F(apiGroups, own_list(a, val_get(rule, apiGroups))),
				    F(resources, own_list(a, val_get(rule, resources))),
				    F(resourceNames, own_list(a, val_get(rule, resourceNames)))));
	if (val_len(val_get(rule, nonResourceURLs)))
		val_add_item(&rules->paths, OBJECT(a, F(verbs, verbs),
						   F(nonResourceURLs, own_list(a, val_get(rule, nonResourceURLs)))));
}

static int rbac_way_rules(void *self, struct arena *a, const struct user *u, str namespace, struct authz_rules *rules,
			  struct err *err)
{
	(void)err;
	size_t n;
	struct rbac_held *held = rbac_held(self, a, u, namespace, &n);
	for (size_t i = 0; i < n; i++)
		VAL_EACH(rule, held[i].rules)
			add_rule(a, *rule, rules);
	str errors = rbac_held_errors(a, held, n, false);
	if (errors.n)
		rules->error = rules->error.n ? arena_printf(a, STR_FMT ", " STR_FMT, STR_ARG(rules->error), STR_ARG(errors)) :
						errors;
	return 0;
}

int authz_rbac_way(struct apiserver *s, struct authz_way *ret, struct err *err)
{
	(void)err;
	*ret = (struct authz_way){ .name = "rbac", .self = authz_rbac(s), .decide = rbac_way_decide, .rules = rbac_way_rules };
	return 0;
}

/* ---- the chain ---- */

static int webhook_way(struct apiserver *s, struct authz_way *ret, struct err *err)
{
	const struct authz_options *o = &s->options.authz;
	if (!o->webhook_config_file)
		return err_set(err, ERR_INVALID, "authorization-mode Webhook's authorization config file not passed");
	struct authz_webhook_options webhook = {
		.name = "default",
		.kubeconfig_file = o->webhook_config_file,
		.version = o->webhook_version,
		.authorized_ttl_ns = o->webhook_authorized_ttl_ns,
		.unauthorized_ttl_ns = o->webhook_unauthorized_ttl_ns,
		.timeout_ns = 30 * INT64_C(1000000000),
	};
	return authz_webhook_way(s, &webhook, ret, err);
}

static int way_of_mode(struct apiserver *s, const char *mode, struct authz_way *ret, struct err *err)
{
	str m = str_of(mode);
	bool allow = str_eq(m, STR("AlwaysAllow"));
	if (str_eq(m, STR("RBAC")))
		return authz_rbac_way(s, ret, err);
	if (str_eq(m, STR("Node")))
		return authz_node_way(s, ret, err);
	if (str_eq(m, STR("Webhook")))
		return webhook_way(s, ret, err);
	if (str_eq(m, STR("ABAC")))
		return err_set(err, ERR_INVALID, "authorization-mode ABAC is not supported: use RBAC");
	if (!allow && !str_eq(m, STR("AlwaysDeny")))
		return err_set(err, ERR_INVALID, "authorization-mode \"%s\" is not a valid mode", mode);
	*ret = authz_always_way(allow);
	return 0;
}

static bool has_mode(const char *const *modes, size_t n, const char *mode)
{
	for (size_t i = 0; i < n && modes[i]; i++)
		if (strcmp(modes[i], mode) == 0)
			return true;
	return false;
}

static int fail_repeated(const char *const *modes, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(4096);
	for (size_t i = 0; modes[i]; i++) {
		if (i)
			buf_addc(&b, ' ');
		buf_add_quoted(&b, str_of(modes[i]));
	}
	return err_set(err, ERR_INVALID, "authorization-mode [" STR_FMT "] has mode specified more than once",
		       STR_ARG(buf_str(&b)));
}

static int ways_of_modes(struct apiserver *s, struct authz *z, struct err *err)
{
	const struct authz_options *o = &s->options.authz;
	if (!o->modes || !o->modes[0])
		return err_set(err, ERR_INVALID, "at least one authorization-mode must be passed");
	for (size_t i = 0; o->modes[i]; i++) {
		if (has_mode(o->modes, i, o->modes[i]))
			return fail_repeated(o->modes, err);
		if (z->n_ways == WAYS_MAX)
			return err_set(err, ERR_INVALID, "too many authorization modes");
		int r = way_of_mode(s, o->modes[i], &z->ways[z->n_ways], err);
		if (r < 0)
			return r;
		z->n_ways++;
	}
	if (o->policy_file)
		return err_set(err, ERR_INVALID, "cannot specify --authorization-policy-file without mode ABAC");
	if (o->webhook_config_file && !has_mode(o->modes, SIZE_MAX, "Webhook"))
		return err_set(err, ERR_INVALID, "cannot specify --authorization-webhook-config-file without mode Webhook");
	if (s->options.authn.anonymous_auth && has_mode(o->modes, SIZE_MAX, "AlwaysAllow")) {
		log_warn("strangers are not let in where everybody may everything: --anonymous-auth is off");
		s->options.authn.anonymous_auth = false;
	}
	return 0;
}

int authz_new(struct apiserver *s, struct authz **ret, struct err *err)
{
	struct authz *z = mem_zalloc(sizeof *z);
	z->server = s;
	z->rbac = rbac_new(s);
	*ret = z; /* those who decide find it there */
	int r = s->options.authz.config_file ? authz_config_read(s, &z->memory, z->ways, WAYS_MAX, &z->n_ways, err) :
					      ways_of_modes(s, z, err);
	if (r < 0)
		authz_free(TAKE(*ret));
	return r;
}

void authz_free(struct authz *z)
{
	if (!z)
		return;
	for (size_t i = 0; i < z->n_ways; i++)
		if (z->ways[i].free)
			z->ways[i].free(z->ways[i].self);
	rbac_free(z->rbac);
	arena_done(&z->memory);
	free(z);
}

/* ---- what runs beside ---- */

static int run_way(void *arg)
{
	const struct authz_way *way = arg;
	return way->run(way->self, NULL);
}

/* A store that could not be written at the start may be later. */
static int run_roles(void *arg)
{
	struct authz *z = arg;
	while (!z->server->roles_made && fiber_sleep_ms(BOOTSTRAP_RETRY_MS, NULL) == 0)
		(void)rbac_bootstrap(z->server, NULL);
	return rbac_aggregate_run(z->server, NULL);
}

int authz_run(struct apiserver *s, struct err *err)
{
	CLEANUP(fiber_group_done) struct fiber_group group;
	struct authz *z = s->authz;
	fiber_group_init(&group);
	int r = fiber_group_spawn(&group, run_roles, z, err, "roles");
	for (size_t i = 0; i < z->n_ways && r == 0; i++)
		if (z->ways[i].run)
			r = fiber_group_spawn(&group, run_way, &z->ways[i], err, "authorizer %s", z->ways[i].name);
	return r < 0 ? r : fiber_group_wait(&group, err);
}

/* ---- asking ---- */

/* Lists by name are about that name, as Kubernetes takes it from the selector. */
static void take_selectors(const struct request *q, struct authz_attributes *what)
{
	struct field_selector selector;
	if (q->verb == REQUEST_WATCH && !request_query_bool(q, STR("watch")))
		return; /* the old paths with /watch/ in them do not take selectors reliably */
	what->field_selector = request_query(q, STR("fieldSelector"));
	what->label_selector = request_query(q, STR("labelSelector"));
	bool reads = q->verb == REQUEST_LIST || q->verb == REQUEST_WATCH;
	if (!reads || q->name.n || !what->field_selector.n ||
	    field_selector_parse(q->arena, what->field_selector, &selector, NULL) < 0)
		return;
	str name;
	if (field_selector_requires(&selector, STR("metadata.name"), &name) && !str_eq(name, STR(".")) &&
	    !str_eq(name, STR("..")) && str_chr(name, '/') < 0 && str_chr(name, '%') < 0)
		what->name = name;
}

static str lower(struct arena *a, str s)
{
	char *out = arena_alloc(a, s.n + 1, 1);
	for (size_t i = 0; i < s.n; i++)
		out[i] = s.p[i] >= 'A' && s.p[i] <= 'Z' ? (char)(s.p[i] | 0x20) : s.p[i];
	return str_span(out, s.n);
}

struct authz_attributes authz_of_request(const struct request *q)
{
	struct authz_attributes what = { .user = &q->user, .verb = q->verb_text, .path = q->path };
	if (!q->is_resource) {
		what.verb = str_eq(q->verb_text, STR("GET")) ? STR("get") : lower(q->arena, q->verb_text);
		return what;
	}
	what.is_resource = true;
	what.group = q->group, what.version = q->version, what.resource = q->resource, what.subresource = q->subresource;
	what.namespace = q->namespace, what.name = q->name;
	if (q->n_query && (q->verb == REQUEST_LIST || q->verb == REQUEST_WATCH || q->verb == REQUEST_DELETE_COLLECTION))
		take_selectors(q, &what);
	return what;
}

static str joined(struct arena *a, str x, const char *between, str y)
{
	return !x.n ? y : !y.n ? x : arena_printf(a, STR_FMT "%s" STR_FMT, STR_ARG(x), between, STR_ARG(y));
}

int authz_decide(struct apiserver *s, struct arena *a, const struct authz_attributes *what, str *ret_reason, struct err *err)
{
	const struct authz *z = s->authz;
	str reasons = STR_NONE, errors = STR_NONE;
	unsigned n_errors = 0;
	int failed = 0;
	*ret_reason = STR_NONE;
	if (user_is_master(what->user))
		return AUTHZ_ALLOW;
	for (size_t i = 0; i < z->n_ways; i++) {
		struct err why = ERR_INIT;
		str reason = STR_NONE;
		int r = z->ways[i].decide(z->ways[i].self, a, what, &reason, &why);
		if (r == AUTHZ_ALLOW || r == AUTHZ_DENY) {
			*ret_reason = reason;
			if (r == AUTHZ_DENY && err && why.code)
				*err = why;
			return r;
		}
		reasons = joined(a, reasons, "\n", reason);
		if (r < 0) {
			failed = failed ? failed : r;
			errors = joined(a, errors, ", ", arena_str(a, err_str(&why)));
			n_errors++;
		}
	}
	*ret_reason = reasons;
	if (failed)
		return err_set(err, (enum err_code)-failed, n_errors > 1 ? "[" STR_FMT "]" : STR_FMT, STR_ARG(errors));
	return AUTHZ_NO_OPINION;
}

int authz_list_rules(struct apiserver *s, struct arena *a, const struct user *u, str namespace, struct authz_rules *rules,
		     struct err *err)
{
	const struct authz *z = s->authz;
	for (size_t i = 0; i < z->n_ways; i++) {
		int r = z->ways[i].rules(z->ways[i].self, a, u, namespace, rules, err);
		if (r < 0)
			return r;
	}
	return 0;
}

bool authz_allows(struct request *q, const struct authz_attributes *what)
{
	str reason;
	return authz_decide(q->server, q->arena, what, &reason, NULL) == AUTHZ_ALLOW;
}

/* ---- saying no ---- */

/* Nothing that a browser could take for HTML. */
static str sanitized(struct arena *a, str s)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(16 << 20);
	for (size_t i = 0; i < s.n; i++) {
		switch (s.p[i]) {
		case '&': buf_add(&b, STR("&amp;")); break;
		case '<': buf_add(&b, STR("&lt;")); break;
		case '>': buf_add(&b, STR("&gt;")); break;
		default: buf_addc(&b, s.p[i]);
		}
	}
	return arena_str(a, buf_str(&b));
}

static str forbidden_message(struct arena *a, const struct authz_attributes *what)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(16 << 20);
	buf_add(&b, STR("User "));
	buf_add_quoted(&b, what->user->name);
	buf_addf(&b, " cannot " STR_FMT, STR_ARG(what->verb));
	if (!what->is_resource) {
		buf_add(&b, STR(" path "));
		buf_add_quoted(&b, what->path);
		return sanitized(a, buf_str(&b));
	}
	buf_add(&b, STR(" resource "));
	buf_add_quoted(&b, joined(a, what->resource, "/", what->subresource));
	buf_add(&b, STR(" in API group "));
	buf_add_quoted(&b, what->group);
	buf_add(&b, what->namespace.n ? STR(" in the namespace ") : STR(" at the cluster scope"));
	if (what->namespace.n)
		buf_add_quoted(&b, what->namespace);
	return sanitized(a, buf_str(&b));
}

int authz_forbid(struct request *q, const struct authz_attributes *what, str reason)
{
	str message = joined(q->arena, forbidden_message(q->arena, what), ": ", reason);
	answer_header(q, STR("x-content-type-options"), STR("nosniff"));
	if (!what->resource.n)
		return request_fail(q, ERR_FORBIDDEN, VAL_EMPTY_OBJECT, "forbidden: " STR_FMT, STR_ARG(message));
	return fail_forbidden(q, what->group, what->resource, what->name, STR_FMT, STR_ARG(message));
}

/* Nobody could tell: 500 as plain text. */
static int answer_undecided(struct request *q, const struct err *why)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	str uri = q->http->query.n ? arena_printf(q->arena, STR_FMT "?" STR_FMT, STR_ARG(q->http->path), STR_ARG(q->http->query)) :
				     q->http->path;
	buf_add(&b, STR("Internal Server Error: "));
	buf_add_quoted(&b, uri);
	buf_addf(&b, ": " STR_FMT "\n", STR_ARG(err_str(why)));
	log_error("nobody could decide whether a request is allowed", KV("path", q->path), KV("error", why));
	answer_header(q, STR("x-content-type-options"), STR("nosniff"));
	answer_bytes(q, 500, STR("text/plain; charset=utf-8"), sanitized(q->arena, buf_str(&b)));
	return STAGE_ANSWER;
}

int stage_authorize(struct request *q, struct err *err)
{
	static const str decision_key = STR_INIT("authorization.k8s.io/decision"),
			 reason_key = STR_INIT("authorization.k8s.io/reason");
	struct authz_attributes what = authz_of_request(q);
	str reason;
	(void)err;
	struct err why = ERR_INIT;
	int decision = authz_decide(q->server, q->arena, &what, &reason, &why);
	if (decision != AUTHZ_ALLOW && why.code) {
		audit_annotate(q, reason_key, STR("internal error"));
		return answer_undecided(q, &why);
	}
	audit_annotate(q, decision_key, decision == AUTHZ_ALLOW ? STR("allow") : STR("forbid"));
	audit_annotate(q, reason_key, reason);
	return decision == AUTHZ_ALLOW ? STAGE_NEXT : authz_forbid(q, &what, reason);
}
