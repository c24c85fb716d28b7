/* resource.k8s.io (devices), coordination, node. */
#include "machinery/table_priv.h"

static const struct column lease[] = { NAME, COLUMN("Holder", "string", 0, "Who holds the lease", TEXT(spec, holderIdentity)), AGE };

static const struct column lease_candidate[] = {
	NAME,
	COLUMN("LeaseName", "string", 0, "Lease that it wants", TEXT(spec, leaseName)),
	COLUMN("BinaryVersion", "string", 0, "Version of its program", TEXT(spec, binaryVersion)),
	COLUMN("EmulationVersion", "string", 0, "Version that it behaves like", TEXT(spec, emulationVersion)),
	AGE,
};

static const struct column runtime_class[] = { NAME, COLUMN("Handler", "string", 0, "", TEXT(handler)), AGE };
static const struct column device_class[] = { NAME, AGE };
static const struct column resource_claim_template[] = { NAME, AGE };

static struct val claim_state(const struct row *row)
{
	bool deleted = cell_is_deleted(row), allocated = val_has(row->object, status, allocation);
	bool reserved = allocated && val_len(val_get(row->object, status, reservedFor));
	if (!allocated)
		return deleted ? VAL_LIT("deleted") : VAL_LIT("pending");
	return cell_printf(row, "%sallocated%s", deleted ? "deleted," : "", reserved ? ",reserved" : "");
}

static const struct column resource_claim[] = {
	NAME,
	COLUMN("State", "string", 0, "Whether devices are allocated and in use", CALL(claim_state)),
	AGE,
};

static const struct column resource_slice[] = {
	NAME,
	COLUMN("Node", "string", 0,
	       "NodeName identifies the node which provides the resources in this pool. A field "
	       "selector can be used to list only ResourceSlice objects belonging to a certain "
	       "node.\n\nThis field can be used to limit access from nodes to ResourceSlices with the "
	       "same node name. It also indicates to autoscalers that adding new nodes of the same "
	       "type as some old node might also make new resources available.\n\nExactly one of "
	       "NodeName, NodeSelector, AllNodes, and PerDeviceNodeSelection must be set. This field "
	       "is immutable.",
	       TEXT(spec, nodeName)),
	COLUMN("Driver", "string", 0,
	       "Driver identifies the DRA driver providing the capacity information. A field selector "
	       "can be used to list only ResourceSlice objects with a certain driver name.\n\nMust be "
	       "a DNS subdomain and should end with a DNS domain owned by the vendor of the driver. "
	       "It should use only lower case characters. This field is immutable.",
	       TEXT(spec, driver)),
	COLUMN("Pool", "string", 0,
	       "Name is used to identify the pool. For node-local devices, this is often the node "
	       "name, but this is not required.\n\nIt must not be longer than 253 characters and must "
	       "consist of one or more DNS sub-domains separated by slashes. This field is immutable.",
	       TEXT(spec, pool, name)),
	AGE,
};

static const struct column device_taint_rule[] = {
	NAME,
	COLUMN("Key", "string", 0, "Key of the taint", TEXT(spec, taint, key)),
	COLUMN("Value", "string", 0, "Value of the taint", TEXT(spec, taint, value)),
	COLUMN("Effect", "string", 0, "What it does to pods", TEXT(spec, taint, effect)),
	COLUMN("TimeAdded", "string", 0, "Time since the taint was added", SINCE(spec, taint, timeAdded), OR("")),
	AGE,
};

/* ---- ResourcePoolStatusRequest ---- */

struct pool_facts {
	const char *status;
	struct val completed;
	bool has_sums;
	int32_t total, available, allocated, unavailable, errors; /* wrap around, as Go's do */
};

static void add_devices(int32_t *sum, struct val n) { *sum = (int32_t)((uint32_t)*sum + (uint32_t)val_as_int(n)); }

