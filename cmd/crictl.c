/* c8s crictl: options and actions. */
#include "cmd/crictl.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fiber.h"
#include "base/loop.h"
#include "base/mem.h"
#include "codec/codec.h"

#define ENDPOINT_DEFAULT "unix:///run/c8s/runtime/cri.sock"

enum { REQUEST_MAX = 64 << 20, ANSWER_MAX = 256 << 20, TIMEOUT_S = 120 };

int crictl_call(struct crictl *c, const struct rpc *rpc, struct val request, struct val *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(REQUEST_MAX);
	CLEANUP(grpc_message_freep) struct grpc_message *m = NULL;
	int64_t more = MAX(c->action_timeout_s, INT64_C(0));
	DEADLINE_SCOPE((c->timeout_s + more) * 1000);
	int r = proto_encode(&b, request, rpc->request, err);

	if (r < 0 || (r = grpc_call(c->channel, rpc->path, 0, buf_str(&b), &m, NULL, err)) < 0)
		return r;
	return proto_decode(&c->arena, arena_str(&c->arena, grpc_message_str(m)), rpc->response, ret, err);
}

/* ---- actions ---- */

static const struct action {
	const char *name, *arguments, *help;
	size_t min, max;
	crictl_action *run;
} actions[] = {
	{ "create", "POD CONTAINER-CONFIG POD-CONFIG", "makes a container", 3, 3, crictl_create },
	{ "events", "", "shows what happens to containers", 0, 0, crictl_events },
	{ "exec", "CONTAINER COMMAND...", "runs a command in a container; -s: and waits for all of its output", 2, CRICTL_ARGUMENTS_MAX,
	  crictl_exec },
	{ "imagefsinfo", "", "shows how much room images take", 0, 0, crictl_imagefsinfo },
	{ "images", "[NAME]", "lists images", 0, 1, crictl_images },
	{ "info", "", "shows the state of the runtime", 0, 0, crictl_info },
	{ "inspect", "CONTAINER...", "shows all that is known of containers", 1, CRICTL_ARGUMENTS_MAX, crictl_inspect },
	{ "inspecti", "IMAGE...", "shows all that is known of images", 1, CRICTL_ARGUMENTS_MAX, crictl_inspecti },
	{ "inspectp", "POD...", "shows all that is known of pods", 1, CRICTL_ARGUMENTS_MAX, crictl_inspectp },
	{ "logs", "CONTAINER", "shows what a container has written", 1, 1, crictl_logs },
	{ "pods", "", "lists pods", 0, 0, crictl_pods },
	{ "ps", "", "lists containers that run; -a: all", 0, 0, crictl_ps },
	{ "pull", "IMAGE", "fetches an image", 1, 1, crictl_pull },
	{ "rm", "CONTAINER...", "removes containers; -f: also those that run; -a: all", 0, CRICTL_ARGUMENTS_MAX, crictl_rm },
	{ "rmi", "IMAGE...", "removes images; -a: all", 0, CRICTL_ARGUMENTS_MAX, crictl_rmi },
	{ "rmp", "POD...", "removes pods; -f: also those that run; -a: all", 0, CRICTL_ARGUMENTS_MAX, crictl_rmp },
	{ "run", "CONTAINER-CONFIG POD-CONFIG", "makes and starts a pod with one container", 2, 2, crictl_run },
	{ "runp", "POD-CONFIG", "makes a pod", 1, 1, crictl_runp },
	{ "start", "CONTAINER...", "starts containers", 1, CRICTL_ARGUMENTS_MAX, crictl_start },
	{ "stats", "[CONTAINER]", "shows what containers use", 0, 1, crictl_stats },
	{ "statsp", "", "shows what pods use", 0, 0, crictl_statsp },
	{ "stop", "CONTAINER...", "stops containers; -t SECONDS: before they are killed", 1, CRICTL_ARGUMENTS_MAX, crictl_stop },
	{ "stopp", "POD...", "stops pods", 1, CRICTL_ARGUMENTS_MAX, crictl_stopp },
	{ "update", "CONTAINER NAME=VALUE...", "changes limits: cpuShares, memoryLimitInBytes ...", 2, CRICTL_ARGUMENTS_MAX, crictl_update },
	{ "version", "", "shows the version of the runtime", 0, 0, crictl_version },
};

