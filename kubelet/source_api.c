/*
 * The pods that the API server has for this node. Mirror pods are there to be looked at, not to be run: they are kept apart.
 */
#include "codec/atoms.h"
#include "codec/types.h"
#include "kubelet/source_priv.h"

static void on_change(struct informer_listener *l, struct frozen *old, struct frozen *pod)
{
	struct sources *s = CONTAINER_OF(l, struct sources, listener);
	struct frozen *any = pod ? pod : old;

	/* Deleted and made anew between two looks. */
	if (old && pod && !str_eq(val_str(old->val, metadata, uid), val_str(pod->val, metadata, uid))) {
		on_change(l, old, NULL);
		old = NULL;
	}
	if (pod_is_mirror_of_static(any->val))
		mirror_changed(s, old, pod);
	else if (pod)
		sources_tell(s, SOURCE_API, pod->val);
	else
		sources_untell(s, val_str(old->val, metadata, uid));
}

static void on_synced(struct informer_listener *l)
{
	struct sources *s = CONTAINER_OF(l, struct sources, listener);

	sources_seen(s, SOURCE_API);
	mirror_queue_all(s);
}

void source_api_begin(struct sources *s)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str fields = arena_printf(&a, "spec.nodeName=" STR_FMT, STR_ARG(s->o.node->name));

	if (s->informer)
		return;
	s->informer = informers_get(s->o.informers, TYPE(core_v1, Pod), &(struct informer_options){ .fields = fields });
	s->listener = (struct informer_listener){ .changed = on_change, .synced = on_synced };
	informer_listen(s->informer, &s->listener);
}

void source_api_end(struct sources *s)
{
	if (s->informer)
		informer_unlisten(&s->listener);
}
