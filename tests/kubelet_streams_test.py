#!/usr/bin/env python3
"""What people do with running pods by kubectl: logs, exec, attach, cp, port-forward, debug; and the kubelet's own HTTP API. By the newest kubectl
that is there, by Debian's, which speaks the older protocol, and, what it knows, by our own, when it is beside C8S, the program to test.
Needs c8s-pod beside that, too, and root.
Arguments: the runtime below the kubelet, c8s or containerd."""
import contextlib
import fcntl
import hashlib
import http.client
import json
import os
import pty
import random
import re
import select
import socket
import ssl
import struct
import subprocess
import sys
import termios
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kubectl_test  # noqa: E402
import nodes  # noqa: E402
import tap  # noqa: E402
from cluster import C8S, wait_until  # noqa: E402

KUBECTL, OWN = os.path.join(os.path.dirname(C8S), "kubectl"), 36
LINES = "echo one; echo two; echo three; echo four; until test -e /go; do sleep 0.05; done; echo five; sleep 1000"
AGAIN = "if test -e /v/seen; then echo second; sleep 1000; fi; touch /v/seen; echo first; exit 3"
VOLUME = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}


class Terminal:
    """kubectl at a terminal of its own, as a person has it."""

    def __init__(self, n, program, *args, rows=30, columns=100):
        self.master, slave = pty.openpty()
        self.resize(rows, columns)
        self.process = subprocess.Popen([program, "--kubeconfig", n.server.kubeconfig, *args], stdin=slave, stdout=slave, stderr=slave,
                                        start_new_session=True, env={**os.environ, "HOME": n.folder, "TERM": "dumb"},
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)
        self.seen = ""

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.master, text.encode())

    def read(self):
        try:
            part = os.read(self.master, 65536)
        except OSError:  # nobody has the other side any more
            return False
        self.seen += part.decode(errors="replace")
        return bool(part)

    def expect(self, pattern, seconds=20):
        """Until the pattern is in what was shown since the last one: the match."""
        deadline = time.monotonic() + seconds
        while not (m := re.search(pattern, self.seen)):
            if not select.select([self.master], [], [], max(0, deadline - time.monotonic()))[0] or not self.read():
                raise TimeoutError(f"{pattern!r} was not shown: {self.seen!r}")
        self.seen = self.seen[m.end():]
        return m

    def end(self, seconds=20):
        """Until the program has ended: its exit code."""
        deadline = time.monotonic() + seconds
        while select.select([self.master], [], [], max(0, deadline - time.monotonic()))[0] and self.read():
            pass
        return self.process.wait(max(1, deadline - time.monotonic()))

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def make_pods(n):
    volume = {"volumes": [{"name": "v", "emptyDir": {}}]}
    n.create(n.make("log", ("sh", "-c", LINES)))
    n.create(n.make("again", ("sh", "-c", AGAIN), spec=volume, **VOLUME))
    n.create(n.make("multi", ("sh", "-c", "echo from c; sleep 1000"), spec={
        "initContainers": [{"name": "i", "image": n.image, "command": ["echo", "from i"]}],
        "containers": [{"name": x, "image": n.image, "command": ["sh", "-c", f"echo from {x}; echo {x} >/name; sleep 1000"]} for x in ("a", "b")]}))
    n.create(n.make("follow", ("sh", "-c", "echo begin; until test -e /go; do sleep 0.05; done; seq 1 5000; echo end >&2"),
                    spec={"restartPolicy": "Never"}))
    n.create(n.make("shell", ("sleep", "1000")))
    n.create(n.make("talk", ("sh",), stdin=True, tty=True))
    n.create(n.make("talk20", ("sh",), stdin=True, tty=True))
    n.create(n.make("talkown", ("sh",), stdin=True, tty=True))
    n.create(n.make("ticks", ("sh", "-c", "while :; do echo tick; sleep 0.1; done")))
    n.create(n.make("web", ("sh", "-c", "mkdir /www; echo hello >/www/index.html; seq 1 200000 >/www/big; httpd -h /www -p 127.0.0.1:8081; "
                                      "httpd -f -h /www -p 8080"), ports=[{"name": "http", "containerPort": 8080}]))
    n.create({**n.make("waits"), "spec": {**n.make("waits")["spec"], "containers": [{"name": "c", "image": n.registry.host + "/none:1"}]}})
    for name in ("log", "multi", "follow", "shell", "talk", "talk20", "talkown", "ticks", "web"):
        n.wait_phase(name, "Running", 40)


