/*
 * From a profile to the program that the kernel runs at every system call. Of libseccomp only the tables of names are used: its
 * generator takes some 10 ms for the profile of a usual container (hundreds of names, three architectures), which is longer than
 * all else that starting one takes.
 *
 * Per architecture the numbers are cut into intervals with the same action, found by binary search. Where arguments matter, an
 * interval is one number with a chain of comparisons. Jumps in this machine go forward and, if they depend on something, by
 * at most 255 instructions; so the program is made from its end to its start, and each jump knows its target when it is made.
 *
 * Where rules speak of the same call: one without conditions counts, the first of several; else the first whose conditions
 * hold. Both is what libseccomp makes of rules that contradict each other, as far as it says so.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <seccomp.h>

#include "oci/seccomp_priv.h"

enum { X32_BIT = 0x40000000, NR_SOCKETCALL_X86 = 102, NR_IPC_X86 = 117 };

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
enum { LOW = 0, HIGH = 4 };
#else
enum { LOW = 4, HIGH = 0 };
#endif

/* ---- the program, from its end ---- */

struct program {
	struct sock_filter *end;        /* behind the last instruction */
	size_t n;
	bool overflow;
};

/* A place in it: how many instructions there were when the one at it had been made. */
typedef size_t place;

static place emit(struct program *p, uint16_t code, uint32_t k, uint8_t jt, uint8_t jf)
{
	if (p->n == BPF_MAXINSNS) {
		p->overflow = true;
		return p->n;
	}
	p->n++;
	p->end[-(ptrdiff_t)p->n] = (struct sock_filter){ .code = code, .jt = jt, .jf = jf, .k = k };
	return p->n;
}

static place emit_return(struct program *p, uint32_t action)
{
	return emit(p, BPF_RET | BPF_K, action, 0, 0);
}

