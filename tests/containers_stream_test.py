#!/usr/bin/env python3
"""exec, attach and port-forward through the URLs that CRI gives: WebSocket and SPDY clients, real containers and pods. Needs root."""
import base64
import fcntl
import json
import os
import pty
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import containers_layer_test as layers  # noqa: E402
import tap  # noqa: E402
from tap import wait_for  # noqa: E402

TIMEOUT = 20


# ---- gRPC, as little of it as one call needs ----

def field(number, value):
    if isinstance(value, bool):
        value = int(value)
    if isinstance(value, int):
        return bytes([number << 3]) + varint(value)
    value = value.encode()
    return bytes([number << 3 | 2]) + varint(len(value)) + value


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def literal(name, value):
    return b"\x00" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def call(path, method, message):
    """One unary call of RuntimeService; the bytes of the answer."""
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(TIMEOUT)
    s.connect(path)
    headers = b"".join(literal(k, v) for k, v in ((":method", "POST"), (":scheme", "http"), (":authority", "x"),
                                                  (":path", "/runtime.v1.RuntimeService/" + method), ("te", "trailers"),
                                                  ("content-type", "application/grpc")))
    s.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"") + frame(1, 4, 1, headers) +
              frame(0, 1, 1, b"\0" + struct.pack(">I", len(message)) + message))
    f, data, end = s.makefile("rb"), b"", False
    while not end:
        head = f.read(9)
        payload = f.read(int.from_bytes(head[:3], "big"))
        if head[3] == 0:
            data += payload
        end = head[3] in (0, 1) and head[4] & 1
    s.close()
    return data[5:]


def url(r, method, message):
    answer = call(r.socket, method, message)
    if not answer:
        raise RuntimeError(f"{method}: no URL\n{r.said()}")
    return answer[2:].decode()


def exec_url(r, container, *command, tty=False, stdin=True):
    return url(r, "Exec", field(1, container) + b"".join(field(2, c) for c in command) + field(3, tty) + field(4, stdin) +
               field(5, True) + field(6, not tty))


# ---- WebSocket ----

class WebSocket:
    def __init__(self, where, protocol):
        u = urllib.parse.urlparse(where)
        self.sock = socket.create_connection((u.hostname, u.port), TIMEOUT)
        self.sock.sendall((f"GET {u.path} HTTP/1.1\r\nHost: {u.netloc}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                           f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}\r\n"
                           f"Sec-WebSocket-Protocol: {protocol}\r\n\r\n").encode())
        self.file = self.sock.makefile("rb")
        self.status = int(self.file.readline().split()[1])
        while self.file.readline().strip():
            pass

    def send(self, channel, data):
        payload = bytes([channel]) + data
        size = bytes([128 | len(payload)]) if len(payload) < 126 else bytes([254]) + struct.pack(">H", len(payload))
        self.sock.sendall(b"\x82" + size + bytes(4) + payload)

    def read(self):
        """(channel, data); None at the end."""
        while True:
            head = self.file.read(2)
            if len(head) < 2 or head[0] & 15 == 8:
                return None
            n = head[1] & 127
            if n > 125:
                n = int.from_bytes(self.file.read(2 if n == 126 else 8), "big")
            payload = self.file.read(n)
            if payload:
                return payload[0], payload[1:]

    def all(self):
        got = {}
        while (m := self.read()):
            got[m[0]] = got.get(m[0], b"") + m[1]
        return got

    def until(self, text, channel=1):
        got = b""
        while text not in got and (m := self.read()):
            got += m[1] if m[0] == channel else b""
        return got

    def close(self):
        self.file.close()
        self.sock.close()


# ---- tests ----

def test_exec(t, r):
    c = r.run("test/box:1", layers.SLEEP)
    got = WebSocket(exec_url(r, c, "/bin/sh", "-c", "echo out; echo err >&2; exit 7"), "v5.channel.k8s.io").all()
    status = json.loads(got.get(3, b"{}"))
    t.check("output, errors and the exit code come back", got.get(1) == b"out\n" and got.get(2) == b"err\n" and
            status.get("details", {}).get("causes") == [{"reason": "ExitCode", "message": "7"}], got)
    w = WebSocket(exec_url(r, c, "/bin/busybox", "wc", "-c"), "v5.channel.k8s.io")
    for _ in range(100):
        w.send(0, bytes(10000))
    w.send(255, b"\0")
    got = w.all()
    t.check("a megabyte goes in, and its end is seen", got.get(1, b"").strip() == b"1000000", got)
    where = exec_url(r, c, "/bin/busybox", "yes")
    w = WebSocket(where, "v4.channel.k8s.io")
    w.until(b"y\ny\n")
    w.close()
    ended = wait_for(lambda: "yes" not in r.exec(c, "/bin/busybox", "ps").stdout, TIMEOUT)
    t.check("a process whose client went away ends", ended)
    t.check("a URL is good for one use", WebSocket(where, "v4.channel.k8s.io").status == 404)
    got = WebSocket(exec_url(r, c, "/no/such/program"), "v4.channel.k8s.io").all()
    t.check("a program that is not there is an error", json.loads(got[3])["status"] == "Failure" and b"no such file" in got[3].lower(), got)
    r.crictl("rmp", "-f", "-a")


