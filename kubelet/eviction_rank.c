/*
 * Who goes first: those that use more than they asked for, of these the least important ones, of these the largest; and the texts that say
 * why. Of pods whose figures are not known nobody knows that they behave: they go before all others.
 */
#include <stdlib.h>

#include "codec/atoms.h"
#include "kubelet/admit_priv.h"
#include "kubelet/cri_config_priv.h"
#include "kubelet/eviction_priv.h"
#include "kubelet/pod_rules.h"
#include "kubelet/stats_priv.h"
#include "machinery/resources.h"

enum measures { ROOT = 1, LOGS = 2, VOLUMES = 4 };

/* ---- usage ---- */

static int64_t disk_use(struct val pod, struct val stats, unsigned measures, bool inodes)
{
	atom which = inodes ? A_inodesUsed : A_usedBytes;
	int64_t sum = 0;

	VAL_EACH(c, val_get(stats, containers)) {
		if (measures & ROOT)
			sum += val_as_int(val_member(val_get(*c, rootfs), which));
		if (measures & LOGS)
			sum += val_as_int(val_member(val_get(*c, logs), which));
	}
	VAL_EACH(v, val_get(stats, volume)) {
		struct val volume = find_named(val_get(pod, spec, volumes), val_str(*v, name));
		if (measures & VOLUMES && (val_has(volume, hostPath) || stats_volume_is_local(volume)))
			sum += val_as_int(val_member(*v, which));
	}
	return sum;
}

/* What counts on a file system depends on what else is on it. */
static unsigned measures_of(enum signal s, const struct disks *d)
{
	bool node = s == SIGNAL_NODE_FS || s == SIGNAL_NODE_FS_INODES;

	if (!d->dedicated)
		return ROOT | LOGS | VOLUMES;
	if (d->split)
		return node ? ROOT | LOGS | VOLUMES : 0;
	return node ? LOGS | VOLUMES : ROOT;
}

static void weigh(struct candidate *c, struct arena *a, enum signal s, const struct disks *d)
{
	struct val requests = admit_requests(a, val_get(c->pod, spec));
	int64_t use, request;

	switch (signal_facts[s].pressure) {
	case PRESSURE_MEMORY:
		use = val_int(c->stats, memory, workingSetBytes);
		request = admit_amount(requests, STR("memory"));
		c->exceeds = use > request;
		c->over = use - request;
		break;
	case PRESSURE_DISK: {
		bool inodes = s == SIGNAL_NODE_FS_INODES || s == SIGNAL_IMAGE_FS_INODES;
		use = disk_use(c->pod, c->stats, measures_of(s, d), inodes);
		request = admit_amount(requests, STR("ephemeral-storage"));
		/* Nobody can ask for inodes; yet the bytes asked for are taken off them, as in Kubernetes. */
		c->exceeds = use > (inodes ? 0 : request);
		c->over = use - request;
		break;
	}
	default:
		c->over = val_int(c->stats, process_stats, process_count);
		break;
	}
}

/* ---- order ---- */

static int first(bool x, bool y) { return x == y ? 0 : x ? -1 : 1; }

static int candidate_order(const void *x, const void *y)
{
	const struct candidate *a = x, *b = y;
	int c = first(a->exceeds, b->exceeds);

	if (!c)
		c = a->priority < b->priority ? -1 : a->priority > b->priority;
	if (!c)
		c = a->over > b->over ? -1 : a->over < b->over;
	return c ? c : a->place < b->place ? -1 : 1;
}

static struct val stats_of(struct val stats, str uid)
{
	VAL_EACH(s, stats)
		if (str_eq(val_str(*s, podRef, uid), uid))
			return *s;
	return VAL_EMPTY;
}

struct candidate *eviction_rank(struct arena *a, struct val pods, struct val stats, enum signal signal, const struct disks *d, size_t *ret_n)
{
	struct candidate *all = ARENA_ARRAY(a, struct candidate, val_len(pods) + 1);
	size_t n = 0;

	VAL_EACH(pod, pods) {
		struct candidate *c = &all[n];
		*c = (struct candidate){ .pod = *pod, .stats = stats_of(stats, val_str(*pod, metadata, uid)),
					 .priority = val_int(*pod, spec, priority), .place = n };
		n++;
		if (val_exists(c->stats))
			weigh(c, a, signal, d);
		else if (signal_facts[signal].pressure == PRESSURE_PIDS)
			c->over = INT64_MAX;
		else
			c->exceeds = true, c->priority = INT64_MIN, c->over = INT64_MAX;
	}
	if (n)
		qsort(all, n, sizeof(*all), candidate_order);
	*ret_n = n;
	return all;
}

/* ---- texts ---- */

static struct val find_container(struct val pod, str name)
{
	struct val c = find_named(val_get(pod, spec, containers), name);

	return val_exists(c) ? c : find_named(val_get(pod, spec, initContainers), name);
}

/* Whether its use is known, and what it is. */
static bool container_use(struct val stats, str resource, int64_t *ret)
{
	if (str_eq(resource, STR("memory"))) {
		*ret = val_int(stats, memory, workingSetBytes);
		return val_has(stats, memory, workingSetBytes);
	}
	*ret = val_int(stats, rootfs, usedBytes) + val_int(stats, logs, usedBytes);
	return str_eq(resource, STR("ephemeral-storage")) && val_has(stats, rootfs, usedBytes) && val_has(stats, logs, usedBytes);
}

