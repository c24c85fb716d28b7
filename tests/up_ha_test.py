"""A cluster of several machines: three control planes on an etcd of three members, each with a node, and a fourth machine that has joined through the
first one. Every machine is a network namespace of its own, on one bridge. While clients write without a pause, one thing after the other is taken away:
a whole machine, the control plane that leads, a member of etcd, and, by its cable, another machine. What was acknowledged stays, the API answers
again within seconds, pods of machines that are gone are replaced, and every server tells the same story in the end.

HA_ROUNDS=N in the environment plays the losses N times, with other machines each time; HA_LOGS=FOLDER leaves the logs of all machines there."""
import base64
import http.client
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import images  # noqa: E402
import nodes  # noqa: E402
import peers  # noqa: E402
import tap  # noqa: E402

C8S = peers.C8S
ROUNDS = int(os.environ.get("HA_ROUNDS", 1))
SILENCE_MAX = 12  # seconds without an acknowledged write
# Kubernetes' own times are minutes; these are for a test, and as a user would set them.
CONTROL = ["node-monitor-grace-period=5s", "node-monitor-period=500ms", "leader-elect-lease-duration=4s", "leader-elect-renew-deadline=3s",
           "leader-elect-retry-period=500ms"]
WITH_US = ["setpriv", "--pdeathsig", "KILL"]  # in front of a command: it ends when we do, however that is
LEASE = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nnodeLeaseDurationSeconds: 2\n"


