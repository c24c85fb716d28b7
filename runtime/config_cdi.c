/*
 * CDI: devices that a vendor describes in files of the node (https://github.com/cncf-tags/container-device-interface), by name:
 * "vendor.com/class=device". A description is a list of edits of config.json: variables, device nodes, mounts, hooks, groups; those
 * of the file as a whole come first and once, then those of each device. Files are read when a container asks: what a vendor's
 * service has just written counts.
 *
 * A device of a later folder takes the place of one of that name in an earlier one; twice in one folder it is nobody's. A file
 * that cannot be read hides its devices and no others.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/file.h"
#include "base/log.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "codec/yaml.h"
#include "runtime/config_json.h"

enum { SPEC_MAX = 4 << 20, SPECS_MAX = 4096, DEVICES_MAX = 1024, EDITS_MAX = 4096, PERMISSIONS_MAX = 3 };

/* One file. */
struct spec {
	struct val root;
	const char *path;
	size_t folder;                   /* later ones win */
	bool used;                       /* its own edits were made */
};

struct cdi {
	struct arena *arena;
	struct spec *specs;
	size_t n, cap;
	size_t edits;                    /* of one container; each copies a list */
};

/* ---- reading ---- */

static bool version_is_known(str v)
{
	static const char *const known[] = { "0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0" };

	if (v.n && v.p[0] == 'v')
		v = str_skip(v, 1);
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (str_eq(v, str_of(known[i])))
			return true;
	return false;
}

static int read_spec(struct arena *a, const char *path, struct val *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(SPEC_MAX), json = BUF_INIT(4 * SPEC_MAX);
	struct json_decode_options free_tree = { 0 };
	str vendor, class;
	int r = file_read(path, &text, err);

	/* JSON is YAML, and files of that name are read as such */
	if (r < 0 || (r = yaml_to_json(buf_str(&text), &json, NULL, err)) < 0 ||
	    (r = json_decode(a, arena_str(a, buf_str(&json)), &free_tree, ret, err)) < 0)
		return r;
	str version = val_as_str(val_find(*ret, STR("cdiVersion")));
	if (!version_is_known(version))
		return err_set(err, ERR_INVALID, "unknown version \"" STR_FMT "\"", STR_ARG(version));
	if (!str_cut(val_str(*ret, kind), '/', &vendor, &class) || !vendor.n || !class.n)
		return err_set(err, ERR_INVALID, "\"" STR_FMT "\" is not vendor/class", STR_ARG(val_str(*ret, kind)));
	return 0;
}

static bool is_spec_name(const char *name)
{
	str s = str_of(name);

	return name[0] != '.' && (str_ends(s, STR(".json")) || str_ends(s, STR(".yaml")));
}

static void add_spec(struct cdi *c, const char *path, size_t folder)
{
	struct err err = ERR_INIT;
	struct val root;

	if (read_spec(c->arena, path, &root, &err) < 0) {
		log_warn("a CDI file is left out", KV("file", path), KV("err", &err));
		return;
	}
	if (c->n == c->cap) {
		struct spec *more = ARENA_ARRAY(c->arena, struct spec, (c->cap = MAX(2 * c->cap, (size_t)16)));
		if (c->n)
			memcpy(more, c->specs, c->n * sizeof *more);
		c->specs = more;
	}
	c->specs[c->n++] = (struct spec){ root, path, folder, false };
}

static void read_folder(struct cdi *c, const char *path, size_t folder)
{
	DIR *dir = opendir(path);
	struct dirent *e;

	if (!dir && errno != ENOENT)
		log_warn("CDI files cannot be read", KV("folder", path), KV("errno", (int64_t)errno));
	while (dir && c->n < SPECS_MAX && (e = readdir(dir)))
		if (is_spec_name(e->d_name))
			add_spec(c, runtime_text(c->arena, "%s/%s", path, e->d_name), folder);
	if (dir)
		(void)closedir(dir);
}

