/*
 * sync: what the runtime and the process that it makes tell each other between clone3 and execve, over a socket pair that closes
 * at execve. Messages are whole packets of one size. A step that fails is told with its name and errno, so that whoever called
 * `create` reads what went wrong inside.
 */
#ifndef C8S_OCI_SYNC_H
#define C8S_OCI_SYNC_H

#include <sys/types.h>

#include "base/err.h"

enum sync_kind {
	SYNC_CLOSED,       /* no message: the other side is gone, or closed the socket by execve */
	SYNC_FAILED,       /* to the parent: step, errno and text */
	SYNC_CHILD,        /* to the parent: number is the pid of the process that stays */
	SYNC_PLACE,        /* to the parent: I am there; write my id maps, put me into the cgroup */
	SYNC_HOOKS,        /* to the parent: the root is mounted; run the hooks of the runtime's side */
	SYNC_TERMINAL,     /* to the parent, with the master of the terminal */
	SYNC_LISTENER,     /* to the parent: number is my descriptor of the seccomp listener */
	SYNC_READY,        /* to the parent: all is done but execve */
	SYNC_GO,           /* to the child: go on */
};

struct sync_message {
	enum sync_kind kind;
	int number;
	int code, sys;             /* of SYNC_FAILED */
	char step[48];
	char text[464];
};

/* Both ends, close-on-exec. */
int sync_pair(int ret_fd[2], struct err *err);
/* A message without more to say; write(2) is the only system call. */
int sync_tell(int fd, enum sync_kind kind, int number, struct err *err);
/* With a descriptor. */
int sync_tell_fd(int fd, enum sync_kind kind, int passed, struct err *err);
/* The failure of a step; what goes wrong with that is nobody's business any more. */
void sync_fail(int fd, const char *step, const struct err *err);
/*
 * The next message; the descriptor that came with it, or -1, in *ret_passed. SYNC_FAILED is returned as that error, "step: text".
 * The kind is filled in also when it fails.
 */
int sync_next(int fd, struct sync_message *ret, int *ret_passed, struct err *err);
/* Waits for one kind; another one is -ERR_INTERNAL. */
int sync_expect(int fd, enum sync_kind kind, struct err *err);
/* Tells kind and waits for SYNC_GO. */
int sync_ask(int fd, enum sync_kind kind, struct err *err);

/* One descriptor over a socket, with a text beside it: also how a terminal's master gets to its console socket. */
int sync_send_fd(int fd, const void *data, size_t n, int passed, struct err *err);

#endif
