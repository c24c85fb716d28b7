/*
 * The syntax of RE2, with the error texts of Go's regexp/syntax. Groups do not capture: nothing here asks for submatches. Case is folded for
 * ASCII, Latin-1, Greek and Cyrillic.
 */
#include <stdlib.h>

#include "machinery/cel_re_priv.h"

enum { NEST_MAX = 200, REPEAT_MAX = 1000 };

enum { FOLD = 1, MULTI = 2, DOT_ALL = 4, SWAP = 8 };

struct parser {
	struct arena *arena;
	str whole;
	size_t at;
	unsigned flags, depth;
	struct err *err;
	bool failed, no_posix;   /* no_posix: no ":]" from here to the end */
	size_t n_ranges;         /* in all sets */
};

static struct re_node *parse_alt(struct parser *p);

/* ---- errors ---- */

static struct re_node *fail(struct parser *p, const char *code, str where)
{
	if (!p->failed)
		err_set(p->err, ERR_INVALID, "error parsing regexp: %s: `" STR_FMT "`", code, STR_ARG(where));
	p->failed = true;
	return NULL;
}

static str from(const struct parser *p, size_t begin) { return str_span(p->whole.p + begin, p->at - begin); }
static bool more(const struct parser *p) { return !p->failed && p->at < p->whole.n; }
static char peek(const struct parser *p) { return p->whole.p[p->at]; }
static bool looking_at(const struct parser *p, str s) { return more(p) && str_starts(str_skip(p->whole, p->at), s); }

static bool accept(struct parser *p, str s)
{
	bool yes = looking_at(p, s);

	p->at += yes ? s.n : 0;
	return yes;
}

static uint32_t next_rune(struct parser *p)
{
	uint32_t r = 0xfffd;
	size_t n = str_rune(str_skip(p->whole, p->at), &r);

	if (!n)
		fail(p, "invalid UTF-8", p->whole);
	p->at += n ? n : 1;
	return r;
}

/* ---- nodes ---- */

static struct re_node *node(struct parser *p, enum re_kind kind)
{
	struct re_node *n = ARENA_NEW(p->arena, struct re_node);

	n->kind = (uint8_t)kind;
	n->weight = 2;
	return n;
}

/* Adds a part behind *tail, which becomes it. */
static void add_part(struct parser *p, struct re_node *n, struct re_node **tail, struct re_node *part)
{
	if (*tail)
		(*tail)->next = part;
	else
		n->part = part;
	*tail = part;
	n->weight += part->weight + 2;
	if (n->weight > RE_WEIGHT_MAX)
		fail(p, "expression too large", STR(""));
}

/* ---- sets of characters ---- */

struct set {
	struct re_range *ranges;
	size_t n, cap;
};

static void set_add(struct parser *p, struct set *s, uint32_t lo, uint32_t hi)
{
	if (++p->n_ranges > RE_RANGES_MAX) {
		fail(p, "expression too large", STR(""));
		return;
	}
	if (s->n == s->cap) {
		size_t cap = s->cap ? s->cap * 2 : 8;
		struct re_range *ranges = ARENA_ARRAY(p->arena, struct re_range, cap);
		if (s->n)
			memcpy(ranges, s->ranges, s->n * sizeof(*ranges));
		s->ranges = ranges;
		s->cap = cap;
	}
	s->ranges[s->n++] = (struct re_range){ lo, hi };
}

/* The part of a range that lies in [lo, hi], moved by distance. */
static void add_moved(struct parser *p, struct set *s, struct re_range r, uint32_t lo, uint32_t hi, int distance)
{
	uint32_t a = MAX(r.from, lo), b = MIN(r.to, hi);

	if (a <= b)
		set_add(p, s, (uint32_t)((int64_t)a + distance), (uint32_t)((int64_t)b + distance));
}

