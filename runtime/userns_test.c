#include "runtime/userns.h"

#include <sys/mount.h>
#include <unistd.h>

#include "base/fiber_test.h"
#include "codec/atoms.h"
#include "runtime/layer_testing.h"

struct making {
	const char *user, *net;
	struct val options;
	int result;
};

static int make(void *arg)
{
	struct making *m = arg;
	return m->result = userns_make(m->user, m->net, m->options, NULL);
}

/* Each needs a process of ours for a moment: none of them may wait for another's. */
FIBER_TEST_IF(geteuid() == 0, userns_many_at_once)
{
	enum { ROUNDS = 50, MANY = 4, HANG_S = 60 };
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	char *folder = test_folder_make();
	struct val range = OBJECT(&a, F(containerId, val_of_int(0)), F(hostId, val_of_int(100000)), F(length, val_of_int(10)));
	struct val options = OBJECT(&a, F(usernsOptions, OBJECT(&a, F(uids, LIST(&a, range)), F(gids, LIST(&a, range)))));
	(void)alarm(HANG_S);
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct making m[MANY];
		struct fiber *f[MANY];
		for (size_t i = 0; i < MANY; i++) {
			m[i] = (struct making){ arena_printf(&a, "%s/user%zu", folder, i).p, arena_printf(&a, "%s/net%zu", folder, i).p, options, 0 };
			f[i] = start(make, &m[i]);
		}
		for (size_t i = 0; i < MANY; i++)
			CHECK_INT(join(f[i]), 0);
		for (size_t i = 0; i < MANY; i++) {
			CHECK_INT(userns_remove(m[i].user, NULL), 0);
			CHECK_INT(umount2(m[i].net, MNT_DETACH), 0);
			CHECK_INT(unlink(m[i].net), 0);
		}
	}
	(void)alarm(0);
	test_folder_remove(&folder);
}
