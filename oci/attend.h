/* attend: the runtime's half of the talk with a new process: it does what that one asks for until it is ready, or has become its program. */
#ifndef C8S_OCI_ATTEND_H
#define C8S_OCI_ATTEND_H

#include "oci/oci.h"

struct state;

struct attend {
	int console_socket;          /* -1: none */
	struct val seccomp;          /* "linux.seccomp", with the path of an agent */
	const struct state *state;
	int (*place)(void *arg, pid_t pid, struct err *err);
	int (*hooks)(void *arg, struct err *err);
	void *arg;
};

/* Until SYNC_READY. */
int attend_process(const struct attend *t, int sync, pid_t pid, struct err *err);
/* Until the socket closes by execve; a failure of the last steps is returned. */
int attend_exec(const struct attend *t, int sync, pid_t pid, struct err *err);

int process_write_pid(const char *path, pid_t pid, struct err *err);

#endif
