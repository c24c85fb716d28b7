#include "base/clock.h"
#include "controllers/job_plan_priv.h"
#include "controllers/moment.h"
#include "controllers/plan_testing.h"
#include "controllers/pod_control.h"

enum { NOW_S = 1700001000 };

/* A pod from words: name, phase, and i<index>, x<exit code>, f<failures before>, t<finished that many seconds ago>, del, ready, counted, target. */
static struct val pod_of(struct arena *a, str words)
{
	str word, rest = words, name, phase;
	int64_t n = 0, index = -1, code = -1, failures = -1, ago = 1000;
	bool going = false, ready = false, counted = false, target = false;

	str_cut(rest, ' ', &name, &rest);
	str_cut(rest, ' ', &phase, &rest);
	while (rest.n) {
		str_cut(rest, ' ', &word, &rest);
		bool number = str_to_i64(str_skip(word, 1), &n);
		going |= str_eq(word, STR("del"));
		ready |= str_eq(word, STR("ready"));
		counted |= str_eq(word, STR("counted"));
		target |= str_eq(word, STR("target"));
		*(!number ? &n : word.p[0] == 'i' ? &index : word.p[0] == 'x' ? &code : word.p[0] == 'f' ? &failures : &ago) = n;
	}
	struct val end = moment_time(a, (NOW_S - ago) * NS_PER_S);
	struct val m = OBJECT(a, F(name, VAL_STR(name)), F(namespace, VAL_LIT("ns")), F(uid, VAL_STR(name)), F(creationTimestamp, end),
			      F(deletionTimestamp, going ? end : VAL_EMPTY), F(finalizers, counted ? VAL_EMPTY : LIST(a, VAL_LIT(JOB_FINALIZER))));
	struct val annotations = VAL_EMPTY_OBJECT;
	if (index >= 0)
		annotations = val_put(a, annotations, atom_make(a, STR(JOB_INDEX)), VAL_STR(arena_printf(a, "%d", (int)index)));
	if (failures >= 0)
		annotations = val_put(a, annotations, atom_make(a, STR(JOB_FAILURES)), VAL_STR(arena_printf(a, "%d", (int)failures)));
	m = val_with(a, m, annotations, annotations);
	struct val terminated = OBJECT(a, F(exitCode, val_of_int(code)), F(finishedAt, end));
	struct val container = OBJECT(a, F(name, VAL_LIT("c")), F(state, OBJECT(a, F(terminated, code >= 0 ? terminated : VAL_EMPTY))));
	struct val conditions = ready ? tree(a, "[{'type':'Ready','status':'True'}]") :
				target ? tree(a, "[{'type':'DisruptionTarget','status':'True'}]") : VAL_EMPTY_LIST;
	struct val status = OBJECT(a, F(phase, VAL_STR(phase)), F(conditions, conditions), F(containerStatuses, LIST(a, container)));
	return OBJECT(a, F(metadata, m), F(spec, VAL_EMPTY_OBJECT), F(status, status));
}

static struct val pods_of(struct arena *a, const char *text)
{
	struct val_builder b = val_builder(a);
	for (str one, rest = str_of(text); rest.n;) {
		str_cut(rest, ';', &one, &rest);
		val_add_item(&b, pod_of(a, str_trim(one)));
	}
	return val_end_list(&b);
}

