/* c8s down: stops a cluster, and its containers unless they are to stay. */
#include <signal.h>
#include <stdio.h>

#include "base/fiber.h"
#include "base/loop.h"
#include "cmd/serve.h"
#include "cmd/up.h"

enum { STOP_MS = 45 * 1000, LOOK_MS = 10 };

struct down {
	const char *data_dir;
	bool keep_containers;
	struct up_cluster cluster;
};

#define AT(member) FLAG_WORKS, offsetof(struct down, member)

static const struct flag flags[] = {
	FLAG_GROUP("Cluster"),
	{ "data-dir", FLAG_STRING, AT(data_dir), "/var/lib/c8s", "which one" },
	{ "keep-containers", FLAG_BOOL, AT(keep_containers), "false", "let them run on; the next 'c8s up' takes them up" },
	{ NULL, FLAG_HEADING, FLAG_WORKS, 0, NULL, NULL },
};

/* (suspends) */
int up_stop(const struct up_cluster *c, struct err *err)
{
	pid_t pid = 0;

	if (!up_running(c, &pid) || pid <= 0)
		return 0;
	if (kill(pid, SIGTERM) < 0)
		return err_set(err, ERR_FORBIDDEN, "the supervisor (pid %d) cannot be stopped; run this as the user who started it, or as root", pid);
	DEADLINE_SCOPE(STOP_MS);
	while (up_running(c, &pid)) {
		int r = fiber_sleep_ms(LOOK_MS, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int stop(void *arg, struct err *err)
{
	struct down *d = arg;
	int r = up_stop(&d->cluster, err);

	return r == 0 && !d->keep_containers ? up_remove_pods(&d->cluster, err) : r;
}

static int run_command(int argc, char **argv)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf later = BUF_INIT(64);
	struct down d = { 0 };
	struct err err = ERR_INIT;
	int r = flags_parse(&cmd_down, argc, argv, flags, &d, &a, &later);

	if (r == 0 && ((r = up_load(&cmd_down, &a, d.data_dir, &d.cluster, &err)) < 0 || (r = cmd_serve("down", stop, &d, &err)) < 0))
		return cmd_fail(&cmd_down, &err);
	return r;
}

static void help(void) { flags_help(flags); }

const struct command cmd_down = {
	.name = "down",
	.summary = "stops a cluster",
	.manual =
		"Usage: c8s down [--data-dir DIR] [--keep-containers]\n"
		"\n"
		"Stops the cluster that 'c8s up' has started, and removes its containers; objects, images and volumes stay, and the next\n"
		"'c8s up' brings everything back. One that does not run is fine.\n"
		"\n"
		"Exit code: 0 it is down, 1 it could not be stopped or there is none, 2 wrong usage.\n",
	.help = help,
	.run = run_command,
};
