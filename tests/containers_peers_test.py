#!/usr/bin/env python3
"""Our OCI runtime under those who call runc: Debian's podman with conmon, buildah, containerd's shim; and Debian's runc and crun under our
CRI service. All of it in a PID and a mount namespace with a /run of its own, and with private configurations. Needs root."""
import glob
import json
import os
import pty
import random
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import containerd  # noqa: E402
import images  # noqa: E402
import peers  # noqa: E402
import tap  # noqa: E402
from cluster import wait_until  # noqa: E402

C8S = os.environ["C8S"]
NAME = f"c8s-test-peer-{random.randrange(1 << 32):08x}"
IMAGE = "localhost/box:test"
FOLDER = None
HIERARCHY = "/sys/fs/cgroup/memory" if os.path.isdir("/sys/fs/cgroup/memory") else "/sys/fs/cgroup"
V2 = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
INSIDE = {"memory": "/sys/fs/cgroup/memory.max" if V2 else "/sys/fs/cgroup/memory/memory.limit_in_bytes",
          "pids": "/sys/fs/cgroup/pids.max" if V2 else "/sys/fs/cgroup/pids/pids.max"}

CONTAINERS_CONF = """[containers]
apparmor_profile = ""
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
log_driver = "k8s-file"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
conmon_path = ["{folder}/conmon"]
static_dir = "{folder}/root/libpod"
tmp_dir = "{folder}/run/libpod"
volume_path = "{folder}/root/volumes"
image_copy_tmp_dir = "storage"
lock_type = "file"
num_locks = 64
runtime = "runc"
[engine.runtimes]
runc = ["{folder}/bin/runc"]
[network]
network_backend = "cni"
network_config_dir = "{folder}/net.d"
"""
STORAGE_CONF = """[storage]
driver = "vfs"
graphroot = "{folder}/root"
runroot = "{folder}/run/storage"
"""


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)


def environment():
    """For podman and buildah. conmon gets little of it from podman, but calls podman itself: hence the script."""
    more = {"CONTAINERS_CONF": f"{FOLDER}/containers.conf", "CONTAINERS_STORAGE_CONF": f"{FOLDER}/storage.conf",
            "CONTAINERS_REGISTRIES_CONF": f"{FOLDER}/registries.conf", "HOME": f"{FOLDER}/home", "TMPDIR": f"{FOLDER}/tmp",
            "XDG_RUNTIME_DIR": f"{FOLDER}/run", "LD_LIBRARY_PATH": peers.libraries()["LD_LIBRARY_PATH"],
            "PATH": os.pathsep.join((peers.PATH, os.environ["PATH"]))}
    write(f"{FOLDER}/containers.conf", CONTAINERS_CONF.format(folder=FOLDER))
    write(f"{FOLDER}/storage.conf", STORAGE_CONF.format(folder=FOLDER))
    write(f"{FOLDER}/registries.conf", "")
    write(f"{FOLDER}/home/.config/containers/policy.json", '{"default": [{"type": "insecureAcceptAnything"}]}')
    exports = "".join(f"export {k}='{v}'\n" for k, v in more.items())
    write(f"{FOLDER}/conmon", f"#!/bin/sh\n{exports}exec {peers.find('conmon', peers.PEERS['conmon'])} \"$@\"\n", 0o755)
    for folder in ("tmp", "run"):
        os.makedirs(f"{FOLDER}/{folder}", exist_ok=True)
    return {**os.environ, **more}


def call(*args, env=None, timeout=60):
    r = subprocess.run(args, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=env, timeout=timeout)
    return r.returncode, r.stdout, r.stderr


