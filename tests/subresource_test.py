#!/usr/bin/env python3
"""Subresources as their users meet them, with a stand-in for the kubelet. Needs C8S, the program to test."""
import base64
import functools
import hashlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster  # noqa: E402
import kubelet  # noqa: E402
import peers  # noqa: E402
import tap  # noqa: E402

NS = "/api/v1/namespaces/t"


class World:
    """A server with a namespace, a node whose kubelet is the stand-in, and pods on it; all tests share it."""

    def __init__(self, folder, address):
        self.server = cluster.Server(folder).start()
        pki = os.path.join(folder, "data", "pki")
        self.pki = pki
        self.kubelet = kubelet.Kubelet(os.path.join(pki, "apiserver.crt"), os.path.join(pki, "apiserver.key"), "0.0.0.0").__enter__()
        self.make("/api/v1/namespaces", "Namespace", "t")
        self.make(NS + "/serviceaccounts", "ServiceAccount", "default")
        self.node("n1", "127.0.0.1")
        self.node("n2", address)
        self.pod("p", ["c"])
        self.pod("two", ["a", "b"])

    def make(self, path, kind, name, version="v1", **more):
        meta = {"name": name, **more.pop("meta", {})}
        r = self.server.request("POST", path, {"apiVersion": version, "kind": kind, "metadata": meta, **more})
        if r.status not in (201, 409):
            raise RuntimeError(r)
        return r.json

    def node(self, name, address):
        self.make("/api/v1/nodes", "Node", name, status={
            "addresses": [{"type": "InternalIP", "address": address}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self.kubelet.port}}})

    def pod(self, name, containers, node="n1", labels=None, phase="Running", ready=True):
        self.make(NS + "/pods", "Pod", name, meta={"labels": labels or {}}, spec={
            **({"nodeName": node} if node else {}), "automountServiceAccountToken": False,
            "containers": [{"name": c, "image": "x"} for c in containers]})
        self.status(name, phase=phase, conditions=[{"type": "Ready", "status": str(ready)}])

    def status(self, name, **status):
        self.server.request("PATCH", f"{NS}/pods/{name}/status", {"status": status})

    def get(self, path):
        return self.server.request("GET", path)

    def stop(self):
        self.kubelet.__exit__()
        self.server.__exit__()


