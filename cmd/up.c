/*
 * c8s up: from nothing to a node that is Ready. Each step is shown as it is done. With --detach the process that was called waits for one in
 * the background, whose output it passes on, and ends when that one says that all is there.
 */
#include "cmd/up.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/file.h"
#include "base/log.h"
#include "base/process.h"
#include "client/client.h"
#include "cmd/serve.h"
#include "cmd/service_manager.h"

enum { READY_MS = 120 * 1000, TAKE_OVER_MS = 45 * 1000, OUTPUT_MAX = 1 << 20 };

/* One run of the command. */
struct upping {
	struct up_cluster cluster;
	const struct command *command;
	int64_t began_ns;
	int64_t started_wall_ns;      /* when its parts were about to be started */
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

static int join(struct upping *u, struct err *err)
{
	int r = up_discover(&u->cluster, err);

	if (r == 0)
		step(u, "%s is the cluster", u->cluster.settings.server);
	return r;
}

/* (suspends) A kubeconfig that cannot be changed, which may be for any reason that is its owner's, keeps no cluster from running. */
static int tell_way(const struct upping *u, const char **ret_context, struct err *err)
{
	struct err why = ERR_INIT;
	int r;

	if (up_merge_kubeconfig(&u->cluster, u->cluster.arena, ret_context, &why) == 0)
		return 0;
	*ret_context = NULL;
	if ((r = fiber_check(err)) < 0)
		return r;
	log_warn("the way to the cluster is in no kubeconfig", KV("err", &why));
	step(u, "the kubeconfig stays as it is: %s; %s leads to the cluster, too", why.msg, u->cluster.admin_conf);
	return 0;
}

/* (suspends) What has to be in the cluster, and the way to it; the node is on its way meanwhile. *ret is NULL when nobody is told the way. */
static int furnish(const struct upping *u, struct client *client, const char **ret_context, struct err *err)
{
	const struct up_cluster *c = &u->cluster;
	bool merges = !(c->settings.kubeconfig && !c->settings.kubeconfig[0]);
	size_t applied = 0;
	int r = up_apply_objects(c, client, err);

	*ret_context = NULL;
	if (r == 0 && c->settings.manifests && (r = up_apply_folder(client, c->settings.manifests, &applied, err)) == 0)
		step(u, "%zu objects of %s are applied", applied, c->settings.manifests);
	return r == 0 && merges ? tell_way(u, ret_context, err) : r;
}

/* (suspends) */
static int wait_node(const struct upping *u, struct supervisor *s, struct client *client, struct err *err)
{
	CLEANUP(client_freep) struct client *own = NULL;
	int r = supervisor_wait_ready(s, UP_NODE, err);

	/* On a machine that joins there is nobody to ask as before. */
	if (r == 0 && !client)
		r = up_connect(&u->cluster, &own, err);
	if (r == 0)
		r = up_wait_node(client ? client : own, u->cluster.settings.node_name, u->started_wall_ns, err);
	if (r == 0)
		step(u, "node %s is Ready", u->cluster.settings.node_name);
	return r;
}

static int start(const struct upping *u, struct supervisor *s, struct err *err)
{
	DEADLINE_SCOPE(READY_MS);
	CLEANUP(client_freep) struct client *client = NULL;
	const char *context;
	int r;

	if (u->cluster.settings.server)
		return wait_node(u, s, NULL, err);
	if ((r = supervisor_wait_ready(s, UP_CONTROL_PLANE, err)) < 0)
		return r;
	step(u, "control plane answers at %s", u->cluster.url);
	if ((r = up_connect(&u->cluster, &client, err)) < 0 || (r = furnish(u, client, &context, err)) < 0 || (r = wait_node(u, s, client, err)) < 0)
		return r;
	if (context)
		step(u, "use it with: kubectl --context %s get pods -A", context);
	return 0;
}

static int serve(void *arg, struct err *err)
{
	struct upping *u = arg;
	CLEANUP(supervisor_stopp) struct supervisor *s = NULL;
	CLEANUP(fiber_stopp) struct fiber *logs = NULL;
	int r;

	u->started_wall_ns = clock_wall_ns();
	if ((u->cluster.settings.server && (r = join(u, err)) < 0) || (u->cluster.settings.images && (r = load_images(u, err)) < 0) ||
	    (r = up_claim_store(&u->cluster, err)) < 0 || (r = supervisor_start(&u->cluster, &s, err)) < 0 || (r = start(u, s, err)) < 0)
		return r;
	if ((r = fiber_spawn(up_keep_logs, &u->cluster, &logs, err, "logs")) < 0)
		return r;
	service_manager_tell("READY=1\nSTATUS=the node is Ready");
	let_go();
	r = up_keep_servers(&u->cluster, err);
	service_manager_tell("STOPPING=1\nSTATUS=");
	return r;
}

/* ---- in the background ---- */

/* Standard error of who is in the background: a log beside those of its children. */
static int open_own_log(const struct up_cluster *c)
{
	return open(arena_printf(c->arena, "%s/supervisor.log", c->log_dir).p, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
}

static volatile sig_atomic_t follower_signal;
static pid_t followed;

static void stop_followed(int signal)
{
	follower_signal = signal;
	(void)kill(followed, SIGTERM);
}

/* Passes on what the child says until it is up or has ended; the exit code. Until then Ctrl-C is meant for the child. */
static int follow(pid_t child, int fd)
{
	struct sigaction stop = { .sa_handler = stop_followed };
	char text[512];
	ssize_t n;
	int status = 0;

	followed = child;
	(void)sigaction(SIGINT, &stop, NULL);
	(void)sigaction(SIGTERM, &stop, NULL);

	while ((n = read(fd, text, sizeof(text))) > 0 || (n < 0 && errno == EINTR)) {
		size_t shown = n > 0 ? strnlen(text, (size_t)n) : 0;
		(void)fwrite(text, 1, shown, stdout);
		fflush(stdout);
		if (n > 0 && shown < (size_t)n)
			return 0;
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return follower_signal ? 128 + follower_signal : WIFEXITED(status) ? WEXITSTATUS(status) : 1;
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

/* ---- a newer c8s ---- */

/* Whether a process runs another file than we do: one of that name was put in its place, or it was started from elsewhere. */
static bool is_other_program(const struct up_cluster *c, pid_t pid)
{
	struct stat own, other;

	return stat("/proc/self/exe", &own) == 0 && stat(arena_printf(c->arena, "/proc/%d/exe", pid).p, &other) == 0 &&
	       (own.st_ino != other.st_ino || own.st_dev != other.st_dev);
}

/*
 * Before anything is made or stopped: whoever is refused leaves the machine as it is. *ret_replaced: the supervisor whose place we take; 0: nobody's.
 * That a cluster runs already is said before what it has, above all its ports, could be.
 */
static int check(const struct upping *u, pid_t *ret_replaced, struct err *err)
{
	const struct up_cluster *c = &u->cluster;
	struct up_findings findings;
	pid_t pid = 0;
	int r = 0;

	*ret_replaced = up_running(c, &pid) && pid > 0 && is_other_program(c, pid) ? pid : 0;
	if (!*ret_replaced && (r = up_check_stopped(c, err)) < 0)
		return r;
	up_look(c->arena, c, &findings);
	if ((r = up_check(&findings, err)) == 0 && (r = up_check_name(c, err)) == 0 && !c->settings.server)
		r = up_check_pki(c, err);
	return r;
}

/* Blocks. The cluster of another c8s becomes ours; its containers run on. */
static int take_over(const struct upping *u, pid_t pid, struct err *err)
{
	if (!pid)
		return 0;
	CLEANUP(fd_closep) int fd = pidfd_open(pid, 0);
	if (fd < 0 || kill(pid, SIGTERM) < 0)
		return errno == ESRCH ? 0 : err_sys(err, errno, "stopping the supervisor (pid %d)", pid);
	if (poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, TAKE_OVER_MS) <= 0)
		return err_set(err, ERR_TIMEOUT, "the supervisor (pid %d) does not stop", pid);
	step(u, "the c8s that ran here (pid %d) is replaced by this one", pid);
	return 0;
}

/* ---- the command ---- */

static int run_cluster(struct upping *u, struct err *err)
{
	const struct up_cluster *c = &u->cluster;
	pid_t replaced;
	int r;

	if (check(u, &replaced, err) < 0 || up_make_folders(c, err) < 0 || take_over(u, replaced, err) < 0)
		return cmd_fail(u->command, err);
	service_manager_find();
	if (c->settings.detach && (r = go_to_background(u, err)) >= 0)
		return r;
	if (up_lock(c, err) < 0 || up_prepare(c, err) < 0 || cmd_serve("up", serve, u, err) < 0) {
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
		"DIR/log. A part that ends is started again; containers run on meanwhile.\n"
		"\n"
		"To upgrade, put the new c8s and c8s-pod in the place of the old ones and run 'c8s up' again: it takes the place of the one\n"
		"that runs. Containers run on through that, too. A new one that cannot start here says so, and the old one stays.\n"
		"\n"
		"A control plane on several machines: all keep their objects in one etcd and share the keys of the first. Copy\n"
		"DIR/control-plane/pki of the first machine to each of the others, for root alone, say --pki once, and remove the copy.\n"
		"Ports and CIDRs are the same on all. Every machine serves the API; the controllers and the scheduler run on one at a\n"
		"time, by leases. Nodes know all servers, and go on with another one when theirs is gone. A server that is gone, and its\n"
		"etcd with it, costs seconds as long as most members of etcd are there. --control-plane-arg sets how soon a node counts as\n"
		"lost (node-monitor-grace-period=50s); what nodes are reached at besides, such as a load balancer, is yours to set up.\n"
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
		"  c8s down\n"
		"\n"
		"Example with three machines, 10.0.0.1 to 10.0.0.3, each with a member of etcd:\n"
		"  first:  c8s up --detach --etcd-servers http://10.0.0.1:2379,http://10.0.0.2:2379,http://10.0.0.3:2379\n"
		"  others: scp -r root@10.0.0.1:/var/lib/c8s/control-plane/pki /root/pki\n"
		"          c8s up --detach --etcd-servers http://10.0.0.1:2379,http://10.0.0.2:2379,http://10.0.0.3:2379 --pki /root/pki\n"
		"          rm -r /root/pki\n",
	.help = help,
	.run = run_command,
};
