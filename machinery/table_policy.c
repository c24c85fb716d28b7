/* Who may do what: rbac, certificates, admissionregistration, flowcontrol, and which servers there are: apiregistration. */
#include "machinery/table_priv.h"

#include "base/buf.h"
#include "base/clock.h"

enum { TEXT_MAX = 1 << 20 };

/* ---- rbac ---- */

static struct val role(const struct row *row)
{
	struct val ref = val_get(row->object, roleRef);
	return cell_printf(row, STR_FMT "/" STR_FMT, STR_ARG(val_str(ref, kind)), STR_ARG(val_str(ref, name)));
}

static struct val subjects(const struct row *row, str kind)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(TEXT_MAX);
	bool accounts = str_eq(kind, STR("ServiceAccount"));
	VAL_EACH(s, val_get(row->object, subjects)) {
		if (!str_eq(val_str(*s, kind), kind))
			continue;
		if (b.n)
			buf_add(&b, STR(", "));
		if (accounts)
			buf_addf(&b, STR_FMT "/", STR_ARG(val_str(*s, namespace)));
		buf_add(&b, val_str(*s, name));
	}
	return val_of_str(arena_str(row->arena, buf_str(&b)));
}

static struct val users(const struct row *row) { return subjects(row, STR("User")); }
static struct val groups(const struct row *row) { return subjects(row, STR("Group")); }
static struct val service_accounts(const struct row *row) { return subjects(row, STR("ServiceAccount")); }

/* The columns of both kinds of bindings. */
#define BINDING(kind_, role_)                                                                                   \
	NAME,                                                                                                   \
	COLUMN("Role", "string", 0, role_, CALL(role)),                                                         \
	AGE,                                                                                                    \
	COLUMN("Users", "string", 1, "Users in the " kind_, CALL(users)),                                       \
	COLUMN("Groups", "string", 1, "Groups in the " kind_, CALL(groups)),                                    \
	COLUMN("ServiceAccounts", "string", 1, "ServiceAccounts in the " kind_, CALL(service_accounts))

static const struct column role_binding[] = {
	BINDING("roleBinding",
		"RoleRef can reference a Role in the current namespace or a ClusterRole in the global "
		"namespace. If the RoleRef cannot be resolved, the Authorizer must return an error."),
};

static const struct column cluster_role_binding[] = {
	BINDING("clusterRoleBinding",
		"RoleRef can only reference a ClusterRole in the global namespace. If the RoleRef cannot be "
		"resolved, the Authorizer must return an error."),
};

/* ---- certificates ---- */

static struct val requested_duration(const struct row *row)
{
	struct val seconds = val_get(row->object, spec, expirationSeconds);
	if (!val_exists(seconds))
		return VAL_LIT("<none>");
	return val_of_str(cell_duration(row->arena, (int64_t)(int32_t)val_as_int(seconds) * NS_PER_S));
}

static struct val request_condition(const struct row *row)
{
	struct val conditions = val_get(row->object, status, conditions);
	bool denied = val_exists(cell_condition(conditions, STR("Denied")));
	bool approved = val_exists(cell_condition(conditions, STR("Approved")));
	bool failed = val_exists(cell_condition(conditions, STR("Failed")));
	return cell_printf(row, "%s%s%s", denied ? "Denied" : approved ? "Approved" : "Pending", failed ? ",Failed" : "",
			   val_str(row->object, status, certificate).n ? ",Issued" : "");
}

static const struct column certificate_signing_request[] = {
	NAME,
	AGE,
	COLUMN("SignerName", "string", 0,
	       "Requested signer for the request. It is a qualified name in the form: "
	       "`scope-hostname.io/name`. If empty, it will be defaulted:\n 1. If it's a kubelet "
	       "client certificate, it is assigned\n    "
	       "\"kubernetes.io/kube-apiserver-client-kubelet\".\n 2. If it's a kubelet serving "
	       "certificate, it is assigned\n    \"kubernetes.io/kubelet-serving\".\n 3. Otherwise, "
	       "it is assigned \"kubernetes.io/legacy-unknown\".\nDistribution of trust for signers "
	       "happens out of band. You can select on this field using `spec.signerName`.",
	       TEXT(spec, signerName), OR("<none>")),
	COLUMN("Requestor", "string", 0, "Base64-encoded PKCS#10 CSR data", TEXT(spec, username)),
	COLUMN("RequestedDuration", "string", 0,
	       "expirationSeconds is the requested duration of validity of the issued certificate. "
	       "The certificate signer may issue a certificate with a different validity duration so "
	       "a client must check the delta between the notBefore and and notAfter fields in the "
	       "issued certificate to determine the actual duration.\n\nThe v1.22+ in-tree "
	       "implementations of the well-known Kubernetes signers will honor this field as long as "
	       "the requested duration is not greater than the maximum duration they will honor per "
	       "the --cluster-signing-duration CLI flag to the Kubernetes controller manager.\n\n"
	       "Certificate signers may not honor this field for various reasons:\n\n  1. Old signer "
	       "that is unaware of the field (such as the in-tree\n     implementations prior to "
	       "v1.22)\n  2. Signer whose configured maximum is shorter than the requested "
	       "duration\n  3. Signer whose configured minimum is longer than the requested "
	       "duration\n\nThe minimum valid value for expirationSeconds is 600, i.e. 10 minutes.",
	       CALL(requested_duration)),
	COLUMN("Condition", "string", 0,
	       "Conditions applied to the request, such as approval or denial.",
	       CALL(request_condition)),
};

