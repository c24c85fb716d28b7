#!/usr/bin/env python3
"""What pods may use: control groups with their values, limits that are enforced and reported, evictions, pods that a node refuses, and what
is collected: logs, dead containers, images. Needs C8S, the program to test, with c8s-pod beside it, and root.
Argument: the runtime, c8s or containerd."""
import os
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import images  # noqa: E402
import nodes  # noqa: E402
import peers  # noqa: E402
import pods  # noqa: E402
import tap  # noqa: E402
from cluster import wait_until  # noqa: E402
from pods import BUILT_IN, amounts, create, end_of, ended, finish, group_of, rejected, same, started  # noqa: E402

V2 = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
FILES = {"shares": ("cpu", "cpu.shares", "cpu.weight"), "quota": ("cpu", "cpu.cfs_quota_us", "cpu.max"), "pids": ("pids", "pids.max", "pids.max"),
         "memory": ("memory", "memory.limit_in_bytes", "memory.max"), "stat": ("cpu", "cpu.stat", "cpu.stat")}
PIDS = 64
MIB = 1 << 20
CONFIG = {"podPidsLimit": PIDS, "containerLogMaxSize": "10Ki", "containerLogMaxFiles": 3, "containerLogMonitorInterval": "3s",
          "evictionPressureTransitionPeriod": "0s"}


def value(group, what):
    controller, v1, v2 = FILES[what]
    with open(f"/sys/fs/cgroup{group}/{v2}" if V2 else f"/sys/fs/cgroup/{controller}{group}/{v1}") as f:
        text = f.read().strip()
    if not V2 or what in ("pids", "stat"):
        return text
    return {"max": "-1"}.get(text.split()[0], text.split()[0])


def values(group, *which):
    """A limit that is none is -1."""
    found = [value(group, what) for what in which]
    return ["-1" if what in ("memory", "quota") and (v == "0" or int(v) >= 1 << 60) else v for what, v in zip(which, found)]


# ---- control groups ----

def test_groups(t, n):
    create(n, "guaranteed", "cat /proc/self/oom_score_adj; sleep 1000", **amounts(limits={"cpu": "500m", "memory": "64Mi"}))
    create(n, "burstable", "cat /proc/self/oom_score_adj; sleep 1000", **amounts({"cpu": "250m", "memory": "256Mi"}, {"memory": "512Mi"}))
    create(n, "best", "cat /proc/self/oom_score_adj; sleep 1000")
    guaranteed, burstable, best = started(n, "guaranteed", "burstable", "best")
    same(t, "classes of pods", [p["status"]["qosClass"] for p in (guaranteed, burstable, best)], ["Guaranteed", "Burstable", "BestEffort"])
    shares = {"512": "512", "256": "256", "2": "2"}
    if V2:
        shares = {"512": "59", "256": "35", "2": "1"}
    for name, pod, wanted in (("Guaranteed", guaranteed, [shares["512"], "50000", str(64 * MIB)]),
                              ("Burstable", burstable, [shares["256"], "-1", str(512 * MIB)]), ("BestEffort", best, [shares["2"], "-1", "-1"])):
        same(t, f"{name}: CPU and memory of the pod", values(group_of(n, pod), "shares", "quota", "memory"), wanted)
        same(t, f"{name}: and of the container", values(group_of(n, pod, True), "shares", "quota", "memory"), wanted)
        same(t, f"{name}: processes of the pod", value(group_of(n, pod), "pids"), str(PIDS))
    capacity = n.get("/api/v1/nodes/" + nodes.NODE).json["status"]["capacity"]
    if not V2:
        same(t, "all pods together: the CPUs of the node", value(n.cgroup + "/kubepods", "shares"), str(int(capacity["cpu"]) * 1024))
    with open("/proc/self/status") as f:
        may = int(next(line.split()[1] for line in f if line.startswith("CapEff:")), 16) >> 24 & 1  # SYS_RESOURCE
    with open("/proc/self/oom_score_adj") as f:
        own = int(f.read())
    score = 1000 - 1000 * 256 * MIB // (int(capacity["memory"][:-2]) * 1024)
    wanted = [-997 if may else own, min(max(score, 3), 999), 1000]
    same(t, "who goes first when memory is short", [int(tap.wait_for(lambda: n.output(name), 5)) for name in  # noqa: B023
                                                    ("guaranteed", "burstable", "best")], wanted)


