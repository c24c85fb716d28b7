#!/usr/bin/env python3
"""What admission makes of pods and says about them, as kubectl shows it. Needs C8S, the program to test."""
import json
import os
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster  # noqa: E402
import tap  # noqa: E402

POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  containers:
  - {{name: c, image: "x:1"}}
{more}"""

CONFIG = """
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: PodSecurity
  configuration:
    apiVersion: pod-security.admission.config.k8s.io/v1
    kind: PodSecurityConfiguration
    defaults: {enforce: baseline}
    exemptions: {usernames: [alice], namespaces: [free], runtimeClasses: [vm]}
- name: PodNodeSelector
  configuration:
    podNodeSelectorPluginConfig:
      clusterDefaultNodeSelector: zone=all
      picky: zone=all,disk=ssd
- name: PodTolerationRestriction
  configuration:
    apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1
    kind: Configuration
    default: [{key: team, operator: Exists}]
"""


class World:
    def __init__(self, server):
        self.server = server

    def apply(self, text, verb="create", **more):
        return self.server.kubectl(verb, "-f", "-", stdin=text, check=False, **more)

    def pod(self, namespace, name, more=""):
        return self.apply(POD.format(namespace=namespace, name=name, more=more))

    def get(self, *what):
        return json.loads(self.server.kubectl("get", *what, "-o", "json").stdout)

    def namespace(self, name, labels=None, annotations=None, account=True):
        meta = {"name": name, "labels": labels or {}, "annotations": annotations or {}}
        self.must("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
        if account:
            self.must("POST", f"/api/v1/namespaces/{name}/serviceaccounts",
                      {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})

    def must(self, method, path, body):
        r = self.server.request(method, path, body)
        if r.status not in (200, 201):
            raise RuntimeError(r)
        return r.json


# ---- Pod Security ----

def test_enforce(w, t):
    w.namespace("strict", {"pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/warn": "restricted"})
    r = w.pod("strict", "bad", "  hostNetwork: true\n")
    t.check("enforce refuses", r.returncode == 1 and 'Error from server (Forbidden)' in r.stderr and
            'pods "bad" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)' in r.stderr, r)
    t.check("what is refused gives no warning too", "Warning" not in r.stderr, r)
    r = w.pod("strict", "good")
    t.check("warn warns and lets it pass", r.returncode == 0 and
            'Warning: would violate PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "c" must set '
            'securityContext.allowPrivilegeEscalation=false)' in r.stderr, r)
    r = w.server.kubectl("-n", "strict", "label", "pod", "good", "a=b", check=False)
    t.check("an update that changes no image is not judged", r.returncode == 0 and "Warning" not in r.stderr, r)
    r = w.server.kubectl("-n", "strict", "set", "image", "pod/good", "c=y:2", check=False)
    t.check("one that does is", r.returncode == 0 and "would violate PodSecurity" in r.stderr, r)
    r = w.server.kubectl("-n", "strict", "create", "deployment", "d", "--image=x", check=False)
    t.check("what makes pods is warned about", r.returncode == 0 and 'would violate PodSecurity "restricted:latest"' in r.stderr, r)
    r = w.server.kubectl("-n", "strict", "create", "cronjob", "j", "--image=x", "--schedule=* * * * *", check=False)
    t.check("a CronJob as well", r.returncode == 0 and 'would violate PodSecurity "restricted:latest"' in r.stderr, r)


def test_labels(w, t):
    w.namespace("later")
    for name, more in [("b", "  hostNetwork: true\n"), ("a", "  hostNetwork: true\n"), ("ok", ""), ("c", "  hostPID: true\n  hostIPC: true\n")]:
        w.pod("later", name, more)
    r = w.server.kubectl("label", "namespace", "later", "pod-security.kubernetes.io/enforce=baseline", check=False)
    lines = [line for line in r.stderr.splitlines() if line.startswith("Warning: ")]
    t.check("a namespace that becomes stricter names the pods it has", r.returncode == 0 and lines == [
        'Warning: existing pods in namespace "later" violate the new PodSecurity enforce level "baseline:latest"',
        "Warning: a (and 2 other pods): host namespaces"], r)
    r = w.server.kubectl("label", "--overwrite", "namespace", "later", "pod-security.kubernetes.io/enforce=privileged", check=False)
    t.check("one that becomes less strict says nothing", r.returncode == 0 and "Warning" not in r.stderr, r)
    r = w.server.kubectl("label", "--overwrite", "namespace", "later", "pod-security.kubernetes.io/enforce=none",
                         "pod-security.kubernetes.io/warn-version=1.2", check=False)
    t.check("labels must make sense", r.returncode == 1 and
            'The Namespace "later" is invalid' in r.stderr and "must be one of privileged, baseline, restricted" in r.stderr and
            'must be "latest" or "v1.x"' in r.stderr, r)


# ---- LimitRange ----

LIMITS = """
apiVersion: v1
kind: LimitRange
metadata: {name: l, namespace: limited}
spec:
  limits:
  - type: Container
    default: {cpu: 500m, memory: 1Gi}
    defaultRequest: {cpu: 100m}
    max: {cpu: "1", memory: 2Gi}
    maxLimitRequestRatio: {cpu: "8"}
  - type: Pod
    max: {cpu: "2"}
  - type: PersistentVolumeClaim
    min: {storage: 1Gi}
    max: {storage: 2Gi}
