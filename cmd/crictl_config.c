/*
 * Configurations in files. crictl's have the names of protobuf (log_directory) and numbers for enums; both forms are taken, with what
 * the schema says about each field.
 */
#include <unistd.h>

#include "base/file.h"
#include "cmd/crictl.h"
#include "codec/codec.h"

enum { FILE_MAX = 16 << 20 };

/* "log_directory" as logDirectory. */
static atom field_name(struct arena *a, str name)
{
	char *out = arena_alloc(a, name.n + 1, 1);
	size_t n = 0;

	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];
		if (c == '_' && i + 1 < name.n)
			c = name.p[++i] >= 'a' && name.p[i] <= 'z' ? (char)(name.p[i] - 'a' + 'A') : name.p[i];
		out[n++] = c;
	}
	return atom_make(a, str_span(out, n));
}

static int message(struct arena *a, struct val v, const struct type *type, struct val *ret, struct err *err);

static int one(struct arena *a, struct val v, const struct field *f, struct val *ret, struct err *err)
{
	*ret = v;
	if (f->kind == KIND_MESSAGE)
		return message(a, v, f->type, ret, err);
	if (f->kind == KIND_ENUM && val_is(v, VAL_INT))
		for (const struct enum_value *e = f->facts->enum_values; e->name.n; e++)
			if (e->number == val_as_int(v))
				*ret = VAL_STR(e->name);
	return 0;
}

static int list(struct arena *a, struct val v, const struct field *f, struct val *ret, struct err *err)
{
	struct val_builder b = val_builder(a);
	int r = 0;

	VAL_EACH(item, v) {
		struct val out;
		if (r == 0 && (r = one(a, *item, f, &out, err)) == 0)
			val_add_item(&b, out);
	}
	*ret = val_end_list(&b);
	return r;
}

/* As deep as the schema is, which is not deep. */
static int message(struct arena *a, struct val v, const struct type *type, struct val *ret, struct err *err)
{
	struct val_builder b = val_builder(a);
	int r = 0;

	if (val_is_nil(v)) {
		*ret = VAL_EMPTY;
		return 0;
	}
	if (!val_is(v, VAL_OBJECT))
		return err_set(err, ERR_BAD_REQUEST, STR_FMT " must be an object", STR_ARG(type->name));
	VAL_EACH_MEMBER(m, v) {
		atom name = field_name(a, atom_str(m->key));
		const struct field *f = type_field(type, name);
		struct val out = m->val;
		if (!f)
			return err_set(err, ERR_BAD_REQUEST, STR_FMT " has no field \"" STR_FMT "\"", STR_ARG(type->name),
				       STR_ARG(atom_str(m->key)));
		if (f->shape == SHAPE_LIST)
			r = list(a, m->val, f, &out, err);
		else if (f->shape == SHAPE_ONE)
			r = one(a, m->val, f, &out, err);
		if (r < 0)
			return r;
		val_add_member(&b, name, out);
	}
	*ret = val_end_object(&b);
	return 0;
}

static int read_all(const char *file, struct buf *b, struct err *err)
{
	ssize_t n = 1;

	if (strcmp(file, "-") != 0)
		return file_read(file, b, err);
	while (n > 0) {
		char *p = buf_reserve(b, 65536);
		if (!p)
			return buf_check(b, "standard input", err);
		n = read(STDIN_FILENO, p, 65536);
		buf_commit(b, n > 0 ? (size_t)n : 0);
	}
	return 0;
}

int crictl_config_read(struct crictl *c, const char *file, const struct type *type, struct val *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(FILE_MAX), json = BUF_INIT(FILE_MAX);
	struct json_decode_options free_tree = { 0 };
	struct val v;
	int r = read_all(file, &text, err);

	if (r < 0)
		return r;
	if ((r = yaml_to_json(buf_str(&text), &json, NULL, err)) < 0 ||
	    (r = json_decode(&c->arena, arena_str(&c->arena, buf_str(&json)), &free_tree, &v, err)) < 0 ||
	    (r = message(&c->arena, v, type, ret, err)) < 0)
		return err_wrap(err, r, "%s", file);
	return 0;
}
