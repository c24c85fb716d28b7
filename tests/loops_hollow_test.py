#!/usr/bin/env python3
"""c8s hollow: nodes that only pretend, on a control plane in one process. Needs C8S, the program to test."""
import json
import signal

import tap
from cluster import Component, ControlPlane, Folder, wait_until

NODES, PODS = 300, 600
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


class Cluster:
    def __init__(self, plane):
        self.plane = plane

    def items(self, path):
        return self.plane.request("GET", path).json["items"]

    def ready(self):
        """How many nodes are, and are not."""
        found = [next(c["status"] for c in n["status"]["conditions"] if c["type"] == "Ready") for n in self.items("/api/v1/nodes")]
        return found.count("True"), len(found) - found.count("True")

    def renewed(self):
        return {lease["metadata"]["name"]: lease["spec"]["renewTime"] for lease in self.items(LEASES)}

    def running(self, app):
        return [p for p in self.items(f"/api/v1/namespaces/default/pods?labelSelector=app={app}") if p["status"].get("phase") == "Running"]


def run_job(c, name, annotations):
    run = {"metadata": {"annotations": annotations}, "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}
    c.plane.request("POST", "/apis/batch/v1/namespaces/default/jobs", {"metadata": {"name": name}, "spec": {"template": run, "backoffLimit": 0}})


def job_ends_as(c, name, condition):
    status = c.plane.request("GET", f"/apis/batch/v1/namespaces/default/jobs/{name}").json.get("status", {})
    return any(x["type"] == condition and x["status"] == "True" for x in status.get("conditions", []))


def nodes_and_pods(t):
    with Folder() as folder, ControlPlane(folder, "--node-monitor-period", "500ms", "--node-monitor-grace-period", "4s") as plane:
        c = Cluster(plane)
        hollow = Component(plane, "hollow", "--nodes", str(NODES), "--zones", "3", "--heartbeat", "1s", "--remove").start()
        try:
            hollow.wait_said(f"{NODES} nodes are ready")
            wait_until(lambda: c.ready() == (NODES, 0), 20, "the nodes to be ready")
            zones = {n["metadata"]["labels"]["topology.kubernetes.io/zone"] for n in c.items("/api/v1/nodes")}
            t.check("nodes are ready, in zones", zones == {"zone-0", "zone-1", "zone-2"}, zones)
            first = c.renewed()
            wait_until(lambda: all(first[name] < now for name, now in c.renewed().items()), 20, "all leases to be renewed")
            t.check("each has a heartbeat", len(first) == NODES)

            plane.kubectl("create", "deployment", "web", "--image", "x", "--replicas", str(PODS))
            run_job(c, "good", {"hollow.c8s.io/seconds": "1"})
            run_job(c, "bad", {"hollow.c8s.io/seconds": "0", "hollow.c8s.io/exit-code": "3"})
            pods = wait_until(lambda: (found := c.running("web")) and len(found) == PODS and found, 30, "the pods to run")
            addresses = {p["status"]["podIP"] for p in pods}
            t.check("pods run, with addresses of their own", len(addresses) == PODS, len(addresses))
            spread = {p["spec"]["nodeName"] for p in pods}
            t.check("they are on all nodes", len(spread) == NODES, len(spread))
            wait_until(lambda: job_ends_as(c, "good", "Complete"), 20, "the job to end")
            t.check("a pod ends when its time is over", True)
            wait_until(lambda: job_ends_as(c, "bad", "Failed"), 20, "the job to fail")
            t.check("and with the exit code that it asks for", True)

            plane.kubectl("delete", "deployment", "web", "--cascade=foreground", "--timeout", "30s")
            t.check("pods go when they are deleted", not c.items("/api/v1/namespaces/default/pods?labelSelector=app=web"))
            t.check("it stops", hollow.kill() == 0, hollow.said())
            left = c.items("/api/v1/nodes") + c.items(LEASES)
            t.check("--remove: nothing is left", not left, json.dumps(left)[:2000])

            few = Component(plane, "hollow", "--nodes", "3", "--heartbeat", "1s").start().wait_said("3 nodes are ready")
            few.kill(signal.SIGKILL)
            wait_until(lambda: c.ready() == (0, 3), 20, "the nodes to be missed")
            again = Component(plane, "hollow", "--nodes", "3", "--heartbeat", "1s", "--remove").start()
            wait_until(lambda: c.ready() == (3, 0), 20, "the nodes to be back")
            again.kill()
            t.check("nodes whose process is killed are missed, and come back with the next one", True)
        finally:
            hollow.kill(signal.SIGKILL)


tap.run([nodes_and_pods])
