#include "cmd/component.h"

#include <unistd.h>

#include "base/encoding.h"
#include "base/fiber.h"

enum { HOST_NAME_BYTES = 256 };

/* ---- electing ---- */

/* "host_uuid": differs between processes, also on one host. */
static str identity(struct arena *a)
{
	char host[HOST_NAME_BYTES] = "", id[UUID_TEXT + 1];

	(void)gethostname(host, sizeof(host) - 1);
	uuid_v4(id);
	return arena_printf(a, "%s_%s", host, id);
}

/* Words are client-go's. */
static int check_times(const struct election *e, struct err *err)
{
	const char *wrong = e->lease_ms <= e->renew_ms ? "leaseDuration must be greater than renewDeadline" :
			    e->renew_ms <= e->retry_ms * 6 / 5 ? "renewDeadline must be greater than retryPeriod*JitterFactor" :
			    e->renew_ms < 1 ? "renewDeadline must be greater than zero" :
			    e->retry_ms < 1 ? "retryPeriod must be greater than zero" : NULL;

	return wrong ? err_set(err, ERR_INVALID, "%s", wrong) : 0;
}

int component_elect(struct election *e, struct client *client, str source, int (*lead)(void *arg), void *arg, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	int r = check_times(e, err);

	if (r < 0 || (r = recorder_new(client, source, STR_NONE, &e->recorder, err)) < 0)
		return r;
	e->client = client;
	e->identity = identity(&a);
	r = election_run(e, lead, arg, err);
	recorder_free(TAKE(e->recorder));
	return r == -ERR_UNAVAILABLE ? err_wrap(err, r, "leaderelection lost") : r;
}

/* ---- running ---- */

struct running {
	struct component_server *server;
	int (*work)(void *arg, struct err *err);
	void *arg;
	struct fiber *working;       /* NULL: it has ended */
	int result;                  /* of the port */
	struct err err, work_err;
};

static int run_work(void *arg)
{
	struct running *run = arg;

	return run->work(run->arg, &run->work_err);
}

static int run_server(void *arg)
{
	struct running *run = arg;

	run->result = component_serve(run->server, &run->err);
	if (run->result != -ERR_CANCELED && run->working)
		fiber_cancel(run->working);
	return run->result;
}

int component_run(struct component_server *server, int (*work)(void *arg, struct err *err), void *arg, struct err *err)
{
	struct running run = { .server = server, .work = work, .arg = arg };
	CLEANUP(fiber_stopp) struct fiber *port = NULL;
	CLEANUP(fiber_stopp) struct fiber *working = NULL;
	int result = 0, r = fiber_spawn(run_work, &run, &working, err, "%s", server->name);

	if (r < 0)
		return r;
	run.working = working;
	if ((r = fiber_spawn(run_server, &run, &port, err, "%s's port", server->name)) < 0 || (r = fiber_join(working, &result, err)) < 0) {
		run.working = NULL; /* it is stopped and freed before the port is */
		return r;
	}
	run.working = working = NULL;
	if (run.result < 0 && run.result != -ERR_CANCELED) {
		*err = run.err;
		return run.result;
	}
	*err = run.work_err;
	return result;
}
