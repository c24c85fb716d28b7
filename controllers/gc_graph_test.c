#include "controllers/gc_graph.h"

#include "base/buf.h"
#include "controllers/plan_testing.h"

/* A graph and what its hooks said since it was last asked. */
struct world {
	struct arena arena;
	struct gc_graph graph;
	struct buf said;
};

static void say(struct world *w, const char *what, str uid)
{
	buf_addf(&w->said, "%s%s " STR_FMT, w->said.n ? ", " : "", what, STR_ARG(uid));
}

static void look(void *arg, str uid) { say(arg, "look", uid); }
static void look_later(void *arg, str uid) { say(arg, "later", uid); }
static void orphan(void *arg, str uid) { say(arg, "orphan", uid); }

static void misplaced(void *arg, const struct gc_node *n, const struct gc_owner *o)
{
	struct world *w = arg;
	say(w, "misplaced", n->id.uid);
	buf_addf(&w->said, "->" STR_FMT, STR_ARG(o->name));
}

static const struct gc_hooks hooks = { look, look_later, orphan, misplaced };

static void world_init(struct world *w)
{
	*w = (struct world){ .arena = ARENA_INIT, .said = BUF_INIT(1 << 16) };
	gc_graph_init(&w->graph, &hooks, w);
}

static void world_done(struct world *w)
{
	gc_graph_done(&w->graph);
	buf_done(&w->said);
	arena_done(&w->arena);
}

/* An object of kind K (v1) in namespace ns: its metadata beside name, namespace and uid. */
static struct val object(struct world *w, const char *uid, const char *ns, const char *more)
{
	struct val v = tree(&w->arena, arena_printf(&w->arena, "{'metadata':{'name':'n-%s','uid':'%s'%s}}", uid, uid, more).p);
	return *ns ? val_with(&w->arena, v, VAL_STR(str_of(ns)), metadata, namespace) : v;
}

static void seen(struct world *w, struct val old, struct val new) { gc_graph_seen(&w->graph, STR("v1"), STR("K"), old, new); }
static void gone(struct world *w, struct val old) { gc_graph_gone(&w->graph, STR("v1"), STR("K"), old); }

static void check_said(struct world *w, const char *want, int line)
{
	test_check_str(buf_str(&w->said), str_of(want), -1, __FILE__, line);
	buf_reset(&w->said);
}

#define SAID(w, want) check_said(w, want, __LINE__)
#define OWNED(uid) ",'ownerReferences':[{'apiVersion':'v1','kind':'K','name':'n-" uid "','uid':'" uid "'}]"
#define BLOCKING(uid) ",'ownerReferences':[{'apiVersion':'v1','kind':'K','name':'n-" uid "','uid':'" uid "','blockOwnerDeletion':true}]"
#define DELETED(finalizer) ",'deletionTimestamp':'2026-01-01T00:00:00Z','finalizers':['" finalizer "']"

TEST(gc_graph_owner_first)
{
	CLEANUP(world_done) struct world w;
	world_init(&w);
	struct val owner = object(&w, "o", "ns", ""), pod = object(&w, "p", "ns", OWNED("o"));
	seen(&w, VAL_EMPTY, owner);
	seen(&w, VAL_EMPTY, pod);
	SAID(&w, "");
	CHECK_INT(gc_graph_find(&w.graph, STR("o"))->n_dependents, 1);
	gone(&w, owner);
	SAID(&w, "look p");
	CHECK(!gc_graph_find(&w.graph, STR("o")));
	CHECK(gc_graph_is_absent(&w.graph, &(struct gc_identity){ STR("v1"), STR("K"), STR("ns"), STR("n-o"), STR("o") }));
	gone(&w, pod);
	SAID(&w, "");
}

TEST(gc_graph_virtual_owner)
{
	CLEANUP(world_done) struct world w;
	world_init(&w);
	struct val pod = object(&w, "p", "ns", OWNED("o"));
	seen(&w, VAL_EMPTY, pod);
	SAID(&w, "look o");
	CHECK(gc_graph_find(&w.graph, STR("o"))->virtual);
	/* It turns up. */
	seen(&w, VAL_EMPTY, object(&w, "o", "ns", ""));
	SAID(&w, "");
	CHECK(!gc_graph_find(&w.graph, STR("o"))->virtual);
	CHECK_INT(gc_graph_find(&w.graph, STR("o"))->n_dependents, 1);
	/* The server's word does not count against what an informer has shown, unless it is about the same place. */
	struct gc_identity elsewhere = { STR("v1"), STR("K"), STR("other"), STR("n-o"), STR("o") }, there = elsewhere;
	there.namespace = STR("ns");
	gc_graph_absent(&w.graph, &elsewhere);
	SAID(&w, "");
	gc_graph_absent(&w.graph, &there);
	SAID(&w, "look p");
	CHECK(!gc_graph_find(&w.graph, STR("o")));
}

