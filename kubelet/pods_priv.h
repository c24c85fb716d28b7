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
	enum pod_stage stage;
	unsigned wake;                /* WAKE_* */
	int64_t due_ns;               /* look again then (clock_now_ns); INT64_MAX: never */
	uint64_t seen;                /* signature of what the runtime had at the last look */
	bool removed;                 /* gone from its source */
	bool orphan;                  /* never had one: the runtime has it */
	bool rejected, volumes_mounted, cleaned, finished;
	int64_t volumes_generation;   /* of the object, when they were mounted */
	char *fail_reason, *fail_message;
	struct frozen *condition;     /* PodCondition DisruptionTarget */
	int64_t grace_s;              /* asked for by the kubelet itself; -1: none */
	struct container_memory *containers;
	size_t n_containers;
	struct frozen *allocated;     /* the pod with the resources that it has been given; NULL: those that it asks for */
	struct frozen *resize;        /* list of PodCondition; NULL: none */
	struct fiber *fiber;
	struct fiber_cond woken, changed; /* changed: its stage has, for those that wait for its end */
};

struct pods {
	struct kubelet *kubelet;
	struct map by_uid;            /* of struct pod */
	bool complete, closing;
	struct fiber_cond empty;
};

/* ---- pods.c ---- */

str pod_uid(const struct pod *p);
/* Takes it out of the table and frees it: its fiber has come to its end. */
void pod_forget(struct pod *p);
/* The node does not take it after all: it will be Failed. */
void pods_reject(struct pod *p, str reason, str message);
void pod_set_stage(struct pod *p, enum pod_stage stage);
/* Replaces a text of a pod or container with a copy of s ("" frees it). */
void text_set(char **text, str s);
struct container_memory *pod_memory(struct pod *p, str name);

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

/* ---- pod_resize.c ---- */

/* (suspends) Resources that have changed in place: the pod's control group and the containers, as actions say. */
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
void pod_purge(struct pod *p, struct arena *a, struct val pod);

#endif
