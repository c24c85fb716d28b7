/*
 * Matching by simulation of the automaton (Pike's machine): all alternatives advance through the text together, in the order of their
 * priority, so that the time is bounded by text times program, and the result is still the one that Perl would find.
 */
#include "machinery/cel_re_priv.h"

enum { STEPS_MAX = 50000000 };

enum op { OP_CLASS, OP_JUMP, OP_SPLIT, OP_PLACE, OP_MATCH };

struct inst {
	uint8_t op, place;          /* place: enum re_kind */
	uint32_t next, other;       /* other: of a split, with the lower priority */
	struct re_class set;
};

struct cel_re {
	struct inst *code;
	uint32_t n;
};

/* ---- tree -> program ---- */

static uint32_t emit(struct cel_re *re, enum op op)
{
	re->code[re->n] = (struct inst){ .op = (uint8_t)op, .next = re->n + 1 };
	return re->n++;
}

static void compile(struct cel_re *re, const struct re_node *n);

static void split_order(struct inst *split, uint32_t preferred, uint32_t other, bool lazy)
{
	split->next = lazy ? other : preferred;
	split->other = lazy ? preferred : other;
}

static void compile_repeat(struct cel_re *re, const struct re_node *n)
{
	for (int i = 0; i < n->min; i++)
		compile(re, n->part);
	if (n->max < 0) {
		uint32_t split = emit(re, OP_SPLIT);
		compile(re, n->part);
		re->code[emit(re, OP_JUMP)].next = split;
		split_order(&re->code[split], split + 1, re->n, n->lazy);
		return;
	}
	/* x{0,2} is (x(x)?)?: one way out of all. */
	uint32_t first = re->n;
	for (int i = n->min; i < n->max; i++) {
		emit(re, OP_SPLIT);
		compile(re, n->part);
	}
	for (uint32_t i = first, left = (uint32_t)(n->max - n->min); left; left--) {
		split_order(&re->code[i], i + 1, re->n, n->lazy);
		i += (re->n - first) / (uint32_t)(n->max - n->min);
	}
}

static void compile_alt(struct cel_re *re, const struct re_node *n)
{
	uint32_t jumps = UINT32_MAX; /* to the end: until that is known, each names the one before it */

	for (const struct re_node *part = n->part; part; part = part->next) {
		uint32_t split = part->next ? emit(re, OP_SPLIT) : UINT32_MAX;
		compile(re, part);
		if (!part->next)
			break;
		uint32_t jump = emit(re, OP_JUMP);
		re->code[jump].next = jumps;
		jumps = jump;
		re->code[split].other = re->n;
	}
	while (jumps != UINT32_MAX) {
		uint32_t before = re->code[jumps].next;
		re->code[jumps].next = re->n;
		jumps = before;
	}
}

static void compile(struct cel_re *re, const struct re_node *n)
{
	switch ((enum re_kind)n->kind) {
	case RE_EMPTY:
		return;
	case RE_CLASS:
		re->code[emit(re, OP_CLASS)].set = n->set;
		return;
	case RE_CAT:
		for (const struct re_node *part = n->part; part; part = part->next)
			compile(re, part);
		return;
	case RE_ALT:
		compile_alt(re, n);
		return;
	case RE_REPEAT:
		compile_repeat(re, n);
		return;
	default:
		re->code[emit(re, OP_PLACE)].place = n->kind;
	}
}

const struct cel_re *cel_re_compile(struct arena *a, str pattern, struct err *err)
{
	struct re_node *tree = re_parse(a, pattern, err);

	if (!tree)
		return NULL;
	struct cel_re *re = ARENA_NEW(a, struct cel_re);
	re->code = ARENA_ARRAY(a, struct inst, tree->weight + 2);
	compile(re, tree);
	emit(re, OP_MATCH);
	return re;
}

/* ---- matching ---- */

struct thread {
	uint32_t pc;
	size_t begin;
};

