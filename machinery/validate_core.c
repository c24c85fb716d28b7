/*
 * The kinds of core/v1 that are no pods, workloads, services, volumes or nodes, and Events of both groups. Limits and
 * quotas are in validate_quota.c, nodes in validate_node.c.
 */
#include "base/encoding.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "machinery/validate_groups.h"

enum { DATA_MAX = 1 << 20 };

/* ---- Namespace ---- */

static void check_namespace(struct field_errors *e, struct val namespace)
{
	check_meta(e, namespace, false, name_rule_label);
	VAL_EACH(f, val_get(namespace, spec, finalizers))
		check_finalizer_name(e, FIELD(FIELD(NULL, "spec"), "finalizers"), val_as_str(*f));
}

static void check_namespace_update(struct field_errors *e, struct val namespace, struct val old)
{
	check_namespace(e, namespace);
	check_meta_update(e, namespace, old);
}

static void check_namespace_subresource(struct field_errors *e, str subresource, struct val namespace, struct val old)
{
	str phase = val_str(namespace, status, phase);
	const struct field_path *at = FIELD(FIELD(NULL, "status"), "Phase");
	size_t i = 0;

	check_meta_update(e, namespace, old);
	if (str_eq(subresource, STR("finalize"))) {
		VAL_EACH(f, val_get(namespace, spec, finalizers))
			check_finalizer_name(e, FIELD_INDEX(FIELD(FIELD(NULL, "spec"), "finalizers"), i++), val_as_str(*f));
		return;
	}
	if (!val_has(namespace, metadata, deletionTimestamp)) {
		if (!str_eq(phase, STR("Active")))
			field_invalid(e, at, VAL_STR(phase), "may only be 'Active' if `deletionTimestamp` is empty");
	} else if (!str_eq(phase, STR("Terminating"))) {
		field_invalid(e, at, VAL_STR(phase), "may only be 'Terminating' if `deletionTimestamp` is not empty");
	}
}

/* ---- ConfigMap and Secret ---- */

static void check_config_map(struct field_errors *e, struct val map)
{
	struct val binary = val_get(map, binaryData);
	size_t size = 0;

	check_meta(e, map, true, name_rule_subdomain);
	VAL_EACH_MEMBER(m, val_get(map, data)) {
		str key = atom_str(m->key);
		const struct field_path *at = FIELD_KEY(FIELD(NULL, "data"), key);
		check_name(e, at, key, name_check_config_key);
		if (val_exists(val_find(binary, key)))
			field_invalid(e, at, VAL_STR(key), "duplicate of key present in binaryData");
		size += val_as_str(m->val).n;
	}
	VAL_EACH_MEMBER(m, binary) {
		str key = atom_str(m->key);
		check_name(e, FIELD_KEY(FIELD(NULL, "binaryData"), key), key, name_check_config_key);
		size += base64_size(val_as_str(m->val));
	}
	if (size > DATA_MAX)
		field_too_long(e, FIELD(NULL, ""), DATA_MAX);
}

/* What ConfigMaps and Secrets have in common: immutable: true freezes these fields. */
static void check_frozen(struct field_errors *e, struct val now, struct val before, bool with_binary)
{
	static const char text[] = "field is immutable when `immutable` is set";
	if (!val_bool(before, immutable))
		return;
	if (!val_bool(now, immutable))
		field_forbidden(e, FIELD(NULL, "immutable"), text);
	if (!val_semantic_equal(NULL, val_get(now, data), val_get(before, data)))
		field_forbidden(e, FIELD(NULL, "data"), text);
	if (with_binary && !val_semantic_equal(NULL, val_get(now, binaryData), val_get(before, binaryData)))
		field_forbidden(e, FIELD(NULL, "binaryData"), text);
}

static void check_config_map_update(struct field_errors *e, struct val map, struct val old)
{
	check_meta_update(e, map, old);
	check_frozen(e, map, old, true);
	check_config_map(e, map);
}

