/*
 * Programs that tell credentials: they find what is wanted in KUBERNETES_EXEC_INFO and print an ExecCredential. Those that
 * may talk to their user get our standard input; what they have to say to him goes to our standard error.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fiber_io.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/process.h"
#include "client/credentials.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"

enum { OUTPUT_MAX = 4 << 20 };

extern char **environ;

static const str versions[] = {
	STR_INIT("client.authentication.k8s.io/v1"), STR_INIT("client.authentication.k8s.io/v1beta1"),
};

void exec_credential_done(struct exec_credential *e)
{
	free(TAKE(e->token));
	free(TAKE(e->cert));
	free(TAKE(e->key));
}

int exec_plugin_check(struct val config, struct err *err)
{
	str version = val_str(config, apiVersion);
	for (size_t i = 0; i < ARRAY_LEN(versions); i++)
		if (str_eq(version, versions[i]))
			return 0;
	return err_set(err, ERR_INVALID, "exec plugin: invalid apiVersion \"" STR_FMT "\"", STR_ARG(str_head(version, 200)));
}

static int is_interactive(struct val config, bool *ret, struct err *err)
{
	str mode = val_str(config, interactiveMode);
	bool terminal = isatty(STDIN_FILENO) == 1;
	*ret = terminal && !str_eq(mode, STR("Never"));
	if (str_eq(mode, STR("Never")) || str_eq(mode, STR("IfAvailable")))
		return 0;
	if (!str_eq(mode, STR("Always")))
		return err_set(err, ERR_UNAUTHORIZED, "exec plugin cannot support interactive mode: unknown interactiveMode: \"" STR_FMT "\"",
			       STR_ARG(str_head(mode, 100)));
	if (!terminal)
		return err_set(err, ERR_UNAUTHORIZED, "exec plugin cannot support interactive mode: standard input is not a terminal");
	return 0;
}

/* ---- what it is told ---- */

static int add_info(struct arena *a, struct val config, struct val cluster, bool interactive, const char **ret, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(OUTPUT_MAX);
	struct val spec = OBJECT(a, F(cluster, val_bool(config, provideClusterInfo) ? cluster : VAL_EMPTY),
				 F(interactive, val_of_bool(interactive)));
	struct val info = OBJECT(a, F(kind, VAL_LIT("ExecCredential")), F(apiVersion, val_get(config, apiVersion)), F(spec, spec));
	buf_add(&b, STR("KUBERNETES_EXEC_INFO="));
	int r = json_encode(&b, info, &(struct json_encode_options){ .type = TYPE(clientauthentication_v1, ExecCredential) }, err);
	*ret = arena_str(a, buf_str(&b)).p;
	return r < 0 ? err_wrap(err, r, "encode ExecCredentials") : 0;
}

/* Later ones win, as in Go: so those of the same name are left out. */
static bool is_replaced(const char *old, const char *const *later, size_t n)
{
	const char *equals = strchr(old, '=');
	size_t name = equals ? (size_t)(equals - old) + 1 : 0;
	for (size_t i = 0; name && i < n; i++)
		if (strncmp(old, later[i], name) == 0)
			return true;
	return false;
}

static const char *const *make_environment(struct arena *a, struct val config, const char *info)
{
	size_t n_old = 0, n = 0, n_new = val_len(val_get(config, env)) + 1;
	while (environ && environ[n_old])
		n_old++;
	const char **env = ARENA_ARRAY(a, const char *, n_old + n_new + 1), **later = ARENA_ARRAY(a, const char *, n_new);
	VAL_EACH(e, val_get(config, env))
		later[n++] = arena_printf(a, STR_FMT "=" STR_FMT, STR_ARG(val_str(*e, name)), STR_ARG(val_str(*e, value))).p;
	later[n++] = info;
	size_t at = 0;
	for (size_t i = 0; i < n_old; i++)
		if (!is_replaced(environ[i], later, n))
			env[at++] = environ[i];
	for (size_t i = 0; i < n; i++)
		if (!is_replaced(later[i], later + i + 1, n - i - 1))
			env[at++] = later[i];
	env[at] = NULL;
	return env;
}

static const char *const *make_arguments(struct arena *a, struct val config)
{
	size_t n = 0;
	const char **argv = ARENA_ARRAY(a, const char *, (size_t)val_len(val_get(config, args)) + 2);
	argv[n++] = arena_str(a, val_str(config, command)).p;
	VAL_EACH(arg, val_get(config, args))
		argv[n++] = arena_str(a, val_as_str(*arg)).p;
	argv[n] = NULL;
	return argv;
}

/* ---- running ---- */

static const char help[] =
	"\n\nIt looks like you are trying to use a client-go credential plugin that is not installed."
	"\n\nTo learn more about this feature, consult the documentation available at:"
	"\n      https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins";

/* As client-go tells one that is not in PATH from one that a path names. */
static int fail_to_start(struct val config, bool hint, struct err *err)
{
	str command = val_str(config, command), text = hint ? val_str(config, installHint) : STR_NONE;
	int sys = err ? err->sys : 0;
	if (str_chr(command, '/') >= 0)
		return err_set(err, ERR_UNAUTHORIZED, "exec: fork/exec " STR_FMT ": %s", STR_ARG(command),
			       sys == ENOENT ? "no such file or directory" : sys == EACCES ? "permission denied" : "cannot be run");
	return err_set(err, ERR_UNAUTHORIZED, "exec: executable " STR_FMT " not found%s%s" STR_FMT, STR_ARG(command), hint ? help : "",
		       text.n ? "\n\n" : "", STR_ARG(text));
}

