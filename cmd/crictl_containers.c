/* crictl: containers. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "cmd/crictl.h"
#include "codec/atoms.h"
#include "codec/time.h"
#include "codec/types.h"
#include "runtime/logs.h"

static struct val id_request(struct crictl *c, const char *id) { return OBJECT(&c->arena, F(containerId, VAL_STR(str_of(id)))); }

/* ---- lists ---- */

static const char *state_shown(str state)
{
	if (str_eq(state, STR("CONTAINER_RUNNING")))
		return "Running";
	if (str_eq(state, STR("CONTAINER_EXITED")))
		return "Exited";
	return str_eq(state, STR("CONTAINER_UNKNOWN")) ? "Unknown" : "Created"; /* the first is not written */
}

static struct val find_pod(struct val pods, str id)
{
	VAL_EACH(pod, val_get(pods, items))
		if (str_eq(val_str(*pod, id), id))
			return *pod;
	return VAL_EMPTY;
}

/* (suspends) The image as it is shown: what the container has it under, or its first name. */
static const char *image_shown(struct crictl *c, struct val container)
{
	struct arena *a = &c->arena;
	str image = val_str(container, image, userSpecifiedImage);
	struct val v;

	if (!image.n)
		image = val_str(container, image, image);
	if (c->resolve_image &&
	    crictl_call(c, &rpc_ImageService_ImageStatus, OBJECT(a, F(image, val_get(container, image))), &v, NULL) == 0 &&
	    val_len(val_get(v, image, repoTags)))
		return crictl_text(a, val_as_str(val_at(val_get(v, image, repoTags), 0)));
	return str_starts(image, STR("sha256:")) ? crictl_short_id(c, a, image) : crictl_text(a, image);
}

static void add_container(struct crictl *c, struct table *t, struct val container, struct val pods)
{
	struct arena *a = t->arena;
	struct val pod = find_pod(pods, val_str(container, podSandboxId));
	const char *cells[] = {
		crictl_short_id(c, a, val_str(container, id)), image_shown(c, container), crictl_ago(a, val_int(container, createdAt)),
		state_shown(val_str(container, state)), crictl_text(a, val_str(container, metadata, name)),
		arena_printf(a, "%lld", (long long)val_int(container, metadata, attempt)).p,
		crictl_short_id(c, a, val_str(container, podSandboxId)), crictl_text(a, val_str(pod, metadata, name)),
		crictl_text(a, val_str(pod, metadata, namespace)),
	};
	table_add(t, cells);
}

/* In words: of a list, and of a status. */
static void describe(struct crictl *c, struct val container)
{
	struct arena *a = &c->arena;

	printf("ID: %s\n", crictl_text(a, val_str(container, id)));
	if (val_str(container, podSandboxId).n)
		printf("PodID: %s\n", crictl_text(a, val_str(container, podSandboxId)));
	printf("Name: %s\nAttempt: %lld\nState: %s\nImage: %s\nCreated: %s\n", crictl_text(a, val_str(container, metadata, name)),
	       (long long)val_int(container, metadata, attempt), state_shown(val_str(container, state)), image_shown(c, container),
	       crictl_ago(a, val_int(container, createdAt)));
	if (val_int(container, startedAt) > 0)
		printf("Started: %s\n", crictl_ago(a, val_int(container, startedAt)));
	if (val_int(container, finishedAt) > 0)
		printf("Finished: %s\nExit Code: %lld\n", crictl_ago(a, val_int(container, finishedAt)),
		       (long long)val_int(container, exitCode));
	crictl_show_map(a, "Labels", val_get(container, labels));
	crictl_show_map(a, "Annotations", val_get(container, annotations));
	printf("\n");
}

int crictl_ps(struct crictl *c, struct err *err)
{
	static const char *const heading[] = { "CONTAINER", "IMAGE", "CREATED", "STATE", "NAME", "ATTEMPT", "POD ID", "POD", "NAMESPACE" };
	struct arena *a = &c->arena;
	struct table t;
	struct val list, pods;
	int r = crictl_check_output(c, true, err);

	if (r < 0 || (r = crictl_list_containers(c, &list, err)) < 0 ||
	    crictl_show_as(c, OBJECT(a, F(containers, list)), rpc_RuntimeService_ListContainers.response) ||
	    (r = crictl_call(c, &rpc_RuntimeService_ListPodSandbox, VAL_EMPTY_OBJECT, &pods, err)) < 0)
		return r;
	table_init(&t, a, ARRAY_LEN(heading), heading);
	VAL_EACH(one, list) {
		if (c->quiet)
			printf("%s\n", crictl_text(a, val_str(*one, id)));
		else if (c->verbose)
			describe(c, *one);
		else
			add_container(c, &t, *one, pods);
	}
	if (!c->quiet && !c->verbose)
		table_print(&t);
	return 0;
}