static const struct action *action_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(actions); i++)
		if (strcmp(actions[i].name, name) == 0)
			return &actions[i];
	return NULL;
}

/* ---- options ---- */

enum {
	OPT_ENDPOINT, OPT_TIMEOUT, OPT_ACTION_TIMEOUT, OPT_OUTPUT, OPT_ALL, OPT_QUIET, OPT_ID, OPT_NAME, OPT_NAMESPACE, OPT_STATE, OPT_POD,
	OPT_IMAGE, OPT_LABEL, OPT_RUNTIME, OPT_CREDS, OPT_AUTH, OPT_FORCE, OPT_SYNC, OPT_TTY, OPT_INTERACTIVE, OPT_LATEST, OPT_LAST,
	OPT_NO_TRUNC, OPT_FOLLOW, OPT_TAIL, OPT_TIMESTAMPS, OPT_NO_PULL,
};

/* Letters mean different things to different actions, as with crictl: -t is a time, or a terminal; -r an endpoint, or a runtime. */
static const struct option_spec specs[] = {
	[OPT_ENDPOINT] = { 'r', "runtime-endpoint", OPTION_VALUE },
	[OPT_TIMEOUT] = { 0, "connect-timeout", OPTION_VALUE },
	[OPT_ACTION_TIMEOUT] = { 0, "timeout", OPTION_VALUE },
	[OPT_OUTPUT] = { 'o', "output", OPTION_VALUE },
	[OPT_ALL] = { 'a', "all", OPTION_ALONE },
	[OPT_QUIET] = { 'q', "quiet", OPTION_ALONE },
	[OPT_ID] = { 0, "id", OPTION_VALUE },
	[OPT_NAME] = { 0, "name", OPTION_VALUE },
	[OPT_NAMESPACE] = { 0, "namespace", OPTION_VALUE },
	[OPT_STATE] = { 0, "state", OPTION_VALUE },
	[OPT_POD] = { 'p', "pod", OPTION_VALUE },
	[OPT_IMAGE] = { 0, "image", OPTION_VALUE },
	[OPT_LABEL] = { 0, "label", OPTION_VALUE },
	[OPT_RUNTIME] = { 0, "runtime", OPTION_VALUE },
	[OPT_CREDS] = { 0, "creds", OPTION_VALUE },
	[OPT_AUTH] = { 0, "auth", OPTION_VALUE },
	[OPT_FORCE] = { 'f', "force", OPTION_ALONE },
	[OPT_SYNC] = { 's', "sync", OPTION_ALONE },
	[OPT_TTY] = { 't', "tty", OPTION_ALONE },
	[OPT_INTERACTIVE] = { 'i', "interactive", OPTION_ALONE },
	[OPT_LATEST] = { 'l', "latest", OPTION_ALONE },
	[OPT_LAST] = { 'n', "last", OPTION_VALUE },
	[OPT_NO_TRUNC] = { 0, "no-trunc", OPTION_ALONE },
	[OPT_FOLLOW] = { 0, "follow", OPTION_ALONE },
	[OPT_TAIL] = { 0, "tail", OPTION_VALUE },
	[OPT_TIMESTAMPS] = { 0, "timestamps", OPTION_ALONE },
	[OPT_NO_PULL] = { 0, "no-pull", OPTION_ALONE },
	{ 0, NULL, OPTION_ALONE },
};

static int number(const char *text, int64_t *ret)
{
	if (!str_to_i64(str_of(text), ret) || *ret < 0)
		return cmd_usage(&cmd_crictl, "'%s' is not a number", text);
	return 0;
}

