/* Which ids the users of pods are. */
#include "kubelet/user_namespaces.h"

#include <unistd.h>

#include "base/file.h"
#include "client/folder_testing.h"
#include "codec/atoms.h"

enum { FIRST = 65536, IDS = 65536 };

struct world {
	struct folder folder;
	struct kubelet_node node;
	struct user_namespaces *u;
};

static void world_init(struct world *w, size_t n)
{
	folder_init(&w->folder);
	w->node = (struct kubelet_node){ .root = str_of(w->folder.path) };
	w->u = user_namespaces_new(&w->node, FIRST, n);
}

static void world_done(struct world *w)
{
	user_namespaces_free(w->u);
	folder_done(&w->folder);
}

/* The first id of a pod's, or the error. */
static int64_t host_of(struct world *w, const char *uid)
{
	struct arena *a = &w->folder.arena;
	struct val user, pod = OBJECT(a, F(metadata, OBJECT(a, F(uid, VAL_STR(str_of(uid))))));
	int r = user_namespaces_of(w->u, a, pod, &user, NULL);

	if (r < 0)
		return r;
	struct val ids = val_at(val_get(user, uids), 0);
	CHECK_STR(val_str(user, mode), "POD");
	CHECK_INT(val_int(ids, containerId), 0);
	CHECK_INT(val_int(ids, length), IDS);
	CHECK_INT(val_int(val_at(val_get(user, gids), 0), hostId), val_int(ids, hostId));
	return val_int(ids, hostId);
}

TEST(user_namespaces_are_apart)
{
	struct world w;

	world_init(&w, 2);
	CHECK_INT(host_of(&w, "a"), FIRST);
	CHECK_INT(host_of(&w, "b"), FIRST + IDS);
	CHECK_INT(host_of(&w, "a"), FIRST);
	CHECK_INT(host_of(&w, "c"), -ERR_UNAVAILABLE);
	/* The next kubelet knows them. */
	user_namespaces_free(w.u);
	w.u = user_namespaces_new(&w.node, FIRST, 2);
	CHECK_INT(host_of(&w, "b"), FIRST + IDS);
	CHECK_INT(host_of(&w, "c"), -ERR_UNAVAILABLE);
	user_namespaces_release(w.u, STR("a"));
	CHECK_INT(host_of(&w, "c"), FIRST);
	world_done(&w);
}

/* A disk on which nothing can be written must not make a pod's ids those of another. */
TEST(user_namespaces_stay_when_they_cannot_be_written)
{
	struct world w;

	world_init(&w, 3);
	CHECK_INT(host_of(&w, "a"), FIRST);
	CHECK_INT(rename(in_folder(&w.folder, "pods"), in_folder(&w.folder, "away")), 0);
	CHECK_INT(file_write(in_folder(&w.folder, "pods"), STR("x"), 0600, NULL), 0);
	CHECK(host_of(&w, "b") < 0);
	CHECK_INT(host_of(&w, "a"), FIRST);
	CHECK_INT(unlink(in_folder(&w.folder, "pods")), 0);
	CHECK_INT(rename(in_folder(&w.folder, "away"), in_folder(&w.folder, "pods")), 0);
	CHECK_INT(host_of(&w, "b"), FIRST + IDS);
	world_done(&w);
}
