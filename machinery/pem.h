/* PEM, as Go's encoding/pem reads it: text around and between blocks is skipped, and so is what only looks like a block. */
#ifndef C8S_MACHINERY_PEM_H
#define C8S_MACHINERY_PEM_H

#include "base/arena.h"

struct pem_block {
	str type;         /* CERTIFICATE, CERTIFICATE REQUEST, ... */
	bool has_headers; /* lines "Name: value" before the content */
	str bytes;        /* decoded, in the arena */
};

/* The next block, and what follows it in *rest; false when there is none. */
bool pem_next(struct arena *a, str *rest, struct pem_block *ret);

#endif