struct machine {
	const struct cel_re *re;
	str text;
	struct thread *now, *next;
	size_t n_now, n_next;
	uint64_t *seen;             /* by instruction: the step in which it was reached last */
	uint64_t round;
	uint32_t *stack;
	size_t steps;
};

static bool is_word(str text, size_t at)
{
	if (at >= text.n)
		return false;
	char c = text.p[at];
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_';
}

static bool holds(str text, size_t at, uint8_t place)
{
	bool before = at > 0 && is_word(text, at - 1), after = is_word(text, at);

	switch (place) {
	case RE_LINE_BEGIN:
		return at == 0 || text.p[at - 1] == '\n';
	case RE_LINE_END:
		return at == text.n || text.p[at] == '\n';
	case RE_TEXT_BEGIN:
		return at == 0;
	case RE_TEXT_END:
		return at == text.n;
	case RE_WORD:
		return before != after;
	default:
		return before == after;
	}
}

/* Adds what can be reached from pc without a character to the next list, in the order of priority. */
static void add(struct machine *m, uint32_t pc, size_t begin, size_t at)
{
	size_t n = 0;

	m->stack[n++] = pc;
	while (n) {
		pc = m->stack[--n];
		if (m->seen[pc] == m->round)
			continue;
		m->seen[pc] = m->round;
		m->steps++;
		const struct inst *i = &m->re->code[pc];
		if (i->op == OP_JUMP) {
			m->stack[n++] = i->next;
		} else if (i->op == OP_SPLIT) {
			m->stack[n++] = i->other;
			m->stack[n++] = i->next;
		} else if (i->op != OP_PLACE) {
			m->next[m->n_next++] = (struct thread){ pc, begin };
		} else if (holds(m->text, at, i->place)) {
			m->stack[n++] = i->next;
		}
	}
}

static bool in_class(const struct re_class *set, uint32_t r)
{
	size_t lo = 0, hi = set->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		if (set->ranges[mid].to < r)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < set->n && set->ranges[lo].from <= r;
}

static void start_round(struct machine *m)
{
	struct thread *swap = m->now;

	m->now = m->next;
	m->n_now = m->n_next;
	m->next = swap;
	m->n_next = 0;
	m->round++;
}

bool cel_re_match(const struct cel_re *re, struct arena *a, str text, size_t from, size_t *ret_begin, size_t *ret_end, size_t *steps)
{
	struct machine m = { .re = re, .text = text };
	bool found = false;
	size_t begin = 0, end = 0;

	m.now = ARENA_ARRAY(a, struct thread, re->n + 1);
	m.next = ARENA_ARRAY(a, struct thread, re->n + 1);
	m.seen = ARENA_ARRAY(a, uint64_t, re->n);
	m.stack = ARENA_ARRAY(a, uint32_t, 2 * (size_t)re->n + 2);
	memset(m.seen, 0, re->n * sizeof(*m.seen));
	m.round = 1;
	for (size_t at = from;;) {
		/* A new attempt begins here, behind those that began before, until one has matched. */
		if (!found)
			add(&m, 0, at, at);
		start_round(&m);
		uint32_t r = 0xfffd;
		size_t len = at < text.n ? MAX(str_rune(str_skip(text, at), &r), (size_t)1) : 0;
		for (size_t i = 0; i < m.n_now; i++) {
			const struct inst *in = &re->code[m.now[i].pc];
			m.steps++;
			if (in->op == OP_MATCH) {
				found = true;
				begin = m.now[i].begin;
				end = at;
				break;
			}
			if (len && in_class(&in->set, r))
				add(&m, in->next, m.now[i].begin, at + len);
		}
		bool enough = found && (!ret_begin || !m.n_next);
		if (enough || !len || m.steps > STEPS_MAX)
			break;
		at += len;
	}
	if (steps)
		*steps = m.steps > STEPS_MAX ? SIZE_MAX / 2 : m.steps;
	if (found && ret_begin) {
		*ret_begin = begin;
		*ret_end = end;
	}
	return found;
}
