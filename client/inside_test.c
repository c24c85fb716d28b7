/* A whole API server, and its clients in the same process. */
#include "apiserver/cache.h"
#include "apiserver/fairness/fairness.h"
#include "apiserver/watch.h"
#include "base/file.h"
#include "client/informer.h"
#include "client/inside_testing.h"
#include "codec/atoms.h"

#define MAP TYPE(core_v1, ConfigMap)
#define POD TYPE(core_v1, Pod)

/* ---- what is asked for ---- */

static struct kind *maps_of(struct world *w) { return kinds_find(&w->server->kinds, STR(""), STR("configmaps")); }

/* The cache's own block. */
static const struct frozen *cached(struct kind *kind, const char *key)
{
	struct object *o = cache_get(kind, str_of(key));
	return o ? o->frozen : NULL;
}

static str data_of(const struct frozen *f, const char *key) { return val_as_str(val_find(val_get(f->val, data), str_of(key))); }

static void make_map(struct world *w, const char *json, struct frozen **ret)
{
	CHECK_OK(w, client_create(w->c, MAP, tree(w, json), NULL, ret, &w->err));
}

FIBER_TEST(inside_one_object)
{
	struct world w;
	world_init(&w);
	CLEANUP(frozen_unrefp) struct frozen *made = NULL, *got = NULL, *after = NULL;
	make_map(&w, "{'metadata':{'name':'m','namespace':'n'},'data':{'x':'1'}}", &made);
	CHECK_INT(val_str(made->val, metadata, uid).n, 36);
	CHECK_STR(val_str(made->val, kind), "ConfigMap");
	CHECK_STR(val_str(val_at(val_get(made->val, metadata, managedFields), 0), manager), "inside-test");
	CHECK_OK(&w, client_get(w.c, MAP, STR("n"), STR("m"), &got, &w.err));
	CHECK(got == cached(maps_of(&w), "n/m") && got == made); /* nothing is copied */

	CHECK_OK(&w, client_update(w.c, MAP, val_with(&w.arena, got->val, tree(&w, "{'x':'2'}"), data), NULL, &after, &w.err));
	CHECK_STR(data_of(after, "x"), "2");
	CHECK_FAILS(&w, client_update(w.c, MAP, got->val, NULL, NULL, &w.err), ERR_CONFLICT,
		    "Operation cannot be fulfilled on configmaps \"m\": the object has been modified; please apply your changes to the "
		    "latest version and try again");
	CHECK_FAILS(&w, client_create(w.c, MAP, got->val, NULL, NULL, &w.err), ERR_INTERNAL,
		    "resourceVersion should not be set on objects to be created");
	CHECK_FAILS(&w, client_create(w.c, MAP, val_without(&w.arena, got->val, metadata, resourceVersion), NULL, NULL, &w.err),
		    ERR_ALREADY_EXISTS, "configmaps \"m\" already exists");
	CHECK_FAILS(&w, client_create(w.c, MAP, tree(&w, "{'metadata':{'name':'M','namespace':'n'}}"), NULL, NULL, &w.err),
		    ERR_INVALID,
		    "ConfigMap \"M\" is invalid: metadata.name: Invalid value: \"M\": a lowercase RFC 1123 subdomain must consist of lower "
		    "case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
		    "'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')");
	CHECK_FAILS(&w, client_create(w.c, MAP, tree(&w, "{'metadata':{'name':'m','namespace':'n'},'data':['x']}"), NULL, NULL, &w.err),
		    ERR_BAD_REQUEST, "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal array into "
				     "Go struct field ConfigMap.data of type map[string]string");
	CHECK_OK(&w, client_delete(w.c, MAP, STR("n"), STR("m"), NULL, &w.err));
	CHECK_FAILS(&w, client_delete(w.c, MAP, STR("n"), STR("m"), NULL, &w.err), ERR_NOT_FOUND, "configmaps \"m\" not found");
	world_done(&w);
}

