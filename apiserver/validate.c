/*
 * STAGE_VALIDATE: whether it can be. The server fills in what is its own to say (uid, times, status, generation), the
 * kind's hook takes what the object needs (an address), and then all that is wrong is said at once.
 */
#include "machinery/validate.h"

#include "apiserver/apiserver.h"
#include "apiserver/meta.h"
#include "apiserver/pipeline.h"
#include "apiserver/subresource.h"
#include "apiserver/warnings.h"
#include "apiserver/write.h"
#include "codec/atoms.h"
#include "machinery/managed_fields.h"

static int begin(struct request *q)
{
	const struct kind_hooks *hooks = q->endpoint->kind->hooks;
	if (q->subresource.n)
		return 0;
	int r = hooks->begin ? hooks->begin(q, q->old, &q->object) : 0;
	q->begun = r >= 0 && hooks->finish;
	return r;
}

static int prepare_new(struct request *q, struct field_errors *e, struct err *err)
{
	q->object = meta_fill(q, q->object);
	int r = begin(q);
	if (r < 0)
		return r;
	r = prepare_create(q->arena, q->type, q->server->options.gates, q->object, &q->object, err);
	if (r < 0)
		return r;
	const struct kind_hooks *hooks = q->endpoint->kind->hooks;
	if (hooks->fill)
		q->object = hooks->fill(q, q->object);
	admin_access_check(q, e);
	validate_create(q->type, q->object, e);
	return 0;
}

/* What an update cannot change, whatever it says. */
static struct val keep(struct request *q, struct val object)
{
	struct val meta = val_get(q->old, metadata);
	object = meta_put(q->arena, object, A_generation, val_member(meta, A_generation));
	if (!val_str(object, metadata, uid).n)
		object = meta_put(q->arena, object, A_uid, val_member(meta, A_uid));
	object = meta_put(q->arena, object, A_creationTimestamp, val_member(meta, A_creationTimestamp));
	if (val_exists(val_member(meta, A_deletionTimestamp)))
		object = meta_put(q->arena, object, A_deletionTimestamp, val_member(meta, A_deletionTimestamp));
	if (val_exists(val_member(meta, A_deletionGracePeriodSeconds)) &&
	    !val_has(object, metadata, deletionGracePeriodSeconds))
		object = meta_put(q->arena, object, A_deletionGracePeriodSeconds,
				  val_member(meta, A_deletionGracePeriodSeconds));
	return object;
}

static int prepare_changed(struct request *q, struct field_errors *e, struct err *err)
{
	int r = begin(q);
	if (r < 0)
		return r;
	/* a view is written by changing what is behind it */
	str subresource = subresource_view(q) ? STR_NONE : q->subresource;
	q->object = keep(q, q->object);
	r = prepare_update(q->arena, q->type, q->server->options.gates, subresource, q->object, q->old, &q->object, err);
	if (r < 0)
		return r;
	admin_access_check(q, e);
	if (subresource.n)
		validate_subresource(q->type, subresource, q->object, q->old, e);
	else
		validate_update(q->type, q->object, q->old, e);
	return 0;
}

int stage_validate(struct request *q, struct err *err)
{
	if (!val_exists(q->object))
		return STAGE_NEXT;
	struct field_errors e;
	field_errors_init(&e, q->arena);
	e.no_privileged = !q->server->options.allow_privileged;
	e.gates = q->server->options.gates;
	int r = q->current ? prepare_changed(q, &e, err) : prepare_new(q, &e, err);
	if (r < 0)
		return r;
	if (e.n)
		return fail_invalid(q, q->type->package->group, q->type->name, val_str(q->object, metadata, name), &e);
	warnings_add(q);
	if ((r = default_object(q->arena, q->type, q->object, &q->object, err)) < 0)
		return r;
	if (q->current)
		q->object = managed_keep_times(q->arena, q->old, q->object);
	return STAGE_NEXT;
}
