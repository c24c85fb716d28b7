/* What nodes reach: every way to name an object, and any order of changes compared with looking at everything. */
#include "apiserver/authz/node_graph.h"

#include "base/buf.h"
#include "base/random.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "machinery/testing.h"

static void list_reference(enum node_reach what, str name, void *arg)
{
	static const char *const sorts[] = { "secret", "configmap", "account", "resource", "volume" };
	buf_addf(arg, "%s%s:" STR_FMT, ((struct buf *)arg)->n ? " " : "", sorts[what], STR_ARG(name));
}

TEST(pod_references_are_found_everywhere)
{
	static const struct { const char *pod, *want; } t[] = {
		{ "{}", "" },
		{ "{'spec':{'serviceAccountName':'a','imagePullSecrets':[{'name':'p'},{}]}}", "account:a secret:p" },
		{ "{'spec':{'initContainers':[{'envFrom':[{'secretRef':{'name':'a'}}]}],'containers':[{'envFrom':"
		  "[{'configMapRef':{'name':'b'}}],'env':[{'valueFrom':{'secretKeyRef':{'name':'c'}}},{'value':'x'}]}],"
		  "'ephemeralContainers':[{'env':[{'valueFrom':{'configMapKeyRef':{'name':'d'}}}]}]}}",
		  "secret:a configmap:b secret:c configmap:d" },
		{ "{'spec':{'volumes':[{'secret':{'secretName':'a'}},{'configMap':{'name':'b'}},{'projected':{'sources':"
		  "[{'secret':{'name':'c'}},{'configMap':{'name':'d'}},{'serviceAccountToken':{}}]}}]}}",
		  "secret:a configmap:b secret:c configmap:d" },
		{ "{'spec':{'volumes':[{'azureFile':{'secretName':'a'}},{'cephfs':{'secretRef':{'name':'b'}}},"
		  "{'cinder':{'secretRef':{'name':'c'}}},{'flexVolume':{'secretRef':{'name':'d'}}},"
		  "{'rbd':{'secretRef':{'name':'e'}}},{'scaleIO':{'secretRef':{'name':'f'}}},"
		  "{'iscsi':{'secretRef':{'name':'g'}}},{'storageos':{'secretRef':{'name':'h'}}},"
		  "{'csi':{'nodePublishSecretRef':{'name':'i'}}},{'emptyDir':{}}]}}",
		  "secret:a secret:b secret:c secret:d secret:e secret:f secret:g secret:h secret:i" },
		{ "{'metadata':{'name':'p'},'spec':{'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'a'}},"
		  "{'name':'w','ephemeral':{}}]}}", "volume:a volume:p-w" },
		{ "{'spec':{'resourceClaims':[{'name':'x','resourceClaimName':'a'},{'name':'y','resourceClaimTemplateName':'t'},"
		  "{'name':'z','resourceClaimTemplateName':'t'}]},'status':{'resourceClaimStatuses':"
		  "[{'name':'y','resourceClaimName':'made'},{'name':'x','resourceClaimName':'no'},{'name':'z'}],"
		  "'extendedResourceClaimStatus':{'resourceClaimName':'e'}}}", "resource:a resource:made resource:e" },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(buf_done) struct buf got = BUF_INIT(1 << 20);
		buf_add(&got, STR_NONE);
		pod_references(&a, testing_tree(&a, t[i].pod), list_reference, &got);
		CHECK_STR_ROW(i, buf_str(&got), t[i].want);
	}
}

static bool has(struct node_graph *g, enum node_reach what, const char *namespace, const char *name, const char *node)
{
	return node_graph_reaches(g, what, str_of(namespace), str_of(name), str_of(node));
}

