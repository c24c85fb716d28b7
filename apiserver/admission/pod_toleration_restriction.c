/*
 * PodTolerationRestriction: the pods of a namespace get its tolerations, and may have no others than those that it lists. Both are
 * annotations of the namespace; the cluster's configuration says what holds where there are none.
 */
#include <stdlib.h>

#include "apiserver/admission/plugins.h"
#include "apiserver/admission/tolerations.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "machinery/resources.h"
#include "machinery/validate_priv.h"

#define DEFAULTS "scheduler.alpha.kubernetes.io/defaultTolerations"
#define ALLOWED "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
#define API_VERSION "podtolerationrestriction.admission.k8s.io/v1alpha1"

struct restriction {
	struct arena arena;
	struct val defaults, allowed; /* lists of tolerations */
};

/* A free list as tolerations. */
static int read_tolerations(struct arena *a, struct val list, struct val *ret, struct err *err)
{
	struct val_builder b = val_builder(a);
	if (!val_is_nil(list) && !val_is(list, VAL_LIST))
		return err_set(err, ERR_INVALID, "json: cannot unmarshal %s into Go value of type []v1.Toleration",
			       val_is(list, VAL_OBJECT) ? "object" : val_is(list, VAL_STRING) ? "string" : "number");
	VAL_EACH(item, list) {
		struct val t;
		int r = val_canonical(a, *item, TYPE(core_v1, Toleration), NULL, &t, err);
		if (r < 0)
			return r;
		val_add_item(&b, t);
	}
	*ret = val_end_list(&b);
	return 0;
}

/* (suspends) What an annotation of the request's namespace says; VAL_NONE: nothing. */
static int find_tolerations(struct request *q, str annotation, struct val *ret, struct err *err)
{
	struct object *namespace;
	struct val list = VAL_EMPTY;
	int r = admission_find(q, STR(""), STR("namespaces"), q->namespace, &namespace, err);
	if (r < 0)
		return r;
	if (!namespace)
		return fail_not_found(q, STR(""), STR("namespaces"), q->namespace);
	struct val text = val_find(val_get(namespace->val, metadata, annotations), annotation);
	*ret = VAL_EMPTY;
	if (!val_exists(text))
		return 0;
	*ret = VAL_EMPTY_LIST;
	if (!val_as_str(text).n)
		return 0;
	struct err why = ERR_INIT;
	r = json_decode(q->arena, arena_str(q->arena, val_as_str(text)), &(struct json_decode_options){ 0 }, &list, &why);
	if (r == 0)
		r = read_tolerations(q->arena, list, ret, &why);
	return r < 0 ? request_fail_as(q, ERR_INTERNAL, 500, STR(""), VAL_EMPTY, STR_FMT, STR_ARG(err_str(&why))) : 0;
}

static const struct restriction *restriction_of(const struct request *q)
{
	return admission_state(q->server, &admission_pod_toleration_restriction);
}

static bool is_pod(const struct request *q) { return admits(q, STR(""), STR("pods")) && val_exists(q->object); }

static int validate(struct request *q, struct err *err)
{
	struct val tolerations = val_get(q->object, spec, tolerations), allowed;
	const char *scope = "namespace";
	if (!is_pod(q) || !val_len(tolerations))
		return 0;
	int r = find_tolerations(q, STR(ALLOWED), &allowed, err);
	if (r < 0)
		return r;
	if (!val_exists(allowed)) {
		allowed = restriction_of(q)->allowed;
		scope = "cluster";
	}
	if (tolerations_allowed(tolerations, allowed))
		return 0;
	return request_fail_as(q, ERR_INTERNAL, 500, STR(""), VAL_EMPTY,
			       "pod tolerations (possibly merged with namespace default tolerations) conflict with its %s whitelist",
			       scope);
}

static int mutate(struct request *q, struct err *err)
{
	struct arena *a = q->arena;
	struct val more = VAL_EMPTY;
	if (!is_pod(q))
		return 0;
	if (!val_exists(q->old)) {
		int r = find_tolerations(q, STR(DEFAULTS), &more, err);
		if (r < 0)
			return r;
		if (!val_exists(more))
			more = val_copy(a, restriction_of(q)->defaults);
	}
	str qos = val_str(q->object, status, qosClass);
	if (!str_eq(qos.n ? qos : pod_qos_class(val_get(q->object, spec)), STR("BestEffort")))
		more = val_list_append(a, more, OBJECT(a, F(key, VAL_LIT("node.kubernetes.io/memory-pressure")),
						       F(operator, VAL_LIT("Exists")), F(effect, VAL_LIT("NoSchedule"))));
	if (val_len(more))
		q->object = val_with(a, q->object, tolerations_merge(a, val_get(q->object, spec, tolerations), more), spec,
				     tolerations);
	return validate(q, err);
}

static void close_restriction(void *state)
{
	struct restriction *p = state;
	arena_done(&p->arena);
	free(p);
}

static int check_config(struct restriction *p, struct err *err)
{
	const struct field_path *at = FIELD(NULL, "podtolerationrestriction");
	struct field_errors e;
	str all = STR("");
	field_errors_init(&e, &p->arena);
	check_tolerations(&e, FIELD(at, "default"), p->defaults);
	check_tolerations(&e, FIELD(at, "whitelist"), p->allowed);
	for (size_t i = 0; i < e.n; i++)
		all = arena_printf(&p->arena, STR_FMT "%s" STR_FMT ": " STR_FMT, STR_ARG(all), i ? " " : "",
				   STR_ARG(e.list[i].field), STR_ARG(e.list[i].body));
	return e.n ? err_set(err, ERR_INVALID, "invalid config: [" STR_FMT "]", STR_ARG(all)) : 0;
}

static int read_config(struct restriction *p, struct val config, struct err *err)
{
	str kind = val_str(config, kind), version = val_str(config, apiVersion);
	if (!val_exists(config))
		return 0;
	if (!str_eq(kind, STR("Configuration")) || !str_eq(version, STR(API_VERSION)))
		return err_set(err, ERR_INVALID, "no kind \"" STR_FMT "\" is registered for version \"" STR_FMT "\"", STR_ARG(kind),
			       STR_ARG(version));
	config = val_copy(&p->arena, config);
	int r = read_tolerations(&p->arena, val_find(config, STR("default")), &p->defaults, err);
	if (r == 0)
		r = read_tolerations(&p->arena, val_find(config, STR("whitelist")), &p->allowed, err);
	return r < 0 ? r : check_config(p, err);
}

static int open_restriction(struct apiserver *s, struct val config, void **ret_state, struct err *err)
{
	struct restriction *p = mem_zalloc(sizeof *p);
	(void)s;
	int r = read_config(p, config, err);
	if (r < 0) {
		close_restriction(p);
		return r;
	}
	*ret_state = p;
	return 0;
}

const struct admission_plugin admission_pod_toleration_restriction = {
	.name = "PodTolerationRestriction", .optional = true, .mutate = mutate, .validate = validate,
	.open = open_restriction, .close = close_restriction,
};
