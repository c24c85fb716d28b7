/*
 * What goes over the wire are Kubernetes' structs of pkg extender/v1, which have no JSON names of their own: members are written as Go has them
 * (Pod, NodeNames), and read without regard to case.
 */
#include "scheduler/extenders.h"

#include <stdlib.h>
#include <strings.h>

#include "base/clock.h"
#include "base/encoding.h"
#include "base/fiber.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "net/http_client.h"
#include "net/tls.h"
#include "scheduler/preempt.h"
#include "scheduler/scheduler_priv.h"

enum { BODY_MAX = 256 << 20, DEFAULT_TIMEOUT_MS = 5000, SCORE_SCALE = 10, CONNECTIONS = 16 };

struct extender {
	struct val config;            /* of the scheduler's configuration */
	struct tls_context *tls;
	struct http_client *http;
	int64_t timeout_ms;
	unsigned does;
};

/* ---- life ---- */

static int64_t timeout_ms(struct val config)
{
	int64_t ns = 0;

	(void)duration_parse(val_str(config, httpTimeout), &ns, NULL);
	return ns > 0 ? MAX(ns / NS_PER_MS, (int64_t)1) : DEFAULT_TIMEOUT_MS;
}

static unsigned does(struct val config)
{
	return (val_str(config, filterVerb).n ? EXTENDER_FILTERS : 0) | (val_str(config, prioritizeVerb).n ? EXTENDER_PRIORITIZES : 0) |
	       (val_str(config, bindVerb).n ? EXTENDER_BINDS : 0) | (val_str(config, preemptVerb).n ? EXTENDER_PREEMPTS : 0);
}

static const char *text_or_null(struct arena *a, str text) { return text.n ? arena_str(a, text).p : NULL; }

/* PEM that stands in the configuration itself; NULL: it does not. */
static int decode_pem(struct arena *a, str data, const char **ret, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	int r = data.n ? base64_decode_buf(&b, data, err) : 0;

	*ret = data.n && r == 0 ? arena_str(a, buf_str(&b)).p : NULL;
	return r < 0 ? err_wrap(err, r, "tlsConfig") : 0;
}

/* Without an authority to check it with, any certificate will do, as in Kubernetes. */
static int make_tls(struct extender *e, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val t = val_get(e->config, tlsConfig);
	struct tls_options o = { .server_name = text_or_null(&a, val_str(t, serverName)) };
	int r;

	if ((r = decode_pem(&a, val_str(t, caData), &o.ca_pem, err)) < 0 || (r = decode_pem(&a, val_str(t, certData), &o.cert_pem, err)) < 0 ||
	    (r = decode_pem(&a, val_str(t, keyData), &o.key_pem, err)) < 0)
		return r;
	o.ca_file = o.ca_pem ? NULL : text_or_null(&a, val_str(t, caFile));
	o.cert_file = o.cert_pem ? NULL : text_or_null(&a, val_str(t, certFile));
	o.key_file = o.key_pem ? NULL : text_or_null(&a, val_str(t, keyFile));
	o.insecure_skip_verify = val_bool(t, insecure) || (val_bool(e->config, enableHTTPS) && !o.ca_pem && !o.ca_file);
	return tls_client_new(&o, &e->tls, err);
}

int extenders_new(struct scheduler *s, struct val list, struct err *err)
{
	s->extenders = mem_zalloc((val_len(list) + 1) * sizeof(struct extender *));
	VAL_EACH(config, list) {
		struct extender *e = s->extenders[s->n_extenders++] = mem_zalloc(sizeof(*e));
		e->config = *config;
		e->timeout_ms = timeout_ms(*config);
		e->does = does(*config);
		int r = make_tls(e, err);
		if (r < 0)
			return err_wrap(err, r, "extender \"" STR_FMT "\"", STR_ARG(val_str(*config, urlPrefix)));
		e->http = http_client_new(&(struct http_client_options){ .tls = e->tls, .max_idle_per_host = CONNECTIONS });
	}
	return 0;
}

void extenders_free(struct scheduler *s)
{
	for (size_t i = 0; i < s->n_extenders; i++) {
		http_client_free(s->extenders[i]->http);
		tls_context_free(s->extenders[i]->tls);
		free(s->extenders[i]);
	}
	free(s->extenders);
}

