/* Expectations are the answers of Kubernetes 1.36 to these objects. */
#include "machinery/validate_testing.h"

#define POD(spec) "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p','namespace':'n'},'spec':{" spec "}}"
#define POD_WITH(meta, spec) "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p','namespace':'n'" meta "},'spec':{" spec "}}"
#define C(members) "'containers':[{'name':'c','image':'i'" members "}]"
#define ONE C("")
#define VOLUME(source) ONE ",'volumes':[{'name':'v'," source "}]"

TEST(validate_pod_containers)
{
	static const struct create_row t[] = {
		{ POD(ONE),
		  "" },
		{ POD(""),
		  "spec.containers: Required value" },
		{ POD("'containers':[{},{'name':'Bad','image':' x '},{'name':'Bad','image':'x'}]"),
		  "spec.containers[0].name: Required value\n"
		  "spec.containers[0].image: Required value\n"
		  "spec.containers[1].name: Invalid value: 'Bad': " LABEL_TEXT "\n"
		  "spec.containers[2].name: Invalid value: 'Bad': " LABEL_TEXT "\n"
		  "spec.containers[2].name: Duplicate value: 'Bad'\n"
		  "spec.containers[1].image: Invalid value: ' x ': must not have leading or trailing whitespace" },
		{ POD(C(",'imagePullPolicy':'Foo','terminationMessagePolicy':'Foo'")),
		  "spec.containers[0].terminationMessagePolicy: Unsupported value: 'Foo': supported values: 'File',"
		  " 'FallbackToLogsOnError'\n"
		  "spec.containers[0].imagePullPolicy: Unsupported value: 'Foo': supported values: 'Always',"
		  " 'IfNotPresent', 'Never'" },
		{ POD(C(",'ports':[{},{'name':'-x','containerPort':70000},{'name':'a','containerPort':1,'hostPort':-1,"
		      "'protocol':'X'},{'name':'a','containerPort':2}]")),
		  "spec.containers[0].ports[0].containerPort: Required value\n"
		  "spec.containers[0].ports[1].name: Invalid value: '-x': must not begin or end with a hyphen\n"
		  "spec.containers[0].ports[1].containerPort: Invalid value: 70000: must be between 1 and 65535,"
		  " inclusive\n"
		  "spec.containers[0].ports[2].hostPort: Invalid value: -1: must be between 1 and 65535, inclusive\n"
		  "spec.containers[0].ports[2].protocol: Unsupported value: 'X': supported values: 'SCTP', 'TCP', 'UDP'\n"
		  "spec.containers[0].ports[3].name: Duplicate value: 'a'" },
		{ POD("'containers':[{'name':'a','image':'x','ports':[{'containerPort':1,'hostPort':1}]},{'name':'b',"
		      "'image':'x','ports':[{'containerPort':2,'hostPort':1}]}]"),
		  "spec.containers[1].ports[0].hostPort: Duplicate value: 'TCP//1'" },
		{ POD("'hostNetwork':true," C(",'ports':[{'containerPort':1,'hostPort':2}]")),
		  "spec.containers[0].ports[0].hostPort: Invalid value: 2: must match `containerPort` when `hostNetwork` is"
		  " true" },
		{ POD(C(",'volumeMounts':[{},{'name':'x','mountPath':'/a','subPath':'/b','subPathExpr':'../c'},"
		      "{'name':'x','mountPath':'/a','mountPropagation':'Bidirectional','recursiveReadOnly':'Enabled'},"
		      "{'name':'x','mountPath':'/b','mountPropagation':'Foo','recursiveReadOnly':'Foo'}]")),
		  "spec.containers[0].volumeMounts[0].name: Required value\n"
		  "spec.containers[0].volumeMounts[0].name: Not found: ''\n"
		  "spec.containers[0].volumeMounts[0].mountPath: Required value\n"
		  "spec.containers[0].volumeMounts[1].name: Not found: 'x'\n"
		  "spec.containers[0].volumeMounts.subPath: Invalid value: '/b': must be a relative path\n"
		  "spec.containers[0].volumeMounts[1].subPathExpr: Invalid value: '../c': subPathExpr and subPath are"
		  " mutually exclusive\n"
		  "spec.containers[0].volumeMounts.subPathExpr: Invalid value: '../c': must not contain '..'\n"
		  "spec.containers[0].volumeMounts[2].name: Not found: 'x'\n"
		  "spec.containers[0].volumeMounts[2].mountPath: Invalid value: '/a': must be unique\n"
		  "spec.containers[0].volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation is"
		  " available only to privileged containers\n"
		  "spec.containers[0].volumeMounts.recursiveReadOnly: Forbidden: may only be specified when readOnly is"
		  " true\n"
		  "spec.containers[0].volumeMounts.recursiveReadOnly: Forbidden: may only be specified when"
		  " mountPropagation is None or not specified\n"
		  "spec.containers[0].volumeMounts[3].name: Not found: 'x'\n"
		  "spec.containers[0].volumeMounts.mountPropagation: Unsupported value: 'Foo': supported values:"
		  " 'Bidirectional', 'HostToContainer', 'None'\n"
		  "spec.containers[0].volumeMounts.recursiveReadOnly: Unsupported value: 'Foo': supported values:"
		  " 'Disabled', 'Enabled', 'IfPossible'" },
		{ POD(C(",'volumeMounts':[{'name':'v','mountPath':'/d'}],'volumeDevices':[{},{'name':'v',"
			"'devicePath':'/d'},"
		      "{'name':'v','devicePath':'/a/../b'}]") ",'volumes':[{'name':'v'}]"),
		  "spec.containers[0].volumeMounts[0].name: Invalid value: 'v': must not already exist in volumeDevices\n"
		  "spec.containers[0].volumeDevices[0].name: Required value\n"
		  "spec.containers[0].volumeDevices[0].name: Not found: ''\n"
		  "spec.containers[0].volumeDevices[0].devicePath: Required value\n"
		  "spec.containers[0].volumeDevices[1].name: Invalid value: 'v': can only use volume source type of"
		  " PersistentVolumeClaim or Ephemeral for block mode\n"
		  "spec.containers[0].volumeDevices[1].name: Invalid value: 'v': must not already exist in volumeMounts\n"
		  "spec.containers[0].volumeDevices[1].devicePath: Invalid value: '/d': must not already exist as a path in"
		  " volumeMounts\n"
		  "spec.containers[0].volumeDevices[2].name: Invalid value: 'v': must be unique\n"
		  "spec.containers[0].volumeDevices[2].name: Invalid value: 'v': can only use volume source type of"
		  " PersistentVolumeClaim or Ephemeral for block mode\n"
		  "spec.containers[0].volumeDevices[2].devicePath: Invalid value: '/a/../b': can not contain backsteps"
		  " ('..')\n"
		  "spec.containers[0].volumeDevices[2].name: Invalid value: 'v': must not already exist in volumeMounts" },
		{ POD("'restartPolicy':'Never'," C(",'resizePolicy':[{'resourceName':'cpu',"
						   "'restartPolicy':'RestartContainer'},"
		      "{'resourceName':'cpu','restartPolicy':'Foo'},{'resourceName':'x'}]")),
		  "spec.containers[0].resizePolicy: Invalid value: 'RestartContainer': must be 'NotRequired' when pod"
		  " `restartPolicy` is 'Never'\n"
		  "spec.containers[0].resizePolicy[1]: Duplicate value: 'cpu'\n"
		  "spec.containers[0].resizePolicy: Unsupported value: 'Foo': supported values: 'NotRequired',"
		  " 'RestartContainer'\n"
		  "spec.containers[0].resizePolicy: Invalid value: 'Foo': must be 'NotRequired' when pod `restartPolicy` is"
		  " 'Never'\n"
		  "spec.containers[0].resizePolicy: Unsupported value: 'x': supported values: 'cpu', 'memory'\n"
		  "spec.containers[0].resizePolicy: Required value\n"
		  "spec.containers[0].resizePolicy: Invalid value: '': must be 'NotRequired' when pod `restartPolicy` is"
		  " 'Never'" },
		{ POD(C(",'restartPolicyRules':[{'action':'Foo'},{'action':'Restart','exitCodes':{'operator':'X'}}]")),
		  "spec.containers[0].restartPolicy: Required value: must specify restartPolicy when restart rules are"
		  " used\n"
		  "spec.containers[0].restartPolicyRules[0].action: Unsupported value: 'Foo': supported values: 'Restart',"
		  " 'RestartAllContainers'\n"
		  "spec.containers[0].restartPolicyRules[0].exitCodes: Required value: must be specified\n"
		  "spec.containers[0].restartPolicyRules[1].exitCodes.operator: Unsupported value: 'X': supported values:"
		  " 'In', 'NotIn'" },
		{ POD(C(",'restartPolicy':'Foo'")),
		  "spec.containers[0].restartPolicy: Unsupported value: 'Foo': supported values: 'Always', 'Never',"
		  " 'OnFailure'" },
		{ POD("'initContainers':[{'name':'c','image':'i','restartPolicyRules':[{}]},{'name':'i','image':'i',"
		      "'lifecycle':{},'livenessProbe':{},'resizePolicy':[{'resourceName':'cpu',"
		      "'restartPolicy':'RestartContainer'}],"
		      "'ports':[{'containerPort':1,'hostPort':1},{'containerPort':1,'hostPort':1}]},{'name':'s',"
		      "'image':'i','restartPolicy':'Always','startupProbe':{}}]," ONE),
		  "spec.initContainers[0].restartPolicy: Required value: must specify restartPolicy when restart rules are"
		  " used\n"
		  "spec.initContainers[0].name: Duplicate value: 'c'\n"
		  "spec.initContainers[0].ports[1].hostPort: Duplicate value: 'TCP//1'\n"
		  "spec.initContainers[1].lifecycle: Forbidden: may not be set for init containers without"
		  " restartPolicy=Always\n"
		  "spec.initContainers[1].livenessProbe: Forbidden: may not be set for init containers without"
		  " restartPolicy=Always\n"
		  "spec.initContainers[1].resizePolicy[0].restartPolicy: Invalid value: 'RestartContainer': must not be set"
		  " to 'RestartContainer' for non-sidecar initContainers\n"
		  "spec.initContainers[2].startupProbe: Required value: must specify a handler type" },
		{ POD("'ephemeralContainers':[{'name':'c','image':'i','ports':[{'containerPort':1}],"
		      "'targetContainerName':'x',"
		      "'resources':{'limits':{'cpu':'1'}}}]," ONE),
		  "spec.ephemeralContainers[0].name: Duplicate value: 'c'\n"
		  "spec.ephemeralContainers[0].targetContainerName: Not found: 'x'\n"
		  "spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container\n"
		  "spec.ephemeralContainers[0].resources: Forbidden: cannot be set for an Ephemeral Container\n"
		  "spec.ephemeralContainers: Forbidden: cannot be set on create" },
	};
	check_create_rows(t, ARRAY_LEN(t));
}

