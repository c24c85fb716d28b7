/* c8s hollow: nodes that only pretend to run pods, for load tests. */
#include <stdio.h>

#include "base/arena.h"
#include "client/kubeconfig.h"
#include "cmd/flags.h"
#include "cmd/serve.h"
#include "hollow/hollow.h"

struct hollow_flags {
	const char *kubeconfig, *prefix, *cpu, *memory;
	int64_t nodes, first, pods, zones, workers;
	const char *const *taints;
	int64_t heartbeat_ns, start_ns, stop_ns;
	bool remove;
};

#define AT(member) offsetof(struct hollow_flags, member)

static const struct flag flags[] = {
	FLAG_GROUP("Cluster"),
	{ "kubeconfig", FLAG_STRING, FLAG_WORKS, AT(kubeconfig), NULL, "how to reach the cluster; empty: from inside a pod" },
	FLAG_GROUP("Nodes"),
	{ "nodes", FLAG_INT, FLAG_WORKS, AT(nodes), "1", "how many" },
	{ "first", FLAG_INT, FLAG_WORKS, AT(first), "0", "number of the first one: several processes can share the work" },
	{ "prefix", FLAG_STRING, FLAG_WORKS, AT(prefix), "hollow-", "of their names" },
	{ "cpu", FLAG_STRING, FLAG_WORKS, AT(cpu), "32", "processors of each" },
	{ "memory", FLAG_STRING, FLAG_WORKS, AT(memory), "256Gi", "memory of each" },
	{ "pods", FLAG_INT, FLAG_WORKS, AT(pods), "110", "pods that fit on each" },
	{ "zones", FLAG_INT, FLAG_WORKS, AT(zones), "0", "zones that they are spread over (label topology.kubernetes.io/zone)" },
	{ "taint", FLAG_LIST, FLAG_WORKS, AT(taints), NULL, "key=value:effect, of each" },
	{ "heartbeat", FLAG_DURATION, FLAG_WORKS, AT(heartbeat_ns), "10s", "between two renewals of a node's lease" },
	{ "remove", FLAG_BOOL, FLAG_WORKS, AT(remove), "false", "delete the nodes at the end" },
	FLAG_GROUP("Pods"),
	{ "start-time", FLAG_DURATION, FLAG_WORKS, AT(start_ns), "0s", "that a pod takes to run" },
	{ "stop-time", FLAG_DURATION, FLAG_WORKS, AT(stop_ns), "0s", "that a pod takes to stop, if its grace period is not shorter" },
	FLAG_GROUP("Other"),
	{ "workers", FLAG_INT, FLAG_WORKS, AT(workers), "32", "calls at a time" },
	{ NULL, FLAG_HEADING, FLAG_WORKS, 0, NULL, NULL },
};

struct hollow_running {
	struct hollow_flags flags;
	struct hollow_options options;
	struct arena *arena;
};

static void ready(void *arg)
{
	const struct hollow_running *run = arg;

	printf("c8s hollow: %lld nodes are ready\n", (long long)run->flags.nodes);
	fflush(stdout);
}

static int serve(void *arg, struct err *err)
{
	struct hollow_running *run = arg;
	CLEANUP(client_freep) struct client *client = NULL;
	struct client_config config;
	int r = kubeconfig_open(run->arena, run->flags.kubeconfig, &config, err);

	if (r == 0)
		r = client_open(&config, &client, err);
	return r < 0 ? r : hollow_run(&run->options, client, ready, run, err);
}

static int run_command(int argc, char **argv);
static void help(void) { flags_help(flags); }

const struct command cmd_hollow = {
	.name = "hollow",
	.summary = "nodes that only pretend to run pods, for load tests",
	.manual =
		"Usage: c8s hollow --nodes N [--kubeconfig FILE] [FLAGS]\n"
		"\n"
		"Registers N nodes with heartbeats. Pods that are bound to them become Running, with addresses, and go when they are\n"
		"deleted; nothing is started. 5,000 nodes cost one process with two watches.\n"
		"\n"
		"A pod with restartPolicy Never ends after the seconds of its annotation hollow.c8s.io/seconds, with the exit code of\n"
		"hollow.c8s.io/exit-code.\n"
		"\n"
		"SIGTERM and SIGINT stop it: the nodes stay and become NotReady, unless --remove is given.\n"
		"\n"
		"Exit code: 0 stopped by a signal, 1 it could not go on, 2 wrong usage.\n"
		"\n"
		"Example:\n"
		"  c8s hollow --nodes 1000 --zones 3 --kubeconfig ~/cluster/admin.conf\n",
	.help = help,
	.run = run_command,
};

static int run_command(int argc, char **argv)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf later = BUF_INIT(1024);
	struct hollow_running run = { .arena = &a };
	struct err err = ERR_INIT;
	const struct hollow_flags *f = &run.flags;
	int r = flags_parse(&cmd_hollow, argc, argv, flags, &run.flags, &a, &later);

	if (r != 0)
		return r;
	if (f->workers < 1 || f->workers > 1000)
		return cmd_usage(&cmd_hollow, "--workers must be from 1 to 1000");
	run.options = (struct hollow_options){ .nodes = f->nodes, .first = f->first, .prefix = f->prefix, .cpu = f->cpu, .memory = f->memory,
					       .pods = f->pods, .zones = f->zones, .taints = f->taints, .heartbeat_ms = f->heartbeat_ns / 1000000,
					       .start_ms = f->start_ns / 1000000, .stop_ms = f->stop_ns / 1000000, .workers = (unsigned)f->workers,
					       .remove = f->remove };
	return cmd_serve("hollow", serve, &run, &err) < 0 ? cmd_fail(&cmd_hollow, &err) : 0;
}
