/*
 * One request against the quotas of its namespace. Only what their status says counts: it is the limits that somebody has
 * measured the use of. A quota is asked when it limits something that objects of this resource use and all its scopes fit.
 */
#include "apiserver/admission/resource_quota.h"
#include "apiserver/write.h"
#include "base/buf.h"
#include "codec/atoms.h"

/* ---- quotas ---- */

static struct val selectors_of(struct arena *a, struct val quota)
{
	struct val_builder b = val_builder(a);
	VAL_EACH(scope, val_get(quota, spec, scopes))
		val_add_item(&b, OBJECT(a, F(scopeName, *scope), F(operator, VAL_LIT("Exists"))));
	VAL_EACH(s, val_get(quota, spec, scopeSelector, matchExpressions))
		val_add_item(&b, *s);
	return b.n ? val_end_list(&b) : VAL_EMPTY;
}

struct quota quota_of(struct arena *a, struct object *o)
{
	return (struct quota){
		.object = o,
		.name = val_str(o->val, metadata, name),
		.hard = quota_amounts_of(a, val_get(o->val, status, hard)),
		.used = quota_amounts_of(a, val_get(o->val, status, used)),
		.selectors = selectors_of(a, o->val),
	};
}

/* ---- what is asked for ---- */

void quota_demand_init(struct quota_demand *d, struct request *q, const struct quota_evaluator *e, struct val limited)
{
	*d = (struct quota_demand){ .q = q, .evaluator = e, .limited = limited, .usage = e->usage(q, q->object) };
	d->more = d->usage;
	if (val_exists(q->old))
		d->more = quota_merge(q->arena, d->usage, e->usage(q, q->old), QUOTA_LESS);
}

/* The selectors of the list that fit, put to the others; false: one is not good, with *ret_why. */
static bool add_scopes(const struct quota_demand *d, struct val selectors, struct val_builder *fitting, str *ret_why)
{
	VAL_EACH(s, selectors) {
		str why;
		int r = d->evaluator->in_scope ? d->evaluator->in_scope(d->q->arena, *s, d->q->object, &why) : 0;
		if (r < 0) {
			*ret_why = arena_printf(d->q->arena, "error on matching scope " STR_FMT ": " STR_FMT,
						STR_ARG(quota_selector_text(d->q->arena, *s)), STR_ARG(why));
			return false;
		}
		if (r > 0)
			val_add_item(fitting, *s);
	}
	return true;
}

static bool fits_scopes(const struct quota_demand *d, const struct quota *quota, struct val object)
{
	str ignored;
	VAL_EACH(s, quota->selectors)
		if (!d->evaluator->in_scope || d->evaluator->in_scope(d->q->arena, *s, object, &ignored) <= 0)
			return false;
	return true;
}

/* What the quota limits of the resources that the object's kind uses. */
static struct quota_amounts limits_of(const struct quota_demand *d, const struct quota *quota)
{
	struct quota_amounts x = { ARENA_ARRAY(d->q->arena, struct quota_amount, quota->hard.n), 0 };
	for (size_t i = 0; i < quota->hard.n; i++)
		if (d->evaluator->covers(d->q, quota->hard.list[i].name))
			x.list[x.n++] = quota->hard.list[i];
	return x;
}

/* ---- one check ---- */

struct check {
	const struct quota_demand *d;
	bool any;                     /* a quota has to do with the object */
	struct quota_amounts covered; /* all that the quotas which do limit */
	struct val_builder scopes;    /* of quotas, which the object is in */
	struct quota_share *shares;   /* one per quota that has to do with it */
	const struct quota **quotas;  /* which */
	size_t n;
};

