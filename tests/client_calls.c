/*
 * Every call of client.h against a real API server: client-calls KUBECONFIG calls. What holds is told line by line,
 		  "ok NAME" or
 * "not ok NAME: why", for client_calls_test.py. Other words than calls: watch (until it breaks, and why),
 		  since RV (a watch from there).
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/fiber.h"
#include "base/loop.h"
#include "client/client.h"
#include "client/kubeconfig.h"
#include "codec/atoms.h"
#include "codec/types.h"

#define NS "client-test"

struct calls {
	struct client *c;
	struct client_config config;
	struct arena arena;
	struct err err;
};

static void tell(struct calls *t, const char *name, bool ok)
{
	printf(ok ? "ok %s\n" : "not ok %s: %s\n", name, t->err.msg);
	fflush(stdout);
	err_clear(&t->err);
}

static struct val config_map(struct calls *t, str name, str value)
{
	struct arena *a = &t->arena;
	struct val data = val_put(a, VAL_EMPTY_OBJECT, atom_make(a, STR("n")), val_of_str(arena_str(a, value)));
	return OBJECT(a, F(metadata, OBJECT(a, F(name, val_of_str(arena_str(a, name))), F(namespace, VAL_LIT(NS)),
					    F(labels, val_put(a, VAL_EMPTY_OBJECT, atom_make(a, STR("app")), VAL_LIT("x"))))),
		      F(data, data));
}

static str value_of(struct val config) { return val_as_str(val_find(val_get(config, data), STR("n"))); }

static const struct type *const MAP = TYPE(core_v1, ConfigMap);

/* ---- one object ---- */

static void try_one(struct calls *t)
{
	struct arena *a = &t->arena;
	CLEANUP(frozen_unrefp) struct frozen *made = NULL, *got = NULL, *after = NULL;
	str raw;
	tell(t, "version", client_get_raw(t->c, a, STR("/version"), 10000, &raw, &t->err) == 0 && str_find(raw,
			  STR("\"major\": \"1\"")) > 0);
	struct val ns = OBJECT(a, F(metadata, OBJECT(a, F(name, VAL_LIT(NS)))));
	tell(t, "create namespace", client_create(t->c, TYPE(core_v1, Namespace), ns, NULL, NULL, &t->err) == 0);
	tell(t, "create", client_create(t->c, MAP, config_map(t, STR("one"), STR("1")), NULL, &made, &t->err) == 0 &&
			  val_str(made->val, metadata, uid).n == 36);
	tell(t, "get", client_get(t->c, MAP, STR(NS), STR("one"), &got, &t->err) == 0 && str_eq(value_of(got->val), STR("1")));
	tell(t, "exists", client_create(t->c, MAP, config_map(t, STR("one"), STR("1")), NULL, NULL, &t->err) == -ERR_ALREADY_EXISTS &&
			  str_eq(err_str(&t->err), STR("configmaps \"one\" already exists")));
	tell(t, "not found", client_get(t->c, MAP, STR(NS), STR("none"), NULL, &t->err) == -ERR_NOT_FOUND &&
			     str_eq(err_str(&t->err), STR("configmaps \"none\" not found")));
	tell(t, "invalid", client_create(t->c, MAP, config_map(t, STR("UPPER"), STR("1")), NULL, NULL, &t->err) == -ERR_INVALID &&
			   str_starts(err_str(&t->err), STR("ConfigMap \"UPPER\" is invalid: metadata.name: Invalid value: ")));
	struct val changed = val_put(a, got->val, A_data, val_get(config_map(t, STR("one"), STR("2")), data));
	tell(t, "update", client_update(t->c, MAP, changed, NULL, &after, &t->err) == 0 && str_eq(value_of(after->val), STR("2")));
	tell(t, "conflict", client_update(t->c, MAP, changed, NULL, NULL, &t->err) == -ERR_CONFLICT &&
			    str_find(err_str(&t->err), STR("the object has been modified")) > 0);
	frozen_unref(TAKE(after));
	struct val map = config_map(t, STR("dry"), STR("1"));
	tell(t, "dry run", client_create(t->c, MAP, map, &(struct client_write_options){ .dry_run = true }, &after, &t->err) == 0 &&
			   client_get(t->c, MAP, STR(NS), STR("dry"), NULL, &t->err) == -ERR_NOT_FOUND);
}

