#!/usr/bin/env python3
"""c8s crictl towards c8s runtime and towards Debian's containerd: the same cases by the same client. Then runtimes that answer with
garbage. All of it in a network namespace of its own. Needs root."""
import base64
import fcntl
import hashlib
import json
import os
import pty
import random
import select
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import containerd  # noqa: E402
import images  # noqa: E402
import peers  # noqa: E402
import tap  # noqa: E402
from cluster import wait_until  # noqa: E402

C8S = os.environ["C8S"]
NAME = f"c8s-test-crictl-{random.randrange(1 << 32):08x}"
FOLDER = tempfile.mkdtemp(prefix=NAME + "-")
ENV = {**os.environ, "CRI_CONFIG_FILE": os.path.join(FOLDER, "crictl.yaml")}
TIMEOUT = 30
TRANSPORTS = ("spdy", "websocket")


class Failed(Exception):
    pass


class Ours:
    """c8s runtime in folders of its own; as containerd.Containerd."""
    name = "c8s"

    def __init__(self):
        self.folder = os.path.join(FOLDER, "ours")
        self.endpoint = f"unix://{self.folder}/state/cri.sock"
        self.cgroup = f"/{NAME}"
        self.log = os.path.join(self.folder, "log")
        os.makedirs(os.path.join(self.folder, "net.d"))
        with open(os.path.join(self.folder, "net.d", "10-test.conflist"), "w") as f:
            json.dump({"cniVersion": "1.0.0", "name": "test", "plugins": [
                {"type": "bridge", "bridge": "br-ours", "isGateway": True,
                 "ipam": {"type": "host-local", "dataDir": f"{self.folder}/ipam", "ranges": [[{"subnet": "10.213.0.0/16"}]]}}]}, f)

    def __enter__(self):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([C8S, "runtime", "--root", f"{self.folder}/root", "--state", f"{self.folder}/state", "--cni-conf-dir",
                                             f"{self.folder}/net.d", "--cgroup-parent", self.cgroup, "--pod-program", peers.static_pod()],
                                            stdout=log, stderr=log)
        wait_until(lambda: " ready " in open(self.log).read() or self.process.poll() is not None, what="the runtime")
        return self

    def __exit__(self, *_):
        subprocess.run([C8S, "crictl", "-r", self.endpoint, "rmp", "-f", "-a"], capture_output=True, timeout=60, env=ENV)
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        tap.remove_cgroups(self.cgroup)


class Terminal:
    """A program in a terminal of its own."""

    def __init__(self, *command):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(command[0], command, ENV)
        self.got = b""

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def send(self, data):
        os.write(self.fd, data)

    def expect(self, text, seconds=TIMEOUT):
        """Reads until it comes: whether it does."""
        deadline = time.monotonic() + seconds
        while text not in self.got and time.monotonic() < deadline:
            if select.select([self.fd], [], [], 0.2)[0]:
                try:
                    self.got += os.read(self.fd, 65536)
                except OSError:
                    break
        return text in self.got

    def wait(self):
        self.expect(b"\0never\0")
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class Client:
    """crictl, towards one of them."""

    def __init__(self, service, image):
        self.s, self.image = service, image
        self.folder = os.path.join(FOLDER, service.name)
        os.makedirs(self.folder, exist_ok=True)

    def command(self, *args):
        return [C8S, "crictl", "-r", self.s.endpoint, *args]

    def run(self, *args, code=None, text=True, **more):
        """Must succeed; with code, must end with it; code=-1: may end in any way."""
        r = subprocess.run(self.command(*args), capture_output=True, text=text, timeout=TIMEOUT, env=ENV, **more)
        if code != -1 and r.returncode != (code or 0):
            raise Failed(f"{args}: exit code {r.returncode}: {r.stdout[-2000:]}{r.stderr[-2000:]}")
        return r

    def out(self, *args, **more):
        return self.run(*args, **more).stdout.strip()

    def json(self, *args):
        return json.loads(self.out(*args))

    def fails(self, *args, **more):
        """What it says when it fails, as it must."""
        r = self.run(*args, code=-1, **more)
        if r.returncode != 1 or not r.stderr.startswith("c8s crictl: "):
            raise Failed(f"{args}: exit code {r.returncode}: {r.stdout}{r.stderr}")
        return r.stderr

    def file(self, name, value):
        path = os.path.join(self.folder, name)
        with open(path, "w") as f:
            json.dump(value, f)
        return path

    def pod_file(self, name, **more):
        return self.file(name + ".pod.json", {
            "metadata": {"name": name, "uid": name, "namespace": "default"}, "log_directory": os.path.join(self.folder, "logs", name),
            "linux": {"cgroup_parent": self.s.cgroup}, **more})

    def container_file(self, name, command, **more):
        return self.file(name + ".json", {"metadata": {"name": name}, "image": {"image": self.image}, "command": command,
                                          "log_path": f"{name}.log", "linux": {}, **more})

    def pod(self, name, **more):
        return self.out("runp", self.pod_file(name, **more))

    def container(self, pod, pod_name, name, *command, **more):
        c = self.out("create", pod, self.container_file(name, command, **more), os.path.join(self.folder, pod_name + ".pod.json"))
        self.run("start", c)
        return c

    def state(self, container):
        return self.json("inspect", "-q", container)["status"].get("state", "CONTAINER_CREATED")[10:]