/* ---- finding ---- */

static struct val device_in(const struct spec *s, str kind, str name)
{
	if (str_eq(val_str(s->root, kind), kind))
		VAL_EACH(d, val_get(s->root, devices))
			if (str_eq(val_str(*d, name), name))
				return *d;
	return VAL_EMPTY;
}

static int find(struct cdi *c, str qualified, struct spec **ret_spec, struct val *ret_device, struct err *err)
{
	struct spec *found = NULL, *other = NULL;
	str kind, name;

	(void)str_cut(qualified, '=', &kind, &name);
	for (size_t i = 0; i < c->n; i++) {
		struct spec *s = &c->specs[i];
		struct val d = device_in(s, kind, name);
		if (val_is_nil(d) || (found && s->folder < found->folder))
			continue;
		other = found && s->folder == found->folder ? found : NULL;
		found = s;
		*ret_device = d;
	}
	if (other)
		return err_set(err, ERR_INTERNAL, "CDI device injection failed: conflicting device \"" STR_FMT "\" (specs \"%s\", \"%s\")",
			       STR_ARG(qualified), other->path, found->path);
	if (!found)
		return err_set(err, ERR_INTERNAL, "CDI device injection failed: unresolvable CDI devices " STR_FMT, STR_ARG(qualified));
	*ret_spec = found;
	return 0;
}

/* ---- edits ---- */

/* The list without those whose text at the key is the same, and with this one. */
static struct val replace(struct arena *a, struct val list, atom key, struct val item)
{
	struct val_builder b = val_builder(a);
	str text = val_as_str(val_member(item, key));

	VAL_EACH(old, list)
		if (!str_eq(val_as_str(val_member(*old, key)), text))
			val_add_item(&b, *old);
	val_add_item(&b, item);
	return val_end_list(&b);
}

static struct val add(struct arena *a, struct val list, struct val item)
{
	struct val_builder b = val_builder(a);

	VAL_EACH(old, list)
		val_add_item(&b, *old);
	val_add_item(&b, item);
	return val_end_list(&b);
}

static struct val edit_env(struct arena *a, struct val config, str text)
{
	struct val_builder b = val_builder(a);
	ptrdiff_t eq = str_chr(text, '=');
	str name = str_head(text, eq < 0 ? text.n : (size_t)eq + 1);

	VAL_EACH(old, val_get(config, process, env))
		if (!str_starts(val_as_str(*old), name))
			val_add_item(&b, *old);
	val_add_item(&b, VAL_STR(text));
	return val_with(a, config, val_end_list(&b), process, env);
}

static bool permissions_are_good(str p)
{
	for (size_t i = 0; i < p.n; i++)
		if (!strchr("rwm", p.p[i]))
			return false;
	return p.n <= PERMISSIONS_MAX;
}

static struct val or_else(struct val v, int64_t n) { return val_is_nil(v) ? val_of_int(n) : v; }

/* Root's stay root's; else they belong to who runs. */
static struct val owner(struct val given, struct val of_process)
{
	return !val_is_nil(given) ? given : val_as_int(of_process) > 0 ? of_process : VAL_EMPTY;
}

