/* AlwaysPullImages: every image is pulled by whoever runs it, so that nobody uses one that only others may pull. */
#include "apiserver/admission/plugins.h"
#include "base/buf.h"
#include "base/map.h"
#include "codec/atoms.h"

static const atom container_lists[] = { A_initContainers, A_containers, A_ephemeralContainers };

static bool has_new_images(const struct request *q)
{
	CLEANUP(map_done) struct map old = MAP_INIT;
	for (size_t i = 0; i < ARRAY_LEN(container_lists); i++)
		VAL_EACH(c, val_member(val_get(q->old, spec), container_lists[i]))
			map_put(&old, val_str(*c, image), &old);
	for (size_t i = 0; i < ARRAY_LEN(container_lists); i++)
		VAL_EACH(c, val_member(val_get(q->object, spec), container_lists[i]))
			if (!map_get(&old, val_str(*c, image)))
				return true;
	return false;
}

static bool is_ours(const struct request *q)
{
	return admits(q, STR(""), STR("pods")) && val_exists(q->object) && (!val_exists(q->old) || has_new_images(q));
}

static bool is_always(struct val policy) { return str_eq(val_as_str(policy), STR("Always")); }

static int mutate(struct request *q, struct err *err)
{
	(void)err;
	if (!is_ours(q))
		return 0;
	struct arena *a = q->arena;
	struct val spec = val_get(q->object, spec);
	for (size_t i = 0; i < ARRAY_LEN(container_lists); i++) {
		struct val_builder b = val_builder(a);
		VAL_EACH(c, val_member(spec, container_lists[i]))
			val_add_item(&b, val_with(a, *c, VAL_LIT("Always"), imagePullPolicy));
		if (b.n)
			spec = val_put(a, spec, container_lists[i], val_end_list(&b));
	}
	struct val_builder volumes = val_builder(a);
	VAL_EACH(v, val_get(spec, volumes))
		val_add_item(&volumes, val_has(*v, image) ? val_with(a, *v, VAL_LIT("Always"), image, pullPolicy) : *v);
	if (volumes.n)
		spec = val_with(a, spec, val_end_list(&volumes), volumes);
	q->object = val_with(a, q->object, spec, spec);
	return 0;
}

/* Kubernetes makes one text of all: pods "x" is forbidden: spec.containers[0].imagePullPolicy: Unsupported value: ... */
static void complain(struct request *q, struct buf *all, size_t *n, const struct field_path *at, struct val value)
{
	static const str supported[] = { STR_INIT("Always"), { NULL, 0 } };
	struct field_errors e;
	field_errors_init(&e, q->arena);
	field_not_supported(&e, at, val_exists(value) ? value : VAL_LIT(""), supported);
	buf_addf(all, "%spods \"" STR_FMT "\" is forbidden: " STR_FMT, (*n)++ ? ", " : "",
		 STR_ARG(val_str(q->object, metadata, name)), STR_ARG(field_errors_plain(&e)));
}

static int validate(struct request *q, struct err *err)
{
	CLEANUP(buf_done) struct buf all = BUF_INIT(8 << 20);
	const struct field_path *at = FIELD(NULL, "spec");
	struct val spec = val_get(q->object, spec), volumes = val_get(spec, volumes);
	size_t n = 0;
	(void)err;
	if (!is_ours(q))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(container_lists); i++) {
		struct val list = val_member(spec, container_lists[i]);
		for (size_t k = 0; k < val_len(list); k++) {
			struct val policy = val_get(list.items[k], imagePullPolicy);
			const struct field_path *container = FIELD_INDEX(FIELD_STR(at, atom_str(container_lists[i])), k);
			if (!is_always(policy))
				complain(q, &all, &n, FIELD(container, "imagePullPolicy"), policy);
		}
	}
	for (size_t k = 0; k < val_len(volumes); k++)
		if (val_has(volumes.items[k], image) && !is_always(val_get(volumes.items[k], image, pullPolicy)))
			complain(q, &all, &n, FIELD(FIELD(FIELD_INDEX(FIELD(at, "volumes"), k), "image"), "pullPolicy"),
				 val_get(volumes.items[k], image, pullPolicy));
	if (!n)
		return 0;
	return request_fail_as(q, ERR_INTERNAL, 500, STR(""), VAL_EMPTY, "%s" STR_FMT "%s", n > 1 ? "[" : "",
			       STR_ARG(buf_str(&all)), n > 1 ? "]" : "");
}

const struct admission_plugin admission_always_pull_images = {
	.name = "AlwaysPullImages", .optional = true, .mutate = mutate, .validate = validate,
};
