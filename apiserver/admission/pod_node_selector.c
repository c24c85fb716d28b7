/*
 * PodNodeSelector: the pods of a namespace go to certain nodes. The namespace says so in an annotation, or the cluster for all that
 * do not; and the cluster can list what pods of a namespace may ask for. All are texts of the form "key=value,key=value".
 */
#include <stdlib.h>
#include <strings.h>

#include "apiserver/admission/plugins.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "machinery/names.h"

#define ANNOTATION "scheduler.alpha.kubernetes.io/node-selector"
#define CONFLICT "pod node label selector conflicts with its namespace node label selector"

struct selectors {
	struct arena arena;
	struct val by_namespace;      /* texts; "clusterDefaultNodeSelector" is the one for all others */
};

/* ---- texts ---- */

/* An error without a status of its own. */
static int refuse(struct request *q, str why)
{
	return request_fail_as(q, ERR_INTERNAL, 500, STR(""), VAL_EMPTY, STR_FMT, STR_ARG(why));
}

static int check_label(struct request *q, str key, str value)
{
	struct field_errors e;
	struct name_errors bad;
	field_errors_init(&e, q->arena);
	if (name_check_label_key(key, &bad))
		field_invalid(&e, NULL, val_of_str(key), STR_FMT, STR_ARG(name_errors_join(q->arena, &bad, "; ")));
	else if (name_check_label_value(value, &bad))
		field_invalid(&e, FIELD_KEY(NULL, key), val_of_str(value), STR_FMT, STR_ARG(name_errors_join(q->arena, &bad, "; ")));
	return e.n ? refuse(q, field_errors_plain(&e)) : 0;
}

/* "a = b" with the parts as Go prints a list of them: [a  b] */
static int refuse_part(struct request *q, str part)
{
	str shown = arena_str(q->arena, part);
	for (char *p = (char *)shown.p; *p; p++)
		if (*p == '=')
			*p = ' ';
	return refuse(q, arena_printf(q->arena, "invalid selector: [" STR_FMT "]", STR_ARG(shown)));
}

/* A map of labels, in the arena, texts copied. */
static int parse(struct request *q, str text, struct val *ret)
{
	struct val_builder b = val_builder(q->arena);
	str rest = arena_str(q->arena, text), part, key, value;
	*ret = VAL_EMPTY_OBJECT;
	for (bool more = rest.n > 0; more;) {
		more = str_cut(rest, ',', &part, &rest);
		if (!str_cut(part, '=', &key, &value) || str_chr(value, '=') >= 0)
			return refuse_part(q, part);
		key = str_trim(key);
		value = str_trim(value);
		int r = check_label(q, key, value);
		if (r < 0)
			return r;
		val_add_member(&b, atom_make(q->arena, key), val_of_str(value));
	}
	if (b.n)
		*ret = val_sorted(q->arena, val_end_object(&b));
	return 0;
}

/* ---- the plugin ---- */

static str text_for(const struct request *q, str namespace)
{
	const struct selectors *s = admission_state(q->server, &admission_pod_node_selector);
	return val_as_str(val_find(s->by_namespace, namespace));
}

/* (suspends) What the namespace's pods must ask for. */
static int find_selector(struct request *q, struct val *ret, struct err *err)
{
	struct object *namespace;
	int r = admission_find(q, STR(""), STR("namespaces"), q->namespace, &namespace, err);
	if (r < 0)
		return r;
	if (!namespace)
		return fail_internal(q, "namespace " STR_FMT " does not exist", STR_ARG(q->namespace));
	struct val own = val_find(val_get(namespace->val, metadata, annotations), STR(ANNOTATION));
	return parse(q, val_exists(own) ? val_as_str(own) : text_for(q, STR("clusterDefaultNodeSelector")), ret);
}

static int forbid(struct request *q, const char *why)
{
	return fail_forbidden(q, q->group, q->resource, val_str(q->object, metadata, name), "%s", why);
}

/* Whether all labels of one are in the other with the same value, or (loose) at least not with another one. */
static bool agrees(struct val one, struct val other, bool loose)
{
	VAL_EACH_MEMBER(m, one) {
		struct val there = val_find(other, atom_str(m->key));
		if (!val_exists(there) ? !loose : !str_eq(val_as_str(there), val_as_str(m->val)))
			return false;
	}
	return true;
}

static int check(struct request *q, struct val selector)
{
	struct val allowed, asked = val_get(q->object, spec, nodeSelector);
	if (!agrees(selector, asked, true))
		return forbid(q, CONFLICT);
	int r = parse(q, text_for(q, q->namespace), &allowed);
	if (r < 0)
		return r;
	if (val_len(allowed) && !agrees(asked, allowed, false))
		return forbid(q, "pod node label selector labels conflict with its namespace whitelist");
	return 0;
}

static bool is_new_pod(const struct request *q)
{
	return admits(q, STR(""), STR("pods")) && val_exists(q->object) && !val_exists(q->old);
}

static int mutate(struct request *q, struct err *err)
{
	struct val selector, asked = val_get(q->object, spec, nodeSelector);
	if (!is_new_pod(q))
		return 0;
	int r = find_selector(q, &selector, err);
	if (r < 0)
		return r;
	if (!agrees(selector, asked, true))
		return forbid(q, CONFLICT);
	struct val_builder b = val_builder(q->arena);
	VAL_EACH_MEMBER(m, asked)
		val_add_member(&b, m->key, m->val);
	VAL_EACH_MEMBER(m, selector)
		val_add_member(&b, m->key, m->val);
	if (val_len(selector))
		q->object = val_with(q->arena, q->object, val_sorted(q->arena, val_end_object(&b)), spec, nodeSelector);
	return check(q, selector);
}

static int validate(struct request *q, struct err *err)
{
	struct val selector;
	if (!is_new_pod(q))
		return 0;
	int r = find_selector(q, &selector, err);
	return r < 0 ? r : check(q, selector);
}

static int open_selectors(struct apiserver *s, struct val config, void **ret_state, struct err *err)
{
	struct selectors *p = mem_zalloc(sizeof *p);
	(void)s;
	(void)err;
	VAL_EACH_MEMBER(m, config) {
		str name = STR("podNodeSelectorPluginConfig"), key = atom_str(m->key);
		if (key.n == name.n && strncasecmp(key.p, name.p, key.n) == 0)
			p->by_namespace = val_copy(&p->arena, m->val);
	}
	*ret_state = p;
	return 0;
}

static void close_selectors(void *state)
{
	struct selectors *p = state;
	arena_done(&p->arena);
	free(p);
}

const struct admission_plugin admission_pod_node_selector = {
	.name = "PodNodeSelector", .optional = true, .mutate = mutate, .validate = validate,
	.open = open_selectors, .close = close_selectors,
};
