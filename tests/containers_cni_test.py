#!/usr/bin/env python3
"""Networks of pods: our plugins and Debian's, called by our executor and directly as the specification says. Needs C8S, the program to
test, with c8s-pod beside it, and root. The test moves into network and mount namespaces of its own, which play the node: nothing of
the machine is touched, and all is gone when it ends, however it does."""
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
    s = socket.create_connection(("{host}", {port}), timeout=3); s.settimeout(3); print(s.recv(100).decode())
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
    def __init__(self, folder, ns=None, plugins=()):
        self.d, self.ns = folder, ns
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
                   ns=self.ns, check=False)

    def add(self, name, *args):
        p = self.cni("add", "--id", name, "--netns", self.pod(name), *args)
        return json.loads(p.stdout) if p.returncode == 0 else p.stderr

    def delete(self, name):
        return self.cni("del", "--id", name, "--netns", self.pod(name))

    def serve(self, ns, port):
        p = subprocess.Popen(["nsenter", "--net=" + ns, sys.executable, "-c", SERVER.format(port=port)], stdout=subprocess.PIPE, text=True)
        p.stdout.readline()
        self.processes.append(p)

    def left(self):
        """What is there that belongs to attachments."""
        links = [x["ifname"] for x in json.loads(run("ip", "-j", "link", ns=self.ns).stdout) if x["ifname"].startswith("veth")]
        files = [f for top, _, names in os.walk(self.d + "/cache") for f in names if f != "lock" and not f.startswith("last_reserved")]
        return sorted(links + files + rules(self.ns))

    def close(self):
        for p in self.processes:
            p.kill()
            p.wait()


def ask(ns, host, port):
    return run(sys.executable, "-c", CLIENT.format(host=host, port=port), ns=ns, check=False).stdout.strip()


def nft(*args, ns=None):
    program = peers.find("nft", "nftables libnftables1")
    return run(program, *args, ns=ns, check=False, env=peers.libraries()) if program else None


def rules(ns=None):
    p = nft("list", "table", "inet", "c8s_cni", ns=ns)
    return [line.strip() for line in p.stdout.splitlines() if "comment" in line] if p else []


def bridge(d, ranges, name="testnet", version="1.0.0", **more):
    return {"cniVersion": version, "name": name, "plugins": [
        {"type": "bridge", "bridge": "br-test", "isDefaultGateway": True, "ipMasq": True, "hairpinMode": True,
         "ipam": {"type": "host-local", "dataDir": d + "/cache/networks", "ranges": [[{"subnet": r}] for r in ranges]}, **more},
        {"type": "portmap", "capabilities": {"portMappings": True}}]}


