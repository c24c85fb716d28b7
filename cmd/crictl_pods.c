/* crictl: pods, and the runtime itself. */
#include <stdio.h>

#include "cmd/crictl.h"
#include "codec/atoms.h"
#include "codec/types.h"

int crictl_version(struct crictl *c, struct err *err)
{
	struct val v;
	int r = crictl_call(c, &rpc_RuntimeService_Version, OBJECT(&c->arena, F(version, VAL_LIT("v1"))), &v, err);

	if (r < 0 || crictl_show_as(c, v, rpc_RuntimeService_Version.response))
		return r;
	printf("Version:  " STR_FMT "\nRuntimeName:  " STR_FMT "\nRuntimeVersion:  " STR_FMT "\nRuntimeApiVersion:  " STR_FMT "\n",
	       STR_ARG(val_str(v, version)), STR_ARG(val_str(v, runtimeName)), STR_ARG(val_str(v, runtimeVersion)),
	       STR_ARG(val_str(v, runtimeApiVersion)));
	return 0;
}

int crictl_info(struct crictl *c, struct err *err)
{
	struct val v;
	int r = crictl_call(c, &rpc_RuntimeService_Status, OBJECT(&c->arena, F(verbose, val_of_bool(true))), &v, err);

	return r < 0 ? r : crictl_show_status(c, val_get(v, status), TYPE(cri_v1, RuntimeStatus), val_get(v, info), err);
}

/* ---- lists ---- */

static struct val labels_of(struct crictl *c)
{
	struct val_builder b = val_builder(&c->arena);

	for (size_t i = 0; i < c->n_labels; i++) {
		str key, value;
		(void)str_cut(str_of(c->labels[i]), '=', &key, &value);
		val_add_member(&b, atom_make(&c->arena, key), VAL_STR(value));
	}
	return val_end_object(&b);
}

static struct val pod_filter(struct crictl *c)
{
	struct arena *a = &c->arena;
	struct val state = VAL_EMPTY;

	if (c->state)
		state = OBJECT(a, F(state, strcasecmp(c->state, "ready") == 0 ? VAL_LIT("SANDBOX_READY") : VAL_LIT("SANDBOX_NOTREADY")));
	return OBJECT(a, F(id, c->id ? VAL_STR(str_of(c->id)) : VAL_EMPTY), F(state, state), F(labelSelector, labels_of(c)));
}

static bool pod_wanted(const struct crictl *c, struct val pod)
{
	return (!c->name || str_find(val_str(pod, metadata, name), str_of(c->name)) >= 0) &&
	       (!c->namespace || str_eq(val_str(pod, metadata, namespace), str_of(c->namespace)));
}

static void add_pod(const struct crictl *c, struct table *t, struct val pod)
{
	struct arena *a = t->arena;
	bool ready = !str_eq(val_str(pod, state), STR("SANDBOX_NOTREADY"));
	str handler = val_str(pod, runtimeHandler);
	const char *cells[] = {
		crictl_short_id(c, a, val_str(pod, id)), crictl_ago(a, val_int(pod, createdAt)), ready ? "Ready" : "NotReady",
		crictl_text(a, val_str(pod, metadata, name)), crictl_text(a, val_str(pod, metadata, namespace)),
		arena_printf(a, "%lld", (long long)val_int(pod, metadata, attempt)).p, handler.n ? crictl_text(a, handler) : "(default)",
	};
	table_add(t, cells);
}

int crictl_pods(struct crictl *c, struct err *err)
{
	static const char *const heading[] = { "POD ID", "CREATED", "STATE", "NAME", "NAMESPACE", "ATTEMPT", "RUNTIME" };
	struct arena *a = &c->arena;
	struct table t;
	struct val v;
	int r = crictl_call(c, &rpc_RuntimeService_ListPodSandbox, OBJECT(a, F(filter, pod_filter(c))), &v, err);

	if (r < 0 || crictl_show_as(c, v, rpc_RuntimeService_ListPodSandbox.response))
		return r;
	table_init(&t, a, ARRAY_LEN(heading), heading);
	struct val items = val_get(v, items);
	for (size_t i = val_len(items); i-- > 0;) { /* newest first */
		struct val pod = val_at(items, i);
		if (!pod_wanted(c, pod))
			continue;
		if (c->quiet)
			printf(STR_FMT "\n", STR_ARG(val_str(pod, id)));
		else
			add_pod(c, &t, pod);
	}
	if (!c->quiet)
		table_print(&t);
	return 0;
}

