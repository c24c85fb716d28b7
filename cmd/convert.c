/* c8s convert: objects of any kind from one outer form into another. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/encoding.h"
#include "cmd/cmd.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "machinery/machinery.h"

/* Larger than any object or list that a cluster holds, small enough for a laptop. */
enum { INPUT_MAX = 256 << 20, OUTPUT_MAX = 1 << 30 };

enum form_name { FORM_AUTO, FORM_JSON, FORM_YAML, FORM_PROTOBUF };

struct convert {
	const char *file;         /* NULL or "-": standard input */
	enum form_name in, out;
	const struct type *type;  /* what the input is, when the user says so; else its kind is looked up */
	bool validate, strict;
	unsigned n_written;
	bool failed;              /* some object was invalid; the others are still written */
	struct buf output;
};

/* ---- input ---- */

static int read_all(FILE *f, const char *name, struct buf *b, struct err *err)
{
	enum { CHUNK = 64 * 1024 };
	for (;;) {
		char *at = buf_reserve(b, CHUNK);
		if (!at)
			return err_set(err, ERR_TOO_LARGE, "%s: input is larger than %zu bytes", name, b->max);
		size_t n = fread(at, 1, CHUNK, f);
		buf_commit(b, n);
		if (n < CHUNK)
			return ferror(f) ? err_sys(err, errno, "%s", name) : 0;
	}
}

static int read_input(const struct convert *c, struct buf *b, struct err *err)
{
	if (!c->file || str_eq(str_of(c->file), STR("-")))
		return read_all(stdin, "standard input", b, err);
	FILE *f = fopen(c->file, "rb");
	if (!f)
		return err_sys(err, errno, "%s", c->file);
	int r = read_all(f, c->file, b, err);
	fclose(f);
	return r;
}

/* etcdctl prints the key on a line of its own before a value, and a newline after it. */
static str without_etcdctl_frame(str s)
{
	ptrdiff_t line = str_chr(s, '\n');
	if (line > 0 && str_starts(s, STR("/registry/")))
		s = str_skip(s, (size_t)line + 1);
	if (proto_is_envelope(s) && s.p[s.n - 1] == '\n')
		s.n--;
	return s;
}

static enum form_name detect(str s)
{
	if (proto_is_envelope(s))
		return FORM_PROTOBUF;
	s = str_trim(s);
	return s.n && s.p[0] == '{' ? FORM_JSON : FORM_YAML;
}

/* ---- output ---- */

static int write_object(struct convert *c, struct val v, const struct type *type, struct err *err)
{
	int r;

	c->n_written++;
	switch (c->out) {
	case FORM_YAML:
		if (c->n_written > 1)
			buf_add(&c->output, STR("---\n"));
		return yaml_encode(&c->output, v, type, err);
	case FORM_PROTOBUF:
		if (c->n_written > 1)
			return err_set(err, ERR_BAD_REQUEST, "protobuf output holds one object, the input has more");
		if (type->flags & TYPE_PROTO3)
			return proto_encode(&c->output, v, type, err);
		return proto_encode_object(&c->output, v, type, err);
	default:
		r = json_encode(&c->output, v, &(struct json_encode_options){ .type = type, .indent = 4 }, err);
		buf_addc(&c->output, '\n');
		return r;
	}
}

static void warn_strict(const struct strict_errors *strict)
{
	for (size_t i = 0; i < strict->n; i++)
		fprintf(stderr, "warning: " STR_FMT "\n", STR_ARG(strict->text[i]));
}

/* What the API server knows about a new object from elsewhere: the namespace from the URL, and an identity that it gives. */
static int place(struct arena *a, const struct type *type, struct val v, struct val *ret, struct err *err)
{
	char uid[UUID_TEXT + 1];

	if (type_is_namespaced(type) && !val_str(v, metadata, namespace).n)
		v = val_with(a, v, VAL_LIT("default"), metadata, namespace);
	uuid_v4(uid);
	v = val_with(a, v, VAL_STR(arena_str(a, str_of(uid))), metadata, uid);
	int r = val_canonical(a, v, type, NULL, &v, err);
	return r < 0 ? r : prepare_create(a, type, VAL_EMPTY, v, ret, err);
}

