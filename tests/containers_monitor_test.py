#!/usr/bin/env python3
"""The pod monitor (c8s-pod monitor), asked over its socket: containers' life, stdio, logs, ends; with our own runtime and others."""
import array
import errno
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import peers  # noqa: E402
import tap  # noqa: E402
from tap import wait_for  # noqa: E402

POD = os.path.join(os.path.dirname(os.environ["C8S"]), "c8s-pod")
NAME = f"c8s-test-mon-{random.randrange(1 << 32):08x}"
FOLDER = tempfile.mkdtemp(prefix=NAME + "-")
ROOTFS = os.path.join(FOLDER, "rootfs")
CAPS = ["CAP_KILL", "CAP_CHOWN", "CAP_SETUID", "CAP_SETGID"]
TIMEOUT = 20
BUSYBOX = shutil.which("busybox") or "/bin/busybox"
V1 = os.path.isdir("/sys/fs/cgroup/memory")


def make_rootfs():
    for folder in ("bin", "proc", "dev", "tmp", "sys", "etc"):
        os.makedirs(os.path.join(ROOTFS, folder), exist_ok=True)
    shutil.copy(BUSYBOX, os.path.join(ROOTFS, "bin/busybox"))
    for name in ("sh", "cat", "echo", "sleep", "yes", "head", "dd", "stty", "true", "ls", "kill", "tail", "tr", "usleep"):
        link = os.path.join(ROOTFS, "bin", name)
        if not os.path.lexists(link):
            os.symlink("busybox", link)


def process(args, terminal=False):
    return {"terminal": terminal, "user": {"uid": 0, "gid": 0}, "args": args, "env": ["PATH=/bin", "TERM=xterm"], "cwd": "/",
            "capabilities": {"bounding": CAPS, "effective": CAPS, "permitted": CAPS}, "noNewPrivileges": True}


