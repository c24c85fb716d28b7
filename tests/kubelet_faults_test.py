#!/usr/bin/env python3
"""The kubelet, the runtime and the API server are killed, at chosen moments and at random ones, while pods come and go: what runs goes on,
nothing runs twice, what was deleted is gone, statuses become true again, and nothing is left over.
Needs C8S, the program to test, with c8s-pod beside it, and root. FAULTS_SEED repeats the moments of an earlier run, FAULTS=long takes its
time, FAULTS_LOGS is a folder for logs. Arguments: inside (the runtime is in the kubelet), apart or containerd, and names of tests."""
import itertools
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import images  # noqa: E402
import nodes  # noqa: E402
import tap  # noqa: E402
from cluster import free_port, wait_until  # noqa: E402
from gate import Gate  # noqa: E402

SEED = int(os.environ.get("FAULTS_SEED") or random.randrange(1 << 32))
LONG = os.environ.get("FAULTS") == "long"
DICE = random.Random(SEED)

# Each run has a name of its own, and says it as long as it lives: two at once would show as one after the other and then the first again.
RUN = "R=$(cat /proc/sys/kernel/random/uuid); echo $R >>/marks/$N; "
LIVE = RUN + "trap 'exit 0' TERM; while :; do sleep 0.1 & wait $!; echo $R >>/marks/$N; done"


