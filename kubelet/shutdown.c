/*
 * While an inhibitor of mode "delay" is held, logind tells everybody before the machine goes down (PrepareForShutdown true) and waits until
 * the inhibitor is given back, for InhibitDelayMaxSec at most. In that time pods end, those of the lowest priority first, each group for its
 * own time. A shutdown that is called off (false) takes a new inhibitor.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/file.h"
#include "base/log.h"
#include "codec/atoms.h"
#include "codec/time.h"
#include "kubelet/dbus.h"
#include "kubelet/register_priv.h"

enum { RECONNECT_MS = 1000, RECONNECT_MAX_MS = 60 * 1000, POLLS = 5, FIRST_POLL_MS = 100, CRITICAL_PRIORITY = 2000000000 };

static const char login[] = "org.freedesktop.login1", login_path[] = "/org/freedesktop/login1", manager[] = "org.freedesktop.login1.Manager";

struct group {
	int64_t priority, grace_s;
};

struct shutdown {
	const struct shutdown_options *o;
	struct group *groups;         /* the lowest priority first */
	size_t n_groups;
	struct dbus *bus;
	int lock;                     /* the inhibitor; -1: none */
	struct arena arena;
};

/* ---- groups ---- */

static int by_priority(const void *x, const void *y)
{
	const struct group *a = x, *b = y;
	return a->priority < b->priority ? -1 : a->priority > b->priority;
}

static void groups_make(struct shutdown *s)
{
	struct val list = val_get(s->o->config, shutdownGracePeriodByPodPriority);
	int64_t all = config_duration_ns(val_get(s->o->config, shutdownGracePeriod));
	int64_t critical = config_duration_ns(val_get(s->o->config, shutdownGracePeriodCriticalPods));

	s->groups = ARENA_ARRAY(&s->arena, struct group, val_len(list) + 2);
	VAL_EACH(g, list)
		s->groups[s->n_groups++] = (struct group){ val_int(*g, priority), val_int(*g, shutdownGracePeriodSeconds) };
	if (!val_len(list) && all > 0 && critical <= all) {
		s->groups[s->n_groups++] = (struct group){ 0, (all - critical) / NS_PER_S };
		s->groups[s->n_groups++] = (struct group){ CRITICAL_PRIORITY, critical / NS_PER_S };
	}
	qsort(s->groups, s->n_groups, sizeof(*s->groups), by_priority);
}

static int64_t whole_period_s(const struct shutdown *s)
{
	int64_t sum = 0;

	for (size_t i = 0; i < s->n_groups; i++)
		sum += s->groups[i].grace_s;
	return sum;
}

/* The last whose priority is not above the pod's; the first for those below all. */
static size_t group_of(const struct shutdown *s, struct val pod)
{
	int64_t priority = val_int(pod, spec, priority);
	size_t i = s->n_groups - 1;

	while (i > 0 && s->groups[i].priority > priority)
		i--;
	return i;
}

/* ---- ending pods ---- */

struct victim {
	const struct shutdown *s;
	struct val pod;
	int64_t grace_s;
};

static int evict_one(void *arg)
{
	static const char message[] = "Pod was terminated in response to imminent node shutdown.";
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct victim *v = arg;
	const struct shutdown_options *o = v->s->o;
	struct err err = ERR_INIT;
	str namespace = val_str(v->pod, metadata, namespace), name = val_str(v->pod, metadata, name);
	struct val condition = OBJECT(&a, F(type, VAL_LIT("DisruptionTarget")), F(status, VAL_LIT("True")),
				      F(reason, VAL_LIT("TerminationByKubelet")), F(message, val_of_str(str_of(message))));

	log_info("ends a pod before the machine goes down", KV("namespace", namespace), KV("pod", name), KV("grace", v->grace_s));
	int r = o->evict(o->arg, v->pod, STR("Terminated"), str_of(message), condition, v->grace_s, &err);
	if (r < 0 && r != -ERR_CANCELED)
		log_warn("the pod could not be ended", KV("namespace", namespace), KV("pod", name), KV("error", &err));
	return r;
}

/* (suspends) One group, for its time at most; who is not ready by then goes on beside the next group. */
static int end_group(struct shutdown *s, struct arena *a, struct val pods, size_t i, struct fiber_group *fibers, struct err *err)
{
	size_t n = 0;

	VAL_EACH(pod, pods) {
		struct val own = val_get(*pod, spec, terminationGracePeriodSeconds);
		if (group_of(s, *pod) != i)
			continue;
		struct victim *v = ARENA_NEW(a, struct victim);
		*v = (struct victim){ s, *pod, s->groups[i].grace_s };
		if (val_exists(own))
			v->grace_s = MIN(v->grace_s, val_as_int(own));
		if (fiber_group_spawn(fibers, evict_one, v, err, "shutdown") < 0)
			log_error("a pod cannot be ended", KV("error", err));
		n++;
	}
	if (n) {
		DEADLINE_SCOPE(s->groups[i].grace_s * 1000);
		if (fiber_group_wait(fibers, NULL) < 0)
			log_warn("not all pods have ended in time", KV("priority", s->groups[i].priority), KV("grace", s->groups[i].grace_s));
	}
	return fiber_check(err);
}