/* ---- one ---- */

int crictl_run_pod(struct crictl *c, struct val config, str *ret_id, struct err *err)
{
	struct arena *a = &c->arena;
	struct val v;
	int r = crictl_call(c, &rpc_RuntimeService_RunPodSandbox,
			    OBJECT(a, F(config, config), F(runtimeHandler, c->handler ? VAL_STR(str_of(c->handler)) : VAL_EMPTY)), &v, err);

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
	printf(STR_FMT "\n", STR_ARG(id));
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
	if (!str_eq(val_str(v, status, state), STR("SANDBOX_NOTREADY"))) {
		if (!c->force)
			return err_set(err, ERR_CONFLICT, "pod sandbox \"" STR_FMT "\" is running, please stop it first", STR_ARG(id));
		if ((r = stop(c, id, err)) < 0)
			return r;
	}
	if ((r = crictl_call(c, &rpc_RuntimeService_RemovePodSandbox, request, &v, err)) < 0)
		return err_wrap(err, r, "removing the pod sandbox \"" STR_FMT "\"", STR_ARG(id));
	printf("Removed sandbox " STR_FMT "\n", STR_ARG(id));
	return 0;
}

int crictl_rmp(struct crictl *c, struct err *err)
{
	struct val v;
	int r = 0;

	for (size_t i = 0; i < c->n && r == 0; i++)
		r = remove_pod(c, str_of(c->arguments[i]), err);
	if (!c->all || r < 0 ||
	    (r = crictl_call(c, &rpc_RuntimeService_ListPodSandbox, VAL_EMPTY_OBJECT, &v, err)) < 0)
		return r;
	VAL_EACH(pod, val_get(v, items))
		if (r == 0)
			r = remove_pod(c, val_str(*pod, id), err);
	return r;
}

int crictl_inspectp(struct crictl *c, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < c->n && r == 0; i++) {
		struct val v, request = OBJECT(&c->arena, F(podSandboxId, VAL_STR(str_of(c->arguments[i]))), F(verbose, val_of_bool(true)));
		if ((r = crictl_call(c, &rpc_RuntimeService_PodSandboxStatus, request, &v, err)) < 0)
			return err_wrap(err, r, "getting the pod sandbox status for \"%s\"", c->arguments[i]);
		r = crictl_show_status(c, val_get(v, status), TYPE(cri_v1, PodSandboxStatus), val_get(v, info), err);
	}
	return r;
}

int crictl_statsp(struct crictl *c, struct err *err)
{
	static const char *const heading[] = { "POD ID", "POD", "CPU (nanocores)", "MEM" };
	struct arena *a = &c->arena;
	struct table t;
	struct val v;
	int r = crictl_call(c, &rpc_RuntimeService_ListPodSandboxStats, OBJECT(a, F(filter, OBJECT(a, F(id, c->id ? VAL_STR(str_of(c->id)) : VAL_EMPTY)))), &v, err);

	if (r < 0 || crictl_show_as(c, v, rpc_RuntimeService_ListPodSandboxStats.response))
		return r;
	table_init(&t, a, ARRAY_LEN(heading), heading);
	VAL_EACH(s, val_get(v, stats)) {
		const char *cells[] = {
			crictl_short_id(c, a, val_str(*s, attributes, id)), crictl_text(a, val_str(*s, attributes, metadata, name)),
			arena_printf(a, "%lld", (long long)val_int(*s, linux, cpu, usageNanoCores, value)).p,
			crictl_size(a, (uint64_t)val_int(*s, linux, memory, workingSetBytes, value)),
		};
		table_add(&t, cells);
	}
	table_print(&t);
	return 0;
}
