#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"
#include "oci/cgroup_priv.h"
#include "oci/cgroup_test.h"

/* The few instructions that the program is made of. */
static bool decide(const struct bpf_insn *code, size_t n, char type, unsigned access, uint32_t major, uint32_t minor)
{
	const uint32_t context[3] = { (type == 'b' ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR) | access << 16, major, minor };
	uint32_t r[11] = { 0 };
	for (size_t at = 0; at < n; at++) {
		const struct bpf_insn *i = &code[at];
		uint32_t *dst = &r[i->dst_reg], src = r[i->src_reg], imm = (uint32_t)i->imm;
		bool jump = false;
		switch (i->code) {
		case BPF_LDX | BPF_MEM | BPF_W: *dst = context[i->off / 4]; break;
		case BPF_ALU | BPF_MOV | BPF_X: *dst = src; break;
		case BPF_ALU64 | BPF_MOV | BPF_K: *dst = imm; break;
		case BPF_ALU | BPF_AND | BPF_K: *dst &= imm; break;
		case BPF_ALU | BPF_RSH | BPF_K: *dst >>= imm; break;
		case BPF_JMP32 | BPF_JNE | BPF_K: jump = *dst != imm; break;
		case BPF_JMP32 | BPF_JSET | BPF_K: jump = *dst & imm; break;
		case BPF_JMP | BPF_JA: jump = true; break;
		case BPF_JMP | BPF_EXIT: return r[0];
		default: fail_msg("instruction %zu has code %x", at, i->code);
		}
		if (jump)
			at += (size_t)i->off;
	}
	fail_msg("the program does not end");
	return false;
}

TEST(device_program)
{
	enum { R = CGROUP_DEVICE_READ, W = CGROUP_DEVICE_WRITE, M = CGROUP_DEVICE_MKNOD };
	static const struct {
		const char *rules;
		char type;
		unsigned access;
		uint32_t major, minor;
		bool want;
	} t[] = {
		/* The defaults: a few devices, and mknod of all. */
		{ "[]", 'c', R | W, 1, 3, true },
		{ "[]", 'c', R, 136, 7, true },
		{ "[]", 'c', R, 1, 1, false },
		{ "[]", 'b', R, 8, 0, false },
		{ "[]", 'b', M, 8, 0, true },
		{ "[]", 'b', M | R, 8, 0, false },
		/* The last that speaks of it counts, for each access. */
		{ "[{\"allow\":false,\"access\":\"rwm\"},{\"allow\":true,\"type\":\"b\",\"major\":8,\"access\":\"rw\"}]", 'b', R | W, 8, 3, true },
		{ "[{\"allow\":false,\"access\":\"rwm\"},{\"allow\":true,\"type\":\"b\",\"major\":8,\"access\":\"rw\"}]", 'b', R, 9, 3, false },
		{ "[{\"allow\":true,\"type\":\"b\",\"major\":8,\"access\":\"rw\"},{\"allow\":false,\"access\":\"rwm\"}]", 'b', R, 8, 3, false },
		{ "[{\"allow\":true,\"access\":\"rwm\"}]", 'b', R | W | M, 8, 3, true },
		{ "[{\"allow\":true,\"access\":\"rwm\"},{\"allow\":false,\"type\":\"c\",\"major\":1,\"minor\":1,\"access\":\"w\"}]", 'c', R | W, 1, 1, false },
		{ "[{\"allow\":true,\"access\":\"rwm\"},{\"allow\":false,\"type\":\"c\",\"major\":1,\"minor\":1,\"access\":\"w\"}]", 'c', R, 1, 1, true },
		{ "[{\"allow\":true,\"type\":\"c\",\"major\":7,\"minor\":1,\"access\":\"r\"},{\"allow\":true,\"type\":\"c\",\"major\":7,\"minor\":1,\"access\":\"w\"}]",
		  'c', R | W, 7, 1, true },
		{ "[{\"allow\":true,\"type\":\"c\",\"major\":7,\"access\":\"rw\"},{\"allow\":false,\"type\":\"c\",\"major\":7,\"minor\":1,\"access\":\"rw\"}]",
		  'c', R, 7, 1, false },
		{ "[{\"allow\":true,\"type\":\"c\",\"major\":7,\"access\":\"rw\"},{\"allow\":false,\"type\":\"c\",\"major\":7,\"minor\":1,\"access\":\"rw\"}]",
		  'c', R, 7, 2, true },
		{ "[{\"allow\":true,\"type\":\"c\",\"minor\":4294967295,\"access\":\"rw\"}]", 'c', R, 7, UINT32_MAX, true },
		/* What every container has cannot be taken away. */
		{ "[{\"allow\":false,\"type\":\"c\",\"major\":1,\"minor\":3,\"access\":\"rwm\"}]", 'c', R, 1, 3, true },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct arena a = ARENA_INIT;
		struct cgroup_device_rule *rules;
		size_t n, size;
		CHECK_ROW(i, cgroup_device_rules(&a, test_json(&a, t[i].rules), &rules, &n, NULL) >= 0);
		struct bpf_insn *code = cgroup_device_program(&a, rules, n, &size);
		CHECK_ROW(i, decide(code, size, t[i].type, t[i].access, t[i].major, t[i].minor) == t[i].want);
		arena_done(&a);
	}
}

