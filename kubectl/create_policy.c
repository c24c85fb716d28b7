/* kubectl create quota, poddisruptionbudget, priorityclass. */
#include "codec/types.h"
#include "kubectl/create.h"

/* ---- quotas ---- */

struct quota {
	struct ktl_create common;
	const char *hard, *scopes;
};

static const struct ktl_flag quota_flags[] = {
	{ "hard", 0, KTL_STRING, offsetof(struct quota, hard), NULL, "Limits, as cpu=2,pods=10", NULL },
	{ "scopes", 0, KTL_STRING, offsetof(struct quota, scopes), NULL, "What is counted, separated by commas", NULL },
	{ 0 },
};

static int create_quota(struct ktl *k, void *options)
{
	const struct quota *q = options;
	struct arena *a = &k->arena;
	struct val hard = VAL_EMPTY, scopes = VAL_EMPTY;
	str name, part, key, value, rest = str_of(q->hard);
	struct err err = ERR_INIT;
	struct quantity amount;
	if (ktl_create_name(k, &name) < 0)
		return -1;
	while (rest.n) {
		(void)str_cut(rest, ',', &part, &rest);
		if (!str_cut(part, '=', &key, &value) || str_chr(value, '=') >= 0)
			return ktl_fail(k, "Invalid argument syntax " STR_FMT ", expected <resource>=<value>", STR_ARG(part));
		if (quantity_parse(value, &amount, &err) < 0)
			return ktl_fail_err(k, &err);
		hard = val_put(a, hard, atom_make(a, key), VAL_STR(value));
	}
	for (rest = str_of(q->scopes); rest.n;) {
		(void)str_cut(rest, ',', &part, &rest);
		if (!part.n)
			return ktl_fail(k, "invalid resource quota scope \"\"");
		scopes = val_list_append(a, scopes, VAL_STR(part));
	}
	struct val object = OBJECT(a, F(metadata, ktl_meta(k, name, VAL_EMPTY)), F(spec, OBJECT(a, F(hard, hard), F(scopes, scopes))));
	return ktl_create_made(k, &q->common, TYPE(core_v1, ResourceQuota), object, "failed to create quota: ");
}

const struct ktl_command ktl_create_quota = {
	.name = "quota", .aliases = "resourcequota", .summary = "Create a quota with the specified name",
	.usage = "create quota NAME [--hard=key1=value1,key2=value2] [--scopes=Scope1,Scope2] [options]", .flags = KTL_CREATE_SETS(quota_flags),
	.size = sizeof(struct quota), .run = create_quota,
};

/* ---- disruption budgets ---- */

struct pdb {
	struct ktl_create common;
	const char *selector, *min, *max;
};

static const struct ktl_flag pdb_flags[] = {
	{ "max-unavailable", 0, KTL_STRING, offsetof(struct pdb, max), NULL, "At most so many, or so much percent, are missing", NULL },
	{ "min-available", 0, KTL_STRING, offsetof(struct pdb, min), NULL, "At least so many, or so much percent, are there", NULL },
	{ "selector", 0, KTL_STRING, offsetof(struct pdb, selector), NULL, "Labels of the pods", NULL },
	{ 0 },
};

static struct val amount_of(const char *text)
{
	int64_t n;
	return !text[0] ? VAL_EMPTY : str_to_i64(str_of(text), &n) ? val_of_int(n) : VAL_STR(str_of(text));
}

static int create_pdb(struct ktl *k, void *options)
{
	const struct pdb *p = options;
	struct arena *a = &k->arena;
	struct val labels;
	str name;
	if (ktl_create_name(k, &name) < 0)
		return -1;
	if (!p->selector[0])
		return ktl_fail(k, "a selector must be specified");
	if (!p->max[0] && !p->min[0])
		return ktl_fail(k, "one of min-available or max-unavailable must be specified");
	if (p->max[0] && p->min[0])
		return ktl_fail(k, "min-available and max-unavailable cannot be both specified");
	if (ktl_parse_labels(k, p->selector, &labels) < 0)
		return -1;
	struct val spec = OBJECT(a, F(minAvailable, amount_of(p->min)), F(selector, OBJECT(a, F(matchLabels, labels))), F(maxUnavailable, amount_of(p->max)));
	return ktl_create_made(k, &p->common, TYPE(policy_v1, PodDisruptionBudget), OBJECT(a, F(metadata, ktl_meta(k, name, VAL_EMPTY)), F(spec, spec)),
			       "failed to create poddisruptionbudgets: ");
}

const struct ktl_command ktl_create_pdb = {
	.name = "poddisruptionbudget", .aliases = "pdb", .summary = "Create a pod disruption budget with the specified name",
	.usage = "create poddisruptionbudget NAME --selector=SELECTOR --min-available=N [options]", .flags = KTL_CREATE_SETS(pdb_flags),
	.size = sizeof(struct pdb), .run = create_pdb,
};

/* ---- priority classes ---- */

struct priority {
	struct ktl_create common;
	int64_t value;
	bool global_default;
	const char *description, *preemption;
};

static const struct ktl_flag priority_flags[] = {
	{ "description", 0, KTL_STRING, offsetof(struct priority, description), NULL, "What it is for", NULL },
	{ "global-default", 0, KTL_BOOL, offsetof(struct priority, global_default), NULL, "Of all pods that name none", NULL },
	{ "preemption-policy", 0, KTL_STRING, offsetof(struct priority, preemption), "PreemptLowerPriority", "Never, or PreemptLowerPriority", NULL },
	{ "value", 0, KTL_INT, offsetof(struct priority, value), NULL, "The priority", NULL },
	{ 0 },
};

static int create_priorityclass(struct ktl *k, void *options)
{
	const struct priority *p = options;
	str name;
	if (ktl_create_name(k, &name) < 0)
		return -1;
	struct val object = OBJECT(&k->arena, F(metadata, ktl_meta(k, name, VAL_EMPTY)), F(value, val_of_int(p->value)),
				   F(globalDefault, val_of_bool(p->global_default)), F(description, VAL_STR(str_of(p->description))),
				   F(preemptionPolicy, VAL_STR(str_of(p->preemption))));
	return ktl_create_made(k, &p->common, TYPE(scheduling_v1, PriorityClass), object, "failed to create priorityclass: ");
}

const struct ktl_command ktl_create_priorityclass = {
	.name = "priorityclass", .aliases = "pc", .summary = "Create a priority class with the specified name",
	.usage = "create priorityclass NAME --value=VALUE --global-default=BOOL [--dry-run=server|client|none] [options]",
	.flags = KTL_CREATE_SETS(priority_flags), .size = sizeof(struct priority), .run = create_priorityclass,
};
