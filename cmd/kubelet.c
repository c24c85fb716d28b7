/*
 * c8s kubelet: the agent of a node, with the flags of Kubernetes'. Without --container-runtime-endpoint the container runtime is in the
 * same process: it serves CRI for others as `c8s runtime` does, and the kubelet calls it without a socket between them.
 */
#include "cmd/kubelet.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fiber.h"
#include "base/log.h"
#include "cmd/node_routes.h"
#include "cmd/serve.h"
#include "codec/atoms.h"
#include "kubelet/kubelet.h"

enum { VERBOSE_DEBUG = 4 };

/* One run of the command. */
struct running {
	struct kubelet_flags flags;
	struct kubelet_options options;
	struct runtime_options runtime;
	bool inside;                  /* the runtime is in this process */
	struct kubelet_lock lock;
	struct fiber *main, *routes;  /* routes: NULL until the kubelet is ready */
	struct fiber_cond changed;    /* runtime is there, or has ended */
	bool runtime_ended;
	int runtime_result;
	struct err runtime_err;
};

/* ---- the process ---- */

static void set_logging(struct val config)
{
	if (str_eq(val_str(config, logging, format), STR("json")))
		log_set_format(LOG_FORMAT_JSON);
	if (val_int(config, logging, verbosity) >= VERBOSE_DEBUG)
		log_set_level(LOG_LEVEL_DEBUG);
}

/* As many files as are asked for, or as many as we may. */
static void set_open_files(int64_t wanted)
{
	struct rlimit now, more = { (rlim_t)wanted, (rlim_t)wanted };

	if (wanted <= 0 || getrlimit(RLIMIT_NOFILE, &now) < 0 || setrlimit(RLIMIT_NOFILE, &more) == 0)
		return;
	log_warn("the limit of open files stays below maxOpenFiles", KV("limit", (int64_t)now.rlim_max), KV("maxOpenFiles", wanted));
	now.rlim_cur = now.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &now);
}

static void set_oom_score(int64_t score)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || dprintf(fd, "%d\n", (int)score) < 0)
		log_warn("the score for the OOM killer stays as it is", KV("oomScoreAdj", score), KV("reason", strerror(errno)));
	if (fd >= 0)
		(void)close(fd);
}

/* ---- running ---- */

static void runtime_ready(struct runtime *r, void *arg)
{
	struct running *run = arg;

	run->options.inside = r;
	fiber_cond_broadcast(&run->changed);
}

static int run_runtime(void *arg)
{
	struct running *run = arg;

	run->runtime_result = runtime_run(&run->runtime, runtime_ready, run, &run->runtime_err);
	run->runtime_ended = true;
	fiber_cond_broadcast(&run->changed);
	if (run->runtime_result != -ERR_CANCELED)
		fiber_cancel(run->main);
	return run->runtime_result;
}

static int start_runtime(struct running *run, struct fiber **ret, struct err *err)
{
	int r = fiber_spawn(run_runtime, run, ret, err, "runtime");

	while (r == 0 && !run->options.inside && !run->runtime_ended)
		r = fiber_cond_wait(&run->changed, err);
	return r;
}

static int watch_lock(void *arg)
{
	struct running *run = arg;
	int r = kubelet_lock_wait(&run->lock, NULL);

	if (r == 0) {
		log_info("another process wants the lock file, stopping");
		fiber_cancel(run->main);
	}
	return r;
}

/* By now there is an identity, also where it had to be asked for first. */
static int keep_routes(void *arg)
{
	struct running *run = arg;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct node_routes_options o = { .kubeconfig = run->options.kubeconfig, .servers_file = run->options.api_servers_file,
					 .certificate = val_bool(run->options.config->val, rotateCertificates) ?
								arena_printf(&a, "%s/kubelet-client-current.pem", run->options.cert_dir).p : NULL,
					 .cni_conf_dir = run->runtime.cni_conf_dir,
					 .cni_cache_dir = arena_printf(&a, "%s/cni", run->runtime.root).p };
	struct err err = ERR_INIT;
	int r = kubelet_node_name(&run->options, &a, &o.node_name, &err);

	if (r == 0)
		r = node_routes_run(&o, &err);
	if (r < 0 && r != -ERR_CANCELED)
		log_error("pods of other nodes cannot be reached", KV("err", &err));
	return r;
}

