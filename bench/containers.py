#!/usr/bin/env python3
"""What a container costs to start: `c8s runc run` of a program that ends at once, beside Debian's runc and crun with the same bundle, in
turn in the same run. Needs root.

    containers.py [ROUNDS]"""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))
import peers  # noqa: E402

GOAL = 0.7  # of crun
UNIFIED = "/sys/fs/cgroup/unified"


def hide_unified():
    """crun does not work where it sees cgroup v2 beside v1: the whole run moves to where it cannot."""
    if os.path.ismount(UNIFIED) and not os.environ.get("BENCH_HIDDEN"):
        os.environ["BENCH_HIDDEN"] = "1"
        os.execvp("unshare", ["unshare", "-m", "sh", "-c", f'mount -t tmpfs tmpfs {UNIFIED} && exec "$@"', "sh", sys.executable, *sys.argv])


def make_bundle(folder, runc):
    """An empty root with busybox, and the configuration that runc suggests, without a terminal."""
    os.makedirs(os.path.join(folder, "rootfs", "bin"))
    shutil.copy("/bin/busybox", os.path.join(folder, "rootfs", "bin", "true"))
    subprocess.run([runc, "spec"], cwd=folder, check=True)
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


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    if os.geteuid():
        sys.exit("bench containers: needs root")
    hide_unified()
    own = os.path.join(os.path.dirname(os.environ["C8S"]), "c8s-pod")
    runc, crun = (peers.find(name, peers.PEERS[name]) for name in ("runc", "crun"))
    runtimes = {"c8s": ([own, "runc"], None)}
    if runc:
        runtimes["runc"] = ([runc], None)
    if crun:
        runtimes["crun"] = ([crun], peers.libraries())
    times = {name: [] for name in runtimes}
    with tempfile.TemporaryDirectory() as folder:
        bundle = os.path.join(folder, "bundle")
        make_bundle(bundle, own if not runc else runc)
        for _ in range(rounds):
            for name, (command, environment) in list(runtimes.items()):
                try:
                    times[name].append(run_once(command, os.path.join(folder, name), bundle, environment))
                except RuntimeError as why:
                    print(f"{name} does not run here: {why}")
                    del runtimes[name]
    middle = {name: statistics.median(t) for name, t in times.items() if name in runtimes}
    for name, seconds in middle.items():
        ratio = middle["c8s"] / seconds
        goal = f", goal {GOAL}" if name == "crun" else ""
        print(f"run to exit of true, {name:5} {seconds * 1e3:7.2f} ms" + ("" if name == "c8s" else f"   c8s takes {ratio:.2f} of it{goal}"))


if __name__ == "__main__":
    main()
