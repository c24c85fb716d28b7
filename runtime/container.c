/* Containers: finding, keeping, telling. */
#include "runtime/container.h"

#include <stdlib.h>

#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "runtime/signals.h"
#include "runtime/store.h"

/* ---- life ---- */

static char *text_or_null(str s)
{
	if (!s.n)
		return NULL;
	char *p = mem_alloc(s.n + 1);
	memcpy(p, s.p, s.n);
	p[s.n] = '\0';
	return p;
}

struct container *container_new(struct sandbox *s, struct val record)
{
	struct container *c = mem_zalloc(sizeof *c);
	str id = val_str(record, id);

	*c = (struct container){ .runtime = s->runtime, .sandbox = sandbox_ref(s), .refs = 1, .record = val_freeze(record),
				 .created_ns = val_int(record, createdAt), .started_ns = val_int(record, startedAt),
				 .finished_ns = val_int(record, finishedAt), .exit_code = (int)val_int(record, exitCode),
				 .pid = (pid_t)val_int(record, pid), .reason = text_or_null(val_str(record, reason)),
				 .message = text_or_null(val_str(record, message)),
				 .made = str_eq(val_str(record, state), STR("made")) };
	c->cleared = c->finished_ns != 0;
	memcpy(c->id, id.p, MIN(id.n, (size_t)RUNTIME_ID));
	fiber_cond_init(&c->changed, "a change of a container");
	turn_init(&c->saving, "a container's record");
	return c;
}

struct container *container_ref(struct container *c)
{
	c->refs++;
	return c;
}

void container_unref(struct container *c)
{
	if (!c || --c->refs)
		return;
	frozen_unref(c->record);
	frozen_unref(c->resources);
	free(c->reason);
	free(c->message);
	sandbox_unref(c->sandbox);
	free(c);
}

void container_unrefp(struct container **c) { container_unref(*c); }

void container_add(struct container *c)
{
	struct runtime *r = c->runtime;

	list_add(&r->containers, &c->link);
	list_add(&c->sandbox->containers, &c->in_sandbox);
	(void)map_put(&r->container_ids, str_of(c->id), container_ref(c));
}

void container_forget(struct container *c)
{
	list_remove(&c->link);
	list_remove(&c->in_sandbox);
	if (map_remove(&c->runtime->container_ids, str_of(c->id)))
		container_unref(c);
}

int container_find(struct runtime *r, str id, struct container **ret, struct err *err)
{
	struct container *found = map_get(&r->container_ids, id);
	unsigned n = found != NULL;

	if (!found && id.n)
		LIST_EACH(struct container, c, &r->containers, link)
			if (str_starts(str_of(c->id), id)) {
				found = c;
				n++;
			}
	if (n != 1)
		return err_set(err, ERR_NOT_FOUND, "not found");
	*ret = container_ref(found);
	return 0;
}

static struct val text_value(const char *s) { return s ? VAL_STR(str_of(s)) : VAL_EMPTY; }

int container_save(struct container *c, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	SHIELD_SCOPE();

	(void)turn_take(&c->saving, NULL);
	/* a start that is under way may have happened, for whoever reads this after a loss of power */
	int64_t started_ns = c->started_ns ? c->started_ns : c->starting_ns;
	bool keep = c->made && !c->removing && (started_ns || c->finished_ns);
	struct val v = container_record(c);
	v = val_with(&a, v, c->removing ? VAL_LIT("removing") : c->made ? VAL_LIT("made") : VAL_LIT("creating"), state);
	v = val_with(&a, v, val_of_int(started_ns), startedAt);
	v = val_with(&a, v, val_of_int(c->finished_ns), finishedAt);
	v = val_with(&a, v, val_of_int(c->exit_code), exitCode);
	v = val_with(&a, v, val_of_int(c->pid), pid);
	v = val_with(&a, v, text_value(c->reason), reason);
	v = val_with(&a, v, text_value(c->message), message);
	v = val_with(&a, v, container_resources(c), resources);
	int r = store_write(container_folder(c, &a), "container.json", v, TYPE(runtimestore_v1, Container), keep, err);
	turn_give(&c->saving);
	return r;
}

/* ---- telling ---- */

struct val container_config(const struct container *c) { return val_get(container_record(c), config); }

