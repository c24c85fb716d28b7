/* An audit.k8s.io/v1 Event, from what is known about a request. */
#include "apiserver/audit/audit_priv.h"
#include "base/clock.h"
#include "codec/atoms.h"
#include "codec/time.h"
#include "codec/types.h"
#include "machinery/ip.h"

enum { AGENT_MAX = 1024, ADDRESSES_MAX = 64 };

static struct val text_or_none(str s) { return s.n ? val_of_str(s) : VAL_EMPTY; }

static struct val raw(str json)
{
	struct val v = val_of_str(json);
	v.type = VAL_RAW;
	return json.n ? v : VAL_EMPTY;
}

static struct val user_of(struct arena *a, const struct user *u)
{
	struct val_builder groups = val_builder(a);
	for (size_t i = 0; i < u->n_groups; i++)
		val_add_item(&groups, val_of_str(u->groups[i]));
	return OBJECT(a, F(username, text_or_none(u->name)), F(uid, text_or_none(u->uid)),
		      F(groups, groups.n ? val_end_list(&groups) : VAL_EMPTY), F(extra, val_len(u->extra) ? u->extra : VAL_EMPTY));
}

/* ---- addresses ---- */

struct addresses {
	struct ip v[ADDRESSES_MAX];
	size_t n;
};

static void address_add(struct addresses *s, str text, bool only_new)
{
	struct ip ip;
	if (s->n == ADDRESSES_MAX || !ip_parse(text, &ip, NULL))
		return;
	for (size_t i = 0; only_new && i < s->n; i++)
		if (ip_equal(&s->v[i], &ip))
			return;
	s->v[s->n++] = ip;
}

/* "10.0.0.7:41312", "[::1]:41312" */
static str host_of(str address)
{
	ptrdiff_t colon = str_rchr(address, ':');
	str host = colon < 0 ? address : str_head(address, (size_t)colon);
	if (host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']')
		host = str_span(host.p + 1, host.n - 2);
	return host;
}

/* Who asked, as proxies on the way have it and as the connection has it. */
static void addresses_of(const struct audit_event *e, struct addresses *ret)
{
	const struct request *q = e->q;
	str rest = http_request_header(q->http, STR("x-forwarded-for")), one;
	ret->n = 0;
	while (rest.n) {
		str_cut(rest, ',', &one, &rest);
		address_add(ret, str_trim(one), false);
	}
	address_add(ret, http_request_header(q->http, STR("x-real-ip")), true);
	struct ip peer;
	if (ip_parse(host_of(e->peer), &peer, NULL) &&
	    (!ret->n || !ip_equal(&peer, &ret->v[ret->n - 1])) && ret->n < ADDRESSES_MAX)
		ret->v[ret->n++] = peer;
}

static struct val addresses_val(struct arena *a, const struct audit_event *e)
{
	struct addresses *s = ARENA_NEW(a, struct addresses);
	struct val_builder b = val_builder(a);
	char text[IP_TEXT_MAX];
	addresses_of(e, s);
	for (size_t i = 0; i < s->n; i++)
		val_add_item(&b, val_of_str(arena_str(a, ip_format(&s->v[i], text))));
	return s->n ? val_end_list(&b) : VAL_EMPTY;
}

/* ---- parts ---- */

/* What the path names, completed by the object that was sent. */
static struct val reference_of(struct arena *a, const struct audit_event *e, bool with_sent)
{
	const struct request *q = e->q;
	if (!q->is_resource)
		return VAL_EMPTY;
	struct val sent = with_sent ? val_get(q->sent, metadata) : VAL_EMPTY;
	return OBJECT(a, F(resource, text_or_none(q->resource)),
		      F(namespace, text_or_none(q->namespace.n ? q->namespace : val_str(sent, namespace))),
		      F(name, text_or_none(q->name.n ? q->name : val_str(sent, name))), F(uid, text_or_none(val_str(sent, uid))),
		      F(apiGroup, text_or_none(q->group)), F(apiVersion, text_or_none(q->version)),
		      F(resourceVersion, text_or_none(val_str(sent, resourceVersion))), F(subresource, text_or_none(q->subresource)));
}

