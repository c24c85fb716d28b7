/*
 * crictl: what containers and pods use. CRI counts CPU time; a percentage takes two looks, --seconds apart.
 */
#include <stdio.h>

#include "base/fiber.h"
#include "cmd/crictl.h"
#include "codec/atoms.h"
#include "codec/types.h"

#define CLEAR_SCREEN "\033[2J\033[H"

/* (suspends) Shows once, or (--watch) until it is stopped. */
static int show(struct crictl *c, int (*once)(struct crictl *c, struct err *err), struct err *err)
{
	int r = crictl_check_output(c, true, err);

	if (c->seconds < 0 || c->seconds > 3600)
		return err_set(err, ERR_BAD_REQUEST, "--seconds is up to 3600");
	while (r == 0 && (r = once(c, err)) == 0 && c->watch) {
		(void)fflush(stdout);
		r = fiber_sleep_ms(1000, err);
	}
	return r;
}

static struct val find(struct val list, str id)
{
	VAL_EACH(s, list)
		if (str_eq(val_str(*s, attributes, id), id))
			return *s;
	return VAL_EMPTY;
}

/* Of one CPU, between two looks. */
static const char *percent(struct arena *a, struct val before, struct val now)
{
	double ns = (double)(val_int(now, timestamp) - val_int(before, timestamp));
	double used = (double)(val_int(now, usageCoreNanoSeconds, value) - val_int(before, usageCoreNanoSeconds, value));

	return arena_printf(a, "%.2f", ns > 0 && used > 0 ? used / ns * 100 : 0.0).p;
}

/* (suspends) Two answers to one question; only one when no percentages are wanted. */
static int look(struct crictl *c, const struct rpc *rpc, struct val request, bool twice, struct val *ret_before, struct val *ret_now,
		struct err *err)
{
	int r = crictl_call(c, rpc, request, ret_before, err);

	*ret_now = *ret_before;
	if (r < 0 || !twice)
		return r;
	if ((r = fiber_sleep_ms(c->seconds * 1000, err)) < 0)
		return r;
	return crictl_call(c, rpc, request, ret_now, err);
}

static bool has_table(const struct crictl *c) { return !*c->output || strcmp(c->output, "table") == 0; }

static int question(struct crictl *c, struct val *ret, struct err *err)
{
	struct arena *a = &c->arena;
	const char *id = c->id ? c->id : c->n ? c->arguments[0] : NULL;
	struct val labels;
	int r = crictl_labels(c, &c->labels, &labels, err);

	if (r == 0)
		*ret = OBJECT(a, F(filter, OBJECT(a, F(id, id ? VAL_STR(str_of(id)) : VAL_EMPTY),
						  F(podSandboxId, c->pod ? VAL_STR(str_of(c->pod)) : VAL_EMPTY), F(labelSelector, labels))));
	return r;
}

/* ---- containers ---- */

static int stats_once(struct crictl *c, struct err *err)
{
	static const char *const heading[] = { "CONTAINER", "NAME", "CPU %", "MEM", "DISK", "INODES", "SWAP" };
	struct arena *a = &c->arena;
	struct val request, before, now;
	struct table t;
	int r = question(c, &request, err);

	if (r < 0 || (r = look(c, &rpc_RuntimeService_ListContainerStats, request, has_table(c), &before, &now, err)) < 0 ||
	    crictl_show_as(c, now, rpc_RuntimeService_ListContainerStats.response))
		return r;
	table_init(&t, a, ARRAY_LEN(heading), heading);
	VAL_EACH(s, val_get(now, stats)) {
		struct val old = find(val_get(before, stats), val_str(*s, attributes, id));
		bool idle = !val_int(*s, cpu, usageCoreNanoSeconds, value) && !val_int(*s, memory, workingSetBytes, value);
		if (!val_exists(old) || (idle && !c->all))
			continue;
		const char *cells[] = {
			crictl_short_id(c, a, val_str(*s, attributes, id)), crictl_text(a, val_str(*s, attributes, metadata, name)),
			percent(a, val_get(old, cpu), val_get(*s, cpu)), crictl_size(a, (uint64_t)val_int(*s, memory, workingSetBytes, value)),
			crictl_size(a, (uint64_t)val_int(*s, writableLayer, usedBytes, value)),
			arena_printf(a, "%lld", (long long)val_int(*s, writableLayer, inodesUsed, value)).p,
			crictl_size(a, (uint64_t)val_int(*s, swap, swapUsageBytes, value)),
		};
		table_add(&t, cells);
	}
	if (c->watch)
		printf(CLEAR_SCREEN);
	table_print(&t);
	return 0;
}

int crictl_stats(struct crictl *c, struct err *err) { return show(c, stats_once, err); }

/* ---- pods ---- */

static int statsp_once(struct crictl *c, struct err *err)
{
	static const char *const heading[] = { "POD", "POD ID", "CPU %", "MEM" };
	struct arena *a = &c->arena;
	struct val request, before, now;
	struct table t;
	int r = question(c, &request, err);

	if (r < 0 || (r = look(c, &rpc_RuntimeService_ListPodSandboxStats, request, has_table(c), &before, &now, err)) < 0 ||
	    crictl_show_as(c, now, rpc_RuntimeService_ListPodSandboxStats.response))
		return r;
	table_init(&t, a, ARRAY_LEN(heading), heading);
	VAL_EACH(s, val_get(now, stats)) {
		struct val old = find(val_get(before, stats), val_str(*s, attributes, id));
		if (!val_exists(old))
			continue;
		const char *cells[] = {
			crictl_text(a, val_str(*s, attributes, metadata, name)), crictl_short_id(c, a, val_str(*s, attributes, id)),
			percent(a, val_get(old, linux, cpu), val_get(*s, linux, cpu)),
			crictl_size(a, (uint64_t)val_int(*s, linux, memory, workingSetBytes, value)),
		};
		table_add(&t, cells);
	}
	if (c->watch)
		printf(CLEAR_SCREEN);
	table_print(&t);
	return 0;
}

int crictl_statsp(struct crictl *c, struct err *err) { return show(c, statsp_once, err); }

/* ---- metrics ---- */

static int show_answer(struct crictl *c, const struct rpc *rpc, struct err *err)
{
	struct val v;
	int r = crictl_check_output(c, false, err);

	if (r < 0 || (r = crictl_call(c, rpc, VAL_EMPTY_OBJECT, &v, err)) < 0)
		return r;
	crictl_show(c, v, rpc->response);
	return 0;
}

static int metricsp_once(struct crictl *c, struct err *err) { return show_answer(c, &rpc_RuntimeService_ListPodSandboxMetrics, err); }

int crictl_metricsp(struct crictl *c, struct err *err) { return show(c, metricsp_once, err); }

int crictl_metricdescs(struct crictl *c, struct err *err) { return show_answer(c, &rpc_RuntimeService_ListMetricDescriptors, err); }
