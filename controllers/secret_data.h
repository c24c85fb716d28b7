/* secret_data: values of Secrets, which are kept in base64. Pure. */
#ifndef C8S_CONTROLLERS_SECRET_DATA_H
#define C8S_CONTROLLERS_SECRET_DATA_H

#include "base/encoding.h"
#include "codec/atoms.h"

/* One of the values, in the arena; empty when there is none. */
static inline str secret_data(struct arena *a, struct val secret, str key)
{
	str text = val_as_str(val_find(val_get(secret, data), key));
	char *room = arena_alloc(a, base64_decoded_max(text.n) + 1, 1);
	size_t n = 0;
	return text.n && base64_decode(room, text, &n, NULL) == 0 ? str_span(room, n) : STR_NONE;
}

/* The secret with that value. */
static inline struct val secret_data_put(struct arena *a, struct val secret, str key, str value)
{
	char *room = arena_alloc(a, base64_encoded_len(value.n) + 1, 1);
	struct val text = VAL_STR(str_span(room, base64_encode(room, value)));
	return val_with(a, secret, val_put(a, val_get(secret, data), atom_make(a, key), text), data);
}

#endif
