/* c8s: one program, many names. */
#include <stdio.h>

#include "cmd/cmd.h"

/* As they are listed: what a newcomer needs comes first. */
static const struct section {
	const char *title;
	const struct command *commands[10];
} sections[] = {
	{ "A cluster", { &cmd_up, &cmd_status, &cmd_down, &cmd_reset, &cmd_install, &cmd_doctor, &cmd_token, &cmd_join } },
	{ "Using one", { &cmd_kubectl, &cmd_why } },
	{ "Its parts", { &cmd_control_plane, &cmd_kube_apiserver, &cmd_kube_controller_manager, &cmd_kube_scheduler, &cmd_kubelet, &cmd_hollow } },
	{ "Containers", { &cmd_runtime, &cmd_crictl, &cmd_image, &cmd_cni, &cmd_runc } },
	{ "Files", { &cmd_certs, &cmd_convert, &cmd_store } },
	{ "c8s", { &cmd_version } },
};

static void print_overview(FILE *out)
{
	fprintf(out, "c8s - Kubernetes in C\n\nUsage: c8s COMMAND [OPTIONS]\n");
	for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
		fprintf(out, "\n%s:\n", sections[i].title);
		for (const struct command *const *c = sections[i].commands; *c; c++)
			fprintf(out, "  %-24s %s\n", (*c)->name, (*c)->summary);
	}
	fprintf(out, "\n'c8s COMMAND --help' shows the manual of a command. 'c8s up --detach' makes a cluster of this machine.\n");
}

static const struct command *find(str name)
{
	for (size_t i = 0; i < ARRAY_LEN(sections); i++)
		for (const struct command *const *c = sections[i].commands; *c; c++)
			if (str_eq(name, str_of((*c)->name)))
				return *c;
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
