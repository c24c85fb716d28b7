/*
 * The text form: one family after the other, each with its series in the order of endpoints. Families without a series
 * are left out, as in Kubernetes.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "apiserver/apiserver.h"
#include "apiserver/cache.h"
#include "apiserver/fairness/fairness.h"
#include "apiserver/metrics_priv.h"
#include "apiserver/version.h"
#include "base/clock.h"

#define LIMIT_TEXT(limit) #limit,
static const char *const seconds[] = { METRICS_SECONDS(LIMIT_TEXT) };
static const char *const sizes[] = { METRICS_BYTES(LIMIT_TEXT) };
#undef LIMIT_TEXT

struct metrics_family metrics_family(struct buf *b, const char *name, const char *type, const char *help)
{
	size_t begin = b->n;
	buf_addf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
	return (struct metrics_family){ .b = b, .begin = begin, .lines = b->n };
}

void metrics_family_end(const struct metrics_family *f)
{
	if (f->b->n == f->lines)
		f->b->p[f->b->n = f->begin] = '\0';
}

void metrics_histogram(struct buf *b, const char *name, str labels, const char *const *limits, const uint64_t *buckets, size_t n,
		       double sum)
{
	uint64_t total = 0;
	const char *comma = labels.n ? "," : "";

	for (size_t i = 0; i <= n; i++) {
		total += buckets[i];
		buf_addf(b, "%s_bucket{" STR_FMT "%sle=\"%s\"} %llu\n", name, STR_ARG(labels), comma, i < n ? limits[i] : "+Inf",
			 (unsigned long long)total);
	}
	buf_addf(b, "%s_sum{" STR_FMT "} %.9g\n%s_count{" STR_FMT "} %llu\n", name, STR_ARG(labels), sum, name, STR_ARG(labels),
		 (unsigned long long)total);
}

static void duration(struct buf *b, const char *name, str labels, const struct metrics_duration *d)
{
	metrics_histogram(b, name, labels, seconds, d->buckets, METRICS_N_SECONDS, (double)d->sum_ns / 1e9);
}

/* ---- requests ---- */

struct labels {
	char text[1024];
	size_t n;
};

static void label(struct labels *l, const char *name, str value)
{
	int n = snprintf(l->text + l->n, sizeof l->text - l->n, "%s%s=\"" STR_FMT "\"", l->n ? "," : "", name, STR_ARG(value));
	if (n > 0 && l->n + (size_t)n < sizeof l->text)
		l->n += (size_t)n;
}

static struct labels labels_of(const struct metrics_series *s, bool dry_run)
{
	struct labels l = { .n = 0 };
	const struct resource *r = s->endpoint ? s->endpoint->resource : NULL;

	label(&l, "component", STR("apiserver"));
	if (dry_run)
		label(&l, "dry_run", s->dry_run ? STR("All") : STR(""));
	label(&l, "group", r ? r->group : STR(""));
	label(&l, "resource", r ? s->endpoint->main->resource->name : STR(""));
	label(&l, "scope", str_of(s->scope));
	label(&l, "subresource", r ? s->endpoint->subresource : str_of(s->subresource));
	label(&l, "verb", str_of(s->verb));
	label(&l, "version", r ? r->version : STR(""));
	return l;
}

static uint64_t total(const uint64_t *buckets, size_t n)
{
	uint64_t sum = 0;
	for (size_t i = 0; i <= n; i++)
		sum += buckets[i];
	return sum;
}

/* Every series of every endpoint and path: write says what to show of it. */
static void each_series(const struct metrics *m, struct metrics_family f, void (*write)(const struct metrics_series *s, struct buf *b))
{
	for (size_t i = 0; i <= m->kinds->n_endpoints; i++)
		for (const struct metrics_series *s = m->endpoints[i]; s; s = s->next)
			write(s, f.b);
	metrics_family_end(&f);
}

