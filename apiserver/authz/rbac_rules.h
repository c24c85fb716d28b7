/*
 * What a rule of a role covers. Rules are compiled once, when their role is seen: verbs become bits, and groups,
 * resources and other words become the address of their one copy, so that whether a rule covers a question is a matter
 * of comparing integers.
 *
 * Nothing here suspends.
 */
#ifndef C8S_APISERVER_AUTHZ_RBAC_RULES_H
#define C8S_APISERVER_AUTHZ_RBAC_RULES_H

#include "apiserver/authz/authz.h"
#include "base/buf.h"
#include "base/map.h"

/* ---- words: each text once, as long as somebody needs it ---- */

struct rbac_word;

struct rbac_words {
	struct map all;
};

void rbac_words_done(struct rbac_words *w);
/* NULL when nobody has taken it. */
const struct rbac_word *rbac_word_find(const struct rbac_words *w, str text);
const struct rbac_word *rbac_word_take(struct rbac_words *w, str text);
void rbac_word_drop(struct rbac_words *w, const struct rbac_word *word);

/* ---- rules ---- */

struct rbac_target {
	const struct rbac_word *resource, *subresource; /* of "pods/log"; resource NULL: of all */
};

/* Rules of a role lie side by side, with what they point to behind them: looking at them touches little memory. */
struct rbac_rule {
	uint32_t verbs;                       /* bits of the usual ones */
	bool all_verbs, all_groups, all_resources, has_names;
	uint32_t n_others, n_groups, n_targets;
	const struct rbac_word **others;      /* verbs that are not usual */
	const struct rbac_word **groups;
	struct rbac_target *targets;
	const struct val *source;             /* the rule; resourceNames and nonResourceURLs are read there */
};

/* Compiled PolicyRules of a list, which must live as long as they do; freed by rbac_rules_free. NULL when there are none. */
struct rbac_rule *rbac_rules_compile(struct rbac_words *w, struct val rules, size_t *ret_n);
void rbac_rules_free(struct rbac_words *w, struct rbac_rule *rules, size_t n);

/* A question in the words of the rules. It is good until rules are compiled or freed. */
struct rbac_question {
	bool is_resource;
	uint32_t verb;                        /* its bit; 0: it is not usual */
	const struct rbac_word *other;        /* NULL: no rule has that verb */
	const struct rbac_word *group;
	struct rbac_target target;            /* what "resource/subresource" names */
	const struct rbac_word *of_all;       /* the subresource that "*" + "/" + subresource would name */
	str name, path;
};

/* The arena is needed for resources with a slash in them only. */
struct rbac_question rbac_question(const struct rbac_words *w, struct arena *a, const struct authz_attributes *what);
bool rbac_rule_allows(const struct rbac_rule *r, const struct rbac_question *q);

/* ---- giving: whether those who have some rules may give others ---- */

/* Bound of what one comparison looks at: combinations of group, resource, verb and name. */
enum { RBAC_COMBINATIONS_MAX = 100000 };

/*
 * Adds to missing what the rules of `wanted` allow and none of the n lists in `owned` does, broken down to one verb,
 * group, resource and name each. -ERR_TOO_LARGE beyond RBAC_COMBINATIONS_MAX.
 */
int rbac_rules_missing(struct arena *a, const struct val *owned, size_t n, struct val wanted, struct val_builder *missing,
		       struct err *err);
/* Missing rules as a message shows them: those of one resource together, sorted, a line each. */
str rbac_rules_text(struct arena *a, struct val missing);
/* As Go prints a list of strings by %q: ["a" "b"] */
void rbac_add_quoted_list(struct buf *b, struct val list);

#endif
