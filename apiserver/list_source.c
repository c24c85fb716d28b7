/*
 * A list on its way out. In JSON the items follow one another as they are asked for, each copied from the bytes that it
 * shares with everybody, so a list of any length needs memory for its pointers only. Protobuf puts the length of all
 * before the first item, YAML sorts its members, and people want indents: these are made at once, as far as they must be.
 */
#include <stdlib.h>

#include "apiserver/audit/audit.h"
#include "apiserver/list.h"
#include "apiserver/pieces.h"
#include "apiserver/read.h"
#include "base/fiber.h"
#include "base/mem.h"
#include "machinery/table.h"

enum { LARGE = 128 << 10, GATHERED_MAX = 1 << 30, AUDIT_BYTES = 64 << 10 };

struct list_source {
	struct http_source source;
	struct list_answer answer;
	struct view view;
	struct list_page page;
	size_t at;                    /* the next object */
	bool begun, ended;            /* an item was sent; nothing is left but what is in pieces */
	struct pieces pieces;
	struct buf made;              /* what pieces stand on when it is nobody else's */
	struct arena scratch;
};

static void source_stop(struct http_source *source)
{
	struct list_source *s = CONTAINER_OF(source, struct list_source, source);
	list_page_done(&s->page);
	buf_done(&s->made);
	arena_done(&s->scratch);
	free(s);
}

/* ---- JSON, item by item ---- */

/*
 * Objects lie all over the memory, and a list looks at each for a moment only: without a hint, most of that moment is
 * spent waiting for the memory. The bytes themselves are read in a row, which processors see coming.
 */
static void look_ahead(const struct list_source *s)
{
	enum { OBJECTS_AHEAD = 8, BYTES_AHEAD = 4, LINES_AHEAD = 8, CACHE_LINE = 64 };
	if (s->at + OBJECTS_AHEAD >= s->page.n)
		return;
	__builtin_prefetch(s->page.objects[s->at + OBJECTS_AHEAD]);
	const struct bytes *b = s->page.objects[s->at + BYTES_AHEAD]->json;
	if (!b)
		return;
	for (size_t line = 0; line < LINES_AHEAD; line++)
		__builtin_prefetch((const char *)b + line * CACHE_LINE);
}

static int next_item(struct list_source *s)
{
	struct object *o = s->page.objects[s->at];
	look_ahead(s);
	if (s->at) { /* what was sent before is not needed any more */
		object_unref(s->page.objects[s->at - 1]);
		s->page.objects[s->at - 1] = NULL;
	}
	s->at++;
	if (s->view.shared) {
		const struct bytes *b = object_json(o);
		pieces_add(&s->pieces, s->begun ? STR(",{") : STR("{"));
		pieces_add(&s->pieces, str_span(b->p + b->skip, b->n - b->skip));
	} else {
		buf_reset(&s->made);
		arena_reset(&s->scratch);
		if (s->begun)
			buf_addc(&s->made, ',');
		int r = view_list_item(&s->view, o, &s->scratch, &s->made, NULL);
		if (r < 0)
			return r;
		pieces_add(&s->pieces, buf_str(&s->made));
	}
	s->begun = true;
	return 0;
}

static int next_proto_item(struct list_source *s)
{
	struct object *o = s->page.objects[s->at++];
	const struct bytes *b = object_proto(o);
	size_t n = b->n - b->skip - b->tail;
	buf_reset(&s->made);
	view_proto_item(&s->view, n, &s->made);
	pieces_add(&s->pieces, buf_str(&s->made));
	pieces_add(&s->pieces, str_span(b->p + b->skip, n));
	return 0;
}

/* Puts what comes next into the empty pieces. */
static int next_pieces(struct list_source *s)
{
	bool proto = s->view.accept.media == MEDIA_PROTO;
	pieces_clear(&s->pieces);
	if (s->at < s->page.n)
		return proto ? next_proto_item(s) : next_item(s);
	s->ended = true;
	pieces_add(&s->pieces, proto ? view_proto_end() : view_list_end(&s->view, s->page.n == 0));
	return 0;
}

