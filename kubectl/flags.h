/*
 * Flags as Go's pflag reads them: --name=value, --name value, -n value, -nvalue, -it, flags and arguments mixed, "--" before what is no
 * flag. A table with one row per flag fills a struct; several tables may fill parts of it.
 */
#ifndef C8S_KUBECTL_FLAGS_H
#define C8S_KUBECTL_FLAGS_H

#include "base/arena.h"
#include "base/buf.h"

/* Several texts, in the order of the command line. */
struct ktl_texts {
	const char **v;
	size_t n;
};

enum ktl_flag_type {           /* what the member is */
	KTL_BOOL,              /* bool */
	KTL_STRING,            /* const char *, never NULL */
	KTL_INT,               /* int64_t */
	KTL_DURATION,          /* int64_t, nanoseconds */
	KTL_LIST,              /* struct ktl_texts; commas separate, and further flags add */
	KTL_ARRAY,             /* the same; commas do not separate */
};

struct ktl_flag {
	const char *name;      /* without dashes; NULL ends a table */
	char letter;           /* 0: none */
	enum ktl_flag_type type;
	size_t offset;
	const char *initial;   /* the default, as text; NULL: false, "", 0, none */
	const char *help;      /* NULL: not shown */
	const char *bare;      /* its value when it is given without one; NULL: it needs one (but a bool) */
};

/* A table, and where in the target the struct is that it fills. */
struct ktl_flag_set {
	const struct ktl_flag *flags; /* NULL ends the list */
	size_t offset;
};

struct ktl_flags {
	const struct ktl_flag_set *sets; /* of the command */
	void *target;
	const struct ktl_flag *globals;  /* of all commands */
	void *global_target;
	/* filled by ktl_flags_parse */
	struct ktl_texts args;           /* what is no flag */
	ptrdiff_t dash;                  /* how many of them stood before "--"; -1: there was none */
	bool help;
	const struct ktl_flag **given;
	size_t n_given;
};

/* -ERR_BAD_REQUEST with pflag's words. Texts are borrowed from argv or live in the arena. */
int ktl_flags_parse(struct ktl_flags *f, struct arena *a, int argc, char **argv, struct err *err);
/* Whether the flag was on the command line. */
bool ktl_flag_given(const struct ktl_flags *f, const char *name);
/* Appends a table as --help shows it. */
void ktl_flags_describe(struct buf *b, const struct ktl_flag *flags);
/* As Go's strconv.ParseBool. */
bool ktl_parse_bool(str text, bool *ret);

#endif