static int edit_device(struct arena *a, struct val *config, struct val node, struct err *err)
{
	str path = val_str(node, path), host = val_str(node, hostPath), type = val_str(node, type), access = val_str(node, permissions);
	struct val user = val_get(*config, process, user);
	struct stat st = { 0 };

	host = arena_str(a, host.n ? host : path);
	if (!path.n || path.p[0] != '/' || !permissions_are_good(access))
		return err_set(err, ERR_INVALID, "invalid device node \"" STR_FMT "\"", STR_ARG(path));
	bool known = type.n && (str_eq(type, STR("p")) || !val_is_nil(val_get(node, major)));
	bool there = stat(host.p, &st) == 0;
	if (!known && !there)
		return err_sys(err, errno, "failed to stat CDI host device \"" STR_FMT "\"", STR_ARG(host));
	if (!known && !S_ISBLK(st.st_mode) && !S_ISCHR(st.st_mode) && !S_ISFIFO(st.st_mode))
		return err_set(err, ERR_INVALID, "CDI: \"" STR_FMT "\" is not a device node", STR_ARG(host));
	if (!type.n)
		type = S_ISBLK(st.st_mode) ? STR("b") : S_ISCHR(st.st_mode) ? STR("c") : STR("p");
	struct val major = or_else(val_get(node, major), major(st.st_rdev)), minor = or_else(val_get(node, minor), minor(st.st_rdev));
	struct val mode = val_get(node, fileMode);
	struct val device = OBJECT(a, F(path, VAL_STR(path)), F(type, VAL_STR(type)), F(major, major), F(minor, minor),
				   F(fileMode, !val_is_nil(mode) ? mode : there ? val_of_int(st.st_mode & 07777) : VAL_EMPTY),
				   F(uid, owner(val_get(node, uid), val_get(user, uid))),
				   F(gid, owner(val_get(node, gid), val_get(user, gid))));
	*config = val_with(a, *config, replace(a, val_get(*config, linux, devices), A_path, device), linux, devices);
	if (str_eq(type, STR("p")))
		return 0;
	struct val rule = OBJECT(a, F(allow, val_of_bool(true)), F(type, str_eq(type, STR("b")) ? VAL_LIT("b") : VAL_LIT("c")),
				 F(major, major), F(minor, minor), F(access, access.n ? VAL_STR(access) : VAL_LIT("rwm")));
	*config = val_with(a, *config, add(a, val_get(*config, linux, resources, devices), rule), linux, resources, devices);
	return 0;
}

static int edit_mount(struct arena *a, struct val *config, struct val m, struct err *err)
{
	str from = val_str(m, hostPath), to = val_str(m, containerPath);

	if (!from.n || !to.n || to.p[0] != '/')
		return err_set(err, ERR_INVALID, "invalid mount, empty host or container path");
	struct val mount = OBJECT(a, F(destination, VAL_STR(to)), F(source, VAL_STR(from)), F(type, val_get(m, type)),
				  F(options, val_len(val_get(m, options)) ? val_get(m, options) : LIST(a, VAL_LIT("rbind"))));
	*config = val_with(a, *config, replace(a, val_get(*config, mounts), A_destination, mount), mounts);
	return 0;
}

static int edit_hook(struct arena *a, struct val *config, struct val h, struct err *err)
{
	static const struct {
		str name;
		atom key;
	} kinds[] = {
		{ STR_INIT("prestart"), A_prestart }, { STR_INIT("createRuntime"), A_createRuntime },
		{ STR_INIT("createContainer"), A_createContainer }, { STR_INIT("startContainer"), A_startContainer },
		{ STR_INIT("poststart"), A_poststart }, { STR_INIT("poststop"), A_poststop },
	};
	str name = val_as_str(val_find(h, STR("hookName")));

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (!str_eq(name, kinds[i].name))
			continue;
		struct val hook = OBJECT(a, F(path, val_get(h, path)), F(args, val_get(h, args)), F(env, val_get(h, env)),
					 F(timeout, val_get(h, timeout)));
		atom key[] = { A_hooks, kinds[i].key };
		*config = val_put_path(a, *config, key, 2, add(a, val_member(val_get(*config, hooks), kinds[i].key), hook));
		return 0;
	}
	return err_set(err, ERR_INVALID, "unknown hook name \"" STR_FMT "\"", STR_ARG(name));
}

static struct val edit_group(struct arena *a, struct val config, int64_t gid)
{
	struct val list = val_get(config, process, user, additionalGids);

	VAL_EACH(old, list)
		if (val_as_int(*old) == gid)
			return config;
	return gid ? val_with(a, config, add(a, list, val_of_int(gid)), process, user, additionalGids) : config;
}

