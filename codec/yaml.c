/*
 * From YAML to JSON, in the steps of Kubernetes' parser: libyaml's events become a tree of nodes with their anchors,
 * the nodes are walked with aliases and merge keys expanded, and what comes out is assembled as a free JSON tree with
 * sorted keys. Nothing recurses.
 *
 * Aliases can blow a small text up: as in go-yaml, the share of nodes that come from aliases is limited, the more so
 * the more there are.
 */
#include "codec/yaml.h"

#include <math.h>
#include <stdlib.h>
#include <yaml.h>

#include "base/encoding.h"
#include "base/map.h"
#include "base/mem.h"
#include "codec/assemble.h"
#include "codec/go.h"
#include "codec/yaml_resolve.h"

/*
 * libyaml's work per token grows with the depth of flow collections, [] and {}. Kubernetes' limit of 10000 would let
 * a few megabytes of brackets keep a thread busy for minutes.
 */
enum { YAML_MAX_DEPTH = 1000, YAML_MAX_FLOW_DEPTH = 100, YAML_MAX_DIRECTIVES = 100 };

enum node_kind { NODE_SCALAR, NODE_SEQUENCE, NODE_MAPPING, NODE_ALIAS };

struct node {
	uint8_t kind;        /* enum node_kind */
	bool implicit;       /* plain scalar without a tag */
	bool flow;           /* sequence, mapping: in brackets */
	bool busy;           /* alias: being expanded */
	uint32_t n;          /* sequence, mapping: number of children; keys and values take turns */
	unsigned line;       /* from 0 */
	str tag, value;      /* value: also the name of an alias */
	struct node *first, *last, *next;
	struct node *target; /* alias */
};

/* ---- from events to nodes ---- */

struct reader {
	yaml_parser_t parser;
	struct arena *arena;
	struct map anchors;
	struct node *stack[YAML_MAX_DEPTH];
	unsigned depth, flow_depth;
	struct node *root;
	str input;           /* not given to the parser yet */
};

/* In small portions, as go-yaml reads: what is wrong far behind the first document does not matter then. */
static int give_input(void *data, unsigned char *room, size_t size, size_t *ret_n)
{
	struct reader *r = data;
	size_t most = MIN(size, (size_t)512), n = MIN(most, r->input.n);

	memcpy(room, r->input.p, n);
	r->input = str_skip(r->input, n);
	*ret_n = n;
	return 1;
}

/* As go-yaml finds the line of a problem, with all its oddities. */
static int parser_error(const yaml_parser_t *p, struct err *err)
{
	size_t problem_line = p->problem_mark.line + (p->error == YAML_SCANNER_ERROR);
	size_t line = p->problem_mark.line ? problem_line : p->context_mark.line;
	const char *problem = p->problem ? p->problem : "unknown problem parsing YAML content";

	if (line)
		return err_set(err, ERR_BAD_REQUEST, "yaml: line %zu: %s", line, problem);
	return err_set(err, ERR_BAD_REQUEST, "yaml: %s", problem);
}

static str event_str(struct reader *r, const yaml_char_t *s, size_t n)
{
	return s ? arena_str(r->arena, str_span((const char *)s, n)) : STR_NONE;
}

static str event_name(struct reader *r, const yaml_char_t *s) { return event_str(r, s, s ? strlen((const char *)s) : 0); }

static void add_node(struct reader *r, struct node *n, const yaml_char_t *anchor)
{
	struct node *parent = r->depth ? r->stack[r->depth - 1] : NULL;

	if (!parent) {
		r->root = n;
	} else {
		*(parent->last ? &parent->last->next : &parent->first) = n;
		parent->last = n;
		parent->n++;
	}
	if (anchor)
		map_put(&r->anchors, event_name(r, anchor), n);
}

static int open_collection(struct reader *r, struct node *n, const yaml_char_t *anchor, struct err *err)
{
	bool flow_too_deep = n->flow && r->flow_depth == YAML_MAX_FLOW_DEPTH;

	add_node(r, n, anchor);
	if (flow_too_deep || r->depth == YAML_MAX_DEPTH)
		return err_set(err, ERR_BAD_REQUEST, "yaml: line %u: exceeded max depth of %d", n->line + 1,
			       flow_too_deep ? YAML_MAX_FLOW_DEPTH : YAML_MAX_DEPTH);
	r->stack[r->depth++] = n;
	r->flow_depth += n->flow;
	return 0;
}

