#include "codec/assemble.h"

#include <stdlib.h>

#include "base/encoding.h"
#include "base/mem.h"
#include "codec/json_scan.h"

/* Members that may be copied because a field occurs again: repeating a field must not cost more than writing it once. */
enum { FIRST_FRAMES = 24, FIRST_SLOTS = 96, MERGED_MAX = 1 << 20 };

static const struct target free_target = { .kind = KIND_JSON, .shape = SHAPE_ONE, .element = true };

void assembly_init(struct assembly *as, struct arena *a, const struct type *type, struct strict_errors *strict)
{
	*as = (struct assembly){ .arena = a, .strict = strict, .free_root = !type };
	as->cap_frames = FIRST_FRAMES;
	as->cap_slots = FIRST_SLOTS;
	as->strict_base = strict ? strict->n : 0;
	as->first = as->frames = mem_alloc(FIRST_FRAMES * sizeof(*as->frames) + FIRST_SLOTS * sizeof(*as->slots));
	as->slots = (struct slot *)(void *)(as->frames + FIRST_FRAMES);
	as->target = type ? (struct target){ .kind = KIND_MESSAGE, .flags = FIELD_POINTER, .type = type } : free_target;
}

void assembly_done(struct assembly *as)
{
	if (as->cap_slots > FIRST_SLOTS)
		free(as->slots);
	if (as->cap_frames > FIRST_FRAMES)
		free(as->frames);
	free(as->first);
}

static void *grow(void *old, uint32_t n, uint32_t *cap, size_t size, uint32_t first)
{
	void *more = mem_array((size_t)*cap * 2, size);

	memcpy(more, old, n * size);
	if (*cap > first)
		free(old);
	*cap *= 2;
	return more;
}

static void push_slot(struct assembly *as, struct val v, atom key, uint32_t order)
{
	if (UNLIKELY(as->n_slots == as->cap_slots))
		as->slots = grow(as->slots, as->n_slots, &as->cap_slots, sizeof(*as->slots), FIRST_SLOTS);
	as->slots[as->n_slots++] = (struct slot){ v, key, order };
}

static struct frame *push_frame(struct assembly *as, enum frame_kind kind)
{
	if (UNLIKELY(as->n_frames == as->cap_frames))
		as->frames = grow(as->frames, as->n_frames, &as->cap_frames, sizeof(*as->frames), FIRST_FRAMES);
	struct frame *f = as->top = &as->frames[as->n_frames++];
	f->kind = (uint8_t)kind;
	f->unsorted = f->merging = f->holes = f->form = false;
	f->base = as->n_slots;
	f->order = 0;
	f->existing = NO_SLOT;
	f->target = as->target;
	f->old = VAL_EMPTY;
	return f;
}

/* ---- keys ---- */

static uint32_t find_slot(const struct assembly *as, const struct frame *f, atom key)
{
	for (uint32_t i = f->base; i < as->n_slots; i++)
		if (as->slots[i].key == key)
			return i;
	return NO_SLOT;
}

/* Marks field i of the frame's struct as seen; true if it was before. */
static bool mark_seen(struct frame *f, uint32_t i)
{
	uint64_t bit = UINT64_C(1) << i % 64, *word = &f->seen[i / 64 % SEEN_WORDS];
	bool before = *word & bit;

	*word |= bit;
	return before;
}

/*
 * Go finds an object's kind without regard to case; then it has to be looked for with more care than in the fast
 * path.
 */
static bool folds_to(str text, str name)
{
	for (size_t i = 0; i < name.n; i++) {
		uint32_t rune;
		size_t n = str_rune(text, &rune);
		char want = name.p[i] | 0x20;
		if (n == 3 && rune == 0x212a)
			rune = 'k'; /* the Kelvin sign */
		else if (n == 2 && rune == 0x17f)
			rune = 's'; /* the long s */
		if (!n || rune < 'A' || rune > 'z' || ((char)rune | 0x20) != want)
			return false;
		text = str_skip(text, n);
	}
	return text.n == 0;
}

bool assembly_is_kind_key(str text) { return folds_to(text, STR("kind")) || folds_to(text, STR("apiVersion")); }

