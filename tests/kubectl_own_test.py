#!/usr/bin/env python3
"""Our own kubectl, as people use it, on a control plane with hollow nodes. What it prints is what Kubernetes' kubectl prints; where
Debian's, which is years older, prints the same, it is asked, too. Needs C8S, the program to test, and KUBECTL, the client alone."""
import http.server
import json
import os
import re
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import peers  # noqa: E402
import tap  # noqa: E402
from cluster import C8S, Component, ControlPlane, Folder, free_port, wait_until  # noqa: E402

KUBECTL = os.environ.get("KUBECTL", os.path.join(os.path.dirname(C8S), "kubectl"))
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ap\ndata:\n  a: \"%s\"\n"
POD = ("apiVersion: v1\nkind: Pod\nmetadata: {name: solo, labels: {tier: one}}\n"
       "spec: {terminationGracePeriodSeconds: 1, containers: [{name: main, image: busybox}, {name: side, image: busybox}]}\n")


class Ours:
    def __init__(self, t, plane, scheduler_port):
        self.t, self.plane, self.scheduler_port = t, plane, scheduler_port
        self.minor = None  # of Debian's kubectl

    def run(self, line, stdin=None, **env):
        args = line.split() if isinstance(line, str) else line
        return subprocess.run([KUBECTL, "--kubeconfig", self.plane.kubeconfig, *args], input=stdin, capture_output=True, text=True, timeout=60,
                              env={**os.environ, "HOME": self.plane.folder, "TZ": "UTC", **env})

    def says(self, line, out="", err="", code=0, stdin=None, name=None, **env):
        """The whole of what a command prints; a compiled pattern must match all of it."""
        r = self.run(line, stdin, **env)

        def same(got, want):
            return want.fullmatch(got) if isinstance(want, re.Pattern) else got == want
        name = name or (line if isinstance(line, str) else " ".join(line))
        self.t.check(name, r.returncode == code and same(r.stdout, out) and same(r.stderr, err), f"exit {r.returncode}\n{r.stdout}{r.stderr}")
        return r.stdout

    def newer(self, line, name=None):
        """The same as Debian's, unless that is as old as the one of Debian 12."""
        if self.minor is None:
            there = peers.find("kubectl", "kubernetes-client")
            self.minor = int(re.search(r'"minor": "(\d+)', self.plane.kubectl("version", "--client", "-o", "json").stdout)[1]) if there else 0
        if self.minor < 26:
            self.t.skip(f"as Debian's: {name or line}", f"its kubectl is 1.{self.minor}" if self.minor else "it cannot be had")
        else:
            self.agrees(line, name)

    def agrees(self, line, name=None):
        """Debian's kubectl prints the same; ages may have become a second older."""
        def young(text):
            return re.sub(r"\b\d+m?\d*s\b *", "0s", text)
        args = line.split() if isinstance(line, str) else line
        name = f"as Debian's: {name or ' '.join(args)}".replace("\n", " ")
        if not peers.find("kubectl", "kubernetes-client"):
            self.t.skip(name, "kubectl of Debian's package kubernetes-client cannot be had")
            return
        a, b = self.run(args), self.plane.kubectl(*args, check=False)
        self.t.check(name, (a.returncode, young(a.stdout), young(a.stderr)) == (b.returncode, young(b.stdout), young(b.stderr)),
                     f"ours:\n{a.stdout}{a.stderr}\nDebian's:\n{b.stdout}{b.stderr}")