def plugin(d, command, name, conf, container="c1", ns="", ifname="eth0", kill_after=None, folder=None, **env):
    """One plugin, called as the specification says: (exit code, what it printed)."""
    p = subprocess.Popen([f"{folder or d + '/bin'}/{name}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         env={"PATH": os.environ["PATH"], "CNI_COMMAND": command, "CNI_CONTAINERID": container, "CNI_NETNS": ns, "CNI_IFNAME": ifname,
                              "CNI_PATH": d + "/bin", **env})
    if kill_after is not None:
        p.stdin.write(json.dumps(conf))
        p.stdin.close()
        time.sleep(kill_after)
        p.kill()
        return p.wait(), None
    out, _ = p.communicate(json.dumps(conf), timeout=60)
    return p.returncode, json.loads(out) if out.strip() else None


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
            _, lo = plugin(d, "ADD", "loopback", {**conf, "type": "loopback", "prevResult": out}, ns=n.pod("p"))
            t.check(f"a result passes through {version}", lo == out, lo)
        code, out = plugin(d, "DEL", "bridge", conf, ns=n.pod("p"))
        t.check(f"DEL {version}", code == 0 and out is None, out)
    base = {"cniVersion": "1.0.0", "name": "spec", "type": "bridge", "bridge": "br-spec"}
    for name, command, conf, env, number, words in (
            ("a version that we do not know", "ADD", {**base, "cniVersion": "9.0.0"}, {}, 1, "incompatible CNI versions"),
            ("a field that is not supported", "ADD", {**base, "vlan": 5}, {}, 2, "vlan"),
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


def test_killed(t, d):
    """kill -9 at any moment of ADD: DEL, or GC, leaves nothing."""
    n = Node(d, plugins=OURS)
    conf = bridge(d, ["10.85.0.0/24", "fd85::/64"], name="killed", version="1.1.0")
    n.configure(conf)
    one = {**conf["plugins"][0], "cniVersion": "1.1.0", "name": "killed"}
    bad = []
    for i in range(40):
        name = f"k{i}"
        plugin(d, "ADD", "bridge", one, container=name, ns=n.pod(name), kill_after=random.uniform(0, 0.012))
        code, out = plugin(d, "DEL", "bridge", one, container=name, ns=n.pod(name))
        if code or n.left():
            bad.append((i, code, out, n.left()))
        n.close_pod(name)
    t.check("after DEL", not bad, bad)
    bad = []
    for i in range(15):
        name = f"g{i}"
        command = [C8S, "cni", "add", "--conf-dir", d + "/conf", "--bin-dir", d + "/bin", "--cache-dir", d + "/cache", "--id", name, "--netns", n.pod(name), "-p", "8085:80"]
        p = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        time.sleep(random.uniform(0, 0.05))
        os.killpg(p.pid, signal.SIGKILL)
        p.wait()
        time.sleep(0.1)  # its plugins are in groups of their own, and go on to their end
        code = n.cni("gc")
        # A file that was being written belongs to an attachment that was not begun; it is swept away after a minute.
        left = [x for x in n.left() if not x.endswith(".new")]
        if code.returncode or left:
            bad.append((i, code.stderr, left))
        n.close_pod(name)
    t.check("after GC", not bad, bad)


def test_nodes(t, d):
    """Pods of two nodes: by routes on a shared link, by VXLAN behind a router."""
    ours = Node(d + "/n1")
    router = ours.pod("router")
    run("sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1", ns=router)
    far_ns = ours.pod("far")
    far = Node(d + "/n2", ns=far_ns)
    run("ip", "link", "set", "lo", "up", ns=far_ns)
    for kind, shared in (("routes", True), ("VXLAN", False)):
        if shared:
            run("ip", "link", "add", "n1", "type", "veth", "peer", "name", "n2", "netns", far_ns)
            own, other = "198.51.100.1", "198.51.100.2"
        else:
            run("ip", "link", "add", "n1", "type", "veth", "peer", "name", "r1", "netns", router)
            run("ip", "link", "add", "r2", "netns", router, "type", "veth", "peer", "name", "n2", "netns", far_ns)
            own, other = "198.51.100.1", "203.0.113.1"
            for link, net in (("r1", "198.51.100.254/24"), ("r2", "203.0.113.254/24")):
                run("ip", "addr", "add", net, "dev", link, ns=router)
                run("ip", "link", "set", link, "up", ns=router)
        for ns, link, net in ((None, "n1", own), (far_ns, "n2", other)):
            run("ip", "addr", "add", net + "/24", "dev", link, ns=ns)
            run("ip", "link", "set", link, "up", ns=ns)
            if not shared:
                run("ip", "route", "add", "default", "via", net.rsplit(".", 1)[0] + ".254", ns=ns)
        for n, i in ((ours, 1), (far, 2)):
            n.configure(bridge(n.d, [f"10.86.{i}.0/24", f"fd86:0:0:{i}::/64"], name=f"node{i}"))
        a, b = ours.add("a"), far.add("b")
        t.check(f"{kind}: attached", isinstance(a, dict) and isinstance(b, dict), (a, b))
        far.serve(far.pod("b"), 80)
        ways1, ways2 = [f"10.86.2.0/24={other}", f"fd86:0:0:2::/64={other}"], [f"10.86.1.0/24={own}", f"fd86:0:0:1::/64={own}"]
        for _ in range(2):  # again: nothing changes
            p, q = ours.cni("routes", "--address", own, *ways1), far.cni("routes", "--address", other, *ways2)
            t.check(f"{kind}: set", p.returncode == 0 and q.returncode == 0, p.stderr + q.stderr)
        for v6 in (False, True):
            got = ask(ours.pod("a"), address(b, v6), 80)
            t.check(f"{kind}: from pod to pod of another node by {'IPv6' if v6 else 'IPv4'}, with its own address", got == address(a, v6),
                    got + run("ip", "route").stdout + run("ip", "-6", "route").stdout + "\n".join(rules()))
        links = run("ip", "-br", "link").stdout
        # A way of IPv6 to a node that is known by an address of IPv4 needs the tunnel also on a shared link.
        t.check(f"{kind}: the tunnel is there", "c8s-vxlan" in links, links)
        bad = ours.cni("routes", "--address", own, ways1[0], "10.87.0.0/24=nonsense")
        t.check(f"{kind}: one that makes no sense is reported, the others stay", bad.returncode == 1 and "10.86.2.0/24" in run("ip", "route").stdout, bad.stderr)
        p, q = ours.cni("routes", "--address", own), far.cni("routes", "--address", other)
        text = run("ip", "route").stdout + run("ip", "-6", "route").stdout + run("ip", "-br", "link").stdout
        t.check(f"{kind}: removed", p.returncode == 0 and q.returncode == 0 and "86.2." not in text and "vxlan" not in text, p.stderr + q.stderr + text)
        far.close()
        t.check(f"{kind}: del", ours.delete("a").returncode == 0 and far.delete("b").returncode == 0)
        run("ip", "link", "del", "n1")
        t.check(f"{kind}: nothing is left", ours.left() + far.left() == [], ours.left() + far.left())
        if not shared:
            run("ip", "link", "del", "r2", ns=router)


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
    script = d + "/bin/broken"
    for name, body, words in (("silent", "exit 3", "netplugin failed with no error message: exit status 3"), ("loud", "echo bad >&2; exit 1", 'netplugin failed: "bad"'),
                              ("spec", 'echo \'{"code":7,"msg":"m","details":"d"}\'; exit 1', "failed (add): m; d"), ("odd", "echo x; exit 1", "diagnostic message")):
        with open(script, "w") as f:
            f.write("#!/bin/sh\n" + body + "\n")
        os.chmod(script, 0o755)
        n.configure({"name": "broken", "cniVersion": "1.0.0", "plugins": [{"type": "broken"}]})
        a = n.add("e")
        t.check(f"a plugin that fails: {name}", words in str(a) and 'plugin type="broken" failed (add)' in str(a), a)


TESTS = [test_attachments, test_default, test_specification, test_ptp, test_peers, test_killed, test_nodes, test_configurations]


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
    peers.find("nft", "nftables libnftables1")
    peers.find("host-local", "containernetworking-plugins")
    tap.run([in_folder(test) for test in TESTS])