static void ready(void *arg)
{
	struct running *run = arg;
	struct err err = ERR_INIT;

	if (run->flags.pod_routes && run->inside && run->options.kubeconfig && fiber_spawn(keep_routes, run, &run->routes, &err, "pod routes") < 0)
		log_error("pods of other nodes cannot be reached", KV("err", &err));
	printf("c8s kubelet: ready%s%s\n", run->inside ? "; containers are seen by: c8s crictl --runtime-endpoint " : "",
	       run->inside ? run->runtime.listen : "");
	fflush(stdout);
}

static int serve(void *arg, struct err *err)
{
	struct running *run = arg;
	CLEANUP(fiber_stopp) struct fiber *runtime = NULL, *watch = NULL;
	int r = 0;

	run->main = fiber_self();
	if (run->lock.watch_fd >= 0)
		r = fiber_spawn(watch_lock, run, &watch, err, "lock file");
	if (r == 0 && run->inside)
		r = start_runtime(run, &runtime, err);
	if (r == 0 && !run->runtime_ended)
		r = kubelet_run(&run->options, ready, run, err);
	fiber_stopp(&run->routes);
	if (run->runtime_ended && run->runtime_result < 0) {
		*err = run->runtime_err;
		return err_wrap(err, run->runtime_result, "the container runtime ended");
	}
	return r;
}

/* ---- the command ---- */

static int run_all(struct running *run, struct arena *a)
{
	struct err err = ERR_INIT;
	struct val config;
	int r = kubelet_complete(&run->flags, a, &run->options);

	if (r != 0)
		return r;
	config = run->options.config->val;
	set_logging(config);
	run->inside = !val_str(config, containerRuntimeEndpoint).n;
	if (run->inside && (r = runtime_flags_complete(&cmd_kubelet, "runtime-", &run->flags.runtime, a, &run->runtime)) != 0)
		return r;
	set_open_files(val_int(config, maxOpenFiles));
	set_oom_score(val_int(config, oomScoreAdj));
	const char *lock = run->flags.lock_file;
	if (lock && lock[0] && kubelet_lock_take(&run->lock, lock, run->flags.exit_on_lock_contention, &err) < 0)
		return cmd_fail(&cmd_kubelet, &err);
	return cmd_serve("kubelet", serve, run, &err) < 0 ? cmd_fail(&cmd_kubelet, &err) : 0;
}

static int run_command(int argc, char **argv)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf later = BUF_INIT(4096);
	struct running run = { .lock = { -1, -1 }, .changed = FIBER_COND_INIT(run.changed, "the container runtime") };
	int r = flags_parse(&cmd_kubelet, argc, argv, kubelet_flags, &run.flags, &a, &later);

	if (r != 0)
		return r;
	if (run.flags.version) {
		printf("Kubernetes %s\n", KUBERNETES_VERSION);
		return 0;
	}
	if (later.n)
		log_warn("flags are accepted, but have no effect yet", KV("flags", buf_str(&later)));
	r = run_all(&run, &a);
	kubelet_lock_release(&run.lock);
	frozen_unref(run.options.config);
	return r;
}

static void help(void) { flags_help(kubelet_flags); }

const struct command cmd_kubelet = {
	.name = "kubelet",
	.summary = "the agent of a node: runs its pods",
	.manual =
		"Usage: c8s kubelet [--kubeconfig FILE] [--config FILE] [FLAGS]\n"
		"\n"
		"Registers this machine as a node and runs the pods that are bound to it, and those of --pod-manifest-path. Flags and\n"
		"KubeletConfiguration have the names and the meaning that they have in Kubernetes; flags win over files. Called as\n"
		"kubelet the program does the same. Needs root.\n"
		"\n"
		"Containers are run by the program itself, unless --container-runtime-endpoint (or containerRuntimeEndpoint in the\n"
		"configuration) names another runtime, such as unix:///run/containerd/containerd.sock. Pods run on when the kubelet is\n"
		"stopped or killed; the next one takes them up.\n"
		"\n"
		"Without --config the defaults are those of an empty configuration: callers of the kubelet's server have to be known\n"
		"and allowed by the API server. Without --kubeconfig, and without --config, only holders of a certificate of\n"
		"--client-ca-file may call it.\n"
		"\n"
		"SIGTERM and SIGINT stop it in good order, a second one at once; SIGUSR2 shows what it is doing.\n"
		"\n"
		"Exit code: 0 stopped by a signal, 1 it could not go on, 2 wrong usage.\n"
		"\n"
		"Example:\n"
		"  c8s kubelet --kubeconfig ~/cluster/admin.conf --fail-swap-on=false\n",
	.help = help,
	.run = run_command,
};
