/* c8s image: images in the store of the runtime, also while that runs: runtime/image.h says how both share it. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/loop.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/image_progress.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "runtime/image.h"

#define ROOT_DEFAULT "/var/lib/c8s/runtime"

enum { ARGUMENTS_MAX = 256, CONFIG_MAX = 1 << 20 };

struct image_args {
	const char *positional[ARGUMENTS_MAX]; /* the action and what it is about */
	int n;
	const char *root, *creds, *hosts_dir, *auth_file, *output, *format, *config;
	bool plain_http, quiet, json;
	struct images *images;
	struct arena arena;
};

/* ---- showing ---- */

static const char *size_text(uint64_t bytes, char out[32])
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB" };
	double n = (double)bytes;
	size_t u = 0;
	for (; n >= 1000 && u + 1 < ARRAY_LEN(units); u++)
		n /= 1000;
	snprintf(out, 32, u ? "%.3g%s" : "%.0f%s", n, units[u]);
	return out;
}

static str short_id(str id) { return str_head(str_skip(id, 7), 13); }

static void print_row(const struct image *image, str name, str tag)
{
	char size[32];
	printf("%-50.*s %-20.*s %-14.*s %s\n", STR_ARG(name), STR_ARG(tag), STR_ARG(short_id(image->id)), size_text(image->size, size));
}

static void print_names(const struct image *image)
{
	for (size_t i = 0; i < image->n_tags; i++) {
		size_t colon = (size_t)str_rchr(image->tags[i], ':');
		print_row(image, str_head(image->tags[i], colon), str_skip(image->tags[i], colon + 1));
	}
	if (image->n_tags)
		return;
	str name = STR("<none>"), digest;
	if (image->n_digests)
		str_cut(image->digests[0], '@', &name, &digest);
	print_row(image, name, STR("<none>"));
}

static struct val texts(struct arena *a, const str *list, size_t n)
{
	struct val_builder b = val_builder(a);
	for (size_t i = 0; i < n; i++)
		val_add_item(&b, VAL_STR(list[i]));
	return val_end_list(&b);
}

static struct val image_val(struct arena *a, const struct image *i)
{
	return OBJECT(a, F(id, VAL_STR(i->id)), F(manifest, VAL_STR(i->manifest_digest)), F(tags, texts(a, i->tags, i->n_tags)),
		      F(digests, texts(a, i->digests, i->n_digests)), F(size, val_of_int((int64_t)i->size)), F(pinned, val_of_bool(i->pinned)),
		      F(layers, texts(a, i->layers, i->n_layers)), F(diff_ids, texts(a, i->diff_ids, i->n_layers)), F(config, i->config));
}

static int print_json(struct val v, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(64 << 20);
	int r = json_encode(&b, v, &(struct json_encode_options){ .indent = 2, .plain = true }, err);
	if (r == 0)
		puts(b.p);
	return r;
}

/* ---- actions ---- */

static int parse_ref(struct image_args *a, int i, struct image_ref *ret, struct err *err)
{
	return image_ref_parse(&a->arena, str_of(a->positional[i]), ret, err);
}

static struct image_auth auth_of(const struct image_args *a)
{
	struct image_auth auth = { 0 };
	if (a->creds)
		str_cut(str_of(a->creds), ':', &auth.user, &auth.password);
	return auth;
}

static int do_pull(struct image_args *a, struct err *err)
{
	struct image_auth auth = auth_of(a);
	struct image_ref ref;
	str id;
	int r = parse_ref(a, 1, &ref, err);
	if (r < 0)
		return r;
	struct image_progress_lines *lines = image_progress_lines_new(a->quiet);
	r = image_pull(a->images, &ref, &auth, image_progress_lines_of(lines), &a->arena, &id, err);
	image_progress_lines_free(lines);
	if (r == 0)
		printf(STR_FMT "\n", STR_ARG(a->quiet ? id : ref.text));
	return r;
}

static int do_push(struct image_args *a, struct err *err)
{
	struct image_auth auth = auth_of(a);
	struct image_ref to;
	int r = parse_ref(a, a->n - 1, &to, err);
	if (r < 0)
		return r;
	struct image_progress_lines *lines = image_progress_lines_new(a->quiet);
	r = image_push(a->images, str_of(a->positional[1]), &to, &auth, image_progress_lines_of(lines), err);
	image_progress_lines_free(lines);
	if (r == 0)
		printf(STR_FMT "\n", STR_ARG(to.text));
	return r;
}

