#include "kubelet/collect.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/file.h"
#include "kubelet/cri_config_testing.h"
#include "kubelet/cri_testing.h"

/* A runtime with containers and sandboxes, written as name/uid/attempt. */
struct world {
	struct arena arena;
	struct cri_fake cri;
	struct kubelet_node node;
	struct collect_options o;
	struct buf calls;
	struct val containers, sandboxes;
	const char *deleted, *ended;  /* uids */
	char root[64];
	bool reopen_fails;
};

static int answer(struct cri_fake *f, const struct rpc *rpc, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	struct world *w = f->arg;
	str id = val_str(request, containerId);

	*ret = VAL_EMPTY_OBJECT;
	if (rpc == &rpc_RuntimeService_ListContainers)
		*ret = OBJECT(a, F(containers, w->containers));
	else if (rpc == &rpc_RuntimeService_ListPodSandbox)
		*ret = OBJECT(a, F(items, w->sandboxes));
	else if (rpc == &rpc_RuntimeService_RemoveContainer)
		buf_addf(&w->calls, "rm " STR_FMT "\n", STR_ARG(id));
	else if (rpc == &rpc_RuntimeService_StopContainer)
		buf_addf(&w->calls, "stop " STR_FMT " %lld\n", STR_ARG(id), (long long)val_int(request, timeout));
	else if (rpc == &rpc_RuntimeService_StopPodSandbox)
		buf_addf(&w->calls, "stopp " STR_FMT "\n", STR_ARG(val_str(request, podSandboxId)));
	else if (rpc == &rpc_RuntimeService_RemovePodSandbox)
		buf_addf(&w->calls, "rmp " STR_FMT "\n", STR_ARG(val_str(request, podSandboxId)));
	else if (rpc == &rpc_RuntimeService_ReopenContainerLog && w->reopen_fails)
		return err_set(err, ERR_UNAVAILABLE, "no");
	else if (rpc == &rpc_RuntimeService_ReopenContainerLog)
		buf_addf(&w->calls, "reopen " STR_FMT "\n", STR_ARG(id));
	else if (rpc == &rpc_RuntimeService_ContainerStatus && str_eq(id, STR("alive")))
		*ret = OBJECT(a, F(status, OBJECT(a, F(state, VAL_LIT("CONTAINER_RUNNING")))));
	else
		return err_set(err, ERR_NOT_FOUND, "not found");
	return 0;
}

static bool in(const char *list, str uid) { return list && str_find(str_of(list), uid) >= 0; }
static bool deleted(void *arg, str uid) { return in(((struct world *)arg)->deleted, uid); }
static bool ended(void *arg, str uid) { return in(((struct world *)arg)->ended, uid); }

static void world_init(struct world *w)
{
	*w = (struct world){ .cri = CRI_FAKE(answer, w), .node = testing_node(), .calls = BUF_INIT(1 << 20), .root = "/tmp/c8s-test-collect-XXXXXX" };
	CHECK(mkdtemp(w->root));
	w->node.log_root = arena_printf(&w->arena, "%s/pods", w->root);
	CHECK_INT(mkdir(w->node.log_root.p, 0755), 0);
	w->o = (struct collect_options){ .node = &w->node, .cri = &w->cri.cri, .per_pod = 1, .total = -1, .deleted = deleted, .ended = ended, .arg = w };
	w->containers = w->sandboxes = VAL_EMPTY_LIST;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)type, (void)at;
	return remove(path);
}