def config(args, cgroup, terminal=False, memory=None):
    resources = {"memory": {"limit": memory}} if memory else {}
    return {"ociVersion": "1.0.2", "process": process(args, terminal), "root": {"path": ROOTFS, "readonly": True}, "hostname": "box",
            "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
                       {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=65536k"]},
                       {"destination": "/dev/pts", "type": "devpts", "source": "devpts",
                        "options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"]},
                       {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs"}],
            "linux": {"namespaces": [{"type": t} for t in ("pid", "ipc", "uts", "mount", "network")], "cgroupsPath": cgroup,
                      "resources": resources}}


class Connection:
    """One connection to a monitor: questions, answers, and events that come in between."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(TIMEOUT)
        folder = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY)
        try:
            wait_for(lambda: self.sock.connect_ex(f"/proc/self/fd/{folder}/{os.path.basename(path)}") != errno.EAGAIN)
            self.sock.getpeername()
        except OSError:
            raise ConnectionRefusedError(path) from None
        finally:
            os.close(folder)
        self.events = []

    def receive(self):
        data, ancillary, _, _ = self.sock.recvmsg(1 << 20, socket.CMSG_SPACE(64))
        fds = array.array("i")
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(content[:len(content) - len(content) % fds.itemsize])
        if not data:
            raise EOFError("the monitor has closed the connection")
        return json.loads(data), list(fds)

    def send(self, question, fds=()):
        text = json.dumps(question).encode()
        if fds:
            socket.send_fds(self.sock, [text], fds)
        else:
            self.sock.send(text)

    def answer(self):
        while True:
            answer, fds = self.receive()
            if "event" not in answer:
                return answer, fds
            self.events.append(answer)

    def ask_fds(self, op, fds=(), **members):
        self.send({"op": op, **members}, fds)
        return self.answer()

    def ask(self, op, fds=(), **members):
        answer, got = self.ask_fds(op, fds, **members)
        for fd in got:
            os.close(fd)
        return answer

    def exit_of(self, container, exec_id=""):
        """The event of an exit, waited for."""
        while True:
            for event in self.events:
                if event["id"] == container and event["exec"] == exec_id:
                    return event
            event, _ = self.receive()
            self.events.append(event)

    def close(self):
        self.sock.close()


class Monitor:
    """A monitor of its own, and the bundles of its containers."""
    count = 0

    def __init__(self, runtime=None, env=None, legacy=False):
        """legacy: it sees no cgroup v2 beside v1, which crun does not like."""
        Monitor.count += 1
        self.name = f"{NAME}-{Monitor.count}"
        self.folder = os.path.join(FOLDER, "state", "pods", self.name)
        self.root = os.path.join(FOLDER, "oci", self.name)
        os.makedirs(self.folder)
        self.cgroups = []
        command = [POD, "monitor", "--state", self.folder, "--root", self.root] + (["--runtime", runtime] if runtime else [])
        if legacy and os.path.ismount("/sys/fs/cgroup/unified"):
            command = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs tmpfs /sys/fs/cgroup/unified && exec "$@"', "sh"] + command
        self.started = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, env=env)
        self.pid = None
        if self.started.returncode == 0:
            c = self.connect()
            self.pid = struct.unpack("3i", c.sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
            c.close()
            # The credentials are those of who called listen(): the parent of the one that stays.
            self.pid = wait_for(self.find)

    def find(self):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    line = f.read().split(b"\0")
                with open(f"/proc/{pid}/stat") as f:
                    parent = int(f.read().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            if self.folder.encode() in line and b"monitor" in line and parent != os.getpid():
                with open(f"/proc/{pid}/status") as f:
                    if "SigBlk:\tffffff" in f.read():  # not a job, which blocks nothing
                        return int(pid)
        return None

    def connect(self):
        return Connection(os.path.join(self.folder, "monitor.sock"))

    def bundle(self, name, args, **options):
        path = os.path.join(FOLDER, "bundles", self.name, name)
        os.makedirs(path, exist_ok=True)
        cgroup = f"/{self.name}-{name}"
        self.cgroups.append(cgroup)
        with open(os.path.join(path, "config.json"), "w") as f:
            json.dump(config(args, cgroup, **options), f)
        return path

    def log(self, name):
        return os.path.join(self.folder, name + ".log")

    def create(self, c, name, args, terminal=False, memory=None, log=True, **members):
        bundle = self.bundle(name, args, terminal=terminal, memory=memory)
        return c.ask("create", id=name, bundle=bundle, log=self.log(name) if log else "", terminal=terminal,
                     **{"stdin": False, "stdinOnce": False, **members})

    def run(self, c, name, args, **options):
        made = self.create(c, name, args, **options)
        if "error" in made:
            return made
        return {**made, **c.ask("start", id=name)}

    def entries(self, name, files=None):
        """(stream, tag, text) of all entries of a log."""
        out = []
        for path in files or [self.log(name)]:
            with open(path, "rb") as f:
                for line in f.read().split(b"\n")[:-1]:
                    _, stream, tag, text = line.split(b" ", 3)
                    out.append((stream.decode(), tag.decode(), text))
        return out

    def text(self, name, stream):
        return b"".join(text + (b"\n" if tag == "F" else b"") for s, tag, text in self.entries(name) if s == stream)

    def end(self):
        """All containers are killed and deleted, and it ends by itself; what is left over, as text."""
        left = []
        if self.pid:
            try:
                c = self.connect()
                for container in c.ask("state")["containers"]:
                    if container["status"] not in ("stopped", "creating"):
                        c.ask("kill", id=container["id"], signal=9, all=True)
                wait_for(lambda: all(x["status"] == "stopped" for x in c.ask("state")["containers"]), 5)
                for container in c.ask("state")["containers"]:
                    answer = c.ask("delete", id=container["id"])
                    if answer:
                        left.append(f"delete {container['id']}: {answer}")
                c.ask("end")
            except (OSError, EOFError) as e:
                left.append(str(e))
            if not wait_for(lambda: tap.gone(self.pid), 5):
                left.append(f"the monitor {self.pid} runs on")
                os.kill(self.pid, signal.SIGKILL)
        left += [f for f in os.listdir(self.folder) if f.startswith(("job-", "monitor.sock", "monitor.new"))]
        if os.path.isdir(self.root):
            left += os.listdir(self.root)
        left += self.left_cgroups()
        with open(os.path.join(self.folder, "monitor.log")) as f:
            left += [line for line in f if "runtime error" in line or "Sanitizer" in line]
        return left

    def left_cgroups(self):
        left = []
        for controller in os.listdir("/sys/fs/cgroup"):
            for cgroup in self.cgroups:
                path = f"/sys/fs/cgroup/{controller}{cgroup}"
                if os.path.isdir(path):
                    left.append(path)
                    subprocess.run(["rmdir", path], capture_output=True)
        return left


def frames(sock, done, limit=TIMEOUT):
    """Reads frames until done(out, err) or the end."""
    data, streams = b"", {1: b"", 2: b""}
    sock.settimeout(limit)
    while not done(streams[1], streams[2]):
        more = sock.recv(65536)
        if not more:
            break
        data += more
        while len(data) >= 5 and len(data) >= 5 + struct.unpack(">I", data[1:5])[0]:
            n = struct.unpack(">I", data[1:5])[0]
            streams[data[0]] += data[5:5 + n]
            data = data[5 + n:]
    return streams[1], streams[2]


def frame(channel, data):
    return struct.pack(">BI", channel, len(data)) + data


def attach(c, name):
    answer, fds = c.ask_fds("attach", id=name)
    return answer, socket.socket(fileno=fds[0]) if fds else None


# ---- with every runtime ----

def life(t, m, c, who):
    made = m.create(c, "a", ["/bin/sh", "-c", "echo out; echo err >&2; exit 7"])
    t.check(f"{who}: create gives a process", made.get("pid", 0) > 1, made)
    state = c.ask("state")["containers"]
    t.check(f"{who}: it is created", [x["status"] for x in state] == ["created"] and state[0]["pid"] == made.get("pid"), state)
    t.check(f"{who}: start", c.ask("start", id="a") == {})
    event = c.exit_of("a")
    t.check(f"{who}: its exit is told", event["exitCode"] == 7 and not event["oomKilled"] and event["finishedAt"] > 1e18, event)
    with open(os.path.join(m.folder, "exits", "a")) as f:
        t.check(f"{who}: and in a file", json.load(f) == event)
    t.check(f"{who}: all of its output is in the log by then",
            sorted(m.entries("a")) == [("stderr", "F", b"err"), ("stdout", "F", b"out")], m.entries("a"))
    state = c.ask("state")["containers"][0]
    t.check(f"{who}: it is stopped", state["status"] == "stopped" and state["exitCode"] == 7, state)
    t.check(f"{who}: no second start", c.ask("start", id="a").get("code") == "conflict")
    t.check(f"{who}: no kill of what has ended", c.ask("kill", id="a", signal=15, all=False).get("code") == "conflict")
    t.check(f"{who}: delete", c.ask("delete", id="a") == {})
    t.check(f"{who}: it is not there any more", c.ask("delete", id="a").get("code") == "not_found")
    bad = m.create(c, "bad", ["/bin/no-such-program"])
    if "error" not in bad:
        bad = c.ask("start", id="bad")
    t.check(f"{who}: a program that is not there", "no-such-program" in bad.get("error", "") or "no such file" in bad.get("error", "").lower(), bad)
    c.ask("delete", id="bad")
    bad = c.ask("create", id="none", bundle=FOLDER + "/none", log="", terminal=False, stdin=False, stdinOnce=False)
    t.check(f"{who}: a bundle that is not there", bad.get("error") and not c.ask("state")["containers"], bad)


def signals(t, m, c, who):
    m.run(c, "s", ["/bin/sh", "-c", "trap 'echo got; exit 3' TERM; echo ready; while :; do sleep 0.05; done"])
    wait_for(lambda: b"ready" in m.text("s", "stdout"))
    t.check(f"{who}: kill", c.ask("kill", id="s", signal=15, all=False) == {})
    t.check(f"{who}: a signal was handled", c.exit_of("s")["exitCode"] == 3)
    m.run(c, "k", ["/bin/sh", "-c", "sleep 1000 & sleep 1000"])
    t.check(f"{who}: delete of a running one is refused", c.ask("delete", id="k").get("code") == "conflict")
    t.check(f"{who}: kill all", c.ask("kill", id="k", signal=9, all=True) == {})
    t.check(f"{who}: a signal ended it", c.exit_of("k")["exitCode"] == 137)
    for name in ("s", "k"):
        c.ask("delete", id=name)


def out_of_memory(t, m, c, who):
    if not V1:
        return t.skip(f"{who}: memory", "no memory cgroup v1")
    m.run(c, "m", ["/bin/sh", "-c", "x=$(yes 0123456789abcdef | head -c 100000000); echo survived ${#x}"], memory=16 << 20)
    event = c.exit_of("m")
    t.check(f"{who}: killed for memory", event["exitCode"] == 137 and event["oomKilled"], event)
    c.ask("delete", id="m")


def execs(t, m, c, who):
    m.run(c, "e", ["/bin/sleep", "1000"])
    into, out, err = os.pipe(), os.pipe(), os.pipe()
    answer = c.ask("exec", (into[0], out[1], err[1]), id="e", exec="x1", terminal=False,
                   process=process(["/bin/sh", "-c", "read x; echo got $x; echo bad >&2; exit 5"]))
    t.check(f"{who}: exec gives a process", answer.get("pid", 0) > 1, answer)
    for fd in (into[0], out[1], err[1]):
        os.close(fd)
    os.write(into[1], b"hello\n")
    got = os.fdopen(out[0], "rb").read(), os.fdopen(err[0], "rb").read()
    os.close(into[1])
    t.check(f"{who}: its stdio are the pipes, and they end", got == (b"got hello\n", b"bad\n"), got)
    t.check(f"{who}: its exit is told", c.exit_of("e", "x1")["exitCode"] == 5)

    answer, fds = c.ask_fds("exec", id="e", exec="x2", terminal=True, process=process(["/bin/sh", "-c", "read x; stty size; exit 6"]))
    t.check(f"{who}: exec with a terminal", answer.get("pid", 0) > 1 and len(fds) == 1, answer)
    if fds:
        t.check(f"{who}: resize", c.ask("resize", id="e", exec="x2", width=101, height=42) == {})
        os.write(fds[0], b"go\n")
        t.check(f"{who}: its exit is told, too", c.exit_of("e", "x2")["exitCode"] == 6)
        text = read_terminal(fds[0])
        t.check(f"{who}: the terminal has that size", b"42 101" in text, text)
    null = os.open("/dev/null", os.O_RDWR)
    answer = c.ask("exec", (null, null, null), id="e", exec="x3", terminal=False, process=process(["/bin/sleep", "1000"]))
    t.check(f"{who}: an exec can be killed", answer.get("pid") and c.ask("kill", id="e", exec="x3", signal=9, all=False) == {} and
            c.exit_of("e", "x3")["exitCode"] == 137, answer)
    bad = c.ask("exec", (null, null, null), id="e", exec="x4", terminal=False, process=process(["/bin/none"]))
    t.check(f"{who}: exec of a program that is not there", "error" in bad, bad)
    os.close(null)
    c.ask("kill", id="e", signal=9, all=True)
    c.exit_of("e")
    t.check(f"{who}: exec in what has ended", c.ask("exec", id="e", exec="x5", terminal=True, process=process(["/bin/true"])).get("code") == "conflict")
    c.ask("delete", id="e")


def read_terminal(fd):
    text = b""
    os.set_blocking(fd, False)
    try:
        while True:
            text += os.read(fd, 4096)
    except OSError:
        pass
    os.close(fd)
    return text


def attaches(t, m, c, who):
    m.create(c, "i", ["/bin/sh", "-c", "cat; echo end >&2; exit 4"], stdin=True, stdinOnce=True)
    _, first = attach(c, "i")
    _, second = attach(c, "i")
    c.ask("start", id="i")
    first.sendall(frame(0, b"one\n")[:3])
    first.sendall(frame(0, b"one\n")[3:] + frame(0, b"two\n") + frame(3, b""))
    out, err = frames(first, lambda o, e: False)
    t.check(f"{who}: attach both ways, and stdin ends once", (out, err) == (b"one\ntwo\n", b"end\n"), (out, err))
    t.check(f"{who}: another one sees the same", frames(second, lambda o, e: False) == (b"one\ntwo\n", b"end\n"))
    t.check(f"{who}: and the log", m.text("i", "stdout") == b"one\ntwo\n" and c.exit_of("i")["exitCode"] == 4)
    first.close(), second.close()
    c.ask("delete", id="i")

    m.create(c, "y", ["/bin/sh", "-c", "stty -echo; echo ready; read x; stty size; echo $x; exit 2"], terminal=True, stdin=True)
    _, sock = attach(c, "y")
    c.ask("start", id="y")
    frames(sock, lambda o, e: b"ready" in o)
    t.check(f"{who}: a container's terminal is resized", c.ask("resize", id="y", exec="", width=99, height=33) == {})
    sock.sendall(frame(0, b"typed\n"))
    out, err = frames(sock, lambda o, e: False)
    t.check(f"{who}: a terminal, attached", b"33 99\r\ntyped\r\n" in out and err == b"", (out, err))
    t.check(f"{who}: ends", c.exit_of("y")["exitCode"] == 2)
    t.check(f"{who}: its lines in the log", ("stdout", "F", b"typed") in m.entries("y"), m.entries("y"))
    sock.close()
    c.ask("delete", id="y")


def changes(t, m, c, who):
    m.run(c, "u", ["/bin/sh", "-c", "i=0; while :; do echo $i; i=$((i+1)); sleep 0.02; done"], memory=64 << 20)
    if V1:
        answer = c.ask("update", id="u", resources={"memory": {"limit": 32 << 20}})
        with open(f"/sys/fs/cgroup/memory/{m.name}-u/memory.limit_in_bytes") as f:
            t.check(f"{who}: update", answer == {} and int(f.read()) == 32 << 20, answer)
    t.check(f"{who}: pause", c.ask("pause", id="u") == {} and c.ask("state")["containers"][0]["status"] == "paused")
    t.check(f"{who}: resume", c.ask("resume", id="u") == {} and c.ask("state")["containers"][0]["status"] == "running")
    wait_for(lambda: len(m.entries("u")) > 3)
    os.rename(m.log("u"), m.log("u") + ".old")
    t.check(f"{who}: reopen", c.ask("reopen", id="u") == {})
    wait_for(lambda: len(m.entries("u")) > 3)
    c.ask("kill", id="u", signal=9, all=True)
    c.exit_of("u")
    numbers = [int(text) for _, _, text in m.entries("u", [m.log("u") + ".old", m.log("u")])]
    t.check(f"{who}: nothing is lost over a rotation", numbers == list(range(len(numbers))) and len(numbers) > 6, numbers)
    c.ask("delete", id="u")


def with_runtime(t, who, runtime, why_not):
    if not runtime and who != "own":
        return t.skip(who, why_not)
    m = Monitor(runtime, peers.libraries() if who == "crun" else None, legacy=who == "crun")
    try:
        if not m.pid:
            return t.check(f"{who}: the monitor starts", False, m.started.stderr)
        c = m.connect()
        c.ask("follow")
        probe = m.run(c, "probe", ["/bin/true"])
        if who == "crun" and "error" in probe:
            return t.skip(who, "it does not run here: " + probe["error"])
        c.exit_of("probe")
        c.ask("delete", id="probe")
        for test in (life, signals, out_of_memory, execs, attaches, changes):
            test(t, m, c, who)
        c.close()
    finally:
        left = m.end()
        t.check(f"{who}: nothing is left over", not left, left)


def test_own(t):
    with_runtime(t, "own", None, "")


def test_runc(t):
    with_runtime(t, "runc", peers.find("runc", peers.PEERS["runc"]), "runc cannot be had")


def test_crun(t):
    with_runtime(t, "crun", peers.find("crun", peers.PEERS["crun"]), "crun cannot be had")


# ---- with ours ----

def scene(test):
    """A monitor with a connection that follows, and the check that nothing is left."""
    def run(t):
        m = Monitor(os.environ.get("C8S_TEST_RUNTIME"))
        try:
            c = m.connect()
            c.ask("follow")
            test(t, m, c)
            c.close()
        finally:
            left = m.end()
            t.check(f"{test.__name__}: nothing is left over", not left, left)
    run.__name__ = test.__name__
    return run


@scene
def test_lines(t, m, c):
    m.run(c, "l", ["/bin/sh", "-c", "head -c 40000 /dev/zero | tr '\\0' x; echo; echo; echo -n unfinished"])
    c.exit_of("l")
    entries = [(tag, text if len(text) < 100 else len(text)) for _, tag, text in m.entries("l")]
    t.check("long, empty and unfinished lines", entries == [("P", 16384), ("P", 16384), ("F", 7232), ("F", b""), ("P", b"unfinished")], entries)
    m.run(c, "b", ["/bin/sh", "-c", "head -c 3000000 /dev/urandom"])
    t.check("binary output", c.exit_of("b")["exitCode"] == 0)
    t.check("all of it is there", abs(len(m.text("b", "stdout")) - 3000000) < 1000, len(m.text("b", "stdout")))
    m.run(c, "n", ["/bin/sh", "-c", "yes '' | head -c 100000"])
    c.exit_of("n")
    t.check("a flood of empty lines", len(m.entries("n")) == 100000, len(m.entries("n")))


@scene
def test_rotation(t, m, c):
    m.run(c, "o", ["/bin/sh", "-c", "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; echo -n end"],
          containerLogMaxSize=100000, containerLogMaxFiles=3)
    c.exit_of("o")
    old = sorted(name for name in os.listdir(m.folder) if name.startswith("o.log."))
    t.check("a log that has grown is renamed, and only the newest are kept",
            len(old) == 2 and all(re.fullmatch(r"o\.log\.20\d{6}-\d{6}", name) for name in old), old)
    files = [os.path.join(m.folder, name) for name in (*old, "o.log")]
    sizes = [os.path.getsize(f) for f in files]
    t.check("they are as large as they may be", all(90000 < size <= 100000 for size in sizes[:2]) and 0 < sizes[2] <= 100000, sizes)
    entries = m.entries("o", files)
    t.check("nothing is lost between them", [text for _, _, text in entries] ==
            [b"line %d" % i for i in range(20001 - len(entries), 20000)] + [b"end"], len(entries))


def memory(pid):
    figures = {}
    with open(f"/proc/{pid}/smaps_rollup") as f:
        for line in f:
            if line.startswith(("Rss:", "Pss:", "Private_Dirty:", "Pss_Anon:")):
                figures[line.split(":")[0]] = int(line.split()[1])
    return figures


@scene
def test_memory(t, m, c):
    before = memory(m.pid)
    for name in ("p1", "p2", "p3"):
        m.run(c, name, ["/bin/sleep", "1000"])
    m.run(c, "flood", ["/bin/sh", "-c", "yes | head -c 20000000; head -c 20000000 /dev/zero"], containerLogMaxSize=1 << 20, containerLogMaxFiles=2)
    c.exit_of("flood")
    busy = memory(m.pid)
    wait_for(lambda: memory(m.pid)["Rss"] < 512, 3)
    after = memory(m.pid)
    print(f"# KiB of a monitor: at start {before}, after 3 starts and a flood {busy}, asleep again {after}")
    with open(POD, "rb") as f:
        if b"__asan_init" in f.read():
            return t.skip("a monitor is small", "a sanitizer has a memory of its own")
    t.check("a monitor is small", after["Rss"] < 1024, after)


@scene
def test_slow_reader(t, m, c):
    before = memory(m.pid)["Pss_Anon"]
    m.create(c, "f", ["/bin/sh", "-c", "yes 0123456789 | head -c 5000000; echo done >&2"])
    _, slow = attach(c, "f")
    _, fast = attach(c, "f")
    c.ask("start", id="f")
    time.sleep(0.2)
    limit = memory(m.pid)["Pss_Anon"]
    got = []
    reader = threading.Thread(target=lambda: got.extend(frames(fast, lambda o, e: False)))
    reader.start()
    out, _ = frames(slow, lambda o, e: len(o) > 1000000)
    slow.close()
    reader.join(TIMEOUT)
    more, err = got
    t.check("a reader that is slow loses nothing, one that leaves is no loss", len(more) == 5000000 and err == b"done\n", (len(out), len(more)))
    t.check("and no memory was used for it", limit < before + 4096, (before, limit))
    fast.close()
    c.exit_of("f")

    m.run(c, "g", ["/bin/sh", "-c", "sleep 0.3; yes 0123456789 | head -c 5000000; echo done >&2"])
    _, never = attach(c, "g")
    start = time.monotonic()
    c.exit_of("g")
    took = time.monotonic() - start
    t.check("one that never reads is let go of", 5 < took < 18, took)
    t.check("the log is complete", len(m.text("g", "stdout")) == 5000000)
    never.close()


@scene
def test_input(t, m, c):
    m.create(c, "i", ["/bin/sh", "-c", "sleep 0.3; cat | tail -c 6"], stdin=True, stdinOnce=True)
    _, sock = attach(c, "i")
    c.ask("start", id="i")
    data = b"x" * 1000000 + b"-last\n"
    for at in range(0, len(data), 50000):
        sock.sendall(frame(0, data[at:at + 50000]))
    sock.close()
    event = c.exit_of("i")
    t.check("much input, of one who has left meanwhile", m.text("i", "stdout") == b"-last\n" and event["exitCode"] == 0, m.entries("i"))

    m.run(c, "j", ["/bin/sh", "-c", "while read x; do echo $x; [ $x = stop ] && exit 9; done; echo ended"], stdin=True, stdinOnce=False)
    for word in (b"one", b"two", b"stop"):
        _, sock = attach(c, "j")
        sock.sendall(frame(0, word + b"\n") + frame(3, b""))
        frames(sock, lambda o, e: word in o)
        sock.close()
    t.check("without stdinOnce, stdin stays open for the next", c.exit_of("j")["exitCode"] == 9, m.entries("j"))

    m.run(c, "d", ["/bin/sh", "-c", "ls -l /proc/self/fd | wc -l; ls /proc/self/fd"])
    c.exit_of("d")
    t.check("no descriptor leaks into a container", m.text("d", "stdout").split()[-4:] == [b"0", b"1", b"2", b"3"], m.entries("d"))


@scene
def test_alone(t, m, c):
    client = subprocess.Popen([sys.executable, "-c", f"""
import socket, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect({os.path.join(m.folder, 'monitor.sock')!r})
s.send(b'{{"op":"follow"}}')
s.recv(1000)
print("there", flush=True)
time.sleep(1000)"""], stdout=subprocess.PIPE) if len(m.folder) < 90 else None
    if client:
        client.stdout.readline()
        client.kill()
        client.wait()
    m.create(c, "q", ["/bin/sh", "-c", "sleep 0.3; echo late; exit 8"])
    c.ask("start", id="q")
    c.close()
    path = os.path.join(m.folder, "exits", "q")
    wait_for(lambda: os.path.exists(path))
    with open(path) as f:
        t.check("an end is noted when nobody is there", json.load(f)["exitCode"] == 8)
    t.check("and so is the output", m.text("q", "stdout") == b"late\n")
    again = m.connect()
    state = again.ask("state")["containers"]
    t.check("who comes back finds it", [(x["id"], x["status"], x["exitCode"]) for x in state] == [("q", "stopped", 8)], state)
    again.close()
    os.kill(m.pid, signal.SIGTERM)
    os.kill(m.pid, signal.SIGHUP)
    third = m.connect()
    t.check("signals do not end it", len(third.ask("state")["containers"]) == 1)
    second = subprocess.run([POD, "monitor", "--state", m.folder, "--root", m.root], capture_output=True, text=True)
    t.check("a second one does not start", second.returncode == 1 and "a monitor runs there" in second.stderr, second)
    third.close()


@scene
def test_hostile(t, m, c):
    for text in (b"{", b"[]", b"null", b"\xff\xfe", b'{"op":"none"}', b'{"op":"create","id":"../x","bundle":"/x"}',
                 b'{"op":"create","id":"x","bundle":"relative"}', b'{"op":"start"}', b'{"op":"attach","id":"none"}',
                 b'{"op":"kill","id":{},"signal":"x"}'):
        c.sock.send(text)
        answer, _ = c.answer()
        t.check(f"refused: {text!r}", answer.get("error") and answer.get("code"), answer)
    null = os.open("/dev/null", os.O_RDWR)
    before = len(os.listdir(f"/proc/{m.pid}/fd"))
    for _ in range(50):
        c.ask("state", [null] * 4)
    c.ask("state", [null] * 20)
    t.check("descriptors that nobody asked for are closed", len(os.listdir(f"/proc/{m.pid}/fd")) == before)
    os.close(null)
    m.run(c, "h", ["/bin/sleep", "1000"])
    _, sock = attach(c, "h")
    sock.sendall(struct.pack(">BI", 0, 0xFFFFFFFF) + b"x" * 100000)
    sock.close()
    t.check("it is still there", c.ask("state")["containers"][0]["status"] == "running")
    slow = m.connect()
    slow.ask("follow")
    many = [m.connect() for _ in range(270)]
    t.check("connections are bounded", c.ask("state")["containers"][0]["id"] == "h")
    for s in many:
        s.close()
    slow.close()


@scene
def test_disk(t, m, c):
    disk = os.path.join(FOLDER, "disk")
    os.makedirs(disk, exist_ok=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], capture_output=True).returncode:
        return t.skip("a full disk", "no tmpfs can be mounted")
    try:
        with open(os.path.join(disk, "filler"), "wb") as f:
            f.write(b"x" * 200000)
        bundle = m.bundle("z", ["/bin/sh", "-c", "i=0; while [ $i -lt 10000 ]; do echo line $i; i=$((i+1)); done"])
        log = os.path.join(disk, "z.log")
        c.ask("create", id="z", bundle=bundle, log=log, terminal=False, stdin=False, stdinOnce=False)
        c.ask("start", id="z")
        wait_for(lambda: os.statvfs(disk).f_bfree == 0)
        time.sleep(0.3)
        t.check("a full disk holds the container up", c.ask("state")["containers"][0]["status"] == "running")
        os.unlink(os.path.join(disk, "filler"))
        # Half of the lines fit now; the rest after a rotation to elsewhere.
        wait_for(lambda: os.statvfs(disk).f_bfree == 0)
        old = os.path.join(FOLDER, "z.old")
        shutil.copy(log, old)
        os.truncate(log, 0)
        event = c.exit_of("z")
        wait_for(lambda: len(m.entries("z", [old, log])) == 10000, 5)
        lines = [text for _, _, text in m.entries("z", [old, log])]
        t.check("and nothing is lost", event["exitCode"] == 0 and lines == [b"line %d" % i for i in range(10000)], (event, len(lines)))
        c.ask("delete", id="z")
    finally:
        subprocess.run(["umount", disk])


def with_number(pid):
    """A process of this number, which nobody has; None: it cannot be made."""
    for _ in range(50):
        try:
            with open("/proc/sys/kernel/ns_last_pid", "w") as f:
                f.write(str(pid - 1))
        except OSError:
            return None
        p = subprocess.Popen(["sleep", "1000"])
        if p.pid == pid:
            return p
        p.kill()
        p.wait()
    return None


def test_execs_apart(t):
    """Execs that take long, each by a connection of its own: nobody waits for them."""
    folder = os.path.join(FOLDER, "apart")
    os.makedirs(folder)
    runtime = os.path.join(folder, "runtime")
    with open(runtime, "w") as f:
        f.write(f'''#!/bin/sh
for w; do
    [ "$w" = exec ] && {{ : > {folder}/at; while [ ! -e {folder}/go ]; do sleep 0.01; done; }}
    [ "$last" = --pid-file ] && file=$w
    last=$w
done
[ -e {folder}/late ] || exec {POD} runc "$@"
{POD} runc "$@"
code=$?
cp $file {folder}/pid.new && mv {folder}/pid.new {folder}/pid
while [ -e {folder}/late ]; do sleep 0.01; done
exit $code
''')
    os.chmod(runtime, 0o755)
    m = Monitor(runtime)
    c, other = m.connect(), m.connect()
    c.ask("follow")
    null = os.open("/dev/null", os.O_RDWR)
    m.run(c, "e", ["/bin/sleep", "1000"])

    def begin(name, *args):
        if os.path.exists(os.path.join(folder, "at")):
            os.unlink(os.path.join(folder, "at"))
        other.send({"op": "exec", "id": "e", "exec": name, "terminal": False, "process": process(args or ["/bin/sleep", "1000"])},
                   (null, null, null))
        wait_for(lambda: os.path.exists(os.path.join(folder, "at")))
    begin("x1")
    start = time.monotonic()
    t.check("an exec on its way can be killed", c.ask("kill", id="e", exec="x1", signal=9, all=False) == {})
    t.check("other questions are answered meanwhile", c.ask("state")["containers"][0]["status"] == "running" and time.monotonic() - start < 2)
    open(os.path.join(folder, "go"), "w").close()
    answer, _ = other.answer()
    t.check("it gets the signal when it has started", answer.get("pid", 0) > 1 and c.exit_of("e", "x1")["exitCode"] == 137, answer)
    os.unlink(os.path.join(folder, "go"))
    open(os.path.join(folder, "late"), "w").close()
    begin("x3", "/bin/true")
    c.ask("kill", id="e", exec="x3", signal=9, all=False)
    open(os.path.join(folder, "go"), "w").close()
    wait_for(lambda: os.path.exists(os.path.join(folder, "pid")))
    pid = int(open(os.path.join(folder, "pid")).read())
    gone = wait_for(lambda: not os.path.exists(f"/proc/{pid}"))
    stranger = with_number(pid) if gone else None
    os.unlink(os.path.join(folder, "late"))
    answer, _ = other.answer()
    event = c.exit_of("e", "x3")
    if stranger:
        time.sleep(0.2)
        t.check("one that has ended before it could get the signal: whoever has its number now does not", answer.get("pid") == pid and
                event["exitCode"] == 0 and stranger.poll() is None, (answer, event, stranger.poll()))
        stranger.kill()
        stranger.wait()
    else:
        t.skip("a number that is another's", "numbers of processes cannot be chosen here")
    os.unlink(os.path.join(folder, "go"))
    begin("x2")
    start = time.monotonic()
    c.ask("kill", id="e", signal=9, all=True)
    c.exit_of("e")
    answer, _ = other.answer()
    t.check("the container ends: so does an exec on its way", answer.get("code") == "conflict" and time.monotonic() - start < 5, answer)
    t.check("and the container can be deleted", wait_for(lambda: c.ask("delete", id="e") == {}, 5))
    os.close(null)
    open(os.path.join(folder, "go"), "w").close()
    left = m.end()
    t.check("execs apart: nothing is left over", not left, left)


@scene
def test_short_of_descriptors(t, m, c):
    m.create(c, "d", ["/bin/sh", "-c", "exit 4"])
    limits = resource.prlimit(m.pid, resource.RLIMIT_NOFILE)
    used = {int(fd) for fd in os.listdir(f"/proc/{m.pid}/fd")}
    resource.prlimit(m.pid, resource.RLIMIT_NOFILE, (min(set(range(1000)) - used), limits[1]))
    bad = c.ask("start", id="d")
    resource.prlimit(m.pid, resource.RLIMIT_NOFILE, limits)
    t.check("a start without descriptors fails", "error" in bad, bad)
    t.check("and can be tried again", c.ask("start", id="d") == {} and c.exit_of("d")["exitCode"] == 4)
    c.ask("delete", id="d")


def test_killed(t):
    """What is left when the monitor itself is killed."""
    m = Monitor(os.environ.get("C8S_TEST_RUNTIME"))
    c = m.connect()
    pid = m.run(c, "o", ["/bin/sleep", "1000"])["pid"]
    os.kill(m.pid, signal.SIGKILL)
    wait_for(lambda: tap.gone(m.pid))
    t.check("its containers run on", os.path.exists(f"/proc/{pid}"))
    try:
        m.connect()
        t.check("its socket refuses", False)
    except ConnectionRefusedError:
        t.check("its socket refuses", True)
    again = Monitor.__new__(Monitor)
    again.__dict__.update(m.__dict__)
    second = subprocess.run([POD, "monitor", "--state", m.folder, "--root", m.root], capture_output=True, text=True)
    again.pid = wait_for(again.find) if second.returncode == 0 else None
    t.check("another one takes its place", again.pid, second)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: tap.gone(pid))
    runtime = [os.environ["C8S_TEST_RUNTIME"]] if os.environ.get("C8S_TEST_RUNTIME") else [POD, "runc"]
    subprocess.run(runtime + ["--root", m.root, "delete", "--force", "o"], capture_output=True)
    left = again.end()
    t.check("killed: nothing is left over", not left, left)


def main():
    if os.geteuid() != 0 or not os.path.exists(BUSYBOX):
        print("1..0 # SKIP needs root and busybox")
        return
    make_rootfs()
    try:
        tap.run([test_own, test_runc, test_crun, test_lines, test_rotation, test_memory, test_slow_reader, test_input, test_alone, test_hostile, test_disk, test_execs_apart,
                 test_short_of_descriptors, test_killed])
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)


if __name__ == "__main__":
    main()
