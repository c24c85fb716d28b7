/*
 * One run of the API server. What no flag names is made in --data-dir first: keys, certificates, the store.
 */
#include "cmd/kube_apiserver.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/fiber.h"
#include "base/file.h"
#include "base/log.h"

enum { HOST_NAME_MAX_BYTES = 256 };

/* ---- the data directory ---- */

static int open_data_dir(struct kube_apiserver *k, const char *dir, struct err *err)
{
	const char *path = arena_printf(k->arena, "%s/kube-apiserver.lock", dir).p;
	int r = file_make_dirs(dir, 0755, err);

	if (r == 0) {
		k->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		r = k->lock_fd < 0 ? err_sys(err, errno, "%s", path) : 0;
	}
	if (r < 0 && (err->sys == EACCES || err->sys == EROFS || err->sys == EPERM))
		return err_set(err, ERR_SYSTEM, "the data directory %s cannot be written (%s); run as another user, or give another one with "
			       "--data-dir", dir, strerror(err->sys));
	if (r < 0)
		return err_wrap(err, r, "the data directory cannot be used");
	if (flock(k->lock_fd, LOCK_EX | LOCK_NB) < 0) {
		char pid[24] = "";
		ssize_t n = pread(k->lock_fd, pid, sizeof(pid) - 1, 0);
		return err_set(err, ERR_SYSTEM, "the data directory %s is in use by another c8s kube-apiserver%s%s; stop it, or give another one "
			       "with --data-dir", dir, n > 0 ? ", process " : "", pid);
	}
	if (ftruncate(k->lock_fd, 0) < 0 || dprintf(k->lock_fd, "%d", (int)getpid()) < 0)
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

static void name_serving_certificate(struct kube_apiserver *k)
{
	const char *external = k->flags.external_hostname, *bind = k->options.bind_address;
	const char *names[] = { "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "localhost",
				host_name(k->arena), external && external[0] ? external : NULL, NULL };
	bool any = strcmp(bind, "0.0.0.0") == 0 || strcmp(bind, "::") == 0;
	const char *addresses[] = { "127.0.0.1", "::1", k->options.advertise_address, k->service_ip, any ? NULL : bind, NULL };
	const char **kept_names = ARENA_ARRAY(k->arena, const char *, ARRAY_LEN(names));
	const char **kept_addresses = ARENA_ARRAY(k->arena, const char *, ARRAY_LEN(addresses));

	memcpy(kept_names, names, sizeof(names));
	memcpy(kept_addresses, addresses, sizeof(addresses));
	k->pki.names = (const char *const *)kept_names;
	k->pki.addresses = (const char *const *)kept_addresses;
}

/* Which keys and certificates have to be there, and the options that then name them. */
static void name_made_files(struct kube_apiserver *k)
{
	static const char *const proxy_names[] = { "front-proxy-client", NULL }, *const user_headers[] = { "X-Remote-User", NULL },
		*const uid_headers[] = { "X-Remote-Uid", NULL }, *const group_headers[] = { "X-Remote-Group", NULL },
		*const extra_headers[] = { "X-Remote-Extra-", NULL };
	struct apiserver_options *o = &k->options;
	struct arena *a = k->arena;
	const char *dir = k->flags.data_dir;
	bool own_clients = !o->client_ca_file;

	if (!o->cert_file) {
		k->pki.needs |= PKI_SERVING;
		o->cert_file = pki_path(a, dir, "apiserver.crt");
		o->key_file = pki_path(a, dir, "apiserver.key");
	}
	if (own_clients) {
		k->pki.needs |= PKI_CLIENTS;
		o->client_ca_file = pki_path(a, dir, "ca.crt");
	}
	if (own_clients && !o->kubelet_client_cert) {
		o->kubelet_client_cert = pki_path(a, dir, "apiserver-kubelet-client.crt");
		o->kubelet_client_key = pki_path(a, dir, "apiserver-kubelet-client.key");
	}
	if (own_clients && !o->authn.requestheader_client_ca_file) {
		k->pki.needs |= PKI_FRONT_PROXY;
		o->authn.requestheader_client_ca_file = pki_path(a, dir, "front-proxy-ca.crt");
		o->authn.requestheader_allowed_names = proxy_names;
		o->authn.requestheader_username_headers = user_headers;
		o->authn.requestheader_uid_headers = uid_headers;
		o->authn.requestheader_group_headers = group_headers;
		o->authn.requestheader_extra_headers_prefix = extra_headers;
	}
	if (!o->authn.service_account_signing_key_file) {
		k->pki.needs |= PKI_SERVICE_ACCOUNTS;
		o->authn.service_account_signing_key_file = pki_path(a, dir, "sa.key");
	}
	if (!o->store.endpoints)
		o->store.path = arena_printf(a, "%s/state.db", dir).p;
}

/* "127.0.0.1:6443": where a client on this machine finds the server. */
static const char *local_server(struct kube_apiserver *k, uint16_t port)
{
	const char *bind = k->options.bind_address;

	if (strcmp(bind, "0.0.0.0") == 0)
		bind = "127.0.0.1";
	else if (strcmp(bind, "::") == 0)
		bind = "::1";
	return arena_printf(k->arena, strchr(bind, ':') ? "https://[%s]:%u" : "https://%s:%u", bind, port).p;
}

/* The kubeconfigs name the port: they are written with everything else unless the kernel is to choose it. */
static bool name_kubeconfigs(struct kube_apiserver *k, uint16_t port)
{
	unsigned both = PKI_SERVING | PKI_CLIENTS;

	k->pki.server = local_server(k, port);
	if (!port || (k->pki.needs & both) != both)
		return false;
	k->pki.needs |= PKI_CONFS;
	k->admin_conf = pki_admin_conf(k->arena, k->flags.data_dir);
	return true;
}

static int prepare(struct kube_apiserver *k, struct err *err)
{
	const char *dir = k->flags.data_dir;
	int r;

	name_made_files(k);
	name_serving_certificate(k);
	(void)name_kubeconfigs(k, k->options.secure_port);
	k->pki.dir = dir;
	if (!k->pki.needs && k->options.store.endpoints)
		return 0;
	if ((r = open_data_dir(k, dir, err)) < 0)
		return r;
	r = pki_ensure(&k->pki, err);
	return r < 0 ? err_wrap(err, r, "keys and certificates") : 0;
}

/* ---- running ---- */

struct running {
	struct kube_apiserver *server;
	struct fiber *renewing;
	void (*on_ready)(struct apiserver *s, void *arg);
	void *arg;
};

static int renew(void *arg)
{
	const struct running *run = arg;
	return pki_renew_run(&run->server->pki, NULL);
}

static void ready(struct apiserver *s, void *arg)
{
	struct running *run = arg;
	struct kube_apiserver *k = run->server;
	struct err err = ERR_INIT;

	if (!(k->pki.needs & PKI_CONFS) && name_kubeconfigs(k, s->port) && pki_ensure(&k->pki, &err) < 0) {
		log_error("admin.conf could not be written", KV("err", &err));
		k->admin_conf = NULL;
	}
	if (k->pki.needs && fiber_spawn(renew, run, &run->renewing, &err, "renewal of certificates") < 0)
		log_error("certificates will not be renewed", KV("err", &err));
	run->on_ready(s, run->arg);
}

void kube_apiserver_say_ready(const struct kube_apiserver *k, const char *name)
{
	printf("c8s %s: ready at %s", name, k->pki.server);
	if (k->admin_conf)
		printf("; use it with: kubectl --kubeconfig %s get namespaces", k->admin_conf);
	printf("\n");
	fflush(stdout);
}

int kube_apiserver_run(struct kube_apiserver *k, void (*on_ready)(struct apiserver *s, void *arg), void *arg, struct err *err)
{
	struct running run = { .server = k, .on_ready = on_ready, .arg = arg };
	int r = prepare(k, err);

	if (r == 0)
		r = apiserver_run(&k->options, ready, &run, err);
	if (run.renewing)
		(void)fiber_stop(run.renewing);
	if (k->lock_fd >= 0)
		(void)close(k->lock_fd);
	k->lock_fd = -1;
	if (r < 0 && err->sys == EADDRINUSE)
		return err_set(err, ERR_SYSTEM, "port %u of %s is taken by another program; stop it, or choose another port with --secure-port",
			       k->options.secure_port, k->options.bind_address);
	return r;
}