bool extenders_have(const struct scheduler *s, enum extender_does what)
{
	for (size_t i = 0; i < s->n_extenders; i++)
		if (s->extenders[i]->does & what)
			return true;
	return false;
}

/* ---- calls ---- */

/* Go's decoder takes any case. */
static struct val member_of(struct val object, const char *name)
{
	size_t n = strlen(name);

	VAL_EACH_MEMBER(m, object) {
		str key = atom_str(m->key);
		if (key.n == n && strncasecmp(key.p, name, n) == 0)
			return m->val;
	}
	return VAL_EMPTY;
}

/* (suspends) POST; *ret is what was answered, in the arena. */
static int call_extender(struct extender *e, struct arena *a, str verb, str body, struct val *ret, struct err *err)
{
	CLEANUP(http_call_freep) struct http_call *call = NULL;
	const struct http_header type = { STR("content-type"), STR("application/json") };
	const struct http1_head *head;
	str url = val_str(e->config, urlPrefix), text;

	while (str_ends(url, STR("/")))
		url.n--;
	url = arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(url), STR_ARG(verb));
	DEADLINE_SCOPE(e->timeout_ms);
	int r = http_call_open(e->http, &(struct http_request){ .method = STR("POST"), .url = url, .headers = &type, .n_headers = 1, .body = body },
			       &call, err);
	if (r < 0 || (r = http_call_head(call, &head, err)) < 0)
		return r;
	if (head->status != 200)
		return err_set(err, ERR_UNAVAILABLE, "failed " STR_FMT " with extender at URL " STR_FMT ", code %d", STR_ARG(verb), STR_ARG(url),
			       head->status);
	if ((r = http_call_read_all(call, BODY_MAX, &text, err)) < 0)
		return r;
	return json_decode(a, arena_str(a, text), &(struct json_decode_options){ .sort_keys = true }, ret, err);
}

static int add_object(struct buf *b, const char *name, struct val v, const struct type *type, struct err *err)
{
	buf_addf(b, "\"%s\":", name);
	return json_encode(b, v, &(struct json_encode_options){ .type = type }, err);
}

static str node_name(const struct cycle *c, uint32_t node) { return word_str(c->nodes, c->nodes->name[node]); }

/* ExtenderArgs: the pod and the nodes, by name for those who know nodes themselves. */
static int add_args(struct extender *e, struct cycle *c, const uint32_t *nodes, size_t n, struct buf *b, struct err *err)
{
	bool names = val_bool(e->config, nodeCacheCapable);
	int r;

	buf_addc(b, '{');
	if ((r = add_object(b, "Pod", c->pod, TYPE(core_v1, Pod), err)) < 0)
		return r;
	buf_add(b, names ? STR(",\"Nodes\":null,\"NodeNames\":[") : STR(",\"Nodes\":{\"metadata\":{},\"items\":["));
	for (size_t i = 0; i < n; i++) {
		if (i)
			buf_addc(b, ',');
		if (names)
			json_quote(b, node_name(c, nodes[i]), false);
		else if ((r = json_encode(b, c->nodes->object[nodes[i]]->val, &(struct json_encode_options){ .type = TYPE(core_v1, Node) }, err)) < 0)
			return r;
	}
	buf_add(b, names ? STR("]}") : STR("]},\"NodeNames\":null}"));
	return buf_check(b, "what an extender is asked", err);
}

static bool lists_resource(struct extender *e, struct val amounts)
{
	VAL_EACH(m, val_get(e->config, managedResources))
		if (val_exists(val_find(amounts, val_str(*m, name))))
			return true;
	return false;
}

/* It looks after no resource in particular, or after one that the pod asks for. */
static bool is_interested(struct extender *e, struct val pod)
{
	static const atom lists[] = { A_containers, A_initContainers };

	if (!val_len(val_get(e->config, managedResources)))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		VAL_EACH(c, val_member(val_get(pod, spec), lists[i]))
			if (lists_resource(e, val_get(*c, resources, requests)) || lists_resource(e, val_get(*c, resources, limits)))
				return true;
	return false;
}

