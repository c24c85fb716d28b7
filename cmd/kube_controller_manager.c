/*
 * c8s kube-controller-manager: the loops that make the cluster what its objects say, with the flags of Kubernetes'. It sees the API server
 * only; of several one works, and the others wait for its lease.
 */
#include "cmd/kube_controller_manager.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/log.h"
#include "client/kubeconfig.h"
#include "cmd/account_clients.h"
#include "cmd/component.h"
#include "cmd/serve.h"
#include "codec/types.h"

#define NAME "kube-controller-manager"

/* ---- one run ---- */

static void metrics(void *arg, struct buf *out)
{
	const struct controller_manager *m = arg;

	buf_addf(out, "# HELP leader_election_master_status Whether this process leads.\n# TYPE leader_election_master_status gauge\n"
		 "leader_election_master_status{name=\"%s\"} %d\n", m->flags.lock_name, m->leads);
}

static struct val config_of(void *arg)
{
	const struct controller_manager *m = arg;

	return m->config;
}

static int lead(void *arg)
{
	struct controller_manager *m = arg;

	m->leads = true;
	m->result = controllers_run(&m->options, m->on_ready, m->arg, &m->err);
	m->leads = false;
	return m->result;
}

static void waits(void *arg)
{
	const struct controller_manager *m = arg;

	if (m->waits)
		m->waits(m->arg);
}

static int work(void *arg, struct err *err)
{
	struct controller_manager *m = arg;
	const struct controller_manager_flags *f = &m->flags;
	struct election e = { .namespace = str_of(f->lock_namespace), .name = str_of(f->lock_name), .lease_ms = f->lease_ns / NS_PER_MS,
			      .renew_ms = f->renew_ns / NS_PER_MS, .retry_ms = f->retry_ns / NS_PER_MS, .release = f->release, .waits = waits };
	int r = f->elect ? component_elect(&e, m->client, STR(NAME), lead, m, err) : lead(m);

	/* What the controllers ended with says more. */
	if (m->result < 0 && m->result != -ERR_CANCELED) {
		*err = m->err;
		return m->result;
	}
	return r;
}

int controller_manager_run(struct controller_manager *m, struct err *err)
{
	struct component_server server = { .name = NAME, .flags = &m->flags.server, .client = m->client, .metrics = metrics,
		.config = val_exists(m->config) ? config_of : NULL, .config_name = "kubecontrollermanager.config.k8s.io",
		.config_type = TYPE(kubecontrollermanagerconfig_v1alpha1, KubeControllerManagerConfiguration), .arg = m };

	m->result = 0;
	return component_run(&server, work, m, err);
}

/* ---- over HTTPS ---- */

struct running {
	struct controller_manager manager;
	struct client_config config;
	struct account_clients *accounts; /* NULL: all controllers are the manager */
};

static unsigned burst_of(const struct controller_manager_flags *f)
{
	return f->burst < 1 ? 1 : (unsigned)MIN(f->burst, (int64_t)INT32_MAX);
}

static struct client *client_for(void *arg, const char *account)
{
	struct running *run = arg;
	struct client *client = run->manager.client;
	struct err err = ERR_INIT;

	if (!run->accounts || !account)
		return client;
	if (account_clients_get(run->accounts, account, &client, &err) == 0)
		return client;
	log_error("no client for a controller", KV("account", account), KV("error", &err));
	return NULL;
}

static void ready(void *arg)
{
	(void)arg;
	printf("c8s " NAME ": ready\n");
	fflush(stdout);
}

static int renew_tokens(void *arg)
{
	const struct running *run = arg;
	return account_clients_run(run->accounts, NULL);
}