FIBER_TEST(inside_changes)
{
	static const struct {
		enum client_patch kind;
		const char *patch, *x;
	} patches[] = {
		{ CLIENT_PATCH_JSON, "[{'op':'replace','path':'/data/x','value':'json'}]", "json" },
		{ CLIENT_PATCH_MERGE, "{'data':{'x':'merge'}}", "merge" },
		{ CLIENT_PATCH_STRATEGIC, "{'data':{'x':'strategic'}}", "strategic" },
	};
	const struct client_write_options dry = { .dry_run = true };
	struct world w;
	world_init(&w);
	make_map(&w, "{'metadata':{'name':'m','namespace':'n'},'data':{'x':'1'}}", NULL);
	for (size_t i = 0; i < ARRAY_LEN(patches); i++) {
		CLEANUP(frozen_unrefp) struct frozen *f = NULL;
		CHECK_OK(&w, client_patch(w.c, MAP, STR("n"), STR("m"), patches[i].kind, tree(&w, patches[i].patch), NULL, &f, &w.err));
		CHECK_STR_ROW(i, data_of(f, "x"), patches[i].x);
	}
	CLEANUP(frozen_unrefp) struct frozen *applied = NULL, *tried = NULL, *none = NULL;
	struct client_write_options o = { .manager = STR("applier") };
	struct val wish = tree(&w, "{'metadata':{'name':'m','namespace':'n'},'data':{'x':'applied'}}");
	CHECK_FAILS(&w, client_apply(w.c, MAP, wish, &o, NULL, &w.err), ERR_CONFLICT,
		    "Apply failed with 1 conflict: conflict with \"inside-test\" using v1: .data.x");
	o.force = true;
	CHECK_OK(&w, client_apply(w.c, MAP, wish, &o, &applied, &w.err));
	CHECK_STR(data_of(applied, "x"), "applied");
	CHECK_FAILS(&w, client_apply(w.c, MAP, wish, NULL, NULL, &w.err), ERR_INVALID,
		    "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch");

	struct val other = tree(&w, "{'metadata':{'name':'dry','namespace':'n'}}");
	CHECK_OK(&w, client_create(w.c, MAP, other, &dry, &tried, &w.err));
	CHECK_INT(val_str(tried->val, metadata, uid).n, 36);
	CHECK_FAILS(&w, client_get(w.c, MAP, STR("n"), STR("dry"), &none, &w.err), ERR_NOT_FOUND, "configmaps \"dry\" not found");
	struct client_delete_options wrong = { .grace_s = -1, .uid = STR("other") };
	err_clear(&w.err);
	CHECK_INT(client_delete(w.c, MAP, STR("n"), STR("m"), &wrong, &w.err), -ERR_CONFLICT);
	CHECK(cached(maps_of(&w), "n/m"));
	world_done(&w);
}