# ---- cases: each is run for both ----

def test_images(t, c):
    t.check("version", f"RuntimeName:  {c.s.name}\n" in c.out("version") + "\n", c.out("version"))
    t.check("nothing there yet", c.image not in c.out("images", "-o", "json"))
    t.check("pull", "Image is up to date for" in c.out("pull", c.image))
    found = [i for i in c.json("images", "-o", "json")["images"] if c.image in i.get("repoTags", [])]
    t.check("images", len(found) == 1, found)
    image_id = found[0]["id"]
    repository, tag = c.image.rsplit(":", 1)
    row = next((line for line in c.out("images").splitlines() if line.startswith(repository)), "")
    t.check("as a table", row.split()[1:3] == [tag, image_id.removeprefix("sha256:")[:13]], row)
    t.check("by name, ids only", image_id in c.out("images", "-q", c.image).split())  # containerd 1.6 lists all
    t.check("filters", c.out("images", "-q", "-f", f"reference={repository}") == image_id and
            image_id not in c.out("images", "-q", "-f", "dangling=true"))
    t.check("inspecti", c.json("inspecti", c.image)["status"]["id"] == image_id)
    t.check("one that is not there", "no such image" in c.fails("inspecti", "127.0.0.1/none:1"))
    t.check("a pull that fails", "pulling image" in c.fails("pull", c.image + "-none"))
    t.check("imagefsinfo", c.json("imagefsinfo")["status"]["imageFilesystems"][0]["fsId"]["mountpoint"].startswith("/"))
    t.check("rmi", c.out("rmi", c.image) == f"Deleted: {c.image}" and c.image not in c.out("images", "-o", "json"))
    c.run("pull", c.image)


def test_runtime(t, c):
    info = c.json("info")
    ready = {x["type"]: x.get("status", False) for x in info["status"]["conditions"]}
    t.check("info", ready == {"RuntimeReady": True, "NetworkReady": True}, info)
    t.check("yaml", "conditions:" in c.out("info", "-q", "-o", "yaml"))
    t.check("an output that there is not", "unsupported output format" in c.fails("pods", "-o", "go-template"))
    if c.s.name == "c8s":
        t.check("runtime-config", c.out("runtime-config") == "cgroup driver:   CGROUPFS")
        t.check("metricdescs", c.json("metricdescs")["descriptors"])
    else:
        t.check("runtime-config", "RuntimeConfig" in c.fails("runtime-config"))
        t.check("metricdescs", "ListMetricDescriptors" in c.fails("metricdescs"))


