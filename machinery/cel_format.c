/* format(): %s %d %f %e %b %x %X %o and %%, with a precision for %f and %e. Aggregates appear as CEL writes them. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/buf.h"
#include "machinery/cel_format.h"
#include "machinery/cel_priv.h"

enum { TEXT_MAX = 2 * 1024 * 1024, PRECISION_MAX = 1000, DEFAULT_PRECISION = 6 };

struct out {
	struct cel_eval *ev;
	struct buf b;
	struct cel_val error;   /* CEL_ERROR once something went wrong */
};

static bool failed(const struct out *o) { return o->error.kind == CEL_ERROR || o->b.overflow; }

static void add_literal(struct out *o, struct cel_val v, unsigned depth);

/* Mantissa, times, ten, raised exponent: English as Go's text package writes it, whatever the precision. */
static void add_scientific(struct out *o, double d)
{
	static const char *const raised[] = { "\u2070", "\u00b9", "\u00b2", "\u00b3", "\u2074", "\u2075", "\u2076", "\u2077", "\u2078", "\u2079" };
	char text[32];

	snprintf(text, sizeof(text), "%.*e", DEFAULT_PRECISION, d);
	char *e = strchr(text, 'e');
	*e++ = '\0';
	buf_add(&o->b, str_of(text));
	buf_add(&o->b, STR("\u00d710"));
	buf_add(&o->b, *e == '-' ? STR("\u207b") : STR(""));
	for (e++; *e; e++)
		buf_add(&o->b, str_of(raised[*e - '0']));
}

static void add_double(struct out *o, double d, int precision, char verb)
{
	if (d != d)
		buf_add(&o->b, STR("NaN"));
	else if (__builtin_isinf(d))
		buf_add(&o->b, d > 0 ? STR("Infinity") : STR("-Infinity"));
	else if (verb == 'e')
		add_scientific(o, d);
	else
		buf_addf(&o->b, "%.*f", precision, d);
}

static void no_clause(struct out *o, struct cel_val v)
{
	o->error = cel_fail(o->ev, "no formatting function for " STR_FMT, STR_ARG(cel_type_name(v)));
}

static void add_list(struct out *o, struct cel_val v, unsigned depth)
{
	buf_addc(&o->b, '[');
	for (size_t i = 0; i < cel_len(v) && !failed(o) && cel_work(o->ev, 1); i++) {
		buf_add(&o->b, i ? STR(", ") : STR(""));
		add_literal(o, cel_at(o->ev->arena, v, i), depth);
	}
	buf_addc(&o->b, ']');
}

struct shown {
	str key;
	struct cel_val val;
};

static int by_key(const void *a, const void *b) { return str_cmp(((const struct shown *)a)->key, ((const struct shown *)b)->key); }

static void add_map(struct out *o, struct cel_val v, unsigned depth)
{
	size_t n = cel_len(v);

	if (!cel_work(o->ev, n))
		return;
	struct shown *list = ARENA_ARRAY(o->ev->arena, struct shown, n + 1);
	for (size_t i = 0; i < n; i++) {
		struct cel_val key;
		CLEANUP(buf_done) struct buf quoted = BUF_INIT(TEXT_MAX);
		cel_member_at(o->ev->arena, v, i, &key, &list[i].val);
		list[i].key = cel_show(o->ev->arena, key);
		if (key.kind != CEL_STRING)
			continue;
		buf_add_quoted(&quoted, list[i].key);
		list[i].key = arena_str(o->ev->arena, buf_str(&quoted));
	}
	qsort(list, n, sizeof(*list), by_key);
	buf_addc(&o->b, '{');
	for (size_t i = 0; i < n && !failed(o); i++) {
		buf_add(&o->b, i ? STR(", ") : STR(""));
		buf_add(&o->b, list[i].key);
		buf_addc(&o->b, ':');
		add_literal(o, list[i].val, depth);
	}
	buf_addc(&o->b, '}');
}

