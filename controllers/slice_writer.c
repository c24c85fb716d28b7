#include "controllers/slice_writer.h"

#include "codec/atoms.h"
#include "codec/types.h"
#include "controllers/labels.h"

static str service_of(struct arena *a, struct val slice)
{
	str name = label_of(slice, STR(SLICE_SERVICE_NAME));

	return name.n ? arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(val_str(slice, metadata, namespace)), STR_ARG(name)) : STR_NONE;
}

void slice_by_service(struct val slice, void (*add)(str value, void *arg), void *arg)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str service = service_of(&a, slice);

	if (service.n)
		add(service, arg);
}

struct val slices_of(struct controller *c, struct arena *a, const struct informer *slices, str service_key, const char *manager)
{
	struct val_builder list = val_builder(a);

	INFORMER_EACH(slice, informer_each_indexed(slices, SLICE_INDEX, service_key))
		if (str_eq(label_of(slice->val, STR(SLICE_MANAGED_BY)), str_of(manager)))
			val_add_item(&list, controller_hold(c, a, slice));
	return val_end_list(&list);
}

void slice_changed(struct controller *c, struct slice_tracker *t, const char *manager, struct frozen *old, struct frozen *slice)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	bool was = old && str_eq(label_of(old->val, STR(SLICE_MANAGED_BY)), str_of(manager));
	bool is = slice && str_eq(label_of(slice->val, STR(SLICE_MANAGED_BY)), str_of(manager));

	if (!was && !is)
		return;
	str key = object_key(&a, slice ? slice->val : old->val);
	str before = old ? service_of(&a, old->val) : STR_NONE, now = slice ? service_of(&a, slice->val) : before;
	if (before.n && !str_eq(before, now))
		controller_add(c, before);
	if (now.n && slice_tracker_saw(t, now, key, slice ? val_int(slice->val, metadata, generation) : 0))
		controller_add(c, now);
}

/* ---- writing ---- */

struct writing {
	struct controller *c;
	struct slice_tracker *tracker;
	const struct informer *slices;
	str service_key;
	const char *of;
};

static void wrote(const struct writing *w, struct val slice, int64_t generation)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	slice_tracker_wrote(w->tracker, w->slices, w->service_key, object_key(&a, slice), generation);
}

static int create_one(const struct writing *w, struct val slice, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *made = NULL;
	int r = client_create(w->c->client, TYPE(discovery_v1, EndpointSlice), slice, NULL, &made, err);

	if (r < 0)
		return err_wrap(err, r, "failed to create EndpointSlice for %s " STR_FMT, w->of, STR_ARG(w->service_key));
	wrote(w, made->val, val_int(made->val, metadata, generation));
	return 0;
}

static int update_one(const struct writing *w, struct val slice, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *now = NULL;
	int r = client_update(w->c->client, TYPE(discovery_v1, EndpointSlice), slice, NULL, &now, err);

	if (r < 0)
		return err_wrap(err, r, "failed to update " STR_FMT " EndpointSlice for %s " STR_FMT, STR_ARG(val_str(slice, metadata, name)), w->of,
				STR_ARG(w->service_key));
	wrote(w, now->val, val_int(now->val, metadata, generation));
	return 0;
}

static int delete_one(const struct writing *w, struct val slice, struct err *err)
{
	str name = val_str(slice, metadata, name);
	int r = client_delete(w->c->client, TYPE(discovery_v1, EndpointSlice), val_str(slice, metadata, namespace), name, NULL, err);

	if (r < 0 && r != -ERR_NOT_FOUND)
		return err_wrap(err, r, "failed to delete " STR_FMT " EndpointSlice for %s " STR_FMT, STR_ARG(name), w->of, STR_ARG(w->service_key));
	err_clear(err);
	wrote(w, slice, 0);
	return 0;
}

int slices_write(struct controller *c, struct slice_tracker *t, const struct informer *slices, str service_key, struct val create, struct val update,
		 struct val gone, const char *of, struct err *err)
{
	const struct writing w = { c, t, slices, service_key, of };
	int r = 0;

	VAL_EACH(s, create)
		if (r == 0 && (r = create_one(&w, *s, err)) < 0 && error_is_namespace_ending(err)) {
			err_clear(err);
			return 0;
		}
	VAL_EACH(s, update)
		if (r == 0)
			r = update_one(&w, *s, err);
	VAL_EACH(s, gone)
		if (r == 0)
			r = delete_one(&w, *s, err);
	return r;
}
