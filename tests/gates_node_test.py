#!/usr/bin/env python3
"""What a kubelet may read and write, told by its certificate; and who may approve and sign certificates. Needs C8S, the program to
test."""
import base64
import json
import os
import subprocess
import sys
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster  # noqa: E402
import peers  # noqa: E402
import tap  # noqa: E402

NS = "/api/v1/namespaces/t"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
MIRROR = {"kubernetes.io/config.mirror": "x"}


def openssl(*args, stdin=None):
    return subprocess.run([peers.find("openssl", "openssl"), *args], input=stdin, check=True, capture_output=True).stdout


class World:
    """A server, two nodes with certificates, and pods on them; all tests share it."""

    def __init__(self, folder):
        self.folder = folder
        self.server = cluster.Server(folder, "--authorization-mode=Node,RBAC", "--enable-admission-plugins",
                                     "NodeRestriction,OwnerReferencesPermissionEnforcement").start()
        self.pki = os.path.join(folder, "data", "pki")
        self.contexts = {name: self.certificate(name) for name in ("n1", "n2")}
        self.make("/api/v1/namespaces", "Namespace", "t")
        self.make(NS + "/serviceaccounts", "ServiceAccount", "default")
        self.make(NS + "/serviceaccounts", "ServiceAccount", "other")
        for node, zone in (("n1", "z1"), ("n2", None)):
            labels = {"topology.kubernetes.io/zone": zone} if zone else {}
            setattr(self, node, self.make("/api/v1/nodes", "Node", node, meta={"labels": labels}))

    def key(self, name):
        path = os.path.join(self.folder, name + ".key")
        openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", path)
        return path

    def signing_request(self, name, subject):
        return openssl("req", "-new", "-key", self.key(name), "-subj", subject)

    def certificate(self, name, subject=None):
        request = self.signing_request(name, subject or f"/O=system:nodes/CN=system:node:{name}")
        extensions = os.path.join(self.folder, "ext")
        with open(extensions, "w") as f:
            f.write("extendedKeyUsage=clientAuth\n")
        path = os.path.join(self.folder, name + ".crt")
        openssl("x509", "-req", "-CA", self.pki + "/ca.crt", "-CAkey", self.pki + "/ca.key", "-days", "1", "-set_serial", "7",
                "-extfile", extensions, "-out", path, stdin=request)
        return path, os.path.join(self.folder, name + ".key")

    def request(self, node, method, path, body=None, **headers):
        import http.client
        import ssl
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.pki + "/ca.crt")
        context.load_cert_chain(*self.contexts[node])
        c = http.client.HTTPSConnection("127.0.0.1", self.server.port, timeout=30, context=context)
        try:
            return self.server.request(method, path, body, token=None, connection=c, **headers)
        finally:
            c.close()

    def make(self, path, kind, name, version="v1", **more):
        meta = {"name": name, **more.pop("meta", {})}
        r = self.server.request("POST", path, {"apiVersion": version, "kind": kind, "metadata": meta, **more})
        if r.status not in (201, 409):
            raise RuntimeError(r)
        return r.json

    def pod(self, name, node, **spec):
        return self.make(NS + "/pods", "Pod", name, spec={"nodeName": node, "containers": [{"name": "c", "image": "x"}], **spec})

    def delete(self, path):
        return self.server.request("DELETE", path + "?gracePeriodSeconds=0")

    def allow(self, user, name, *rules):
        """Gives a user rights in the whole cluster."""
        auth, version = "/apis/rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io/v1"
        self.make(auth + "/clusterroles", "ClusterRole", name, version, rules=list(rules))
        self.make(auth + "/clusterrolebindings", "ClusterRoleBinding", name, version,
                  roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
                  subjects=[{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}])


def rule(group, resources, verbs, **more):
    return {"apiGroups": [group], "resources": resources, "verbs": verbs, **more}


def message(r):
    try:
        return r.json.get("message", "")
    except ValueError:
        return repr(r)


def refused(t, what, r, text, status=403):
    t.check(what, r.status == status and message(r).endswith(text), r)


# ---- reading ----

