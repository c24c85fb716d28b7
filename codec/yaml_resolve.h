/*
 * What a plain scalar of YAML 1.1 means, with the rules and oddities of Kubernetes' parser. Private to this folder.
 */
#ifndef C8S_CODEC_YAML_RESOLVE_H
#define C8S_CODEC_YAML_RESOLVE_H

#include "base/err.h"

enum yaml_kind { YAML_STR, YAML_NULL, YAML_BOOL, YAML_INT, YAML_UINT, YAML_FLOAT, YAML_TIMESTAMP, YAML_BINARY };

struct yaml_scalar {
	enum yaml_kind kind;
	bool b;
	int64_t i;
	uint64_t u;    /* YAML_UINT: an integer that does not fit i */
	double d;
};

/* The meaning of an untagged scalar. */
struct yaml_scalar yaml_resolve(str text);
/*
 * The same with an explicit tag in its long form (tag:yaml.org,2002:int); n == 0: none. Tags of other sorts make a
 * string.
 * -ERR_BAD_REQUEST when the text does not fit the tag.
 */
int yaml_resolve_tagged(str tag, str text, struct yaml_scalar *ret, struct err *err);

#endif
