/*
 * What the files of the groups besides pods and workloads share: small checks, and the rules of kinds whose group takes
 * more than one file. Each such file implements them in the order of Kubernetes' functions; the table that names them is
 * in the group's main file.
 */
#ifndef C8S_MACHINERY_VALIDATE_GROUPS_H
#define C8S_MACHINERY_VALIDATE_GROUPS_H

#include "machinery/validate_priv.h"

/* ---- words of the groups besides pods: validate_common.c ---- */

/* The metadata of an object, as check_object_meta and check_object_meta_update do it. */
void check_meta(struct field_errors *e, struct val object, bool namespaced, name_rule *rule);
void check_meta_update(struct field_errors *e, struct val object, struct val old);
/* "Required value" for an empty text; true when it is given. */
bool check_given(struct field_errors *e, const struct field_path *at, str value);
/* A given text that passes check, a check of names.h. */
void check_given_name(struct field_errors *e, const struct field_path *at, str value, name_check *check);
/* All complaints of a check in one error, with sep between them. */
void check_name_joined(struct field_errors *e, const struct field_path *at, str value, name_check *check, const char *sep);
/* As check_immutable for a text, an absent one being "". */
void check_immutable_str(struct field_errors *e, const struct field_path *at, str now, str before);
bool list_has(struct val list, str text);
/* Texts of the list; the set lives no longer than they. */
void set_add_all(struct map *set, struct val list);
/* The bytes that a text in base64 stands for; it is well-formed. */
size_t base64_size(str base64);
/* What Kubernetes prints about the difference of two objects, given as internal_form makes them. */
str form_diff(struct arena *a, struct val before, struct val after);
/* A typed number of Go that is shown as 0 when it is absent. */
static inline struct val shown_int(struct val number) { return val_of_int(val_as_int(number)); }
static inline struct val shown_str(struct val text) { return val_of_str(val_as_str(text)); }

/* Fields for addresses and blocks from before Kubernetes 1.33; what stands in old, a list of texts, stays allowed. */
void check_legacy_ip(struct field_errors *e, const struct field_path *at, str value, struct val old);
void check_legacy_cidr(struct field_errors *e, const struct field_path *at, str value, struct val old);
/* An address that can be somewhere else: not unspecified, loopback or link-local. */
void check_endpoint_ip(struct field_errors *e, const struct field_path *at, str value);
/* TCP, UDP or SCTP; required. */
void check_protocol(struct field_errors *e, const struct field_path *at, str protocol);
void check_port_number(struct field_errors *e, const struct field_path *at, int64_t port);
extern const str protocol_names[];
/* example.com/any/path; required. */
void check_domain_prefixed_path(struct field_errors *e, const struct field_path *at, str value);

/* As edit_member, or as edit_items for a member that is a list. An absent one stays absent. */
struct val default_within(struct arena *a, struct val object, atom key,
			  struct val (*defaults)(struct arena *a, struct val part));

/* ---- core: validate_core.c, validate_node.c, validate_quota.c, defaults_core.c ---- */

struct val default_namespace(struct arena *a, struct val namespace);
struct val default_secret(struct arena *a, struct val secret);
struct val default_limit_range(struct arena *a, struct val range);
struct val default_resource_quota(struct arena *a, struct val quota);
struct val default_node(struct arena *a, struct val node);
struct val default_endpoints(struct arena *a, struct val endpoints);

void check_limit_range(struct field_errors *e, struct val range);
void check_resource_quota(struct field_errors *e, struct val quota);
void check_resource_quota_update(struct field_errors *e, struct val quota, struct val old);
void check_resource_quota_status(struct field_errors *e, str subresource, struct val quota, struct val old);
void check_node(struct field_errors *e, struct val node);
void check_node_update(struct field_errors *e, struct val node, struct val old);
void check_node_status(struct field_errors *e, str subresource, struct val node, struct val old);

/* ---- networking: validate_networking.c, validate_service.c, validate_endpoint_slice.c, defaults_networking.c ---- */

