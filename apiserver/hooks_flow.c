/*
 * FlowSchemas and PriorityLevelConfigurations: whether a schema's level exists is written into its status before the write that
 * decides it is answered, so that whoever asks next sees it. Other ways (a write to the status, another server) are noticed by
 * flow_follow.
 */
#include "apiserver/bootstrap_priv.h"
#include "apiserver/cache.h"
#include "apiserver/hooks.h"
#include "apiserver/request.h"
#include "base/log.h"
#include "codec/atoms.h"

static void report(int r, const struct err *err)
{
	if (r < 0)
		log_warn("the condition of a flow schema could not be written yet", KV("error", err));
}

static void schema_written(struct request *q, bool stored, struct val old, struct val object)
{
	struct err err = ERR_INIT;
	(void)old;
	if (stored && !q->dry_run && val_exists(object) && !str_eq(q->user.name, STR("system:apiserver")))
		report(flow_sync_status(q->server, val_str(object, metadata, name), &err), &err);
}

static void level_written(struct request *q, bool stored, struct val old, struct val object)
{
	struct err err = ERR_INIT;
	if (!stored || q->dry_run || val_exists(old) == val_exists(object) || str_eq(q->user.name, STR("system:apiserver")))
		return;
	int r = cache_wait_current(q->server->cache, &err); /* a removal is reported before the cache has it */
	report(r < 0 ? r : flow_sync_all(q->server, &err), &err);
}

const struct kind_hooks flow_schema_hooks = { .finish = schema_written };
const struct kind_hooks priority_level_hooks = { .finish = level_written };
