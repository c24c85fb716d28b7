#include "kubelet/volume_testing.h"

enum { GROUP = 4321 };

static void own(const char *path, bool readonly, bool on_root_mismatch)
{
	struct volume v = { .kind = &volume_kind_local, .path = path, .readonly = readonly };
	struct volume_setup s = { .volume = &v, .fs_group = GROUP, .on_root_mismatch = on_root_mismatch };
	struct err err = ERR_INIT;

	if (volume_own(&s, &err) < 0)
		fail_msg("%s", err.msg);
}

TEST(volume_ownership_of_everything)
{
	struct place p;

	if (geteuid() != 0)
		skip();
	place_init(&p);
	CHECK_INT(mkdir(in(&p, "v"), 0700), 0);
	CHECK_INT(mkdir(in(&p, "v/d"), 0700), 0);
	put(&p, "v/d/f", "", 0600);
	put(&p, "v/setuid", "", 0755);
	CHECK_INT(chmod(in(&p, "v/setuid"), 04755), 0);
	put(&p, "outside", "", 0600);
	CHECK_INT(symlink("../outside", in(&p, "v/link")), 0);
	own(in(&p, "v"), false, false);
	CHECK_INT(mode_of(in(&p, "v")), 02770);
	CHECK_INT(mode_of(in(&p, "v/d")), 02770);
	CHECK_INT(mode_of(in(&p, "v/d/f")), 0660);
	CHECK_INT(mode_of(in(&p, "v/setuid")), 04775);
	CHECK_INT(group_of(in(&p, "v/d/f")), GROUP);
	CHECK_INT(group_of(in(&p, "v")), GROUP);
	CHECK_INT(group_of(in(&p, "v/link")), GROUP);
	/* What a link leads to is not the volume's. */
	CHECK(group_of(in(&p, "outside")) != GROUP);
	CHECK_INT(mode_of(in(&p, "outside")), 0600);
	place_done(&p);
}

TEST(volume_ownership_when_the_root_differs)
{
	struct place p;

	if (geteuid() != 0)
		skip();
	place_init(&p);
	CHECK_INT(mkdir(in(&p, "v"), 0700), 0);
	put(&p, "v/f", "", 0600);
	own(in(&p, "v"), true, true);
	CHECK_INT(mode_of(in(&p, "v")), 02750);
	CHECK_INT(mode_of(in(&p, "v/f")), 0640);
	/* The root is as it should be: nothing else is looked at. */
	put(&p, "v/new", "", 0600);
	own(in(&p, "v"), true, true);
	CHECK_INT(mode_of(in(&p, "v/new")), 0600);
	/* For writing, the root has too little. */
	own(in(&p, "v"), false, true);
	CHECK_INT(mode_of(in(&p, "v/new")), 0660);
	place_done(&p);
}
