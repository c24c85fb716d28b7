/*
 * The roles and bindings that every cluster has (rbac_defaults.h says how rows are written). What they allow is what the
 * components of Kubernetes 1.36 with its default features need.
 */
#include "apiserver/authz/rbac_defaults.h"

const struct rbac_default_role rbac_default_roles[] = {
	{ .name = "admin", .made_of = "admin" },
	{ .name = "cluster-admin",
	  .rules = "* * *\n"
		   "* ~ *" },
	{ .name = "edit", .part_of = "admin", .made_of = "edit" },
	{ .name = "system:aggregate-to-admin", .part_of = "admin",
	  .rules = "create authorization.k8s.io localsubjectaccessreviews\n"
		   "create,delete,deletecollection,get,list,patch,update,watch rbac.authorization.k8s.io rolebindings,"
		   "roles" },
	{ .name = "system:aggregate-to-edit", .part_of = "edit",
	  .rules = "get,list,watch - pods/attach,pods/exec,pods/portforward,pods/proxy,secrets,services/proxy\n"
		   "impersonate - serviceaccounts\n"
		   "create,delete,deletecollection,patch,update - pods,pods/attach,pods/exec,pods/portforward,"
		   "pods/proxy\n"
		   "create - pods/eviction\n"
		   "create,delete,deletecollection,patch,update - configmaps,persistentvolumeclaims,"
		   "replicationcontrollers,replicationcontrollers/scale,secrets,serviceaccounts,services,"
		   "services/proxy\n"
		   "create - serviceaccounts/token\n"
		   "create,delete,deletecollection,patch,update -,events.k8s.io events\n"
		   "create,delete,deletecollection,patch,update apps daemonsets,deployments,deployments/rollback,"
		   "deployments/scale,replicasets,replicasets/scale,statefulsets,statefulsets/scale\n"
		   "create,delete,deletecollection,patch,update autoscaling horizontalpodautoscalers\n"
		   "create,delete,deletecollection,patch,update batch cronjobs,jobs\n"
		   "create,delete,deletecollection,patch,update extensions daemonsets,deployments,"
		   "deployments/rollback,deployments/scale,ingresses,networkpolicies,replicasets,replicasets/scale,"
		   "replicationcontrollers/scale\n"
		   "create,delete,deletecollection,patch,update policy poddisruptionbudgets\n"
		   "create,delete,deletecollection,patch,update networking.k8s.io ingresses,networkpolicies\n"
		   "create,delete,deletecollection,get,list,patch,update,watch coordination.k8s.io leases\n"
		   "create,delete,deletecollection,patch,update resource.k8s.io resourceclaims,resourceclaimtemplates" },
	{ .name = "system:aggregate-to-view", .part_of = "view",
	  .rules = "get,list,watch - configmaps,endpoints,persistentvolumeclaims,persistentvolumeclaims/status,pods,"
		   "replicationcontrollers,replicationcontrollers/scale,serviceaccounts,services,services/status\n"
		   "get,list,watch - bindings,limitranges,namespaces/status,pods/log,pods/status,"
		   "replicationcontrollers/status,resourcequotas,resourcequotas/status\n"
		   "get,list,watch - namespaces\n"
		   "get,list,watch -,events.k8s.io events\n"
		   "get,list,watch discovery.k8s.io endpointslices\n"
		   "get,list,watch apps controllerrevisions,daemonsets,daemonsets/status,deployments,"
		   "deployments/scale,deployments/status,replicasets,replicasets/scale,replicasets/status,"
		   "statefulsets,statefulsets/scale,statefulsets/status\n"
		   "get,list,watch autoscaling horizontalpodautoscalers,horizontalpodautoscalers/status\n"
		   "get,list,watch batch cronjobs,cronjobs/status,jobs,jobs/status\n"
		   "get,list,watch extensions daemonsets,daemonsets/status,deployments,deployments/scale,"
		   "deployments/status,ingresses,ingresses/status,networkpolicies,replicasets,replicasets/scale,"
		   "replicasets/status,replicationcontrollers/scale\n"
		   "get,list,watch policy poddisruptionbudgets,poddisruptionbudgets/status\n"
		   "get,list,watch networking.k8s.io ingresses,ingresses/status,networkpolicies\n"
		   "get,list,watch resource.k8s.io resourceclaims,resourceclaims/status,resourceclaimtemplates" },
	{ .name = "system:auth-delegator",
	  .rules = "create authentication.k8s.io tokenreviews\n"
		   "create authorization.k8s.io subjectaccessreviews" },
	{ .name = "system:basic-user",
	  .rules = "create authorization.k8s.io selfsubjectaccessreviews,selfsubjectrulesreviews\n"
		   "create authentication.k8s.io selfsubjectreviews" },
	{ .name = "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
	  .rules = "create certificates.k8s.io certificatesigningrequests/nodeclient" },
	{ .name = "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
	  .rules = "create certificates.k8s.io certificatesigningrequests/selfnodeclient" },
	{ .name = "system:certificates.k8s.io:kube-apiserver-client-approver",
	  .rules = "approve certificates.k8s.io signers kubernetes.io/kube-apiserver-client" },
	{ .name = "system:certificates.k8s.io:kube-apiserver-client-kubelet-approver",
	  .rules = "approve certificates.k8s.io signers kubernetes.io/kube-apiserver-client-kubelet" },
	{ .name = "system:certificates.k8s.io:kubelet-serving-approver",
	  .rules = "approve certificates.k8s.io signers kubernetes.io/kubelet-serving" },
	{ .name = "system:certificates.k8s.io:legacy-unknown-approver",
	  .rules = "approve certificates.k8s.io signers kubernetes.io/legacy-unknown" },
	{ .name = "system:cluster-trust-bundle-discovery", .gate = "ClusterTrustBundle",
	  .rules = "get,list,watch certificates.k8s.io clustertrustbundles" },
	{ .name = "system:discovery",
	  .rules = "get ~ /api,/api/*,/apis,/apis/*,/healthz,/livez,/openapi,/openapi/*,/readyz,/version,/version/" },
	{ .name = "system:heapster",
	  .rules = "get,list,watch - events,namespaces,nodes,pods\n"
		   "get,list,watch extensions deployments" },
	{ .name = "system:kube-aggregator",
	  .rules = "get,list,watch - endpoints,services" },
	{ .name = "system:kube-controller-manager",
	  .rules = "create,patch,update -,events.k8s.io events\n"
		   "create coordination.k8s.io leases\n"
		   "get,update coordination.k8s.io leases kube-controller-manager\n"
		   "create - secrets,serviceaccounts\n"
		   "delete - secrets\n"
		   "get - configmaps,namespaces,secrets,serviceaccounts\n"
		   "update - secrets,serviceaccounts\n"
		   "create authentication.k8s.io tokenreviews\n"
		   "create authorization.k8s.io subjectaccessreviews\n"
		   "list,watch * *\n"
		   "create - serviceaccounts/token" },
	{ .name = "system:kube-dns",
	  .rules = "list,watch - endpoints,services" },
	{ .name = "system:kube-scheduler",
	  .rules = "create,patch,update -,events.k8s.io events\n"
		   "create coordination.k8s.io leases\n"
		   "get,list,update,watch coordination.k8s.io leases kube-scheduler\n"
		   "create,delete,deletecollection,get,list,patch,update,watch coordination.k8s.io leasecandidates\n"
		   "get,list,watch - nodes\n"
		   "delete,get,list,watch - pods\n"
		   "create - bindings,pods/binding\n"
		   "patch,update - pods/status\n"
		   "get,list,watch - replicationcontrollers,services\n"
		   "get,list,watch apps,extensions replicasets\n"
		   "get,list,watch apps statefulsets\n"
		   "get,list,watch policy poddisruptionbudgets\n"
		   "get,list,watch - persistentvolumeclaims,persistentvolumes\n"
		   "create authentication.k8s.io tokenreviews\n"
		   "create authorization.k8s.io subjectaccessreviews\n"
		   "get,list,watch storage.k8s.io csinodes\n"
		   "get,list,watch storage.k8s.io volumeattachments\n"
		   "get,list,watch - namespaces\n"
		   "get,list,watch storage.k8s.io csidrivers\n"
		   "get,list,watch storage.k8s.io csistoragecapacities\n"
		   "get,list,watch resource.k8s.io deviceclasses\n"
		   "get,list,patch,update,watch resource.k8s.io resourceclaims\n"
		   "get,list,patch,update,watch resource.k8s.io resourceclaims/status\n"
		   "update - pods/finalizers\n"
		   "get,list,watch resource.k8s.io resourceslices\n"
		   "create,delete resource.k8s.io resourceclaims\n"
		   "patch,update resource.k8s.io resourceclaims/binding" },
	{ .name = "system:kubelet-api-admin",
	  .rules = "get,list,watch - nodes\n"
		   "proxy - nodes\n"
		   "* - nodes/log,nodes/metrics,nodes/proxy,nodes/stats\n"
		   "* - nodes/configz,nodes/healthz,nodes/pods" },
	{ .name = "system:monitoring",
	  .rules = "get ~ /flagz,/healthz,/healthz/*,/livez,/livez/*,/metrics,/metrics/slis,/readyz,/readyz/*,"
		   "/statusz\n"
		   "get - nodes/metrics" },
	{ .name = "system:node",
	  .rules = "create authentication.k8s.io tokenreviews\n"
		   "create authorization.k8s.io localsubjectaccessreviews,subjectaccessreviews\n"
		   "get,list,watch - services\n"
		   "create,get,list,watch - nodes\n"
		   "patch,update - nodes/status\n"
		   "patch,update - nodes\n"
		   "create,patch,update -,events.k8s.io events\n"
		   "get,list,watch - pods\n"
		   "create,delete - pods\n"
		   "patch,update - pods/status\n"
		   "create - pods/eviction\n"
		   "get,list,watch - configmaps,secrets\n"
		   "get - persistentvolumeclaims,persistentvolumes\n"
		   "get - endpoints\n"
		   "create,get,list,watch certificates.k8s.io certificatesigningrequests\n"
		   "create,delete,get,patch,update coordination.k8s.io leases\n"
		   "get storage.k8s.io volumeattachments\n"
		   "create - serviceaccounts/token\n"
		   "get,patch,update - persistentvolumeclaims/status\n"
		   "get,list,watch storage.k8s.io csidrivers\n"
		   "create,delete,get,patch,update storage.k8s.io csinodes\n"
		   "get,list,watch node.k8s.io runtimeclasses\n"
		   "get resource.k8s.io resourceclaims\n"
		   "deletecollection resource.k8s.io resourceslices\n"
		   "?ClusterTrustBundle get,list,watch certificates.k8s.io clustertrustbundles\n"
		   "get - serviceaccounts" },
	{ .name = "system:node-bootstrapper",
	  .rules = "create,get,list,watch certificates.k8s.io certificatesigningrequests" },
	{ .name = "system:node-problem-detector",
	  .rules = "get - nodes\n"
		   "patch - nodes/status\n"
		   "create,patch,update -,events.k8s.io events" },
	{ .name = "system:node-proxier",
	  .rules = "list,watch - endpoints,services\n"
		   "get,list,watch - nodes\n"
		   "create,patch,update -,events.k8s.io events\n"
		   "list,watch networking.k8s.io servicecidrs\n"
		   "list,watch discovery.k8s.io endpointslices" },
	{ .name = "system:persistent-volume-provisioner",
	  .rules = "create,delete,get,list,watch - persistentvolumes\n"
		   "get,list,update,watch - persistentvolumeclaims\n"
		   "get,list,watch storage.k8s.io storageclasses\n"
		   "watch - events\n"
		   "create,patch,update -,events.k8s.io events" },
	{ .name = "system:public-info-viewer",
	  .rules = "get ~ /healthz,/livez,/readyz,/version,/version/" },
	{ .name = "system:service-account-issuer-discovery",
	  .rules = "get ~ /.well-known/openid-configuration,/.well-known/openid-configuration/,/openid/v1/jwks,"
		   "/openid/v1/jwks/" },
	{ .name = "system:volume-scheduler",
	  .rules = "get,list,patch,update,watch - persistentvolumes\n"
		   "get,list,watch storage.k8s.io storageclasses\n"
		   "get,list,patch,update,watch - persistentvolumeclaims" },
	{ .name = "view", .part_of = "edit", .made_of = "view" },
	{ .name = "system:controller:attachdetach-controller",
	  .rules = "list,watch - persistentvolumeclaims,persistentvolumes\n"
		   "get,list,watch - nodes\n"
		   "patch,update - nodes/status\n"
		   "list,watch - pods\n"
		   "create,patch,update -,events.k8s.io events\n"
		   "create,delete,get,list,watch storage.k8s.io volumeattachments\n"
		   "get,list,watch storage.k8s.io csidrivers\n"
		   "get,list,watch storage.k8s.io csinodes" },
	{ .name = "system:controller:certificate-controller",
	  .rules = "delete,get,list,watch certificates.k8s.io certificatesigningrequests\n"
		   "update certificates.k8s.io certificatesigningrequests/approval,certificatesigningrequests/status\n"
		   "approve certificates.k8s.io signers kubernetes.io/kube-apiserver-client-kubelet\n"
		   "sign certificates.k8s.io signers kubernetes.io/kube-apiserver-client,"
		   "kubernetes.io/kube-apiserver-client-kubelet,kubernetes.io/kubelet-serving,"
		   "kubernetes.io/legacy-unknown\n"
		   "create authorization.k8s.io subjectaccessreviews\n"
		   "create,patch,update -,events.k8s.io events" },
	{ .name = "system:controller:clusterrole-aggregation-controller",
	  .rules = "escalate,get,list,patch,update,watch rbac.authorization.k8s.io clusterroles" },
	{ .name = "system:controller:cronjob-controller",
	  .rules = "get,list,update,watch batch cronjobs\n"
		   "create,delete,get,list,patch,update,watch batch jobs\n"
		   "update batch cronjobs/status\n"
		   "update batch cronjobs/finalizers\n"
		   "delete,list,watch - pods\n"
		   "create,patch,update -,events.k8s.io events" },
	{ .name = "system:controller:daemon-set-controller",
	  .rules = "get,list,watch apps,extensions daemonsets\n"
		   "update apps,extensions daemonsets/status\n"
		   "update apps,extensions daemonsets/finalizers\n"
		   "list,watch - nodes\n"
		   "create,delete,list,patch,watch - pods\n"
		   "create - pods/binding\n"
		   "create,delete,get,list,patch,update,watch apps controllerrevisions\n"
		   "create,patch,update -,events.k8s.io events" },
	{ .name = "system:controller:deployment-controller",
	  .rules = "get,list,update,watch apps,extensions deployments\n"
		   "update apps,extensions deployments/status\n"
		   "update apps,extensions deployments/finalizers\n"
		   "create,delete,get,list,patch,update,watch apps,extensions replicasets\n"
		   "get,list,update,watch - pods\n"
		   "create,patch,update -,events.k8s.io events" },
	{ .name = "system:controller:device-taint-eviction-controller",
	  .rules = "delete,get,list,watch - pods\n"
		   "patch,update - pods/status\n"
		   "get,list,watch resource.k8s.io resourceclaims\n"
		   "get,list,watch resource.k8s.io resourceslices\n"
		   "get,list,watch resource.k8s.io deviceclasses\n"
		   "create,patch,update -,events.k8s.io events" },
	{ .name = "system:controller:disruption-controller",
	  .rules = "get,list,watch apps,extensions deployments\n"
		   "get,list,watch apps,extensions replicasets\n"
		   "get,list,watch - replicationcontrollers\n"
		   "get,list,watch policy poddisruptionbudgets\n"
		   "get,list,watch apps statefulsets\n"
		   "update policy poddisruptionbudgets/status\n"
		   "patch,update - pods/status\n"
		   "get * */scale\n"
		   "create,patch,update -,events.k8s.io events" },
	{ .name = "system:controller:endpoint-controller",
	  .rules = "get,list,watch - pods,services\n"
		   "create,delete,get,list,update,watch - endpoints\n"
		   "create - endpoints/restricted\n"
		   "create,patch,update -,events.k8s.io events" },
	{ .name = "system:controller:endpointslice-controller",
	  .rules = "get,list,watch - nodes,pods,services\n"
		   "update - services/finalizers\n"
		   "create,delete,get,list,update,watch discovery.k8s.io endpointslices\n"
		   "create,patch,update -,events.k8s.io events" },
	{ .name = "system:controller:endpointslicemirroring-controller",
	  .rules = "get,list,watch - endpoints,services\n"
		   "update - services/finalizers\n"
		   "update - endpoints/finalizers\n"
		   "create,delete,get,list,update,watch discovery.k8s.io endpointslices\n"
		   "create,patch,update -,events.k8s.io events" },
	{ .name = "system:controller:ephemeral-volume-controller",
	  .rules = "get,list,watch - pods\n"
		   "update - pods/finalizers\n"
		   "create,get,list,watch - persistentvolumeclaims\n"
		   "create,patch,update -,events.k8s.io events" },
	{ .name = "system:controller:expand-controller",
	  .rules = "get,list,patch,update,watch - persistentvolumes\n"
		   "patch,update - persistentvolumeclaims/status\n"
		   "get,list,watch - persistentvolumeclaims\n"
		   "create,patch,update -,events.k8s.io events" },
	{ .name = "system:controller:generic-garbage-collector",
	  .rules = "delete,get,list,patch,update,watch * *\n"
		   "create,patch,update -,events.k8s.io events" },
	{ .name = "system:controller:horizontal-pod-autoscaler",
	  .rules = "get,list,watch autoscaling horizontalpodautoscalers\n"
		   "update autoscaling horizontalpodautoscalers/status\n"
		   "get,update * */scale\n"
		   "list,watch - pods\n"
		   "list,watch metrics.k8s.io pods\n"
		   "get,list,watch custom.metrics.k8s.io *\n"
		   "get,list,watch external.metrics.k8s.io *\n"
		   "create,patch,update -,events.k8s.io events" },
	{ .name = "system:controller:job-controller",
	  .rules = "get,list,patch,update,watch batch jobs\n"
		   "update batch jobs/status\n"
		   "update batch jobs/finalizers\n"
		   "create,delete,list,patch,watch - pods\n"
		   "create,patch,update -,events.k8s.io events" },
	{ .name = "system:controller:kube-apiserver-serving-clustertrustbundle-publisher", .gate = "ClusterTrustBundle",
	  .rules = "attest certificates.k8s.io signers kubernetes.io/kube-apiserver-serving\n"
		   "create,delete,list,update,watch certificates.k8s.io clustertrustbundles\n"
		   "create,patch,update -,events.k8s.io events" },
	{ .name = "system:controller:legacy-service-account-token-cleaner",
	  .rules = "get - configmaps kube-apiserver-legacy-service-account-token-tracking\n"
		   "delete,patch - secrets" },
	{ .name = "system:controller:local-path-provisioner",
	  .rules = "create,delete,get,update - persistentvolumes\n"
		   "get,update - persistentvolumeclaims\n"
		   "get,update - nodes\n"
		   "create,get storage.k8s.io storageclasses\n"
		   "create,patch,update -,events.k8s.io events" },
	{ .name = "system:controller:namespace-controller",
	  .rules = "delete,get,list,watch - namespaces\n"
		   "update - namespaces/finalize,namespaces/status\n"
		   "delete,deletecollection,get,list,watch * *" },
	{ .name = "system:controller:node-controller",
	  .rules = "delete,get,list,patch,update,watch - nodes\n"
		   "patch,update - nodes/status\n"
		   "patch,update - pods/status\n"
		   "delete,get,list,watch - pods\n"
		   "create,patch,update -,events.k8s.io events" },
	{ .name = "system:controller:persistent-volume-binder",
	  .rules = "create,delete,get,list,update,watch - persistentvolumes\n"
		   "update - persistentvolumes/status\n"
		   "get,list,update,watch - persistentvolumeclaims\n"
		   "update - persistentvolumeclaims/status\n"
		   "create,delete,get,list,watch - pods\n"
		   "get,list,watch storage.k8s.io storageclasses\n"
		   "list,watch - nodes\n"
		   "create,patch,update -,events.k8s.io events\n"
		   "watch - events" },
	{ .name = "system:controller:pod-garbage-collector",
	  .rules = "delete,list,watch - pods\n"
		   "get,list,watch - nodes\n"
		   "patch - pods/status" },
	{ .name = "system:controller:pv-protection-controller",
	  .rules = "get,list,update,watch - persistentvolumes\n"
		   "create,patch,update -,events.k8s.io events" },
	{ .name = "system:controller:pvc-protection-controller",
	  .rules = "get,list,update,watch - persistentvolumeclaims\n"
		   "update - persistentvolumeclaims/status\n"
		   "get,list,watch - pods\n"
		   "create,patch,update -,events.k8s.io events" },
	{ .name = "system:controller:replicaset-controller",
	  .rules = "get,list,update,watch apps,extensions replicasets\n"
		   "update apps,extensions replicasets/status\n"
		   "update apps,extensions replicasets/finalizers\n"
		   "create,delete,list,patch,watch - pods\n"
		   "create,patch,update -,events.k8s.io events" },
	{ .name = "system:controller:replication-controller",
	  .rules = "get,list,update,watch - replicationcontrollers\n"
		   "update - replicationcontrollers/status\n"
		   "update - replicationcontrollers/finalizers\n"
		   "create,delete,list,patch,watch - pods\n"
		   "create,patch,update -,events.k8s.io events" },
	{ .name = "system:controller:resource-claim-controller",
	  .rules = "get,list,watch - pods\n"
		   "update - pods/finalizers\n"
		   "create,delete,get,list,watch resource.k8s.io resourceclaims\n"
		   "patch,update resource.k8s.io resourceclaims,resourceclaims/status\n"
		   "patch,update - pods/status\n"
		   "create,patch,update -,events.k8s.io events\n"
		   "patch,update resource.k8s.io resourceclaims/binding" },
	{ .name = "system:controller:resourcequota-controller",
	  .rules = "list,watch * *\n"
		   "update - resourcequotas/status\n"
		   "create,patch,update -,events.k8s.io events" },
	{ .name = "system:controller:root-ca-cert-publisher",
	  .rules = "create,update - configmaps\n"
		   "create,patch,update -,events.k8s.io events" },
	{ .name = "system:controller:route-controller",
	  .rules = "list,watch - nodes\n"
		   "patch - nodes/status\n"
		   "create,patch,update -,events.k8s.io events" },
	{ .name = "system:controller:selinux-warning-controller",
	  .rules = "create,patch,update -,events.k8s.io events\n"
		   "get,list,watch - persistentvolumes\n"
		   "get,list,watch - persistentvolumeclaims\n"
		   "get,list,watch - pods\n"
		   "get,list,watch storage.k8s.io csidrivers" },
	{ .name = "system:controller:service-account-controller",
	  .rules = "create - serviceaccounts\n"
		   "create,patch,update -,events.k8s.io events" },
	{ .name = "system:controller:service-cidrs-controller",
	  .rules = "get,list,patch,update,watch networking.k8s.io servicecidrs\n"
		   "patch,update networking.k8s.io servicecidrs/finalizers\n"
		   "patch,update networking.k8s.io servicecidrs/status\n"
		   "get,list,watch networking.k8s.io ipaddresses\n"
		   "create,patch,update -,events.k8s.io events" },
	{ .name = "system:controller:service-controller",
	  .rules = "get,list,watch - services\n"
		   "patch,update - services/status\n"
		   "list,watch - nodes\n"
		   "create,patch,update -,events.k8s.io events" },
	{ .name = "system:controller:statefulset-controller",
	  .rules = "list,watch - pods\n"
		   "get,list,watch apps statefulsets\n"
		   "update apps statefulsets/status\n"
		   "update apps statefulsets/finalizers\n"
		   "create,delete,get,patch,update - pods\n"
		   "create,delete,get,list,patch,update,watch apps controllerrevisions\n"
		   "create,get,list,watch - persistentvolumeclaims\n"
		   "delete,update - persistentvolumeclaims\n"
		   "update - pods/finalizers\n"
		   "create,patch,update -,events.k8s.io events" },
	{ .name = "system:controller:ttl-after-finished-controller",
	  .rules = "delete,get,list,watch batch jobs\n"
		   "create,patch,update -,events.k8s.io events" },
	{ .name = "system:controller:ttl-controller",
	  .rules = "list,patch,update,watch - nodes\n"
		   "create,patch,update -,events.k8s.io events" },
	{ .name = "system:controller:validatingadmissionpolicy-status-controller",
	  .rules = "get,list,watch admissionregistration.k8s.io validatingadmissionpolicies\n"
		   "get,patch,update admissionregistration.k8s.io validatingadmissionpolicies/status\n"
		   "create,patch,update -,events.k8s.io events" },
	{ .name = "system:controller:volumeattributesclass-protection-controller",
	  .rules = "get,list,watch - persistentvolumeclaims\n"
		   "get,list,watch - persistentvolumes\n"
		   "get,list,update,watch storage.k8s.io volumeattributesclasses\n"
		   "create,patch,update -,events.k8s.io events" },
	{ .namespace = "kube-public", .name = "system:controller:bootstrap-signer",
	  .rules = "get,list,watch - configmaps\n"
		   "update - configmaps cluster-info\n"
		   "create,patch,update -,events.k8s.io events" },
	{ .namespace = "kube-system", .name = "extension-apiserver-authentication-reader",
	  .rules = "get,list,watch - configmaps extension-apiserver-authentication" },
	{ .namespace = "kube-system", .name = "system::leader-locking-kube-controller-manager",
	  .rules = "create,get,list,update,watch coordination.k8s.io leases\n"
		   "create,get,list,update,watch coordination.k8s.io leasecandidates" },
	{ .namespace = "kube-system", .name = "system::leader-locking-kube-scheduler",
	  .rules = "create,get,list,update,watch coordination.k8s.io leases\n"
		   "create,get,list,update,watch coordination.k8s.io leasecandidates" },
	{ .namespace = "kube-system", .name = "system:controller:bootstrap-signer",
	  .rules = "get,list,watch - secrets" },
	{ .namespace = "kube-system", .name = "system:controller:cloud-provider",
	  .rules = "create,get,list,watch - configmaps" },
	{ .namespace = "kube-system", .name = "system:controller:token-cleaner",
	  .rules = "delete,get,list,watch - secrets\n"
		   "create,patch,update -,events.k8s.io events" },
};
const size_t rbac_n_default_roles = ARRAY_LEN(rbac_default_roles);