/* A value inside of an aggregate: as one would write it in CEL. */
static void add_literal(struct out *o, struct cel_val v, unsigned depth)
{
	if (depth >= VAL_RECURSION_MAX) {
		o->ev->exceeded = true;
		return;
	}
	switch (v.kind) {
	case CEL_STRING:
	case CEL_BYTES:
		buf_add(&o->b, v.kind == CEL_BYTES ? STR("b") : STR(""));
		buf_add_quoted(&o->b, cel_text(v));
		break;
	case CEL_DURATION:
	case CEL_TIMESTAMP:
		buf_add(&o->b, v.kind == CEL_DURATION ? STR("duration(") : STR("timestamp("));
		buf_add_quoted(&o->b, cel_show(o->ev->arena, v));
		buf_addc(&o->b, ')');
		break;
	case CEL_DOUBLE:
		if (__builtin_isfinite(v.d))
			buf_addf(&o->b, "%.*f", DEFAULT_PRECISION, v.d);
		else
			buf_add_quoted(&o->b, cel_show(o->ev->arena, v));
		break;
	case CEL_NULL:
		buf_add(&o->b, STR("null"));
		break;
	case CEL_BOOL:
	case CEL_INT:
	case CEL_UINT:
	case CEL_TYPE:
		buf_add(&o->b, cel_show(o->ev->arena, v));
		break;
	case CEL_LIST:
		add_list(o, v, depth + 1);
		break;
	case CEL_MAP:
		add_map(o, v, depth + 1);
		break;
	default:
		no_clause(o, v);
	}
}

static bool is_integer(uint8_t kind) { return kind == CEL_INT || kind == CEL_UINT; }

/* What is wrong with a value of this kind under a verb; NULL: nothing. */
static const char *complaint(char verb, uint8_t kind)
{
	switch (verb) {
	case 's':
		return kind <= CEL_TYPE ? NULL : "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, "
						 "durations, and timestamps";
	case 'd':
		return is_integer(kind) ? NULL : "decimal clause can only be used on integers";
	case 'f':
		return kind == CEL_DOUBLE ? NULL : "fixed-point clause can only be used on doubles";
	case 'e':
		return kind == CEL_DOUBLE ? NULL : "scientific clause can only be used on doubles";
	case 'b':
		return is_integer(kind) || kind == CEL_BOOL ? NULL : "only integers and bools can be formatted as binary";
	case 'x':
	case 'X':
		return is_integer(kind) || kind == CEL_STRING || kind == CEL_BYTES ? NULL :
			"only integers, byte buffers, and strings can be formatted as hex";
	default:
		return is_integer(kind) ? NULL : "octal clause can only be used on integers";
	}
}

static void add_string(struct out *o, struct cel_val v)
{
	switch (v.kind) {
	case CEL_LIST:
		add_list(o, v, 0);
		return;
	case CEL_MAP:
		add_map(o, v, 0);
		return;
	case CEL_NULL:
		buf_add(&o->b, STR("null"));
		return;
	default:
		buf_add(&o->b, cel_show(o->ev->arena, v));
	}
}

static void add_binary(struct out *o, struct cel_val v)
{
	if (v.kind == CEL_BOOL) {
		buf_addc(&o->b, v.b ? '1' : '0');
		return;
	}
	uint64_t u = v.kind == CEL_INT && v.i < 0 ? 0 - v.u : v.u;
	if (v.kind == CEL_INT && v.i < 0)
		buf_addc(&o->b, '-');
	int top = u ? 63 - __builtin_clzll(u) : 0;
	for (int i = top; i >= 0; i--)
		buf_addc(&o->b, u >> i & 1 ? '1' : '0');
}

static void add_radix(struct out *o, struct cel_val v, char verb)
{
	uint64_t u = v.kind == CEL_INT && v.i < 0 ? 0 - v.u : v.u;

	if (v.kind == CEL_STRING || v.kind == CEL_BYTES) {
		for (size_t i = 0; i < v.n; i++)
		buf_addf(&o->b, verb == 'X' ? "%02X" : "%02x", (unsigned char)v.s[i]);
		return;
	}
	if (v.kind == CEL_INT && v.i < 0)
		buf_addc(&o->b, '-');
	buf_addf(&o->b, verb == 'o' ? "%" PRIo64 : verb == 'X' ? "%" PRIX64 : "%" PRIx64, u);
}

/* Texts that stand for numbers which have no digits. */
static bool is_special(struct cel_val v)
{
	return v.kind == CEL_STRING && (str_eq(cel_text(v), STR("NaN")) || str_eq(cel_text(v), STR("Infinity")) ||
					str_eq(cel_text(v), STR("-Infinity")));
}