static bool unknown_key(struct assembly *as, str text)
{
	if (as->n_frames == 1 && assembly_is_kind_key(text))
		as->recheck_kind = true;
	if (as->strict && !as->forms)
		strict_note(as, "unknown field", text, as->clock);
	return false;
}

static void duplicate_field(struct assembly *as, const struct field *field)
{
	if (as->n_frames == 1 && assembly_is_kind_key(atom_str(field->name)))
		as->recheck_kind = true;
	if (as->strict && !as->forms)
		strict_note(as, "duplicate field", atom_str(field->name), as->clock);
}

static bool struct_key(struct assembly *as, struct frame *f, str text, atom key)
{
	const struct field *field = type_field(f->type, key ? key : atom_find(text));

	if (UNLIKELY(!field))
		return unknown_key(as, text);
	uint32_t i = (uint32_t)(field - f->type->fields);
	bool again = mark_seen(f, i);
	f->existing = NO_SLOT;
	f->key = field->name;
	if (UNLIKELY(again || f->merging)) {
		f->existing = find_slot(as, f, field->name);
		if (again)
			duplicate_field(as, field);
	}
	f->unsorted |= i < f->order;
	f->order = i;
	as->target = (struct target){ field->kind, field->shape, field->flags, false, field->type, field };
	return true;
}

/* Keys of maps and free objects: the order is checked as they come. */
static void map_key(struct assembly *as, struct frame *f, str text, atom key)
{
	if (as->n_slots > f->base && !f->unsorted && str_cmp(f->key_text, text) >= 0)
		f->unsorted = true;
	if (!key) {
		key = atom_make(as->arena, text);
		text = key >= ATOM_LIMIT ? atom_str(key) : text;
	}
	f->key = key;
	f->key_text = text;
}

bool assembly_key(struct assembly *as, str text, atom key)
{
	struct frame *f = as->top;

	as->clock++;
	if (f->kind == FRAME_STRUCT)
		return struct_key(as, f, text, key);
	map_key(as, f, text, key);
	return true;
}

/* ---- values ---- */

void assembly_deliver(struct assembly *as, struct val v)
{
	struct frame *f = as->top;

	if (UNLIKELY(!f)) {
		as->result = v;
		return;
	}
	if (f->kind != FRAME_STRUCT) {
		push_slot(as, v, f->key, as->clock);
		return;
	}
	bool keep = target_keeps(&as->target, v);
	if (UNLIKELY(f->existing != NO_SLOT)) {
		as->slots[f->existing].val = keep ? v : VAL_EMPTY;
		f->holes |= !keep;
	} else if (keep) {
		push_slot(as, v, f->key, f->order);
	}
}

void assembly_misfit(struct assembly *as, const struct misfit *m)
{
	if (m->fatal && !as->failed) {
		as->failed = true;
		as->fatal = misfit_message(as, m);
	} else if (!as->saved.n) {
		as->saved = misfit_message(as, m);
	}
	/* The element that did not fit keeps its place, so that the others keep their index. */
	if (as->target.element && as->top)
		assembly_deliver(as, VAL_NULL_VALUE);
}

/* The value that is decoded into, when the field (or element) had one before. */
static struct val earlier_value(const struct assembly *as)
{
	const struct frame *f = as->top;

	if (!f)
		return VAL_EMPTY;
	if (f->kind == FRAME_LIST)
		return val_at(f->old, as->n_slots - f->base);
	return f->existing == NO_SLOT ? VAL_EMPTY : as->slots[f->existing].val;
}

/* Go leaves plain values and structs as they are when it reads null, and empties what can be nil or decodes itself. */
static bool null_is_ignored(const struct target *t)
{
	return t->kind <= KIND_FLOAT || t->kind == KIND_JSON || (t->kind == KIND_MESSAGE && t->type->form == FORM_OBJECT);
}

