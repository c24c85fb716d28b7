/* Expectations are the answers of Kubernetes 1.36 to these objects. */
#include "machinery/validate_testing.h"

#define META "'metadata':{'name':'x','resourceVersion':'1'}"
#define VOLUME_SPEC(spec) "{'apiVersion':'v1','kind':'PersistentVolume'," META ",'spec':{" spec "}}"
#define BASE "'capacity':{'storage':'1Gi'},'accessModes':['ReadWriteOnce']"
#define VOLUME(source) VOLUME_SPEC(BASE "," source)
#define PATH "'hostPath':{'path':'/a'}"
#define CSI "'csi':{'driver':'d','volumeHandle':'h'"
#define AFFINITY(key, value) \
	"'nodeAffinity':{'required':{'nodeSelectorTerms':[{'matchExpressions':[{'key':'" key "','operator':'In','values':['" value "']}]}]}}"
#define CLAIM_WITH(meta, members) \
	"{'apiVersion':'v1','kind':'PersistentVolumeClaim','metadata':{'name':'x','namespace':'n','resourceVersion':'1'" meta "}," members "}"
#define CLAIM(spec) CLAIM_WITH("", "'spec':{'accessModes':['ReadWriteOnce'],'resources':{'requests':{'storage':'1Gi'}}" spec "}")
#define CLAIM_SIZE(size, status) \
	CLAIM_WITH("", "'spec':{'accessModes':['ReadWriteOnce'],'resources':{'requests':{'storage':'" size "'}},'volumeName':'v'},'status':{" status "}")
#define CLAIM_CLASS(annotation, spec) \
	CLAIM_WITH(",'annotations':{" annotation "}", "'spec':{'accessModes':['ReadWriteOnce'],'resources':{'requests':{'storage':'1Gi'}}" spec "}")
#define BETA(class) "'volume.beta.kubernetes.io/storage-class':'" class "'"
#define STORAGE(kind, members) "{'apiVersion':'storage.k8s.io/v1','kind':'" kind "'," META members "}"
#define STORAGE_CLASS(members) STORAGE("StorageClass", "," members)
#define TERM(key, values) "{'matchLabelExpressions':[{'key':'" key "','values':[" values "]}]}"
#define ATTACHMENT(spec) STORAGE("VolumeAttachment", ",'spec':{" spec "}")
#define DRIVER(spec) STORAGE("CSIDriver", ",'spec':{" spec "}")
#define CSI_NODE(drivers) STORAGE("CSINode", ",'spec':{'drivers':[" drivers "]}")
#define CAPACITY(members) \
	"{'apiVersion':'storage.k8s.io/v1','kind':'CSIStorageCapacity','metadata':{'name':'x','namespace':'n','resourceVersion':'1'}" members "}"
#define ATTRIBUTES_CLASS(members) STORAGE("VolumeAttributesClass", "," members)