class Machine:
    """A namespace with a cable to the bridge, a host name, and what runs in it."""

    def __init__(self, world, i):
        self.world, self.i, self.name, self.ip = world, i, f"m{i}", f"10.77.0.{10 + i}"
        self.folder = os.path.join(world.folder, self.name)
        self.data = os.path.join(self.folder, "data")
        os.makedirs(self.folder)
        self.etcd = None
        self.holder = subprocess.Popen([*WITH_US, "unshare", "--net", "--uts", "sh", "-c", f"hostname {self.name} && echo && exec sleep infinity"],
                                       stdout=subprocess.PIPE)
        self.holder.stdout.readline()
        self.cable = f"c{i}"
        for command in (f"ip link add {self.cable} type veth peer name eth0 netns {self.holder.pid}", f"ip link set {self.cable} master br0 up"):
            subprocess.run(command.split(), check=True)
        for command in ("ip link set lo up", f"ip addr add {self.ip}/24 dev eth0", "ip link set eth0 up", "ip route add default via 10.77.0.1"):
            subprocess.run(self.inside(*command.split()), check=True)

    def inside(self, *args):
        return ["nsenter", "-t", str(self.holder.pid), "-n", "-u", *args]

    def run(self, *args):
        env = {**os.environ, "HOME": self.folder, "C8S_PEERS": peers.FOLDER}
        env.pop("KUBECONFIG", None)
        return subprocess.run(self.inside(C8S, args[0], *args[1:], "--data-dir", self.data), env=env, capture_output=True, text=True, timeout=150)

    def start_etcd(self):
        url, peer = f"http://{self.ip}:2379", f"http://{self.ip}:2380"
        with open(os.path.join(self.folder, "etcd.log"), "ab") as log:
            self.etcd = subprocess.Popen(
                WITH_US +
                self.inside(peers.find("etcd", "etcd-server"), "--name", self.name, "--data-dir", os.path.join(self.world.etcd, self.name), "--initial-cluster",
                            ",".join(f"m{k}=http://10.77.0.{10 + k}:2380" for k in (1, 2, 3)), "--listen-client-urls", url, "--advertise-client-urls", url,
                            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
                stdout=log, stderr=log, env={**os.environ, "ETCD_UNSUPPORTED_ARCH": "arm64"})

    def etcd_well(self):
        """Does this member know a leader?"""
        c = http.client.HTTPConnection(self.ip, 2379, timeout=1)
        try:
            c.request("GET", "/health")
            return c.getresponse().status == 200
        except OSError:
            return False
        finally:
            c.close()

    def stop_etcd(self):
        if self.etcd:
            self.etcd.kill()
            self.etcd.wait()

    def up(self, *args):
        flags = [x for arg in CONTROL for x in ("--control-plane-arg", arg)]
        return self.run("up", "--detach", "--etcd-servers", ",".join(f"http://10.77.0.{10 + k}:2379" for k in (1, 2, 3)), *flags, *self.node_flags(), *args)

    def node_flags(self):
        return "--images", self.world.images, "--kubelet-arg", "config-dir=" + self.world.config, "--node-name", self.name

    def processes(self):
        return tap.pids_of(self.data + "/")

    def pid(self, part):
        for name in os.listdir("/run/c8s"):
            try:
                with open(f"/run/c8s/{name}/{part}.pid") as f:
                    pid = int(f.read())
            except OSError:
                continue
            if self.data + "/" in tap.arguments(pid):
                return pid
        return None

    def kill(self):
        """As if its power were cut: nothing of it runs any more, and what is not on disk is gone."""
        with open(os.path.join(self.data, "lock")) as f:
            os.kill(int(f.read()), signal.SIGKILL)
        self.stop_etcd()
        while found := self.processes():
            tap.kill_all(found)
        with open("/proc/self/mounts") as f:
            for path in [line.split()[1] for line in f if self.data in line][::-1]:
                subprocess.run(["umount", "-l", path], capture_output=True)

    def cut(self, cut=True):
        subprocess.run(["ip", "link", "set", self.cable, "down" if cut else "up"], check=True)

    def log(self, name="control-plane"):
        try:
            with open(os.path.join(self.data, "log", name + ".log")) as f:
                return f.read()
        except OSError:
            return ""

    def close(self):
        if os.path.exists(os.path.join(self.data, "up.yaml")):
            self.run("reset")
        tap.kill_all(self.processes())
        self.stop_etcd()
        self.holder.kill()
        self.holder.wait()


class Client:
    """As the administrator, to one server after the other. One thread's."""

    def __init__(self, world):
        self.world, self.at, self.connections = world, 0, {}

    def once(self, machine, method, path, body=None, timeout=2):
        """Status and document, or None: there was no answer."""
        c = self.connections.pop(machine.i, None) or http.client.HTTPSConnection(machine.ip, 6443, context=self.world.tls, timeout=timeout)
        try:
            c.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"})
            answer = c.getresponse()
            document = json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError):
            c.close()
            return None, None
        self.connections[machine.i] = c
        return answer.status, document

    def any(self, method, path, body=None, seconds=30):
        """By whichever answers, until it is no failure of the server."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            status, document = self.once(self.world.servers[self.at], method, path, body)
            if status and status < 500 and status != 429:
                return status, document
            self.at = (self.at + 1) % len(self.world.servers)
        raise TimeoutError(f"{method} {path}: nobody answered for {seconds} s")

    def get(self, path):
        return self.any("GET", path)[1]


class Writer(threading.Thread):
    """Writes without a pause, and remembers what was acknowledged and for how long nothing was."""

    def __init__(self, world, name):
        super().__init__(daemon=True)
        self.client, self.name, self.acknowledged, self.silence, self.ended, self.wrong = Client(world), name, [], 0, False, []
        self.client.at = len(name) % 3

    def run(self):
        n, last = 0, time.monotonic()
        while not self.ended:
            name = f"{self.name}-{n}"
            status, said = self.client.any("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": name, "labels": {"by": "writer"}}}, 120)
            if status in (201, 409):  # 409: an attempt before this one was carried out, and its answer got lost
                self.acknowledged.append(name)
            else:
                self.wrong.append(said)
            now = time.monotonic()
            self.silence, last, n = max(self.silence, now - last), now, n + 1
            time.sleep(0.02)


class Bindings(threading.Thread):
    """Which nodes each pod was on."""

    def __init__(self, world):
        super().__init__(daemon=True)
        self.world, self.nodes, self.ended = world, {}, False

    def run(self):
        client = Client(self.world)
        while not self.ended:
            for pod in client.get("/api/v1/namespaces/default/pods")["items"]:
                if node := pod["spec"].get("nodeName"):
                    self.nodes.setdefault(pod["metadata"]["uid"], set()).add(node)
            time.sleep(0.2)


class World:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="c8s-test-ha-")
        os.chmod(self.folder, 0o755)  # the control planes' users have to pass
        self.images, self.config = os.path.join(self.folder, "images"), os.path.join(self.folder, "kubelet.d")
        self.etcd = os.path.join(self.folder, "etcd")
        for folder in (self.images, self.config, self.etcd):
            os.makedirs(folder)
        # Processes are killed here, not disks: etcd need not wait for one that others keep busy.
        subprocess.run(["mount", "-t", "tmpfs", "etcd", self.etcd], check=True)
        with open(os.path.join(self.config, "10-lease.conf"), "w") as f:
            f.write(LEASE)
        images.Image(images.busybox(), config={"Cmd": ["sleep", "1000000"], "Env": ["PATH=/bin"]}).docker_archive(os.path.join(self.images, "web.tar"), "example.com/web:1")
        for command in ("ip link add br0 type bridge", "ip addr add 10.77.0.1/24 dev br0", "ip link set br0 up"):
            subprocess.run(command.split(), check=True)
        self.machines = [Machine(self, i) for i in (1, 2, 3, 4)]
        self.servers, self.worker = self.machines[:3], self.machines[3]
        self.tls = None

    def trust(self):
        """What the first machine's administrator has."""
        with open(os.path.join(self.servers[0].data, "control-plane", "admin.conf")) as f:
            conf = f.read()
        paths = []
        for key in ("client-certificate-data", "client-key-data", "certificate-authority-data"):
            paths.append(os.path.join(self.folder, key))
            with open(paths[-1], "wb") as f:
                f.write(base64.b64decode(re.search(key + r'"?: "?([A-Za-z0-9+/=]+)', conf)[1]))
        self.tls = ssl.create_default_context(cafile=paths[2])
        self.tls.load_cert_chain(*paths[:2])
        self.client = Client(self)

    # ---- looking ----

    def ready_nodes(self):
        return {n["metadata"]["name"] for n in self.client.get("/api/v1/nodes")["items"]
                for c in n["status"].get("conditions", []) if c["type"] == "Ready" and c["status"] == "True"}

    def endpoints(self):
        slice_ = self.client.get("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes")
        return {a for e in slice_.get("endpoints") or [] for a in e["addresses"]}

    def running(self, not_on=None):
        """Pods of the deployment that are ready, on other machines than that."""
        pods = self.client.get("/api/v1/namespaces/default/pods?labelSelector=app%3Dweb")["items"]
        return [p for p in pods if not p["metadata"].get("deletionTimestamp") and p["spec"].get("nodeName") not in (None, not_on and not_on.name)
                and any(c["type"] == "Ready" and c["status"] == "True" for c in p["status"].get("conditions", []))]

    def leader(self):
        """Who runs the controllers: the machine's name, and what is another one with each start of a control plane."""
        lease = self.client.get("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager")
        return lease["spec"].get("holderIdentity")

    def close(self):
        for m in self.machines:
            m.close()
        subprocess.run(["ip", "link", "del", "br0"], capture_output=True)
        subprocess.run(["umount", "-l", self.etcd], capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)


