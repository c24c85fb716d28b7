/* Between the files of the kube-scheduler command. */
#ifndef C8S_CMD_KUBE_SCHEDULER_H
#define C8S_CMD_KUBE_SCHEDULER_H

#include "cmd/component_server.h"
#include "cmd/flags_config.h"

struct kube_scheduler_flags {
	const char *config, *write_config_to, *master, *logging_format;
	const char *const *feature_gates;
	struct component_server_flags server;
	struct flag_settings settings; /* fields of KubeSchedulerConfiguration */
	int64_t unschedulable_max_ns, verbosity, seed;
	bool version;
};

extern const struct flag kube_scheduler_flags[];
extern const struct flag_field kube_scheduler_fields[];

/* The configuration in force: the file, then the flags that count besides one; and what --feature-gates says. 0, or the exit code after a message of c. */
int kube_scheduler_complete(const struct command *c, const struct kube_scheduler_flags *f, struct arena *a, struct frozen **ret, struct val *ret_gates);

/* One run of it, which the caller fills. */
struct kube_scheduler {
	struct kube_scheduler_flags flags;
	struct frozen *config;       /* of kube_scheduler_complete */
	struct val gates;            /* what --feature-gates says */
	struct client *client;
	void (*on_ready)(void *arg); /* it has seen everything, and schedules or waits for its turn */
	void *arg;
	/* ---- of the run ---- */
	struct informers *informers;
	struct scheduler *scheduler;
	bool synced;
	int result;
	struct err err;
};

/* (suspends) Schedules, once this process leads, and serves the port. Until canceled; "leaderelection lost" is -ERR_UNAVAILABLE. */
int kube_scheduler_run(struct kube_scheduler *s, struct err *err);

#endif
