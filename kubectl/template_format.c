/* Go's fmt for the values of templates: what Sprint, Sprintln and Sprintf make of them. */
#include <stdio.h>

#include "codec/go.h"
#include "kubectl/template_priv.h"

enum { WIDTH_MAX = 1000000 };         /* of Go */

struct verb {
	struct buf *b;
	bool sharp, zero, plus, minus, space, go_syntax; /* go_syntax: %#v */
	int width, precision;         /* -1: none */
	str text;                     /* of the verb, where it is not a byte */
};

static void add_value(struct verb *f, struct template_value v, char verb, int depth);

/* ---- padding ---- */

static size_t count_runes(str s)
{
	size_t n = 0;
	for (size_t i = 0; i < s.n; n++)
		i += MAX(str_rune(str_skip(s, i), NULL), (size_t)1);
	return n;
}

static void repeat(struct buf *b, char c, int n)
{
	char *p = n > 0 ? buf_reserve(b, (size_t)n) : NULL;
	if (!p)
		return;
	memset(p, c, (size_t)n);
	buf_commit(b, (size_t)n);
}

static void pad(struct verb *f, str s)
{
	int missing = f->width < 0 ? 0 : f->width - (int)count_runes(s);
	if (!f->minus)
		repeat(f->b, f->zero ? '0' : ' ', missing);
	buf_add(f->b, s);
	if (f->minus)
		repeat(f->b, ' ', missing);
}

static void bad_verb(struct verb *f, struct template_value v, char verb)
{
	buf_addf(f->b, "%%!" STR_FMT "(", STR_ARG(f->text.n ? f->text : str_span(&verb, 1)));
	if (val_exists(v.v)) {
		buf_addf(f->b, "%s=", template_type_name(v));
		add_value(f, v, 'v', 0);
	} else {
		buf_add(f->b, STR("<nil>"));
	}
	buf_addc(f->b, ')');
}

/* ---- kinds ---- */

static void add_integer(struct verb *f, int64_t i, unsigned base, char verb)
{
	static const char lower[] = "0123456789abcdef", upper[] = "0123456789ABCDEF";
	CLEANUP(buf_done) struct buf out = BUF_INIT(WIDTH_MAX + 100);
	char digits[64];
	uint64_t u = i < 0 ? -(uint64_t)i : (uint64_t)i;
	int n = 0, least = MAX(f->precision, 1);
	bool zero = f->zero;
	if (f->precision < 0 && f->zero && f->width >= 0)
		least = f->width - (i < 0 || f->plus || f->space);
	do
		digits[n++] = (verb == 'X' ? upper : lower)[u % base];
	while ((u /= base));
	f->zero = false;
	if (i < 0 || f->plus || f->space)
		buf_addc(&out, i < 0 ? '-' : f->plus ? '+' : ' ');
	if (f->sharp && base != 10)
		buf_add(&out, base == 2 ? STR("0b") : base == 16 ? verb == 'X' ? STR("0X") : STR("0x") : digits[n - 1] != '0' ? STR("0") : STR_NONE);
	if (verb == 'O')
		buf_add(&out, STR("0o"));
	repeat(&out, '0', least - n);
	while (n && !(f->precision == 0 && i == 0))
		buf_addc(&out, digits[--n]);
	pad(f, buf_str(&out));
	f->zero = zero;
}

static bool add_character(struct verb *f, int64_t i, char verb)
{
	uint32_t rune = i < 0 || i > 0x10ffff || (i >= 0xd800 && i < 0xe000) ? GO_REPLACEMENT : (uint32_t)i;
	char text[GO_QUOTE_RUNE_MAX], quoted[48];
	bool zero = f->zero;
	if (verb == 'c') {
		pad(f, str_span(text, go_put_rune(text, rune)));
		return true;
	}
	go_quote_rune(rune, text);
	if (verb == 'q') {
		pad(f, str_of(text));
		return true;
	}
	if (verb != 'U')
		return false;
	f->zero = false;
	(void)snprintf(quoted, sizeof(quoted), "U+%04llX%s%s", (unsigned long long)i, f->sharp ? " " : "", f->sharp ? text : "");
	pad(f, str_of(quoted));
	f->zero = zero;
	return true;
}

