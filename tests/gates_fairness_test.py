#!/usr/bin/env python3
"""Priority and fairness as clients meet it: who floods waits or is told to come again, others do not notice. Needs C8S, the
program to test."""
import os
import re
import socket
import ssl
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster  # noqa: E402
import tap  # noqa: E402

TOKENS = ('admin-token,admin,admin,"system:masters"\nalice-token,alice,uid-alice,"devs"\nhog-token,hog,uid-hog,"devs"\n')
FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps"
LIST_MAPS, MAP_BYTES = 24, 900000


def server(folder, *extra):
    s = cluster.Server(folder, "--authorization-mode=RBAC", *extra)
    with open(s.tokens, "w") as f:
        f.write(TOKENS)
    return s


def prepare(s):
    r = s.request("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "devs"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "devs"}]})
    assert r.status == 201, r
    for i in range(LIST_MAPS):
        r = s.request("POST", MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"m{i}"}, "data": {"x": "y" * MAP_BYTES}})
        assert r.status == 201, r


def make_level(s, name, shares, response):
    r = s.request("POST", FLOW + "/prioritylevelconfigurations", {
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration", "metadata": {"name": name},
        "spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": shares, "lendablePercent": 0, "borrowingLimitPercent": 0,
                                                "limitResponse": response}}})
    assert r.status == 201, r
    return r.json["metadata"]["uid"]


def make_schema(s, name, level, user, precedence=50):
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
    r = s.request("POST", FLOW + "/flowschemas", {
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "metadata": {"name": name},
        "spec": {"priorityLevelConfiguration": {"name": level}, "matchingPrecedence": precedence,
                 "distinguisherMethod": {"type": "ByUser"},
                 "rules": [{"subjects": [{"kind": "User", "user": {"name": user}}], "resourceRules": [everything]}]}})
    assert r.status == 201, r
    return r.json["metadata"]["uid"]


class SlowReader:
    """A list whose answer nobody reads."""

    def __init__(self, s, token="hog-token", query=""):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(os.path.join(s.folder, "data", "pki", "ca.crt"))
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
        raw.settimeout(30)
        raw.connect(("127.0.0.1", s.port))
        self.socket = context.wrap_socket(raw, server_hostname="127.0.0.1")
        self.socket.sendall(f"GET {MAPS}{query} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n".encode())

    def status(self):
        return int(self.socket.recv(4096).split(b" ")[1])

    def close(self):
        self.socket.close()


def metrics(s, name):
    """The series of a family by their labels."""
    text = s.request("GET", "/metrics").body.decode()
    return {m[1]: float(m[2]) for m in re.finditer(r"^" + name + r"\{(.*)\} (\S+)$", text, re.M)}


def of_level(s, name, level):
    return sum(v for labels, v in metrics(s, "apiserver_flowcontrol_" + name).items() if f'priority_level="{level}"' in labels)


def test_headers(s, t):
    r = s.request("GET", "/api/v1/namespaces/default", token="alice-token")
    uids = {k: s.request("GET", f"{FLOW}/{v}/global-default").json["metadata"]["uid"] for k, v in
            (("X-Kubernetes-PF-FlowSchema-UID", "flowschemas"), ("X-Kubernetes-PF-PriorityLevel-UID", "prioritylevelconfigurations"))}
    t.check("answers name their schema and level", all(r.headers[k] == v for k, v in uids.items()), dict(r.headers))
    r = s.request("GET", "/readyz", token=None)
    probes = s.request("GET", FLOW + "/flowschemas/probes").json["metadata"]["uid"]
    t.check("probes are a flow of their own", r.headers["X-Kubernetes-PF-FlowSchema-UID"] == probes, dict(r.headers))
    make_schema(s, "lost", "nowhere", "alice", 20)
    cluster.wait_until(lambda: s.request("GET", FLOW + "/flowschemas/lost").json.get("status", {}).get("conditions"), what="a condition")
    r = s.request("GET", "/api/v1/namespaces/default", token="alice-token")
    t.check("a schema without its level is passed over", r.headers["X-Kubernetes-PF-FlowSchema-UID"] ==
            uids["X-Kubernetes-PF-FlowSchema-UID"], dict(r.headers))


