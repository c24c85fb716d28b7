/*
 * store: what survives a restart. Every sandbox and every container has a folder with one JSON file in it, its record, that is
 * replaced atomically. The folder, and the record of a sandbox, are written before anything else is made and go after everything else
 * has gone: whatever moment a crash chooses, the next start finds all that there may be. Only what must outlive a loss of power is synced: nothing
 * that runs does, so that is what has been started, and how it ended.
 */
#ifndef C8S_RUNTIME_STORE_H
#define C8S_RUNTIME_STORE_H

#include "base/arena.h"
#include "base/err.h"
#include "codec/schema.h"

/* (suspends) Writes the record of a type into folder/name; the folder is there. keep: it outlives a loss of power. */
int store_write(const char *folder, const char *name, struct val record, const struct type *type, bool keep, struct err *err);
/* The record, in the arena. -ERR_NOT_FOUND; -ERR_INVALID: it is damaged. Blocks. */
int store_read(const char *folder, const char *name, const struct type *type, struct arena *a, struct val *ret, struct err *err);
/* Names of the folders in a folder, in the arena; none when it is not there. Blocks. */
int store_list(const char *folder, struct arena *a, str **ret, size_t *ret_n, struct err *err);
/* (suspends) Removes folder/name and all below; fine when there is none. */
int store_remove(const char *folder, const char *name, struct err *err);
/* (suspends) Writes a file that processes use, with this mode: atomically, but it is not synced. */
int store_write_file(const char *path, str content, unsigned mode, struct err *err);

#endif
