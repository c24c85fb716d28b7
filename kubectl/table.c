/* Tables that the server made (meta.k8s.io/v1 Table), with the columns that only a client adds. */
#include "kubectl/describe.h"
#include "kubectl/print.h"
#include "machinery/jsonpath.h"
#include "machinery/selector.h"

void ktl_add_escaped(struct buf *b, str text)
{
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '\033')
			buf_add(b, STR("^["));
		else if (text.p[i] == '\r')
			buf_add(b, STR("\\r"));
		else
			buf_addc(b, text.p[i]);
	}
}

static void add_cell(struct buf *b, struct val cell)
{
	CLEANUP(buf_done) struct buf plain = BUF_INIT(KTL_TEXT_MAX);
	if (val_is_nil(cell))
		return;
	str text = val_as_str(cell);
	if (!val_is(cell, VAL_STRING)) {
		jsonpath_add_plain(&plain, cell);
		ktl_add_escaped(b, buf_str(&plain));
		return;
	}
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] == '\f' || text.p[i] == '\n' || text.p[i] == '\r') {
			ktl_add_escaped(b, str_head(text, i));
			buf_add(b, STR("..."));
			return;
		}
	ktl_add_escaped(b, text);
}

/* A column's name in capitals; a label's without its prefix. */
static void add_upper(struct buf *b, str text)
{
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i] >= 'a' && text.p[i] <= 'z' ? (char)(text.p[i] & ~0x20) : text.p[i];
		ktl_add_escaped(b, str_span(&c, 1));
	}
}

static str label_header(const char *label)
{
	ptrdiff_t slash = str_rchr(str_of(label), '/');
	return slash < 0 ? str_of(label) : str_skip(str_of(label), (size_t)slash + 1);
}

static void separate(struct buf *b, bool *first)
{
	if (!*first)
		buf_addc(b, '\t');
	*first = false;
}

static bool shown(const struct ktl_table_options *o, struct val column) { return o->wide || !val_int(column, priority); }

static void add_headers(struct buf *b, const struct ktl_table_options *o, struct val columns, bool with_event)
{
	bool first = true;
	if (with_event) {
		separate(b, &first);
		buf_add(b, STR("EVENT"));
	}
	if (o->with_namespace) {
		separate(b, &first);
		buf_add(b, STR("NAMESPACE"));
	}
	VAL_EACH(c, columns)
		if (shown(o, *c)) {
			separate(b, &first);
			add_upper(b, val_str(*c, name));
		}
	for (size_t i = 0; i < o->label_columns.n; i++) {
		separate(b, &first);
		add_upper(b, label_header(o->label_columns.v[i]));
	}
	if (o->show_labels) {
		separate(b, &first);
		buf_add(b, STR("LABELS"));
	}
	buf_addc(b, '\n');
}

static void add_labels(struct ktl *k, struct buf *b, const struct ktl_table_options *o, struct val labels, bool *first)
{
	for (size_t i = 0; i < o->label_columns.n; i++) {
		separate(b, first);
		add_cell(b, val_find(labels, str_of(o->label_columns.v[i])));
	}
	if (!o->show_labels)
		return;
	separate(b, first);
	add_cell(b, VAL_STR(labels_display(&k->arena, labels)));
}

static void add_row(struct ktl *k, struct buf *b, const struct ktl_table_options *o, struct val columns, struct val row, str event)
{
	struct val cells = val_get(row, cells), object = val_get(row, object);
	bool first = true;
	if (event.n) {
		separate(b, &first);
		buf_add(b, event);
	}
	if (o->with_namespace) {
		separate(b, &first);
		add_cell(b, val_get(object, metadata, namespace));
	}
	bool named = false;
	for (size_t i = 0; i < val_len(cells) && i < val_len(columns); i++) {
		struct val column = val_at(columns, i);
		bool name = o->with_kind && !named && str_eq(val_str(column, format), STR("name")) && str_eq(val_str(column, type), STR("string"));
		named |= name;
		if (!shown(o, column))
			continue;
		separate(b, &first);
		if (name)
			buf_addf(b, STR_FMT "/", STR_ARG(ktl_kind_label(k, o->kind)));
		add_cell(b, val_at(cells, i));
	}
	add_labels(k, b, o, val_get(object, metadata, labels), &first);
	buf_addc(b, '\n');
}

/* What the server did not make a table of: name and age. */
static struct val as_table(struct ktl *k, struct val object)
{
	struct arena *a = &k->arena;
	str age = ktl_age(k, val_str(object, metadata, creationTimestamp));
	struct val columns = LIST(a, OBJECT(a, F(name, VAL_LIT("Name")), F(type, VAL_LIT("string")), F(format, VAL_LIT("name"))),
				  OBJECT(a, F(name, VAL_LIT("Age")), F(type, VAL_LIT("string"))));
	struct val row = OBJECT(a, F(cells, LIST(a, val_get(object, metadata, name), VAL_STR(age))), F(object, object));
	return OBJECT(a, F(kind, VAL_LIT("Table")), F(columnDefinitions, columns), F(rows, LIST(a, row)));
}

void ktl_table_print(struct ktl *k, struct ktl_table_printer *p, struct val object, str event, struct ktl_tabs *tabs)
{
	struct ktl_table_options o = p->options;
	if (!str_eq(val_str(object, kind), STR("Table")))
		object = as_table(k, object);
	struct val columns = val_get(object, columnDefinitions), rows = val_get(object, rows);
	bool same = !val_len(columns) || val_equal(columns, p->columns);
	if (p->printed_headers && same)
		o.no_headers = true;
	if (!val_len(columns)) { /* later events of a watch have none */
		columns = p->columns;
	} else if (!same) {
		p->columns = val_copy(&k->arena, columns); /* those of an event go with it */
		p->printed_headers = false;
	}
	if (!val_len(rows))
		return;
	p->printed_headers = true;
	if (!o.no_headers)
		add_headers(&tabs->text, &o, columns, event.n > 0);
	VAL_EACH(row, rows)
		add_row(k, &tabs->text, &o, columns, *row, event);
}
