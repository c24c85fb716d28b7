/* kubectl rollout: restart, pause, resume, and the commands of the other files. */
#include "kubectl/rollout.h"

#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "codec/types.h"
#include "kubectl/commands.h"

/* ---- common ---- */

const struct ktl_flag ktl_rollout_flags[] = {
	{ "selector", 'l', KTL_STRING, offsetof(struct ktl_rollout, selector), NULL, "Only objects with these labels", NULL },
	{ 0 },
};

/* Of those that change something and know no dry run. */
static const struct ktl_flag manager_flags[] = {
	{ "field-manager", 0, KTL_STRING, offsetof(struct ktl_rollout, write.manager), "kubectl-rollout", "The name under which fields are set", NULL },
	{ 0 },
};

#define CHANGE_SETS (const struct ktl_flag_set[]){ KTL_ROLLOUT_ROWS, { manager_flags, 0 }, { 0 } }

int ktl_rollout_infos(struct ktl *k, const struct ktl_rollout *o, bool keep_going, struct ktl_infos *ret)
{
	struct ktl_builder b = { .files = &o->files, .args = k->args, .selector = o->selector, .types_alone = true, .keep_going = keep_going, .latest = true };
	if (!k->args.n && ktl_no_files(&o->files))
		return ktl_fail(k, "required resource not specified");
	return ktl_namespace(k, &b.namespace, &b.enforce_namespace) < 0 ? -1 : ktl_build(k, &b, ret);
}

enum ktl_workload ktl_workload_of(const struct ktl_info *info)
{
	const struct type *type = info->kind->type;
	return type == TYPE(apps_v1, Deployment)  ? KTL_DEPLOYMENT :
	       type == TYPE(apps_v1, DaemonSet)   ? KTL_DAEMON_SET :
	       type == TYPE(apps_v1, StatefulSet) ? KTL_STATEFUL_SET : KTL_OTHER;
}

/* ---- changing one thing ---- */

struct change {
	const char *done;            /* "paused" */
	/* Makes the patch, or notes why not. */
	int (*patch)(struct ktl *k, const struct ktl_info *info, str *ret);
};

static int run_change(struct ktl *k, const struct ktl_rollout *o, const struct change *c)
{
	struct ktl_infos infos;
	struct ktl_printer p;
	struct ktl_write w = { .manager = str_of(o->write.manager) };
	if (ktl_printer_init(k, &o->print, false, &p) < 0 || ktl_rollout_infos(k, o, true, &infos) < 0)
		return -1;
	if (!infos.n && !k->n_failures)
		fprintf(stderr, "No resources found in " STR_FMT " namespace.\n", STR_ARG(k->config.namespace));
	for (size_t i = 0; i < infos.n; i++) {
		struct val result = infos.v[i].object;
		str text;
		if (c->patch(k, &infos.v[i], &text) < 0)
			continue;
		if (ktl_patch_object(k, &w, &infos.v[i], KTL_PATCH_STRATEGIC, text, STR_NONE, false, &result) < 0) {
			(void)ktl_fail_before(k, "failed to patch: ");
			continue;
		}
		(void)ktl_print_done(k, &p, infos.v[i].kind, result, c->done);
	}
	return k->n_failures ? -1 : 0;
}

static str name_of(struct ktl *k, const struct ktl_info *info)
{
	return arena_printf(&k->arena, STR_FMT " " STR_FMT, STR_ARG(ktl_kind_resource(k, info->kind)), STR_ARG(ktl_quote(k, info->name)));
}

static int patch_pause(struct ktl *k, const struct ktl_info *info, str *ret)
{
	if (ktl_workload_of(info) != KTL_DEPLOYMENT)
		return ktl_fail(k, STR_FMT " pausing is not supported", STR_ARG(name_of(k, info)));
	if (val_bool(info->object, spec, paused))
		return ktl_fail(k, STR_FMT " is already paused", STR_ARG(name_of(k, info)));
	*ret = STR("{\"spec\":{\"paused\":true}}");
	return 0;
}

