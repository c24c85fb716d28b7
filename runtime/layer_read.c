/*
 * Two libarchive readers in a row: one undoes the compression, one cuts the tar into entries; between them the plain bytes are
 * counted and hashed. Names come out as the bytes they are: the program never sets a locale, so libarchive converts nothing.
 */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <sys/stat.h>

#include "runtime/layer.h"

enum { BLOCK = 256 << 10 };

static int broken(struct archive *a, struct err *err)
{
	const char *text = archive_error_string(a);
	if (archive_errno(a) == EFBIG)
		return err_set(err, ERR_TOO_LARGE, "%s", text);
	if (archive_errno(a) == ENOMEM)
		return err_set(err, ERR_TOO_LARGE, "the layer's tar needs too much memory: %s", text ? text : "out of memory");
	return err_set(err, ERR_INVALID, "the layer is damaged: %s", text ? text : "unreadable");
}

static ssize_t feed(struct archive *tar, void *arg, const void **ret)
{
	struct layer_reader *l = arg;
	size_t n = 0;
	la_int64_t offset;
	int r;
	while ((r = archive_read_data_block(l->raw, ret, &n, &offset)) == ARCHIVE_OK && !n)
		;
	if (r == ARCHIVE_EOF)
		return 0;
	if (r != ARCHIVE_OK) {
		archive_set_error(tar, archive_errno(l->raw), "%s", archive_error_string(l->raw));
		return -1;
	}
	l->plain += n;
	if (l->plain > l->plain_max) {
		archive_set_error(tar, EFBIG, "the layer unpacks to more than %ju bytes, too many for its size",
				  (uintmax_t)l->plain_max);
		return -1;
	}
	sha256_add(&l->hash, str_span(*ret, n));
	return (ssize_t)n;
}

static int open_raw(struct layer_reader *l, const char *blob, struct err *err)
{
	struct archive_entry *e;
	l->raw = image_archive_reader(true);
	archive_read_support_format_empty(l->raw);
	if (archive_read_open_filename(l->raw, blob, BLOCK) != ARCHIVE_OK)
		return broken(l->raw, err);
	int r = archive_read_next_header(l->raw, &e);
	if (r != ARCHIVE_OK && r != ARCHIVE_EOF)
		return broken(l->raw, err);
	/* the file itself counts as one */
	if (archive_filter_count(l->raw) > 2)
		return err_set(err, ERR_INVALID, "the layer is compressed more than once");
	return 0;
}

int layer_reader_open(struct layer_reader *l, const char *blob, struct err *err)
{
	struct stat st;
	if (stat(blob, &st) < 0)
		return err_sys(err, errno, "%s", blob);
	*l = (struct layer_reader){ .plain_max = MAX(LAYER_SMALL, (uint64_t)st.st_size * LAYER_RATIO) };
	int r = open_raw(l, blob, err);
	if (r < 0)
		return r;
	sha256_init(&l->hash);
	l->tar = archive_read_new();
	archive_read_support_format_tar(l->tar);
	archive_read_support_format_empty(l->tar);
	return archive_read_open(l->tar, l, NULL, feed, NULL) == ARCHIVE_OK ? 0 : broken(l->tar, err);
}

void layer_reader_done(struct layer_reader *l)
{
	archive_read_free(l->tar);
	archive_read_free(l->raw);
	sha256_done(&l->hash);
}

int layer_reader_next(struct layer_reader *l, struct archive_entry **ret, struct err *err)
{
	int r = archive_read_next_header(l->tar, ret);
	if (r == ARCHIVE_EOF)
		return 0;
	/* a warning is about character sets, or attributes that we do not take anyway */
	return r == ARCHIVE_OK || r == ARCHIVE_WARN ? 1 : broken(l->tar, err);
}

int layer_reader_data(struct layer_reader *l, str *ret, int64_t *ret_offset, struct err *err)
{
	const void *p;
	size_t n;
	la_int64_t offset;
	int r = archive_read_data_block(l->tar, &p, &n, &offset);
	if (r == ARCHIVE_EOF)
		return 0;
	if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
		return broken(l->tar, err);
	*ret = str_span(p, n);
	*ret_offset = offset;
	return 1;
}

int layer_reader_end(struct layer_reader *l, char ret_diff_id[DIGEST_TEXT + 1], struct err *err)
{
	uint8_t sum[SHA256_BYTES];
	const void *p;
	ssize_t n;
	while ((n = feed(l->tar, l, &p)) > 0)
		;
	if (n < 0)
		return broken(l->tar, err);
	sha256_sum(&l->hash, sum);
	memcpy(ret_diff_id, "sha256:", 7);
	hex_encode(ret_diff_id + 7, str_span((const char *)sum, sizeof(sum)));
	ret_diff_id[DIGEST_TEXT] = '\0';
	return 0;
}
