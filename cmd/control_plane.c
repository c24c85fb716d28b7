/*
 * c8s control-plane: API server, controllers and scheduler in one process. The loops are fibers beside the server; they reach it without
 * sockets and encoding, each as the user that it would be as a process of its own, and pass authorization, admission and audit as everybody.
 * They stop before the server does. A loop that loses its lease waits for it again; one that fails for another reason ends the process.
 */
#include "cmd/control_plane.h"

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "apiserver/request.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/serve.h"

enum { AGAIN_MS = 1000 };

/* ---- being ready ---- */

static void tell_ready(struct control_plane *p)
{
	if (p->said || !p->manager_ready || !p->scheduler_ready)
		return;
	p->said = true;
	kube_apiserver_say_ready(&p->api, "control-plane");
}

static void manager_ready(void *arg)
{
	struct control_plane *p = arg;

	p->manager_ready = true;
	tell_ready(p);
}

static void scheduler_ready(void *arg)
{
	struct control_plane *p = arg;

	p->scheduler_ready = true;
	tell_ready(p);
}

/* ---- who the loops are ---- */

struct account {
	struct list link;
	struct client *client;
	char name[];
};

static struct client *client_as(struct control_plane *p, const char *user, const char *agent)
{
	static const str groups[] = { STR_INIT("system:authenticated") };

	return client_inside(p->server, &(struct user){ .name = str_of(user), .groups = groups, .n_groups = ARRAY_LEN(groups) }, agent);
}

static struct client *client_as_account(struct control_plane *p, const char *account)
{
	static const str groups[] = { STR_INIT("system:serviceaccounts"), STR_INIT("system:serviceaccounts:kube-system"), STR_INIT("system:authenticated") };
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str name = arena_printf(&a, "system:serviceaccount:kube-system:%s", account);
	str agent = arena_printf(&a, "kube-controller-manager/" KUBERNETES_VERSION " (linux/amd64) kubernetes/" STR_FMT, STR_ARG(name));

	return client_inside(p->server, &(struct user){ .name = name, .groups = groups, .n_groups = ARRAY_LEN(groups) }, agent.p);
}

static struct client *client_for(void *arg, const char *account)
{
	struct control_plane *p = arg;

	if (!account)
		return p->manager.client;
	LIST_EACH(struct account, x, &p->accounts, link)
		if (strcmp(x->name, account) == 0)
			return x->client;
	size_t n = strlen(account) + 1;
	struct account *x = mem_zalloc(sizeof(*x) + n);
	memcpy(x->name, account, n);
	x->client = client_as_account(p, account);
	list_add(&p->accounts, &x->link);
	return x->client;
}

static void prepare_loops(struct control_plane *p)
{
	p->manager.client = client_as(p, "system:kube-controller-manager", "kube-controller-manager/" KUBERNETES_VERSION " (linux/amd64) kubernetes");
	p->scheduler.client = client_as(p, "system:kube-scheduler", "kube-scheduler/" KUBERNETES_VERSION " (linux/amd64) scheduler");
	p->manager.options.client_for = client_for;
	p->manager.options.arg = p->manager.arg = p->scheduler.arg = p;
	p->manager.on_ready = p->manager.waits = manager_ready;
	p->scheduler.on_ready = scheduler_ready;
}

static void close_clients(struct control_plane *p)
{
	LIST_EACH_SAFE(struct account, x, &p->accounts, link) {
		client_free(x->client);
		free(x);
	}
	client_free(p->scheduler.client);
	client_free(p->manager.client);
}

/* ---- what the server has made ---- */

/* Authorities and keys that no flag names are those of the API server. */
static void complete_options(struct control_plane *p)
{
	const struct apiserver_options *server = &p->api.options;
	struct controllers_options *o = &p->manager.options;
	const char *ca = pki_path(p->api.arena, p->api.flags.data_dir, "ca.crt");

	if (!o->root_ca_file && p->api.pki.needs & PKI_SERVING)
		o->root_ca_file = ca;
	if (!o->signing.cert && p->api.pki.needs & PKI_CLIENTS)
		o->signing = (struct signing_files){ ca, pki_path(p->api.arena, p->api.flags.data_dir, "ca.key") };
	if (!o->service_account_key_file)
		o->service_account_key_file = server->authn.service_account_signing_key_file;
	if (!o->service_cidr)
		o->service_cidr = server->service_cluster_ip_range;
}

/* ---- the parts ---- */

static void server_ready(struct apiserver *s, void *arg)
{
	struct control_plane *p = arg;

	p->server = s;
	fiber_cond_broadcast(&p->changed);
}

/* The first one that ends says why. */
static int part_ended(struct control_plane *p, int r, const struct err *err)
{
	if (!p->ended) {
		p->ended = true;
		p->result = r;
		p->err = *err;
	}
	fiber_cond_broadcast(&p->changed);
	return r;
}

static int run_server(void *arg)
{
	struct control_plane *p = arg;
	struct err err = ERR_INIT;
	int r = kube_apiserver_run(&p->api, server_ready, p, &err);

	return part_ended(p, r, &err);
}

/* (suspends) Whether a loop that has ended is to run again. */
static bool again(const char *which, int r, struct err *err)
{
	if (r != -ERR_UNAVAILABLE)
		return false;
	log_warn("waiting to lead again", KV("part", which), KV("error", err));
	err_clear(err);
	return fiber_sleep_ms(AGAIN_MS, err) == 0;
}

static int run_manager(void *arg)
{
	struct control_plane *p = arg;
	struct err err = ERR_INIT;
	int r;

	do
		r = controller_manager_run(&p->manager, &err);
	while (again("controllers", r, &err));
	return part_ended(p, r, &err);
}

