/* Feature gates of a kubelet: machinery/gates.h. */
#include "codec/atoms.h"
#include "kubelet/config_priv.h"
#include "machinery/gates.h"

bool config_gate(struct val config, str name) { return gate_is_on(val_get(config, featureGates), name); }

static void complain(void *arg, str text) { config_error(arg, STR_FMT, STR_ARG(text)); }

void config_check_gates(struct config_errors *e, struct val said)
{
	gates_check(e->arena, said, complain, e);
	if (!e->n)
		gates_check_needs(e->arena, said, complain, e);
}
