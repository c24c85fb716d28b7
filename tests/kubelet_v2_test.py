#!/usr/bin/env python3
"""What only control groups v2 have: memory QoS (memory.min, memory.low, memory.high) and swap of pods, as the kernel has them. Needs C8S, the
program to test, with c8s-pod beside it, and root; where controllers are on v1, tests/machine runs it.
Argument: the runtime, c8s or containerd."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import nodes  # noqa: E402
import pods  # noqa: E402
import tap  # noqa: E402
from pods import amounts, create, end_of, group_of, same, started  # noqa: E402

MIB = 1 << 20
TIERED = {"featureGates": {"MemoryQoS": True}, "memoryReservationPolicy": "TieredReservation", "kubeReserved": {"memory": "100Mi"}}
SWAPPING = {"memoryReservationPolicy": "None", "memoryThrottlingFactor": 1.0, "memorySwap": {"swapBehavior": "LimitedSwap"}}
KINDS = {"guaranteed": amounts(limits={"cpu": "100m", "memory": "64Mi"}),
         "between": amounts({"memory": "64Mi"}, {"memory": "100Mi"}),
         "open": amounts({"memory": "32Mi"}),
         "equal": amounts({"memory": "16Mi"}, {"memory": "16Mi"}),
         "best": {}}


def missing():
    try:
        with open("/sys/fs/cgroup/cgroup.controllers") as f:
            return None if "memory" in f.read().split() else "the controller for memory is not on control groups v2 (tests/machine has it there)"
    except OSError:
        return "there are no control groups v2 here (tests/machine has them)"


def meminfo(name):
    with open("/proc/meminfo") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith(name + ":"))


def value(group, name):
    with open(f"/sys/fs/cgroup{group}/memory.{name}") as f:
        return f.read().strip()


def values(group, *names):
    return {name: value(group, name) for name in names}


def high(request, most, factor):
    """Kubernetes' formula, in whole pages."""
    page = os.sysconf("SC_PAGESIZE")
    return str(int((request + (most - request) * factor) / page) * page)


def make(n, prefix, kinds=KINDS):
    for name, resources in kinds.items():
        create(n, prefix + name, "sleep 1000", **resources)
    return dict(zip(kinds, started(n, *(prefix + name for name in kinds))))


# ---- memory QoS ----

def test_tiers(t, n):
    capacity = meminfo("MemTotal")
    for name, pod in make(n, "tier-").items():
        of_pod, of_container = (values(group_of(n, pod, which), "min", "low", "high", "max", "swap.max", "oom.group") for which in (False, True))
        asked = {"guaranteed": 64, "between": 64, "open": 32, "equal": 16, "best": 0}[name] * MIB
        protected = {"min": str(asked), "low": "0"} if name == "guaranteed" else {"min": "0", "low": str(asked)}
        limit = {"guaranteed": 64, "between": 100, "equal": 16}.get(name)
        limits = {"max": str(limit * MIB) if limit else "max"}
        slowed = {"between": high(64 * MIB, 100 * MIB, 0.9), "open": high(32 * MIB, capacity - 100 * MIB, 0.9)}.get(name, "max")
        same(t, f"MemoryQoS: the container {name}", of_container, {**protected, "high": slowed, **limits, "swap.max": "0", "oom.group": "1"})
        same(t, f"MemoryQoS: its pod {name}", of_pod, {**protected, "high": "max", **limits, "swap.max": "max", "oom.group": "0"})
    tap.wait_for(lambda: value(n.cgroup + "/kubepods/burstable", "low") == str(112 * MIB), 70)
    same(t, "MemoryQoS: what all pods ask for", value(n.cgroup + "/kubepods", "min"), str(176 * MIB))
    same(t, "MemoryQoS: and those that are Burstable", values(n.cgroup + "/kubepods/burstable", "min", "low"), {"min": "0", "low": str(112 * MIB)})
    figures = n.kubectl("get", "--raw", f"/api/v1/nodes/{nodes.NODE}/proxy/metrics").stdout
    same(t, "MemoryQoS: figures of it", [line for line in figures.splitlines() if line.startswith("kubelet_memory_qos_node_memory_")],
         [f"kubelet_memory_qos_node_memory_{name}_bytes {size * MIB}" for name, size in (("min", 64), ("low", 112))])