static int apply(struct cdi *c, struct val *config, struct val edits, struct err *err)
{
	struct arena *a = c->arena;
	int r = 0;

	c->edits += val_len(val_get(edits, env)) + val_len(val_find(edits, STR("deviceNodes"))) + val_len(val_get(edits, mounts)) +
		    val_len(val_get(edits, hooks)) + val_len(val_get(edits, additionalGids));
	if (c->edits > EDITS_MAX)
		return err_set(err, ERR_TOO_LARGE, "CDI device injection failed: more than %d edits", EDITS_MAX);
	VAL_EACH(e, val_get(edits, env)) {
		if (str_chr(val_as_str(*e), '=') <= 0)
			return err_set(err, ERR_INVALID, "invalid environment variable \"" STR_FMT "\"", STR_ARG(val_as_str(*e)));
		*config = edit_env(a, *config, val_as_str(*e));
	}
	VAL_EACH(d, val_find(edits, STR("deviceNodes")))
		if (r == 0)
			r = edit_device(a, config, *d, err);
	VAL_EACH(m, val_get(edits, mounts))
		if (r == 0)
			r = edit_mount(a, config, *m, err);
	VAL_EACH(h, val_get(edits, hooks))
		if (r == 0)
			r = edit_hook(a, config, *h, err);
	VAL_EACH(g, val_get(edits, additionalGids))
		*config = edit_group(a, *config, val_as_int(*g));
	if (r == 0 && !val_is_nil(val_get(edits, intelRdt)))
		*config = val_with(a, *config, val_get(edits, intelRdt), linux, intelRdt);
	return r < 0 ? err_wrap(err, r, "CDI device injection failed") : 0;
}

/* ---- all ---- */

static int inject(struct cdi *c, str name, struct val *config, struct err *err)
{
	struct spec *spec = NULL;
	struct val device = VAL_EMPTY;
	int r = find(c, name, &spec, &device, err);

	if (r < 0)
		return r;
	if (!spec->used && (r = apply(c, config, val_find(spec->root, STR("containerEdits")), err)) < 0)
		return r;
	spec->used = true;
	return apply(c, config, val_find(device, STR("containerEdits")), err);
}

/* Those above before those below; else as they were. */
static struct val sort_mounts(struct arena *a, struct val mounts)
{
	enum { DEPTH_MAX = 64 };
	struct val_builder b = val_builder(a);

	for (int depth = 0; depth <= DEPTH_MAX; depth++)
		VAL_EACH(m, mounts) {
			str to = val_str(*m, destination);
			int n = 0;
			for (size_t i = 1; i < to.n; i++)
				n += to.p[i] == '/' && i + 1 < to.n;
			if (MIN(n, (int)DEPTH_MAX) == depth)
				val_add_item(&b, *m);
		}
	return val_end_list(&b);
}

int config_cdi(const struct config_input *in, struct arena *a, struct val *config, struct err *err)
{
	struct val wanted = val_get(in->config, CDIDevices);
	const char *const *dirs = in->sandbox->runtime->o.cdi_dirs;
	struct cdi c = { .arena = a };
	int r = 0;

	if (!val_len(wanted))
		return 0;
	if (val_len(wanted) > DEVICES_MAX)
		return err_set(err, ERR_TOO_LARGE, "more than %d CDI devices", DEVICES_MAX);
	for (size_t i = 0; dirs && dirs[i]; i++)
		read_folder(&c, dirs[i], i);
	for (size_t i = 0; i < val_len(wanted) && r == 0; i++) {
		str name = val_str(val_at(wanted, i), name);
		bool twice = false;
		for (size_t k = 0; k < i; k++)
			twice |= str_eq(val_str(val_at(wanted, k), name), name);
		r = twice ? 0 : inject(&c, name, config, err);
	}
	if (r == 0)
		*config = val_with(a, *config, sort_mounts(a, val_get(*config, mounts)), mounts);
	return r;
}