static place emit_load(struct program *p, size_t offset)
{
	return emit(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

/* A place near enough for a jump that depends on something: to itself, or to a jump there. */
static place near(struct program *p, place to)
{
	return p->n - to <= 254 ? to : emit(p, BPF_JMP | BPF_JA, (uint32_t)(p->n - to), 0, 0);
}

static place emit_jump(struct program *p, uint16_t op, uint32_t k, place yes, place no)
{
	yes = near(p, yes);
	no = near(p, no);       /* this may move yes one away: hence 254 */
	return emit(p, BPF_JMP | op | BPF_K, k, (uint8_t)(p->n - yes), (uint8_t)(p->n - no));
}

/* ---- conditions ---- */

/* (the loaded word & mask) op value */
static place emit_half(struct program *p, const struct seccomp_condition *c, size_t half, uint16_t op, uint32_t mask, uint32_t value,
		       place yes, place no)
{
	emit_jump(p, op, value & mask, yes, no);
	if (mask != UINT32_MAX)
		emit(p, BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
	return emit_load(p, offsetof(struct seccomp_data, args) + 8 * c->index + half);
}

/* Equal and larger are all there is; the others are those with yes and no exchanged. */
static place emit_condition(struct program *p, const struct seccomp_condition *c, bool narrow, place yes, place no)
{
	uint64_t value = c->op == SECCOMP_MASKED_EQ ? c->value_two : c->value, mask = c->op == SECCOMP_MASKED_EQ ? c->value : UINT64_MAX;
	uint32_t high = (uint32_t)(value >> 32), low = (uint32_t)value, mask_high = (uint32_t)(mask >> 32), mask_low = (uint32_t)mask;
	if (c->op == SECCOMP_NE || c->op == SECCOMP_LT || c->op == SECCOMP_LE) {
		place was = yes;
		yes = no;
		no = was;
	}
	bool equal = c->op == SECCOMP_EQ || c->op == SECCOMP_NE || c->op == SECCOMP_MASKED_EQ;
	uint16_t op = equal ? BPF_JEQ : c->op == SECCOMP_GE || c->op == SECCOMP_LT ? BPF_JGE : BPF_JGT;
	place lower = emit_half(p, c, LOW, op, mask_low, low, yes, no);
	if (narrow)
		return lower;
	if (equal)
		return emit_half(p, c, HIGH, BPF_JEQ, mask_high, high, lower, no);
	place same = emit_jump(p, BPF_JEQ, high, lower, no);
	return emit_half(p, c, HIGH, BPF_JGT, UINT32_MAX, high, yes, same);
}

/* ---- what an architecture makes of the names ---- */

/* A call that counts for a number; those of socketcall and ipc are told apart by their first argument. */
struct entry {
	uint32_t nr;
	size_t order;
	const struct seccomp_call *call;
	struct seccomp_condition *selector;     /* NULL: the number says it all */
};

/* Numbers from first on, up to the next leaf's. */
struct leaf {
	uint32_t first, action;
	const struct entry *entries;            /* with conditions; NULL: the action for all */
	size_t n;
};

/* On x86 some calls have two ways: by their own number, and by socketcall or ipc, which is what libseccomp's number says. */
static int32_t direct_x86(int32_t pseudo)
{
	static const struct { int16_t pseudo, nr; } calls[] = {
		{ __PNR_socket, 359 }, { __PNR_socketpair, 360 }, { __PNR_bind, 361 }, { __PNR_connect, 362 }, { __PNR_listen, 363 },
		{ __PNR_accept4, 364 }, { __PNR_getsockopt, 365 }, { __PNR_setsockopt, 366 }, { __PNR_getsockname, 367 },
		{ __PNR_getpeername, 368 }, { __PNR_sendto, 369 }, { __PNR_sendmsg, 370 }, { __PNR_recvfrom, 371 },
		{ __PNR_recvmsg, 372 }, { __PNR_shutdown, 373 }, { __PNR_recvmmsg, 337 }, { __PNR_sendmmsg, 345 },
		{ __PNR_semget, 393 }, { __PNR_semctl, 394 }, { __PNR_shmget, 395 }, { __PNR_shmctl, 396 }, { __PNR_shmat, 397 },
		{ __PNR_shmdt, 398 }, { __PNR_msgget, 399 }, { __PNR_msgsnd, 400 }, { __PNR_msgrcv, 401 }, { __PNR_msgctl, 402 },
	};
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		if (calls[i].pseudo == pseudo)
			return calls[i].nr;
	return -1;
}

static bool is_allowing(uint32_t action)
{
	action &= SECCOMP_RET_ACTION_FULL;
	return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG || action == SECCOMP_RET_TRACE;
}

/* The entries (at most two) of one call; returns how many. */
static size_t resolve(struct arena *a, uint32_t arch, const struct seccomp_call *call, size_t order, struct entry *ret)
{
	int32_t nr = seccomp_syscall_resolve_name_arch(arch, call->name);
	if (nr >= 0) {
		ret[0] = (struct entry){ (uint32_t)nr, order, call, NULL };
		return 1;
	}
	bool socket = nr <= -100 && nr >= -120, ipc = nr <= -200 && nr >= -224;
	if (arch != SCMP_ARCH_X86 || !(socket || ipc))
		return 0;
	size_t n = 0;
	int32_t direct = direct_x86(nr);
	if (direct >= 0)
		ret[n++] = (struct entry){ (uint32_t)direct, order, call, NULL };
	/* The other arguments are in memory there, where no filter sees them: conditions do not hold where they would allow. */
	if (call->n && is_allowing(call->action))
		return n;
	struct seccomp_condition *which = ARENA_NEW(a, struct seccomp_condition);
	*which = (struct seccomp_condition){ .op = SECCOMP_EQ, .value = (uint64_t)-nr - (socket ? 100 : 200) };
	ret[n++] = (struct entry){ socket ? NR_SOCKETCALL_X86 : NR_IPC_X86, order, call, which };
	return n;
}

static int entry_order(const void *x, const void *y)
{
	const struct entry *a = x, *b = y;
	if (a->nr != b->nr)
		return a->nr < b->nr ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

static bool is_unconditional(const struct entry *e)
{
	return !e->selector && !e->call->n;
}

/* Adds a leaf, or lets the one before go on when it does the same. */
static void leaf_add(struct leaf *leaves, size_t *n, struct leaf leaf)
{
	if (*n && leaves[*n - 1].first == leaf.first)
		--*n;
	const struct leaf *last = *n ? &leaves[*n - 1] : NULL;
	if (!last || leaf.entries || last->entries || last->action != leaf.action)
		leaves[(*n)++] = leaf;
}

/* The intervals of an architecture, from number first on. */
static struct leaf *leaves_of(struct arena *a, const struct seccomp_profile *p, uint32_t arch, uint32_t first, size_t *ret_n)
{
	struct entry *entries = ARENA_ARRAY(a, struct entry, 2 * p->n + 2);
	struct leaf *leaves = ARENA_ARRAY(a, struct leaf, 4 * p->n + 3);
	size_t n = 0, leaf_n = 0;
	int64_t largest = -1;
	for (size_t i = 0; i < p->n; i++) {
		size_t more = resolve(a, arch, &p->calls[i], i, entries + n);
		for (size_t k = 0; k < more; k++)
			largest = MAX(largest, (int64_t)entries[n + k].nr);
		n += p->calls[i].idle ? 0 : more;
	}
	qsort(entries, n, sizeof(*entries), entry_order);
	leaf_add(leaves, &leaf_n, (struct leaf){ .first = first, .action = p->default_action });
	for (size_t i = 0, next; i < n; i = next) {
		struct leaf leaf = { .first = entries[i].nr, .entries = &entries[i] };
		for (next = i; next < n && entries[next].nr == entries[i].nr; next++) {
			if (leaf.entries && is_unconditional(&entries[next])) {
				leaf.entries = NULL;
				leaf.action = entries[next].call->action;
			}
		}
		leaf.n = next - i;
		leaf_add(leaves, &leaf_n, leaf);
		leaf_add(leaves, &leaf_n, (struct leaf){ .first = entries[i].nr + 1, .action = p->default_action });
	}
	if (p->enosys && largest >= 0)
		leaf_add(leaves, &leaf_n, (struct leaf){ .first = (uint32_t)largest + 1, .action = SECCOMP_RET_ERRNO | ENOSYS });
	*ret_n = leaf_n;
	return leaves;
}

/* ---- putting it together ---- */

static place emit_leaf(struct program *p, const struct seccomp_profile *profile, const struct leaf *leaf, bool narrow)
{
	if (!leaf->entries)
		return emit_return(p, leaf->action);
	place next = emit_return(p, profile->default_action);
	for (size_t i = leaf->n; i-- > 0; ) {
		const struct entry *e = &leaf->entries[i];
		place yes = emit_return(p, e->call->action), no = next;
		for (size_t k = e->selector ? 0 : e->call->n; k-- > 0; )
			yes = emit_condition(p, &e->call->conditions[k], narrow, yes, no);
		next = e->selector ? emit_condition(p, e->selector, narrow, yes, no) : yes;
	}
	return next;
}

/* Halves each time: the depth is the logarithm of the number of leaves. */
static place emit_tree(struct program *p, const struct seccomp_profile *profile, const struct leaf *leaves, size_t n, bool narrow)
{
	if (n == 1)
		return emit_leaf(p, profile, leaves, narrow);
	size_t half = n / 2;
	place above = emit_tree(p, profile, leaves + half, n - half, narrow);
	place below = emit_tree(p, profile, leaves, half, narrow);
	return emit_jump(p, BPF_JGE, leaves[half].first, above, below);
}

static place emit_arch(struct arena *a, struct program *p, const struct seccomp_profile *profile, uint32_t arch)
{
	size_t n;
	struct leaf *leaves = leaves_of(a, profile, arch, arch == SCMP_ARCH_X32 ? X32_BIT : 0, &n);
	bool narrow = !(arch & __AUDIT_ARCH_64BIT);
	return emit_tree(p, profile, leaves, n, narrow);
}

/* x86_64 and x32 are one architecture to the kernel: a bit of the number tells. Without x32 nobody comes with that bit. */
static place emit_x86_64(struct arena *a, struct program *p, const struct seccomp_profile *profile, bool x32)
{
	place plain = emit_arch(a, p, profile, SCMP_ARCH_X86_64), marked;
	if (x32) {
		marked = emit_arch(a, p, profile, SCMP_ARCH_X32);
	} else {
		place kill = emit_return(p, SECCOMP_RET_KILL_THREAD);
		/* -1 is what a tracer sets to leave the call out. */
		marked = emit_jump(p, BPF_JEQ, UINT32_MAX, plain, kill);
	}
	return emit_jump(p, BPF_JGE, X32_BIT, marked, plain);
}

int seccomp_program(struct arena *a, const struct seccomp_profile *profile, struct sock_fprog *ret, struct err *err)
{
	struct sock_filter *code = ARENA_ARRAY(a, struct sock_filter, BPF_MAXINSNS);
	struct program p = { .end = code + BPF_MAXINSNS };
	bool x32 = false;
	for (size_t i = 0; i < profile->archs; i++)
		x32 = x32 || profile->arch[i] == SCMP_ARCH_X32;
	place next = emit_return(&p, SECCOMP_RET_KILL_THREAD);  /* no architecture that the profile has */
	for (size_t i = profile->archs; i-- > 0; ) {
		uint32_t arch = profile->arch[i];
		if (arch == SCMP_ARCH_X32)
			continue;
		if (arch == SCMP_ARCH_X86_64)
			emit_x86_64(a, &p, profile, x32);
		else
			emit_arch(a, &p, profile, arch);
		place section = emit_load(&p, offsetof(struct seccomp_data, nr));
		next = emit_jump(&p, BPF_JEQ, arch, section, next);
	}
	emit_load(&p, offsetof(struct seccomp_data, arch));
	if (p.overflow)
		return err_set(err, ERR_TOO_LARGE, "linux.seccomp: the filter would have more than %d instructions", BPF_MAXINSNS);
	*ret = (struct sock_fprog){ .len = (unsigned short)p.n, .filter = p.end - p.n };
	return 0;
}
