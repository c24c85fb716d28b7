/*
 * NodeRestriction: a kubelet writes its own Node, its own lease, the status of the pods that run on it, and what else it
 * has to report; the authorizer lets it through to kinds of objects, this plugin to the very objects and fields. Users
 * that are not nodes are none of its business.
 */
#include "apiserver/admission/node_restriction.h"

#include <stdlib.h>

#include "apiserver/admission/certificates.h"
#include "apiserver/authz/node.h"
#include "base/buf.h"
#include "codec/atoms.h"
#include "machinery/validate_groups.h"

#define LEASE_NAMESPACE "kube-node-lease"

const char *node_operation_text(const struct request *q)
{
	static const char *const texts[] = { "CREATE", "UPDATE", "DELETE", "CONNECT" };
	return texts[admission_operation(q)];
}

bool node_same(struct val a, struct val b) { return (!val_len(a) && !val_len(b)) || val_equal(a, b); }

/* The name that the write is about: that of the path, or of what is created. */
static str name_of(const struct request *q)
{
	return q->name.n ? q->name : val_str(val_exists(q->object) ? q->object : q->old, metadata, name);
}

static bool creates(const struct request *q) { return admission_operation(q) == ADMISSION_CREATE; }

/* ---- nodes ---- */

static str label_domain(str key)
{
	str domain, name;
	return str_cut(key, '/', &domain, &name) ? domain : STR_NONE;
}

/* Is it the domain, or one under it? */
static bool is_under(str domain, str parent)
{
	return str_eq(domain, parent) ||
	       (str_ends(domain, parent) && domain.n > parent.n && domain.p[domain.n - parent.n - 1] == '.');
}

/* Labels of Kubernetes' own that a kubelet sets on its node. */
static bool is_kubelet_label(str key)
{
	static const str labels[] = {
		STR_INIT("kubernetes.io/hostname"), STR_INIT("topology.kubernetes.io/zone"),
		STR_INIT("topology.kubernetes.io/region"), STR_INIT("failure-domain.beta.kubernetes.io/zone"),
		STR_INIT("failure-domain.beta.kubernetes.io/region"), STR_INIT("beta.kubernetes.io/instance-type"),
		STR_INIT("node.kubernetes.io/instance-type"), STR_INIT("kubernetes.io/os"), STR_INIT("kubernetes.io/arch"),
		STR_INIT("beta.kubernetes.io/os"), STR_INIT("beta.kubernetes.io/arch"),
	};
	for (size_t i = 0; i < ARRAY_LEN(labels); i++)
		if (str_eq(key, labels[i]))
			return true;
	str domain = label_domain(key);
	return is_under(domain, STR("kubelet.kubernetes.io")) || is_under(domain, STR("node.kubernetes.io"));
}

static bool is_forbidden_label(str key)
{
	str domain = label_domain(key);
	if (is_under(domain, STR("node-restriction.kubernetes.io")))
		return true;
	return (is_under(domain, STR("kubernetes.io")) || is_under(domain, STR("k8s.io"))) && !is_kubelet_label(key);
}

static int by_text(const void *a, const void *b) { return str_cmp(*(const str *)a, *(const str *)b); }

/* The labels that differ and that a node must not touch: "a, b", sorted; empty if there are none. */
static str forbidden_changes(struct request *q)
{
	struct val was = val_get(q->old, metadata, labels), is = val_get(q->object, metadata, labels);
	str *keys = ARENA_ARRAY(q->arena, str, (size_t)val_len(was) + val_len(is) + 1);
	size_t n = 0;
	VAL_EACH_MEMBER(m, is) {
		str key = atom_str(m->key);
		struct val old = val_find(was, key);
		if (is_forbidden_label(key) && (!val_exists(old) || !val_equal(old, m->val)))
			keys[n++] = key;
	}
	VAL_EACH_MEMBER(m, was)
		if (is_forbidden_label(atom_str(m->key)) && !val_exists(val_find(is, atom_str(m->key))))
			keys[n++] = atom_str(m->key);
	qsort(keys, n, sizeof *keys, by_text);
	str all = n ? keys[0] : STR_NONE;
	for (size_t i = 1; i < n; i++)
		all = arena_printf(q->arena, STR_FMT ", " STR_FMT, STR_ARG(all), STR_ARG(keys[i]));
	return all;
}