static const struct column cluster_trust_bundle[] = {
	NAME,
	COLUMN("SignerName", "string", 0, "Signer whose anchors these are", TEXT(spec, signerName), OR("<none>")),
};

static struct val pod_request_state(const struct row *row)
{
	struct val state = VAL_LIT("Pending");
	VAL_EACH(c, val_get(row->object, status, conditions)) {
		str type = val_str(*c, type);
		if (str_eq(type, STR("Issued")) || str_eq(type, STR("Denied")) || str_eq(type, STR("Failed")))
			state = val_of_str(type);
	}
	return state;
}

static const struct column pod_certificate_request[] = {
	NAME,
	COLUMN("PodName", "string", 0, "Pod that the certificate is for", TEXT(spec, podName)),
	COLUMN("ServiceAccountName", "string", 0, "Service account of the pod", TEXT(spec, serviceAccountName)),
	COLUMN("NodeName", "string", 0, "Node of the pod", TEXT(spec, nodeName)),
	COLUMN("SignerName", "string", 0, "Who should sign it", TEXT(spec, signerName)),
	COLUMN("State", "string", 0, "What became of the request", CALL(pod_request_state)),
	COLUMN("UnverifiedUserAnnotations", "string", 0, "What the pod says to the signer", LABELS(spec, unverifiedUserAnnotations)),
};

/* ---- admissionregistration ---- */

static const struct column webhook_configuration[] = {
	NAME,
	COLUMN("Webhooks", "integer", 0,
	       "Webhooks indicates the number of webhooks registered in this configuration",
	       COUNT(webhooks)),
	AGE,
};

static struct val param_kind(const struct row *row)
{
	struct val kind = val_get(row->object, spec, paramKind);
	if (!val_exists(kind))
		return VAL_LIT("<unset>");
	return cell_printf(row, STR_FMT "/" STR_FMT, STR_ARG(val_str(kind, apiVersion)), STR_ARG(val_str(kind, kind)));
}

/* As Go's protobuf code prints a LabelSelector. */
static str selector_in_go(struct arena *a, struct val selector)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(TEXT_MAX);
	buf_add(&b, STR("&LabelSelector{MatchLabels:map[string]string{"));
	VAL_EACH_MEMBER(m, val_get(selector, matchLabels))
		buf_addf(&b, STR_FMT ": " STR_FMT ",", STR_ARG(atom_str(m->key)), STR_ARG(val_as_str(m->val)));
	buf_add(&b, STR("},MatchExpressions:[]LabelSelectorRequirement{"));
	VAL_EACH(e, val_get(selector, matchExpressions))
		buf_addf(&b, "LabelSelectorRequirement{Key:" STR_FMT ",Operator:" STR_FMT ",Values:[" STR_FMT "],},",
			 STR_ARG(val_str(*e, key)), STR_ARG(val_str(*e, operator)),
			 STR_ARG(cell_join(a, val_get(*e, values), 0, " ")));
	buf_add(&b, STR("},}"));
	return arena_str(a, buf_str(&b));
}

static struct val param_ref(const struct row *row)
{
	struct val ref = val_get(row->object, spec, paramRef), selector = val_get(ref, selector);
	str name = val_str(ref, name);
	if (name.n)
		return cell_printf(row, STR_FMT "/" STR_FMT, STR_ARG(cell_text_or(val_get(ref, namespace), STR("*"))), STR_ARG(name));
	return val_exists(selector) ? val_of_str(selector_in_go(row->arena, selector)) : VAL_LIT("<unset>");
}

