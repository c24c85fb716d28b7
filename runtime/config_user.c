/*
 * Who a container runs as. Names are looked up in the image's own /etc/passwd and /etc/group, which are opened inside the image's
 * tree and nowhere else, and may be anything: bounded, and lines that make no sense are skipped.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "codec/atoms.h"
#include "runtime/config_json.h"

enum { FILE_MAX = 4 << 20, GROUPS_MAX = 65536, ID_MAX = INT32_MAX };

/* ---- files of the image ---- */

/* Its content, in the arena; empty when there is none, or it is no file. */
static int read_file(int root, const char *path, struct arena *a, str *ret, struct err *err)
{
	struct stat st;
	int fd = path_open(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, err);

	*ret = STR_NONE;
	if (fd < 0)
		return fd == -ERR_NOT_FOUND ? 0 : fd;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > FILE_MAX) {
		(void)close(fd);
		return err_set(err, ERR_INVALID, "%s of the image is no file, or too large", path);
	}
	char *p = arena_alloc(a, (size_t)st.st_size + 1, 1);
	size_t n = 0;
	ssize_t got;
	while (n < (size_t)st.st_size && (got = read(fd, p + n, (size_t)st.st_size - n)) > 0)
		n += (size_t)got;
	(void)close(fd);
	*ret = str_span(p, n);
	return 0;
}

/* Up to max fields of a line, divided by ':'. */
static size_t fields_of(str line, str *ret, size_t max)
{
	size_t n = 0;
	bool more = true;

	while (more && n < max)
		more = str_cut(line, ':', &ret[n++], &line);
	return n;
}

static bool next_line(str *text, str *ret)
{
	if (!text->n)
		return false;
	(void)str_cut(*text, '\n', ret, text);
	return true;
}

static bool id_parse(str text, uint32_t *ret)
{
	int64_t n;

	if (!str_to_i64(text, &n) || n < 0 || n > ID_MAX)
		return false;
	*ret = (uint32_t)n;
	return true;
}

struct passwd_entry {
	str name;
	uint32_t uid, gid;
};

/* By name, or (name empty) by uid. */
static bool passwd_find(str passwd, str name, uint32_t uid, struct passwd_entry *ret)
{
	str line, f[4];

	while (next_line(&passwd, &line)) {
		struct passwd_entry e;
		if (fields_of(line, f, 4) < 4 || !id_parse(f[2], &e.uid) || !id_parse(f[3], &e.gid))
			continue;
		e.name = f[0];
		if (name.n ? str_eq(name, e.name) : uid == e.uid) {
			*ret = e;
			return true;
		}
	}
	return false;
}

static bool group_find(str group, str name, uint32_t *ret_gid)
{
	str line, f[3];

	while (next_line(&group, &line))
		if (fields_of(line, f, 3) == 3 && str_eq(f[0], name) && id_parse(f[2], ret_gid))
			return true;
	return false;
}

static bool has_member(str members, str name)
{
	str one;

	while (members.n) {
		(void)str_cut(members, ',', &one, &members);
		if (str_eq(str_trim(one), name))
			return true;
	}
	return false;
}

/* ---- the user ---- */

struct lookup {
	str passwd, group;
	struct arena *arena;
};

/* "user", "user:group"; both may be numbers. What is given by number alone takes its group from the image, or 0. */
static int find_user(const struct lookup *l, str text, struct config_user *ret, struct err *err)
{
	str user, group;
	bool has_group = str_cut(text, ':', &user, &group);
	struct passwd_entry e;
	int64_t n;

	if (str_to_i64(user, &n)) {
		if (n < 0 || n > ID_MAX)
			return err_set(err, ERR_INTERNAL, "invalid USER value \"" STR_FMT "\": uid out of range", STR_ARG(text));
		ret->uid = (uint32_t)n;
		ret->gid = !has_group && passwd_find(l->passwd, STR_NONE, ret->uid, &e) ? e.gid : 0;
	} else if (passwd_find(l->passwd, user, 0, &e)) {
		ret->uid = e.uid;
		ret->gid = e.gid;
	} else {
		return err_set(err, ERR_INTERNAL, "unable to find user " STR_FMT ": no matching entries in passwd file", STR_ARG(user));
	}
	if (!has_group)
		return 0;
	if (str_to_i64(group, &n)) {
		if (n < 0 || n > ID_MAX)
			return err_set(err, ERR_INTERNAL, "invalid USER value \"" STR_FMT "\": gid out of range", STR_ARG(text));
		ret->gid = (uint32_t)n;
		return 0;
	}
	if (!group_find(l->group, group, &ret->gid))
		return err_set(err, ERR_INTERNAL, "unable to find group " STR_FMT ": no matching entries in group file", STR_ARG(group));
	return 0;
}

