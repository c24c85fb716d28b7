/* The evaluators take requests: of one only the arena and what it is about. */
#include "controllers/quota_usage.h"

#include "codec/atoms.h"

static bool is_device_claim(const struct resource *r)
{
	return str_eq(r->name, STR("resourceclaims")) && str_eq(r->group, STR("resource.k8s.io"));
}

static struct request *request_about(struct arena *a, const struct quota_count *q, const struct resource *r)
{
	struct request *about = ARENA_NEW(a, struct request);
	about->arena = a;
	about->group = r->group;
	about->resource = r->name;
	about->namespace = val_str(q->quota, metadata, namespace);
	return about;
}

static struct val selectors_of(struct arena *a, struct val quota)
{
	struct val_builder b = val_builder(a);
	VAL_EACH(scope, val_get(quota, spec, scopes))
		val_add_item(&b, OBJECT(a, F(scopeName, *scope), F(operator, VAL_LIT("Exists"))));
	VAL_EACH(s, val_get(quota, spec, scopeSelector, matchExpressions))
		val_add_item(&b, *s);
	return b.n ? val_end_list(&b) : VAL_EMPTY;
}

void quota_count_init(struct quota_count *q, struct arena *a, struct val quota)
{
	*q = (struct quota_count){ .arena = a, .quota = quota, .hard = quota_amounts_of(a, val_get(quota, spec, hard)),
				   .selectors = selectors_of(a, quota) };
}

#define CLAIM_COUNT "count/resourceclaims.resource.k8s.io"

static bool covers(const struct quota_evaluator *e, const struct request *about, const struct resource *r, str name)
{
	/* Which devices a claim asks for is told by classes of devices, which the server has. */
	return is_device_claim(r) ? str_eq(name, STR(CLAIM_COUNT)) : e && e->covers(about, name);
}

bool quota_count_covers(struct quota_count *q, const struct resource *r)
{
	const struct request *about = request_about(q->arena, q, r);
	const struct quota_evaluator *e = quota_evaluator_of(about);
	struct quota_amounts zeros = { ARENA_ARRAY(q->arena, struct quota_amount, q->hard.n), 0 };
	for (size_t i = 0; i < q->hard.n; i++)
		if (covers(e, about, r, q->hard.list[i].name))
			zeros.list[zeros.n++] = (struct quota_amount){ q->hard.list[i].name, quantity_of_int(0, QUANTITY_DECIMAL_SI) };
	q->used = quota_merge(q->arena, q->used, zeros, QUOTA_ADD);
	return zeros.n > 0;
}

static bool is_in_scope(struct arena *a, const struct quota_count *q, const struct quota_evaluator *e, struct val object)
{
	str why;
	VAL_EACH(s, q->selectors)
		if (!e->in_scope || e->in_scope(a, *s, object, &why) <= 0)
			return false;
	return true;
}

/* What one object adds. */
static struct quota_amounts share_of(struct arena *a, const struct quota_count *q, const struct resource *r, struct val object)
{
	const struct request *about = request_about(a, q, r);
	const struct quota_evaluator *e = quota_evaluator_of(about);
	if (!e || !is_in_scope(a, q, e, object))
		return (struct quota_amounts){ 0 };
	if (is_device_claim(r)) {
		struct quota_amount one = { STR(CLAIM_COUNT), quantity_of_int(1, QUANTITY_DECIMAL_SI) };
		return quota_amounts_copy(a, (struct quota_amounts){ &one, 1 });
	}
	return quota_merge(a, e->usage(about, object), q->hard, QUOTA_MASK);
}

/* There may be many objects: all that stays is the sum, in place. */
void quota_count_add(struct quota_count *q, const struct resource *r, struct val object)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct quota_amounts share = share_of(&a, q, r, object);
	for (size_t i = 0; i < share.n; i++) {
		struct quota_amount *sum = quota_amount_find(q->used, share.list[i].name);
		if (sum)
			sum->q = quantity_add(sum->q, share.list[i].q);
	}
}

static bool amounts_equal(struct quota_amounts x, struct quota_amounts y)
{
	if (x.n != y.n)
		return false;
	for (size_t i = 0; i < x.n; i++)
		if (!str_eq(x.list[i].name, y.list[i].name) || quantity_cmp(x.list[i].q, y.list[i].q) != 0)
			return false;
	return true;
}

bool quota_count_differs(struct quota_count *q, const struct resource *r, struct val old, struct val object)
{
	return !amounts_equal(share_of(q->arena, q, r, old), share_of(q->arena, q, r, object));
}

struct val quota_count_status(struct quota_count *q)
{
	struct arena *a = q->arena;
	struct val had = val_get(q->quota, status);
	/* What nobody measures here stays as it is. */
	struct quota_amounts before = quota_amounts_of(a, val_get(had, used));
	struct quota_amounts used = quota_merge(a, quota_merge(a, before, q->used, QUOTA_REPLACE), q->hard, QUOTA_MASK);
	bool same = val_has(had, hard) && val_has(had, used) && amounts_equal(quota_amounts_of(a, val_get(had, hard)), q->hard) &&
		    amounts_equal(before, used);
	return same ? VAL_EMPTY : OBJECT(a, F(hard, quota_amounts_map(a, q->hard)), F(used, quota_amounts_map(a, used)));
}
