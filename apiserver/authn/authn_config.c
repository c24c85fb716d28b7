/* The file of --authentication-config: read strictly, checked with Kubernetes' texts, made into one way per issuer. */
#include <openssl/pem.h>

#include "apiserver/authn/oidc.h"
#include "apiserver/config_file.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "machinery/names.h"
#include "net/url.h"

/* ---- issuers ---- */

static void check_url(struct field_errors *e, const struct field_path *at, struct val v)
{
	struct url u;
	struct err err = ERR_INIT;
	if (str_find(val_as_str(v), STR("://")) < 0) {
		field_invalid(e, at, v, "URL scheme must be https");
		return;
	}
	if (url_parse(e->arena, val_as_str(v), &u, &err) < 0) {
		field_invalid(e, at, v, "parse \"" STR_FMT "\": " STR_FMT, STR_ARG(val_as_str(v)), STR_ARG(err_str(&err)));
		return;
	}
	if (!str_eq(u.scheme, STR("https")))
		field_invalid(e, at, v, "URL scheme must be https");
	if (u.userinfo.p)
		field_invalid(e, at, v, "URL must not contain a username or password");
	if (u.query.n)
		field_invalid(e, at, v, "URL must not contain a query");
	if (u.fragment.n)
		field_invalid(e, at, v, "URL must not contain a fragment");
}

static str without_slashes(str s)
{
	while (s.n && s.p[s.n - 1] == '/')
		s.n--;
	return s;
}

static void check_urls(struct field_errors *e, const struct field_path *at, struct val issuer)
{
	struct val url = val_get(issuer, url), discovery = val_get(issuer, discoveryURL);
	if (!val_as_str(url).n)
		field_required(e, FIELD(at, "url"), "%s", "");
	else
		check_url(e, FIELD(at, "url"), url);
	if (!val_as_str(discovery).n)
		return;
	if (val_as_str(url).n && str_eq(without_slashes(val_as_str(url)), without_slashes(val_as_str(discovery))))
		field_invalid(e, FIELD(at, "discoveryURL"), discovery, "discoveryURL must be different from URL");
	check_url(e, FIELD(at, "discoveryURL"), discovery);
}

static void check_audiences(struct field_errors *e, const struct field_path *at, struct val issuer)
{
	struct val audiences = val_get(issuer, audiences), policy = val_get(issuer, audienceMatchPolicy);
	const struct field_path *list_at = FIELD(at, "audiences"), *policy_at = FIELD(at, "audienceMatchPolicy");
	size_t n = val_len(audiences);
	bool any = str_eq(val_as_str(policy), STR("MatchAny"));
	if (!n) {
		str text = field_path_text(e->arena, list_at);
		field_required(e, list_at, "at least one " STR_FMT " is required", STR_ARG(text));
		return;
	}
	for (size_t i = 0; i < n; i++) {
		bool seen = false;
		for (size_t j = 0; j < i; j++)
			seen |= str_eq(val_as_str(val_at(audiences, i)), val_as_str(val_at(audiences, j)));
		if (!val_as_str(val_at(audiences, i)).n)
			field_required(e, FIELD_INDEX(list_at, i), "%s", "");
		if (seen)
			field_duplicate(e, FIELD_INDEX(list_at, i), val_at(audiences, i));
	}
	if (n > 1 && !any)
		field_invalid(e, policy_at, VAL_STR(val_as_str(policy)),
			      "audienceMatchPolicy must be MatchAny for multiple audiences");
	if (n == 1 && val_as_str(policy).n && !any)
		field_invalid(e, policy_at, policy, "audienceMatchPolicy must be empty or MatchAny for single audience");
}

static bool has_certificate(str pem)
{
	BIO *in = BIO_new_mem_buf(pem.p, (int)pem.n);
	X509 *x = in ? PEM_read_bio_X509(in, NULL, NULL, NULL) : NULL;
	bool found = x != NULL;
	X509_free(x);
	BIO_free(in);
	return found;
}