TEST(validate_pod_env)
{
	static const struct create_row t[] = {
		{ POD(C(",'env':[{},{'name':'a=b'},{'name':'A','value':'x',"
			"'valueFrom':{'fieldRef':{'fieldPath':'metadata.name'}}},"
		      "{'name':'B','valueFrom':{}}]")),
		  "spec.containers[0].env[0].name: Required value\n"
		  "spec.containers[0].env[1].name: Invalid value: 'a=b': a valid environment variable name must consist"
		  " only of printable ASCII characters other than '='\n"
		  "spec.containers[0].env[2].valueFrom: Invalid value: '': may not be specified when `value` is not empty\n"
		  "spec.containers[0].env[3].valueFrom: Invalid value: '': must specify one of: `fieldRef`,"
		  " `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`" },
		{ POD(C(",'env':[{'name':'A','valueFrom':{'fieldRef':{}}},{'name':'B',"
			"'valueFrom':{'fieldRef':{'fieldPath':'spec.foo'}}},"
		      "{'name':'C','valueFrom':{'fieldRef':{'fieldPath':'metadata.labels'}}},{'name':'D',"
		      "'valueFrom':{'fieldRef':{'fieldPath':'metadata.name',"
		      "'apiVersion':'v2'}}}]")),
		  "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Required value\n"
		  "spec.containers[0].env[1].valueFrom.fieldRef.fieldPath: Invalid value: 'spec.foo': error converting"
		  " fieldPath: field label not supported: spec.foo\n"
		  "spec.containers[0].env[2].valueFrom.fieldRef.fieldPath: Unsupported value: 'metadata.labels': supported"
		  " values: 'metadata.name', 'metadata.namespace', 'metadata.uid', 'spec.nodeName',"
		  " 'spec.serviceAccountName', 'status.hostIP', 'status.hostIPs', 'status.podIP', 'status.podIPs'\n"
		  "spec.containers[0].env[3].valueFrom.fieldRef.fieldPath: Invalid value: 'metadata.name': error converting"
		  " fieldPath: unsupported pod version: v2" },
		{ POD(C(",'env':[{'name':'A','valueFrom':{'resourceFieldRef':{}}},{'name':'B',"
			"'valueFrom':{'resourceFieldRef':{'resource':'limits.foo'}}},"
		      "{'name':'C','valueFrom':{'resourceFieldRef':{'resource':'limits.cpu','divisor':'1k'}}},"
		      "{'name':'D','valueFrom':{'resourceFieldRef':{'resource':'limits.memory','divisor':'2'}}},"
		      "{'name':'E','valueFrom':{'resourceFieldRef':{'resource':'limits.hugepages-2Mi','divisor':'1m'}}}]")),
		  "spec.containers[0].env[0].valueFrom.resourceFieldRef.resource: Required value\n"
		  "spec.containers[0].env[1].valueFrom.resourceFieldRef.resource: Unsupported value: 'limits.foo':"
		  " supported values: 'limits.cpu', 'limits.ephemeral-storage', 'limits.memory', 'requests.cpu',"
		  " 'requests.ephemeral-storage', 'requests.memory'\n"
		  "spec.containers[0].env[2].valueFrom.resourceFieldRef.divisor: Invalid value: 'limits.cpu': only"
		  " divisor's values 1m and 1 are supported with the cpu resource\n"
		  "spec.containers[0].env[3].valueFrom.resourceFieldRef.divisor: Invalid value: 'limits.memory': only"
		  " divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the memory"
		  " resource\n"
		  "spec.containers[0].env[4].valueFrom.resourceFieldRef.divisor: Invalid value: 'limits.hugepages-2Mi':"
		  " only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the"
		  " hugepages resource" },
		{ POD(C(",'env':[{'name':'A','valueFrom':{'configMapKeyRef':{'name':'a'}}},{'name':'B',"
			"'valueFrom':{'secretKeyRef':{'name':'a',"
		      "'key':'..'}}},{'name':'C','valueFrom':{'fileKeyRef':{}}},{'name':'D',"
		      "'valueFrom':{'fileKeyRef':{'volumeName':'v',"
		      "'path':'a/../b','key':'K'}}}]") ",'volumes':[{'name':'v','hostPath':{'path':'/'}}]"),
		  "spec.containers[0].env[0].valueFrom.configMapKeyRef.key: Required value\n"
		  "spec.containers[0].env[1].valueFrom.secretKeyRef.key: Invalid value: '..': must not be '..'\n"
		  "spec.containers[0].env[2].valueFrom.fileKeyRef.key: Required value\n"
		  "spec.containers[0].env[2].valueFrom.fileKeyRef.volumeName: Required value\n"
		  "spec.containers[0].env[2].valueFrom.fileKeyRef.path: Required value\n"
		  "spec.containers[0].env[3].valueFrom.fileKeyRef.path: Invalid value: 'a/../b': must not contain '..'\n"
		  "spec.containers[0].env[2].valueFrom.fileKeyRef.volumeName: Not found: ''\n"
		  "spec.containers[0].env[3].valueFrom.fileKeyRef.volumeName: Invalid value: 'v': referenced volume must be"
		  " of type emptyDir" },
		{ POD(C(",'envFrom':[{},{'configMapRef':{},'secretRef':{'name':'a'}},{'prefix':'a=',"
			"'secretRef':{'name':'-x'}}]")),
		  "spec.containers[0].envFrom: Invalid value: '': must specify one of: `configMapRef` or `secretRef`\n"
		  "spec.containers[0].envFrom[1].configMapRef.name: Required value\n"
		  "spec.containers[0].envFrom: Invalid value: '': may not have more than one field specified at a time\n"
		  "spec.containers[0].envFrom[2].prefix: Invalid value: 'a=': a valid environment variable name must"
		  " consist only of printable ASCII characters other than '='\n"
		  "spec.containers[0].envFrom[2].secretRef.name: Invalid value: '-x': " SUBDOMAIN_TEXT },
	};
	check_create_rows(t, ARRAY_LEN(t));
}

