/*
 * Everything that is not a copy of shared bytes goes one way: the object in the endpoint's version is written as compact
 * JSON (whole, as a row, or its metadata), and pretty JSON and YAML are made from that text. They are for people, who
 * wait longer than programs do.
 */
#include "apiserver/encode.h"

#include "base/clock.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "machinery/convert.h"
#include "machinery/table.h"

str encode_content_type(const struct accept *accept, bool watch)
{
	switch (accept->media) {
	case MEDIA_YAML:
		return STR("application/yaml");
	case MEDIA_PROTO:
		return watch ? STR("application/vnd.kubernetes.protobuf;stream=watch") :
			       STR("application/vnd.kubernetes.protobuf");
	default:
		return STR("application/json");
	}
}

/* ---- views ---- */

static bool kind_shows_cached(const struct endpoint *e)
{
	return e && e->kind && e->type == e->kind->hub && !e->kind->hooks->decorate;
}

int view_of(struct request *q, struct view *ret)
{
	*ret = (struct view){ .endpoint = q->endpoint, .accept = q->accept };
	ret->shared = q->accept.as == AS_OBJECT && kind_shows_cached(q->endpoint);
	if (q->accept.as != AS_TABLE)
		return 0;
	str include = request_query(q, STR("includeObject"));
	if (!include.n || str_eq(include, STR("Metadata")))
		ret->include = INCLUDE_METADATA;
	else if (str_eq(include, STR("Object")))
		ret->include = INCLUDE_OBJECT;
	else if (str_eq(include, STR("None")))
		ret->include = INCLUDE_NONE;
	else
		return fail_bad_request(q, "Unable to convert to Table as requested: includeObject: Invalid value: \"" STR_FMT
					   "\": must be 'Metadata', 'Object', 'None', or empty", STR_ARG(include));
	return 0;
}

int view_version(const struct view *f, struct object *o, struct arena *a, struct val *ret, const struct type **ret_type,
		 struct err *err)
{
	const struct endpoint *e = f->endpoint;
	struct val v = o->val;
	if (o->kind->hooks->decorate)
		v = o->kind->hooks->decorate(a, v);
	*ret_type = e->type;
	return convert_object(a, v, o->kind->hub, e->type, ret, err);
}

int encode_version(struct request *q, struct object *o, struct arena *a, struct val *ret, const struct type **ret_type,
		   struct err *err)
{
	return view_version(&(struct view){ .endpoint = q->endpoint }, o, a, ret, ret_type, err);
}

/* ---- pieces of JSON ---- */

static int put_json(struct buf *b, struct val v, const struct type *type, struct err *err)
{
	return json_encode(b, v, &(struct json_encode_options){ .type = type }, err);
}

static void put_kind(struct buf *b, str kind, str group, str version)
{
	buf_add(b, STR("{\"kind\":\""));
	buf_add(b, kind);
	buf_add(b, STR("\",\"apiVersion\":\""));
	if (group.n) {
		buf_add(b, group);
		buf_addc(b, '/');
	}
	buf_add(b, version);
	buf_add(b, STR("\",\"metadata\":"));
}

static void put_meta_kind(const struct view *f, struct buf *b, str kind)
{
	put_kind(b, kind, f->accept.as_version->group, f->accept.as_version->version);
}

/*
 * The metadata when it is shown alone. The generation of a DaemonSet's template is an annotation only where its spec is
 * shown too: Kubernetes keeps it as a field.
 */
static struct val partial_meta(const struct view *f, struct val v, struct arena *a)
{
	struct val meta = val_get(v, metadata), annotations = val_get(meta, annotations);
	str name = STR("deprecated.daemonset.template.generation");
	if (!f->endpoint || f->endpoint->type != TYPE(apps_v1, DaemonSet) || !val_exists(val_find(annotations, name)))
		return meta;
	annotations = val_put(a, annotations, atom_make(a, name), VAL_EMPTY);
	return val_put(a, meta, A_annotations, val_len(annotations) ? annotations : VAL_EMPTY);
}

static int put_partial(const struct view *f, struct val v, struct arena *a, struct buf *b, struct err *err)
{
	put_meta_kind(f, b, STR("PartialObjectMetadata"));
	int r = put_json(b, partial_meta(f, v, a), TYPE(meta_v1, ObjectMeta), err);
	buf_addc(b, '}');
	return r;
}