static void write_total(const struct metrics_series *s, struct buf *b)
{
	struct labels l = labels_of(s, true);
	for (size_t i = 0; i < s->n_codes; i++)
		buf_addf(b, "apiserver_request_total{code=\"%d\",%s} %llu\n", s->codes[i].status, l.text,
			 (unsigned long long)s->codes[i].n);
}

static void write_duration(const struct metrics_series *s, struct buf *b)
{
	struct labels l = labels_of(s, true);
	if (total(s->duration.buckets, METRICS_N_SECONDS))
		duration(b, "apiserver_request_duration_seconds", str_span(l.text, l.n), &s->duration);
}

/* What the service level objective is about: no dry runs. */
static void write_sli_duration(const struct metrics_series *s, struct buf *b)
{
	struct labels l = labels_of(s, false);
	if (!s->dry_run && total(s->duration.buckets, METRICS_N_SECONDS))
		duration(b, "apiserver_request_sli_duration_seconds", str_span(l.text, l.n), &s->duration);
}

static void write_longrunning(const struct metrics_series *s, struct buf *b)
{
	struct labels l = labels_of(s, false);
	if (s->lasts)
		buf_addf(b, "apiserver_longrunning_requests{%s} %lld\n", l.text, (long long)s->running);
}

/* An endpoint can be watched with several scopes; the events are counted by endpoint. */
static void write_events(const struct metrics *m, struct metrics_family f, bool bytes)
{
	for (size_t i = 0; i < m->kinds->n_endpoints; i++) {
		uint64_t buckets[METRICS_N_BYTES + 1] = { 0 }, sum = 0;
		for (const struct metrics_series *s = m->endpoints[i]; s; s = s->next) {
			for (size_t k = 0; k <= METRICS_N_BYTES; k++)
				buckets[k] += s->event_buckets[k];
			sum += s->event_bytes;
		}
		uint64_t n = total(buckets, METRICS_N_BYTES);
		if (!n)
			continue;
		const struct resource *r = m->kinds->endpoints[i].resource;
		struct labels l = { .n = 0 };
		label(&l, "group", r->group);
		label(&l, "resource", r->name);
		label(&l, "version", r->version);
		if (bytes)
			metrics_histogram(f.b, "apiserver_watch_events_sizes", str_span(l.text, l.n), sizes, buckets, METRICS_N_BYTES,
				  (double)sum);
		else
			buf_addf(f.b, "apiserver_watch_events_total{%s} %llu\n", l.text, (unsigned long long)n);
	}
	metrics_family_end(&f);
}

static void write_requests(const struct metrics *m, struct buf *b)
{
	each_series(m, metrics_family(b, "apiserver_request_total", "counter", "Requests by what was asked and how it was answered."),
		    write_total);
	each_series(m, metrics_family(b, "apiserver_request_duration_seconds", "histogram",
			      "How long requests took, without those that last."), write_duration);
	each_series(m, metrics_family(b, "apiserver_request_sli_duration_seconds", "histogram",
			      "How long requests took that the service level counts."), write_sli_duration);
	each_series(m, metrics_family(b, "apiserver_longrunning_requests", "gauge", "Watches and other requests that last."),
		    write_longrunning);
	write_events(m, metrics_family(b, "apiserver_watch_events_total", "counter", "Events sent to watchers."), false);
	write_events(m, metrics_family(b, "apiserver_watch_events_sizes", "histogram", "Bytes of the events sent to watchers."), true);
}

static void write_inflight(const struct flow_control *flow, struct buf *b)
{
	unsigned reading, writing;
	fairness_count(flow, &reading, &writing);
	metrics_family(b, "apiserver_current_inflight_requests", "gauge", "Requests at work now, without those that last.");
	buf_addf(b, "apiserver_current_inflight_requests{request_kind=\"mutating\"} %u\n"
		    "apiserver_current_inflight_requests{request_kind=\"readOnly\"} %u\n",
		 writing, reading);
}

/* ---- the store ---- */

