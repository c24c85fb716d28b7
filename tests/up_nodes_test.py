"""Machines that make one cluster, as users make it: `c8s up` on one, and on the others the command that `c8s token create` prints. Machines are
network namespaces: two share a link, the third is behind a router. Pods of all of them reach each other; what a node that is gone had is gone, too.
Needs C8S, the program to test, with c8s-pod beside it, and root."""
import base64
import hashlib
import ipaddress
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import nodes  # noqa: E402
import peers  # noqa: E402
import tap  # noqa: E402
from up_test import make_images  # noqa: E402

C8S = peers.C8S
LOG_MAX, LINE = 16 << 20, "a line of a log\n"
PODS, DEVICE = ipaddress.ip_network("10.218.0.0/16"), "c8s-vxlan"


def ip(*args, ns=None):
    enter = ["nsenter", "--net=/run/netns/" + ns] if ns else []
    return subprocess.run([*enter, "ip", *args], capture_output=True, text=True, check=True).stdout


class Machine:
    """A network namespace with an address, behind a link of the test's own, which forwards."""

    def __init__(self, folder, name, address, router):
        self.folder, self.name, self.address = folder, name, address
        self.ns = f"c8s-test-{os.getpid()}-{name}"
        self.data = os.path.join(folder, name)
        self.env = {**os.environ, "HOME": folder, "C8S_PEERS": peers.FOLDER}
        self.env.pop("KUBECONFIG", None)
        ip("netns", "add", self.ns)
        ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", self.ns)
        ip("link", "set", name, "up", "master", router["link"])
        ip("link", "set", "lo", "up", ns=self.ns)
        ip("address", "add", address + "/24", "dev", "eth0", ns=self.ns)
        ip("link", "set", "eth0", "up", ns=self.ns)
        ip("route", "add", "default", "via", router["address"], ns=self.ns)

    def run(self, *args, timeout=60):
        return subprocess.run(["nsenter", "--net=/run/netns/" + self.ns, *args], env=self.env, capture_output=True, text=True, timeout=timeout)

    def c8s(self, *args):
        return self.run(C8S, *args, "--data-dir", self.data)

    def kubectl(self, *args):
        return self.run(peers.find("kubectl", "kubernetes-client"), *args)

    def ways(self):
        """Where it sends what is for pods of others."""
        return sorted(line.split()[0] for line in ip("route", "show", "proto", "200", ns=self.ns).splitlines())

    def tag(self):
        return hashlib.sha256(self.data.encode()).hexdigest()[:8]

    def processes(self, monitors=True):
        return [pid for pid in tap.pids_of(self.data + "/") if monitors or "monitor" not in tap.arguments(pid)]

    def traces(self):
        links = [line for line in ip("-o", "link", ns=self.ns).splitlines() if "c8s" in line or "veth" in line.split("@")[0]]
        return links + self.ways() + [path for path in (self.data, "/run/c8s/" + self.tag()) if os.path.exists(path)]

    def close(self):
        if os.path.exists(os.path.join(self.data, "up.yaml")):
            self.c8s("reset")
        tap.kill_all(self.processes())
        subprocess.run(["ip", "netns", "del", self.ns])


def make_network():
    """Two links with a router between them: ourselves."""
    routers = []
    for i, address in enumerate(("198.51.100.254", "203.0.113.254")):
        link = f"lan{i}"
        ip("link", "add", link, "type", "bridge")
        ip("address", "add", address + "/24", "dev", link)
        ip("link", "set", link, "up")
        routers.append({"link": link, "address": address})
    subprocess.run(["sysctl", "-qw", "net.ipv4.ip_forward=1"], check=True)
    return routers


def cluster_ranges(m):
    items = json.loads(m.kubectl("get", "nodes", "-o", "json").stdout)["items"]
    return {i["metadata"]["name"]: i["spec"].get("podCIDR") for i in items}


def tell_two_authorities(first):
    """From now on the cluster shows a bundle, in which the authority whose hash is known comes second: one that is being replaced does so."""
    def read():
        return json.loads(first.kubectl("get", "cm", "-n", "kube-public", "cluster-info", "-o", "json").stdout)["data"]
    other = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "/dev/null", "-subj", "/CN=other"],
                           capture_output=True, check=True).stdout
    before = read()
    old = before["kubeconfig"].split("certificate-authority-data: ")[1].split()[0]
    both = before["kubeconfig"].replace(old, base64.b64encode(other + base64.b64decode(old)).decode())
    first.kubectl("patch", "cm", "-n", "kube-public", "cluster-info", "-p", json.dumps({"data": {"kubeconfig": both}}))
    signatures = {k: v for k, v in before.items() if k.startswith("jws-")}
    tap.wait_for(lambda: all(read().get(k) != v for k, v in signatures.items()), 10)


