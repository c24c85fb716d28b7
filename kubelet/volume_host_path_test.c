#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#include "kubelet/volume_testing.h"

static int check(struct place *p, const char *path, const char *type, struct err *err)
{
	struct volume v = { .kind = &volume_kind_host_path, .path = path };
	struct volume_setup s = { .volume = &v, .arena = &p->arena, .fs_group = -1,
				  .source = tree(&p->arena, arena_printf(&p->arena, "{\"path\":\"%s\",\"type\":\"%s\"}", path, type).p) };

	return volume_kind_host_path.set_up(&s, err);
}

static void make_socket(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(addr.sun_path, sizeof addr.sun_path, "%s", path);
	CHECK_INT(bind(fd, (struct sockaddr *)&addr, sizeof addr), 0);
	close(fd);
}

TEST(volume_host_path_types)
{
	/* d: a folder, f: a file, s: a socket, c: a character device, n: nothing. An empty text: it fits. */
	static const struct { const char *name, *type, *text; } t[] = {
		{ "d", "", "" }, { "n", "", "" },
		{ "d", "Directory", "" }, { "f", "File", "" }, { "s", "Socket", "" }, { "c", "CharDevice", "" },
		{ "link", "Directory", "" },
		{ "f", "Directory", "hostPath type check failed: %s is not a directory" },
		{ "n", "Directory", "hostPath type check failed: %s is not a directory" },
		{ "f", "DirectoryOrCreate", "hostPath type check failed: %s is not a directory" },
		{ "d", "File", "hostPath type check failed: %s is not a file" },
		{ "d", "FileOrCreate", "hostPath type check failed: %s is not a file" },
		{ "n", "File", "hostPath type check failed: %s is not a file" },
		{ "f", "Socket", "hostPath type check failed: %s is not a socket file" },
		{ "f", "CharDevice", "hostPath type check failed: %s is not a character device" },
		{ "c", "BlockDevice", "hostPath type check failed: %s is not a block device" },
		{ "n", "BlockDevice", "hostPath type check failed: %s is not a block device" },
		{ "d", "Other", "Other is an invalid volume type" },
		{ "d/../d", "Directory", "invalid HostPath `%s`: must not contain '..'" },
		{ "no/file", "FileOrCreate", "open %s: no such file or directory" },
	};
	struct place p;

	place_init(&p);
	CHECK_INT(mkdir(in(&p, "d"), 0755), 0);
	put(&p, "f", "", 0600);
	make_socket(in(&p, "s"));
	CHECK_INT(symlink("/dev/null", in(&p, "c")), 0);
	CHECK_INT(symlink("d", in(&p, "link")), 0);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct err err = ERR_INIT;
		const char *path = in(&p, t[i].name);
		int r = check(&p, path, t[i].type, &err);
		ptrdiff_t at = str_find(str_of(t[i].text), STR("%s"));
		str want = at < 0 ? str_of(t[i].text) : arena_printf(&p.arena, "%.*s%s%s", (int)at, t[i].text, path, t[i].text + at + 2);
		CHECK_ROW(i, (r == 0) == (want.n == 0));
		CHECK_STR_ROW(i, r < 0 ? err_str(&err) : STR(""), want.p);
	}
	place_done(&p);
}

TEST(volume_host_path_is_created)
{
	struct place p;
	struct stat st;

	place_init(&p);
	mode_t old = umask(0022);
	CHECK_INT(check(&p, in(&p, "a/b"), "DirectoryOrCreate", NULL), 0);
	CHECK_INT(check(&p, in(&p, "a/f"), "FileOrCreate", NULL), 0);
	umask(old);
	CHECK(stat(in(&p, "a/b"), &st) == 0 && S_ISDIR(st.st_mode));
	CHECK_INT(mode_of(in(&p, "a/b")), 0755);
	CHECK(stat(in(&p, "a/f"), &st) == 0 && S_ISREG(st.st_mode));
	CHECK_INT(mode_of(in(&p, "a/f")), 0644);
	place_done(&p);
}
