/* Read, change, write; again from the store itself when somebody was faster. */
#include "apiserver/change.h"

#include "apiserver/cache.h"
#include "apiserver/stored.h"

enum { ATTEMPTS_MAX = 100 };

/* 1: done; 0: again. */
static int attempt(struct request *q, struct kind *kind, str key, bool fresh, change_fn change, void *arg, struct object **ret,
		   struct err *err)
{
	CLEANUP(object_unrefp) struct object *current = NULL;
	int r = stored_get(q, kind, key, fresh, &current, err);
	if (r < 0)
		return r;
	if (!current)
		return fail_not_found(q, kind->group, kind->resource, str_skip(key, (size_t)(str_rchr(key, '/') + 1)));
	struct val object = current->val;
	r = change(q, &object, arg);
	if (r < 0) {
		q->failure = val_copy(q->arena, q->failure); /* it outlives the object */
		return r;
	}
	if ((r = val_canonical(q->arena, object, kind->hub, NULL, &object, err)) < 0)
		return r;
	if (q->dry_run || val_equal(object, current->val)) {
		*ret = TAKE(current);
		return 1;
	}
	object = cache_stored_form(q->arena, kind, object);
	r = stored_put(q, kind, key, object, current->revision, ret, err);
	if (r == 0)
		object_unref(TAKE(*ret));
	return r;
}

int change_object(struct request *q, struct kind *kind, str key, change_fn change, void *arg, struct object **ret,
		  struct err *err)
{
	CLEANUP(object_unrefp) struct object *after = NULL;
	int r = 0;
	for (unsigned i = 0; i < ATTEMPTS_MAX && r == 0; i++)
		r = attempt(q, kind, key, i > 0, change, arg, &after, err);
	if (r == 0)
		return err_set(err, ERR_CONFLICT, "the object changes too fast to be written");
	if (r > 0 && ret)
		*ret = TAKE(after);
	return r < 0 ? r : 0;
}