TEST(gc_graph_absent_owner)
{
	CLEANUP(world_done) struct world w;
	world_init(&w);
	seen(&w, VAL_EMPTY, object(&w, "p", "ns", OWNED("o")));
	SAID(&w, "look o");
	struct gc_identity id = gc_graph_find(&w.graph, STR("o"))->id;
	gc_graph_absent(&w.graph, &id);
	SAID(&w, "look p");
	CHECK(!gc_graph_find(&w.graph, STR("o")));
	CHECK(!gc_graph_find(&w.graph, STR("p"))->owners[0].owner);
}

TEST(gc_graph_namespaces)
{
	CLEANUP(world_done) struct world w;
	world_init(&w);
	struct val owner = object(&w, "o", "here", "");
	/* Good parent, then bad child. */
	seen(&w, VAL_EMPTY, owner);
	seen(&w, VAL_EMPTY, object(&w, "p", "there", OWNED("o")));
	SAID(&w, "misplaced p->n-o, look p");
	/* A child in no namespace is no better. */
	seen(&w, VAL_EMPTY, object(&w, "c", "", OWNED("o")));
	SAID(&w, "misplaced c->n-o, look c");
	/* Bad child, then good parent. */
	seen(&w, VAL_EMPTY, object(&w, "q", "there", OWNED("x")));
	SAID(&w, "look x");
	seen(&w, VAL_EMPTY, object(&w, "x", "here", ""));
	SAID(&w, "misplaced q->n-x, look q");
	/* An owner of the cluster is fine for everybody. */
	seen(&w, VAL_EMPTY, object(&w, "g", "", ""));
	seen(&w, VAL_EMPTY, object(&w, "r", "there", OWNED("g")));
	SAID(&w, "");
}

/* Two that disagree about where an owner is that nobody has seen: its place is looked for in turn. */
TEST(gc_graph_disagreement)
{
	CLEANUP(world_done) struct world w;
	world_init(&w);
	seen(&w, VAL_EMPTY, object(&w, "p", "a", OWNED("o")));
	SAID(&w, "look o");
	seen(&w, VAL_EMPTY, object(&w, "q", "b", OWNED("o")));
	SAID(&w, "look q");
	struct gc_identity id = { STR("v1"), STR("K"), STR("a"), STR("n-o"), STR("o") };
	gc_graph_absent(&w.graph, &id);
	SAID(&w, "look p, later o");
	CHECK_STR(gc_graph_find(&w.graph, STR("o"))->id.namespace, "b");
	/* p has gone because of that; then there is only one place left. */
	gone(&w, object(&w, "p", "a", OWNED("o")));
	SAID(&w, "");
	id.namespace = STR("b");
	gc_graph_absent(&w.graph, &id);
	SAID(&w, "look q");
	CHECK(!gc_graph_find(&w.graph, STR("o")));
}

TEST(gc_graph_foreground)
{
	CLEANUP(world_done) struct world w;
	world_init(&w);
	struct val owner = object(&w, "o", "ns", ""), dying = object(&w, "o", "ns", DELETED("foregroundDeletion"));
	struct val blocking = object(&w, "p", "ns", BLOCKING("o")), free_one = object(&w, "q", "ns", OWNED("o"));
	seen(&w, VAL_EMPTY, owner);
	seen(&w, VAL_EMPTY, blocking);
	seen(&w, VAL_EMPTY, free_one);
	seen(&w, owner, dying);
	SAID(&w, "look p, look q, look o");
	CHECK(gc_graph_find(&w.graph, STR("o"))->deleting_dependents);
	CHECK(gc_node_is_blocked(gc_graph_find(&w.graph, STR("o"))));
	/* Told only once. */
	seen(&w, dying, dying);
	SAID(&w, "");
	gone(&w, free_one);
	SAID(&w, "look o");
	gone(&w, blocking);
	SAID(&w, "look o");
	CHECK(!gc_node_is_blocked(gc_graph_find(&w.graph, STR("o"))));
}