static struct val response_status(struct arena *a, const struct audit_event *e)
{
	struct val f = e->failure;
	if (val_exists(f))
		return OBJECT(a, F(metadata, VAL_EMPTY_OBJECT), F(status, val_get(f, status)), F(message, val_get(f, message)),
			      F(reason, val_get(f, reason)), F(details, val_get(f, details)), F(code, val_of_int(e->status)));
	if (!e->status)
		return OBJECT(a, F(metadata, VAL_EMPTY_OBJECT), F(status, VAL_LIT("Success")),
			      F(message, VAL_LIT("Connection closed early")), F(code, val_of_int(200)));
	return OBJECT(a, F(metadata, VAL_EMPTY_OBJECT), F(message, text_or_none(e->message)), F(code, val_of_int(e->status)));
}

static struct val annotations(struct arena *a, const struct audit_event *e, bool cut)
{
	struct val_builder b = val_builder(a);
	for (size_t i = 0; i < e->n_annotations; i++)
		val_add_member(&b, atom_make(a, e->annotations[i].key), val_of_str(e->annotations[i].value));
	if (cut)
		val_add_member(&b, atom_make(a, STR("audit.k8s.io/truncated")), VAL_LIT("true"));
	return b.n ? val_sorted(a, val_end_object(&b)) : VAL_EMPTY;
}

static str verb_of(struct arena *a, const struct request *q)
{
	if (q->is_resource)
		return q->verb_text;
	str lower = arena_str(a, q->method);
	for (size_t i = 0; i < lower.n; i++)
		((char *)lower.p)[i] = (char)(lower.p[i] | 0x20);
	return lower;
}

static str uri_of(struct arena *a, const struct request *q)
{
	if (!q->http->query.n)
		return q->http->path;
	return arena_printf(a, STR_FMT "?" STR_FMT, STR_ARG(q->http->path), STR_ARG(q->http->query));
}

static str agent_of(struct arena *a, const struct request *q)
{
	str agent = http_request_header(q->http, STR("user-agent"));
	return agent.n > AGENT_MAX ? arena_join(a, str_head(agent, AGENT_MAX), STR("...TRUNCATED")) : agent;
}

static struct val time_val(struct arena *a, int64_t wall_ns)
{
	char out[TIME_TEXT_MAX];
	struct timestamp t = { .seconds = wall_ns / NS_PER_S, .nanos = (int32_t)(wall_ns % NS_PER_S) };
	return val_of_str(arena_str(a, microtime_format(t, out)));
}

int audit_event_json(const struct audit_event *e, enum audit_stage stage, bool cut, struct buf *b, struct err *err)
{
	CLEANUP(arena_done) struct arena scratch = ARENA_INIT;
	struct arena *a = &scratch;
	const struct request *q = e->q;
	bool received = stage == AUDIT_STAGE_REQUEST_RECEIVED;
	struct val request = cut || e->verdict.level < AUDIT_REQUEST ? VAL_EMPTY : raw(e->request);
	struct val response = cut || e->verdict.level < AUDIT_REQUEST_RESPONSE ? VAL_EMPTY : raw(e->response);
	struct val event = OBJECT(a, F(kind, VAL_LIT("Event")), F(apiVersion, VAL_LIT("audit.k8s.io/v1")),
		F(level, val_of_str(audit_level_names[e->verdict.level])), F(auditID, val_of_str(q->audit_id)),
		F(stage, val_of_str(audit_stage_names[stage])), F(requestURI, val_of_str(uri_of(a, q))), F(verb, val_of_str(verb_of(a, q))),
		F(user, user_of(a, q->impersonated ? &q->original_user : &q->user)),
		F(impersonatedUser, q->impersonated ? user_of(a, &q->user) : VAL_EMPTY),
		F(authenticationMetadata, e->constraint.n ? OBJECT(a, F(impersonationConstraint, VAL_STR(e->constraint))) : VAL_EMPTY),
		F(sourceIPs, addresses_val(a, e)),
		F(userAgent, text_or_none(agent_of(a, q))), F(objectRef, reference_of(a, e, !received)),
		F(responseStatus, received ? VAL_EMPTY : response_status(a, e)), F(requestObject, request), F(responseObject, response),
		F(requestReceivedTimestamp, time_val(a, q->begun_wall_ns)),
		F(stageTimestamp, time_val(a, received ? q->begun_wall_ns : clock_wall_ns())), F(annotations, annotations(a, e, cut)));
	return json_encode(b, event, &(struct json_encode_options){ .type = TYPE(audit_v1, Event) }, err);
}

