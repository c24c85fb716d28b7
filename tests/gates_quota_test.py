#!/usr/bin/env python3
"""Quotas as users meet them: exact under any number of creators, on one server and on two. Needs C8S, the program to test."""
import collections
import concurrent.futures
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster  # noqa: E402
import tap  # noqa: E402

CREATORS = 64


def make(server, path, kind, name, version="v1", **more):
    return server.request("POST", path, {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **more})


def space(server, name):
    """A namespace in which pods can be made."""
    r = make(server, "/api/v1/namespaces", "Namespace", name)
    if r.status != 201:
        raise RuntimeError(r)
    make(server, f"/api/v1/namespaces/{name}/serviceaccounts", "ServiceAccount", "default")
    return f"/api/v1/namespaces/{name}"


def quota(server, ns, name, hard, used=None, **spec):
    """A quota with the status that a controller gives it."""
    r = make(server, ns + "/resourcequotas", "ResourceQuota", name, spec={"hard": hard, **spec})
    if r.status == 201:
        r = server.request("PATCH", f"{ns}/resourcequotas/{name}/status",
                           {"status": {"hard": hard, "used": {k: "0" for k in hard} | (used or {})}})
    if r.status != 200:
        raise RuntimeError(r)


def used(server, ns, name):
    return server.request("GET", f"{ns}/resourcequotas/{name}").json["status"]["used"]


def pod(cpu=None, **spec):
    resources = {"requests": {"cpu": cpu}} if cpu else {}
    return {"automountServiceAccountToken": False, "containers": [{"name": "c", "image": "x", "resources": resources}], **spec}


def together(calls):
    """All calls at once, one thread each; their answers."""
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return [f.result() for f in [pool.submit(c) for c in calls]]


def statuses(answers):
    return dict(collections.Counter(a.status for a in answers))


def creators(servers, ns, kind, path, body, name=lambda i: f"p{i}"):
    def one(i):
        server = servers[i % len(servers)]
        return lambda: make(server, f"{ns}/{path}", kind, name(i), **body)
    return together([one(i) for i in range(CREATORS)])


def crowd(t, servers, label):
    """64 creators: exactly as many as fit."""
    server = servers[0]
    ns = space(server, "crowd")
    quota(server, ns, "q", {"pods": "20"})
    quota(server, ns, "r", {"count/pods": "1k", "secrets": "7"})
    answers = creators(servers, ns, "Pod", "pods", {"spec": pod()})
    t.check(f"{label}: pods: 20 of 64", statuses(answers) == {201: 20, 403: 44}, statuses(answers))
    t.check(f"{label}: the others are told why", all(
        a.json["message"].endswith("exceeded quota: q, requested: pods=1, used: pods=20, limited: pods=20")
        for a in answers if a.status == 403), [a for a in answers if a.status == 403][:1])
    counts = used(server, ns, "q")["pods"], used(server, ns, "r")["count/pods"]
    t.check(f"{label}: both quotas say so", counts == ("20", "20"), counts)
    t.check(f"{label}: and so many are there", len(server.request("GET", ns + "/pods").json["items"]) == 20)

    ns = space(server, "cpu")
    quota(server, ns, "q", {"requests.cpu": "2"})
    answers = creators(servers, ns, "Pod", "pods", {"spec": pod("300m")})
    t.check(f"{label}: cpu: 6 of 64", statuses(answers) == {201: 6, 403: 58}, statuses(answers))
    t.check(f"{label}: of the cpu 1.8 are used", used(server, ns, "q") == {"requests.cpu": "1800m"}, used(server, ns, "q"))

    ns = space(server, "same")
    quota(server, ns, "q", {"configmaps": "100"})
    answers = creators(servers, ns, "ConfigMap", "configmaps", {}, name=lambda i: f"c{i % 4}")
    t.check(f"{label}: of 64 with 4 names 4 are made", statuses(answers) == {201: 4, 409: 60}, statuses(answers))
    t.check(f"{label}: what was not made is not charged", used(server, ns, "q") == {"configmaps": "4"}, used(server, ns, "q"))


def one_server(t):
    with cluster.Folder() as folder, cluster.Server(folder) as server:
        crowd(t, [server], "one server")
        updates(t, server)
        scopes(t, server)
        dry_run(t, server)
        status(t, server)
        devices(t, server)


def two_servers(t):
    try:
        etcd = cluster.Etcd("")
    except RuntimeError as e:
        t.skip("two servers", str(e))
        return
    with cluster.Folder() as folder:
        etcd.folder = os.path.join(folder, "etcd")
        with etcd, cluster.Server(os.path.join(folder, "a"), "--etcd-servers", etcd.endpoints) as a, \
                cluster.Server(os.path.join(folder, "b"), "--etcd-servers", etcd.endpoints) as b:
            crowd(t, [a, b], "two servers")