class World(nodes.Node):
    """A node whose containers leave marks in a folder, and whose pods are looked at from outside."""

    def __init__(self, **more):
        super().__init__(**more)
        self.marks = os.path.join(self.folder, "marks")
        os.makedirs(self.marks)
        os.chmod(self.marks, 0o777)
        self.number = 0

    def write_network(self):
        super().write_network()
        if self.runtime != "containerd":
            self.gate = Gate(os.path.join(self.folder, "gate"), os.path.join(self.net, "10-test.conflist"))

    def runtime_flags(self, prefix="--"):
        return [*super().runtime_flags(prefix), *self.gate.flags(prefix)]

    def start(self):
        super().start()
        self.server.request("POST", "/apis/node.k8s.io/v1/runtimeclasses", {"metadata": {"name": "held"}, "handler": "held"})
        self.server.request("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "words"}, "data": {"a": "b"}})
        return self

    def close(self):
        logs = [os.path.join(self.folder, "kubelet.log"), os.path.join(self.folder, "runtime.log"), self.containerd.log if self.containerd else ""]
        for log in filter(os.path.exists, logs if "FAULTS_LOGS" in os.environ else []):
            where = "containerd-" if self.containerd else "apart-" if self.apart else ""
            shutil.copy(log, os.path.join(os.environ["FAULTS_LOGS"], where + os.path.basename(log)))
        super().close()

    # ---- marks ----

    def lines(self, name):
        try:
            with open(os.path.join(self.marks, name)) as f:
                return f.read().split()
        except FileNotFoundError:
            return []

    def runs(self, name):
        """The runs of a container, one after the other; a name comes twice where two were there at once."""
        return [key for key, _ in itertools.groupby(self.lines(name))]

    def put_mark(self, name):
        open(os.path.join(self.marks, name), "w").close()

    def wait_mark(self, name, seconds=20):
        wait_until(lambda: self.lines(name), seconds, f"a mark {name}")

    def twice(self):
        return [name for name in os.listdir(self.marks) if len(set(self.runs(name))) != len(self.runs(name))]

    def goes_on(self, *names):
        """Whether all of them say something more."""
        before = {name: len(self.lines(name)) for name in names}
        return tap.wait_for(lambda: all(len(self.lines(name)) > n for name, n in before.items()), 10)

    # ---- pods ----

    def container(self, pod, name="c", script=LIVE, **more):
        mounts = [{"name": "marks", "mountPath": "/marks"}, *more.pop("volumeMounts", [])]
        return {"name": name, "image": self.image, "command": ["sh", "-c", script], "env": [{"name": "N", "value": f"{pod}.{name}"}],
                "volumeMounts": mounts, **more}

    def shape(self, name, *containers, volumes=(), **spec):
        volumes = [{"name": "marks", "hostPath": {"path": self.marks}}, *volumes]
        pod = self.make(name, spec={"containers": list(containers) or [self.container(name)], "volumes": volumes, **spec})
        pod["spec"].setdefault("restartPolicy", "Always")
        return pod

    def make_lasting(self, name):
        return self.shape(name)

    def make_team(self, name):
        side = self.container(name, "side", restartPolicy="Always")
        return self.shape(name, self.container(name, "a"), self.container(name, "b"), initContainers=[
            self.container(name, "first", RUN), side, self.container(name, "second", RUN + "sleep 0.1")])

    def make_once(self, name):
        return self.shape(name, self.container(name, script=RUN + "sleep 0.2"), restartPolicy="Never")

    def make_failing(self, name):
        return self.shape(name, self.container(name, script=RUN + "exit 1"))

    def make_slow(self, name):
        stop = {"preStop": {"exec": {"command": ["sleep", "0.3"]}}}
        return self.shape(name, self.container(name, script=LIVE.replace("exit 0", "sleep 0.3; exit 0"), lifecycle=stop),
                          terminationGracePeriodSeconds=3)

    def make_full(self, name):
        self.number += 1
        volumes = [{"name": "words", "configMap": {"name": "words"}}, {"name": "memory", "emptyDir": {"medium": "Memory"}},
                   {"name": "disk", "emptyDir": {}}]
        mounts = [{"name": "words", "mountPath": "/words"}, {"name": "memory", "mountPath": "/memory"},
                  {"name": "disk", "mountPath": "/disk", "subPath": "deep/inside"}]
        return self.shape(name, self.container(name, volumeMounts=mounts, ports=[{"containerPort": 80, "hostPort": 20000 + self.number}]),
                          volumes=volumes, automountServiceAccountToken=True)

    def make_private(self, name):
        return self.shape(name, hostUsers=False)

    def kinds(self):
        return ("lasting", "team", "once", "failing", "slow", "full") + (() if self.containerd else ("private",))

    def create_kind(self, kind, name):
        return self.create(getattr(self, "make_" + kind)(name))

    def all_pods(self):
        return {p["metadata"]["name"]: p for p in self.get("/api/v1/pods").json["items"]}

    # ---- what is true ----

    def untrue(self, phases=None):
        """Where statuses are not what the runtime has. phases: those that the pods of these names must have."""
        pods, wrong = self.all_pods(), []
        said, has, ready = {}, {}, {}
        for name, pod in pods.items():
            status = pod.get("status", {})
            if "deletionTimestamp" in pod["metadata"]:
                wrong.append(f"{name} is being deleted")
            for c in status.get("initContainerStatuses", []) + status.get("containerStatuses", []):
                if "running" in c["state"]:
                    said[name, c["name"]] = [(c["containerID"].split("//")[1], c["restartCount"])]
                elif c["state"].get("waiting", {}).get("reason", "CrashLoopBackOff") != "CrashLoopBackOff":
                    wrong.append(f"{name}: {c['state']}")
                elif "terminated" in c["state"] and pod["spec"]["restartPolicy"] == "Always" and c in status["containerStatuses"]:
                    wrong.append(f"{name}: {c['state']}, and starts again")
        for c in json.loads(self.crictl("ps", "-a", "-o", "json")).get("containers", []):
            if c.get("state") == "CONTAINER_RUNNING":
                key = c["labels"]["io.kubernetes.pod.name"], c["metadata"]["name"]
                has.setdefault(key, []).append((c["id"], c["metadata"].get("attempt", 0)))
        for s in json.loads(self.crictl("pods", "-o", "json")).get("items", []):
            if s.get("state", "SANDBOX_READY") == "SANDBOX_READY":
                ready.setdefault(s["metadata"]["name"], []).append(s["id"])
        if said != has:
            wrong.append(f"said to run {said}, and {has} do")
        running = {name for name, pod in pods.items() if pod.get("status", {}).get("phase") in ("Pending", "Running")}
        if set(ready) != running or any(len(s) > 1 for s in ready.values()):
            wrong.append(f"pods {running} run, and there are sandboxes {ready}")
        for name, wanted in (phases or {}).items():
            phase = pods.get(name, {}).get("status", {}).get("phase")
            if phase not in wanted:
                wrong.append(f"{name} is {phase}")
        return wrong

    def settled(self, phases=None, seconds=40):
        """Until statuses are true; what is wrong after that time."""
        deadline = time.monotonic() + seconds
        while (wrong := self.untrue(phases)) and time.monotonic() < deadline:
            time.sleep(0.05)
        return wrong

    def miscounted(self):
        """Containers that have run more often than they are said to have."""
        wrong = []
        for name, pod in self.all_pods().items():
            status = pod.get("status", {})
            for c in status.get("initContainerStatuses", []) + status.get("containerStatuses", []):
                n = len(self.runs(f"{name}.{c['name']}"))
                if n > c["restartCount"] + 1 or ("running" in c["state"] and not n):
                    wrong.append(f"{name}.{c['name']}: {n} runs, restarts {c['restartCount']}")
        return wrong

    def leftovers(self):
        """And addresses, rules, records of the runtime, links to logs."""
        left = super().leftovers() + (self.crictl("pods", "-q").split() if self.containerd else [])
        addresses = os.path.join(self.folder, "ipam", self.name)
        left += [name for name in (os.listdir(addresses) if os.path.isdir(addresses) else []) if name[0].isdigit()]
        for folder in ("runtime/sandboxes", "runtime/containers", "state/pods", "log/containers"):
            path = os.path.join(self.folder, folder)
            left += [os.path.join(folder, name) for name in (os.listdir(path) if os.path.isdir(path) else [])]
        rules = subprocess.run(["nft", "list", "ruleset"], capture_output=True, text=True).stdout if shutil.which("nft") else ""
        return left + [line for line in rules.splitlines() if "dnat" in line]

    def gone(self, seconds=40):
        """All pods are deleted; what is left of them after that time."""
        self.remove_all_pods()
        tap.wait_for(lambda: not self.leftovers(), seconds)
        return self.leftovers()

    # ---- faults ----

    def kill_runtime(self):
        if self.containerd:
            self.containerd.kill()
            return
        self.runtime_process.kill()
        self.runtime_process.wait()

    def start_runtime(self):
        if self.containerd:
            self.containerd.start_again()
        else:
            super().start_runtime()

    def hurt(self, victims, dice, meanwhile=lambda: None):
        """Kills some of kubelet, runtime and server, and starts them again, in any order."""
        for victim in victims:
            {"kubelet": self.kill_kubelet, "runtime": self.kill_runtime, "server": self.server.kill}[victim]()
        if "server" not in victims:
            meanwhile()
        if "server" in victims:
            time.sleep(dice.uniform(0, 1))
            self.server.start()
        if "kubelet" in victims and dice.random() < 0.3:
            # Once more, at any point of its start.
            self.spawn_kubelet()
            time.sleep(dice.uniform(0, 0.3))
            self.kill_kubelet()
        if "runtime" in victims and self.containerd and dice.random() < 0.3:
            # So here.
            self.containerd.spawn_again()
            time.sleep(dice.uniform(0, 0.5))
            self.kill_runtime()
        if "runtime" in victims:
            self.start_runtime()
        if "kubelet" in victims:
            self.start_kubelet()

    def freeze(self, seconds):
        self.server.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.server.process.send_signal(signal.SIGCONT)

    def pids(self):
        """Of all processes in control groups of the node, and of the monitors of its pods."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cgroup") as cgroup, open(f"/proc/{pid}/cmdline") as command:
                    line = command.read()
                    if self.cgroup + "/" in cgroup.read() or ("monitor" in line and self.folder in line):
                        yield int(pid)
            except OSError:
                pass

    def reboot(self):
        """What a machine loses when its power fails: processes, mounts, links, control groups, /run."""
        self.kill_kubelet()
        while pids := [pid for pid in self.pids() if not tap.gone(pid)]:
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.01)
        with open("/proc/self/mountinfo") as f:
            for point in [line.split()[4] for line in f if self.folder in line.split()[4]][::-1]:
                subprocess.run(["umount", "-l", point], check=True)
        wait_until(lambda: tap.remove_cgroups(self.cgroup), 10, "the end of the control groups")
        shutil.rmtree(self.state)
        subprocess.run(["ip", "link", "delete", self.bridge], check=True)
        if shutil.which("nft"):
            subprocess.run(["nft", "flush", "ruleset"], check=True)
        self.start_kubelet()


class Flaky:
    """A way to the API server on which bytes come late and connections break."""

    def __init__(self, port):
        self.target, self.cut, self.listener = port, 0.03, socket.create_server(("127.0.0.1", free_port()))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()
                continue
            for pair in ((client, server), (server, client)):
                threading.Thread(target=self.copy, args=pair, daemon=True).start()

    def copy(self, from_, to):
        try:
            while part := from_.recv(65536):
                time.sleep(random.uniform(0, 0.05))
                if random.random() < self.cut:
                    break
                to.sendall(part)
        except OSError:
            pass
        for s in (from_, to):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.listener.close()


# ---- chosen moments ----

def check_clean(t, n, what):
    left = n.gone()
    t.check(f"{what}: nothing is left", not left, "\n".join(left) + n.said()[-3000:])


def held(n, name, *init):
    return {**n.shape(name, runtimeClassName="held", initContainers=list(init))}


def test_held_steps(t, n, victims):
    """Killed where the runtime calls others, which are held there until all is over."""
    wait = "while [ ! -e /marks/$N.go ]; do sleep 0.01; done"
    # What is held; whether that is a pod's start, its containers' start, or its end.
    points = [("ADD", "start", "its network is made"), ("create", "start", "its sandbox is made"), ("start", "start", "its sandbox is started"),
              ("create", "containers", "a container is made"), ("start", "containers", "a container is started"),
              ("kill", "end", "a container is stopped"), ("delete", "end", "a container that ended is removed"), ("DEL", "end", "its network is taken down")]
    for i, (step, phase, what) in enumerate(points if LONG or victims == ["kubelet"] else points[::2]):
        name = f"held{i}-{len(victims)}{victims[0][0]}"
        if phase == "start":
            n.gate.hold(step)
            n.create(held(n, name))
        elif phase == "containers":
            n.create(held(n, name, n.container(name, "first", wait)))
            n.wait(name, lambda p: "running" in (p["status"].get("initContainerStatuses") or [{"state": {}}])[0]["state"])
            n.gate.hold(step)
            n.put_mark(f"{name}.first.go")
        else:
            n.create(held(n, name))
            n.wait_mark(name + ".c")
            n.gate.hold(step)
            n.server.request("DELETE", f"/api/v1/namespaces/default/pods/{name}")
        n.gate.wait(step)
        cut = phase == "containers" and step == "start"
        n.hurt(victims, DICE, n.gate.go if not cut else lambda: None)
        n.gate.go()
        if phase == "end":
            n.wait_gone(name)
            ok, detail = len(n.runs(name + ".c")) == 1, n.runs(name + ".c")
        else:
            wrong = n.settled({name: ("Running",)})
            ok, detail = not wrong and len(n.runs(name + ".c")) == 1 and n.goes_on(name + ".c"), wrong
        t.check(f"{' and '.join(victims)} killed while {what}", ok and not n.twice() and not n.miscounted(), (detail, n.twice(), n.miscounted()))
    check_clean(t, n, "steps that were held")


def test_given_up(t, n, image, said):
    """Pods that wait, for an image and for a hook, and are deleted."""
    pull, hook = f"no-pull-{said}", f"no-hook-{said}"
    n.create(n.shape(pull, n.container(pull, image=image)))
    n.create(n.shape(hook, n.container(hook, lifecycle={"postStart": {"exec": {"command": ["sh", "-c", "echo $N >>/marks/$N.hook; sleep 1000"]}}})))
    n.wait_mark(f"{hook}.c.hook")
    for name in (pull, hook):
        n.server.request("DELETE", f"/api/v1/namespaces/default/pods/{name}")
    t.check("what waits for an image or a hook ends when it has to",
            tap.wait_for(lambda: not n.pod(pull) and not n.pod(hook), 15) and not n.runs(f"{pull}.c"), (n.pod(pull), n.pod(hook)))


def test_waiting_steps(t, n, victims):
    """Killed while pods wait: for an image, for a volume, for a hook, for their end."""
    said = victims[0][0] + str(len(victims))
    pull, volume, hook, grace, stop, orphan = (f"{word}-{said}" for word in ("pull", "volume", "hook", "grace", "stop", "orphan"))
    other = n.put_image(f"other-{said}", images.Image(images.busybox(), {"etc/big": os.urandom(1 << 20)}, config={"Cmd": ["sh"]}))
    n.create(n.shape(volume, n.container(volume, volumeMounts=[{"name": "late", "mountPath": "/late"}]),
                     volumes=[{"name": "late", "configMap": {"name": f"late-{said}"}}]))
    n.create(n.shape(hook, n.container(hook, lifecycle={"postStart": {"exec": {"command": ["sh", "-c", "echo $N >>/marks/$N.hook; sleep 1000"]}}})))
    n.create(n.shape(grace, n.container(grace, script=RUN + "trap 'echo $R >>/marks/$N.term' TERM; while :; do sleep 0.1 & wait $!; done"),
                     terminationGracePeriodSeconds=3))
    n.create(n.shape(stop, n.container(stop, lifecycle={"preStop": {"exec": {"command": ["sh", "-c", "echo $N >>/marks/$N.hook; sleep 1000"]}}}),
                     terminationGracePeriodSeconds=3))
    n.create_kind("slow", orphan)
    for name in (grace, stop, orphan):
        n.wait_mark(f"{name}.c")
    n.registry.process.send_signal(signal.SIGSTOP)
    try:
        n.create(n.shape(pull, n.container(pull, image=other)))
        for name in (grace, stop):
            n.server.request("DELETE", f"/api/v1/namespaces/default/pods/{name}")
        for name in (f"{hook}.c.hook", f"{grace}.c.term", f"{stop}.c.hook"):
            n.wait_mark(name)
        test_given_up(t, n, other, said)
        wait_until(lambda: any(reason == "FailedMount" for reason, _ in n.events(volume)), what="a volume that is missing")
        wait_until(lambda: any(reason == "Pulling" for reason, _ in n.events(pull)), what="a pull")
        n.hurt(victims, DICE, lambda: n.server.request("DELETE", f"/api/v1/namespaces/default/pods/{orphan}", {"gracePeriodSeconds": 0}))
    finally:
        n.registry.process.send_signal(signal.SIGCONT)
    n.server.request("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": f"late-{said}"}, "data": {"a": "b"}})
    n.wait_gone(grace)
    n.wait_gone(stop)
    t.check("those that were being ended are gone, and did not start again", len(n.runs(f"{grace}.c")) == len(n.runs(f"{stop}.c")) == 1)
    wrong = n.settled({pull: ("Running",), volume: ("Running",), hook: ("Running",)})
    t.check("those that were being started run, and one that nobody knows any more does not", not wrong, (wrong, n.said()[-6000:]))
    t.check("and have not started twice", not n.twice() and not n.miscounted(), (n.twice(), n.miscounted()))
    t.check("a container whose hook was cut off runs on", "runtime" in victims or len(n.runs(f"{hook}.c")) == 1, n.runs(f"{hook}.c"))
    check_clean(t, n, "pods that waited")


def test_resized_meanwhile(t, n):
    """A pod that waits for a resize gets a new sandbox, and is resized once more while that is made."""
    cpu = 10 * int(n.get("/api/v1/nodes/" + nodes.NODE).json["status"]["allocatable"]["cpu"])  # a hundredth, in thousandths

    def wants(percent):
        return {"resources": {"requests": {"cpu": f"{percent * cpu}m"}}}

    def resize(percent):
        r = n.server.request("PATCH", "/api/v1/namespaces/default/pods/resized/resize", {"spec": {"containers": [{"name": "c", **wants(percent)}]}},
                             content_type="application/strategic-merge-patch+json")
        if r.status != 200:
            raise RuntimeError(r)

    def waits_for(percent):
        return lambda p: any(c["type"] == "PodResizePending" and f"requested: {percent * cpu}," in c["message"] for c in p["status"]["conditions"])
    n.create(n.shape("big", n.container("big", **wants(50))))
    n.create(n.shape("resized", n.container("resized", **wants(1)), runtimeClassName="held"))
    for name in ("big", "resized"):
        n.wait_ready(name)
    resize(70)
    n.wait("resized", waits_for(70))
    n.gate.hold("ADD")
    n.crictl("stopp", n.crictl("pods", "-q", "--name", "resized").strip())
    n.gate.wait("ADD")
    resize(80)
    time.sleep(0.3)
    n.gate.go()
    n.wait("resized", lambda p: waits_for(80)(p) and restarts(p) == [1])
    wrong = n.settled()
    t.check("a pod that is resized while its sandbox is made", not wrong and not n.twice(), wrong)
    check_clean(t, n, "resized")


# ---- any moment ----

def churn(n, dice, rounds, victims, between):
    """Pods come and go while things are killed. The phases that those that should be there must reach."""
    wanted, serial = {}, 0
    phases = {"once": ("Succeeded", "Failed")}

    def delete(count):
        for name in dice.sample(sorted(wanted), min(count, len(wanted))):
            del wanted[name]
            n.server.request("DELETE", f"/api/v1/namespaces/default/pods/{name}", {"gracePeriodSeconds": 0} if dice.random() < 0.3 else None)
    for _ in range(rounds):
        for _ in range(dice.randrange(1, 4)):
            kind, serial = dice.choice(n.kinds()), serial + 1
            name = f"{kind}-{serial}-{dice.randrange(1 << 16):04x}"
            n.create_kind(kind, name)
            wanted[name] = phases.get(kind, ("Running",))
        time.sleep(dice.uniform(0, between))
        if len(wanted) > 6:
            delete(3)
            time.sleep(dice.uniform(0, between / 2))
        who = dice.choice(victims)
        if who == ["freeze"]:
            n.freeze(dice.uniform(0, 1))
        else:
            n.hurt(who, dice, lambda: delete(dice.randrange(2)))
    return wanted


def test_any_moment(t, n, victims, rounds):
    stay = [n.create_kind(kind, f"stay-{kind}")["metadata"]["name"] for kind in n.kinds() if kind in ("lasting", "team", "full", "private")]
    for name in stay:
        n.wait_ready(name)
    marks = [f"stay-{rest}" for rest in ("lasting.c", "team.a", "team.b", "team.side", "full.c")] + ["stay-private.c"] * ("stay-private" in stay)
    first = {name: pod["status"]["containerStatuses"] for name, pod in n.all_pods().items() if name in stay}
    wanted = churn(n, DICE, rounds, victims, 0.4)
    wrong = n.settled(wanted, 60)
    t.check("statuses are true again, and pods are as they should be", not wrong, "\n".join(map(str, wrong)) + "\n" + n.said()[-6000:])
    pods = n.all_pods()
    t.check("what was deleted is gone", set(pods) == set(wanted) | set(stay), (sorted(pods), sorted(wanted)))
    ids = {name: [(c["containerID"], c["restartCount"]) for c in pods[name]["status"]["containerStatuses"]] for name in stay}
    t.check("what ran before has gone on", ids == {name: [(c["containerID"], 0) for c in first[name]] for name in stay}, (first, ids))
    t.check("it still does", n.goes_on(*marks) and all(len(n.runs(name)) == 1 for name in marks))
    t.check("nothing runs twice", not n.twice(), n.twice())
    t.check("restarts are counted", not n.miscounted(), n.miscounted())
    check_clean(t, n, "any moment")


# ---- the API server ----

def test_server_away(t, n):
    """Pods go on without the API server, and a kubelet that starts without it leaves them alone."""
    leaves = n.shape("leaves", n.container("leaves", script=RUN + "while [ ! -e /marks/leave ]; do sleep 0.05; done; rm /marks/leave; exit 3"))
    n.create(leaves)
    n.create_kind("lasting", "goes-on")
    for name in ("leaves", "goes-on"):
        n.wait_ready(name)
    n.server.kill()
    n.put_mark("leave")
    t.check("a container is restarted while the server is away", tap.wait_for(lambda: len(n.runs("leaves.c")) == 2, 20), n.runs("leaves.c"))
    n.kill_kubelet()
    n.start_kubelet()
    static = n.make_slow("by-file")
    del static["spec"]["nodeName"]
    path = os.path.join(n.manifests, "by-file.json")
    with open(path, "w") as f:
        json.dump(static, f)
    n.kill_kubelet()
    n.start_kubelet()
    t.check("a kubelet that starts meanwhile lets them run", n.goes_on("goes-on.c") and len(n.runs("goes-on.c")) == 1)
    t.check("and starts pods from files", tap.wait_for(lambda: n.lines("by-file.c"), 20), n.said()[-3000:])
    n.server.start()
    wrong = n.settled()
    pod = n.pod("leaves")["status"]
    t.check("statuses catch up", not wrong and pod["containerStatuses"][0]["restartCount"] == 1 and
            pod["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 3, (wrong, pod))
    mirror = n.pod("by-file-" + nodes.NODE)
    t.check("a mirror of the pod from a file is made", mirror and mirror["status"]["phase"] == "Running", mirror)
    n.kill_kubelet()
    n.start_kubelet()
    n.freeze(2)
    wrong = n.settled({"by-file-" + nodes.NODE: ("Running",)})
    t.check("pods from files outlive a kubelet", not wrong and n.goes_on("by-file.c") and len(n.runs("by-file.c")) == 1, wrong)
    away = os.path.join(n.folder, "by-file.json")
    os.rename(path, away)
    wait_until(lambda: any(reason == "Killing" for reason, _ in n.events("by-file-" + nodes.NODE)), what="its end")
    os.rename(away, path)
    t.check("one whose file is there again before it has ended starts again then", tap.wait_for(lambda: len(n.runs("by-file.c")) == 2, 30) and
            not n.twice(), (n.runs("by-file.c"), n.said()[-3000:]))
    n.settled()
    os.rename(path, path := path + ".json")
    t.check("and so does the same one by another file", tap.wait_for(lambda: len(n.runs("by-file.c")) == 3, 30) and not n.twice(), n.runs("by-file.c"))
    os.unlink(path)
    check_clean(t, n, "without the server")


def test_server_flaky(t, n):
    """Everything that the kubelet says and hears comes late, and connections break."""
    flaky = Flaky(n.server.port)
    n.kubeconfig = os.path.join(n.folder, "flaky.conf")
    with open(n.server.kubeconfig) as f, open(n.kubeconfig, "w") as out:
        out.write(f.read().replace(f":{n.server.port}", f":{flaky.port}"))
    n.kill_kubelet()
    n.start_kubelet()
    wanted = churn(n, DICE, 20 if LONG else 4, [["freeze"]], 0.4)
    wrong = n.settled(wanted)
    t.check("a server that is hard to reach: statuses are true after all", not wrong, "\n".join(map(str, wrong)) + n.said()[-6000:])
    t.check("and nothing runs twice", not n.twice() and not n.miscounted(), (n.twice(), n.miscounted()))
    n.kill_kubelet()
    n.kubeconfig = None
    n.start_kubelet()
    flaky.close()
    check_clean(t, n, "a server that is hard to reach")


# ---- taking over ----

def mounts_of(n):
    with open("/proc/self/mountinfo") as f:
        return sorted(line.split()[4] for line in f if f"{n.root}/pods" in line)


def restarts(pod):
    return [c["restartCount"] for c in pod["status"]["containerStatuses"]]


def ready_since(pod):
    return next(c["lastTransitionTime"] for c in pod["status"]["conditions"] if c["type"] == "Ready" and c["status"] == "True")


def prepare_taken_over(n):
    """Pods for the test below, which want to be older than ten seconds: only then a kubelet keeps what it did not ask itself."""
    asked = n.shape("asked", n.container("asked", readinessProbe={"exec": {"command": ["test", "-e", "/marks/asked.ready"]}, "periodSeconds": 1},
                                         startupProbe={"exec": {"command": ["true"]}, "periodSeconds": 1}))
    n.put_mark("asked.ready")
    n.create(asked)
    n.create_kind("full", "filled")
    n.create(n.shape("crashes", n.container("crashes", script=RUN + "exit 4")))
    for name in ("asked", "filled"):
        n.wait_ready(name)
    n.kubectl("exec", "filled", "--", "sh", "-c", "echo kept >/memory/word")


def test_taken_over(t, n):
    began = n.pod("asked")["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]
    age = time.time() - time.mktime(time.strptime(began, "%Y-%m-%dT%H:%M:%SZ")) + time.timezone
    time.sleep(max(0, 12 - age))
    watch, before, mounts = n.watch(), n.pod("asked"), mounts_of(n)
    crashed = n.wait("crashes", lambda p: restarts(p)[0] >= 2, 60)
    os.unlink(os.path.join(n.marks, "asked.ready"))  # a kubelet that asks too early would say so
    n.kill_kubelet()
    n.put_mark("asked.ready")
    n.start_kubelet()
    wrong = n.settled()
    t.check("statuses stay true", not wrong, wrong)
    after = n.pod("asked")
    states = [p for p in watch.pods.get(("default", "asked"), []) if p]
    t.check("ready all the time", ready_since(after) == ready_since(before) and all(
        c["ready"] and c["started"] and c["restartCount"] == 0 for p in states for c in p["status"]["containerStatuses"]), [p["status"] for p in states])
    t.check("volumes are not mounted again", mounts_of(n) == mounts, (mounts, mounts_of(n)))
    t.check("and what is in memory is still there", n.kubectl("exec", "filled", "--", "cat", "/memory/word").stdout == "kept\n")
    t.check("a token, too", n.kubectl("exec", "filled", "--", "cat", "/var/run/secrets/kubernetes.io/serviceaccount/token").stdout.count(".") == 2)
    again = n.wait("crashes", lambda p: restarts(p)[0] > restarts(crashed)[0], 60)
    t.check("restarts are counted on", len(n.runs("crashes.c")) <= restarts(again)[0] + 1 <= len(n.runs("crashes.c")) + 1, (n.runs("crashes.c"), again["status"]))


def test_reboot(t, n):
    n.create_kind("once", "done")
    n.create_kind("team", "group")
    n.wait_phase("done", "Succeeded")
    n.wait_ready("group")
    before = {name: n.pod(name) for name in ("asked", "filled", "group")}
    n.reboot()
    after = {name: n.wait(name, lambda p, name=name: all(count == 1 for count in restarts(p)) and "running" in p["status"]["containerStatuses"][0]["state"])
             for name in before}
    wrong = n.settled({"done": ("Succeeded",)})
    t.check("the machine was started anew: pods run again, and count that", not wrong, wrong)
    t.check("with what they were before", all(c["lastState"].get("terminated") for p in after.values() for c in p["status"]["containerStatuses"]),
            [p["status"] for p in after.values()])
    t.check("what was done is not done again", len(n.runs("done.c")) == 1)
    t.check("each ran twice, one after the other", all(len(n.runs(f"{name}.c")) == 2 for name in ("asked", "filled")) and not n.twice(), n.twice())
    t.check("volumes in memory are new", n.kubectl("exec", "filled", "--", "ls", "/memory").stdout == "")
    check_clean(t, n, "started anew")


def test_end(t, n):
    """Ends, and complaints of sanitizers, where they are built in."""
    n.kill_kubelet(signal.SIGTERM)
    processes, said = [n.process], n.said()
    if n.apart:
        n.runtime_process.terminate()
        n.runtime_process.wait(30)
        processes.append(n.runtime_process)
        with open(os.path.join(n.folder, "runtime.log"), errors="replace") as f:
            said += f.read()
    at = max(said.find("Sanitizer"), said.find("runtime error"))
    codes = [p.returncode for p in processes]
    t.check("all end in good order", not any(codes) and at < 0, (codes, said[max(0, at - 500):][:6000] if at >= 0 else said[-3000:]))


# ---- all of it ----

def run(t, n, tests):
    for test, *args in tests:
        began = time.monotonic()
        try:
            test(t, n, *args)
        except Exception:  # noqa: BLE001 - whatever it was, it belongs to this test
            t.check(test.__name__, False, traceback.format_exc() + n.said()[-8000:])
        print(f"# {test.__name__}: {time.monotonic() - began:.1f} s")


def main():
    where = sys.argv[1:2] or ["inside", "apart", "containerd"]
    why = nodes.missing("containerd" if "containerd" in where else "c8s")
    if why:
        print(f"1..0 # SKIP {why}")
        return
    nodes.own_namespaces()
    print(f"# FAULTS_SEED={SEED}")
    t = tap.Tap()
    only, rounds = sys.argv[2:], 100 if LONG else 8

    def chosen(*tests):
        return [test for test in tests if not only or test[0].__name__ in only]
    if "inside" in where:
        with World() as n:
            run(t, n, chosen((test_held_steps, ["kubelet"]), (test_waiting_steps, ["kubelet"]), (test_resized_meanwhile,),
                             (test_any_moment, [["kubelet"], ["kubelet"], ["kubelet"], ["server"], ["kubelet", "server"], ["freeze"]], rounds),
                             (test_server_away,), (test_server_flaky,)))
            if chosen((test_taken_over,)):
                prepare_taken_over(n)
            run(t, n, [*chosen((test_taken_over,), (test_reboot,)), (test_end,)])
    if "apart" in where:
        with World(apart=True) as n:
            run(t, n, [*chosen((test_held_steps, ["runtime"]), (test_waiting_steps, ["runtime"]), (test_held_steps, ["kubelet", "runtime"]),
                               (test_any_moment, [["kubelet"], ["runtime"], ["runtime"], ["kubelet", "runtime"]], rounds)), (test_end,)])
    if "containerd" in where:
        with World(runtime="containerd") as n:
            run(t, n, [*chosen((test_any_moment, [["kubelet"], ["runtime"], ["runtime"], ["kubelet", "runtime"]], rounds)), (test_end,)])
    t.close()


if __name__ == "__main__":
    main()
