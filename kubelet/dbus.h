/*
 * dbus: as much of D-Bus as it takes to talk with systemd: calls with texts and a number, their answers with descriptors, and signals. A
 * client of a bus on a local socket, for one fiber at a time.
 *
 *	dbus_message.c   messages as bytes, pure         dbus.c    the connection
 */
#ifndef C8S_KUBELET_DBUS_H
#define C8S_KUBELET_DBUS_H

#include "base/buf.h"
#include "base/err.h"

/* ---- messages ---- */

enum dbus_type { DBUS_CALL = 1, DBUS_RETURN, DBUS_ERROR, DBUS_SIGNAL };

/* The protocol allows 128 MiB; what we are told is small. */
enum { DBUS_MESSAGE_MAX = 64 << 10, DBUS_FDS_MAX = 16 };

/* Texts point into the bytes that it was parsed from. */
struct dbus_message {
	enum dbus_type type;
	bool big_endian;
	uint32_t serial, reply_to, n_fds;
	str path, interface, member, error, sender, signature;
	str body;
};

/*
 * The message that the bytes begin with: 1, and its length in *ret_n; 0 when there is not all of it yet. -ERR_BAD_REQUEST, -ERR_TOO_LARGE:
 * nothing sensible can follow.
 */
int dbus_parse(str bytes, struct dbus_message *ret, size_t *ret_n, struct err *err);

/* The values of a body, one after another. */
struct dbus_reader {
	str body, signature;
	size_t at;
	bool big_endian;
};

struct dbus_reader dbus_reader_of(const struct dbus_message *m);
/* The next value, which must be of this type: y, b, n, q, i, u, h, x, t (negative numbers as two's complement) or s, o, g. */
bool dbus_read_number(struct dbus_reader *r, char type, uint64_t *ret);
bool dbus_read_text(struct dbus_reader *r, char type, str *ret);
/* Into a variant: what is in it comes next. */
bool dbus_read_variant(struct dbus_reader *r);

/* A call. Its arguments are texts, and after them a number where has_number is set. */
struct dbus_call {
	const char *destination, *path, *interface, *member;
	const char *texts[4];         /* up to a NULL */
	bool has_number;
	int32_t number;
};

/* Appends its bytes. */
void dbus_build(const struct dbus_call *c, uint32_t serial, struct buf *b);

/* ---- a connection ---- */

struct dbus;

/*
 * (suspends) address: "unix:path=/run/dbus/system_bus_socket" or several with ";"; NULL: the system's bus. Shows who we are by the
 * socket's credentials, says hello.
 */
int dbus_open(const char *address, struct dbus **ret, struct err *err);
void dbus_free(struct dbus *d); /* NULL is fine */
void dbus_freep(struct dbus **d);

/*
 * (suspends) Calls and waits for the answer, which is borrowed until the next call. Errors of the other side are -ERR_UNAVAILABLE with its
 * words; those of the connection end it. ret_fd (NULL: none is wanted): the descriptor that came with it, the caller's now, or -1.
 */
int dbus_call(struct dbus *d, const struct dbus_call *c, struct dbus_message *ret, int *ret_fd, struct err *err);
/* (suspends) The next signal, borrowed until the next call. Those that come while a call waits are kept, the newest 16. */
int dbus_next_signal(struct dbus *d, struct dbus_message *ret, struct err *err);

#endif
