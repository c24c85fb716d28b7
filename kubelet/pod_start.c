/* Sandbox and containers are made and started. What fails is told twice: as an event, and as the reason why the container waits. */
#include <errno.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/log.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "kubelet/pod_rules.h"
#include "kubelet/pods_priv.h"

/* Pulling an image, starting a container: as long as it takes. */
enum { CALL_LONG_MS = 600000 };
/* A command and what it wrote, within reason. */
enum { HOOK_TEXT_MAX = 64 * 1024 };
/* A file's name has 255 bytes at most, ".log" among them. */
enum { LINK_NAME_MAX = 251 };

struct val pod_container_of(struct val pod, struct container_start start)
{
	static const atom lists[] = { [LIST_INIT_CONTAINERS] = A_initContainers, [LIST_CONTAINERS] = A_containers,
				      [LIST_EPHEMERAL] = A_ephemeralContainers };
	return val_at(val_member(val_get(pod, spec), lists[start.list]), start.index);
}

struct val pod_pull_secrets(struct pod *p, struct arena *a, struct val pod)
{
	const struct cri_lookups *l = &p->kubelet->lookups;
	struct val_builder b = val_builder(a);
	str missing = STR_NONE;

	VAL_EACH(ref, val_get(pod, spec, imagePullSecrets)) {
		str name = val_str(*ref, name);
		struct err err = ERR_INIT;
		struct val secret;
		if (!name.n)
			continue;
		if (l->secret(l->arg, a, val_str(pod, metadata, namespace), name, &secret, &err) >= 0)
			val_add_item(&b, secret);
		else
			missing = missing.n ? arena_printf(a, STR_FMT ", " STR_FMT, STR_ARG(missing), STR_ARG(name)) : name;
	}
	if (missing.n)
		kubelet_event(p->kubelet, pod, STR_NONE, true, "FailedToRetrieveImagePullSecret",
			      arena_printf(a, "Unable to retrieve some image pull secrets (" STR_FMT "); attempting to pull the image may not succeed.",
					   STR_ARG(missing)));
	return val_end_list(&b);
}

/* ---- sandbox ---- */

int pod_start_sandbox(struct pod *p, struct arena *a, struct val pod, unsigned attempt, str *ret_id, struct val *ret_config, struct err *err)
{
	struct kubelet *k = p->kubelet;
	struct val answer = VAL_EMPTY;
	str handler, text = STR_NONE;
	int r;

	if ((r = sandbox_config_make(&k->node, a, pod, attempt, ret_config, err)) >= 0 &&
	    (r = file_make_dirs(arena_str(a, val_str(*ret_config, logDirectory)).p, 0755, err)) >= 0 &&
	    (r = kubelet_runtime_handler(k, pod, &handler, err)) >= 0) {
		handler = arena_str(a, handler);
		r = cri_ask(k->cri, &rpc_RuntimeService_RunPodSandbox, a,
			    OBJECT(a, F(config, *ret_config), F(runtimeHandler, handler.n ? VAL_STR(handler) : VAL_EMPTY)), 2 * CALL_LONG_MS,
			    &answer, err);
		text = r < 0 ? cri_error_text(a, err) : STR_NONE;
	}
	if (r >= 0) {
		*ret_id = val_str(answer, podSandboxId);
		return 0;
	}
	/* A pod that is deleted meanwhile has no use for it. */
	if (r != -ERR_CANCELED && !val_has(p->object->val, metadata, deletionTimestamp))
		kubelet_event(k, pod, STR_NONE, true, "FailedCreatePodSandBox",
			      arena_printf(a, "Failed to create pod sandbox: " STR_FMT, STR_ARG(text.n ? text : err_str(err))));
	return r;
}

/* ---- one container ---- */

/* All that the steps of a start share. */
struct starting {
	struct pod *p;
	struct arena *arena;
	const struct pod_view *v;
	struct val pod, container, secrets, sandbox_config, config;
	struct cri_container_input in;
	str sandbox_id, id;
	const char *reason;           /* why it waits, if a step fails */
};

