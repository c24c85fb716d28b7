/* Files: finding, reading, merging and writing them. */
#include "client/kubeconfig.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fiber.h"
#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/path.h"
#include "client/kubeconfig_priv.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"

/* ---- which files ---- */

static str home_file(struct arena *a)
{
	const char *home = getenv("HOME");
	return home && *home ? arena_printf(a, "%s/.kube/config", home) : STR(".kube/config");
}

/* Those to look at, each once, the first first. */
static struct val files_of(struct arena *a, const char *path)
{
	struct val_builder b = val_builder(a);
	const char *named = getenv("KUBECONFIG");
	if (path && *path)
		return LIST(a, val_of_str(arena_str(a, str_of(path))));
	if (!named || !*named)
		return LIST(a, val_of_str(home_file(a)));
	str rest = arena_str(a, str_of(named)), one;
	while (rest.n) {
		(void)str_cut(rest, ':', &one, &rest);
		bool seen = !one.n;
		for (uint32_t i = 0; i < b.n && !seen; i++)
			seen = str_eq(val_as_str(((const struct val *)b.room)[i]), one);
		if (!seen)
			val_add_item(&b, val_of_str(arena_str(a, one)));
	}
	return val_end_list(&b);
}

const char *kubeconfig_main_path(struct arena *a, const char *path)
{
	struct val files = files_of(a, path);
	VAL_EACH(file, files)
		if (access(file->s, F_OK) == 0)
			return file->s;
	return val_len(files) ? val_at(files, 0).s : arena_str(a, home_file(a)).p;
}

/* ---- paths in them ---- */

static str folder_of(struct arena *a, str file)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(2 * PATH_MAX);
	CLEANUP(mem_freep) char *here = str_starts(file, STR("/")) ? NULL : getcwd(NULL, 0);
	ptrdiff_t slash = str_rchr(file, '/');
	if (here)
		buf_addf(&b, "%s/", here);
	buf_add(&b, str_head(file, slash < 0 ? 0 : (size_t)slash + 1));
	return path_clean(a, buf_str(&b));
}

static str make_absolute(struct arena *a, str folder, str path)
{
	if (!path.n || path.p[0] == '/')
		return path;
	return path_clean(a, arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(folder), STR_ARG(path)));
}

/* What lies in the folder or below it is named from there, so that the folder can be moved. */
static str make_relative(struct arena *a, str folder, str path)
{
	(void)a;
	if (folder.n > 1 && str_starts(path, folder) && path.n > folder.n + 1 && path.p[folder.n] == '/')
		return str_skip(path, folder.n + 1);
	return path;
}

typedef str path_fn(struct arena *a, str folder, str path);

static struct val edit_path(struct arena *a, struct val object, atom key, str folder, path_fn *fn)
{
	str path = val_as_str(val_member(object, key));
	return path.n ? val_put(a, object, key, val_of_str(fn(a, folder, path))) : object;
}

static struct val edit_cluster(struct arena *a, struct val cluster, str folder, path_fn *fn)
{
	return edit_path(a, cluster, A_certificate_authority, folder, fn);
}

static struct val edit_user(struct arena *a, struct val user, str folder, path_fn *fn)
{
	static const atom paths[] = { A_client_certificate, A_client_key, A_tokenFile };
	struct val exec = val_get(user, exec);
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		user = edit_path(a, user, paths[i], folder, fn);
	/* A command without a slash is looked for in PATH, and one with must keep having one. */
	str command = val_str(exec, command);
	if (str_chr(command, '/') >= 0) {
		str now = fn(a, folder, command);
		if (str_chr(now, '/') < 0)
			now = arena_join(a, STR("./"), now);
		user = val_put(a, user, A_exec, val_put(a, exec, A_command, val_of_str(now)));
	}
	return user;
}

/* fn for every item of the list, whose member `what` it edits. */
static struct val edit_list(struct arena *a, struct val list, atom what, str folder, path_fn *fn,
			    struct val (*edit)(struct arena *a, struct val v, str folder, path_fn *fn))
{
	struct val_builder b = val_builder(a);
	VAL_EACH(item, list)
		val_add_item(&b, val_put(a, *item, what, edit(a, val_member(*item, what), folder, fn)));
	return val_end_list(&b);
}

static struct val edit_paths(struct arena *a, struct val document, str folder, path_fn *fn)
{
	document = val_with(a, document, edit_list(a, val_get(document, clusters), A_cluster, folder, fn, edit_cluster), clusters);
	return val_with(a, document, edit_list(a, val_get(document, users), A_user, folder, fn, edit_user), users);
}