static bool add_int(struct verb *f, struct template_value v, char verb)
{
	static const struct { char verb; unsigned char base; } bases[] = {
		{ 'v', 10 }, { 'd', 10 }, { 'b', 2 }, { 'o', 8 }, { 'O', 8 }, { 'x', 16 }, { 'X', 16 },
	};
	for (size_t i = 0; i < ARRAY_LEN(bases); i++)
		if (bases[i].verb == verb) {
			bool sharp = f->sharp;
			f->sharp |= f->go_syntax && v.how == VALUE_BYTE;
			add_integer(f, v.v.i, f->go_syntax && v.how == VALUE_BYTE ? 16 : bases[i].base, verb);
			f->sharp = sharp;
			return true;
		}
	return add_character(f, v.v.i, verb);
}

static bool add_float(struct verb *f, double d, char verb)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(WIDTH_MAX + 500);
	char shortest[GO_FLOAT_MAX], sign = d < 0 || (d == 0 && 1 / d < 0) ? '-' : f->plus ? '+' : f->space ? ' ' : 0;
	int precision = f->precision < 0 ? 6 : f->precision;
	if (!strchr("vgGfFeE", verb))
		return false;
	d = sign == '-' ? -d : d;
	if (f->precision < 0 && strchr("vgG", verb))
		buf_add(&b, go_format_float(d, false, GO_FLOAT_G, shortest));
	else if ((verb | 0x20) == 'f')
		buf_addf(&b, "%.*f", precision, d);
	else if ((verb | 0x20) == 'e')
		buf_addf(&b, "%.*e", precision, d);
	else
		buf_addf(&b, "%.*g", precision, d);
	for (size_t i = 0; i < b.n && (verb == 'E' || verb == 'G'); i++)
		b.p[i] = b.p[i] == 'e' ? 'E' : b.p[i];
	if (sign && f->zero) {
		buf_addc(f->b, sign);
		f->width -= f->width > 0;
		pad(f, buf_str(&b));
		f->width += f->width >= 0;
		return true;
	}
	CLEANUP(buf_done) struct buf signed_text = BUF_INIT(WIDTH_MAX + 500);
	if (sign)
		buf_addc(&signed_text, sign);
	buf_add(&signed_text, buf_str(&b));
	pad(f, buf_str(&signed_text));
	return true;
}

static str truncated(const struct verb *f, str s)
{
	size_t at = 0;
	for (int n = 0; f->precision >= 0 && n < f->precision && at < s.n; n++)
		at += MAX(str_rune(str_skip(s, at), NULL), (size_t)1);
	return f->precision < 0 ? s : str_head(s, at);
}

static void add_hex(struct verb *f, str s, char verb)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 26);
	const char *prefix = !f->sharp ? "" : verb == 'x' ? "0x" : "0X";
	if (f->precision >= 0)
		s = str_head(s, (size_t)f->precision);
	for (size_t i = 0; i < s.n; i++) {
		buf_addf(&b, "%s%s", i && f->space ? " " : "", i == 0 || f->space ? prefix : "");
		buf_addf(&b, verb == 'x' ? "%02x" : "%02X", (unsigned char)s.p[i]);
	}
	pad(f, buf_str(&b));
}

static bool can_backquote(str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] == '`' || (s.p[i] < ' ' && s.p[i] >= 0 && s.p[i] != '\t') || s.p[i] == 0x7f)
			return false;
	return str_is_utf8(s);
}

static bool add_string(struct verb *f, str s, char verb)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 26);
	if (verb == 'x' || verb == 'X') {
		add_hex(f, s, verb);
		return true;
	}
	s = truncated(f, s);
	if (verb == 's' || (verb == 'v' && !f->go_syntax)) {
		pad(f, s);
		return true;
	}
	if (verb != 'q' && verb != 'v')
		return false;
	if (f->sharp && can_backquote(s))
		buf_addf(&b, "`" STR_FMT "`", STR_ARG(s));
	else
		buf_add_quoted(&b, s);
	pad(f, buf_str(&b));
	return true;
}

