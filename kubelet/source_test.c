/* Where pods come from: manifests in a folder and behind a URL, and a whole API server with mirror pods. */
#include "kubelet/source.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "client/inside_testing.h"
#include "client/script_testing.h"
#include "codec/atoms.h"
#include "kubelet/source_priv.h"

enum { WAIT_MS = 10000, FOREVER_MS = 600 * 1000, SHORT_MS = 20 };

#define POD TYPE(core_v1, Pod)

static const struct kubelet_node node = { .name = STR_INIT("n1") };

/* ---- manifests ---- */

#define MANIFEST "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: c, image: x}]}\n"
#define SPEC(more) "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: c, image: x}], " more "}\n"

static struct val decode(struct arena *a, const char *node_name, const char *place, const char *text)
{
	struct kubelet_node n = { .name = str_of(node_name) };
	struct err err = ERR_INIT;
	struct val pods = VAL_EMPTY;

	if (static_pods_decode(a, &n, SOURCE_FILE, str_of(place), str_of(text), false, &pods, &err) < 0)
		fail_msg("%s", err.msg);
	CHECK_INT(val_len(pods), 1);
	return val_at(pods, 0);
}

static str annotation(struct val pod, const char *name)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	return pod_annotation(pod, arena_printf(&a, "kubernetes.io/config.%s", name));
}

TEST(source_manifest_becomes_a_pod)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val pod = decode(&a, "n1", "/m/web.yaml", MANIFEST), tolerations = val_get(pod, spec, tolerations);
	str uid = val_str(pod, metadata, uid);

	CHECK_STR(val_str(pod, metadata, name), "web-n1");
	CHECK_STR(val_str(pod, metadata, namespace), "default");
	CHECK_STR(val_str(pod, spec, nodeName), "n1");
	CHECK_INT(uid.n, 32);
	CHECK(str_eq(annotation(pod, "hash"), uid));
	CHECK_INT(val_len(tolerations), 1);
	CHECK_STR(val_str(val_at(tolerations, 0), operator), "Exists");
	CHECK_STR(val_str(val_at(tolerations, 0), effect), "NoExecute");
	/* Defaults. */
	CHECK_STR(val_str(pod, spec, restartPolicy), "Always");
	CHECK_STR(val_str(val_at(val_get(pod, spec, containers), 0), imagePullPolicy), "Always");
	CHECK_STR(val_str(pod, status, phase), "Pending");
}

TEST(source_uid_is_content_and_place)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str uid = val_str(decode(&a, "n", "/m/a", MANIFEST), metadata, uid);

	CHECK(str_eq(uid, val_str(decode(&a, "n", "/m/a", MANIFEST "# nothing\n"), metadata, uid)));
	CHECK(!str_eq(uid, val_str(decode(&a, "n", "/m/b", MANIFEST), metadata, uid)));
	CHECK(!str_eq(uid, val_str(decode(&a, "o", "/m/a", MANIFEST), metadata, uid)));
	CHECK(!str_eq(uid, val_str(decode(&a, "n", "/m/a", SPEC("hostNetwork: true")), metadata, uid)));
	/* One's own is kept. */
	CHECK_STR(val_str(decode(&a, "n", "/m/a", "apiVersion: v1\nkind: Pod\nmetadata: {name: web, uid: mine, namespace: x}\n"
						  "spec: {containers: [{name: c, image: x}]}"),
			  metadata, uid),
		  "mine");
}