"""

CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: c, namespace: limited}}
spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: {size}}}}}}}
"""


def test_limit_range(w, t):
    w.namespace("limited")
    w.apply(LIMITS)
    w.pod("limited", "plain", "  initContainers: [{name: i, image: x, resources: {limits: {cpu: 200m}}}]\n")
    text = w.server.kubectl("-n", "limited", "get", "pod", "plain", "-o", "yaml").stdout
    t.check("defaults as get -o yaml shows them",
            "    kubernetes.io/limit-ranger: 'LimitRanger plugin set: cpu, memory request for container\n"
            "      c; cpu, memory limit for container c; memory request for init container i; memory\n"
            "      limit for init container i'\n" in text and
            "    resources:\n      limits:\n        cpu: 500m\n        memory: 1Gi\n"
            "      requests:\n        cpu: 100m\n        memory: 1Gi\n" in text and
            "      limits:\n        cpu: 200m\n        memory: 1Gi\n      requests:\n        cpu: 200m\n" in text, text)
    t.check("they make its class", "qosClass: Burstable" in text, text)
    r = w.server.kubectl("-n", "limited", "run", "big", "--image=x", "--overrides", json.dumps({"spec": {"containers": [
        {"name": "big", "image": "x", "resources": {"limits": {"cpu": "4"}, "requests": {"cpu": "100m"}}}]}}), check=False)
    t.check("all that is too much is said at once", r.returncode == 1 and
            'pods "big" is forbidden: [maximum cpu usage per Container is 1, but limit is 4, cpu max limit to request ratio per '
            'Container is 8, but provided ratio is 40.000000, maximum cpu usage per Pod is 2, but limit is 4]' in r.stderr, r)
    r = w.apply(CLAIM.format(size="5Gi"))
    t.check("claims have bounds too", r.returncode == 1 and
            "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 5Gi" in r.stderr, r)
    t.check("one within them", w.apply(CLAIM.format(size="1Gi")).returncode == 0)
    r = w.server.request("PATCH", "/api/v1/namespaces/limited/pods/plain/resize", {"spec": {"containers": [
        {"name": "c", "image": "x:1", "resources": {"limits": {"cpu": "3", "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "1Gi"}}}]}},
        content_type="application/strategic-merge-patch+json")
    t.check("a resize has bounds", r.status == 403 and "maximum cpu usage per Container is 1, but limit is 3" in r.json["message"], r)


# ---- priority, tolerations, accounts ----

def test_priority(w, t):
    w.namespace("ranks")
    w.server.kubectl("create", "priorityclass", "high", "--value=1000")
    w.pod("ranks", "p", "  priorityClassName: high\n")
    spec = w.get("-n", "ranks", "pod", "p")["spec"]
    t.check("a class gives its number", (spec["priority"], spec["preemptionPolicy"]) == (1000, "PreemptLowerPriority"), spec)
    r = w.pod("ranks", "q", "  priorityClassName: none\n")
    t.check("a class that does not exist", "no PriorityClass with name none was found" in r.stderr, r)
    w.server.kubectl("create", "priorityclass", "usual", "--value=7", "--global-default")
    w.pod("ranks", "r")
    spec = w.get("-n", "ranks", "pod", "r")["spec"]
    t.check("the class for all others", (spec["priority"], spec["priorityClassName"]) == (7, "usual"), spec)
    r = w.server.kubectl("create", "priorityclass", "second", "--value=8", "--global-default", check=False)
    t.check("there is only one of these", "PriorityClass usual is already marked as default. Only one default can exist" in r.stderr, r)
    w.server.kubectl("delete", "priorityclass", "usual")
    times = [(x["key"], x["tolerationSeconds"]) for x in spec["tolerations"]]
    t.check("five minutes on a node that is gone", times == [("node.kubernetes.io/not-ready", 300), ("node.kubernetes.io/unreachable", 300)], spec)


CLASSES = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: usual, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: example.com/none
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: front, annotations: {ingressclass.kubernetes.io/is-default-class: "true"}}
spec: {controller: example.com/none}
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: heavy}
handler: heavy
overhead: {podFixed: {memory: 64Mi}}
---
apiVersion: v1
kind: Node
metadata: {name: new}
"""
USERS = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: claim, namespace: classes}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: volume}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /x}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: way, namespace: classes}
spec: {defaultBackend: {service: {name: s, port: {number: 80}}}}
"""


def test_classes(w, t):
    """What objects get from the classes that are the default, and what keeps them from going while they are used."""
    w.namespace("classes")
    for text in (CLASSES, USERS):
        w.server.kubectl("create", "-f", "-", stdin=text)
    claim, volume = w.get("-n", "classes", "pvc", "claim"), w.get("pv", "volume")
    t.check("the storage class for all", claim["spec"]["storageClassName"] == "usual", claim)
    t.check("claims in use are kept", claim["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"], claim)
    t.check("volumes in use are kept", volume["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"], volume)
    way = w.get("-n", "classes", "ingress", "way")
    t.check("the ingress class for all", way["spec"]["ingressClassName"] == "front", way)
    w.pod("classes", "p", "  runtimeClassName: heavy\n")
    pod = w.get("-n", "classes", "pod", "p")
    t.check("what a runtime costs by itself", pod["spec"]["overhead"] == {"memory": "64Mi"}, pod)
    r = w.pod("classes", "q", "  runtimeClassName: nothing\n")
    t.check("a runtime class that does not exist", 'RuntimeClass "nothing" not found' in r.stderr, r)
    node = w.get("node", "new")
    t.check("a node begins as not ready", node["spec"]["taints"] == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}], node)


def test_account(w, t):
    w.namespace("accounts", account=False)
    began = time.monotonic()
    r = w.pod("accounts", "early")
    t.check("no account, no pod", r.returncode == 1 and "error looking up service account accounts/default: serviceaccount "
            '"default" not found' in r.stderr and time.monotonic() - began > 0.9, r)
    answers = []
    thread = threading.Thread(target=lambda: answers.append(w.server.request("POST", "/api/v1/namespaces/accounts/pods", {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}})))
    thread.start()
    time.sleep(0.2)
    w.must("POST", "/api/v1/namespaces/accounts/serviceaccounts", {
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}, "imagePullSecrets": [{"name": "pull"}]})
    thread.join()
    t.check("an account that comes a moment later is waited for", answers[0].status == 201, answers[0])
    spec = w.get("-n", "accounts", "pod", "p")["spec"]
    mount = spec["containers"][0]["volumeMounts"][0]
    t.check("its token is mounted", mount["mountPath"] == "/var/run/secrets/kubernetes.io/serviceaccount" and mount["readOnly"] and
            spec["volumes"][0]["projected"]["sources"][0] == {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}, spec)
    t.check("its pull secrets are the pod's", spec["imagePullSecrets"] == [{"name": "pull"}], spec)
    w.must("POST", "/api/v1/namespaces/accounts/serviceaccounts", {
        "apiVersion": "v1", "kind": "ServiceAccount", "secrets": [{"name": "mine"}],
        "metadata": {"name": "narrow", "annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}})
    own = "  serviceAccountName: narrow\n"
    r = w.pod("accounts", "s", own + "  volumes: [{name: v, secret: {secretName: other}}]\n")
    t.check("an account can limit secrets", 'volume with secret.secretName="other" is not allowed because service account narrow '
            "does not reference that secret" in r.stderr, r)
    r = w.pod("accounts", "s", own + "  initContainers: [{name: i, image: x, envFrom: [{secretRef: {name: other}}]}]\n")
    t.check("of init containers", 'init container i with envFrom referencing secret.secretName="other" is not allowed' in r.stderr, r)
    r = w.pod("accounts", "s", own + "  volumes: [{name: v, secret: {secretName: mine}}]\n")
    t.check("its own are fine", r.returncode == 0, r)
    r = w.apply("apiVersion: v1\nkind: Pod\nmetadata: {name: m, namespace: accounts, annotations: {kubernetes.io/config.mirror: x}}\n"
                "spec: {nodeName: n1, containers: [{name: c, image: x}], volumes: [{name: v, secret: {secretName: mine}}]}\n")
    t.check("a mirror pod uses no secrets", "a mirror pod may not reference secrets" in r.stderr, r)


# ---- with configuration ----

def test_configured(w, t):
    w.namespace("plain")
    r = w.pod("plain", "bad", "  hostPID: true\n")
    t.check("the level for namespaces without labels", 'violates PodSecurity "baseline:latest"' in r.stderr, r)
    w.namespace("free")
    r = w.pod("free", "p", "  hostPID: true\n")
    t.check("a namespace that is exempt", r.returncode == 0 and "Warning" not in r.stderr, r)
    r = w.server.kubectl("label", "namespace", "free", "pod-security.kubernetes.io/enforce=restricted", check=False)
    t.check("its labels do nothing", 'namespace "free" is exempt from Pod Security, and the policy (enforce=restricted:latest) will '
            "be ignored" in r.stderr, r)
    pod = w.server.request("GET", "/api/v1/namespaces/free/pods/p").json["spec"]
    t.check("pods go where the cluster says", pod["nodeSelector"] == {"zone": "all"}, pod)
    t.check("pods tolerate what the cluster says", {"key": "team", "operator": "Exists"} in pod["tolerations"], pod)
    t.check("images are always pulled", pod["containers"][0]["imagePullPolicy"] == "Always", pod)


def test_configured_namespaces(w, t):
    w.namespace("picky")
    r = w.pod("picky", "p", "  nodeSelector: {disk: hdd}\n")
    t.check("a selector beyond the namespace's list", "pod node label selector labels conflict with its namespace whitelist" in r.stderr, r)
    w.namespace("zoned", annotations={
        "scheduler.alpha.kubernetes.io/node-selector": "zone=b",
        "scheduler.alpha.kubernetes.io/tolerationsWhitelist": '[{"operator":"Exists","key":"team"}]'})
    r = w.pod("zoned", "p", "  nodeSelector: {zone: a}\n")
    t.check("a selector against the namespace's", "pod node label selector conflicts with its namespace node label selector" in r.stderr, r)
    r = w.server.request("POST", "/api/v1/namespaces/zoned/pods", {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {
            "tolerations": [{"key": "x", "operator": "Exists"}], "containers": [{"name": "c", "image": "x"}]}})
    t.check("a toleration beyond the namespace's list", r.status == 500 and r.json["message"] ==
            "pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist", r)
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}
    r = w.server.request("POST", "/api/v1/namespaces/plain/pods", {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "anti"},
        "spec": {"affinity": affinity, "containers": [{"name": "c", "image": "x"}]}})
    t.check("no pod keeps others out of a zone", r.status == 403 and "has TopologyKey zone but only key kubernetes.io/hostname is "
            "allowed" in r.json["message"], r)
    r = w.server.request("POST", "/api/v1/namespaces/plain/pods", {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "gpu"}, "spec": {"containers": [
            {"name": "c", "image": "x", "resources": {"limits": {"example.com/gpu": 1}}}]}})
    t.check("a pod that asks for a device tolerates its taint", r.status == 201 and
            {"key": "example.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in r.json["spec"]["tolerations"], r)


def test_bad_configuration(folder, t):
    path = os.path.join(folder, "bad.yaml")
    with open(path, "w") as f:
        f.write(CONFIG.replace("enforce: baseline", "enforce: none"))
    r = subprocess.run([cluster.C8S, "kube-apiserver", "--data-dir", os.path.join(folder, "bad"), "--bind-address", "127.0.0.1",
                        "--secure-port", str(cluster.free_port()), "--admission-control-config-file", path],
                       capture_output=True, text=True, timeout=30)
    t.check("a level that does not exist", r.returncode != 0 and
            "defaults.enforce: Invalid value: \"none\": must be one of privileged, baseline, restricted" in r.stderr, r)


def test_times(w, t):
    w.namespace("times")
    w.pod("times", "p")
    times = {x["key"]: x.get("tolerationSeconds") for x in w.get("-n", "times", "pod", "p")["spec"]["tolerations"]}
    t.check("other times on a node that is gone", (times["node.kubernetes.io/not-ready"], times["node.kubernetes.io/unreachable"]) ==
            (60, 90), times)


def test_metrics(w, t):
    w.server.request("GET", "/version", token="alice-token") # masters are not asked about
    text = w.server.request("GET", "/metrics").body.decode()
    for line in ('pod_security_evaluations_total{decision="allow",mode="enforce",policy_level="privileged",policy_version="latest",'
                 'request_operation="create",resource="pod",subresource=""} ',
                 'pod_security_evaluations_total{decision="deny",mode="enforce",policy_level="baseline",',
                 'apiserver_admission_controller_admission_duration_seconds_count{name="PodSecurity",operation="CREATE",rejected="true",'
                 'type="validate"} ',
                 'apiserver_admission_controller_admission_duration_seconds_bucket{name="ServiceAccount",operation="CREATE",'
                 'rejected="false",type="admit",le="2.5"} ',
                 'apiserver_authorization_decisions_total{decision="allowed",name="rbac",type="RBAC"} ',
                 'authorization_attempts_total{result="allowed"} ', 'authentication_attempts{result="success"} ',
                 'authenticated_user_requests{username="admin"} '):
        t.check("counted: " + line, "\n" + line in text, [x for x in text.splitlines() if x.startswith(line.split("{")[0])][:20])


def main():
    with cluster.Folder() as folder:
        path = os.path.join(folder, "config.yaml")
        with open(path, "w") as f:
            f.write(CONFIG)
        optional = "AlwaysPullImages,PodNodeSelector,PodTolerationRestriction,ExtendedResourceToleration,LimitPodHardAntiAffinityTopology"
        with cluster.Server(os.path.join(folder, "plain")) as plain, \
                cluster.Server(os.path.join(folder, "configured"), "--admission-control-config-file", path,
                               "--enable-admission-plugins", optional, "--default-not-ready-toleration-seconds=60",
                               "--default-unreachable-toleration-seconds=90") as configured:
            def on(server, f):
                def run(t):
                    f(World(server), t)
                run.__name__ = f.__name__
                return run
            tests = [on(plain, f) for f in (test_enforce, test_labels, test_limit_range, test_priority, test_classes, test_account, test_metrics)]
            tests += [on(configured, f) for f in (test_configured, test_configured_namespaces, test_times)]
            tap.run([*tests, lambda t: test_bad_configuration(folder, t)])


if __name__ == "__main__":
    main()