/* What a whole look does, if every call succeeds. */
static str run(struct arena *a, const char *spec, const char *status, const char *pods)
{
	struct job_view v = { .expectations_met = true, .now_ns = NOW_S * NS_PER_S };
	struct job_plan p;
	str out = STR_NONE;
	size_t ready = 0;

	v.job = OBJECT(a, F(metadata, tree(a, "{'name':'j','namespace':'ns'}")), F(spec, tree(a, spec)), F(status, tree(a, status)));
	v.pods = pods_of(a, pods);
	job_plan_make(a, &v, &p);
	for (size_t i = 0; i < p.n_create; i++)
		out = p.create[i].index < 0 ? arena_join(a, out, STR("+")) : arena_printf(a, STR_FMT "+%d", STR_ARG(out), (int)p.create[i].index);
	for (size_t i = 0; i < p.n_remove; i++) {
		out = arena_printf(a, STR_FMT "-" STR_FMT, STR_ARG(out), STR_ARG(val_str(p.remove[i], metadata, name)));
		ready += pod_is_ready(p.remove[i]);
	}
	if (p.again_ns)
		out = arena_printf(a, STR_FMT " again %ds", STR_ARG(out), (int)(p.again_ns / NS_PER_S));
	job_plan_account(&p, p.n_remove, ready, p.n_create);
	for (size_t i = 0; i < p.n_release; i++)
		out = arena_printf(a, STR_FMT " ~" STR_FMT, STR_ARG(out), STR_ARG(p.release[i]->uid));
	bool *gone = ARENA_ARRAY(a, bool, p.n_release + 1);
	memset(gone, 1, p.n_release + 1);
	job_plan_settle(&p, gone);
	out = arena_printf(a, STR_FMT " a%d r%d t%d s%d f%d", STR_ARG(out), (int)val_int(p.status, active), (int)val_int(p.status, ready),
			   (int)val_int(p.status, terminating), (int)val_int(p.status, succeeded), (int)val_int(p.status, failed));
	str done = val_str(p.status, completedIndexes), lost = val_str(p.status, failedIndexes);
	if (done.n || lost.n)
		out = arena_printf(a, STR_FMT " [" STR_FMT "|" STR_FMT "]", STR_ARG(out), STR_ARG(done), STR_ARG(lost));
	VAL_EACH(c, val_get(p.status, conditions))
		out = arena_printf(a, STR_FMT " " STR_FMT "=" STR_FMT ":" STR_FMT, STR_ARG(out), STR_ARG(val_str(*c, type)), STR_ARG(val_str(*c, status)),
				   STR_ARG(val_str(*c, reason)));
	return str_trim(out);
}

#define ONE "{'completions':1,'parallelism':1,'backoffLimit':2,'podReplacementPolicy':'TerminatingOrFailed'}"
#define INDEXED "{'completions':4,'parallelism':2,'backoffLimit':6,'completionMode':'Indexed'}"
#define PER_INDEX "{'completions':3,'parallelism':3,'backoffLimit':2147483647,'backoffLimitPerIndex':1,'completionMode':'Indexed'}"
#define STARTED "{'startTime':'2023-11-14T22:13:20Z'}" /* NOW_S - 1000 */
#define DONE "SuccessCriteriaMet=True:CompletionsReached Complete=True:CompletionsReached"

