/* The lives of pods, step by step, as the kubelet of 1.36.4 was seen to tell them; then single rules. */
#include "kubelet/pod_status.h"

#include "base/clock.h"
#include "base/test.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "codec/types.h"
#include "kubelet/pod_fake.h"

enum { DELETED = 1, ENDING = 2, ENDED = 4, OVERDUE = 8, EVICTED = 16, REJECTED = 32, STATIC = 64 };

struct step {
	const char *sandboxes, *containers, *notes;
	unsigned flags;
	const char *want;
};

static void set_flags(struct arena *a, struct pod_view *v, unsigned flags)
{
	if (flags & DELETED) {
		v->pod = val_with(a, v->pod, VAL_LIT("2026-01-01T00:00:00Z"), metadata, deletionTimestamp);
		v->pod = val_with(a, v->pod, val_of_int(2), metadata, generation);
	}
	if (flags & STATIC) {
		struct member source = { atom_make(a, STR("kubernetes.io/config.source")), VAL_LIT("file") };
		v->pod = val_with(a, v->pod, val_object(a, &source, 1), metadata, annotations);
	}
	if (flags & OVERDUE) {
		v->fail_reason = STR("DeadlineExceeded");
		v->fail_message = STR("late");
	}
	if (flags & (EVICTED | REJECTED)) {
		v->fail_reason = flags & EVICTED ? STR("Evicted") : STR("OutOfcpu");
		v->fail_message = STR("low");
		v->rejected = flags & REJECTED;
	}
	v->terminating = flags & (DELETED | ENDING | ENDED);
	v->terminated = flags & ENDED;
}

/* Each step begins with what the one before has told. */
static struct val live(struct arena *a, const char *spec, const struct step *steps, size_t n)
{
	struct val told = VAL_EMPTY;

	for (size_t i = 0; i < n; i++) {
		struct container_note notes[FAKE_NOTES_MAX];
		struct pod_view v = { .pod = fake_pod(a, spec), .status = told, .notes = notes,
				      .now_ns = (int64_t)(1000 + i) * NS_PER_S, .host_address = STR("192.0.2.1"),
				      .runtime_name = STR("rt"), .volumes_mounted = true };

		v.pod = val_with(a, v.pod, told, status);
		v.sandboxes = fake_sandboxes(a, steps[i].sandboxes);
		v.containers = fake_containers(a, v.pod, steps[i].containers);
		v.n_notes = fake_notes(a, steps[i].notes ? steps[i].notes : "", notes);
		set_flags(a, &v, steps[i].flags);
		told = pod_status_make(a, &v);
		CHECK_STR_ROW(i, fake_show(a, told), steps[i].want);
	}
	return told;
}

#define LIFE(spec, ...)                                                                 \
	do {                                                                            \
		CLEANUP(arena_done) struct arena a_ = ARENA_INIT;                       \
		static const struct step steps_[] = { __VA_ARGS__ };                    \
		live(&a_, spec, steps_, ARRAY_LEN(steps_));                             \
	} while (0)

#define ONE(policy) "{\"restartPolicy\":\"" policy "\",\"containers\":[{\"name\":\"c\",\"image\":\"i:1\"}]}"
#define UNREADY(names) "ready-(ContainersNotReady: containers with unready status: [" names "]) containers-"
#define BEGIN "Pending | sandbox- init+ " UNREADY("c") " scheduled+ | c waiting ContainerCreating"
#define WAIT "Pending | sandbox+ init+ " UNREADY("c") " scheduled+ | c waiting ContainerCreating"
#define RUN "Running | sandbox+ init+ ready+ containers+ scheduled+ | c running started ready"
#define DOWN "Running | sandbox+ init+ " UNREADY("c") " scheduled+ | c "

TEST(pod_status_plain_run_delete)
{
	LIFE(ONE("Always"), { "", "", NULL, 0, BEGIN }, { "ready#0", "", NULL, 0, WAIT },
	     { "ready#0", "c:run#0", NULL, 0, RUN },
	     { "ready#0", "c:run#0", NULL, DELETED, RUN },
	     { "gone#0", "c:exit137#0", NULL, DELETED | ENDED,
	       "Failed | sandbox- init+ ready-(PodFailed) containers- scheduled+ | c terminated 137 Error" });
}

TEST(pod_status_restart_never)
{
	LIFE(ONE("Never"), { "", "", NULL, 0, BEGIN }, { "ready#0", "c:run#0", NULL, 0, RUN },
	     { "ready#0", "c:exit0#0", NULL, 0,
	       "Running | sandbox+ init+(PodCompleted) ready- containers- scheduled+ | c terminated 0 Completed" },
	     { "gone#0", "c:exit0#0", NULL, ENDED,
	       "Succeeded | sandbox- init+(PodCompleted) ready- containers- scheduled+ | c terminated 0 Completed" });
	LIFE(ONE("Never"), { "ready#0", "c:run#0", NULL, 0, RUN },
	     { "ready#0", "c:exit2#0", NULL, 0, "Running | sandbox+ init+ ready-(PodFailed) containers- scheduled+"
	       " | c terminated 2 Error" },
	     { "gone#0", "c:exit2#0", NULL, ENDED, "Failed | sandbox- init+ ready-(PodFailed) containers- scheduled+"
	       " | c terminated 2 Error" });
}