/* ---- making and ending ---- */

static int create(struct crictl *c, str pod, struct val config, struct val pod_config, bool pull, str *ret_id, struct err *err)
{
	struct arena *a = &c->arena;
	struct val v;
	str ref;
	int r;

	if (!val_str(config, metadata, name).n)
		return err_set(err, ERR_BAD_REQUEST, "name is not in metadata");
	if (!val_str(config, image, image).n)
		return err_set(err, ERR_BAD_REQUEST, "image is not set");
	if (pull && (r = crictl_call(c, &rpc_ImageService_ImageStatus, OBJECT(a, F(image, val_get(config, image))), &v, err)) < 0)
		return r;
	if (pull && !val_has(v, image) && (r = crictl_pull_image(c, val_get(config, image), pod_config, &ref, err)) < 0)
		return r;
	r = crictl_call_within(c, &rpc_RuntimeService_CreateContainer,
			       OBJECT(a, F(podSandboxId, VAL_STR(pod)), F(config, config), F(sandboxConfig, pod_config)),
			       c->cancel_ms ? c->cancel_ms : c->timeout_ms, &v, err);
	if (r < 0)
		return err_wrap(err, r, "creating container");
	*ret_id = val_str(v, containerId);
	return 0;
}

/* Whether to fetch the image: what is said here goes before the settings. */
static int wants_pull(const struct crictl *c, bool usual, bool *ret, struct err *err)
{
	if (c->no_pull && c->with_pull)
		return err_set(err, ERR_BAD_REQUEST, "conflict: no-pull and with-pull are both set");
	*ret = c->with_pull || (usual && !c->no_pull);
	return 0;
}

int crictl_create(struct crictl *c, struct err *err)
{
	struct val config, pod_config;
	bool pull = false;
	str id;
	int r = wants_pull(c, c->pull_on_create, &pull, err);

	if (r < 0 || (r = crictl_config_read(c, c->arguments[1], TYPE(cri_v1, ContainerConfig), &config, err)) < 0 ||
	    (r = crictl_config_read(c, c->arguments[2], TYPE(cri_v1, PodSandboxConfig), &pod_config, err)) < 0 ||
	    (r = create(c, str_of(c->arguments[0]), config, pod_config, pull, &id, err)) < 0)
		return r;
	printf("%s\n", crictl_text(&c->arena, id));
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
	bool pull = false;
	str pod, id;
	int r = wants_pull(c, !c->no_pull_on_run, &pull, err);

	if (r < 0 || (r = crictl_config_read(c, c->arguments[0], TYPE(cri_v1, ContainerConfig), &config, err)) < 0 ||
	    (r = crictl_config_read(c, c->arguments[1], TYPE(cri_v1, PodSandboxConfig), &pod_config, err)) < 0 ||
	    (r = crictl_run_pod(c, pod_config, &pod, err)) < 0 || (r = create(c, pod, config, pod_config, pull, &id, err)) < 0)
		return r;
	const char *text = crictl_text(&c->arena, id);
	if ((r = start(c, text, err)) < 0)
		return r;
	printf("%s\n", text);
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
	int64_t timeout = crictl_wait_s(c);
	int r = crictl_call_within(c, &rpc_RuntimeService_StopContainer,
				   OBJECT(a, F(containerId, VAL_STR(str_of(id))), F(timeout, val_of_int(timeout))),
				   c->timeout_ms + timeout * 1000, &v, err);

	return r < 0 ? err_wrap(err, r, "stopping the container \"%s\"", id) : 0;
}

int crictl_stop(struct crictl *c, struct err *err)
{
	struct arena *a = &c->arena;
	struct val v, running = OBJECT(a, F(state, OBJECT(a, F(state, VAL_LIT("CONTAINER_RUNNING")))));
	int r = 0;

	if (c->all == (c->n > 0))
		return err_set(err, ERR_BAD_REQUEST, "which containers? Say their ids, or --all");
	if (c->all && (r = crictl_call(c, &rpc_RuntimeService_ListContainers, OBJECT(a, F(filter, running)), &v, err)) < 0)
		return r;
	VAL_EACH(one, c->all ? val_get(v, containers) : VAL_EMPTY) {
		const char *id = crictl_text(a, val_str(*one, id));
		if (r == 0 && (r = stop(c, id, err)) == 0)
			printf("%s\n", id);
	}
	for (size_t i = 0; i < c->n && r == 0; i++)
		if ((r = stop(c, c->arguments[i], err)) == 0)
			printf("%s\n", c->arguments[i]);
	return r;
}

/*
 * The log of a container that is gone, and what was cut off it: FILE and FILE.*. Only a runtime of this machine is believed about files of
 * this machine.
 */
