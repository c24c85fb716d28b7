"""Plays the stories of what belongs to a whole cluster: nodes, namespaces, volumes, services, budgets, quotas, certificates. It is the player of
loops.py with more actions.

Some stories change what others live on: the node, the class that is the default, how many nodes the scheduler counts. They are played ALONE, one after
another."""
import copy
import json
import re
import signal
import subprocess
import time
import uuid

import loops
import nodes
from stories import CLUSTER_WIDE, NAMESPACED, PATCHES

TOPICS = ("csr-", "ds-two-nodes-", "ep-", "gc-", "lease-", "limitrange-", "node-", "ns-", "pdb-", "pv-", "pvc-", "quota-", "sched-", "svc-", "unsched-")
ALONE = ("node-", "pvc-default-class-assigned", "sched-priorityclass-missing-and-global-default", "unsched-then-label-node-free")

# With a second node. The first makes it join.
TWO_NODES = ("node-join-real-kubelet", "sched-two-nodes-anti-affinity-third-pending", "sched-two-nodes-topology-spread", "ds-two-nodes-rolling-update",
             "node-kubelet-stops-unknown-evict-return", "node-object-deleted-while-kubelet-runs")
# Stories that were recorded while there were nodes without a kubelet, and their pods' room.
AMONG_GHOSTS = ("node-cordon-uncordon", "node-taint-noschedule-toleration")

UNPLAYED = {
    "node-ghost-recreated-same-name-no-status": "that controller remembered how long a node of the same name had been silent, which had been deleted minutes before",
    "node-object-full": "is one object, for reading",
}
CANCELED = ("Readiness probe errored and resulted in unknown state", "a probe that was under way when the pod was deleted, by chance")
AT_ONCE = ("Schedulable  'Node n1 status is now", "that kubelet told it with its next status, after the recording had ended")
DIFFERENT = {
    "ep-ready-notready-terminating": [CANCELED, ("EndpointSlice/s-{1} at ", "which of two pods has its address first")],
    "gc-pod-owner-deleted": [("missing: .deleted: True, not '-'; .meta.deletionGracePeriodSeconds: 0, not 1; .status.podIP: '-', not 'set'",
                              "that kubelet told once more, without the address, when the sandbox was gone already")],
    "lease-objects": [("node.alpha.kubernetes.io/ttl", "the annotation is another controller's")],
    "node-join-real-kubelet": [
        ("CIDRAssignmentFailed", "is of the set-up of the recording"), ("Node/n2 Normal NodeReady", "the runtime is known to be ready before the node registers"),
        ("event of ours only: Node/n2", "there it was the same event as of an earlier start"), ("event 1 times, not 3: Node/n2", "the same")],
    "node-object-deleted-while-kubelet-runs": [
        ("Node/n2 Normal NodeHas", "that kubelet told it at each try to write its status"), ("before Normal NodeHas", "the same"),
        ("Node/n2 Normal NodeReady", "the runtime is known to be ready before the node registers")],
    "node-cordon-uncordon": [AT_ONCE],
    "node-drain-own-pods-with-pdb": [AT_ONCE],
    "pv-reclaim-delete-no-plugin": [("ProvisioningFailed", "the claim was looked at before the volume was known, by chance")],
    "pvc-default-class-assigned": [
        (re.compile(r"PersistentVolumeClaim/early (at|Normal) .*('story-default', not '-'|'example\.test/prov')"),
         "all claims are looked at every 15 s: when that is while the story is played, it gets the class, and what follows from that")],
    "node-ghost-goes-unknown": [("RemovingNode", "the recording ended before that")],
    "ep-terminating-only-and-service-without-pods": [
        CANCELED, ("EndpointSlice/s-{1} at ", "there the pod was ready when its address was told first"), ("Endpoints/s at ", "the same")],
}

TRIGGER_TIME = "endpoints.kubernetes.io/last-change-trigger-time"
NODE_PORT = re.compile(r"(\"(?:nodePort|healthCheckNodePort)\": )(3[0-2]\d{3})\b")


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def certificate(text):
    """What a certificate says, without what is different in each."""
    r = subprocess.run("base64 -d | openssl x509 -noout -subject -ext keyUsage,extendedKeyUsage,basicConstraints", shell=True, input=text, text=True,
                       capture_output=True, check=False)
    return r.stdout or text


def endpoint_order(e):
    return (e.get("targetRef", {}).get("name", ""), str(e.get("addresses", e.get("ip"))))