static void try_patches(struct calls *t)
{
	struct arena *a = &t->arena;
	struct val merge = OBJECT(a, F(data, val_get(config_map(t, STR("x"), STR("merged")), data)));
	struct val strategic = OBJECT(a, F(data, val_get(config_map(t, STR("x"), STR("strategic")), data)));
	struct val json = LIST(a, OBJECT(a, F(op, VAL_LIT("replace")), F(path, VAL_LIT("/data/n")), F(value, VAL_LIT("json"))));
	const struct { const char *name; enum client_patch kind; struct val patch; const char *want; } p[] = {
		{ "merge patch", CLIENT_PATCH_MERGE, merge, "merged" },
		{ "strategic patch", CLIENT_PATCH_STRATEGIC, strategic, "strategic" },
		{ "json patch", CLIENT_PATCH_JSON, json, "json" },
	};
	for (size_t i = 0; i < ARRAY_LEN(p); i++) {
		CLEANUP(frozen_unrefp) struct frozen *got = NULL;
		tell(t, p[i].name, client_patch(t->c, MAP, STR(NS), STR("one"), p[i].kind, p[i].patch, NULL, &got, &t->err) == 0 &&
				   str_eq(value_of(got->val), str_of(p[i].want)));
	}
	CLEANUP(frozen_unrefp) struct frozen *got = NULL;
	struct client_write_options o = { .manager = STR("alpha") };
	tell(t, "apply", client_apply(t->c, MAP, config_map(t, STR("applied"), STR("a")), &o, NULL, &t->err) == 0);
	o.manager = STR("beta");
	tell(t, "apply conflicts", client_apply(t->c, MAP, config_map(t, STR("applied"), STR("b")), &o, NULL,
			  &t->err) == -ERR_CONFLICT &&
				   str_find(err_str(&t->err), STR("conflict with \"alpha\": .data.n")) > 0);
	o.force = true;
	tell(t, "apply by force", client_apply(t->c, MAP, config_map(t, STR("applied"), STR("b")), &o, &got,
			  &t->err) == 0 && str_eq(value_of(got->val), STR("b")));
}

/* ---- changing together ---- */

static struct val add_one(struct arena *a, struct val live, void *arg)
{
	int64_t n = 0;
	(void)arg;
	(void)str_to_i64(value_of(live), &n);
	struct val data = val_put(a, val_get(live, data), atom_make(a, STR("n")), val_of_str(arena_printf(a, "%lld",
			  (long long)n + 1)));
	return val_put(a, live, A_data, data);
}

static int add_ten(void *arg)
{
	struct calls *t = arg;
	for (int i = 0; i < 10; i++) {
		int r = client_change_object(t->c, MAP, STR(NS), STR("count"), add_one, NULL, NULL, NULL, &t->err);
		if (r < 0)
			return r;
	}
	return 0;
}

static void try_changes(struct calls *t)
{
	struct fiber *f[4] = { NULL };
	bool ok = client_create(t->c, MAP, config_map(t, STR("count"), STR("0")), NULL, NULL, &t->err) == 0;
	for (size_t i = 0; i < ARRAY_LEN(f); i++)
		ok = fiber_spawn(add_ten, t, &f[i], &t->err, "adder") == 0 && ok;
	for (size_t i = 0; i < ARRAY_LEN(f); i++) {
		int r = -1;
		ok = f[i] && fiber_join(f[i], &r, &t->err) == 0 && r == 0 && ok;
	}
	CLEANUP(frozen_unrefp) struct frozen *got = NULL;
	ok = ok && client_get(t->c, MAP, STR(NS), STR("count"), &got, &t->err) == 0 && str_eq(value_of(got->val), STR("40"));
	tell(t, "four change one object, ten times each", ok);
}

