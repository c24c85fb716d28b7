/* Config maps, secrets, service accounts, namespaces. */
#include "base/encoding.h"
#include "codec/types.h"
#include "kubectl/describe.h"

static void say_labels(struct ktl_page *p, struct val object)
{
	ktl_say_labels(p, "Labels", val_get(object, metadata, labels));
	ktl_say_annotations(p, "Annotations", val_get(object, metadata, annotations));
}

/* What base64 stands for; empty when it is none. */
static str decoded(struct ktl *k, str text)
{
	char *p = ARENA_ARRAY(&k->arena, char, base64_decoded_max(text.n) + 1);
	size_t n = 0;
	return base64_decode(p, text, &n, NULL) < 0 ? STR_NONE : str_span(p, n);
}

int ktl_describe_config_map(struct ktl_page *p, struct val map)
{
	ktl_say_name(p, map);
	say_labels(p, map);
	ktl_say(p, 0, "\nData\n====\n");
	VAL_EACH_MEMBER(m, val_get(map, data))
		ktl_say(p, 0, STR_FMT ":\n----\n" STR_FMT "\n\n", STR_ARG(atom_str(m->key)), STR_ARG(val_as_str(m->val)));
	ktl_say(p, 0, "\nBinaryData\n====\n");
	VAL_EACH_MEMBER(m, val_get(map, binaryData))
		ktl_say(p, 0, STR_FMT ": %zu bytes\n", STR_ARG(atom_str(m->key)), decoded(p->k, val_as_str(m->val)).n);
	ktl_say(p, 0, "\n");
	ktl_say_events(p, map, STR("ConfigMap"));
	return 0;
}

int ktl_describe_secret(struct ktl_page *p, struct val secret)
{
	bool token = str_eq(val_str(secret, type), STR("kubernetes.io/service-account-token"));
	ktl_say_name(p, secret);
	say_labels(p, secret);
	ktl_say(p, 0, "\nType:\t" STR_FMT "\n", STR_ARG(val_str(secret, type)));
	ktl_say(p, 0, "\nData\n====\n");
	VAL_EACH_MEMBER(m, val_get(secret, data)) {
		str key = atom_str(m->key), value = decoded(p->k, val_as_str(m->val));
		if (token && str_eq(key, STR("token")))
			ktl_say(p, 0, STR_FMT ":\t" STR_FMT "\n", STR_ARG(key), STR_ARG(value));
		else
			ktl_say(p, 0, STR_FMT ":\t%zu bytes\n", STR_ARG(key), value.n);
	}
	return 0;
}

int ktl_describe_service_account(struct ktl_page *p, struct val account)
{
	struct val secrets = val_get(account, imagePullSecrets);
	bool first = true;
	ktl_say_name(p, account);
	say_labels(p, account);
	if (!val_len(secrets))
		ktl_say(p, 0, "Image pull secrets:\t<none>\n");
	VAL_EACH(s, secrets) {
		ktl_say(p, 0, "%s\t" STR_FMT "\n", first ? "Image pull secrets:" : "                   ", STR_ARG(val_str(*s, name)));
		first = false;
	}
	ktl_say_events(p, account, STR("ServiceAccount"));
	return 0;
}

/* ---- namespaces ---- */

static void say_quotas(struct ktl_page *p, struct val quotas)
{
	ktl_say(p, 0, val_len(quotas) ? "\nResource Quotas\n" : "\nNo resource quota.\n");
	VAL_EACH(q, quotas) {
		struct val scopes = val_get(*q, spec, scopes);
		ktl_say(p, 1, "Name:\t" STR_FMT "\n", STR_ARG(val_str(*q, metadata, name)));
		if (val_len(scopes))
			ktl_say(p, 1, "Scopes:\t" STR_FMT "\n", STR_ARG(ktl_join(p->k, scopes, ", ")));
		ktl_say(p, 1, "Resource\tUsed\tHard\n");
		ktl_say(p, 1, "--------\t---\t---\n");
		VAL_EACH_MEMBER(m, val_get(*q, status, hard)) {
			str used = val_as_str(val_member(val_get(*q, status, used), m->key));
			ktl_say(p, 1, STR_FMT "\t" STR_FMT "\t" STR_FMT "\n", STR_ARG(atom_str(m->key)), STR_ARG(used.n ? used : STR("0")), STR_ARG(val_as_str(m->val)));
		}
	}
}