TEST(job_one_look)
{
	static const struct {
		const char *spec, *status, *pods, *want;
	} t[] = {
		/* completions */
		{ ONE, "{}", "", "+ a1 r0 t0 s0 f0" },
		{ ONE, STARTED, "p Running ready", "a1 r1 t0 s0 f0" },
		{ ONE, STARTED, "p Succeeded x0", "~p a0 r0 t0 s1 f0 " DONE },
		{ "{'completions':5,'parallelism':2,'backoffLimit':6}", "{'succeeded':4}", "p Running", "a1 r0 t0 s4 f0" },
		{ "{'completions':5,'parallelism':2,'backoffLimit':6}", "{'succeeded':1}", "", "++ a2 r0 t0 s1 f0" },
		{ "{'completions':5,'parallelism':1,'backoffLimit':6}", "{}", "p Running ready;q Pending", "-q a1 r1 t1 s0 f0" },
		{ "{'parallelism':2,'backoffLimit':6}", "{}", "p Running", "+ a2 r0 t0 s0 f0" },
		{ "{'parallelism':2,'backoffLimit':6}", "{}", "p Running;q Succeeded x0", "~q a1 r0 t0 s1 f0" },
		{ "{'parallelism':2,'backoffLimit':6}", "{'succeeded':1}", "", "a0 r0 t0 s1 f0 " DONE },
		/* failures: counted, paced, limited */
		{ ONE, STARTED, "p Failed x1 t3", "again 7s ~p a0 r0 t0 s0 f1" },
		{ ONE, STARTED, "p Failed x1 t11", "+ ~p a1 r0 t0 s0 f1" },
		{ ONE, STARTED, "p Failed counted x1;q Failed x1 t3", "again 7s ~q a0 r0 t0 s0 f1" },
		{ ONE, "{'startTime':'2023-11-14T22:13:20Z','failed':2}", "p Failed x1;q Running ready",
		  "-q ~p ~q a0 r0 t1 s0 f4 FailureTarget=True:BackoffLimitExceeded" },
		{ ONE, "{'startTime':'2023-11-14T22:13:20Z','failed':2}", "p Failed x1",
		  "~p a0 r0 t0 s0 f3 FailureTarget=True:BackoffLimitExceeded Failed=True:BackoffLimitExceeded" },
		{ ONE, "{'failed':3,'conditions':[{'type':'FailureTarget','status':'True','reason':'X'}]}", "q Running del",
		  "~q a0 r0 t1 s0 f4 FailureTarget=True:X" },
		{ ONE, "{'failed':3,'conditions':[{'type':'FailureTarget','status':'True','reason':'X'}]}", "",
		  "a0 r0 t0 s0 f3 FailureTarget=True:X Failed=True:X" },
		/* uncounted pods of a look that was cut short */
		{ ONE, "{'uncountedTerminatedPods':{'succeeded':['p']}}", "", "a0 r0 t0 s1 f0 " DONE },
		{ ONE, "{'uncountedTerminatedPods':{'succeeded':['p']}}", "p Succeeded", "~p a0 r0 t0 s1 f0 " DONE },
		{ ONE, "{'uncountedTerminatedPods':{'failed':['p']}}", "p Succeeded del t20", "+ ~p a1 r0 t0 s0 f1" }, /* it was deleted, and then ended well */
		/* pods that are deleted by others */
		{ ONE, STARTED, "p Running del t20", "+ ~p a1 r0 t1 s0 f1" },
		{ "{'completions':1,'parallelism':1,'backoffLimit':2,'podReplacementPolicy':'Failed'}", STARTED, "p Running del", "a0 r0 t1 s0 f0" },
		/* deadline and suspension */
		{ "{'completions':1,'parallelism':1,'backoffLimit':6,'activeDeadlineSeconds':1010}", STARTED, "p Running", "again 10s a1 r0 t0 s0 f0" },
		{ "{'completions':1,'parallelism':1,'backoffLimit':6,'activeDeadlineSeconds':1000}", STARTED, "p Running",
		  "-p ~p a0 r0 t1 s0 f1 FailureTarget=True:DeadlineExceeded" },
		{ "{'completions':1,'parallelism':1,'backoffLimit':6,'suspend':true}", STARTED, "p Running", "-p a0 r0 t1 s0 f0 Suspended=True:JobSuspended" },
		{ ONE, "{'conditions':[{'type':'Suspended','status':'True','reason':'JobSuspended','message':'Job suspended'}]}", "",
		  "+ a1 r0 t0 s0 f0 Suspended=False:JobResumed" },
		/* indexes */
		{ INDEXED, "{}", "", "+0+1 a2 r0 t0 s0 f0" },
		{ INDEXED, "{}", "p Succeeded i0;q Running i1", "+2 ~p a2 r0 t0 s1 f0 [0|]" },
		{ INDEXED, "{'completedIndexes':'0,2','succeeded':2}", "p Running i1 t50;q Running i1 t20", "-q a1 r0 t1 s2 f0 [0,2|]" },
		{ INDEXED, "{}", "p Running;q Running i7", "-p-q a0 r0 t2 s0 f0" },
		{ INDEXED, "{'completedIndexes':'0-2','succeeded':3}", "p Succeeded i3", "~p a0 r0 t0 s4 f0 [0-3|] " DONE },
		{ PER_INDEX, "{}", "p Failed i0 f0 x1 t3;q Running i1 f0;r Running i2 f0", "again 7s a2 r0 t0 s0 f0" },
		{ PER_INDEX, "{}", "p Failed i0 f0 x1 t30;q Running i1 f0;r Running i2 f0", "+0 a3 r0 t0 s0 f0" },
		{ PER_INDEX, "{}", "p Failed i0 f1 x1;q Running i1 f0;r Running i2 f0", "~p a2 r0 t0 s0 f1 [|0]" },
		{ PER_INDEX, "{'completedIndexes':'1,2','succeeded':2}", "p Failed i0 f1 x1",
		  "~p a0 r0 t0 s2 f1 [1,2|0] FailureTarget=True:FailedIndexes Failed=True:FailedIndexes" },
		{ "{'completions':3,'parallelism':3,'backoffLimit':99,'backoffLimitPerIndex':0,'maxFailedIndexes':1,'completionMode':'Indexed'}",
		  "{'failedIndexes':'0','failed':1}", "p Failed i1 f0 x1;q Running i2 f0",
		  "-q ~p ~q a0 r0 t1 s0 f3 [|0,1] FailureTarget=True:MaxFailedIndexesExceeded" },
		/* policies */
		{ "{'completions':1,'parallelism':1,'backoffLimit':0,'podFailurePolicy':{'rules':[{'action':'Ignore','onPodConditions':"
		  "[{'type':'DisruptionTarget','status':'True'}]}]}}", STARTED, "p Failed x137 target t20", "+ ~p a1 r0 t0 s0 f0" },
		{ "{'completions':2,'parallelism':2,'backoffLimit':6,'podFailurePolicy':{'rules':[{'action':'FailJob','onExitCodes':"
		  "{'operator':'In','values':[42]}}]}}", STARTED, "p Failed x42", "~p a0 r0 t0 s0 f1 FailureTarget=True:PodFailurePolicy Failed=True:PodFailurePolicy" },
		{ "{'completions':3,'parallelism':3,'backoffLimit':99,'backoffLimitPerIndex':5,'completionMode':'Indexed','podFailurePolicy':"
		  "{'rules':[{'action':'FailIndex','onExitCodes':{'operator':'NotIn','values':[1]}}]}}", STARTED,
		  "p Failed i0 f0 x3;q Running i1 f0;r Running i2 f0", "~p a2 r0 t0 s0 f1 [|0]" },
		{ "{'completions':4,'parallelism':4,'backoffLimit':6,'completionMode':'Indexed','successPolicy':{'rules':[{'succeededIndexes':'0-1',"
		  "'succeededCount':1}]}}", STARTED, "p Succeeded i1;q Running i0 ready", "-q ~q ~p a0 r0 t1 s1 f0 [1|] SuccessCriteriaMet=True:SuccessPolicy" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		CHECK_STR_ROW(i, run(&a, t[i].spec, t[i].status, t[i].pods), t[i].want);
	}
}

TEST(job_waits_for_what_it_has_done)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct job_view v = { .now_ns = NOW_S * NS_PER_S, .job = OBJECT(&a, F(spec, tree(&a, ONE))) };
	struct job_plan p;

	job_plan_make(&a, &v, &p);
	CHECK_INT(p.n_create, 0);
	job_plan_account(&p, 0, 0, 0);
	CHECK(p.write); /* startTime, ready, terminating */
	CHECK_INT(val_int(p.status, active), 0);
}

