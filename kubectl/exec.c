/* kubectl exec and attach */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/rexec.h"
#include "codec/types.h"
#include "kubectl/attach.h"
#include "kubectl/commands.h"
#include "kubectl/logs.h"
#include "kubectl/pods.h"
#include "kubectl/watch.h"
#include "machinery/conditions.h"
#include "net/url.h"
#include "net/websocket.h"

/* ---- sessions ---- */

struct dial {
	struct ktl *k;
	str path, query;
	bool failed; /* and noted */
};

static int dial(void *arg, const struct rexec_wants *wants, struct rexec **ret, struct err *err)
{
	struct dial *d = arg;
	struct client_answer answer;
	const char *protocol;
	struct client *c;
	struct ws *ws;
	d->failed = true;
	if (ktl_client(d->k, &c) < 0)
		return -ERR_UNAVAILABLE;
	if (client_dial_ws(c, &d->k->arena, d->path, d->query, rexec_ws_protocols, &ws, &protocol, &answer, err) < 0) {
		(void)ktl_fail_connection(d->k, err);
		return -ERR_UNAVAILABLE;
	}
	if (!ws) {
		(void)ktl_fail_answer(d->k, &answer);
		/* As kubectl, whose last resort this is: a plain error. */
		struct ktl_failure *f = d->k->failures;
		while (f->next)
			f = f->next;
		if (answer.status != 401 && answer.status != 403) {
			f->kind = KTL_PLAIN;
			(void)ktl_fail_before(d->k, "unable to upgrade connection: ");
		}
		return -ERR_BAD_REQUEST;
	}
	d->failed = false;
	*ret = rexec_of_ws(ws, protocol, wants);
	return 0;
}

static void add_bool(struct buf *b, str key, bool value)
{
	if (value)
		url_query_add(b, key, STR("true"));
}

/*
 * (suspends) subresource: "exec" or "attach"; command: of exec, encoded as a query. Standard input, output and error are those of
 * the process until it ends; its exit code becomes ours.
 */
static int talk(struct ktl *k, struct val pod, str subresource, str container, str command, bool in, bool tty)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	const struct ktl_kind *pods = ktl_kind_of_type(k, TYPE(core_v1, Pod));
	struct err err = ERR_INIT;
	int code = 0;
	buf_add(&b, command);
	url_query_add(&b, STR("container"), container);
	add_bool(&b, STR("stderr"), !tty);
	add_bool(&b, STR("stdin"), in);
	url_query_add(&b, STR("stdout"), STR("true"));
	add_bool(&b, STR("tty"), tty);
	struct dial d = {
		.k = k, .path = ktl_kind_path(k, pods, val_str(pod, metadata, namespace), val_str(pod, metadata, name), subresource),
		.query = arena_str(&k->arena, buf_str(&b)),
	};
	struct rexec_talk t = { .in = in, .tty = tty, .open = dial, .arg = &d };
	ktl_flush();
	if (rexec_talk(&t, &code, &err) < 0)
		return d.failed ? -1 : ktl_fail_err(k, &err);
	if (!code)
		return 0;
	k->exit_code = code;
	return ktl_fail_bare(k, "command terminated with exit code %d", code);
}

/* -t needs a terminal: without one it is told and left. */
static bool can_tty(bool in, bool tty)
{
	if (!in || !tty)
		return false;
	if (isatty(STDIN_FILENO))
		return true;
	fprintf(stderr, "Unable to use a TTY - input is not a terminal or the right kind of file\n");
	return false;
}

/* ---- exec ---- */

struct exec {
	struct ktl_file_flags files;
	const char *container;
	bool quiet, stdin, tty;
	int64_t running_timeout_ns;
};

static const struct ktl_flag exec_flags[] = {
	{ "container", 'c', KTL_STRING, offsetof(struct exec, container), NULL, "Name of the container", NULL },
	{ "pod-running-timeout", 0, KTL_DURATION, offsetof(struct exec, running_timeout_ns), "1m0s", "How long to wait for a pod", NULL },
	{ "quiet", 'q', KTL_BOOL, offsetof(struct exec, quiet), NULL, "No messages of our own", NULL },
	{ "stdin", 'i', KTL_BOOL, offsetof(struct exec, stdin), NULL, "Pass our input on", NULL },
	{ "tty", 't', KTL_BOOL, offsetof(struct exec, tty), NULL, "With a terminal", NULL },
	{ 0 },
};

