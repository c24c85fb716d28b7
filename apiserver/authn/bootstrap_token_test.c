/* Bootstrap tokens, and how a bearer token is found in a header. */
#include "apiserver/authn/authn_priv.h"
#include "apiserver/read_fixture.h"
#include "base/clock.h"
#include "base/encoding.h"
#include "base/fiber_test.h"

#define TOKEN "abcdef.0123456789abcdef"

/* A value of a Secret: "key=value" pairs, to JSON in base64. */
static void add_data(struct buf *b, const char *pairs)
{
	str rest = str_of(pairs), pair, key, value;
	while (rest.n) {
		str_cut(rest, ' ', &pair, &rest);
		str_cut(pair, '=', &key, &value);
		buf_addf(b, "%s'" STR_FMT "':'", b->n && b->p[b->n - 1] != '{' ? "," : "", STR_ARG(key));
		base64_encode_buf(b, value);
		buf_addc(b, '\'');
	}
}

static const char good[] = "token-id=abcdef token-secret=0123456789abcdef usage-bootstrap-authentication=true";

FIBER_TEST(bootstrap_tokens)
{
	static const struct {
		const char *token, *data, *more, *type;
		const char *groups; /* NULL: refused */
	} t[] = {
		{ TOKEN, "", "", NULL, "system:bootstrappers" },
		{ TOKEN, " auth-extra-groups=system:bootstrappers:z,system:bootstrappers:a:b-c,system:bootstrappers:z", "", NULL,
		  "system:bootstrappers,system:bootstrappers:a:b-c,system:bootstrappers:z" },
		{ TOKEN, " auth-extra-groups=system:masters", "", NULL, NULL },
		{ TOKEN, " auth-extra-groups=system:bootstrappers:", "", NULL, NULL },
		{ TOKEN, " auth-extra-groups=system:bootstrappers:a-", "", NULL, NULL },
		{ TOKEN, " auth-extra-groups=system:bootstrappers:A", "", NULL, NULL },
		{ TOKEN, " expiration=2027-01-15T08:00:01Z", "", NULL, "system:bootstrappers" },
		{ TOKEN, " expiration=2027-01-15T10:00:01+02:00", "", NULL, "system:bootstrappers" },
		{ TOKEN, " expiration=2027-01-15T08:00:00Z", "", NULL, NULL },
		{ TOKEN, " expiration=2027-01-15T07:59:59Z", "", NULL, NULL },
		{ TOKEN, " expiration=tomorrow", "", NULL, NULL },
		{ TOKEN, " usage-bootstrap-authentication=false", "", NULL, NULL },
		{ TOKEN, " token-id=bcdefg", "", NULL, NULL },
		{ TOKEN, "", ",'deletionTimestamp':'2027-01-15T07:59:59Z'", NULL, NULL },
		{ TOKEN, "", "", "Opaque", NULL },
		{ "abcdef.0123456789abcdee", "", "", NULL, NULL },
		{ "abcdef.0123456789abcde", "", "", NULL, NULL },
		{ "abcdef.0123456789abcdef0", "", "", NULL, NULL },
		{ "ABCDEF.0123456789abcdef", "", "", NULL, NULL },
		{ "abcdeg.0123456789abcdef", "", "", NULL, NULL },
		{ "abcdef.0123456789abcdef.x", "", "", NULL, NULL },
		{ "", "", "", NULL, NULL },
	};
	static struct read_fixture f;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct authn_way way;
	read_fixture_init(&f);
	clock_virtual_set(clock_now_ns(), INT64_C(1800000000) * NS_PER_S);
	CHECK_INT(authn_bootstrap_way(&f.server, &way, NULL), 0);
	CHECK(!way.self);
	f.server.options.authn.bootstrap_tokens = true;
	CHECK_INT(authn_bootstrap_way(&f.server, &way, NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct buf b = BUF_INIT(1 << 16);
		struct authn_identity who = { 0 };
		buf_addf(&b, "{'kind':'Secret','apiVersion':'v1','metadata':{'name':'bootstrap-token-abcdef','namespace':'kube-system'%s},"
			 "'type':'%s','data':{", t[i].more, t[i].type ? t[i].type : "bootstrap.kubernetes.io/token");
		add_data(&b, good);
		add_data(&b, t[i].data[0] ? t[i].data + 1 : "");
		buf_add(&b, STR("}}"));
		read_fixture_put(&f, STR("secrets"), "kube-system/bootstrap-token-abcdef", b.p);
		int r = way.token(way.self, &a, str_of(t[i].token), NULL, 0, &who, NULL);
		CHECK_ROW(i, r == (t[i].groups ? 1 : 0));
		if (r == 1) {
			CHECK_STR_ROW(i, who.user.name, "system:bootstrap:abcdef");
			buf_reset(&b);
			for (size_t k = 0; k < who.user.n_groups; k++)
				buf_addf(&b, "%s" STR_FMT, k ? "," : "", STR_ARG(who.user.groups[k]));
			CHECK_STR_ROW(i, buf_str(&b), t[i].groups);
		}
		buf_done(&b);
	}
	clock_virtual_off();
	read_fixture_done(&f);
}

TEST(bearer_tokens_in_headers)
{
	static const struct {
		const char *header, *token;
		bool spaced;
	} t[] = {
		{ "", "", false },
		{ "Bearer x", "x", false },
		{ "bEARER x", "x", false },
		{ "  Bearer x  ", "x", false },
		{ "Bearer x y z", "x", false },
		{ "Bearer", "", false },
		{ "Bearer ", "", false },
		{ "Bearer  x", "", true },
		{ "Bearerx", "", false },
		{ "Basic x", "", false },
		{ "x Bearer y", "", false },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		bool spaced;
		CHECK_STR_ROW(i, authn_bearer(str_of(t[i].header), &spaced), t[i].token);
		CHECK_ROW(i, spaced == t[i].spaced);
	}
}
