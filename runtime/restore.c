/*
 * Taking up what an earlier run left. Monitors know what runs and wrote down what ended; records know what there is. Where a monitor is
 * gone (a reboot, a kill), its containers have ended, and what may be left of them is ended too.
 */
#include "runtime/restore.h"

#include <errno.h>
#include <signal.h>

#include "base/clock.h"
#include "base/log.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "runtime/container.h"
#include "runtime/store.h"

enum { CLEAR_MS = 60000, CONNECT_MS = 10000 };

/* ---- containers ---- */

static struct val find_state(struct val answer, const char *id)
{
	VAL_EACH(c, val_get(answer, containers))
		if (str_eq(val_str(*c, id), str_of(id)))
			return *c;
	return VAL_EMPTY;
}

/* What its monitor says of it: VAL_NONE when it knows nothing. */
static void take_up_container(struct container *c, const char *folder, struct val state)
{
	str status = val_str(state, status);

	if (c->finished_ns)
		return;
	if (val_is_nil(state)) {
		/* Ended and already deleted there, or never started: what was written down before a start is not true then. */
		if (c->started_ns && !container_ended_before(c, folder))
			c->started_ns = 0;
		return;
	}
	if (str_eq(status, STR("running")) || str_eq(status, STR("paused"))) {
		c->pid = (pid_t)val_int(state, pid);
		c->started_ns = c->started_ns ? c->started_ns : clock_wall_ns();
		return;
	}
	c->started_ns = c->started_ns ? c->started_ns : c->created_ns;
	if (str_eq(status, STR("stopped")))
		container_ended(c, (int)val_int(state, exitCode), val_int(state, finishedAt), val_bool(state, oomKilled));
	else /* its start was cut short, and nobody will go on with it: what waits there is killed when it is deleted */
		container_start_lost(c);
}

static bool is_whole(struct val record) { return str_eq(val_str(record, state), STR("made")); }

/* (suspends) One that was half made, or half removed. */
static void drop_container(struct container *c)
{
	struct err err = ERR_INIT;
	DEADLINE_SCOPE(CLEAR_MS);

	c->removing = true;
	log_info("removing a container that was not complete", KV("container", c->id));
	if (container_clear(c, &err) < 0)
		log_error("a container that was not complete cannot be removed", KV("container", c->id), KV("err", &err));
}

static int load_container(struct runtime *r, struct arena *a, str id, struct err *err)
{
	CLEANUP(sandbox_unrefp) struct sandbox *s = NULL;
	const char *folder = runtime_text(a, "%s/containers/" STR_FMT, r->o.root, STR_ARG(id));
	struct val record;
	int code = store_read(folder, "container.json", TYPE(runtimestore_v1, Container), a, &record, err);

	if (code < 0 || !str_eq(val_str(record, id), id) || sandbox_find(r, val_str(record, podSandboxId), &s, NULL) < 0) {
		log_info("removing what is left of a container", KV("container", id), KV("err", err));
		(void)snapshot_remove(r->snapshots, id, NULL);
		return store_remove(runtime_text(a, "%s/containers", r->o.root), id.p, err);
	}
	CLEANUP(container_unrefp) struct container *c = container_new(s, record);
	if (!is_whole(record)) {
		drop_container(c);
		return 0;
	}
	container_add(c);
	(void)runtime_name_reserve(r, val_str(container_record(c), name), c->id, NULL);
	return 0;
}

/* ---- sandboxes ---- */

/* (suspends) */
static void drop_sandbox(struct sandbox *s)
{
	struct err err = ERR_INIT;
	DEADLINE_SCOPE(CLEAR_MS);

	log_info("removing a sandbox that was not complete", KV("sandbox", s->id));
	s->state = SANDBOX_REMOVING;
	if (sandbox_clear(s, &err) < 0)
		log_error("a sandbox that was not complete cannot be removed", KV("sandbox", s->id), KV("err", &err));
}

/* (suspends) -ERR_NOT_FOUND: its monitor is gone. */
static int connect(struct sandbox *s, struct arena *a, struct val *ret_state, struct err *err)
{
	struct monitor_options o = sandbox_monitor_options(s, a);
	DEADLINE_SCOPE(CONNECT_MS);
	int r = monitor_connect(&o, sandbox_on_exit, s, &s->monitor, err);

	return r < 0 ? r : sandbox_ask(s, a, OBJECT(a, F(op, VAL_LIT("state"))), NULL, NULL, ret_state, err);
}