def test_life(t, c):
    first = c.pod("first", labels={"app": "one"})
    second = c.pod("second", labels={"app": "two"})
    t.check("pods, newest first", c.out("pods", "-q").split() == [second, first])
    t.check("by label, name, state, number", c.out("pods", "-q", "--label", "app=one") == first and c.out("pods", "-q", "--name", "^sec") == second
            and c.out("pods", "-q", "-s", "notready") == "" and c.out("pods", "-q", "-l") == second)
    row = c.out("pods").splitlines()[1].split()
    t.check("as a table", row[0] == second[:13] and row[-5:-1] == ["Ready", "second", "default", "0"], row)
    status = c.json("inspectp", first)["status"]
    t.check("inspectp", status["id"] == first and status["network"]["ip"].startswith("10."), status)
    t.check("two at a time", [x["status"]["id"] for x in c.json("inspectp", "-q", first, second)] == [first, second])

    a = c.out("create", first, c.container_file("a", ["sleep", "1000"]), os.path.join(c.folder, "first.pod.json"))
    t.check("created", c.state(a) == "CREATED" and c.out("ps", "-q") == "" and c.out("ps", "-aq") == a)
    t.check("start", c.out("start", a) == a and c.state(a) == "RUNNING")
    b = c.container(second, "second", "b", "sleep", "1000")
    t.check("ps", c.out("ps", "-q").split() == [b, a] and c.out("ps", "-q", "--name", "^a$") == a and c.out("ps", "-q", "-p", second) == b
            and c.out("ps", "-ql") == b and c.out("ps", "-q", "--image", c.image).split() == [b, a])
    t.check("as a table", f"{a[:13]}" in c.out("ps") and "Running" in c.out("ps") and "first" in c.out("ps"), c.out("ps"))
    t.check("inspect by name", c.json("inspect", "--name", "b")["status"]["id"] == b)
    t.check("rm of what runs", "is running, please stop it first" in c.fails("rm", a))
    c.run("update", "--cpu-share", "512", "--memory", str(64 << 20), a)
    t.check("update", [int(open(os.path.join(folder, "memory.limit_in_bytes")).read()) for folder, _, files in
                          os.walk(f"/sys/fs/cgroup/memory{c.s.cgroup}") if a in folder and "memory.limit_in_bytes" in files] == [64 << 20])
    said = c.fails("checkpoint", "-e", os.path.join(c.folder, "x.tar"), a)
    t.check("checkpoint", "CheckpointContainer not implemented" in said or "CheckpointContainer is not supported" in said, said)
    t.check("stop", c.out("stop", "-t", "0", a) == a and c.state(a) == "EXITED")
    log = c.json("inspect", "-q", a)["status"]["logPath"]
    for name in (log + ".1", log + "x"):
        open(name, "w").close()
    t.check("rm, and its log", os.path.exists(log) and c.out("rm", a) == a and os.listdir(os.path.dirname(log)) == [os.path.basename(log) + "x"]
            and c.out("ps", "-aq") == b)
    t.check("rmp of what runs", "is running, please stop it first" in c.fails("rmp", first))
    c.run("stopp", first)
    t.check("stopp", c.out("pods", "-q", "--state", "notready") == first)
    c.run("rmp", first)
    ran = c.out("run", c.container_file("r", ["sh", "-c", "echo run"]), c.pod_file("third"))
    wait_until(lambda: c.state(ran) == "EXITED", what="its end")
    t.check("run", c.out("logs", ran) == "run")
    c.run("rmp", "-f", "-a")
    t.check("all are gone", c.out("pods", "-q") == "" and c.out("ps", "-aq") == "")
    t.check("what is not there", "not found" in c.fails("inspect", "0123456789") and "not found" in c.fails("logs", "0123456789"))


def test_logs(t, c):
    pod = c.pod("logs")
    x = c.container(pod, "logs", "x", "sh", "-c", "echo one; sleep 1.2; echo two; sleep 0.2; echo wrong >&2; sleep 0.2; echo three",
                    metadata={"name": "x", "attempt": 1}, log_path="x/1.log")
    follow = subprocess.run(c.command("logs", "-f", x), capture_output=True, text=True, timeout=TIMEOUT, env=ENV)
    t.check("followed to the end", (follow.stdout, follow.stderr) == ("one\ntwo\nthree\n", "wrong\n"), follow)
    lines = c.out("logs", "-t", x).splitlines()
    t.check("with times", [line.split(" ", 1)[1] for line in lines] == ["one", "two", "three"] and lines[0].startswith("20"), lines)
    t.check("tail", c.out("logs", "--tail", "1", x) == "three" and c.out("logs", "--tail", "0", x) == "")
    t.check("since a time", c.out("logs", "--since", lines[1].split()[0], x) == "two\nthree")
    t.check("since a while", c.out("logs", "--since", "1h", x) == "one\ntwo\nthree")
    t.check("one stream", c.run("logs", "-s", "stderr", x).stderr == "wrong\n" and c.run("logs", "--stream=stdout", x).stderr == "")
    t.check("no more than", c.out("logs", "--limit-bytes", "5", x) == "one\nt")
    t.check("what makes no sense", "is neither a time" in c.fails("logs", "--since", "yesterday", x) and "must be" in c.fails("logs", "-s", "x", x))
    with open(os.path.join(c.folder, "logs", "logs", "x", "0.log"), "w") as f:
        f.write("2026-01-02T03:04:05.000000000Z stdout F before\n")
    t.check("of the run before", c.out("logs", "-p", x) == "before")
    y = c.container(pod, "logs", "y", "sh", "-c", "echo a; sleep 1000", log_path="y/0.log")
    t.check("there was none", "not found" in c.fails("logs", "-p", y))
    path = c.json("inspect", y)["status"]["logPath"]
    wait_until(lambda: os.path.getsize(path) > 0, what="the log")
    os.rename(path, path + ".1")
    c.run("logs", "-r", y)
    t.check("reopened", os.path.exists(path))
    c.run("rmp", "-f", pod)