def says(t, n, program, name, args, want, code=0, **more):
    r = n.kubectl(*args, program=program, check=False, **more)
    text = r.stdout + r.stderr
    t.check(name, r.returncode == code and (text == want if isinstance(want, str) else want.search(text)),
            f"exit {r.returncode}, wanted {code} {want}\n{text[:2000]}")
    return r.stdout


# ---- logs ----

def test_logs(t, n, version, program):
    def logs(name, args, want, code=0):
        return says(t, n, program, f"1.{version}: logs {name}", ["logs", *args], want, code)
    four = "one\ntwo\nthree\nfour\n"
    logs("all", ["log"], four)
    logs("--tail", ["log", "--tail=2"], "three\nfour\n")
    logs("--limit-bytes", ["log", "--limit-bytes=5"], "one\nt")
    logs("--since", ["log", "--since=1h"], four)
    stamp = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}(?:Z|\+00:00)"
    out = logs("--timestamps", ["log", "--timestamps"], re.compile(rf"\A{stamp} one\n{stamp} two\n{stamp} three\n{stamp} four\n\Z"))
    last = out.splitlines()[-1].split()[0]
    logs("--since-time", ["log", "--since-time", last], re.compile(r"(\A|\n)four\n\Z"))
    logs("--previous", ["again", "--previous"], "first\n")
    logs("of the one that followed", ["again"], "second\n")
    logs("--previous where there is none", ["log", "--previous"],
         re.compile(r'Error from server \(BadRequest\): previous terminated container "c" in pod "log" not found'), 1)
    logs("-c", ["multi", "-c", "b"], "from b\n")
    logs("of an init container", ["multi", "-c", "i"], "from i\n")
    logs("--all-containers", ["multi", "--all-containers"], re.compile(r"\A(from [iab]\n){3}\Z"))
    logs("--prefix", ["multi", "-c", "a", "--prefix"], "[pod/multi/a] from a\n")
    logs("of no container", ["multi", "-c", "z"], re.compile("container z is not valid for pod multi"), 1)
    why = "(trying and failing to pull image|image can't be pulled)"
    logs("of one that waits", ["waits"], re.compile(f'container "c" in pod "waits" is waiting to start: {why}'), 1)
    logs("by label", ["-l", "app=log"], four)