/* data[key] must be there and hold a JSON object. */
static void check_docker_config(struct field_errors *e, const struct field_path *at, struct val data, str key)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(DATA_MAX * 2);
	struct val content = val_find(data, key), parsed;
	struct err err = ERR_INIT;

	if (!val_exists(content)) {
		field_missing(e, at);
		return;
	}
	if (base64_decode_buf(&text, val_as_str(content), &err) < 0 ||
	    json_decode(e->arena, buf_str(&text), &(struct json_decode_options){ 0 }, &parsed, &err) < 0) {
		field_invalid(e, at, VAL_LIT("<secret contents redacted>"), "%s", err.msg);
		return;
	}
	static const char *const names[] = { [VAL_BOOL] = "bool", [VAL_INT] = "number", [VAL_DOUBLE] = "number",
					     [VAL_STRING] = "string", [VAL_LIST] = "array" };
	if (!val_is_nil(parsed) && !val_is(parsed, VAL_OBJECT))
		field_invalid(e, at, VAL_LIT("<secret contents redacted>"),
			      "json: cannot unmarshal %s into Go value of type map[string]interface {}", names[parsed.type]);
}

static void check_secret_type(struct field_errors *e, struct val secret, str type, struct val data)
{
	const struct field_path *at = FIELD(NULL, "data");
	static const str account = STR_INIT("kubernetes.io/service-account.name");

	if (str_eq(type, STR("kubernetes.io/service-account-token"))) {
		check_given(e, FIELD_KEY(FIELD(FIELD(NULL, "metadata"), "annotations"), account),
			    val_as_str(val_find(val_get(secret, metadata, annotations), account)));
	} else if (str_eq(type, STR("kubernetes.io/dockercfg"))) {
		check_docker_config(e, FIELD_KEY(at, STR(".dockercfg")), data, STR(".dockercfg"));
	} else if (str_eq(type, STR("kubernetes.io/dockerconfigjson"))) {
		check_docker_config(e, FIELD_KEY(at, STR(".dockerconfigjson")), data, STR(".dockerconfigjson"));
	} else if (str_eq(type, STR("kubernetes.io/basic-auth"))) {
		if (!val_exists(val_find(data, STR("username"))) && !val_exists(val_find(data, STR("password")))) {
			field_missing(e, FIELD_KEY(at, STR("username")));
			field_missing(e, FIELD_KEY(at, STR("password")));
		}
	} else if (str_eq(type, STR("kubernetes.io/ssh-auth"))) {
		check_given(e, FIELD_KEY(at, STR("ssh-privatekey")), val_as_str(val_find(data, STR("ssh-privatekey"))));
	} else if (str_eq(type, STR("kubernetes.io/tls"))) {
		if (!val_exists(val_find(data, STR("tls.crt"))))
			field_missing(e, FIELD_KEY(at, STR("tls.crt")));
		if (!val_exists(val_find(data, STR("tls.key"))))
			field_missing(e, FIELD_KEY(at, STR("tls.key")));
	}
}

static void check_secret(struct field_errors *e, struct val secret)
{
	struct val data = val_get(secret, data);
	size_t size = 0;

	check_meta(e, secret, true, name_rule_subdomain);
	VAL_EACH_MEMBER(m, data) {
		str key = atom_str(m->key);
		check_name(e, FIELD_KEY(FIELD(NULL, "data"), key), key, name_check_config_key);
		size += base64_size(val_as_str(m->val));
	}
	if (size > DATA_MAX)
		field_too_long(e, FIELD(NULL, "data"), DATA_MAX);
	check_secret_type(e, secret, val_str(secret, type), data);
}

static void check_secret_update(struct field_errors *e, struct val secret, struct val old)
{
	check_meta_update(e, secret, old);
	check_immutable_str(e, FIELD(NULL, "type"), val_str(secret, type), val_str(old, type));
	check_frozen(e, secret, old, false);
	check_secret(e, secret);
}

/* ---- ServiceAccount ---- */

static void check_service_account(struct field_errors *e, struct val account)
{
	check_meta(e, account, true, name_rule_subdomain);
}

