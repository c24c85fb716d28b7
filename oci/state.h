/*
 * state: what is kept of a container in <root>/<id>/ :
 *
 *	state.json     who it is; replaced as a whole, so that reading needs no lock
 *	config.json    the bundle's, as it was at create
 *	start.sock     the first process listens here until it is started
 *	paused         while it is
 *
 * Whoever changes something holds a lock (flock) on the folder. The folder itself is the reservation of the id.
 */
#ifndef C8S_OCI_STATE_H
#define C8S_OCI_STATE_H

#include "base/buf.h"
#include "oci/oci.h"

struct state {
	int dir;                     /* the folder; locked if it was opened so */
	const char *folder;          /* its path */
	str id, version, bundle, rootfs, created, cgroup;
	pid_t pid;                   /* 0: none yet */
	uint64_t start_time;         /* of the process, in ticks since boot: who has the pid now may be another */
	bool creating;               /* create has not ended */
	bool own_pids;               /* it has a PID namespace of its own */
	struct val annotations;
};

/* -ERR_BAD_REQUEST for a name that could not be a folder's, "invalid container ID format". */
int state_check_id(const char *id, struct err *err);
/* Makes the folder and locks it; -ERR_ALREADY_EXISTS. */
int state_make(const char *root, const char *id, struct arena *a, struct state *ret, struct err *err);
/* What is there; -ERR_NOT_FOUND "container does not exist". lock: for who changes something. Texts are in the arena. */
int state_open(const char *root, const char *id, bool lock, struct arena *a, struct state *ret, struct err *err);
/* state.json into the members that it has; id, dir and folder stay. */
int state_decode(str text, struct arena *a, struct state *s, struct err *err);
void state_close(struct state *s);
int state_save(const struct state *s, struct err *err);
/* Removes the folder with all that is in it. */
int state_remove(const char *root, struct state *s, struct err *err);

enum oci_status state_status(const struct state *s);
const char *state_status_name(enum oci_status status);
/* A descriptor of the process; -ERR_CONFLICT "container not running" if it is not it any more. */
int state_pidfd(const struct state *s, struct err *err);
/* When the process began; 0 if there is none, or it is dead. */
uint64_t state_start_time(pid_t pid);

/* The state as the runtime-spec has it, for hooks and for `state`. */
struct val state_public(struct arena *a, const struct state *s, enum oci_status status, pid_t pid);
/* The same as JSON text. */
void state_text(struct buf *b, const struct state *s, enum oci_status status, pid_t pid);

#endif
