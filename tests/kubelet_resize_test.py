#!/usr/bin/env python3
"""What changes in pods that run: resources in place (limits seen from inside and outside, conditions, events, order, restarts of the
kubelet), and what they see of ConfigMaps, Secrets and of themselves. Needs C8S, the program to test, with c8s-pod beside it, and root.
Argument: the runtime, c8s or containerd."""
import json
import os
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pods  # noqa: E402
from cluster import wait_until  # noqa: E402
from pods import put, same  # noqa: E402

PODS = "/api/v1/namespaces/default/pods/"
V2 = os.path.exists("/sys/fs/cgroup/cgroup.controllers")


def resources(limits=None, **requests):
    return {"requests": requests, **({"limits": limits} if limits else {})}


def start(n, name, script="trap 'exit 0' TERM; while :; do sleep 0.1; done", spec=None, **container):
    n.create(n.make(name, ("sh", "-c", script), spec=spec, **container))
    return n.seen.wait(name, lambda p: p["status"].get("phase") == "Running", 40, "running")


def resize(n, name, spec):
    r = n.server.request("PATCH", f"{PODS}{name}/resize", {"spec": spec}, content_type="application/strategic-merge-patch+json")
    assert r.status == 200, r
    return r.json["metadata"]["generation"]


def resize_container(n, name, wanted):
    return resize(n, name, {"containers": [{"name": "c", "resources": wanted}]})


def conditions(pod):
    return {c["type"]: c for c in pod["status"].get("conditions", []) if c["type"].startswith("PodResize")}


def completed(generation):
    return lambda p: p["status"].get("observedGeneration") == generation and not conditions(p) and has_all(p)


def has_all(pod):
    """What is in force is what the spec says."""
    status = pod["status"]["containerStatuses"][0]
    return status.get("resources", {}) == pod["spec"]["containers"][0]["resources"]


def events(n, name):
    """Those about resizes, as (reason, text, what stands behind it)."""
    told = sorted((e for e in list(n.seen.told.values()) if e["involvedObject"]["name"] == name and e["reason"].startswith("Resize")),
                  key=lambda e: int(e["metadata"]["resourceVersion"]))
    return [(e["reason"], *e["message"].split(": ", 1)) for e in told]


def wait_event(n, name, reason, count=1):
    wait_until(lambda: sum(e[0] == reason for e in events(n, name)) >= count, 10, f"event {reason} of {name}: {events(n, name)}")


def groups(n, pod, controller, file):
    """What the control group of the pod says, and those of its containers."""
    uid = pod["metadata"]["uid"]
    top = f"/sys/fs/cgroup/{controller}"
    folder = next(f for f, _, _ in os.walk(top) if f.endswith("/pod" + uid) and n.cgroup.strip("/") in f)
    below = [os.path.join(folder, d) for d in os.listdir(folder) if os.path.isdir(os.path.join(folder, d))]
    texts = []
    for f in [folder, *below]:
        with open(os.path.join(f, file)) as text:
            texts.append(text.read().strip())
    return texts[0], sorted(texts[1:])


def inside(n, name, file):
    return n.kubectl("exec", name, "--", "cat", "/sys/fs/cgroup/" + file).stdout.strip()


# ---- resources ----

