#!/usr/bin/env python3
"""The CRI service (c8s runtime), asked by c8s crictl: the whole life of pods, in a network namespace of its own."""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
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

    def __init__(self, name, program=None):
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
        self.holder = subprocess.Popen(["unshare", "-n", "sh", "-c", "ip link set lo up; echo up; exec sleep 100000"], stdout=subprocess.PIPE)
        self.holder.stdout.readline()

    def inside(self, *command, **options):
        return subprocess.run(["nsenter", f"--net=/proc/{self.holder.pid}/ns/net", *command], capture_output=True, text=True, **options)

    def start(self, *flags):
        with open(self.log, "ab") as log:
            begin = log.tell()
            self.process = subprocess.Popen(
                ["nsenter", f"--net=/proc/{self.holder.pid}/ns/net", C8S, "runtime", "--root", self.root, "--state", self.state,
                 "--cni-conf-dir", self.conf, "--cgroup-parent", self.cgroup, "--pod-program", peers.static_pod(), *flags], stdout=log, stderr=log)
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
                                                f"{self.state}/pods", f"{self.state}/netns", f"{self.state}/oci") for x in os.listdir(folder)]
        found += [line for line in open("/proc/self/mountinfo") if self.folder in line]
        for folder, folders, _ in os.walk("/sys/fs/cgroup"):
            if folder.endswith(self.cgroup):
                found += [os.path.join(folder, x) for x in folders]
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
        for folder, _, _ in os.walk("/sys/fs/cgroup", topdown=False):
            if self.cgroup in folder:
                try:
                    os.rmdir(folder)
                except OSError:
                    pass
        for line in reversed(open("/proc/self/mountinfo").read().splitlines()):
            if self.folder in line.split()[4]:
                subprocess.run(["umount", "-l", line.split()[4]], capture_output=True)


