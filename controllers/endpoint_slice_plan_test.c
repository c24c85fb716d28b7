#include "controllers/endpoint_slice_plan.h"

#include "codec/atoms.h"
#include "controllers/labels.h"
#include "controllers/plan_testing.h"

#define SERVICE "{'metadata':{'name':'s','namespace':'ns','uid':'u0','creationTimestamp':'2026-01-01T00:00:00Z'%s}," \
		"'spec':{'clusterIP':'%s','ipFamilies':['IPv4'],'selector':{'app':'w'}%s,'ports':[{'name':'http','protocol':'TCP','port':80,'targetPort':8080}]}}"

struct scene {
	struct arena arena;
	struct endpoint_slice_input in;
	struct endpoint_slice_plan plan;
	const char *missing_node;
};

static struct val a_node(void *arg, str name)
{
	struct scene *s = arg;

	if (!name.n || (s->missing_node && str_eq(name, str_of(s->missing_node))))
		return VAL_EMPTY;
	return tree(&s->arena, "{'metadata':{'labels':{'topology.kubernetes.io/zone':'z1'}}}");
}

static struct val service(struct scene *s, const char *meta, const char *ip, const char *spec)
{
	return tree(&s->arena, arena_printf(&s->arena, SERVICE, meta, ip, spec).p);
}

static struct val a_pod(struct scene *s, int i, const char *ready, const char *more)
{
	return tree(&s->arena, arena_printf(&s->arena, "{'metadata':{'name':'p%04d','namespace':'ns','uid':'u%d'%s},'spec':{'nodeName':'n1'},"
						       "'status':{'phase':'Running','podIP':'10.0.%d.%d','podIPs':[{'ip':'10.0.%d.%d'}],"
						       "'conditions':[{'type':'Ready','status':'%s'}]}}", i, i + 1, more, i / 250, i % 250, i / 250, i % 250, ready).p);
}

static struct val pods(struct scene *s, int from, int to)
{
	struct val_builder list = val_builder(&s->arena);

	for (int i = from; i < to; i++)
		val_add_item(&list, a_pod(s, i, "True", ""));
	return val_end_list(&list);
}

static void look(struct scene *s)
{
	s->in.node = a_node;
	s->in.arg = s;
	if (!s->in.max)
		s->in.max = 100;
	endpoint_slice_plan(&s->arena, &s->in, &s->plan);
}

/* The slices as they are after the plan: named, with what the server adds. */
static void carry_out(struct scene *s)
{
	struct val_builder all = val_builder(&s->arena);
	static int names;

	VAL_EACH(x, s->in.slices) {
		bool keeps = true;
		VAL_EACH(y, s->plan.update)
			keeps &= !str_eq(val_str(*x, metadata, name), val_str(*y, metadata, name));
		VAL_EACH(y, s->plan.gone)
			keeps &= !str_eq(val_str(*x, metadata, name), val_str(*y, metadata, name));
		if (keeps)
			val_add_item(&all, *x);
	}
	VAL_EACH(x, s->plan.update)
		val_add_item(&all, *x);
	VAL_EACH(x, s->plan.create)
		val_add_item(&all, val_with(&s->arena, *x, VAL_STR(arena_printf(&s->arena, "s-%04d", names++)), metadata, name));
	s->in.slices = val_end_list(&all);
}

static void end(struct scene *s) { arena_done(&s->arena); }

#define COUNTS(s, c, u, g) (val_len((s)->plan.create) == (c) && val_len((s)->plan.update) == (u) && val_len((s)->plan.gone) == (g))

