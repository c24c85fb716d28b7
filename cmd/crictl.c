/* c8s crictl: its actions, its manual, and the calls. */
#include "cmd/crictl.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/loop.h"
#include "base/mem.h"
#include "codec/codec.h"

enum { REQUEST_MAX = 64 << 20 };

/* ---- calls ---- */

static struct grpc_channel *channel_for(const struct crictl *c, const struct rpc *rpc)
{
	return str_starts(rpc->path, STR("/runtime.v1.ImageService/")) ? c->image_channel : c->channel;
}

static int call(struct crictl *c, const struct rpc *rpc, struct val request, struct val *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(REQUEST_MAX);
	CLEANUP(grpc_message_freep) struct grpc_message *m = NULL;
	int64_t begin = clock_now_ns();
	int r = proto_encode(&b, request, rpc->request, err);

	if (r < 0)
		return r;
	r = grpc_call(channel_for(c, rpc), rpc->path, 0, buf_str(&b), &m, NULL, err);
	if (c->debug)
		fprintf(stderr, STR_FMT ": %zu bytes to, %zu bytes from the runtime, %.1f ms\n", STR_ARG(rpc->path), b.n,
			grpc_message_str(m).n, (double)(clock_now_ns() - begin) / 1e6);
	if (r < 0)
		return r;
	r = proto_decode(&c->arena, arena_str(&c->arena, grpc_message_str(m)), rpc->response, ret, err);
	return r < 0 ? err_wrap(err, r, "the runtime's answer to " STR_FMT, STR_ARG(rpc->path)) : 0;
}

int crictl_call_within(struct crictl *c, const struct rpc *rpc, struct val request, int64_t ms, struct val *ret, struct err *err)
{
	if (!ms)
		return call(c, rpc, request, ret, err);
	DEADLINE_SCOPE(ms);
	return call(c, rpc, request, ret, err);
}

int crictl_call(struct crictl *c, const struct rpc *rpc, struct val request, struct val *ret, struct err *err)
{
	return crictl_call_within(c, rpc, request, c->timeout_ms, ret, err);
}

/* ---- actions ---- */

const struct crictl_option crictl_global_options[] = {
	{ 'r', "runtime-endpoint", "URL", "where CRI is served: unix:///path, or http://host:port" },
	{ 'i', "image-endpoint", "URL", "where images are served, when that is somewhere else" },
	{ 't', "timeout", "DURATION", "of a call that is not a pull (default 2m)" },
	{ 'c', "config", "FILE", "settings (default $CRI_CONFIG_FILE, or /etc/crictl.yaml)" },
	{ 'D', "debug", NULL, "tells of each call on standard error" },
	{ 0 },
};

#define OPTION_OUTPUT(what) { 'o', "output", "FORMAT", what }
#define OPTION_QUIET_IDS { 'q', "quiet", NULL, "ids only" }
#define OPTION_NO_INFO { 'q', "quiet", NULL, "without what the runtime adds for debugging" }
#define OPTION_LABEL { 0, "label", "KEY=VALUE", "with this label; several must all be there" }
#define OPTION_NAMESPACE { 0, "namespace", "REGEX", "of pods of such namespaces" }
#define OPTION_NEWEST { 'l', "latest", NULL, "the newest one, whatever its state" }, { 'n', "last", "N", "the N newest ones" }
#define OPTION_NO_TRUNC { 0, "no-trunc", NULL, "ids in full" }
#define OPTION_CONTAINERS                                       \
	{ 0, "name", "REGEX", "with such a name" },             \
	{ 'p', "pod", "ID", "of this pod" },                    \
	{ 0, "image", "IMAGE", "of this image" },               \
	OPTION_LABEL, OPTION_NEWEST
#define OPTION_STATE "STATE", "created, running, exited or unknown"
#define OPTION_REGISTRY                                                           \
	{ 0, "creds", "USER[:PASSWORD]", "for the registry" },                    \
	{ 0, "auth", "BASE64", "the same, encoded" },                             \
	{ 'u', "username", "USER", "for the registry; the password is asked for" }, \
	{ 0, "pull-timeout", "DURATION", "of fetching an image (default: none)" }
