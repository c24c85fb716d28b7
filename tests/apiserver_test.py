#!/usr/bin/env python3
"""The API server over real sockets, on each of its stores: sqlite, and etcd with three members."""
import gzip
import json
import os
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402
from cluster import Etcd, Folder, Server, wait_until  # noqa: E402

NS = "/api/v1/namespaces/t"


def configmap(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def make_namespace(s):
    for name in ("t", "round-trip"):
        s.request("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        s.request("POST", f"/api/v1/namespaces/{name}/serviceaccounts", {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})


def watch(s, path, seconds=5, stop=None):
    """The events of a watch, until stop(events) is true or the time is over."""
    c = s.connect(seconds + 5)
    c.request("GET", path, headers={"Authorization": "Bearer admin-token"})
    r = c.getresponse()
    events, deadline = [], time.monotonic() + seconds
    try:
        while time.monotonic() < deadline and not (stop and stop(events)):
            line = r.readline()
            if not line:
                break
            events.append(json.loads(line))
    finally:
        c.close()
    return events


def test_objects(t, s, on):
    """Create, read, update, patch, delete, and how each is refused."""
    a = s.request("POST", NS + "/configmaps", configmap("a", x="1"))
    t.check(f"{on}: an object is created", a.status == 201 and a.json["metadata"]["uid"] and "selfLink" not in a.json["metadata"], a)
    t.check(f"{on}: not twice", s.request("POST", NS + "/configmaps", configmap("a")).json["reason"] == "AlreadyExists")
    got = s.request("GET", NS + "/configmaps/a")
    t.check(f"{on}: it reads back as it was answered", got.json == a.json, got)
    changed = {**a.json, "data": {"x": "2"}}
    b = s.request("PUT", NS + "/configmaps/a", changed)
    t.check(f"{on}: an update of the newest version", b.status == 200 and b.json["data"] == {"x": "2"}, b)
    c = s.request("PUT", NS + "/configmaps/a", changed)
    t.check(f"{on}: an update of an older one is a conflict", c.status == 409 and c.json["reason"] == "Conflict", c)
    same = s.request("PUT", NS + "/configmaps/a", b.json)
    t.check(f"{on}: an update that changes nothing writes nothing",
            same.json["metadata"]["resourceVersion"] == b.json["metadata"]["resourceVersion"], same)
    patches = [("application/merge-patch+json", {"data": {"y": "3"}}), ("application/json-patch+json", [{"op": "add", "path": "/data/z", "value": "4"}]),
               ("application/strategic-merge-patch+json", {"data": {"x": None}})]
    for kind, patch in patches:
        p = s.request("PATCH", NS + "/configmaps/a", patch, content_type=kind)
        t.check(f"{on}: {kind}", p.status == 200, p)
    t.check(f"{on}: all patches together", s.request("GET", NS + "/configmaps/a").json["data"] == {"y": "3", "z": "4"})
    apply = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ap"}, "data": {"k": "1"}}
    p = s.request("PATCH", NS + "/configmaps/ap?fieldManager=one", apply, content_type="application/apply-patch+yaml")
    q = s.request("PATCH", NS + "/configmaps/ap?fieldManager=two", {**apply, "data": {"k": "2"}}, content_type="application/apply-patch+yaml")
    t.check(f"{on}: apply creates, and others conflict", p.status == 201 and q.status == 409 and "conflict with \"one\"" in q.json["message"], q)
    d = s.request("POST", NS + "/configmaps?dryRun=All", configmap("dry"))
    t.check(f"{on}: a dry run answers and stores nothing", d.status == 201 and s.request("GET", NS + "/configmaps/dry").status == 404, d)
    names = {s.request("POST", NS + "/configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "g-"}}).json["metadata"]["name"]
             for _ in range(10)}
    t.check(f"{on}: names are generated", len(names) == 10 and all(n.startswith("g-") and len(n) == 7 for n in names), names)
    e = s.request("DELETE", NS + "/configmaps/a")
    t.check(f"{on}: delete", e.json["status"] == "Success" and s.request("GET", NS + "/configmaps/a").status == 404, e)


def test_finalizers(t, s, on):
    s.request("POST", NS + "/configmaps", {**configmap("f"), "metadata": {"name": "f", "finalizers": ["example.com/x"]}})
    a = s.request("DELETE", NS + "/configmaps/f")
    t.check(f"{on}: a finalizer holds the object", a.status == 200 and "deletionTimestamp" in a.json["metadata"], a)
    b = s.request("PATCH", NS + "/configmaps/f", {"metadata": {"finalizers": None}})
    t.check(f"{on}: without it the object goes", b.status == 200 and s.request("GET", NS + "/configmaps/f").status == 404, b)


def test_lists(t, s, on):
    for i in range(25):
        s.request("POST", NS + "/configmaps", {**configmap(f"l{i:02}"), "metadata": {"name": f"l{i:02}", "labels": {"set": "l", "odd": str(i % 2)}}})
    every = s.request("GET", NS + "/configmaps?labelSelector=set%3Dl").json
    t.check(f"{on}: a list by label", len(every["items"]) == 25, len(every["items"]))
    t.check(f"{on}: half of it", len(s.request("GET", NS + "/configmaps?labelSelector=set%3Dl,odd%3D1").json["items"]) == 12)
    names, token, revisions = [], "", set()
    while True:
        page = s.request("GET", NS + f"/configmaps?limit=7&continue={token}").json
        names += [o["metadata"]["name"] for o in page["items"]]
        revisions.add(page["metadata"]["resourceVersion"])
        # what happens between two pages is not in them
        s.request("DELETE", NS + "/configmaps/l24")
        s.request("POST", NS + "/configmaps", configmap(f"later-{len(names)}"))
        token = page["metadata"].get("continue", "")
        if not token:
            break
    listed = [n for n in names if n.startswith("l") and not n.startswith("later")]
    t.check(f"{on}: pages are of one moment", len(listed) == 25 and not any(n.startswith("later-") for n in names) and len(revisions) == 1, (names, revisions))
    future = s.request("GET", NS + "/configmaps?resourceVersion=99999999&resourceVersionMatch=NotOlderThan", timeout=20)
    t.check(f"{on}: a version of the future", future.status == 504 and "Too large resource version" in future.json["message"], future)
    gone = s.request("DELETE", NS + "/configmaps?labelSelector=set%3Dl")
    t.check(f"{on}: a collection is deleted", gone.status == 200 and not s.request("GET", NS + "/configmaps?labelSelector=set%3Dl").json["items"], gone)


def test_watch(t, s, on):
    first = s.request("GET", NS + "/configmaps").json["metadata"]["resourceVersion"]
    for i in range(5):
        s.request("POST", NS + "/configmaps", {**configmap(f"w{i}"), "metadata": {"name": f"w{i}", "labels": {"w": str(i)}}})
    s.request("PATCH", NS + "/configmaps/w1", {"metadata": {"labels": {"w": "other"}}})
    s.request("DELETE", NS + "/configmaps/w2")
    events = watch(s, NS + f"/configmaps?watch=1&timeoutSeconds=3&resourceVersion={first}", stop=lambda e: len(e) == 7)
    t.check(f"{on}: everything since a version", [(e["type"], e["object"]["metadata"]["name"]) for e in events] == [
        ("ADDED", "w0"), ("ADDED", "w1"), ("ADDED", "w2"), ("ADDED", "w3"), ("ADDED", "w4"), ("MODIFIED", "w1"), ("DELETED", "w2")], events)
    versions = [int(e["object"]["metadata"]["resourceVersion"]) for e in events]
    t.check(f"{on}: in the order of versions", versions == sorted(set(versions)), versions)
    events = watch(s, NS + f"/configmaps?watch=1&timeoutSeconds=3&labelSelector=w%3D1&resourceVersion={first}", stop=lambda e: len(e) == 2)
    t.check(f"{on}: a change of labels is an end for a selector", [e["type"] for e in events] == ["ADDED", "DELETED"], events)
    events = watch(s, NS + "/configmaps?watch=1&timeoutSeconds=5&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
                   stop=lambda e: e and e[-1]["type"] == "BOOKMARK")
    t.check(f"{on}: a streaming list ends with a bookmark", events and events[-1]["type"] == "BOOKMARK" and
            events[-1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}, events[-1:])
    live = []
    thread = threading.Thread(target=lambda: live.extend(watch(s, NS + "/configmaps?watch=1&fieldSelector=metadata.name%3Dlive", 10, lambda e: len(e) == 2)))
    thread.start()
    time.sleep(0.3)
    s.request("POST", NS + "/configmaps", configmap("live"))
    s.request("DELETE", NS + "/configmaps/live")
    thread.join()
    t.check(f"{on}: a watch is told as it happens", [e["type"] for e in live] == ["ADDED", "DELETED"], live)


def test_counter(t, s, on):
    """Many who add one to the same number, each with the version that it read: nothing is lost."""
    s.request("POST", NS + "/configmaps", configmap("counter", n="0"))
    workers, rounds = 8, 15

    def add():
        c = s.connect()
        for _ in range(rounds):
            while True:
                o = s.request("GET", NS + "/configmaps/counter", connection=c).json
                o["data"]["n"] = str(int(o["data"]["n"]) + 1)
                if s.request("PUT", NS + "/configmaps/counter", o, connection=c).status == 200:
                    break
        c.close()
    threads = [threading.Thread(target=add) for _ in range(workers)]
    for th in threads:
        th.start()
    for th in threads:
        th.join()
    n = s.request("GET", NS + "/configmaps/counter").json["data"]["n"]
    t.check(f"{on}: no update is lost", n == str(workers * rounds), n)


def test_forms(t, s, on):
    """The same object as JSON, YAML, protobuf, table and metadata; and what is not to be had."""
    s.request("POST", NS + "/configmaps", configmap("forms", a="b"))
    path = NS + "/configmaps/forms"
    y = s.request("GET", path, Accept="application/yaml")
    t.check(f"{on}: YAML", y.headers["Content-Type"] == "application/yaml" and y.body.startswith(b"apiVersion: v1\ndata:\n  a: b\n"), y)
    p = s.request("GET", path, Accept="application/vnd.kubernetes.protobuf")
    t.check(f"{on}: protobuf", p.body.startswith(b"k8s\0"), p)
    back = s.request("PUT", path, p.body, content_type="application/vnd.kubernetes.protobuf")
    t.check(f"{on}: protobuf is taken back", back.status == 200, back)
    table = s.request("GET", NS + "/configmaps", Accept="application/json;as=Table;v=v1;g=meta.k8s.io").json
    t.check(f"{on}: a table", table["kind"] == "Table" and [c["name"] for c in table["columnDefinitions"]] == ["Name", "Data", "Age"], table)
    m = s.request("GET", path, Accept="application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io").json
    t.check(f"{on}: metadata alone", m["kind"] == "PartialObjectMetadata" and "data" not in m, m)
    t.check(f"{on}: 406", s.request("GET", path, Accept="image/png").status == 406)
    t.check(f"{on}: 415", s.request("POST", NS + "/configmaps", "x", content_type="image/png").status == 415)
    s.request("POST", NS + "/configmaps", configmap("large", a="x" * 200000))
    g = s.request("GET", NS + "/configmaps/large", Accept_Encoding="gzip")
    t.check(f"{on}: large answers are compressed", g.headers["Content-Encoding"] == "gzip" and len(gzip.decompress(g.body)) > 200000, g.headers)
    big = s.request("POST", NS + "/configmaps", configmap("huge", a="x" * (4 << 20)))
    t.check(f"{on}: a body beyond 3 MiB is 413", big.status == 413 and big.json["reason"] == "RequestEntityTooLarge", big)


def test_restart(t, s, on):
    """What was acknowledged is there after a restart, with the same versions."""
    before = s.request("GET", "/api/v1/configmaps").json
    code = s.stop()
    s.start()
    after = s.request("GET", "/api/v1/configmaps").json
    t.check(f"{on}: it stops in good order", code == 0, code)
    t.check(f"{on}: everything is there after a restart", before["items"] == after["items"])
    # the server itself writes when it starts
    t.check(f"{on}: versions go on", int(after["metadata"]["resourceVersion"]) >= int(before["metadata"]["resourceVersion"]))


TESTS = [test_objects, test_finalizers, test_lists, test_watch, test_counter, test_forms, test_restart]


def suite(t, on, folder, *flags):
    with Server(os.path.join(folder, "server"), *flags) as s:
        make_namespace(s)
        for test in TESTS:
            test(t, s, on)


def test_sqlite(t):
    with Folder() as folder:
        suite(t, "sqlite", folder)


def test_etcd(t):
    with Folder() as folder:
        cluster = Etcd(os.path.join(folder, "etcd"), 3)
        if not cluster.program:
            t.skip("the same on etcd", "there is no etcd")
            return
        with cluster:
            suite(t, "etcd", folder, "--etcd-servers", cluster.endpoints)


def test_two_servers(t):
    """Two servers on one etcd: each sees what the other does; one is enough."""
    with Folder() as folder:
        cluster = Etcd(os.path.join(folder, "etcd"))
        if not cluster.program:
            t.skip("two servers on one etcd", "there is no etcd")
            return
        with cluster, Server(os.path.join(folder, "a"), "--etcd-servers", cluster.endpoints) as a, \
                Server(os.path.join(folder, "b"), "--etcd-servers", cluster.endpoints) as b:
            make_namespace(a)
            events = []
            thread = threading.Thread(target=lambda: events.extend(watch(b, NS + "/configmaps?watch=1&fieldSelector=metadata.name%3Dx", 10, lambda e: len(e) == 1)))
            thread.start()
            time.sleep(0.3)
            a.request("POST", NS + "/configmaps", configmap("x"))
            t.check("what one server wrote the other has at once", b.request("GET", NS + "/configmaps/x").status == 200)
            thread.join()
            t.check("a watcher of the other server sees it", [e["type"] for e in events] == ["ADDED"], events)
            one, two = (s.request("PUT", NS + "/configmaps/x", {**configmap("x", by=n), "metadata": {"name": "x", "resourceVersion": events[0]["object"]["metadata"]["resourceVersion"]}})
                        for s, n in ((a, "a"), (b, "b")))
            t.check("of two writes of the same version one wins", sorted((one.status, two.status)) == [200, 409], (one, two))
            a.kill()
            t.check("one server goes on alone", wait_until(lambda: b.request("POST", NS + "/configmaps", configmap("alone")).status == 201, 20))
            stored = cluster.ctl("get", "/registry/configmaps/t/alone", "--print-value-only")
            t.check("the key and value in etcd are Kubernetes'", stored.startswith(b"k8s\0"), stored)
            a.start()
            t.check("and the first one comes back", a.request("GET", NS + "/configmaps/alone").status == 200)


if __name__ == "__main__":
    tap.run([test_sqlite, test_etcd, test_two_servers])
