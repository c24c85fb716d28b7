/*
 * /healthz, /livez and /readyz: the checks of kube-apiserver under their names. The steps of its start (poststarthook/...)
 * are done here once the server is ready, all together; the others look at what they name.
 */
#include "apiserver/cache.h"
#include "apiserver/documents_priv.h"
#include "base/fiber.h"

enum { ON_HEALTHZ = 1, ON_LIVEZ = 2, ON_READYZ = 4, ON_ALL = 7 };

enum { STORE_TIMEOUT_MS = 2000, EXCLUDES_MAX = 64 };

/* Each check: 0, or an error that says why not. */

static int check_nothing(struct apiserver *s, struct err *err)
{
	(void)s;
	(void)err;
	return 0;
}

/* (suspends) A store that can be asked for its revision works. */
static int check_store(struct apiserver *s, struct err *err)
{
	int64_t revision;
	if (!s->store)
		return err_set(err, ERR_UNAVAILABLE, "etcd client connection not yet established");
	DEADLINE_SCOPE(STORE_TIMEOUT_MS);
	return store_revision(s->store, &revision, err);
}

/* (suspends) A store whose file is damaged can be read, but whoever writes would only get errors. */
static int check_store_writable(struct apiserver *s, struct err *err)
{
	struct store_stats stats = { 0 };
	int r = check_store(s, err);
	if (r < 0)
		return r;
	store_stats(s->store, &stats);
	return stats.read_only ? err_set(err, ERR_UNAVAILABLE, "the store is read-only") : 0;
}

static int check_cache(struct apiserver *s, struct err *err)
{
	return s->cache && cache_is_ready(s->cache) ? 0 : err_set(err, ERR_UNAVAILABLE, "the cache has not been loaded yet");
}

/* What was done at the start stays done while the server stops: it is alive then, only not ready. */
static int check_started(struct apiserver *s, struct err *err)
{
	return s->ready || s->stopping ? 0 : err_set(err, ERR_UNAVAILABLE, "not finished");
}

static int check_shutdown(struct apiserver *s, struct err *err)
{
	return s->stopping ? err_set(err, ERR_UNAVAILABLE, "process is shutting down") : 0;
}

static const struct check {
	const char *name;
	unsigned on;
	int (*run)(struct apiserver *s, struct err *err);
} checks[] = {
	{ "ping", ON_ALL, check_nothing },
	{ "log", ON_ALL, check_nothing },
	{ "loopback-serving-certificate", ON_HEALTHZ | ON_LIVEZ, check_nothing },
	{ "etcd", ON_ALL, check_store },
	{ "etcd-readiness", ON_READYZ, check_store_writable },
	{ "informer-sync", ON_READYZ, check_cache },
	{ "poststarthook/start-apiserver-admission-initializer", ON_ALL, check_started },
	{ "poststarthook/generic-apiserver-start-informers", ON_ALL, check_started },
	{ "poststarthook/priority-and-fairness-config-consumer", ON_ALL, check_started },
	{ "poststarthook/priority-and-fairness-filter", ON_ALL, check_started },
	{ "poststarthook/storage-object-count-tracker-hook", ON_ALL, check_started },
	{ "poststarthook/start-apiextensions-informers", ON_ALL, check_started },
	{ "poststarthook/start-apiextensions-controllers", ON_ALL, check_started },
	{ "poststarthook/crd-informer-synced", ON_ALL, check_started },
	{ "poststarthook/start-system-namespaces-controller", ON_ALL, check_started },
	{ "poststarthook/peer-endpoint-reconciler-controller", ON_ALL, check_started },
	{ "poststarthook/start-cluster-authentication-info-controller", ON_ALL, check_started },
	{ "poststarthook/start-kube-apiserver-identity-lease-controller", ON_ALL, check_started },
	{ "poststarthook/start-kube-apiserver-identity-lease-garbage-collector", ON_ALL, check_started },
	{ "poststarthook/storage-readiness", ON_ALL, check_started },
	{ "poststarthook/start-legacy-token-tracking-controller", ON_ALL, check_started },
	{ "poststarthook/start-service-ip-repair-controllers", ON_ALL, check_started },
	{ "poststarthook/rbac/bootstrap-roles", ON_ALL, check_started },
	{ "poststarthook/scheduling/bootstrap-system-priority-classes", ON_ALL, check_started },
	{ "poststarthook/priority-and-fairness-config-producer", ON_ALL, check_started },
	{ "poststarthook/bootstrap-controller", ON_ALL, check_started },
	{ "poststarthook/start-kubernetes-service-cidr-controller", ON_ALL, check_started },
	{ "poststarthook/start-kube-aggregator-informers", ON_ALL, check_started },
	{ "poststarthook/apiservice-status-local-available-controller", ON_ALL, check_started },
	{ "poststarthook/apiservice-status-remote-available-controller", ON_ALL, check_started },
	{ "poststarthook/apiservice-registration-controller", ON_ALL, check_started },
	{ "poststarthook/apiservice-discovery-controller", ON_ALL, check_started },
	{ "poststarthook/kube-apiserver-autoregistration", ON_ALL, check_started },
	{ "autoregister-completion", ON_ALL, check_started },
	{ "poststarthook/apiservice-openapi-controller", ON_ALL, check_started },
	{ "poststarthook/apiservice-openapiv3-controller", ON_ALL, check_started },
	{ "shutdown", ON_READYZ, check_shutdown },
};

