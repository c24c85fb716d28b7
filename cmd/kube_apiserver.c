/*
 * c8s kube-apiserver: the API server alone, with the flags of Kubernetes'. What no flag names is made in --data-dir: keys,
 * certificates, the store. SIGTERM and SIGINT stop it in good order; a second one ends it at once.
 */
#include "cmd/kube_apiserver.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "apiserver/pki.h"
#include "base/fiber.h"
#include "base/fiber_io.h"
#include "base/file.h"
#include "base/log.h"
#include "base/loop.h"

enum { HOST_NAME_MAX_BYTES = 256, VERBOSE_DEBUG = 4 };

/* One run of the command. */
struct running {
	struct kube_apiserver server;
	struct pki_options pki;
	int lock_fd, signal_fd;
	struct fiber *main_fiber, *renewing;
};

/* ---- the data directory ---- */

static int open_data_dir(struct running *run, const char *dir, struct err *err)
{
	const char *path = arena_printf(run->server.arena, "%s/kube-apiserver.lock", dir).p;
	int r = file_make_dirs(dir, 0755, err);

	if (r == 0) {
		run->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		r = run->lock_fd < 0 ? err_sys(err, errno, "%s", path) : 0;
	}
	if (r < 0 && (err->sys == EACCES || err->sys == EROFS || err->sys == EPERM))
		return err_set(err, ERR_SYSTEM, "the data directory %s cannot be written (%s); run as another user, or give another one with "
			       "--data-dir", dir, strerror(err->sys));
	if (r < 0)
		return err_wrap(err, r, "the data directory cannot be used");
	if (flock(run->lock_fd, LOCK_EX | LOCK_NB) < 0) {
		char pid[24] = "";
		ssize_t n = pread(run->lock_fd, pid, sizeof(pid) - 1, 0);
		return err_set(err, ERR_SYSTEM, "the data directory %s is in use by another c8s kube-apiserver%s%s; stop it, or give another one "
			       "with --data-dir", dir, n > 0 ? ", process " : "", pid);
	}
	if (ftruncate(run->lock_fd, 0) < 0 || dprintf(run->lock_fd, "%d", (int)getpid()) < 0)
		return err_sys(err, errno, "%s", path);
	return 0;
}

/* ---- what no flag names ---- */

static const char *host_name(struct arena *a)
{
	char name[HOST_NAME_MAX_BYTES] = "";

	if (gethostname(name, sizeof(name) - 1) < 0 || !name[0])
		return "localhost";
	for (char *p = name; *p; p++)
		if (*p >= 'A' && *p <= 'Z')
			*p = (char)(*p + 'a' - 'A');
	return arena_str(a, str_of(name)).p;
}

static void name_serving_certificate(struct running *run)
{
	struct kube_apiserver *k = &run->server;
	const char *external = k->flags.external_hostname, *bind = k->options.bind_address;
	const char *names[] = { "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "localhost",
				host_name(k->arena), external && external[0] ? external : NULL, NULL };
	bool any = strcmp(bind, "0.0.0.0") == 0 || strcmp(bind, "::") == 0;
	const char *addresses[] = { "127.0.0.1", "::1", k->options.advertise_address, k->service_ip, any ? NULL : bind, NULL };
	const char **kept_names = ARENA_ARRAY(k->arena, const char *, ARRAY_LEN(names));
	const char **kept_addresses = ARENA_ARRAY(k->arena, const char *, ARRAY_LEN(addresses));

	memcpy(kept_names, names, sizeof(names));
	memcpy(kept_addresses, addresses, sizeof(addresses));
	run->pki.names = (const char *const *)kept_names;
	run->pki.addresses = (const char *const *)kept_addresses;
}

