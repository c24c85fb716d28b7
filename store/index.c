/* The ordered map does the order; here are the versions of one key: a list from new to old. */
#include "store/index.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

static void versions_free(struct index_version *v)
{
	while (v) {
		struct index_version *older = v->older;
		free(v);
		v = older;
	}
}

struct index_key *index_key_ref(struct index_key *k)
{
	k->refs++;
	return k;
}

void index_key_unref(struct index_key *k)
{
	if (!k || --k->refs > 0)
		return;
	assert(!k->expiry);
	versions_free(k->newest.older);
	free(k);
}

static void value_ref(void *value) { index_key_ref(value); }
static void value_unref(void *value) { index_key_unref(value); }

static const struct omap_type index_type = { value_ref, value_unref };

void index_init(struct index *x) { *x = (struct index){ .keys = omap_new(&index_type) }; }

void index_done(struct index *x) { omap_free(TAKE(x->keys)); }

struct index_key *index_find(const struct index *x, str key) { return omap_get(x->keys, key); }

const struct index_version *index_at(const struct index_key *k, int64_t revision)
{
	const struct index_version *v = &k->newest;

	while (v && v->revision > revision)
		v = v->older;
	return v && v->revision ? v : NULL;
}

struct index_key *index_push(struct index *x, str key, struct index_version v)
{
	struct index_key *k = index_find(x, key);

	if (!k) {
		k = mem_zalloc(sizeof *k);
		(void)omap_put(x->keys, key, k);
	}
	assert(v.revision > k->newest.revision);
	x->live += (v.version != 0) - (k->newest.version != 0);
	v.older = NULL;
	if (k->newest.revision) {
		v.older = mem_alloc(sizeof *v.older);
		*v.older = k->newest;
	}
	k->newest = v;
	return k;
}

void index_pop(struct index *x, str key)
{
	struct index_key *k = index_find(x, key);
	struct index_version *older = k->newest.older;
	bool was_live = k->newest.version != 0;

	k->newest = older ? *older : (struct index_version){ 0 };
	free(older);
	x->live += (k->newest.version != 0) - was_live;
	if (!k->newest.revision)
		(void)omap_remove(x->keys, key);
}

void index_forget(struct index *x, str key, int64_t revision)
{
	struct index_key *k = index_find(x, key);
	struct index_version *v = k ? &k->newest : NULL;

	while (v && v->revision > revision)
		v = v->older;
	if (!v)
		return;
	versions_free(TAKE(v->older));
	if (v == &k->newest && v->version == 0 && v->revision < revision)
		(void)omap_remove(x->keys, key);
}
