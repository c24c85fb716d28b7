#!/usr/bin/env python3
"""The CRI service (c8s runtime), asked by c8s crictl: the whole life of pods, in a network namespace of its own."""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import containers_stream_test as streams  # noqa: E402
import images  # noqa: E402
import peers  # noqa: E402
import tap  # noqa: E402
from cluster import wait_until  # noqa: E402

C8S = os.environ["C8S"]
NAME = f"c8s-test-cri-{random.randrange(1 << 32):08x}"
FOLDER = tempfile.mkdtemp(prefix=NAME + "-")
IMAGE = "docker.io/library/busybox:test"
ANNOTATED = "docker.io/library/annotated:test"
OWN_PID = {"namespace_options": {"pid": 1}}  # CONTAINER


class Failed(Exception):
    pass


class Node:
    """A node: a network namespace, and a runtime in it."""

    def __init__(self, name, network=True):
        self.folder = os.path.join(FOLDER, name)
        self.root, self.state = os.path.join(self.folder, "root"), os.path.join(self.folder, "state")
        self.socket = os.path.join(self.state, "cri.sock")
        self.cgroup = f"/{NAME}-{name}"
        self.process = self.holder = None
        self.log = os.path.join(self.folder, "log")
        self.conf = os.path.join(self.folder, "net.d")
        os.makedirs(self.conf)
        with open(os.path.join(self.conf, "10-test.conflist"), "w") as f:
            json.dump({"cniVersion": "1.0.0", "name": "test", "plugins": [
                {"type": "bridge", "bridge": "br-test", "isGateway": True, "hairpinMode": True,
                 "ipam": {"type": "host-local", "dataDir": os.path.join(self.folder, "ipam"), "ranges": [[{"subnet": "10.211.0.0/16"}]],
                          "routes": [{"dst": "0.0.0.0/0"}]}},
                {"type": "portmap", "capabilities": {"portMappings": True}}]}, f)
        if not network:
            return
        self.holder = subprocess.Popen(["unshare", "-n", "sh", "-c", "ip link set lo up; echo up; exec sleep 100000"], stdout=subprocess.PIPE)
        self.holder.stdout.readline()

    def way(self):
        return ["nsenter", f"--net=/proc/{self.holder.pid}/ns/net"] if self.holder else []

    def without_v2(self):
        """For crun, which takes cgroup v2 beside v1 for v2 alone: a node that does not see it."""
        if not os.path.ismount("/sys/fs/cgroup/unified"):
            return []
        return ["unshare", "-m", "sh", "-c", 'mount -t tmpfs tmpfs /sys/fs/cgroup/unified && exec "$@"', "sh"]

    def inside(self, *command, **options):
        return subprocess.run([*self.way(), *command], capture_output=True, text=True, **options)

    def start(self, *flags, before=()):
        with open(self.log, "ab") as log:
            begin = log.tell()
            self.process = subprocess.Popen(
                [*self.way(), *before, C8S, "runtime", "--root", self.root, "--state", self.state,
                 "--cni-conf-dir", self.conf, "--cgroup-parent", self.cgroup, "--pod-program", peers.static_pod(), *flags], stdout=log, stderr=log, env=peers.libraries())
        wait_until(lambda: b" ready " in open(self.log, "rb").read()[begin:] or self.process.poll() is not None, what="the runtime to be ready")
        if self.process.poll() is not None:
            raise Failed(open(self.log).read())
        return self

    def kill(self, sig=signal.SIGKILL):
        self.process.send_signal(sig)
        return self.process.wait(30)

    def crictl(self, *args, check=True, code=None):
        r = subprocess.run([C8S, "crictl", "-r", f"unix://{self.socket}", *args], capture_output=True, text=True, timeout=120)
        if code is None and check and r.returncode != 0:
            raise Failed(f"{args}: {r.stderr}")
        if code is not None and r.returncode != code:
            raise Failed(f"{args}: exit code {r.returncode}, not {code}: {r.stderr}")
        return r

    def out(self, *args):
        return self.crictl(*args).stdout.strip()

    def json(self, *args):
        return json.loads(self.out(*args))

    # ---- pods ----

    def pod_config(self, name, **more):
        config = {"metadata": {"name": name, "uid": name, "namespace": "default"}, "hostname": name,
                  "log_directory": os.path.join(self.folder, "logs", name),
                  "dns_config": {"servers": ["10.96.0.10"], "searches": ["cluster.local"], "options": ["ndots:5"]},
                  "linux": {"security_context": dict(OWN_PID)}}
        config.update(more)
        return config

    def file(self, name, value):
        path = os.path.join(self.folder, name)
        with open(path, "w") as f:
            json.dump(value, f)
        return path

    def runp(self, name, *flags, **more):
        return self.out("runp", *flags, self.file(f"{name}.pod.json", self.pod_config(name, **more)))

    def create(self, pod, pod_name, name, command, security=None, image=IMAGE, resources=None, **more):
        config = {"metadata": {"name": name}, "image": {"image": image}, "log_path": f"{name}.log",
                  "linux": {"security_context": {**OWN_PID, "seccomp": {"profile_type": 0}, **(security or {})}}}
        if command:
            config["command"] = command
        if resources:
            config["linux"]["resources"] = resources
        config.update(more)
        return self.out("create", "--no-pull", pod, self.file(f"{name}.json", config), os.path.join(self.folder, f"{pod_name}.pod.json"))

    def run(self, pod, pod_name, name, command, **more):
        container = self.create(pod, pod_name, name, command, **more)
        self.crictl("start", container)
        return container

    def exec(self, container, *command, code=0):
        r = self.crictl("exec", "-s", container, *command, code=code)
        return r.stdout + r.stderr

    def status(self, container):
        return self.json("inspect", container)["status"]

    def address(self, pod):
        return self.json("inspectp", pod)["status"]["network"]["ip"]

    def finished(self, container):
        wait_until(lambda: self.status(container)["state"] == "CONTAINER_EXITED", what="the container's end")
        return self.status(container)

    # ---- what is left ----

    def left(self):
        found = [f"{folder}/{x}" for folder in (f"{self.root}/sandboxes", f"{self.root}/containers", f"{self.root}/snapshots/mounts",
                                                f"{self.state}/pods", f"{self.state}/netns", f"{self.state}/oci", f"{self.state}/userns") for x in os.listdir(folder)]
        found += [line for line in open("/proc/self/mountinfo") if self.folder in line]
        for folder, folders, _ in os.walk("/sys/fs/cgroup"):
            if folder.endswith(self.cgroup):
                found += [os.path.join(folder, x) for x in folders]
        if self.holder:
            found += [line for line in self.inside("ip", "-br", "link").stdout.splitlines() if "veth" in line]
        ipam = os.path.join(self.folder, "ipam", "test")
        found += [x for x in (os.listdir(ipam) if os.path.isdir(ipam) else []) if x.startswith("10.")]
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if self.folder in open(f"/proc/{pid}/cmdline").read() and "c8s-pod" in os.readlink(f"/proc/{pid}/exe"):
                    found.append(f"process {pid}")
            except OSError:
                pass
        return found

    def close(self):
        if self.process and self.process.poll() is None:
            self.crictl("rmp", "-f", "-a", check=False)
            self.kill(signal.SIGTERM)
        if self.holder:
            self.holder.kill()
            self.holder.wait()
        tap.remove_cgroups(self.cgroup)
        for line in reversed(open("/proc/self/mountinfo").read().splitlines()):
            if self.folder in line.split()[4]:
                subprocess.run(["umount", "-l", line.split()[4]], capture_output=True)


def load_images(node):
    """Before the runtime has started, and beside it while it runs: both share the store."""
    plain, annotated = os.path.join(FOLDER, "plain.tar"), os.path.join(FOLDER, "annotated.tar")
    files = {**images.busybox(), "data": None, "data/file": b"of the image\n", "data/old": images.entry(tarfile.REGTYPE, mtime=10 ** 9),
             "data/again": images.entry(tarfile.LNKTYPE, linkname="data/old", mtime=10 ** 9),
             "zeros": images.entry(tarfile.CHRTYPE, devmajor=1, devminor=5, mode=0o666)}
    images.Image().docker_archive(plain, IMAGE)
    images.Image(files, config={"Entrypoint": ["sh", "-c"], "Cmd": ["echo from the image; sleep 1000"], "Env": ["A=image", "B=image"],
                                "WorkingDir": "/tmp", "User": "user", "StopSignal": "SIGUSR1", "Volumes": {"/data": {}, "/nowhere": {}}}
                 ).docker_archive(annotated, ANNOTATED)
    for archive in (plain, annotated):
        subprocess.run([C8S, "image", "--root", node.root, "load", archive], check=True, capture_output=True)


