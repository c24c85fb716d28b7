#include "machinery/managed_fields.h"

#include <stdlib.h>

#include "codec/atoms.h"
#include "codec/json.h"

/* ---- entries ---- */

static void id_member(struct buf *b, const char *name, str value)
{
	if (!value.n)
		return;
	buf_addf(b, "%s\"%s\":", b->n > 1 ? "," : "", name);
	json_quote(b, value, false);
}

str manager_id(struct arena *a, str name, bool applied, str api_version, str subresource)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(SIZE_MAX);
	buf_addc(&b, '{');
	id_member(&b, "manager", name);
	id_member(&b, "operation", applied ? STR("Apply") : STR("Update"));
	id_member(&b, "apiVersion", applied ? STR_NONE : api_version);
	id_member(&b, "subresource", subresource);
	buf_addc(&b, '}');
	return arena_str(a, buf_str(&b));
}

/* Position of the first entry whose id is not before that one. */
static uint32_t managed_seek(const struct managed *m, str id)
{
	uint32_t low = 0, high = m->n;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (str_cmp(m->v[middle].id, id) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct manager *managed_find(const struct managed *m, str id)
{
	uint32_t i = managed_seek(m, id);
	return i < m->n && str_eq(m->v[i].id, id) ? &m->v[i] : NULL;
}

void managed_put(struct arena *a, struct managed *m, struct manager entry)
{
	struct manager *v = ARENA_ARRAY(a, struct manager, m->n + 1);
	uint32_t i = managed_seek(m, entry.id), after = i + (i < m->n && str_eq(m->v[i].id, entry.id)), n = i;

	if (i)
		memcpy(v, m->v, i * sizeof(*v));
	if (!field_set_empty(entry.set))
		v[n++] = entry;
	if (after < m->n)
		memcpy(v + n, m->v + after, (m->n - after) * sizeof(*v));
	*m = (struct managed){ v, n + m->n - after };
}

void managed_drop_empty(struct managed *m)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < m->n; i++)
		if (!field_set_empty(m->v[i].set))
			m->v[n++] = m->v[i];
	m->n = n;
}

/* ---- too many updaters ---- */

static int64_t seconds_of(const struct manager *m) { return m->timed ? m->time.seconds : 0; }

static int age_cmp(const void *x, const void *y)
{
	const struct manager *a = *(struct manager *const *)x, *b = *(struct manager *const *)y;
	if (seconds_of(a) != seconds_of(b))
		return seconds_of(a) < seconds_of(b) ? -1 : 1;
	return str_cmp(a->id, b->id);
}

static int version_age_cmp(const void *x, const void *y)
{
	const struct manager *a = *(struct manager *const *)x, *b = *(struct manager *const *)y;
	int order = str_cmp(a->api_version, b->api_version);
	return order ? order : age_cmp(x, y);
}

/*
 * Makes one entry of the oldest ones of a version, oldest first, and empties those. When the version has a bucket
 * already and that is younger than all of them, the first one stays out of it, as in Kubernetes.
 */
static struct manager put_together(struct arena *a, const struct managed *m, struct manager *const *v, uint32_t n)
{
	struct field_set *sets = ARENA_ARRAY(a, struct field_set, n + 1);
	struct manager bucket = *v[n - 1];
	uint32_t from = 0;

	bucket.name = STR("ancient-changes");
	bucket.subresource = STR_NONE;
	bucket.id = manager_id(a, bucket.name, false, bucket.api_version, STR_NONE);
	struct manager *old = managed_find(m, bucket.id);
	if (old) {
		from = 1;
		for (uint32_t i = 0; i < n; i++)
			from = v[i] == old ? 0 : from;
		sets[n] = old->set;
		old->set = FIELD_SET_EMPTY;
	}
	for (uint32_t i = from; i < n; i++) {
		sets[i] = v[i]->set;
		v[i]->set = FIELD_SET_EMPTY;
	}
	bucket.set = field_set_union_all(a, sets + from, n - from + (old != NULL));
	return bucket;
}

/*
 * The entries are taken oldest first. The first of a version only opens its bucket; each further one makes the list
 * shorter by one. So the number to be taken is known before anything is moved.
 */