def test_reads(w, t):
    w.pod("mine", "n1")
    w.pod("theirs", "n2")
    unrelated = ": no relationship found between node 'n1' and this object"
    for path, text in [
            ("/api/v1/nodes/n1", None),
            ("/api/v1/nodes/n2", ": node 'n1' cannot read 'n2', only its own Node object"),
            ("/api/v1/nodes", ": node 'n1' cannot read all nodes, only its own Node object"),
            ("/api/v1/nodes?fieldSelector=metadata.name%3Dn1", None),
            ("/api/v1/services", None),
            ("/api/v1/namespaces", 'cannot list resource "namespaces" in API group "" at the cluster scope'),
            (NS + "/pods/mine", None),
            (NS + "/pods/theirs", unrelated),
            (NS + "/pods", ": can only list/watch pods with spec.nodeName field selector"),
            ("/api/v1/pods?fieldSelector=spec.nodeName%3Dn2", ": can only list/watch pods with spec.nodeName field selector"),
            ("/api/v1/pods?fieldSelector=spec.nodeName%21%3Dn1", ": can only list/watch pods with spec.nodeName field selector"),
            ("/api/v1/pods?fieldSelector=spec.nodeName%3Dn1,status.phase%3DRunning", None),
            (NS + "/pods?fieldSelector=metadata.name%3Dmine", None),
            (NS + "/pods/mine/log", 'cannot get resource "pods/log" in API group "" in the namespace "t"'),
            (NS + "/secrets", ": No Object name found"),
            ("/api/v1/secrets", ": can only read namespaced object of this type"),
            (NS + "/serviceaccounts/default", None),
            (NS + "/serviceaccounts/other", unrelated),
            (NS + "/serviceaccounts", ": can only create tokens for individual service accounts"),
            ("/api/v1/persistentvolumes", ": can only get individual resources of this type"),
            (LEASES, ": can only get, create, update, patch, or delete a node lease"),
            (LEASES + "/n2", ": can only access node lease with the same name as the requesting node"),
            (LEASES.replace("kube-node-lease", "t") + "/n1", ': can only access leases in the "kube-node-lease" system namespace'),
            ("/apis/storage.k8s.io/v1/csinodes/n2", ": can only access CSINode with the same name as the requesting node"),
            (SLICES, ": can only list/watch/deletecollection resourceslices with nodeName field selector"),
            (SLICES + "?fieldSelector=spec.nodeName%3Dn1", None),
            (CSRS, None)]:
        r = w.request("n1", "GET", path)
        if text:
            refused(t, "GET " + path, r, text)
        else:
            t.check("GET " + path, r.status == 200, r)


def test_graph(w, t):
    """A secret is readable as long as a pod on the node needs it: at once, and no longer."""
    for name in ("s1", "s2", "s3"):
        w.make(NS + "/secrets", "Secret", name)
    w.make(NS + "/configmaps", "ConfigMap", "m")

    def reads(node, name, what="secrets"):
        return w.request(node, "GET", f"{NS}/{what}/{name}").status
    w.pod("a", "n1", volumes=[{"name": "v", "secret": {"secretName": "s1"}}, {"name": "m", "configMap": {"name": "m"}}])
    t.check("what a pod names is readable", [reads("n1", "s1"), reads("n1", "m", "configmaps")] == [200, 200])
    t.check("for its node only", [reads("n2", "s1"), reads("n2", "m", "configmaps"), reads("n1", "s2")] == [403] * 3)
    w.delete(NS + "/pods/a")
    t.check("and only as long as it exists", reads("n1", "s1") == 403)

    w.make(NS + "/pods", "Pod", "b", spec={"containers": [{"name": "c", "image": "x", "envFrom": [{"secretRef": {"name": "s2"}}]}]})
    t.check("a pod without a node gives nothing", [reads("n1", "s2"), reads("n2", "s2")] == [403, 403])
    w.make(NS + "/pods/b/binding", "Binding", "b", target={"kind": "Node", "name": "n1"})
    t.check("once bound it does", [reads("n1", "s2"), reads("n2", "s2")] == [200, 403])
    pod = w.server.request("GET", NS + "/pods/b").json
    t.check("a bound pod has the zone of its node", pod["metadata"].get("labels") == {"topology.kubernetes.io/zone": "z1"}, pod)