static int restrict_new_node(struct request *q, str quoted)
{
	if (val_has(q->object, spec, configSource))
		return admission_forbid(q, "node " STR_FMT " is not allowed to create pods with a non-nil configSource",
					STR_ARG(quoted));
	str labels = forbidden_changes(q);
	if (labels.n)
		return admission_forbid(q, "node " STR_FMT " is not allowed to set the following labels: " STR_FMT, STR_ARG(quoted),
					STR_ARG(labels));
	return 0;
}

static int restrict_node(struct request *q, str node, struct err *err)
{
	(void)err;
	str quoted = admission_quoted(q, node), name = name_of(q);
	if (!str_eq(name, node))
		return admission_forbid(q, "node " STR_FMT " is not allowed to modify node " STR_FMT, STR_ARG(quoted),
					STR_ARG(admission_quoted(q, name)));
	if (creates(q))
		return restrict_new_node(q, quoted);
	if (admission_operation(q) != ADMISSION_UPDATE)
		return 0;
	struct val source = val_get(q->object, spec, configSource);
	if (val_exists(source) && !val_equal(source, val_get(q->old, spec, configSource)))
		return admission_forbid(q, "node " STR_FMT " is not allowed to update configSource to a new non-nil configSource",
					STR_ARG(quoted));
	if (!node_same(val_get(q->object, spec, taints), val_get(q->old, spec, taints)))
		return admission_forbid(q, "node " STR_FMT " is not allowed to modify taints", STR_ARG(quoted));
	if (!node_same(val_get(q->object, metadata, ownerReferences), val_get(q->old, metadata, ownerReferences)))
		return admission_forbid(q, "node " STR_FMT " is not allowed to modify ownerReferences", STR_ARG(quoted));
	str labels = forbidden_changes(q);
	return labels.n ? admission_forbid(q, "is not allowed to modify labels: " STR_FMT, STR_ARG(labels)) : 0;
}

/* ---- volume claims ---- */

/* A claim without what a kubelet may write, and without what changes with every write. */
static struct val without_own(struct arena *a, struct val claim)
{
	claim = val_without(a, claim, metadata, resourceVersion);
	claim = val_without(a, claim, metadata, managedFields);
	claim = val_without(a, claim, status, capacity);
	claim = val_without(a, claim, status, conditions);
	claim = val_without(a, claim, status, allocatedResources);
	return val_without(a, claim, status, allocatedResourceStatuses);
}

/* As messages show it: a claim in memory does not say what it is. */
static struct val shown_claim(const struct request *q, struct val claim)
{
	struct val form = internal_form(q->arena, q->type, claim);
	form = val_put(q->arena, form, atom_make(q->arena, STR("Kind")), VAL_EMPTY);
	return val_put(q->arena, form, atom_make(q->arena, STR("APIVersion")), VAL_EMPTY);
}

static int restrict_claim(struct request *q, str node, struct err *err)
{
	(void)err;
	struct arena *a = q->arena;
	if (!str_eq(q->subresource, STR("status")))
		return admission_forbid(q, "may only update PVC status");
	if (admission_operation(q) != ADMISSION_UPDATE)
		return admission_forbid(q, "unexpected operation \"%s\"", node_operation_text(q));
	struct val was = without_own(a, q->old), is = without_own(a, q->object);
	if (val_semantic_equal(q->type, was, is))
		return 0;
	str diff = form_diff(a, shown_claim(q, was), shown_claim(q, is));
	return admission_forbid(q, "node " STR_FMT
				   " is not allowed to update fields other than status.quantity and status.conditions: " STR_FMT,
				STR_ARG(admission_quoted(q, node)), STR_ARG(diff));
}

/* ---- objects that are named like the node, or name it ---- */