/* Which keys and certificates have to be there, and the options that then name them. */
static void name_made_files(struct running *run)
{
	static const char *const proxy_names[] = { "front-proxy-client", NULL }, *const user_headers[] = { "X-Remote-User", NULL },
		*const uid_headers[] = { "X-Remote-Uid", NULL }, *const group_headers[] = { "X-Remote-Group", NULL },
		*const extra_headers[] = { "X-Remote-Extra-", NULL };
	struct apiserver_options *o = &run->server.options;
	struct arena *a = run->server.arena;
	const char *dir = run->server.flags.data_dir;
	bool own_clients = !o->client_ca_file;

	if (!o->cert_file) {
		run->pki.needs |= PKI_SERVING;
		o->cert_file = pki_path(a, dir, "apiserver.crt");
		o->key_file = pki_path(a, dir, "apiserver.key");
	}
	if (own_clients) {
		run->pki.needs |= PKI_CLIENTS;
		o->client_ca_file = pki_path(a, dir, "ca.crt");
	}
	if (own_clients && !o->kubelet_client_cert) {
		o->kubelet_client_cert = pki_path(a, dir, "apiserver-kubelet-client.crt");
		o->kubelet_client_key = pki_path(a, dir, "apiserver-kubelet-client.key");
	}
	if (own_clients && !o->authn.requestheader_client_ca_file) {
		run->pki.needs |= PKI_FRONT_PROXY;
		o->authn.requestheader_client_ca_file = pki_path(a, dir, "front-proxy-ca.crt");
		o->authn.requestheader_allowed_names = proxy_names;
		o->authn.requestheader_username_headers = user_headers;
		o->authn.requestheader_uid_headers = uid_headers;
		o->authn.requestheader_group_headers = group_headers;
		o->authn.requestheader_extra_headers_prefix = extra_headers;
	}
	if (!o->authn.service_account_signing_key_file) {
		run->pki.needs |= PKI_SERVICE_ACCOUNTS;
		o->authn.service_account_signing_key_file = pki_path(a, dir, "sa.key");
	}
	if (!o->store.endpoints)
		o->store.path = arena_printf(a, "%s/state.db", dir).p;
}

static int prepare(struct running *run, struct err *err)
{
	const char *dir = run->server.flags.data_dir;
	int r;

	name_made_files(run);
	name_serving_certificate(run);
	run->pki.dir = dir;
	if (!run->pki.needs && run->server.options.store.endpoints)
		return 0;
	if ((r = open_data_dir(run, dir, err)) < 0)
		return r;
	r = pki_ensure(&run->pki, err);
	return r < 0 ? err_wrap(err, r, "keys and certificates") : 0;
}

/* ---- running ---- */

static int renew(void *arg)
{
	struct running *run = arg;
	return pki_renew_run(&run->pki, NULL);
}

/* "127.0.0.1:6443": where a client on this machine finds the server. */
static const char *local_server(struct running *run, uint16_t port)
{
	const char *bind = run->server.options.bind_address;

	if (strcmp(bind, "0.0.0.0") == 0)
		bind = "127.0.0.1";
	else if (strcmp(bind, "::") == 0)
		bind = "::1";
	return arena_printf(run->server.arena, strchr(bind, ':') ? "https://[%s]:%u" : "https://%s:%u", bind, port).p;
}

/* admin.conf can be written only now: the port may have been chosen by the kernel. */
static void ready(struct apiserver *s, void *arg)
{
	struct running *run = arg;
	struct err err = ERR_INIT;
	unsigned both = PKI_SERVING | PKI_CLIENTS;

	run->pki.server = local_server(run, s->port);
	printf("c8s kube-apiserver: ready at %s", run->pki.server);
	if ((run->pki.needs & both) == both) {
		run->pki.needs |= PKI_ADMIN_CONF;
		if (pki_ensure(&run->pki, &err) < 0)
			log_error("admin.conf could not be written", KV("err", &err));
		else
			printf("; use it with: kubectl --kubeconfig %s get namespaces", pki_admin_conf(run->server.arena, run->pki.dir));
	}
	printf("\n");
	fflush(stdout);
	if (run->pki.needs && fiber_spawn(renew, run, &run->renewing, &err, "renewal of certificates") < 0)
		log_error("certificates will not be renewed", KV("err", &err));
}

/* The first signal stops the server; from then on the default action is in place, and the next one ends the process. */
static int listen_to_signals(void *arg)
{
	struct running *run = arg;
	struct signalfd_siginfo info;
	sigset_t set;

	if (fiber_read(run->signal_fd, &info, sizeof(info), NULL) <= 0)
		return 0;
	log_info("stopping", KV("signal", strsignal((int)info.ssi_signo)));
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	fiber_cancel(run->main_fiber);
	return 0;
}

struct main_call {
	struct running *run;
	struct err *err;
};

