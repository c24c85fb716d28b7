#!/usr/bin/env python3
"""A node joins with a bootstrap token, gets its certificates, registers, and works with no more rights than nodes have; its network comes late;
its status and lease are kept; kubelets are restarted, the Node is deleted, the machine goes down; a kubelet on its own. Needs C8S, the program
to test, with c8s-pod beside it, and root."""
import base64
import datetime
import http.client
import ipaddress
import json
import os
import signal
import ssl
import stat
import subprocess
import sys
import threading
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import images  # noqa: E402
import logind  # noqa: E402
import nodes  # noqa: E402
import peers  # noqa: E402
import tap  # noqa: E402
from cluster import free_port, wait_until  # noqa: E402

NODE = "/api/v1/nodes/" + nodes.NODE
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/" + nodes.NODE
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
ADDRESS = "198.51.100.7"
TOKEN = "abcdef.0123456789abcdef"
NO_NETWORK = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: "
CONFIG = {"readOnlyPort": free_port(), "nodeStatusUpdateFrequency": "1s", "nodeStatusReportFrequency": "5m", "nodeLeaseDurationSeconds": 4,
          "rotateCertificates": True, "serverTLSBootstrap": True,
          "registerWithTaints": [{"key": "example.com/new", "value": "yes", "effect": "NoSchedule"}], "providerID": "test://n1", "maxPods": 20,
          "kubeReserved": {"cpu": "200m", "memory": "100Mi", "ephemeral-storage": "1Gi"}, "systemReserved": {"cpu": "100m", "memory": "50Mi"},
          "enforceNodeAllocatable": ["pods"], "evictionHard": {"memory.available": "10Mi"}, "shutdownGracePeriod": "8s",
          "shutdownGracePeriodCriticalPods": "4s"}
MEBI = 1 << 20


# ---- who signs certificates: what a controller does in a whole cluster ----

class Signer:
    """Approves and signs whatever is asked for, by openssl(1), as soon as it is there. The first one for a client has little time left."""

    def __init__(self, n):
        self.n, self.signed, self.pki = n, [], os.path.join(n.server.folder, "data", "pki")
        self.folder = os.path.join(n.folder, "signer")
        os.makedirs(self.folder)
        with open(self.path("ca.cnf"), "w") as f:
            f.write(f"[ca]\ndefault_ca=x\n[x]\ndatabase={self.path('index')}\nnew_certs_dir={self.folder}\ndefault_md=sha256\npolicy=p\nrand_serial=yes\n"
                    "unique_subject=no\ncopy_extensions=copy\n[p]\norganizationName=supplied\ncommonName=supplied\n"
                    "[client]\nextendedKeyUsage=clientAuth\n[server]\nextendedKeyUsage=serverAuth\n")
        with open(self.path("index"), "w"):
            pass
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.ending = False
        self.thread.start()

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self):
        while not self.ending:
            for csr in self.n.get(CSRS).json["items"]:
                if "certificate" not in csr["status"]:
                    self.sign(csr)
            time.sleep(0.05)

    def sign(self, csr):
        with open(self.path("csr"), "wb") as f:
            f.write(base64.b64decode(csr["spec"]["request"]))
        now, client = datetime.datetime.now(datetime.timezone.utc), csr["spec"]["signerName"].endswith("client-kubelet")
        first = client and not any(s["spec"]["signerName"] == csr["spec"]["signerName"] for s in self.signed)
        begin, end = (-89, 11) if first else (-5, 3600)
        begin, end = ((now + datetime.timedelta(seconds=s)).strftime("%Y%m%d%H%M%SZ") for s in (begin, end))
        subprocess.run([peers.find("openssl", "openssl"), "ca", "-batch", "-notext", "-config", self.path("ca.cnf"), "-in", self.path("csr"),
                        "-out", self.path("crt"), "-cert", f"{self.pki}/ca.crt", "-keyfile", f"{self.pki}/ca.key", "-startdate", begin,
                        "-enddate", end, "-extensions", "client" if client else "server"], check=True, capture_output=True)
        with open(self.path("crt"), "rb") as f:
            certificate = base64.b64encode(f.read()).decode()
        path = f"{CSRS}/{csr['metadata']['name']}"
        csr["status"] = {"conditions": [{"type": "Approved", "status": "True", "reason": "Test", "message": "for a test"}]}
        csr = self.n.server.request("PUT", path + "/approval", csr).json
        csr["status"]["certificate"] = certificate
        answer = self.n.server.request("PUT", path + "/status", csr)
        if answer.status != 200:
            raise RuntimeError(f"not signed: {answer}")
        self.signed.append(csr)

    def wait(self, signer, n):
        """Until so many for this signer have been signed; the last of them."""
        def found():
            return [c for c in self.signed if c["spec"]["signerName"] == "kubernetes.io/" + signer]
        wait_until(lambda: len(found()) >= n, 20, f"request {n} for {signer}")
        return found()[n - 1]

    def text(self, csr):
        return subprocess.run([peers.find("openssl", "openssl"), "req", "-noout", "-text"], input=base64.b64decode(csr["spec"]["request"]),
                              check=True, capture_output=True).stdout.decode()

    def close(self):
        self.ending = True
        self.thread.join()