TEST(slice_of_a_pod)
{
	struct scene s = { 0 };

	s.in.service = service(&s, ",'labels':{'team':'x'}", "10.96.0.1", "");
	s.in.pods = LIST(&s.arena, a_pod(&s, 1, "True", ""));
	s.in.trigger = STR("2026-01-01T00:00:00Z");
	look(&s);
	CHECK(COUNTS(&s, 1, 0, 0));
	struct val slice = val_at(s.plan.create, 0);
	CHECK_STR(val_str(slice, metadata, generateName), "s-");
	CHECK_STR(tree_text(&s.arena, val_get(slice, metadata, labels)),
		  "{'team':'x','endpointslice.kubernetes.io/managed-by':'endpointslice-controller.k8s.io','kubernetes.io/service-name':'s'}");
	CHECK_STR(annotation_of(slice, STR(TRIGGER_TIME_ANNOTATION)), "2026-01-01T00:00:00Z");
	CHECK_STR(val_str(val_at(val_get(slice, metadata, ownerReferences), 0), uid), "u0");
	CHECK_STR(tree_text(&s.arena, val_get(slice, endpoints)),
		  "[{'addresses':['10.0.0.1'],'conditions':{'ready':true,'serving':true,'terminating':false},"
		  "'targetRef':{'kind':'Pod','namespace':'ns','name':'p0001','uid':'u2'},'nodeName':'n1','zone':'z1'}]");
	CHECK_STR(tree_text(&s.arena, val_get(slice, ports)), "[{'name':'http','protocol':'TCP','port':8080}]");
	carry_out(&s);
	look(&s);
	CHECK(COUNTS(&s, 0, 0, 0)); /* and then there is nothing to do */
	end(&s);
}

