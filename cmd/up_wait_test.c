#include "base/clock.h"
#include "base/fiber_test.h"
#include "client/client.h"
#include "client/kubeconfig.h"
#include "cmd/up.h"
#include "codec/time.h"
#include "net/http.h"

enum { LONG_ENOUGH_MS = 150, AT_LAST_MS = 20 * 1000 };

/* A server that tells every watch of nodes the same. */
struct teller {
	struct arena arena;
	struct http_server *server;
	struct fiber *fiber;
	struct client *client;
	str says;
};

static int answer(struct http_exchange *x, void *arg)
{
	struct teller *t = arg;
	const struct http_header json = { STR_INIT("content-type"), STR_INIT("application/json") };

	(void)fiber_sleep_ms(10, NULL);
	http_answer(x, 200, &json, 1, t->says);
	return 0;
}

static int run_server(void *arg) { return http_server_run(arg, 0, NULL); }

static void teller_init(struct teller *t)
{
	uint16_t port;

	*t = (struct teller){ .arena = ARENA_INIT };
	CHECK_INT(http_server_new(&(struct http_server_options){ .handle = answer, .arg = t }, &t->server, NULL), 0);
	CHECK_INT(http_server_listen(t->server, "127.0.0.1", 0, &port, NULL), 0);
	t->fiber = start(run_server, t->server);
	CHECK_INT(client_open(&(struct client_config){ .server = arena_printf(&t->arena, "http://127.0.0.1:%u", port) }, &t->client, NULL), 0);
}

static void teller_done(struct teller *t)
{
	client_free(t->client);
	(void)fiber_stop(t->fiber);
	http_server_free(t->server);
	arena_done(&t->arena);
}

/* Whether that is enough for who waits for the node since this time, and so long. */
static bool is_enough(struct teller *t, const char *type, const char *conditions, int64_t since_ns, int64_t ms)
{
	DEADLINE_SCOPE(ms);
	t->says = arena_printf(&t->arena, "{\"type\":\"%s\",\"object\":{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n\",\"resourceVersion\":\"1\"},"
			       "\"status\":{\"conditions\":[%s]}}}\n", type, conditions);
	return up_wait_node(t->client, "n", since_ns, NULL) == 0;
}

#define CONDITION(type, status, second)                                                                       \
	"{\"type\":\"" type "\",\"status\":\"" status "\",\"lastHeartbeatTime\":\"2026-01-01T00:00:" second "Z\"," \
	"\"lastTransitionTime\":\"2025-01-01T00:00:00Z\"}"

FIBER_TEST(up_wait_node)
{
	static const struct { const char *type, *conditions; bool enough; } t[] = {
		{ "ADDED", CONDITION("Ready", "True", "31"), true },
		{ "MODIFIED", CONDITION("MemoryPressure", "False", "31") "," CONDITION("Ready", "True", "30"), true },
		/* What the kubelet of a node that ran before has said last, and nobody since. */
		{ "ADDED", CONDITION("Ready", "True", "29"), false },
		{ "ADDED", CONDITION("MemoryPressure", "False", "31") "," CONDITION("Ready", "True", "29"), false },
		{ "ADDED", CONDITION("Ready", "False", "31"), false },
		{ "ADDED", CONDITION("MemoryPressure", "True", "31"), false },
		{ "ADDED", "", false },
		{ "DELETED", CONDITION("Ready", "True", "31"), false },
	};
	struct timestamp since;
	struct teller teller;

	CHECK_INT(time_parse(STR("2026-01-01T00:00:30Z"), &since, NULL), 0);
	teller_init(&teller);
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_ROW(i, is_enough(&teller, t[i].type, t[i].conditions, since.seconds * NS_PER_S + NS_PER_S / 2,
				       t[i].enough ? AT_LAST_MS : LONG_ENOUGH_MS) == t[i].enough);
	teller_done(&teller);
}