static unsigned endpoint_bit(str endpoint)
{
	if (str_eq(endpoint, STR("healthz")))
		return ON_HEALTHZ;
	return str_eq(endpoint, STR("livez")) ? ON_LIVEZ : ON_READYZ;
}

const char *health_check(size_t i, str endpoint)
{
	if (i >= ARRAY_LEN(checks))
		return NULL;
	return checks[i].on & endpoint_bit(endpoint) ? checks[i].name : "";
}

static int one_check(struct request *q, unsigned bit, str name, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
		if (!(checks[i].on & bit) || !str_eq(name, str_of(checks[i].name)))
			continue;
		struct err why = ERR_INIT;
		if (checks[i].run(q->server, &why) < 0)
			answer_text(q, 500, arena_printf(q->arena, "internal server error: " STR_FMT "\n", STR_ARG(err_str(&why))));
		else
			answer_bytes(q, 200, STR("text/plain; charset=utf-8"), STR("ok"));
		return 0;
	}
	return err_set(err, ERR_NOT_FOUND, "no such check");
}

static bool excluded(const struct request *q, const char *name)
{
	for (size_t i = 0; i < q->n_query; i++)
		if (str_eq(q->query[i].name, STR("exclude")) && str_eq(q->query[i].value, str_of(name)))
			return true;
	return false;
}

static bool has_query(const struct request *q, str name)
{
	for (size_t i = 0; i < q->n_query; i++)
		if (str_eq(q->query[i].name, name))
			return true;
	return false;
}

/* A line about names that exclude= gave and that are no checks, each once and in byte order. */
static void warn_unknown(const struct request *q, unsigned bit, struct buf *b)
{
	str names[EXCLUDES_MAX];
	size_t n = 0;

	for (size_t i = 0; i < q->n_query && n < EXCLUDES_MAX; i++) {
		str name = q->query[i].value;
		bool known = !str_eq(q->query[i].name, STR("exclude"));
		for (size_t k = 0; k < ARRAY_LEN(checks) && !known; k++)
			known = checks[k].on & bit && str_eq(name, str_of(checks[k].name));
		size_t at = 0;
		while (at < n && str_cmp(names[at], name) < 0)
			at++;
		if (known || (at < n && str_eq(names[at], name)))
			continue;
		memmove(&names[at + 1], &names[at], (n - at) * sizeof *names);
		names[at] = name;
		n++;
	}
	for (size_t i = 0; i < n; i++) {
		buf_add(b, i ? STR(",") : STR("warn: some health checks cannot be excluded: no matches for "));
		buf_add_quoted(b, names[i]);
	}
	if (n)
		buf_addc(b, '\n');
}

int health_handle(struct request *q, str endpoint, str check, struct err *err)
{
	enum { LINES_MAX = 1 << 20 };
	CLEANUP(buf_done) struct buf b = BUF_INIT(LINES_MAX);
	unsigned bit = endpoint_bit(endpoint), failed = 0;

	if (check.n)
		return one_check(q, bit, check, err);
	for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
		if (!(checks[i].on & bit))
			continue;
		if (excluded(q, checks[i].name)) {
			buf_addf(&b, "[+]%s excluded: ok\n", checks[i].name);
		} else if (checks[i].run(q->server, NULL) < 0) {
			/* Everybody may ask here: why it failed is told by the check's own path, which not everybody may read. */
			buf_addf(&b, "[-]%s failed: reason withheld\n", checks[i].name);
			failed++;
		} else {
			buf_addf(&b, "[+]%s ok\n", checks[i].name);
		}
	}
	warn_unknown(q, bit, &b);
	int r = fiber_self() ? fiber_check(err) : 0;
	if (r < 0)
		return r;
	buf_addf(&b, failed ? STR_FMT " check failed\n" : STR_FMT " check passed\n", STR_ARG(endpoint));
	bool verbose = failed || has_query(q, STR("verbose"));
	answer_text(q, failed ? 500 : 200, verbose ? arena_str(q->arena, buf_str(&b)) : STR("ok"));
	return 0;
}
