/*
 * c8s kube-scheduler: the scheduler alone, with the flags of Kubernetes'. It sees the API server only, as whoever its kubeconfig says; of several
 * one works, and the others wait for its lease.
 */
#include "cmd/kube_scheduler.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "client/kubeconfig.h"
#include "cmd/component.h"
#include "cmd/serve.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "scheduler/config.h"
#include "scheduler/scheduler.h"

#define NAME "kube-scheduler"

/* ---- the port ---- */

static void metrics(void *arg, struct buf *out)
{
	const struct kube_scheduler *s = arg;

	scheduler_metrics(s->scheduler, out);
}

static struct val config_of(void *arg)
{
	const struct kube_scheduler *s = arg;

	return s->config->val;
}

static const char *handlers_synced(void *arg)
{
	const struct kube_scheduler *s = arg;

	return s->synced ? NULL : "handlers are not fully synchronized";
}

/* /why/NAMESPACE/NAME: for `c8s why`. */
static int why(void *arg, struct http_exchange *x, struct buf *out)
{
	CLEANUP(frozen_unrefp) struct frozen *pod = NULL;
	struct kube_scheduler *s = arg;
	struct err err = ERR_INIT;
	str namespace, name;

	if (!str_starts(x->path, STR("/why/")) || !str_cut(str_skip(x->path, 5), '/', &namespace, &name) || !name.n)
		return 0;
	if (client_get(s->client, TYPE(core_v1, Pod), namespace, name, &pod, &err) < 0) {
		buf_addf(out, "%s\n", err.msg);
		return err_http_status(err.code);
	}
	struct val result = scheduler_why(s->scheduler, x->arena, pod->val);
	if (json_encode(out, result, &(struct json_encode_options){ .indent = 2 }, &err) < 0)
		return 500;
	buf_addc(out, '\n');
	return 200;
}

/* ---- one run ---- */

static int sync_informers(struct kube_scheduler *s, struct err *err)
{
	int r = informers_start(s->informers, err);

	if (r == 0)
		r = informers_wait(s->informers, err);
	s->synced = r == 0;
	return r;
}

static int lead(void *arg)
{
	struct kube_scheduler *s = arg;
	int r = s->synced ? 0 : sync_informers(s, &s->err);

	if (r == 0) {
		log_info("scheduling begins");
		r = scheduler_run(s->scheduler, &s->err);
	}
	return s->result = r;
}

static int64_t ms_of(struct val duration) { return sched_duration_ns(duration) / NS_PER_MS; }

static int work(void *arg, struct err *err)
{
	struct kube_scheduler *s = arg;
	struct val c = s->config->val, l = val_get(c, leaderElection);
	struct election e = { .namespace = val_str(l, resourceNamespace), .name = val_str(l, resourceName), .lease_ms = ms_of(val_get(l, leaseDuration)),
			      .renew_ms = ms_of(val_get(l, renewDeadline)), .retry_ms = ms_of(val_get(l, retryPeriod)), .release = true };
	bool elects = val_bool(l, leaderElect);
	int r = elects && val_bool(c, delayCacheUntilActive) ? 0 : sync_informers(s, err);

	if (r < 0)
		return r;
	s->on_ready(s->arg);
	r = elects ? component_elect(&e, s->client, val_str(val_at(val_get(c, profiles), 0), schedulerName), lead, s, err) : lead(s);
	/* What the scheduler ended with says more. */
	if (s->result < 0 && s->result != -ERR_CANCELED) {
		*err = s->err;
		return s->result;
	}
	return r;
}

int kube_scheduler_run(struct kube_scheduler *s, struct err *err)
{
	static const struct component_check checks[] = { { "sched-handler-sync", true, handlers_synced }, { NULL, false, NULL } };
	struct component_server server = { .name = NAME, .flags = &s->flags.server, .client = s->client, .checks = checks, .metrics = metrics,
		.config = config_of, .config_name = "componentconfig", .config_type = TYPE(kubeschedulerconfig_v1, KubeSchedulerConfiguration),
		.other = why, .arg = s };

	s->synced = false;
	s->result = 0;
	s->informers = informers_new(s->client);
	int r = scheduler_new(&(struct scheduler_options){ .client = s->client, .informers = s->informers, .config = s->config,
			      .seed = (uint64_t)s->flags.seed, .unschedulable_max_ms = s->flags.unschedulable_max_ns / NS_PER_MS, .gates = s->gates }, &s->scheduler, err);
	if (r == 0)
		r = component_run(&server, work, s, err);
	scheduler_free(TAKE(s->scheduler));
	informers_free(TAKE(s->informers));
	return r;
}