static int take_text(struct crictl *c, int found, const char *value)
{
	switch (found) {
	case OPT_ENDPOINT: c->endpoint = value; break;
	case OPT_TIMEOUT: return number(value, &c->timeout_s);
	case OPT_ACTION_TIMEOUT: return number(value, &c->action_timeout_s);
	case OPT_OUTPUT: c->output = value; break;
	case OPT_ID: c->id = value; break;
	case OPT_NAME: c->name = value; break;
	case OPT_NAMESPACE: c->namespace = value; break;
	case OPT_STATE: c->state = value; break;
	case OPT_POD: c->pod = value; break;
	case OPT_IMAGE: c->image = value; break;
	case OPT_LABEL:
		if (c->n_labels == ARRAY_LEN(c->labels))
			return cmd_usage(&cmd_crictl, "too many labels");
		c->labels[c->n_labels++] = value;
		break;
	case OPT_RUNTIME: c->handler = value; break;
	case OPT_CREDS: c->creds = value; break;
	case OPT_AUTH: c->auth = value; break;
	case OPT_LAST: return number(value, &c->last);
	case OPT_TAIL: return number(value, &c->tail);
	default: return 2;
	}
	return 0;
}

static int take(struct crictl *c, int found, const char *value)
{
	switch (found) {
	case OPT_ALL: c->all = true; break;
	case OPT_QUIET: c->quiet = true; break;
	case OPT_FORCE: c->force = c->follow = true; break; /* logs -f follows */
	case OPT_SYNC: c->sync = true; break;
	case OPT_TTY: c->tty = true; break;
	case OPT_INTERACTIVE: c->interactive = true; break;
	case OPT_LATEST: c->latest = true; break;
	case OPT_NO_TRUNC: c->no_trunc = true; break;
	case OPT_FOLLOW: c->follow = true; break;
	case OPT_TIMESTAMPS: c->timestamps = true; break;
	case OPT_NO_PULL: c->no_pull = true; break;
	default: return take_text(c, found, value);
	}
	return 0;
}

/* stop -t 10: here it has a value. */
static bool takes_time(const char *action, const char *arg) { return action && strcmp(action, "stop") == 0 && strcmp(arg, "-t") == 0; }

/* Options are looked for up to the command of exec, which has its own. */
static int parse(struct crictl *c, int argc, char **argv, const char **ret_action)
{
	struct options o = { &cmd_crictl, argc, argv, 0, NULL };
	int found, r;

	*ret_action = NULL;
	for (;;) {
		bool in_command = *ret_action && strcmp(*ret_action, "exec") == 0 && c->n > 0;
		if (o.at + 2 < argc && takes_time(*ret_action, argv[o.at + 1])) {
			if ((r = number(argv[o.at + 2], &c->action_timeout_s)) != 0)
				return r;
			o.at += 2;
			continue;
		}
		if (in_command && o.at + 1 < argc) {
			const char *arg = argv[++o.at];
			if (c->n > 1 || strcmp(arg, "--") != 0) {
				if (c->n == CRICTL_ARGUMENTS_MAX)
					return cmd_usage(&cmd_crictl, "too many arguments");
				c->arguments[c->n++] = arg;
			}
			continue;
		}
		if ((found = options_next(&o, specs)) == OPTION_END)
			return 0;
		if (found == OPTION_BAD)
			return 2;
		if (found != OPTION_ARGUMENT) {
			if ((r = take(c, found, o.value)) != 0)
				return r;
		} else if (!*ret_action) {
			*ret_action = o.value;
		} else if (c->n < CRICTL_ARGUMENTS_MAX) {
			c->arguments[c->n++] = o.value;
		} else {
			return cmd_usage(&cmd_crictl, "too many arguments");
		}
	}
}

/* ---- the command ---- */