def test_in_place(t, n):
    before = start(n, "place", resources=resources({"cpu": "200m", "memory": "40Mi"}, cpu="20m", memory="20Mi"))
    generation = resize_container(n, "place", resources({"cpu": "400m", "memory": "60Mi"}, cpu="40m", memory="20Mi"))
    began = n.seen.ever("place", lambda p: "PodResizeInProgress" in conditions(p), 10, "a resize in progress")
    status = began["status"]["containerStatuses"][0]
    same(t, "a resize in progress: what is given is new, what is in force is not",
         (status["allocatedResources"], status["resources"]["limits"], conditions(began)["PodResizeInProgress"]["observedGeneration"]),
         ({"cpu": "40m", "memory": "20Mi"}, {"cpu": "200m", "memory": "40Mi"}, generation))
    after = n.seen.wait("place", completed(generation), 10, "the end of the resize")
    ids = [p["status"]["containerStatuses"][0]["containerID"] for p in (before, after)]
    t.check("the container goes on", ids[0] == ids[1] and after["status"]["containerStatuses"][0]["restartCount"] == 0, ids)
    if not V2:
        for file, value in (("cpu.cfs_quota_us", "40000"), ("cpu.shares", "40")):
            pod, below = groups(n, after, "cpu", file)
            t.check(f"{file} of pod and container, from outside", pod == value and value in below, (pod, below))
        same(t, "limits, from inside", (inside(n, "place", "cpu/cpu.cfs_quota_us"), inside(n, "place", "memory/memory.limit_in_bytes")),
             ("40000", str(60 << 20)))
    generation = resize_container(n, "place", resources({"cpu": "100m", "memory": "30Mi"}, cpu="10m", memory="10Mi"))
    after = n.seen.wait("place", completed(generation), 10, "the end of the second resize")
    if not V2:
        pod, below = groups(n, after, "memory", "memory.limit_in_bytes")
        t.check("less memory for both", pod == str(30 << 20) and str(30 << 20) in below, (pod, below))
        t.check("less CPU for both", groups(n, after, "cpu", "cpu.cfs_quota_us")[0] == "10000")
    same(t, "the pod's own sum", after["status"]["allocatedResources"], {"cpu": "10m", "memory": "10Mi"})
    wait_event(n, "place", "ResizeCompleted", 2)
    shown = '{"containers":[{"name":"c","resources":{"limits":{"cpu":"400m","memory":"60Mi"},"requests":{"cpu":"40m","memory":"20Mi"}}}],"generation":2}'
    same(t, "events", events(n, "place")[:2], [("ResizeStarted", "Pod resize started", shown), ("ResizeCompleted", "Pod resize completed", shown)])


def test_restart(t, n):
    policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}, {"resourceName": "cpu", "restartPolicy": "NotRequired"}]
    start(n, "restarts", resources=resources({"memory": "30Mi"}, memory="20Mi", cpu="10m"), resizePolicy=policy)
    generation = resize_container(n, "restarts", resources({"memory": "30Mi"}, memory="20Mi", cpu="20m"))
    after = n.seen.wait("restarts", completed(generation), 10, "the end of the resize of CPU")
    same(t, "a resize that its policy does not restart for", after["status"]["containerStatuses"][0]["restartCount"], 0)
    generation = resize_container(n, "restarts", resources({"memory": "40Mi"}, memory="30Mi", cpu="20m"))
    after = n.seen.wait("restarts", completed(generation), 20, "the end of the resize of memory")
    same(t, "one that it does", after["status"]["containerStatuses"][0]["restartCount"], 1)
    if not V2:
        pod, below = groups(n, after, "memory", "memory.limit_in_bytes")
        t.check("its new run and its pod have the new limit", pod == str(40 << 20) and str(40 << 20) in below, (pod, below))
    wait_until(lambda: ("Killing", "Container c resize requires restart") in n.events("restarts"), 10, "the event of its end")


