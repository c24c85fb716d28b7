/* kubectl delete */
#include "kubectl/delete.h"

#include <stdio.h>

#include "base/clock.h"
#include "kubectl/commands.h"
#include "kubectl/watch.h"

struct delete {
	struct ktl_file_flags files;
	const char *selector, *field_selector, *cascade, *output, *raw, *dry_run;
	bool all, all_namespaces, force, ignore_not_found, interactive, now, wait;
	int64_t grace_s, timeout_ns;
};

#define OPTION(member) offsetof(struct delete, member)

static const struct ktl_flag delete_flags[] = {
	{ "all", 0, KTL_BOOL, OPTION(all), NULL, "All objects of the type in the namespace", NULL },
	{ "all-namespaces", 'A', KTL_BOOL, OPTION(all_namespaces), NULL, "In all namespaces", NULL },
	{ "cascade", 0, KTL_STRING, OPTION(cascade), "background", "What becomes of what an object owns: background, foreground, orphan", "background" },
	{ "dry-run", 0, KTL_STRING, OPTION(dry_run), "none", "none, client or server", "unchanged" },
	{ "field-selector", 0, KTL_STRING, OPTION(field_selector), NULL, "Only objects with these fields", NULL },
	{ "force", 0, KTL_BOOL, OPTION(force), NULL, "Without waiting for confirmation that it has ended", NULL },
	{ "grace-period", 0, KTL_INT, OPTION(grace_s), "-1", "Seconds to end in; negative: as the object says", NULL },
	{ "ignore-not-found", 0, KTL_BOOL, OPTION(ignore_not_found), NULL, "What does not exist is no error; so it is with --all and selectors", NULL },
	{ "interactive", 'i', KTL_BOOL, OPTION(interactive), NULL, "Ask first", NULL },
	{ "now", 0, KTL_BOOL, OPTION(now), NULL, "As --grace-period=1", NULL },
	{ "output", 'o', KTL_STRING, OPTION(output), NULL, "name: print names only", NULL },
	{ "raw", 0, KTL_STRING, OPTION(raw), NULL, "A path of the server to delete", NULL },
	{ "selector", 'l', KTL_STRING, OPTION(selector), NULL, "Only objects with these labels", NULL },
	{ "timeout", 0, KTL_DURATION, OPTION(timeout_ns), "0s", "How long to wait until it is gone; 0: without end", NULL },
	{ "wait", 0, KTL_BOOL, OPTION(wait), "true", "Wait until it is gone", NULL },
	{ 0 },
};

/* ---- one object ---- */

static void print_deleted(struct ktl *k, const struct ktl_delete *d, const struct ktl_info *info)
{
	static const char *const dry[] = { "", " (dry run)", " (server dry run)" };
	str label = ktl_kind_label(k, info->kind);
	if (d->names) {
		printf(STR_FMT "/" STR_FMT "\n", STR_ARG(label), STR_ARG(info->name));
		return;
	}
	printf(STR_FMT " \"" STR_FMT "\" %s", STR_ARG(label), STR_ARG(info->name), d->grace_s == 0 ? "force deleted" : "deleted");
	if (info->kind->namespaced)
		printf(" from " STR_FMT " namespace", STR_ARG(info->namespace));
	printf("%s\n", dry[d->dry]);
	ktl_flush();
}

int ktl_delete_object(struct ktl *k, const struct ktl_delete *d, const struct ktl_info *info, str *ret_uid)
{
	struct arena *a = &k->arena;
	struct val answer = VAL_EMPTY, options = OBJECT(a, F(kind, VAL_LIT("DeleteOptions")), F(apiVersion, VAL_LIT("v1")),
			F(gracePeriodSeconds, d->grace_s >= 0 ? val_of_int(d->grace_s) : VAL_EMPTY),
			F(propagationPolicy, d->cascade ? VAL_STR(str_of(d->cascade)) : VAL_EMPTY),
			F(dryRun, d->dry == KTL_DRY_SERVER ? LIST(a, VAL_LIT("All")) : VAL_EMPTY));
	struct client_raw q = {
		.method = STR("DELETE"), .path = ktl_kind_path(k, info->kind, info->namespace, info->name, STR_NONE),
		.content_type = STR("application/json"), .accept = STR("application/json"), .body = ktl_json(k, options),
	};
	if (d->dry != KTL_DRY_CLIENT && ktl_call(k, &q, &answer) < 0)
		return info->source.n ? ktl_fail_before(k, "error when deleting " STR_FMT ": ", STR_ARG(ktl_quote(k, info->source))) : -1;
	if (!d->quiet)
		print_deleted(k, d, info);
	if (ret_uid) {
		str uid = val_str(answer, details, uid);
		*ret_uid = uid.n ? uid : val_str(answer, metadata, uid);
	}
	return 0;
}