static bool all_released(void *arg, str uid)
{
	(void)arg;
	(void)uid;
	return true;
}

/* The copy still shows the finalizer of a pod that was counted. */
TEST(job_counts_once)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct job_view v = { .expectations_met = true, .now_ns = NOW_S * NS_PER_S, .released = all_released };
	struct job_plan p;

	v.job = OBJECT(&a, F(spec, tree(&a, "{'completions':3,'parallelism':1,'backoffLimit':6}")), F(status, tree(&a, "{'succeeded':1}")));
	v.pods = pods_of(&a, "p Succeeded");
	job_plan_make(&a, &v, &p);
	CHECK_INT(p.succeeded, 1);
	job_plan_account(&p, 0, 0, 1);
	CHECK_INT(p.n_release, 0);
	CHECK_INT(val_int(p.status, succeeded), 1);
}

/* A finalizer that could not be removed keeps its pod uncounted, and the Job unfinished. */
TEST(job_counts_after_release)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct job_view v = { .expectations_met = true, .now_ns = NOW_S * NS_PER_S };
	struct job_plan p;

	v.job = OBJECT(&a, F(spec, tree(&a, "{'completions':2,'parallelism':2,'backoffLimit':6}")));
	v.pods = pods_of(&a, "p Succeeded;q Succeeded");
	job_plan_make(&a, &v, &p);
	job_plan_account(&p, 0, 0, 0);
	CHECK_STR(tree_text(&a, val_get(p.status, uncountedTerminatedPods)), "{'succeeded':['p','q']}");
	job_plan_settle(&p, (const bool[]){ true, false });
	CHECK_STR(tree_text(&a, val_get(p.status, uncountedTerminatedPods)), "{'succeeded':['q']}");
	CHECK_INT(val_int(p.status, succeeded), 1);
	CHECK(p.write);
	CHECK(!p.finished);
}

TEST(job_pods_of_indexes)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val job = tree(&a, "{'metadata':{'name':'j'},'spec':{'backoffLimitPerIndex':2,'template':{'metadata':{'labels':{'app':'x'}},"
				  "'spec':{'containers':[{'name':'c','env':[{'name':'A','value':'b'}]}]}}}}");
	const struct job_new_pod n = { 3, pod_of(&a, STR("p Failed i3 f1 x1")) };

	CHECK_STR(tree_text(&a, job_pod_template(&a, job, &n)),
		  "{'metadata':{'labels':{'app':'x','batch.kubernetes.io/job-completion-index':'3'},"
		  "'finalizers':['batch.kubernetes.io/job-tracking'],"
		  "'annotations':{'batch.kubernetes.io/job-completion-index':'3','batch.kubernetes.io/job-index-failure-count':'2'}},"
		  "'spec':{'containers':[{'name':'c','env':[{'name':'A','value':'b'},{'name':'JOB_COMPLETION_INDEX','valueFrom':"
		  "{'fieldRef':{'fieldPath':'metadata.labels['batch.kubernetes.io/job-completion-index']'}}}]}],'hostname':'j-3'}}");
	CHECK_STR(job_pod_generate_name(&a, job, &n), "j-3-");
	CHECK_STR(job_pod_generate_name(&a, job, &(struct job_new_pod){ -1, VAL_EMPTY }), "");
}

