/* kubectl run: a pod with one container. */
#include "base/clock.h"
#include "codec/types.h"
#include "kubectl/attach.h"
#include "kubectl/commands.h"
#include "kubectl/create.h"
#include "kubectl/delete.h"
#include "machinery/image_name.h"
#include "machinery/patch.h"

struct run {
	struct ktl_create common;
	struct ktl_texts env, annotations;
	const char *image, *labels, *overrides, *override_type, *port, *pull_policy, *restart;
	const char *cascade;
	bool attach, command, expose, force, leave_stdin_open, privileged, quiet, rm, stdin, tty, wait;
	int64_t grace_s, running_timeout_ns, timeout_ns;
};

#define OPTION(member) offsetof(struct run, member)

static const struct ktl_flag run_flags[] = {
	{ "annotations", 0, KTL_ARRAY, OPTION(annotations), NULL, "An annotation of the pod, as key=value", NULL },
	{ "attach", 0, KTL_BOOL, OPTION(attach), NULL, "Wait for the pod to run, and attach to it; so it is with -i", NULL },
	{ "cascade", 0, KTL_STRING, OPTION(cascade), "background", NULL, "background" },
	{ "command", 0, KTL_BOOL, OPTION(command), NULL, "What stands behind -- is the command, not its arguments", NULL },
	{ "env", 0, KTL_ARRAY, OPTION(env), NULL, "A variable of the environment, as KEY=VALUE", NULL },
	{ "expose", 0, KTL_BOOL, OPTION(expose), NULL, "Make a service, too; needs --port", NULL },
	{ "force", 0, KTL_BOOL, OPTION(force), NULL, "With --rm: without waiting for confirmation that it has ended", NULL },
	{ "grace-period", 0, KTL_INT, OPTION(grace_s), "-1", "With --rm: seconds to end in; negative: as the pod says", NULL },
	{ "image", 0, KTL_STRING, OPTION(image), NULL, "Image of the container", NULL },
	{ "image-pull-policy", 0, KTL_STRING, OPTION(pull_policy), NULL, "Always, IfNotPresent or Never", NULL },
	{ "labels", 'l', KTL_STRING, OPTION(labels), NULL, "Labels of the pod, as a=b,c=d", NULL },
	{ "leave-stdin-open", 0, KTL_BOOL, OPTION(leave_stdin_open), NULL, "The input stays open after we have gone", NULL },
	{ "override-type", 0, KTL_STRING, OPTION(override_type), "merge", "How --overrides is applied: json, merge or strategic", NULL },
	{ "overrides", 0, KTL_STRING, OPTION(overrides), NULL, "JSON that changes the pod before it is created", NULL },
	{ "pod-running-timeout", 0, KTL_DURATION, OPTION(running_timeout_ns), "1m0s", "How long to wait until the pod runs", NULL },
	{ "port", 0, KTL_STRING, OPTION(port), NULL, "The port that the container listens at", NULL },
	{ "privileged", 0, KTL_BOOL, OPTION(privileged), NULL, "The container may do anything", NULL },
	{ "quiet", 'q', KTL_BOOL, OPTION(quiet), NULL, "No messages of our own", NULL },
	{ "restart", 0, KTL_STRING, OPTION(restart), "Always", "Restart policy: Always, OnFailure, Never", NULL },
	{ "rm", 0, KTL_BOOL, OPTION(rm), NULL, "Delete the pod after it has ended; for attached pods", NULL },
	{ "stdin", 'i', KTL_BOOL, OPTION(stdin), NULL, "The container has an input", NULL },
	{ "timeout", 0, KTL_DURATION, OPTION(timeout_ns), "0s", "With --rm --wait: how long to wait until it is gone", NULL },
	{ "tty", 't', KTL_BOOL, OPTION(tty), NULL, "The container has a terminal", NULL },
	{ "wait", 0, KTL_BOOL, OPTION(wait), NULL, "With --rm: wait until it is gone", NULL },
	{ 0 },
};

/* ---- the pod ---- */

static int make_env(struct ktl *k, const struct run *o, struct val *ret)
{
	struct val_builder list = val_builder(&k->arena);
	*ret = VAL_EMPTY;
	for (size_t i = 0; i < o->env.n; i++) {
		str name, value;
		if (!str_cut(str_of(o->env.v[i]), '=', &name, &value) || !name.n)
			return ktl_fail(k, "invalid env: %s", o->env.v[i]);
		val_add_item(&list, OBJECT(&k->arena, F(name, VAL_STR(name)), F(value, VAL_STR(value))));
	}
	if (o->env.n)
		*ret = val_end_list(&list);
	return 0;
}