def test_terminal(t, r):
    c = r.run("test/box:1", layers.SLEEP)
    w = WebSocket(exec_url(r, c, "/bin/sh", tty=True), "v5.channel.k8s.io")
    w.send(4, b'{"Width":132,"Height":43}')
    time.sleep(0.2)
    w.send(0, b"tty; stty size; exit 5\n")
    got = w.all()
    t.check("a shell has a terminal of the client's size", b"/dev/pts/" in got.get(1, b"") and b"43 132" in got.get(1, b""), got)
    t.check("and its exit code is told", b'"message":"5"' in got.get(3, b""), got)
    r.crictl("rmp", "-f", "-a")


def test_attach(t, r):
    c = r.run("test/box:1", ["/bin/sh", "-c", "while read x; do echo got $x; done; echo over; exit 0"], stdin=True, stdin_once=True)
    w = WebSocket(url(r, "Attach", field(1, c) + field(2, True) + field(4, True) + field(5, True)), "v5.channel.k8s.io")
    w.send(0, b"one\ntwo\n")
    first = w.until(b"got two\n")
    w.send(255, b"\0")
    rest = w.all()
    t.check("an attached client speaks with the container", first == b"got one\ngot two\n" and rest.get(1) == b"over\n", (first, rest))
    t.check("and is told when it ends", json.loads(rest.get(3, b"{}")).get("status") == "Success", rest)
    r.crictl("rmp", "-f", "-a")


def forward(r, pod, port):
    return WebSocket(url(r, "PortForward", field(1, pod) + field(2, port)), "v4.channel.k8s.io")


def test_forward(t, r):
    subnet = f"10.{random.randrange(200, 250)}.{random.randrange(256)}"
    with open(os.path.join(r.conf, "10-test.conflist"), "w") as f:
        json.dump({"cniVersion": "1.0.0", "name": r.name, "plugins": [
            {"type": "ptp", "ipam": {"type": "host-local", "dataDir": os.path.join(r.folder, "ipam"),
                                     "ranges": [[{"subnet": subnet + ".0/24"}]]}}]}, f)
    r.run("test/box:1", ["/bin/busybox", "nc", "-ll", "-p", "8080", "-e", "/bin/cat"], host_network=False)
    pod = r.crictl("pods", "-q", "--no-trunc").stdout.split()[0]
    with socket.socket() as probe:
        t.check("the port is not the node's", probe.connect_ex(("127.0.0.1", 8080)) != 0)

    def reach():
        w = forward(r, pod, 8080)
        w.send(0, b"through")
        got = b""
        for _ in range(3):
            m = w.read()
            if not m or m[0] == 1 and len(m[1]) > 2:
                break
            got += m[1] if m[0] == 0 else b""
        w.close()
        return got == struct.pack("<H", 8080) + b"through"
    t.check("a port of a pod's own loopback device is reached", wait_for(reach, TIMEOUT))
    got = forward(r, pod, 8081).all()
    t.check("a port where nobody listens is an error", b"error forwarding port 8081 to pod " in got[1] and b"connection refused" in got[1], got)
    r.crictl("rmp", "-f", "-a")


# ---- the same by crictl, which speaks both protocols ----

def crictl(r, *args, **options):
    return subprocess.run([layers.C8S, "crictl", "-r", "unix://" + r.socket, *args], capture_output=True, timeout=TIMEOUT, **options)


