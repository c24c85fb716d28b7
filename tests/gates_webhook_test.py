#!/usr/bin/env python3
"""Admission webhooks as their authors and users meet them, good ones and bad ones. Needs C8S, the program to test."""
import base64
import http.server
import json
import os
import ssl
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster  # noqa: E402
import peers  # noqa: E402
import tap  # noqa: E402

NS = "/api/v1/namespaces/t"
GROUP = "/apis/admissionregistration.k8s.io/v1"
HUGE = 32 << 20


def encoded(operations):
    return base64.b64encode(json.dumps(operations).encode()).decode()


def patch(*operations):
    return {"allowed": True, "patchType": "JSONPatch", "patch": encoded(operations)}


class Hooks:
    """A TLS server; answers is a map from path to a function of the request that a webhook is asked about, which returns the
    response of a review, or (status, body, headers) as they are. Everything that was asked is in seen, and who asked, by
    certificate, in callers. clients: the authority of a certificate that those who ask must have."""

    def __init__(self, folder, clients=None):
        self.folder, self.answers, self.seen, self.reviews, self.callers = folder, {}, [], [], []
        self.cert, key = os.path.join(folder, "hook.crt"), os.path.join(folder, "hook.key")
        subprocess.run([peers.find("openssl", "openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                        "-nodes", "-days", "2", "-subj", "/CN=hooks", "-keyout", key, "-out", self.cert, "-addext",
                        "subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:hooks.t.svc"], check=True, capture_output=True)
        hooks = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                hooks.handle(self)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.cert, key)
        if clients:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(clients)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def handle(self, h):
        review = json.loads(h.rfile.read(int(h.headers["content-length"])))
        path, _, query = h.path.partition("?")
        request = review.get("request") or review.get("spec")
        self.seen.append((path, query, request, dict(h.headers)))
        self.reviews.append(review)
        subject = (h.connection.getpeercert() or {}).get("subject", ())
        self.callers.append(next((v for rdn in subject for k, v in rdn if k == "commonName"), ""))
        answer = self.answers[path](request)
        status, body, headers = answer if isinstance(answer, tuple) else (200, self.review(review, answer), {})
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        try:
            h.send_response(status)
            for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
                h.send_header(name, value)
            h.end_headers()
            h.wfile.write(body)
        except OSError:
            pass  # who asked has lost patience

    @staticmethod
    def review(review, response):
        return {"apiVersion": review["apiVersion"], "kind": review["kind"],
                "response": {"uid": review["request"]["uid"], **response}}

    def asked(self, path):
        return [request for p, _, request, _ in self.seen if p == path]

    @property
    def authority(self):
        with open(self.cert, "rb") as f:
            return base64.b64encode(f.read()).decode()


class World:
    """A server and its webhooks; each test makes configurations of its own and removes them."""

    def __init__(self, folder):
        self.hooks = Hooks(folder)
        self.server = cluster.Server(folder, "--allow-privileged").start()
        self.made = []
        self.post("/api/v1/namespaces", "Namespace", "t", meta={"labels": {"team": "a"}})
        self.post("/api/v1/namespaces", "Namespace", "u")
        self.post(NS + "/serviceaccounts", "ServiceAccount", "default")

    def post(self, path, kind, name, version="v1", meta=None, query="", **more):
        body = {"apiVersion": version, "kind": kind, "metadata": {"name": name, **(meta or {})}, **more}
        return self.server.request("POST", path + query, body)

    def map(self, name, ns=NS, query="", labels=None, **data):
        return self.post(ns + "/configmaps", "ConfigMap", name, meta={"labels": labels or {}}, query=query, data=data)

    def hook(self, name, answer, mutating=False, rules=None, configuration=None, **more):
        """One webhook in one configuration, with an answer under a path of its own."""
        path = "/" + name
        self.hooks.answers[path] = answer
        spec = {"name": name + ".example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
                "clientConfig": {"url": f"https://127.0.0.1:{self.hooks.port}{path}", "caBundle": self.hooks.authority},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"],
                           **(rules or {})}], **more}
        kind = "MutatingWebhookConfiguration" if mutating else "ValidatingWebhookConfiguration"
        where = f"{GROUP}/{kind.lower()}s"
        made = self.post(where, kind, configuration or name, "admissionregistration.k8s.io/v1", webhooks=[spec])
        if made.status != 201:
            raise RuntimeError(made)
        self.made.append(f"{where}/{configuration or name}")
        return path

    def clear(self):
        for path in self.made:
            self.server.request("DELETE", path)
        self.made, self.hooks.seen, self.hooks.reviews = [], [], []


WORLD = None


def test(function):
    """A test with a clean world."""
    def run(t):
        WORLD.clear()
        function(t, WORLD)
        WORLD.clear()
    run.__name__ = function.__name__
    return run


def message(answer):
    return answer.json.get("message")


def same(t, name, got, want):
    t.check(name, got == want, f"{got!r}\nwanted: {want!r}")