/* {"cells":[...],"object":...}; v is in the version to be shown. */
static int put_row(const struct view *f, struct val v, const struct type *type, struct arena *a, struct buf *b, struct err *err)
{
	struct val cells, conditions;
	table_row(a, table_of(type), v, clock_wall_ns(), &cells, &conditions);
	buf_add(b, STR("{\"cells\":"));
	int r = put_json(b, cells, NULL, err);
	if (r >= 0 && val_exists(conditions)) {
		buf_add(b, STR(",\"conditions\":"));
		r = put_json(b, conditions, NULL, err);
	}
	if (r < 0)
		return r;
	buf_add(b, STR(",\"object\":"));
	/* A bookmark that ends the initial events shows its annotation whatever was asked for, as Kubernetes has it. */
	bool ends_initial = val_exists(val_find(val_get(v, metadata, annotations), STR("k8s.io/initial-events-end")));
	if (f->include == INCLUDE_OBJECT)
		r = put_json(b, v, type, err);
	else if (f->include == INCLUDE_METADATA || ends_initial)
		r = put_partial(f, v, a, b, err);
	else
		buf_add(b, STR("null"));
	buf_addc(b, '}');
	return r;
}

static int put_columns(const struct type *type, bool headers, struct arena *a, struct buf *b, struct err *err)
{
	buf_add(b, STR(",\"columnDefinitions\":"));
	if (headers)
		return put_json(b, table_columns(a, table_of(type)), NULL, err);
	buf_add(b, STR("null"));
	return 0;
}

/* The table of one object. */
static int put_table(const struct view *f, struct val v, const struct type *type, bool headers, struct arena *a, struct buf *b,
		     struct err *err)
{
	put_meta_kind(f, b, STR("Table"));
	str revision = val_str(v, metadata, resourceVersion);
	buf_addf(b, revision.n ? "{\"resourceVersion\":\"" STR_FMT "\"}" : "{}", STR_ARG(revision));
	int r = put_columns(type, headers, a, b, err);
	if (r < 0)
		return r;
	buf_add(b, STR(",\"rows\":["));
	r = put_row(f, v, type, a, b, err);
	buf_add(b, STR("]}"));
	return r;
}

/* "core.ConfigMapList": how Kubernetes' messages name the Go type of what it works with. */
static int fail_shape(const struct type *type, const char *wanted, const char *is, const char *suffix, struct err *err)
{
	str package, version;
	str_cut(type->package->name, '/', &package, &version);
	return err_set(err, ERR_NOT_ACCEPTABLE, "you requested %s, but the requested object is %s (*" STR_FMT "." STR_FMT "%s)",
		       wanted, is, STR_ARG(package), STR_ARG(type->name), suffix);
}

/* ---- lists ---- */

static void put_list_meta(const struct list_head *head, struct buf *b)
{
	buf_addf(b, "{\"resourceVersion\":\"%lld\"", (long long)head->revision);
	if (head->next.n) {
		buf_add(b, STR(",\"continue\":"));
		json_quote(b, head->next, false);
	}
	if (head->remaining >= 0)
		buf_addf(b, ",\"remainingItemCount\":%lld", (long long)head->remaining);
	buf_addc(b, '}');
}

int view_list_begin(const struct view *f, const struct list_head *head, bool empty, struct arena *a, struct buf *b,
		    struct err *err)
{
	const struct type *type = f->endpoint->type;
	switch (f->accept.as) {
	case AS_PARTIAL:
		return fail_shape(f->endpoint->kind->hub, "PartialObjectMetadata", "a list", "List", err);
	case AS_TABLE:
		put_meta_kind(f, b, STR("Table"));
		put_list_meta(head, b);
		int r = put_columns(type, true, a, b, err);
		buf_add(b, STR(",\"rows\":["));
		return r;
	case AS_PARTIAL_LIST:
		put_meta_kind(f, b, STR("PartialObjectMetadataList"));
		put_list_meta(head, b);
		buf_add(b, empty ? STR(",\"items\":") : STR(",\"items\":["));
		return 0;
	default:
		put_kind(b, arena_join(a, type->name, STR("List")), type->package->group, type->package->version);
		put_list_meta(head, b);
		buf_add(b, STR(",\"items\":["));
		return 0;
	}
}

str view_list_end(const struct view *f, bool empty)
{
	return empty && f->accept.as == AS_PARTIAL_LIST ? STR("null}\n") : STR("]}\n");
}

/* Items of lists do not say what they are. */
static struct val as_item(struct arena *a, struct val v)
{
	return val_put(a, val_put(a, v, A_kind, VAL_EMPTY), A_apiVersion, VAL_EMPTY);
}

int view_list_item(const struct view *f, struct object *o, struct arena *a, struct buf *b, struct err *err)
{
	const struct type *type;
	struct val v;
	if (f->accept.as == AS_PARTIAL_LIST)
		return put_partial(f, o->val, a, b, err);
	int r = view_version(f, o, a, &v, &type, err);
	if (r < 0)
		return r;
	return f->accept.as == AS_TABLE ? put_row(f, v, type, a, b, err) : put_json(b, as_item(a, v), type, err);
}