def updates(t, server):
    ns = space(server, "updates")
    quota(server, ns, "q", {"services.nodeports": "2", "services": "5"})
    ports = [{"name": f"p{i}", "port": 80 + i} for i in range(3)]
    make(server, ns + "/services", "Service", "s", spec={"ports": ports[:1]})
    change = lambda **spec: server.request("PATCH", ns + "/services/s", {"spec": spec})  # noqa: E731
    t.check("a service that gets node ports is charged for them", change(type="NodePort").status == 200 and
            used(server, ns, "q") == {"services.nodeports": "1", "services": "1"}, used(server, ns, "q"))
    t.check("and for more of them", change(ports=ports[:2]).status == 200 and used(server, ns, "q")["services.nodeports"] == "2")
    r = change(ports=ports)
    t.check("until there are too many", r.status == 403 and "exceeded quota: q, requested: services.nodeports=1, used: "
            "services.nodeports=2, limited: services.nodeports=2" in r.json["message"], r)
    t.check("to use less is never refused, nor charged", change(ports=ports[:1]).status == 200 and
            used(server, ns, "q")["services.nodeports"] == "2")

    ns = space(server, "resize")
    quota(server, ns, "q", {"requests.cpu": "1"})
    make(server, ns + "/pods", "Pod", "p", spec=pod("400m"))
    resize = lambda cpu: server.request("PATCH", ns + "/pods/p/resize", {"spec": {"containers": [  # noqa: E731
        {"name": "c", "resources": {"requests": {"cpu": cpu}}}]}}, content_type="application/strategic-merge-patch+json")
    r = resize("900m")
    t.check("a pod that grows is charged for the difference", r.status == 200 and used(server, ns, "q") == {"requests.cpu": "900m"}, r)
    r = resize("1100m")
    t.check("as far as there is room", r.status == 403 and "requested: requests.cpu=200m, used: requests.cpu=900m" in r.json["message"], r)