TEST(pod_status_crash_loop)
{
	LIFE(ONE("Always"), { "", "", NULL, 0, BEGIN }, { "ready#0", "", NULL, 0, WAIT },
	     { "ready#0", "c:run#0", NULL, 0, RUN },
	     { "ready#0", "c:exit3#0", NULL, 0, DOWN "terminated 3 Error" },
	     { "ready#0", "c:run#1 c:exit3#0", NULL, 0,
	       "Running | sandbox+ init+ ready+ containers+ scheduled+ | c running last terminated 3 Error started ready #1" },
	     { "ready#0", "c:exit3#1 c:exit3#0", NULL, 0, DOWN "terminated 3 Error last terminated 3 Error #1" },
	     { "ready#0", "c:exit3#1 c:exit3#0", "c=CrashLoopBackOff", 0,
	       DOWN "waiting CrashLoopBackOff last terminated 3 Error #1" },
	     { "ready#0", "c:run#2 c:exit3#1", NULL, 0,
	       "Running | sandbox+ init+ ready+ containers+ scheduled+ | c running last terminated 3 Error started ready #2" },
	     /* deleted: it does not wait for anything any more */
	     { "ready#0", "c:exit3#2 c:exit3#1", "c=CrashLoopBackOff", DELETED,
	       DOWN "terminated 3 Error last terminated 3 Error #2" });
}

TEST(pod_status_image_and_config_errors)
{
	LIFE(ONE("Always"), { "ready#0", "", NULL, 0, WAIT },
	     { "ready#0", "", "c=ErrImagePull", 0, "Pending | sandbox+ init+ " UNREADY("c") " scheduled+"
	       " | c waiting ErrImagePull" },
	     { "ready#0", "", "c=ImagePullBackOff", 0, "Pending | sandbox+ init+ " UNREADY("c") " scheduled+"
	       " | c waiting ImagePullBackOff" },
	     /* deleted before it ever ran */
	     { "gone#0", "", NULL, DELETED, BEGIN },
	     { "gone#0", "", NULL, DELETED | ENDED,
	       "Failed | sandbox- init+ " UNREADY("c") " scheduled+ | c terminated 137 ContainerStatusUnknown" },
	     { "gone#0", "", NULL, DELETED | ENDED, /* it stays as it was told */
	       "Failed | sandbox- init+ " UNREADY("c") " scheduled+ | c terminated 137 ContainerStatusUnknown" });
	/* a container that could not be started; a hook that failed */
	LIFE(ONE("Never"), { "ready#0", "c:made#0", "c=RunContainerError", 0,
			     "Pending | sandbox+ init+ " UNREADY("c") " scheduled+ | c waiting RunContainerError" });
	LIFE(ONE("Always"), { "ready#0", "c:exit137#0", "c=PostStartHookError", 0,
			      DOWN "waiting PostStartHookError last terminated 137 Error" });
}

TEST(pod_status_deadline_and_eviction)
{
	/* the deadline shows in conditions at once, in the phase when nothing runs any more */
	LIFE(ONE("Always"), { "ready#0", "c:run#0", NULL, 0, RUN },
	     { "ready#0", "c:run#0", NULL, ENDING | OVERDUE,
	       "Running | sandbox+ init+ ready-(PodFailed) containers- scheduled+ | c running started ready" },
	     { "gone#0", "c:exit137#0", NULL, ENDED | OVERDUE,
	       "Failed(DeadlineExceeded: late) | sandbox- init+ ready-(PodFailed) containers- scheduled+"
	       " | c terminated 137 Error" });
	/* an eviction shows only then, also if the container ended well */
	LIFE(ONE("Always"), { "ready#0", "c:run#0", NULL, 0, RUN }, { "ready#0", "c:run#0", NULL, ENDING | EVICTED, RUN },
	     { "gone#0", "c:exit0#0", NULL, ENDED | EVICTED,
	       "Failed(Evicted: low) | sandbox- init+ ready-(PodFailed) containers- scheduled+ | c terminated 0 Completed" });
	LIFE(ONE("Always"), { "", "", NULL, REJECTED, "Failed(OutOfcpu: Pod was rejected: low) |" },
	     { "", "", NULL, REJECTED | ENDED, "Failed(OutOfcpu: Pod was rejected: low) |" });
}

#define INIT2 \
	"{\"restartPolicy\":\"Never\",\"initContainers\":[{\"name\":\"i\"},{\"name\":\"j\"}]," \
	"\"containers\":[{\"name\":\"c\"}]}"
#define INIT1 "{\"initContainers\":[{\"name\":\"i\"}],\"containers\":[{\"name\":\"c\"}]}"
#define INCOMPLETE(names) \
	"init-(ContainersNotInitialized: containers with incomplete status: [" names "]) " \
	UNREADY("c") " scheduled+"