@test
def refusals(t, w):
    answers = iter([
        ({"allowed": False}, 400, None, "without explanation"),
        ({"allowed": False, "status": {"message": "no maps today"}}, 400, None, ": no maps today"),
        ({"allowed": False, "status": {"reason": "Forbidden"}}, 400, "Forbidden", ": Forbidden"),
        ({"allowed": False, "status": {"code": 418, "reason": "Teapot", "message": "short", "details": {"name": "x"}}}, 418, "Teapot",
         ": short"),
        ({"allowed": False, "status": {"code": 200, "status": "Success", "message": "m"}}, 400, None, ": m"),
        ({"allowed": False, "status": {"code": 100000, "message": "m"}}, 500, None, ": m"),
    ])
    now = {}
    w.hook("no", lambda _: now["answer"])
    for answer, code, reason, text in answers:
        now["answer"] = answer
        r = w.map("a")
        text = f'admission webhook "no.example.com" denied the request{"" if text[0] == ":" else " "}{text}'
        same(t, f"refused with {answer.get('status')}", (r.status, r.json["code"], r.json.get("reason"), message(r), r.json["status"]),
             (code, code, reason, text, "Failure"))
    now["answer"] = {"allowed": False, "status": {"message": "by the book", "code": 403}}
    r = w.server.kubectl("create", "configmap", "x", "-n", "t", check=False)
    same(t, "kubectl shows why", r.stderr,
         'error: failed to create configmap: admission webhook "no.example.com" denied the request: by the book\n')
    now["answer"] = {"allowed": True, "warnings": ["mind the gap", "mind the gap", 'a "quoted" one']}
    r = w.map("warned")
    same(t, "warnings reach the client", (r.status, r.headers.get_all("Warning")),
         (201, ['299 - "mind the gap"', '299 - "a \\"quoted\\" one"']))
    now["answer"] = {"allowed": False}
    same(t, "removals can be refused", w.server.request("DELETE", NS + "/configmaps/warned").status, 400)
    same(t, "and collections, too", w.server.request("DELETE", NS + "/configmaps").status, 400)
    same(t, "who configures webhooks is not refused", w.hook("other", lambda _: {"allowed": True}), "/other")