TEST(validate_pod_probes)
{
	static const struct create_row t[] = {
		{ POD(C(",'livenessProbe':{},'readinessProbe':{'exec':{},'tcpSocket':{'port':1},"
			"'terminationGracePeriodSeconds':1},"
		      "'startupProbe':{'grpc':{'port':0},'successThreshold':2,'periodSeconds':-1,"
		      "'terminationGracePeriodSeconds':0}")),
		  "spec.containers[0].livenessProbe: Required value: must specify a handler type\n"
		  "spec.containers[0].readinessProbe.exec.command: Required value\n"
		  "spec.containers[0].readinessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type\n"
		  "spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 1: must not be set for"
		  " readinessProbes\n"
		  "spec.containers[0].startupProbe.grpc.port: Invalid value: 0: must be between 1 and 65535, inclusive\n"
		  "spec.containers[0].startupProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0\n"
		  "spec.containers[0].startupProbe.terminationGracePeriodSeconds: Invalid value: 0: must be greater"
		  " than 0\n"
		  "spec.containers[0].startupProbe.successThreshold: Invalid value: 2: must be 1" },
		{ POD(C(",'livenessProbe':{'httpGet':{'port':'','scheme':'FTP','httpHeaders':[{'name':'a b'}]}},"
		      "'readinessProbe':{'tcpSocket':{'port':70000}}")),
		  "spec.containers[0].livenessProbe.httpGet.port: Invalid value: '': must contain only alpha-numeric"
		  " characters (a-z, 0-9), and hyphens (-)\n"
		  "spec.containers[0].livenessProbe.httpGet.port: Invalid value: '': must contain at least one letter"
		  " (a-z)\n"
		  "spec.containers[0].livenessProbe.httpGet.scheme: Unsupported value: 'FTP': supported values: 'HTTP',"
		  " 'HTTPS'\n"
		  "spec.containers[0].livenessProbe.httpGet.httpHeaders: Invalid value: 'a b': a valid HTTP header must"
		  " consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is"
		  " '[-A-Za-z0-9]+')\n"
		  "spec.containers[0].readinessProbe.tcpSocket.port: Invalid value: 70000: must be between 1 and 65535,"
		  " inclusive" },
		{ POD(C(",'lifecycle':{'postStart':{},'preStop':{'sleep':{'seconds':60},'exec':{'command':['x']}}}")),
		  "spec.containers[0].lifecycle.postStart: Required value: must specify a handler type\n"
		  "spec.containers[0].lifecycle.preStop.sleep: Forbidden: may not specify more than 1 handler type" },
		{ POD(C(",'lifecycle':{'preStop':{'sleep':{'seconds':60}}}")),
		  "spec.containers[0].lifecycle.preStop.sleep: Invalid value: 60: must be non-negative and less than"
		  " terminationGracePeriodSeconds (30)" },
	};
	check_create_rows(t, ARRAY_LEN(t));
}