static void close_collection(struct reader *r)
{
	r->depth--;
	r->flow_depth -= r->stack[r->depth]->flow;
}

/* libyaml takes version 1.2 as well, Kubernetes' parser does not. */
static int check_version(const yaml_event_t *e, struct err *err)
{
	const yaml_version_directive_t *version = e->data.document_start.version_directive;
	size_t line = e->start_mark.line;

	if (!version || (version->major == 1 && version->minor == 1))
		return 0;
	if (line)
		return err_set(err, ERR_BAD_REQUEST, "yaml: line %zu: found incompatible YAML document", line);
	return err_set(err, ERR_BAD_REQUEST, "yaml: found incompatible YAML document");
}

static int handle_event(struct reader *r, const yaml_event_t *e, struct err *err)
{
	struct node *n;

	switch (e->type) {
	case YAML_DOCUMENT_START_EVENT: return check_version(e, err);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT: close_collection(r); return 0;
	case YAML_SCALAR_EVENT:
	case YAML_ALIAS_EVENT:
	case YAML_SEQUENCE_START_EVENT:
	case YAML_MAPPING_START_EVENT: break;
	default: return 0;
	}
	n = ARENA_NEW(r->arena, struct node);
	n->line = (unsigned)e->start_mark.line;
	if (e->type == YAML_SEQUENCE_START_EVENT || e->type == YAML_MAPPING_START_EVENT) {
		bool list = e->type == YAML_SEQUENCE_START_EVENT;
		n->kind = list ? NODE_SEQUENCE : NODE_MAPPING;
		n->flow = list ? e->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE
			       : e->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE;
		return open_collection(r, n, list ? e->data.sequence_start.anchor : e->data.mapping_start.anchor, err);
	}
	if (e->type == YAML_SCALAR_EVENT) {
		n->kind = NODE_SCALAR;
		n->implicit = e->data.scalar.plain_implicit;
		n->tag = event_name(r, e->data.scalar.tag);
		n->value = event_str(r, e->data.scalar.value, e->data.scalar.length);
		add_node(r, n, e->data.scalar.anchor);
		return 0;
	}
	n->kind = NODE_ALIAS;
	n->value = event_name(r, e->data.alias.anchor);
	n->target = map_get(&r->anchors, n->value);
	if (!n->target)
		return err_set(err, ERR_BAD_REQUEST, "yaml: unknown anchor '" STR_FMT "' referenced", STR_ARG(n->value));
	add_node(r, n, NULL);
	return 0;
}

/* Nobody writes more than a few of them, and libyaml compares each with all others. */
static int check_directives(str text, struct err *err)
{
	unsigned n = 0;
	str line;

	while (text.n && n <= YAML_MAX_DIRECTIVES) {
		str_cut(text, '\n', &line, &text);
		n += line.n && line.p[0] == '%';
		line = str_trim(line);
		if (line.n && line.p[0] != '%' && line.p[0] != '#')
			break;
	}
	if (n > YAML_MAX_DIRECTIVES)
		return err_set(err, ERR_BAD_REQUEST, "yaml: more than %d directives", YAML_MAX_DIRECTIVES);
	return 0;
}

/* The first document; *ret is NULL if there is none. */
static int read_nodes(struct arena *a, str text, struct node **ret, struct err *err)
{
	struct reader *r = mem_zalloc(sizeof(*r));
	bool more = true;
	int result = check_directives(text, err);

	r->arena = a;
	if (!yaml_parser_initialize(&r->parser))
		abort(); /* out of memory */
	r->input = text.n ? text : STR("\n");
	yaml_parser_set_input(&r->parser, give_input, r);
	while (result == 0 && more) {
		yaml_event_t e;
		if (!yaml_parser_parse(&r->parser, &e)) {
			result = parser_error(&r->parser, err);
			break;
		}
		result = handle_event(r, &e, err);
		more = e.type != YAML_STREAM_END_EVENT && e.type != YAML_DOCUMENT_END_EVENT;
		yaml_event_delete(&e);
	}
	*ret = r->root;
	yaml_parser_delete(&r->parser);
	map_done(&r->anchors);
	free(r);
	return result;
}

