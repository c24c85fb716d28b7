/* Attempts and users, under the names that dashboards for Kubernetes know. */
#include "apiserver/authn/authn_priv.h"
#include "apiserver/metrics_priv.h"

/* A few users of Kubernetes' own are told apart, the others only by whether their name looks like an address. */
static const str users[] = {
	STR_INIT("admin"), STR_INIT("client"), STR_INIT("kube_proxy"), STR_INIT("kubelet"),
	STR_INIT("system:serviceaccount:kube-system:default"), STR_INIT("email_id"), STR_INIT("other"),
};

enum { EMAIL = 5, OTHER = 6 };

_Static_assert(ARRAY_LEN(users) == AUTHN_USERS_COUNTED, "a counter per user");

void authn_count(struct authn *n, enum authn_result result, str username)
{
	n->attempts[result]++;
	if (result != AUTHN_SUCCESS)
		return;
	size_t i = 0;
	while (i < EMAIL && !str_eq(users[i], username))
		i++;
	n->users[i < EMAIL ? i : str_chr(username, '@') >= 0 ? (size_t)EMAIL : (size_t)OTHER]++;
}

void authn_metrics(const struct authn *n, struct buf *b)
{
	static const char *const results[AUTHN_RESULTS] = { "success", "failure", "error" };
	struct metrics_family f = metrics_family(b, "authenticated_user_requests", "counter", "Requests of users that are known, by name.");
	for (size_t i = 0; i < ARRAY_LEN(users); i++)
		if (n->users[i])
			buf_addf(b, "authenticated_user_requests{username=\"" STR_FMT "\"} %llu\n", STR_ARG(users[i]),
				 (unsigned long long)n->users[i]);
	metrics_family_end(&f);
	f = metrics_family(b, "authentication_attempts", "counter", "Requests by whether it was found out who asks.");
	for (size_t i = 0; i < AUTHN_RESULTS; i++)
		if (n->attempts[i])
			buf_addf(b, "authentication_attempts{result=\"%s\"} %llu\n", results[i], (unsigned long long)n->attempts[i]);
	metrics_family_end(&f);
}
