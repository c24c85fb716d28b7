/* Claims of pods that end, go, or are heard of too early. */
#include "controllers/resource_claim.h"

#include "controllers/cluster_testing.h"
#include "controllers/controller_priv.h"

#define CLAIM TYPE(resource_v1, ResourceClaim)
#define TEMPLATE TYPE(resource_v1, ResourceClaimTemplate)

enum { SEEN_MS = 100 }; /* informers have seen it by then */

static const char *const enabled[] = { "resourceclaim-controller", NULL };
static const char template[] = "{'metadata':{'name':'t','namespace':'n'},'spec':{'spec':{'devices':{'requests':[{'name':'q','exactly':{'deviceClassName':'gpu'}}]}}}}";
static const char pod[] = "{'metadata':{'name':'p','namespace':'n'},'spec':{'restartPolicy':'Never','resourceClaims':[{'name':'r','resourceClaimTemplateName':'t'}],"
	"'containers':[{'name':'c','image':'x'}]}}";

static unsigned n_made;

static void count_made(struct cluster *k, const struct client_request *q)
{
	(void)k;
	n_made += q->type == CLAIM && strcmp(q->verb, "create") == 0;
}

static void make(struct cluster *k, const struct type *type, const char *json)
{
	CHECK_OK(&k->w, client_create(k->w.c, type, tree(&k->w, json), NULL, NULL, &k->w.err));
}

static bool pod_knows(struct cluster *k) { return val_len(val_get(get(k, POD, "p"), status, resourceClaimStatuses)) == 1; }
static bool has_claim(struct cluster *k) { return val_len(list_of(k, CLAIM)) > 0; }
static bool has_no_claim(struct cluster *k) { return !has_claim(k); }

/* What was made for a pod goes when it has ended, and does not come back. */
FIBER_TEST(resource_claim_of_an_ended_pod_is_not_made_again)
{
	static struct cluster k; /* frames are small */

	n_made = 0;
	cluster_init(&k, (struct controllers_options){ .enabled = enabled });
	k.before = count_made;
	make(&k, TEMPLATE, template);
	make(&k, POD, pod);
	cluster_wait(&k, pod_knows, "the pod's claim");
	struct val ended = val_with(&k.w.arena, get(&k, POD, "p"), VAL_LIT("Succeeded"), status, phase);
	CHECK_OK(&k.w, client_update(k.w.c, POD, ended, &(struct client_write_options){ .subresource = STR("status") }, NULL, &k.w.err));
	cluster_wait(&k, has_no_claim, "the claim to go");
	CHECK_INT(fiber_sleep_ms(2 * SEEN_MS, NULL), 0);
	CHECK(has_no_claim(&k));
	CHECK_INT(n_made, 1);
	cluster_done(&k);
}

/* The pod's status, which names the claim, is heard of sooner than the claim. */
FIBER_TEST(resource_claim_is_made_once)
{
	static struct cluster k; /* frames are small */

	n_made = 0;
	cluster_init(&k, (struct controllers_options){ .enabled = enabled });
	make(&k, TEMPLATE, template);
	cluster_wait(&k, has_no_claim, "nothing");
	CHECK_INT(fiber_sleep_ms(SEEN_MS, NULL), 0);
	k.held = CLAIM;
	k.before = count_made;
	make(&k, POD, pod);
	cluster_wait(&k, pod_knows, "the pod's claim");
	CHECK_INT(fiber_sleep_ms(2 * SEEN_MS, NULL), 0);
	k.held = NULL;
	CHECK_INT(fiber_sleep_ms(SEEN_MS, NULL), 0);
	CHECK_INT(n_made, 1);
	CHECK_INT(val_len(list_of(&k, CLAIM)), 1);
	cluster_done(&k);
}

/* ---- what is remembered ---- */

static void end_pod(struct cluster *k, const struct client_request *q)
{
	if (q->type != CLAIM || strcmp(q->verb, "create") != 0)
		return;
	k->before = NULL;
	CHECK_OK(&k->w, client_delete(k->w.c, POD, STR("n"), STR("p"), &(struct client_delete_options){ .grace_s = 0 }, &k->w.err));
	CHECK_INT(fiber_sleep_ms(SEEN_MS, NULL), 0);
}

static int run_queue(void *arg)
{
	struct controller *c = arg;
	return work_queue_run(c->queue, 1, controller_sync_key, c, NULL);
}

FIBER_TEST(resource_claim_remembers_only_for_pods_that_stay)
{
	static const char *const nobody[] = { NULL };
	static struct cluster k; /* frames are small */
	struct controller c = { .kind = &controller_resource_claim, .o = &k.options };

	for (int goes = 0; goes < 2; goes++) {
		cluster_init(&k, (struct controllers_options){ .enabled = nobody });
		c.client = client_for(&k, "resource-claim-controller");
		c.informers = informers_new(client_for(&k, NULL));
		c.queue = work_queue_new(&(struct work_queue_options){ .name = "claims" });
		CHECK_OK(&k.w, recorder_new(c.client, STR("test"), STR_NONE, &c.recorder, &k.w.err));
		CHECK_OK(&k.w, c.kind->start(&c, &k.w.err));
		CHECK_OK(&k.w, informers_start(c.informers, &k.w.err));
		CHECK_OK(&k.w, informers_wait(c.informers, &k.w.err));
		struct fiber *works = start(run_queue, &c);
		make(&k, TEMPLATE, template);
		CHECK_INT(fiber_sleep_ms(SEEN_MS, NULL), 0);
		k.before = goes ? end_pod : NULL;
		make(&k, POD, pod);
		cluster_wait(&k, has_claim, "the claim");
		CHECK_INT(fiber_sleep_ms(SEEN_MS, NULL), 0);
		const struct claims_state *s = c.state;
		CHECK_INT(map_len(&s->made), goes ? 0 : 1);
		(void)fiber_stop(works);
		controller_unwatch(&c);
		c.kind->stop(&c);
		recorder_free(c.recorder);
		work_queue_free(c.queue);
		informers_free(c.informers);
		cluster_done(&k);
	}
}
