#!/usr/bin/env python3
"""Requests at the edges: who may ask, what is too much, what happens when others are faster."""
import json
import os
import threading
import time

import tap
from cluster import Etcd, Folder, Server

NS = "/api/v1/namespaces/default"


def obj(kind, name, **more):
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **more}


def pod(name, **spec):
    return obj("Pod", name, spec={"containers": [{"name": "c", "image": "i"}], **spec})


def prepare(s):
    s.request("POST", NS + "/serviceaccounts", obj("ServiceAccount", "default"))
    return s


def timed(f):
    begun = time.monotonic()
    return f(), time.monotonic() - begun


def test_strangers(t, s):
    for path in ("/healthz", "/livez", "/readyz", "/version"):
        t.check(f"anybody may see {path}", s.request("GET", path, token=None).status == 200)
        t.check(f"and do nothing else with it: {path}", s.request("POST", path, {}, token=None).status == 403)
    for path in ("/api", "/metrics", "/healthz/ping", "/debug/pprof", NS + "/pods", "/openapi/v2"):
        t.check(f"strangers do not see {path}", s.request("GET", path, token=None).status == 403)


def test_impersonation(t, s):
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}

    def groups(user, *asked):
        c = s.connect()
        c.putrequest("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews")
        body = json.dumps(review).encode()
        for name, value in [("Authorization", "Bearer admin-token"), ("Content-Type", "application/json"),
                            ("Content-Length", str(len(body))), ("Impersonate-User", user)] + [("Impersonate-Group", g) for g in asked]:
            c.putheader(name, value)
        c.endheaders(body)
        return json.loads(c.getresponse().read()).get("status", {}).get("userInfo", {}).get("groups")
    t.check("who is impersonated is authenticated", groups("ann", "dev") == ["dev", "system:authenticated"], groups("ann", "dev"))
    t.check("once", groups("ann", "system:authenticated") == ["system:authenticated"])
    account = groups("system:serviceaccount:default:x")
    t.check("a service account has its groups",
            account == ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"], account)


def test_watches(t, s):
    path = "/api/v1/watch/namespaces/default/configmaps"
    for method in ("POST", "PUT", "DELETE"):
        t.check(f"a watch is a GET, not a {method}", s.request(method, path, {}).status == 405)
    for seconds in ("-1", "-9223372036854775808"):
        a, took = timed(lambda n=seconds: s.request("GET", f"{NS}/configmaps?watch=1&timeoutSeconds={n}", timeout=10))
        t.check(f"a watch of {seconds} seconds ends at once", a.status == 200 and took < 5, took)


def test_collections(t, s):
    for i in range(40):
        s.request("POST", NS + "/configmaps", obj("ConfigMap", f"c{i:02}"))
    a = s.request("DELETE", NS + "/configmaps?limit=10")
    names = [i["metadata"]["name"] for i in a.json["items"]]
    left = [i["metadata"]["name"] for i in s.request("GET", NS + "/configmaps").json["items"]]
    t.check("the answer has what is deleted", names == [f"c{i:02}" for i in range(10)] and not set(names) & set(left), a)
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "other"}}
    for _ in range(3): # the list that was to be the answer is not sent
        a = s.request("DELETE", NS + "/configmaps", options)
        t.check("the first failure ends it", a.status == 409 and a.json["reason"] == "Conflict", a)
    a = s.request("DELETE", NS + "/configmaps?dryRun=All")
    t.check("a dry run keeps all", len(a.json["items"]) >= 30 and len(s.request("GET", NS + "/configmaps").json["items"]) >= 30)
    s.request("DELETE", NS + "/configmaps")


def test_gone(t, s):
    """An update is meant for the object that its author has seen."""
    old = s.request("POST", NS + "/configmaps", obj("ConfigMap", "gone")).json
    s.request("DELETE", NS + "/configmaps/gone")
    a = s.request("PUT", NS + "/configmaps/gone", old)
    t.check("an update of what is gone is a conflict", a.status == 409 and a.json["message"].endswith(
        f"Precondition failed: UID in precondition: {old['metadata']['uid']}, UID in object meta: "), a)
    del old["metadata"]["uid"]
    t.check("unless it does not say what it means", s.request("PUT", NS + "/configmaps/gone", old).status == 404)
    s.request("POST", NS + "/configmaps", obj("ConfigMap", "gone"))
    a = s.request("PUT", NS + "/configmaps/gone", old)
    t.check("nor does it change the one that came after it", a.status == 409 and "the object has been modified" in a.json["message"], a)


