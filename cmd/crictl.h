/*
 * crictl: a client of CRI for people, with the words and tables of Kubernetes' own crictl; for c8s runtime, containerd and CRI-O.
 *
 *	crictl.c            actions                        crictl_show.c         tables, JSON
 *	crictl_options.c    options of each action         crictl_list.c         filters and order of lists
 *	crictl_settings.c   crictl.yaml                    crictl_config.c       configurations of pods and containers in files
 *	crictl_stream.c     exec, attach, events           crictl_remote.h       the way to a streaming server
 *	crictl_forward.c    port-forward
 *	crictl_pods.c, crictl_containers.c, crictl_images.c, crictl_stats.c: the other actions
 *
 * What a runtime answers is bounded (CRICTL_ANSWER_MAX) and may be anything: nothing of it is trusted, and control characters
 * in what is meant for reading are not passed on to the terminal.
 */
#ifndef C8S_CMD_CRICTL_H
#define C8S_CMD_CRICTL_H

#include "base/arena.h"
#include "cmd/cmd.h"
#include "codec/schema.h"
#include "net/grpc.h"

enum { CRICTL_ARGUMENTS_MAX = 256, CRICTL_LIST_MAX = 16, CRICTL_ANSWER_MAX = 64 << 20 };

struct crictl_texts {
	const char *item[CRICTL_LIST_MAX];
	size_t n;
};

/* What was asked for; every action takes what it knows. Texts that were not given are NULL, numbers -1. */
struct crictl {
	struct arena arena;
	struct grpc_channel *channel, *image_channel; /* the latter is the former unless there is an endpoint for it */
	int exit_code;                                /* of a process that was run, for the command's own */

	/* for all actions */
	const char *config, *endpoint, *image_endpoint;
	int64_t timeout_ms;
	bool debug, pull_on_create, no_pull_on_run;

	/* of the action */
	const char *arguments[CRICTL_ARGUMENTS_MAX];
	size_t n;
	const char *output;                           /* "" or "table", "json", "yaml" */
	const char *id, *name, *namespace, *state, *pod, *image, *handler, *auth, *creds, *username, *pod_config, *since, *stream,
		*transport, *tls_ca, *tls_cert, *tls_key, *tls_name, *export, *get, *cpuset_cpus, *cpuset_mems, *cidr;
	struct crictl_texts labels, filters, annotations, set;
	int64_t wait_s;                               /* --timeout of stop and exec */
	int64_t tail, limit_bytes, last, seconds, cpu_period, cpu_quota, cpu_shares, memory, oom_score;
	int64_t pull_ms, cancel_ms;                   /* 0: no limit */
	bool all, quiet, verbose, force, keep_logs, sync, tty, interactive, latest, no_trunc, follow, previous, reopen, timestamps,
		no_pull, with_pull, digests, pinned, prune, watch, ignore_errors, parallel, resolve_image, list;
};

typedef int crictl_action(struct crictl *c, struct err *err);

/* ---- options ---- */

/* An option as an action has it; kind and place are found by its name. */
struct crictl_option {
	char letter;                                  /* 0: none */
	const char *name, *value, *help;              /* value: what it is called in the manual; NULL: it takes none */
};

extern const struct crictl_option crictl_global_options[]; /* end with name NULL, as all such lists do */

struct crictl_words {
	const char *name, *alias, *arguments, *help;
	size_t min, max;
	crictl_action *run;
	const struct crictl_option *options;          /* NULL: none */
	bool verbatim;                                /* what follows the first argument is not ours */
	bool offline;                                 /* asks no runtime */
};

/*
 * Fills c from the arguments; find gives the action for a word. Returns 0, or the exit code after a message. *ret_action is NULL when
 * there was none.
 */
int crictl_parse(struct crictl *c, int argc, char **argv, const struct crictl_words *(*find)(const char *word),
		 const struct crictl_words **ret_action);
/* As Go writes them, "1m30s", or a number of seconds. */
bool crictl_duration(const char *text, int64_t *ret_ms);
/* --timeout of stop and exec; 0 when it was not given. */
int64_t crictl_wait_s(const struct crictl *c);
/* Fills what the arguments left open from the environment and from crictl.yaml. */
int crictl_settings_load(struct crictl *c, struct err *err);

/* ---- calls ---- */