REPLICAS = 6
DEPLOYMENT = {"metadata": {"name": "web"}, "spec": {"replicas": REPLICAS, "selector": {"matchLabels": {"app": "web"}}, "template": {
    "metadata": {"labels": {"app": "web"}}, "spec": {
        "containers": [{"name": "web", "image": "example.com/web:1", "imagePullPolicy": "Never"}], "terminationGracePeriodSeconds": 0,
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
                                       "labelSelector": {"matchLabels": {"app": "web"}}}],
        "tolerations": [{"key": f"node.kubernetes.io/{why}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
                        for why in ("unreachable", "not-ready")]}}}}


def at_once(calls):
    answers = [None] * len(calls)

    def call(i):
        answers[i] = calls[i]()
    threads = [threading.Thread(target=call, args=(i,)) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


# ---- the story ----

def test_start(t, w):
    first, second, third = w.servers
    for m in w.servers:
        m.start_etcd()
    r = first.up()
    t.check("the first machine is up", r.returncode == 0, r.stdout + r.stderr)
    alone = second.up()
    t.check("another one with an authority of its own is refused and told what to do", alone.returncode == 1 and "--pki" in alone.stdout + alone.stderr, alone)
    second.run("reset")
    w.trust()
    pki = os.path.join(w.folder, "pki")
    shutil.copytree(os.path.join(first.data, "control-plane", "pki"), pki)
    joining = first.run("token", "create").stdout.split()
    join = [lambda m=m: m.up("--pki", pki) for m in (second, third)]
    join.append(lambda: w.worker.run("join", f"https://{first.ip}:6443", *joining[3:], "--detach", *w.worker.node_flags()))
    for m, r in zip((second, third, w.worker), at_once(join)):
        t.check(f"{m.name} joins them", r.returncode == 0 and f"node {m.name} is Ready" in r.stdout, r.stdout + r.stderr)
    t.check("all servers are endpoints of the Service kubernetes", tap.wait_for(lambda: w.endpoints() == {m.ip for m in w.servers}, 15), w.endpoints())
    told = tap.arguments(third.pid("control-plane"))
    t.check("each asks the etcd of its own machine first", f"--etcd-servers=http://{third.ip}:" in told, told)
    w.client.any("POST", "/apis/apps/v1/namespaces/default/deployments", DEPLOYMENT)
    t.check("pods run", tap.wait_for(lambda: len(w.running()) == REPLICAS, 30), w.running())
    t.check("nobody complained", not [line for m in w.servers for line in m.log().splitlines() if "could not" in line or "conflict" in line.lower()],
            "\n".join(line for m in w.servers for line in m.log().splitlines() if "could not" in line or "conflict" in line.lower()))


def test_leader(t, w):
    """The control plane that leads is killed. Its supervisor brings it back, and then it is one of those who wait for the lease."""
    leader = w.leader()
    os.kill(next(m for m in w.servers if leader.startswith(m.name + "_")).pid("control-plane"), signal.SIGKILL)
    t.check("the leader is killed: another one leads", tap.wait_for(lambda: w.leader() not in (None, "", leader), 20), w.leader())


def test_machine(t, w, lost):
    """A machine that is gone for good, until somebody starts it again."""
    lost.kill()
    t.check(f"{lost.name} is gone: its pods are replaced", tap.wait_for(lambda: len(w.running(not_on=lost)) == REPLICAS, 40), w.running())
    t.check("and the other nodes are well", tap.wait_for(lambda: w.ready_nodes() == {m.name for m in w.machines if m != lost}, 15), w.ready_nodes())
    test_leader(t, w)
    t.check("its server is no endpoint any more", tap.wait_for(lambda: w.endpoints() == {m.ip for m in w.servers if m != lost}, 40), w.endpoints())
    lost.start_etcd()
    r = lost.run("up", "--detach")
    t.check("it comes back without flags", r.returncode == 0, r.stdout + r.stderr)


def test_member(t, w, m):
    """etcd alone: its machine's control plane goes on with the other members."""
    m.stop_etcd()
    client, name = Client(w), f"without-etcd-of-{m.name}"
    t.check(f"the etcd of {m.name} is gone: its API server writes to the others",
            tap.wait_for(lambda: client.once(m, "POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": name}})[0] in (201, 409), 15))
    m.start_etcd()
    t.check("it comes back", tap.wait_for(m.etcd_well, 20))