def in_terminal(r, *args):
    """crictl in a terminal of 100x30 that becomes 120x40 at the word "bigger"; all that it wrote, and its exit code."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    p = subprocess.Popen([layers.C8S, "crictl", "-r", "unix://" + r.socket, *args], stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)
    text = b""

    def until(word):
        nonlocal text
        end = time.monotonic() + TIMEOUT
        while word not in text and time.monotonic() < end:
            if select.select([master], [], [], 0.1)[0]:
                try:
                    text += os.read(master, 4096)
                except OSError:
                    return
    until(b"#")
    os.write(master, b"echo first; stty size\n")
    until(b"30 100")
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    p.send_signal(signal.SIGWINCH)
    for _ in range(20):
        os.write(master, b"stty size\n")
        until_at = time.monotonic() + 0.2
        while time.monotonic() < until_at and b"40 120" not in text:
            if select.select([master], [], [], 0.05)[0]:
                text += os.read(master, 4096)
        if b"40 120" in text:
            break
    os.write(master, b"exit 5\n")
    code = p.wait(TIMEOUT)
    os.close(master)
    return text, code


def test_protocols(t, r):
    c = r.run("test/box:1", layers.SLEEP)
    for transport in ("spdy", "websocket"):
        big = os.urandom(1 << 20)
        got = crictl(r, "exec", "-i", "-r", transport, c, "/bin/sh", "-c", "/bin/busybox cat; echo oops >&2; exit 7", input=big)
        t.check(f"{transport}: a megabyte there and back, errors apart, the exit code", got.stdout == big and b"oops\n" in got.stderr and got.returncode == 7,
                (len(got.stdout), got.stderr, got.returncode))
        got = crictl(r, "exec", "-r", transport, c, "/bin/busybox", "seq", "1", "50000")
        t.check(f"{transport}: all of the output of one that ends at once", got.stdout.split() == [b"%d" % i for i in range(1, 50001)] and got.returncode == 0,
                (len(got.stdout), got.stderr))
        text, code = in_terminal(r, "exec", "-i", "-t", "-r", transport, c, "/bin/sh")
        t.check(f"{transport}: a terminal, its size, its new size and the exit code", b"30 100" in text and b"40 120" in text and code == 5, (text[-400:], code))
    r.crictl("rmp", "-f", "-a")
    for transport in ("spdy", "websocket"):
        c = r.run("test/box:1", ["/bin/sh", "-c", "read x; echo got $x; echo err >&2; exit 3"], stdin=True, stdin_once=True)
        got = crictl(r, "attach", "-i", "-r", transport, c, input=b"typed\n")
        t.check(f"{transport}: attach", b"got typed\n" in got.stdout, got)
        r.crictl("rmp", "-f", "-a")


def forwarder(r, transport, pod, port):
    p = subprocess.Popen([layers.C8S, "crictl", "-r", "unix://" + r.socket, "port-forward", "-r", transport, pod, f"0:{port}"],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    line = p.stdout.readline().decode()
    return p, int(line.split("127.0.0.1:")[1].split()[0])


def test_forward_protocols(t, r):
    r.run("test/box:1", ["/bin/busybox", "nc", "-ll", "-p", "8080", "-e", "/bin/cat"], host_network=False)
    pod = r.crictl("pods", "-q", "--no-trunc").stdout.split()[0]

    def talk(local, data):
        with socket.create_connection(("127.0.0.1", local), TIMEOUT) as s:
            s.settimeout(TIMEOUT)
            s.sendall(data)
            got = b""
            try:
                while len(got) < len(data) and (piece := s.recv(65536)):
                    got += piece
            except OSError:
                pass
            return got
    for transport in ("spdy", "websocket"):
        data = os.urandom(300000)
        p, local = forwarder(r, transport, pod, 8080)
        t.check(f"{transport}: bytes through a port, both ways", wait_for(lambda: talk(local, data) == data, TIMEOUT))
        t.check(f"{transport}: a second connection", talk(local, b"again") == b"again")
        p.kill()
        p.wait()
        p.stdout.close()
        p, local = forwarder(r, transport, pod, 8081)
        t.check(f"{transport}: where nobody listens the connection ends", talk(local, b"x") == b"")
        p.kill()
        p.wait()
        p.stdout.close()
    r.crictl("rmp", "-f", "-a")


def main(t):
    if os.geteuid() != 0:
        t.skip("streams", "needs root")
        return
    r = layers.Runtime()
    try:
        r.start()
        r.load("test/box:1", [layers.busybox()], {"Env": ["PATH=/bin"]})
        for test in (test_exec, test_terminal, test_attach, test_forward, test_protocols, test_forward_protocols):
            test(t, r)
    finally:
        r.close()


if __name__ == "__main__":
    tap.run([main])
