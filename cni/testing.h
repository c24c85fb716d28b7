/* For tests of what executes plugins and changes the network: a folder, and a network of one's own. */
#ifndef C8S_CNI_TESTING_H
#define C8S_CNI_TESTING_H

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "base/test.h"
#include "cni/cni_priv.h"
#include "cni/netns.h"

/* A folder for one test. */
struct folder {
	char path[64];
	struct cni *cni;
};

static __attribute__((unused)) struct folder folder_make(void)
{
	struct folder f = { .path = "/tmp/cni-test-XXXXXX" };
	CHECK(mkdtemp(f.path));
	f.cni = cni_new(&(struct cni_options){ .conf_dir = f.path, .cache_dir = f.path,
					       .bin_dirs = (const char *const[]){ "/none", NULL } });
	return f;
}

static __attribute__((unused)) const char *path_in(struct arena *a, const struct folder *f, const char *name)
{
	return arena_printf(a, "%s/%s", f->path, name).p;
}

static __attribute__((unused)) void write_in(const struct folder *f, const char *name, const char *text)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CHECK_INT(file_write(path_in(&a, f, name), str_of(text), 0644, NULL), 0);
}

static __attribute__((unused)) void folder_remove(struct folder *f)
{
	CLEANUP(fd_closep) int tree = path_open_tree("/tmp", NULL);

	cni_free(f->cni);
	CHECK_INT(path_remove(tree, f->path + strlen("/tmp/"), NULL), 0);
}

/* A network of this test alone, which is empty; the one of before, to go back to. Without root the test is skipped. */
static __attribute__((unused)) int network_make(void)
{
	int home = netns_open_own(NULL);

	if (geteuid() != 0 || unshare(CLONE_NEWNET) < 0) {
		fd_closep(&home);
		skip();
	}
	return home;
}

static __attribute__((unused)) void network_leave(int home)
{
	CHECK_INT(netns_enter(home, NULL), 0);
	fd_closep(&home);
}

#endif
