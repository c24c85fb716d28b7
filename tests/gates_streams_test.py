#!/usr/bin/env python3
"""The audit of what takes long: exec, attach, forwarded ports, logs, proxies and watches have a beginning and an end, and both are told
when they happen. Needs C8S, the program to test."""
import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster  # noqa: E402
import kubelet  # noqa: E402
import peers  # noqa: E402
import subresource_test  # noqa: E402
import tap  # noqa: E402

POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- {level: None, users: [admin], verbs: [create, patch]}
- {level: RequestResponse, resources: [{group: "", resources: [pods/exec, pods/attach, pods/portforward, pods/log, nodes/proxy, configmaps]}]}
- {level: None}
"""
NS = "/api/v1/namespaces/t"
STAGES = ["RequestReceived", "ResponseStarted", "ResponseComplete"]


class World:
    def __init__(self, folder):
        policy, self.audit = os.path.join(folder, "policy.yaml"), os.path.join(folder, "audit.log")
        with open(policy, "w") as f:
            f.write(POLICY)
        self.server = cluster.Server(folder, "--audit-policy-file", policy, "--audit-log-path", self.audit).start()
        pki, self.seen = os.path.join(folder, "data", "pki"), 0
        self.kubelet = kubelet.Kubelet(os.path.join(pki, "apiserver.crt"), os.path.join(pki, "apiserver.key"), "0.0.0.0").__enter__()
        self.address = subresource_test.own_address()
        self.make("/api/v1/namespaces", "Namespace", "t")
        self.make(NS + "/serviceaccounts", "ServiceAccount", "default")
        for node, port in (("n1", self.kubelet.port), ("gone", cluster.free_port())):
            self.make("/api/v1/nodes", "Node", node, status={
                "addresses": [{"type": "InternalIP", "address": self.address or "127.0.0.1"}], "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}})
        for pod, node in (("p", "n1"), ("lost", "gone")):
            self.make(NS + "/pods", "Pod", pod, spec={"nodeName": node, "automountServiceAccountToken": False,
                                                      "containers": [{"name": "c", "image": "x"}]})
            self.server.request("PATCH", f"{NS}/pods/{pod}/status", {"status": {"phase": "Running"}})

    def make(self, path, kind, name, **more):
        r = self.server.request("POST", path, {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **more})
        if r.status != 201:
            raise RuntimeError(r)

    def events(self):
        with open(self.audit) as f:
            return [json.loads(line) for line in f]

    def skip(self):
        """What comes from now on is new."""
        self.seen = len(self.events())

    def new(self, n=3):
        """The next events, n of them; fewer when no more come."""
        try:
            cluster.wait_until(lambda: len(self.events()) >= self.seen + n, 10, "events")
        except TimeoutError:
            pass
        events = self.events()[self.seen:]
        self.seen += len(events)
        return events

    def watch(self):
        """By somebody whose name is known from the connection."""
        c = self.server.connect()
        c._context.load_cert_chain(*(os.path.join(self.server.folder, "data", "pki", "admin" + x) for x in (".crt", ".key")))
        c.request("GET", NS + "/configmaps?watch=true")
        c.getresponse()
        return c

    def kubectl(self, *args):
        program = peers.find("kubectl", "kubernetes-client")
        return subprocess.Popen([program, "--kubeconfig", self.server.kubeconfig, "-n", "t", *args], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def stages(events):
    return [e["stage"] for e in events]


def whole(events, subresource, code, verb="get"):
    """A beginning and an end, in their order, about one request."""
    return (stages(events) == STAGES and len({e["auditID"] for e in events}) == 1 and "responseStatus" not in events[0] and
            [e["responseStatus"]["code"] for e in events[1:]] == [code, code] and
            events[1]["stageTimestamp"] <= events[2]["stageTimestamp"] and
            all(e["objectRef"].get("subresource") == subresource and e["verb"] == verb for e in events) and
            not any(k in e for e in events for k in ("requestObject", "responseObject")))


def exec_and_attach(w, t):
    w.skip()
    p = w.kubectl("exec", "-i", "p", "--", "cat")
    p.stdin.write(b"hello\n")
    p.stdin.flush()
    line = p.stdout.readline()
    begun = w.new(2)
    t.check("exec has begun, and that is told while it runs", line == b"hello\n" and stages(begun) == STAGES[:2] and
            begun[1]["responseStatus"] == {"metadata": {}, "code": 101}, (line, begun))
    t.check("and is told as it was asked for", begun[1]["requestURI"].startswith(NS + "/pods/p/exec?command=cat&container=c&") and
            begun[1]["objectRef"] == {"resource": "pods", "namespace": "t", "name": "p", "apiVersion": "v1", "subresource": "exec"}, begun)
    p.communicate(timeout=20)
    ended = w.new(1)
    t.check("and its end", p.returncode == 0 and whole(begun + ended, "exec", 101), (p.returncode, begun + ended))
    p = w.kubectl("attach", "-i", "p")
    p.stdin.write(b"x\n")
    p.stdin.flush()
    p.stdout.readline()
    begun = w.new(2)
    p.kill()
    p.communicate()
    events = begun + w.new(1)
    t.check("a client that goes away ends it", whole(events, "attach", 101), events)


def refusals(w, t):
    w.skip()
    r = w.server.request("GET", NS + "/pods/p/exec?command=ls&stdout=true", token="alice-token")
    events = w.new()
    t.check("one that may not", r.status == 403 and stages(events) == STAGES and
            [e.get("responseStatus", {}).get("code") for e in events] == [None, 403, 403] and
            events[2]["responseStatus"]["reason"] == "Forbidden" and events[2]["annotations"]["authorization.k8s.io/decision"] == "forbid", events)
    r = w.server.request("GET", NS + "/pods/none/log")
    events = w.new()
    t.check("nothing there", r.status == 404 and stages(events) == STAGES and all(
        e["responseStatus"]["reason"] == "NotFound" and e["responseObject"]["kind"] == "Status" for e in events[1:]), events)
    r = w.server.request("GET", NS + "/pods/lost/log")
    events = w.new()
    t.check("nobody there", r.status == 500 and stages(events) == STAGES and events[2]["responseStatus"]["code"] == 500, (r, events))


def forwarded_ports(w, t):
    w.skip()
    p = w.kubectl("port-forward", "p", f":{w.server.port}")
    line = p.stdout.readline().decode()
    begun = w.new(2)
    p.send_signal(signal.SIGINT)
    p.communicate(timeout=20)
    events = begun + w.new(1)
    t.check("forwarded ports", line.startswith("Forwarding from") and whole(events, "portforward", 101), (line, events))


def logs(w, t):
    w.skip()
    c = w.server.connect()
    c.request("GET", NS + "/pods/p/log?follow=true", headers={"Authorization": "Bearer admin-token"})
    r = c.getresponse()
    first = r.readline()
    begun = w.new(2)
    t.check("a log that is followed has begun", first == b"one\n" and stages(begun) == STAGES[:2], begun)
    time.sleep(0.6)
    w.kubelet.more.set()
    r.read()
    events = begun + w.new(1)
    t.check("and ends", whole(events, "log", 200), events)
    note = events[2]["annotations"].get("apiserver.latency.k8s.io/total", "") if len(events) == 3 else ""
    t.check("how long it took is noted", note.endswith("ms") or note.endswith("s"), events)
    c.close()
    w.server.request("GET", NS + "/pods/p/log")
    events = w.new()
    t.check("a log that is not followed is the same", whole(events, "log", 200), events)


def proxies(w, t):
    if not w.address:
        t.skip("what a proxy brings", "this machine has no address but loopback, which is not for proxies")
        return
    w.skip()
    r = w.server.request("GET", "/api/v1/nodes/n1/proxy/some/path?q=1")
    events = w.new()
    t.check("what a proxy brings", r.status == 200 and whole(events, "proxy", 200) and
            events[2]["requestURI"] == "/api/v1/nodes/n1/proxy/some/path?q=1", (r, events))
    r = w.server.request("GET", "/api/v1/nodes/n1/proxy/missing/path")
    events = w.new()
    t.check("or does not", r.status == 404 and whole(events, "proxy", 404), (r, events))
    r = w.server.request("GET", "/api/v1/nodes/gone/proxy/")
    events = w.new()
    t.check("or cannot", r.status == 503 and stages(events) == STAGES and events[2]["responseStatus"]["code"] == 503, (r, events))


def watches(w, t):
    """Last: it ends with the server."""
    w.skip()
    c = w.watch()
    begun = w.new(2)
    t.check("a watch has begun", stages(begun) == STAGES[:2] and begun[1]["verb"] == "watch" and
            begun[1]["user"]["username"] == "kubernetes-admin", begun)
    c.close()
    events = begun + w.new(1)
    t.check("a client that goes away ends it", whole(events, None, 200, "watch"), events)
    c = w.watch()
    begun = w.new(2)
    code = w.server.stop()
    events = begun + w.new(1)
    t.check("and so does the end of the server", code == 0 and whole(events, None, 200, "watch"), (code, events))


def main():
    with cluster.Folder() as folder:
        w = World(folder)
        tests = [refusals, logs, proxies, watches]
        if peers.find("kubectl", "kubernetes-client"):
            tests = [exec_and_attach, forwarded_ports, *tests]

        def named(test):
            def run(t):
                test(w, t)
            run.__name__ = test.__name__
            return run
        try:
            tap.run([named(x) for x in tests])
        finally:
            w.kubelet.__exit__()
            w.server.kill()


if __name__ == "__main__":
    main()
