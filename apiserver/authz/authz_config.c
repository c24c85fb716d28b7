/* The file of --authorization-config: read strictly, checked with Kubernetes' texts, made into those who decide. */
#include <ctype.h>
#include <errno.h>
#include <sys/stat.h>

#include "apiserver/authz/authz_priv.h"
#include "apiserver/config_file.h"
#include "base/clock.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "machinery/names.h"

enum { MATCH_CONDITIONS_MAX = 64 };

/* ---- those who always say the same ---- */

static int always_allow(void *self, struct arena *a, const struct authz_attributes *what, str *ret_reason, struct err *err)
{
	(void)self, (void)a, (void)what, (void)err;
	*ret_reason = STR_NONE;
	return AUTHZ_ALLOW;
}

static int always_deny(void *self, struct arena *a, const struct authz_attributes *what, str *ret_reason, struct err *err)
{
	(void)self, (void)a, (void)what, (void)err;
	*ret_reason = STR("Everything is forbidden.");
	return AUTHZ_NO_OPINION;
}

static int rules_of_all(void *self, struct arena *a, const struct user *u, str namespace, struct authz_rules *rules,
			struct err *err)
{
	struct val all = LIST(a, VAL_LIT("*"));
	(void)self, (void)u, (void)namespace, (void)err;
	val_add_item(&rules->resources, OBJECT(a, F(verbs, all), F(apiGroups, all), F(resources, all)));
	val_add_item(&rules->paths, OBJECT(a, F(verbs, all), F(nonResourceURLs, all)));
	return 0;
}

static int rules_of_none(void *self, struct arena *a, const struct user *u, str namespace, struct authz_rules *rules,
			 struct err *err)
{
	(void)self, (void)a, (void)u, (void)namespace, (void)rules, (void)err;
	return 0;
}

struct authz_way authz_always_way(bool allow)
{
	static int nothing;
	return (struct authz_way){ .type = allow ? "AlwaysAllow" : "AlwaysDeny", .name = allow ? "alwaysallow" : "alwaysdeny", .self = &nothing,
				   .decide = allow ? always_allow : always_deny, .rules = allow ? rules_of_all : rules_of_none };
}

/* ---- checks ---- */

static const str known_types[] = { STR_INIT("ABAC"), STR_INIT("AlwaysAllow"), STR_INIT("AlwaysDeny"), STR_INIT("Node"),
				   STR_INIT("RBAC"), STR_INIT("Webhook"), { NULL, 0 } };

static bool is_one_of(const str *list, str s)
{
	for (; list->p; list++)
		if (str_eq(*list, s))
			return true;
	return false;
}

/* 0 when it is not said. */
static int64_t duration_of(struct val v)
{
	int64_t ns = 0;
	(void)duration_parse(val_as_str(v), &ns, NULL);
	return ns;
}

static void check_duration(struct field_errors *e, const struct field_path *at, struct val v, int64_t max_ns, const char *rule)
{
	char text[DURATION_TEXT_MAX];
	int64_t ns = duration_of(v);
	if (ns == 0)
		field_required(e, at, "%s", "");
	else if (ns < 0 || ns > max_ns)
		field_invalid(e, at, VAL_STR(duration_format(ns, text)), "%s", rule);
}

/* A zero stands for the default. */
static void check_ttl(struct field_errors *e, const struct field_path *at, struct val v)
{
	if (duration_of(v))
		check_duration(e, at, v, INT64_MAX, "must be > 0s");
}

static void check_kubeconfig(struct field_errors *e, const struct field_path *at, struct val v)
{
	struct stat st;
	str path = val_as_str(v);
	if (!path.n) {
		field_required(e, at, "%s", "");
		return;
	}
	if (path.p[0] != '/') {
		field_invalid(e, at, v, "must be an absolute path");
		return;
	}
	const char *file = arena_str(e->arena, path).p;
	if (stat(file, &st) < 0) {
		const char *text = strerrordesc_np(errno);
		field_invalid(e, at, v, "error loading file: stat %s: %c%s", file, tolower((unsigned char)text[0]), text + 1);
	} else if (!S_ISREG(st.st_mode)) {
		field_invalid(e, at, v, "must be a regular file");
	}
}

