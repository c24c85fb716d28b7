#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "kubelet/cri_config_testing.h"

#define LOCAL                                                                                                                       \
	"# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\nfe00::0\tip6-localnet\n" \
	"fe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n"

TEST(files_hosts_text)
{
	static const struct {
		const char *spec, *want;
	} t[] = {
		{ "", LOCAL "10.1.0.2\tp\nfd00::2\tp\n" },
		{ "'hostname':'h','subdomain':'s',", LOCAL "10.1.0.2\th.s.ns.svc.cluster.local\th\nfd00::2\th.s.ns.svc.cluster.local\th\n" },
		{ "'hostAliases':[{'ip':'1.2.3.4','hostnames':['a','b.example']},{'ip':'5.6.7.8','hostnames':['c']}],",
		  LOCAL "10.1.0.2\tp\nfd00::2\tp\n\n# Entries added by HostAliases.\n1.2.3.4\ta\tb.example\n5.6.7.8\tc\n" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);
		struct kubelet_node n = testing_node();
		struct err err = ERR_INIT;
		struct cri_container_input in = { .pod = testing_pod(&a, t[i].spec, "", ""),
						  .pod_ips = testing_typed(&a, NULL, "[{'ip':'10.1.0.2'},{'ip':'fd00::2'}]") };
		CHECK_INT(cri_config_hosts(&n, &in, &b, &err), 0);
		CHECK_STR_ROW(i, buf_str(&b), t[i].want);
	}
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

/* Mode of a file, and its size in *ret_size. */
static unsigned mode_of(str path, int64_t *ret_size)
{
	struct stat st;
	CHECK_INT(stat(path.p, &st), 0);
	*ret_size = st.st_size;
	return st.st_mode & 07777;
}

TEST(files_of_container)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	char root[] = "/tmp/c8s-files-XXXXXX";
	struct kubelet_node n = testing_node();
	struct err err = ERR_INIT;
	static const struct timespec long_ago[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	struct cri_mount first[2], again[2], third[2];
	size_t n_first, n_again;
	int64_t size;
	struct val pod = testing_pod(&a, "", "'terminationMessagePath':'/dev/termination-log',", "");
	struct cri_container_input in = { .pod = pod, .container = testing_container(pod), .pod_ips = testing_typed(&a, NULL, "[{'ip':'10.1.0.2'}]") };

	CHECK(mkdtemp(root) != NULL);
	n.root = n.log_root = str_of(root);
	CHECK_INT(container_files_make(&n, &a, &in, first, &n_first, &err), 0);
	CHECK_INT(n_first, 2);
	CHECK_STR(first[0].container_path, "/etc/hosts");
	CHECK_STR(first[0].host_path, arena_printf(&a, "%s/pods/u1/etc-hosts", root).p);
	CHECK_INT(mode_of(first[0].host_path, &size), 0644);
	CHECK(size > 0);
	CHECK_STR(first[1].container_path, "/dev/termination-log");
	CHECK(str_starts(first[1].host_path, arena_printf(&a, "%s/pods/u1/containers/c/", root)));
	CHECK_INT(mode_of(first[1].host_path, &size), 0666);
	CHECK_INT(size, 0);
	(void)mode_of(arena_printf(&a, "%s/ns_p_u1/c", root), &size);

	/* Another attempt: the same hosts, other last words. */
	CHECK_INT(container_files_make(&n, &a, &in, again, &n_again, &err), 0);
	CHECK(str_eq(again[0].host_path, first[0].host_path));
	CHECK(!str_eq(again[1].host_path, first[1].host_path));
	CHECK_INT(mode_of(first[1].host_path, &size), 0666);

	/* The last words before the last ones are of no use. */
	CHECK_INT(utimensat(AT_FDCWD, first[1].host_path.p, long_ago, 0), 0);
	CHECK_INT(container_files_make(&n, &a, &in, third, &n_again, &err), 0);
	CHECK_INT(access(first[1].host_path.p, F_OK), -1);
	CHECK_INT(access(again[1].host_path.p, F_OK), 0);
	CHECK_INT(access(third[1].host_path.p, F_OK), 0);

	/* A mount of its own, or no address yet: no hosts. */
	in.container = val_with(&a, in.container, testing_typed(&a, NULL, "[{'name':'v','mountPath':'/etc/hosts'}]"), volumeMounts);
	CHECK_INT(container_files_make(&n, &a, &in, again, &n_again, &err), 0);
	CHECK_INT(n_again, 1);
	in.container = val_without(&a, testing_container(pod), terminationMessagePath);
	in.pod_ips = VAL_EMPTY;
	CHECK_INT(container_files_make(&n, &a, &in, again, &n_again, &err), 0);
	CHECK_INT(n_again, 0);
	nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Attempts that fail before there is a container leave empty files, which do not push out what the last container said; nor do many of them stay. */
TEST(files_keep_the_last_words_that_were_said)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	char root[] = "/tmp/c8s-files-XXXXXX";
	struct kubelet_node n = testing_node();
	struct err err = ERR_INIT;
	static const struct timespec long_ago[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	struct cri_mount said[2], later[2];
	struct val pod = testing_pod(&a, "", "'terminationMessagePath':'/dev/termination-log',", "");
	struct cri_container_input in = { .pod = pod, .container = testing_container(pod) };
	size_t count;
	int files = 0;

	CHECK(mkdtemp(root) != NULL);
	n.root = n.log_root = str_of(root);
	CHECK_INT(container_files_make(&n, &a, &in, said, &count, &err), 0);
	CHECK_INT(file_write(said[0].host_path.p, STR("words"), 0666, &err), 0);
	CHECK_INT(utimensat(AT_FDCWD, said[0].host_path.p, long_ago, 0), 0);
	const char *folder = arena_printf(&a, "%s/pods/u1/containers/c", root).p;
	/* What is no file is not ours to remove. */
	CHECK_INT(mkdir(arena_printf(&a, "%s/folder", folder).p, 0755), 0);
	CHECK_INT(symlink(said[0].host_path.p, arena_printf(&a, "%s/link", folder).p), 0);
	for (int i = 0; i < 5; i++) {
		CHECK_INT(container_files_make(&n, &a, &in, later, &count, &err), 0);
		CHECK_ROW(i, access(said[0].host_path.p, F_OK) == 0 && access(later[0].host_path.p, F_OK) == 0);
	}
	DIR *d = opendir(folder);
	CHECK(d != NULL);
	while (readdir(d))
		files++;
	(void)closedir(d);
	CHECK_INT(files, 2 + 2 + 2); /* . and .., the folder and the link, the words and the newest */
	nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