def test_resize(t, n):
    """The limit of a running container moves, and with it where it is slowed down."""
    create(n, "grows", "sleep 1000", **amounts({"memory": "20Mi"}, {"memory": "40Mi"}))
    pod, = started(n, "grows")
    group = group_of(n, pod, True)
    same(t, "MemoryQoS: before a resize", values(group, "low", "high", "max"),
         {"low": str(20 * MIB), "high": high(20 * MIB, 40 * MIB, 0.9), "max": str(40 * MIB)})
    change = {"spec": {"containers": [{"name": "c", **amounts({"memory": "30Mi"}, {"memory": "60Mi"})}]}}
    n.server.request("PATCH", "/api/v1/namespaces/default/pods/grows/resize", change, content_type="application/strategic-merge-patch+json")
    tap.wait_for(lambda: value(group, "max") == str(60 * MIB), 40)
    same(t, "MemoryQoS: after a resize", values(group, "low", "high", "max"),
         {"low": str(30 * MIB), "high": high(30 * MIB, 60 * MIB, 0.9), "max": str(60 * MIB)})
    n.delete("grows")


# ---- swap ----

def test_swap(t, n):
    """The kubelet starts again: memory is no longer kept for pods, and some may swap."""
    n.kill_kubelet(15)
    n.more.update(SWAPPING)
    n.start_kubelet()
    tap.wait_for(lambda: value(n.cgroup + "/kubepods", "min") == "0", 70)
    same(t, "None: nothing is kept for pods", [value(n.cgroup + "/kubepods", "min"), value(n.cgroup + "/kubepods/burstable", "low")], ["0", "0"])
    memory, swap = meminfo("MemTotal"), meminfo("SwapTotal")
    if not swap:
        return t.check("LimitedSwap: there is no swap here", True)
    told = n.get("/api/v1/nodes/" + nodes.NODE).json["status"]["nodeInfo"]
    same(t, "swap of the node", told.get("swap"), {"capacity": swap})
    share = {"between": int(64 * MIB / memory * swap), "open": int(32 * MIB / memory * swap)}
    page = os.sysconf("SC_PAGESIZE")
    for name, pod in make(n, "swap-").items():
        wanted = str(share.get(name, 0) // page * page)
        same(t, f"LimitedSwap: {name}", values(group_of(n, pod, True), "min", "low", "swap.max"), {"min": "0", "low": "0", "swap.max": wanted})
    create(n, "dear", "sleep 1000", {"priorityClassName": "system-node-critical"}, **KINDS["between"])
    same(t, "LimitedSwap: not what the node needs", value(group_of(n, started(n, "dear")[0], True), "swap.max"), "0")
    # More than the limit of memory, and much less than that and the share of swap: what comes back from it takes both. The other may not
    # swap, as its request is its limit.
    limit = memory // 20
    size = (limit + limit * swap // memory // 8) // MIB
    script = f"dd if=/dev/zero of=/dev/null bs={size}M count=1"
    create(n, "swaps", script + "; cat /sys/fs/cgroup/memory.events", **amounts({"memory": str(limit - MIB)}, {"memory": str(limit)}))
    create(n, "cannot", "exec " + script, **amounts({"memory": str(limit)}, {"memory": str(limit)}))
    same(t, "LimitedSwap: more than the memory", end_of(n, "swaps")[0], "Succeeded")
    t.check("LimitedSwap: and nothing was killed", "oom_kill 0" in n.output("swaps"), n.output("swaps"))
    same(t, "LimitedSwap: without a share of it", end_of(n, "cannot")[0], "Failed")
    same(t, "and why", n.pod("cannot")["status"]["containerStatuses"][0]["state"]["terminated"]["reason"], "OOMKilled")


if __name__ == "__main__":
    if missing():
        skipped = tap.Tap()
        skipped.skip("control groups v2", missing())
        skipped.close()
    pods.run("control groups v2", [test_resize], [test_tiers, test_swap, pods.leave_nothing], config=TIERED, address="10.215.0.1")
