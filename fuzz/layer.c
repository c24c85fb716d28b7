/*
 * Layers: bytes that may be a tar, compressed or not, are unpacked over a tree that has some files, in both forms. Whatever they say, what is
 * beside the tree stays as it is, and what was unpacked can be removed again.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/path.h"
#include "fuzz/fuzz.h"
#include "runtime/layer.h"
#include "runtime/tar.h"

enum { INPUT_MAX = 256 << 10 };

static char folder[64], canary[80], in[80];
static int top = -1;

static void remove_place(void)
{
	int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)path_remove(root, folder, NULL);
	close(root);
	close(top);
}

/* A folder with a canary, for the whole run. */
static void make_place(void)
{
	/* in memory where that can be had: there are some thousand trees to come and go */
	(void)snprintf(folder, sizeof(folder), "%s/c8s-fuzz-layer-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	check(mkdtemp(folder) && atexit(remove_place) == 0, "a place can be made");
	(void)snprintf(canary, sizeof(canary), "%s/canary", folder);
	(void)snprintf(in, sizeof(in), "%s/in", folder);
	top = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	check(top >= 0 && file_write(canary, STR("alive"), 0600, NULL) == 0, "with a canary");
}

/* Few names, which a fuzzer finds. */
static void make_tree(void)
{
	check(mkdirat(top, "in", 0755) == 0 && mkdirat(top, "in/d", 0755) == 0 && mknodat(top, "in/d/f", S_IFREG | 0644, 0) == 0 &&
	      symlinkat("..", top, "in/up") == 0 && symlinkat("../canary", top, "in/c") == 0, "a tree can be made");
}

static void check_place(void)
{
	struct buf names = BUF_INIT(4096), content = BUF_INIT(100);
	check(layer_folder_names(top, &names, NULL) == 0 && names.n == sizeof("canary") + sizeof("in"), "nothing is made outside");
	check(file_read(canary, &content, NULL) == 0 && str_eq(buf_str(&content), STR("alive")), "and nothing is changed there");
	check(path_remove(top, "in", NULL) == 0, "what was unpacked can be removed");
	buf_done(&names);
	buf_done(&content);
}

static void unpack(const char *blob, bool overlay)
{
	struct layer_left left = { BUF_INIT(LAYER_NAMES_MAX), BUF_INIT(LAYER_NAMES_MAX) };
	struct layer_result result;
	struct err err = ERR_INIT;
	make_tree();
	int into = openat(top, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC), lower = openat(top, "in/d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = layer_unpack_left(blob, in, overlay, overlay ? &left : NULL, &result, &err);
	check(r == 0 || err.n, "it works, or why not is said");
	check(r < 0 || digest_is_valid(str_of(result.diff_id)), "what is unpacked has a digest");
	if (r == 0 && overlay)
		(void)layer_inherit(into, &left, &lower, 1, NULL);
	close(lower);
	close(into);
	buf_done(&left.folders);
	buf_done(&left.links);
	check_place();
}

/* Right sums for what looks like a header: a fuzzer would hardly ever get beyond them. */
static void put_sums(char *tar, size_t n)
{
	for (char *h = tar; n >= TAR_BLOCK; h += TAR_BLOCK, n -= TAR_BLOCK) {
		unsigned sum = 8 * ' ';
		if (memcmp(h + offsetof(struct tar_header, magic), "ustar", 5) != 0)
			continue;
		for (size_t i = 0; i < TAR_BLOCK; i++)
			sum += i - offsetof(struct tar_header, sum) < 8 ? 0 : (unsigned char)h[i];
		(void)snprintf(h + offsetof(struct tar_header, sum), 8, "%06o", sum & 0777777);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static int fd = -1;
	char name[PATH_FD_TEXT];
	if (n > INPUT_MAX)
		return 0;
	if (fd < 0) {
		make_place();
		fd = memfd_create("layer", MFD_CLOEXEC);
	}
	char *blob = mem_alloc(n + 1);
	memcpy(blob, data, n);
	put_sums(blob, n);
	check(fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, blob, n, 0) == (ssize_t)n, "a blob can be made");
	free(blob);
	unpack(path_of_fd(fd, name), true);
	unpack(path_of_fd(fd, name), false);
	return 0;
}