TEST(pod_status_init_containers)
{
	LIFE(INIT2,
	     { "", "", NULL, 0, "Pending | sandbox- " INCOMPLETE("i j") " | i waiting PodInitializing"
	       " | j waiting PodInitializing | c waiting PodInitializing" },
	     { "ready#0", "i:run#0", NULL, 0, "Pending | sandbox+ " INCOMPLETE("i j") " | i running started"
	       " | j waiting PodInitializing | c waiting PodInitializing" },
	     { "ready#0", "i:exit7#0", NULL, 0,
	       "Pending | sandbox+ init-(ContainersNotInitialized: containers with incomplete status: [i j])"
	       " ready-(PodFailed) containers- scheduled+"
	       " | i terminated 7 Error | j waiting PodInitializing | c waiting PodInitializing" },
	     { "gone#0", "i:exit7#0", NULL, ENDED,
	       "Failed | sandbox- init-(ContainersNotInitialized: containers with incomplete status: [i j])"
	       " ready-(PodFailed) containers- scheduled+"
	       " | i terminated 7 Error | j waiting PodInitializing | c waiting PodInitializing" });
	LIFE(INIT1, { "ready#0", "i:exit1#0", NULL, 0, "Pending | sandbox+ " INCOMPLETE("i") " | i terminated 1 Error"
	       " | c waiting PodInitializing" },
	     { "ready#0", "i:run#1 i:exit1#0", NULL, 0,
	       "Pending | sandbox+ " INCOMPLETE("i") " | i running last terminated 1 Error started #1"
	       " | c waiting PodInitializing" },
	     { "ready#0", "i:exit1#1 i:exit1#0", "i=CrashLoopBackOff", 0,
	       "Pending | sandbox+ " INCOMPLETE("i") " | i waiting CrashLoopBackOff last terminated 1 Error #1"
	       " | c waiting PodInitializing" },
	     { "ready#0", "i:exit0#2 i:exit1#1", NULL, 0,
	       "Pending | sandbox+ init+ " UNREADY("c") " scheduled+"
	       " | i terminated 0 Completed last terminated 1 Error ready #2 | c waiting PodInitializing" },
	     { "ready#0", "i:exit0#2 c:run#0", NULL, 0,
	       "Running | sandbox+ init+ ready+ containers+ scheduled+"
	       " | i terminated 0 Completed last terminated 1 Error ready #2 | c running started ready" },
	     /* removed from the runtime: it has run nevertheless */
	     { "ready#0", "c:run#0", NULL, 0,
	       "Running | sandbox+ init+ ready+ containers+ scheduled+"
	       " | i terminated 0 Completed last terminated 1 Error ready #2 | c running started ready" });
	/* nobody was told how it ended */
	LIFE(INIT1, { "ready#0", "c:run#0", NULL, 0,
		      "Running | sandbox+ init+ ready+ containers+ scheduled+ | i terminated 0 Completed ready"
		      " | c running started ready" });
}

#define SIDECAR                                                                                                             \
	"{\"restartPolicy\":\"Never\",\"initContainers\":[{\"name\":\"s\",\"restartPolicy\":\"Always\"," \
	"\"startupProbe\":{\"exec\":{}}}]," \
	"\"containers\":[{\"name\":\"c\"}]}"

TEST(pod_status_sidecar)
{
	LIFE(SIDECAR,
	     { "", "", NULL, 0,
	       "Pending | sandbox- init-(ContainersNotInitialized: containers with incomplete status: [s]) " UNREADY("s c")
	       " scheduled+ | s waiting PodInitializing | c waiting PodInitializing" },
	     { "ready#0", "s:run#0", NULL, 0,
	       "Pending | sandbox+ init-(ContainersNotInitialized: containers with incomplete status: [s]) " UNREADY("s c")
	       " scheduled+ | s running | c waiting PodInitializing" },
	     { "ready#0", "s:run#0", "s+started", 0,
	       "Pending | sandbox+ init+ " UNREADY("c") " scheduled+ | s running started ready | c waiting PodInitializing" },
	     { "ready#0", "s:run#0 c:run#0", "s+started", 0,
	       "Running | sandbox+ init+ ready+ containers+ scheduled+ | s running started ready | c running started ready" },
	     /* it restarts: the pod is not pending again */
	     { "ready#0", "s:run#1 s:exit1#0 c:run#0", NULL, 0,
	       "Running | sandbox+ init+ " UNREADY("s") " scheduled+ | s running last terminated 1 Error #1"
	       " | c running started ready" },
	     { "ready#0", "s:run#1 s:exit1#0 c:exit0#0", "s+started", 0,
	       "Running | sandbox+ init+ " UNREADY("c") " scheduled+"
	       " | s running last terminated 1 Error started ready #1 | c terminated 0 Completed" },
	     { "gone#0", "s:exit0#1 s:exit1#0 c:exit0#0", NULL, ENDING,
	       "Running | sandbox- init+(PodCompleted) ready- containers- scheduled+"
	       " | s terminated 0 Completed last terminated 1 Error #1"
	       " | c terminated 0 Completed" },
	     { "gone#0", "s:exit0#1 s:exit1#0 c:exit0#0", NULL, ENDED,
	       "Succeeded | sandbox- init+(PodCompleted) ready- containers- scheduled+"
	       " | s terminated 0 Completed last terminated 1 Error #1"
	       " | c terminated 0 Completed" });
}

#define PROBES                                                                                                    \
	"{\"containers\":[{\"name\":\"c\",\"startupProbe\":{\"exec\":{}},\"readinessProbe\":{\"exec\":{}}},{\"name\":\"a\"}]}"
