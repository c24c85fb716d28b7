/* crictl: containers. */
#include <stdio.h>
#include <unistd.h>

#include "cmd/crictl.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "runtime/logs.h"

static struct val text(const char *s) { return s ? VAL_STR(str_of(s)) : VAL_EMPTY; }

static struct val id_request(struct crictl *c, const char *id) { return OBJECT(&c->arena, F(containerId, VAL_STR(str_of(id)))); }

/* ---- lists ---- */

static const struct {
	const char *word, *state, *shown;
} states[] = {
	{ "created", "CONTAINER_CREATED", "Created" },
	{ "running", "CONTAINER_RUNNING", "Running" },
	{ "exited", "CONTAINER_EXITED", "Exited" },
	{ "unknown", "CONTAINER_UNKNOWN", "Unknown" },
};

static const char *state_shown(str state)
{
	for (size_t i = 0; i < ARRAY_LEN(states); i++)
		if (str_eq(state, str_of(states[i].state)))
			return states[i].shown;
	return states[0].shown; /* the first is not written */
}

static struct val container_filter(struct crictl *c)
{
	struct arena *a = &c->arena;
	struct val state = c->all ? VAL_EMPTY : OBJECT(a, F(state, VAL_LIT("CONTAINER_RUNNING")));
	struct val_builder labels = val_builder(a);

	for (size_t i = 0; c->state && i < ARRAY_LEN(states); i++)
		if (strcasecmp(c->state, states[i].word) == 0)
			state = OBJECT(a, F(state, VAL_STR(str_of(states[i].state))));
	if (c->latest || c->last > 0)
		state = VAL_EMPTY;
	for (size_t i = 0; i < c->n_labels; i++) {
		str key, value;
		(void)str_cut(str_of(c->labels[i]), '=', &key, &value);
		val_add_member(&labels, atom_make(a, key), VAL_STR(value));
	}
	return OBJECT(a, F(id, text(c->id)), F(podSandboxId, text(c->pod)), F(state, state), F(labelSelector, val_end_object(&labels)));
}

static struct val find_pod(struct val pods, str id)
{
	VAL_EACH(pod, val_get(pods, items))
		if (str_eq(val_str(*pod, id), id))
			return *pod;
	return VAL_EMPTY;
}

static void add_container(const struct crictl *c, struct table *t, struct val container, struct val pods)
{
	struct arena *a = t->arena;
	struct val pod = find_pod(pods, val_str(container, podSandboxId));
	str image = val_str(container, image, userSpecifiedImage);
	if (!image.n)
		image = val_str(container, image, image);
	bool is_id = str_starts(image, STR("sha256:"));
	const char *cells[] = {
		crictl_short_id(c, a, val_str(container, id)), is_id ? crictl_short_id(c, a, image) : crictl_text(a, image),
		crictl_ago(a, val_int(container, createdAt)), state_shown(val_str(container, state)),
		crictl_text(a, val_str(container, metadata, name)),
		arena_printf(a, "%lld", (long long)val_int(container, metadata, attempt)).p,
		crictl_short_id(c, a, val_str(container, podSandboxId)), crictl_text(a, val_str(pod, metadata, name)),
		crictl_text(a, val_str(pod, metadata, namespace)),
	};
	table_add(t, cells);
}

int crictl_ps(struct crictl *c, struct err *err)
{
	static const char *const heading[] = { "CONTAINER", "IMAGE", "CREATED", "STATE", "NAME", "ATTEMPT", "POD ID", "POD", "NAMESPACE" };
	struct arena *a = &c->arena;
	int64_t left = c->latest ? 1 : c->last > 0 ? c->last : INT64_MAX;
	struct table t;
	struct val v, pods;
	int r = crictl_call(c, &rpc_RuntimeService_ListContainers, OBJECT(a, F(filter, container_filter(c))), &v, err);

	if (r < 0 || crictl_show_as(c, v, rpc_RuntimeService_ListContainers.response) ||
	    (r = crictl_call(c, &rpc_RuntimeService_ListPodSandbox, VAL_EMPTY_OBJECT, &pods, err)) < 0)
		return r;
	table_init(&t, a, ARRAY_LEN(heading), heading);
	struct val list = val_get(v, containers);
	for (size_t i = val_len(list); i-- > 0 && left > 0;) { /* newest first */
		struct val one = val_at(list, i);
		if ((c->name && str_find(val_str(one, metadata, name), str_of(c->name)) < 0) ||
		    (c->image && str_find(val_str(one, image, image), str_of(c->image)) < 0))
			continue;
		left--;
		if (c->quiet)
			printf(STR_FMT "\n", STR_ARG(val_str(one, id)));
		else
			add_container(c, &t, one, pods);
	}
	if (!c->quiet)
		table_print(&t);
	return 0;
}

/* ---- making and ending ---- */

