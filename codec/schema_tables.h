/*
 * What the generated files of tools/apigen share with atom.c, json_encode.c and schema.c. Nobody else includes this.
 */
#ifndef C8S_CODEC_SCHEMA_TABLES_H
#define C8S_CODEC_SCHEMA_TABLES_H

#include <endian.h>

#include "codec/schema.h"

/* Texts of the atoms 1, 2, ... as JSON has them before a value: "name": with quotes and colon. Atom i begins at atom_offset[i] and ends
 * before atom_offset[i + 1]. Offsets instead of pointers: nothing to relocate when the program starts. */
extern const char atom_text[];
extern const uint32_t atom_offset[];
/* Open addressing, linear probing: name_hash -> atom, 0 for an empty slot. */
extern const uint16_t atom_slots[];
extern const uint32_t atom_slot_mask;

/* The same for kinds: kind_hash -> index into schema_types + 1. */
extern const uint16_t schema_kind_slots[];
extern const uint32_t schema_kind_mask;

/* The facts of a field that has none. */
extern const struct field_facts schema_no_facts;

/* Of one that is in the table. */
static inline str atom_json_key(atom key)
{
	uint32_t at = atom_offset[key];
	return str_span(atom_text + at, atom_offset[key + 1] - at);
}

/* Cheap for short names: looks at the length and at the first and last 8 bytes. tools/apigen/emit.py computes the same. */
static inline uint32_t name_hash(str s)
{
	uint64_t a = 0, b = 0;
	const unsigned char *p = (const unsigned char *)s.p;
	if (s.n >= 8) {
		memcpy(&a, p, 8);
		memcpy(&b, p + s.n - 8, 8);
	} else if (s.n >= 4) {
		memcpy(&a, p, 4);
		memcpy(&b, p + s.n - 4, 4);
	} else if (s.n) {
		a = htole64(p[0] | (uint64_t)p[s.n / 2] << 8 | (uint64_t)p[s.n - 1] << 16);
	}
	uint64_t h = ((le64toh(a) + s.n) * 0x9E3779B97F4A7C15u) ^ le64toh(b);
	h ^= h >> 32;
	return (uint32_t)((h * 0xD6E8FEB86659FD93u) >> 32);
}

static inline uint32_t kind_hash(str api_version, str kind)
{
	return name_hash(kind) + 31 * name_hash(api_version);
}

#endif
