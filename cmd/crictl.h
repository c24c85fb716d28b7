/*
 * crictl: a client of CRI for people, with the words and tables of Kubernetes' own crictl; for c8s runtime, containerd and CRI-O.
 *
 *	crictl.c          options, actions          crictl_show.c         tables, JSON
 *	crictl_config.c   configurations in files   crictl_pods.c, crictl_containers.c, crictl_images.c, crictl_stream.c
 */
#ifndef C8S_CMD_CRICTL_H
#define C8S_CMD_CRICTL_H

#include "base/arena.h"
#include "cmd/cmd.h"
#include "codec/schema.h"
#include "net/grpc.h"

enum { CRICTL_ARGUMENTS_MAX = 256 };

/* What was asked for; every action takes what it knows. */
struct crictl {
	struct arena arena;
	struct grpc_channel *channel;
	const char *endpoint;
	const char *arguments[CRICTL_ARGUMENTS_MAX]; /* behind the action */
	size_t n;
	const char *output;              /* "", "table", "json", "yaml" */
	const char *id, *name, *namespace, *state, *pod, *image, *handler, *auth, *creds, *labels[16], *log_path;
	size_t n_labels;
	int64_t timeout_s;               /* of a call; of stop and exec when given */
	int64_t action_timeout_s;        /* -t, --timeout of the action; -1: not given */
	int64_t tail, last;              /* -1: not given */
	bool all, quiet, verbose, force, sync, tty, interactive, latest, no_trunc, follow, timestamps, no_pull;
};

/* (suspends) One call; the answer lives as long as the command. */
int crictl_call(struct crictl *c, const struct rpc *rpc, struct val request, struct val *ret, struct err *err);

/* A file with a configuration of that type, JSON or YAML ("-": standard input), with names as protobuf or as JSON writes them. */
int crictl_config_read(struct crictl *c, const char *file, const struct type *type, struct val *ret, struct err *err);

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

const char *crictl_text(struct arena *a, str s);
/* "5 minutes ago" */
const char *crictl_ago(struct arena *a, int64_t since_ns);
const char *crictl_size(struct arena *a, uint64_t bytes);
/* The first 13 digits, unless all are wanted. */
const char *crictl_short_id(const struct crictl *c, struct arena *a, str id);
/* JSON or YAML when that was asked for: true. */
bool crictl_show_as(const struct crictl *c, struct val v, const struct type *type);
/* {"info": ..., "status": ...}: a status of that type, and what "info" has of texts in JSON. */
int crictl_show_status(struct crictl *c, struct val status, const struct type *type, struct val info, struct err *err);

/* ---- actions ---- */

typedef int crictl_action(struct crictl *c, struct err *err);
crictl_action crictl_version, crictl_info, crictl_pods, crictl_runp, crictl_stopp, crictl_rmp, crictl_inspectp, crictl_statsp;
crictl_action crictl_ps, crictl_create, crictl_run, crictl_start, crictl_stop, crictl_rm, crictl_inspect, crictl_stats, crictl_logs,
	crictl_update, crictl_events;
crictl_action crictl_images, crictl_pull, crictl_rmi, crictl_inspecti, crictl_imagefsinfo;
crictl_action crictl_exec;
/* Makes a pod, and a container in it, from configurations. */
int crictl_run_pod(struct crictl *c, struct val config, str *ret_id, struct err *err);
/* The exit code of a process that was run, for the command's own; 0 otherwise. */
extern int crictl_exit_code;

#endif
