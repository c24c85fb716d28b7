#!/usr/bin/env python3
"""Pods of two nodes: by routes on a shared link, by VXLAN behind a router. The nodes are network namespaces, with the configuration that we write
ourselves for their pods. Needs C8S, the program to test, with c8s-pod beside it, and root."""
import contextlib
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import peers  # noqa: E402
import tap  # noqa: E402
from containers_cni_test import C8S, Node, address, ask, in_folder, link, rules, run  # noqa: E402

BUSYBOX = shutil.which("busybox")
DEVICE, PAGE = "c8s-vxlan", 300000
# What the tunnel takes of every packet, and a packet of its payload (UDP).
OVERHEAD, HEADERS = {False: 50, True: 70}, {False: 28, True: 48}
ECHO = """
import socket
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.bind(("::", 7)); print("ready", flush=True)
while True:
    data, peer = s.recvfrom(65536); s.sendto(b"%d" % len(data), peer)
"""
# IP_MTU_DISCOVER and IPV6_MTU_DISCOVER: never in pieces, and without asking the route first.
SEND = """
import socket
s = socket.socket(socket.AF_INET6 if {v6} else socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(0.5); s.setsockopt(*((41, 23, 3) if {v6} else (0, 10, 3)))
try:
    s.sendto(b"x" * {n}, ("{host}", 7)); print(s.recv(100).decode())
except OSError as e:
    print("no:", e)
"""


class Two:
    """Two nodes, on one link or with a router between them, with one pod each."""
    def __init__(self, d, shared, v6, ranges):
        self.shared, self.ranges = shared, ranges
        self.ours = Node(d + "/n1")
        far_ns = self.ours.pod("far")
        self.far = Node(d + "/n2", ns=far_ns)
        run("ip", "link", "set", "lo", "up", ns=far_ns)
        self.own, self.other, self.prefix = ("2001:db8:1::1", "2001:db8:1::2" if shared else "2001:db8:2::1", 64) if v6 else ("198.51.100.1", "198.51.100.2" if shared else "203.0.113.1", 24)
        if shared:
            run("ip", "link", "add", "n1", "type", "veth", "peer", "name", "n2", "netns", far_ns)
        else:
            self.router(far_ns, v6)
        for ns, name, ip in ((None, "n1", self.own), (far_ns, "n2", self.other)):
            self.up(ns, name, ip)
            if not shared:
                run("ip", "route", "add", "default", "via", self.last(ip), ns=ns)
        for n, i in ((self.ours, 1), (self.far, 2)):
            p = n.cni("init", *[r.format(i) for r in ranges])
            if p.returncode:
                raise RuntimeError(p.stderr)
        self.a, self.b = self.ours.add("a"), self.far.add("b")

    @staticmethod
    def last(ip):
        return ip.rsplit("::" if ":" in ip else ".", 1)[0] + ("::ff" if ":" in ip else ".254")

    def up(self, ns, name, ip):
        run("ip", "addr", "add", f"{ip}/{self.prefix}", "dev", name, *(["nodad"] if ":" in ip else []), ns=ns)
        run("ip", "link", "set", name, "up", ns=ns)

    def router(self, far_ns, v6):
        router = self.ours.pod("router")
        run("sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1", ns=router)
        run("ip", "link", "add", "n1", "type", "veth", "peer", "name", "r1", "netns", router)
        run("ip", "link", "add", "r2", "netns", router, "type", "veth", "peer", "name", "n2", "netns", far_ns)
        for name, ip in (("r1", self.last(self.own)), ("r2", self.last(self.other))):
            self.up(router, name, ip)

    def ways(self, i, node):
        return [f"{r.format(i)}={node}" for r in self.ranges]

    def sync(self, *more):
        return self.ours.cni("routes", "--address", self.own, *self.ways(2, self.other), *more), self.far.cni("routes", "--address", self.other, *self.ways(1, self.own))

    def serve(self):
        """A page of many packets, and an echo, in the far pod."""
        os.makedirs(self.far.d + "/www", exist_ok=True)
        with open(self.far.d + "/www/page", "w") as f:
            f.write("x" * PAGE)
        ns = self.far.pod("b")
        self.far.serve(ns, 80)
        self.far.processes.append(subprocess.Popen(["nsenter", "--net=" + ns, BUSYBOX, "httpd", "-f", "-p", "8080", "-h", self.far.d + "/www"]))
        echo = subprocess.Popen(["nsenter", "--net=" + ns, sys.executable, "-c", ECHO], stdout=subprocess.PIPE, text=True)
        echo.stdout.readline()
        self.far.processes.append(echo)

    def send(self, n, v6):
        return run(sys.executable, "-c", SEND.format(n=n, v6=v6, host=address(self.b, v6)), ns=self.ours.pod("a")).stdout.strip()

    def state(self):
        """All that leads to other nodes."""
        words = ("10.86.", "fd86:", "10.87.", "fd87:", DEVICE)
        lines = run("ip", "route").stdout + run("ip", "-6", "route").stdout + run("ip", "-br", "link").stdout
        if DEVICE in lines:
            more = run("ip", "neigh", "show", "dev", DEVICE, "nud", "permanent").stdout + run("bridge", "fdb", "show", "dev", DEVICE).stdout
            lines += more.replace("lladdr", DEVICE + " lladdr").replace("dst", DEVICE + " dst")
        own = [r.format(1).split("/")[0] for r in self.ranges]
        return [x.strip() for x in lines.splitlines() if any(w in x for w in words) and not any(x.startswith(o) for o in own) and "proto kernel" not in x] + \
            [x for x in rules() if "accept" in x]