def write_bootstrap(n):
    """A token that may ask for certificates, and a kubeconfig with it."""
    n.server.request("POST", "/api/v1/namespaces/kube-system/secrets", {
        "metadata": {"name": "bootstrap-token-abcdef"}, "type": "bootstrap.kubernetes.io/token", "stringData": {
            "token-id": TOKEN[:6], "token-secret": TOKEN[7:], "usage-bootstrap-authentication": "true",
            "auth-extra-groups": "system:bootstrappers:test"}})
    n.server.request("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
        "metadata": {"name": "join"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:node-bootstrapper"},
        "subjects": [{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "system:bootstrappers:test"}]})
    with open(f"{n.server.folder}/data/pki/ca.crt", "rb") as f:
        ca = base64.b64encode(f.read()).decode()
    with open(f"{n.folder}/bootstrap.conf", "w") as f:
        json.dump({"kind": "Config", "apiVersion": "v1", "current-context": "c", "contexts": [
            {"name": "c", "context": {"cluster": "c", "user": "u"}}], "users": [{"name": "u", "user": {"token": TOKEN}}], "clusters": [
                {"name": "c", "cluster": {"server": f"https://127.0.0.1:{n.server.port}", "certificate-authority-data": ca}}]}, f)


# ---- tests ----

def test_joins(t, n, signer):
    n.spawn_kubelet()
    csr = signer.wait("kube-apiserver-client-kubelet", 1)
    spec, text = csr["spec"], signer.text(csr)
    t.check("the token asks for a client certificate", spec["username"] == "system:bootstrap:abcdef" and
            csr["metadata"]["name"].startswith("node-csr-") and spec["usages"] == ["digital signature", "client auth"] and
            "O = system:nodes, CN = system:node:n1" in text, (csr, text))
    wait_until(lambda: n.get(NODE).status == 200, 20, "the node to register")
    pki = os.path.join(n.root, "pki")
    again = signer.wait("kube-apiserver-client-kubelet", 2)
    t.check("who has it asks for the next before it ends", again["spec"]["username"] == "system:node:n1" and
            again["metadata"]["name"].startswith("csr-") and "system:nodes" in again["spec"]["groups"], again)
    certificate = base64.b64decode(again["status"]["certificate"]).decode()

    def current():
        with open(f"{pki}/kubelet-client-current.pem") as f:
            return f.read()
    wait_until(lambda: current().startswith(certificate), 10, "the second certificate")
    file = os.readlink(f"{pki}/kubelet-client-current.pem")
    t.check("which takes its place", "PRIVATE KEY" in current() and os.path.dirname(file) == pki and
            os.path.basename(file).startswith("kubelet-client-20") and stat.S_IMODE(os.stat(file).st_mode) == 0o600 and
            not os.path.exists(f"{pki}/kubelet-client.key.tmp"), (file, os.listdir(pki)))
    with open(n.kubeconfig) as f:
        text = f.read()
    pair = os.path.relpath(f"{pki}/kubelet-client-current.pem", n.folder)
    t.check("its kubeconfig has no token but the pair", TOKEN not in text and text.count(pair) == 2 and
            stat.S_IMODE(os.stat(n.kubeconfig).st_mode) == 0o600, text)