@test
def questions(t, w):
    w.hook("q", lambda _: {"allowed": True}, rules={"resources": ["configmaps", "pods/*", "pods", "deployments/*", "namespaces"],
                                                    "apiGroups": ["", "apps"]})
    w.map("q1", query="?fieldManager=me&fieldValidation=Strict", k="v")
    _, query, q, _ = w.hooks.seen[-1]
    q["uid"] = "u"
    q["object"]["metadata"].pop("managedFields")
    uid = q["object"]["metadata"].pop("uid")
    q["object"]["metadata"].pop("creationTimestamp")
    kind, resource = {"group": "", "version": "v1", "kind": "ConfigMap"}, {"group": "", "version": "v1", "resource": "configmaps"}
    same(t, "a create", q, {
        "uid": "u", "kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource, "name": "q1",
        "namespace": "t", "operation": "CREATE",
        "userInfo": {"username": "admin", "uid": "admin", "groups": ["system:masters", "system:authenticated"]},
        "object": {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "q1", "namespace": "t"}, "data": {"k": "v"}},
        "oldObject": None, "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "me", "fieldValidation": "Strict"}})
    same(t, "the time it has is told", query, "timeout=10s")
    same(t, "it is a v1 review", (w.hooks.reviews[-1]["kind"], w.hooks.reviews[-1]["apiVersion"]),
         ("AdmissionReview", "admission.k8s.io/v1"))
    w.server.request("PATCH", NS + "/configmaps/q1?dryRun=All", {"data": {"k": "w"}})
    q = w.hooks.seen[-1][2]
    same(t, "an update", (q["operation"], q["object"]["data"], q["oldObject"]["data"], q["dryRun"], q["options"], q["oldObject"]["kind"]),
         ("UPDATE", {"k": "w"}, {"k": "v"}, True, {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"]}, "ConfigMap"))
    w.server.request("DELETE", NS + "/configmaps/q1", {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 3})
    q = w.hooks.seen[-1][2]
    same(t, "a removal", (q["operation"], q["name"], q["object"], q["oldObject"]["metadata"]["uid"], q["options"]),
         ("DELETE", "q1", None, uid, {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", "gracePeriodSeconds": 3}))
    w.post("/api/v1/namespaces", "Namespace", "made")
    q = w.hooks.seen[-1][2]
    same(t, "a namespace is in itself", (q["name"], q["namespace"]), ("made", "made"))


@test
def subresources(t, w):
    spec = {"containers": [{"name": "c", "image": "x"}], "automountServiceAccountToken": False}
    w.post(NS + "/pods", "Pod", "p", spec=spec)
    w.post("/apis/apps/v1/namespaces/t/deployments", "Deployment", "d", "apps/v1", spec={
        "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": spec}})
    w.hook("sub", lambda q: {"allowed": False}, rules={"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]})

    def asked(method, path, body=None):
        r = w.server.request(method, path, body)
        q = w.hooks.seen[-1][2]
        return r.status, q["operation"], q["kind"]["group"], q["kind"]["kind"], q["resource"]["resource"], q.get("subResource"), q["name"]

    same(t, "exec", asked("GET", NS + "/pods/p/exec?command=ls&command=-l&stdout=true&container=c"),
         (400, "CONNECT", "", "PodExecOptions", "pods", "exec", "p"))
    q = w.hooks.seen[-1][2]
    same(t, "its options", (q["object"], q["oldObject"], q["options"]), (
        {"kind": "PodExecOptions", "apiVersion": "v1", "stdout": True, "container": "c", "command": ["ls", "-l"]}, None, None))
    same(t, "attach", asked("POST", NS + "/pods/p/attach"), (400, "CONNECT", "", "PodAttachOptions", "pods", "attach", "p"))
    same(t, "forwarded ports", asked("GET", NS + "/pods/p/portforward?ports=80"),
         (400, "CONNECT", "", "PodPortForwardOptions", "pods", "portforward", "p"))
    same(t, "proxy", asked("GET", NS + "/services/s/proxy/x/y"), (400, "CONNECT", "", "ServiceProxyOptions", "services", "proxy", "s"))
    same(t, "its path", w.hooks.seen[-1][2]["object"], {"kind": "ServiceProxyOptions", "apiVersion": "v1", "path": "/x/y"})
    same(t, "eviction", asked("POST", NS + "/pods/p/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}),
         (400, "CREATE", "policy", "Eviction", "pods", "eviction", "p"))
    same(t, "binding", asked("POST", NS + "/pods/p/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"},
                                                              "target": {"kind": "Node", "name": "n"}}),
         (400, "CREATE", "", "Binding", "pods", "binding", "p"))
    same(t, "tokens", asked("POST", NS + "/serviceaccounts/default/token", {"apiVersion": "authentication.k8s.io/v1",
                                                                          "kind": "TokenRequest", "spec": {"audiences": ["a"]}}),
         (400, "CREATE", "authentication.k8s.io", "TokenRequest", "serviceaccounts", "token", "default"))
    same(t, "status", asked("PATCH", NS + "/pods/p/status", {"status": {"message": "x"}}),
         (400, "UPDATE", "", "Pod", "pods", "status", "p"))
    same(t, "scale", asked("PATCH", "/apis/apps/v1/namespaces/t/deployments/d/scale", {"spec": {"replicas": 3}}),
         (400, "UPDATE", "autoscaling", "Scale", "deployments", "scale", "d"))
    q = w.hooks.seen[-1][2]
    same(t, "a Scale is what is seen", (q["object"]["spec"], q["oldObject"]["spec"]), ({"replicas": 3}, {"replicas": 1}))
    w.clear()
    w.hook("scaler", lambda q: patch({"op": "replace", "path": "/spec/replicas", "value": 7}), mutating=True,
           rules={"apiGroups": ["apps"], "resources": ["deployments/scale"]})
    r = w.server.request("PATCH", "/apis/apps/v1/namespaces/t/deployments/d/scale", {"spec": {"replicas": 3}})
    same(t, "a Scale can be changed", (r.status, r.json["spec"]), (200, {"replicas": 7}))
    w.clear()
    w.hook("gone", lambda q: {"allowed": True}, rules={"resources": ["pods", "pods/*"]})
    r = w.server.request("POST", NS + "/pods/p/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}})
    same(t, "an eviction is admitted once", (r.status, [q["operation"] for q in w.hooks.asked("/gone")]), (201, ["CREATE"]))
    w.clear()
    w.hook("review", lambda q: {"allowed": False}, rules={"apiGroups": ["authorization.k8s.io"], "resources": ["*"]})
    r = w.server.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}})
    same(t, "reviews are admitted, too", r.status, 400)


@test
def changes(t, w):
    w.hook("m2", lambda q: patch({"op": "add", "path": "/data/second", "value": ",".join(sorted(q["object"]["data"]))}),
           mutating=True, configuration="b", rules={"operations": ["CREATE"]})
    w.hook("m1", lambda q: patch({"op": "add", "path": "/data/first", "value": "1"}), mutating=True, configuration="a",
           rules={"operations": ["CREATE"]})
    r = w.map("c1", own="x")
    same(t, "each sees what those before it did", r.json.get("data"), {"own": "x", "first": "1", "second": "first,own"})
    same(t, "each is asked once", [p for p, *_ in w.hooks.seen], ["/m1", "/m2"])
    w.clear()
    w.hook("pod", lambda q: patch({"op": "add", "path": "/spec/containers/-", "value": {"name": "sidecar", "image": "side"}}),
           mutating=True, rules={"resources": ["pods"], "operations": ["CREATE"]})
    r = w.post(NS + "/pods", "Pod", "side", spec={"containers": [{"name": "c", "image": "x"}]})
    side = r.json["spec"]["containers"][1]
    same(t, "what it adds gets defaults", (side["imagePullPolicy"], side["terminationMessagePath"]), ("Always", "/dev/termination-log"))
    bad = {"what": None}
    w.clear()
    w.hook("bad", lambda q: patch(*bad["what"]), mutating=True)
    for name, operations, status, text in [
            ("an invalid object", [{"op": "add", "path": "/data", "value": {"no/slash": "x"}}], 422, 'ConfigMap "c2" is invalid'),
            ("a value of the wrong type", [{"op": "add", "path": "/data", "value": "text"}], 500,
             "Internal error occurred: json: cannot unmarshal string into Go"),
            ("another kind", [{"op": "replace", "path": "/kind", "value": "Pod"}], 500, "unknown conversion"),
            ("another namespace", [{"op": "replace", "path": "/metadata/namespace", "value": "u"}], 400,
             "the namespace of the provided object does not match the namespace sent on the request"),
            ("a path that is not there", [{"op": "remove", "path": "/x/y"}], 500, "Internal error occurred: remove operation does not apply"),
            ("an unknown operation", [{"op": "jump", "path": "/x"}], 500, 'Internal error occurred: Unexpected kind: jump')]:
        bad["what"] = operations
        r = w.map("c2")
        t.check(f"a patch that makes {name}", r.status == status and text in message(r), r)
    bad["what"] = [{"op": "add", "path": "/metadata/managedFields", "value": [{"manager": "x", "operation": "Nonsense"}]}]
    r = w.map("c3", k="v")
    t.check("managedFields that make no sense are taken back",
            r.status == 201 and ".metadata.managedFields was in an invalid state after admission" in str(r.headers.get_all("Warning")) and
            r.json["metadata"]["managedFields"][0]["operation"] == "Update", r)
    bad["what"] = []
    same(t, "an empty patch does nothing", w.map("c4").status, 201)
    bad["what"] = [{"op": "add", "path": "/metadata/labels", "value": {"x": "y"}}]
    r = w.server.request("DELETE", NS + "/configmaps/c4")
    same(t, "a removal cannot be changed", message(r), 'Internal error occurred: admission webhook "bad.example.com" attempted to modify '
         "the object, which is not supported for this operation")


@test
def second_round(t, w):
    w.hook("early", lambda q: patch({"op": "add", "path": "/metadata/labels/n", "value": str(len(q["object"]["metadata"]["labels"]))}),
           mutating=True, configuration="a", rules={"operations": ["CREATE"]}, reinvocationPolicy="IfNeeded")
    w.hook("never", lambda q: {"allowed": True}, mutating=True, configuration="b", rules={"operations": ["CREATE"]})
    w.hook("late", lambda q: patch({"op": "add", "path": "/metadata/labels/late", "value": "1"}), mutating=True, configuration="c",
           rules={"operations": ["CREATE"]})
    r = w.map("r1", labels={"a": "b"})
    same(t, "who wants to know is asked again", [p for p, *_ in w.hooks.seen], ["/early", "/never", "/late", "/early"])
    same(t, "and its answer counts", r.json["metadata"]["labels"], {"a": "b", "n": "3", "late": "1"})
    w.hooks.answers["/late"] = lambda q: {"allowed": True}
    w.hooks.seen = []
    w.map("r2", labels={"a": "b"})
    same(t, "but not when nothing came after it", [p for p, *_ in w.hooks.seen], ["/early", "/never", "/late"])


def lies(w):
    """Answers that are none, and what is said about them."""
    def review(q, **response):
        return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {"uid": q["uid"], "allowed": True, **response}}

    call, invalid = "failed to call webhook: ", "received invalid webhook response: "
    return [
        ("garbage", lambda q: (200, b"<html>", {}), call + "couldn't get version/kind; json parse error: invalid character '<'"),
        ("half an answer", lambda q: (200, b'{"kind":"AdmissionReview"', {}), call + "couldn't get version/kind; json parse error: "
         "unexpected end of JSON input"),
        ("nothing", lambda q: (200, b"", {}), call + "0-length response with status code: 200 and content type: application/json"),
        ("a redirect", lambda q: (302, b"", {"Location": f"https://127.0.0.1:{w.hooks.port}/elsewhere"}),
         call + "the server responded with the status code 302 but did not return more information"),
        ("a redirect that keeps the method", lambda q: (307, b"", {"Location": f"https://127.0.0.1:{w.hooks.port}/elsewhere"}),
         call + "the server responded with the status code 307"),
        ("too much", lambda q: (200, b'{"kind":"' + b"x" * HUGE + b'"}', {}), call),
        ("an error", lambda q: (500, b"it hurts", {"Content-Type": "text/plain"}),
         call + 'an error on the server ("it hurts") has prevented the request from succeeding'),
        ("not found", lambda q: (404, b"", {}), call + "the server could not find the requested resource"),
        ("another uid", lambda q: (200, review({"uid": "x"}), {}), invalid + 'expected response.uid="'),
        ("another kind", lambda q: (200, {"apiVersion": "v1", "kind": "Pod"}, {}), call + 'no kind "Pod" is registered for version "v1"'),
        ("the old version", lambda q: (200, {**review(q), "apiVersion": "admission.k8s.io/v1beta1"}, {}),
         call + "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion"),
        ("no kind", lambda q: (200, {"response": {"uid": q["uid"], "allowed": True}}, {}),
         invalid + "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind="),
        ("no response", lambda q: (200, {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}, {}),
         invalid + "webhook response was absent"),
        ("a Status", lambda q: (200, {"apiVersion": "v1", "kind": "Status", "status": "Failure", "message": "I am a Status"}, {}),
         call + "I am a Status"),
        ("a list", lambda q: (200, b"[]", {}), call + "couldn't get version/kind"),
        ("types that do not fit", lambda q: (200, review(q, allowed="yes"), {}), call + "json: cannot unmarshal string into Go"),
        ("depth", lambda q: (200, b'{"response":' + b"[" * 200000 + b"]" * 200000 + b"}", {}), call),
        ("a patch without a type", lambda q: (200, review(q, patch=encoded([])), {}),
         invalid + "webhook returned response.patch but not response.patchType"),
        ("a type without a patch", lambda q: (200, review(q, patchType="JSONPatch"), {}),
         invalid + "webhook returned response.patchType but not response.patch"),
        ("another type of patch", lambda q: (200, review(q, patch=encoded([{"op": "add", "path": "/x", "value": 1}]), patchType="Merge"), {}),
         'unsupported patch type "Merge"'),
        ("a patch that is none", lambda q: (200, review(q, patch=base64.b64encode(b"{").decode(), patchType="JSONPatch"), {}),
         "received undecodable patch in webhook response: unexpected end of JSON input"),
        ("an endless copy", lambda q: (200, review(q, patchType="JSONPatch", patch=encoded(
            [{"op": "add", "path": "/data", "value": {"a": "x" * 100000}}] +
            [{"op": "copy", "from": "/data", "path": f"/data/{i}"} for i in range(40)])), {}), None),
    ]


@test
def liars(t, w):
    now = {}
    w.hook("liar", lambda q: now["answer"](q), mutating=True, failurePolicy="Fail", timeoutSeconds=5)
    for name, answer, text in lies(w):
        now["answer"] = answer
        r = w.map("l1")
        said = message(r) or ""
        want = f'Internal error occurred: failed calling webhook "liar.example.com": {text}' if text else "Internal error occurred: "
        t.check(f"{name} is no answer", r.status == 500 and said.startswith(want), f"{r.status} {said[:600]}\nwanted: {want}")
    same(t, "redirects are not followed", w.hooks.asked("/elsewhere"), [])
    w.clear()
    w.hook("liar", lambda q: now["answer"](q), mutating=True, failurePolicy="Ignore", timeoutSeconds=5)
    for name, answer, text in lies(w):
        if not text:
            continue
        now["answer"] = answer
        r = w.map("ignored", query="?dryRun=All")
        t.check(f"{name} can be ignored", r.status == 201, r)
    w.clear()
    w.hook("judge", lambda q: {"allowed": True, "patchType": "JSONPatch", "patch": encoded([{"op": "remove", "path": "/data"}])})
    r = w.map("l2")
    same(t, "who validates cannot patch", message(r), 'Internal error occurred: failed calling webhook "judge.example.com": received '
         "invalid webhook response: validating webhook may not return response.patch")


@test
def silence(t, w):
    stop = threading.Event()
    w.hook("slow", lambda q: stop.wait(20) and {"allowed": True} or {"allowed": True}, timeoutSeconds=1, failurePolicy="Fail")
    begin = time.monotonic()
    r = w.map("s1")
    took = time.monotonic() - begin
    same(t, "a slow one is not waited for", (r.status, message(r)), (
        500, 'Internal error occurred: failed calling webhook "slow.example.com": failed to call webhook: Post '
        f'"https://127.0.0.1:{w.hooks.port}/slow?timeout=1s": context deadline exceeded'))
    t.check("longer than it may take", 0.9 < took < 3, took)
    stop.set()
    w.clear()
    nobody = {"url": f"https://127.0.0.1:{cluster.free_port()}/x", "caBundle": w.hooks.authority}
    w.hook("nobody", None, clientConfig=nobody, failurePolicy="Fail", timeoutSeconds=3)
    r = w.map("s2")
    same(t, "nobody is there", message(r), 'Internal error occurred: failed calling webhook "nobody.example.com": failed to call webhook: '
         f'Post "{nobody["url"]}?timeout=3s": dial tcp {nobody["url"].split("/")[2]}: connect: connection refused')
    w.clear()
    w.hook("stranger", lambda q: {"allowed": True}, clientConfig={"url": f"https://127.0.0.1:{w.hooks.port}/stranger"})
    r = w.map("s3")
    t.check("a certificate that nobody vouches for", r.status == 500 and "tls: failed to verify certificate: x509: certificate signed by "
            "unknown authority" in message(r), r)
    w.clear()
    for name in ("one", "two", "three"):
        w.hook(name, lambda q: time.sleep(0.4) or {"allowed": True})
    begin = time.monotonic()
    same(t, "three validate", w.map("s4").status, 201)
    t.check("at the same time", time.monotonic() - begin < 1, time.monotonic() - begin)


@test
def choices(t, w):
    def asked_for(name, spec, deeds):
        w.clear()
        w.hook(name, lambda q: {"allowed": True}, **spec)
        for deed in deeds:
            deed()
        return len(w.hooks.seen)

    team = {"namespaceSelector": {"matchLabels": {"team": "a"}}}
    here, there = lambda: w.map("x", query="?dryRun=All"), lambda: w.map("x", "/api/v1/namespaces/u", query="?dryRun=All")
    labeled = lambda: w.map("x", query="?dryRun=All", labels={"watch": "me"})
    same(t, "by the namespace's labels", asked_for("a", team, [here, there]), 1)
    same(t, "by the object's labels", asked_for("b", {"objectSelector": {"matchLabels": {"watch": "me"}}}, [here, labeled]), 1)
    same(t, "by operation", asked_for("c", {"rules": {"operations": ["DELETE"]}}, [here]), 0)
    same(t, "by scope", asked_for("d", {"rules": {"scope": "Cluster"}}, [here]), 0)
    same(t, "cluster-wide objects are in no namespace",
         asked_for("e", {**team, "rules": {"resources": ["*"], "apiGroups": ["*"]}},
                   [lambda: w.post("/api/v1/nodes", "Node", "n", query="?dryRun=All")]), 1)
    same(t, "namespaces have labels themselves",
         asked_for("f", {**team, "rules": {"resources": ["namespaces"]}},
                   [lambda: w.post("/api/v1/namespaces", "Namespace", "v", query="?dryRun=All", meta={"labels": {"team": "a"}}),
                    lambda: w.post("/api/v1/namespaces", "Namespace", "v", query="?dryRun=All")]), 1)
    w.clear()
    w.hook("g", lambda q: {"allowed": True}, **team)
    r = w.map("x", "/api/v1/namespaces/missing")
    same(t, "a namespace that is not there", (r.status, message(r)), (404, 'namespaces "missing" not found'))
    w.clear()
    condition = [{"name": "m", "expression": "true"}]
    w.hook("h", lambda q: {"allowed": False}, matchConditions=condition, failurePolicy="Ignore")
    same(t, "conditions that cannot be evaluated pass over a webhook that may be ignored", w.map("x", query="?dryRun=All").status, 201)
    w.clear()
    w.hook("i", lambda q: {"allowed": True}, matchConditions=condition, failurePolicy="Fail")
    same(t, "and else refuse", w.map("x", query="?dryRun=All").status, 403)


@test
def versions(t, w):
    rules = {"apiGroups": ["autoscaling"], "apiVersions": ["v1"], "resources": ["horizontalpodautoscalers"]}
    where = "/apis/autoscaling/v2/namespaces/t/horizontalpodautoscalers"

    def scaler(name):
        return w.post(where, "HorizontalPodAutoscaler", name, "autoscaling/v2", query="?dryRun=All", spec={
            "maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}]})

    w.hook("exact", lambda q: {"allowed": False}, rules=rules, matchPolicy="Exact")
    same(t, "Exact means this version only", scaler("a").status, 201)
    w.clear()
    w.hook("any", lambda q: {"allowed": False}, rules=rules, matchPolicy="Equivalent")
    same(t, "Equivalent means the same objects", scaler("b").status, 400)
    q = w.hooks.seen[-1][2]
    same(t, "in the version that was asked for", (
        q["object"]["apiVersion"], q["object"]["spec"].get("targetCPUUtilizationPercentage"), q["kind"]["version"], q["resource"]["version"],
        q["requestKind"]["version"], q["requestResource"]["version"]), ("autoscaling/v1", 50, "v1", "v1", "v2", "v2"))
    w.clear()
    w.hook("change", lambda q: patch({"op": "replace", "path": "/spec/targetCPUUtilizationPercentage", "value": 70}), rules=rules, mutating=True)
    r = scaler("c")
    same(t, "what is changed there is changed here", (r.status, r.json["apiVersion"], r.json["spec"]["metrics"][0]["resource"]["target"]),
         (201, "autoscaling/v2", {"type": "Utilization", "averageUtilization": 70}))
    w.clear()
    w.hook("old", lambda q: {"allowed": True, "uid": "anything", "patch": encoded([{"op": "add", "path": "/data", "value": {"old": "1"}}])},
           mutating=True, admissionReviewVersions=["v7", "v1beta1", "v1"])
    r = w.map("v1beta1", query="?dryRun=All")
    same(t, "old reviews are not strict", (r.json.get("data"), w.hooks.reviews[-1]["apiVersion"]), ({"old": "1"}, "admission.k8s.io/v1beta1"))


@test
def services(t, w):
    w.hook("svc", lambda q: {"allowed": True}, clientConfig={
        "caBundle": w.hooks.authority, "service": {"namespace": "t", "name": "hooks", "path": "/svc", "port": w.hooks.port}})
    r = w.map("svc1")
    same(t, "a service that is not there", message(r), 'Internal error occurred: failed calling webhook "svc.example.com": failed to call '
         f'webhook: Post "https://hooks.t.svc:{w.hooks.port}/svc?timeout=10s": service "hooks" not found')
    w.post(NS + "/services", "Service", "hooks", spec={"type": "ExternalName", "externalName": "localhost"})
    r = w.map("svc1")
    t.check("a service", r.status == 201 and len(w.hooks.asked("/svc")) == 1, r)


def fails_with(t, name, text, *flags):
    """A server that does not start."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            with cluster.Server(folder, *flags):
                t.check(name, False, "it has started")
        except RuntimeError as e:
            t.check(name, text in str(e), str(e)[-2000:])


def flags(t):
    fails_with(t, "plugins that nobody knows", '[enable-admission-plugins plugin "Nope" is unknown, disable-admission-plugins plugin '
               '"Neither" is unknown]', "--enable-admission-plugins", "Nope", "--disable-admission-plugins", "Neither")
    fails_with(t, "a plugin that is on and off", "[AlwaysDeny] in enable-admission-plugins and disable-admission-plugins overlapped",
               "--enable-admission-plugins", "AlwaysDeny,AlwaysAdmit", "--disable-admission-plugins", "AlwaysDeny")
    fails_with(t, "a configuration that is not there", 'failed to read plugin config: unable to read admission control configuration from '
               '"/nowhere" [open /nowhere: no such file or directory]', "--admission-control-config-file", "/nowhere")
    fails_with(t, "a plugin that needs a configuration", 'couldn\'t init admission plugin "ImagePolicyWebhook": no config specified',
               "--enable-admission-plugins", "ImagePolicyWebhook")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "c.yaml")
        for text, said in [("apiVersion: v1\nkind: Pod\n", 'no kind "Pod" is registered for version "v1"'),
                           ("apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugin: []\n",
                            'strict decoding error: unknown field "plugin"'),
                           ("apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n- name: ImagePolicyWebhook\n"
                            "  configuration: {imagePolicy: {allowTTL: 4000}}\n", "valid value is between 1s and 30m0s, got 1h6m40s")]:
            with open(path, "w") as f:
                f.write(text)
            fails_with(t, "a configuration with " + said, said, "--admission-control-config-file", path, "--enable-admission-plugins",
                       "ImagePolicyWebhook")
    with tempfile.TemporaryDirectory() as folder, cluster.Server(folder, "--enable-admission-plugins", "AlwaysDeny") as s:
        r = s.request("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}})
        same(t, "nothing is admitted", (r.status, message(r)),
             (403, 'namespaces "x" is forbidden: admission control is denying all modifications'))


def configured(t):
    with tempfile.TemporaryDirectory() as folder:
        hooks = Hooks(folder)
        with open(os.path.join(folder, "as.conf"), "w") as f:
            f.write("apiVersion: v1\nkind: Config\nusers:\n- {name: '127.0.0.1:%d', user: {token: secret}}\n" % hooks.port)
        with open(os.path.join(folder, "images.conf"), "w") as f:
            f.write("apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
                    "users: [{name: u, user: {}}]\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:%d/images', "
                    "certificate-authority: hook.crt}}]\n" % hooks.port)
        with open(os.path.join(folder, "images.yaml"), "w") as f:
            f.write("imagePolicy: {kubeConfigFile: %s/images.conf, denyTTL: -1, retryBackoff: 1}\n" % folder)
        with open(os.path.join(folder, "config.yaml"), "w") as f:
            f.write("apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n"
                    "- name: ValidatingAdmissionWebhook\n  configuration:\n    apiVersion: apiserver.config.k8s.io/v1\n"
                    "    kind: WebhookAdmissionConfiguration\n    kubeConfigFile: %s/as.conf\n"
                    "- {name: ImagePolicyWebhook, path: images.yaml}\n" % folder)
        w = World.__new__(World)
        w.hooks, w.made = hooks, []
        w.server = cluster.Server(folder, "--admission-control-config-file", os.path.join(folder, "config.yaml"), "--enable-admission-plugins",
                                  "ImagePolicyWebhook,NamespaceAutoProvision,DenyServiceExternalIPs")
        with w.server:
            same(t, "a namespace comes with what is made in it", w.map("x").status, 201)
            w.post(NS + "/serviceaccounts", "ServiceAccount", "default")
            w.hook("who", lambda q: {"allowed": True})
            w.map("y")
            same(t, "a webhook learns who asks", hooks.seen[-1][3].get("Authorization"), "Bearer secret")
            images(t, w)
            r = w.post(NS + "/services", "Service", "s", spec={"ports": [{"port": 1}], "externalIPs": ["203.0.113.1"]})
            same(t, "external addresses are refused", (r.status, message(r)),
                 (403, 'services "s" is forbidden: Use of external IPs is denied by admission control'))


def told(t):
    """What the audit log and the metrics know of webhooks."""
    with tempfile.TemporaryDirectory() as folder:
        log, policy = os.path.join(folder, "audit.log"), os.path.join(folder, "policy.yaml")
        with open(policy, "w") as f:
            f.write("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n"
                    "- {level: Request, resources: [{group: '', resources: [configmaps]}]}\n")
        w = World.__new__(World)
        w.hooks, w.made = Hooks(folder), []
        w.server = cluster.Server(folder, "--audit-policy-file", policy, "--audit-log-path", log)
        with w.server:
            w.post("/api/v1/namespaces", "Namespace", "t")
            change = {"op": "add", "path": "/data", "value": {"a": "b"}}
            w.hook("m", lambda q: {**patch(change), "auditAnnotations": {"note": "n"}}, mutating=True, rules={"operations": ["CREATE"]})
            w.hook("v", lambda q: (500, b"", {}), failurePolicy="Ignore", rules={"operations": ["CREATE"]})
            w.hook("d", lambda q: {"allowed": False}, rules={"operations": ["DELETE"]})
            same(t, "it is made", w.map("x").status, 201)
            same(t, "it stays", w.server.request("DELETE", NS + "/configmaps/x").status, 400)
            metrics = w.server.request("GET", "/metrics").body.decode()
        with open(log) as f:
            event = json.loads(f.readline())
        same(t, "the audit is told who changed what", {k: v for k, v in event.get("annotations", {}).items() if "webhook" in k or "example" in k}, {
            "m.example.com/note": "n",
            "mutation.webhook.admission.k8s.io/round_0_index_0": '{"configuration":"m","webhook":"m.example.com","mutated":true}',
            "patch.webhook.admission.k8s.io/round_0_index_0": json.dumps({
                "configuration": "m", "webhook": "m.example.com", "patch": [change], "patchType": "JSONPatch"}, separators=(",", ":")),
            "failed-open.validating.webhook.admission.k8s.io/round_0_index_0": "v.example.com"})
        for line in ('webhook_request_total{code="200",name="m.example.com",operation="CREATE",rejected="false",type="admit"} 1',
                     'webhook_request_total{code="500",name="v.example.com",operation="CREATE",rejected="false",type="validating"} 1',
                     'webhook_fail_open_count{name="v.example.com",type="validating"} 1',
                     'webhook_rejection_count{error_type="no_error",name="d.example.com",operation="DELETE",rejection_code="400",type="validating"} 1',
                     'webhook_admission_duration_seconds_count{name="d.example.com",operation="DELETE",rejected="true",type="validating"} 1'):
            t.check("counted: " + line, "apiserver_admission_" + line in metrics, "\n".join(
                l for l in metrics.splitlines() if "admission_webhook" in l and "bucket" not in l))


def images(t, w):
    answer = {"status": {"allowed": True}}
    w.hooks.answers["/images"] = lambda spec: (answer.get("code", 200), {
        "apiVersion": "imagepolicy.k8s.io/v1alpha1", "kind": "ImageReview", "spec": {}, "status": answer["status"]}, {})

    def pod(name, **meta):
        return w.post(NS + "/pods", "Pod", name, meta=meta, query="?dryRun=All", spec={
            "containers": [{"name": "c", "image": "x"}], "initContainers": [{"name": "i", "image": "y"}]})

    annotations = {"ticket.image-policy.k8s.io/break": "1", "other": "2"}
    same(t, "images that may be used", pod("a", annotations=annotations).status, 201)
    same(t, "what is asked", w.hooks.asked("/images")[-1], {"containers": [{"image": "x"}, {"image": "y"}], "namespace": "t",
                                                           "annotations": {"ticket.image-policy.k8s.io/break": "1"}})
    pod("b", annotations=annotations)
    same(t, "the answer is kept", len(w.hooks.asked("/images")), 1)
    answer["status"] = {"allowed": False, "reason": "not from here"}
    r = pod("c")
    same(t, "images that may not", (r.status, message(r)),
         (403, 'pods "c" is forbidden: image policy webhook backend denied one or more images: not from here'))
    answer["status"] = {"allowed": False}
    same(t, "without a reason", message(pod("d")), 'pods "d" is forbidden: one or more images rejected by webhook backend')
    answer["code"] = 503
    same(t, "no answer is a refusal", message(pod("e")), 'pods "e" is forbidden: the server is currently unable to handle the request')


def main():
    global WORLD
    with tempfile.TemporaryDirectory() as folder:
        WORLD = World(folder)
        with_world = [refusals, questions, subresources, changes, second_round, liars, silence, choices, versions, services]

        def end(t):
            same(t, "the server ends in good order", WORLD.server.stop(), 0)
        try:
            tap.run([*with_world, end, flags, configured, told])
        finally:
            WORLD.server.kill()


if __name__ == "__main__":
    main()
