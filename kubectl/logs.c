/* kubectl logs */
#include "kubectl/logs.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/mem.h"
#include "codec/types.h"
#include "kubectl/commands.h"
#include "kubectl/pods.h"
#include "net/url.h"

struct logs {
	const char *container, *selector, *since_time;
	bool all_containers, all_pods, follow, ignore_errors, insecure_backend, prefix, previous, timestamps;
	int64_t limit_bytes, max_requests, running_timeout_ns, since_ns, tail;
};

#define OPTION(member) offsetof(struct logs, member)

static const struct ktl_flag logs_flags[] = {
	{ "all-containers", 0, KTL_BOOL, OPTION(all_containers), NULL, "Of all containers of the pod", NULL },
	{ "all-pods", 0, KTL_BOOL, OPTION(all_pods), NULL, "Of all pods of the object, each line with its source", NULL },
	{ "container", 'c', KTL_STRING, OPTION(container), NULL, "Name of the container", NULL },
	{ "follow", 'f', KTL_BOOL, OPTION(follow), NULL, "Go on with what is written", NULL },
	{ "ignore-errors", 0, KTL_BOOL, OPTION(ignore_errors), NULL, "What fails is told and does not end the others", NULL },
	{ "insecure-skip-tls-verify-backend", 0, KTL_BOOL, OPTION(insecure_backend), NULL, "The kubelet's certificate is not checked", NULL },
	{ "limit-bytes", 0, KTL_INT, OPTION(limit_bytes), NULL, "At most so many bytes", NULL },
	{ "max-log-requests", 0, KTL_INT, OPTION(max_requests), "5", "Follow at most so many logs at a time", NULL },
	{ "pod-running-timeout", 0, KTL_DURATION, OPTION(running_timeout_ns), "20s", "How long to wait for a pod", NULL },
	{ "prefix", 0, KTL_BOOL, OPTION(prefix), NULL, "Each line with the names of its pod and container", NULL },
	{ "previous", 'p', KTL_BOOL, OPTION(previous), NULL, "Of the container that ran before", NULL },
	{ "selector", 'l', KTL_STRING, OPTION(selector), NULL, "Of all pods with these labels", NULL },
	{ "since", 0, KTL_DURATION, OPTION(since_ns), NULL, "Only what is newer, as 5s, 2m, 3h", NULL },
	{ "since-time", 0, KTL_STRING, OPTION(since_time), NULL, "Only what is newer than a moment (RFC 3339)", NULL },
	{ "tail", 0, KTL_INT, OPTION(tail), "-1", "Only so many lines of the end; with a selector 10", NULL },
	{ "timestamps", 0, KTL_BOOL, OPTION(timestamps), NULL, "Each line with the time it was written", NULL },
	{ 0 },
};

/* ---- one log ---- */

/* Lines come whole, so that those of several logs do not mix. */
struct lines {
	struct buf line;
	str prefix;
};

static void put_line(struct lines *l)
{
	if (!l->line.n)
		return;
	(void)fwrite(l->prefix.n ? l->prefix.p : "", 1, l->prefix.n, stdout);
	(void)fwrite(l->line.p, 1, l->line.n, stdout);
	buf_reset(&l->line);
}

static void put_lines(struct lines *l, str piece)
{
	while (piece.n) {
		ptrdiff_t end = str_chr(piece, '\n');
		str part = end < 0 ? piece : str_head(piece, (size_t)end + 1);
		buf_add(&l->line, part);
		piece = str_skip(piece, part.n);
		/* What is too long for a line goes out in pieces. */
		if (end >= 0 || l->line.n > 1 << 20)
			put_line(l);
	}
}

static int copy_stream(struct client_stream *s, str prefix, struct err *err)
{
	enum { PIECE = 32 * 1024 };
	CLEANUP(mem_freep) char *room = mem_alloc(PIECE);
	struct lines l = { .line = BUF_INIT(4 << 20), .prefix = prefix };
	ssize_t n;
	while ((n = client_stream_read(s, room, PIECE, err)) > 0) {
		put_lines(&l, str_span(room, (size_t)n));
		ktl_flush();
		if (ferror(stdout))
			break;
	}
	put_line(&l);
	ktl_flush();
	buf_done(&l.line);
	return n < 0 ? (int)n : 0;
}