class Tool:
    """podman or buildah."""

    def __init__(self, name):
        self.program, self.env = peers.find(name, peers.PEERS[name]), environment()

    def __call__(self, *args):
        return call(self.program, *args, env=self.env)

    def run(self, *args):
        """A container that is gone afterwards. Its last argument is a script."""
        return self("run", "--rm", "--pull=never", "--network=none", f"--cgroup-parent=/{NAME}", *args[:-1], IMAGE, "sh", "-c", args[-1])

    def on_terminal(self, *args):
        """What it writes to its terminal, and its exit code."""
        master, slave = pty.openpty()
        p = subprocess.Popen([self.program, *args], stdin=slave, stdout=slave, stderr=slave, env=self.env, start_new_session=True)
        os.close(slave)
        text = b""
        while True:
            try:
                part = os.read(master, 4096)
            except OSError:
                break
            if not part:
                break
            text += part
        os.close(master)
        return p.wait(60), text.decode()


def missing(*names):
    gone = [name for name in names if not peers.find(name, peers.PEERS[name])]
    return f"{' and '.join(gone)} of Debian cannot be had" if gone else None


def test_podman(t):
    why = missing("podman", "conmon")
    if why:
        t.skip("podman", why)
        return
    podman = Tool("podman")
    images.Image().layout(f"{FOLDER}/layout", IMAGE)
    got = podman("pull", f"oci:{FOLDER}/layout:{IMAGE}")
    podman("tag", got[1].strip(), IMAGE)
    r = podman.run("-e", "A=b", "-w", "/tmp", "echo out $A; echo err >&2; pwd; hostname | wc -c; grep Seccomp: /proc/self/status; exit 3")
    t.check("podman run: output, working directory, filter and exit code", r == (3, "out b\n/tmp\n13\nSeccomp:\t2\n", "err\n"), (got, r))
    r = podman.run("--memory=64m", "--pids-limit=33", f"cat {INSIDE['memory']} {INSIDE['pids']}")
    t.check("--memory and --pids-limit", r[1] == "67108864\n33\n", r)
    r = podman.run("--read-only", "touch /x 2>/dev/null || echo no; touch /tmp/x /run/x /dev/shm/x && echo yes")
    t.check("--read-only, with folders that can be written to", r[1] == "no\nyes\n", r)
    r = podman.run("--read-only", "--tmpfs=/etc:size=1m", "cat /etc/passwd | head -1; touch /etc/x && echo yes")
    t.check("--tmpfs begins with what the image has there", r[1] == "root:x:0:0:root:/root:/bin/sh\nyes\n", r)
    r = podman.run("--cap-drop=all", "--cap-add=kill", "--user=user", "--security-opt=no-new-privileges",
                   "id -u; grep -E 'CapBnd|NoNewPrivs' /proc/self/status; touch /root/x 2>/dev/null || echo no")
    t.check("--cap-drop, --user, no-new-privileges", r[1] == "1000\nCapBnd:\t0000000000000020\nNoNewPrivs:\t1\nno\n", r)
    volume = os.path.join(FOLDER, "volume")
    write(f"{volume}/file", "text\n")
    r = podman.run("-v", f"{volume}:/v:ro", "--ulimit=nofile=77:88", "--ulimit=nproc=99:99", "--sysctl=net.ipv4.ip_unprivileged_port_start=7", "--oom-score-adj=444",
                   "cat /v/file /proc/sys/net/ipv4/ip_unprivileged_port_start /proc/self/oom_score_adj; ulimit -n; touch /v/x 2>/dev/null || echo no")
    t.check("-v, --ulimit, --sysctl, --oom-score-adj", r[1] == "text\n7\n444\n77\nno\n", r)
    r = podman.run("--uidmap=0:100000:1000", "id -u; cat /proc/self/uid_map | head -1")
    t.check("--uidmap", r[0] == 0 and r[1].split() == ["0", "0", "100000", "1000"], r)
    r = podman("run", "--rm", "--pull=never", "--network=none", f"--cgroup-parent=/{NAME}", IMAGE, "nothing")
    t.check("a program that is not there is 127", r[0] == 127 and "executable file not found in $PATH" in r[2], r)
    code, text = podman.on_terminal("run", "--rm", "-it", "--pull=never", "--network=none", f"--cgroup-parent=/{NAME}", IMAGE, "sh", "-c",
                                    "test -t 0 && test -t 1 && ls -l /dev/console | cut -c1; exit 4")
    t.check("-t is a terminal", (code, text.split()) == (4, ["c"]), (code, text))
    podman_life(t, podman)
    r = podman("ps", "-a", "-q"), podman("rmi", "-f", IMAGE)
    t.check("podman: nothing is left", r[0][1] == "" and not left(), (r, left()))