/* Defaults and checks as the API server does on create; errors go to standard error and the object is not written. */
static int validate(struct convert *c, struct arena *a, const struct type *type, struct val *v, struct err *err)
{
	struct field_errors errors;
	struct val placed;
	int r;

	field_errors_init(&errors, a);
	if ((r = default_object(a, type, *v, v, err)) < 0 || (r = place(a, type, *v, &placed, err)) < 0)
		return r;
	validate_create(type, placed, &errors);
	if (errors.n == 0)
		return 0;
	str message = field_errors_message(&errors, type, val_str(*v, metadata, name));
	fprintf(stderr, STR_FMT "\n", STR_ARG(message));
	c->failed = true;
	return 0;
}

static int convert_object(struct convert *c, struct arena *a, struct val v, const struct type *type, const struct strict_errors *strict,
			  struct err *err)
{
	bool failed_before = c->failed;
	int r = 0;

	if (c->strict && (r = strict_errors_fail(strict, err)) < 0)
		return r;
	warn_strict(strict);
	if (c->validate && !type)
		return err_set(err, ERR_BAD_REQUEST, "no schema for kind \"" STR_FMT "\": cannot validate", STR_ARG(val_str(v, kind)));
	if (c->out == FORM_PROTOBUF && !type)
		return err_set(err, ERR_BAD_REQUEST, "no schema for kind \"" STR_FMT "\": it has no protobuf form", STR_ARG(val_str(v, kind)));
	c->failed = false;
	if (c->validate)
		r = validate(c, a, type, &v, err);
	if (r == 0 && !c->failed)
		r = write_object(c, v, type, err);
	c->failed |= failed_before;
	return r;
}

/* ---- the three input forms ---- */

static int convert_protobuf(struct convert *c, str input, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct strict_errors strict = { .arena = &a };
	const struct type *type;
	struct val v;

	int r;
	if (!c->type)
		r = proto_decode_object(&a, input, &v, &type, err);
	else if (proto_is_envelope(input))
		r = proto_decode_object_as(&a, input, type = c->type, &v, err);
	else
		r = proto_decode(&a, input, type = c->type, &v, err);
	return r < 0 ? r : convert_object(c, &a, v, type, &strict, err);
}

/* Puts "line N, column M" before the message of a syntax error; other errors name the field. */
static int at_position(str text, int r, struct err *err)
{
	ptrdiff_t offset = json_error_offset(text);
	unsigned line = 1, column = 1;

	if (offset < 0)
		return r;
	for (ptrdiff_t i = 0; i < offset; i++)
		if (text.p[i] == '\n')
			line++, column = 1;
		else
			column++;
	return err_wrap(err, r, "line %u, column %u", line, column);
}

static int convert_json(struct convert *c, str text, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct strict_errors *strict = ARENA_NEW(&a, struct strict_errors);
	const struct type *type;
	struct val v;

	strict->arena = &a;
	int r;
	if (c->type)
		r = json_decode(&a, text, &(struct json_decode_options){ .type = type = c->type, .strict = strict }, &v, err);
	else
		r = json_decode_object(&a, text, strict, &v, &type, err);
	return r < 0 ? at_position(text, r, err) : convert_object(c, &a, v, type, strict, err);
}

static int convert_yaml(struct convert *c, str input, struct err *err)
{
	CLEANUP(yaml_closep) struct yaml_stream *stream = yaml_open(input);
	CLEANUP(buf_done) struct buf json = BUF_INIT(OUTPUT_MAX);
	int r;

	while ((r = yaml_next(stream, &json, err)) > 0) {
		if ((r = convert_json(c, buf_str(&json), err)) < 0)
			break;
		buf_reset(&json);
	}
	return r < 0 ? err_wrap(err, r, "document at line %u", yaml_line(stream)) : r;
}

static int convert(struct convert *c, struct err *err)
{
	CLEANUP(buf_done) struct buf file = BUF_INIT(INPUT_MAX);
	int r = read_input(c, &file, err);
	if (r < 0)
		return r;
	str input = without_etcdctl_frame(buf_str(&file));
	enum form_name in = c->in ? c->in : detect(input);
	if (!c->out)
		c->out = in == FORM_PROTOBUF ? FORM_YAML : FORM_JSON;
	if (in == FORM_PROTOBUF)
		r = convert_protobuf(c, input, err);
	else if (in == FORM_JSON)
		r = convert_json(c, input, err);
	else
		r = convert_yaml(c, input, err);
	if (r < 0)
		return r;
	if (c->n_written == 0 && !c->failed)
		return err_set(err, ERR_BAD_REQUEST, "the input holds no object");
	if ((r = buf_check(&c->output, "the output", err)) < 0)
		return r;
	if ((c->output.n && fwrite(c->output.p, 1, c->output.n, stdout) != c->output.n) || fflush(stdout) != 0)
		return err_sys(err, errno, "standard output");
	return 0;
}