static int open_client(struct running *run, struct arena *a, struct err *err)
{
	const struct controller_manager_flags *f = &run->manager.flags;
	bool has_master = f->master && f->master[0], only_master = has_master && !(f->kubeconfig && f->kubeconfig[0]);
	int r = only_master ? 0 : kubeconfig_open(a, f->kubeconfig, &run->config, err);

	if (r < 0)
		return r;
	if (has_master)
		run->config.server = str_of(f->master);
	run->config.user_agent = STR(NAME "/" KUBERNETES_VERSION " (linux/amd64) kubernetes");
	if ((r = client_open(&run->config, &run->manager.client, err)) == 0)
		client_limit(run->manager.client, f->qps, burst_of(f));
	return r;
}

static int serve_as_accounts(struct running *run, struct err *err)
{
	CLEANUP(fiber_stopp) struct fiber *renewing = NULL;
	struct controller_manager *m = &run->manager;
	int r = 0;

	if (m->flags.use_accounts) {
		run->accounts = account_clients_new(m->client, &run->config, m->flags.qps, burst_of(&m->flags));
		r = fiber_spawn(renew_tokens, run, &renewing, err, "tokens");
	}
	return r == 0 ? controller_manager_run(m, err) : r;
}

static int serve(void *arg, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct running *run = arg;
	int r = open_client(run, &a, err);

	if (r < 0)
		return r;
	run->manager.options.client_for = client_for;
	run->manager.options.arg = run;
	r = serve_as_accounts(run, err);
	account_clients_free(run->accounts);
	client_free(run->manager.client);
	return r;
}

/* ---- the command ---- */

static int run_command(int argc, char **argv)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf later = BUF_INIT(4096);
	struct running run = { .manager.on_ready = ready };
	struct controller_manager_flags *f = &run.manager.flags;
	const struct command *c = &cmd_kube_controller_manager;
	struct err err = ERR_INIT;
	int r = flags_parse(c, argc, argv, controller_manager_flags, f, &a, &later);

	if (r != 0)
		return r;
	if (f->version) {
		printf("Kubernetes %s\n", KUBERNETES_VERSION);
		return 0;
	}
	if ((r = cmd_set_logging(c, f->log_format, f->verbosity)) != 0 || (r = controller_manager_complete(c, f, &run.manager.options)) != 0 ||
	    (r = controller_manager_config(c, argc, argv, &a, &run.manager.config)) != 0)
		return r;
	if (later.n)
		log_warn("flags are accepted, but have no effect yet", KV("flags", buf_str(&later)));
	return cmd_serve(NAME, serve, &run, &err) < 0 ? cmd_fail(c, &err) : 0;
}

static void help(void) { flags_help(controller_manager_flags); }

const struct command cmd_kube_controller_manager = {
	.name = NAME,
	.summary = "the loops that make the cluster what its objects say",
	.manual =
		"Usage: c8s kube-controller-manager [--kubeconfig FILE] [FLAGS]\n"
		"\n"
		"Runs the controllers of a cluster: deployments, replica sets, jobs, namespaces, the garbage collector and all others.\n"
		"Flags have the names and the meaning that they have in Kubernetes. Called as kube-controller-manager the program does\n"
		"the same. It needs no privileges on the machine; in the cluster those of system:kube-controller-manager suffice, and\n"
		"with --use-service-account-credentials each controller has an account in kube-system of its own.\n"
		"\n"
		"Of several that run one leads, by the lease kube-system/kube-controller-manager; another takes over when it is gone.\n"
		"One that loses the lease ends.\n"
		"\n"
		"The secure port (--secure-port) answers /healthz, /livez and /readyz to everybody, and /metrics and /configz to those\n"
		"whom the API server allows it.\n"
		"\n"
		"SIGTERM and SIGINT stop it in good order, a second one at once; SIGUSR2 shows what it is doing.\n"
		"\n"
		"Exit code: 0 stopped by a signal, 1 it could not go on, 2 wrong usage.\n"
		"\n"
		"Example:\n"
		"  c8s kube-controller-manager --kubeconfig ~/cluster/controller-manager.conf --use-service-account-credentials\n",
	.help = help,
	.run = run_command,
};