static uint32_t count_taken(struct arena *a, struct manager **oldest, uint32_t n, uint32_t max)
{
	uint32_t left = n, taken = 0, n_versions = 0;
	str *versions = ARENA_ARRAY(a, str, n);

	for (; taken < n && left > max; taken++) {
		uint32_t i = 0;
		while (i < n_versions && !str_eq(versions[i], oldest[taken]->api_version))
			i++;
		if (i < n_versions)
			left--;
		else
			versions[n_versions++] = oldest[taken]->api_version;
	}
	return taken;
}

static int id_cmp(const void *x, const void *y)
{
	const struct manager *a = x, *b = y;
	return str_cmp(a->id, b->id);
}

void managed_cap(struct arena *a, struct managed *m, uint32_t max)
{
	struct manager **oldest = ARENA_ARRAY(a, struct manager *, m->n);
	struct manager *all = ARENA_ARRAY(a, struct manager, m->n * 2);
	struct managed old = { all, m->n }, result = { all, m->n };
	uint32_t n = 0;

	if (m->n)
		memcpy(all, m->v, m->n * sizeof(*all));
	for (uint32_t i = 0; i < m->n; i++)
		if (!all[i].applied)
			oldest[n++] = &all[i];
	if (n <= max)
		return;
	qsort(oldest, n, sizeof(*oldest), age_cmp);
	uint32_t taken = count_taken(a, oldest, n, max);
	qsort(oldest, taken, sizeof(*oldest), version_age_cmp);
	for (uint32_t from = 0, to; from < taken; from = to) {
		for (to = from + 1; to < taken && str_eq(oldest[to]->api_version, oldest[from]->api_version);)
			to++;
		if (to - from > 1)
			all[result.n++] = put_together(a, &old, oldest + from, to - from);
	}
	managed_drop_empty(&result);
	qsort(result.v, result.n, sizeof(*result.v), id_cmp);
	*m = result;
}

/* ---- decoding ---- */

static int decode_fields(struct arena *a, struct val fields, struct field_set *ret, struct err *err)
{
	if (fields.type != VAL_OBJECT)
		return field_set_parse(a, val_as_str(fields), ret, err);
	CLEANUP(buf_done) struct buf b = BUF_INIT(SIZE_MAX);
	int r = json_encode(&b, fields, &(struct json_encode_options){ .plain = true }, err);
	return r < 0 ? r : field_set_parse(a, buf_str(&b), ret, err);
}

static int decode_entry(struct arena *a, struct val entry, uint32_t i, struct manager *ret, struct err *err)
{
	str operation = val_str(entry, operation), type = val_str(entry, fieldsType), time = val_str(entry, time);

	*ret = (struct manager){
		.name = val_str(entry, manager), .api_version = val_str(entry, apiVersion),
		.subresource = val_str(entry, subresource),
		.applied = str_eq(operation, STR("Apply")),
	};
	if (!ret->applied && !str_eq(operation, STR("Update")))
		return err_set(err, ERR_BAD_REQUEST, "operation must be `Apply` or `Update`");
	if (!ret->api_version.n)
		return err_set(err, ERR_BAD_REQUEST, "apiVersion must not be empty");
	if (!type.n)
		return err_set(err, ERR_BAD_REQUEST, "missing fieldsType in managed fields entry %u", i);
	if (!str_eq(type, STR("FieldsV1"))) {
		CLEANUP(buf_done) struct buf b = BUF_INIT(256);
		buf_add_quoted(&b, type);
		return err_set(err, ERR_BAD_REQUEST, "invalid fieldsType " STR_FMT " in managed fields entry %u",
			       STR_ARG(buf_str(&b)), i);
	}
	ret->id = manager_id(a, ret->name, ret->applied, ret->api_version, ret->subresource);
	ret->timed = time.n && time_parse(time, &ret->time, NULL) >= 0;
	int r = decode_fields(a, val_get(entry, fieldsV1), &ret->set, err);
	return r < 0 ? err_wrap(err, r, "error decoding versioned set of managed fields entry %u", i) : 0;
}