static void remove_log(struct crictl *c, str path)
{
	struct arena *a = &c->arena;
	ptrdiff_t slash = str_rchr(path, '/');
	const char *name = slash >= 0 ? arena_str(a, str_skip(path, (size_t)slash + 1)).p : "";
	struct dirent *e;

	if (!*name || path.p[0] != '/' || !str_starts(str_of(c->endpoint), STR("unix:")))
		return;
	DIR *d = opendir(arena_str(a, str_head(path, (size_t)slash + 1)).p);
	while (d && (e = readdir(d))) {
		str found = str_of(e->d_name);
		bool is_log = str_starts(found, str_of(name)) && (found.n == strlen(name) || found.p[strlen(name)] == '.');
		if (is_log && unlinkat(dirfd(d), e->d_name, 0) < 0 && errno != ENOENT)
			fprintf(stderr, "removing log file %s failed: %m\n", e->d_name);
	}
	if (d)
		(void)closedir(d);
}

static int remove_one(struct crictl *c, const char *id, struct err *err)
{
	struct val v, gone;
	int r = crictl_call(c, &rpc_RuntimeService_ContainerStatus, id_request(c, id), &v, err);

	if (r < 0)
		return err_wrap(err, r, "getting container status of \"%s\"", id);
	if (str_eq(val_str(v, status, state), STR("CONTAINER_RUNNING"))) {
		if (!c->force)
			return err_set(err, ERR_CONFLICT, "container \"%s\" is running, please stop it first", id);
		if ((r = stop(c, id, err)) < 0)
			return r;
	}
	if ((r = crictl_call(c, &rpc_RuntimeService_RemoveContainer, id_request(c, id), &gone, err)) < 0)
		return err_wrap(err, r, "removing the container \"%s\"", id);
	if (!c->keep_logs)
		remove_log(c, val_str(v, status, logPath));
	printf("%s\n", id);
	return 0;
}

int crictl_rm(struct crictl *c, struct err *err)
{
	struct val v;
	int r = 0;

	if (!c->n && !c->all)
		return err_set(err, ERR_BAD_REQUEST, "which containers? Say their ids, or --all");
	for (size_t i = 0; i < c->n && r == 0; i++)
		r = remove_one(c, c->arguments[i], err);
	if (!c->all || r < 0 || (r = crictl_call(c, &rpc_RuntimeService_ListContainers, VAL_EMPTY_OBJECT, &v, err)) < 0)
		return r;
	VAL_EACH(one, val_get(v, containers))
		if (r == 0)
			r = remove_one(c, crictl_text(&c->arena, val_str(*one, id)), err);
	return r;
}

static void add_number(struct val_builder *b, atom field, int64_t n)
{
	if (n)
		val_add_member(b, field, val_of_int(n));
}

/* Fields of LinuxContainerResources: as options, or as FIELD=VALUE among the arguments. */
static int resources(struct crictl *c, struct val *ret, struct err *err)
{
	struct val_builder b = val_builder(&c->arena);

	add_number(&b, A_cpuPeriod, c->cpu_period);
	add_number(&b, A_cpuQuota, c->cpu_quota);
	add_number(&b, A_cpuShares, c->cpu_shares);
	add_number(&b, A_memoryLimitInBytes, c->memory);
	add_number(&b, A_oomScoreAdj, c->oom_score);
	if (c->cpuset_cpus)
		val_add_member(&b, A_cpusetCpus, VAL_STR(str_of(c->cpuset_cpus)));
	if (c->cpuset_mems)
		val_add_member(&b, A_cpusetMems, VAL_STR(str_of(c->cpuset_mems)));
	for (size_t i = 0; i < c->n; i++) {
		str key, value;
		int64_t n;
		if (!str_cut(str_of(c->arguments[i]), '=', &key, &value))
			continue;
		if (!type_field(TYPE(cri_v1, LinuxContainerResources), atom_find(key)))
			return err_set(err, ERR_BAD_REQUEST, "there is no resource '" STR_FMT "'; cpuShares, cpuQuota, cpuPeriod and"
				       " memoryLimitInBytes are some", STR_ARG(key));
		val_add_member(&b, atom_find(key), str_to_i64(value, &n) ? val_of_int(n) : VAL_STR(value));
	}
	*ret = val_end_object(&b);
	return val_len(*ret) ? 0 : err_set(err, ERR_BAD_REQUEST, "update what? Say for example --memory");
}

int crictl_update(struct crictl *c, struct err *err)
{
	struct val change, v;
	int r = resources(c, &change, err);

	for (size_t i = 0; r == 0 && i < c->n; i++) {
		const char *id = c->arguments[i];
		if (strchr(id, '='))
			continue;
		struct val request = val_with(&c->arena, id_request(c, id), change, linux);
		if ((r = crictl_call(c, &rpc_RuntimeService_UpdateContainerResources, request, &v, err)) < 0)
			return err_wrap(err, r, "updating container resources for \"%s\"", id);
		printf("%s\n", id);
	}
	return r;
}