static int do_load(struct image_args *a, struct err *err)
{
	str *names;
	size_t n;
	int r = image_load(a->images, a->n > 1 ? a->positional[1] : "-", &a->arena, &names, &n, err);
	for (size_t i = 0; r == 0 && i < n; i++)
		printf(STR_FMT "\n", STR_ARG(names[i]));
	return r;
}

static int do_save(struct image_args *a, struct err *err)
{
	str *names = ARENA_ARRAY(&a->arena, str, (size_t)a->n);
	for (int i = 1; i < a->n; i++)
		names[i - 1] = str_of(a->positional[i]);
	if (!a->output && isatty(1))
		return err_set(err, ERR_BAD_REQUEST, "an archive is not for a terminal; give a file with --output, or redirect");
	return image_save(a->images, names, (size_t)a->n - 1, a->output ? a->output : "-", a->format && strcmp(a->format, "oci") == 0, err);
}

static int do_ls(struct image_args *a, struct err *err)
{
	struct val_builder b = val_builder(&a->arena);
	struct image *list;
	size_t n;
	int r = image_list(a->images, &a->arena, &list, &n, err);
	if (r < 0)
		return r;
	if (!a->quiet && !a->json)
		printf("%-50s %-20s %-14s %s\n", "IMAGE", "TAG", "IMAGE ID", "SIZE");
	for (size_t i = 0; i < n; i++) {
		if (a->json)
			val_add_item(&b, image_val(&a->arena, &list[i]));
		else if (a->quiet)
			printf(STR_FMT "\n", STR_ARG(list[i].id));
		else
			print_names(&list[i]);
	}
	return a->json ? print_json(val_end_list(&b), err) : 0;
}

static int collect(struct image_args *a, struct err *err)
{
	uint64_t freed = 0;
	char size[32];
	int r = images_collect(a->images, &freed, err);
	if (r == 0 && !a->quiet)
		printf("freed %s\n", size_text(freed, size));
	return r;
}

static int do_rm(struct image_args *a, struct err *err)
{
	for (int i = 1; i < a->n; i++) {
		int r = image_remove(a->images, str_of(a->positional[i]), err);
		if (r < 0)
			return r;
		printf("removed %s\n", a->positional[i]);
	}
	return collect(a, err);
}

static int pin_all(struct image_args *a, bool pinned, struct err *err)
{
	int r = 0;
	for (int i = 1; r == 0 && i < a->n; i++)
		r = image_pin(a->images, str_of(a->positional[i]), pinned, err);
	return r;
}

static int do_pin(struct image_args *a, struct err *err) { return pin_all(a, true, err); }
static int do_unpin(struct image_args *a, struct err *err) { return pin_all(a, false, err); }

static int do_prune(struct image_args *a, struct err *err)
{
	struct image *list;
	size_t n;
	int r = image_list(a->images, &a->arena, &list, &n, err);
	for (size_t i = 0; r == 0 && i < n; i++) {
		if (list[i].n_tags || list[i].n_digests || list[i].pinned)
			continue;
		if ((r = image_remove(a->images, list[i].id, err)) == 0)
			printf("removed " STR_FMT "\n", STR_ARG(list[i].id));
	}
	return r < 0 ? r : collect(a, err);
}

static int do_import(struct image_args *a, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(CONFIG_MAX);
	struct val config = VAL_EMPTY;
	struct image_ref ref;
	str id;
	int r = parse_ref(a, 2, &ref, err);
	if (r == 0 && a->config && (r = file_read(a->config, &b, err)) == 0 &&
	    (r = json_decode(&a->arena, buf_str(&b), &(struct json_decode_options){ 0 }, &config, err)) < 0)
		(void)err_wrap(err, r, "%s", a->config);
	if (r == 0 && (r = image_import(a->images, a->positional[1], &ref, config, &a->arena, &id, err)) == 0)
		printf(STR_FMT "\n", STR_ARG(a->quiet ? id : ref.text));
	return r;
}

static int do_inspect(struct image_args *a, struct err *err)
{
	struct val_builder b = val_builder(&a->arena);
	for (int i = 1; i < a->n; i++) {
		struct image image;
		int r = image_find(a->images, str_of(a->positional[i]), &a->arena, &image, err);
		if (r < 0)
			return r;
		val_add_item(&b, image_val(&a->arena, &image));
	}
	return print_json(val_end_list(&b), err);
}

