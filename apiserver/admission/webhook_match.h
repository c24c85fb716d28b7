/* Whom a webhook wants to hear of: the rules of a webhook configuration against one request. Pure. */
#ifndef C8S_APISERVER_ADMISSION_WEBHOOK_MATCH_H
#define C8S_APISERVER_ADMISSION_WEBHOOK_MATCH_H

#include "apiserver/admission/plugins.h"

/* What rules look at. */
struct hook_target {
	enum admission_operation operation;
	str group, version, resource, subresource;
	str namespace;                /* of a namespace itself: its name */
};

str hook_operation_text(enum admission_operation operation); /* "CREATE" */

/* One RuleWithOperations. */
bool hook_rule_matches(struct val rule, const struct hook_target *t);
bool hook_rules_match(struct val rules, const struct hook_target *t);

/* Objects that configure admission are nobody's but the administrator's: who breaks them could not be repaired. */
bool hook_is_exempt(const struct request *q);

#endif