def status_of(url, context):
    try:
        with urllib.request.urlopen(url, context=context) as r:
            return r.status
    except urllib.error.HTTPError as e:
        return e.code


def test_serving_certificate(t, n, signer):
    csr = signer.wait("kubelet-serving", 1)
    text = signer.text(csr)
    t.check("a serving certificate is asked for", csr["spec"]["usages"] == ["digital signature", "server auth"] and
            csr["spec"]["username"] == "system:node:n1" and "DNS:n1, IP Address:" + ADDRESS in text, (csr, text))
    context = ssl.create_default_context(cafile=f"{n.server.folder}/data/pki/ca.crt")

    def answer():
        try:
            return status_of(f"https://{ADDRESS}:{n.port}/healthz", context)
        except OSError as e:  # not one of the cluster's
            return str(e)
    t.check("it is served with", tap.wait_for(lambda: answer() == 401, 10), answer())


def quantity(text):
    """In thousandths."""
    units = {"Ki": 1 << 10, "Mi": MEBI, "Gi": 1 << 30, "m": 0.001}
    unit = next((u for u in units if text.endswith(u)), "")
    return int(int(text[:len(text) - len(unit)]) * units.get(unit, 1) * 1000)


def test_node_object(t, n, signer):
    node = n.get(NODE).json
    meta, spec, status = node["metadata"], node["spec"], node["status"]
    arch = images.ARCH
    t.check("labels", meta["labels"] == {"beta.kubernetes.io/arch": arch, "beta.kubernetes.io/os": "linux", "disk": "ssd", "kubernetes.io/arch": arch,
            "kubernetes.io/hostname": "n1", "kubernetes.io/os": "linux", "node.kubernetes.io/kind": "test"}, meta["labels"])
    t.check("annotations", meta["annotations"] == {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}, meta)
    managers = {(m["manager"], m["operation"], m.get("subresource", "")) for m in meta["managedFields"]}
    t.check("field managers", managers <= {("kubelet", "Update", ""), ("kubelet", "Update", "status")}, managers)
    t.check("the spec", spec == {"providerID": "test://n1", "taints": [CONFIG["registerWithTaints"][0],
            {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]}, spec)
    t.check("what the status has", list(status) == ["capacity", "allocatable", "conditions", "addresses", "daemonEndpoints", "nodeInfo"] +
            ["images"] * ("images" in status) + ["runtimeHandlers", "features", "declaredFeatures"], list(status))
    t.check("addresses and port", status["addresses"] == [{"type": "InternalIP", "address": ADDRESS}, {"type": "Hostname", "address": "n1"}] and
            status["daemonEndpoints"] == {"kubeletEndpoint": {"Port": n.port}}, status)
    check_resources(t, n, status["capacity"], status["allocatable"])
    info = status["nodeInfo"]
    with open("/proc/sys/kernel/random/boot_id") as f:
        boot = f.read().strip()
    want = ["machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion", "kubeProxyVersion",
            "operatingSystem", "architecture"]
    t.check("the machine", list(info)[:10] == want and info["bootID"] == boot and info["kernelVersion"] == os.uname().release and
            info["kubeletVersion"].startswith("v1.36.") and info["kubeProxyVersion"] == "" and info["operatingSystem"] == "linux" and
            info["architecture"] == arch and info["containerRuntimeVersion"].startswith("c8s://"), info)
    t.check("features", status["features"] == {"supplementalGroupsPolicy": True} and status["declaredFeatures"] == [
        "ExtendWebSocketsToKubelet", "InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers",
        "RestartAllContainersOnContainerExits"] and status["runtimeHandlers"][0]["name"] == "" and
        list(status["runtimeHandlers"][0]["features"]) == ["recursiveReadOnlyMounts", "userNamespaces"], status)


def test_csi_node(t, n, signer):
    uid = n.get(NODE).json["metadata"]["uid"]
    csi = n.get("/apis/storage.k8s.io/v1/csinodes/n1").json
    plugins = ["aws-ebs", "azure-disk", "azure-file", "cinder", "gce-pd", "portworx-volume", "vsphere-volume"]
    t.check("a CSINode without drivers", csi["spec"] == {"drivers": None} and csi["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": uid}] and csi["metadata"]["annotations"] == {
            "storage.alpha.kubernetes.io/migrated-plugins": ",".join("kubernetes.io/" + p for p in plugins)}, csi)


