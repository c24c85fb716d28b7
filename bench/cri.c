/*
 * How long a container runtime takes for a pod: RunPodSandbox, CreateContainer and StartContainer over CRI, many times. Any runtime: it
 * is given a socket.
 *
 *	bench-cri SOCKET IMAGE host|pod COUNT AT-ONCE CGROUP FOLDER
 *
 * Pods have the network of the node, or one of their own. Prints a line of JSON with milliseconds: of each pod, of its three calls, and of
 * all together. The pods run on until standard input ends, to be looked at. What stops and removes them is not measured. Logs are in FOLDER.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/loop.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "net/grpc.h"

enum { REQUEST_MAX = 1 << 20, CALLS = 3, CALL_MS = 120000, PODS_MAX = 10000, REMOVERS = 8 };

struct pod {
	struct bench *bench;
	struct arena arena;
	size_t number;
	str id, container;
	int64_t us[CALLS + 1]; /* of the three calls, and of all of them */
};

struct bench {
	struct grpc_channel *channel;
	const char *socket, *image, *cgroup, *folder;
	bool host;
	size_t count, at_once, next;
	struct pod *pods;
	int64_t all_us;
};

static void must(int r, const struct err *err, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "bench cri: %s: " STR_FMT "\n", what, STR_ARG(err_str(err)));
	exit(1);
}

static struct val call(struct pod *p, const struct rpc *rpc, struct val request)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(REQUEST_MAX);
	CLEANUP(grpc_message_freep) struct grpc_message *m = NULL;
	struct err err = ERR_INIT;
	struct val answer;
	DEADLINE_SCOPE(CALL_MS);

	must(proto_encode(&b, request, rpc->request, &err), &err, rpc->path.p);
	must(grpc_call(p->bench->channel, rpc->path, 0, buf_str(&b), &m, NULL, &err), &err, rpc->path.p);
	must(proto_decode(&p->arena, arena_str(&p->arena, grpc_message_str(m)), rpc->response, &answer, &err), &err, rpc->path.p);
	return answer;
}

/* ---- one pod ---- */

static struct val security(struct arena *a, bool host)
{
	struct val namespaces = OBJECT(a, F(network, host ? VAL_LIT("NODE") : VAL_LIT("POD")), F(pid, VAL_LIT("CONTAINER")));

	return OBJECT(a, F(namespaceOptions, namespaces), F(seccomp, OBJECT(a, F(profileType, VAL_LIT("RuntimeDefault")))));
}

/* As a kubelet asks for a plain pod. */
static struct val pod_config(const struct bench *b, struct pod *p)
{
	struct arena *a = &p->arena;
	struct val name = VAL_STR(arena_printf(a, "bench-%d-%zu", getpid(), p->number));

	return OBJECT(a, F(metadata, OBJECT(a, F(name, name), F(uid, name), F(namespace, VAL_LIT("bench")))),
		      F(hostname, b->host ? VAL_EMPTY : name), F(logDirectory, VAL_STR(arena_printf(a, "%s/%zu", b->folder, p->number))),
		      F(dnsConfig, OBJECT(a, F(servers, LIST(a, VAL_LIT("10.96.0.10"))))),
		      F(linux, OBJECT(a, F(cgroupParent, VAL_STR(str_of(b->cgroup))), F(securityContext, security(a, b->host)))));
}

static struct val container_config(const struct bench *b, struct arena *a)
{
	struct val resources = OBJECT(a, F(cpuShares, val_of_int(102)), F(memoryLimitInBytes, val_of_int(64 << 20)),
				      F(oomScoreAdj, val_of_int(1000)));

	return OBJECT(a, F(metadata, OBJECT(a, F(name, VAL_LIT("main")))), F(image, OBJECT(a, F(image, VAL_STR(str_of(b->image))))),
		      F(command, LIST(a, VAL_LIT("sleep"), VAL_LIT("100000"))), F(logPath, VAL_LIT("main.log")),
		      F(linux, OBJECT(a, F(securityContext, security(a, b->host)), F(resources, resources))));
}

