#include "client/credentials.h"

#include "base/clock.h"
#include "base/encoding.h"
#include "base/fiber.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"

enum { TOKEN_MAX = 1 << 20, TOKEN_AGE_MS = 60 * 1000, HINTS_PER_HOUR = 10 };

struct credentials {
	const struct client_config *config;
	char *authorization;
	char *token_path;
	int64_t token_read_ns;           /* clock_now_ns(); 0: never */
	bool uses_exec;
	bool asking;                     /* a fiber is at it: a program that talks to its user must not run twice */
	struct fiber_cond asked;
	struct exec_credential exec;     /* what the program said last */
	bool has_exec, changed;          /* changed: it said something else than before */
	unsigned number, cert_number;
	int64_t hints_since_ns;
	unsigned hints;
};

static void set_bearer(struct credentials *c, str token)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(TOKEN_MAX + 16);
	if (token.n) {
		buf_add(&b, STR("Bearer "));
		buf_add(&b, token);
	}
	free(c->authorization);
	c->authorization = token.n ? buf_take(&b) : NULL;
	c->number++;
}

static void set_basic(struct credentials *c, str user, str password)
{
	CLEANUP(buf_done) struct buf plain = BUF_INIT(TOKEN_MAX), b = BUF_INIT(2 * TOKEN_MAX);
	buf_add(&plain, user);
	buf_addc(&plain, ':');
	buf_add(&plain, password);
	buf_add(&b, STR("Basic "));
	base64_encode_buf(&b, buf_str(&plain));
	c->authorization = buf_take(&b);
}

int credentials_new(const struct client_config *config, struct credentials **ret, struct err *err)
{
	bool token = config->token.n || config->token_file.n, basic = config->username.n || config->password.n;
	bool cert = config->client_cert.n || config->client_cert_file.n;
	if (token && basic)
		return err_set(err, ERR_INVALID, "username/password or bearer token may be set, but not both");
	int r = val_exists(config->exec) ? exec_plugin_check(config->exec, err) : 0;
	if (r < 0)
		return r;
	struct credentials *c = mem_zalloc(sizeof(*c));
	c->config = config;
	fiber_cond_init(&c->asked, "the program that tells credentials");
	if (config->token.n)
		set_bearer(c, config->token);
	if (basic)
		set_basic(c, config->username, config->password);
	if (config->token_file.n)
		c->token_path = strndup(config->token_file.p, config->token_file.n);
	/* As client-go: who has shown who he is by other means is not asked by the program. */
	c->uses_exec = val_exists(config->exec) && !token && !basic && !cert;
	*ret = c;
	return 0;
}

void credentials_free(struct credentials *c)
{
	if (!c)
		return;
	free(c->authorization);
	free(c->token_path);
	exec_credential_done(&c->exec);
	free(c);
}

/* ---- files ---- */

/* A token that cannot be read just now may have been replaced in this moment: the old one goes on for a while. */
static int read_token(struct credentials *c, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(TOKEN_MAX);
	struct err why = ERR_INIT;
	int r = file_read(c->token_path, &b, &why);
	str token = str_trim(buf_str(&b));
	if (r < 0)
		r = err_wrap(&why, credentials_fail(&why), "failed to read token file \"%s\"", c->token_path);
	else if (!token.n)
		r = err_set(&why, ERR_UNAUTHORIZED, "token file \"%s\" was empty", c->token_path);
	if (r < 0 && !c->authorization) {
		if (err)
			*err = why;
		return r;
	}
	c->token_read_ns = clock_now_ns();
	if (r < 0) {
		log_warn("the token cannot be read again, ignoring", KV("error", &why));
		return 0;
	}
	str old = c->authorization ? str_skip(str_of(c->authorization), strlen("Bearer ")) : STR_NONE;
	if (!str_eq(old, token))
		set_bearer(c, token);
	return 0;
}

static int refresh_token(struct credentials *c, struct err *err)
{
	if (c->token_read_ns && clock_now_ns() - c->token_read_ns < TOKEN_AGE_MS * NS_PER_MS)
		return 0;
	return read_token(c, err);
}

/* ---- programs ---- */

/* How a missing program can be installed is told often enough for a person to see it, but not into every line of a log. */
static bool may_hint(struct credentials *c)
{
	int64_t now = clock_now_ns();
	if (!c->hints_since_ns || now - c->hints_since_ns >= 3600 * NS_PER_S) {
		c->hints_since_ns = now;
		c->hints = 0;
	}
	return c->hints++ < HINTS_PER_HOUR;
}

static bool same_text(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

static void take_exec(struct credentials *c, struct exec_credential *e)
{
	bool other_cert = !same_text(c->exec.cert, e->cert) || !same_text(c->exec.key, e->key);
	c->cert_number += other_cert;
	c->changed = other_cert || !same_text(c->exec.token, e->token);
	exec_credential_done(&c->exec);
	c->exec = *e;
	*e = (struct exec_credential){ 0 };
	c->has_exec = true;
	set_bearer(c, c->exec.token ? str_of(c->exec.token) : STR_NONE);
}

/* (suspends) One at a time: the others take what that one got. */
static int ask_program(struct credentials *c, unsigned number, struct err *err)
{
	struct exec_credential e = { 0 };
	int r = 0;
	while (c->asking)
		if ((r = fiber_cond_wait(&c->asked, err)) < 0)
			return r;
	if (c->number != number)
		return 0;
	c->asking = true;
	r = exec_plugin_run(c->config->exec, c->config->exec_cluster, may_hint(c), &e, err);
	c->asking = false;
	fiber_cond_broadcast(&c->asked);
	if (r == 0)
		take_exec(c, &e);
	return r;
}

int credentials_get(struct credentials *c, struct credential *ret, struct err *err)
{
	int r = c->token_path ? refresh_token(c, err) : 0;
	while (r == 0 && c->uses_exec && (!c->has_exec || clock_wall_ns() > c->exec.expires_ns)) {
		unsigned before = c->number;
		r = ask_program(c, before, err);
		/* It may tell one that has expired already: that is for the server to say. */
		if (r == 0 && c->number == before + 1)
			break;
	}
	if (r < 0)
		return err_wrap(err, r, "getting credentials");
	*ret = (struct credential){
		.authorization = str_of(c->authorization), .cert = c->exec.cert, .key = c->exec.key,
		.cert_number = c->cert_number, .number = c->number,
	};
	return 0;
}

bool credentials_refused(struct credentials *c, unsigned number)
{
	struct err err = ERR_INIT;
	int r = 0;
	if (c->number != number)
		return true;
	if (c->token_path)
		r = read_token(c, &err);
	else if (c->uses_exec)
		r = ask_program(c, number, &err);
	if (r < 0)
		log_warn("the server refuses our credentials, and there are no newer ones", KV("error", &err));
	return c->number != number && (!c->uses_exec || c->changed);
}
