/*
 * Which devices a cgroup may make, read and write. config.json has a list of rules, of which the last that speaks of a device
 * counts, for each kind of access by itself; at its start nothing is allowed. At its end come the devices that every container has.
 *
 * v2: a BPF program that goes through the rules from the last to the first. v1: the kernel has one policy (all or nothing) and a
 * list of exceptions of the other kind; the list becomes that, and only what differs from the list that the kernel has is written,
 * so that an update takes nothing away for a moment. Exceptions to exceptions cannot be told to v1: they are an error.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "codec/atoms.h"
#include "oci/cgroup_priv.h"

enum { RULES_MAX = 4096, LIST_TEXT_MAX = 1 << 20, PROGRAMS_MAX = 64 };

/* As runc has them: also what runtime-spec does not list (mknod of everything, /dev/net/tun), because programs rely on it. */
static const struct cgroup_device_rule defaults[] = {
	{ 'c', true, CGROUP_DEVICE_MKNOD, -1, -1 },
	{ 'b', true, CGROUP_DEVICE_MKNOD, -1, -1 },
	{ 'c', true, CGROUP_DEVICE_ALL, 1, 3 },         /* /dev/null */
	{ 'c', true, CGROUP_DEVICE_ALL, 1, 5 },         /* zero */
	{ 'c', true, CGROUP_DEVICE_ALL, 1, 7 },         /* full */
	{ 'c', true, CGROUP_DEVICE_ALL, 1, 8 },         /* random */
	{ 'c', true, CGROUP_DEVICE_ALL, 1, 9 },         /* urandom */
	{ 'c', true, CGROUP_DEVICE_ALL, 5, 0 },         /* tty */
	{ 'c', true, CGROUP_DEVICE_ALL, 5, 2 },         /* ptmx */
	{ 'c', true, CGROUP_DEVICE_ALL, 136, -1 },      /* pts/N */
	{ 'c', true, CGROUP_DEVICE_ALL, 10, 200 },      /* net/tun */
};

/* ---- rules ---- */

static int access_of(str s, size_t i, uint8_t *ret, struct err *err)
{
	static const struct { char c; uint8_t bit; } kinds[] = {
		{ 'r', CGROUP_DEVICE_READ }, { 'w', CGROUP_DEVICE_WRITE }, { 'm', CGROUP_DEVICE_MKNOD },
	};
	*ret = 0;
	for (size_t at = 0; at < s.n; at++) {
		uint8_t bit = 0;
		for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
			if (kinds[k].c == s.p[at])
				bit = kinds[k].bit;
		if (!bit)
			return err_set(err, ERR_INVALID, "linux.resources.devices[%zu].access: \"" STR_FMT "\" has other letters than r, w and m",
				       i, STR_ARG(s));
		*ret |= bit;
	}
	return *ret ? 0 : err_set(err, ERR_INVALID, "device access at %zu field cannot be empty", i);
}

static int rule_of(struct val v, size_t i, struct cgroup_device_rule *ret, struct err *err)
{
	str type = val_str(v, type);
	*ret = (struct cgroup_device_rule){ .type = 'a', .allow = val_bool(v, allow), .major = -1, .minor = -1 };
	if (type.n == 1 && (type.p[0] == 'c' || type.p[0] == 'b' || type.p[0] == 'u'))
		ret->type = type.p[0] == 'b' ? 'b' : 'c';
	else if (type.n && !str_eq(type, STR("a")))
		return err_set(err, ERR_INVALID, "invalid cgroup device type \"" STR_FMT "\"", STR_ARG(type));
	int r = 0;
	cgroup_int(val_get(v, major), "devices.major", -1, UINT32_MAX, &ret->major, &r, err);
	cgroup_int(val_get(v, minor), "devices.minor", -1, UINT32_MAX, &ret->minor, &r, err);
	return r < 0 ? r : access_of(val_str(v, access), i, &ret->access, err);
}

int cgroup_device_rules(struct arena *a, struct val rules, struct cgroup_device_rule **ret, size_t *ret_n, struct err *err)
{
	size_t n = val_len(rules);
	if (n > RULES_MAX)
		return err_set(err, ERR_TOO_LARGE, "linux.resources.devices has more than %d rules", RULES_MAX);
	struct cgroup_device_rule *all = ARENA_ARRAY(a, struct cgroup_device_rule, 2 * n + ARRAY_LEN(defaults));
	size_t k = 0;
	for (size_t i = 0; i < n; i++) {
		struct cgroup_device_rule rule;
		int r = rule_of(val_at(rules, i), i, &rule, err);
		if (r < 0)
			return r;
		/* "a" is all there is, whatever numbers stand beside it: what went before no longer counts. */
		if (rule.type == 'a') {
			rule.major = rule.minor = -1;
			rule.access = CGROUP_DEVICE_ALL;
			k = 0;
		}
		all[k++] = rule;
	}
	memcpy(all + k, defaults, sizeof(defaults));
	*ret = all;
	*ret_n = k + ARRAY_LEN(defaults);
	return 0;
}