int crictl_checkpoint(struct crictl *c, struct err *err)
{
	struct val v;

	if (!c->export)
		return err_set(err, ERR_BAD_REQUEST, "cannot checkpoint a container without specifying the checkpoint destination. "
			       "Use --export=/path/to/checkpoint.tar");
	for (size_t i = 0; i < c->n; i++) {
		struct val request = val_with(&c->arena, id_request(c, c->arguments[i]), VAL_STR(str_of(c->export)), location);
		int r = crictl_call_within(c, &rpc_RuntimeService_CheckpointContainer, request, 0, &v, err);
		if (r < 0)
			return err_wrap(err, r, "checkpointing the container \"%s\" failed", c->arguments[i]);
		printf("%s\n", c->arguments[i]);
	}
	return 0;
}

/* ---- looking ---- */

int crictl_inspect(struct crictl *c, struct err *err)
{
	struct arena *a = &c->arena;
	struct val ids, v;
	size_t n = 0;
	int r = crictl_check_output(c, true, err);

	if (r < 0 || (r = crictl_ids(c, crictl_list_containers, &ids, err)) < 0)
		return r;
	struct val *all = ARENA_ARRAY(a, struct val, val_len(ids));
	VAL_EACH(id, ids) {
		struct val request = OBJECT(a, F(containerId, *id), F(verbose, val_of_bool(!c->quiet)));
		if ((r = crictl_call(c, &rpc_RuntimeService_ContainerStatus, request, &v, err)) < 0)
			return err_wrap(err, r, "getting the status of the container \"" STR_FMT "\"", STR_ARG(val_as_str(*id)));
		if (strcmp(c->output, "table") == 0)
			describe(c, val_get(v, status));
		else if ((r = crictl_status(c, val_get(v, status), TYPE(cri_v1, ContainerStatus), val_get(v, info), &all[n++], err)) < 0)
			return r;
	}
	crictl_show_statuses(c, all, n);
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

/* How long ago, a time, or seconds since 1970. */
static int since_ns(const char *text, int64_t *ret, struct err *err)
{
	struct timestamp t;
	int64_t n;

	if (str_to_i64(str_of(text), &n) && n >= 0 && n < INT64_MAX / NS_PER_S)
		*ret = n * NS_PER_S;
	else if (duration_parse(str_of(text), &n, NULL) == 0)
		*ret = clock_wall_ns() - n;
	else if (time_parse(str_of(text), &t, NULL) == 0 && t.seconds > 0)
		*ret = t.seconds * NS_PER_S + t.nanos;
	else
		return err_set(err, ERR_BAD_REQUEST, "--since: '%s' is neither a time such as 2006-01-02T15:04:05Z nor a duration such as 5m",
			       text);
	return 0;
}

static int log_options(const struct crictl *c, struct logs_options *o, struct err *err)
{
	if (c->stream && strcmp(c->stream, "stdout") != 0 && strcmp(c->stream, "stderr") != 0)
		return err_set(err, ERR_BAD_REQUEST, "invalid stream \"%s\", must be \"stdout\" or \"stderr\"", c->stream);
	if (c->stream && c->tail >= 0)
		return err_set(err, ERR_BAD_REQUEST, "--tail and --stream are mutually exclusive");
	o->tail = c->tail;
	o->limit = c->limit_bytes;
	o->follow = c->follow;
	o->timestamps = c->timestamps;
	o->no_stdout = c->stream && strcmp(c->stream, "stderr") == 0;
	o->no_stderr = c->stream && strcmp(c->stream, "stdout") == 0;
	return c->since ? since_ns(c->since, &o->since_ns, err) : 0;
}

int crictl_logs(struct crictl *c, struct err *err)
{
	struct logs_options o = LOGS_OPTIONS_INIT;
	struct logs_reader reader = { write_log, is_running, c };
	struct val v, request = id_request(c, c->arguments[0]);
	int r = log_options(c, &o, err);

	if (r == 0 && c->reopen && (r = crictl_call(c, &rpc_RuntimeService_ReopenContainerLog, request, &v, err)) < 0)
		return err_wrap(err, r, "reopen container logs");
	if (r < 0 || (r = crictl_call(c, &rpc_RuntimeService_ContainerStatus, request, &v, err)) < 0)
		return r;
	str path = val_str(v, status, logPath);
	if (!path.n)
		return err_set(err, ERR_NOT_FOUND, "the container has not set log path");
	if (c->previous && logs_previous(&c->arena, path, &path, NULL) < 0)
		return err_set(err, ERR_NOT_FOUND, "previous terminated container " STR_FMT " not found",
			       STR_ARG(val_str(v, status, metadata, name)));
	return logs_read(arena_str(&c->arena, path).p, &o, &reader, err);
}
