/* Resources that change while containers run. */
#include "base/log.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "kubelet/pod_rules.h"
#include "kubelet/pods_priv.h"

static int resize_container(struct pod *p, struct arena *a, const struct pod_view *v, struct container_start which, struct err *err)
{
	struct kubelet *k = p->kubelet;
	struct val c = pod_container_of(v->pod, which), status = pod_view_container(v, val_str(c, name)), answer;
	struct val request = OBJECT(a, F(containerId, val_get(status, id)), F(linux, container_resources_make(&k->node, a, v->pod, c)));
	int r = cri_ask(k->cri, &rpc_RuntimeService_UpdateContainerResources, a, request, 0, &answer, err);

	if (r < 0)
		return r;
	struct container_memory *m = pod_memory(p, val_str(c, name));
	frozen_unref(m->actuated);
	m->actuated = val_freeze(val_get(c, resources));
	m->note.actuated = m->actuated->val;
	return 0;
}

int pod_resize(struct pod *p, struct arena *a, const struct pod_view *v, const struct pod_actions *actions, struct err *err)
{
	struct cgroups *groups = p->kubelet->cgroups;
	int r = groups ? cgroups_pod_resize(groups, v->pod, true, err) : 0;

	for (size_t i = 0; i < actions->n_resizes && r >= 0; i++)
		r = resize_container(p, a, v, actions->resizes[i], err);
	return r >= 0 && groups ? cgroups_pod_resize(groups, v->pod, false, err) : r;
}
