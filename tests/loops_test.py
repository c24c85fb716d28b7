#!/usr/bin/env python3
"""What users do with a cluster, from end to end, with kubectl and real containers: API server, controller manager, scheduler and two nodes, of which one
fails. Everything at the same time, each in a namespace of its own. Needs C8S, the program to test."""
import json
import os
import signal
import threading
import time

import nodes
from cluster import wait_until
from tap import Tap

SECOND = {"key": "only", "value": "failures", "effect": "NoSchedule"}


class Cluster(nodes.Node):
    def __init__(self):
        super().__init__(loops=True, config={"nodeLeaseDurationSeconds": 4})
        self.volumes = os.path.join(self.folder, "volumes")
        self.flags = ["--local-path-root", self.volumes]

    def loop_flags(self, name):
        more = ["--node-monitor-period", "500ms", "--node-monitor-grace-period", "5s", "--local-path-root", self.volumes]
        return super().loop_flags(name) + (more if name == "kube-controller-manager" else [])


class Place:
    """A namespace."""

    def __init__(self, node, name):
        self.node, self.name = node, name
        node.make_namespace(name)

    def kubectl(self, *args, **more):
        return self.node.kubectl("-n", self.name, *args, **more)

    def apply(self, *objects):
        return self.kubectl("apply", "-f", "-", stdin=json.dumps({"kind": "List", "apiVersion": "v1", "items": list(objects)}))

    def get(self, path, api="apis/apps/v1"):
        r = self.node.get(f"/{api}/namespaces/{self.name}/{path}")
        return r.json if r.status == 200 else None

    def pods(self, app):
        return [p for p in self.get(f"pods?labelSelector=app={app}", "api/v1")["items"] if not p["metadata"].get("deletionTimestamp")]

    def wait(self, condition, what, seconds=60):
        return wait_until(condition, seconds, f"{self.name}: {what}")

    def ready(self, kind, name, n):
        self.wait(lambda: (self.get(f"{kind}/{name}") or {}).get("status", {}).get("readyReplicas", 0) == n, f"{n} of {kind}/{name} to be ready")

    def template(self, app, *command, spec=None, **container):
        c = {"name": "c", "image": self.node.image, "command": list(command) or ["sleep", "1000"], **container}
        return {"metadata": {"labels": {"app": app}}, "spec": {"terminationGracePeriodSeconds": 1, "containers": [c], **(spec or {})}}

    def workload(self, kind, name, template, **spec):
        return {"kind": kind, "apiVersion": "apps/v1", "metadata": {"name": name},
                "spec": {"selector": {"matchLabels": {"app": name}}, "template": template, **spec}}

    def events(self, reason):
        return [e["message"] for e in self.get("events", "api/v1")["items"] if e["reason"] == reason]


def condition(obj, kind):
    return next((c for c in (obj or {}).get("status", {}).get("conditions", []) if c["type"] == kind), {})


# ---- what users do ----

def deployment(t, node):
    p = Place(node, "deployment")

    def color(value):
        return p.workload("Deployment", "web", p.template("web", "sh", "-c", "echo $COLOR; exec sleep 1000", env=[{"name": "COLOR", "value": value}]), replicas=3)

    def colors():
        return sorted({x["spec"]["containers"][0]["env"][0]["value"] for x in p.pods("web")})
    p.apply(color("red"))
    p.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    p.wait(lambda: p.kubectl("logs", "deployment/web").stdout == "red\n", "its log")
    t.check("apply: pods run", len(p.pods("web")) == 3 and all(x["spec"]["nodeName"] == "n1" for x in p.pods("web")))
    p.kubectl("scale", "deployment/web", "--replicas=5")
    p.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    t.check("scale: more of them", len(p.pods("web")) == 5)

    seen, watching = [], True

    def watch():
        while watching:
            seen.append((p.get("deployments/web") or {}).get("status", {}).get("availableReplicas"))
            time.sleep(0.02)
    watcher = threading.Thread(target=watch)
    watcher.start()
    p.apply({**color("green"), "spec": {**color("green")["spec"], "replicas": 5}})
    p.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    watching = False
    watcher.join()
    t.check("rolling update: all are new", colors() == ["green"], colors())
    t.check("and never too few", len(seen) > 10 and None not in seen and min(seen) >= 4, seen)
    p.kubectl("rollout", "undo", "deployment/web")
    p.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    p.wait(lambda: colors() == ["red"], "the old ones to be back")
    history = p.kubectl("rollout", "history", "deployment/web").stdout
    t.check("undo: a new revision with the old pods", "3 " in history and "1 " not in history.split("REVISION")[1].replace("CHANGE-CAUSE", ""), history)