TEST(node_graph_leads_from_volumes_to_secrets)
{
	static const struct { const char *source, *secrets[3]; } t[] = {
		{ "'csi':{'nodePublishSecretRef':{'namespace':'x','name':'a'},'nodeStageSecretRef':{'namespace':'x','name':'b'},"
		  "'nodeExpandSecretRef':{'namespace':'x','name':'c'},'controllerPublishSecretRef':{'namespace':'x','name':'no'},"
		  "'controllerExpandSecretRef':{'namespace':'x','name':'no'},'provisionerSecretRef':{'namespace':'x','name':'no'}}",
		  { "a", "b", "c" } },
		{ "'azureFile':{'secretName':'a','secretNamespace':'x'}", { "a" } },
		{ "'cephfs':{'secretRef':{'namespace':'x','name':'a'}}", { "a" } },
		{ "'cinder':{'secretRef':{'namespace':'x','name':'a'}}", { "a" } },
		{ "'storageos':{'secretRef':{'namespace':'x','name':'a'}}", { "a" } },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct node_graph *g = node_graph_new();
		struct val pod = testing_tree(&a, "{'metadata':{'namespace':'n','name':'p'},'spec':{'nodeName':'one','volumes':"
						  "[{'persistentVolumeClaim':{'claimName':'c'}}]}}");
		str text = arena_printf(&a, "{'spec':{'claimRef':{'namespace':'n','name':'c'},%s}}", t[i].source);
		struct val volume = testing_tree(&a, text.p);
		bool pod_first = i % 2;
		if (pod_first)
			node_graph_pod(g, VAL_EMPTY, pod);
		node_graph_volume(g, VAL_EMPTY, volume);
		CHECK_ROW(i, has(g, REACH_SECRET, "x", "a", "one") == pod_first);
		if (!pod_first)
			node_graph_pod(g, VAL_EMPTY, pod);
		for (size_t k = 0; k < ARRAY_LEN(t[i].secrets) && t[i].secrets[k]; k++) {
			CHECK_ROW(i, has(g, REACH_SECRET, "x", t[i].secrets[k], "one"));
			CHECK_ROW(i, !has(g, REACH_SECRET, "x", t[i].secrets[k], "two"));
		}
		CHECK_ROW(i, !has(g, REACH_SECRET, "x", "no", "one") && has(g, REACH_VOLUME_CLAIM, "n", "c", "one"));
		node_graph_volume(g, volume, VAL_EMPTY);
		CHECK_ROW(i, !has(g, REACH_SECRET, "x", "a", "one"));
		node_graph_pod(g, pod, VAL_EMPTY);
		CHECK_ROW(i, node_graph_len(g) == 0);
		node_graph_free(g);
	}
}

/* A name must not be able to look like another name and a node. */
TEST(node_graph_keeps_names_apart)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct node_graph *g = node_graph_new();
	node_graph_pod(g, VAL_EMPTY, testing_tree(&a, "{'metadata':{'namespace':'n','name':'p'},'spec':{'nodeName':'one',"
						      "'serviceAccountName':'abtwo'}}"));
	CHECK(has(g, REACH_SERVICE_ACCOUNT, "n", "abtwo", "one"));
	CHECK(!has(g, REACH_SERVICE_ACCOUNT, "n", "ab", "twoone"));
	CHECK(!has(g, REACH_SECRET, "n", "abtwo", "one"));
	CHECK(!has(g, REACH_SERVICE_ACCOUNT, "", "abtwo", "one"));
	node_graph_free(g);
}

TEST(node_graph_gives_nothing_to_mirror_and_unbound_pods)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct node_graph *g = node_graph_new();
	struct val free = testing_tree(&a, "{'metadata':{'namespace':'n','name':'p'},'spec':{'serviceAccountName':'a'}}");
	struct val bound = val_with(&a, free, VAL_LIT("one"), spec, nodeName);
	struct val annotations = testing_tree(&a, "{'kubernetes.io/config.mirror':'x'}");
	node_graph_pod(g, VAL_EMPTY, val_with(&a, bound, annotations, metadata, annotations));
	node_graph_pod(g, VAL_EMPTY, free);
	CHECK_INT(node_graph_len(g), 0);
	node_graph_pod(g, free, bound);
	CHECK(has(g, REACH_SERVICE_ACCOUNT, "n", "a", "one"));
	node_graph_free(g);
}

/* ---- random changes ---- */

enum { PODS = 12, VOLUMES = 6, NAMES = 4, NODES = 3, STEPS = 3000 };

/* One pod or volume of the model; node, names: numbers, 0 for none. */
struct model_pod {
	int node, secret, config_map, claim;
	struct val val;
};

struct model_volume {
	int claim, secret;
	struct val val;
};

static struct val make_pod(struct arena *a, size_t i, const struct model_pod *p)
{
	struct val v = testing_tree(a, arena_printf(a, "{'metadata':{'namespace':'n','name':'p%zu'},'spec':{}}", i).p);
	struct val_builder volumes = val_builder(a);
	if (p->node)
		v = val_with(a, v, val_of_str(arena_printf(a, "node%d", p->node)), spec, nodeName);
	if (p->secret)
		val_add_item(&volumes, testing_tree(a, arena_printf(a, "{'secret':{'secretName':'s%d'}}", p->secret).p));
	if (p->config_map)
		val_add_item(&volumes, testing_tree(a, arena_printf(a, "{'configMap':{'name':'m%d'}}", p->config_map).p));
	if (p->claim)
		val_add_item(&volumes, testing_tree(a, arena_printf(a, "{'persistentVolumeClaim':{'claimName':'c%d'}}",
								     p->claim).p));
	return val_with(a, v, val_end_list(&volumes), spec, volumes);
}

