/*
 * The two operations. Kubernetes has them as a chain of wrappers around structured-merge-diff's Updater; here they
 * are one after the other, in the same order.
 *
 * An update compares the new object with the live one: what changed belongs to the updater, and to nobody else any
 * more. An apply merges, prunes what the manager gave up, and compares the result with the live object: what changed
 * and belongs to others is a conflict, or is taken from them by force.
 *
 * Sets of paths only make sense in the version that they were written in. So for every manager the objects are first
 * brought into that manager's version; struct versions keeps what was converted.
 */
#include "codec/atoms.h"
#include "machinery/apply_priv.h"
#include "machinery/patch.h"

/* ---- the request ---- */

struct val apply_empty_object(struct arena *a, const struct apply_request *req)
{
	struct member version = F(apiVersion, val_of_str(req->api_version)), kind = F(kind, val_of_str(req->kind));
	if (req->type) /* each in the order of its trees */
		return val_object(a, (struct member[]){ kind, version }, 2);
	return val_object(a, (struct member[]){ version, kind }, 2);
}

/* Without managedFields, in the form that all walks take. */
int apply_document(struct apply *op, struct val object, struct versioned *ret)
{
	struct val bare = val_without(op->arena, object, metadata, managedFields);
	*ret = (struct versioned){ .type = apply_request_type(op->req), .api_version = op->req->api_version };
	return patch_document(op->arena, bare, op->req->type, &ret->v, op->err);
}

struct field_set apply_filter(struct apply *op, str api_version, struct field_set s)
{
	for (size_t i = 0; i < op->req->n_resets; i++) {
		const struct apply_reset *reset = &op->req->resets[i];
		if (!str_eq(reset->api_version, api_version))
			continue;
		if (reset->only)
			return field_set_matching(op->arena, s, reset->only);
		return field_set_recursive_difference(op->arena, s, field_set_of(op->arena, reset->fields));
	}
	return s;
}

/* namespace/name; group/version, Kind=kind */
str apply_object_text(struct arena *a, struct val object)
{
	str version = val_str(object, apiVersion), head, tail;
	bool grouped = str_cut(version, '/', &head, &tail);
	return arena_printf(a, STR_FMT "/" STR_FMT "; %s" STR_FMT ", Kind=" STR_FMT,
			    STR_ARG(val_str(object, metadata, namespace)),
			    STR_ARG(val_str(object, metadata, name)), grouped ? "" : "/", STR_ARG(version),
			    STR_ARG(val_str(object, kind)));
}

/* ---- versions ---- */

static str group_of(str api_version)
{
	str group, version;
	return str_cut(api_version, '/', &group, &version) ? group : STR_NONE;
}

/* What can be known without a converter. */
static bool version_exists(const struct apply_request *req, str api_version)
{
	if (req->type)
		return schema_kind(api_version, req->kind) != NULL;
	return str_eq(group_of(api_version), group_of(req->api_version));
}

int apply_convert(struct apply *op, const struct versioned *from, str api_version, struct versioned *ret)
{
	const struct apply_request *req = op->req;
	if (str_eq(from->api_version, api_version)) {
		*ret = *from;
		return 1;
	}
	struct versioned to = { .type = from->type, .v = from->v, .api_version = api_version };
	if (req->converter) {
		int r = req->converter->convert(req->converter, op->arena, from->v, api_version, &to.v, &to.type,
						op->err);
		if (r < 0)
			return r == -ERR_NOT_FOUND ? 0 : r;
	} else if (!version_exists(req, api_version)) {
		return 0;
	}
	*ret = to;
	return 1;
}

/* What changed, in every version that a manager uses; the version of the request is the first. */
struct versions {
	struct comparison_at {
		str api_version;
		bool exists;
		struct apply_comparison changes;
	} *v;
	uint32_t n;
	struct apply_comparison raw; /* of the first, before what cannot be owned was taken out */
};

/* Without a converter the objects are the same in all versions, and so are their changes. */
static int compare_versioned(struct apply *op, struct versions *versions, const struct versioned *from,
			     const struct versioned *to, struct apply_comparison *ret)
{
	if (versions->n && !op->req->converter) {
		*ret = versions->raw;
		return 0;
	}
	int r = apply_compare(op->arena, from->type, from->v, to->v, ret, op->err);
	if (r < 0)
		return err_wrap(op->err, r, "failed to compare objects");
	if (!versions->n)
		versions->raw = *ret;
	return 0;
}