TEST(device_rules_wrong)
{
	static const struct { const char *rules, *message; } t[] = {
		{ "[{\"allow\":true}]", "device access at 0 field cannot be empty" },
		{ "[{\"allow\":true,\"access\":\"rx\"}]", "linux.resources.devices[0].access: \"rx\" has other letters than r, w and m" },
		{ "[{\"allow\":true,\"type\":\"p\",\"access\":\"r\"}]", "invalid cgroup device type \"p\"" },
		{ "[{\"allow\":true,\"type\":\"c\",\"major\":-2,\"access\":\"r\"}]", "linux.resources.devices.major: -2 is out of range" },
		{ "[{\"allow\":true,\"type\":\"c\",\"minor\":4294967296,\"access\":\"r\"}]",
		  "linux.resources.devices.minor: 4294967296 is out of range" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct arena a = ARENA_INIT;
		struct err err = ERR_INIT;
		struct cgroup_device_rule *rules;
		size_t n;
		CHECK_ROW(i, cgroup_device_rules(&a, test_json(&a, t[i].rules), &rules, &n, &err) == -ERR_INVALID);
		CHECK_STR_ROW(i, err_str(&err), t[i].message);
		arena_done(&a);
	}
}

/* ---- with the kernel ---- */

/* Opens devices in a child that is in the cgroup: 0 if those can be opened that should be, and only those. */
static int open_in(const struct cgroup_hierarchy *h, bool kmsg)
{
	pid_t pid = fork();
	if (pid == 0) {
		int null = -1, log;
		if (cgroup_writef(h, "cgroup.procs", NULL, "%d", (int)getpid()) < 0)
			_exit(2);
		null = open("/dev/null", O_RDWR);
		log = open("/dev/kmsg", O_RDONLY);
		_exit(null < 0 ? 3 : kmsg != (log >= 0) ? 4 : log < 0 && errno != EPERM ? 5 : 0);
	}
	int status;
	CHECK(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static const char kmsg_rule[] = "[{\"allow\":false,\"access\":\"rwm\"},{\"allow\":true,\"type\":\"c\",\"major\":1,\"minor\":11,\"access\":\"rw\"}]";

TEST(devices_of_the_kernel)
{
	struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;
	struct cgroup *c = test_cgroup();
	const struct cgroup_hierarchy *h = cgroup_hierarchy(c, CGROUP_DEVICES);
	if (!h)
		h = cgroup_hierarchy(c, CGROUP_UNIFIED);
	CHECK_INT(open_in(h, true), 0);
	static const struct { const char *rules; bool kmsg; } t[] = {
		{ "[]", false }, { kmsg_rule, true }, { kmsg_rule, true }, { "[]", false },
		{ "[{\"allow\":true,\"access\":\"rwm\"}]", true },
		{ "[{\"allow\":true,\"access\":\"rwm\"},{\"allow\":false,\"type\":\"c\",\"major\":1,\"minor\":11,\"access\":\"rw\"}]", false },
		{ "[{\"allow\":false,\"access\":\"rwm\"}]", false },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		if (cgroup_devices(c, test_json(&a, t[i].rules), &err) < 0)
			fail_msg("row %zu: %s", i, err.msg);
		CHECK_ROW(i, open_in(h, t[i].kmsg) == 0);
	}
	if (c->mode != CGROUP_V2) {
		CHECK(cgroup_devices(c, test_json(&a, "[{\"allow\":true,\"type\":\"c\",\"major\":1,\"access\":\"rw\"},"
					     "{\"allow\":false,\"type\":\"c\",\"major\":1,\"minor\":11,\"access\":\"rw\"}]"), &err) == -ERR_INVALID);
		CHECK_STR(err_str(&err), "linux.resources.devices: cgroup v1 cannot deny c 1:11 alone of what a rule before it allows");
	}
	test_cgroup_end(c);
	arena_done(&a);
}

TEST(devices_by_program)
{
	struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;
	struct cgroup *c = test_cgroup();
	const struct cgroup_hierarchy *h = cgroup_hierarchy(c, CGROUP_UNIFIED);
	if (!h) {
		print_message("# no cgroup v2 here\n");
		test_cgroup_end(c);
		skip();
	}
	static const struct { const char *rules; bool kmsg; } t[] = { { "[]", false }, { kmsg_rule, true }, { "[]", false } };
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct cgroup_device_rule *rules;
		size_t n;
		CHECK_ROW(i, cgroup_device_rules(&a, test_json(&a, t[i].rules), &rules, &n, NULL) >= 0);
		if (cgroup_v2_devices(h->fd, rules, n, &err) < 0)
			fail_msg("row %zu: %s", i, err.msg);
		CHECK_ROW(i, open_in(h, t[i].kmsg) == 0);
	}
	test_cgroup_end(c);
	arena_done(&a);
}
