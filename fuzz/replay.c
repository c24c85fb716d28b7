/*
 * Runs a fuzz target over the files of a folder: the corpus as an ordinary test. Every input also runs truncated at each of
 * its first bytes, so that a corpus of good inputs covers the bad ones too.
 */
#include <dirent.h>
#include <limits.h>

#include "base/buf.h"
#include "base/mem.h"
#include "fuzz/fuzz.h"

enum { INPUT_MAX = 1 << 20, CUTS_MAX = 2000 };

static bool read_file(const char *path, struct buf *b)
{
	FILE *f = fopen(path, "rb");
	char chunk[1024];
	size_t n;

	if (!f)
		return false;
	while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
		buf_add(b, str_span(chunk, n));
	fclose(f);
	return !b->overflow;
}

/* The target gets an exact copy, so that AddressSanitizer sees a read beyond its end. */
static void run_prefix(str s)
{
	uint8_t *copy = mem_alloc(s.n);
	if (s.n)
		memcpy(copy, s.p, s.n);
	LLVMFuzzerTestOneInput(copy, s.n);
	free(copy);
}

int main(int argc, char **argv)
{
	DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;
	struct dirent *entry;
	int n = 0, failed = 0;

	if (!dir) {
		fprintf(stderr, "usage: %s CORPUS-FOLDER\n", argv[0]);
		return 1;
	}
	while ((entry = readdir(dir))) {
		CLEANUP(buf_done) struct buf path = BUF_INIT(PATH_MAX), input = BUF_INIT(INPUT_MAX);
		if (entry->d_name[0] == '.')
			continue;
		buf_addf(&path, "%s/%s", argv[1], entry->d_name);
		bool ok = !path.overflow && read_file(path.p, &input);
		for (size_t cut = 0; ok && cut < MIN(input.n, (size_t)CUTS_MAX); cut++)
			run_prefix(str_head(buf_str(&input), cut));
		if (ok)
			run_prefix(buf_str(&input));
		printf("%s %d - %s\n", ok ? "ok" : "not ok", ++n, entry->d_name);
		failed += !ok;
	}
	closedir(dir);
	printf("1..%d\n", n);
	return n == 0 || failed;
}
