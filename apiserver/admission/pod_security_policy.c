/* Which standard holds where: labels of namespaces over defaults of the configuration. */
#include "apiserver/admission/pod_security.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "machinery/names.h"

static const str level_names[] = {
	[POD_PRIVILEGED] = STR_INIT("privileged"), [POD_BASELINE] = STR_INIT("baseline"), [POD_RESTRICTED] = STR_INIT("restricted"),
};

#define LEVELS "must be one of privileged, baseline, restricted"
#define VERSIONS "must be \"latest\" or \"v1.x\""

str pod_standard_text(struct arena *a, struct pod_standard s)
{
	if (s.minor == POD_LATEST)
		return arena_printf(a, STR_FMT ":latest", STR_ARG(level_names[s.level]));
	return arena_printf(a, STR_FMT ":v1.%d", STR_ARG(level_names[s.level]), s.minor);
}

/* A text that is no level is taken for the strictest one. */
static bool level_parse(str text, enum pod_level *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(level_names); i++)
		if (str_eq(text, level_names[i])) {
			*ret = (enum pod_level)i;
			return true;
		}
	*ret = POD_RESTRICTED;
	return false;
}

/* v1.0, v1.36; a text that is no version is taken for the latest. */
static bool version_parse(str text, int *ret)
{
	int64_t minor;
	*ret = POD_LATEST;
	if (str_eq(text, STR("latest")))
		return true;
	str digits = str_skip(text, 3);
	if (!str_starts(text, STR("v1.")) || !digits.n || (digits.n > 1 && digits.p[0] == '0') || digits.p[0] == '-' ||
	    !str_to_i64(digits, &minor))
		return false;
	*ret = minor < POD_FUTURE ? (int)minor : POD_FUTURE - 1;
	return true;
}

/* ---- namespaces ---- */

enum { ENFORCE, ENFORCE_VERSION, AUDIT, AUDIT_VERSION, WARN, WARN_VERSION, LABELS };

static const str label_names[LABELS] = {
	STR_INIT("enforce"), STR_INIT("enforce-version"), STR_INIT("audit"),
	STR_INIT("audit-version"), STR_INIT("warn"), STR_INIT("warn-version"),
};

static bool labels_find(struct val labels, struct val found[LABELS])
{
	bool any = false;
	VAL_EACH_MEMBER(m, labels) {
		str key = atom_str(m->key);
		if (!str_starts(key, STR(POD_SECURITY_PREFIX)))
			continue;
		key = str_skip(key, STR(POD_SECURITY_PREFIX).n);
		for (size_t i = 0; i < LABELS; i++)
			if (str_eq(key, label_names[i])) {
				found[i] = m->val;
				any = true;
			}
	}
	return any;
}

/* One mode: level and version, each as its label says if there is one. True: the level's label makes sense. */
static bool mode_read(struct pod_standard *s, const struct val found[LABELS], int at, struct field_errors *e)
{
	static const struct field_path metadata = { NULL, STR_INIT("metadata"), 0, STEP_NAME };
	static const struct field_path labels = { &metadata, STR_INIT("labels"), 0, STEP_NAME };
	bool good = false;
	for (int i = at; i <= at + 1; i++) {
		bool version = i > at;
		str text = val_as_str(found[i]);
		if (!val_exists(found[i]))
			continue;
		bool parses = version ? version_parse(text, &s->minor) : level_parse(text, &s->level);
		good |= parses && !version;
		if (parses)
			continue;
		str key = arena_join(e->arena, STR(POD_SECURITY_PREFIX), label_names[i]);
		field_invalid(e, FIELD_KEY(&labels, key), found[i], "%s", version ? VERSIONS : LEVELS);
	}
	return good;
}

struct pod_policy pod_policy_of(struct val labels, const struct pod_policy *defaults, struct field_errors *e,
				struct pod_labels *ret_labels)
{
	struct val found[LABELS] = { 0 };
	struct pod_policy p = *defaults;
	bool any = labels_find(labels, found);
	if (ret_labels)
		*ret_labels = (struct pod_labels){
			.enforce = val_exists(found[ENFORCE]) || val_exists(found[ENFORCE_VERSION]),
			.audit = val_exists(found[AUDIT]) || val_exists(found[AUDIT_VERSION]),
			.warn = val_exists(found[WARN]) || val_exists(found[WARN_VERSION]),
		};
	if (!any)
		return p;
	bool enforces = mode_read(&p.enforce, found, ENFORCE, e);
	if (!mode_read(&p.audit, found, AUDIT, e) && val_exists(found[AUDIT]))
		p.audit.level = POD_PRIVILEGED;
	if (!mode_read(&p.warn, found, WARN, e) && val_exists(found[WARN]))
		p.warn.level = POD_PRIVILEGED;
	/* what will be refused is warned about in what makes pods */
	if (!val_exists(found[WARN]) && enforces && p.enforce.level > p.warn.level) {
		p.warn.level = p.enforce.level;
		if (!val_exists(found[WARN_VERSION]))
			p.warn.minor = p.enforce.minor;
	}
	return p;
}

