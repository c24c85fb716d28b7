#include "base/mem.h"
#include "codec/yaml.h"

#include <stdlib.h>

struct yaml_stream {
	str rest;          /* from the next line on */
	unsigned next_line, line;
};

struct yaml_stream *yaml_open(str text)
{
	struct yaml_stream *s = mem_zalloc(sizeof(*s));

	s->rest = text;
	s->next_line = s->line = 1;
	return s;
}

void yaml_close(struct yaml_stream *s) { free(s); }
void yaml_closep(struct yaml_stream **s) { yaml_close(*s); }
unsigned yaml_line(const struct yaml_stream *s) { return s->line; }

/* Only a comment may follow the dashes, as in kubectl. */
static int check_separator(str line, struct err *err)
{
	str after = str_trim(str_skip(line, 3));

	if (!after.n || after.p[0] == '#')
		return 0;
	return err_set(err, ERR_BAD_REQUEST, "invalid Yaml document separator: " STR_FMT, STR_ARG(after));
}

/* The text up to the next separator; a separator at its beginning belongs to it. 0 at the end of the stream. */
static int next_text(struct yaml_stream *s, str *ret, struct err *err)
{
	str from = s->rest;

	s->line = s->next_line;
	while (s->rest.n) {
		str here = s->rest, line, rest;
		str_cut(here, '\n', &line, &rest);
		bool separator = str_starts(line, STR("---"));
		if (separator && check_separator(line, err) < 0)
			return -ERR_BAD_REQUEST;
		s->rest = rest;
		s->next_line++;
		if (separator && here.p != from.p) {
			*ret = str_span(from.p, (size_t)(here.p - from.p));
			return 1;
		}
	}
	*ret = from;
	return from.n > 0;
}

int yaml_next(struct yaml_stream *s, struct buf *json, struct err *err)
{
	size_t before = json->n;
	str text;
	int r;

	while ((r = next_text(s, &text, err)) > 0) {
		r = yaml_to_json(text, json, NULL, err);
		if (r < 0)
			return r;
		if (!str_eq(str_skip(buf_str(json), before), STR("null")))
			return 1;
		json->p[json->n = before] = '\0';
	}
	return r;
}