const struct rbac_default_binding rbac_default_bindings[] = {
	{ .name = "cluster-admin", .subjects = "group system:masters" },
	{ .name = "system:basic-user", .subjects = "group system:authenticated" },
	{ .name = "system:cluster-trust-bundle-discovery", .gate = "ClusterTrustBundle", .subjects = "group system:serviceaccounts" },
	{ .name = "system:discovery", .subjects = "group system:authenticated" },
	{ .name = "system:kube-controller-manager", .subjects = "user system:kube-controller-manager" },
	{ .name = "system:kube-dns", .subjects = "account kube-system/kube-dns" },
	{ .name = "system:kube-scheduler", .subjects = "user system:kube-scheduler" },
	{ .name = "system:monitoring", .subjects = "group system:monitoring" },
	{ .name = "system:node" },
	{ .name = "system:node-proxier", .subjects = "user system:kube-proxy" },
	{ .name = "system:public-info-viewer",
	  .subjects = "group system:authenticated,group system:unauthenticated" },
	{ .name = "system:service-account-issuer-discovery", .subjects = "group system:serviceaccounts" },
	{ .name = "system:volume-scheduler", .subjects = "user system:kube-scheduler" },
	{ .name = "system:controller:attachdetach-controller",
	  .subjects = "account kube-system/attachdetach-controller" },
	{ .name = "system:controller:certificate-controller",
	  .subjects = "account kube-system/certificate-controller" },
	{ .name = "system:controller:clusterrole-aggregation-controller",
	  .subjects = "account kube-system/clusterrole-aggregation-controller" },
	{ .name = "system:controller:cronjob-controller", .subjects = "account kube-system/cronjob-controller" },
	{ .name = "system:controller:daemon-set-controller",
	  .subjects = "account kube-system/daemon-set-controller" },
	{ .name = "system:controller:deployment-controller",
	  .subjects = "account kube-system/deployment-controller" },
	{ .name = "system:controller:device-taint-eviction-controller",
	  .subjects = "account kube-system/device-taint-eviction-controller" },
	{ .name = "system:controller:disruption-controller",
	  .subjects = "account kube-system/disruption-controller" },
	{ .name = "system:controller:endpoint-controller", .subjects = "account kube-system/endpoint-controller" },
	{ .name = "system:controller:endpointslice-controller",
	  .subjects = "account kube-system/endpointslice-controller" },
	{ .name = "system:controller:endpointslicemirroring-controller",
	  .subjects = "account kube-system/endpointslicemirroring-controller" },
	{ .name = "system:controller:ephemeral-volume-controller",
	  .subjects = "account kube-system/ephemeral-volume-controller" },
	{ .name = "system:controller:expand-controller", .subjects = "account kube-system/expand-controller" },
	{ .name = "system:controller:generic-garbage-collector",
	  .subjects = "account kube-system/generic-garbage-collector" },
	{ .name = "system:controller:horizontal-pod-autoscaler",
	  .subjects = "account kube-system/horizontal-pod-autoscaler" },
	{ .name = "system:controller:job-controller", .subjects = "account kube-system/job-controller" },
	{ .name = "system:controller:kube-apiserver-serving-clustertrustbundle-publisher", .gate = "ClusterTrustBundle",
	  .subjects = "account kube-system/kube-apiserver-serving-clustertrustbundle-publisher" },
	{ .name = "system:controller:legacy-service-account-token-cleaner",
	  .subjects = "account kube-system/legacy-service-account-token-cleaner" },
	{ .name = "system:controller:local-path-provisioner",
	  .subjects = "account kube-system/local-path-provisioner" },
	{ .name = "system:controller:namespace-controller", .subjects = "account kube-system/namespace-controller" },
	{ .name = "system:controller:node-controller", .subjects = "account kube-system/node-controller" },
	{ .name = "system:controller:persistent-volume-binder",
	  .subjects = "account kube-system/persistent-volume-binder" },
	{ .name = "system:controller:pod-garbage-collector",
	  .subjects = "account kube-system/pod-garbage-collector" },
	{ .name = "system:controller:pv-protection-controller",
	  .subjects = "account kube-system/pv-protection-controller" },
	{ .name = "system:controller:pvc-protection-controller",
	  .subjects = "account kube-system/pvc-protection-controller" },
	{ .name = "system:controller:replicaset-controller",
	  .subjects = "account kube-system/replicaset-controller" },
	{ .name = "system:controller:replication-controller",
	  .subjects = "account kube-system/replication-controller" },
	{ .name = "system:controller:resource-claim-controller",
	  .subjects = "account kube-system/resource-claim-controller" },
	{ .name = "system:controller:resourcequota-controller",
	  .subjects = "account kube-system/resourcequota-controller" },
	{ .name = "system:controller:root-ca-cert-publisher",
	  .subjects = "account kube-system/root-ca-cert-publisher" },
	{ .name = "system:controller:route-controller", .subjects = "account kube-system/route-controller" },
	{ .name = "system:controller:selinux-warning-controller",
	  .subjects = "account kube-system/selinux-warning-controller" },
	{ .name = "system:controller:service-account-controller",
	  .subjects = "account kube-system/service-account-controller" },
	{ .name = "system:controller:service-cidrs-controller",
	  .subjects = "account kube-system/service-cidrs-controller" },
	{ .name = "system:controller:service-controller", .subjects = "account kube-system/service-controller" },
	{ .name = "system:controller:statefulset-controller",
	  .subjects = "account kube-system/statefulset-controller" },
	{ .name = "system:controller:ttl-after-finished-controller",
	  .subjects = "account kube-system/ttl-after-finished-controller" },
	{ .name = "system:controller:ttl-controller", .subjects = "account kube-system/ttl-controller" },
	{ .name = "system:controller:validatingadmissionpolicy-status-controller",
	  .subjects = "account kube-system/validatingadmissionpolicy-status-controller" },
	{ .name = "system:controller:volumeattributesclass-protection-controller",
	  .subjects = "account kube-system/volumeattributesclass-protection-controller" },
	{ .namespace = "kube-public", .name = "system:controller:bootstrap-signer",
	  .subjects = "account kube-system/bootstrap-signer" },
	{ .namespace = "kube-system", .name = "system::extension-apiserver-authentication-reader",
	  .role = "extension-apiserver-authentication-reader",
	  .subjects = "user system:kube-controller-manager,user system:kube-scheduler" },
	{ .namespace = "kube-system", .name = "system::leader-locking-kube-controller-manager",
	  .subjects = "user system:kube-controller-manager,"
		      "account kube-system/kube-controller-manager,"
		      "account kube-system/leader-election-controller" },
	{ .namespace = "kube-system", .name = "system::leader-locking-kube-scheduler",
	  .subjects = "user system:kube-scheduler,account kube-system/kube-scheduler" },
	{ .namespace = "kube-system", .name = "system:controller:bootstrap-signer",
	  .subjects = "account kube-system/bootstrap-signer" },
	{ .namespace = "kube-system", .name = "system:controller:cloud-provider",
	  .subjects = "account kube-system/cloud-provider" },
	{ .namespace = "kube-system", .name = "system:controller:token-cleaner",
	  .subjects = "account kube-system/token-cleaner" },
};
const size_t rbac_n_default_bindings = ARRAY_LEN(rbac_default_bindings);