def crash_loop(t, node):
    p = Place(node, "crash-loop")
    p.apply(p.workload("Deployment", "bad", p.template("bad", "sh", "-c", "exit 3", readinessProbe={"exec": {"command": ["false"]}}), replicas=1,
                       progressDeadlineSeconds=6))

    def state():
        found = [c for x in p.pods("bad") for c in x["status"].get("containerStatuses", [])]
        return found[0] if found else {}
    p.wait(lambda: state().get("restartCount", 0) >= 1 and state()["state"].get("waiting", {}).get("reason") == "CrashLoopBackOff", "the crash loop")
    t.check("a container that ends is started again, ever more slowly", state()["lastState"]["terminated"]["exitCode"] == 3, state())
    p.wait(lambda: condition(p.get("deployments/bad"), "Progressing").get("reason") == "ProgressDeadlineExceeded", "the deadline")
    r = p.kubectl("rollout", "status", "deployment/bad", check=False)
    t.check("and the deployment says that it does not get on", r.returncode == 1 and "exceeded its progress deadline" in r.stderr, r)


def node_failure(t, node):
    p = Place(node, "failure")
    second = nodes.AnotherNode(node, config={"nodeLeaseDurationSeconds": 4, "registerWithTaints": [SECOND]})
    with second:
        soon = [{"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
                for key in ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")]
        there = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": {
            "matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n2"]}]}}]}}
        p.apply(p.workload("Deployment", "web", p.template("web", spec={"tolerations": [{"key": "only", "operator": "Exists"}, *soon], "affinity": there}), replicas=2))
        p.ready("deployments", "web", 2)
        t.check("pods are on the node that they prefer", {x["spec"]["nodeName"] for x in p.pods("web")} == {"n2"}, [x["spec"] for x in p.pods("web")])
        began = time.monotonic()
        second.kill_kubelet(signal.SIGKILL)
        lost = p.wait(lambda: (n := node.get("/api/v1/nodes/n2").json) and condition(n, "Ready")["status"] == "Unknown" and n, "the node to be missed")
        t.check("a node that falls silent is not ready", condition(lost, "Ready")["message"] == "Kubelet stopped posting node status." and
                time.monotonic() - began > 2, lost["status"]["conditions"])
        p.wait(lambda: {"node.kubernetes.io/unreachable"} <= {x["key"] for x in node.get("/api/v1/nodes/n2").json["spec"].get("taints", [])}, "its taints")
        p.wait(lambda: len(found := p.pods("web")) == 2 and all(x["spec"].get("nodeName") == "n1" for x in found), "others to take their place")
        p.ready("deployments", "web", 2)
        t.check("its pods are evicted when they tolerate it no longer, and others run elsewhere", bool(p.events("TaintManagerEviction")))
        node.kubectl("delete", "node", "n2")
        p.wait(lambda: len(p.get("pods?labelSelector=app=web", "api/v1")["items"]) == 2, "the garbage collector of pods")
        t.check("what was left of them goes with the node", True)


def jobs(t, node):
    p = Place(node, "jobs")

    def job(name, *command, **spec):
        return {"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": name}, "spec": {"template": p.template(name, *command, spec={"restartPolicy": "Never"}), **spec}}
    cron = {"kind": "CronJob", "apiVersion": "batch/v1", "metadata": {"name": "cron"}, "spec": {
        "schedule": "* * * * *", "jobTemplate": {"spec": job("run", "echo", "tick")["spec"]}}}
    p.apply(job("good", "sh", "-c", "echo $JOB_COMPLETION_INDEX", completions=3, parallelism=2, completionMode="Indexed"),
            job("bad", "sh", "-c", "exit 1", backoffLimit=0), cron)
    past = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 100))
    p.kubectl("patch", "cronjob", "cron", "--subresource=status", "--type=merge", "-p", json.dumps({"status": {"lastScheduleTime": past}}))
    p.kubectl("wait", "--for=condition=Complete", "job/good", "--timeout=60s")
    said = sorted(p.kubectl("logs", x["metadata"]["name"]).stdout for x in p.get("pods?labelSelector=app=good", "api/v1")["items"])
    t.check("a job runs to its end, each index once", said == ["0\n", "1\n", "2\n"], said)
    p.kubectl("wait", "--for=condition=Failed", "job/bad", "--timeout=60s")
    t.check("one that fails says so", condition(p.get("jobs/bad", "apis/batch/v1"), "Failed")["reason"] == "BackoffLimitExceeded")
    made = p.wait(lambda: [j for j in p.get("jobs", "apis/batch/v1")["items"] if j["metadata"]["name"].startswith("cron-")], "the cron job's job")
    p.kubectl("wait", "--for=condition=Complete", "job/" + made[0]["metadata"]["name"], "--timeout=60s")
    t.check("a cron job makes jobs", made[0]["metadata"]["ownerReferences"][0]["name"] == "cron")
    p.kubectl("create", "job", "by-hand", "--from=cronjob/cron")
    p.kubectl("wait", "--for=condition=Complete", "job/by-hand", "--timeout=60s")
    t.check("also by hand", p.kubectl("logs", "job/by-hand").stdout == "tick\n")