static void check_service_account_update(struct field_errors *e, struct val account, struct val old)
{
	check_meta_update(e, account, old);
	check_service_account(e, account);
}

/* ---- Endpoints ---- */

static void check_endpoint_address(struct field_errors *e, const struct field_path *at, struct val address)
{
	str ip = val_str(address, ip), hostname = val_str(address, hostname);

	check_legacy_ip(e, FIELD(at, "ip"), ip, VAL_EMPTY);
	if (hostname.n)
		check_name(e, FIELD(at, "hostname"), hostname, name_check_dns1123_label);
	if (val_has(address, nodeName))
		check_name(e, FIELD(at, "nodeName"), val_str(address, nodeName), name_check_dns1123_subdomain);
	check_endpoint_ip(e, FIELD(at, "ip"), ip);
}

static void check_endpoint_port(struct field_errors *e, const struct field_path *at, struct val port, bool named)
{
	str name = val_str(port, name);

	if (named)
		check_given(e, FIELD(at, "name"), name);
	if (name.n)
		check_name(e, FIELD(at, "name"), name, name_check_dns1123_label);
	check_port_number(e, FIELD(at, "port"), val_int(port, port));
	check_protocol(e, FIELD(at, "protocol"), val_str(port, protocol));
	if (val_has(port, appProtocol))
		check_label_key(e, FIELD(at, "appProtocol"), val_str(port, appProtocol));
}

static void check_subset(struct field_errors *e, const struct field_path *at, struct val subset)
{
	struct val ready = val_get(subset, addresses), others = val_get(subset, notReadyAddresses);
	struct val ports = val_get(subset, ports);
	size_t i = 0;

	if (val_len(ready) == 0 && val_len(others) == 0)
		field_required(e, at, "must specify `addresses` or `notReadyAddresses`");
	VAL_EACH(address, ready)
		check_endpoint_address(e, FIELD_INDEX(FIELD(at, "addresses"), i++), *address);
	i = 0;
	VAL_EACH(address, others)
		check_endpoint_address(e, FIELD_INDEX(FIELD(at, "notReadyAddresses"), i++), *address);
	i = 0;
	VAL_EACH(port, ports)
		check_endpoint_port(e, FIELD_INDEX(FIELD(at, "ports"), i++), *port, val_len(ports) > 1);
}

static void check_endpoints(struct field_errors *e, struct val endpoints)
{
	size_t i = 0;
	check_meta(e, endpoints, true, name_rule_subdomain);
	VAL_EACH(subset, val_get(endpoints, subsets))
		check_subset(e, FIELD_INDEX(FIELD(NULL, "subsets"), i++), *subset);
}

/* Subsets that older servers accepted may stay. */
static void check_endpoints_update(struct field_errors *e, struct val endpoints, struct val old)
{
	check_meta_update(e, endpoints, old);
	if (val_semantic_equal(TYPE(core_v1, EndpointSubset), val_get(endpoints, subsets), val_get(old, subsets)))
		check_meta(e, endpoints, true, name_rule_subdomain);
	else
		check_endpoints(e, endpoints);
}

/* ---- Event ---- */

enum { EVENT_WORD_MAX = 128, EVENT_NOTE_MAX = 1024 };

/* One view of both forms; errors use the names of core/v1, except for that of the controller. */
struct event {
	struct val val, metadata, object, series, related, source;
	struct val first, last, time, count;
	str namespace, reason, message, type, action, controller, instance;
	const char *controller_field;
};

static struct event event_of_core(struct val v)
{
	return (struct event){
		v, val_get(v, metadata), val_get(v, involvedObject), val_get(v, series), val_get(v, related),
		val_get(v, source), val_get(v, firstTimestamp), val_get(v, lastTimestamp), val_get(v, eventTime),
		val_get(v, count), val_str(v, metadata, namespace), val_str(v, reason), val_str(v, message),
		val_str(v, type), val_str(v, action), val_str(v, reportingComponent), val_str(v, reportingInstance),
		"reportingComponent",
	};
}

