#include "runtime/layer_testing.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/test.h"

enum { BLOCK = 512, NAME = 100 };

static void pad(struct buf *tar)
{
	static const char zeros[BLOCK];
	buf_add(tar, str_span(zeros, (BLOCK - tar->n % BLOCK) % BLOCK));
}

static void octal(char *at, size_t n, unsigned long long v)
{
	for (size_t i = n - 1; i-- > 0; v /= 8)
		at[i] = (char)('0' + v % 8);
}

static void header(struct buf *tar, const struct tar_entry *e, char type, size_t size)
{
	char h[BLOCK] = { 0 };
	unsigned sum = 0;
	memcpy(h, e->name, strnlen(e->name, NAME));
	octal(h + 100, 8, e->mode ? e->mode : 0644);
	octal(h + 108, 8, e->uid);
	octal(h + 116, 8, e->gid);
	octal(h + 124, 12, size);
	octal(h + 136, 12, (unsigned long long)e->mtime);
	memset(h + 148, ' ', 8);
	h[156] = type;
	if (e->link)
		memcpy(h + 157, e->link, strnlen(e->link, NAME));
	memcpy(h + 257, "ustar\00000", 8);
	octal(h + 329, 8, e->major);
	octal(h + 337, 8, e->minor);
	for (size_t i = 0; i < sizeof(h); i++)
		sum += (unsigned char)h[i];
	octal(h + 148, 7, sum);
	h[154] = '\0';
	buf_add(tar, str_span(h, sizeof(h)));
}

/* "17 key=value\n", where the number counts itself. */
static void record(struct buf *b, const char *key, const char *value)
{
	size_t rest = strlen(key) + strlen(value) + 3, n = rest + 1;
	while (n != rest + (size_t)snprintf(NULL, 0, "%zu", n))
		n = rest + (size_t)snprintf(NULL, 0, "%zu", n);
	buf_addf(b, "%zu %s=%s\n", n, key, value);
}

void tar_add(struct buf *tar, const struct tar_entry *e)
{
	CLEANUP(buf_done) struct buf pax = BUF_INIT(1 << 20);
	if (strlen(e->name) >= NAME)
		record(&pax, "path", e->name);
	if (e->pax_key)
		record(&pax, e->pax_key, e->pax_value);
	if (pax.n) {
		header(tar, &(struct tar_entry){ .name = "pax" }, 'x', pax.n);
		buf_add(tar, buf_str(&pax));
		pad(tar);
	}
	str data = str_of(e->data);
	header(tar, e, e->type, data.n);
	buf_add(tar, data);
	pad(tar);
}

void tar_make(struct buf *tar, const struct tar_entry *entries)
{
	static const char zeros[2 * BLOCK];
	for (const struct tar_entry *e = entries; e->name; e++)
		tar_add(tar, e);
	buf_add(tar, str_span(zeros, sizeof(zeros)));
}

static ssize_t take(struct archive *a, void *arg, const void *p, size_t n)
{
	(void)a;
	buf_add(arg, str_span(p, n));
	return (ssize_t)n;
}

void tar_compress(struct buf *out, str tar, const char *filter)
{
	struct archive *a = archive_write_new();
	struct archive_entry *e = archive_entry_new();
	archive_write_set_format_raw(a);
	CHECK_INT(archive_write_add_filter_by_name(a, filter), ARCHIVE_OK);
	archive_write_set_bytes_in_last_block(a, 1);
	CHECK_INT(archive_write_open(a, out, NULL, take, NULL), ARCHIVE_OK);
	archive_entry_set_filetype(e, AE_IFREG);
	CHECK_INT(archive_write_header(a, e), ARCHIVE_OK);
	CHECK(archive_write_data(a, tar.p, tar.n) == (ssize_t)tar.n);
	CHECK_INT(archive_write_close(a), ARCHIVE_OK);
	archive_entry_free(e);
	archive_write_free(a);
}

char *test_folder_make(void)
{
	const char *tmp = getenv("TMPDIR");
	char *folder = NULL;
	CHECK(asprintf(&folder, "%s/c8s-layer-XXXXXX", tmp ? tmp : "/tmp") > 0);
	CHECK(mkdtemp(folder) != NULL);
	return folder;
}

void test_folder_remove(char **folder)
{
	int top = path_open_tree("/", NULL);
	CHECK_INT(path_remove(top, *folder, NULL), 0);
	close(top);
	free(*folder);
}

const char *test_file(struct arena *a, const char *folder, const char *name, str content)
{
	const char *path = arena_printf(a, "%s/%s", folder, name).p;
	CHECK_INT(file_write(path, content, 0600, NULL), 0);
	return path;
}