static void deliver_null(struct assembly *as)
{
	const struct target *t = &as->target;
	static const struct misfit duration = { .fatal = true, .text = STR_INIT("time: invalid duration \"\"") };
	static const struct misfit form = { .fatal = true, .text = STR_INIT("boolean or JSON schema expected") };
	bool pointer = t->flags & FIELD_POINTER;

	if (t->element) {
		struct val old = earlier_value(as);
		if (t->kind == KIND_DURATION)
			assembly_misfit(as, &duration);
		else if (t->kind == KIND_MESSAGE && t->type->form == FORM_SCHEMA_OR_BOOL)
			assembly_misfit(as, &form);
		else
			assembly_deliver(as, val_exists(old) && null_is_ignored(t) ? old : scalar_zero(t));
	} else if (!as->top) {
		as->result = VAL_EMPTY_OBJECT;
	} else if (t->kind == KIND_DURATION && !pointer && t->shape == SHAPE_ONE) {
		assembly_misfit(as, &duration);
	} else if (as->top->existing != NO_SLOT) {
		if (pointer || t->shape != SHAPE_ONE || !null_is_ignored(t)) {
			as->slots[as->top->existing].val = VAL_EMPTY;
			as->top->holes = true;
		}
	}
}

static void deliver_free_number(struct assembly *as, const struct scalar *s)
{
	double d;

	if (s->integer) {
		assembly_deliver(as, val_of_int(s->i));
	} else if (json_to_double(s->text, false, &d)) {
		assembly_deliver(as, val_of_double(d));
	} else {
		struct misfit m = { .value = arena_join(as->arena, STR("number "), s->text), .go_type = STR("float64") };
		assembly_misfit(as, &m);
	}
}

static void deliver_free(struct assembly *as, const struct scalar *s)
{
	if (s->token == TOKEN_NUMBER)
		deliver_free_number(as, s);
	else
		assembly_deliver(as, s->token == TOKEN_BOOL ? val_of_bool(s->b) : val_of_str(s->text));
}

/* A scalar for one of the types with a JSON form of its own. */
static void deliver_form(struct assembly *as, const struct scalar *s)
{
	static const struct misfit m = { .fatal = true, .text = STR_INIT("boolean or JSON schema expected") };

	if (as->target.type->form != FORM_SCHEMA_OR_BOOL)
		assembly_deliver(as, VAL_NULL_VALUE); /* neither schema nor list: Go takes it and remembers nothing */
	else if (s->token == TOKEN_BOOL)
		assembly_deliver(as, val_of_bool(s->b));
	else
		assembly_misfit(as, &m);
}

void assembly_scalar(struct assembly *as, const struct scalar *s)
{
	const struct target *t = &as->target;
	struct misfit m;
	struct val v;

	if (s->token == TOKEN_NULL)
		deliver_null(as);
	else if (t->kind == KIND_JSON && t->shape == SHAPE_ONE)
		deliver_free(as, s);
	else if (t->kind == KIND_MESSAGE && t->shape == SHAPE_ONE && t->type->form != FORM_OBJECT)
		deliver_form(as, s);
	else if (scalar_fit(as->arena, t, s, &v, &m))
		assembly_deliver(as, v);
	else
		assembly_misfit(as, &m);
}

void assembly_raw(struct assembly *as, str text)
{
	assembly_deliver(as, (struct val){ .type = VAL_RAW, .n = (uint32_t)text.n, .s = text.p });
}

/* ---- opening ---- */

static bool open_misfit(struct assembly *as, bool object)
{
	static const struct misfit form = { .fatal = true, .text = STR_INIT("boolean or JSON schema expected") };
	const struct target *t = &as->target;
	struct misfit m;

	if (t->kind == KIND_MESSAGE && t->shape == SHAPE_ONE && t->type->form != FORM_OBJECT) {
		assembly_misfit(as, &form);
		return false;
	}
	scalar_misfit(as->arena, t, object ? TOKEN_OBJECT : TOKEN_LIST, &m);
	assembly_misfit(as, &m);
	return false;
}

/* Continues with what an earlier value of the same field left. */
static void merge_earlier(struct assembly *as, struct frame *f, struct val old)
{
	if (f->kind == FRAME_LIST && old.type == VAL_LIST)
		f->old = old;
	if (old.type != VAL_OBJECT || (f->kind != FRAME_STRUCT && f->kind != FRAME_MAP))
		return;
	as->merged += old.n;
	if (as->merged > MERGED_MAX) {
		static const struct misfit m = { .fatal = true, .text = STR_INIT("too many duplicate fields") };
		assembly_misfit(as, &m);
		return;
	}
	f->merging = true;
	f->unsorted = true;
	for (uint32_t i = 0; i < old.n; i++) {
		const struct field *field = f->kind == FRAME_STRUCT ? type_field(f->type, old.members[i].key) : NULL;
		push_slot(as, old.members[i].val, old.members[i].key, field ? (uint32_t)(field - f->type->fields) : 0);
	}
}