/* (suspends) One call; the answer lives as long as the command. */
int crictl_call(struct crictl *c, const struct rpc *rpc, struct val request, struct val *ret, struct err *err);
/* (suspends) The same with a time limit of its own; 0: none. */
int crictl_call_within(struct crictl *c, const struct rpc *rpc, struct val request, int64_t ms, struct val *ret, struct err *err);

/* A file with a configuration of that type, JSON or YAML ("-": standard input), with names as protobuf or as JSON writes them. */
int crictl_config_read(struct crictl *c, const char *file, const struct type *type, struct val *ret, struct err *err);

/* ---- lists ---- */

/* {"key": "value"} of --label key=value. -ERR_BAD_REQUEST */
int crictl_labels(struct crictl *c, const struct crictl_texts *texts, struct val *ret, struct err *err);
/* (suspends) Containers (pods) as --id, --name, --state ... ask for, newest first. */
int crictl_list_containers(struct crictl *c, struct val *ret_list, struct err *err);
int crictl_list_pods(struct crictl *c, struct val *ret_list, struct err *err);
/* (suspends) The ids given as arguments, or those of what a list with the options shows. */
int crictl_ids(struct crictl *c, int (*list)(struct crictl *c, struct val *ret_list, struct err *err), struct val *ret,
	       struct err *err);
/* Does the text match the extended regular expression? Without one (NULL) all do. < 0: there is no such expression. */
int crictl_matches(const char *pattern, str text, struct err *err);
bool crictl_filters_given(const struct crictl *c);

/* ---- showing ---- */

enum { CRICTL_COLUMNS_MAX = 12 };

struct table {
	struct arena *arena;
	size_t columns;
	const char **cells;              /* row by row, the heading first */
	size_t n, cap;
};

void table_init(struct table *t, struct arena *a, size_t columns, const char *const *heading);
void table_add(struct table *t, const char *const *cells);
void table_print(const struct table *t);

/* A terminated copy, with ? for control characters. */
const char *crictl_text(struct arena *a, str s);
/* "5 minutes ago" */
const char *crictl_ago(struct arena *a, int64_t since_ns);
const char *crictl_size(struct arena *a, uint64_t bytes);
/* The first 13 digits, unless all are wanted. */
const char *crictl_short_id(const struct crictl *c, struct arena *a, str id);
/* "Labels:" and a line for each. */
void crictl_show_map(struct arena *a, const char *title, struct val map);
/* -ERR_BAD_REQUEST unless the output asked for is none, json or yaml, or (tables) table. */
int crictl_check_output(const struct crictl *c, bool tables, struct err *err);
/* JSON or YAML when that was asked for: true. */
bool crictl_show_as(const struct crictl *c, struct val v, const struct type *type);
/* The same for what has no table. */
void crictl_show(const struct crictl *c, struct val v, const struct type *type);
/* {"info": ..., "status": ...}: a status of that type, and what "info" has of texts in JSON. */
int crictl_status(struct crictl *c, struct val status, const struct type *type, struct val info, struct val *ret, struct err *err);
/* One of them as it is, several as a list. */
void crictl_show_statuses(const struct crictl *c, const struct val *statuses, size_t n);

/* ---- actions ---- */

crictl_action crictl_version, crictl_info, crictl_runtime_config, crictl_update_runtime_config, crictl_config;
crictl_action crictl_pods, crictl_runp, crictl_stopp, crictl_rmp, crictl_inspectp;
crictl_action crictl_ps, crictl_create, crictl_run, crictl_start, crictl_stop, crictl_rm, crictl_inspect, crictl_logs, crictl_update,
	crictl_checkpoint;
crictl_action crictl_images, crictl_pull, crictl_rmi, crictl_inspecti, crictl_imagefsinfo;
crictl_action crictl_stats, crictl_statsp, crictl_metricsp, crictl_metricdescs;
crictl_action crictl_exec, crictl_attach, crictl_port_forward, crictl_events;

/* (suspends) Makes a pod from its configuration. */
int crictl_run_pod(struct crictl *c, struct val config, str *ret_id, struct err *err);
/* (suspends) Fetches an image with the credentials given. pod: its configuration, or VAL_EMPTY. */
int crictl_pull_image(struct crictl *c, struct val image, struct val pod, str *ret_ref, struct err *err);

#endif