#define PROBED(c) "Running | sandbox+ init+ " UNREADY("c") " scheduled+ | a running started ready | c running" c

TEST(pod_status_probes)
{
	LIFE(PROBES, { "ready#0", "c:run#0 a:run#0", NULL, 0, PROBED("") },
	     { "ready#0", "c:run#0 a:run#0", "c+ready", 0, PROBED("") }, /* not before it has started */
	     { "ready#0", "c:run#0 a:run#0", "c+started", 0, PROBED(" started") },
	     { "ready#0", "c:run#0 a:run#0", "c+started c+ready", 0,
	       "Running | sandbox+ init+ ready+ containers+ scheduled+ | a running started ready | c running started ready" },
	     { "ready#0", "c:run#0 a:run#0", NULL, 0, PROBED(" started") }, /* the same container: it has started */
	     { "ready#0", "c:run#1 c:exit1#0 a:run#0", NULL, 0, PROBED(" last terminated 1 Error #1") });
}

TEST(pod_status_what_the_runtime_lost)
{
	/* after a restart of the machine */
	LIFE(ONE("Always"), { "ready#0", "c:run#0", NULL, 0, RUN },
	     { "", "", NULL, 0, "Running | sandbox- init+ " UNREADY("c") " scheduled+"
	       " | c waiting ContainerCreating last terminated 137 ContainerStatusUnknown #1" },
	     { "ready#0", "c:run#1", NULL, 0,
	       "Running | sandbox+ init+ ready+ containers+ scheduled+"
	       " | c running last terminated 137 ContainerStatusUnknown started ready #1" });
	/* ended, told, removed, started anew by a runtime that counts from zero */
	LIFE(ONE("Always"), { "ready#0", "c:exit3#0", NULL, 0, DOWN "terminated 3 Error" },
	     { "ready#0", "", NULL, 0, DOWN "terminated 3 Error" },
	     { "ready#0", "c:run#0", NULL, 0, "Running | sandbox+ init+ ready+ containers+ scheduled+"
	       " | c running started ready #1" });
	LIFE(ONE("Always"), { "ready#0", "c:run#0", NULL, 0, RUN },
	     { "ready#0", "c:lost#0", NULL, 0, DOWN "terminated 137 ContainerStatusUnknown #1" });
	LIFE(ONE("Always"), { "ready#0", "c:lost#0", NULL, 0, "Pending | sandbox+ init+ " UNREADY("c") " scheduled+"
	       " | c waiting " });
}

TEST(pod_status_static_pod_stays_running)
{
	LIFE(ONE("Always"), { "ready#0", "c:exit2#1 c:exit2#0",
	       "c=CrashLoopBackOff", STATIC, DOWN "waiting CrashLoopBackOff last terminated 2 Error #1" },
	     { "gone#0", "c:exit2#1 c:exit2#0", "c=CrashLoopBackOff", STATIC | ENDED,
	       "Running | sandbox- init+ " UNREADY("c") " scheduled+"
	       " | c terminated 137 ContainerStatusUnknown last terminated 2 Error #1" });
}

TEST(pod_status_restart_rules)
{
	LIFE("{\"restartPolicy\":\"Never\",\"containers\":[{\"name\":\"c\",\"restartPolicy\":\"Never\",\"restartPolicyRules\":"
	     "[{\"action\":\"Restart\",\"exitCodes\":{\"operator\":\"In\",\"values\":[42]}}]}]}",
	     { "ready#0", "c:exit42#0", NULL, 0, DOWN "terminated 42 Error" },
	     { "ready#0", "c:exit0#1 c:exit42#0", NULL, 0,
	       "Running | sandbox+ init+(PodCompleted) ready- containers- scheduled+"
	       " | c terminated 0 Completed last terminated 42 Error #1" });
	LIFE("{\"restartPolicy\":\"Never\",\"containers\":[{\"name\":\"c\",\"restartPolicy\":\"Never\",\"restartPolicyRules\":"
	     "[{\"action\":\"RestartAllContainers\",\"exitCodes\":{\"operator\":\"In\",\"values\":[42]}}]},{\"name\":\"d\"}]}",
	     { "ready#0", "c:run#0 d:run#0", NULL, 0,
	       "Running | sandbox+ init+ ready+ containers+ scheduled+ AllContainersRestarting-"
	       " | c running started ready | d running started ready" },
	     { "ready#0", "c:exit42#0 d:run#0", NULL, 0,
	       "Running | sandbox+ init+ " UNREADY("c") " scheduled+"
	       " AllContainersRestarting+(RestartAllContainersStarted: container exited with restart policy rule)"
	       " | c terminated 42 Error | d running started ready" },
	     { "ready#0", "", NULL, 0,
	       "Running | sandbox+ init+ " UNREADY("c d") " scheduled+ AllContainersRestarting-"
	       " | c waiting RestartingAllContainers last terminated 137 RestartingAllContainers #1"
	       " | d waiting RestartingAllContainers last terminated 137 RestartingAllContainers #1" },
	     { "ready#0", "c:run#1 d:run#1", NULL, 0,
	       "Running | sandbox+ init+ ready+ containers+ scheduled+ AllContainersRestarting-"
	       " | c running last terminated 137 RestartingAllContainers started ready #1"
	       " | d running last terminated 137 RestartingAllContainers started ready #1" });
}

