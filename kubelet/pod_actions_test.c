#include "kubelet/pod_actions.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/test.h"
#include "codec/atoms.h"
#include "kubelet/pod_fake.h"

/* "kill create#1 start:c#0 stop:c0(message) resize:c reset:c0 again:15": actions in a few words. */
static str show(struct arena *a, struct val pod, const struct pod_actions *x)
{
	static const atom lists[] = { [LIST_INIT_CONTAINERS] = A_initContainers, [LIST_CONTAINERS] = A_containers,
				      [LIST_EPHEMERAL] = A_ephemeralContainers };
	CLEANUP(buf_done) struct buf b = BUF_INIT(65536);

	if (x->kill_pod)
		buf_add(&b, STR(" kill"));
	if (x->create_sandbox)
		buf_addf(&b, " create#%u", x->attempt);
	for (size_t i = 0; i < x->n_kills; i++)
		buf_addf(&b, " stop:" STR_FMT "(" STR_FMT ")", STR_ARG(x->kills[i].id), STR_ARG(x->kills[i].message));
	for (size_t i = 0; i < x->n_resets; i++)
		buf_addf(&b, " reset:" STR_FMT, STR_ARG(x->resets[i].id));
	for (size_t i = 0; i < x->n_starts; i++) {
		struct val list = val_member(val_get(pod, spec), lists[x->starts[i].list]);
		str name = val_str(val_at(list, x->starts[i].index), name);
		buf_addf(&b, " start:" STR_FMT "#%u", STR_ARG(name), x->starts[i].attempt);
	}
	for (size_t i = 0; i < x->n_resizes; i++) {
		struct val list = val_member(val_get(pod, spec), lists[x->resizes[i].list]);
		buf_addf(&b, " resize:" STR_FMT, STR_ARG(val_str(val_at(list, x->resizes[i].index), name)));
	}
	if (x->again_ns != INT64_MAX)
		buf_addf(&b, " again:%d", (int)(x->again_ns / NS_PER_S));
	return str_skip(arena_str(a, buf_str(&b)), 1);
}

struct row {
	const char *spec, *sandboxes, *containers, *notes;
	const char *failed; /* name of a container whose liveness ("c") or startup ("c!") probe said no */
	const char *want;
};

static void check(size_t i, const struct row *r, bool deleted)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct container_note notes[FAKE_NOTES_MAX];
	struct probe_failure failed = { STR_NONE, KILL_LIVENESS };
	struct pod_view v = { .pod = fake_pod(&a, r->spec), .notes = notes, .now_ns = 10 * NS_PER_S, .volumes_mounted = true };
	struct pod_actions got;

	if (deleted)
		v.pod = val_with(&a, v.pod, VAL_LIT("2026-01-01T00:00:00Z"), metadata, deletionTimestamp);
	v.sandboxes = fake_sandboxes(&a, r->sandboxes);
	v.containers = fake_containers(&a, v.pod, r->containers);
	v.n_notes = fake_notes(&a, r->notes ? r->notes : "", notes);
	if (r->failed) {
		failed.container = str_of(r->failed);
		if (str_ends(failed.container, STR("!"))) {
			failed.reason = KILL_STARTUP;
			failed.container.n--;
		}
	}
	pod_actions_compute(&a, &v, &failed, r->failed != NULL, &got);
	CHECK_STR_ROW(i, show(&a, v.pod, &got), r->want);
}

#define ONE(policy) "{\"restartPolicy\":\"" policy "\",\"containers\":[{\"name\":\"c\",\"image\":\"i:1\"}]}"
#define TWO(policy) \
	"{\"restartPolicy\":\"" policy "\",\"containers\":[{\"name\":\"c\",\"image\":\"i:1\"}," \
	"{\"name\":\"d\",\"image\":\"i:1\"}]}"