TEST(validate_persistent_volume)
{
	static const struct create_row t[] = {
		{ VOLUME(PATH), "" },
		{ VOLUME_SPEC(""),
		  "spec.accessModes: Required value\n"
		  "spec.capacity: Required value\n"
		  "spec.capacity: Unsupported value: null: supported values: 'storage'\n"
		  "spec: Required value: must specify a volume type" },
		{ VOLUME_SPEC("'capacity':{'storage':'0','cpu':'-1'},'accessModes':['x','ReadWriteOncePod','ReadWriteOnce']," PATH),
		  "spec.accessModes: Unsupported value: 'x': supported values: 'ReadOnlyMany', 'ReadWriteMany',"
		  " 'ReadWriteOnce', 'ReadWriteOncePod'\n"
		  "spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes\n"
		  "spec.capacity: Unsupported value: {'cpu':'-1','storage':'0'}: supported values: 'storage'\n"
		  "spec.capacity[cpu]: Invalid value: -1: must be a valid resource quantity\n"
		  "spec.capacity[cpu]: Invalid value: '-1': must be greater than zero\n"
		  "spec.capacity[storage]: Invalid value: '0': must be greater than zero" },
		{ VOLUME(PATH ",'persistentVolumeReclaimPolicy':'x','storageClassName':'A','volumeMode':'x'"),
		  "spec.persistentVolumeReclaimPolicy: Unsupported value: 'x': supported values: 'Delete', 'Recycle',"
		  " 'Retain'\n"
		  "spec.storageClassName: Invalid value: 'A': " SUBDOMAIN_TEXT "\n"
		  "spec.volumeMode: Unsupported value: 'x': supported values: 'Block', 'Filesystem'" },
		{ VOLUME("'hostPath':{'path':'/a/..'},'persistentVolumeReclaimPolicy':'Recycle'"),
		  "spec.hostPath.path: Invalid value: '/a/..': must not contain '..'\n"
		  "spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'" },
		{ VOLUME(PATH ",'nfs':{'server':'a','path':'/b'},'csi':{}"),
		  "spec.nfs: Forbidden: may not specify more than 1 volume type\n"
		  "spec.csi: Forbidden: may not specify more than 1 volume type" },
		{ VOLUME("'local':{'path':'/a'}"),
		  "spec.nodeAffinity: Required value: Local volume requires node affinity" },
		{ VOLUME("'local':{'path':'../a'}," AFFINITY("a", "b")),
		  "spec.local.path: Invalid value: '../a': must not contain '..'" },
		{ VOLUME(PATH ",'nodeAffinity':{}"),
		  "spec.nodeAffinity.required: Required value: must specify required node constraints" },
		{ VOLUME(PATH "," AFFINITY("a", "?")),
		  "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value: '?': "
		  VALUE_TEXT },
		{ VOLUME("'csi':{'controllerPublishSecretRef':{'name':'A'},'nodeExpandSecretRef':{'namespace':'A'}}"),
		  "spec.csi.driver: Required value\n"
		  "spec.csi.volumeHandle: Required value\n"
		  "spec.csi.controllerPublishSecretRef.name: Invalid value: 'A': " SUBDOMAIN_TEXT "\n"
		  "spec.csi.controllerPublishSecretRef.namespace: Required value\n"
		  "spec.csi.nodeExpandSecretRef.name: Required value\n"
		  "spec.csi.nodeExpandSecretRef.namespace: Invalid value: 'A': " LABEL_TEXT },
		{ VOLUME(CSI "},'volumeAttributesClassName':''"),
		  "spec.volumeAttributesClassName: Required value: an empty string is disallowed" },
		{ VOLUME(PATH ",'volumeAttributesClassName':'A'"),
		  "spec.volumeAttributesClassName: Invalid value: 'A': " SUBDOMAIN_TEXT "\n"
		  "spec.csi: Required value: has to be specified when using volumeAttributesClassName" },
		{ VOLUME("'glusterfs':{'endpoints':'a','path':'b','endpointsNamespace':''}"),
		  "spec.glusterfs.endpointsNamespace: Invalid value: '': if the endpointnamespace is set, it must be a"
		  " valid namespace name" },
		{ VOLUME("'cinder':{'volumeID':'a','secretRef':{}}"),
		  "spec.cinder.secretRef.name: Required value\n"
		  "spec.cinder.secretRef.namespace: Required value" },
		{ VOLUME("'azureFile':{'secretName':'a','shareName':'b','secretNamespace':''}"),
		  "spec.azureFile.secretNamespace: Required value" },
		{ VOLUME("'iscsi':{'targetPortal':'a','iqn':'b','lun':0}"),
		  "spec.iscsi.iqn: Invalid value: 'b': must be valid format" },
		{ VOLUME("'nfs':{'path':'a'}"),
		  "spec.nfs.server: Required value\n"
		  "spec.nfs.path: Invalid value: 'a': must be an absolute path" },
		{ "{'apiVersion':'v1','kind':'PersistentVolume','metadata':{'name':'x','annotations':{'volume.beta.kubernetes.io/mount-options':'ro'}},"
		  "'spec':{" BASE "," PATH "}}",
		  "metadata.annotations.volume.beta.kubernetes.io/mount-options: Forbidden: may not specify mount"
		  " options for this volume type" },
	};
	check_create_rows(t, ARRAY_LEN(t));
}