static void remember(struct starting *s, str reason, str message)
{
	struct container_memory *m = pod_memory(s->p, val_str(s->container, name));

	text_set(&m->reason, reason);
	text_set(&m->message, message);
	m->note.waiting_reason = str_of(m->reason);
	m->note.waiting_message = str_of(m->message);
}

static int fail(struct starting *s, int r, const char *event, const struct err *err)
{
	str name = val_str(s->container, name);

	if (r == -ERR_CANCELED)
		return r;
	kubelet_event(s->p->kubelet, s->pod, name, true, event,
		      arena_printf(s->arena, "Error: " STR_FMT, STR_ARG(err_str(err))));
	remember(s, str_of(s->reason), err_str(err));
	return r;
}

static int ensure_image(struct starting *s, struct val container, str *ret_ref, str *ret_user, int64_t *ret_uid, struct err *err)
{
	str reason, message;
	int r = images_ensure(s->p->kubelet->images, s->arena, s->pod, container, s->secrets, s->sandbox_config, ret_ref, ret_user, ret_uid,
			      &reason, &message, err);

	if (r >= 0 || !reason.n)
		return r;
	kubelet_event(s->p->kubelet, s->pod, val_str(s->container, name), true, "Failed",
		      arena_printf(s->arena, "Error: " STR_FMT, STR_ARG(reason)));
	remember(s, reason, message);
	return r;
}

/* Volumes that are images: named as the runtime has them once they are there. */
static int ensure_image_volumes(struct starting *s, struct cri_mount *mounts, size_t n, struct err *err)
{
	struct arena *a = s->arena;
	str ref, user;
	int64_t uid;
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++) {
		if (!val_exists(mounts[i].image))
			continue;
		str image = val_str(mounts[i].image, userSpecifiedImage), policy = STR_NONE;
		if (!image.n)
			image = val_str(mounts[i].image, image);
		VAL_EACH(volume, val_get(s->pod, spec, volumes))
			if (str_eq(val_str(*volume, image, reference), image))
				policy = val_str(*volume, image, pullPolicy);
		r = ensure_image(s, OBJECT(a, F(image, VAL_STR(image)), F(imagePullPolicy, VAL_STR(policy))), &ref, &user, &uid, err);
		if (r >= 0)
			mounts[i].image = val_with(a, mounts[i].image, VAL_STR(ref), image);
	}
	return r;
}

static bool needs_env(struct val container)
{
	VAL_EACH(m, val_get(container, volumeMounts))
		if (val_str(*m, subPathExpr).n)
			return true;
	return false;
}

/* Where its processes look when it is there to look at another container. */
static int find_target(struct starting *s, struct err *err)
{
	str name = val_str(s->container, targetContainerName);
	struct val target = name.n ? pod_view_container(s->v, name) : VAL_EMPTY;

	if (name.n && !val_exists(target))
		return err_set(err, ERR_NOT_FOUND, "unable to find target container " STR_FMT, STR_ARG(name));
	s->in.target_id = val_str(target, id);
	return 0;
}

