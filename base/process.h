/*
 * process: child processes. A child is started straight into its program (no code of ours runs in a copy of this
 * process) and held by a pidfd, so a signal never reaches a stranger with a recycled number. Only children started here
 * are ever waited for, and there is no SIGCHLD handler; the program must leave SIGCHLD at its default.
 *
 * Calls marked (suspends) are for fibers and honour cancel and deadlines (fiber.h). A virtual clock does not wait for
 * children.
 */
#ifndef C8S_BASE_PROCESS_H
#define C8S_BASE_PROCESS_H

#include <sys/types.h>

#include "base/buf.h"

struct process;

enum { PROCESS_FDS_MAX = 16 };

struct process_spec {
	const char *const *argv; /* ends with NULL; argv[0] is the program: a path (seen from cwd) or a name in PATH */
	const char *path;        /* the program, when it differs from argv[0] */
	const char *const *env;  /* "NAME=value", ends with NULL; NULL: the environment of this process */
	const char *cwd;         /* NULL: the directory of this process */
	/*
	 * fds[i] becomes descriptor i of the child (0, 1, 2 are its standard ones); -1 is /dev/null. The first three
	 * are /dev/null also when n_fds is smaller. All others are closed in the child. They stay the caller's.
	 */
	int fds[PROCESS_FDS_MAX];
	size_t n_fds;
	bool group;              /* the child leads a process group of its own, and process_kill reaches all of it */
};

/* How a child ended: by exit (signal is 0) or by a signal (exit_code is 128 + signal, as a shell has it). */
struct process_status {
	int exit_code, signal;
};

/*
 * Starts a child, with all signals at their defaults and none blocked. Blocks the thread until the kernel has loaded
 * the program, which is how a program that cannot be run becomes an error here: -ERR_NOT_FOUND, -ERR_FORBIDDEN or
 * -ERR_SYSTEM with errno in err->sys. Does not suspend.
 */
int process_spawn(const struct process_spec *spec, struct process **ret_process, struct err *err);
/* (suspends) Takes NULL. A child that still runs is killed and waited for, whatever cancel or deadline say. */
void process_free(struct process *p);
void process_freep(struct process **p);

/* (suspends) Waits until the child has ended; may be called again. On error the child goes on. */
int process_wait(struct process *p, struct process_status *ret_status, struct err *err);
/* Has the child ended? Then its status. Never suspends. */
bool process_ended(struct process *p, struct process_status *ret_status);
/* Sends a signal. Nothing happens to a child that process_wait or process_ended has seen end. */
int process_kill(struct process *p, int sig, struct err *err);

pid_t process_pid(const struct process *p);

/* What a child wrote, and how it ended. */
struct process_output {
	struct buf out, err;
	struct process_status status;
};

void process_output_done(struct process_output *o);

/*
 * (suspends) Runs a child to its end: input goes to its standard input, its standard output and error are collected,
 * max bytes of each at most; the first three of spec->fds are not looked at. 0 when the child ended, however it did:
 * look at the status. -ERR_TOO_LARGE, -ERR_CANCELED, -ERR_TIMEOUT: the child was killed; with spec->group, so were
 * those it left behind holding its output. ret_output must be given to process_output_done also after an error: it has
 * what was read so far.
 */
int process_run(const struct process_spec *spec, str input, size_t max, struct process_output *ret_output, struct err *err);

#endif