def test_follow(t, n, programs):
    followers = [subprocess.Popen([p, "--kubeconfig", n.server.kubeconfig, "logs", "-f", "follow"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True) for p in programs.values()]
    tail = subprocess.Popen([next(iter(programs.values())), "--kubeconfig", n.server.kubeconfig, "logs", "-f", "--tail=1", "log"],
                            stdout=subprocess.PIPE, text=True)
    first = [f.stdout.readline() for f in followers]
    t.check("logs -f shows what is there", first == ["begin\n"] * len(first), first)
    n.kubectl("exec", "follow", "--", "touch", "/go")
    want = "".join(f"{i}\n" for i in range(1, 5001)) + "end\n"
    for f, version in zip(followers, programs):
        out, err = f.communicate(timeout=30)
        t.check(f"1.{version}: logs -f shows what comes, and ends with the container", f.returncode == 0 and sorted(out) == sorted(want) and
                out.replace("end\n", "") == want.replace("end\n", ""), f"{f.returncode} {len(out)} {out[-200:]!r} {err}")
    time.sleep(2)
    n.kubectl("exec", "log", "--", "touch", "/go")
    seen = tail.stdout.readline() + tail.stdout.readline()
    t.check("logs -f --tail goes on from there", seen == "four\nfive\n", seen)
    tail.kill()
    tail.communicate()
    out = n.kubectl("logs", "log", "--since=2s").stdout
    t.check("logs --since leaves out what is older", "five" in out and "one" not in out, out)


# ---- exec and attach ----

def test_exec(t, n, version, program):
    def exec_(name, args, want, code=0, **more):
        return says(t, n, program, f"1.{version}: exec {name}", ["exec", *args], want, code, **more)
    exec_("runs a command", ["shell", "--", "echo", "a  b"], "a  b\n")
    exec_("tells how it ended", ["shell", "--", "sh", "-c", "echo out; exit 7"], "out\ncommand terminated with exit code 7\n", 7)
    r = n.kubectl("exec", "shell", "--", "sh", "-c", "echo out; echo err >&2", program=program)
    t.check(f"1.{version}: exec keeps output and errors apart", (r.stdout, r.stderr) == ("out\n", "err\n"), r)
    text = "".join(f"line {random.random()}\n" for _ in range(60000))
    r = n.kubectl("exec", "-i", "shell", "--", "md5sum", program=program, stdin=text)
    t.check(f"1.{version}: exec -i sends all, and its end", r.stdout.split()[:1] == [hashlib.md5(text.encode()).hexdigest()], r)
    r = n.kubectl("exec", "-i", "shell", "--", "cat", program=program, stdin=text)
    t.check(f"1.{version}: exec -i brings all back", r.stdout == text, f"{len(r.stdout)} of {len(text)}")
    exec_("-c", ["multi", "-c", "b", "--", "cat", "/name"], "b\n")
    exec_("in no container", ["multi", "-c", "z", "--", "true"], re.compile("container z (is not valid for|not found in) pod multi"), 1)
    exec_("of no program", ["shell", "--", "/nope"], re.compile(r"/nope.*no such file", re.I), 1)
    exec_("in a pod that waits", ["waits", "--", "true"], re.compile(r"container not found|unable to upgrade connection|cannot exec"), 1)


def test_terminal(t, n, version, program):
    with Terminal(n, program, "exec", "-it", "shell", "--", "sh") as tty:
        tty.expect("# ")
        tty.type("stty size\r")
        t.check(f"1.{version}: exec -it has the size of the terminal", tty.expect(r"(\d+ \d+)\r\n")[1] == "30 100")
        tty.type("test -t 0 && test -t 1 && echo $((6 * 7))\r")
        tty.expect(r"\n42\r\n")
        tty.resize(40, 120)
        wait_until(lambda: tty.type("stty size\r") or tty.expect(r"\n(\d+ \d+)\r\n")[1] == "40 120", 30, "the new size")
        t.check(f"1.{version}: exec -it follows the size", True)
        tty.type("sh -c 'echo begun; sleep 1000'\r")
        tty.expect(r"\nbegun\r\n")
        tty.type("\x03")
        tty.expect("# ")
        tty.type("exit 5\r")
        code = tty.end()
        t.check(f"1.{version}: exec -it: Ctrl-C interrupts, and the exit code comes back", code == 5, f"{code} {tty.seen!r}")


def test_attach(t, n, version, program):
    pod = {20: "talk20", OWN: "talkown"}.get(version, "talk")
    with Terminal(n, program, "attach", "-it", pod) as tty:
        tty.type("\r")
        tty.expect("# ")
        tty.type("x=kept; echo $((6 * 7))\r")
        t.check(f"1.{version}: attach -it talks to the container", tty.expect(r"\n(\d+)\r\n")[1] == "42")
    out = n.kubectl("logs", pod).stdout
    t.check(f"1.{version}: what was said is in the log", re.search(r"\n42\r?\n", out), out)
    with Terminal(n, program, "attach", "-it", pod) as tty:
        tty.type("echo is $x\r")
        tty.expect("is kept\r\n")
        t.check(f"1.{version}: attach again finds it as it was left", True)
        tty.type("exit 3\r")
        tty.end()
    s = n.wait(pod, lambda p: p["status"]["containerStatuses"][0]["restartCount"] == 1, what="a restart")["status"]["containerStatuses"][0]
    t.check(f"1.{version}: exit in it ends the container", s["lastState"]["terminated"]["exitCode"] == 3, s)
    process = subprocess.Popen([program, "--kubeconfig", n.server.kubeconfig, "attach", "ticks"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    t.check(f"1.{version}: attach without input shows what comes", [process.stdout.readline() for _ in range(3)] == ["tick\n"] * 3)
    process.kill()
    process.communicate()


def test_run(t, n, version, program):
    over = json.dumps({"apiVersion": "v1", "spec": {"nodeName": nodes.NODE}})
    r = n.kubectl("run", f"once{version}", "-i", "--rm", "--restart=Never", "--quiet", f"--image={n.image}", "--overrides", over, "--", "sh", "-c",
                  "cat; exit 4", program=program, stdin="typed\n", check=False)
    t.check(f"1.{version}: run -i --rm: input, output and exit code", r.stdout.startswith("typed\n") and r.returncode == 4, r)
    t.check(f"1.{version}: run --rm removes the pod", n.pod(f"once{version}") is None)


def test_debug(t, n, program):
    n.kubectl("debug", "shell", f"--image={n.image}", "--target=c", "-c", "dbg", "--", "sh", "-c", "ps; ls /proc/1/root/; sleep 0.1; exit 2", program=program)
    s = n.wait("shell", lambda p: p["status"].get("ephemeralContainerStatuses", [{}])[0].get("state", {}).get("terminated"),
               what="the end of the ephemeral container")["status"]
    t.check("debug: an ephemeral container ran", s["ephemeralContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 2, s)
    t.check("debug: the pod does not notice", s["phase"] == "Running" and s["containerStatuses"][0]["restartCount"] == 0, s)
    out = n.kubectl("logs", "shell", "-c", "dbg").stdout
    t.check("debug --target sees the processes of the container", "sleep 1000" in out, out)


# ---- cp ----

def test_cp(t, n, version, program):
    folder = os.path.join(n.folder, f"cp{version}")
    os.makedirs(os.path.join(folder, "tree", "deep"))
    data = random.randbytes(700000)
    for path, content in (("one", data), ("tree/a b", b"spaces\n"), ("tree/deep/empty", b"")):
        with open(os.path.join(folder, path), "wb") as f:
            f.write(content)
    n.kubectl("cp", os.path.join(folder, "one"), f"multi:/tmp/one{version}", "-c", "b", program=program)
    n.kubectl("cp", os.path.join(folder, "tree"), f"default/multi:/tmp/tree{version}", "-c", "b", program=program)
    out = n.kubectl("exec", "multi", "-c", "b", "--", "md5sum", f"/tmp/one{version}", f"/tmp/tree{version}/a b", program=program).stdout
    want = [hashlib.md5(x).hexdigest() for x in (data, b"spaces\n")]
    t.check(f"1.{version}: cp into a container", [line.split()[0] for line in out.splitlines()] == want, out)
    for name in ("one", "tree"):
        n.kubectl("cp", f"multi:/tmp/{name}{version}", os.path.join(folder, "back-" + name), "-c", "b", program=program)
    got = {path: open(os.path.join(folder, path), "rb").read() for path in ("back-one", "back-tree/a b", "back-tree/deep/empty")}
    t.check(f"1.{version}: cp out of a container", got == {"back-one": data, "back-tree/a b": b"spaces\n", "back-tree/deep/empty": b""},
            {k: len(v) for k, v in got.items()})


# ---- port-forward ----

class Forward:
    def __init__(self, n, program, *args):
        self.log = os.path.join(n.folder, f"forward{random.randrange(1 << 32)}")
        with open(self.log, "wb") as f:
            self.process = subprocess.Popen([program, "--kubeconfig", n.server.kubeconfig, "port-forward", *args], stdout=f, stderr=f)
        wanted = len(args) - 1
        wait_until(lambda: self.said().count("Forwarding from 127.0.0.1") >= wanted or self.process.poll() is not None, 20, "port-forward")
        self.ports = [int(p) for p in re.findall(r"Forwarding from 127.0.0.1:(\d+)", self.said())]

    def said(self):
        with open(self.log) as f:
            return f.read()

    def get(self, path="/", i=0):
        c = http.client.HTTPConnection("127.0.0.1", self.ports[i], timeout=20)
        try:
            c.request("GET", path)
            return c.getresponse().read()
        finally:
            c.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def test_port_forward(t, n, version, program):
    big = "".join(f"{i}\n" for i in range(1, 200001)).encode()
    with Forward(n, program, "web", ":8080", ":8081") as f:
        t.check(f"1.{version}: port-forward of two ports", len(f.ports) == 2 and f.get(i=0) == b"hello\n" and f.get(i=1) == b"hello\n", f.said())
        got = [None] * 6

        def fetch(i):
            got[i] = f.get("/big", i % 2)
        threads = [threading.Thread(target=fetch, args=(i,)) for i in range(len(got))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        t.check(f"1.{version}: port-forward of several connections at once", got == [big] * len(got), [x and len(x) for x in got])
        t.check(f"1.{version}: port-forward goes on", f.get() == b"hello\n")
    with Forward(n, program, "pod/web", ":http") as f:
        t.check(f"1.{version}: port-forward by the name of a port", f.get() == b"hello\n", f.said())
    with Forward(n, program, "web", ":9") as f:
        with socket.create_connection(("127.0.0.1", f.ports[0]), timeout=20) as s:
            data = b""
            try:
                data = s.recv(1)
            except ConnectionError:
                pass
            t.check(f"1.{version}: port-forward to nobody ends the connection", data == b"", data)
        wait_until(lambda: "connection refused" in f.said().lower(), 30, "what went wrong")
        t.check(f"1.{version}: and says so", re.search(r"an error occurred forwarding \d+ -> 9: .*9.*", f.said()), f.said())


# ---- the kubelet's own HTTP API ----

class Kubelet:
    def __init__(self, n):
        self.n, self.pki = n, os.path.join(n.server.folder, "data", "pki")

    def get(self, path, token=None, cert=None, method="GET"):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if cert:
            context.load_cert_chain(os.path.join(self.pki, cert + ".crt"), os.path.join(self.pki, cert + ".key"))
        c = http.client.HTTPSConnection(self.n.address, self.n.port, timeout=20, context=context)
        c.request(method, path, headers={"Authorization": "Bearer " + token} if token else {})
        r = c.getresponse()
        body = r.read().decode()
        c.close()
        return r.status, body


def allow_figures(n):
    """alice may see figures of nodes."""
    role = {"metadata": {"name": "figures"}, "rules": [{"apiGroups": [""], "resources": ["nodes/stats", "nodes/metrics"], "verbs": ["get"]}]}
    binding = {"metadata": {"name": "figures"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "figures"},
               "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "devs"}]}
    for kind, body in (("clusterroles", role), ("clusterrolebindings", binding)):
        r = n.server.request("POST", "/apis/rbac.authorization.k8s.io/v1/" + kind, body)
        if r.status != 201:
            raise RuntimeError(r)
    review = {"spec": {"resourceAttributes": {"verb": "get", "resource": "nodes", "subresource": "stats", "name": nodes.NODE}}}
    wait_until(lambda: n.server.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review, token="alice-token")
               .json["status"]["allowed"], 10, "the role to count")


def test_kubelet_api(t, n):
    k = Kubelet(n)
    allow_figures(n)
    for path in ("/pods", "/stats/summary", "/metrics", "/exec/default/shell/c?command=id&output=1"):
        t.check(f"{path} to nobody", k.get(path) == (401, "Unauthorized"), k.get(path))
    t.check("a wrong token", k.get("/pods", token="wrong") == (401, "Unauthorized"), k.get("/pods", token="wrong"))
    for path, verb, what in (("/pods", "get", "[pods proxy]"), ("/configz", "get", "[configz proxy]"), ("/run/default/shell/c", "create", "[proxy]"),
                             ("/containerLogs/default/log/c", "get", "[proxy]"), ("/logs/", "get", "[log]")):
        answer = k.get(path, token="alice-token", method="POST" if verb == "create" else "GET")
        t.check(f"{path} to somebody who may not", answer == (403, f"Forbidden (user=alice, verb={verb}, resource=nodes, subresource(s)={what})\n"), answer)
    for path, word in (("/pods", '"kind":"PodList"'), ("/runningpods/", '"kind":"PodList"'), ("/stats/summary", '"nodeName"'),
                       ("/metrics", "kubelet_node_name"),
                       ("/metrics/resource", "node_cpu_usage_seconds_total"), ("/metrics/cadvisor", "container_cpu_usage_seconds_total"),
                       ("/metrics/probes", "prober_probe_total"), ("/healthz", "ok"), ("/configz", '"kubeletconfig"')):
        for who in ({"token": "admin-token"}, {"cert": "admin"}, {"token": "alice-token"})[:3 if re.match("/(metrics|stats)", path) else 2]:
            status, body = k.get(path, **who)
            t.check(f"{path} by {who}", status == 200 and word in body.replace('": ', '":'), f"{status} {body[:600]}")
    pods = {p["metadata"]["name"]: p for p in json.loads(k.get("/pods", cert="admin")[1])["items"]}
    t.check("/pods has the pods and their status", pods["log"]["status"]["phase"] == "Running" and pods["log"]["spec"]["nodeName"] == nodes.NODE)
    answer = k.get("/run/default/shell/c?cmd=echo%20hi", cert="admin", method="POST")
    t.check("run answers with the output", answer == (200, "hi\n"), answer)
    status, body = k.get("/containerLogs/default/multi/b", cert="admin")
    t.check("containerLogs", (status, body) == (200, "from b\n"), body)
    t.check("no such path", k.get("/nothing", cert="admin")[0] == 404)
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", n.health, timeout=20)) as c:
        c.request("GET", "/healthz")
        t.check("the health port needs no certificate", c.getresponse().read() == b"ok")


def test_figures(t, n):
    def summary():
        return json.loads(n.kubectl("get", "--raw", f"/api/v1/nodes/{nodes.NODE}/proxy/stats/summary").stdout)

    def complete():
        s = summary()
        pods = {p["podRef"]["name"]: p for p in s["pods"]}
        c = next(iter(pods.get("ticks", {}).get("containers", [])), {})
        return s if c.get("memory", {}).get("workingSetBytes") and c.get("cpu", {}).get("usageCoreNanoSeconds") else None
    s = wait_until(complete, 20, "figures of a container")
    pods = {p["podRef"]["name"]: p for p in s["pods"]}
    t.check("stats/summary of the node", s["node"]["nodeName"] == nodes.NODE and s["node"]["memory"]["workingSetBytes"] > 0 and
            s["node"]["fs"]["capacityBytes"] > 0, s["node"])
    t.check("of a pod", pods["web"]["podRef"]["uid"] == n.pod("web")["metadata"]["uid"] and pods["web"]["memory"]["workingSetBytes"] > 0, pods["web"])
    t.check("of all of its containers", sorted(c["name"] for c in pods["multi"]["containers"]) == ["a", "b"], pods["multi"])
    text = n.kubectl("get", "--raw", f"/api/v1/nodes/{nodes.NODE}/proxy/metrics/resource").stdout
    want = r'container_memory_working_set_bytes{container="c",namespace="default",pod="ticks"} \d'
    t.check("metrics/resource names containers", re.search(want, text), text[:1000])
    text = n.kubectl("get", "--raw", f"/api/v1/nodes/{nodes.NODE}/proxy/metrics/cadvisor").stdout
    t.check("metrics/cadvisor too", re.search(r'container_memory_working_set_bytes{container="c",.*pod="ticks"', text), text[:1000])
    text = n.kubectl("get", "--raw", f"/api/v1/nodes/{nodes.NODE}/proxy/metrics").stdout
    running = re.search(r"kubelet_running_pods (\d+)", text)
    t.check("metrics counts pods", running and int(running[1]) >= 8, text[:1000])
    out = n.kubectl("get", "--raw", f"/api/v1/nodes/{nodes.NODE}/proxy/healthz").stdout
    t.check("a node's health through the API server", out == "ok", out)


def test_nothing_is_left(t, n):
    n.remove_all_pods()
    left = tap.wait_for(lambda: not n.leftovers(), 60)
    t.check("nothing is left of the pods", left, n.leftovers())


def main(t):
    runtime = sys.argv[1] if len(sys.argv) > 1 else "c8s"
    why = nodes.missing(runtime)
    if why:
        return t.skip("streams", why)
    programs = kubectl_test.programs()
    nodes.own_namespaces()
    with nodes.Node(runtime=runtime, address="10.215.0.1") as n:
        make_pods(n)
        newest = programs[max(programs)]
        own = {OWN: KUBECTL} if os.path.exists(KUBECTL) else {}
        for version, program in {**programs, **own}.items():
            test_logs(t, n, version, program)
        nodes.together(t, [lambda t, v=v, p=p, test=test: test(t, n, v, p) for v, p in {**programs, **own}.items()
                           for test in (test_exec, test_terminal, test_attach, test_run)] +
                          [lambda t, v=v, p=p, test=test: test(t, n, v, p) for v, p in programs.items() for test in (test_cp, test_port_forward)])
        test_follow(t, n, {**programs, **own})
        test_debug(t, n, newest)
        test_kubelet_api(t, n)
        test_figures(t, n)
        test_nothing_is_left(t, n)


if __name__ == "__main__":
    tap.run([main])