TEST(validate_persistent_volume_update)
{
	static const struct update_row t[] = {
		{ VOLUME(PATH ",'persistentVolumeReclaimPolicy':'Delete'"), VOLUME(PATH), "", "" },
		{ VOLUME("'hostPath':{'path':'/b'}"), VOLUME(PATH), "",
		  "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation\n"
		  "@@ -2,7 +2,7 @@\n"
		  "  'GCEPersistentDisk': null,\n"
		  "  'AWSElasticBlockStore': null,\n"
		  "  'HostPath': {\n"
		  "-  'Path': '/a',\n"
		  "+  'Path': '/b',\n"
		  "   'Type': ''\n"
		  "  },\n"
		  "  'Glusterfs': null,\n" },
		{ VOLUME(PATH ",'volumeMode':'Block'"), VOLUME(PATH), "",
		  "volumeMode: Invalid value: 'Block': field is immutable" },
		{ VOLUME(CSI ",'controllerExpandSecretRef':{'name':'a','namespace':'b'}}"), VOLUME(CSI "}"), "",
		  "" },
		{ VOLUME(CSI "}"), VOLUME(CSI "},'volumeAttributesClassName':'a'"), "",
		  "spec.volumeAttributesClassName: Forbidden: update from non-nil value to nil is forbidden" },
		{ VOLUME(PATH "," AFFINITY("a", "b")), VOLUME(PATH), "", "" },
		{ VOLUME(PATH "," AFFINITY("a", "b")), VOLUME(PATH "," AFFINITY("a", "c")), "",
		  "nodeAffinity: Invalid value:"
		  " {'Required':{'NodeSelectorTerms':[{'MatchExpressions':[{'Key':'a','Operator':'In','Values':['b']}],"
		  "'MatchFields':null}]}}: field is immutable, except for updating from beta label to GA" },
		{ VOLUME(PATH "," AFFINITY("topology.kubernetes.io/zone", "b")), VOLUME(PATH "," AFFINITY("failure-domain.beta.kubernetes.io/zone", "b")), "",
		  "" },
		{ VOLUME(PATH "," AFFINITY("a", "?")), VOLUME(PATH "," AFFINITY("a", "?")), "", "" },
		{ VOLUME(PATH), VOLUME(PATH), "status", "" },
	};
	check_update_rows(t, ARRAY_LEN(t));
}

TEST(validate_claim)
{
	static const struct create_row t[] = {
		{ CLAIM(""), "" },
		{ CLAIM_WITH("", "'spec':{}"),
		  "spec.accessModes: Required value: at least 1 access mode is required\n"
		  "spec.resources[storage]: Required value" },
		{ CLAIM_WITH("", "'spec':{'accessModes':['x'],'resources':{'requests':{'storage':'-1'}},'storageClassName':'A','volumeMode':'x',"
			     "'selector':{'matchLabels':{'a b':'c'}}}"),
		  "spec.selector.matchLabels: Invalid value: 'a b': " NAME_PART_TEXT "\n"
		  "spec.accessModes: Unsupported value: 'x': supported values: 'ReadOnlyMany', 'ReadWriteMany',"
		  " 'ReadWriteOnce', 'ReadWriteOncePod'\n"
		  "spec.resources[storage]: Invalid value: '-1': must be greater than zero\n"
		  "spec.storageClassName: Invalid value: 'A': " SUBDOMAIN_TEXT "\n"
		  "spec.volumeMode: Unsupported value: 'x': supported values: 'Block', 'Filesystem'" },
		{ CLAIM(",'dataSource':{'kind':'PersistentVolumeClaim','name':''}"),
		  "spec.dataSource.name: Required value\n"
		  "spec.dataSourceRef.name: Required value" },
		{ CLAIM(",'dataSource':{'kind':'PersistentVolumeClaim','name':'a'},'dataSourceRef':{'kind':'PersistentVolumeClaim','name':'b'}"),
		  "spec: Invalid value: {}: must match dataSourceRef" },
		{ CLAIM(",'dataSourceRef':{'apiGroup':'','kind':'Pod','name':'b'}"),
		  "spec.dataSource: Invalid value: 'Pod': must be 'PersistentVolumeClaim' when referencing the default"
		  " apiGroup\n"
		  "spec.dataSourceRef: Invalid value: 'Pod': must be 'PersistentVolumeClaim' when referencing the"
		  " default apiGroup" },
		{ CLAIM(",'volumeAttributesClassName':'A'"),
		  "spec.volumeAttributesClassName: Invalid value: 'A': " SUBDOMAIN_TEXT },
	};
	check_create_rows(t, ARRAY_LEN(t));
}