def own_address():
    """An address of this machine that is not loopback; None when there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))
            return s.getsockname()[0]
        except OSError:
            return None


# ---- scale, binding, eviction ----

def test_scale(w, t):
    path = "/apis/apps/v1/namespaces/t/deployments"
    w.make(path, "Deployment", "d", "apps/v1", spec={
        "selector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]},
        "template": {"metadata": {"labels": {"a": "b", "c": "d"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}})
    s = w.get(path + "/d/scale").json
    t.check("scale shows replicas and selector", (s["kind"], s["spec"], s["status"]) ==
            ("Scale", {"replicas": 1}, {"replicas": 0, "selector": "a=b,c"}), s)
    s["spec"]["replicas"] = 4
    r = w.server.request("PUT", path + "/d/scale", s)
    d = w.get(path + "/d").json
    t.check("an update of scale scales and counts a generation", r.status == 200 and r.json["spec"] == {"replicas": 4} and
            d["spec"]["replicas"] == 4 and d["metadata"]["generation"] == 2, r)
    r = w.server.request("PUT", path + "/d/scale", s)
    t.check("an old version is a conflict", r.status == 409 and
            "deployments.apps \"d\": the object has been modified" in r.json["message"], r)
    r = w.server.request("PATCH", path + "/d/scale?dryRun=All", {"spec": {"replicas": 9}})
    t.check("a dry run shows and changes nothing", r.json["spec"]["replicas"] == 9 and w.get(path + "/d").json["spec"]["replicas"] == 4, r)
    r = w.server.request("PATCH", path + "/d/scale?fieldManager=hpa", json.dumps(
        {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": 2}}),
        content_type="application/apply-patch+yaml")
    t.check("apply stops at the replicas of others", r.status == 409 and r.json["details"]["causes"][0]["field"] == ".spec.replicas", r)
    entries = [e for e in w.get(path + "/d").json["metadata"]["managedFields"] if e.get("subresource") == "scale"]
    t.check("the manager of the replicas is written down", entries and entries[0]["fieldsV1"] == {"f:spec": {"f:replicas": {}}}, entries)
    r = w.server.request("PATCH", path + "/d/scale", '[{"op":"replace","path":"/spec/replicas","value":0}]',
                         content_type="application/json-patch+json")
    t.check("a JSON patch of scale, down to none", r.status == 200 and "replicas" not in r.json["spec"] and
            w.get(path + "/d").json["spec"]["replicas"] == 0, r)
    t.check("kubectl scale", w.server.kubectl("-n", "t", "scale", "deployment/d", "--replicas=3").returncode == 0 and
            w.get(path + "/d").json["spec"]["replicas"] == 3)
    r = w.get(path + "/none/scale")
    t.check("scale of nothing", r.status == 404 and r.json["message"] == 'deployments.apps "none" not found', r)


def bind(w, pod, **more):
    return w.server.request("POST", f"{NS}/pods/{pod}/binding", {
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod, **more}, "target": {"kind": "Node", "name": "n1"}})


def test_binding(w, t):
    w.pod("free", ["c"], node=None, phase="Pending")
    uid = w.get(NS + "/pods/free").json["metadata"]["uid"]
    r = bind(w, "free", uid="11111111-1111-1111-1111-111111111111")
    t.check("a binding for another pod of that name", r.status == 409 and
            "Precondition failed: UID in precondition" in r.json["message"], r)
    r = bind(w, "free", uid=uid, annotations={"x": "y"})
    pod = w.get(NS + "/pods/free").json
    conditions = [c for c in pod["status"]["conditions"] if c["type"] == "PodScheduled"]
    t.check("a binding binds", r.status == 201 and pod["spec"]["nodeName"] == "n1" and pod["metadata"]["annotations"] == {"x": "y"} and
            conditions[0]["status"] == "True", r)
    w.make(NS + "/pods", "Pod", "gated", spec={"schedulingGates": [{"name": "x.y/z"}], "containers": [{"name": "c", "image": "x"}],
                                               "automountServiceAccountToken": False})
    r = bind(w, "gated")
    t.check("gates keep a pod from being bound", r.status == 409 and
            r.json["message"].endswith("pod gated has non-empty .spec.schedulingGates"), r)


def evict(w, pod, query="", version="policy/v1", **options):
    return w.server.request("POST", f"{NS}/pods/{pod}/eviction{query}", {
        "apiVersion": version, "kind": "Eviction", "metadata": {"name": pod}, **({"deleteOptions": options} if options else {})})


def budget(w, name, labels, **status):
    path = "/apis/policy/v1/namespaces/t/poddisruptionbudgets"
    w.make(path, "PodDisruptionBudget", name, "policy/v1", spec={"minAvailable": 1, "selector": {"matchLabels": labels}})
    b = w.get(f"{path}/{name}").json
    b["status"] = {"observedGeneration": b["metadata"]["generation"], "expectedPods": 2, "currentHealthy": 2, "desiredHealthy": 1, **status}
    w.server.request("PUT", f"{path}/{name}/status", b)
    return f"{path}/{name}"


def test_eviction(w, t):
    for i in range(4):
        w.pod(f"e{i}", ["c"], labels={"app": "e"})
    path = budget(w, "b", {"app": "e"}, disruptionsAllowed=1)
    r = evict(w, "e0", "?dryRun=All")
    t.check("a dry run evicts nothing", r.status == 201 and "deletionTimestamp" not in w.get(NS + "/pods/e0").json["metadata"] and
            w.get(path).json["status"]["disruptionsAllowed"] == 1, r)
    r = evict(w, "e0", gracePeriodSeconds=5)
    pod, b = w.get(NS + "/pods/e0").json, w.get(path).json["status"]
    t.check("an eviction that the budget allows", r.status == 201 and r.json["status"] == "Success" and
            pod["metadata"]["deletionGracePeriodSeconds"] == 5 and
            any(c["type"] == "DisruptionTarget" and c["reason"] == "EvictionByEvictionAPI" for c in pod["status"]["conditions"]), r)
    t.check("the budget has noted it", b["disruptionsAllowed"] == 0 and list(b["disruptedPods"]) == ["e0"] and
            b["conditions"][0]["reason"] == "InsufficientPods", b)
    r = evict(w, "e1")
    t.check("the next one is refused", r.status == 429 and
            r.json["message"] == "Cannot evict pod as it would violate the pod's disruption budget." and
            r.json["details"]["causes"][0]["reason"] == "DisruptionBudget", r)
    b = w.get(path).json
    b["status"]["observedGeneration"] = 0
    w.server.request("PUT", path + "/status", b)
    r = evict(w, "e1")
    t.check("a budget that its controller has not seen", r.status == 429 and r.headers["Retry-After"] == "10" and
            "still being processed" in r.json["details"]["causes"][0]["message"], r)
    w.status("e2", phase="Succeeded")
    t.check("a pod that is over needs no budget", evict(w, "e2", version="policy/v1beta1").status == 201)
    w.status("e3", conditions=[{"type": "Ready", "status": "False"}])
    t.check("an unhealthy pod goes when enough others are healthy", evict(w, "e3").status == 201)
    budget(w, "b2", {"app": "e"}, disruptionsAllowed=1)
    r = evict(w, "e1")
    t.check("two budgets are too many", r.status == 500 and r.json["code"] == 500 and "more than one PodDisruptionBudget" in r.json["message"], r)
    r = evict(w, "nobody")
    t.check("nobody to evict", r.status == 404 and r.json["message"] == 'pods "nobody" not found', r)


def test_evictions_at_once(w, t):
    """Of many evictions at a time, no more than allowed are granted."""
    for i in range(8):
        w.pod(f"m{i}", ["c"], labels={"app": "m"})
    path = budget(w, "many", {"app": "m"}, disruptionsAllowed=3)
    answers = []
    threads = [threading.Thread(target=lambda i=i: answers.append(evict(w, f"m{i}").status)) for i in range(8)]
    for x in threads:
        x.start()
    for x in threads:
        x.join()
    b = w.get(path).json["status"]
    t.check("a budget is never overdrawn", sorted(answers) == [201] * 3 + [429] * 5 and b["disruptionsAllowed"] == 0 and
            len(b["disruptedPods"]) == 3, (answers, b))


# ---- logs and streams ----

def test_log(w, t):
    k = w.server.kubectl
    t.check("kubectl logs", k("-n", "t", "logs", "p").stdout == "one\ntwo\nthree\n")
    r = w.get(NS + "/pods/p/log?tailLines=1&timestamps=true&sinceSeconds=5&limitBytes=9&container=c")
    method, target, headers = w.kubelet.requests[-1]
    t.check("options reach the kubelet", r.body == b"three\n" and r.headers["Content-Type"] == "text/plain" and
            target == "/containerLogs/t/p/c?limitBytes=9&sinceSeconds=5&tailLines=1&timestamps=true", target)
    t.check("the kubelet sees who asks", headers["client"] == "kube-apiserver-kubelet-client" and "authorization" not in headers, headers)
    for query, status, message in [
            ("previous=true", 400, "previous terminated container not found"),
            ("sinceSeconds=0", 422, 'PodLogOptions "p" is invalid: sinceSeconds: Invalid value: 0: must be greater than 0'),
            ("tailLines=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
            ("stream=Stdout", 422, 'PodLogOptions "p" is invalid: stream: Forbidden: may not be specified')]:
        r = w.get(f"{NS}/pods/p/log?{query}")
        t.check(f"log?{query}", (r.status, r.json["message"]) == (status, message), r)
    r = w.get(NS + "/pods/two/log")
    t.check("which container?", r.json["message"] == "a container name must be specified for pod two, choose one of: [a b]", r)


def test_log_follow(w, t):
    before = w.kubelet.open
    c = w.server.connect()
    c.request("GET", NS + "/pods/p/log?follow=true", headers={"Authorization": "Bearer admin-token"})
    r = c.getresponse()
    t.check("a followed log comes as it is written", r.read(14 + 5) == b"one\ntwo\nthree\ntick\n")
    w.kubelet.more.set()
    rest = r.read()
    t.check("and ends when the kubelet ends it", rest.endswith(b"more\n"), rest[-20:])
    c.request("GET", NS + "/pods/p/log?follow=true", headers={"Authorization": "Bearer admin-token"})
    c.getresponse().read(5)
    c.close()
    cluster.wait_until(lambda: w.kubelet.open <= before + 1, what="the server to leave the kubelet's log alone")
    t.check("a reader who goes away leaves nothing behind", True)


def kubectl_minor(w):
    """The minor version of kubectl: what it can do has grown."""
    version = json.loads(w.server.kubectl("version", "--client", "-o", "json").stdout)["clientVersion"]
    return int(re.match(r"\d+", version["minor"] or version["gitVersion"].split(".")[1]).group())


def kubectl_env(**env):
    os.environ.update(env)


def test_exec(w, t):
    def k(*args, **kw):
        return w.server.kubectl("-n", "t", "exec", *args, check=False, **kw)
    big = "0123456789abcdef" * 65536
    for protocol, flag in [("WebSocket", "true"), ("SPDY", "false")]:
        kubectl_env(KUBECTL_REMOTE_COMMAND_WEBSOCKETS=flag)
        r = k("p", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
        # kubectl may not be ready yet for the empty message that a server begins with, and says so
        errors = re.sub(r".*Unknown stream id \d+, discarding message\n", "", r.stderr)
        t.check(f"exec by {protocol}: output and exit code", (r.returncode, r.stdout) == (3, "out\n") and
                errors == "err\ncommand terminated with exit code 3\n", r)
        r = k("-i", "p", "--", "cat", stdin=big)
        t.check(f"exec by {protocol}: a megabyte there and back", r.returncode == 0 and r.stdout == big,
                (r.returncode, len(r.stdout), r.stderr))
        r = k("p", "--", "/no/such/program")
        t.check(f"exec by {protocol}: what cannot run", r.returncode == 1 and "cannot run" in r.stderr, r)
    r = k("p", "-c", "nope", "--", "true")
    t.check("exec in no container", "container nope" in r.stderr, r)
    r = w.get(NS + "/pods/p/exec?command=ls&container=c&stdout=true")
    t.check("exec without an upgrade", (r.status, r.json["message"]) == (400, "Upgrade request required"), r)
    r = w.server.kubectl("-n", "t", "attach", "-i", "p", stdin="typed\n", check=False)
    t.check("kubectl attach", r.returncode == 0 and "typed" in r.stdout, r)
    with tempfile.TemporaryDirectory() as d:
        source, copy = os.path.join(d, "from"), os.path.join(d, "sub")
        with open(source, "w") as f:
            f.write(big)
        os.mkdir(copy)
        r = w.server.kubectl("-n", "t", "cp", source, f"p:{copy}/to", check=False)
        with open(os.path.join(copy, "to")) as f:
            t.check("kubectl cp", r.returncode == 0 and f.read() == big, r)


def test_exec_gone(w, t):
    """A client that is killed ends the command's streams."""
    before = w.kubelet.open
    for flag in ("true", "false"):
        p = subprocess.Popen([peers.find("kubectl", "kubernetes-client"), "--kubeconfig", w.server.kubeconfig, "-n", "t", "exec", "-i", "p",
                              "--", "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             env={**os.environ, "KUBECTL_REMOTE_COMMAND_WEBSOCKETS": flag})
        p.stdin.write(b"x\n")
        p.stdin.flush()
        p.stdout.readline()
        p.kill()
        p.wait()
        p.stdin.close()
        p.stdout.close()
        cluster.wait_until(lambda: w.kubelet.open <= before, what="the kubelet's connection to end")
    t.check("nothing is left of clients that were killed", True)


def websocket(w, path, protocol):
    """Connects and shakes hands; the socket, with the head of the answer read."""
    c = w.server.connect()
    c.connect()
    key = base64.b64encode(os.urandom(16)).decode()
    c.sock.sendall((f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin-token\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                    f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Protocol: {protocol}\r\n\r\n").encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += c.sock.recv(1)
    return c, head.decode(), key


def send_frame(sock, data):
    mask = os.urandom(4)
    sock.sendall(bytes([0x82, 0x80 | len(data)]) + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))


def read_frame(sock):
    def exactly(n):
        data = b""
        while len(data) < n:
            data += sock.recv(n - len(data)) or b"!" * n
        return data
    first, length = exactly(2)
    if length == 126:
        length = int.from_bytes(exactly(2), "big")
    return first & 15, exactly(length)


def test_channels(w, t):
    query = "command=cat&stdin=true&stdout=true&tty=true&container=c"
    c, head, key = websocket(w, f"{NS}/pods/p/exec?{query}", "v4.channel.k8s.io, v5.channel.k8s.io")
    accept = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
    t.check("the handshake chooses v5", "101 " in head and accept in head and "v5.channel.k8s.io" in head, head)
    t.check("an empty message first", read_frame(c.sock) == (2, b"\1"))
    send_frame(c.sock, b'\4{"Width":80,"Height":24}')
    send_frame(c.sock, b"\0hello")
    t.check("stdin comes back as stdout", read_frame(c.sock) == (2, b"\1hello"))
    send_frame(c.sock, b"\xff\0")
    opcode, data = read_frame(c.sock)
    t.check("closing stdin ends the command, with a status", (opcode, data) == (2, b'\3{"metadata":{},"status":"Success"}'), data)
    t.check("then the connection is closed", read_frame(c.sock)[0] == 8)
    c.close()
    t.check("the size of the terminal reached the kubelet", w.kubelet.sizes == [b'{"Width":80,"Height":24}', b"\n"], w.kubelet.sizes)


def test_unreachable(w, t):
    w.make("/api/v1/nodes", "Node", "dead", status={"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                                                    "daemonEndpoints": {"kubeletEndpoint": {"Port": cluster.free_port()}}})
    w.pod("lost", ["c"], node="dead")
    r = w.get(NS + "/pods/lost/log")
    t.check("a kubelet that does not answer: log", r.status == 500 and r.json["message"].startswith('Get "https://127.0.0.1:') and
            r.json["message"].endswith("connect: connection refused"), r)
    r = w.server.kubectl("-n", "t", "exec", "lost", "--", "true", check=False)
    t.check("a kubelet that does not answer: exec", r.returncode == 1 and "connection refused" in r.stderr, r)


class Echo:
    """A server that sends back what it gets."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            c, _ = self.listener.accept()
            threading.Thread(target=self.echo, args=(c,), daemon=True).start()

    @staticmethod
    def echo(c):
        with c:
            while (data := c.recv(1 << 16)):
                c.sendall(data)


def test_kubelet_gone(w, t):
    """A connection that breaks is not a command that went well."""
    kubectl_env(KUBECTL_REMOTE_COMMAND_WEBSOCKETS="true")
    p = subprocess.Popen([peers.find("kubectl", "kubernetes-client"), "--kubeconfig", w.server.kubeconfig, "-n", "t", "exec", "-i", "p",
                          "--", "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdin.write(b"x\n")
    p.stdin.flush()
    p.stdout.readline()
    w.kubelet.drop_all()
    _, errors = p.communicate(timeout=20)
    # an old kubectl takes the end of a stream for the end of the command
    told = p.returncode == 1 and b"unexpected EOF" in errors if kubectl_minor(w) >= 30 else p.returncode in (0, 1)
    t.check("a kubelet that goes away", told, (p.returncode, errors))


def test_stop(w, t):
    """The server does not wait for ever for those who stay."""
    c = w.server.connect()
    c.request("GET", NS + "/pods/p/log?follow=true", headers={"Authorization": "Bearer admin-token"})
    c.getresponse().read(5)
    socks = [websocket(w, f"{NS}/pods/p/exec?command=cat&stdin=true&stdout=true&container=c", "v5.channel.k8s.io")[0],
             websocket(w, f"{NS}/pods/p/exec?command=cat&stdin=true&stdout=true&container=c", "v4.channel.k8s.io")[0]]
    begun = time.monotonic()
    code = w.server.stop()
    t.check("the server stops in good order", code == 0 and time.monotonic() - begun < 30, (code, w.server.said()[-3000:]))
    for s in [c, *socks]:
        s.close()


def test_port_forward(w, t):
    echo = Echo()
    big = os.urandom(1 << 20)
    for protocol, flag in [("WebSocket", "true"), ("SPDY", "false")]:
        p = subprocess.Popen([peers.find("kubectl", "kubernetes-client"), "--kubeconfig", w.server.kubeconfig, "-n", "t", "port-forward",
                              "pod/p", f":{echo.port}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env={**os.environ, "KUBECTL_PORT_FORWARD_WEBSOCKETS": flag})
        line = p.stdout.readline()
        port = int(line.split(" -> ")[0].rsplit(":", 1)[1])
        for attempt in range(2):
            with socket.create_connection(("127.0.0.1", port), timeout=20) as s:
                threading.Thread(target=lambda: (s.sendall(big), s.shutdown(socket.SHUT_WR)), daemon=True).start()
                got = b""
                while len(got) < len(big) and (data := s.recv(1 << 16)):
                    got += data
            t.check(f"port-forward by {protocol}: connection {attempt + 1}", got == big, len(got))
        p.terminate()
        p.communicate()


# ---- proxies ----

def test_proxy(w, t, address):
    import http.server

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self):
            if self.headers.get("Transfer-Encoding") == "chunked":
                body = b""
                while (n := int(self.rfile.readline(), 16)):
                    body += self.rfile.read(n)
                    self.rfile.readline()
                self.rfile.readline()
            else:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status = 302 if "redirect" in self.path else 200
            text = json.dumps({"method": self.command, "path": self.path, "body": len(body), "headers": dict(self.headers)}).encode()
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "/elsewhere?x=1")
            self.send_header("Access-Control-Allow-Origin", "*")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(text)
        do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = handle_any

        def log_message(self, *_):
            pass
    server = http.server.ThreadingHTTPServer((address, 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    w.status("p", podIP=address, podIPs=[{"ip": address}])
    base = f"{NS}/pods/http:p:{port}/proxy"
    r = w.server.request("GET", base + "/a%2Fb/c?x=1&y=%20")
    got = r.json
    t.check("a pod is asked, path and query as they are", r.status == 200 and got["path"] == "/a%2Fb/c?x=1&y=%20", r)
    h = {k.lower(): v for k, v in got["headers"].items()}
    t.check("without credentials, with the way it came", "authorization" not in h and h["x-forwarded-for"] == "127.0.0.1" and
            h["x-forwarded-uri"] == base + "/a%2Fb/c" and "Access-Control-Allow-Origin" not in r.headers, h)
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        r = w.server.request(method, base + "/m", "z" * 300000)
        t.check(f"{method} with a body", (r.json["method"], r.json["body"]) == (method, 300000), r)
    t.check("HEAD", w.server.request("HEAD", base + "/h").status == 200)
    r = w.server.request("GET", base + "/redirect")
    t.check("a redirect comes back through the proxy", r.status == 302 and r.headers["Location"] == base + "/elsewhere?x=1",
            dict(r.headers))
    r = w.server.request("GET", base + "?q=1")
    t.check("no path is the path /", r.status == 301 and r.headers["Location"] == base + "/?q=1", dict(r.headers))
    r = w.server.request("GET", f"{NS}/pods/http:p:{cluster.free_port()}/proxy/")
    t.check("nobody there", r.status == 503 and r.json["message"].startswith("error trying to reach service: dial tcp "), r)
    r = w.server.request("GET", f"{NS}/pods/http:p:80%40{address}:{port}/proxy/")
    t.check("no other host by way of the port", r.status == 400, r)
    r = w.server.request("GET", f"{NS}/pods/http:p:{port}%40{address}/proxy/")
    t.check("nothing but a number is a port", r.status == 503 and "unknown port" in r.json["message"], r)
    r = w.server.request("GET", f"{NS}/pods/ftp:p:1/proxy/")
    t.check("a scheme that is none", r.json["message"] == 'invalid pod request "ftp:p:1"', r)
    w.make(NS + "/services", "Service", "s", spec={"ports": [{"name": "web", "port": 80}]})
    w.make(NS + "/endpoints", "Endpoints", "s", subsets=[{"addresses": [{"ip": address, "targetRef": {
        "kind": "Pod", "namespace": "t", "name": "p"}}], "ports": [{"name": "web", "port": port}]}])
    for name in ("s:80", "s:web", "http:s:web"):
        r = w.server.request("GET", f"{NS}/services/{name}/proxy/x")
        t.check(f"service {name}", r.status == 200 and r.json["path"] == "/x", r)
    r = w.server.request("GET", f"{NS}/services/s:81/proxy/x")
    t.check("a port that the service has not", r.json["message"] == 'no service port 81 found for service "s"', r)
    r = w.server.request("GET", "/api/v1/nodes/n2/proxy/stats/summary?x=1")
    t.check("a node's kubelet", r.body == b"GET /stats/summary?x=1 0\n", r)
    r = w.server.request("GET", "/api/v1/nodes/n1/proxy/x")
    t.check("nothing on loopback", (r.status, r.json["message"]) == (400, "address not allowed"), r)
    server.shutdown()


def test_proxy_upgrade(w, t, address):
    """Whatever two ends agree on goes through: here a protocol that says everything twice."""
    listener = socket.create_server((address, 0))

    def serve():
        c, _ = listener.accept()
        with c:
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += c.recv(1)
            c.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: twice\r\nX-Extra: 1\r\n\r\nhello ")
            while (data := c.recv(1000)):
                c.sendall(data * 2)
    threading.Thread(target=serve, daemon=True).start()
    w.status("p", podIP=address, podIPs=[{"ip": address}])
    c = w.server.connect()
    c.connect()
    c.sock.sendall((f"GET {NS}/pods/p:{listener.getsockname()[1]}/proxy/x HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer admin-token\r\n"
                    "Connection: Upgrade\r\nUpgrade: twice\r\n\r\n").encode())
    got = b""
    while not got.endswith(b"hello "):
        got += c.sock.recv(1000)
    t.check("an upgrade through the proxy", b"101 " in got and b"Upgrade: twice" in got and b"X-Extra: 1" in got, got)
    c.sock.sendall(b"ab")
    t.check("and its bytes", c.sock.recv(4) == b"abab")
    c.close()


# ---- tokens, reviews ----

def decode_jwt(token):
    return [json.loads(base64.urlsafe_b64decode(part + "==")) for part in token.split(".")[:2]]


def test_token(w, t):
    def ask(spec, **meta):
        return w.server.request("POST", NS + "/serviceaccounts/default/token", {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": meta, "spec": spec})
    if kubectl_minor(w) >= 24:
        token = w.server.kubectl("-n", "t", "create", "token", "default").stdout.strip()
    else:
        token = ask({}).json["status"]["token"]
    head, claims = decode_jwt(token)
    account = w.get(NS + "/serviceaccounts/default").json["metadata"]["uid"]
    t.check("kubectl create token", head["alg"] == "ES256" and claims["sub"] == "system:serviceaccount:t:default" and
            claims["kubernetes.io"] == {"namespace": "t", "serviceaccount": {"name": "default", "uid": account}} and
            claims["exp"] - claims["iat"] == 3600 and abs(claims["iat"] - time.time()) < 60, claims)
    signature = base64.urlsafe_b64decode(token.split(".")[2] + "==")
    t.check("the signature is good", verify_es256(os.path.join(w.pki, "sa.pub"), token.rsplit(".", 1)[0], signature))
    pod = w.get(NS + "/pods/p").json["metadata"]["uid"]
    ref = {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": pod}
    r = ask({"audiences": ["vault"], "expirationSeconds": 700, "boundObjectRef": ref})
    own = decode_jwt(r.json["status"]["token"])[1]
    t.check("bound to a pod", r.status == 201 and own["aud"] == ["vault"] and own["kubernetes.io"]["pod"] == {"name": "p", "uid": pod} and
            own["kubernetes.io"]["node"]["name"] == "n1" and own["exp"] - own["iat"] == 700, r)
    r = ask({"expirationSeconds": 3607, "boundObjectRef": ref})
    own = decode_jwt(r.json["status"]["token"])[1]
    t.check("a kubelet's token lives on, with a warning", own["exp"] - own["iat"] == 365 * 86400 and
            own["kubernetes.io"]["warnafter"] - own["iat"] == 3607, own)
    for spec, status, text in [
            ({"expirationSeconds": 5}, 422, "may not specify a duration less than 10 minutes"),
            ({"boundObjectRef": {**ref, "uid": "x"}}, 409, "does not match the UID in record"),
            ({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "none"}}, 404, 'pods "none" not found'),
            ({"boundObjectRef": {"kind": "Deployment", "apiVersion": "apps/v1", "name": "d"}}, 400,
             "cannot bind token to object of type apps/v1, Kind=Deployment")]:
        r = ask(spec)
        t.check(f"token: {text}", r.status == status and text in r.json["message"], r)


def verify_es256(public, text, signature):
    """By openssl, which wants the two numbers in DER."""
    def number(b):
        b = b.lstrip(b"\0") or b"\0"
        b = (b"\0" if b[0] & 0x80 else b"") + b
        return bytes([2, len(b)]) + b
    inner = number(signature[:32]) + number(signature[32:])
    with tempfile.NamedTemporaryFile() as f:
        f.write(bytes([0x30, len(inner)]) + inner)
        f.flush()
        return subprocess.run([peers.find("openssl", "openssl"), "dgst", "-sha256", "-verify", public, "-signature", f.name],
                              input=text.encode(), capture_output=True).returncode == 0


def test_reviews(w, t):
    if kubectl_minor(w) >= 28:
        r = w.server.kubectl("auth", "whoami", "-o", "json", check=False)
        user = json.loads(r.stdout)["status"]["userInfo"] if r.returncode == 0 else {}
        t.check("kubectl auth whoami", "system:masters" in user.get("groups", []), r)
    else:
        t.skip("kubectl auth whoami", "this kubectl does not know it")
    r = w.server.kubectl("auth", "can-i", "delete", "pods", check=False)
    t.check("kubectl auth can-i", r.stdout == "yes\n", r)
    r = w.server.kubectl("get", "componentstatuses", check=False)
    rows = {line.split()[0]: line for line in r.stdout.splitlines()[1:]}
    t.check("kubectl get componentstatuses", set(rows) == {"scheduler", "controller-manager", "etcd-0"} and "Healthy" in rows["etcd-0"], r)


def main():
    address = own_address()
    with cluster.Folder() as folder:
        w = World(folder, address or "127.0.0.1")

        def with_world(f):
            def run(t):
                f(w, t)
            run.__name__ = getattr(f, "__name__", str(f))
            return run
        tests = [test_scale, test_binding, test_eviction, test_evictions_at_once, test_log, test_log_follow, test_channels, test_exec,
                 test_exec_gone, test_kubelet_gone, test_unreachable, test_port_forward, test_token, test_reviews]
        all_tests = [with_world(f) for f in tests]
        if address:
            for f in (test_proxy, test_proxy_upgrade):
                all_tests.append(with_world(functools.partial(f, address=address)))
        else:
            all_tests.append(lambda t: t.skip("proxies", "this machine has no address but loopback"))

        try:
            tap.run([*all_tests, with_world(test_stop)])
        finally:
            w.stop()


if __name__ == "__main__":
    main()
