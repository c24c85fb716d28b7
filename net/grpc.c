/*
 * Channels: which endpoint is used, and connecting to it. A connection is made when a call needs one, by a fiber that then
 * runs it to its end. Calls that wait for a connection give up once every endpoint has failed since they began.
 */
#include "net/grpc.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "net/grpc_priv.h"
#include "net/url.h"

enum {
	MESSAGE_MAX_DEFAULT = 4 << 20,
	CONNECT_TIMEOUT_MS = 2000,
	/* gRPC servers count it as abuse when pings come more often than every five seconds. */
	PING_INTERVAL_MS = 6000,
	PING_INTERVAL_MAX_MS = 120000,
	PAUSE_MS = 100,
	PAUSE_MAX_MS = 1000,
};

/* ---- endpoints ---- */

static int endpoint_parse(struct arena *a, str text, bool has_tls, struct grpc_endpoint *ret, struct err *err)
{
	struct url u;
	int r;

	*ret = (struct grpc_endpoint){ .text = arena_str(a, text) };
	if (str_starts(text, STR("unix:"))) {
		str path = str_skip(text, 5);
		if (str_starts(path, STR("//")))
			path = str_skip(path, 2);
		if (path.n == 0)
			return err_set(err, ERR_BAD_REQUEST, "endpoint '" STR_FMT "' has no path", STR_ARG(text));
		ret->host = arena_join(a, STR("unix:"), path).p;
		ret->authority = STR("localhost");
		return 0;
	}
	if ((r = url_parse(a, text, &u, err)) < 0)
		return err_wrap(err, r, "endpoint '" STR_FMT "'", STR_ARG(text));
	ret->tls = str_eq(u.scheme, STR("https"));
	if (!ret->tls && !str_eq(u.scheme, STR("http")))
		return err_set(err, ERR_BAD_REQUEST, "endpoint '" STR_FMT "' does not begin with http://, https:// or unix:",
			       STR_ARG(text));
	if (u.host.n == 0 || u.port == 0)
		return err_set(err, ERR_BAD_REQUEST, "endpoint '" STR_FMT "' has no host", STR_ARG(text));
	if (ret->tls && !has_tls)
		return err_set(err, ERR_BAD_REQUEST, "endpoint '" STR_FMT "' needs TLS", STR_ARG(text));
	ret->host = arena_str(a, u.host).p;
	ret->port = u.port;
	ret->authority = arena_str(a, u.authority);
	return 0;
}

int grpc_channel_new(const struct grpc_options *o, struct grpc_channel **ret, struct err *err)
{
	CLEANUP(grpc_channel_freep) struct grpc_channel *c = mem_zalloc(sizeof *c);
	int r;

	arena_init(&c->arena);
	fiber_cond_init(&c->changed, "a gRPC connection");
	fiber_group_init(&c->connections);
	c->tls = o->tls;
	c->max_message = o->max_message ? o->max_message : MESSAGE_MAX_DEFAULT;
	c->connect_timeout_ms = o->connect_timeout_ms ? o->connect_timeout_ms : CONNECT_TIMEOUT_MS;
	c->ping_interval_ms = PING_INTERVAL_MS;
	while (o->endpoints[c->n_endpoints])
		c->n_endpoints++;
	if (c->n_endpoints == 0)
		return err_set(err, ERR_BAD_REQUEST, "no endpoints are given");
	c->endpoints = ARENA_ARRAY(&c->arena, struct grpc_endpoint, c->n_endpoints);
	for (size_t i = 0; i < c->n_endpoints; i++) {
		if ((r = endpoint_parse(&c->arena, str_of(o->endpoints[i]), o->tls != NULL, &c->endpoints[i], err)) < 0)
			return r;
	}
	c->n_metadata = o->n_metadata;
	c->metadata = ARENA_ARRAY(&c->arena, struct http_header, c->n_metadata);
	for (size_t i = 0; i < c->n_metadata; i++)
		c->metadata[i] = (struct http_header){ arena_str(&c->arena, o->metadata[i].name),
						       arena_str(&c->arena, o->metadata[i].value) };
	*ret = TAKE(c);
	return 0;
}

void grpc_channel_free(struct grpc_channel *c)
{
	if (!c)
		return;
	if (c->connections.n)
		fiber_group_done(&c->connections);
	arena_done(&c->arena);
	free(c);
}

void grpc_channel_freep(struct grpc_channel **c) { grpc_channel_free(*c); }