/* ---- command line ---- */

static bool parse_form(const char *text, enum form_name *ret)
{
	static const struct { const char *name; enum form_name form; } names[] = {
		{ "json", FORM_JSON }, { "yaml", FORM_YAML }, { "protobuf", FORM_PROTOBUF }, { "proto", FORM_PROTOBUF },
	};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq(str_of(text), str_of(names[i].name))) {
			*ret = names[i].form;
			return true;
		}
	return false;
}

enum { OPT_FILE, OPT_INPUT, OPT_OUTPUT, OPT_TYPE, OPT_VALIDATE, OPT_STRICT };

static const struct option_spec specs[] = {
	[OPT_FILE] = { 'f', "filename", OPTION_VALUE },
	[OPT_INPUT] = { 'i', "input", OPTION_VALUE },
	[OPT_OUTPUT] = { 'o', "output", OPTION_VALUE },
	[OPT_TYPE] = { 't', "type", OPTION_VALUE },
	[OPT_VALIDATE] = { 0, "validate", OPTION_ALONE },
	[OPT_STRICT] = { 0, "strict", OPTION_ALONE },
	{ 0 },
};

static int run(int argc, char **argv)
{
	struct convert c = { .output = BUF_INIT(OUTPUT_MAX) };
	struct options o = { &cmd_convert, argc, argv, 0, NULL };
	struct err err = ERR_INIT;
	int found;

	while ((found = options_next(&o, specs)) != OPTION_END) {
		switch (found) {
		case OPT_FILE: c.file = o.value; break;
		case OPT_VALIDATE: c.validate = true; break;
		case OPT_STRICT: c.strict = true; break;
		case OPT_INPUT:
		case OPT_OUTPUT:
			if (!parse_form(o.value, found == OPT_INPUT ? &c.in : &c.out))
				return cmd_usage(&cmd_convert, "'%s' is not a form; give json, yaml or protobuf", o.value);
			break;
		case OPT_TYPE:
			if (!(c.type = schema_type(str_of(o.value))))
				return cmd_usage(&cmd_convert, "there is no type '%s'; give one as core/v1.Pod", o.value);
			break;
		case OPTION_ARGUMENT: return cmd_usage(&cmd_convert, "unexpected argument '%s'; a file is given with -f", o.value);
		default: return 2;
		}
	}
	int r = convert(&c, &err);
	buf_done(&c.output);
	if (r < 0)
		return cmd_fail(&cmd_convert, &err);
	return c.failed ? 1 : 0;
}

const struct command cmd_convert = {
	.name = "convert",
	.summary = "turn objects from JSON, YAML or protobuf into another of these",
	.manual =
		"Usage: c8s convert [-f FILE] [-i json|yaml|protobuf] [-o json|yaml|protobuf] [-t TYPE] [--validate] [--strict]\n"
		"\n"
		"Reads Kubernetes objects of any kind from FILE or standard input and writes them in another form.\n"
		"Also reads values as they lie in etcd, with or without the key line and newline that etcdctl prints.\n"
		"\n"
		"  -f, --filename FILE   read FILE; - is standard input, the default\n"
		"  -i, --input FORM      form of the input; found out from its first bytes when not given\n"
		"  -o, --output FORM     form of the output; json for YAML and JSON input, yaml for protobuf\n"
		"  -t, --type TYPE       what the input is, as core/v1.Pod or mvccpb.KeyValue; for input that does not tell its\n"
		"                        kind, such as parts of objects and the messages of etcd and CRI\n"
		"      --validate        set defaults and check as the API server does on create; errors go to standard\n"
		"                        error and an invalid object is not written\n"
		"      --strict          unknown and duplicate fields are errors instead of warnings\n"
		"\n"
		"YAML may hold several documents; protobuf holds one object. Kinds without a schema pass through as JSON or YAML.\n"
		"\n"
		"Exit code: 0 success, 1 the input is malformed or an object invalid, 2 wrong usage.\n"
		"\n"
		"Examples:\n"
		"  c8s convert -f pod.yaml -o protobuf > pod.pb\n"
		"  etcdctl get --print-value-only /registry/pods/default/nginx | c8s convert -o yaml\n"
		"  c8s convert --validate < deployment.yaml > /dev/null\n",
	.run = run,
};