TEST(pod_status_several_containers)
{
	LIFE("{\"restartPolicy\":\"OnFailure\",\"containers\":[{\"name\":\"b\"},{\"name\":\"a\"}],"
	       "\"ephemeralContainers\":[{\"name\":\"e\"}]}",
	     { "ready#0", "a:run#0 b:exit0#0", NULL, 0,
	       "Running | sandbox+ init+ " UNREADY("b") " scheduled+ | a running started ready"
	       " | b terminated 0 Completed | e waiting ContainerCreating" },
	     { "ready#0", "a:exit1#0 b:exit0#0 e:run#0", NULL, 0,
	       "Running | sandbox+ init+ " UNREADY("b a") " scheduled+ | a terminated 1 Error"
	       " | b terminated 0 Completed | e running" },
	     { "ready#0", "a:exit0#1 a:exit1#0 b:exit0#0 e:run#0", NULL, 0,
	       "Running | sandbox+ init+(PodCompleted) ready- containers- scheduled+"
	       " | a terminated 0 Completed last terminated 1 Error #1"
	       " | b terminated 0 Completed | e running" });
}

/* ---- single rules ---- */

static struct pod_view view(struct arena *a, const char *spec, const char *sandboxes, const char *containers)
{
	struct pod_view v = { .pod = fake_pod(a, spec), .now_ns = 1000 * NS_PER_S, .host_address = STR("192.0.2.1"),
			      .runtime_name = STR("rt") };

	v.sandboxes = fake_sandboxes(a, sandboxes);
	v.containers = fake_containers(a, v.pod, containers);
	return v;
}

static void check_json(struct arena *a, size_t row, struct val v, const char *want)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(65536);

	CHECK_ROW(row, json_encode(&b, v, &(struct json_encode_options){ 0 }, NULL) >= 0);
	CHECK_STR_ROW(row, arena_str(a, buf_str(&b)), want);
}

TEST(pod_status_in_full)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct pod_view v = view(&a,
		"{\"containers\":[{\"name\":\"c\",\"image\":\"i:1\",\"volumeMounts\":[{\"name\":\"v\","
		  "\"mountPath\":\"/v\",\"readOnly\":true},"
		"{\"name\":\"w\",\"mountPath\":\"/w\"}]}]}", "ready#0", "c:run#1 c:exit3#0");
	CLEANUP(buf_done) struct buf b = BUF_INIT(65536);
	struct json_encode_options o = { .type = TYPE(core_v1, PodStatus) };

	CHECK(json_encode(&b, pod_status_make(&a, &v), &o, NULL) >= 0);
	CHECK_STR(buf_str(&b),
		"{\"observedGeneration\":1,\"phase\":\"Running\",\"conditions\":["
		"{\"type\":\"PodReadyToStartContainers\",\"observedGeneration\":1,\"status\":\"True\","
		  "\"lastProbeTime\":null,\"lastTransitionTime\":\"1970-01-01T00:16:40Z\"},"
		"{\"type\":\"Initialized\",\"observedGeneration\":1,\"status\":\"True\",\"lastProbeTime\":null,"
		  "\"lastTransitionTime\":\"1970-01-01T00:16:40Z\"},"
		"{\"type\":\"Ready\",\"observedGeneration\":1,\"status\":\"True\",\"lastProbeTime\":null,"
		  "\"lastTransitionTime\":\"1970-01-01T00:16:40Z\"},"
		"{\"type\":\"ContainersReady\",\"observedGeneration\":1,\"status\":\"True\",\"lastProbeTime\":null,"
		  "\"lastTransitionTime\":\"1970-01-01T00:16:40Z\"},"
		"{\"type\":\"PodScheduled\",\"observedGeneration\":1,\"status\":\"True\",\"lastProbeTime\":null,"
		  "\"lastTransitionTime\":\"1970-01-01T00:16:40Z\"}],"
		"\"hostIP\":\"192.0.2.1\",\"hostIPs\":[{\"ip\":\"192.0.2.1\"}],\"podIP\":\"10.1.0.5\","
		  "\"podIPs\":[{\"ip\":\"10.1.0.5\"}],"
		"\"startTime\":\"1970-01-01T00:16:40Z\",\"containerStatuses\":[{\"name\":\"c\","
		  "\"state\":{\"running\":{\"startedAt\":\"1970-01-01T00:01:50Z\"}},"
		"\"lastState\":{\"terminated\":{\"exitCode\":3,\"reason\":\"Error\",\"startedAt\":\"1970-01-01T00:01:40Z\","
		"\"finishedAt\":\"1970-01-01T00:01:40Z\",\"containerID\":\"rt://c0\"}},\"ready\":true,"
		  "\"restartCount\":1,\"image\":\"i:1\","
		"\"imageID\":\"sha256:1\",\"containerID\":\"rt://c1\",\"started\":true,\"resources\":{},\"volumeMounts\":["
		"{\"name\":\"v\",\"mountPath\":\"/v\",\"readOnly\":true,\"recursiveReadOnly\":\"Disabled\"},"
		  "{\"name\":\"w\",\"mountPath\":\"/w\"}]}],"
		"\"qosClass\":\"BestEffort\",\"resources\":{}}");
}

