#!/usr/bin/env python3
"""What a node costs: from POST to Running as a watcher sees it, one pod after another and all at once, split by what the status tells on the
way; then memory and processor time of a kubelet with many pods that do nothing. With the built-in runtime, and in the same run with
Debian's containerd below the same kubelet. Needs root.

    node.py [ROUNDS]"""
import http.client
import json
import os
import ssl
import statistics
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))
import nodes  # noqa: E402

ONE_BY_ONE, AT_ONCE, IDLE_PODS, IDLE_S = 20, 50, 100, 10
GOAL_ONE_MS, GOAL_ALL_MS = 40, 1500
STEPS = ("created", "seen", "sandbox", "running")


class Watcher:
    """When pods came to each step, as a client sees it."""

    def __init__(self, node):
        self.seen, self.node, self.changed = {}, node, threading.Condition()
        threading.Thread(target=self.follow, daemon=True).start()
        time.sleep(0.3)

    def follow(self):
        context = ssl._create_unverified_context()
        c = http.client.HTTPSConnection("127.0.0.1", self.node.server.port, context=context)
        c.request("GET", "/api/v1/pods?watch=1", headers={"Authorization": "Bearer admin-token", "Accept": "application/json"})
        answer = c.getresponse()
        while line := answer.readline():
            now, pod = time.monotonic(), json.loads(line)["object"]
            status = pod.get("status", {})
            steps = {"created"}
            if status.get("containerStatuses"):
                steps.add("seen")
            if any(x["type"] == "PodReadyToStartContainers" and x["status"] == "True" for x in status.get("conditions", [])):
                steps.add("sandbox")
            if status.get("phase") == "Running":
                steps.update(STEPS)
            with self.changed:
                known = self.seen.setdefault(pod["metadata"]["name"], {})
                for step in steps:
                    known.setdefault(step, now)
                self.changed.notify_all()

    def wait(self, name, step, seconds=120):
        with self.changed:
            if not self.changed.wait_for(lambda: step in self.seen.get(name, {}), seconds):
                raise TimeoutError(f"{name} did not come to {step}")
            return self.seen[name]


def post(node, connection, name):
    pod = node.make(name, spec={"terminationGracePeriodSeconds": 0})
    body, head = json.dumps(pod), {"Authorization": "Bearer admin-token", "Content-Type": "application/json"}
    begin = time.monotonic()
    connection.request("POST", "/api/v1/namespaces/default/pods", body, head)
    answer = connection.getresponse()
    if answer.status != 201:
        raise RuntimeError(answer.read())
    answer.read()
    return begin


def one_by_one(node, watcher, connection, prefix):
    splits = []
    for i in range(ONE_BY_ONE):
        begin = post(node, connection, f"{prefix}-{i}")
        seen = watcher.wait(f"{prefix}-{i}", "running")
        splits.append([(seen[s] - begin) * 1000 for s in STEPS])
    return splits


def all_at_once(node, watcher, connection, prefix):
    begin = time.monotonic()
    for i in range(AT_ONCE):
        post(node, connection, f"{prefix}-{i}")
    return max((watcher.wait(f"{prefix}-{i}", "running")["running"] - begin) * 1000 for i in range(AT_ONCE))


def cost(pid):
    """Proportional memory in MB, processor time in seconds."""
    with open(f"/proc/{pid}/smaps_rollup") as f:
        pss = next(int(line.split()[1]) for line in f if line.startswith("Pss:"))
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return pss / 1024, (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def idle(node, watcher, connection):
    for i in range(IDLE_PODS):
        post(node, connection, f"idle-{i}")
    for i in range(IDLE_PODS):
        watcher.wait(f"idle-{i}", "running")
    time.sleep(3)
    _, before = cost(node.process.pid)
    time.sleep(IDLE_S)
    memory, after = cost(node.process.pid)
    print(f"  kubelet{' with its runtime' if node.runtime == 'c8s' else ''}, {IDLE_PODS} idle pods: {memory:.1f} MB (PSS), "
          f"{(after - before) / IDLE_S * 100:.2f} % of a processor")


def measure(runtime, rounds):
    print(f"{'the built-in runtime' if runtime == 'c8s' else 'containerd'}:")
    with nodes.Node(runtime=runtime, config={"maxPods": 250, "kubeAPIQPS": 1000, "kubeAPIBurst": 2000, "eventRecordQPS": 0,
                                             "serializeImagePulls": False, "registryPullQPS": 0}) as node:
        watcher, connection = Watcher(node), node.server.connect(120)
        post(node, connection, "first")  # pulls the image
        watcher.wait("first", "running")
        splits, totals = [], []
        for i in range(rounds):
            splits += one_by_one(node, watcher, connection, f"one{i}")
            node.remove_all_pods()
            totals.append(all_at_once(node, watcher, connection, f"all{i}"))
            node.remove_all_pods()
        p50 = [statistics.median(s[k] for s in splits) for k in range(len(STEPS))]
        print("  one after another, p50: " + ", ".join(f"{name} {ms:.1f} ms" for name, ms in zip(STEPS, p50)))
        print(f"  {AT_ONCE} at once, all running: {statistics.median(totals):.0f} ms")
        idle(node, watcher, connection)
    return p50[-1], statistics.median(totals)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    why = nodes.missing()
    if why:
        print(f"bench of a node skipped: {why}")
        return
    nodes.own_namespaces()
    ours = measure("c8s", rounds)
    print(f"goals: one {GOAL_ONE_MS} ms: {'met' if ours[0] < GOAL_ONE_MS else 'MISSED'}; "
          f"all {GOAL_ALL_MS} ms: {'met' if ours[1] < GOAL_ALL_MS else 'MISSED'}")
    why = nodes.missing("containerd")
    if why:
        print(f"containerd skipped: {why}")
        return
    theirs = measure("containerd", 1)
    print(f"built-in runtime against containerd: one after another {ours[0] / theirs[0]:.2f}, at once {ours[1] / theirs[1]:.2f}")


main()
