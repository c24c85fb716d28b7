/* The decision of volume_binding.h: pure functions over what is known of claims and volumes. */
#include <stdlib.h>

#include "codec/atoms.h"
#include "machinery/resources.h"
#include "scheduler/volume_binding.h"

static struct quantity storage_request(struct val claim)
{
	return quantity_of(val_get(claim, spec, resources, requests, storage));
}

static bool ref_is_claim(struct val ref, struct val claim)
{
	return val_exists(ref) && str_eq(val_str(ref, name), val_str(claim, metadata, name)) &&
	       str_eq(val_str(ref, namespace), val_str(claim, metadata, namespace)) &&
	       (!val_str(ref, uid).n || str_eq(val_str(ref, uid), val_str(claim, metadata, uid)));
}

static str volume_mode(struct val spec)
{
	str mode = val_str(spec, volumeMode);
	return mode.n ? mode : STR("Filesystem");
}

/* The volume has all modes that the claim asks for. */
static bool modes_suffice(struct val claim, struct val volume)
{
	VAL_EACH(m, val_get(claim, spec, accessModes)) {
		bool found = false;
		VAL_EACH(o, val_get(volume, spec, accessModes))
			found |= str_eq(val_as_str(*o), val_as_str(*m));
		if (!found)
			return false;
	}
	return true;
}

/* What both a volume that names the claim and any other must fulfil. */
static bool volume_suits(struct val claim, struct val volume, struct quantity request)
{
	struct val ref = val_get(volume, spec, claimRef);
	return (!val_exists(ref) || ref_is_claim(ref, claim)) &&
	       quantity_cmp(quantity_of(val_get(volume, spec, capacity, storage)), request) >= 0 &&
	       str_eq(volume_mode(val_get(claim, spec)), volume_mode(val_get(volume, spec))) &&
	       str_eq(val_str(claim, spec, volumeAttributesClassName), val_str(volume, spec, volumeAttributesClassName)) &&
	       !val_has(volume, metadata, deletionTimestamp);
}

static void candidate_make(struct arena *a, struct val volume, struct bind_candidate *ret)
{
	struct val nodes = val_get(volume, spec, nodeAffinity, required);
	*ret = (struct bind_candidate){ .volume = volume, .name = val_str(volume, metadata, name), .anywhere = !val_exists(nodes),
					.size = quantity_of(val_get(volume, spec, capacity, storage)) };
	if (ret->anywhere)
		return;
	node_selector_compile(a, nodes, NULL, &ret->nodes);
	if (ret->nodes.n == 1)
		(void)selector_requires(&ret->nodes.terms[0].labels, STR("kubernetes.io/hostname"), &ret->host);
}

static int candidate_compare_size(const struct bind_candidate *a, const struct bind_candidate *b)
{
	int r = quantity_cmp(a->size, b->size);
	return r ? r : str_cmp(a->name, b->name);
}

static int candidate_compare(const void *x, const void *y)
{
	const struct bind_candidate *a = x, *b = y;
	int r = str_cmp(a->host, b->host);
	return r ? r : candidate_compare_size(a, b);
}

static int find_candidates(struct arena *a, const struct storage *s, struct waiting_claim *w, struct err *err)
{
	struct selector selector = SELECTOR_EVERYTHING;
	struct val wanted = val_get(w->claim, spec, selector);
	size_t n = 0, cap = 0;
	if (val_exists(wanted) && selector_of_object(a, wanted, &selector, err) < 0)
		return err_wrap(err, -ERR_INTERNAL, "error creating internal label selector for claim: " STR_FMT "/" STR_FMT,
				STR_ARG(val_str(w->claim, metadata, namespace)), STR_ARG(val_str(w->claim, metadata, name)));
	COPIES_EACH(x, &s->kinds[STORAGE_VOLUME], w->class_name)
		cap++;
	struct bind_candidate *all = ARENA_ARRAY(a, struct bind_candidate, cap + 1);
	COPIES_EACH(x, &s->kinds[STORAGE_VOLUME], w->class_name) {
		struct val volume = copy_val(x);
		if (!volume_suits(w->claim, volume, w->request))
			continue;
		if (val_has(volume, spec, claimRef)) {
			if (!w->has_prebound)
				candidate_make(a, volume, &w->prebound);
			w->has_prebound = true;
		} else if (str_eq(val_str(volume, status, phase), STR("Available")) && modes_suffice(w->claim, volume) &&
			   selector_matches(&selector, val_get(volume, metadata, labels))) {
			candidate_make(a, volume, &all[n++]);
		}
	}
	if (n)
		qsort(all, n, sizeof(*all), candidate_compare);
	w->candidates = all;
	w->n_candidates = n;
	return 0;
}