def test_volumes(w, t):
    w.make(NS + "/secrets", "Secret", "mount")
    w.make(NS + "/secrets", "Secret", "control")
    w.make(NS + "/persistentvolumeclaims", "PersistentVolumeClaim", "c", spec={
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "pv", "storageClassName": ""})
    ref = {"namespace": "t"}
    w.make("/api/v1/persistentvolumes", "PersistentVolume", "pv", spec={
        "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "claimRef": {"namespace": "t", "name": "c"},
        "csi": {"driver": "d.example.com", "volumeHandle": "h", "nodeStageSecretRef": {**ref, "name": "mount"},
                "controllerPublishSecretRef": {**ref, "name": "control"}}})
    paths = [NS + "/persistentvolumeclaims/c", "/api/v1/persistentvolumes/pv", NS + "/secrets/mount"]

    def statuses(node):
        return [w.request(node, "GET", p).status for p in paths]
    t.check("nobody uses the claim", statuses("n1") == [403] * 3)
    w.pod("with-claim", "n1", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])
    t.check("claim, volume and its secret", statuses("n1") == [200] * 3 and statuses("n2") == [403] * 3)
    t.check("but no secret of controllers", w.request("n1", "GET", NS + "/secrets/control").status == 403)
    r = w.request("n1", "PATCH", NS + "/persistentvolumeclaims/c/status", {"status": {"capacity": {"storage": "1Gi"}}})
    t.check("its status may be written", r.status == 200, r)
    r = w.request("n1", "PATCH", NS + "/persistentvolumeclaims/c/status", {"metadata": {"labels": {"a": "b"}}})
    t.check("but nothing else", r.status == 403 and 'node "n1" is not allowed to update fields other than status.quantity and '
            "status.conditions: @@ -3,6 +3,9 @@" in message(r) and '\n+  "a": "b"\n' in message(r), r)
    refused(t, "nor the claim itself", w.request("n1", "PATCH", NS + "/persistentvolumeclaims/c", {}),
            ": can only get individual resources of this type")
    w.server.request("PATCH", NS + "/persistentvolumeclaims/c/status", {"status": {"phase": "Bound"}})
    r = w.server.request("PATCH", NS + "/persistentvolumeclaims/c", {"spec": {"resources": {"requests": {"storage": "2Gi"}}}})
    refused(t, "a claim without a class does not grow", r, "only dynamically provisioned pvc can be resized and the storageclass that provisions "
            "the pvc must support resize")


# ---- writing ----

def test_node_object(w, t):
    def patch(body, node="n1", sub=""):
        return w.request("n1", "PATCH", f"/api/v1/nodes/{node}{sub}", body)
    for what, body, text in [
            ("taints", {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}, 'node "n1" is not allowed to modify taints'),
            ("owners", {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]}},
             'node "n1" is not allowed to modify ownerReferences'),
            ("labels", {"metadata": {"labels": {"x.node-restriction.kubernetes.io/a": "b", "k8s.io/c": "d", "own": "e"}}},
             "is not allowed to modify labels: k8s.io/c, x.node-restriction.kubernetes.io/a")]:
        refused(t, "own node: " + what, patch(body), text)
    for label in ("own", "kubernetes.io/arch", "kubelet.kubernetes.io/x", "a.node.kubernetes.io/y", "example.com/z"):
        t.check("own node: label " + label, patch({"metadata": {"labels": {label: "1"}}}).status == 200)
    t.check("own status", patch({"status": {"capacity": {"cpu": "2"}}}, sub="/status").status == 200)
    refused(t, "another node", patch({"metadata": {"labels": {"a": "b"}}}, "n2"), 'node "n1" is not allowed to modify node "n2"')
    refused(t, "its status", patch({"status": {"capacity": {"cpu": "2"}}}, "n2", "/status"),
            'node "n1" is not allowed to modify node "n2"')
    refused(t, "deletion", w.request("n1", "DELETE", "/api/v1/nodes/n1"), 'cannot delete resource "nodes" in API group "" at the '
            "cluster scope")


