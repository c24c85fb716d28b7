/*
 * The API servers of a cluster that has several, in a file of the node: its kubelet goes on with another one when its own cannot be reached.
 * They are the endpoints of the Service default/kubernetes, which the servers keep themselves: one that is gone is taken out by the others.
 */
#include <inttypes.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fiber.h"
#include "base/file.h"
#include "base/log.h"
#include "client/client.h"
#include "cmd/up.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "machinery/ip.h"
#include "net/url.h"

enum { AGAIN_MS = 5000, TEXT_MAX = 64 << 10 };

/* ---- etcd ---- */

/* Whether it is an address of this machine: others cannot be bound to. */
static bool is_own(const struct ip *ip)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	bool four = ip_is_v4(ip);
	int fd = socket(four ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	memcpy(&v4.sin_addr, ip->b + 12, sizeof(v4.sin_addr));
	memcpy(&v6.sin6_addr, ip->b, sizeof(v6.sin6_addr));
	bool own = fd >= 0 && bind(fd, four ? (const struct sockaddr *)&v4 : (const struct sockaddr *)&v6, four ? sizeof(v4) : sizeof(v6)) == 0;
	if (fd >= 0)
		(void)close(fd);
	return own;
}

const char *const *up_nearest_first(struct arena *a, const char *const *urls)
{
	size_t n = 0, near = 0;

	while (urls[n])
		n++;
	const char **list = ARENA_ARRAY(a, const char *, n + 1);
	for (size_t i = 0; i < n; i++) {
		struct url url;
		struct ip ip;
		list[i] = urls[i];
		if (url_parse(a, str_of(urls[i]), &url, NULL) < 0 || !ip_parse(url.host, &ip, NULL) || !is_own(&ip))
			continue;
		memmove(list + near + 1, list + near, (i - near) * sizeof(*list));
		list[near++] = urls[i];
	}
	list[n] = NULL;
	return list;
}

/* ---- API servers ---- */

bool up_has_several(const struct up_cluster *c) { return c->settings.server || c->settings.etcd_servers[0]; }

static str lines_of(struct arena *a, struct val slice)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(TEXT_MAX);
	int64_t port = val_int(val_at(val_get(slice, ports), 0), port);

	VAL_EACH(endpoint, val_get(slice, endpoints)) {
		str address = val_as_str(val_at(val_get(*endpoint, addresses), 0));
		bool v6 = str_chr(address, ':') >= 0;
		if (address.n)
			buf_addf(&b, "https://%s" STR_FMT "%s:%" PRId64 "\n", v6 ? "[" : "", STR_ARG(address), v6 ? "]" : "", port);
	}
	return arena_str(a, buf_str(&b));
}

static void write_servers(const struct up_cluster *c, struct val slice)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf was = BUF_INIT(TEXT_MAX);
	struct err err = ERR_INIT;
	str lines = lines_of(&a, slice);

	(void)file_read(c->servers_file, &was, NULL);
	/* A list without anybody helps nobody. */
	if (lines.n && !str_eq(lines, buf_str(&was)) && file_write(c->servers_file, lines, 0600, &err) < 0)
		log_warn("the list of API servers cannot be kept", KV("err", &err));
}

static int follow(const struct up_cluster *c, struct client *client, struct err *err)
{
	const struct client_watch_options o = { .list = { .namespace = STR("default"), .fields = STR("metadata.name=kubernetes") }, .initial = true };
	CLEANUP(client_watch_freep) struct client_watch *w = NULL;
	struct client_event event;
	int r = client_watch(client, TYPE(discovery_v1, EndpointSlice), &o, &w, err);

	while (r >= 0 && (r = client_watch_next(w, &event, err)) > 0)
		if (event.type == CLIENT_ADDED || event.type == CLIENT_MODIFIED)
			write_servers(c, event.object->val);
	return r;
}

int up_keep_servers(const struct up_cluster *c, struct err *err)
{
	struct fiber_cond never = FIBER_COND_INIT(never, "a signal");
	int r;

	if (!up_has_several(c))
		return fiber_cond_wait(&never, err);
	for (;;) {
		CLEANUP(client_freep) struct client *client = NULL; /* a new one each time: certificates are renewed */
		struct err why = ERR_INIT;
		if ((up_connect(c, &client, &why) < 0 || follow(c, client, &why) < 0) && fiber_check(NULL) == 0)
			log_warn("the API servers cannot be asked for their list, trying again soon", KV("err", &why));
		if ((r = fiber_sleep_ms(AGAIN_MS, err)) < 0)
			return r;
	}
}