def test_cable(t, w, lost):
    """A machine that runs, but sees nobody."""
    lost.cut()
    try:
        alone = subprocess.run(lost.inside(C8S, "kubectl", "--kubeconfig", os.path.join(lost.data, "control-plane", "admin.conf"), "--request-timeout=3s",
                                           "create", "configmap", "of-the-lonely"), capture_output=True, text=True)
        t.check(f"{lost.name} is cut off: it acknowledges nothing", alone.returncode != 0, alone)
        t.check("its pods are replaced", tap.wait_for(lambda: len(w.running(not_on=lost)) == REPLICAS, 40), w.running())
        t.check("the other nodes are well, also one that had joined through it",
                tap.wait_for(lambda: w.ready_nodes() == {m.name for m in w.machines if m != lost}, 15), w.ready_nodes())
    finally:
        lost.cut(False)
    t.check("it comes back", tap.wait_for(lambda: lost.name in w.ready_nodes(), 30), w.ready_nodes())


def all_of(w, machine):
    """Everything that the writers wrote, by this server, at quorum: names and revisions."""
    status, found = Client(w).once(machine, "GET", "/api/v1/namespaces/default/configmaps?labelSelector=by%3Dwriter", timeout=30)
    return {i["metadata"]["name"]: i["metadata"]["resourceVersion"] for i in found["items"]} if status == 200 else {}


