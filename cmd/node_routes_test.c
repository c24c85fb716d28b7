#include "cmd/node_routes.h"

#include "base/test.h"
#include "codec/json.h"

enum { NODES_MAX = 8 };

/* A list of nodes, with ' for ". */
static size_t nodes_of(struct arena *a, const char *text, struct val *ret)
{
	struct val list;
	char *json = (char *)arena_str(a, str_of(text)).p;
	size_t n = 0;

	for (char *p = json; *p; p++)
		if (*p == '\'')
			*p = '"';
	if (json_decode(a, str_of(json), &(struct json_decode_options){ 0 }, &list, NULL) < 0)
		return 0;
	VAL_EACH(node, list)
		ret[n++] = *node;
	return n;
}

#define NODE(name, cidrs, addresses) "{'metadata':{'name':'" name "'},'spec':{'podCIDRs':[" cidrs "]},'status':{'addresses':[" addresses "]}}"
#define ADDRESS(type, text) "{'type':'" type "','address':'" text "'}"
#define INTERNAL(text) ADDRESS("InternalIP", text)

TEST(node_routes_plan)
{
	static const struct { const char *nodes, *own, *routes; } t[] = {
		{ "[" NODE("me", "'10.1.0.0/24'", INTERNAL("192.0.2.1")) "]", "192.0.2.1", "" },
		{ "[" NODE("a", "'10.1.1.0/24'", INTERNAL("192.0.2.2")) "," NODE("me", "'10.1.0.0/24'", INTERNAL("192.0.2.1")) "]", "192.0.2.1", "10.1.1.0/24=192.0.2.2 " },
		/* Both families go by the address that the node prefers; a host name is none. */
		{ "[" NODE("a", "'10.1.1.0/24','fd00:1::/64'", ADDRESS("Hostname", "a") "," INTERNAL("192.0.2.2") "," INTERNAL("2001:db8::2")) ","
		  NODE("me", "", INTERNAL("192.0.2.1")) "]", "192.0.2.1", "10.1.1.0/24=192.0.2.2 fd00:1::/64=192.0.2.2 " },
		/* One that has no range, or has not told its address: not yet. */
		{ "[" NODE("a", "", INTERNAL("192.0.2.2")) "," NODE("b", "'10.1.2.0/24'", "") "," NODE("me", "", INTERNAL("192.0.2.1")) "]", "192.0.2.1", "" },
		/* Without ourselves there is nothing to say. */
		{ "[" NODE("a", "'10.1.1.0/24'", INTERNAL("192.0.2.2")) "]", NULL, "10.1.1.0/24=192.0.2.2 " },
		{ "[" NODE("me", "'10.1.0.0/24'", "") "]", NULL, "" },
		{ "[]", NULL, "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		CLEANUP(buf_done) struct buf text = BUF_INIT(1024);
		struct val nodes[NODES_MAX];
		struct cni_route *routes;
		const char *own;
		size_t n;

		node_routes_plan(&a, nodes, nodes_of(&a, t[i].nodes, nodes), STR("me"), &own, &routes, &n);
		for (size_t k = 0; k < n; k++)
			buf_addf(&text, STR_FMT "=" STR_FMT " ", STR_ARG(routes[k].pod_cidr), STR_ARG(routes[k].node_address));
		CHECK_STR_ROW(i, buf_str(&text), t[i].routes);
		CHECK_STR_ROW(i, str_of(own ? own : ""), t[i].own ? t[i].own : "");
	}
}
