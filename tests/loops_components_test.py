#!/usr/bin/env python3
"""The scheduler and the controllers as processes of their own with their own kubeconfigs, two of each, and all in one process with the API server:
everything works, and nobody needs more than the roles that Kubernetes has for them. Needs C8S, the program to test."""
import json
import os
import re
import signal
import subprocess
import time

import every_controller
import nodes
import peers
import tap
from cluster import C8S, Component, ControlPlane, Etcd, Folder, Server, wait_until

# Short, so that the test is.
ELECTION = ["--leader-elect-lease-duration", "4s", "--leader-elect-renew-deadline", "3s", "--leader-elect-retry-period", "500ms"]
CONTROLLERS = ["--allocate-node-cidrs", "--cluster-cidr", "10.244.0.0/16", "--local-path-root", "/nowhere", "--controllers", "*,bootstrapsigner,tokencleaner"]


def audited(folder):
    policy = os.path.join(folder, "policy.yaml")
    with open(policy, "w") as f:
        f.write("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- level: Metadata\n")
    return ["--authorization-mode", "Node,RBAC", "--service-cluster-ip-range", "10.96.0.0/16", "--audit-policy-file", policy, "--audit-log-path",
            os.path.join(folder, "audit.log"), "--audit-log-mode", "blocking"]


