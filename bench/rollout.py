#!/usr/bin/env python3
"""Rolling update of a Deployment of 1,000 pods on hollow nodes: how long it takes, and how many writes the API server sees, by resource and verb, beside
the least number that the meaning of a rolling update needs. With all loops in one process, and as processes of their own, whose limits of requests per
second (20 for each controller and 50 for the scheduler, as in Kubernetes) are lifted: else they would be all that is measured.

The least: a pod that is replaced costs five writes (its successor is created, bound, and said to run; it is deleted by its set, and for good by its
node) and an event of the scheduler. With a quarter of surge and a quarter unavailable there are four rounds: in each, two sets are scaled and tell
their status, and the deployment tells its own; the new set is made, and the deployment gets its revision.

    rollout.py [PODS]"""
import re
import sys
import time

from common import cpu_seconds
from cluster import Component, ControlPlane, Folder, Server, wait_until

NODES, ROUNDS = 100, 4
LINE = re.compile(r'apiserver_request_total\{(.*)\} (\d+)')
LABEL = re.compile(r'(\w+)="([^"]*)"')
WRITES = ("POST", "PUT", "PATCH", "DELETE", "APPLY")


def writes(server):
    """(resource, verb) -> how many, without heartbeats; those that were refused count, too."""
    found = {}
    for line in server.request("GET", "/metrics").body.decode().splitlines():
        if not (match := LINE.match(line)):
            continue
        label = dict(LABEL.findall(match.group(1)))
        if label["verb"] not in WRITES or label["resource"] in ("leases", "tokenreviews", "subjectaccessreviews", ""):
            continue
        resource = label["resource"] + ("/" + label["subresource"] if label.get("subresource") else "")
        refused = " refused" if int(label["code"]) >= 400 else ""
        key = (resource, label["verb"] + refused)
        found[key] = found.get(key, 0) + int(match.group(2))
    return found


def least(pods):
    return {("pods", "POST"): pods, ("pods/binding", "POST"): pods, ("pods/status", "PATCH"): pods, ("pods", "DELETE"): 2 * pods, ("events", "POST"): pods,
            ("replicasets", "POST"): 1, ("replicasets", "PUT"): 2 * ROUNDS, ("replicasets/status", "PUT"): 2 * ROUNDS,
            ("deployments/status", "PUT"): ROUNDS + 1}


def settled(server):
    """The same, once nothing has been written for a while: events come late."""
    last = None
    while last != (now := writes(server)):
        last = now
        time.sleep(2)
    return now


def deployment(server):
    return server.request("GET", "/apis/apps/v1/namespaces/default/deployments/web").json


def is_done(server, pods):
    d = deployment(server)
    s = d.get("status", {})
    return s.get("observedGeneration") == d["metadata"]["generation"] and s.get("updatedReplicas") == pods and s.get("replicas") == pods and \
        s.get("availableReplicas") == pods


def set_image(server, image):
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}}
    return server.request("PATCH", "/apis/apps/v1/namespaces/default/deployments/web", patch, content_type="application/strategic-merge-patch+json")


def measure(server, pods, parts):
    run = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "one"}]}}
    server.request("POST", "/apis/apps/v1/namespaces/default/deployments", {"metadata": {"name": "web"}, "spec": {
        "replicas": pods, "selector": {"matchLabels": {"app": "web"}}, "template": run}})
    began = time.monotonic()
    wait_until(lambda: is_done(server, pods), 300, "the deployment")
    created_s = time.monotonic() - began
    settled(server)
    used = {name: cpu_seconds(p.pid) for name, p in parts.items()}
    before, began = writes(server), time.monotonic()
    set_image(server, "two")
    wait_until(lambda: is_done(server, pods), 300, "the update")
    updated_s = time.monotonic() - began

    def count():
        return len(server.request("GET", "/api/v1/namespaces/default/pods").json["items"])
    wait_until(lambda: count() == pods, 60, "the old pods to be gone")
    after = settled(server)
    used = {name: cpu_seconds(p.pid) - used[name] for name, p in parts.items()}
    return created_s, updated_s, used, {k: n - before.get(k, 0) for k, n in after.items() if n != before.get(k, 0)}


def show(where, pods, created_s, updated_s, used, counted):
    need = least(pods)
    print(f"\n{where}: {pods} pods on {NODES} nodes: created in {created_s:.2f} s, rolled over in {updated_s:.2f} s")
    print("  processor time of that: " + ", ".join(f"{name} {s:.2f} s" for name, s in used.items()))
    print(f"  {'':34} {'writes':>8} {'least':>8}")
    counted.pop(("deployments", "PATCH"), None)  # ours
    for key in sorted(counted.keys() | need.keys()):
        print(f"  {' '.join(key):34} {counted.get(key, 0):8} {need.get(key, 0):8}")
    total, least_total = sum(counted.values()), sum(need.values())
    print(f"  {'all':34} {total:8} {least_total:8}   {total / least_total:.2f} times the least")


def main():
    pods = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    many = ["--max-requests-inflight", "4000", "--max-mutating-requests-inflight", "2000"]
    with Folder() as folder, ControlPlane(folder, *many) as plane:
        hollow = Component(plane, "hollow", "--nodes", str(NODES)).start().wait_said("are ready")
        try:
            show("one process", pods, *measure(plane, pods, {"control-plane": plane.process, "hollow": hollow.process}))
        finally:
            hollow.kill()
    fast = ["--kube-api-qps", "5000", "--kube-api-burst", "5000"]
    with Folder() as folder, Server(folder, *many) as server:
        parts = [Component(server, "kube-controller-manager", *fast).start(), Component(server, "kube-scheduler", *fast).start(),
                 Component(server, "hollow", "--nodes", str(NODES)).start().wait_said("are ready")]
        try:
            show("processes", pods, *measure(server, pods, {"kube-apiserver": server.process, **{part.name: part.process for part in parts}}))
        finally:
            for part in parts:
                part.kill()


if __name__ == "__main__":
    main()
