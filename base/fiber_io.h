/*
 * What fibers wait for outside their loop: file descriptors and the thread pool. All calls suspend the calling fiber
 * and honour cancel and deadlines as fiber.h says. Descriptors must be non-blocking (O_NONBLOCK), or the thread blocks
 * with them.
 */
#ifndef C8S_BASE_FIBER_IO_H
#define C8S_BASE_FIBER_IO_H

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/err.h"

/* ---- Descriptors ---- */

/*
 * Waits until at least one of the n descriptors has one of its events (POLLIN, POLLOUT, POLLPRI; errors and hang-ups
 * always count), sets revents in each, and returns how many are set. A negative fd is skipped. Readiness is a hint: try
 * the operation, and wait again on EAGAIN. Several fibers may wait for one descriptor. Nothing stays registered that
 * the kernel would not forget by itself, so descriptors are closed with close(), but not while a fiber waits for them.
 * n is at most FIBER_POLL_MAX.
 */
enum { FIBER_POLL_MAX = 16 };
int fiber_poll(struct pollfd *fds, size_t n, struct err *err);
/* The same for one descriptor; returns its revents. */
int fiber_wait_fd(int fd, short events, struct err *err);

/* Reads what is there, waiting for at least one byte: the number of bytes, or 0 at the end. */
ssize_t fiber_read(int fd, void *p, size_t n, struct err *err);
/* Writes all n bytes. On error an unknown part of them has been written. */
int fiber_write(int fd, const void *p, size_t n, struct err *err);
/* The next connection of a listening socket: a new descriptor, non-blocking and close-on-exec. addr may be NULL. */
int fiber_accept(int fd, struct sockaddr_storage *ret_addr, struct err *err);
int fiber_connect(int fd, const struct sockaddr *addr, socklen_t len, struct err *err);

/* ---- Blocking work ---- */

/*
 * Runs fn(arg, err) on a thread of libuv's pool (UV_THREADPOOL_SIZE, 4 unless set) and returns its result. For what
 * would block the loop: fsync, decompression, big crypto. fn must not touch the loop or its fibers.
 *
 * The fiber never goes on while fn may still run, so arg may live on its stack: when a cancel or a deadline comes
 * before a thread has taken the work, it is withdrawn, and -ERR_CANCELED or -ERR_TIMEOUT says that fn did not run; once
 * fn runs, it is waited for and its own result is returned.
 */
int fiber_blocking(int (*fn)(void *arg, struct err *err), void *arg, struct err *err);

/*
 * A thread of its own for blocking work that comes one after another and is waited for often: the hand-over costs less
 * than the pool's. fn runs to its end once it was handed over; name has at most 15 bytes. worker_stop takes NULL, and
 * waits for the thread, which must have nothing to do.
 */
struct worker;
int worker_start(const char *name, struct worker **ret, struct err *err);
int worker_run(struct worker *w, int (*fn)(void *arg, struct err *err), void *arg, struct err *err);
void worker_stop(struct worker *w);

int fiber_fsync(int fd, struct err *err);
/*
 * getaddrinfo without blocking the loop; name resolution takes at most half of the pool, so that a dead name server
 * does not hold up fsync. freeaddrinfo(*ret_list) afterwards. -ERR_UNAVAILABLE when there is no such name: to callers, "not found" would be an answer.
 */
int fiber_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **ret_list,
		      struct err *err);

#endif