TEST(validate_pod_volumes)
{
	static const struct create_row t[] = {
		{ POD(VOLUME("'emptyDir':{'sizeLimit':'-1'},'hostPath':{}")),
		  "spec.volumes[0].emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity\n"
		  "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type" },
		{ POD(ONE ",'volumes':[{},{'name':'A'},{'name':'v','hostPath':{'path':'/a/../b','type':'Foo'}},"
		      "{'name':'w'},{'name':'w'}]"),
		  "spec.volumes[0].name: Required value\n"
		  "spec.volumes[1].name: Invalid value: 'A': " LABEL_TEXT "\n"
		  "spec.volumes[2].hostPath.path: Invalid value: '/a/../b': must not contain '..'\n"
		  "spec.volumes[2].hostPath.type: Unsupported value: 'Foo': supported values: '', 'BlockDevice',"
		  " 'CharDevice', 'Directory', 'DirectoryOrCreate', 'File', 'FileOrCreate', 'Socket'\n"
		  "spec.volumes[4].name: Duplicate value: 'w'" },
		{ POD(VOLUME("'gcePersistentDisk':{'partition':300}")),
		  "spec.volumes[0].persistentDisk.pdName: Required value\n"
		  "spec.volumes[0].persistentDisk.partition: Invalid value: 300: must be between 1 and 255, inclusive" },
		{ POD(VOLUME("'gitRepo':{'directory':'/a'}")),
		  "spec.volumes[0].gitRepo.repository: Required value\n"
		  "spec.volumes[0].gitRepo.directory: Invalid value: '/a': must be a relative path" },
		{ POD(VOLUME("'iscsi':{'iqn':'foo','lun':300,'chapAuthSession':true,'initiatorName':'iqn.x'}")),
		  "spec.volumes[0].iscsi.targetPortal: Required value\n"
		  "spec.volumes[0].iscsi.iqn: Invalid value: 'foo': must be valid format starting with iqn, eui, or naa\n"
		  "spec.volumes[0].iscsi.lun: Invalid value: 300: must be between 0 and 255, inclusive\n"
		  "spec.volumes[0].iscsi.secretRef: Required value\n"
		  "spec.volumes[0].iscsi.initiatorname: Invalid value: 'iqn.x': must be valid format" },
		{ POD(VOLUME("'nfs':{'path':'a'}")),
		  "spec.volumes[0].nfs.server: Required value\n"
		  "spec.volumes[0].nfs.path: Invalid value: 'a': must be an absolute path" },
		{ POD(VOLUME("'quobyte':{'registry':'a:1,b'}")),
		  "spec.volumes[0].quobyte.registry: Invalid value: 'a:1,b': must be a host:port pair or multiple pairs"
		  " separated by commas\n"
		  "spec.volumes[0].quobyte.volume: Required value" },
		{ POD(VOLUME("'fc':{}")),
		  "spec.volumes[0].fc.targetWWNs: Required value: must specify either targetWWNs or wwids, but not both" },
		{ POD(VOLUME("'fc':{'targetWWNs':['a'],'wwids':['b']}")),
		  "spec.volumes[0].fc.targetWWNs: Invalid value: ['a']: targetWWNs and wwids can not be specified"
		  " simultaneously\n"
		  "spec.volumes[0].fc.lun: Required value: lun is required if targetWWNs is specified" },
		{ POD(VOLUME("'flocker':{'datasetName':'a/b','datasetUUID':'c'}")),
		  "spec.volumes[0].flocker: Invalid value: 'resource': datasetName and datasetUUID can not be specified"
		  " simultaneously\n"
		  "spec.volumes[0].flocker.datasetName: Invalid value: 'a/b': must not contain '/'" },
		{ POD(VOLUME("'flexVolume':{'options':{'a.k8s.io/b':'c'}}")),
		  "spec.volumes[0].flexVolume.driver: Required value\n"
		  "spec.volumes[0].flexVolume.options[a.k8s.io/b]: Invalid value: 'a.k8s.io/b': kubernetes.io and k8s.io"
		  " namespaces are reserved" },
		{ POD(VOLUME("'azureDisk':{'kind':'Managed','cachingMode':'x'}")),
		  "spec.volumes[0].azureDisk.diskName: Required value\n"
		  "spec.volumes[0].azureDisk.diskURI: Required value\n"
		  "spec.volumes[0].azureDisk.cachingMode: Unsupported value: 'x': supported values: 'None', 'ReadOnly',"
		  " 'ReadWrite'\n"
		  "spec.volumes[0].azureDisk.diskURI: Unsupported value: '': supported values:"
		  " '/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}'" },
		{ POD(VOLUME("'storageos':{'volumeName':'A','secretRef':{}}")),
		  "spec.volumes[0].storageos.volumeName: Invalid value: 'A': " LABEL_TEXT "\n"
		  "spec.volumes[0].storageos.secretRef.name: Required value" },
		{ POD(VOLUME("'rbd':{}")),
		  "spec.volumes[0].rbd.monitors: Required value\n"
		  "spec.volumes[0].rbd.image: Required value" },
		{ POD(VOLUME("'scaleIO':{}")),
		  "spec.volumes[0].scaleIO.gateway: Required value\n"
		  "spec.volumes[0].scaleIO.system: Required value\n"
		  "spec.volumes[0].scaleIO.volumeName: Required value" },
		{ POD(VOLUME("'csi':{'driver':'A_b','nodePublishSecretRef':{}}")),
		  "spec.volumes[0].csi.driver: Invalid value: 'A_b': " SUBDOMAIN_TEXT "\n"
		  "spec.volumes[0].csi.nodePublishSecretRef.name: Required value" },
		{ POD(VOLUME("'image':{'pullPolicy':'x'}")),
		  "spec.volumes[0].image.reference: Required value\n"
		  "spec.volumes[0].image.pullPolicy: Unsupported value: 'x': supported values: 'Always', 'IfNotPresent',"
		  " 'Never'" },
		{ POD(VOLUME("'secret':{'defaultMode':512,'items':[{},{'key':'a','path':'..b','mode':-1}]}")),
		  "spec.volumes[0].secret.secretName: Required value\n"
		  "spec.volumes[0].secret.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal),"
		  " both inclusive\n"
		  "spec.volumes[0].secret.items[0].key: Required value\n"
		  "spec.volumes[0].secret.items[0].path: Required value\n"
		  "spec.volumes[0].secret.items[1].path: Invalid value: '..b': must not start with '..'\n"
		  "spec.volumes[0].secret.items[1].mode: Invalid value: -1: must be a number between 0 and 0777 (octal),"
		  " both inclusive" },
		{ POD(VOLUME("'configMap':{'items':[{'key':'a','path':'../b'}]}")),
		  "spec.volumes[0].configMap.name: Required value\n"
		  "spec.volumes[0].configMap.items[0].path: Invalid value: '../b': must not contain '..'" },
		{ POD(VOLUME("'downwardAPI':{'items':[{},{'path':'a','fieldRef':{'fieldPath':'spec.nodeName'},"
		      "'resourceFieldRef':{}},{'path':'b','resourceFieldRef':{'resource':'limits.cpu'}}]}")),
		  "spec.volumes[0].downwardAPI.path: Required value\n"
		  "spec.volumes[0].downwardAPI: Required value: one of fieldRef and resourceFieldRef is required\n"
		  "spec.volumes[0].downwardAPI.fieldRef.fieldPath: Unsupported value: 'spec.nodeName': supported values:"
		  " 'metadata.annotations', 'metadata.labels', 'metadata.name', 'metadata.namespace', 'metadata.uid'\n"
		  "spec.volumes[0].downwardAPI: Invalid value: 'resource': fieldRef and resourceFieldRef can not be"
		  " specified simultaneously\n"
		  "spec.volumes[0].downwardAPI.resourceFieldRef.containerName: Required value" },
		{ POD(VOLUME("'projected':{'sources':[{'secret':{'items':[{'key':'a','path':'p'}]},'configMap':{'name':'m',"
		      "'items':[{'key':'a','path':'p'}]}},{'serviceAccountToken':{'expirationSeconds':5}}]}")),
		  "spec.volumes[0].projected.sources[0].secret.name: Required value\n"
		  "spec.volumes[0].projected: Invalid value: 'm': conflicting duplicate paths\n"
		  "spec.volumes[0].projected.sources[0]: Forbidden: may not specify more than 1 volume type per source\n"
		  "spec.volumes[0].projected.sources[1].serviceAccountToken.expirationSeconds: Invalid value: 5: may not"
		  " specify a duration less than 10 minutes\n"
		  "spec.volumes[0].projected.path: Required value\n"
		  "spec.volumes[0].projected.sources[1].serviceAccountToken: Forbidden: must not be specified when"
		  " serviceAccountName is not set" },
		{ POD(VOLUME("'ephemeral':{}")),
		  "spec.volumes[0].ephemeral.volumeClaimTemplate: Required value" },
		{ POD(VOLUME("'ephemeral':{'volumeClaimTemplate':{'metadata':{'name':'x'},"
			     "'spec':{'accessModes':['ReadWriteOnce',"
		      "'ReadWriteOncePod','Foo'],'volumeMode':'Foo','storageClassName':'A',"
		      "'resources':{'requests':{'storage':'0'}},"
		      "'dataSource':{'kind':'A','name':'b'},'dataSourceRef':{'kind':'PersistentVolumeClaim'}}}}")),
		  "spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.name: Forbidden: cannot be set\n"
		  "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes: Unsupported value: 'Foo': supported"
		  " values: 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod'\n"
		  "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes: Forbidden: may not use ReadWriteOncePod"
		  " with other access modes\n"
		  "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources[storage]: Invalid value: '0': must be"
		  " greater than zero\n"
		  "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.storageClassName: Invalid value: 'A': " SUBDOMAIN_TEXT
		  "\n"
		  "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.volumeMode: Unsupported value: 'Foo': supported"
		  " values: 'Block', 'Filesystem'\n"
		  "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.dataSource: Invalid value: 'A': must be"
		  " 'PersistentVolumeClaim' when referencing the default apiGroup\n"
		  "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.dataSourceRef.name: Required value\n"
		  "spec.volumes[0].ephemeral.volumeClaimTemplate.spec: Invalid value: {}: must match dataSourceRef" },
		{ POD(VOLUME("'ephemeral':{'volumeClaimTemplate':{'spec':{'accessModes':['ReadWriteOnce'],"
			     "'resources':{'requests':{'storage':'1'}}}}}},"
		      "{'name':'w','persistentVolumeClaim':{'claimName':'p-v'}")),
		  "spec.volumes[1].persistentVolumeClaim.claimName: Invalid value: 'p-v': must not reference a PVC that"
		  " gets created for an ephemeral volume" },
	};
	check_create_rows(t, ARRAY_LEN(t));
}