struct val default_service(struct arena *a, struct val service);
struct val default_endpoint_slice(struct arena *a, struct val slice);
struct val default_ingress_class(struct arena *a, struct val class);
struct val default_network_policy(struct arena *a, struct val policy);

void check_service(struct field_errors *e, struct val service);
void check_service_update(struct field_errors *e, struct val service, struct val old);
void check_service_status(struct field_errors *e, str subresource, struct val service, struct val old);
void check_endpoint_slice(struct field_errors *e, struct val slice);
void check_endpoint_slice_update(struct field_errors *e, struct val slice, struct val old);
/* Points of load balancers, of Services and Ingresses: the addresses they have, and a host name that one may have. */
struct val ingress_ips(struct arena *a, struct val points);
void check_ingress_hostname(struct field_errors *e, const struct field_path *at, str hostname);

/* ---- storage: validate_storage.c, validate_volume.c, defaults_storage.c ---- */

struct val default_persistent_volume(struct arena *a, struct val volume);
struct val default_claim(struct arena *a, struct val claim);
struct val default_storage_class(struct arena *a, struct val class);
struct val default_attachment(struct arena *a, struct val attachment);
struct val default_csi_driver(struct arena *a, struct val driver);

void check_persistent_volume(struct field_errors *e, struct val volume);
void check_persistent_volume_update(struct field_errors *e, struct val volume, struct val old);
void check_persistent_volume_status(struct field_errors *e, str subresource, struct val volume, struct val old);
/* The spec of a volume that stands in a VolumeAttachment. */
void check_inline_volume(struct field_errors *e, const struct field_path *at, struct val spec);
void check_claim(struct field_errors *e, struct val claim);
void check_claim_update(struct field_errors *e, struct val claim, struct val old);
void check_claim_status(struct field_errors *e, str subresource, struct val claim, struct val old);

/* ---- access: validate_{access,certificates,flowcontrol,autoscaling}.c, defaults_access.c ---- */

struct val default_role_binding(struct arena *a, struct val binding);
struct val default_priority_class(struct arena *a, struct val class);
struct val default_runtime_class(struct arena *a, struct val class);
struct val default_flow_schema(struct arena *a, struct val schema);
struct val default_priority_level(struct arena *a, struct val level);
struct val default_autoscaler(struct arena *a, struct val autoscaler);
struct val default_token_request(struct arena *a, struct val request);

/* example.com/path */
void check_signer_name(struct field_errors *e, const struct field_path *at, str name);
/* What is wrong with the certificates that a webhook is known by (base64 of PEM), or nothing. */
str ca_bundle_error(struct arena *a, struct val bundle);
void check_csr(struct field_errors *e, struct val csr);
void check_csr_update(struct field_errors *e, struct val csr, struct val old);
void check_csr_subresource(struct field_errors *e, str subresource, struct val csr, struct val old);
/* The name of a ClusterTrustBundle in another object: where it has colons, those before the last are of its signer. */
void check_bundle_reference(struct field_errors *e, const struct field_path *at, str name);
void check_bundle(struct field_errors *e, struct val bundle);
void check_bundle_update(struct field_errors *e, struct val bundle, struct val old);
void check_flow_schema(struct field_errors *e, struct val schema);
void check_priority_level(struct field_errors *e, struct val level);
void check_flowcontrol_status(struct field_errors *e, str subresource, struct val object, struct val old);
void check_autoscaler(struct field_errors *e, struct val autoscaler);
void check_autoscaler_update(struct field_errors *e, struct val autoscaler, struct val old);
void check_autoscaler_status(struct field_errors *e, str subresource, struct val autoscaler, struct val old);

/*
 * ---- extensions: validate_extensions.c (the table), validate_webhooks.c, validate_admission.c, validate_crd.c,
 * validate_crd_schema.c, validate_devices.c, validate_device_slices.c, defaults_extensions.c ----
 */

