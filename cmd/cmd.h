/*
 * cmd/: the programs. Every command is one file with a run function and a manual page; main.c finds it by name.
 */
#ifndef C8S_CMD_CMD_H
#define C8S_CMD_CMD_H

#include "base/err.h"

#define C8S_VERSION "0.1.0"
/* The Kubernetes release whose behaviour and API this is. */
#define KUBERNETES_VERSION "v1.36.4"

struct command {
	const char *name;
	const char *summary;  /* one line for the list of commands */
	const char *manual;   /* what --help prints */
	void (*help)(void);   /* prints more behind the manual; may be NULL */
	int help_within;      /* --help counts among so many arguments only: those behind may be another program's; 0: all */
	/* argv[0] is the command's name. Returns the exit code; errors are printed by the command. */
	int (*run)(int argc, char **argv);
};

extern const struct command cmd_certs, cmd_cni, cmd_control_plane, cmd_convert, cmd_crictl, cmd_doctor, cmd_down, cmd_hollow,
	cmd_image, cmd_install, cmd_join, cmd_kube_apiserver, cmd_kube_controller_manager, cmd_kube_scheduler, cmd_kubectl, cmd_kubelet, cmd_reset, cmd_runc,
	cmd_runtime, cmd_status, cmd_store, cmd_token, cmd_up, cmd_version, cmd_why;

/* "c8s convert: message" on standard error; returns 1, the exit code for failure. */
int cmd_fail(const struct command *c, const struct err *err);
/* The same for wrong usage, with a hint at --help; returns 2. */
int cmd_usage(const struct command *c, const char *fmt, ...) PRINTF_LIKE(2, 3);

/*
 * Options of one command, read from left to right: "-o yaml", "-oyaml", "--output yaml" and "--output=yaml" are the same.
 * Usage: struct options o = { c, argc, argv }; while ((r = options_next(&o, table)) >= 0) switch (r) ...
 */
enum option_takes {
	OPTION_ALONE,           /* no value */
	OPTION_VALUE,
	OPTION_BOOL,            /* --name or --name=false, as Go's flags; value NULL: none was given */
};

struct option_spec {
	char letter;            /* 0: none */
	const char *name;       /* without the dashes */
	enum option_takes takes;
};

struct options {
	const struct command *command;
	int argc;
	char **argv;
	int at;                 /* starts at 0 */
	const char *value;      /* of the option that was found; or the plain argument */
};

enum { OPTION_END = -1, OPTION_BAD = -2, OPTION_ARGUMENT = 1000 };

/* Index into specs, OPTION_ARGUMENT, OPTION_END, or OPTION_BAD after a message was printed. The table ends with name NULL. */
int options_next(struct options *o, const struct option_spec *specs);

#endif
