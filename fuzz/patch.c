/*
 * Patches of all kinds. The input is up to three lines of JSON: a document, a patch (or modified document) and a third
 * document for the three-way patches. Apart from not crashing: a patch that was made from two documents makes the second
 * of the first.
 */
#include <stdio.h>
#include <stdlib.h>

#include "codec/codec.h"
#include "codec/types.h"
#include "machinery/patch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { INPUT_MAX = 64 * 1024, ENCODED_MAX = 16 * 1024 * 1024 };

static void check(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "does not hold: %s\n", what);
	abort();
}

/* Without nulls, and without keys that a patch would take for directives. */
static bool is_plain(struct val v, unsigned depth)
{
	bool plain = v.type != VAL_NULL && depth <= VAL_RECURSION_MAX;

	for (uint32_t i = 0; plain && i < val_len(v); i++) {
		if (v.type == VAL_OBJECT)
			plain = !str_starts(atom_str(v.members[i].key), STR("$"));
		plain = plain && is_plain(v.type == VAL_LIST ? v.items[i] : v.members[i].val, depth + 1);
	}
	return plain;
}

static bool keys_unique(struct val v, const struct type *type);

/*
 * Every item of a list that merges has a key, and no two the same: only then does a patch describe the list completely.
 * Primitives must also be sorted, because Kubernetes does not see when a list differs from another only by not being
 * sorted.
 */
static bool list_unique(struct val list, const struct field *f)
{
	str key = f->facts->merge_key;

	for (uint32_t i = 0; f->flags & FIELD_MERGE && i < val_len(list); i++) {
		struct val x = key.n ? val_find(list.items[i], key) : list.items[i];
		if (val_is_nil(x) || (!key.n && i && str_cmp(val_as_str(list.items[i - 1]), val_as_str(x)) >= 0))
			return false;
		for (uint32_t j = 0; key.n && j < i; j++)
			if (val_equal(x, val_find(list.items[j], key)))
				return false;
	}
	return true;
}

static bool keys_unique(struct val v, const struct type *type)
{
	bool unique = true;

	VAL_EACH_MEMBER(m, v) {
		const struct field *f = type_field(type, m->key);
		if (!f || !unique)
			continue;
		if (f->shape == SHAPE_LIST)
			unique = list_unique(m->val, f);
		if (f->kind == KIND_MESSAGE && f->shape == SHAPE_ONE)
			unique = unique && keys_unique(m->val, f->type);
		VAL_EACH(item, m->val)
			unique = unique && (f->kind != KIND_MESSAGE || keys_unique(*item, f->type));
	}
	return unique;
}

static void check_merge(struct arena *a, struct val doc, struct val modified)
{
	struct val patch, patched;

	if (doc.type != VAL_OBJECT || modified.type != VAL_OBJECT || !is_plain(modified, 0) ||
	    merge_patch_create(a, doc, modified, &patch, NULL) < 0)
		return;
	check(merge_patch_apply(a, doc, patch, &patched, NULL) == 0, "a created merge patch applies");
	check(val_equal(patched, modified), "a created merge patch makes the modified document");
	check(merge_patch_three_way(a, doc, modified, doc, 0, &patch, NULL) < 0 ||
		      merge_patch_apply(a, doc, patch, &patched, NULL) == 0,
	      "a three-way merge patch applies");
}

static void check_document(struct arena *a, struct val typed, const struct type *type)
{
	CLEANUP(buf_done) struct buf shown = BUF_INIT(ENCODED_MAX), want = BUF_INIT(ENCODED_MAX);
	struct val doc;

	if (patch_document(a, typed, type, &doc, NULL) < 0)
		return;
	check(json_encode(&shown, doc, &(struct json_encode_options){ 0 }, NULL) == 0, "a document has JSON");
	check(json_encode(&want, typed, &(struct json_encode_options){ .type = type }, NULL) == 0,
	      "a typed tree has JSON");
	check(str_eq(buf_str(&shown), buf_str(&want)), "patch_document shows what JSON shows");
}

static void check_strategic(struct arena *a, struct val doc, struct val modified, const struct type *type)
{
	struct val original, wanted, shown, target, patch, patched;

	if (doc.type != VAL_OBJECT || modified.type != VAL_OBJECT ||
	    val_canonical(a, doc, type, NULL, &original, NULL) < 0 ||
	    val_canonical(a, modified, type, NULL, &wanted, NULL) < 0)
		return;
	check_document(a, original, type);
	if (!is_plain(original, 0) || !is_plain(wanted, 0) || !keys_unique(original, type) ||
	    !keys_unique(wanted, type) || patch_document(a, original, type, &shown, NULL) < 0 ||
	    patch_document(a, wanted, type, &target, NULL) < 0)
		return;
	for (int way = 2; way <= 3; way++) {
		int r = way == 2 ? strategic_patch_create(a, shown, target, type, 0, &patch, NULL)
				 : strategic_patch_three_way(a, shown, target, shown, type, true, 0, &patch, NULL);
		if (r < 0)
			continue;
		check(strategic_patch_apply(a, shown, patch, type, &patched, NULL) == 0, "a created patch applies");
		check(strategic_patch_convert(a, patched, type, &patched, NULL) == 0, "a patched document can be converted");
		check(val_canonical(a, patched, type, NULL, &patched, NULL) == 0, "a patched document fits its type");
		check(val_equal(patched, wanted), "a created patch makes the modified document");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct type *type = TYPE(core_v1, Pod);
	str rest = str_span((const char *)data, n), line;
	struct val v[3] = { VAL_EMPTY, VAL_EMPTY, VAL_EMPTY }, ret;

	if (n > INPUT_MAX)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(v) && rest.n; i++) {
		(void)str_cut(rest, '\n', &line, &rest);
		if (json_decode(&a, line, &(struct json_decode_options){ .sort_keys = true }, &v[i], NULL) < 0)
			return 0;
	}
	(void)json_patch_apply(&a, v[0], v[1], JSON_PATCH_COPY_MAX, &ret, NULL);
	(void)merge_patch_apply(&a, v[0], v[1], &ret, NULL);
	if (strategic_patch_apply(&a, v[0], v[1], type, &ret, NULL) >= 0)
		(void)strategic_patch_convert(&a, ret, type, &ret, NULL);
	(void)strategic_patch_create(&a, v[0], v[1], type, PATCH_SAME_OBJECT, &ret, NULL);
	(void)strategic_patch_three_way(&a, v[2], v[1], v[0], type, false, 0, &ret, NULL);
	(void)merge_patch_three_way(&a, v[2], v[1], v[0], 0, &ret, NULL);
	check_merge(&a, v[0], v[1]);
	check_strategic(&a, v[0], v[1], type);
	return 0;
}
