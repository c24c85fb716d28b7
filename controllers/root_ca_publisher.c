/*
 * Every namespace has a ConfigMap kube-root-ca.crt with what pods verify the API server by. Keys are namespaces. The file is read at the
 * start, as in Kubernetes: a new authority means a new start.
 */
#include <stdlib.h>

#include "base/file.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "controllers/controller.h"

#define MAP_NAME "kube-root-ca.crt"
#define DESCRIPTION_KEY "kubernetes.io/description"

enum { FILE_MAX = 1 << 20 };

static const str description = STR_INIT(
	"Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or "
	"kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.");

static void namespace_keys(struct controller *c, struct frozen *old, struct frozen *object)
{
	if (object && (!old || str_eq(val_str(object->val, status, phase), STR("Active"))))
		controller_add(c, val_str(object->val, metadata, name));
}

static void map_keys(struct controller *c, struct frozen *old, struct frozen *object)
{
	struct val map = old ? old->val : VAL_EMPTY;
	if (str_eq(val_str(map, metadata, name), STR(MAP_NAME))) /* changed, or gone */
		controller_add(c, val_str(map, metadata, namespace));
	(void)object;
}

/* What the map should be; VAL_NONE: it is so. */
static struct val wanted(struct arena *a, struct val map, str ca)
{
	atom key = atom_make(a, STR(DESCRIPTION_KEY));
	struct val data = val_put(a, VAL_EMPTY_OBJECT, atom_make(a, STR("ca.crt")), VAL_STR(ca));
	if (val_equal(val_get(map, data), data) && val_as_str(val_member(val_get(map, metadata, annotations), key)).n)
		return VAL_EMPTY;
	map = val_with(a, map, val_put(a, val_get(map, metadata, annotations), key, VAL_STR(description)), metadata, annotations);
	return val_with(a, map, data, data);
}

static int sync_namespace(struct controller *c, struct arena *a, str key, struct err *err)
{
	const struct buf *ca = c->state;
	struct frozen *had = informer_get(controller_informer(c, TYPE(core_v1, ConfigMap)), arena_join(a, key, STR("/" MAP_NAME)));
	struct val meta = OBJECT(a, F(name, VAL_LIT(MAP_NAME)), F(namespace, VAL_STR(key)));
	struct val map = wanted(a, had ? controller_hold(c, a, had) : OBJECT(a, F(metadata, meta)), buf_str(ca));
	int r = 0;
	if (val_exists(map))
		r = had ? client_update(c->client, TYPE(core_v1, ConfigMap), map, NULL, NULL, err)
			: client_create(c->client, TYPE(core_v1, ConfigMap), map, NULL, NULL, err);
	/* The namespace is gone, or going. */
	return r < 0 && !had && (r == -ERR_NOT_FOUND || error_is_namespace_ending(err)) ? 0 : r;
}

static int start(struct controller *c, struct err *err)
{
	struct buf *ca = mem_zalloc(sizeof *ca);
	buf_init(ca, FILE_MAX);
	c->state = ca;
	int r = c->o->root_ca_file ? file_read(c->o->root_ca_file, ca, err) : 0;
	if (r < 0)
		return err_wrap(err, r, "error reading root CA file");
	if (!ca->n) /* nothing to publish */
		return 0;
	controller_watch(c, controller_informer(c, TYPE(core_v1, ConfigMap)), map_keys);
	controller_watch(c, controller_informer(c, TYPE(core_v1, Namespace)), namespace_keys);
	c->sync = sync_namespace;
	return 0;
}

static void stop(struct controller *c)
{
	struct buf *ca = c->state;
	buf_done(ca);
	free(ca);
}

const struct controller_kind controller_root_ca_publisher = {
	.name = "root-ca-certificate-publisher-controller", .start = start, .workers = 1, .stop = stop, .account = "root-ca-cert-publisher",
};
