/* Evaluations by what was compared with which standard, under the names that dashboards for Kubernetes know. */
#include <stdlib.h>

#include "apiserver/admission/pod_security.h"
#include "apiserver/metrics_priv.h"
#include "base/mem.h"

/* There are not many versions that namespaces name; more are not counted. */
enum { SERIES_MAX = 1000 };

struct series {
	enum pod_mode mode;
	struct pod_standard standard;
	bool denied, update, controller;
	const char *subresource;
	uint64_t n;
};

struct pod_security_counts {
	struct series *series;
	size_t n;
};

struct pod_security_counts *pod_security_counts_new(void) { return mem_zalloc(sizeof(struct pod_security_counts)); }

void pod_security_counts_free(struct pod_security_counts *c)
{
	if (!c)
		return;
	free(c->series);
	free(c);
}

static bool same(const struct series *a, const struct series *b)
{
	return a->mode == b->mode && pod_standard_eq(a->standard, b->standard) && a->denied == b->denied && a->update == b->update &&
	       a->controller == b->controller && a->subresource == b->subresource;
}

/* One of a few texts that stay. */
static const char *subresource_of(const struct request *q)
{
	static const char *const known[] = { "", "ephemeralcontainers", "resize" };
	for (size_t i = 1; i < ARRAY_LEN(known); i++)
		if (str_eq(q->subresource, str_of(known[i])))
			return known[i];
	return known[0];
}

void pod_security_count(struct pod_security_counts *c, const struct request *q, enum pod_mode mode, struct pod_standard s, bool denied)
{
	if (s.level == POD_PRIVILEGED)
		s.minor = POD_LATEST; /* it is the same in all versions */
	const struct series one = {
		.mode = mode, .standard = s, .denied = denied, .update = val_exists(q->old),
		.controller = !str_eq(q->resource, STR("pods")), .subresource = subresource_of(q), .n = 1,
	};
	for (size_t i = 0; i < c->n; i++)
		if (same(&c->series[i], &one)) {
			c->series[i].n++;
			return;
		}
	if (c->n == SERIES_MAX)
		return;
	c->series = mem_resize(c->series, (c->n + 1) * sizeof *c->series);
	c->series[c->n++] = one;
}

void pod_security_counts_write(const struct pod_security_counts *c, struct buf *b)
{
	static const char *const modes[] = { [POD_ENFORCE] = "enforce", [POD_AUDIT] = "audit", [POD_WARN] = "warn" };
	struct metrics_family f = metrics_family(b, "pod_security_evaluations_total", "counter", "Pods that were compared with a standard.");
	for (const struct series *s = c->series; s < c->series + c->n; s++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		str level, version;
		str_cut(pod_standard_text(&a, s->standard), ':', &level, &version);
		buf_addf(b, "pod_security_evaluations_total{decision=\"%s\",mode=\"%s\",policy_level=\"" STR_FMT "\",policy_version=\"" STR_FMT
			    "\",request_operation=\"%s\",resource=\"%s\",subresource=\"%s\"} %llu\n", s->denied ? "deny" : "allow",
			 modes[s->mode], STR_ARG(level), STR_ARG(version), s->update ? "update" : "create",
			 s->controller ? "controller" : "pod", s->subresource, (unsigned long long)s->n);
	}
	metrics_family_end(&f);
}
