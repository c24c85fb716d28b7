/*
 * Webhook configurations, and the rules and conditions that admission policies share with them (see
 * validate_admission.c). The language of the expressions is not looked at here.
 */
#include "codec/atoms.h"
#include "machinery/validate_groups.h"

enum { CONDITIONS_MAX = 64, WEBHOOK_TIMEOUT_MAX = 30 };

/* ---- where a webhook is ---- */

/* The parts of a URL that matter here; what is absent has no text (p == NULL). */
struct url {
	str scheme, user, host, query, fragment;
};

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

/* The scheme before the first ':', if that is one. Returns what is wrong, or NULL. */
static const char *cut_scheme(str *rest, str *ret_scheme)
{
	for (size_t i = 0; i < rest->n; i++) {
		char c = rest->p[i];
		if (is_letter(c) || (i > 0 && (is_digit(c) || c == '+' || c == '-' || c == '.')))
			continue;
		if (c != ':')
			return NULL;
		if (i == 0)
			return "missing protocol scheme";
		*ret_scheme = str_head(*rest, i);
		*rest = str_skip(*rest, i + 1);
		return NULL;
	}
	return NULL;
}

/* What Go says about the first bad escape, character or port of an authority; nothing when it is fine. */
static str host_error(struct arena *a, str host)
{
	ptrdiff_t colon = str_rchr(host, ':'), bracket = str_rchr(host, ']');
	str port = colon > bracket ? str_skip(host, (size_t)colon + 1) : STR_NONE;

	if (str_starts(host, STR("[")) && bracket < 0)
		return STR("missing ']' in host");
	for (size_t i = 0; i < port.n; i++)
		if (!is_digit(port.p[i]))
			return arena_printf(a, "invalid port \":" STR_FMT "\" after host", STR_ARG(port));
	for (size_t i = 0; i < host.n; i++) {
		static const str allowed = STR_INIT("!$&'()*+,;=:[]<>\"-_.~%");
		char c = host.p[i];
		if (!is_letter(c) && !is_digit(c) && (unsigned char)c < 0x80 && str_chr(allowed, c) < 0)
			return arena_printf(a, "invalid character \"%c\" in host name", c);
	}
	return STR_NONE;
}

static str escape_error(struct arena *a, str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] == '%' && (i + 2 >= s.n || !is_hex(s.p[i + 1]) || !is_hex(s.p[i + 2])))
			return arena_printf(a, "invalid URL escape \"" STR_FMT "\"", STR_ARG(str_head(str_skip(s, i), 3)));
	return STR_NONE;
}

/* As Go's url.Parse; returns what is wrong, or nothing. */
static str url_parse(struct arena *a, str text, struct url *ret)
{
	str rest = text, authority, path, segment;

	*ret = (struct url){ 0 };
	for (size_t i = 0; i < text.n; i++)
		if ((unsigned char)text.p[i] < 0x20 || text.p[i] == 0x7f)
			return STR("net/url: invalid control character in URL");
	str_cut(rest, '#', &rest, &ret->fragment);
	const char *wrong = cut_scheme(&rest, &ret->scheme);
	if (wrong)
		return str_of(wrong);
	str_cut(rest, '?', &rest, &ret->query);
	if (!str_starts(rest, STR("//"))) {
		str_cut(rest, '/', &segment, &path);
		if (!ret->scheme.n && str_chr(segment, ':') >= 0)
			return STR("first path segment in URL cannot contain colon");
		return escape_error(a, rest);
	}
	bool has_path = str_cut(str_skip(rest, 2), '/', &authority, &path);
	ptrdiff_t at = str_rchr(authority, '@');
	ret->user = at < 0 ? STR_NONE : str_head(authority, (size_t)at);
	ret->host = at < 0 ? authority : str_skip(authority, (size_t)at + 1);
	str bad = host_error(a, ret->host);
	return bad.n || !has_path ? bad : escape_error(a, path);
}

void check_webhook_url(struct field_errors *e, const struct field_path *at, str text)
{
	static const char form[] = "; desired format: https://host[/path]";
	struct url url;
	str wrong = url_parse(e->arena, text, &url);

	if (wrong.n) {
		field_required(e, at, "url must be a valid URL: parse \"" STR_FMT "\": " STR_FMT "%s", STR_ARG(text),
			       STR_ARG(wrong), form);
		return;
	}
	if (!str_eq(url.scheme, STR("https")))
		field_invalid(e, at, VAL_STR(ascii_lower(e->arena, url.scheme)),
			      "'https' is the only allowed URL scheme%s", form);
	if (url.host.n == 0)
		field_invalid(e, at, VAL_LIT(""), "host must be specified%s", form);
	if (url.user.p)
		field_invalid(e, at, VAL_STR(url.user), "user information is not permitted in the URL");
	if (url.fragment.n)
		field_invalid(e, at, VAL_STR(url.fragment), "fragments are not permitted in the URL");
	if (url.query.n)
		field_invalid(e, at, VAL_STR(url.query), "query parameters are not permitted in the URL");
}