static ssize_t source_fill(struct http_source *source, char *p, size_t n)
{
	struct list_source *s = CONTAINER_OF(source, struct list_source, source);
	size_t done = pieces_take(&s->pieces, p, n);
	while (done < n && !s->ended) {
		if (pieces_empty(&s->pieces) && next_pieces(s) < 0)
			return -ERR_INTERNAL;
		done += pieces_take(&s->pieces, p + done, n - done);
	}
	return (ssize_t)done;
}

/* ---- at once ---- */

/* Everything that is left becomes one piece of s->made. */
static void ready(struct list_source *s)
{
	s->ended = true;
	s->at = s->page.n;
	pieces_clear(&s->pieces);
	pieces_add(&s->pieces, buf_str(&s->made));
}

static int make_json(struct list_source *s, const struct accept *accept, struct err *err)
{
	CLEANUP(arena_done) struct arena whole = ARENA_INIT;
	CLEANUP(buf_done) struct buf json = BUF_INIT(GATHERED_MAX);
	buf_add(&json, buf_str(&s->made));
	for (size_t i = 0; i < s->page.n; i++) {
		arena_reset(&s->scratch);
		if (i)
			buf_addc(&json, ',');
		int r = view_list_item(&s->view, s->page.objects[i], &s->scratch, &json, err);
		if (r < 0)
			return r;
	}
	buf_add(&json, view_list_end(&s->view, s->page.n == 0));
	buf_reset(&s->made);
	int r = buf_check(&json, "the list", err);
	if (r >= 0)
		r = view_reshape(accept, buf_str(&json), &whole, &s->made, err);
	if (accept->media == MEDIA_JSON)
		buf_addc(&s->made, '\n');
	ready(s);
	return r;
}

/* Protobuf of items that have no shared bytes. */
static int make_proto(struct list_source *s, struct err *err)
{
	CLEANUP(buf_done) struct buf items = BUF_INIT(GATHERED_MAX), message = BUF_INIT(GATHERED_MAX);
	for (size_t i = 0; i < s->page.n; i++) {
		arena_reset(&s->scratch);
		buf_reset(&message);
		int r = view_proto_message(&s->view, s->page.objects[i], &s->scratch, &message, err);
		if (r < 0)
			return r;
		view_proto_item(&s->view, message.n, &items);
		buf_add(&items, buf_str(&message));
	}
	int r = buf_check(&items, "the list", err);
	if (r >= 0)
		r = view_proto_begin(&s->view, &s->page.head, items.n, &s->scratch, &s->made, err);
	buf_add(&s->made, buf_str(&items));
	buf_add(&s->made, view_proto_end());
	ready(s);
	return r;
}

static int begin_proto(struct list_source *s, struct err *err)
{
	CLEANUP(buf_done) struct buf tag = BUF_INIT(64);
	size_t total = 0;
	if (!s->view.shared)
		return make_proto(s, err);
	for (size_t i = 0; i < s->page.n; i++) {
		const struct bytes *b = object_proto(s->page.objects[i]);
		size_t n = b->n - b->skip - b->tail;
		buf_reset(&tag);
		view_proto_item(&s->view, n, &tag);
		total += tag.n + n;
	}
	return view_proto_begin(&s->view, &s->page.head, total, &s->scratch, &s->made, err);
}

/* An object and its place in a table whose rows have an order of their own. */
struct ranked {
	int64_t rank;
	struct object *object;
};

static int by_rank(const void *x, const void *y)
{
	const struct ranked *a = x, *b = y;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return str_cmp(a->object->key, b->object->key);
}