#define OPTION_HANDLER { 'r', "runtime", "NAME", "the handler, as a RuntimeClass names it" }
#define OPTION_CANCEL { 'T', "cancel-timeout", "DURATION", "gives up after so long" }
#define OPTION_PULL                                              \
	{ 0, "no-pull", NULL, "the image must be there" },       \
	{ 0, "with-pull", NULL, "fetches the image when it is not there" }
#define OPTION_WATCH { 'w', "watch", NULL, "again and again" }
#define OPTION_SAMPLE { 's', "seconds", "N", "over which the use of CPUs is measured (default 1)" }, OPTION_WATCH
#define OPTION_TRANSPORT                                                           \
	{ 'r', "transport", "PROTOCOL", "spdy (default) or websocket" },           \
	{ 0, "tls-sni", "NAME", "for https: the name in the server's certificate" }, \
	{ 0, "tls-server-name", "NAME", "the same" },                              \
	{ 0, "tls-ca", "FILE", "who may have signed it; without one, any may" },   \
	{ 0, "tls-cert", "FILE", "our certificate" },                              \
	{ 0, "tls-key", "FILE", "and its key" }

static const struct crictl_option attach_options[] = {
	{ 'i', "stdin", NULL, "passes on our input" },
	{ 't', "tty", NULL, "the container has a terminal, and so have we" }, OPTION_TRANSPORT, { 0 },
};
static const struct crictl_option checkpoint_options[] = { { 'e', "export", "FILE", "the archive to be written" }, { 0 } };
static const struct crictl_option config_options[] = {
	{ 0, "get", "NAME", "shows one" }, { 0, "set", "NAME=VALUE,...", "changes some" }, { 0, "list", NULL, "shows all" }, { 0 },
};
static const struct crictl_option create_options[] = { OPTION_PULL, OPTION_REGISTRY, OPTION_CANCEL, { 0 } };
static const struct crictl_option events_options[] = { OPTION_OUTPUT("json (default) or yaml"), { 0 } };
static const struct crictl_option exec_options[] = {
	{ 'i', "interactive", NULL, "passes on our input" },
	{ 't', "tty", NULL, "in a terminal, which is ours" },
	{ 's', "sync", NULL, "by one call, which answers with all of the output at the end" },
	{ 0, "timeout", "SECONDS", "kills it after so long; implies -s" },
	OPTION_CONTAINERS,
	{ 0, "state", OPTION_STATE },
	{ 'q', "quiet", NULL, "does not say which container" },
	{ 'e', "ignore-errors", NULL, "succeeds in any case" },
	{ 'x', "parallel", NULL, "in all containers at a time" },
	OPTION_TRANSPORT, { 0 },
};
static const struct crictl_option images_options[] = {
	OPTION_OUTPUT("json, yaml or table (default)"), OPTION_QUIET_IDS, OPTION_NO_TRUNC,
	{ 0, "digests", NULL, "shows digests" },
	{ 0, "pinned", NULL, "shows whether they are pinned" },
	{ 'v', "verbose", NULL, "shows all that is known" },
	{ 'f', "filter", "FILTER", "dangling=BOOL, reference=REGEX, before=IMAGE, since=IMAGE" }, { 0 },
};
static const struct crictl_option status_options[] = { OPTION_OUTPUT("json (default) or yaml"), OPTION_NO_INFO, { 0 } };
static const struct crictl_option output_options[] = { OPTION_OUTPUT("json (default) or yaml"), { 0 } };
static const struct crictl_option inspect_options[] = {
	OPTION_OUTPUT("json (default), yaml or table"), OPTION_NO_INFO, OPTION_CONTAINERS, OPTION_NAMESPACE,
	{ 's', "state", OPTION_STATE }, { 'a', "all", NULL, "in any state" }, { 0 },
};
static const struct crictl_option inspecti_options[] = {
	OPTION_OUTPUT("json (default), yaml or table"), OPTION_NO_INFO, { 0, "name", "NAME", "of this name" },
	{ 'f', "filter", "FILTER", "as with images" }, { 0 },
};
static const struct crictl_option inspectp_options[] = {
	OPTION_OUTPUT("json (default), yaml or table"), OPTION_NO_INFO, { 0, "name", "REGEX", "with such a name" }, OPTION_NAMESPACE,
	{ 's', "state", "STATE", "ready or notready" }, OPTION_LABEL, OPTION_NEWEST, { 0 },
};
static const struct crictl_option logs_options[] = {
	{ 'f', "follow", NULL, "until the container ends" },
	{ 'p', "previous", NULL, "of the run before" },
	{ 'r', "reopen", NULL, "has the runtime open the file again first, after it was moved" },
	{ 0, "tail", "N", "the last N lines" },
	{ 0, "limit-bytes", "N", "no more than that" },
	{ 0, "since", "TIME", "from 2006-01-02T15:04:05Z on, or of the last 5m" },
	{ 't', "timestamps", NULL, "with times" },
	{ 's', "stream", "NAME", "stdout or stderr only" }, { 0 },
};
static const struct crictl_option watch_options[] = { OPTION_OUTPUT("json (default) or yaml"), OPTION_WATCH, { 0 } };
static const struct crictl_option pods_options[] = {
	OPTION_OUTPUT("json, yaml or table (default)"), OPTION_QUIET_IDS, OPTION_NO_TRUNC,
	{ 0, "id", "ID", "with such an id" }, { 0, "name", "REGEX", "with such a name" }, OPTION_NAMESPACE,
	{ 's', "state", "STATE", "ready or notready" }, OPTION_LABEL, OPTION_NEWEST, { 'v', "verbose", NULL, "shows all that is known" }, { 0 },
};
static const struct crictl_option forward_options[] = { OPTION_TRANSPORT, { 0 } };
static const struct crictl_option ps_options[] = {
	OPTION_OUTPUT("json, yaml or table (default)"), OPTION_QUIET_IDS, OPTION_NO_TRUNC,
	{ 'a', "all", NULL, "in any state, not only those that run" },
	{ 0, "id", "ID", "with such an id" }, OPTION_CONTAINERS, OPTION_NAMESPACE, { 's', "state", OPTION_STATE },
	{ 'r', "resolve-image-path", NULL, "shows an image's name when the container has its id" },
	{ 'v', "verbose", NULL, "shows all that is known" }, { 0 },
};
static const struct crictl_option pull_options[] = {
	OPTION_REGISTRY, { 0, "pod-config", "FILE", "of the pod that it is for" },
	{ 'a', "annotation", "KEY=VALUE", "tells the runtime" }, { 0 },
};
static const struct crictl_option rm_options[] = {
	{ 'a', "all", NULL, "all containers" },
	{ 'f', "force", NULL, "also those that run" },
	{ 'k', "keep-logs", NULL, "leaves their logs" }, { 0 },
};
static const struct crictl_option rmi_options[] = {
	{ 'a', "all", NULL, "all images" }, { 'q', "prune", NULL, "those that no container uses" }, { 0 },
};
static const struct crictl_option rmp_options[] = {
	{ 'a', "all", NULL, "all pods" }, { 'f', "force", NULL, "also those that run" }, { 0 },
};
static const struct crictl_option run_options[] = { OPTION_HANDLER, OPTION_PULL, OPTION_REGISTRY, OPTION_CANCEL, { 0 } };
static const struct crictl_option runp_options[] = { OPTION_HANDLER, OPTION_CANCEL, { 0 } };
static const struct crictl_option stats_options[] = {
	OPTION_OUTPUT("json, yaml or table (default)"), { 'a', "all", NULL, "also those that do not run" },
	{ 0, "id", "ID", "of this container" }, { 'p', "pod", "ID", "of this pod" }, OPTION_LABEL, OPTION_SAMPLE, { 0 },
};
static const struct crictl_option statsp_options[] = {
	OPTION_OUTPUT("json, yaml or table (default)"), { 0, "id", "ID", "of this pod" }, OPTION_LABEL, OPTION_SAMPLE, { 0 },
};
static const struct crictl_option stop_options[] = {
	{ 't', "timeout", "SECONDS", "before they are killed (default 0)" }, { 'a', "all", NULL, "all that run" }, { 0 },
};
static const struct crictl_option update_options[] = {
	{ 0, "cpu-period", "MICROSECONDS", "of which --cpu-quota is a part" },
	{ 0, "cpu-quota", "MICROSECONDS", "of CPU time in each period" },
	{ 0, "cpu-share", "N", "weight beside other containers" },
	{ 0, "cpuset-cpus", "LIST", "CPUs, as 0-3,7" },
	{ 0, "cpuset-mems", "LIST", "memory nodes" },
	{ 0, "memory", "BYTES", "limit" },
	{ 0, "oom-score-adj", "N", "which is killed first when memory runs out" }, { 0 },
};
static const struct crictl_option version_options[] = { OPTION_OUTPUT("json or yaml"), { 0 } };
static const struct crictl_option cidr_options[] = { { 'p', "pod-cidr", "CIDR", "the addresses of pods" }, { 0 } };

