/*
 * Apply. Pruning is the part that is hard to see: what the manager gave up is removed from the merged object first,
 * together with all structs on the way to it; then what anybody owns is put back, and last what nobody ever owned. So
 * a field goes only if the manager owned it and nobody else does.
 */
#include "codec/atoms.h"
#include "codec/codec.h"
#include "machinery/apply_priv.h"
#include "machinery/patch_priv.h"

/* ---- pruning ---- */

/* What is owned in each version that has managers. */
static int owned_at(struct apply *op, str api_version, struct field_set *ret)
{
	struct field_set *sets = ARENA_ARRAY(op->arena, struct field_set, op->managed.n);
	size_t n = 0;
	for (uint32_t i = 0; i < op->managed.n; i++)
		if (str_eq(op->managed.v[i].api_version, api_version))
			sets[n++] = op->managed.v[i].set;
	*ret = field_set_union_all(op->arena, sets, n);
	return n > 0;
}

/* Puts back into pruned what managers of one version own. Both come out in that version, unless it is gone. */
static int add_back_owned(struct apply *op, str api_version, struct versioned *merged, struct versioned *pruned)
{
	struct arena *a = op->arena;
	struct field_set owned, all, left;
	struct versioned m, p;
	int r;

	if (!owned_at(op, api_version, &owned))
		return 0;
	if ((r = apply_convert(op, merged, api_version, &m)) <= 0)
		return r;
	*merged = m;
	if ((r = apply_convert(op, pruned, api_version, &p)) <= 0)
		return r;
	if ((r = apply_fields(a, m.type, m.v, &all, op->err)) < 0 ||
	    (r = apply_fields(a, p.type, p.v, &left, op->err)) < 0)
		return r;
	all = apply_name_fields(a, m.type, all);
	left = field_set_union(a, apply_name_fields(a, m.type, left), apply_name_fields(a, m.type, owned));
	*pruned = m;
	pruned->v = apply_remove(a, m.type, m.v, field_set_difference(a, all, left));
	return 0;
}

static int add_back_all_owned(struct apply *op, const struct versioned *merged, struct versioned *pruned)
{
	struct versioned m = *merged;
	str first = pruned->api_version; /* before any conversion, which may need fields that were pruned */
	int r = add_back_owned(op, first, &m, pruned);

	for (uint32_t i = 0; r >= 0 && i < op->managed.n; i++) {
		str version = op->managed.v[i].api_version;
		bool done = str_eq(version, first);
		for (uint32_t j = 0; j < i && !done; j++)
			done = str_eq(version, op->managed.v[j].api_version);
		if (!done)
			r = add_back_owned(op, version, &m, pruned);
	}
	return r;
}

/* Of what is missing in pruned only that may be missing which the manager owned. */
static int add_back_dangling(struct apply *op, const struct versioned *merged, const struct manager *last,
			     struct versioned *pruned)
{
	struct arena *a = op->arena;
	struct field_set all, left;
	struct versioned p;
	int r = apply_convert(op, pruned, last->api_version, &p);

	if (r == 0)
		*pruned = *merged;
	if (r <= 0)
		return r;
	if ((r = apply_fields(a, p.type, p.v, &left, op->err)) < 0 ||
	    (r = apply_fields(a, merged->type, merged->v, &all, op->err)) < 0)
		return r;
	struct field_set gone = field_set_difference(a, apply_name_fields(a, merged->type, all),
						     apply_name_fields(a, merged->type, left));
	gone = field_set_intersection(a, gone, apply_name_fields(a, merged->type, last->set));
	*pruned = *merged;
	pruned->v = apply_remove(a, merged->type, merged->v, gone);
	return 0;
}