/* ---- many ---- */

static void try_lists(struct calls *t)
{
	bool ok = true;
	for (int i = 0; i < 5 && ok; i++)
		ok = client_create(t->c, MAP, config_map(t, arena_printf(&t->arena, "l%d", i), STR("1")), NULL, NULL, &t->err) == 0;
	struct client_list_options o = { .namespace = STR(NS), .labels = STR("app=x"), .limit = 2 };
	unsigned items = 0, pages = 0;
	do {
		CLEANUP(frozen_unrefp) struct frozen *page = NULL;
		ok = ok && client_list(t->c, MAP, &o, &page, &t->err) == 0 && val_str(page->val, metadata, resourceVersion).n;
		o.next = ok ? arena_str(&t->arena, val_as_str(val_find(val_get(page->val, metadata), STR("continue")))) : STR_NONE;
		items += ok ? val_len(val_get(page->val, items)) : 0;
		pages++;
	} while (ok && o.next.n && pages < 20);
	tell(t, "pages of a list", ok && items == 8 && pages == 4);
	CLEANUP(frozen_unrefp) struct frozen *some = NULL;
	o = (struct client_list_options){ .namespace = STR(NS), .fields = STR("metadata.name=l3") };
	tell(t, "list by field", client_list(t->c, MAP, &o, &some, &t->err) == 0 && val_len(val_get(some->val, items)) == 1);
}

/* The next event is of this type, of an object with this name. */
static bool next_is(struct calls *t, struct client_watch *w, enum client_event_type type, const char *name,
		  struct client_event *e)
{
	return client_watch_next(w, e, &t->err) == 1 && e->type == type && (!name || str_eq(val_str(e->object->val,
			  metadata, name), str_of(name)));
}

static void try_watches(struct calls *t)
{
	CLEANUP(client_watch_freep) struct client_watch *w = NULL;
	struct client_event e = { 0 };
	struct client_watch_options o = { .list = { .namespace = STR(NS), .labels = STR("app=x") }, .initial = true };
	bool ok = client_watch(t->c, MAP, &o, &w, &t->err) == 0;
	unsigned initial = 0;
	while (ok && (ok = client_watch_next(w, &e, &t->err) == 1) && e.type == CLIENT_ADDED)
		initial++;
	tell(t, "initial events of a watch", ok && initial == 8 && e.type == CLIENT_BOOKMARK && e.initial_end &&
					     val_str(e.object->val, metadata, resourceVersion).n);
	ok = client_create(t->c, MAP, config_map(t, STR("seen"), STR("1")), NULL, NULL, &t->err) == 0 && next_is(t,
			  w, CLIENT_ADDED, "seen", &e) &&
	     str_eq(value_of(e.object->val), STR("1"));
	tell(t, "ADDED", ok);
	tell(t, "MODIFIED", client_update(t->c, MAP, config_map(t, STR("seen"), STR("2")), NULL, NULL, &t->err) == 0 &&
			    next_is(t, w, CLIENT_MODIFIED, "seen", &e) && str_eq(value_of(e.object->val), STR("2")));
	CLEANUP(frozen_unrefp) struct frozen *last = e.object ? frozen_ref(e.object) : NULL;
	struct client_delete_options d = { .grace_s = -1, .uid = STR("other") };
	tell(t, "delete only that one", client_delete(t->c, MAP, STR(NS), STR("seen"), &d, &t->err) == -ERR_CONFLICT);
	d.uid = last ? val_str(last->val, metadata, uid) : STR_NONE;
	tell(t, "DELETED", client_delete(t->c, MAP, STR(NS), STR("seen"), &d, &t->err) == 0 && next_is(t, w,
			  CLIENT_DELETED, "seen", &e));
	CLEANUP(client_watch_freep) struct client_watch *later = NULL;
	struct client_watch_options from = { .list = { .namespace = STR(NS), .revision = last ? val_str(last->val,
			  metadata, resourceVersion) : STR_NONE }, .timeout_s = 1 };
	tell(t, "watch from a revision", client_watch(t->c, MAP, &from, &later, &t->err) == 0 && next_is(t, later,
			  CLIENT_DELETED, "seen", &e));
	tell(t, "the server ends a watch", client_watch_next(later, &e, &t->err) == 0);
}