def test_end(t, w, writers, bindings):
    for thread in (*writers, bindings):
        thread.ended = True
    for thread in (*writers, bindings):
        thread.join(60)
    t.check("all machines are well in the end", tap.wait_for(lambda: len(w.ready_nodes()) == len(w.machines), 30), w.ready_nodes())
    acknowledged = {name for x in writers for name in x.acknowledged}
    found = [all_of(w, m) for m in w.servers]
    lost = [sorted(acknowledged - set(f))[:10] for f in found]
    print(f"# {len(acknowledged)} writes acknowledged; longest silence {max(x.silence for x in writers):.1f} s")
    t.check("no acknowledged write is lost", len(acknowledged) > 100 and not any(lost), lost)
    t.check("all servers agree", found[0] == found[1] == found[2], [len(f) for f in found])
    t.check("writers were told nothing else", not any(x.wrong for x in writers), [x.wrong[:3] for x in writers])
    t.check(f"the API was never silent for {SILENCE_MAX} s", max(x.silence for x in writers) < SILENCE_MAX, [x.silence for x in writers])
    t.check("no pod was on two nodes", len(bindings.nodes) >= REPLICAS and all(len(n) == 1 for n in bindings.nodes.values()), bindings.nodes)
    t.check("nor are there too many or too few", tap.wait_for(lambda: len(w.running()) == REPLICAS, 30), w.running())


def story(t, w):
    test_start(t, w)
    if t.failed:
        return
    writers, bindings = [Writer(w, name) for name in ("a", "bb", "ccc")], Bindings(w)
    for thread in (*writers, bindings):
        thread.start()
    for i in range(ROUNDS):
        first, second, third = (w.servers[(i + k) % 3] for k in range(3))
        test_machine(t, w, second)
        test_member(t, w, third)
        test_cable(t, w, first)
    test_end(t, w, writers, bindings)


def main():
    t = tap.Tap()
    if why := nodes.missing(registry=False, kubectl=False) or (not peers.find("etcd", "etcd-server") and "etcd of Debian's package etcd-server cannot be had"):
        t.skip("a cluster of several machines", why)
        t.close()
    nodes.own_namespaces()
    w = World()
    try:
        story(t, w)
    finally:
        if keep := os.environ.get("HA_LOGS"):
            for m in w.machines:
                shutil.copytree(os.path.join(m.data, "log"), os.path.join(keep, m.name), dirs_exist_ok=True)
                if m.etcd:
                    shutil.copy(os.path.join(m.folder, "etcd.log"), os.path.join(keep, m.name))
        w.close()
    t.close()


if __name__ == "__main__":
    main()