/* ---- filter ---- */

/* Which nodes it leaves: name -> anything. */
static void names_left(struct val result, bool names, struct map *ret)
{
	struct val list = names ? member_of(result, "NodeNames") : member_of(member_of(result, "Nodes"), "items");

	map_init(ret);
	VAL_EACH(x, list)
		map_put(ret, names ? val_as_str(*x) : val_str(*x, metadata, name), (void *)(uintptr_t)x);
}

/* Every node that it names must have been asked about: as many are found as it names. */
static int check_names(struct extender *e, const struct cycle *c, struct map *left, const uint32_t *nodes, size_t n, struct err *err)
{
	struct map asked;
	int r = 0;
	str name;

	map_init(&asked);
	for (size_t i = 0; i < n; i++)
		map_put(&asked, node_name(c, nodes[i]), &asked);
	struct map_iter it = map_iter(left);
	while (r == 0 && map_next(&it, &name))
		if (!map_get(&asked, name))
			r = err_set(err, ERR_INVALID, "extender \"" STR_FMT "\" claims a filtered node \"" STR_FMT "\" which is not found in the input "
				    "node list", STR_ARG(val_str(e->config, urlPrefix)), STR_ARG(name));
	map_done(&asked);
	return r;
}

static int filter_one(struct extender *e, struct cycle *c, uint32_t *nodes, size_t *n, uint8_t *verdicts, struct fit_error *why, struct err *err)
{
	CLEANUP(buf_done) struct buf body = BUF_INIT(BODY_MAX);
	CLEANUP(map_done) struct map names_map = MAP_INIT;
	struct val result, failed, unresolvable;
	size_t left = 0;
	int r = add_args(e, c, nodes, *n, &body, err);

	if (r < 0 || (r = call_extender(e, c->arena, val_str(e->config, filterVerb), buf_str(&body), &result, err)) < 0)
		return r;
	str error = val_as_str(member_of(result, "Error"));
	if (error.n)
		return err_set(err, ERR_UNAVAILABLE, STR_FMT, STR_ARG(error));
	bool names = val_bool(e->config, nodeCacheCapable) && val_is(member_of(result, "NodeNames"), VAL_LIST);
	names_left(result, names, &names_map);
	if (names && (r = check_names(e, c, &names_map, nodes, *n, err)) < 0)
		return r;
	failed = member_of(result, "FailedNodes");
	unresolvable = member_of(result, "FailedAndUnresolvableNodes");
	for (size_t i = 0; i < *n; i++) {
		str name = node_name(c, nodes[i]);
		if (map_get(&names_map, name)) {
			nodes[left++] = nodes[i];
			continue;
		}
		struct val reason = val_find(unresolvable, name);
		verdicts[nodes[i]] = val_exists(reason) ? UNRESOLVABLE : UNSCHEDULABLE;
		fit_error_add(why, val_as_str(val_exists(reason) ? reason : val_find(failed, name)), 1);
	}
	*n = left;
	return 0;
}

int extenders_filter(struct scheduler *s, struct cycle *c, uint32_t *nodes, size_t *n, uint8_t *verdicts, struct fit_error *why, struct err *err)
{
	for (size_t i = 0; i < s->n_extenders && *n; i++) {
		struct extender *e = s->extenders[i];
		struct err failed = ERR_INIT;
		if (!(e->does & EXTENDER_FILTERS) || !is_interested(e, c->pod))
			continue;
		int r = filter_one(e, c, nodes, n, verdicts, why, &failed);
		if (r < 0 && (r == -ERR_CANCELED || !val_bool(e->config, ignorable))) {
			*err = failed;
			return r;
		}
		if (r < 0)
			log_info("an extender failed and is ignored", KV("extender", val_str(e->config, urlPrefix)), KV("err", &failed));
	}
	return 0;
}

/* ---- prioritize ---- */

int64_t extender_score_add(int64_t total, int64_t score, int64_t weight)
{
	bool up = (score > 0) == (weight > 0);

	if (__builtin_mul_overflow(score, SCORE_SCALE, &score) || __builtin_mul_overflow(score, weight, &score) ||
	    __builtin_add_overflow(total, score, &total))
		return up ? INT64_MAX : INT64_MIN;
	return total;
}