static int find_pod(struct ktl *k, const struct exec *o, struct ktl_texts args, const char *doing, struct val *ret)
{
	struct ktl_info object;
	struct val pods;
	if (ktl_named_object(k, args, &object) < 0 || ktl_pods_of(k, &object, o->running_timeout_ns, false, doing, &pods) < 0)
		return -1;
	*ret = val_at(pods, 0);
	return 0;
}

static int run_exec(struct ktl *k, void *options)
{
	CLEANUP(buf_done) struct buf command = BUF_INIT(1 << 20);
	const struct exec *o = options;
	struct val pod, container;
	size_t before = k->flags.dash < 0 ? k->args.n : (size_t)k->flags.dash;
	if (k->flags.dash < 0 && k->args.n > 1)
		return ktl_fail_usage(k, "exec [POD] [COMMAND] is not supported anymore. Use exec [POD] -- [COMMAND] instead");
	if (!before)
		return ktl_fail(k, "pod, type/name or --filename must be specified");
	if (before == k->args.n)
		return ktl_fail(k, "you must specify at least one command for the container");
	if (find_pod(k, o, (struct ktl_texts){ k->args.v, 1 }, "cannot attach to", &pod) < 0)
		return -1;
	str phase = val_str(pod, status, phase);
	if (str_eq(phase, STR("Succeeded")) || str_eq(phase, STR("Failed")))
		return ktl_fail(k, "cannot exec into a container in a completed pod; current phase is " STR_FMT, STR_ARG(phase));
	if (ktl_choose_container(k, pod, str_of(o->container), o->quiet, &container) < 0)
		return -1;
	for (size_t i = before; i < k->args.n; i++)
		url_query_add(&command, STR("command"), str_of(k->args.v[i]));
	return talk(k, pod, STR("exec"), val_str(container, name), buf_str(&command), o->stdin, can_tty(o->stdin, o->tty));
}

const struct ktl_command ktl_exec = {
	.name = "exec",
	.group = "Troubleshooting and Debugging Commands",
	.summary = "Execute a command in a container",
	.examples = "  kubectl exec web -- date\n  kubectl exec -it deployment/web -c proxy -- sh\n",
	.usage = "exec (POD | TYPE/NAME) [-c CONTAINER] [flags] -- COMMAND [args...] [options]",
	.flags = (const struct ktl_flag_set[]){ { exec_flags, 0 }, { ktl_file_flags, offsetof(struct exec, files) }, { 0 } },
	.size = sizeof(struct exec),
	.run = run_exec,
};

/* ---- attach ---- */

static int attach(struct ktl *k, struct val pod, struct val container, const struct ktl_attach *a)
{
	bool tty = a->tty, has = val_bool(container, tty);
	if (tty && !has && !a->quiet)
		fprintf(stderr, "error: Unable to use a TTY - container " STR_FMT " did not allocate one\n", STR_ARG(val_str(container, name)));
	/* The other side speaks as its container does. */
	bool raw = can_tty(a->stdin, has);
	if (!a->quiet)
		fprintf(stderr, "All commands and output from this session will be recorded in container logs, including credentials and sensitive information passed through the command prompt.\n"
				"If you don't see a command prompt, try pressing enter.\n");
	return talk(k, pod, STR("attach"), val_str(container, name), STR_NONE, a->stdin, raw);
}

static int run_attach(struct ktl *k, void *options)
{
	const struct exec *o = options;
	struct ktl_attach a = { .stdin = o->stdin, .tty = o->tty, .quiet = o->quiet };
	struct val pod, container;
	if (!k->args.n)
		return ktl_fail(k, "at least 1 argument is required for attach");
	if (k->args.n > 2)
		return ktl_fail(k, "expected POD, TYPE/NAME, or TYPE NAME, (at most 2 arguments) saw %zu", k->args.n);
	if (find_pod(k, o, k->args, "cannot attach to", &pod) < 0)
		return -1;
	str phase = val_str(pod, status, phase);
	if (str_eq(phase, STR("Succeeded")) || str_eq(phase, STR("Failed")))
		return ktl_fail(k, "cannot attach a container in a completed pod; current phase is " STR_FMT, STR_ARG(phase));
	if (ktl_choose_container(k, pod, str_of(o->container), o->quiet, &container) < 0)
		return ktl_fail_before(k, "cannot attach to the container: ");
	return attach(k, pod, container, &a);
}