def test_pod_level(t, n):
    limits = {"cpu": "500m", "memory": "64Mi"}
    pod = n.make("as-a-whole", spec=amounts(limits, limits))
    pod["spec"]["containers"].append({"name": "second", "image": n.image, "command": ["sleep", "1000"], **amounts(limits={"memory": "32Mi"})})
    n.create(pod)
    pod, = started(n, "as-a-whole")
    same(t, "resources of the pod as a whole: its class", pod["status"]["qosClass"], "Guaranteed")
    same(t, "resources of the pod as a whole: CPU and memory", values(group_of(n, pod), "quota", "memory"), ["50000", str(64 * MIB)])


def test_overhead(t, n):
    n.server.request("POST", "/apis/node.k8s.io/v1/runtimeclasses", {"metadata": {"name": "dear"}, "handler": "runc",
                                                                     "overhead": {"podFixed": {"cpu": "250m", "memory": "32Mi"}}})
    # The kubelet has to know of the class first.
    time.sleep(0.5)
    create(n, "overhead", "sleep 1000", {"runtimeClassName": "dear"}, **amounts(limits={"cpu": "250m", "memory": "32Mi"}))
    pod, = started(n, "overhead")
    same(t, "overhead is the pod's", values(group_of(n, pod), "quota", "memory"), ["50000", str(64 * MIB)])
    same(t, "and not the container's", values(group_of(n, pod, True), "quota", "memory"), ["25000", str(32 * MIB)])


# ---- limits ----

def test_memory(t, n):
    n.create(n.make("oom", ("sh", "-c", "exec dd if=/dev/zero of=/dev/null bs=100M count=1"), spec={"restartPolicy": "OnFailure"},
                    **amounts(limits={"memory": "20Mi"})))
    create(n, "oom-once", "exec dd if=/dev/zero of=/dev/null bs=100M count=1", **amounts(limits={"memory": "20Mi"}))
    pod = n.seen.wait("oom", lambda p: any(c["restartCount"] and "terminated" in c["lastState"] for c in p["status"].get("containerStatuses", [])), 40)
    last = pod["status"]["containerStatuses"][0]["lastState"]["terminated"]
    # containerd learns of it by an event that may come after the end.
    reasons = ("OOMKilled", "Error") if n.containerd else ("OOMKilled",)
    same(t, "memory: a container that uses more is killed and started again", (last["reason"] in reasons, last["exitCode"]), (True, 137))
    end_of(n, "oom-once")
    state = n.pod("oom-once")["status"]["containerStatuses"][0]["state"]["terminated"]
    same(t, "memory: or the pod has failed", (n.phase("oom-once"), state["reason"] in reasons, state["exitCode"]), ("Failed", True, 137))


def test_cpu(t, n):
    create(n, "busy", "while true; do true; done", **amounts(limits={"cpu": "100m", "memory": "20Mi"}))
    pod, = started(n, "busy")
    group = group_of(n, pod)

    def stat():
        found = dict(line.split() for line in value(group, "stat").splitlines())
        return int(found["nr_periods"]), int(found["nr_throttled"])
    begin = stat()
    time.sleep(2)
    periods, throttled = (b - a for a, b in zip(begin, stat()))
    t.check("cpu: a container that wants more is slowed down", periods > 5 and throttled > 1, (periods, throttled))


def test_pids(t, n):
    create(n, "forks", "(for i in $(seq 100); do sleep 2 & done) 2>&1 | tail -1")
    got = finish(n, "forks")
    t.check("processes: no more than allowed", "can't fork" in got, got)


def test_local_storage(t, n):
    fill = "dd if=/dev/zero of=/file bs=1M count=3 2>/dev/null; sleep 1000"
    limited = amounts(limits={"ephemeral-storage": "1Mi"})
    create(n, "disk", fill, **limited)
    two = n.make("disk-two", ("sh", "-c", fill), spec={"restartPolicy": "Never"}, **limited)
    two["spec"]["containers"].append({"name": "other", "image": n.image, "command": ["sleep", "1000"], **amounts(limits={"ephemeral-storage": "100Mi"})})
    n.create(two)
    same(t, "ephemeral-storage: a pod that uses more is evicted", end_of(n, "disk", 45),
         ["Failed", "Evicted", "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. "])
    same(t, "ephemeral-storage: also by one of its containers", end_of(n, "disk-two", 45),
         ["Failed", "Evicted", 'Container c exceeded its local ephemeral storage limit "1Mi". '])
    told = n.seen.event("disk", "Evicted")
    same(t, "and there is an event", told[0], "Warning")


