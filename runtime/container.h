/*
 * container: one container of a pod: its root file system, its bundle, its process by the pod's monitor.
 *
 *	container.c        finding, keeping, telling       container_create.c   making      container_run.c   starting, stopping, removing
 *	container_exec.c   further processes in it
 */
#ifndef C8S_RUNTIME_CONTAINER_H
#define C8S_RUNTIME_CONTAINER_H

#include "base/buf.h"
#include "runtime/sandbox.h"

/*
 *	created -> running -> exited        (created -> exited: it could not be started)
 * unknown: the monitor is gone and left no word.
 */
enum container_state { CONTAINER_CREATED, CONTAINER_RUNNING, CONTAINER_EXITED, CONTAINER_UNKNOWN };

struct container {
	struct runtime *runtime;
	struct sandbox *sandbox;         /* a reference */
	struct list link, in_sandbox;    /* in runtime->containers, sandbox->containers, once it is made */
	unsigned refs;
	char id[RUNTIME_ID + 1];
	struct frozen *record;           /* runtimestore.Container as it was made; what changes is below */
	struct frozen *resources;        /* LinuxContainerResources as they were last updated; NULL: never */
	int64_t created_ns, started_ns, finished_ns;
	int exit_code;
	pid_t pid;
	char *reason, *message;          /* NULL: none */
	bool unknown;
	int64_t starting_ns;             /* a start is under way since then; 0: none */
	bool removing, made;
	bool signaled;                   /* by a stop that still waits */
	bool cleared;                    /* after its end: the monitor has forgotten it */
	struct fiber_cond changed;
	struct turn saving;
	struct cpu_sample cpu;
	int64_t layer_at_ns;             /* when its writable layer was last measured */
	uint64_t layer_bytes, layer_inodes;
};

static inline struct val container_record(const struct container *c) { return c->record->val; }

/* As for sandboxes. */
int container_find(struct runtime *r, str id, struct container **ret, struct err *err);
struct container *container_ref(struct container *c);
void container_unref(struct container *c); /* NULL is fine */
void container_unrefp(struct container **c);
struct container *container_new(struct sandbox *s, struct val record) NONNULL_RESULT;
void container_add(struct container *c);
void container_forget(struct container *c);
/* (suspends) */
int container_save(struct container *c, struct err *err);

struct val container_config(const struct container *c);  /* ContainerConfig */
const char *container_folder(const struct container *c, struct arena *a);
enum container_state container_state(const struct container *c);
/* "CONTAINER_RUNNING" */
const char *container_state_name(enum container_state state);
/* LinuxContainerResources in effect. */
struct val container_resources(const struct container *c);

/* ContainerStatus and Container of CRI. */
struct val container_status(struct container *c, struct arena *a);
struct val container_summary(struct container *c, struct arena *a);

/* ---- doing ---- */

/* (suspends) */
int container_create(struct sandbox *s, struct val config, struct val sandbox_config, char ret_id[RUNTIME_ID + 1], struct err *err);
int container_start(struct container *c, struct err *err);
/* timeout_s: between the signal and SIGKILL; 0: SIGKILL at once. */
int container_stop(struct container *c, int64_t timeout_s, struct err *err);
int container_remove(struct container *c, struct err *err);
int container_update(struct container *c, struct val resources, struct err *err);
int container_reopen_log(struct container *c, struct err *err);
/* (suspends) Removes all that there may be of it, however far it got. */
int container_clear(struct container *c, struct err *err);
/* The snapshot of an image that its i-th mount is of. */
str container_image_key(struct arena *a, const char *id, size_t i);
/* It has ended: notes it, tells it, and lets the monitor forget it. */
void container_ended(struct container *c, int exit_code, int64_t finished_ns, bool oom_killed);
/* The same for one whose start was cut short, when the service was killed. */
void container_start_lost(struct container *c);
/* The same, as its monitor wrote it down in the pod's folder; false: it did not. */
bool container_ended_before(struct container *c, const char *folder);
/* The same for one whose monitor is gone: as that wrote it down, or an end that nobody knows. folder NULL: nothing was written down. */
void container_lost(struct container *c, const char *folder);

/* ---- further processes ---- */

struct exec;

struct exec_options {
	struct val args;                 /* list of strings */
	bool terminal;
	int stdio[3];                    /* without a terminal; they stay the caller's */
};

/*
 * (suspends) Starts a process in a running container. With a terminal, *ret_terminal is its master, which the caller closes.
 * exec_free after exec_wait; what still runs then is killed.
 */
int exec_start(struct container *c, const struct exec_options *o, struct exec **ret, int *ret_terminal, struct err *err);
/* (suspends) Until it has ended. */
int exec_wait(struct exec *e, int *ret_code, struct err *err);
/* (suspends) Both of them. */
int exec_resize(struct exec *e, unsigned width, unsigned height, struct err *err);
int exec_kill(struct exec *e, struct err *err);
void exec_free(struct exec *e); /* (suspends) NULL is fine */
void exec_freep(struct exec **e);
/* One has ended; a container has, and all in it. */
void exec_ended(struct runtime *r, str exec_id, int exit_code);
void exec_container_ended(struct container *c);

/* (suspends) Runs one to its end and keeps its output. timeout_s 0: none. -ERR_TIMEOUT "timeout 1s exceeded: ...". */
struct exec_output {
	struct buf out, err;
	int exit_code;
};

void exec_output_done(struct exec_output *o);
int exec_sync(struct container *c, struct val args, int64_t timeout_s, struct exec_output *ret, struct err *err);

/* (suspends) A socket with the container's standard streams (monitor.h, attach), which the caller closes. */
int container_attach(struct container *c, int *ret_socket, struct err *err);
/* (suspends) The size of the container's terminal. */
int container_resize(struct container *c, unsigned width, unsigned height, struct err *err);

#endif
