/*
 * The walks over one value. Each has the same form: find the type's shape, choose among the shapes by the value, and
 * go on with the members or items. Sets are built from the leaves up.
 */
#include "machinery/apply_walk_priv.h"
#include "machinery/patch_priv.h"

/* ---- validating ---- */

/* %#v of a decoded JSON value. */
static void print_go_syntax(struct arena *a, struct buf *b, struct val v)
{
	if (v.type != VAL_OBJECT && v.type != VAL_LIST) {
		if (v.type == VAL_STRING)
			buf_add_quoted(b, val_as_str(v));
		else if (val_is_nil(v))
			buf_add(b, STR("interface {}(nil)"));
		else
			patch_go_print(b, v);
		return;
	}
	v = patch_sorted(a, v);
	buf_add(b, v.type == VAL_LIST ? STR("[]interface {}{") : STR("map[string]interface {}{"));
	for (uint32_t i = 0; i < v.n && !b->overflow; i++) {
		if (i)
			buf_add(b, STR(", "));
		if (v.type == VAL_OBJECT) {
			buf_add_quoted(b, atom_str(v.members[i].key));
			buf_addc(b, ':');
		}
		print_go_syntax(a, b, v.type == VAL_LIST ? v.items[i] : v.members[i].val);
	}
	buf_addc(b, '}');
}

static const char *go_type_name(struct val v)
{
	switch ((enum val_type)v.type) {
	case VAL_BOOL: return "bool";
	case VAL_INT: return "int64";
	case VAL_DOUBLE: return "float64";
	case VAL_STRING: return "string";
	case VAL_LIST: return "[]interface {}";
	case VAL_RAW:
	case VAL_OBJECT: return "map[string]interface {}";
	case VAL_NONE:
	case VAL_NULL: break;
	}
	return "<nil>";
}

static void validate_scalar(struct typed_walk *w, enum apply_scalar scalar, struct val v, const struct step *at)
{
	bool number = v.type == VAL_INT || v.type == VAL_DOUBLE, any = v.type >= VAL_BOOL && v.type <= VAL_STRING;

	if (val_is_nil(v) || (scalar == APPLY_NUMERIC && number) || (scalar == APPLY_STRING && v.type == VAL_STRING) ||
	    (scalar == APPLY_BOOLEAN && v.type == VAL_BOOL) || (scalar == APPLY_UNTYPED && any))
		return;
	CLEANUP(buf_done) struct buf b = BUF_INIT(2048);
	switch (scalar) {
	case APPLY_NUMERIC:
		buf_addf(&b, "expected numeric (int or float), got %s", go_type_name(v));
		break;
	case APPLY_STRING:
		buf_add(&b, STR("expected string, got &value.valueUnstructured{Value:"));
		print_go_syntax(w->arena, &b, v);
		buf_addc(&b, '}');
		break;
	default:
		buf_addf(&b, "expected %s, got &{", scalar == APPLY_BOOLEAN ? "boolean" : "any scalar");
		patch_go_print(&b, v);
		buf_addc(&b, '}');
	}
	typed_error(w, at, buf_str(&b));
}

static void validate(struct typed_walk *w, struct apply_type t, struct val v, bool duplicates, const struct step *at);

static void validate_map(struct typed_walk *w, struct apply_type t, struct val v, bool duplicates,
			 const struct step *at)
{
	VAL_EACH_MEMBER(m, v) {
		struct apply_type member;
		const struct step *below = STEP(at, path_field(m->key));
		if (!typed_member(t, m->key, &member)) {
			typed_error(w, below, STR("field not declared in schema"));
			return;
		}
		validate(w, member, m->val, duplicates, below);
	}
}

static void validate_list(struct typed_walk *w, struct apply_type t, const struct apply_shape *s, struct val v,
			  bool duplicates, const struct step *at)
{
	struct apply_type item = t.schema->item(t);

	if (s->list_atomic) {
		for (uint32_t i = 0; i < v.n; i++) {
			struct path_element index = { .kind = PATH_INDEX, .index = i };
			validate(w, item, v.items[i], duplicates, STEP(at, index));
		}
		return;
	}
	struct typed_items items;
	typed_items(w, at, t, s, v, TYPED_STOP, &items);
	for (uint32_t i = 0; i < items.n; i++) {
		if (items.v[i].again && !duplicates) {
			CLEANUP(buf_done) struct buf b = BUF_INIT(1024);
			buf_add(&b, STR("duplicate entries for key "));
			path_element_print(&b, &items.v[i].at);
			typed_error(w, at, buf_str(&b));
		}
		validate(w, item, items.v[i].val, duplicates, STEP(at, items.v[i].at));
	}
}

static void mismatch(struct typed_walk *w, const struct step *at, const char *expected, struct val v)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1024);
	buf_addf(&b, "expected %s, got &{", expected);
	patch_go_print(&b, v);
	buf_addc(&b, '}');
	typed_error(w, at, buf_str(&b));
}

