/*
 * TOML, as much of it as the hosts.toml of registries need: tables, dotted and quoted keys, strings of all four kinds, integers,
 * booleans, arrays and inline tables. Not here: floats, dates, and arrays of tables.
 */
#ifndef C8S_RUNTIME_IMAGE_TOML_H
#define C8S_RUNTIME_IMAGE_TOML_H

#include "base/arena.h"
#include "base/err.h"
#include "codec/val.h"

enum { TOML_MAX = 64 << 10, TOML_KEYS_MAX = 1000, TOML_DEPTH_MAX = 16 };

/*
 * A free tree in the order of the text, which it may borrow. -ERR_INVALID with "line N: what is wrong"; -ERR_TOO_LARGE beyond TOML_MAX
 * bytes, TOML_KEYS_MAX keys or array items, or TOML_DEPTH_MAX levels.
 */
int toml_decode(struct arena *a, str text, struct val *ret, struct err *err);

#endif
