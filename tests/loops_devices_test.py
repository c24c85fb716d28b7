#!/usr/bin/env python3
"""Devices for pods: slices and classes with selectors, claims from templates, extended resources, on a control plane with a node that only pretends.
Needs C8S, the program to test."""
import signal

import tap
from cluster import Component, ControlPlane, Folder, wait_until

RESOURCE = "/apis/resource.k8s.io/v1"
CLAIMS = RESOURCE + "/namespaces/default/resourceclaims"
PODS = "/api/v1/namespaces/default/pods"
NO_DEVICE = ("0/1 nodes are available: 1 cannot allocate all claims. still not schedulable, preemption: 0/1 nodes are available: "
             "1 Preemption is not helpful for scheduling.")
NO_TEMPLATE = 'PodResourceClaim card: resource claim template "none": resourceclaimtemplate.resource.k8s.io "none" not found'


class Cluster:
    def __init__(self, plane):
        self.plane = plane

    def get(self, path):
        return self.plane.request("GET", path).json

    def make(self, path, body):
        r = self.plane.request("POST", path, body)
        assert r.status == 201, r.body
        return r.json

    def publish(self, node):
        """A driver's two cards, of which a class selects one."""
        def card(name, model):
            return {"name": name, "attributes": {"model": {"string": model}}, "capacity": {"memory": {"value": "8Gi"}}}
        self.make(RESOURCE + "/resourceslices", {"metadata": {"name": "cards"}, "spec": {
            "driver": "gpu.example", "nodeName": node, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [card("small", "s"), card("large", "l")]}})
        for name, model, more in (("large", "l", {}), ("small", "s", {"extendedResourceName": "gpu.example/small"})):
            self.make(RESOURCE + "/deviceclasses", {"metadata": {"name": name}, "spec": {**more, "selectors": [
                {"cel": {"expression": f'device.driver == "gpu.example" && device.attributes["gpu.example"].model == "{model}"'}}]}})
        self.make(RESOURCE + "/namespaces/default/resourceclaimtemplates", {"metadata": {"name": "card"}, "spec": {"spec": {"devices": {"requests": [
            {"name": "gpu", "exactly": {"deviceClassName": "large", "selectors": [
                {"cel": {"expression": 'device.capacity["gpu.example"].memory.compareTo(quantity("4Gi")) >= 0'}}]}}]}}}})

    def pod(self, name, container, **spec):
        self.make(PODS, {"metadata": {"name": name}, "spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "x", **container}], **spec}})

    def card_pod(self, name):
        self.pod(name, {"resources": {"claims": [{"name": "card"}]}}, resourceClaims=[{"name": "card", "resourceClaimTemplateName": "card"}])

    def runs(self, name):
        wait_until(lambda: self.get(f"{PODS}/{name}")["status"].get("phase") == "Running", 20, f"{name} to run")
        return self.get(f"{PODS}/{name}")

    def refused(self, name, text):
        def said():
            return [c.get("message", "") for c in self.get(f"{PODS}/{name}")["status"].get("conditions", []) if c["type"] == "PodScheduled"]
        wait_until(lambda: text in said(), 20, f"{name} to be refused, not {said()}")

    def events(self, name):
        return [(e["reason"], e.get("message")) for e in self.get("/api/v1/namespaces/default/events")["items"] if e["involvedObject"]["name"] == name]

    def delete(self, name):
        self.plane.request("DELETE", f"{PODS}/{name}")


def check_claims(t, c, node):
    c.card_pod("first")
    pod = c.runs("first")
    status = pod["status"].get("resourceClaimStatuses", [{}])[0]
    claim = c.get(f"{CLAIMS}/{status.get('resourceClaimName')}")
    t.check("a claim is made from the template", status["name"] == "card" and claim["metadata"]["generateName"] == "first-card-" and
            claim["metadata"]["annotations"] == {"resource.kubernetes.io/pod-claim-name": "card"} and
            claim["metadata"]["ownerReferences"] == [{"apiVersion": "v1", "kind": "Pod", "name": "first", "uid": pod["metadata"]["uid"], "controller": True}], claim)
    where = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]}
    allocation = {k: v for k, v in claim["status"]["allocation"].items() if k != "allocationTimestamp"}
    t.check("it has the device that the class selects", allocation == {"devices": {"results": [
        {"request": "gpu", "driver": "gpu.example", "pool": node, "device": "large"}]}, "nodeSelector": where}, claim)
    t.check("reserved for the pod, and kept from going", claim["status"]["reservedFor"] == [{"resource": "pods", "name": "first", "uid": pod["metadata"]["uid"]}] and
            claim["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"], claim)
    c.pod("stray", {}, resourceClaims=[{"name": "card", "resourceClaimTemplateName": "none"}])
    c.card_pod("second")
    c.refused("second", NO_DEVICE)
    t.check("another pod has to wait for the device", True)
    wait_until(lambda: ("FailedResourceClaimCreation", NO_TEMPLATE) in c.events("stray"), 20, "the event of a pod without a template")
    t.check("without a template there is no claim, which is told", True)
    c.delete("stray")
    c.delete("first")
    c.runs("second")
    wait_until(lambda: len(c.get(CLAIMS)["items"]) == 1, 20, "the claim of the first to go")
    t.check("until the first one is gone, and its claim with it", c.get(CLAIMS)["items"][0]["metadata"]["generateName"] == "second-card-")
    c.delete("second")


def check_resources(t, c):
    c.pod("third", {"resources": {"requests": {"gpu.example/small": "1"}, "limits": {"gpu.example/small": "1"}}})
    status = c.runs("third")["status"].get("extendedResourceClaimStatus", {})
    t.check("an extended resource is served by a device", status.get("requestMappings") == [
        {"containerName": "c", "resourceName": "gpu.example/small", "requestName": "container-0-request-0"}], status)
    claim = c.get(f"{CLAIMS}/{status.get('resourceClaimName')}")
    t.check("with a claim that the scheduler makes", claim["metadata"]["generateName"] == "third-extended-resources-" and
            claim["status"]["allocation"]["devices"]["results"][0]["device"] == "small", claim)
    c.delete("third")
    wait_until(lambda: not c.get(CLAIMS)["items"], 20, "all claims to go")
    t.check("which goes with the pod", True)


def devices(t):
    with Folder() as folder, ControlPlane(folder) as plane:
        c = Cluster(plane)
        hollow = Component(plane, "hollow", "--nodes", "1").start()
        try:
            hollow.wait_said("1 nodes are ready")
            node = c.get("/api/v1/nodes")["items"][0]["metadata"]["name"]
            c.publish(node)
            check_claims(t, c, node)
            check_resources(t, c)
        finally:
            hollow.kill(signal.SIGKILL)


tap.run([devices])
