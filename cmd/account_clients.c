/* A token is in a file that has no name but its descriptor: clients read it again every minute, as they do with those of pods. */
#include "cmd/account_clients.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/time.h"
#include "codec/types.h"

enum { TOKEN_S = 3600, LEAST_S = 600, LOOK_MS = 30 * 1000, TRIES = 4, PAUSE_MS = 500 };

#define NAMESPACE STR("kube-system")

struct account {
	struct list link;
	struct arena texts;
	str name;
	int fd;
	struct client *client;
	int64_t due_ns;              /* clock_now_ns: a new token then */
};

struct account_clients {
	struct client *own;
	const struct client_config *config;
	double qps;
	unsigned burst;
	struct list accounts;
};

struct account_clients *account_clients_new(struct client *own, const struct client_config *config, double qps, unsigned burst)
{
	struct account_clients *c = mem_zalloc(sizeof *c);

	*c = (struct account_clients){ .own = own, .config = config, .qps = qps, .burst = burst };
	list_init(&c->accounts);
	return c;
}

static void account_free(struct account *x)
{
	client_free(x->client);
	if (x->fd >= 0)
		(void)close(x->fd);
	arena_done(&x->texts);
	free(x);
}

void account_clients_free(struct account_clients *c)
{
	if (!c)
		return;
	LIST_EACH_SAFE(struct account, x, &c->accounts, link)
		account_free(x);
	free(c);
}

/* ---- tokens ---- */

static int ensure_account(struct account_clients *c, struct arena *a, str name, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *found = NULL;
	int r = client_get(c->own, TYPE(core_v1, ServiceAccount), NAMESPACE, name, &found, err);

	if (r != -ERR_NOT_FOUND)
		return r;
	struct val account = OBJECT(a, F(metadata, OBJECT(a, F(name, VAL_STR(name)), F(namespace, VAL_STR(NAMESPACE)))));
	r = client_create(c->own, TYPE(core_v1, ServiceAccount), account, NULL, NULL, err);
	return r == -ERR_ALREADY_EXISTS ? 0 : r;
}

/* In place, and then cut: who reads meanwhile finds the old one, or the new one. */
static int keep_token(struct account *x, str token, struct err *err)
{
	if (pwrite(x->fd, token.p, token.n, 0) != (ssize_t)token.n || ftruncate(x->fd, (off_t)token.n) < 0)
		return err_sys(err, errno, "token");
	return 0;
}

static int renew_once(struct account_clients *c, struct account *x, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(frozen_unrefp) struct frozen *answer = NULL;
	const struct client_write_options o = { .subresource = STR("token"), .reply = TYPE(authentication_v1, TokenRequest) };
	struct timestamp ends = { 0 };
	int r = ensure_account(c, &a, x->name, err);

	if (r < 0)
		return r;
	struct val request = OBJECT(&a, F(metadata, OBJECT(&a, F(name, VAL_STR(x->name)), F(namespace, VAL_STR(NAMESPACE)))),
				    F(spec, OBJECT(&a, F(expirationSeconds, val_of_int(TOKEN_S)))));
	if ((r = client_create(c->own, TYPE(core_v1, ServiceAccount), request, &o, &answer, err)) < 0 ||
	    (r = keep_token(x, val_str(answer->val, status, token), err)) < 0)
		return r;
	(void)time_parse(val_str(answer->val, status, expirationTimestamp), &ends, NULL);
	int64_t left_s = MAX(ends.seconds - clock_wall_ns() / NS_PER_S, (int64_t)LEAST_S);
	x->due_ns = clock_now_ns() + left_s * NS_PER_S / 5 * 4;
	return 0;
}

/* ---- clients ---- */

/* Everything but who we are. */
static struct client_config anonymous(const struct client_config *config)
{
	struct client_config c = *config;

	c.client_cert = c.client_key = c.client_cert_file = c.client_key_file = c.token = c.token_file = c.username = c.password = STR_NONE;
	c.impersonate = c.impersonate_uid = STR_NONE;
	c.impersonate_groups = c.impersonate_extra = c.exec = c.exec_cluster = VAL_EMPTY;
	return c;
}

static int account_open(struct account_clients *c, struct account *x, struct err *err)
{
	struct client_config config = anonymous(c->config);
	int r = -ERR_UNAVAILABLE;

	if ((x->fd = memfd_create("token", MFD_CLOEXEC)) < 0)
		return err_sys(err, errno, "memfd_create");
	for (int i = 0; i < TRIES && (r = renew_once(c, x, err)) < 0 && r != -ERR_CANCELED; i++) {
		int slept = fiber_sleep_ms((int64_t)PAUSE_MS << i, err);
		if (slept < 0)
			return slept;
	}
	if (r < 0)
		return err_wrap(err, r, "failed to get token for kube-system/" STR_FMT, STR_ARG(x->name));
	config.token_file = arena_printf(&x->texts, "/proc/self/fd/%d", x->fd);
	config.user_agent = arena_printf(&x->texts, STR_FMT "/system:serviceaccount:kube-system:" STR_FMT, STR_ARG(config.user_agent), STR_ARG(x->name));
	if ((r = client_open(&config, &x->client, err)) < 0)
		return r;
	client_limit(x->client, c->qps, c->burst);
	return 0;
}

int account_clients_get(struct account_clients *c, const char *account, struct client **ret, struct err *err)
{
	LIST_EACH(struct account, x, &c->accounts, link)
		if (str_eq(x->name, str_of(account))) {
			*ret = x->client;
			return 0;
		}
	struct account *x = mem_zalloc(sizeof *x);
	x->fd = -1;
	x->name = arena_str(&x->texts, str_of(account));
	int r = account_open(c, x, err);
	if (r < 0) {
		account_free(x);
		return r;
	}
	list_add(&c->accounts, &x->link);
	*ret = x->client;
	return 0;
}

int account_clients_run(struct account_clients *c, struct err *err)
{
	int r;

	while ((r = fiber_sleep_ms(LOOK_MS, err)) == 0)
		LIST_EACH(struct account, x, &c->accounts, link) {
			struct err failed = ERR_INIT;
			if (x->due_ns <= clock_now_ns() && renew_once(c, x, &failed) < 0)
				log_warn("a token cannot be renewed, trying again", KV("account", x->name), KV("error", &failed));
		}
	return r;
}