/* ---- lists in protobuf ---- */

static void put_varint(struct buf *b, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		buf_addc(b, (char)(v | 0x80));
	buf_addc(b, (char)v);
}

static void put_tagged(struct buf *b, char tag, str bytes)
{
	buf_addc(b, tag);
	put_varint(b, bytes.n);
	buf_add(b, bytes);
}

enum { TAG_1 = 0x0a, TAG_2 = 0x12 }; /* length-delimited fields 1 and 2 */

/* In the first version of PartialObjectMetadataList the fields are the other way round. */
static bool items_first(const struct view *f)
{
	return f->accept.as == AS_PARTIAL_LIST && str_eq(f->accept.as_version->version, STR("v1beta1"));
}

int view_proto_begin(const struct view *f, const struct list_head *head, size_t n, struct arena *a, struct buf *b,
		     struct err *err)
{
	const struct type *type = f->endpoint->type;
	if (f->accept.as == AS_PARTIAL)
		return fail_shape(f->endpoint->kind->hub, "PartialObjectMetadata", "a list", "List", err);
	bool partial = f->accept.as == AS_PARTIAL_LIST;
	str kind = partial ? STR("PartialObjectMetadataList") : arena_join(a, type->name, STR("List"));
	str version = partial ? arena_printf(a, "meta.k8s.io/" STR_FMT, STR_ARG(f->accept.as_version->version)) :
				type_api_version(a, type);
	CLEANUP(buf_done) struct buf meta = BUF_INIT(SIZE_MAX / 2), what = BUF_INIT(SIZE_MAX / 2);
	CLEANUP(buf_done) struct buf message = BUF_INIT(SIZE_MAX / 2);
	struct val v = OBJECT(a, F(resourceVersion, val_of_str(arena_printf(a, "%lld", (long long)head->revision))),
			      F(continue, head->next.n ? val_of_str(head->next) : VAL_EMPTY),
			      F(remainingItemCount, head->remaining >= 0 ? val_of_int(head->remaining) : VAL_EMPTY));
	int r = proto_encode(&meta, v, TYPE(meta_v1, ListMeta), err);
	if (r < 0)
		return r;
	put_tagged(&message, items_first(f) ? TAG_2 : TAG_1, buf_str(&meta));
	put_tagged(&what, TAG_1, version);
	put_tagged(&what, TAG_2, kind);
	buf_add(b, STR("k8s\0"));
	put_tagged(b, TAG_1, buf_str(&what));
	buf_addc(b, TAG_2);
	put_varint(b, message.n + n);
	buf_add(b, buf_str(&message));
	return 0;
}

str view_proto_end(void) { return STR("\x1a\0\x22\0"); /* empty contentEncoding and contentType */ }

void view_proto_item(const struct view *f, size_t n, struct buf *b)
{
	buf_addc(b, items_first(f) ? TAG_1 : TAG_2);
	put_varint(b, n);
}

int view_proto_message(const struct view *f, struct object *o, struct arena *a, struct buf *b, struct err *err)
{
	const struct type *type;
	struct val v;
	if (f->accept.as == AS_PARTIAL_LIST)
		return proto_encode(b, OBJECT(a, F(metadata, partial_meta(f, o->val, a))), TYPE(meta_v1, PartialObjectMetadata),
				    err);
	int r = view_version(f, o, a, &v, &type, err);
	return r < 0 ? r : proto_encode(b, v, type, err);
}

/* ---- single objects ---- */

static int put_proto(const struct view *f, struct val v, const struct type *type, struct arena *a, struct buf *b,
		     struct err *err)
{
	if (f->accept.as != AS_PARTIAL)
		return proto_encode_object(b, v, type, err);
	str version = arena_printf(a, "meta.k8s.io/" STR_FMT, STR_ARG(f->accept.as_version->version));
	struct val partial = OBJECT(a, F(kind, VAL_LIT("PartialObjectMetadata")), F(apiVersion, val_of_str(version)),
				    F(metadata, partial_meta(f, v, a)));
	return proto_encode_object(b, partial, TYPE(meta_v1, PartialObjectMetadata), err);
}

int view_event_val(const struct view *f, struct val v, const struct type *type, bool headers, struct arena *a, struct buf *b,
		   struct err *err)
{
	struct view plain = *f;
	if (type == TYPE(meta_v1, Status) || f->accept.as == AS_PARTIAL_LIST)
		plain.accept.as = AS_OBJECT;
	if (f->accept.media == MEDIA_PROTO)
		return put_proto(&plain, v, type, a, b, err);
	switch (plain.accept.as) {
	case AS_TABLE:
		return put_table(&plain, v, type, headers, a, b, err);
	case AS_PARTIAL:
		return put_partial(&plain, v, a, b, err);
	default:
		return put_json(b, v, type, err);
	}
}