static int prioritize_one(struct extender *e, struct cycle *c, const uint32_t *nodes, size_t n, int64_t *totals, struct err *err)
{
	CLEANUP(buf_done) struct buf body = BUF_INIT(BODY_MAX);
	struct map scores;
	struct val result;
	int r = add_args(e, c, nodes, n, &body, err);

	if (r < 0 || (r = call_extender(e, c->arena, val_str(e->config, prioritizeVerb), buf_str(&body), &result, err)) < 0)
		return r;
	map_init(&scores);
	VAL_EACH(x, result) {
		int64_t *score = ARENA_ARRAY(c->arena, int64_t, 1);
		*score = val_as_int(member_of(*x, "Score"));
		map_put(&scores, val_as_str(member_of(*x, "Host")), score);
	}
	for (size_t i = 0; i < n; i++) {
		const int64_t *score = map_get(&scores, node_name(c, nodes[i]));
		if (score)
			totals[i] = extender_score_add(totals[i], *score, val_int(e->config, weight));
	}
	map_done(&scores);
	return 0;
}

void extenders_prioritize(struct scheduler *s, struct cycle *c, const uint32_t *nodes, size_t n, int64_t *totals)
{
	for (size_t i = 0; i < s->n_extenders; i++) {
		struct extender *e = s->extenders[i];
		struct err failed = ERR_INIT;
		if (!(e->does & EXTENDER_PRIORITIZES) || !is_interested(e, c->pod))
			continue;
		if (prioritize_one(e, c, nodes, n, totals, &failed) < 0)
			log_info("an extender gives no scores", KV("extender", val_str(e->config, urlPrefix)), KV("err", &failed));
	}
}

/* ---- bind ---- */

static int bind_one(struct extender *e, struct val pod, str node, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf body = BUF_INIT(4096);
	struct val result;

	buf_add(&body, STR("{\"PodName\":"));
	json_quote(&body, val_str(pod, metadata, name), false);
	buf_add(&body, STR(",\"PodNamespace\":"));
	json_quote(&body, val_str(pod, metadata, namespace), false);
	buf_add(&body, STR(",\"PodUID\":"));
	json_quote(&body, val_str(pod, metadata, uid), false);
	buf_add(&body, STR(",\"Node\":"));
	json_quote(&body, node, false);
	buf_addc(&body, '}');
	int r = call_extender(e, &a, val_str(e->config, bindVerb), buf_str(&body), &result, err);
	if (r < 0)
		return r;
	str error = val_as_str(member_of(result, "Error"));
	return error.n ? err_set(err, ERR_UNAVAILABLE, STR_FMT, STR_ARG(error)) : 1;
}

int extenders_bind(struct scheduler *s, struct val pod, str node, struct err *err)
{
	for (size_t i = 0; i < s->n_extenders; i++) {
		struct extender *e = s->extenders[i];
		if (!(e->does & EXTENDER_BINDS) || !is_interested(e, pod))
			continue;
		int r = bind_one(e, pod, node, err);
		if (r > 0 || r == -ERR_CANCELED || !val_bool(e->config, ignorable))
			return r;
		log_info("an extender could not bind and is ignored", KV("extender", val_str(e->config, urlPrefix)), KV("err", err));
		err_clear(err);
	}
	return 0;
}

/* ---- preempt ---- */

