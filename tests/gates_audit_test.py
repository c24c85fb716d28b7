#!/usr/bin/env python3
"""Audit as operators meet it: what is told at which level and stage, rotation, the webhook, truncation. Needs C8S, the program to
test."""
import gzip
import http.server
import json
import os
import re
import ssl
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster  # noqa: E402
import tap  # noqa: E402

MAPS = "/api/v1/namespaces/default/configmaps"
POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitManagedFields: true
rules:
- {level: None, nonResourceURLs: ["/healthz*", /readyz, /metrics]}
- {level: RequestResponse, resources: [{group: "", resources: [configmaps]}]}
- {level: Request, omitStages: [RequestReceived], resources: [{group: "", resources: [secrets, pods]}]}
- {level: Metadata}
"""


class Receiver:
    """A webhook over TLS; it fails the first `failures` batches."""

    def __init__(self, folder, failures=0):
        self.batches, self.failures = [], failures
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.failures -= 1
                if outer.failures < 0:
                    outer.batches.append(body)
                self.send_response(200 if outer.failures < 0 else 503)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass
        self.cert, key = os.path.join(folder, "hook.crt"), os.path.join(folder, "hook.key")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
                        "-out", self.cert, "-subj", "/CN=hook", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"],
                       check=True, capture_output=True)
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.cert, key)
        self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.config = os.path.join(folder, "hook.conf")
        with open(self.config, "w") as f:
            json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "h"}}],
                       "clusters": [{"name": "h", "cluster": {"server": f"https://127.0.0.1:{self.http.server_port}/audit",
                                                              "certificate-authority": self.cert}}]}, f)

    def events(self):
        return [e for b in self.batches for e in b["items"]]

    def close(self):
        self.http.shutdown()


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w") as f:
        f.write(text)
    return path


def read(path):
    with open(path) as f:
        return [json.loads(line) for line in f]


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


class Log:
    """The events that came since the last look."""

    def __init__(self, path):
        self.path, self.seen = path, 0

    def new(self):
        all_ = read(self.path)
        events, self.seen = all_[self.seen:], len(all_)
        return events


def test_levels(s, log, t):
    r = s.request("POST", MAPS, config_map("a", x="1"), audit_id="my-id", user_agent="tester", x_forwarded_for="10.1.2.3, nonsense")
    e = log.new()
    t.check("two stages, in the file before the answer", [x["stage"] for x in e] == ["RequestReceived", "ResponseComplete"], e)
    t.check("events name the request", r.headers["Audit-Id"] == "my-id" == e[0]["auditID"] == e[1]["auditID"], e)
    t.check("who, from where, with what", e[0]["user"] == {"username": "admin", "uid": "admin", "groups": ["system:masters", "system:authenticated"]} and
            e[0]["sourceIPs"] == ["10.1.2.3", "127.0.0.1"] and e[0]["userAgent"] == "tester" and e[0]["verb"] == "create" and
            e[0]["requestURI"] == MAPS, e[0])
    t.check("nothing is known yet at the first stage", "responseStatus" not in e[0] and "requestObject" not in e[0] and
            e[0]["objectRef"] == {"resource": "configmaps", "namespace": "default", "apiVersion": "v1"} and
            e[0]["stageTimestamp"] == e[0]["requestReceivedTimestamp"], e[0])
    t.check("the object's name comes with it", e[1]["objectRef"]["name"] == "a", e[1])
    t.check("RequestResponse has both objects, without managedFields", e[1]["requestObject"]["data"] == {"x": "1"} and
            e[1]["responseObject"]["metadata"]["uid"] and "managedFields" not in e[1]["responseObject"]["metadata"] and
            e[1]["responseStatus"] == {"metadata": {}, "code": 201}, e[1])
    t.check("the decision is noted", e[1]["annotations"]["authorization.k8s.io/decision"] == "allow", e[1])
    t.check("fields are in Kubernetes' order", list(e[1]) == [
        "kind", "apiVersion", "level", "auditID", "stage", "requestURI", "verb", "user", "sourceIPs", "userAgent", "objectRef",
        "responseStatus", "requestObject", "responseObject", "requestReceivedTimestamp", "stageTimestamp", "annotations"], list(e[1]))
    s.request("GET", MAPS, accept="application/vnd.kubernetes.protobuf")
    e = log.new()
    t.check("lists are told as JSON, whatever was sent", e[1]["responseObject"]["kind"] == "ConfigMapList" and
            e[1]["responseObject"]["items"][0]["metadata"]["name"] == "a" and
            "managedFields" not in e[1]["responseObject"]["items"][0]["metadata"], e[1])
    s.request("PATCH", MAPS + "/a", {"data": {"y": "2"}})
    s.request("DELETE", MAPS + "/a", {"propagationPolicy": "Background"})
    s.request("GET", MAPS + "/a")
    e = log.new()
    t.check("a patch is told as it is", e[1]["requestObject"] == {"data": {"y": "2"}}, e[1])
    t.check("options of a deletion are its object", e[3]["requestObject"]["propagationPolicy"] == "Background" and
            e[3]["requestObject"]["kind"] == "DeleteOptions", e[3])
    t.check("a failure is told", e[5]["responseStatus"]["reason"] == "NotFound" and e[5]["responseStatus"]["code"] == 404 and
            e[5]["responseObject"]["kind"] == "Status", e[5])
    s.request("POST", "/api/v1/namespaces/default/secrets", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}})
    e = log.new()
    t.check("Request has the request alone, and its stage is left out", [x["stage"] for x in e] == ["ResponseComplete"] and
            "requestObject" in e[0] and "responseObject" not in e[0], e)
    s.request("GET", "/version")
    s.request("GET", "/healthz")
    s.request("GET", "/readyz")
    e = log.new()
    t.check("Metadata has no objects, and None has nothing", {x["requestURI"] for x in e} == {"/version"} and e[1]["verb"] == "get" and
            "objectRef" not in e[1] and "responseObject" not in e[1], e)
    s.request("GET", "/api/v1/namespaces/default/services", impersonate_user="bob")
    e = log.new()
    t.check("whom somebody acts as", e[1]["user"]["username"] == "admin" and e[1]["impersonatedUser"]["username"] == "bob", e[1])
    rbac, role = "/apis/rbac.authorization.k8s.io/v1", {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "as"}
    s.request("POST", rbac + "/clusterroles", {"apiVersion": role["apiGroup"] + "/v1", "kind": "ClusterRole", "metadata": {"name": "as"}, "rules": [
        {"verbs": ["impersonate:user-info"], "apiGroups": ["authentication.k8s.io"], "resources": ["users"], "resourceNames": ["bob"]},
        {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"], "resourceNames": ["carl"]},
        {"verbs": ["impersonate-on:user-info:list"], "apiGroups": [""], "resources": ["services"]}]})
    s.request("POST", rbac + "/clusterrolebindings", {
        "apiVersion": role["apiGroup"] + "/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "as"}, "roleRef": role,
        "subjects": [{"apiGroup": role["apiGroup"], "kind": "User", "name": "alice"}]})
    log.new()
    s.request("GET", "/api/v1/namespaces/default/services", token="alice-token", impersonate_user="bob")
    s.request("GET", "/api/v1/namespaces/default/services", token="alice-token", impersonate_user="carl")
    e = log.new()
    t.check("and what allows it, when that is narrow", e[1]["impersonatedUser"]["username"] == "bob" and e[1].get(
        "authenticationMetadata") == {"impersonationConstraint": "impersonate:user-info"}, e[1])
    t.check("or wide", e[3]["impersonatedUser"]["username"] == "carl" and "authenticationMetadata" not in e[3], e[3])
    s.request("GET", "/api/v1/namespaces/default/endpoints")
    e = log.new()
    t.check("who uses what goes away is told", e[1]["annotations"].get("k8s.io/deprecated") == "true", e[1])
    s.request("GET", "/api/v1/nodes", token="wrong")
    e = log.new()
    t.check("strangers are told about once", [(x["stage"], x["user"], x["responseStatus"]) for x in e] == [
        ("ResponseStarted", {}, {"metadata": {}, "message": "Authentication failed, attempted: bearer", "code": 401})], e)


def test_watch(s, log, t):
    s.request("GET", "/api/v1/services?watch=1&timeoutSeconds=1")
    cluster.wait_until(lambda: len(read(log.path)) >= log.seen + 3, what="the end of the watch")
    e = log.new()
    t.check("a watch has a beginning and an end", [x["stage"] for x in e] == ["RequestReceived", "ResponseStarted", "ResponseComplete"] and
            e[1]["responseStatus"]["code"] == 200 and e[2]["stageTimestamp"] > e[1]["stageTimestamp"], e)


def test_rotation(folder, t):
    path = os.path.join(folder, "logs", "audit.log")
    policy = write(folder, "policy.yaml", POLICY)
    with cluster.Server(os.path.join(folder, "rotating"), "--audit-policy-file", policy, "--audit-log-path", path, "--audit-log-maxsize=1",
                        "--audit-log-maxbackup=2", "--audit-log-compress", "--audit-log-mode=batch") as s:
        for i in range(6):
            s.request("POST", MAPS, config_map(f"m{i}", x="y" * 300000))
        logs = os.path.dirname(path)
        cluster.wait_until(lambda: sum(n.endswith(".gz") for n in os.listdir(logs)) == 2 and len(os.listdir(logs)) == 3,
                           what="two compressed old logs")
        names = sorted(os.listdir(logs))
        t.check("large logs are put aside by time", all(re.fullmatch(r"audit-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}\.log\.gz", n)
                                                        for n in names[:2]) and names[2] == "audit.log", names)
        with gzip.open(os.path.join(logs, names[0]), "rt") as f:
            t.check("and whole", all(json.loads(line)["kind"] == "Event" for line in f))
        t.check("nobody else can read them", all(os.stat(os.path.join(logs, n)).st_mode & 0o077 == 0 for n in names))
        t.check("events are counted", 'apiserver_audit_level_total{level="RequestResponse"} 6' in s.request("GET", "/metrics").body.decode())


def test_webhook(folder, t):
    policy = write(folder, "policy.yaml", POLICY)
    hook = Receiver(folder, failures=1)
    with cluster.Server(os.path.join(folder, "hooked"), "--audit-policy-file", policy, "--audit-webhook-config-file", hook.config,
                        "--audit-webhook-batch-max-wait=300ms", "--audit-webhook-batch-max-size=5", "--audit-webhook-initial-backoff=100ms",
                        "--audit-webhook-truncate-enabled", "--audit-webhook-truncate-max-event-size=4000") as s:
        s.request("GET", "/version", audit_id="first")
        cluster.wait_until(lambda: len(hook.events()) >= 2, what="events")
        b = hook.batches[0]
        t.check("events come as a list, also after a failure", (b["kind"], b["apiVersion"], b["metadata"]) ==
                ("EventList", "audit.k8s.io/v1", {}) and [e["stage"] for e in b["items"]] == ["RequestReceived", "ResponseComplete"] and
                "kind" not in b["items"][0] and b["items"][0]["auditID"] == "first", b)
        n = len(hook.batches)
        for i in range(10):
            s.request("GET", "/version")
        cluster.wait_until(lambda: len(hook.events()) >= 22, what="all events")
        t.check("batches have a limit", all(len(b["items"]) <= 5 for b in hook.batches) and len(hook.batches) - n < 20, len(hook.batches))
        s.request("POST", MAPS, config_map("large", x="y" * 10000), audit_id="large")
        cluster.wait_until(lambda: len(hook.events()) >= 24, what="the large event")
        e = [e for e in hook.events() if e["auditID"] == "large" and e["stage"] == "ResponseComplete"][0]
        t.check("large events lose their objects", "requestObject" not in e and "responseObject" not in e and
                e["annotations"]["audit.k8s.io/truncated"] == "true", e)
        s.request("GET", "/version", audit_id="last")
    t.check("what is left is sent at the end", [e["stage"] for e in hook.events() if e["auditID"] == "last"] ==
            ["RequestReceived", "ResponseComplete"])
    hook.close()


def fails(folder, *flags):
    s = cluster.Server(os.path.join(folder, "bad"), *flags)
    try:
        s.start()
    except RuntimeError as e:
        return str(e)
    s.stop()
    return ""


def test_options(folder, t):
    path = os.path.join(folder, "unused", "audit.log")
    said = fails(folder, "--audit-policy-file", os.path.join(folder, "none.yaml"), "--audit-log-path", path)
    t.check("a policy must be there", "loading audit policy file: failed to read file path" in said, said)
    bad = write(folder, "bad.yaml", "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Much}]\n")
    said = fails(folder, "--audit-policy-file", bad, "--audit-log-path", path)
    t.check("and be valid", 'rules[0].level: Unsupported value: "Much"' in said and f"from file {bad}" in said, said)
    said = fails(folder, "--audit-policy-file", bad, "--audit-log-path", path, "--audit-log-mode=sometimes")
    t.check("modes are known ones", "invalid audit log mode sometimes, allowed modes are \"batch,blocking,blocking-strict\"" in said, said)
    with cluster.Server(os.path.join(folder, "bad"), "--audit-log-path", path) as s:
        s.request("GET", "/version")
        t.check("without a policy nothing is told", not os.path.exists(path) or not os.path.getsize(path))
    policy = write(folder, "policy.yaml", POLICY)
    with cluster.Server(os.path.join(folder, "bad"), "--audit-policy-file", policy) as s:
        t.check("a policy alone is fine", s.request("GET", "/version").status == 200)
    with cluster.Server(os.path.join(folder, "bad"), "--audit-policy-file", policy, "--audit-log-path", path, "--audit-log-format=legacy") as s:
        s.request("GET", "/version", audit_id="legacy")
        with open(path) as f:
            lines = f.read().splitlines()
        t.check("the old format is one line of text", re.fullmatch(
            r'\S+ AUDIT: id="legacy" stage="ResponseComplete" ip="127.0.0.1" method="get" user="admin" '
            r'groups="\\"system:masters\\",\\"system:authenticated\\"" as="<self>" asgroups="<lookup>" user-agent="[^"]*" namespace="<none>" '
            r'uri="/version" response="200"', lines[-1]), lines)


def test_strict(folder, t):
    policy = write(folder, "policy.yaml", POLICY)
    hook = Receiver(folder, failures=100)
    with cluster.Server(os.path.join(folder, "strict"), "--audit-policy-file", policy, "--audit-webhook-config-file", hook.config,
                        "--audit-webhook-mode=blocking-strict", "--audit-webhook-initial-backoff=1ms") as s:
        r = s.request("GET", "/version?a=b")
        t.check("what cannot be told is not done", r.status == 500 and r.body ==
                b'Internal Server Error: "/version?a=b": failed to store audit event\n', r)
        t.check("unless nothing is to be told", s.request("GET", "/healthz").status == 200)
        hook.failures = 0
        t.check("until it can be told again", s.request("GET", "/version", audit_id="again").status == 200 and
                [e["stage"] for e in hook.events() if e["auditID"] == "again"] == ["RequestReceived", "ResponseComplete"], hook.batches)
    hook.close()


def main():
    t = tap.Tap()
    with cluster.Folder() as folder:
        policy, path = write(folder, "policy.yaml", POLICY), os.path.join(folder, "audit", "audit.log")
        with cluster.Server(os.path.join(folder, "plain"), "--audit-policy-file", policy, "--audit-log-path", path) as s:
            log = Log(path)
            log.new()
            test_levels(s, log, t)
            test_watch(s, log, t)
        test_rotation(folder, t)
        test_webhook(folder, t)
        test_options(folder, t)
        test_strict(folder, t)
    t.close()


if __name__ == "__main__":
    main()