int view_event_object(const struct view *f, struct object *o, bool headers, struct arena *a, struct buf *b, struct err *err)
{
	if (f->shared) {
		const struct bytes *bytes = f->accept.media == MEDIA_PROTO ? object_proto(o) : object_json(o);
		buf_add(b, str_span(bytes->p, bytes->n));
		return 0;
	}
	const struct type *type;
	struct val v;
	int r = view_version(f, o, a, &v, &type, err);
	return r < 0 ? r : view_event_val(f, v, type, headers, a, b, err);
}

int view_reshape(const struct accept *accept, str json, struct arena *a, struct buf *b, struct err *err)
{
	struct val v;
	int r = json_decode(a, json, &(struct json_decode_options){ 0 }, &v, err);
	if (r < 0)
		return r;
	if (accept->media == MEDIA_YAML)
		return yaml_encode(b, v, NULL, err);
	r = json_encode(b, v, &(struct json_encode_options){ .indent = 2 }, err);
	return r;
}

/* A list that was put together for one answer: that of component statuses. */
static int put_made_list(const struct view *f, struct val v, const struct type *type, struct arena *a, struct buf *b,
			 struct err *err)
{
	const struct type *item = f->endpoint ? f->endpoint->type : NULL;
	if (f->accept.media == MEDIA_PROTO || f->accept.as == AS_OBJECT || !item)
		return f->accept.media == MEDIA_PROTO ? proto_encode_object(b, v, type, err) : put_json(b, v, type, err);
	struct list_head head = { .remaining = -1 };
	str revision = val_str(v, metadata, resourceVersion);
	bool empty = val_len(val_get(v, items)) == 0;
	(void)str_to_i64(revision, &head.revision);
	int r = view_list_begin(f, &head, empty, a, b, err);
	size_t n = 0;
	VAL_EACH(i, val_get(v, items)) {
		if (r < 0)
			return r;
		if (n++)
			buf_addc(b, ',');
		r = f->accept.as == AS_TABLE ? put_row(f, *i, item, a, b, err) : put_partial(f, *i, a, b, err);
	}
	str end = view_list_end(f, empty);
	buf_add(b, str_head(end, end.n - 1));
	return r;
}

/* One answer from compact JSON or protobuf. */
static int finish(const struct accept *accept, bool embedded, struct arena *a, struct buf *made, struct buf *b, struct err *err)
{
	bool reshape = !embedded && (accept->media == MEDIA_YAML || accept->pretty);
	if (reshape) {
		int r = view_reshape(accept, buf_str(made), a, b, err);
		if (r < 0)
			return r;
	} else {
		buf_add(b, buf_str(made));
	}
	if (!embedded && accept->media == MEDIA_JSON)
		buf_addc(b, '\n');
	return 0;
}

int encode_val(struct request *q, struct val v, const struct type *type, bool embedded, struct buf *b, struct err *err)
{
	CLEANUP(buf_done) struct buf made = BUF_INIT(SIZE_MAX / 2);
	struct view f;
	int r = view_of(q, &f);
	if (r < 0)
		return r;
	if (type->flags & TYPE_LIST)
		r = put_made_list(&f, v, type, q->arena, &made, err);
	else if (f.accept.as == AS_PARTIAL_LIST && type != TYPE(meta_v1, Status))
		r = fail_shape(type, "PartialObjectMetadataList", "not a list", "", err);
	else
		r = view_event_val(&f, v, type, true, q->arena, &made, err);
	return r < 0 ? r : finish(&f.accept, embedded, q->arena, &made, b, err);
}

int encode_object(struct request *q, struct object *o, bool embedded, struct buf *b, struct err *err)
{
	if (q->accept.as == AS_OBJECT && !q->accept.pretty && q->accept.media != MEDIA_YAML && kind_shows_cached(q->endpoint)) {
		const struct bytes *bytes = q->accept.media == MEDIA_PROTO ? object_proto(o) : object_json(o);
		buf_add(b, str_span(bytes->p, bytes->n));
		if (!embedded && q->accept.media == MEDIA_JSON)
			buf_addc(b, '\n');
		return 0;
	}
	const struct type *type;
	struct val v;
	int r = encode_version(q, o, q->arena, &v, &type, err);
	return r < 0 ? r : encode_val(q, v, type, embedded, b, err);
}