TEST(job_failure_messages)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val policy = tree(&a, "{'rules':[{'action':'Count','onExitCodes':{'operator':'In','values':[1],'containerName':'other'}},"
				     "{'action':'FailJob','onExitCodes':{'operator':'NotIn','values':[1]}},"
				     "{'action':'FailJob','onPodConditions':[{'type':'DisruptionTarget','status':'True'}]}]}");
	str message = STR_NONE;

	CHECK_INT(job_failure_match(&a, policy, pod_of(&a, STR("p Failed x1")), &message), JOB_FAILURE_COUNT);
	CHECK_INT(job_failure_match(&a, policy, pod_of(&a, STR("p Failed x7")), &message), JOB_FAILURE_FAIL_JOB);
	CHECK_STR(message, "Container c for pod ns/p failed with exit code 7 matching FailJob rule at index 1");
	CHECK_INT(job_failure_match(&a, policy, pod_of(&a, STR("p Failed x1 target")), &message), JOB_FAILURE_FAIL_JOB);
	CHECK_STR(message, "Pod ns/p has condition DisruptionTarget matching FailJob rule at index 2");
}

TEST(job_backoff)
{
	static const struct { int64_t failures, want_s; } t[] = { { 0, 0 }, { 1, 10 }, { 2, 20 }, { 3, 40 }, { 6, 320 }, { 7, 600 }, { 100, 600 } };
	const int64_t old[] = { 5, 9 }, late[] = { 11 }, success[] = { 10 };

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_ROW(i, job_backoff_left_ns((struct job_backoff){ t[i].failures, 0 }, 0) == t[i].want_s * NS_PER_S);
	struct job_backoff b = job_backoff_after((struct job_backoff){ 2, 1 }, NULL, 0, old, 2);
	CHECK(b.failures == 4 && b.last_ns == 9);
	b = job_backoff_after(b, success, 1, late, 1);
	CHECK(b.failures == 1 && b.last_ns == 11);
	b = job_backoff_after(b, success, 1, old, 2);
	CHECK(b.failures == 0);
}

TEST(job_index_sets)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	static const struct { const char *in, *out; int64_t total; } t[] = {
		{ "", "", 0 }, { "0", "0", 1 }, { "0,1", "0,1", 2 }, { "0-2,3", "0-3", 4 }, { "1,3-5,7", "1,3-5,7", 5 }, { "1,x,3", "1,3", 2 },
		{ "2-20", "2-9", 8 }, { "11", "", 0 }, { "5-3", "", 0 }, { "1,,2", "1,2", 2 },
	};
	int64_t missing[3];

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct job_indexes x = job_indexes_parse(&a, str_of(t[i].in), 10);
		CHECK_STR_ROW(i, job_indexes_text(&a, &x), t[i].out);
		CHECK_ROW(i, job_indexes_total(&x) == t[i].total);
	}
	struct job_indexes x = job_indexes_parse(&a, STR("1,4-6"), 10), y = job_indexes_parse(&a, STR("0,5-8"), 10);
	struct job_indexes z = job_indexes_merge(&a, &x, &y);
	CHECK_STR(job_indexes_text(&a, &z), "0,1,4-8");
	CHECK_INT(job_indexes_common(&x, &y), 2);
	z = job_indexes_with(&a, &x, (const int64_t[]){ 3, 2, 2 }, 3);
	CHECK_STR(job_indexes_text(&a, &z), "1-6");
	CHECK(job_indexes_has(&x, 5) && !job_indexes_has(&x, 3) && !job_indexes_has(&x, 7));
	CHECK_INT(job_indexes_missing(&x, 10, 3, missing), 3);
	CHECK(missing[0] == 0 && missing[1] == 2 && missing[2] == 3);
	CHECK_INT(job_indexes_missing(&z, 7, 3, missing), 1);
}
