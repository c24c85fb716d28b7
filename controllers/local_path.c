/*
 * The built-in provisioner of volumes that are folders of nodes. Keys are claims ("namespace/name") and volumes ("name"). How folders come and
 * go: local_path_plan.h. Runs only with --provisioner-root.
 */
#include <stdlib.h>

#include "base/fiber.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "controllers/controller.h"
#include "controllers/labels.h"
#include "controllers/local_path_plan.h"
#include "controllers/moment.h"
#include "controllers/protection.h"
#include "controllers/pv_binder_plan.h"

/* How long a kubelet may take to remove a folder until somebody is told. */
enum { REMOVAL_MS = 60 * 1000, RETRY_MS = 5000 };

struct local_path {
	struct informer *claims, *volumes, *classes, *nodes;
};

static struct val held(struct controller *c, struct arena *a, const struct informer *i, str key)
{
	struct frozen *object = key.n ? informer_get(i, key) : NULL;
	return object ? controller_hold(c, a, object) : VAL_EMPTY;
}

/* ---- claims ---- */

static int fail(struct controller *c, struct val claim, str why)
{
	controller_event(c, claim, true, "ProvisioningFailed", "failed to provision volume with StorageClass \"" STR_FMT "\": " STR_FMT,
			 STR_ARG(storage_class_of(claim)), STR_ARG(why));
	return 0;
}

/* The node that was chosen is gone: the scheduler has to choose again. */
static int choose_again(struct controller *c, struct arena *a, struct val claim, struct err *err)
{
	return client_update(c->client, TYPE(core_v1, PersistentVolumeClaim), annotation_put(a, claim, STR(PVC_SELECTED_NODE), VAL_EMPTY), NULL, NULL, err);
}

static int sync_claim(struct controller *c, struct arena *a, str key, struct err *err)
{
	const struct local_path *s = c->state;
	struct val claim = held(c, a, s->claims, key);
	str node_name = annotation_of(claim, STR(PVC_SELECTED_NODE)), why = STR_NONE;
	struct val node = held(c, a, s->nodes, node_name), class = held(c, a, s->classes, storage_class_of(claim));

	if (!local_path_wants(claim))
		return 0;
	if (!val_exists(class))
		return fail(c, claim, STR("its StorageClass is gone"));
	if (!str_eq(val_str(class, provisioner), STR(LOCAL_PATH_PROVISIONER)))
		return 0; /* the annotation can be written by anybody: the class says whose it is */
	if (node_name.n && !val_exists(node))
		return choose_again(c, a, claim, err);
	struct val volume = local_path_volume(a, claim, class, node, c->o->provisioner_root, &why);
	if (!val_exists(volume))
		return fail(c, claim, why);
	str name = val_str(volume, metadata, name);
	if (informer_get(s->volumes, name))
		return 0;
	controller_event(c, claim, false, "Provisioning", "External provisioner is provisioning volume for claim \"" STR_FMT "\"", STR_ARG(key));
	int r = client_create(c->client, TYPE(core_v1, PersistentVolume), volume, NULL, NULL, err);
	if (r == 0)
		controller_event(c, claim, false, "ProvisioningSucceeded", "Successfully provisioned volume " STR_FMT, STR_ARG(name));
	if (r == -ERR_ALREADY_EXISTS)
		err_clear(err);
	return r == -ERR_ALREADY_EXISTS ? 0 : r;
}

/* ---- volumes ---- */

