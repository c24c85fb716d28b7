#include "controllers/revision.h"

#include <stdlib.h>

#include "base/buf.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "controllers/moment.h"
#include "controllers/owner.h"
#include "controllers/pod_control.h"

enum { DATA_MAX = 16 << 20, OWNER_NAME_MAX = 223 };

#define BY_NAMESPACE "namespace"

/* ---- pure ---- */

int revision_data(struct arena *a, struct val template, struct val *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(DATA_MAX);
	struct val sorted;
	int r = json_encode(&text, template, &(struct json_encode_options){ .type = TYPE(core_v1, PodTemplateSpec) }, err);

	if (r >= 0)
		r = json_decode(a, arena_str(a, buf_str(&text)), &(struct json_decode_options){ .sort_keys = true }, &sorted, err);
	if (r < 0)
		return r;
	struct val_builder b = val_builder(a);
	val_add_member(&b, atom_make(a, STR("$patch")), VAL_LIT("replace")); /* '$' comes before all letters */
	VAL_EACH_MEMBER(m, sorted)
		val_add_member(&b, m->key, m->val);
	*ret = OBJECT(a, F(spec, OBJECT(a, F(template, val_end_object(&b)))));
	return 0;
}

int revision_template(struct arena *a, struct val revision, struct val *ret, struct err *err)
{
	struct val template = val_get(revision, data, spec, template);
	template = val_put(a, template, atom_make(a, STR("$patch")), VAL_EMPTY);
	return val_canonical(a, template, TYPE(core_v1, PodTemplateSpec), NULL, ret, err);
}

str revision_hash(struct arena *a, struct val data, int64_t collisions)
{
	static const char alphabet[] = "bcdfghjklmnpqrstvwxz2456789";
	CLEANUP(buf_done) struct buf text = BUF_INIT(DATA_MAX);
	uint32_t hash = 2166136261U;

	(void)json_encode(&text, data, &(struct json_encode_options){ 0 }, NULL);
	buf_addf(&text, "%lld", (long long)collisions);
	for (size_t i = 0; i < text.n; i++) /* FNV-1 */
		hash = hash * 16777619U ^ (uint8_t)text.p[i];
	str digits = arena_printf(a, "%u", hash);
	char *out = ARENA_ARRAY(a, char, digits.n);
	for (size_t i = 0; i < digits.n; i++)
		out[i] = alphabet[(unsigned char)digits.p[i] % (sizeof(alphabet) - 1)];
	return str_span(out, digits.n);
}

str revision_name(struct arena *a, struct val owner, str hash)
{
	str name = val_str(owner, metadata, name);
	name.n = MIN(name.n, (size_t)OWNER_NAME_MAX);
	return arena_printf(a, STR_FMT "-" STR_FMT, STR_ARG(name), STR_ARG(hash));
}

struct val revision_make(struct arena *a, struct val owner, struct val owner_ref_, struct val labels, struct val data, int64_t number)
{
	struct val m = OBJECT(a, F(namespace, val_get(owner, metadata, namespace)), F(labels, labels),
			      F(annotations, val_get(owner, metadata, annotations)), F(ownerReferences, LIST(a, owner_ref_)));
	return OBJECT(a, F(apiVersion, VAL_LIT("apps/v1")), F(kind, VAL_LIT("ControllerRevision")), F(metadata, m), F(data, data),
		      F(revision, val_of_int(number)));
}

static int by_number(const void *a, const void *b)
{
	struct val x = *(const struct val *)a, y = *(const struct val *)b;
	int64_t p = val_int(x, revision), q = val_int(y, revision);

	if (p == q) {
		p = moment_of(val_get(x, metadata, creationTimestamp));
		q = moment_of(val_get(y, metadata, creationTimestamp));
	}
	if (p != q)
		return p < q ? -1 : 1;
	str s = val_str(x, metadata, name), t = val_str(y, metadata, name);
	int diff = memcmp(s.p, t.p, MIN(s.n, t.n));
	return diff ? diff : s.n < t.n ? -1 : s.n > t.n;
}

struct val revisions_sorted(struct arena *a, struct val revisions)
{
	size_t n = val_len(revisions);
	struct val *all = ARENA_ARRAY(a, struct val, n + 1);

	for (size_t i = 0; i < n; i++)
		all[i] = val_at(revisions, i);
	qsort(all, n, sizeof(*all), by_number);
	return val_list(a, all, n);
}

int64_t revisions_next(struct val sorted)
{
	size_t n = val_len(sorted);
	return n ? val_int(val_at(sorted, n - 1), revision) + 1 : 1;
}

struct val revisions_find(struct val sorted, struct val data)
{
	for (size_t i = val_len(sorted); i-- > 0;)
		if (val_equal(val_get(val_at(sorted, i), data), data))
			return val_at(sorted, i);
	return VAL_EMPTY;
}

struct val revisions_outdated(struct arena *a, struct val sorted, int64_t limit, bool (*is_live)(str name, void *arg), void *arg)
{
	struct val *dead = ARENA_ARRAY(a, struct val, val_len(sorted) + 1);
	int64_t n = 0;

	VAL_EACH(r, sorted)
		if (!is_live(val_str(*r, metadata, name), arg))
			dead[n++] = *r;
	return limit < 0 || n <= limit ? VAL_EMPTY_LIST : val_list(a, dead, (size_t)(n - limit));
}

/* ---- writing ---- */

static struct val set_number(struct arena *a, struct val live, void *arg)
{
	int64_t number = *(const int64_t *)arg;
	return val_int(live, revision) == number ? VAL_EMPTY : val_with(a, live, val_of_int(number), revision);
}

int revision_renumber(struct controller *c, struct arena *a, struct val revision, int64_t number, struct val *ret, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *stored = NULL;
	int r = controller_update(c, TYPE(apps_v1, ControllerRevision), revision, "", set_number, &number, &stored, err);

	if (r < 0)
		return r;
	*ret = stored ? val_copy(a, stored->val) : val_with(a, revision, val_of_int(number), revision);
	return 0;
}

void revisions_index(struct informer *revisions)
{
	informer_index(revisions, BY_NAMESPACE, informer_by_namespace);
}

int revisions_of(struct controller *c, struct arena *a, struct informer *revisions, struct val owner, const char *api_version, const char *kind,
		 struct val selector, struct val *ret, struct err *err)
{
	struct val_builder b = val_builder(a);

	INFORMER_EACH(r, informer_each_indexed(revisions, BY_NAMESPACE, val_str(owner, metadata, namespace)))
		if (owner_is(r->val, owner) || !val_exists(owner_controller(r->val)))
			val_add_item(&b, controller_hold(c, a, r));
	int r = controller_claim(c, a, TYPE(apps_v1, ControllerRevision), val_end_list(&b), owner, api_version, kind, selector, NULL, ret, err);
	if (r >= 0)
		*ret = revisions_sorted(a, *ret);
	return r;
}
