/* --help: what a command is for, examples, its flags, how it is called. */
#include <stdio.h>

#include "kubectl/commands.h"

static void list_commands(struct buf *b, const struct ktl_command *const *list, const char *group)
{
	for (; *list; list++)
		if (group ? (*list)->group && ktl_is((*list)->group, group) : true)
			buf_addf(b, "  %-20s  %s\n", (*list)->name, (*list)->summary);
	buf_addc(b, '\n');
}

static void show_all(struct buf *b)
{
	static const char *const groups[] = { "Basic Commands (Beginner)", "Basic Commands (Intermediate)", "Deploy Commands",
					      "Cluster Management Commands", "Troubleshooting and Debugging Commands", "Advanced Commands",
					      "Settings Commands", "Other Commands" };
	buf_add(b, STR("kubectl talks to the API server of a Kubernetes cluster.\n\n"));
	for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
		buf_addf(b, "%s:\n", groups[i]);
		list_commands(b, ktl_commands, groups[i]);
	}
	buf_add(b, STR("Usage:\n  kubectl [flags] [options]\n\nkubectl COMMAND --help tells more of a command, kubectl options the flags that all of them have.\n"));
}

static void show_one(struct buf *b, const struct ktl_command *c)
{
	buf_addf(b, "%s\n\n", c->manual ? c->manual : c->summary);
	if (c->examples)
		buf_addf(b, "Examples:\n%s\n", c->examples);
	if (c->below) {
		buf_add(b, STR("Available Commands:\n"));
		list_commands(b, c->below, NULL);
	}
	if (c->flags && c->flags->flags) {
		buf_add(b, STR("Options:\n"));
		for (const struct ktl_flag_set *s = c->flags; s->flags; s++)
			ktl_flags_describe(b, s->flags);
	}
	buf_addf(b, "Usage:\n  kubectl %s\n", c->usage);
}

void ktl_show_help(const struct ktl_command *c, FILE *out)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	if (c)
		show_one(&b, c);
	else
		show_all(&b);
	(void)fwrite(b.p, 1, b.n, out);
}

int ktl_run_group(struct ktl *k, void *options)
{
	(void)options;
	if (k->args.n)
		return ktl_fail_usage(k, "unknown command \"%s\"", k->args.v[0]);
	ktl_show_help(k->command, stderr);
	k->exit_code = 1;
	return 0;
}

static int run_options(struct ktl *k, void *options)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	(void)k;
	(void)options;
	ktl_flags_describe(&b, ktl_global_flags);
	printf("These flags can be given to any command:\n\n%s", b.p);
	return 0;
}

const struct ktl_command ktl_options = {
	.name = "options", .summary = "List the flags that all commands have", .usage = "options", .run = run_options,
};
