/* From the command line to a command, and from what it noted to an exit code. */
#include "kubectl/kubectl.h"

#include <errno.h>
#include <stdio.h>

#include "base/log.h"
#include "base/loop.h"
#include "base/mem.h"
#include "kubectl/commands.h"

const struct ktl_command *const ktl_commands[] = {
	&ktl_create, &ktl_run, &ktl_explain, &ktl_get_command, &ktl_edit, &ktl_delete, &ktl_rollout, &ktl_scale, &ktl_auth, &ktl_cluster_info, &ktl_describe,
	&ktl_logs, &ktl_attach, &ktl_exec, &ktl_apply, &ktl_patch, &ktl_replace, &ktl_wait, &ktl_label, &ktl_annotate, &ktl_api_resources,
	&ktl_api_versions, &ktl_config_command, &ktl_version, &ktl_options, NULL,
};

#define GLOBAL(member) offsetof(struct ktl_globals, member)

const struct ktl_flag ktl_global_flags[] = {
	{ "as", 0, KTL_STRING, GLOBAL(as), NULL, "Act as this user", NULL },
	{ "as-group", 0, KTL_ARRAY, GLOBAL(as_group), NULL, "Act as a member of this group; may be given several times", NULL },
	{ "as-uid", 0, KTL_STRING, GLOBAL(as_uid), NULL, "UID of the user to act as", NULL },
	{ "as-user-extra", 0, KTL_ARRAY, GLOBAL(as_user_extra), NULL, NULL, NULL },
	{ "cache-dir", 0, KTL_STRING, GLOBAL(cache_dir), NULL, NULL, NULL },
	{ "certificate-authority", 0, KTL_STRING, GLOBAL(certificate_authority), NULL, "File with the certificate of the server's authority", NULL },
	{ "client-certificate", 0, KTL_STRING, GLOBAL(client_certificate), NULL, "File with our certificate", NULL },
	{ "client-key", 0, KTL_STRING, GLOBAL(client_key), NULL, "File with our key", NULL },
	{ "cluster", 0, KTL_STRING, GLOBAL(cluster), NULL, "Name of the cluster in the kubeconfig", NULL },
	{ "context", 0, KTL_STRING, GLOBAL(context), NULL, "Name of the context in the kubeconfig", NULL },
	{ "disable-compression", 0, KTL_BOOL, GLOBAL(disable_compression), NULL, "Answers come as they are", NULL },
	{ "insecure-skip-tls-verify", 0, KTL_BOOL, GLOBAL(insecure), NULL, "Do not check the server's certificate", NULL },
	{ "kubeconfig", 0, KTL_STRING, GLOBAL(kubeconfig), NULL, "The kubeconfig file to use", NULL },
	{ "kuberc", 0, KTL_STRING, GLOBAL(ignored), NULL, NULL, NULL },
	{ "log-flush-frequency", 0, KTL_STRING, GLOBAL(ignored), NULL, NULL, NULL },
	{ "match-server-version", 0, KTL_BOOL, GLOBAL(match_server_version), NULL, "Nothing is done unless the server is of our version", NULL },
	{ "namespace", 'n', KTL_STRING, GLOBAL(namespace), NULL, "The namespace to work in", NULL },
	{ "password", 0, KTL_STRING, GLOBAL(password), NULL, NULL, NULL },
	{ "profile", 0, KTL_STRING, GLOBAL(ignored), NULL, NULL, NULL },
	{ "profile-output", 0, KTL_STRING, GLOBAL(ignored), NULL, NULL, NULL },
	{ "request-timeout", 0, KTL_STRING, GLOBAL(request_timeout), "0", "How long one request may take, as 1s, 2m or 3h; 0: without end", NULL },
	{ "server", 's', KTL_STRING, GLOBAL(server), NULL, "Address and port of the API server", NULL },
	{ "tls-server-name", 0, KTL_STRING, GLOBAL(tls_server_name), NULL, "Name in the server's certificate", NULL },
	{ "token", 0, KTL_STRING, GLOBAL(token), NULL, "Bearer token", NULL },
	{ "user", 0, KTL_STRING, GLOBAL(user), NULL, "Name of the user in the kubeconfig", NULL },
	{ "username", 0, KTL_STRING, GLOBAL(username), NULL, NULL, NULL },
	{ "v", 'v', KTL_INT, GLOBAL(verbosity), NULL, "How much is logged", NULL },
	{ "vmodule", 0, KTL_STRING, GLOBAL(ignored), NULL, NULL, NULL },
	{ "warnings-as-errors", 0, KTL_BOOL, GLOBAL(warnings_as_errors), NULL, "What the server warns of makes the exit code 1", NULL },
	{ 0 },
};

/* ---- which command ---- */

static bool in_words(const char *words, str word)
{
	str part, rest = str_of(words ? words : "");
	while (rest.n) {
		(void)str_cut(rest, ',', &part, &rest);
		if (str_eq(part, word))
			return true;
	}
	return false;
}

static const struct ktl_command *find(const struct ktl_command *const *list, const char *name)
{
	for (; list && *list; list++)
		if (ktl_is((*list)->name, name) || in_words((*list)->aliases, str_of(name)))
			return *list;
	return NULL;
}

static bool takes_value(const struct ktl_flag *flags, const char *arg)
{
	for (const struct ktl_flag *f = flags; f->name; f++)
		if (arg[1] == '-' ? ktl_is(arg + 2, f->name) : f->letter == arg[1] && !arg[2])
			return f->type != KTL_BOOL && !f->bare;
	return false;
}