/* ---- reading one ---- */

/* Older versions of the interface with programs did not have to say whether they talk to their user. */
static struct val with_defaults(struct arena *a, struct val document)
{
	struct val_builder b = val_builder(a);
	VAL_EACH(item, val_get(document, users)) {
		struct val exec = val_get(*item, user, exec);
		str version = val_str(exec, apiVersion);
		bool old = str_eq(version, STR("client.authentication.k8s.io/v1beta1")) ||
			   str_eq(version, STR("client.authentication.k8s.io/v1alpha1"));
		bool set = val_exists(exec) && old && !val_str(exec, interactiveMode).n;
		val_add_item(&b, set ? val_with(a, *item, VAL_LIT("IfAvailable"), user, exec, interactiveMode) : *item);
	}
	return val_with(a, document, val_end_list(&b), users);
}

static int check_names(struct val list, const char *kind, struct err *err)
{
	CLEANUP(map_done) struct map seen = MAP_INIT;
	map_init(&seen);
	VAL_EACH(item, list)
		if (map_put(&seen, val_str(*item, name), (void *)(uintptr_t)item))
			return err_set(err, ERR_INVALID,
				       "error converting *[]Named%s into *map[string]*api.%s: duplicate name \"" STR_FMT "\" in list", kind,
				       kind, STR_ARG(str_head(val_str(*item, name), 100)));
	return 0;
}

static int decode(struct arena *a, str text, struct val *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(4 * (size_t)KUBECONFIG_MAX);
	const struct type *type = NULL;
	struct object_kind kind;
	int r = yaml_to_json(text, &json, NULL, err);
	*ret = VAL_EMPTY_OBJECT;
	if (r < 0 || str_eq(buf_str(&json), STR("null")))
		return r;
	r = json_decode_expected(a, arena_str(a, buf_str(&json)), TYPE(clientcmd_v1, Config), NULL, ret, &type, &kind, err);
	if (r < 0)
		return r;
	if (type != TYPE(clientcmd_v1, Config))
		return err_set(err, ERR_INVALID, "no kind \"" STR_FMT "\" is registered for version \"" STR_FMT "\"",
			       STR_ARG(str_head(kind.kind, 100)), STR_ARG(str_head(kind.api_version, 100)));
	if ((r = check_names(val_get(*ret, clusters), "Cluster", err)) < 0 || (r = check_names(val_get(*ret, users), "AuthInfo", err)) < 0)
		return r;
	return check_names(val_get(*ret, contexts), "Context", err);
}

int kubeconfig_decode(struct arena *a, str text, str file, struct val *ret, struct err *err)
{
	int r = decode(a, text, ret, err);
	if (r == 0)
		*ret = edit_paths(a, with_defaults(a, *ret), folder_of(a, file), make_absolute);
	return r;
}

/* -ERR_NOT_FOUND: there is none. */
static int read_file(struct arena *a, str path, struct val *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(KUBECONFIG_MAX);
	struct err why = ERR_INIT;
	int r = file_read(path.p, &text, &why);
	if (r < 0 && why.sys)
		return err_set(err, why.code, "%s " STR_FMT ": " STR_FMT, why.sys == EISDIR ? "read" : "open", STR_ARG(path),
			       STR_ARG(go_errno(a, why.sys)));
	if (r < 0)
		return err_set(err, why.code, "%s", why.msg);
	return kubeconfig_decode(a, buf_str(&text), path, ret, err);
}

const char *kubeconfig_context_path(struct arena *a, const char *path, str context)
{
	VAL_EACH(file, files_of(a, path)) {
		struct val one = VAL_EMPTY;
		if (read_file(a, val_as_str(*file), &one, NULL) < 0)
			continue;
		VAL_EACH(c, val_get(one, contexts))
			if (str_eq(val_str(*c, name), context))
				return file->s;
	}
	return kubeconfig_main_path(a, path);
}

/* ---- merging ---- */

static int by_name(const void *x, const void *y)
{
	return str_cmp(val_str(*(const struct val *)x, name), val_str(*(const struct val *)y, name));
}

static struct val sorted(struct arena *a, struct val list)
{
	struct val *items = ARENA_ARRAY(a, struct val, val_len(list));
	size_t n = 0;
	VAL_EACH(item, list)
		items[n++] = *item;
	if (n)
		qsort(items, n, sizeof(*items), by_name);
	return val_list(a, items, n);
}

