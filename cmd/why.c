/*
 * c8s why: why a pod is where it is, or nowhere. The scheduler knows; it is asked on its secure port, as the user of the kubeconfig.
 */
#include <stdio.h>

#include "base/fiber.h"
#include "base/loop.h"
#include "client/kubeconfig.h"
#include "cmd/cmd.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "net/http_client.h"
#include "net/tls.h"
#include "net/url.h"

enum { ANSWER_MAX = 64 << 20, WAIT_MS = 30000 };

struct asking {
	const char *kubeconfig, *namespace, *scheduler, *pod;
	bool json;
	struct arena arena;
};

/* ---- asking ---- */

static const char *or_null(struct arena *a, str text) { return text.n ? arena_str(a, text).p : NULL; }

/* The scheduler's certificate is its own; it is not what is trusted here, the machine and the port are. */
static int open_http(struct arena *a, const struct client_config *c, struct tls_context **ret_tls, struct http_client **ret, struct err *err)
{
	struct tls_options o = { .cert_pem = or_null(a, c->client_cert), .key_pem = or_null(a, c->client_key), .cert_file = or_null(a, c->client_cert_file),
				 .key_file = or_null(a, c->client_key_file), .insecure_skip_verify = true };
	int r = tls_client_new(&o, ret_tls, err);

	if (r == 0)
		*ret = http_client_new(&(struct http_client_options){ .tls = *ret_tls });
	return r;
}

/* Whoever answers in the scheduler's place would have the token: it leaves the machine never, and goes through TLS only. */
static int may_show_token(struct arena *a, const char *scheduler, struct err *err)
{
	struct url url;
	int r = url_parse(a, str_of(scheduler), &url, err);

	if (r < 0)
		return r;
	if (str_eq(url.scheme, STR("https")) && (str_eq(url.host, STR("127.0.0.1")) || str_eq(url.host, STR("::1")) || str_eq(url.host, STR("localhost"))))
		return 0;
	return err_set(err, ERR_FORBIDDEN, "the user of the kubeconfig has a token, which is not shown to %s: nobody can verify who that is; forward "
		       "the scheduler's port to this machine, or use a client certificate", scheduler);
}

static str segment(struct arena *a, str text)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);

	url_path_escape(&b, text);
	return arena_str(a, buf_str(&b));
}

/* What did not get as far as the scheduler is told by a Status, as by an API server. */
static str said(struct arena *a, str answer)
{
	struct val status;

	if (json_decode(a, answer, &(struct json_decode_options){ .sort_keys = true }, &status, NULL) >= 0 && val_str(status, message).n)
		return val_str(status, message);
	return str_trim(answer);
}

/* (suspends) */
static int ask(struct asking *q, struct http_client *http, const struct client_config *c, str *ret, struct err *err)
{
	CLEANUP(http_call_freep) struct http_call *call = NULL;
	struct arena *a = &q->arena;
	str namespace = q->namespace ? str_of(q->namespace) : c->namespace;
	str url = arena_printf(a, "%s/why/" STR_FMT "/" STR_FMT, q->scheduler, STR_ARG(segment(a, namespace)), STR_ARG(segment(a, str_of(q->pod))));
	const struct http_header token = { STR("authorization"), arena_printf(a, "Bearer " STR_FMT, STR_ARG(c->token)) };
	const struct http1_head *head;
	int r = c->token.n ? may_show_token(a, q->scheduler, err) : 0;

	if (r < 0)
		return r;
	r = http_call_open(http, &(struct http_request){ .method = STR("GET"), .url = url, .headers = &token, .n_headers = c->token.n > 0 }, &call, err);
	if (r < 0 || (r = http_call_head(call, &head, err)) < 0 || (r = http_call_read_all(call, ANSWER_MAX, ret, err)) < 0)
		return r;
	*ret = arena_str(a, *ret);
	return head->status == 200 ? 0 : err_set(err, ERR_UNAVAILABLE, "the scheduler answers %d: " STR_FMT, head->status, STR_ARG(said(a, *ret)));
}

/* ---- showing ---- */

static void show_refused(struct val node)
{
	bool first = true;

	printf("  %-30.*s  no   " STR_FMT ": ", STR_ARG(val_str(node, name)), STR_ARG(val_as_str(val_find(node, STR("plugin")))));
	VAL_EACH(reason, val_find(node, STR("reasons"))) {
		printf("%s" STR_FMT, first ? "" : ", ", STR_ARG(val_as_str(*reason)));
		first = false;
	}
	printf("\n");
}

static void show_scored(struct val node)
{
	printf("  %-30.*s  %-4lld", STR_ARG(val_str(node, name)), (long long)val_as_int(val_find(node, STR("total"))));
	VAL_EACH(s, val_find(node, STR("scores")))
		printf(" " STR_FMT "=%lld", STR_ARG(val_as_str(val_find(*s, STR("plugin")))), (long long)val_int(*s, score));
	printf("\n");
}

