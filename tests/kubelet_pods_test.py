#!/usr/bin/env python3
"""The life of pods as people see it: started, probed, restarted, ended, in the order and at the times that they asked for. All at the same time on
one node. Needs C8S, the program to test, with c8s-pod beside it, and root. Arguments: the runtime below the kubelet, c8s or containerd."""
import base64
import http.client
import http.server
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import images  # noqa: E402
import nodes  # noqa: E402
import peers  # noqa: E402
import tap  # noqa: E402
from cluster import free_port, wait_until  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
QUICK = {"periodSeconds": 1, "timeoutSeconds": 10 * nodes.SLOW}  # on a machine with much to do, a command may take a while


class World:
    """The node, everything that happened to its pods, and a folder for each pod where the test sees what its containers do."""

    def __init__(self, n):
        self.n, self.w = n, n.watch()
        self.shared = os.path.join(n.folder, "shared")

    def folder(self, name):
        path = os.path.join(self.shared, name)
        os.makedirs(path, exist_ok=True)
        return path

    def touch(self, name, file):
        with open(os.path.join(self.folder(name), file), "w"):
            pass

    def remove(self, name, file):
        os.unlink(os.path.join(self.folder(name), file))

    def read(self, name, file):
        path = os.path.join(self.folder(name), file)
        return open(path).read() if os.path.exists(path) else ""

    def is_up(self, name):
        """Until the script of a pod has come so far: signals find it prepared."""
        wait_until(lambda: os.path.exists(os.path.join(self.folder(name), "up")), 30, f"the script of {name}")

    def container(self, command, name="c", **more):
        """command: a script, in which /v is the folder of the pod."""
        return {"name": name, "image": self.n.image, "command": ["sh", "-c", command], "volumeMounts": [{"name": "v", "mountPath": "/v"}], **more}

    def make(self, name, command="sleep 1000", spec=None, **more):
        spec = {"volumes": [{"name": "v", "hostPath": {"path": self.folder(name)}}], "containers": [self.container(command, **more)], **(spec or {})}
        return self.n.create(self.n.make(name, spec=spec))

    def run(self, name, command="sleep 1000", spec=None, **more):
        self.make(name, command, spec, **more)
        return self.w.ever(name, ready, what="ready")

    def delete(self, name, **options):
        """The seconds that it took until the pod was gone."""
        begin = time.monotonic()
        r = self.n.server.request("DELETE", "/api/v1/namespaces/default/pods/" + name, options)
        if r.status not in (200, 202):
            raise RuntimeError(r)
        self.w.gone(name)
        return time.monotonic() - begin


def condition(pod, kind):
    return next((c for c in pod["status"].get("conditions", []) if c["type"] == kind), {})


def ready(pod):
    return condition(pod, "Ready").get("status") == "True"


def status(pod, name="c", kind="containerStatuses"):
    return next((c for c in pod["status"].get(kind, []) if c["name"] == name), {})


def waiting(pod, name="c"):
    return status(pod, name).get("state", {}).get("waiting", {})


def restarts(pod):
    return status(pod).get("restartCount", 0)


def phase(*wanted):
    return lambda pod: pod["status"].get("phase") in wanted


# ---- restarts and ends ----

def test_crash(t, w):
    """The first restart comes at once, the second after 10 seconds."""
    w.make("crash", "cut=$(cat /proc/uptime); echo ${cut% *} >>/v/times; exit 3")
    pod = w.w.ever("crash", lambda p: waiting(p).get("reason") == "CrashLoopBackOff")
    uid = pod["metadata"]["uid"]
    later = "" if nodes.SLOW == 1 else "|20s|40s"  # the first one may be over before it has ended again
    t.check("a container that ends again waits", re.fullmatch(rf"back-off (10s{later}) restarting failed container=c pod=crash_default\({uid}\)",
                                                             waiting(pod)["message"]), waiting(pod))
    t.check("the pod runs, but is not ready", pod["status"]["phase"] == "Running" and condition(pod, "Ready")["reason"] == "ContainersNotReady" and
            condition(pod, "Ready")["message"] == "containers with unready status: [c]", pod["status"])
    pod = w.w.ever("crash", lambda p: restarts(p) == 2)
    end = status(pod)["lastState"]["terminated"]
    t.check("its last end is told", (end["exitCode"], end["reason"]) == (3, "Error"), end)
    wait_until(lambda: len(w.read("crash", "times").split()) >= 3, what="the third start")
    times = [float(x) for x in w.read("crash", "times").split()]
    waits = [restarts(p) for p in w.w.pods["default", "crash"] if waiting(p).get("reason") == "CrashLoopBackOff"]
    t.check("the first restart comes without a back-off", set(waits) == {1} if nodes.SLOW == 1 else 0 not in waits, waits)
    t.check("the second after ten seconds", 9.5 < times[2] - times[1] < 25 * nodes.SLOW, times)
    w.w.event("crash", "BackOff", f"Back-off restarting failed container c in pod crash_default({uid})")
    out = w.n.kubectl("get", "pod", "crash", "--no-headers").stdout
    t.check("kubectl shows it", re.match(rf"crash +./1 +(Running|CrashLoopBackOff|Error) +{'2' if nodes.SLOW == 1 else '[2-9]'} \(\d+s ago\)", out), out)


