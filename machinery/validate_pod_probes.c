/* Probes and lifecycle hooks: both are made of handlers. */
#include "codec/atoms.h"
#include "machinery/validate_pod.h"

static void check_exec(struct field_errors *e, const struct field_path *at, struct val action)
{
	if (val_len(val_get(action, command)) == 0)
		field_missing(e, FIELD(at, "command"));
}

static void check_http_get(struct field_errors *e, const struct field_path *at, struct val action)
{
	static const str schemes[] = { STR_INIT("HTTP"), STR_INIT("HTTPS"), { NULL, 0 } };

	if (val_str(action, path).n == 0)
		field_missing(e, FIELD(at, "path"));
	check_port_or_name(e, FIELD(at, "port"), val_get(action, port));
	check_one_of(e, FIELD(at, "scheme"), val_str(action, scheme), schemes);
	VAL_EACH(header, val_get(action, httpHeaders))
		check_name(e, FIELD(at, "httpHeaders"), val_str(*header, name), name_check_http_header);
}

static void check_port(struct field_errors *e, const struct field_path *at, struct val action)
{
	check_port_or_name(e, FIELD(at, "port"), val_get(action, port));
}

static const struct {
	uint16_t name;
	void (*check)(struct field_errors *e, const struct field_path *at, struct val action);
} handlers[] = {
	{ A_exec, check_exec }, { A_httpGet, check_http_get }, { A_tcpSocket, check_port }, { A_grpc, check_port },
	{ A_sleep, NULL },
};

static void check_sleep(struct pod_check *c, const struct field_path *at, struct val action)
{
	int64_t seconds = val_int(action, seconds), grace = val_int(c->spec, terminationGracePeriodSeconds);

	if (val_has(c->spec, terminationGracePeriodSeconds) && (seconds < 0 || seconds > grace))
		field_invalid(c->e, at, val_of_int(seconds),
			      "must be non-negative and less than terminationGracePeriodSeconds (%lld)",
			      (long long)grace);
}

static void check_handler(struct pod_check *c, const struct field_path *at, struct val handler)
{
	unsigned n = 0;
	for (size_t i = 0; i < ARRAY_LEN(handlers); i++) {
		struct val action = val_member(handler, handlers[i].name);
		const struct field_path *below = FIELD_STR(at, atom_str(handlers[i].name));
		if (!val_exists(action))
			continue;
		if (n++)
			field_forbidden(c->e, below, "may not specify more than 1 handler type");
		else if (handlers[i].check)
			handlers[i].check(c->e, below, action);
		else
			check_sleep(c, below, action);
	}
	if (n == 0)
		field_required(c->e, at, "must specify a handler type");
}

static void check_probe(struct pod_check *c, const struct field_path *at, struct val probe)
{
	static const uint16_t numbers[] =
		{ A_initialDelaySeconds, A_timeoutSeconds, A_periodSeconds, A_successThreshold, A_failureThreshold };

	check_handler(c, at, probe);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		check_non_negative(c->e, FIELD_STR(at, atom_str(numbers[i])), val_member(probe, numbers[i]));
	if (val_has(probe, terminationGracePeriodSeconds) && val_int(probe, terminationGracePeriodSeconds) <= 0)
		field_invalid(c->e, FIELD(at, "terminationGracePeriodSeconds"),
			      val_get(probe, terminationGracePeriodSeconds),
			      "must be greater than 0");
}

/* Liveness and startup: one success is enough. */
static void check_strict_probe(struct pod_check *c, const struct field_path *at, struct val probe)
{
	if (!val_exists(probe))
		return;
	check_probe(c, at, probe);
	if (val_int(probe, successThreshold) != 1)
		field_invalid(c->e, FIELD(at, "successThreshold"), val_of_int(val_int(probe, successThreshold)),
			      "must be 1");
}

static void check_readiness_probe(struct pod_check *c, const struct field_path *at, struct val probe)
{
	if (!val_exists(probe))
		return;
	check_probe(c, at, probe);
	if (val_has(probe, terminationGracePeriodSeconds))
		field_invalid(c->e, FIELD(at, "terminationGracePeriodSeconds"),
			      val_get(probe, terminationGracePeriodSeconds),
			      "must not be set for readinessProbes");
}

void check_probes(struct pod_check *c, const struct field_path *at, struct val container)
{
	struct val lifecycle = val_get(container, lifecycle);

	if (val_has(lifecycle, postStart))
		check_handler(c, FIELD(FIELD(at, "lifecycle"), "postStart"), val_get(lifecycle, postStart));
	if (val_has(lifecycle, preStop))
		check_handler(c, FIELD(FIELD(at, "lifecycle"), "preStop"), val_get(lifecycle, preStop));
	check_strict_probe(c, FIELD(at, "livenessProbe"), val_get(container, livenessProbe));
	check_readiness_probe(c, FIELD(at, "readinessProbe"), val_get(container, readinessProbe));
	check_strict_probe(c, FIELD(at, "startupProbe"), val_get(container, startupProbe));
}
