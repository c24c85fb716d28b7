"""A namespace with work for every controller, and what each of them makes of it. For a cluster with hollow nodes."""
import base64
import json
import subprocess
import time

from cluster import wait_until

NAMESPACE = "work"


def template(app, **spec):
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": [{"name": "c", "image": "x"}], "terminationGracePeriodSeconds": 0, **spec}}


def workload(kind, version, name, **spec):
    return {"kind": kind, "apiVersion": version, "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"selector": {"matchLabels": {"app": name}}, "template": template(name), **spec}}


def job_spec(**more):
    run = template("job", restartPolicy="Never")
    run["metadata"]["annotations"] = {"hollow.c8s.io/seconds": "0"}
    return {"template": run, **more}


def certificate_request(folder):
    subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{folder}/k", "-subj", "/CN=somebody",
                    "-out", f"{folder}/csr"], check=True, capture_output=True)
    with open(f"{folder}/csr", "rb") as f:
        return base64.b64encode(f.read()).decode()


def things(folder):
    def obj(kind, version, name, namespace=NAMESPACE, **rest):
        meta = {"name": name, **({"namespace": namespace} if namespace else {}), **rest.pop("metadata", {})}
        return {"kind": kind, "apiVersion": version, "metadata": meta, **rest}
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    rc = workload("ReplicationController", "v1", "rc", replicas=1)
    rc["spec"]["selector"] = {"app": "rc"}
    return [
        obj("Namespace", "v1", NAMESPACE, None),
        workload("Deployment", "apps/v1", "deploy", replicas=3),
        workload("ReplicaSet", "apps/v1", "set", replicas=1),
        rc,
        workload("DaemonSet", "apps/v1", "daemon"),
        workload("StatefulSet", "apps/v1", "state", replicas=1, serviceName="state", volumeClaimTemplates=[claim]),
        obj("Job", "batch/v1", "job", spec=job_spec(completions=2, ttlSecondsAfterFinished=2)),
        obj("CronJob", "batch/v1", "cron", spec={"schedule": "* * * * *", "jobTemplate": {"spec": job_spec()}}),
        obj("Service", "v1", "deploy", spec={"selector": {"app": "deploy"}, "ports": [{"port": 80}]}),
        obj("Service", "v1", "mirrored", spec={"ports": [{"port": 80}]}),
        obj("Endpoints", "v1", "mirrored", subsets=[{"addresses": [{"ip": "192.0.2.7"}], "ports": [{"port": 80}]}]),
        obj("PodDisruptionBudget", "policy/v1", "deploy", spec={"minAvailable": 2, "selector": {"matchLabels": {"app": "deploy"}}}),
        obj("ResourceQuota", "v1", "quota", spec={"hard": {"pods": "40", "count/jobs.batch": "20"}}),
        obj("Secret", "v1", "legacy", type="kubernetes.io/service-account-token", metadata={"annotations": {"kubernetes.io/service-account.name": "default"}}),
        obj("ClusterRole", "rbac.authorization.k8s.io/v1", "work-part", None, metadata={"labels": {"work": "yes"}},
            rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]),
        obj("ClusterRole", "rbac.authorization.k8s.io/v1", "work-whole", None, aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"work": "yes"}}]}, rules=[]),
        obj("CertificateSigningRequest", "certificates.k8s.io/v1", "somebody", None, spec={
            "request": certificate_request(folder), "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"]}),
        obj("ConfigMap", "v1", "cluster-info", "kube-public", data={"kubeconfig": "apiVersion: v1\nkind: Config\n"}),
        obj("Secret", "v1", "bootstrap-token-abcdef", "kube-system", type="bootstrap.kubernetes.io/token", stringData={
            "token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-signing": "true",
            "expiration": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 8))}),
    ]