static void set_add_folded(struct parser *p, struct set *s, uint32_t lo, uint32_t hi)
{
	static const struct {
		uint32_t upper, upper_end;
		int distance;
	} cases[] = { { 'A', 'Z', 32 }, { 0xc0, 0xd6, 32 }, { 0xd8, 0xde, 32 }, { 0x391, 0x3a1, 32 }, { 0x3a3, 0x3a9, 32 },
		      { 0x400, 0x40f, 80 }, { 0x410, 0x42f, 32 } };
	struct re_range r = { lo, hi };

	set_add(p, s, lo, hi);
	if (!(p->flags & FOLD))
		return;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint32_t d = (uint32_t)cases[i].distance;
		add_moved(p, s, r, cases[i].upper, cases[i].upper_end, cases[i].distance);
		add_moved(p, s, r, cases[i].upper + d, cases[i].upper_end + d, -cases[i].distance);
	}
	/* The long s and the sign of Kelvin. */
	static const struct {
		uint32_t letter, other;
	} odd[] = { { 'S', 0x17f }, { 's', 0x17f }, { 'K', 0x212a }, { 'k', 0x212a } };
	for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
		if (lo <= odd[i].letter && odd[i].letter <= hi)
			set_add(p, s, odd[i].other, odd[i].other);
		if (lo <= odd[i].other && odd[i].other <= hi)
			set_add(p, s, odd[i].letter, odd[i].letter);
	}
}

