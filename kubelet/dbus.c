/*
 * One fiber reads and writes. What comes is kept in a buffer until it has been looked at; descriptors come with the first bytes of their
 * message at the latest, and are handed out in the order of messages. Whatever is neither the awaited answer nor a signal is dropped.
 */
#include "kubelet/dbus.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/encoding.h"
#include "base/fiber.h"
#include "base/fiber_io.h"
#include "base/mem.h"

enum { READ_BYTES = 4096, SIGNALS_MAX = 16, LINE_MAX_BYTES = 512, HANDSHAKE_MS = 25 * 1000, CALL_MS = 25 * 1000 };

static const char system_bus[] = "unix:path=/run/dbus/system_bus_socket";

struct dbus {
	int fd;
	struct buf in;                /* what has come; the first `used` bytes are done with */
	size_t used;
	int fds[DBUS_FDS_MAX];        /* that have come and belong to messages in `in` */
	size_t n_fds;
	struct buf signals[SIGNALS_MAX]; /* a ring: those that came while a call waited */
	size_t first_signal, n_signals;
	struct buf current;           /* the signal that was handed out from there */
	uint32_t serial;
};

/* ---- bytes ---- */

static void take_fds(struct dbus *d, const struct cmsghdr *c)
{
	size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

	for (size_t i = 0; i < n; i++) {
		int fd;
		memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
		if (d->n_fds < DBUS_FDS_MAX)
			d->fds[d->n_fds++] = fd;
		else
			close(fd);
	}
}

