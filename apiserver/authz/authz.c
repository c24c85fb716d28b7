/*
 * STAGE_AUTHORIZE: may they. The privileged group may everything; then those of --authorization-mode (or of the
 * configuration file) are asked in their order. Whoever allows or denies decides; reasons of those without an opinion
 * are told together.
 */
#include "apiserver/authz/authz_priv.h"

#include <stdlib.h>

#include "apiserver/authz/rbac.h"
#include "apiserver/config_file.h"
#include "apiserver/metrics_priv.h"
#include "apiserver/pipeline.h"
#include "apiserver/user.h"
#include "base/fiber.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"

enum { BOOTSTRAP_RETRY_MS = 1000 };

enum result { RESULT_ALLOWED, RESULT_DENIED, RESULT_NO_OPINION, RESULT_ERROR, RESULTS };

struct authz {
	struct apiserver *server;
	struct rbac *rbac;
	struct authz_chain *chain;
	struct config_file file;      /* --authorization-config */
	uint64_t results[RESULTS];    /* of requests */
	unsigned types;               /* of authorizers that were in it at the start, which stay */
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
	*ret = (struct authz_way){ .type = "RBAC", .name = "rbac", .self = authz_rbac(s), .decide = rbac_way_decide, .rules = rbac_way_rules };
	return 0;
}

/* ---- the chain ---- */

static struct authz_chain *chain_ref(struct authz_chain *c)
{
	c->refs++;
	return c;
}

static void chain_unref(struct authz_chain *c)
{
	if (!c || --c->refs)
		return;
	for (size_t i = 0; i < c->n; i++)
		if (c->ways[i].free)
			c->ways[i].free(c->ways[i].self);
	arena_done(&c->arena);
	free(c);
}

static void chain_unrefp(struct authz_chain **c) { chain_unref(*c); }

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

static int ways_of_modes(struct apiserver *s, struct authz_chain *c, struct err *err)
{
	const struct authz_options *o = &s->options.authz;
	if (!o->modes || !o->modes[0])
		return err_set(err, ERR_INVALID, "at least one authorization-mode must be passed");
	for (size_t i = 0; o->modes[i]; i++) {
		if (has_mode(o->modes, i, o->modes[i]))
			return fail_repeated(o->modes, err);
		int r = way_of_mode(s, o->modes[i], &c->ways[c->n], err); /* there are no more modes than there is room */
		if (r < 0)
			return r;
		c->n++;
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

/* From the configuration file as it is now, or from the flags. */
static int chain_new(struct authz *z, struct authz_chain **ret, struct err *err)
{
	struct authz_chain *c = mem_zalloc(sizeof *c);
	unsigned types = z->types;
	c->refs = 1;
	int r = z->file.path ? authz_config_read(z->server, buf_str(&z->file.text), c, &types, err) :
			       ways_of_modes(z->server, c, err);
	if (r < 0) {
		chain_unref(c);
		return r;
	}
	if (!z->chain)
		z->types = types;
	*ret = c;
	return 0;
}

int authz_new(struct apiserver *s, struct authz **ret, struct err *err)
{
	struct authz *z = mem_zalloc(sizeof *z);
	z->server = s;
	z->rbac = rbac_new(s);
	*ret = z; /* those who decide find it there */
	config_file_init(&z->file, s->options.authz.config_file);
	int r = z->file.path ? config_file_look(&z->file, err) : 0;
	if (r < 0)
		err_wrap(err, r, "failed to load AuthorizationConfiguration from file");
	else
		r = chain_new(z, &z->chain, err);
	if (r < 0)
		authz_free(TAKE(*ret));
	return r;
}

void authz_free(struct authz *z)
{
	if (!z)
		return;
	chain_unref(z->chain);
	config_file_done(&z->file);
	rbac_free(z->rbac);
	free(z);
}

/* ---- what runs beside ---- */

/* The old chain goes with the last request that asks it. */
static void look_at_file(struct authz *z)
{
	struct authz_chain *next = NULL;
	struct err why = ERR_INIT;
	int r = config_file_look(&z->file, &why);
	if (r > 0 && (r = chain_new(z, &next, &why)) == 0) {
		struct authz_chain *old = z->chain;
		z->chain = next;
		chain_unref(old);
		log_info("reloaded authz config", KV("file", z->file.path));
	}
	if (r < 0)
		log_error("reloading authorization config; the old one stays", KV("file", z->file.path), KV("error", &why));
}

static int run_file(void *arg)
{
	while (fiber_sleep_ms(CONFIG_LOOK_AGAIN_MS, NULL) == 0)
		look_at_file(arg);
	return 0;
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
	if (r == 0 && z->file.path)
		r = fiber_group_spawn(&group, run_file, z, err, "authorization config");
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
	CLEANUP(chain_unrefp) struct authz_chain *c = chain_ref(s->authz->chain);
	str reasons = STR_NONE, errors = STR_NONE;
	unsigned n_errors = 0;
	int failed = 0;
	*ret_reason = STR_NONE;
	if (user_is_master(what->user))
		return AUTHZ_ALLOW;
	for (size_t i = 0; i < c->n; i++) {
		struct err why = ERR_INIT;
		str reason = STR_NONE;
		int r = c->ways[i].decide(c->ways[i].self, a, what, &reason, &why);
		c->ways[i].allowed += r == AUTHZ_ALLOW;
		c->ways[i].denied += r == AUTHZ_DENY;
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
	CLEANUP(chain_unrefp) struct authz_chain *c = chain_ref(s->authz->chain);
	for (size_t i = 0; i < c->n; i++) {
		int r = c->ways[i].rules(c->ways[i].self, a, u, namespace, rules, err);
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
	q->server->authz->results[decision == AUTHZ_ALLOW ? RESULT_ALLOWED : why.code ? RESULT_ERROR :
				  decision == AUTHZ_DENY ? RESULT_DENIED : RESULT_NO_OPINION]++;
	if (decision != AUTHZ_ALLOW && why.code) {
		audit_annotate(q, reason_key, STR("internal error"));
		return answer_undecided(q, &why);
	}
	audit_annotate(q, decision_key, decision == AUTHZ_ALLOW ? STR("allow") : STR("forbid"));
	audit_annotate(q, reason_key, reason);
	return decision == AUTHZ_ALLOW ? STAGE_NEXT : authz_forbid(q, &what, reason);
}

/* ---- metrics ---- */

void authz_metrics(const struct authz *z, struct buf *b)
{
	static const char *const texts[RESULTS] = { "allowed", "denied", "no-opinion", "error" };
	struct metrics_family f = metrics_family(b, "apiserver_authorization_decisions_total", "counter", "Decisions, by who made them.");
	for (const struct authz_way *w = z->chain->ways; w < z->chain->ways + z->chain->n; w++) {
		const uint64_t counts[] = { w->allowed, w->denied };
		for (size_t i = 0; i < ARRAY_LEN(counts); i++)
			if (counts[i])
				buf_addf(b, "apiserver_authorization_decisions_total{decision=\"%s\",name=\"%s\",type=\"%s\"} %llu\n", texts[i],
					 w->name, w->type, (unsigned long long)counts[i]);
	}
	metrics_family_end(&f);
	f = metrics_family(b, "authorization_attempts_total", "counter", "Requests by what was decided about them.");
	for (size_t i = 0; i < RESULTS; i++)
		if (z->results[i])
			buf_addf(b, "authorization_attempts_total{result=\"%s\"} %llu\n", texts[i], (unsigned long long)z->results[i]);
	metrics_family_end(&f);
}