class SecondNode(nodes.AnotherNode):
    """n2 of the stories, with the images of the first. Its kubelet has been stopped, and the Node is not there."""

    def __init__(self, first):
        super().__init__(first, config={"registerWithTaints": [{"key": "story.example/n2", "effect": "NoSchedule"}]})
        self.flags = first.flags

    def start(self):
        super().start()
        for name in ("pause:3.10.2", "pause:3.10"):
            self.crictl("pull", "registry.k8s.io/" + name)
        self.kill_kubelet(signal.SIGTERM)
        self.server.request("DELETE", "/api/v1/nodes/n2")
        return self


class Player(loops.Player):
    second = None
    KINDS = (*NAMESPACED, *CLUSTER_WIDE)

    def __init__(self, node, watcher, story, number):
        self.given = set(re.findall(NODE_PORT, json.dumps([story["manifests"], story["actions"]])))
        # The recorder removed what belongs to no namespace when the story was over.
        end = story["durationMs"]
        story["timeline"] = [e for e in story["timeline"] if (e["t"] <= end or e["obj"].split("/")[0] not in CLUSTER_WIDE) and
                             e["obj"] != "ConfigMap/kube-root-ca.crt"]
        super().__init__(node, watcher, story, number)
        self.conditions = [e["status"]["conditions"] for e in story["timeline"] if e["obj"].startswith("Node/story-") and e.get("status", {}).get("conditions")]

    # ---- what is compared ----

    def tidied(self, state):
        state = {k: v for k, v in state.items() if v is not None}
        state = json.loads(NODE_PORT.sub(lambda m: m[0] if m.groups() in self.given else m[1] + '"<port>"', json.dumps(state)))
        spec, status = state.get("spec") or {}, state.get("status") or {}
        if "claimRef" in spec:
            spec["claimRef"].pop("resourceVersion", None)
        if "certificate" in status:
            status["certificate"] = certificate(status["certificate"])
        for s in state.get("subsets") or []:
            for part in ("addresses", "notReadyAddresses"):
                if part in s:
                    s[part].sort(key=endpoint_order)
        if state.get("endpoints"):
            state["endpoints"].sort(key=endpoint_order)
        meta = state.get("meta") or state.get("metadata") or {}
        if "addressType" in state or "subsets" in state or TRIGGER_TIME in meta.get("annotations", {}):
            # How often it was written, and whether a second had passed since the time before.
            meta.pop("generation", None)
            meta.get("annotations", {}).pop(TRIGGER_TIME, None)
            if not meta.get("annotations", True):
                del meta["annotations"]
        if "kubernetes.io/hostname" in meta.get("labels", {}):
            self.tidy_node(state, spec)
        return state

    @staticmethod
    def tidy_node(state, spec):
        state["spec"] = {k: v for k, v in spec.items() if k in ("taints", "unschedulable")}
        for taint in state["spec"].get("taints", []):
            taint.pop("timeAdded", None)
        state["spec"].get("taints", []).sort(key=lambda t: (t["key"], t["effect"]))
        state.get("meta", {}).pop("annotations", None)
        if not state["status"].get("conditions"):
            state["status"].pop("conditions", None)

    # ---- acting ----

    def make_ghosts(self):
        """One with room and a taint, and one without both."""
        taint = {"key": "story.example/ghost", "effect": "NoSchedule"}
        for name, taints, room in (("story-ghost1", [taint], {"pods": "110", "cpu": "2", "memory": "24Gi"}), ("story-ghost2", [], {})):
            self.request("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}, "spec": {"taints": taints}})
            ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ok", "lastHeartbeatTime": now()}
            self.patch("Node", name, {"status": {"conditions": [ready], "capacity": room, "allocatable": room}}, "strategic", "status")
        time.sleep(1)

    def play(self):
        if self.story["story"] in AMONG_GHOSTS:
            self.make_ghosts()
        self.request("POST", "/api/v1/namespaces", {"metadata": {"name": self.ns}})
        self.node.make_namespace(self.ns)
        for obj in self.theirs:
            kind, name = obj.split("/")
            if kind in CLUSTER_WIDE and (r := self.request("GET", self.path(kind, name.replace("NS", self.ns)))).status == 200:
                with self.watcher.lock:
                    self.take("EXISTING", r.json)
        return super().play()

    def waits(self, action):
        """What admission reads must be known to it first."""
        before = [a["do"] for a in self.story["actions"] if a["t"] < action["t"]][-1:]
        return super().waits(action) or any(do.startswith(("create ResourceQuota/", "create Node/")) for do in before)

    def patch(self, kind, name, patch, how="merge", sub=""):
        return self.request("PATCH", self.path(kind, name, sub), patch, content_type=PATCHES[how])

    def node_status(self, name):
        conditions = [{**c, "lastHeartbeatTime": now()} for c in self.conditions.pop(0)]
        return self.patch("Node", name, {"status": {"conditions": conditions}}, "strategic", "status")

    def finalize(self, finalizers):
        namespace = self.request("GET", f"/api/v1/namespaces/{self.ns}").json
        namespace["spec"]["finalizers"] = (namespace["spec"]["finalizers"] + finalizers) if finalizers else []
        return self.request("PUT", f"/api/v1/namespaces/{self.ns}/finalize", namespace)

    def owned(self, manifest):
        """A manifest whose owners are those that are there, but where the story had a wrong uid."""
        wrong = {u for m in self.story["manifests"] if "wrong" in m["metadata"]["name"] for u in re.findall(r"<uid\d+>", json.dumps(m))}
        for ref in manifest["metadata"].get("ownerReferences", []):
            r = self.request("GET", self.path(ref["kind"], ref["name"]))
            ref["uid"] = r.json["metadata"]["uid"] if r.status == 200 and ref["uid"] not in wrong else str(uuid.uuid4())
        return manifest

    def act(self, action, manifests):
        if action["do"].startswith("create ") and manifests:
            manifests[0] = self.owned(copy.deepcopy(manifests[0]))
        if "patch" in action:  # an address that is not the one it has
            action = {**action, "patch": json.loads(json.dumps(action["patch"]).replace("<clusterIP1>", "10.96.77.77"))}
        answer = self.act_on_cluster(action["do"])
        if answer is None:
            super().act(action, manifests)
        else:
            self.compare_answer(action, answer)

    def act_on_cluster(self, do):
        """None: it is no such action."""
        words = do.split()
        ghost = next((m["metadata"]["name"] for m in self.story["manifests"] if m["kind"] == "Node"), None)
        if do == "delete Namespace":
            return self.request("DELETE", f"/api/v1/namespaces/{self.ns}")
        if do.startswith("label node "):
            return self.patch("Node", words[2], {"metadata": {"labels": dict([words[3].split("=")])}})
        if do == "unlabel node":
            labels = [a["do"].split()[3].split("=")[0] for a in self.story["actions"] if a["do"].startswith("label node ")]
            return self.patch("Node", "n1", {"metadata": {"labels": dict.fromkeys(labels)}})
        if do.startswith("taint node "):
            key, value, effect = re.match(r"(.*)=(.*):(.*)", words[3]).groups()
            return self.patch("Node", words[2], {"spec": {"taints": [{"key": key, "value": value, "effect": effect}]}})
        if do.startswith("remove taints of "):
            return self.patch("Node", words[3], {"spec": {"taints": None}})
        if do == "unschedulable=true":
            return self.patch("Node", ghost, {"spec": {"unschedulable": True}})
        if do.startswith(("patch status of node ", "status: ")):
            return self.node_status(ghost)
        if do == "delete Node/n2":
            return self.request("DELETE", "/api/v1/nodes/n2")
        if do == "start kubelet of n2":
            return self.second.spawn_kubelet()
        if do.startswith("stop kubelet of n2 "):
            return self.second.kill_kubelet(signal.Signals[words[-1].strip("()")]) or 0
        if do.startswith("put Namespace/finalize "):
            return self.finalize(words[3:] if words[2] == "adding" else [])
        return None

    def compare_answer(self, action, r):
        if action.get("code"):
            super().compare_answer(action, r)

    def clean(self):
        for m in self.story["manifests"]:
            if m["kind"] in CLUSTER_WIDE:
                self.request("DELETE", self.path(m["kind"], m["metadata"]["name"]))
        for ghost in ("story-ghost1", "story-ghost2") if self.story["story"] in AMONG_GHOSTS else ():
            self.request("DELETE", self.path("Node", ghost))
        if self.story["story"].startswith(("node-", "sched-two-nodes-")):  # there may be no kubelet any more to end them
            self.request("DELETE", self.path("Pod"), {"gracePeriodSeconds": 0})
        super().clean()

    def differences(self):
        known = DIFFERENT.get(self.story["story"], [])
        return [line for line in super().differences() if not loops.is_known(line, known)]


def groups(found):
    """The stories: those that may be played at the same time, those that may not, those with a second node (which may not, either)."""
    two = sorted((s for s in found if s["story"] in TWO_NODES), key=lambda s: TWO_NODES.index(s["story"]))
    alone = [s for s in found if s["story"].startswith(ALONE) and s not in two]
    return [s for s in found if s not in alone and s not in two], alone, two