/* Which nodes have room for a new volume, where the driver tells. */
static void find_space(struct arena *a, const struct storage *s, struct waiting_claim *w)
{
	struct val driver = storage_get(s, STORAGE_CSI_DRIVER, val_str(w->class, provisioner));
	if (!val_has(w->claim, spec, resources, requests, storage) || !val_bool(driver, spec, storageCapacity))
		return;
	const struct copies *capacities = &s->kinds[STORAGE_CAPACITY];
	size_t cap = 0;
	COPIES_EACH(x, capacities, w->class_name)
		cap++;
	struct selector *space = ARENA_ARRAY(a, struct selector, cap + 1);
	int64_t size = quantity_value(w->request);
	COPIES_EACH(x, capacities, w->class_name) {
		struct val capacity = copy_val(x), limit = val_get(capacity, maximumVolumeSize);
		limit = val_exists(limit) ? limit : val_get(capacity, capacity);
		if (!val_exists(limit) || quantity_value(quantity_of(limit)) < size)
			continue;
		/* Without a topology the space cannot be reached; a selector that is not valid selects nothing. */
		if (selector_of_object(a, val_get(capacity, nodeTopology), &space[w->n_space], NULL) == 0)
			w->n_space++;
	}
	w->counted = true;
	w->space = space;
}

static int waiting_make(struct arena *a, const struct storage *s, struct val claim, struct val class, struct waiting_claim *ret,
			struct err *err)
{
	*ret = (struct waiting_claim){ .claim = claim, .class = class, .class_name = claim_class(claim), .request = storage_request(claim) };
	ret->selected = val_find(val_get(claim, metadata, annotations), STR(SELECTED_NODE_ANNOTATION));
	find_space(a, s, ret);
	return val_exists(ret->selected) ? 0 : find_candidates(a, s, ret, err);
}

static void bound_make(struct arena *a, const struct storage *s, struct val claim, struct bound_volume *ret)
{
	struct val volume = storage_get(s, STORAGE_VOLUME, val_str(claim, spec, volumeName));
	struct val nodes = val_get(volume, spec, nodeAffinity, required);
	*ret = (struct bound_volume){ .gone = !val_exists(volume), .anywhere = !val_exists(nodes) };
	if (!ret->anywhere)
		node_selector_compile(a, nodes, NULL, &ret->nodes);
}

static int waiting_compare(const void *x, const void *y)
{
	const struct waiting_claim *a = x, *b = y;
	return quantity_cmp(a->request, b->request);
}

