#!/usr/bin/env python3
"""Networks of pods: our plugins and Debian's, called by our executor and directly as the specification says. Needs C8S, the program to
test, with c8s-pod beside it, and root. The test moves into network and mount namespaces of its own, which play the node: nothing of
the machine is touched, and all is gone when it ends, however it does."""
import base64
import concurrent.futures
import ctypes
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import peers  # noqa: E402
import tap  # noqa: E402

C8S = os.environ["C8S"]
POD = os.path.join(os.path.dirname(C8S), "c8s-pod")
OURS = ["bridge", "host-local", "loopback", "portmap", "ptp"]
CLONE_NEWNS, CLONE_NEWNET, MS_PRIVATE, MS_REC = 0x20000, 0x40000000, 1 << 18, 1 << 14
SERVER = """
import socket
s = socket.socket(socket.AF_INET6); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("::", {port})); s.listen(); print("ready", flush=True)
while True:
    c, peer = s.accept(); c.sendall(peer[0].replace("::ffff:", "").encode()); c.close()
"""
CLIENT = """
import socket
try:
    s = socket.create_connection(("{host}", {port}), timeout={wait}); s.settimeout({wait}); print(s.recv(100).decode())
except OSError as e:
    print("no:", e)
"""


def enter_node():
    """Moves into fresh namespaces; what was in the ones before goes with their last process."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS | CLONE_NEWNET) or libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None):
        raise OSError(ctypes.get_errno(), "cannot make namespaces")
    run("ip", "link", "set", "lo", "up")


def run(*command, ns=None, check=True, **more):
    where = ["nsenter", "--net=" + ns] if ns else []
    p = subprocess.run([*where, *command], capture_output=True, text=True, timeout=60, **more)
    if check and p.returncode:
        raise RuntimeError(f"{command}: {p.stdout}{p.stderr}")
    return p


class Node:
    """A folder with configuration, cache and plugins; the network namespace of the test, or another one."""
    def __init__(self, folder, ns=None, plugins=(), env=None):
        self.d, self.ns, self.env = folder, ns, env
        for name in ("conf", "cache", "bin", "ns"):
            os.makedirs(f"{folder}/{name}", exist_ok=True)
        for name in plugins:
            os.symlink(POD, f"{folder}/bin/{name}")
        self.processes = []

    def pod(self, name):
        path = f"{self.d}/ns/{name}"
        if not os.path.exists(path):
            open(path, "w").close()
            run("unshare", "--net=" + path, "true", ns=self.ns)
        return path

    def close_pod(self, name):
        run("umount", f"{self.d}/ns/{name}")
        os.unlink(f"{self.d}/ns/{name}")

    def configure(self, conf, name="10-test.conflist"):
        with open(f"{self.d}/conf/{name}", "w") as f:
            json.dump(conf, f)

    def cni(self, action, *args):
        return run(C8S, "cni", action, "--conf-dir", f"{self.d}/conf", "--bin-dir", f"{self.d}/bin", "--cache-dir", f"{self.d}/cache", *args,
                   ns=self.ns, check=False, env=self.env)

    def add(self, name, *args):
        p = self.cni("add", "--id", name, "--netns", self.pod(name), *args)
        return json.loads(p.stdout) if p.returncode == 0 else p.stderr

    def delete(self, name):
        return self.cni("del", "--id", name, "--netns", self.pod(name))

    def serve(self, ns, port):
        p = subprocess.Popen([*(["nsenter", "--net=" + ns] if ns else []), sys.executable, "-c", SERVER.format(port=port)], stdout=subprocess.PIPE, text=True)
        p.stdout.readline()
        self.processes.append(p)

    def left(self):
        """What is there that belongs to attachments."""
        links = [x["ifname"] for x in json.loads(run("ip", "-j", "link", ns=self.ns).stdout) if x["ifname"].startswith("veth")]
        files = [f for top, _, names in os.walk(self.d + "/cache") for f in names if f != "lock" and not f.startswith("last_reserved")]
        return sorted(links + files + rules(self.ns))

    def close(self):
        while self.processes:
            p = self.processes.pop()
            p.kill()
            p.wait()


def ask(ns, host, port, wait=3):
    return run(sys.executable, "-c", CLIENT.format(host=host, port=port, wait=wait), ns=ns, check=False).stdout.strip()


def nft(*args, ns=None, **more):
    program = peers.find("nft", peers.PEERS["nft"])
    return run(program, *args, ns=ns, check=False, env=peers.libraries(), **more) if program else None


def rules(ns=None):
    p = nft("list", "table", "inet", "c8s_cni", ns=ns)
    return [line.strip() for line in p.stdout.splitlines() if "comment" in line] if p else []


def bridge(d, ranges, name="testnet", version="1.0.0", **more):
    return {"cniVersion": version, "name": name, "plugins": [
        {"type": "bridge", "bridge": "br-test", "isDefaultGateway": True, "ipMasq": True, "hairpinMode": True,
         "ipam": {"type": "host-local", "dataDir": d + "/cache/networks", "ranges": [[{"subnet": r}] for r in ranges]}, **more},
        {"type": "portmap", "capabilities": {"portMappings": True}}]}


def plugin(d, command, name, conf, container="c1", ns="", ifname="eth0", folder=None, under=(), **env):
    """One plugin, called as the specification says: (exit code, what it printed)."""
    p = subprocess.Popen([*under, f"{folder or d + '/bin'}/{name}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         env={"PATH": os.environ["PATH"], "CNI_COMMAND": command, "CNI_CONTAINERID": container, "CNI_NETNS": ns, "CNI_IFNAME": ifname,
                              "CNI_PATH": d + "/bin", **env})
    out, _ = p.communicate(json.dumps(conf), timeout=60)
    return p.returncode, json.loads(out) if out.strip() else None


def script(d, name, body):
    """A plugin that is a few lines of shell."""
    with open(f"{d}/bin/{name}.new", "w") as f:
        f.write("#!/bin/sh\n" + body + "\n")
    os.chmod(f"{d}/bin/{name}.new", 0o755)
    os.rename(f"{d}/bin/{name}.new", f"{d}/bin/{name}")


def address(result, v6=False):
    return next(i["address"].split("/")[0] for i in result["ips"] if (":" in i["address"]) == v6)


# ---- tests: each gets a fresh folder ----

def test_attachments(t, d):
    """Pods on one bridge, host ports, the world outside; IPv4, IPv6 and both."""
    outside = Node(d + "/outside")
    world = outside.pod("world")
    run("ip", "link", "add", "up0", "type", "veth", "peer", "name", "eth0", "netns", world)
    for ns, link, four, six in ((None, "up0", "192.0.2.1/24", "2001:db8::1/64"), (world, "eth0", "192.0.2.2/24", "2001:db8::2/64")):
        run("ip", "addr", "add", four, "dev", link, ns=ns)
        run("ip", "addr", "add", six, "dev", link, "nodad", ns=ns)
        run("ip", "link", "set", link, "up", ns=ns)
    outside.serve(world, 7000)
    for kind, ranges in (("IPv4", ["10.77.0.0/24"]), ("IPv6", ["fd77::/64"]), ("dual stack", ["10.78.0.0/24", "fd78::/64"])):
        n = Node(f"{d}/{kind.replace(' ', '')}")
        n.configure(bridge(n.d, ranges))
        a, b = n.add("a", "-p", "8080:80"), n.add("b")
        t.check(f"{kind}: two pods are attached", isinstance(a, dict) and len(a["ips"]) == len(ranges), a)
        n.serve(n.pod("a"), 80)
        for v6 in [":" in r for r in ranges]:
            words = f"{kind}: {'IPv6' if v6 else 'IPv4'}"
            node, far, local = ("2001:db8::1", "2001:db8::2", "::1") if v6 else ("192.0.2.1", "192.0.2.2", "127.0.0.1")
            t.check(f"{words}: from pod to pod", ask(n.pod("b"), address(a, v6), 80) == address(b, v6), b)
            t.check(f"{words}: a pod reaches outside with the node's address", ask(n.pod("b"), far, 7000) == node, rules())
            t.check(f"{words}: a host port from outside", ask(world, node, 8080) == far, rules())
            t.check(f"{words}: a host port from a neighbour, and from the pod itself",
                    "no:" not in ask(n.pod("b"), node, 8080) + ask(n.pod("a"), node, 8080), rules())
            t.check(f"{words}: a host port on the node", v6 or "no:" not in ask(None, local, 8080), rules())
        t.check(f"{kind}: check", n.cni("check", "--id", "a").returncode == 0, n.cni("check", "--id", "a").stderr)
        t.check(f"{kind}: a second add is refused", "already exists" in str(n.add("a")), n.add("a"))
        n.close()
        run("ip", "addr", "flush", "dev", "eth0", "scope", "global", ns=n.pod("b"))
        p = n.cni("check", "--id", "b")
        t.check(f"{kind}: check notices a missing address", p.returncode == 1 and "Failed to match addr" in p.stderr, p.stderr)
        n.close_pod("b")
        codes = [n.delete("a").returncode, n.cni("del", "--id", "b").returncode, n.delete("a").returncode, n.cni("del", "--id", "other").returncode]
        t.check(f"{kind}: del, also without the namespace, again, and of nothing", codes == [0] * 4, codes)
        t.check(f"{kind}: nothing is left", n.left() == [], n.left())
        run("ip", "link", "del", "br-test")
    outside.close()


def test_default(t, d):
    """The configuration that we write ourselves, and UDP ports that change hands."""
    n = Node(d)
    t.check("there is no network at first", "no network config found in" in n.cni("status").stderr, n.cni("status"))
    t.check("init", n.cni("init", "10.79.0.0/24", "fd79::/64").returncode == 0)
    with open(d + "/conf/10-c8s.conflist") as f:
        conf = json.load(f)
    t.check("status", n.cni("status").returncode == 0 and conf["name"] in n.cni("status").stdout, n.cni("status"))
    a = n.add("a", "-p", "192.0.2.77:8081:81/udp", "-p", "8082:82/sctp")
    t.check("the newest version is used", isinstance(a, dict) and a["cniVersion"] == "1.1.0", a)
    mac, ip = a["interfaces"][2]["mac"], address(a)
    t.check("a hardware address that follows from the address", mac == "0e:c8:" + ":".join("%02x" % int(x) for x in ip.split(".")), a)
    text = "\n".join(rules())
    t.check("rules of all protocols", not text or ("ip daddr 192.0.2.77 udp dport 8081" in text and "sctp dport 8082" in text), text)
    t.check("a range that stays keeps the file", n.cni("init", "10.79.0.0/24", "fd79::/64").returncode == 0 and
            json.load(open(d + "/conf/10-c8s.conflist")) == conf)
    n.add("gone")
    n.close_pod("gone")
    p = n.cni("gc", "a")
    t.check("gc removes the others", p.returncode == 0 and n.cni("check", "--id", "a").returncode == 0, p.stderr)
    t.check("and nothing else", not any("gone" in x for x in n.left()) and any("-a-eth0" in x for x in n.left()), n.left())
    # As after a crash and the loss of the cache: only the plugins know.
    n.add("lost")
    for f in os.listdir(d + "/cache/results"):
        if "-lost-" in f:
            os.unlink(d + "/cache/results/" + f)
    n.close_pod("lost")
    t.check("gc finds what is not in the cache", n.cni("gc", "a").returncode == 0 and not any("lost" in x for x in n.left()), n.left())
    t.check("gc of all", n.cni("gc").returncode == 0 and n.left() == [], n.left())


def test_specification(t, d):
    """Called directly: versions, errors."""
    n = Node(d, plugins=OURS)
    ipam = {"type": "host-local", "subnet": "10.80.0.0/24", "dataDir": d + "/nets"}
    code, out = plugin(d, "VERSION", "bridge", {})
    t.check("VERSION", code == 0 and out["supportedVersions"][-2:] == ["1.0.0", "1.1.0"], out)
    for version in ("0.2.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"):
        conf = {"cniVersion": version, "name": "spec", "type": "bridge", "bridge": "br-spec", "isGateway": True, "ipam": ipam}
        code, out = plugin(d, "ADD", "bridge", conf, ns=n.pod("p"))
        if version == "0.2.0":
            right = code == 0 and out["ip4"]["gateway"] == "10.80.0.1"
        else:
            right = code == 0 and out["ips"][0].get("version") == ("4" if version < "1" else None) and out["ips"][0]["interface"] == 2
        t.check(f"ADD {version}", right and out["cniVersion"] == version, out)
        if version >= "0.4.0":
            code, answer = plugin(d, "CHECK", "bridge", {**conf, "prevResult": out}, ns=n.pod("p"))
            t.check(f"CHECK {version}", code == 0, answer)
        else:
            code, answer = plugin(d, "CHECK", "bridge", conf, ns=n.pod("p"))
            t.check(f"CHECK {version}", code == 1 and answer["code"] == 1 and "config version does not allow CHECK" in answer["msg"], answer)
        if version >= "0.3.1":
            _, lo = plugin(d, "ADD", "loopback", {**conf, "type": "loopback", "prevResult": out}, ns=n.pod("p"))
            t.check(f"a result passes through {version}", lo == out, lo)
        for other in ("0.3.1", "0.4.0", "1.0.0", "1.1.0") if version >= "0.3.1" else ():
            code, lo = plugin(d, "ADD", "loopback", {**conf, "cniVersion": other, "type": "loopback", "prevResult": out}, ns=n.pod("p"))
            want = [{**{k: v for k, v in ip.items() if k != "version"}, **({"version": "4"} if other < "1" else {})} for ip in out["ips"]]
            t.check(f"a result of {version} becomes one of {other}", code == 0 and lo["cniVersion"] == other and lo["ips"] == want, lo)
        for again in ("", ", again"):
            code, out = plugin(d, "DEL", "bridge", conf, ns=n.pod("p"))
            t.check(f"DEL {version}{again}", code == 0 and out is None, out)
    code, out = plugin(d, "STATUS", "bridge", {**conf, "cniVersion": "1.1.0"})
    t.check("STATUS", code == 0 and out is None, out)
    with open(d + "/file", "w") as f:
        code, out = plugin(d, "STATUS", "bridge", {**conf, "cniVersion": "1.1.0", "ipam": {**ipam, "dataDir": f.name}})
    t.check("STATUS: not available", code == 1 and out["code"] == 50, out)
    base = {"cniVersion": "1.0.0", "name": "spec", "type": "bridge", "bridge": "br-spec"}
    for name, command, conf, env, number, words in (
            ("a version that we do not know", "ADD", {**base, "cniVersion": "9.0.0"}, {}, 1, "incompatible CNI versions"),
            ("macspoofchk", "ADD", {**base, "macspoofchk": True}, {}, 2, "macspoofchk"),
            ("no container", "ADD", base, {"CNI_CONTAINERID": ""}, 4, "required env variables [CNI_CONTAINERID] missing"),
            ("a bad interface", "ADD", base, {"CNI_IFNAME": "a/b"}, 4, "interface name contains / or :"),
            ("an unknown command", "EAT", base, {}, 4, "unknown CNI_COMMAND: EAT"),
            ("no JSON", "ADD", "x", {}, 6, "network config"),
            ("no name", "ADD", {"cniVersion": "1.0.0"}, {}, 7, "missing network name"),
            ("no namespace", "ADD", base, {"CNI_NETNS": "/nowhere"}, 8, "failed to open netns"),
            ("the node's own namespace", "ADD", base, {"CNI_NETNS": "/proc/self/ns/net"}, 8, "should not be the same"),
            ("hairpin and promiscuous", "ADD", {**base, "hairpinMode": True, "promiscMode": True}, {}, 7, "at the same time"),
            ("a wrong type", "ADD", {**base, "mtu": "x"}, {}, 6, "mtu"),
            ("GC in 1.0.0", "GC", base, {}, 1, "config version does not allow GC"),
            ("GC without a list", "GC", {**base, "cniVersion": "1.1.0"}, {}, 7, "valid-attachments"),
            ("no such address plugin", "ADD", {**base, "ipam": {"type": "none"}}, {}, 7, 'failed to find plugin "none"')):
        code, out = plugin(d, command, "bridge", conf, **{"ns": n.pod("p"), **({} if not env else {"ns": env.get("CNI_NETNS", n.pod("p"))})},
                           **{k: v for k, v in env.items() if k not in ("CNI_NETNS",)})
        t.check(f"error: {name}", code == 1 and out["code"] == number and words in out["msg"], out)
    small = {**base, "ipam": {**ipam, "subnet": "10.81.0.0/30"}}
    first = plugin(d, "ADD", "bridge", small, container="x1", ns=n.pod("p1"))
    code, out = plugin(d, "ADD", "bridge", small, container="x2", ns=n.pod("p2"))
    t.check("no address is left", first[0] == 0 and code == 1 and out["code"] == 11 and out["msg"].startswith("failed to allocate for range 0: no IP "), out)
    links = run("ip", "-br", "link", ns=n.pod("p2")).stdout
    t.check("and nothing was made", "eth0" not in links, links)
    plugin(d, "DEL", "bridge", small, container="x1", ns=n.pod("p1"))


def test_ptp(t, d):
    n = Node(d)
    n.configure({"cniVersion": "1.0.0", "name": "ptp", "plugins": [
        {"type": "ptp", "ipMasq": True, "mtu": 1400, "ipam": {"type": "host-local", "dataDir": d + "/cache/networks", "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}],
                                                 "ranges": [[{"subnet": "10.82.0.0/24"}], [{"subnet": "fd82::/64"}]]}}]})
    a, b = n.add("a"), n.add("b")
    t.check("ptp: attached", isinstance(a, dict) and len(a["interfaces"]) == 2, a)
    n.serve(n.pod("a"), 80)
    for v6 in (False, True):
        t.check(f"ptp: from pod to pod by {'IPv6' if v6 else 'IPv4'}", "no:" not in ask(n.pod("b"), address(a, v6), 80),
                run("ip", "route", ns=n.pod("b")).stdout)
        t.check("ptp: from the node", "no:" not in ask(None, address(a, v6), 80))
    t.check("ptp: mtu", "mtu 1400" in run("ip", "link", "show", "eth0", ns=n.pod("a")).stdout)
    t.check("ptp: check", n.cni("check", "--id", "a").returncode == 0, n.cni("check", "--id", "a").stderr)
    n.close()
    t.check("ptp: del", n.delete("a").returncode == 0 and n.delete("b").returncode == 0 and n.left() == [], n.left())


def test_peers(t, d):
    """Debian's plugins in the place of ours, and chains of both on the same folder of addresses."""
    theirs = peers.find("host-local", "containernetworking-plugins")
    if not theirs:
        return t.skip("Debian's plugins", "containernetworking-plugins cannot be had")
    folder = os.path.dirname(os.path.realpath(theirs))
    conf = {"cniVersion": "1.0.0", "name": "mixed", "plugins": [{"type": "bridge", "bridge": "br-mixed", "isDefaultGateway": True, "ipam": {
        "type": "host-local", "dataDir": d + "/cache/networks", "ranges": [[{"subnet": "10.83.0.0/24"}], [{"subnet": "fd83::/64"}]]}}]}
    seen, nodes = set(), []
    for kind, names in (("ours", []), ("theirs", ["bridge", "host-local", "loopback"]), ("our addresses", ["bridge", "loopback"]), ("their addresses", ["host-local"])):
        n = Node(f"{d}/{kind.replace(' ', '')}", plugins=[x for x in OURS if x not in names])
        for name in names:
            os.symlink(f"{folder}/{name}", f"{n.d}/bin/{name}")
        n.configure(conf)
        name = "pod" + str(len(nodes))
        a = n.add(name)
        t.check(f"{kind}: add", isinstance(a, dict) and len(a["ips"]) == 2, a)
        t.check(f"{kind}: an address that nobody has", address(a) not in seen and address(a, True) not in seen, a)
        seen |= {address(a), address(a, True)}
        p = n.cni("check", "--id", name)
        t.check(f"{kind}: check", p.returncode == 0, p.stderr)
        nodes.append((kind, n, a, name))
    nodes[0][1].serve(nodes[0][1].pod("pod0"), 80)
    for kind, n, a, name in nodes[1:]:
        t.check(f"{kind}: reaches a pod of ours", ask(n.pod(name), address(nodes[0][2]), 80) == address(a))
    for kind, n, a, name in nodes:
        t.check(f"{kind}: del", n.delete(name).returncode == 0)
    nodes[0][1].close()
    taken = [f for f in os.listdir(d + "/cache/networks/mixed") if f != "lock" and not f.startswith("last_")]
    t.check("all addresses are given back", taken == [], taken)
    # Each can release what the other has given out.
    ipam = {"cniVersion": "1.0.0", "name": "both", "type": "x", "ipam": {"type": "host-local", "subnet": "10.84.0.0/24", "dataDir": d + "/nets"}}
    ours = nodes[0][1].d
    one = plugin(ours, "ADD", "host-local", ipam, container="one", ns="/x")
    two = plugin(ours, "ADD", "host-local", ipam, container="two", ns="/x", folder=folder)
    t.check("both give out from one folder", [one[1]["ips"][0]["address"], two[1]["ips"][0]["address"]] == ["10.84.0.2/24", "10.84.0.3/24"], (one, two))
    open(d + "/nets/both/10.84.0.4", "w").close()
    three = plugin(ours, "ADD", "host-local", ipam, container="three", ns="/x")
    t.check("an empty file, as a crash leaves it, takes no address", three[1]["ips"][0]["address"] == "10.84.0.4/24", three)
    codes = [plugin(ours, "CHECK", "host-local", ipam, container="two", ns="/x")[0], plugin(ours, "CHECK", "host-local", ipam, container="one", ns="/x", folder=folder)[0],
             plugin(ours, "DEL", "host-local", ipam, container="two")[0], plugin(ours, "DEL", "host-local", ipam, container="one", folder=folder)[0],
             plugin(ours, "DEL", "host-local", ipam, container="three", folder=folder)[0]]
    taken = [f for f in os.listdir(d + "/nets/both") if f.startswith("10.")]
    t.check("and release the other's", codes == [0] * 5 and taken == [], (codes, taken))


