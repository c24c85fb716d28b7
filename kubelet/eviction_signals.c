/* Signals: what is left of memory, disks and process ids; thresholds: from when on that is too little. */
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/time.h"
#include "codec/types.h"
#include "kubelet/cgroups_priv.h"
#include "kubelet/eviction_priv.h"
#include "kubelet/stats_priv.h"
#include "machinery/resources.h"

enum { DISKS_ASK_S = 300 };

/*
 * containerfs.* are not among them: Kubernetes gives them the thresholds of the file system that containers are on, the node's or that of
 * the images, whatever is configured. They would say the same twice.
 */
const struct signal_facts signal_facts[SIGNALS] = {
	[SIGNAL_MEMORY] = { STR_INIT("memory.available"), STR_INIT("memory"), PRESSURE_MEMORY, QUANTITY_BINARY_SI },
	[SIGNAL_ALLOCATABLE] = { STR_INIT("allocatableMemory.available"), STR_INIT("memory"), PRESSURE_MEMORY, QUANTITY_BINARY_SI },
	[SIGNAL_NODE_FS] = { STR_INIT("nodefs.available"), STR_INIT("ephemeral-storage"), PRESSURE_DISK, QUANTITY_BINARY_SI },
	[SIGNAL_NODE_FS_INODES] = { STR_INIT("nodefs.inodesFree"), STR_INIT("inodes"), PRESSURE_DISK, QUANTITY_DECIMAL_SI },
	[SIGNAL_IMAGE_FS] = { STR_INIT("imagefs.available"), STR_INIT("ephemeral-storage"), PRESSURE_DISK, QUANTITY_BINARY_SI },
	[SIGNAL_IMAGE_FS_INODES] = { STR_INIT("imagefs.inodesFree"), STR_INIT("inodes"), PRESSURE_DISK, QUANTITY_DECIMAL_SI },
	[SIGNAL_PIDS] = { STR_INIT("pid.available"), STR_INIT("pids"), PRESSURE_PIDS, QUANTITY_DECIMAL_SI },
};

/* ---- thresholds ---- */

static bool signal_of(str name, enum signal *ret)
{
	for (unsigned i = 0; i < SIGNALS; i++)
		if (str_eq(signal_facts[i].name, name)) {
			*ret = (enum signal)i;
			return true;
		}
	return false;
}

/* "100Mi" or "10%"; 0% and 100% mean none. */
static struct limit limit_of(str text)
{
	struct limit l = { 0 };
	char number[32];

	if (str_ends(text, STR("%")) && text.n < sizeof number) {
		memcpy(number, text.p, text.n - 1);
		number[text.n - 1] = '\0';
		l.part = strtof(number, NULL) / 100;
		l.given = l.part > 0 && l.part < 1;
	} else {
		l.given = quantity_parse(text, &l.amount, NULL) == 0 && l.amount.nanos > 0;
	}
	return l;
}

struct quantity limit_quantity(const struct limit *l, struct quantity capacity)
{
	return l->part > 0 ? quantity_of_int((int64_t)((double)quantity_value(capacity) * (double)l->part), QUANTITY_BINARY_SI) : l->amount;
}

static void add_thresholds(struct thresholds *ret, struct val config, struct val map, bool soft)
{
	VAL_EACH_MEMBER(m, map) {
		struct threshold t = { .value = limit_of(val_as_str(m->val)) };
		if (!signal_of(atom_str(m->key), &t.signal) || !t.value.given || ret->n == THRESHOLDS_MAX)
			continue;
		if (soft && duration_parse(val_as_str(val_member(val_get(config, evictionSoftGracePeriod), m->key)), &t.grace_ns, NULL) < 0)
			t.grace_ns = 0;
		t.reclaim = limit_of(val_as_str(val_member(val_get(config, evictionMinimumReclaim), m->key)));
		ret->all[ret->n++] = t;
	}
}

static int threshold_order(const void *x, const void *y)
{
	const struct threshold *a = x, *b = y;

	return a->signal != b->signal ? (int)a->signal - (int)b->signal : a->grace_ns < b->grace_ns ? -1 : a->grace_ns > b->grace_ns;
}

void thresholds_of_config(struct val config, struct thresholds *ret)
{
	ret->n = 0;
	add_thresholds(ret, config, val_get(config, evictionHard), false);
	/* What all pods together may use runs short as what the node has does. */
	for (size_t i = 0, n = ret->n; cgroups_enforces(config, STR("pods")) && i < n && ret->n < THRESHOLDS_MAX; i++)
		if (ret->all[i].signal == SIGNAL_MEMORY) {
			ret->all[ret->n] = ret->all[i];
			ret->all[ret->n++].signal = SIGNAL_ALLOCATABLE;
		}
	add_thresholds(ret, config, val_get(config, evictionSoft), true);
	qsort(ret->all, ret->n, sizeof(*ret->all), threshold_order);
}

bool threshold_is_met(const struct threshold *t, const struct observation *o, bool reclaim)
{
	if (!o->found)
		return false;
	struct quantity q = limit_quantity(&t->value, o->capacity);
	if (reclaim && t->reclaim.given)
		q = quantity_add(q, limit_quantity(&t->reclaim, o->capacity));
	return quantity_cmp(q, o->available) > 0;
}

str quantity_text(struct arena *a, struct quantity q)
{
	char text[QUANTITY_TEXT_MAX];

	return arena_str(a, quantity_format(q, text));
}

