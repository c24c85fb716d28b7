#!/usr/bin/env python3
"""kubectl as people use it, in every version that can be had here: the installed one, and Debian's, which is years older."""
import json
import os
import re
import select
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import peers  # noqa: E402
import tap  # noqa: E402
from cluster import Folder, Server  # noqa: E402

KINDS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kinds.yaml")
DEBIAN = "kubernetes-client"


def programs():
    """{version: path} of the kubectls; the version is a number as 20 for v1.20."""
    found = {}
    unpacked = shutil.which("kubectl", path=os.path.join(peers.FOLDER, "usr", "bin"))
    if not unpacked and shutil.which("apt-get"):
        unpacked = shutil.which("kubectl", path=peers.unpack(DEBIAN))
    for path in (unpacked, shutil.which("kubectl")):
        if path:
            out = subprocess.run([path, "version", "--client", "-o", "json"], capture_output=True, text=True, timeout=60).stdout
            found.setdefault(int(re.sub(r"\D", "", json.loads(out)["clientVersion"]["minor"])), path)
    return found


class Kubectl:
    def __init__(self, t, s, version, path):
        self.t, self.s, self.version, self.path = t, s, version, path
        self.ns = f"k{version}"

    def run(self, *args, stdin=None, check=False, ns=True):
        return self.s.kubectl(*(("-n", self.ns) if ns else ()), *args, program=self.path, check=check, stdin=stdin)

    def out(self, *args, **more):
        return self.run(*args, **more).stdout

    def says(self, command, want, code=0, stdin=None, name=None):
        """Whether a command line ends with the code, having said something that the pattern finds."""
        r = self.run(*(command.split() if isinstance(command, str) else command), stdin=stdin)
        text = r.stdout + r.stderr
        name = name or (command if isinstance(command, str) else " ".join(command))
        self.t.check(f"1.{self.version}: {name}", r.returncode == code and re.search(want, text), f"exit {r.returncode}, wanted {want}\n{text}")
        return r.stdout


def yaml(kind, name, rest="", version="v1", labels=""):
    return f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: {name}{', labels: ' if labels else ''}{labels}}}\n{rest}\n"


POD = "spec: {containers: [{name: c, image: busybox}]}"


def create(k):
    k.says("create configmap cm --from-literal=color=blue", "^configmap/cm created")
    k.says("create configmap cm", r'configmaps "cm" already exists', 1)
    k.says("create secret generic sec --from-literal=a=b", "^secret/sec created")
    k.says("create deployment d --image=busybox", "^deployment.apps/d created")
    k.says("create job j --image=busybox", "^job.batch/j created")
    k.says("create role r --verb=get --resource=pods", "^role.rbac.authorization.k8s.io/r created")
    k.says("create rolebinding rb --role=r --user=alice", "^rolebinding.rbac.authorization.k8s.io/rb created")
    k.says("create quota q --hard=pods=50", "^resourcequota/q created")
    k.says("create service clusterip svc --tcp=80:80", "^service/svc created")
    k.says("create ingress i --rule=x.example.com/*=svc:80", "^ingress.networking.k8s.io/i created")
    k.says("create -f -", "^pod/p created", stdin=yaml("Pod", "p", POD, labels="{app: p}"))
    k.says("create configmap A_b", 'ConfigMap "A_b" is invalid: metadata.name: Invalid value: "A_b": a lowercase RFC 1123 subdomain', 1)
    k.says("create configmap dry --dry-run=server -o name", "^configmap/dry$")
    k.says("create configmap dry --dry-run=client -o yaml", "name: dry")
    k.says("get configmap dry", r'Error from server \(NotFound\): configmaps "dry" not found', 1)
    k.says("create -f - --validate=true", 'unknown field "?bogus"?|unknown field .*bogus', 1, stdin=yaml("Pod", "bad", "spec: {bogus: 1, containers: [{name: c, image: b}]}"),
           name="create refuses an unknown field")
    k.says("expose deployment d --port=80", "^service/d exposed")
    k.says("get all", r"pod/p (.|\n)*service/d (.|\n)*deployment.apps/d (.|\n)*job.batch/j ")