def mirror(w, **changes):
    meta = {"name": "mirror", "annotations": MIRROR, "ownerReferences": [{
        "apiVersion": "v1", "kind": "Node", "name": "n1", "uid": w.n1["metadata"]["uid"], "controller": True}]}
    spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "x"}], "automountServiceAccountToken": False}
    owner = changes.pop("owner", None)
    if owner is not None:
        meta["ownerReferences"][0].update(owner)
    meta.update(changes.pop("meta", {}))
    spec.update(changes)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def test_mirror_pods(w, t):
    for what, body, text in [
            ("no mirror", mirror(w, meta={"annotations": {}}),
             'pod does not have "kubernetes.io/config.mirror" annotation, node "n1" can only create mirror pods'),
            ("elsewhere", mirror(w, nodeName="n2"), 'node "n1" can only create pods with spec.nodeName set to itself'),
            ("no owner", mirror(w, meta={"ownerReferences": []}),
             'node "n1" can only create pods with an owner reference set to itself'),
            ("two owners", mirror(w, meta={"ownerReferences": 2 * mirror(w)["metadata"]["ownerReferences"] + [
                {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]}),
             'node "n1" can only create pods with a single owner reference set to itself'),
            ("another owner", mirror(w, owner={"name": "n2"}), 'node "n1" can only create pods with an owner reference set to itself'),
            ("no controller", mirror(w, owner={"controller": False}),
             'node "n1" can only create pods with a controller owner reference set to itself'),
            ("blocking", mirror(w, owner={"blockOwnerDeletion": True}),
             'node "n1" must not set blockOwnerDeletion on an owner reference'),
            ("wrong uid", mirror(w, owner={"uid": "u"}), f"node n1 UID mismatch: expected u got {w.n1['metadata']['uid']}"),
            ("secret", mirror(w, volumes=[{"name": "v", "secret": {"secretName": "s"}}]),
             "a mirror pod may not reference secrets"),
            ("config map", mirror(w, volumes=[{"name": "v", "configMap": {"name": "s"}}]),
             'node "n1" can not create pods that reference configmaps'),
            ("claim", mirror(w, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "s"}}]),
             'node "n1" can not create pods that reference persistentvolumeclaims'),
            ("token", mirror(w, volumes=[{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]),
             "a mirror pod may not use ServiceAccountToken volume projections"),
            ("resource claim", mirror(w, resourceClaims=[{"name": "r", "resourceClaimName": "r"}]),
             'node "n1" can not create pods that reference resourceclaims')]:
        refused(t, "mirror pod: " + what, w.request("n1", "POST", NS + "/pods", body), text)
    r = w.request("n1", "POST", NS + "/pods", mirror(w, volumes=[{"name": "v", "hostPath": {"path": "/"}}]))
    t.check("mirror pod", r.status == 201, r)
    refused(t, "of which another node keeps its hands off", w.request("n2", "DELETE", NS + "/pods/mirror?gracePeriodSeconds=0"),
            'node "n2" can only delete pods with spec.nodeName set to itself')
    t.check("its own node removes it", w.request("n1", "DELETE", NS + "/pods/mirror?gracePeriodSeconds=0").status == 200)


def test_pods(w, t):
    w.pod("p1", "n1")
    w.pod("p2", "n2")
    path = NS + "/pods/"
    t.check("status of own pods", w.request("n1", "PATCH", path + "p1/status", {"status": {"phase": "Running"}}).status == 200)
    refused(t, "of others", w.request("n1", "PATCH", path + "p2/status", {"status": {"phase": "Running"}}),
            'node "n1" can only update pod status for pods with spec.nodeName set to itself')
    refused(t, "labels through status", w.request("n1", "PATCH", path + "p1/status", {"metadata": {"labels": {"a": "b"}}}),
            'node "n1" cannot update labels through pod status')
    refused(t, "claims through status", w.request("n1", "PATCH", path + "p1/status", {
        "status": {"resourceClaimStatuses": [{"name": "a"}]}}), 'node "n1" cannot update resource claim statues')
    refused(t, "the pod itself", w.request("n1", "PATCH", path + "p1", {"metadata": {"labels": {"a": "b"}}}),
            'cannot patch resource "pods" in API group "" in the namespace "t"')

    def evict(name):
        return w.request("n1", "POST", path + name + "/eviction", {
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, "deleteOptions": {"gracePeriodSeconds": 0}})
    refused(t, "eviction of others", evict("p2"), "node n1 can only evict pods with spec.nodeName set to itself")
    t.check("eviction of own pods", evict("p1").status == 201)