/* ExtenderPreemptionArgs: victims by node, as uids for those who know pods themselves. */
static int add_candidates(struct extender *e, struct cycle *c, const struct preempt_victims *v, size_t n, struct buf *b, struct err *err)
{
	bool uids = val_bool(e->config, nodeCacheCapable);
	int r;

	buf_addc(b, '{');
	if ((r = add_object(b, "Pod", c->pod, TYPE(core_v1, Pod), err)) < 0)
		return r;
	buf_add(b, uids ? STR(",\"NodeNameToVictims\":null,\"NodeNameToMetaVictims\":{") : STR(",\"NodeNameToVictims\":{"));
	for (size_t i = 0; i < n; i++) {
		if (i)
			buf_addc(b, ',');
		json_quote(b, node_name(c, v[i].node), false);
		buf_add(b, STR(":{\"Pods\":["));
		for (size_t k = 0; k < v[i].n; k++) {
			struct val pod = v[i].pods[k]->pod->val;
			if (k)
				buf_addc(b, ',');
			if (uids) {
				buf_add(b, STR("{\"UID\":"));
				json_quote(b, val_str(pod, metadata, uid), false);
				buf_addc(b, '}');
			} else if ((r = json_encode(b, pod, &(struct json_encode_options){ .type = TYPE(core_v1, Pod) }, err)) < 0) {
				return r;
			}
		}
		buf_addf(b, "],\"NumPDBViolations\":%u}", v[i].violations);
	}
	buf_add(b, uids ? STR("}}") : STR("},\"NodeNameToMetaVictims\":null}"));
	return buf_check(b, "what an extender is asked", err);
}

static int take_victims(struct extender *e, struct cycle *c, struct val meta, struct preempt_victims *v, struct err *err)
{
	struct val pods = member_of(meta, "Pods");
	struct placed **chosen = ARENA_ARRAY(c->arena, struct placed *, val_len(pods) + 1);
	size_t n = 0;

	VAL_EACH(p, pods) {
		str uid = val_as_str(member_of(*p, "UID"));
		struct placed *found = NULL;
		for (uint32_t i = 0; i < c->nodes->n_pods[v->node] && !found; i++)
			if (str_eq(word_str(c->nodes, c->nodes->pods[v->node][i]->uid), uid))
				found = c->nodes->pods[v->node][i];
		if (!found)
			return err_set(err, ERR_INVALID, "extender: " STR_FMT " claims to preempt pod (UID: &MetaPod{UID:" STR_FMT ",}) on node: " STR_FMT
				       ", but the pod is not found on that node", STR_ARG(val_str(e->config, urlPrefix)), STR_ARG(uid),
				       STR_ARG(node_name(c, v->node)));
		chosen[n++] = found;
	}
	v->pods = chosen;
	v->n = n;
	v->violations = (unsigned)val_as_int(member_of(meta, "NumPDBViolations"));
	preempt_weigh(v);
	return 0;
}

static int preempt_one(struct extender *e, struct cycle *c, struct preempt_victims *v, size_t *n, struct err *err)
{
	CLEANUP(buf_done) struct buf body = BUF_INIT(BODY_MAX);
	struct preempt_victims *kept = ARENA_ARRAY(c->arena, struct preempt_victims, *n + 1);
	struct val result;
	size_t left = 0;
	int r = add_candidates(e, c, v, *n, &body, err);

	if (r < 0 || (r = call_extender(e, c->arena, val_str(e->config, preemptVerb), buf_str(&body), &result, err)) < 0)
		return r;
	result = member_of(result, "NodeNameToMetaVictims");
	for (size_t i = 0; i < *n; i++) {
		struct val meta = val_find(result, node_name(c, v[i].node));
		if (!val_exists(meta))
			continue;
		kept[left] = v[i];
		if ((r = take_victims(e, c, meta, &kept[left], err)) < 0)
			return r;
		if (kept[left].n)
			left++;
		else if (!val_bool(e->config, ignorable))
			return err_set(err, ERR_INVALID, "expected at least one victim pod on node \"" STR_FMT "\"",
				       STR_ARG(node_name(c, v[i].node)));
	}
	memcpy(v, kept, left * sizeof(*v));
	*n = left;
	return 0;
}

int extenders_preempt(struct scheduler *s, struct cycle *c, struct preempt_victims *candidates, size_t *n, struct err *err)
{
	for (size_t i = 0; i < s->n_extenders && *n; i++) {
		struct extender *e = s->extenders[i];
		if (!(e->does & EXTENDER_PREEMPTS) || !is_interested(e, c->pod))
			continue;
		int r = preempt_one(e, c, candidates, n, err);
		if (r == 0)
			continue;
		if (r == -ERR_CANCELED || !val_bool(e->config, ignorable))
			return r;
		log_info("an extender failed and is ignored", KV("extender", val_str(e->config, urlPrefix)), KV("err", err));
		err_clear(err);
	}
	return 0;
}