class Script(http.server.BaseHTTPRequestHandler):
    """A server of an older version that has one config map, and whose watches end soon: in good order, with an error, in the middle of an event."""
    protocol_version = "HTTP/1.1"
    ends = "well"
    VERSION = {"major": "1", "minor": "33", "gitVersion": "v1.33.1", "gitCommit": "abc", "gitTreeState": "clean", "buildDate": "2025-01-01T00:00:00Z",
               "goVersion": "go1.24", "compiler": "gc", "platform": "linux/amd64"}
    MAP = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "m", "namespace": "default", "resourceVersion": "5", "creationTimestamp": "2025-01-01T00:00:00Z"}}
    MAPS = {"name": "configmaps", "singularName": "configmap", "namespaced": True, "kind": "ConfigMap", "verbs": ["get", "list", "watch"], "shortNames": ["cm"]}
    TOO_OLD = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "too old resource version: 5 (9)", "reason": "Expired", "code": 410}
    ANSWERS = {"/version": VERSION, "/api": {"kind": "APIVersions", "versions": ["v1"]}, "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
               "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": [MAPS]},
               "/api/v1/namespaces/default/configmaps": {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "5"}, "items": [MAP]}}

    def answer(self, code, body, *headers):
        self.send_response(code)
        for name, value in (("Content-Type", "application/json"), *headers):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        path, _, query = self.path.partition("?")
        if "watch=" in query:
            events = [{"type": "ADDED", "object": self.MAP}] + [{"type": "ERROR", "object": self.TOO_OLD}] * (self.ends == "error")
            body = "".join(json.dumps(e) + "\n" for e in events).encode() + b'{"type":"ADD' * (self.ends == "cut")
            self.answer(200, b"%x\r\n%s\r\n" % (len(body), body) + b"0\r\n\r\n" * (self.ends != "cut"), ("Transfer-Encoding", "chunked"))
            self.close_connection = self.ends == "cut"
            return
        body = json.dumps(self.ANSWERS.get(path, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404})).encode()
        self.answer(200 if path in self.ANSWERS else 404, body, ("Content-Length", str(len(body))))

    def log_message(self, *args):
        pass


def no_server(o):
    o.says("nosuch", err='error: unknown command "nosuch" for "kubectl"\n', code=1)
    o.says("get pods --nope", err="error: unknown flag: --nope\nSee 'kubectl get --help' for usage.\n", code=1)
    o.says("apply", err="error: must specify one of -f and -k\n", code=1)
    o.says("run p", err='error: required flag(s) "image" not set\n', code=1)
    o.says("get pods -o nosuch", code=1, err=re.compile('error: unable to match a printer suitable for the output format "nosuch", allowed .*\n'))
    o.says("get pods --server=https://127.0.0.1:1", code=1,
           err="The connection to the server 127.0.0.1:1 was refused - did you specify the right host or port?\n")
    o.says("get pods --context=nope", code=1, err="Error in configuration: context was not found for specified context: nope\n")
    o.says("config current-context", "kubernetes-admin@kubernetes\n")
    o.says("create deployment d --image=nginx --dry-run=client -o yaml", """apiVersion: apps/v1
kind: Deployment
metadata:
  labels:
    app: d
  name: d
spec:
  replicas: 1
  selector:
    matchLabels:
      app: d
  strategy: {}
  template:
    metadata:
      labels:
        app: d
    spec:
      containers:
      - image: nginx
        name: nginx
        resources: {}
status: {}
""")
    listed = re.findall(r"^  ([a-z-]+) {2,}\S", o.run("--help").stdout, re.M)
    for command in ("get", "describe", "rollout", "apply"):
        r = o.run(f"{command} --help")
        o.t.check(f"{command} is listed and has a manual", command in listed and r.returncode == 0 and f"Usage:\n  kubectl {command}" in r.stdout, r.stdout)
    r = subprocess.run([C8S, "kubectl", "version", "--client"], capture_output=True, text=True, timeout=60)
    o.t.check("c8s kubectl is the same program", r.stdout == o.run("version --client").stdout and "Client Version: v1.36" in r.stdout, r)