def test_names(t, s):
    both = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "both", "generateName": "b-"}}
    s.request("POST", NS + "/configmaps", both)
    a = s.request("POST", NS + "/configmaps", both)
    t.check("a name that was not to be had says so",
            a.status == 409 and a.json["details"].get("retryAfterSeconds") == 1 and a.headers["Retry-After"] == "1" and
            a.json["message"] == 'configmaps "both" already exists, the server was not able to generate a unique name for the object', a)


def test_too_much(t, s):
    """What takes the square of its number, or of its size, would stop the server for everybody."""
    owners = [{"apiVersion": "v1", "kind": "X", "name": f"n{i}", "uid": ""} for i in range(40000)]
    owned = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owned", "ownerReferences": owners}}
    a, took = timed(lambda: s.request("POST", NS + "/configmaps", owned, timeout=60))
    t.check("many owners", a.status in (201, 422) and took < 20, (a.status, took))
    ports = [{"port": 80, "protocol": "TCP"}] * 60000
    service = obj("Service", "wide", spec={"type": "NodePort", "ports": ports})
    a, took = timed(lambda: s.request("POST", NS + "/services", service, timeout=60))
    t.check("many ports", a.status == 422 and "spec.ports: Too many" in a.json["message"] and took < 20, (a.status, took))
    s.request("POST", NS + "/pods", pod("bound"))
    labels = {f"k{i}": "" for i in range(100000)}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "bound", "annotations": labels}, "target": {"name": "n"}}
    a, took = timed(lambda: s.request("POST", NS + "/pods/bound/binding", binding, timeout=60))
    t.check("many annotations of a binding", a.status in (201, 413, 422, 500) and took < 20, (a.status, took))
    t.check("and the server is well", s.request("GET", "/readyz").status == 200)


def test_privileged(t, s):
    asks = pod("root")
    asks["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    a = s.request("POST", NS + "/pods", asks)
    t.check("containers are not privileged unless --allow-privileged says so",
            a.status == 422 and "securityContext.privileged: Forbidden: disallowed by cluster policy" in a.json["message"], a)


def test_one_server(t):
    with Folder() as folder:
        s = prepare(Server(os.path.join(folder, "a")).start())
        for test in (test_strangers, test_impersonation, test_watches, test_collections, test_gone, test_names, test_too_much, test_privileged):
            test(t, s)
        t.check("it stops in good order", s.stop() == 0)
        s = Server(os.path.join(folder, "b"), "--runtime-config=scheduling.k8s.io/v1=false,certificates.k8s.io/v1beta1=true").start()
        a = prepare(s).request("POST", NS + "/pods", pod("p"))
        t.check("pods without priority classes", a.status == 201, a)
        a = s.request("GET", "/apis/certificates.k8s.io/v1beta1/clustertrustbundles")
        t.check("a resource whose feature gate is off", a.status == 404, a)
        s.stop()


def test_two_servers(t):
    """What one server has made, the other one knows when it is asked next."""
    with Folder() as folder, Etcd(os.path.join(folder, "etcd")) as etcd:
        one, two = (Server(os.path.join(folder, n), "--etcd-servers", etcd.endpoints).start() for n in "ab")
        wrong = []
        for i in range(30):
            one.request("POST", "/api/v1/namespaces", obj("Namespace", f"n{i}"))
            one.request("POST", f"/api/v1/namespaces/n{i}/serviceaccounts", obj("ServiceAccount", "default"))
            a = two.request("POST", f"/api/v1/namespaces/n{i}/pods", pod("p"))
            if a.status != 201:
                wrong.append(a)
        t.check("namespaces and accounts of another server", not wrong, wrong[:1])
        one.request("POST", NS + "/configmaps", obj("ConfigMap", "count", data={"n": "0"}))

        def add(s):
            for _ in range(20):
                while True:
                    now = s.request("GET", NS + "/configmaps/count").json
                    now["data"]["n"] = str(int(now["data"]["n"]) + 1)
                    if s.request("PUT", NS + "/configmaps/count", now).status == 200:
                        break
        threads = [threading.Thread(target=add, args=(s,)) for s in (one, two)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        n = two.request("GET", NS + "/configmaps/count").json["data"]["n"]
        t.check("no update is lost between two servers", n == "40", n)
        for s in (one, two):
            s.stop()


if __name__ == "__main__":
    tap.run([test_one_server, test_two_servers])