static void check_issuer(struct field_errors *e, const struct field_path *at, struct val issuer)
{
	str ca = val_str(issuer, certificateAuthority);
	struct val egress = val_get(issuer, egressSelectorType);
	check_urls(e, at, issuer);
	check_audiences(e, at, issuer);
	if (ca.n && !has_certificate(ca))
		field_invalid(e, FIELD(at, "certificateAuthority"), VAL_LIT("<omitted>"),
			      "data does not contain any valid RSA or ECDSA certificates");
	if (!val_as_str(egress).n)
		return;
	if (str_eq(val_as_str(egress), STR("controlplane")) || str_eq(val_as_str(egress), STR("cluster")))
		field_forbidden(e, FIELD(at, "egressSelectorType"), "egress selectors are not supported by c8s");
	else
		field_invalid(e, FIELD(at, "egressSelectorType"), egress, "egress selector must be either controlplane or cluster");
}

/* ---- claims ---- */

static void no_expression(struct field_errors *e, const struct field_path *at)
{
	field_forbidden(e, at, "CEL expressions are not supported by c8s yet");
}

static void check_rule(struct field_errors *e, const struct field_path *at, struct val rules, size_t i)
{
	struct val rule = val_at(rules, i), claim = val_get(rule, claim), message = val_get(rule, message);
	bool has_claim = val_as_str(claim).n, has_expression = val_str(rule, expression).n;
	if (has_claim && has_expression) {
		field_invalid(e, at, claim, "claim and expression can't both be set");
	} else if (!has_claim && !has_expression) {
		field_required(e, at, "claim or expression is required");
	} else if (has_claim) {
		if (val_as_str(message).n)
			field_invalid(e, FIELD(at, "message"), message, "may not be specified when claim is set");
		if (config_is_repeated(rules, i, A_claim))
			field_duplicate(e, FIELD(at, "claim"), claim);
	} else {
		if (val_str(rule, requiredValue).n)
			field_invalid(e, FIELD(at, "requiredValue"), val_get(rule, requiredValue),
				      "may not be specified when expression is set");
		no_expression(e, FIELD(at, "expression"));
	}
}

static void check_prefixed(struct field_errors *e, const struct field_path *at, struct val m, bool required)
{
	bool has_claim = val_str(m, claim).n, has_expression = val_str(m, expression).n;
	struct val prefix = val_get(m, prefix);
	if (has_claim && has_expression) {
		field_invalid(e, at, VAL_LIT(""), "claim and expression can't both be set");
	} else if (!has_claim && !has_expression && required) {
		field_required(e, at, "claim or expression is required");
	} else if (has_expression) {
		if (val_exists(prefix))
			field_invalid(e, FIELD(at, "prefix"), prefix, "may not be specified when expression is set");
		no_expression(e, FIELD(at, "expression"));
	} else if (has_claim && !val_exists(prefix)) {
		field_required(e, FIELD(at, "prefix"),
			       "prefix is required when claim is set. It can be set to an empty string to disable prefixing");
	}
}

static bool is_reserved(str key)
{
	static const str domains[] = { STR_INIT("kubernetes.io"), STR_INIT("k8s.io") };
	str domain, path;
	if (!str_cut(key, '/', &domain, &path))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(domains); i++)
		if (str_eq(domain, domains[i]) || (str_ends(domain, domains[i]) && domain.p[domain.n - domains[i].n - 1] == '.'))
			return true;
	return false;
}

static bool has_capital(str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] >= 'A' && s.p[i] <= 'Z')
			return true;
	return false;
}

static void check_extra(struct field_errors *e, const struct field_path *at, struct val list, size_t i)
{
	struct val key = val_get(val_at(list, i), key);
	const struct field_path *key_at = FIELD(at, "key");
	struct name_errors wrong = { 0 };
	if (!val_as_str(key).n)
		field_required(e, key_at, "%s", "");
	else
		name_check_domain_prefixed_path(val_as_str(key), &wrong);
	for (size_t j = 0; j < wrong.n; j++)
		field_invalid(e, key_at, VAL_STR(wrong.value[j]), STR_FMT, STR_ARG(wrong.text[j]));
	if (has_capital(val_as_str(key)))
		field_invalid(e, key_at, key, "must be lowercase");
	if (is_reserved(val_as_str(key)))
		field_invalid(e, key_at, key, "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use");
	if (config_is_repeated(list, i, A_key))
		field_duplicate(e, key_at, key);
	else if (!val_str(val_at(list, i), valueExpression).n)
		field_required(e, FIELD(at, "valueExpression"), "%s", "");
	else
		no_expression(e, FIELD(at, "valueExpression"));
}

