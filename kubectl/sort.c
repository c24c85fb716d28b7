/*
 * --sort-by: numbers as numbers, quantities as quantities, other texts as such. What lacks the field comes first, the last of them before the others
 * as kubectl has it, then nulls. Nothing else can be sorted, nor can different sorts of values.
 */
#include <stdlib.h>

#include "codec/quantity.h"
#include "kubectl/print.h"
#include "machinery/jsonpath.h"

struct item {
	struct val item, key;
	size_t place;
};

static int compare_texts(str x, str y)
{
	struct quantity a, b;
	if (quantity_parse(x, &a, NULL) == 0 && quantity_parse(y, &b, NULL) == 0)
		return quantity_cmp(a, b);
	return str_cmp(x, y);
}

static int rank_of(struct val key) { return !val_exists(key) ? 0 : val_is_nil(key) ? 1 : 2; }

static int compare(const void *left, const void *right)
{
	const struct item *x = left, *y = right;
	int r = 0;
	if (!val_exists(x->key) && !val_exists(y->key))
		return (x->place < y->place) - (x->place > y->place);
	if (val_is_nil(x->key) || val_is_nil(y->key))
		r = rank_of(x->key) - rank_of(y->key);
	else if (val_is(x->key, VAL_STRING) && val_is(y->key, VAL_STRING))
		r = compare_texts(val_as_str(x->key), val_as_str(y->key));
	else
		r = (val_as_double(x->key) > val_as_double(y->key)) - (val_as_double(x->key) < val_as_double(y->key));
	return r ? r : (x->place > y->place) - (x->place < y->place);
}

static const char *unsortable(struct val key)
{
	switch (key.type) {
	case VAL_BOOL: return "bool";
	case VAL_LIST: return "[]interface {}";
	case VAL_OBJECT: return "map[string]interface {}";
	default: return NULL;
	}
}

/* kubectl finds out while it sorts, in the order of the items. */
static int check_keys(struct ktl *k, const struct item *items, size_t n, str template, bool rows)
{
	struct val before = VAL_EMPTY;
	for (size_t i = 0; i < n; i++) {
		struct val key = items[i].key;
		if (val_is_nil(key))
			continue;
		if (val_exists(before) && (unsortable(key) || key.type != before.type)) {
			const char *what = unsortable(key);
			(void)ktl_fail(k, "Field " STR_FMT " in %s is an unsortable type: interface, err: unsortable %s: %s", STR_ARG(template),
				       rows ? "[][][]reflect.Value" : "*unstructured.Unstructured", what ? "type" : "interface", what ? what : "interface");
			return KTL_UNSORTABLE;
		}
		before = key;
	}
	return 0;
}

struct val ktl_sorted_list(struct ktl *k, struct val list, int (*by)(const void *, const void *))
{
	uint32_t n = val_is(list, VAL_LIST) ? list.n : 0; /* what the server says is a list may be an object */
	struct val *items = ARENA_ARRAY(&k->arena, struct val, n + 1);
	if (n < 2)
		return list;
	memcpy(items, list.items, n * sizeof(*items));
	qsort(items, n, sizeof(*items), by);
	return (struct val){ .type = VAL_LIST, .n = n, .items = items };
}

int ktl_sort(struct ktl *k, const char *field, struct val list, bool rows, struct val *ret)
{
	struct jsonpath_options o = { .allow_missing_keys = true };
	struct item *items = ARENA_ARRAY(&k->arena, struct item, val_len(list) + 1);
	struct val_builder b = val_builder(&k->arena);
	const struct jsonpath *path;
	struct err err = ERR_INIT;
	size_t n = 0;
	bool found = false;
	str template;
	*ret = list;
	if (val_len(list) < (rows ? 2 : 1)) /* as kubectl: the only row of a table is not looked at, the only item of a list is */
		return 0;
	if (jsonpath_relaxed(&k->arena, str_of(field), &template, &err) < 0 || jsonpath_parse(&k->arena, template, &path, &err) < 0)
		return ktl_fail_err(k, &err);
	VAL_EACH(v, list) {
		struct val values;
		if (jsonpath_find(path, &k->arena, rows ? val_get(*v, object) : *v, &o, &values, &err) < 0)
			return ktl_fail_err(k, &err);
		items[n] = (struct item){ .item = *v, .key = val_at(val_at(values, 0), 0), .place = n };
		found |= val_exists(items[n++].key);
	}
	if (!found)
		return ktl_fail(k, "couldn't find any field with path " STR_FMT " in the list of objects", STR_ARG(ktl_quote(k, template)));
	int r = check_keys(k, items, n, template, rows);
	if (r < 0)
		return r;
	qsort(items, n, sizeof(*items), compare);
	for (size_t i = 0; i < n; i++)
		val_add_item(&b, items[i].item);
	*ret = val_end_list(&b);
	return 0;
}