static void check_service_path(struct field_errors *e, const struct field_path *at, str path)
{
	struct name_errors found;
	str rest, step;
	size_t i = 0;

	if (path.n == 0 || str_eq(path, STR("/")))
		return;
	if (str_eq(path, STR("//"))) {
		field_invalid(e, at, VAL_STR(path), "segment[0] may not be empty");
		return;
	}
	if (path.p[0] != '/')
		field_invalid(e, at, VAL_STR(path), "must start with a '/'");
	rest = str_skip(path, 1);
	if (str_ends(rest, STR("/")))
		rest.n--;
	for (bool more = true; more; i++) {
		more = str_cut(rest, '/', &step, &rest);
		if (step.n == 0)
			field_invalid(e, at, VAL_STR(path), "segment[%zu] may not be empty", i);
		else if (name_check_dns1123_subdomain(step, &found))
			for (size_t j = 0; j < found.n; j++)
				field_invalid(e, at, VAL_STR(path), "segment[%zu]: " STR_FMT, i, STR_ARG(found.text[j]));
	}
}

void check_webhook_service(struct field_errors *e, const struct field_path *at, struct val service)
{
	int64_t port = val_int(service, port);
	struct name_errors found;

	/* Kubernetes takes each of the two for the other. */
	check_given(e, FIELD(at, "name"), val_str(service, namespace));
	check_given(e, FIELD(at, "namespace"), val_str(service, name));
	if (name_check_port_number(port, &found))
		field_invalid(e, FIELD(at, "port"), val_of_int(port), "port is not valid: " STR_FMT, STR_ARG(found.text[0]));
	check_service_path(e, FIELD(at, "path"), val_str(service, path));
}

void check_webhook_client(struct field_errors *e, const struct field_path *at, struct val config)
{
	if (val_has(config, url) == val_has(config, service))
		field_required(e, at, "exactly one of url or service is required");
	else if (val_has(config, url))
		check_webhook_url(e, FIELD(at, "url"), val_str(config, url));
	else
		check_webhook_service(e, FIELD(at, "service"), val_get(config, service));
}

/* ---- rules: which requests are meant ---- */

static void check_resources(struct field_errors *e, const struct field_path *at, struct val resources)
{
	CLEANUP(map_done) struct map all_subresources = MAP_INIT, all_resources = MAP_INIT; /* x of x/any and of any/x */
	bool double_star = false, star = false, plain = false;
	size_t i = 0;

	if (val_len(resources) == 0)
		field_missing(e, at);
	VAL_EACH(item, resources) {
		const struct field_path *at_item = FIELD_INDEX(at, i++);
		str text = val_as_str(*item), resource, subresource;
		if (!check_given(e, at_item, text))
			continue;
		double_star |= str_eq(text, STR("*/*"));
		star |= str_eq(text, STR("*"));
		if (!str_cut(text, '/', &resource, &subresource)) {
			plain = !str_eq(text, STR("*"));
			continue;
		}
		if (set_has(&all_subresources, resource))
			field_invalid(e, at_item, *item, "if '" STR_FMT "/*' is present, must not specify " STR_FMT,
				      STR_ARG(resource), STR_ARG(text));
		if (set_has(&all_resources, subresource))
			field_invalid(e, at_item, *item, "if '*/" STR_FMT "' is present, must not specify " STR_FMT,
				      STR_ARG(subresource), STR_ARG(text));
		if (str_eq(subresource, STR("*")))
			set_add(&all_subresources, resource);
		if (str_eq(resource, STR("*")))
			set_add(&all_resources, subresource);
	}
	if (val_len(resources) > 1 && double_star)
		field_invalid(e, at, resources, "if '*/*' is present, must not specify other resources");
	if (star && plain)
		field_invalid(e, at, resources, "if '*' is present, must not specify other resources without subresources");
}

/* A list that is not empty, and of which '*' is the only item if it is there. */
static void check_star_list(struct field_errors *e, const struct field_path *at, struct val list, const char *what)
{
	if (val_len(list) == 0)
		field_missing(e, at);
	if (val_len(list) > 1 && list_has(list, STR("*")))
		field_invalid(e, at, list, "if '*' is present, must not specify other %s", what);
}