@contextlib.contextmanager
def two(*args):
    nodes = Two(*args)
    try:
        yield nodes
    finally:
        nodes.far.close()
        nodes.ours.close()


FOUR, SIX = "10.86.{}.0/24", "fd86:0:0:{}::/64"


def test_pods(t, d):
    """Real packets between pods, with their own addresses."""
    for i, (shared, below6, ranges, tunnel) in enumerate((
            (True, False, [FOUR], False), (True, True, [SIX], False), (True, False, [FOUR, SIX], True),  # IPv6 to a node that is known by an address of IPv4
            (False, False, [FOUR, SIX], True), (False, True, [FOUR, SIX], True))):
        words = f"{'one link' if shared else 'routed'}, nodes IPv{6 if below6 else 4}, pods {'dual stack' if len(ranges) == 2 else 'IPv6' if ranges == [SIX] else 'IPv4'}"
        with two(f"{d}/{i}", shared, below6, ranges) as n:
            t.check(f"{words}: attached", isinstance(n.a, dict) and isinstance(n.b, dict) and len(n.a["ips"]) == len(ranges), (n.a, n.b))
            n.serve()
            for _ in range(2):  # again: nothing changes
                p, q = n.sync()
                t.check(f"{words}: set", p.returncode == 0 and q.returncode == 0, p.stderr + q.stderr)
            there = link(DEVICE)
            t.check(f"{words}: a tunnel {'of the right size' if tunnel else 'is not needed'}", there.get("mtu") == (1500 - OVERHEAD[below6] if tunnel else None), there)
            for v6 in [":" in r for r in ranges]:
                pod, to = n.ours.pod("a"), address(n.b, v6)
                words6 = f"{words}: {'IPv6' if v6 else 'IPv4'}"
                got = ask(pod, to, 80)
                t.check(f"{words6}: from pod to pod, with its own address", got == address(n.a, v6), (got, n.state()))
                p = run(BUSYBOX, "ping6" if v6 else "ping", "-c", "1", "-W", "3", to, ns=pod, check=False)
                t.check(f"{words6}: ping", p.returncode == 0, p.stdout)
                p = run("timeout", "5", BUSYBOX, "wget", "-Y", "off", "-qO-", f"http://{f'[{to}]' if v6 else to}:8080/page", ns=pod, check=False)
                t.check(f"{words6}: a page that needs packets of full size", len(p.stdout) == PAGE, p.stderr)
                # One packet, which nobody may cut: it fills the way to the last byte, and not one more.
                tunneled = not shared or v6 != below6
                most = 1500 - (OVERHEAD[below6] if tunneled else 0) - HEADERS[v6]
                got = n.send(most, v6), n.send(most + 1, v6)
                t.check(f"{words6}: {most} bytes in one packet, and not one more", got[0] == str(most) and got[1].startswith("no:"), got)
            p, q = n.ours.cni("routes", "--address", n.own), n.far.cni("routes", "--address", n.other)
            t.check(f"{words}: removed", p.returncode == 0 and q.returncode == 0 and n.state() == [], p.stderr + q.stderr + str(n.state()))
            n.far.close()
            t.check(f"{words}: del", n.ours.delete("a").returncode == 0 and n.far.delete("b").returncode == 0 and n.ours.left() + n.far.left() == [], n.ours.left() + n.far.left())
        run("ip", "link", "del", "n1")
        run("ip", "link", "del", json.load(open(f"{d}/{i}/n1/conf/10-c8s.conflist"))["plugins"][0]["bridge"])