static void world_done(struct world *w)
{
	CHECK_INT(nftw(w->root, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
	buf_done(&w->calls);
	arena_done(&w->arena);
}

/* A container made so many seconds before now. */
static struct val container(struct world *w, const char *id, const char *uid, const char *name, const char *state, int64_t age_s)
{
	return testing_typed(&w->arena, NULL,
			     arena_printf(&w->arena,
					  "{'id':'%s','podSandboxId':'s-%s','metadata':{'name':'%s','attempt':%d},'state':'CONTAINER_%s',"
					  "'createdAt':%lld,'labels':{'io.kubernetes.pod.uid':'%s','io.kubernetes.pod.name':'p',"
					  "'io.kubernetes.pod.namespace':'ns'},'annotations':{'io.kubernetes.pod.terminationGracePeriod':'7'}}",
					  id, uid, name, id[1] - '0', state, (long long)(clock_wall_ns() - age_s * NS_PER_S), uid).p);
}

static struct val sandbox(struct world *w, const char *id, const char *uid, const char *state, int64_t age_s)
{
	return testing_typed(&w->arena, NULL,
			     arena_printf(&w->arena, "{'id':'%s','metadata':{'uid':'%s'},'state':'SANDBOX_%s','createdAt':%lld}", id, uid, state,
					  (long long)(clock_wall_ns() - age_s * NS_PER_S)).p);
}

static void check_calls(struct world *w, const char *want)
{
	CHECK_STR(buf_str(&w->calls), want);
	buf_reset(&w->calls);
}

CLOCK_TEST(collect_dead_containers)
{
	static const struct {
		int per_pod, total;
		int64_t min_age_s;
		const char *deleted, *ended, *want;
		bool all_dead;
	} t[] = {
		/* The newest dead of each name stays; running ones and the last one of d too. */
		{ 1, -1, 0, NULL, NULL, "rm a0\nrm a1\n", false },
		{ 2, -1, 0, NULL, NULL, "rm a0\n", false },
		{ 0, -1, 0, NULL, NULL, "rm a0\nrm a1\nrm a2\nrm b0\nstop d0 7\nrm d0\n", false },
		{ -1, -1, 0, NULL, NULL, "", false },
		{ 0, -1, 250, NULL, NULL, "rm a0\n", false },
		{ -1, 2, 0, NULL, NULL, "rm a0\nrm a1\nrm b0\n", false },
		{ -1, 4, 0, NULL, NULL, "rm a0\nrm a1\n", false },
		{ 1, -1, 0, "u1", NULL, "rm b0\nrm a0\nrm a1\nrm a2\n", false },
		{ 1, -1, 0, NULL, "u2", "rm a0\nrm a1\n", false },
		{ 1, -1, 0, NULL, "u2", "stop d0 7\nrm d0\nrm a0\nrm a1\n", true },
	};
	struct world w;

	world_init(&w);
	w.containers = LIST(&w.arena, container(&w, "a1", "u1", "a", "EXITED", 200), container(&w, "a0", "u1", "a", "EXITED", 300),
			    container(&w, "a2", "u1", "a", "EXITED", 100), container(&w, "a3", "u1", "a", "RUNNING", 10),
			    container(&w, "b0", "u1", "b", "EXITED", 150), container(&w, "d0", "u2", "d", "UNKNOWN", 50));
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		w.o.per_pod = t[i].per_pod;
		w.o.total = t[i].total;
		w.o.min_age_ns = t[i].min_age_s * NS_PER_S;
		w.deleted = t[i].deleted;
		w.ended = t[i].ended;
		CHECK_INT(collect_containers(&w.o, t[i].all_dead, NULL), 0);
		CHECK_STR_ROW(i, buf_str(&w.calls), t[i].want);
		buf_reset(&w.calls);
	}
	world_done(&w);
}

CLOCK_TEST(collect_sandboxes)
{
	struct world w;

	world_init(&w);
	w.containers = LIST(&w.arena, container(&w, "a0", "u2", "a", "RUNNING", 10));
	w.sandboxes = LIST(&w.arena, sandbox(&w, "old", "u1", "NOTREADY", 300), sandbox(&w, "new", "u1", "NOTREADY", 100),
			   sandbox(&w, "s-u2", "u2", "NOTREADY", 500), sandbox(&w, "next", "u2", "READY", 10),
			   sandbox(&w, "gone", "u3", "NOTREADY", 10), sandbox(&w, "ready", "u3", "READY", 20));
	w.deleted = "u3";
	CHECK_INT(collect_containers(&w.o, false, NULL), 0);
	/* Not the newest of a pod that is there, not those that live or have containers. */
	check_calls(&w, "stopp old\nrmp old\nstopp gone\nrmp gone\n");
	w.ended = "u1";
	CHECK_INT(collect_containers(&w.o, true, NULL), 0);
	check_calls(&w, "stopp old\nrmp old\nstopp new\nrmp new\nstopp gone\nrmp gone\n");
	world_done(&w);
}

/* ---- files ---- */

static const char *file(struct world *w, const char *name, size_t bytes)
{
	str path = arena_printf(&w->arena, "%s/%s", w->root, name);
	char *content = arena_alloc(&w->arena, bytes + 1, 1);

	memset(content, 'x', bytes);
	CHECK_INT(file_make_dirs(arena_str(&w->arena, str_head(path, (size_t)str_rchr(path, '/'))).p, 0755, NULL), 0);
	CHECK_INT(file_replace(path.p, str_span(content, bytes), 0640, NULL), 0);
	return path.p;
}

static int by_name(const struct dirent **x, const struct dirent **y) { return strcmp((*x)->d_name, (*y)->d_name); }

/* The names in a folder, each with a blank behind it. */
static str names(struct world *w, const char *folder)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(4096);
	struct dirent **all;
	int n = scandir(arena_printf(&w->arena, "%s/%s", w->root, folder).p, &all, NULL, by_name);

	for (int i = 0; i < n; i++) {
		if (all[i]->d_name[0] != '.')
			buf_addf(&b, "%s ", all[i]->d_name);
		free(all[i]);
	}
	if (n >= 0)
		free(all);
	return arena_str(&w->arena, buf_str(&b));
}

