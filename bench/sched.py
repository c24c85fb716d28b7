#!/usr/bin/env python3
"""How many pods per second a control plane takes in and gives a node to: nodes and pods are created by h2load, 64 in flight, and the clock
stops when a list shows no pod without a node. Every write is on disk before it is answered.

    sched.py [--rounds N] [NODES/PODS ...]            (1000/3000 5000/5000)"""
import argparse
import sys
import time

from common import api_load, cpu_seconds, figure, memory
from cluster import ControlPlane, Folder, wait_until

ZONES = 3
PODS = "/api/v1/namespaces/default/pods"
WAITING = f"{PODS}?labelSelector=app%3Dbench&fieldSelector=spec.nodeName%3D&limit=1"
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-", "labels": {"app": "bench"}},
       "spec": {"nodeSelector": {"type": "fake"}, "tolerations": [{"operator": "Exists"}], "containers": [
           {"name": "c", "image": "nginx", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}]}}


def node(zone):
    room = {"cpu": "32", "memory": "256Gi", "pods": "110"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"generateName": "fake-", "labels": {"type": "fake", "topology.kubernetes.io/zone": f"z{zone}"}},
            "status": {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}}


def measure(folder, plane, nodes, pods):
    load, pid = api_load(folder, plane), plane.process.pid
    wait_until(lambda: plane.request("GET", "/api/v1/namespaces/default/serviceaccounts/default").status == 200, what="the service account of pods")
    for zone in range(ZONES):
        load.run("/api/v1/nodes", (nodes + zone) // ZONES, 4, 16, node(zone))
    time.sleep(1)  # the scheduler hears of the nodes
    connection, used, begin = plane.connect(), cpu_seconds(pid), time.monotonic()
    created = load.run(PODS, pods, 4, 16, POD)
    wait_until(lambda: not plane.request("GET", WAITING, connection=connection).json["items"], 120, "the last pod to have a node")
    bound = pods / (time.monotonic() - begin)
    cost, (rss, _) = (cpu_seconds(pid) - used) / pods, memory(pid)
    connection.close()
    print(f"{nodes:,} nodes, {pods:,} pods: {created:,.0f}/s created, {bound:,.0f}/s created and bound, {cost * 1e6:.0f} us CPU each, "
          f"{rss:.0f} MB RSS", flush=True)
    figure(f"sched_{nodes}", bound)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("shapes", nargs="*", default=["1000/3000", "5000/5000"], metavar="NODES/PODS")
    args = parser.parse_args()
    for shape in args.shapes:
        nodes, pods = map(int, shape.split("/"))
        for _ in range(args.rounds):
            with Folder() as folder, ControlPlane(folder) as plane:
                measure(folder, plane, nodes, pods)


if __name__ == "__main__":
    sys.exit(main())
