/*
 * Three relations, each a count per pair:
 *
 *	reach          (object, node)     ways from the object to a pod on the node
 *	claim_nodes    (claim, node)      pods on the node that use the claim
 *	claim_secrets  (claim, secret)    volumes bound to the claim that need the secret
 *
 * The ways to a secret through volumes are the product of the last two, summed over claims. A sum of products can be
 * kept up to date from either side: when one factor changes by d, the sum changes by d times the other factor. So neither
 * pods nor volumes have to be remembered, and no order of events is better than another.
 *
 * A pair is one key: the length of its first half, the first half, the second. Names come from outside and may hold any
 * byte; with the length in front no two pairs look alike.
 */
#include "apiserver/authz/node_graph.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/omap.h"
#include "codec/atoms.h"

enum {
	KEY_MAX = 64 << 20,
	KEPT_MAX = 64 << 10,          /* of memory for building */
	ASKED_MAX = 1024,             /* no object and no node has a name that makes a longer key */
	HEAD = sizeof(uint32_t),
};

/* All that a pod or a volume brings into the graph. */
struct brought {
	struct buf halves;            /* each behind its length */
	str namespace;
};

struct node_graph {
	struct omap *reach, *claim_nodes, *claim_secrets;
	struct brought was, is;       /* of one change; kept for the next */
	struct buf key, prefix;
};

/* Counts are kept in the pointers themselves. */
static void count_keep(void *count) { (void)count; }
static const struct omap_type count_type = { count_keep, count_keep };

struct node_graph *node_graph_new(void)
{
	struct node_graph *g = mem_zalloc(sizeof *g);
	g->reach = omap_new(&count_type);
	g->claim_nodes = omap_new(&count_type);
	g->claim_secrets = omap_new(&count_type);
	buf_init(&g->was.halves, KEY_MAX);
	buf_init(&g->is.halves, KEY_MAX);
	buf_init(&g->key, KEY_MAX);
	buf_init(&g->prefix, KEY_MAX);
	return g;
}

void node_graph_free(struct node_graph *g)
{
	if (!g)
		return;
	omap_free(g->reach);
	omap_free(g->claim_nodes);
	omap_free(g->claim_secrets);
	buf_done(&g->was.halves);
	buf_done(&g->is.halves);
	buf_done(&g->key);
	buf_done(&g->prefix);
	free(g);
}

size_t node_graph_len(const struct node_graph *g)
{
	return omap_len(g->reach) + omap_len(g->claim_nodes) + omap_len(g->claim_secrets);
}

/* ---- pairs ---- */

/* "namespace/name" behind what sort of object it is: the first half of a pair. */
static void half_of(struct buf *b, enum node_reach what, str namespace, str name)
{
	buf_reset(b);
	buf_addc(b, (char)what);
	buf_add(b, namespace);
	buf_addc(b, '/');
	buf_add(b, name);
}

static void pair_of(struct buf *b, str first, str second)
{
	uint32_t n = (uint32_t)first.n;
	buf_reset(b);
	buf_add(b, str_span((const char *)&n, HEAD));
	buf_add(b, first);
	buf_add(b, second);
}

static void count_add(struct node_graph *g, struct omap *m, str first, str second, int64_t d)
{
	pair_of(&g->key, first, second);
	str key = buf_str(&g->key);
	int64_t n = (int64_t)(intptr_t)omap_get(m, key) + d;
	if (n > 0)
		omap_put(m, key, (void *)(intptr_t)n);
	else
		omap_remove(m, key);
}

/* Adds d to (second, other) in reach for each (first, second) of factor, as often as that is counted. */
static void reach_add_product(struct node_graph *g, const struct omap *factor, str first, str other, bool other_is_node,
			      int64_t d)
{
	pair_of(&g->prefix, first, STR_NONE);
	str prefix = buf_str(&g->prefix), key;
	struct omap_iter it;
	void *count;
	omap_seek(&it, factor, prefix);
	while ((count = omap_next(&it, &key)) && str_starts(key, prefix)) {
		str second = str_skip(key, prefix.n);
		int64_t n = (int64_t)(intptr_t)count * d;
		count_add(g, g->reach, other_is_node ? second : other, other_is_node ? other : second, n);
	}
}

static char *put_text(char *at, str s)
{
	if (s.n)
		memcpy(at, s.p, s.n);
	return at + s.n;
}

bool node_graph_reaches(const struct node_graph *g, enum node_reach what, str namespace, str name, str node)
{
	char key[ASKED_MAX], *at = key + HEAD + 1;
	uint32_t n = (uint32_t)(1 + namespace.n + 1 + name.n);
	if (namespace.n + name.n + node.n + HEAD + 2 > sizeof key)
		return false;
	memcpy(key, &n, HEAD);
	key[HEAD] = (char)what;
	at = put_text(at, namespace);
	*at++ = '/';
	at = put_text(put_text(at, name), node);
	return omap_get(what == REACH_VOLUME_CLAIM ? g->claim_nodes : g->reach, str_span(key, (size_t)(at - key)));
}