static int make_notes(struct ktl *k, const struct run *o, struct val *ret)
{
	*ret = VAL_EMPTY;
	for (size_t i = 0; i < o->annotations.n; i++) {
		str name, value;
		if (!str_cut(str_of(o->annotations.v[i]), '=', &name, &value) || !name.n)
			return ktl_fail(k, "invalid annotations: %s", o->annotations.v[i]);
		*ret = val_put(&k->arena, *ret, atom_make(&k->arena, name), VAL_STR(value));
	}
	return 0;
}

static struct val flag_of(bool b) { return b ? val_of_bool(true) : VAL_EMPTY; }

static int make_pod(struct ktl *k, const struct run *o, str name, const char *restart, struct val *ret)
{
	struct arena *a = &k->arena;
	struct val env, notes, labels = OBJECT(a, F(run, VAL_STR(name))), ports = VAL_EMPTY, words = VAL_EMPTY;
	int64_t port;
	if (make_env(k, o, &env) < 0 || make_notes(k, o, &notes) < 0 || (o->labels[0] && ktl_parse_labels(k, o->labels, &labels) < 0))
		return -1;
	if (o->port[0] && !str_to_i64(str_of(o->port), &port))
		return ktl_fail(k, "strconv.Atoi: parsing \"%s\": invalid syntax", o->port);
	if (o->port[0])
		ports = LIST(a, OBJECT(a, F(containerPort, val_of_int(port))));
	if (k->args.n > 1)
		words = ktl_text_list(k, k->args.v + 1, k->args.n - 1);
	struct val security = o->privileged ? OBJECT(a, F(privileged, val_of_bool(true))) : VAL_EMPTY;
	struct val one = OBJECT(a, F(name, VAL_STR(name)), F(image, VAL_STR(str_of(o->image))), F(command, o->command ? words : VAL_EMPTY),
				F(args, o->command ? VAL_EMPTY : words), F(ports, ports), F(env, env), F(stdin, flag_of(o->stdin)),
				F(stdinOnce, flag_of(o->stdin && !o->leave_stdin_open)), F(tty, flag_of(o->tty)), F(securityContext, security),
				F(imagePullPolicy, o->pull_policy[0] ? VAL_STR(str_of(o->pull_policy)) : VAL_EMPTY));
	struct val spec = OBJECT(a, F(containers, LIST(a, one)), F(restartPolicy, VAL_STR(str_of(restart))), F(dnsPolicy, VAL_LIT("ClusterFirst")));
	struct val meta = OBJECT(a, F(name, VAL_STR(name)), F(labels, labels), F(annotations, notes));
	return ktl_typed(k, TYPE(core_v1, Pod), OBJECT(a, F(metadata, meta), F(spec, spec)), ret);
}

static int apply_overrides(struct ktl *k, const struct run *o, struct val *pod)
{
	struct err err = ERR_INIT;
	struct val patch;
	int r = ktl_parse_json(k, str_of(o->overrides), &patch, &err);
	if (r == 0 && ktl_is(o->override_type, "strategic"))
		r = strategic_patch_apply(&k->arena, *pod, patch, TYPE(core_v1, Pod), pod, &err);
	else if (r == 0 && ktl_is(o->override_type, "json"))
		r = json_patch_apply(&k->arena, *pod, patch, 0, pod, &err);
	else if (r == 0 && ktl_is(o->override_type, "merge"))
		r = merge_patch_apply(&k->arena, *pod, patch, pod, &err);
	else if (r == 0)
		return ktl_fail(k, "invalid override type: %s", o->override_type);
	return r < 0 ? ktl_fail_err(k, &err) : ktl_typed(k, TYPE(core_v1, Pod), *pod, pod);
}

static struct val make_service(struct ktl *k, const struct run *o, struct val pod)
{
	struct arena *a = &k->arena;
	int64_t port = 0;
	(void)str_to_i64(str_of(o->port), &port);
	struct val one = OBJECT(a, F(port, val_of_int(port)), F(protocol, VAL_LIT("TCP")), F(targetPort, val_of_int(port)));
	struct val labels = val_get(pod, metadata, labels);
	return OBJECT(a, F(metadata, OBJECT(a, F(name, val_get(pod, metadata, name)))), F(spec, OBJECT(a, F(ports, LIST(a, one)), F(selector, labels))));
}

/* ---- the command ---- */

static int check(struct ktl *k, const struct run *o, const char **ret_restart)
{
	const char *restart = o->restart, *pull = o->pull_policy;
	struct image_name image;
	if (!k->args.n || k->flags.dash == 0)
		return ktl_fail_usage(k, "NAME is required for run");
	if (o->running_timeout_ns <= 0)
		return ktl_fail_usage(k, "--pod-running-timeout must be higher than zero");
	if (!image_name_parse(str_of(o->image), &image))
		return ktl_fail(k, "Invalid image name \"%s\": invalid reference format", o->image);
	if (o->tty && !o->stdin)
		return ktl_fail_usage(k, "-i/--stdin is required for containers with -t/--tty=true");
	if (o->expose && !o->port[0])
		return ktl_fail_usage(k, "--port must be set when exposing a service");
	if (!restart[0])
		restart = o->stdin ? "OnFailure" : "Always";
	if (!ktl_is(restart, "Always") && !ktl_is(restart, "OnFailure") && !ktl_is(restart, "Never"))
		return ktl_fail_usage(k, "invalid restart policy: %s", restart);
	if (o->rm && !o->attach)
		return ktl_fail_usage(k, "--rm should only be used for attached containers");
	if (pull[0] && !ktl_is(pull, "Always") && !ktl_is(pull, "IfNotPresent") && !ktl_is(pull, "Never"))
		return ktl_fail_usage(k, "invalid image pull policy: %s", pull);
	*ret_restart = restart;
	return 0;
}

