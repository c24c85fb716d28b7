/* A folder for the files of a test, and what is written about them. */
#ifndef C8S_CLIENT_FOLDER_TESTING_H
#define C8S_CLIENT_FOLDER_TESTING_H

#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/path.h"
#include "base/test.h"

struct folder {
	char path[64];
	struct arena arena;
};

static __attribute__((unused)) void folder_init(struct folder *f)
{
	*f = (struct folder){ .path = "/tmp/c8s-client-XXXXXX", .arena = ARENA_INIT };
	CHECK(mkdtemp(f->path) != NULL);
}

static __attribute__((unused)) void folder_done(struct folder *f)
{
	int tree = path_open_tree("/tmp", NULL);
	CHECK_INT(path_remove(tree, f->path + strlen("/tmp/"), NULL), 0);
	(void)close(tree);
	arena_done(&f->arena);
}

static __attribute__((unused)) const char *in_folder(struct folder *f, const char *name)
{
	return arena_printf(&f->arena, "%s/%s", f->path, name).p;
}

static __attribute__((unused)) const char *put_file(struct folder *f, const char *name, const char *text, mode_t mode)
{
	CHECK_INT(file_write(in_folder(f, name), str_of(text), mode, NULL), 0);
	return in_folder(f, name);
}

/* The text with the folder's path as DIR. */
static __attribute__((unused)) str shown(struct folder *f, str s)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	for (ptrdiff_t at; (at = str_find(s, str_of(f->path))) >= 0; s = str_skip(s, (size_t)at + strlen(f->path))) {
		buf_add(&b, str_head(s, (size_t)at));
		buf_add(&b, STR("DIR"));
	}
	buf_add(&b, s);
	return arena_str(&f->arena, buf_str(&b));
}

#endif
