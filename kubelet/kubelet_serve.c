/*
 * The ports of a kubelet: its HTTP API with certificates, the part of that which everybody may read, and one for health checks from the
 * same machine.
 */
#include "base/clock.h"
#include "base/log.h"
#include "codec/atoms.h"
#include "kubelet/kubelet_priv.h"
#include "kubelet/pods.h"

/* Not healthy when the runtime could not be listed for so long. */
enum { LIST_LATE_S = 180 };
/* A port that is taken may come free. */
enum { HEALTH_AGAIN_MS = 5000 };

static struct val all_pods(void *arg, struct arena *a)
{
	struct kubelet *k = arg;
	return pods_list(k->pods, a, false);
}

static struct val one_pod(void *arg, struct arena *a, str namespace, str name)
{
	struct kubelet *k = arg;
	return pods_get(k->pods, a, namespace, name);
}

static struct val summary(void *arg, struct arena *a)
{
	struct kubelet *k = arg;
	return stats_summary(k->stats, a, false);
}

static void metrics(void *arg, str which, struct buf *text)
{
	struct kubelet *k = arg;

	if (str_eq(which, STR("probes")))
		probes_metrics(k->probes, text);
	else
		stats_metrics(k->stats, which, text);
}

static struct val config(void *arg, struct arena *a)
{
	const struct kubelet *k = arg;
	return val_copy(a, k->config);
}

static bool alive(void *arg)
{
	const struct kubelet *k = arg;
	return clock_wall_ns() - runtime_pods_listed_ns(k->runtime_pods) < LIST_LATE_S * NS_PER_S;
}

static int listen_and_run(const struct http_server_options *o, str address, int64_t port, const char *what, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct http_server *s = NULL;
	uint16_t got = 0;
	const char *at = arena_str(&a, address).p;
	int r;

	if ((r = http_server_new(o, &s, err)) < 0)
		return r;
	if ((r = http_server_listen(s, at, (uint16_t)port, &got, err)) >= 0) {
		log_info(what, KV("address", at), KV("port", (int)got));
		r = http_server_run(s, 1000, err);
	}
	http_server_free(s);
	return r;
}

/* What both servers have. */
static struct kubelet_server_options shared(struct kubelet *k)
{
	return (struct kubelet_server_options){ .node = &k->node, .cri = k->cri, .pods = all_pods, .pod = one_pod, .summary = summary,
						.metrics = metrics, .config = config, .alive = alive, .arg = k };
}

int kubelet_serve(struct kubelet *k, struct err *err)
{
	struct val c = k->config;
	struct kubelet_server_options o = shared(k);

	o.tls = certificates_tls(k->certificates);
	o.client = k->client;
	o.auth = k->auth;
	o.no_tokens = !val_bool(c, authentication, webhook, enabled);
	o.allow_all = str_eq(val_str(c, authorization, mode), STR("AlwaysAllow"));
	o.anonymous = val_bool(c, authentication, anonymous, enabled);
	o.no_debugging = val_has(c, enableDebuggingHandlers) && !val_bool(c, enableDebuggingHandlers);
	o.system_logs = val_bool(c, enableSystemLogHandler) ? "/var/log" : NULL;
	return listen_and_run(&(struct http_server_options){ .tls = o.tls, .handle = kubelet_server_handle, .arg = &o }, val_str(c, address),
			      val_int(c, port), "kubelet serves", err);
}

int kubelet_serve_read_only(struct kubelet *k, struct err *err)
{
	struct kubelet_server_options o = shared(k);

	o.anonymous = o.allow_all = o.no_debugging = true;
	return listen_and_run(&(struct http_server_options){ .handle = kubelet_server_handle, .arg = &o }, val_str(k->config, address),
			      val_int(k->config, readOnlyPort), "kubelet serves without authentication", err);
}

static int health(struct http_exchange *x, void *arg)
{
	bool good = alive(arg);
	const struct http_header type = { STR("content-type"), STR("text/plain; charset=utf-8") };

	http_answer(x, good ? 200 : 500, &type, 1, good ? STR("ok") : STR("the runtime has not been listed for three minutes"));
	return 0;
}

int kubelet_serve_health(struct kubelet *k, struct err *err)
{
	const struct http_server_options o = { .handle = health, .arg = k };
	int r;

	do {
		struct err failed = ERR_INIT;
		r = listen_and_run(&o, val_str(k->config, healthzBindAddress), val_int(k->config, healthzPort), "kubelet answers health checks", &failed);
		if (r < 0 && r != -ERR_CANCELED)
			log_error("health checks cannot be answered", KV("error", &failed));
	} while ((r = fiber_sleep_ms(HEALTH_AGAIN_MS, err)) >= 0);
	return r;
}