TEST(source_manifest_is_refused)
{
	static const struct {
		const char *text, *error;
	} rows[] = {
		{ "a: [", "yaml: line 1: did not find expected node content" },
		{ "{}", "Object 'Kind' is missing in '{}'" },
		{ "apiVersion: v1\nkind: ConfigMap\n", "it is no Pod" },
		{ "apiVersion: v1\nkind: PodList\nitems: []\n", "it is no Pod" },
		{ "apiVersion: v1\nkind: Pod\nspec: {containers: [{name: c, image: x}]}\n", "invalid pod: name is needed for the pod" },
		{ "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: []}\n",
		  "invalid pod: spec.containers: Required value" },
		{ "apiVersion: v1\nkind: Pod\nmetadata: {name: web, uid: ../x}\nspec: {}\n", "invalid pod: its uid cannot be a file name" },
		{ SPEC("serviceAccountName: x"), "static pods may not reference serviceaccounts" },
		{ SPEC("imagePullSecrets: [{name: x}]"), "static pods may not reference secrets" },
		{ "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n"
		  "spec: {containers: [{name: c, image: x, envFrom: [{configMapRef: {name: x}}]}]}\n",
		  "static pods may not reference configmaps" },
		{ SPEC("volumes: [{name: v, persistentVolumeClaim: {claimName: x}}]"), "static pods may not reference persistentvolumeclaims" },
		{ SPEC("volumes: [{name: v, projected: {sources: [{clusterTrustBundle: {name: x, path: z}}]}}]"),
		  "static pods may not reference clustertrustbundles" },
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct err err = ERR_INIT;
		struct val pods;
		CHECK_ROW(i, static_pods_decode(&a, &node, SOURCE_FILE, STR("/x"), str_of(rows[i].text), false, &pods, &err) < 0);
		CHECK_STR_ROW(i, err_str(&err), rows[i].error);
	}
}

TEST(source_list_of_pods)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const char *text = "{\"apiVersion\":\"v1\",\"kind\":\"PodList\",\"items\":["
			   "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"x\"}]}},"
			   "{\"metadata\":{\"name\":\"b\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"x\"}]}}]}";
	struct val pods = VAL_EMPTY;

	CHECK_INT(static_pods_decode(&a, &node, SOURCE_URL, STR("http://x"), str_of(text), true, &pods, NULL), 0);
	CHECK_INT(val_len(pods), 2);
	CHECK_STR(val_str(val_at(pods, 1), metadata, name), "b-n1");
	CHECK_INT(val_len(val_get(val_at(pods, 1), spec, tolerations)), 0);
}

/* ---- being told ---- */

struct told {
	struct sources *sources;
	struct fiber *fiber;
	struct buf log;              /* a line for each */
	struct arena arena;
	struct frozen *last;         /* the last update */
	bool busy;                   /* something of static pods is left */
	unsigned mirrors, no_mirrors; /* how often they were there, and gone */
};

static void on_update(void *arg, struct frozen *pod)
{
	struct told *t = arg;
	frozen_unref(t->last);
	t->last = frozen_ref(pod);
	buf_addf(&t->log, "+" STR_FMT "\n", STR_ARG(val_str(pod->val, metadata, name)));
}

static void on_remove(void *arg, str uid)
{
	struct told *t = arg;
	buf_addf(&t->log, "-%s\n", t->last && str_eq(val_str(t->last->val, metadata, uid), uid) ? "last" : "other");
}

static void on_complete(void *arg) { buf_add(&((struct told *)arg)->log, STR("complete\n")); }

static void on_mirror(void *arg, str static_uid, struct frozen *mirror)
{
	struct told *t = arg;
	CHECK_INT(static_uid.n, 32);
	*(mirror ? &t->mirrors : &t->no_mirrors) += 1;
}

static bool is_gone(void *arg, str uid)
{
	(void)uid;
	return !((struct told *)arg)->busy;
}

static int run_sources(void *arg) { return sources_run(arg, NULL); }

static void told_init(struct told *t, struct sources_options o)
{
	*t = (struct told){ .log = BUF_INIT(1 << 20) };
	o.node = &node;
	o.update = on_update;
	o.remove = on_remove;
	o.complete = on_complete;
	o.mirror = on_mirror;
	o.gone = is_gone;
	o.arg = t;
	t->sources = sources_new(&o);
	t->fiber = start(run_sources, t->sources);
}

static void told_done(struct told *t)
{
	CHECK_INT(fiber_stop(t->fiber), -ERR_CANCELED);
	sources_free(t->sources);
	buf_done(&t->log);
	arena_done(&t->arena);
	frozen_unref(t->last);
}

/* (suspends) Until exactly this has been told since the last time. */
static void expect_at(struct told *t, const char *text, int line)
{
	int64_t begin_ns = clock_now_ns();

	while (!str_eq(buf_str(&t->log), str_of(text)) && clock_now_ns() - begin_ns < WAIT_MS * NS_PER_MS &&
	       t->log.n <= strlen(text))
		CHECK_INT(fiber_sleep_ms(1, NULL), 0);
	test_check_str(buf_str(&t->log), str_of(text), -1, __FILE__, line);
	buf_reset(&t->log);
}
#define EXPECT(t, text) expect_at(t, text, __LINE__)