def iptables(d):
    """The environment in which Debian's iptables can be called by its name; None if it cannot be had."""
    program = peers.find("xtables-nft-multi", peers.PEERS["xtables-nft-multi"])
    if not program:
        return None
    os.makedirs(d + "/iptables", exist_ok=True)
    for name in ("iptables", "ip6tables", "iptables-save"):
        os.symlink(program, f"{d}/iptables/{name}")
    folders = [os.path.join(x, "xtables") for x in peers.libraries()["LD_LIBRARY_PATH"].split(os.pathsep)]
    more = {"XTABLES_LIBDIR": x for x in folders if os.path.isdir(x)}
    return {**peers.libraries(), **more, "PATH": f"{d}/iptables:{os.environ['PATH']}"}


def test_peers_chained(t, d):
    """Debian's portmap, bandwidth, firewall and tuning behind our bridge; our portmap behind theirs; and DEL by the other's plugins."""
    theirs, env = peers.find("host-local", "containernetworking-plugins"), iptables(d)
    if not theirs or not env:
        return t.skip("Debian's plugins in one chain with ours", "containernetworking-plugins or iptables cannot be had")
    folder = os.path.dirname(os.path.realpath(theirs))
    n = Node(d, env=env)
    world = n.pod("world")
    run("ip", "link", "add", "up0", "type", "veth", "peer", "name", "eth0", "netns", world)
    for ns, name, net in ((None, "up0", "192.0.2.1/24"), (world, "eth0", "192.0.2.2/24")):
        run("ip", "addr", "add", net, "dev", name, ns=ns)
        run("ip", "link", "set", name, "up", ns=ns)
    ipam = {"type": "host-local", "dataDir": d + "/cache/networks", "ranges": [[{"subnet": "10.97.0.0/24"}]]}
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    for name, folder_of, plugins in (
            ("their chain behind our bridge", ("portmap", "bandwidth", "firewall", "tuning"), [
                {"type": "bridge", "bridge": "br-chain", "isDefaultGateway": True, "ipMasq": True, "hairpinMode": True, "ipam": ipam}, ports,
                {"type": "bandwidth", "capabilities": {"bandwidth": True}}, {"type": "firewall", "backend": "iptables"}, {"type": "tuning", "mtu": 1350, "sysctl": {"net.ipv4.conf.eth0.arp_filter": "1"}}]),
            ("our chain behind their bridge", ("bridge", "host-local"), [{"type": "bridge", "bridge": "br-chain", "isDefaultGateway": True, "ipMasq": True, "hairpinMode": True, "ipam": ipam}, ports])):
        for x in os.listdir(d + "/bin"):
            os.unlink(f"{d}/bin/{x}")
        for x in folder_of:
            os.symlink(f"{folder}/{x}", f"{d}/bin/{x}")
        n.configure({"cniVersion": "1.0.0", "name": "chain", "plugins": plugins})
        a = n.add("a", "-p", "8080:80", "--capabilities", json.dumps({"bandwidth": {"ingressRate": 80000000, "ingressBurst": 80000000}}))
        t.check(f"{name}: add", isinstance(a, dict) and a["ips"][0]["interface"] == 2, a)
        n.serve(n.pod("a"), 80)
        got = ask(world, "192.0.2.1", 8080)
        t.check(f"{name}: a host port", got == "192.0.2.2", (got, run("iptables-save", env=env).stdout))
        got = ask(None, "127.0.0.1", 8080)
        t.check(f"{name}: a host port on the node", "no:" not in got, got)
        p = n.cni("check", "--id", "a")
        # Their portmap 1.1 looks for rules of IPv4 among those of IPv6, too.
        t.check(f"{name}: check", p.returncode == 0 or ("portmap" in folder_of and "could not check ipv6 dnat" in p.stderr), p.stderr)
        if "tuning" in folder_of:
            qdiscs, saved = run("tc", "qdisc", check=False).stdout, run("iptables-save", env=env).stdout
            t.check(f"{name}: all of them have done their work", "qdisc tbf" in qdiscs and f"-s {address(a)}/32 -j ACCEPT" in saved and link("eth0", n.pod("a"))["mtu"] == 1350, qdiscs + saved)
        n.close()
        t.check(f"{name}: del", n.delete("a").returncode == 0)
        saved = run("iptables-save", env=env).stdout
        t.check(f"{name}: nothing is left", n.left() == [] and address(a) not in saved, (n.left(), saved))
        run("ip", "link", "del", "br-chain")
    conf = {"cniVersion": "1.0.0", "name": "cross", "type": "bridge", "bridge": "br-cross", "isDefaultGateway": True, "ipam": ipam}
    for x in OURS:
        if os.path.lexists(f"{d}/bin/{x}"):
            os.unlink(f"{d}/bin/{x}")
        os.symlink(POD, f"{d}/bin/{x}")
    for name, adds, deletes, path in (("ours", None, folder, folder), ("theirs", folder, None, d + "/bin")):
        code, out = plugin(d, "ADD", "bridge", conf, container="x", ns=n.pod(name), folder=adds, CNI_PATH=adds or d + "/bin")
        t.check(f"what {name} has made: add", code == 0, out)
        code, answer = plugin(d, "CHECK", "bridge", {**conf, "prevResult": out}, container="x", ns=n.pod(name), folder=deletes, CNI_PATH=path)
        t.check(f"what {name} has made: check by the other", code == 0, answer)
        code, out = plugin(d, "DEL", "bridge", conf, container="x", ns=n.pod(name), folder=deletes, CNI_PATH=path)
        t.check(f"what {name} has made: del by the other", code == 0 and n.left() == [] and not link("eth0", n.pod(name)), (out, n.left()))


