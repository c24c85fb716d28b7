#!/usr/bin/env python3
"""What containers cost, each beside a peer of Debian's in turn in the same run. Needs root.

- `c8s runc run` of a program that ends at once, beside runc and crun with the same bundle and their state in memory, where /run is
- a pod with one container over CRI (RunPodSandbox, CreateContainer, StartContainer), by c8s runtime and by containerd, with the network of
  the node and with one of its own, one after another and all at once; both keep their data on the same disk and their state in memory
- the memory of the process that stays with each pod

    containers.py [--rounds N] [--cri BENCH-CRI]      without it only the first"""
import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from common import figure, median, memory
import containerd
import images
import peers
import tap
from cluster import wait_until

C8S = os.environ["C8S"]
POD = peers.static_pod()
IMAGE = "docker.io/library/busybox:bench"
UNIFIED = "/sys/fs/cgroup/unified"
ONE_BY_ONE, AT_ONCE, REST_S = 10, 50, 3
GOAL_OF_CRUN = 0.7
GOAL_OF_CONTAINERD = 0.2
GOAL_POD_MS = 15
GOAL_AT_ONCE_MS = 600
GOAL_MONITOR_MB = 0.5


def apart():
    """Mounts of the whole run vanish with it. crun does not work where it sees cgroup v2 beside v1: here it cannot."""
    if not os.environ.get("BENCH_APART"):
        os.environ["BENCH_APART"] = "1"
        hide = f"mount -t tmpfs tmpfs {UNIFIED} && " if os.path.ismount(UNIFIED) else ""
        os.execvp("unshare", ["unshare", "-m", "sh", "-c", f'{hide}exec "$@"', "sh", sys.executable, *sys.argv])


# ---- the OCI runtime alone ----


def make_bundle(folder, runc):
    """An empty root with busybox, and the configuration that runc suggests, without a terminal."""
    os.makedirs(os.path.join(folder, "rootfs", "bin"))
    shutil.copy("/bin/busybox", os.path.join(folder, "rootfs", "bin", "true"))
    subprocess.run([*runc, "spec"], cwd=folder, check=True)
    path = os.path.join(folder, "config.json")
    with open(path) as f:
        config = json.load(f)
    config["process"]["terminal"] = False
    config["process"]["args"] = ["/bin/true"]
    config["linux"]["cgroupsPath"] = f"/c8s-bench-{os.getpid()}"
    with open(path, "w") as f:
        json.dump(config, f)


def run_once(command, root, bundle, environment):
    begun = time.perf_counter()
    done = subprocess.run([*command, "--root", root, "run", "--bundle", bundle, f"bench-{os.getpid()}"], capture_output=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"{command}: {done.stderr.decode(errors='replace')}")
    return time.perf_counter() - begun


@contextlib.contextmanager
def in_memory(folder):
    os.makedirs(folder, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], capture_output=True)


def bench_runtimes(folder, rounds):
    runc, crun = (peers.find(name, peers.PEERS[name]) for name in ("runc", "crun"))
    runtimes = {"c8s": ([POD, "runc"], None)}
    if runc:
        runtimes["runc"] = ([runc], None)
    if crun:
        runtimes["crun"] = ([crun], peers.libraries())
    times = {name: [] for name in runtimes}
    bundle = os.path.join(folder, "bundle")
    make_bundle(bundle, [runc] if runc else [POD, "runc"])
    with in_memory(os.path.join(folder, "state")) as state:
        for _ in range(rounds):
            for name, (command, environment) in list(runtimes.items()):
                try:
                    times[name].append(run_once(command, os.path.join(state, name), bundle, environment))
                except RuntimeError as why:
                    print(f"{name} does not run here: {why}")
                    del runtimes[name]
    middle = {name: median(t) for name, t in times.items() if name in runtimes}
    for name, seconds in middle.items():
        goal = f", goal {GOAL_OF_CRUN}" if name == "crun" else ""
        print(f"run to exit of true, {name:5} {seconds * 1e3:7.2f} ms"
              + ("" if name == "c8s" else f"   c8s takes {middle['c8s'] / seconds:.2f} of it{goal}"))
        if "crun" in middle and name != "crun":
            figure("oci", seconds / middle["crun"], name)


# ---- pods over CRI ----