/* The next word that is no flag, from `from` on; argc: there is none. */
static int next_word(const struct ktl_command *c, int argc, char **argv, int from)
{
	for (int i = from; i < argc; i++) {
		if (ktl_is(argv[i], "--"))
			return argc;
		if (argv[i][0] != '-' || !argv[i][1])
			return i;
		bool takes = strchr(argv[i], '=') == NULL && takes_value(ktl_global_flags, argv[i]);
		for (const struct ktl_flag_set *s = c ? c->flags : NULL; s && s->flags && !strchr(argv[i], '='); s++)
			takes |= takes_value(s->flags, argv[i]);
		i += takes;
	}
	return argc;
}

static void take_out(int *argc, char **argv, int at)
{
	for (int i = at; i + 1 < *argc; i++)
		argv[i] = argv[i + 1];
	--*argc;
}

/* Finds the command and takes its words out of the arguments. NULL: the first word is none, or there is no word. */
static const struct ktl_command *find_command(struct ktl *k, int *argc, char **argv, const char **ret_word)
{
	const struct ktl_command *c = NULL;
	int at = 0;
	k->path = STR("kubectl");
	*ret_word = NULL;
	for (;;) {
		at = next_word(c, *argc, argv, at);
		if (at >= *argc)
			return c;
		const struct ktl_command *below = find(c ? c->below : ktl_commands, argv[at]);
		if (!below) {
			*ret_word = argv[at];
			return c;
		}
		c = below;
		k->path = arena_printf(&k->arena, STR_FMT " %s", STR_ARG(k->path), c->name);
		take_out(argc, argv, at);
	}
}

/* ---- running ---- */

static int check_required(struct ktl *k)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(4096);
	str name, rest = str_of(k->command->required ? k->command->required : "");
	while (rest.n) {
		(void)str_cut(rest, ',', &name, &rest);
		if (!ktl_given(k, ktl_cstr(k, name)))
			buf_addf(&b, "%s\"" STR_FMT "\"", b.n ? ", " : "", STR_ARG(name));
	}
	return b.n ? ktl_fail(k, "required flag(s) %s not set", b.p) : 0;
}

static int run(void *arg)
{
	struct ktl *k = arg;
	int r = k->command->run(k, k->flags.target);
	ktl_flush();
	client_free(TAKE(k->client));
	if (r < 0 && !k->n_failures && !k->exit_code)
		k->exit_code = 1;
	return 0;
}

static int run_on_loop(struct ktl *k)
{
	struct err err = ERR_INIT;
	struct loop *loop = NULL;
	int r = loop_new("kubectl", &loop, &err);
	if (r == 0)
		r = loop_run(loop, run, k, &err);
	loop_free(loop);
	return r < 0 ? ktl_fail_err(k, &err) : 0;
}

static int parse_flags(struct ktl *k, int argc, char **argv)
{
	struct err err = ERR_INIT;
	k->flags = (struct ktl_flags){
		.sets = k->command->flags, .target = arena_zero_of(&k->arena, MAX(k->command->size, (size_t)1), _Alignof(max_align_t)),
		.globals = ktl_global_flags, .global_target = &k->globals,
	};
	if (ktl_flags_parse(&k->flags, &k->arena, argc, argv, &err) < 0)
		return ktl_fail(k, "%s\nSee '" STR_FMT " --help' for usage.", err.msg, STR_ARG(k->path));
	k->args = k->flags.args;
	return 0;
}

static int run_command(struct ktl *k, int argc, char **argv)
{
	const char *word;
	bool help = argc && ktl_is(argv[0], "help");
	if (help)
		take_out(&argc, argv, 0);
	k->command = find_command(k, &argc, argv, &word);
	if (!k->command && word)
		return ktl_fail(k, "unknown command \"%s\" for \"kubectl\"", word);
	if (!k->command) {
		static const struct ktl_command none = { 0 };
		k->command = &none;
		if (parse_flags(k, argc, argv) < 0)
			return -1;
		ktl_show_help(NULL, stdout);
		return 0;
	}
	if (help) {
		ktl_show_help(k->command, stdout);
		return 0;
	}
	if (parse_flags(k, argc, argv) < 0)
		return -1;
	if (k->flags.help) {
		ktl_show_help(k->command, stdout);
		return 0;
	}
	if (check_required(k) < 0)
		return -1;
	log_set_level(k->globals.verbosity ? LOG_LEVEL_DEBUG : LOG_LEVEL_OFF);
	return run_on_loop(k);
}

int kubectl_main(int argc, char **argv)
{
	struct ktl k = { .arena = ARENA_INIT };
	/* Words of the command are taken out: in a copy. */
	char **copy = mem_array((size_t)argc + 1, sizeof(*copy));
	for (int i = 1; i < argc; i++)
		copy[i - 1] = argv[i];
	(void)run_command(&k, argc ? argc - 1 : 0, copy);
	int lost = ktl_flush();
	if (k.n_failures) {
		ktl_failures_print(&k);
		k.exit_code = k.exit_code ? k.exit_code : 1;
	} else if (k.globals.warnings_as_errors && val_len(k.warned)) {
		fprintf(stderr, "error: %u warning%s received\n", val_len(k.warned), val_len(k.warned) > 1 ? "s" : "");
		k.exit_code = 1;
	}
	/* Whoever reads has not got all. One who went away wanted no more, and is told nothing. */
	if (lost && lost != EPIPE)
		fprintf(stderr, "error: write /dev/stdout: %s\n", strerror(lost));
	if ((lost || ferror(stdout)) && !k.exit_code)
		k.exit_code = 1;
	free(copy);
	arena_done(&k.arena);
	return k.exit_code;
}