def podman_life(t, podman):
    name = NAME + "-life"
    r = podman("run", "-d", "--name", name, "--pull=never", "--network=none", f"--cgroup-parent=/{NAME}", IMAGE, "sh", "-c",
               "trap 'echo bye; exit 9' TERM; echo began; while :; do sleep 0.1; done")
    t.check("run -d", r[0] == 0, r)
    r = podman("exec", "-u", "1000:7", "-e", "X=y", "-w", "/tmp", name, "sh", "-c", "echo $X; id -u; id -g; pwd; exit 5")
    t.check("exec: output and exit code", r[:2] == (5, "y\n1000\n7\n/tmp\n"), r)
    code, text = podman.on_terminal("exec", "-it", name, "sh", "-c", "tty; exit 6")
    t.check("exec -t", (code, text.split()) == (6, ["/dev/pts/0"]), (code, text))

    def status():
        return podman("inspect", "-f", "{{.State.Status}}", name)[1].strip()
    r = podman("pause", name), status(), podman("unpause", name), status()
    t.check("pause and unpause", (r[1], r[3]) == ("paused", "running"), r)
    r = podman("top", name, "pid", "comm")
    t.check("top", r[0] == 0 and "sh" in r[1], r)
    r = podman("stop", "-t", "20", name), podman("inspect", "-f", "{{.State.ExitCode}}", name), podman("logs", name)
    t.check("stop: a signal that it takes, and its exit code", r[0][0] == 0 and r[1][1] == "9\n" and r[2][1] == "began\nbye\n", r)
    r = podman("start", name), podman("kill", "-s", "KILL", name), podman("wait", name)
    t.check("start and kill", r[2][1] == "137\n", r)
    r = podman("rm", "-f", name)
    t.check("rm", r[0] == 0, r)


def test_buildah(t):
    why = missing("buildah")
    if why:
        t.skip("buildah", why)
        return
    buildah = Tool("buildah")
    images.Image().layout(f"{FOLDER}/layout", IMAGE)
    got = buildah("from", "--pull-never", f"oci:{FOLDER}/layout:{IMAGE}")
    name = got[1].strip()
    how = ("run", "--isolation=oci", f"--runtime={FOLDER}/bin/runc", "--network=none")
    r = buildah(*how, name, "sh", "-c", "echo built > /made; id -u; exit 5")
    t.check("buildah run: output and exit code", r[:2] == (5, "0\n"), (got, r))
    r = buildah(*how, "--user=user", "--cap-drop=all", name, "sh", "-c", "cat /made; id -u; touch /root/x 2>/dev/null || echo no")
    t.check("it sees what the one before made", r[:2] == (0, "built\n1000\nno\n"), r)
    code, text = buildah.on_terminal(*how, "-t", name, "sh", "-c", "test -t 0 && test -t 1 && echo yes")
    t.check("buildah run -t", (code, text.split()) == (0, ["yes"]), (code, text))
    buildah("rm", name)
    buildah("rmi", "-a", "-f")
    t.check("buildah: nothing is left", not left(), left())