def test_shared(t, d):
    """A network that another runtime uses too: what it has is not ours to collect."""
    n = Node(d, plugins=OURS)
    conf = bridge(d, ["10.89.0.0/24"], name="shared", version="1.1.0")
    n.configure(conf)
    one = {**conf["plugins"][0], "cniVersion": "1.1.0", "name": "shared"}
    code, theirs = plugin(d, "ADD", "bridge", one, container="theirs", ns=n.pod("theirs"))
    t.check("the other runtime's pod", code == 0, theirs)
    # As libcni writes it; it does not say who it is.
    cached = {"kind": "cniCacheV1", "containerId": "theirs", "config": base64.b64encode(json.dumps(conf).encode()).decode(), "ifName": "eth0", "networkName": "shared",
              "netns": n.pod("theirs"), "result": theirs}
    os.makedirs(d + "/cache/results", exist_ok=True)
    with open(d + "/cache/results/shared-theirs-eth0", "w") as f:
        json.dump(cached, f)
    n.add("stays")
    n.add("goes")
    n.close_pod("goes")
    p = n.cni("gc", "stays")
    left = n.left()
    t.check("gc takes ours that is gone", p.returncode == 0 and not any("goes" in x for x in left), p.stderr + str(left))
    kept = [f for f in os.listdir(d + "/cache/networks/shared") if f.startswith("10.")]
    t.check("and leaves ours and theirs", sorted(kept) == sorted([address(theirs), "10.89.0.3"]) and any("theirs" in x for x in rules() or ["theirs"]) and "shared-theirs-eth0" in left, left)
    t.check("theirs still works", plugin(d, "CHECK", "bridge", {**one, "prevResult": theirs}, container="theirs", ns=n.pod("theirs"))[0] == 0)
    # A copy of our own configuration that keeps addresses elsewhere was written for somebody else.
    other = Node(d + "/other")
    t.check("init", other.cni("init", "10.90.0.0/24").returncode == 0)
    with open(d + "/other/conf/10-c8s.conflist") as f:
        conf = json.load(f)
    n.configure(conf, "00-first.conflist")
    code, theirs = plugin(d, "ADD", "bridge", {**conf["plugins"][0], "cniVersion": "1.1.0", "name": conf["name"]}, container="theirs", ns=other.pod("theirs"))
    t.check("a configuration of another one of us", code == 0 and n.cni("gc", "stays").returncode == 0 and os.path.exists(f"{d}/other/cache/networks/{conf['name']}/{address(theirs)}"), theirs)
    t.check("which he may collect", other.cni("gc").returncode == 0 and not os.path.exists(f"{d}/other/cache/networks/{conf['name']}/{address(theirs)}"))