struct call {
	struct crictl *c;
	const struct action *action;
	struct err *err;
};

static int run_action(void *arg)
{
	struct call *call = arg;
	const char *endpoints[] = { call->c->endpoint, NULL };
	struct grpc_options o = { .endpoints = endpoints, .max_message = ANSWER_MAX };
	int r = grpc_channel_new(&o, &call->c->channel, call->err);

	if (r < 0)
		return r;
	r = call->action->run(call->c, call->err);
	grpc_channel_free(call->c->channel);
	return r;
}

static int run_in_loop(struct crictl *c, const struct action *action)
{
	CLEANUP(loop_freep) struct loop *loop = NULL;
	struct err err = ERR_INIT;
	struct call call = { c, action, &err };
	int r = loop_new("crictl", &loop, &err);

	if (r == 0)
		r = loop_run(loop, run_action, &call, &err);
	if (r < 0)
		return cmd_fail(&cmd_crictl, &err);
	return crictl_exit_code;
}

static int run_with(struct crictl *c, int argc, char **argv)
{
	const char *name, *given = getenv("CONTAINER_RUNTIME_ENDPOINT");
	int r;

	c->endpoint = given && *given ? given : ENDPOINT_DEFAULT;
	if ((r = parse(c, argc, argv, &name)) != 0)
		return r;
	if (!name)
		return cmd_usage(&cmd_crictl, "say what to do");
	const struct action *action = action_find(name);
	if (!action)
		return cmd_usage(&cmd_crictl, "there is no '%s'", name);
	if (c->n < action->min || c->n > action->max || (!c->n && !c->all && strncmp(name, "rm", 2) == 0))
		return cmd_usage(&cmd_crictl, "%s needs %s", name, *action->arguments ? action->arguments : "no arguments");
	return run_in_loop(c, action);
}

static int run(int argc, char **argv)
{
	struct crictl *c = mem_zalloc(sizeof *c);

	c->output = "";
	c->timeout_s = TIMEOUT_S;
	c->action_timeout_s = c->tail = c->last = -1;
	int r = run_with(c, argc, argv);
	arena_done(&c->arena);
	free(c);
	return r;
}

static void help(void)
{
	for (size_t i = 0; i < ARRAY_LEN(actions); i++)
		printf("  %-11s %-32s %s\n", actions[i].name, actions[i].arguments, actions[i].help);
	printf("\n"
	       "  -r, --runtime-endpoint URL   where CRI is served (default $CONTAINER_RUNTIME_ENDPOINT, or " ENDPOINT_DEFAULT ")\n"
	       "  -o, --output FORMAT          json or yaml\n"
	       "  -q, --quiet                  ids only\n"
	       "      --no-trunc               ids in full\n"
	       "      --id, --name, --namespace, --state, --label K=V, -p POD, --image   what is listed\n"
	       "  -l, --latest; -n, --last N   the newest ones, whatever their state\n"
	       "      --runtime NAME           handler of a pod, as a RuntimeClass names it\n"
	       "      --timeout SECONDS        of exec -s and stop\n"
	       "      --tail N, -f, --timestamps   of logs\n"
	       "      --creds USER:PASS, --auth BASE64   of pull\n"
	       "      --no-pull                create: the image must be there\n"
	       "\n"
	       "Configurations are files (JSON or YAML) as Kubernetes' crictl takes them. Exit code: 0 success, 1 failure, 2 wrong usage;\n"
	       "exec: that of the command.\n");
}

const struct command cmd_crictl = {
	.name = "crictl",
	.summary = "pods, containers and images of a CRI runtime",
	.manual = "Usage: c8s crictl [-r ENDPOINT] ACTION [OPTIONS] [ARGUMENTS]\n"
		  "\n"
		  "Asks a container runtime by CRI: c8s runtime, containerd, CRI-O. The words are those of Kubernetes' crictl.\n"
		  "\n",
	.help = help,
	.run = run,
};
