/* ClusterTrustBundleAttest: who says what a signer's clients are to trust must be allowed to speak for the signer. */
#include "apiserver/admission/certificates.h"
#include "apiserver/admission/plugins.h"
#include "apiserver/meta.h"
#include "codec/atoms.h"
#include "machinery/validate_priv.h"

/* Only what garbage collection changes: owners and finalizers, and who manages which fields. */
static bool changes_nothing(struct request *q)
{
	static const atom free_to_change[] = { A_ownerReferences, A_finalizers, A_selfLink, A_managedFields };
	struct val object = q->object;
	for (size_t i = 0; i < ARRAY_LEN(free_to_change); i++)
		object = meta_put(q->arena, object, free_to_change[i], val_member(val_get(q->old, metadata), free_to_change[i]));
	return val_semantic_equal(q->type, object, q->old);
}

static int validate(struct request *q, struct err *err)
{
	(void)err;
	enum admission_operation operation = admission_operation(q);
	if (!certificate_write(q, STR("clustertrustbundles"), STR("")) ||
	    (operation != ADMISSION_CREATE && operation != ADMISSION_UPDATE))
		return 0;
	str signer = val_str(q->object, spec, signerName);
	if (!signer.n || (operation == ADMISSION_UPDATE && changes_nothing(q)) ||
	    certificate_signer_allows(q, STR("attest"), signer))
		return 0;
	return admission_forbid(q, "user not permitted to attest for signerName " STR_FMT, STR_ARG(admission_quoted(q, signer)));
}

const struct admission_plugin admission_cluster_trust_bundle_attest = {
	.name = "ClusterTrustBundleAttest", .validate = validate,
};