def deployments(o):
    o.says("create namespace own", "namespace/own created\n")
    o.says("create namespace own", code=1, err='Error from server (AlreadyExists): namespaces "own" already exists\n')
    o.says("create deployment web --image=nginx --replicas=2", "deployment.apps/web created\n")
    o.says("rollout status deployment/web --timeout=30s", re.compile(r'(Waiting for deployment .*\n)*deployment "web" successfully rolled out\n'))
    o.says("scale deployment web --replicas=3", "deployment.apps/web scaled\n")
    o.says("wait --for=jsonpath={.status.readyReplicas}=3 deployment/web --timeout=30s", "deployment.apps/web condition met\n")
    o.says("wait --for=condition=Nope deployment/web --timeout=1s", code=1, err="error: timed out waiting for the condition on deployments/web\n")
    o.says("annotate deployment web kubernetes.io/change-cause=first", "deployment.apps/web annotated\n")
    o.says(["patch", "deployment", "web", "-p", '{"spec":{"template":{"spec":{"containers":[{"name":"nginx","image":"nginx:2"}]}}}}'],
           "deployment.apps/web patched\n")
    wait_until(lambda: "2         first" in o.run("rollout history deployment/web").stdout, 20, "a second revision")
    o.says("rollout history deployment/web", "deployment.apps/web \nREVISION  CHANGE-CAUSE\n1         first\n2         first\n\n")
    o.says("rollout undo deployment/web --to-revision=7", code=1, err="error: unable to find specified revision 7 in history\n")
    o.says("rollout undo deployment/web", "deployment.apps/web rolled back\n")
    o.says("rollout pause deployment/web", "deployment.apps/web paused\n")
    o.says("rollout pause deployment/web", code=1, err='error: deployments.apps "web" is already paused\n')
    o.says("rollout resume deployment/web", "deployment.apps/web resumed\n")
    o.says("rollout restart deployment/web", "deployment.apps/web restarted\n")
    out = o.run("describe deployment web").stdout
    o.t.check("describe deployment", re.search(r"^Replicas: +3 desired \| \d updated", out, re.M) and "Pod Template:\n  Labels:" in out and
              "ScalingReplicaSet" in out, out)


def apply(o):
    o.says("apply -f -", "configmap/ap created\n", stdin=CONFIG % 1)
    o.says("apply -f -", "configmap/ap unchanged\n", stdin=CONFIG % 1, name="apply the same")
    o.says("apply -f - --dry-run=client", "configmap/ap configured (dry run)\n", stdin=CONFIG % 2)
    o.says("apply -f - --dry-run=server", "configmap/ap configured (server dry run)\n", stdin=CONFIG % 2)
    o.says("apply -f -", "configmap/ap configured\n", stdin=CONFIG % 2, name="apply a change")
    last = '{"apiVersion":"v1","data":{"a":"2"},"kind":"ConfigMap","metadata":{"annotations":{},"name":"ap","namespace":"default"}}\n'
    o.says(["get", "cm", "ap", "-o", r"jsonpath={.metadata.annotations.kubectl\.kubernetes\.io/last-applied-configuration}"], last, name="what was applied")
    o.says("apply -f - --server-side --field-manager=other", code=1, stdin=CONFIG % 5,
           err=re.compile(r'error: Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using v1: \.data\.a\nPlease review(.|\n)*'))
    o.says("apply -f - --server-side --field-manager=other --force-conflicts", "configmap/ap serverside-applied\n", stdin=CONFIG % 5)
    o.says("apply -f -", code=1, stdin="apiVersion: v1\nkind: Nope\nmetadata: {name: x}\n", name="apply an unknown kind",
           err='error: resource mapping not found for name: "x" namespace: "" from "STDIN": no matches for kind "Nope" in version "v1"\n'
               "ensure CRDs are installed first\n")
    o.says("apply -f -", code=1, stdin="apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: []}\n", name="apply an invalid pod",
           err='The Pod "x" is invalid: spec.containers: Required value\n')
    o.says("apply -f -", code=1, stdin=CONFIG.replace("name: ap", "name: new") % 1 + "nosuch: 1\n", name="apply an unknown field",
           err=re.compile(r'Error from server \(BadRequest\): .*strict decoding error: unknown field "nosuch"\n'))
    o.says("create -f -", "pod/solo created\n", stdin=POD)
    o.says("apply -f -", "pod/solo configured\n", stdin=POD.replace("one", "two"), name="apply what was created",
           err=re.compile("Warning: resource pods/solo is missing the .*last-applied-configuration annotation.*\n"))


