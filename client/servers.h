/*
 * servers: the addresses at which one API is found. One of them is in use until it cannot be reached; then the next one is. The first is that of
 * the configuration; the others are the lines of a file, which somebody else keeps up to date and which is read when another one is needed.
 */
#ifndef C8S_CLIENT_SERVERS_H
#define C8S_CLIENT_SERVERS_H

#include "base/str.h"

enum { SERVERS_MAX = 32 };

struct servers {
	char *first, *file;          /* file NULL: there is only the first */
	char *current;               /* "https://10.0.0.1:6443/prefix" */
	unsigned number;             /* of current; grows when it changes */
};

/* file may be empty. */
void servers_init(struct servers *s, str first, str file);
void servers_done(struct servers *s);

/*
 * The server of that number cannot be reached: another one becomes current, unless it has since. Returns how many others there are; with 0 nothing
 * changes. Lines that are no https:// URL do not count. Reads the file.
 */
size_t servers_move(struct servers *s, unsigned number);

#endif