/* ---- from nodes to JSON ---- */

enum step_kind { WALK_SEQUENCE, WALK_MAPPING, WALK_MERGE, WALK_MERGE_LIST, WALK_ALIAS };

struct walk_step {
	uint8_t kind;           /* enum step_kind */
	uint32_t map;           /* mapping: number of the mapping that keys go to, for finding duplicates */
	struct node *node;      /* alias: the alias itself */
	struct node *next;      /* the next child */
	struct node *key;       /* mapping: the key of the member whose value was decoded last */
	struct node **list;     /* merge list: the children */
	uint32_t left;          /*   ... that are still to come, from the last to the first */
};

struct walker {
	struct assembly as;
	struct arena *arena;
	struct walk_step *steps;
	uint32_t n_steps, cap_steps, n_maps;
	uint64_t decoded, aliased;
	uint32_t alias_depth;
	struct map keys;        /* number of the mapping, type and text of the key */
	struct buf *duplicates;
	struct err *err;
};

static int fail(struct walker *w, const char *problem) { return err_set(w->err, ERR_BAD_REQUEST, "yaml: %s", problem); }

/* The share of nodes that may come from aliases: nearly all of a small document, a tenth of a very large one. */
static int count_node(struct walker *w)
{
	const double low = 400000, high = 4000000;
	double allowed = 0.99;

	w->decoded++;
	w->aliased += w->alias_depth > 0;
	if (w->aliased <= 100 || w->decoded <= 1000)
		return 0;
	if ((double)w->decoded >= high)
		allowed = 0.10;
	else if ((double)w->decoded > low)
		allowed = 0.99 - 0.89 * ((double)w->decoded - low) / (high - low);
	if ((double)w->aliased / (double)w->decoded > allowed)
		return fail(w, "document contains excessive aliasing");
	return 0;
}

static struct walk_step *push(struct walker *w, enum step_kind kind, struct node *n)
{
	if (w->n_steps == w->cap_steps) {
		w->cap_steps = w->cap_steps ? 2 * w->cap_steps : 32;
		w->steps = mem_resize(w->steps, w->cap_steps * sizeof(*w->steps));
	}
	struct walk_step *s = &w->steps[w->n_steps++];
	*s = (struct walk_step){ .kind = (uint8_t)kind, .node = n, .next = n->first };
	return s;
}

static int enter_alias(struct walker *w, struct node *n)
{
	if (n->busy)
		return err_set(w->err, ERR_BAD_REQUEST, "yaml: anchor '" STR_FMT "' value contains itself",
			       STR_ARG(n->value));
	n->busy = true;
	w->alias_depth++;
	push(w, WALK_ALIAS, n);
	return 0;
}

static int resolve_node(struct walker *w, const struct node *n, struct yaml_scalar *ret, str *ret_text)
{
	*ret_text = n->value;
	if (!n->tag.n && !n->implicit) {
		*ret = (struct yaml_scalar){ .kind = YAML_STR };
		return 0;
	}
	int r = yaml_resolve_tagged(n->tag, n->value, ret, w->err);
	if (r < 0 || ret->kind != YAML_BINARY)
		return r;
	char *bytes = arena_alloc(w->arena, base64_decoded_max(n->value.n) + 1, 1);
	size_t length;
	if (base64_decode(bytes, n->value, &length, NULL) < 0)
		return fail(w, "!!binary value contains invalid base64 data");
	*ret_text = str_span(bytes, length);
	ret->kind = YAML_STR;
	return 0;
}

static int visit_scalar(struct walker *w, const struct node *n)
{
	struct yaml_scalar s;
	char digits[GO_INT_MAX];
	str text;
	int r = resolve_node(w, n, &s, &text);

	if (r < 0)
		return r;
	switch (s.kind) {
	case YAML_NULL: assembly_deliver(&w->as, VAL_NULL_VALUE); break;
	case YAML_BOOL: assembly_deliver(&w->as, val_of_bool(s.b)); break;
	case YAML_INT: assembly_deliver(&w->as, val_of_int(s.i)); break;
	case YAML_UINT: /* too large for the tree: kept as the text that it is in JSON */
		assembly_raw(&w->as, arena_str(w->arena, go_format_uint(s.u, digits)));
		break;
	case YAML_FLOAT: assembly_deliver(&w->as, val_of_double(s.d)); break;
	default: assembly_deliver(&w->as, val_of_str(text));
	}
	return 0;
}

