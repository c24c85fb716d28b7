/* The dump of a loop's fibers: for the operator of a program that seems to hang. */
#include "base/fiber_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/buf.h"

enum { DUMP_MAX = 4 * 1024 * 1024 };

static const char *state_name(enum fiber_state state)
{
	static const char *const names[] = {
		[FIBER_READY] = "ready",
		[FIBER_RUNNING] = "running",
		[FIBER_WAITING] = "waiting",
		[FIBER_DONE] = "done",
	};
	return names[state];
}

static void dump_fiber(struct buf *b, const struct fiber *f, int64_t now_ns)
{
	buf_addf(b, "  %5u  %-31s  %-7s", f->id, f->name, state_name(f->state));
	if (f->state != FIBER_DONE) {
		const char *top = (const char *)f, *sp = f->state == FIBER_RUNNING ? __builtin_frame_address(0) : f->sp;
		buf_addf(b, "  stack %td B deep, %zu KiB resident", top - sp, fiber_stack_resident(f->stack) / 1024);
	}
	if (f->state == FIBER_WAITING) {
		buf_addf(b, "  %" PRId64 " ms for %s", (now_ns - f->since_ns) / NS_PER_MS, f->what);
		if (f->what_fd >= 0)
			buf_addf(b, " %d", f->what_fd);
		if (f->due_ns != NEVER_NS)
			buf_addf(b, ", deadline in %" PRId64 " ms", (f->due_ns - now_ns) / NS_PER_MS);
	}
	if (f->canceled)
		buf_add(b, f->shields ? STR("  canceled, shielded") : STR("  canceled"));
	buf_addc(b, '\n');
}

void loop_dump(struct loop *loop, int fd)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(DUMP_MAX);
	int64_t now_ns = clock_now_ns();

	buf_addf(&b, "loop %s: %u fibers, %zu timers, %zu unused stacks\n", loop->name, loop->n_fibers, loop->n_timers,
		 loop->n_stacks);
	LIST_EACH(struct fiber, f, &loop->fibers, all)
		dump_fiber(&b, f, now_ns);
	for (str rest = buf_str(&b); rest.n;) {
		ssize_t n = write(fd, rest.p, rest.n);
		if (n < 0 && errno != EINTR)
			return;
		rest = str_skip(rest, n < 0 ? 0 : (size_t)n);
	}
}

static void on_sigusr2(uv_signal_t *handle, int signum)
{
	(void)signum;
	loop_dump(CONTAINER_OF(handle, struct loop, sigusr2), STDERR_FILENO);
}

int loop_dump_on_sigusr2(struct loop *loop, struct err *err)
{
	int r = 0;

	if (!loop->dumps)
		r = uv_signal_init(&loop->uv, &loop->sigusr2);
	loop->dumps = r == 0;
	if (r == 0)
		r = uv_signal_start(&loop->sigusr2, on_sigusr2, SIGUSR2);
	return r < 0 ? err_sys(err, -r, "watch for SIGUSR2") : 0;
}
