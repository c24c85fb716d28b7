/*
 * Heap. Everything a peer can grow has a maximum, so running out of memory is never the peer's doing:
 * these end the process with a message instead of returning NULL, and the supervisor restarts it.
 */
#ifndef C8S_BASE_MEM_H
#define C8S_BASE_MEM_H

#include "base/defs.h"

void *mem_alloc(size_t size) NONNULL_RESULT;
void *mem_zalloc(size_t size) NONNULL_RESULT;
/* Room for n items of size; ends the process on overflow too. */
void *mem_array(size_t n, size_t size) NONNULL_RESULT;
void *mem_resize(void *p, size_t size) NONNULL_RESULT;
/* free(), in a form that CLEANUP takes: CLEANUP(mem_freep) char *p. */
void mem_freep(void *pointer_to_pointer);

#endif
