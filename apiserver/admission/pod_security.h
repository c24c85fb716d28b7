/*
 * The Pod Security Standards: what pods of a level must not do. The checks are a table (pod_security_checks.c); which level holds
 * where comes from labels of namespaces and from configuration (pod_security_policy.c); pod_security.c asks both for every write.
 * Pure functions over typed trees, any thread; but for what is counted (pod_security_metrics.c).
 */
#ifndef C8S_APISERVER_ADMISSION_POD_SECURITY_H
#define C8S_APISERVER_ADMISSION_POD_SECURITY_H

#include <limits.h>

#include "codec/val.h"
#include "machinery/field_error.h"

#define POD_SECURITY_PREFIX "pod-security.kubernetes.io/"

enum pod_level { POD_PRIVILEGED, POD_BASELINE, POD_RESTRICTED };

/* A level as some version of Kubernetes has it. */
struct pod_standard {
	enum pod_level level;
	int minor;                    /* of v1.x; POD_LATEST: the newest */
};

enum {
	POD_LATEST = INT_MAX,
	POD_FUTURE = INT_MAX - 1,     /* no namespace says this: it stands for all that are to come where they are counted */
};

static inline bool pod_standard_eq(struct pod_standard a, struct pod_standard b)
{
	return a.level == b.level && a.minor == b.minor;
}

/* "restricted:v1.30", "baseline:latest" */
str pod_standard_text(struct arena *a, struct pod_standard s);

/* ---- pods ---- */

/* A set of checks, by their rows in the table. */
typedef uint32_t pod_checks;

/* The checks of this standard that the pod does not pass; 0: it does. Nothing is allocated. */
pod_checks pod_standard_failed(struct pod_standard s, struct val metadata, struct val spec);
/*
 * Why, in the arena: the reasons with ", " between them, with details in parentheses behind them or not. failed is what
 * pod_standard_failed gave for the same pod.
 */
str pod_standard_why(struct arena *a, struct pod_standard s, pod_checks failed, struct val metadata, struct val spec,
		     bool details);
/* Whether the reasons of two pods that fail these checks are always the same. */
bool pod_checks_same_reasons(pod_checks failed);

/* ---- namespaces ---- */

struct pod_policy {
	struct pod_standard enforce, audit, warn;
};

static inline bool pod_policy_is_privileged(const struct pod_policy *p)
{
	return p->enforce.level == POD_PRIVILEGED && p->audit.level == POD_PRIVILEGED && p->warn.level == POD_PRIVILEGED;
}

/* Which of a namespace's labels say something about it. */
struct pod_labels {
	bool enforce, audit, warn;
};

/*
 * What holds in a namespace with these labels. A label that makes no sense is an error in e, and counts as the strictest for
 * enforce and as none for the others. ret_labels may be NULL.
 */
struct pod_policy pod_policy_of(struct val labels, const struct pod_policy *defaults, struct field_errors *e,
				struct pod_labels *ret_labels);

/* ---- configuration ---- */

struct pod_security_config {
	struct pod_policy defaults;
	struct val usernames, namespaces, runtime_classes; /* exempt: lists of strings */
};

/*
 * From a PodSecurityConfiguration as a free tree, VAL_NONE for none. The lists live as long as the arena and the tree do.
 * -ERR_INVALID with Kubernetes' texts.
 */
int pod_security_config_read(struct arena *a, struct val tree, struct pod_security_config *ret, struct err *err);

/* ---- what is counted ---- */

struct request;
struct buf;
struct pod_security_counts;

enum pod_mode { POD_ENFORCE, POD_AUDIT, POD_WARN };

struct pod_security_counts *pod_security_counts_new(void) NONNULL_RESULT;
void pod_security_counts_free(struct pod_security_counts *c);
/* A pod, or what makes pods (a controller), was compared with a standard. */
void pod_security_count(struct pod_security_counts *c, const struct request *q, enum pod_mode mode, struct pod_standard s, bool denied);
/* One was let be: its user, namespace or runtime class is exempt. */
void pod_security_count_exempt(struct pod_security_counts *c, const struct request *q);
/* The standard could not be found out. fatal: that was the end of the request. */
void pod_security_count_error(struct pod_security_counts *c, const struct request *q, bool fatal);
/* In the text form of metrics.h. */
void pod_security_counts_write(const struct pod_security_counts *c, struct buf *b);

#endif