static int make_config(struct starting *s, struct err *err)
{
	struct kubelet *k = s->p->kubelet;
	struct arena *a = s->arena;
	struct cri_mount *volumes = NULL, *devices = NULL, files[2];
	size_t n_volumes = 0, n_devices = 0, n_files = 0;
	struct val env = VAL_EMPTY;
	str reason = STR_NONE;
	int r;

	s->reason = "CreateContainerConfigError";
	if ((r = find_target(s, err)) < 0 ||
	    (needs_env(s->container) && (r = container_env_make(&k->node, &k->lookups, a, &s->in, &env, err)) < 0) ||
	    (r = volumes_of_container(k->volumes, a, s->pod, s->container, env, &volumes, &n_volumes, err)) < 0 ||
	    (r = container_files_make(&k->node, a, &s->in, files, &n_files, err)) < 0 ||
	    (r = devices_of_container(k->devices, a, &s->in, &devices, &n_devices, err)) < 0 ||
	    (r = volumes_devices_of_container(k->volumes, a, &s->in, err)) < 0)
		return fail(s, r, "Failed", err);
	if ((r = ensure_image_volumes(s, volumes, n_volumes, err)) < 0)
		return r;
	struct cri_mount *mounts = ARENA_ARRAY(a, struct cri_mount, n_volumes + n_files + n_devices + 1);
	s->in.mounts = mounts;
	for (size_t i = 0; i < n_volumes; i++)
		mounts[s->in.n_mounts++] = volumes[i];
	for (size_t i = 0; i < n_files; i++)
		mounts[s->in.n_mounts++] = files[i];
	for (size_t i = 0; i < n_devices; i++)
		mounts[s->in.n_mounts++] = devices[i];
	r = container_config_make(&k->node, &k->lookups, a, &s->in, &s->config, &reason, err);
	return r < 0 ? fail(s, r, "Failed", err) : 0;
}

static int create(struct starting *s, struct err *err)
{
	struct kubelet *k = s->p->kubelet;
	struct arena *a = s->arena;
	struct val answer;
	int r = cri_ask(k->cri, &rpc_RuntimeService_CreateContainer, a,
			OBJECT(a, F(podSandboxId, VAL_STR(s->sandbox_id)), F(config, s->config), F(sandboxConfig, s->sandbox_config)),
			CALL_LONG_MS, &answer, err);

	s->reason = "CreateContainerError";
	if (r < 0)
		return fail(s, r, "Failed", err);
	s->id = val_str(answer, containerId);
	kubelet_event(k, s->pod, val_str(s->container, name), false, "Created", STR("Container created"));
	return 0;
}

str container_log_link(const struct kubelet_node *n, struct arena *a, struct val pod, str container, str id)
{
	str beside = str_head(n->log_root, (size_t)MAX(str_rchr(n->log_root, '/'), (ptrdiff_t)0));

	str name = arena_printf(a, STR_FMT "_" STR_FMT "_" STR_FMT "-" STR_FMT, STR_ARG(val_str(pod, metadata, name)),
				STR_ARG(val_str(pod, metadata, namespace)), STR_ARG(container), STR_ARG(id));

	name = str_head(name, MIN(name.n, (size_t)LINK_NAME_MAX));
	return arena_printf(a, STR_FMT "/containers/" STR_FMT ".log", STR_ARG(beside), STR_ARG(name));
}

static void link_log(struct starting *s)
{
	const struct kubelet_node *n = &s->p->kubelet->node;
	struct arena *a = s->arena;
	str log = arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(val_str(s->sandbox_config, logDirectory)), STR_ARG(val_str(s->config, logPath)));
	str link = container_log_link(n, a, s->pod, val_str(s->container, name), s->id);

	if (symlink(log.p, link.p) < 0 && errno != EEXIST)
		log_debug("a log gets no link", KV("link", link), KV("error", strerror(errno)));
}

/* Why a container whose hook failed waits. why: what the hook said; error: it could not even be run. */
static str hook_message(struct starting *s, struct val handler, str why, bool error)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(HOOK_TEXT_MAX);
	const char *words = "";

	if (val_has(handler, exec)) {
		buf_add(&b, STR("Exec lifecycle hook (["));
		VAL_EACH(word, val_get(handler, exec, command)) {
			buf_addf(&b, "%s" STR_FMT, words, STR_ARG(val_as_str(*word)));
			words = " ";
		}
		buf_addc(&b, ']');
	} else if (val_has(handler, httpGet)) {
		buf_addf(&b, "HTTP lifecycle hook (" STR_FMT, STR_ARG(val_str(handler, httpGet, path)));
	} else {
		buf_addf(&b, "Sleep lifecycle hook (%lld", (long long)val_int(handler, sleep, seconds));
	}
	buf_addf(&b, ") for Container \"" STR_FMT "\" in Pod \"" STR_FMT "_" STR_FMT "(" STR_FMT ")\" failed - error: " STR_FMT "%s",
		 STR_ARG(val_str(s->container, name)), STR_ARG(val_str(s->pod, metadata, name)), STR_ARG(val_str(s->pod, metadata, namespace)),
		 STR_ARG(pod_uid(s->p)), STR_ARG(why), error && val_has(handler, exec) ? ", message: \"\"" : "");
	return arena_str(s->arena, buf_str(&b));
}