/* ---- until it is gone ---- */

/* What keeps us from looking is no failure of the deletion. */
static int excuse(struct ktl *k)
{
	if (!ktl_failed_because(k, "Forbidden") && !ktl_failed_because(k, "MethodNotAllowed"))
		return -1;
	ktl_forgive(k);
	return 0;
}

static int is_gone(struct ktl *k, struct val object, void *uid)
{
	(void)k;
	return !val_exists(object) || (((str *)uid)->n && !str_eq(val_str(object, metadata, uid), *(str *)uid));
}

int ktl_wait_gone(struct ktl *k, const struct ktl_info *info, str uid, int64_t timeout_ns)
{
	struct ktl_info now = *info;
	int r = ktl_watch_until(k, &now, clock_now_ns() + timeout_ns, is_gone, &uid);
	if (r == 0)
		return ktl_fail_timed_out(k, info);
	if (r > 0)
		return 0;
	if (!ktl_failed_because(k, "NotFound"))
		return excuse(k);
	ktl_forgive(k);
	return 0;
}

/* ---- the command ---- */

int ktl_cascade_of(struct ktl *k, const char *text, const char **ret)
{
	bool b;
	if (ktl_is(text, "orphan") || ktl_is(text, "foreground") || ktl_is(text, "background")) {
		*ret = ktl_is(text, "orphan") ? "Orphan" : ktl_is(text, "foreground") ? "Foreground" : "Background";
		return 0;
	}
	if (!ktl_parse_bool(str_of(text), &b))
		return ktl_fail(k, "invalid cascade value (%s). Must be \"background\", \"foreground\", or \"orphan\"", text);
	fprintf(stderr, "warning: --cascade=%s is deprecated (boolean value) and can be replaced with --cascade=%s.\n", text, b ? "background" : "orphan");
	*ret = b ? "Background" : "Orphan";
	return 0;
}

static int check(struct ktl *k, struct delete *o, struct ktl_delete *d)
{
	struct ktl_write w;
	if (ktl_cascade_of(k, o->cascade, &d->cascade) < 0 ||
	    ktl_write_init(k, &(struct ktl_write_flags){ o->dry_run, "" }, NULL, "", NULL, &w) < 0)
		return -1;
	if (!ktl_given(k, "ignore-not-found"))
		o->ignore_not_found |= o->all || o->selector[0] || o->field_selector[0];
	if (o->now && o->grace_s != -1)
		return ktl_fail(k, "--now and --grace-period cannot be specified together");
	if (o->now || (o->grace_s == 0 && !o->force))
		o->grace_s = 1;
	if (o->force && o->grace_s < 0)
		o->grace_s = 0;
	if (o->output[0] && !ktl_is(o->output, "name"))
		return ktl_fail(k, "unexpected -o output mode: %s. We only support '-o name'", o->output);
	if (o->grace_s > 0 && o->force)
		return ktl_fail(k, "--force and --grace-period greater than 0 cannot be specified together");
	d->grace_s = o->grace_s;
	d->dry = w.dry;
	d->names = o->output[0];
	return 0;
}