NODE = None


def test_service(t):
    v = NODE.out("version")
    t.check("version", "RuntimeName:  c8s" in v and "RuntimeApiVersion:  v1" in v, v)
    info = NODE.json("info")
    ready = {c["type"]: c.get("status", False) for c in info["status"]["conditions"]}
    t.check("runtime and network are ready", ready == {"RuntimeReady": True, "NetworkReady": True}, info)
    listed = NODE.json("images", "-o", "json")["images"]
    t.check("images", sorted(i["repoTags"][0] for i in listed) == [ANNOTATED, IMAGE], listed)
    t.check("image status", NODE.json("inspecti", ANNOTATED)["status"]["username"] == "user")
    r = NODE.crictl("inspecti", "nothing:here", check=False)
    t.check("an image that is not there", r.returncode == 1 and "no such image" in r.stderr, r.stderr)
    t.check("a socket for its owner and group", os.stat(NODE.socket).st_mode & 0o777 == 0o660)


def test_pod(t):
    pod = NODE.runp("one", labels={"app": "one"}, annotations={"note": "x"})
    status = NODE.json("inspectp", pod)["status"]
    t.check("a pod has an address", status["network"]["ip"].startswith("10.211."), status)
    t.check("it is ready", status.get("state", "SANDBOX_READY") == "SANDBOX_READY" and status["labels"] == {"app": "one"}, status)
    r = NODE.crictl("runp", os.path.join(NODE.folder, "one.pod.json"), check=False)
    t.check("a second one of that name", "failed to reserve sandbox name" in r.stderr and pod in r.stderr, r.stderr)
    t.check("lists: by label", NODE.out("pods", "-q", "--label", "app=one") == pod and NODE.out("pods", "-q", "--label", "app=two") == "")
    t.check("lists: by the beginning of an id, by state",
            NODE.out("pods", "-q", "--id", pod[:6]) == pod and NODE.out("pods", "-q", "--state", "notready") == "")
    c = NODE.create(pod, "one", "main", ["sh", "-c", "echo hello; echo oops >&2; exec sleep 1000"], envs=[{"key": "K", "value": "v"}],
                    labels={"l": "1"}, annotations={"a": "1"})
    t.check("a container is created", NODE.status(c).get("state", "CONTAINER_CREATED") == "CONTAINER_CREATED")
    NODE.crictl("start", c)
    s = NODE.status(c)
    t.check("and runs", s["state"] == "CONTAINER_RUNNING" and s["startedAt"] >= s["createdAt"] and s["image"]["image"] == IMAGE, s)
    r = NODE.crictl("start", c, check=False)
    t.check("it is started once", "container is in CONTAINER_RUNNING state" in r.stderr, r.stderr)
    log = os.path.join(NODE.folder, "logs", "one", "main.log")
    wait_until(lambda: os.path.exists(log) and len(open(log).readlines()) == 2, what="the log")
    words = [line.split(" ", 3)[1:] for line in open(log).read().splitlines()]
    t.check("its log", sorted(words) == [["stderr", "F", "oops"], ["stdout", "F", "hello"]], words)
    r = NODE.crictl("logs", c)
    t.check("crictl logs", (r.stdout, r.stderr) == ("hello\n", "oops\n"), r)
    t.check("exec", NODE.exec(c, "sh", "-c", "echo $K; hostname; cat /etc/hostname") == "v\none\none\n")
    t.check("resolv.conf", NODE.exec(c, "cat", "/etc/resolv.conf") == "search cluster.local\nnameserver 10.96.0.10\noptions ndots:5\n")
    t.check("exit codes of exec", NODE.crictl("exec", "-s", c, "sh", "-c", "echo out; echo err >&2; exit 7", code=7).stderr == "err\n")
    begin = time.monotonic()
    r = NODE.crictl("exec", "--timeout", "1", c, "sleep", "100", check=False)
    t.check("a time limit of exec", "timeout 1s exceeded: context deadline exceeded" in r.stderr and time.monotonic() - begin < 5, r.stderr)
    t.check("what was too late is gone", "sleep 100\n" not in NODE.exec(c, "ps"))
    r = NODE.crictl("exec", "-s", c, "/nothing", check=False)
    t.check("a program that is not there", r.returncode == 1 and "nothing" in r.stderr, r.stderr)
    r = NODE.crictl("exec", "-s", "0123456789", "true", check=False)
    t.check("a container that is not there", "failed to find container" in r.stderr and "not found" in r.stderr, r.stderr)
    out = NODE.crictl("exec", "-s", c, "sh", "-c", "head -c 300000 /dev/zero").stdout
    t.check("much output", len(out) == 300000)
    for _ in range(2):
        NODE.crictl("stop", "-t", "1", c)
    s = NODE.status(c)
    t.check("stopped by SIGKILL, as PID 1 does not hear others", s["state"] == "CONTAINER_EXITED" and s["exitCode"] == 137, s)
    t.check("its reason", s["reason"] == "Error" and s["finishedAt"] > s["startedAt"], s)
    r = NODE.crictl("exec", "-s", c, "true", check=False)
    t.check("no exec any more", "container is in CONTAINER_EXITED state" in r.stderr, r.stderr)
    NODE.crictl("rm", c)
    t.check("removed", NODE.out("ps", "-a", "-q", "-p", pod) == "")
    for _ in range(2):
        NODE.crictl("stopp", pod)
    t.check("the pod is stopped", NODE.json("inspectp", pod)["status"]["state"] == "SANDBOX_NOTREADY")
    r = NODE.crictl("create", "--no-pull", pod, os.path.join(NODE.folder, "main.json"), os.path.join(NODE.folder, "one.pod.json"), check=False)
    t.check("nothing is created in it", "is not running" in r.stderr, r.stderr)
    NODE.crictl("rmp", pod)
    t.check("nothing is left", not NODE.left(), NODE.left())


def test_image_config(t):
    pod = NODE.runp("img")
    c = NODE.run(pod, "img", "image", None, image=ANNOTATED, envs=[{"key": "B", "value": "own"}])
    wait_until(lambda: NODE.crictl("logs", c).stdout == "from the image\n", what="the command of the image")
    t.check("command of the image", True)
    got = NODE.exec(c, "sh", "-c", "id -u; id -g; echo $A $B; pwd; cat /data/file")
    t.check("its user, environment, folder and volume", got == "1000\n1000\nimage own\n/tmp\nof the image\n", got)
    s = NODE.status(c)
    t.check("told in its status", s["user"]["linux"]["uid"] == 1000 and s["stopSignal"] == "SIGUSR1", s)
    old = os.stat(os.path.join(NODE.root, "containers", c, "volumes", "0", "old"))
    t.check("links and times in the volume are the image's", (old.st_nlink, old.st_mtime) == (2, 10 ** 9), old)
    zero = NODE.run(pod, "img", "zero", ["sleep", "1000"], image=ANNOTATED, security={"run_as_user": {"value": 0}, "run_as_group": {"value": 0}})
    t.check("user 0 is somebody else than nobody in particular", NODE.exec(zero, "sh", "-c", "id -u; id -g") == "0\n0\n")
    c2 = NODE.run(pod, "img", "args", None, image=ANNOTATED, args=["trap 'exit 9' USR1; while :; do sleep 0.1; done"])
    NODE.crictl("stop", "-t", "20", c2)
    t.check("arguments in place of Cmd; the image's signal stops it", NODE.status(c2)["exitCode"] == 9, NODE.status(c2))
    r = NODE.crictl("create", "--no-pull", pod, NODE.file("x.json", {"metadata": {"name": "x"}, "image": {"image": "nothing:here"}}),
                    os.path.join(NODE.folder, "img.pod.json"), check=False)
    t.check("an image that is not there", "failed to resolve image" in r.stderr and "not found" in r.stderr, r.stderr)
    c3 = NODE.create(pod, "img", "broken", ["/nothing"])
    r = NODE.crictl("start", c3, check=False)
    s = NODE.status(c3)
    t.check("a program that is not there", r.returncode == 1 and s["exitCode"] == 128 and s["reason"] == "StartError", (r.stderr, s))
    c4 = NODE.run(pod, "img", "short", ["true"])
    s = NODE.finished(c4)
    t.check("one that ends by itself", s.get("exitCode", 0) == 0 and s["reason"] == "Completed", s)
    r = NODE.crictl("create", "--no-pull", pod, NODE.file("y.json", {"metadata": {"name": "y"}, "image": {"image": IMAGE}, "linux": {
        "security_context": {"run_as_username": "nobody-here"}}, "command": ["true"]}), os.path.join(NODE.folder, "img.pod.json"), check=False)
    t.check("a user that is not there", "nobody-here" in r.stderr, r.stderr)
    NODE.crictl("rmp", "-f", pod)
    t.check("nothing is left", not NODE.left(), NODE.left())