static int compare_at(struct apply *op, struct versions *versions, const struct versioned *from,
		      const struct versioned *to, str api_version, const struct comparison_at **ret)
{
	for (uint32_t i = 0; i < versions->n; i++)
		if (str_eq(versions->v[i].api_version, api_version)) {
			*ret = &versions->v[i];
			return 0;
		}
	struct comparison_at *c = &versions->v[versions->n];
	struct versioned x, y;
	*c = (struct comparison_at){ .api_version = api_version };
	int r = apply_convert(op, from, api_version, &x);
	if (r > 0)
		r = apply_convert(op, to, api_version, &y);
	if (r < 0)
		return err_wrap(op->err, r, "failed to convert object");
	if (r > 0) {
		if ((r = compare_versioned(op, versions, &x, &y, &c->changes)) < 0)
			return r;
		c->exists = true;
		c->changes.removed = apply_filter(op, api_version, c->changes.removed);
		c->changes.modified = apply_filter(op, api_version, c->changes.modified);
		c->changes.added = apply_filter(op, api_version, c->changes.added);
	}
	versions->n++;
	*ret = c;
	return 0;
}

/* ---- what a change means for the managers ---- */

/* Adapts old sets to the types of today; forgets managers of versions that are gone. */
int apply_reconcile_managers(struct apply *op, const struct versioned *live)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < op->managed.n; i++) {
		struct manager m = op->managed.v[i];
		struct versioned at;
		int r = apply_convert(op, live, m.api_version, &at);
		if (r < 0)
			return r;
		if (r == 0)
			continue;
		m.set = apply_reconcile(op->arena, at.type, m.set);
		op->managed.v[kept++] = m;
	}
	op->managed.n = kept;
	return 0;
}

int apply_take_changes(struct apply *op, const struct versioned *from, const struct versioned *to, str self,
		       bool stop, struct apply_comparison *ret_changes, struct apply_taken *ret_taken)
{
	struct managed *m = &op->managed;
	struct versions versions = { .v = ARENA_ARRAY(op->arena, struct comparison_at, m->n + 1) };
	struct field_set *rest = ARENA_ARRAY(op->arena, struct field_set, m->n);
	const struct comparison_at *c = NULL;
	int r = compare_at(op, &versions, from, to, op->req->api_version, &c);

	if (r < 0)
		return r;
	*ret_changes = c->changes;
	*ret_taken = (struct apply_taken){ ARENA_ARRAY(op->arena, struct field_set, m->n), 0 };
	for (uint32_t i = 0; i < m->n; i++) {
		ret_taken->v[i] = FIELD_SET_EMPTY;
		rest[i] = m->v[i].set;
		if (str_eq(m->v[i].id, self))
			continue;
		if ((r = compare_at(op, &versions, from, to, m->v[i].api_version, &c)) < 0)
			return r;
		if (!c->exists) {
			rest[i] = FIELD_SET_EMPTY;
			continue;
		}
		struct field_set changed = field_set_union(op->arena, c->changes.modified, c->changes.added);
		ret_taken->v[i] = field_set_intersection(op->arena, rest[i], changed);
		ret_taken->n += !field_set_empty(ret_taken->v[i]);
		rest[i] = field_set_difference(op->arena, rest[i], ret_taken->v[i]);
		rest[i] = field_set_difference(op->arena, rest[i], c->changes.removed);
	}
	if (stop && ret_taken->n)
		return 0;
	for (uint32_t i = 0; i < m->n; i++)
		m->v[i].set = rest[i];
	managed_drop_empty(m);
	return 0;
}

/* What is never owned: the identity of the object and what only the server sets. */
struct field_set apply_without_system(struct arena *a, struct field_set s)
{
#define NAMED(name) { .at = { .kind = PATH_FIELD, .field = A_##name }, .member = true }
	static const struct field_node metadata[] = {
		NAMED(creationTimestamp), NAMED(generation), NAMED(managedFields), NAMED(name), NAMED(namespace),
		NAMED(resourceVersion), NAMED(selfLink), NAMED(uid),
	};
	static const struct field_node root[] = {
		NAMED(apiVersion), NAMED(kind),
		{ .at = { .kind = PATH_FIELD, .field = A_metadata }, .member = true, .children = metadata,
		  .n = ARRAY_LEN(metadata) },
	};
#undef NAMED
	return field_set_difference(a, s, (struct field_set){ root, ARRAY_LEN(root) });
}

/* ---- update ---- */

