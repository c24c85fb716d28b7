/*
 * The monitor's inside. One thread, one epoll loop, nothing that waits: whatever may take long (all that an OCI runtime does) happens
 * in a job, a child of the monitor that reports and ends. So a runtime that hangs holds up neither logs nor exits, and the monitor's own
 * memory stays as small as it began.
 *
 *	monitor.c          start, loop, timers, children        monitor_op.c       connections, questions and answers
 *	monitor_runtime.c  jobs                                 monitor_exit.c     how containers and execs end
 *	monitor_io.c       stdio of containers                  monitor_attach.c   those who look on, and type
 *	monitor_log.c      log files                            monitor_wire.c     packets
 *
 * A container moves CREATING -> CREATED -> RUNNING <-> PAUSED, and from each of these to STOPPED; it is freed by delete, or when it
 * could not be made.
 */
#ifndef C8S_RUNTIME_MONITOR_PRIV_H
#define C8S_RUNTIME_MONITOR_PRIV_H

#include <sys/types.h>

#include "base/list.h"
#include "runtime/logs_format.h"
#include "runtime/monitor_wire.h"

enum {
	BLOCK_SIZE = 16 << 10,        /* of output, read at once */
	CONNS_MAX = 256,              /* one for each exec that is on its way, at least */
	PACKETS_MAX = 256,            /* that wait for one connection; one that reads more slowly is closed */
	EXECS_MAX = 1024,             /* at one time, of one container */
	CLIENTS_MAX = 32,             /* attached to one container */
	CLIENT_QUEUE_MAX = 256 << 10,
	CLIENT_PATIENCE_MS = 10000,   /* with one that reads nothing */
	LOG_RETRY_MS = 200,
	LOG_PATIENCE_MS = 30000,      /* with a disk that takes nothing; then output is dropped */
	JOB_PATIENCE_MS = 120000,     /* with a runtime */
	EXEC_PATIENCE_MS = 20000,     /* the container can stop the process on its way in */
	EXEC_LAST_MS = 200,           /* the same, when the container has ended */
	SHRINK_AFTER_MS = 500,        /* without anything to do */
	UNCLAIMED_MAX = 32,
};

struct pod;
struct conn;
struct container;

/* ---- loop ---- */

struct source {
	struct pod *pod;
	int fd;                       /* -1: none */
	uint32_t events;              /* that are waited for; 0: not in the loop */
	void (*ready)(struct source *s, uint32_t events);
};

void source_init(struct source *s, struct pod *pod, int fd, void (*ready)(struct source *s, uint32_t events));
void source_watch(struct source *s, uint32_t events);
void source_close(struct source *s);

struct timer {
	struct list link;             /* in a list while it is set */
	int64_t due_ns;
	void (*fire)(struct timer *t);
};

void timer_set(struct pod *pod, struct timer *t, int64_t ms, void (*fire)(struct timer *t));
void timer_stop(struct timer *t);

/* ---- state ---- */

struct pod {
	const char *folder;           /* <state>/pods/<id> */
	const char *oci_root;
	const char *program;          /* another runtime; NULL: our own */
	int folder_fd, epoll;
	struct source listener, children;
	struct timer accept_again;
	struct list conns, containers, jobs, timers;
	size_t n_conns;
	unsigned n_jobs_ever;         /* for the names of their files */
	bool ending;
	/* Children that ended before the job which made them has said whose they are. */
	struct unclaimed {
		pid_t pid;
		int status;
		int64_t ns;
	} unclaimed[UNCLAIMED_MAX];
	size_t n_unclaimed;
	char block[BLOCK_SIZE];
};

enum status { STATUS_CREATING, STATUS_CREATED, STATUS_RUNNING, STATUS_PAUSED, STATUS_STOPPED };

struct log {
	char *path;
	int fd;                       /* -1: no log is kept */
	int64_t failing_ns;           /* since when it takes nothing; 0: it works */
	uint64_t lost;                /* bytes */
	bool rotates;                 /* it has a largest size and is a plain file */
	uint64_t size, max_size;      /* max_size 0: whatever it takes */
	size_t max_files;             /* with the one that is written */
	int64_t rotated_s;            /* the time in the last name; 0: none yet */
};

/* stdout or stderr; a terminal is stdout. */
struct stream {
	struct source source;
	struct container *container;
	enum logs_stream which;
	struct buf held;              /* the beginning of a line */
	char *waiting;                /* read, but not yet in the log */
	size_t waiting_n;
	struct timer timer;           /* until that is tried again */
};

struct container {
	struct list link;
	struct pod *pod;
	char *id, *bundle, *cgroup;   /* cgroup: NULL when it is not known */
	enum status status;
	bool terminal, stdin_once;
	bool starting;                /* an exit is told after the answer to start */
	bool deleting;                /* it is freed when that job ends: no other may begin */
	unsigned jobs;                /* that know of it */
	pid_t pid;
	struct unclaimed end;         /* its end, while starting; pid 0: none */
	int exit_code;
	int64_t finished_ns;
	bool oom_killed;
	struct log log;
	struct stream out, err;
	struct source in;
	struct list clients, execs;
	size_t n_clients, n_execs;
};

