#include <pthread.h>

#include "base/clock.h"
#include "base/fiber_io.h"
#include "base/fiber_test.h"
#include "kubelet/volume_testing.h"

static int64_t usage(const char *path, int64_t *ret_inodes)
{
	struct volume v = { .kind = &volume_kind_empty_dir, .path = path };
	struct err err = ERR_INIT;
	struct volume_size size = { 0 };

	if (volume_usage(&v, &size, &err) < 0)
		fail_msg("%s", err.msg);
	*ret_inodes = size.inodes;
	return size.bytes;
}

TEST(volume_usage_counts)
{
	struct place p;
	int64_t inodes = 0, before, more;

	place_init(&p);
	(void)usage(p.path, &inodes);
	CHECK_INT(inodes, 1);
	CHECK_INT(mkdir(in(&p, "d"), 0755), 0);
	char *big = malloc(1 << 20);
	memset(big, 'x', 1 << 20);
	CHECK_INT(file_write(in(&p, "d/f"), str_span(big, 1 << 20), 0600, NULL), 0);
	free(big);
	before = usage(p.path, &inodes);
	CHECK_INT(inodes, 3);
	CHECK(before >= 1 << 20 && before < 2 << 20);
	/* Another name for the same file is no other file, and a link is not what it leads to. */
	CHECK_INT(link(in(&p, "d/f"), in(&p, "again")), 0);
	CHECK_INT(symlink("/usr", in(&p, "link")), 0);
	more = usage(p.path, &inodes);
	CHECK_INT(inodes, 4);
	CHECK(more < before + (64 << 10));
	place_done(&p);
}

TEST(volume_usage_of_a_deep_tree)
{
	enum { DEPTH = 300 };
	struct place p;
	int64_t inodes = 0;

	place_init(&p);
	int at = open(p.path, O_PATH | O_DIRECTORY);
	for (int i = 0; i < DEPTH; i++) {
		CHECK_INT(mkdirat(at, "d", 0755), 0);
		CHECK_INT(mkdirat(at, "e", 0755), 0);
		int next = openat(at, "d", O_PATH | O_DIRECTORY);
		CHECK(next >= 0);
		close(at);
		at = next;
	}
	close(at);
	(void)usage(p.path, &inodes);
	CHECK_INT(inodes, 1 + 2 * DEPTH);
	place_done(&p);
}

struct mover {
	const char *from, *to;
	int n;
};

/* While the walk is inside, the folder that it came from moves away: it must neither leave the tree nor stop. */
static int move_it(void *arg, int fd, const char *name, const struct stat *st)
{
	struct mover *m = arg;

	(void)fd, (void)st;
	m->n++;
	if (name && str_eq(str_of(name), STR("move")))
		CHECK_INT(rename(m->from, m->to), 0);
	CHECK(!name || !str_eq(str_of(name), STR("outside")));
	return 0;
}

TEST(volume_walk_stays_inside)
{
	struct place p;

	place_init(&p);
	CHECK_INT(mkdir(in(&p, "tree"), 0755), 0);
	CHECK_INT(mkdir(in(&p, "tree/a"), 0755), 0);
	CHECK_INT(mkdir(in(&p, "tree/a/b"), 0755), 0);
	put(&p, "tree/a/b/move", "", 0600);
	put(&p, "tree/last", "", 0600);
	put(&p, "outside", "", 0600);
	struct mover m = { in(&p, "tree/a/b"), in(&p, "b"), 0 };
	int top = path_open_tree(in(&p, "tree"), NULL);
	CHECK_INT(volume_walk(top, move_it, &m, NULL), 0);
	close(top);
	CHECK_INT(m.n, 5);
	place_done(&p);
}

/* ---- a machine that does not answer ---- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t told;
	bool hangs;
} machine = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false };

static int measure_machine(const struct volume *v, struct volume_size *ret, struct err *err)
{
	(void)err;
	pthread_mutex_lock(&machine.lock);
	while (machine.hangs && strcmp(v->path, "/dead") == 0)
		pthread_cond_wait(&machine.told, &machine.lock);
	pthread_mutex_unlock(&machine.lock);
	*ret = (struct volume_size){ .bytes = 4096, .inodes = (int64_t)strlen(v->path) };
	return strcmp(v->path, "/none") == 0 ? err_set(err, ERR_NOT_FOUND, "it is not there") : 0;
}

static int nothing(void *arg, struct err *err)
{
	(void)arg, (void)err;
	return 0;
}

static void machine_set(bool hangs)
{
	pthread_mutex_lock(&machine.lock);
	machine.hangs = hangs;
	pthread_cond_signal(&machine.told);
	pthread_mutex_unlock(&machine.lock);
}

static int measure(struct volume_remote *m, const char *path, int64_t *ret_inodes)
{
	struct volume v = { .path = path };
	struct volume_size size = { 0 };
	struct err err = ERR_INIT;
	int r = volume_remote_usage(m, measure_machine, &v, &size, &err);

	*ret_inodes = size.inodes;
	return r;
}

FIBER_TEST(volume_usage_of_another_machine)
{
	struct volume_remote *m = volume_remote_new();
	int64_t inodes = 0, began;

	CHECK_INT(measure(m, "/alive", &inodes), 0);
	CHECK_INT(inodes, 6);
	CHECK_INT(measure(m, "/none", &inodes), -ERR_NOT_FOUND);
	machine_set(true);
	CHECK_INT(measure(m, "/dead", &inodes), -ERR_UNAVAILABLE);
	began = clock_now_ns();
	CHECK_INT(measure(m, "/alive", &inodes), -ERR_UNAVAILABLE); /* at once: nobody waits twice */
	CHECK(clock_now_ns() - began < NS_PER_S);
	CHECK_INT(fiber_blocking(nothing, NULL, NULL), 0); /* the pool is free */
	machine_set(false);
	for (int i = 0; i < 500 && measure(m, "/alive", &inodes) < 0; i++)
		CHECK_INT(fiber_sleep_ms(10, NULL), 0);
	CHECK_INT(measure(m, "/dead", &inodes), 0);
	CHECK_INT(inodes, 5);
	volume_remote_free(m);
}
