#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "base/test.h"
#include "codec/json.h"
#include "oci/cgroup_priv.h"
#include "oci/cgroup_test.h"

struct val test_json(struct arena *a, const char *text)
{
	struct val v;
	struct err err = ERR_INIT;
	if (json_decode(a, str_of(text), &(struct json_decode_options){ 0 }, &v, &err) < 0)
		fail_msg("%s: %s", err.msg, text);
	return v;
}

TEST(cgroup_conversions)
{
	static const struct { uint64_t shares, weight; } t[] = {
		{ 0, 0 }, { 1, 1 }, { 2, 1 }, { 3, 2 }, { 102, 17 }, { 1024, 100 }, { 2048, 174 }, { 262143, 10000 }, { 262144, 10000 },
		{ 999999, 10000 },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_ROW(i, cgroup_weight_of_shares(t[i].shares) == t[i].weight);
	CHECK_INT(cgroup_io_weight(0), 0);
	CHECK_INT(cgroup_io_weight(10), 1);
	CHECK_INT(cgroup_io_weight(500), 4950);
	CHECK_INT(cgroup_io_weight(1000), 10000);
	static const struct { int64_t swap, limit; int r; int64_t want; } s[] = {
		{ 0, 0, 0, -2 }, { 0, 100, 0, -2 }, { 0, -1, 0, -1 }, { -1, 100, 0, -1 }, { 150, 100, 0, 50 }, { 100, 100, 0, 0 },
		{ 150, -1, 0, 150 }, { 150, 0, -ERR_INVALID, 0 }, { 50, 100, -ERR_INVALID, 0 },
	};
	for (size_t i = 0; i < ARRAY_LEN(s); i++) {
		int64_t got;
		int r = cgroup_v2_swap(s[i].swap, s[i].limit, &got, NULL);
		CHECK_ROW(i, r == s[i].r && (r < 0 || got == s[i].want));
	}
}

TEST(cgroup_figures)
{
	uint64_t v = 1;
	CHECK(cgroup_parse_u64(STR("max\n"), &v) && v == UINT64_MAX);
	CHECK(cgroup_parse_u64(STR("18446744073709551615"), &v) && v == UINT64_MAX);
	CHECK(!cgroup_parse_u64(STR("18446744073709551616"), &v));
	CHECK(!cgroup_parse_u64(STR(""), &v) && !cgroup_parse_u64(STR("-1"), &v));
	CHECK(cgroup_line_u64(STR("a 1\noom_kill 7\nb 2\n"), STR("oom_kill"), &v) && v == 7);
	CHECK(!cgroup_line_u64(STR("a 1\noom_kill 7\n"), STR("oom"), &v));
}

/* ---- v2, with files of our own ---- */

static char dir[64];

/* A folder that looks like a cgroup of v2 with these files. */
static struct cgroup fake_v2(const char *const *files, size_t n)
{
	snprintf(dir, sizeof(dir), "/tmp/c8s-cgroup-XXXXXX");
	CHECK(mkdtemp(dir));
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < n; i++)
		close(openat(fd, files[i], O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	return (struct cgroup){ .mode = CGROUP_V2, .n = 1, .hierarchies = { { 1U << CGROUP_UNIFIED, fd, -1, (char *)"/x", dir } } };
}

static void fake_end(struct cgroup *c, const char *const *files, size_t n)
{
	for (size_t i = 0; i < n; i++)
		unlinkat(c->hierarchies[0].fd, files[i], 0);
	close(c->hierarchies[0].fd);
	rmdir(dir);
}

static void fill(struct cgroup *c, const char *file, const char *text)
{
	int fd = openat(c->hierarchies[0].fd, file, O_WRONLY | O_TRUNC | O_CLOEXEC);
	CHECK_INT(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

TEST(cgroup_v2_limits)
{
	static const char *const files[] = {
		"memory.max", "memory.swap.max", "memory.low", "memory.current", "cpu.weight", "cpu.max", "cpu.max.burst", "cpu.idle",
		"cpuset.cpus", "cpuset.mems", "pids.max", "io.max", "io.weight", "hugetlb.2MB.max", "hugetlb.2MB.rsvd.max", "rdma.max",
		"memory.high",
	};
	static const struct { const char *resources, *file, *want, *error; } t[] = {
		{ "{\"memory\":{\"limit\":100,\"swap\":150}}", "memory.swap.max", "50", NULL },
		{ "{\"memory\":{\"limit\":100,\"swap\":150}}", "memory.max", "100", NULL },
		{ "{\"memory\":{\"limit\":100,\"swap\":100}}", "memory.swap.max", "0", NULL },
		{ "{\"memory\":{\"limit\":100}}", "memory.swap.max", "", NULL },
		{ "{\"memory\":{\"limit\":-1}}", "memory.swap.max", "max", NULL },
		{ "{\"memory\":{\"limit\":-1}}", "memory.max", "max", NULL },
		{ "{\"memory\":{\"reservation\":7}}", "memory.low", "7", NULL },
		{ "{\"memory\":{\"limit\":900,\"checkBeforeUpdate\":true}}", "memory.max", "", "rejecting memory limit 900 <= usage 1000" },
		{ "{\"memory\":{\"swap\":900}}", "memory.max", "", "unable to set swap limit without memory limit" },
		{ "{\"cpu\":{\"shares\":1024}}", "cpu.weight", "100", NULL },
		{ "{\"cpu\":{\"quota\":50000}}", "cpu.max", "50000 100000", NULL },
		{ "{\"cpu\":{\"quota\":-1,\"period\":20000}}", "cpu.max", "max 20000", NULL },
		{ "{\"cpu\":{\"burst\":5}}", "cpu.max.burst", "5", NULL },
		{ "{\"cpu\":{\"idle\":1,\"shares\":2}}", "cpu.idle", "1", NULL },
		{ "{\"cpu\":{\"cpus\":\"0-1\",\"mems\":\"0\"}}", "cpuset.cpus", "0-1", NULL },
		{ "{\"pids\":{\"limit\":0}}", "pids.max", "1", NULL },
		{ "{\"pids\":{\"limit\":-5}}", "pids.max", "max", NULL },
		{ "{\"blockIO\":{\"weight\":1000}}", "io.weight", "10000", NULL },
		{ "{\"blockIO\":{\"throttleWriteIOPSDevice\":[{\"major\":8,\"minor\":1,\"rate\":9}]}}", "io.max", "8:1 wiops=9", NULL },
		{ "{\"blockIO\":{\"throttleReadBpsDevice\":[{\"major\":8,\"minor\":1,\"rate\":0}]}}", "io.max", "8:1 rbps=max", NULL },
		{ "{\"hugepageLimits\":[{\"pageSize\":\"2MB\",\"limit\":4194304}]}", "hugetlb.2MB.rsvd.max", "4194304", NULL },
		{ "{\"hugepageLimits\":[{\"pageSize\":\"../2MB\",\"limit\":0}]}", "hugetlb.2MB.max", "",
		  "linux.resources.hugepageLimits: \"../2MB\" is no page size" },
		{ "{\"rdma\":{\"mlx\":{\"hcaHandles\":3,\"hcaObjects\":4}}}", "rdma.max", "mlx hca_handle=3 hca_object=4", NULL },
		{ "{\"unified\":{\"memory.high\":\"12\"}}", "memory.high", "12", NULL },
		{ "{\"unified\":{\"../memory.high\":\"12\"}}", "memory.high", "",
		  "unified resource \"../memory.high\" must be a file name (no slashes)" },
		{ "{\"unified\":{\"memory\":\"12\"}}", "memory.high", "", "unified resource \"memory\" must be in the form CONTROLLER.PARAMETER" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct arena a = ARENA_INIT;
		struct err err = ERR_INIT;
		struct cgroup c = fake_v2(files, ARRAY_LEN(files));
		fill(&c, "memory.current", "1000\n");
		int r = cgroup_limit(&c, test_json(&a, t[i].resources), &err);
		CHECK_STR_ROW(i, err_str(&err), t[i].error ? t[i].error : "");
		CHECK_ROW(i, (r < 0) == (t[i].error != NULL));
		CLEANUP(buf_done) struct buf text = BUF_INIT(4096);
		CHECK_INT(cgroup_read(&c.hierarchies[0], t[i].file, &text, NULL), 0);
		CHECK_STR_ROW(i, buf_str(&text), t[i].want);
		fake_end(&c, files, ARRAY_LEN(files));
		arena_done(&a);
	}
}

TEST(cgroup_v2_stats)
{
	static const char *const files[] = { "cgroup.procs", "cpu.stat", "memory.current", "memory.max", "memory.swap.current",
					     "memory.swap.max", "memory.stat", "memory.events", "pids.current", "pids.max", "io.stat" };
	struct cgroup c = fake_v2(files, ARRAY_LEN(files));
	fill(&c, "cpu.stat", "usage_usec 30\nuser_usec 20\nsystem_usec 10\nnr_periods 4\nnr_throttled 3\nthrottled_usec 2\n");
	fill(&c, "memory.current", "1000\n");
	fill(&c, "memory.max", "max\n");
	fill(&c, "memory.swap.current", "5\n");
	fill(&c, "memory.swap.max", "77\n");
	fill(&c, "memory.stat", "anon 300\nfile 400\ninactive_file 250\npgfault 8\npgmajfault 9\n");
	fill(&c, "memory.events", "low 0\noom 2\noom_kill 1\n");
	fill(&c, "pids.current", "6\n");
	fill(&c, "pids.max", "60\n");
	fill(&c, "io.stat", "8:0 rbytes=10 wbytes=20 rios=1 wios=2\n8:16 rbytes=1 wbytes=2\n");
	struct cgroup_stats s;
	CHECK_INT(cgroup_stats(&c, &s, NULL), 0);
	CHECK(s.cpu_usage_ns == 30000 && s.cpu_user_ns == 20000 && s.cpu_system_ns == 10000 && s.cpu_periods == 4 &&
	      s.cpu_throttled_periods == 3 && s.cpu_throttled_ns == 2000);
	CHECK(s.memory_usage == 1000 && s.memory_limit == UINT64_MAX && s.memory_rss == 300 && s.memory_cache == 400 &&
	      s.memory_working_set == 750 && s.memory_swap == 5 && s.memory_swap_limit == 77 && s.memory_page_faults == 8 &&
	      s.memory_major_page_faults == 9 && s.oom_kills == 1);
	CHECK(s.pids == 6 && s.pids_limit == 60 && s.io_read_bytes == 11 && s.io_write_bytes == 22);
	fake_end(&c, files, ARRAY_LEN(files));
}

/* ---- with the kernel ---- */

char test_cgroup_path[64];

static struct {
	unsigned n;
	char paths[64][sizeof(test_cgroup_path)];
} made;

struct cgroup *test_cgroup(void)
{
	if (geteuid() != 0) {
		print_message("# needs root\n");
		skip();
	}
	snprintf(test_cgroup_path, sizeof(test_cgroup_path), "/c8s-test-%llx", (unsigned long long)random_u64());
	struct cgroup *c;
	struct err err = ERR_INIT;
	if (cgroup_make(test_cgroup_path, &c, &err) < 0) {
		print_message("# no cgroup can be made here: %s\n", err.msg);
		skip();
	}
	if (made.n < ARRAY_LEN(made.paths))
		memcpy(made.paths[made.n++], test_cgroup_path, sizeof(test_cgroup_path));
	return c;
}

/* Children of tests leave by _exit, and do not come here. */
__attribute__((destructor)) static void clean_up(void)
{
	for (unsigned i = 0; i < made.n; i++) {
		struct cgroup *c;
		if (cgroup_open(made.paths[i], &c, NULL) < 0)
			continue;
		(void)cgroup_kill(c, SIGKILL, NULL);
		(void)cgroup_freeze(c, false, NULL);
		(void)cgroup_remove(c, NULL);
		cgroup_free(c);
	}
}

void test_cgroup_end(struct cgroup *c)
{
	struct err err = ERR_INIT;
	if (cgroup_remove(c, &err) < 0)
		fail_msg("%s", err.msg);
	cgroup_free(c);
	CHECK_INT(cgroup_open(test_cgroup_path, &c, &err), -ERR_NOT_FOUND);
}

/* Needs a controller of this machine's v1 or v2. */
static void need(struct cgroup *c, enum cgroup_controller controller, const char *v2_file)
{
	const struct cgroup_hierarchy *h = cgroup_hierarchy(c, controller);
	if (h && (c->mode != CGROUP_V2 || faccessat(h->fd, v2_file, F_OK, 0) == 0))
		return;
	print_message("# no controller %s here\n", cgroup_controller_names[controller]);
	test_cgroup_end(c);
	skip();
}

static void limit(struct cgroup *c, const char *resources)
{
	struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;
	if (cgroup_limit(c, test_json(&a, resources), &err) < 0)
		fail_msg("%s: %s", resources, err.msg);
	arena_done(&a);
}

static int limit_fails(struct cgroup *c, const char *resources, struct err *err)
{
	struct arena a = ARENA_INIT;
	*err = (struct err)ERR_INIT;
	int r = cgroup_limit(c, test_json(&a, resources), err);
	arena_done(&a);
	return r;
}

/* A child in the cgroup that runs a function as soon as it is in it. */
static pid_t child_in(struct cgroup *c, int (*run)(void))
{
	int go[2];
	CHECK_INT(pipe2(go, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		char byte;
		close(go[1]);
		_exit(read(go[0], &byte, 1) == 1 ? run() : 99);
	}
	struct err err = ERR_INIT;
	if (cgroup_add(c, pid, &err) < 0)
		fail_msg("%s", err.msg);
	CHECK_INT(write(go[1], "x", 1), 1);
	close(go[0]), close(go[1]);
	return pid;
}

static int wait_for(pid_t pid)
{
	int status;
	CHECK(waitpid(pid, &status, 0) == pid);
	return status;
}

static int sleep_forever(void)
{
	while (pause() < 0)
		;
	return 0;
}

static int eat_memory(void)
{
	for (int i = 0; i < 256; i++) {
		char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			return 1;
		memset(p, i + 1, 1 << 20);
	}
	return 0;
}

static str read_text(struct cgroup *c, enum cgroup_controller controller, const char *file)
{
	static char text[256];
	CLEANUP(buf_done) struct buf b = BUF_INIT(sizeof(text));
	const struct cgroup_hierarchy *h = cgroup_hierarchy(c, controller);
	struct err err = ERR_INIT;
	if (!h || cgroup_read(h, file, &b, &err) < 0)
		fail_msg("%s: %s", file, err.msg);
	str s = str_trim(buf_str(&b));
	memcpy(text, s.p, s.n);
	return str_span(text, s.n);
}

TEST(cgroup_memory)
{
	struct cgroup *c = test_cgroup();
	need(c, CGROUP_MEMORY, "memory.max");
	struct err err = ERR_INIT;
	limit(c, "{\"memory\":{\"limit\":20971520,\"swap\":20971520,\"reservation\":10485760}}");
	int oom = cgroup_oom_fd(c, &err);
	CHECK(oom >= 0);
	CHECK_INT(poll(&(struct pollfd){ .fd = oom, .events = POLLIN }, 1, 0), 0);
	int status = wait_for(child_in(c, eat_memory));
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	CHECK_INT(poll(&(struct pollfd){ .fd = oom, .events = POLLIN }, 1, 5000), 1);
	struct cgroup_stats s;
	CHECK_INT(cgroup_stats(c, &s, &err), 0);
	CHECK(s.oom_kills >= 1 && s.memory_limit == 20971520 && s.memory_page_faults > 1000);
	close(oom);
	test_cgroup_end(c);
}

TEST(cgroup_memory_grows_and_shrinks)
{
	struct cgroup *c = test_cgroup();
	need(c, CGROUP_MEMORY, "memory.max");
	/* Both ways, in steps that would be refused in the wrong order. */
	limit(c, "{\"memory\":{\"limit\":20971520,\"swap\":20971520}}");
	limit(c, "{\"memory\":{\"limit\":104857600,\"swap\":104857600}}");
	limit(c, "{\"memory\":{\"limit\":10485760,\"swap\":20971520}}");
	struct cgroup_stats s;
	CHECK_INT(cgroup_stats(c, &s, NULL), 0);
	CHECK(s.memory_limit == 10485760 && s.memory_swap_limit == 10485760);
	limit(c, "{\"memory\":{\"limit\":-1}}");
	CHECK_INT(cgroup_stats(c, &s, NULL), 0);
	CHECK(s.memory_limit == UINT64_MAX && s.memory_swap_limit == UINT64_MAX);
	struct err err;
	CHECK(limit_fails(c, "{\"memory\":{\"limit\":-2}}", &err) == -ERR_INVALID);
	CHECK_STR(err_str(&err), "linux.resources.memory.limit: -2 is out of range");
	CHECK(limit_fails(c, "{\"memory\":{\"limit\":\"1\"}}", &err) == -ERR_INVALID);
	test_cgroup_end(c);
}

/* Forks until it is not allowed to: how many. */
static int fork_some(void)
{
	int n = 0;
	for (; n < 50; n++) {
		pid_t pid = fork();
		if (pid < 0)
			break;
		if (pid == 0)
			sleep_forever();
	}
	return n;
}

TEST(cgroup_pids_limit)
{
	struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;
	struct cgroup *c = test_cgroup();
	need(c, CGROUP_PIDS, "pids.max");
	limit(c, "{\"pids\":{\"limit\":5}}");
	int status = wait_for(child_in(c, fork_some));
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 4);
	struct cgroup_stats s;
	CHECK_INT(cgroup_stats(c, &s, &err), 0);
	CHECK(s.pids == 4 && s.pids_limit == 5);
	pid_t *pids;
	size_t n;
	CHECK_INT(cgroup_pids(c, &a, &pids, &n, &err), 0);
	CHECK_INT(n, 4);
	CHECK_INT(cgroup_kill(c, SIGKILL, &err), 0);
	limit(c, "{\"pids\":{\"limit\":-1}}");
	CHECK_STR(read_text(c, CGROUP_PIDS, "pids.max"), "max");
	test_cgroup_end(c);
	arena_done(&a);
}

/* 20 ms of processor time. */
static int burn(void)
{
	struct timespec used = { 0 };
	while (used.tv_sec == 0 && used.tv_nsec < 20 * NS_PER_MS)
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return 0;
}

TEST(cgroup_cpu)
{
	struct cgroup *c = test_cgroup();
	need(c, CGROUP_CPU, "cpu.max");
	limit(c, "{\"cpu\":{\"shares\":512,\"quota\":2000,\"period\":50000}}");
	bool v2 = c->mode == CGROUP_V2;
	if (v2) {
		CHECK_STR(read_text(c, CGROUP_CPU, "cpu.max"), "2000 50000");
	} else {
		CHECK_STR(read_text(c, CGROUP_CPU, "cpu.shares"), "512");
		CHECK_STR(read_text(c, CGROUP_CPU, "cpu.cfs_quota_us"), "2000");
		CHECK_STR(read_text(c, CGROUP_CPU, "cpu.cfs_period_us"), "50000");
	}
	CHECK(WIFEXITED(wait_for(child_in(c, burn))));
	struct cgroup_stats s;
	CHECK_INT(cgroup_stats(c, &s, NULL), 0);
	CHECK(s.cpu_usage_ns > 10 * NS_PER_MS && s.cpu_usage_ns < 100 * NS_PER_MS && s.cpu_periods > 0 && s.cpu_throttled_periods > 0 &&
	      s.cpu_throttled_ns > 0);
	/* A smaller period alone would be more than all processors for a moment: with its quota it goes. */
	limit(c, "{\"cpu\":{\"quota\":1000,\"period\":1000}}");
	limit(c, "{\"cpu\":{\"quota\":-1}}");
	struct err err;
	CHECK(limit_fails(c, "{\"cpu\":{\"quota\":5}}", &err) < 0 && err.sys == EINVAL);
	CHECK(str_find(err_str(&err), v2 ? STR("cpu.max") : STR("cpu.cfs_quota_us")) >= 0);
	if (!v2) {
		CHECK(limit_fails(c, "{\"cpu\":{\"shares\":1}}", &err) == -ERR_INVALID);
		CHECK_STR(err_str(&err), "the minimum allowed cpu-shares is 2");
		CHECK(limit_fails(c, "{\"unified\":{\"cpu.max\":\"max\"}}", &err) == -ERR_INVALID);
	}
	test_cgroup_end(c);
}

TEST(cgroup_cpuset_is_inherited)
{
	struct err err = ERR_INIT;
	struct cgroup *above = test_cgroup(), *c;
	need(above, CGROUP_CPUSET, "cpuset.cpus");
	char path[96];
	snprintf(path, sizeof(path), "%s/x/y", test_cgroup_path);
	CHECK_INT(cgroup_make(path, &c, &err), 0);
	CHECK(read_text(c, CGROUP_CPUSET, c->mode == CGROUP_V2 ? "cpuset.cpus.effective" : "cpuset.cpus").n > 0);
	limit(c, "{\"cpu\":{\"cpus\":\"0\",\"mems\":\"0\"}}");
	CHECK_STR(read_text(c, CGROUP_CPUSET, "cpuset.cpus"), "0");
	CHECK(limit_fails(c, "{\"cpu\":{\"cpus\":\"9999\"}}", &err) < 0);
	CHECK(str_find(err_str(&err), STR("write \"9999\" to /")) == 0);
	cgroup_free(c);
	test_cgroup_end(above);      /* with what is below it */
}

/* State of a process as /proc has it. */
static char state_of(pid_t pid)
{
	char path[64], text[512], *end;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	close(fd);
	text[MAX(n, (ssize_t)0)] = '\0';
	return (end = strrchr(text, ')')) ? end[2] : '?';
}

static int count(void)
{
	volatile unsigned long i = 1;
	while (i)
		i++;
	return 0;
}

static uint64_t cpu_of(struct cgroup *c)
{
	struct cgroup_stats s;
	CHECK_INT(cgroup_stats(c, &s, NULL), 0);
	return s.cpu_usage_ns;
}

TEST(cgroup_freezes)
{
	struct err err = ERR_INIT;
	struct cgroup *c = test_cgroup();
	need(c, CGROUP_FREEZER, "cgroup.freeze");
	pid_t pid = child_in(c, count);
	CHECK_INT(cgroup_freeze(c, true, &err), 0);
	CHECK(state_of(pid) != 'R');
	uint64_t before = cpu_of(c);
	usleep(20000);
	CHECK(cpu_of(c) == before);
	/* A signal does not end the pause, but waits for its end; under v2 one that is deadly need not wait. */
	CHECK_INT(cgroup_kill(c, SIGTERM, &err), 0);
	usleep(5000);
	CHECK(cgroup_mode() == CGROUP_V2 || waitpid(pid, NULL, WNOHANG) == 0);
	CHECK_INT(cgroup_freeze(c, false, &err), 0);
	int status = wait_for(pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	/* Death does. */
	pid = child_in(c, count);
	CHECK_INT(cgroup_freeze(c, true, &err), 0);
	CHECK_INT(cgroup_kill(c, SIGKILL, &err), 0);
	status = wait_for(pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	test_cgroup_end(c);
}

static int fork_bomb(void)
{
	while (fork() >= 0 || usleep(100) <= 0)
		;
	return 0;
}

TEST(cgroup_kills_what_forks)
{
	struct err err = ERR_INIT;
	struct cgroup *c = test_cgroup();
	need(c, CGROUP_PIDS, "pids.max");
	limit(c, "{\"pids\":{\"limit\":30}}");
	pid_t pid = child_in(c, fork_bomb);
	usleep(20000);
	CHECK_INT(cgroup_kill(c, SIGKILL, &err), 0);
	int status = wait_for(pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	test_cgroup_end(c);
}

TEST(cgroup_below_and_busy)
{
	struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;
	struct cgroup *above = test_cgroup(), *c;
	char path[96];
	snprintf(path, sizeof(path), "%s/x/../y//.", test_cgroup_path);
	CHECK_INT(cgroup_make(path, &c, &err), 0);
	pid_t pid = child_in(c, sleep_forever);
	pid_t *pids;
	size_t n;
	CHECK_INT(cgroup_pids(above, &a, &pids, &n, &err), 0);
	CHECK(n == 1 && pids[0] == pid);
	CHECK(cgroup_remove(c, &err) < 0 && err.sys == EBUSY);
	CHECK_INT(cgroup_kill(above, SIGKILL, &err), 0);
	wait_for(pid);
	cgroup_free(c);
	test_cgroup_end(above);
	arena_done(&a);
}

TEST(cgroup_of_our_own)
{
	struct err err = ERR_INIT;
	struct cgroup *c;
	if (geteuid() != 0)
		skip();
	CHECK_INT(cgroup_open("/", &c, &err), 0);
	CHECK_INT(cgroup_freeze(c, true, &err), -ERR_FORBIDDEN);
	CHECK_INT(cgroup_kill(c, SIGKILL, &err), -ERR_FORBIDDEN);
	CHECK_INT(cgroup_remove(c, &err), -ERR_FORBIDDEN);
	cgroup_free(c);
	CHECK_INT(cgroup_open("", &c, &err), -ERR_INVALID);
	CHECK_INT(cgroup_open("/../c8s-test-nowhere", &c, &err), -ERR_NOT_FOUND);
}

static int make_relative(void)
{
	struct cgroup *c, *same;
	char path[96];
	snprintf(path, sizeof(path), "%s/a/b", test_cgroup_path);
	if (cgroup_make("../a/b", &c, NULL) < 0 || cgroup_open(path, &same, NULL) < 0 || c->n != same->n)
		return 1;
	for (size_t i = 0; i < c->n; i++)
		if (!str_eq(str_of(c->hierarchies[i].dir), str_of(same->hierarchies[i].dir)))
			return 2;
	cgroup_free(c);
	cgroup_free(same);
	return 0;
}

TEST(cgroup_relative_path)
{
	struct cgroup *c = test_cgroup();
	int status = wait_for(child_in(c, make_relative));
	CHECK(WIFEXITED(status));
	CHECK_INT(WEXITSTATUS(status), 0);
	test_cgroup_end(c);
}

/* Whether a process is in all hierarchies of it. */
static bool is_in(struct cgroup *c, pid_t pid)
{
	struct arena a = ARENA_INIT;
	bool all = true;
	for (size_t i = 0; i < c->n; i++) {
		struct cgroup one = { .mode = c->mode, .n = 1, .hierarchies = { c->hierarchies[i] } };
		pid_t *pids;
		size_t n;
		bool found = false;
		CHECK_INT(cgroup_pids(&one, &a, &pids, &n, NULL), 0);
		for (size_t k = 0; k < n; k++)
			found = found || pids[k] == pid;
		all = all && found;
	}
	arena_done(&a);
	return all;
}

/* A child that is cloned into v2's part, enters v1's, tells whether it could, and waits for its end. */
static pid_t joined(struct cgroup *c, uint64_t flags, int *ret)
{
	int told[2];
	CHECK_INT(pipe2(told, O_CLOEXEC), 0);
	struct clone_args args = { .flags = flags | (cgroup_fd(c) >= 0 ? CLONE_INTO_CGROUP : 0), .exit_signal = SIGCHLD,
				   .cgroup = (uint64_t)cgroup_fd(c) };
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	CHECK(pid >= 0);
	if (pid == 0) {
		int r = cgroup_join(c, NULL);
		_exit(write(told[1], &r, sizeof(r)) == sizeof(r) ? sleep_forever() : 1);
	}
	close(told[1]);
	CHECK_INT(read(told[0], ret, sizeof(*ret)), sizeof(*ret));
	close(told[0]);
	return pid;
}

TEST(cgroup_joins)
{
	static const uint64_t flags[] = { 0, CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUSER };
	struct err err = ERR_INIT;
	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		int r;
		struct cgroup *c = test_cgroup();
		CHECK_INT(cgroup_join_prepare(c, &err), 0);
		pid_t pid = joined(c, flags[i], &r);
		CHECK_ROW(i, r == 0 && is_in(c, pid));
		CHECK_ROW(i, cgroup_add(c, pid, &err) == 0);
		CHECK_INT(cgroup_kill(c, SIGKILL, &err), 0);
		wait_for(pid);
		test_cgroup_end(c);
	}
}

static int add_self(void)
{
	struct cgroup *c;
	return cgroup_open(test_cgroup_path, &c, NULL) < 0 || cgroup_add(c, getpid(), NULL) < 0 ? 1 : sleep_forever();
}

TEST(cgroup_adds_itself)
{
	struct err err = ERR_INIT;
	struct cgroup *c = test_cgroup();
	pid_t pid = fork();
	if (pid == 0)
		_exit(add_self());
	for (int i = 0; i < 1000 && !is_in(c, pid); i++)
		usleep(1000);
	CHECK(is_in(c, pid));
	CHECK_INT(cgroup_kill(c, SIGKILL, &err), 0);
	wait_for(pid);
	test_cgroup_end(c);
}

TEST(cgroup_adds_beside)
{
	struct err err = ERR_INIT;
	struct cgroup *above = test_cgroup(), *c;
	const struct cgroup_hierarchy *h = cgroup_hierarchy(above, CGROUP_FREEZER);
	need(above, CGROUP_FREEZER, "cgroup.freeze");
	char path[96];
	snprintf(path, sizeof(path), "%s/x/y", test_cgroup_path);
	CHECK_INT(cgroup_make(path, &c, &err), 0);
	pid_t first = child_in(c, sleep_forever), second = fork();
	if (second == 0)
		_exit(sleep_forever());
	CHECK_INT(cgroup_add_beside(above, h, second, &err), 0);
	CHECK_INT(cgroup_kill(above, SIGKILL, &err), 0);
	int status = wait_for(second);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	wait_for(first);
	cgroup_free(c);
	test_cgroup_end(above);
}
