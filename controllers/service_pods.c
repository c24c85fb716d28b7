#include "controllers/service_pods.h"

#include <stdlib.h>

#include "base/mem.h"
#include "controllers/labels.h"
#include "controllers/pod_control.h"
#include "machinery/resources.h"

/* ---- selecting ---- */

bool service_has_selector(struct val service)
{
	return !str_eq(val_str(service, spec, type), STR("ExternalName")) && val_len(val_get(service, spec, selector));
}

static bool labels_match(struct val selector, struct val labels)
{
	if (!val_len(selector))
		return false;
	VAL_EACH_MEMBER(m, selector)
		if (!val_equal(val_member(labels, m->key), m->val))
			return false;
	return true;
}

bool service_selects(struct val service, struct val pod)
{
	return labels_match(val_get(service, spec, selector), val_get(pod, metadata, labels));
}

bool service_is_headless(struct val service)
{
	str ip = val_str(service, spec, clusterIP);
	return !ip.n || str_eq(ip, STR("None"));
}

struct val service_pods(struct controller *c, struct arena *a, struct val service, const struct informer *pods)
{
	struct val_builder list = val_builder(a);

	INFORMER_EACH(pod, informer_each_indexed(pods, "namespace", val_str(service, metadata, namespace)))
		if (service_selects(service, pod->val))
			val_add_item(&list, controller_hold(c, a, pod));
	return val_end_list(&list);
}

/* Whether anything changed that an endpoint or its choice is made of. */
static bool endpoint_differs(struct val old, struct val pod)
{
	return pod_has_endpoint(old, true) != pod_has_endpoint(pod, true) ||
	       val_has(old, metadata, deletionTimestamp) != val_has(pod, metadata, deletionTimestamp) || pod_is_ready(old) != pod_is_ready(pod) ||
	       !val_equal(val_get(old, status, podIPs), val_get(pod, status, podIPs)) ||
	       !str_eq(val_str(old, spec, nodeName), val_str(pod, spec, nodeName)) ||
	       !str_eq(val_str(old, metadata, uid), val_str(pod, metadata, uid));
}

void service_pods_add_keys(struct controller *c, const struct informer *services, const struct frozen *old, const struct frozen *pod)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val before = old ? old->val : VAL_EMPTY, now = pod ? pod->val : VAL_EMPTY;
	bool moved = !old || !pod || !val_equal(val_get(before, metadata, labels), val_get(now, metadata, labels));

	if (!moved && !endpoint_differs(before, now))
		return;
	INFORMER_EACH(service, informer_each_indexed(services, "namespace", val_str(pod ? now : before, metadata, namespace))) {
		bool was = old && service_selects(service->val, before), is = pod && service_selects(service->val, now);
		if (was != is || (is && (!old || endpoint_differs(before, now))))
			controller_add(c, object_key(&a, service->val));
	}
}

/* ---- endpoints ---- */

bool pod_has_endpoint(struct val pod, bool with_terminating)
{
	str phase = val_str(pod, status, phase);

	if (str_eq(phase, STR("Failed")) || str_eq(phase, STR("Succeeded")))
		return false;
	if (!val_str(pod, status, podIP).n && !val_len(val_get(pod, status, podIPs)))
		return false;
	return with_terminating || !val_has(pod, metadata, deletionTimestamp);
}

bool pod_has_hostname(struct val pod, struct val service)
{
	return val_str(pod, spec, hostname).n && str_eq(val_str(pod, spec, subdomain), val_str(service, metadata, name)) &&
	       str_eq(val_str(pod, metadata, namespace), val_str(service, metadata, namespace));
}

static int64_t named_port(struct val container, str name, str protocol)
{
	VAL_EACH(p, val_get(container, ports))
		if (str_eq(val_str(*p, name), name) && str_eq(val_str(*p, protocol), protocol))
			return val_int(*p, containerPort);
	return 0;
}

int64_t pod_service_port(struct val pod, struct val service_port)
{
	struct val target = val_get(service_port, targetPort);
	str protocol = val_str(service_port, protocol);
	int64_t n;

	if (!val_is(target, VAL_STRING))
		return val_as_int(target);
	VAL_EACH(c, val_get(pod, spec, containers))
		if ((n = named_port(*c, val_as_str(target), protocol)))
			return n;
	VAL_EACH(c, val_get(pod, spec, initContainers))
		if (container_is_sidecar(*c) && (n = named_port(*c, val_as_str(target), protocol)))
			return n;
	return 0;
}

/* ---- when it changed ---- */

/* Of what was seen the members are names of pods, in order, after the service's own time under "". Texts of times compare as they are. */
struct triggers {
	const struct member *at, *end;
	str oldest;
};

static void consider(struct triggers *t, str name, str time)
{
	str known = STR_NONE;

	while (t->at < t->end && str_cmp(atom_str(t->at->key), name) < 0)
		t->at++;
	if (t->at < t->end && str_eq(atom_str(t->at->key), name))
		known = val_as_str(t->at->val);
	if (str_cmp(time, known) > 0 && (!t->oldest.n || str_cmp(time, t->oldest) < 0))
		t->oldest = time;
}

str trigger_time(struct arena *a, struct val before, struct val service, struct val pods, struct val *ret_seen)
{
	struct val_builder seen = val_builder(a);
	struct triggers t = { 0 };
	struct val created = val_get(service, metadata, creationTimestamp);

	if (val_is(before, VAL_OBJECT)) {
		t.at = before.members;
		t.end = before.members + before.n;
	}
	consider(&t, STR(""), val_as_str(created));
	val_add_member(&seen, atom_make(a, STR("")), created);
	VAL_EACH(pod, pods) {
		struct val changed = val_get(pod_condition(*pod, "Ready"), lastTransitionTime);
		if (!val_as_str(changed).n)
			continue;
		consider(&t, val_str(*pod, metadata, name), val_as_str(changed));
		val_add_member(&seen, atom_make(a, val_str(*pod, metadata, name)), changed);
	}
	*ret_seen = val_end_object(&seen);
	return val_exists(before) ? t.oldest : val_as_str(created);
}

struct seen {
	struct frozen *times;
	size_t n;
	char key[];
};

static void seen_free(struct seen *s)
{
	frozen_unref(s->times);
	free(s);
}

str trigger_times_next(struct trigger_times *t, struct arena *a, str service_key, struct val service, struct val pods)
{
	struct seen *s = map_get(&t->by_service, service_key);
	struct val now;
	str time = trigger_time(a, s ? s->times->val : VAL_EMPTY, service, pods, &now);

	time = arena_str(a, time);
	if (!s) {
		s = mem_zalloc(sizeof *s + service_key.n);
		s->n = service_key.n;
		memcpy(s->key, service_key.p, service_key.n);
		(void)map_put(&t->by_service, str_span(s->key, s->n), s);
	}
	frozen_unref(s->times);
	s->times = val_freeze(now);
	return time;
}

void trigger_times_forget(struct trigger_times *t, str service_key)
{
	struct seen *s = map_remove(&t->by_service, service_key);

	if (s)
		seen_free(s);
}

void trigger_times_done(struct trigger_times *t)
{
	struct map_iter it = map_iter(&t->by_service);
	struct seen *s;

	while ((s = map_next(&it, NULL)))
		seen_free(s);
	map_done(&t->by_service);
}
