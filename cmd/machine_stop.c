/*
 * Containers outlive the service that looks after them. Nothing but SIGKILL ends a monitor, and a container's first process ignores what it
 * does not catch: systemd would wait for them as long as it waits for anybody, 90 seconds, and has unmounted what they need by then. So they
 * end before: the first process of each container gets SIGTERM, whatever its image would like better, and has time. What the runtime has on disk
 * stays; when the machine is back, everything is as after a power failure, but for data that programs could save.
 */
#include "cmd/machine_stop.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/file.h"
#include "cmd/up.h"
#include "oci/cgroup.h"

enum { GRACE_MS = 30 * 1000, KILL_MS = 5000, LOOK_MS = 20, LAST_WORDS_MS = 100, STATUS_MAX = 1 << 16, LOOKS = 5,
       SIGTIMEDWAIT_32 = 177, SIGTIMEDWAIT_TIME64 = 421 /* of 32-bit programs */ };

struct ending {
	const struct up_cluster *cluster;
	struct cgroup *group;
	pid_t *pauses, *monitors;
	size_t n_pauses, n_monitors;
};

static bool is_among(pid_t pid, const pid_t *pids, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

/* ---- what the kernel says of a process ---- */

/* The rest of the line that begins with a name. */
static str line_of(str status, str name)
{
	ptrdiff_t at = str_find(status, name);
	str line = STR_NONE, rest;

	if (at >= 0)
		(void)str_cut(str_skip(status, (size_t)at + name.n), '\n', &line, &rest);
	return str_trim(line);
}

static bool has_term(str status, str name)
{
	str mask = line_of(status, name);

	return !mask.n || strtoull(mask.p, NULL, 16) & 1ull << (SIGTERM - 1);
}

/*
 * (suspends) Whether it sleeps, and not in sigtimedwait: what is waited for there, as tini does, is not caught, and counts as not blocked
 * meanwhile. Who cannot be looked at might wait for signals.
 */
static bool sleeps_otherwise(const struct up_cluster *c, pid_t pid)
{
	for (unsigned i = 0; i < LOOKS; i++) {
		CLEANUP(buf_done) struct buf text = BUF_INIT(STATUS_MAX);
		str number, rest;
		int64_t call;

		if (file_read(arena_printf(c->arena, "/proc/%d/syscall", pid).p, &text, NULL) < 0)
			return false;
		(void)str_cut(buf_str(&text), ' ', &number, &rest);
		if (str_to_i64(number, &call))
			return call >= 0 && call != SYS_rt_sigtimedwait && call != SIGTIMEDWAIT_32 && call != SIGTIMEDWAIT_TIME64;
		if (fiber_sleep_ms(LOOK_MS, NULL) < 0) /* it runs just now */
			return false;
	}
	return false;
}

/* (suspends) Whether it does not hear of SIGTERM: a namespace's first process gets none that it neither catches nor has blocked, to fetch it later. */
static bool is_deaf(const struct up_cluster *c, pid_t pid, str status)
{
	return str_ends(line_of(status, STR("\nNSpid:")), STR("\t1")) && !has_term(status, STR("\nSigCgt:")) && !has_term(status, STR("\nSigBlk:")) &&
	       sleeps_otherwise(c, pid);
}

/* What holds a pod's namespaces ends last: it may be the first process of the others' namespace, and they would die with it. */
static bool is_pause(const struct up_cluster *c, pid_t pid)
{
	CLEANUP(buf_done) struct buf words = BUF_INIT(STATUS_MAX);

	return file_read(arena_printf(c->arena, "/proc/%d/cmdline", pid).p, &words, NULL) == 0 && str_eq(buf_str(&words), (str){ "/pause", sizeof("/pause") });
}

/* ---- the end ---- */

/* (suspends) One that is no child of another in the containers is a container's first; its parent is the monitor. */
static void ask(struct ending *e, pid_t pid, const pid_t *pids, size_t n)
{
	CLEANUP(buf_done) struct buf status = BUF_INIT(STATUS_MAX);
	int64_t parent;

	if (file_read(arena_printf(e->cluster->arena, "/proc/%d/status", pid).p, &status, NULL) < 0 ||
	    !str_to_i64(line_of(buf_str(&status), STR("\nPPid:")), &parent) || is_among((pid_t)parent, pids, n))
		return;
	if (parent > 1 && !is_among((pid_t)parent, e->monitors, e->n_monitors))
		e->monitors[e->n_monitors++] = (pid_t)parent;
	if (is_pause(e->cluster, pid))
		e->pauses[e->n_pauses++] = pid;
	else
		(void)kill(pid, is_deaf(e->cluster, pid, buf_str(&status)) ? SIGKILL : SIGTERM);
}

static void ask_all(struct ending *e)
{
	struct arena *a = e->cluster->arena;
	pid_t *pids;
	size_t n;

	if (cgroup_pids(e->group, a, &pids, &n, NULL) < 0)
		return;
	e->pauses = ARENA_ARRAY(a, pid_t, n + 1);
	e->monitors = ARENA_ARRAY(a, pid_t, n + 1);
	for (size_t i = 0; i < n; i++)
		ask(e, pids[i], pids, n);
}

static bool has_only_pauses(const struct ending *e, const pid_t *pids, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!is_among(pids[i], e->pauses, e->n_pauses))
			return false;
	return true;
}

/* (suspends) Who is left when the time is over, or needs none, is killed. */
static int wait_all(struct ending *e, struct err *err)
{
	int64_t until = clock_now_ns() + (int64_t)GRACE_MS * NS_PER_MS, last = until + (int64_t)KILL_MS * NS_PER_MS;
	int r = 0;

	while (r == 0 && clock_now_ns() < last) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		pid_t *pids;
		size_t n;
		if (cgroup_pids(e->group, &a, &pids, &n, NULL) < 0 || !n)
			break;
		bool kills = clock_now_ns() >= until || has_only_pauses(e, pids, n);
		for (size_t i = 0; kills && i < n; i++)
			(void)kill(pids[i], SIGKILL);
		r = fiber_sleep_ms(LOOK_MS, err);
	}
	return r;
}

int machine_stop_containers(const struct up_cluster *c, struct err *err)
{
	CLEANUP(cgroup_freep) struct cgroup *group = NULL;
	struct ending e = { .cluster = c };
	int r;

	if (cgroup_open(c->cgroup, &group, NULL) < 0)
		return 0; /* nothing was ever started in it */
	e.group = group;
	ask_all(&e);
	if ((r = wait_all(&e, err)) < 0 || (r = fiber_sleep_ms(LAST_WORDS_MS, err)) < 0) /* monitors write them to the logs */
		return r;
	for (size_t i = 0; i < e.n_monitors; i++)
		(void)kill(e.monitors[i], SIGKILL);
	return 0;
}
