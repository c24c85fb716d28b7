/*
 * The same question, asked by a client: SubjectAccessReview (may this user), LocalSubjectAccessReview (in this
 * namespace) and SelfSubjectAccessReview (may I). The answer is the review with its status.
 */
#include "apiserver/admission/admission.h"
#include "apiserver/authz/authz_priv.h"
#include "apiserver/meta.h"
#include "apiserver/write.h"
#include "codec/atoms.h"
#include "machinery/selector.h"
#include "machinery/validate.h"

/* ---- selectors of the question ---- */

struct selectors {
	str fields, labels;           /* as a query has them */
	const char *fields_error, *labels_error; /* how much of them is left out, or NULL */
};

static const char *ignored(bool some, bool of_fields)
{
	static const char *const texts[2][2] = {
		{ "spec.resourceAttributes.labelSelector ignored due to parse error",
		  "spec.resourceAttributes.labelSelector partially ignored due to parse error" },
		{ "spec.resourceAttributes.fieldSelector ignored due to parse error",
		  "spec.resourceAttributes.fieldSelector partially ignored due to parse error" },
	};
	return texts[of_fields][some];
}

/* One requirement of a field selector; false: it is left out. */
static bool field_term_of(struct val requirement, struct field_term *ret)
{
	struct val values = val_get(requirement, values);
	str operator = val_str(requirement, operator);
	bool in = str_eq(operator, STR("In")), not_in = str_eq(operator, STR("NotIn"));
	if (val_len(values) != 1 || (!in && !not_in))
		return false;
	*ret = (struct field_term){ .field = val_str(requirement, key), .value = val_as_str(val_at(values, 0)),
				    .negated = not_in };
	return true;
}

static void take_fields(struct arena *a, struct val selector, struct selectors *ret)
{
	struct val requirements = val_get(selector, requirements);
	struct field_selector s = { 0 };
	str raw = val_str(selector, rawSelector);
	if (raw.n && field_selector_parse(a, raw, &s, NULL) < 0)
		ret->fields_error = ignored(false, true);
	else
		ret->fields = raw;
	if (!val_len(requirements))
		return;
	s = (struct field_selector){ .terms = ARENA_ARRAY(a, struct field_term, val_len(requirements)) };
	VAL_EACH(r, requirements)
		s.n += field_term_of(*r, &s.terms[s.n]);
	ret->fields_error = s.n < val_len(requirements) ? ignored(s.n > 0, true) : NULL;
	ret->fields = field_selector_text(a, &s);
}

/* One requirement of a label selector; false: it is left out. */
static bool label_term_of(struct arena *a, struct val requirement, struct requirement *ret)
{
	static const struct {
		str name;
		enum selector_op op;
	} operators[] = {
		{ STR_INIT("In"), SELECTOR_IN }, { STR_INIT("NotIn"), SELECTOR_NOT_IN }, { STR_INIT("Exists"), SELECTOR_EXISTS },
		{ STR_INIT("DoesNotExist"), SELECTOR_NOT_EXISTS },
	};
	struct val values = val_get(requirement, values);
	str *list = ARENA_ARRAY(a, str, val_len(values) + 1);
	struct field_errors e;
	field_errors_init(&e, a);
	for (size_t i = 0; i < val_len(values); i++)
		list[i] = val_as_str(val_at(values, i));
	for (size_t i = 0; i < ARRAY_LEN(operators); i++)
		if (str_eq(val_str(requirement, operator), operators[i].name))
			return selector_requirement(&e, NULL, val_str(requirement, key), operators[i].op, list, val_len(values),
						    ret);
	return false;
}

static void take_labels(struct arena *a, struct val selector, struct selectors *ret)
{
	struct val requirements = val_get(selector, requirements);
	str raw = val_str(selector, rawSelector);
	struct selector s;
	if (raw.n && selector_parse(a, raw, &s, NULL) < 0)
		ret->labels_error = ignored(false, false);
	else
		ret->labels = raw;
	size_t n = 0, all = val_len(requirements);
	if (!all)
		return;
	struct requirement *terms = ARENA_ARRAY(a, struct requirement, all);
	VAL_EACH(r, requirements)
		n += label_term_of(a, *r, &terms[n]);
	ret->labels_error = n < all ? ignored(n > 0, false) : NULL;
	s = selector_of_requirements(a, terms, n);
	ret->labels = selector_text(a, &s);
}

