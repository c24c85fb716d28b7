#include "controllers/template_hash.h"

#include "base/test.h"
#include "controllers/plan_testing.h"

/* The hashes are those that Kubernetes 1.36 computes. */
TEST(template_hash_is_that_of_kubernetes)
{
	static const struct { const char *template, *hash; } t[] = {
		{ "{'metadata':{'labels':{'app':'w'}},'spec':{'containers':[{'name':'c',"
		  "'image':'registry.k8s.io/pause:3.10.2','resources':{},"
		  "'terminationMessagePath':'/dev/termination-log','terminationMessagePolicy':'File',"
		  "'imagePullPolicy':'IfNotPresent'}],'restartPolicy':'Always','terminationGracePeriodSeconds':1,"
		  "'dnsPolicy':'ClusterFirst','securityContext':{},'schedulerName':'default-scheduler'}}",
		  "797568b7f4" },
		{ "{}",
		  "85748b7f68" },
		{ "{'metadata':{'labels':{'b':'2','a':'1'},'annotations':{'x':'y'}},'spec':{'containers':[{'name':'c',"
		  "'image':'i','command':['sh','-c','a b'],'ports':[{'name':'http','containerPort':80,"
		  "'protocol':'TCP'}],'env':[{'name':'A','value':'1'},{'name':'B','valueFrom':{'fieldRef':{"
		  "'apiVersion':'v1','fieldPath':'metadata.name'}}},{'name':'C','valueFrom':{'secretKeyRef':{"
		  "'name':'s','key':'k','optional':true}}}],'envFrom':[{'prefix':'p','configMapRef':{'name':'m'}}],"
		  "'resources':{'limits':{'memory':'128Mi','cpu':'500m'},'requests':{'cpu':'1','memory':'1Gi',"
		  "'ephemeral-storage':'0','example.com/x':'3','hugepages-2Mi':'100Ti'}},'livenessProbe':{'httpGet':{"
		  "'path':'/','port':'http','scheme':'HTTP','httpHeaders':[{'name':'h','value':'v'}]},"
		  "'initialDelaySeconds':3,'timeoutSeconds':1,'periodSeconds':10,'successThreshold':1,"
		  "'failureThreshold':3},'readinessProbe':{'tcpSocket':{'port':80},'timeoutSeconds':1},'startupProbe':{"
		  "'grpc':{'port':9,'service':''}},'lifecycle':{'preStop':{'exec':{'command':['x']}},'postStart':{"
		  "'sleep':{'seconds':2}}},'securityContext':{'capabilities':{'add':['NET_ADMIN'],'drop':['ALL']},"
		  "'privileged':false,'runAsUser':0,'seccompProfile':{'type':'RuntimeDefault'},'seLinuxOptions':{"
		  "'level':'s0'}},'volumeMounts':[{'name':'v','mountPath':'/v','readOnly':true}],'tty':true,"
		  "'resizePolicy':[{'resourceName':'cpu','restartPolicy':'NotRequired'}],'restartPolicy':'Always'}],"
		  "'initContainers':[{'name':'i','image':'j'}],'volumes':[{'name':'v','emptyDir':{'sizeLimit':'1536Mi',"
		  "'medium':'Memory'}},{'name':'c','configMap':{'name':'m','items':[{'key':'k','path':'p','mode':420}],"
		  "'defaultMode':420}},{'name':'p','projected':{'sources':[{'serviceAccountToken':{"
		  "'expirationSeconds':3607,'path':'token'}},{'configMap':{'name':'x'}},{'secret':{'name':'y'}},{"
		  "'downwardAPI':{'items':[{'path':'l','fieldRef':{'fieldPath':'metadata.labels'}}]}}]}},{'name':'r',"
		  "'rbd':{'monitors':['m'],'image':'i','pool':'p','user':'u','fsType':'ext4'}},{'name':'g',"
		  "'glusterfs':{'endpoints':'e','path':'p'}},{'name':'n','nfs':{'server':'s','path':'/'}},{'name':'is',"
		  "'iscsi':{'targetPortal':'t','iqn':'q','lun':1,'chapAuthDiscovery':true,'secretRef':{'name':'z'}}},{"
		  "'name':'cs','csi':{'driver':'d','volumeAttributes':{'a':'b'}}},{'name':'e','ephemeral':{"
		  "'volumeClaimTemplate':{'metadata':{'labels':{'q':'r'}},'spec':{'accessModes':['ReadWriteOnce'],"
		  "'resources':{'requests':{'storage':'10Gi'}},'storageClassName':'x','dataSource':{'apiGroup':'g',"
		  "'kind':'k','name':'n'}}}}},{'name':'h','hostPath':{'path':'/x','type':'Directory'}},{'name':'fc',"
		  "'fc':{'targetWWNs':['a'],'wwids':['b']}},{'name':'az','azureDisk':{'diskName':'d','diskURI':'u'}}],"
		  "'nodeSelector':{'a':'b'},'affinity':{'nodeAffinity':{"
		  "'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[{'matchExpressions':[{"
		  "'key':'k','operator':'In','values':['v']}]}]},'preferredDuringSchedulingIgnoredDuringExecution':[{"
		  "'weight':1,'preference':{'matchFields':[{'key':'f','operator':'Exists'}]}}]},'podAntiAffinity':{"
		  "'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':5,'podAffinityTerm':{'labelSelector':{"
		  "'matchLabels':{'a':'b'}},'topologyKey':'t','namespaces':['n']}}]}},'tolerations':[{'key':'k',"
		  "'operator':'Exists','effect':'NoExecute','tolerationSeconds':30}],'hostAliases':[{'ip':'1.2.3.4',"
		  "'hostnames':['a','b']}],'dnsConfig':{'nameservers':['1.1.1.1'],'searches':['s'],'options':[{"
		  "'name':'ndots','value':'5'}]},'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'z',"
		  "'whenUnsatisfiable':'DoNotSchedule','labelSelector':{'matchExpressions':[{'key':'a','operator':'In',"
		  "'values':['b']}]},'minDomains':2,'matchLabelKeys':['x']}],'imagePullSecrets':[{'name':'r'}],"
		  "'serviceAccountName':'sa','serviceAccount':'sa','automountServiceAccountToken':false,"
		  "'hostNetwork':true,'shareProcessNamespace':true,'priorityClassName':'pc','runtimeClassName':'rc',"
		  "'enableServiceLinks':true,'securityContext':{'fsGroup':5,'sysctls':[{'name':'a','value':'b'}],"
		  "'supplementalGroups':[1,2],'runAsNonRoot':true,'windowsOptions':{'gmsaCredentialSpecName':'g'}},"
		  "'readinessGates':[{'conditionType':'c'}],'os':{'name':'linux'},'schedulingGates':[{'name':'sg'}],"
		  "'resourceClaims':[{'name':'rc','resourceClaimName':'x'}],'overhead':{'cpu':'250m'},"
		  "'ephemeralContainers':[{'name':'e','image':'f','targetContainerName':'c'}],'setHostnameAsFQDN':true,"
		  "'hostUsers':false,'preemptionPolicy':'Never','resources':{'limits':{'cpu':'2'}}}}",
		  "8585875fcc" },
		{ "{'spec':{'containers':[{'name':'a','image':'b','resources':{'limits':{'a':'1k','b':'1500','c':'-1',"
		  "'d':'1e3','e':'100u','f':'12Ki','g':'2M','h':'1000Gi','i':'999Ti','j':'1Ei','k':'0',"
		  "'l':'9007199254740993','m':'100','n':'1001m'}}}]}}",
		  "654f76787b" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		CHECK_STR(template_hash(&a, tree(&a, t[i].template), 0), t[i].hash);
	}
}

TEST(template_hash_after_collisions)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val template = tree(&a, "{'metadata':{'labels':{'app':'w'}},'spec':{'containers':[{'name':'c','image':'x:1'}]}}");
	str hash = template_hash(&a, template, 0), once = template_hash(&a, template, 1);

	CHECK(!str_eq(hash, once));
	CHECK(!str_eq(once, template_hash(&a, template, 2)));
}