const char *container_folder(const struct container *c, struct arena *a)
{
	return runtime_text(a, "%s/containers/%s", c->runtime->o.root, c->id);
}

enum container_state container_state(const struct container *c)
{
	if (c->unknown)
		return CONTAINER_UNKNOWN;
	if (c->finished_ns)
		return CONTAINER_EXITED;
	return c->started_ns ? CONTAINER_RUNNING : CONTAINER_CREATED;
}

const char *container_state_name(enum container_state state)
{
	static const char *const names[] = {
		[CONTAINER_CREATED] = "CONTAINER_CREATED", [CONTAINER_RUNNING] = "CONTAINER_RUNNING",
		[CONTAINER_EXITED] = "CONTAINER_EXITED", [CONTAINER_UNKNOWN] = "CONTAINER_UNKNOWN",
	};
	return names[state];
}

struct val container_resources(const struct container *c)
{
	return c->resources ? c->resources->val : val_get(container_record(c), resources);
}

/* The image by its name and by its digest, as they are now; what was known at the creation when the image has gone. */
static void image_names(struct container *c, struct arena *a, struct val *ret_spec, struct val *ret_ref)
{
	struct image image;
	struct val record = container_record(c);

	*ret_spec = val_get(container_config(c), image);
	*ret_ref = val_get(record, imageId);
	if (image_find(c->runtime->images, val_str(record, imageId), a, &image, NULL) == 0) {
		if (image.n_tags)
			*ret_spec = OBJECT(a, F(image, VAL_STR(image.tags[0])));
		if (image.n_digests)
			*ret_ref = VAL_STR(image.digests[0]);
		return;
	}
	if (val_str(record, imageName).n)
		*ret_spec = OBJECT(a, F(image, val_get(record, imageName)));
	if (val_str(record, imageRef).n)
		*ret_ref = val_get(record, imageRef);
}

static struct val reason_of(const struct container *c)
{
	if (c->reason || !c->finished_ns)
		return text_value(c->reason);
	return c->exit_code == 0 ? VAL_LIT("Completed") : VAL_LIT("Error");
}

static struct val stop_signal(const struct container *c)
{
	struct val wanted = val_get(container_config(c), stopSignal);
	str of_image = val_str(container_record(c), stopSignal);

	if (!val_is_nil(wanted) && !runtime_is(wanted, "RUNTIME_DEFAULT"))
		return wanted;
	const char *name = of_image.n ? signal_cri_name(signal_parse(of_image)) : NULL;
	return VAL_STR(str_of(name ? name : "SIGTERM"));
}

struct val container_status(struct container *c, struct arena *a)
{
	struct val config = container_config(c), record = container_record(c), spec, ref;

	image_names(c, a, &spec, &ref);
	return OBJECT(a, F(id, VAL_STR(str_of(c->id))), F(metadata, val_get(config, metadata)),
		      F(state, VAL_STR(str_of(container_state_name(container_state(c))))), F(createdAt, val_of_int(c->created_ns)),
		      F(startedAt, val_of_int(c->started_ns)), F(finishedAt, val_of_int(c->finished_ns)),
		      F(exitCode, val_of_int(c->exit_code)), F(image, spec), F(imageRef, ref),
		      F(imageId, val_get(record, imageId)), F(reason, reason_of(c)), F(message, text_value(c->message)),
		      F(labels, val_get(config, labels)), F(annotations, val_get(config, annotations)),
		      F(mounts, val_get(config, mounts)), F(logPath, val_get(record, logPath)),
		      F(resources, OBJECT(a, F(linux, container_resources(c)))),
		      F(user, OBJECT(a, F(linux, val_get(record, user)))), F(stopSignal, stop_signal(c)));
}

struct val container_summary(struct container *c, struct arena *a)
{
	struct val config = container_config(c), record = container_record(c);

	return OBJECT(a, F(id, VAL_STR(str_of(c->id))), F(podSandboxId, VAL_STR(str_of(c->sandbox->id))),
		      F(metadata, val_get(config, metadata)), F(image, val_get(config, image)),
		      F(imageRef, val_get(record, imageId)), F(imageId, val_get(record, imageId)),
		      F(state, VAL_STR(str_of(container_state_name(container_state(c))))), F(createdAt, val_of_int(c->created_ns)),
		      F(labels, val_get(config, labels)), F(annotations, val_get(config, annotations)));
}
