#include "controllers/legacy_token_plan.h"

#include "base/clock.h"
#include "controllers/plan_testing.h"

#define NOW_NS (INT64_C(1767225600) * NS_PER_S) /* 2026-01-01 */
#define YEAR_NS (365 * 24 * 3600 * NS_PER_S)

TEST(legacy_token_judging)
{
	static const struct {
		const char *made, *labels, *account;
		enum legacy_token_what want;
	} t[] = {
		{ "2020-01-01T00:00:00Z", "{}", "{'secrets':[{'name':'t'}]}", LEGACY_TOKEN_ASKS },
		{ "2025-06-01T00:00:00Z", "{}", "{'secrets':[{'name':'t'}]}", LEGACY_TOKEN_STAYS },
		{ "2020-01-01T00:00:00Z", "{}", "{'secrets':[{'name':'other'}]}", LEGACY_TOKEN_STAYS },
		{ "2020-01-01T00:00:00Z", "{'kubernetes.io/legacy-token-last-used':'2025-12-01'}", "{'secrets':[{'name':'t'}]}", LEGACY_TOKEN_STAYS },
		{ "2020-01-01T00:00:00Z", "{'kubernetes.io/legacy-token-last-used':'never'}", "{'secrets':[{'name':'t'}]}", LEGACY_TOKEN_STAYS },
		{ "2020-01-01T00:00:00Z", "{'kubernetes.io/legacy-token-last-used':'2024-12-31'}", "{'secrets':[{'name':'t'}]}", LEGACY_TOKEN_ASKS },
		{ "2020-01-01T00:00:00Z", "{'kubernetes.io/legacy-token-invalid-since':'2025-03-01'}", "{'secrets':[{'name':'t'}]}", LEGACY_TOKEN_STAYS },
		{ "2020-01-01T00:00:00Z", "{'kubernetes.io/legacy-token-invalid-since':'2024-03-01'}", "{'secrets':[{'name':'t'}]}", LEGACY_TOKEN_GOES },
		{ "2020-01-01T00:00:00Z", "{'kubernetes.io/legacy-token-invalid-since':'soon'}", "{'secrets':[{'name':'t'}]}", LEGACY_TOKEN_ASKS },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct val secret = tree(&a, arena_printf(&a, "{'type':'kubernetes.io/service-account-token','metadata':{'name':'t',"
							      "'creationTimestamp':'%s','labels':%s}}", t[i].made, t[i].labels).p);
		CHECK_ROW(i, legacy_token_judge(secret, tree(&a, t[i].account), YEAR_NS, NOW_NS) == t[i].want);
	}
	CHECK(legacy_token_is_tracked(STR("2024-12-31"), YEAR_NS, NOW_NS));
	CHECK(!legacy_token_is_tracked(STR("2025-01-01"), YEAR_NS, NOW_NS));
	CHECK(legacy_token_is_tracked(STR("2025-12-01"), YEAR_NS / 365, NOW_NS));
	CHECK(!legacy_token_is_tracked(STR(""), YEAR_NS, NOW_NS));
	CHECK_STR(legacy_token_date(&a, NOW_NS), "2026-01-01");
}

TEST(legacy_token_in_pods)
{
	static const struct {
		const char *pod;
		bool want;
	} t[] = {
		{ "{'spec':{'volumes':[{'secret':{'secretName':'t'}}]}}", true },
		{ "{'spec':{'volumes':[{'secret':{'secretName':'u'}}]}}", false },
		{ "{'spec':{'volumes':[{'projected':{'sources':[{'secret':{'name':'t'}}]}}]}}", true },
		{ "{'spec':{'volumes':[{'csi':{'nodePublishSecretRef':{'name':'t'}}}]}}", true },
		{ "{'spec':{'imagePullSecrets':[{'name':'t'}]}}", true },
		{ "{'spec':{'containers':[{'env':[{'valueFrom':{'secretKeyRef':{'name':'t'}}}]}]}}", true },
		{ "{'spec':{'initContainers':[{'envFrom':[{'secretRef':{'name':'t'}}]}]}}", true },
		{ "{'spec':{'containers':[{'name':'t'}]}}", false },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_ROW(i, legacy_token_is_used(tree(&a, t[i].pod), STR("t")) == t[i].want);
}
