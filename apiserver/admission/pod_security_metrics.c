/* What was compared with which standard, let be or not understood, under the names that dashboards for Kubernetes know. */
#include <stdlib.h>

#include "apiserver/admission/pod_security.h"
#include "apiserver/metrics_priv.h"
#include "apiserver/version.h"
#include "base/mem.h"

/* There are not many versions that namespaces name; more are not counted. */
enum { SERIES_MAX = 1000 };

enum family { EVALUATIONS, EXEMPTIONS, ERRORS, FAMILIES };

struct series {
	enum family family;
	enum pod_mode mode;           /* of evaluations, like standard and denied */
	struct pod_standard standard;
	bool denied, fatal, update, controller;
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

/* ---- counting ---- */

static bool same(const struct series *a, const struct series *b)
{
	return a->family == b->family && a->mode == b->mode && pod_standard_eq(a->standard, b->standard) && a->denied == b->denied &&
	       a->fatal == b->fatal && a->update == b->update && a->controller == b->controller && a->subresource == b->subresource;
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

static void add(struct pod_security_counts *c, const struct request *q, struct series one)
{
	one.update = val_exists(q->old);
	one.controller = !str_eq(q->resource, STR("pods"));
	one.subresource = subresource_of(q);
	one.n = 1;
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

void pod_security_count(struct pod_security_counts *c, const struct request *q, enum pod_mode mode, struct pod_standard s, bool denied)
{
	if (s.level == POD_PRIVILEGED)
		s.minor = POD_LATEST; /* it is the same in all versions */
	int64_t newest = 0;
	(void)str_to_i64(str_of(version_info.minor), &newest);
	if (s.minor != POD_LATEST && s.minor > newest)
		s.minor = POD_FUTURE;
	add(c, q, (struct series){ .family = EVALUATIONS, .mode = mode, .standard = s, .denied = denied });
}

void pod_security_count_exempt(struct pod_security_counts *c, const struct request *q)
{
	add(c, q, (struct series){ .family = EXEMPTIONS });
}

void pod_security_count_error(struct pod_security_counts *c, const struct request *q, bool fatal)
{
	add(c, q, (struct series){ .family = ERRORS, .fatal = fatal });
}

/* ---- writing ---- */

static void write_own_labels(const struct series *s, struct buf *b)
{
	static const char *const modes[] = { [POD_ENFORCE] = "enforce", [POD_AUDIT] = "audit", [POD_WARN] = "warn" };
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str level, version;
	if (s->family == ERRORS)
		buf_addf(b, "fatal=\"%s\",", s->fatal ? "true" : "false");
	if (s->family != EVALUATIONS)
		return;
	str_cut(pod_standard_text(&a, s->standard), ':', &level, &version);
	if (s->standard.minor == POD_FUTURE)
		version = STR("future");
	buf_addf(b, "decision=\"%s\",mode=\"%s\",policy_level=\"" STR_FMT "\",policy_version=\"" STR_FMT "\",",
		 s->denied ? "deny" : "allow", modes[s->mode], STR_ARG(level), STR_ARG(version));
}

void pod_security_counts_write(const struct pod_security_counts *c, struct buf *b)
{
	static const struct {
		const char *name, *help;
	} families[FAMILIES] = {
		[EVALUATIONS] = { "pod_security_evaluations_total", "Pods that were compared with a standard." },
		[EXEMPTIONS] = { "pod_security_exemptions_total", "Pods that were let be, by configuration." },
		[ERRORS] = { "pod_security_errors_total", "Pods whose standard could not be found out, or was taken for the strictest." },
	};
	for (size_t i = 0; i < FAMILIES; i++) {
		struct metrics_family f = metrics_family(b, families[i].name, "counter", families[i].help);
		for (const struct series *s = c->series; s < c->series + c->n; s++) {
			if (s->family != i)
				continue;
			buf_addf(b, "%s{", families[i].name);
			write_own_labels(s, b);
			buf_addf(b, "request_operation=\"%s\",resource=\"%s\",subresource=\"%s\"} %llu\n", s->update ? "update" : "create",
				 s->controller ? "controller" : "pod", s->subresource, (unsigned long long)s->n);
		}
		metrics_family_end(&f);
	}
}