def test_memory_in_use(t, n):
    start(n, "used", "dd if=/dev/zero of=/mem/x bs=1M count=20 2>/dev/null; trap 'exit 0' TERM; while :; do sleep 0.1; done",
          spec={"volumes": [{"name": "mem", "emptyDir": {"medium": "Memory"}}]}, volumeMounts=[{"name": "mem", "mountPath": "/mem"}],
          resources=resources({"memory": "60Mi"}, memory="4Mi"))
    wait_until(lambda: n.kubectl("exec", "used", "--", "stat", "-c", "%s", "/mem/x", check=False).stdout.strip() == str(20 << 20), what="its file")
    generation = resize_container(n, "used", resources({"memory": "10Mi"}, memory="4Mi"))
    pod = n.seen.wait("used", lambda p: conditions(p).get("PodResizeInProgress", {}).get("reason") == "Error", 10, "an error")
    message = conditions(pod)["PodResizeInProgress"]["message"]
    t.check("memory that is in use is not taken away", re.fullmatch(
        r'cannot decrease memory limits: \[attempting to set pod memory limit \(10485760\) below current usage \(\d+\), '
        r'attempting to set container "c" memory limit \(10485760\) below current usage \(\d+\)\]', message), message)
    same(t, "what is in force stays", pod["status"]["containerStatuses"][0]["resources"]["limits"], {"memory": "60Mi"})
    wait_event(n, "used", "ResizeError")
    n.kubectl("exec", "used", "--", "rm", "/mem/x")
    n.kubectl("label", "pod", "used", "look=again")
    after = n.seen.wait("used", completed(generation), 20, "the end of the resize")
    if not V2:
        same(t, "once it is free, it is", groups(n, after, "memory", "memory.limit_in_bytes")[0], str(10 << 20))


def cpus(n):
    text = n.get("/api/v1/nodes/n1").json["status"]["allocatable"]["cpu"]
    return int(text[:-1]) if text.endswith("m") else 1000 * int(text)


def percent(n, x):
    return f"{cpus(n) * x // 100}m"


def test_deferred(t, n):
    n.server.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 1000})
    start(n, "big", resources=resources(cpu=percent(n, 50)))
    for name, spec in (("low", {}), ("high", {"priorityClassName": "high"})):
        start(n, name, spec=spec, resources=resources(cpu="10m", memory="10Mi"))
    generation = resize_container(n, "low", resources(cpu=percent(n, 60), memory="10Mi"))
    pod = n.seen.wait("low", lambda p: conditions(p), 10, "a condition")
    c = conditions(pod).get("PodResizePending", {})
    same(t, "what does not fit waits", (c.get("reason"), c.get("observedGeneration"), pod["status"]["containerStatuses"][0]["allocatedResources"]["cpu"]),
         ("Deferred", generation, "10m"))
    t.check("and tells why", re.fullmatch(rf"Node didn't have enough resource: cpu, requested: {percent(n, 60)[:-1]}, used: \d+, capacity: {cpus(n)}",
                                          c.get("message", "")), c)
    resize_container(n, "high", resources(cpu=percent(n, 60), memory="10Mi"))
    n.seen.wait("high", lambda p: "PodResizePending" in conditions(p), 10, "that of high priority to wait")
    wait_event(n, "low", "ResizeDeferred")
    told = events(n, "low")[0]
    same(t, "its event", (told[:2], json.loads(told[2])["error"]), (("ResizeDeferred", "Pod resize OutOfcpu"), c.get("message")))
    n.server.request("PATCH", PODS + "low", {"metadata": {"labels": {"more": "x"}}})  # which is no reason to try again
    n.delete("big")
    n.seen.wait("high", lambda p: not conditions(p) and has_all(p), 10, "that of high priority to get its CPU")
    same(t, "what becomes free goes to the higher priority", conditions(n.pod("low")).get("PodResizePending", {}).get("reason"), "Deferred")
    resize_container(n, "low", resources(cpu="10m", memory="10Mi"))
    pod = n.seen.wait("low", lambda p: not conditions(p), 10, "the other to give up")
    t.check("a resize that is taken back waits no longer", has_all(pod), pod["status"])


def test_pod_level(t, n):
    start(n, "level", spec={"resources": resources({"cpu": "200m", "memory": "64Mi"}, cpu="100m", memory="32Mi")})
    generation = resize(n, "level", {"resources": resources({"cpu": "400m", "memory": "80Mi"}, cpu="100m", memory="32Mi")})
    after = n.seen.wait("level", lambda p: p["status"].get("observedGeneration") == generation and not conditions(p), 10, "the end of the resize")
    if not V2:
        same(t, "resources of the pod as a whole", (groups(n, after, "cpu", "cpu.cfs_quota_us")[0], groups(n, after, "memory", "memory.limit_in_bytes")[0]),
             ("40000", str(80 << 20)))