static const struct action {
	const char *name, *arguments;
	int min, max;
	int (*run)(struct image_args *a, struct err *err);
} actions[] = {
	{ "pull", "NAME", 1, 1, do_pull },
	{ "push", "NAME [TARGET]", 1, 2, do_push },
	{ "load", "[FILE|FOLDER]", 0, 1, do_load },
	{ "save", "NAME...", 1, ARGUMENTS_MAX - 1, do_save },
	{ "ls", "no arguments", 0, 0, do_ls },
	{ "rm", "NAME...", 1, ARGUMENTS_MAX - 1, do_rm },
	{ "import", "FILE NAME", 2, 2, do_import },
	{ "inspect", "NAME...", 1, ARGUMENTS_MAX - 1, do_inspect },
	{ "pin", "NAME...", 1, ARGUMENTS_MAX - 1, do_pin },
	{ "unpin", "NAME...", 1, ARGUMENTS_MAX - 1, do_unpin },
	{ "prune", "no arguments", 0, 0, do_prune },
};

/* ---- the command ---- */

struct call {
	struct image_args *args;
	const struct action *action;
	struct err *err;
};

/* Where docker login leaves what it was told. */
static const char *default_auth_file(struct arena *a)
{
	const char *folder = getenv("DOCKER_CONFIG"), *home = getenv("HOME");
	if (folder && *folder)
		return arena_printf(a, "%s/config.json", folder).p;
	return arena_printf(a, "%s/.docker/config.json", home ? home : "/root").p;
}

static int run_action(void *arg)
{
	struct call *c = arg;
	struct image_args *a = c->args;
	const char *files[] = { a->auth_file ? a->auth_file : default_auth_file(&a->arena), NULL };
	struct images_options o = { .root = arena_printf(&a->arena, "%s/images", a->root).p, .registry_config = a->hosts_dir,
				    .credential_files = files, .plain_http = a->plain_http };
	int r = images_open(&o, &a->images, c->err);
	if (r < 0)
		return r;
	r = c->action->run(a, c->err);
	images_free(a->images);
	return r;
}

enum { OPT_ROOT, OPT_CREDS, OPT_PLAIN_HTTP, OPT_HOSTS_DIR, OPT_AUTH_FILE, OPT_OUTPUT, OPT_FORMAT, OPT_CONFIG, OPT_QUIET };

static const struct option_spec specs[] = {
	[OPT_ROOT] = { 0, "root", OPTION_VALUE },
	[OPT_CREDS] = { 0, "creds", OPTION_VALUE },
	[OPT_PLAIN_HTTP] = { 0, "plain-http", OPTION_ALONE },
	[OPT_HOSTS_DIR] = { 0, "hosts-dir", OPTION_VALUE },
	[OPT_AUTH_FILE] = { 0, "authfile", OPTION_VALUE },
	[OPT_OUTPUT] = { 'o', "output", OPTION_VALUE },
	[OPT_FORMAT] = { 0, "format", OPTION_VALUE },
	[OPT_CONFIG] = { 0, "config", OPTION_VALUE },
	[OPT_QUIET] = { 'q', "quiet", OPTION_ALONE },
	{ 0, NULL, OPTION_ALONE },
};

static int take_option(struct image_args *a, int found, const char *value)
{
	switch (found) {
	case OPT_ROOT: a->root = value; break;
	case OPT_CREDS: a->creds = value; break;
	case OPT_PLAIN_HTTP: a->plain_http = true; break;
	case OPT_HOSTS_DIR: a->hosts_dir = value; break;
	case OPT_AUTH_FILE: a->auth_file = value; break;
	case OPT_OUTPUT: a->output = value; break;
	case OPT_FORMAT:
		if (strcmp(value, "docker") != 0 && strcmp(value, "oci") != 0)
			return cmd_usage(&cmd_image, "'%s' is not a format; give docker or oci", value);
		a->format = value;
		break;
	case OPT_CONFIG: a->config = value; break;
	case OPT_QUIET: a->quiet = true; break;
	case OPTION_ARGUMENT:
		if (a->n == ARGUMENTS_MAX)
			return cmd_usage(&cmd_image, "too many arguments");
		a->positional[a->n++] = value;
		break;
	default: return 2;
	}
	return 0;
}