TEST(gc_graph_references_change)
{
	CLEANUP(world_done) struct world w;
	world_init(&w);
	struct val blocking = object(&w, "p", "ns", BLOCKING("o")), unblocked = object(&w, "p", "ns", OWNED("o")), loose = object(&w, "p", "ns", "");
	seen(&w, VAL_EMPTY, object(&w, "o", "ns", ""));
	seen(&w, VAL_EMPTY, blocking);
	seen(&w, blocking, unblocked);
	SAID(&w, "look o");
	CHECK_INT(gc_graph_find(&w.graph, STR("o"))->n_dependents, 1);
	seen(&w, unblocked, blocking);
	SAID(&w, "");
	seen(&w, blocking, loose);
	SAID(&w, "look o");
	CHECK_INT(gc_graph_find(&w.graph, STR("o"))->n_dependents, 0);
	seen(&w, loose, object(&w, "p", "ns", OWNED("new")));
	SAID(&w, "look new");
}

TEST(gc_graph_orphan_and_replacement)
{
	CLEANUP(world_done) struct world w;
	world_init(&w);
	struct val owner = object(&w, "o", "ns", ""), dying = object(&w, "o", "ns", DELETED("orphan"));
	seen(&w, VAL_EMPTY, owner);
	seen(&w, owner, dying);
	SAID(&w, "orphan o");
	/* Another object of that name, and nobody saw the end of the first. */
	seen(&w, VAL_EMPTY, object(&w, "p", "ns", OWNED("o")));
	seen(&w, dying, object(&w, "o2", "ns", ""));
	SAID(&w, "look p");
	CHECK(!gc_graph_find(&w.graph, STR("o")));
	CHECK(gc_graph_find(&w.graph, STR("o2")));
}

TEST(gc_graph_own_owner)
{
	CLEANUP(world_done) struct world w;
	world_init(&w);
	struct val self = object(&w, "s", "ns", BLOCKING("s"));
	seen(&w, VAL_EMPTY, self);
	SAID(&w, "");
	gone(&w, self);
	CHECK(!gc_graph_find(&w.graph, STR("s")));
}

TEST(gc_decisions)
{
	static const struct {
		struct gc_references r;
		bool has_dependent, dependent_waits;
		const char *finalizer;
		enum gc_what what;
		const char *propagation;
		bool unblock;
	} t[] = {
		{ { 1, 0, 0 }, false, false, "x", GC_KEEP, NULL, false },
		{ { 1, 1, 0 }, false, false, "x", GC_DROP_REFERENCES, NULL, false },
		{ { 1, 0, 1 }, true, false, "x", GC_DROP_REFERENCES, NULL, false },
		{ { 0, 0, 0 }, false, false, "x", GC_KEEP, NULL, false },
		{ { 0, 1, 0 }, false, false, "x", GC_DELETE, "Background", false },
		{ { 0, 1, 0 }, false, false, "orphan", GC_DELETE, "Orphan", false },
		{ { 0, 1, 0 }, false, false, "foregroundDeletion", GC_DELETE, "Foreground", false },
		{ { 0, 0, 1 }, false, false, "x", GC_DELETE, "Background", false },
		{ { 0, 0, 1 }, true, false, "orphan", GC_DELETE, "Foreground", false },
		{ { 0, 1, 1 }, true, true, "x", GC_DELETE, "Foreground", true },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(world_done) struct world w;
		world_init(&w);
		struct val item = object(&w, "i", "ns", arena_printf(&w.arena, ",'finalizers':['%s']", t[i].finalizer).p);
		seen(&w, VAL_EMPTY, item);
		if (t[i].has_dependent)
			seen(&w, VAL_EMPTY, object(&w, "d", "ns", OWNED("i")));
		if (t[i].dependent_waits)
			gc_graph_find(&w.graph, STR("d"))->deleting_dependents = true;
		struct gc_decision d = gc_decide(t[i].r, gc_graph_find(&w.graph, STR("i")), item);
		CHECK_ROW(i, d.what == t[i].what);
		CHECK_ROW(i, d.unblock == t[i].unblock);
		CHECK_STR_ROW(i, str_of(d.propagation), t[i].propagation ? t[i].propagation : "");
	}
}