def test_exec(t, c):
    pod = c.pod("exec")
    x = c.container(pod, "exec", "x", "sleep", "1000", labels={"which": "x"})
    y = c.container(pod, "exec", "y", "sleep", "1000", labels={"which": "y"})
    script = ["sh", "-c", "echo out; echo err >&2; exit 7"]
    r = c.run("exec", "-s", x, *script, code=7)
    t.check("by one call", (r.stdout, r.stderr) == ("out\n", "err\n"), r)
    begin = time.monotonic()
    t.check("which has a limit", "timeout" in c.fails("exec", "-s", "--timeout", "1", x, "sleep", "100") and time.monotonic() - begin < 8)
    data = random.Random(1).randbytes(1 << 20)
    for transport in TRANSPORTS:
        w = ["-r", transport]
        r = c.run("exec", *w, x, *script, code=7)
        t.check(f"{transport}: output, errors, exit code", (r.stdout, r.stderr) == ("out\n", "err\n"), r)
        # By WebSocket containerd 1.6 always makes a pipe for input and ends it at once: when its shim, which opens that for reading on
        # the side, comes after all who write have closed it, it waits for ever, whoever the client is (by SPDY too, with -i and no input).
        if (c.s.name, transport) != ("containerd", "websocket"):
            t.check(f"{transport}: no input", c.out("exec", *w, x, "cat") == "")
        r = c.run("exec", *w, x, "sh", "-c", "head -c 3000000 /dev/zero", text=False)
        t.check(f"{transport}: much output", len(r.stdout) == 3000000)
        r = c.run("exec", "-i", *w, x, "head", "-c", str(len(data)), input=data, text=False)
        t.check(f"{transport}: a megabyte there and back", r.stdout == data, len(r.stdout))
        t.check(f"{transport}: a program that is not there", "/nothing" in c.fails("exec", *w, x, "/nothing"))
        p = subprocess.Popen(c.command("exec", *w, x, "cat", "/dev/zero"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENV)
        p.stdout.read(100000)
        p.stdout.close()
        t.check(f"{transport}: output that nobody reads", (p.wait(TIMEOUT), p.stderr.read()) == (128 + signal.SIGPIPE, b""))
        p.stderr.close()
    r = c.run("exec", "-i", x, "cat", input="ends\n")
    t.check("the end of input is seen", r.stdout == "ends\n")
    r = c.run("exec", "-i", x, "true", stdin=subprocess.PIPE)
    t.check("input that nobody reads", r.returncode == 0)
    r = c.run("exec", "--label", "which=y", "hostname", "-i", code=-1)
    t.check("by label", r.stdout.startswith(y + ":\n"), r)
    r = c.out("exec", "-q", "-x", "--name", "^[xy]$", "echo", "-n", "both")
    t.check("in several at a time", r == "bothboth", r)
    t.check("errors that do not matter", c.run("exec", "-e", x, "false").returncode == 0)
    t.check("no container", "No containers found" in c.fails("exec", "--name", "none", "true"))
    t.check("a terminal needs one", "input is not a terminal" in c.fails("exec", "-it", x, "sh", stdin=subprocess.DEVNULL)
            and "tty=true must be specified with interactive=true" in c.fails("exec", "-t", x, "sh"))
    t.check("a transport that there is not", "unknown transport" in c.fails("exec", "-r", "carrier-pigeon", x, "true"))
    c.run("rmp", "-f", pod)


def test_terminal(t, c):
    pod = c.pod("term")
    x = c.container(pod, "term", "x", "sleep", "1000")
    for transport in TRANSPORTS:
        term = Terminal(*c.command("exec", "-it", "-r", transport, x, "sh"))
        term.resize(33, 111)
        term.send(b"busybox stty size; echo rea''dy\n")
        ready = term.expect(b"ready\r\n")
        # the size may come a moment after the shell
        sized = ready and (b"33 111" in term.got or (term.send(b"sleep 0.3; busybox stty size\n") or term.expect(b"33 111")))
        t.check(f"{transport}: a terminal, of our size", sized, term.got)
        raw = not termios.tcgetattr(term.fd)[3] & (termios.ECHO | termios.ICANON | termios.ISIG)
        t.check(f"{transport}: ours is raw meanwhile", raw)
        term.resize(44, 77)
        term.send(b"while test \"$(busybox stty size)\" != '44 77'; do sleep 0.05; done; echo re''sized\n")
        t.check(f"{transport}: it follows ours", term.expect(b"resized\r\n"), term.got)
        term.send(b"sleep 500\n")
        time.sleep(0.1)
        term.send(b"\x03")
        term.send(b"echo inter''rupted\n")
        t.check(f"{transport}: Ctrl-C is for the process", term.expect(b"interrupted\r\n"), term.got)
        term.send(b"exit 5\n")
        code, after = term.wait(), termios.tcgetattr(term.fd)[3]
        t.check(f"{transport}: its exit code, and the terminal as it was", code == 5 and after & termios.ECHO and after & termios.ICANON, (code, after))
        os.close(term.fd)
    term = Terminal(*c.command("exec", "-it", x, "sh"))
    term.send(b"echo rea''dy\n")
    term.expect(b"ready\r\n")
    os.kill(term.pid, signal.SIGTERM)
    code, after = term.wait(), termios.tcgetattr(term.fd)[3]
    t.check("killed, it leaves the terminal as it was", code == 128 + signal.SIGTERM and after & termios.ECHO, (code, after))
    os.close(term.fd)
    c.run("rmp", "-f", pod)


def talk(p, word):
    """Says it until both outputs have answered: containerd takes input a moment before it passes on output. What was heard."""
    heard = set()
    for _ in range(40):
        p.stdin.write(word.encode() + b"\n")
        p.stdin.flush()
        for f in select.select([p.stdout, p.stderr], [], [], 0.3)[0]:
            heard.add(f.readline())
        if heard >= {f"got {word}\n".encode(), b"err\n"}:
            break
    return heard


def test_attach(t, c):
    pod = c.pod("attach")
    x = c.container(pod, "attach", "x", "sh", "-c", "while read line; do echo got $line; echo err >&2; test $line = end && exit 0; done", stdin=True)
    for last, transport in enumerate(TRANSPORTS):
        p = subprocess.Popen(c.command("attach", "-i", "-r", transport, x), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env=ENV, bufsize=0)
        got = talk(p, transport)
        t.check(f"{transport}: input and output of a container", got >= {f"got {transport}\n".encode(), b"err\n"}, got)
        if not last:
            p.kill()
        else:
            p.stdin.write(b"end\n")
            out = p.stdout.read()
            t.check("its end is ours", p.wait(TIMEOUT) == 0 and out.endswith(b"got end\n"), out)
        p.communicate()
        if not last:
            t.check("it runs on", c.state(x) == "RUNNING")
    y = c.container(pod, "attach", "y", "sh", stdin=True, tty=True)
    term = Terminal(*c.command("attach", "-it", y))
    t.check("a terminal", any(term.send(b"echo at''tached\n") or term.expect(b"attached\r\n", 0.5) for _ in range(40)), term.got)
    term.send(b"\x10")
    time.sleep(0.2)
    term.send(b"\x11")
    t.check("left by Ctrl-P Ctrl-Q, it runs on", term.wait() == 0 and c.state(y) == "RUNNING")
    os.close(term.fd)
    t.check("what does not run", c.fails("attach", x))
    c.run("rmp", "-f", pod)


def forward(c, pod, transport, ports):
    """The process, and local ports by remote ports."""
    p = subprocess.Popen(c.command("port-forward", "-r", transport, pod, *ports), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENV)
    local = {}
    while len(local) < len(ports):
        line = p.stdout.readline()
        if not line:
            raise Failed(p.stderr.read())
        words = line.split()  # Forwarding from 127.0.0.1:8080 -> 80
        if words[0] == "Forwarding" and words[2].startswith("127."):
            local[int(words[4])] = int(words[2].rsplit(":", 1)[1])
    return p, local


def test_port_forward(t, c):
    pod = c.pod("forward")
    c.container(pod, "forward", "x", "sh", "-c", "mkdir /www; head -c 1000000 /dev/zero >/www/big; echo served >/www/index.html; httpd -f -p 8080 -h /www")
    for transport in TRANSPORTS:
        if (c.s.name, transport) == ("containerd", "websocket"):
            t.check("websocket: containerd has no tunnel", "the streaming server" in c.fails("port-forward", "-r", transport, pod, ":8080"))
            continue
        p, local = forward(c, pod, transport, [":8080", ":81"])

        def get(path, port=8080):
            try:
                return urllib.request.urlopen(f"http://127.0.0.1:{local[port]}{path}", timeout=5).read()
            except OSError:  # it may not listen yet
                return b""
        try:
            # containerd leaves what is sent to a port where nobody listens where every fifth stream of the session has to pass
            t.check(f"{transport}: something for a port where nobody listens", get("/index.html", 81) == b"")
            wait_until(lambda: get("/index.html") == b"served\n", what="an answer")
            t.check(f"{transport}: a connection", True)
            t.check(f"{transport}: much", len(get("/big")) == 1000000)
            got, many = [], 8
            threads = [threading.Thread(target=lambda: got.append(get("/index.html"))) for _ in range(many)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            t.check(f"{transport}: several at a time", got == [b"served\n"] * many, got)
            with socket.create_connection(("127.0.0.1", local[81]), 10) as s:
                t.check(f"{transport}: a port where nobody listens", s.recv(1) == b"")
            said, lines = f"an error occurred forwarding {local[81]} -> 81: ", []
            threading.Thread(target=lambda: lines.extend(iter(p.stderr.readline, "")), daemon=True).start()
            wait_until(lambda: any(line.startswith(said) for line in lines), what="what is said of it")
            t.check(f"{transport}: and what is said of it", True)
        finally:
            p.kill()
            p.wait()
    t.check("ports that are none", "is not [LOCAL:]PORT" in c.fails("port-forward", pod, "http"))
    p, local = forward(c, pod, "spdy", [":8080"])
    t.check("a port that is taken", "unable to listen" in c.fails("port-forward", pod, f"{local[8080]}:8080"))
    p.kill()
    p.communicate()
    c.run("rmp", "-f", pod)


def test_stats(t, c):
    pod = c.pod("stats")
    x = c.container(pod, "stats", "busy", "sh", "-c", "while :; do :; done")
    wait_until(lambda: c.json("stats", "-o", "json", x)["stats"][0].get("memory", {}).get("workingSetBytes", {}).get("value", 0) > 0, what="numbers")
    row = c.out("stats", x).splitlines()[1].split()
    t.check("stats", row[:2] == [x[:13], "busy"] and 0.5 < float(row[2]) < 150, row)
    row = c.out("statsp", "--id", pod).splitlines()[1].split()
    t.check("statsp", row[:2] == ["stats", pod[:13]] and 0.5 < float(row[2]) < 150, row)
    if c.s.name == "c8s":
        t.check("metricsp", [m["podSandboxId"] for m in c.json("metricsp")["podMetrics"]] == [pod])
    else:
        t.check("metricsp", "ListPodSandboxMetrics" in c.fails("metricsp"))
    c.run("rmp", "-f", pod)


def test_events(t, c):
    if c.s.name != "c8s":
        t.check("events", "not implemented" in c.fails("events"))
        return
    p = subprocess.Popen(c.command("events"), stdout=subprocess.PIPE, text=True, env=ENV)
    pods = []
    while len(pods) < 20 and not select.select([p.stdout], [], [], 0.5)[0]:  # those from before it listened are not told
        pods.append(c.pod(f"events{len(pods)}"))
    line = json.loads(p.stdout.readline()) if len(pods) < 20 else {}
    p.kill()
    p.communicate()
    t.check("events", line.get("containerId") in pods, line)
    c.run("rmp", "-f", *pods)


CASES = [test_images, test_runtime, test_life, test_logs, test_exec, test_terminal, test_attach, test_port_forward, test_stats, test_events]


# ---- without a runtime, and with ones that mean no good ----

def crictl(*args, seconds=TIMEOUT, env=None):
    return subprocess.run([C8S, "crictl", *args], capture_output=True, text=True, timeout=seconds, env={**ENV, **(env or {})})


def test_usage(t):
    for args, says in ((("nothing",), "there is no 'nothing'"), ((), "say what to do"), (("pods", "x"), "pods needs no arguments"),
                       (("ps", "--nothing"), "not known"), (("logs",), "logs needs CONTAINER"), (("stop", "-t", "x", "y"), "is not a number"),
                       (("ps", "--all=maybe"), "is true or false"), (("-t", "soon", "ps"), "is not a duration")):
        r = crictl(*args)
        t.check(f"crictl {' '.join(args)}", r.returncode == 2 and says in r.stderr, r)
    r = crictl("-r", "unix:///nothing/here", "version")
    t.check("no runtime there", r.returncode == 1 and "/nothing/here" in r.stderr and "no such file" in r.stderr, r)
    manual = crictl("--help").stdout
    t.check("the manual", all(f"    {word}" in manual for word in ("attach", "port-forward", "metricsp", "runtime-config")) and "--limit-bytes" in manual)


def test_settings(t):
    t.check("set", crictl("config", "--set", "runtime-endpoint=unix:///one,timeout=7").returncode == 0 and crictl("config", "debug", "true").returncode == 0)
    t.check("get", crictl("config", "--get", "timeout").stdout == "7\n" and crictl("config", "--get", "debug").stdout == "true\n")
    rows = [line.split() for line in crictl("config", "--list").stdout.splitlines()]
    t.check("list", ["runtime-endpoint", "unix:///one"] in rows and ["pull-image-on-create", "false"] in rows, rows)
    r = crictl("config", "--set", "nothing=1")
    t.check("one that there is not", r.returncode == 1 and "no configuration option named nothing" in r.stderr, r)
    t.check("used", "/one" in crictl("version").stderr)
    t.check("the environment goes before it", "/two" in crictl("version", env={"CONTAINER_RUNTIME_ENDPOINT": "unix:///two"}).stderr)
    t.check("an option before both", "/three" in crictl("-r", "unix:///three", "version", env={"CONTAINER_RUNTIME_ENDPOINT": "unix:///two"}).stderr)
    t.check("images elsewhere", "/four" in crictl("-i", "unix:///four", "images").stderr)
    with open(ENV["CRI_CONFIG_FILE"], "w") as f:
        f.write("timeout: [")
    r = crictl("version")
    t.check("a broken file", r.returncode == 1 and "load config file" in r.stderr, r)
    os.unlink(ENV["CRI_CONFIG_FILE"])
    r = crictl("-c", ENV["CRI_CONFIG_FILE"], "version")
    t.check("one that was named must be there", r.returncode == 1 and "No such file" in r.stderr, r)


class Fake:
    """Somebody who listens: each connection is given to a function."""

    def __init__(self, serve, unix=True):
        self.socket = socket.socket(socket.AF_UNIX if unix else socket.AF_INET)
        self.path = os.path.join(FOLDER, f"fake{random.randrange(1 << 32):x}")
        self.socket.bind(self.path if unix else ("127.0.0.1", 0))
        self.socket.listen(8)
        self.serve = serve
        self.url = f"unix://{self.path}" if unix else f"http://127.0.0.1:{self.socket.getsockname()[1]}/x"
        threading.Thread(target=self.loop, daemon=True).start()

    def loop(self):
        while True:
            try:
                s, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.one, args=(s,), daemon=True).start()

    def one(self, s):
        try:
            s.settimeout(TIMEOUT)
            self.serve(s)
        except OSError:
            pass
        finally:
            s.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


def literal(name, value):
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def grpc(answer, announced=None):
    """A gRPC server with one answer to all."""
    def serve(s):
        f = s.makefile("rb")
        f.read(24)
        s.sendall(frame(4, 0, 0, b""))
        while True:
            head = f.read(9)
            if len(head) < 9:
                return
            f.read(int.from_bytes(head[:3], "big"))
            kind, flags, stream = head[3], head[4], struct.unpack(">I", head[5:])[0]
            if kind == 4 and not flags & 1:
                s.sendall(frame(4, 1, 0, b""))
            if kind in (0, 1) and flags & 1:
                s.sendall(frame(1, 4, stream, b"\x88" + literal(b"content-type", b"application/grpc")) +
                          frame(0, 0, stream, b"\0" + struct.pack(">I", len(answer) if announced is None else announced) + answer) +
                          frame(1, 5, stream, literal(b"grpc-status", b"0")))
    return serve


def text_field(number, value):
    n = len(value)
    return bytes([number << 3 | 2]) + (bytes([n]) if n < 128 else bytes([n & 127 | 128, n >> 7])) + value


def http(answer):
    def serve(s):
        f = s.makefile("rb")
        while f.readline().strip():
            pass
        s.sendall(answer)
        s.recv(1)
    return serve


def websocket(*messages):
    """A WebSocket that says these, and closes. A number: a message that claims to be as long."""
    def serve(s):
        f, key = s.makefile("rb"), b""
        while (line := f.readline().strip()):
            if line.lower().startswith(b"sec-websocket-key:"):
                key = line.split()[1]
        accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
        s.sendall(b"HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\nSec-WebSocket-Accept: "
                  + accept + b"\r\n\r\n")
        for m in messages:
            n = m if isinstance(m, int) else len(m)
            size = bytes([n]) if n < 126 else b"\x7e" + struct.pack(">H", n) if n < 65536 else b"\x7f" + struct.pack(">Q", n)
            s.sendall(b"\x82" + size + (b"\1" * 4096 if isinstance(m, int) else m))
        s.sendall(b"\x88\x00")
        s.recv(1)
    return serve


def test_hostile(t):
    version = text_field(2, b"\x1b[31mred\x07") + text_field(3, b"1")
    for what, serve, says in (
            ("one that closes", lambda s: None, "c8s crictl: "),
            ("noise", lambda s: s.sendall(random.Random(2).randbytes(100000)), "c8s crictl: "),
            ("another protocol", lambda s: s.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n") or s.recv(1), "c8s crictl: "),
            ("silence", lambda s: time.sleep(5), "c8s crictl: "),
            ("an answer that is no message", grpc(b"\xff" * 50), "the runtime's answer to /runtime.v1.RuntimeService/Version"),
            ("one that would be too large", grpc(b"x", announced=1 << 31), "c8s crictl: ")):
        with Fake(serve) as fake:
            begin = time.monotonic()
            r = crictl("-r", fake.url, "-t", "2s", "version", seconds=15)
            t.check(f"{what}: {r.stderr.strip()[:90]}", r.returncode == 1 and says in r.stderr and time.monotonic() - begin < 10, r)
    with Fake(grpc(version)) as fake:
        r = crictl("-r", fake.url, "version")
        t.check("control characters stay away from the terminal", "RuntimeName:  ?[31mred?" in r.stdout and "\x1b" not in r.stdout, r)


def test_hostile_streams(t):
    upgrade = b"HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n"
    noise = random.Random(3).randbytes(100000)
    cases = [
        ("no URL", "spdy", b"", "gave no URL"),
        ("a URL for something else", "spdy", b"ftp://127.0.0.1/x", "is not for HTTP"),
        ("no URL at all", "spdy", b"\x01\x02", "the runtime's URL"),
        ("nobody there", "spdy", b"http://127.0.0.1:1/x", "connection refused"),
        ("it refuses", "spdy", http(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno"), "answered with 403"),
        ("it refuses", "websocket", http(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno"), "answered with 403"),
        ("no HTTP", "spdy", http(noise), "c8s crictl: "),
        ("an endless head", "spdy", http(b"HTTP/1.1 101 x\r\nA: " + b"a" * (1 << 20)), "c8s crictl: "),
        ("another protocol", "spdy", http(upgrade.replace(b"v4.", b"v9.")), "does not speak v4.channel.k8s.io"),
        ("noise after the upgrade", "spdy", http(upgrade + noise), "c8s crictl: "),
        ("it closes after the upgrade", "spdy", http(upgrade + b""), "c8s crictl: "),
        ("no status", "websocket", websocket(b"\1out"), "without a word about the process"),
        ("a status that is none", "websocket", websocket(b"\3{nonsense"), "is not JSON"),
        ("a status without end", "websocket", websocket(*[b"\3" + b"x" * 1000000] * 3), "larger than"),
        ("a message without end", "websocket", websocket(1 << 40), "c8s crictl: "),
        ("an exit code that is none", "websocket", websocket(
            b'\3{"status":"Failure","reason":"NonZeroExitCode","message":"m","details":{"causes":[{"reason":"ExitCode","message":"99999"}]}}'), ": m"),
        ("control characters in a message", "websocket", websocket(b'\3{"status":"Failure","message":"a\\u001b[31m"}'), ": a?[31m"),
    ]
    for what, transport, stream, says in cases:
        with Fake(stream, unix=False) if callable(stream) else Fake(lambda s: None) as server:
            url = server.url.encode() if callable(stream) else stream
            with Fake(grpc(text_field(1, url))) as runtime:
                r = crictl("-r", runtime.url, "exec", "-r", transport, "x", "true", seconds=15)
                t.check(f"{transport}: {what}: {r.stderr.strip()[-80:]}", r.returncode == 1 and says in r.stderr, r)


def test_tls(t):
    pem = os.path.join(FOLDER, "tls.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", pem, "-out", pem + ".crt",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "2"], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pem + ".crt", pem)
    answer = http(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")
    trust = ("--tls-ca", pem + ".crt", "--tls-cert", pem + ".crt", "--tls-key", pem)
    with Fake(lambda s: answer(tls.wrap_socket(s, server_side=True)), unix=False) as server:
        with Fake(grpc(text_field(1, server.url.replace("http:", "https:").encode()))) as runtime:
            for what, flags, says in (("anybody is trusted", (), "answered with 403"), ("one that is known", trust, "answered with 403"),
                                      ("another name", (*trust, "--tls-sni", "other"), "certificate"), ("no key", trust[:4], "--tls-key")):
                r = crictl("-r", runtime.url, "exec", *flags, "x", "true")
                t.check(f"TLS: {what}", r.returncode == 1 and says in r.stderr, r)


def main():
    if os.geteuid() != 0:
        print("1..0 # SKIP needs root")
        return
    try:
        why, registry = containerd.missing(), images.Registry.available()
        containerd.own_network()
        tests = [test_usage, test_settings, test_hostile, test_hostile_streams, test_tls]
        if not registry:
            tests.append(lambda t: t.skip("pods", "Debian's docker-registry cannot be had"))
            tap.run(tests)
        with images.Registry(os.path.join(FOLDER, "registry")) as r:
            image = r.put(images.Image(), "test/busybox", "1")

            def cases_of(make, name):
                def run(t):
                    with make() as service:
                        service.name = name
                        c = Client(service, image)
                        for case in CASES:
                            begin = time.monotonic()
                            try:
                                case(Named(t, f"{name}: "), c)
                            except Exception as e:  # noqa: BLE001 - the next case has its own pods
                                t.check(f"{name}: {case.__name__}", False, f"{type(e).__name__}: {e}")
                                c.run("rmp", "-f", "-a", code=-1)
                            print(f"# {name}: {case.__name__}: {time.monotonic() - begin:.1f} s")
                return run
            tests.append(cases_of(Ours, "c8s"))
            if why:
                tests.append(lambda t: t.skip("containerd", why))
            else:
                tests.append(cases_of(lambda: containerd.Containerd(mirrors={r.host: f"http://{r.host}"}), "containerd"))
            tap.run(tests)
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)


class Named:
    """A Tap whose checks say for whom they are."""

    def __init__(self, t, name):
        self.t, self.name = t, name

    def check(self, name, ok, detail=""):
        self.t.check(self.name + name, ok, detail)


main()