static void pod_start(struct pod *p)
{
	struct arena *a = &p->arena;
	struct val config = pod_config(p->bench, p), container = container_config(p->bench, a);
	int64_t at[CALLS + 1] = { clock_now_ns() };

	p->id = val_str(call(p, &rpc_RuntimeService_RunPodSandbox, OBJECT(a, F(config, config))), podSandboxId);
	at[1] = clock_now_ns();
	p->container = val_str(call(p, &rpc_RuntimeService_CreateContainer,
				    OBJECT(a, F(podSandboxId, VAL_STR(p->id)), F(config, container), F(sandboxConfig, config))),
			       containerId);
	at[2] = clock_now_ns();
	(void)call(p, &rpc_RuntimeService_StartContainer, OBJECT(a, F(containerId, VAL_STR(p->container))));
	at[3] = clock_now_ns();
	for (size_t i = 0; i < CALLS; i++)
		p->us[i] = (at[i + 1] - at[i]) / 1000;
	p->us[CALLS] = (at[CALLS] - at[0]) / 1000;
}

static void pod_remove(struct pod *p)
{
	struct val request = OBJECT(&p->arena, F(podSandboxId, VAL_STR(p->id)));

	(void)call(p, &rpc_RuntimeService_StopPodSandbox, request);
	(void)call(p, &rpc_RuntimeService_RemovePodSandbox, request);
}

/* ---- all of them ---- */

static int starter(void *arg)
{
	struct bench *b = arg;

	while (b->next < b->count)
		pod_start(&b->pods[b->next++]);
	return 0;
}

static int remover(void *arg)
{
	struct bench *b = arg;

	while (b->next < b->count)
		pod_remove(&b->pods[b->next++]);
	return 0;
}

static int64_t by_many(struct bench *b, int (*fn)(void *), size_t n)
{
	struct fiber_group group;
	struct err err = ERR_INIT;
	int64_t begin = clock_now_ns();

	b->next = 0;
	fiber_group_init(&group);
	for (size_t i = 0; i < n; i++)
		must(fiber_group_spawn(&group, fn, b, &err, "pod %zu", i), &err, "fiber");
	(void)fiber_group_wait(&group, NULL);
	fiber_group_done(&group);
	return (clock_now_ns() - begin) / 1000;
}

static void print(const struct bench *b)
{
	static const char *const names[] = { "sandbox", "create", "start", "pod" };

	printf("{\"all\":%.3f", (double)b->all_us / 1000);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		printf(",\"%s\":[", names[i]);
		for (size_t k = 0; k < b->count; k++)
			printf("%s%.3f", k ? "," : "", (double)b->pods[k].us[i] / 1000);
		printf("]");
	}
	printf("}\n");
	fflush(stdout);
}

static int run(void *arg)
{
	struct bench *b = arg;
	const char *endpoints[] = { b->socket, NULL };
	struct err err = ERR_INIT;

	must(grpc_channel_new(&(struct grpc_options){ .endpoints = endpoints }, &b->channel, &err), &err, b->socket);
	(void)call(&b->pods[0], &rpc_RuntimeService_Version, VAL_EMPTY_OBJECT); /* there is a connection before anything is measured */
	b->all_us = by_many(b, starter, b->at_once);
	print(b);
	for (char c; read(STDIN_FILENO, &c, 1) > 0;)
		;
	(void)by_many(b, remover, REMOVERS);
	grpc_channel_free(b->channel);
	return 0;
}

static size_t number(const char *text)
{
	int64_t n;

	if (!str_to_i64(str_of(text), &n) || n < 1 || n > PODS_MAX) {
		fprintf(stderr, "bench cri: %s is not a number from 1 to %d\n", text, PODS_MAX);
		exit(2);
	}
	return (size_t)n;
}

int main(int argc, char **argv)
{
	struct loop *loop;
	struct err err = ERR_INIT;

	if (argc != 8) {
		fprintf(stderr, "usage: %s SOCKET IMAGE host|pod COUNT AT-ONCE CGROUP FOLDER\n", argv[0]);
		return 2;
	}
	struct bench b = { .socket = argv[1], .image = argv[2], .host = strcmp(argv[3], "host") == 0, .count = number(argv[4]),
			   .at_once = number(argv[5]), .cgroup = argv[6], .folder = argv[7] };
	b.pods = mem_zalloc(b.count * sizeof *b.pods);
	for (size_t i = 0; i < b.count; i++) {
		b.pods[i].bench = &b;
		b.pods[i].number = i;
	}
	must(loop_new("bench", &loop, &err), &err, "loop");
	must(loop_run(loop, run, &b, &err), &err, "run");
	loop_free(loop);
	for (size_t i = 0; i < b.count; i++)
		arena_done(&b.pods[i].arena);
	free(b.pods);
	return 0;
}
