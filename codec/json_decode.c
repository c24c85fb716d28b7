/*
 * From JSON text to tree in one pass: the lexer of json_scan.h feeds an assembly. Syntax errors win over all others,
 * as Go checks the whole text first: after any trouble, the text is looked at again for them.
 */
#include "codec/assemble.h"
#include "codec/json_scan.h"

struct decoder {
	struct assembly as;
	const char *end;
};

/* ---- one value ---- */

static const char *decode_string(struct decoder *d, const char *p)
{
	struct assembly *as = &d->as;
	unsigned flags;
	const char *close = json_string_end(p + 1, d->end, &flags);

	if (UNLIKELY(!close))
		return NULL;
	str raw = str_span(p + 1, (size_t)(close - p - 1));
	str text = json_string_text(as->arena, raw, flags);
	if (LIKELY(as->target.shape == SHAPE_ONE && (as->target.kind == KIND_STRING || as->target.kind == KIND_JSON))) {
		assembly_deliver(as, val_of_str(text));
	} else {
		struct scalar s = { .token = TOKEN_STRING, .text = text, .raw = raw };
		assembly_scalar(as, &s);
	}
	return close + 1;
}

static const char *decode_number(struct decoder *d, const char *p)
{
	struct scalar s = { .token = TOKEN_NUMBER };
	bool integer;
	const char *after = json_number_end(p, d->end, &integer);

	if (UNLIKELY(!after))
		return NULL;
	s.text = str_span(p, (size_t)(after - p));
	s.integer = integer && json_to_int64(s.text, &s.i);
	assembly_scalar(&d->as, &s);
	return after;
}

static const char *decode_literal(struct decoder *d, const char *p)
{
	size_t left = (size_t)(d->end - p);
	struct scalar s = { .token = TOKEN_BOOL };

	if (left >= 4 && memcmp(p, "true", 4) == 0)
		s.b = true;
	else if (left >= 4 && memcmp(p, "null", 4) == 0)
		s.token = TOKEN_NULL;
	else if (left < 5 || memcmp(p, "false", 5) != 0)
		return NULL;
	assembly_scalar(&d->as, &s);
	return p + (s.token == TOKEN_BOOL && !s.b ? 5 : 4);
}

/* A value that is kept as text. */
static const char *decode_raw(struct decoder *d, const char *p)
{
	bool spaced;
	const char *after = json_value_end(p, d->end, d->as.n_frames, &spaced);

	if (UNLIKELY(!after))
		return NULL;
	str text = str_span(p, (size_t)(after - p));
	assembly_raw(&d->as, spaced ? json_compact(d->as.arena, text) : text);
	return after;
}

static const char *decode_key(struct decoder *d, const char *p, bool *ret_known)
{
	unsigned flags;

	p = json_skip_space(p, d->end);
	if (UNLIKELY(p == d->end || *p != '"'))
		return NULL;
	const char *close = json_string_end(p + 1, d->end, &flags);
	if (UNLIKELY(!close))
		return NULL;
	str text = json_string_text(d->as.arena, str_span(p + 1, (size_t)(close - p - 1)), flags);
	*ret_known = assembly_key(&d->as, text, 0);
	p = json_skip_space(close + 1, d->end);
	return LIKELY(p < d->end && *p == ':') ? p + 1 : NULL;
}

static bool is_object(const struct frame *f)
{
	return f->kind == FRAME_STRUCT || f->kind == FRAME_MAP || f->kind == FRAME_FREE_OBJECT;
}