TEST(validate_claim_update)
{
	static const struct update_row t[] = {
		{ CLAIM(",'volumeName':'v'"), CLAIM(""), "", "" },
		{ CLAIM(",'volumeName':'w'"), CLAIM(",'volumeName':'v'"), "",
		  "spec: Forbidden: spec is immutable after creation except resources.requests and"
		  " volumeAttributesClassName for bound claims\n"
		  "@@ -9,7 +9,7 @@\n"
		  "    'storage': '1Gi'\n"
		  "   }\n"
		  "  },\n"
		  "- 'VolumeName': 'v',\n"
		  "+ 'VolumeName': 'w',\n"
		  "  'StorageClassName': null,\n"
		  "  'VolumeMode': 'Filesystem',\n"
		  "  'DataSource': null,\n" },
		{ CLAIM(",'storageClassName':'a'"), CLAIM(""), "", "" },
		{ CLAIM_CLASS("", ",'storageClassName':'a'"), CLAIM_CLASS(BETA("a"), ""), "", "" },
		{ CLAIM_CLASS(BETA("b"), ""), CLAIM_CLASS(BETA("a"), ""), "",
		  "metadata.annotations.volume.beta.kubernetes.io/storage-class: Invalid value: 'b': field is immutable" },
		{ CLAIM_CLASS(BETA("a"), ",'storageClassName':'b'"), CLAIM_CLASS(BETA("a"), ""), "",
		  "spec: Forbidden: spec is immutable after creation except resources.requests and"
		  " volumeAttributesClassName for bound claims\n"
		  "@@ -10,7 +10,7 @@\n"
		  "   }\n"
		  "  },\n"
		  "  'VolumeName': '',\n"
		  "- 'StorageClassName': null,\n"
		  "+ 'StorageClassName': 'b',\n"
		  "  'VolumeMode': 'Filesystem',\n"
		  "  'DataSource': null,\n"
		  "  'DataSourceRef': null,\n" },
		{ CLAIM(",'volumeMode':'Block'"), CLAIM(""), "",
		  "spec: Forbidden: spec is immutable after creation except resources.requests and"
		  " volumeAttributesClassName for bound claims\n"
		  "@@ -11,7 +11,7 @@\n"
		  "  },\n"
		  "  'VolumeName': '',\n"
		  "  'StorageClassName': null,\n"
		  "- 'VolumeMode': 'Filesystem',\n"
		  "+ 'VolumeMode': 'Block',\n"
		  "  'DataSource': null,\n"
		  "  'DataSourceRef': null,\n"
		  "  'VolumeAttributesClassName': null\n"
		  "\n"
		  "volumeMode: Invalid value: 'Block': field is immutable" },
		{ CLAIM_SIZE("2Gi", ""), CLAIM_SIZE("1Gi", ""), "",
		  "spec: Forbidden: spec is immutable after creation except resources.requests and"
		  " volumeAttributesClassName for bound claims\n"
		  "@@ -6,7 +6,7 @@\n"
		  "  'Resources': {\n"
		  "   'Limits': null,\n"
		  "   'Requests': {\n"
		  "-   'storage': '1Gi'\n"
		  "+   'storage': '2Gi'\n"
		  "   }\n"
		  "  },\n"
		  "  'VolumeName': 'v',\n" },
		{ CLAIM_SIZE("2Gi", "'phase':'Bound'"), CLAIM_SIZE("1Gi", "'phase':'Bound'"), "", "" },
		{ CLAIM_SIZE("1Gi", "'phase':'Bound','capacity':{'storage':'1Gi'}"),
		  CLAIM_SIZE("3Gi", "'phase':'Bound','capacity':{'storage':'2Gi'}"), "",
		  "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity" },
		{ CLAIM(""), CLAIM(",'volumeAttributesClassName':'a'"), "",
		  "spec: Forbidden: spec is immutable after creation except resources.requests and"
		  " volumeAttributesClassName for bound claims\n"
		  "@@ -14,5 +14,5 @@\n"
		  "  'VolumeMode': 'Filesystem',\n"
		  "  'DataSource': null,\n"
		  "  'DataSourceRef': null,\n"
		  "- 'VolumeAttributesClassName': 'a'\n"
		  "+ 'VolumeAttributesClassName': null\n"
		  " }\n" },
		{ CLAIM_SIZE("1Gi", "'capacity':{'storage':'-1'},'allocatedResourceStatuses':{'storage':'x','cpu':'NodeResizePending','a b':'x'},"
				    "'allocatedResources':{'storage':'-1','cpu':'1'}"), CLAIM_SIZE("1Gi", ""), "status",
		  "status.capacity[storage]: Invalid value: -1: must be a valid resource quantity\n"
		  "status.allocatedResourceStatuses: Invalid value: 'a b': " NAME_PART_TEXT "\n"
		  "status.allocatedResourceStatuses: Unsupported value: 'a b': supported values:"
		  " 'ControllerResizeInProgress', 'ControllerResizeInfeasible', 'NodeResizeInProgress',"
		  " 'NodeResizeInfeasible', 'NodeResizePending'\n"
		  "status.allocatedResourceStatuses: Unsupported value: 'cpu': supported values: 'storage'\n"
		  "status.allocatedResourceStatuses: Unsupported value: 'storage': supported values:"
		  " 'ControllerResizeInProgress', 'ControllerResizeInfeasible', 'NodeResizeInProgress',"
		  " 'NodeResizeInfeasible', 'NodeResizePending'\n"
		  "status.allocatedResources: Unsupported value: 'cpu': supported values: 'storage'\n"
		  "status.allocatedResources[storage]: Invalid value: -1: must be a valid resource quantity" },
		{ CLAIM_SIZE("1Gi", "'capacity':{'storage':'1Gi'},'phase':'Bound'"), CLAIM_SIZE("1Gi", ""), "status",
		  "" },
	};
	check_update_rows(t, ARRAY_LEN(t));
}

