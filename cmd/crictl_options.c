/*
 * Options. Each action has its own, as with Kubernetes' crictl: a letter may mean something else to another action (-r is an endpoint,
 * a handler, a transport), but a name has one kind and one place in struct crictl, which is what the table here says.
 *
 * Options stand before or behind arguments; letters can be put together (-it); --name=false is the opposite of --name. Options that
 * are for all actions may also follow the action where it has no other meaning for them.
 */
#include <stdlib.h>

#include "cmd/crictl.h"
#include "codec/time.h"

enum kind { FLAG, TEXT, NUMBER, SECONDS, TEXTS };

#define AT(member) offsetof(struct crictl, member)

static const struct place {
	const char *name;
	enum kind kind;
	size_t offset;
} places[] = {
	{ "all", FLAG, AT(all) },
	{ "annotation", TEXTS, AT(annotations) },
	{ "auth", TEXT, AT(auth) },
	{ "cancel-timeout", SECONDS, AT(cancel_ms) },
	{ "config", TEXT, AT(config) },
	{ "cpu-period", NUMBER, AT(cpu_period) },
	{ "cpu-quota", NUMBER, AT(cpu_quota) },
	{ "cpu-share", NUMBER, AT(cpu_shares) },
	{ "cpuset-cpus", TEXT, AT(cpuset_cpus) },
	{ "cpuset-mems", TEXT, AT(cpuset_mems) },
	{ "creds", TEXT, AT(creds) },
	{ "debug", FLAG, AT(debug) },
	{ "digests", FLAG, AT(digests) },
	{ "export", TEXT, AT(export) },
	{ "filter", TEXTS, AT(filters) },
	{ "follow", FLAG, AT(follow) },
	{ "force", FLAG, AT(force) },
	{ "get", TEXT, AT(get) },
	{ "id", TEXT, AT(id) },
	{ "ignore-errors", FLAG, AT(ignore_errors) },
	{ "image", TEXT, AT(image) },
	{ "image-endpoint", TEXT, AT(image_endpoint) },
	{ "interactive", FLAG, AT(interactive) },
	{ "keep-logs", FLAG, AT(keep_logs) },
	{ "label", TEXTS, AT(labels) },
	{ "last", NUMBER, AT(last) },
	{ "latest", FLAG, AT(latest) },
	{ "limit-bytes", NUMBER, AT(limit_bytes) },
	{ "list", FLAG, AT(list) },
	{ "memory", NUMBER, AT(memory) },
	{ "name", TEXT, AT(name) },
	{ "namespace", TEXT, AT(namespace) },
	{ "no-pull", FLAG, AT(no_pull) },
	{ "no-trunc", FLAG, AT(no_trunc) },
	{ "oom-score-adj", NUMBER, AT(oom_score) },
	{ "output", TEXT, AT(output) },
	{ "parallel", FLAG, AT(parallel) },
	{ "pinned", FLAG, AT(pinned) },
	{ "pod", TEXT, AT(pod) },
	{ "pod-cidr", TEXT, AT(cidr) },
	{ "pod-config", TEXT, AT(pod_config) },
	{ "previous", FLAG, AT(previous) },
	{ "prune", FLAG, AT(prune) },
	{ "pull-timeout", SECONDS, AT(pull_ms) },
	{ "quiet", FLAG, AT(quiet) },
	{ "reopen", FLAG, AT(reopen) },
	{ "resolve-image-path", FLAG, AT(resolve_image) },
	{ "runtime", TEXT, AT(handler) },
	{ "runtime-endpoint", TEXT, AT(endpoint) },
	{ "seconds", NUMBER, AT(seconds) },
	{ "set", TEXTS, AT(set) },
	{ "since", TEXT, AT(since) },
	{ "state", TEXT, AT(state) },
	{ "stdin", FLAG, AT(interactive) },
	{ "stream", TEXT, AT(stream) },
	{ "sync", FLAG, AT(sync) },
	{ "tail", NUMBER, AT(tail) },
	{ "timestamps", FLAG, AT(timestamps) },
	{ "tls-ca", TEXT, AT(tls_ca) },
	{ "tls-cert", TEXT, AT(tls_cert) },
	{ "tls-key", TEXT, AT(tls_key) },
	{ "tls-server-name", TEXT, AT(tls_name) },
	{ "tls-sni", TEXT, AT(tls_name) },
	{ "transport", TEXT, AT(transport) },
	{ "tty", FLAG, AT(tty) },
	{ "username", TEXT, AT(username) },
	{ "verbose", FLAG, AT(verbose) },
	{ "watch", FLAG, AT(watch) },
	{ "with-pull", FLAG, AT(with_pull) },
};

/* "timeout" alone depends on where it stands: of calls, or of what the action waits for. */
static const struct place place_timeout = { "timeout", SECONDS, AT(timeout_ms) }, place_wait = { "timeout", NUMBER, AT(wait_s) };

static const struct place *place_find(const char *name, bool global)
{
	if (strcmp(name, "timeout") == 0)
		return global ? &place_timeout : &place_wait;
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (strcmp(places[i].name, name) == 0)
			return &places[i];
	abort(); /* a table of options has a name that this one does not have */
}

