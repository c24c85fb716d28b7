/* c8s join: this machine becomes a node of a cluster that runs elsewhere. It is `c8s up` without a control plane. */
#include "cmd/up.h"

static int run_command(int argc, char **argv)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	char **args = ARENA_ARRAY(&a, char *, (size_t)argc + 2);

	if (argc < 2 || argv[1][0] == '-')
		return cmd_usage(&cmd_join, "the cluster's address is missing, such as https://10.0.0.1:6443");
	args[0] = argv[0];
	args[1] = "--server";
	for (int i = 1; i <= argc; i++)
		args[i + 1] = argv[i];
	return up_run(&cmd_join, argc + 1, args);
}

static void help(void) { flags_help(up_flags); }

const struct command cmd_join = {
	.name = "join",
	.summary = "this machine becomes a node of another machine's cluster",
	.manual =
		"Usage: c8s join URL --token TOKEN --ca-hash HASH [--data-dir DIR] [--detach] [FLAGS OF THE NODE]\n"
		"\n"
		"'c8s token create' on a machine of the cluster prints the whole command. The node asks for its certificate with the\n"
		"token and renews it by itself from then on. Without --ca-hash the cluster is believed to be the one meant if it\n"
		"knows the token. Later starts need neither: 'c8s up --data-dir DIR' is enough. 'c8s status', 'c8s down' and 'c8s reset'\n"
		"work as for 'c8s up'. Needs root.\n"
		"\n"
		"Exit code: 0 stopped by a signal or detached, 1 it could not join or go on, 2 wrong usage.\n",
	.help = help,
	.run = run_command,
};
