/* The rules of single kinds, which convert.c calls. */
#ifndef C8S_MACHINERY_CONVERT_PRIV_H
#define C8S_MACHINERY_CONVERT_PRIV_H

#include "machinery/convert.h"

/* The members of the object as the other version has them, in any order; what it does not know is dropped later. */
typedef struct val convert_rule(struct arena *a, struct val object);

/* convert_autoscaling.c: HorizontalPodAutoscaler */
convert_rule convert_autoscaler_v1_to_v2, convert_autoscaler_v2_to_v1;
/* convert_resource.c: resource.k8s.io/v1beta1, and all others */
convert_rule convert_claim_from_v1beta1, convert_claim_to_v1beta1, convert_claim_template_from_v1beta1,
	convert_claim_template_to_v1beta1, convert_slice_from_v1beta1, convert_slice_to_v1beta1;

/* The rule from one type to the other; NULL: none is needed. */
convert_rule *convert_rule_of(const struct type *from, const struct type *to);

#endif