def objects(o):
    o.says("label pod solo a=b", "pod/solo labeled\n")
    o.says("label pod solo a=c", code=1, err="error: 'a' already has a value (b), and --overwrite is false\n")
    o.says("label pod solo a-", "pod/solo unlabeled\n")
    o.says(["patch", "cm", "ap", "-p", '{"data":{"k":"v"}}'], "configmap/ap patched\n")
    o.says(["patch", "cm", "ap", "-p", '{"data":{"k":"v"}}'], "configmap/ap patched (no change)\n", name="patch the same")
    o.says("edit cm ap", "configmap/ap edited\n", KUBE_EDITOR="sed -i s/k:.v/k:\\ w/")
    o.says(["get", "cm", "ap", "-o", "jsonpath={.data.k}"], "w", name="what was edited")
    o.says("edit cm ap", err="Edit cancelled, no changes made.\n", KUBE_EDITOR="true", name="edit nothing")
    o.says("logs solo -c nope", code=1, err="error: container nope is not valid for pod solo out of: main, side\n")
    o.says("exec nope -- true", code=1, err='Error from server (NotFound): pods "nope" not found\n')
    o.says("get pods nope solo -o name", "pod/solo\n", err='Error from server (NotFound): pods "nope" not found\n', code=1)
    o.says("get nosuch", err='error: the server doesn\'t have a resource type "nosuch"\n', code=1)
    o.says("get pods -l app=none", err="No resources found in default namespace.\n")
    o.says("create token default --duration=10m", re.compile(r"[\w-]+\.[\w-]+\.[\w-]+\n"))
    o.says("run p --image=nginx --port=80 --dry-run=server", "pod/p created (server dry run)\n")
    o.says("delete cm ap --dry-run=client", 'configmap "ap" deleted from default namespace (dry run)\n')
    o.says("delete -f -", 'configmap "ap" deleted from default namespace\n', stdin=CONFIG % 1)
    o.says("delete cm ap", code=1, err='Error from server (NotFound): configmaps "ap" not found\n')
    o.says("delete pods -l app=none", "No resources found\n")


def sorts():
    """Fields that some or all lack, numbers, quantities, other texts, and what cannot be sorted."""
    maps = [f"get cm -l sort=1 -o name --sort-by={field}" for field in (".data.v", ".data.w", ".metadata.annotations.n", "{.metadata.name}", ".nope", ".data[")]
    return maps + ["get cm -l sort=1 --sort-by=.immutable", "get cm -l sort=1 --sort-by=.nope", "get cm s1 --sort-by=.nope",
                   "get pods -l sort=1 --sort-by=.spec.activeDeadlineSeconds", "get pods -l sort=1 -o name --sort-by=.spec.containers[0].resources.requests.memory"]


def raws():
    return [["get", "--raw", path] for path in ("nope", "/nope", "/%zz", "/a b", "https://nowhere.example/healthz", "/api/v1/namespaces/default/pods/nope")]


def permissions():
    return ["auth can-i " + line for line in (
        "get pods/x --as=jane", "get pods --as=jane", "get pods/x --as=jane --subresource=log", "watch pods -q --as=jane", "get pods/y -q --as=jane", "get /logs/x --as=jane",
        "post /logs/x --as=jane", "/logs", "get", "get pods x y", "--list --as=jane --no-headers", "--list -q", "get nodes --as=jane")]


def make_sorted(o):
    """What these are about."""
    def config(name, rest):
        return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, labels: {{sort: '1'}}%s}}\n{rest}\n---\n"

    def pod(name, resources, rest=""):
        return (f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, labels: {{sort: '1'}}}}\n"
                f"spec: {{containers: [{{name: c, image: i, resources: {{requests: {resources}}}}}]{rest}}}\n---\n")
    text = (config("s1", "data: {v: '2'}") % ", annotations: {n: '10'}" + config("s2", "") % ", annotations: {n: '9'}" + config("s3", "data: {v: '10'}") % "" +
            config("s4", "data: {v: 1Ki}") % "" + config("s5", "immutable: true\ndata: {v: abc, w: '1'}") % "")
    text += pod("p1", "{memory: 1Gi}") + pod("p2", "{memory: 200Mi}", ", activeDeadlineSeconds: 10000") + pod("p3", "{}", ", activeDeadlineSeconds: 9000") + pod("p4", "{}")
    made = [o.run("create -f -", stdin=text), o.run("wait --for=condition=Ready pod -l sort=1 --timeout=30s")]
    for line in ("role jane --verb=get --resource=pods,pods/log --resource-name=x", "rolebinding jane --role=jane --user=jane",
                 "clusterrole jane --verb=get --non-resource-url=/logs/*", "clusterrolebinding jane --clusterrole=jane --user=jane"):
        made.append(o.run("create " + line))
    o.t.check("what is sorted and asked about is there", all(r.returncode == 0 for r in made), "".join(r.stderr for r in made))