/* The value as Kubernetes shows it, with the names that its fields have inside. */
static struct val connection_shown(struct arena *a, struct val info)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);
	struct val file = val_get(info, kubeConfigFile);
	buf_add(&b, STR("{\"Type\":"));
	json_quote(&b, val_str(info, type), false);
	buf_add(&b, STR(",\"KubeConfigFile\":"));
	if (val_exists(file))
		json_quote(&b, val_as_str(file), false);
	else
		buf_add(&b, STR("null"));
	buf_addc(&b, '}');
	str text = arena_str(a, buf_str(&b));
	return (struct val){ .type = VAL_RAW, .n = (uint32_t)text.n, .s = text.p };
}

static void check_connection(struct field_errors *e, const struct field_path *at, struct val info)
{
	static const str types[] = { STR_INIT("InClusterConfig"), STR_INIT("KubeConfigFile"), { NULL, 0 } };
	str type = val_str(info, type);
	struct val file = val_get(info, kubeConfigFile);
	if (!type.n)
		field_required(e, FIELD(at, "type"), "%s", "");
	else if (!is_one_of(types, type))
		field_not_supported(e, FIELD(at, "type"), connection_shown(e->arena, info), types);
	else if (str_eq(type, STR("KubeConfigFile")))
		check_kubeconfig(e, FIELD(at, "kubeConfigFile"), file);
	else if (val_exists(file))
		field_invalid(e, FIELD(at, "kubeConfigFile"), file, "can only be set when type=KubeConfigFile");
	else
		field_forbidden(e, FIELD(at, "type"), "InClusterConfig is not supported by c8s; use KubeConfigFile");
}

static void check_conditions(struct field_errors *e, const struct field_path *at, struct val conditions)
{
	if (val_len(conditions) > MATCH_CONDITIONS_MAX) {
		field_too_many(e, at, val_len(conditions), MATCH_CONDITIONS_MAX);
		return;
	}
	for (size_t i = 0; i < val_len(conditions); i++) {
		const struct field_path *expression = FIELD(FIELD_INDEX(at, i), "expression");
		if (!str_trim(val_str(val_at(conditions, i), expression)).n)
			field_required(e, expression, "%s", "");
		else
			field_forbidden(e, expression, "match conditions are not supported by c8s yet");
	}
}

static void check_word(struct field_errors *e, const struct field_path *at, struct val v, const str *known)
{
	if (!val_as_str(v).n)
		field_required(e, at, "%s", "");
	else if (!is_one_of(known, val_as_str(v)))
		field_not_supported(e, at, v, known);
}

static void check_webhook(struct field_errors *e, const struct field_path *at, struct val w)
{
	static const str versions[] = { STR_INIT("v1"), STR_INIT("v1beta1"), { NULL, 0 } };
	static const str condition_versions[] = { STR_INIT("v1"), { NULL, 0 } };
	static const str policies[] = { STR_INIT("NoOpinion"), STR_INIT("Deny"), { NULL, 0 } };
	struct val conditions = val_get(w, matchConditions), version = val_get(w, matchConditionSubjectAccessReviewVersion);
	const struct field_path *version_at = FIELD(at, "matchConditionSubjectAccessReviewVersion");

	check_duration(e, FIELD(at, "timeout"), val_get(w, timeout), 30 * NS_PER_S, "must be > 0s and <= 30s");
	check_ttl(e, FIELD(at, "authorizedTTL"), val_get(w, authorizedTTL));
	check_ttl(e, FIELD(at, "unauthorizedTTL"), val_get(w, unauthorizedTTL));
	check_word(e, FIELD(at, "subjectAccessReviewVersion"), val_get(w, subjectAccessReviewVersion), versions);
	if (val_as_str(version).n)
		check_word(e, version_at, version, condition_versions);
	else if (val_len(conditions))
		field_required(e, version_at, "required if match conditions are specified");
	check_word(e, FIELD(at, "failurePolicy"), val_get(w, failurePolicy), policies);
	check_connection(e, FIELD(at, "connectionInfo"), val_get(w, connectionInfo));
	check_conditions(e, FIELD(at, "matchConditions"), conditions);
}