void check_admission_rule(struct field_errors *e, const struct field_path *at, struct val rule)
{
	static const str operations[] = { STR_INIT("*"), STR_INIT("CONNECT"), STR_INIT("CREATE"), STR_INIT("DELETE"),
					  STR_INIT("UPDATE"), { NULL, 0 } };
	static const str scopes[] = { STR_INIT("*"), STR_INIT("Cluster"), STR_INIT("Namespaced"), { NULL, 0 } };
	struct val versions = val_get(rule, apiVersions);
	size_t i = 0;

	check_star_list(e, FIELD(at, "operations"), val_get(rule, operations), "operations");
	VAL_EACH(operation, val_get(rule, operations))
		check_one_of(e, FIELD_INDEX(FIELD(at, "operations"), i++), val_as_str(*operation), operations);
	check_star_list(e, FIELD(at, "apiGroups"), val_get(rule, apiGroups), "API groups");
	check_star_list(e, FIELD(at, "apiVersions"), versions, "API versions");
	i = 0;
	VAL_EACH(version, versions)
		check_given(e, FIELD_INDEX(FIELD(at, "apiVersions"), i++), val_as_str(*version));
	check_resources(e, FIELD(at, "resources"), val_get(rule, resources));
	if (val_has(rule, scope))
		check_one_of(e, FIELD(at, "scope"), val_str(rule, scope), scopes);
}

void check_match_conditions(struct field_errors *e, const struct field_path *at, struct val conditions)
{
	CLEANUP(map_done) struct map names = MAP_INIT;
	size_t i = 0;

	if (val_len(conditions) > CONDITIONS_MAX)
		field_too_many(e, at, val_len(conditions), CONDITIONS_MAX);
	VAL_EACH(condition, conditions) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		str name = val_str(*condition, name);
		check_given(e, FIELD(item, "expression"), str_trim(val_str(*condition, expression)));
		if (check_given(e, FIELD(item, "name"), name)) {
			check_label_key(e, FIELD(item, "name"), name);
			if (!set_add(&names, name))
				field_duplicate(e, FIELD(item, "name"), VAL_STR(name));
		}
	}
}

/* ---- configurations ---- */

const str failure_policies[] = { STR_INIT("Fail"), STR_INIT("Ignore"), { NULL, 0 } };
const str match_policies[] = { STR_INIT("Equivalent"), STR_INIT("Exact"), { NULL, 0 } };
const str reinvocation_policies[] = { STR_INIT("IfNeeded"), STR_INIT("Never"), { NULL, 0 } };
static const str harmless[] = { STR_INIT("None"), STR_INIT("NoneOnDryRun"), { NULL, 0 } };
static const str review_versions[] = { STR_INIT("v1"), STR_INIT("v1beta1"), { NULL, 0 } };

/* What an update tolerates because the configuration had it before. */
struct webhooks_before {
	bool side_effects, unknown_versions, double_names, bad_selector, same_conditions;
};

static void check_review_versions(struct field_errors *e, const struct field_path *at, struct val versions,
				  bool allow_unknown)
{
	CLEANUP(map_done) struct map seen = MAP_INIT;
	bool known = false;
	size_t i = 0;

	if (val_len(versions) == 0) {
		field_required(e, at, "must specify one of v1, v1beta1");
		return;
	}
	VAL_EACH(version, versions) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		if (!set_add(&seen, val_as_str(*version))) {
			field_invalid(e, item, *version, "duplicate version");
			continue;
		}
		check_name(e, item, val_as_str(*version), name_check_dns1035_label);
		known |= str_in(val_as_str(*version), review_versions);
	}
	if (!known && !allow_unknown)
		field_invalid(e, at, versions, "must include at least one of v1, v1beta1");
}

static void check_side_effects(struct field_errors *e, const struct field_path *at, struct val effects, bool allow_any)
{
	static const str all[] = { STR_INIT("None"), STR_INIT("NoneOnDryRun"), STR_INIT("Some"), STR_INIT("Unknown"),
				   { NULL, 0 } };
	if (!val_exists(effects))
		field_required(e, at, "must specify one of %s",
			       allow_any ? "None, NoneOnDryRun, Some, Unknown" : "None, NoneOnDryRun");
	else
		check_one_of(e, at, val_as_str(effects), allow_any ? all : harmless);
}

