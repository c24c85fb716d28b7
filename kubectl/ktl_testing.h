/* A command without a server, for tests of what needs none. */
#ifndef C8S_KUBECTL_KTL_TESTING_H
#define C8S_KUBECTL_KTL_TESTING_H

#include "base/test.h"
#include "kubectl/ktl.h"

static inline void ktl_test_done(struct ktl *k) { arena_done(&k->arena); }

/* A tree from YAML, in one line or several. */
static inline struct val ktl_test_tree(struct ktl *k, const char *yaml)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(1 << 20);
	struct val v;
	CHECK_INT(yaml_to_json(str_of(yaml), &json, NULL, NULL), 0);
	CHECK_INT(ktl_parse_json(k, arena_str(&k->arena, buf_str(&json)), &v, NULL), 0);
	return v;
}

#endif
