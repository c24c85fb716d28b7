#include <stdlib.h>

#include "codec/json.h"
#include "machinery/apply_walk_priv.h"

/* ---- errors ---- */

static void print_way(struct buf *b, const struct step *at)
{
	const struct step *way[VAL_RECURSION_MAX + 1];
	size_t n = 0;
	for (; at && n < ARRAY_LEN(way); at = at->up)
		way[n++] = at;
	while (n)
		path_element_print(b, &way[--n]->at);
}

static void keep_error(struct typed_walk *w, str message)
{
	if (!w->errors)
		w->errors = ARENA_ARRAY(w->arena, str, TYPED_ERRORS_MAX);
	if (w->n_errors++ < TYPED_ERRORS_MAX)
		w->errors[w->n_errors - 1] = arena_str(w->arena, message);
}

void typed_error(struct typed_walk *w, const struct step *at, str message)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(4096);
	print_way(&b, at);
	if (b.n)
		buf_add(&b, STR(": "));
	buf_add(&b, message);
	keep_error(w, buf_str(&b));
}

bool typed_too_deep(struct typed_walk *w, const struct step *at)
{
	if (!at || at->depth < VAL_RECURSION_MAX)
		return false;
	keep_error(w, STR("the object is nested too deeply"));
	return true;
}

int typed_result(const struct typed_walk *w, struct err *err)
{
	if (!w->n_errors)
		return 0;
	if (w->n_errors == 1)
		return err_set(err, ERR_INTERNAL, STR_FMT, STR_ARG(w->errors[0]));
	CLEANUP(buf_done) struct buf b = BUF_INIT(4096);
	buf_add(&b, STR("errors:"));
	for (size_t i = 0; i < w->n_errors && i < TYPED_ERRORS_MAX; i++) {
		buf_add(&b, STR("\n  "));
		buf_add(&b, w->errors[i]);
	}
	return err_set(err, ERR_INTERNAL, STR_FMT, STR_ARG(buf_str(&b)));
}

/* ---- shapes ---- */

static bool is_scalar(struct val v) { return v.type >= VAL_BOOL && v.type <= VAL_STRING; }
static bool is_map(struct val v) { return v.type == VAL_OBJECT || v.type == VAL_RAW; }

static enum typed_shape first_shape(const struct apply_shape *s)
{
	return s->map ? TYPED_MAP : s->scalar ? TYPED_SCALAR : s->list ? TYPED_LIST : TYPED_NOTHING;
}

enum typed_shape typed_shape_of(const struct apply_shape *s, struct val v)
{
	if (s->scalar && is_scalar(v))
		return TYPED_SCALAR;
	if (s->list && v.type == VAL_LIST)
		return TYPED_LIST;
	if (s->map && is_map(v))
		return TYPED_MAP;
	return first_shape(s);
}

bool typed_same_shape(const struct apply_shape *s, struct val x, struct val y)
{
	if ((s->scalar != APPLY_NO_SCALAR) + s->list + s->map <= 1)
		return true;
	/* With several to choose from, a value that fits none (a null) has not chosen: it differs from one that has. */
	bool x_fits = (s->scalar && is_scalar(x)) || (s->list && x.type == VAL_LIST) || (s->map && is_map(x));
	bool y_fits = (s->scalar && is_scalar(y)) || (s->list && y.type == VAL_LIST) || (s->map && is_map(y));
	return x_fits == y_fits && typed_shape_of(s, x) == typed_shape_of(s, y);
}

int typed_member(struct apply_type t, atom name, struct apply_type *ret)
{
	return t.schema ? t.schema->member(t, name, ret) : 0;
}

/* ---- items ---- */

/* The value of a key field: given, or the default of the schema; VAL_NONE if there is neither. */
static struct val key_value(struct typed_walk *w, struct apply_type item, struct val v, atom key)
{
	struct val found = val_member(v, key);
	if (val_exists(found) || !item.schema)
		return found;
	str text = item.schema->default_json(item, key);
	if (!text.n || json_decode(w->arena, text, &(struct json_decode_options){ 0 }, &found, NULL) < 0 ||
	    found.type == VAL_NULL)
		return VAL_EMPTY;
	return found;
}