static void sort_rows(struct list_source *s)
{
	table_rank_fn *rank = s->view.accept.as == AS_TABLE ? table_rank(table_of(s->view.endpoint->type)) : NULL;
	if (!rank)
		return;
	struct ranked *all = ARENA_ARRAY(&s->scratch, struct ranked, s->page.n);
	for (size_t i = 0; i < s->page.n; i++)
		all[i] = (struct ranked){ rank(s->page.objects[i]->val), s->page.objects[i] };
	if (s->page.n)
		qsort(all, s->page.n, sizeof *all, by_rank);
	for (size_t i = 0; i < s->page.n; i++)
		s->page.objects[i] = all[i].object;
}

static int begin(struct list_source *s, struct err *err)
{
	int r;
	sort_rows(s);
	if (s->view.accept.media == MEDIA_PROTO)
		r = begin_proto(s, err);
	else
		r = view_list_begin(&s->view, &s->page.head, s->page.n == 0, &s->scratch, &s->made, err);
	if (r >= 0 && (s->view.accept.media == MEDIA_YAML || s->view.accept.pretty))
		r = make_json(s, &s->view.accept, err);
	if (r >= 0 && pieces_empty(&s->pieces))
		pieces_add(&s->pieces, buf_str(&s->made));
	return r;
}

/* Whether the answer will be long: sizes as they are cached are near enough. */
static bool is_large(const struct list_source *s)
{
	size_t total = s->made.n;
	bool proto = s->view.accept.media == MEDIA_PROTO;
	for (size_t i = 0; i < s->page.n && total <= LARGE; i++)
		total += proto ? object_proto(s->page.objects[i])->n : object_json(s->page.objects[i])->n;
	return total > LARGE;
}

static struct list_source *source_new(const struct view *view, const struct list_page *page)
{
	struct list_source *s = mem_zalloc(sizeof(*s));
	s->source = (struct http_source){ .fill = source_fill, .stop = source_stop };
	s->view = *view;
	s->page = *page;
	buf_init(&s->made, GATHERED_MAX);
	return s;
}

/* The whole list as JSON, for the audit. */
static void tell_audit(struct request *q, const struct view *view, const struct list_page *page)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(GATHERED_MAX);
	struct view json = *view;
	struct list_page copy = list_page_ref(page);
	json.accept.media = MEDIA_JSON;
	json.accept.pretty = false;
	struct list_source *s = source_new(&json, &copy);
	ssize_t n = begin(s, NULL) < 0 ? -1 : 1;
	while (n > 0) {
		char *room = buf_reserve(&text, AUDIT_BYTES);
		n = room ? source_fill(&s->source, room, AUDIT_BYTES) : -1;
		if (n > 0)
			buf_commit(&text, (size_t)n);
	}
	source_stop(&s->source);
	if (n == 0)
		audit_response_object(q, buf_str(&text));
}

int list_answer(struct request *q, struct list_page *page, struct err *err)
{
	struct view view;
	int r = view_of(q, &view);
	if (r >= 0)
		r = fiber_check(err);
	if (r < 0) {
		list_page_done(page);
		return r;
	}
	if (UNLIKELY(audit_wants_response(q)))
		tell_audit(q, &view, page);
	struct list_source *s = source_new(&view, page);
	r = begin(s, err);
	if (r < 0) {
		source_stop(&s->source);
		return fail_err(q, err);
	}
	str encodings = http_request_header(q->http, STR("accept-encoding"));
	s->answer = (struct list_answer){ .source = &s->source, .large = encodings.n && is_large(s), .page = &s->page };
	q->answer.kind = ANSWER_LIST;
	q->answer.status = 200;
	q->answer.list = &s->answer;
	return 0;
}

int read_list(struct request *q, struct err *err)
{
	struct list_options options;
	struct list_page page;
	int r = list_options_read(q, &options, err);
	if (r >= 0)
		r = list_gather(q, &options, &page, err);
	return r < 0 ? r : list_answer(q, &page, err);
}