struct exec {
	struct list link;
	struct container *container;
	char *id;
	pid_t pid;                    /* 0: not yet */
	int signal;                   /* that it is to get when it has started; 0: none */
	int master;                   /* of its terminal, for resizing; -1: none */
};

struct container *container_find(struct pod *pod, str id);
struct exec *exec_find(struct container *c, str id);
void container_free(struct container *c);
void exec_free(struct exec *e);
const char *status_name(enum status s);
/* Ends the process when it was told to and nothing is left to do. */
void pod_check_end(struct pod *pod);

/* ---- stdio: monitor_io.c ---- */

/* The ends of the container: its 0, 1, 2. Closed by the caller. */
int stdio_open(struct container *c, bool with_stdin, int ret_stdio[3], struct err *err);
/* The master of its terminal has come; becomes the container's. */
void stdio_terminal(struct container *c, int master);
/* Which streams are read: those whose log and whose onlookers keep up. */
void stdio_watch(struct container *c);
/* All output that is there now, up to a bound, goes where it belongs: it has ended. */
void stdio_drain(struct container *c);
/* The container goes: so do those attached. */
void stdio_close(struct container *c);
void stdio_close_input(struct container *c);
bool stdio_ended(const struct container *c);

/* ---- attach: monitor_attach.c ---- */

int attach_new(struct container *c, int *ret_fd, struct err *err);
void attach_output(struct container *c, enum logs_stream which, str data);
/* Does somebody still have to read what was there before? */
bool attach_behind(const struct container *c);
/* stdin takes more, or is closed: what has waited for it goes on. */
void attach_input(struct container *c);
/* No more output will come: they are let go of when they have read all. */
void attach_close_all(struct container *c);
void attach_free_all(struct container *c);

/* ---- log: monitor_log.c ---- */

/* path "" : none is kept. The path is copied. max_size 0: it is only rotated by others. */
int log_open(struct log *l, str path, uint64_t max_size, size_t max_files, struct err *err);
int log_reopen(struct log *l, struct err *err);
void log_close(struct log *l);
/* How much of data is dealt with: written, held as the beginning of a line, or given up. The rest is to be tried again later. */
size_t log_add(struct log *l, enum logs_stream which, struct buf *held, str data);
/* The stream has ended: the beginning of a line is written as it is. */
void log_flush(struct log *l, enum logs_stream which, struct buf *held);

/* ---- jobs: monitor_runtime.c ---- */

enum job_op { JOB_CREATE, JOB_START, JOB_KILL, JOB_DELETE, JOB_EXEC, JOB_UPDATE, JOB_PAUSE, JOB_RESUME };

struct job {
	struct list link;
	struct pod *pod;
	enum job_op op;
	struct container *container;
	struct exec *exec;            /* of JOB_EXEC */
	struct conn *conn;            /* who asked; NULL: nobody who still listens */
	int signal;                   /* of JOB_KILL */
	bool all, force, terminal;
	bool last;                    /* of JOB_DELETE: the container is forgotten even if it fails */
	struct val value;             /* of JOB_EXEC: the process; of JOB_UPDATE: the resources. Only looked at by job_begin. */
	int stdio[3];                 /* of JOB_CREATE, JOB_EXEC; stay the caller's */
	/* Its own: */
	unsigned number;
	pid_t pid;
	int report, console;
	struct timer timer;
	bool late;
};

struct job_result {
	int r;                        /* 0 or -ERR_x */
	pid_t pid;                    /* of JOB_CREATE and JOB_EXEC */
	int master;                   /* of a terminal, becomes the receiver's; -1: none */
	struct err err;
};

/* Copies *model and starts it. */
int job_begin(const struct job *model, struct err *err);
/* The child of a job has ended: the job is over. True when it was one. */
bool job_reap(struct pod *pod, pid_t pid, int status);
/* The container has ended: execs that are on their way into it have little time left. */
void job_hurry(struct container *c);
/* monitor_op.c: a job's result becomes an answer. */
void job_done(struct job *j, struct job_result *result);

/* ---- ends: monitor_exit.c ---- */

/* The cgroup that a process is in, for what is asked about it after its end. */
char *exit_cgroup(pid_t pid);
/* A child has ended. */
void exit_reaped(struct pod *pod, pid_t pid, int status);
/* Now it is known whose a process is: it may have ended already. */
void exit_claim(struct pod *pod, pid_t pid);
/* start has been answered. */
void exit_started(struct container *c);

/* ---- connections: monitor_op.c ---- */

void conn_accept(struct source *listener, uint32_t events);
/* To all who follow. */
void conn_tell(struct pod *pod, struct val event);

#endif
