/* --sort-by: numbers as numbers, quantities as quantities, everything else as text; what lacks the field comes first. */
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

static int compare(const void *left, const void *right)
{
	const struct item *x = left, *y = right;
	int r = 0;
	if (!val_exists(x->key) || !val_exists(y->key))
		r = (int)val_exists(x->key) - (int)val_exists(y->key);
	else if (val_is(x->key, VAL_STRING) && val_is(y->key, VAL_STRING))
		r = compare_texts(val_as_str(x->key), val_as_str(y->key));
	else
		r = (val_as_double(x->key) > val_as_double(y->key)) - (val_as_double(x->key) < val_as_double(y->key));
	return r ? r : (x->place > y->place) - (x->place < y->place);
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
	if (jsonpath_relaxed(&k->arena, str_of(field), &template, &err) < 0 || jsonpath_parse(&k->arena, template, &path, &err) < 0)
		return ktl_fail_err(k, &err);
	VAL_EACH(v, list) {
		struct val values;
		if (jsonpath_find(path, &k->arena, rows ? val_get(*v, object) : *v, &o, &values, &err) < 0)
			return ktl_fail_err(k, &err);
		items[n] = (struct item){ .item = *v, .key = val_at(val_at(values, 0), 0), .place = n };
		found |= val_exists(items[n++].key);
	}
	if (n && !found)
		return ktl_fail(k, "couldn't find any field with path " STR_FMT " in the list of objects", STR_ARG(ktl_quote(k, template)));
	qsort(items, n, sizeof(*items), compare);
	for (size_t i = 0; i < n; i++)
		val_add_item(&b, items[i].item);
	*ret = val_end_list(&b);
	return 0;
}
