/* Tables and JSON, as crictl prints them. */
#include <stdio.h>

#include "base/clock.h"
#include "cmd/crictl.h"
#include "codec/codec.h"

enum { CELL_MIN = 20, GAP = 3, JSON_MAX = 256 << 20 };

void table_init(struct table *t, struct arena *a, size_t columns, const char *const *heading)
{
	*t = (struct table){ .arena = a, .columns = columns };
	table_add(t, heading);
}

void table_add(struct table *t, const char *const *cells)
{
	if (t->n == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 16;
		const char **more = ARENA_ARRAY(t->arena, const char *, cap * t->columns);
		if (t->n)
			memcpy(more, t->cells, t->n * t->columns * sizeof *more);
		t->cells = more;
		t->cap = cap;
	}
	memcpy(t->cells + t->n++ * t->columns, cells, t->columns * sizeof *cells);
}

/* Cells have a width of at least 20 with 3 spaces between them; the last of a row has none behind it. */
void table_print(const struct table *t)
{
	size_t width[CRICTL_COLUMNS_MAX] = { 0 };

	for (size_t i = 0; i < t->n * t->columns; i++)
		width[i % t->columns] = MAX(width[i % t->columns], strlen(t->cells[i]) + GAP);
	for (size_t row = 0; row < t->n; row++) {
		for (size_t i = 0; i < t->columns; i++) {
			const char *cell = t->cells[row * t->columns + i];
			if (i + 1 == t->columns)
				printf("%s\n", cell);
			else
				printf("%-*s", (int)MAX(width[i], (size_t)CELL_MIN), cell);
		}
	}
}

const char *crictl_text(struct arena *a, str s)
{
	char *p = arena_alloc(a, s.n + 1, 1);

	for (size_t i = 0; i < s.n; i++) {
		unsigned char byte = (unsigned char)s.p[i];
		p[i] = byte < ' ' || byte == 0x7f ? '?' : s.p[i];
	}
	p[s.n] = '\0';
	return p;
}

const char *crictl_ago(struct arena *a, int64_t since_ns)
{
	int64_t s = (clock_wall_ns() - since_ns) / NS_PER_S, m = s / 60, h = (m + 30) / 60;
	const char *text;

	if (s < 1)
		text = "Less than a second";
	else if (s < 60)
		text = arena_printf(a, s == 1 ? "%lld second" : "%lld seconds", (long long)s).p;
	else if (m < 60)
		text = m == 1 ? "About a minute" : arena_printf(a, "%lld minutes", (long long)m).p;
	else if (h < 48)
		text = h == 1 ? "About an hour" : arena_printf(a, "%lld hours", (long long)h).p;
	else if (h < 24 * 7 * 2)
		text = arena_printf(a, "%lld days", (long long)(h / 24)).p;
	else if (h < 24 * 30 * 2)
		text = arena_printf(a, "%lld weeks", (long long)(h / 24 / 7)).p;
	else if (h < 24 * 365 * 2)
		text = arena_printf(a, "%lld months", (long long)(h / 24 / 30)).p;
	else
		text = arena_printf(a, "%lld years", (long long)(h / 24 / 365)).p;
	return arena_printf(a, "%s ago", text).p;
}

const char *crictl_size(struct arena *a, uint64_t bytes)
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB" };
	double n = (double)bytes;
	size_t u = 0;

	for (; n >= 1000 && u + 1 < ARRAY_LEN(units); u++)
		n /= 1000;
	return arena_printf(a, u ? "%.3g%s" : "%.0f%s", n, units[u]).p;
}

const char *crictl_short_id(const struct crictl *c, struct arena *a, str id)
{
	enum { SHORT = 13 };

	if (str_starts(id, STR("sha256:")))
		id = str_skip(id, strlen("sha256:"));
	return crictl_text(a, c->no_trunc ? id : str_head(id, SHORT));
}

static void print_json(struct val v, const struct type *type)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(JSON_MAX);
	struct json_encode_options o = { .type = type, .indent = 2, .plain = true };

	if (json_encode(&b, v, &o, NULL) == 0)
		printf("%s\n", b.p);
}

static void print_yaml(struct val v, const struct type *type)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(JSON_MAX);

	if (yaml_encode(&b, v, type, NULL) == 0)
		printf("%s", b.p);
}

void crictl_show_map(struct arena *a, const char *title, struct val map)
{
	if (!val_len(map))
		return;
	printf("%s:\n", title);
	VAL_EACH_MEMBER(m, map)
		printf("\t%s -> %s\n", crictl_text(a, atom_str(m->key)), crictl_text(a, val_as_str(m->val)));
}

int crictl_check_output(const struct crictl *c, bool tables, struct err *err)
{
	if (!*c->output || strcmp(c->output, "json") == 0 || strcmp(c->output, "yaml") == 0 || (tables && strcmp(c->output, "table") == 0))
		return 0;
	return err_set(err, ERR_BAD_REQUEST, "unsupported output format \"%s\"", c->output);
}

bool crictl_show_as(const struct crictl *c, struct val v, const struct type *type)
{
	if (strcmp(c->output, "json") == 0)
		print_json(v, type);
	else if (strcmp(c->output, "yaml") == 0)
		print_yaml(v, type);
	else
		return false;
	return true;
}

void crictl_show(const struct crictl *c, struct val v, const struct type *type)
{
	if (!crictl_show_as(c, v, type))
		print_json(v, type);
}

int crictl_status(struct crictl *c, struct val status, const struct type *type, struct val info, struct val *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(JSON_MAX);
	struct arena *a = &c->arena;
	struct json_encode_options typed = { .type = type };
	struct json_decode_options free_tree = { .sort_keys = true };
	struct val_builder whole = val_builder(a);
	struct val v;
	int r = json_encode(&b, status, &typed, err);

	if (r < 0 || (r = json_decode(a, arena_str(a, buf_str(&b)), &free_tree, &v, err)) < 0)
		return r;
	VAL_EACH_MEMBER(m, info) {
		struct val inner;
		bool is_json = json_decode(a, val_as_str(m->val), &free_tree, &inner, NULL) == 0;
		val_add_member(&whole, m->key, is_json ? inner : m->val);
	}
	val_add_member(&whole, atom_make(a, STR("status")), v);
	*ret = val_end_object(&whole);
	return 0;
}

void crictl_show_statuses(const struct crictl *c, const struct val *statuses, size_t n)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	if (n)
		crictl_show(c, n == 1 ? statuses[0] : val_list(&a, statuses, n), NULL);
}