static str time_text(struct arena *a, int64_t wall_ns)
{
	char text[TIME_TEXT_MAX];
	struct timestamp t = { wall_ns / NS_PER_S, (int32_t)(wall_ns % NS_PER_S) };

	return wall_ns ? arena_str(a, microtime_format(t, text)) : STR("0001-01-01T00:00:00Z");
}

/* When it began and ended, for those who ask after the machine is back. end_ns 0: not yet. */
static void write_state(const struct shutdown *s, int64_t start_ns, int64_t end_ns)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;
	str start = time_text(&a, start_ns), end = time_text(&a, end_ns);
	str text = arena_printf(&a, "{\"startTime\":\"" STR_FMT "\",\"endTime\":\"" STR_FMT "\"}", STR_ARG(start), STR_ARG(end));

	if (file_write(arena_printf(&a, "%s/graceful_node_shutdown_state", s->o->root).p, text, 0644, &err) < 0)
		log_error("failed to store graceful shutdown state", KV("error", &err));
}

/* (suspends) */
static int end_pods(struct shutdown *s, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(fiber_group_done) struct fiber_group fibers;
	int64_t start_ns = clock_wall_ns();
	struct val pods = s->o->pods(s->o->arg, &a);
	int r = 0;

	fiber_group_init(&fibers);
	write_state(s, start_ns, 0);
	for (size_t i = 0; i < s->n_groups && r == 0; i++)
		r = end_group(s, &a, pods, i, &fibers, err);
	write_state(s, start_ns, clock_wall_ns());
	return r;
}

/* ---- logind ---- */

static void unlock(struct shutdown *s)
{
	if (s->lock >= 0)
		close(s->lock);
	s->lock = -1;
}

/* (suspends) A new inhibitor instead of the old one. */
static int lock(struct shutdown *s, struct err *err)
{
	const struct dbus_call c = {
		.destination = login, .path = login_path, .interface = manager, .member = "Inhibit",
		.texts = { "shutdown", "kubelet", "Kubelet needs time to handle node shutdown", "delay" },
	};
	struct dbus_message m;
	int fd = -1, r = dbus_call(s->bus, &c, &m, &fd, err);

	if (r == 0 && fd < 0)
		r = err_set(err, ERR_UNAVAILABLE, "logind sent no descriptor");
	if (r < 0)
		return err_wrap(err, r, "failed creating systemd inhibitor");
	unlock(s);
	s->lock = fd;
	return 0;
}

static const struct dbus_call get_delay = {
	.destination = login, .path = login_path, .interface = "org.freedesktop.DBus.Properties", .member = "Get",
	.texts = { manager, "InhibitDelayMaxUSec" },
};

/* (suspends) How long logind waits, in microseconds. */
static int current_delay(struct shutdown *s, uint64_t *ret_us, struct err *err)
{
	struct dbus_message m;
	int r = dbus_call(s->bus, &get_delay, &m, NULL, err);

	if (r < 0)
		return err_wrap(err, r, "failed reading InhibitDelayMaxUSec property from logind");
	struct dbus_reader reader = dbus_reader_of(&m);
	if (!dbus_read_variant(&reader) || !dbus_read_number(&reader, 't', ret_us))
		return err_set(err, ERR_UNAVAILABLE, "InhibitDelayMaxUSec from logind is not a uint64 as expected");
	return 0;
}

static int write_override(struct shutdown *s, int64_t period_s, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const char *folder = s->o->logind_folder ? s->o->logind_folder : "/etc/systemd/logind.conf.d";
	str text = arena_printf(&a, "# Kubelet logind override\n[Login]\nInhibitDelayMaxSec=%lld\n", (long long)period_s);
	int r = file_make_dirs(folder, 0755, err);

	if (r < 0)
		return err_wrap(err, r, "failed creating %s directory", folder);
	r = file_write(arena_printf(&a, "%s/99-kubelet.conf", folder).p, text, 0644, err);
	return r < 0 ? err_wrap(err, r, "failed writing logind shutdown inhibit override file") : 0;
}

/* (suspends) logind reads its configuration at SIGHUP. */
static int reload_logind(struct shutdown *s, struct err *err)
{
	const struct dbus_call c = {
		.destination = "org.freedesktop.systemd1", .path = "/org/freedesktop/systemd1", .interface = "org.freedesktop.systemd1.Manager",
		.member = "KillUnit", .texts = { "systemd-logind.service", "all" }, .has_number = true, .number = 1,
	};
	struct dbus_message m;
	int r = dbus_call(s->bus, &c, &m, NULL, err);

	return r < 0 ? err_wrap(err, r, "unable to reload logind conf") : 0;
}

