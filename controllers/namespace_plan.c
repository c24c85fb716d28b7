#include "controllers/namespace_plan.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "codec/atoms.h"
#include "controllers/controller.h"

enum { TEXT_MAX = 1 << 20, FINALIZERS_MAX = 100 };

/* ---- gathering ---- */

void namespace_content_fail(struct namespace_content *c, str message)
{
	str *all = ARENA_ARRAY(c->arena, str, c->n_errors + 1);
	if (c->n_errors)
		memcpy(all, c->errors, c->n_errors * sizeof *all);
	all[c->n_errors++] = arena_str(c->arena, message);
	c->errors = all;
}

/* How often there is what; objects can have any number of finalizers, people read only some. */
struct tally {
	size_t n;
	struct member all[FINALIZERS_MAX];
};

static void tally_add(struct tally *t, atom key, int64_t n)
{
	size_t i = 0;
	while (i < t->n && !atom_eq(t->all[i].key, key))
		i++;
	if (i == FINALIZERS_MAX)
		return;
	if (i == t->n)
		t->all[t->n++] = (struct member){ key, val_of_int(0) };
	t->all[i].val.i += n;
}

static struct val count_finalizers(struct arena *a, struct val items)
{
	struct tally t = { .n = 0 };
	VAL_EACH(item, items)
		VAL_EACH(f, val_get(*item, metadata, finalizers))
			tally_add(&t, atom_make(a, val_as_str(*f)), 1);
	return t.n ? val_object(a, t.all, t.n) : VAL_EMPTY;
}

void namespace_content_remains(struct namespace_content *c, str group, str name, struct val items)
{
	struct namespace_resource *all = ARENA_ARRAY(c->arena, struct namespace_resource, c->n_resources + 1);
	if (c->n_resources)
		memcpy(all, c->resources, c->n_resources * sizeof *all);
	all[c->n_resources++] = (struct namespace_resource){ group, name, val_len(items), count_finalizers(c->arena, items) };
	c->resources = all;
}

/* ---- texts ---- */

static int by_text(const void *x, const void *y) { return str_cmp(*(const str *)x, *(const str *)y); }

/* "prefix: a, b", sorted, so that the same content has the same text. */
static str joined(struct arena *a, str prefix, str *list, size_t n)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(TEXT_MAX);
	if (n)
		qsort(list, n, sizeof *list, by_text);
	buf_add(&b, prefix);
	for (size_t i = 0; i < n; i++) {
		buf_add(&b, i ? STR(", ") : STR(""));
		buf_add(&b, list[i]);
	}
	return arena_str(a, buf_str(&b));
}

static str resources_text(struct arena *a, const struct namespace_content *c)
{
	str *list = ARENA_ARRAY(a, str, c->n_resources);
	for (size_t i = 0; i < c->n_resources; i++)
		list[i] = arena_printf(a, STR_FMT "." STR_FMT " has %zu resource instances", STR_ARG(c->resources[i].name),
				       STR_ARG(c->resources[i].group), c->resources[i].remaining);
	return joined(a, STR("Some resources are remaining: "), list, c->n_resources);
}

/* Empty: nothing that remains has one. */
static str finalizers_text(struct arena *a, const struct namespace_content *c)
{
	struct tally t = { .n = 0 };
	for (size_t i = 0; i < c->n_resources; i++)
		VAL_EACH_MEMBER(m, c->resources[i].finalizers)
			tally_add(&t, m->key, val_as_int(m->val));
	str *list = ARENA_ARRAY(a, str, t.n);
	for (size_t i = 0; i < t.n; i++)
		list[i] = arena_printf(a, STR_FMT " in %lld resource instances", STR_ARG(atom_str(t.all[i].key)), (long long)val_as_int(t.all[i].val));
	return t.n ? joined(a, STR("Some content in the namespace has finalizers remaining: "), list, t.n) : STR_NONE;
}

static str errors_text(struct arena *a, const struct namespace_content *c)
{
	str prefix = arena_printf(a, "Failed to delete all resource types, %zu remaining: ", c->n_errors);
	return c->n_errors ? joined(a, prefix, c->errors, c->n_errors) : STR_NONE;
}

static str discovery_text(struct arena *a, const struct namespace_content *c)
{
	if (!c->discovery_failure.n)
		return STR_NONE;
	return c->n_discovery_failed ? arena_printf(a, "Discovery failed for some groups, %zu failing: " STR_FMT, c->n_discovery_failed,
						    STR_ARG(c->discovery_failure)) : c->discovery_failure;
}

/* ---- conditions ---- */

struct finding {
	str type, ok_reason, ok_message, bad_reason;
	str bad_message;              /* empty: all is well */
};

static struct val set_condition(struct arena *a, struct val conditions, const struct finding *f)
{
	bool bad = f->bad_message.n > 0;
	return condition_set(a, conditions, OBJECT(a, F(type, VAL_STR(f->type)), F(status, bad ? VAL_LIT("True") : VAL_LIT("False")),
						   F(reason, VAL_STR(bad ? f->bad_reason : f->ok_reason)),
						   F(message, VAL_STR(bad ? f->bad_message : f->ok_message))), false);
}

struct val namespace_conditions(struct arena *a, struct val conditions, const struct namespace_content *c)
{
	bool told = c->n_resources && !c->pods_first;
	const struct finding all[] = {
		{ STR("NamespaceDeletionDiscoveryFailure"), STR("ResourcesDiscovered"), STR("All resources successfully discovered"),
		  STR("DiscoveryFailed"), discovery_text(a, c) },
		{ STR("NamespaceDeletionGroupVersionParsingFailure"), STR("ParsedGroupVersions"),
		  STR("All legacy kube types successfully parsed"), STR("GroupVersionParsingFailed"), STR_NONE },
		{ STR("NamespaceDeletionContentFailure"), STR("ContentDeleted"),
		  STR("All content successfully deleted, may be waiting on finalization"), STR("ContentDeletionFailed"), errors_text(a, c) },
		{ STR("NamespaceContentRemaining"), STR("ContentRemoved"), STR("All content successfully removed"),
		  STR("SomeResourcesRemain"), told ? resources_text(a, c) : STR_NONE },
		{ STR("NamespaceFinalizersRemaining"), STR("ContentHasNoFinalizers"), STR("All content-preserving finalizers finished"),
		  STR("SomeFinalizersRemain"), told ? finalizers_text(a, c) : STR_NONE },
	};
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		conditions = set_condition(a, conditions, &all[i]);
	return conditions;
}

/* ---- waiting ---- */

int64_t namespace_pods_estimate(struct val pods, int64_t deleted_ns, int64_t now_ns)
{
	int64_t most = 0;
	VAL_EACH(pod, pods) {
		str phase = val_str(*pod, status, phase);
		if (!str_eq(phase, STR("Succeeded")) && !str_eq(phase, STR("Failed")))
			most = MAX(most, val_int(*pod, spec, terminationGracePeriodSeconds));
	}
	most = MIN(most, (int64_t)INT32_MAX); /* anybody can write more, and seconds become nanoseconds */
	return now_ns - deleted_ns >= most * NS_PER_S ? 0 : most;
}
