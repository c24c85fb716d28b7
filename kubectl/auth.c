/* kubectl auth can-i, whoami: what the server says of us. */
#include <stdio.h>

#include "codec/types.h"
#include "kubectl/commands.h"
#include "kubectl/create.h"
#include "kubectl/describe.h"

struct can_i {
	const char *subresource;
	bool all_namespaces, list, no_headers, quiet;
};

static const struct ktl_flag can_i_flags[] = {
	{ "all-namespaces", 'A', KTL_BOOL, offsetof(struct can_i, all_namespaces), NULL, "In all namespaces", NULL },
	{ "list", 0, KTL_BOOL, offsetof(struct can_i, list), NULL, "All that is allowed", NULL },
	{ "no-headers", 0, KTL_BOOL, offsetof(struct can_i, no_headers), NULL, "With --list: no headers above columns", NULL },
	{ "quiet", 'q', KTL_BOOL, offsetof(struct can_i, quiet), NULL, "Print nothing; the exit code tells", NULL },
	{ "subresource", 0, KTL_STRING, offsetof(struct can_i, subresource), NULL, "Of the resource, as log or scale", NULL },
	{ 0 },
};

/* (suspends) Asks by creating a review. */
static int review(struct ktl *k, const struct type *type, struct val spec, struct val *ret)
{
	struct ktl_info info = { .kind = ktl_kind_of_type(k, type) };
	if (ktl_typed(k, type, OBJECT(&k->arena, F(spec, spec)), &info.object) < 0)
		return -1;
	return ktl_create_object(k, &(struct ktl_write){ 0 }, &info, ret);
}

static void warn_verb(struct ktl *k, const char *known, const char *verb)
{
	str part, rest = str_of(known);
	while (rest.n) {
		(void)str_cut(rest, ' ', &part, &rest);
		if (str_eq(part, str_of(verb)))
			return;
	}
	ktl_warn(k, arena_printf(&k->arena, "verb '%s' is not a known verb\n", verb));
}

/* (may suspend) What TYPE or TYPE/NAME means. A type that the server does not have is asked about all the same. */
static struct val resource_attributes(struct ktl *k, const struct can_i *o, const char *verb, const char *arg, str namespace)
{
	const struct ktl_kind *kind = NULL;
	struct arena *a = &k->arena;
	size_t failures = k->n_failures;
	str type, name, group, resource;
	(void)str_cut(str_of(arg), '/', &type, &name);
	group = STR_NONE;
	resource = type;
	bool known = !str_eq(type, STR("*")) && ktl_kind_known(k, ktl_lower(k, type), &kind);
	while (k->n_failures > failures) /* who may not look up types may ask */
		ktl_forgive(k);
	if (known) {
		group = kind->group;
		resource = kind->resource;
		if (!kind->namespaced && !o->all_namespaces)
			ktl_warn(k, group.n ? arena_printf(a, "resource '" STR_FMT "' is not namespace scoped in group '" STR_FMT "'\n", STR_ARG(resource), STR_ARG(group)) :
					      arena_printf(a, "resource '" STR_FMT "' is not namespace scoped\n", STR_ARG(resource)));
	} else if (!str_eq(type, STR("*")) && !str_eq(type, STR("users")) && !str_eq(type, STR("groups"))) {
		str head, tail;
		ktl_warn(k, str_cut(type, '.', &head, &tail) ?
			 arena_printf(a, "the server doesn't have a resource type '" STR_FMT "' in group '" STR_FMT "'\n", STR_ARG(head), STR_ARG(tail)) :
			 arena_printf(a, "the server doesn't have a resource type '" STR_FMT "'\n", STR_ARG(type)));
	}
	warn_verb(k, "get list watch create update patch delete deletecollection use bind impersonate * approve sign escalate attest", verb);
	return OBJECT(a, F(namespace, VAL_STR(namespace)), F(verb, VAL_STR(str_of(verb))), F(group, VAL_STR(group)), F(resource, VAL_STR(resource)),
		      F(subresource, VAL_STR(str_of(o->subresource))), F(name, VAL_STR(name)));
}

static int check_access(struct ktl *k, const struct can_i *o, str namespace)
{
	struct arena *a = &k->arena;
	struct val spec, answer;
	if (k->args.n != 2)
		return ktl_fail(k, "you must specify two arguments: verb resource or verb resource/resourceName.\nSee 'kubectl auth can-i -h' for help and examples.");
	const char *verb = k->args.v[0], *what = k->args.v[1];
	if (what[0] == '/') {
		if (o->subresource[0])
			return ktl_fail(k, "--subresource can not be used with NonResourceURL");
		warn_verb(k, "get put post head options delete patch *", verb);
		spec = OBJECT(a, F(nonResourceAttributes, OBJECT(a, F(path, VAL_STR(str_of(what))), F(verb, VAL_STR(str_of(verb))))));
	} else {
		spec = OBJECT(a, F(resourceAttributes, resource_attributes(k, o, verb, what, namespace)));
	}
	if (o->no_headers)
		return ktl_fail(k, "--no-headers cannot be set without --list specified");
	if (review(k, TYPE(authorization_v1, SelfSubjectAccessReview), spec, &answer) < 0)
		return -1;
	bool allowed = val_bool(answer, status, allowed);
	str reason = val_str(answer, status, reason), problem = val_str(answer, status, evaluationError);
	if (!allowed)
		k->exit_code = 1;
	if (o->quiet)
		return 0;
	if (allowed)
		printf("yes\n");
	else
		printf("no%s" STR_FMT "%s" STR_FMT "\n", reason.n ? " - " : "", STR_ARG(reason), problem.n ? " - " : "", STR_ARG(problem));
	return 0;
}