TEST(pod_status_addresses)
{
	static const struct { const char *spec, *v4, *v6, *network, *want; } rows[] = {
		{ "{\"containers\":[{\"name\":\"c\"}]}", "192.0.2.1", "", "{\"ip\":\"fd00:0::5\","
		  "\"additionalIps\":[{\"ip\":\"10.1.0.5\"}]}",
		  "[{\"ip\":\"10.1.0.5\"},{\"ip\":\"fd00::5\"}]" },
		{ "{\"containers\":[{\"name\":\"c\"}]}", "", "fd01::1", "{\"ip\":\"10.1.0.5\","
		  "\"additionalIps\":[{\"ip\":\"fd00::5\"},{\"ip\":\"fd00::6\"}]}",
		  "[{\"ip\":\"fd00::5\"},{\"ip\":\"10.1.0.5\"}]" },
		{ "{\"hostNetwork\":true,\"containers\":[{\"name\":\"c\"}]}", "192.0.2.1", "fd01::1", "{}",
		  "[{\"ip\":\"192.0.2.1\"},{\"ip\":\"fd01::1\"}]" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct pod_view v = view(&a, rows[i].spec, "ready#0", "");
		struct val network, status;

		CHECK_ROW(i, json_decode(&a, str_of(rows[i].network), &(struct json_decode_options){ 0 }, &network, NULL) >= 0);
		v.sandboxes = LIST(&a, val_with(&a, val_at(v.sandboxes, 0), network, network));
		v.host_address = str_of(rows[i].v4);
		v.host_address6 = str_of(rows[i].v6);
		status = pod_status_make(&a, &v);
		check_json(&a, i, val_get(status, podIPs), rows[i].want);
		CHECK_ROW(i, str_eq(val_str(status, podIP), val_str(val_at(val_get(status, podIPs), 0), ip)));
		/* a pod whose sandbox is gone keeps them */
		v.status = status;
		v.sandboxes = fake_sandboxes(&a, "gone#0");
		check_json(&a, i, val_get(pod_status_make(&a, &v), podIPs), rows[i].want);
	}
}

TEST(pod_status_readiness_gates_and_conditions_of_others)
{
	static const struct { const char *others, *want; } rows[] = {
		{ "", "Running | sandbox+ init+ ready-(ReadinessGatesNotReady: "
		      "corresponding condition of pod readiness gate \"x/a\" does not exist., "
		      "corresponding condition of pod readiness gate \"x/b\" does not exist.) containers+ scheduled+"
		      " | c running started ready" },
		{ "{\"type\":\"x/a\",\"status\":\"False\"},{\"type\":\"x/b\",\"status\":\"True\"}",
		  "Running | x/a- x/b+ sandbox+ init+ ready-(ReadinessGatesNotReady: "
		  "the status of pod readiness gate \"x/a\" is not \"True\", but False)"
		  " containers+ scheduled+ | c running started ready" },
		{ "{\"type\":\"PodScheduled\",\"status\":\"True\"},{\"type\":\"x/a\",\"status\":\"True\"},"
		  "{\"type\":\"x/b\",\"status\":\"True\"}",
		  "Running | x/a+ x/b+ sandbox+ init+ ready+ containers+ scheduled+ | c running started ready" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		str spec = arena_printf(&a, "{\"readinessGates\":[{\"conditionType\":\"x/a\"},"
		  "{\"conditionType\":\"x/b\"}],\"containers\":[{\"name\":\"c\"}]},"
					    "\"status\":{\"conditions\":[%s]}", rows[i].others);
		struct pod_view v = view(&a, spec.p, "ready#0", "c:run#0");

		CHECK_STR_ROW(i, fake_show(&a, pod_status_make(&a, &v)), rows[i].want);
	}
}

TEST(pod_status_transition_times_and_generations)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct pod_view v = view(&a, ONE("Always"), "ready#0", "");
	struct val first, c;

	v.status = first = pod_status_make(&a, &v);
	v.now_ns += 60 * NS_PER_S;
	v.pod = val_with(&a, v.pod, val_of_int(5), metadata, generation);
	v.containers = fake_containers(&a, v.pod, "c:run#0");
	v.status = pod_status_make(&a, &v);
	CHECK_STR(val_str(v.status, startTime), "1970-01-01T00:16:40Z");
	CHECK_INT(val_int(v.status, observedGeneration), 5);
	c = val_at(val_get(v.status, conditions), 0); /* it was and is True */
	CHECK_STR(val_str(c, lastTransitionTime), "1970-01-01T00:16:40Z");
	CHECK_INT(val_int(c, observedGeneration), 5);
	c = val_at(val_get(v.status, conditions), 2); /* now it is ready */
	CHECK_STR(val_str(c, lastTransitionTime), "1970-01-01T00:17:40Z");
	/* An object that is older than what was told. */
	v.pod = val_with(&a, v.pod, val_of_int(4), metadata, generation);
	CHECK_INT(val_int(pod_status_make(&a, &v), observedGeneration), 5);
	CHECK(!pod_status_equal(first, v.status));
}

TEST(pod_status_resize_and_disruption)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct pod_view v = view(&a, ONE("Always"), "ready#0", "c:run#0");

	v.status = pod_status_make(&a, &v);
	v.resize = LIST(&a, OBJECT(&a, F(type, VAL_LIT("PodResizePending")), F(observedGeneration, val_of_int(1)),
				   F(reason, VAL_LIT("Deferred")), F(message, VAL_LIT("m"))));
	v.disruption = OBJECT(&a, F(type, VAL_LIT("DisruptionTarget")), F(reason, VAL_LIT("TerminationByKubelet")),
			      F(message, VAL_LIT("low")));
	v.fail_reason = STR("Evicted");
	v.status = pod_status_make(&a, &v);
	CHECK_STR(fake_show(&a, v.status),
		  "Running | PodResizePending+(Deferred: m) sandbox+ init+ ready+ containers+ scheduled+"
		  " | c running started ready");
	/* the same reason: the time stays */
	v.now_ns += NS_PER_S;
	CHECK(pod_status_equal(v.status, pod_status_make(&a, &v)));
	CHECK_STR(val_str(val_at(val_get(pod_status_make(&a, &v), conditions), 0), lastTransitionTime), "1970-01-01T00:16:40Z");
	v.terminated = true;
	v.sandboxes = fake_sandboxes(&a, "gone#0");
	v.containers = fake_containers(&a, v.pod, "c:exit143#0");
	CHECK_STR(fake_show(&a, pod_status_make(&a, &v)),
		  "Failed(Evicted) | DisruptionTarget+(TerminationByKubelet: low) sandbox- init+"
		  " ready-(PodFailed) containers- scheduled+"
		  " | c terminated 143 Error");
}

