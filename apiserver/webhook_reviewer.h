/*
 * Those who are asked by reviews (TokenReview, SubjectAccessReview, ImageReview), with what they have said lately. The question is
 * a review with a spec, the answer is its status.
 */
#ifndef C8S_APISERVER_WEBHOOK_REVIEWER_H
#define C8S_APISERVER_WEBHOOK_REVIEWER_H

#include "apiserver/webhook.h"
#include "apiserver/webhook_cache.h"

/* The pause after the first try, when nobody says otherwise. */
enum { WEBHOOK_PAUSE_MS = 500 };

struct webhook_reviewer {
	struct webhook *hook;
	const struct type *type;      /* of the review */
	struct webhook_cache *answers; /* for who asks to look into and to put into */
};

/* The type of a review in the version that a flag or configuration names, "v1" or "v1beta1"; NULL: another one. */
static inline const struct type *webhook_review_type(const char *version, const struct type *v1, const struct type *v1beta1)
{
	return strcmp(version, "v1") == 0 ? v1 : strcmp(version, "v1beta1") == 0 ? v1beta1 : NULL;
}

/* As webhook_open; at most so many answers are kept. On failure there is nothing to be done with it. */
int webhook_reviewer_open(struct webhook_reviewer *w, struct apiserver *s, const char *kubeconfig_file, const struct type *type,
			  size_t answers_max, struct err *err);
void webhook_reviewer_done(struct webhook_reviewer *w); /* (suspends) Nobody may be asking it; {0} is fine */

/*
 * (suspends) The status of the answer, as a reference that the caller gives back; an answer without one is an empty one. Asks up
 * to five times with pauses that grow from pause_ms, as long as the failure may be a passing one: 500, 504, 429, a connection
 * that was cut. timeout_ms is for each try; 0: 30 s.
 */
int webhook_reviewer_ask(struct webhook_reviewer *w, struct arena *a, struct val spec, int64_t timeout_ms, int64_t pause_ms,
			 struct frozen **ret, struct err *err);

#endif
