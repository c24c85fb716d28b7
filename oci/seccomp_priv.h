/* Between the reading of a profile (seccomp.c) and its program (seccomp_bpf.c). */
#ifndef C8S_OCI_SECCOMP_PRIV_H
#define C8S_OCI_SECCOMP_PRIV_H

#include <linux/filter.h>

#include "base/arena.h"
#include "base/err.h"

enum { SECCOMP_ARGS = 6, SECCOMP_ARCHS = 32 };

enum seccomp_op { SECCOMP_NE, SECCOMP_LT, SECCOMP_LE, SECCOMP_EQ, SECCOMP_GE, SECCOMP_GT, SECCOMP_MASKED_EQ };

struct seccomp_condition {
	enum seccomp_op op;
	unsigned index;                 /* which argument, below SECCOMP_ARGS */
	uint64_t value, value_two;      /* MASKED_EQ: the mask, and what is left under it */
};

/* One name of a row of "syscalls": the action when all conditions hold. */
struct seccomp_call {
	const char *name;
	uint32_t action;                /* SECCOMP_RET_* with its data */
	bool idle;                      /* it changes nothing: the profile knows the call, and that is all */
	size_t n;
	const struct seccomp_condition *conditions;
};

struct seccomp_profile {
	uint32_t default_action;
	/* Numbers above all that the profile knows are ENOSYS, so that programs try an older call instead of giving up. */
	bool enosys;
	size_t n, archs;
	const struct seccomp_call *calls;
	uint32_t arch[SECCOMP_ARCHS];   /* SCMP_ARCH_*, the native one first, none twice */
};

/* The program in the arena. -ERR_TOO_LARGE when it would have more than BPF_MAXINSNS instructions. */
int seccomp_program(struct arena *a, const struct seccomp_profile *p, struct sock_fprog *ret, struct err *err);

#endif
