#include "kubelet/trust_bundles.h"

#include "base/buf.h"
#include "base/random.h"
#include "base/test.h"
#include "codec/atoms.h"
#include "codec/json.h"

#define BLOCK(data) "-----BEGIN CERTIFICATE-----\\n" data "\\n-----END CERTIFICATE-----\\n"
#define BUNDLE(name, signer, labels, text) \
	"{\"metadata\":{\"name\":\"" name "\",\"labels\":" labels "},\"spec\":{\"signerName\":\"" signer "\",\"trustBundle\":\"" text "\"}}"

static const char bundles_text[] =
	"[" BUNDLE("a", "", "{}", "words " BLOCK("QUFB") BLOCK("QkJC") BLOCK("QUFB")) ","
	BUNDLE("s:x:1", "s/x", "{\"tier\":\"one\"}", BLOCK("Q0ND") BLOCK("QUFB")) ","
	BUNDLE("s:x:2", "s/x", "{\"tier\":\"two\"}", BLOCK("RERE") BLOCK("Q0ND")) ","
	BUNDLE("s:y:1", "s/y", "{\"tier\":\"one\"}", BLOCK("RUVF")) "]";

/* The certificates without what is around them, sorted: "AAA BBB" are QUFB QkJC. */
static str names(struct arena *a, str pem)
{
	static const str all[] = { STR_INIT("QUFB"), STR_INIT("QkJC"), STR_INIT("Q0ND"), STR_INIT("RERE"), STR_INIT("RUVF") };
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 10);

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		str rest = pem;
		for (ptrdiff_t at; (at = str_find(rest, all[i])) >= 0; rest = str_skip(rest, (size_t)at + 1))
			buf_addf(&b, "%s" STR_FMT, b.n ? " " : "", STR_ARG(all[i]));
	}
	return arena_str(a, buf_str(&b));
}

static str take(struct arena *a, const char *projection)
{
	struct val bundles, p;
	struct err err = ERR_INIT;
	str pem;

	CHECK_INT(json_decode(a, str_of(bundles_text), &(struct json_decode_options){ 0 }, &bundles, NULL), 0);
	CHECK_INT(json_decode(a, str_of(projection), &(struct json_decode_options){ 0 }, &p, NULL), 0);
	return trust_bundle_pem(a, bundles, p, &pem, &err) < 0 ? arena_str(a, err_str(&err)) : pem;
}

TEST(trust_bundles_by_name_and_signer)
{
	static const struct {
		const char *projection, *want;
	} t[] = {
		{ "{\"name\":\"a\"}", "QUFB QkJC" },
		{ "{\"signerName\":\"s/x\",\"labelSelector\":{}}", "QUFB Q0ND RERE" },
		{ "{\"signerName\":\"s/x\",\"labelSelector\":{\"matchLabels\":{\"tier\":\"two\"}}}", "Q0ND RERE" },
		{ "{\"signerName\":\"s/y\",\"labelSelector\":{\"matchExpressions\":[{\"key\":\"tier\",\"operator\":\"Exists\"}]}}", "RUVF" },
		{ "{\"name\":\"none\",\"optional\":true}", "" },
		{ "{\"signerName\":\"s/x\",\"optional\":true}", "" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		CHECK_STR_ROW(i, names(&a, take(&a, t[i].projection)), t[i].want);
	}
}

TEST(trust_bundles_that_are_missing)
{
	static const struct {
		const char *projection, *want;
	} t[] = {
		{ "{\"name\":\"none\"}", "while getting ClusterTrustBundle: clustertrustbundle.certificates.k8s.io \"none\" not found" },
		{ "{\"signerName\":\"s/x\"}", "combination of signerName and labelSelector matched zero ClusterTrustBundles" },
		{ "{\"signerName\":\"s/z\",\"labelSelector\":{}}", "combination of signerName and labelSelector matched zero ClusterTrustBundles" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		CHECK_STR_ROW(i, take(&a, t[i].projection), t[i].want);
	}
}

TEST(trust_bundles_stay_in_one_order_per_process)
{
	static const char all[] = "{\"signerName\":\"s/x\",\"labelSelector\":{}}";
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str first = STR_NONE;
	bool other = false;

	for (uint64_t seed = 1; seed < 20; seed++) {
		random_seed(seed);
		str once = take(&a, all), again = take(&a, all);
		CHECK(str_eq(once, again));
		if (!first.n)
			first = once;
		other |= !str_eq(first, once);
	}
	random_unseed();
	CHECK(other);
	CHECK_STR(take(&a, "{\"signerName\":\"s/y\",\"labelSelector\":{}}"), "-----BEGIN CERTIFICATE-----\nRUVF\n-----END CERTIFICATE-----\n");
}