static const void *pool_prepare(const struct row *row)
{
	struct pool_facts *f = ARENA_NEW(row->arena, struct pool_facts);
	struct val status = val_get(row->object, status);

	f->status = "Pending";
	VAL_EACH(c, val_get(status, conditions)) {
		bool complete = str_eq(val_str(*c, type), STR("Complete")), failed = str_eq(val_str(*c, type), STR("Failed"));
		if ((!complete && !failed) || !str_eq(val_str(*c, status), STR("True")))
			continue;
		f->status = complete ? "Complete" : "Failed";
		f->completed = complete ? val_get(*c, lastTransitionTime) : VAL_EMPTY;
		break;
	}
	f->has_sums = val_exists(status) && !str_eq(str_of(f->status), STR("Failed"));
	VAL_EACH(p, val_get(status, pools)) {
		f->errors += val_has(*p, validationError);
		add_devices(&f->total, val_get(*p, totalDevices));
		add_devices(&f->available, val_get(*p, availableDevices));
		add_devices(&f->allocated, val_get(*p, allocatedDevices));
		add_devices(&f->unavailable, val_get(*p, unavailableDevices));
	}
	return f;
}

static const struct pool_facts *facts(const struct row *row) { return row->facts; }

static struct val pool_sum(const struct row *row, int32_t sum)
{
	return facts(row)->has_sums ? cell_printf(row, "%d", sum) : VAL_LIT("-");
}

static struct val pool_total(const struct row *row) { return pool_sum(row, facts(row)->total); }
static struct val pool_available(const struct row *row) { return pool_sum(row, facts(row)->available); }
static struct val pool_allocated(const struct row *row) { return pool_sum(row, facts(row)->allocated); }
static struct val pool_unavailable(const struct row *row) { return pool_sum(row, facts(row)->unavailable); }
static struct val pool_errors(const struct row *row) { return pool_sum(row, facts(row)->errors); }

static struct val pool_status(const struct row *row)
{
	const struct pool_facts *f = row->facts;
	int64_t count = val_int(row->object, status, poolCount), listed = val_len(val_get(row->object, status, pools));
	if (str_eq(str_of(f->status), STR("Complete")) && count > listed)
		return cell_printf(row, "Complete (%lld/%lld pools)", (long long)listed, (long long)count);
	return cell_printf(row, "%s", f->status);
}

static struct val pool_completed(const struct row *row)
{
	const struct pool_facts *f = row->facts;
	return str_eq(str_of(f->status), STR("Complete")) ? val_of_str(cell_since(row, f->completed)) : VAL_LIT("<none>");
}

static const struct column resource_pool_status_request[] = {
	NAME,
	COLUMN("Driver", "string", 0, "Driver whose pools are asked about", TEXT(spec, driver)),
	COLUMN("Total", "string", 0, "Devices in all pools", CALL(pool_total)),
	COLUMN("Available", "string", 0, "Devices that are free", CALL(pool_available)),
	COLUMN("Allocated", "string", 0, "Devices in use", CALL(pool_allocated)),
	COLUMN("Unavailable", "string", 0, "Devices that cannot be used", CALL(pool_unavailable)),
	COLUMN("Errors", "string", 0, "Pools with mistakes in them", CALL(pool_errors)),
	COLUMN("Pools", "integer", 0, "Number of pools that match", NUMBER(status, poolCount)),
	COLUMN("Status", "string", 0, "State of the request", CALL(pool_status)),
	COLUMN("Completed", "string", 0, "Time since it was answered", CALL(pool_completed)),
};

static const struct table tables_resource_all[] = {
	TABLE("coordination.k8s.io", "Lease", lease),
	TABLE("coordination.k8s.io", "LeaseCandidate", lease_candidate),
	TABLE("node.k8s.io", "RuntimeClass", runtime_class),
	TABLE("resource.k8s.io", "DeviceClass", device_class),
	TABLE("resource.k8s.io", "ResourceClaim", resource_claim),
	TABLE("resource.k8s.io", "ResourceClaimTemplate", resource_claim_template),
	TABLE("resource.k8s.io", "ResourceSlice", resource_slice),
	TABLE("resource.k8s.io", "DeviceTaintRule", device_taint_rule),
	{ .group = STR_INIT("resource.k8s.io"), .kind = STR_INIT("ResourcePoolStatusRequest"),
	  .columns = resource_pool_status_request, .n = ARRAY_LEN(resource_pool_status_request), .prepare = pool_prepare },
};

TABLE_SET(tables_resource);