def test_changes(t, d):
    """Nodes that come and go, what makes no sense, links that change."""
    with two(d, False, False, [FOUR, SIX]) as n:
        third = ["10.87.3.0/24=203.0.113.3", "fd87:0:0:3::/64=203.0.113.3"]
        t.check("two other nodes", n.sync(*third)[0].returncode == 0)
        both = n.state()
        t.check("routes, neighbours and where they are, for each", sum("203.0.113.3" in x for x in both) >= 3 and sum("203.0.113.1" in x for x in both) >= 3 and
                any("fd87:0:0:3" in x for x in both), both)
        p, q = n.sync()
        left = n.state()
        t.check("one of them goes: nothing of it is left", p.returncode == 0 and not any("203.0.113.3" in x or x.startswith(("10.87.", "fd87:")) for x in left), left)
        t.check("what belongs to the other stays", [x for x in both if "203.0.113.1 " in x + " "] == [x for x in left if "203.0.113.1 " in x + " "], (both, left))
        n.far.serve(n.far.pod("b"), 80)
        t.check("and works", [ask(n.ours.pod("a"), address(n.b, v6), 80) for v6 in (False, True)] == [address(n.a), address(n.a, True)], left)
        bad = n.ours.cni("routes", "--address", n.own, *n.ways(2, n.other), "10.87.0.0/24=nonsense")
        t.check("one that makes no sense is reported, the others stay", bad.returncode == 1 and "nonsense" in bad.stderr and n.state() == left, bad.stderr)
        bad = n.ours.cni("routes", "--address", "192.0.2.99", *n.ways(2, n.other))
        t.check("an address that we do not have", bad.returncode == 1 and "no link has this node's address 192.0.2.99" in bad.stderr and n.state() == left, bad.stderr)
        run("ip", "link", "set", "n1", "mtu", "1400")
        t.check("a link that gets smaller", n.sync()[0].returncode == 0 and link(DEVICE)["mtu"] == 1350, link(DEVICE))
        run("ip", "link", "del", DEVICE)
        t.check("a tunnel that somebody has deleted", n.sync()[0].returncode == 0 and len(n.state()) == len(left) and ask(n.ours.pod("a"), address(n.b), 80) == address(n.a), n.state())
        moved = [w.replace(n.other, "203.0.113.9") for w in n.ways(2, n.other)]
        p = n.ours.cni("routes", "--address", n.own, *moved)
        t.check("a node that gets another address", p.returncode == 0 and not any("203.0.113.1 " in x + " " for x in n.state()) and any("203.0.113.9" in x for x in n.state()), n.state())
        t.check("all go", n.ours.cni("routes", "--address", n.own).returncode == 0 and n.state() == [], n.state())


def test_killed(t, d):
    """kill -9 before every message to the kernel and every change of a file: the next call makes it right, the last one removes all."""
    strace = peers.find("strace", peers.PEERS["strace"])
    if not strace:
        return t.skip("killed while ways are set", "strace cannot be had")
    n = Node(d)
    run("ip", "link", "add", "n1", "type", "veth", "peer", "name", "n2")
    run("ip", "link", "set", "n2", "up")
    run("ip", "addr", "add", "198.51.100.1/24", "dev", "n1")
    run("ip", "link", "set", "n1", "up")
    near, far = "10.87.2.0/24=198.51.100.2", ["10.87.3.0/24=203.0.113.3", "fd87:0:0:3::/64=203.0.113.3"]
    command = [C8S, "cni", "routes", "--conf-dir", d + "/conf", "--cache-dir", d + "/cache", "--address", "198.51.100.1"]

    def state():
        lines = run("ip", "route", "show", "proto", "200").stdout + run("ip", "-6", "route", "show", "proto", "200").stdout + run("ip", "-br", "link").stdout
        return [x for x in lines.splitlines() if DEVICE in x or "10.87." in x or "fd87:" in x] + [x for x in rules() if "accept" in x] + [x for x in os.listdir(d + "/cache") if x == "routes.json"]
    for words, before, after in (("come", [], [near, *far]), ("go", [near, *far], [])):
        bad, steps = [], 0
        for call in ("sendto", "rename", "unlink"):
            code, when = None, 0
            while code != 0 and when < 60 and not bad:
                when += 1
                steps += 1
                run(*command, *before)
                code = run(strace, "-f", "-o", "/dev/null", "-e", f"inject={call}:signal=KILL:when={when}", *command, *after, check=False,
                           env={**peers.libraries(), "ASAN_OPTIONS": "detect_leaks=0"}).returncode
                p = run(*command, near, *far, check=False)
                full = state()
                q = run(*command, check=False)
                if p.returncode or q.returncode or len(full) < 6 or state():
                    bad.append((call, when, p.stderr, q.stderr, full, state()))
        t.check(f"killed before each of {steps} steps while ways {words}", not bad and steps > 8, bad)
    n.close()


if __name__ == "__main__":
    if os.geteuid() != 0 or not BUSYBOX:
        t = tap.Tap()
        t.skip("networks of two nodes", "needs root and busybox")
        t.close()
    for name in ("nft", "strace"):
        peers.find(name, peers.PEERS[name])
    tap.run([in_folder(test) for test in (test_pods, test_changes, test_killed)])