def stateful_set(t, node):
    p = Place(node, "stateful")
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}}
    run = p.template("db", "sh", "-c", "date +%N >> /data/began; exec sleep 1000", volumeMounts=[{"name": "data", "mountPath": "/data"}])
    p.apply(p.workload("StatefulSet", "db", run, replicas=2, serviceName="db", volumeClaimTemplates=[claim]))
    p.ready("statefulsets", "db", 2)

    def lines(pod):
        return p.kubectl("exec", pod, "--", "cat", "/data/began", check=False).stdout.splitlines()
    uid = p.get("pods/db-0", "api/v1")["metadata"]["uid"]
    first = lines("db-0")
    p.kubectl("delete", "pod", "db-0")
    p.wait(lambda: (found := p.get("pods/db-0", "api/v1")) and found["metadata"]["uid"] != uid and condition(found, "Ready").get("status") == "True", "db-0")
    again = p.wait(lambda: len(found := lines("db-0")) == 2 and found, "what it has written")
    t.check("a pod of a stateful set comes back with its name and its volume", again[:1] == first and lines("db-1") != again, again)
    folders = os.listdir(node.volumes)
    t.check("each claim has a folder of the node", len(folders) == 2, folders)
    p.kubectl("scale", "statefulset/db", "--replicas=1")
    p.wait(lambda: p.get("pods/db-1", "api/v1") is None, "db-1 to be gone")
    t.check("claims stay when it shrinks", len(p.get("persistentvolumeclaims", "api/v1")["items"]) == 2)
    p.kubectl("delete", "statefulset/db", "pvc/data-db-0", "pvc/data-db-1")
    p.wait(lambda: not os.listdir(node.volumes) and not node.get("/api/v1/persistentvolumes").json["items"], "the volumes to be gone")
    t.check("with a claim its volume goes, and the folder", True)


def namespace(t, node):
    p = Place(node, "passing")
    p.apply(p.workload("Deployment", "web", p.template("web"), replicas=2), {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "c", "finalizers": ["example.com/x"]}})
    p.ready("deployments", "web", 2)
    node.kubectl("delete", "namespace", "passing", "--wait=false")
    stuck = p.wait(lambda: (n := node.get("/api/v1/namespaces/passing").json) and "example.com/x" in condition(n, "NamespaceFinalizersRemaining").get("message", "") and
                   not p.get("pods", "api/v1")["items"] and n, "the namespace to say what it waits for")
    t.check("a namespace that is deleted takes everything with it, and says what keeps it", stuck["status"]["phase"] == "Terminating")
    r = p.kubectl("create", "configmap", "late", check=False)
    t.check("nothing new comes in", "because it is being terminated" in r.stderr, r.stderr)
    p.kubectl("patch", "configmap", "c", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    wait_until(lambda: node.get("/api/v1/namespaces/passing").status == 404, 60, "the namespace to be gone")
    t.check("then it is gone", True)


def quota(t, node):
    p = Place(node, "quota")
    p.kubectl("create", "quota", "few", "--hard=pods=2")
    p.wait(lambda: p.get("resourcequotas/few", "api/v1").get("status", {}).get("used", {}).get("pods") == "0", "the quota")
    p.apply(p.workload("Deployment", "web", p.template("web"), replicas=3))
    p.ready("deployments", "web", 2)
    failure = p.wait(lambda: condition(p.get("deployments/web"), "ReplicaFailure"), "the refusal to be told")
    t.check("a quota refuses the third pod", failure["reason"] == "FailedCreate" and "exceeded quota: few, requested: pods=1, used: pods=2, limited: pods=2" in failure["message"], failure)
    r = p.kubectl("run", "one", "--image", "x", check=False)
    t.check("also to users", r.returncode == 1 and "exceeded quota: few" in r.stderr, r.stderr)
    p.kubectl("patch", "quota", "few", "--type=merge", "-p", '{"spec":{"hard":{"pods":"4"}}}')
    p.kubectl("scale", "deployment/web", "--replicas=4")  # the set would try again by itself, but ever more slowly
    p.ready("deployments", "web", 4)
    t.check("when there is room, it goes on", not condition(p.get("deployments/web"), "ReplicaFailure"))


def main():
    tap = Tap()
    if why := nodes.missing():
        tap.skip("loops from end to end", why)
        tap.close()
    nodes.own_namespaces()
    with Cluster() as node:
        nodes.together(tap, [deployment, crash_loop, node_failure, jobs, stateful_set, namespace, quota], node)
        if kept := os.environ.get("LOOPS_LOG"):
            for part in ("kubelet", *node.loops):
                with open(os.path.join(node.folder, part + ".log")) as log, open(f"{kept}.{part}", "w") as f:
                    f.write(log.read())
    tap.close()


if __name__ == "__main__":
    main()
