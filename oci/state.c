#include "oci/state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/path.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "oci/oci_priv.h"

enum { STATE_MAX = 4 << 20, ID_MAX = 200 };

int state_check_id(const char *id, struct err *err)
{
	size_t n = strlen(id);
	bool ok = n > 0 && n <= ID_MAX && !str_eq(str_of(id), STR(".")) && !str_eq(str_of(id), STR(".."));

	for (size_t i = 0; i < n && ok; i++) {
		char c = id[i];
		ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("_+-.", c);
	}
	return ok ? 0 : err_set(err, ERR_BAD_REQUEST, "invalid container ID format");
}

static int lock_folder(int dir, struct err *err)
{
	while (flock(dir, LOCK_EX) < 0)
		if (errno != EINTR)
			return err_sys(err, errno, "locking the container");
	return 0;
}

int state_make(const char *root, const char *id, struct arena *a, struct state *ret, struct err *err)
{
	struct state s = { .dir = -1, .id = arena_str(a, str_of(id)), .creating = true };
	int r;

	if ((r = state_check_id(id, err)) < 0 || (r = file_make_dirs(root, 0700, err)) < 0)
		return r;
	s.folder = arena_printf(a, "%s/%s", root, id).p;
	if (mkdir(s.folder, 0700) < 0)
		return errno == EEXIST ? err_set(err, ERR_ALREADY_EXISTS, "container with given ID already exists") :
					 err_sys(err, errno, "%s", s.folder);
	s.dir = open(s.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s.dir < 0)
		return err_sys(err, errno, "%s", s.folder);
	if ((r = lock_folder(s.dir, err)) < 0) {
		close(s.dir);
		return r;
	}
	*ret = s;
	return 0;
}

void state_close(struct state *s)
{
	fd_closep(&s->dir);
}

int state_decode(str text, struct arena *a, struct state *s, struct err *err)
{
	struct val v;
	int r = json_decode(a, arena_str(a, text), &(struct json_decode_options){ 0 }, &v, err);

	if (r < 0)
		return r;
	s->version = val_str(v, ociVersion);
	s->bundle = arena_str(a, val_str(v, bundle));
	s->rootfs = val_str(v, rootfs);
	s->created = val_str(v, created);
	s->cgroup = arena_str(a, val_str(v, cgroupsPath));
	s->pid = (pid_t)val_int(v, pid);
	s->start_time = (uint64_t)val_int(v, startTime);
	s->creating = val_bool(v, creating);
	s->own_pids = val_bool(v, ownPids);
	s->annotations = val_get(v, annotations);
	return 0;
}

static int read_json(struct state *s, struct arena *a, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(STATE_MAX);
	int r = file_read(arena_printf(a, "%s/state.json", s->folder).p, &text, err);

	if (r == -ERR_NOT_FOUND)
		return err_set(err, ERR_NOT_FOUND, "container does not exist");
	if (r < 0)
		return r;
	r = state_decode(buf_str(&text), a, s, err);
	return r < 0 ? err_wrap(err, r, "%s/state.json", s->folder) : 0;
}

int state_open(const char *root, const char *id, bool lock, struct arena *a, struct state *ret, struct err *err)
{
	struct state s = { .dir = -1 };
	int r;

	if ((r = state_check_id(id, err)) < 0)
		return r;
	s.id = arena_str(a, str_of(id));
	s.folder = arena_printf(a, "%s/%s", root, id).p;
	s.dir = open(s.folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s.dir < 0)
		return errno == ENOENT ? err_set(err, ERR_NOT_FOUND, "container does not exist") : err_sys(err, errno, "%s", s.folder);
	if ((lock && (r = lock_folder(s.dir, err)) < 0) || (r = read_json(&s, a, err)) < 0) {
		close(s.dir);
		return r;
	}
	*ret = s;
	return 0;
}