static struct val make_volume(struct arena *a, const struct model_volume *m)
{
	str secret = m->secret ? arena_printf(a, "'nodeStageSecretRef':{'namespace':'n','name':'s%d'}", m->secret) : STR_NONE;
	str claim = m->claim ? arena_printf(a, "'claimRef':{'namespace':'n','name':'c%d'},", m->claim) : STR_NONE;
	return testing_tree(a, arena_printf(a, "{'spec':{" STR_FMT "'csi':{" STR_FMT "}}}", STR_ARG(claim), STR_ARG(secret)).p);
}

/* By looking at everything. */
static bool expected(const struct model_pod *pods, const struct model_volume *volumes, enum node_reach what, int name,
		     int node)
{
	for (size_t i = 0; i < PODS; i++) {
		const struct model_pod *p = &pods[i];
		if (p->node != node)
			continue;
		if ((what == REACH_SECRET && p->secret == name) || (what == REACH_CONFIG_MAP && p->config_map == name) ||
		    (what == REACH_VOLUME_CLAIM && p->claim == name))
			return true;
		for (size_t k = 0; what == REACH_SECRET && p->claim && k < VOLUMES; k++)
			if (volumes[k].claim == p->claim && volumes[k].secret == name)
				return true;
	}
	return false;
}

static void compare(const struct node_graph *g, const struct model_pod *pods, const struct model_volume *volumes, int step)
{
	static const struct { enum node_reach what; char letter; } t[] = {
		{ REACH_SECRET, 's' }, { REACH_CONFIG_MAP, 'm' }, { REACH_VOLUME_CLAIM, 'c' },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		for (int name = 1; name <= NAMES; name++)
			for (int node = 1; node <= NODES; node++) {
				char name_text[16], node_text[16];
				snprintf(name_text, sizeof name_text, "%c%d", t[i].letter, name);
				snprintf(node_text, sizeof node_text, "node%d", node);
				CHECK_ROW(step, node_graph_reaches(g, t[i].what, STR("n"), str_of(name_text), str_of(node_text)) ==
							expected(pods, volumes, t[i].what, name, node));
			}
}

TEST(node_graph_is_what_looking_at_everything_gives)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct node_graph *g = node_graph_new();
	struct model_pod pods[PODS] = { 0 };
	struct model_volume volumes[VOLUMES] = { 0 };
	random_seed(7);
	for (int step = 0; step < STEPS; step++) {
		bool gone = random_below(4) == 0;
		if (random_below(3)) {
			size_t i = random_below(PODS);
			struct model_pod now = { 0 };
			if (!gone) {
				now = (struct model_pod){ .node = (int)random_below(NODES + 1), .secret = (int)random_below(NAMES + 1),
							  .config_map = (int)random_below(NAMES + 1),
							  .claim = (int)random_below(NAMES + 1) };
				now.val = make_pod(&a, i, &now);
			}
			node_graph_pod(g, pods[i].val, now.val);
			pods[i] = now;
		} else {
			size_t i = random_below(VOLUMES);
			struct model_volume now = { 0 };
			if (!gone) {
				now = (struct model_volume){ .claim = (int)random_below(NAMES + 1), .secret = (int)random_below(NAMES + 1) };
				now.val = make_volume(&a, &now);
			}
			node_graph_volume(g, volumes[i].val, now.val);
			volumes[i] = now;
		}
		compare(g, pods, volumes, step);
	}
	for (size_t i = 0; i < PODS; i++)
		node_graph_pod(g, pods[i].val, VAL_EMPTY);
	for (size_t i = 0; i < VOLUMES; i++)
		node_graph_volume(g, volumes[i].val, VAL_EMPTY);
	CHECK_INT(node_graph_len(g), 0);
	random_unseed();
	node_graph_free(g);
}

/* Pods that share what they need are counted together: the graph grows with what nodes reach, not with pods. */
TEST(node_graph_is_small)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct node_graph *g = node_graph_new();
	for (int i = 0; i < 10000; i++) {
		str text = arena_printf(&a, "{'metadata':{'namespace':'n%d','name':'p'},'spec':{'nodeName':'node%d','serviceAccountName':"
					"'default','volumes':[{'projected':{'sources':[{'configMap':{'name':'root'}}]}}]}}",
					i % 10, i / 100);
		node_graph_pod(g, VAL_EMPTY, testing_tree(&a, text.p));
		arena_reset(&a);
	}
	CHECK_INT(node_graph_len(g), 2 * 10 * 100);
	CHECK(has(g, REACH_CONFIG_MAP, "n7", "root", "node99") && !has(g, REACH_CONFIG_MAP, "n7", "root", "node100"));
	node_graph_free(g);
}