static void check_webhook(struct field_errors *e, const struct field_path *at, struct val hook,
			  const struct webhooks_before *before)
{
	struct val timeout = val_get(hook, timeoutSeconds);
	str name = val_str(hook, name);
	size_t i = 0;

	if (check_given(e, FIELD(at, "name"), name))
		check_name(e, FIELD(at, "name"), name, name_check_fully_qualified);
	VAL_EACH(rule, val_get(hook, rules))
		check_admission_rule(e, FIELD_INDEX(FIELD(at, "rules"), i++), *rule);
	if (val_has(hook, failurePolicy))
		check_one_of(e, FIELD(at, "failurePolicy"), val_str(hook, failurePolicy), failure_policies);
	if (val_has(hook, matchPolicy))
		check_one_of(e, FIELD(at, "matchPolicy"), val_str(hook, matchPolicy), match_policies);
	check_side_effects(e, FIELD(at, "sideEffects"), val_get(hook, sideEffects), before->side_effects);
	if (val_exists(timeout) && (val_as_int(timeout) < 1 || val_as_int(timeout) > WEBHOOK_TIMEOUT_MAX))
		field_invalid(e, FIELD(at, "timeoutSeconds"), timeout,
			      "the timeout value must be between 1 and %d seconds", WEBHOOK_TIMEOUT_MAX);
	check_label_selector(e, FIELD(at, "namespaceSelector"), val_get(hook, namespaceSelector), before->bad_selector);
	check_label_selector(e, FIELD(at, "objectSelector"), val_get(hook, objectSelector), before->bad_selector);
	if (val_has(hook, reinvocationPolicy)) /* only mutating ones have it */
		check_one_of(e, FIELD(at, "reinvocationPolicy"), val_str(hook, reinvocationPolicy), reinvocation_policies);
	check_webhook_client(e, FIELD(at, "clientConfig"), val_get(hook, clientConfig));
	if (!before->same_conditions)
		check_match_conditions(e, FIELD(at, "matchConditions"), val_get(hook, matchConditions));
	check_review_versions(e, FIELD(at, "admissionReviewVersions"), val_get(hook, admissionReviewVersions),
			      before->unknown_versions);
}

static void check_webhooks_all(struct field_errors *e, struct val configuration, const struct webhooks_before *before)
{
	CLEANUP(map_done) struct map names = MAP_INIT;
	size_t i = 0;

	check_generic_meta(e, FIELD(NULL, "metadata"), val_get(configuration, metadata), false, name_rule_subdomain);
	VAL_EACH(hook, val_get(configuration, webhooks)) {
		const struct field_path *at = FIELD_INDEX(FIELD(NULL, "webhooks"), i++);
		str name = val_str(*hook, name);
		check_webhook(e, at, *hook, before);
		if (name.n && !set_add(&names, name) && !before->double_names)
			field_duplicate(e, FIELD(at, "name"), VAL_STR(name));
	}
}

void check_webhooks(struct field_errors *e, struct val configuration)
{
	check_webhooks_all(e, configuration, &(struct webhooks_before){ 0 });
}

static bool has_known_version(struct val versions)
{
	VAL_EACH(version, versions)
		if (str_in(val_as_str(*version), review_versions))
			return true;
	return false;
}

static struct webhooks_before webhooks_before(struct arena *a, struct val now, struct val old)
{
	CLEANUP(map_done) struct map names = MAP_INIT;
	struct webhooks_before b = { .same_conditions = val_len(now) == val_len(old) };
	struct field_errors of_old;
	size_t i = 0;

	field_errors_init(&of_old, a);
	VAL_EACH(hook, old) {
		struct val versions = val_get(*hook, admissionReviewVersions);
		b.side_effects |= !str_in(val_str(*hook, sideEffects), harmless);
		b.unknown_versions |= val_len(versions) && !has_known_version(versions);
		b.double_names |= !set_add(&names, val_str(*hook, name));
		check_label_selector(&of_old, NULL, val_get(*hook, namespaceSelector), false);
		check_label_selector(&of_old, NULL, val_get(*hook, objectSelector), false);
		b.same_conditions &= val_semantic_equal(TYPE(admissionregistration_v1, MatchCondition),
							val_get(val_at(now, i++), matchConditions),
							val_get(*hook, matchConditions));
	}
	b.bad_selector = of_old.n > 0;
	return b;
}

void check_webhooks_update(struct field_errors *e, struct val configuration, struct val old)
{
	struct webhooks_before before = webhooks_before(e->arena, val_get(configuration, webhooks), val_get(old, webhooks));
	check_webhooks_all(e, configuration, &before);
}