static const struct column validating_policy[] = {
	NAME,
	COLUMN("Validations", "integer", 0,
	       "Validations indicates the number of validation rules defined in this configuration",
	       COUNT(spec, validations)),
	COLUMN("ParamKind", "string", 0,
	       "ParamKind specifies the kind of resources used to parameterize this policy",
	       CALL(param_kind)),
	AGE,
};

static const struct column mutating_policy[] = {
	NAME,
	COLUMN("Mutations", "integer", 0, "Number of changes", COUNT(spec, mutations)),
	COLUMN("ParamKind", "string", 0,
	       "ParamKind specifies the kind of resources used to parameterize this policy",
	       CALL(param_kind)),
	AGE,
};

static const struct column policy_binding[] = {
	NAME,
	COLUMN("PolicyName", "string", 0,
	       "PolicyName indicates the policy definition which the policy binding binded to",
	       TEXT(spec, policyName)),
	COLUMN("ParamRef", "string", 0,
	       "ParamRef indicates the param resource which sets the configuration param",
	       CALL(param_ref)),
	AGE,
};

/* ---- flowcontrol ---- */

static struct val dangling(const struct row *row)
{
	struct val c = cell_condition(val_get(row->object, status, conditions), STR("Dangling"));
	return val_exists(c) ? val_of_str(val_str(c, status)) : VAL_LIT("?");
}

static struct val distinguisher(const struct row *row)
{
	struct val method = val_get(row->object, spec, distinguisherMethod);
	return val_exists(method) ? val_of_str(val_str(method, type)) : VAL_LIT("<none>");
}

/* The schema that is asked first stands first. */
static int64_t flow_schema_rank(struct val object) { return val_int(object, spec, matchingPrecedence); }

static const struct column flow_schema[] = {
	NAME,
	COLUMN("PriorityLevel", "string", 0,
	       "`name` is the name of the priority level configuration being referenced Required.",
	       TEXT(spec, priorityLevelConfiguration, name)),
	COLUMN("MatchingPrecedence", "string", 0,
	       "`matchingPrecedence` is used to choose among the FlowSchemas that match a given "
	       "request. The chosen FlowSchema is among those with the numerically lowest (which we "
	       "take to be logically highest) MatchingPrecedence.  Each MatchingPrecedence value must "
	       "be ranged in [1,10000]. Note that if the precedence is not specified, it will be set "
	       "to 1000 as default.",
	       NUMBER(spec, matchingPrecedence)),
	COLUMN("DistinguisherMethod", "string", 0,
	       "`distinguisherMethod` defines how to compute the flow distinguisher for requests that "
	       "match this schema. `nil` specifies that the distinguisher is disabled and thus will "
	       "always be the empty string.",
	       CALL(distinguisher)),
	AGE,
	COLUMN("MissingPL", "string", 0,
	       "references a broken or non-existent PriorityLevelConfiguration",
	       CALL(dangling)),
};

/* A number of something that is there only sometimes. */
static struct val number_of(struct val object, atom field)
{
	return val_exists(object) ? val_of_int(val_as_int(val_member(object, field))) : VAL_LIT("<none>");
}

static struct val concurrency_shares(const struct row *row)
{
	return number_of(val_get(row->object, spec, limited), A_nominalConcurrencyShares);
}

static struct val queuing(const struct row *row, atom field)
{
	return number_of(val_get(row->object, spec, limited, limitResponse, queuing), field);
}

static struct val queues(const struct row *row) { return queuing(row, A_queues); }
static struct val hand_size(const struct row *row) { return queuing(row, A_handSize); }
static struct val queue_length(const struct row *row) { return queuing(row, A_queueLengthLimit); }