static void validate(struct typed_walk *w, struct apply_type t, struct val v, bool duplicates, const struct step *at)
{
	struct apply_shape s = typed_type(t);

	switch (typed_shape_of(&s, v)) {
	case TYPED_SCALAR:
		validate_scalar(w, (enum apply_scalar)s.scalar, v, at);
		break;
	case TYPED_MAP:
		if (v.type == VAL_OBJECT)
			validate_map(w, t, v, duplicates, at);
		else if (v.type != VAL_NULL && v.type != VAL_RAW)
			mismatch(w, at, "map", v);
		break;
	case TYPED_LIST:
		if (v.type == VAL_LIST)
			validate_list(w, t, &s, v, duplicates, at);
		else if (v.type != VAL_NULL)
			mismatch(w, at, "list", v);
		break;
	case TYPED_NOTHING:
		typed_error(w, at, STR("schema error: invalid atom: inlined"));
		break;
	}
}

static bool is_shallow(struct val v, unsigned left)
{
	if (v.type < VAL_LIST)
		return true;
	if (!left)
		return false;
	for (uint32_t i = 0; i < v.n; i++)
		if (!is_shallow(v.type == VAL_LIST ? v.items[i] : v.members[i].val, left - 1))
			return false;
	return true;
}

int apply_validate(struct arena *a, struct apply_type t, struct val v, bool duplicates, struct err *err)
{
	struct typed_walk w = { .arena = a };
	if (!is_shallow(v, VAL_RECURSION_MAX - 1))
		return err_set(err, ERR_BAD_REQUEST, "the object is nested more than %d levels deep",
			       VAL_RECURSION_MAX);
	validate(&w, t, v, duplicates, NULL);
	return typed_result(&w, err);
}

/* ---- the fields of a value ---- */

struct fields {
	struct typed_walk walk;
	struct field_set_builder sets;
};

/* The set below the value; *ret_leaf says that the value itself is to be owned. */
static struct field_set fields_of(struct fields *f, struct apply_type t, struct val v, const struct step *at,
				  bool *ret_leaf);

static struct field_set fields_of_map(struct fields *f, struct apply_type t, struct val v, const struct step *at)
{
	uint32_t begin = field_set_begin(&f->sets);
	VAL_EACH_MEMBER(m, v) {
		struct apply_type member = { 0 };
		bool leaf, declared = typed_member(t, m->key, &member) == 2;
		bool nothing = m->val.type == VAL_NULL || (m->val.type == VAL_OBJECT && !m->val.n);
		struct field_set below = fields_of(f, member, m->val, STEP(at, path_field(m->key)), &leaf);
		field_set_add(&f->sets, path_field(m->key), leaf || nothing || !declared, below);
	}
	return field_set_end(&f->sets, begin);
}

/* An item is always owned along with what it holds. Items that share a key are owned as one, without a look inside. */
static struct field_set fields_of_list(struct fields *f, struct apply_type t, const struct apply_shape *s,
				       struct val v, const struct step *at)
{
	struct apply_type item = t.schema->item(t);
	struct typed_items items;
	uint32_t begin = field_set_begin(&f->sets);

	typed_items(&f->walk, at, t, s, v, TYPED_KEEP, &items);
	for (uint32_t i = 0; i < items.n; i++) {
		struct field_set below = FIELD_SET_EMPTY;
		bool leaf;
		if (!items.v[i].again && !items.v[i].more)
			below = fields_of(f, item, items.v[i].val, STEP(at, items.v[i].at), &leaf);
		field_set_add(&f->sets, items.v[i].at, true, below);
	}
	return field_set_end(&f->sets, begin);
}

static struct field_set fields_of(struct fields *f, struct apply_type t, struct val v, const struct step *at,
				  bool *ret_leaf)
{
	struct apply_shape s = typed_type(t);

	*ret_leaf = false;
	if (typed_too_deep(&f->walk, at))
		return FIELD_SET_EMPTY;
	switch (typed_shape_of(&s, v)) {
	case TYPED_MAP:
		*ret_leaf = s.map_atomic;
		return s.map_atomic ? FIELD_SET_EMPTY : fields_of_map(f, t, v, at);
	case TYPED_LIST:
		*ret_leaf = s.list_atomic;
		return s.list_atomic ? FIELD_SET_EMPTY : fields_of_list(f, t, &s, v, at);
	case TYPED_SCALAR:
		*ret_leaf = true;
		break;
	case TYPED_NOTHING:
		break;
	}
	return FIELD_SET_EMPTY;
}

int apply_fields(struct arena *a, struct apply_type t, struct val v, struct field_set *ret, struct err *err)
{
	struct fields f = { .walk = { .arena = a }, .sets = { .arena = a } };
	bool leaf;
	struct field_set s = fields_of(&f, t, v, NULL, &leaf);
	field_set_builder_done(&f.sets);
	int r = typed_result(&f.walk, err);
	if (r == 0)
		*ret = s;
	return r;
}

/* ---- removing ---- */