/* (suspends) At least one byte more. */
static int read_more(struct dbus *d, struct err *err)
{
	union {
		char bytes[CMSG_SPACE(DBUS_FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control;
	char *room = buf_reserve(&d->in, READ_BYTES);
	struct iovec v = { room, READ_BYTES };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	ssize_t n;

	if (!room)
		return err_set(err, ERR_TOO_LARGE, "D-Bus: too much at once");
	while ((n = recvmsg(d->fd, &m, MSG_CMSG_CLOEXEC)) < 0) {
		if (errno != EAGAIN && errno != EINTR)
			return err_sys(err, errno, "D-Bus: read");
		int r = errno == EAGAIN ? fiber_wait_fd(d->fd, POLLIN, err) : 0;
		if (r < 0)
			return r;
	}
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			take_fds(d, c);
	if (n == 0)
		return err_set(err, ERR_UNAVAILABLE, "D-Bus: the connection was closed");
	buf_commit(&d->in, (size_t)n);
	return 0;
}

static void forget_used(struct dbus *d)
{
	if (!d->used)
		return;
	memmove(d->in.p, d->in.p + d->used, d->in.n - d->used);
	d->in.n -= d->used;
	d->used = 0;
}

/* The descriptors of a message that is done with; the first is given away when it is wanted. */
static int give_fds(struct dbus *d, uint32_t n, int *ret_fd, struct err *err)
{
	if (n > d->n_fds)
		return err_set(err, ERR_BAD_REQUEST, "D-Bus: a message lacks its descriptors");
	for (uint32_t i = 0; i < n; i++) {
		if (i == 0 && ret_fd)
			*ret_fd = d->fds[0];
		else
			close(d->fds[i]);
	}
	d->n_fds -= n;
	memmove(d->fds, d->fds + n, d->n_fds * sizeof(d->fds[0]));
	return 0;
}

/* (suspends) The next message, borrowed until the next one. Its descriptors are still to be given. */
static int next_message(struct dbus *d, struct dbus_message *ret, struct err *err)
{
	int r;

	forget_used(d);
	for (;;) {
		size_t n = 0;
		if ((r = dbus_parse(buf_str(&d->in), ret, &n, err)) < 0)
			return r;
		if (r > 0) {
			d->used = n;
			return 0;
		}
		if ((r = read_more(d, err)) < 0)
			return r;
	}
}

/* ---- the handshake ---- */

/* (suspends) A line without its end; borrowed until the next read. */
static int read_line(struct dbus *d, str *ret, struct err *err)
{
	forget_used(d);
	for (;;) {
		ptrdiff_t end = str_find(buf_str(&d->in), STR("\r\n"));
		if (end >= 0) {
			*ret = str_head(buf_str(&d->in), (size_t)end);
			d->used = (size_t)end + 2;
			return 0;
		}
		if (d->in.n > LINE_MAX_BYTES)
			return err_set(err, ERR_BAD_REQUEST, "D-Bus: a line without an end");
		int r = read_more(d, err);
		if (r < 0)
			return r;
	}
}

/* (suspends) */
static int say(struct dbus *d, str line, str answer, struct err *err)
{
	str got = STR_NONE;
	int r = fiber_write(d->fd, line.p, line.n, err);

	if (r < 0 || (r = read_line(d, &got, err)) < 0)
		return r;
	if (!str_starts(got, answer))
		return err_set(err, ERR_FORBIDDEN, "D-Bus: the bus answered \"" STR_FMT "\"", STR_ARG(str_head(got, 100)));
	return 0;
}

static int authenticate(struct dbus *d, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(256), uid = BUF_INIT(32);
	int r;

	buf_addf(&uid, "%u", (unsigned)geteuid());
	buf_addc(&b, '\0');
	buf_add(&b, STR("AUTH EXTERNAL "));
	hex_encode_buf(&b, buf_str(&uid));
	buf_add(&b, STR("\r\n"));
	if ((r = say(d, buf_str(&b), STR("OK "), err)) < 0 || (r = say(d, STR("NEGOTIATE_UNIX_FD\r\n"), STR("AGREE_UNIX_FD"), err)) < 0)
		return r;
	return fiber_write(d->fd, "BEGIN\r\n", 7, err);
}

static int say_hello(struct dbus *d, struct err *err)
{
	struct dbus_message m;
	const struct dbus_call hello = {
		.destination = "org.freedesktop.DBus", .path = "/org/freedesktop/DBus", .interface = "org.freedesktop.DBus", .member = "Hello",
	};

	return dbus_call(d, &hello, &m, NULL, err);
}

/* ---- connecting ---- */

/* One of "unix:path=...,guid=..." */
static bool parse_address(str text, struct sockaddr_un *ret, socklen_t *ret_n)
{
	str key, value, rest;
	bool abstract = false;

	if (!str_starts(text, STR("unix:")))
		return false;
	for (rest = str_skip(text, 5); rest.n;) {
		str pair;
		(void)str_cut(rest, ',', &pair, &rest);
		(void)str_cut(pair, '=', &key, &value);
		abstract = str_eq(key, STR("abstract"));
		if (!abstract && !str_eq(key, STR("path")))
			continue;
		if (!value.n || value.n + 1 >= sizeof(ret->sun_path) || memchr(value.p, '%', value.n))
			return false;
		*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
		memcpy(ret->sun_path + abstract, value.p, value.n);
		*ret_n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + value.n + 1);
		return true;
	}
	return false;
}

/* (suspends) The first address that somebody listens on. */
static int dial(struct dbus *d, str addresses, struct err *err)
{
	int r = err_set(err, ERR_INVALID, "D-Bus: no address that can be used in \"" STR_FMT "\"", STR_ARG(str_head(addresses, 200)));

	while (addresses.n) {
		struct sockaddr_un to;
		socklen_t n;
		str one;
		(void)str_cut(addresses, ';', &one, &addresses);
		if (!parse_address(one, &to, &n))
			continue;
		d->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		if (d->fd < 0)
			return err_sys(err, errno, "D-Bus: socket");
		if ((r = fiber_connect(d->fd, (struct sockaddr *)&to, n, err)) == 0)
			return 0;
		close(d->fd);
		d->fd = -1;
		(void)err_wrap(err, r, "D-Bus: " STR_FMT, STR_ARG(str_head(one, 200)));
	}
	return r;
}

int dbus_open(const char *address, struct dbus **ret, struct err *err)
{
	CLEANUP(dbus_freep) struct dbus *d = mem_zalloc(sizeof(*d));
	const char *named = getenv("DBUS_SYSTEM_BUS_ADDRESS");
	DEADLINE_SCOPE(HANDSHAKE_MS);

	d->fd = -1;
	buf_init(&d->in, DBUS_MESSAGE_MAX + READ_BYTES);
	int r = dial(d, str_of(address ? address : named && *named ? named : system_bus), err);
	if (r == 0)
		r = authenticate(d, err);
	if (r == 0)
		r = say_hello(d, err);
	if (r < 0)
		return r;
	*ret = TAKE(d);
	return 0;
}

void dbus_free(struct dbus *d)
{
	if (!d)
		return;
	if (d->fd >= 0)
		close(d->fd);
	for (size_t i = 0; i < d->n_fds; i++)
		close(d->fds[i]);
	for (size_t i = 0; i < SIGNALS_MAX; i++)
		buf_done(&d->signals[i]);
	buf_done(&d->current);
	buf_done(&d->in);
	free(d);
}

void dbus_freep(struct dbus **d) { dbus_free(*d); }

/* ---- calls and signals ---- */

static void keep_signal(struct dbus *d)
{
	if (d->n_signals == SIGNALS_MAX) {
		d->first_signal = (d->first_signal + 1) % SIGNALS_MAX;
		d->n_signals--;
	}
	struct buf *b = &d->signals[(d->first_signal + d->n_signals++) % SIGNALS_MAX];
	buf_done(b);
	buf_init(b, DBUS_MESSAGE_MAX);
	buf_add(b, str_head(buf_str(&d->in), d->used));
}

static int remote_error(const struct dbus_message *m, struct err *err)
{
	struct dbus_reader r = dbus_reader_of(m);
	str text;

	if (!dbus_read_text(&r, 's', &text) || !str_is_utf8(text))
		text = m->error;
	return err_set(err, ERR_UNAVAILABLE, STR_FMT, STR_ARG(str_head(text, 400)));
}

int dbus_call(struct dbus *d, const struct dbus_call *c, struct dbus_message *ret, int *ret_fd, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(DBUS_MESSAGE_MAX);
	uint32_t serial = ++d->serial;
	DEADLINE_SCOPE(CALL_MS);

	if (ret_fd)
		*ret_fd = -1;
	dbus_build(c, serial, &b);
	int r = buf_check(&b, "a D-Bus call", err);
	if (r == 0)
		r = fiber_write(d->fd, b.p, b.n, err);
	while (r == 0 && (r = next_message(d, ret, err)) == 0) {
		bool answer = (ret->type == DBUS_RETURN || ret->type == DBUS_ERROR) && ret->reply_to == serial;
		if ((r = give_fds(d, ret->n_fds, answer && ret->type == DBUS_RETURN ? ret_fd : NULL, err)) < 0)
			return r;
		if (answer)
			return ret->type == DBUS_ERROR ? remote_error(ret, err) : 0;
		if (ret->type == DBUS_SIGNAL)
			keep_signal(d);
	}
	return r;
}

int dbus_next_signal(struct dbus *d, struct dbus_message *ret, struct err *err)
{
	size_t n;
	int r;

	if (d->n_signals) {
		buf_done(&d->current);
		d->current = d->signals[d->first_signal];
		d->signals[d->first_signal] = (struct buf)BUF_INIT(0);
		d->first_signal = (d->first_signal + 1) % SIGNALS_MAX;
		d->n_signals--;
		return (r = dbus_parse(buf_str(&d->current), ret, &n, err)) < 0 ? r : 0;
	}
	while ((r = next_message(d, ret, err)) == 0) {
		if ((r = give_fds(d, ret->n_fds, NULL, err)) < 0)
			return r;
		if (ret->type == DBUS_SIGNAL)
			return 0;
	}
	return r;
}