static const struct column priority_level[] = {
	NAME,
	COLUMN("Type", "string", 0,
	       "`type` indicates whether this priority level is subject to limitation on request "
	       "execution.  A value of `\"Exempt\"` means that requests of this priority level are "
	       "not subject to a limit (and thus are never queued) and do not detract from the "
	       "capacity made available to other priority levels.  A value of `\"Limited\"` means "
	       "that (a) requests of this priority level _are_ subject to limits and (b) some of the "
	       "server's limited capacity is made available exclusively to this priority level. "
	       "Required.",
	       TEXT(spec, type)),
	COLUMN("NominalConcurrencyShares", "string", 0,
	       "`nominalConcurrencyShares` (NCS) contributes to the computation of the "
	       "NominalConcurrencyLimit (NominalCL) of this level. This is the number of execution "
	       "seats available at this priority level. This is used both for requests dispatched "
	       "from this priority level as well as requests dispatched from other priority levels "
	       "borrowing seats from this level. The server's concurrency limit (ServerCL) is divided "
	       "among the Limited priority levels in proportion to their NCS values:\n\nNominalCL(i)  "
	       "= ceil( ServerCL * NCS(i) / sum_ncs ) sum_ncs = sum[priority level k] NCS(k)\n\n"
	       "Bigger numbers mean a larger nominal concurrency limit, at the expense of every other "
	       "priority level.\n\nIf not specified, this field defaults to a value of 30.\n\nSetting "
	       "this field to zero supports the construction of a \"jail\" for this priority level "
	       "that is used to hold some request(s)",
	       CALL(concurrency_shares)),
	COLUMN("Queues", "string", 0,
	       "`queues` is the number of queues for this priority level. The queues exist "
	       "independently at each apiserver. The value must be positive.  Setting it to 1 "
	       "effectively precludes shufflesharding and thus makes the distinguisher method of "
	       "associated flow schemas irrelevant.  This field has a default value of 64.",
	       CALL(queues)),
	COLUMN("HandSize", "string", 0,
	       "`handSize` is a small positive number that configures the shuffle sharding of "
	       "requests into queues.  When enqueuing a request at this priority level the request's "
	       "flow identifier (a string pair) is hashed and the hash value is used to shuffle the "
	       "list of queues and deal a hand of the size specified here.  The request is put into "
	       "one of the shortest queues in that hand. `handSize` must be no larger than `queues`, "
	       "and should be significantly smaller (so that a few heavy flows do not saturate most "
	       "of the queues).  See the user-facing documentation for more extensive guidance on "
	       "setting this field.  This field has a default value of 8.",
	       CALL(hand_size)),
	COLUMN("QueueLengthLimit", "string", 0,
	       "`queueLengthLimit` is the maximum number of requests allowed to be waiting in a given "
	       "queue of this priority level at a time; excess requests are rejected.  This value "
	       "must be positive.  If not specified, it will be defaulted to 50.",
	       CALL(queue_length)),
	AGE,
};

/* ---- apiregistration ---- */

static struct val api_service(const struct row *row)
{
	struct val s = val_get(row->object, spec, service);
	if (!val_exists(s))
		return VAL_LIT("Local");
	return cell_printf(row, STR_FMT "/" STR_FMT, STR_ARG(val_str(s, namespace)), STR_ARG(val_str(s, name)));
}

static struct val api_available(const struct row *row)
{
	struct val c = cell_condition(val_get(row->object, status, conditions), STR("Available"));
	str status = val_str(c, status), reason = val_str(c, reason);
	if (!val_exists(c))
		return VAL_LIT("Unknown");
	if (str_eq(status, STR("True")) || reason.n == 0)
		return val_of_str(status);
	return cell_printf(row, STR_FMT " (" STR_FMT ")", STR_ARG(status), STR_ARG(reason));
}

static const struct column api_service_columns[] = {
	NAME,
	COLUMN("Service", "string", 0,
	       "The reference to the service that hosts this API endpoint.",
	       CALL(api_service)),
	COLUMN("Available", "string", 0, "Whether this service is available.", CALL(api_available)),
	AGE,
};

static const struct table tables_policy_all[] = {
	TABLE("rbac.authorization.k8s.io", "RoleBinding", role_binding),
	TABLE("rbac.authorization.k8s.io", "ClusterRoleBinding", cluster_role_binding),
	TABLE("certificates.k8s.io", "CertificateSigningRequest", certificate_signing_request),
	TABLE("certificates.k8s.io", "ClusterTrustBundle", cluster_trust_bundle),
	TABLE("certificates.k8s.io", "PodCertificateRequest", pod_certificate_request),
	TABLE("admissionregistration.k8s.io", "MutatingWebhookConfiguration", webhook_configuration),
	TABLE("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", webhook_configuration),
	TABLE("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", validating_policy),
	TABLE("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", policy_binding),
	TABLE("admissionregistration.k8s.io", "MutatingAdmissionPolicy", mutating_policy),
	TABLE("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding", policy_binding),
	{ .group = STR_INIT("flowcontrol.apiserver.k8s.io"), .kind = STR_INIT("FlowSchema"), .columns = flow_schema,
	  .n = ARRAY_LEN(flow_schema), .rank = flow_schema_rank },
	TABLE("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration", priority_level),
	TABLE("apiregistration.k8s.io", "APIService", api_service_columns),
};

TABLE_SET(tables_policy);