def test_tokens(w, t):
    p1, p2 = w.pod("t1", "n1", volumes=[{"name": "v", "projected": {"sources": [{"serviceAccountToken": {
        "path": "t", "audience": "vault"}}]}}]), w.pod("t2", "n2")

    def ask(spec, account="default"):
        return w.request("n1", "POST", f"{NS}/serviceaccounts/{account}/token",
                         {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})

    def bound(pod, audiences, **more):
        return {"audiences": audiences, "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"],
                                                           "uid": pod["metadata"]["uid"], **more}}
    refused(t, "token: unbound", ask({}), "node requested token not bound to a pod")
    refused(t, "token: without uid", ask(bound(p1, [], uid="")), "node requested token with a pod binding without a uid")
    refused(t, "token: wrong uid", ask(bound(p1, [], uid="x")), "the UID in the bound object reference (x) does not match the UID "
            "in record. The object might have been deleted and then recreated")
    refused(t, "token: no pod", ask(bound(p1, [], name="none")), 'pod "none" not found', 404)
    refused(t, "token: pod of another node", ask(bound(p2, [])), "node requested token bound to a pod scheduled on a different node")
    refused(t, "token: account of no pod", ask(bound(p1, []), "other"), ": no relationship found between node 'n1' and this object")
    refused(t, "token: two audiences", ask(bound(p1, ["vault", "x"])), "node may only request 0 or 1 audiences")
    refused(t, "token: foreign audience", ask(bound(p1, ["x"])), 'audience "x" not found in pod spec volume, system:node:n1 is not '
            "authorized to request tokens for this audience")
    for audiences in ([], ["vault"]):
        r = ask(bound(p1, audiences))
        t.check(f"token: {audiences}", r.status == 201 and r.json["status"]["token"], r)
    w.allow("system:node:n1", "audience-x", rule("", ["x"], ["request-serviceaccounts-token-audience"]))
    t.check("token: audience that was granted", ask(bound(p1, ["x"])).status == 201)


def test_own_objects(w, t):
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "n2"}, "spec": {}}
    text = "can only access node lease with the same name as the requesting node"
    refused(t, "lease of another node", w.request("n1", "POST", LEASES, lease), text)
    lease["metadata"]["name"] = "n1"
    t.check("own lease", w.request("n1", "POST", LEASES, lease).status == 201)
    t.check("its renewal", w.request("n1", "PATCH", LEASES + "/n1", {"spec": {"holderIdentity": "n1"}}).status == 200)
    csi = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "n2"}, "spec": {"drivers": []}}
    refused(t, "CSINode of another node", w.request("n1", "POST", "/apis/storage.k8s.io/v1/csinodes", csi),
            "can only access CSINode with the same name as the requesting node")

    def resource_slice(name, node):
        return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name}, "spec": {
            "driver": "d.example.com", "nodeName": node, "pool": {"name": node, "resourceSliceCount": 1}}}
    refused(t, "slice of another node", w.request("n1", "POST", SLICES, resource_slice("s", "n2")),
            "can only create ResourceSlice with the same NodeName as the requesting node")
    t.check("own slice", w.request("n1", "POST", SLICES, resource_slice("s1", "n1")).status == 201)
    w.server.request("POST", SLICES, resource_slice("s2", "n2"))
    t.check("slices are read by name", [w.request("n1", "GET", f"{SLICES}/{s}").status for s in ("s1", "s2")] == [200, 403])
    refused(t, "deletion of another's slice", w.request("n1", "DELETE", SLICES + "/s2"),
            ": no relationship found between node 'n1' and this object")
    r = w.request("n1", "DELETE", SLICES + "?fieldSelector=spec.nodeName%3Dn1")
    t.check("own slices are deleted together", r.status == 200 and w.server.request("GET", SLICES + "/s2").status == 200, r)


# ---- certificates ----

def csr(name, pem, signer, usages=("client auth",)):
    return {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name},
            "spec": {"request": base64.b64encode(pem).decode(), "signerName": signer, "usages": list(usages)}}


def test_certificate_requests(w, t):
    client, kubelet = "kubernetes.io/kube-apiserver-client", "kubernetes.io/kube-apiserver-client-kubelet"
    r = w.server.request("POST", CSRS, csr("masters", w.signing_request("masters", "/O=devs/O=system:masters/CN=x"), client))
    refused(t, "nobody asks to be a master", r, f"use of {client} signer with system:masters group is not allowed")
    r = w.request("n1", "POST", CSRS, csr("as-n2", w.signing_request("as-n2", "/O=system:nodes/CN=system:node:n2"), kubelet))
    refused(t, "no node asks as another", r, "can only create a node CSR with CN=system:node:n1")
    r = w.request("n1", "POST", CSRS, csr("as-n1", w.signing_request("as-n1", "/O=system:nodes/CN=system:node:n1"), kubelet))
    t.check("a node asks as itself", r.status == 201, r)


