/* get --watch: first what is there, then every change as it comes. */
#include <stdio.h>

#include "base/fiber.h"
#include "kubectl/get.h"
#include "kubectl/watch.h"
#include "net/url.h"

struct state {
	struct ktl *k;
	const struct ktl_get *get;
	struct ktl_printer *printer;
	struct ktl_table_printer table;
	struct ktl_tabs tabs;
	bool human;
	bool bare;                   /* something was shown that the server had made no table of */
};

static str padded(struct ktl *k, str type) { return arena_printf(&k->arena, "%-8.*s", (int)type.n, type.p); }

static void flush(struct state *s)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(KTL_TEXT_MAX);
	ktl_tabs_flush(&s->tabs, &b);
	(void)fwrite(b.n ? b.p : "", 1, b.n, stdout);
	ktl_print_end(s->printer);
	ktl_flush();
}

static int show(struct state *s, str type, struct val object)
{
	struct ktl *k = s->k;
	if (s->human) {
		s->bare |= !str_eq(val_str(object, kind), STR("Table"));
		ktl_table_print(k, &s->table, object, s->get->output_events ? padded(k, type) : STR_NONE, &s->tabs);
		return 0;
	}
	if (s->get->output_events && s->printer->format != KTL_NAME)
		object = OBJECT(&k->arena, F(object, object), F(type, VAL_STR(type)));
	return ktl_print(k, s->printer, NULL, object);
}

static str selection(struct ktl *k, const struct ktl_builder *b)
{
	CLEANUP(buf_done) struct buf q = BUF_INIT(1 << 20);
	buf_add(&q, b->query);
	if (b->selector[0])
		url_query_add(&q, STR("labelSelector"), str_of(b->selector));
	if (b->field_selector[0])
		url_query_add(&q, STR("fieldSelector"), str_of(b->field_selector));
	return arena_str(&k->arena, buf_str(&q));
}

/* Of a Table; changes come as they come. */
static int sort_rows(struct ktl *k, const char *field, struct val *table)
{
	struct val rows;
	int r = str_eq(val_str(*table, kind), STR("Table")) ? ktl_sort(k, field, val_get(*table, rows), true, &rows) : 1;
	if (r == 0)
		*table = val_with(&k->arena, *table, rows, rows);
	return r >= 0 ? 0 : r == KTL_UNSORTABLE ? -1 : ktl_fail_before(k, "unable to output the provided object: ");
}

/* What is there now; *ret_revision is where changes begin. */
static int show_first(struct state *s, const struct ktl_infos *infos, bool single, str *ret_revision)
{
	const struct ktl_get *g = s->get;
	*ret_revision = STR("0");
	for (size_t i = 0; i < infos->n; i++) {
		struct val o = infos->v[i].object;
		struct val items = val_get(o, items);
		if (!single)
			*ret_revision = val_str(o, metadata, resourceVersion);
		if (g->watch_only)
			continue;
		if (s->human && g->sort_by[0] && sort_rows(s->k, g->sort_by, &o) < 0)
			return -1;
		if (!val_is(items, VAL_LIST)) {
			if (show(s, STR("ADDED"), o) < 0)
				return -1;
			continue;
		}
		str kind = val_str(o, kind);
		VAL_EACH(item, items) {
			struct val v = val_put(&s->k->arena, *item, A_kind, VAL_STR(str_head(kind, kind.n - 4)));
			v = val_sorted(&s->k->arena, val_put(&s->k->arena, v, A_apiVersion, val_get(o, apiVersion)));
			if (show(s, STR("ADDED"), v) < 0)
				return -1;
		}
	}
	flush(s);
	return 0;
}

static struct val column(struct arena *a, const char *name) { return OBJECT(a, F(name, VAL_STR(str_of(name))), F(type, VAL_LIT("string"))); }

/* What the server has to say before it ends the watch stands among the objects. */
static int show_status(struct state *s, struct val status)
{
	struct arena *a = &s->k->arena;
	if (s->human) {
		struct val cells = LIST(a, VAL_STR(val_str(status, status)), VAL_STR(val_str(status, reason)), VAL_STR(val_str(status, message)));
		status = OBJECT(a, F(columnDefinitions, LIST(a, column(a, "Status"), column(a, "Reason"), column(a, "Message"))), F(kind, VAL_LIT("Table")),
				F(rows, LIST(a, OBJECT(a, F(cells, cells)))));
		s->table = (struct ktl_table_printer){ .options = s->table.options };
		if (s->bare && !s->get->no_headers)
			(void)fputc('\n', stdout);
	}
	int r = show(s, STR("ERROR"), status);
	flush(s);
	return r;
}

/* As kubectl: that a watch ends is no failure, whatever the reason. */
static int end_watch(struct state *s)
{
	const struct ktl_failure f = *ktl_last_failure(s->k);
	if (f.kind != KTL_STATUS && f.kind != KTL_CONNECTION)
		return -1;
	ktl_forgive(s->k);
	return f.kind == KTL_STATUS ? show_status(s, f.status) : 0;
}

static int follow(struct state *s, const struct ktl_info *first, bool single, const struct ktl_builder *b, str revision)
{
	CLEANUP(ktl_watch_freep) struct ktl_watch *w = NULL;
	struct ktl *k = s->k;
	bool timeout, skip = single;
	struct val object;
	str type;
	int r;
	/* --request-timeout is for all of it. */
	DEADLINE_SCOPE(k->timeout_ms ? k->timeout_ms : INT64_MAX / 2000000);
	if (ktl_watch_open(k, first->kind, first->namespace, single ? first->name : STR_NONE, selection(k, b), revision, b->accept, &w) < 0)
		return -1;
	while ((r = ktl_watch_next(k, w, -1, &timeout, &type, &object)) == 1) {
		/* Of a single object the first event tells what was shown already. */
		if (!skip && show(s, type, object) < 0)
			return -1;
		skip = false;
		flush(s);
		if (ferror(stdout))
			return 0;
	}
	return r < 0 ? end_watch(s) : 0;
}

int ktl_get_watch(struct ktl *k, const struct ktl_get *g, struct ktl_printer *p, const struct ktl_builder *b)
{
	struct state s = { .k = k, .get = g, .printer = p, .human = p->format == KTL_HUMAN || p->format == KTL_WIDE };
	struct ktl_builder own = *b;
	struct ktl_infos infos;
	str revision;
	own.whole_lists = own.one_type = true;
	own.keep_going = false;
	own.chunk = 0;
	if (ktl_build(k, &own, &infos) < 0) {
		if (g->ignore_not_found && ktl_failed_because(k, "NotFound"))
			ktl_forgive(k);
		return k->n_failures ? -1 : 0;
	}
	if (infos.n != 1)
		return ktl_fail(k, "watch is only supported on individual resources and resource collections - %zu resources were found", infos.n);
	bool single = infos.v[0].name.n > 0;
	s.table.options = ktl_get_table_options(g, p);
	s.table.options.with_namespace = g->all_namespaces && infos.v[0].kind->namespaced;
	s.table.options.kind = infos.v[0].kind;
	ktl_tabs_for_table(&s.tabs);
	int r = show_first(&s, &infos, single, &revision);
	if (r == 0)
		r = follow(&s, &infos.v[0], single, b, revision);
	ktl_tabs_done(&s.tabs);
	return r;
}