static int by_begin(const void *a, const void *b)
{
	const struct re_range *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

/* Sorted and merged; negated on request. */
static struct re_class set_finish(struct parser *p, struct set *s, bool negate)
{
	/* An expression can make a set of a million ranges. */
	if (s->n > 1)
		qsort(s->ranges, s->n, sizeof(*s->ranges), by_begin);
	size_t n = 0;
	for (size_t i = 0; i < s->n; i++)
		if (n && s->ranges[i].from <= s->ranges[n - 1].to + 1)
			s->ranges[n - 1].to = MAX(s->ranges[n - 1].to, s->ranges[i].to);
		else
			s->ranges[n++] = s->ranges[i];
	s->n = n;
	if (!negate)
		return (struct re_class){ s->ranges, s->n };
	struct set other = { 0 };
	uint32_t at = 0;
	for (size_t i = 0; i < s->n; i++) {
		if (s->ranges[i].from > at)
			set_add(p, &other, at, s->ranges[i].from - 1);
		at = s->ranges[i].to + 1;
	}
	if (at <= RE_RUNE_MAX)
		set_add(p, &other, at, RE_RUNE_MAX);
	return (struct re_class){ other.ranges, other.n };
}

static struct re_node *class_node(struct parser *p, struct set *s, bool negate)
{
	struct re_node *n = node(p, RE_CLASS);

	n->set = set_finish(p, s, negate);
	return n;
}

static void add_class(struct parser *p, struct set *s, struct re_class c)
{
	for (size_t i = 0; i < c.n; i++)
		set_add(p, s, c.ranges[i].from, c.ranges[i].to);
}

/* \d \s \w and their opposites. */
static bool perl_class(struct parser *p, struct set *s)
{
	static const char *const letters = "dDsSwW";
	const char *which;
	struct set own = { 0 };

	if (!looking_at(p, STR("\\")) || p->at + 1 >= p->whole.n || !(which = strchr(letters, p->whole.p[p->at + 1])) || !*which)
		return false;
	p->at += 2;
	switch (*which | 0x20) {
	case 'd':
		set_add(p, &own, '0', '9');
		break;
	case 's':
		set_add(p, &own, '\t', '\n');
		set_add(p, &own, '\f', '\r');
		set_add(p, &own, ' ', ' ');
		break;
	default:
		set_add(p, &own, '0', '9');
		set_add(p, &own, 'A', 'Z');
		set_add(p, &own, '_', '_');
		set_add(p, &own, 'a', 'z');
	}
	add_class(p, s, set_finish(p, &own, *which < 'a'));
	return true;
}

/* [:alpha:] within brackets. */
static bool posix_class(struct parser *p, struct set *s)
{
	static const struct {
		str name;
		const char *ranges; /* pairs of bytes */
	} classes[] = {
		{ STR_INIT("alnum"), "09AZaz" }, { STR_INIT("alpha"), "AZaz" }, { STR_INIT("blank"), "\t\t  " }, { STR_INIT("digit"), "09" },
		{ STR_INIT("graph"), "!~" }, { STR_INIT("lower"), "az" }, { STR_INIT("print"), " ~" }, { STR_INIT("punct"), "!/:@[`{~" },
		{ STR_INIT("space"), "\t\r  " }, { STR_INIT("upper"), "AZ" }, { STR_INIT("word"), "09AZaz__" },
		{ STR_INIT("xdigit"), "09AFaf" }, { STR_INIT("ascii"), "\x01\x7f" }, { STR_INIT("cntrl"), "\x01\x1f\x7f\x7f" },
	};
	size_t begin = p->at;

	if (p->no_posix || !accept(p, STR("[:")))
		return false;
	ptrdiff_t end = str_find(str_skip(p->whole, p->at), STR(":]"));
	if (end < 0) {
		p->at = begin;
		p->no_posix = true;
		return false;
	}
	bool negate = accept(p, STR("^"));
	str name = str_span(p->whole.p + p->at, (size_t)end - negate);
	p->at += name.n + 2;
	for (size_t i = 0; i < ARRAY_LEN(classes); i++)
		if (str_eq(classes[i].name, name)) {
			struct set own = { 0 };
			for (const char *r = classes[i].ranges; *r; r += 2)
				set_add_folded(p, &own, (unsigned char)r[0], (unsigned char)r[1]);
			/* The tables cannot hold a zero byte. */
			if (str_eq(name, STR("ascii")) || str_eq(name, STR("cntrl")))
				set_add(p, &own, 0, 0);
			add_class(p, s, set_finish(p, &own, negate));
			return true;
		}
	fail(p, "invalid character class range", from(p, begin));
	return true;
}

struct named_class {
	struct parser *parser;
	struct set set;
};

static void add_named(void *arg, uint32_t lo, uint32_t hi)
{
	struct named_class *c = arg;
	set_add_folded(c->parser, &c->set, lo, hi);
}

/* \pL \p{Han} \P{^Han}. An expression can repeat them: all of their ranges count. */
static bool unicode_class(struct parser *p, struct set *s)
{
	size_t begin = p->at;
	struct named_class c = { .parser = p };

	if (!looking_at(p, STR("\\p")) && !looking_at(p, STR("\\P")))
		return false;
	bool negate = p->whole.p[p->at + 1] == 'P';
	p->at += 2;
	str name = STR("");
	if (looking_at(p, STR("{"))) {
		ptrdiff_t close = str_chr(str_skip(p->whole, p->at), '}');
		if (close < 0) {
			p->at = p->whole.n;
			fail(p, "invalid character class range", from(p, begin));
			return true;
		}
		name = str_span(p->whole.p + p->at + 1, (size_t)close - 1);
		p->at += (size_t)close + 1;
	} else if (more(p)) {
		size_t at = p->at;
		next_rune(p);
		name = from(p, at);
	}
	if (str_starts(name, STR("^"))) {
		negate = !negate;
		name = str_skip(name, 1);
	}
	if (!str_is_utf8(name))
		fail(p, "invalid UTF-8", name);
	else if (!re_unicode_class(name, add_named, &c))
		fail(p, "invalid character class range", from(p, begin));
	else
		add_class(p, s, set_finish(p, &c.set, negate));
	return true;
}

/* ---- escapes ---- */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* \x41 or \x{10ffff}, from the x on. */
static bool hex_escape(struct parser *p, uint32_t *ret)
{
	bool braces = p->at + 1 < p->whole.n && p->whole.p[p->at + 1] == '{';
	size_t digits = 0;

	p->at += 1 + braces;
	*ret = 0;
	while (p->at < p->whole.n && hex_digit(peek(p)) >= 0 && (braces || digits < 2)) {
		*ret = *ret * 16 + (uint32_t)hex_digit(p->whole.p[p->at++]);
		digits++;
		if (*ret > RE_RUNE_MAX)
			return false;
	}
	return braces ? digits > 0 && accept(p, STR("}")) : digits == 2;
}

/* What a backslash makes of the next character; the place is on the backslash. */
static uint32_t escape(struct parser *p)
{
	static const char plain_from[] = "afnrtv", plain_to[] = "\a\f\n\r\t\v";
	size_t begin = p->at++;
	uint32_t r = 0;

	if (p->at >= p->whole.n) {
		fail(p, "trailing backslash at end of expression", STR(""));
		return 0;
	}
	char c = peek(p);
	const char *plain = strchr(plain_from, c);
	if (plain && c) {
		p->at++;
		return (unsigned char)plain_to[plain - plain_from];
	}
	bool octal = c == '0' || (c >= '1' && c <= '7' && p->at + 1 < p->whole.n && p->whole.p[p->at + 1] >= '0' && p->whole.p[p->at + 1] <= '7');
	if (octal) {
		for (size_t i = 0; i < 3 && p->at < p->whole.n && peek(p) >= '0' && peek(p) <= '7'; i++)
			r = r * 8 + (uint32_t)(p->whole.p[p->at++] - '0');
		return r;
	}
	if (c == 'x' && hex_escape(p, &r))
		return r;
	bool word = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || (c & 0x80);
	if (!word || c == '_') {
		p->at++;
		return (unsigned char)c;
	}
	if (p->at < p->whole.n && c != 'x')
		next_rune(p);
	fail(p, "invalid escape sequence", from(p, begin));
	return 0;
}

/* ---- classes in brackets ---- */

/* One end of a range. */
static uint32_t class_char(struct parser *p, size_t begin)
{
	if (!more(p)) {
		fail(p, "missing closing ]", str_skip(p->whole, begin));
		return 0;
	}
	return peek(p) == '\\' ? escape(p) : next_rune(p);
}

static struct re_node *parse_class(struct parser *p)
{
	size_t begin = p->at++;
	bool negate = accept(p, STR("^")), first = true;
	struct set s = { 0 };

	/* A negated class has no line end unless (?s). */
	while (!p->failed && (first || !looking_at(p, STR("]")))) {
		size_t item = p->at;
		if (!more(p))
			return fail(p, "missing closing ]", str_skip(p->whole, begin));
		/* '-' is good at the ends and after a range. */
		if (!first && peek(p) == '-' && p->at + 1 < p->whole.n && p->whole.p[p->at + 1] != ']') {
			p->at++;
			next_rune(p);
			return fail(p, "invalid character class range", from(p, item));
		}
		first = false;
		if (posix_class(p, &s) || perl_class(p, &s) || unicode_class(p, &s))
			continue;
		uint32_t lo = class_char(p, begin), hi = lo;
		if (looking_at(p, STR("-")) && p->at + 1 < p->whole.n && p->whole.p[p->at + 1] != ']') {
			p->at++;
			hi = class_char(p, begin);
		}
		if (lo > hi)
			return fail(p, "invalid character class range", from(p, item));
		set_add_folded(p, &s, lo, hi);
	}
	if (p->failed)
		return NULL;
	p->at++;
	return class_node(p, &s, negate);
}

/* ---- groups ---- */

static struct re_node *close_group(struct parser *p, unsigned flags)
{
	struct re_node *n = parse_alt(p);

	if (!p->failed && !accept(p, STR(")")))
		return fail(p, "missing closing )", p->whole);
	p->flags = flags;
	return n;
}

/* (?P<name>...) */
static struct re_node *named_group(struct parser *p, size_t begin, unsigned flags)
{
	ptrdiff_t end = str_chr(str_skip(p->whole, p->at), '>');
	str name = end >= 0 ? str_span(p->whole.p + p->at, (size_t)end) : STR("");

	if (end < 0)
		return fail(p, "invalid named capture", str_skip(p->whole, begin));
	p->at += name.n + 1;
	for (size_t i = 0; i < name.n; i++)
		if (!((name.p[i] | 0x20) >= 'a' && (name.p[i] | 0x20) <= 'z') && !(name.p[i] >= '0' && name.p[i] <= '9') && name.p[i] != '_')
			return fail(p, "invalid named capture", from(p, begin));
	return name.n ? close_group(p, flags) : fail(p, "invalid named capture", from(p, begin));
}

/* (?i-s) and (?i-s:...) */
static struct re_node *flag_group(struct parser *p, size_t begin, unsigned flags)
{
	static const char letters[] = "imsU";
	bool off = false, any = false;
	unsigned next = flags;

	while (more(p)) {
		char c = p->whole.p[p->at++];
		const char *letter = c ? strchr(letters, c) : NULL;
		if (letter) {
			unsigned bit = 1u << (letter - letters);
			next = off ? next & ~bit : next | bit;
			any = true;
		} else if (c == '-' && !off) {
			off = true;
			any = false;
		} else if ((c == ')' || c == ':') && (any || !off)) {
			p->flags = next;
			return c == ':' ? close_group(p, flags) : node(p, RE_EMPTY);
		} else {
			break;
		}
	}
	if (p->at >= p->whole.n && (p->whole.n == 0 || p->whole.p[p->whole.n - 1] != ')'))
		return fail(p, "missing closing )", p->whole);
	return fail(p, "invalid or unsupported Perl syntax", from(p, begin));
}

static struct re_node *parse_group(struct parser *p)
{
	size_t begin = p->at++;
	unsigned flags = p->flags;

	if (!looking_at(p, STR("?")))
		return close_group(p, flags);
	p->at++;
	if (accept(p, STR("P<")) || (looking_at(p, STR("<")) && !looking_at(p, STR("<=")) && !looking_at(p, STR("<!")) && accept(p, STR("<"))))
		return named_group(p, begin, flags);
	if (looking_at(p, STR("<"))) {
		p->at++;
		return fail(p, "invalid or unsupported Perl syntax", from(p, begin));
	}
	return flag_group(p, begin, flags);
}

/* ---- the rest ---- */

static struct re_node *single(struct parser *p, uint32_t r)
{
	struct set s = { 0 };

	set_add_folded(p, &s, r, r);
	return class_node(p, &s, false);
}

static struct re_node *parse_dot(struct parser *p)
{
	struct set s = { 0 };

	p->at++;
	if (!(p->flags & DOT_ALL))
		set_add(p, &s, '\n', '\n');
	return class_node(p, &s, true);
}

/* \Qtext\E */
static struct re_node *quoted(struct parser *p)
{
	struct re_node *all = node(p, RE_CAT), *tail = NULL;

	while (more(p) && !accept(p, STR("\\E")))
		add_part(p, all, &tail, single(p, next_rune(p)));
	return all;
}

static struct re_node *parse_backslash(struct parser *p)
{
	static const struct {
		str text;
		enum re_kind kind;
	} places[] = { { STR_INIT("\\A"), RE_TEXT_BEGIN }, { STR_INIT("\\z"), RE_TEXT_END }, { STR_INIT("\\b"), RE_WORD },
		       { STR_INIT("\\B"), RE_NOT_WORD } };
	struct set s = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (accept(p, places[i].text))
			return node(p, places[i].kind);
	if (accept(p, STR("\\Q")))
		return quoted(p);
	if (perl_class(p, &s) || unicode_class(p, &s))
		return p->failed ? NULL : class_node(p, &s, false);
	uint32_t r = escape(p);
	return p->failed ? NULL : single(p, r);
}

static struct re_node *parse_atom(struct parser *p)
{
	switch (peek(p)) {
	case '(':
		return parse_group(p);
	case '[':
		return parse_class(p);
	case '.':
		return parse_dot(p);
	case '^':
		p->at++;
		return node(p, p->flags & MULTI ? RE_LINE_BEGIN : RE_TEXT_BEGIN);
	case '$':
		p->at++;
		return node(p, p->flags & MULTI ? RE_LINE_END : RE_TEXT_END);
	case '\\':
		return parse_backslash(p);
	case '*':
	case '+':
	case '?':
		p->at++;
		return fail(p, "missing argument to repetition operator", from(p, p->at - 1));
	default:
		return single(p, next_rune(p));
	}
}

/* {2} {2,} {2,5}; false when it is none, which makes the brace a character. */
static bool parse_count(struct parser *p, int *ret_min, int *ret_max)
{
	size_t i = p->at + 1, begin = i;
	int v[2] = { 0, 0 };

	for (int part = 0; part < 2; part++) {
		size_t first = i;
		while (i < p->whole.n && p->whole.p[i] >= '0' && p->whole.p[i] <= '9') {
			v[part] = MIN(v[part] * 10 + (p->whole.p[i] - '0'), REPEAT_MAX + 1);
			i++;
		}
		if (part == 0 && i == begin)
			return false;
		if (part == 0 && i < p->whole.n && p->whole.p[i] == ',') {
			i++;
			continue;
		}
		if (part == 0)
			v[1] = v[0];
		else if (i == first)
			v[1] = -1;
		break;
	}
	if (i >= p->whole.n || p->whole.p[i] != '}')
		return false;
	p->at = i + 1;
	*ret_min = v[0];
	*ret_max = v[1];
	return true;
}

/* The operator at the place, if there is one. */
static bool parse_operator(struct parser *p, int *ret_min, int *ret_max)
{
	if (!more(p))
		return false;
	char c = peek(p);
	if (c == '{')
		return parse_count(p, ret_min, ret_max);
	if (c != '*' && c != '+' && c != '?')
		return false;
	p->at++;
	*ret_min = c == '+';
	*ret_max = c == '?' ? 1 : -1;
	return true;
}

static struct re_node *parse_repeat(struct parser *p)
{
	struct re_node *n = parse_atom(p);
	bool repeated = false;
	size_t first = 0;
	int min, max;

	while (n && !p->failed) {
		size_t begin = p->at;
		if (!parse_operator(p, &min, &max))
			break;
		if (max > REPEAT_MAX || min > REPEAT_MAX || (max >= 0 && min > max))
			return fail(p, "invalid repeat count", from(p, begin));
		bool lazy = accept(p, STR("?"));
		if (repeated)
			return fail(p, "invalid nested repetition operator", from(p, first));
		first = begin;
		repeated = true;
		size_t copies = (size_t)MAX(max, min + 1), weight = n->weight;
		struct re_node *part = n;
		n = node(p, RE_REPEAT);
		n->part = part;
		n->min = min;
		n->max = max;
		n->lazy = lazy != !!(p->flags & SWAP);
		n->weight = (weight + 2) * copies + 2;
		if (n->weight > RE_WEIGHT_MAX)
			return fail(p, "expression too large", STR(""));
	}
	return n;
}

static struct re_node *parse_cat(struct parser *p)
{
	struct re_node *n = node(p, RE_CAT), *tail = NULL;

	while (more(p) && peek(p) != '|' && peek(p) != ')') {
		struct re_node *part = parse_repeat(p);
		if (!part)
			return NULL;
		add_part(p, n, &tail, part);
	}
	return n;
}

static struct re_node *parse_alt(struct parser *p)
{
	if (++p->depth > NEST_MAX)
		return fail(p, "expression nests too deeply", p->whole);
	struct re_node *n = node(p, RE_ALT), *tail = NULL;
	do {
		struct re_node *part = parse_cat(p);
		if (!part)
			return NULL;
		add_part(p, n, &tail, part);
	} while (accept(p, STR("|")));
	p->depth--;
	return n;
}

struct re_node *re_parse(struct arena *a, str pattern, struct err *err)
{
	struct parser p = { .arena = a, .whole = pattern, .err = err };
	struct re_node *n = parse_alt(&p);

	if (!p.failed && p.at < pattern.n)
		fail(&p, "unexpected )", pattern);
	return p.failed ? NULL : n;
}
