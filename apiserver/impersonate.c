/*
 * STAGE_IMPERSONATE: acting as somebody else (kubectl --as). Whoever may "impersonate" may act as that user in
 * everything; there are narrower ways, tried first, in which they need to be allowed both to act as such a user and to
 * do this very thing so: "impersonate:user-info" on the user, and "impersonate-on:user-info:list" on the pods. Of a
 * user's attempts, the way that last worked for them is tried first, which decides whose refusal they are told.
 */
#include <stdlib.h>

#include "apiserver/apiserver.h"
#include "apiserver/audit/audit.h"
#include "apiserver/pipeline.h"
#include "apiserver/user.h"
#include "codec/atoms.h"
#include "machinery/names.h"
#include "net/url.h"

#define EXTRA_PREFIX "impersonate-extra-"
#define ACCOUNT "system:serviceaccount:"
#define NODE "system:node:"
#define AUTHENTICATION_GROUP "authentication.k8s.io"
#define NODE_NAME_KEY "authentication.kubernetes.io/node-name"

enum { MANY = 4 }; /* from so many groups or extras on, it is first asked whether all are allowed */

enum mode { MODE_ASSOCIATED_NODE, MODE_ARBITRARY_NODE, MODE_ACCOUNT, MODE_USER_INFO, MODE_LEGACY, MODES };

static const char *const mode_names[MODES] = {
	[MODE_ASSOCIATED_NODE] = "associated-node", [MODE_ARBITRARY_NODE] = "arbitrary-node",
	[MODE_ACCOUNT] = "serviceaccount", [MODE_USER_INFO] = "user-info", [MODE_LEGACY] = "",
};

/* ---- whom the headers ask for ---- */

static bool is_account(str username, str *ret_namespace, str *ret_name)
{
	return str_starts(username, STR(ACCOUNT)) && str_cut(str_skip(username, sizeof ACCOUNT - 1), ':', ret_namespace, ret_name) &&
	       str_chr(*ret_name, ':') < 0 && !name_check_dns1123_label(*ret_namespace, NULL) &&
	       !name_check_dns1123_subdomain(*ret_name, NULL);
}

static bool is_node(str username, str *ret_name)
{
	*ret_name = str_skip(username, sizeof NODE - 1);
	return str_starts(username, STR(NODE)) && !name_check_dns1123_subdomain(*ret_name, NULL);
}

/* What the key of an extra header stands for; as it is when it cannot be decoded. */
static str extra_key(struct arena *a, str header)
{
	str key = str_skip(header, sizeof EXTRA_PREFIX - 1), decoded;
	return url_path_unescape(a, key, &decoded, NULL) < 0 ? key : decoded;
}

struct extra {
	str key, value;
	size_t at;
};

static int extra_cmp(const void *x, const void *y)
{
	const struct extra *a = x, *b = y;
	int c = str_cmp(a->key, b->key);
	return c ? c : (a->at > b->at) - (a->at < b->at);
}

/* A map of the values by their key, each in the order of the headers. */
static struct val extra_map(struct arena *a, struct extra *all, size_t n)
{
	struct val_builder map = val_builder(a);
	if (!n)
		return VAL_EMPTY;
	qsort(all, n, sizeof *all, extra_cmp);
	for (size_t i = 0; i < n;) {
		struct val_builder values = val_builder(a);
		str key = all[i].key;
		for (; i < n && str_eq(all[i].key, key); i++)
			val_add_item(&values, val_of_str(all[i].value));
		val_add_member(&map, atom_make(a, key), val_end_list(&values));
	}
	return val_end_object(&map);
}

/* The number of headers that ask for something. */
static size_t count_headers(const struct http_exchange *x)
{
	size_t n = 0;
	for (size_t i = 0; i < x->n_headers; i++)
		n += str_starts(x->headers[i].name, STR("impersonate-"));
	return n;
}

static void take_headers(struct request *q, size_t n_headers, struct user *ret)
{
	str *groups = ARENA_ARRAY(q->arena, str, n_headers);
	struct extra *extra = ARENA_ARRAY(q->arena, struct extra, n_headers);
	size_t n = 0;
	*ret = (struct user){ .name = http_request_header(q->http, STR("impersonate-user")),
			      .uid = http_request_header(q->http, STR("impersonate-uid")), .groups = groups };
	for (size_t i = 0; i < q->http->n_headers; i++) {
		const struct http_header *h = &q->http->headers[i];
		if (str_eq(h->name, STR("impersonate-group")))
			groups[ret->n_groups++] = h->value;
		if (str_starts(h->name, STR(EXTRA_PREFIX))) {
			extra[n] = (struct extra){ extra_key(q->arena, h->name), h->value, n };
			n++;
		}
	}
	ret->extra = extra_map(q->arena, extra, n);
}

