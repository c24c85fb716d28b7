/* Discovery by its plain documents: /api/v1, /apis and /apis/GROUP/VERSION. */
#include "controllers/discovery.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fiber.h"
#include "base/map.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/json.h"

enum { DOCUMENT_MAX = 8 << 20 };

void discovery_init(struct discovery *d) { *d = (struct discovery){ 0 }; }

void discovery_done(struct discovery *d)
{
	free(d->all);
	*d = (struct discovery){ 0 };
}

static unsigned verb_of(str name)
{
	static const struct {
		str name;
		unsigned verb;
	} all[] = {
		{ STR_INIT("create"), VERB_CREATE }, { STR_INIT("delete"), VERB_DELETE },
		{ STR_INIT("deletecollection"), VERB_DELETE_COLLECTION }, { STR_INIT("get"), VERB_GET }, { STR_INIT("list"), VERB_LIST },
		{ STR_INIT("patch"), VERB_PATCH }, { STR_INIT("update"), VERB_UPDATE }, { STR_INIT("watch"), VERB_WATCH },
	};
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (str_eq(all[i].name, name))
			return all[i].verb;
	return 0;
}

/* What is being found out. */
struct asking {
	struct client *client;
	struct arena *arena;
	struct discovery *before;
	struct served *all;
	size_t n, cap;
	struct map seen;              /* "resource.group": some version of it has been seen */
	str failures;
	size_t n_failed;
};

static void add(struct asking *q, struct served s)
{
	if (q->n == q->cap) {
		q->cap = q->cap ? 2 * q->cap : 64;
		q->all = mem_resize(q->all, q->cap * sizeof *q->all);
	}
	q->all[q->n++] = s;
}

static int get(struct asking *q, str path, struct val *ret, struct err *err)
{
	str text;
	int r = client_get_raw(q->client, q->arena, path, DOCUMENT_MAX, &text, err);
	return r < 0 ? r : json_decode(q->arena, text, &(struct json_decode_options){ 0 }, ret, err);
}

/* The first version in which a resource is seen is the one that is spoken. */
static bool is_first(struct asking *q, const struct resource *r)
{
	str key = arena_printf(q->arena, STR_FMT "." STR_FMT, STR_ARG(r->name), STR_ARG(r->group));
	return !map_put(&q->seen, key, (void *)r);
}

static void take_resources(struct asking *q, str version, struct val list)
{
	VAL_EACH(one, val_get(list, resources)) {
		str name = val_str(*one, name);
		const struct type *type = str_chr(name, '/') < 0 ? schema_kind(version, val_str(*one, kind)) : NULL;
		const struct resource *r = type ? schema_resource(type, STR("")) : NULL;
		struct served s = { .resource = r };
		if (!r || !str_eq(r->name, name))
			continue;
		VAL_EACH(verb, val_get(*one, verbs))
			s.verbs |= verb_of(val_as_str(*verb));
		s.preferred = is_first(q, r);
		add(q, s);
	}
}

static bool is_version(const struct resource *r, str version)
{
	str group, rest;
	if (!str_cut(version, '/', &group, &rest))
		return !r->group.n && str_eq(r->version, version);
	return str_eq(r->group, group) && str_eq(r->version, rest);
}

/* The server knows of it, but whoever serves it does not answer: what it had is still there. */
static void keep_known(struct asking *q, str version, const struct err *why)
{
	q->failures = arena_printf(q->arena, STR_FMT "%s" STR_FMT ": %s", STR_ARG(q->failures), q->n_failed ? ", " : "", STR_ARG(version),
				   why->msg);
	q->n_failed++;
	for (size_t i = 0; i < q->before->n; i++) {
		struct served s = q->before->all[i];
		if (!is_version(s.resource, version))
			continue;
		s.preferred = is_first(q, s.resource);
		add(q, s);
	}
}

/* (suspends) Only a cancel ends it. */
static int ask_version(struct asking *q, str version, struct err *err)
{
	struct err why = ERR_INIT;
	struct val list;
	str path = arena_printf(q->arena, "%s" STR_FMT, str_chr(version, '/') < 0 ? "/api/" : "/apis/", STR_ARG(version));
	int r = get(q, path, &list, &why);
	if (r == 0)
		take_resources(q, version, list);
	else if (r == -ERR_CANCELED || (r == -ERR_TIMEOUT && fiber_check(NULL) < 0)) /* ours, not that of a server behind the server */
		return err_set(err, why.code, "%s", why.msg);
	else if (r != -ERR_NOT_FOUND)
		keep_known(q, version, &why);
	return 0;
}

/* (suspends) The preferred version first. */
static int ask_group(struct asking *q, struct val group, struct err *err)
{
	str best = val_str(group, preferredVersion, groupVersion);
	int r = best.n ? ask_version(q, best, err) : 0;
	VAL_EACH(v, val_get(group, versions)) {
		str version = val_str(*v, groupVersion);
		if (r == 0 && version.n && !str_eq(version, best))
			r = ask_version(q, version, err);
	}
	return r;
}

static int ask_all(struct asking *q, struct err *err)
{
	struct val groups;
	int r = get(q, STR("/apis"), &groups, err);
	if (r == 0)
		r = ask_version(q, STR("v1"), err);
	VAL_EACH(g, r == 0 ? val_get(groups, groups) : VAL_EMPTY)
		if ((r = ask_group(q, *g, err)) < 0)
			return r;
	if (r == 0 && !q->n)
		return err_set(err, ERR_UNAVAILABLE, "unable to get any supported resources from server");
	return r;
}

int discovery_refresh(struct discovery *d, struct client *c, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct asking q = { .client = c, .arena = &a, .before = d };
	map_init(&q.seen);
	int r = ask_all(&q, err);
	map_done(&q.seen);
	if (r < 0) {
		free(q.all);
		return r;
	}
	free(d->all);
	d->all = q.all;
	d->n = q.n;
	d->n_failed = q.n_failed;
	d->failure[0] = '\0';
	if (q.n_failed)
		(void)snprintf(d->failure, sizeof d->failure, "unable to retrieve the complete list of server APIs: " STR_FMT, STR_ARG(q.failures));
	return 0;
}

bool discovery_find(const struct discovery *d, str api_version, str kind, struct served *ret)
{
	const struct type *type = schema_kind(api_version, kind);
	for (size_t i = 0; type && i < d->n; i++)
		if (d->all[i].resource->type == type) {
			*ret = d->all[i];
			return true;
		}
	return false;
}