/* ---- trees ---- */

static void add_item(struct verb *f, struct val v, char verb, int depth)
{
	struct template_value item = template_inside(template_of_data(v));
	if (val_exists(item.v))
		add_value(f, item, verb, depth);
	else
		buf_add(f->b, f->go_syntax ? STR("interface {}(nil)") : STR("<nil>"));
}

static void add_object(struct verb *f, struct val v, char verb, int depth)
{
	struct arena scratch = ARENA_INIT;
	bool first = true;
	buf_addf(f->b, f->go_syntax ? "map[string]interface {}{" : "map[");
	VAL_EACH_MEMBER(m, val_sorted(&scratch, v)) {
		if (!first)
			buf_add(f->b, f->go_syntax ? STR(", ") : STR(" "));
		first = false;
		add_value(f, template_plain(val_of_str(atom_str(m->key))), verb, depth);
		buf_addc(f->b, ':');
		add_item(f, m->val, verb, depth);
	}
	buf_addc(f->b, f->go_syntax ? '}' : ']');
	arena_done(&scratch);
}

static void add_list(struct verb *f, struct val v, char verb, int depth)
{
	buf_addf(f->b, f->go_syntax ? "[]interface {}{" : "[");
	for (uint32_t i = 0; i < v.n; i++) {
		if (i)
			buf_add(f->b, f->go_syntax ? STR(", ") : STR(" "));
		add_item(f, v.items[i], verb, depth);
	}
	buf_addc(f->b, f->go_syntax ? '}' : ']');
}

static void add_value(struct verb *f, struct template_value v, char verb, int depth)
{
	bool done = true;
	if (verb == 'T') {
		pad(f, truncated(f, str_of(template_type_name(v))));
		return;
	}
	switch (v.v.type) {
	case VAL_BOOL:
		if ((done = verb == 't' || verb == 'v'))
			pad(f, v.v.b ? STR("true") : STR("false"));
		break;
	case VAL_INT: done = add_int(f, v, verb); break;
	case VAL_DOUBLE: done = add_float(f, v.v.d, verb); break;
	case VAL_STRING:
	case VAL_RAW: done = add_string(f, val_as_str(v.v), verb); break;
	case VAL_LIST:
	case VAL_OBJECT:
		if (depth > VAL_RECURSION_MAX)
			buf_add(f->b, STR("..."));
		else if (v.v.type == VAL_LIST)
			add_list(f, v.v, verb, depth + 1);
		else
			add_object(f, v.v, verb, depth + 1);
		break;
	default:
		if ((done = verb == 'v'))
			pad(f, STR("<nil>"));
	}
	if (!done)
		bad_verb(f, v, verb);
}

void template_add_value(struct buf *b, struct template_value v, char verb)
{
	add_value(&(struct verb){ .b = b, .width = -1, .precision = -1 }, v, verb, 0);
}

void template_add_plain(struct buf *b, struct val data) { template_add_value(b, template_inside(template_of_data(data)), 'v'); }

void template_sprint(struct buf *b, const struct template_value *args, size_t n, bool line)
{
	for (size_t i = 0; i < n; i++) {
		if (i && (line || (!val_is(args[i].v, VAL_STRING) && !val_is(args[i - 1].v, VAL_STRING))))
			buf_addc(b, ' ');
		template_add_value(b, args[i], 'v');
	}
	if (line)
		buf_addc(b, '\n');
}

/* ---- formats ---- */

struct format {
	str in;
	size_t at;
	const struct template_value *args;
	size_t n, arg;
	bool reordered, good_index;
};

static int peek(const struct format *p) { return p->at < p->in.n ? (unsigned char)p->in.p[p->at] : -1; }

static bool take_number(struct format *p, int *ret)
{
	int64_t n = 0;
	bool any = false;
	for (; peek(p) >= '0' && peek(p) <= '9'; p->at++, any = true) {
		n = n * 10 + (peek(p) - '0');
		if (n > WIDTH_MAX) {
			p->at = p->in.n; /* as Go: nothing comes of it */
			return false;
		}
	}
	*ret = (int)n;
	return any;
}