str grpc_channel_endpoint(const struct grpc_channel *c) { return c->endpoints[c->at].text; }

uint64_t grpc_channel_generation(const struct grpc_channel *c) { return c->generation; }

static void next_endpoint(struct grpc_channel *c) { c->at = (c->at + 1) % c->n_endpoints; }

void grpc_channel_move(struct grpc_channel *c, uint64_t generation)
{
	if (c->n_endpoints > 1 && c->client && c->generation == generation)
		http2_client_drain(c->client);
}

/* ---- connecting ---- */

/* The connection has become usable, or stopped being so. */
static void on_changed(struct http2_client *client, void *arg)
{
	struct grpc_channel *c = arg;

	if (!http2_client_draining(client)) {
		c->client = client;
		c->generation++;
		c->connecting = false;
		c->in_a_row = 0;
		log_debug("gRPC connection", KV("endpoint", grpc_channel_endpoint(c)));
	} else if (c->client == client) {
		c->client = NULL;
		next_endpoint(c);
	}
	if (http2_client_pinged_too_much(client))
		c->ping_interval_ms = MIN(2 * c->ping_interval_ms, (int64_t)PING_INTERVAL_MAX_MS);
	fiber_cond_broadcast(&c->changed);
}

/* A connection, as long as it lives. True if it took calls, or could have. */
static bool connection_run(struct grpc_channel *c, struct err *err)
{
	const struct grpc_endpoint *e = &c->endpoints[c->at];
	uint64_t generation = c->generation; /* nobody else makes connections meanwhile */
	struct stream *s;
	int r;

	{
		DEADLINE_SCOPE(c->connect_timeout_ms);
		if (e->tls)
			(void)tls_reload(c->tls, NULL); /* certificates are renewed; the old ones may still do */
		r = stream_dial(e->host, e->port, e->tls ? c->tls : NULL, &s, err);
	}
	if (r < 0) {
		err_wrap(err, r, STR_FMT, STR_ARG(e->text));
		return false;
	}
	struct http2_client_options o = { .changed = on_changed, .arg = c, .ready_timeout_ms = c->connect_timeout_ms,
					  .ping_interval_ms = c->ping_interval_ms };
	struct http2_client *client = http2_client_new(s, &o);
	r = http2_client_run(client, err);
	http2_client_free(client);
	err_wrap(err, r, STR_FMT, STR_ARG(e->text));
	log_debug("gRPC connection ended", KV("endpoint", e->text), KV("reason", err));
	return c->generation != generation;
}

/* Pauses after each round over all endpoints, so that a service that is away is not hammered. */
static int pause_between(struct grpc_channel *c)
{
	unsigned rounds = c->in_a_row / (unsigned)c->n_endpoints;

	if (c->in_a_row % c->n_endpoints != 0)
		return fiber_check(NULL);
	unsigned doublings = MIN(rounds - 1, 8U);
	int64_t ms = MIN((int64_t)PAUSE_MS << doublings, (int64_t)PAUSE_MAX_MS);
	return fiber_sleep_ms(ms / 2 + (int64_t)random_below((uint64_t)ms / 2 + 1), NULL);
}

static int connect_main(void *arg)
{
	struct grpc_channel *c = arg;

	do {
		struct err err = ERR_INIT;
		if (connection_run(c, &err))
			return 0; /* who needs the next one makes it */
		c->last = err;
		c->failures++;
		c->in_a_row++;
		next_endpoint(c);
		fiber_cond_broadcast(&c->changed);
	} while (pause_between(c) == 0 && c->waiting > 0);
	c->connecting = false;
	fiber_cond_broadcast(&c->changed);
	return 0;
}

int grpc_channel_client(struct grpc_channel *c, uint64_t max_failures, struct http2_client **ret, struct err *err)
{
	size_t asked = 0;
	int r = fiber_check(err);

	while (r == 0 && !c->client) {
		if (c->failures >= max_failures)
			return err_set(err, ERR_UNAVAILABLE, "%s", c->last.msg);
		if (!c->connecting) {
			if (asked++ > c->n_endpoints)
				return err_set(err, ERR_UNAVAILABLE, "connections end as soon as they are made");
			if ((r = fiber_group_spawn(&c->connections, connect_main, c, err, "grpc-connection")) < 0)
				return r;
			c->connecting = true;
		}
		c->waiting++;
		r = fiber_cond_wait(&c->changed, err);
		c->waiting--;
	}
	*ret = c->client;
	return r;
}
