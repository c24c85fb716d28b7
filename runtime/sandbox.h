/*
 * sandbox: one pod: its network namespace and addresses, its files, the process that holds its namespaces, its monitor.
 *
 *	sandbox.c          finding, keeping, telling       sandbox_run.c    making        sandbox_stop.c   stopping, removing
 *	sandbox_netns.c    the network namespace           sandbox_net.c    the network
 */
#ifndef C8S_RUNTIME_SANDBOX_H
#define C8S_RUNTIME_SANDBOX_H

#include "runtime/runtime_priv.h"

/*
 *	creating -> ready -> notready -> removing
 * A sandbox that is found while it is being made, or removed, after a restart, is removed.
 */
enum sandbox_state { SANDBOX_CREATING, SANDBOX_READY, SANDBOX_NOTREADY, SANDBOX_REMOVING };

/* CPU time at two moments: what was used between them. */
struct cpu_sample {
	int64_t at_ns;                   /* 0: never */
	uint64_t cpu_ns, nano_cores;
	bool has_rate;
};

struct sandbox {
	struct runtime *runtime;
	struct list link;                /* in runtime->sandboxes, once it is ready */
	unsigned refs;
	char id[RUNTIME_ID + 1];
	struct frozen *record;           /* runtimestore.Sandbox as it was made; what changes is below */
	enum sandbox_state state;
	int64_t created_ns;
	pid_t pid;                       /* of its first process; 0: it has ended */
	struct frozen *network;          /* CNI's result; NULL: none */
	struct frozen *resources, *overhead; /* as they were last updated; NULL: never */
	struct monitor *monitor;         /* NULL: there is none any more */
	struct fiber_cond changed;
	struct turn saving, stopping;
	bool kept;                       /* its record outlives a loss of power, as those of its containers */
	struct list containers;          /* container.in_sandbox */
	struct cpu_sample cpu;
};

/* By id or the unambiguous beginning of one: a reference that the caller gives back. -ERR_NOT_FOUND "not found". */
int sandbox_find(struct runtime *r, str id, struct sandbox **ret, struct err *err);
struct sandbox *sandbox_ref(struct sandbox *s);
void sandbox_unref(struct sandbox *s); /* NULL is fine */
void sandbox_unrefp(struct sandbox **s);

/* From its record. It is in no list yet. */
struct sandbox *sandbox_new(struct runtime *r, struct val record) NONNULL_RESULT;
void sandbox_add(struct sandbox *s);
void sandbox_forget(struct sandbox *s);
/* (suspends) Writes what it is now. */
int sandbox_save(struct sandbox *s, struct err *err);

/* ---- what it is made with ---- */

struct val sandbox_cri(const struct sandbox *s);         /* PodSandboxConfig */
struct val sandbox_security(const struct sandbox *s);    /* linux.securityContext */
bool sandbox_host_network(const struct sandbox *s);
const struct runtime_handler *sandbox_handler(const struct sandbox *s);
/* Folders and files, in the arena. */
const char *sandbox_folder(const struct sandbox *s, struct arena *a);
const char *sandbox_state_folder(const struct sandbox *s, struct arena *a);
const char *sandbox_shm(const struct sandbox *s, struct arena *a);
/* Where our own pause is mounted on: the same for all, nobody can write there. */
const char *sandbox_own_root(const struct sandbox *s, struct arena *a);
/* NULL for the node's own. */
const char *sandbox_netns(const struct sandbox *s, struct arena *a);
/* NULL: it has none of its own. */
const char *sandbox_userns(const struct sandbox *s, struct arena *a);
struct val sandbox_namespaces(const struct sandbox *s);  /* linux.securityContext.namespaceOptions */
/* The cgroup that all of the pod is in: given by the caller, or made by us. */
const char *sandbox_cgroup(const struct sandbox *s, struct arena *a);
bool sandbox_cgroup_is_ours(const struct sandbox *s);
struct monitor_options sandbox_monitor_options(const struct sandbox *s, struct arena *a);

/* ---- doing ---- */

/* (suspends) Makes one; its id in ret_id. */
int sandbox_run(struct runtime *r, struct val config, str handler, char ret_id[RUNTIME_ID + 1], struct err *err);
/* (suspends) Ends all in it and gives its network back; again: nothing happens. */
int sandbox_stop(struct sandbox *s, struct err *err);
/* (suspends) Stops it, removes its containers and itself. */
int sandbox_remove(struct sandbox *s, struct err *err);
/* (suspends) Removes all that there may be of it, however far it got. */
int sandbox_clear(struct sandbox *s, struct err *err);
/* (suspends) One question to its monitor. -ERR_UNAVAILABLE: it has none. */
int sandbox_ask(struct sandbox *s, struct arena *a, struct val question, const struct monitor_fds *in, struct monitor_fds *ret_out,
		struct val *ret_answer, struct err *err);
/* (suspends) The same, for what the pod's other questions must not wait for: monitor_ask_apart. */
int sandbox_ask_apart(struct sandbox *s, struct arena *a, struct val question, const struct monitor_fds *in, struct monitor_fds *ret_out,
		      struct err *err);
/* (suspends) The monitor forgets a container that has ended, or the first process; fine when it has. Within the caller's deadline. */
int sandbox_ask_delete(struct sandbox *s, struct arena *a, const char *id, struct err *err);
/* For monitor.h: arg is the sandbox. */
void sandbox_on_exit(void *arg, const struct monitor_exit *e);
/* Its first process has ended. */
void sandbox_ended(struct sandbox *s);

/* Addresses, the first one first; strings in the sandbox. */
size_t sandbox_addresses(const struct sandbox *s, str *ret, size_t max);
/* PodSandboxStatus and PodSandbox of CRI. */
struct val sandbox_status(struct sandbox *s, struct arena *a);
struct val sandbox_summary(struct sandbox *s, struct arena *a);
const char *sandbox_state_name(enum sandbox_state state);

/* ---- network: sandbox_netns.c, sandbox_net.c ---- */

/* (suspends) A new network namespace, mounted at path. */
int netns_make(const char *path, struct err *err);
/* Fine when there is none. */
int netns_remove(const char *path, struct err *err);
int sandbox_network_add(struct sandbox *s, struct err *err);
int sandbox_network_del(struct sandbox *s, struct err *err);

#endif