static int run_scheduler(void *arg)
{
	struct control_plane *p = arg;
	struct err err = ERR_INIT;
	int r;

	do
		r = kube_scheduler_run(&p->scheduler, &err);
	while (again("scheduler", r, &err));
	return part_ended(p, r, &err);
}

/* ---- all of it ---- */

static int run_loops(struct control_plane *p, struct err *err)
{
	CLEANUP(fiber_stopp) struct fiber *manager = NULL;
	CLEANUP(fiber_stopp) struct fiber *scheduler = NULL;
	int r = fiber_spawn(run_manager, p, &manager, err, "controllers");

	if (r == 0)
		r = fiber_spawn(run_scheduler, p, &scheduler, err, "scheduler");
	while (r == 0 && !p->ended)
		r = fiber_cond_wait(&p->changed, err);
	return r;
}

static int serve(void *arg, struct err *err)
{
	CLEANUP(fiber_stopp) struct fiber *server = NULL;
	struct control_plane *p = arg;

	fiber_cond_init(&p->changed, "the end of a part");
	int r = fiber_spawn(run_server, p, &server, err, "server");
	while (r == 0 && !p->server && !p->ended)
		r = fiber_cond_wait(&p->changed, err);
	if (r == 0 && p->server) {
		complete_options(p);
		prepare_loops(p);
		r = run_loops(p, err);
		close_clients(p);
	}
	if (r < 0)
		return r;
	*err = p->err;
	return p->result;
}

/* ---- the command ---- */

/* Before anything else is done: nothing of root's is open yet, and there is one thread. What is given up cannot be had back. */
static int become(int64_t user, struct err *err)
{
	uid_t id = (uid_t)user;

	if (!user)
		return 0;
	if (user < 0 || user >= UINT32_MAX)
		return err_set(err, ERR_INVALID, "--run-as: %" PRId64 " is not the number of a user", user);
	for (int capability = 0; prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0; capability++)
		;
	if (setgroups(0, NULL) < 0 || setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(err, errno, "becoming user %u, which --run-as asks for", id);
	return 0;
}

static int complete(struct control_plane *p)
{
	const struct command *c = &cmd_control_plane;
	struct err err = ERR_INIT;
	int r = cmd_set_logging(c, p->api.flags.logging_format, p->api.flags.verbosity);

	if (r == 0 && kube_apiserver_complete(&p->api, &err) < 0)
		r = cmd_usage(c, "%s", err.msg);
	p->api.options.listen_fd = (int)p->own.listen_fd;
	p->manager.flags.release = true; /* a restart is not to be waited out by the others */
	if (r == 0)
		r = controller_manager_complete(c, &p->manager.flags, &p->manager.options);
	return r == 0 ? kube_scheduler_complete(c, &p->scheduler.flags, p->api.arena, &p->scheduler.config, &p->scheduler.gates) : r;
}

static int run_command(int argc, char **argv)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf later = BUF_INIT(4096);
	struct control_plane *p = arena_zero_of(&a, sizeof *p, _Alignof(struct control_plane));
	struct err err = ERR_INIT;
	int r;

	p->api = (struct kube_apiserver)KUBE_APISERVER_INIT(&a);
	list_init(&p->accounts);
	if ((r = control_plane_parse(p, argc, argv, &later)) != 0)
		return r;
	if (p->api.flags.version) {
		printf("Kubernetes %s\n", KUBERNETES_VERSION);
		return 0;
	}
	if (become(p->own.run_as, &err) < 0)
		return cmd_fail(&cmd_control_plane, &err);
	if ((r = complete(p)) == 0) {
		if (later.n)
			log_warn("flags are accepted, but have no effect yet", KV("flags", buf_str(&later)));
		r = cmd_serve("control-plane", serve, p, &err) < 0 ? cmd_fail(&cmd_control_plane, &err) : 0;
	}
	frozen_unref(p->scheduler.config);
	runtime_config_free(p->api.runtime_config);
	return r;
}

static void help(void)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	flags_help(control_plane_flags(&a));
}

const struct command cmd_control_plane = {
	.name = "control-plane",
	.summary = "API server, controllers and scheduler in one process",
	.manual =
		"Usage: c8s control-plane [--data-dir DIR] [FLAGS]\n"
		"\n"
		"Serves the Kubernetes API as 'c8s kube-apiserver' does, and runs the controllers and the scheduler beside it: the\n"
		"whole of a cluster but its nodes. It needs no privileges on the machine. Flags are those of kube-apiserver,\n"
		"kube-controller-manager and kube-scheduler; one that several have is for all of them. What the controllers sign with\n"
		"is made in DIR/pki, unless flags name it.\n"
		"\n"
		"Each controller is a user of its own, system:serviceaccount:kube-system:NAME, and the scheduler is\n"
		"system:kube-scheduler; what they may do is what roles allow. Of several control planes on one etcd one runs the\n"
		"controllers and one the scheduler, by leases; the API is served by all.\n"
		"\n"
		"Health and metrics of the two are served with --controller-manager-secure-port and --scheduler-secure-port, the\n"
		"latter also what 'c8s why' asks for.\n"
		"\n"
		"SIGTERM and SIGINT stop it in good order, a second one at once; SIGUSR2 shows what it is doing.\n"
		"\n"
		"Exit code: 0 stopped by a signal, 1 it could not go on, 2 wrong usage.\n"
		"\n"
		"Example:\n"
		"  c8s control-plane --data-dir ~/cluster --secure-port 6443\n"
		"  kubectl --kubeconfig ~/cluster/admin.conf create deployment web --image nginx\n",
	.help = help,
	.run = run_command,
};