/* from and to in the version of the request; the change is added to what the manager owns. */
int apply_book_update(struct apply *op, const struct versioned *from, const struct versioned *to, str manager)
{
	const struct apply_request *req = op->req;
	struct apply_comparison changes;
	struct apply_taken taken;
	int r = apply_reconcile_managers(op, from);
	if (r == 0)
		r = apply_take_changes(op, from, to, STR_NONE, false, &changes, &taken);
	if (r < 0)
		return r;
	struct field_set set = apply_filter(op, req->api_version,
					    field_set_union(op->arena, changes.modified, changes.added));
	set = apply_without_system(op->arena, set);
	if (!field_set_empty(set)) {
		struct manager entry = { .name = manager, .api_version = req->api_version,
					 .subresource = req->subresource, .timed = true, .time = req->now };
		entry.id = manager_id(op->arena, manager, false, req->api_version, req->subresource);
		const struct manager *before = managed_find(&op->managed, entry.id);
		entry.set = before ? field_set_union(op->arena, set, before->set) : set;
		managed_put(op->arena, &op->managed, entry);
	}
	managed_cap(op->arena, &op->managed, MANAGED_UPDATERS_MAX);
	return 0;
}

/*
 * The managers to start from: those that the client sent, or else those of the live object. What cannot be read
 * counts as none.
 */
static void managed_of_update(struct apply *op, struct val live, struct val new_object)
{
	struct val sent = val_get(new_object, metadata, managedFields);
	bool subresource = op->req->subresource.n > 0;

	op->managed = (struct managed){ NULL, 0 };
	if (!subresource && managed_is_reset(sent))
		return;
	if (!subresource && managed_decode(op->arena, sent, &op->managed, NULL) == 0 && op->managed.n)
		return;
	if (managed_decode(op->arena, val_get(live, metadata, managedFields), &op->managed, NULL) < 0)
		op->managed = (struct managed){ NULL, 0 };
}

/* A typed object that had no metadata gets them in their place, behind kind and apiVersion. */
static struct val put_metadata(struct arena *a, struct val object, struct val metadata, bool typed)
{
	if (!typed || val_has(object, metadata))
		return val_put(a, object, A_metadata, metadata);
	struct val_builder b = val_builder(a);
	val_add_member(&b, A_kind, val_get(object, kind));
	val_add_member(&b, A_apiVersion, val_get(object, apiVersion));
	val_add_member(&b, A_metadata, metadata);
	VAL_EACH_MEMBER(m, object)
		if (m->key != A_kind && m->key != A_apiVersion)
			val_add_member(&b, m->key, m->val);
	return val_end_object(&b);
}

/* The object with its managers, which stand last in the metadata of a typed tree and by name in that of a free one. */
struct val apply_with_managed(struct apply *op, struct val object)
{
	bool by_name = !op->req->type;
	struct val list = managed_encode(op->arena, &op->managed, by_name);
	struct val metadata = val_get(object, metadata);
	struct val_builder b = val_builder(op->arena);

	if (!val_exists(list) && !val_exists(metadata))
		return object;
	VAL_EACH_MEMBER(m, metadata) {
		if (m->key == A_managedFields)
			continue;
		if (by_name && list.type == VAL_LIST && path_name_cmp(m->key, A_managedFields) > 0) {
			val_add_member(&b, A_managedFields, list);
			list = VAL_EMPTY;
		}
		val_add_member(&b, m->key, m->val);
	}
	val_add_member(&b, A_managedFields, list);
	return put_metadata(op->arena, object, val_end_object(&b), !by_name);
}

int apply_update(struct arena *a, const struct apply_request *req, struct val live, struct val new_object,
		 struct val *ret, struct err *err)
{
	struct apply op = { .arena = a, .req = req, .err = err };
	bool create = !val_str(live, metadata, uid).n;
	struct versioned from, to;
	int r;

	managed_of_update(&op, live, new_object);
	if (!op.managed.n && !create) { /* nobody began to track this object */
		*ret = val_without(a, new_object, metadata, managedFields);
		return 0;
	}
	if ((r = apply_document(&op, val_exists(live) ? live : apply_empty_object(a, req), &from)) < 0 ||
	    (r = apply_document(&op, new_object, &to)) < 0)
		return r;
	if (!req->type) { /* typed trees fit their type */
		if ((r = apply_validate(a, to.type, to.v, true, err)) < 0)
			return err_wrap(err, r, "failed to convert new object (" STR_FMT ") to smd typed",
					STR_ARG(apply_object_text(a, new_object)));
		if ((r = apply_validate(a, from.type, from.v, true, err)) < 0)
			return err_wrap(err, r, "failed to convert live object (" STR_FMT ") to smd typed",
					STR_ARG(apply_object_text(a, live)));
	}
	if ((r = apply_book_update(&op, &from, &to, apply_request_manager(req))) < 0)
		return err_wrap(err, r, "failed to update ManagedFields (" STR_FMT ")",
				STR_ARG(apply_object_text(a, new_object)));
	*ret = apply_with_managed(&op, new_object);
	return 0;
}
