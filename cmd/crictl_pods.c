/* crictl: pods, and the runtime itself. */
#include <stdio.h>

#include "base/random.h"
#include "cmd/crictl.h"
#include "codec/atoms.h"
#include "codec/types.h"

int crictl_version(struct crictl *c, struct err *err)
{
	struct arena *a = &c->arena;
	struct val v;
	int r = crictl_call(c, &rpc_RuntimeService_Version, OBJECT(a, F(version, VAL_LIT("v1"))), &v, err);

	if (r < 0 || crictl_show_as(c, v, rpc_RuntimeService_Version.response))
		return r;
	printf("Version:  %s\nRuntimeName:  %s\nRuntimeVersion:  %s\nRuntimeApiVersion:  %s\n", crictl_text(a, val_str(v, version)),
	       crictl_text(a, val_str(v, runtimeName)), crictl_text(a, val_str(v, runtimeVersion)),
	       crictl_text(a, val_str(v, runtimeApiVersion)));
	return 0;
}

int crictl_info(struct crictl *c, struct err *err)
{
	struct val v, all;
	int r = crictl_check_output(c, false, err);

	if (r < 0 || (r = crictl_call(c, &rpc_RuntimeService_Status, OBJECT(&c->arena, F(verbose, val_of_bool(!c->quiet))), &v, err)) < 0 ||
	    (r = crictl_status(c, val_get(v, status), TYPE(cri_v1, RuntimeStatus), val_get(v, info), &all, err)) < 0)
		return r;
	all = val_with(&c->arena, all, val_get(v, runtimeHandlers), runtimeHandlers);
	crictl_show_statuses(c, &all, 1);
	return 0;
}

int crictl_runtime_config(struct crictl *c, struct err *err)
{
	struct val v;
	int r = crictl_call(c, &rpc_RuntimeService_RuntimeConfig, VAL_EMPTY_OBJECT, &v, err);

	if (r < 0)
		return err_wrap(err, r, "get runtime config");
	str driver = val_str(v, linux, cgroupDriver);
	printf("cgroup driver:   %s\n", driver.n ? crictl_text(&c->arena, driver) : "SYSTEMD"); /* the first is not written */
	return 0;
}

int crictl_update_runtime_config(struct crictl *c, struct err *err)
{
	struct arena *a = &c->arena;
	struct val v, network = OBJECT(a, F(podCidr, VAL_STR(str_of(c->cidr))));
	int r = crictl_call(c, &rpc_RuntimeService_UpdateRuntimeConfig,
			    OBJECT(a, F(runtimeConfig, OBJECT(a, F(networkConfig, network)))), &v, err);

	return r < 0 ? err_wrap(err, r, "update runtime config") : 0;
}

/* ---- lists ---- */

static const char *state_of(struct val pod) { return str_eq(val_str(pod, state), STR("SANDBOX_NOTREADY")) ? "NotReady" : "Ready"; }

static void add_pod(const struct crictl *c, struct table *t, struct val pod)
{
	struct arena *a = t->arena;
	str handler = val_str(pod, runtimeHandler);
	const char *cells[] = {
		crictl_short_id(c, a, val_str(pod, id)), crictl_ago(a, val_int(pod, createdAt)), state_of(pod),
		crictl_text(a, val_str(pod, metadata, name)), crictl_text(a, val_str(pod, metadata, namespace)),
		arena_printf(a, "%lld", (long long)val_int(pod, metadata, attempt)).p, handler.n ? crictl_text(a, handler) : "(default)",
	};
	table_add(t, cells);
}

/* In words: of a list (with a state that fits it), and of a status. */
static void describe(struct crictl *c, struct val pod)
{
	struct arena *a = &c->arena;

	printf("ID: %s\n", crictl_text(a, val_str(pod, id)));
	printf("Name: %s\nUID: %s\nNamespace: %s\nAttempt: %lld\n", crictl_text(a, val_str(pod, metadata, name)),
	       crictl_text(a, val_str(pod, metadata, uid)), crictl_text(a, val_str(pod, metadata, namespace)),
	       (long long)val_int(pod, metadata, attempt));
	printf("Status: %s\nCreated: %s\n", state_of(pod), crictl_ago(a, val_int(pod, createdAt)));
	if (val_str(pod, network, ip).n)
		printf("IP Addresses: %s\n", crictl_text(a, val_str(pod, network, ip)));
	VAL_EACH(more, val_get(pod, network, additionalIps))
		printf("Additional IP: %s\n", crictl_text(a, val_str(*more, ip)));
	crictl_show_map(a, "Labels", val_get(pod, labels));
	crictl_show_map(a, "Annotations", val_get(pod, annotations));
	str handler = val_str(pod, runtimeHandler);
	printf("Runtime: %s\n\n", handler.n ? crictl_text(a, handler) : "(default)");
}

int crictl_pods(struct crictl *c, struct err *err)
{
	static const char *const heading[] = { "POD ID", "CREATED", "STATE", "NAME", "NAMESPACE", "ATTEMPT", "RUNTIME" };
	struct arena *a = &c->arena;
	struct table t;
	struct val list;
	int r = crictl_check_output(c, true, err);

	if (r < 0 || (r = crictl_list_pods(c, &list, err)) < 0 ||
	    crictl_show_as(c, OBJECT(a, F(items, list)), rpc_RuntimeService_ListPodSandbox.response))
		return r;
	table_init(&t, a, ARRAY_LEN(heading), heading);
	VAL_EACH(pod, list) {
		if (c->quiet)
			printf("%s\n", crictl_text(a, val_str(*pod, id)));
		else if (c->verbose)
			describe(c, *pod);
		else
			add_pod(c, &t, *pod);
	}
	if (!c->quiet && !c->verbose)
		table_print(&t);
	return 0;
}