int state_save(const struct state *s, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf text = BUF_INIT(STATE_MAX);
	struct val v = OBJECT(&a, F(ociVersion, VAL_STR(s->version)), F(id, VAL_STR(s->id)), F(pid, val_of_int(s->pid)),
			      F(startTime, val_of_int((int64_t)s->start_time)), F(bundle, VAL_STR(s->bundle)), F(rootfs, VAL_STR(s->rootfs)),
			      F(created, VAL_STR(s->created)), F(cgroupsPath, VAL_STR(s->cgroup)), F(creating, val_of_bool(s->creating)),
			      F(ownPids, val_of_bool(s->own_pids)), F(annotations, s->annotations));
	int r = json_encode(&text, v, &(struct json_encode_options){ .plain = true }, err);

	return r < 0 ? r : file_replace(arena_printf(&a, "%s/state.json", s->folder).p, buf_str(&text), 0600, err);
}

int state_remove(const char *root, struct state *s, struct err *err)
{
	CLEANUP(fd_closep) int tree = path_open_tree(root, err);
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	if (tree < 0)
		return tree;
	/* First the file that makes it a container, for those who wait for the lock. */
	(void)unlinkat(s->dir, "state.json", 0);
	return path_remove(tree, arena_str(&a, s->id).p, err);
}

/* ---- the process ---- */

uint64_t state_start_time(pid_t pid)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(4096);
	char path[32];
	int64_t ticks = 0;

	if (pid <= 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (file_read(path, &text, NULL) < 0)
		return 0;
	/* The name in parentheses may hold anything; behind it: state, and 18 numbers up to the 22nd field. */
	str rest = str_skip(buf_str(&text), (size_t)(str_rchr(buf_str(&text), ')') + 2)), field;
	for (int i = 3; i <= 22; i++) {
		str_cut(rest, ' ', &field, &rest);
		if (i == 3 && (str_eq(field, STR("Z")) || str_eq(field, STR("X"))))
			return 0;
	}
	return str_to_i64(field, &ticks) ? (uint64_t)ticks : 0;
}

enum oci_status state_status(const struct state *s)
{
	if (s->creating && !s->pid)
		return OCI_CREATING;
	if (!s->pid || state_start_time(s->pid) != s->start_time)
		return OCI_STOPPED;
	if (s->creating)
		return OCI_CREATING;
	if (faccessat(s->dir, "start.sock", F_OK, 0) == 0)
		return OCI_CREATED;
	return faccessat(s->dir, "paused", F_OK, 0) == 0 ? OCI_PAUSED : OCI_RUNNING;
}

const char *state_status_name(enum oci_status status)
{
	static const char *const names[] = {
		[OCI_CREATING] = "creating", [OCI_CREATED] = "created", [OCI_RUNNING] = "running", [OCI_STOPPED] = "stopped",
		[OCI_PAUSED] = "paused",
	};
	return names[status];
}

int state_pidfd(const struct state *s, struct err *err)
{
	int fd = s->pid > 0 ? pidfd_open(s->pid, 0) : -1;

	/* Looked at once the descriptor is ours: from then on the process cannot become another. */
	if (fd >= 0 && state_start_time(s->pid) == s->start_time)
		return fd;
	fd_closep(&fd);
	return err_set(err, ERR_CONFLICT, "container not running");
}

struct val state_public(struct arena *a, const struct state *s, enum oci_status status, pid_t pid)
{
	return OBJECT(a, F(ociVersion, VAL_STR(s->version)), F(id, VAL_STR(s->id)), F(status, VAL_STR(str_of(state_status_name(status)))),
		      F(pid, pid > 0 ? val_of_int(pid) : VAL_EMPTY), F(bundle, VAL_STR(s->bundle)),
		      F(annotations, val_len(s->annotations) ? s->annotations : VAL_EMPTY));
}

void state_text(struct buf *b, const struct state *s, enum oci_status status, pid_t pid)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	(void)json_encode(b, state_public(&a, s, status, pid), &(struct json_encode_options){ .plain = true }, NULL);
}