static struct event event_of_events(struct val v)
{
	return (struct event){
		v, val_get(v, metadata), val_get(v, regarding), val_get(v, series), val_get(v, related),
		val_get(v, deprecatedSource), val_get(v, deprecatedFirstTimestamp),
		val_get(v, deprecatedLastTimestamp), val_get(v, eventTime), val_get(v, deprecatedCount),
		val_str(v, metadata, namespace), val_str(v, reason), val_str(v, note), val_str(v, type),
		val_str(v, action), val_str(v, reportingController), val_str(v, reportingInstance),
		"reportingController",
	};
}

static void check_event_word(struct field_errors *e, const struct field_path *at, str word)
{
	check_given(e, at, word);
	if (word.n > EVENT_WORD_MAX)
		field_invalid(e, at, VAL_LIT(""), "can have at most %d characters", EVENT_WORD_MAX);
}

/* An event with eventTime is of the new kind, whatever the API that it comes through. */
static void check_event_any(struct field_errors *e, const struct event *v)
{
	str object_namespace = val_str(v->object, namespace);
	const struct field_path *controller = FIELD_STR(NULL, str_of(v->controller_field));
	bool is_default = str_eq(v->namespace, STR("default"));
	bool matches;

	if (val_exists(v->time))
		matches = object_namespace.n || is_default || str_eq(v->namespace, STR("kube-system"));
	else if (object_namespace.n == 0)
		matches = v->namespace.n == 0 || is_default;
	else
		matches = str_eq(v->namespace, object_namespace);
	if (!matches)
		field_invalid(e, FIELD(FIELD(NULL, "involvedObject"), "namespace"), VAL_STR(object_namespace),
			      "does not match event.namespace");
	if (val_exists(v->time)) {
		check_given(e, controller, v->controller);
		check_label_key(e, controller, v->controller);
		check_event_word(e, FIELD(NULL, "reportingInstance"), v->instance);
		check_event_word(e, FIELD(NULL, "action"), v->action);
		check_event_word(e, FIELD(NULL, "reason"), v->reason);
		if (v->message.n > EVENT_NOTE_MAX)
			field_invalid(e, FIELD(NULL, "message"), VAL_LIT(""), "can have at most %d characters",
				      EVENT_NOTE_MAX);
	}
	check_name(e, FIELD(NULL, "namespace"), v->namespace, name_check_dns1123_subdomain);
}

static void check_core_event(struct field_errors *e, struct val event)
{
	struct event v = event_of_core(event);
	check_event_any(e, &v);
}

static void check_event_series(struct field_errors *e, struct val series)
{
	if (!val_exists(series))
		return;
	if (val_int(series, count) < 2)
		field_invalid(e, FIELD(NULL, "series.count"), VAL_LIT(""), "should be at least 2");
	if (!val_has(series, lastObservedTime))
		field_missing(e, FIELD(NULL, "series.lastObservedTime"));
}

static void check_event(struct field_errors *e, struct val event)
{
	static const str types[] = { STR_INIT("Normal"), STR_INIT("Warning"), { NULL, 0 } };
	struct event v = event_of_events(event);

	check_event_any(e, &v);
	check_meta(e, event, true, name_rule_subdomain);
	check_event_series(e, v.series);
	if (!val_exists(v.time))
		field_missing(e, FIELD(NULL, "eventTime"));
	if (!str_in(v.type, types))
		field_invalid(e, FIELD(NULL, "type"), VAL_LIT(""), "has invalid value: " STR_FMT, STR_ARG(v.type));
	if (val_exists(v.first))
		field_invalid(e, FIELD(NULL, "firstTimestamp"), VAL_LIT(""), "needs to be unset");
	if (val_exists(v.last))
		field_invalid(e, FIELD(NULL, "lastTimestamp"), VAL_LIT(""), "needs to be unset");
	if (val_as_int(v.count))
		field_invalid(e, FIELD(NULL, "count"), VAL_LIT(""), "needs to be unset");
	if (val_str(v.source, component).n || val_str(v.source, host).n)
		field_invalid(e, FIELD(NULL, "source"), VAL_LIT(""), "needs to be unset");
}

