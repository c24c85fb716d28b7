/* Sandboxes: finding, keeping, telling. */
#include "runtime/sandbox.h"

#include <signal.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "runtime/container.h"
#include "runtime/events.h"
#include "runtime/store.h"
#include "runtime/userns.h"

static const char *const states[] = {
	[SANDBOX_CREATING] = "creating", [SANDBOX_READY] = "ready", [SANDBOX_NOTREADY] = "notready",
	[SANDBOX_REMOVING] = "removing",
};

const char *sandbox_state_name(enum sandbox_state state) { return states[state]; }

static enum sandbox_state state_of(str name)
{
	for (size_t i = 0; i < ARRAY_LEN(states); i++)
		if (str_eq(name, str_of(states[i])))
			return (enum sandbox_state)i;
	return SANDBOX_CREATING;
}

/* ---- life ---- */

static struct frozen *freeze_if(struct val v) { return val_is_nil(v) ? NULL : val_freeze(v); }

struct sandbox *sandbox_new(struct runtime *r, struct val record)
{
	struct sandbox *s = mem_zalloc(sizeof *s);

	*s = (struct sandbox){ .runtime = r, .refs = 1, .record = val_freeze(record), .state = state_of(val_str(record, state)),
			       .created_ns = val_int(record, createdAt), .pid = (pid_t)val_int(record, pid),
			       .network = freeze_if(val_get(record, network)),
			       .resources = freeze_if(val_get(record, resources)),
			       .overhead = freeze_if(val_get(record, overhead)) };
	str id = val_str(record, id);
	memcpy(s->id, id.p, MIN(id.n, (size_t)RUNTIME_ID));
	fiber_cond_init(&s->changed, "a change of a sandbox");
	turn_init(&s->saving, "a sandbox's record");
	turn_init(&s->stopping, "the end of a sandbox");
	list_init(&s->containers);
	return s;
}

struct sandbox *sandbox_ref(struct sandbox *s)
{
	s->refs++;
	return s;
}

void sandbox_unref(struct sandbox *s)
{
	if (!s || --s->refs)
		return;
	frozen_unref(s->record);
	frozen_unref(s->network);
	frozen_unref(s->resources);
	frozen_unref(s->overhead);
	monitor_free(s->monitor);
	free(s);
}

void sandbox_unrefp(struct sandbox **s) { sandbox_unref(*s); }

void sandbox_add(struct sandbox *s)
{
	struct runtime *r = s->runtime;

	list_add(&r->sandboxes, &s->link);
	(void)map_put(&r->sandbox_ids, str_of(s->id), sandbox_ref(s));
}

void sandbox_forget(struct sandbox *s)
{
	list_remove(&s->link);
	if (map_remove(&s->runtime->sandbox_ids, str_of(s->id)))
		sandbox_unref(s);
}

int sandbox_find(struct runtime *r, str id, struct sandbox **ret, struct err *err)
{
	struct sandbox *found = map_get(&r->sandbox_ids, id);
	unsigned n = found != NULL;

	if (!found && id.n)
		LIST_EACH(struct sandbox, s, &r->sandboxes, link)
			if (str_starts(str_of(s->id), id)) {
				found = s;
				n++;
			}
	if (n != 1)
		return err_set(err, ERR_NOT_FOUND, "not found");
	*ret = sandbox_ref(found);
	return 0;
}

int sandbox_save(struct sandbox *s, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	SHIELD_SCOPE();

	(void)turn_take(&s->saving, NULL);
	/* one without containers is of no use after a loss of power */
	bool keep = s->state != SANDBOX_REMOVING && !list_empty(&s->containers);
	struct val v = s->record->val;
	v = val_with(&a, v, VAL_STR(str_of(states[s->state])), state);
	v = val_with(&a, v, val_of_int(s->pid), pid);
	v = val_with(&a, v, s->network ? s->network->val : VAL_EMPTY, network);
	v = val_with(&a, v, s->overhead ? s->overhead->val : VAL_EMPTY, overhead);
	v = val_with(&a, v, s->resources ? s->resources->val : VAL_EMPTY, resources);
	int r = store_write(sandbox_folder(s, &a), "sandbox.json", v, TYPE(runtimestore_v1, Sandbox), keep, err);
	turn_give(&s->saving);
	return r;
}

/* ---- what it is made with ---- */

struct val sandbox_cri(const struct sandbox *s) { return val_get(s->record->val, config); }
struct val sandbox_security(const struct sandbox *s) { return val_get(sandbox_cri(s), linux, securityContext); }

bool sandbox_host_network(const struct sandbox *s)
{
	return runtime_is(val_get(sandbox_security(s), namespaceOptions, network), "NODE");
}