TEST(validate_pod_resources)
{
	static const struct create_row t[] = {
		{ POD(C(",'resources':{'limits':{'cpu':'-1','memory':'1','foo':'1','example.com/gpu':'1500m',"
		      "'requests.example.com/x':'1'}}")),
		  "spec.containers[0].resources.limits[cpu]: Invalid value: '-1': must be greater than or equal to 0\n"
		  "spec.containers[0].resources.limits[example.com/gpu]: Invalid value: '1500m': must be an integer\n"
		  "spec.containers[0].resources.limits[foo]: Invalid value: 'foo': must be a standard resource type or"
		  " fully qualified\n"
		  "spec.containers[0].resources.limits[foo]: Invalid value: 'foo': must be a standard resource for"
		  " containers\n"
		  "spec.containers[0].resources.limits[requests.example.com/x]: Invalid value: 'requests.example.com/x':"
		  " doesn't follow extended resource name standard\n"
		  "spec.containers[0].resources.requests[cpu]: Invalid value: '-1': must be greater than or equal to 0\n"
		  "spec.containers[0].resources.requests[example.com/gpu]: Invalid value: '1500m': must be an integer\n"
		  "spec.containers[0].resources.requests[foo]: Invalid value: 'foo': must be a standard resource type or"
		  " fully qualified\n"
		  "spec.containers[0].resources.requests[foo]: Invalid value: 'foo': must be a standard resource for"
		  " containers\n"
		  "spec.containers[0].resources.requests[requests.example.com/x]: Invalid value: 'requests.example.com/x':"
		  " doesn't follow extended resource name standard" },
		{ POD(C(",'resources':{'limits':{'cpu':'1','example.com/gpu':'2'},'requests':{'cpu':'2',"
			"'example.com/gpu':'1',"
		      "'example.com/b':'1'}}")),
		  "spec.containers[0].resources.requests: Invalid value: '2': must be less than or equal to cpu limit"
		  " of 1\n"
		  "spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable"
		  " resources\n"
		  "spec.containers[0].resources.requests: Invalid value: '1': must be equal to example.com/gpu limit"
		  " of 2" },
		{ POD(C(",'resources':{'limits':{'hugepages-2Mi':'3Mi'}}")),
		  "spec.containers[0].resources.limits[hugepages-2Mi]: Invalid value: '3Mi': 3Mi is not positive integer"
		  " multiple of hugepages-2Mi\n"
		  "spec.containers[0].resources.requests[hugepages-2Mi]: Invalid value: '3Mi': 3Mi is not positive integer"
		  " multiple of hugepages-2Mi\n"
		  "spec.containers[0].resources: Forbidden: HugePages require cpu or memory" },
		{ POD(C(",'resources':{'claims':[{},{'name':'a'},{'name':'a'},{'name':'b','request':'R'},{'name':'b'}]}") ","
		      "'resourceClaims':[{'name':'b','resourceClaimName':'x'},{'name':'c'},{'name':'c',"
		      "'resourceClaimName':'x',"
		      "'resourceClaimTemplateName':'Y'},{}]"),
		  "spec.resourceClaims[1]: Invalid value: {'Name':'c','ResourceClaimName':null,"
		  "'ResourceClaimTemplateName':n"
		  "ull}: must specify one of: `resourceClaimName`, `resourceClaimTemplateName`\n"
		  "spec.resourceClaims[2].name: Duplicate value: 'c'\n"
		  "spec.resourceClaims[2]: Invalid value: {'Name':'c','ResourceClaimName':'x',"
		  "'ResourceClaimTemplateName':'Y"
		  "'}: at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified\n"
		  "spec.resourceClaims[2].resourceClaimTemplateName: Invalid value: 'Y': " SUBDOMAIN_TEXT "\n"
		  "spec.resourceClaims[3].name: Required value\n"
		  "spec.resourceClaims[3]: Invalid value: {'Name':'','ResourceClaimName':null,"
		  "'ResourceClaimTemplateName':nu"
		  "ll}: must specify one of: `resourceClaimName`, `resourceClaimTemplateName`\n"
		  "spec.containers[0].resources.claims[0]: Required value\n"
		  "spec.containers[0].resources.claims[1]: Not found: 'a': must be one of the names in"
		  " pod.spec.resourceClaims: b, c\n"
		  "spec.containers[0].resources.claims[2]: Duplicate value: 'a'\n"
		  "spec.containers[0].resources.claims[2]: Not found: 'a': must be one of the names in"
		  " pod.spec.resourceClaims: b, c\n"
		  "spec.containers[0].resources.claims[3].request: Invalid value: 'R': " LABEL_TEXT "\n"
		  "spec.containers[0].resources.claims[4]: Duplicate value: 'b'" },
		{ POD("'resources':{'requests':{'cpu':'1','foo':'1'},'limits':{'memory':'1Mi','hugepages-2Mi':'2Mi'},"
		      "'claims':[{'name':'a'}]}," C(",'resources':{'requests':{'cpu':'2'},'limits':{'memory':'2Mi',"
		      "'hugepages-2Mi':'4Mi'}}")),
		  "spec.resources.claims: Forbidden: claims may not be set for Resources at pod-level\n"
		  "spec.resources.requests[foo]: Invalid value: 'foo': must be a standard resource type or fully"
		  " qualified\n"
		  "spec.resources.requests: Invalid value: '2Mi': must be less than or equal to memory limit of 1Mi\n"
		  "spec.resources.claims[0]: Not found: 'a': must be one of the names in pod.spec.resourceClaims which is"
		  " empty\n"
		  "spec.resources.requests[cpu]: Invalid value: '1': must be greater than or equal to aggregate container"
		  " requests of 2\n"
		  "spec.resources.requests[hugepages-2Mi]: Invalid value: '2Mi': must be greater than or equal to aggregate"
		  " container requests of 4Mi\n"
		  "spec.resources.limits[hugepages-2Mi]: Invalid value: '2Mi': must be greater than or equal to aggregate"
		  " container limits of 4Mi\n"
		  "spec.resources.containers[0][hugepages-2Mi].limits: Invalid value: '4Mi': must be less than or equal to"
		  " pod limits of 2Mi\n"
		  "spec.resources.containers[0][memory].limits: Invalid value: '2Mi': must be less than or equal to pod"
		  " limits of 1Mi" },
		{ POD("'overhead':{'cpu':'-1','x':'1'}," ONE),
		  "spec.overhead.limits[cpu]: Invalid value: '-1': must be greater than or equal to 0\n"
		  "spec.overhead.limits[x]: Invalid value: 'x': must be a standard resource type or fully qualified\n"
		  "spec.overhead.limits[x]: Invalid value: 'x': must be a standard resource for containers" },
	};
	check_create_rows(t, ARRAY_LEN(t));
}