/* ---- subresources ---- */

static void try_subresources(struct calls *t)
{
	struct arena *a = &t->arena;
	CLEANUP(frozen_unrefp) struct frozen *token = NULL, *pod = NULL, *scale = NULL;
	struct val meta = OBJECT(a, F(name, VAL_LIT("default")), F(namespace, VAL_LIT(NS)));
	struct val account = OBJECT(a, F(metadata, meta));
	bool ok = client_create(t->c, TYPE(core_v1, ServiceAccount), account, NULL, NULL, &t->err) == 0;
	struct client_write_options o = { .subresource = STR("token"), .reply = TYPE(authentication_v1, TokenRequest) };
	tell(t, "a token", ok && client_create(t->c, TYPE(core_v1, ServiceAccount), account, &o, &token,
			  &t->err) == 0 && val_str(token->val, status, token).n > 100);
	meta = OBJECT(a, F(name, VAL_LIT("web")), F(namespace, VAL_LIT(NS)));
	struct val containers = LIST(a, OBJECT(a, F(name, VAL_LIT("c")), F(image, VAL_LIT("i"))));
	struct val web = OBJECT(a, F(metadata, meta), F(spec, OBJECT(a, F(containers, containers))));
	ok = client_create(t->c, TYPE(core_v1, Pod), web, NULL, NULL, &t->err) == 0;
	o = (struct client_write_options){ .subresource = STR("binding") };
	struct val binding = OBJECT(a, F(metadata, meta), F(target, OBJECT(a, F(kind, VAL_LIT("Node")), F(name, VAL_LIT("n1")))));
	ok = ok && client_create(t->c, TYPE(core_v1, Pod), binding, &o, NULL, &t->err) == 0 && client_get(t->c,
			  TYPE(core_v1, Pod), STR(NS), STR("web"), &pod, &t->err) == 0;
	tell(t, "a binding", ok && str_eq(val_str(pod->val, spec, nodeName), STR("n1")));
	o = (struct client_write_options){ .subresource = STR("status") };
	struct val running = ok ? val_with(a, pod->val, VAL_LIT("Running"), status, phase) : VAL_EMPTY_OBJECT;
	frozen_unref(TAKE(token));
	tell(t, "a status", client_update(t->c, TYPE(core_v1, Pod), running, &o, &token, &t->err) == 0 &&
			  str_eq(val_str(token->val, status, phase), STR("Running")));
	struct val labels = val_put(a, VAL_EMPTY_OBJECT, atom_make(a, STR("app")), VAL_LIT("d"));
	struct val pods = OBJECT(a, F(metadata, OBJECT(a, F(labels, labels))), F(spec, OBJECT(a, F(containers, containers))));
	struct val deployment = OBJECT(a, F(metadata, meta), F(spec, OBJECT(a, F(selector, OBJECT(a, F(matchLabels,
			  labels))), F(template, pods))));
	o = (struct client_write_options){ .subresource = STR("scale"), .reply = TYPE(autoscaling_v1, Scale) };
	ok = client_create(t->c, TYPE(apps_v1, Deployment), deployment, NULL, NULL, &t->err) == 0;
	struct val three = OBJECT(a, F(metadata, meta), F(spec, OBJECT(a, F(replicas, val_of_int(3)))));
	tell(t, "a scale", ok && client_update(t->c, TYPE(apps_v1, Deployment), three, &o, &scale, &t->err) == 0 &&
			  val_int(scale->val, spec, replicas) == 3);
	o = (struct client_write_options){ .subresource = STR("eviction") };
	tell(t, "an eviction", client_create(t->c, TYPE(core_v1, Pod), OBJECT(a, F(metadata, meta)), &o, NULL, &t->err) == 0);
}

