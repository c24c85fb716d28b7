/* kubectl edit: an object in an editor; what was changed there is sent as a patch. */
#include "kubectl/edit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/process.h"
#include "kubectl/commands.h"
#include "kubectl/write.h"

struct edit {
	struct ktl_write_flags write;
	struct ktl_create_flags create;
	struct ktl_file_flags files;
	struct ktl_record_flags record;
	const char *output;
};

static const struct ktl_flag edit_flags[] = {
	{ "output", 'o', KTL_STRING, offsetof(struct edit, output), NULL, "json or yaml", NULL },
	{ 0 },
};

#define HEADER "# What you change here is sent to the server. Lines that begin with # do not count; an empty file changes nothing.\n#\n"

static const char *editor(void)
{
	const char *names[] = { "KUBE_EDITOR", "EDITOR" };
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (getenv(names[i]) && *getenv(names[i]))
			return getenv(names[i]);
	return "vi";
}

/* (suspends) The editor may be a line with arguments. */
static int run_editor(struct ktl *k, const char *path)
{
	const char *line = arena_printf(&k->arena, "%s \"$0\"", editor()).p;
	struct process_spec spec = { .argv = (const char *const[]){ "/bin/sh", "-c", line, path, NULL }, .fds = { 0, 1, 2 }, .n_fds = 3 };
	struct process_status status;
	struct process *p;
	struct err err = ERR_INIT;
	if (process_spawn(&spec, &p, &err) < 0)
		return ktl_fail(k, "unable to launch the editor \"%s\": %s", editor(), err.msg);
	int r = process_wait(p, &status, &err);
	process_free(p);
	if (r < 0 || status.exit_code)
		return ktl_fail(k, "there was a problem with the editor \"%s\"", editor());
	return 0;
}

/* The text as it was edited, without comments. */
static str without_comments(struct ktl *k, str text)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(KTL_TEXT_MAX);
	while (text.n) {
		ptrdiff_t end = str_chr(text, '\n');
		str line = end < 0 ? text : str_head(text, (size_t)end + 1);
		text = str_skip(text, line.n);
		if (line.p[0] != '#')
			buf_add(&b, line);
	}
	return arena_str(&k->arena, buf_str(&b));
}

/* (suspends) *ret_path is the file, which stays, when it returns 0. */
static int edit_text(struct ktl *k, str text, const char **ret_path, str *ret)
{
	char path[] = "/tmp/kubectl-edit-XXXXXX.yaml";
	struct err err = ERR_INIT;
	int fd = mkstemps(path, 5);
	if (fd < 0)
		return ktl_fail(k, "%s: %s", path, strerror(errno));
	int r = file_write_fd(fd, arena_join(&k->arena, STR(HEADER), text), -1, path, &err) < 0 ? ktl_fail_err(k, &err) : 0;
	(void)close(fd);
	if (r == 0)
		r = run_editor(k, path);
	if (r == 0 && ktl_read_file(k, path, ret, &err) < 0)
		r = ktl_fail_err(k, &err);
	if (r < 0)
		(void)unlink(path);
	*ret_path = ktl_cstr(k, str_of(path));
	return r;
}

static int parse(struct ktl *k, str text, struct val *ret)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(KTL_TEXT_MAX);
	struct err err = ERR_INIT;
	if (yaml_to_json(text, &json, NULL, &err) < 0 || ktl_parse_json(k, arena_str(&k->arena, buf_str(&json)), ret, &err) < 0)
		return ktl_fail(k, "the edited file had a syntax error: %s", err.msg);
	return 0;
}

int ktl_edit_tree(struct ktl *k, bool json, struct val shown, struct ktl_edited *ret)
{
	CLEANUP(buf_done) struct buf before = BUF_INIT(KTL_TEXT_MAX);
	struct err err = ERR_INIT;
	str after;
	int r = json ? json_encode(&before, shown, &(struct json_encode_options){ .indent = 4 }, &err) : yaml_encode(&before, shown, NULL, &err);
	if (r < 0)
		return ktl_fail_err(k, &err);
	if (edit_text(k, buf_str(&before), &ret->path, &after) < 0)
		return -1;
	after = without_comments(k, after);
	bool empty = !str_trim(after).n;
	if (!empty && !str_eq(after, buf_str(&before)))
		return parse(k, after, &ret->object) < 0 ? ktl_edit_end(ret, -1) : 1;
	(void)unlink(ret->path);
	fprintf(stderr, "Edit cancelled, %s.\n", empty ? "saved file was empty" : "no changes made");
	return 0;
}

int ktl_edit_end(const struct ktl_edited *e, int result)
{
	if (result < 0)
		fprintf(stderr, "A copy of your changes has been stored to \"%s\"\n", e->path);
	else
		(void)unlink(e->path);
	return result;
}

static int edit_one(struct ktl *k, const struct edit *o, const struct ktl_write *w, struct ktl_info *info)
{
	struct ktl_printer p = { .format = KTL_HUMAN, .dry_run = "" };
	struct val shown = val_without(&k->arena, info->object, metadata, managedFields), result;
	struct ktl_edited e;
	bool sent = false;
	int r = ktl_edit_tree(k, ktl_is(o->output, "json"), shown, &e);
	if (r <= 0)
		return r;
	if (ktl_edit_end(&e, ktl_patch_difference(k, w, info, shown, e.object, &sent, &result)) < 0)
		return -1;
	if (sent)
		return ktl_print_done(k, &p, info->kind, result, "edited");
	fprintf(stderr, "Edit cancelled, no changes made.\n");
	return 0;
}

static int run(struct ktl *k, void *options)
{
	const struct edit *o = options;
	struct ktl_builder b = { .files = &o->files, .args = k->args, .latest = true, .types_alone = true };
	struct ktl_infos infos;
	struct ktl_write w;
	if (ktl_write_init(k, &o->write, &o->create, "kubectl-edit", NULL, &w) < 0 || ktl_namespace(k, &b.namespace, &b.enforce_namespace) < 0 ||
	    ktl_build(k, &b, &infos) < 0)
		return -1;
	if (!infos.n)
		return ktl_fail(k, "edit cancelled, no objects found");
	for (size_t i = 0; i < infos.n; i++)
		if (edit_one(k, o, &w, &infos.v[i]) < 0)
			return -1;
	return 0;
}

const struct ktl_command ktl_edit = {
	.name = "edit",
	.group = "Basic Commands (Intermediate)",
	.summary = "Edit a resource on the server",
	.manual = "Opens objects in the editor that KUBE_EDITOR or EDITOR names (else vi) and sends what was changed.",
	.examples = "  kubectl edit deployment/web\n",
	.usage = "edit (RESOURCE/NAME | -f FILENAME) [options]",
	.flags = (const struct ktl_flag_set[]){
		{ edit_flags, 0 }, { ktl_file_flags, offsetof(struct edit, files) }, { ktl_write_flags, offsetof(struct edit, write) },
		{ ktl_create_flags, offsetof(struct edit, create) }, { ktl_record_flags, offsetof(struct edit, record) }, { 0 },
	},
	.size = sizeof(struct edit),
	.run = run,
};
