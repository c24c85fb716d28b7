/* What the fuzz targets share. A target is one function; libFuzzer calls it, or replay.c in ordinary builds. */
#ifndef C8S_FUZZ_FUZZ_H
#define C8S_FUZZ_FUZZ_H

#include <stdio.h>
#include <stdlib.h>

#include "base/defs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A finding, in words, when something does not hold that must. */
static inline void check(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "does not hold: %s\n", what);
	abort();
}

#endif