int pod_bindings_make(struct arena *a, const struct storage *s, struct val pod, struct pod_bindings *ret, struct err *err)
{
	struct val volumes = val_get(pod, spec, volumes);
	str namespace = val_str(pod, metadata, namespace), name, why;
	bool ephemeral;
	*ret = (struct pod_bindings){ .bound = ARENA_ARRAY(a, struct bound_volume, val_len(volumes) + 1),
				      .waiting = ARENA_ARRAY(a, struct waiting_claim, val_len(volumes) + 1) };
	VAL_EACH(v, volumes) {
		if (!pod_volume_claim(a, pod, *v, &name, &ephemeral))
			continue;
		struct val claim = storage_claim(s, namespace, name);
		if (!val_exists(claim))
			return err_set(err, ERR_INTERNAL, "error getting PVC \"" STR_FMT "/" STR_FMT "\": persistentvolumeclaims \"" STR_FMT "/" STR_FMT
				       "\" not found", STR_ARG(namespace), STR_ARG(name), STR_ARG(namespace), STR_ARG(name));
		if (ephemeral && !claim_is_for_pod(a, claim, pod, &why))
			return err_set(err, ERR_INTERNAL, STR_FMT, STR_ARG(why));
		if (claim_is_bound(claim)) {
			bound_make(a, s, claim, &ret->bound[ret->n_bound++]);
			continue;
		}
		str class_name = claim_class(claim);
		struct val class = class_name.n ? storage_get(s, STORAGE_CLASS, class_name) : VAL_EMPTY;
		if (val_exists(class) && !val_has(class, volumeBindingMode))
			return err_set(err, ERR_INTERNAL, "VolumeBindingMode not set for StorageClass \"" STR_FMT "\"", STR_ARG(class_name));
		if (!str_eq(val_str(class, volumeBindingMode), STR("WaitForFirstConsumer")) || val_str(claim, spec, volumeName).n) {
			ret->unbound = true;
			return 0;
		}
		int r = waiting_make(a, s, claim, class, &ret->waiting[ret->n_waiting++], err);
		if (r < 0)
			return r;
	}
	if (ret->n_waiting)
		qsort(ret->waiting, ret->n_waiting, sizeof(*ret->waiting), waiting_compare);
	return 0;
}

/* A node that has only these labels: affinities of volumes know no fields of nodes. */
static bool labels_match(const struct node_selector *s, struct val labels)
{
	const struct member inner = { A_labels, labels };
	const struct member outer = { A_metadata, { .type = VAL_OBJECT, .n = 1, .members = &inner } };
	struct val node = { .type = VAL_OBJECT, .n = 1, .members = &outer };
	return node_selector_matches(s, node, NULL) == 1;
}

static bool candidate_matches(const struct bind_candidate *x, struct val labels)
{
	return x->anywhere || labels_match(&x->nodes, labels);
}

static bool is_chosen(const struct pod_bindings *b, const struct bind_candidate *x)
{
	for (size_t i = 0; i < b->n_waiting; i++)
		if (b->waiting[i].chosen && str_eq(b->waiting[i].chosen->name, x->name))
			return true;
	return false;
}

/* The smallest that fits among those for one host. */
static const struct bind_candidate *candidate_for(const struct pod_bindings *b, const struct waiting_claim *w, str host, struct val labels)
{
	size_t low = 0, high = w->n_candidates;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (str_cmp(w->candidates[middle].host, host) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < w->n_candidates && str_eq(w->candidates[low].host, host); low++)
		if (!is_chosen(b, &w->candidates[low]) && candidate_matches(&w->candidates[low], labels))
			return &w->candidates[low];
	return NULL;
}

static const struct bind_candidate *claim_choose(const struct pod_bindings *b, const struct waiting_claim *w, struct val labels)
{
	if (w->has_prebound)
		return !is_chosen(b, &w->prebound) && candidate_matches(&w->prebound, labels) ? &w->prebound : NULL;
	str host = val_as_str(val_find(labels, STR("kubernetes.io/hostname")));
	const struct bind_candidate *any = candidate_for(b, w, STR(""), labels), *own = host.n ? candidate_for(b, w, host, labels) : NULL;
	return !own || (any && candidate_compare_size(any, own) < 0) ? any : own;
}