def scopes(t, server):
    ns = space(server, "scopes")
    make(server, "/apis/scheduling.k8s.io/v1/priorityclasses", "PriorityClass", "high", "scheduling.k8s.io/v1", value=1000)
    quota(server, ns, "best", {"pods": "1"}, scopes=["BestEffort"])
    quota(server, ns, "ends", {"pods": "1"}, scopes=["Terminating"])
    quota(server, ns, "high", {"pods": "1"}, scopeSelector={"matchExpressions": [
        {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]})
    counts = lambda: [used(server, ns, q)["pods"] for q in ("best", "ends", "high")]  # noqa: E731
    create = lambda name, **spec: make(server, ns + "/pods", "Pod", name, spec=pod(**spec))  # noqa: E731
    t.check("a pod in one scope", create("a").status == 201 and counts() == ["1", "0", "0"], counts())
    r = create("b", activeDeadlineSeconds=5)
    t.check("a pod in two: one is full, neither is charged", r.status == 403 and "exceeded quota: best" in r.json["message"] and
            counts() == ["1", "0", "0"], (r, counts()))
    t.check("in two others", create("c", cpu="1", activeDeadlineSeconds=5, priorityClassName="high").status == 201 and
            counts() == ["1", "1", "1"], counts())
    r = server.request("PATCH", ns + "/pods/a", {"spec": {"activeDeadlineSeconds": 9}})
    t.check("a pod cannot move into a full scope", r.status == 403 and "exceeded quota: ends, requested: pods=1" in r.json["message"], r)
    t.check("in none", create("d", cpu="1").status == 201 and counts() == ["1", "1", "1"], counts())


def dry_run(t, server):
    ns = space(server, "dry")
    quota(server, ns, "q", {"count/deployments.apps": "1", "secrets": "1"})
    dry = make(server, ns + "/secrets?dryRun=All", "Secret", "s")
    t.check("a dry run is not charged", dry.status == 201 and used(server, ns, "q")["secrets"] == "0")
    make(server, ns + "/secrets", "Secret", "s")
    t.check("but refused", make(server, ns + "/secrets?dryRun=All", "Secret", "t").status == 403)
    labels = {"matchLabels": {"a": "b"}}
    spec = {"selector": labels, "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod()}}
    path = "/apis/apps/v1/namespaces/dry/deployments"
    codes = [make(server, path, "Deployment", n, "apps/v1", spec=spec).status for n in "ab"]
    t.check("everything can be counted", codes == [201, 403] and used(server, ns, "q")["count/deployments.apps"] == "1", codes)
    r = server.request("POST", ns + "/secrets", {"metadata": {"name": "Not a name"}})
    t.check("what is not valid is refused for that", r.status == 422, r)


def status(t, server):
    ns = space(server, "status")
    make(server, ns + "/resourcequotas", "ResourceQuota", "q", spec={"hard": {"pods": "1", "configmaps": "0"}})
    t.check("a quota that nobody has measured limits nothing", make(server, ns + "/configmaps", "ConfigMap", "a").status == 201)
    server.request("PATCH", ns + "/resourcequotas/q/status", {"status": {"hard": {"pods": "1", "configmaps": "0"}}})
    r = make(server, ns + "/configmaps", "ConfigMap", "b")
    t.check("one that was half measured is not known", r.status == 403 and
            r.json["message"] == 'configmaps "b" is forbidden: status unknown for quota: q, resources: configmaps', r)


def devices(t, server):
    ns = space(server, "devices")
    api, group = "/apis/resource.k8s.io/v1", "resource.k8s.io/v1"
    make(server, api + "/deviceclasses", "DeviceClass", "gpu", group, spec={"extendedResourceName": "example.com/gpu"})
    name = "gpu.deviceclass.resource.k8s.io/devices"
    quota(server, ns, "q", {name: "4", "count/resourceclaims.resource.k8s.io": "9", "requests.example.com/gpu": "3"})

    def claim(n, count):
        return make(server, api + "/namespaces/devices/resourceclaims", "ResourceClaim", n, group, spec={"devices": {"requests": [
            {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}}]}})
    r = claim("a", 3)
    t.check("claims count by class, and as what pods ask for", r.status == 201 and used(server, ns, "q") == {
        name: "3", "count/resourceclaims.resource.k8s.io": "1", "requests.example.com/gpu": "3"}, (r, used(server, ns, "q")))
    r = claim("b", 2)
    t.check("not more than that", r.status == 403 and f"requested: {name}=2,requests.example.com/gpu=2" in r.json["message"], r)


def configured(t):
    """Quotas that must be there, and events that must not be too many."""
    with cluster.Folder() as folder:
        config = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": [
            {"name": "ResourceQuota", "configuration": {
                "apiVersion": "apiserver.config.k8s.io/v1", "kind": "ResourceQuotaConfiguration", "limitedResources": [
                    {"resource": "pods", "matchScopes": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]},
                    {"resource": "secrets", "matchContains": ["count/secrets"]}]}},
            {"name": "EventRateLimit", "configuration": {
                "apiVersion": "eventratelimit.admission.k8s.io/v1alpha1", "kind": "Configuration", "limits": [
                    {"type": "Namespace", "qps": 1, "burst": 3, "cacheSize": 10}, {"type": "User", "qps": 1, "burst": 100}]}}]}
        path = os.path.join(folder, "admission.json")
        with open(path, "w") as f:
            json.dump(config, f)
        with cluster.Server(os.path.join(folder, "s"), "--admission-control-config-file", path, "--enable-admission-plugins",
                            "EventRateLimit") as server:
            limited(t, server)
            events(t, server)


def limited(t, server):
    ns = space(server, "limited")
    make(server, "/apis/scheduling.k8s.io/v1/priorityclasses", "PriorityClass", "high", "scheduling.k8s.io/v1", value=1000)
    create = lambda n: make(server, ns + "/pods", "Pod", n, spec=pod(priorityClassName="high"))  # noqa: E731
    r = create("a")
    t.check("a class that needs a quota", r.status == 500 and
            r.json["message"] == "insufficient quota to match these scopes: [{PriorityClass In [high]}]", r)
    r = make(server, ns + "/secrets", "Secret", "s")
    t.check("a resource that needs a quota", r.status == 403 and
            r.json["message"] == 'secrets "s" is forbidden: insufficient quota to consume: count/secrets', r)
    quota(server, ns, "q", {"pods": "1"}, scopeSelector={"matchExpressions": [
        {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]})
    quota(server, ns, "r", {"count/secrets": "1"})
    codes = [create("a").status, create("b").status, make(server, ns + "/secrets", "Secret", "s").status]
    t.check("and has one", codes == [201, 403, 201], codes)


def events(t, server):
    ns = space(server, "events")

    def event(i, query=""):
        return make(server, f"{ns}/events{query}", "Event", f"e{i}", involvedObject={"kind": "Pod", "namespace": "events", "name": "x"})
    codes = [event(i).status for i in range(3)]
    r = event(3)
    t.check("a burst of events is heard, and no more", codes == [201] * 3 and r.status == 429, (codes, r))
    t.check("with a reason", r.json.get("message") == "Too many requests: limit reached on type Namespace for key events" and
            r.json.get("reason") == "TooManyRequests", r)
    t.check("a dry run costs nothing", event(4, "?dryRun=All").status == 201)
    cluster.wait_until(lambda: event(5).status == 201, 10, "an event to be heard again")
    t.check("after a while they are heard again", True)


if __name__ == "__main__":
    tap.run([one_server, two_servers, configured])
