/* One pod of this node, and what pods.c, pod_worker.c, pod_start.c and pod_stop.c share. */
#ifndef C8S_KUBELET_PODS_PRIV_H
#define C8S_KUBELET_PODS_PRIV_H

#include "base/fiber.h"
#include "base/map.h"
#include "kubelet/kubelet_priv.h"
#include "kubelet/pod_actions.h"
#include "kubelet/pod_view.h"

enum pod_stage {
	POD_WAITING,                  /* until all sources have told theirs */
	POD_WANTED,
	POD_ENDING,                   /* nothing starts any more, what runs is being stopped */
	POD_ENDED,                    /* nothing runs; what it had on the node is removed */
};

/* Why a worker looks. */
enum { WAKE_RUNTIME = 1, WAKE_OTHER = 2 };

/* What is remembered about a container between looks. Texts are its own. */
struct container_memory {
	struct container_note note;
	struct crash_backoff backoff;
	int64_t backoff_ns;           /* how long it waits before its next start */
	int64_t backoff_told_ns;      /* when that was told as an event (clock_now_ns); 0: not yet */
	char *name, *reason, *message;
	char *counted;                /* id of the run whose end has been counted */
	char *probed;                 /* id of the run whose probes have begun */
	bool liveness_failed, startup_failed;
	struct frozen *actuated;
};

struct pod {
	struct pods *pods;
	struct kubelet *kubelet;
	char *uid;
	struct frozen *object;        /* as its source last had it; of an orphan: what the runtime's labels say */
	struct frozen *told;          /* its last status; NULL: none yet */
	struct frozen *again;         /* its source has it again, though it is still being ended; NULL: it has not */
	enum pod_stage stage;
	unsigned wake;                /* WAKE_* */
	int64_t due_ns;               /* look again then (clock_now_ns); INT64_MAX: never */
	uint64_t seen;                /* signature of what the runtime had at the last look */
	bool removed;                 /* gone from its source */
	bool orphan;                  /* never had one: the runtime has it */
	bool begun;                   /* of pods from files: it has the name for itself */
	int64_t mount_wait_ms;        /* until the next try after its volumes could not be mounted; 0: they could */
	bool rejected, volumes_mounted, cleaned, finished, purged;
	bool failed;                  /* the last look could not do what it should */
	bool has_devices;             /* all that it asks for; the last step of its admission */
	int64_t volumes_generation;   /* of the object, when they were mounted */
	char *fail_reason, *fail_message;
	struct frozen *condition;     /* PodCondition DisruptionTarget */
	int64_t grace_s;              /* asked for by the kubelet itself; -1: none */
	struct container_memory *containers;
	size_t n_containers;
	struct frozen *given;         /* resources, as allocation.h has them; NULL: it has not been admitted */
	struct frozen *allocated;     /* the object with the resources that it has been given; NULL: those that it asks for */
	struct frozen *actuated;      /* spec.resources that its control group has; NULL: those of the spec */
	struct frozen *resize;        /* list of PodCondition; NULL: none */
	bool resize_waits;            /* to be tried again */
	int64_t resize_since_ns;      /* since when it waits (clock_now_ns) */
	struct fiber *fiber;
	bool stranded;                /* it should have a fiber, but there was no memory for one */
	struct fiber_cond woken, changed; /* changed: its stage has, for those that wait for its end */
};

struct pods {
	struct kubelet *kubelet;
	struct map by_uid;            /* of struct pod */
	bool complete, closing;
	struct fiber_cond empty;
	struct frozen *before[2];     /* what pods had been given and the runtime been told, before a restart; NULL: nothing */
	bool given_dirty;             /* the files are not up to date */
	struct fiber_cond given_changed;
};

/* ---- pods.c ---- */

str pod_uid(const struct pod *p);
/* Takes it out of the table and frees it: its fiber has come to its end. */
void pod_forget(struct pod *p);
/* Whether another pod from a file of that name is still there: files change, and their pods follow one after the other. */
bool pods_must_wait(struct pod *p);
/* The node does not take it after all: it will be Failed. */
void pods_reject(struct pod *p, str reason, str message);
void pod_set_stage(struct pod *p, enum pod_stage stage);
/* Replaces a text of a pod or container with a copy of s ("" frees it). */
void text_set(char **text, str s);
struct container_memory *pod_memory(struct pod *p, str name);

/* Whether the node would take the pod as it is here; others may have to go for that. In the arena: why not. */
bool pod_fits(struct pod *p, struct arena *a, struct val pod, str *ret_reason, str *ret_message);

