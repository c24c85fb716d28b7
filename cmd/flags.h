/*
 * Flags in the manner of Kubernetes' components: a table with one row per flag fills a struct. Values are given and wrong
 * ones refused as Go's flags do: --flag=value, --flag value (not for bools), lists with commas and by repetition, durations
 * as 5m0s. What a flag does not do yet is part of its row: it is never ignored in silence.
 */
#ifndef C8S_CMD_FLAGS_H
#define C8S_CMD_FLAGS_H

#include "base/arena.h"
#include "base/buf.h"
#include "cmd/cmd.h"

enum flag_type {           /* what the member is */
	FLAG_HEADING,      /* no flag: begins a group in --help; help is its title */
	FLAG_BOOL,         /* bool */
	FLAG_BOOL_GIVEN,   /* the same, and behind it another one: whether the flag was given */
	FLAG_STRING,       /* const char *; NULL when it is not given and has no default */
	FLAG_IP,           /* the same, checked */
	FLAG_INT,          /* int64_t */
	FLAG_FLOAT,        /* double */
	FLAG_DURATION,     /* int64_t, nanoseconds */
	FLAG_LIST,         /* const char *const *, NULL-ended; commas separate, and further flags add; never NULL */
	FLAG_ARRAY,        /* the same; commas do not separate */
	FLAG_SETTING,      /* struct flag_settings, which all such flags share: the flag is added with its text, see flags_config.h */
	FLAG_SETTING_BOOL, /* the same; true needs no value */
};

/* Flags that were given and stand for fields of a configuration, in the order of the command line. */
struct flag_settings {
	struct flag_setting {
		const char *name, *text;
	} *items;
	size_t n, cap;
};

enum flag_effect {
	FLAG_WORKS,
	FLAG_TUNING,       /* accepted: it tunes something that c8s does in another way, or not at all, without harm */
	FLAG_LATER,        /* accepted, but what it asks for is not done yet; the caller tells */
	FLAG_REFUSED,      /* any other value than the default is refused */
};

struct flag {
	const char *name;  /* without the dashes; NULL with a help: a heading; NULL without: the end */
	enum flag_type type;
	enum flag_effect effect;
	size_t offset;     /* of the member, for FLAG_WORKS */
	const char *initial; /* the default, as text; NULL: none */
	const char *help;
};

#define FLAG_GROUP(title) { NULL, FLAG_HEADING, FLAG_WORKS, 0, NULL, title }

/*
 * Fills what the table says with defaults and then with the arguments; texts are borrowed from argv or live in the arena.
 * A name that several rows have is one flag that fills all of them.
 * `later` gets the names of flags given that have no effect yet ("--a, --b"). Returns 0, or 2 (the exit code) after a
 * message.
 */
int flags_parse(const struct command *c, int argc, char **argv, const struct flag *table, void *target, struct arena *a,
		struct buf *later);
/* As Go's strconv.ParseBool. */
bool flag_parse_bool(str text, bool *ret);
/* Prints the table to standard output, by groups. */
void flags_help(const struct flag *table);

#endif