static int run_server(void *arg)
{
	struct main_call *call = arg;
	struct running *run = call->run;
	CLEANUP(fiber_stopp) struct fiber *signals = NULL;

	run->main_fiber = fiber_self();
	int r = fiber_spawn(listen_to_signals, run, &signals, call->err, "signals");
	if (r < 0)
		return r;
	r = apiserver_run(&run->server.options, ready, run, call->err);
	if (run->renewing)
		fiber_stop(TAKE(run->renewing));
	return r == -ERR_CANCELED ? 0 : r;
}

static int open_signals(struct running *run, struct err *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return err_sys(err, errno, "sigprocmask");
	run->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	return run->signal_fd < 0 ? err_sys(err, errno, "signalfd") : 0;
}

static int serve(struct running *run, struct err *err)
{
	CLEANUP(loop_freep) struct loop *loop = NULL;
	struct main_call call = { run, err };
	int r;

	if ((r = prepare(run, err)) < 0 || (r = open_signals(run, err)) < 0 || (r = loop_new("apiserver", &loop, err)) < 0 ||
	    (r = loop_dump_on_sigusr2(loop, err)) < 0)
		return r;
	r = loop_run(loop, run_server, &call, err);
	if (r < 0 && err->sys == EADDRINUSE)
		return err_set(err, ERR_SYSTEM, "port %u of %s is taken by another program; stop it, or choose another port with --secure-port",
			       run->server.options.secure_port, run->server.options.bind_address);
	return r;
}

/* ---- the command ---- */

static int set_logging(const struct kube_apiserver_flags *f, struct err *err)
{
	if (strcmp(f->logging_format, "json") == 0)
		log_set_format(LOG_FORMAT_JSON);
	else if (strcmp(f->logging_format, "text") != 0)
		return err_set(err, ERR_BAD_REQUEST, "--logging-format: unsupported log format '%s'; give text or json", f->logging_format);
	if (f->verbosity >= VERBOSE_DEBUG)
		log_set_level(LOG_LEVEL_DEBUG);
	return 0;
}

static int run_command(int argc, char **argv)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf later = BUF_INIT(4096);
	struct running run = { .server.arena = &a, .lock_fd = -1, .signal_fd = -1 };
	struct err err = ERR_INIT;
	int r = flags_parse(&cmd_kube_apiserver, argc, argv, kube_apiserver_flags, &run.server.flags, &a, &later);

	if (r != 0)
		return r;
	if (run.server.flags.version) {
		printf("Kubernetes %s\n", KUBERNETES_VERSION);
		return 0;
	}
	if (set_logging(&run.server.flags, &err) < 0 || kube_apiserver_complete(&run.server, &err) < 0)
		return cmd_usage(&cmd_kube_apiserver, "%s", err.msg);
	if (later.n)
		log_warn("flags are accepted, but have no effect yet", KV("flags", buf_str(&later)));
	r = serve(&run, &err);
	runtime_config_free(run.server.runtime_config);
	if (run.signal_fd >= 0)
		close(run.signal_fd);
	if (run.lock_fd >= 0)
		close(run.lock_fd);
	return r < 0 ? cmd_fail(&cmd_kube_apiserver, &err) : 0;
}

static void help(void)
{
	flags_help(kube_apiserver_flags);
}

const struct command cmd_kube_apiserver = {
	.name = "kube-apiserver",
	.summary = "the API server",
	.manual =
		"Usage: c8s kube-apiserver [--data-dir DIR] [FLAGS]\n"
		"\n"
		"Serves the Kubernetes API. With no flags at all it makes what it needs in DIR: keys and certificates in DIR/pki, a\n"
		"kubeconfig for the administrator in DIR/admin.conf, and the store in DIR/state.db. Flags have the names and the\n"
		"meaning that they have in Kubernetes, and win over what is made. Called as kube-apiserver the program does the same.\n"
		"\n"
		"SIGTERM and SIGINT stop it in good order, a second one at once; SIGUSR2 shows what it is doing.\n"
		"\n"
		"Exit code: 0 stopped by a signal, 1 it could not go on, 2 wrong usage.\n"
		"\n"
		"Example:\n"
		"  c8s kube-apiserver --data-dir ~/cluster --secure-port 6443\n"
		"  kubectl --kubeconfig ~/cluster/admin.conf get namespaces\n",
	.help = help,
	.run = run_command,
};