FIBER_TEST(inside_subresources)
{
	struct world w;
	CLEANUP(frozen_unrefp) struct frozen *pod = NULL, *shown = NULL, *token = NULL, *review = NULL;
	world_init(&w);
	struct val account = tree(&w, "{'metadata':{'name':'default','namespace':'n'}}");
	CHECK_OK(&w, client_create(w.c, TYPE(core_v1, ServiceAccount), account, NULL, NULL, &w.err));
	CHECK_OK(&w, client_create(w.c, POD, tree(&w, "{'metadata':{'name':'p','namespace':'n'},'spec':{'containers':[{'name':'c',"
						      "'image':'i'}]}}"), NULL, &pod, &w.err));
	CHECK_STR(val_str(pod->val, spec, restartPolicy), "Always");       /* defaults */
	CHECK_STR(val_str(pod->val, spec, serviceAccountName), "default"); /* admission */

	struct client_write_options o = { .subresource = STR("status") };
	struct val status = val_with(&w.arena, pod->val, VAL_LIT("here"), status, message);
	status = val_with(&w.arena, status, VAL_LIT("elsewhere"), spec, nodeName);
	CHECK_OK(&w, client_update(w.c, POD, status, &o, &shown, &w.err));
	CHECK_STR(val_str(shown->val, status, message), "here");
	CHECK_STR(val_str(shown->val, spec, nodeName), "");

	o.subresource = STR("binding");
	struct val binding = tree(&w, "{'metadata':{'name':'p','namespace':'n'},'target':{'kind':'Node','name':'node-1'}}");
	CHECK_OK(&w, client_create(w.c, POD, binding, &o, NULL, &w.err));
	CHECK_STR(val_str(cached(kinds_find(&w.server->kinds, STR(""), STR("pods")), "n/p")->val, spec, nodeName), "node-1");
	CHECK_FAILS(&w, client_create(w.c, POD, binding, &o, NULL, &w.err), ERR_CONFLICT,
		    "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node \"node-1\"");

	o.subresource = STR("eviction");
	struct val eviction = tree(&w, "{'metadata':{'name':'p','namespace':'n'},'deleteOptions':{'gracePeriodSeconds':0}}");
	CHECK_OK(&w, client_create(w.c, POD, eviction, &o, NULL, &w.err));
	CHECK(!cached(kinds_find(&w.server->kinds, STR(""), STR("pods")), "n/p"));

	o = (struct client_write_options){ .subresource = STR("token"), .reply = TYPE(authentication_v1, TokenRequest) };
	struct val asked = tree(&w, "{'metadata':{'name':'default','namespace':'n'},'spec':{'audiences':['a'],'expirationSeconds':600}}");
	CHECK_OK(&w, client_create(w.c, TYPE(core_v1, ServiceAccount), asked, &o, &token, &w.err));
	CHECK(val_str(token->val, status, token).n > 100);
	o = (struct client_write_options){ .subresource = STR("exec") };
	CHECK_FAILS(&w, client_create(w.c, POD, tree(&w, "{'metadata':{'name':'p','namespace':'n'}}"), &o, NULL, &w.err),
		    ERR_BAD_REQUEST, "a stream needs a connection");

	CLEANUP(frozen_unrefp) struct frozen *scale = NULL;
	struct val deployment = tree(&w, "{'metadata':{'name':'d','namespace':'n'},'spec':{'selector':{'matchLabels':{'a':'b'}},"
					 "'template':{'metadata':{'labels':{'a':'b'}},'spec':{'containers':[{'name':'c','image':'i'}]}}}}");
	CHECK_OK(&w, client_create(w.c, TYPE(apps_v1, Deployment), deployment, NULL, NULL, &w.err));
	o = (struct client_write_options){ .subresource = STR("scale"), .reply = TYPE(autoscaling_v1, Scale) };
	struct val wish = tree(&w, "{'metadata':{'name':'d','namespace':'n'},'spec':{'replicas':5}}");
	CHECK_OK(&w, client_update(w.c, TYPE(apps_v1, Deployment), wish, &o, &scale, &w.err));
	CHECK_INT(val_int(scale->val, spec, replicas), 5);

	struct val question = tree(&w, "{'spec':{'groups':['system:masters'],'user':'u','resourceAttributes':{'verb':'get',"
				       "'resource':'pods'}}}");
	CHECK_OK(&w, client_create(w.c, TYPE(authorization_v1, SubjectAccessReview), question, NULL, &review, &w.err));
	CHECK(val_bool(review->val, status, allowed));
	world_done(&w);
}