TEST(validate_storage_class)
{
	static const struct create_row t[] = {
		{ STORAGE_CLASS("'provisioner':'a.b/C','parameters':{'a':'b'},'allowedTopologies':[" TERM("a", "'b'") "]"),
		  "" },
		{ STORAGE_CLASS("'provisioner':'','reclaimPolicy':'x','volumeBindingMode':'x'"),
		  "provisioner: Required value\n"
		  "reclaimPolicy: Unsupported value: 'x': supported values: 'Delete', 'Retain'\n"
		  "volumeBindingMode: Unsupported value: 'x': supported values: 'Immediate', 'WaitForFirstConsumer'" },
		{ STORAGE_CLASS("'provisioner':'a b','parameters':{'':'b'},'reclaimPolicy':'Recycle'"),
		  "provisioner: Invalid value: 'a b': " NAME_PART_TEXT "\n"
		  "parameters: Invalid value: '': field can not be empty.\n"
		  "reclaimPolicy: Unsupported value: 'Recycle': supported values: 'Delete', 'Retain'" },
		{ STORAGE_CLASS("'provisioner':'a','allowedTopologies':[" TERM("a", "'b','c'") "," TERM("a", "'c','b','b'") "," TERM("", "") "]"),
		  "allowedTopologies[1].matchLabelExpressions[0].values[2]: Duplicate value: 'b'\n"
		  "allowedTopologies[1].matchLabelExpressions: Duplicate value: ''\n"
		  "allowedTopologies[2].matchLabelExpressions[0].values: Required value\n"
		  "allowedTopologies[2].matchLabelExpressions[0].key: Invalid value: '': name part must be non-empty\n"
		  "allowedTopologies[2].matchLabelExpressions[0].key: Invalid value: '': " NAME_PART_TEXT },
		{ STORAGE_CLASS("'provisioner':'a','allowedTopologies':[{},{'matchLabelExpressions':[{'key':'a','values':['b']},"
				"{'key':'a','values':['b']}]}]"),
		  "allowedTopologies[0].matchLabelExpressions: Duplicate value: ''\n"
		  "allowedTopologies[0].matchLabelExpressions: Duplicate value: ''\n"
		  "allowedTopologies[1].matchLabelExpressions[1].key: Duplicate value: 'a'" },
	};
	static const struct update_row u[] = {
		{ STORAGE_CLASS("'provisioner':'a','allowVolumeExpansion':true"), STORAGE_CLASS("'provisioner':'a'"), "",
		  "" },
		{ STORAGE_CLASS("'provisioner':'b','parameters':{'c':'d'},'reclaimPolicy':'Retain','volumeBindingMode':'WaitForFirstConsumer'"),
		  STORAGE_CLASS("'provisioner':'a'"), "",
		  "parameters: Invalid value: {'c':'d'}: field is immutable\n"
		  "provisioner: Invalid value: 'b': field is immutable\n"
		  "reclaimPolicy: Invalid value: 'Retain': field is immutable\n"
		  "volumeBindingMode: Invalid value: 'WaitForFirstConsumer': field is immutable" },
	};
	check_create_rows(t, ARRAY_LEN(t));
	check_update_rows(u, ARRAY_LEN(u));
}