def test_restart_policies(t, w):
    for name, policy, command in (
            ("never-0", "Never", "exit 0"), ("never-1", "Never", "exit 1"), ("on-failure", "OnFailure", "exit 0"),
            ("on-failure-1", "OnFailure", "test -e /v/x && exit 0; touch /v/x; exit 9"), ("always", "Always", "test -e /v/x && sleep 1000; touch /v/x")):
        w.make(name, command, {"restartPolicy": policy})
    for name, want, times, reason, code in (
            ("never-0", "Succeeded", 0, "Completed", 0), ("never-1", "Failed", 0, "Error", 1), ("on-failure", "Succeeded", 0, "Completed", 0),
            ("on-failure-1", "Succeeded", 1, "Completed", 0)):
        pod = w.w.ever(name, phase("Succeeded", "Failed"))
        end = status(pod)["state"]["terminated"]
        t.check(f"{name}: {want}", (pod["status"]["phase"], restarts(pod), end["reason"], end["exitCode"]) == (want, times, reason, code), pod["status"])
    pod = w.w.ever("always", lambda p: restarts(p) == 1 and ready(p))
    t.check("always: a container that ends well is started again", status(pod)["lastState"]["terminated"]["reason"] == "Completed", pod["status"])
    out = w.n.kubectl("get", "pods", "never-0", "never-1", "--no-headers").stdout
    t.check("kubectl shows the ends", re.search(r"never-0 +0/1 +Completed +0(.|\n)*never-1 +0/1 +Error +0", out), out)


