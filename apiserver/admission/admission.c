/* The plugins, in the order in which Kubernetes runs them. */
#include "apiserver/admission/admission.h"

#include <stdarg.h>
#include <stdlib.h>

#include "apiserver/admission/plugins.h"
#include "apiserver/apiserver.h"
#include "apiserver/cache.h"
#include "base/mem.h"
#include "codec/atoms.h"

static const struct admission_plugin *const plugins[] = {
	&admission_namespace_lifecycle,
	&admission_service_account,
	&admission_taint_nodes,
	&admission_priority,
	&admission_default_toleration_seconds,
	&admission_default_storage_class,
	&admission_storage_protection,
	&admission_runtime_class,
	&admission_default_ingress_class,
	&admission_node_features,
	&admission_pod_resize,
};

enum { PLUGINS = ARRAY_LEN(plugins) };

struct admission {
	bool on[PLUGINS];
	void *state[PLUGINS];
};

/* ---- which are on ---- */

static bool names(const char *const *list, const char *name)
{
	for (; list && *list; list++)
		if (strcmp(*list, name) == 0)
			return true;
	return false;
}

static size_t index_of(const struct admission_plugin *p)
{
	size_t i = 0;
	while (plugins[i] != p)
		i++;
	return i;
}

int admission_new(struct apiserver *s, struct admission **ret, struct err *err)
{
	const struct admission_options *o = &s->options.admission;
	struct admission *a = mem_zalloc(sizeof *a);
	int r = 0;
	for (size_t i = 0; i < PLUGINS && r >= 0; i++) {
		const struct admission_plugin *p = plugins[i];
		a->on[i] = (!p->optional || names(o->enable, p->name)) && !names(o->disable, p->name);
		if (a->on[i] && p->open)
			r = p->open(s, VAL_EMPTY, &a->state[i], err);
	}
	if (r < 0) {
		admission_free(a);
		return r;
	}
	*ret = a;
	return 0;
}

void admission_free(struct admission *a)
{
	for (size_t i = 0; a && i < PLUGINS; i++)
		if (a->state[i] && plugins[i]->close)
			plugins[i]->close(a->state[i]);
	free(a);
}

void *admission_state(const struct apiserver *s, const struct admission_plugin *p) { return s->admission->state[index_of(p)]; }
bool admission_is_on(const struct apiserver *s, const struct admission_plugin *p) { return s->admission->on[index_of(p)]; }

/* ---- running them ---- */

int admission_mutate(struct request *q, struct err *err)
{
	const struct admission *a = q->server->admission;
	for (size_t i = 0; i < PLUGINS; i++) {
		int r = a->on[i] && plugins[i]->mutate ? plugins[i]->mutate(q, err) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

int admission_validate(struct request *q, struct err *err)
{
	const struct admission *a = q->server->admission;
	for (size_t i = 0; i < PLUGINS; i++) {
		int r = a->on[i] && plugins[i]->validate ? plugins[i]->validate(q, err) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

int admission_remove(struct request *q, struct err *err)
{
	struct val object = q->object;
	if (!q->http)
		return 0; /* what the server itself removes (inprocess.h) */
	q->object = VAL_EMPTY;
	int r = admission_mutate(q, err);
	if (r == 0)
		r = admission_validate(q, err);
	q->object = object;
	return r;
}

int admission_pass(struct request *q, const struct type *type, struct val *object, struct err *err)
{
	const struct type *was_type = q->type;
	struct val was = q->object;
	q->object = *object;
	q->type = type;
	int r = admission_mutate(q, err);
	if (r == 0)
		r = admission_validate(q, err);
	*object = q->object;
	q->object = was;
	q->type = was_type;
	return r;
}

/* ---- what plugins share ---- */

int admission_forbid(struct request *q, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	str why = arena_vprintf(q->arena, fmt, ap), name = val_str(q->object, metadata, name);
	va_end(ap);
	if (!name.n)
		name = val_str(q->object, metadata, generateName);
	if (!name.n)
		name = q->name.n ? q->name : STR("Unknown");
	return fail_forbidden(q, q->group, q->resource, name, STR_FMT, STR_ARG(why));
}

int admission_find(struct request *q, str group, str resource, str key, struct object **ret, struct err *err)
{
	const struct kind *kind = kinds_find(&q->server->kinds, group, resource);
	*ret = cache_get(kind, key);
	if (*ret)
		return 0;
	int r = cache_wait_current(q->server->cache, err);
	*ret = r < 0 ? NULL : cache_get(kind, key);
	return r;
}

struct object *admission_default_of(struct request *q, str group, str resource, str annotation)
{
	struct kind *kind = kinds_find(&q->server->kinds, group, resource);
	struct object *best = NULL, *o;
	struct omap_iter it;
	if (!kind)
		return NULL;
	omap_seek(&it, kind->objects, STR(""));
	while ((o = omap_next(&it, NULL))) {
		if (!str_eq(val_as_str(val_find(val_get(o->val, metadata, annotations), annotation)), STR("true")))
			continue;
		str made = val_str(o->val, metadata, creationTimestamp);
		if (!best || str_cmp(made, val_str(best->val, metadata, creationTimestamp)) > 0)
			best = o;
	}
	return best;
}