static void write_store_requests(const struct metrics *m, struct buf *b)
{
	static const char *const ops[] = {
#define OP_TEXT(name, text) text,
		METRICS_STORE_OPS(OP_TEXT)
#undef OP_TEXT
	};
	static const char *const names[] = {
		"etcd_request_duration_seconds", "etcd_requests_total", "etcd_request_errors_total",
	};
	static const char *const helps[] = {
		"How long the store took to answer.", "Questions to the store.", "Those that failed.",
	};

	for (size_t f = 0; f < ARRAY_LEN(names); f++) {
		struct metrics_family fam = metrics_family(b, names[f], f ? "counter" : "histogram", helps[f]);
		for (size_t i = 0; i < m->kinds->n_kinds * METRICS_STORE_MAX; i++) {
			const struct metrics_store *s = m->stores[i];
			const struct kind *kind = &m->kinds->kinds[i / METRICS_STORE_MAX];
			if (!s || (f == 2 && !s->errors))
				continue;
			struct labels l = { .n = 0 };
			label(&l, "group", kind->group);
			label(&l, "operation", str_of(ops[i % METRICS_STORE_MAX]));
			label(&l, "resource", kind->resource);
			if (f == 0)
				duration(b, names[f], str_span(l.text, l.n), &s->duration);
			else
				buf_addf(b, "%s{%s} %llu\n", names[f], l.text, (unsigned long long)(f == 1 ? s->requests : s->errors));
		}
		metrics_family_end(&fam);
	}
}

static void write_objects(const struct kinds *kinds, struct buf *b)
{
	metrics_family(b, "apiserver_storage_objects", "gauge", "Stored objects by resource.");
	for (size_t i = 0; i < kinds->n_kinds; i++) {
		const struct kind *k = &kinds->kinds[i];
		buf_addf(b, "apiserver_storage_objects{resource=\"" STR_FMT "%s" STR_FMT "\"} %zu\n", STR_ARG(k->resource),
			 k->group.n ? "." : "", STR_ARG(k->group), k->objects ? omap_len(k->objects) : 0);
	}
	metrics_family(b, "apiserver_resource_objects", "gauge", "Stored objects by group and resource.");
	for (size_t i = 0; i < kinds->n_kinds; i++) {
		const struct kind *k = &kinds->kinds[i];
		buf_addf(b, "apiserver_resource_objects{group=\"" STR_FMT "\",resource=\"" STR_FMT "\"} %zu\n", STR_ARG(k->group),
			 STR_ARG(k->resource), k->objects ? omap_len(k->objects) : 0);
	}
}

static void write_store(const struct apiserver *s, struct buf *b)
{
	struct store_stats stats = { 0 };

	store_stats(s->store, &stats);
	metrics_family(b, "apiserver_storage_size_bytes", "gauge", "Size of the database, as far as it is known.");
	buf_addf(b, "apiserver_storage_size_bytes{storage_cluster_id=\"etcd-0\"} %lld\n", (long long)stats.size_bytes);
	metrics_family(b, "apiserver_storage_decode_errors_total", "counter", "Stored values that could not be decoded and are left out.");
	buf_addf(b, "apiserver_storage_decode_errors_total %llu\n", (unsigned long long)cache_undecodable(s->cache));
	metrics_family(b, "c8s_store_revision", "gauge", "Revision of the newest write.");
	buf_addf(b, "c8s_store_revision %lld\n", (long long)stats.revision);
	metrics_family(b, "c8s_store_commits_total", "counter", "Transactions of the embedded store; writes share them.");
	buf_addf(b, "c8s_store_commits_total %llu\n", (unsigned long long)stats.commits);
	metrics_family(b, "c8s_store_writes_total", "counter", "Writes in those transactions.");
	buf_addf(b, "c8s_store_writes_total %llu\n", (unsigned long long)stats.writes);
}

/* ---- the process ---- */

