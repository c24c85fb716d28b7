/* Volumes made of keys: two of them that want the same path, or one the directory that is the other's file. */
#include "apiserver/warnings_priv.h"

/* Paths of one volume that are compared with each other. */
enum { PATHS_MAX = 1024 };

struct paths {
	struct request *q;
	str volume, kind;   /* its name, and what stands behind it in brackets */
	struct {
		str path, source;
	} *all;
	size_t n;
};

static str place(struct request *q, str path, str source)
{
	str quoted = warn_quoted(q, path);
	return source.n ? arena_printf(q->arena, STR_FMT " (" STR_FMT ")", STR_ARG(quoted), STR_ARG(source)) : quoted;
}

/* The same path, or one in the other. */
static bool overlap(str a, str b)
{
	if (a.n > b.n)
		return overlap(b, a);
	return a.n && str_starts(b, a) && (a.n == b.n || b.p[a.n] == '/');
}

static void paths_add(struct paths *p, str path, str source)
{
	struct request *q = p->q;
	while (path.n && path.p[path.n - 1] == '/')
		path.n--;
	if (!path.n || p->n == PATHS_MAX)
		return;
	for (size_t i = 0; i < p->n; i++) {
		if (!overlap(path, p->all[i].path))
			continue;
		str here = place(q, path, source), there = place(q, p->all[i].path, p->all[i].source);
		warnf(q, "volume " STR_FMT " (" STR_FMT "): overlapping paths: " STR_FMT " with " STR_FMT,
		      STR_ARG(warn_quoted(q, p->volume)), STR_ARG(p->kind), STR_ARG(here), STR_ARG(there));
	}
	p->all[p->n].path = path;
	p->all[p->n++].source = source;
}

static void paths_add_items(struct paths *p, struct val items, str source)
{
	VAL_EACH(item, items)
		paths_add(p, val_str(*item, path), source);
}

static str named(struct request *q, const char *kind, str name)
{
	return arena_printf(q->arena, "%s " STR_FMT, kind, STR_ARG(warn_quoted(q, name)));
}

static void paths_add_certificate(struct paths *p, struct val source)
{
	paths_add(p, val_str(source, certificateChainPath), STR("PodCertificate chain"));
	paths_add(p, val_str(source, keyPath), STR("PodCertificate key"));
	paths_add(p, val_str(source, credentialBundlePath), STR("PodCertificate credential bundle"));
}

static void paths_add_source(struct paths *p, struct val source)
{
	struct request *q = p->q;
	if (val_has(source, configMap, items)) {
		paths_add_items(p, val_get(source, configMap, items), named(q, "ConfigMap", val_str(source, configMap, name)));
	} else if (val_has(source, secret, items)) {
		paths_add_items(p, val_get(source, secret, items), named(q, "Secret", val_str(source, secret, name)));
	} else if (val_has(source, downwardAPI, items)) {
		paths_add_items(p, val_get(source, downwardAPI, items), STR("DownwardAPI"));
	} else if (val_has(source, serviceAccountToken)) {
		paths_add(p, val_str(source, serviceAccountToken, path), STR("ServiceAccountToken"));
	} else if (val_has(source, clusterTrustBundle)) {
		struct val bundle = val_get(source, clusterTrustBundle);
		str name = val_has(bundle, name) ? val_str(bundle, name) : val_str(bundle, signerName);
		paths_add(p, val_str(bundle, path), named(q, "ClusterTrustBundle", name));
	} else if (val_has(source, podCertificate)) {
		paths_add_certificate(p, val_get(source, podCertificate));
	}
}

static void paths_begin(struct paths *p, str kind)
{
	p->kind = kind;
	p->n = 0;
	if (!p->all)
		p->all = arena_array_of(p->q->arena, PATHS_MAX, sizeof *p->all, _Alignof(str));
}

void warn_volume_paths(struct request *q, struct val volumes)
{
	struct paths p = { .q = q };
	VAL_EACH(v, volumes) {
		p.volume = val_str(*v, name);
		if (val_has(*v, configMap, items)) {
			paths_begin(&p, named(q, "ConfigMap", val_str(*v, configMap, name)));
			paths_add_items(&p, val_get(*v, configMap, items), STR_NONE);
		}
		if (val_has(*v, secret, items)) {
			paths_begin(&p, named(q, "Secret", val_str(*v, secret, secretName)));
			paths_add_items(&p, val_get(*v, secret, items), STR_NONE);
		}
		if (val_has(*v, downwardAPI, items)) {
			paths_begin(&p, STR("DownwardAPI"));
			paths_add_items(&p, val_get(*v, downwardAPI, items), STR_NONE);
		}
		if (!val_has(*v, projected))
			continue;
		paths_begin(&p, STR("Projected"));
		VAL_EACH(source, val_get(*v, projected, sources)) {
			if (!val_len(*source))
				warnf(q, "volume " STR_FMT " (Projected) has no sources provided", STR_ARG(warn_quoted(q, p.volume)));
			paths_add_source(&p, *source);
		}
	}
}