/* ---- over HTTPS ---- */

static int open_client(struct kube_scheduler *s, struct arena *a, struct err *err)
{
	struct val c = val_get(s->config->val, clientConnection);
	str path = val_str(c, kubeconfig);
	struct client_config config = { .user_agent = STR_NONE };
	const char *master = s->flags.master;
	bool only_master = master && master[0] && !path.n;
	int r = only_master ? 0 : kubeconfig_open(a, path.n ? arena_str(a, path).p : NULL, &config, err);

	if (r < 0)
		return r;
	if (master && master[0])
		config.server = str_of(master);
	config.user_agent = STR(NAME "/" KUBERNETES_VERSION " (linux/amd64) scheduler");
	if ((r = client_open(&config, &s->client, err)) == 0)
		client_limit(s->client, val_double(c, qps), (unsigned)val_int(c, burst));
	return r;
}

static void ready(void *arg)
{
	(void)arg;
	printf("c8s " NAME ": ready\n");
	fflush(stdout);
}

static int serve(void *arg, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct kube_scheduler *s = arg;
	int r = open_client(s, &a, err);

	if (r < 0)
		return r;
	s->on_ready = ready;
	r = kube_scheduler_run(s, err);
	client_free(s->client);
	return r;
}

/* ---- the command ---- */

static int run_command(int argc, char **argv)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf later = BUF_INIT(4096);
	struct kube_scheduler s = { .synced = false };
	const struct command *c = &cmd_kube_scheduler;
	struct err err = ERR_INIT;
	int r = flags_parse(c, argc, argv, kube_scheduler_flags, &s.flags, &a, &later);

	if (r != 0)
		return r;
	if (s.flags.version) {
		printf("Kubernetes %s\n", KUBERNETES_VERSION);
		return 0;
	}
	if ((r = cmd_set_logging(c, s.flags.logging_format, s.flags.verbosity)) != 0)
		return r;
	if (later.n)
		log_warn("flags are accepted, but have no effect yet", KV("flags", buf_str(&later)));
	r = kube_scheduler_complete(c, &s.flags, &a, &s.config, &s.gates);
	if (r == 0 && !(s.flags.write_config_to && s.flags.write_config_to[0]))
		r = cmd_serve(NAME, serve, &s, &err) < 0 ? cmd_fail(c, &err) : 0;
	frozen_unref(s.config);
	return r;
}

static void help(void) { flags_help(kube_scheduler_flags); }

const struct command cmd_kube_scheduler = {
	.name = "kube-scheduler",
	.summary = "finds a node for each pod",
	.manual =
		"Usage: c8s kube-scheduler [--kubeconfig FILE] [--config FILE] [FLAGS]\n"
		"\n"
		"Watches for pods without a node, chooses the best one for each, and binds it. Flags and KubeSchedulerConfiguration\n"
		"have the names and the meaning that they have in Kubernetes: with --config only the flags of leader election count\n"
		"besides the file. Called as kube-scheduler the program does the same.\n"
		"\n"
		"Without --kubeconfig it uses the service account of the pod that it runs in. Health, metrics and the configuration\n"
		"in force are served on --secure-port; /why/NAMESPACE/POD tells for each node which plugin refuses the pod and why,\n"
		"and the scores of the others.\n"
		"\n"
		"SIGTERM and SIGINT stop it in good order, a second one at once; SIGUSR2 shows what it is doing.\n"
		"\n"
		"Exit code: 0 stopped by a signal, 1 it could not go on (or is not the leader any more), 2 wrong usage.\n"
		"\n"
		"Example:\n"
		"  c8s kube-scheduler --kubeconfig ~/cluster/scheduler.conf --leader-elect=false\n",
	.help = help,
	.run = run_command,
};