/* Fields of /proc/self/stat after the name, which may hold anything: 0 is the third of proc(5). */
static bool read_stat(long long *ret, size_t n)
{
	char text[1024];
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t got = read(fd, text, sizeof text);
	(void)close(fd);
	str rest = str_span(text, got > 0 ? (size_t)got : 0), word;
	ptrdiff_t end = str_rchr(rest, ')');
	if (end < 0)
		return false;
	rest = str_skip(rest, (size_t)end + 2);
	for (size_t i = 0; i < n; i++) {
		int64_t number = 0;
		str_cut(rest, ' ', &word, &rest);
		(void)str_to_i64(word, &number);
		ret[i] = number;
	}
	return true;
}

static unsigned count_fds(void)
{
	unsigned n = 0;
	DIR *dir = opendir("/proc/self/fd");
	if (!dir)
		return 0;
	while (readdir(dir))
		n++;
	(void)closedir(dir);
	return n > 3 ? n - 3 : 0; /* without ".", ".." and the folder itself */
}

static void write_process(const struct apiserver *s, struct buf *b)
{
	enum { UTIME = 11, STIME = 12, VSIZE = 20, RSS = 21, FIELDS = 22 };
	long long stat[FIELDS];
	struct rlimit files;

	if (read_stat(stat, FIELDS)) {
		metrics_family(b, "process_cpu_seconds_total", "counter", "Processor time used, in seconds.");
		buf_addf(b, "process_cpu_seconds_total %.2f\n", (double)(stat[UTIME] + stat[STIME]) / (double)sysconf(_SC_CLK_TCK));
		metrics_family(b, "process_resident_memory_bytes", "gauge", "Resident memory in bytes.");
		buf_addf(b, "process_resident_memory_bytes %lld\n", stat[RSS] * (long long)sysconf(_SC_PAGESIZE));
		metrics_family(b, "process_virtual_memory_bytes", "gauge", "Virtual memory in bytes.");
		buf_addf(b, "process_virtual_memory_bytes %lld\n", stat[VSIZE]);
	}
	metrics_family(b, "process_open_fds", "gauge", "Open file descriptors.");
	buf_addf(b, "process_open_fds %u\n", count_fds());
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		metrics_family(b, "process_max_fds", "gauge", "How many file descriptors may be open.");
		buf_addf(b, "process_max_fds %llu\n", (unsigned long long)files.rlim_cur);
	}
	metrics_family(b, "process_start_time_seconds", "gauge", "When the process began, in seconds since 1970.");
	buf_addf(b, "process_start_time_seconds %.3f\n", (double)s->started_wall_ns / 1e9);
}

static void write_build(struct buf *b)
{
	metrics_family(b, "kubernetes_build_info", "gauge", "Always 1; the labels tell the version.");
	buf_addf(b, "kubernetes_build_info{build_date=\"%s\",compiler=\"%s\",git_commit=\"%s\",git_tree_state=\"%s\","
		    "git_version=\"%s\",go_version=\"%s\",major=\"%s\",minor=\"%s\",platform=\"%s\"} 1\n",
		 version_info.build_date, version_info.compiler, version_info.git_commit, version_info.git_tree_state,
		 version_info.git_version, version_info.go_version, version_info.major, version_info.minor, version_info.platform);
}

void metrics_write(const struct metrics *m, struct apiserver *s, struct buf *b)
{
	if (m) {
		write_requests(m, b);
		write_store_requests(m, b);
	}
	if (s->flow) {
		write_inflight(s->flow, b);
		fairness_metrics(s->flow, b);
	}
	if (s->authn)
		authn_metrics(s->authn, b);
	if (s->authz)
		authz_metrics(s->authz, b);
	if (s->admission)
		admission_metrics(s, b);
	audit_metrics(s->audit, b);
	write_objects(&s->kinds, b);
	if (s->store && s->cache)
		write_store(s, b);
	write_process(s, b);
	write_build(b);
}