static int create(struct crictl *c, str pod, struct val config, struct val pod_config, str *ret_id, struct err *err)
{
	struct arena *a = &c->arena;
	struct val v, pulled;
	int r;

	if (!c->no_pull) {
		struct val image = val_get(config, image), there;
		if ((r = crictl_call(c, &rpc_ImageService_ImageStatus, OBJECT(a, F(image, image)), &there, err)) < 0)
			return r;
		if (!val_has(there, image) &&
		    (r = crictl_call(c, &rpc_ImageService_PullImage, OBJECT(a, F(image, image), F(sandboxConfig, pod_config)), &pulled, err)) < 0)
			return err_wrap(err, r, "pulling the image");
	}
	r = crictl_call(c, &rpc_RuntimeService_CreateContainer,
			OBJECT(a, F(podSandboxId, VAL_STR(pod)), F(config, config), F(sandboxConfig, pod_config)), &v, err);
	if (r < 0)
		return err_wrap(err, r, "creating container");
	*ret_id = val_str(v, containerId);
	return 0;
}

int crictl_create(struct crictl *c, struct err *err)
{
	struct val config, pod_config;
	str id;
	int r = crictl_config_read(c, c->arguments[1], TYPE(cri_v1, ContainerConfig), &config, err);

	if (r < 0 || (r = crictl_config_read(c, c->arguments[2], TYPE(cri_v1, PodSandboxConfig), &pod_config, err)) < 0 ||
	    (r = create(c, str_of(c->arguments[0]), config, pod_config, &id, err)) < 0)
		return r;
	printf(STR_FMT "\n", STR_ARG(id));
	return 0;
}

static int start(struct crictl *c, const char *id, struct err *err)
{
	struct val v;
	int r = crictl_call(c, &rpc_RuntimeService_StartContainer, id_request(c, id), &v, err);

	return r < 0 ? err_wrap(err, r, "starting the container \"%s\"", id) : 0;
}

int crictl_run(struct crictl *c, struct err *err)
{
	struct val config, pod_config;
	str pod, id;
	int r = crictl_config_read(c, c->arguments[0], TYPE(cri_v1, ContainerConfig), &config, err);

	if (r < 0 || (r = crictl_config_read(c, c->arguments[1], TYPE(cri_v1, PodSandboxConfig), &pod_config, err)) < 0 ||
	    (r = crictl_run_pod(c, pod_config, &pod, err)) < 0 || (r = create(c, pod, config, pod_config, &id, err)) < 0)
		return r;
	if ((r = start(c, crictl_text(&c->arena, id), err)) < 0)
		return r;
	printf(STR_FMT "\n", STR_ARG(id));
	return 0;
}

int crictl_start(struct crictl *c, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < c->n && r == 0; i++)
		if ((r = start(c, c->arguments[i], err)) == 0)
			printf("%s\n", c->arguments[i]);
	return r;
}

static int stop(struct crictl *c, const char *id, struct err *err)
{
	struct arena *a = &c->arena;
	struct val v;
	int64_t timeout = MAX(c->action_timeout_s, INT64_C(0));
	int r = crictl_call(c, &rpc_RuntimeService_StopContainer,
			    OBJECT(a, F(containerId, VAL_STR(str_of(id))), F(timeout, val_of_int(timeout))), &v, err);

	return r < 0 ? err_wrap(err, r, "stopping the container \"%s\"", id) : 0;
}

int crictl_stop(struct crictl *c, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < c->n && r == 0; i++)
		if ((r = stop(c, c->arguments[i], err)) == 0)
			printf("%s\n", c->arguments[i]);
	return r;
}

static int remove_one(struct crictl *c, const char *id, struct err *err)
{
	struct val v;
	int r = crictl_call(c, &rpc_RuntimeService_ContainerStatus, id_request(c, id), &v, err);

	if (r < 0)
		return err_wrap(err, r, "getting container status of \"%s\"", id);
	if (str_eq(val_str(v, status, state), STR("CONTAINER_RUNNING"))) {
		if (!c->force)
			return err_set(err, ERR_CONFLICT, "container \"%s\" is running, please stop it first", id);
		if ((r = stop(c, id, err)) < 0)
			return r;
	}
	if ((r = crictl_call(c, &rpc_RuntimeService_RemoveContainer, id_request(c, id), &v, err)) < 0)
		return err_wrap(err, r, "removing the container \"%s\"", id);
	printf("%s\n", id);
	return 0;
}

int crictl_rm(struct crictl *c, struct err *err)
{
	struct val v;
	int r = 0;

	for (size_t i = 0; i < c->n && r == 0; i++)
		r = remove_one(c, c->arguments[i], err);
	if (!c->all || r < 0 || (r = crictl_call(c, &rpc_RuntimeService_ListContainers, VAL_EMPTY_OBJECT, &v, err)) < 0)
		return r;
	VAL_EACH(one, val_get(v, containers))
		if (r == 0)
			r = remove_one(c, crictl_text(&c->arena, val_str(*one, id)), err);
	return r;
}