static void check_event_update(struct field_errors *e, struct val event, struct val old)
{
	struct event now = event_of_events(event), before = event_of_events(old);
	const struct type *reference = TYPE(core_v1, ObjectReference);

	check_event_any(e, &now);
	check_meta_update(e, event, old);
	if (!val_semantic_equal(TYPE(events_v1, EventSeries), now.series, before.series))
		check_event_series(e, now.series);
	check_immutable(e, FIELD(NULL, "involvedObject"), reference, now.object, before.object);
	check_immutable_str(e, FIELD(NULL, "reason"), now.reason, before.reason);
	check_immutable_str(e, FIELD(NULL, "message"), now.message, before.message);
	check_immutable(e, FIELD(NULL, "source"), TYPE(core_v1, EventSource), now.source, before.source);
	check_immutable(e, FIELD(NULL, "firstTimestamp"), NULL, now.first, before.first);
	check_immutable(e, FIELD(NULL, "lastTimestamp"), NULL, now.last, before.last);
	check_immutable(e, FIELD(NULL, "count"), NULL, shown_int(now.count), shown_int(before.count));
	check_immutable_str(e, FIELD(NULL, "reason"), now.reason, before.reason);
	check_immutable_str(e, FIELD(NULL, "type"), now.type, before.type);
	check_immutable(e, FIELD(NULL, "eventTime"), NULL, now.time, before.time);
	check_immutable_str(e, FIELD(NULL, "action"), now.action, before.action);
	check_immutable(e, FIELD(NULL, "related"), reference, now.related, before.related);
	check_immutable_str(e, FIELD(NULL, "reportingController"), now.controller, before.controller);
	check_immutable_str(e, FIELD(NULL, "reportingInstance"), now.instance, before.instance);
}

const struct kind_rules rules_core[] = {
	{ TYPE(core_v1, Namespace), name_rule_label, KIND_OWN_META, .defaults = default_namespace, .check = check_namespace,
	  .check_update = check_namespace_update, .check_subresource = check_namespace_subresource,
	  .prepare = prepare_namespace, .prepare_update = prepare_namespace_update },
	{ TYPE(core_v1, ConfigMap), name_rule_subdomain, KIND_OWN_META, .check = check_config_map,
	  .check_update = check_config_map_update },
	{ TYPE(core_v1, Secret), name_rule_subdomain, KIND_OWN_META, .defaults = default_secret, .check = check_secret,
	  .check_update = check_secret_update },
	{ TYPE(core_v1, ServiceAccount), name_rule_subdomain, KIND_OWN_META, .check = check_service_account,
	  .check_update = check_service_account_update, .prepare = prepare_service_account,
	  .prepare_update = prepare_service_account_update },
	{ TYPE(core_v1, LimitRange), name_rule_subdomain, KIND_OWN_META, .defaults = default_limit_range,
	  .check = check_limit_range, .prepare = prepare_limit_range },
	{ TYPE(core_v1, ResourceQuota), name_rule_subdomain, KIND_OWN_META, .defaults = default_resource_quota,
	  .check = check_resource_quota, .check_update = check_resource_quota_update,
	  .check_subresource = check_resource_quota_status },
	{ TYPE(core_v1, Node), name_rule_subdomain, KIND_OWN_META | KIND_STATUS_ON_CREATE, .defaults = default_node,
	  .check = check_node, .check_update = check_node_update, .check_subresource = check_node_status,
	  .prepare = prepare_node, .prepare_update = prepare_node_update },
	{ TYPE(core_v1, Endpoints), name_rule_subdomain, KIND_OWN_META, .defaults = default_endpoints,
	  .check = check_endpoints, .check_update = check_endpoints_update },
	{ TYPE(core_v1, Event), name_rule_subdomain, KIND_OWN_META, .check = check_core_event },
	{ TYPE(events_v1, Event), name_rule_subdomain, KIND_OWN_META, .check = check_event,
	  .check_update = check_event_update },
	{ 0 },
};