/* Nothing is told for a while. */
static void expect_silence(struct told *t)
{
	CHECK_INT(fiber_sleep_ms(SHORT_MS, NULL), 0);
	EXPECT(t, "");
}

/* ---- a folder ---- */

struct folder_test {
	struct told told;
	struct arena paths;
	char path[64];
};

static const char *at(struct folder_test *t, const char *name)
{
	return arena_printf(&t->paths, "%s/%s", t->path, name).p;
}

static void put_file(struct folder_test *t, const char *name, const char *text)
{
	FILE *f = fopen(at(t, name), "we");
	CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void folder_init(struct folder_test *t, int64_t check_ms)
{
	(void)snprintf(t->path, sizeof t->path, "/tmp/c8s-source-XXXXXX");
	CHECK(mkdtemp(t->path));
	told_init(&t->told, (struct sources_options){ .path = t->path, .file_check_ms = check_ms });
	log_set_level(LOG_LEVEL_OFF);
}

static void folder_test_done(struct folder_test *t)
{
	told_done(&t->told);
	arena_done(&t->paths);
	(void)nftw(t->path, server_folder_remove_one, 8, FTW_DEPTH | FTW_PHYS);
	log_set_level(LOG_LEVEL_ERROR);
}

FIBER_TEST(source_folder_is_watched)
{
	static struct folder_test t;
	struct told *told = &t.told;
	str seen;

	folder_init(&t, FOREVER_MS);
	EXPECT(told, "complete\n");
	put_file(&t, "web.yaml", MANIFEST);
	EXPECT(told, "+web-n1\n");
	CHECK_STR(annotation(told->last->val, "source"), "file");
	seen = arena_str(&told->arena, annotation(told->last->val, "seen"));
	CHECK(seen.n > 20 && str_ends(seen, STR("Z")));
	/* The same content is the same pod; another is another. */
	put_file(&t, "web.yaml", MANIFEST);
	expect_silence(told);
	put_file(&t, "web.yaml", SPEC("hostNetwork: true"));
	EXPECT(told, "-last\n+web-n1\n");
	CHECK(!str_eq(seen, annotation(told->last->val, "seen")));
	/* What is wrong may be half of what is right: all stays for now. */
	put_file(&t, "web.yaml", "apiVersion: v1\nkind: Po");
	expect_silence(told);
	put_file(&t, "web.yaml", SPEC("hostNetwork: true"));
	expect_silence(told);
	/* No manifests; and two with one name. */
	put_file(&t, ".web.yaml.swp", MANIFEST);
	CHECK_INT(mkdir(at(&t, "d"), 0700), 0);
	put_file(&t, "zweb.yaml", SPEC("hostPID: true"));
	expect_silence(told);
	CHECK_INT(unlink(at(&t, "web.yaml")), 0);
	EXPECT(told, "-last\n+web-n1\n");
	CHECK_INT(unlink(at(&t, "zweb.yaml")), 0);
	EXPECT(told, "-last\n");
	/* Moved here, linked here. */
	CHECK_INT(rename(at(&t, ".web.yaml.swp"), at(&t, "w")), 0);
	EXPECT(told, "+web-n1\n");
	CHECK_INT(rename(at(&t, "w"), at(&t, ".w")), 0);
	EXPECT(told, "-last\n");
	CHECK_INT(symlink(".w", at(&t, "s")), 0);
	EXPECT(told, "+web-n1\n");
	folder_test_done(&t);
}

FIBER_TEST(source_folder_is_checked_now_and_then)
{
	static struct folder_test t;
	struct told *told = &t.told;

	folder_init(&t, SHORT_MS);
	EXPECT(told, "complete\n");
	put_file(&t, "web.json", "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"web\",\"uid\":\"u\"},"
				 "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"x\"}]}}");
	EXPECT(told, "+web-n1\n");
	/* With a uid of its own it is changed, not replaced. */
	str seen = arena_str(&told->arena, annotation(told->last->val, "seen"));
	put_file(&t, "web.json", "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"web\",\"uid\":\"u\"},"
				 "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"y\"}]}}");
	EXPECT(told, "+web-n1\n");
	CHECK(str_eq(seen, annotation(told->last->val, "seen")));
	put_file(&t, "web.json", "{");
	EXPECT(told, "-last\n");
	put_file(&t, "web.json", MANIFEST);
	EXPECT(told, "+web-n1\n");
	/* The folder goes and comes. */
	char aside[80];
	(void)snprintf(aside, sizeof aside, "%s.aside", t.path);
	CHECK_INT(rename(t.path, aside), 0);
	EXPECT(told, "-last\n");
	CHECK_INT(rename(aside, t.path), 0);
	EXPECT(told, "+web-n1\n");
	CHECK_INT(unlink(at(&t, "web.json")), 0);
	EXPECT(told, "-last\n");
	folder_test_done(&t);
}

FIBER_TEST(source_one_file)
{
	static struct folder_test t;
	struct told *told = &t.told;
	char path[80];

	folder_init(&t, FOREVER_MS);
	EXPECT(told, "complete\n");
	(void)snprintf(path, sizeof path, "%s/web", t.path);
	told_done(told);
	told_init(told, (struct sources_options){ .path = path, .file_check_ms = SHORT_MS });
	EXPECT(told, "complete\n");
	put_file(&t, "web", MANIFEST);
	EXPECT(told, "+web-n1\n");
	CHECK_INT(unlink(path), 0);
	EXPECT(told, "-last\n");
	folder_test_done(&t);
}

/* ---- a URL ---- */

FIBER_TEST(source_url)
{
	static const char *const pod_a = "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"},"
					 "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"x\"}]}}";
	static struct script server;
	static struct told t;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	log_set_level(LOG_LEVEL_OFF);
	script_init(&server);
	script_add_json(&server, 500, "", pod_a);
	script_add_json(&server, 200, "", pod_a);
	script_add_json(&server, 200, "", pod_a);
	script_add_json(&server, 200, "", "{\"apiVersion\":\"v1\",\"kind\":\"PodList\",\"items\":[]}");
	script_add_json(&server, 200, "", "");
	const char *url = arena_printf(&a, "http://127.0.0.1:%u/pods", server.port).p;
	struct val header = testing_tree(&a, "{'X-Who':['me','you']}");
	told_init(&t, (struct sources_options){ .url = url, .url_header = header, .url_check_ms = 2 * SHORT_MS });
	EXPECT(&t, "+a-n1\ncomplete\n-last\n");
	CHECK_STR(annotation(t.last->val, "source"), "http");
	CHECK_STR(script_line(&server, 0), "GET /pods HTTP/1.1");
	CHECK_STR(script_header(&server, 0, "X-Who"), "me");
	expect_silence(&t);
	told_done(&t);
	script_done(&server);
	log_set_level(LOG_LEVEL_ERROR);
}