static void open_struct(struct assembly *as, const struct type *type)
{
	struct val old = earlier_value(as);
	struct frame *f = push_frame(as, FRAME_STRUCT);

	f->type = type;
	memset(f->seen, 0, sizeof(f->seen));
	if (UNLIKELY(val_exists(old)))
		merge_earlier(as, f, old);
}

static void open_elements(struct assembly *as, enum frame_kind kind, struct target element)
{
	struct val old = earlier_value(as);
	struct frame *f = push_frame(as, kind);

	as->target = element;
	if (UNLIKELY(val_exists(old)))
		merge_earlier(as, f, old);
}

static struct target element_target(const struct target *t)
{
	return (struct target){ .kind = t->kind, .shape = SHAPE_ONE, .element = true, .type = t->type,
				.field = t->field };
}

/* JSONSchemaPropsOr...: an object is a schema, a list has schemas or strings. */
static bool open_form(struct assembly *as, bool object)
{
	const struct type *type = as->target.type;
	const struct field *schema = NULL, *list = NULL;

	for (uint32_t i = 0; i < type->n_fields; i++) {
		const struct field *f = &type->fields[i];
		if (f->shape == SHAPE_LIST)
			list = f;
		else if (f->kind == KIND_MESSAGE)
			schema = f;
	}
	if (object ? !schema : !list)
		return open_misfit(as, object);
	str outer = as->saved;
	if (object)
		open_struct(as, schema->type);
	else
		open_elements(as, FRAME_LIST, (struct target){ .kind = list->kind, .element = true,
							       .type = list->type, .field = list });
	as->top->form = true;
	as->top->outer_saved = outer;
	as->saved = STR_NONE;
	as->forms++;
	return true;
}

static bool open_one(struct assembly *as, bool object)
{
	const struct target *t = &as->target;

	switch (t->kind) {
	case KIND_JSON:
		push_frame(as, object ? FRAME_FREE_OBJECT : FRAME_FREE_LIST);
		as->target = free_target;
		return true;
	case KIND_MESSAGE:
		if (t->type->form != FORM_OBJECT)
			return open_form(as, object);
		if (!object)
			return open_misfit(as, object);
		open_struct(as, t->type);
		return true;
	case KIND_STRINGS:
		if (object)
			return open_misfit(as, object);
		open_elements(as, FRAME_LIST, (struct target){ .kind = KIND_STRING, .element = true });
		return true;
	case KIND_BYTES:
	case KIND_RAW_BYTES: /* Go reads a list of small numbers as well */
		if (object)
			return open_misfit(as, object);
		open_elements(as, FRAME_BYTES, (struct target){ .kind = KIND_UINT8, .element = true, .field = t->field });
		return true;
	default:
		return open_misfit(as, object);
	}
}

bool assembly_open(struct assembly *as, bool object)
{
	struct target element;

	if (as->target.shape == SHAPE_ONE)
		return open_one(as, object);
	if (object != (as->target.shape == SHAPE_MAP))
		return open_misfit(as, object);
	element = element_target(&as->target);
	open_elements(as, object ? FRAME_MAP : FRAME_LIST, element);
	return true;
}

/* ---- closing ---- */

/* Few and nearly sorted: insertion it is. */
static void sort_fields(struct slot *s, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++) {
		struct slot moving = s[i];
		uint32_t j = i;
		for (; j > 0 && s[j - 1].order > moving.order; j--)
			s[j] = s[j - 1];
		s[j] = moving;
	}
}

static int compare_keys(const void *x, const void *y)
{
	const struct slot *a = x, *b = y;
	int order = str_cmp(atom_str(a->key), atom_str(b->key));
	return order ? order : a->order < b->order ? -1 : a->order > b->order;
}

/* Sorted by key, each key with its last value; what occurred twice in this object is noted. Returns the number left. */
static uint32_t sort_members(struct assembly *as, struct slot *s, uint32_t n)
{
	uint32_t left = 0;

	qsort(s, n, sizeof(*s), compare_keys);
	for (uint32_t i = 0; i < n; i++) {
		bool same = left && atom_eq(s[left - 1].key, s[i].key);
		if (same && as->strict && s[left - 1].order && !as->forms)
			strict_note(as, "duplicate field", atom_str(s[i].key), s[i].order);
		s[same ? left - 1 : left] = s[i];
		left += !same;
	}
	return left;
}

