#include "client/credentials.h"

#include "base/clock.h"
#include "base/log.h"
#include "client/folder_testing.h"
#include "client/script_testing.h"
#include "codec/atoms.h"
#include "codec/types.h"

#define V1 "client.authentication.k8s.io/v1"

static str token_now(struct credentials *c, struct folder *f)
{
	struct credential now;
	struct err err = ERR_INIT;
	if (credentials_get(c, &now, &err) < 0)
		return shown(f, arena_printf(&f->arena, "%d: %s", err_http_status(err.code), err.msg));
	return now.authorization;
}

TEST(credentials_of_a_file)
{
	struct folder f;
	struct credentials *c = NULL;
	struct credential now;
	folder_init(&f);
	log_set_level(LOG_LEVEL_OFF);
	clock_virtual_set(1000 * NS_PER_S, 1000 * NS_PER_S);
	const struct client_config config = { .token_file = str_of(in_folder(&f, "token")) };
	CHECK_INT(credentials_new(&config, &c, NULL), 0);
	CHECK(str_starts(token_now(c, &f), STR("401: getting credentials: failed to read token file \"DIR/token\": ")));
	put_file(&f, "token", " \n", 0600);
	CHECK_STR(token_now(c, &f), "401: getting credentials: token file \"DIR/token\" was empty");
	put_file(&f, "token", " one\n", 0600);
	CHECK_STR(token_now(c, &f), "Bearer one");
	/* Once a minute. */
	put_file(&f, "token", "two", 0600);
	clock_virtual_advance(59 * NS_PER_S);
	CHECK_STR(token_now(c, &f), "Bearer one");
	clock_virtual_advance(2 * NS_PER_S);
	CHECK_STR(token_now(c, &f), "Bearer two");
	/* One that is missing for a moment does not matter. */
	CHECK_INT(unlink(in_folder(&f, "token")), 0);
	clock_virtual_advance(61 * NS_PER_S);
	CHECK_STR(token_now(c, &f), "Bearer two");
	/* Refused: looked at now. */
	CHECK_INT(credentials_get(c, &now, NULL), 0);
	CHECK(!credentials_refused(c, now.number));
	put_file(&f, "token", "three", 0600);
	CHECK(credentials_refused(c, now.number));
	CHECK_STR(token_now(c, &f), "Bearer three");
	/* Somebody else has noticed before. */
	CHECK(credentials_refused(c, now.number));
	credentials_free(c);
	clock_virtual_off();
	log_set_level(LOG_LEVEL_INFO);
	folder_done(&f);
}

/* ---- programs ---- */

struct plugin {
	struct folder folder;
	struct client_config config;
	struct credentials *c;
};

/* A program that counts its runs in the file n and then runs the text of a shell. */
static void plugin_init(struct plugin *p, const char *script, struct val more)
{
	*p = (struct plugin){ 0 };
	folder_init(&p->folder);
	struct arena *a = &p->folder.arena;
	const char *path = put_file(&p->folder, "plugin", arena_printf(a, "#!/bin/sh\ncd %s\necho >> n\n%s\n",
			  p->folder.path, script).p, 0700);
	struct val exec = OBJECT(a, F(command, val_of_str(str_of(path))), F(apiVersion, VAL_LIT(V1)),
			  F(interactiveMode, VAL_LIT("Never")));
	VAL_EACH_MEMBER(m, more)
		exec = val_put(a, exec, m->key, m->val);
	p->config.exec = exec;
	p->config.exec_cluster = OBJECT(a, F(server, VAL_LIT("https://s")), F(config, OBJECT(a, F(name, VAL_LIT("x")))));
	CHECK_INT(credentials_new(&p->config, &p->c, NULL), 0);
}

static size_t plugin_runs(struct plugin *p)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1000);
	return file_read(in_folder(&p->folder, "n"), &b, NULL) < 0 ? 0 : b.n;
}

static void plugin_done(struct plugin *p)
{
	credentials_free(p->c);
	folder_done(&p->folder);
}

#define SAYS(status) "echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\",\"status\":" status "}'"