/* Has the quota to do with the object? And if so, can its use be told? */
static int look(struct check *c, const struct quota *quota)
{
	const struct quota_demand *d = c->d;
	struct arena *a = d->q->arena;
	str why;
	if (!add_scopes(d, quota->selectors, &c->scopes, &why))
		return fail_plain(d->q, "error matching scopes of quota " STR_FMT ", err: " STR_FMT, STR_ARG(quota->name), STR_ARG(why));
	struct quota_amounts limits = limits_of(d, quota);
	if (!limits.n || !fits_scopes(d, quota, d->q->object))
		return 0;
	why = d->evaluator->missing ? d->evaluator->missing(a, limits, d->q->object) : STR_NONE;
	if (why.n)
		return admission_forbid(d->q, "failed quota: " STR_FMT ": " STR_FMT, STR_ARG(quota->name), STR_ARG(why));
	if (quota_merge(a, limits, quota->used, QUOTA_MASK).n < limits.n)
		return admission_forbid(d->q, "status unknown for quota: " STR_FMT ", resources: " STR_FMT, STR_ARG(quota->name),
					STR_ARG(quota_names_text(a, limits)));
	bool had_room = val_exists(d->q->old) && fits_scopes(d, quota, d->q->old);
	c->any = true;
	c->covered = quota_merge(a, c->covered, limits, QUOTA_REPLACE);
	struct quota_amounts asked = quota_nonzero(a, had_room ? d->more : d->usage);
	if (!asked.n)
		return 0;
	c->quotas[c->n] = quota;
	c->shares[c->n++] = (struct quota_share){ .name = quota->name, .uid = val_str(quota->object->val, metadata, uid),
						  .amounts = asked };
	return 0;
}

static int check_negative(const struct quota_demand *d)
{
	struct quota_amounts below = { ARENA_ARRAY(d->q->arena, struct quota_amount, d->usage.n), 0 };
	for (size_t i = 0; i < d->usage.n; i++)
		if (d->usage.list[i].q.nanos < 0)
			below.list[below.n++] = d->usage.list[i];
	return below.n ? admission_forbid(d->q, "quota usage is negative for resource(s): " STR_FMT,
					  STR_ARG(quota_names_text(d->q->arena, below))) : 0;
}

static bool contains_any(str name, struct val parts)
{
	VAL_EACH(p, parts)
		if (str_find(name, val_as_str(*p)) >= 0)
			return true;
	return false;
}

/* What can only be had under a quota, by configuration: is it under one? */
static int check_limited_names(const struct check *c)
{
	struct request *q = c->d->q;
	struct quota_amounts usage = c->d->usage, bare = { ARENA_ARRAY(q->arena, struct quota_amount, usage.n), 0 };
	for (size_t i = 0; i < usage.n; i++) {
		bool limited = false;
		VAL_EACH(l, c->d->limited)
			limited = limited || (str_eq(val_str(*l, resource), q->resource) && str_eq(val_str(*l, apiGroup), q->group) &&
					      contains_any(usage.list[i].name, val_get(*l, matchContains)));
		if (limited && usage.list[i].q.nanos > 0 && !quota_amount_find(c->covered, usage.list[i].name))
			bare.list[bare.n++] = usage.list[i];
	}
	return bare.n ? admission_forbid(q, "insufficient quota to consume: " STR_FMT, STR_ARG(quota_names_text(q->arena, bare))) : 0;
}

static bool has_scope(struct val selectors, str name)
{
	VAL_EACH(s, selectors)
		if (str_eq(val_str(*s, scopeName), name))
			return true;
	return false;
}

static int check_limited_scopes(const struct check *c, struct val limited)
{
	struct request *q = c->d->q;
	CLEANUP(buf_done) struct buf b = BUF_INIT(8 << 20);
	struct val_builder scopes = c->scopes;
	struct val covered = scopes.n ? val_end_list(&scopes) : VAL_EMPTY;
	VAL_EACH(s, limited)
		if (!has_scope(covered, val_str(*s, scopeName)))
			buf_addf(&b, "%s" STR_FMT, b.n ? " " : "", STR_ARG(quota_selector_text(q->arena, *s)));
	return b.n ? fail_plain(q, "insufficient quota to match these scopes: [" STR_FMT "]", STR_ARG(buf_str(&b))) : 0;
}