static struct val remove_from_map(struct arena *a, struct apply_type t, struct val v, struct field_set s)
{
	struct val_builder b = val_builder(a);
	VAL_EACH_MEMBER(m, v) {
		struct path_element at = path_field(m->key);
		const struct field_node *node = field_set_find(s, &at);
		if (!node) {
			val_add_member(&b, m->key, m->val);
			continue;
		}
		if (node->member)
			continue;
		struct apply_type member = { 0 };
		typed_member(t, m->key, &member);
		val_add_member(&b, m->key, apply_remove(a, member, m->val, field_node_set(node)));
	}
	return b.n ? val_end_object(&b) : VAL_NULL_VALUE;
}

static struct val remove_from_list(struct arena *a, struct apply_type t, const struct apply_shape *shape,
				   struct val v, struct field_set s)
{
	struct typed_walk w = { .arena = a };
	struct val_builder b = val_builder(a);
	struct apply_type item = t.schema->item(t);
	struct typed_items items;

	typed_items(&w, NULL, t, shape, v, TYPED_KEEP, &items);
	for (uint32_t i = 0; i < items.n; i++) {
		const struct field_node *node = field_set_find(s, &items.v[i].at);
		if (!node)
			val_add_item(&b, items.v[i].val);
		else if (!node->member)
			val_add_item(&b, apply_remove(a, item, items.v[i].val, field_node_set(node)));
	}
	return b.n ? val_end_list(&b) : VAL_NULL_VALUE;
}

struct val apply_remove(struct arena *a, struct apply_type t, struct val v, struct field_set s)
{
	struct apply_shape shape = typed_type(t);

	switch (typed_shape_of(&shape, v)) {
	case TYPED_SCALAR:
		return v;
	case TYPED_MAP:
		return shape.map_atomic || v.type != VAL_OBJECT ? VAL_NULL_VALUE : remove_from_map(a, t, v, s);
	case TYPED_LIST:
		return shape.list_atomic || v.type != VAL_LIST ? VAL_NULL_VALUE : remove_from_list(a, t, &shape, v, s);
	case TYPED_NOTHING:
		break;
	}
	return VAL_NULL_VALUE;
}

/* ---- sets and types ---- */

/* The type of what an element leads to, if the type says so: 2 for a declared field, else 1; 0: nothing is known. */
static int type_below(struct apply_type t, const struct apply_shape *s, const struct path_element *at,
		      struct apply_type *ret)
{
	*ret = (struct apply_type){ 0 };
	if (at->kind == PATH_FIELD)
		return s->map ? typed_member(t, at->field, ret) : 0;
	if (!s->list)
		return 0;
	*ret = t.schema->item(t);
	return 1;
}

struct field_set apply_name_fields(struct arena *a, struct apply_type t, struct field_set s)
{
	if (!s.n)
		return s;
	struct apply_shape shape = typed_type(t);
	struct field_node *nodes = ARENA_ARRAY(a, struct field_node, s.n);

	for (uint32_t i = 0; i < s.n; i++) {
		struct apply_type below;
		bool declared = type_below(t, &shape, &s.nodes[i].at, &below) == 2;
		if (s.nodes[i].at.kind > PATH_KEY)
			below = (struct apply_type){ 0 };
		struct field_set children = apply_name_fields(a, below, field_node_set(&s.nodes[i]));
		nodes[i] = s.nodes[i];
		nodes[i].children = children.nodes;
		nodes[i].n = children.n;
		nodes[i].member |= declared && children.n;
	}
	return (struct field_set){ nodes, s.n };
}

/* What was owned piece by piece and is atomic now is owned as a whole. */
static struct field_node reconcile_node(struct arena *a, struct apply_type t, const struct field_node *node)
{
	struct apply_shape s = typed_type(t);
	bool whole = node->member && !node->n;
	bool atomic = s.map ? s.map_atomic : s.scalar ? false : s.list && s.list_atomic;

	if (!whole && atomic)
		return (struct field_node){ .at = node->at, .member = true };
	struct field_set children = apply_reconcile(a, t, field_node_set(node));
	return (struct field_node){ .at = node->at, .children = children.nodes, .n = children.n,
				    .member = node->member };
}

struct field_set apply_reconcile(struct arena *a, struct apply_type t, struct field_set s)
{
	struct apply_shape shape = typed_type(t);
	bool map = shape.map, list = !map && !shape.scalar && shape.list;
	struct field_node *nodes = NULL;

	if (shape.deduced || (!map && !list))
		return s;
	for (uint32_t i = 0; i < s.n; i++) {
		struct apply_type below = { 0 };
		/* Elements that do not belong into such a container get the type that all others there have. */
		if (list)
			below = t.schema->item(t);
		else if (s.nodes[i].at.kind != PATH_FIELD || !typed_member(t, s.nodes[i].at.field, &below))
			continue;
		struct field_node node = reconcile_node(a, below, &s.nodes[i]);
		if (node.member == s.nodes[i].member && node.children == s.nodes[i].children && node.n == s.nodes[i].n)
			continue;
		if (!nodes) {
			nodes = ARENA_ARRAY(a, struct field_node, s.n);
			memcpy(nodes, s.nodes, s.n * sizeof(*nodes));
		}
		nodes[i] = node;
	}
	return nodes ? (struct field_set){ nodes, s.n } : s;
}