def test_join(t, machines):
    first, images = machines[0], os.path.join(machines[0].folder, "images")
    make_images(images)
    r = first.c8s("up", "--detach", "--node-name", first.name, "--pod-cidr", str(PODS), "--images", images)
    t.check("up", r.returncode == 0, r.stdout + r.stderr)
    command = first.c8s("token", "create").stdout.split()
    t.check("the command to join names an address that others reach", command[:3] == ["c8s", "join", f"https://{first.address}:6443"], command)
    told = first.kubectl("get", "cm", "-n", "kube-public", "cluster-info", "-o", "jsonpath={.data.kubeconfig}").stdout
    t.check("so does what the cluster says of itself", f"https://{first.address}:6443" in told, told)
    for m in machines[1:]:
        r = m.c8s(*command[1:], "--detach", "--node-name", m.name, "--images", images)
        t.check(f"{m.name} joins by it", r.returncode == 0 and f"node {m.name} is Ready" in r.stdout, r.stdout + r.stderr)
        if m is not machines[-1]:
            tell_two_authorities(first)


def test_pods(t, machines):
    first = machines[0]
    for m in machines:
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": m.name}, "spec": {"nodeName": m.name, "containers": [{"name": "web", "image": "example.com/web:1"}]}}
        path = os.path.join(m.folder, m.name + ".json")
        with open(path, "w") as f:
            json.dump(pod, f)
        first.kubectl("create", "-f", path)
    r = first.kubectl("wait", "--for=condition=Ready", "pod", *[m.name for m in machines], "--timeout=30s")
    t.check("a pod on each", r.returncode == 0, r.stderr + first.kubectl("describe", "pods").stdout[-1500:])
    ranges, addresses = cluster_ranges(first), {}
    for m in machines:
        addresses[m.name] = first.kubectl("get", "pod", m.name, "-o", "jsonpath={.status.podIP}").stdout
    t.check("each has an address of its node's range", all(ipaddress.ip_address(addresses[n]) in ipaddress.ip_network(r) for n, r in ranges.items()), (addresses, ranges))
    for m in machines:
        others = sorted(r for n, r in ranges.items() if n != m.name)
        t.check(f"{m.name} knows the way to the others", tap.wait_for(lambda m=m, others=others: m.ways() == others, 10), (m.ways(), others))
    for a in machines:
        for b in machines:
            if a is not b:
                r = first.kubectl("exec", a.name, "--", "busybox", "timeout", "5", "wget", "-qO-", f"http://{addresses[b.name]}/")
                t.check(f"the pod on {a.name} reaches the one on {b.name}", r.stdout == "it answers\n", r.stderr)


def test_thief(t, machines):
    """A node that says that it has the pods of another one."""
    first, victim = machines[0], machines[1]
    ways, lan, log = first.ways(), ip("route", ns=first.ns), os.path.join(first.data, "log", "node.log")
    ranges = [cluster_ranges(first)[victim.name]]
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a-thief"}, "spec": {"podCIDR": ranges[0], "podCIDRs": ranges},
            "status": {"addresses": [{"type": "InternalIP", "address": "198.51.100.99"}]}}
    path = os.path.join(first.folder, "thief.json")
    with open(path, "w") as f:
        json.dump(node, f)
    r = first.kubectl("create", "-f", path)

    def warned():
        with open(log) as f:
            return f"pods {ranges[0]} of node 198.51.100.99: node {victim.address} has {ranges[0]}" in f.read()
    t.check("a node that names another one's pods is told of", r.returncode == 0 and tap.wait_for(warned, 10), r.stderr)
    t.check("and gets nothing", first.ways() == ways and ip("route", ns=first.ns) == lan, ip("route", ns=first.ns))
    first.kubectl("delete", "node", "a-thief")