FIBER_TEST(credentials_of_a_program)
{
	struct plugin p;
	struct credential now;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	plugin_init(&p, "printf '%s' \"$KUBERNETES_EXEC_INFO\" > info; printf '%s' \"$1 $X $HOME\" > said; "
			  "" SAYS("{\"token\":\"t'$(wc -l < n)'\"}"),
		    OBJECT(&a, F(args, LIST(&a, VAL_LIT("arg"))), F(env, LIST(&a, OBJECT(&a, F(name, VAL_LIT("X")),
		    F(value, VAL_LIT("y"))), OBJECT(&a, F(name, VAL_LIT("HOME")), F(value, VAL_LIT("h"))))),
			   F(provideClusterInfo, val_of_bool(true))));
	CHECK_STR(token_now(p.c, &p.folder), "Bearer t1");
	CHECK_STR(token_now(p.c, &p.folder), "Bearer t1");
	CHECK_INT((int)plugin_runs(&p), 1);
	CLEANUP(buf_done) struct buf b = BUF_INIT(10000);
	CHECK_INT(file_read(in_folder(&p.folder, "info"), &b, NULL), 0);
	CHECK_STR(buf_str(&b),
			  "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\","
			  "\"spec\":{\"cluster\":{\"server\":\"https://s\",\"config\":{\"name\":\"x\"}},"
			  "\"interactive\":false}}");
	buf_reset(&b);
	CHECK_INT(file_read(in_folder(&p.folder, "said"), &b, NULL), 0);
	CHECK_STR(buf_str(&b), "arg y h");
	/* Refused: asked again. */
	CHECK_INT(credentials_get(p.c, &now, NULL), 0);
	CHECK(credentials_refused(p.c, now.number));
	CHECK(credentials_refused(p.c, now.number));
	CHECK_INT((int)plugin_runs(&p), 2);
	CHECK_STR(token_now(p.c, &p.folder), "Bearer t2");
	plugin_done(&p);
	/* It says the same: there is no use in asking the server again. */
	plugin_init(&p, SAYS("{\"token\":\"t\"}"), VAL_EMPTY);
	CHECK_INT(credentials_get(p.c, &now, NULL), 0);
	CHECK(!credentials_refused(p.c, now.number));
	CHECK_INT((int)plugin_runs(&p), 2);
	plugin_done(&p);
	/* What has expired is asked for again, each time; what has not is not; certificates. */
	plugin_init(&p, SAYS("{\"token\":\"t\",\"expirationTimestamp\":\"2001-01-01T00:00:00Z\"}"), VAL_EMPTY);
	CHECK_STR(token_now(p.c, &p.folder), "Bearer t");
	CHECK_STR(token_now(p.c, &p.folder), "Bearer t");
	CHECK_INT((int)plugin_runs(&p), 2);
	plugin_done(&p);
	plugin_init(&p, SAYS("{\"clientCertificateData\":\"C\",\"clientKeyData\":\"K'$(wc -l < n)'\","
			  "\"expirationTimestamp\":\"9999-01-01T00:00:00Z\"}"), VAL_EMPTY);
	CHECK_INT(credentials_get(p.c, &now, NULL), 0);
	CHECK_STR(str_of(now.cert), "C");
	CHECK_STR(str_of(now.key), "K1");
	CHECK_STR(now.authorization, "");
	unsigned number = now.cert_number;
	CHECK(credentials_refused(p.c, now.number));
	CHECK_INT(credentials_get(p.c, &now, NULL), 0);
	CHECK_STR(str_of(now.key), "K2");
	CHECK(now.cert_number != number);
	CHECK_INT((int)plugin_runs(&p), 2);
	plugin_done(&p);
}