/* '{' or '[': *ret_more tells that a value follows, else the list or object was closed or passed over. */
static const char *decode_open(struct decoder *d, const char *p, bool *ret_more)
{
	struct assembly *as = &d->as;
	bool object = *p == '{', known = true;

	*ret_more = false;
	if (UNLIKELY(as->n_frames == VAL_MAX_DEPTH))
		return NULL;
	if (UNLIKELY(!assembly_open(as, object)))
		return json_value_end(p, d->end, as->n_frames, NULL);
	p = json_skip_space(p + 1, d->end);
	if (p < d->end && *p == (object ? '}' : ']')) {
		assembly_close(as);
		return p + 1;
	}
	*ret_more = true;
	if (!object)
		return p;
	p = decode_key(d, p, &known);
	if (UNLIKELY(p && !known)) {
		*ret_more = false;
		return json_value_end(p, d->end, as->n_frames, NULL);
	}
	return p;
}

/* Behind a value: closes what ends here, up to the next value (*ret_more) or the end of the root. */
static const char *decode_after(struct decoder *d, const char *p, bool *ret_more)
{
	struct assembly *as = &d->as;
	bool known;

	*ret_more = false;
	while (as->top) {
		bool object = is_object(as->top);
		p = json_skip_space(p, d->end);
		if (UNLIKELY(p == d->end))
			return NULL;
		if (*p == ',') {
			*ret_more = true;
			if (!object)
				return p + 1;
			p = decode_key(d, p + 1, &known);
			if (LIKELY(!p || known))
				return p;
			*ret_more = false;
			p = json_value_end(p, d->end, as->n_frames, NULL);
			if (UNLIKELY(!p))
				return NULL;
		} else if (LIKELY(*p == (object ? '}' : ']'))) {
			assembly_close(as);
			if (UNLIKELY(as->failed))
				return NULL;
			p++;
		} else {
			return NULL;
		}
	}
	return p;
}

static const char *decode_value(struct decoder *d, const char *p, bool *ret_more)
{
	p = json_skip_space(p, d->end);
	if (UNLIKELY(p == d->end))
		return NULL;
	*ret_more = false;
	if (UNLIKELY(d->as.target.kind == KIND_FIELDS && d->as.target.shape == SHAPE_ONE && *p != 'n'))
		return decode_raw(d, p);
	if (*p == '"')
		return decode_string(d, p);
	if (*p == '{' || *p == '[')
		return decode_open(d, p, ret_more);
	if (*p == '-' || (*p >= '0' && *p <= '9'))
		return decode_number(d, p);
	return decode_literal(d, p);
}

/* False when the text is not JSON or the assembly failed. */
static bool decode_text(struct decoder *d, const char *p)
{
	for (bool more = true; more;) {
		p = decode_value(d, p, &more);
		if (LIKELY(p && !more))
			p = decode_after(d, p, &more);
		if (UNLIKELY(!p || d->as.failed))
			return false;
	}
	return json_skip_space(p, d->end) == d->end;
}

int json_decode_kind(struct arena *a, str text, const struct json_decode_options *opt, struct val *ret,
		     bool *ret_recheck, struct err *err)
{
	struct decoder d;
	int r = 0;

	if (text.n >= UINT32_MAX)
		return err_set(err, ERR_TOO_LARGE, "JSON of %zu bytes is too large", text.n);
	text = text.n ? text : STR("");
	d.end = text.p + text.n;
	assembly_init(&d.as, a, opt->type, opt->strict);
	d.as.sort_free = opt->sort_keys;
	bool ok = decode_text(&d, text.p);
	*ret_recheck = d.as.recheck_kind;
	if (!ok) {
		r = json_syntax_error(text, NULL, err);
		*ret_recheck |= r < 0; /* the search words syntax errors otherwise */
	}
	if (r == 0)
		r = assembly_finish(&d.as, ret, err);
	assembly_done(&d.as);
	return r;
}

int json_decode(struct arena *a, str text, const struct json_decode_options *opt, struct val *ret, struct err *err)
{
	bool recheck;
	return json_decode_kind(a, text, opt, ret, &recheck, err);
}

ptrdiff_t json_error_offset(str text)
{
	size_t offset;
	return json_syntax_error(text, &offset, NULL) < 0 ? (ptrdiff_t)offset : -1;
}
