/*
 * The CEL expressions that choose devices of dynamic resource allocation: ResourceClaims and DeviceClasses hold them. An expression
 * sees one variable, device, with driver, attributes (by domain, then name), capacity (likewise) and
 * allowMultipleAllocations. A domain that the device does not have reads as an empty map.
 */
#ifndef C8S_MACHINERY_CEL_DEVICE_H
#define C8S_MACHINERY_CEL_DEVICE_H

#include "machinery/cel.h"

enum {
	CEL_DEVICE_EXPRESSION_MAX = 10 * 1024, /* bytes */
	CEL_DEVICE_COST_MAX = 1000000,
};

/* Feature gates that change the variable. */
enum cel_device_features {
	CEL_DEVICE_CONSUMABLE_CAPACITY = 1 << 0, /* DRAConsumableCapacity: allowMultipleAllocations */
	CEL_DEVICE_LIST_ATTRIBUTES = 1 << 1,     /* DRAListTypeAttributes: lists as values, and includes() */
};

/*
 * Compiles an expression; programs are shared and released as other ones. -ERR_INVALID with Kubernetes' text in *ret_why (in the
 * arena) when it has an error or cannot be a bool. ret_program may be NULL. Callers that accept new expressions also compare
 * cel_program_max_cost with CEL_DEVICE_COST_MAX.
 */
int cel_device_compile(str expression, unsigned features, struct arena *a, struct cel_program **ret_program, str *ret_why);

/*
 * Whether a device of a ResourceSlice (spec.devices[i], of any served version) of this driver is chosen. The program must come from
 * cel_device_compile. *ret_match is written on success; -ERR_INVALID with Kubernetes' text when the evaluation
 * fails, which ends the scheduling of the pod there. Memory comes from the arena.
 */
int cel_device_matches(const struct cel_program *p, unsigned features, str driver, struct val device, struct arena *a, bool *ret_match,
		       struct err *err);

#endif