static void check_mappings(struct field_errors *e, const struct field_path *at, struct val m)
{
	struct val uid = val_get(m, uid), extra = val_get(m, extra);
	check_prefixed(e, FIELD(at, "username"), val_get(m, username), true);
	check_prefixed(e, FIELD(at, "groups"), val_get(m, groups), false);
	if (val_str(uid, claim).n && val_str(uid, expression).n)
		field_invalid(e, FIELD(at, "uid"), VAL_LIT(""), "claim and expression can't both be set");
	else if (val_str(uid, expression).n)
		no_expression(e, FIELD(FIELD(at, "uid"), "expression"));
	for (size_t i = 0; i < val_len(extra); i++)
		check_extra(e, FIELD_INDEX(FIELD(at, "extra"), i), extra, i);
}

/* ---- all of it ---- */

static void check_authenticator(struct field_errors *e, const struct field_path *at, struct val one)
{
	struct val rules = val_get(one, claimValidationRules), users = val_get(one, userValidationRules);
	check_issuer(e, FIELD(at, "issuer"), val_get(one, issuer));
	for (size_t i = 0; i < val_len(rules); i++)
		check_rule(e, FIELD_INDEX(FIELD(at, "claimValidationRules"), i), rules, i);
	check_mappings(e, FIELD(at, "claimMappings"), val_get(one, claimMappings));
	for (size_t i = 0; i < val_len(users); i++) {
		const struct field_path *expression_at = FIELD(FIELD_INDEX(FIELD(at, "userValidationRules"), i), "expression");
		str expression = val_str(val_at(users, i), expression);
		if (!expression.n)
			field_required(e, expression_at, "%s", "");
		else if (config_is_repeated(users, i, A_expression))
			field_duplicate(e, expression_at, VAL_STR(expression));
		else
			no_expression(e, expression_at);
	}
}

/* Two issuers must differ in their address, and in where they are found. */
static void check_unique(struct field_errors *e, const struct field_path *at, struct val list, size_t i)
{
	struct val issuer = val_get(val_at(list, i), issuer), url = val_get(issuer, url), discovery = val_get(issuer, discoveryURL);
	bool seen = false, seen_discovery = false;
	for (size_t j = 0; j < i; j++) {
		struct val other = val_get(val_at(list, j), issuer);
		seen |= str_eq(val_str(other, url), val_as_str(url));
		seen_discovery |= val_as_str(discovery).n && str_eq(val_str(other, discoveryURL), val_as_str(discovery));
	}
	if (seen)
		field_duplicate(e, FIELD(FIELD(at, "issuer"), "url"), VAL_STR(val_as_str(url)));
	if (seen_discovery)
		field_duplicate(e, FIELD(FIELD(at, "issuer"), "discoveryURL"), discovery);
}

/* The value as Kubernetes shows it, with the names that its fields have inside. */
static struct val conditions_shown(struct arena *a, struct val conditions)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);
	buf_addc(&b, '[');
	VAL_EACH(one, conditions) {
		buf_add(&b, b.n > 1 ? STR(",{\"Path\":") : STR("{\"Path\":"));
		json_quote(&b, val_str(*one, path), false);
		buf_addc(&b, '}');
	}
	buf_addc(&b, ']');
	str text = arena_str(a, buf_str(&b));
	return (struct val){ .type = VAL_RAW, .n = (uint32_t)text.n, .s = text.p };
}