/* Names that the first does not have are added. */
static struct val merge_list(struct arena *a, struct val first, struct val second)
{
	CLEANUP(map_done) struct map known = MAP_INIT;
	struct val_builder b = val_builder(a);
	map_init(&known);
	VAL_EACH(item, first) {
		val_add_item(&b, *item);
		(void)map_put(&known, val_str(*item, name), (void *)(uintptr_t)item);
	}
	VAL_EACH(item, second)
		if (!map_get(&known, val_str(*item, name)))
			val_add_item(&b, *item);
	return val_end_list(&b);
}

static struct val merge(struct arena *a, struct val first, struct val second)
{
	static const atom lists[] = { A_clusters, A_users, A_contexts, A_extensions };
	struct val out = first;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		struct val more = val_member(second, lists[i]);
		if (val_len(more))
			out = val_put(a, out, lists[i], merge_list(a, val_member(first, lists[i]), more));
	}
	if (!val_str(first, current_context).n)
		out = val_put(a, out, A_current_context, val_get(second, current_context));
	if (!val_len(val_get(first, preferences)))
		out = val_put(a, out, A_preferences, val_get(second, preferences));
	return out;
}

/* As clientcmd writes it: lists by name, and always there. */
static struct val finish(struct arena *a, struct val document)
{
	struct val extensions = sorted(a, val_get(document, extensions));
	str current = val_str(document, current_context);
	return OBJECT(a, F(kind, VAL_LIT("Config")), F(apiVersion, VAL_LIT("v1")), F(preferences, val_get(document, preferences)),
		      F(clusters, sorted(a, val_get(document, clusters))), F(users, sorted(a, val_get(document, users))),
		      F(contexts, sorted(a, val_get(document, contexts))), F(current_context, val_of_str(current)),
		      F(extensions, val_len(extensions) ? extensions : VAL_EMPTY));
}

int kubeconfig_load(struct arena *a, const char *path, struct val *ret, struct err *err)
{
	struct faults faults = faults_of(a);
	struct val all = VAL_EMPTY_OBJECT;
	struct stat st;
	if (path && *path && stat(path, &st) < 0 && errno == ENOENT)
		return err_set(err, ERR_NOT_FOUND, "stat %s: no such file or directory", path);
	VAL_EACH(file, files_of(a, path)) {
		struct err why = ERR_INIT;
		struct val one;
		int r = read_file(a, val_as_str(*file), &one, &why);
		if (r == 0)
			all = merge(a, all, one);
		else if (r != -ERR_NOT_FOUND)
			faults_add(&faults, "error loading config file \"%s\": %s", file->s, why.msg);
	}
	*ret = finish(a, all);
	return faults_fail(&faults, "", err);
}

/* ---- writing ---- */

/* (suspends) Others hold it for moments only; one that stays belongs to somebody who was killed. */
static int lock(struct arena *a, const char *name, struct err *err)
{
	enum { TRIES = 20, PAUSE_MS = 50 };
	for (int i = 0;; i++) {
		int fd = open(name, O_CREAT | O_EXCL | O_RDONLY | O_CLOEXEC, 0);
		if (fd >= 0) {
			(void)close(fd);
			return 0;
		}
		int sys = errno;
		if (sys != EEXIST || i == TRIES)
			return err_set(err, sys == EEXIST ? ERR_CONFLICT : ERR_SYSTEM, "open %s: " STR_FMT, name, STR_ARG(go_errno(a, sys)));
		int r = fiber_sleep_ms(PAUSE_MS, err);
		if (r < 0)
			return r;
	}
}

/* A link stays one: what it leads to is written. */
static const char *real_path(struct arena *a, const char *path)
{
	CLEANUP(mem_freep) char *real = realpath(path, NULL);
	return real ? arena_str(a, str_of(real)).p : path;
}

int kubeconfig_save(const char *path, struct val document, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf out = BUF_INIT(KUBECONFIG_MAX);
	str folder = folder_of(&a, str_of(path));
	int r = file_make_dirs(folder.p, 0755, err);
	if (r < 0)
		return r;
	const char *name = arena_printf(&a, "%s.lock", path).p;
	struct val typed;
	document = finish(&a, edit_paths(&a, document, folder, make_relative));
	if ((r = val_canonical(&a, document, TYPE(clientcmd_v1, Config), NULL, &typed, err)) < 0 ||
	    (r = yaml_encode(&out, typed, TYPE(clientcmd_v1, Config), err)) < 0 || (r = lock(&a, name, err)) < 0)
		return r;
	r = file_write(real_path(&a, path), buf_str(&out), 0600, err);
	(void)unlink(name);
	return r;
}
