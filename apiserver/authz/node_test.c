/* Decisions about nodes, with a cache that objects come into and go from. */
#include "apiserver/authz/node.h"

#include "apiserver/authz/authz_priv.h"
#include "apiserver/read_fixture.h"
#include "base/fiber_test.h"

static const str node_groups[] = { STR_INIT("system:nodes"), STR_INIT("system:authenticated") };

TEST(nodes_are_known_by_name_and_group)
{
	static const str others[] = { STR_INIT("system:node") };
	static const struct {
		const char *name;
		const str *groups;
		const char *node; /* NULL: none */
	} t[] = {
		{ "system:node:a", node_groups, "a" },
		{ "system:node:", node_groups, "" },
		{ "system:node:a:b", node_groups, "a:b" },
		{ "system:nodes:a", node_groups, NULL },
		{ "a", node_groups, NULL },
		{ "system:node:a", others, NULL },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		const struct user u = { .name = str_of(t[i].name), .groups = t[i].groups, .n_groups = 1 };
		str node = STR_NONE;
		CHECK_ROW(i, user_is_node(&u, &node) == (t[i].node != NULL));
		if (t[i].node)
			CHECK_STR_ROW(i, node, t[i].node);
	}
}

struct asker {
	struct authz_way way;
	struct arena arena;
	str reason;
};

static int ask(struct asker *k, const char *user, const char *verb, const char *resource, const char *namespace,
	       const char *name)
{
	const struct user u = { .name = str_of(user), .groups = node_groups, .n_groups = ARRAY_LEN(node_groups) };
	const struct authz_attributes what = {
		.user = &u, .verb = str_of(verb), .is_resource = true, .resource = str_of(resource),
		.namespace = str_of(namespace), .name = str_of(name),
	};
	return k->way.decide(k->way.self, &k->arena, &what, &k->reason, NULL);
}

static bool reads(struct asker *k, const char *node, const char *secret)
{
	return ask(k, node, "get", "secrets", "n", secret) == AUTHZ_ALLOW;
}

#define POD(spec) "{'kind':'Pod','apiVersion':'v1','metadata':{'name':'p','namespace':'n'},'spec':{" spec "}}"
#define CLAIM "'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'c'}}]"
#define VOLUME                                                                                       \
	"{'kind':'PersistentVolume','apiVersion':'v1','metadata':{'name':'v'},'spec':{'claimRef':{'namespace':'n','name':'c'}," \
	"'csi':{'driver':'d','volumeHandle':'h','nodeStageSecretRef':{'namespace':'n','name':'deep'}}}}"

FIBER_TEST(nodes_read_what_their_pods_need_now)
{
	static struct read_fixture f;
	struct asker k = { .arena = ARENA_INIT };
	const char *one = "system:node:one", *two = "system:node:two";
	read_fixture_init(&f);
	read_fixture_put(&f, STR("pods"), "n/p", POD("'nodeName':'one','imagePullSecrets':[{'name':'s'}]"));
	CHECK_INT(authz_node_way(&f.server, &k.way, NULL), 0);
	CHECK(reads(&k, one, "s") && !reads(&k, two, "s") && !reads(&k, one, "other"));
	CHECK_STR(k.reason, "no relationship found between node 'one' and this object");
	CHECK(ask(&k, one, "get", "pods", "n", "p") == AUTHZ_ALLOW && ask(&k, two, "get", "pods", "n", "p") == AUTHZ_NO_OPINION);

	read_fixture_put(&f, STR("pods"), "n/p", NULL);
	CHECK(!reads(&k, one, "s"));
	read_fixture_put(&f, STR("pods"), "n/p", POD(CLAIM));
	read_fixture_put(&f, STR("persistentvolumes"), "v", VOLUME);
	CHECK(!reads(&k, two, "deep"));
	read_fixture_put(&f, STR("pods"), "n/p", POD("'nodeName':'two'," CLAIM));
	CHECK(reads(&k, two, "deep") && !reads(&k, one, "deep"));
	CHECK_INT(ask(&k, two, "get", "persistentvolumes", "", "v"), AUTHZ_ALLOW);
	CHECK_INT(ask(&k, one, "get", "persistentvolumes", "", "v"), AUTHZ_NO_OPINION);

	/* events were missed, and all is loaded anew */
	CHECK_INT(cache_load(f.server.cache, NULL), 0);
	CHECK(reads(&k, two, "deep") && !reads(&k, one, "deep"));
	read_fixture_put(&f, STR("persistentvolumes"), "v", NULL);
	CHECK(!reads(&k, two, "deep"));
	k.way.free(k.way.self);
	arena_done(&k.arena);
	read_fixture_done(&f);
}

TEST(nodes_without_a_name_are_told_so)
{
	static struct apiserver server;
	struct asker k = { .arena = ARENA_INIT };
	CHECK_INT(authz_node_way(&server, &k.way, NULL), 0);
	CHECK_INT(ask(&k, "system:node:", "get", "nodes", "", "x"), AUTHZ_NO_OPINION);
	CHECK_STR(k.reason, "unknown node for user \"system:node:\"");
	CHECK_INT(ask(&k, "system:node:a", "get", "nodes", "", "b"), AUTHZ_NO_OPINION);
	CHECK_STR(k.reason, "node 'a' cannot read 'b', only its own Node object");
	CHECK_INT(ask(&k, "somebody", "get", "nodes", "", "b"), AUTHZ_NO_OPINION);
	CHECK_STR(k.reason, "");
	k.way.free(k.way.self);
	arena_done(&k.arena);
}

TEST(nodes_read_trust_bundles_behind_a_gate)
{
	static struct apiserver server;
	struct asker k = { .arena = ARENA_INIT };
	const struct user u = { .name = STR("system:node:a"), .groups = node_groups, .n_groups = ARRAY_LEN(node_groups) };
	struct authz_attributes what = { .user = &u, .verb = STR("list"), .is_resource = true, .group = STR("certificates.k8s.io"),
					 .resource = STR("clustertrustbundles") };
	CHECK_INT(authz_node_way(&server, &k.way, NULL), 0);
	CHECK_INT(k.way.decide(k.way.self, &k.arena, &what, &k.reason, NULL), AUTHZ_NO_OPINION);
	server.options.gates = val_put(&k.arena, VAL_EMPTY, atom_make(&k.arena, STR("ClusterTrustBundle")), val_of_bool(true));
	CHECK_INT(k.way.decide(k.way.self, &k.arena, &what, &k.reason, NULL), AUTHZ_ALLOW);
	what.verb = STR("update");
	CHECK_INT(k.way.decide(k.way.self, &k.arena, &what, &k.reason, NULL), AUTHZ_NO_OPINION);
	k.way.free(k.way.self);
	arena_done(&k.arena);
}
