#include "controllers/bootstrap_token.h"

#include "base/clock.h"
#include "controllers/plan_testing.h"
#include "controllers/secret_data.h"

/* Values that kubeadm's own library gives. */
TEST(bootstrap_token_signatures)
{
	static const struct {
		const char *content, *secret, *want;
	} t[] = {
		{ "Hello from the other side. I must have called a thousand times.", "my voice is my passcode",
		  "eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9..VShe2taLd-YTrmWuRkcL_8QTNDHYxQIEBsAYYiIj1_8" },
		{ "", "my voice is my passcode", "eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9..7Ui1ALizW4jXphVUB7xUqC9vLYLL9RZeOFfVLoB7Tgk" },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_STR_ROW(i, bootstrap_token_sign(&a, str_of(t[i].content), STR("joshua"), str_of(t[i].secret)), t[i].want);
}

static struct val token(struct arena *a, const char *name, const char *id, const char *expiration, const char *signs)
{
	struct val s = tree(a, arena_printf(a, "{'type':'bootstrap.kubernetes.io/token','metadata':{'namespace':'kube-system','name':'%s'}}", name).p);
	const char *const values[][2] = { { "token-id", id }, { "token-secret", "s" }, { "expiration", expiration },
					  { "usage-bootstrap-signing", signs } };
	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		if (*values[i][1])
			s = secret_data_put(a, s, str_of(values[i][0]), str_of(values[i][1]));
	return s;
}

TEST(bootstrap_token_usable)
{
	static const struct {
		const char *name, *id, *expiration, *signs;
		bool ok;
	} t[] = {
		{ "bootstrap-token-abcdef", "abcdef", "", "true", true },
		{ "bootstrap-token-abcdef", "abcdef", "2026-01-01T00:00:01Z", "true", true },
		{ "bootstrap-token-abcdef", "abcdef", "2026-01-01T00:00:00Z", "true", false },
		{ "bootstrap-token-abcdef", "abcdef", "tomorrow", "true", false },
		{ "bootstrap-token-abcdef", "abcdef", "", "false", false },
		{ "bootstrap-token-abcdef", "abcdef", "", "", false },
		{ "bootstrap-token-abcdef", "abcdeg", "", "true", false },
		{ "bootstrap-token-abcde", "abcde", "", "true", false },
		{ "token-abcdef", "abcdef", "", "true", false },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	int64_t now_ns = INT64_C(1767225600) * NS_PER_S; /* 2026-01-01 */
	str id, secret;
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_ROW(i, bootstrap_token_signs(&a, token(&a, t[i].name, t[i].id, t[i].expiration, t[i].signs), now_ns, &id, &secret) == t[i].ok);
	CHECK_INT(bootstrap_token_left_ns(&a, token(&a, "x", "x", "2026-01-01T00:00:01Z", ""), now_ns - 1), NS_PER_S + 1);
	CHECK_INT(bootstrap_token_left_ns(&a, token(&a, "x", "x", "9999-01-01T00:00:00Z", ""), now_ns) > 0, 1);
}

TEST(bootstrap_cluster_info)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val secrets = LIST(&a, token(&a, "bootstrap-token-abcdef", "abcdef", "", "true"), token(&a, "bootstrap-token-bbbbbb", "bbbbbb", "", ""));
	struct val data = tree(&a, "{'jws-kubeconfig-bbbbbb':'old','kubeconfig':'k','other':'o'}");
	struct val made = bootstrap_signed_data(&a, data, secrets, 0);
	CHECK_INT(val_len(made), 3);
	CHECK_STR(val_as_str(val_find(made, STR("other"))), "o");
	CHECK_STR(val_as_str(val_find(made, STR("jws-kubeconfig-abcdef"))), bootstrap_token_sign(&a, STR("k"), STR("abcdef"), STR("s")).p);
	CHECK(!val_exists(bootstrap_signed_data(&a, made, secrets, 0)));
	CHECK(!val_exists(bootstrap_signed_data(&a, tree(&a, "{'other':'o'}"), secrets, 0)));
}