/* Removes from the merged object what the manager applied last time and neither it nor anybody else claims now. */
static int prune(struct apply *op, const struct manager *last, struct versioned *object)
{
	struct versioned merged, pruned;
	int r;

	if (field_set_empty(last->set))
		return 0;
	if ((r = apply_convert(op, object, last->api_version, &merged)) <= 0)
		return r;
	pruned = merged;
	pruned.v = apply_remove(op->arena, merged.type, merged.v, apply_name_fields(op->arena, merged.type, last->set));
	if ((r = add_back_all_owned(op, &merged, &pruned)) < 0 ||
	    (r = add_back_dangling(op, &merged, last, &pruned)) < 0)
		return r;
	if ((r = apply_convert(op, &pruned, op->req->api_version, object)) == 0)
		return err_set(op->err, ERR_INTERNAL, "no such version: " STR_FMT, STR_ARG(op->req->api_version));
	return r < 0 ? r : 0;
}

/* ---- conflicts ---- */

/* What one try at applying gives: conflicts, or the new object with its managers. */
struct outcome {
	struct managed managed;
	struct versioned object;
	struct apply_taken conflicts;
};

static str manager_text(struct arena *a, const struct manager *m)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(SIZE_MAX);
	buf_add_quoted(&b, m->name);
	if (m->subresource.n) {
		buf_add(&b, STR(" with subresource "));
		buf_add_quoted(&b, m->subresource);
	}
	if (!m->applied) {
		buf_add(&b, STR(" using "));
		buf_add(&b, m->api_version);
	}
	return arena_str(a, buf_str(&b));
}

struct listing {
	struct arena *arena;
	struct field_set allowed;   /* not listed */
	struct apply_conflict *v;
	size_t n;
	str message;                /* of the manager in turn */
	str manager;
	struct buf lines;           /* "conflicts with ...:\n- .a\n- .b" per manager */
};

static void list_conflict(const struct path_element *path, size_t n, void *arg)
{
	struct listing *l = arg;
	CLEANUP(buf_done) struct buf b = BUF_INIT(SIZE_MAX);

	if (field_set_has(l->allowed, path, n))
		return;
	for (size_t i = 0; i < n; i++)
		path_element_print(&b, &path[i]);
	if (l->manager.n)
		buf_addf(&l->lines, "%sconflicts with " STR_FMT ":", l->lines.n ? "\n" : "", STR_ARG(l->manager));
	l->manager = STR_NONE;
	buf_add(&l->lines, STR("\n- "));
	buf_add(&l->lines, buf_str(&b));
	l->v[l->n++] = (struct apply_conflict){ .field = arena_str(l->arena, buf_str(&b)), .message = l->message };
}

/* All conflicts but the allowed ones; managers stand in the order of their ids. */
static void list_conflicts(struct arena *a, const struct outcome *out, struct field_set allowed,
			   struct apply_conflicts *ret)
{
	struct listing l = { .arena = a, .allowed = allowed, .lines = BUF_INIT(SIZE_MAX) };
	size_t n = 0;

	for (uint32_t i = 0; i < out->managed.n; i++)
		n += field_set_size(out->conflicts.v[i]);
	l.v = ARENA_ARRAY(a, struct apply_conflict, n);
	for (uint32_t i = 0; i < out->managed.n; i++) {
		if (field_set_empty(out->conflicts.v[i]))
			continue;
		l.manager = manager_text(a, &out->managed.v[i]);
		l.message = arena_join(a, STR("conflict with "), l.manager);
		field_set_each(out->conflicts.v[i], list_conflict, &l);
	}
	*ret = (struct apply_conflicts){ .v = l.v, .n = l.n };
	if (l.n == 1)
		ret->message = arena_printf(a, "Apply failed with 1 conflict: " STR_FMT ": " STR_FMT,
					    STR_ARG(l.v[0].message), STR_ARG(l.v[0].field));
	else
		ret->message = arena_printf(a, "Apply failed with %zu conflicts: " STR_FMT, l.n,
					    STR_ARG(buf_str(&l.lines)));
	buf_done(&l.lines);
}

/* ---- the annotation of client-side apply ---- */

#define LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"

enum { ANNOTATIONS_MAX = 256 * 1024 };

static str last_applied_of(struct val object)
{
	return val_as_str(val_find(val_get(object, metadata, annotations), STR(LAST_APPLIED)));
}

