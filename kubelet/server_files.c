/*
 * /logs/: the files below /var/log, and lists of folders, as Go's file server shows them. Unlike there no link leads out of the folder:
 * pods that may write to it could otherwise have any file of the node read to them.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fiber_io.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/path.h"
#include "kubelet/server_priv.h"

enum { BLOCK = 32 << 10, LIST_MAX = 16 << 20, ENTRIES_MAX = 100000 };

/* ---- a file ---- */

struct block {
	int fd;
	char bytes[BLOCK];
};

static int read_blocking(void *arg, struct err *err)
{
	struct block *b = arg;
	ssize_t n;

	do
		n = read(b->fd, b->bytes, BLOCK);
	while (n < 0 && errno == EINTR);
	return n < 0 ? err_sys(err, errno, "failed to read a file") : (int)n;
}

/* (suspends) As much as there was at the beginning: a log that grows has an end, too. */
static int send_file(struct kubelet_call *c, int fd, int64_t size)
{
	CLEANUP(mem_freep) struct block *b = mem_alloc(sizeof *b);
	struct pump *p = pump_begin(c->x, STR("text/plain; charset=utf-8"));
	int n = 0;

	b->fd = fd;
	while (size > 0 && (n = fiber_blocking(read_blocking, b, NULL)) > 0) {
		str piece = str_head(str_span(b->bytes, (size_t)n), (size_t)size);
		if (pump_write(p, piece, NULL) < 0)
			break;
		size -= (int64_t)piece.n;
	}
	pump_end(p);
	return 0;
}

/* ---- a folder ---- */

static void add_html(struct buf *b, str text)
{
	static const struct {
		char c;
		const char *as;
	} escapes[] = { { '&', "&amp;" }, { '<', "&lt;" }, { '>', "&gt;" }, { '"', "&#34;" }, { '\'', "&#39;" } };

	for (size_t i = 0; i < text.n; i++) {
		const char *as = NULL;
		for (size_t j = 0; j < ARRAY_LEN(escapes); j++)
			if (text.p[i] == escapes[j].c)
				as = escapes[j].as;
		if (as)
			buf_add(b, str_of(as));
		else
			buf_addc(b, text.p[i]);
	}
}

struct entries {
	int fd;
	struct arena *arena;
	struct entry {
		str name;
		bool is_folder;
	} *all;
	size_t n;
};

static int entry_cmp(const void *x, const void *y) { return str_cmp(((const struct entry *)x)->name, ((const struct entry *)y)->name); }

static void add_entry(struct buf *b, const struct entry *e)
{
	str slash = e->is_folder ? STR("/") : STR_NONE;

	buf_add(b, STR("<a href=\""));
	url_path_escape(b, e->name);
	buf_add(b, slash);
	buf_add(b, STR("\">"));
	add_html(b, e->name);
	buf_add(b, slash);
	buf_add(b, STR("</a>\n"));
}

/* In a thread. */
static int read_folder(void *arg, struct err *err)
{
	struct entries *l = arg;
	int again = openat(l->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = again < 0 ? NULL : fdopendir(again);
	struct dirent *e;

	if (!dir && again >= 0)
		close(again);
	if (!dir)
		return err_sys(err, errno, "failed to open a folder");
	l->all = ARENA_ARRAY(l->arena, struct entry, ENTRIES_MAX);
	while ((e = readdir(dir)) && l->n < ENTRIES_MAX)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			l->all[l->n++] = (struct entry){ arena_str(l->arena, str_of(e->d_name)), e->d_type == DT_DIR };
	closedir(dir);
	if (e)
		return err_set(err, ERR_TOO_LARGE, "the folder has more than %d entries", ENTRIES_MAX);
	qsort(l->all, l->n, sizeof(*l->all), entry_cmp);
	return 0;
}

/* (suspends) */
static int send_list(struct kubelet_call *c, int fd)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf b = BUF_INIT(LIST_MAX);
	struct entries l = { .fd = fd, .arena = &a };
	int r = fiber_blocking(read_folder, &l, NULL);

	buf_add(&b, STR("<!doctype html>\n<meta name=\"viewport\" content=\"width=device-width\">\n<pre>\n"));
	for (size_t i = 0; i < l.n && r >= 0; i++)
		add_entry(&b, &l.all[i]);
	buf_add(&b, STR("</pre>\n"));
	if (r < 0 || b.overflow)
		call_http_error(c, 500, STR("Error reading directory"));
	else
		call_answer(c, 200, STR("text/html; charset=utf-8"), buf_str(&b));
	return 0;
}

/* Lists have links that only work below a name with a slash at its end. */
static int redirect(struct kubelet_call *c)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(64 << 10);
	ptrdiff_t at = str_rchr(c->path, '/');

	url_path_escape(&b, str_skip(c->path, (size_t)at + 1));
	buf_addc(&b, '/');
	struct http_header header = { STR("location"), buf_str(&b) };
	http_answer(c->x, 301, &header, 1, STR_NONE);
	return 0;
}

/* ---- either ---- */

static int open_failed(struct kubelet_call *c, int r)
{
	call_http_error(c, r == -ERR_NOT_FOUND ? 404 : r == -ERR_FORBIDDEN ? 403 : 500,
			r == -ERR_NOT_FOUND ? STR("404 page not found") :
			r == -ERR_FORBIDDEN ? STR("403 Forbidden") : STR("500 Internal Server Error"));
	return 0;
}

int call_files(struct kubelet_call *c)
{
	str name = arena_str(c->arena, str_skip(c->path, (size_t)str_find(c->path, STR("logs")) + sizeof("logs")));
	CLEANUP(fd_closep) int tree = -1;
	CLEANUP(fd_closep) int fd = -1;
	struct stat s;

	if (!c->o->system_logs) {
		call_http_error(c, 405, STR("logs endpoint is disabled."));
		return 0;
	}
	if (str_chr(name, '\0') >= 0)
		return open_failed(c, -ERR_NOT_FOUND);
	if ((tree = path_open_tree(c->o->system_logs, NULL)) < 0)
		return open_failed(c, tree);
	/* not to wait for somebody at the other end of a pipe */
	if ((fd = path_open(tree, name.n ? name.p : ".", O_RDONLY | O_NONBLOCK | O_NOCTTY, NULL)) < 0)
		return open_failed(c, fd);
	if (fstat(fd, &s) < 0 || (!S_ISREG(s.st_mode) && !S_ISDIR(s.st_mode)))
		return open_failed(c, -ERR_NOT_FOUND);
	if (S_ISREG(s.st_mode))
		return send_file(c, fd, s.st_size);
	return str_ends(c->path, STR("/")) ? send_list(c, fd) : redirect(c);
}