/* ---- the question ---- */

static struct user user_of(struct arena *a, struct val spec)
{
	struct val groups = val_get(spec, groups);
	str *list = ARENA_ARRAY(a, str, val_len(groups) + 1);
	for (size_t i = 0; i < val_len(groups); i++)
		list[i] = val_as_str(val_at(groups, i));
	return (struct user){ .name = val_str(spec, user), .uid = val_str(spec, uid), .groups = list,
			      .n_groups = val_len(groups), .extra = val_get(spec, extra) };
}

static struct authz_attributes attributes_of(struct arena *a, struct val spec, const struct user *user,
					     struct selectors *selectors)
{
	struct val r = val_get(spec, resourceAttributes), path = val_get(spec, nonResourceAttributes);
	if (!val_exists(r))
		return (struct authz_attributes){ .user = user, .verb = val_str(path, verb), .path = val_str(path, path) };
	take_fields(a, val_get(r, fieldSelector), selectors);
	take_labels(a, val_get(r, labelSelector), selectors);
	return (struct authz_attributes){
		.user = user, .verb = val_str(r, verb), .is_resource = true, .group = val_str(r, group),
		.version = val_str(r, version).n ? val_str(r, version) : STR("*"), .resource = val_str(r, resource),
		.subresource = val_str(r, subresource), .namespace = val_str(r, namespace), .name = val_str(r, name),
		.field_selector = selectors->fields, .label_selector = selectors->labels,
	};
}

/* ---- the answer ---- */

static struct val status_of_answer(struct request *q, int decision, str reason, const struct err *why,
				   const struct selectors *selectors)
{
	CLEANUP(buf_done) struct buf errors = BUF_INIT(1 << 20);
	const str all[] = { err_str(why), str_of(selectors->fields_error),
			    str_of(selectors->labels_error) };
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		if (errors.n && all[i].n)
			buf_add(&errors, STR("; "));
		buf_add(&errors, all[i]);
	}
	return OBJECT(q->arena, F(allowed, val_of_bool(decision == AUTHZ_ALLOW)),
		      F(denied, decision == AUTHZ_DENY ? val_of_bool(true) : VAL_EMPTY),
		      F(reason, reason.n ? val_of_str(reason) : VAL_EMPTY),
		      F(evaluationError, errors.n ? val_of_str(arena_str(q->arena, buf_str(&errors))) : VAL_EMPTY));
}

static int decode(struct request *q, struct val *ret, struct err *err)
{
	struct field_errors e;
	int r = write_read_body(q, err);
	if (r < 0 || (r = write_options(q, STR("CreateOptions"), false)) < 0 ||
	    (r = write_decode_body(q, q->endpoint->type, ret, err)) < 0)
		return r;
	*ret = meta_wipe(q->arena, *ret);
	if ((r = meta_set_namespace(q, ret)) < 0)
		return r;
	*ret = write_managed(q, q->endpoint->type, VAL_EMPTY, val_without(q->arena, *ret, status));
	if ((r = admission_pass(q, q->endpoint->type, ret, err)) < 0)
		return r;
	field_errors_init(&e, q->arena);
	validate_create(q->endpoint->type, *ret, &e);
	return e.n ? fail_invalid(q, q->group, STR_NONE, STR_NONE, &e) : 0;
}

int access_review_handle(struct request *q, struct err *err)
{
	struct val review;
	int r = decode(q, &review, err);
	if (r < 0)
		return r;
	struct val spec = val_get(review, spec);
	struct user named = user_of(q->arena, spec);
	bool self = str_eq(q->resource, STR("selfsubjectaccessreviews"));
	struct selectors selectors = { .fields = STR_NONE };
	struct authz_attributes what = attributes_of(q->arena, spec, self ? &q->user : &named, &selectors);
	struct err why = ERR_INIT;
	str reason;
	int decision = authz_decide(q->server, q->arena, &what, &reason, &why);
	review = val_with(q->arena, review, status_of_answer(q, decision, reason, &why, &selectors), status);
	r = val_canonical(q->arena, review, q->endpoint->type, NULL, &review, err);
	answer_val(q, 201, review, q->endpoint->type);
	return r;
}
