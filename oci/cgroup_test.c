#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "base/test.h"
#include "codec/json.h"
#include "oci/cgroup_priv.h"

static struct val json(struct arena *a, const char *text)
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

/* ---- with the kernel ---- */

static char name[64];

static struct cgroup *new_cgroup(void)
{
	if (geteuid() != 0) {
		print_message("# needs root\n");
		skip();
	}
	snprintf(name, sizeof(name), "/c8s-test-%llx", (unsigned long long)random_u64());
	struct cgroup *c;
	struct err err = ERR_INIT;
	if (cgroup_make(name, &c, &err) < 0) {
		print_message("# no cgroup can be made here: %s\n", err.msg);
		skip();
	}
	return c;
}

static void end_cgroup(struct cgroup *c)
{
	struct err err = ERR_INIT;
	if (cgroup_remove(c, &err) < 0)
		fail_msg("%s", err.msg);
	cgroup_free(c);
	CHECK_INT(cgroup_open(name, &c, &err), -ERR_NOT_FOUND);
}

/* Needs a controller of this machine's v1 or v2. */
static void need(struct cgroup *c, enum cgroup_controller controller, const char *v2_file)
{
	const struct cgroup_hierarchy *h = cgroup_hierarchy(c, controller);
	if (h && (c->mode != CGROUP_V2 || faccessat(h->fd, v2_file, F_OK, 0) == 0))
		return;
	print_message("# no controller %s here\n", cgroup_controller_names[controller]);
	end_cgroup(c);
	skip();
}

static void limit(struct cgroup *c, const char *resources)
{
	struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;
	if (cgroup_limit(c, json(&a, resources), &err) < 0)
		fail_msg("%s: %s", resources, err.msg);
	arena_done(&a);
}

static int limit_fails(struct cgroup *c, const char *resources, struct err *err)
{
	struct arena a = ARENA_INIT;
	*err = (struct err)ERR_INIT;
	int r = cgroup_limit(c, json(&a, resources), err);
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
	struct cgroup *c = new_cgroup();
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
	end_cgroup(c);
}

TEST(cgroup_memory_grows_and_shrinks)
{
	struct cgroup *c = new_cgroup();
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
	end_cgroup(c);
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
	struct cgroup *c = new_cgroup();
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
	end_cgroup(c);
	arena_done(&a);
}

static int burn(void)
{
	for (int64_t until = clock_now_ns() + 200 * NS_PER_MS; clock_now_ns() < until; )
		;
	return 0;
}

TEST(cgroup_cpu)
{
	struct cgroup *c = new_cgroup();
	need(c, CGROUP_CPU, "cpu.max");
	limit(c, "{\"cpu\":{\"shares\":512,\"quota\":10000,\"period\":50000}}");
	bool v2 = c->mode == CGROUP_V2;
	if (v2) {
		CHECK_STR(read_text(c, CGROUP_CPU, "cpu.max"), "10000 50000");
	} else {
		CHECK_STR(read_text(c, CGROUP_CPU, "cpu.shares"), "512");
		CHECK_STR(read_text(c, CGROUP_CPU, "cpu.cfs_quota_us"), "10000");
		CHECK_STR(read_text(c, CGROUP_CPU, "cpu.cfs_period_us"), "50000");
	}
	CHECK(WIFEXITED(wait_for(child_in(c, burn))));
	struct cgroup_stats s;
	CHECK_INT(cgroup_stats(c, &s, NULL), 0);
	CHECK(s.cpu_usage_ns > 10 * NS_PER_MS && s.cpu_usage_ns < 180 * NS_PER_MS && s.cpu_periods > 0 && s.cpu_throttled_periods > 0 &&
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
	end_cgroup(c);
}

TEST(cgroup_cpuset_is_inherited)
{
	struct err err = ERR_INIT;
	struct cgroup *above = new_cgroup(), *c;
	need(above, CGROUP_CPUSET, "cpuset.cpus");
	char path[96];
	snprintf(path, sizeof(path), "%s/x/y", name);
	CHECK_INT(cgroup_make(path, &c, &err), 0);
	CHECK(read_text(c, CGROUP_CPUSET, c->mode == CGROUP_V2 ? "cpuset.cpus.effective" : "cpuset.cpus").n > 0);
	limit(c, "{\"cpu\":{\"cpus\":\"0\",\"mems\":\"0\"}}");
	CHECK_STR(read_text(c, CGROUP_CPUSET, "cpuset.cpus"), "0");
	CHECK(limit_fails(c, "{\"cpu\":{\"cpus\":\"9999\"}}", &err) < 0);
	CHECK(str_find(err_str(&err), STR("write \"9999\" to /")) == 0);
	cgroup_free(c);
	end_cgroup(above);      /* with what is below it */
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
	struct cgroup *c = new_cgroup();
	need(c, CGROUP_FREEZER, "cgroup.freeze");
	pid_t pid = child_in(c, count);
	CHECK_INT(cgroup_freeze(c, true, &err), 0);
	CHECK(state_of(pid) != 'R');
	uint64_t before = cpu_of(c);
	usleep(20000);
	CHECK(cpu_of(c) == before);
	/* A signal does not end the pause, but waits for its end. */
	CHECK_INT(cgroup_kill(c, SIGTERM, &err), 0);
	usleep(5000);
	CHECK_INT(waitpid(pid, NULL, WNOHANG), 0);
	CHECK_INT(cgroup_freeze(c, false, &err), 0);
	int status = wait_for(pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	/* Death does. */
	pid = child_in(c, count);
	CHECK_INT(cgroup_freeze(c, true, &err), 0);
	CHECK_INT(cgroup_kill(c, SIGKILL, &err), 0);
	status = wait_for(pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	end_cgroup(c);
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
	struct cgroup *c = new_cgroup();
	need(c, CGROUP_PIDS, "pids.max");
	limit(c, "{\"pids\":{\"limit\":30}}");
	pid_t pid = child_in(c, fork_bomb);
	usleep(20000);
	CHECK_INT(cgroup_kill(c, SIGKILL, &err), 0);
	int status = wait_for(pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	end_cgroup(c);
}

TEST(cgroup_below_and_busy)
{
	struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;
	struct cgroup *above = new_cgroup(), *c;
	char path[96];
	snprintf(path, sizeof(path), "%s/x/../y//.", name);
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
	end_cgroup(above);
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
	snprintf(path, sizeof(path), "%s/a/b", name);
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
	struct cgroup *c = new_cgroup();
	int status = wait_for(child_in(c, make_relative));
	CHECK(WIFEXITED(status));
	CHECK_INT(WEXITSTATUS(status), 0);
	end_cgroup(c);
}