TEST(pod_actions_of_containers)
{
	static const struct row rows[] = {
		/* the beginning */
		{ ONE("Always"), "", "", NULL, NULL, "kill create#0 start:c#0" },
		{ TWO("Always"), "ready#0", "", NULL, NULL, "start:c#0 start:d#0" },
		{ TWO("Always"), "ready#0", "c:run#0 d:run#0", NULL, NULL, "" },
		{ TWO("Always"), "ready#0", "c:run#0", NULL, NULL, "start:d#0" },
		/* restart policies */
		{ ONE("Always"), "ready#0", "c:exit0#0", NULL, NULL, "start:c#1" },
		{ ONE("Always"), "ready#0", "c:exit3#4 c:exit3#3", NULL, NULL, "start:c#5" },
		{ ONE("OnFailure"), "ready#0", "c:exit1#0", NULL, NULL, "start:c#1" },
		{ ONE("OnFailure"), "ready#0", "c:exit0#0", NULL, NULL, "kill" },
		{ ONE("Never"), "ready#0", "c:exit1#0", NULL, NULL, "kill" },
		{ TWO("Never"), "ready#0", "c:exit1#0 d:run#0", NULL, NULL, "" },
		{ TWO("OnFailure"), "ready#0", "c:exit0#0 d:exit2#1", NULL, NULL, "start:d#2" },
		{ ONE("Never"), "ready#0", "c:made#0", NULL, NULL, "start:c#1" },
		{ ONE("Never"), "ready#0", "c:lost#0", NULL, NULL,
		  "stop:c0(Container is in \"unknown\" state, try killing it before restart) start:c#1" },
		/* back-off */
		{ ONE("Always"), "ready#0", "c:exit3#1", "c@15", NULL, "again:15" },
		{ ONE("Always"), "ready#0", "c:exit3#1", "c@10", NULL, "start:c#2" },
		{ TWO("Always"), "ready#0", "c:exit3#1 d:exit3#0", "c@15", NULL, "start:d#1 again:15" },
		/* probes, and a changed definition */
		{ ONE("Always"), "ready#0", "c:run#0", NULL, "c",
		  "stop:c0(Container c failed liveness probe, will be restarted) start:c#1" },
		{ ONE("OnFailure"), "ready#0", "c:run#0", NULL, "c!",
		  "stop:c0(Container c failed startup probe, will be restarted) start:c#1" },
		{ TWO("Never"), "ready#0", "c:run#0 d:run#0", NULL, "c", "stop:c0(Container c failed liveness probe)" },
		{ TWO("Always"), "ready#0", "c:run#0 d:run#0", NULL, "d",
		  "stop:d0(Container d failed liveness probe, will be restarted) start:d#1" },
		{ ONE("Never"), "ready#0", "c:run!#0", NULL, NULL,
		  "stop:c0(Container c definition changed, will be restarted) start:c#1" },
		/* the sandbox */
		{ ONE("Always"), "gone#0", "c:exit0#0", NULL, NULL, "kill create#1 start:c#1" },
		{ ONE("Never"), "gone#0", "c:exit0#0", NULL, NULL, "kill" },
		{ ONE("Never"), "gone#0", "", NULL, NULL, "kill create#1 start:c#0" },
		{ TWO("OnFailure"), "gone#0", "c:exit0#0 d:exit1#0", NULL, NULL, "kill create#1 start:d#1" },
		{ TWO("OnFailure"), "gone#0", "c:exit0#0 d:exit0#0", NULL, NULL, "kill" },
		{ ONE("Always"), "ready#3 ready#2", "c:run#0", NULL, NULL, "kill create#4 start:c#1" },
		{ ONE("Always"), "bare#0", "c:run#0", NULL, NULL, "kill create#1 start:c#1" },
		{ ONE("Always"), "host#0", "c:run#0", NULL, NULL, "kill create#1 start:c#1" },
		{ "{\"hostNetwork\":true,\"containers\":[{\"name\":\"c\"}]}", "host#0", "c:run#0", NULL, NULL, "" },
		/* ephemeral containers start whenever there is a sandbox, and once */
		{ "{\"containers\":[{\"name\":\"c\"}],\"ephemeralContainers\":[{\"name\":\"e\"},{\"name\":\"f\"}]}", "ready#0",
		  "c:run#0 e:exit1#0", NULL, NULL, "start:f#0" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check(i, &rows[i], false);
}

#define RULED(pod, own, action) \
	"{\"restartPolicy\":\"" pod "\",\"containers\":[{\"name\":\"c\",\"restartPolicy\":\"" own "\",\"restartPolicyRules\":" \
	"[{\"action\":\"" action "\",\"exitCodes\":{\"operator\":\"In\",\"values\":[42]}}]},{\"name\":\"d\"}]," \
	"\"initContainers\":[{\"name\":\"i\"}]}"
#define OWN(pod, own) "{\"restartPolicy\":\"" pod "\",\"containers\":[{\"name\":\"c\",\"restartPolicy\":\"" own "\"}]}"

TEST(pod_actions_by_the_container_s_own_rules)
{
	static const struct row rows[] = {
		{ RULED("Never", "Never", "Restart"), "ready#0", "i:exit0#0 c:exit42#0 d:run#0", NULL, NULL, "start:c#1" },
		{ RULED("Never", "Never", "Restart"), "ready#0", "i:exit0#0 c:exit1#0 d:run#0", NULL, NULL, "" },
		{ OWN("Never", "Always"), "ready#0", "c:exit0#0", NULL, NULL, "start:c#1" },
		{ OWN("Always", "Never"), "ready#0", "c:exit1#0", NULL, NULL, "kill" },
		{ OWN("Always", "OnFailure"), "ready#0", "c:exit0#0", NULL, NULL, "kill" },
		{ OWN("Always", "Never"), "ready#0", "c:run#0", NULL, "c", "kill stop:c0(Container c failed liveness probe)" },
		/* the one whose end began it goes last */
		{ RULED("Always", "Never", "RestartAllContainers"), "ready#0", "i:exit0#0 c:exit42#0 d:run#0", NULL, NULL,
		  "reset:d0 reset:i0 reset:c0" },
		{ RULED("Always", "Never", "RestartAllContainers"), "ready#0", "", NULL, NULL, "start:i#0" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check(i, &rows[i], false);
}

#define INIT(policy) \
	"{\"restartPolicy\":\"" policy "\",\"initContainers\":[{\"name\":\"i\"},{\"name\":\"j\"}]," \
	"\"containers\":[{\"name\":\"c\"}]}"
/* s1 and s2 stay; i does not. */
#define SIDECARS(policy)                                                                                                 \
	"{\"restartPolicy\":\"" policy "\",\"initContainers\":[{\"name\":\"s1\",\"restartPolicy\":\"Always\"},{\"name\":\"i\"}," \
	"{\"name\":\"s2\",\"restartPolicy\":\"Always\"}],\"containers\":[{\"name\":\"c\"}]}"
#define PROBED                                                                                                           \
	"{\"initContainers\":[{\"name\":\"s\",\"restartPolicy\":\"Always\",\"startupProbe\":{\"exec\":{\"command\":[\"x\"]}}}]," \
	"\"containers\":[{\"name\":\"c\"}]}"

TEST(pod_actions_of_init_containers)
{
	static const struct row rows[] = {
		{ INIT("Always"), "", "", NULL, NULL, "kill create#0 start:i#0" },
		{ INIT("Always"), "ready#0", "", NULL, NULL, "start:i#0" },
		{ INIT("Always"), "ready#0", "i:run#0", NULL, NULL, "" },
		{ INIT("Always"), "ready#0", "i:exit0#0", NULL, NULL, "start:j#0" },
		{ INIT("Always"), "ready#0", "i:exit1#0", NULL, NULL, "start:i#1" },
		{ INIT("Always"), "ready#0", "i:exit1#0", "i@20", NULL, "again:20" },
		{ INIT("Always"), "ready#0", "i:oom#0", NULL, NULL, "start:i#1" },
		{ INIT("Always"), "ready#0", "i:made#0", NULL, NULL, "start:i#1" },
		{ INIT("Never"), "ready#0", "i:exit7#0", NULL, NULL, "kill" },
		{ INIT("OnFailure"), "ready#0", "i:exit0#0 j:exit7#0", NULL, NULL, "start:j#1" },
		{ INIT("Always"), "ready#0", "i:exit0#0 j:exit0#0", NULL, NULL, "start:c#0" },
		/* those that are done may be gone */
		{ INIT("Always"), "ready#0", "j:exit0#0", NULL, NULL, "start:c#0" },
		{ INIT("Always"), "ready#0", "c:run#0", NULL, NULL, "" },
		{ INIT("Always"), "ready#0", "i:lost#0", NULL, NULL,
		  "stop:i0(Init container is in \"unknown\" state, try killing it before restart) start:i#1" },
		{ INIT("Never"), "ready#0", "i:lost#0", NULL, NULL, "kill" },
		/* after a new sandbox they run again */
		{ INIT("Always"), "gone#0", "i:exit0#0 j:exit0#0 c:exit0#0", NULL, NULL, "kill create#1 start:i#1" },
		{ INIT("Always"), "ready#1", "c:exit0#0", NULL, NULL, "start:i#0" },
		/* sidecars: each begins when those before have started or ended */
		{ SIDECARS("Always"), "ready#0", "", NULL, NULL, "start:s1#0" },
		{ SIDECARS("Always"), "ready#0", "s1:run#0", NULL, NULL, "start:i#0" },
		{ SIDECARS("Always"), "ready#0", "s1:run#0 i:run#0", NULL, NULL, "" },
		{ SIDECARS("Always"), "ready#0", "s1:run#0 i:exit0#0", NULL, NULL, "start:s2#0" },
		{ SIDECARS("Always"), "ready#0", "s1:exit1#0 i:exit0#0", NULL, NULL, "start:s1#1 start:s2#0" },
		{ SIDECARS("Always"), "ready#0", "s1:exit1#0 i:exit0#0", "s1@20", NULL, "start:s2#0 again:20" },
		{ SIDECARS("Always"), "ready#0", "s1:run#0 i:exit1#0", "i@20", NULL, "again:20" },
		{ SIDECARS("Always"), "ready#0", "s1:run#0 i:exit0#0 s2:run#0", NULL, NULL, "start:c#0" },
		/* they come back while containers run, also those that were removed, and do not keep a pod alive */
		{ SIDECARS("Never"), "ready#0", "s1:exit0#0 i:exit0#0 s2:run#0 c:run#0", NULL, NULL, "start:s1#1" },
		{ SIDECARS("Never"), "ready#0", "s2:run#0 c:run#0", NULL, NULL, "start:s1#0" },
		{ SIDECARS("Never"), "ready#0", "s1:exit0#2 i:exit0#0 s2:run#0 c:exit0#0", NULL, NULL, "kill" },
		{ SIDECARS("Always"), "ready#0", "s1:run#0 i:exit0#0 s2:run#0 c:run#0", NULL, "s2",
		  "stop:s20(Init container s2 failed liveness probe) start:s2#1" },
		{ SIDECARS("Always"), "ready#0", "s1:run!#0 i:exit0#0 s2:run#0 c:run#0", NULL, NULL,
		  "stop:s10(Init container s1 definition changed) start:s1#1" },
		/* a startup probe gates what follows */
		{ PROBED, "ready#0", "s:run#0", NULL, NULL, "" },
		{ PROBED, "ready#0", "s:run#0", "s+started", NULL, "start:c#0" },
		{ PROBED, "ready#0", "s:run#0", NULL, "s!", "stop:s0(Init container s failed startup probe) start:s#1" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check(i, &rows[i], false);
}

TEST(pod_actions_of_a_deleted_pod_start_nothing)
{
	static const struct row rows[] = {
		{ ONE("Always"), "ready#0", "c:exit0#0", NULL, NULL, "kill" },
		{ INIT("Always"), "ready#0", "i:exit1#0", NULL, NULL, "kill" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check(i, &rows[i], true);
}

TEST(pod_actions_while_terminating_or_without_volumes)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct pod_view v = { .pod = fake_pod(&a, ONE("Always")), .sandboxes = fake_sandboxes(&a,
	       "ready#0"), .terminating = true };
	struct pod_actions got;

	pod_actions_compute(&a, &v, NULL, 0, &got);
	CHECK_STR(show(&a, v.pod, &got), "kill");
	v.sandboxes = fake_sandboxes(&a, "gone#0");
	v.containers = fake_containers(&a, v.pod, "c:exit0#0");
	pod_actions_compute(&a, &v, NULL, 0, &got);
	CHECK_STR(show(&a, v.pod, &got), "");
	v.terminating = false;
	pod_actions_compute(&a, &v, NULL, 0, &got);
	CHECK_STR(show(&a, v.pod, &got), "");
}

/* A restart of the machine: the runtime knows nothing, the API server knows what ran. */
TEST(pod_actions_count_what_the_runtime_forgot)
{
	static const struct { const char *status, *want; } rows[] = {
		{ "{\"containerStatuses\":[{\"name\":\"c\",\"restartCount\":2,\"state\":{\"running\":{}}}]}",
		  "kill create#0 start:c#3" },
		{ "{\"containerStatuses\":[{\"name\":\"c\",\"restartCount\":3,\"state\":{\"waiting\":{}},"
		  "\"lastState\":{\"terminated\":{}}}]}",
		  "kill create#0 start:c#3" },
		{ "{\"containerStatuses\":[{\"name\":\"c\",\"restartCount\":3,\"state\":{\"waiting\":{}},"
		  "\"lastState\":{\"terminated\":{\"containerID\":\"r://1\"}}}]}", "kill create#0 start:c#4" },
		{ "{\"containerStatuses\":[{\"name\":\"c\",\"state\":{\"waiting\":{}}}]}", "kill create#0 start:c#0" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct pod_view v = { .pod = fake_pod(&a, ONE("Always")), .volumes_mounted = true };
		str text = arena_printf(&a, ONE("Always") ",\"status\":%s", rows[i].status);
		struct pod_actions got;

		v.pod = fake_pod(&a, text.p);
		pod_actions_compute(&a, &v, NULL, 0, &got);
		CHECK_STR_ROW(i, show(&a, v.pod, &got), rows[i].want);
	}
}

#define SIZED(name, cpu, policy) \
	"{\"name\":\"" name "\",\"image\":\"i:1\",\"resources\":{\"requests\":{\"cpu\":\"" cpu "\"}," \
	"\"limits\":{\"cpu\":\"" cpu "\"}}," \
	"\"resizePolicy\":[{\"resourceName\":\"cpu\",\"restartPolicy\":\"" policy "\"}]}"
#define RESIZED(policy) \
	"{\"containers\":[" SIZED("c", "200m", policy) "," SIZED("d", "50m", policy) "," SIZED("e", "100m", policy) "]}"

TEST(pod_actions_resize)
{
	static const struct { const char *spec, *want; } rows[] = {
		{ RESIZED("NotRequired"), "resize:d resize:c" }, /* what shrinks comes first */
		{ RESIZED("RestartContainer"),
		  "stop:c0(Container c resize requires restart) stop:d0(Container d resize requires restart) start:c#1 start:d#1" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct pod_view v = { .pod = fake_pod(&a, rows[i].spec), .sandboxes = fake_sandboxes(&a,
		  "ready#0"), .volumes_mounted = true };
		struct val given = val_get(val_at(val_get(v.pod, spec, containers), 2), resources);
		struct container_note notes[] = { { .name = STR("c"), .actuated = given }, { .name = STR("d"), .actuated = given },
						  { .name = STR("e"), .actuated = given } };
		struct pod_actions got;

		v.containers = fake_containers(&a, v.pod, "c:run#0 d:run#0 e:run#0");
		pod_actions_compute(&a, &v, NULL, 0, &got);
		CHECK_STR_ROW(i, show(&a, v.pod, &got), ""); /* all have what the spec says */
		v.notes = notes;
		v.n_notes = ARRAY_LEN(notes);
		pod_actions_compute(&a, &v, NULL, 0, &got);
		CHECK_STR_ROW(i, show(&a, v.pod, &got), rows[i].want);
	}
}

TEST(crash_backoff)
{
	static const int waits[] = { 0, 10, 20, 40, 80, 160, 300, 300 };
	static const int64_t MOST = 300 * NS_PER_S, LITTLE = 2 * NS_PER_S;
	struct crash_backoff b = { 0 }, quick = { 0 };
	int64_t now = 1000 * NS_PER_S;

	for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
		int64_t wait = crash_backoff_next(&b, now - NS_PER_S, now, MOST);
		CHECK_INT(wait / NS_PER_S, waits[i]);
		now += wait + 2 * NS_PER_S;
	}
	/* One that never came to run has no start. */
	CHECK_INT(crash_backoff_next(&b, 0, now, MOST) / NS_PER_S, 300);
	/* 600 s are not yet enough; more are. */
	now = b.last_ns + 600 * NS_PER_S;
	CHECK_INT(crash_backoff_next(&b, now - 600 * NS_PER_S, now, MOST) / NS_PER_S, 300);
	now = b.last_ns + 601 * NS_PER_S;
	CHECK_INT(crash_backoff_next(&b, now - 601 * NS_PER_S, now, MOST), 0);
	CHECK_INT(crash_backoff_next(&b, now, now + NS_PER_S, MOST) / NS_PER_S, 10);
	/* As little as is asked for. */
	CHECK_INT(crash_backoff_next(&quick, now, now + NS_PER_S, LITTLE), 0);
	CHECK_INT(crash_backoff_next(&quick, now + NS_PER_S, now + 2 * NS_PER_S, LITTLE), LITTLE);
	CHECK_INT(crash_backoff_next(&quick, now + 4 * NS_PER_S, now + 5 * NS_PER_S, LITTLE), LITTLE);
}