/* (suspends) logind must wait for as long as we need. */
static int ensure_delay(struct shutdown *s, struct err *err)
{
	uint64_t wanted_us = (uint64_t)whole_period_s(s) * 1000000, us;
	int r = current_delay(s, &us, err);

	if (r < 0 || us >= wanted_us)
		return r;
	if ((r = write_override(s, whole_period_s(s), err)) < 0)
		return err_wrap(err, r, "unable to override inhibit delay by shutdown manager");
	if ((r = reload_logind(s, err)) < 0)
		return r;
	for (int i = 0, wait_ms = FIRST_POLL_MS; i < POLLS; i++, wait_ms *= 2) {
		if ((r = current_delay(s, &us, err)) < 0 || us >= wanted_us)
			return r;
		if (i + 1 < POLLS && (r = fiber_sleep_ms(wait_ms, err)) < 0)
			return r;
	}
	char want[DURATION_TEXT_MAX], is[DURATION_TEXT_MAX];
	str x = duration_format((int64_t)wanted_us * NS_PER_US, want), y = duration_format((int64_t)us * NS_PER_US, is);
	return err_set(err, ERR_TIMEOUT,
		       "node shutdown manager was timed out after %d attempts waiting for logind InhibitDelayMaxSec to update to " STR_FMT
		       " (ShutdownGracePeriod), current value is " STR_FMT, POLLS, STR_ARG(x), STR_ARG(y));
}

/* (suspends) Only logind itself is listened to: anybody may send signals of this name. */
static int subscribe(struct shutdown *s, struct err *err)
{
	static const char rule[] = "type='signal',sender='org.freedesktop.login1',path='/org/freedesktop/login1',"
				   "interface='org.freedesktop.login1.Manager',member='PrepareForShutdown'";
	const struct dbus_call c = {
		.destination = "org.freedesktop.DBus", .path = "/org/freedesktop/DBus", .interface = "org.freedesktop.DBus",
		.member = "AddMatch", .texts = { rule },
	};
	struct dbus_message m;
	int r = dbus_call(s->bus, &c, &m, NULL, err);

	return r < 0 ? err_wrap(err, r, "failed to monitor shutdown") : 0;
}

/* ---- the loop ---- */

static void tell(struct shutdown *s, bool down)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const char *what = down ? "Shutdown manager detected shutdown event" : "Shutdown manager detected shutdown cancellation";

	log_info(what);
	if (s->o->recorder)
		record(s->o->recorder, node_reference(&a, s->o->node_name), RECORD_NORMAL, "Shutdown", "%s", what);
	if (s->o->state)
		s->o->state(s->o->arg, down ? STR("node is shutting down") : STR(""));
}

/* (suspends) Signals that are sent to us alone pass all match rules: is this one from whoever answers as logind? */
static bool is_from_logind(struct shutdown *s, str sender)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct dbus_message m;

	sender = arena_str(&a, sender); /* borrowed until the call */
	return dbus_call(s->bus, &get_delay, &m, NULL, NULL) < 0 || str_eq(m.sender, sender);
}

/* (suspends) */
static int on_signal(struct shutdown *s, const struct dbus_message *m, struct err *err)
{
	struct dbus_reader reader = dbus_reader_of(m);
	uint64_t down;

	if (!str_eq(m->interface, str_of(manager)) || !str_eq(m->member, STR("PrepareForShutdown")))
		return 0;
	if (!dbus_read_number(&reader, 'b', &down)) {
		log_error("PrepareForShutdown was not bool type as expected, ignoring");
		return 0;
	}
	if (!is_from_logind(s, m->sender)) {
		log_warn("PrepareForShutdown was not sent by logind, ignoring");
		return 0;
	}
	int r = fiber_check(err);
	if (r < 0)
		return r;
	tell(s, down);
	if (!down)
		return lock(s, err);
	r = end_pods(s, err);
	unlock(s);
	log_info("pods have ended, the machine will go down shortly");
	return r;
}

/* (suspends) Until the connection breaks. ret_connected: it was there. */
static int serve(struct shutdown *s, bool *ret_connected, struct err *err)
{
	struct dbus_message m;
	int r = dbus_open(s->o->bus, &s->bus, err);

	if (r == 0)
		r = ensure_delay(s, err);
	if (r == 0)
		r = subscribe(s, err);
	if (r == 0)
		r = lock(s, err);
	*ret_connected = r == 0;
	while (r == 0 && (r = dbus_next_signal(s->bus, &m, err)) == 0)
		r = on_signal(s, &m, err);
	dbus_free(TAKE(s->bus));
	return r;
}

/* (suspends) */
static int reconnect_run(struct shutdown *s, struct err *err)
{
	for (int64_t wait_ms = RECONNECT_MS;; wait_ms = MIN(2 * wait_ms, (int64_t)RECONNECT_MAX_MS)) {
		struct err why = ERR_INIT;
		bool connected = false;
		(void)serve(s, &connected, &why);
		int r = fiber_check(err);
		if (r < 0)
			return r;
		if (connected)
			wait_ms = RECONNECT_MS;
		log_warn("the shutdown of the machine cannot be watched, will retry", KV("error", &why));
		if ((r = fiber_sleep_ms(wait_ms, err)) < 0)
			return r;
	}
}

int shutdown_run(const struct shutdown_options *o, struct err *err)
{
	struct shutdown s = { .o = o, .lock = -1 };

	groups_make(&s);
	int r = s.n_groups ? reconnect_run(&s, err) : 0;
	unlock(&s);
	arena_done(&s.arena);
	return r;
}
