/* What the files behind cri_config.h have in common. */
#ifndef C8S_KUBELET_CRI_CONFIG_PRIV_H
#define C8S_KUBELET_CRI_CONFIG_PRIV_H

#include "base/buf.h"
#include "codec/schema.h"
#include "kubelet/cri_config.h"

/* ---- cri_config_resources.c: runtime.v1.LinuxContainerResources ---- */

struct val cri_config_sandbox_resources(const struct kubelet_node *n, struct arena *a, struct val pod);
/* spec.overhead; an empty object when there is none. */
struct val cri_config_overhead(const struct kubelet_node *n, struct arena *a, struct val pod);
/* Whether spec.resources or one list of it (A_requests, A_limits) names anything that a pod can ask for. */
bool cri_config_pod_level(struct val pod, atom which);
/* Thousandths of a CPU as cpu.shares, and as quota of a period; 0: none. */
int64_t cri_config_shares(int64_t milli);
int64_t cri_config_quota(int64_t milli, int64_t period_us);
enum { CRI_CONFIG_PERIOD_US = 100000 }; /* unless the node says otherwise */
/* 2MB, as control groups name a size of huge pages; "" for one that they could not name. */
str cri_config_page_size(struct arena *a, int64_t bytes);

/* ---- cri_config_security.c ---- */

/* (suspends) runtime.v1.NamespaceOption. target_id: see struct cri_container_input. */
int cri_config_namespaces(const struct kubelet_node *n, struct arena *a, struct val pod, str target_id, struct val *ret, struct err *err);
/* (suspends) runtime.v1.LinuxSandboxSecurityContext and LinuxContainerSecurityContext. */
int cri_config_sandbox_security(const struct kubelet_node *n, struct arena *a, struct val pod, struct val *ret, struct err *err);
int cri_config_container_security(const struct kubelet_node *n, struct arena *a, const struct cri_container_input *in, struct val *ret,
				  struct err *err);
/* A container that must not run as root does not. */
int cri_config_check_non_root(const struct cri_container_input *in, struct err *err);

/* ---- cri_config_dns.c ---- */

/* runtime.v1.DNSConfig. Reads the node's resolv.conf. */
int cri_config_dns(const struct kubelet_node *n, struct arena *a, struct val pod, struct val *ret, struct err *err);

/* ---- cri_config_env.c ---- */

/* Every text of a list expanded; -ERR_TOO_LARGE beyond 16 MiB in all. */
int cri_config_expand(struct arena *a, struct val texts, struct val env, struct val *ret, struct err *err);

/* A copy with small letters. */
str cri_config_lower(struct arena *a, str text);

/* ---- cri_config_files.c ---- */

/* The text of /etc/hosts. With the host's network: that of the node. */
int cri_config_hosts(const struct kubelet_node *n, const struct cri_container_input *in, struct buf *b, struct err *err);

/* ---- cri_config_sandbox.c ---- */

/* A message of CRI as it would come out of the wire at the other end: in order, without zeros, but with empty messages (runAsUser 0). */
int cri_config_typed(struct arena *a, struct val loose, const struct type *type, struct val *ret, struct err *err);
/* Messages name a pod as name_namespace(uid). */
str cri_config_pod_name(struct arena *a, struct val pod);

#endif