def test_capabilities(t, d):
    n = Node(d)
    script(d, "dump", f"cat > {d}/$CNI_COMMAND; echo '{{}}'")
    ips, ranges = ["10.91.0.77/24"], [[{"subnet": "10.91.0.0/24"}]]
    given = {"mac": "0e:01:02:03:04:05", "ips": ips, "ipRanges": ranges, "dns": {"servers": ["10.0.0.10"]}, "aliases": ["a"], "bandwidth": {"ingressRate": 1}}
    n.configure({"cniVersion": "1.0.0", "name": "caps", "plugins": [{"type": "dump", "capabilities": {
        "mac": True, "ips": True, "ipRanges": True, "dns": True, "aliases": True, "portMappings": True, "bandwidth": False}}]})
    n.add("a", "--capabilities", json.dumps(given), "-p", "[2001:db8::1]:80:8080/udp", "--namespace", "ns", "--name", "pod")
    told = json.load(open(d + "/ADD"))
    want = {**given, "portMappings": [{"hostPort": 80, "containerPort": 8080, "protocol": "udp", "hostIP": "2001:db8::1"}]}
    del want["bandwidth"]
    t.check("a plugin is told what it says it can handle, and no more", told["runtimeConfig"] == want and told["name"] == "caps" and told["cniVersion"] == "1.0.0", told)
    cached = json.load(open(d + "/cache/results/caps-a-eth0"))
    t.check("the cache has all of it, as libcni has", cached["capabilityArgs"] == {**want, "bandwidth": given["bandwidth"]} and ["K8S_POD_NAME", "pod"] in cached["cniArgs"] and
            json.loads(base64.b64decode(cached["config"]))["name"] == "caps" and cached["containerId"] == "a" and cached["netns"] == n.pod("a"), cached)
    n.delete("a")
    told = json.load(open(d + "/DEL"))
    t.check("and so is told at the end", told["runtimeConfig"] == want and "prevResult" in told, told)
    n.configure({"cniVersion": "1.0.0", "name": "caps", "plugins": [{"type": "bridge", "bridge": "br-caps", "capabilities": {"mac": True, "ips": True, "ipRanges": True, "bandwidth": True},
                                                                     "dns": {"nameservers": ["10.0.0.10"]}, "ipam": {"type": "host-local", "dataDir": d + "/cache/networks"}}]})
    a = n.add("a", "--capabilities", json.dumps(given))
    t.check("our plugins handle mac, ips, ipRanges and dns", isinstance(a, dict) and a["interfaces"][2]["mac"] == given["mac"] and a["ips"][0]["address"] == ips[0] and
            a["dns"] == {"nameservers": ["10.0.0.10"]} and given["mac"] in run("ip", "link", "show", "eth0", ns=n.pod("a")).stdout, a)
    t.check("and can be checked and removed", n.cni("check", "--id", "a").returncode == 0 and n.delete("a").returncode == 0 and n.left() == [], n.left())
    t.check("what is no JSON is refused", "--capabilities" in n.add("a", "--capabilities", "{"))


