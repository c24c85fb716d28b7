/* Records of sandboxes and containers. File systems may be slow: all that writes is done in the thread pool. */
#include "runtime/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fiber_io.h"
#include "base/file.h"
#include "base/path.h"
#include "codec/json.h"

enum { RECORD_MAX = 32 << 20, RECORD_MODE = 0600, PATH_MAX_BYTES = 4096 };

struct write_work {
	const char *path;
	str content;
	mode_t mode;
	bool sync;
};

static int write_run(void *arg, struct err *err)
{
	struct write_work *w = arg;

	return (w->sync ? file_write : file_replace)(w->path, w->content, w->mode, err);
}

int store_write_file(const char *path, str content, unsigned mode, struct err *err)
{
	struct write_work w = { path, content, mode, false };

	return fiber_blocking(write_run, &w, err);
}

int store_write(const char *folder, const char *name, struct val record, const struct type *type, bool keep, struct err *err)
{
	CLEANUP(buf_done) struct buf content = BUF_INIT(RECORD_MAX), path = BUF_INIT(PATH_MAX_BYTES);
	struct json_encode_options o = { .type = type };
	int r = json_encode(&content, record, &o, err);

	if (r < 0)
		return r;
	buf_addc(&content, '\n');
	buf_addf(&path, "%s/%s", folder, name);
	struct write_work w = { path.p, buf_str(&content), RECORD_MODE, keep };
	return fiber_blocking(write_run, &w, err);
}

int store_read(const char *folder, const char *name, const struct type *type, struct arena *a, struct val *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf content = BUF_INIT(RECORD_MAX), path = BUF_INIT(PATH_MAX_BYTES);
	struct json_decode_options o = { .type = type };

	buf_addf(&path, "%s/%s", folder, name);
	int r = file_read(path.p, &content, err);
	if (r < 0)
		return r;
	if (json_decode(a, arena_str(a, buf_str(&content)), &o, ret, err) < 0)
		return err_wrap(err, -ERR_INVALID, "%s", path.p);
	return 0;
}

static void dir_closep(DIR **d)
{
	if (*d)
		(void)closedir(*d);
}

int store_list(const char *folder, struct arena *a, str **ret, size_t *ret_n, struct err *err)
{
	CLEANUP(dir_closep) DIR *d = opendir(folder);
	size_t n = 0, cap = 16;
	str *names = ARENA_ARRAY(a, str, cap);
	struct dirent *e;

	if (!d && errno != ENOENT)
		return err_sys(err, errno, "open %s", folder);
	while (d && (e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		if (n == cap) {
			str *more = ARENA_ARRAY(a, str, cap * 2);
			memcpy(more, names, n * sizeof *names);
			names = more;
			cap *= 2;
		}
		names[n++] = arena_str(a, str_of(e->d_name));
	}
	*ret = names;
	*ret_n = n;
	return 0;
}

struct remove_work {
	const char *folder, *name;
};

static int remove_run(void *arg, struct err *err)
{
	struct remove_work *w = arg;
	int tree = path_open_tree(w->folder, err);

	if (tree < 0)
		return tree == -ERR_NOT_FOUND ? 0 : tree;
	int r = path_remove(tree, w->name, err);
	(void)close(tree);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

int store_remove(const char *folder, const char *name, struct err *err)
{
	struct remove_work w = { folder, name };

	return fiber_blocking(remove_run, &w, err);
}