int ktl_copy_log(struct ktl *k, struct val pod, str container, str query, str prefix)
{
	CLEANUP(client_stream_freep) struct client_stream *s = NULL;
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);
	const struct ktl_kind *pods = ktl_kind_of_type(k, TYPE(core_v1, Pod));
	struct err err = ERR_INIT;
	buf_add(&b, query);
	url_query_add(&b, STR("container"), container);
	struct client_raw q = {
		.method = STR("GET"), .path = ktl_kind_path(k, pods, val_str(pod, metadata, namespace), val_str(pod, metadata, name), STR("log")),
		.query = arena_str(&k->arena, buf_str(&b)),
	};
	if (ktl_open_stream(k, &q, &s) < 0)
		return -1;
	return copy_stream(s, prefix, &err) < 0 ? ktl_fail_err(k, &err) : 0;
}

/* ---- which ---- */

struct source {
	struct ktl *k;
	const struct logs *options;
	struct val pod;
	str container, query, prefix;
	int result;
};

static void add_number(struct buf *b, str key, int64_t value)
{
	char digits[24];
	url_query_add(b, key, str_span(digits, (size_t)snprintf(digits, sizeof(digits), "%lld", (long long)value)));
}

static str make_query(struct ktl *k, const struct logs *o)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);
	int64_t tail = o->selector[0] && o->tail == -1 && !ktl_given(k, "tail") ? 10 : o->tail;
	if (o->follow)
		url_query_add(&b, STR("follow"), STR("true"));
	if (o->insecure_backend)
		url_query_add(&b, STR("insecureSkipTLSVerifyBackend"), STR("true"));
	if (o->limit_bytes)
		add_number(&b, STR("limitBytes"), o->limit_bytes);
	if (o->previous)
		url_query_add(&b, STR("previous"), STR("true"));
	if (o->since_ns)
		add_number(&b, STR("sinceSeconds"), (o->since_ns + NS_PER_S / 2) / NS_PER_S);
	if (o->since_time[0])
		url_query_add(&b, STR("sinceTime"), str_of(o->since_time));
	if (tail != -1)
		add_number(&b, STR("tailLines"), tail);
	if (o->timestamps)
		url_query_add(&b, STR("timestamps"), STR("true"));
	return arena_str(&k->arena, buf_str(&b));
}

static struct source source_of(struct ktl *k, const struct logs *o, struct val pod, str container, str query)
{
	struct source s = { .k = k, .options = o, .pod = pod, .container = container, .query = query };
	if (o->prefix || o->all_pods)
		s.prefix = arena_printf(&k->arena, "[pod/" STR_FMT "/" STR_FMT "] ", STR_ARG(val_str(pod, metadata, name)), STR_ARG(container));
	return s;
}