/* ---- a whole server ---- */

static struct frozen *get_pod(struct world *w, const char *namespace, const char *name)
{
	struct frozen *pod = NULL;
	struct err err = ERR_INIT;
	return client_get(w->c, POD, str_of(namespace), str_of(name), &pod, &err) == 0 ? pod : NULL;
}

/* (suspends) The mirror pod once there is one that is not the one of that uid. */
static struct frozen *wait_mirror(struct world *w, str not_uid)
{
	DEADLINE_SCOPE(WAIT_MS);
	for (;;) {
		struct frozen *pod = get_pod(w, "n", "web-n1");
		if (pod && !val_has(pod->val, metadata, deletionTimestamp) && !str_eq(val_str(pod->val, metadata, uid), not_uid))
			return pod;
		frozen_unref(pod);
		if (fiber_sleep_ms(2, NULL) < 0)
			fail_msg("there is no mirror pod");
	}
}

static void wait_no_mirror(struct world *w)
{
	struct frozen *pod;
	DEADLINE_SCOPE(WAIT_MS);
	while ((pod = get_pod(w, "n", "web-n1"))) {
		frozen_unref(pod);
		if (fiber_sleep_ms(2, NULL) < 0)
			fail_msg("the mirror pod stays");
	}
}

struct cluster_test {
	struct world w;
	struct folder_test folder;
	struct informers *informers;
};

#define IN_N(more) \
	"apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: \"n\"}\nspec: {containers: [{name: c, image: x}]" more "}\n"