/* []string{"a", "b"}, and []string(nil) */
static void add_go_list(struct buf *b, struct val list)
{
	bool first = true;
	buf_add(b, val_len(list) ? STR("[]string{") : STR("[]string(nil)"));
	VAL_EACH(item, list) {
		buf_addf(b, "%s", first ? "" : ", ");
		first = false;
		buf_add_quoted(b, val_as_str(*item));
	}
	if (val_len(list))
		buf_addc(b, '}');
}

static struct val text_list(struct arena *a, const str *list, size_t n)
{
	struct val_builder b = val_builder(a);
	for (size_t i = 0; i < n; i++)
		val_add_item(&b, val_of_str(list[i]));
	return val_end_list(&b);
}

/* As Go prints the user that was asked for. */
static int fail_without_user(struct request *q, const struct user *u)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(4 << 20);
	bool first = true;
	buf_add(&b, STR("&user.DefaultInfo{Name:\"\", UID:"));
	buf_add_quoted(&b, u->uid);
	buf_add(&b, STR(", Groups:"));
	add_go_list(&b, text_list(q->arena, u->groups, u->n_groups));
	buf_add(&b, val_len(u->extra) ? STR(", Extra:map[string][]string{") : STR(", Extra:map[string][]string(nil)"));
	VAL_EACH_MEMBER(m, u->extra) {
		buf_addf(&b, "%s", first ? "" : ", ");
		first = false;
		buf_add_quoted(&b, atom_str(m->key));
		buf_addc(&b, ':');
		add_go_list(&b, m->val);
	}
	buf_add(&b, val_len(u->extra) ? STR("}}") : STR("}"));
	answer_header(q, STR("x-content-type-options"), STR("nosniff"));
	return fail_bad_request(q, "requested " STR_FMT " without impersonating a user name", STR_ARG(buf_str(&b)));
}

/* ---- asking ---- */

/* One way, for one wanted user. */
struct attempt {
	struct request *q;
	const struct user *wanted;
	enum mode mode;
	str verb;                     /* impersonate, or impersonate:<mode> */
	struct user asker;            /* as those who decide see them */
	struct val failure;           /* the refusal */
};

static bool refuse(struct attempt *t, const struct authz_attributes *what, str reason)
{
	struct request *q = t->q;
	size_t n_headers = q->answer.n_headers;
	(void)authz_forbid(q, what, reason);
	t->failure = q->failure;
	q->failure = VAL_EMPTY;
	q->answer.n_headers = n_headers;
	return false;
}

static bool ask(struct attempt *t, struct authz_attributes what)
{
	struct err why = ERR_INIT;
	str reason = STR_NONE;
	int decision = authz_decide(t->q->server, t->q->arena, &what, &reason, &why);
	if (decision == AUTHZ_ALLOW)
		return true;
	if (why.code)
		reason = reason.n ? arena_printf(t->q->arena, STR_FMT ": " STR_FMT, STR_ARG(err_str(&why)), STR_ARG(reason)) :
				    arena_str(t->q->arena, err_str(&why));
	return refuse(t, &what, reason);
}

static struct authz_attributes about(const struct attempt *t, bool of_authentication, str resource, str name)
{
	return (struct authz_attributes){
		.user = &t->asker, .verb = t->verb, .is_resource = true, .group = of_authentication ? STR(AUTHENTICATION_GROUP) : STR_NONE,
		.version = STR("v1"), .resource = resource, .name = name,
	};
}

static bool is_narrow(const struct attempt *t) { return t->mode != MODE_LEGACY; }

static bool ask_user(struct attempt *t)
{
	struct authz_attributes what = about(t, is_narrow(t), STR("users"), t->wanted->name);
	str namespace, name;
	if (is_narrow(t) && is_node(t->wanted->name, &name)) {
		what.resource = STR("nodes");
		/* which node it is was looked at already: it is its own */
		what.name = t->mode == MODE_ASSOCIATED_NODE ? STR("*") : name;
	}
	if (is_account(t->wanted->name, &namespace, &name)) {
		what.resource = STR("serviceaccounts");
		what.namespace = namespace;
		what.name = name;
	}
	return ask(t, what);
}