static int add_sources(struct ktl *k, const struct logs *o, struct val pod, str container, str query, struct source *list, size_t *n)
{
	struct val spec = val_get(pod, spec), lists[] = { val_get(spec, initContainers), val_get(spec, containers), val_get(spec, ephemeralContainers) };
	struct val one;
	if (!o->all_containers) {
		if (ktl_choose_container(k, pod, container, o->all_pods, &one) < 0)
			return -1;
		list[(*n)++] = source_of(k, o, pod, val_str(one, name), query);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		VAL_EACH(c, lists[i])
			list[(*n)++] = source_of(k, o, pod, val_str(*c, name), query);
	return 0;
}

static size_t count_containers(struct val pods)
{
	size_t n = 1;
	VAL_EACH(p, pods)
		n += val_len(val_get(*p, spec, containers)) + val_len(val_get(*p, spec, initContainers)) + val_len(val_get(*p, spec, ephemeralContainers));
	return n;
}

static int find_pods(struct ktl *k, const struct logs *o, struct val *ret)
{
	struct ktl_info object;
	str namespace;
	if (ktl_namespace(k, &namespace, NULL) < 0)
		return -1;
	if (o->selector[0]) {
		if (ktl_list(k, ktl_kind_of_type(k, TYPE(core_v1, Pod)), namespace, str_of(o->selector), STR_NONE, ret) < 0)
			return -1;
		if (!val_len(*ret))
			fprintf(stderr, "No resources found in " STR_FMT " namespace.\n", STR_ARG(namespace));
		return 0;
	}
	if (ktl_named_object(k, (struct ktl_texts){ k->args.v, 1 }, &object) < 0) {
		if (!ktl_failed_because(k, "NotFound"))
			return -1;
		struct ktl_failure *f = k->failures;
		f->text = arena_printf(&k->arena, "error from server (NotFound): " STR_FMT " in namespace " STR_FMT, STR_ARG(f->text),
				       STR_ARG(ktl_quote(k, namespace)));
		f->kind = KTL_PLAIN;
		return -1;
	}
	if (ktl_pods_of(k, &object, o->running_timeout_ns, true, "cannot get the logs from", ret) < 0)
		return -1;
	if (val_len(*ret) > 1 && !o->all_pods) {
		fprintf(stderr, "Found %u pods, using pod/" STR_FMT "\n", val_len(*ret), STR_ARG(val_str(val_at(*ret, 0), metadata, name)));
		*ret = LIST(&k->arena, val_at(*ret, 0));
	}
	return 0;
}

/* ---- copying ---- */

static void tell(struct source *s)
{
	struct ktl_failure *f = s->k->failures;
	while (f && f->next)
		f = f->next;
	if (f)
		fprintf(s->options->ignore_errors ? stdout : stderr, "%s" STR_FMT "\n", s->options->ignore_errors ? "error: " : "", STR_ARG(f->text));
	ktl_forgive(s->k);
}

/* A log that is followed may not be there yet: it is tried again. */
static int copy(void *arg)
{
	struct source *s = arg;
	int64_t due = clock_now_ns() + s->options->running_timeout_ns;
	for (;;) {
		s->result = ktl_copy_log(s->k, s->pod, s->container, s->query, s->prefix);
		if (s->result == 0)
			return 0;
		if (s->options->ignore_errors) {
			tell(s);
			s->result = 0;
			return 0;
		}
		if (!s->options->follow || clock_now_ns() > due)
			return 0;
		tell(s);
		if (fiber_sleep_ms(1000, NULL) < 0)
			return 0;
	}
}

static int copy_all(struct ktl *k, const struct logs *o, struct source *list, size_t n)
{
	CLEANUP(fiber_group_done) struct fiber_group group;
	struct err err = ERR_INIT;
	fiber_group_init(&group);
	if (o->follow && (int64_t)n > o->max_requests && n > 1)
		return ktl_fail(k, "you are attempting to follow %zu log streams, but maximum allowed concurrency is %lld, use --max-log-requests to increase the limit",
				n, (long long)o->max_requests);
	for (size_t i = 0; i < n; i++) {
		if (o->follow && n > 1) {
			if (fiber_group_spawn(&group, copy, &list[i], &err, "log %zu", i) < 0)
				return ktl_fail_err(k, &err);
			continue;
		}
		(void)copy(&list[i]);
		if (list[i].result < 0)
			return -1;
	}
	return fiber_group_wait(&group, NULL);
}

static int check(struct ktl *k, struct logs *o)
{
	static const char usage[] = "expected 'logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER]'.\nPOD or TYPE/NAME is a required argument for the logs command";
	if (k->args.n > 2 || (k->args.n == 0 && !o->selector[0]))
		return ktl_fail_usage(k, "%s", usage);
	if (k->args.n == 1 && o->selector[0])
		return ktl_fail_usage(k, "only a selector (-l) or a POD name is allowed");
	if (o->running_timeout_ns <= 0)
		return ktl_fail(k, "--pod-running-timeout must be higher than zero");
	if (o->since_time[0] && o->since_ns)
		return ktl_fail(k, "at most one of `sinceTime` or `sinceSeconds` may be specified");
	if (o->all_containers && o->container[0])
		return ktl_fail(k, "--all-containers=true should not be specified with container name %s", o->container);
	if (k->args.n == 2 && ktl_given(k, "container"))
		return ktl_fail(k, "only one of -c or an inline [CONTAINER] arg is allowed");
	if (o->limit_bytes < 0)
		return ktl_fail(k, "--limit-bytes must be greater than 0");
	if (o->since_ns < 0)
		return ktl_fail(k, "--since must be greater than 0");
	if (o->tail < -1)
		return ktl_fail(k, "--tail must be greater than or equal to -1");
	if (k->args.n == 2)
		o->container = k->args.v[1];
	return 0;
}

static int run(struct ktl *k, void *options)
{
	struct logs *o = options;
	struct val pods;
	size_t n = 0;
	if (check(k, o) < 0 || find_pods(k, o, &pods) < 0)
		return -1;
	str query = make_query(k, o);
	struct source *list = ARENA_ARRAY(&k->arena, struct source, count_containers(pods));
	VAL_EACH(pod, pods)
		if (add_sources(k, o, *pod, str_of(o->container), query, list, &n) < 0)
			return -1;
	return copy_all(k, o, list, n);
}

const struct ktl_command ktl_logs = {
	.name = "logs",
	.aliases = "log",
	.group = "Troubleshooting and Debugging Commands",
	.summary = "Print the logs for a container in a pod",
	.manual = "Shows what a container has written, of a pod, or of a pod that a deployment, job or the like has made.",
	.examples = "  kubectl logs web\n  kubectl logs -f deployment/web\n  kubectl logs -l app=web --prefix --tail=20\n  kubectl logs web -c proxy --previous\n",
	.usage = "logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER] [options]",
	.flags = (const struct ktl_flag_set[]){ { logs_flags, 0 }, { 0 } },
	.size = sizeof(struct logs),
	.run = run,
};