def test_shim(t):
    """containerd-shim-runc-v2, by ctr."""
    why = containerd.missing()
    if why:
        t.skip("containerd's shim", why)
        return
    with containerd.Containerd(runtimes={"ours": f"{FOLDER}/bin/runc"}) as c:
        ctr = os.path.join(os.path.dirname(peers.find("containerd", "containerd")), "ctr")
        archive = os.path.join(FOLDER, "image.tar")
        images.Image().docker_archive(archive, IMAGE)
        c.load(archive)

        fifos = ("--fifo-dir", f"{FOLDER}/fifos")  # its own are in the other's /run

        def run(*args):
            return call(ctr, "-a", c.socket, "-n", "k8s.io", *args)

        def start(name, *args):
            return run("run", *fifos, "--runc-binary", f"{FOLDER}/bin/runc", "--cgroup", f"{c.cgroup}/{name}", *args[:-1], IMAGE, name, "sh", "-c", args[-1])
        r = start("one", "--rm", "echo out; echo err >&2; exit 7")
        t.check("ctr run: output and exit code", r[:2] == (7, "out\n") and "err\n" in r[2], (r, c.said()[-2000:]))
        r = start("limits", "--rm", "--read-only", "--cap-drop", "CAP_KILL", "touch /x 2>/dev/null || echo no; grep CapBnd /proc/self/status")
        words = r[1].split()
        t.check("a read-only root, capabilities", words[0] == "no" and int(words[2], 16) >> 5 & 1 == 0, r)
        r = start("two", "-d", "--memory-limit", "67108864", "exec sleep 1000")
        limit = f"{HIERARCHY}{c.cgroup}/two/{os.path.basename(INSIDE['memory'])}"
        t.check("ctr run -d, with a limit", r[0] == 0 and open(limit).read() == "67108864\n", r)

        def status():
            rows = [x.split() for x in run("task", "ls")[1].splitlines()]
            return next((x[2] for x in rows if x[0] == "two"), "none")
        wait_until(lambda: status() == "RUNNING", what="the task")
        r = run("task", "exec", *fifos, "--exec-id", "e1", "--user", "1000", "two", "sh", "-c", "id -u; exit 8")
        t.check("ctr task exec", r[:2] == (8, "1000\n"), r)
        r = run("task", "ps", "two")
        t.check("ctr task ps", len(r[1].splitlines()) == 2, r)
        r = run("task", "metrics", "--format", "json", "two")
        t.check("ctr task metrics", r[0] == 0 and '"usage"' in r[1], r)
        r = run("task", "pause", "two"), status(), run("task", "resume", "two"), status()
        t.check("ctr task pause and resume", (r[1], r[3]) == ("PAUSED", "RUNNING"), r)
        r = run("task", "kill", "-s", "KILL", "two")
        t.check("ctr task kill", r[0] == 0, r)
        wait_until(lambda: status() == "STOPPED", what="its end")
        r = run("task", "delete", "two"), run("container", "delete", "two")
        t.check("delete: the exit code was kept", "exit code 137" in r[0][2] and r[1][0] == 0, r)
        cgroups = [x for x, _, _ in os.walk("/sys/fs/cgroup") if f"{c.cgroup}/" in x]
        t.check("nothing is left", status() == "none" and not cgroups, cgroups)


class Service:
    """c8s runtime with other handlers; pods are in the node's network and need no plugins."""

    def __init__(self, handlers):
        self.folder = tempfile.mkdtemp(prefix="cri-", dir=FOLDER)
        self.socket = f"{self.folder}/state/cri.sock"
        os.makedirs(f"{self.folder}/net.d")
        archive = f"{self.folder}/image.tar"
        images.Image().docker_archive(archive, IMAGE)
        subprocess.run([C8S, "image", "--root", f"{self.folder}/root", "load", archive], check=True, capture_output=True)
        flags = [x for name, program in handlers.items() for x in ("--handler", f"{name}={program}")]
        with open(f"{self.folder}/log", "wb") as log:
            self.process = subprocess.Popen([C8S, "runtime", "--root", f"{self.folder}/root", "--state", f"{self.folder}/state", "--cni-conf-dir",
                                             f"{self.folder}/net.d", "--cgroup-parent", f"/{NAME}", "--pod-program", peers.static_pod(), *flags],
                                            stdout=log, stderr=log)

    def crictl(self, *args):
        return call(C8S, "crictl", "-r", f"unix://{self.socket}", *args)

    def file(self, name, value):
        write(f"{self.folder}/{name}", json.dumps(value))
        return f"{self.folder}/{name}"

    def __enter__(self):
        wait_until(lambda: b" ready " in open(f"{self.folder}/log", "rb").read(), what="the runtime")
        return self

    def __exit__(self, *_):
        self.crictl("rmp", "-f", "-a")
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


