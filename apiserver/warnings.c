/* Which kinds have warnings, and what the files of the warnings share. */
#include "apiserver/warnings_priv.h"

#include "apiserver/subresource.h"
#include "base/buf.h"
#include "machinery/ip.h"
#include "machinery/resources.h"

static const struct warned_set *const sets[] = {
	&warnings_extensions, &warnings_network, &warnings_storage, &warnings_workloads,
};

static const struct warned_kind *warned_kind(const struct type *type)
{
	for (size_t i = 0; i < ARRAY_LEN(sets); i++)
		for (size_t j = 0; j < sets[i]->n; j++) {
			const struct warned_kind *k = &sets[i]->all[j];
			if (str_eq(k->kind, type->name) && str_eq(k->group, type->package->group))
				return k;
		}
	return NULL;
}

void warnings_add(struct request *q)
{
	const struct warned_kind *k = warned_kind(q->type);
	if (!k)
		return;
	void (*add)(struct request *) = NULL;
	if (!val_exists(q->old))
		add = k->on_create;
	else if (!q->subresource.n || subresource_view(q)) /* a scale is the object's own spec */
		add = k->on_update;
	else if (str_eq(q->subresource, STR("status")))
		add = k->on_status;
	if (add)
		add(q);
}

/* ---- for all of them ---- */

void warnf(struct request *q, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	request_warn(q, arena_vprintf(q->arena, fmt, ap));
	va_end(ap);
}

void warn_at(struct request *q, const struct field_path *at, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	str text = arena_vprintf(q->arena, fmt, ap), path = field_path_text(q->arena, at);
	va_end(ap);
	warnf(q, STR_FMT ": " STR_FMT, STR_ARG(path), STR_ARG(text));
}

str warn_quoted(const struct request *q, str text)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	buf_add_quoted(&b, text);
	return arena_str(q->arena, buf_str(&b));
}

void warn_ip(struct request *q, const struct field_path *at, str value)
{
	str texts[2];
	size_t n = ip_warnings(q->arena, field_path_text(q->arena, at), value, texts);
	for (size_t i = 0; i < n; i++)
		request_warn(q, texts[i]);
}

void warn_cidr(struct request *q, const struct field_path *at, str value)
{
	str texts[2];
	size_t n = cidr_warnings(q->arena, field_path_text(q->arena, at), value, texts);
	for (size_t i = 0; i < n; i++)
		request_warn(q, texts[i]);
}

void warn_fraction(struct request *q, const struct field_path *at, struct val amounts, str resource)
{
	struct val amount = val_find(amounts, resource);
	if (val_exists(amount) && quantity_milli(quantity_of(amount)) % 1000)
		warn_at(q, FIELD_KEY(at, resource), "fractional byte value " STR_FMT " is invalid, must be an integer",
			STR_ARG(warn_quoted(q, val_as_str(amount))));
}

void warn_name(struct request *q, const char *used_in)
{
	struct name_errors e;
	if (!name_check_dns1123_label(val_str(q->object, metadata, name), &e))
		return;
	str why = name_errors_join(q->arena, &e, " ");
	warnf(q, "metadata.name: this is used in %s, which can result in surprising behavior; a DNS label is recommended: "
		 "[" STR_FMT "]",
	      used_in, STR_ARG(why));
}

str warn_node_label(str key)
{
	static const struct {
		str key, why;
	} labels[] = {
		{ STR_INIT("beta.kubernetes.io/arch"), STR_INIT("deprecated since v1.14; use \"kubernetes.io/arch\" instead") },
		{ STR_INIT("beta.kubernetes.io/os"), STR_INIT("deprecated since v1.14; use \"kubernetes.io/os\" instead") },
		{ STR_INIT("failure-domain.beta.kubernetes.io/region"),
		  STR_INIT("deprecated since v1.17; use \"topology.kubernetes.io/region\" instead") },
		{ STR_INIT("failure-domain.beta.kubernetes.io/zone"),
		  STR_INIT("deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead") },
		{ STR_INIT("beta.kubernetes.io/instance-type"),
		  STR_INIT("deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead") },
		{ STR_INIT("app.kubernetes.io/created-by"), STR_INIT("deprecated since v1.9") },
		{ STR_INIT("scheduler.alpha.kubernetes.io/preferAvoidPods"),
		  STR_INIT("deprecated since v1.22; use Taints and Tolerations instead") },
		{ STR_INIT("node-role.kubernetes.io/master"),
		  STR_INIT("use \"node-role.kubernetes.io/control-plane\" instead") },
	};
	for (size_t i = 0; i < ARRAY_LEN(labels); i++)
		if (str_eq(labels[i].key, key))
			return labels[i].why;
	return STR_NONE;
}

static void warn_values(struct request *q, const struct field_path *at, struct val values)
{
	size_t i = 0;
	VAL_EACH(v, values) {
		struct name_errors e = { 0 };
		name_check_label_value(val_as_str(*v), &e);
		for (size_t k = 0; k < e.n; k++)
			warn_at(q, FIELD_INDEX(at, i), STR_FMT " is invalid, " STR_FMT, STR_ARG(val_as_str(*v)),
				STR_ARG(e.text[k]));
		i++;
	}
}

void warn_node_term(struct request *q, const struct field_path *at, struct val term, bool values)
{
	size_t i = 0;
	VAL_EACH(x, val_get(term, matchExpressions)) {
		const struct field_path *here = FIELD_INDEX(FIELD(at, "matchExpressions"), i);
		str key = val_str(*x, key), why = warn_node_label(key);
		if (why.n)
			warn_at(q, FIELD(here, "key"), STR_FMT " is " STR_FMT, STR_ARG(key), STR_ARG(why));
		if (values)
			warn_values(q, FIELD(here, "values"), val_get(*x, values));
		i++;
	}
}

bool warn_has_annotation(struct val meta, str name) { return val_exists(val_find(val_get(meta, annotations), name)); }
