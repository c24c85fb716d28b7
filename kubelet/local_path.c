#include "kubelet/local_path.h"

#include <unistd.h>

#include "base/fiber.h"
#include "base/fiber_io.h"
#include "base/log.h"
#include "base/path.h"
#include "client/informer.h"
#include "codec/atoms.h"
#include "codec/types.h"

enum { RETRY_MS = 10 * 1000 };

struct local_path {
	const struct local_path_options *o;
	struct informers *informers;
	struct informer *nodes;
	struct informer_listener listener;
	struct fiber_cond changed;
	bool due;
};

bool kubelet_local_path_valid(str name) { return str_starts(name, STR("pvc-")) && str_chr(name, '/') < 0 && name.n < 256; }

static str list_of(struct val node) { return val_as_str(val_find(val_get(node, metadata, annotations), STR(LOCAL_PATH_REMOVE))); }

static void node_changed(struct informer_listener *l, struct frozen *old, struct frozen *node)
{
	struct local_path *p = CONTAINER_OF(l, struct local_path, listener);

	(void)old;
	if (!node || !list_of(node->val).n)
		return;
	p->due = true;
	fiber_cond_broadcast(&p->changed);
}

/* ---- removing ---- */

struct removal {
	const char *root, *folder;
};

/* On a thread of the pool: trees can be large. */
static int remove_folder(void *arg, struct err *err)
{
	const struct removal *r = arg;
	int tree = path_open_tree(r->root, err), result;

	if (tree < 0)
		return tree == -ERR_NOT_FOUND ? 0 : tree;
	result = path_remove(tree, r->folder, err);
	(void)close(tree);
	return result == -ERR_NOT_FOUND ? 0 : result;
}

struct taking_out {
	str list;                    /* what was there and is done */
	str kept;                    /* of it: what could not be removed */
};

static bool is_in(str list, str name)
{
	str one;

	while (list.n) {
		(void)str_cut(list, ',', &one, &list);
		if (str_eq(one, name))
			return true;
	}
	return false;
}

static str added(struct arena *a, str list, str name)
{
	return list.n ? arena_printf(a, STR_FMT "," STR_FMT, STR_ARG(list), STR_ARG(name)) : name;
}

/* What was added meanwhile stays. */
static struct val take_out(struct arena *a, struct val node, void *arg)
{
	const struct taking_out *t = arg;
	str list = list_of(node), kept = STR_NONE, one;
	struct val map = val_get(node, metadata, annotations);

	while (list.n) {
		(void)str_cut(list, ',', &one, &list);
		if (!is_in(t->list, one) || is_in(t->kept, one))
			kept = added(a, kept, one);
	}
	if (str_eq(kept, list_of(node)))
		return VAL_EMPTY;
	map = val_put(a, map, atom_make(a, STR(LOCAL_PATH_REMOVE)), kept.n ? VAL_STR(kept) : VAL_EMPTY);
	return val_with(a, node, val_len(map) ? map : VAL_EMPTY, metadata, annotations);
}

/* (suspends) 1 when something is left for later. */
static int sweep(struct local_path *p, struct arena *a, str list, struct err *err)
{
	struct taking_out t = { .list = list };
	str rest = list, one;

	while (rest.n) {
		struct err why = ERR_INIT;
		(void)str_cut(rest, ',', &one, &rest);
		if (!kubelet_local_path_valid(one))
			continue; /* none of ours: it leaves the list, and nothing else happens */
		struct removal r = { p->o->root, arena_str(a, one).p };
		if (fiber_blocking(remove_folder, &r, &why) < 0) {
			if (fiber_check(err) < 0)
				return -ERR_CANCELED;
			log_warn("the folder of a volume could not be removed, will retry", KV("folder", one), KV("error", &why));
			t.kept = added(a, t.kept, one);
		}
	}
	int r = client_change_object(p->o->client, TYPE(core_v1, Node), STR_NONE, p->o->node_name, take_out, &t, NULL, NULL, err);
	return r < 0 ? r : t.kept.n != 0;
}

static int sweep_once(struct local_path *p, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct frozen *node = informer_get(p->nodes, p->o->node_name);
	str list = node ? arena_str(&a, list_of(node->val)) : STR_NONE;

	return list.n ? sweep(p, &a, list, err) : 0;
}

static int run(struct local_path *p, struct err *err)
{
	int r = informers_start(p->informers, err);

	while (r == 0) {
		while (r == 0 && !p->due)
			r = fiber_cond_wait(&p->changed, err);
		if (r < 0)
			return r;
		p->due = false;
		struct err why = ERR_INIT;
		if ((r = sweep_once(p, &why)) == -ERR_CANCELED)
			return r;
		if (r != 0) {
			if (r < 0)
				log_warn("volumes that are gone could not be swept, will retry", KV("error", &why));
			p->due = true;
			r = fiber_sleep_ms(RETRY_MS, err);
		}
	}
	return r;
}

int kubelet_local_path_run(const struct local_path_options *o, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct local_path p = { .o = o, .listener.changed = node_changed, .informers = informers_new(o->client) };
	str fields = arena_printf(&a, "metadata.name=" STR_FMT, STR_ARG(o->node_name));

	fiber_cond_init(&p.changed, "folders to remove");
	p.nodes = informers_get(p.informers, TYPE(core_v1, Node), &(struct informer_options){ .fields = fields });
	informer_listen(p.nodes, &p.listener);
	int r = run(&p, err);
	informer_unlisten(&p.listener);
	informers_free(p.informers);
	return r;
}