class Ours:
    """c8s runtime, with what containerd.Containerd has of the same name."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="c8s-bench-")
        self.cgroup = "/" + os.path.basename(self.folder)
        self.root, self.state = os.path.join(self.folder, "root"), os.path.join(self.folder, "state")
        self.endpoint = f"unix://{self.state}/cri.sock"
        self.log = os.path.join(self.folder, "log")
        self.conf = os.path.join(self.folder, "net.d")
        os.makedirs(self.conf)
        with open(os.path.join(self.conf, "10-bench.conflist"), "w") as f:
            json.dump({"cniVersion": "1.0.0", "name": "bench", "plugins": [
                {"type": "bridge", "bridge": "c8sbench0", "isGateway": True,
                 "ipam": {"type": "host-local", "dataDir": os.path.join(self.folder, "ipam"), "ranges": [[{"subnet": "10.213.0.0/16"}]],
                          "routes": [{"dst": "0.0.0.0/0"}]}}]}, f)

    def load(self, archive):
        subprocess.run([C8S, "image", "--root", self.root, "load", archive], check=True, capture_output=True)

    def __enter__(self):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([C8S, "runtime", "--root", self.root, "--state", self.state, "--cni-conf-dir", self.conf,
                                             "--cgroup-parent", self.cgroup, "--pod-program", POD], stdout=log, stderr=log)
        wait_until(lambda: b" ready " in open(self.log, "rb").read(), what="c8s runtime to be ready")
        return self

    def __exit__(self, *_):
        subprocess.run([C8S, "crictl", "-r", self.endpoint, "rmp", "-f", "-a"], capture_output=True)
        self.process.terminate()
        self.process.wait()
        tap.remove_cgroups(self.cgroup)
        shutil.rmtree(self.folder, ignore_errors=True)


class Client:
    """bench-cri: starts pods, and removes them at the end of its `with` block."""

    def __init__(self, program, side, network, count, at_once):
        self.process = subprocess.Popen([program, side.endpoint, IMAGE, network, str(count), str(at_once), side.cgroup,
                                         os.path.join(side.folder, "logs")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{program} has failed at {side.endpoint}")
        self.times = json.loads(line)

    def __enter__(self):
        return self.times

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def compare(what, ours, theirs, unit, goal):
    ratio = f"   containerd {theirs:8.1f} {unit}, c8s takes {ours / theirs:.3f} of it, goal {GOAL_OF_CONTAINERD}" if theirs else ""
    print(f"{what:58} c8s {ours:7.1f} {unit} (goal {goal}){ratio}")


def bench_pods(program, sides, rounds):
    for network, text in (("host", "network of the node"), ("pod", "network of its own")):
        single, together = {name: [] for name in sides}, {name: [] for name in sides}
        for _ in range(rounds):
            for name, side in sides.items():
                with Client(program, side, network, ONE_BY_ONE, 1) as times:
                    single[name] += times["pod"]
        for name, side in sides.items():
            with Client(program, side, network, AT_ONCE, AT_ONCE) as times:
                together[name] = times["all"]
        for part in (0.5, 0.99):
            figures = {name: percentile(times, part) for name, times in single.items()}
            compare(f"pod with {text}, one after another, p{part * 100:.0f}", figures["c8s"], figures.get("containerd"), "ms", GOAL_POD_MS)
        compare(f"pods with {text}, {AT_ONCE} at once, all", together["c8s"], together.get("containerd"), "ms", GOAL_AT_ONCE_MS)


def bench_memory(program, sides):
    """What stays with a pod when its container has run for a while and nobody asks for anything."""
    words = {"c8s": ["monitor", "--state"], "containerd": ["containerd-shim", "-address"]}
    for name, side in sides.items():
        with Client(program, side, "host", ONE_BY_ONE, 1):
            time.sleep(REST_S)
            found = [memory(pid) for pid in tap.pids_of(*words[name], side.folder)]
        rss, pss = (sum(m[i] for m in found) / max(len(found), 1) for i in (0, 1))
        goal = f" (goal {GOAL_MONITOR_MB})" if name == "c8s" else ""
        print(f"per pod of {ONE_BY_ONE}, at rest: {name:10} {len(found)} processes, RSS {rss:6.2f} MB{goal}, PSS {pss:6.2f} MB")


def bench_cri(program, folder, rounds):
    why = containerd.missing()
    if why:
        print(f"without containerd: {why}")
    containerd.own_network()
    archive = os.path.join(folder, "busybox.tar")
    images.Image().docker_archive(archive, IMAGE)
    sides = {"c8s": Ours()}
    if not why:
        sides["containerd"] = containerd.Containerd()
    try:
        with contextlib.ExitStack() as running:
            for side in sides.values():
                running.enter_context(in_memory(os.path.join(side.folder, "state")))
                running.enter_context(side).load(archive)
            bench_pods(program, sides, rounds)
            bench_memory(program, sides)
    finally:
        for side in sides.values():
            shutil.rmtree(side.folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--cri", help="the program bench-cri")
    args = parser.parse_args()
    if os.geteuid():
        sys.exit("bench containers: needs root")
    apart()
    with tempfile.TemporaryDirectory() as folder:
        try:
            bench_runtimes(folder, args.rounds)
        finally:
            tap.remove_cgroups(f"/c8s-bench-{os.getpid()}")  # of one that could not run, too
        if args.cri:
            bench_cri(args.cri, folder, max(args.rounds // 10, 1))


if __name__ == "__main__":
    main()