FIBER_TEST(inside_lists)
{
	struct world w;
	CLEANUP(frozen_unrefp) struct frozen *all = NULL, *page = NULL, *rest = NULL, *chosen = NULL;
	world_init(&w);
	make_map(&w, "{'metadata':{'name':'a','namespace':'n','labels':{'t':'1'}}}", NULL);
	make_map(&w, "{'metadata':{'name':'b','namespace':'n'}}", NULL);
	make_map(&w, "{'metadata':{'name':'c','namespace':'n','labels':{'t':'1'}}}", NULL);
	struct client_list_options o = { .namespace = STR("n") };
	CHECK_OK(&w, client_list(w.c, MAP, &o, &all, &w.err));
	CHECK_STR(val_str(all->val, kind), "ConfigMapList");
	CHECK_STR(val_str(all->val, apiVersion), "v1");
	CHECK_INT(val_len(val_get(all->val, items)), 3);
	struct val first = val_at(val_get(all->val, items), 0);
	CHECK_STR(val_str(first, metadata, name), "a");
	CHECK(!val_has(first, kind) && !val_has(first, apiVersion));
	CHECK(val_str(all->val, metadata, resourceVersion).n);

	o.limit = 2;
	CHECK_OK(&w, client_list(w.c, MAP, &o, &page, &w.err));
	CHECK_INT(val_len(val_get(page->val, items)), 2);
	CHECK_INT(val_int(page->val, metadata, remainingItemCount), 1);
	o.next = val_str(page->val, metadata, continue);
	CHECK_OK(&w, client_list(w.c, MAP, &o, &rest, &w.err));
	CHECK_STR(val_str(val_at(val_get(rest->val, items), 0), metadata, name), "c");
	o = (struct client_list_options){ .namespace = STR("n"), .labels = STR("t=1"), .fields = STR("metadata.name!=a") };
	CHECK_OK(&w, client_list(w.c, MAP, &o, &chosen, &w.err));
	CHECK_INT(val_len(val_get(chosen->val, items)), 1);
	o = (struct client_list_options){ .namespace = STR("n"), .labels = STR("t=1") };
	CHECK_OK(&w, client_delete_collection(w.c, MAP, &o, NULL, &w.err));
	CHECK(!cached(maps_of(&w), "n/a") && cached(maps_of(&w), "n/b") && !cached(maps_of(&w), "n/c"));
	o = (struct client_list_options){ .labels = STR("!!") };
	err_clear(&w.err);
	CHECK_INT(client_list(w.c, MAP, &o, &chosen, &w.err), -ERR_BAD_REQUEST);
	err_clear(&w.err);

	/* another version than the one that is cached is another tree */
	CLEANUP(frozen_unrefp) struct frozen *scale = NULL;
	CHECK_OK(&w, client_create(w.c, TYPE(autoscaling_v2, HorizontalPodAutoscaler),
				   tree(&w, "{'metadata':{'name':'h','namespace':'n'},'spec':{'maxReplicas':3,'scaleTargetRef':{'kind':'Deployment',"
					    "'name':'d','apiVersion':'apps/v1'}}}"), NULL, NULL, &w.err));
	CHECK_OK(&w, client_get(w.c, TYPE(autoscaling_v1, HorizontalPodAutoscaler), STR("n"), STR("h"), &scale, &w.err));
	CHECK_STR(val_str(scale->val, apiVersion), "autoscaling/v1");
	CHECK_INT(val_int(scale->val, spec, targetCPUUtilizationPercentage), 80);
	world_done(&w);
}

/* ---- watches ---- */

/* "ADDED a 1" or "BOOKMARK" or "BOOKMARK end"; "." at the end. */
static str next(struct world *w, struct client_watch *watch)
{
	static const char *const names[] = { "ADDED", "MODIFIED", "DELETED", "BOOKMARK" };
	struct client_event e;
	DEADLINE_SCOPE(10000);
	int r = client_watch_next(watch, &e, &w->err);
	if (r < 0)
		fail_msg("%s", w->err.msg);
	if (r == 0)
		return STR(".");
	if (e.type == CLIENT_BOOKMARK)
		return e.initial_end ? STR("BOOKMARK end") : STR("BOOKMARK");
	return arena_printf(&w->arena, "%s " STR_FMT " " STR_FMT, names[e.type], STR_ARG(val_str(e.object->val, metadata, name)),
			    STR_ARG(data_of(e.object, "x")));
}