/* ---- what a pod names ---- */

struct visitor {
	struct arena *arena;
	node_reference_fn *visit;
	void *arg;
};

static void found(const struct visitor *v, enum node_reach what, str name)
{
	if (name.n)
		v->visit(what, name, v->arg);
}

static void visit_container(const struct visitor *v, struct val container)
{
	VAL_EACH(from, val_get(container, envFrom)) {
		found(v, REACH_SECRET, val_str(*from, secretRef, name));
		found(v, REACH_CONFIG_MAP, val_str(*from, configMapRef, name));
	}
	VAL_EACH(env, val_get(container, env)) {
		found(v, REACH_SECRET, val_str(*env, valueFrom, secretKeyRef, name));
		found(v, REACH_CONFIG_MAP, val_str(*env, valueFrom, configMapKeyRef, name));
	}
}

bool pod_is_mirror(struct val pod)
{
	return val_exists(val_find(val_get(pod, metadata, annotations), STR("kubernetes.io/config.mirror")));
}

str pod_ephemeral_claim(struct arena *a, struct val pod, struct val volume)
{
	return arena_printf(a, STR_FMT "-" STR_FMT, STR_ARG(val_str(pod, metadata, name)), STR_ARG(val_str(volume, name)));
}

static void visit_volume(const struct visitor *v, struct val pod, struct val volume)
{
	static const atom with_secret_ref[] = { A_cephfs, A_cinder, A_flexVolume, A_rbd, A_scaleIO, A_iscsi, A_storageos };
	found(v, REACH_SECRET, val_str(volume, azureFile, secretName));
	found(v, REACH_SECRET, val_str(volume, secret, secretName));
	found(v, REACH_SECRET, val_str(volume, csi, nodePublishSecretRef, name));
	found(v, REACH_CONFIG_MAP, val_str(volume, configMap, name));
	for (size_t i = 0; i < ARRAY_LEN(with_secret_ref); i++)
		found(v, REACH_SECRET, val_str(val_member(volume, with_secret_ref[i]), secretRef, name));
	VAL_EACH(source, val_get(volume, projected, sources)) {
		found(v, REACH_SECRET, val_str(*source, secret, name));
		found(v, REACH_CONFIG_MAP, val_str(*source, configMap, name));
	}
	if (val_has(volume, ephemeral))
		found(v, REACH_VOLUME_CLAIM, pod_ephemeral_claim(v->arena, pod, volume));
	else
		found(v, REACH_VOLUME_CLAIM, val_str(volume, persistentVolumeClaim, claimName));
}

/* A claim that is made from a template has the name that its maker wrote into the pod's status. */
static void visit_resource_claims(const struct visitor *v, struct val pod)
{
	VAL_EACH(claim, val_get(pod, spec, resourceClaims)) {
		found(v, REACH_RESOURCE_CLAIM, val_str(*claim, resourceClaimName));
		if (val_has(*claim, resourceClaimName) || !val_has(*claim, resourceClaimTemplateName))
			continue;
		VAL_EACH(status, val_get(pod, status, resourceClaimStatuses))
			if (str_eq(val_str(*status, name), val_str(*claim, name))) {
				found(v, REACH_RESOURCE_CLAIM, val_str(*status, resourceClaimName));
				break;
			}
	}
	found(v, REACH_RESOURCE_CLAIM, val_str(pod, status, extendedResourceClaimStatus, resourceClaimName));
}

void pod_references(struct arena *a, struct val pod, node_reference_fn *visit, void *arg)
{
	static const atom lists[] = { A_initContainers, A_containers, A_ephemeralContainers };
	const struct visitor v = { a, visit, arg };
	struct val spec = val_get(pod, spec);
	found(&v, REACH_SERVICE_ACCOUNT, val_str(spec, serviceAccountName));
	VAL_EACH(s, val_get(spec, imagePullSecrets))
		found(&v, REACH_SECRET, val_str(*s, name));
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		VAL_EACH(container, val_member(spec, lists[i]))
			visit_container(&v, *container);
	VAL_EACH(volume, val_get(spec, volumes))
		visit_volume(&v, pod, *volume);
	visit_resource_claims(&v, pod);
}

/* ---- pods ---- */

static void bring(struct brought *to, enum node_reach what, str namespace, str name)
{
	uint32_t n = (uint32_t)(1 + namespace.n + 1 + name.n);
	buf_add(&to->halves, str_span((const char *)&n, HEAD));
	buf_addc(&to->halves, (char)what);
	buf_add(&to->halves, namespace);
	buf_addc(&to->halves, '/');
	buf_add(&to->halves, name);
}