# ---- pods that are refused ----

def test_refused(t, n):
    for name, amount in (("cpu", "1000"), ("memory", "900Ti"), ("ephemeral-storage", "900Pi")):
        create(n, "outof" + name, **amounts({name: amount}))
    create(n, "selector", spec={"nodeSelector": {"disk": "golden"}})
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "NotIn", "values": [nodes.NODE]}]}
    create(n, "affinity", spec={"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}})
    for name, requested in (("cpu", 1000 * 1000), ("memory", 900 << 40), ("ephemeral-storage", 900 << 50)):
        phase, reason, message = end_of(n, "outof" + name)
        pattern = rf"Pod was rejected: Node didn't have enough resource: {name}, requested: {requested}, used: \d+, capacity: \d+"
        t.check(f"refused: OutOf{name}", (phase, reason) == ("Failed", "OutOf" + name) and re.fullmatch(pattern, message), (phase, reason, message))
        told = n.seen.event("outof" + name, "OutOf" + name)
        t.check(f"refused: the event OutOf{name}", told[0] == "Warning" and "Pod was rejected: " + told[2] == message, told)
    wanted = rejected("NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector")
    same(t, "refused: nodeSelector", end_of(n, "selector"), wanted)
    same(t, "refused: affinity", end_of(n, "affinity"), wanted)


def test_taints(t, n):
    """After the others: it would keep their pods away."""
    def taint(*taints):
        n.server.request("PATCH", "/api/v1/nodes/" + nodes.NODE, {"spec": {"taints": list(taints)}})
        time.sleep(0.5)
    taint({"key": "k", "value": "v", "effect": "NoExecute"})
    create(n, "tainted")
    create(n, "tolerant", "echo runs", {"tolerations": [{"key": "k", "operator": "Exists"}]})
    same(t, "refused: a taint with NoExecute", end_of(n, "tainted"),
         rejected("TaintToleration", "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"))
    same(t, "a pod that tolerates it runs", finish(n, "tolerant"), "runs\n")
    taint()


# ---- what is collected ----

def test_logs(t, n):
    create(n, "talks", "i=0; while sleep 0.02; do i=$((i+1)); echo $i of very many lines of the log of this container; done")
    pod, = started(n, "talks")
    folder = f"{n.logs}/default_talks_{pod['metadata']['uid']}/c"

    def rotated():
        return sorted(name for name in os.listdir(folder) if name != "0.log")
    tap.wait_for(lambda: len(rotated()) == 2 and rotated()[0].endswith(".gz"), 25)
    names = rotated()
    t.check("logs are rotated, the older ones packed, the oldest removed", len(names) == 2 and re.fullmatch(r"0\.log\.\d{8}-\d{6}\.gz", names[0]) and
            re.fullmatch(r"0\.log\.\d{8}-\d{6}", names[1]), names)
    wait_until(lambda: n.output("talks", tailLines=1), 5, "lines after the rotation")
    before = int(n.output("talks", tailLines=1).split()[0])
    tap.wait_for(lambda: int((n.output("talks", tailLines=1) or "0").split()[0]) > before, 5)
    t.check("and the container talks on", int(n.output("talks", tailLines=1).split()[0]) > before)
    first = int(n.output("talks").split()[0])
    t.check("what was rotated is no longer told", first > 1, first)


def test_dead_containers(t, n):
    """Dead twice; the collection itself comes with the next start."""
    n.create(n.make("dies", ("sh", "-c", "exit 3")))
    n.seen.wait("dies", lambda p: any(c["restartCount"] >= 2 for c in p["status"].get("containerStatuses", [])), 40, "two restarts")


def dead(n, name):
    uid = n.pod(name)["metadata"]["uid"]
    return n.crictl("ps", "-a", "-q", "--state", "exited", "--label", "io.kubernetes.pod.uid=" + uid).split()


# ---- pressure ----

def condition(n, kind):
    return next((c["status"], c["reason"], c["message"]) for c in n.get("/api/v1/nodes/" + nodes.NODE).json["status"]["conditions"] if c["type"] == kind)


def test_disk_pressure(t, _):
    """A node of its own, whose disk is always too small."""
    with nodes.Node(pods.RUNTIME, config={"evictionHard": {"nodefs.available": "900Pi"}}) as n:
        n.seen = n.watch()
        tap.wait_for(lambda: condition(n, "DiskPressure")[0] == "True", 15)
        same(t, "disk: the node tells of the pressure", condition(n, "DiskPressure"), ("True", "KubeletHasDiskPressure", "kubelet has disk pressure"))
        same(t, "disk: and only of that", condition(n, "MemoryPressure")[0], "False")
        create(n, "late", spec={"hostNetwork": True})
        same(t, "disk: no more pods are taken", end_of(n, "late"), rejected("Evicted", "The node had condition: [DiskPressure]. "))
        if BUILT_IN:  # containerd before 2.0 does not pin its pause image, which is then removed like others
            create(n, "critical", "echo runs", {"hostNetwork": True, "priorityClassName": "system-node-critical"})
            same(t, "disk: but those that the node needs", finish(n, "critical"), "runs\n")
        told = n.seen.event(nodes.NODE, "EvictionThresholdMet", seconds=15)
        same(t, "disk: an event tells what is tried", told[:3], ("Warning", "EvictionThresholdMet", "Attempting to reclaim ephemeral-storage"))


def test_pressure_and_collection(t, n):
    """The kubelet starts again, with memory that is always short and no room for images."""
    n.remove_all_pods(but=["dies"])
    stays = n.pod("dies")["metadata"]["uid"]
    tap.wait_for(lambda: len(n.leftovers()) and all(stays in one or "veth" in one or n.state in one for one in n.leftovers()), 10)
    unused = n.put_image("unused", images.Image({"file": b"x" * 100000}))
    n.crictl("pull", unused)
    create(n, "victim", "sleep 1000")
    victim, = started(n, "victim")
    before = set(dead(n, "dies"))
    t.check("dead containers are there", len(before) >= 2, before)
    n.kill_kubelet(15)
    n.more.update({"evictionHard": {"memory.available": "900Ti"}, "imageGCHighThresholdPercent": 2, "imageGCLowThresholdPercent": 1})
    n.start_kubelet()
    tap.wait_for(lambda: len(before & set(dead(n, "dies"))) <= 1, 10)
    t.check("dead containers beyond the last are removed", len(before & set(dead(n, "dies"))) <= 1, (before, dead(n, "dies")))
    tap.wait_for(lambda: "/unused" not in n.crictl("images"), 10)
    left = n.crictl("images")
    t.check("images that nobody uses are removed", "/unused" not in left and "/busybox" in left, left)
    tap.wait_for(lambda: condition(n, "MemoryPressure")[0] == "True", 15)
    same(t, "memory: the node tells of the pressure", condition(n, "MemoryPressure"),
         ("True", "KubeletHasInsufficientMemory", "kubelet has insufficient memory available"))
    create(n, "best-late")
    same(t, "memory: no more pods without requests are taken", end_of(n, "best-late"), rejected("Evicted", "The node had condition: [MemoryPressure]. "))
    create(n, "some-late", "echo runs; sleep 5", {"restartPolicy": "Never"}, **amounts({"cpu": "10m"}))
    n.seen.wait("some-late", lambda p: p["status"].get("phase") in ("Running", "Succeeded") or ended(p), 20)
    t.check("memory: others are", "was rejected" not in (n.pod("some-late")["status"].get("message") or ""), n.pod("some-late")["status"])
    phase, reason, message = end_of(n, "victim", 30)
    pattern = (r"The node was low on resource: memory\. Threshold quantity: 900Ti, available: \d+Ki\. "
               r"Container c was using \d+Ki?, request is 0, has larger consumption of memory\. ")
    t.check("memory: a pod is evicted", (phase, reason) == ("Failed", "Evicted") and re.fullmatch(pattern, message), (phase, reason, message))
    target = [c for c in n.pod("victim")["status"]["conditions"] if c["type"] == "DisruptionTarget"]
    t.check("memory: and its conditions tell so", target and target[0]["reason"] == "TerminationByKubelet" and target[0]["message"] == message, target)
    state = n.pod("victim")["status"]["containerStatuses"][0]["state"]
    t.check("memory: its container has ended", "terminated" in state and victim["metadata"]["uid"] == n.pod("victim")["metadata"]["uid"], state)


TESTS = [test_disk_pressure, test_local_storage, test_dead_containers, test_logs, test_groups, test_pod_level, test_overhead, test_memory, test_cpu,
         test_pids, test_refused]

if __name__ == "__main__":
    pods.run("limits", TESTS, [test_taints, test_pressure_and_collection, pods.leave_nothing], config=CONFIG,
             flags=["--runtime-handler", "runc=" + (peers.find("runc", "runc") or "runc")] if BUILT_IN else [])