def apply(k):
    one = yaml("ConfigMap", "ap", "data: {a: '1'}")
    two, ssa = one.replace("'1'", "'2'"), one.replace("name: ap", "name: ssa")
    k.says("apply -f -", "^configmap/ap created", stdin=one, name="apply creates")
    k.says("apply -f -", "^configmap/ap unchanged", stdin=one, name="apply again")
    k.says("diff -f -", r"-  a: .?1(.|\n)*\+  a: .?2", 1, stdin=two)
    k.says("apply -f -", "^configmap/ap configured", stdin=two, name="apply changes")
    k.says("diff -f -", "^$", 0, stdin=two, name="diff of the same")
    k.says("apply view-last-applied configmap/ap", "a: .?2")
    k.says("apply --server-side -f -", "^configmap/ssa serverside-applied", stdin=ssa)
    k.says("apply --server-side --field-manager=other -f -", 'conflict with "kubectl"', 1, stdin=ssa.replace("'1'", "'2'"))
    k.says("apply --server-side --field-manager=other --force-conflicts -f -", "serverside-applied", stdin=ssa.replace("'1'", "'2'"))
    if k.version >= 25:  # older ones look for kinds that have gone meanwhile
        k.says("apply --prune -l app=gone -f -", "^configmap/kept created", stdin=yaml("ConfigMap", "kept", labels="{app: gone}"))
        k.says("apply --prune -l app=gone -f -", r"kept pruned", stdin=yaml("ConfigMap", "kept2", labels="{app: gone}"), name="apply --prune removes")
    k.says("replace -f -", "^configmap/ap replaced", stdin=one)
    k.says("replace -f -", "NotFound", 1, stdin=yaml("ConfigMap", "zz"), name="replace of nothing")


def get(k):
    k.says("get configmap cm -o wide", r"NAME +DATA +AGE\ncm +1 +\d+s")
    k.says("get deployment d -o wide", r"NAME +READY +UP-TO-DATE +AVAILABLE +AGE +CONTAINERS +IMAGES +SELECTOR\nd +0/1 +0 +0 +\w+ +busybox +busybox +app=d")
    k.says("get pods -o wide --show-labels", r"p +0/1 +Pending +0 +\w+ +<none> +<none> +<none> +<none> +app=p")
    k.says("get configmap cm -o yaml", "^apiVersion: v1\ndata:\n  color: blue\nkind: ConfigMap\nmetadata:\n  creationTimestamp:")
    k.says("get configmap cm -o json", '"color": "blue"')
    k.says("get configmaps,secrets -o name", "configmap/cm(.|\n)*secret/sec")
    k.says("get configmap cm -o jsonpath={.data.color}", "^blue$")
    k.says("get configmap cm -o custom-columns=NAME:.metadata.name,COLOR:.data.color", r"NAME +COLOR\ncm +blue")
    k.says(["get", "configmap", "cm", "-o", "go-template={{.data.color}}"], "^blue$")
    k.says("get pods -l app=p --no-headers", r"^p +0/1 +Pending")
    k.says("get pods -l app=none", "No resources found")
    k.says("get pods --field-selector=status.phase=Pending -o name", "^pod/p$")
    k.says("get pods -A --sort-by=.metadata.name", "NAMESPACE +NAME")
    k.says("get cm cm --ignore-not-found zz", "^NAME|cm")
    k.says("get --raw /readyz", "^ok$")
    k.says("get nonsense", "the server doesn't have a resource type \"nonsense\"", 1)
    k.says("get configmaps --chunk-size=1 -o name", "configmap/cm(.|\n)*configmap/ssa")
    k.says("get deploy/d svc/d", "deployment.apps/d(.|\n)*service/d")


def describe(k):
    k.says("describe configmap cm", r"Name: +cm\nNamespace: +k\d+\n(.|\n)*color:\n----\nblue")
    k.says("describe pod p", r"Name: +p\n(.|\n)*Containers:\n  c:\n(.|\n)*Image: +busybox")
    k.says("describe deployment d", r"Name: +d\n(.|\n)*Replicas: +1 desired \| 0 updated")
    k.says("describe service d", r"Type: +ClusterIP(.|\n)*Port: +<unset> +80/TCP")
    k.says("describe quota q", r"Name: +q")
    k.says("describe secret sec", r"a: +1 bytes")


