/*
 * ValidatingAdmissionWebhook: servers that may refuse a request. All that want to hear of it are asked at the same time; the first
 * one that refuses is the reason that the client is told.
 */
#include "apiserver/admission/webhook_call.h"
#include "apiserver/admission/webhook_metrics.h"
#include "base/clock.h"
#include "base/fiber.h"

/* All questions about one request. */
struct asking {
	struct hook_call *calls;
	size_t n;
	int result;                   /* of the first that refused */
	bool canceled;
};

struct asked {
	struct asking *all;
	struct hook_call *call;
};

static int ask(void *arg)
{
	struct asked *one = arg;
	struct asking *all = one->all;
	int64_t begun_ns = clock_now_ns();
	hook_ask(one->call);
	hook_metrics_count(one->call->source->metrics, one->call, clock_now_ns() - begun_ns);
	if (one->call->outcome == HOOK_CANCELED)
		all->canceled = true;
	else if (all->result == 0)
		all->result = hook_conclude(one->call);
	return 0;
}

static int ask_all(struct asking *all, struct arena *a, struct err *err)
{
	CLEANUP(fiber_group_done) struct fiber_group group;
	fiber_group_init(&group);
	struct asked *list = ARENA_ARRAY(a, struct asked, all->n);
	for (size_t i = 0; i < all->n; i++) {
		list[i] = (struct asked){ all, &all->calls[i] };
		if (all->n == 1) {
			(void)ask(&list[i]);
			break;
		}
		int r = fiber_group_spawn(&group, ask, &list[i], err, "webhook");
		if (r < 0)
			return r;
	}
	int r = fiber_group_wait(&group, err);
	if (r == 0 && all->canceled)
		r = fiber_check(err);
	return r < 0 ? r : all->result;
}

/* The request in this version; every version is made once. */
static int version_for(const struct hook_request *h, const struct endpoint *e, const struct asking *so_far,
		       const struct hook_version **ret)
{
	for (size_t i = 0; i < so_far->n; i++)
		if (so_far->calls[i].version->endpoint == e) {
			*ret = so_far->calls[i].version;
			return 0;
		}
	struct hook_version *v = ARENA_NEW(h->q->arena, struct hook_version);
	struct err why = ERR_INIT;
	int r = hook_version_of(h, e, v, &why);
	*ret = v;
	return r < 0 ? fail_internal(h->q, STR_FMT, STR_ARG(err_str(&why))) : 0;
}

static int collect(const struct hook_request *h, struct hook_source *source, const struct hook_list *list, struct asking *all,
		   struct err *err)
{
	for (size_t i = 0; i < list->n; i++) {
		const struct endpoint *e;
		const struct hook_version *version;
		int r = hook_wants(h, list->hooks[i], &e, err);
		if (r == 0)
			continue;
		if (r < 0 || (r = version_for(h, e, all, &version)) < 0)
			return r;
		if (!all->calls)
			all->calls = ARENA_ARRAY(h->q->arena, struct hook_call, list->n);
		all->calls[all->n] = (struct hook_call){
			.source = source, .hook = list->hooks[i], .request = h, .version = version, .index = (unsigned)all->n,
			.deadline_ns = fiber_deadline_ns(),
		};
		all->n++;
	}
	return 0;
}

static int validate(struct request *q, struct err *err)
{
	struct hook_source *source = admission_state(q->server, &admission_validating_webhook);
	if (hook_is_exempt(q))
		return 0;
	CLEANUP(hook_list_unrefp) struct hook_list *list = hook_list_now(source);
	struct asking all = { .n = 0 };
	if (!list->n)
		return 0;
	struct hook_request h = hook_request_of(q);
	int r = collect(&h, source, list, &all, err);
	return r < 0 || !all.n ? r : ask_all(&all, q->arena, err);
}

static int plugin_open(struct apiserver *s, struct val config, void **ret_state, struct err *err)
{
	return hook_source_new(s, STR("validatingwebhookconfigurations"), "validating", config,
			       (struct hook_source **)ret_state, err);
}

static void plugin_close(void *state) { hook_source_free(state); }

const struct admission_plugin admission_validating_webhook = {
	.name = "ValidatingAdmissionWebhook", .validate = validate, .open = plugin_open, .close = plugin_close,
};
