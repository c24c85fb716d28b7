/* Lists of pods and containers: what the runtime can select by it is asked for, the rest is done here. */
#include <regex.h>
#include <stdlib.h>

#include "cmd/crictl.h"
#include "codec/atoms.h"
#include "codec/types.h"

static struct val text(const char *s) { return s ? VAL_STR(str_of(s)) : VAL_EMPTY; }

int crictl_labels(struct crictl *c, const struct crictl_texts *texts, struct val *ret, struct err *err)
{
	struct val_builder b = val_builder(&c->arena);

	for (size_t i = 0; i < texts->n; i++) {
		str key, value;
		if (!str_cut(str_of(texts->item[i]), '=', &key, &value) || !key.n)
			return err_set(err, ERR_BAD_REQUEST, "incorrectly specified label: %s", texts->item[i]);
		val_add_member(&b, atom_make(&c->arena, key), VAL_STR(value));
	}
	*ret = val_end_object(&b);
	return 0;
}

int crictl_matches(const char *pattern, str value, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	regex_t re;

	if (!pattern)
		return 1;
	if (regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB) != 0)
		return err_set(err, ERR_BAD_REQUEST, "'%s' is not a regular expression", pattern);
	int r = regexec(&re, arena_str(&a, value).p, 0, NULL, 0);
	regfree(&re);
	return r == 0;
}

bool crictl_filters_given(const struct crictl *c)
{
	return c->name || c->pod || c->image || c->state || c->labels.n || c->latest || c->last >= 0;
}

/* ---- order ---- */

struct dated {
	int64_t ns;
	size_t place; /* where the runtime had it: what is equally old stays in that order, reversed */
	struct val val;
};

static int newest_first(const void *x, const void *y)
{
	const struct dated *a = x, *b = y;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	return a->place > b->place ? -1 : a->place < b->place;
}

/* Sorted, and cut to --latest and --last. */
static struct val finish(struct crictl *c, struct dated *items, size_t n)
{
	struct val_builder b = val_builder(&c->arena);
	size_t most = c->latest ? 1 : c->last > 0 ? (size_t)c->last : n;

	if (n)
		qsort(items, n, sizeof *items, newest_first);
	for (size_t i = 0; i < MIN(n, most); i++)
		val_add_item(&b, items[i].val);
	return val_end_list(&b);
}

/* ---- containers ---- */

static int container_state(const struct crictl *c, struct val *ret, struct err *err)
{
	static const struct {
		const char *word;
		struct val state;
	} states[] = {
		{ "created", { .type = VAL_STRING, .n = 17, .s = "CONTAINER_CREATED" } },
		{ "running", { .type = VAL_STRING, .n = 17, .s = "CONTAINER_RUNNING" } },
		{ "exited", { .type = VAL_STRING, .n = 16, .s = "CONTAINER_EXITED" } },
		{ "unknown", { .type = VAL_STRING, .n = 17, .s = "CONTAINER_UNKNOWN" } },
	};
	const char *word = c->state ? c->state : c->all ? NULL : "running";

	*ret = VAL_EMPTY;
	for (size_t i = 0; word && i < ARRAY_LEN(states); i++)
		if (strcasecmp(word, states[i].word) == 0)
			*ret = states[i].state;
	if (word && !val_exists(*ret))
		return err_set(err, ERR_BAD_REQUEST, "--state should be one of created, running, exited or unknown");
	if (c->latest || c->last > 0)
		*ret = VAL_EMPTY;
	return 0;
}

/* (suspends) Names by which a container can call the image that was asked for: as it was said, the image's id and its names. */
static int image_names(struct crictl *c, struct val *ret, struct err *err)
{
	struct arena *a = &c->arena;
	struct val_builder b = val_builder(a);
	struct val v;

	*ret = VAL_EMPTY;
	if (!c->image)
		return 0;
	int r = crictl_call(c, &rpc_ImageService_ImageStatus, OBJECT(a, F(image, OBJECT(a, F(image, text(c->image))))), &v, err);
	if (r < 0)
		return r;
	val_add_item(&b, text(c->image));
	if (val_has(v, image)) {
		val_add_item(&b, val_get(v, image, id));
		VAL_EACH(tag, val_get(v, image, repoTags))
			val_add_item(&b, *tag);
		VAL_EACH(digest, val_get(v, image, repoDigests))
			val_add_item(&b, *digest);
	}
	*ret = val_end_list(&b);
	return 0;
}

