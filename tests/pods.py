"""What tests of whole pods have in common: many pods at the same time on one node of tests/nodes.py, each with a script whose output tells
what it saw. The first argument of such a test is the runtime below the kubelet: c8s, or containerd."""
import os
import signal
import sys

import nodes
import tap

RUNTIME = sys.argv[1] if len(sys.argv) > 1 else "c8s"
BUILT_IN = RUNTIME == "c8s"


def same(t, what, is_, wanted):
    t.check(what, is_ == wanted, f"{is_!r}\nwanted: {wanted!r}")


def ended(pod):
    return pod["status"].get("phase") in ("Succeeded", "Failed")


def create(n, name, script="true", spec=None, labels=None, annotations=None, **container):
    """A pod whose script runs once."""
    pod = n.make(name, ("sh", "-c", script), spec={"restartPolicy": "Never", **(spec or {})}, **container)
    pod["metadata"]["labels"].update(labels or {})
    pod["metadata"]["annotations"] = annotations or {}
    return n.create(pod)


def finish(n, name, seconds=40):
    """The output of a pod that ends."""
    n.seen.wait(name, ended, seconds, "its end")
    return n.output(name)


def once(n, name, script, *args, **more):
    create(n, name, script, *args, **more)
    return finish(n, name)


def waiting(n, name, reason, seconds=40):
    """The message of a container that waits for this reason."""
    def states(pod):
        return [c["state"].get("waiting", {}) for c in pod["status"].get("containerStatuses", [])]
    pod = n.seen.wait(name, lambda p: any(s.get("reason") == reason for s in states(p)), seconds, reason)
    return next(s.get("message") for s in states(pod) if s.get("reason") == reason)


def end_of(n, name, seconds=40):
    """Phase, reason and message of a pod that has ended."""
    status = n.seen.wait(name, ended, seconds, "its end")["status"]
    return [status.get(key) for key in ("phase", "reason", "message")]


def started(n, *names):
    return [n.seen.wait(name, lambda p: p["status"].get("phase") == "Running", 40, "Running") for name in names]


def amounts(requests=None, limits=None):
    return {"resources": {**({"requests": requests} if requests else {}), **({"limits": limits} if limits else {})}}


def group_of(n, pod, container=False):
    """Where the control group of a pod or of its container is, below that of the node."""
    tier = {"Guaranteed": ""}.get(pod["status"]["qosClass"], "/" + pod["status"]["qosClass"].lower())
    path = f"{n.cgroup}/kubepods{tier}/pod{pod['metadata']['uid']}"
    return path + "/" + pod["status"]["containerStatuses"][0]["containerID"].split("//")[1] if container else path


def rejected(reason, message):
    return ["Failed", reason, "Pod was rejected: " + message]


def put(n, kind, name, **members):
    r = n.server.request("POST", f"/api/v1/namespaces/default/{kind}", {"metadata": {"name": name}, **members})
    assert r.status == 201, r
    return r.json


def leave_nothing(t, n):
    n.remove_all_pods()
    left = tap.wait_for(lambda: not n.leftovers(), 15) or n.leftovers()
    t.check("nothing is left of the pods", left is True, left)


def run(what, tests, after=(), prepare=None, **node):
    """tests at the same time, on a node; after: one after the other, when they have ended."""
    t = tap.Tap()
    why = nodes.missing(RUNTIME)
    if why:
        t.skip(what, why)
        t.close()
    os.umask(0o022)
    nodes.own_namespaces()
    with nodes.Node(RUNTIME, **node) as n:
        n.host = os.path.join(n.folder, "host")
        os.makedirs(n.host)
        n.seen = n.watch()
        if prepare:
            prepare(n)
        nodes.together(t, tests, n)
        for test in after or (leave_nothing,):
            case = nodes.Case(test)
            case.run(n)
            for found in case.found:
                t.check(*found)
        if not t.failed:
            n.kill_kubelet(signal.SIGTERM)
            t.check("the kubelet ends in good order", n.process.returncode == 0, f"{n.process.returncode}\n{n.said()[-6000:]}")
        else:
            print("# " + n.said()[-8000:].replace("\n", "\n# "))
    t.close()
