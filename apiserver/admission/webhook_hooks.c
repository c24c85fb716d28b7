#include "apiserver/admission/webhook_hooks.h"

#include <stdlib.h>

#include "apiserver/admission/webhook_auth.h"
#include "apiserver/admission/webhook_metrics.h"
#include "apiserver/cache.h"
#include "base/encoding.h"
#include "base/mem.h"
#include "codec/atoms.h"

struct hook_config {
	unsigned refs;
	struct object *object;        /* owned; the hooks borrow from it */
	struct arena arena;
	struct hook *hooks;
	size_t n;
};

/* ---- one configuration ---- */

static void compile_selector(struct arena *a, struct val v, struct selector *ret)
{
	/* it was validated when it was written */
	if (selector_of_object(a, v, ret, NULL) < 0)
		*ret = SELECTOR_NOTHING;
}

/* Names need not be unique within a configuration: which one of that name is it? */
static size_t nth_of_name(const struct hook_config *c, size_t at)
{
	size_t n = 0;
	for (size_t i = 0; i < at; i++)
		n += str_eq(c->hooks[i].name, c->hooks[at].name);
	return n;
}

static struct hook_config *compile(struct object *o)
{
	struct hook_config *c = mem_zalloc(sizeof *c);
	struct val webhooks = val_get(o->val, webhooks);
	c->refs = 1;
	c->object = object_ref(o);
	c->n = val_len(webhooks);
	c->hooks = ARENA_ARRAY(&c->arena, struct hook, c->n);
	for (size_t i = 0; i < c->n; i++) {
		struct val spec = val_at(webhooks, i);
		struct hook *h = &c->hooks[i];
		*h = (struct hook){
			.name = val_str(spec, name), .configuration = val_str(o->val, metadata, name), .spec = spec,
			.ignore = str_eq(val_str(spec, failurePolicy), STR("Ignore")),
			.equivalent = str_eq(val_str(spec, matchPolicy), STR("Equivalent")),
			.again = str_eq(val_str(spec, reinvocationPolicy), STR("IfNeeded")),
			.timeout_ms = val_int(spec, timeoutSeconds) * 1000,
		};
		h->uid = arena_printf(&c->arena, STR_FMT "/" STR_FMT "/%zu", STR_ARG(h->configuration), STR_ARG(h->name),
				      nth_of_name(c, i));
		compile_selector(&c->arena, val_get(spec, namespaceSelector), &h->namespaces);
		compile_selector(&c->arena, val_get(spec, objectSelector), &h->objects);
	}
	return c;
}

static void config_unref(struct hook_config *c)
{
	if (--c->refs > 0)
		return;
	for (size_t i = 0; i < c->n; i++)
		webhook_free(c->hooks[i].client);
	object_unref(c->object);
	arena_done(&c->arena);
	free(c);
}

/* ---- all of them ---- */

/* The compiled form of this version of a configuration, when there is one. */
static struct hook_config *find(const struct hook_list *l, const struct object *o)
{
	for (size_t i = 0; l && i < l->n_configs; i++)
		if (l->configs[i]->object == o)
			return l->configs[i];
	return NULL;
}

static struct hook_list *list_new(const struct hook_list *before, struct kind *kind)
{
	struct hook_list *l = mem_zalloc(sizeof *l);
	l->refs = 1;
	if (!kind)
		return l;
	struct omap_iter it;
	struct object *o;
	l->revision = kind->changed;
	l->configs = mem_array(omap_len(kind->objects) + 1, sizeof *l->configs);
	omap_seek(&it, kind->objects, STR_NONE);
	while ((o = omap_next(&it, NULL))) {
		struct hook_config *c = find(before, o);
		if (c)
			c->refs++;
		else
			c = compile(o);
		l->configs[l->n_configs++] = c;
		l->n += c->n;
	}
	l->hooks = mem_array(l->n + 1, sizeof(struct hook *));
	size_t at = 0;
	for (size_t i = 0; i < l->n_configs; i++)
		for (size_t k = 0; k < l->configs[i]->n; k++)
			l->hooks[at++] = &l->configs[i]->hooks[k];
	return l;
}

void hook_list_unref(struct hook_list *l)
{
	if (!l || --l->refs > 0)
		return;
	for (size_t i = 0; i < l->n_configs; i++)
		config_unref(l->configs[i]);
	free(l->configs);
	free(l->hooks);
	free(l);
}

void hook_list_unrefp(struct hook_list **l) { hook_list_unref(*l); }

struct hook_list *hook_list_now(struct hook_source *s)
{
	struct hook_list *before = s->now;
	if (before && (!s->kind || before->revision == s->kind->changed)) {
		before->refs++;
		return before;
	}
	struct hook_list *now = list_new(before, s->kind);
	now->refs++;
	s->now = now;
	hook_list_unref(before); /* may wait: whoever comes meanwhile finds the new one */
	return now;
}

int hook_source_new(struct apiserver *s, str resource, const char *metrics_type, struct val config,
		    struct hook_source **ret, struct err *err)
{
	struct webhook_auth *auth = NULL;
	int r = webhook_auth_open(config, &auth, err);
	if (r < 0)
		return r;
	struct hook_source *source = mem_zalloc(sizeof *source);
	source->server = s;
	source->kind = kinds_find(&s->kinds, STR("admissionregistration.k8s.io"), resource);
	source->auth = auth;
	source->metrics = hook_metrics_new(metrics_type);
	*ret = source;
	return 0;
}

void hook_source_free(struct hook_source *s)
{
	if (!s)
		return;
	hook_list_unref(s->now);
	webhook_auth_free(s->auth);
	hook_metrics_free(s->metrics);
	free(s);
}

/* ---- the way to one ---- */

static int authority(struct arena *a, struct val client, struct webhook_options *o, struct err *err)
{
	str text = val_str(client, caBundle);
	size_t n;
	char *pem = arena_alloc(a, base64_decoded_max(text.n) + 1, 1);
	int r = base64_decode(pem, text, &n, err);
	if (r == 0)
		o->ca_bundle = str_span(pem, n);
	return r;
}

int hook_client(struct hook_source *s, struct hook *h, struct webhook **ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val client = val_get(h->spec, clientConfig), service = val_get(client, service);
	struct webhook_options o = {
		.url = val_str(client, url),
		.service_namespace = val_str(service, namespace),
		.service_name = val_str(service, name),
		.service_path = val_str(service, path),
		.service_port = (int)val_int(service, port),
	};
	struct webhook_files files = { 0 };
	int r = h->client ? 0 : authority(&a, client, &o, err);
	if (r == 0 && !h->client)
		r = webhook_auth_add(s->auth, &a, &o, &files, err);
	if (r == 0 && !h->client)
		r = webhook_make(s->server, &o, &files, &h->client, err);
	*ret = h->client;
	return r;
}