static void check_name(struct field_errors *e, const struct field_path *at, struct val list, size_t i)
{
	struct name_errors wrong;
	struct val name = val_get(val_at(list, i), name);
	if (!val_as_str(name).n) {
		field_required(e, at, "%s", "");
	} else if (config_is_repeated(list, i, A_name)) {
		field_duplicate(e, at, name);
	} else if (name_check_dns1123_subdomain(val_as_str(name), &wrong)) {
		str why = name_errors_join(e->arena, &wrong, ", ");
		field_invalid(e, at, name, "authorizer name is invalid: " STR_FMT, STR_ARG(why));
	}
}

static void check_authorizer(struct field_errors *e, const struct field_path *at, struct val list, size_t i)
{
	struct val one = val_at(list, i), webhook = val_get(one, webhook);
	str type = val_str(one, type);
	bool is_webhook = str_eq(type, STR("Webhook"));
	if (!type.n) {
		field_required(e, FIELD(at, "type"), "%s", "");
		return;
	}
	if (!is_one_of(known_types, type)) {
		field_not_supported(e, FIELD(at, "type"), val_get(one, type), known_types);
		return;
	}
	if (!is_webhook && config_is_repeated(list, i, A_type)) {
		field_duplicate(e, FIELD(at, "type"), val_get(one, type));
		return;
	}
	check_name(e, FIELD(at, "name"), list, i);
	if (is_webhook && !val_exists(webhook))
		field_required(e, FIELD(at, "webhook"), "required when type=Webhook");
	else if (is_webhook)
		check_webhook(e, at, webhook);
	else if (val_exists(webhook))
		field_invalid(e, FIELD(at, "webhook"), VAL_LIT("non-null"), "may only be specified when type=Webhook");
	if (str_eq(type, STR("ABAC")))
		field_forbidden(e, FIELD(at, "type"), "ABAC is not supported by c8s");
}

/* As a set of bits of known_types: all but webhooks. */
static unsigned types_of(struct val list)
{
	unsigned types = 0;
	VAL_EACH(one, list)
		for (unsigned i = 0; known_types[i].p && !str_eq(val_str(*one, type), STR("Webhook")); i++)
			types |= (unsigned)str_eq(known_types[i], val_str(*one, type)) << i;
	return types;
}

static void add_missing(struct buf *text, unsigned missing)
{
	bool first = true;
	for (unsigned i = 0; known_types[i].p; i++)
		if (missing & (1U << i)) {
			buf_addf(text, "%s" STR_FMT, first ? "missing required types: [" : " ", STR_ARG(known_types[i]));
			first = false;
		}
	buf_addc(text, ']');
}

/* Those that are no webhooks are named as they have always been. */
static int check_names(struct arena *a, struct val list, unsigned required, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(1 << 16);
	unsigned missing = required & ~types_of(list);
	size_t wrong = 0;
	VAL_EACH(one, list) {
		str type = val_str(*one, type), name = val_str(*one, name);
		char *expected = (char *)arena_str(a, type).p;
		for (char *c = expected; *c; c++)
			*c = (char)tolower((unsigned char)*c);
		if (str_eq(type, STR("Webhook")) || str_eq(name, str_of(expected)))
			continue;
		buf_addf(&text, "%sexpected name %s for authorizer " STR_FMT " instead of " STR_FMT, wrong++ ? ", " : "", expected,
			 STR_ARG(type), STR_ARG(name));
	}
	if (missing) {
		buf_addf(&text, "%s", wrong++ ? ", " : "");
		add_missing(&text, missing);
	}
	if (!wrong)
		return 0;
	return err_set(err, ERR_INVALID, wrong > 1 ? "[" STR_FMT "]" : STR_FMT, STR_ARG(buf_str(&text)));
}

