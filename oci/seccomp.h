/*
 * seccomp: the filter of "linux.seccomp" of config.json. It is compiled before there is a container, so that a wrong one is told
 * early and loading is one system call; loaded, it stays over the process and all that it becomes.
 */
#ifndef C8S_OCI_SECCOMP_H
#define C8S_OCI_SECCOMP_H

#include "base/err.h"
#include "codec/val.h"

struct seccomp;

/*
 * Compiles config, the "linux.seccomp" object (checked here: actions, operators, architectures, flags). *ret is NULL when there is
 * nothing to filter. -ERR_INVALID names the member that is wrong; names of system calls that are not known are skipped.
 */
int seccomp_make(struct val config, struct seccomp **ret, struct err *err);
void seccomp_free(struct seccomp *s);  /* NULL is fine */
void seccomp_freep(struct seccomp **s);

/*
 * Puts the filter over the calling thread. Without no_new_privs this needs CAP_SYS_ADMIN. *ret_listener is the descriptor for
 * SCMP_ACT_NOTIFY (close-on-exec), or -1. Makes no system call beside seccomp(2). (seccomp_load is the library's.)
 */
int seccomp_install(const struct seccomp *s, int *ret_listener, struct err *err);

/* Whether an action is SCMP_ACT_NOTIFY: seccomp_install then gives a listener, which is to be sent to listenerPath. */
bool seccomp_notifies(const struct seccomp *s);
/*
 * Sends the listener to the agent at config's listenerPath with the container process state of the runtime-spec around state (the
 * OCI state of the container, whose pid it takes too). A process under the filter should not do this itself: it tells its parent
 * the number of the descriptor by write(2) (which is why write cannot be notified about), and that takes it by pidfd_getfd.
 */
int seccomp_send(struct val config, int listener, struct val state, struct err *err);

/*
 * RuntimeDefault: the "linux.seccomp" object for a container with these capabilities (list of "CAP_..."), on this architecture. Same
 * effect as containerd's default profile. In the arena; the texts are constants.
 */
struct val seccomp_default(struct arena *a, struct val capabilities);

/* For `features`: the names that config.json may use, as lists of strings. */
struct val seccomp_actions(struct arena *a);
struct val seccomp_operators(struct arena *a);
struct val seccomp_archs(struct arena *a);
struct val seccomp_flags(struct arena *a);

#endif