def same_as_debian(o):
    # Debian 12's own shows managed fields and resources without categories, and warns on fewer lines.
    for line in ("get ns -o json", "get svc kubernetes -o yaml", "api-resources --api-group=apps -o wide", "cluster-info", "auth can-i get nodes",
                 "auth can-i get nosuch.x", *sorts(), *raws(), *permissions(), "cluster-info dump -o name"):
        o.newer(line)
    o.says("get cm -l sort=1 --sort-by=.data", code=1,
           err="error: Field {.data} in [][][]reflect.Value is an unsortable type: interface, err: unsortable type: map[string]interface {}\n")
    for line in ("get nodes", "get nodes -o wide", "get pods -o wide", "get pods -A", "get deploy,rs,svc", "get pods --show-labels", "get pods -L tier,app",
                 "get pods --no-headers", "get pods -o name", "get ns --sort-by=.metadata.name",
                 "get pods -o custom-columns=NAME:.metadata.name,NODE:.spec.nodeName,X:.spec.nope", "get pods -o jsonpath={.items[*].metadata.name}",
                 "get pod solo -o jsonpath-as-json={.metadata.labels}", "get pods --field-selector=metadata.name=solo", "get events -n nope",
                 "get pod solo -o jsonpath={.spec.nope.nope}", "get --raw /healthz", "config get-contexts", "describe secret -n kube-system",
                 "describe pod nope", "api-versions", "auth can-i create pods", "auth can-i list deploy -A --as=joe", "auth can-i get /healthz --as=joe", "auth can-i get pods/x -q --as=joe", "auth can-i --list --as=joe",
                 "create cm x --from-literal=b=1 --from-literal=a=<2> --append-hash --dry-run=client -o name",
                 "create secret generic x --append-hash --dry-run=client -o name"):
        o.agrees(line)


