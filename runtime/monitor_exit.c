/*
 * How containers and execs end. A container's last output is taken first, then the end is put into a file, then it is told; so who
 * learns of it finds all of the log, and who was not there finds the file.
 */
#include "runtime/monitor_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/json.h"
#include "oci/cgroup.h"

enum { CGROUPS_TEXT_MAX = 64 << 10, EXIT_TEXT_MAX = 4096, EXIT_UNKNOWN = 255 };

char *exit_cgroup(pid_t pid)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(CGROUPS_TEXT_MAX);
	char path[32];
	str found = STR_NONE;

	/* Lines are "4:memory:/path" under v1 and "0::/path" under v2; memory is what is asked about later. */
	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	if (file_read(path, &text, NULL) < 0)
		return NULL;
	for (str line, rest = buf_str(&text); rest.n;) {
		str number, controllers, name;
		str_cut(rest, '\n', &line, &rest);
		str_cut(line, ':', &number, &line);
		str_cut(line, ':', &controllers, &name);
		if (str_eq(controllers, STR("memory")) || (cgroup_mode() == CGROUP_V2 && !controllers.n))
			found = name;
	}
	if (found.n < 2)
		return NULL; /* the root of all is nobody's */
	char *copy = mem_alloc(found.n + 1);
	memcpy(copy, found.p, found.n);
	copy[found.n] = '\0';
	return copy;
}

static bool was_oom_killed(const struct container *c)
{
	CLEANUP(cgroup_freep) struct cgroup *cgroup = NULL;
	struct cgroup_stats stats = { 0 };
	struct err err = ERR_INIT;

	if (!c->cgroup)
		return false;
	if (cgroup_open(c->cgroup, &cgroup, &err) < 0 || cgroup_stats(cgroup, &stats, &err) < 0) {
		log_info("it is not known whether memory was short", KV("container", c->id), KV("error", &err));
		return false;
	}
	return stats.oom_kills > 0;
}

static void write_exit(struct pod *pod, const char *id, struct val event)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(EXIT_TEXT_MAX), path = BUF_INIT(EXIT_TEXT_MAX);
	struct err err = ERR_INIT;

	buf_addf(&path, "%s/exits/%s", pod->folder, id);
	if (json_encode(&text, event, &(struct json_encode_options){ .plain = true }, &err) < 0 ||
	    buf_check(&path, "the path of an exit", &err) < 0 || file_write(path.p, buf_str(&text), 0600, &err) < 0)
		log_error("an exit is in no file", KV("container", id), KV("error", &err));
}

static int exit_code(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : WIFSIGNALED(status) ? 128 + WTERMSIG(status) : EXIT_UNKNOWN;
}

static void container_ended(struct container *c, int status, int64_t ns)
{
	struct arena a = ARENA_INIT;

	c->status = STATUS_STOPPED;
	c->exit_code = exit_code(status);
	c->finished_ns = ns;
	c->oom_killed = was_oom_killed(c);
	c->pid = 0;
	job_hurry(c);
	stdio_close_input(c);
	stdio_drain(c);
	struct val event = monitor_wire_exit(&a, &(struct monitor_exit){ .container = str_of(c->id), .exit_code = c->exit_code,
									 .finished_ns = ns, .oom_killed = c->oom_killed });
	write_exit(c->pod, c->id, event);
	conn_tell(c->pod, event);
	arena_done(&a);
}

static void exec_ended(struct exec *e, int status, int64_t ns)
{
	struct arena a = ARENA_INIT;

	conn_tell(e->container->pod, monitor_wire_exit(&a, &(struct monitor_exit){ .container = str_of(e->container->id),
				  .exec = str_of(e->id), .exit_code = exit_code(status), .finished_ns = ns }));
	arena_done(&a);
	exec_free(e);
}

/* False: it is nobody's. */
static bool give(struct pod *pod, const struct unclaimed *end)
{
	LIST_EACH(struct container, c, &pod->containers, link) {
		if (c->pid == end->pid) {
			if (c->starting)
				c->end = *end;
			else
				container_ended(c, end->status, end->ns);
			return true;
		}
		LIST_EACH(struct exec, e, &c->execs, link) {
			if (e->pid == end->pid) {
				exec_ended(e, end->status, end->ns);
				return true;
			}
		}
	}
	return false;
}

void exit_reaped(struct pod *pod, pid_t pid, int status)
{
	struct unclaimed end = { pid, status, clock_wall_ns() };

	if (give(pod, &end) || list_empty(&pod->jobs))
		return;
	/* The oldest goes when there are too many: orphans of containers without a PID namespace. */
	if (pod->n_unclaimed == UNCLAIMED_MAX)
		memmove(pod->unclaimed, pod->unclaimed + 1, --pod->n_unclaimed * sizeof(end));
	pod->unclaimed[pod->n_unclaimed++] = end;
}

void exit_claim(struct pod *pod, pid_t pid)
{
	struct unclaimed end = { .pid = pid, .status = EXIT_UNKNOWN << 8, .ns = clock_wall_ns() };
	siginfo_t info;

	/* Still our child: what was noted under its number was another one. */
	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0)
		return;
	int sys = errno;
	for (size_t i = 0; i < pod->n_unclaimed; i++) {
		if (pod->unclaimed[i].pid == pid) {
			end = pod->unclaimed[i];
			pod->unclaimed[i] = pod->unclaimed[--pod->n_unclaimed];
			give(pod, &end);
			return;
		}
	}
	/* Neither noted nor a child any more: how it ended is lost, but not that it did. */
	if (sys == ECHILD)
		give(pod, &end);
}

void exit_started(struct container *c)
{
	c->starting = false;
	if (c->end.pid)
		container_ended(c, c->end.status, c->end.ns);
	c->end.pid = 0;
}