def test_read_only_port(t, n, signer):
    def ask(path, method="GET", body=None):
        c = http.client.HTTPConnection(ADDRESS, CONFIG["readOnlyPort"], timeout=20)
        c.request(method, path, body)
        r = c.getresponse()
        return r.status, r.read().decode()
    answers = {path: ask(path) for path in ("/healthz", "/pods", "/stats/summary", "/metrics", "/metrics/cadvisor", "/metrics/resource", "/metrics/probes")}
    t.check("the read-only port asks nobody who they are", all(status == 200 for status, _ in answers.values()) and answers["/healthz"][1] == "ok" and
            json.loads(answers["/pods"][1])["kind"] == "PodList" and json.loads(answers["/stats/summary"][1])["node"]["nodeName"] == "n1" and
            "kubelet_node_name" in answers["/metrics"][1], answers)
    closed = [("GET", "/containerLogs/default/p/c"), ("POST", "/exec/default/p/c?command=id"), ("POST", "/run/default/p/c?cmd=id"), ("GET", "/runningpods/"),
              ("POST", "/attach/default/p/c"), ("POST", "/portForward/default/p"), ("GET", "/logs/")]
    t.check("and has nothing that does anything", all(ask(path, method) == (405, "Debug endpoints are disabled.\n") for method, path in closed) and
            ask("/configz")[0] == 404, [ask(path, method) for method, path in closed])