#define SIZES                                                                                                           \
	"{\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"20m\",\"memory\":\"20Mi\"},"                      \
	"\"limits\":{\"cpu\":\"40m\",\"memory\":\"30Mi\"}}}]}"

/* A resize is allocated, then done: what is in force follows the runtime. */
TEST(pod_status_resources)
{
	static const struct { const char *phase, *linux_, *of_container, *of_pod; } rows[] = {
		{ "Pending", NULL, "{\"requests\":{\"cpu\":\"20m\",\"memory\":\"20Mi\"},\"limits\":{\"cpu\":\"40m\","
		  "\"memory\":\"30Mi\"}}",
		  "{\"limits\":{\"cpu\":\"40m\",\"memory\":\"30Mi\"},\"requests\":{\"cpu\":\"20m\",\"memory\":\"20Mi\"}}" },
		{ "Running", "{\"cpuPeriod\":100000,\"cpuQuota\":2000,\"cpuShares\":10,\"memoryLimitInBytes\":31457280}",
		  "{\"limits\":{\"cpu\":\"20m\",\"memory\":\"30Mi\"},\"requests\":{\"cpu\":\"10m\",\"memory\":\"10Mi\"}}",
		  "{\"limits\":{\"cpu\":\"20m\",\"memory\":\"30Mi\"},\"requests\":{\"cpu\":\"10m\",\"memory\":\"20Mi\"}}" },
		{ "Running", NULL, "{\"limits\":{\"cpu\":\"20m\",\"memory\":\"30Mi\"},\"requests\":{\"cpu\":\"10m\","
		  "\"memory\":\"10Mi\"}}",
		  "{\"limits\":{\"cpu\":\"20m\",\"memory\":\"30Mi\"},\"requests\":{\"cpu\":\"10m\",\"memory\":\"20Mi\"}}" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct pod_view v = view(&a, SIZES, "ready#0", "c:run#0");
		struct container_note note = { .name = STR("c") };
		struct val l, status, c;

		v.pod = val_with(&a, v.pod, VAL_STR(str_of(rows[i].phase)), status, phase);
		if (i) {
			const char *text = "{\"requests\":{\"cpu\":\"10m\",\"memory\":\"10Mi\"},"
			  "\"limits\":{\"cpu\":\"20m\",\"memory\":\"30Mi\"}}";
			CHECK(json_decode(&a, str_of(text), &(struct json_decode_options){ 0 }, &note.actuated, NULL) >= 0);
			v.notes = &note;
			v.n_notes = 1;
		}
		if (rows[i].linux_) {
			CHECK(json_decode(&a, str_of(rows[i].linux_), &(struct json_decode_options){ 0 }, &l, NULL) >= 0);
			v.containers = LIST(&a, val_with(&a, val_at(v.containers, 0), l, resources, linux));
		}
		status = pod_status_make(&a, &v);
		c = val_at(val_get(status, containerStatuses), 0);
		struct val want;
		CHECK(json_decode(&a, str_of(rows[i].of_container), &(struct json_decode_options){ 0 }, &want, NULL) >= 0);
		CHECK_ROW(i, val_equal(val_get(c, resources), want));
		CHECK(json_decode(&a, str_of(rows[i].of_pod), &(struct json_decode_options){ 0 }, &want, NULL) >= 0);
		CHECK_ROW(i, val_equal(val_get(status, resources), want));
		check_json(&a, i, val_get(c, allocatedResources), "{\"cpu\":\"20m\",\"memory\":\"20Mi\"}");
		check_json(&a, i, val_get(status, allocatedResources), "{\"cpu\":\"20m\",\"memory\":\"20Mi\"}");
		CHECK_STR_ROW(i, val_str(status, qosClass), "Burstable");
	}
}

TEST(pod_status_equal)
{
	static const struct { const char *a, *b; bool equal; } rows[] = {
		{ "{\"phase\":\"Running\"}", "{\"phase\":\"Pending\"}", false },
		{ "{\"observedGeneration\":1}", "{\"observedGeneration\":2}", false },
		{ "{\"podIP\":\"1.1.1.1\"}", "{}", false },
		{ "{}", "{\"podIP\":\"1.1.1.1\"}", false },
		{ "{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"observedGeneration\":1,"
		  "\"lastTransitionTime\":\"2026-01-01T00:00:00Z\"}]}",
		  "{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"observedGeneration\":2}]}", true },
		{ "{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}", "{\"conditions\":[{\"type\":\"Ready\","
		  "\"status\":\"False\"}]}", false },
		{ "{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}",
		  "{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"message\":\"m\"}]}", false },
		{ "{}", "{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}", false },
		{ "{}", "{\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":\"True\"}]}", false },
		{ "{}", "{\"conditions\":[{\"type\":\"x/a\",\"status\":\"True\"}]}", true },
		{ "{}", "{\"resourceClaimStatuses\":[{\"name\":\"c\"}]}", true },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct json_decode_options o = { .type = TYPE(core_v1, PodStatus) };
		struct val x, y;

		CHECK(json_decode(&a, str_of(rows[i].a), &o, &x, NULL) >= 0);
		CHECK(json_decode(&a, str_of(rows[i].b), &o, &y, NULL) >= 0);
		CHECK_ROW(i, pod_status_equal(x, y) == rows[i].equal);
	}
}

TEST(pod_has_ended)
{
	static const struct { const char *policy, *containers; bool ended; } rows[] = {
		{ ONE("Always"), "c:exit0#0", false }, { ONE("Never"), "c:exit0#0", true },	{ ONE("Never"),
		  "c:run#0", false },
		{ ONE("OnFailure"), "c:exit1#0", false }, { ONE("OnFailure"), "c:exit0#0", true }, { ONE("Never"), "", false },
		{ INIT2, "i:exit7#0", true }, { INIT2, "i:exit0#0", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct pod_view v = view(&a, rows[i].policy, "ready#0", rows[i].containers);

		CHECK_ROW(i, pod_has_ended(&a, &v) == rows[i].ended);
		v.fail_reason = STR("DeadlineExceeded");
		CHECK_ROW(i, pod_has_ended(&a, &v));
	}
}

TEST(pod_status_ready_to_start)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct pod_view v = view(&a, ONE("Always"), "", "");

	v.status = pod_status_make(&a, &v);
	CHECK_STR(fake_show(&a, v.status), BEGIN);
	v.sandboxes = fake_sandboxes(&a, "ready#0");
	struct val told = pod_status_ready_to_start(&a, &v);
	CHECK_STR(fake_show(&a, told), WAIT);
	CHECK(!val_has(told, podIP) && val_has(pod_status_make(&a, &v), podIP)); /* that comes with the containers */
}

TEST(pod_status_cuts_messages_between_characters)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct pod_view v = view(&a, ONE("Never"), "ready#0", "c:exit1#0");
	CLEANUP(buf_done) struct buf b = BUF_INIT(65536);
	str message;

	buf_addc(&b, 'x');
	for (int i = 0; i < 12 * 1024; i++)
		buf_add(&b, STR("\xc3\xa9"));
	v.containers = LIST(&a, val_with(&a, val_at(v.containers, 0), VAL_STR(buf_str(&b)), message));
	message = val_str(val_at(val_get(pod_status_make(&a, &v), containerStatuses), 0), state, terminated, message);
	CHECK_INT(message.n, 12 * 1024 - 1);
	CHECK(str_is_utf8(message));
}