static bool next_half(str *rest, str *ret)
{
	uint32_t n;
	if (rest->n < HEAD)
		return false;
	memcpy(&n, rest->p, HEAD);
	*ret = str_head(str_skip(*rest, HEAD), n);
	*rest = str_skip(*rest, HEAD + n);
	return true;
}

static void bring_reference(enum node_reach what, str name, void *arg)
{
	struct brought *to = arg;
	bring(to, what, to->namespace, name);
}

/* A node must not get at anything by making pods: those that it makes itself bring nothing. */
static str bring_pod(struct arena *a, struct val pod, struct brought *to)
{
	buf_reset(&to->halves);
	to->namespace = val_str(pod, metadata, namespace);
	if (val_str(pod, spec, nodeName).n && !pod_is_mirror(pod))
		pod_references(a, pod, bring_reference, to);
	return buf_str(&to->halves);
}

static void give_back(struct buf *b)
{
	if (b->cap > KEPT_MAX)
		buf_done(b);
}

static void apply_pod(struct node_graph *g, str halves, str node, int64_t d)
{
	str half;
	while (next_half(&halves, &half)) {
		if (half.p[0] != REACH_VOLUME_CLAIM) {
			count_add(g, g->reach, half, node, d);
			continue;
		}
		count_add(g, g->claim_nodes, half, node, d);
		reach_add_product(g, g->claim_secrets, half, node, true, d);
	}
}

void node_graph_pod(struct node_graph *g, struct val before, struct val after)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str was_on = val_str(before, spec, nodeName), is_on = val_str(after, spec, nodeName);
	str was = bring_pod(&a, before, &g->was), is = bring_pod(&a, after, &g->is);
	if (!str_eq(was_on, is_on) || !str_eq(was, is)) {
		apply_pod(g, was, was_on, -1);
		apply_pod(g, is, is_on, 1);
	}
	give_back(&g->was.halves);
	give_back(&g->is.halves);
}

/* ---- volumes ---- */

static void bring_secret(struct brought *to, struct val ref, str default_namespace)
{
	str namespace = val_str(ref, namespace), name = val_str(ref, name);
	if (name.n)
		bring(to, REACH_SECRET, namespace.n ? namespace : default_namespace, name);
}

/* The secrets that the kubelet mounts a volume with; those that only controllers use are none of its business. */
static void bring_volume(struct val volume, struct brought *to, struct buf *ret_claim)
{
	buf_reset(&to->halves);
	static const atom of_claim[] = { A_cephfs, A_flexVolume, A_rbd, A_scaleIO, A_iscsi }; /* or of the claim's namespace */
	static const atom of_csi[] = { A_nodePublishSecretRef, A_nodeStageSecretRef, A_nodeExpandSecretRef };
	struct val spec = val_get(volume, spec), claim = val_get(spec, claimRef), azure = val_get(spec, azureFile);
	if (!val_exists(claim))
		return;
	str namespace = val_str(claim, namespace), azure_namespace = val_str(azure, secretNamespace);
	half_of(ret_claim, REACH_VOLUME_CLAIM, namespace, val_str(claim, name));
	if (val_str(azure, secretName).n)
		bring(to, REACH_SECRET, azure_namespace.n ? azure_namespace : namespace, val_str(azure, secretName));
	for (size_t i = 0; i < ARRAY_LEN(of_claim); i++)
		bring_secret(to, val_get(val_member(spec, of_claim[i]), secretRef), namespace);
	for (size_t i = 0; i < ARRAY_LEN(of_csi); i++)
		bring_secret(to, val_member(val_get(spec, csi), of_csi[i]), STR_NONE);
	bring_secret(to, val_get(spec, cinder, secretRef), STR_NONE);
	bring_secret(to, val_get(spec, storageos, secretRef), STR_NONE);
}

static void apply_volume(struct node_graph *g, str claim, str secrets, int64_t d)
{
	str secret;
	while (next_half(&secrets, &secret)) {
		count_add(g, g->claim_secrets, claim, secret, d);
		reach_add_product(g, g->claim_nodes, claim, secret, false, d);
	}
}

void node_graph_volume(struct node_graph *g, struct val before, struct val after)
{
	CLEANUP(buf_done) struct buf was_claim = BUF_INIT(KEY_MAX), is_claim = BUF_INIT(KEY_MAX);
	bring_volume(before, &g->was, &was_claim);
	bring_volume(after, &g->is, &is_claim);
	apply_volume(g, buf_str(&was_claim), buf_str(&g->was.halves), -1);
	apply_volume(g, buf_str(&is_claim), buf_str(&g->is.halves), 1);
}