/*
 * What kubectl applied on the client's side and nobody changed since: server-side apply by kubectl may take that
 * over. Anything that is wrong with the annotation allows nothing.
 */
static struct field_set allowed_by_last_applied(struct apply *op, const struct versioned *live)
{
	struct arena *a = op->arena;
	struct apply_type t = apply_request_type(op->req);
	struct field_set all;
	struct apply_comparison c;
	struct val last;
	str text = last_applied_of(live->v);

	if (!text.n || apply_validate(a, t, live->v, false, NULL) < 0 ||
	    json_decode(a, text, &(struct json_decode_options){ .sort_keys = true }, &last, NULL) < 0 ||
	    !str_eq(val_str(last, apiVersion), op->req->api_version) || !str_eq(val_str(last, kind), op->req->kind) ||
	    apply_validate(a, t, last, false, NULL) < 0 ||
	    apply_fields(a, t, last, &all, NULL) < 0 || apply_compare(a, t, last, live->v, &c, NULL) < 0)
		return FIELD_SET_EMPTY;
	all = field_set_difference(a, all, c.modified);
	all = field_set_difference(a, all, c.added);
	return field_set_difference(a, all, c.removed);
}

/* Keeps the annotation of an object that has it in step with what kubectl applies now. */
static int update_last_applied(struct apply *op, struct val patch, struct val *object)
{
	struct arena *a = op->arena;
	struct val annotations = val_get(*object, metadata, annotations);
	size_t size = 0;

	if (!str_eq(op->req->manager, STR("kubectl")) || !last_applied_of(*object).n)
		return 0;
	atom key = atom_make(a, STR(LAST_APPLIED));
	struct val bare = patch, given = val_get(patch, metadata, annotations);
	if (given.type == VAL_OBJECT)
		bare = val_with(a, patch, val_put(a, given, key, VAL_EMPTY), metadata, annotations);
	CLEANUP(buf_done) struct buf b = BUF_INIT(SIZE_MAX);
	int r = patch_sorted_deep(a, bare, 0, &bare, op->err);
	if (r == 0)
		r = json_encode(&b, bare, &(struct json_encode_options){ 0 }, op->err);
	if (r < 0)
		return err_wrap(op->err, r, "failed to build last-applied annotation");
	buf_addc(&b, '\n');
	annotations = val_put(a, annotations, key, val_of_str(arena_str(a, buf_str(&b))));
	VAL_EACH_MEMBER(m, annotations)
		size += atom_str(m->key).n + val_as_str(m->val).n;
	if (size > ANNOTATIONS_MAX)
		annotations = val_put(a, annotations, key, VAL_EMPTY);
	*object = val_with(a, *object, annotations, metadata, annotations);
	return 0;
}

/* ---- apply ---- */

static int check_patch(struct apply *op, struct val patch)
{
	const struct apply_request *req = op->req;
	str version = val_str(patch, apiVersion), kind = val_str(patch, kind), group, rest;

	if (!str_eq(version, req->api_version) || !str_eq(kind, req->kind)) {
		bool grouped = str_cut(version, '/', &group, &rest);
		if (str_chr(rest, '/') >= 0) { /* no API version at all */
			version = kind = STR_NONE;
			grouped = false;
		}
		return err_set(op->err, ERR_BAD_REQUEST, "invalid object type: %s" STR_FMT ", Kind=" STR_FMT,
			       grouped ? "" : "/", STR_ARG(version), STR_ARG(kind));
	}
	if (val_get(patch, metadata, managedFields).type == VAL_LIST)
		return err_set(op->err, ERR_BAD_REQUEST, "metadata.managedFields must be nil");
	return 0;
}

/* The manager's new entry. Its time is that of its last apply until it is known whether this one changes anything. */
static void claim(struct apply *op, str id, struct field_set set)
{
	const struct apply_request *req = op->req;
	const struct manager *before = managed_find(&op->managed, id);
	struct manager entry = { .id = id, .name = apply_request_manager(req), .api_version = req->api_version,
				 .subresource = req->subresource, .applied = true, .set = set };
	if (before) {
		entry.timed = before->timed;
		entry.time = before->time;
	}
	managed_put(op->arena, &op->managed, entry);
}