TEST(validate_volume_attachment)
{
	static const struct create_row t[] = {
		{ ATTACHMENT("'attacher':'a','nodeName':'b','source':{'persistentVolumeName':'c'}"), "" },
		{ ATTACHMENT(""),
		  "spec.attacher: Required value\n"
		  "spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName\n"
		  "spec.nodeName: Invalid value: '': " SUBDOMAIN_TEXT },
		{ ATTACHMENT("'attacher':'a','nodeName':'b','source':{'persistentVolumeName':'A'}"),
		  "spec.source.persistentVolumeName: Invalid value: 'A': " SUBDOMAIN_TEXT },
		{ ATTACHMENT("'attacher':'a','nodeName':'b','source':{'persistentVolumeName':''}"),
		  "spec.source.persistentVolumeName: Required value: must specify non empty persistentVolumeName\n"
		  "spec.source.persistentVolumeName: Invalid value: '': " SUBDOMAIN_TEXT },
		{ ATTACHMENT("'attacher':'A b','nodeName':'A','source':{'persistentVolumeName':'c','inlineVolumeSpec':{}}"),
		  "spec.attacher: Invalid value: 'A b': " SUBDOMAIN_TEXT "\n"
		  "spec.source: Forbidden: must specify exactly one of inlineVolumeSpec and persistentVolumeName\n"
		  "spec.nodeName: Invalid value: 'A': " SUBDOMAIN_TEXT },
		{ ATTACHMENT("'attacher':'a','nodeName':'b','source':{'inlineVolumeSpec':{" CSI "},'accessModes':['ReadWriteOnce']}}"),
		  "" },
		{ ATTACHMENT("'attacher':'a','nodeName':'b','source':{'inlineVolumeSpec':{'hostPath':{'path':'/'},'claimRef':{},'capacity':{'storage':'1'},"
			     "'persistentVolumeReclaimPolicy':'Recycle','storageClassName':'a','volumeMode':'Block','nodeAffinity':{}}}"),
		  "spec.source.inlineVolumeSpec.claimRef: Forbidden: may not be specified in the context of inline"
		  " volumes\n"
		  "spec.source.inlineVolumeSpec.capacity: Forbidden: may not be specified in the context of inline"
		  " volumes\n"
		  "spec.source.inlineVolumeSpec.csi: Required value: has to be specified in the context of inline"
		  " volumes\n"
		  "spec.source.inlineVolumeSpec.accessModes: Required value\n"
		  "spec.source.inlineVolumeSpec.persistentVolumeReclaimPolicy: Forbidden: may only be Retain in the"
		  " context of inline volumes\n"
		  "spec.source.inlineVolumeSpec.nodeAffinity: Forbidden: may not be specified in the context of inline"
		  " volumes\n"
		  "spec.source.inlineVolumeSpec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a"
		  " hostPath mount of '/'\n"
		  "spec.source.inlineVolumeSpec.storageClassName: Forbidden: may not be specified in the context of"
		  " inline volumes\n"
		  "spec.source.inlineVolumeSpec.volumeMode: Forbidden: may not specify volumeMode other than"
		  " Filesystem in the context of inline volumes" },
	};
	static const struct update_row u[] = {
		{ ATTACHMENT("'attacher':'a','nodeName':'c','source':{'persistentVolumeName':'c'}"),
		  ATTACHMENT("'attacher':'a','nodeName':'b','source':{'persistentVolumeName':'c'}"), "",
		  "spec: Invalid value:"
		  " {'Attacher':'a','Source':{'PersistentVolumeName':'c','InlineVolumeSpec':null},'NodeName':'c'}:"
		  " field is immutable" },
		{ STORAGE("VolumeAttachment", ",'spec':{'attacher':'a','nodeName':'b','source':{'persistentVolumeName':'c'}},"
			  "'status':{'attachError':{'errorCode':-1}}"),
		  ATTACHMENT("'attacher':'a','nodeName':'b','source':{'persistentVolumeName':'c'}"), "status",
		  "status.attachError.errorCode: Invalid value: -1: must be between 0 and 2147483647, inclusive" },
	};
	check_create_rows(t, ARRAY_LEN(t));
	check_update_rows(u, ARRAY_LEN(u));
}