static bool ask_groups(struct attempt *t)
{
	const struct user *u = t->wanted;
	struct authz_attributes what = about(t, is_narrow(t), STR("groups"), STR_NONE);
	for (size_t i = 0; is_narrow(t) && i < u->n_groups; i++)
		if (!u->groups[i].n)
			return refuse(t, &what, STR("impersonating the empty string group is not allowed"));
	if (is_narrow(t) && user_is_master(u)) {
		what.name = STR("system:masters");
		return refuse(t, &what, STR("impersonating the system:masters group is not allowed"));
	}
	what.name = STR("*");
	if (is_narrow(t) && u->n_groups >= MANY && ask(t, what))
		return true;
	for (size_t i = 0; i < u->n_groups; i++) {
		what.name = u->groups[i];
		if (!ask(t, what))
			return false;
	}
	return true;
}

/* What is wrong with extras in the narrow ways; n == 0: nothing. */
static str extra_error(struct arena *a, struct val extra)
{
	VAL_EACH_MEMBER(m, extra) {
		str key = atom_str(m->key);
		struct name_errors e;
		if (!key.n)
			return STR("impersonating the empty string key in extra is not allowed");
		if (name_check_domain_prefixed_path(key, &e)) {
			struct field_errors all;
			field_errors_init(&all, a);
			for (size_t i = 0; i < e.n; i++)
				field_invalid(&all, FIELD(FIELD(NULL, "extra"), "key"), val_of_str(e.value[i]), STR_FMT,
					      STR_ARG(e.text[i]));
			return arena_join(a, STR("impersonating an invalid key in extra is not allowed: "),
					  field_errors_plain(&all));
		}
		for (size_t i = 0; i < key.n; i++)
			if (key.p[i] >= 'A' && key.p[i] <= 'Z')
				return arena_printf(a, "impersonating a non-lowercase key in extra is not allowed: \"" STR_FMT "\"",
						    STR_ARG(key));
		VAL_EACH(value, m->val)
			if (!val_as_str(*value).n)
				return STR("impersonating the empty string value in extra is not allowed");
	}
	return STR_NONE;
}

static bool ask_extra(struct attempt *t)
{
	struct val extra = t->wanted->extra;
	struct authz_attributes what = about(t, true, STR("userextras"), STR_NONE);
	size_t n = 0;
	if (!val_len(extra))
		return true;
	str wrong = is_narrow(t) ? extra_error(t->q->arena, extra) : STR_NONE;
	if (wrong.n)
		return refuse(t, &what, wrong);
	VAL_EACH_MEMBER(m, extra)
		n += val_len(m->val);
	what.subresource = what.name = STR("*");
	if (is_narrow(t) && n >= MANY && ask(t, what))
		return true;
	VAL_EACH_MEMBER(m, extra) {
		what.subresource = atom_str(m->key);
		VAL_EACH(value, m->val) {
			what.name = val_as_str(*value);
			if (!ask(t, what))
				return false;
		}
	}
	return true;
}

/* ---- the ways ---- */

static bool only_name(const struct user *u) { return !u->uid.n && !u->n_groups && !val_len(u->extra); }

/* A service account on a node may be told to be that node. */
static bool is_own_node(const struct user *asker, str username)
{
	struct val own = val_find(asker->extra, STR(NODE_NAME_KEY));
	str node, namespace, name;
	return is_node(username, &node) && is_account(asker->name, &namespace, &name) && val_len(own) == 1 &&
	       str_eq(val_as_str(val_at(own, 0)), node);
}

static bool mode_applies(enum mode mode, const struct user *wanted, const struct user *asker)
{
	str namespace, name;
	switch (mode) {
	case MODE_ASSOCIATED_NODE: return only_name(wanted) && is_own_node(asker, wanted->name);
	case MODE_ARBITRARY_NODE: return only_name(wanted) && is_node(wanted->name, &name);
	case MODE_ACCOUNT: return only_name(wanted) && is_account(wanted->name, &namespace, &name);
	case MODE_USER_INFO: return !is_node(wanted->name, &name) && !is_account(wanted->name, &namespace, &name);
	default: return true;
	}
}