/* ---- the legacy line ---- */

static void quoted_groups(struct buf *b, const struct user *u)
{
	CLEANUP(buf_done) struct buf list = BUF_INIT(1 << 20);
	for (size_t i = 0; i < u->n_groups; i++) {
		if (i)
			buf_addc(&list, ',');
		buf_add_quoted(&list, u->groups[i]);
	}
	buf_add_quoted(b, buf_str(&list));
}

static void field(struct buf *b, const char *name, str value, const char *otherwise)
{
	buf_addf(b, " %s=", name);
	buf_add_quoted(b, value.n ? value : str_of(otherwise));
}

void audit_event_legacy(const struct audit_event *e, enum audit_stage stage, struct buf *b)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct request *q = e->q;
	const struct user *who = q->impersonated ? &q->original_user : &q->user;
	struct addresses *ips = ARENA_NEW(&a, struct addresses);
	char ip[IP_TEXT_MAX], code[16];
	addresses_of(e, ips);
	buf_add(b, val_as_str(time_val(&a, q->begun_wall_ns)));
	buf_add(b, STR(" AUDIT:"));
	field(b, "id", q->audit_id, "");
	field(b, "stage", audit_stage_names[stage], "");
	field(b, "ip", ips->n ? ip_format(&ips->v[0], ip) : STR(""), "<unknown>");
	field(b, "method", verb_of(&a, q), "");
	field(b, "user", who->name, "<none>");
	buf_add(b, STR(" groups="));
	if (who->name.n && who->n_groups)
		quoted_groups(b, who);
	else
		buf_add_quoted(b, STR("<none>"));
	field(b, "as", q->impersonated ? q->user.name : STR(""), "<self>");
	buf_add(b, STR(" asgroups="));
	if (q->impersonated)
		quoted_groups(b, &q->user);
	else
		buf_add_quoted(b, STR("<lookup>"));
	field(b, "user-agent", agent_of(&a, q), "");
	field(b, "namespace", q->namespace, "<none>");
	field(b, "uri", uri_of(&a, q), "");
	(void)snprintf(code, sizeof code, "%d", e->status ? e->status : 200);
	buf_addf(b, " response=\"%s\"", stage == AUDIT_STAGE_REQUEST_RECEIVED ? "<deferred>" : code);
}

/* ---- managedFields ---- */

static struct val stripped(struct arena *a, struct val object)
{
	return val_exists(val_get(object, metadata, managedFields)) ? val_without(a, object, metadata, managedFields) : object;
}

/* The items of a list, or the objects in the rows of a table. */
static struct val stripped_items(struct arena *a, struct val items, bool rows)
{
	struct val_builder b = val_builder(a);
	VAL_EACH(item, items)
		val_add_item(&b, rows ? val_put(a, *item, A_object, stripped(a, val_get(*item, object))) : stripped(a, *item));
	return val_end_list(&b);
}

str audit_without_managed_fields(struct arena *a, str json)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(SIZE_MAX / 2);
	struct val v;
	if (json_decode(a, json, &(struct json_decode_options){ 0 }, &v, NULL) < 0)
		return json;
	v = stripped(a, v);
	if (val_len(val_get(v, items)))
		v = val_put(a, v, A_items, stripped_items(a, val_get(v, items), false));
	if (val_len(val_get(v, rows)))
		v = val_put(a, v, A_rows, stripped_items(a, val_get(v, rows), true));
	if (json_encode(&b, v, &(struct json_encode_options){ 0 }, NULL) < 0)
		return json;
	return arena_str(a, buf_str(&b));
}