/* update ID key=value...: fields of LinuxContainerResources. */
int crictl_update(struct crictl *c, struct err *err)
{
	struct arena *a = &c->arena;
	struct val_builder b = val_builder(a);
	struct val v;

	for (size_t i = 1; i < c->n; i++) {
		str key, value;
		int64_t n;
		(void)str_cut(str_of(c->arguments[i]), '=', &key, &value);
		if (!type_field(TYPE(cri_v1, LinuxContainerResources), atom_find(key)))
			return err_set(err, ERR_BAD_REQUEST, "there is no resource '" STR_FMT "'; cpuShares, cpuQuota, cpuPeriod and"
				       " memoryLimitInBytes are some", STR_ARG(key));
		val_add_member(&b, atom_find(key), str_to_i64(value, &n) ? val_of_int(n) : VAL_STR(value));
	}
	struct val request = OBJECT(a, F(containerId, VAL_STR(str_of(c->arguments[0]))), F(linux, val_end_object(&b)));
	int r = crictl_call(c, &rpc_RuntimeService_UpdateContainerResources, request, &v, err);
	if (r == 0)
		printf("%s\n", c->arguments[0]);
	return r;
}

/* ---- looking ---- */

int crictl_inspect(struct crictl *c, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < c->n && r == 0; i++) {
		struct val v, request = val_with(&c->arena, id_request(c, c->arguments[i]), val_of_bool(true), verbose);
		if ((r = crictl_call(c, &rpc_RuntimeService_ContainerStatus, request, &v, err)) < 0)
			return err_wrap(err, r, "getting the status of the container \"%s\"", c->arguments[i]);
		r = crictl_show_status(c, val_get(v, status), TYPE(cri_v1, ContainerStatus), val_get(v, info), err);
	}
	return r;
}

int crictl_stats(struct crictl *c, struct err *err)
{
	static const char *const heading[] = { "CONTAINER", "NAME", "CPU %", "MEM", "DISK", "INODES" };
	struct arena *a = &c->arena;
	struct val filter = OBJECT(a, F(id, text(c->n ? c->arguments[0] : c->id)), F(podSandboxId, text(c->pod))), v;
	struct table t;
	int r = crictl_call(c, &rpc_RuntimeService_ListContainerStats, OBJECT(a, F(filter, filter)), &v, err);

	if (r < 0 || crictl_show_as(c, v, rpc_RuntimeService_ListContainerStats.response))
		return r;
	table_init(&t, a, ARRAY_LEN(heading), heading);
	VAL_EACH(s, val_get(v, stats)) {
		const char *cells[] = {
			crictl_short_id(c, a, val_str(*s, attributes, id)), crictl_text(a, val_str(*s, attributes, metadata, name)),
			arena_printf(a, "%.2f", (double)val_int(*s, cpu, usageNanoCores, value) / 1e7).p,
			crictl_size(a, (uint64_t)val_int(*s, memory, workingSetBytes, value)),
			crictl_size(a, (uint64_t)val_int(*s, writableLayer, usedBytes, value)),
			arena_printf(a, "%lld", (long long)val_int(*s, writableLayer, inodesUsed, value)).p,
		};
		table_add(&t, cells);
	}
	table_print(&t);
	return 0;
}

/* ---- logs ---- */

static int write_log(void *arg, enum logs_stream stream, str piece, struct err *err)
{
	FILE *out = stream == LOGS_STDERR ? stderr : stdout;

	(void)arg;
	if (fwrite(piece.p, 1, piece.n, out) != piece.n || fflush(out) != 0)
		return err_set(err, ERR_GONE, "nobody reads");
	return 0;
}

static bool is_running(void *arg)
{
	struct crictl *c = arg;
	struct val v;

	return crictl_call(c, &rpc_RuntimeService_ContainerStatus, id_request(c, c->arguments[0]), &v, NULL) == 0 &&
	       str_eq(val_str(v, status, state), STR("CONTAINER_RUNNING"));
}

int crictl_logs(struct crictl *c, struct err *err)
{
	struct logs_options o = LOGS_OPTIONS_INIT;
	struct logs_reader reader = { write_log, is_running, c };
	struct val v;
	int r = crictl_call(c, &rpc_RuntimeService_ContainerStatus, id_request(c, c->arguments[0]), &v, err);

	if (r < 0)
		return r;
	str path = val_str(v, status, logPath);
	if (!path.n)
		return err_set(err, ERR_NOT_FOUND, "the container has not set log path");
	o.tail = c->tail;
	o.follow = c->follow;
	o.timestamps = c->timestamps;
	return logs_read(crictl_text(&c->arena, path), &o, &reader, err);
}
