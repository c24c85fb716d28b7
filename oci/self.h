/*
 * self: a container must not get at the program that made it: by /proc/PID/exe of a process that is on its way into it, it could
 * open the file and, once nobody executes it, write to it (CVE-2019-5736). So we run from a place that cannot be written to: a
 * read-only mount of our own file that is in no namespace, and where that is not possible a sealed copy in memory.
 */
#ifndef C8S_OCI_SELF_H
#define C8S_OCI_SELF_H

#include "base/err.h"

/*
 * Executes the program again from such a place, with these arguments, unless it runs from one already. Returns 0 then; else it
 * does not return but with an error. To be called first by every part that makes containers: runc and the monitor.
 */
int self_protect(char **argv, struct err *err);

#endif
