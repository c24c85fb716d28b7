#include "kubelet/pod_view.h"

#include "codec/atoms.h"

const struct container_note *pod_view_note(const struct pod_view *v, str name)
{
	static const struct container_note none = { 0 };

	for (size_t i = 0; i < v->n_notes; i++)
		if (str_eq(v->notes[i].name, name))
			return &v->notes[i];
	return &none;
}

struct val pod_view_container(const struct pod_view *v, str name)
{
	VAL_EACH(c, v->containers)
		if (str_eq(val_str(*c, metadata, name), name))
			return *c;
	return VAL_EMPTY;
}

struct val pod_view_status(const struct pod_view *v) { return val_exists(v->status) ? v->status : val_get(v->pod, status); }
