#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

static void *checked(void *p, size_t size)
{
	if (!p) {
		fprintf(stderr, "c8s: out of memory (%zu bytes wanted)\n", size);
		abort();
	}
	return p;
}

void *mem_alloc(size_t size) { return checked(malloc(size ? size : 1), size); }
void *mem_zalloc(size_t size) { return checked(calloc(1, size ? size : 1), size); }

void *mem_array(size_t n, size_t size)
{
	size_t total;
	if (__builtin_mul_overflow(n, size, &total))
		return checked(NULL, SIZE_MAX);
	return mem_alloc(total);
}

void *mem_resize(void *p, size_t size) { return checked(realloc(p, size ? size : 1), size); }
void mem_freep(void *pointer_to_pointer) { free(*(void **)pointer_to_pointer); }
