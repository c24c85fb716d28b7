#include "runtime/layer_testing.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

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

void tar_compress(struct buf *out, str tar, const char *filter)
{
	if (strcmp(filter, "zstd") == 0) {
		size_t max = ZSTD_compressBound(tar.n);
		CLEANUP(mem_freep) char *p = mem_alloc(max);
		size_t n = ZSTD_compress(p, max, tar.p, tar.n, 1);
		CHECK(!ZSTD_isError(n));
		buf_add(out, str_span(p, n));
		return;
	}
	enum { GZIP = 16 + MAX_WBITS };
	z_stream z = { .next_in = (Bytef *)(uintptr_t)tar.p, .avail_in = (uInt)tar.n };
	CHECK_INT(deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, GZIP, MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY), Z_OK);
	size_t max = deflateBound(&z, tar.n);
	CLEANUP(mem_freep) char *p = mem_alloc(max);
	z.next_out = (Bytef *)p;
	z.avail_out = (uInt)max;
	CHECK_INT(deflate(&z, Z_FINISH), Z_STREAM_END);
	buf_add(out, str_span(p, z.total_out));
	CHECK_INT(deflateEnd(&z), Z_OK);
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