def caps(text):
    return {line.split(":")[0]: int(line.split()[1], 16) for line in text.splitlines() if line.startswith("Cap")}


def test_security(t):
    pod = NODE.runp("sec", linux={"security_context": {**OWN_PID, "privileged": True}, "sysctls": {"net.ipv4.ip_local_port_range": "40000 41000"}})
    sleep = ["sleep", "1000"]
    plain = NODE.run(pod, "sec", "plain", sleep, security={"masked_paths": ["/proc/kcore", "/proc/keys"], "readonly_paths": ["/proc/sys"]})
    status = NODE.exec(plain, "cat", "/proc/self/status")
    t.check("containerd's capabilities", caps(status) == {"CapInh": 0, "CapPrm": 0xa80425fb, "CapEff": 0xa80425fb, "CapBnd": 0xa80425fb, "CapAmb": 0}, status)
    t.check("seccomp", "Seccomp:\t2" in status, status)
    t.check("sysctls of the pod", NODE.exec(plain, "cat", "/proc/sys/net/ipv4/ip_local_port_range").split() == ["40000", "41000"])
    t.check("low ports are for everybody", NODE.exec(plain, "cat", "/proc/sys/net/ipv4/ip_unprivileged_port_start") == "0\n")
    t.check("masked", NODE.exec(plain, "cat", "/proc/keys") == "")
    t.check("read-only paths", "Read-only" in NODE.exec(plain, "sh", "-c", "echo 1 > /proc/sys/vm/drop_caches; true"))
    t.check("its own PID namespace", NODE.exec(plain, "sh", "-c", "cat /proc/1/cmdline").startswith("sleep"))
    tight = NODE.run(pod, "sec", "tight", sleep, security={
        "capabilities": {"drop_capabilities": ["ALL"], "add_capabilities": ["NET_BIND_SERVICE"]}, "readonly_rootfs": True, "no_new_privs": True,
        "run_as_user": {"value": 1234}, "run_as_group": {"value": 5678}, "supplemental_groups": [42, 43]})
    status = NODE.exec(tight, "cat", "/proc/self/status")
    t.check("capabilities are dropped and added", caps(status)["CapBnd"] == 1 << 10 and caps(status)["CapEff"] == 0, status)
    t.check("no new privileges", "NoNewPrivs:\t1" in status, status)
    t.check("user and groups", NODE.exec(tight, "sh", "-c", "id -u; id -g; id -G").split("\n")[:2] == ["1234", "5678"] and
            {"42", "43", "5678"} == set(NODE.exec(tight, "id", "-G").split()), NODE.exec(tight, "id"))
    t.check("read-only root", "Read-only" in NODE.exec(tight, "sh", "-c", "touch /x; true"))
    loose = NODE.run(pod, "sec", "loose", sleep, security={"seccomp": {"profile_type": 1}, "capabilities": {"add_capabilities": ["ALL"]}})
    own = caps(open("/proc/self/status").read())["CapEff"]
    status = NODE.exec(loose, "cat", "/proc/self/status")
    t.check("unconfined, with all capabilities", "Seccomp:\t0" in status and caps(status)["CapEff"] == own, status)
    big = NODE.run(pod, "sec", "big", sleep, security={"privileged": True})
    t.check("privileged: devices and a writable /sys", "null" in NODE.exec(big, "ls", "/dev") and NODE.exec(
        big, "sh", "-c", "grep ' /sys sysfs' /proc/mounts").split()[3].startswith("rw"))
    profile = NODE.file("profile.json", {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
        {"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1}]})
    local = NODE.run(pod, "sec", "local", sleep, security={"seccomp": {"profile_type": 2, "localhost_ref": profile}})
    t.check("a profile of the node", "not permitted" in NODE.exec(local, "sh", "-c", "mkdir /x; true"))
    other = NODE.runp("nopriv")
    r = NODE.crictl("create", "--no-pull", other, NODE.file("p.json", {"metadata": {"name": "p"}, "image": {"image": IMAGE}, "linux": {
        "security_context": {"privileged": True}}, "command": ["true"]}), os.path.join(NODE.folder, "nopriv.pod.json"), check=False)
    t.check("none that is privileged in a pod that is not", "no privileged container allowed in sandbox" in r.stderr, r.stderr)
    NODE.crictl("rmp", "-f", pod, other)
    t.check("nothing is left", not NODE.left(), NODE.left())


def test_namespaces(t):
    shared = NODE.runp("shared", linux={"security_context": {"namespace_options": {"pid": 0}}})
    a = NODE.run(shared, "shared", "a", ["sh", "-c", "sleep 4242 & sleep 1000"], security={"namespace_options": {"pid": 0}})
    b = NODE.run(shared, "shared", "b", ["sleep", "1000"], security={"namespace_options": {"pid": 0}})
    wait_until(lambda: "sleep 4242" in NODE.exec(b, "ps"), what="the other container's process")
    t.check("a shared PID namespace", "pause" in NODE.exec(b, "ps"))
    way = "/proc/1/root/proc/sys/kernel/core_pattern"
    t.check("and through it no way to the node's settings", NODE.exec(b, "sh", "-c", f"touch {way} 2>/dev/null && echo open || echo shut") == "shut\n")
    NODE.exec(a, "sh", "-c", "echo x > /dev/shm/f")
    t.check("a shared /dev/shm", NODE.exec(b, "cat", "/dev/shm/f") == "x\n")
    NODE.crictl("stop", "-t", "1", a)
    t.check("the end of a container is that of all its processes", "sleep 4242" not in NODE.exec(b, "ps"), NODE.exec(b, "ps"))
    target = NODE.run(shared, "shared", "t", ["sleep", "1000"], security={"namespace_options": {"pid": 3, "target_id": b}})
    t.check("a target's namespace", "sleep" in NODE.exec(target, "ps"))
    host = NODE.runp("host", linux={"security_context": {"namespace_options": {"network": 2, "pid": 2, "ipc": 2}}})
    c = NODE.run(host, "host", "h", ["sleep", "1000"], security={"namespace_options": {"network": 2, "pid": 2, "ipc": 2}})
    t.check("the node's namespaces", NODE.exec(c, "sh", "-c", "cat /proc/1/cmdline") == open("/proc/1/cmdline").read() and
            "br-test" in NODE.exec(c, "cat", "/proc/net/dev"))
    t.check("and no address of its own", "ip" not in NODE.json("inspectp", host)["status"].get("network", {}))
    r = NODE.crictl("runp", "--runtime", "nothing", NODE.file("h.json", NODE.pod_config("handler")), check=False)
    t.check("a handler that is not there", 'no runtime for "nothing" is configured' in r.stderr, r.stderr)
    NODE.crictl("rmp", "-f", "-a")
    t.check("nothing is left", not NODE.left(), NODE.left())


def test_mounts(t):
    source = os.path.join(NODE.folder, "volume")
    os.makedirs(source)
    with open(os.path.join(source, "f"), "w") as f:
        f.write("of the node\n")
    pod = NODE.runp("mounts")
    made = os.path.join(NODE.folder, "made")
    c = NODE.run(pod, "mounts", "m", ["sleep", "1000"], mounts=[
        {"container_path": "/rw", "host_path": source}, {"container_path": "/ro", "host_path": source, "readonly": True},
        {"container_path": "/made/deep", "host_path": made}, {"container_path": "/image", "image": {"image": ANNOTATED}},
        {"container_path": "/sub", "image": {"image": ANNOTATED}, "image_sub_path": "data"},
        {"container_path": "/rro", "host_path": source, "readonly": True, "recursive_read_only": True}])
    NODE.exec(c, "sh", "-c", "echo new > /rw/g; echo x > /made/deep/y")
    t.check("volumes", open(os.path.join(source, "g")).read() == "new\n" and os.path.exists(os.path.join(made, "y")))
    t.check("read-only ones", "Read-only" in NODE.exec(c, "sh", "-c", "touch /ro/x; true") and "Read-only" in NODE.exec(c, "sh", "-c", "touch /rro/x; true"))
    t.check("images as volumes", NODE.exec(c, "cat", "/image/data/file", "/sub/file") == "of the image\n" * 2 and
            "Read-only" in NODE.exec(c, "sh", "-c", "touch /image/x; true"))
    null = os.stat("/dev/null")
    d = NODE.run(pod, "mounts", "d", ["sleep", "1000"], devices=[{"container_path": "/dev/mine", "host_path": "/dev/null", "permissions": "rwm"}])
    got = NODE.exec(d, "stat", "-c", "%t %T", "/dev/mine").split()
    t.check("devices", got == [f"{os.major(null.st_rdev):x}", f"{os.minor(null.st_rdev):x}"], got)
    NODE.crictl("rmp", "-f", pod)
    t.check("nothing is left", not NODE.left(), NODE.left())


def test_limits(t):
    pod = NODE.runp("limits")
    c = NODE.run(pod, "limits", "l", ["sleep", "1000"], resources={
        "cpu_period": 100000, "cpu_quota": 50000, "cpu_shares": 512, "memory_limit_in_bytes": 64 << 20, "oom_score_adj": 900})

    v1 = os.path.isdir("/sys/fs/cgroup/memory")

    def limits():
        files = ("cpu/cpu.cfs_quota_us", "cpu/cpu.shares", "memory/memory.limit_in_bytes") if v1 else ("/cpu.max", "/cpu.weight", "/memory.max")
        return [open(f"/sys/fs/cgroup/{folder}{NODE.cgroup}/{pod}/{c}/{file}").read().split()[0] for folder, file in (x.split("/") for x in files)]
    t.check("limits", limits() == ["50000", "512" if v1 else "59", str(64 << 20)], limits())
    NODE.crictl("update", c, f"memoryLimitInBytes={96 << 20}", "cpuShares=1024")
    t.check("changed while it runs", limits() == ["50000", "1024" if v1 else "100", str(96 << 20)], limits())
    t.check("told in its status", NODE.status(c)["resources"]["linux"]["cpuShares"] == 1024, NODE.status(c)["resources"])
    t.check("oom_score_adj", NODE.exec(c, "cat", "/proc/1/oom_score_adj") == "900\n")
    hog = NODE.run(pod, "limits", "hog", ["sh", "-c", "dd if=/dev/zero of=/dev/null bs=200M count=1"], resources={"memory_limit_in_bytes": 32 << 20})
    s = NODE.finished(hog)
    t.check("killed for want of memory", s["exitCode"] == 137 and s["reason"] == "OOMKilled", s)
    NODE.exec(c, "sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; head -c 3000000 /dev/zero > /tmp/f")
    stats = NODE.json("stats", "-o", "json", c)["stats"][0]
    t.check("figures", stats["cpu"]["usageCoreNanoSeconds"]["value"] > 0 and stats["memory"]["workingSetBytes"]["value"] > 0, stats)
    t.check("the writable layer", stats["writableLayer"]["usedBytes"]["value"] >= 3000000, stats)

    def rate():
        NODE.exec(c, "sh", "-c", "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done")
        return NODE.json("stats", "-o", "json", c)["stats"][0]["cpu"].get("usageNanoCores")
    wait_until(rate, what="a rate")
    pods = NODE.json("statsp", "-o", "json", "--id", pod)["stats"]
    t.check("figures of the pod", len(pods) == 1 and pods[0]["linux"]["network"]["defaultInterface"]["name"] == "eth0" and
            pods[0]["linux"]["process"]["processCount"]["value"] >= 2, pods)
    t.check("room for images", NODE.json("imagefsinfo")["status"]["imageFilesystems"][0]["usedBytes"]["value"] > 1 << 20)
    log = os.path.join(NODE.folder, "logs", "limits", "l.log")
    os.rename(log, log + ".1")
    NODE.crictl("rmp", "-f", pod)
    t.check("nothing is left", not NODE.left(), NODE.left())


USERNS = {"mode": 0, "uids": [{"host_id": 100000, "length": 65536}], "gids": [{"host_id": 200000, "length": 65536}]}


def create_fails(t, what, words, pod, pod_name, **config):
    path = NODE.file("bad.json", {"metadata": {"name": "bad"}, "image": {"image": IMAGE}, "command": ["true"], **config})
    r = NODE.crictl("create", "--no-pull", pod, path, os.path.join(NODE.folder, f"{pod_name}.pod.json"), check=False)
    t.check(what, r.returncode != 0 and words in r.stderr, r.stderr or r.stdout)


def owners(path):
    return os.stat(path).st_uid, os.stat(path).st_gid


def test_user_namespace(t):
    handlers = {h.get("name", ""): h.get("features", {}) for h in NODE.json("info")["runtimeHandlers"]}
    if not handlers[""].get("userNamespaces"):
        r = NODE.crictl("runp", NODE.file("u.json", NODE.pod_config("u", linux={"security_context": {"namespace_options": {"userns_options": USERNS}}})), check=False)
        t.check("user namespaces: why not", "user namespaces are not supported: " in r.stderr, r.stderr)
        return
    own = {"namespace_options": {"pid": 1, "userns_options": USERNS}}
    pod = NODE.runp("mapped", linux={"security_context": own})
    volume, plain = os.path.join(NODE.folder, "mapped-volume"), os.path.join(NODE.folder, "plain-volume")
    for folder in (volume, plain):
        os.makedirs(folder)
        with open(os.path.join(folder, "f"), "w") as f:
            f.write("x")
    mapped = {"uid_mappings": USERNS["uids"], "gid_mappings": USERNS["gids"]}
    c = NODE.run(pod, "mapped", "c", ["sleep", "1000"], security=own, image=ANNOTATED, args=[], mounts=[
        {"container_path": "/mapped", "host_path": volume, **mapped}, {"container_path": "/plain", "host_path": plain},
        {"container_path": "/image", "image": {"image": ANNOTATED}}])
    root = NODE.create(pod, "mapped", "root", ["sh", "-c", "touch /new /mapped/new /dev/shm/new; chown 7:8 /mapped/new; sleep 1000"], security={
        **own, "run_as_user": {"value": 0}}, mounts=[{"container_path": "/mapped", "host_path": volume, **mapped}])
    NODE.crictl("start", root)
    pid = NODE.json("inspect", root)["info"]["pid"]
    status = open(f"/proc/{pid}/status").read()
    t.check("root inside is another one outside", "Uid:\t100000\t100000" in status and "Gid:\t200000\t200000" in status, status)
    t.check("and is root inside", NODE.exec(root, "id", "-u") == "0\n" and NODE.exec(root, "cat", "/proc/self/uid_map").split() == ["0", "100000", "65536"])
    t.check("the image's user is mapped, too", NODE.exec(c, "id", "-u") == "1000\n" and "Uid:\t101000\t" in open(f"/proc/{NODE.json('inspect', c)['info']['pid']}/status").read())
    seen = NODE.exec(root, "stat", "-c", "%u:%g %n", "/", "/bin/busybox", "/etc/hosts", "/etc/resolv.conf", "/dev/shm", "/mapped", "/mapped/f")
    t.check("files of the image, the pod and the volume are root's", all(line.startswith("0:0 ") for line in seen.splitlines()), seen)
    seen = NODE.exec(c, "stat", "-c", "%u:%g %n", "/image/data/file", "/data/file", "/plain/f")
    t.check("so are an image's as a volume; those of a volume that is not mapped are nobody's",
            [line.split()[0] for line in seen.splitlines()] == ["0:0", "0:0", "65534:65534"], seen)
    wait_until(lambda: os.path.exists(os.path.join(volume, "new")) and owners(os.path.join(volume, "new")) == (7, 8), what="a file in the volume")
    t.check("what is written to a mapped volume has the container's ids on disk", True)
    wait_until(lambda: os.path.exists(os.path.join(NODE.root, "snapshots/mounts", root, "upper/new")), what="a file in the root")
    t.check("what is written to the root has the node's", owners(os.path.join(NODE.root, "snapshots/mounts", root, "upper/new")) == (100000, 200000))
    t.check("containers share /dev/shm", NODE.exec(c, "stat", "-c", "%u", "/dev/shm/new") == "0\n")
    t.check("the node's files are out of reach", "denied" in NODE.exec(root, "sh", "-c", "cat /proc/1/root/../../etc/shadow 2>&1; echo 1 > /proc/sys/kernel/panic; true").lower())
    t.check("the network is the namespace's own", NODE.exec(root, "sh", "-c", "cat /proc/sys/net/ipv4/ip_unprivileged_port_start") == "0\n" and
            NODE.address(pod) in NODE.exec(root, "cat", "/proc/net/fib_trie"))
    seen = NODE.exec(c, "stat", "-c", "%u:%g", "/nowhere")
    t.check("a volume that the image does not have is root's", seen == "0:0\n", seen)
    big = {**own, "privileged": True, "run_as_user": {"value": 0}}
    privileged = NODE.runp("privileged", linux={"security_context": big})
    d = NODE.run(privileged, "privileged", "d", ["sleep", "1000"], image=ANNOTATED, security=big, mounts=[{"container_path": "/image", "image": {"image": ANNOTATED}}])
    seen = NODE.exec(d, "sh", "-c", "for f in /dev/zero /zeros /image/zeros; do stat -c %t:%T $f; head -c 1 $f >/dev/null 2>&1 && echo open || echo shut; done")
    t.check("devices of an image are none there, also for who is privileged", seen.split() == ["1:5", "open", "1:5", "shut", "1:5", "shut"], seen)
    NODE.crictl("rmp", "-f", privileged)
    other = {"namespace_options": {"pid": 1}}
    create_fails(t, "a container of the pod is in its namespace", "user namespace config for sandbox is different from container", pod, "mapped",
                 linux={"security_context": other})
    create_fails(t, "a file system that cannot map ids", "does not support id-mapped mounts", pod, "mapped", linux={"security_context": own},
                 mounts=[{"container_path": "/p", "host_path": "/proc", **mapped}])
    for what, words, options in (("without mappings", "without UID and GID mappings", {"userns_options": {"mode": 0}}),
                                 ("of a container", 'unsupported user namespace mode: "CONTAINER"', {"userns_options": {**USERNS, "mode": 1}}),
                                 ("of the node, with mappings", 'mode "NODE" with mappings. Got 1 UID mappings and 1 GID mappings', {"userns_options": {**USERNS, "mode": 2}}),
                                 ("with the node's network", "the node's network is not supported", {"userns_options": USERNS, "network": 2})):
        r = NODE.crictl("runp", NODE.file("u.json", NODE.pod_config("u", linux={"security_context": {"namespace_options": options}})), check=False)
        t.check(f"one {what} is refused", words in r.stderr, r.stderr)
    NODE.crictl("rmp", "-f", pod)
    t.check("nothing is left", not NODE.left(), NODE.left())


def test_cdi(t):
    first, second = os.path.join(NODE.folder, "cdi1"), os.path.join(NODE.folder, "cdi2")
    vendor = os.path.join(NODE.folder, "vendor")
    for folder in (first, second, vendor):
        os.makedirs(folder)
    hook = os.path.join(vendor, "hook")
    with open(hook, "w") as f:
        f.write(f"#!/bin/sh\ncat > {vendor}/state-$1\n")
    os.chmod(hook, 0o755)
    with open(os.path.join(first, "a.yaml"), "w") as f:
        f.write(f"""cdiVersion: "0.6.0"
kind: example.com/gpu
containerEdits:
  env: [ALL=1]
  mounts:
  - {{hostPath: {vendor}, containerPath: /opt/vendor, options: [ro, rbind]}}
devices:
- name: "0"
  containerEdits:
    env: [GPU=old]
- name: "1"
  containerEdits:
    env: [GPU=1, PATH=/opt/bin:/bin]
    deviceNodes:
    - {{path: /dev/gpu1, hostPath: /dev/null, permissions: rw}}
    hooks:
    - {{hookName: createRuntime, path: {hook}, args: [hook, made]}}
""")
    with open(os.path.join(second, "b.json"), "w") as f:
        json.dump({"cdiVersion": "0.8.0", "kind": "example.com/gpu", "devices": [{"name": "0", "containerEdits": {
            "env": ["GPU=new"], "additionalGids": [4321], "deviceNodes": [{"path": "/dev/full"}, {"path": "/dev/made", "type": "c", "major": 1, "minor": 5, "fileMode": 0o640}]}}]}, f)
    for name, count in (("few", 4000), ("many", 5000)):
        with open(os.path.join(second, name + ".json"), "w") as f:
            json.dump({"cdiVersion": "0.8.0", "kind": "example.com/" + name, "devices": [
                {"name": "x", "containerEdits": {"env": [f"V{i}=1" for i in range(count)]}}]}, f)
    for name, text in (("broken.json", "{"), ("future.json", '{"cdiVersion": "9.0.0", "kind": "a/b", "devices": [{"name": "x"}]}'), ("readme.txt", "{")):
        with open(os.path.join(second, name), "w") as f:
            f.write(text)
    NODE.kill(signal.SIGTERM)
    NODE.start("--cdi-spec-dirs", f"{first},{second},{NODE.folder}/nowhere")
    pod = NODE.runp("cdi")
    c = NODE.run(pod, "cdi", "c", ["sleep", "1000"], CDI_devices=[{"name": "example.com/gpu=1"}, {"name": "example.com/gpu=1"}])
    got = NODE.exec(c, "sh", "-c", "echo $ALL $GPU $PATH; stat -c %t:%T /dev/gpu1; echo x > /dev/gpu1 && cat /opt/vendor/hook | wc -l; touch /opt/vendor/x; true")
    t.check("variables, a device and a mount", got.splitlines()[:3] == ["1 1 /opt/bin:/bin", "1:3", "2"] and "Read-only" in got, got)
    t.check("a hook", json.load(open(os.path.join(vendor, "state-made")))["id"] == c)
    d = NODE.run(pod, "cdi", "d", ["sleep", "1000"], CDI_devices=[{"name": "example.com/gpu=0"}], security={"run_as_user": {"value": 77}})
    got = NODE.exec(d, "sh", "-c", "echo $ALL,$GPU; id -G; stat -c %t:%T:%a:%u /dev/made; ls /")
    t.check("a later folder wins; groups, and numbers that are given", got.splitlines()[0] == ",new" and "4321" in got.splitlines()[1].split() and
            got.splitlines()[2] == "1:5:640:77" and "opt" not in got, got)
    for what, name, words in (("a device that nobody describes", "example.com/gpu=7", "unresolvable CDI devices example.com/gpu=7"),
                              ("one of a version that is not known", "a/b=x", "unresolvable CDI devices a/b=x"),
                              ("one with more edits than is sane", "example.com/many=x", "more than 4096 edits")):
        create_fails(t, what, words, pod, "cdi", CDI_devices=[{"name": name}])
    e = NODE.create(pod, "cdi", "e", ["true"], CDI_devices=[{"name": "example.com/few=x"}])
    env = NODE.json("inspect", e)["info"]["runtimeSpec"]["process"]["env"]
    t.check("many are fine", {"V0=1", "V3999=1"} <= set(env), len(env))
    shutil.copy(os.path.join(first, "a.yaml"), os.path.join(first, "c.yaml"))
    create_fails(t, "one that two files describe", "conflicting device", pod, "cdi", CDI_devices=[{"name": "example.com/gpu=1"}])
    NODE.crictl("rmp", "-f", pod)
    t.check("nothing is left", not NODE.left(), NODE.left())


def test_logs(t):
    pod = NODE.runp("rotate")
    c = NODE.run(pod, "rotate", "r", ["sh", "-c", "i=0; while :; do echo $i; i=$((i+1)); sleep 0.02; done"])
    log = os.path.join(NODE.folder, "logs", "rotate", "r.log")
    wait_until(lambda: os.path.exists(log) and len(open(log).readlines()) > 3, what="the log")
    os.rename(log, log + ".1")
    NODE.crictl("logs", "--reopen", "--tail", "0", c)
    moved = open(log + ".1").read()
    wait_until(lambda: len(open(log).readlines()) > 3, what="the new log")
    numbers = [int(line.split()[3]) for line in (open(log + ".1").read() + open(log).read()).splitlines()]
    t.check("a log that was moved and opened anew: no line is lost or twice", numbers == list(range(len(numbers))), numbers)
    t.check("nothing goes to the old one any more", open(log + ".1").read() == moved)
    NODE.crictl("stop", "-t", "0", c)
    r = NODE.crictl("logs", "--reopen", c, check=False)
    t.check("not of one that does not run", "container is not running" in r.stderr, r.stderr)
    NODE.crictl("rmp", "-f", pod)


def test_rotation(t):
    NODE.kill(signal.SIGTERM)
    NODE.start("--container-log-max-size", "16Ki", "--container-log-max-files", "50")
    pod = NODE.runp("grows")
    c = NODE.run(pod, "grows", "g", ["sh", "-c", "echo -1; until test -e /go; do sleep 0.05; done; i=0; while [ $i -lt 5000 ]; do echo $i; i=$((i+1)); done"])
    follower = subprocess.Popen([C8S, "crictl", "-r", f"unix://{NODE.socket}", "logs", "-f", c], stdout=subprocess.PIPE, text=True)
    first = follower.stdout.readline()
    NODE.exec(c, "touch", "/go")
    lines = [first, *follower.communicate(timeout=30)[0].splitlines(keepends=True)]
    wanted = [f"{i}\n" for i in range(-1, 5000)]
    t.check("who follows a log that is rotated meanwhile gets all of it, once", lines == wanted, (len(lines), lines[-1:]))
    folder = os.path.join(NODE.folder, "logs", "grows")
    names = sorted(os.listdir(folder))[1:] + ["g.log"]
    sizes = [os.path.getsize(os.path.join(folder, name)) for name in names]
    t.check("no file is larger than was wanted", len(names) > 10 and all(0 < size <= 16384 for size in sizes), sizes)
    t.check("together they have all of it", [line.split(" ", 3)[3] for name in names for line in open(os.path.join(folder, name))] == wanted)
    NODE.crictl("rm", c)
    t.check("they go with the container", os.listdir(folder) == [], os.listdir(folder))
    NODE.crictl("rmp", "-f", pod)
    NODE.kill(signal.SIGTERM)
    NODE.start()
    for flags in (("--container-log-max-size", "10x"), ("--container-log-max-size", "-1"), ("--container-log-max-files", "1")):
        r = subprocess.run([C8S, "runtime", *flags], capture_output=True, text=True)
        t.check(f"{' '.join(flags)} makes no sense", r.returncode == 2 and flags[0] in r.stderr, r)


def test_pull(t):
    if not images.Registry.available():
        t.skip("pulling through CRI", "docker-registry cannot be had")
        return
    # The registry is on the machine's loopback, the runtime's own network namespace has another: a runtime beside it.
    node = Node("pull", network=False)
    os.unlink(os.path.join(node.conf, "10-test.conflist"))
    try:
        node.start()
        network = {c["type"]: c for c in node.json("info")["status"]["conditions"]}["NetworkReady"]
        t.check("a network that is not configured", not network.get("status") and network["reason"] == "NetworkPluginNotReady", network)
        node.crictl("update-runtime-config", "--pod-cidr", "10.212.0.0/24,fd00:212::/64")
        network = {c["type"]: c for c in node.json("info")["status"]["conditions"]}["NetworkReady"]
        written = "".join(open(os.path.join(node.conf, name)).read() for name in os.listdir(node.conf))
        t.check("is, by UpdateRuntimeConfig", network["status"] and "10.212.0.0/24" in written and "fd00:212::/64" in written, (network, written))
        with images.Registry(os.path.join(node.folder, "registry"), users=True) as registry:
            name = registry.put(images.Image(), "team/app", "1")
            r = node.crictl("pull", name, check=False)
            t.check("a pull without credentials", "authorization failed: no basic auth credentials" in r.stderr, r.stderr)
            r = node.crictl("pull", "--creds", "tester:wrong", name, check=False)
            t.check("with wrong ones", r.returncode != 0, r.stderr)
            node.crictl("pull", "--creds", registry.CREDS, name)
            got = node.json("inspecti", name)["status"]
            t.check("with those of the request", got["repoTags"] == [name] and got["id"].startswith("sha256:") and got["size"] > 100000, got)
            pause = registry.put(images.Image(config={"Entrypoint": ["/bin/sleep", "4321"]}), "team/pause", "1")
            node.crictl("pull", "--creds", registry.CREDS, pause)
        node.kill(signal.SIGTERM)
        node.start("--sandbox-image", pause)
        pod = node.out("runp", node.file("own.json", node.pod_config("own", linux={"security_context": {"namespace_options": {"network": 2}}})))
        first = open(f"/proc/{node.json('inspectp', pod)['info']['pid']}/cmdline").read()
        t.check("--sandbox-image: its process is the pod's first", first == "/bin/sleep\0" + "4321\0", first)
        node.crictl("rmi", name)
        t.check("an image that is removed", node.crictl("inspecti", name, check=False).returncode != 0)
        node.crictl("rmp", "-f", pod)
        t.check("nothing is left", not node.left(), node.left())
        node.kill(signal.SIGTERM)
        cgroups = [folder for folder, _, _ in os.walk("/sys/fs/cgroup") if folder.endswith(node.cgroup)]
        t.check("not even the cgroup of the pods, when the runtime has ended", not cgroups, cgroups)
    finally:
        node.close()


def metric(pod, name, container):
    for p in NODE.json("metricsp")["podMetrics"]:
        if p["podSandboxId"] == pod:
            for c in p.get("containerMetrics", []):
                if c["containerId"] == container:
                    for m in c.get("metrics", []):
                        if m["name"] == name:
                            return m["value"]["value"] if "value" in m else 0
    return None


def test_figures(t):
    pod = NODE.runp("figures")
    c = NODE.run(pod, "figures", "c", ["sh", "-c", "dd if=/dev/zero of=/dev/shm/x bs=1M count=24 2>/dev/null; while :; do :; done"], resources={
        "cpu_period": 20000, "cpu_quota": 2000, "memory_limit_in_bytes": 128 << 20})

    def stats():
        return NODE.json("stats", "-o", "json", c)["stats"][0]
    wait_until(lambda: int(stats()["memory"]["usageBytes"]["value"]) >= 24 << 20, what="24 MiB in memory")
    memory = stats()["memory"]
    t.check("memory is what was taken", 24 << 20 <= memory["workingSetBytes"]["value"] < 64 << 20 and
            memory["availableBytes"]["value"] == (128 << 20) - memory["workingSetBytes"]["value"], memory)
    before, begin = stats()["cpu"], time.perf_counter()
    time.sleep(0.5)
    after = stats()["cpu"]
    used = (after["usageCoreNanoSeconds"]["value"] - before["usageCoreNanoSeconds"]["value"]) / 1e9 / (time.perf_counter() - begin)
    t.check("CPU time grows, and no faster than the limit", 0.02 < used < 0.3 and after["timestamp"] > before["timestamp"], used)
    throttled = wait_until(lambda: metric(pod, "container_cpu_cfs_throttled_periods_total", c), what="a period that was cut short")
    t.check("periods that were cut short are counted", throttled > 0)
    t.check("metrics of memory", 24 << 20 <= metric(pod, "container_memory_usage_bytes", c) <= 128 << 20 and
            metric(pod, "container_spec_memory_limit_bytes", c) == 128 << 20)
    names = {d["name"]: d for d in NODE.json("metricdescs")["descriptors"]}
    told = {m["name"] for p in NODE.json("metricsp")["podMetrics"] for x in (p, *p.get("containerMetrics", [])) for m in x.get("metrics", [])}
    t.check("all that is told is described", told and told <= set(names) and names["container_memory_rss"]["labelKeys"][0] == "pod", told - set(names))
    of_pod = NODE.json("statsp", "-o", "json", "--id", pod)["stats"][0]["linux"]
    t.check("the pod has at least what its container has", of_pod["memory"]["workingSetBytes"]["value"] >= 24 << 20 and
            of_pod["cpu"]["usageCoreNanoSeconds"]["value"] >= after["usageCoreNanoSeconds"]["value"] and
            [x["attributes"]["id"] for x in of_pod["containers"]] == [c], of_pod)
    NODE.crictl("update", c, "memoryLimitInBytes=" + str(96 << 20))
    t.check("a limit that was changed counts for what is available", stats()["memory"]["availableBytes"]["value"] <= (72 << 20), stats()["memory"])
    if os.path.isdir("/sys/fs/cgroup/memory"):  # under v2 the kernel makes it so: it kills the container
        r = NODE.crictl("update", c, "memoryLimitInBytes=1000000", check=False)
        t.check("a limit below what is used is refused, and the old one stays", r.returncode != 0 and
                NODE.status(c)["resources"]["linux"]["memoryLimitInBytes"] == 96 << 20, r.stderr)
    NODE.crictl("rmp", "-f", pod)


def test_questions(t):
    """Calls that change nothing, or say that they cannot."""
    info = NODE.json("info")
    config = json.loads(info["config"]) if isinstance(info.get("config"), str) else info["config"]
    t.check("Status, verbose", config["root"] == NODE.root and config["cgroupParent"] == NODE.cgroup and info["lastCNILoadStatus"] == "OK", info)
    t.check("what the handlers can do", info["runtimeHandlers"][0]["features"]["recursiveReadOnlyMounts"] is True, info)
    t.check("the cgroup driver", NODE.out("runtime-config").split()[-1] == "CGROUPFS")
    NODE.crictl("update-runtime-config", "--pod-cidr", "10.212.0.0/24")
    t.check("UpdateRuntimeConfig leaves a network that is configured", os.listdir(NODE.conf) == ["10-test.conflist"], os.listdir(NODE.conf))
    pod = NODE.runp("ask")
    c = NODE.run(pod, "ask", "a", ["sh", "-c", "trap 'exit 3' TERM; while :; do sleep 0.05; done"])
    r = NODE.crictl("checkpoint", "--export", os.path.join(NODE.folder, "x.tar"), c, check=False)
    t.check("no checkpoints", r.returncode != 0 and "CheckpointContainer is not supported" in r.stderr, r.stderr)
    big = NODE.crictl("exec", "-s", c, "sh", "-c", "dd if=/dev/zero bs=1M count=17 2>/dev/null", check=False)
    t.check("output that does not fit into an answer is an error", big.returncode != 0 and "larger than max" in big.stderr, big.stderr[-300:])
    t.check("and the container is none the worse", NODE.exec(c, "echo", "here") == "here\n")
    verbose = NODE.json("inspect", c)["info"]
    t.check("verbose: the process and its config.json", verbose["runtimeSpec"]["process"]["args"][0] == "sh" and
            os.path.exists(f"/proc/{verbose['pid']}"), sorted(verbose))
    sandbox = NODE.json("inspectp", pod)["info"]
    t.check("verbose: the pod's", os.path.exists(f"/proc/{sandbox['pid']}"), sorted(sandbox))
    NODE.crictl("stop", "-t", "10", c)
    t.check("a process that hears the signal", NODE.status(c)["exitCode"] == 3, NODE.status(c))
    for what, call in (("a pod", ("inspectp", "0" * 64)), ("a container", ("inspect", "0" * 64))):
        r = NODE.crictl(*call, check=False)
        t.check(f"{what} that is not there", r.returncode != 0 and "not found" in r.stderr, r.stderr)
    for gone in (("rm", "0" * 64), ("rmp", "0" * 64)):
        r = NODE.crictl(*gone, check=False)
        t.check(f"{gone[0]} of what is not there", "not found" in r.stderr or r.returncode == 0, r.stderr)
    NODE.crictl("rmp", "-f", pod)


def test_users(t):
    pod = NODE.runp("users")
    files = {**images.busybox(), "etc/group": b"root:x:0:\nuser:x:1000:\nextra:x:3000:user\n", "etc/passwd": images.busybox()["etc/passwd"]}
    archive = os.path.join(FOLDER, "users.tar")
    images.Image(files).docker_archive(archive, "docker.io/library/users:test")
    subprocess.run([C8S, "image", "--root", NODE.root, "load", archive], check=True, capture_output=True)
    image = "docker.io/library/users:test"

    def ids(name, **security):
        c = NODE.run(pod, "users", name, ["sleep", "1000"], image=image, security=security)
        return c, NODE.exec(c, "sh", "-c", "id -u; id -g; id -G").split("\n")[:3]
    c, got = ids("name", run_as_username="user")
    t.check("a user by name, with the image's groups", got[0] == "1000" and got[1] == "1000" and set(got[2].split()) == {"1000", "3000"}, got)
    _, got = ids("merge", run_as_user={"value": 1000}, supplemental_groups=[5000])
    t.check("groups are merged", set(got[2].split()) == {"1000", "3000", "5000"}, got)
    c, got = ids("strict", run_as_user={"value": 1000}, supplemental_groups=[5000], supplemental_groups_policy=1)
    t.check("or not", set(got[2].split()) == {"1000", "5000"}, got)
    t.check("as the status says", NODE.status(c)["user"]["linux"]["supplementalGroups"] == [1000, 5000], NODE.status(c)["user"])
    _, got = ids("group", run_as_user={"value": 1000}, run_as_group={"value": 77})
    t.check("a group by its number", got[1] == "77", got)
    create_fails(t, "a group without a user", "is specified without user", pod, "users", linux={"security_context": {"run_as_group": {"value": 5}}})
    if not os.path.exists("/sys/kernel/security/apparmor"):
        create_fails(t, "AppArmor where there is none", "apparmor is not supported", pod, "users", linux={
            "security_context": {"apparmor": {"profile_type": 2, "localhost_ref": "x"}}})
        c = NODE.run(pod, "users", "free", ["sleep", "1000"], security={"apparmor": {"profile_type": 1}, "selinux_options": {"level": "s0:c1,c2"}})
        t.check("unconfined is fine without it, so is a label without SELinux", NODE.exec(c, "echo", "runs") == "runs\n")
    create_fails(t, "a seccomp profile that is not there", "cannot load seccomp profile", pod, "users", linux={
        "security_context": {"seccomp": {"profile_type": 2, "localhost_ref": "/nowhere.json"}}})
    missing = os.path.join(NODE.folder, "nothing", "here")
    create_fails(t, "a device that is not there", "No such file", pod, "users", devices=[{"container_path": "/dev/x", "host_path": missing}])
    t.check("nothing is made in its place", not os.path.exists(os.path.dirname(missing)))
    NODE.crictl("rmp", "-f", pod)


def sparse_image():
    """An image whose volume has a file of 8 GiB that is all hole but for its last byte."""
    folder = os.path.join(FOLDER, "sparse")
    os.makedirs(os.path.join(folder, "v"))
    with open(os.path.join(folder, "v", "f"), "wb") as f:
        f.seek((8 << 30) - 1)
        f.write(b"!")
    tar = subprocess.run(["tar", "-C", folder, "-cS", "v"], check=True, capture_output=True).stdout
    plain, images.layer = images.layer, lambda files: files if isinstance(files, bytes) else plain(files)
    try:
        images.Image(images.busybox(), tar, config={"Volumes": {"/v": {}}}).docker_archive(os.path.join(FOLDER, "sparse.tar"), "docker.io/library/sparse:test")
    finally:
        images.layer = plain
    subprocess.run([C8S, "image", "--root", NODE.root, "load", os.path.join(FOLDER, "sparse.tar")], check=True, capture_output=True)
    return "docker.io/library/sparse:test"


def test_patience(t):
    """Things that only show when much comes together."""
    pod = NODE.runp("patience")
    c = NODE.run(pod, "patience", "c", ["sleep", "1000"], image=sparse_image(), resources={"memory_limit_in_bytes": 64 << 20})
    f = os.stat(os.path.join(NODE.root, "containers", c, "volumes", "0", "f"))
    t.check("a volume of the image keeps its holes", f.st_size == 8 << 30 and f.st_blocks * 512 < 1 << 20 and
            NODE.exec(c, "sh", "-c", "tail -c 1 /v/f") == "!", f)
    updates = [subprocess.Popen([C8S, "crictl", "-r", f"unix://{NODE.socket}", "update", c, f"memoryLimitInBytes={(64 + i) << 20}", f"cpuShares={100 + i}"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for i in range(6)]
    said = [u.communicate()[1] for u in updates]
    got = NODE.status(c)["resources"]["linux"]
    t.check("updates at one time", all(u.returncode == 0 for u in updates) and got["memoryLimitInBytes"] >> 20 == got["cpuShares"] - 100 + 64, (said, got))
    listed = streams.call(NODE.socket, "PodSandboxStatus", streams.field(1, pod))
    t.check("the state of a pod has that of its containers", listed.count(c.encode()) == 1, listed)
    NODE.exec(c, "sh", "-c", "head -c 5000000 /dev/zero > /big")
    used = NODE.json("imagefsinfo")["status"]["containerFilesystems"][0]
    t.check("the room that containers take", 5000000 <= used["usedBytes"]["value"] < 6000000 and used["inodesUsed"]["value"] > 0, used)
    NODE.crictl("rmp", "-f", pod)


def test_slow_exec(t):
    """An exec that does not get in holds up nobody, and ends with the container."""
    slow = os.path.join(NODE.folder, "slow")
    with open(slow, "w") as f:
        f.write(f"#!/bin/sh\ncase \"$*\" in *' exec '*) touch {NODE.folder}/in-exec; exec sleep 1000;; esac\nexec {peers.static_pod()} runc \"$@\"\n")
    os.chmod(slow, 0o755)
    NODE.kill(signal.SIGTERM)
    NODE.start("--handler", f"slow={slow}")
    pod = NODE.runp("slow", "--runtime", "slow")
    c, d = (NODE.run(pod, "slow", name, ["sleep", "1000"]) for name in "cd")
    call = subprocess.Popen([C8S, "crictl", "-r", f"unix://{NODE.socket}", "exec", "-s", c, "true"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: os.path.exists(os.path.join(NODE.folder, "in-exec")), what="the exec")
    begin = time.monotonic()
    NODE.crictl("update", d, "cpuShares=300")
    NODE.crictl("stop", "-t", "0", d)
    NODE.crictl("stop", "-t", "0", c)
    NODE.crictl("rm", c)
    said = call.communicate()[1]
    took = time.monotonic() - begin
    t.check("an exec that hangs holds up neither its container nor others", took < 5, f"{took:.1f} s")
    t.check("and fails when the container ends", call.returncode != 0 and "not running" in said, said)
    NODE.crictl("rmp", "-f", pod)
    t.check("nothing is left", not NODE.left(), NODE.left())


def test_files(t):
    """What a pod's files are, and what the kubelet's take the place of."""
    hosts = os.path.join(NODE.folder, "hosts")
    with open(hosts, "w") as f:
        f.write("1.2.3.4 given\n")
    pod = NODE.runp("files", hostname="its-name", dns_config={"servers": ["1.1.1.1", "2.2.2.2"], "searches": ["a.b", "c"], "options": []})
    c = NODE.run(pod, "files", "c", ["sleep", "1000"])
    got = NODE.exec(c, "cat", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf")
    t.check("the node's hosts, the pod's name and servers", got == open("/etc/hosts").read() + "its-name\nsearch a.b c\nnameserver 1.1.1.1\nnameserver 2.2.2.2\n", got)
    d = NODE.run(pod, "files", "d", ["sleep", "1000"], mounts=[{"container_path": "/etc/hosts", "host_path": hosts}], security={"readonly_rootfs": True})
    t.check("hosts of the kubelet", NODE.exec(d, "cat", "/etc/hosts") == "1.2.3.4 given\n")
    t.check("with a read-only root the pod's files are so too", "Read-only" in NODE.exec(d, "sh", "-c", "echo x > /etc/hostname; true"))
    ipc = NODE.exec(c, "/bin/busybox", "readlink", "/proc/self/ns/ipc") + NODE.exec(c, "/bin/busybox", "readlink", "/proc/self/ns/net") + NODE.exec(c, "/bin/busybox", "readlink", "/proc/self/ns/uts")
    same = NODE.exec(d, "/bin/busybox", "readlink", "/proc/self/ns/ipc") + NODE.exec(d, "/bin/busybox", "readlink", "/proc/self/ns/net") + NODE.exec(d, "/bin/busybox", "readlink", "/proc/self/ns/uts")
    t.check("containers share the pod's namespaces, not their processes", ipc == same and os.readlink("/proc/self/ns/ipc") not in ipc and
            NODE.exec(c, "/bin/busybox", "readlink", "/proc/self/ns/pid") != NODE.exec(d, "/bin/busybox", "readlink", "/proc/self/ns/pid"))
    pid, root = NODE.json("inspectp", pod)["info"]["pid"], os.path.join(NODE.state, "pause")
    its = f"/proc/{pid}/root/etc/resolv.conf"
    before = open(its).read()
    # As it is for one that comes while the first pod is being made: not all that is needed is there.
    os.rename(os.path.join(root, "pause"), os.path.join(root, "moved"))
    beside = NODE.runp("beside")
    t.check("a pod does not take away what another has mounted", before == open(its).read() != "", (before, open(its).read()))
    NODE.crictl("rmp", "-f", pod, beside)
    os.unlink(os.path.join(root, "moved"))
    node = NODE.runp("plain", dns_config=None, linux={"security_context": {"namespace_options": {"network": 2}}}, hostname="")
    e = NODE.run(node, "plain", "e", ["sleep", "1000"], security={"namespace_options": {"network": 2, "pid": 1}})
    t.check("without servers the node's; the node's name", NODE.exec(e, "cat", "/etc/resolv.conf") == open("/etc/resolv.conf").read() and
            NODE.exec(e, "hostname") == os.uname().nodename + "\n")
    NODE.crictl("rmp", "-f", node)


def test_network(t):
    a, b = NODE.runp("web"), NODE.runp("client", port_mappings=[{"container_port": 8080, "host_port": 18080}])
    web = NODE.run(a, "web", "httpd", ["sh", "-c", "echo served > /dev/shm/index.html; exec httpd -f -p 80 -h /dev/shm"], security={"run_as_user": {"value": 1000}})
    client = NODE.run(b, "client", "c", ["sh", "-c", "echo mapped > /tmp/index.html; exec httpd -f -p 8080 -h /tmp"])
    address = NODE.address(a)
    wait_until(lambda: NODE.crictl("exec", "-s", client, "wget", "-qO-", f"http://{address}/", check=False).stdout == "served\n", what="HTTP between pods")
    t.check("HTTP between pods, on a low port without root", True)
    t.check("from the node", "served" in NODE.inside("curl", "-s", f"http://{address}/").stdout if shutil.which("curl") else True)
    if shutil.which("curl"):
        gateway = "10.211.0.1"
        got = NODE.inside("curl", "-s", "--max-time", "5", f"http://{gateway}:18080/")
        t.check("a port of the node", got.stdout == "mapped\n", got)
    t.check("two addresses", address != NODE.address(b))
    t.check("containers of a pod share it", NODE.exec(NODE.run(a, "web", "second", ["sleep", "1000"]), "wget", "-qO-", "http://127.0.0.1/") == "served\n")
    NODE.crictl("exec", "-s", web, "true")
    NODE.crictl("rmp", "-f", a, b)
    t.check("nothing is left", not NODE.left(), NODE.left())


def test_events(t):
    with open(os.path.join(NODE.folder, "events"), "wb") as out:
        follower = subprocess.Popen([C8S, "crictl", "-r", f"unix://{NODE.socket}", "events"], stdout=out)
    time.sleep(0.3)
    pod = NODE.runp("events")
    c = NODE.run(pod, "events", "e", ["sh", "-c", "exit 3"])
    NODE.finished(c)
    NODE.crictl("rmp", "-f", pod)

    def seen():
        lines = open(os.path.join(NODE.folder, "events")).read().splitlines()
        return [json.loads(x) for x in lines]
    wait_until(lambda: len(seen()) >= 8, what="the events")
    follower.kill()
    follower.wait()
    kinds = [(("pod" if e["containerId"] == pod else "container"), e.get("containerEventType", "CONTAINER_CREATED_EVENT")[10:-6]) for e in seen()]
    t.check("events", sorted(kinds) == sorted([(w, k) for w in ("pod", "container") for k in ("CREATED", "STARTED", "STOPPED", "DELETED")]), kinds)
    stopped = [e for e in seen() if e["containerId"] == c and e.get("containerEventType") == "CONTAINER_STOPPED_EVENT"][0]
    t.check("with the state of the pod", stopped["containersStatuses"][0]["exitCode"] == 3 and stopped["podSandboxStatus"]["id"] == pod, stopped)


def test_handler(t):
    others = {name: peers.find(name, peers.PEERS[name]) for name in ("runc", "crun")}
    for name, program in others.items():
        if not program:
            t.skip(f"a pod of {name}", f"{name} cannot be had")
            continue
        NODE.kill(signal.SIGTERM)
        NODE.start("--handler", f"{name}={program}", before=NODE.without_v2() if name == "crun" else ())
        told = {h.get("name", ""): h["features"].get("userNamespaces", False) for h in NODE.json("info")["runtimeHandlers"]}
        t.check(f"{name} is told as a handler, without what it cannot do", set(told) == {"", name} and not told[name], told)
        pod, own = NODE.runp("handled", "--runtime", name), NODE.runp("unhandled")
        c = NODE.run(pod, "handled", "c", ["sleep", "1000"])
        d = NODE.run(own, "unhandled", "d", ["sleep", "1000"])
        t.check(f"a pod of {name}, beside one of our own", NODE.exec(c, "echo", "inside") == NODE.exec(d, "echo", "inside") == "inside\n" and
                NODE.json("inspectp", pod)["status"]["runtimeHandler"] == name)
        log = next(line for line in open(f"/proc/{NODE.json('inspectp', pod)['info']['pid']}/cgroup") if pod in line)
        t.check("in its own cgroup", NODE.cgroup in log, log)
        r = NODE.crictl("runp", "--runtime", name, NODE.file("u.json", NODE.pod_config("u", linux={"security_context": {
            "namespace_options": {"userns_options": USERNS}}})), check=False)
        t.check("no user namespaces with it", "user namespaces are not supported" in r.stderr, r.stderr)
        NODE.crictl("rmp", "-f", pod, own)
        t.check("nothing is left", not NODE.left(), NODE.left())


def main():
    global NODE
    if os.geteuid() != 0:
        print("1..0 # SKIP needs root")
        return
    try:
        NODE = Node("n")
        load_images(NODE)
        NODE.start()
        tap.run([test_service, test_pod, test_image_config, test_security, test_users, test_files, test_patience, test_namespaces, test_user_namespace, test_mounts,
                 test_limits, test_figures, test_logs, test_rotation, test_network, test_events, test_questions, test_pull, test_cdi, test_slow_exec, test_handler])
    finally:
        if NODE:
            NODE.close()
        shutil.rmtree(FOLDER, ignore_errors=True)


if __name__ == "__main__":
    main()