static bool confirmed(struct ktl *k, const struct ktl_infos *infos)
{
	char answer[16];
	printf("You are about to delete the following %zu resource(s):\n", infos->n);
	for (size_t i = 0; i < infos->n; i++)
		printf(STR_FMT "/" STR_FMT "\n", STR_ARG(ktl_kind_label(k, infos->v[i].kind)), STR_ARG(infos->v[i].name));
	printf("Do you want to continue? (y/N): ");
	ktl_flush();
	return fgets(answer, sizeof(answer), stdin) && (ktl_is(answer, "y\n") || ktl_is(answer, "Y\n"));
}

static int delete_all(struct ktl *k, const struct delete *o, const struct ktl_delete *d, const struct ktl_infos *infos, bool warn)
{
	str *uids = ARENA_ARRAY(&k->arena, str, infos->n + 1);
	bool *deleted = ARENA_ARRAY(&k->arena, bool, infos->n + 1);
	size_t found = 0;
	for (size_t i = 0; i < infos->n; i++) {
		if (warn && !infos->v[i].kind->namespaced) {
			ktl_warn(k, STR("deleting cluster-scoped resources, not scoped to the provided namespace"));
			warn = false;
		}
		deleted[i] = ktl_delete_object(k, d, &infos->v[i], &uids[i]) == 0;
		bool missing = !deleted[i] && ktl_failed_because(k, "NotFound");
		if (missing && o->ignore_not_found)
			ktl_forgive(k);
		found++;
	}
	if (k->n_failures)
		return -1;
	if (!found)
		printf("No resources found\n");
	ktl_flush();
	if (!o->wait || d->dry != KTL_DRY_NONE)
		return 0;
	int64_t limit = o->timeout_ns ? o->timeout_ns : 168 * 3600 * NS_PER_S;
	for (size_t i = 0; i < infos->n; i++)
		if (deleted[i] && ktl_wait_gone(k, &infos->v[i], uids[i], limit) < 0)
			return -1;
	return 0;
}

static int run(struct ktl *k, void *options)
{
	struct delete *o = options;
	struct ktl_delete d = { 0 };
	struct ktl_infos infos;
	str namespace;
	bool explicit;
	if (o->raw[0] && o->interactive)
		return ktl_fail(k, "--interactive can not be used with --raw");
	if (o->raw[0] && o->files.filenames.n > 1)
		return ktl_fail(k, "--raw can only use a single local file or stdin");
	if (o->raw[0])
		return ktl_raw(k, STR("DELETE"), o->raw, o->files.filenames.n ? o->files.filenames.v[0] : NULL);
	if (check(k, o, &d) < 0 || ktl_namespace(k, &namespace, &explicit) < 0)
		return -1;
	struct ktl_builder b = {
		.files = &o->files, .args = k->args, .namespace = namespace, .enforce_namespace = explicit, .selector = o->selector,
		.field_selector = o->field_selector, .all = o->all, .all_namespaces = o->all_namespaces, .keep_going = true, .names_only = true,
	};
	if (ktl_build(k, &b, &infos) < 0)
		return -1;
	if (o->grace_s == 0 && o->force)
		ktl_warn(k, STR("Immediate deletion does not wait for confirmation that the running resource has been terminated. The resource may continue to run on the cluster indefinitely."));
	if (o->interactive && infos.n && !confirmed(k, &infos)) {
		printf("deletion is cancelled\n");
		return 0;
	}
	return delete_all(k, o, &d, &infos, explicit && !o->all_namespaces);
}

const struct ktl_command ktl_delete = {
	.name = "delete",
	.group = "Basic Commands (Intermediate)",
	.summary = "Delete resources by file names, stdin, resources and names, or by resources and label selector",
	.manual = "Deletes objects, by their files, by type and name, or by type and selector, and waits until they are gone. Pods are given\n"
		  "time to end; --grace-period, --now and --force say otherwise.",
	.examples = "  kubectl delete pod web\n  kubectl delete -f web.yaml\n  kubectl delete pods,services -l app=web\n  kubectl delete pods --all\n",
	.usage = "delete ([-f FILENAME] | TYPE [(NAME | -l label | --all)]) [options]",
	.flags = (const struct ktl_flag_set[]){ { delete_flags, 0 }, { ktl_file_flags, OPTION(files) }, { 0 } },
	.size = sizeof(struct delete),
	.run = run,
};