/* allowedTopologies: terms joined by OR, expressions by AND; none at all allow every node. */
static bool topology_allows(struct val terms, struct val labels)
{
	VAL_EACH(t, terms) {
		struct val all = val_get(*t, matchLabelExpressions);
		bool ok = val_len(all) > 0;
		VAL_EACH(e, all) {
			struct val have = val_find(labels, val_str(*e, key));
			bool found = false;
			VAL_EACH(v, val_get(*e, values))
				found |= val_exists(have) && str_eq(val_as_str(*v), val_as_str(have));
			ok &= found;
		}
		if (ok)
			return true;
	}
	return val_len(terms) == 0;
}

static int claim_provision(const struct waiting_claim *w, struct val labels, unsigned *ret_why, struct err *err)
{
	str provisioner = val_str(w->class, provisioner);
	if (!val_exists(w->class))
		return err_set(err, ERR_INTERNAL, "failed to find storage class \"" STR_FMT "\"", STR_ARG(w->class_name));
	if (!provisioner.n || str_eq(provisioner, STR("kubernetes.io/no-provisioner")) ||
	    !topology_allows(val_get(w->class, allowedTopologies), labels)) {
		*ret_why |= BIND_NO_VOLUME;
		return 0;
	}
	if (!w->counted)
		return 0;
	for (size_t i = 0; i < w->n_space; i++)
		if (selector_matches(&w->space[i], labels))
			return 0;
	*ret_why |= BIND_NO_SPACE;
	return 0;
}

int pod_bindings_find(struct pod_bindings *b, str node, struct val labels, unsigned *ret_why, struct err *err)
{
	*ret_why = 0;
	for (size_t i = 0; i < b->n_bound && !*ret_why; i++)
		*ret_why |= b->bound[i].gone ? BIND_VOLUME_GONE :
			    b->bound[i].anywhere || labels_match(&b->bound[i].nodes, labels) ? 0 : BIND_NODE_CONFLICT;
	for (size_t i = 0; i < b->n_waiting; i++) {
		b->waiting[i].chosen = NULL;
		if (val_exists(b->waiting[i].selected) && !str_eq(val_as_str(b->waiting[i].selected), node)) {
			*ret_why |= BIND_NO_VOLUME;
			return 0;
		}
	}
	for (size_t i = 0; i < b->n_waiting; i++)
		if (!val_exists(b->waiting[i].selected))
			b->waiting[i].chosen = claim_choose(b, &b->waiting[i], labels);
	for (size_t i = 0; i < b->n_waiting; i++) {
		unsigned why = 0;
		int r = b->waiting[i].chosen ? 0 : claim_provision(&b->waiting[i], labels, &why, err);
		*ret_why |= why;
		if (r < 0 || why)
			return r;
	}
	return 0;
}

static struct val with_annotation(struct arena *a, struct val object, str key, str value)
{
	struct val annotations = val_put(a, val_get(object, metadata, annotations), atom_make(a, key), VAL_STR(value));
	return val_with(a, object, val_sorted(a, annotations), metadata, annotations);
}

struct val volume_with_claim(struct arena *a, struct val volume, struct val claim)
{
	struct val ref = val_get(volume, spec, claimRef), meta = val_get(claim, metadata);
	bool ours = ref_is_claim(ref, claim);
	if (!ours || !str_eq(val_str(ref, uid), val_str(meta, uid))) {
		ref = OBJECT(a, F(kind, VAL_LIT("PersistentVolumeClaim")), F(namespace, val_get(meta, namespace)), F(name, val_get(meta, name)),
			     F(uid, val_get(meta, uid)), F(apiVersion, VAL_LIT("v1")), F(resourceVersion, val_get(meta, resourceVersion)));
		volume = val_with(a, volume, ref, spec, claimRef);
	}
	str by = STR("pv.kubernetes.io/bound-by-controller");
	if (!ours && !val_exists(val_find(val_get(volume, metadata, annotations), by)))
		volume = with_annotation(a, volume, by, STR("yes"));
	return volume;
}

struct val claim_with_node(struct arena *a, struct val claim, str node)
{
	return with_annotation(a, claim, STR(SELECTED_NODE_ANNOTATION), node);
}