TEST(validate_csi)
{
	static const struct create_row t[] = {
		{ DRIVER(""), "" },
		{ DRIVER("'fsGroupPolicy':'x','volumeLifecycleModes':['Persistent','x'],'nodeAllocatableUpdatePeriodSeconds':9,"
			 "'tokenRequests':[{'audience':'a','expirationSeconds':599},{'audience':'a'},{'audience':'b','expirationSeconds':4294967297}]"),
		  "spec.fsGroupPolicy: Unsupported value: 'x': supported values: 'File', 'None',"
		  " 'ReadWriteOnceWithFSType'\n"
		  "spec.tokenRequests[0].expirationSeconds: Invalid value: 599: may not specify a duration less than"
		  " 10 minutes\n"
		  "spec.tokenRequests[1].audience: Duplicate value: 'a'\n"
		  "spec.tokenRequests[2].expirationSeconds: Invalid value: 4294967297: may not specify a duration"
		  " larger than 2^32 seconds\n"
		  "spec.volumeLifecycleModes: Unsupported value: 'x': supported values: 'Persistent', 'Ephemeral'\n"
		  "spec.nodeAllocatableUpdatePeriodSeconds: Invalid value: 9: must be greater than or equal to 10"
		  " seconds" },
		{ DRIVER("'serviceAccountTokenInSecrets':true"),
		  "spec.serviceAccountTokenInSecrets: Invalid value: true: serviceAccountTokenInSecrets is set but no"
		  " tokenRequests are specified" },
		{ CSI_NODE("{'name':'a','nodeID':'b','topologyKeys':['c']}"), "" },
		{ CSI_NODE("{},{'name':'a','nodeID':'b','allocatable':{'count':-1},'topologyKeys':['','c','c','a b']},{'name':'a','nodeID':'c'}"),
		  "spec.drivers[0].name: Required value\n"
		  "spec.drivers[0].nodeID: Required value\n"
		  "spec.drivers[1].allocatable.count: Invalid value: -1: must be greater than or equal to 0\n"
		  "spec.drivers[1]: Required value\n"
		  "spec.drivers[1]: Invalid value: '': name part must be non-empty\n"
		  "spec.drivers[1]: Invalid value: '': " NAME_PART_TEXT "\n"
		  "spec.drivers[1]: Duplicate value: 'c'\n"
		  "spec.drivers[1]: Invalid value: 'a b': " NAME_PART_TEXT "\n"
		  "spec.drivers[2].name: Duplicate value: 'a'" },
		{ CAPACITY(",'storageClassName':'a','capacity':'1Gi','nodeTopology':{'matchLabels':{'a':'b'}}"),
		  "" },
		{ CAPACITY(",'storageClassName':'A','capacity':'-1','nodeTopology':{'matchLabels':{'a b':'c'}}"),
		  "nodeTopology.matchLabels: Invalid value: 'a b': " NAME_PART_TEXT "\n"
		  "storageClassName: Invalid value: 'A': " SUBDOMAIN_TEXT "\n"
		  "capacity: Invalid value: '-1': must be greater than or equal to 0" },
		{ ATTRIBUTES_CLASS("'driverName':'a','parameters':{'a':'b'}"), "" },
		{ ATTRIBUTES_CLASS("'driverName':''"),
		  "driverName: Required value\n"
		  "parameters: Required value: must contain at least one key/value pair" },
	};
	static const struct update_row u[] = {
		{ DRIVER("'attachRequired':false,'volumeLifecycleModes':['Ephemeral']"), DRIVER(""), "",
		  "spec.attachedRequired: Invalid value: false: field is immutable\n"
		  "spec.volumeLifecycleModes: Invalid value: ['Ephemeral']: field is immutable" },
		{ DRIVER("'podInfoOnMount':true,'requiresRepublish':true"), DRIVER(""), "", "" },
		{ CSI_NODE("{'name':'a','nodeID':'c'}"), CSI_NODE("{'name':'a','nodeID':'b'}"), "",
		  "spec.drivers: Invalid value: {'Name':'a','NodeID':'c','TopologyKeys':null,'Allocatable':null}:"
		  " field is immutable" },
		{ CSI_NODE("{'name':'a','nodeID':'b','allocatable':{'count':1}},{'name':'c','nodeID':'d'}"), CSI_NODE("{'name':'a','nodeID':'b'}"), "",
		  "" },
		{ CAPACITY(",'storageClassName':'b','nodeTopology':{}"), CAPACITY(",'storageClassName':'a'"), "",
		  "nodeTopology: Invalid value: {}: field is immutable\n"
		  "storageClassName: Invalid value: 'b': field is immutable" },
		{ ATTRIBUTES_CLASS("'driverName':'b','parameters':{'a':'c'}"), ATTRIBUTES_CLASS("'driverName':'a','parameters':{'a':'b'}"), "",
		  "driverName: Forbidden: updates to driverName are forbidden.\n"
		  "parameters: Forbidden: updates to parameters are forbidden." },
	};
	check_create_rows(t, ARRAY_LEN(t));
	check_update_rows(u, ARRAY_LEN(u));
}