static void cluster_init(struct cluster_test *t)
{
	world_init(&t->w);
	CHECK_OK(&t->w, client_create(t->w.c, TYPE(core_v1, ServiceAccount), tree(&t->w, "{'metadata':{'name':'default','namespace':'n'}}"), NULL,
				      NULL, &t->w.err));
	(void)snprintf(t->folder.path, sizeof t->folder.path, "/tmp/c8s-source-XXXXXX");
	CHECK(mkdtemp(t->folder.path));
	put_file(&t->folder, "web", IN_N(""));
	log_set_level(LOG_LEVEL_OFF);
	t->informers = informers_new(t->w.c);
	CHECK_OK(&t->w, informers_start(t->informers, &t->w.err));
	told_init(&t->folder.told, (struct sources_options){ .client = t->w.c, .informers = t->informers, .path = t->folder.path,
							     .file_check_ms = FOREVER_MS });
}

static void cluster_done(struct cluster_test *t)
{
	folder_test_done(&t->folder);
	informers_free(t->informers);
	world_done(&t->w);
}

static void make_node(struct cluster_test *t, struct frozen **ret)
{
	CHECK_OK(&t->w, client_create(t->w.c, TYPE(core_v1, Node), tree(&t->w, "{'metadata':{'name':'n1'}}"), NULL, ret, &t->w.err));
}

static void check_mirror(struct cluster_test *t, struct frozen *mirror, struct frozen *n)
{
	struct val pod = mirror->val, owners = val_get(pod, metadata, ownerReferences), owner = val_at(owners, 0);
	struct told *told = &t->folder.told;
	str uid = val_str(told->last->val, metadata, uid), mirror_uid = val_str(pod, metadata, uid);

	CHECK(str_eq(annotation(pod, "mirror"), uid) && str_eq(annotation(pod, "hash"), uid));
	CHECK_STR(annotation(pod, "source"), "file");
	CHECK(str_eq(annotation(pod, "seen"), annotation(told->last->val, "seen")));
	CHECK_STR(val_str(pod, spec, nodeName), "n1");
	CHECK_INT(val_len(owners), 1);
	CHECK_STR(val_str(owner, kind), "Node");
	CHECK_STR(val_str(owner, name), "n1");
	CHECK(str_eq(val_str(owner, uid), val_str(n->val, metadata, uid)));
	CHECK(val_bool(owner, controller) && !val_has(owner, blockOwnerDeletion));
	CHECK(!str_eq(mirror_uid, uid));
	DEADLINE_SCOPE(WAIT_MS); /* the informer may lag */
	while (!str_eq(sources_mirror_uid(told->sources, &t->w.arena, uid), mirror_uid))
		CHECK_INT(fiber_sleep_ms(1, NULL), 0);
	CHECK(str_eq(sources_static_uid(told->sources, &t->w.arena, mirror_uid), uid));
}

FIBER_TEST(source_mirror_pods)
{
	static struct cluster_test t;
	cluster_init(&t);
	struct told *told = &t.folder.told;
	CLEANUP(frozen_unrefp) struct frozen *n = NULL, *first = NULL, *second = NULL, *third = NULL, *still = NULL;

	EXPECT(told, "+web-n1\ncomplete\n");
	CHECK_INT(fiber_sleep_ms(SHORT_MS, NULL), 0);
	CHECK(!get_pod(&t.w, "n", "web-n1"));
	make_node(&t, &n);
	first = wait_mirror(&t.w, STR_NONE);
	check_mirror(&t, first, n);
	/* Deleted by somebody: it comes again, the static pod does not care. */
	CHECK_OK(&t.w, client_delete(t.w.c, POD, STR("n"), STR("web-n1"), NULL, &t.w.err));
	second = wait_mirror(&t.w, val_str(first->val, metadata, uid));
	check_mirror(&t, second, n);
	CHECK_INT(told->no_mirrors, 1);
	EXPECT(told, "");
	/* Another content: another mirror, as soon as nothing of the first is left. */
	told->busy = true;
	put_file(&t.folder, "web", IN_N(", hostNetwork: true"));
	EXPECT(told, "-last\n+web-n1\n");
	CHECK_INT(fiber_sleep_ms(SHORT_MS, NULL), 0);
	still = wait_mirror(&t.w, STR_NONE);
	CHECK(str_eq(val_str(still->val, metadata, uid), val_str(second->val, metadata, uid)));
	told->busy = false;
	third = wait_mirror(&t.w, val_str(second->val, metadata, uid));
	check_mirror(&t, third, n);
	/* It goes with its pod. */
	CHECK_INT(unlink(at(&t.folder, "web")), 0);
	EXPECT(told, "-last\n");
	wait_no_mirror(&t.w);
	CHECK_INT(sources_mirror_clean(told->sources, NULL), 0);
	cluster_done(&t);
}