def ends_of_watches(o):
    """That a watch ends is no failure, whoever ended it; and versions that are far apart are told of."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Script)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    flag = f"--server=http://127.0.0.1:{server.server_address[1]}"
    for Script.ends in ("well", "error", "cut"):
        told = r"\nEVENT +STATUS +REASON +MESSAGE\nERROR +Failure +Expired +too old resource version: 5 \(9\)\n" if Script.ends == "error" else ""
        o.says(f"get cm -w --output-watch-events {flag}", re.compile(r"EVENT +NAME +AGE\n(ADDED +m +\S+\n){2}" + told), name=f"a watch that ends: {Script.ends}")
        for line in ("get cm -w --output-watch-events", "get cm -w --watch-only -o name"):
            o.newer(f"{line} {flag}", f"{line} that ends: {Script.ends}")
    skew = "version difference between client (1.36) and server (1.33) exceeds the supported minor version skew of +/-1\n"
    o.says(f"version {flag}", re.compile(r"Client Version: v1\.36.*\nKustomize Version: .*\nServer Version: v1\.33\.1\n"), err="Warning: " + skew, name="version of an older server")
    o.says(f"version --warnings-as-errors {flag}", re.compile("(.*\n){3}"), err="error: " + skew, code=1, name="version --warnings-as-errors of an older server")
    o.says(f"get cm --match-server-version {flag}", code=1, name="an older server does not match", err=re.compile(
        r'error: server version \(&version.Info{Major:"1", Minor:"33", .*GitVersion:"v1.33.1", .*}\) differs from client version \(version.Info{.*GitVersion:"v1.36.*}\)\n'))
    r = o.run(f"get cm m m --match-server-version {flag}")
    o.t.check("nor does anything that comes after the first request", r.returncode == 1 and r.stdout == "" and "NotFound" not in r.stderr, r.stdout + r.stderr)
    server.shutdown()
    server.server_close()
    o.says("get ns default -o name --match-server-version", "namespace/default\n")
    begin = time.monotonic()
    o.says("get cm -l sort=none -w --request-timeout=3s", name="a watch takes no longer than --request-timeout")
    o.t.check("but as long", 2.9 < time.monotonic() - begin < 30)


def why(o):
    """c8s why asks the scheduler, as the user of the kubeconfig."""
    config = os.path.join(o.plane.folder, "alice.conf")
    with open(config, "w", encoding="utf-8") as f:
        json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "x", "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                   "clusters": [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{o.plane.port}", "insecure-skip-tls-verify": True}}],
                   "users": [{"name": "u", "user": {"token": "alice-token"}}]}, f)
    ours = f"https://127.0.0.1:{o.scheduler_port}"

    def asks(name, args, code, out="", err="", who=o.plane.kubeconfig, scheduler=ours):
        r = subprocess.run([C8S, "why", "--kubeconfig", who, "--scheduler", scheduler, *args], capture_output=True, text=True, timeout=60)
        o.t.check("why: " + name, r.returncode == code and re.fullmatch(out, r.stdout) and re.fullmatch(err, r.stderr), f"exit {r.returncode}\n{r.stdout}{r.stderr}")
    o.run("create -f -", stdin=POD.replace("solo", "homeless").replace("spec: {", "spec: {nodeSelector: {no: where}, "))
    asks("a pod that has a node", ["pod/solo"], 0, r"default/solo: 2/2 nodes fit\nIt is bound to hollow-\d\.\n(  hollow-\d +\d+ .*=\d+.*\n){2}")
    asks("a pod that fits nowhere", ["homeless"], 0,
         r"default/homeless: 0/2 nodes are available: .*\n(  hollow-\d +no +NodeAffinity: node\(s\) didn't match Pod's node affinity/selector\n){2}")
    asks("in JSON", ["-o", "json", "homeless"], 0, r'\{\n  "pod": "default/homeless",\n(.*\n)*\}\n')
    asks("a pod that is not there", ["nope"], 1, err='c8s why: the scheduler answers 404: pods "nope" not found\n')
    asks("a namespace that is not there", ["-n", "nope", "solo"], 1, err='c8s why: the scheduler answers 404: pods "solo" not found\n')
    asks("a name that is none", ["a b/c"], 1, err="c8s why: the scheduler answers 400: invalid resource name .*\n")
    asks("without permission", ["solo"], 1, err='c8s why: the scheduler answers 403: forbidden: User "alice" cannot get path "/why/default/solo"\n', who=config)
    asks("a token is not shown to others", ["solo"], 1, err="c8s why: .* has a token, which is not shown to https://10.0.0.1:1: .*\n", who=config, scheduler="https://10.0.0.1:1")
    asks("nobody is there", ["solo"], 1, err="c8s why: .*connect: connection refused\n", scheduler="https://127.0.0.1:1")
    asks("no pod", [], 2, err="c8s why: name a pod\nSee 'c8s why --help'.\n")
    asks("two pods", ["a", "b"], 2, err="c8s why: one pod at a time\nSee 'c8s why --help'.\n")
    o.run("delete pod homeless --now --wait=false")


def dumps(o):
    folder = os.path.join(o.plane.folder, "dump")
    o.says(f"cluster-info dump --output-directory={folder} -o yaml", f"Cluster info dumped to {folder}\n")
    files = {os.path.relpath(os.path.join(at, f), folder) for at, _, names in os.walk(folder) for f in names}
    o.t.check("a dump has the objects and the logs", {"nodes.yaml", "kube-system/events.yaml", "default/pods.yaml", "default/solo/logs.txt"} <= files, files)
    with open(os.path.join(folder, "default/solo/logs.txt"), encoding="utf-8") as f:
        o.t.check("the logs of every container", re.findall("START logs for container (\\w+) of pod default/solo", f.read()) == ["main", "side"])
    o.says("auth whoami", re.compile(r"ATTRIBUTE +VALUE\nUsername +kubernetes-admin\nGroups +\[.*system:authenticated\]\n(Extra: .*\n)*"))


def templates(o):
    """Go's templates: what they print, and how they fail."""
    o.run("create secret generic tpl --from-literal=k=hello")
    for template in ('{{range .items}}{{.metadata.name}} {{.status.phase}}{{"\\n"}}{{end}}', "{{len .items}}{{index .items 0}}", "{{(index .items 0).nope.nope}}"):
        o.agrees(["get", "ns", "-o", "go-template=" + template])
    for template in ('{{.data.k | base64decode | printf "%-8s|"}}{{if exists .data "x"}}x{{else}}-{{end}}', "{{.type}} {{.nope}}", "{{.data.k.x}}", "{{.data.k", "{{nope}}"):
        o.agrees(["get", "secret", "tpl", "--template", template])
    o.agrees("get secret tpl -o go-template={{.nope}} --allow-missing-template-keys=false")
    o.agrees("get secret tpl -o go-template-file=/nonexistent")
    o.agrees("get secret tpl -o go-template")
    o.says(["create", "cm", "t", "--from-literal=a=b", "--dry-run=client", "-o", "go-template={{.metadata.name}}:{{.data.a}}"], "t:b", name="create by a template")
    o.run("delete secret tpl")