const struct runtime_handler *sandbox_handler(const struct sandbox *s)
{
	return runtime_handler_find(s->runtime, val_str(s->record->val, runtimeHandler));
}

const char *sandbox_folder(const struct sandbox *s, struct arena *a)
{
	return runtime_text(a, "%s/sandboxes/%s", s->runtime->o.root, s->id);
}

const char *sandbox_state_folder(const struct sandbox *s, struct arena *a)
{
	return runtime_text(a, "%s/pods/%s", s->runtime->o.state, s->id);
}

const char *sandbox_shm(const struct sandbox *s, struct arena *a)
{
	return runtime_text(a, "%s/pods/%s/shm", s->runtime->o.state, s->id);
}

const char *sandbox_own_root(const struct sandbox *s, struct arena *a) { return runtime_text(a, "%s/pause", s->runtime->o.state); }

const char *sandbox_netns(const struct sandbox *s, struct arena *a)
{
	return sandbox_host_network(s) ? NULL : runtime_text(a, "%s/netns/%s", s->runtime->o.state, s->id);
}

struct val sandbox_namespaces(const struct sandbox *s) { return val_get(sandbox_security(s), namespaceOptions); }

const char *sandbox_userns(const struct sandbox *s, struct arena *a)
{
	return userns_wanted(sandbox_namespaces(s)) ? runtime_text(a, "%s/userns/%s", s->runtime->o.state, s->id) : NULL;
}

bool sandbox_cgroup_is_ours(const struct sandbox *s) { return !val_str(sandbox_cri(s), linux, cgroupParent).n; }

const char *sandbox_cgroup(const struct sandbox *s, struct arena *a)
{
	str parent = val_str(sandbox_cri(s), linux, cgroupParent);

	if (sandbox_cgroup_is_ours(s))
		return runtime_text(a, "%s/%s", s->runtime->o.cgroup_parent, s->id);
	return runtime_text(a, "%s" STR_FMT, parent.p[0] == '/' ? "" : "/", STR_ARG(parent));
}

struct monitor_options sandbox_monitor_options(const struct sandbox *s, struct arena *a)
{
	const struct runtime_handler *h = sandbox_handler(s);

	return (struct monitor_options){ .program = s->runtime->o.pod_program, .folder = sandbox_state_folder(s, a),
					 .oci_root = runtime_text(a, "%s/oci", s->runtime->o.state),
					 .oci_program = h ? h->program : NULL };
}

/* ---- the monitor ---- */

static int no_monitor(const struct sandbox *s, struct err *err)
{
	return err_set(err, ERR_UNAVAILABLE, "the monitor of sandbox %s is gone", s->id);
}

int sandbox_ask(struct sandbox *s, struct arena *a, struct val question, const struct monitor_fds *in, struct monitor_fds *ret_out,
		struct val *ret_answer, struct err *err)
{
	struct val answer;

	if (!s->monitor)
		return no_monitor(s, err);
	return monitor_ask(s->monitor, a, question, in, ret_out, ret_answer ? ret_answer : &answer, err);
}

int sandbox_ask_apart(struct sandbox *s, struct arena *a, struct val question, const struct monitor_fds *in, struct monitor_fds *ret_out,
		      struct err *err)
{
	return s->monitor ? monitor_ask_apart(s->monitor, a, question, in, ret_out, NULL, err) : no_monitor(s, err);
}

/*
 * An exec that was on its way in when the container ended is given up by the monitor first: that is soon. A start that was on its way when
 * an earlier service was killed may go through now: what it has started is killed.
 */
int sandbox_ask_delete(struct sandbox *s, struct arena *a, const char *id, struct err *err)
{
	enum { AGAIN_MS = 20 };
	struct val name = VAL_STR(str_of(id));
	int r;

	while ((r = sandbox_ask(s, a, OBJECT(a, F(op, VAL_LIT("delete")), F(id, name)), NULL, NULL, NULL, err)) == -ERR_CONFLICT) {
		struct val kill = OBJECT(a, F(op, VAL_LIT("kill")), F(id, name), F(signal, val_of_int(SIGKILL)), F(all, val_of_bool(true)));
		(void)sandbox_ask(s, a, kill, NULL, NULL, NULL, NULL);
		if ((r = fiber_sleep_ms(AGAIN_MS, err)) < 0)
			return r;
	}
	return r == -ERR_NOT_FOUND ? 0 : r;
}

static int save_and_tell(void *arg)
{
	CLEANUP(sandbox_unrefp) struct sandbox *s = arg;
	struct err err = ERR_INIT;

	if (s->state == SANDBOX_NOTREADY && sandbox_save(s, &err) < 0)
		log_warn("the record of a sandbox cannot be written", KV("sandbox", s->id), KV("err", &err));
	events_tell_sandbox(s, EVENT_STOPPED);
	return 0;
}

