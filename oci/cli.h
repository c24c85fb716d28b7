/*
 * cli: the command line of runc, so that whoever calls runc can call this. cli.c reads arguments and has the short commands;
 * cli_run.c those that stay in the foreground, cli_show.c those that print, cli_update.c the limits.
 */
#ifndef C8S_OCI_CLI_H
#define C8S_OCI_CLI_H

#include "oci/oci.h"

enum { CLI_LIST_MAX = 256 };

struct cli_list {
	const char *text[CLI_LIST_MAX];
	size_t n;
};

/* All flags of all commands; those not given are zero. */
struct cli {
	/* global */
	const char *root, *log, *log_format;
	bool debug, systemd_cgroup, version, help;
	const char *rootless;
	/* of the command */
	const char *bundle, *console_socket, *pidfd_socket, *pid_file, *cwd, *user, *process, *process_label, *apparmor, *format, *interval,
		*resources;
	int64_t preserve_fds;
	bool no_pivot, no_new_keyring, no_subreaper, detach, keep, tty, no_new_privs, ignore_paused, all, force, quiet, stats;
	struct cli_list env, caps, gids, cgroups;
	/* update */
	const char *blkio_weight, *cpu_period, *cpu_quota, *cpu_burst, *cpu_share, *cpu_rt_period, *cpu_rt_runtime, *cpuset_cpus, *cpuset_mems,
		*cpu_idle, *kernel_memory, *kernel_memory_tcp, *memory, *memory_reservation, *memory_swap, *pids_limit, *l3_cache_schema,
		*mem_bw_schema;
	/* what is left: the id first */
	int argc;
	char **argv;
	struct arena *arena;
};

/* Each returns 0, the exit code of a process, or an error. */
int cli_create(struct cli *c, struct err *err);
int cli_run(struct cli *c, struct err *err);
int cli_exec(struct cli *c, struct err *err);
int cli_state(struct cli *c, struct err *err);
int cli_list(struct cli *c, struct err *err);
int cli_ps(struct cli *c, struct err *err);
int cli_events(struct cli *c, struct err *err);
int cli_features(struct cli *c, struct err *err);
int cli_spec(struct cli *c, struct err *err);
int cli_update(struct cli *c, struct err *err);

/* Prints a tree as JSON; indent as json_encode has it. */
int cli_print(struct val v, unsigned indent, struct err *err);

#endif