def test_gone(t, machines):
    first, second, third = machines
    lost = cluster_ranges(first)[third.name]
    r = third.c8s("reset")
    t.check("reset of a node that joined leaves nothing", r.returncode == 0 and third.traces() == [], (r.stderr, third.traces()))
    first.kubectl("delete", "node", third.name)
    for m in (first, second):
        t.check(f"a node is deleted: {m.name} has no way to it any more", tap.wait_for(lambda m=m: lost not in m.ways() and DEVICE not in ip("link", ns=m.ns), 10), m.ways())
    t.check("the way between the others stays", len(first.ways()) == 1 == len(second.ways()), (first.ways(), second.ways()))
    ip("route", "flush", "proto", "200", ns=first.ns)
    first.c8s("down", "--keep-containers")
    log = os.path.join(first.data, "log", "long.log")
    with open(log, "a") as writer:
        writer.write(LINE * (LOG_MAX // len(LINE) + 10))
        writer.flush()
        r = first.c8s("up", "--detach")
        t.check("what somebody has removed is there again after a start", r.returncode == 0 and tap.wait_for(lambda: len(first.ways()) == 1, 10), r.stdout + r.stderr)
        t.check("a log that has become long is made short", tap.wait_for(lambda: os.path.getsize(log) == 0 and os.path.getsize(log + ".1") == LOG_MAX, 15))
        writer.write(LINE)
    with open(log) as now, open(log + ".1") as before:
        t.check("under who writes it, and without a loss", now.read() == LINE and before.read().endswith(LINE * 10))
    for m in (second, first):
        r = m.c8s("reset")
        t.check(f"reset leaves nothing of {m.name}", r.returncode == 0 and m.traces() == [], (r.stderr, m.traces()))


def test_install(t, machines):
    m = machines[2]
    units = os.path.join(m.folder, "units")
    shown = m.c8s("install", "--print", "--secure-port", "7443", "--manifests", "a b").stdout
    t.check("install --print shows a unit that passes flags on", f"up --data-dir={m.data} " in shown and " --secure-port=7443" in shown and
            f'"--manifests={os.getcwd()}/a b"' in shown and "KillMode=process\n" in shown and "Type=notify\n" in shown and not os.path.exists(m.data), shown)
    r = m.c8s("install", "--unit-dir", units)
    made = os.path.join(units, f"c8s-{m.tag()}.service")
    t.check("install writes it", r.returncode == 0 and os.listdir(units) == [os.path.basename(made)], r.stdout + r.stderr)
    if shutil.which("systemd-analyze"):
        r = subprocess.run(["systemd-analyze", "verify", made], capture_output=True, text=True)
        t.check("systemd has nothing to say against it", r.returncode == 0 and not r.stderr, r.stderr)
    r = m.c8s("install", "--uninstall", "--unit-dir", units)
    t.check("install --uninstall removes it", r.returncode == 0 and os.listdir(units) == [], r.stdout + r.stderr)
    r = m.c8s("install", "--server", "https://192.0.2.1:6443", "--token", "abcdef.0123456789abcdef")
    t.check("a token does not get into a unit, which all can read", r.returncode == 2 and "first start" in r.stderr, r.stderr)


def test_service(t, machines):
    """As systemd starts it: in the foreground, and told when it is ready; with the rest of a life: another name, a file that was tampered with."""
    m, path = machines[2], os.path.join(machines[2].folder, "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        manager.settimeout(60)
        process = subprocess.Popen(["nsenter", "--net=/run/netns/" + m.ns, C8S, "up", "--data-dir", m.data, "--node-name", "before", "--pod-cidr", "10.219.0.0/16",
                                    "--images", os.path.join(m.folder, "images")],
                                   env={**m.env, "NOTIFY_SOCKET": path}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        t.check("a service manager is told when the cluster is there", manager.recv(4096).startswith(b"READY=1\n"))
        for pid in m.processes():
            with open(f"/proc/{pid}/environ") as f:
                t.check("parts of the cluster do not hear of it", pid == process.pid or "NOTIFY_SOCKET" not in f.read())
        process.terminate()
        t.check("and when it stops", manager.recv(4096).startswith(b"STOPPING=1") and process.wait(30) == 0)
    admin, trap = os.path.join(m.data, "control-plane", "admin.conf"), os.path.join(m.folder, "trap")
    with open(admin) as f:
        text = f.read()
    with open(admin, "w") as f:
        f.write(text.replace("  user:\n", f"  user:\n    exec: {{ apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: touch, args: [ {trap} ] }}\n"))
    r = m.c8s("up", "--detach", "--node-name", "after")
    t.check("a node that is called otherwise has a certificate of its new name", r.returncode == 0 and "node after is Ready" in r.stdout, r.stdout + r.stderr)
    with open(os.path.join(m.folder, ".kube", "config")) as f:
        t.check("what the control plane's user writes is not run by root", f"c8s-{m.tag()}" in f.read() and not os.path.exists(trap))
    with open(os.path.join(m.folder, ".kube", "config")) as f:
        t.check("nor gets into root's kubeconfig", "touch" not in f.read())


def test_machine_stops(t, machines):
    """As its unit does it when the service has stopped. systemd, which says whether the machine stops, too, is a script here."""
    m = machines[2]
    context, saved, programs = ("--context", f"c8s-{m.tag()}"), os.path.join(m.folder, "saved"), os.path.join(m.folder, "bin")
    # One is the first of its namespace and does not hear of a signal that it does not catch; the other one shares that of its pod, and saves what it has.
    save = f"trap 'sleep 0.5; touch {saved}/here; exit' TERM; while true; do sleep 0.1; done"
    for name, spec, more in (("deaf", {}, {"command": ["sh", "-c", "while true; do sleep 0.1; done", saved]}),
                             ("saves", {"shareProcessNamespace": True, "volumes": [{"name": "v", "hostPath": {"path": saved, "type": "DirectoryOrCreate"}}]},
                              {"command": ["sh", "-c", save], "volumeMounts": [{"name": "v", "mountPath": saved}]})):
        container = {"name": name, "image": "example.com/web:1", **more}
        m.kubectl(*context, "run", name, "--image", "example.com/web:1", "--overrides",
                  json.dumps({"spec": {"nodeName": "after", "hostNetwork": True, "containers": [container], **spec}}))
    r = m.kubectl(*context, "wait", "--for=condition=Ready", "pod/deaf", "pod/saves", "--timeout=30s")
    t.check("pods run", r.returncode == 0, r.stderr)
    m.c8s("down", "--keep-containers")
    os.mkdir(programs)

    def left():
        return tap.pids_of(saved) + tap.pids_of(f"/run/c8s/{m.tag()}/")  # processes of containers, monitors

    for state, runs in (("running", True), ("starting", True), ("stopping", False)):
        with open(os.path.join(programs, "systemctl"), "w") as f:
            f.write(f"#!/bin/sh\n[ $1 = show ] || echo {state}\n")
        os.chmod(f.name, 0o755)
        began = time.monotonic()
        r = m.run("env", f"PATH={programs}:{os.environ['PATH']}", C8S, "install", "--stopped", "--data-dir", m.data)
        if not runs:
            tap.wait_for(lambda: not left(), 5)  # monitors were killed just now
        t.check(f"systemd is {state}: containers {'run on' if runs else 'end'}", r.returncode == 0 and bool(left()) == runs,
                (r.stderr, left()))
    t.check("soon, and after they have saved what they have", os.listdir(saved) == ["here"] and time.monotonic() - began < 10, os.listdir(saved))
    r = m.c8s("up", "--detach")
    t.check("when the machine is back, so is the cluster", r.returncode == 0, r.stdout + r.stderr)
    m.kubectl(*context, "delete", "pod", "deaf", "saves", "--now")


def test_half_removed(t, machines):
    """Everything is killed, and what the runtime knew of its containers and their monitors is gone: they still run, and reset finds them."""
    m = machines[2]
    # On the host's network, and without a scheduler: nothing that needs a controller, which is not there at once after a start.
    spec = json.dumps({"spec": {"nodeName": "after", "hostNetwork": True}})
    m.kubectl("--context", f"c8s-{m.tag()}", "run", "web", "--image", "example.com/web:1", "--overrides", spec)
    r = m.kubectl("--context", f"c8s-{m.tag()}", "wait", "--for=condition=Ready", "pod/web", "--timeout=30s")
    t.check("a pod runs", r.returncode == 0, r.stderr)
    with open(os.path.join(m.data, "lock")) as f:
        os.kill(int(f.read()), signal.SIGKILL)
    tap.wait_for(lambda: not m.processes(monitors=False), 20)
    for name in ("oci", "pods"):
        shutil.rmtree(f"/run/c8s/{m.tag()}/runtime/{name}", ignore_errors=True)  # but for what is mounted there
    began = time.monotonic()
    r = m.c8s("reset")
    t.check("reset of what is half removed ends soon", r.returncode == 0 and time.monotonic() - began < 10 and m.traces() == [] and not m.processes(), (r.stderr, m.traces(), m.processes()))


def main():
    t = tap.Tap()
    if why := nodes.missing(registry=False):
        t.skip("clusters of several machines", why)
        t.close()
    nodes.own_namespaces()
    folder = tempfile.mkdtemp(prefix="c8s-test-nodes-")
    os.chmod(folder, 0o755)  # the control plane's user has to pass
    lans = make_network()
    machines = []
    try:
        for name, address, lan in (("m1", "198.51.100.1", lans[0]), ("m2", "198.51.100.2", lans[0]), ("m3", "203.0.113.3", lans[1])):
            machines.append(Machine(folder, name, address, lan))
        for test in (test_join, test_pods, test_thief, test_gone, test_install, test_service, test_machine_stops, test_half_removed):
            test(t, machines)
    finally:
        for m in machines[::-1]:
            m.close()
        shutil.rmtree(folder, ignore_errors=True)
    t.close()


if __name__ == "__main__":
    main()