static int check(struct arena *a, struct val config, unsigned required, struct err *err)
{
	struct field_errors e;
	struct val list = val_get(config, authorizers);
	const struct field_path *at = FIELD(NULL, "authorizers");
	field_errors_init(&e, a);
	if (!val_len(list))
		field_required(&e, at, "at least one authorization mode must be defined");
	for (size_t i = 0; i < val_len(list); i++)
		check_authorizer(&e, FIELD_INDEX(at, i), list, i);
	if (e.n)
		return err_set(err, ERR_INVALID, STR_FMT, STR_ARG(field_errors_plain(&e)));
	return check_names(a, list, required, err);
}

/* ---- making ---- */

static int64_t ttl_of(struct val ttl, struct val keep, int64_t usual_ns)
{
	if (val_exists(keep) && !val_as_bool(keep))
		return 0;
	int64_t ns = duration_of(ttl);
	return ns ? ns : usual_ns;
}

static int make_webhook(struct apiserver *s, struct arena *a, str name, struct val w, struct authz_way *ret, struct err *err)
{
	const struct authz_webhook_options o = {
		.name = arena_str(a, name).p,
		.kubeconfig_file = arena_str(a, val_str(w, connectionInfo, kubeConfigFile)).p,
		.version = arena_str(a, val_str(w, subjectAccessReviewVersion)).p,
		.authorized_ttl_ns = ttl_of(val_get(w, authorizedTTL), val_get(w, cacheAuthorizedRequests), 300 * NS_PER_S),
		.unauthorized_ttl_ns = ttl_of(val_get(w, unauthorizedTTL), val_get(w, cacheUnauthorizedRequests), 30 * NS_PER_S),
		.timeout_ns = duration_of(val_get(w, timeout)),
		.deny_on_failure = str_eq(val_str(w, failurePolicy), STR("Deny")),
	};
	return authz_webhook_way(s, &o, ret, err);
}

static int make(struct apiserver *s, struct arena *a, struct val one, struct authz_way *ret, struct err *err)
{
	str type = val_str(one, type);
	if (str_eq(type, STR("Webhook")))
		return make_webhook(s, a, val_str(one, name), val_get(one, webhook), ret, err);
	if (str_eq(type, STR("RBAC")))
		return authz_rbac_way(s, ret, err);
	if (str_eq(type, STR("Node")))
		return authz_node_way(s, ret, err);
	*ret = authz_always_way(str_eq(type, STR("AlwaysAllow")));
	return 0;
}

int authz_config_read(struct apiserver *s, str text, struct authz_chain *c, unsigned *types, struct err *err)
{
	const struct authz_options *o = &s->options.authz;
	struct val config;
	if ((o->modes && o->modes[0]) || o->webhook_config_file)
		return err_set(err, ERR_INVALID, "--authorization-config can not be specified when --authorization-mode or "
			       "--authorization-webhook-* flags are defined");
	int r = config_decode(&c->arena, text, TYPE(apiserver_v1, AuthorizationConfiguration), &config, err);
	if (r < 0)
		return err_wrap(err, r, "failed to load AuthorizationConfiguration from file");
	struct val list = val_get(config, authorizers);
	if ((r = check(&c->arena, config, *types, err)) < 0)
		return r;
	if (val_len(list) > AUTHZ_WAYS_MAX)
		return err_set(err, ERR_INVALID, "more than %d authorizers", AUTHZ_WAYS_MAX);
	VAL_EACH(one, list) {
		if ((r = make(s, &c->arena, *one, &c->ways[c->n], err)) < 0)
			return r;
		c->n++;
	}
	*types = types_of(list);
	return 0;
}