/* Any node in the place of a value. */
static int visit(struct walker *w, struct node *n)
{
	int r = count_node(w);

	while (r == 0 && n->kind == NODE_ALIAS) {
		r = enter_alias(w, n);
		n = n->target;
		if (r == 0)
			r = count_node(w);
	}
	if (r < 0)
		return r;
	if (n->kind == NODE_SCALAR)
		return visit_scalar(w, n);
	if (w->as.n_frames == VAL_MAX_DEPTH)
		return fail(w, "exceeded max depth of 10000");
	(void)assembly_open(&w->as, n->kind == NODE_MAPPING);
	push(w, n->kind == NODE_MAPPING ? WALK_MAPPING : WALK_SEQUENCE, n)->map = w->n_maps++;
	return 0;
}

/* ---- keys ---- */

static void add_go_syntax(struct walker *w, struct buf *b, const struct node *n, unsigned depth);

static void add_scalar_go_syntax(struct walker *w, struct buf *b, const struct node *n)
{
	struct yaml_scalar s;
	char number[GO_FLOAT_MAX];
	str text;

	if (resolve_node(w, n, &s, &text) < 0)
		s.kind = YAML_STR;
	switch (s.kind) {
	case YAML_NULL: buf_add(b, STR("interface {}(nil)")); break;
	case YAML_BOOL: buf_add(b, s.b ? STR("true") : STR("false")); break;
	case YAML_INT: buf_add(b, go_format_int(s.i, number)); break;
	case YAML_UINT: buf_addf(b, "0x%llx", (unsigned long long)s.u); break;
	case YAML_FLOAT:
		if (isfinite(s.d))
			buf_add(b, go_format_float(s.d, false, GO_FLOAT_G, number));
		else
			buf_add(b, isnan(s.d) ? STR("NaN") : s.d < 0 ? STR("-Inf") : STR("+Inf"));
		break;
	default: buf_add_quoted(b, text);
	}
}

/* Pairs of a mapping by the text of their keys, as fmt sorts them. */
static int compare_pairs(const void *x, const void *y)
{
	return str_cmp((*(struct node *const *)x)->value, (*(struct node *const *)y)->value);
}

static void add_mapping_go_syntax(struct walker *w, struct buf *b, const struct node *n, unsigned depth)
{
	struct node **keys = ARENA_ARRAY(w->arena, struct node *, n->n / 2 + 1);
	uint32_t n_keys = 0;

	for (struct node *key = n->first; key && key->next; key = key->next->next)
		keys[n_keys++] = key;
	qsort(keys, n_keys, sizeof(*keys), compare_pairs);
	buf_add(b, STR("map[interface {}]interface {}{"));
	for (uint32_t i = 0; i < n_keys && !b->overflow; i++) {
		buf_add(b, i ? STR(", ") : STR(""));
		add_go_syntax(w, b, keys[i], depth - 1);
		buf_addc(b, ':');
		add_go_syntax(w, b, keys[i]->next, depth - 1);
	}
	buf_addc(b, '}');
}

/* fmt's %#v, as deep and as long as a message can show. */
static void add_go_syntax(struct walker *w, struct buf *b, const struct node *n, unsigned depth)
{
	if (n->kind == NODE_ALIAS)
		n = n->target;
	if (n->kind == NODE_SCALAR || depth == 0) {
		add_scalar_go_syntax(w, b, n);
	} else if (n->kind == NODE_MAPPING) {
		add_mapping_go_syntax(w, b, n, depth);
	} else {
		buf_add(b, STR("[]interface {}{"));
		for (const struct node *c = n->first; c && !b->overflow; c = c->next) {
			buf_add(b, c == n->first ? STR("") : STR(", "));
			add_go_syntax(w, b, c, depth - 1);
		}
		buf_addc(b, '}');
	}
}

static str go_syntax(struct walker *w, const struct node *n)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(4096);
	add_go_syntax(w, &b, n, 8);
	return arena_str(w->arena, buf_str(&b));
}

