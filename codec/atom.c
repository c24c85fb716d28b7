/* Atoms: names as numbers. The known ones come from the schema; any other name is the address of its text. */
#include "codec/schema_tables.h"

static str known_text(atom key)
{
	str quoted = atom_json_key(key);
	return str_span(quoted.p + 1, quoted.n - 3);
}

atom atom_find(str s)
{
	for (uint32_t i = name_hash(s);; i++) {
		atom key = atom_slots[i & atom_slot_mask];
		if (!key || str_eq(known_text(key), s))
			return key;
	}
}

atom atom_make(struct arena *a, str s)
{
	atom key = atom_find(s);
	if (key)
		return key;
	struct atom_text *text = arena_alloc(a, sizeof(*text) + s.n, _Alignof(struct atom_text));
	text->n = (uint32_t)s.n;
	if (s.n)
		memcpy(text->s, s.p, s.n);
	return (atom)text;
}

str atom_str(atom key)
{
	if (key >= ATOM_LIMIT) {
		const struct atom_text *text = (const struct atom_text *)key;
		return str_span(text->s, text->n);
	}
	return key ? known_text(key) : STR_NONE;
}