/* ---- one ---- */

/* A configuration that runtimes take: name and namespace are there, and an id of some kind. */
static int complete(struct crictl *c, struct val *config, struct err *err)
{
	enum { UID_BYTES = 16 };
	char uid[2 * UID_BYTES + 1];

	if (!val_str(*config, metadata, name).n || !val_str(*config, metadata, namespace).n)
		return err_set(err, ERR_BAD_REQUEST, "name or namespace is not in metadata");
	if (!val_str(*config, metadata, uid).n) {
		for (size_t i = 0; i < UID_BYTES; i++)
			(void)snprintf(uid + 2 * i, 3, "%02x", (unsigned)random_below(256));
		*config = val_with(&c->arena, *config, VAL_STR(arena_str(&c->arena, str_of(uid))), metadata, uid);
	}
	return 0;
}

int crictl_run_pod(struct crictl *c, struct val config, str *ret_id, struct err *err)
{
	struct arena *a = &c->arena;
	struct val v;
	int r = complete(c, &config, err);

	if (r == 0)
		r = crictl_call_within(c, &rpc_RuntimeService_RunPodSandbox,
				       OBJECT(a, F(config, config), F(runtimeHandler, c->handler ? VAL_STR(str_of(c->handler)) : VAL_EMPTY)),
				       c->cancel_ms ? c->cancel_ms : c->timeout_ms, &v, err);
	if (r < 0)
		return err_wrap(err, r, "run pod sandbox");
	*ret_id = val_str(v, podSandboxId);
	return 0;
}

int crictl_runp(struct crictl *c, struct err *err)
{
	struct val config;
	str id;
	int r = crictl_config_read(c, c->arguments[0], TYPE(cri_v1, PodSandboxConfig), &config, err);

	if (r < 0 || (r = crictl_run_pod(c, config, &id, err)) < 0)
		return r;
	printf("%s\n", crictl_text(&c->arena, id));
	return 0;
}

static int stop(struct crictl *c, str id, struct err *err)
{
	struct val v;
	int r = crictl_call(c, &rpc_RuntimeService_StopPodSandbox, OBJECT(&c->arena, F(podSandboxId, VAL_STR(id))), &v, err);

	return r < 0 ? err_wrap(err, r, "stopping the pod sandbox \"" STR_FMT "\"", STR_ARG(id)) : 0;
}

int crictl_stopp(struct crictl *c, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < c->n && r == 0; i++)
		if ((r = stop(c, str_of(c->arguments[i]), err)) == 0)
			printf("Stopped sandbox %s\n", c->arguments[i]);
	return r;
}

/* One that runs is removed only with --force. */
static int remove_pod(struct crictl *c, str id, struct err *err)
{
	struct val request = OBJECT(&c->arena, F(podSandboxId, VAL_STR(id))), v;
	int r = crictl_call(c, &rpc_RuntimeService_PodSandboxStatus, request, &v, err);

	if (r < 0)
		return err_wrap(err, r, "getting sandbox status of pod \"" STR_FMT "\"", STR_ARG(id));
	if (!str_eq(val_str(v, status, state), STR("SANDBOX_NOTREADY")) && !c->force)
		return err_set(err, ERR_CONFLICT, "pod sandbox \"" STR_FMT "\" is running, please stop it first", STR_ARG(id));
	/* also what is not ready may still have a network */
	if (c->force && (r = stop(c, id, err)) < 0)
		return r;
	if ((r = crictl_call(c, &rpc_RuntimeService_RemovePodSandbox, request, &v, err)) < 0)
		return err_wrap(err, r, "removing the pod sandbox \"" STR_FMT "\"", STR_ARG(id));
	printf("Removed sandbox %s\n", crictl_text(&c->arena, id));
	return 0;
}

int crictl_rmp(struct crictl *c, struct err *err)
{
	struct val v;
	int r = 0;

	if (!c->n && !c->all)
		return err_set(err, ERR_BAD_REQUEST, "which pods? Say their ids, or --all");
	for (size_t i = 0; i < c->n && r == 0; i++)
		r = remove_pod(c, str_of(c->arguments[i]), err);
	if (!c->all || r < 0 || (r = crictl_call(c, &rpc_RuntimeService_ListPodSandbox, VAL_EMPTY_OBJECT, &v, err)) < 0)
		return r;
	VAL_EACH(pod, val_get(v, items))
		if (r == 0)
			r = remove_pod(c, val_str(*pod, id), err);
	return r;
}

int crictl_inspectp(struct crictl *c, struct err *err)
{
	struct arena *a = &c->arena;
	struct val ids, v;
	size_t n = 0;
	int r = crictl_check_output(c, true, err);

	if (r < 0 || (r = crictl_ids(c, crictl_list_pods, &ids, err)) < 0)
		return r;
	struct val *all = ARENA_ARRAY(a, struct val, val_len(ids));
	VAL_EACH(id, ids) {
		struct val request = OBJECT(a, F(podSandboxId, *id), F(verbose, val_of_bool(!c->quiet)));
		if ((r = crictl_call(c, &rpc_RuntimeService_PodSandboxStatus, request, &v, err)) < 0)
			return err_wrap(err, r, "getting the pod sandbox status for \"" STR_FMT "\"", STR_ARG(val_as_str(*id)));
		if (strcmp(c->output, "table") == 0)
			describe(c, val_get(v, status));
		else if ((r = crictl_status(c, val_get(v, status), TYPE(cri_v1, PodSandboxStatus), val_get(v, info), &all[n++], err)) < 0)
			return r;
	}
	crictl_show_statuses(c, all, n);
	return 0;
}