/* (suspends) Without our finalizer it goes, if somebody has deleted it. */
static int let_go(struct controller *c, struct arena *a, struct val volume, struct err *err)
{
	struct val next = finalizer_remove(a, volume, STR(LOCAL_PATH_FINALIZER));
	int r = val_exists(next) ? client_update(c->client, TYPE(core_v1, PersistentVolume), next, NULL, NULL, err) : 0;

	if (r == -ERR_NOT_FOUND)
		err_clear(err);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

static int delete_volume(struct controller *c, struct arena *a, struct val volume, struct err *err)
{
	int r = let_go(c, a, volume, err);

	if (r == 0)
		r = client_delete(c->client, TYPE(core_v1, PersistentVolume), STR_NONE, val_str(volume, metadata, name),
				  &(struct client_delete_options){ .grace_s = -1, .uid = val_str(volume, metadata, uid) }, err);
	if (r == -ERR_NOT_FOUND)
		err_clear(err);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

static struct val ask_for_removal(struct arena *a, struct val node, void *arg)
{
	str list = annotation_of(node, STR(LOCAL_PATH_REMOVE)), folder = *(const str *)arg;

	return folder_list_has(list, folder) ? VAL_EMPTY : annotation_put(a, node, STR(LOCAL_PATH_REMOVE), VAL_STR(folder_list_add(a, list, folder)));
}

/* By its label, which the volume's affinity names; mostly that is the node's name too. */
static struct val node_by_hostname(struct controller *c, struct arena *a, str hostname)
{
	const struct local_path *s = c->state;
	struct val node = held(c, a, s->nodes, hostname);

	if (str_eq(label_of(node, STR("kubernetes.io/hostname")), hostname))
		return node;
	INFORMER_EACH(other, informer_each(s->nodes))
		if (str_eq(label_of(other->val, STR("kubernetes.io/hostname")), hostname))
			return controller_hold(c, a, other);
	return VAL_EMPTY;
}

/* The folder was asked to be removed. Whether it is: the server knows, the informer may be late. */
static int finish(struct controller *c, struct arena *a, struct val volume, str node_name, str folder, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *node = NULL;
	int r = client_get(c->client, TYPE(core_v1, Node), STR_NONE, node_name, &node, err);

	if (r < 0 && r != -ERR_NOT_FOUND)
		return r;
	if (r == 0 && folder_list_has(annotation_of(node->val, STR(LOCAL_PATH_REMOVE)), folder)) {
		int64_t waited_ns = clock_wall_ns() - moment_of(VAL_STR(annotation_of(volume, STR(LOCAL_PATH_REQUESTED))));
		if (waited_ns > REMOVAL_MS * NS_PER_MS)
			controller_event(c, volume, true, "VolumeFailedDelete",
					 "the kubelet of node " STR_FMT " has not removed the folder " STR_FMT ": if it is not that of c8s, remove the "
					 "folder and then the node's annotation " LOCAL_PATH_REMOVE, STR_ARG(node_name), STR_ARG(folder));
		controller_add_after(c, arena_str(a, val_str(volume, metadata, name)), REMOVAL_MS);
		return 0;
	}
	err_clear(err);
	return delete_volume(c, a, volume, err);
}

static int sync_volume(struct controller *c, struct arena *a, str key, struct err *err)
{
	const struct local_path *s = c->state;
	struct val volume = held(c, a, s->volumes, key);
	str folder = local_path_folder(volume);

	enum local_path_step step = local_path_step(volume);

	if (step != LOCAL_PATH_REMOVE_FOLDER)
		return step == LOCAL_PATH_LET_GO ? let_go(c, a, volume, err) : 0;
	struct val node = node_by_hostname(c, a, local_path_node(volume));
	if (!val_exists(node))
		return delete_volume(c, a, volume, err); /* the folder went with its node */
	str node_name = val_str(node, metadata, name);
	if (annotation_has(volume, STR(LOCAL_PATH_REQUESTED)))
		return finish(c, a, volume, node_name, folder, err);
	int r = controller_update(c, TYPE(core_v1, Node), node, "", ask_for_removal, &folder, NULL, err);
	if (r < 0)
		return r;
	return client_update(c->client, TYPE(core_v1, PersistentVolume), annotation_put(a, volume, STR(LOCAL_PATH_REQUESTED), time_now(a)), NULL, NULL,
			     err);
}

static int local_path_sync(struct controller *c, struct arena *a, str key, struct err *err)
{
	return str_chr(key, '/') >= 0 ? sync_claim(c, a, key, err) : sync_volume(c, a, key, err);
}

/* ---- being told ---- */

static void claim_changed(struct controller *c, struct frozen *old, struct frozen *claim)
{
	if (claim && local_path_wants(claim->val))
		controller_key_self(c, old, claim);
}

static void volume_changed(struct controller *c, struct frozen *old, struct frozen *volume)
{
	if (volume && local_path_step(volume->val) != LOCAL_PATH_REST)
		controller_key_self(c, old, volume);
}

/* A kubelet has removed something, or a node is gone: the volumes that wait for that. */
static void node_changed(struct controller *c, struct frozen *old, struct frozen *node)
{
	const struct local_path *s = c->state;
	str before = old ? annotation_of(old->val, STR(LOCAL_PATH_REMOVE)) : STR_NONE;

	if (!before.n || (node && str_eq(before, annotation_of(node->val, STR(LOCAL_PATH_REMOVE)))))
		return;
	INFORMER_EACH(volume, informer_each(s->volumes))
		if (local_path_step(volume->val) == LOCAL_PATH_REMOVE_FOLDER)
			controller_add(c, val_str(volume->val, metadata, name));
}

/* The class, where there is none of that name. */
static int make_class(struct controller *c, struct err *err)
{
	const struct local_path *s = c->state;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	bool has_default = false;

	if (informer_get(s->classes, STR(LOCAL_PATH_CLASS)))
		return 0;
	INFORMER_EACH(class, informer_each(s->classes))
		has_default |= class_is_default(class->val);
	int r = client_create(c->client, TYPE(storage_v1, StorageClass), local_path_class(&a, !has_default), NULL, NULL, err);
	if (r == -ERR_ALREADY_EXISTS)
		err_clear(err);
	return r == -ERR_ALREADY_EXISTS ? 0 : r;
}

/* Beside the queue, once. */
static int local_path_run(struct controller *c, struct err *err)
{
	struct err why = ERR_INIT;
	int r;

	while ((r = make_class(c, &why)) < 0 && fiber_check(err) == 0) {
		log_warn("the StorageClass could not be made, will retry", KV("class", LOCAL_PATH_CLASS), KV("error", &why));
		if ((r = fiber_sleep_ms(RETRY_MS, err)) < 0)
			return r;
	}
	return fiber_check(err);
}

static void local_path_stop(struct controller *c) { free(c->state); }

static int local_path_start(struct controller *c, struct err *err)
{
	struct local_path *s = mem_zalloc(sizeof *s);

	(void)err;
	c->state = s;
	c->sync = local_path_sync;
	if (!c->o->provisioner_root)
		return 0;
	c->run = local_path_run;
	s->claims = controller_informer(c, TYPE(core_v1, PersistentVolumeClaim));
	s->volumes = controller_informer(c, TYPE(core_v1, PersistentVolume));
	s->classes = controller_informer(c, TYPE(storage_v1, StorageClass));
	s->nodes = controller_informer(c, TYPE(core_v1, Node));
	controller_watch(c, s->claims, claim_changed);
	controller_watch(c, s->volumes, volume_changed);
	controller_watch(c, s->nodes, node_changed);
	return 0;
}

const struct controller_kind controller_local_path = { .name = "local-path-provisioner", .start = local_path_start, .workers = 2,
						       .stop = local_path_stop, .account = "local-path-provisioner", .source = LOCAL_PATH_PROVISIONER };