static void show(struct val answer)
{
	str node = val_as_str(val_find(answer, STR("node")));

	printf(STR_FMT ": " STR_FMT "\n", STR_ARG(val_as_str(val_find(answer, STR("pod")))), STR_ARG(val_as_str(val_find(answer, STR("message")))));
	if (node.n)
		printf("It is bound to " STR_FMT ".\n", STR_ARG(node));
	VAL_EACH(n, val_find(answer, STR("nodes"))) {
		if (val_exists(val_find(*n, STR("plugin"))))
			show_refused(*n);
		else
			show_scored(*n);
	}
}

/* ---- the command ---- */

static int ask_and_show(struct asking *q, struct err *err)
{
	CLEANUP(http_client_freep) struct http_client *http = NULL;
	struct tls_context *tls = NULL;
	struct client_config config;
	struct val document, answer;
	str text;
	int r;
	DEADLINE_SCOPE(WAIT_MS);

	if ((r = kubeconfig_load(&q->arena, q->kubeconfig, &document, err)) < 0 ||
	    (r = kubeconfig_resolve(&q->arena, document, &(struct kubeconfig_overrides){ .insecure = false }, &config, err)) < 0)
		return r;
	if ((r = open_http(&q->arena, &config, &tls, &http, err)) == 0 && (r = ask(q, http, &config, &text, err)) == 0) {
		if (q->json)
			printf(STR_FMT, STR_ARG(text));
		else if ((r = json_decode(&q->arena, text, &(struct json_decode_options){ .sort_keys = true }, &answer, err)) == 0)
			show(answer);
	}
	http_client_free(TAKE(http)); /* before the context that it borrows */
	tls_context_free(tls);
	return r;
}

struct call {
	struct asking *asking;
	struct err *err;
};

static int run_fiber(void *arg)
{
	struct call *c = arg;

	return ask_and_show(c->asking, c->err);
}

static int run_loop_once(struct asking *q)
{
	CLEANUP(loop_freep) struct loop *loop = NULL;
	struct err err = ERR_INIT;
	struct call c = { q, &err };
	int r = loop_new("why", &loop, &err);

	if (r == 0)
		r = loop_run(loop, run_fiber, &c, &err);
	return r < 0 ? cmd_fail(&cmd_why, &err) : 0;
}

static int run_command(int argc, char **argv)
{
	enum { KUBECONFIG, NAMESPACE, OUTPUT, SCHEDULER };
	static const struct option_spec specs[] = {
		[KUBECONFIG] = { 0, "kubeconfig", OPTION_VALUE }, [NAMESPACE] = { 'n', "namespace", OPTION_VALUE },
		[OUTPUT] = { 'o', "output", OPTION_VALUE }, [SCHEDULER] = { 0, "scheduler", OPTION_VALUE }, { 0, NULL, OPTION_ALONE },
	};
	struct options o = { &cmd_why, argc, argv, 0, NULL };
	struct asking q = { .scheduler = "https://127.0.0.1:10259" };
	int found;

	while ((found = options_next(&o, specs)) != OPTION_END) {
		switch (found) {
		case KUBECONFIG: q.kubeconfig = o.value; break;
		case NAMESPACE: q.namespace = o.value; break;
		case SCHEDULER: q.scheduler = o.value; break;
		case OUTPUT:
			if (strcmp(o.value, "json") != 0)
				return cmd_usage(&cmd_why, "-o %s: only json is known", o.value);
			q.json = true;
			break;
		case OPTION_ARGUMENT:
			if (q.pod)
				return cmd_usage(&cmd_why, "one pod at a time");
			q.pod = o.value;
			break;
		default: return 2;
		}
	}
	if (q.pod && strncmp(q.pod, "pod/", 4) == 0)
		q.pod += 4;
	if (!q.pod || !*q.pod)
		return cmd_usage(&cmd_why, "name a pod");
	arena_init(&q.arena);
	int r = run_loop_once(&q);
	arena_done(&q.arena);
	return r;
}

const struct command cmd_why = {
	.name = "why",
	.summary = "why a pod is on its node, or on none",
	.manual =
		"Usage: c8s why [-n NAMESPACE] [-o json] [--kubeconfig FILE] [--scheduler URL] POD\n"
		"\n"
		"Asks the scheduler about a pod: for each node either which plugin refuses it and why, or its scores, the best node first.\n"
		"A pod that has a node is looked at as if it had none. The scheduler is asked on its secure port, which is\n"
		"https://127.0.0.1:10259 unless --scheduler says otherwise, as the user of the kubeconfig, who needs the right to get\n"
		"the path /why/*.\n"
		"\n"
		"Exit code: 0 told, 1 the scheduler could not be asked or does not know the pod, 2 wrong usage.\n"
		"\n"
		"Example:\n"
		"  c8s why -n default web-1\n",
	.run = run_command,
};