def test_approval(w, t):
    signer = "example.com/one"
    for name in ("a", "b", "c"):
        w.server.request("POST", CSRS, csr(name, w.signing_request(name, "/CN=x"), signer))
    w.allow("alice", "approver", rule("certificates.k8s.io", ["certificatesigningrequests"], ["get", "list"]),
            rule("certificates.k8s.io", ["certificatesigningrequests/approval", "certificatesigningrequests/status"], ["update", "patch"]))

    def certificate(verb, name):
        return w.server.kubectl("certificate", verb, name, "--token", "alice-token", "--client-certificate=", "--client-key=", check=False)

    def alice_writes(name, sub, **status):
        o = w.server.request("GET", f"{CSRS}/{name}").json
        o["status"].update(status)
        return w.server.request("PUT", f"{CSRS}/{name}/{sub}", o, token="alice-token")
    approved = [{"type": "Approved", "status": "True", "reason": "x"}]
    refused(t, "approval without the signer's right", alice_writes("a", "approval", conditions=approved),
            f'user not permitted to approve requests with signerName "{signer}"')
    kubeconfig = w.server.kubeconfig
    w.server.kubeconfig = os.path.join(w.folder, "alice.conf")
    with open(w.server.kubeconfig, "w") as f:
        json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "c",
                   "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                   "clusters": [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{w.server.port}",
                                                          "certificate-authority": w.pki + "/ca.crt"}}],
                   "users": [{"name": "u", "user": {"token": "alice-token"}}]}, f)
    try:
        r = certificate("approve", "a")
        t.check("kubectl certificate approve without it", r.returncode and "user not permitted to approve" in r.stderr, r)
        w.allow("alice", "approve-one", rule("certificates.k8s.io", ["signers"], ["approve"], resourceNames=["example.com/*"]))
        r = certificate("approve", "a")
        t.check("kubectl certificate approve with it", r.returncode == 0, r)
        t.check("kubectl certificate deny", certificate("deny", "b").returncode == 0)
    finally:
        w.server.kubeconfig = kubeconfig
    types = [w.server.request("GET", f"{CSRS}/{n}").json["status"]["conditions"][0]["type"] for n in "ab"]
    t.check("both are known", types == ["Approved", "Denied"], types)
    with open(w.contexts["n1"][0], "rb") as f:
        certificate_text = base64.b64encode(f.read()).decode()
    refused(t, "signing without the right", alice_writes("a", "status", certificate=certificate_text),
            f'user not permitted to sign requests with signerName "{signer}"')
    w.allow("alice", "sign-one", rule("certificates.k8s.io", ["signers"], ["sign"], resourceNames=[signer]))
    t.check("signing with it", alice_writes("a", "status", certificate=certificate_text).status == 200)


# ---- owners ----

def test_owners(w, t):
    w.make(NS + "/configmaps", "ConfigMap", "owner")
    w.allow("alice", "maps", rule("", ["configmaps"], ["get", "create", "update", "patch"]))
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "u"}

    def create(name, **more):
        return w.server.request("POST", NS + "/configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "name": name, "ownerReferences": [{**owner, **more}]}}, token="alice-token")
    t.check("a new object may have an owner", create("o1").status == 201)
    refused(t, "which it may not block", create("o2", blockOwnerDeletion=True), "cannot set blockOwnerDeletion if an ownerReference "
            "refers to a resource you can't set finalizers on: , <nil>")
    refused(t, "unknown owner", create("o2", blockOwnerDeletion=True, kind="Foo", apiVersion="a/v1"), "cannot set blockOwnerDeletion in "
            'this case because cannot find RESTMapping for APIVersion a/v1 Kind Foo: no matches for kind "Foo" in version "a/v1"')
    r = w.server.request("PATCH", NS + "/configmaps/o1", {"metadata": {"ownerReferences": []}}, token="alice-token")
    refused(t, "owners change only by who may delete", r, "cannot set an ownerRef on a resource you can't delete: , <nil>")
    w.allow("alice", "finalizers", rule("", ["configmaps/finalizers"], ["update"]), rule("", ["configmaps"], ["delete"]))
    t.check("blocking with the right", create("o2", blockOwnerDeletion=True).status == 201)
    r = w.server.request("PATCH", NS + "/configmaps/o1", {"metadata": {"ownerReferences": []}}, token="alice-token")
    t.check("changing with the right", r.status == 200, r)


def main():
    with cluster.Folder() as folder:
        w = World(folder)

        def with_world(f):
            def run(t):
                f(w, t)
            run.__name__ = f.__name__
            return run
        tests = [test_reads, test_graph, test_volumes, test_node_object, test_mirror_pods, test_pods, test_tokens, test_own_objects,
                 test_certificate_requests, test_approval, test_owners]
        try:
            tap.run([with_world(f) for f in tests])
        finally:
            w.server.__exit__()


if __name__ == "__main__":
    main()