# ---- what pods see of other objects ----

SEE = 'last=; while :; do now=$(cat $FILES 2>&1 | tr "\\n" " "); [ "$now" = "$last" ] || echo "$now"; last=$now; sleep 0.05; done'


def see(n, name, source, file, **more):
    start(n, name, SEE, spec={"volumes": [{"name": "v", **source}]}, volumeMounts=[{"name": "v", "mountPath": "/v"}],
          env=[{"name": "FILES", "value": "/v/" + file}], **more)


def change(n, t, what, name, text, do):
    began = time.monotonic()
    do()
    wait_until(lambda: text in n.output(name), 10, f"{what}: {n.output(name)!r}")
    took = time.monotonic() - began
    t.check(what, took < 2, f"{took} s")


def test_updates(t, n):
    put(n, "configmaps", "map", data={"k": "map-one"})
    put(n, "secrets", "secret", stringData={"k": "secret-one"})
    put(n, "configmaps", "part", data={"k": "part-one"})
    see(n, "seemap", {"configMap": {"name": "map"}}, "k")
    see(n, "seesecret", {"secret": {"secretName": "secret"}}, "k")
    see(n, "seeself", {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}}, "labels")
    see(n, "seepart", {"projected": {"sources": [{"configMap": {"name": "part", "optional": True}}, {"downwardAPI": {"items": [
        {"path": "limit", "resourceFieldRef": {"containerName": "c", "resource": "limits.cpu", "divisor": "1m"}}]}}]}}, "k /v/limit",
        resources=resources({"cpu": "300m"}, cpu="10m"))
    wait_until(lambda: "map-one" in n.output("seemap") and "part-one" in n.output("seepart"), what="the first contents")
    where = "/api/v1/namespaces/default/"
    change(n, t, "a changed ConfigMap is seen", "seemap", "map-two",
           lambda: n.server.request("PATCH", where + "configmaps/map", {"data": {"k": "map-two"}}))
    change(n, t, "a changed Secret is seen", "seesecret", "secret-two",
           lambda: n.server.request("PATCH", where + "secrets/secret", {"stringData": {"k": "secret-two"}}))
    change(n, t, "changed labels are seen", "seeself", 'new="label"',
           lambda: n.server.request("PATCH", PODS + "seeself", {"metadata": {"labels": {"new": "label"}}}))
    change(n, t, "an optional ConfigMap goes", "seepart", "No such file",
           lambda: n.server.request("DELETE", where + "configmaps/part"))
    change(n, t, "and comes back", "seepart", "part-two", lambda: put(n, "configmaps", "part", data={"k": "part-two"}))
    change(n, t, "a resize is seen", "seepart", "150", lambda: resize_container(n, "seepart", resources({"cpu": "150m"}, cpu="10m")))


def test_missing(t, n):
    n.create(n.make("missing", env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "late", "key": "k"}}}]))
    n.create(n.make("unmounted", spec={"volumes": [{"name": "v", "configMap": {"name": "late"}}]}, volumeMounts=[{"name": "v", "mountPath": "/v"}]))
    same(t, "a Secret that is missing", pods.waiting(n, "missing", "CreateContainerConfigError"), 'secret "late" not found')
    wait_until(lambda: ("FailedMount", 'MountVolume.SetUp failed for volume "v" : configmap "late" not found') in n.events("unmounted"), what="FailedMount")
    put(n, "secrets", "late", stringData={"k": "x"})
    put(n, "configmaps", "late", data={"k": "x"})
    for name in ("missing", "unmounted"):
        n.seen.wait(name, lambda p: p["status"].get("phase") == "Running", 8, "running")  # the next try would be after ten
    t.check("pods start as soon as it is there", True)