static void put(struct world *w, const char *x, const char *label)
{
	CLEANUP(frozen_unrefp) struct frozen *ignored = NULL;
	const struct client_write_options o = { .manager = STR("putter"), .force = true };
	str json = arena_printf(&w->arena, "{'metadata':{'name':'a','namespace':'n','labels':{'t':'%s'}},'data':{'x':'%s'}}", label, x);
	CHECK_OK(w, client_apply(w->c, MAP, tree(w, json.p), &o, &ignored, &w->err));
}

/* The value of the line that begins so and has this label. */
static str gauge_of(str metrics, const char *name, const char *label)
{
	str line;
	while (metrics.n) {
		str_cut(metrics, '\n', &line, &metrics);
		ptrdiff_t end = str_find(line, STR("} "));
		if (str_starts(line, str_of(name)) && str_find(line, str_of(label)) > 0 && end > 0)
			return str_skip(line, (size_t)end + 2);
	}
	return STR("none");
}

FIBER_TEST(inside_watch_follows)
{
	struct world w;
	CLEANUP(client_watch_freep) struct client_watch *all = NULL, *some = NULL, *later = NULL;
	struct client_event e;
	world_init(&w);
	put(&w, "1", "in");
	struct client_watch_options o = { .list.namespace = STR("n"), .initial = true };
	CHECK_OK(&w, client_watch(w.c, MAP, &o, &all, &w.err));
	o.list.labels = STR("t=in");
	CHECK_OK(&w, client_watch(w.c, MAP, &o, &some, &w.err));
	CHECK_INT(client_watch_next(all, &e, &w.err), 1);
	CHECK(e.type == CLIENT_ADDED && e.object == cached(maps_of(&w), "n/a")); /* nothing is copied */
	str revision = arena_str(&w.arena, val_str(e.object->val, metadata, resourceVersion));
	CHECK_STR(next(&w, all), "BOOKMARK end");
	CHECK_STR(next(&w, some), "ADDED a 1");
	CHECK_STR(next(&w, some), "BOOKMARK end");

	put(&w, "2", "out");
	put(&w, "3", "in");
	CHECK_STR(next(&w, all), "MODIFIED a 2");
	CHECK_INT(client_watch_next(all, &e, &w.err), 1);
	CHECK(e.type == CLIENT_MODIFIED && e.object == cached(maps_of(&w), "n/a"));
	CHECK_STR(next(&w, some), "DELETED a 1");
	CHECK_STR(next(&w, some), "ADDED a 3");
	CHECK_OK(&w, client_delete(w.c, MAP, STR("n"), STR("a"), NULL, &w.err));
	CHECK_STR(next(&w, all), "DELETED a 3");
	CHECK_STR(next(&w, some), "DELETED a 3");

	o = (struct client_watch_options){ .list = { .namespace = STR("n"), .revision = revision } };
	CHECK_OK(&w, client_watch(w.c, MAP, &o, &later, &w.err));
	CHECK_STR(next(&w, later), "MODIFIED a 2");
	CHECK_STR(next(&w, later), "MODIFIED a 3");
	CHECK_STR(next(&w, later), "DELETED a 3");
	/* the server stops */
	w.server->stopping = true;
	watches_end(w.server);
	CHECK_STR(next(&w, later), ".");
	w.server->stopping = false;
	static const char gauge[] = "apiserver_longrunning_requests{";
	str metrics, before, after;
	CHECK_OK(&w, client_get_raw(w.c, &w.arena, STR("/metrics"), 8 << 20, &metrics, &w.err));
	before = arena_str(&w.arena, gauge_of(metrics, gauge, "resource=\"configmaps\""));
	client_watch_free(TAKE(all));
	client_watch_free(TAKE(some));
	client_watch_free(TAKE(later));
	CHECK_OK(&w, client_get_raw(w.c, &w.arena, STR("/metrics"), 8 << 20, &metrics, &w.err));
	after = gauge_of(metrics, gauge, "resource=\"configmaps\"");
	CHECK_STR(before, "3");
	CHECK_STR(after, "0");
	world_done(&w);
}

