/*
 * monitor: the one process per pod that is always there: `c8s-pod monitor`, static, one thread, a few hundred KiB. It is the parent
 * (and subreaper) of the pod's processes, holds their stdio, writes their logs and notes how they end, whatever happens to
 * everybody else. It makes containers by oci/ as a library, or by another OCI runtime's command line.
 *
 * It is told what to do on a unix socket (SOCK_SEQPACKET) in the pod's state folder, <state>/pods/<id>/monitor.sock: one JSON object
 * per packet, descriptors beside it; one answer per question, in order. Questions have an "op":
 *
 *	{"op":"create","id":C,"bundle":B,"log":PATH|"","terminal":bool,"stdin":bool,"stdinOnce":bool,
 *	 "containerLogMaxSize":N,"containerLogMaxFiles":N}                 -> {"pid":N} (0: the log is rotated by reopen only)
 *	{"op":"start","id":C}                                              -> {}
 *	{"op":"kill","id":C,"exec":E|"","signal":N,"all":bool}             -> {}      (all: every process of its cgroup)
 *	                                (an exec that is still being started gets it when it has started)
 *	{"op":"delete","id":C}                                             -> {}      ("conflict" while something is done with it)
 *	{"op":"exec","id":C,"exec":E,"process":{...},"terminal":bool} + fds in, out, err (without a terminal)
 *	                                                                   -> {"pid":N} + with a terminal: its master
 *	{"op":"attach","id":C}       -> {} + a stream socket: frames of 1 byte channel (0 in, 1 out, 2 err, 3 end of in), 4 bytes length,
 *	                                big end first, and the content. Who passes a stdin on sends channel 3 at its end: with stdinOnce
 *	                                (and no terminal) that, or the end of a client that has sent input, closes the container's stdin.
 *	{"op":"resize","id":C,"exec":E|"","width":N,"height":N}            -> {}
 *	{"op":"reopen","id":C}                                             -> {}      (log rotation)
 *	{"op":"update","id":C,"resources":{...}}                           -> {}
 *	{"op":"pause"|"resume","id":C}                                     -> {}
 *	{"op":"state"}               -> {"containers":[{"id","pid","status","exitCode","finishedAt","oomKilled"}...]}
 *	{"op":"follow"}              -> {} and then, unasked: {"event":"exit","id":C,"exec":E|"","exitCode":N,"finishedAt":NS,"oomKilled":bool}
 *	{"op":"end"}                                                       -> {}      (it ends when no container is left)
 * A failure is {"error":TEXT,"code":"not_found"|"conflict"|...}: names of enum err_code in small letters.
 *
 * An exit is in <state>/pods/<id>/exits/<C> (the JSON of the event) before anybody is told of it, and what the container has written is in
 * its log. The file stays, also after delete, until the folder is removed. Exits of execs are only told.
 *
 * Output waits for the log and for those attached, so a container that floods is slowed down; one attached who reads nothing for ten
 * seconds is let go of, and after thirty seconds of a disk that takes nothing output is dropped. The monitor's own messages are in
 * <state>/pods/<id>/monitor.log. Only SIGKILL ends it early: its containers then run on without it, nobody listens at the socket, and
 * whoever finds that has to kill and delete them by their OCI states (as `c8s runc --root DIR delete --force C` does).
 */
#ifndef C8S_RUNTIME_MONITOR_H
#define C8S_RUNTIME_MONITOR_H

#include "base/arena.h"
#include "base/err.h"
#include "codec/val.h"

/* ---- the process: c8s-pod monitor --state DIR --root DIR [--runtime PROGRAM] [--cgroup PATH] ---- */
/* DIR: absolute; --state is the pod's folder. It returns to its caller when the socket is there; what stays is a child of it. */

int monitor_main(int argc, char **argv);

/* ---- towards it (in c8s; suspends) ---- */

struct monitor;

struct monitor_options {
	const char *program;          /* c8s-pod */
	const char *folder;           /* <state>/pods/<id>: made by the caller */
	const char *oci_root;         /* where its OCI states are */
	const char *oci_program;      /* another OCI runtime; NULL: its own */
	const char *cgroup;           /* that it runs in itself; NULL: ours */
};

struct monitor_exit {
	str container, exec;          /* exec is empty for the container itself */
	int exit_code;
	int64_t finished_ns;
	bool oom_killed;
};

/*
 * On the loop; must not suspend, and must not free the monitor. An exit may be told twice. An empty container says that the monitor itself
 * is gone without having been told to end: nothing more will be told, and all questions fail with -ERR_UNAVAILABLE.
 */
typedef void monitor_on_exit(void *arg, const struct monitor_exit *e);

/* (suspends) Starts one, outside of our process group and session. */
int monitor_start(const struct monitor_options *o, monitor_on_exit *fn, void *arg, struct monitor **ret, struct err *err);
/* (suspends) The one that runs already. -ERR_NOT_FOUND: there is none any more; what ended is in its files. */
int monitor_connect(const struct monitor_options *o, monitor_on_exit *fn, void *arg, struct monitor **ret, struct err *err);
/* (suspends) Lets go of it; it runs on. NULL is fine. */
void monitor_free(struct monitor *m);

struct monitor_fds {
	int fd[4];
	size_t n;
};
/*
 * (suspends) One question; several fibers may ask at a time, and are answered in order. The answer is in the arena. fds in (NULL: none)
 * stay the caller's; fds out become the caller's (ret_out and ret_answer may be NULL). The monitor's error is returned as one;
 * -ERR_UNAVAILABLE: no answer came, and whether it was done is not known.
 */
int monitor_ask(struct monitor *m, struct arena *a, struct val question, const struct monitor_fds *in, struct monitor_fds *ret_out,
		struct val *ret_answer, struct err *err);
/*
 * (suspends) The same by a connection of its own, for a question whose answer a container can hold up: nobody else waits for it. Who gives
 * up waiting does not know whether it will still be done.
 */
int monitor_ask_apart(struct monitor *m, struct arena *a, struct val question, const struct monitor_fds *in, struct monitor_fds *ret_out,
		      struct val *ret_answer, struct err *err);
/* An exit that happened while nobody was there; -ERR_NOT_FOUND. */
int monitor_read_exit(const char *folder, str container, struct arena *a, struct monitor_exit *ret, struct err *err);

#endif
