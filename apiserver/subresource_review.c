/* Questions that are asked by creating an object, and whose answer is that object's status: who am I, and what may I do. */
#include "apiserver/meta.h"
#include "apiserver/subresource.h"
#include "apiserver/write.h"
#include "codec/atoms.h"

static int decode(struct request *q, struct val *ret, struct err *err)
{
	int r = write_read_body(q, err);
	if (r < 0 || (r = write_options(q, STR("CreateOptions"), false)) < 0 ||
	    (r = write_decode_body(q, q->endpoint->type, ret, err)) < 0)
		return r;
	*ret = meta_wipe(q->arena, *ret);
	return 0;
}

static struct val groups_of(struct request *q)
{
	struct val_builder b = val_builder(q->arena);
	for (size_t i = 0; i < q->user.n_groups; i++)
		val_add_item(&b, val_of_str(q->user.groups[i]));
	return val_end_list(&b);
}

int self_review_handle(struct request *q, struct err *err)
{
	struct val sent;
	int r = decode(q, &sent, err);
	if (r < 0)
		return r;
	const struct user *u = &q->user;
	struct val user = OBJECT(q->arena, F(username, val_of_str(u->name)), F(uid, val_of_str(u->uid)),
				 F(groups, groups_of(q)), F(extra, u->extra));
	struct val review = OBJECT(q->arena, F(kind, val_get(sent, kind)), F(apiVersion, val_get(sent, apiVersion)),
				   F(metadata, OBJECT(q->arena, F(creationTimestamp, meta_now(q)))),
				   F(status, OBJECT(q->arena, F(userInfo, user))));
	r = val_canonical(q->arena, review, q->endpoint->type, NULL, &review, err);
	answer_val(q, 201, review, q->endpoint->type);
	return r;
}

/* As Kubernetes shows it in errors: {"Path":"/","Verb":"get"} */
static struct val shown_path(struct request *q, struct val attributes)
{
	struct val_builder b = val_builder(q->arena);
	val_add_member(&b, atom_make(q->arena, STR("Path")), val_of_str(val_str(attributes, path)));
	val_add_member(&b, atom_make(q->arena, STR("Verb")), val_of_str(val_str(attributes, verb)));
	return val_end_object(&b);
}

int self_access_review_handle(struct request *q, struct err *err)
{
	struct val review;
	int r = decode(q, &review, err);
	if (r < 0)
		return r;
	struct field_errors e;
	field_errors_init(&e, q->arena);
	const struct field_path *spec = FIELD(NULL, "spec");
	struct val resource = val_get(review, spec, resourceAttributes), path = val_get(review, spec, nonResourceAttributes);
	if (val_exists(resource) && val_exists(path))
		field_invalid(&e, FIELD(spec, "nonResourceAttributes"), shown_path(q, path),
			      "cannot be specified in combination with resourceAttributes");
	if (!val_exists(resource) && !val_exists(path))
		field_invalid(&e, FIELD(spec, "resourceAttributes"), VAL_NULL_VALUE,
			      "exactly one of nonResourceAttributes or resourceAttributes must be specified");
	if (e.n)
		return fail_invalid(q, q->group, STR_NONE, STR_NONE, &e);
	review = write_managed(q, q->endpoint->type, VAL_EMPTY, val_without(q->arena, review, status));
	/* whoever gets here may do everything (authz.c) */
	review = val_with(q->arena, review, OBJECT(q->arena, F(allowed, val_of_bool(true))), status);
	r = val_canonical(q->arena, review, q->endpoint->type, NULL, &review, err);
	answer_val(q, 201, review, q->endpoint->type);
	return r;
}