#define MANY CRICTL_ARGUMENTS_MAX

static const struct crictl_words actions[] = {
	{ "attach", NULL, "CONTAINER", "passes on what a container writes, and our input to it; Ctrl-P Ctrl-Q leaves a terminal", 1, 1,
	  crictl_attach, .options = attach_options },
	{ "checkpoint", NULL, "CONTAINER...", "writes the state of containers to an archive, where the runtime can", 1, MANY, crictl_checkpoint,
	  .options = checkpoint_options },
	{ "config", NULL, "[NAME VALUE]", "shows or changes settings", 0, 2, crictl_config, .options = config_options, .offline = true },
	{ "create", NULL, "POD CONTAINER-CONFIG POD-CONFIG", "makes a container", 3, 3, crictl_create, .options = create_options },
	{ "events", "event", "", "shows what happens to containers, until it is stopped", 0, 0, crictl_events, .options = events_options },
	{ "exec", NULL, "[CONTAINER] COMMAND...", "runs a command in a container, or in those that options name", 1, MANY, crictl_exec,
	  .options = exec_options, .verbatim = true },
	{ "imagefsinfo", NULL, "", "shows how much room images take", 0, 0, crictl_imagefsinfo, .options = output_options },
	{ "images", "image", "[NAME[:TAG]]", "lists images", 0, 1, crictl_images, .options = images_options },
	{ "info", "status", "", "shows the state of the runtime", 0, 0, crictl_info, .options = status_options },
	{ "inspect", NULL, "[CONTAINER...]", "shows all that is known of containers", 0, MANY, crictl_inspect, .options = inspect_options },
	{ "inspecti", NULL, "[IMAGE...]", "shows all that is known of images", 0, MANY, crictl_inspecti, .options = inspecti_options },
	{ "inspectp", NULL, "[POD...]", "shows all that is known of pods", 0, MANY, crictl_inspectp, .options = inspectp_options },
	{ "logs", NULL, "CONTAINER", "shows what a container has written", 1, 1, crictl_logs, .options = logs_options },
	{ "metricdescs", NULL, "", "shows which metrics there are", 0, 0, crictl_metricdescs, .options = output_options },
	{ "metricsp", NULL, "", "shows the metrics of pods", 0, 0, crictl_metricsp, .options = watch_options },
	{ "pods", NULL, "", "lists pods", 0, 0, crictl_pods, .options = pods_options },
	{ "port-forward", NULL, "POD [LOCAL:]PORT...", "passes connections to local ports on to a pod", 2, MANY, crictl_port_forward,
	  .options = forward_options },
	{ "ps", NULL, "", "lists containers that run", 0, 0, crictl_ps, .options = ps_options },
	{ "pull", NULL, "IMAGE", "fetches an image", 1, 1, crictl_pull, .options = pull_options },
	{ "rm", NULL, "CONTAINER...", "removes containers", 0, MANY, crictl_rm, .options = rm_options },
	{ "rmi", NULL, "IMAGE...", "removes images", 0, MANY, crictl_rmi, .options = rmi_options },
	{ "rmp", NULL, "POD...", "removes pods", 0, MANY, crictl_rmp, .options = rmp_options },
	{ "run", NULL, "CONTAINER-CONFIG POD-CONFIG", "makes and starts a pod with one container", 2, 2, crictl_run, .options = run_options },
	{ "runp", NULL, "POD-CONFIG", "makes a pod", 1, 1, crictl_runp, .options = runp_options },
	{ "runtime-config", NULL, "", "shows which cgroup driver the kubelet should use", 0, 0, crictl_runtime_config, .options = NULL },
	{ "start", NULL, "CONTAINER...", "starts containers", 1, MANY, crictl_start, .options = NULL },
	{ "stats", NULL, "[CONTAINER]", "shows what containers use", 0, 1, crictl_stats, .options = stats_options },
	{ "statsp", NULL, "[POD]", "shows what pods use", 0, 1, crictl_statsp, .options = statsp_options },
	{ "stop", NULL, "CONTAINER...", "stops containers", 0, MANY, crictl_stop, .options = stop_options },
	{ "stopp", NULL, "POD...", "stops pods", 1, MANY, crictl_stopp, .options = NULL },
	{ "update", NULL, "CONTAINER... [FIELD=VALUE...]", "changes limits; fields are those of CRI, as cpuShares", 1, MANY, crictl_update,
	  .options = update_options },
	{ "update-runtime-config", NULL, "", "tells the runtime which addresses pods have", 0, 0, crictl_update_runtime_config,
	  .options = cidr_options },
	{ "version", NULL, "", "shows the version of the runtime", 0, 0, crictl_version, .options = version_options },
};

