/* Volumes made of keys: two of them that want the same path, or one the directory that is the other's file. */
#include "apiserver/warnings_priv.h"

/* Paths of one volume that are compared with each other. */
enum { PATHS_MAX = 1024 };

/* Where paths come from, to be put into words when there is something to say. */
struct origin {
	const char *kind;
	str name;
	bool named;
};

#define ORIGIN(kind_) ((struct origin){ .kind = (kind_) })
#define ORIGIN_NAMED(kind_, name_) ((struct origin){ .kind = (kind_), .name = (name_), .named = true })
#define ORIGIN_NONE ((struct origin){ .kind = NULL })

struct paths {
	struct request *q;
	str volume;
	struct origin origin;   /* stands behind its name in brackets */
	struct {
		str path;
		struct origin source;
	} *all;
	size_t n, cap;
};

static str origin_text(struct request *q, const struct origin *o)
{
	if (!o->named)
		return str_of(o->kind);
	return arena_printf(q->arena, "%s " STR_FMT, o->kind, STR_ARG(warn_quoted(q, o->name)));
}

static str place(struct request *q, str path, const struct origin *source)
{
	str quoted = warn_quoted(q, path);
	if (!source->kind)
		return quoted;
	return arena_printf(q->arena, STR_FMT " (" STR_FMT ")", STR_ARG(quoted), STR_ARG(origin_text(q, source)));
}

static void paths_grow(struct paths *p)
{
	size_t cap = p->cap ? p->cap * 2 : 16;
	void *all = arena_array_of(p->q->arena, cap, sizeof *p->all, _Alignof(str));
	if (p->n)
		memcpy(all, p->all, p->n * sizeof *p->all);
	p->all = all;
	p->cap = cap;
}

/* The same path, or one in the other. */
static bool overlap(str a, str b)
{
	if (a.n > b.n)
		return overlap(b, a);
	return a.n && str_starts(b, a) && (a.n == b.n || b.p[a.n] == '/');
}

static void paths_add(struct paths *p, str path, struct origin source)
{
	struct request *q = p->q;
	while (path.n && path.p[path.n - 1] == '/')
		path.n--;
	if (!path.n || p->n == PATHS_MAX)
		return;
	for (size_t i = 0; i < p->n; i++) {
		if (!overlap(path, p->all[i].path))
			continue;
		str here = place(q, path, &source), there = place(q, p->all[i].path, &p->all[i].source);
		warnf(q, "volume " STR_FMT " (" STR_FMT "): overlapping paths: " STR_FMT " with " STR_FMT,
		      STR_ARG(warn_quoted(q, p->volume)), STR_ARG(origin_text(q, &p->origin)), STR_ARG(here), STR_ARG(there));
	}
	if (p->n == p->cap)
		paths_grow(p);
	p->all[p->n].path = path;
	p->all[p->n++].source = source;
}

static void paths_add_items(struct paths *p, struct val items, struct origin source)
{
	VAL_EACH(item, items)
		paths_add(p, val_str(*item, path), source);
}

static void paths_add_certificate(struct paths *p, struct val source)
{
	paths_add(p, val_str(source, certificateChainPath), ORIGIN("PodCertificate chain"));
	paths_add(p, val_str(source, keyPath), ORIGIN("PodCertificate key"));
	paths_add(p, val_str(source, credentialBundlePath), ORIGIN("PodCertificate credential bundle"));
}

static void paths_add_source(struct paths *p, struct val source)
{
	if (val_has(source, configMap, items)) {
		paths_add_items(p, val_get(source, configMap, items),
				ORIGIN_NAMED("ConfigMap", val_str(source, configMap, name)));
	} else if (val_has(source, secret, items)) {
		paths_add_items(p, val_get(source, secret, items), ORIGIN_NAMED("Secret", val_str(source, secret, name)));
	} else if (val_has(source, downwardAPI, items)) {
		paths_add_items(p, val_get(source, downwardAPI, items), ORIGIN("DownwardAPI"));
	} else if (val_has(source, serviceAccountToken)) {
		paths_add(p, val_str(source, serviceAccountToken, path), ORIGIN("ServiceAccountToken"));
	} else if (val_has(source, clusterTrustBundle)) {
		struct val bundle = val_get(source, clusterTrustBundle);
		str name = val_has(bundle, name) ? val_str(bundle, name) : val_str(bundle, signerName);
		paths_add(p, val_str(bundle, path), ORIGIN_NAMED("ClusterTrustBundle", name));
	} else if (val_has(source, podCertificate)) {
		paths_add_certificate(p, val_get(source, podCertificate));
	}
}

static void paths_begin(struct paths *p, struct origin origin)
{
	p->origin = origin;
	p->n = 0;
}

void warn_volume_paths(struct request *q, struct val volumes)
{
	struct paths p = { .q = q };
	VAL_EACH(v, volumes) {
		p.volume = val_str(*v, name);
		if (val_has(*v, configMap, items)) {
			paths_begin(&p, ORIGIN_NAMED("ConfigMap", val_str(*v, configMap, name)));
			paths_add_items(&p, val_get(*v, configMap, items), ORIGIN_NONE);
		}
		if (val_has(*v, secret, items)) {
			paths_begin(&p, ORIGIN_NAMED("Secret", val_str(*v, secret, secretName)));
			paths_add_items(&p, val_get(*v, secret, items), ORIGIN_NONE);
		}
		if (val_has(*v, downwardAPI, items)) {
			paths_begin(&p, ORIGIN("DownwardAPI"));
			paths_add_items(&p, val_get(*v, downwardAPI, items), ORIGIN_NONE);
		}
		if (!val_has(*v, projected))
			continue;
		paths_begin(&p, ORIGIN("Projected"));
		VAL_EACH(source, val_get(*v, projected, sources)) {
			if (!val_len(*source))
				warnf(q, "volume " STR_FMT " (Projected) has no sources provided",
				      STR_ARG(warn_quoted(q, p.volume)));
			paths_add_source(&p, *source);
		}
	}
}
