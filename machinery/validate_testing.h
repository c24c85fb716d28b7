/*
 * What the tests of validation share: an object goes in as JSON with ' for ", through defaults and preparation as in the API server, and
 * comes out as the list of what is wrong with it, one "field: body" per line, also with ' for ".
 */
#ifndef C8S_MACHINERY_VALIDATE_TESTING_H
#define C8S_MACHINERY_VALIDATE_TESTING_H

#include "codec/atoms.h"
#include "machinery/testing.h"
#include "machinery/validate.h"

/* The texts of rules that many fields share. */
#define LABEL_TEXT \
	"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric" \
	" character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
#define OLD_LABEL_TEXT \
	"a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an" \
	" alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
#define SUBDOMAIN_TEXT \
	"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an" \
	" alphanumeric character (e.g. 'example.com', regex used for validation is" \
	" '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
#define NAME_PART_TEXT \
	"name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character" \
	" (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
#define VALUE_TEXT \
	"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an" \
	" alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is" \
	" '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"

/* The object with defaults. */
TESTING struct val testing_object(struct arena *a, const char *quoted, const struct type **ret_type)
{
	struct err err = ERR_INIT;
	struct val v = VAL_EMPTY;
	int r = json_decode_object(a, testing_json(a, quoted), NULL, &v, ret_type, &err);

	if (r < 0 || !*ret_type)
		fail_msg("%s: %s", quoted, r < 0 ? err.msg : "no such kind");
	if (default_object(a, *ret_type, v, &v, &err) < 0)
		fail_msg("%s: %s", quoted, err.msg);
	return v;
}

TESTING str testing_lines(struct arena *a, const struct field_errors *e)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	for (size_t i = 0; i < e->n; i++)
		buf_addf(&b, "%s" STR_FMT ": " STR_FMT, i ? "\n" : "", STR_ARG(e->list[i].field), STR_ARG(e->list[i].body));
	return testing_swap(a, buf_str(&b), '"', '\'');
}

/* A new object: what the server makes of it, in *ret_made (may be NULL), and what is wrong with that. */
TESTING str testing_create_gated(struct arena *a, struct val gates, const char *object, struct val *ret_made)
{
	const struct type *type;
	struct val v = testing_object(a, object, &type);
	struct field_errors errors;
	struct err err = ERR_INIT;

	if (!val_has(v, metadata, uid))
		v = val_with(a, v, VAL_LIT("11111111-1111-1111-1111-111111111111"), metadata, uid);
	if (prepare_create(a, type, gates, v, &v, &err) < 0)
		fail_msg("%s: %s", object, err.msg);
	field_errors_init(&errors, a);
	errors.gates = gates;
	validate_create(type, v, &errors);
	if (ret_made)
		*ret_made = v;
	return testing_lines(a, &errors);
}

TESTING str testing_create(struct arena *a, const char *object, struct val *ret_made)
{
	return testing_create_gated(a, VAL_EMPTY, object, ret_made);
}

/* The same for an update; subresource "": of the object itself. */
TESTING str testing_update(struct arena *a, const char *object, const char *before, const char *subresource, struct val *ret_made)
{
	const struct type *type;
	struct val v = testing_object(a, object, &type), old = testing_object(a, before, &type);
	struct field_errors errors;
	struct err err = ERR_INIT;

	/* what the registry does for all kinds */
	if (!val_has(v, metadata, uid))
		v = val_with(a, v, val_get(old, metadata, uid), metadata, uid);
	if (val_has(old, metadata, creationTimestamp))
		v = val_with(a, v, val_get(old, metadata, creationTimestamp), metadata, creationTimestamp);
	if (val_has(old, metadata, deletionTimestamp))
		v = val_with(a, v, val_get(old, metadata, deletionTimestamp), metadata, deletionTimestamp);
	if (prepare_update(a, type, VAL_EMPTY, str_of(subresource), v, old, &v, &err) < 0)
		fail_msg("%s: %s", object, err.msg);
	field_errors_init(&errors, a);
	if (*subresource)
		validate_subresource(type, str_of(subresource), v, old, &errors);
	else
		validate_update(type, v, old, &errors);
	if (ret_made)
		*ret_made = v;
	return testing_lines(a, &errors);
}

struct create_row {
	const char *object, *want;
};

struct update_row {
	const char *object, *old, *subresource, *want;
};

TESTING void check_create_rows(const struct create_row *rows, size_t n)
{
	struct arena a = ARENA_INIT;
	for (size_t i = 0; i < n; i++) {
		CHECK_STR_ROW(i, testing_create(&a, rows[i].object, NULL), rows[i].want);
		arena_reset(&a);
	}
	arena_done(&a);
}

TESTING void check_update_rows(const struct update_row *rows, size_t n)
{
	struct arena a = ARENA_INIT;
	for (size_t i = 0; i < n; i++) {
		CHECK_STR_ROW(i, testing_update(&a, rows[i].object, rows[i].old, rows[i].subresource, NULL), rows[i].want);
		arena_reset(&a);
	}
	arena_done(&a);
}

#endif