def holder(server, lease):
    return server.request("GET", f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{lease}").json["spec"].get("holderIdentity") or ""


def leader(pair):
    return next(c for c in pair if "became leader" in c.said())


def exercise(t, server, where):
    work = every_controller.Work(server)
    work.start()
    left = work.settle()
    t.check(f"{where}: all controllers and the scheduler do their work", not left, left)
    work.end()


def check_refusals(t, server, where, logs):
    audit = os.path.join(server.folder, "audit.log")
    found = every_controller.forbidden(audit)
    t.check(f"{where}: nothing is refused to them", not found, "\n".join(found))
    who = every_controller.users(audit)
    t.check(f"{where}: each is a user of its own", {"system:kube-scheduler", "system:kube-controller-manager",
            "system:serviceaccount:kube-system:deployment-controller", "system:serviceaccount:kube-system:generic-garbage-collector"} <= who, sorted(who))
    said = "\n".join(line for text in logs for line in text.splitlines() if "orbidden" in line and "being terminated" not in line)
    t.check(f"{where}: nor do they say so", not said, said)


# ---- processes ----

def check_port(t, c, want_config):
    health = [c.get(path).body for path in ("/healthz", "/livez", "/readyz")]
    t.check(f"{c.name}: health is for everybody", health == [b"ok"] * 3, health)
    verbose = c.get("/readyz?verbose").body
    t.check(f"{c.name}: and says what was looked at", b"[+]ping ok" in verbose and b"readyz check passed" in verbose, verbose)
    codes = [c.get(path, token).status for path in ("/metrics", "/configz") for token in (None, "wrong", "alice-token", "admin-token")]
    t.check(f"{c.name}: the rest for those whom the API server allows it", codes == [403, 401, 403, 200] * 2, codes)
    config = c.get("/configz", "admin-token").json
    t.check(f"{c.name}: its configuration", want_config(config), config)
    metrics = c.get("/metrics", "admin-token").body.decode()
    lines = [line for line in metrics.splitlines() if not line.startswith("#")]
    t.check(f"{c.name}: metrics", lines and all(re.fullmatch(r"[a-z_]+(\{.*\})? [-+.\deInfNa]+", line) for line in lines), metrics[:2000])
    t.check(f"{c.name}: no other paths", c.get("/nothing", "admin-token").status == 404)


def check_takeover(t, server, name, lease, pair, sig, limit_s):
    old = leader(pair)
    new = next(c for c in pair if c is not old)
    t.check(f"{name}: one of two leads", "became leader" not in new.said() and holder(server, lease) in old.said(), new.said())
    began = time.monotonic()
    old.kill(sig)
    new.wait_said("became leader")
    took = time.monotonic() - began
    t.check(f"{name}: after {sig.name} the other one leads in time", took < limit_s, f"{took:.1f} s")


def processes(t):
    with Folder() as folder, Server(folder, *audited(folder)) as server:
        managers = [Component(server, "kube-controller-manager", *ELECTION, *CONTROLLERS).start() for _ in range(2)]
        schedulers = [Component(server, "kube-scheduler", *ELECTION).start() for _ in range(2)]
        hollow = Component(server, "hollow", "--nodes", "3").start()
        everything = [*managers, *schedulers, hollow]
        try:
            wait_until(lambda: any("ready\n" in c.said() for c in managers) and "are ready" in hollow.said(), 30, "the cluster")
            exercise(t, server, "processes")
            check_port(t, leader(managers), lambda c: c["kubecontrollermanager.config.k8s.io"]["Generic"]["LeaderElection"]["leaseDuration"] == "4s")
            check_port(t, leader(schedulers), lambda c: c["componentconfig"]["leaderElection"]["leaseDuration"] == "4s" and
                       c["componentconfig"]["profiles"][0]["schedulerName"] == "default-scheduler")
            # The lease has its whole time left when its holder is killed, and the others look for it every 0.5 to 1.1 s.
            check_takeover(t, server, "kube-controller-manager", "kube-controller-manager", managers, signal.SIGKILL, 4 + 2)
            check_takeover(t, server, "kube-scheduler", "kube-scheduler", schedulers, signal.SIGTERM, 2)
            server.kubectl("create", "deployment", "later", "--image", "x", "--replicas", "2")
            server.kubectl("rollout", "status", "deployment/later", "--timeout", "20s")
            t.check("the others go on", True)
            check_refusals(t, server, "processes", [c.said() for c in everything])
            codes = [c.kill() for c in everything if c.process.poll() is None]
            t.check("they stop in good order", codes == [0] * len(codes), codes)
        finally:
            for c in everything:
                c.kill(signal.SIGKILL)


# ---- one process ----

def one_process(t):
    with Folder() as folder, ControlPlane(folder, *audited(folder), *CONTROLLERS) as plane:
        hollow = Component(plane, "hollow", "--nodes", "3").start()
        try:
            exercise(t, plane, "one process")
            check_refusals(t, plane, "one process", [plane.said()])
        finally:
            hollow.kill()
        t.check("one process: it stops in good order", plane.stop() == 0, plane.said()[-2000:])


def planes_on_etcd(t):
    if not peers.find("etcd", "etcd-server"):
        t.check("two control planes on one etcd # SKIP etcd of Debian's package etcd-server cannot be had", True)
        return
    with Folder() as folder, Etcd(os.path.join(folder, "etcd")) as etcd:
        flags = ["--etcd-servers", etcd.endpoints, *ELECTION]
        planes = [ControlPlane(os.path.join(folder, str(i)), *flags) for i in range(2)]
        for p in planes:
            p.start()
        try:
            first, second = planes
            t.check("two control planes: the first one leads", "became leader" in first.said() and "became leader" not in second.said(), second.said())
            first.kill(signal.SIGKILL)
            wait_until(lambda: second.said().count("became leader") == 2, 20, "the second control plane to lead")
            hollow = Component(second, "hollow", "--nodes", "1").start()
            second.kubectl("create", "deployment", "web", "--image", "x")
            second.kubectl("rollout", "status", "deployment/web", "--timeout", "20s")
            hollow.kill()
            t.check("the second one takes over", True)
        finally:
            for p in planes:
                p.kill()


# ---- flags ----

def run(*line):
    r = subprocess.run([C8S, *line], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    return r.returncode, r.stdout + r.stderr


def flags(t):
    for line, want in [
            (["kube-controller-manager", "--controllers=nothing"], '"nothing" is not in the list of known controllers'),
            (["kube-controller-manager", "--master=http://127.0.0.1:1", "--secure-port=0", "--leader-elect-renew-deadline=20s"],
             "leaseDuration must be greater than renewDeadline"),
            (["kube-scheduler", "--leader-elect-renew-deadline=20s"], "leaderElection.leaseDuration: Invalid value: \"20s\": must be greater than `RenewDeadline`"),
            (["kube-controller-manager", "--feature-gates=A"], "missing bool value for A"),
            (["kube-controller-manager", "--cluster-signing-kubelet-serving-cert-file=x"], "\"cluster-signing-kubelet-serving\": cannot specify cert without key"),
            (["kube-controller-manager", "--cluster-signing-legacy-unknown-key-file=x", "--cluster-signing-legacy-unknown-cert-file=x", "--cluster-signing-cert-file=x"],
             "cannot specify --cluster-signing-{cert,key}-file and other --cluster-signing-*-file flags at the same time"),
            (["control-plane", "--kubeconfig=x"], "--kubeconfig=x is not known"),
            (["control-plane", "--logging-format=xml"], "unsupported log format 'xml'"),
            (["control-plane", "--controllers=nothing"], "c8s control-plane: \"nothing\" is not in the list of known controllers")]:
        code, said = run(*line)
        t.check(" ".join(line), code != 0 and want in said, said)
    code, said = run("control-plane", "--help")
    names = re.findall(r"^  (-\S+)", said, re.M)
    t.check("control-plane has the flags of all three, each once", code == 0 and len(names) == len(set(names)) and
            {"--etcd-servers", "--cluster-cidr", "--config", "--scheduler-secure-port", "--leader-elect"} <= set(names), said[:3000])


def config_file(t):
    with Folder() as folder:
        path, out = os.path.join(folder, "config"), os.path.join(folder, "out")
        with open(path, "w") as f:
            json.dump({"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "percentageOfNodesToScore": 7,
                       "leaderElection": {"leaderElect": True}, "profiles": [{"schedulerName": "one"}, {"schedulerName": "two"}]}, f)
        code, said = run("kube-scheduler", "--config", path, "--leader-elect=false", "--kube-api-qps=3", "--write-config-to", out)
        text = open(out).read() if code == 0 else said
        t.check("--config: what the file says, and the flags of leader election", "schedulerName: two" in text and "percentageOfNodesToScore: 7" in text and
                "leaderElect: false" in text and "qps: 50" in text, text)


def together(t):
    nodes.together(t, [processes, one_process, planes_on_etcd, flags, config_file])


tap.run([together])