/* The share becomes what the quota limits of it; does it fit with what is used already? */
static int check_room(const struct check *c, struct quota_share *share, const struct quota *quota)
{
	struct request *q = c->d->q;
	struct arena *a = q->arena;
	share->amounts = quota_merge(a, share->amounts, quota->hard, QUOTA_MASK);
	struct quota_amounts sum = quota_merge(a, quota->used, share->amounts, QUOTA_ADD),
			     over = { ARENA_ARRAY(a, struct quota_amount, share->amounts.n), 0 };
	for (size_t i = 0; i < share->amounts.n; i++) {
		str name = share->amounts.list[i].name;
		if (quantity_cmp(quota_amount_find(sum, name)->q, quota_amount_find(quota->hard, name)->q) > 0)
			over.list[over.n++] = share->amounts.list[i];
	}
	if (!over.n || str_eq(q->subresource, STR("status"))) /* what a status tells has happened already */
		return 0;
	return admission_forbid(q, "exceeded quota: " STR_FMT ", requested: " STR_FMT ", used: " STR_FMT ", limited: " STR_FMT,
				STR_ARG(quota->name), STR_ARG(quota_amounts_text(a, over)),
				STR_ARG(quota_amounts_text(a, quota_merge(a, quota->used, over, QUOTA_MASK))),
				STR_ARG(quota_amounts_text(a, quota_merge(a, quota->hard, over, QUOTA_MASK))));
}

static bool is_written(const struct quota_share *had, size_t n, const struct quota_share *share)
{
	for (size_t i = 0; i < n; i++)
		if (had[i].written && str_eq(had[i].uid, share->uid))
			return true;
	return false;
}

/* The scopes that can only be had under a quota, by configuration, which the object is in; VAL_NONE if that cannot be told. */
static struct val limited_scopes(const struct quota_demand *d)
{
	struct val_builder b = val_builder(d->q->arena);
	str ignored;
	VAL_EACH(l, d->limited)
		if (!add_scopes(d, val_get(*l, matchScopes), &b, &ignored))
			return VAL_EMPTY;
	return val_end_list(&b);
}

static int check_all(struct check *c, const struct quota *quotas, size_t n, struct val limited)
{
	int r = 0;
	for (size_t i = 0; i < n && r == 0; i++)
		r = look(c, &quotas[i]);
	if (r == 0)
		r = check_negative(c->d);
	if (r < 0 || (c->any ? !c->n : !quota_nonzero(c->d->q->arena, c->d->more).n))
		return r;
	if ((r = check_limited_names(c)) < 0)
		return r;
	return check_limited_scopes(c, limited);
}

int quota_check(const struct quota_demand *d, const struct quota *quotas, size_t n, const struct quota_share *had, size_t n_had,
		struct quota_share **ret_shares, size_t *ret_n)
{
	struct arena *a = d->q->arena;
	struct check c = { .d = d, .scopes = val_builder(a), .shares = ARENA_ARRAY(a, struct quota_share, n),
			   .quotas = ARENA_ARRAY(a, const struct quota *, n) };
	struct val limited = limited_scopes(d);
	size_t kept = 0;
	*ret_shares = c.shares;
	*ret_n = 0;
	if (!val_exists(limited))
		return 0;
	int r = check_all(&c, quotas, n, limited);
	for (size_t i = 0; i < c.n && r == 0; i++) {
		if (is_written(had, n_had, &c.shares[i]))
			continue;
		r = check_room(&c, &c.shares[i], c.quotas[i]);
		if (r == 0 && c.shares[i].amounts.n)
			c.shares[kept++] = c.shares[i];
	}
	*ret_n = r == 0 ? kept : 0;
	return r;
}