static void make_pod(struct cluster_test *t, const char *name, const char *metadata, const char *node_name, struct frozen **ret)
{
	struct arena *a = &t->w.arena;
	struct val meta = val_put(a, testing_tree(a, metadata), A_name, VAL_STR(str_of(name)));
	struct val spec = val_put(a, testing_tree(a, "{'containers':[{'name':'c','image':'x'}],'automountServiceAccountToken':false}"), A_nodeName,
				  VAL_STR(str_of(node_name)));

	meta = val_put(a, meta, A_namespace, VAL_LIT("n"));
	CHECK_OK(&t->w, client_create(t->w.c, POD, OBJECT(a, F(metadata, meta), F(spec, spec)), NULL, ret, &t->w.err));
}

/* Anybody may write the annotation: a pod of another name does not take the mirror's place, and goes, whatever is left of the static pod. */
FIBER_TEST(source_mirror_that_is_none)
{
	static struct cluster_test t;
	cluster_init(&t);
	struct told *told = &t.folder.told;
	CLEANUP(frozen_unrefp) struct frozen *n = NULL, *mirror = NULL, *evil = NULL;

	EXPECT(told, "+web-n1\ncomplete\n");
	make_node(&t, &n);
	mirror = wait_mirror(&t.w, STR_NONE);
	check_mirror(&t, mirror, n);
	told->busy = true;
	str uid = arena_str(&t.w.arena, val_str(told->last->val, metadata, uid));
	make_pod(&t, "evil", arena_printf(&t.w.arena, "{'annotations':{'kubernetes.io/config.mirror':'" STR_FMT "'}}", STR_ARG(uid)).p, "n1", NULL);
	DEADLINE_SCOPE(WAIT_MS);
	while ((evil = get_pod(&t.w, "n", "evil"))) {
		CHECK(str_eq(sources_mirror_uid(told->sources, &t.w.arena, uid), val_str(mirror->val, metadata, uid)));
		frozen_unref(evil);
		CHECK_INT(fiber_sleep_ms(1, NULL), 0);
	}
	CHECK(str_eq(sources_mirror_uid(told->sources, &t.w.arena, uid), val_str(mirror->val, metadata, uid)));
	cluster_done(&t);
}

FIBER_TEST(source_api)
{
	static struct cluster_test t;
	const struct client_delete_options now = { .grace_s = 0 };
	cluster_init(&t);
	struct told *told = &t.folder.told;
	CLEANUP(frozen_unrefp) struct frozen *pod = NULL, *orphan = NULL;
	str seen;

	EXPECT(told, "+web-n1\ncomplete\n");
	make_pod(&t, "far", "{}", "n2", NULL);
	/* A mirror of nothing, and one that is no mirror. */
	make_pod(&t, "lost", "{'annotations':{'kubernetes.io/config.mirror':'0123456789abcdef0123456789abcdef'}}", "n1", &orphan);
	make_pod(&t, "near", "{'annotations':{'a':'b'}}", "n1", &pod);
	EXPECT(told, "+near\n");
	CHECK_STR(annotation(told->last->val, "source"), "api");
	CHECK_STR(pod_annotation(told->last->val, STR("a")), "b");
	seen = arena_str(&told->arena, annotation(told->last->val, "seen"));
	CHECK_OK(&t.w, client_patch(t.w.c, POD, STR("n"), STR("near"), CLIENT_PATCH_MERGE, tree(&t.w, "{'metadata':{'labels':{'x':'y'}}}"), NULL,
				    NULL, &t.w.err));
	EXPECT(told, "+near\n");
	CHECK(str_eq(seen, annotation(told->last->val, "seen")));
	CHECK_STR(val_as_str(val_find(val_get(told->last->val, metadata, labels), STR("x"))), "y");
	CHECK_OK(&t.w, client_delete(t.w.c, POD, STR("n"), STR("near"), &now, &t.w.err));
	EXPECT(told, "+near\n-last\n");
	DEADLINE_SCOPE(WAIT_MS);
	while (!told->no_mirrors)
		CHECK_INT(fiber_sleep_ms(1, NULL), 0);
	CHECK(!get_pod(&t.w, "n", "lost"));
	cluster_done(&t);
}
