/* PodResizeValidator: a running pod can only grow as far as its node is large, and only on nodes that can do it at all. */
#include "apiserver/admission/plugins.h"
#include "apiserver/apiserver.h"
#include "apiserver/cache.h"
#include "codec/atoms.h"
#include "machinery/resources.h"

struct object *admission_bound_node(const struct request *q)
{
	return cache_get(kinds_find(&q->server->kinds, STR_NONE, STR("nodes")), val_str(q->object, spec, nodeName));
}

static int refuse(struct request *q, str reason, str why)
{
	int r = admission_forbid(q, STR_FMT, STR_ARG(why));
	struct val cause = OBJECT(q->arena, F(reason, val_of_str(reason)));
	q->failure = val_with(q->arena, q->failure, LIST(q->arena, cause), details, causes);
	return r;
}

/* What the pod needs of one resource: as a whole if it says so, else its containers together; and what comes on top. */
static struct quantity needed(struct request *q, str resource)
{
	struct val spec = val_get(q->object, spec), whole = val_find(val_get(spec, resources, requests), resource);
	if (!val_exists(whole))
		whole = val_find(pod_container_resources(q->arena, spec, A_requests), resource);
	return quantity_add(quantity_of(whole), quantity_of(val_find(val_get(spec, overhead), resource)));
}

static int check_room(struct request *q, struct val node)
{
	struct val allocatable = val_get(node, status, allocatable);
	struct quantity cpu = needed(q, STR("cpu")), memory = needed(q, STR("memory"));
	struct quantity has_cpu = quantity_of(val_find(allocatable, STR("cpu"))),
		has_memory = quantity_of(val_find(allocatable, STR("memory")));
	str more_cpu = STR_NONE, more_memory = STR_NONE;
	if (quantity_cmp(cpu, has_cpu) > 0)
		more_cpu = arena_printf(q->arena, "cpu, requested: %lld, allocatable: %lld", (long long)quantity_milli(cpu),
					(long long)quantity_milli(has_cpu));
	if (quantity_cmp(memory, has_memory) > 0)
		more_memory = arena_printf(q->arena, "memory, requested: %lld, allocatable: %lld",
					   (long long)quantity_value(memory), (long long)quantity_value(has_memory));
	if (!more_cpu.n && !more_memory.n)
		return 0;
	const char *between = more_cpu.n && more_memory.n ? "; " : "";
	return refuse(q, STR("NodeCapacity"), arena_printf(q->arena,
							   "node didn't have enough allocatable resources: " STR_FMT "%s" STR_FMT,
							   STR_ARG(more_cpu), between, STR_ARG(more_memory)));
}

static int validate(struct request *q, struct err *err)
{
	(void)err;
	str name = val_str(q->object, spec, nodeName);
	bool resize = str_eq(q->resource, STR("pods")) && !q->group.n && str_eq(q->subresource, STR("resize"));
	if (!resize || !q->current || !name.n || val_int(q->object, metadata, generation) == val_int(q->old, metadata,
												     generation))
		return 0;
	struct object *node = admission_bound_node(q);
	if (!node)
		return admission_forbid(q, "node \"" STR_FMT "\" not found", STR_ARG(name));
	str os = val_as_str(val_find(val_get(node->val, metadata, labels), STR("kubernetes.io/os")));
	if (os.n && !str_eq(os, STR("linux")))
		return refuse(q, STR("UnsupportedPlatform"),
			      arena_printf(q->arena,
					   "pod resize is only supported on linux nodes, node \"" STR_FMT "\" is \"" STR_FMT "\"",
					   STR_ARG(name), STR_ARG(os)));
	return check_room(q, node->val);
}

const struct admission_plugin admission_pod_resize = { .name = "PodResizeValidator", .validate = validate };