static int run_hook(struct starting *s, struct err *err)
{
	struct kubelet *k = s->p->kubelet;
	struct val handler = val_get(s->container, lifecycle, postStart);
	str output = STR_NONE;
	struct err ignored = ERR_INIT;

	if (!val_exists(handler))
		return 0;
	str ip = val_str(val_at(s->in.pod_ips, 0), ip);
	enum probe_result result = probe_hook(k->cri, s->arena, s->pod, s->container, handler, s->id, ip, 0, &output, err);
	if (result == PROBE_SUCCESS)
		return 0;
	if (err->code == ERR_CANCELED)
		return -ERR_CANCELED;
	/* Its output stays out of the event: it may hold secrets. */
	kubelet_event(k, s->pod, val_str(s->container, name), true, "FailedPostStartHook", STR("PostStartHook failed"));
	str message = hook_message(s, handler, err->code ? err_str(err) : output, err->code);
	struct val status = OBJECT(s->arena, F(id, VAL_STR(s->id)), F(metadata, OBJECT(s->arena, F(name, val_get(s->container, name)))));
	pod_stop_container(s->p, s->arena, s->pod, status, KILL_NOT_WANTED, STR("FailedPostStartHook"), STOP_GRACE_OWN, &ignored);
	remember(s, STR("PostStartHookError"), message);
	return err_set(err, ERR_UNAVAILABLE, "PostStartHookError: " STR_FMT, STR_ARG(message));
}

static int start(struct starting *s, struct err *err)
{
	struct kubelet *k = s->p->kubelet;
	struct val answer;
	int r = cri_ask(k->cri, &rpc_RuntimeService_StartContainer, s->arena, OBJECT(s->arena, F(containerId, VAL_STR(s->id))), CALL_LONG_MS,
			&answer, err);

	s->reason = "RunContainerError";
	if (r < 0)
		return fail(s, r, "Failed", err);
	kubelet_event(k, s->pod, val_str(s->container, name), false, "Started", STR("Container started"));
	link_log(s);
	return run_hook(s, err);
}

int pod_start_container(struct pod *p, struct arena *a, const struct pod_view *v, struct container_start which, str sandbox_id,
			struct val sandbox_config, struct val pull_secrets, struct val pod_ips, struct err *err)
{
	struct starting s = { .p = p, .arena = a, .v = v, .pod = v->pod, .container = pod_container_of(v->pod, which), .secrets = pull_secrets,
			      .sandbox_config = sandbox_config, .sandbox_id = sandbox_id };
	struct container_memory *m = pod_memory(p, val_str(s.container, name));
	int r;

	s.in = (struct cri_container_input){ .pod = s.pod, .container = s.container, .attempt = which.attempt, .pod_ips = pod_ips };
	m->liveness_failed = m->startup_failed = false;
	if ((r = ensure_image(&s, s.container, &s.in.image_ref, &s.in.image_user, &s.in.image_uid, err)) < 0 ||
	    (r = make_config(&s, err)) < 0 || (r = create(&s, err)) < 0 || (r = start(&s, err)) < 0)
		return r;
	container_set_actuated(p, val_str(s.container, name), val_get(s.container, resources));
	remember(&s, STR_NONE, STR_NONE);
	return 0;
}