/* Stable: of entries with the same id the last one counts. */
static int given_cmp(const void *x, const void *y)
{
	const struct manager *a = *(struct manager *const *)x, *b = *(struct manager *const *)y;
	int order = str_cmp(a->id, b->id);
	return order ? order : a < b ? -1 : 1;
}

int managed_decode(struct arena *a, struct val list, struct managed *ret, struct err *err)
{
	uint32_t n = list.type == VAL_LIST ? list.n : 0, kept = 0;
	if (n > MANAGED_ENTRIES_MAX)
		return err_set(err, ERR_BAD_REQUEST, "more than %d managed fields entries", MANAGED_ENTRIES_MAX);
	struct manager *given = ARENA_ARRAY(a, struct manager, n), *v = ARENA_ARRAY(a, struct manager, n);
	struct manager **order = ARENA_ARRAY(a, struct manager *, n);

	for (uint32_t i = 0; i < n; i++) {
		int r = decode_entry(a, list.items[i], i, &given[i], err);
		if (r < 0)
			return r;
		order[i] = &given[i];
	}
	if (n)
		qsort(order, n, sizeof(*order), given_cmp);
	for (uint32_t i = 0; i < n; i++) {
		if (kept && str_eq(v[kept - 1].id, order[i]->id))
			kept--;
		v[kept++] = *order[i];
	}
	*ret = (struct managed){ v, kept };
	return 0;
}

bool managed_is_reset(struct val list)
{
	if (list.type != VAL_LIST || list.n > 1)
		return false;
	VAL_EACH_MEMBER(m, val_at(list, 0))
		if (!val_is_zero(m->val))
			return false;
	return list.n == 0 || list.items[0].type == VAL_OBJECT || list.items[0].type == VAL_NULL;
}

/* ---- encoding ---- */

static int entry_cmp(const void *x, const void *y)
{
	const struct manager *a = *(const struct manager *const *)x, *b = *(const struct manager *const *)y;
	if (a->applied != b->applied)
		return a->applied ? -1 : 1;
	if (seconds_of(a) != seconds_of(b))
		return seconds_of(a) < seconds_of(b) ? -1 : 1;
	int order = str_cmp(a->name, b->name);
	if (!order)
		order = str_cmp(a->api_version, b->api_version);
	return order ? order : str_cmp(a->subresource, b->subresource);
}

static struct val text_or_none(str s) { return s.n ? val_of_str(s) : VAL_EMPTY; }

static struct val encode_time(struct arena *a, const struct manager *m)
{
	char text[TIME_TEXT_MAX];
	return m->timed ? val_of_str(arena_str(a, time_format(m->time, text))) : VAL_EMPTY;
}

static struct val encode_entry(struct arena *a, const struct manager *m, bool by_name)
{
	struct member manager = F(manager, text_or_none(m->name));
	struct member operation = F(operation, m->applied ? VAL_LIT("Apply") : VAL_LIT("Update"));
	struct member version = F(apiVersion, text_or_none(m->api_version));
	struct member time = F(time, encode_time(a, m));
	struct member type = F(fieldsType, VAL_LIT("FieldsV1"));
	struct member fields = F(fieldsV1, field_set_val(a, m->set));
	struct member subresource = F(subresource, text_or_none(m->subresource));

	if (by_name)
		return val_object(a, (struct member[]){ version, type, fields, manager, operation, subresource,
							time }, 7);
	return val_object(a, (struct member[]){ manager, operation, version, time, type, fields, subresource }, 7);
}

struct val managed_encode(struct arena *a, const struct managed *m, bool by_name)
{
	if (!m->n)
		return VAL_EMPTY;
	const struct manager **order = ARENA_ARRAY(a, const struct manager *, m->n);
	struct val *items = ARENA_ARRAY(a, struct val, m->n);

	for (uint32_t i = 0; i < m->n; i++)
		order[i] = &m->v[i];
	qsort(order, m->n, sizeof(*order), entry_cmp);
	for (uint32_t i = 0; i < m->n; i++)
		items[i] = encode_entry(a, order[i], by_name);
	return (struct val){ .type = VAL_LIST, .n = m->n, .items = items };
}
