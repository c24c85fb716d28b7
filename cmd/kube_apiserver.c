/* c8s kube-apiserver: the API server alone, with the flags of Kubernetes'. */
#include "cmd/kube_apiserver.h"

#include <stdio.h>

#include "base/log.h"
#include "cmd/serve.h"

static void ready(struct apiserver *s, void *arg)
{
	(void)s;
	kube_apiserver_say_ready(arg, "kube-apiserver");
}

static int serve(void *arg, struct err *err) { return kube_apiserver_run(arg, ready, arg, err); }

static int run_command(int argc, char **argv)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf later = BUF_INIT(4096);
	struct kube_apiserver k = KUBE_APISERVER_INIT(&a);
	struct err err = ERR_INIT;
	int r = flags_parse(&cmd_kube_apiserver, argc, argv, kube_apiserver_flags, &k.flags, &a, &later);

	if (r != 0)
		return r;
	if (k.flags.version) {
		printf("Kubernetes %s\n", KUBERNETES_VERSION);
		return 0;
	}
	if ((r = cmd_set_logging(&cmd_kube_apiserver, k.flags.logging_format, k.flags.verbosity)) != 0)
		return r;
	if (kube_apiserver_complete(&k, &err) < 0)
		return cmd_usage(&cmd_kube_apiserver, "%s", err.msg);
	if (later.n)
		log_warn("flags are accepted, but have no effect yet", KV("flags", buf_str(&later)));
	r = cmd_serve("apiserver", serve, &k, &err);
	runtime_config_free(k.runtime_config);
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