def change(k):
    os.environ["KUBE_EDITOR"] = "sed -i s/blue/green/"
    try:
        k.says("edit configmap cm", "^configmap/cm edited")
        k.says("edit configmap cm", "Edit cancelled, no changes made", name="edit of nothing")
    finally:
        del os.environ["KUBE_EDITOR"]
    k.says("get configmap cm -o jsonpath={.data.color}", "^green$", name="what was edited")
    k.says(["patch", "configmap", "cm", "--type=merge", "-p", '{"data":{"a":"1"}}'], "^configmap/cm patched$")
    k.says(["patch", "configmap", "cm", "--type=merge", "-p", '{"data":{"a":"1"}}'], r"^configmap/cm patched \(no change\)$", name="patch of nothing")
    k.says(["patch", "configmap", "cm", "--type=json", "-p", '[{"op":"remove","path":"/data/a"}]'], "^configmap/cm patched$")
    k.says(["patch", "deployment", "d", "-p", '{"spec":{"template":{"spec":{"containers":[{"name":"two","image":"b"}]}}}}'], "^deployment.apps/d patched$")
    k.says("get deployment d -o jsonpath={.spec.template.spec.containers[*].name}", "^two busybox$", name="a strategic patch merges by name")
    k.says("label configmap cm team=a", "^configmap/cm labeled")
    k.says("label configmap cm team=b", "already has a value|--overwrite", 1)
    k.says("label configmap cm team=b --overwrite", "^configmap/cm labeled")
    k.says("label configmap cm team-", "^configmap/cm (labeled|unlabeled)")
    k.says("annotate configmap cm note=x", "^configmap/cm annotated")
    k.says("get configmap cm -o jsonpath={.metadata.annotations.note}", "^x$")
    k.says("scale deployment d --replicas=3", "^deployment.apps/d scaled")
    k.says("scale deployment d --current-replicas=9 --replicas=1", "Expected replicas to be 9, was 3|expected replicas to be 9, was 3", 1)
    k.says("get deployment d -o jsonpath={.spec.replicas}", "^3$")
    k.says("set image deployment/d busybox=busybox:2", "^deployment.apps/d image updated")
    k.says("set env deployment/d A=b", "^deployment.apps/d env updated")
    k.says("autoscale deployment d --max=5 --min=2", "^horizontalpodautoscaler.autoscaling/d autoscaled")


def explain(k):
    k.says("explain pod.spec.containers.image", r"FIELD: +image.* ?<string>")
    k.says("explain deployment.spec --recursive", r"template\t<(Object|PodTemplateSpec)>.*\n(.|\n)*containers\t<\[\](Object|Container)>")
    k.says("explain configmaps", r"KIND: +ConfigMap\nVERSION: +v1")
    k.says("explain pod.nonsense", r'field "nonsense" does not exist', 1)
    k.says("api-resources", r"deployments +deploy +apps/v1 +true +Deployment")
    k.says("api-resources --namespaced=false -o name", "^(.|\n)*nodes\n")
    k.says("api-versions", "^admissionregistration.k8s.io/v1\n(.|\n)*apps/v1\n(.|\n)*\nv1\n")
    k.says("version", r"Server Version: (v1\.36|.*GitVersion:\"v1\.36)")
    k.says("cluster-info", "is running at")
    k.says("auth can-i create pods", "^yes")
    if k.version >= 28:
        k.says("auth whoami", r"Username +kubernetes-admin(.|\n)*Groups +\[.*system:")


def status(k, kind, name, body):
    a = k.s.request("PATCH", f"/apis/apps/v1/namespaces/{k.ns}/{kind}/{name}/status", {"status": body})
    k.t.check(f"1.{k.version}: the status of {kind}/{name} is set", a.status == 200, a)


def rollout(k):
    status(k, "deployments", "d", {"observedGeneration": 99, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 1, "availableReplicas": 1})
    k.says("rollout status deployment/d --watch=false", 'Waiting for deployment "d" rollout to finish: 1 of 3 updated replicas are available')
    status(k, "deployments", "d", {"observedGeneration": 99, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3,
                                   "conditions": [{"type": "Available", "status": "True", "reason": "x", "message": "y"}]})
    k.says("rollout status deployment/d", 'deployment "d" successfully rolled out')
    k.says("wait deployment/d --for=condition=Available --timeout=10s", "^deployment.apps/d condition met")
    k.says("wait deployment/d --for=condition=Other --timeout=1s", "timed out waiting for the condition", 1)
    k.says("rollout restart deployment/d", "^deployment.apps/d restarted")
    k.says("rollout pause deployment/d", "^deployment.apps/d paused")
    k.says("rollout resume deployment/d", "^deployment.apps/d resumed")
    k.says("rollout history deployment/d", "REVISION +CHANGE-CAUSE|No rollout history found")
    k.says("get deployment d", r"d +3/3 +3 +3 ")


def node(k):
    name = f"n{k.version}"
    k.says("create -f -", f"^node/{name} created", stdin=yaml("Node", name), name="create node")
    k.says(f"cordon {name}", f"^node/{name} cordoned")
    k.says(f"get node {name}", r"SchedulingDisabled")
    k.says(f"uncordon {name}", f"^node/{name} uncordoned")
    k.says(f"taint node {name} a=b:NoSchedule", f"^node/{name} tainted")
    k.says(f"describe node {name}", r"a=b:NoSchedule")
    k.says(f"delete node {name}", f'^node "{name}" deleted')


