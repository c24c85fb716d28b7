/*
 * API priority and fairness: the levels and schemas that every cluster has, as Kubernetes' defaults, and the condition that
 * says whether a schema's level exists. The mandatory ones are put back whatever somebody made of them; the suggested ones
 * unless somebody said in an annotation that they are their own.
 */
#include "apiserver/bootstrap_priv.h"
#include "apiserver/follow.h"
#include "base/log.h"
#include "codec/atoms.h"

#define GROUP "flowcontrol.apiserver.k8s.io"
#define AUTOUPDATE "apf.kubernetes.io/autoupdate-spec"
#define PRODUCER "api-priority-and-fairness-config-producer-v1"
#define CONSUMER "api-priority-and-fairness-config-consumer-v1"

struct level {
	const char *name;
	bool mandatory;
	int shares, lendable;
	int queues, hand_size;        /* 0: requests that have no seat are rejected */
};

static const struct level levels[] = {
	{ "exempt", true, 0, 0, 0, 0 },
	{ "catch-all", true, 5, 0, 0, 0 },
	{ "system", false, 30, 33, 64, 6 },
	{ "node-high", false, 40, 25, 64, 6 },
	{ "leader-election", false, 10, 0, 16, 4 },
	{ "workload-high", false, 40, 50, 128, 6 },
	{ "workload-low", false, 100, 90, 128, 6 },
	{ "global-default", false, 20, 50, 128, 6 },
};

enum { QUEUE_LENGTH = 50, NAMES_MAX = 3 };

/* Resources, in all namespaces. */
struct rule {
	const char *verbs[NAMES_MAX];
	const char *group;
	const char *resources[NAMES_MAX];
	bool cluster;
};

struct schema {
	const char *name, *level;
	bool mandatory;
	int precedence;
	const char *by;               /* what tells flows apart: "ByUser", "ByNamespace", or NULL */
	const char *groups[NAMES_MAX], *users[NAMES_MAX];
	bool system_accounts;         /* all service accounts of kube-system */
	bool everything;              /* all that there is; else: */
	struct rule rules[2];
	const char *urls[NAMES_MAX];  /* "get" of these */
};

#define ANYBODY { "system:unauthenticated", "system:authenticated" }

static const struct schema schemas[] = {
	{ "exempt", "exempt", true, 1, NULL, .groups = { "system:masters" }, .everything = true },
	{ "catch-all", "catch-all", true, 10000, "ByUser", .groups = ANYBODY, .everything = true },
	{ "probes", "exempt", false, 2, NULL, .groups = ANYBODY, .urls = { "/healthz", "/readyz", "/livez" } },
	{ "system-leader-election", "leader-election", false, 100, "ByUser",
	  .users = { "system:kube-controller-manager", "system:kube-scheduler" }, .system_accounts = true,
	  .rules = { { { "get", "create", "update" }, "coordination.k8s.io", { "leases" }, false } } },
	{ "system-node-high", "node-high", false, 400, "ByUser", .groups = { "system:nodes" },
	  .rules = { { { "*" }, "", { "nodes", "nodes/status" }, true },
		     { { "*" }, "coordination.k8s.io", { "leases" }, false } } },
	{ "system-nodes", "system", false, 500, "ByUser", .groups = { "system:nodes" }, .everything = true },
	{ "kube-controller-manager", "workload-high", false, 800, "ByNamespace", .users = { "system:kube-controller-manager" },
	  .everything = true },
	{ "kube-scheduler", "workload-high", false, 800, "ByNamespace", .users = { "system:kube-scheduler" },
	  .everything = true },
	{ "kube-system-service-accounts", "workload-high", false, 900, "ByNamespace", .system_accounts = true,
	  .everything = true },
	{ "service-accounts", "workload-low", false, 9000, "ByUser", .groups = { "system:serviceaccounts" },
	  .everything = true },
	{ "global-default", "global-default", false, 9900, "ByUser", .groups = ANYBODY, .everything = true },
};

size_t flow_n_levels(void) { return ARRAY_LEN(levels); }
size_t flow_n_schemas(void) { return ARRAY_LEN(schemas); }

#define WRITER(s, resource_, manager_, sub)                                                                      \
	(&(const struct inprocess){ .server = (s), .group = STR(GROUP), .resource = STR(resource_), .subresource = STR(sub), \
				    .manager = STR(manager_) })

/* ---- trees ---- */

static struct val text(const char *s) { return val_of_str(str_of(s)); }

static struct val texts(struct arena *a, const char *const *s)
{
	struct val_builder b = val_builder(a);
	for (size_t i = 0; i < NAMES_MAX && s[i]; i++)
		val_add_item(&b, text(s[i]));
	return val_end_list(&b);
}