/* ---- v1 ---- */

static bool same_devices(const struct cgroup_device_rule *x, const struct cgroup_device_rule *y)
{
	return x->type == y->type && x->major == y->major && x->minor == y->minor;
}

static bool overlap(const struct cgroup_device_rule *x, const struct cgroup_device_rule *y)
{
	return x->type == y->type && (x->major < 0 || y->major < 0 || x->major == y->major) &&
	       (x->minor < 0 || y->minor < 0 || x->minor == y->minor);
}

/* A policy and its exceptions; each stands for its devices once. */
struct policy {
	bool allow;
	size_t n;
	struct cgroup_device_rule *exceptions;
};

static struct cgroup_device_rule *policy_find(const struct policy *p, const struct cgroup_device_rule *rule)
{
	for (size_t i = 0; i < p->n; i++)
		if (same_devices(&p->exceptions[i], rule))
			return &p->exceptions[i];
	return NULL;
}

static int policy_add(struct policy *p, const struct cgroup_device_rule *rule, struct err *err)
{
	if (rule->type == 'a') {
		p->allow = rule->allow;
		p->n = 0;
		return 0;
	}
	struct cgroup_device_rule *have = policy_find(p, rule);
	if (rule->allow != p->allow) {
		if (have)
			have->access |= rule->access;
		else
			p->exceptions[p->n++] = *rule;
		return 0;
	}
	/* It takes something back. */
	if (have)
		have->access &= (uint8_t)~rule->access;
	for (size_t i = 0; i < p->n; i++)
		if (&p->exceptions[i] != have && overlap(&p->exceptions[i], rule) && p->exceptions[i].access & rule->access)
			return err_set(err, ERR_INVALID, "linux.resources.devices: cgroup v1 cannot %s %c %lld:%lld alone of what a rule "
				       "before it %s", rule->allow ? "allow" : "deny", rule->type, (long long)rule->major,
				       (long long)rule->minor, rule->allow ? "denies" : "allows");
	return 0;
}

/* "c 1:3 rwm", with * for any; the kernel's list has the same form. */
static int write_rule(const struct cgroup_hierarchy *h, const struct cgroup_device_rule *rule, uint8_t access, bool allow,
		      struct err *err)
{
	char text[64], major[24] = "*", minor[24] = "*";
	if (rule->major >= 0)
		snprintf(major, sizeof(major), "%lld", (long long)rule->major);
	if (rule->minor >= 0)
		snprintf(minor, sizeof(minor), "%lld", (long long)rule->minor);
	int n = snprintf(text, sizeof(text), "%c %s:%s %s%s%s", rule->type, major, minor, access & CGROUP_DEVICE_READ ? "r" : "",
			 access & CGROUP_DEVICE_WRITE ? "w" : "", access & CGROUP_DEVICE_MKNOD ? "m" : "");
	return cgroup_write(h, allow ? "devices.allow" : "devices.deny", str_span(text, (size_t)n), err);
}

static bool number_or_any(str s, int64_t *ret)
{
	*ret = -1;
	return str_eq(s, STR("*")) || str_to_i64(s, ret);
}

/*
 * The policy that the kernel has. devices.list shows what is allowed, so "a *:* rwm" may hide what is denied: such a policy
 * counts as unknown (false).
 */
static bool policy_now(struct arena *a, const struct cgroup_hierarchy *h, struct policy *ret)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(LIST_TEXT_MAX);
	if (cgroup_read(h, "devices.list", &text, NULL) < 0)
		return false;
	size_t lines = 0;
	for (size_t i = 0; i < text.n; i++)
		lines += text.p[i] == '\n';
	*ret = (struct policy){ .exceptions = ARENA_ARRAY(a, struct cgroup_device_rule, lines + 1) };
	for (str line, type, number, major, minor, rest = buf_str(&text); rest.n; ) {
		struct cgroup_device_rule rule = { .allow = true };
		str_cut(rest, '\n', &line, &rest);
		str_cut(line, ' ', &type, &line);
		str_cut(line, ' ', &number, &line);
		str_cut(number, ':', &major, &minor);
		if (type.n != 1 || type.p[0] == 'a' || !number_or_any(major, &rule.major) || !number_or_any(minor, &rule.minor) ||
		    access_of(line, 0, &rule.access, NULL) < 0 || ret->n == lines + 1)
			return false;
		rule.type = type.p[0];
		ret->exceptions[ret->n++] = rule;
	}
	return true;
}

