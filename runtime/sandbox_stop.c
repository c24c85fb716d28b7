/* Stopping and removing a sandbox. Every step is fine when it was done before. */
#include <errno.h>
#include <signal.h>
#include <sys/mount.h>

#include "base/log.h"
#include "codec/atoms.h"
#include "oci/cgroup.h"
#include "runtime/container.h"
#include "runtime/events.h"
#include "runtime/store.h"
#include "runtime/userns.h"

enum { KILLED_MS = 10000, END_MS = 5000 };

/* Its monitor is gone, and with it whoever could be asked. */
static void kill_by_cgroup(struct sandbox *s, struct arena *a)
{
	CLEANUP(cgroup_freep) struct cgroup *g = NULL;

	if (cgroup_open(runtime_text(a, "%s/%s", sandbox_cgroup(s, a), s->id), &g, NULL) == 0)
		(void)cgroup_kill(g, SIGKILL, NULL);
}

static int kill_process(struct sandbox *s, struct arena *a, struct err *err)
{
	struct val question = OBJECT(a, F(op, VAL_LIT("kill")), F(id, VAL_STR(str_of(s->id))), F(signal, val_of_int(SIGKILL)));
	int r = sandbox_ask(s, a, question, NULL, NULL, NULL, err);

	if (r < 0 && r != -ERR_NOT_FOUND && r != -ERR_CONFLICT && r != -ERR_UNAVAILABLE && r != -ERR_GONE)
		return r;
	if (r == -ERR_UNAVAILABLE)
		kill_by_cgroup(s, a);
	DEADLINE_SCOPE(KILLED_MS);
	while (r == 0 && s->pid)
		r = fiber_cond_wait(&s->changed, err);
	return r == 0 || r == -ERR_CANCELED || r == -ERR_TIMEOUT ? r : 0;
}

/* The monitor has nothing more to do; one that does not listen any more is let go. */
static void end_monitor(struct sandbox *s, struct arena *a)
{
	struct err err = ERR_INIT;
	DEADLINE_SCOPE(END_MS);

	if (!s->monitor)
		return;
	if (sandbox_ask_delete(s, a, s->id, &err) < 0)
		log_warn("the first process of a sandbox cannot be deleted", KV("sandbox", s->id), KV("err", &err));
	if (sandbox_ask(s, a, OBJECT(a, F(op, VAL_LIT("end"))), NULL, NULL, NULL, &err) < 0)
		log_warn("a monitor does not end", KV("sandbox", s->id), KV("err", &err));
	monitor_free(TAKE(s->monitor));
}

static int stop_containers(struct sandbox *s, struct err *err)
{
	struct container *c;
	int r = 0;

	for (;;) {
		c = NULL;
		LIST_EACH(struct container, each, &s->containers, in_sandbox)
			if (container_state(each) == CONTAINER_RUNNING || container_state(each) == CONTAINER_UNKNOWN ||
			    (container_state(each) == CONTAINER_EXITED && !each->cleared)) {
				c = container_ref(each);
				break;
			}
		if (!c)
			return 0;
		r = container_stop(c, 0, err);
		if (r < 0)
			err_wrap(err, r, "failed to stop container \"%s\"", c->id);
		container_unref(c);
		if (r < 0)
			return r;
	}
}

static int remove_network(struct sandbox *s, struct arena *a, struct err *err)
{
	const char *netns = sandbox_netns(s, a), *userns = sandbox_userns(s, a);
	int r;

	if (!netns)
		return 0;
	if ((r = sandbox_network_del(s, err)) < 0)
		return err_wrap(err, r, "failed to destroy network for sandbox \"%s\"", s->id);
	if ((r = netns_remove(netns, err)) < 0)
		return err_wrap(err, r, "failed to remove network namespace for sandbox \"%s\"", s->id);
	if (userns && (r = userns_remove(userns, err)) < 0)
		return err_wrap(err, r, "failed to remove user namespace for sandbox \"%s\"", s->id);
	return 0;
}

static int stop(struct sandbox *s, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	int r = stop_containers(s, err);

	if (r < 0)
		return r;
	if ((r = kill_process(s, &a, err)) < 0)
		return err_wrap(err, r, "failed to stop sandbox \"%s\"", s->id);
	if (s->state == SANDBOX_READY)
		sandbox_ended(s);
	end_monitor(s, &a);
	return remove_network(s, &a, err);
}

int sandbox_stop(struct sandbox *s, struct err *err)
{
	int r = turn_take(&s->stopping, err);

	if (r < 0)
		return r;
	r = stop(s, err);
	turn_give(&s->stopping);
	return r;
}

static int unmount_shm(struct sandbox *s, struct arena *a, struct err *err)
{
	const char *path = sandbox_shm(s, a);

	if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno != EINVAL && errno != ENOENT)
		return err_sys(err, errno, "unmount %s", path);
	return 0;
}

/* The pod's own cgroup, when nobody else cares for it. What may still be in it is ended. */
static int remove_cgroup(struct sandbox *s, struct arena *a, struct err *err)
{
	CLEANUP(cgroup_freep) struct cgroup *g = NULL;
	const char *path = sandbox_cgroup(s, a);

	if (!sandbox_cgroup_is_ours(s))
		path = runtime_text(a, "%s/%s", path, s->id);
	if (cgroup_open(path, &g, NULL) < 0)
		return 0;
	(void)cgroup_kill(g, SIGKILL, NULL);
	int r = cgroup_remove(g, err);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

int sandbox_clear(struct sandbox *s, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct runtime_options *o = &s->runtime->o;
	int r;

	(void)sandbox_save(s, NULL);
	if ((r = stop(s, err)) < 0 || (r = unmount_shm(s, &a, err)) < 0 || (r = remove_cgroup(s, &a, err)) < 0 ||
	    (r = snapshot_remove(s->runtime->snapshots, str_of(s->id), err)) < 0 ||
	    (r = store_remove(runtime_text(&a, "%s/oci", o->state), s->id, err)) < 0 ||
	    (r = store_remove(runtime_text(&a, "%s/pods", o->state), s->id, err)) < 0)
		return r;
	return store_remove(runtime_text(&a, "%s/sandboxes", o->root), s->id, err);
}

static int remove_containers(struct sandbox *s, struct err *err)
{
	struct container *c;
	int r = 0;

	while (r == 0 && (c = LIST_FIRST(struct container, &s->containers, in_sandbox))) {
		container_ref(c);
		r = container_remove(c, err);
		if (r < 0)
			err_wrap(err, r, "failed to remove container \"%s\"", c->id);
		container_unref(c);
	}
	return r;
}

int sandbox_remove(struct sandbox *s, struct err *err)
{
	int r = sandbox_stop(s, err);

	if (r < 0)
		return err_wrap(err, r, "failed to forcibly stop sandbox \"%s\"", s->id);
	if ((r = remove_containers(s, err)) < 0 || (r = turn_take(&s->stopping, err)) < 0)
		return r;
	if (s->state != SANDBOX_REMOVING) {
		s->state = SANDBOX_REMOVING;
		r = sandbox_clear(s, err);
		if (r < 0)
			s->state = SANDBOX_NOTREADY;
	}
	turn_give(&s->stopping);
	if (r < 0)
		return err_wrap(err, r, "failed to delete sandbox \"%s\"", s->id);
	if (!list_linked(&s->link)) /* somebody else has removed it meanwhile */
		return 0;
	events_tell_sandbox(s, EVENT_DELETED);
	runtime_name_release(s->runtime, val_str(s->record->val, name));
	sandbox_forget(s);
	return 0;
}
