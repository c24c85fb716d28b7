/*
 * Stacks of fibers: mapped with a guard below, never committed beyond the pages that were touched, and kept in a pool
 * of the loop. A frame of ours is at most 4 KiB (-Wframe-larger-than), so it does not step over a guard of 64 KiB;
 * neither does one of a library that is content with half of that.
 *
 * A stack that goes back gives its pages to the kernel, but a few in the pool stay warm, that is they keep the top
 * ones, and are the first to be used again: short-lived fibers then cost neither a page fault nor the clearing of a
 * page. At rest nothing is kept warm.
 */
#include "base/fiber_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"

enum {
	/* Frames are a few times larger with AddressSanitizer's red zones. */
	STACK_SIZE = FIBER_ASAN ? 1024 * 1024 : 256 * 1024,
	GUARD_SIZE = 64 * 1024,
	WARM_SIZE = 16 * 1024, /* what a warm stack keeps */
	WARM_MAX = 64,
	POOL_MAX = 1024,
	LINE = 64,             /* of the processor's caches */
	COLOURS = 16,
	RED_ZONE = 128,        /* below the stack pointer, where functions that call none may write */
};

size_t fiber_stack_size(void) { return STACK_SIZE; }

struct fiber *fiber_stack_top(struct fiber_stack stack, unsigned id)
{
	uintptr_t top = (uintptr_t)stack.low + STACK_SIZE - sizeof(struct fiber) - id % COLOURS * LINE;
	return (struct fiber *)(top & ~(uintptr_t)(LINE - 1));
}

int fiber_stack_get(struct loop *loop, struct fiber_stack *ret_stack, struct err *err)
{
	if (loop->n_stacks) {
		*ret_stack = loop->stacks[--loop->n_stacks];
		loop->n_cold = MIN(loop->n_cold, loop->n_stacks);
		/* Out of bounds for valgrind, since the frames of the last fiber are gone. */
		(void)VALGRIND_MAKE_MEM_UNDEFINED(ret_stack->low, STACK_SIZE);
		return 0;
	}
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE;
	char *map = mmap(NULL, GUARD_SIZE + STACK_SIZE, PROT_NONE, flags, -1, 0);
	if (map == MAP_FAILED)
		return err_sys(err, errno, "map the stack of a fiber");
	if (mprotect(map + GUARD_SIZE, STACK_SIZE, PROT_READ | PROT_WRITE) < 0) {
		/* ENOMEM here most often means vm.max_map_count: a guarded stack is two mappings. */
		int sys = errno;
		(void)munmap(map, GUARD_SIZE + STACK_SIZE);
		return err_sys(err, sys, "guard the stack of a fiber");
	}
	ret_stack->low = map + GUARD_SIZE;
	ret_stack->valgrind_id = VALGRIND_STACK_REGISTER(map + GUARD_SIZE, map + GUARD_SIZE + STACK_SIZE);
	return 0;
}

static void unmap(struct fiber_stack stack)
{
	VALGRIND_STACK_DEREGISTER(stack.valgrind_id);
	(void)munmap(stack.low - GUARD_SIZE, GUARD_SIZE + STACK_SIZE);
}

void fiber_stack_put(struct loop *loop, struct fiber_stack stack)
{
	if (loop->n_stacks == POOL_MAX) {
		unmap(stack);
		return;
	}
	if (!loop->stacks)
		loop->stacks = mem_array(POOL_MAX, sizeof(*loop->stacks));
	bool warm = loop->n_stacks - loop->n_cold < WARM_MAX;
	(void)madvise(stack.low, STACK_SIZE - (warm ? WARM_SIZE : 0), MADV_DONTNEED);
	loop->stacks[loop->n_stacks++] = stack;
	if (!warm) {
		struct fiber_stack other = loop->stacks[loop->n_cold];
		loop->stacks[loop->n_cold++] = stack;
		loop->stacks[loop->n_stacks - 1] = other;
	}
}

void fiber_stack_drop_pool(struct loop *loop)
{
	while (loop->n_stacks)
		unmap(loop->stacks[--loop->n_stacks]);
	loop->n_cold = 0;
	free(TAKE(loop->stacks));
}

/* What lies below a frame where a fiber waits is of calls that have returned. */
void fiber_stack_rest(struct loop *loop)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	LIST_EACH(struct fiber, f, &loop->fibers, all) {
		uintptr_t low = (uintptr_t)f->stack.low, used = ((uintptr_t)f->sp - RED_ZONE) & ~(uintptr_t)(page - 1);
		if (f->state == FIBER_WAITING && used > low)
			(void)madvise(f->stack.low, used - low, MADV_DONTNEED);
	}
	for (; loop->n_cold < loop->n_stacks; loop->n_cold++)
		(void)madvise(loop->stacks[loop->n_cold].low, STACK_SIZE, MADV_DONTNEED);
}

size_t fiber_stack_resident(struct fiber_stack stack)
{
	unsigned char in_core[STACK_SIZE / 4096]; /* no machine has smaller pages */
	size_t page = (size_t)sysconf(_SC_PAGESIZE), n = 0;

	if (mincore(stack.low, STACK_SIZE, in_core) < 0)
		return 0;
	for (size_t i = 0; i < STACK_SIZE / page; i++)
		n += in_core[i] & 1;
	return n * page;
}