/* One line for every resource that any of the maps has. */
static void say_limit(struct ktl_page *p, const char *space, struct val limit)
{
	static const atom maps[] = { A_min, A_max, A_defaultRequest, A_default, A_maxLimitRequestRatio };
	struct val names = VAL_EMPTY_OBJECT;
	for (size_t i = 0; i < ARRAY_LEN(maps); i++)
		VAL_EACH_MEMBER(m, val_member(limit, maps[i]))
			names = val_put(&p->k->arena, names, m->key, val_of_bool(true));
	VAL_EACH_MEMBER(n, val_sorted(&p->k->arena, names)) {
		ktl_say(p, 0, "%s" STR_FMT "\t" STR_FMT, space, STR_ARG(val_str(limit, type)), STR_ARG(atom_str(n->key)));
		for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
			str amount = val_as_str(val_member(val_member(limit, maps[i]), n->key));
			ktl_say(p, 0, "\t" STR_FMT, STR_ARG(amount.n ? amount : STR("-")));
		}
		ktl_say(p, 0, "\n");
	}
}

int ktl_describe_limit_range(struct ktl_page *p, struct val range)
{
	ktl_say_name(p, range);
	ktl_say(p, 0, "Type\tResource\tMin\tMax\tDefault Request\tDefault Limit\tMax Limit/Request Ratio\n");
	ktl_say(p, 0, "----\t--------\t---\t---\t---------------\t-------------\t-----------------------\n");
	VAL_EACH(limit, val_get(range, spec, limits))
		say_limit(p, "", *limit);
	return 0;
}

static void say_limits(struct ktl_page *p, struct val ranges)
{
	if (!val_len(ranges)) {
		ktl_say(p, 0, "\nNo LimitRange resource.\n");
		return;
	}
	ktl_say(p, 0, "\nResource Limits\n Type\tResource\tMin\tMax\tDefault Request\tDefault Limit\tMax Limit/Request Ratio\n");
	ktl_say(p, 0, " ----\t--------\t---\t---\t---------------\t-------------\t-----------------------\n");
	VAL_EACH(r, ranges)
		VAL_EACH(limit, val_get(*r, spec, limits))
			say_limit(p, " ", *limit);
}

int ktl_describe_namespace(struct ktl_page *p, struct val ns)
{
	struct ktl *k = p->k;
	struct val quotas, ranges, conditions = val_get(ns, status, conditions);
	str name = val_str(ns, metadata, name);
	if (ktl_list(k, ktl_kind_of_type(k, TYPE(core_v1, ResourceQuota)), name, STR_NONE, STR_NONE, &quotas) < 0 ||
	    ktl_list(k, ktl_kind_of_type(k, TYPE(core_v1, LimitRange)), name, STR_NONE, STR_NONE, &ranges) < 0)
		return -1;
	ktl_say(p, 0, "Name:\t" STR_FMT "\n", STR_ARG(name));
	say_labels(p, ns);
	ktl_say(p, 0, "Status:\t" STR_FMT "\n", STR_ARG(val_str(ns, status, phase)));
	if (val_len(conditions)) {
		ktl_say(p, 0, "Conditions:\n");
		ktl_say(p, 1, "Type\tStatus\tLastTransitionTime\tReason\tMessage\n");
		ktl_say(p, 1, "----\t------\t------------------\t------\t-------\n");
	}
	VAL_EACH(c, conditions)
		ktl_say(p, 1, STR_FMT "\t" STR_FMT "\t" STR_FMT "\t" STR_FMT "\t" STR_FMT "\n", STR_ARG(val_str(*c, type)), STR_ARG(val_str(*c, status)),
			STR_ARG(ktl_date(k, val_str(*c, lastTransitionTime))), STR_ARG(val_str(*c, reason)), STR_ARG(val_str(*c, message)));
	say_quotas(p, quotas);
	say_limits(p, ranges);
	return 0;
}