static void add_containers(struct buf *b, struct arena *a, const struct candidate *c, str resource)
{
	VAL_EACH(stats, val_get(c->stats, containers)) {
		struct val container = find_container(c->pod, val_str(*stats, name));
		struct quantity request = quantity_of(val_find(val_get(container, resources, requests), resource)), use;
		int64_t bytes;
		if (!val_exists(container) || !container_use(*stats, resource, &bytes))
			continue;
		use = quantity_of_int(bytes, QUANTITY_BINARY_SI);
		if (quantity_cmp(use, request) > 0)
			buf_addf(b, "Container " STR_FMT " was using " STR_FMT ", request is " STR_FMT ", has larger consumption of " STR_FMT ". ",
				 STR_ARG(val_str(container, name)), STR_ARG(quantity_text(a, use)), STR_ARG(quantity_text(a, request)), STR_ARG(resource));
	}
}

str eviction_message(struct arena *a, const struct candidate *c, str resource, const struct threshold *t, const struct observation *o)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	struct val request = val_find(val_get(c->pod, spec, resources, requests), resource);

	buf_addf(&b, "The node was low on resource: " STR_FMT ". ", STR_ARG(resource));
	buf_addf(&b, "Threshold quantity: " STR_FMT ", available: " STR_FMT ". ", STR_ARG(quantity_text(a, limit_quantity(&t->value, o->capacity))),
		 STR_ARG(quantity_text(a, o->available)));
	if (str_eq(resource, STR("memory")) && val_exists(request) && val_has(c->stats, memory))
		buf_addf(&b, "Pod " STR_FMT " was using " STR_FMT ", request is " STR_FMT ", has larger consumption of memory. ",
			 STR_ARG(val_str(c->pod, metadata, name)),
			 STR_ARG(quantity_text(a, quantity_of_int(val_int(c->stats, memory, workingSetBytes), QUANTITY_BINARY_SI))),
			 STR_ARG(quantity_text(a, quantity_of(request))));
	add_containers(&b, a, c, resource);
	return arena_str(a, buf_str(&b));
}

/* ---- limits of local storage ---- */

static struct quantity storage_limit(struct arena *a, struct val pod, bool *ret_given)
{
	struct val limit = val_find(pod_container_resources(a, val_get(pod, spec), A_limits), STR("ephemeral-storage"));

	*ret_given = val_exists(limit);
	return quantity_of(limit);
}

bool eviction_has_local_limit(struct arena *a, struct val pod)
{
	bool given;

	VAL_EACH(v, val_get(pod, spec, volumes))
		if (quantity_of(val_get(*v, emptyDir, sizeLimit)).nanos > 0)
			return true;
	(void)storage_limit(a, pod, &given);
	return given;
}

static bool is_above(struct val stats, struct quantity limit)
{
	return quantity_cmp(quantity_of_int(val_int(stats, usedBytes), QUANTITY_BINARY_SI), limit) > 0;
}

static str quoted(struct arena *a, str text)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);

	buf_add_quoted(&b, text);
	return arena_str(a, buf_str(&b));
}

static str volume_message(struct arena *a, struct val pod, struct val stats)
{
	VAL_EACH(v, val_get(pod, spec, volumes)) {
		struct quantity limit = quantity_of(val_get(*v, emptyDir, sizeLimit));
		if (limit.nanos > 0 && is_above(find_named(val_get(stats, volume), val_str(*v, name)), limit))
			return arena_printf(a, "Usage of EmptyDir volume " STR_FMT " exceeds the limit " STR_FMT ". ",
					    STR_ARG(quoted(a, val_str(*v, name))), STR_ARG(quoted(a, quantity_text(a, limit))));
	}
	return STR_NONE;
}

static str container_message(struct arena *a, struct val pod, struct val stats, const struct disks *d)
{
	VAL_EACH(s, val_get(stats, containers)) {
		struct val container = find_named(val_get(pod, spec, containers), val_str(*s, name));
		struct quantity limit = quantity_of(val_find(val_get(container, resources, limits), STR("ephemeral-storage")));
		int64_t use = val_int(*s, logs, usedBytes) + (d->dedicated ? 0 : val_int(*s, rootfs, usedBytes));
		if (limit.nanos && quantity_cmp(quantity_of_int(use, QUANTITY_BINARY_SI), limit) > 0)
			return arena_printf(a, "Container " STR_FMT " exceeded its local ephemeral storage limit " STR_FMT ". ",
					    STR_ARG(val_str(*s, name)), STR_ARG(quoted(a, quantity_text(a, limit))));
	}
	return STR_NONE;
}

str eviction_local_message(struct arena *a, struct val pod, struct val stats, const struct disks *d)
{
	bool given;
	struct quantity limit = storage_limit(a, pod, &given);
	str message = volume_message(a, pod, stats);

	if (message.n)
		return message;
	if (given && is_above(val_get(stats, ephemeral_storage), limit))
		return arena_printf(a, "Pod ephemeral local storage usage exceeds the total limit of containers " STR_FMT ". ",
				    STR_ARG(quantity_text(a, limit)));
	return container_message(a, pod, stats, d);
}