struct val default_webhooks(struct arena *a, struct val configuration);
struct val default_mutating_webhooks(struct arena *a, struct val configuration);
struct val default_admission_policy(struct arena *a, struct val policy);
struct val default_admission_binding(struct arena *a, struct val binding);

void check_webhooks(struct field_errors *e, struct val configuration);
void check_webhooks_update(struct field_errors *e, struct val configuration, struct val old);
void check_webhook_url(struct field_errors *e, const struct field_path *at, str text);
void check_webhook_service(struct field_errors *e, const struct field_path *at, struct val service);
/* url or service of a WebhookClientConfig. */
void check_webhook_client(struct field_errors *e, const struct field_path *at, struct val config);
/* RuleWithOperations, and MatchCondition lists. */
void check_admission_rule(struct field_errors *e, const struct field_path *at, struct val rule);
void check_match_conditions(struct field_errors *e, const struct field_path *at, struct val conditions);
extern const str failure_policies[], match_policies[], reinvocation_policies[];

void check_validating_policy(struct field_errors *e, struct val policy);
void check_validating_policy_update(struct field_errors *e, struct val policy, struct val old);
void check_validating_policy_status(struct field_errors *e, str subresource, struct val policy, struct val old);
void check_validating_binding(struct field_errors *e, struct val binding);
void check_mutating_policy(struct field_errors *e, struct val policy);
void check_mutating_policy_update(struct field_errors *e, struct val policy, struct val old);
void check_mutating_binding(struct field_errors *e, struct val binding);

struct val default_crd(struct arena *a, struct val crd);
struct val default_api_service(struct arena *a, struct val service);
struct val default_resource_claim(struct arena *a, struct val claim);
struct val default_claim_template(struct arena *a, struct val template);
struct val default_resource_slice(struct arena *a, struct val slice);
struct val default_taint_rule(struct arena *a, struct val rule);

void check_crd(struct field_errors *e, struct val crd);
void check_crd_update(struct field_errors *e, struct val crd, struct val old);
void check_crd_status(struct field_errors *e, str subresource, struct val crd, struct val old);

void check_resource_claim(struct field_errors *e, struct val claim);
void check_resource_claim_update(struct field_errors *e, struct val claim, struct val old);
void check_resource_claim_status(struct field_errors *e, str subresource, struct val claim, struct val old);
void check_claim_template(struct field_errors *e, struct val template);
void check_claim_template_update(struct field_errors *e, struct val template, struct val old);
void check_device_class(struct field_errors *e, struct val class);
void check_device_class_update(struct field_errors *e, struct val class, struct val old);
void check_taint_rule(struct field_errors *e, struct val rule);
void check_taint_rule_update(struct field_errors *e, struct val rule, struct val old);
void check_taint_rule_status(struct field_errors *e, str subresource, struct val rule, struct val old);
void check_resource_slice(struct field_errors *e, struct val slice);
void check_resource_slice_update(struct field_errors *e, struct val slice, struct val old);
name_rule name_rule_long;

/* ---- preparing: prepare_groups.c ---- */

typedef struct val prepare_fn(struct arena *a, struct val object);
typedef struct val prepare_update_fn(struct arena *a, str subresource, struct val object, struct val old);

prepare_fn prepare_namespace, prepare_node, prepare_limit_range, prepare_service, prepare_service_account, prepare_endpoint_slice,
	prepare_volume, prepare_claim, prepare_csr, prepare_crd, prepare_api_service;
prepare_update_fn prepare_namespace_update, prepare_node_update, prepare_service_account_update, prepare_service_update,
	prepare_endpoint_slice_update, prepare_volume_update, prepare_claim_update, prepare_csi_driver_update,
	prepare_csr_update, prepare_flow_update, prepare_crd_update, prepare_resource_claim_update;
/* For kinds that count no changes, and for those whose status is written with the old metadata. */
prepare_fn prepare_first_generation;
prepare_update_fn prepare_status_only;

#endif
