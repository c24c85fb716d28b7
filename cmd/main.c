/* c8s: one program, many names. */
#include <stdio.h>

#include "cmd/cmd.h"

static const struct command *const commands[] = {
	&cmd_certs, &cmd_cni, &cmd_control_plane, &cmd_convert, &cmd_crictl, &cmd_doctor, &cmd_down, &cmd_hollow, &cmd_image, &cmd_join,
	&cmd_kube_apiserver, &cmd_kube_controller_manager, &cmd_kube_scheduler, &cmd_kubelet, &cmd_reset, &cmd_runc, &cmd_runtime,
	&cmd_status, &cmd_store, &cmd_token, &cmd_up, &cmd_version, &cmd_why,
};

static void print_overview(FILE *out)
{
	fprintf(out, "c8s - Kubernetes in C\n\nUsage: c8s COMMAND [OPTIONS]\n\nCommands:\n");
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		fprintf(out, "  %-24s %s\n", commands[i]->name, commands[i]->summary);
	fprintf(out, "\n'c8s COMMAND --help' shows the manual of a command.\n");
}

static const struct command *find(str name)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (str_eq(name, str_of(commands[i]->name)))
			return commands[i];
	return NULL;
}

static bool wants_help(const struct command *c, int argc, char **argv)
{
	for (int i = 1; i < argc && (!c->help_within || i <= c->help_within); i++) {
		str arg = str_of(argv[i]);
		if (str_eq(arg, STR("--")))
			return false;
		if (str_eq(arg, STR("--help")) || str_eq(arg, STR("-h")))
			return true;
	}
	return false;
}

static int run(const struct command *c, bool help, int argc, char **argv)
{
	if (!help && !wants_help(c, argc, argv))
		return c->run(argc, argv);
	fputs(c->manual, stdout);
	if (c->help)
		c->help();
	return 0;
}

/* Called by the name of a command (a link to the program), it is that command. */
static const struct command *find_by_program(const char *argv0)
{
	const char *slash = argv0 ? strrchr(argv0, '/') : NULL;
	return find(str_of(slash ? slash + 1 : argv0));
}

int main(int argc, char **argv)
{
	const struct command *called = find_by_program(argv[0]);
	str first = argc > 1 ? str_of(argv[1]) : STR("");
	if (called)
		return run(called, false, argc, argv);
	bool help = str_eq(first, STR("help")) || str_eq(first, STR("--help")) || str_eq(first, STR("-h"));

	if (help && argc > 2) {
		first = str_of(argv[2]);
	} else if (help) {
		print_overview(stdout);
		return 0;
	} else if (argc < 2) {
		print_overview(stderr);
		return 2;
	}
	const struct command *c = find(first);
	if (!c) {
		fprintf(stderr, "c8s: there is no command '" STR_FMT "'; 'c8s help' lists them\n", STR_ARG(first));
		return 2;
	}
	return run(c, help, argc - 1, argv + 1);
}