def link(name, ns=None):
    found = json.loads(run("ip", "-d", "-j", "link", "show", name, ns=ns, check=False).stdout or "[]")
    return found[0] if found else {}


def addresses(name, ns=None):
    return [f"{a['local']}/{a['prefixlen']}" for x in json.loads(run("ip", "-j", "addr", "show", name, ns=ns).stdout) for a in x["addr_info"] if a["scope"] == "global"]


def test_bridge(t, d):
    """What a bridge can be told."""
    n = Node(d, plugins=OURS)
    base = {"cniVersion": "1.0.0", "name": "br", "type": "bridge", "bridge": "br-opt", "ipam": {"type": "host-local", "dataDir": d + "/nets", "ranges": [[{"subnet": "10.92.0.0/24"}]]}}

    def add(name, conf, **env):
        code, out = plugin(d, "ADD", "bridge", conf, container=name, ns=n.pod(name), **env)
        return out if code else {**out, "port": link(out["interfaces"][1]["name"]), "pod": link("eth0", n.pod(name))}

    def delete(*names, conf=base):
        return [plugin(d, "DEL", "bridge", conf, container=name, ns=n.pod(name))[0] for name in names] == [0] * len(names)
    a = add("a", base)
    t.check("plain: no address on the bridge, no route in the pod", addresses("br-opt") == [] and a.get("routes") in (None, []) and
            "default" not in run("ip", "route", ns=n.pod("a")).stdout and "gateway" in a["ips"][0], a)
    b = add("b", {**base, "isGateway": True, "hairpinMode": True})
    t.check("isGateway", addresses("br-opt") == ["10.92.0.1/24"] and "default" not in run("ip", "route", ns=n.pod("b")).stdout, addresses("br-opt"))
    hairpin = [x["port"]["linkinfo"]["info_slave_data"]["hairpin"] for x in (a, b)]
    t.check("hairpinMode", hairpin == [False, True], hairpin)
    c = add("c", {**base, "isDefaultGateway": True, "promiscMode": True, "mtu": 1300}, CNI_ARGS="IgnoreUnknown=1;MAC=0e:01:02:03:04:06")
    t.check("isDefaultGateway, and it is named in the result", "default via 10.92.0.1" in run("ip", "route", ns=n.pod("c")).stdout and c["routes"] == [{"dst": "0.0.0.0/0", "gw": "10.92.0.1"}], c)
    t.check("promiscMode", link("br-opt")["promiscuity"] > 0, link("br-opt"))
    t.check("mtu, at both ends", (c["port"]["mtu"], c["pod"]["mtu"]) == (1300, 1300), c)
    t.check("a hardware address by CNI_ARGS", c["pod"]["address"] == "0e:01:02:03:04:06", c)
    moved = {**base, "name": "br2", "isGateway": True, "ipam": {**base["ipam"], "ranges": [[{"subnet": "10.93.0.0/24"}]]}}
    out = add("x", moved)
    t.check("another address on the bridge is in the way", out.get("code") == 999 and "already has an IP address different from 10.93.0.1/24" in out["msg"] and not link("eth0", n.pod("x")), out)
    out = add("x", {**moved, "forceAddress": True})
    t.check("forceAddress", "ips" in out and addresses("br-opt") == ["10.93.0.1/24"], (out, addresses("br-opt")))
    t.check("del", delete("a", "b", "c") and delete("x", conf=moved) and n.left() == [], n.left())
    isolated = {**base, "isGateway": True, "forceAddress": True, "portIsolation": True}
    a, b = add("a", isolated), add("b", isolated)
    n.serve(n.pod("b"), 80)
    n.serve(None, 80)
    t.check("portIsolation: the gateway, but no neighbour", ask(n.pod("a"), address(b), 80, 0.5).startswith("no:") and ask(n.pod("a"), "10.92.0.1", 80) == address(a), (a, b))
    delete("a", "b", conf=isolated)
    six = {**base, "name": "six", "isGateway": True, "ipam": {**base["ipam"], "ranges": [[{"subnet": "fd92::/64"}]]}}
    for name, words, more in (("s1", "", {}), ("s2", ", with duplicate detection", {"enabledad": True})):
        run("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1", ns=n.pod(name))
        out = add(name, {**six, **more})
        there = run("ip", "-6", "addr", "show", "eth0", ns=n.pod(name)).stdout
        t.check("IPv6 in a pod that has it disabled" + words, "ips" in out and "fd92::" in there and "tentative" not in there.split("scope link")[0] and
                ("nodad" in there) == (not more), (out, there))
        delete(name, conf=six)
    n.close()
    run("ip", "link", "del", "br-opt")