/* At the top, Go prints nil otherwise than inside of something. */
static str go_value(struct walker *w, const struct node *n)
{
	str text = go_syntax(w, n);
	return str_eq(text, STR("interface {}(nil)")) ? STR("<nil>") : text;
}

static int bad_key(struct walker *w, const char *type, const struct node *key, const struct node *value)
{
	str k = go_value(w, key), v = go_value(w, value);
	return err_set(w->err, ERR_BAD_REQUEST, "unsupported map key of type: %s, key: " STR_FMT ", value: " STR_FMT,
		       type, STR_ARG(k), STR_ARG(v));
}

/* Keys that are no strings become what they look like. */
static int key_text(struct walker *w, const struct node *key, const struct node *value, struct yaml_scalar *s, str *ret)
{
	char number[GO_FLOAT_MAX];
	int r = resolve_node(w, key, s, ret);

	if (r < 0)
		return r;
	switch (s->kind) {
	case YAML_NULL: return bad_key(w, "%!s(<nil>)", key, value);
	case YAML_UINT: return bad_key(w, "uint64", key, value);
	case YAML_BOOL: *ret = s->b ? STR("true") : STR("false"); break;
	case YAML_INT: *ret = arena_str(w->arena, go_format_int(s->i, number)); break;
	case YAML_FLOAT:
		if (isfinite((float)s->d))
			*ret = arena_str(w->arena, go_format_float((double)(float)s->d, true, GO_FLOAT_G, number));
		else
			*ret = isnan(s->d) ? STR(".nan") : s->d < 0 ? STR("-.inf") : STR(".inf");
		break;
	default: break;
	}
	return 0;
}

/*
 * Go notices a key that is there already after it has decoded the value. Two keys are the same when they are of one
 * type too: 1 and "1" are not.
 */
static void check_duplicate(struct walker *w, uint32_t map, const struct node *key)
{
	const struct node *k = key->kind == NODE_ALIAS ? key->target : key, *value = key->next;
	struct yaml_scalar s;
	str text;

	if (key_text(w, k, value, &s, &text) < 0)
		return; /* cannot be: it was accepted before */
	enum yaml_kind kind = s.kind == YAML_TIMESTAMP ? YAML_STR : s.kind;
	str full = arena_printf(w->arena, "%u %d " STR_FMT, map, (int)kind, STR_ARG(text));
	if (!map_put(&w->keys, full, w))
		return;
	text = go_syntax(w, k);
	buf_add(w->duplicates, w->duplicates->n ? STR("\n") : STR("yaml: unmarshal errors:\n"));
	buf_addf(w->duplicates, "  line %u: key " STR_FMT " already set in map", value->line + 1, STR_ARG(text));
}

static int visit_member(struct walker *w, struct node *key, struct node *value)
{
	struct node *k = key;
	struct yaml_scalar s;
	str text;
	int r = count_node(w);

	if (r == 0 && key->kind == NODE_ALIAS) {
		w->alias_depth++;
		r = count_node(w);
		w->alias_depth--;
		k = key->target;
	}
	if (r < 0)
		return r;
	if (k->kind != NODE_SCALAR) {
		/* Of keys inside of keys, the innermost fails first. */
		while (k->kind == NODE_MAPPING && k->first &&
		       (k->first->kind == NODE_MAPPING || k->first->kind == NODE_SEQUENCE))
			k = k->first;
		str shown = go_syntax(w, k);
		return err_set(w->err, ERR_BAD_REQUEST, "yaml: invalid map key: " STR_FMT, STR_ARG(shown));
	}
	r = key_text(w, k, value, &s, &text);
	if (r < 0)
		return r;
	(void)assembly_key(&w->as, text, 0);
	return visit(w, value);
}

/* ---- merging ---- */

static bool is_merge_key(const struct node *n)
{
	return n->kind == NODE_SCALAR && str_eq(n->value, STR("<<")) &&
	       (n->implicit || str_eq(n->tag, STR("tag:yaml.org,2002:merge")));
}

