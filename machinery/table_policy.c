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

static const struct column role_binding[] = {
	NAME,
	COLUMN("Role", "string", 0, "Role that is given", CALL(role)),
	AGE,
	COLUMN("Users", "string", 1, "Users who have it", CALL(users)),
	COLUMN("Groups", "string", 1, "Groups that have it", CALL(groups)),
	COLUMN("ServiceAccounts", "string", 1, "Service accounts that have it", CALL(service_accounts)),
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
	COLUMN("SignerName", "string", 0, "Who should sign it", TEXT(spec, signerName), OR("<none>")),
	COLUMN("Requestor", "string", 0, "Who asked for it", TEXT(spec, username)),
	COLUMN("RequestedDuration", "string", 0, "How long it should be valid", CALL(requested_duration)),
	COLUMN("Condition", "string", 0, "What became of the request", CALL(request_condition)),
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

static const struct column webhook_configuration[] = { NAME, COLUMN("Webhooks", "integer", 0, "Number of webhooks", COUNT(webhooks)), AGE };

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
	COLUMN("Validations", "integer", 0, "Number of rules", COUNT(spec, validations)),
	COLUMN("ParamKind", "string", 0, "Kind of its parameters", CALL(param_kind)),
	AGE,
};

static const struct column mutating_policy[] = {
	NAME,
	COLUMN("Mutations", "integer", 0, "Number of changes", COUNT(spec, mutations)),
	COLUMN("ParamKind", "string", 0, "Kind of its parameters", CALL(param_kind)),
	AGE,
};

static const struct column policy_binding[] = {
	NAME,
	COLUMN("PolicyName", "string", 0, "Policy that is put into force", TEXT(spec, policyName)),
	COLUMN("ParamRef", "string", 0, "Its parameters", CALL(param_ref)),
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

static const struct column flow_schema[] = {
	NAME,
	COLUMN("PriorityLevel", "string", 0, "Level that its requests get", TEXT(spec, priorityLevelConfiguration, name)),
	COLUMN("MatchingPrecedence", "string", 0, "Which schema is tried first; less is earlier", NUMBER(spec, matchingPrecedence)),
	COLUMN("DistinguisherMethod", "string", 0, "How flows are told apart", CALL(distinguisher)),
	AGE,
	COLUMN("MissingPL", "string", 0, "Whether its level does not exist", CALL(dangling)),
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
	COLUMN("Type", "string", 0, "Exempt or Limited", TEXT(spec, type)),
	COLUMN("NominalConcurrencyShares", "string", 0, "Its share of the server's capacity", CALL(concurrency_shares)),
	COLUMN("Queues", "string", 0, "Number of queues", CALL(queues)),
	COLUMN("HandSize", "string", 0, "Queues that one flow may use", CALL(hand_size)),
	COLUMN("QueueLengthLimit", "string", 0, "Requests that may wait in a queue", CALL(queue_length)),
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
	COLUMN("Service", "string", 0, "Service that answers", CALL(api_service)),
	COLUMN("Available", "string", 0, "Whether it answers", CALL(api_available)),
	AGE,
};

static const struct table tables_policy_all[] = {
	TABLE("rbac.authorization.k8s.io", "RoleBinding", role_binding),
	TABLE("rbac.authorization.k8s.io", "ClusterRoleBinding", role_binding),
	TABLE("certificates.k8s.io", "CertificateSigningRequest", certificate_signing_request),
	TABLE("certificates.k8s.io", "ClusterTrustBundle", cluster_trust_bundle),
	TABLE("certificates.k8s.io", "PodCertificateRequest", pod_certificate_request),
	TABLE("admissionregistration.k8s.io", "MutatingWebhookConfiguration", webhook_configuration),
	TABLE("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", webhook_configuration),
	TABLE("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", validating_policy),
	TABLE("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", policy_binding),
	TABLE("admissionregistration.k8s.io", "MutatingAdmissionPolicy", mutating_policy),
	TABLE("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding", policy_binding),
	TABLE("flowcontrol.apiserver.k8s.io", "FlowSchema", flow_schema),
	TABLE("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration", priority_level),
	TABLE("apiregistration.k8s.io", "APIService", api_service_columns),
};

TABLE_SET(tables_policy);