def test_handlers(t):
    # crun does not like a cgroup v2 beside v1.
    hybrid = os.path.ismount("/sys/fs/cgroup/unified")
    if hybrid:
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/sys/fs/cgroup/unified"], check=True)
    try:
        other_handlers(t)
    finally:
        if hybrid:
            subprocess.run(["umount", "-l", "/sys/fs/cgroup/unified"], check=True)


def other_handlers(t):
    found = {name: peers.find(name, peers.PEERS[name]) for name in ("runc", "crun")}
    for name in [x for x in found if not found[x]]:
        t.skip(f"{name} under c8s runtime", missing(name))
        del found[name]
    if not found:
        return
    for name, program in found.items():  # a monitor does not pass our environment on, and crun needs a library
        write(f"{FOLDER}/peers/{name}", f"#!/bin/sh\nLD_LIBRARY_PATH={peers.libraries()['LD_LIBRARY_PATH']} exec {program} \"$@\"\n", 0o755)
        found[name] = f"{FOLDER}/peers/{name}"
    with Service(found) as s:
        for name in found:
            handled(t, s, name)
    t.check("handlers: nothing is left", not left(), left())


def handled(t, s, name):
    own = {"pid": 1, "network": 2}
    pod_file = s.file("pod.json", {"metadata": {"name": name, "uid": name, "namespace": "default"}, "log_directory": f"{s.folder}/logs",
                                   "linux": {"security_context": {"namespace_options": own}}})
    pod = s.crictl("runp", "--runtime", name, pod_file)
    if "unknown version specified" in pod[2]:
        t.skip(f"{name}: a pod", "it is too old for the version of our config.json")
        return
    inspected = s.crictl("inspectp", pod[1].strip())
    t.check(f"{name}: a pod", pod[0] == 0 and json.loads(inspected[1])["status"]["runtimeHandler"] == name, (pod, inspected))

    def run(container, script, **resources):
        config = s.file(f"{container}.json", {
            "metadata": {"name": container}, "image": {"image": IMAGE}, "log_path": f"{container}.log", "command": ["sh", "-c", script],
            "linux": {"resources": resources, "security_context": {"namespace_options": own, "readonly_rootfs": True}}})
        made = s.crictl("create", "--no-pull", pod[1].strip(), config, pod_file)
        return made, s.crictl("start", made[1].strip())
    made = run(f"{name}-short", "echo out; touch /x || exit 7")
    wait_until(lambda: "EXITED" in s.crictl("inspect", made[0][1].strip())[1], what="its end")
    r = s.crictl("inspect", made[0][1].strip()), s.crictl("logs", made[0][1].strip())
    t.check(f"{name}: output and exit code", json.loads(r[0][1])["status"]["exitCode"] == 7 and r[1][1] == "out\n", (made, r))
    made = run(f"{name}-long", "exec sleep 1000", memory_limit_in_bytes=64 << 20)
    r = s.crictl("exec", "-s", made[0][1].strip(), "sh", "-c", "grep CapBnd /proc/self/status; echo in; exit 5")
    t.check(f"{name}: exec", "in\n" in r[1], (made, r))
    limits = [open(os.path.join(x, os.path.basename(INSIDE["memory"]))).read() for x, _, _ in os.walk(f"{HIERARCHY}/{NAME}")]
    t.check(f"{name}: a limit", "67108864\n" in limits, limits)
    r = s.crictl("stop", "-t", "1", made[0][1].strip()), s.crictl("inspect", made[0][1].strip())
    t.check(f"{name}: stop", json.loads(r[1][1])["status"]["exitCode"] in (137, 143), r)
    r = s.crictl("rmp", "-f", pod[1].strip())
    t.check(f"{name}: rmp", r[0] == 0, r)