struct val eviction_reserved(struct val config, struct arena *a, int64_t memory_bytes, int64_t disk_bytes)
{
	struct limit memory = limit_of(val_as_str(val_find(val_get(config, evictionHard), signal_facts[SIGNAL_MEMORY].name)));
	struct limit disk = limit_of(val_as_str(val_find(val_get(config, evictionHard), signal_facts[SIGNAL_NODE_FS].name)));
	struct quantity of_memory = quantity_of_int(memory_bytes, QUANTITY_BINARY_SI), of_disk = quantity_of_int(disk_bytes, QUANTITY_BINARY_SI);

	return OBJECT(a, F(ephemeral_storage, disk.given ? VAL_STR(quantity_text(a, limit_quantity(&disk, of_disk))) : VAL_EMPTY),
		      F(memory, memory.given ? VAL_STR(quantity_text(a, limit_quantity(&memory, of_memory))) : VAL_EMPTY));
}

/* ---- observations ---- */

static void put(struct observation *all, enum signal s, uint64_t available, uint64_t capacity)
{
	enum quantity_format f = signal_facts[s].format;

	all[s] = (struct observation){ true, quantity_of_int((int64_t)MIN(available, (uint64_t)INT64_MAX), f),
				       quantity_of_int((int64_t)MIN(capacity, (uint64_t)INT64_MAX), f) };
}

static void put_fs(struct observation *all, enum signal bytes, enum signal inodes, const char *path)
{
	struct fs_look fs = stats_fs(path);

	if (fs.ok)
		put(all, bytes, fs.available, fs.capacity);
	/* Some file systems do not count inodes. */
	if (fs.ok && fs.inodes)
		put(all, inodes, fs.inodes_free, fs.inodes);
}

/*
 * (suspends) Where images and containers are does not change while the runtime runs, and to ask is dear: it measures them. So that is done
 * now and then only.
 */
static void look_at_disks(struct eviction *e, struct arena *a)
{
	struct disks *d = &e->disks;
	struct val reply;
	struct stat node, images, containers;

	if (!e->o.stats || (d->asked_ns && clock_now_ns() - d->asked_ns < DISKS_ASK_S * NS_PER_S))
		return;
	if (cri_ask(e->o.stats->o.cri, &rpc_ImageService_ImageFsInfo, a, VAL_EMPTY_OBJECT, 0, &reply, NULL) < 0)
		return;
	str image = val_str(val_at(val_get(reply, imageFilesystems), 0), fsId, mountpoint);
	str container = val_str(val_at(val_get(reply, containerFilesystems), 0), fsId, mountpoint);
	const char *image_path = arena_str(a, image).p;
	if (!image.n || stat(arena_str(a, e->o.node->root).p, &node) < 0 || stat(image_path, &images) < 0)
		return;
	d->asked_ns = clock_now_ns();
	d->known = true;
	d->dedicated = images.st_dev != node.st_dev;
	d->split = d->dedicated && container.n && stat(arena_str(a, container).p, &containers) == 0 && containers.st_dev != images.st_dev;
	free(d->images);
	d->images = mem_alloc(image.n + 1);
	memcpy(d->images, image_path, image.n + 1);
}

static struct quantity quantity_given(struct val v, enum quantity_format f)
{
	return val_is(v, VAL_INT) ? quantity_of_int(v.i, f) : quantity_of(v);
}

static void put_given(struct observation *all, struct val list)
{
	VAL_EACH(one, list) {
		enum signal s;
		if (signal_of(val_str(*one, signal), &s))
			all[s] = (struct observation){ true, quantity_given(val_find(*one, STR("available")), signal_facts[s].format),
						       quantity_given(val_get(*one, capacity), signal_facts[s].format) };
	}
}

static void put_allocatable(struct eviction *e, struct arena *a, struct observation *all)
{
	CLEANUP(cgroup_freep) struct cgroup *g = NULL;
	struct cgroups *c = e->o.stats ? e->o.stats->o.cgroups : NULL;
	struct cgroup_stats s;

	if (!c || cgroup_open(cgroups_pod_path(c, a, VAL_EMPTY).p, &g, NULL) < 0 || cgroup_stats(g, &s, NULL) < 0 ||
	    s.memory_limit >= MEMORY_UNLIMITED)
		return;
	put(all, SIGNAL_ALLOCATABLE, s.memory_limit - MIN(s.memory_working_set, s.memory_limit), s.memory_limit);
}

void signals_observe(struct eviction *e, struct arena *a, struct observation ret[SIGNALS])
{
	struct memory_look m;
	int64_t max, now;

	memset(ret, 0, SIGNALS * sizeof(*ret));
	look_at_disks(e, a);
	if (e->o.observe) {
		put_given(ret, e->o.observe(e->o.arg, a));
		return;
	}
	m = stats_memory();
	if (m.total)
		put(ret, SIGNAL_MEMORY, m.total - MIN(m.working_set, m.total), m.total);
	put_allocatable(e, a, ret);
	put_fs(ret, SIGNAL_NODE_FS, SIGNAL_NODE_FS_INODES, arena_str(a, e->o.node->root).p);
	if (e->disks.images)
		put_fs(ret, SIGNAL_IMAGE_FS, SIGNAL_IMAGE_FS_INODES, e->disks.images);
	stats_tasks(&max, &now);
	if (max >= 0 && now >= 0)
		put(ret, SIGNAL_PIDS, (uint64_t)MAX(max - now, INT64_C(0)), (uint64_t)max);
}