bool crictl_duration(const char *text, int64_t *ret_ms)
{
	enum { MS_PER_S = 1000, NS_PER_MS = 1000000 };
	int64_t n;

	if (str_to_i64(str_of(text), &n)) {
		*ret_ms = n * MS_PER_S;
		return n >= 0 && n < INT64_MAX / MS_PER_S / NS_PER_MS;
	}
	if (duration_parse(str_of(text), &n, NULL) < 0 || n < 0)
		return false;
	*ret_ms = n / NS_PER_MS;
	return true;
}

int64_t crictl_wait_s(const struct crictl *c) { return c->wait_s < 0 ? 0 : MIN(c->wait_s, (int64_t)INT32_MAX); }

/* ---- the value of one ---- */

static int take_texts(struct crictl_texts *to, const char *name, const char *value)
{
	if (to->n == CRICTL_LIST_MAX)
		return cmd_usage(&cmd_crictl, "--%s can be given %d times", name, CRICTL_LIST_MAX);
	to->item[to->n++] = value;
	return 0;
}

static int take(struct crictl *c, const struct place *p, const char *value)
{
	void *at = (char *)c + p->offset;

	switch (p->kind) {
	case FLAG:
		if (value && strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
			return cmd_usage(&cmd_crictl, "--%s is true or false, not '%s'", p->name, value);
		*(bool *)at = !value || strcmp(value, "true") == 0;
		return 0;
	case TEXT: *(const char **)at = value; return 0;
	case NUMBER:
		if (!str_to_i64(str_of(value), at))
			return cmd_usage(&cmd_crictl, "--%s: '%s' is not a number", p->name, value);
		return 0;
	case SECONDS:
		if (!crictl_duration(value, at))
			return cmd_usage(&cmd_crictl, "--%s: '%s' is not a duration such as 30s", p->name, value);
		return 0;
	case TEXTS: return take_texts(at, p->name, value);
	}
	return 0;
}

/* ---- tables for one action ---- */

enum { OPTIONS_MAX = 40 };

struct known {
	struct option_spec specs[OPTIONS_MAX + 1]; /* an empty one at the end */
	const struct place *places[OPTIONS_MAX];
	size_t n;
};

static void know(struct known *k, const struct crictl_option *list, bool global)
{
	for (; list && list->name && k->n < OPTIONS_MAX; list++) {
		const struct place *p = place_find(list->name, global);
		k->places[k->n] = p;
		k->specs[k->n++] = (struct option_spec){ list->letter, list->name, p->kind == FLAG ? OPTION_BOOL : OPTION_VALUE };
	}
}

/* -it: the first letter of several, when it stands for an option that takes no value; else NULL. */
static const struct place *first_of_several(const struct known *k, const char *arg)
{
	if (arg[0] != '-' || !arg[1] || arg[1] == '-' || !arg[2] || arg[2] == '=')
		return NULL;
	for (size_t i = 0; i < k->n; i++)
		if (k->specs[i].letter == arg[1])
			return k->specs[i].takes == OPTION_BOOL ? k->places[i] : NULL;
	return NULL;
}

/* Options of an action, and its arguments. */
static int parse_action(struct crictl *c, struct options *o, const struct crictl_words *w)
{
	struct known k = { .n = 0 };
	int found, r = 0;

	know(&k, w->options, false);
	know(&k, crictl_global_options, true);
	while (r == 0) {
		char *arg = o->at + 1 < o->argc ? o->argv[o->at + 1] : NULL;
		bool verbatim = w->verbatim && c->n > 0;
		const struct place *several = arg && !verbatim ? first_of_several(&k, arg) : NULL;
		if (several) {
			r = take(c, several, NULL);
			arg[1] = '-'; /* "-it" is read on as "-t" */
			o->argv[o->at + 1] = arg + 1;
			continue;
		}
		found = verbatim && arg ? OPTION_ARGUMENT : options_next(o, k.specs);
		if (verbatim && arg)
			o->value = o->argv[++o->at];
		if (found == OPTION_END)
			return 0;
		if (found == OPTION_BAD)
			return 2;
		if (found != OPTION_ARGUMENT)
			r = take(c, k.places[found], o->value);
		else if (w->verbatim && c->n <= 1 && strcmp(o->value, "--") == 0)
			continue;
		else if (c->n == CRICTL_ARGUMENTS_MAX)
			return cmd_usage(&cmd_crictl, "too many arguments");
		else
			c->arguments[c->n++] = o->value;
	}
	return r;
}

int crictl_parse(struct crictl *c, int argc, char **argv, const struct crictl_words *(*find)(const char *word),
		 const struct crictl_words **ret_action)
{
	struct options o = { &cmd_crictl, argc, argv, 0, NULL };
	struct known k = { .n = 0 };
	int found, r;

	*ret_action = NULL;
	know(&k, crictl_global_options, true);
	while ((found = options_next(&o, k.specs)) != OPTION_END) {
		if (found == OPTION_BAD)
			return 2;
		if (found == OPTION_ARGUMENT) {
			if (!(*ret_action = find(o.value)))
				return cmd_usage(&cmd_crictl, "there is no '%s'", o.value);
			return parse_action(c, &o, *ret_action);
		}
		if ((r = take(c, k.places[found], o.value)) != 0)
			return r;
	}
	return 0;
}