def test_shared_pids(t):
    """Who shares the PID namespace of a pod, and may trace, comes to the root of its first process: there is nothing to be had."""
    shared = {"pid": 0, "network": 2}
    with Service({}) as s:
        pod_file = s.file("pod.json", {"metadata": {"name": "shared", "uid": "shared", "namespace": "default"}, "log_directory": f"{s.folder}/logs",
                                       "linux": {"security_context": {"namespace_options": shared}}})
        pod = s.crictl("runp", pod_file)
        config = s.file("c.json", {
            "metadata": {"name": "c"}, "image": {"image": IMAGE}, "log_path": "c.log", "command": ["sleep", "1000"],
            "linux": {"security_context": {"namespace_options": shared, "capabilities": {"add_capabilities": ["SYS_PTRACE", "SYS_ADMIN", "DAC_OVERRIDE"]}}}})
        made = s.crictl("create", "--no-pull", pod[1].strip(), config, pod_file)
        s.crictl("start", made[1].strip())
        r = s.crictl("exec", "-s", made[1].strip(), "sh", "-c", "cd /proc/1/root/proc && ls 1/status && cat keys kcore | head -c 9; "
                     "for f in sys/kernel/core_pattern sys/kernel/panic; do (: >> $f) 2>&1 | grep -o Read-only; done")
        t.check("the first process of a pod shows no writable /proc", r[1] == "1/status\nRead-only\nRead-only\n", (pod, made, r))


# ---- around it ----

def left():
    """Processes of containers, mounts and cgroups; what conmon and pods were in is removed at the end."""
    found = [line for line in open("/proc/self/mountinfo") if FOLDER in line.split()[4]]
    for folder, _, _ in os.walk(f"{HIERARCHY}/{NAME}"):
        found += [f"{folder}: {pid}" for pid in open(os.path.join(folder, "cgroup.procs")).read().split()]
    for root in ("/run/runc", f"{FOLDER}/run/runc", *glob.glob(f"{FOLDER}/cri-*/state/pods")):
        found += [f"{root}/{x}" for x in (os.listdir(root) if os.path.isdir(root) else [])]
    return found


def enter_namespaces():
    """Runs this program again where it can leave nothing behind; the shell takes in what conmon and shims leave to process 1."""
    script = 'mount -t tmpfs -o mode=755 run /run && "$0" "$@" & wait $!'
    os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script,
                          sys.executable, os.path.abspath(__file__), "inside"])


def main():
    global FOLDER
    if os.geteuid() != 0 or not os.path.exists(images.BUSYBOX):
        print("1..0 # SKIP containers need root and a static busybox")
        return
    if sys.argv[1:] != ["inside"]:
        why = containerd.missing()
        if why and "namespaces" in why:
            print(f"1..0 # SKIP {why}")
            return
        enter_namespaces()
    FOLDER = f"{tempfile.gettempdir()}/{NAME}"  # a part of names of images, which may not have "-_" in them
    os.mkdir(FOLDER, 0o700)
    os.makedirs(f"{FOLDER}/bin")
    shutil.copy(peers.static_pod(), f"{FOLDER}/bin/runc")
    try:
        tap.run([test_podman, test_buildah, test_shim, test_handlers, test_shared_pids])
    finally:
        for line in reversed(open("/proc/self/mountinfo").read().splitlines()):
            if FOLDER in line.split()[4]:
                subprocess.run(["umount", "-l", line.split()[4]], capture_output=True)
        wait_until(lambda: tap.remove_cgroups(NAME), 10, "the end of the cgroups")
        shutil.rmtree(FOLDER, ignore_errors=True)


main()
