#include "controllers/namespace_plan.h"

#include "base/clock.h"
#include "controllers/plan_testing.h"

static struct val condition(struct val conditions, size_t i, const char *type)
{
	struct val c = val_at(conditions, i);
	CHECK_STR(val_str(c, type), type);
	return c;
}

TEST(namespace_conditions_of_success)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct namespace_content content = { .arena = &a };
	struct val all = namespace_conditions(&a, VAL_EMPTY, &content);
	static const char *const want[][3] = {
		{ "NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered" },
		{ "NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed" },
		{ "NamespaceDeletionContentFailure", "ContentDeleted", "All content successfully deleted, may be waiting on finalization" },
		{ "NamespaceContentRemaining", "ContentRemoved", "All content successfully removed" },
		{ "NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished" },
	};
	CHECK_INT(val_len(all), ARRAY_LEN(want));
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		struct val c = condition(all, i, want[i][0]);
		CHECK_STR_ROW(i, val_str(c, status), "False");
		CHECK_STR_ROW(i, val_str(c, reason), want[i][1]);
		CHECK_STR_ROW(i, val_str(c, message), want[i][2]);
	}
	/* Once more: nothing is to be written. */
	CHECK(val_same(namespace_conditions(&a, all, &content), all));
}

TEST(namespace_conditions_of_remains)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct namespace_content content = { .arena = &a };
	clock_virtual_set(0, 1000 * NS_PER_S);
	struct val before = namespace_conditions(&a, VAL_EMPTY, &content);
	clock_virtual_set(0, 2000 * NS_PER_S);
	namespace_content_remains(&content, STR("apps"), STR("deployments"), tree(&a, "[{'metadata':{'name':'x','finalizers':['b.test/x','a.test/y']}}]"));
	namespace_content_remains(&content, STR(""), STR("configmaps"),
				  tree(&a, "[{'metadata':{'finalizers':['b.test/x']}},{'metadata':{'name':'y'}}]"));
	namespace_content_fail(&content, STR("second"));
	namespace_content_fail(&content, STR("first"));
	content.n_discovery_failed = 1;
	content.discovery_failure = STR("unable to retrieve the complete list of server APIs: x.test/v1: stale");
	struct val all = namespace_conditions(&a, before, &content);
	clock_virtual_off();
	static const char *const want[][4] = {
		{ "NamespaceDeletionDiscoveryFailure", "True", "DiscoveryFailed",
		  "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: x.test/v1: stale" },
		{ "NamespaceDeletionGroupVersionParsingFailure", "False", "ParsedGroupVersions", "All legacy kube types successfully parsed" },
		{ "NamespaceDeletionContentFailure", "True", "ContentDeletionFailed",
		  "Failed to delete all resource types, 2 remaining: first, second" },
		{ "NamespaceContentRemaining", "True", "SomeResourcesRemain",
		  "Some resources are remaining: configmaps. has 2 resource instances, deployments.apps has 1 resource instances" },
		{ "NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain",
		  "Some content in the namespace has finalizers remaining: a.test/y in 1 resource instances, b.test/x in 2 resource instances" },
	};
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		struct val c = condition(all, i, want[i][0]);
		bool changed = str_eq(val_str(c, status), STR("True"));
		CHECK_STR_ROW(i, val_str(c, status), want[i][1]);
		CHECK_STR_ROW(i, val_str(c, reason), want[i][2]);
		CHECK_STR_ROW(i, val_str(c, message), want[i][3]);
		CHECK_STR_ROW(i, val_str(c, lastTransitionTime), changed ? "1970-01-01T00:33:20Z" : "1970-01-01T00:16:40Z");
	}
}

/* Pods are waited for without a word: nothing else was tried. */
TEST(namespace_conditions_pods_first)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct namespace_content content = { .arena = &a, .pods_first = true };
	namespace_content_remains(&content, STR(""), STR("pods"), tree(&a, "[{'metadata':{'name':'x'}}]"));
	VAL_EACH(c, namespace_conditions(&a, VAL_EMPTY, &content))
		CHECK_STR(val_str(*c, status), "False");
}

TEST(namespace_estimate)
{
	static const struct {
		const char *pods;
		int64_t since_s, want;
	} t[] = {
		{ "[]", 0, 0 },
		{ "[{'spec':{'terminationGracePeriodSeconds':30}}]", 5, 30 },
		{ "[{'spec':{'terminationGracePeriodSeconds':30}}]", 30, 0 },
		{ "[{'spec':{'terminationGracePeriodSeconds':30}},{'spec':{'terminationGracePeriodSeconds':90}}]", 30, 90 },
		{ "[{'spec':{'terminationGracePeriodSeconds':90},'status':{'phase':'Succeeded'}}]", 5, 0 },
		{ "[{'spec':{'terminationGracePeriodSeconds':9223372036854775807}}]", 5, INT32_MAX },
		{ "[{'spec':{'terminationGracePeriodSeconds':90},'status':{'phase':'Failed'}},{'spec':{}}]", 5, 0 },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_ROW(i, namespace_pods_estimate(tree(&a, t[i].pods), 100 * NS_PER_S, (100 + t[i].since_s) * NS_PER_S) == t[i].want);
}
