/*
 * Flags that stand for fields of a component's configuration (KubeletConfiguration, ...): what the schema says about the field is how its
 * text is read. Bools, numbers, durations and texts replace what an earlier flag said; lists with commas and maps (a=b,c=d) add to it.
 */
#ifndef C8S_CMD_FLAGS_CONFIG_H
#define C8S_CMD_FLAGS_CONFIG_H

#include "cmd/flags.h"
#include "codec/schema.h"

struct flag_field {
	const char *name;             /* of the flag; NULL: the end of the table */
	const char *path;             /* "authentication.webhook.enabled" */
	enum flag_pairs {             /* of maps */
		PAIRS_EQUAL,          /* a=b,c=d */
		PAIRS_LESS,           /* a<b,c<d */
		PAIRS_COLON,          /* a:b,c:d; of a map of lists: a:b,a:c */
		PAIRS_ONE,            /* a=b, one for each flag */
	} pairs;
};

/*
 * A field that its type alone does not explain: *ret is the value after this text, which `before` was before (VAL_NONE: this is the
 * first). 1; 0 if the field is not one of those; or an error.
 */
typedef int flag_reader(struct arena *a, const char *path, struct val before, str text, struct val *ret, struct err *err);

/*
 * A free tree of the fields that flags say something about. special may be NULL. -ERR_BAD_REQUEST: invalid argument "x" for "--flag" flag:
 * why. Every flag has a field.
 */
int flags_config(struct arena *a, const struct flag_settings *s, const struct flag_field *fields, const struct type *type,
		 flag_reader *special, struct val *ret, struct err *err);

#endif