def test_deadline(t, w):
    w.make("deadline", "sleep 1000", {"activeDeadlineSeconds": 2})
    pod = w.w.ever("deadline", phase("Failed"))
    t.check("a pod ends at its deadline", (pod["status"]["reason"], pod["status"]["message"]) ==
            ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline"), pod["status"])
    w.w.event("deadline", "DeadlineExceeded", "Pod was active on the node longer than the specified deadline")


def test_termination_messages(t, w):
    never = {"restartPolicy": "Never"}
    w.make("last-words", "printf 'all well' >/dev/termination-log", never)
    w.make("last-words-path", "printf elsewhere >/tmp/words; exit 1", never, terminationMessagePath="/tmp/words")
    w.make("last-words-log", "echo first; echo it broke; exit 1", never, terminationMessagePolicy="FallbackToLogsOnError")
    w.make("last-words-none", "echo it worked", never, terminationMessagePolicy="FallbackToLogsOnError")
    for name, want in (("last-words", "all well"), ("last-words-path", "elsewhere"), ("last-words-log", "first\nit broke\n"), ("last-words-none", None)):
        end = status(w.w.ever(name, phase("Succeeded", "Failed")))["state"]["terminated"]
        t.check(f"{name}: its message", end.get("message") == want, end)


def test_order(t, w):
    """Init containers one after another, one that stays beside the others from then on, and ends after them."""
    say = "echo {0} >>/v/order"
    w.make("order", spec={"terminationGracePeriodSeconds": 20, "initContainers": [
        w.container(say.format("first") + "; sleep 0.3; " + say.format("first ends"), "first"),
        w.container(f"trap 'sleep 0.2; {say.format('side ends')}; exit 0' TERM; {say.format('side')}; touch /tmp/up; while :; do sleep 0.1; done", "side",
                    restartPolicy="Always", startupProbe=exec_probe("test", "-e", "/tmp/up", failureThreshold=30)),
        w.container("sleep 0.5; test -e /v/tried || { touch /v/tried; echo fails >>/v/order; exit 1; }; " + say.format("second"), "second")],
        "containers": [w.container(f"trap 'sleep 0.5; {say.format('main ends')}; exit 0' TERM; {say.format('main')}; while :; do sleep 0.1; done")]})
    pod = w.w.ever("order", ready)
    wait_until(lambda: "main" in w.read("order", "order"), 30, "the script of the last container")
    said = w.read("order", "order").splitlines()
    t.check("containers start in order, and a failed one again", said == ["first", "first ends", "side", "fails", "second", "main"], said)
    seen = [condition(p, "Initialized").get("message") for p in w.w.pods["default", "order"] if p and condition(p, "Initialized").get("status") == "False"]
    t.check("what is not initialized is told", {"containers with incomplete status: [first side second]", "containers with incomplete status: [second]"} <=
            set(seen), seen)
    t.check("the one beside them is ready and started", status(pod, "side", "initContainerStatuses").get("started") is True and
            status(pod, "side", "initContainerStatuses")["ready"], pod["status"])
    out = w.n.kubectl("get", "pod", "order", "--no-headers").stdout
    t.check("kubectl counts it", re.match(r"order +2/2 +Running", out), out)
    w.delete("order")
    t.check("and ends after the others", w.read("order", "order").splitlines()[6:] == ["main ends", "side ends"], w.read("order", "order"))


# ---- deletion and hooks ----

def test_deletion(t, w):
    polite = "trap 'sleep 0.5; echo bye >>/v/said; exit 0' TERM; touch /v/up; while :; do sleep 0.1; done"
    deaf = "trap '' TERM; while :; do sleep 0.1; done"
    w.make("polite", polite, {"terminationGracePeriodSeconds": 20})
    w.make("deaf", deaf, {"terminationGracePeriodSeconds": 3})
    w.make("forced", deaf, {"terminationGracePeriodSeconds": 600})
    w.make("hurried", deaf, {"terminationGracePeriodSeconds": 60}, lifecycle={"preStop": {"exec": {"command": ["sh", "-c", "touch /v/up; sleep 1000"]}}})
    for name in ("polite", "deaf", "forced", "hurried"):
        w.w.ever(name, ready)
    w.n.server.request("DELETE", "/api/v1/namespaces/default/pods/hurried")
    w.is_up("hurried")
    took = w.delete("hurried", gracePeriodSeconds=1)
    t.check("hurried: a shorter time than before counts, also while a hook runs", took < 15, took)
    begin = time.monotonic()
    out = w.n.kubectl("delete", "pod", "forced", "--grace-period=0", "--force").stdout
    t.check("forced: the pod is gone at once", 'pod "forced" force deleted' in out and time.monotonic() - begin < 20 and w.n.pod("forced") is None, out)
    w.is_up("polite")
    took = w.delete("polite")
    t.check("polite: a container may end in its own way", w.read("polite", "said") == "bye\n" and 0.4 < took * nodes.SLOW and took < 15,
            f"{took} {w.read('polite', 'said')!r}")
    ends = [status(p).get("state", {}).get("terminated") for p in w.w.pods["default", "polite"] if p]
    t.check("and its end is told before the pod is gone", ends[-1] and ends[-1]["exitCode"] == 0, ends)
    w.w.event("polite", "Killing", "Stopping container c")
    took = w.delete("deaf")
    t.check("deaf: the end of patience", 2.9 < took * nodes.SLOW and took < 25, took)
    ends = [status(p).get("state", {}).get("terminated") for p in w.w.pods["default", "deaf"] if p]
    t.check("by a signal that cannot be ignored", ends[-1] and ends[-1]["exitCode"] == 137, ends)


def test_long_names(t, w):
    """A file's name has 255 bytes at most."""
    name, container = "long-" + "n" * 180, "c" * 63
    pod = w.n.make(name, spec={"containers": [{"name": container, "image": w.n.image, "command": ["sh", "-c", "echo found; sleep 1000"]}]})
    del pod["metadata"]["labels"]
    w.n.create(pod)
    w.w.ever(name, ready)
    links = os.path.join(w.n.folder, "log", "containers")
    found = [link for link in os.listdir(links) if link.startswith(f"{name}_default_{container[:2]}")]
    t.check("logs of pods with long names have links, too", len(found) == 1 and len(found[0]) == 255 and found[0].endswith(".log") and
            tap.wait_for(lambda: "found" in open(os.path.join(links, found[0])).read(), 5), (found, os.listdir(links)))


class Listener:
    """A web server of this test that remembers what it was asked."""

    def __init__(self, address):
        self.asked = []
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                owner.asked.append((self.path, self.headers.get("X-Why")))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer((address, 0), Handler)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()


def test_hooks(t, w):
    web = Listener("127.0.0.1")
    long = {"terminationGracePeriodSeconds": 20}
    say = "trap 'echo term >>/v/said; exit 0' TERM; touch /v/up; while :; do sleep 0.1; done"

    def http_hook(path):
        return {"httpGet": {"host": "127.0.0.1", "port": web.port, "path": path, "httpHeaders": [{"name": "X-Why", "value": "hook"}]}}

    def exec_hook(command):
        return {"exec": {"command": ["sh", "-c", command]}}
    w.make("hook-exec", say, long, lifecycle={"postStart": exec_hook("echo start >>/v/said"), "preStop": exec_hook("sleep 0.5; echo stop >>/v/said")})
    w.make("hook-http", say, long, lifecycle={"postStart": http_hook("/start"), "preStop": http_hook("/stop")})
    w.make("hook-sleep", say, long, lifecycle={"postStart": {"sleep": {"seconds": 1}}, "preStop": {"sleep": {"seconds": 2}}})
    w.make("hook-fails", lifecycle={"postStart": exec_hook("echo no good; exit 5")})
    w.make("hook-stop-fails", lifecycle={"preStop": exec_hook("echo cannot stop; exit 6")})
    w.w.ever("hook-stop-fails", ready)
    for name in ("hook-exec", "hook-http", "hook-sleep"):
        pod = w.w.ever(name, ready)
        w.is_up(name)
    s = status(pod)
    seen = [status(p).get("state", {}) for p in w.w.pods["default", "hook-sleep"]]
    early = [p for p in w.w.pods["default", "hook-sleep"] if "running" in status(p).get("state", {}) and not status(p)["started"]]
    t.check("a container is not running for people before its first hook has ended", "running" in s["state"] and any("waiting" in x for x in seen) and
            not early, seen)
    t.check("postStart by httpGet, with headers", web.asked == [("/start", "hook")], web.asked)
    w.delete("hook-exec")
    t.check("hooks run commands: after the start, and before the signal", w.read("hook-exec", "said") == "start\nstop\nterm\n", w.read("hook-exec", "said"))
    w.delete("hook-http")
    t.check("preStop by httpGet", web.asked == [("/start", "hook"), ("/stop", "hook")] and w.read("hook-http", "said") == "term\n", web.asked)
    took = w.delete("hook-sleep")
    t.check("preStop sleeps", 1.9 < took < 15 and w.read("hook-sleep", "said") == "term\n", took)
    w.delete("hook-stop-fails")
    w.w.event("hook-stop-fails", "FailedPreStopHook", "PreStopHook failed")
    w.w.event("hook-fails", "FailedPostStartHook", "PostStartHook failed")
    pod = w.w.ever("hook-fails", lambda p: restarts(p) >= 1)
    t.check("a container whose first hook fails is started again", "FailedPostStartHook" in {e[1] for e in w.w.events("hook-fails")}, w.w.show("hook-fails"))


# ---- probes ----

def exec_probe(*command, **more):
    return {"exec": {"command": list(command)}, **QUICK, **more}


def test_liveness(t, w):
    w.make("live-exec", "sleep 1; echo sick >/tmp/bad; sleep 1000", livenessProbe=exec_probe("sh", "-c", "! cat /tmp/bad", failureThreshold=2))
    w.make("live-http", "mkdir /www; touch /www/ok; (sleep %d; rm /www/ok) & httpd -f -p 8080 -h /www" % (2 * nodes.SLOW), ports=[{"name": "web", "containerPort": 8080}],
           livenessProbe={"httpGet": {"path": "/ok", "port": "web"}, **QUICK, "failureThreshold": 1})
    w.make("live-tcp", livenessProbe={"tcpSocket": {"port": 81}, **QUICK, "failureThreshold": 3})
    w.make("live-well", "httpd -f -p 80 -h /", livenessProbe={"tcpSocket": {"port": 80}, **QUICK})
    w.make("live-again", livenessProbe=exec_probe("false", failureThreshold=1))
    w.make("live-slow", livenessProbe=exec_probe("sleep", "20", failureThreshold=1, timeoutSeconds=1))
    for name, message in (("live-exec", "Liveness probe failed: sick\n"), ("live-http", "Liveness probe failed: HTTP probe failed with statuscode: 404"),
                          ("live-tcp", "Liveness probe failed: dial tcp {ip}:81: connect: connection refused"),
                          ("live-slow", "Liveness probe failed: command timed out: \"sleep 20\" timed out after 1s")):
        pod = w.w.ever(name, lambda p: restarts(p) == 1)
        w.w.event(name, "Killing", "Container c failed liveness probe, will be restarted")
        count = sum(e[3] for e in w.w.events(name) if e[1] == "Unhealthy" and e[2].strip() == message.format(ip=pod["status"]["podIP"]).strip())
        t.check(f"{name}: restarted, and it is said why", count >= {"live-exec": 2, "live-tcp": 3}.get(name, 1), w.w.show(name))
    s = status(w.w.ever("live-tcp", lambda p: restarts(p) == 1 and "running" in status(p)["state"]))
    begun = [time.mktime(time.strptime(x["startedAt"], "%Y-%m-%dT%H:%M:%SZ")) for x in (s["lastState"]["terminated"], s["state"]["running"])]
    t.check("three failures take their time", 2 <= begun[1] - begun[0], begun)
    pod = w.w.ever("live-again", lambda p: waiting(p).get("reason") == "CrashLoopBackOff")
    t.check("live-again: it is restarted at once while there is one earlier end at most; then it waits", (restarts(pod) == 2 or nodes.SLOW > 1) and
            waiting(pod)["message"].startswith(f"back-off {10 << restarts(pod) - 2}s restarting failed container=c pod=live-again_default("), w.w.show("live-again"))
    t.check("what is well is left alone", restarts(w.w.pods["default", "live-well"][-1]) == 0)


def test_readiness(t, w):
    probes = {"exec": exec_probe("test", "-e", "/v/ready", failureThreshold=2, successThreshold=2),
              "http": {"httpGet": {"path": "/ready", "port": 8080}, **QUICK, "failureThreshold": 1},
              "tcp": {"tcpSocket": {"port": 8080}, **QUICK, "failureThreshold": 1}}
    command = "httpd -p 8080 -h /v; sleep 1000"
    w.make("ready-exec", readinessProbe=probes["exec"])
    w.make("ready-http", command, readinessProbe=probes["http"])
    w.make("ready-tcp", "until test -e /v/ready; do sleep 0.1; done; " + command, readinessProbe=probes["tcp"])
    for name in ("ready-exec", "ready-http", "ready-tcp"):
        w.w.ever(name, phase("Running"))
    w.w.event("ready-exec", "Unhealthy", "Readiness probe failed: ")
    w.w.event("ready-http", "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 404")
    w.w.event("ready-tcp", "Unhealthy", "connect: connection refused")
    for name in ("ready-exec", "ready-http", "ready-tcp"):
        pod = w.w.pods["default", name][-1]
        t.check(f"{name}: runs and is not ready", pod["status"]["phase"] == "Running" and not ready(pod) and not status(pod)["ready"] and
                not any(map(ready, w.w.pods["default", name])), pod["status"])
        w.touch(name, "ready")
    for name in ("ready-exec", "ready-http", "ready-tcp"):
        w.w.wait(name, ready)
    for name in ("ready-exec", "ready-http"):
        w.remove(name, "ready")
    for name in ("ready-exec", "ready-http"):
        pod = w.w.wait(name, lambda p: not ready(p))
        t.check(f"{name}: ready and not again, without a restart", restarts(pod) == 0 and condition(pod, "ContainersReady")["status"] == "False" and
                condition(pod, "Ready")["message"] == "containers with unready status: [c]", pod["status"])


def test_startup(t, w):
    """Nothing else is asked before the startup probe has succeeded once."""
    w.make("start-slow", f"sleep {2 * nodes.SLOW}; touch /tmp/up; sleep 1000", startupProbe=exec_probe("test", "-e", "/tmp/up", failureThreshold=30),
           livenessProbe=exec_probe("test", "-e", "/tmp/up", failureThreshold=1), readinessProbe=exec_probe("test", "-e", "/tmp/up"))
    w.make("start-never", startupProbe=exec_probe("sh", "-c", "echo not yet; exit 1", failureThreshold=2))
    w.make("start-tcp", "sleep 1; httpd -f -p 8080", startupProbe={"tcpSocket": {"port": 8080}, **QUICK, "failureThreshold": 30})
    w.make("start-http", "sleep 1; touch /tmp/x; httpd -f -p 8080 -h /tmp",
           startupProbe={"httpGet": {"path": "/x", "port": 8080}, **QUICK, "failureThreshold": 30})
    pod = w.w.ever("start-slow", ready)
    seen = [(status(p).get("started"), status(p).get("ready")) for p in w.w.pods["default", "start-slow"] if p and "running" in status(p).get("state", {})]
    t.check("start-slow: running, started, ready", seen[0] == (False, False) and seen[-1] == (True, True), seen)
    t.check("and never restarted", restarts(pod) == 0 and not any("Liveness" in e[2] for e in w.w.events("start-slow")), w.w.events("start-slow"))
    w.w.ever("start-never", lambda p: restarts(p) == 1)
    w.w.event("start-never", "Unhealthy", "Startup probe failed: not yet")
    t.check("start-never: restarted", w.w.event("start-never", "Killing", "Container c failed startup probe, will be restarted"))
    for name in ("start-tcp", "start-http"):
        pod = w.w.ever(name, ready)
        t.check(f"{name}: started in the end", restarts(pod) == 0 and status(pod)["started"], pod["status"])


def test_grpc(t, w):
    """The pod has the network of this machine, where a server of Google's gRPC tells what it is told to tell."""
    if not w.grpc:
        return t.check("grpc probes # SKIP " + peers.grpcio_missing(), True)
    health, port = w.grpc
    w.make("grpc", spec={"hostNetwork": True}, readinessProbe={"grpc": {"port": port, "service": "mine"}, **QUICK, "failureThreshold": 1},
           livenessProbe={"grpc": {"port": port}, **QUICK})
    w.w.ever("grpc", ready)
    health.stdin.write("mine 2\n")
    health.stdin.flush()
    pod = w.w.wait("grpc", lambda p: not ready(p))
    w.w.event("grpc", "Unhealthy", "Readiness probe failed: service unhealthy (responded with \"NOT_SERVING\")")
    health.stdin.write("mine 1\n")
    health.stdin.flush()
    pod = w.w.wait("grpc", ready)
    t.check("a grpc probe follows what the service says", restarts(pod) == 0, pod["status"])


def test_readiness_gates(t, w):
    w.make("gate", spec={"readinessGates": [{"conditionType": "example.com/gate"}]})
    pod = w.w.ever("gate", lambda p: condition(p, "ContainersReady").get("status") == "True")
    c = condition(pod, "Ready")
    t.check("a gate that nobody opened", (c["status"], c["reason"], c["message"]) ==
            ("False", "ReadinessGatesNotReady", 'corresponding condition of pod readiness gate "example.com/gate" does not exist.'), c)
    for value in ("False", "True"):
        r = w.n.server.request("PATCH", "/api/v1/namespaces/default/pods/gate/status", {"status": {"conditions": [
            {"type": "example.com/gate", "status": value}]}}, content_type="application/strategic-merge-patch+json")
        if r.status != 200:
            raise RuntimeError(r)
        if value == "False":
            pod = w.w.wait("gate", lambda p: "does not exist" not in condition(p, "Ready").get("message", ""))
            t.check("one that is shut", condition(pod, "Ready")["message"] ==
                    'the status of pod readiness gate "example.com/gate" is not "True", but False', condition(pod, "Ready"))
    pod = w.w.wait("gate", ready)
    t.check("one that is open; what others say stays", condition(pod, "example.com/gate")["status"] == "True", pod["status"])
    out = w.n.kubectl("get", "pod", "gate", "-o", "wide", "--no-headers").stdout
    t.check("kubectl counts gates", re.search(r"1/1\s*$", out), out)


# ---- images ----

def test_images(t, w):
    n = w.n

    def pod(name, image, policy=None, **spec):
        c = {"name": "c", "image": image, "command": ["sleep", "1000"], **({"imagePullPolicy": policy} if policy else {})}
        n.create(n.make(name, spec={"containers": [c], **spec}))
    pod("no-image", n.registry.host + "/nothing:1")
    pod("bad-name", "UPPER//case")
    pod("never-pull", n.registry.host + "/nothing:2", "Never")
    pod("by-digest", n.image.rsplit(":", 1)[0] + "@" + w.digest, "Always")
    with images.Registry(os.path.join(n.folder, "private"), users=True) as private:
        secret = private.put(images.Image(images.busybox()), "secret", "1")
        pod("no-secret", secret)
        auth = base64.b64encode(private.CREDS.encode()).decode()
        n.server.request("POST", "/api/v1/namespaces/default/secrets", {
            "metadata": {"name": "pull"}, "type": "kubernetes.io/dockerconfigjson",
            "data": {".dockerconfigjson": base64.b64encode(json.dumps({"auths": {private.host: {"auth": auth}}}).encode()).decode()}})
        w.w.ever("no-secret", lambda p: waiting(p).get("reason") == "ErrImagePull")
        pod("with-secret", secret, imagePullSecrets=[{"name": "pull"}])
        t.check("an image is pulled with a secret", ready(w.w.ever("with-secret", ready)))
        pod("others-secret", secret, "IfNotPresent")
        w.w.ever("others-secret", lambda p: waiting(p).get("reason") in ("ErrImagePull", "ImagePullBackOff"))
        t.check("and not used without, although it is there", not any(ready(p) for p in w.w.pods["default", "others-secret"]))
    w.w.ever("no-image", lambda p: waiting(p).get("reason") == "ImagePullBackOff")
    reasons = [x for p in w.w.pods["default", "no-image"] if (x := waiting(p).get("reason"))]
    order = [x for i, x in enumerate(reasons) if x not in reasons[:i]]
    t.check("an image that is not there: ErrImagePull, then ImagePullBackOff", order == ["ContainerCreating", "ErrImagePull", "ImagePullBackOff"],
            w.w.show("no-image"))
    message = next(waiting(p)["message"] for p in w.w.pods["default", "no-image"] if waiting(p).get("reason") == "ImagePullBackOff")
    t.check("with what is known of it", message.startswith(f'Back-off pulling image "{n.registry.host}/nothing:1": ErrImagePull: '), message)
    w.w.event("no-image", "Failed", f'Failed to pull image "{n.registry.host}/nothing:1"')
    w.w.event("no-image", "Failed", "Error: ErrImagePull")
    w.w.event("no-image", "BackOff", f'Back-off pulling image "{n.registry.host}/nothing:1"')
    bad = w.w.ever("bad-name", lambda p: waiting(p).get("reason") == "InvalidImageName")
    t.check("a name that is none", waiting(bad)["message"].startswith(
        'Failed to apply default image tag "UPPER//case": couldn\'t parse image name "UPPER//case": '), waiting(bad))
    never = w.w.ever("never-pull", lambda p: waiting(p).get("reason") == "ErrImageNeverPull")
    t.check("an image that must not be pulled", waiting(never)["message"] ==
            f'Container image "{n.registry.host}/nothing:2" is not present with pull policy of Never', waiting(never))
    t.check("an image by its digest", status(w.w.ever("by-digest", ready))["imageID"].endswith("@" + w.digest))


# ---- network ----

def fetch(host, port, path="/"):
    c = http.client.HTTPConnection(host, port, timeout=10)
    try:
        c.request("GET", path)
        return c.getresponse().read().decode()
    finally:
        c.close()


def answers(host, port):
    try:
        return fetch(host, port)
    except OSError:
        return None


def test_network(t, w):
    n, port = w.n, free_port()
    w.make("net-host", f"httpd -p {port} -h /v; ip -o link; hostname; sleep 1000", {"hostNetwork": True})
    w.make("net-port", "echo by host port >/v/index.html; httpd -f -p 80 -h /v", ports=[{"containerPort": 80, "hostPort": 20080}])
    w.make("net-two", spec={"containers": [
        w.container("mkdir /v/www; echo shared >/v/www/index.html; httpd -f -p 127.0.0.1:8080 -h /v/www", "server"),
        w.container("until wget -qO- http://127.0.0.1:8080/; do sleep 0.1; done; echo more >>/v/www/index.html; sleep 1000", "client")]})
    w.touch("net-host", "index.html")
    pod = w.w.ever("net-host", ready)
    t.check("hostNetwork: the addresses are the node's", pod["status"]["podIP"] == pod["status"]["hostIP"] == n.address, pod["status"])
    t.check("hostNetwork: it listens here", wait_until(lambda: answers("127.0.0.1", port) is not None, 30))
    out = wait_until(lambda: n.kubectl("logs", "net-host").stdout, 30)
    t.check("hostNetwork: it sees the links of the node", n.bridge in out, out)
    w.w.ever("net-two", ready)
    pod = w.w.ever("net-port", ready)
    ip = pod["status"]["podIP"]
    t.check("a pod is reached by its address", wait_until(lambda: answers(ip, 80), 30) == "by host port\n")
    for host in (n.address, "127.0.0.1"):
        t.check(f"and by its hostPort at {host}", tap.wait_for(lambda: answers(host, 20080) == "by host port\n", 5), answers(host, 20080))
    out = n.kubectl("exec", "net-two", "-c", "client", "--", "wget", "-qO-", f"http://{ip}/").stdout
    t.check("and by other pods", out == "by host port\n", out)
    out = n.kubectl("logs", "net-two", "-c", "client").stdout
    t.check("containers of a pod share localhost", out.endswith("shared\n"), out)
    t.check("and volumes", wait_until(lambda: w.read("net-two", "www/index.html") == "shared\nmore\n", 30))
    own = {c: n.kubectl("exec", "net-two", "-c", c, "--", "hostname").stdout for c in ("server", "client")}
    t.check("and the name", own == {"server": "net-two\n", "client": "net-two\n"}, own)


def test_nginx(t, w):
    files = images.nginx()
    if not files:
        return t.check("nginx # SKIP Debian's nginx cannot be had", True)
    name = w.n.put_image("nginx", images.Image(images.busybox(), files, config={"Cmd": ["/bin/nginx"], "StopSignal": "SIGQUIT"}))
    over = json.dumps({"apiVersion": "v1", "spec": {"nodeName": nodes.NODE}})
    out = w.n.kubectl("run", "nginx", "--image=" + name, "--port=80", "--labels=tier=web", "--overrides", over).stdout
    t.check("kubectl run", out == "pod/nginx created\n", out)
    pod = w.w.ever("nginx", ready)
    t.check("nginx answers", wait_until(lambda: answers(pod["status"]["podIP"], 80), 30) == "Debian's nginx\n")
    out = w.n.kubectl("get", "pods", "-l", "tier=web", "-o", "wide").stdout
    ip = pod["status"]["podIP"]
    t.check("kubectl get", re.fullmatch(r"NAME +READY +STATUS +RESTARTS +AGE +IP +NODE +NOMINATED NODE +READINESS GATES\n"
                                        rf"nginx +1/1 +Running +0 +(\d+m)?\d+s +{ip} +{nodes.NODE} +<none> +<none>\n", out), out)
    w.w.event("nginx", "Started")
    out = w.n.kubectl("describe", "pod", "nginx").stdout
    for want in (rf"Node: +{nodes.NODE}/{w.n.address}", r"Status: +Running", rf"IP: +{ip}", rf"Container ID: +{status(pod, 'nginx')['containerID']}",
                 r"State: +Running\n +Started: ", r"Ready: +True\n +Restart Count: +0",
                 r"PodReadyToStartContainers +True *\n +Initialized +True *\n +Ready +True",
                 r"kube-api-access-\w+:\n +Type: +Projected", r"QoS Class: +BestEffort", r"Normal +Pulling +(\d+m)?\d+s +kubelet +Pulling image",
                 r"Normal +Started +(\d+m)?\d+s +kubelet +(Started container nginx|Container started)"):
        t.check("kubectl describe says " + want.replace("\n", " "), re.search(want, out), out)
    out = wait_until(lambda: w.n.kubectl("logs", "nginx").stdout, 30, "what nginx says")
    t.check("kubectl logs has its access log", '"GET / HTTP/1.1" 200 15' in out, out)
    begin = time.monotonic()
    out = w.n.kubectl("delete", "pod", "nginx").stdout
    t.check("kubectl delete waits for the end, which the image's signal brings", 'pod "nginx" deleted' in out and time.monotonic() - begin < 20 and
            w.n.pod("nginx") is None, f"{out} {time.monotonic() - begin}")


# ---- static pods ----

def test_static(t, w):
    n, name = w.n, "static-" + nodes.NODE

    def write(command, file="static.yaml"):
        pod = n.make("static", ("sh", "-c", command))
        del pod["spec"]["nodeName"]
        with open(os.path.join(n.manifests, "." + file), "w") as f:
            json.dump(pod, f)
        os.rename(os.path.join(n.manifests, "." + file), os.path.join(n.manifests, file))
    write("echo as written; sleep 1000")
    pod = w.w.ever(name, ready)
    meta = pod["metadata"]
    t.check("a static pod has a mirror", meta["annotations"]["kubernetes.io/config.source"] == "file" and
            "kubernetes.io/config.mirror" in meta["annotations"] and meta["ownerReferences"][0]["kind"] == "Node", meta)
    out = wait_until(lambda: n.kubectl("logs", name).stdout, 30)
    t.check("kubectl logs of it", out == "as written\n", out)
    t.check("kubectl exec in it", n.kubectl("exec", name, "--", "echo", "hi").stdout == "hi\n")
    before = status(pod)["containerID"]
    n.server.request("DELETE", "/api/v1/namespaces/default/pods/" + name, {"gracePeriodSeconds": 0})
    pod = w.w.wait(name, lambda p: p["metadata"]["uid"] != meta["uid"] and ready(p))
    t.check("a mirror that is deleted comes back, and the pod ran on", status(pod)["containerID"] == before, pod["status"])
    uid = pod["metadata"]["uid"]
    write("echo changed; sleep 1000")
    pod = w.w.wait(name, lambda p: p["metadata"]["uid"] != uid and ready(p) and status(p)["containerID"] != before, 40)
    out = wait_until(lambda: n.kubectl("logs", name).stdout, 30)
    t.check("a file that is changed: another pod", out == "changed\n", out)
    os.unlink(os.path.join(n.manifests, "static.yaml"))
    w.w.gone(name)
    wait_until(lambda: "static" not in n.crictl("pods"), 40, "the end of the static pod")
    t.check("a file that is removed: no pod", True)


# ---- the kubelet comes and goes ----

def test_restarts_of_the_kubelet(t, w):
    """Readiness and liveness are probed all the time; nothing may show that the kubelet was away."""
    kept = ("kept", "kept-probed", "live-well")
    before = {name: w.w.pods["default", name][-1] for name in kept}
    marks = {name: len(w.w.pods["default", name]) for name in kept}
    for sig in (signal.SIGTERM, signal.SIGKILL):
        w.n.kill_kubelet(sig)
        if sig == signal.SIGTERM:
            t.check("the kubelet ends in good order", w.n.process.returncode == 0, f"{w.n.process.returncode}\n{w.n.said()[-3000:]}")
        else:  # what happens in the meantime is seen afterwards
            w.n.server.request("DELETE", "/api/v1/namespaces/default/pods/kept-deleted")
            w.n.server.request("DELETE", "/api/v1/namespaces/default/pods/kept-orphan", {"gracePeriodSeconds": 0})
            w.touch("kept-ends", "go")
        w.n.start_kubelet()
        # a pod that is new has been looked after: the kubelet has looked at the old ones too
        w.run(f"after-{int(sig)}")
    time.sleep(2.5)
    for name in kept:
        states = [p for p in w.w.pods["default", name][marks[name] - 1:] if p]
        ids = {status(p).get("containerID") for p in states}
        t.check(f"{name}: the same container", ids == {status(before[name])["containerID"]} and {restarts(p) for p in states} == {0}, ids)
        t.check(f"{name}: ready all the time", all(map(ready, states)), [condition(p, "Ready") for p in states])
        t.check(f"{name}: the same address and start", {(p["status"].get("podIP"), p["status"].get("startTime")) for p in states} ==
                {(before[name]["status"]["podIP"], before[name]["status"]["startTime"])}, w.w.show(name))
    out = w.n.kubectl("exec", "kept", "--", "echo", "alive").stdout
    t.check("exec in a container that was taken over", out == "alive\n", out)
    t.check("its log goes on", w.n.kubectl("logs", "kept", "--tail=1").stdout == "tick\n")
    w.w.gone("kept-deleted")
    t.check("a pod deleted meanwhile is gone", True)
    tap.wait_for(lambda: "term" in w.read("kept-orphan", "said"), 15)
    t.check("one that nobody knows any more ends in its own way", w.read("kept-orphan", "said") == "stop\nterm\n", w.read("kept-orphan", "said"))
    pod = w.w.wait("kept-ends", phase("Succeeded"))
    t.check("a pod that ended meanwhile", status(pod)["state"]["terminated"]["exitCode"] == 0 and restarts(pod) == 0, pod["status"])


def prepare(w):
    """The first one brings the image for all."""
    w.run("kept", "while :; do echo tick; sleep 0.2; done")
    w.make("kept-probed", "httpd -f -p 80 -h /", readinessProbe={"httpGet": {"path": "/etc/passwd", "port": 80}, **QUICK},
           startupProbe={"tcpSocket": {"port": 80}, **QUICK, "failureThreshold": 30}, livenessProbe=exec_probe("true"))
    w.make("kept-deleted")
    w.make("kept-orphan", "trap 'echo term >>/v/said; exit 0' TERM; while :; do sleep 0.1; done",
           {"terminationGracePeriodSeconds": 20, "resources": {"limits": {"cpu": "500m", "memory": "64Mi"}}},
           lifecycle={"preStop": {"exec": {"command": ["sh", "-c", "sleep 3; echo stop >>/v/said"]}}})
    w.make("kept-ends", "until test -e /v/go; do sleep 0.1; done", {"restartPolicy": "Never"})


def test_metrics(t, w):
    """After all others: the probes have been counted."""
    out = w.n.kubectl("get", "--raw", f"/api/v1/nodes/{nodes.NODE}/proxy/metrics/probes").stdout
    t.check("metrics/probes counts by result", re.search(r'prober_probe_total{container="c",namespace="default",pod="kept-probed",pod_uid="[-0-9a-f]+",'
                                                        r'probe_type="Readiness",result="successful"} [1-9]', out), out[:1500])


def start_grpc():
    """A process with a health server, and its port; None where there is no gRPC."""
    if peers.grpcio_missing():
        return None
    health = subprocess.Popen(["/usr/bin/python3", os.path.join(HERE, "health_server.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env=peers.grpcio())
    return health, int(health.stdout.readline())


def test_nothing_is_left(t, w):
    w.n.remove_all_pods()
    left = tap.wait_for(lambda: not w.n.leftovers(), 90)  # containerd may take half a minute for one that it executes a probe in
    t.check("nothing is left of the pods", left, "\n".join(w.n.leftovers()))


TOGETHER = (test_crash, test_restart_policies, test_deadline, test_termination_messages, test_order, test_deletion, test_long_names, test_hooks, test_liveness,
            test_readiness, test_startup, test_grpc, test_readiness_gates, test_images, test_network, test_nginx, test_static)


def main(t):
    runtime = sys.argv[1] if len(sys.argv) > 1 else "c8s"
    why = nodes.missing(runtime)
    if why:
        return t.skip("pods", why)
    images.nginx()  # while there is a way out
    peers.grpcio_missing()
    nodes.own_namespaces()
    with nodes.Node(runtime=runtime, address="10.215.0.1", config={"registryPullQPS": 0, "eventRecordQPS": 0}) as n:
        w = World(n)
        w.digest = images.Image(images.busybox(), config={"Cmd": ["sh"]}).digest
        w.grpc = start_grpc()
        try:
            prepare(w)
            nodes.together(t, TOGETHER, w)
            test_restarts_of_the_kubelet(t, w)
            test_metrics(t, w)
            test_nothing_is_left(t, w)
        finally:
            if w.grpc:
                w.grpc[0].kill()
                w.grpc[0].wait()


if __name__ == "__main__":
    tap.run([main])
