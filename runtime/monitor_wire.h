/*
 * What both sides of a monitor's socket share: packets with descriptors beside them, the names of errors, and the event of an exit.
 * Nothing here blocks or suspends; descriptors that come in are O_CLOEXEC.
 */
#ifndef C8S_RUNTIME_MONITOR_WIRE_H
#define C8S_RUNTIME_MONITOR_WIRE_H

#include <sys/types.h>

#include "base/buf.h"
#include "runtime/monitor.h"

/* The largest packet: a question that carries the environment of a process. */
enum { MONITOR_PACKET_MAX = 1 << 20 };

/* A SOCK_SEQPACKET socket, not blocking, with room for the largest packet; a descriptor. */
int monitor_wire_socket(struct err *err);
/*
 * The address of a socket in a folder, however long the folder's path is: by its descriptor, which must stay open until the address
 * was used.
 */
struct sockaddr_un;
int monitor_wire_address(int folder, const char *name, struct sockaddr_un *ret, struct err *err);

/* 0, or -1 with errno (EAGAIN: later). fds may be NULL. */
int monitor_wire_send(int fd, str packet, const struct monitor_fds *fds);
/* Appends one packet to b: its length; 0 at the end; -1 with errno (EAGAIN: none yet; EMSGSIZE: too large, and lost). */
ssize_t monitor_wire_receive(int fd, struct buf *b, struct monitor_fds *ret_fds);
void monitor_fds_done(struct monitor_fds *fds); /* closes them */

/* ERR_NOT_FOUND <-> "not_found"; what is not known is ERR_INTERNAL. */
struct val monitor_wire_error(struct arena *a, const struct err *e);
int monitor_wire_fail(struct val answer, struct err *err); /* the error in an answer; 0 when there is none */

struct val monitor_wire_exit(struct arena *a, const struct monitor_exit *e);
struct monitor_exit monitor_wire_exit_of(struct val event);

#endif
