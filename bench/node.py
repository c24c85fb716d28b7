#!/usr/bin/env python3
"""What `c8s up` costs: how soon the node is Ready, with new keys and with those of before; memory and processor time of all that runs then;
pods from POST to Running as a watcher sees it, one after another and all at once, split by what their status tells on the way; the process
that stays with each pod; a kubelet with many pods that do nothing. In the same run the same with Debian's containerd below the same kubelet,
and etcd and containerd alone, which Kubernetes needs beside its own programs. Needs root.

    node.py [--rounds N] [--idle-pods N]"""
import argparse
import base64
import contextlib
import http.client
import json
import os
import re
import ssl
import subprocess
import threading
import time

from common import cpu_seconds, figure, median, memory
import cluster
import containerd
import images
import nodes
import peers
import tap
from up_test import C8S, Up

ONE_BY_ONE, AT_ONCE, SETTLE_S, IDLE_S, WAIT_S = 20, 50, 5, 25, 120
IMAGE = "example.com/bench:1"
PODS = "/api/v1/namespaces/default/pods"
STEPS = ("created", "scheduled", "sandbox", "running")


class Cluster(Up):
    """One by `c8s up`."""

    def __init__(self, runtime="c8s"):
        super().__init__()
        self.images, self.runtime, self.containerd = os.path.join(self.folder, "images"), runtime, None

    def make_images(self):
        os.makedirs(self.images)
        images.Image(images.busybox(), config={"Cmd": ["sleep", "100000"]}).docker_archive(os.path.join(self.images, "bench.tar"), IMAGE)

    def start_containerd(self):
        """Mounts that one of kubelet and containerd makes in the folder reach the other."""
        for how in (["--bind", self.folder, self.folder], ["--make-private", self.folder], ["--make-shared", self.folder]):
            subprocess.run(["mount", *how], check=True)
        self.containerd = containerd.Containerd(shared=self.folder).start()
        self.make_images()
        self.containerd.load(os.path.join(self.images, "bench.tar"))
        return ["--container-runtime-endpoint", self.containerd.endpoint]

    def start(self):
        """Seconds until the node is Ready."""
        args = []
        if not os.path.exists(self.data):
            more = self.start_containerd() if self.runtime == "containerd" else []
            args = ["--secure-port", str(self.ports[0]), "--kubelet-port", str(self.ports[1]), "--node-name", "n1", "--pod-cidr", "10.219.0.0/16", *more]
        begin, said = time.monotonic(), []
        with subprocess.Popen([C8S, "up", "--detach", "--data-dir", self.data, *args], env=self.env, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT) as up:
            for line in up.stdout:
                said.append(line)
                if "is Ready" in line:
                    seconds = time.monotonic() - begin
        if up.returncode:
            raise RuntimeError("".join(said))
        return seconds

    def load(self):
        """The image of pods, into the built-in runtime."""
        self.make_images()
        subprocess.run([C8S, "image", "--root", os.path.join(self.data, "node", "runtime"), "load", os.path.join(self.images, "bench.tar")],
                       check=True, capture_output=True)

    def connect(self):
        """As the administrator."""
        with open(os.path.join(self.data, "control-plane", "admin.conf")) as f:
            found = dict(re.findall(r"(client-certificate|client-key)-data: (\S+)", f.read()))
        pem = os.path.join(self.folder, "admin.pem")
        with open(pem, "wb") as f:
            f.write(b"".join(base64.b64decode(part) for part in found.values()))
        context = ssl._create_unverified_context()
        context.load_cert_chain(pem)
        return http.client.HTTPSConnection("127.0.0.1", self.ports[0], timeout=WAIT_S, context=context)

    def close(self):
        super().close()
        if self.containerd:
            self.containerd.close()
            subprocess.run(["umount", "-l", self.folder], capture_output=True)
            os.rmdir(self.folder)


# ---- the stack at rest ----


def measure_start(rounds):
    for i in range(rounds):
        with contextlib.closing(Cluster()) as c:
            seconds = [c.start()]
            for _ in range(rounds - 1):
                c.run("down")
                seconds.append(c.start())
        figure("start_new", seconds[0])
        for again in seconds[1:]:
            figure("start_again", again)
        print(f"up to node Ready: {seconds[0] * 1e3:.0f} ms with new keys, then " + ", ".join(f"{s * 1e3:.0f}" for s in seconds[1:]) + " ms", flush=True)


def at_rest(pids_by_name):
    """MB and percent of a core by name: of several at the same time, because only their own time counts."""
    def used(pids):
        return sum(map(cpu_seconds, pids))
    time.sleep(SETTLE_S)
    before = {name: used(pids) for name, pids in pids_by_name.items()}
    begin = time.monotonic()
    time.sleep(IDLE_S)
    seconds = time.monotonic() - begin
    return {name: (sum(memory(pid)[1] for pid in pids), 100 * (used(pids) - before[name]) / seconds) for name, pids in pids_by_name.items()}


def measure_rest():
    with contextlib.ExitStack() as running, cluster.Folder() as folder:
        stack = {"c8s": running.enter_context(contextlib.closing(started(Cluster()))).parts()}
        if peers.find("etcd", "etcd-server") and peers.find("etcdctl", "etcd-client") and not containerd.missing():
            etcd = running.enter_context(cluster.Etcd(os.path.join(folder, "etcd")))
            stack["etcd and containerd"] = [etcd.processes[0].pid, running.enter_context(containerd.Containerd()).pid()]
        for who, (megabytes, percent) in at_rest(stack).items():
            figure("idle_memory", megabytes, who)
            figure("idle_cpu", percent, who)
            print(f"at rest, {who}: {megabytes:.1f} MB (PSS), {percent:.2f} % of a core", flush=True)