/* Two copies of all objects are one. */
FIBER_TEST(inside_informers_share)
{
	enum { N = 200 };
	struct world w;
	world_init(&w);
	for (int i = 0; i < N; i++) {
		str json = arena_printf(&w.arena, "{'metadata':{'name':'m-%d','namespace':'n'},'data':{'x':'%d'}}", i, i);
		make_map(&w, json.p, NULL);
	}
	struct informers *sets[] = { informers_new(w.c), informers_new(w.c) };
	struct informer *maps[] = { NULL, NULL };
	for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
		maps[i] = informers_get(sets[i], MAP, &(struct informer_options){ .namespace = STR("n") });
		CHECK_OK(&w, informers_start(sets[i], &w.err));
		CHECK_OK(&w, informers_wait(sets[i], &w.err));
		CHECK_INT(informer_count(maps[i]), N);
	}
	CHECK(informer_get(maps[0], STR("n/m-7")) == cached(maps_of(&w), "n/m-7"));
	CHECK(informer_get(maps[0], STR("n/m-7")) == informer_get(maps[1], STR("n/m-7")));
	CHECK_OK(&w, client_delete(w.c, MAP, STR("n"), STR("m-7"), NULL, &w.err));
	fiber_settle();
	CHECK(!informer_get(maps[0], STR("n/m-7")) && !informer_get(maps[1], STR("n/m-7")));
	informers_free(sets[0]);
	informers_free(sets[1]);
	world_done(&w);
}

struct waiter {
	struct client_watch *watch;
	struct err err;
	str seen;
	struct world *world;
};

static int wait_for_event(void *arg)
{
	struct waiter *t = arg;
	struct client_event e;
	int r = client_watch_next(t->watch, &e, &t->err);
	if (r > 0)
		t->seen = arena_str(&t->world->arena, data_of(e.object, "x"));
	return r;
}

FIBER_TEST(inside_watch_waits)
{
	struct world w;
	world_init(&w);
	struct waiter t = { .world = &w };
	struct client_watch_options o = { .list = { .namespace = STR("n"), .labels = STR("t=in"), .revision = STR("0") } };
	CHECK_OK(&w, client_watch(w.c, MAP, &o, &t.watch, &w.err));
	struct fiber *f = start(wait_for_event, &t);
	fiber_settle();
	put(&w, "1", "out");
	put(&w, "2", "in");
	CHECK_INT(join(f), 1);
	CHECK_STR(t.seen, "2");
	f = start(wait_for_event, &t);
	fiber_settle();
	CHECK_INT(fiber_stop(f), -ERR_CANCELED);
	put(&w, "3", "in"); /* it goes on for others */
	CHECK_STR(next(&w, t.watch), "MODIFIED a 3");
	client_watch_free(t.watch);
	world_done(&w);
}

FIBER_TEST(inside_watch_ends)
{
	struct world w;
	CLEANUP(client_watch_freep) struct client_watch *timed = NULL, *old = NULL;
	struct client_event e;
	world_init(&w);
	str revision = arena_printf(&w.arena, "%lld", (long long)cache_revision(w.server->cache));
	struct client_watch_options o = { .list = { .revision = revision, .fields = STR("metadata.name=none") },
					  .bookmarks = true, .timeout_s = 3 };
	CHECK_OK(&w, client_watch(w.c, MAP, &o, &timed, &w.err));
	CHECK_STR(next(&w, timed), "BOOKMARK"); /* two seconds before the end */
	CHECK_STR(next(&w, timed), ".");
	CHECK_STR(next(&w, timed), ".");

	int64_t newest = cache_revision(w.server->cache);
	maps_of(&w)->floor = newest;
	o = (struct client_watch_options){ .list.revision = STR("1") };
	CHECK_OK(&w, client_watch(w.c, MAP, &o, &old, &w.err));
	str text = arena_printf(&w.arena, "too old resource version: 1 (%lld)", (long long)newest);
	CHECK_FAILS(&w, client_watch_next(old, &e, &w.err), ERR_EXPIRED, text.p);
	CHECK_STR(next(&w, old), ".");
	client_watch_free(TAKE(old));
	client_watch_free(TAKE(timed));
	world_done(&w);
}