static int send(struct ktl *k, const struct ktl_write *w, const struct type *type, str namespace, bool explicit, struct ktl_info *info)
{
	info->kind = ktl_kind_of_type(k, type);
	info->namespace = namespace;
	if (w->dry == KTL_DRY_CLIENT && explicit)
		info->object = val_with(&k->arena, info->object, VAL_STR(namespace), metadata, namespace);
	info->name = val_str(info->object, metadata, name);
	if (ktl_create_object(k, w, info, &info->object) < 0)
		return -1;
	return ktl_typed(k, type, info->object, &info->object);
}

/* (suspends) --rm */
static int remove_made(struct ktl *k, const struct run *o, const struct ktl_info *info)
{
	struct ktl_delete d = { .grace_s = o->force && o->grace_s < 0 ? 0 : o->grace_s, .quiet = o->quiet };
	str uid;
	if (ktl_cascade_of(k, o->cascade, &d.cascade) < 0 || ktl_delete_object(k, &d, info, &uid) < 0)
		return -1;
	return o->wait ? ktl_wait_gone(k, info, uid, o->timeout_ns ? o->timeout_ns : 300 * NS_PER_S) : 0;
}

static int run(struct ktl *k, void *options)
{
	struct run *o = options;
	struct ktl_info pod = { 0 }, service = { 0 };
	struct ktl_printer p;
	struct ktl_write w;
	const char *restart = "";
	str namespace;
	bool explicit;
	if (!ktl_given(k, "attach") && o->stdin)
		o->attach = true;
	if (ktl_printer_init(k, &o->common.print, false, &p) < 0 ||
	    ktl_write_init(k, &o->common.write, &o->common.create, "kubectl-run", &p, &w) < 0 || check(k, o, &restart) < 0)
		return -1;
	w.validation = STR_NONE;
	p.done = "created";
	if (o->attach && w.dry != KTL_DRY_NONE)
		return ktl_fail_usage(k, "--dry-run=[server|client] can't be used with attached containers options (--attach, --stdin, or --tty)");
	if (ktl_namespace(k, &namespace, &explicit) < 0 || make_pod(k, o, str_of(k->args.v[0]), restart, &pod.object) < 0 ||
	    (o->overrides[0] && apply_overrides(k, o, &pod.object) < 0) || send(k, &w, TYPE(core_v1, Pod), namespace, explicit, &pod) < 0)
		return -1;
	if (o->expose) {
		service.object = make_service(k, o, pod.object);
		if (ktl_typed(k, TYPE(core_v1, Service), service.object, &service.object) < 0 ||
		    send(k, &w, TYPE(core_v1, Service), namespace, explicit, &service) < 0 || ktl_print(k, &p, service.kind, service.object) < 0)
			return -1;
	}
	if (!o->attach)
		return ktl_print(k, &p, pod.kind, pod.object);
	struct ktl_attach attach = { .stdin = o->stdin, .tty = o->tty, .quiet = o->quiet, .timeout_ns = o->running_timeout_ns,
				     .wait_for_exit = !o->leave_stdin_open && !ktl_is(restart, "Always"), .on_failure = ktl_is(restart, "OnFailure") };
	int r = ktl_attach_started(k, &pod, &attach);
	if (o->rm && (remove_made(k, o, &pod) < 0 || (o->expose && remove_made(k, o, &service) < 0)))
		r = -1;
	return r;
}

const struct ktl_command ktl_run = {
	.name = "run",
	.group = "Basic Commands (Beginner)",
	.summary = "Run a particular image on the cluster",
	.manual = "Creates a pod with one container that runs an image.",
	.examples = "  kubectl run web --image=nginx --port=80\n  kubectl run shell -it --rm --restart=Never --image=busybox -- sh\n"
		    "  kubectl run web --image=nginx --dry-run=client -o yaml\n",
	.usage = "run NAME --image=image [--env=\"key=value\"] [--port=port] [--dry-run=server|client] [--overrides=inline-json] [--command] -- [COMMAND] [args...] [options]",
	.flags = KTL_CREATE_SETS(run_flags),
	.size = sizeof(struct run),
	.required = "image",
	.run = run,
};