/* ---- configuration ---- */

static void default_read(struct val defaults, int at, const struct field_path *path, struct pod_standard *s,
			 struct field_errors *e)
{
	struct val level = val_find(defaults, label_names[at]), version = val_find(defaults, label_names[at + 1]);
	*s = (struct pod_standard){ POD_PRIVILEGED, POD_LATEST };
	if (val_as_str(level).n && !level_parse(val_as_str(level), &s->level))
		field_invalid(e, FIELD_STR(path, label_names[at]), level, LEVELS);
	if (val_as_str(version).n && !version_parse(val_as_str(version), &s->minor))
		field_invalid(e, FIELD_STR(path, label_names[at + 1]), version, VERSIONS);
}

static void exempt_check(struct val list, const struct field_path *path, name_check *check, struct field_errors *e)
{
	struct name_errors bad;
	for (size_t i = 0; i < val_len(list); i++) {
		struct val item = val_at(list, i);
		bool twice = false;
		for (size_t k = 0; k < i && !twice; k++)
			twice = val_equal(val_at(list, k), item);
		if (!check && !val_as_str(item).n)
			field_invalid(e, FIELD_INDEX(path, i), item, "username must not be empty");
		else if (check && check(val_as_str(item), &bad))
			field_invalid(e, FIELD_INDEX(path, i), item, STR_FMT,
				      STR_ARG(name_errors_join(e->arena, &bad, ", ")));
		else if (twice)
			field_duplicate(e, FIELD_INDEX(path, i), item);
	}
}

static int kind_check(struct val tree, struct err *err)
{
	static const str versions[] = { STR_INIT("v1"), STR_INIT("v1beta1"), STR_INIT("v1alpha1") };
	str api_version = val_str(tree, apiVersion), kind = val_str(tree, kind), group, version;
	str_cut(api_version, '/', &group, &version);
	if (str_eq(group, STR("pod-security.admission.config.k8s.io")) && str_eq(kind, STR("PodSecurityConfiguration")))
		for (size_t i = 0; i < ARRAY_LEN(versions); i++)
			if (str_eq(version, versions[i]))
				return 0;
	return err_set(err, ERR_INVALID, "no kind \"" STR_FMT "\" is registered for version \"" STR_FMT "\"", STR_ARG(kind),
		       STR_ARG(api_version));
}

int pod_security_config_read(struct arena *a, struct val tree, struct pod_security_config *ret, struct err *err)
{
	static const struct field_path defaults_path = { NULL, STR_INIT("defaults"), 0, STEP_NAME };
	static const struct field_path exempt_path = { NULL, STR_INIT("exemptions"), 0, STEP_NAME };
	struct val typed = VAL_EMPTY;
	struct field_errors e;
	int r = val_exists(tree) ? kind_check(tree, err) : 0;
	if (r == 0 && val_exists(tree))
		r = val_canonical(a, tree, TYPE(podsecurity_v1, PodSecurityConfiguration), NULL, &typed, err);
	if (r < 0)
		return r;
	field_errors_init(&e, a);
	struct val defaults = val_get(typed, defaults), exempt = val_get(typed, exemptions);
	default_read(defaults, ENFORCE, &defaults_path, &ret->defaults.enforce, &e);
	default_read(defaults, WARN, &defaults_path, &ret->defaults.warn, &e);
	default_read(defaults, AUDIT, &defaults_path, &ret->defaults.audit, &e);
	ret->namespaces = val_get(exempt, namespaces);
	ret->runtime_classes = val_get(exempt, runtimeClasses);
	ret->usernames = val_get(exempt, usernames);
	exempt_check(ret->namespaces, FIELD(&exempt_path, "namespaces"), name_check_dns1123_label, &e);
	exempt_check(ret->runtime_classes, FIELD(&exempt_path, "runtimeClasses"), name_check_dns1123_subdomain, &e);
	exempt_check(ret->usernames, FIELD(&exempt_path, "usernames"), NULL, &e);
	return e.n ? err_set(err, ERR_INVALID, STR_FMT, STR_ARG(field_errors_plain(&e))) : 0;
}
