"""Long runs of `c8s up`, which are not among the tests for the time that they take. From the source folder, as root, after a build:

    C8S=build/c8s python3 tests/up_soak.py loop 100     up and down a hundred times, with a pod: as quick at the end as at the beginning
    C8S=build/c8s python3 tests/up_soak.py kill 5       five minutes of kill -9 of any process at any moment, while pods run
    C8S=build/c8s python3 tests/up_soak.py churn 10     ten minutes of 24 pods that come and go: nothing grows

Figures are printed as they come; what is judged speaks TAP at the end. Everything is in namespaces of its own and is gone afterwards."""
import os
import random
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import nodes  # noqa: E402
import tap  # noqa: E402
import up_test  # noqa: E402

PODS = 24
MANIFEST = """apiVersion: v1
kind: Pod
metadata: {{ name: {name}, labels: {{ app: soak }} }}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {{ name: c, image: "example.com/web:1" }}
  - {{ name: d, image: "example.com/web:1", command: [sleep, "1000000"] }}
"""
DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  replicas: 4
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec:
      terminationGracePeriodSeconds: 1
      containers: [ { name: c, image: "example.com/web:1" } ]
"""


class Machine:
    """What a cluster has on this machine, by number."""

    def __init__(self, c):
        self.c = c
        self.run = f"/run/c8s/{c.tag()}"
        self.group = f"c8s-{os.path.basename(self.run)}"

    def groups(self):
        """Folders of its control groups, in all hierarchies."""
        with open("/proc/self/mounts") as f:
            tops = [line.split()[1] for line in f if line.split()[2].startswith("cgroup")]
        return [path for top in tops for path, _, _ in os.walk(os.path.join(top, self.group))]

    def in_pods(self):
        """Processes of containers and sandboxes."""
        found = set()
        for path in self.groups():
            try:
                with open(os.path.join(path, "cgroup.procs")) as f:
                    found |= {int(line) for line in f}
            except OSError:
                pass
        return found

    def parts(self):
        """The three that serve: their pids by name."""
        pids = {"supervisor": os.path.join(self.c.data, "lock"), "control-plane": f"{self.run}/control-plane.pid", "node": f"{self.run}/node.pid"}
        return {name: self.c.pid(path) for name, path in pids.items()}

    @staticmethod
    def files(*folders):
        return sum(len(names) for folder in folders for _, _, names in os.walk(folder))

    def count(self):
        with open("/proc/self/mounts") as f:
            mounts = sum(self.c.folder in line or self.run in line for line in f)
        links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True).stdout
        # Of images and of what containers write there is one tree per container: they are counted by their mounts.
        return {"mounts": mounts, "links": len(links.splitlines()), "cgroups": len(self.groups()), "files of /run": self.files(self.run),
                "files of the node": self.files(f"{self.c.data}/node/kubelet", f"{self.c.data}/node/log"),
                "files of the control plane": self.files(f"{self.c.data}/control-plane"), "processes": len(self.c.processes()) + len(self.in_pods())}

    def use(self):
        """Memory, descriptors and threads of those who serve."""
        found = {}
        for name, pid in self.parts().items():
            with open(f"/proc/{pid}/smaps_rollup") as f:
                found[f"{name} KiB"] = next(int(line.split()[1]) for line in f if line.startswith("Pss:"))
            found[f"{name} descriptors"] = len(os.listdir(f"/proc/{pid}/fd"))
            found[f"{name} threads"] = len(os.listdir(f"/proc/{pid}/task"))
        return found


def start(*args):
    c = up_test.Up()
    up_test.make_images(os.path.join(c.folder, "images"))
    r = c.first("--images", os.path.join(c.folder, "images"), *args)
    if r.returncode:
        sys.exit(r.stdout + r.stderr)
    return c


def apply(c, text):
    return subprocess.run([up_test.peers.find("kubectl", "kubernetes-client"), "apply", "-f", "-"], input=text, env=c.env, capture_output=True, text=True,
                          timeout=120)


def answers(c):
    return up_test.page(c) == "it answers\n"


def show(what, figures):
    print(f"# {what}: " + ", ".join(f"{name} {value}" for name, value in figures.items()), flush=True)


# ---- up and down ----

def loop(t, c, n):
    c.kubectl("run", "web", "--image", "example.com/web:1")
    if not tap.wait_for(lambda: answers(c), 60):
        sys.exit("the pod does not answer")
    times, counts = [], []
    for i in range(n):
        began = time.monotonic()
        down = c.run("down")
        between = time.monotonic()
        up = c.up()
        times.append((time.monotonic() - between, between - began))
        if down.returncode or up.returncode or not tap.wait_for(lambda: answers(c), 60):
            t.check(f"round {i}", False, down.stderr + up.stdout + up.stderr + c.kubectl("describe", "pod", "web").stdout[-1500:])
            return
        counts.append(Machine(c).count())
        if i % max(n // 10, 1) == 0:
            show(f"round {i}, up {times[-1][0]:.3f} s, down {times[-1][1]:.3f} s", counts[-1])
    show(f"round {n}", counts[-1])
    part = max(n // 10, 3)
    for k, name in enumerate(("up", "down")):
        # The shortest: others on the machine make some of them longer.
        first, last = (min(x[k] for x in some) for some in (times[:part], times[-part:]))
        t.check(f"{name} is as quick after {n} rounds as before", last < 1.5 * first + 0.1, f"{first:.3f} s, then {last:.3f} s")
        print(f"# {name}: shortest of the first {part} {first:.3f} s, of the last {part} {last:.3f} s; median of all {statistics.median(x[k] for x in times):.3f} s")
    for name in counts[0]:
        first, last = (max(x[name] for x in some) for some in (counts[:part], counts[-part:]))
        t.check(f"{name}: as many as before", last <= first, f"{first}, then {last}")


# ---- kill -9 ----

def kill_one(c, m):
    """Kills a process of those that there are; its kind."""
    victims = [(name, pid) for name, pid in m.parts().items()]
    victims += [("monitor", pid) for pid in c.processes() if "monitor" in tap.arguments(pid).split("\0")[:2]]
    victims += [("pause" if tap.arguments(pid).startswith("pause") or "/pause" in tap.arguments(pid) else "container", pid) for pid in m.in_pods()]
    kinds = sorted({kind for kind, _ in victims})
    kind = random.choice(kinds)
    pid = random.choice([pid for k, pid in victims if k == kind])
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    return kind


def is_well(c):
    ready = c.kubectl("get", "pods", "-l", "app=web", "-o", "jsonpath={range .items[*]}{.status.podIP} {.status.conditions[?(@.type=='Ready')].status}{'\\n'}{end}").stdout
    pods = [line.split() for line in ready.splitlines()]
    return c.run("status").returncode == 0 and len(pods) == 4 and all(len(p) == 2 and p[1] == "True" and up_test.page(c, p[0]) == "it answers\n" for p in pods)


def kill(t, c, minutes):
    apply(c, DEPLOYMENT)
    t.check("pods run", tap.wait_for(lambda: is_well(c), 60), c.kubectl("get", "pods").stdout)
    m = Machine(c)
    end, killed, written, longest = time.monotonic() + minutes * 60, {}, [], 0.0
    while time.monotonic() < end:
        name = f"w{len(written)}"
        if c.kubectl("create", "configmap", name, f"--from-literal=a={name}").returncode == 0:
            written.append(name)
        kind = kill_one(c, m)
        killed[kind] = killed.get(kind, 0) + 1
        began = time.monotonic()
        time.sleep(random.random())
        if kind == "supervisor" and (r := c.up()).returncode:
            t.check("up after the supervisor was killed", False, r.stdout + r.stderr)
            return
        if random.random() < 0.5:  # otherwise the next one while things are still moving
            if not tap.wait_for(lambda: is_well(c), 180):
                t.check(f"all is well after a {kind} was killed", False, c.run("status").stdout + c.kubectl("get", "pods", "-o", "wide").stdout
                        + c.kubectl("describe", "pods").stdout[-3000:])
                return
            longest = max(longest, time.monotonic() - began)
    show("killed", killed)
    print(f"# all was well again after {longest:.1f} s at most, back-off included", flush=True)
    t.check("everything comes back", tap.wait_for(lambda: is_well(c), 400), c.kubectl("get", "pods").stdout)
    there = c.kubectl("get", "configmaps", "-o", "jsonpath={.items[*].metadata.name}").stdout.split()
    t.check("nothing is lost that was acknowledged", not set(written) - set(there), sorted(set(written) - set(there)))
    show("at the end", m.count())


# ---- coming and going ----

def churn(t, c, minutes):
    m = Machine(c)
    began = time.monotonic()
    samples, rounds = [], 0
    while time.monotonic() < began + minutes * 60:
        apply(c, "---\n".join(MANIFEST.format(name=f"p{rounds}-{i}") for i in range(PODS)))
        r = c.kubectl("wait", "--for=condition=Ready", "pod", "-l", "app=soak", "--timeout=55s")
        if r.returncode:
            t.check(f"the pods of round {rounds} run", False, r.stderr[-1500:])
            return
        c.kubectl("delete", "pod", "-l", "app=soak", "--wait")
        tap.wait_for(lambda: len(m.in_pods()) == 0, 30)
        samples.append((time.monotonic() - began, {**m.use(), **m.count()}))
        rounds += 1
        if rounds % 10 == 1:
            show(f"{samples[-1][0]:.0f} s, {rounds * PODS} pods", samples[-1][1])
    show(f"{samples[-1][0]:.0f} s, {rounds * PODS} pods", samples[-1][1])
    third = max(len(samples) // 3, 1)
    for name in samples[0][1]:
        middle, last = (statistics.median(x[1][name] for x in some) for some in (samples[third:2 * third], samples[-third:]))
        # Connections that are idle are kept for a while, more of them or fewer. Who writes events remembers the last 4096 that were alike,
        # as Kubernetes' recorder does: that is some MiB, which on a slow machine are not reached before the last third.
        slack = 0.05 * middle + 512 + 4096 * (name != "supervisor KiB") if name.endswith("KiB") else 16 if name.endswith("descriptors") else 0
        t.check(f"{name}: no growth", last <= middle + slack, f"{middle} in the second third, {last} in the last")


def main():
    runs = {"loop": loop, "kill": kill, "churn": churn}
    if len(sys.argv) != 3 or sys.argv[1] not in runs:
        sys.exit(__doc__)
    t = tap.Tap()
    if why := nodes.missing():
        t.skip("long runs", why)
        t.close()
    nodes.own_namespaces()
    # Events and old revisions are kept for a while, which is meant to grow: what is left after they go is what is looked for.
    c = start("--control-plane-arg=event-ttl=30s", "--control-plane-arg=etcd-compaction-interval=30s")
    try:
        runs[sys.argv[1]](t, c, int(sys.argv[2]))
        r = c.run("reset")
        t.check("reset leaves nothing", r.returncode == 0 and tap.wait_for(lambda: not c.traces(), 20), r.stderr + "\n".join(c.traces()))
    finally:
        c.close()
    t.close()


if __name__ == "__main__":
    main()