def last_applied(o):
    one = CONFIG.replace("name: ap", "name: last\n  labels: {p: '1'}") % 1
    kept = '{"apiVersion":"v1","data":{"a":"1"},"kind":"ConfigMap","metadata":{"labels":{"p":"%s"},"name":"last","namespace":"default"}}'
    o.says("create -f -", "configmap/last created\n", stdin=one)
    o.says("apply view-last-applied cm/last")
    o.says("apply set-last-applied -f -", code=1, stdin=one, err="error: no last-applied-configuration annotation found on resource: last, to create the "
           "annotation, run the command with --create-annotation\n")
    o.says("apply set-last-applied -f - --create-annotation", "configmap/last configured\n", stdin=one)
    o.says("apply set-last-applied -f -", "set-last-applied last: no changes required.\n", stdin=one)
    o.says("apply edit-last-applied cm last", "configmap/last edited\n", KUBE_EDITOR="sed -i s/p:.*1.*/p:\\ x/")
    o.says(["get", "cm", "last", "-o", r"jsonpath={.metadata.annotations.kubectl\.kubernetes\.io/last-applied-configuration}"], kept % "x" + "\n", name="what was kept")
    o.says("apply view-last-applied cm last -o yaml", "apiVersion: v1\ndata:\n  a: \"1\"\nkind: ConfigMap\nmetadata:\n  labels:\n    p: x\n  name: last\n  namespace: default\n")
    o.says("delete cm last", 'configmap "last" deleted from default namespace\n')
    file = os.path.join(o.plane.folder, "last.yaml")
    with open(file, "w", encoding="utf-8") as f:
        f.write(one)
    o.says(["create", "-f", file, "--edit"], "configmap/last created\n", KUBE_EDITOR="sed -i s/^..a:.*/\\ \\ b:\\ c/", name="create --edit")
    o.says("get cm last -o jsonpath={.data}", '{"b":"c"}')
    o.says(["create", "-f", file, "--edit"], err="Edit cancelled, no changes made.\n", KUBE_EDITOR="true", name="create --edit, and nothing changed")
    o.says("delete cm last", 'configmap "last" deleted from default namespace\n', name="delete it again")
    o.says("create -f - --save-config", "configmap/last created\n", stdin=one)
    o.says("apply view-last-applied cm last -o json", re.compile(r'\{\n  "apiVersion": "v1",\n(.|\n)*"annotations": \{\},(.|\n)*\}\n'))
    o.says("create --raw /api/v1/namespaces/default/configmaps?dryRun=All -f -", re.compile(r'\{"kind":"ConfigMap","apiVersion":"v1",.*"name":"raw".*\}\n'),
           stdin='{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"raw"}}')
    o.says("create --raw /a -f - --edit", code=1, err="error: --raw and --edit are mutually exclusive\n")