def check_resources(t, n, capacity, allocatable):
    t.check("capacity", set(capacity) >= {"cpu", "ephemeral-storage", "memory", "pods"} and capacity["cpu"] == str(os.cpu_count()) and
            capacity["pods"] == "20" and capacity["memory"].endswith("Ki"), capacity)
    less = {name: quantity(capacity[name]) - quantity(allocatable[name]) for name in capacity}
    t.check("reserved resources and what evictions keep are not allocatable", less == {**dict.fromkeys(capacity, 0), "cpu": 300,
            "memory": 160 * MEBI * 1000, "ephemeral-storage": 1024 * MEBI * 1000}, (capacity, allocatable))
    limit = f"/sys/fs/cgroup/memory{n.cgroup}/kubepods/memory.limit_in_bytes"
    if os.path.exists(limit):
        with open(limit) as f:
            t.check("pods together cannot take more", int(f.read()) == quantity(capacity["memory"]) // 1000 - 150 * MEBI)


def conditions(n):
    return {c["type"]: (c["status"], c["reason"], c["message"]) for c in n.get(NODE).json["status"]["conditions"]}


def node_events(n):
    return [(e["reason"], e["message"]) for e in n.get("/api/v1/namespaces/default/events").json["items"] if e["involvedObject"]["kind"] == "Node"]


def network_events(n):
    return [(e["metadata"]["name"], e["count"]) for e in n.get("/api/v1/namespaces/default/events").json["items"] if e["reason"] == "NetworkNotReady"]


def test_network_comes_late(t, n, signer):
    found = conditions(n)
    ready = found.pop("Ready")
    t.check("no pressure", found == {
        "MemoryPressure": ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        "DiskPressure": ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        "PIDPressure": ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available")}, found)
    t.check("without a network the node is not ready", ready[:2] == ("False", "KubeletNotReady") and ready[2].startswith(NO_NETWORK), ready)
    n.create(n.make("waits"))
    n.create(n.make("host", spec={"hostNetwork": True}))
    n.wait_ready("host")
    wait_until(lambda: n.events("waits"), 10, "an event")
    t.check("pods wait for the network, unless they use the node's", n.events("waits")[0] == (
        "NetworkNotReady", "network is not ready: " + ready[2]) and n.phase("waits") == "Pending", n.events("waits"))
    n.write_network()
    began = time.monotonic()
    wait_until(n.is_ready, 10, "the node to be ready")
    t.check("with a network the node is ready at once", time.monotonic() - began < 5 and
            conditions(n)["Ready"] == ("True", "KubeletReady", "kubelet is posting ready status"), time.monotonic() - began)
    pod = n.wait_ready("waits")
    t.check("and pods that waited start", pod["status"]["podIP"].startswith("10.214."), pod["status"])
    events = [reason for reason, _ in n.events("waits")]
    t.check("what is told of them", events == ["NetworkNotReady", "Pulled", "Created", "Started"] and
            ("NodeReady", "Node n1 status is now: NodeReady") in node_events(n), (events, node_events(n)))
    t.check("what is told of the node", {("Starting", "Starting kubelet."), ("NodeAllocatableEnforced", "Updated Node Allocatable limit across pods"),
            *((r, f"Node n1 status is now: {r}") for r in ("NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID"))} <=
            set(node_events(n)), node_events(n))
    v1 = os.path.isdir("/sys/fs/cgroup/memory")
    t.check("and of old control groups", v1 == any(r == "CgroupV1" and m.startswith("cgroup v1 detected. ") for r, m in node_events(n)), node_events(n))


def test_rights_of_a_node(t, n, signer):
    """What pods need of other objects, and those of the API that pods call, with no more rights than a node's."""
    n.server.request("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "m"}, "data": {"k": "from-map"}})
    n.server.request("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}, "stringData": {"k": "from-secret"}})
    n.server.request("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "others"}, "stringData": {"k": "x"}})
    log = n.run("needs", "sh", "-c", "cat /m/k; echo; echo $S; cut -d. -f1 /var/run/secrets/kubernetes.io/serviceaccount/token | wc -l",
                env=[{"name": "S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}], volumeMounts=[{"name": "m", "mountPath": "/m"}],
                spec={"volumes": [{"name": "m", "configMap": {"name": "m"}}]})
    t.check("a pod with maps, secrets and tokens", log.split() == ["from-map", "from-secret", "1"], log)
    pem = os.path.join(n.root, "pki", "kubelet-client-current.pem")
    context = ssl.create_default_context(cafile=f"{n.server.folder}/data/pki/ca.crt")
    context.load_cert_chain(pem)
    codes = [status_of(f"https://127.0.0.1:{n.server.port}/api/v1/namespaces/default/secrets/{name}", context) for name in ("s", "others")]
    t.check("it may read what its pods need, and nothing else", codes == [200, 403], codes)
    with open(os.path.join(n.manifests, "static.json"), "w") as f:
        pod = n.make("static")
        del pod["spec"]["nodeName"]
        json.dump(pod, f)
    n.wait_ready("static-n1")
    t.check("and shows its static pods", True)
    os.unlink(os.path.join(n.manifests, "static.json"))
    n.wait_gone("static-n1")
    t.check("none of what it asked for was forbidden", "orbidden" not in n.said(), [x for x in n.said().splitlines() if "orbidden" in x])


def test_credential_provider(t, n, signer):
    with n.locked as registry:
        name = registry.put(images.Image(images.busybox(), config={"Cmd": ["sh"]}), "team/app", "1")
        log = n.run("paid", "echo", "bought", image=name)
        with open(os.path.join(n.folder, "asked")) as f:
            asked = json.load(f)
        t.check("an image comes with what a provider knows", log == "bought\n", log)
        t.check("the provider is asked", asked == {"kind": "CredentialProviderRequest", "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
                "image": registry.host + "/team/app"}, asked)


def write_provider(n):
    """A registry that wants a password, and a program that knows it."""
    n.locked, folder = images.Registry(os.path.join(n.folder, "locked"), users=True), os.path.join(n.folder, "providers")
    user, password = n.locked.CREDS.split(":")
    answer = {"kind": "CredentialProviderResponse", "apiVersion": "credentialprovider.kubelet.k8s.io/v1", "cacheKeyType": "Registry",
              "auth": {n.locked.host: {"username": user, "password": password}}}
    os.makedirs(folder)
    with open(os.path.join(folder, "knows"), "w") as f:
        f.write(f"#!/bin/sh\ncat > {n.folder}/asked\necho '{json.dumps(answer)}'\n")
        os.chmod(f.fileno(), 0o755)
    with open(os.path.join(n.folder, "providers.yaml"), "w") as f:
        json.dump({"kind": "CredentialProviderConfig", "apiVersion": "kubelet.config.k8s.io/v1", "providers": [{
            "name": "knows", "matchImages": [n.locked.host + "/team"], "defaultCacheDuration": "0s",
            "apiVersion": "credentialprovider.kubelet.k8s.io/v1"}]}, f)


def test_status_and_lease(t, n, signer):
    """Once all that has happened is told: told is what changes, and that the node is alive by the lease."""
    def version():
        return n.get(NODE).json["metadata"]["resourceVersion"]
    image = wait_until(lambda: next((i for i in n.get(NODE).json["status"]["images"] if n.image in i["names"]), None), 10, "the image in the status")
    name = n.image.rsplit(":", 1)[0]
    t.check("images", image["names"][0].startswith(name + "@sha256:") and image["names"].index(n.image) > 0 and image["sizeBytes"] > 100000, image)
    last = [version(), time.monotonic()]

    def quiet():
        if version() != last[0]:
            last[:] = [version(), time.monotonic()]
        return time.monotonic() - last[1] > 2.5
    lease, begin, renewals = n.get(LEASE).json, time.monotonic(), set()

    def look():
        renewals.add(n.get(LEASE).json["spec"]["renewTime"])
        return quiet()
    t.check("a status that does not change is not told again", tap.wait_for(look, 8), last)
    passed = time.monotonic() - begin
    t.check("the lease is of the node, and is renewed", lease["spec"]["holderIdentity"] == "n1" and lease["spec"]["leaseDurationSeconds"] == 4 and
            lease["metadata"]["ownerReferences"] == [{"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": n.get(NODE).json["metadata"]["uid"]}] and
            2 <= len(renewals) <= passed + 2, (lease, renewals, passed))
    n.server.request("PATCH", NODE, {"spec": {"unschedulable": True}})
    t.check("that it takes no new pods is told", tap.wait_for(lambda: (
        "NodeNotSchedulable", "Node n1 status is now: NodeNotSchedulable") in node_events(n), 5), node_events(n))
    n.server.request("PATCH", NODE, {"spec": {"unschedulable": None}})


def test_own_network(t, n, signer):
    """A kubelet starts again, with no network but what the API says."""
    before = n.pod("waits")["status"]
    n.kill_kubelet(signal.SIGTERM)
    os.unlink(os.path.join(n.net, "10-test.conflist"))
    n.server.request("PATCH", NODE, {"spec": {"podCIDR": "10.215.7.0/24", "podCIDRs": ["10.215.7.0/24"]}})
    n.start_kubelet()
    n.create(n.make("inside"))
    pod = n.wait_ready("inside")
    t.check("pods get addresses of the network that the API gives to the node", ipaddress.ip_address(pod["status"]["podIP"]) in
            ipaddress.ip_network("10.215.7.0/24"), pod["status"])
    t.check("the runtime has written it down", len(os.listdir(n.net)) == 1, os.listdir(n.net))
    after = n.pod("waits")["status"]
    t.check("pods from before run on", after["containerStatuses"][0]["containerID"] == before["containerStatuses"][0]["containerID"] and
            after["podIP"] == before["podIP"] and after["containerStatuses"][0]["restartCount"] == 0, after)
    wait_until(n.is_ready, 10, "the node to be ready")


def test_node_is_deleted(t, n, signer):
    """As Kubernetes' kubelet: it makes its Node when it starts, and only then."""
    before = n.get(NODE).json
    running = n.pod("inside")["status"]["containerStatuses"][0]["containerID"]
    for path in (NODE, LEASE):  # as a garbage collector does, one after the other
        n.server.request("DELETE", path)
    wait_until(lambda: "error getting node" in n.said(), 10, "the kubelet to see it")
    t.check("a Node that was deleted is not made again", n.get(NODE).status == 404 and n.get(LEASE).status == 404)
    told = network_events(n)
    n.kill_kubelet()
    n.start_kubelet()
    wait_until(lambda: n.get(NODE).status == 200, 10, "the node to register")
    after = n.get(NODE).json
    t.check("the next kubelet makes it anew", after["metadata"]["labels"] == before["metadata"]["labels"] and
            after["metadata"]["uid"] != before["metadata"]["uid"] and after["spec"]["taints"][0] == CONFIG["registerWithTaints"][0], after)
    wait_until(n.is_ready, 10, "the node to be ready")
    lease = wait_until(lambda: (r := n.get(LEASE)).status == 200 and r.json["metadata"], 10, "the lease of the new node")
    t.check("with its lease", lease["ownerReferences"][0]["uid"] == after["metadata"]["uid"], lease)
    t.check("and pods run on", n.pod("inside")["status"]["containerStatuses"][0]["containerID"] == running)
    t.check("for which nothing was wrong with the network", network_events(n) == told, (told, network_events(n)))


def test_shutdown(t, n, signer, login):
    n.create(n.make("slow", ["sh", "-c", "trap 'sleep 0.5; exit 0' TERM; while :; do sleep 0.1; done"], spec={"terminationGracePeriodSeconds": 30}))
    n.create(n.make("critical", spec={"priorityClassName": "system-node-critical"}))
    n.wait_ready("slow")
    n.wait_ready("critical")
    t.check("logind is asked to wait", login.wait_calls("Inhibit", 1))
    inhibits = login.calls.count("Inhibit")
    watch = n.watch()
    wait_until(lambda: watch.pods.get(("default", "critical")), 10, "the watch")
    login.prepare_for_shutdown(True)
    for name in ("slow", "critical"):
        status = watch.wait(name, lambda p: p["status"]["phase"] in ("Failed", "Succeeded"), 20)["status"]
        t.check(f"{name}: pods end before the machine does", (status["phase"], status.get("reason"), status.get("message")) == (
            "Failed", "Terminated", "Pod was terminated in response to imminent node shutdown.") and any(
                c["type"] == "DisruptionTarget" and c["reason"] == "TerminationByKubelet" for c in status["conditions"]), status)
    ended = {name: watch.pods["default", name][-1]["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"] for name in ("slow", "critical")}
    t.check("critical ones last", ended["slow"] <= ended["critical"], ended)
    t.check("then it may go on", login.wait_released(20))
    t.check("the node says so", conditions(n)["Ready"] == ("False", "KubeletNotReady", "node is shutting down") and
            ("Shutdown", "Shutdown manager detected shutdown event") in node_events(n), (conditions(n), node_events(n)))
    n.create(n.make("late"))
    status = n.wait_phase("late", "Failed", 10)["status"]
    t.check("no pod starts any more", (status["reason"], status["message"]) == (
        "NodeShutdown", "Pod was rejected: Pod was rejected as the node is shutting down."), status)
    login.prepare_for_shutdown(False)
    t.check("a shutdown that was called off", login.wait_calls("Inhibit", inhibits + 1) and tap.wait_for(n.is_ready, 10), conditions(n))


def test_alone(t, n, signer):
    """Without a kubeconfig: pods of files run, and nobody is told."""
    n.kill_kubelet(signal.SIGTERM)
    version = n.get(NODE).json["metadata"]["resourceVersion"]
    flags, kubeconfig, config, n.flags, n.kubeconfig = n.flags, n.kubeconfig, n.more, (), ""
    for more, what in (({}, "authentication"), ({"authentication": {"webhook": {"enabled": False}}}, "authorization")):
        n.more = {**config, **more}
        begin = n.spawn_kubelet()
        t.check(f"a kubelet without an API server cannot ask it about {what}", n.process.wait(30) == 1 and
                f"no client provided, cannot use webhook {what}" in n.said(begin), n.said(begin)[-1000:])
    n.more = {**n.more, "authorization": {"mode": "AlwaysAllow"}}
    pod = n.make("alone", ["sh", "-c", "echo $NAME; sleep 1000"], env=[{"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}])
    del pod["spec"]["nodeName"]
    with open(os.path.join(n.manifests, "alone.json"), "w") as f:
        json.dump(pod, f)
    n.start_kubelet()

    def running():
        return json.loads(n.crictl("ps", "-o", "json")).get("containers", [])
    wait_until(lambda: [c["labels"]["io.kubernetes.pod.name"] for c in running()] == ["alone-n1"], 20, "the pod of the file alone")
    t.check("a kubelet without an API server runs what files say", n.crictl("logs", running()[0]["id"]) == "alone-n1\n", running())
    t.check("and tells nobody", n.pod("alone-n1") is None and n.get(NODE).json["metadata"]["resourceVersion"] == version)
    identity = running()[0]["id"]
    n.kill_kubelet(signal.SIGTERM)
    n.flags, n.kubeconfig, n.more = flags, kubeconfig, config
    n.start_kubelet()
    pod = n.wait_ready("alone-n1")
    owner = n.get("/apis/storage.k8s.io/v1/csinodes/n1").json["metadata"]["ownerReferences"][0]["uid"]
    t.check("the CSINode of a node that was deleted is made anew", owner == n.get(NODE).json["metadata"]["uid"], owner)
    t.check("one that has a server again shows it there", pod["status"]["containerStatuses"][0]["containerID"].endswith(identity), pod["status"])


def test_nothing_is_left(t, n, signer):
    for name in os.listdir(n.manifests):
        os.unlink(os.path.join(n.manifests, name))
    n.remove_all_pods()
    t.check("nothing is left of the pods", tap.wait_for(lambda: not n.leftovers(), 60), n.leftovers())


def main(t):
    why = nodes.missing() or (None if peers.find("openssl", "openssl") else "openssl cannot be had")
    if why:
        return t.skip("a node", why)
    nodes.own_namespaces()
    with nodes.Node(bare=True, address=ADDRESS, config=CONFIG, server_flags=["--enable-bootstrap-token-auth",
                                                                            "--enable-admission-plugins=NodeRestriction"]) as n:
        n.kubeconfig = os.path.join(n.folder, "kubelet.conf")
        write_bootstrap(n)
        write_provider(n)
        n.flags = ("--bootstrap-kubeconfig", f"{n.folder}/bootstrap.conf", "--node-labels", "disk=ssd,node.kubernetes.io/kind=test",
                   "--image-credential-provider-config", f"{n.folder}/providers.yaml", "--image-credential-provider-bin-dir", f"{n.folder}/providers")
        login = logind.Logind(n.folder)
        os.environ["DBUS_SYSTEM_BUS_ADDRESS"] = login.address
        signer = Signer(n)
        try:
            for test in (test_joins, test_serving_certificate, test_node_object, test_csi_node, test_read_only_port, test_network_comes_late, test_rights_of_a_node,
                         test_credential_provider, test_status_and_lease, test_own_network, test_node_is_deleted):
                test(t, n, signer)
            test_shutdown(t, n, signer, login)
            test_alone(t, n, signer)
            test_nothing_is_left(t, n, signer)
        except BaseException:
            print("# " + n.said()[-6000:].replace("\n", "\n# "))
            raise
        finally:
            signer.close()


if __name__ == "__main__":
    tap.run([main])