static void settle_claim(struct apply *op, bool changed)
{
	str id = manager_id(op->arena, apply_request_manager(op->req), true, STR_NONE, op->req->subresource);
	struct manager *entry = managed_find(&op->managed, id);

	if (!entry)
		return;
	entry->set = apply_without_system(op->arena, entry->set);
	if (changed) {
		entry->timed = true;
		entry->time = op->req->now;
	}
	managed_drop_empty(&op->managed);
}

static struct managed managed_copy(struct arena *a, const struct managed *m)
{
	struct managed copy = { ARENA_ARRAY(a, struct manager, m->n), m->n };
	if (m->n)
		memcpy(copy.v, m->v, m->n * sizeof(*copy.v));
	return copy;
}

static int try_to_apply(const struct apply *start, const struct versioned *live, const struct versioned *patch,
			bool force, struct outcome *ret)
{
	struct arena *a = start->arena;
	struct apply op = *start;
	struct apply_comparison changes;
	struct manager last = { 0 };
	struct field_set set;
	str id = manager_id(a, apply_request_manager(op.req), true, STR_NONE, op.req->subresource);
	int r;

	op.managed = managed_copy(a, &start->managed);
	if ((r = apply_reconcile_managers(&op, live)) < 0)
		return r;
	ret->object = *live;
	if ((r = apply_merge(a, live->type, live->v, patch->v, &ret->object.v, op.err)) < 0)
		return err_wrap(op.err, r, "failed to merge config");
	const struct manager *before = managed_find(&op.managed, id);
	if (before)
		last = *before;
	if ((r = apply_fields(a, patch->type, patch->v, &set, op.err)) < 0)
		return err_wrap(op.err, r, "failed to get field set");
	claim(&op, id, apply_filter(&op, op.req->api_version, set));
	if ((r = prune(&op, &last, &ret->object)) < 0)
		return err_wrap(op.err, r, "failed to prune fields");
	if ((r = apply_take_changes(&op, live, &ret->object, id, !force, &changes, &ret->conflicts)) < 0)
		return r;
	ret->managed = op.managed;
	return 0;
}

/* Tries, and tries again with force when kubectl only conflicts with what it applied from the client's side before. */
static int apply_or_conflict(struct apply *op, const struct versioned *live, const struct versioned *patch,
			     bool force, struct outcome *ret, struct apply_conflicts *ret_conflicts)
{
	struct apply_conflicts conflicts;
	struct field_set allowed = FIELD_SET_EMPTY;
	int r = try_to_apply(op, live, patch, force, ret);

	if (r < 0 || force || !ret->conflicts.n)
		return r;
	if (str_eq(op->req->manager, STR("kubectl")))
		allowed = allowed_by_last_applied(op, live);
	list_conflicts(op->arena, ret, allowed, &conflicts);
	if (!conflicts.n)
		return try_to_apply(op, live, patch, true, ret);
	if (ret_conflicts)
		*ret_conflicts = conflicts;
	return err_set(op->err, ERR_CONFLICT, STR_FMT, STR_ARG(conflicts.message));
}

/* An object that nobody tracked so far gets a manager for all that is in it. */
static int begin_tracking(struct apply *op, struct val object, const struct versioned *live)
{
	struct versioned empty;
	int r = apply_validate(op->arena, live->type, live->v, true, op->err);

	if (r < 0)
		err_wrap(op->err, r, "failed to convert new object (" STR_FMT ") to smd typed",
			 STR_ARG(apply_object_text(op->arena, object)));
	else if ((r = apply_document(op, apply_empty_object(op->arena, op->req), &empty)) == 0)
		r = apply_book_update(op, &empty, live, STR("before-first-apply"));
	return r < 0 ? err_wrap(op->err, r, "failed to create manager for existing fields") : 0;
}