static int restrict_lease(struct request *q, str node, struct err *err)
{
	(void)err;
	if (!str_eq(q->namespace, STR(LEASE_NAMESPACE)))
		return admission_forbid(q, "can only access leases in the \"" LEASE_NAMESPACE "\" system namespace");
	if (!str_eq(name_of(q), node))
		return admission_forbid(q, "can only access node lease with the same name as the requesting node");
	return 0;
}

static int restrict_csi_node(struct request *q, str node, struct err *err)
{
	(void)err;
	return str_eq(name_of(q), node) ?
		       0 :
		       admission_forbid(q, "can only access CSINode with the same name as the requesting node");
}

/* What is updated has been looked at by the authorizer; a collection that is deleted comes here object by object. */
static int restrict_slice(struct request *q, str node, struct err *err)
{
	(void)err;
	if (creates(q) && !str_eq(val_str(q->object, spec, nodeName), node))
		return admission_forbid(q, "can only create ResourceSlice with the same NodeName as the requesting node");
	if (admission_operation(q) == ADMISSION_DELETE && !str_eq(val_str(q->old, spec, nodeName), node))
		return admission_forbid(q, "can only delete ResourceSlice with the same NodeName as the requesting node");
	return 0;
}

static int restrict_signing_request(struct request *q, str node, struct err *err)
{
	(void)err;
	str signer = val_str(q->object, spec, signerName);
	struct certificate_subject subject;
	if (!creates(q) || (!str_eq(signer, STR("kubernetes.io/kubelet-serving")) &&
			    !str_eq(signer, STR("kubernetes.io/kube-apiserver-client-kubelet"))))
		return 0;
	const char *wrong = certificate_request_subject(q->arena, q->object, &subject);
	if (wrong)
		return admission_forbid(q, "unable to parse csr: %s", wrong);
	if (!str_eq(subject.common_name, arena_join(q->arena, STR("system:node:"), node)))
		return admission_forbid(q, "can only create a node CSR with CN=system:node:" STR_FMT, STR_ARG(node));
	return 0;
}

static int restrict_pod_certificate(struct request *q, str node, struct err *err)
{
	(void)node, (void)err;
	return admission_forbid(q, "PodCertificateRequest feature gate is disabled");
}

/* ---- the plugin ---- */

static const struct {
	str group, resource;
	int (*check)(struct request *q, str node, struct err *err);
} restricted[] = {
	{ STR_INIT(""), STR_INIT("pods"), node_restrict_pod },
	{ STR_INIT(""), STR_INIT("nodes"), restrict_node },
	{ STR_INIT(""), STR_INIT("persistentvolumeclaims"), restrict_claim },
	{ STR_INIT(""), STR_INIT("serviceaccounts"), node_restrict_token },
	{ STR_INIT("certificates.k8s.io"), STR_INIT("podcertificaterequests"), restrict_pod_certificate },
	{ STR_INIT("coordination.k8s.io"), STR_INIT("leases"), restrict_lease },
	{ STR_INIT("storage.k8s.io"), STR_INIT("csinodes"), restrict_csi_node },
	{ STR_INIT("resource.k8s.io"), STR_INIT("resourceslices"), restrict_slice },
	{ STR_INIT("certificates.k8s.io"), STR_INIT("certificatesigningrequests"), restrict_signing_request },
};

static int mutate(struct request *q, struct err *err)
{
	str node;
	if (admission_operation(q) == ADMISSION_CONNECT || !user_is_node(&q->user, &node))
		return 0;
	if (!node.n)
		return admission_forbid(q, "could not determine node from user " STR_FMT,
					STR_ARG(admission_quoted(q, q->user.name)));
	for (size_t i = 0; i < ARRAY_LEN(restricted); i++)
		if (str_eq(q->resource, restricted[i].resource) && str_eq(q->group, restricted[i].group))
			return restricted[i].check(q, node, err);
	return 0;
}

const struct admission_plugin admission_node_restriction = { .name = "NodeRestriction", .optional = true, .mutate = mutate };