static struct val level_spec(struct arena *a, const struct level *l)
{
	struct val shares = val_of_int(l->shares), lendable = val_of_int(l->lendable);
	if (!l->shares)
		return OBJECT(a, F(type, VAL_LIT("Exempt")),
			      F(exempt, OBJECT(a, F(nominalConcurrencyShares, shares), F(lendablePercent, lendable))));
	struct val response = OBJECT(a, F(type, VAL_LIT("Reject")));
	if (l->queues)
		response = OBJECT(a, F(type, VAL_LIT("Queue")),
				  F(queuing, OBJECT(a, F(queues, val_of_int(l->queues)), F(handSize, val_of_int(l->hand_size)),
						    F(queueLengthLimit, val_of_int(QUEUE_LENGTH)))));
	return OBJECT(a, F(type, VAL_LIT("Limited")),
		      F(limited, OBJECT(a, F(nominalConcurrencyShares, shares), F(limitResponse, response),
					F(lendablePercent, lendable))));
}

static struct val subjects(struct arena *a, const struct schema *f)
{
	struct val_builder b = val_builder(a);
	for (size_t i = 0; i < NAMES_MAX && f->groups[i]; i++)
		val_add_item(&b, OBJECT(a, F(kind, VAL_LIT("Group")), F(group, OBJECT(a, F(name, text(f->groups[i]))))));
	for (size_t i = 0; i < NAMES_MAX && f->users[i]; i++)
		val_add_item(&b, OBJECT(a, F(kind, VAL_LIT("User")), F(user, OBJECT(a, F(name, text(f->users[i]))))));
	if (f->system_accounts)
		val_add_item(&b, OBJECT(a, F(kind, VAL_LIT("ServiceAccount")),
					F(serviceAccount, OBJECT(a, F(namespace, VAL_LIT("kube-system")),
								 F(name, VAL_LIT("*"))))));
	return val_end_list(&b);
}

static struct val resource_rule(struct arena *a, const struct rule *r)
{
	return OBJECT(a, F(verbs, texts(a, r->verbs)), F(apiGroups, LIST(a, text(r->group))),
		      F(resources, texts(a, r->resources)),
		      F(clusterScope, val_of_bool(r->cluster)), F(namespaces, LIST(a, VAL_LIT("*"))));
}

static struct val policy(struct arena *a, const struct schema *f)
{
	static const struct rule all = { { "*" }, "*", { "*" }, true };
	static const char *const any[NAMES_MAX] = { "*" }, *const get[NAMES_MAX] = { "get" };
	struct val_builder rules = val_builder(a);
	struct val urls = VAL_EMPTY;
	for (size_t i = 0; i < ARRAY_LEN(f->rules) && f->rules[i].group; i++)
		val_add_item(&rules, resource_rule(a, &f->rules[i]));
	if (f->everything)
		val_add_item(&rules, resource_rule(a, &all));
	if (f->everything || f->urls[0])
		urls = LIST(a, OBJECT(a, F(verbs, texts(a, f->everything ? any : get)),
				      F(nonResourceURLs, texts(a, f->everything ? any : f->urls))));
	return OBJECT(a, F(subjects, subjects(a, f)), F(resourceRules, rules.n ? val_end_list(&rules) : VAL_EMPTY),
		      F(nonResourceRules, urls));
}

static struct val schema_spec(struct arena *a, const struct schema *f)
{
	return OBJECT(a, F(priorityLevelConfiguration, OBJECT(a, F(name, text(f->level)))),
		      F(matchingPrecedence, val_of_int(f->precedence)),
		      F(distinguisherMethod, f->by ? OBJECT(a, F(type, text(f->by))) : VAL_EMPTY),
		      F(rules, LIST(a, policy(a, f))));
}

/* ---- making them, and putting them back ---- */

static struct val annotated(struct arena *a, struct val annotations, const char *value)
{
	return val_sorted(a, val_put(a, annotations, atom_make(a, STR(AUTOUPDATE)), text(value)));
}

struct wanted {
	bool mandatory;
	struct val spec;
};

/* Go's ParseBool; -1: it is none. */
static int parse_bool(str s)
{
	static const char *const words[] = { "1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False" };
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (str_eq(s, str_of(words[i])))
			return i < ARRAY_LEN(words) / 2;
	return -1;
}

static struct val revise(struct arena *a, struct val live, void *arg)
{
	const struct wanted *w = arg;
	int says = parse_bool(val_as_str(val_find(val_get(live, metadata, annotations), STR(AUTOUPDATE))));
	bool automatic = w->mandatory || says == 1 || (says < 0 && val_int(live, metadata, generation) == 1);
	bool respecify = automatic && !val_equal(val_get(live, spec), w->spec);
	if (!respecify && says == automatic)
		return VAL_EMPTY;
	struct val object = respecify ? val_put(a, live, A_spec, w->spec) : live;
	return val_with(a, object, annotated(a, val_get(live, metadata, annotations), automatic ? "true" : "false"),
			metadata, annotations);
}