/* What a container has written may be anything; the API server gets text. */
TEST(pod_status_messages_are_text)
{
	static const struct {
		const char *said, *want;
	} t[] = {
		{ "na\xc3\xafve", "na\xc3\xafve" },
		{ "\xaf cut \xc3", "\xef\xbf\xbd cut \xef\xbf\xbd" },
		{ "\xff\xfe", "\xef\xbf\xbd\xef\xbf\xbd" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct val said = VAL_STR(str_of(t[i].said));
		struct container_note note = { .name = STR("c"), .waiting_reason = STR("CreateContainerError"), .waiting_message = str_of(t[i].said) };
		struct pod_view v = { .pod = fake_pod(&a, ONE("Never")), .sandboxes = fake_sandboxes(&a, "ready#0") };
		v.containers = LIST(&a, val_with(&a, val_at(fake_containers(&a, v.pod, "c:exit1#0"), 0), said, message));
		CHECK_STR_ROW(i, val_str(val_at(val_get(pod_status_make(&a, &v), containerStatuses), 0), state, terminated, message), t[i].want);
		v = (struct pod_view){ .pod = v.pod, .sandboxes = v.sandboxes, .notes = &note, .n_notes = 1 };
		CHECK_STR_ROW(i, val_str(val_at(val_get(pod_status_make(&a, &v), containerStatuses), 0), state, waiting, message), t[i].want);
	}
}