const struct ktl_command ktl_attach = {
	.name = "attach",
	.group = "Troubleshooting and Debugging Commands",
	.summary = "Attach to a running container",
	.examples = "  kubectl attach web\n  kubectl attach -it deployment/web -c shell\n",
	.usage = "attach (POD | TYPE/NAME) -c CONTAINER [options]",
	.flags = (const struct ktl_flag_set[]){ { exec_flags, 0 }, { 0 } },
	.size = sizeof(struct exec),
	.run = run_attach,
};

/* ---- a pod that was just created ---- */

static bool has_ended(struct val pod)
{
	str phase = val_str(pod, status, phase);
	return str_eq(phase, STR("Succeeded")) || str_eq(phase, STR("Failed"));
}

static bool runs(struct val pod)
{
	return has_ended(pod) || (pod_is_ready(pod) && str_eq(val_str(pod, status, phase), STR("Running")));
}

static int until(struct ktl *k, struct val pod, void *is)
{
	if (!val_exists(pod))
		return ktl_fail_bare(k, "Error from server (NotFound): pods \"\" not found");
	return (*(bool (**)(struct val))is)(pod);
}

/* (suspends) Until the pod is so. */
static int wait_until(struct ktl *k, const struct ktl_info *pod, bool (*is)(struct val), int64_t timeout_ns, struct val *ret)
{
	struct ktl_info now = *pod;
	int r = ktl_watch_until(k, &now, clock_now_ns() + timeout_ns, until, &is);
	*ret = now.object;
	return r == 0 ? ktl_fail(k, "timed out waiting for the condition") : r < 0 ? -1 : 0;
}

static int exit_of_pod(struct ktl *k, struct val pod)
{
	struct val ended = val_get(val_at(val_get(pod, status, containerStatuses), 0), state, terminated);
	str namespace = val_str(pod, metadata, namespace), name = val_str(pod, metadata, name);
	int code = (int)val_int(ended, exitCode);
	if (str_eq(val_str(pod, status, phase), STR("Succeeded")))
		return 0;
	if (!code)
		return ktl_fail(k, "pod " STR_FMT "/" STR_FMT " failed with unknown exit code", STR_ARG(namespace), STR_ARG(name));
	k->exit_code = code;
	return ktl_fail_bare(k, "pod " STR_FMT "/" STR_FMT " terminated (" STR_FMT ")\n" STR_FMT, STR_ARG(namespace), STR_ARG(name),
			     STR_ARG(val_str(ended, reason)), STR_ARG(val_str(ended, message)));
}

/* A process may end before we are there: then what it wrote is all there is. */
static int attach_or_follow(struct ktl *k, struct val pod, struct val container, const struct ktl_attach *a)
{
	int r = attach(k, pod, container, a);
	if (r == 0 || k->exit_code)
		return r;
	fprintf(stderr, "warning: couldn't attach to pod/" STR_FMT ", falling back to streaming logs: " STR_FMT "\n", STR_ARG(val_str(pod, metadata, name)),
		STR_ARG(ktl_last_failure(k)->text));
	ktl_forgive(k);
	return ktl_copy_log(k, pod, val_str(container, name), STR_NONE, STR_NONE);
}

static bool has_succeeded(struct val pod) { return str_eq(val_str(pod, status, phase), STR("Succeeded")); }

int ktl_attach_started(struct ktl *k, const struct ktl_info *info, const struct ktl_attach *a)
{
	struct val pod, container;
	if (wait_until(k, info, runs, a->timeout_ns, &pod) < 0 || ktl_choose_container(k, pod, STR_NONE, a->quiet, &container) < 0)
		return -1;
	/* What was written before we are there would be lost. */
	int r = ktl_copy_log(k, pod, val_str(container, name), STR_NONE, STR_NONE);
	if (!has_ended(pod))
		r = attach_or_follow(k, pod, container, a);
	if (r < 0 && !k->exit_code)
		return r;
	if (!a->wait_for_exit)
		return 0;
	if (k->exit_code) { /* told by the session already; the pod tells it in its own words */
		ktl_forgive(k);
		k->exit_code = 0;
	}
	if (wait_until(k, info, a->on_failure ? has_succeeded : has_ended, a->timeout_ns, &pod) < 0)
		return -1;
	return exit_of_pod(k, pod);
}