def load_images(node):
    """Before the runtime has started, and beside it while it runs: both share the store."""
    plain, annotated = os.path.join(FOLDER, "plain.tar"), os.path.join(FOLDER, "annotated.tar")
    files = {**images.busybox(), "data": None, "data/file": b"of the image\n"}
    images.Image().docker_archive(plain, IMAGE)
    images.Image(files, config={"Entrypoint": ["sh", "-c"], "Cmd": ["echo from the image; sleep 1000"], "Env": ["A=image", "B=image"],
                                "WorkingDir": "/tmp", "User": "user", "StopSignal": "SIGUSR1", "Volumes": {"/data": {}}}
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
        NODE.crictl("stop", "-t", "10", c)
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
    NODE.crictl("stop", a)
    t.check("the end of a container is that of all its processes", "sleep 4242" not in NODE.exec(b, "ps"), NODE.exec(b, "ps"))
    target = NODE.run(shared, "shared", "t", ["sleep", "1000"], security={"namespace_options": {"pid": 3, "target_id": b}})
    t.check("a target's namespace", "sleep" in NODE.exec(target, "ps"))
    host = NODE.runp("host", linux={"security_context": {"namespace_options": {"network": 2, "pid": 2, "ipc": 2}}})
    c = NODE.run(host, "host", "h", ["sleep", "1000"], security={"namespace_options": {"network": 2, "pid": 2, "ipc": 2}})
    t.check("the node's namespaces", NODE.exec(c, "sh", "-c", "cat /proc/1/cmdline") == open("/proc/1/cmdline").read() and
            "br-test" in NODE.exec(c, "cat", "/proc/net/dev"))
    t.check("and no address of its own", "ip" not in NODE.json("inspectp", host)["status"].get("network", {}))
    r = NODE.crictl("runp", NODE.file("userns.json", NODE.pod_config("userns", linux={"security_context": {"namespace_options": {
        "userns_options": {"mode": 0, "uids": [{"host_id": 100000, "length": 65536}], "gids": [{"host_id": 100000, "length": 65536}]}}}})), check=False)
    t.check("user namespaces are refused", "user namespaces are not supported" in r.stderr, r.stderr)
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

    def limit(controller, file):
        path = f"/sys/fs/cgroup/{controller}{NODE.cgroup}/{pod}/{c}/{file}" if os.path.isdir("/sys/fs/cgroup/memory") else \
            f"/sys/fs/cgroup{NODE.cgroup}/{pod}/{c}/{file}"
        return open(path).read().strip()
    if os.path.isdir("/sys/fs/cgroup/memory"):
        got = [limit("cpu", "cpu.cfs_quota_us"), limit("cpu", "cpu.shares"), limit("memory", "memory.limit_in_bytes")]
        t.check("limits", got == ["50000", "512", str(64 << 20)], got)
        NODE.crictl("update", c, f"memoryLimitInBytes={96 << 20}", "cpuShares=1024")
        got = [limit("cpu", "cpu.cfs_quota_us"), limit("cpu", "cpu.shares"), limit("memory", "memory.limit_in_bytes")]
        t.check("changed while it runs", got == ["50000", "1024", str(96 << 20)], got)
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


def test_restart(t):
    pod = NODE.runp("stay")
    runs = NODE.run(pod, "stay", "runs", ["sh", "-c", "i=0; while :; do echo $i; i=$((i+1)); sleep 0.1; done"])
    ends = NODE.run(pod, "stay", "ends", ["sh", "-c", "sleep 1; exit 5"])
    made = NODE.create(pod, "stay", "made", ["sleep", "1000"])
    address, before = NODE.address(pod), NODE.status(runs)
    NODE.kill()
    time.sleep(1.5)  # one ends while nobody is there
    NODE.start()
    after = NODE.status(runs)
    t.check("runs on", after["state"] == "CONTAINER_RUNNING" and after["startedAt"] == before["startedAt"], after)
    s = NODE.status(ends)
    t.check("an end that nobody saw", s["state"] == "CONTAINER_EXITED" and s["exitCode"] == 5, s)
    t.check("the address", NODE.address(pod) == address)
    NODE.crictl("start", made)
    t.check("one that was only made", NODE.status(made)["state"] == "CONTAINER_RUNNING")
    t.check("exec", NODE.exec(runs, "echo", "here") == "here\n")
    lines = NODE.crictl("logs", runs).stdout.split()
    t.check("the log has no gap", lines == [str(i) for i in range(len(lines))] and len(lines) > 10, lines)
    other = subprocess.run([C8S, "runtime", "--root", NODE.root, "--state", NODE.state, "--cni-conf-dir", NODE.conf], capture_output=True, text=True)
    t.check("a second runtime is refused", other.returncode == 1 and "used by another runtime" in other.stderr, other.stderr)
    t.check("SIGTERM ends it in good order", NODE.kill(signal.SIGTERM) == 0, open(NODE.log).read()[-2000:])
    NODE.start()
    t.check("and pods run on", NODE.status(runs)["state"] == "CONTAINER_RUNNING")
    NODE.crictl("rmp", "-f", pod)
    t.check("nothing is left", not NODE.left(), NODE.left())


def test_kill_anywhere(t):
    """Killed at any moment of a pod's life; what the next one finds can be removed, and nothing is left."""
    config = NODE.file("k.pod.json", NODE.pod_config("kill"))
    container = NODE.file("k.json", {"metadata": {"name": "k"}, "image": {"image": IMAGE}, "command": ["sleep", "1000"],
                                     "linux": {"security_context": OWN_PID}})
    bad = []
    for i in range(24):
        life = subprocess.Popen(["sh", "-c", f'''C="{C8S} crictl -r unix://{NODE.socket}"
            P=$($C runp {config}) && K=$($C create --no-pull $P {container} {config}) && $C start $K && $C stop $K && $C rm $K && $C rmp -f $P'''],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.005 + i * 0.006)
        NODE.kill()
        life.wait()
        NODE.start()
        NODE.crictl("rmp", "-f", "-a", check=False)
        left = NODE.left()
        if left:
            bad.append((i, left))
            break
    t.check("killed at 24 moments, nothing is left", not bad, f"{bad}\n{open(NODE.log).read()[-3000:]}")


def test_monitor_killed(t):
    pod = NODE.runp("orphan")
    c = NODE.run(pod, "orphan", "o", ["sleep", "1000"])
    monitor = next(int(p) for p in os.listdir("/proc") if p.isdigit() and pod in (open(f"/proc/{p}/cmdline").read() if os.path.exists(f"/proc/{p}/cmdline") else ""))
    os.kill(monitor, signal.SIGKILL)
    NODE.crictl("stop", c, check=False)
    NODE.crictl("rmp", "-f", pod)
    t.check("a pod whose monitor was killed can be removed", not NODE.left(), NODE.left())


def test_handler(t):
    runc = peers.find("runc", "runc")
    if not runc:
        t.skip("another OCI runtime", "runc cannot be had")
        return
    NODE.kill(signal.SIGTERM)
    NODE.start("--handler", f"runc={runc}")
    pod = NODE.runp("handled", "--runtime", "runc")
    c = NODE.run(pod, "handled", "c", ["sleep", "1000"])
    t.check("a pod of runc", NODE.exec(c, "echo", "in runc") == "in runc\n" and NODE.json("inspectp", pod)["status"]["runtimeHandler"] == "runc")
    NODE.crictl("rmp", "-f", pod)
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
        tap.run([test_service, test_pod, test_image_config, test_security, test_namespaces, test_mounts, test_limits, test_network, test_events,
                 test_restart, test_kill_anywhere, test_monitor_killed, test_handler])
    finally:
        if NODE:
            NODE.close()
        shutil.rmtree(FOLDER, ignore_errors=True)


main()