static int user_text(struct val security, str image_user, struct arena *a, str *ret, struct err *err)
{
	str name = val_str(security, runAsUsername);
	bool has_user = val_has(security, runAsUser), has_group = val_has(security, runAsGroup);
	long long group = val_int(security, runAsGroup, value);

	if (!name.n && has_user)
		name = arena_printf(a, "%lld", (long long)val_int(security, runAsUser, value));
	if (!name.n && has_group)
		return err_set(err, ERR_INTERNAL, "failed to generate user string: user group \"%lld\" is specified without user", group);
	*ret = !name.n ? image_user : has_group ? arena_printf(a, STR_FMT ":%lld", STR_ARG(name), group) : name;
	return 0;
}

/* ---- groups ---- */

static int compare_ids(const void *x, const void *y)
{
	uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

	return (a > b) - (a < b);
}

/* Those that the image's /etc/group has for the user, by its name there; not the one that /etc/passwd says, which is the first or none. */
static size_t image_groups(const struct lookup *l, str text, uint32_t uid, uint32_t *ret, size_t max)
{
	str user, rest, line, group = l->group, f[4];
	struct passwd_entry e = { 0 };
	int64_t ignored;
	size_t n = 0;

	(void)str_cut(text, ':', &user, &rest);
	(void)passwd_find(l->passwd, str_to_i64(user, &ignored) ? STR_NONE : user, uid, &e);
	while (e.name.n && n < max && next_line(&group, &line)) {
		uint32_t gid;
		if (fields_of(line, f, 4) == 4 && id_parse(f[2], &gid) && !str_eq(f[0], e.name) && has_member(f[3], e.name))
			ret[n++] = gid;
	}
	return n;
}

static void find_groups(const struct lookup *l, struct val security, str text, struct config_user *u)
{
	struct val wanted = val_get(security, supplementalGroups);
	size_t n = 0, max = GROUPS_MAX;
	uint32_t *all = ARENA_ARRAY(l->arena, uint32_t, max + val_len(wanted) + 1);

	/* The kernel has a maximum of its own, which is the same. */
	if (!runtime_is(val_get(security, supplementalGroupsPolicy), "Strict"))
		n = image_groups(l, text.n ? text : STR("0"), u->uid, all, max - 1);
	VAL_EACH(g, wanted)
		all[n++] = (uint32_t)val_as_int(*g);
	all[n++] = u->gid; /* the primary one is among them, as containerd has it */
	qsort(all, n, sizeof *all, compare_ids);
	size_t unique = 0;
	for (size_t i = 0; i < n; i++)
		if (!unique || all[unique - 1] != all[i])
			all[unique++] = all[i];
	u->groups = all;
	u->n_groups = unique;
}

int config_user_find(int root, struct val security, str image_user, struct arena *a, struct config_user *ret, struct err *err)
{
	struct lookup l = { .arena = a };
	str text = STR_NONE;
	int r = user_text(security, image_user, a, &text, err);

	*ret = (struct config_user){ 0 };
	if (r < 0 || (r = read_file(root, "/etc/passwd", a, &l.passwd, err)) < 0 ||
	    (r = read_file(root, "/etc/group", a, &l.group, err)) < 0)
		return r;
	if (text.n && (r = find_user(&l, text, ret, err)) < 0)
		return r;
	find_groups(&l, security, text, ret);
	return 0;
}

struct val config_user_json(struct arena *a, const struct config_user *u)
{
	struct val_builder groups = val_builder(a);

	for (size_t i = 0; i < u->n_groups; i++)
		val_add_item(&groups, val_of_int(u->groups[i]));
	return OBJECT(a, F(uid, val_of_int(u->uid)), F(gid, val_of_int(u->gid)), F(additionalGids, val_end_list(&groups)));
}