static int prepare(struct apply *op, struct val object, struct val patch, struct versioned *ret_live,
		   struct versioned *ret_patch)
{
	struct arena *a = op->arena;
	bool create = !val_exists(object);
	int r = managed_decode(a, val_get(object, metadata, managedFields), &op->managed, op->err);

	if (r < 0)
		return err_wrap(op->err, r, "failed to decode managed fields");
	if ((r = check_patch(op, patch)) < 0 ||
	    (r = apply_document(op, create ? apply_empty_object(a, op->req) : object, ret_live)) < 0 ||
	    (!op->managed.n && !create && (r = begin_tracking(op, object, ret_live)) < 0))
		return r;
	*ret_patch = (struct versioned){ patch, ret_live->type, op->req->api_version };
	if ((r = apply_validate(a, ret_patch->type, patch, false, op->err)) < 0)
		return err_wrap(op->err, r, "failed to create typed patch object (" STR_FMT ")",
				STR_ARG(apply_object_text(a, patch)));
	if ((r = apply_validate(a, ret_live->type, ret_live->v, true, op->err)) < 0)
		return err_wrap(op->err, r, "failed to create typed live object (" STR_FMT ")",
				STR_ARG(apply_object_text(a, object)));
	return 0;
}

/* What the decoder says about a JSON text, as Kubernetes says it about a tree. */
static void reword(struct arena *a, struct err *err)
{
	str text = err ? arena_str(a, err_str(err)) : STR_NONE, what, type;
	ptrdiff_t into = str_find(text, STR(" into Go struct field ")), of = str_find(text, STR(" of type "));

	if (str_starts(text, STR("illegal base64"))) {
		err_wrap(err, 0, "error decoding from json");
		return;
	}
	if (into < 0 || of < into)
		return;
	what = str_head(text, (size_t)into);
	type = str_skip(text, (size_t)of + STR(" of type ").n);
	if (str_starts(what, STR("json: cannot unmarshal number ")))
		err_set(err, err->code, "cannot convert float64 to " STR_FMT, STR_ARG(type));
	else
		err_set(err, err->code, STR_FMT " into Go value of type " STR_FMT, STR_ARG(what), STR_ARG(type));
}

/* The result of the merge as an object of the kind. */
static int to_typed(struct apply *op, struct val merged, struct val patch, struct val *ret)
{
	str text = apply_object_text(op->arena, patch), kind;
	int r = val_canonical(op->arena, merged, op->req->type, NULL, ret, op->err);

	if (r >= 0)
		return 0;
	reword(op->arena, op->err);
	kind = str_skip(text, (size_t)str_find(text, STR("; ")) + 2);
	err_wrap(op->err, r, "unable to convert unstructured object to " STR_FMT, STR_ARG(kind));
	if (op->err)
		op->err->code = ERR_INTERNAL;
	return err_wrap(op->err, -ERR_INTERNAL, "failed to convert new object (" STR_FMT ") to proper version",
			STR_ARG(text));
}

int apply_patch(struct arena *a, const struct apply_request *req, struct val live, struct val patch, bool force,
		struct val *ret, struct apply_conflicts *ret_conflicts, struct err *err)
{
	struct apply op = { .arena = a, .req = req, .err = err };
	struct versioned from, over;
	struct outcome out;
	struct val object = live;
	int r;

	if ((r = prepare(&op, live, patch, &from, &over)) < 0 ||
	    (r = apply_or_conflict(&op, &from, &over, force, &out, ret_conflicts)) < 0)
		return r;
	op.managed = out.managed;
	bool changed = !val_equal(from.v, out.object.v);
	settle_claim(&op, changed);
	if (changed || !val_exists(live)) {
		object = out.object.v;
		if (req->type && (r = to_typed(&op, out.object.v, patch, &object)) < 0)
			return r;
	}
	if ((r = update_last_applied(&op, patch, &object)) < 0)
		return r;
	*ret = apply_with_managed(&op, object);
	return 0;
}
