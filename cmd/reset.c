/* c8s reset: as if the cluster had never been. */
#include "cmd/install.h"
#include "cmd/serve.h"
#include "cmd/up.h"

struct resetting {
	const char *data_dir;
	struct up_cluster cluster;
};

static const struct flag flags[] = {
	FLAG_GROUP("Cluster"),
	{ "data-dir", FLAG_STRING, FLAG_WORKS, offsetof(struct resetting, data_dir), "/var/lib/c8s", "which one" },
	{ NULL, FLAG_HEADING, FLAG_WORKS, 0, NULL, NULL },
};

static int clean(void *arg, struct err *err)
{
	struct resetting *x = arg;
	int r = install_remove(&x->cluster, err); /* or the next start of the machine would make a new one */

	if (r == 0)
		r = up_stop(&x->cluster, err);
	return r == 0 ? up_remove(&x->cluster, err) : r;
}

static int run_command(int argc, char **argv)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf later = BUF_INIT(64);
	struct resetting x = { 0 };
	struct err err = ERR_INIT;
	int r = flags_parse(&cmd_reset, argc, argv, flags, &x, &a, &later);

	if (r == 0 && ((r = up_load(&cmd_reset, &a, x.data_dir, &x.cluster, &err)) < 0 || (r = cmd_serve("reset", clean, &x, &err)) < 0))
		return cmd_fail(&cmd_reset, &err);
	return r;
}

static void help(void) { flags_help(flags); }

const struct command cmd_reset = {
	.name = "reset",
	.summary = "removes a cluster without a trace",
	.manual =
		"Usage: c8s reset [--data-dir DIR]\n"
		"\n"
		"Stops the cluster and removes everything that it has on this machine: containers, networks, control groups, mounts,\n"
		"objects, images, volumes below the data directory, its context in the kubeconfig, and the unit of 'c8s install'. This\n"
		"cannot be undone.\n"
		"\n"
		"Exit code: 0 nothing is left, 1 something could not be removed or there is no cluster, 2 wrong usage.\n",
	.help = help,
	.run = run_command,
};
