/*
 * log: a file of lines that begins anew when it is large. Old files are kept beside it, with the time in their name
 * (audit-2006-01-02T15-04-05.000.log), as many and as long as the options say, and compressed if they say so. All of it blocks
 * and belongs to one thread at a time.
 */
#ifndef C8S_APISERVER_AUDIT_LOG_H
#define C8S_APISERVER_AUDIT_LOG_H

#include "base/err.h"
#include "base/str.h"

struct audit_log;

struct audit_log_options {
	const char *path;             /* "-": standard output */
	int64_t max_bytes;            /* 0: it never begins anew */
	int64_t max_age_days, max_backups; /* 0: no limit */
	bool compress;
};

/* Makes the file (mode 0600) and its folder if there are none. */
int audit_log_open(const struct audit_log_options *o, struct audit_log **ret, struct err *err);
void audit_log_close(struct audit_log *l); /* NULL is fine */
/* Appends whole lines, which stay together in one file. -ERR_TOO_LARGE: more than a file takes. */
int audit_log_write(struct audit_log *l, str lines, struct err *err);
/* Whether there are old files that audit_log_tidy should look at. */
bool audit_log_is_untidy(const struct audit_log *l);
/* Removes what is too much or too old, and compresses the rest; may run beside audit_log_write in another thread. */
int audit_log_tidy(struct audit_log *l, struct err *err);

#endif