static int load_sandbox(struct runtime *r, struct arena *a, str id, struct err *err)
{
	const char *folder = runtime_text(a, "%s/sandboxes/" STR_FMT, r->o.root, STR_ARG(id));
	struct val record, state;
	int code = store_read(folder, "sandbox.json", TYPE(runtimestore_v1, Sandbox), a, &record, err);

	if (code < 0 || !str_eq(val_str(record, id), id)) {
		/* Without a record there is nothing but the folder. */
		log_info("removing what is left of a sandbox", KV("sandbox", id), KV("err", err));
		return store_remove(runtime_text(a, "%s/sandboxes", r->o.root), id.p, err);
	}
	CLEANUP(sandbox_unrefp) struct sandbox *s = sandbox_new(r, record);
	if (s->state == SANDBOX_CREATING || s->state == SANDBOX_REMOVING) {
		(void)connect(s, a, &state, NULL);
		drop_sandbox(s);
		return 0;
	}
	sandbox_add(s);
	(void)runtime_name_reserve(r, val_str(s->record->val, name), s->id, NULL);
	return 0;
}

/* (suspends) What has happened meanwhile. */
static void take_up(struct sandbox *s, struct arena *a)
{
	const char *folder = sandbox_state_folder(s, a);
	struct err err = ERR_INIT;
	struct val answer = VAL_EMPTY;
	int r = connect(s, a, &answer, &err);

	if (r < 0) {
		if (s->state == SANDBOX_READY)
			log_warn("the monitor of a sandbox is gone", KV("sandbox", s->id), KV("err", &err));
		monitor_free(TAKE(s->monitor));
		sandbox_ended(s);
		LIST_EACH(struct container, c, &s->containers, in_sandbox)
			if (c->started_ns && !c->finished_ns)
				container_lost(c, folder);
		return;
	}
	LIST_EACH(struct container, c, &s->containers, in_sandbox)
		take_up_container(c, folder, find_state(answer, c->id));
	struct val own = find_state(answer, s->id);
	if (str_eq(val_str(own, status), STR("running")))
		s->pid = (pid_t)val_int(own, pid);
	else
		sandbox_ended(s);
}

static int load_all(struct runtime *r, struct arena *a, const char *kind, int (*load)(struct runtime *, struct arena *, str, struct err *),
		    struct err *err)
{
	str *ids;
	size_t n;
	int code = store_list(runtime_text(a, "%s/%s", r->o.root, kind), a, &ids, &n, err);

	for (size_t i = 0; i < n && code >= 0; i++) {
		struct err one = ERR_INIT;
		if (load(r, a, ids[i], &one) < 0)
			log_error("cannot be taken up", KV("kind", kind), KV("id", ids[i]), KV("err", &one));
		code = fiber_check(err);
	}
	return code < 0 ? code : 0;
}

/* By when they were made, as lists are told. */
static void sort_by_age(struct list *head, size_t offset, int64_t (*age)(const void *item))
{
	struct list sorted = LIST_INIT(sorted);

	while (!list_empty(head)) {
		struct list *oldest = head->next;
		for (struct list *at = head->next; at != head; at = at->next)
			if (age((char *)at - offset) < age((char *)oldest - offset))
				oldest = at;
		list_remove(oldest);
		list_add(&sorted, oldest);
	}
	while (!list_empty(&sorted)) {
		struct list *first = sorted.next;
		list_remove(first);
		list_add(head, first);
	}
}

static int64_t sandbox_age(const void *item) { return ((const struct sandbox *)item)->created_ns; }
static int64_t container_age(const void *item) { return ((const struct container *)item)->created_ns; }

/* (suspends) Root file systems of which no record knows. */
static void keep_snapshots(struct runtime *r, struct arena *a)
{
	size_t n = 0, max = map_len(&r->sandbox_ids);
	struct err err = ERR_INIT;

	LIST_EACH(struct container, c, &r->containers, link)
		max += 1 + val_len(val_get(container_config(c), mounts));
	str *keys = ARENA_ARRAY(a, str, max + 1);
	LIST_EACH(struct sandbox, s, &r->sandboxes, link)
		keys[n++] = str_of(s->id);
	LIST_EACH(struct container, c, &r->containers, link) {
		keys[n++] = str_of(c->id);
		for (size_t i = 0; i < val_len(val_get(container_config(c), mounts)); i++)
			keys[n++] = container_image_key(a, c->id, i);
	}
	if (snapshots_keep(r->snapshots, keys, n, &err) < 0)
		log_warn("root file systems that nobody knows of cannot be removed", KV("err", &err));
}

int restore_all(struct runtime *r, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	int code;

	if ((code = load_all(r, &a, "sandboxes", load_sandbox, err)) < 0 ||
	    (code = load_all(r, &a, "containers", load_container, err)) < 0)
		return code;
	sort_by_age(&r->sandboxes, offsetof(struct sandbox, link), sandbox_age);
	sort_by_age(&r->containers, offsetof(struct container, link), container_age);
	LIST_EACH(struct sandbox, s, &r->sandboxes, link)
		take_up(s, &a);
	keep_snapshots(r, &a);
	log_info("taken up", KV("sandboxes", map_len(&r->sandbox_ids)), KV("containers", map_len(&r->container_ids)));
	return fiber_check(err);
}