TEST(validate_pod_security)
{
	static const struct create_row t[] = {
		{ POD(C(",'securityContext':{'runAsUser':-1,'runAsGroup':3000000000,'procMount':'Foo','seccompProfile':{},"
		      "'appArmorProfile':{'type':'Localhost'},'allowPrivilegeEscalation':false,'privileged':true,"
		      "'capabilities':{'add':['CAP_SYS_ADMIN']}}")),
		  "spec.containers[0].securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647,"
		  " inclusive\n"
		  "spec.containers[0].securityContext.runAsGroup: Invalid value: 3000000000: must be between 0 and"
		  " 2147483647, inclusive\n"
		  "spec.containers[0].securityContext.procMount: Unsupported value: 'Foo': supported values: 'Default',"
		  " 'Unmasked'\n"
		  "spec.containers[0].securityContext.seccompProfile.type: Required value: type is required when"
		  " seccompProfile is set\n"
		  "spec.containers[0].securityContext: Invalid value:"
		  " {'Capabilities':{'Add':['CAP_SYS_ADMIN'],'Drop':null},'Privileged':true,'SELinuxOptions':null,"
		  "'WindowsOp"
		  "tions':null,'RunAsUser':-1,'RunAsGroup':3000000000,'RunAsNonRoot':null,"
		  "'ReadOnlyRootFilesystem':null,'All"
		  "owPrivilegeEscalation':false,'ProcMount':'Foo','SeccompProfile':{'Type':'',"
		  "'LocalhostProfile':null},'AppA"
		  "rmorProfile':{'Type':'Localhost','LocalhostProfile':null}}: cannot set `allowPrivilegeEscalation` to"
		  " false and `privileged` to true\n"
		  "spec.containers[0].securityContext: Invalid value:"
		  " {'Capabilities':{'Add':['CAP_SYS_ADMIN'],'Drop':null},'Privileged':true,'SELinuxOptions':null,"
		  "'WindowsOp"
		  "tions':null,'RunAsUser':-1,'RunAsGroup':3000000000,'RunAsNonRoot':null,"
		  "'ReadOnlyRootFilesystem':null,'All"
		  "owPrivilegeEscalation':false,'ProcMount':'Foo','SeccompProfile':{'Type':'',"
		  "'LocalhostProfile':null},'AppA"
		  "rmorProfile':{'Type':'Localhost','LocalhostProfile':null}}: cannot set `allowPrivilegeEscalation` to"
		  " false and `capabilities.Add` CAP_SYS_ADMIN\n"
		  "spec.containers[0].securityContext.appArmorProfile.localhostProfile: Required value: must be set when"
		  " AppArmor type is Localhost" },
		{ POD(C(",'securityContext':{'procMount':'Unmasked','seccompProfile':{'type':'RuntimeDefault',"
		      "'localhostProfile':'x'},'appArmorProfile':{'type':'Unconfined','localhostProfile':'x'}}")),
		  "spec.containers[0].securityContext.procMount: Invalid value: 'Unmasked': `hostUsers` must be false to"
		  " use `Unmasked`\n"
		  "spec.containers[0].securityContext.seccompProfile.localhostProfile: Invalid value:"
		  " {'Type':'RuntimeDefault','LocalhostProfile':'x'}: can only be set when seccomp type is Localhost\n"
		  "spec.containers[0].securityContext.appArmorProfile.localhostProfile: Invalid value: 'x': can only be set"
		  " when AppArmor type is Localhost" },
		{ POD("'hostPID':true,'shareProcessNamespace':true,'securityContext':{'fsGroup':-1,'supplementalGroups':[1,"
		      "-1],'sysctls':[{},{'name':'a..b'},{'name':'net.a'},{'name':'net.a'},{'name':'kernel.sem'}],"
		      "'fsGroupChangePolicy':'x','supplementalGroupsPolicy':'x','seLinuxChangePolicy':'MountOption',"
		      "'seccompProfile':{'type':'Localhost','localhostProfile':'../x'},'appArmorProfile':{'type':'x'}},"
		      "'hostNetwork':true," ONE),
		  "spec.securityContext.fsGroup: Invalid value: -1: must be between 0 and 2147483647, inclusive\n"
		  "spec.securityContext.supplementalGroups[1]: Invalid value: -1: must be between 0 and 2147483647,"
		  " inclusive\n"
		  "spec.securityContext.shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID"
		  " cannot both be enabled\n"
		  "spec.securityContext.sysctls[0].name: Required value\n"
		  "spec.securityContext.sysctls[1].name: Invalid value: 'a..b': must have at most 253 characters and match"
		  " regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$\n"
		  "spec.securityContext.sysctls[2].name: Invalid value: 'net.a': may not be specified when 'hostNetwork' is"
		  " true\n"
		  "spec.securityContext.sysctls[3].name: Duplicate value: 'net.a'\n"
		  "spec.securityContext.sysctls[3].name: Invalid value: 'net.a': may not be specified when 'hostNetwork' is"
		  " true\n"
		  "spec.securityContext.fsGroupChangePolicy: Unsupported value: 'x': supported values: 'Always',"
		  " 'OnRootMismatch'\n"
		  "spec.securityContext.seccompProfile.localhostProfile: Invalid value: '../x': must not contain '..'\n"
		  "spec.securityContext.appArmorProfile.type: Unsupported value: 'x': supported values: 'Localhost',"
		  " 'RuntimeDefault', 'Unconfined'\n"
		  "spec.securityContext.supplementalGroupsPolicy: Unsupported value: 'x': supported values: 'Merge',"
		  " 'Strict'\n"
		  "spec.securityContext.seLinuxChangePolicy: Unsupported value: 'MountOption': supported values:"
		  " 'Recursive'" },
		{ POD("'hostUsers':false,'hostNetwork':true,'hostPID':true,'hostIPC':true," ONE),
		  "spec.hostNetwork: Forbidden: when `hostUsers` is false\n"
		  "spec.HostPID: Forbidden: when `hostUsers` is false\n"
		  "spec.HostIPC: Forbidden: when `hostUsers` is false" },
		{ POD("'os':{'name':'windows'},'hostPID':true,'securityContext':{'runAsUser':1,"
		      "'windowsOptions':{'runAsUserName':'a\\\\b\\\\c'}},"
		      "" C(",'securityContext':{'privileged':true}")),
		  "spec.securityContext.windowsOptions.runAsUserName: Invalid value: 'a\\\\b\\\\c': runAsUserName cannot"
		  " contain more than one backslash\n"
		  "spec.hostPID: Forbidden: cannot be set for a windows pod\n"
		  "spec.securityContext.runAsUser: Forbidden: cannot be set for a windows pod\n"
		  "spec.containers[0].securityContext.privileged: Forbidden: cannot be set for a windows pod" },
		{ POD("'os':{'name':'linux'},'securityContext':{'windowsOptions':{'hostProcess':true,'runAsUserName':'',"
		      "'gmsaCredentialSpec':''}}," C(",'securityContext':{'windowsOptions':{'hostProcess':false,"
		      "'runAsUserName':'a b.\\\\..'}}")),
		  "spec.containers[0].securityContext.windowsOptions.runAsUserName: Invalid value: 'a b.\\\\..':"
		  " runAsUserName's User cannot contain only periods or spaces\n"
		  "spec.securityContext.windowsOptions.gmsaCredentialSpec: Invalid value: '': gmsaCredentialSpec cannot be"
		  " an empty string\n"
		  "spec.securityContext.windowsOptions.runAsUserName: Invalid value: '': runAsUserName cannot be an empty"
		  " string\n"
		  "spec.containers[0].securityContext.windowsOptions.hostProcess: Invalid value: false: pod hostProcess"
		  " value must be identical if both are specified, was true\n"
		  "spec.securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod\n"
		  "spec.containers[0].securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux"
		  " pod" },
		{ POD("'os':{'name':'x'}," ONE),
		  "spec.os: Unsupported value: 'x': supported values: 'linux', 'windows'" },
		{ POD_WITH(",'annotations':{'seccomp.security.alpha.kubernetes.io/pod':'foo',"
			   "'container.apparmor.security.beta.kubernetes.io/x':'foo',"
		      "'container.apparmor.security.beta.kubernetes.io/c':'unconfined',"
		      "'controller.kubernetes.io/pod-deletion-cost':'+1',"
		      "'kubernetes.io/config.mirror':'x'}",
		      C(",'securityContext':{'appArmorProfile':{'type':'RuntimeDefault'}}")),
		  "metadata.annotations[kubernetes.io/config.mirror]: Invalid value: 'x': must set spec.nodeName if mirror"
		  " pod annotation is set\n"
		  "metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: '+1': must be a 32bit"
		  " integer\n"
		  "metadata.annotations.seccomp.security.alpha.kubernetes.io/pod: Invalid value: 'foo': must be a valid"
		  " seccomp profile\n"
		  "metadata.annotations[container.apparmor.security.beta.kubernetes.io/x]: Invalid value: 'x': container"
		  " not found\n"
		  "metadata.annotations[container.apparmor.security.beta.kubernetes.io/x]: Invalid value: 'foo': invalid"
		  " AppArmor profile name: 'foo'\n"
		  "spec.containers[0].securityContext.appArmorProfile.type: Forbidden: apparmor type in annotation and"
		  " field must match" },
	};
	check_create_rows(t, ARRAY_LEN(t));
}

