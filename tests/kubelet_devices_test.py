#!/usr/bin/env python3
"""Devices of a plugin that speaks Google's gRPC: the node offers them, pods get them and keep them over restarts, monitors see who has which.
Needs C8S, the program to test, with c8s-pod beside it, root, and Debian's python3-grpcio, which is unpacked."""
import json
import os
import queue
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import nodes  # noqa: E402
import peers  # noqa: E402
import tap  # noqa: E402
from cluster import wait_until  # noqa: E402

RESOURCE = "example.com/part"
LIMITS = {"resources": {"limits": {RESOURCE: "1"}}}


class Plugin:
    def __init__(self, folder, resource=RESOURCE):
        self.process = subprocess.Popen(["/usr/bin/python3", os.path.join(os.path.dirname(os.path.abspath(__file__)), "device_plugin.py"),
                                         folder, resource], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=peers.grpcio())
        self.lines, self.calls = queue.Queue(), []
        threading.Thread(target=self.read, daemon=True).start()
        self.answer("ready")

    def read(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put(["end"])

    def answer(self, what):
        """The next answer of that name; calls of the kubelet before it are kept."""
        while (line := self.lines.get(timeout=20))[0] != what:
            if line[0] == "end":
                raise RuntimeError("the plugin has ended")
            self.calls.append(line)
        return line[1]

    def do(self, *command, answer=None):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return self.answer(answer) if answer else None

    def resources(self):
        return self.do("resources", answer="resources")

    def close(self):
        self.process.stdin.close()
        self.process.wait(20)


def offered(n):
    status = n.get("/api/v1/nodes/" + nodes.NODE).json["status"]
    return status["capacity"].get(RESOURCE), status["allocatable"].get(RESOURCE)


def wait_offered(n, *what):
    wait_until(lambda: offered(n) == what, 20, f"the node to offer {what}")


def test_pods_get_devices(t, n, p):
    t.check("another version is refused", p.do("register", "v1alpha9", answer="register") ==
            'UNKNOWN: requested API version "v1alpha9" is not supported by kubelet. Supported version is ["v1beta1"]')
    p.do("devices", {"a": "Healthy", "b": "Healthy", "c": "Unhealthy"})
    t.check("the plugin registers", p.do("register", answer="register") == "")
    wait_offered(n, "3", "2")
    log = n.run("one", "sh", "-c", "echo $DEVICES; head -c 5 /from-plugin; test -c /dev/mine && echo mine", **LIMITS)
    t.check("a container has what the plugin says", log == "b\nLinuxmine\n", log)
    p.resources()
    t.check("the plugin was asked", p.calls == [["Allocate", ["b"]], ["PreStartContainer", ["b"]]], p.calls)

    n.create(n.make("keeps", **LIMITS))
    n.wait_ready("keeps")
    status = n.pod("keeps")["status"]["containerStatuses"][0].get("allocatedResourcesStatus")
    t.check("the status tells of the device", status == [{"name": RESOURCE, "resources": [{"resourceID": "b", "health": "Healthy"}]}], status)
    n.create(n.make("second", **LIMITS))
    n.wait_ready("second")
    t.check("monitors see who has which", p.resources() == {"keeps": {"c": ["b"]}, "second": {"c": ["a"]}}, p.resources())
    n.create(n.make("late", **LIMITS))
    status = n.wait_phase("late", "Failed")["status"]
    t.check("a pod that there is no device left for is refused", (status["reason"], status["message"]) == ("UnexpectedAdmissionError",
            f"Pod was rejected: Allocate failed due to requested number of devices unavailable for {RESOURCE}. Requested: 1, Available: 0, "
            "which is unexpected"), status)
    p.do("devices", {"a": "Healthy", "b": "Unhealthy", "c": "Unhealthy"})
    n.wait("keeps", lambda pod: pod["status"]["containerStatuses"][0]["allocatedResourcesStatus"][0]["resources"][0]["health"] == "Unhealthy",
           what="an unhealthy device")
    p.do("devices", {"a": "Healthy", "b": "Healthy", "c": "Healthy"})
    wait_offered(n, "3", "3")


def test_a_restart_of_the_kubelet(t, n, p):
    before = n.pod("keeps")["status"]["containerStatuses"][0]["containerID"]
    n.kill_kubelet()
    n.start_kubelet()
    wait_until(lambda: not os.path.exists(f"{n.root}/device-plugins/peer.sock"), 10, "the plugin's socket to go")
    t.check("the plugin registers again", p.do("register", answer="register") == "")
    wait_offered(n, "3", "3")
    wait_until(lambda: p.resources() == {"keeps": {"c": ["b"]}, "second": {"c": ["a"]}}, 10, "the same devices")
    pod = n.pod("keeps")
    t.check("the pod runs on", pod["status"]["phase"] == "Running" and
            pod["status"]["containerStatuses"][0]["containerID"] == before, pod["status"])
    n.delete("second")
    n.create(n.make("third", resources={"limits": {RESOURCE: "2"}}))
    n.wait_ready("third")
    got = p.resources()
    t.check("devices of pods that are gone come free", {k: {c: sorted(i) for c, i in v.items()} for k, v in got.items()} ==
            {"keeps": {"c": ["b"]}, "third": {"c": ["a", "c"]}}, got)


def test_the_end_of_a_plugin(t, n, p):
    p.close()
    wait_offered(n, "3", "0")
    t.check("the devices of a plugin that has ended are unhealthy", True)
    q = Plugin(f"{n.root}/device-plugins")
    q.do("devices", {"x": "Healthy"})
    q.do("info", f"{n.root}/plugins_registry/peer-reg.sock")
    t.check("a plugin registers by the folder", q.answer("NotifyRegistrationStatus") == {"1": 1})
    wait_offered(n, "1", "1")
    q.close()
    n.remove_all_pods()
    t.check("nothing is left of the pods", tap.wait_for(lambda: not n.leftovers(), 60), n.leftovers())


def main(t):
    why = nodes.missing() or peers.grpcio_missing()
    if why:
        return t.skip("devices of plugins", why)
    nodes.own_namespaces()
    with nodes.Node() as n:
        wait_until(lambda: os.path.exists(f"{n.root}/device-plugins/kubelet.sock"), 10, "the kubelet's socket")
        p = Plugin(f"{n.root}/device-plugins")
        try:
            for test in (test_pods_get_devices, test_a_restart_of_the_kubelet, test_the_end_of_a_plugin):
                test(t, n, p)
        finally:
            p.process.kill()


if __name__ == "__main__":
    tap.run([main])