static int run_in_loop(struct image_args *a, const struct action *action)
{
	CLEANUP(loop_freep) struct loop *loop = NULL;
	struct err err = ERR_INIT;
	struct call call = { a, action, &err };
	int r = loop_new("image", &loop, &err);
	if (r == 0)
		r = loop_run(loop, run_action, &call, &err);
	return r < 0 ? cmd_fail(&cmd_image, &err) : 0;
}

static int run_args(struct image_args *a, int argc, char **argv)
{
	struct options o = { &cmd_image, argc, argv, 0, NULL };
	int found, r;
	while ((found = options_next(&o, specs)) != OPTION_END)
		if ((r = take_option(a, found, o.value)) != 0)
			return r;
	if (!a->n)
		return cmd_usage(&cmd_image, "give pull, push, load, save, ls, rm, import, inspect, pin, unpin or prune");
	for (size_t i = 0; i < ARRAY_LEN(actions); i++) {
		const struct action *action = &actions[i];
		if (strcmp(a->positional[0], action->name) != 0)
			continue;
		a->json = a->output && strcmp(a->output, "json") == 0;
		if (a->n - 1 < action->min || a->n - 1 > action->max)
			return cmd_usage(&cmd_image, "%s needs %s", action->name, action->arguments);
		if (action->run == do_ls && a->output && !a->json)
			return cmd_usage(&cmd_image, "ls has no output '%s'; give json", a->output);
		return run_in_loop(a, action);
	}
	return cmd_usage(&cmd_image, "there is no '%s'; give pull, push, load, save, ls, rm, import, inspect, pin, unpin or prune",
			 a->positional[0]);
}

static int run(int argc, char **argv)
{
	struct image_args *a = mem_zalloc(sizeof(*a));
	a->root = ROOT_DEFAULT;
	int r = run_args(a, argc, argv);
	arena_done(&a->arena);
	free(a);
	return r;
}

const struct command cmd_image = {
	.name = "image",
	.summary = "pull, push, load, save and remove images",
	.manual =
		"Usage: c8s image pull NAME\n"
		"       c8s image push NAME [TARGET]\n"
		"       c8s image load [FILE|FOLDER]\n"
		"       c8s image save NAME... [-o FILE|FOLDER] [--format docker|oci]\n"
		"       c8s image import FILE NAME [--config FILE]\n"
		"       c8s image ls [-q | -o json]\n"
		"       c8s image inspect NAME...\n"
		"       c8s image rm NAME...\n"
		"       c8s image pin NAME...\n"
		"       c8s image unpin NAME...\n"
		"       c8s image prune\n"
		"\n"
		"Works on the images of the runtime, whether that runs or not. An image is given by its name, its digest, its id or the\n"
		"beginning of its id; 'nginx' is docker.io/library/nginx:latest.\n"
		"\n"
		"  pull      fetches an image from its registry; what an interrupted pull has fetched is not fetched again\n"
		"  push      sends an image to the registry in its name, or in that of TARGET\n"
		"  load      takes images from an archive of docker save or an OCI layout (tar, also compressed; or a folder); without\n"
		"            FILE from standard input\n"
		"  save      writes images to an archive that docker load and OCI tools read; without -o to standard output\n"
		"  import    makes an image of the tar of a root file system; --config is a file with an OCI image configuration\n"
		"  ls        lists images; -q: their ids\n"
		"  inspect   shows all that is known of images, as JSON\n"
		"  rm        removes images, and what only they needed; of an image with several tags, that tag\n"
		"  pin       keeps images from being removed to make room; unpin: no longer\n"
		"  prune     removes images without a name that are not pinned, and content that belongs to no image\n"
		"\n"
		"      --root DIR          root of the runtime (default " ROOT_DEFAULT ")\n"
		"      --creds USER:PASS   credentials for the registry\n"
		"      --authfile FILE     credentials as docker login leaves them (default ~/.docker/config.json)\n"
		"      --hosts-dir DIR     mirrors and certificates of registries: DIR/HOST/hosts.toml, as containerd has them\n"
		"      --plain-http        speak to the registry without TLS\n"
		"  -q, --quiet             no progress; only ids\n"
		"\n"
		"Registries are reached through the proxies that HTTP_PROXY and HTTPS_PROXY name, but for those in NO_PROXY.\n"
		"\n"
		"Exit code: 0 success, 1 failure, 2 wrong usage.\n"
		"\n"
		"Examples:\n"
		"  c8s image pull registry.k8s.io/pause:3.10\n"
		"  c8s image save nginx redis -o images.tar\n"
		"  docker save app:1 | c8s image load\n",
	.run = run,
};