static int patch_resume(struct ktl *k, const struct ktl_info *info, str *ret)
{
	if (ktl_workload_of(info) != KTL_DEPLOYMENT)
		return ktl_fail(k, STR_FMT " resuming is not supported", STR_ARG(name_of(k, info)));
	if (!val_bool(info->object, spec, paused))
		return ktl_fail(k, STR_FMT " is not paused", STR_ARG(name_of(k, info)));
	*ret = STR("{\"spec\":{\"paused\":null}}");
	return 0;
}

/* Now, as Go's RFC3339 has it in local time. */
static str local_now(struct ktl *k)
{
	time_t now = (time_t)(clock_wall_ns() / NS_PER_S);
	char text[48];
	struct tm tm;
	(void)localtime_r(&now, &tm);
	size_t n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S%z", &tm);
	if (n < 5 || tm.tm_gmtoff == 0)
		return arena_printf(&k->arena, "%.*sZ", (int)(n - 5), text);
	return arena_printf(&k->arena, "%.*s:%s", (int)(n - 2), text, text + n - 2);
}

static int patch_restart(struct ktl *k, const struct ktl_info *info, str *ret)
{
	str now = local_now(k), before = val_as_str(val_find(val_get(info->object, spec, template, metadata, annotations), STR("kubectl.kubernetes.io/restartedAt")));
	if (ktl_workload_of(info) == KTL_OTHER)
		return ktl_fail(k, STR_FMT " restarting is not supported", STR_ARG(name_of(k, info)));
	if (val_bool(info->object, spec, paused))
		return ktl_fail(k, STR_FMT " can't restart paused deployment (run rollout resume first)", STR_ARG(name_of(k, info)));
	if (str_eq(now, before))
		return ktl_fail(k, "failed to create patch for " STR_FMT ": if restart has already been triggered within the past second, please wait before attempting to trigger another",
				STR_ARG(info->name));
	*ret = arena_printf(&k->arena, "{\"spec\":{\"template\":{\"metadata\":{\"annotations\":{\"kubectl.kubernetes.io/restartedAt\":\"" STR_FMT "\"}}}}}",
			    STR_ARG(now));
	return 0;
}

static int run_pause(struct ktl *k, void *options)
{
	return run_change(k, options, &(struct change){ "paused", patch_pause });
}

static int run_resume(struct ktl *k, void *options)
{
	return run_change(k, options, &(struct change){ "resumed", patch_resume });
}

static int run_restart(struct ktl *k, void *options)
{
	return run_change(k, options, &(struct change){ "restarted", patch_restart });
}

static const struct ktl_command rollout_pause = {
	.name = "pause", .summary = "Mark the provided resource as paused", .usage = "rollout pause RESOURCE [options]", .flags = CHANGE_SETS,
	.size = sizeof(struct ktl_rollout), .run = run_pause,
};
static const struct ktl_command rollout_resume = {
	.name = "resume", .summary = "Resume a paused resource", .usage = "rollout resume RESOURCE [options]", .flags = CHANGE_SETS,
	.size = sizeof(struct ktl_rollout), .run = run_resume,
};
static const struct ktl_command rollout_restart = {
	.name = "restart", .summary = "Restart a resource", .usage = "rollout restart RESOURCE [options]", .flags = CHANGE_SETS,
	.size = sizeof(struct ktl_rollout), .run = run_restart,
};

const struct ktl_command ktl_rollout = {
	.name = "rollout",
	.group = "Deploy Commands",
	.summary = "Manage the rollout of a resource",
	.manual = "Shows and changes how deployments, daemon sets and stateful sets bring out new versions.",
	.examples = "  kubectl rollout status deployment/web\n  kubectl rollout undo deployment/web\n  kubectl rollout restart deployment -l app=web\n",
	.usage = "rollout SUBCOMMAND [options]",
	.below = (const struct ktl_command *const[]){ &ktl_rollout_history, &rollout_pause, &rollout_restart, &rollout_resume, &ktl_rollout_status,
						       &ktl_rollout_undo, NULL },
	.run = ktl_run_group,
};
