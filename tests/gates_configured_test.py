#!/usr/bin/env python3
"""What AdmissionConfiguration says, as users and the audit log meet it: how webhooks learn who asks, whom Pod Security lets be,
how many events anybody may tell. Needs C8S, the program to test."""
import base64
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster  # noqa: E402
import gates_webhook_test as webhooks  # noqa: E402
import tap  # noqa: E402

TOKENS = "".join(f"{n}-token,{n},uid-{n},devs\n" for n in ("bob", "robot"))
EVERYBODY = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "devs"},
             "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
             "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "devs"}]}
CONFIG = """
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: PodSecurity
  configuration:
    apiVersion: pod-security.admission.config.k8s.io/v1
    kind: PodSecurityConfiguration
    defaults: {enforce: baseline, enforce-version: v1.28, audit: restricted}
    exemptions: {usernames: [robot], namespaces: [free], runtimeClasses: [vm]}
- name: EventRateLimit
  configuration:
    apiVersion: eventratelimit.admission.k8s.io/v1alpha1
    kind: Configuration
    limits:
    - {type: Server, qps: 1, burst: 60}
    - {type: Namespace, qps: 1, burst: 4, cacheSize: 2}
    - {type: User, qps: 1, burst: 8}
    - {type: SourceAndObject, qps: 1, burst: 2}
- name: ValidatingAdmissionWebhook
  configuration:
    {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: FOLDER/validating.conf}
- name: MutatingAdmissionWebhook
  configuration:
    {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: FOLDER/mutating.conf}
"""
POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, resources: [{group: "", resources: [pods, pods/ephemeralcontainers]}, {group: apps}]}
"""


def openssl(*args):
    subprocess.run(["openssl", *args], check=True, capture_output=True)


class World:
    def __init__(self, folder):
        self.folder = folder
        self.authority()
        self.locked = self.hooks("locked", clients=self.at("ca.crt"))
        self.open = self.hooks("open")
        self.write("validating.conf", self.kubeconfig(
            {f"127.0.0.1:{self.locked.port}": {"client-certificate": "validator.crt", "client-key": self.at("validator.key")},
             f"*.t.svc:{self.open.port}": {"token": "of-the-star"}, "*": {"username": "some", "password": "body"}}))
        self.write("mutating.conf", self.kubeconfig({f"127.0.0.1:{self.locked.port}": {
            "client-certificate-data": self.data("mutator.crt"), "client-key-data": self.data("mutator.key")}}))
        self.write("config.yaml", CONFIG.replace("FOLDER", folder))
        self.write("policy.yaml", POLICY)
        self.audit = self.at("audit.log")
        self.server = cluster.Server(self.at("server"), "--disable-admission-plugins=PodSecurity")
        with open(self.server.tokens, "a") as f:
            f.write(TOKENS)

    def at(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.at(name), "w") as f:
            f.write(text)

    def data(self, name):
        with open(self.at(name), "rb") as f:
            return base64.b64encode(f.read()).decode()

    def hooks(self, name, **more):
        os.mkdir(self.at(name))
        return webhooks.Hooks(self.at(name), **more)

    def authority(self):
        """And two that it vouches for."""
        ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        openssl("req", "-x509", *ec, "-days", "2", "-subj", "/CN=clients", "-keyout", self.at("ca.key"), "-out", self.at("ca.crt"))
        for i, name in enumerate(("validator", "mutator")):
            openssl("req", *ec, "-subj", "/CN=" + name, "-keyout", self.at(name + ".key"), "-out", self.at(name + ".csr"))
            openssl("x509", "-req", "-in", self.at(name + ".csr"), "-CA", self.at("ca.crt"), "-CAkey", self.at("ca.key"), "-set_serial",
                    str(i + 1), "-days", "2", "-out", self.at(name + ".crt"))

    @staticmethod
    def kubeconfig(users):
        return json.dumps({"apiVersion": "v1", "kind": "Config", "users": [{"name": n, "user": u} for n, u in users.items()]})

    def hooked(self, hooks):
        """The world of gates_webhook_test.py around our server."""
        w = webhooks.World.__new__(webhooks.World)
        w.hooks, w.server, w.made = hooks, self.server, []
        return w

    def must(self, path, kind, name, version="v1", meta=None, **more):
        r = self.server.request("POST", path, {"apiVersion": version, "kind": kind, "metadata": {"name": name, **(meta or {})}, **more})
        if r.status != 201:
            raise RuntimeError(r)
        return r

    def namespace(self, name, **labels):
        labels = {"pod-security.kubernetes.io/" + k.replace("_", "-"): v for k, v in labels.items()}
        self.must("/api/v1/namespaces", "Namespace", name, meta={"labels": labels})
        self.must(f"/api/v1/namespaces/{name}/serviceaccounts", "ServiceAccount", "default")

    def restart(self):
        """With all that is configured; what was there before it counted stays."""
        self.server.stop()
        self.server.extra = ("--admission-control-config-file", self.at("config.yaml"), "--enable-admission-plugins=EventRateLimit",
                             "--audit-policy-file", self.at("policy.yaml"), "--audit-log-path", self.audit)
        self.server.start()


# ---- webhooks ----

def client_certificates(w, t):
    seen = w.locked.callers
    validating, mutating = w.hooked(w.locked), w.hooked(w.locked)
    validating.hook("v", lambda q: {"allowed": True})
    mutating.hook("m", lambda q: webhooks.patch({"op": "add", "path": "/data", "value": {"by": "m"}}), mutating=True)
    r = validating.map("certified")
    t.check("who demands a certificate gets the one for its host, of each plugin", r.status == 201 and r.json["data"] == {"by": "m"} and
            seen == ["mutator", "validator"], (r, seen))
    r = validating.map("again")
    t.check("also the next time", r.status == 201 and len(seen) == 4, (r, seen))
    validating.clear()
    mutating.clear()
    elsewhere = {"url": f"https://localhost:{w.locked.port}/e", "caBundle": w.locked.authority}
    for mutates in (False, True):
        before = len(seen)
        validating.hook("e", lambda q: {"allowed": False}, clientConfig=elsewhere, mutating=mutates, failurePolicy="Fail")
        r = validating.map("refused")
        t.check("who shows none is not listened to", r.status == 500 and r.json["message"].startswith(
            'Internal error occurred: failed calling webhook "e.example.com": failed to call webhook: Post '
            f'"https://localhost:{w.locked.port}/e?timeout=10s": ') and
            r.json["message"].endswith(("certificate required", "onnection reset by peer")), r)
        validating.clear()
        validating.hook("e", lambda q: {"allowed": False}, clientConfig=elsewhere, mutating=mutates, failurePolicy="Ignore")
        r = validating.map("ignored", query="?dryRun=All")
        t.check("unless that does not matter", r.status == 201 and len(seen) == before, r)
        validating.clear()


def tokens_and_passwords(w, t):
    hooked = w.hooked(w.open)

    def shown(**more):
        """What a webhook sees of who asks it."""
        hooked.hook("h", lambda q: {"allowed": True}, **more)
        r = hooked.map("h", query="?dryRun=All")
        headers = w.open.seen[-1][3] if r.status == 201 and w.open.seen else r
        hooked.clear()
        return headers.get("Authorization") if isinstance(headers, dict) else headers
    w.must("/api/v1/namespaces/t/services", "Service", "hooks", spec={"type": "ExternalName", "externalName": "localhost"})
    service = {"caBundle": w.open.authority, "service": {"namespace": "t", "name": "hooks", "path": "/h", "port": w.open.port}}
    for name, wanted, more in (("a service of a namespace that has a token", "Bearer of-the-star", {"clientConfig": service}),
                               ("all others", "Basic " + base64.b64encode(b"some:body").decode(), {}),
                               ("what one plugin has the other has not", None, {"mutating": True})):
        got = shown(**more)
        t.check(name, got == wanted, got)


# ---- Pod Security ----

def annotations(w, audit_id):
    """What the audit log has about a request."""
    def found():
        with open(w.audit) as f:
            return [e for e in map(json.loads, f) if e["auditID"] == audit_id]
    event = cluster.wait_until(found, what="the event " + audit_id)[-1]
    prefix = "pod-security.kubernetes.io/"
    return {k.removeprefix(prefix): v for k, v in event["annotations"].items() if k.startswith(prefix)}


def pod(w, namespace, name, token="admin-token", method="POST", **spec):
    """The answer to a pod, and what the audit log says about it."""
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "c", "image": "x"}], **spec}}
    r = w.server.request(method, f"/api/v1/namespaces/{namespace}/pods", body, token=token, audit_id=f"{namespace}-{name}")
    return r, annotations(w, f"{namespace}-{name}")


RESTRICTED = ('would violate PodSecurity "restricted:latest": {}allowPrivilegeEscalation != false (container "c" must set '
              'securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "c" must set '
              'securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container "c" must set '
              'securityContext.runAsNonRoot=true), seccompProfile (pod or container "c" must set '
              'securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")')
HOST = "host namespaces (hostPID=true)"


def exemptions(w, t):
    bad = {"hostPID": True}
    r, a = pod(w, "plain", "bad", **bad)
    t.check("nobody is exempt by themselves", r.status == 403 and r.json["message"] ==
            f'pods "bad" is forbidden: violates PodSecurity "baseline:v1.28": {HOST}', r)
    t.check("the audit log has what was enforced and what else there is", a == {
        "enforce-policy": "baseline:v1.28", "audit-violations": RESTRICTED.format(HOST + ", ")}, a)
    for name, wanted, more in (("user", "user", {"token": "robot-token"}), ("runtime", "runtimeClass", {"runtimeClassName": "vm"})):
        r, a = pod(w, "plain", name, **bad, **more)
        t.check(f"exempt by {name}", r.status == 201 and a == {"exempt": wanted} and not r.headers.get("Warning"), (r, a))
    r, a = pod(w, "free", "p", token="robot-token", runtimeClassName="vm", **bad)
    t.check("a namespace goes before all", r.status == 201 and a == {"exempt": "namespace"}, (r, a))
    r, a = pod(w, "plain", "other", runtimeClassName="slow", **bad)
    t.check("another runtime class is not exempt", r.status == 403 and "exempt" not in a, (r, a))
    r = w.server.request("POST", "/api/v1/namespaces/plain/pods", {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "as"}, "spec": {"hostPID": True, "containers": [{"name": "c", "image": "x"}]}},
        token="robot-token", impersonate_user="bob", impersonate_group="devs")
    t.check("nor is whom an exempt user acts as", r.status == 403, r)
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
        "hostPID": True, "containers": [{"name": "c", "image": "x"}]}}}
    for token, audit_id in (("admin-token", "maker"), ("robot-token", "exempt-maker")):
        r = w.server.request("POST", "/apis/apps/v1/namespaces/plain/deployments", {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": audit_id}, "spec": spec}, token=token, audit_id=audit_id)
        a = annotations(w, audit_id)
        t.check(f"what makes pods: {audit_id}", r.status == 201 and a == (
            {"exempt": "user"} if token == "robot-token" else {"audit-violations": RESTRICTED.format(HOST + ", ")}), (r, a))
    r, a = pod(w, "open", "any", **bad)
    t.check("where nothing is asked", r.status == 201 and a == {"enforce-policy": "privileged:latest"}, (r, a))


def versions(w, t):
    sysctl = {"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_keepalive_time", "value": "1"}]}}
    r, a = pod(w, "plain", "sysctl", **sysctl)
    t.check("an older version knows fewer names", r.status == 403 and r.json["message"] ==
            'pods "sysctl" is forbidden: violates PodSecurity "baseline:v1.28": forbidden sysctls (net.ipv4.tcp_keepalive_time)' and
            a["enforce-policy"] == "baseline:v1.28", (r, a))
    r, a = pod(w, "newer", "sysctl", **sysctl)
    t.check("a newer one more", r.status == 201 and a["enforce-policy"] == "baseline:v1.29", (r, a))
    r, a = pod(w, "latest", "sysctl", **sysctl)
    t.check("so does the latest", r.status == 201 and a["enforce-policy"] == "baseline:latest", (r, a))
    probe = {"containers": [{"name": "c", "image": "x", "livenessProbe": {"tcpSocket": {"port": 1, "host": "1.2.3.4"}}}]}
    r, a = pod(w, "newer", "probe", **probe)
    t.check("and it forbids more", r.status == 201 and pod(w, "latest", "probe", **probe)[0].status == 403, r)
    r, a = pod(w, "future", "sysctl", **sysctl)
    t.check("a version that is to come is the latest", r.status == 201 and a["enforce-policy"] == "baseline:v1.99", (r, a))


def nonsense(w, t):
    """Labels that were given while nobody looked at them."""
    r, a = pod(w, "odd", "p")
    t.check("a level that does not exist is the strictest", r.status == 403 and 'violates PodSecurity "restricted:v1.28"' in
            r.json["message"], r)
    t.check("and told", a == {
        "enforce-policy": "restricted:v1.28", "audit-violations": RESTRICTED.format(""), "error":
        'Failed to parse policy: [metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "bogus": must be one of privileged, '
        'baseline, restricted, metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: "x": must be "latest" or "v1.x"]'}, a)


def counted(w, t):
    text = w.server.request("GET", "/metrics").body.decode()
    for line in ('evaluations_total{decision="deny",mode="enforce",policy_level="baseline",policy_version="v1.28",request_operation="create",'
                 'resource="pod",subresource=""} 4', 'evaluations_total{decision="allow",mode="enforce",policy_level="baseline",'
                 'policy_version="future",request_operation="create",resource="pod",subresource=""} 1',
                 'exemptions_total{request_operation="create",resource="pod",subresource=""} 3',
                 'exemptions_total{request_operation="create",resource="controller",subresource=""} 1',
                 'errors_total{fatal="false",request_operation="create",resource="pod",subresource=""} 1'):
        t.check("counted: " + line, "\npod_security_" + line + "\n" in text,
                "\n".join(x for x in text.splitlines() if x.startswith("pod_security")))


# ---- events ----

class Events:
    def __init__(self, w):
        self.w, self.n, self.connection = w, 0, w.server.connect()

    def tell(self, namespace, token="alice-token", name=None, query="", user=None, group=""):
        self.n += 1
        about = name or f"o{self.n}"
        event = {"metadata": {"name": f"e{self.n}", "namespace": namespace}, "reason": "Because"}
        ref = {"kind": "Pod", "namespace": namespace, "name": about, "uid": "u", "apiVersion": "v1"}
        if group:
            event.update({"apiVersion": group + "/v1", "kind": "Event", "regarding": ref, "action": "a", "type": "Normal",
                          "eventTime": "2030-01-01T00:00:00.000000Z", "reportingController": "k", "reportingInstance": "i"})
        else:
            event.update({"apiVersion": "v1", "kind": "Event", "involvedObject": ref, "source": {"component": "kubelet", "host": "n1"}})
        headers = {"impersonate_user": user, "impersonate_group": "devs"} if user else {}
        return self.w.server.request("POST", f"/{'apis/' + group if group else 'api'}/v1/namespaces/{namespace}/events{query}", event,
                                     token=token, connection=self.connection, **headers)


def refused(r, why):
    return r.status == 429 and r.json == {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 429,
                                          "message": "Too many requests: " + why, "reason": "TooManyRequests"} and \
        "Retry-After" not in r.headers


def flood(tell):
    """Tells until that is refused: how often it was not, the refusal, and how long it took. One more each second is right, too."""
    begun = time.monotonic()
    for n in range(200):
        r = tell(n)
        if r.status != 201:
            break
    return n, r, time.monotonic() - begun


def rates(w, t):
    e, spread = Events(w), "cdefgh"
    one, r, took = flood(lambda n: e.tell("a", name="same"))
    t.check("about one object", 2 <= one <= 3 + took and
            refused(r, "limit reached on type SourceAndObject for key kubeletn1Podasameuv1"), (one, r))
    more, r, again = flood(lambda n: e.tell("a"))
    t.check("in a namespace: what was refused counts", 4 <= one + 1 + more <= 5 + took + again and
            refused(r, "limit reached on type Namespace for key a"), (one, more, r))
    t.check("a trial run costs nothing and is not refused", e.tell("a", query="?dryRun=All").status == 201)
    t.check("events of the newer group are not counted", e.tell("a", group="events.k8s.io").status == 201)
    rest, r, last = flood(lambda n: e.tell(spread[n % 6]))
    t.check("by a user", 8 <= one + more + 2 + rest <= 9 + took + again + last and
            refused(r, "limit reached on type User for key alice"), (one, more, rest, r))
    both = "[limit reached on type Namespace for key b, limit reached on type User for key alice]"
    flood(lambda n: e.tell("b", "admin-token", user=f"x{n}"))
    cluster.wait_until(lambda: refused(e.tell("b"), both), 5, "all that is too much to be said")
    flood(lambda n: e.tell("b", "admin-token", user=f"y{n}"))
    got = [e.tell(namespace, "bob-token").status for namespace in "cdb"]
    t.check("whose bucket was used least recently is forgotten", got == [201] * 3, got)
    time.sleep(1.1)
    n, r, took = flood(lambda n: e.tell(spread[n % 6]))
    t.check("one more each second", 1 <= n <= 3 + took and refused(r, "limit reached on type User for key alice"), (n, r))
    n, r, took = flood(lambda n: e.tell(spread[n % 6], "admin-token", user=f"u{n}"))
    t.check("the whole server", n > 8 and refused(r, "limit reached on type Server for key "), (n, r))
    w.server.stop()
    w.write("config.yaml", CONFIG[:CONFIG.index("- name: ValidatingAdmissionWebhook")].replace("burst: 60", "burst: 0").replace(
        "type: User", "type: Planet").replace("cacheSize: 2", "cacheSize: -1"))
    try:
        w.server.start()
        t.check("limits must make sense", False, "it started")
    except RuntimeError as error:
        t.check("limits must make sense", '[limits[0].burst: Invalid value: 0: must be positive, limits[1].cacheSize: Invalid value: -1: '
                'must not be negative, limits[2].type: Unsupported value: "Planet": supported values: ' in str(error), error)


def main():
    with cluster.Folder() as folder:
        w = World(folder)
        w.server.start()
        try:
            w.must("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", **{k: EVERYBODY[k] for k in ("kind", "roleRef", "subjects")},
                   name="devs", version=EVERYBODY["apiVersion"])
            w.namespace("odd", enforce="bogus", warn_version="x")
            for name in ["plain", "free", "t", *"abcdefgh"]:
                w.namespace(name)
            w.namespace("newer", enforce_version="v1.29")
            w.namespace("latest", enforce_version="latest")
            w.namespace("future", enforce_version="v1.99")
            w.namespace("open", enforce="privileged", audit="privileged")
            for name in ("vm", "slow"):
                w.must("/apis/node.k8s.io/v1/runtimeclasses", "RuntimeClass", name, "node.k8s.io/v1", handler="h")
            w.restart()
            tap.run([named(f, w) for f in (client_certificates, tokens_and_passwords, exemptions, versions, nonsense, counted, rates)])
        finally:
            w.server.kill()


def named(test, w):
    def run(t):
        test(w, t)
    run.__name__ = test.__name__
    return run


if __name__ == "__main__":
    main()