/* ---- the gates ---- */

static bool file_has(const char *path, const char *text)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(64 << 20);
	CHECK_INT(file_read(path, &b, NULL), 0);
	return str_find(buf_str(&b), str_of(text)) >= 0;
}

FIBER_TEST(inside_passes_the_gates)
{
	struct world w;
	CLEANUP(frozen_unrefp) struct frozen *f = NULL;
	CLEANUP(client_watch_freep) struct client_watch *watch = NULL;
	str text;
	world_init(&w);
	struct client *nobody = client_inside(w.server, &(struct user){ .name = STR("nobody") }, "nobody/1");
	CHECK_FAILS(&w, client_get(nobody, MAP, STR("n"), STR("m"), &f, &w.err), ERR_FORBIDDEN,
		    "configmaps \"m\" is forbidden: User \"nobody\" cannot get resource \"configmaps\" in API group \"\" in the "
		    "namespace \"n\"");
	CHECK_FAILS(&w, client_watch(nobody, MAP, NULL, &watch, &w.err), ERR_FORBIDDEN,
		    "configmaps is forbidden: User \"nobody\" cannot watch resource \"configmaps\" in API group \"\" at the cluster scope");
	CHECK_FAILS(&w, client_get_raw(nobody, &w.arena, STR("/metrics"), 1 << 20, &text, &w.err), ERR_FORBIDDEN,
		    "forbidden: User \"nobody\" cannot get path \"/metrics\"");
	client_free(nobody);

	CHECK_FAILS(&w, client_create(w.c, MAP, tree(&w, "{'metadata':{'name':'m','namespace':'none'}}"), NULL, NULL, &w.err),
		    ERR_NOT_FOUND, "namespaces \"none\" not found");
	make_map(&w, "{'metadata':{'name':'m','namespace':'n'},'data':{'x':'told'}}", NULL);
	CHECK(file_has(w.options.audit.log_path, "\"user\":{\"username\":\"operator\",\"groups\":[\"system:masters\",\"system:authenticated\"]}"));
	CHECK(file_has(w.options.audit.log_path, "\"userAgent\":\"inside-test/1.0 (x)\""));
	CHECK(file_has(w.options.audit.log_path, "\"requestObject\":{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"m\","
				"\"namespace\":\"n\"},\"data\":{\"x\":\"told\"}}"));
	CHECK(file_has(w.options.audit.log_path, "configmaps \\\"m\\\" is forbidden: User \\\"nobody\\\""));

	CHECK_OK(&w, client_get_raw(w.c, &w.arena, STR("/version"), 1 << 20, &text, &w.err));
	CHECK(str_find(text, STR("\"major\": \"1\"")) > 0);
	CHECK_OK(&w, client_get_raw(w.c, &w.arena, STR("/api/v1/namespaces/n/configmaps?limit=1"), 1 << 20, &text, &w.err));
	CHECK(str_starts(text, STR("{\"kind\":\"ConfigMapList\",")));
	CHECK_OK(&w, client_get_raw(w.c, &w.arena, STR("/metrics"), 8 << 20, &text, &w.err));
	CHECK(str_find(text, STR("apiserver_request_total{")) > 0 &&
	      str_find(text, STR("code=\"403\"")) > 0);
	CHECK_INT(client_get_raw(w.c, &w.arena, STR("/metrics"), 100, &text, &w.err), -ERR_TOO_LARGE);
	err_clear(&w.err);
	CHECK_INT(client_get_raw(w.c, &w.arena, STR("/api/v1/configmaps?watch=true"), 100, &text, &w.err), -ERR_BAD_REQUEST);
	unsigned reading = 1, writing = 1;
	fairness_count(w.server->flow, &reading, &writing); /* every seat was given back */
	CHECK_INT(reading, 0);
	CHECK_INT(writing, 0);
	world_done(&w);
}