def test_deleted_while_running(t, n):
    put(n, "configmaps", "brief", data={"k": "x"})
    start(n, "outlives", "sleep 0.5; exit 1", spec={"volumes": [{"name": "v", "configMap": {"name": "brief"}}]}, volumeMounts=[{"name": "v", "mountPath": "/v"}])
    n.server.request("DELETE", "/api/v1/namespaces/default/configmaps/brief")
    n.seen.wait("outlives", lambda p: p["status"]["containerStatuses"][0]["restartCount"] >= 1, 20, "a restart")
    t.check("a container restarts though its ConfigMap is gone", True)


def sockets(pid):
    links = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            links.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
        except FileNotFoundError:
            pass
    return sum(link.startswith("socket:") for link in links)


def test_many(t, n):
    """More watches than a connection takes; and they survive the end of the API server."""
    count, where = 230, "/api/v1/namespaces/default/configmaps"
    connection = n.server.connect()
    for i in range(count):
        n.server.request("POST", where, {"metadata": {"name": f"many{i}"}, "data": {"k": f"old{i}"}}, connection=connection)
    before = sockets(n.process.pid)
    sources = [{"configMap": {"name": f"many{i}", "items": [{"key": "k", "path": f"k{i}"}]}} for i in range(count)]
    see(n, "many", {"projected": {"sources": sources}}, f"k0 /v/k{count - 1}")
    more = sockets(n.process.pid) - before
    t.check("very many watches share a few connections", more < 20, more)
    for i in (0, count - 1):
        change(n, t, f"all of them are followed: {i}", "many", f"new{i}", lambda: n.server.request("PATCH", f"{where}/many{i}", {"data": {"k": f"new{i}"}}))
    n.server.kill()
    n.server.start()
    for i in (0, count - 1):
        n.server.request("PATCH", f"{where}/many{i}", {"data": {"k": f"last{i}"}})
        wait_until(lambda: f"last{i}" in n.output("many"), 20, f"the change after the restart: {n.output('many')!r}")
    t.check("they go on when the API server is back", True)


# ---- restarts of the kubelet ----

def test_kubelet_restarts(t, n):
    n.delete("high")
    start(n, "fill", resources=resources(cpu=percent(n, 50)))
    start(n, "defer", resources=resources(cpu="10m", memory="10Mi"))
    before = start(n, "later", resources=resources({"cpu": "200m"}, cpu="10m"))
    resize_container(n, "defer", resources(cpu=percent(n, 60), memory="10Mi"))
    n.seen.wait("defer", lambda p: "PodResizePending" in conditions(p), 10, "a resize that waits")
    n.kill_kubelet()
    generation = resize_container(n, "later", resources({"cpu": "300m"}, cpu="10m"))
    n.start_kubelet()
    after = n.seen.wait("later", completed(generation), 20, "the resize that was asked for meanwhile")
    same(t, "a resize while there was no kubelet is done by the next", after["status"]["containerStatuses"][0]["containerID"],
         before["status"]["containerStatuses"][0]["containerID"])
    pod = n.pod("defer")
    same(t, "one that waits still does", (conditions(pod).get("PodResizePending", {}).get("reason"),
                                          pod["status"]["containerStatuses"][0]["allocatedResources"]["cpu"]), ("Deferred", "10m"))
    n.delete("fill")
    n.seen.wait("defer", lambda p: not conditions(p) and has_all(p), 10, "the resize")
    same(t, "until there is room", n.pod("defer")["status"]["containerStatuses"][0]["restartCount"], 0)


def test_nothing_is_left(t, n):
    pods.leave_nothing(t, n)
    for name in ("allocated_pods_state", "actuated_pods_state"):
        def text():
            with open(os.path.join(n.root, name)) as f:
                return json.load(f)
        wait_until(lambda: not text()["items"], 10, f"{name} to be empty")
    t.check("nor anything in its files", True)


TESTS = [test_memory_in_use, test_updates, test_deferred, test_in_place, test_restart, test_pod_level, test_missing, test_deleted_while_running]


if __name__ == "__main__":
    pods.run("resize", TESTS, [test_kubelet_restarts, test_many, test_nothing_is_left], config={"kubeAPIQPS": 500, "kubeAPIBurst": 500})