TEST(validate_pod_scheduling)
{
	static const struct create_row t[] = {
		{ POD("'nodeSelector':{'-a':'-b'},'nodeName':'A','schedulingGates':[{'name':'a'},{'name':'a'}],"
		      "'readinessGates':[{'conditionType':''}]," ONE),
		  "spec.nodeSelector: Invalid value: '-a': " NAME_PART_TEXT "\n"
		  "spec.nodeSelector: Invalid value: '-b': " VALUE_TEXT "\n"
		  "spec.readinessGates[0].conditionType: Invalid value: '': name part must be non-empty\n"
		  "spec.readinessGates[0].conditionType: Invalid value: '': " NAME_PART_TEXT "\n"
		  "spec.schedulingGates[1]: Duplicate value: 'a'\n"
		  "spec.nodeName: Invalid value: 'A': " SUBDOMAIN_TEXT "\n"
		  "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared" },
		{ POD("'tolerations':[{},{'key':'-','operator':'Exists','value':'x','effect':'Foo'},{'key':'a',"
		      "'operator':'Foo','tolerationSeconds':1},{'key':'a','operator':'Lt','value':'1'},{'key':'a',"
		      "'value':'-'}]," ONE),
		  "spec.tolerations[0].operator: Invalid value: '': operator must be Exists when `key` is empty, which"
		  " means 'match all values and all keys'\n"
		  "spec.tolerations[1].key: Invalid value: '-': " NAME_PART_TEXT "\n"
		  "spec.tolerations[1].operator: Invalid value: 'x': value must be empty when `operator` is 'Exists'\n"
		  "spec.tolerations[1].effect: Unsupported value: 'Foo': supported values: 'NoSchedule',"
		  " 'PreferNoSchedule', 'NoExecute'\n"
		  "spec.tolerations[2].effect: Invalid value: '': effect must be 'NoExecute' when `tolerationSeconds` is"
		  " set\n"
		  "spec.tolerations[2].operator: Unsupported value: 'Foo': supported values: 'Equal', 'Exists'\n"
		  "spec.tolerations[3].operator: Unsupported value: 'Lt': supported values: 'Equal', 'Exists', 'Lt', 'Gt'\n"
		  "spec.tolerations[4].operator: Invalid value: '-': " VALUE_TEXT },
		{ POD("'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[]},"
		      "'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':0,"
		      "'preference':{'matchExpressions':[{'key':'a',"
		      "'operator':'In'},{'key':'a','operator':'Exists','values':['x']},{'key':'a','operator':'Gt'},"
		      "{'key':'','operator':'Foo'}],'matchFields':[{'key':'x','operator':'Gt'},{'key':'metadata.name',"
		      "'operator':'In','values':['A','b']}]}}]}}," ONE),
		  "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required"
		  " value: must have at least one node selector term\n"
		  "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 0:"
		  " must be in the range 1-100\n"
		  "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions"
		  "[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'\n"
		  "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions"
		  "[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'\n"
		  "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions"
		  "[2].values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'\n"
		  "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions"
		  "[3].operator: Invalid value: 'Foo': not a valid selector operator\n"
		  "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions"
		  "[3].key: Invalid value: '': name part must be non-empty\n"
		  "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions"
		  "[3].key: Invalid value: '': " NAME_PART_TEXT "\n"
		  "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchFields[0].o"
		  "perator: Invalid value: 'Gt': not a valid selector operator\n"
		  "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchFields[0].k"
		  "ey: Invalid value: 'x': not a valid field selector key\n"
		  "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchFields[1].v"
		  "alues: Required value: must be only one value when `operator` is 'In' or 'NotIn' for node field"
		  " selector\n"
		  "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchFields[1].v"
		  "alues[0]: Invalid value: 'A': " SUBDOMAIN_TEXT },
		{ POD("'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{'labelSelector':{'matchExpressions':[{'key':'a',"
		      "'operator':'In'}]},'namespaces':['A'],'matchLabelKeys':['a','b'],'mismatchLabelKeys':['b']}],"
		      "'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':101,"
		      "'podAffinityTerm':{'topologyKey':'a',"
		      "'matchLabelKeys':['a']}}]}}," ONE),
		  "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector.matchExpression"
		  "s[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'\n"
		  "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespace: Invalid value:"
		  " 'A': " LABEL_TEXT "\n"
		  "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].matchLabelKeys[1]: Invalid"
		  " value: 'b': exists in both matchLabelKeys and mismatchLabelKeys\n"
		  "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Required value:"
		  " can not be empty\n"
		  "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Invalid value:"
		  " '': name part must be non-empty\n"
		  "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Invalid value:"
		  " '': " NAME_PART_TEXT "\n"
		  "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 101:"
		  " must be in the range 1-100\n"
		  "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.matchLabelKe"
		  "ys: Forbidden: must not be specified when labelSelector is not set" },
		{ POD("'topologySpreadConstraints':[{},{'maxSkew':1,'topologyKey':'a','whenUnsatisfiable':'ScheduleAnyway',"
		      "'minDomains':0,'nodeAffinityPolicy':'x','matchLabelKeys':['a']},{'maxSkew':1,'topologyKey':'a',"
		      "'whenUnsatisfiable':'ScheduleAnyway'}]," ONE),
		  "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero\n"
		  "spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty\n"
		  "spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: '': supported values:"
		  " 'DoNotSchedule', 'ScheduleAnyway'\n"
		  "spec.topologySpreadConstraints[1].{topologyKey, whenUnsatisfiable}: Duplicate value: '{a,"
		  " ScheduleAnyway}'\n"
		  "spec.topologySpreadConstraints[1].minDomains: Invalid value: 0: must be greater than zero\n"
		  "spec.topologySpreadConstraints[1].minDomains: Invalid value: 0: can only use minDomains if"
		  " whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway\n"
		  "spec.topologySpreadConstraints[1].nodeAffinityPolicy: Unsupported value: 'x': supported values: 'Honor',"
		  " 'Ignore'\n"
		  "spec.topologySpreadConstraints[1].matchLabelKeys: Forbidden: must not be specified when labelSelector is"
		  " not set" },
		{ POD("'dnsPolicy':'None'," ONE),
		  "spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None" },
		{ POD("'dnsPolicy':'None','dnsConfig':{}," ONE),
		  "spec.dnsConfig.nameservers: Required value: must provide at least one DNS nameserver when `dnsPolicy` is"
		  " None" },
		{ POD("'dnsPolicy':'x','dnsConfig':{'nameservers':['x','1.1.1.1','2.2.2.2','01.1.1.1'],'searches':['A',"
		      "'.','a.'],'options':[{}]},'hostAliases':[{'ip':'x','hostnames':['A']}]," ONE),
		  "spec.dnsPolicy: Unsupported value: 'x': supported values: 'ClusterFirstWithHostNet', 'ClusterFirst',"
		  " 'Default', 'None'\n"
		  "spec.dnsConfig.nameservers: Invalid value: ['x','1.1.1.1','2.2.2.2','01.1.1.1']: must not have more than"
		  " 3 nameservers\n"
		  "spec.dnsConfig.nameservers[0]: Invalid value: 'x': must be a valid IP address, (e.g. 10.9.8.7 or"
		  " 2001:db8::ffff)\n"
		  "spec.dnsConfig.nameservers[3]: Invalid value: '01.1.1.1': must not have leading 0s\n"
		  "spec.dnsConfig.searches[0]: Invalid value: 'A': a lowercase RFC 1123 subdomain must consist of lower"
		  " case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character"
		  " (e.g. 'example.com', regex used for validation is"
		  " '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')\n"
		  "spec.dnsConfig.options[0]: Required value: must not be empty\n"
		  "spec.hostAliases[0].ip: Invalid value: 'x': must be a valid IP address, (e.g. 10.9.8.7 or"
		  " 2001:db8::ffff)\n"
		  "spec.hostAliases[0].hostnames[0]: Invalid value: 'A': " SUBDOMAIN_TEXT },
		{ POD("'hostname':'A','subdomain':'A','hostnameOverride':'A','setHostnameAsFQDN':true,"
		      "'serviceAccountName':'A',"
		      "'priorityClassName':'A','runtimeClassName':'A','preemptionPolicy':'A','activeDeadlineSeconds':0,"
		      "'restartPolicy':'A'," ONE),
		  "spec.restartPolicy: Unsupported value: 'A': supported values: 'Always', 'OnFailure', 'Never'\n"
		  "spec.hostnameOverride: Forbidden: may not be specified when setHostnameAsFQDN is true\n"
		  "spec.hostnameOverride: Invalid value: 'A': " SUBDOMAIN_TEXT "\n"
		  "spec.serviceAccountName: Invalid value: 'A': " SUBDOMAIN_TEXT "\n"
		  "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive\n"
		  "spec.hostname: Invalid value: 'A': " LABEL_TEXT "\n"
		  "spec.subdomain: Invalid value: 'A': " LABEL_TEXT "\n"
		  "spec.priorityClassName: Invalid value: 'A': " SUBDOMAIN_TEXT "\n"
		  "spec.runtimeClassName: Invalid value: 'A': " SUBDOMAIN_TEXT "\n"
		  "spec.preemptionPolicy: Unsupported value: 'A': supported values: 'PreemptLowerPriority', 'Never'" },
	};
	check_create_rows(t, ARRAY_LEN(t));
}