def prune(o):
    both = CONFIG.replace("name: ap", "name: keep\n  labels: {p: '1'}") % 1
    both += "---\n" + both.replace("keep", "drop")
    keep = both.split("---\n")[0]
    o.says("apply -f -", "configmap/keep created\nconfigmap/drop created\n", stdin=both, name="apply both")
    o.says("apply -f - --prune", code=1, stdin=keep, err=re.compile("error: all resources selected for prune without explicitly passing --all. .*\n"))
    o.says("apply -f - --prune -l p=1 --prune-allowlist=apps/v1/Deployment", "configmap/keep unchanged\n", stdin=keep)
    o.says("apply -f - --prune -l p=1 --prune-allowlist=ConfigMap", code=1, stdin=keep,
           err="error: invalid GroupVersionKind format: ConfigMap, please follow <group/version/kind>\n")
    pruned = "configmap/keep unchanged%s\nconfigmap/drop pruned%s\nconfigmap/last pruned%s\n"
    warned = re.compile("Warning: Deprecated: kubectl apply will no longer prune .*\nWarning: v1 Endpoints is deprecated .*\n")
    o.says("apply -f - --prune -l p=1 --dry-run=server", re.compile(".*\n(.*pruned .server dry run.\n){2}"), stdin=keep, err=warned)
    out = o.says("apply -f - --prune -l p=1", re.compile(".*\n(.*pruned\n){2}"), stdin=keep, err=warned, name="apply --prune")
    o.t.check("what is in no file any more is pruned", sorted(out.split("\n")) == sorted((pruned % ("", "", "")).split("\n")), out)
    o.says("get cm -l p=1 -o name", "configmap/keep\n")
    o.says("apply -f - --prune --all --prune-allowlist=core/v1/ConfigMap -n kube-public", re.compile("configmap/keep (created|unchanged)\n"), stdin=keep)


def migrates(o):
    """Fields that the client's way has set are removed by the server's, once it is used."""
    text = CONFIG.replace("name: ap", "name: mig")
    o.says("apply -f -", "configmap/mig created\n", stdin=text % 1, name="apply by the client")
    o.says("apply --server-side -f -", "configmap/mig serverside-applied\n", stdin=text.replace("  a:", "  b:") % 1)
    managers = ["get", "cm", "mig", "-o", "jsonpath={.data} {.metadata.managedFields[*].manager} {.metadata.managedFields[*].operation}", "--show-managed-fields"]
    o.says(managers, re.compile(r'\{"b":"1"\} (kubectl kubectl-last-applied|kubectl-last-applied kubectl) Apply Apply'), name="what remains are appliers")
    last = o.run(["apply", "view-last-applied", "cm", "mig"]).stdout
    o.t.check("the annotation stays and is brought up to date", '\n  b: "1"' in last and "\n  a:" not in last, last)


def watches(o):
    watch = subprocess.Popen([KUBECTL, "--kubeconfig", o.plane.kubeconfig, "get", "cm", "-w", "--output-watch-events", "-l", "w=1"],
                             stdout=subprocess.PIPE, text=True)
    time.sleep(0.3)
    o.run("apply -f -", stdin=CONFIG.replace("name: ap", "name: seen\n  labels: {w: '1'}") % 1)
    lines = [watch.stdout.readline() for _ in range(2)]
    o.run("delete cm seen")
    lines.append(watch.stdout.readline())
    watch.kill()
    watch.wait()
    o.t.check("get --watch shows what happens", [x.split()[:2] for x in lines] == [["EVENT", "NAME"], ["ADDED", "seen"], ["DELETED", "seen"]], lines)


def deletes(o):
    begin = time.monotonic()
    o.says("delete deployment web", 'deployment.apps "web" deleted from default namespace\n')
    o.says("delete pod solo --now", 'pod "solo" deleted from default namespace\n')
    o.t.check("delete waits until it is gone", o.run("get pod solo").returncode == 1)
    o.says("delete ns own", 'namespace "own" deleted\n')
    o.t.check("and not much longer", time.monotonic() - begin < 30)


def test_kubectl(t):
    port = free_port()
    with Folder() as folder, ControlPlane(folder, "--scheduler-secure-port", str(port)) as plane:
        nodes = Component(plane, "hollow", "--nodes", "2").start()
        o = Ours(t, plane, port)
        no_server(o)
        wait_until(lambda: o.run("get nodes --no-headers").stdout.count(" Ready ") == 2, 30, "two nodes")
        for step in (deployments, apply, objects, make_sorted, same_as_debian, dumps, templates, last_applied, prune, migrates, watches, ends_of_watches, why,
                     deletes):
            step(o)
        nodes.kill()


if __name__ == "__main__":
    tap.run([test_kubectl])