/* (suspends) All that it prints, until it has ended. */
static int collect(struct process *p, int fd, str command, struct buf *out, struct err *err)
{
	struct process_status status;
	for (;;) {
		char *room = buf_reserve(out, 4096);
		if (!room)
			return err_set(err, ERR_UNAUTHORIZED, "exec: " STR_FMT " prints more than %d bytes", STR_ARG(command), OUTPUT_MAX);
		ssize_t n = fiber_read(fd, room, 4096, err);
		if (n < 0)
			return (int)n;
		if (n == 0)
			break;
		buf_commit(out, (size_t)n);
	}
	int r = process_wait(p, &status, err);
	if (r < 0)
		return r;
	if (status.signal || status.exit_code)
		return err_set(err, ERR_UNAUTHORIZED, "exec: executable " STR_FMT " failed with exit code %d", STR_ARG(command),
			       status.signal ? -1 : status.exit_code);
	return 0;
}

/* (suspends) */
static int run(struct arena *a, struct val config, const char *info, bool interactive, bool hint, struct buf *out, struct err *err)
{
	int pipe_fds[2];
	struct err why = ERR_INIT;
	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return err_sys(err, errno, "make a pipe");
	CLEANUP(fd_closep) int from = pipe_fds[0];
	CLEANUP(fd_closep) int to = pipe_fds[1];
	/* Only ours: the program's end is an open file of its own. */
	if (fcntl(from, F_SETFL, O_NONBLOCK) < 0)
		return err_sys(err, errno, "make a pipe");
	CLEANUP(process_freep) struct process *p = NULL;
	const struct process_spec spec = {
		.argv = make_arguments(a, config), .env = make_environment(a, config, info),
		.fds = { interactive ? STDIN_FILENO : -1, to, STDERR_FILENO }, .n_fds = 3,
	};
	if (process_spawn(&spec, &p, &why) < 0) {
		if (err)
			*err = why;
		return fail_to_start(config, hint, err);
	}
	(void)close(to);
	to = -1;
	return collect(p, from, val_str(config, command), out, err);
}

/* ---- what it says ---- */

static char *copy(str s) { return s.n ? strndup(s.p, s.n) : NULL; }

static int decode(struct arena *a, str text, struct val *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(8 * OUTPUT_MAX);
	struct json_decode_options o = { .type = TYPE(clientauthentication_v1, ExecCredential) };
	int r = 0;
	if (!str_starts(str_trim(text), STR("{")) && (r = yaml_to_json(text, &json, NULL, err)) == 0)
		text = arena_str(a, buf_str(&json));
	if (r == 0)
		r = json_decode(a, text, &o, ret, err);
	if (r == 0 && !str_eq(val_str(*ret, kind), STR("ExecCredential")))
		r = err_set(err, ERR_UNAUTHORIZED, "no kind \"" STR_FMT "\" is registered for version \"" STR_FMT "\"",
			    STR_ARG(str_head(val_str(*ret, kind), 100)), STR_ARG(str_head(val_str(*ret, apiVersion), 100)));
	return r < 0 ? err_wrap(err, credentials_fail(err), "decoding stdout") : 0;
}

static int take(struct val said, struct exec_credential *ret, struct err *err)
{
	struct val status = val_get(said, status);
	str token = val_str(status, token), cert = val_str(status, clientCertificateData), key = val_str(status, clientKeyData);
	struct timestamp t;
	if (!val_exists(status))
		return err_set(err, ERR_UNAUTHORIZED, "exec plugin didn't return a status field");
	if (!token.n && !cert.n && !key.n)
		return err_set(err, ERR_UNAUTHORIZED, "exec plugin didn't return a token or cert/key pair");
	if (!cert.n != !key.n)
		return err_set(err, ERR_UNAUTHORIZED, "exec plugin returned only certificate or key, not both");
	bool expires = val_str(status, expirationTimestamp).n && time_parse(val_str(status, expirationTimestamp), &t, NULL) == 0;
	/* What lies beyond what the clock can count is as good as never. */
	expires = expires && t.seconds < INT64_MAX / NS_PER_S - 1;
	*ret = (struct exec_credential){ .token = copy(token), .cert = copy(cert), .key = copy(key), .expires_ns = INT64_MAX };
	if (expires)
		ret->expires_ns = t.seconds > 0 ? t.seconds * NS_PER_S + t.nanos : 0;
	return 0;
}

int exec_plugin_run(struct val config, struct val cluster, bool hint, struct exec_credential *ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf out = BUF_INIT(OUTPUT_MAX);
	const char *info;
	bool interactive;
	struct val said;
	int r;
	if ((r = is_interactive(config, &interactive, err)) < 0 || (r = add_info(&a, config, cluster, interactive, &info, err)) < 0 ||
	    (r = run(&a, config, info, interactive, hint, &out, err)) < 0 || (r = decode(&a, buf_str(&out), &said, err)) < 0)
		return r;
	if (!str_eq(val_str(said, apiVersion), val_str(config, apiVersion)))
		return err_set(err, ERR_UNAUTHORIZED, "exec plugin is configured to use API version " STR_FMT
			       ", plugin returned version " STR_FMT, STR_ARG(val_str(config, apiVersion)),
			       STR_ARG(str_head(val_str(said, apiVersion), 100)));
	return take(said, ret, err);
}
