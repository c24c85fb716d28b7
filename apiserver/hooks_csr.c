/* CertificateSigningRequests say who asks for the certificate: the server writes it down, not the client. */
#include "apiserver/hooks.h"
#include "apiserver/request.h"
#include "codec/atoms.h"

static struct val fill(struct request *q, struct val object)
{
	struct arena *a = q->arena;
	struct val_builder groups = val_builder(a);
	for (size_t i = 0; i < q->user.n_groups; i++)
		val_add_item(&groups, val_of_str(q->user.groups[i]));
	struct val spec = val_get(object, spec);
	spec = val_put(a, spec, A_username, q->user.name.n ? val_of_str(q->user.name) : VAL_EMPTY);
	spec = val_put(a, spec, A_uid, q->user.uid.n ? val_of_str(q->user.uid) : VAL_EMPTY);
	spec = val_put(a, spec, A_groups, groups.n ? val_end_list(&groups) : VAL_EMPTY);
	spec = val_put(a, spec, A_extra, val_len(q->user.extra) ? q->user.extra : VAL_EMPTY);
	struct val filled;
	return val_canonical(a, val_with(a, object, spec, spec), q->type, NULL, &filled, NULL) < 0 ? object : filled;
}

const struct kind_hooks csr_hooks = { .fill = fill };
