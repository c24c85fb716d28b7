/* c8s doctor: is this machine fit for a cluster? */
#include <stdio.h>

#include "cmd/up.h"

static int run_command(int argc, char **argv)
{
	static const char *const marks[] = { [UP_FINE] = "ok", [UP_WARNING] = "note", [UP_PROBLEM] = "PROBLEM" };
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct up_cluster cluster = { 0 };
	struct up_findings findings;
	struct err err = ERR_INIT;
	int r = up_open(&cmd_doctor, &a, argc, argv, &cluster, &err);

	if (r != 0)
		return r < 0 ? cmd_fail(&cmd_doctor, &err) : r;
	up_look(&a, &cluster, &findings);
	for (size_t i = 0; i < findings.n; i++) {
		const struct up_finding *f = &findings.items[i];
		printf("%-8s %-20s " STR_FMT "\n", marks[f->severity], f->what, STR_ARG(f->says));
		if (f->advice.n)
			printf("%30s" STR_FMT "\n", "", STR_ARG(f->advice));
	}
	return up_check(&findings, &err) < 0;
}

static void help(void) { flags_help(up_flags); }

const struct command cmd_doctor = {
	.name = "doctor",
	.summary = "checks whether this machine is fit for a cluster",
	.manual =
		"Usage: c8s doctor [FLAGS OF UP]\n"
		"\n"
		"Looks at everything that 'c8s up' needs, with the same flags, and says for each thing what it found and, where that is\n"
		"not enough, what to do. Changes nothing.\n"
		"\n"
		"Exit code: 0 a cluster can start, 1 there is a problem, 2 wrong usage.\n",
	.help = help,
	.run = run_command,
};
