#!/usr/bin/env python3
"""What the API server adds to an object, warns about or refuses although the object is valid."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402
from cluster import Folder, Server  # noqa: E402

NS = "/api/v1/namespaces/t"
CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/t/resourceclaims"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"


def of(api_version, kind, name, **fields):
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def pod(name, **spec):
    return of("v1", "Pod", name, spec={"containers": [{"name": "c", "image": "i"}], **spec})


def test_runtime_class(t, s):
    toleration = {"key": "k", "operator": "Exists"}
    s.request("POST", CLASSES, of("node.k8s.io/v1", "RuntimeClass", "vm", handler="vm", overhead={"podFixed": {"memory": "64Mi"}},
                                  scheduling={"nodeSelector": {"vm": "yes"}, "tolerations": [toleration]}))
    a = s.request("POST", NS + "/pods", pod("vm", runtimeClassName="vm", nodeSelector={"a": "b"},
                                            tolerations=[{"key": "k", "operator": "Equal", "value": "v"}]))
    t.check("a pod has the overhead of its class", a.status == 201 and a.json["spec"]["overhead"] == {"memory": "64Mi"}, a)
    t.check("and runs where the class can", a.json["spec"]["nodeSelector"] == {"a": "b", "vm": "yes"}, a)
    kept = [x for x in a.json["spec"]["tolerations"] if x.get("key") == "k"]
    t.check("of two tolerations the wider one is kept", kept == [toleration], a)
    for name, spec, why in (
            ("no class of that name", {"runtimeClassName": "none"}, 'pod rejected: RuntimeClass "none" not found'),
            ("another overhead", {"runtimeClassName": "vm", "overhead": {"memory": "1Gi"}},
             "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"),
            ("an overhead without a class", {"overhead": {"memory": "1Gi"}},
             "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"),
            ("another node", {"runtimeClassName": "vm", "nodeSelector": {"vm": "no"}},
             "conflict: runtimeClass.scheduling.nodeSelector[vm] = yes; pod.spec.nodeSelector[vm] = no")):
        b = s.request("POST", NS + "/pods", pod("x", **spec))
        t.check(f"{name} is refused", b.status == 403 and b.json["message"] == f'pods "x" is forbidden: {why}', b)


def test_admin_access(t, s):
    claim = of("resource.k8s.io/v1", "ResourceClaim", "x",
               spec={"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c", "adminAccess": True}}]}})
    a = s.request("POST", CLAIMS, claim)
    t.check("access to devices in use is refused", a.status == 422 and
            a.json["details"]["causes"][0]["field"] == "spec.devices.requests[0].adminAccess", a)
    s.request("PATCH", NS, {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}})
    t.check("but not where the namespace allows it", s.request("POST", CLAIMS, claim).status == 201)


def test_priority_classes(t, s):
    a = s.request("DELETE", PRIORITIES + "/system-node-critical")
    t.check("the system's classes stay", a.status == 403 and
            a.json["message"].endswith("this is a system priority class and cannot be deleted"), a)


def test_dry_run_version(t, s):
    new = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "rv", "resourceVersion": "5"}}
    t.check("a new object has no version", s.request("POST", NS + "/configmaps", new).status == 500)
    t.check("a dry run does not mind", s.request("POST", NS + "/configmaps?dryRun=All", new).status == 201)


def test_daemon_set_metadata(t, s):
    path = "/apis/apps/v1/namespaces/t/daemonsets"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    whole = s.request("POST", path, of("apps/v1", "DaemonSet", "d", spec={"selector": {"matchLabels": {"a": "b"}}, "template": template}))
    part = s.request("GET", path + "/d", accept="application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
    t.check("the generation of a template is an annotation of the whole object only",
            list(whole.json["metadata"]["annotations"]) == ["deprecated.daemonset.template.generation"] and
            "annotations" not in part.json["metadata"], part)


def test_warnings(t, s):
    a = s.request("POST", NS + "/pods", pod("warned", imagePullSecrets=[{}]))
    t.check("a warning is a header", a.headers.get_all("Warning") == ['299 - "spec.imagePullSecrets[0].name: invalid empty name \\"\\""'],
            a.headers)
    b = s.request("POST", NS + "/pods?dryRun=All", pod("x", imagePullSecrets=[{}], restartPolicy="?"))
    t.check("an object that is refused has none", b.status == 422 and not b.headers.get_all("Warning"), b)


def test_rules(t):
    with Folder() as folder, Server(os.path.join(folder, "server")) as s:
        s.request("POST", "/api/v1/namespaces", of("v1", "Namespace", "t"))
        s.request("POST", NS + "/serviceaccounts", of("v1", "ServiceAccount", "default"))
        for test in (test_runtime_class, test_admin_access, test_priority_classes, test_dry_run_version, test_daemon_set_metadata,
                     test_warnings):
            test(t, s)


if __name__ == "__main__":
    tap.run([test_rules])