TEST(slice_conditions)
{
	static const struct {
		const char *ready, *meta, *spec, *want;
	} t[] = {
		{ "True", "", "", "{'ready':true,'serving':true,'terminating':false}" },
		{ "False", "", "", "{'ready':false,'serving':false,'terminating':false}" },
		{ "True", ",'deletionTimestamp':'2026-01-01T00:00:00Z'", "", "{'ready':false,'serving':true,'terminating':true}" },
		{ "False", ",'deletionTimestamp':'2026-01-01T00:00:00Z'", "", "{'ready':false,'serving':false,'terminating':true}" },
		{ "False", "", ",'publishNotReadyAddresses':true", "{'ready':true,'serving':false,'terminating':false}" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct scene s = { 0 };
		s.in.service = service(&s, "", "10.96.0.1", t[i].spec);
		s.in.pods = LIST(&s.arena, a_pod(&s, 1, t[i].ready, t[i].meta));
		look(&s);
		CHECK_STR_ROW(i, tree_text(&s.arena, val_get(val_at(val_get(val_at(s.plan.create, 0), endpoints), 0), conditions)), t[i].want);
		end(&s);
	}
}

TEST(slice_without_pods_is_one_that_is_empty)
{
	struct scene s = { 0 };

	s.in.service = service(&s, "", "None", "");
	s.in.pods = VAL_EMPTY_LIST;
	look(&s);
	CHECK(COUNTS(&s, 1, 0, 0));
	CHECK_STR(label_of(val_at(s.plan.create, 0), STR(HEADLESS_LABEL)), "");
	CHECK(label_has(val_at(s.plan.create, 0), STR(HEADLESS_LABEL)));
	carry_out(&s);
	str name = val_str(val_at(s.in.slices, 0), metadata, name);
	look(&s);
	CHECK(COUNTS(&s, 0, 0, 0));
	s.in.pods = pods(&s, 0, 1); /* the slice itself is filled, and emptied again */
	look(&s);
	CHECK(COUNTS(&s, 0, 1, 0));
	CHECK(str_eq(val_str(val_at(s.plan.update, 0), metadata, name), name));
	carry_out(&s);
	s.in.pods = VAL_EMPTY_LIST;
	look(&s);
	CHECK(COUNTS(&s, 0, 1, 0));
	CHECK(str_eq(val_str(val_at(s.plan.update, 0), metadata, name), name));
	CHECK_INT(val_len(val_get(val_at(s.plan.update, 0), endpoints)), 0);
	CHECK_INT(val_len(val_get(val_at(s.plan.update, 0), ports)), 0);
	end(&s);
}

TEST(slice_packing)
{
	struct scene s = { 0 };

	s.in.service = service(&s, "", "10.96.0.1", "");
	s.in.pods = pods(&s, 0, 250);
	look(&s);
	CHECK(COUNTS(&s, 3, 0, 0));
	CHECK_INT(val_len(val_get(val_at(s.plan.create, 0), endpoints)), 100);
	CHECK_INT(val_len(val_get(val_at(s.plan.create, 2), endpoints)), 50);
	carry_out(&s);
	s.in.pods = pods(&s, 0, 260); /* ten more fit into the last one */
	look(&s);
	CHECK(COUNTS(&s, 0, 1, 0));
	CHECK_INT(val_len(val_get(val_at(s.plan.update, 0), endpoints)), 60);
	carry_out(&s);
	s.in.pods = pods(&s, 5, 265); /* five go, five come: into the one that changes anyway */
	look(&s);
	CHECK(COUNTS(&s, 0, 1, 0));
	CHECK_INT(val_len(val_get(val_at(s.plan.update, 0), endpoints)), 100);
	carry_out(&s);
	s.in.pods = pods(&s, 200, 265);
	look(&s);
	CHECK_INT(val_len(s.plan.gone) + val_len(s.plan.update), 2);
	CHECK_INT(val_len(s.plan.create), 0);
	end(&s);
}

TEST(slice_hints)
{
	struct scene s = { 0 };

	s.in.service = service(&s, "", "10.96.0.1", ",'trafficDistribution':'PreferSameNode'");
	s.in.pods = pods(&s, 0, 1);
	look(&s);
	CHECK_STR(tree_text(&s.arena, val_get(val_at(val_get(val_at(s.plan.create, 0), endpoints), 0), hints)),
		  "{'forZones':[{'name':'z1'}],'forNodes':[{'name':'n1'}]}");
	carry_out(&s);
	s.in.service = service(&s, "", "10.96.0.1", ",'trafficDistribution':'PreferClose'");
	look(&s);
	CHECK_STR(tree_text(&s.arena, val_get(val_at(val_get(val_at(s.plan.update, 0), endpoints), 0), hints)), "{'forZones':[{'name':'z1'}]}");
	carry_out(&s);
	s.in.service = service(&s, "", "10.96.0.1", "");
	look(&s);
	CHECK(COUNTS(&s, 0, 1, 0));
	CHECK(!val_has(val_at(val_get(val_at(s.plan.update, 0), endpoints), 0), hints));
	end(&s);
}

TEST(slice_leaves_out_pods)
{
	struct scene s = { .missing_node = "n1" };

	s.in.service = service(&s, "", "10.96.0.1", "");
	s.in.pods = pods(&s, 0, 1);
	look(&s); /* the node is not known: later */
	CHECK_STR(s.plan.lost_pod, "p0000");
	CHECK_STR(s.plan.lost_node, "n1");
	CHECK_INT(val_len(val_get(val_at(s.plan.create, 0), endpoints)), 0);
	s.missing_node = NULL;
	s.in.pods = LIST(&s.arena, val_with(&s.arena, a_pod(&s, 0, "True", ""), VAL_LIT("Succeeded"), status, phase),
			 val_without(&s.arena, val_without(&s.arena, a_pod(&s, 1, "True", ""), status, podIPs), status, podIP));
	look(&s);
	CHECK_INT(val_len(val_get(val_at(s.plan.create, 0), endpoints)), 0);
	end(&s);
}

TEST(slice_named_ports)
{
	struct scene s = { 0 };

	s.in.service = tree(&s.arena, "{'metadata':{'name':'s','namespace':'ns','uid':'u0'},'spec':{'clusterIP':'10.96.0.1','ipFamilies':['IPv4'],'selector':{'app':'w'},"
				      "'ports':[{'name':'n','protocol':'TCP','port':80,'targetPort':'web'},{'name':'x','protocol':'TCP','port':81,'targetPort':'nosuch'}]}}");
	struct val containers = tree(&s.arena, "[{'ports':[{'name':'web','containerPort':8080,'protocol':'TCP'}]}]");
	struct val others = tree(&s.arena, "[{'ports':[{'name':'web','containerPort':9090,'protocol':'TCP'}]}]");
	s.in.pods = LIST(&s.arena, val_with(&s.arena, a_pod(&s, 0, "True", ""), containers, spec, containers),
			 val_with(&s.arena, a_pod(&s, 1, "True", ""), others, spec, containers));
	look(&s); /* pods that have other numbers are in other slices */
	CHECK(COUNTS(&s, 2, 0, 0));
	CHECK_STR(tree_text(&s.arena, val_get(val_at(s.plan.create, 0), ports)), "[{'name':'n','protocol':'TCP','port':8080}]");
	CHECK_STR(tree_text(&s.arena, val_get(val_at(s.plan.create, 1), ports)), "[{'name':'n','protocol':'TCP','port':9090}]");
	end(&s);
}
