/*
 * flow: which flow schema a request falls under, and so its priority level and its flow. Schemas are compiled into a table when they
 * change; a request looks through it in the order of precedence and takes the first one that fits.
 */
#ifndef C8S_APISERVER_FAIRNESS_FLOW_H
#define C8S_APISERVER_FAIRNESS_FLOW_H

#include "apiserver/fairness/level.h"
#include "apiserver/request.h"

struct flow_rule;

enum flow_by { FLOW_BY_NOTHING, FLOW_BY_USER, FLOW_BY_NAMESPACE };

struct flow_schema {
	str name, uid;
	int64_t precedence;
	enum flow_by by;                   /* what tells the flows of this schema apart */
	struct priority_level *level;
	struct flow_series *series;        /* NULL until somebody counts */
	uint64_t hash;                     /* of the name */
	const struct flow_rule *rules;
	size_t n_rules;
};

struct flow_table {
	struct arena memory;
	struct flow_schema *schemas;       /* in the order of precedence, then by name */
	size_t n;
	struct flow_schema *catch_all;     /* for what nothing else fits */
};

/*
 * These are all FlowSchemas. Those whose level is not there are left out; the mandatory ones are there in any case. Nothing of
 * the objects is needed after the call; the levels must live as long as the table.
 */
void flow_table_init(struct flow_table *t, const struct levels *levels, const struct val *objects, size_t n);
void flow_table_done(struct flow_table *t);

/* Never NULL. */
struct flow_schema *flow_match(const struct flow_table *t, const struct request *q);
/* What tells the request's flow from others of its schema: "" for one flow. */
str flow_distinguisher(const struct flow_schema *f, const struct request *q);
/* Equal for requests of one flow. */
uint64_t flow_hash(const struct flow_schema *f, str distinguisher);

#endif