FIBER_TEST(credentials_of_a_program_that_fails)
{
	static const struct {
		const char *script, *want;
	} t[] = {
		{ "exit 3", "401: getting credentials: exec: executable DIR/plugin failed with exit code 3" },
		{ "kill -9 $$", "401: getting credentials: exec: executable DIR/plugin failed with exit code -1" },
		{ "echo '{'", "401: getting credentials: decoding stdout: " },
		{ "echo x: y", "401: getting credentials: decoding stdout: no kind \"\" is registered for version \"\"" },
		{ "echo 'kind: ExecCredential'; echo 'apiVersion: " V1 "'; echo 'status: {token: yaml}'", "Bearer yaml" },
		{ "echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "beta1\"}'",
		  "401: getting credentials: exec plugin is configured to use API version " V1 ", plugin returned version " V1 "beta1" },
		{ "echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\"}'",
		  "401: getting credentials: exec plugin didn't return a status field" },
		{ SAYS("{\"token\":\"\"}"), "401: getting credentials: exec plugin didn't return a token or cert/key pair" },
		{ SAYS("{\"clientKeyData\":\"K\"}"), "401: getting credentials: exec plugin returned only certificate or key, not both" },
		{ "head -c 5000000 /dev/zero", "401: getting credentials: exec: DIR/plugin prints more than 4194304 bytes" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct plugin p;
		plugin_init(&p, t[i].script, VAL_EMPTY);
		str got = token_now(p.c, &p.folder);
		CHECK_STR_ROW(i, str_ends(str_of(t[i].want), STR(": ")) ? str_head(got, strlen(t[i].want)) : got, t[i].want);
		plugin_done(&p);
	}
}

FIBER_TEST(credentials_of_a_program_that_is_not_there)
{
	struct plugin p;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	plugin_init(&p, "", OBJECT(&a, F(command, VAL_LIT("c8s-no-such-program")), F(installHint, VAL_LIT("Buy it."))));
	CHECK_STR(token_now(p.c, &p.folder),
		  "401: getting credentials: exec: executable c8s-no-such-program not found\n\nIt looks like you are "
		  "trying to use a client-go credential plugin "
		  "that is not installed.\n\nTo learn more about this feature, consult the documentation available at:\n      "
		  "https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins\n\nBuy it.");
	/* Not in every line of a log. */
	for (int i = 0; i < 9; i++)
		CHECK(str_ends(token_now(p.c, &p.folder), STR("Buy it.")));
	CHECK_STR(token_now(p.c, &p.folder), "401: getting credentials: exec: executable c8s-no-such-program not found");
	plugin_done(&p);
	plugin_init(&p, "", OBJECT(&a, F(command, VAL_LIT("/no/such/program"))));
	CHECK_STR(token_now(p.c, &p.folder), "401: getting credentials: exec: fork/exec /no/such/program: no such file or directory");
	plugin_done(&p);
	/* It must talk to a user, and there is none. */
	plugin_init(&p, "", OBJECT(&a, F(interactiveMode, VAL_LIT("Always"))));
	if (!isatty(STDIN_FILENO))
		CHECK_STR(token_now(p.c, &p.folder),
				  "401: getting credentials: exec plugin cannot support interactive mode: standard "
				  "input is not a terminal");
	plugin_done(&p);
	struct credentials *c = NULL;
	struct err err = ERR_INIT;
	struct client_config config = { .exec = OBJECT(&a, F(apiVersion, VAL_LIT("client.authentication.k8s.io/v1alpha1"))) };
	CHECK_INT(credentials_new(&config, &c, &err), -ERR_INVALID);
	CHECK_STR(err_str(&err), "exec plugin: invalid apiVersion \"client.authentication.k8s.io/v1alpha1\"");
}

static int ask(void *arg)
{
	struct credential now;
	return credentials_get(arg, &now, NULL);
}

FIBER_TEST(credentials_of_a_slow_program)
{
	struct plugin p;
	/* All who want to know wait for one that runs. */
	plugin_init(&p, "sleep 0.1; " SAYS("{\"token\":\"t\"}"), VAL_EMPTY);
	struct fiber *one = start(ask, p.c), *two = start(ask, p.c);
	CHECK_INT(join(one), 0);
	CHECK_INT(join(two), 0);
	CHECK_INT((int)plugin_runs(&p), 1);
	plugin_done(&p);
	/* Who does not want to wait any longer ends it; the next begins anew. */
	plugin_init(&p, "exec sleep 100", VAL_EMPTY);
	{
		DEADLINE_SCOPE(50);
		CHECK_INT(ask(p.c), -ERR_TIMEOUT);
	}
	one = start(ask, p.c);
	CHECK_INT(fiber_sleep_ms(20, NULL), 0);
	CHECK_INT(fiber_stop(one), -ERR_CANCELED);
	plugin_done(&p);
}

FIBER_TEST(client_asks_the_program_again_when_refused)
{
	struct plugin p;
	struct script s;
	struct err err = ERR_INIT;
	plugin_init(&p, SAYS("{\"token\":\"t'$(wc -l < n)'\"}"), VAL_EMPTY);
	script_init(&s);
	struct client *c = script_client(&s, (struct client_config){ .exec = p.config.exec });
	script_add_json(&s, 401, "", "{}");
	script_add_json(&s, 200, "", "{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}");
	CHECK_INT(client_get(c, TYPE(core_v1, Pod), STR("ns"), STR("web"), NULL, &err), 0);
	CHECK_STR(script_header(&s, 0, "Authorization"), "Bearer t1");
	CHECK_STR(script_header(&s, 1, "Authorization"), "Bearer t2");
	/* But not for ever. */
	script_reset(&s);
	for (int i = 0; i < 5; i++)
		script_add_json(&s, 401, "", "{}");
	CHECK_INT(client_get(c, TYPE(core_v1, Pod), STR("ns"), STR("web"), NULL, &err), -ERR_UNAUTHORIZED);
	CHECK_INT((int)s.n_seen, 2);
	client_free(c);
	script_done(&s);
	plugin_done(&p);
}