def test_vlan(t, d):
    n = Node(d, plugins=OURS)

    def conf(vlan, **more):
        return {"cniVersion": "1.0.0", "name": f"vlan{vlan}", "type": "bridge", "bridge": "br-vlan", "isGateway": True, "vlan": vlan,
                "ipam": {"type": "host-local", "dataDir": d + "/nets", "ranges": [[{"subnet": "10.94.0.0/24", "rangeStart": f"10.94.0.{1 + vlan}"}]]}, **more}

    def vlans(port):
        return {x["ifname"]: sorted((v["vlan"], v.get("vlanEnd", v["vlan"]), "PVID" in v.get("flags", [])) for v in x["vlans"])
                for x in json.loads(run("bridge", "-j", "vlan", "show").stdout)}.get(port)
    for name, wrong, words in (("too large", {"vlan": 4095}, "invalid VLAN ID 4095 (must be between 0 and 4094)"), ("half a trunk", {"vlanTrunk": [{"minID": 1}]}, "maxID is missing"),
                               ("a trunk that ends before it begins", {"vlanTrunk": [{"minID": 2, "maxID": 1}]}, "minID is greater than maxID"), ("no trunk", {"vlanTrunk": [{"id": 0}]}, "incorrect trunk id parameter")):
        code, out = plugin(d, "ADD", "bridge", {**conf(10), **wrong}, container="w", ns=n.pod("w"))
        t.check(f"vlan: {name}", code == 1 and out["code"] == 7 and words in out["msg"], out)
    if run("ip", "link", "add", "br-vlan", "type", "bridge", "vlan_filtering", "1", check=False).returncode:
        code, out = plugin(d, "ADD", "bridge", conf(10), ns=n.pod("w"))
        t.check("vlan: not on this kernel, and nothing is left", code == 1 and "not supported" in out["msg"] and not os.path.exists(d + "/nets/vlan10/10.94.0.11"), out)
        return t.skip("vlan", "this kernel's bridges know no VLANs")
    run("ip", "link", "del", "br-vlan")
    pods = {}
    for name, vlan, more in (("a", 10, {}), ("b", 10, {}), ("c", 20, {"bridge": "br-vlan"}), ("plain", 0, {"isGateway": False}), ("trunk", 0, {"isGateway": False, "vlanTrunk": [{"minID": 10, "maxID": 12}, {"id": 20}]}),
                             ("keeps", 30, {"preserveDefaultVlan": True})):
        code, pods[name] = plugin(d, "ADD", "bridge", conf(vlan, **more), container=name, ns=n.pod(name))
        t.check(f"vlan: {name}", code == 0 and len(pods[name]["interfaces"]) == (4 if vlan else 3), pods[name])
    ports = {name: vlans(p["interfaces"][1]["name"]) for name, p in pods.items()}
    t.check("vlan: ports", ports["a"] == [(10, 10, True)] and ports["c"] == [(20, 20, True)] and ports["plain"] == [(1, 1, True)] and ports["keeps"] == [(1, 1, False), (30, 30, True)], ports)
    t.check("vlan: trunk", ports["trunk"] == [(1, 1, True), (10, 12, False), (20, 20, False)], ports)
    t.check("vlan: the gateway is in it", addresses("br-vlan.10") == ["10.94.0.1/24"] and addresses("br-vlan") == [] and pods["a"]["interfaces"][3]["name"] == "br-vlan.10", pods["a"])
    for name in ("b", "c"):
        n.serve(n.pod(name), 80)
    n.serve(None, 80)
    t.check("vlan: neighbours in it", ask(n.pod("a"), address(pods["b"]), 80) == address(pods["a"]))
    t.check("vlan: nobody in another one", ask(n.pod("a"), address(pods["c"]), 80, 0.5).startswith("no:"))
    t.check("vlan: to the node", ask(n.pod("a"), "10.94.0.1", 80) == address(pods["a"]))
    n.close()
    codes = [plugin(d, "DEL", "bridge", conf(int(p["ips"][0]["address"].split("/")[0].split(".")[3]) // 10 * 10 if name in "abc" else 30 if name == "keeps" else 0), container=name, ns=n.pod(name))[0]
             for name, p in pods.items()]
    taken = [f for f in os.listdir(d + "/nets") for f in os.listdir(f"{d}/nets/{f}") if f.startswith("10.")]
    t.check("vlan: del", codes == [0] * 6 and taken == [], (codes, taken))


def test_check(t, d):
    """CHECK finds whatever is missing, by the chain's plugin that had made it."""
    n = Node(d)
    # No more than one thing is missing at a time.
    for name, damage, words in (
            ("nothing", [], None), ("the link", ["ip", "link", "del", "eth0"], "Interface name eth0 not found"),
            ("an address", ["ip", "addr", "del", "{six}/64", "dev", "eth0"], "Failed to match addr {six}/64 on interface eth0"),
            ("a route", ["ip", "route", "del", "default"], "Expected Route to 0.0.0.0/0 not found in routing table"),
            ("a route of IPv6", ["ip", "-6", "route", "del", "default"], "Expected Route to ::/0 not found in routing table"),
            ("lo", ["ip", "link", "set", "lo", "down"], "loopback interface is down"), ("the bridge's port", None, "CNI veth created for bridge br-test was not found"),
            ("the masquerade", "masquerade", "the rules that masquerade are missing"), ("the host port", "hostports", "missing hostport rules: there are 0 of 2"),
            ("the reservation", "store", "Failed to find address added by container")):
        n.configure(bridge(n.d, ["10.95.0.0/24", "fd95::/64"], name="check"))
        a = n.add("a", "-p", "8080:80")
        if damage is None:
            run("ip", "link", "set", a["interfaces"][1]["name"], "nomaster")
        elif damage == "store":
            os.unlink(f"{d}/cache/networks/check/{address(a)}")
            os.unlink(f"{d}/cache/networks/check/{address(a, True)}")
        elif isinstance(damage, str):
            # In JSON, because the name of a chain may be a word of nft's.
            flush = {"nftables": [{"flush": {"chain": {"family": "inet", "table": "c8s_cni", "name": damage}}}]}
            p = nft("-j", "-f", "-", input=json.dumps(flush))
            if not p or p.returncode:
                t.skip(f"check without {name}", "nft cannot be had")
                continue
        elif damage:
            run(*[x.format(six=address(a, True)) for x in damage], ns=n.pod("a"))
        p = n.cni("check", "--id", "a")
        t.check(f"check: {name} is missing", p.returncode == (1 if words else 0) and (words or "").format(six=address(a, True)) in p.stderr, p.stderr)
        t.check(f"check: {name} is missing: del", n.delete("a").returncode == 0 and n.left() == [], n.left())
        n.close_pod("a")
    p = n.cni("check", "--id", "a")
    t.check("check of nothing", p.returncode == 1 and "is not attached to a network" in p.stderr, p.stderr)


UDP_SERVER = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("0.0.0.0", 81)); print("ready", flush=True)
while True:
    data, peer = s.recvfrom(100); s.sendto(data + b" {name}", peer)
"""


def test_portmap(t, d):
    """Which connections a host port takes, and whom they come from."""
    n = Node(d)
    world = n.pod("world")
    run("ip", "link", "add", "up0", "type", "veth", "peer", "name", "eth0", "netns", world)
    for ns, name, nets in ((None, "up0", ["192.0.2.1/24", "192.0.2.10/24", "2001:db8::1/64", "2001:db8::10/64"]), (world, "eth0", ["192.0.2.2/24", "192.0.2.3/24", "2001:db8::2/64"])):
        for net in nets:
            run("ip", "addr", "add", net, "dev", name, *(["nodad"] if ":" in net else []), ns=ns)
        run("ip", "link", "set", name, "up", ns=ns)

    def conf(**more):
        c = bridge(d, ["10.96.0.0/24", "fd96::/64"], name="ports")
        c["plugins"][1].update(more)
        return c
    for words, ports, more, works, fails in (
            ("hostIP", ["192.0.2.10:8080:80", "[2001:db8::10]:8080:80"], {}, ["192.0.2.10", "2001:db8::10"], ["192.0.2.1", "2001:db8::1"]),
            ("hostIP of one family", ["0.0.0.0:8080:80"], {}, ["192.0.2.1", "192.0.2.10"], ["2001:db8::1"]),
            ("conditions that hold", ["8080:80"], {"conditionsV4": ["-s", "192.0.2.2/32"], "conditionsV6": ["!", "-d", "2001:db8::10"]}, ["192.0.2.1", "2001:db8::1"], ["2001:db8::10"]),
            ("conditions that do not hold", ["8080:80"], {"conditionsV4": ["ip", "saddr", "!=", "192.0.2.2"], "conditionsV6": ["-i", "up1"]}, [], ["192.0.2.1", "2001:db8::1"])):
        n.configure(conf(**more))
        a = n.add("a", *[x for p in ports for x in ("-p", p)])
        n.serve(n.pod("a"), 80)
        for host in works + fails:
            got = ask(world, host, 8080)
            want = "2001:db8::2" if ":" in host else "192.0.2.2"
            t.check(f"{words}: {host}", got == want if host in works else got.startswith("no:"), (got, a, rules()))
        n.close()
        t.check(f"{words}: del", n.delete("a").returncode == 0 and n.left() == [], n.left())
    for snat in (True, False):
        n.configure(conf(snat=snat))
        a, b = n.add("a", "-p", "8080:80"), n.add("b")
        n.serve(n.pod("a"), 80)
        got = tuple(ask(ns, host, 8080, 3 if snat else 0.5) for ns, host in ((n.pod("b"), "192.0.2.1"), (n.pod("a"), "192.0.2.1"), (None, "127.0.0.1")))
        # Without it whether a neighbour gets an answer depends on the node's settings.
        t.check(f"snat {snat}: a neighbour, the pod itself, the node", got == ("10.96.0.1",) * 3 if snat else got[1:] == ("no: timed out",) * 2, (got, rules()))
        t.check(f"snat {snat}: outside", ask(world, "192.0.2.1", 8080) == "192.0.2.2")
        n.close()
        t.check(f"snat {snat}: del", [n.delete(x).returncode for x in "ab"] == [0, 0] and n.left() == [], n.left())
    # A client that goes on sending from one port, while pods come and go.
    n.configure(conf())
    client = subprocess.Popen(["nsenter", "--net=" + world, sys.executable, "-c", """if True:
        import socket, sys
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("192.0.2.2", 5555)); s.connect(("192.0.2.1", 8081)); s.settimeout(0.3)
        for line in sys.stdin:
            try:
                s.send(line.strip().encode()); print(s.recv(100).decode(), flush=True)
            except OSError as e:
                print("no", flush=True)
        """], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def say(words):
        for _ in range(2):  # a refusal may still be on the way
            client.stdin.write(words + "\n")
            got = client.stdout.readline().strip()
        return got
    n.processes.append(client)
    t.check("udp: nobody answers", say("0") == "no")
    for name in ("one", "two"):
        n.add(name, "-p", "8081:81/udp")
        server = subprocess.Popen(["nsenter", "--net=" + n.pod(name), sys.executable, "-c", UDP_SERVER.format(name=name)], stdout=subprocess.PIPE, text=True)
        n.processes.append(server)
        server.stdout.readline()
        got = say("x")
        t.check(f"udp: the client reaches the new pod ({name})", got == "x " + name, got)
        t.check("udp: del", n.delete(name).returncode == 0)
    n.close()
    run("ip", "link", "del", "up0")


# What changes something, or may.
STEPS = ("sendto", "linkat", "renameat", "unlinkat", "write", "mkdir", "setns", "openat")


def test_killed(t, d):
    """kill -9 before every step of a plugin: DEL, or GC, leaves nothing."""
    n = Node(d, plugins=OURS)
    strace = peers.find("strace", peers.PEERS["strace"])
    conf = bridge(d, ["10.85.0.0/24", "fd85::/64"], name="killed", version="1.1.0")
    ports = {"portMappings": [{"hostPort": 8085, "containerPort": 80, "protocol": "udp"}]}
    link, ports = ({**p, "cniVersion": "1.1.0", "name": "killed", "runtimeConfig": ports} for p in conf["plugins"])
    ns = n.pod("k")
    result = plugin(d, "ADD", "bridge", link, container="keep", ns=n.pod("keep"))[1]
    kept = n.left()
    nobody = {"cni.dev/valid-attachments": [{"containerID": "keep", "ifname": "eth0"}]}
    for name, command, first, conf_of in (("bridge", "ADD", False, link), ("bridge", "DEL", True, link), ("portmap", "ADD", False, {**ports, "prevResult": result}),
                                          ("portmap", "DEL", True, {**ports, "prevResult": result})):
        if not strace:
            t.skip(f"{name} {command}", "strace cannot be had")
            continue
        bad, steps = [], 0
        for call in STEPS:
            code, when = None, 0
            while code != 0 and when < 100 and not bad:
                when += 1
                if first:
                    plugin(d, "ADD", name, conf_of, container="k", ns=ns)
                code, _ = plugin(d, command, name, conf_of, container="k", ns=ns, LD_LIBRARY_PATH=peers.libraries()["LD_LIBRARY_PATH"], ASAN_OPTIONS="detect_leaks=0",
                                 under=[strace, "-o", "/dev/null", "-e", f"inject={call}:signal=KILL:when={when}"])
                # As after the end of a namespace: nobody knows any more that there was one.
                if when % 2:
                    run("ip", "link", "del", "eth0", ns=ns, check=False)
                    end = plugin(d, "GC", name, {**conf_of, **nobody})
                else:
                    end = plugin(d, "DEL", name, conf_of, container="k", ns=ns)
                if end[0] or n.left() != kept:
                    bad.append((call, when, end, n.left()))
            steps += when - 1
        t.check(f"{name} {command}: killed before each of {steps} steps", not bad and steps > 3, bad)
    t.check("what was there before is still", plugin(d, "CHECK", "bridge", {**link, "prevResult": result}, container="keep", ns=n.pod("keep"))[0] == 0 and
            plugin(d, "DEL", "bridge", link, container="keep", ns=n.pod("keep"))[0] == 0 and n.left() == [], n.left())


def test_executor_killed(t, d):
    """kill -9 of who calls the plugins, at any moment."""
    n, bad = Node(d, plugins=OURS), []
    n.configure(bridge(d, ["10.85.0.0/24", "fd85::/64"], name="killed", version="1.1.0"))
    for i in range(20):
        name = f"g{i}"
        command = [C8S, "cni", "add", "--conf-dir", d + "/conf", "--bin-dir", d + "/bin", "--cache-dir", d + "/cache", "--id", name, "--netns", n.pod(name), "-p", "8085:80"]
        p = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        time.sleep(random.uniform(0, 0.05))
        os.killpg(p.pid, signal.SIGKILL)
        p.wait()
        time.sleep(0.05)  # its plugins are in groups of their own, and go on to their end
        code = n.cni("gc") if i % 2 else n.delete(name)
        # A file that was being written belongs to an attachment that was not begun; it is swept away after a minute.
        left = [x for x in n.left() if not x.endswith(".new")]
        if code.returncode or left:
            bad.append((i, code.stderr, left))
        n.close_pod(name)
    t.check("after DEL or GC", not bad, bad)


def test_together(t, d):
    """Many at once: every address is given out once, and given back."""
    n, many = Node(d, plugins=OURS), 32
    n.configure(bridge(d, ["10.98.0.0/25", "fd98::/64"], name="many"))
    for i in range(many):
        n.pod(f"m{i}")
    with concurrent.futures.ThreadPoolExecutor(many) as pool:
        results = list(pool.map(lambda i: n.add(f"m{i}", "-p", f"{9000 + i}:80"), range(many)))
        good = [r for r in results if isinstance(r, dict)]
        t.check(f"{many} pods at once", len(good) == many, [r for r in results if not isinstance(r, dict)])
        given = {address(r, v6) for r in good for v6 in (False, True)}
        t.check("no address twice", len(given) == 2 * len(good), sorted(given))
        store = {f for f in os.listdir(d + "/cache/networks/many") if f[:2] in ("10", "fd")}
        t.check("as many as are kept", store == given, sorted(store ^ given))
        # To the pod, and from it and its node by the port; the same without the node for IPv6; two that masquerade.
        t.check("all have their rules", len(rules() or [0] * 7 * many) == 7 * many, len(rules()))
        codes = list(pool.map(lambda i: n.delete(f"m{i}").returncode, range(many)))
    t.check("and del", codes == [0] * many and n.left() == [], n.left())
    ipam = {"cniVersion": "1.0.0", "name": "both", "type": "x", "ipam": {"type": "host-local", "subnet": "10.99.0.0/24", "dataDir": d + "/nets"}}
    theirs = peers.find("host-local", "containernetworking-plugins")
    folders = [None, os.path.dirname(os.path.realpath(theirs))] if theirs else [None]
    with concurrent.futures.ThreadPoolExecutor(many) as pool:
        results = list(pool.map(lambda i: plugin(d, "ADD", "host-local", ipam, container=f"m{i}", ns="/x", folder=folders[i % len(folders)]), range(many)))
    given = {r[1]["ips"][0]["address"] for r in results if r[0] == 0}
    t.check("also together with Debian's plugin", len(given) == many, results)


def test_configurations(t, d):
    n = Node(d)
    for name, content, words in (
            ("no JSON", "{", "error parsing configuration list"),
            ("no name", {"plugins": [{"type": "bridge"}]}, "no name"),
            ("no plugins", {"name": "x", "plugins": []}, "no plugins in list"),
            ("no type", {"name": "x", "plugins": [{}]}, "missing 'type'"),
            ("a bad name", {"name": "../x", "plugins": [{"type": "bridge"}]}, "invalid characters found in network name"),
            ("no such plugin", {"name": "x", "cniVersion": "1.0.0", "plugins": [{"type": "nope"}]}, 'failed to find plugin "nope" in path')):
        with open(d + "/conf/10.conflist", "w") as f:
            f.write(content if isinstance(content, str) else json.dumps(content))
        p = n.cni("status")
        t.check(f"configuration: {name}", p.returncode == 1 and words in p.stderr, p.stderr)
    os.unlink(d + "/conf/10.conflist")
    n.configure({"name": "single", "cniVersion": "0.4.0", "type": "bridge", "bridge": "br-single",
                 "ipam": {"type": "host-local", "subnet": "10.88.0.0/24", "dataDir": d + "/cache/networks"}}, "20.conf")
    n.configure({"name": "later", "cniVersion": "1.0.0", "plugins": [{"type": "nope"}]}, "30.conflist")
    a = n.add("a")
    t.check("the first by name, and a single plugin", isinstance(a, dict) and address(a) == "10.88.0.2", a)
    with open(d + "/cache/results/single-a-eth0") as f:
        cached = json.load(f)
    t.check("the cache is as libcni's", cached["kind"] == "cniCacheV1" and cached["result"]["cniVersion"] == "0.4.0" and cached["networkName"] == "single", cached)
    # DEL uses what ADD was told.
    os.unlink(d + "/conf/20.conf")
    os.unlink(d + "/conf/30.conflist")
    p = n.delete("a")
    t.check("del after the configuration is gone", p.returncode == 0 and n.left() == [], p.stderr + str(n.left()))


def test_broken(t, d):
    """Plugins that do not do what they should, alone and as the plugin for addresses of ours."""
    n = Node(d)
    n.configure({"name": "broken", "cniVersion": "1.0.0", "plugins": [{"type": "broken", "padding": "x" * 300000}]})
    add_only = 'test $CNI_COMMAND = ADD || exit 0\n'
    for name, body, words in (
            ("silent", add_only + "exit 3", "netplugin failed with no error message: exit status 3"), ("loud", add_only + "echo bad >&2; exit 1", 'netplugin failed: "bad"'),
            ("spec", add_only + 'echo \'{"code":7,"msg":"m","details":"d"}\'; exit 1', "failed (add): m; d"), ("odd", add_only + "echo x; exit 1", "diagnostic message"),
            ("killed", add_only + "kill -9 $$", "netplugin failed with no error message: signal: 9"),
            ("no JSON", "echo hello", 'failed to unmarshal raw result "hello"'), ("nothing", "cat >/dev/null", 'failed to unmarshal raw result ""'),
            ("no object", "echo '[1]'", "the result is not an object"), ("another version", "echo '{\"cniVersion\":\"7.0.0\"}'", 'unsupported CNI result version "7.0.0"'),
            ("endless", add_only + "yes", "standard output is larger than 1048576 bytes"),
            ("endless about its errors", add_only + "yes >&2", "standard error is larger than 1048576 bytes"),
            ("hanging", add_only + "sleep 100", "did not end in time"), ("hanging, with a child", add_only + "sleep 100 & wait", "did not end in time")):
        script(d, "broken", body)
        begin = time.monotonic()
        a = n.add("e", "--timeout", "1" if "hanging" in name else "30")
        took = time.monotonic() - begin
        t.check(f"a plugin that fails: {name}", words in str(a) and 'plugin type="broken" failed (add)' in str(a), a)
        t.check(f"a plugin that fails: {name}: known at once, and nothing is left", took < 8 and n.left() == [], (took, n.left()))
    script(d, "broken", "exec 0<&-; sleep 0.1; echo '{}'")
    a = n.add("e")
    t.check("a plugin that does not read what it is told", isinstance(a, dict), a)
    n.delete("e")
    n.configure({"name": "broken", "cniVersion": "1.0.0", "plugins": [{"type": "bridge", "bridge": "br-broken", "ipam": {"type": "broken"}}]})
    for name, body, words in (
            ("no JSON", "echo hello", 'plugin "broken" gave no result in JSON, but "hello'), ("nothing", "true", 'plugin "broken" gave no result in JSON, but nothing'),
            ("no addresses", "echo '{}'", "IPAM plugin returned missing IP config"), ("odd addresses", 'echo \'{"ips":[{"address":"1.2.3"}]}\'', "invalid address: 1.2.3"),
            ("silent", add_only + "exit 4", 'plugin "broken" failed with exit code 4'), ("killed", add_only + "kill -9 $$", 'plugin "broken" failed with exit code 137'),
            ("spec", add_only + 'echo \'{"code":11,"msg":"none","details":"left"}\'; exit 1', "none; left"),
            ("endless", add_only + "yes", 'the answer of plugin "broken" is larger than 1048576 bytes'),
            ("hanging", add_only + "sleep 100", "did not end in time")):
        script(d, "broken", body)
        begin = time.monotonic()
        a = n.add("e", "--timeout", "1" if name == "hanging" else "30")
        took = time.monotonic() - begin
        t.check(f"a plugin for addresses that fails: {name}", words in str(a) and took < 8, (took, a))
        t.check(f"a plugin for addresses that fails: {name}: nothing is left", n.left() == [], n.left())
        n.delete("e")


TESTS = [test_attachments, test_default, test_specification, test_ptp, test_peers, test_peers_chained, test_shared, test_capabilities, test_bridge, test_vlan, test_check, test_portmap, test_killed, test_executor_killed, test_together,
         test_configurations, test_broken]


def in_folder(test):
    def wrapped(t):
        enter_node()
        with tempfile.TemporaryDirectory() as d:
            try:
                test(t, d)
            finally:
                for top, _, names in os.walk(d):
                    for name in names if os.path.basename(top) == "ns" else []:
                        run("umount", os.path.join(top, name), check=False)
    wrapped.__name__ = test.__name__
    return wrapped


if __name__ == "__main__":
    if os.geteuid() != 0:
        t = tap.Tap()
        t.skip("networks of pods", "needs root")
        t.close()
    peers.find("nft", peers.PEERS["nft"])
    peers.find("host-local", "containernetworking-plugins")
    tap.run([in_folder(test) for test in TESTS])