static void link_to(struct world *w, const char *target, const char *name)
{
	CHECK_INT(symlink(target, arena_printf(&w->arena, "%s/%s", w->root, name).p), 0);
}

CLOCK_TEST(collect_folders_and_links)
{
	static const struct timespec long_ago[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	struct world w;

	world_init(&w);
	file(&w, "pods/ns_p_u1/a/0.log", 1);
	file(&w, "pods/ns_p_u2/a/0.log", 1);
	file(&w, "pods/other", 1);
	const char *log = file(&w, "pods/ns_p_u3/a/0.log", 1);
	file(&w, "containers/plain.log", 1);
	const char *kept = file(&w, "pods/ns_p_u2/b/0.log", 1);
	link_to(&w, log, "containers/p_ns_a-x.log");
	link_to(&w, kept, "containers/p_ns_b-2.log");
	link_to(&w, kept, "containers/p_ns_b-1.log"); /* of a container that was removed with the runtime's commands */
	CHECK_INT(utimensat(AT_FDCWD, arena_printf(&w.arena, "%s/containers/p_ns_b-1.log", w.root).p, long_ago, AT_SYMLINK_NOFOLLOW), 0);
	link_to(&w, "/nowhere", "containers/p_ns_a-dead.log");
	link_to(&w, "/nowhere", "containers/p_ns_a-alive.log"); /* it is being rotated */
	w.deleted = "u1 u3 other";
	CHECK_INT(collect_containers(&w.o, false, NULL), 0);
	CHECK_STR(names(&w, "pods"), "ns_p_u2 other ");
	CHECK_STR(names(&w, "containers"), "p_ns_a-alive.log p_ns_b-2.log plain.log ");
	world_done(&w);
}

/* With a container go its log and what was rotated from it, and nothing of the next one. */
CLOCK_TEST(collect_logs_of_containers)
{
	struct world w;

	world_init(&w);
	w.containers = LIST(&w.arena, container(&w, "a0", "u1", "a", "EXITED", 300), container(&w, "a1", "u1", "a", "EXITED", 200));
	file(&w, "pods/ns_p_u1/a/0.log", 1);
	file(&w, "pods/ns_p_u1/a/0.log.20260101-000000.gz", 1);
	file(&w, "pods/ns_p_u1/a/1.log", 1);
	file(&w, "pods/ns_p_u1/a/10.log", 1);
	CHECK_INT(collect_containers(&w.o, false, NULL), 0);
	check_calls(&w, "rm a0\n");
	CHECK_STR(names(&w, "pods/ns_p_u1/a"), "1.log 10.log ");
	world_done(&w);
}

static size_t unpacked(struct world *w, const char *name)
{
	char room[2048];
	gzFile z = gzopen(arena_printf(&w->arena, "%s/%s", w->root, name).p, "rb");
	int n = z ? gzread(z, room, sizeof room) : -1;

	if (z)
		gzclose(z);
	return n < 0 ? 0 : (size_t)n;
}

CLOCK_TEST(collect_rotation)
{
	const char *folder = "pods/ns_p_u1/a";
	struct world w;
	struct stat st;

	setenv("TZ", "UTC", 1);
	world_init(&w);
	w.o.log_max_bytes = 100;
	w.o.log_max_files = 4;
	w.containers = LIST(&w.arena, container(&w, "a0", "u1", "a", "RUNNING", 300), container(&w, "b1", "u2", "b", "EXITED", 300));
	file(&w, "pods/ns_p_u1/a/0.log", 99);
	file(&w, "pods/ns_p_u2/b/1.log", 1000);
	CHECK_INT(collect_logs(&w.o, NULL), 0);
	check_calls(&w, "");

	file(&w, "pods/ns_p_u1/a/0.log", 1000);
	CHECK_INT(collect_logs(&w.o, NULL), 0);
	check_calls(&w, "reopen a0\n");
	CHECK_STR(names(&w, folder), "0.log.20231114-221320 ");

	/* The one before is compressed; what an end in the middle of that has left goes. */
	file(&w, "pods/ns_p_u1/a/0.log", 200);
	file(&w, "pods/ns_p_u1/a/0.log.20230101-000000.tmp", 10);
	file(&w, "pods/ns_p_u1/a/0.log.20230102-000000", 10);
	file(&w, "pods/ns_p_u1/a/0.log.20230102-000000.gz", 10);
	CHECK_INT(fiber_sleep_ms(1000, NULL), 0);
	CHECK_INT(collect_logs(&w.o, NULL), 0);
	check_calls(&w, "reopen a0\n");
	CHECK_STR(names(&w, folder), "0.log.20230102-000000.gz 0.log.20231114-221320.gz 0.log.20231114-221321 ");
	CHECK_INT(unpacked(&w, "pods/ns_p_u1/a/0.log.20231114-221320.gz"), 1000);
	CHECK_INT(stat(arena_printf(&w.arena, "%s/%s/0.log.20231114-221320.gz", w.root, folder).p, &st), 0);
	CHECK_INT(st.st_mode & 0777, 0640);

	/* With the one that is written there are never more than four; it is gone at the moment. */
	file(&w, "pods/ns_p_u1/a/0.log", 300);
	CHECK_INT(fiber_sleep_ms(1000, NULL), 0);
	CHECK_INT(collect_logs(&w.o, NULL), 0);
	buf_reset(&w.calls);
	CHECK_STR(names(&w, folder), "0.log.20231114-221320.gz 0.log.20231114-221321.gz 0.log.20231114-221322 ");

	/* The runtime does not open it anew: it stays what it was. */
	w.reopen_fails = true;
	file(&w, "pods/ns_p_u1/a/0.log", 400);
	CHECK_INT(fiber_sleep_ms(1000, NULL), 0);
	CHECK_INT(collect_logs(&w.o, NULL), 0);
	CHECK_STR(names(&w, folder), "0.log 0.log.20231114-221321.gz 0.log.20231114-221322.gz ");
	world_done(&w);
}

/* A kubelet that ended between renaming and opening anew has left no log. */
CLOCK_TEST(collect_missing_log)
{
	struct world w;

	world_init(&w);
	w.o.log_max_bytes = 100;
	w.o.log_max_files = 4;
	w.containers = LIST(&w.arena, container(&w, "a0", "u1", "a", "RUNNING", 300));
	CHECK_INT(collect_logs(&w.o, NULL), 0);
	check_calls(&w, "reopen a0\n");
	w.o.log_max_bytes = 0;
	CHECK_INT(collect_logs(&w.o, NULL), 0);
	check_calls(&w, "");
	world_done(&w);
}