def watch(k):
    command = [k.path, "--kubeconfig", k.s.kubeconfig, "-n", k.ns, "get", "configmaps", "-w", "--output-watch-events", "-l", "live=yes"]
    p = subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "HOME": k.s.folder})
    said = ""

    def shows(pattern, seconds):
        nonlocal said
        deadline = time.monotonic() + seconds
        while not re.search(pattern, said) and time.monotonic() < deadline:
            if select.select([p.stdout], [], [], 0.1)[0]:
                said += os.read(p.stdout.fileno(), 65536).decode()
        return re.search(pattern, said)
    maps = f"/api/v1/namespaces/{k.ns}/configmaps"
    try:
        for i in range(100):  # until its watch is open
            k.s.request("POST", maps, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"live{i}", "labels": {"live": "yes"}}})
            if shows(r"ADDED +live\d+ +0 +\d+s", 0.2):
                break
        k.s.request("DELETE", f"{maps}/live0")
        k.t.check(f"1.{k.version}: get -w", shows(r"DELETED +live0 ", 20), said)
    finally:
        p.kill()
        p.wait()
        p.stdout.close()


def delete(k):
    for i in range(3):
        k.run("create", "-f", "-", stdin=yaml("ConfigMap", f"del{i}", labels="{del: 'yes'}"))
    k.says("delete configmap del0 --dry-run=server", r'^configmap "del0" deleted (.*)\(server dry run\)')
    k.says("delete configmap del0 --dry-run=client", r'^configmap "del0" deleted (.*)\(dry run\)')
    k.says("delete configmap del0", '^configmap "del0" deleted')
    k.says("delete configmap del0", r'NotFound\): configmaps "del0" not found', 1, name="delete of nothing")
    k.says("delete configmap -l del=yes", 'configmap "del1" deleted.*\nconfigmap "del2" deleted')
    k.says("delete pod p --grace-period=0 --force", 'pod "p" force deleted')
    old = k.version < 24  # for which what is not there cannot be waited for
    k.says("wait pod/p --for=delete --timeout=10s", "no matching resources found" if old else "^$", code=int(old))
    k.says("delete deployment d --cascade=orphan --wait=false", '^deployment.apps "d" deleted')
    k.says("get deployment d -o jsonpath={.metadata.finalizers}", "orphan", name="orphaning is left to the garbage collector")
    k.says("delete secrets --all", 'secret "sec" deleted')
    k.says(f"delete namespace k{k.version} --wait=false", f'^namespace "k{k.version}" deleted')
    k.says(f"get namespace k{k.version}", "Terminating")
    k.says("create configmap late", "because it is being terminated", 1)


def kinds(k):
    """Every kind that is built in: made, read, written back as it was read, and removed."""
    ns = f"rt{k.version}"
    prepare(k, ns)
    with open(KINDS) as f:
        text = f.read().replace("round-trip", ns)
    n = len(text.split("\n---\n"))
    validate = "--validate=false" if k.version < 24 else "--validate=true"
    made = k.run("create", "-n", ns, validate, "-f", "-", stdin=text, ns=False)
    k.t.check(f"1.{k.version}: every kind is created", made.stdout.count(" created\n") == n and made.returncode == 0, f"{n} kinds\n{made.stderr}")
    read = k.run("get", "-n", ns, "-f", "-", "-o", "yaml", stdin=text, ns=False)
    k.t.check(f"1.{k.version}: every kind is read", read.stdout.count("\n    uid: ") >= n, f"{read.stdout.count('uid: ')} of {n}\n{read.stderr}")
    shown = k.run("get", "-n", ns, "-f", "-", stdin=text, ns=False)
    k.t.check(f"1.{k.version}: every kind is shown as a table", shown.returncode == 0 and shown.stdout.count("NAME") >= n - 1, shown.stderr)
    back = k.run("replace", "-n", ns, validate, "-f", "-", stdin=read.stdout, ns=False)
    k.t.check(f"1.{k.version}: every kind is replaced", back.returncode == 0 and back.stdout.count(" replaced\n") == n, back.stderr)
    gone = k.run("delete", "-n", ns, "--wait=false", "-f", "-", stdin=text, ns=False)
    k.t.check(f"1.{k.version}: every kind is deleted", gone.returncode == 0 and gone.stdout.count(" deleted") == n, gone.stderr)


def prepare(k, ns):
    k.s.request("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ns}})
    k.s.request("POST", f"/api/v1/namespaces/{ns}/serviceaccounts", {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})


def test_all(t):
    found = programs()
    if not found:
        t.skip("kubectl", "there is no kubectl")
        return
    with Folder() as folder:
        for version, path in found.items():
            with Server(os.path.join(folder, str(version))) as s:
                k = Kubectl(t, s, version, path)
                prepare(k, k.ns)
                for part in (create, apply, get, describe, change, explain, rollout, node, watch, kinds, delete):
                    part(k)


if __name__ == "__main__":
    tap.run([test_all])