/* ---- pod_worker.c ---- */

/* The fiber of one pod; arg is struct pod. */
int pod_worker(void *arg);

/* ---- pod_start.c ---- */

/* (suspends) The sandbox, as actions say. */
int pod_start_sandbox(struct pod *p, struct arena *a, struct val pod, unsigned attempt, str *ret_id, struct val *ret_config, struct err *err);
/*
 * (suspends) One container. A failure is remembered as its waiting state and told as events; the result says whether the worker should
 * come back before long.
 */
int pod_start_container(struct pod *p, struct arena *a, const struct pod_view *v, struct container_start start, str sandbox_id,
			struct val sandbox_config, struct val pull_secrets, struct val pod_ips, struct err *err);
/* (suspends) Secrets that its images are pulled with; those that are missing are told as an event. */
struct val pod_pull_secrets(struct pod *p, struct arena *a, struct val pod);
/* Where others look for the log of a container: <name>_<namespace>_<container>-<id>.log in containers/ beside the folder of all logs. */
str container_log_link(const struct kubelet_node *n, struct arena *a, struct val pod, str container, str id);
/* The container of a start, in spec. */
struct val pod_container_of(struct val pod, struct container_start start);

/* ---- pod_allocation.c: what pods have been given. None of these suspends, unless it says so. ---- */

void pods_allocation_load(struct pods *ps);
void pods_allocation_done(struct pods *ps);
/* Written at once, or soon. */
void pods_allocation_save(struct pods *ps);
void pods_allocation_changed(struct pods *ps);
/* (suspends, until canceled) Writes what has changed; resizes that wait are tried again from time to time. */
int pods_allocation_run(struct pods *ps, struct err *err);
/* Resizes that wait are tried again: something may have become free. */
void pods_resize_retry(struct pods *ps);
/* The pods that are active, each with the most that it may use of what it has and will have. */
struct val pods_holding(struct pods *ps, struct arena *a);

/* A pod is new: what it was given before a restart. */
void pod_allocation_begin(struct pod *p);
/* Its object has changed: p->allocated with it. */
void pod_allocation_follow(struct pod *p);
/* The same, and a resize that this is. old: the object as it was. */
void pod_allocation_update(struct pod *p, struct val old);
/* It is admitted, with what it had or else with what it asks for. */
void pod_allocation_admitted(struct pod *p);
void pod_allocation_end(struct pod *p);

/* PodResizePending or PodResizeInProgress: true when that changes anything. */
bool pod_resize_set(struct pod *p, const char *type, str reason, str message, int64_t generation);
bool pod_resize_clear(struct pod *p, const char *type, int64_t *ret_generation);
/* An event about it, with the resources that it asks for. */
void pod_resize_event(struct pod *p, bool warning, const char *reason, const char *text, int64_t generation, str error);

/* ---- pod_resize.c ---- */

/* What the runtime has been told about a container, and the kernel about a pod. */
void container_set_actuated(struct pod *p, str name, struct val resources);
void pod_set_actuated(struct pod *p, struct val resources);
/* What the pod has been given is not yet what its running containers have. */
bool pod_resize_is_open(struct pod *p, const struct pod_view *v);
/* Keeps the condition PodResizeInProgress by that. */
void pod_resize_look(struct pod *p, const struct pod_view *v);
/* (suspends) Resources that have changed: the pod's control group and the containers that actions name. 1: done, 0: nothing to do. */
int pod_resize(struct pod *p, struct arena *a, const struct pod_view *v, const struct pod_actions *actions, struct err *err);

/* ---- pod_stop.c ---- */

enum { STOP_GRACE_OWN = -1 };

/* (suspends) One container: Killing event, preStop, stop. grace_s STOP_GRACE_OWN: by the pod and the reason. */
int pod_stop_container(struct pod *p, struct arena *a, struct val pod, struct val status, enum kill_reason reason, str message,
		       int64_t grace_s, struct err *err);
/* (suspends) All containers that run, sidecars last, and then the sandboxes. grace_s as above. A shorter one of p counts at once. */
int pod_stop_all(struct pod *p, struct arena *a, struct val pod, const struct pod_view *v, int64_t grace_s, struct err *err);
/* (suspends) What the pod has on the node, beyond what `kubectl logs` can still show. */
int pod_clean(struct pod *p, struct val pod, struct err *err);
/* (suspends) Everything: containers, sandboxes, logs. */
int pod_purge(struct pod *p, struct arena *a, struct val pod, struct err *err);

#endif