static bool has_image(struct val container, struct val names)
{
	str used = val_str(container, image, image), ref = val_str(container, imageRef);

	if (!val_exists(names))
		return true;
	VAL_EACH(name, names)
		if (str_eq(val_as_str(*name), used) || str_eq(val_as_str(*name), ref))
			return true;
	return false;
}

static int is_wanted(struct crictl *c, struct val container, struct val images, struct err *err)
{
	str namespace = val_as_str(val_find(val_get(container, labels), STR("io.kubernetes.pod.namespace")));
	int r = crictl_matches(c->name, val_str(container, metadata, name), err);

	if (r > 0)
		r = crictl_matches(c->namespace, namespace, err);
	return r > 0 ? has_image(container, images) : r;
}

int crictl_list_containers(struct crictl *c, struct val *ret_list, struct err *err)
{
	struct arena *a = &c->arena;
	struct val state, labels, images, v;
	int r = container_state(c, &state, err);

	if (r < 0 || (r = crictl_labels(c, &c->labels, &labels, err)) < 0 || (r = image_names(c, &images, err)) < 0)
		return r;
	struct val filter = OBJECT(a, F(id, text(c->id)), F(podSandboxId, text(c->pod)),
				   F(state, val_exists(state) ? OBJECT(a, F(state, state)) : VAL_EMPTY), F(labelSelector, labels));
	if ((r = crictl_call(c, &rpc_RuntimeService_ListContainers, OBJECT(a, F(filter, filter)), &v, err)) < 0)
		return r;
	struct dated *items = ARENA_ARRAY(a, struct dated, val_len(val_get(v, containers)) + 1);
	size_t n = 0, place = 0;
	VAL_EACH(one, val_get(v, containers)) {
		if ((r = is_wanted(c, *one, images, err)) < 0)
			return r;
		if (r)
			items[n++] = (struct dated){ val_int(*one, createdAt), place, *one };
		place++;
	}
	*ret_list = finish(c, items, n);
	return 0;
}

/* ---- pods ---- */

static int pod_state(const struct crictl *c, struct val *ret, struct err *err)
{
	*ret = VAL_EMPTY;
	if (!c->state)
		return 0;
	if (strcasecmp(c->state, "ready") == 0)
		*ret = VAL_LIT("SANDBOX_READY");
	else if (strcasecmp(c->state, "notready") == 0)
		*ret = VAL_LIT("SANDBOX_NOTREADY");
	else
		return err_set(err, ERR_BAD_REQUEST, "--state should be ready or notready");
	return 0;
}

int crictl_list_pods(struct crictl *c, struct val *ret_list, struct err *err)
{
	struct arena *a = &c->arena;
	struct val state, labels, v;
	int r = pod_state(c, &state, err);

	if (r < 0 || (r = crictl_labels(c, &c->labels, &labels, err)) < 0)
		return r;
	struct val filter = OBJECT(a, F(id, text(c->id)), F(state, val_exists(state) ? OBJECT(a, F(state, state)) : VAL_EMPTY),
				   F(labelSelector, labels));
	if ((r = crictl_call(c, &rpc_RuntimeService_ListPodSandbox, OBJECT(a, F(filter, filter)), &v, err)) < 0)
		return r;
	struct dated *items = ARENA_ARRAY(a, struct dated, val_len(val_get(v, items)) + 1);
	size_t n = 0, place = 0;
	VAL_EACH(one, val_get(v, items)) {
		if ((r = crictl_matches(c->name, val_str(*one, metadata, name), err)) > 0)
			r = crictl_matches(c->namespace, val_str(*one, metadata, namespace), err);
		if (r < 0)
			return r;
		if (r)
			items[n++] = (struct dated){ val_int(*one, createdAt), place, *one };
		place++;
	}
	*ret_list = finish(c, items, n);
	return 0;
}

int crictl_ids(struct crictl *c, int (*list)(struct crictl *c, struct val *ret_list, struct err *err), struct val *ret,
	       struct err *err)
{
	struct val_builder b = val_builder(&c->arena);
	struct val found;
	int r;

	for (size_t i = 0; i < c->n; i++)
		val_add_item(&b, VAL_STR(str_of(c->arguments[i])));
	if (!c->n) {
		if ((r = list(c, &found, err)) < 0)
			return r;
		VAL_EACH(one, found)
			val_add_item(&b, val_get(*one, id));
	}
	*ret = val_end_list(&b);
	return val_len(*ret) ? 0 : err_set(err, ERR_NOT_FOUND, "No IDs provided or nothing found per filter");
}