void sandbox_ended(struct sandbox *s)
{
	s->pid = 0;
	if (s->state == SANDBOX_READY) {
		s->state = SANDBOX_NOTREADY;
		if (fiber_group_spawn(&s->runtime->work, save_and_tell, sandbox_ref(s), NULL, "sandbox ended") < 0)
			sandbox_unref(s);
	}
	fiber_cond_broadcast(&s->changed);
}

/* (suspends) As after a restart that finds no monitor: all has ended, and what may be left is ended too. */
static int monitor_gone(void *arg)
{
	CLEANUP(sandbox_unrefp) struct sandbox *s = arg;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const char *folder = sandbox_state_folder(s, &a);

	monitor_free(TAKE(s->monitor));
	sandbox_ended(s);
	LIST_EACH(struct container, c, &s->containers, in_sandbox)
		if (c->started_ns)
			container_lost(c, folder);
	return 0;
}

void sandbox_on_exit(void *arg, const struct monitor_exit *e)
{
	struct sandbox *s = arg;

	if (!e->container.n && !e->exec.n) {
		if (fiber_group_spawn(&s->runtime->work, monitor_gone, sandbox_ref(s), NULL, "monitor gone") < 0)
			sandbox_unref(s);
		return;
	}
	if (e->exec.n) {
		exec_ended(s->runtime, e->exec, e->exit_code);
		return;
	}
	if (str_eq(e->container, str_of(s->id))) {
		sandbox_ended(s);
		return;
	}
	LIST_EACH(struct container, c, &s->containers, in_sandbox)
		if (str_eq(e->container, str_of(c->id))) {
			container_ended(c, e->exit_code, e->finished_ns, e->oom_killed);
			return;
		}
}

/* ---- telling ---- */

static bool is_ip6(str address) { return str_chr(address, ':') >= 0; }

size_t sandbox_addresses(const struct sandbox *s, str *ret, size_t max)
{
	struct val result = s->network ? s->network->val : VAL_EMPTY;
	struct val interfaces = val_get(result, interfaces);
	size_t n = 0;

	/* IPv4 first, as the kubelet expects of the first address. */
	for (int six = 0; six < 2; six++)
		VAL_EACH(ip, val_get(result, ips)) {
			str address, length;
			(void)str_cut(val_str(*ip, address), '/', &address, &length);
			bool inside = !val_has(*ip, interface) ||
				      val_str(val_at(interfaces, (size_t)val_int(*ip, interface)), sandbox).n > 0;
			if (address.n && inside && is_ip6(address) == six && n < max)
				ret[n++] = address;
		}
	return n;
}

static struct val network_status(const struct sandbox *s, struct arena *a)
{
	enum { MAX = 16 };
	str addresses[MAX];
	size_t n = s->state == SANDBOX_READY ? sandbox_addresses(s, addresses, MAX) : 0;
	struct val_builder more = val_builder(a);

	for (size_t i = 1; i < n; i++)
		val_add_item(&more, OBJECT(a, F(ip, VAL_STR(addresses[i]))));
	return OBJECT(a, F(ip, n ? VAL_STR(addresses[0]) : VAL_EMPTY), F(additionalIps, val_end_list(&more)));
}

static struct val state_value(const struct sandbox *s)
{
	return s->state == SANDBOX_READY ? VAL_LIT("SANDBOX_READY") : VAL_LIT("SANDBOX_NOTREADY");
}

struct val sandbox_status(struct sandbox *s, struct arena *a)
{
	struct val config = sandbox_cri(s);
	struct val options = val_get(sandbox_security(s), namespaceOptions);

	return OBJECT(a, F(id, VAL_STR(str_of(s->id))), F(metadata, val_get(config, metadata)), F(state, state_value(s)),
		      F(createdAt, val_of_int(s->created_ns)), F(network, network_status(s, a)),
		      F(linux, OBJECT(a, F(namespaces, OBJECT(a, F(options, options))))), F(labels, val_get(config, labels)),
		      F(annotations, val_get(config, annotations)),
		      F(runtimeHandler, val_get(s->record->val, runtimeHandler)));
}

struct val sandbox_summary(struct sandbox *s, struct arena *a)
{
	struct val config = sandbox_cri(s);

	return OBJECT(a, F(id, VAL_STR(str_of(s->id))), F(metadata, val_get(config, metadata)), F(state, state_value(s)),
		      F(createdAt, val_of_int(s->created_ns)), F(labels, val_get(config, labels)),
		      F(annotations, val_get(config, annotations)),
		      F(runtimeHandler, val_get(s->record->val, runtimeHandler)));
}