/* A free object that keeps the order of its members: only the duplicates are of interest. */
static void note_duplicates(struct assembly *as, const struct slot *s, uint32_t n)
{
	CLEANUP(mem_freep) struct slot *copy = mem_array(n, sizeof(*copy));

	memcpy(copy, s, n * sizeof(*copy));
	sort_members(as, copy, n);
}

static uint32_t arrange_members(struct assembly *as, struct frame *f, struct slot *s, uint32_t n)
{
	if (f->holes) {
		uint32_t left = 0;
		for (uint32_t i = 0; i < n; i++)
			if (val_exists(s[i].val))
				s[left++] = s[i];
		n = left;
	}
	if (!f->unsorted)
		return n;
	if (f->kind == FRAME_STRUCT)
		sort_fields(s, n);
	else if (f->kind == FRAME_MAP || (as->free_root && as->sort_free))
		n = sort_members(as, s, n);
	else if (as->free_root && as->strict)
		note_duplicates(as, s, n);
	return n;
}

static struct val close_object(struct assembly *as, struct frame *f)
{
	struct slot *s = as->slots + f->base;
	uint32_t n = as->n_slots - f->base;

	if (UNLIKELY(f->unsorted || f->holes))
		n = arrange_members(as, f, s, n);
	if (!n)
		return VAL_EMPTY_OBJECT;
	struct member *m = ARENA_ARRAY(as->arena, struct member, n);
	for (uint32_t i = 0; i < n; i++)
		m[i] = (struct member){ s[i].key, s[i].val };
	return (struct val){ .type = VAL_OBJECT, .n = n, .members = m };
}

static struct val close_list(struct assembly *as, struct frame *f)
{
	const struct slot *s = as->slots + f->base;
	uint32_t n = as->n_slots - f->base;

	if (!n)
		return f->form ? VAL_NULL_VALUE : VAL_EMPTY_LIST;
	struct val *items = ARENA_ARRAY(as->arena, struct val, n);
	for (uint32_t i = 0; i < n; i++)
		items[i] = s[i].val;
	return (struct val){ .type = VAL_LIST, .n = n, .items = items };
}

static struct val close_bytes(struct assembly *as, struct frame *f)
{
	const struct slot *s = as->slots + f->base;
	uint32_t n = as->n_slots - f->base;
	char *bytes = arena_alloc(as->arena, n + 1, 1);

	for (uint32_t i = 0; i < n; i++)
		bytes[i] = (char)s[i].val.i;
	if (f->target.kind == KIND_RAW_BYTES)
		return val_of_str(str_span(bytes, n));
	char *text = arena_alloc(as->arena, base64_encoded_len(n) + 1, 1);
	return val_of_str(str_span(text, base64_encode(text, str_span(bytes, n))));
}

/* Inside a form Go runs a decoder of its own, whose error is fatal to the one around it. */
static void close_form(struct assembly *as, const struct frame *f)
{
	as->forms--;
	if (as->saved.n && !as->failed) {
		as->failed = true;
		as->fatal = as->saved;
	}
	as->saved = f->outer_saved;
}

void assembly_close(struct assembly *as)
{
	struct frame *f = as->top;
	struct val v;

	switch ((enum frame_kind)f->kind) {
	case FRAME_STRUCT:
	case FRAME_MAP:
	case FRAME_FREE_OBJECT: v = close_object(as, f); break;
	case FRAME_BYTES: v = close_bytes(as, f); break;
	default: v = close_list(as, f);
	}
	as->n_slots = f->base;
	as->target = f->target;
	as->n_frames--;
	as->top = as->n_frames ? f - 1 : NULL;
	if (UNLIKELY(f->form))
		close_form(as, f);
	assembly_deliver(as, v);
}

int assembly_finish(struct assembly *as, struct val *ret, struct err *err)
{
	str text = as->fatal.n ? as->fatal : as->saved;

	if (text.n)
		return err_set(err, ERR_BAD_REQUEST, STR_FMT, STR_ARG(text));
	*ret = as->result;
	return 0;
}
