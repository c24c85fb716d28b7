/* Connecting to hosts and local sockets. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fiber.h"
#include "base/fiber_io.h"
#include "net/stream_priv.h"

/* "connect: connection refused", as everybody knows it who has met Go's programs. */
static void small_letter(struct err *err)
{
	const str before = STR("connect: ");
	size_t n = before.n;
	if (err && err->sys && str_starts(err_str(err), before) && err->msg[n] >= 'A' && err->msg[n] <= 'Z')
		err->msg[n] = (char)(err->msg[n] | 0x20);
}

static int dial_address(const struct sockaddr *addr, socklen_t len, int *ret_fd, struct err *err)
{
	char text[INET6_ADDRSTRLEN + 16];
	int fd = socket(addr->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return err_sys(err, errno, "make a socket");
	int r = fiber_connect(fd, addr, len, err);
	if (r == 0) {
		*ret_fd = fd;
		return 0;
	}
	(void)close(fd);
	small_letter(err);
	if (addr->sa_family == AF_UNIX)
		return err_wrap(err, r, "dial unix %s", ((const struct sockaddr_un *)addr)->sun_path);
	struct sockaddr_storage copy = { 0 };
	memcpy(&copy, addr, MIN((size_t)len, sizeof(copy)));
	stream_format_address(&copy, text, sizeof(text));
	return err_wrap(err, r, "dial tcp %s", text);
}

static int dial_unix(const char *path, int *ret_fd, struct err *err)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	size_t n = strlen(path);

	if (n >= sizeof(addr.sun_path))
		return err_set(err, ERR_INVALID, "dial unix %s: the path is too long", path);
	memcpy(addr.sun_path, path, n);
	return dial_address((const struct sockaddr *)&addr, sizeof(addr), ret_fd, err);
}

/* The first failure is the one that is told; the others are tried all the same, as long as there is time. */
static int dial_name(const char *host, uint16_t port, int *ret_fd, struct err *err)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
	struct addrinfo *list = NULL;
	char service[8];
	struct err first = ERR_INIT, other = ERR_INIT;

	(void)snprintf(service, sizeof(service), "%u", port);
	int r = fiber_getaddrinfo(host, service, &hints, &list, err);
	if (r < 0)
		return r;
	r = dial_address(list->ai_addr, list->ai_addrlen, ret_fd, &first);
	for (struct addrinfo *a = list->ai_next; a && r < 0 && fiber_check(NULL) == 0; a = a->ai_next)
		r = dial_address(a->ai_addr, a->ai_addrlen, ret_fd, &other);
	freeaddrinfo(list);
	if (r == 0 || r == -ERR_CANCELED)
		return r == 0 ? 0 : fiber_check(err);
	if (err)
		*err = first;
	return -(int)first.code;
}

/* An address needs no name service, and no thread to ask it. */
static int dial_host(const char *host, uint16_t port, int *ret_fd, struct err *err)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	if (inet_pton(AF_INET, host, &in.sin_addr) == 1)
		return dial_address((const struct sockaddr *)&in, sizeof(in), ret_fd, err);
	if (inet_pton(AF_INET6, host, &in6.sin6_addr) == 1)
		return dial_address((const struct sockaddr *)&in6, sizeof(in6), ret_fd, err);
	return dial_name(host, port, ret_fd, err);
}

int stream_dial(const char *host, uint16_t port, struct tls_context *tls, struct stream **ret, struct err *err)
{
	int fd = -1;
	int r = strncmp(host, "unix:", 5) == 0 ? dial_unix(host + 5, &fd, err) : dial_host(host, port, &fd, err);

	if (r < 0)
		return r;
	if (tls)
		return stream_connect_tls(fd, tls, host, ret, err);
	*ret = stream_of_fd(fd);
	return 0;
}