def started(c):
    try:
        c.start()
    except BaseException:
        c.close()
        raise
    return c


# ---- pods ----


class Watcher:
    """When pods came to each step, as a client sees it."""

    def __init__(self, c):
        self.seen, self.gone, self.cluster, self.changed = {}, set(), c, threading.Condition()
        self.connection = c.connect()
        threading.Thread(target=self.follow, daemon=True).start()
        time.sleep(0.3)

    def follow(self):
        connection = self.cluster.connect()
        try:
            connection.request("GET", PODS + "?watch=1", headers={"Accept": "application/json"})
            answer = connection.getresponse()
            while line := answer.readline():
                self.take(time.monotonic(), json.loads(line))
        except OSError:
            pass  # the cluster has ended

    def take(self, now, event):
        pod = event["object"]
        name, status, steps = pod["metadata"]["name"], pod.get("status", {}), {"created"}
        if pod["spec"].get("nodeName"):
            steps.add("scheduled")
        if any(x["type"] == "PodReadyToStartContainers" and x["status"] == "True" for x in status.get("conditions", [])):
            steps.add("sandbox")
        if status.get("phase") == "Running":
            steps.update(STEPS)
        with self.changed:
            known = self.seen.setdefault(name, {})
            for step in steps:
                known.setdefault(step, now)
            if event["type"] == "DELETED":
                self.gone.add(name)
            self.changed.notify_all()

    def wait(self, name, what="Running"):
        """Until it runs, or is gone: when it came to each step."""
        with self.changed:
            if not self.changed.wait_for(lambda: "running" in self.seen.get(name, {}) if what == "Running" else name in self.gone, WAIT_S):
                raise TimeoutError(f"pod {name} is not {what} after {WAIT_S} s")
            return self.seen[name]

    def request(self, method, path, body=None):
        self.connection.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {text}")

    def post(self, name):
        begin = time.monotonic()
        self.request("POST", PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
            "terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": IMAGE, "imagePullPolicy": "IfNotPresent"}]}})
        return begin

    def remove(self, *names):
        """Gracefully: of those that are removed by force the node still has the containers for a while, and it takes 110 pods at most."""
        for name in names:
            self.request("DELETE", f"{PODS}/{name}")
        for name in names:
            self.wait(name, "gone")


def one_by_one(watcher, prefix):
    """p50 of each step in ms."""
    names, splits = [f"{prefix}-{i}" for i in range(ONE_BY_ONE)], []
    for name in names:
        begin = watcher.post(name)
        seen = watcher.wait(name)
        splits.append([(seen.get(s, seen["running"]) - begin) * 1e3 for s in STEPS])
    watcher.remove(*names)
    return [median(column) for column in zip(*splits)]


def all_at_once(watcher, prefix, count=AT_ONCE):
    """Milliseconds until the last one runs, and their names: they run on."""
    names, begin = [f"{prefix}-{i}" for i in range(count)], time.monotonic()
    for name in names:
        watcher.post(name)
    return max((watcher.wait(name)["running"] - begin) * 1e3 for name in names), names


def monitors(c):
    """MB of the process that stays with each pod."""
    time.sleep(SETTLE_S)  # those that start containers have ended then
    found = tap.pids_of("monitor", "--state", c.tag()) if not c.containerd else tap.pids_of("containerd-shim", c.containerd.folder)
    return median([memory(pid)[0] for pid in found])


def measure_pods(who, rounds, idle_pods):
    with contextlib.closing(started(Cluster(who))) as c:
        if who == "c8s":
            c.load()
        watcher = Watcher(c)
        watcher.post("first")
        watcher.wait("first")
        for i in range(rounds):
            p50 = one_by_one(watcher, f"one{i}")
            figure("pod_one", p50[-1], who)
            together, names = all_at_once(watcher, f"all{i}")
            figure("pod_many", together / 1e3, who)
            if i == rounds - 1:
                rss = monitors(c)
                figure("monitor", rss, who)
            watcher.remove(*names)
            print(f"pods, {who}: one after another, p50: " + ", ".join(f"{step} {ms:.1f} ms" for step, ms in zip(STEPS, p50))
                  + f"; {AT_ONCE} at once, all running: {together:.0f} ms", flush=True)
        print(f"pods, {who}: the process that stays with each: {rss:.2f} MB (RSS)", flush=True)
        if idle_pods:
            _, names = all_at_once(watcher, "idle", idle_pods)
            ((megabytes, percent),) = at_rest({"node": [c.parts()[2]]}).values()
            print(f"pods, {who}: kubelet with {idle_pods} that do nothing: {megabytes:.1f} MB (PSS), {percent:.2f} % of a core", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--idle-pods", type=int, default=100)
    args = parser.parse_args()
    if os.geteuid():
        raise SystemExit("bench of a node: needs root")
    why = containerd.missing()  # and gets it, while there is a network
    for program in ("etcd", "etcdctl"):
        peers.find(program, peers.PEERS[program])
    nodes.own_namespaces()
    measure_start(args.rounds)
    measure_rest()
    measure_pods("c8s", args.rounds, args.idle_pods)
    if why:
        print(f"without containerd: {why}")
    else:
        measure_pods("containerd", args.rounds, args.idle_pods)


if __name__ == "__main__":
    main()