static void check_config(struct field_errors *e, struct val config)
{
	const struct field_path *at = FIELD(NULL, "jwt");
	struct val list = val_get(config, jwt), anonymous = val_get(config, anonymous), conditions = val_get(anonymous, conditions);
	if (val_len(list) > AUTHN_ISSUERS_MAX) {
		field_too_many(e, at, val_len(list), AUTHN_ISSUERS_MAX);
		return;
	}
	for (size_t i = 0; i < val_len(list); i++) {
		check_authenticator(e, FIELD_INDEX(at, i), val_at(list, i));
		check_unique(e, FIELD_INDEX(at, i), list, i);
	}
	if (!val_bool(anonymous, enabled) && val_len(conditions))
		field_invalid(e, FIELD(FIELD(NULL, "anonymous"), "conditions"), conditions_shown(e->arena, conditions),
			      "enabled should be set to true when conditions are defined");
}

static int by_text(const void *a, const void *b) { return str_cmp(*(const str *)a, *(const str *)b); }

/* Tokens of this cluster are checked by the cluster. */
static int check_own(struct apiserver *s, struct arena *a, struct val list, struct err *err)
{
	CLEANUP(buf_done) struct buf all = BUF_INIT(1 << 16);
	size_t n;
	str *own = (str *)authn_list(a, s->options.authn.service_account_issuers, &n);
	qsort(own, n, sizeof own[0], by_text);
	for (size_t i = 0; i < n; i++)
		buf_addf(&all, "%s" STR_FMT, i ? " " : "", STR_ARG(own[i]));
	VAL_EACH(one, list) {
		str url = val_str(*one, issuer, url);
		for (size_t i = 0; i < n; i++)
			if (str_eq(own[i], url))
				return err_set(err, ERR_INVALID, "issuer.url: Invalid value: \"" STR_FMT
					       "\": URL must not overlap with disallowed issuers: [" STR_FMT "]", STR_ARG(url),
					       STR_ARG(buf_str(&all)));
	}
	return 0;
}

int authn_config_check(struct apiserver *s, struct arena *a, struct val config, struct err *err)
{
	struct field_errors e;
	field_errors_init(&e, a);
	check_config(&e, config);
	if (e.n)
		return err_set(err, ERR_INVALID, "invalid authentication configuration: " STR_FMT, STR_ARG(field_errors_plain(&e)));
	return check_own(s, a, val_get(config, jwt), err);
}

/* ---- reading ---- */

static void take_anonymous(struct arena *a, struct val v, struct authn_anonymous *ret)
{
	struct val conditions = val_get(v, conditions);
	str *paths = ARENA_ARRAY(a, str, val_len(conditions) + 1);
	for (size_t i = 0; i < val_len(conditions); i++)
		paths[i] = arena_str(a, val_str(val_at(conditions, i), path));
	*ret = (struct authn_anonymous){ .enabled = val_bool(v, enabled), .paths = paths, .n_paths = val_len(conditions) };
}

int authn_config_read(struct apiserver *s, struct arena *a, str text, struct authn_way ways[AUTHN_ISSUERS_MAX], size_t *ret_n,
		      struct authn_anonymous *ret_anonymous, struct err *err)
{
	const struct authn_options *o = &s->options.authn;
	struct val config;
	size_t n = 0;
	if (oidc_flags_set(o))
		return err_set(err, ERR_INVALID, "authentication-config file and oidc-* flags are mutually exclusive");
	int r = config_decode(a, text, TYPE(apiserver_v1, AuthenticationConfiguration), &config, err);
	if (r < 0)
		return err_wrap(err, r, "failed to load authentication configuration from file \"%s\"", o->config_file);
	struct val anonymous = val_get(config, anonymous);
	if (val_exists(anonymous) && o->anonymous_auth_given)
		return err_set(err, ERR_INVALID, "anonymous: Forbidden: --anonymous-auth flag cannot be set when anonymous "
			       "field is configured in authentication configuration file");
	if ((r = authn_config_check(s, a, config, err)) < 0)
		return r;
	if (val_exists(anonymous))
		take_anonymous(a, anonymous, ret_anonymous);
	VAL_EACH(one, val_get(config, jwt)) {
		if ((r = oidc_way_of(*one, oidc_algorithms, &ways[n], err)) < 0)
			break;
		n++;
	}
	if (r == 0) {
		*ret_n = n;
		return 0;
	}
	while (n-- > 0)
		ways[n].free(ways[n].self);
	return r;
}