/* ---- features that are off by default ---- */

#define BUNDLES(list) POD(VOLUME("'projected':{'sources':[" list "]}"))

TEST(validate_bundle_projections)
{
	static const struct {
		const char *object, *want;
	} t[] = {
		{ BUNDLES("{'clusterTrustBundle':{'name':'a','path':'p'}},{'clusterTrustBundle':{'name':'x.com:s:a','path':'q'}},"
			  "{'clusterTrustBundle':{'signerName':'x.com/s','labelSelector':{},'path':'r','optional':true}}"), "" },
		{ BUNDLES("{'clusterTrustBundle':{'path':'p'}},{'clusterTrustBundle':{'name':'a','path':'p'}}"),
		  "spec.volumes[0].projected.sources[0].clusterTrustBundle: Required value: either name or signerName must be specified\n"
		  "spec.volumes[0].projected: Invalid value: 'p': conflicting duplicate paths" },
		{ BUNDLES("{'clusterTrustBundle':{'name':'a_','labelSelector':{}}}"),
		  "spec.volumes[0].projected.sources[0].clusterTrustBundle.name: Invalid value: 'a_': not a valid clustertrustbundlename: a"
		  " lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with"
		  " an alphanumeric character (e.g. 'example.com', regex used for validation is"
		  " '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')\n"
		  "spec.volumes[0].projected.sources[0].clusterTrustBundle.labelSelector: Invalid value:"
		  " {}: labelSelector must be unset if name is specified\n"
		  "spec.volumes[0].projected.sources[0].clusterTrustBundle.path: Required value" },
		{ BUNDLES("{'clusterTrustBundle':{'name':'a','signerName':'x.com/s','path':'../p'}}"),
		  "spec.volumes[0].projected.sources[0].clusterTrustBundle: Invalid value: {'Name':'a','SignerName':'x.com/s',"
		  "'LabelSelector':null,'Optional':null,'Path':'../p'}: only one of name and signerName may be used\n"
		  "spec.volumes[0].projected.sources[0].clusterTrustBundle.path: Invalid value: '../p': must not contain '..'" },
		{ BUNDLES("{'clusterTrustBundle':{'signerName':'s','path':'p'},'configMap':{'name':'m'}}"),
		  "spec.volumes[0].projected.sources[0].clusterTrustBundle.signerName: Invalid value: 's': must be a fully qualified domain"
		  " and path of the form 'example.com/signer-name'\n"
		  "spec.volumes[0].projected.sources[0]: Forbidden: may not specify more than 1 volume type per source" },
	};
	struct arena a = ARENA_INIT;
	struct val made, on = val_put(&a, VAL_EMPTY, atom_make(&a, STR("ClusterTrustBundleProjection")), val_of_bool(true));

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CHECK_STR_ROW(i, testing_create_gated(&a, on, t[i].object, &made), t[i].want);
		testing_create(&a, t[i].object, &made); /* the gate is off */
		VAL_EACH(source, val_get(val_at(val_get(made, spec, volumes), 0), projected, sources))
			CHECK_ROW(i, !val_has(*source, clusterTrustBundle));
	}
	/* what was there when the gate was on stays */
	testing_update(&a, t[0].object, t[0].object, "", &made);
	CHECK(val_has(val_at(val_get(val_at(val_get(made, spec, volumes), 0), projected, sources), 0), clusterTrustBundle));
	arena_done(&a);
}