/* ---- others ---- */

static int get_as(struct calls *t, struct client_config config)
{
	CLEANUP(client_freep) struct client *c = NULL;
	int r = client_open(&config, &c, &t->err);
	return r < 0 ? r : client_get(c, MAP, STR(NS), STR("one"), NULL, &t->err);
}

static void try_others(struct calls *t)
{
	struct client_config other = { .server = t->config.server, .ca = t->config.ca, .ca_file = t->config.ca_file,
			  .token = STR("alice-token") };
	tell(t, "alice may not", get_as(t, other) == -ERR_FORBIDDEN &&
		str_eq(err_str(&t->err),
				  STR("configmaps \"one\" is forbidden: User \"alice\" cannot get resource "
				  "\"configmaps\" in API group \"\" in the namespace \"" NS "\"")));
	other.token = STR("admin-token");
	tell(t, "admin may", get_as(t, other) == 0);
	other.impersonate = STR("alice");
	other.impersonate_groups = LIST(&t->arena, VAL_LIT("devs"));
	tell(t, "admin as alice may not", get_as(t, other) == -ERR_FORBIDDEN && str_find(err_str(&t->err),
			  STR("User \"alice\" cannot")) > 0);
	other.impersonate = STR_NONE;
	other.impersonate_groups = VAL_EMPTY;
	other.token = STR("wrong");
	tell(t, "a wrong token", get_as(t, other) == -ERR_UNAUTHORIZED && str_eq(err_str(&t->err), STR("Unauthorized")));
}

static int try_calls(struct calls *t)
{
	try_one(t);
	try_patches(t);
	try_changes(t);
	try_lists(t);
	try_watches(t);
	try_subresources(t);
	try_others(t);
	return 0;
}

/* ---- broken watches ---- */

static int watch_from(struct calls *t, str revision)
{
	CLEANUP(client_watch_freep) struct client_watch *w = NULL;
	struct client_event e;
	int r = client_watch(t->c, MAP, &(struct client_watch_options){ .list.revision = revision, .bookmarks = true }, &w, &t->err);
	printf("begun\n");
	fflush(stdout);
	while (r >= 0 && (r = client_watch_next(w, &e, &t->err)) == 1)
		;
	printf("%d %s\n", r < 0 ? err_http_status(t->err.code) : 0, r < 0 ? t->err.msg : "");
	return 0;
}

struct arguments {
	int n;
	char **list;
};

static int run(void *arg)
{
	const struct arguments *given = arg;
	struct calls t = { .arena = ARENA_INIT };
	int r = kubeconfig_open(&t.arena, given->list[1], &t.config, &t.err);
	if (r == 0 && (r = client_open(&t.config, &t.c, &t.err)) == 0) {
		if (strcmp(given->list[2], "calls") == 0)
			r = try_calls(&t);
		else
			r = watch_from(&t, given->n > 3 ? str_of(given->list[3]) : STR_NONE);
	}
	if (r < 0)
		printf("not ok begin: %s\n", t.err.msg);
	client_free(t.c);
	arena_done(&t.arena);
	return r;
}

int main(int argc, char **argv)
{
	CLEANUP(loop_freep) struct loop *loop = NULL;
	struct arguments given = { argc, argv };
	if (argc < 3 || loop_new("client", &loop, NULL) < 0)
		return 2;
	return loop_run(loop, run, &given, NULL) < 0;
}