/* "[2]": which argument is next. */
static void take_index(struct format *p)
{
	if (peek(p) != '[')
		return;
	ptrdiff_t close = str_chr(str_skip(p->in, p->at), ']');
	int n = 0;
	size_t end = close < 0 ? p->at + 1 : p->at + (size_t)close + 1;
	p->at++;
	p->reordered = true;
	bool number = close >= 0 && take_number(p, &n) && p->at + 1 == end;
	p->at = end;
	if (number && n >= 1 && (size_t)n <= p->n)
		p->arg = (size_t)n - 1;
	else
		p->good_index = false;
}

/* A number or "*". false: it was "*", and the argument is no number. */
static bool take_width(struct format *p, int *ret)
{
	if (peek(p) != '*') {
		(void)take_number(p, ret);
		return true;
	}
	p->at++;
	if (p->arg >= p->n)
		return false;
	struct template_value v = p->args[p->arg++];
	if (!val_is(v.v, VAL_INT) || v.v.i > WIDTH_MAX || v.v.i < -WIDTH_MAX)
		return false;
	*ret = (int)v.v.i;
	return true;
}

static void take_flags(struct format *p, struct verb *f)
{
	for (;; p->at++) {
		switch (peek(p)) {
		case '#': f->sharp = true; break;
		case '0': f->zero = true; break;
		case '+': f->plus = true; break;
		case '-': f->minus = true; break;
		case ' ': f->space = true; break;
		default: return;
		}
	}
}

static void take_precision(struct format *p, struct verb *f)
{
	int precision = 0;
	if (peek(p) != '.')
		return;
	p->at++;
	take_index(p);
	if (!take_width(p, &precision))
		buf_add(f->b, STR("%!(BADPREC)"));
	else
		f->precision = precision;
	if (f->precision < 0)
		f->precision = -1;
}

static void one_verb(struct format *p, struct buf *b)
{
	struct verb f = { .b = b, .width = -1, .precision = -1 };
	int width = -1;
	p->good_index = true;
	take_flags(p, &f);
	take_index(p);
	if (!take_width(p, &width))
		buf_add(b, STR("%!(BADWIDTH)"));
	f.minus |= width < -1;
	f.width = width < -1 ? -width : width;
	take_precision(p, &f);
	take_index(p);
	f.zero &= !f.minus;
	if (p->at >= p->in.n) {
		buf_add(b, STR("%!(NOVERB)"));
		return;
	}
	size_t n = MAX(str_rune(str_skip(p->in, p->at), NULL), (size_t)1);
	str text = str_span(p->in.p + p->at, n);
	char verb = n == 1 ? text.p[0] : '\1';
	p->at += n;
	if (verb == '%') {
		buf_addc(b, '%');
	} else if (!p->good_index || p->arg >= p->n) {
		buf_addf(b, "%%!" STR_FMT "%s", STR_ARG(text), p->good_index ? "(MISSING)" : "(BADINDEX)");
	} else {
		f.go_syntax = verb == 'v' && f.sharp;
		f.sharp &= !f.go_syntax;
		f.plus &= verb != 'v';
		f.text = n > 1 ? text : STR_NONE;
		add_value(&f, p->args[p->arg++], verb, 0);
	}
}

void template_sprintf(struct buf *b, str format, const struct template_value *args, size_t n)
{
	struct format p = { .in = format, .args = args, .n = n };
	while (p.at < format.n) {
		ptrdiff_t percent = str_chr(str_skip(format, p.at), '%');
		size_t end = percent < 0 ? format.n : p.at + (size_t)percent;
		buf_add(b, str_span(format.p + p.at, end - p.at));
		p.at = end + (percent >= 0);
		if (percent >= 0)
			one_verb(&p, b);
	}
	if (p.reordered || p.arg >= n)
		return;
	buf_add(b, STR("%!(EXTRA "));
	for (size_t i = p.arg; i < n; i++) {
		if (i > p.arg)
			buf_add(b, STR(", "));
		if (val_exists(args[i].v))
			buf_addf(b, "%s=", template_type_name(args[i]));
		template_add_value(b, args[i], 'v');
	}
	buf_addc(b, ')');
}