/* The members of a mapping, or of an alias of one, go into the mapping that is open. */
static int merge_mapping(struct walker *w, uint32_t map, struct node *n)
{
	int r = count_node(w);

	if (r == 0 && n->kind == NODE_ALIAS) {
		r = enter_alias(w, n);
		n = n->target;
		if (r == 0)
			r = count_node(w);
	}
	if (r < 0)
		return r;
	if (n->kind != NODE_MAPPING)
		return fail(w, "map merge requires map or sequence of maps as the value");
	push(w, WALK_MERGE, n)->map = map;
	return 0;
}

static int merge(struct walker *w, uint32_t map, struct node *n)
{
	if (n->kind != NODE_SEQUENCE)
		return merge_mapping(w, map, n);
	struct walk_step *s = push(w, WALK_MERGE_LIST, n);
	s->map = map;
	s->list = ARENA_ARRAY(w->arena, struct node *, n->n);
	for (struct node *c = n->first; c; c = c->next)
		s->list[s->left++] = c;
	return 0;
}

/* ---- walking ---- */

static int step_members(struct walker *w, struct walk_step *s)
{
	struct node *key = s->next, *value = key ? key->next : NULL;
	uint32_t map = s->map;

	if (s->key && w->duplicates)
		check_duplicate(w, map, s->key);
	if (!value) {
		if (s->kind == WALK_MAPPING)
			assembly_close(&w->as);
		w->n_steps--;
		return 0;
	}
	s->next = value->next;
	s->key = is_merge_key(key) ? NULL : key;
	return s->key ? visit_member(w, key, value) : merge(w, map, value);
}

/* Earlier mappings of a list win, so they are merged last. */
static int step_merge_list(struct walker *w, struct walk_step *s)
{
	if (s->left == 0) {
		w->n_steps--;
		return 0;
	}
	struct node *n = s->list[--s->left];
	if (n->kind == NODE_SCALAR || n->kind == NODE_SEQUENCE)
		return fail(w, "map merge requires map or sequence of maps as the value");
	return merge_mapping(w, s->map, n);
}

static int step(struct walker *w)
{
	struct walk_step *s = &w->steps[w->n_steps - 1];

	switch ((enum step_kind)s->kind) {
	case WALK_SEQUENCE:
		if (s->next) {
			struct node *n = s->next;
			s->next = n->next;
			return visit(w, n);
		}
		assembly_close(&w->as);
		w->n_steps--;
		return 0;
	case WALK_MAPPING:
	case WALK_MERGE: return step_members(w, s);
	case WALK_MERGE_LIST: return step_merge_list(w, s);
	case WALK_ALIAS:
		s->node->busy = false;
		w->alias_depth--;
		w->n_steps--;
		return 0;
	}
	return 0;
}

static int write_json(struct walker *w, struct buf *json)
{
	struct json_encode_options opt = { .type = NULL };
	struct val v;
	int r = assembly_finish(&w->as, &v, w->err);

	if (r == 0)
		r = json_encode(json, v, &opt, w->err);
	if (r != -ERR_INTERNAL)
		return r;
	w->err->code = ERR_BAD_REQUEST; /* infinite numbers are not our fault but the text's */
	return -ERR_BAD_REQUEST;
}

static int nodes_to_json(struct arena *a, struct node *root, struct buf *json, struct buf *duplicates, struct err *err)
{
	struct err local = ERR_INIT;
	struct walker w = { .arena = a, .duplicates = duplicates, .err = err ? err : &local, .decoded = 1 };

	map_init(&w.keys);
	assembly_init(&w.as, a, NULL, NULL);
	w.as.sort_free = true;
	int r = visit(&w, root);
	while (r == 0 && w.n_steps)
		r = step(&w);
	if (r == 0)
		r = write_json(&w, json);
	assembly_done(&w.as);
	map_done(&w.keys);
	free(w.steps);
	return r;
}

int yaml_to_json(str text, struct buf *json, struct buf *duplicates, struct err *err)
{
	struct arena a = ARENA_INIT;
	struct node *root = NULL;
	if (text.n >= UINT32_MAX)
		return err_set(err, ERR_TOO_LARGE, "YAML of %zu bytes is too large", text.n);
	int r = read_nodes(&a, text, &root, err);
	if (r == 0 && root)
		r = nodes_to_json(&a, root, json, duplicates, err);
	else if (r == 0)
		buf_add(json, STR("null"));
	arena_done(&a);
	return r < 0 ? r : buf_check(json, "JSON", err);
}