static const struct crictl_words *action_find(const char *word)
{
	if (strcmp(word, "img") == 0)
		word = "images";
	for (size_t i = 0; i < ARRAY_LEN(actions); i++)
		if (strcmp(actions[i].name, word) == 0 || (actions[i].alias && strcmp(actions[i].alias, word) == 0))
			return &actions[i];
	return NULL;
}

/* ---- the command ---- */

struct work {
	struct crictl *c;
	const struct crictl_words *action;
	struct err *err;
};

static int channel_open(const char *endpoint, struct grpc_channel **ret, struct err *err)
{
	const char *endpoints[] = { endpoint, NULL };
	struct grpc_options o = { .endpoints = endpoints, .max_message = CRICTL_ANSWER_MAX };

	return grpc_channel_new(&o, ret, err);
}

static int run_action(void *arg)
{
	struct work *w = arg;
	CLEANUP(grpc_channel_freep) struct grpc_channel *runtime = NULL, *images = NULL;
	struct crictl *c = w->c;
	int r = w->action->offline ? 0 : channel_open(c->endpoint, &runtime, w->err);

	if (r == 0 && c->image_endpoint && !w->action->offline)
		r = channel_open(c->image_endpoint, &images, w->err);
	if (r < 0)
		return r;
	c->channel = runtime;
	c->image_channel = images ? images : runtime;
	return w->action->run(c, w->err);
}