int cgroup_v1_devices(const struct cgroup_hierarchy *h, const struct cgroup_device_rule *rules, size_t n, struct err *err)
{
	CLEANUP(arena_done) struct arena arena = ARENA_INIT;
	struct policy want = { .exceptions = ARENA_ARRAY(&arena, struct cgroup_device_rule, n + 1) }, now;
	for (size_t i = 0; i < n; i++) {
		int r = policy_add(&want, &rules[i], err);
		if (r < 0)
			return r;
	}
	if (!policy_now(&arena, h, &now) || want.allow) {
		now = (struct policy){ .allow = want.allow };
		int r = cgroup_write(h, want.allow ? "devices.allow" : "devices.deny", STR("a"), err);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < now.n; i++) {
		const struct cgroup_device_rule *e = &now.exceptions[i], *kept = policy_find(&want, e);
		uint8_t gone = e->access & (uint8_t)~(kept ? kept->access : 0);
		int r = gone ? write_rule(h, e, gone, want.allow, err) : 0;
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < want.n; i++) {
		const struct cgroup_device_rule *e = &want.exceptions[i], *had = policy_find(&now, e);
		uint8_t more = e->access & (uint8_t)~(had ? had->access : 0);
		int r = more ? write_rule(h, e, more, !want.allow, err) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- v2 ---- */

enum { R_RESULT, R_CONTEXT, R_TYPE, R_ACCESS, R_MAJOR, R_MINOR };

struct program {
	struct bpf_insn *code;
	size_t n;
};

static void emit(struct program *p, uint8_t code, uint8_t dst, uint8_t src, int16_t off, int32_t imm)
{
	p->code[p->n++] = (struct bpf_insn){ .code = code, .dst_reg = dst & 0xf, .src_reg = src & 0xf, .off = off, .imm = imm };
}

static void emit_return(struct program *p, bool allow)
{
	emit(p, BPF_ALU64 | BPF_MOV | BPF_K, R_RESULT, 0, 0, allow);
	emit(p, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

/* Jumps (forward) when the register is not the value; where to is filled in by patch. 32 bits: major and minor are unsigned. */
static void emit_unless(struct program *p, uint8_t reg, int64_t value)
{
	emit(p, BPF_JMP32 | BPF_JNE | BPF_K, reg, 0, 0, (int32_t)(uint32_t)value);
}

/* The rule, or on to the next: what an allowing rule speaks of is no longer asked; a denying one ends it. */
static void emit_rule(struct program *p, const struct cgroup_device_rule *rule)
{
	size_t jumps[4], n = 0;
	if (rule->type != 'a') {
		jumps[n++] = p->n;
		emit_unless(p, R_TYPE, rule->type == 'b' ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR);
	}
	if (rule->major >= 0) {
		jumps[n++] = p->n;
		emit_unless(p, R_MAJOR, rule->major);
	}
	if (rule->minor >= 0) {
		jumps[n++] = p->n;
		emit_unless(p, R_MINOR, rule->minor);
	}
	if (rule->allow) {
		emit(p, BPF_ALU | BPF_AND | BPF_K, R_ACCESS, 0, 0, ~(int32_t)rule->access);
		jumps[n++] = p->n;
		emit_unless(p, R_ACCESS, 0);
	} else {
		emit(p, BPF_JMP32 | BPF_JSET | BPF_K, R_ACCESS, 0, 1, rule->access);
		jumps[n++] = p->n;
		emit(p, BPF_JMP | BPF_JA, 0, 0, 0, 0);
	}
	emit_return(p, rule->allow);
	for (size_t i = 0; i < n; i++)
		p->code[jumps[i]].off = (int16_t)(p->n - jumps[i] - 1);
}

struct bpf_insn *cgroup_device_program(struct arena *a, const struct cgroup_device_rule *rules, size_t n, size_t *ret_n)
{
	enum { PER_RULE = 8, AROUND = 8 };
	struct program p = { .code = ARENA_ARRAY(a, struct bpf_insn, n * PER_RULE + AROUND) };
	/* struct bpf_cgroup_dev_ctx: u32 access_type (type below, access above 16 bits), major, minor. */
	emit(&p, BPF_LDX | BPF_MEM | BPF_W, R_TYPE, R_CONTEXT, 0, 0);
	emit(&p, BPF_ALU | BPF_MOV | BPF_X, R_ACCESS, R_TYPE, 0, 0);
	emit(&p, BPF_ALU | BPF_AND | BPF_K, R_TYPE, 0, 0, 0xffff);
	emit(&p, BPF_ALU | BPF_RSH | BPF_K, R_ACCESS, 0, 0, 16);
	emit(&p, BPF_LDX | BPF_MEM | BPF_W, R_MAJOR, R_CONTEXT, 4, 0);
	emit(&p, BPF_LDX | BPF_MEM | BPF_W, R_MINOR, R_CONTEXT, 8, 0);
	for (size_t i = n; i-- > 0; )
		emit_rule(&p, &rules[i]);
	emit_return(&p, false);
	*ret_n = p.n;
	return p.code;
}

static int bpf(int command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static int program_load(const struct bpf_insn *code, size_t n, struct err *err)
{
	union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_CGROUP_DEVICE };
	attr.insns = (uintptr_t)code;
	attr.insn_cnt = (uint32_t)n;
	attr.license = (uintptr_t)"Proprietary";        /* it calls no function of the kernel */
	memcpy(attr.prog_name, "c8s_devices", sizeof("c8s_devices"));
	int fd = bpf(BPF_PROG_LOAD, &attr);
	return fd < 0 ? err_sys(err, errno, "bpf: load the program for devices") : fd;
}

static int program_attach(int cgroup, int program, int in_place_of, struct err *err)
{
	union bpf_attr attr = { 0 };
	attr.target_fd = (uint32_t)cgroup;
	attr.attach_bpf_fd = (uint32_t)program;
	attr.attach_type = BPF_CGROUP_DEVICE;
	attr.attach_flags = BPF_F_ALLOW_MULTI | (in_place_of >= 0 ? BPF_F_REPLACE : 0);
	attr.replace_bpf_fd = (uint32_t)MAX(in_place_of, 0);
	return bpf(BPF_PROG_ATTACH, &attr) < 0 ? err_sys(err, errno, "bpf: attach the program for devices to a cgroup") : 0;
}

static int program_detach(int cgroup, int program, struct err *err)
{
	union bpf_attr attr = { 0 };
	attr.target_fd = (uint32_t)cgroup;
	attr.attach_bpf_fd = (uint32_t)program;
	attr.attach_type = BPF_CGROUP_DEVICE;
	return bpf(BPF_PROG_DETACH, &attr) < 0 ? err_sys(err, errno, "bpf: detach a program for devices from a cgroup") : 0;
}

/* A descriptor of a program by its number. */
static int program_open(uint32_t id, struct err *err)
{
	union bpf_attr attr = { .prog_id = id };
	int fd = bpf(BPF_PROG_GET_FD_BY_ID, &attr);
	return fd < 0 ? err_sys(err, errno, "bpf: open program %u", id) : fd;
}

int cgroup_v2_devices(int fd, const struct cgroup_device_rule *rules, size_t n, struct err *err)
{
	CLEANUP(arena_done) struct arena arena = ARENA_INIT;
	size_t size;
	struct bpf_insn *code = cgroup_device_program(&arena, rules, n, &size);
	CLEANUP(fd_closep) int program = program_load(code, size, err);
	if (program < 0)
		return program;
	uint32_t ids[PROGRAMS_MAX];
	union bpf_attr attr = { 0 };
	attr.query.target_fd = (uint32_t)fd;
	attr.query.attach_type = BPF_CGROUP_DEVICE;
	attr.query.prog_ids = (uintptr_t)ids;
	attr.query.prog_cnt = PROGRAMS_MAX;
	if (bpf(BPF_PROG_QUERY, &attr) < 0)
		return err_sys(err, errno, "bpf: which programs for devices a cgroup has");
	uint32_t had = MIN(attr.query.prog_cnt, (uint32_t)PROGRAMS_MAX);
	/* All programs must agree to an access. One is replaced in one step; of several, the new one comes before the old ones go. */
	for (uint32_t i = 0; i < MAX(had, 1U); i++) {
		CLEANUP(fd_closep) int old = had ? program_open(ids[i], err) : -1;
		if (had && old < 0)
			return old;
		int r = i == 0 ? program_attach(fd, program, had == 1 ? old : -1, err) : 0;
		if (r >= 0 && had > 1)
			r = program_detach(fd, old, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int cgroup_devices(struct cgroup *c, struct val rules, struct err *err)
{
	CLEANUP(arena_done) struct arena arena = ARENA_INIT;
	struct cgroup_device_rule *all;
	size_t n;
	int r = cgroup_device_rules(&arena, rules, &all, &n, err);
	if (r < 0)
		return r;
	const struct cgroup_hierarchy *h = cgroup_hierarchy(c, CGROUP_DEVICES);
	if (h && c->mode != CGROUP_V2)
		return cgroup_v1_devices(h, all, n, err);
	r = cgroup_need(c, CGROUP_UNIFIED, &h, err);
	return r < 0 ? r : cgroup_v2_devices(h->fd, all, n, err);
}
