#include "oci/attend.h"

#include <errno.h>
#include <stdio.h>
#include <sys/pidfd.h>

#include "base/file.h"
#include "oci/oci_priv.h"
#include "oci/state.h"
#include "oci/sync.h"

static int send_listener(const struct attend *t, pid_t pid, int number, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(fd_closep) int process = pidfd_open(pid, 0);
	CLEANUP(fd_closep) int listener = process < 0 ? -1 : pidfd_getfd(process, number, 0);

	if (listener < 0)
		return err_sys(err, errno, "fetching the seccomp listener");
	return seccomp_send(t->seccomp, listener, state_public(&a, t->state, OCI_CREATING, pid), err);
}

/* One question; SYNC_READY and SYNC_TERMINAL have no answer. */
static int answer(const struct attend *t, int sync, pid_t pid, const struct sync_message *m, int passed, struct err *err)
{
	int r = 0;

	switch (m->kind) {
	case SYNC_PLACE:
		r = t->place ? t->place(t->arg, pid, err) : 0;
		break;
	case SYNC_HOOKS:
		r = t->hooks ? t->hooks(t->arg, err) : 0;
		break;
	case SYNC_LISTENER:
		r = send_listener(t, pid, m->number, err);
		break;
	case SYNC_TERMINAL:
		return t->console_socket < 0 || passed < 0 ? err_set(err, ERR_INTERNAL, "a terminal that nobody waits for") :
							     terminal_send(t->console_socket, passed, err);
	case SYNC_READY:
		return 0;
	default:
		return err_set(err, ERR_INTERNAL, "message %d was not expected", (int)m->kind);
	}
	return r < 0 ? r : sync_tell(sync, SYNC_GO, pid, err);
}

static int next(const struct attend *t, int sync, pid_t pid, enum sync_kind *ret_kind, struct err *err)
{
	struct sync_message m;
	CLEANUP(fd_closep) int passed = -1;
	int r = sync_next(sync, &m, &passed, err);

	*ret_kind = m.kind;
	return r < 0 ? r : answer(t, sync, pid, &m, passed, err);
}

int attend_process(const struct attend *t, int sync, pid_t pid, struct err *err)
{
	enum sync_kind kind = SYNC_GO;
	int r = 0;

	while (kind != SYNC_READY && r == 0)
		r = next(t, sync, pid, &kind, err);
	return r;
}

int attend_exec(const struct attend *t, int sync, pid_t pid, struct err *err)
{
	enum sync_kind kind;
	int r;

	do
		r = next(t, sync, pid, &kind, err);
	while (r == 0);
	return kind == SYNC_CLOSED ? 0 : r;
}

int process_write_pid(const char *path, pid_t pid, struct err *err)
{
	char text[16];
	snprintf(text, sizeof(text), "%d", (int)pid);
	return file_replace(path, str_of(text), 0644, err);
}
