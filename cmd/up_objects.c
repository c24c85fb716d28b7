/*
 * What a cluster needs so that machines can join it, as kubeadm makes it and under the same names: where the cluster is, readable by everybody
 * who can reach it and signed for those who have a token (by the bootstrap signer); and that nodes with a token, or with a certificate that
 * they renew, get their certificates without anybody's help.
 */
#include "base/encoding.h"
#include "client/kubeconfig.h"
#include "cmd/up.h"

#define BINDING(name, role, group) \
	"---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: { name: \"" name "\" }\n" \
	"roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: \"" role "\" }\n" \
	"subjects: [ { apiGroup: rbac.authorization.k8s.io, kind: Group, name: \"" group "\" } ]\n"

static const char rights[] =
	BINDING("kubeadm:kubelet-bootstrap", "system:node-bootstrapper", UP_TOKEN_GROUP)
	BINDING("kubeadm:node-autoapprove-bootstrap", "system:certificates.k8s.io:certificatesigningrequests:nodeclient", UP_TOKEN_GROUP)
	BINDING("kubeadm:node-autoapprove-certificate-rotation", "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", "system:nodes")
	/* Nodes find each other's pods (node_routes.h). With kubeadm every node has these rights, too: by a token of kube-proxy. */
	BINDING("c8s:node-proxier", "system:node-proxier", "system:nodes")
	"---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: { name: \"kubeadm:bootstrap-signer-clusterinfo\", namespace: kube-public }\n"
	"rules: [ { apiGroups: [ \"\" ], resources: [ configmaps ], resourceNames: [ cluster-info ], verbs: [ get ] } ]\n"
	"---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\n"
	"metadata: { name: \"kubeadm:bootstrap-signer-clusterinfo\", namespace: kube-public }\n"
	"roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: \"kubeadm:bootstrap-signer-clusterinfo\" }\n"
	"subjects: [ { apiGroup: rbac.authorization.k8s.io, kind: User, name: \"system:anonymous\" } ]\n"
	/* Where the API servers are, for nodes: when one of them is gone they go on with the others. */
	"---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: { name: \"c8s:api-servers\", namespace: default }\n"
	"rules: [ { apiGroups: [ discovery.k8s.io ], resources: [ endpointslices ], resourceNames: [ kubernetes ], verbs: [ get, list, watch ] } ]\n"
	"---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: { name: \"c8s:api-servers\", namespace: default }\n"
	"roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: \"c8s:api-servers\" }\n"
	"subjects: [ { apiGroup: rbac.authorization.k8s.io, kind: Group, name: \"system:nodes\" } ]\n";

int up_apply_objects(const struct up_cluster *c, struct client *client, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(1 << 20);
	struct client_config admin;
	size_t applied = 0;
	int r = up_admin(c, c->arena, &admin, err);

	if (r < 0)
		return r;
	buf_add(&text, str_of(rights));
	buf_add(&text, STR("---\napiVersion: v1\nkind: ConfigMap\nmetadata: { name: cluster-info, namespace: kube-public }\ndata:\n  kubeconfig: |\n"
			   "    apiVersion: v1\n    kind: Config\n    clusters:\n    - name: \"\"\n      cluster:\n        certificate-authority-data: "));
	base64_encode_buf(&text, admin.ca);
	buf_addf(&text, "\n        server: %s\n", c->public_url);
	return up_apply_text(client, buf_str(&text), &applied, err);
}
