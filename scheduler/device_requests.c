#include "codec/atoms.h"
#include "machinery/resources.h"
#include "scheduler/device_search_priv.h"

str device_claim_key(const struct device_search *s, const struct claim *c)
{
	return object_key(s->arena, c->object);
}

str device_option_name(struct device_search *s, const struct option *o)
{
	return o->sub.n ? arena_printf(s->arena, STR_FMT "/" STR_FMT, STR_ARG(o->base), STR_ARG(o->sub)) : o->base;
}

bool device_names_concern(struct val requests, const struct option *o)
{
	if (!val_len(requests))
		return true;
	VAL_EACH(r, requests) {
		str base, sub;
		bool whole = !str_cut(val_as_str(*r), '/', &base, &sub);
		if (str_eq(base, o->base) && (whole || str_eq(sub, o->sub)))
			return true;
	}
	return false;
}

static void selectors_read(struct device_search *s, struct val list, struct selectors *ret)
{
	*ret = (struct selectors){ .all = ARENA_ARRAY(s->arena, const struct device_selector *, val_len(list) + 1) };
	VAL_EACH(x, list)
		ret->all[ret->n++] = val_has(*x, cel) ? devices_selector(s->devices, val_str(*x, cel, expression)) : NULL;
}

static void option_read(struct device_search *s, str base, str sub, struct val spec, struct option *ret)
{
	*ret = (struct option){ .base = base, .sub = sub, .spec = spec, .class = copies_val(&s->devices->classes, val_str(spec, deviceClassName)),
				.all = str_eq(val_str(spec, allocationMode), STR("All")), .admin = val_bool(spec, adminAccess),
				.count = val_has(spec, count) ? MAX(val_int(spec, count), INT64_C(0)) : 1, .index = s->n_options++ };
	selectors_read(s, val_get(spec, selectors), &ret->own);
	selectors_read(s, val_get(ret->class, spec, selectors), &ret->of_class);
}

static void request_read(struct device_search *s, struct val request, struct request *ret)
{
	struct val list = val_get(request, firstAvailable), exactly = val_get(request, exactly);
	*ret = (struct request){ .name = val_str(request, name), .alternatives = !val_exists(exactly),
				 .options = ARENA_ARRAY(s->arena, struct option, val_len(list) + 1) };
	if (val_exists(exactly))
		option_read(s, ret->name, STR_NONE, exactly, &ret->options[ret->n++]);
	VAL_EACH(o, val_exists(exactly) ? VAL_EMPTY : list)
		option_read(s, ret->name, val_str(*o, name), *o, &ret->options[ret->n++]);
}

void device_claim_read(struct device_search *s, struct val object, struct claim *ret)
{
	struct val requests = val_get(object, spec, devices, requests), constraints = val_get(object, spec, devices, constraints);
	*ret = (struct claim){ .object = object, .requests = ARENA_ARRAY(s->arena, struct request, val_len(requests) + 1),
			       .constraints = ARENA_ARRAY(s->arena, struct constraint, val_len(constraints) + 1) };
	VAL_EACH(r, requests)
		request_read(s, *r, &ret->requests[ret->n++]);
	VAL_EACH(k, constraints) {
		str same = val_str(*k, matchAttribute);
		ret->constraints[ret->n_constraints++] = (struct constraint){ .requests = val_get(*k, requests), .distinct = !same.n,
			.attribute = same.n ? same : val_str(*k, distinctAttribute) };
	}
}

static int class_check(struct device_search *s, const struct option *o, struct err *err)
{
	str name = device_option_name(s, o), class = val_str(o->spec, deviceClassName);
	if (!class.n)
		return err_set(err, ERR_INTERNAL, "request " STR_FMT ": unsupported request type", STR_ARG(name));
	if (!val_exists(o->class))
		return err_set(err, ERR_INVALID, "request " STR_FMT ": device class " STR_FMT " does not exist", STR_ARG(name), STR_ARG(class));
	return 0;
}

int device_claim_check(struct device_search *s, const struct claim *c, struct err *err)
{
	str key = device_claim_key(s, c);
	int r = 0;
	for (size_t i = 0; i < c->n && r == 0; i++) {
		const struct request *q = &c->requests[i];
		if (!q->n)
			return err_set(err, ERR_INVALID, "resource claim " STR_FMT ", request " STR_FMT ": unknown request type", STR_ARG(key), STR_ARG(q->name));
		if (q->alternatives && !s->devices->features.prioritized_list)
			return err_set(err, ERR_INVALID, "resource claim " STR_FMT ", request " STR_FMT
				       ": has subrequests, but the DRAPrioritizedList feature is disabled", STR_ARG(key), STR_ARG(q->name));
		for (size_t k = 0; k < q->n && r == 0; k++)
			r = class_check(s, &q->options[k], err);
	}
	return r;
}