/* What a runtime says must not command the terminal. */
static int fail(struct err *err)
{
	for (size_t i = 0; i < err->n; i++)
		if ((unsigned char)err->msg[i] < ' ' && err->msg[i] != '\n' && err->msg[i] != '\t')
			err->msg[i] = '?';
	return cmd_fail(&cmd_crictl, err);
}

static int run_in_loop(struct crictl *c, const struct crictl_words *action)
{
	CLEANUP(loop_freep) struct loop *loop = NULL;
	struct err err = ERR_INIT;
	struct work work = { c, action, &err };
	int r = crictl_settings_load(c, &err);

	if (r == 0 || action->offline)
		r = loop_new("crictl", &loop, &err);
	if (r == 0)
		r = loop_run(loop, run_action, &work, &err);
	return r < 0 ? fail(&err) : c->exit_code;
}

static int run_with(struct crictl *c, int argc, char **argv)
{
	const struct crictl_words *action;
	int r = crictl_parse(c, argc, argv, action_find, &action);

	if (r != 0)
		return r;
	if (!action)
		return cmd_usage(&cmd_crictl, "say what to do");
	if (c->n < action->min || c->n > action->max)
		return cmd_usage(&cmd_crictl, "%s needs %s", action->name, *action->arguments ? action->arguments : "no arguments");
	return run_in_loop(c, action);
}