def test_flood(s, t):
    level = make_level(s, "tiny", 9, {"type": "Queue", "queuing": {"queues": 1, "handSize": 1, "queueLengthLimit": 2}})
    schema = make_schema(s, "hogs", "tiny", "hog")
    cluster.wait_until(lambda: s.request("GET", "/api/v1/namespaces/default", token="hog-token").headers[
        "X-Kubernetes-PF-FlowSchema-UID"] == schema, what="the schema to be used")
    limit = of_level(s, "nominal_limit_seats", "tiny")
    t.check("the level has its share of seats", limit == of_level(s, "current_limit_seats", "tiny") == 2, limit)
    readers = [SlowReader(s) for _ in range(2)]
    t.check("two get seats", [r.status() for r in readers] == [200, 200])
    waiting = []
    for n in (1, 2):  # one after another: who comes first is served first
        waiting.append(SlowReader(s))
        cluster.wait_until(lambda: of_level(s, "current_inqueue_requests", "tiny") == n, what=f"{n} to wait")
    t.check("seats are counted", of_level(s, "current_executing_seats", "tiny") == 2)
    begun = time.monotonic()
    r = s.request("GET", "/api/v1/namespaces/default", token="hog-token")
    t.check("a full queue says so at once", r.status == 429 and r.body == b"Too many requests, please try again later.\n" and
            r.headers["Content-Type"] == "text/plain; charset=utf-8" and int(r.headers["Retry-After"]) >= 1 and
            time.monotonic() - begun < 5, (r, dict(r.headers)))
    t.check("and which level it was", r.headers["X-Kubernetes-PF-PriorityLevel-UID"] == level, dict(r.headers))
    t.check("other users do not notice", all(s.request("GET", p, token="alice-token").status == 200 for p in (
        "/api/v1/namespaces/default", MAPS + "/m0", "/apis/coordination.k8s.io/v1/leases")))
    t.check("nor do probes and admins", [s.request("GET", "/livez", token=None).status, s.request("GET", "/api/v1/pods").status] == [200, 200])
    dump = s.request("GET", "/debug/api_priority_and_fairness/dump_requests?includeRequestDetails=1").body.decode()
    rows = [[c.strip() for c in line.split(",")] for line in dump.splitlines()]
    mine = sorted(row[3] for row in rows if row[:2] == ["tiny", "hogs"])
    t.check("requests can be looked at", rows[0][0] == "PriorityLevelName" and mine == ["-1", "-1", "0", "1"] and
            all(row[10:13] == ["hog", "list", MAPS] for row in rows if row[0] == "tiny"), dump)
    dump = s.request("GET", "/debug/api_priority_and_fairness/dump_priority_levels").body.decode()
    row = [[c.strip() for c in line.split(",")] for line in dump.splitlines() if line.startswith("tiny,")][0]
    t.check("and levels", row[1:6] == ["1", "false", "false", "2", "2"] and int(row[7]) >= 1, dump)
    dump = s.request("GET", "/debug/api_priority_and_fairness/dump_queues").body.decode()
    row = [[c.strip() for c in line.split(",")] for line in dump.splitlines() if line.startswith("tiny,")]
    t.check("and queues", len(row) == 1 and row[0][1:5] == ["0", "2", "2", "2"], dump)
    readers[0].close()
    t.check("who waits is served when a seat is free", waiting[0].status() == 200)
    waiting[1].close()
    cluster.wait_until(lambda: of_level(s, "current_inqueue_requests", "tiny") == 0, what="the one that left to leave")
    begun = time.monotonic()
    r = s.request("GET", "/api/v1/namespaces/default?timeout=2s", token="hog-token")
    took = time.monotonic() - begun
    t.check("waiting ends after a quarter of the request's time", r.status == 429 and 0.4 < took < 2, (r, took))
    reasons = {re.search(r'reason="([^"]*)"', labels)[1] for labels in metrics(s, "apiserver_flowcontrol_rejected_requests_total")}
    t.check("rejections are counted with reasons", reasons == {"queue-full", "time-out"}, reasons)
    readers[1].close()
    waiting[0].close()
    cluster.wait_until(lambda: of_level(s, "current_executing_seats", "tiny") == 0, what="all seats to be free")
    t.check("then there is room again", s.request("GET", "/api/v1/namespaces/default", token="hog-token").status == 200)
    waits = metrics(s, "apiserver_flowcontrol_request_wait_duration_seconds_count")
    t.check("waiting is measured", any('execute="true"' in k and "tiny" in k for k in waits) and
            any('execute="false"' in k and "tiny" in k for k in waits), waits)


def test_many(s, t):
    """Many lists at a time by one user, small requests by another."""
    stop, statuses = threading.Event(), set()

    def hog():
        c = s.connect()
        while not stop.is_set():
            statuses.add(s.request("GET", MAPS, token="hog-token", connection=c).status)
        c.close()
    threads = [threading.Thread(target=hog) for _ in range(8)]
    for thread in threads:
        thread.start()
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l", "namespace": "default"}}
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    worst, got = 0, set()
    connection = s.connect()
    got.add(s.request("POST", leases, lease, token="alice-token", connection=connection).status == 201)
    for i in range(20):
        begun = time.monotonic()
        got.add(s.request("GET", "/api/v1/namespaces/default", token="alice-token", connection=connection).status == 200)
        got.add(s.request("PATCH", leases + "/l", {"spec": {"holderIdentity": str(i)}}, token="alice-token",
                          connection=connection).status == 200)
        got.add(s.request("GET", "/readyz", token=None, connection=connection).status == 200)
        worst = max(worst, time.monotonic() - begun)
    stop.set()
    for thread in threads:
        thread.join()
    t.check("a flood of lists keeps nobody else from reading and renewing leases", got == {True} and worst < 5, (got, worst))
    t.check("and is itself served or told to wait", statuses <= {200, 429} and 200 in statuses, statuses)


def test_without(s, t):
    reader = SlowReader(s)
    t.check("without priorities a slow list counts as one", reader.status() == 200)
    r = s.request("GET", "/api/v1/namespaces/default", token="alice-token")
    t.check("and limits are for all", r.status == 429 and r.headers["Retry-After"] == "1" and
            "X-Kubernetes-PF-FlowSchema-UID" not in r.headers, (r, dict(r.headers)))
    t.check("but for admins", s.request("GET", "/api/v1/namespaces/default").status == 200)
    r = s.request("POST", MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "w"}}, token="alice-token")
    t.check("writes are counted by themselves", r.status == 201, r)
    t.check("there is nothing to dump", s.request("GET", "/debug/api_priority_and_fairness/dump_queues").status == 404)
    reader.close()
    cluster.wait_until(lambda: s.request("GET", "/api/v1/namespaces/default", token="alice-token").status == 200, what="room")


def main():
    t = tap.Tap()
    with cluster.Folder() as folder:
        with server(folder, "--max-requests-inflight=20", "--max-mutating-requests-inflight=10") as s:
            prepare(s)
            test_headers(s, t)
            test_flood(s, t)
            test_many(s, t)
        with server(folder, "--enable-priority-and-fairness=false", "--max-requests-inflight=1", "--max-mutating-requests-inflight=1") as s:
            test_without(s, t)
    t.close()


if __name__ == "__main__":
    main()