static int ensure(const struct inprocess *w, const char *name, struct wanted *want, struct arena *a, struct err *err)
{
	struct val live = bootstrap_find(w->server, a, w->group, w->resource, str_of(name));
	if (val_exists(live) && !val_exists(revise(a, live, want)))
		return 0;
	if (val_exists(live)) {
		int r = inprocess_update(w, STR_NONE, str_of(name), revise, want, err);
		return r == -ERR_NOT_FOUND ? 0 : r;
	}
	struct val meta = OBJECT(a, F(name, text(name)), F(annotations, annotated(a, VAL_EMPTY, "true")));
	return bootstrap_ensure(w, OBJECT(a, F(metadata, meta), F(spec, want->spec)), err);
}

int flow_make_level(struct apiserver *s, size_t i, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct wanted want = { levels[i].mandatory, level_spec(&a, &levels[i]) };
	return ensure(WRITER(s, "prioritylevelconfigurations", PRODUCER, ""), levels[i].name, &want, &a, err);
}

int flow_make_schema(struct apiserver *s, size_t i, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct wanted want = { schemas[i].mandatory, schema_spec(&a, &schemas[i]) };
	return ensure(WRITER(s, "flowschemas", PRODUCER, ""), schemas[i].name, &want, &a, err);
}

/* ---- the condition Dangling ---- */

static bool condition_is(struct val schema, str status, str reason, str message)
{
	VAL_EACH(c, val_get(schema, status, conditions))
		if (str_eq(val_str(*c, type), STR("Dangling")))
			return str_eq(val_str(*c, status), status) && str_eq(val_str(*c, reason), reason) &&
			       str_eq(val_str(*c, message), message);
	return false;
}

int flow_sync_status(struct apiserver *s, str name, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val schema = bootstrap_find(s, &a, STR(GROUP), STR("flowschemas"), name);
	str level = arena_str(&a, val_str(schema, spec, priorityLevelConfiguration, name));
	if (!val_exists(schema))
		return 0;
	bool found = val_exists(bootstrap_find(s, &a, STR(GROUP), STR("prioritylevelconfigurations"), level));
	str status = found ? STR("False") : STR("True"), reason = found ? STR("Found") : STR("NotFound");
	str message = arena_printf(&a,
				   "This FlowSchema references the PriorityLevelConfiguration object named \"" STR_FMT "\" %s",
				   STR_ARG(level), found ? "and it exists" : "but there is no such object");
	if (condition_is(schema, status, reason, message))
		return 0;
	struct val condition = OBJECT(&a, F(lastTransitionTime, bootstrap_now(&a, false)), F(message, val_of_str(message)),
				      F(reason, val_of_str(reason)), F(status, val_of_str(status)),
				      F(type, VAL_LIT("Dangling")));
	struct val patch = OBJECT(&a, F(metadata, OBJECT(&a, F(name, val_of_str(arena_str(&a, name))))),
				  F(status, OBJECT(&a, F(conditions, LIST(&a, condition)))));
	int r = inprocess_apply(WRITER(s, "flowschemas", CONSUMER, "status"), patch, err);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

int flow_make_status(struct apiserver *s, size_t i, struct err *err)
{
	return flow_sync_status(s, str_of(schemas[i].name), err);
}

int flow_sync_all(struct apiserver *s, struct err *err)
{
	const struct kind *kind = kinds_find(&s->kinds, STR(GROUP), STR("flowschemas"));
	if (!kind)
		return 0;
	CLEANUP(omap_freep) struct omap *all = omap_snapshot(kind->objects);
	struct omap_iter it;
	str name;
	omap_seek(&it, all, STR_NONE);
	while (omap_next(&it, &name)) {
		int r = flow_sync_status(s, name, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int flow_follow(struct apiserver *s, struct err *err)
{
	struct kind *const kinds[] = { kinds_find(&s->kinds, STR(GROUP), STR("flowschemas")),
				       kinds_find(&s->kinds, STR(GROUP), STR("prioritylevelconfigurations")) };
	CLEANUP(follow_done) struct follow changes;
	follow_init(&changes, s->cache, kinds, ARRAY_LEN(kinds));
	int r;
	while ((r = follow_wait(&changes, err)) == 0) {
		struct err failed = ERR_INIT;
		if (flow_sync_all(s, &failed) < 0)
			log_warn("conditions of flow schemas could not be written", KV("error", &failed));
	}
	return r;
}