class Work:
    def __init__(self, server):
        self.server = server

    def get(self, path):
        r = self.server.request("GET", path)
        return r.json if r.status == 200 else {}

    def of(self, path, api="apis/apps/v1"):
        return self.get(f"/{api}/namespaces/{NAMESPACE}/{path}")

    def start(self):
        s = self.server
        s.kubectl("apply", "-f", "-", stdin=json.dumps({"kind": "List", "apiVersion": "v1", "items": things(s.folder)}))
        s.kubectl("certificate", "approve", "somebody")
        past = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 100))
        s.request("PATCH", f"/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs/cron/status", {"status": {"lastScheduleTime": past}})

    def checks(self):
        """What each controller does: (who, whether it has)."""
        status = lambda path, api="apis/apps/v1": self.of(path, api).get("status", {})  # noqa: E731
        return {
            "deployment, replicaset": lambda: status("deployments/deploy").get("availableReplicas") == 3,
            "replicaset": lambda: status("replicasets/set").get("readyReplicas") == 1,
            "replicationcontroller": lambda: status("replicationcontrollers/rc", "api/v1").get("readyReplicas") == 1,
            "daemonset": lambda: status("daemonsets/daemon").get("numberReady") == 3,
            "statefulset, volume binder, local path": lambda: status("statefulsets/state").get("readyReplicas") == 1,
            "cronjob": lambda: any(j["metadata"]["name"].startswith("cron-") for j in self.of("jobs", "apis/batch/v1").get("items", [])),
            "job, ttl-after-finished": lambda: self.server.request("GET", f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/job").status == 404,
            "endpoints": lambda: len((self.of("endpoints/deploy", "api/v1").get("subsets") or [{}])[0].get("addresses", [])) == 3,
            "endpointslice": lambda: any(len(s.get("endpoints") or []) == 3 for s in self.slices("deploy")),
            "endpointslice-mirroring": lambda: any(s["endpoints"][0]["addresses"] == ["192.0.2.7"] for s in self.slices("mirrored")),
            "disruption": lambda: status("poddisruptionbudgets/deploy", "apis/policy/v1").get("disruptionsAllowed") == 1,
            "resourcequota": lambda: int(status("resourcequotas/quota", "api/v1").get("used", {}).get("pods", 0)) >= 9,
            "serviceaccount": lambda: self.of("serviceaccounts/default", "api/v1"),
            "serviceaccount-token": lambda: "token" in self.of("secrets/legacy", "api/v1").get("data", {}),
            "root-ca-certificate-publisher": lambda: "BEGIN" in self.of("configmaps/kube-root-ca.crt", "api/v1").get("data", {}).get("ca.crt", ""),
            "clusterrole-aggregation": lambda: self.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/work-whole").get("rules"),
            "certificatesigningrequest-signing": lambda: "certificate" in self.get("/apis/certificates.k8s.io/v1/certificatesigningrequests/somebody")["status"],
            "bootstrap-signer": lambda: "jws-kubeconfig-abcdef" in self.get("/api/v1/namespaces/kube-public/configmaps/cluster-info").get("data", {}),
            "token-cleaner": lambda: not self.get("/api/v1/namespaces/kube-system/secrets/bootstrap-token-abcdef"),
            "node-ipam": lambda: all(n["spec"].get("podCIDR") for n in self.get("/api/v1/nodes")["items"]),
            "persistentvolumeclaim-protection": lambda: "kubernetes.io/pvc-protection" in self.claim()["metadata"].get("finalizers", []),
            "persistentvolume-protection": lambda: "kubernetes.io/pv-protection" in self.get(
                f"/api/v1/persistentvolumes/{self.claim()['spec']['volumeName']}")["metadata"].get("finalizers", []),
        }

    def claim(self):
        return self.of("persistentvolumeclaims/data-state-0", "api/v1")

    def slices(self, service):
        return self.of(f"endpointslices?labelSelector=kubernetes.io/service-name={service}", "apis/discovery.k8s.io/v1").get("items") or []

    def settle(self, seconds=30):
        """Waits until all have done what they do: those that have not."""
        left = self.checks()
        deadline = time.monotonic() + seconds
        while left and time.monotonic() < deadline:
            left = {who: check for who, check in left.items() if not check()}
            time.sleep(0.05)
        return sorted(left)

    def end(self):
        """Deletes it all: the garbage collector and the namespace controller."""
        s = self.server
        s.request("DELETE", f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/deploy", {"propagationPolicy": "Foreground"})
        wait_until(lambda: not self.of("deployments/deploy"), 20, "the garbage collector")
        s.request("DELETE", "/api/v1/namespaces/" + NAMESPACE)
        wait_until(lambda: not self.get("/api/v1/namespaces/" + NAMESPACE), 30, "the namespace controller")
        wait_until(lambda: not self.get("/api/v1/persistentvolumes").get("items"), 20, "volumes to be removed")


def forbidden(audit):
    """Lines about requests of components that authorization refused. Audit policy: Metadata."""
    found = []
    with open(audit) as f:
        for line in f:
            e = json.loads(line)
            user = e["user"].get("username", "")
            ours = user.startswith("system:serviceaccount:kube-system:") or user in ("system:kube-scheduler", "system:kube-controller-manager")
            if ours and e.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid":
                found.append(f"{user} {e['verb']} {e['requestURI']}")
    return sorted(set(found))


def users(audit):
    with open(audit) as f:
        return {json.loads(line)["user"].get("username", "") for line in f}
