/*
 * c8s up: from nothing to a node that is Ready. Each step is shown as it is done. With --detach the process that was called waits for one in
 * the background, whose output it passes on, and ends when that one says that all is there.
 */
#include "cmd/up.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/log.h"
#include "base/process.h"
#include "client/client.h"
#include "cmd/serve.h"

enum { READY_MS = 120 * 1000, OUTPUT_MAX = 1 << 20 };

/* One run of the command. */
struct upping {
	struct up_cluster cluster;
	const struct command *command;
	int64_t began_ns;
};

/* ---- showing ---- */

static void step(const struct upping *u, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void step(const struct upping *u, const char *fmt, ...)
{
	va_list args;

	printf("%6.3f s  ", (double)(clock_now_ns() - u->began_ns) / NS_PER_S);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

/* From here on nobody reads what we print: the log has all that happens. */
static void let_go(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	putchar('\0');
	fflush(stdout);
	(void)dup2(null, STDOUT_FILENO);
	(void)close(null);
}

/* ---- steps ---- */

/* (suspends) By the runtime's own command, before there is a runtime. */
static int load_image(const struct up_cluster *c, const char *archive, struct err *err)
{
	const char *argv[] = { c->program, "image", "--root", arena_printf(c->arena, "%s/runtime", c->node_dir).p, "load", archive, NULL };
	CLEANUP(process_output_done) struct process_output output = { .out = BUF_INIT(OUTPUT_MAX), .err = BUF_INIT(OUTPUT_MAX) };
	int r = process_run(&(struct process_spec){ .argv = argv }, STR_NONE, OUTPUT_MAX, &output, err);

	return r == 0 && output.status.exit_code ? err_set(err, ERR_INVALID, STR_FMT, STR_ARG(str_trim(buf_str(&output.err)))) : r;
}

static int is_visible(const struct dirent *entry) { return entry->d_name[0] != '.'; }

static int load_images(const struct upping *u, struct err *err)
{
	const struct up_cluster *c = &u->cluster;
	struct dirent **entries;
	int n = scandir(c->settings.images, &entries, is_visible, alphasort), r = 0;

	if (n < 0)
		return err_sys(err, errno, "reading %s", c->settings.images);
	for (int i = 0; i < n; i++) {
		if (r == 0)
			r = load_image(c, arena_printf(c->arena, "%s/%s", c->settings.images, entries[i]->d_name).p, err);
		free(entries[i]);
	}
	free(entries);
	if (r == 0)
		step(u, "%d images of %s are on the node", n, c->settings.images);
	return r;
}

/* Blocks: before there is a loop. */
static int prepare(const struct upping *u, struct err *err)
{
	struct up_findings findings;
	int r;

	up_look(u->cluster.arena, &u->cluster, &findings);
	if ((r = up_check(&findings, err)) < 0)
		return err_wrap(err, r, "this machine is not ready for a node ('c8s doctor' shows all that was looked at)");
	return up_prepare(&u->cluster, err);
}

static int join(struct upping *u, struct err *err)
{
	int r = up_discover(&u->cluster, err);

	if (r == 0)
		step(u, "%s is the cluster", u->cluster.settings.server);
	return r;
}

/* (suspends) What is done once both parts run. */
static int finish(struct upping *u, struct err *err)
{
	CLEANUP(client_freep) struct client *client = NULL;
	const struct up_cluster *c = &u->cluster;
	const char *context = NULL;
	size_t applied = 0;
	int r = up_connect(c, &client, err);

	if (r == 0)
		r = up_wait_node(client, c->settings.node_name, err);
	if (r < 0)
		return r;
	step(u, "node %s is Ready", c->settings.node_name);
	if (c->settings.server)
		return 0;
	if ((r = up_apply_objects(c, client, err)) < 0)
		return r;
	if (c->settings.manifests && (r = up_apply_folder(client, c->settings.manifests, &applied, err)) == 0)
		step(u, "%zu objects of %s are applied", applied, c->settings.manifests);
	if (r == 0 && !(c->settings.kubeconfig && !c->settings.kubeconfig[0]) && (r = up_merge_kubeconfig(c, c->arena, &context, err)) == 0)
		step(u, "use it with: kubectl --context %s get pods -A", context);
	return r;
}

static int start(struct upping *u, struct supervisor *s, struct err *err)
{
	DEADLINE_SCOPE(READY_MS);
	bool joins = u->cluster.settings.server;
	int r = joins ? 0 : supervisor_wait_ready(s, UP_CONTROL_PLANE, err);

	if (r == 0 && !joins)
		step(u, "control plane answers at %s", u->cluster.url);
	if (r == 0)
		r = supervisor_wait_ready(s, UP_NODE, err);
	return r == 0 ? finish(u, err) : r;
}

static int serve(void *arg, struct err *err)
{
	struct upping *u = arg;
	CLEANUP(supervisor_stopp) struct supervisor *s = NULL;
	struct fiber_cond never = FIBER_COND_INIT(never, "a signal");
	int r;

	if ((u->cluster.settings.server && (r = join(u, err)) < 0) || (u->cluster.settings.images && (r = load_images(u, err)) < 0) ||
	    (r = supervisor_start(&u->cluster, &s, err)) < 0 || (r = start(u, s, err)) < 0)
		return r;
	let_go();
	return fiber_cond_wait(&never, err);
}

/* ---- in the background ---- */

/* Standard error of who is in the background: a log beside those of its children. */
static int open_own_log(const struct up_cluster *c)
{
	return open(arena_printf(c->arena, "%s/supervisor.log", c->log_dir).p, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
}

/* Passes on what the child says until it is up or has ended; the exit code. */
static int follow(pid_t child, int fd)
{
	char text[512];
	ssize_t n;
	int status = 0;

	while ((n = read(fd, text, sizeof(text))) > 0 || (n < 0 && errno == EINTR)) {
		size_t shown = n > 0 ? strnlen(text, (size_t)n) : 0;
		(void)fwrite(text, 1, shown, stdout);
		fflush(stdout);
		if (n > 0 && shown < (size_t)n)
			return 0;
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* In the parent the exit code; -1 in the child, which goes on. */
static int go_to_background(const struct upping *u, struct err *err)
{
	int fds[2], null, log;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_sys(err, errno, "pipe"), cmd_fail(u->command, err);
	pid_t pid = fork();
	if (pid < 0)
		return err_sys(err, errno, "fork"), cmd_fail(u->command, err);
	if (pid > 0) {
		(void)close(fds[1]);
		return follow(pid, fds[0]);
	}
	(void)setsid();
	(void)signal(SIGPIPE, SIG_IGN);
	(void)dup2(fds[1], STDOUT_FILENO);
	if ((null = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		(void)dup2(null, STDIN_FILENO);
	if ((log = open_own_log(&u->cluster)) >= 0)
		(void)dup2(log, STDERR_FILENO);
	return -1;
}

/* ---- the command ---- */

static int run_cluster(struct upping *u, struct err *err)
{
	const struct up_cluster *c = &u->cluster;
	int r;

	if ((r = up_make_folders(c, err)) < 0)
		return cmd_fail(u->command, err);
	if (c->settings.detach && (r = go_to_background(u, err)) >= 0)
		return r;
	if (up_lock(c, err) < 0 || prepare(u, err) < 0 || cmd_serve("up", serve, u, err) < 0) {
		if (c->settings.detach)
			printf("c8s %s: %s\n", u->command->name, err->msg); /* the caller's terminal is at the other end */
		return c->settings.detach ? 1 : cmd_fail(u->command, err);
	}
	return 0;
}

int up_run(const struct command *command, int argc, char **argv)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct upping u = { .command = command, .began_ns = clock_now_ns() };
	struct err err = ERR_INIT;
	int r = up_open(command, &a, argc, argv, &u.cluster, &err);

	if (r != 0)
		return r < 0 ? cmd_fail(command, &err) : r;
	if (u.cluster.settings.version) {
		printf("Kubernetes %s\n", KUBERNETES_VERSION);
		return 0;
	}
	return run_cluster(&u, &err);
}

static int run_command(int argc, char **argv) { return up_run(&cmd_up, argc, argv); }

static void help(void) { flags_help(up_flags); }

const struct command cmd_up = {
	.name = "up",
	.summary = "a cluster on this machine",
	.manual =
		"Usage: c8s up [--data-dir DIR] [--detach] [FLAGS]\n"
		"\n"
		"Makes a cluster of this machine, or starts the one that was made in DIR before: a control plane, which runs as a user\n"
		"without any privilege, and a node. Prints each step, and stays until it is told to stop; with --detach it returns when\n"
		"the node is Ready. What was given once is kept in DIR/up.yaml and need not be given again. Needs root.\n"
		"\n"
		"The way to the cluster is merged into ~/.kube/config as the context c8s (further clusters: c8s-TAG). Logs are in\n"
		"DIR/log. A part that ends is started again; containers run on meanwhile, also when c8s itself is replaced by a newer one.\n"
		"\n"
		"Several clusters run side by side when DIR, --secure-port, --kubelet-port, --pod-cidr and --service-cidr differ.\n"
		"\n"
		"SIGTERM and SIGINT stop the cluster and leave its containers running; 'c8s down' stops them, too.\n"
		"\n"
		"Exit code: 0 stopped by a signal or detached, 1 it could not go on, 2 wrong usage.\n"
		"\n"
		"Example:\n"
		"  c8s up --detach\n"
		"  kubectl run nginx --image nginx\n"
		"  c8s status\n"
		"  c8s down\n",
	.help = help,
	.run = run_command,
};