static void add_clause(struct out *o, char verb, int precision, struct cel_val v)
{
	bool number = verb == 'f' || verb == 'e';
	const char *why = number && is_special(v) ? NULL : complaint(verb, v.kind);

	if (why)
		o->error = cel_fail(o->ev, "error during formatting: %s, was given " STR_FMT, why, STR_ARG(cel_type_name(v)));
	else if (number && v.kind == CEL_STRING)
		buf_add(&o->b, cel_text(v));
	else if (number)
		add_double(o, v.d, precision < 0 ? DEFAULT_PRECISION : precision, verb);
	else if (verb == 's')
		add_string(o, v);
	else if (verb == 'd')
		buf_add(&o->b, cel_show(o->ev->arena, v));
	else if (verb == 'b')
		add_binary(o, v);
	else
		add_radix(o, v, verb);
}

/* One clause of a format, from the character behind the '%' on. */
struct clause {
	char verb;
	int precision;   /* -1: none */
};

/* Reads a clause and leaves *i on its last character; else what is wrong with it. */
static const char *parse_clause(struct arena *a, str s, size_t *i, struct clause *ret)
{
	static const char front[] = "could not parse formatting clause: ";

	ret->precision = -1;
	if (s.p[*i] == '.') {
		size_t begin = ++*i;
		int64_t n = 0;
		while (*i < s.n && s.p[*i] >= '0' && s.p[*i] <= '9')
			++*i;
		str digits = str_span(s.p + begin, *i - begin);
		if (*i >= s.n)
			return arena_printf(a, "%serror while parsing precision: could not find end of precision specifier", front).p;
		if (!str_to_i64(digits, &n) || n > PRECISION_MAX)
			return arena_printf(a, "%serror while parsing precision: error while converting precision to integer: strconv.Atoi: "
					       "parsing \"" STR_FMT "\": %s", front, STR_ARG(digits),
					    digits.n ? "value out of range" : "invalid syntax").p;
		ret->precision = (int)n;
	}
	ret->verb = s.p[*i];
	if (!strchr("sdfebxXo", ret->verb) || !ret->verb)
		return arena_printf(a, "%sunrecognized formatting clause \"%c\"", front, ret->verb).p;
	return NULL;
}

struct cel_val cel_string_format(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	struct out o = { .ev = ev, .b = BUF_INIT(TEXT_MAX), .error = cel_of_null() };
	str s = cel_text(v[0]);
	size_t arg = 0;

	(void)n;
	for (size_t i = 0; i < s.n && !failed(&o) && cel_work(ev, 1); i++) {
		struct clause c;
		const char *why;
		if (s.p[i] != '%') {
			buf_addc(&o.b, s.p[i]);
		} else if (++i >= s.n) {
			o.error = cel_fail(ev, "unexpected end of string");
		} else if (s.p[i] == '%') {
			buf_addc(&o.b, '%');
		} else if (arg >= cel_len(v[1])) {
			o.error = cel_fail(ev, "index %zu out of range", arg);
		} else if ((why = parse_clause(ev->arena, s, &i, &c))) {
			o.error = cel_fail(ev, "%s", why);
		} else {
			add_clause(&o, c.verb, c.precision, cel_at(ev->arena, v[1], arg++));
		}
	}
	cel_work(ev, o.b.n / 64);
	if (o.b.overflow && o.error.kind != CEL_ERROR)
		o.error = cel_fail(ev, "string is too long");
	struct cel_val result = failed(&o) ? o.error : cel_of_str(arena_str(ev->arena, buf_str(&o.b)));
	buf_done(&o.b);
	return result;
}

str cel_format_check(struct arena *a, str s, const struct cel_type *const *types, size_t n, size_t *ret_arg)
{
	size_t arg = 0;

	*ret_arg = n;
	for (size_t i = 0; i < s.n; i++) {
		struct clause c;
		const char *why;
		if (s.p[i] != '%')
			continue;
		if (++i >= s.n)
			return STR("unexpected end of string");
		if (s.p[i] == '%')
			continue;
		if (arg >= n)
			return arena_printf(a, "index %zu out of range", arg);
		if ((why = parse_clause(a, s, &i, &c)))
			return str_of(why);
		uint8_t kind = types[arg]->kind;
		bool open = kind >= CEL_DYN || ((c.verb == 'f' || c.verb == 'e') && kind == CEL_STRING);
		if (!open && (why = complaint(c.verb, kind))) {
			*ret_arg = arg;
			return arena_printf(a, "error during formatting: %s, was given " STR_FMT, why, STR_ARG(cel_type_runtime_name(types[arg])));
		}
		arg++;
	}
	return arg < n ? arena_printf(a, "too many arguments supplied to string.format (expected %zu, got %zu)", arg, n) : STR("");
}