static int run(int argc, char **argv)
{
	struct crictl *c = mem_zalloc(sizeof *c);

	c->output = "";
	c->transport = "spdy";
	c->wait_s = c->tail = c->limit_bytes = c->last = -1;
	c->seconds = 1;
	int r = run_with(c, argc, argv);
	arena_done(&c->arena);
	free(c);
	return r;
}

/* ---- the manual ---- */

static void help_options(const struct crictl_option *list)
{
	for (; list && list->name; list++) {
		char left[64];
		(void)snprintf(left, sizeof left, "%c%c%s --%s%s%s", list->letter ? '-' : ' ', list->letter ? list->letter : ' ',
			       list->letter ? "," : " ", list->name, list->value ? " " : "", list->value ? list->value : "");
		printf("        %-36s %s\n", left, list->help);
	}
}

static void help(void)
{
	printf("Options for all actions\n\n");
	help_options(crictl_global_options);
	printf("\nActions\n\n");
	for (size_t i = 0; i < ARRAY_LEN(actions); i++) {
		const struct crictl_words *w = &actions[i];
		printf("    %s%s%s%s%s\n        %s\n", w->name, w->alias ? ", " : "", w->alias ? w->alias : "", *w->arguments ? " " : "",
		       w->arguments, w->help);
		help_options(w->options);
	}
	printf("\n"
	       "Where the runtime is: -r, or $CONTAINER_RUNTIME_ENDPOINT, or runtime-endpoint in the settings, or\n"
	       "unix:///run/c8s/runtime/cri.sock; for images -i, $IMAGE_SERVICE_ENDPOINT, image-endpoint, or the same. Settings are\n"
	       "runtime-endpoint, image-endpoint, timeout (seconds), debug, pull-image-on-create and disable-pull-on-run.\n"
	       "\n"
	       "Pods, containers and images are named by their ids, or by a beginning of it that no other has. Configurations are files\n"
	       "(JSON or YAML; - is standard input) as Kubernetes' crictl takes them: PodSandboxConfig and ContainerConfig of CRI.\n"
	       "Regular expressions are POSIX's extended ones. JSON has numbers as numbers, and leaves out what is empty.\n"
	       "\n"
	       "exec without -s, attach and port-forward open the URL that the runtime gives them: its streaming server must be\n"
	       "reachable from here. Over WebSocket v4, which older runtimes speak, the end of our input cannot be told; SPDY has no such gap.\n"
	       "\n"
	       "Exit code: 0 success, 1 failure, 2 wrong usage; exec: that of the command.\n"
	       "\n"
	       "Examples\n"
	       "\n"
	       "    c8s crictl runp pod.json\n"
	       "    c8s crictl create $POD container.json pod.json\n"
	       "    c8s crictl start $CONTAINER\n"
	       "    c8s crictl exec -it $CONTAINER sh\n"
	       "    c8s crictl logs -f --since 5m $CONTAINER\n"
	       "    c8s crictl port-forward $POD 8080:80\n"
	       "    c8s crictl -r unix:///run/containerd/containerd.sock ps -a\n");
}

const struct command cmd_crictl = {
	.name = "crictl",
	.summary = "pods, containers and images of a CRI runtime",
	.manual = "Usage: c8s crictl [OPTIONS] ACTION [OPTIONS] [ARGUMENTS]\n"
		  "\n"
		  "Asks a container runtime by CRI: c8s runtime, containerd, CRI-O. The words are those of Kubernetes' crictl.\n"
		  "\n",
	.help = help,
	.help_within = 2,
	.run = run,
};