static int list_access(struct ktl *k, const struct can_i *o, str namespace)
{
	struct ktl_page p = { .k = k };
	CLEANUP(buf_done) struct buf out = BUF_INIT(KTL_TEXT_MAX);
	struct val_builder rules = val_builder(&k->arena);
	struct val answer;
	if (k->args.n)
		return ktl_fail(k, "list option must be specified with no arguments");
	if (o->quiet || o->all_namespaces || o->subresource[0])
		return ktl_fail(k, "list option can't be specified with neither quiet, all-namespaces nor subresource options");
	if (review(k, TYPE(authorization_v1, SelfSubjectRulesReview), OBJECT(&k->arena, F(namespace, VAL_STR(namespace))), &answer) < 0)
		return -1;
	if (val_bool(answer, status, incomplete))
		ktl_warn(k, arena_printf(&k->arena, "the list may be incomplete: " STR_FMT, STR_ARG(val_str(answer, status, evaluationError))));
	VAL_EACH(r, val_get(answer, status, resourceRules))
		val_add_item(&rules, *r);
	VAL_EACH(r, val_get(answer, status, nonResourceRules))
		val_add_item(&rules, *r);
	ktl_tabs_for_table(&p.tabs);
	if (!o->no_headers)
		ktl_say(&p, 0, "Resources\tNon-Resource URLs\tResource Names\tVerbs\n");
	ktl_say_rules(&p, 0, val_end_list(&rules));
	ktl_tabs_flush(&p.tabs, &out);
	ktl_tabs_done(&p.tabs);
	printf(STR_FMT, STR_ARG(buf_str(&out)));
	return 0;
}

static int run_can_i(struct ktl *k, void *options)
{
	const struct can_i *o = options;
	str namespace;
	if (ktl_namespace(k, &namespace, NULL) < 0)
		return -1;
	return o->list ? list_access(k, o, namespace) : check_access(k, o, o->all_namespaces ? STR_NONE : namespace);
}

static const struct ktl_command can_i = {
	.name = "can-i", .summary = "Check whether an action is allowed",
	.examples = "  kubectl auth can-i create pods -n demo\n  kubectl auth can-i list pods --as=system:serviceaccount:demo:app\n"
		    "  kubectl auth can-i --list\n",
	.usage = "auth can-i VERB [TYPE | TYPE/NAME | NONRESOURCEURL] [options]",
	.flags = (const struct ktl_flag_set[]){ { can_i_flags, 0 }, { 0 } }, .size = sizeof(struct can_i), .run = run_can_i,
};

/* ---- whoami ---- */

static void say_list(struct ktl_page *p, const char *title, str name, struct val list)
{
	if (val_len(list))
		ktl_say(p, 0, "%s" STR_FMT "\t[" STR_FMT "]\n", title, STR_ARG(name), STR_ARG(ktl_join(p->k, list, " ")));
}

static int run_whoami(struct ktl *k, void *options)
{
	struct ktl_print_flags *flags = options;
	CLEANUP(buf_done) struct buf out = BUF_INIT(KTL_TEXT_MAX);
	struct ktl_page p = { .k = k };
	struct ktl_printer printer;
	struct val answer;
	if (ktl_printer_init(k, flags, false, &printer) < 0)
		return -1;
	if (review(k, TYPE(authentication_v1, SelfSubjectReview), VAL_EMPTY, &answer) < 0)
		return -1;
	if (printer.format != KTL_HUMAN)
		return ktl_print(k, &printer, NULL, answer);
	struct val user = val_get(answer, status, userInfo);
	ktl_tabs_for_table(&p.tabs);
	ktl_say(&p, 0, "ATTRIBUTE\tVALUE\n");
	if (val_str(user, username).n)
		ktl_say(&p, 0, "Username\t" STR_FMT "\n", STR_ARG(val_str(user, username)));
	if (val_str(user, uid).n)
		ktl_say(&p, 0, "UID\t" STR_FMT "\n", STR_ARG(val_str(user, uid)));
	say_list(&p, "Groups", STR_NONE, val_get(user, groups));
	VAL_EACH_MEMBER(m, val_sorted(&k->arena, val_get(user, extra)))
		say_list(&p, "Extra: ", atom_str(m->key), m->val);
	ktl_tabs_flush(&p.tabs, &out);
	ktl_tabs_done(&p.tabs);
	printf(STR_FMT, STR_ARG(buf_str(&out)));
	return 0;
}

static const struct ktl_command whoami = {
	.name = "whoami", .summary = "Experimental: Check self subject attributes", .usage = "auth whoami [options]",
	.flags = (const struct ktl_flag_set[]){ { ktl_print_flags, 0 }, { 0 } }, .size = sizeof(struct ktl_print_flags), .run = run_whoami,
};

const struct ktl_command ktl_auth = {
	.name = "auth", .group = "Cluster Management Commands", .summary = "Inspect authorization", .usage = "auth [flags] [options]",
	.below = (const struct ktl_command *const[]){ &can_i, &whoami, NULL }, .run = ktl_run_group,
};