static const char *keyed_element(struct typed_walk *w, struct apply_type t, const atom *keys, struct val v,
				 struct path_element *ret)
{
	if (v.type == VAL_NULL)
		return "associative list with keys may not have a null element";
	if (v.type != VAL_OBJECT)
		return "associative list with keys may not have non-map elements";
	size_t n = 0;
	while (keys[n])
		n++;
	struct apply_type item = t.schema->item(t);
	struct member *fields = ARENA_ARRAY(w->arena, struct member, n);
	uint32_t found = 0;
	for (size_t i = 0; i < n; i++) {
		struct member m = { keys[i], key_value(w, item, v, keys[i]) };
		if (!val_exists(m.val))
			continue;
		uint32_t j = found++;
		for (; j > 0 && path_name_cmp(m.key, fields[j - 1].key) < 0; j--)
			fields[j] = fields[j - 1];
		fields[j] = m;
	}
	*ret = (struct path_element){ .kind = PATH_KEY, .n = found, .key = fields };
	if (found)
		return NULL;
	CLEANUP(buf_done) struct buf b = BUF_INIT(1024);
	buf_add(&b, STR("associative list with keys has an element that omits all key fields ["));
	for (size_t i = 0; i < n; i++) {
		if (i)
			buf_addc(&b, ' ');
		buf_add_quoted(&b, atom_str(keys[i]));
	}
	buf_add(&b, STR("] (and doesn't have default values for any key fields)"));
	return arena_str(w->arena, buf_str(&b)).p;
}

static const char *set_element(const struct val *v, struct path_element *ret)
{
	switch ((enum val_type)v->type) {
	case VAL_RAW:
	case VAL_OBJECT: return "associative list without keys has an element that's a map type";
	case VAL_LIST: return "not supported: associative list with lists as elements";
	case VAL_NONE:
	case VAL_NULL: return "associative list without keys has an element that's an explicit null";
	default: break;
	}
	*ret = (struct path_element){ .kind = PATH_VALUE, .value = v };
	return NULL;
}

static int item_cmp(const void *x, const void *y)
{
	const struct typed_item *a = *(struct typed_item *const *)x, *b = *(struct typed_item *const *)y;
	int order = path_element_cmp(&a->at, &b->at);
	return order ? order : a->index < b->index ? -1 : 1;
}

static void items_sort(struct arena *a, struct typed_items *items)
{
	items->sorted = ARENA_ARRAY(a, struct typed_item *, items->n);
	for (uint32_t i = 0; i < items->n; i++)
		items->sorted[i] = &items->v[i];
	if (items->n < 2)
		return;
	qsort(items->sorted, items->n, sizeof(struct typed_item *), item_cmp);
	for (uint32_t i = 1; i < items->n; i++)
		if (path_element_cmp(&items->sorted[i - 1]->at, &items->sorted[i]->at) == 0) {
			items->sorted[i - 1]->more = true;
			items->sorted[i]->again = true;
		}
}

bool typed_items(struct typed_walk *w, const struct step *at, struct apply_type t, const struct apply_shape *s,
		 struct val list, enum typed_broken broken, struct typed_items *ret)
{
	bool all = true;

	*ret = (struct typed_items){ .n = 0 };
	if (list.type != VAL_LIST || !list.n)
		return true;
	ret->v = ARENA_ARRAY(w->arena, struct typed_item, list.n);
	for (uint32_t i = 0; i < list.n && (all || broken != TYPED_STOP); i++) {
		struct typed_item item = { .val = list.items[i], .index = i };
		const char *problem = s->keys ? keyed_element(w, t, s->keys, item.val, &item.at)
					      : set_element(&list.items[i], &item.at);
		if (problem && broken == TYPED_KEEP) {
			item.at = (struct path_element){ .kind = PATH_BROKEN };
		} else if (problem) {
			all = false;
			typed_error(w, at, arena_printf(w->arena, "element %u: %s", i, problem));
			continue;
		}
		ret->v[ret->n++] = item;
	}
	items_sort(w->arena, ret);
	return all;
}

const struct typed_item *typed_items_find(const struct typed_items *items, const struct path_element *at)
{
	uint32_t low = 0, high = items->n;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (path_element_cmp(&items->sorted[middle]->at, at) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < items->n && path_element_cmp(&items->sorted[low]->at, at) == 0 ? items->sorted[low] : NULL;
}