/* What a service account says about itself would tell its nodes apart: only which things it says is passed on. */
static struct user without_extra(struct arena *a, const struct user *u)
{
	struct user asker = *u;
	struct val_builder keys = val_builder(a);
	struct val sorted = val_sorted(a, u->extra);
	VAL_EACH_MEMBER(m, sorted)
		val_add_item(&keys, val_of_str(atom_str(m->key)));
	asker.extra = val_put(a, VAL_EMPTY, atom_make(a, STR("authentication.kubernetes.io/associated-node-keys")),
			      val_end_list(&keys));
	return asker;
}

static bool ask_all(struct attempt *t)
{
	struct arena *a = t->q->arena;
	t->asker = t->mode == MODE_ASSOCIATED_NODE ? without_extra(a, &t->q->user) : t->q->user;
	t->verb = STR("impersonate");
	if (is_narrow(t)) {
		struct authz_attributes what = authz_of_request(t->q);
		what.user = &t->asker;
		what.verb = arena_printf(a, "impersonate-on:%s:" STR_FMT, mode_names[t->mode], STR_ARG(what.verb));
		t->verb = arena_printf(a, "impersonate:%s", mode_names[t->mode]);
		if (!ask(t, what))
			return false;
	}
	return ask_user(t) && (!t->wanted->uid.n || ask(t, about(t, true, STR("uids"), t->wanted->uid))) && ask_groups(t) &&
	       ask_extra(t);
}

/* The groups that a user has whom nobody gave any, and the one that says whether they are a stranger. */
static void complete(struct request *q, struct user *u, bool narrow)
{
	enum { OWN = 3 };
	str *groups = ARENA_ARRAY(q->arena, str, u->n_groups + OWN), namespace, name;
	if (u->n_groups)
		memcpy(groups, u->groups, u->n_groups * sizeof *groups);
	size_t n = u->n_groups;
	if (!n && narrow && is_node(u->name, &name))
		groups[n++] = STR("system:nodes");
	if (!n && is_account(u->name, &namespace, &name)) {
		groups[n++] = STR("system:serviceaccounts");
		groups[n++] = arena_join(q->arena, STR("system:serviceaccounts:"), namespace);
	}
	u->groups = groups;
	u->n_groups = n;
	bool stranger = user_in_group(u, STR("system:unauthenticated"));
	if (str_eq(u->name, STR("system:anonymous"))) {
		if (!stranger)
			groups[u->n_groups++] = STR("system:unauthenticated");
	} else if (!stranger && !user_in_group(u, STR("system:authenticated"))) {
		groups[u->n_groups++] = STR("system:authenticated");
	}
}

/* Which way worked last for a user, by a hash of their name: a mistake costs a try. */
enum { REMEMBERED = 4096 };

static uint8_t *remembered(const struct user *u)
{
	static uint8_t last[REMEMBERED]; /* 1 + enum mode */
	return &last[str_hash(u->name) % REMEMBERED];
}

int stage_impersonate(struct request *q, struct err *err)
{
	struct user wanted;
	(void)err;
	size_t n_headers = count_headers(q->http);
	if (!n_headers)
		return STAGE_NEXT;
	take_headers(q, n_headers, &wanted);
	if (!wanted.name.n)
		return only_name(&wanted) ? STAGE_NEXT : fail_without_user(q, &wanted);
	uint8_t *last = remembered(&q->user);
	int first = *last ? *last - 1 : -1;
	struct val failure = VAL_EMPTY;
	for (int i = -1; i < MODES; i++) {
		int mode = i < 0 ? first : i;
		if (mode < 0 || (i >= 0 && mode == first) || !mode_applies((enum mode)mode, &wanted, &q->user))
			continue;
		struct attempt t = { .q = q, .wanted = &wanted, .mode = (enum mode)mode };
		if (ask_all(&t)) {
			*last = (uint8_t)(mode + 1);
			q->original_user = q->user;
			q->impersonated = true;
			q->user = wanted;
			complete(q, &q->user, mode != MODE_LEGACY);
			audit_impersonated(q, mode != MODE_LEGACY ? t.verb : STR_NONE);
			return STAGE_NEXT;
		}
		if (!val_exists(failure))
			failure = t.failure;
	}
	answer_header(q, STR("x-content-type-options"), STR("nosniff"));
	q->failure = failure;
	return -ERR_FORBIDDEN;
}
