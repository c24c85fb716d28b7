"""A cluster of one node for tests: an API server, a kubelet, and below it the built-in runtime or Debian's containerd, in folders, a control
group and a network of their own; a registry with images of Debian's busybox and nginx. Everything is gone when the `with` block ends.

    with nodes.Node() as n:                     # nodes.Node(runtime="containerd")
        n.create({"kind": "Pod", ...})
        n.wait_phase("p", "Running")
        n.kubectl("logs", "p")

Call nodes.own_namespaces() first: mounts, links and addresses are then those of the test alone."""
import ctypes
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.parse

import containerd
import images
import peers
import tap
from cluster import C8S, Server, free_port, wait_until

CLONE_NEWNS = 0x00020000
NODE = "n1"
SLOW = getattr(time, "slow", 1)  # on a machine that is emulated (tests/machine), how much more slowly time goes by for those who wait


def own_namespaces():
    """Moves the process into a new network namespace and a new mount namespace, whose mounts reach those that are made from it. From then on
    SIGTERM, which Meson sends to those who take too long, ends it in good order: clusters would run on, as they are no children of ours."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["mount", "--make-rslave", "/"], check=True)
    subprocess.run(["mount", "--make-rshared", "/"], check=True)
    containerd.own_network()


def missing(runtime="c8s", registry=True, kubectl=True):
    """Why there cannot be a node here; None: there can. Who does without a registry, or without kubectl, says so."""
    if os.geteuid() != 0:
        return "needs root"
    if registry and not images.Registry.available():
        return "docker-registry of Debian's package docker-registry cannot be had"
    if kubectl and not peers.find("kubectl", "kubernetes-client"):
        return "kubectl of Debian's package kubernetes-client cannot be had"
    return containerd.missing() if runtime == "containerd" else None


class Case:
    """What one of several tests at the same time has found."""

    def __init__(self, test):
        self.test, self.found = test, []

    def check(self, name, ok, detail=""):
        self.found.append((name, ok, detail))

    def run(self, *args):
        try:
            self.test(self, *args)
        except Exception:  # noqa: BLE001 - whatever it was, it belongs to this test
            self.check(self.test.__name__, False, traceback.format_exc())


def together(t, tests, *args):
    """Runs functions that take a Tap at the same time, each in a thread, and tells in their order what they found."""
    cases = [Case(test) for test in tests]
    threads = [threading.Thread(target=case.run, args=args) for case in cases]
    for thread in threads:
        thread.start()
    for thread, case in zip(threads, cases):
        thread.join()
        for found in case.found:
            t.check(*found)


class Watch:
    """All states of pods, in order, and all events, as the API server tells them: nothing between two looks is missed."""

    def __init__(self, server):
        self.pods, self.told, self.change = {}, {}, threading.Condition()
        for path, take in (("/api/v1/pods", self.take_pod), ("/api/v1/events", self.take_event)):
            threading.Thread(target=self.follow, args=(server, path, take), daemon=True).start()

    def follow(self, server, path, take):
        c = server.connect(3600)
        try:
            c.request("GET", path + "?watch=true", headers={"Authorization": "Bearer admin-token"})
            answer = c.getresponse()
            while line := answer.readline():
                event = json.loads(line)
                with self.change:
                    take(event["type"], event["object"])
                    self.change.notify_all()
        except OSError:
            pass  # the server has ended

    def take_pod(self, kind, pod):
        key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        self.pods.setdefault(key, []).append(None if kind == "DELETED" else pod)

    def take_event(self, kind, event):
        if kind != "DELETED":
            self.told[event["metadata"]["namespace"], event["metadata"]["name"]] = event

    def until(self, condition, seconds, complain):
        deadline = time.monotonic() + seconds
        with self.change:
            while not (value := condition()):
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError(complain())
                self.change.wait(left)
            return value

    def ever(self, name, condition, seconds=60, what="", namespace="default", begin=0):
        """Until the condition has been true of a state of the pod: that state. begin: how many states do not count."""
        def look():
            nonlocal begin
            states = self.pods.get((namespace, name), [])
            while begin < len(states):
                state, begin = states[begin], begin + 1
                if state and condition(state):
                    return state
            return None
        return self.until(look, seconds, lambda: f"pod {name}: {what or 'the condition'} did not come true: {self.show(name, namespace)}")

    def wait(self, name, condition, seconds=60, what="", namespace="default"):
        """The same of the state of now, and those that follow."""
        return self.ever(name, condition, seconds, what, namespace, max(0, len(self.pods.get((namespace, name), [])) - 1))

    def gone(self, name, seconds=60, namespace="default"):
        return self.until(lambda: (self.pods.get((namespace, name)) or [0])[-1] is None, seconds, lambda: f"pod {name} is still there: "
                          f"{self.show(name, namespace)}")

    def show(self, name, namespace="default"):
        """For people: how the status changed, and the events."""
        states = []
        for pod in self.pods.get((namespace, name), []):
            if pod:  # what is the same for all of the time does not help
                rest = {k: v for k, v in pod["status"].items() if k in ("phase", "reason", "message", "podIP")}
                rest["conditions"] = {c["type"]: [c[k] for k in ("status", "reason", "message") if k in c] for c in pod["status"].get("conditions", [])}
                rest["containers"] = [{k: v for k, v in c.items() if k in ("name", "state", "lastState", "ready", "started", "restartCount")}
                                      for kind in ("initContainerStatuses", "containerStatuses") for c in pod["status"].get(kind, [])]
            states.append(json.dumps(pod and rest))
        return "\n".join([*states, *map(str, self.events(name, namespace))])

    def events(self, name, namespace="default"):
        with self.change:
            return [(e["type"], e["reason"], e["message"], e.get("count") or 1) for e in self.told.values()
                    if e["involvedObject"]["name"] == name and e["metadata"]["namespace"] == namespace]

    def event(self, name, reason, message="", seconds=30, namespace="default"):
        """Until there is an event of this reason, whose message has that in it."""
        def look():
            return next((e for e in self.events(name, namespace) if e[1] == reason and message in e[2]), None)
        return self.until(look, seconds, lambda: f"pod {name}: no event {reason} {message!r}: {self.show(name, namespace)}")


class Node:
    """config: more of KubeletConfiguration; flags: more flags of the kubelet; server_flags: of the API server. address: of the node; one that
    is not of this machine alone is needed for what the API server passes on to nodes. bare: the kubelet is not started yet, and finds no
    network when it is. Its kubeconfig is the administrator's; "": it has none. loops: there are a controller manager and a scheduler, too; without
    them pods need the name of the node, and make_namespace() puts there what controllers would."""
    node, subnet = NODE, "10.214.0.0/16"

    def __init__(self, runtime="c8s", config=None, flags=(), server_flags=(), apart=False, address="127.0.0.1", bare=False, loops=False):
        self.runtime, self.more, self.flags, self.apart = runtime, config or {}, flags, apart
        self.address, self.bare, self.loops = address, bare, {"kube-controller-manager": None, "kube-scheduler": None} if loops else {}
        self.name = f"c8s-test-node-{random.randrange(1 << 32):08x}"
        self.folder = tempfile.mkdtemp(prefix=self.name + "-")
        self.cgroup = "/" + self.name
        self.server = Server(os.path.join(self.folder, "server"), "--authorization-mode=Node,RBAC", "--allow-privileged",
                             "--kubelet-preferred-address-types=InternalIP", *server_flags)
        self.registry = images.Registry(os.path.join(self.folder, "registry"))
        self.root, self.logs = os.path.join(self.folder, "kubelet"), os.path.join(self.folder, "log", "pods")
        self.state = os.path.join(self.folder, "state")
        self.manifests = os.path.join(self.folder, "manifests")
        self.log = os.path.join(self.folder, "kubelet.log")
        self.port, self.health = free_port(), free_port()
        self.containerd = self.process = self.runtime_process = self.kubeconfig = None
        self.pulled = 0
        self.found = {}  # what sanitizers have said, by process

    # ---- starting ----

    def write_network(self):
        self.bridge = "br" + self.name[-8:]
        with open(os.path.join(self.net, "10-test.conflist"), "w") as f:
            json.dump({"cniVersion": "1.0.0", "name": self.name, "plugins": [
                {"type": "bridge", "bridge": self.bridge, "isGateway": True, "hairpinMode": True,
                 "ipam": {"type": "host-local", "dataDir": os.path.join(self.folder, "ipam"), "ranges": [[{"subnet": self.subnet}]],
                          "routes": [{"dst": "0.0.0.0/0"}]}},
                {"type": "portmap", "capabilities": {"portMappings": True}, "snat": True}]}, f)

    def plugins(self):
        """A folder with the network plugins of c8s: Debian's need iptables for the ports of the node."""
        folder = os.path.join(self.folder, "cni")
        os.makedirs(folder)
        for name in ("bridge", "host-local", "loopback", "portmap"):
            os.symlink(peers.static_pod(), os.path.join(folder, name))
        return folder

    def share_folder(self):
        """What the kubelet mounts in the folder reaches containerd's namespace: a mount of its own that both have."""
        subprocess.run(["mount", "--bind", self.folder, self.folder], check=True)
        subprocess.run(["mount", "--make-private", self.folder], check=True)
        subprocess.run(["mount", "--make-shared", self.folder], check=True)

    def runtime_flags(self, prefix="--"):
        return [prefix + "root", f"{self.folder}/runtime", prefix + "state", self.state, prefix + "pod-program", peers.static_pod(),
                prefix + "cni-conf-dir", self.net]

    def start_runtime(self):
        """The runtime as a process of its own, where the kubelet has none inside."""
        path = os.path.join(self.folder, "runtime.log")
        with open(path, "ab") as log:
            begin = log.tell()
            self.runtime_process = subprocess.Popen([C8S, "runtime", "--cgroup-parent", self.cgroup, *self.runtime_flags()], stdout=log, stderr=log)

        def said():
            with open(path, "rb") as f:
                f.seek(begin)
                return f.read().decode(errors="replace")
        try:
            wait_until(lambda: " ready " in said() or self.runtime_process.poll() is not None, 60, "the runtime")
        except TimeoutError:
            self.runtime_process.send_signal(signal.SIGUSR2)
            time.sleep(0.5)
            raise RuntimeError(f"the runtime is not ready:\n{said()[-6000:]}") from None
        if self.runtime_process.poll() is not None:
            raise RuntimeError(f"the runtime ended with {self.runtime_process.returncode}:\n{said()[-4000:]}")

    def loop_flags(self, name):
        pki = os.path.join(self.server.folder, "data", "pki")
        if name == "kube-scheduler":
            return ["--kube-api-qps", "1000", "--kube-api-burst", "2000"]
        return ["--use-service-account-credentials", "--service-account-private-key-file", f"{pki}/sa.key", "--root-ca-file", f"{pki}/ca.crt",
                "--cluster-signing-cert-file", f"{pki}/ca.crt", "--cluster-signing-key-file", f"{pki}/ca.key", "--allocate-node-cidrs",
                "--cluster-cidr", "10.244.0.0/16", "--kube-api-qps", "1000", "--kube-api-burst", "2000"]

    def start_loop(self, name):
        """The controller manager or the scheduler, with its own kubeconfig."""
        kubeconfig = os.path.join(self.server.folder, "data", name.removeprefix("kube-") + ".conf")
        with open(os.path.join(self.folder, name + ".log"), "ab") as log:
            self.loops[name] = subprocess.Popen([C8S, name, "--kubeconfig", kubeconfig, "--secure-port", "0", "--v=4", *self.loop_flags(name)],
                                                stdout=log, stderr=log)

    def stop_loop(self, name, sig=signal.SIGTERM):
        if self.loops[name]:
            self.loops[name].send_signal(sig)
            self.loops[name].wait(30)
            self.note_end(self.loops[name], os.path.join(self.folder, name + ".log"))

    def endpoint(self):
        return self.containerd.endpoint if self.containerd else f"unix://{self.state}/cri.sock"

    def configure(self):
        os.makedirs(self.manifests, exist_ok=True)
        config = {"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1", "port": self.port, "address": self.address,
                  "healthzPort": self.health, "cgroupRoot": self.cgroup, "podLogsDir": self.logs, "staticPodPath": self.manifests,
                  "authentication": {"anonymous": {"enabled": False}, "x509": {"clientCAFile": f"{self.server.folder}/data/pki/ca.crt"}},
                  "failSwapOn": False, "failCgroupV1": False, "enforceNodeAllocatable": [], "clusterDNS": ["10.0.0.10"], "clusterDomain": "cluster.local",
                  "evictionHard": {"memory.available": "1Mi", "nodefs.available": "1%", "imagefs.available": "1%", "nodefs.inodesFree": "1%"},
                  "imageGCHighThresholdPercent": 100, **self.more}
        if self.containerd or self.apart:
            config["containerRuntimeEndpoint"] = self.endpoint()
        path = os.path.join(self.folder, "kubelet.yaml")
        with open(path, "w") as f:
            json.dump(config, f)
        return path

    def spawn_kubelet(self):
        """Begins to start it; where in the log it begins."""
        inside = [] if self.containerd or self.apart else self.runtime_flags("--runtime-")
        client = [] if self.kubeconfig == "" else ["--kubeconfig", self.kubeconfig or self.server.kubeconfig]
        with open(self.log, "ab") as log:
            begin = log.tell()
            self.process = subprocess.Popen([C8S, "kubelet", *client, "--config", self.configure(), "--root-dir", self.root, "--cert-dir",
                                             f"{self.root}/pki", "--hostname-override", self.node, "--node-ip", self.address, "--v=4", *inside,
                                             *self.flags], stdout=log, stderr=log)
        return begin

    def start_kubelet(self):
        begin = self.spawn_kubelet()

        def ready():
            if self.process.poll() is not None:
                raise RuntimeError(f"the kubelet ended with {self.process.returncode}:\n{self.said(begin)[-4000:]}")
            return "kubelet: ready" in self.said(begin)
        wait_until(ready, 60, "the kubelet")

    def said(self, begin=0):
        with open(self.log, "rb") as f:
            f.seek(begin)
            return f.read().decode(errors="replace")

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def start(self):
        self.net = os.path.join(self.folder, "net.d")
        os.makedirs(self.net)
        if not self.bare:
            self.write_network()
        if self.address != "127.0.0.1":
            subprocess.run(["ip", "address", "add", self.address, "dev", "lo"], check=True)
        self.registry.__enter__()
        self.server.start()
        if self.runtime == "containerd":
            self.share_folder()
            self.containerd = containerd.Containerd(cni_conf=self.net, cni_bin=self.plugins(), shared=self.folder)
            self.containerd.start()
        if self.apart:
            self.start_runtime()
        for name in self.loops:
            self.start_loop(name)
        self.image = self.put_image("busybox", images.Image(images.busybox(), config={"Cmd": ["sh"]}))
        self.make_namespace("default")
        if self.bare:
            return self
        self.start_kubelet()
        wait_until(self.is_ready, 30, "the node to be ready")
        return self

    def make_namespace(self, name):
        """With what controllers put into each: a service account, and the certificate of the API server."""
        if name != "default":
            self.server.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        if self.loops:
            for path in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"):
                wait_until(lambda: self.get(f"/api/v1/namespaces/{name}/{path}").status == 200, 30, f"{path} of {name}")
            return
        self.server.request("POST", f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})
        with open(os.path.join(self.server.folder, "data", "pki", "ca.crt")) as f:
            ca = f.read()
        self.server.request("POST", f"/api/v1/namespaces/{name}/configmaps", {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": ca}})

    def is_ready(self):
        r = self.get("/api/v1/nodes/" + self.node)
        return r.status == 200 and any(c["type"] == "Ready" and c["status"] == "True" for c in r.json["status"].get("conditions", []))

    def put_image(self, name, image, tag="1"):
        self.registry.put(image, name, tag)
        return f"{self.registry.host}/{name}:{tag}"

    # ---- using ----

    def get(self, path):
        return self.server.request("GET", path)

    def kubectl(self, *args, **more):
        return self.server.kubectl(*args, **more)

    def make(self, name, command=("sleep", "1000"), namespace="default", spec=None, **container):
        """A pod for this node with one container; spec and container: more of both."""
        c = {"name": "c", "image": self.image, "command": list(command), **container}
        return {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
                "spec": {"nodeName": self.node, "terminationGracePeriodSeconds": 1, "containers": [c], **(spec or {})}}

    def create(self, pod):
        r = self.server.request("POST", f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods", pod)
        if r.status != 201:
            raise RuntimeError(f"the pod was not created: {r}")
        return r.json

    def pod(self, name, namespace="default"):
        r = self.get(f"/api/v1/namespaces/{namespace}/pods/{name}")
        return r.json if r.status == 200 else None

    def watch(self):
        return Watch(self.server)

    def phase(self, name, namespace="default"):
        return ((self.pod(name, namespace) or {}).get("status") or {}).get("phase")

    def wait(self, name, condition, seconds=30, what="", namespace="default"):
        """Until condition(pod) is true; the pod then."""
        seen = None
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            seen = self.pod(name, namespace)
            if seen and condition(seen):
                return seen
            time.sleep(0.03)
        raise TimeoutError(f"pod {name}: {what or 'the condition'} did not come true: {json.dumps((seen or {}).get('status'))}")

    def wait_phase(self, name, phase, seconds=30, namespace="default"):
        return self.wait(name, lambda p: p["status"].get("phase") == phase, seconds, f"phase {phase}", namespace)

    def wait_ready(self, name, seconds=30, namespace="default"):
        return self.wait(name, lambda p: any(c["type"] == "Ready" and c["status"] == "True" for c in p["status"].get("conditions", [])),
                         seconds, "ready", namespace)

    def wait_gone(self, name, seconds=30, namespace="default"):
        wait_until(lambda: self.pod(name, namespace) is None, seconds, f"the end of pod {name}")

    def output(self, name, container="c", namespace="default", **query):
        """By the API server, as kubectl logs does it; text that there is not yet is none."""
        r = self.get(f"/api/v1/namespaces/{namespace}/pods/{name}/log?" + urllib.parse.urlencode({"container": container, **query}))
        return r.body.decode(errors="replace") if r.status == 200 else ""

    def run(self, name, *command, seconds=30, **more):
        """A pod that runs a command once: its log."""
        self.create(self.make(name, command, spec={"restartPolicy": "Never", **more.pop("spec", {})}, **more))
        self.wait(name, lambda p: p["status"].get("phase") in ("Succeeded", "Failed"), seconds, "its end")
        return self.kubectl("logs", name).stdout

    def delete(self, *names, namespace="default"):
        for name in names:
            self.server.request("DELETE", f"/api/v1/namespaces/{namespace}/pods/{name}")
        for name in names:
            self.wait_gone(name, namespace=namespace)

    def events(self, name, namespace="default"):
        r = self.get(f"/api/v1/namespaces/{namespace}/events").json["items"]
        return [(e["reason"], e["message"]) for e in r if e["involvedObject"]["name"] == name]

    def crictl(self, *args, check=True):
        r = subprocess.run([C8S, "crictl", "-r", self.endpoint(), *args], capture_output=True, text=True, timeout=60)
        if check and r.returncode:
            raise RuntimeError(f"crictl {' '.join(args)}: {r.stderr}")
        return r.stdout

    # ---- ending ----

    def note_end(self, process, log):
        """What a sanitizer found (exit code 99: tests/run) must not be lost with the log."""
        if process and process.poll() == 99:
            with open(log, errors="replace") as f:
                self.found[process.pid] = f"{process.args[1]} ended with 99:\n{f.read()[-6000:]}"

    def kill_kubelet(self, sig=signal.SIGKILL):
        if self.process and self.process.poll() is None:
            self.process.send_signal(sig)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.send_signal(signal.SIGUSR2)
                time.sleep(0.5)
                self.process.kill()
                raise RuntimeError(f"the kubelet does not end:\n{self.said()[-6000:]}") from None
        self.note_end(self.process, self.log)

    def leftovers(self):
        """What is left of the node's pods: processes, mounts, links, control groups, folders. For a node without pods."""
        left = []
        for folder, _, _ in os.walk("/sys/fs/cgroup"):
            if self.cgroup in folder and "/pod" in folder.split(self.cgroup)[1]:
                left.append(folder)
        with open("/proc/self/mountinfo") as f:
            left += [line.split()[4] for line in f if f"{self.root}/pods" in line or f"{self.state}/" in line]
        pods = os.path.join(self.root, "pods")
        left += [os.path.join(pods, p) for p in (os.listdir(pods) if os.path.isdir(pods) else [])]
        left += [os.path.join(self.logs, p) for p in (os.listdir(self.logs) if os.path.isdir(self.logs) else [])]
        links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True).stdout
        left += [line for line in links.splitlines() if "veth" in line]
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    line = f.read()
            except OSError:
                continue
            if b"monitor" in line and self.folder.encode() in line:
                left.append(line.replace(b"\0", b" ").decode())
        return left

    def remove_all_pods(self, but=()):
        def pods():
            return [m for m in (item["metadata"] for item in self.get("/api/v1/pods").json["items"]) if m["name"] not in but]
        for m in pods():
            self.server.request("DELETE", f"/api/v1/namespaces/{m['namespace']}/pods/{m['name']}", {"gracePeriodSeconds": 0})
        wait_until(lambda: not pods(), 30, "all pods to be gone")

    def kill_rest(self):
        """What a kubelet that has crashed leaves behind."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f, open(f"/proc/{pid}/cgroup") as g:
                    if self.folder.encode() in f.read() or self.cgroup in g.read():
                        os.kill(int(pid), signal.SIGKILL)
            except OSError:
                pass  # it has ended

    def end_loops(self):
        """Controllers have to let go of what they hold before they end."""
        try:
            names = [n["metadata"]["name"] for n in self.get("/api/v1/namespaces").json["items"]]
            for name in names:
                if name != "default" and not name.startswith("kube-"):
                    self.server.request("DELETE", "/api/v1/namespaces/" + name)
            wait_until(lambda: not self.get("/api/v1/pods").json["items"], 20, "the end of all pods")
        except Exception as e:  # what is left is removed without them
            print(f"# {e}")
        for name in self.loops:
            self.stop_loop(name)

    def close(self):
        if self.loops:
            self.end_loops()
        if self.process and self.process.poll() is None:
            for name in os.listdir(self.manifests):
                os.unlink(os.path.join(self.manifests, name))
            try:
                self.remove_all_pods()
                wait_until(lambda: not self.crictl("pods", "-q").strip(), 30, "the end of all pods")
            except Exception as e:  # what is left is removed below
                print(f"# {e}")
            self.kill_kubelet(signal.SIGTERM)
        self.note_end(self.process, self.log)
        if self.runtime_process:
            self.runtime_process.send_signal(signal.SIGTERM)
            self.runtime_process.wait(30)
            self.note_end(self.runtime_process, os.path.join(self.folder, "runtime.log"))
        if self.containerd:
            self.containerd.close()
        self.server.kill(signal.SIGTERM)
        self.note_end(self.server.process, self.server.log)
        self.registry.__exit__()
        self.clean()

    def clean(self):
        self.kill_rest()
        wait_until(lambda: tap.remove_cgroups(self.cgroup), 10, f"the end of {self.cgroup}")
        with open("/proc/self/mountinfo") as f:
            for point in [line.split()[4] for line in f if self.folder in line][::-1]:
                subprocess.run(["umount", "-l", point], capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __exit__(self, *_):
        self.close()
        if self.found:
            raise RuntimeError("\n".join(self.found.values()))


class AnotherNode(Node):
    """A second node in the cluster of the first, with the same images. It ends as by a power failure."""
    node, subnet = "n2", "10.215.0.0/16"

    def __init__(self, first, **more):
        super().__init__(**more)
        self.server, self.registry, self.image = first.server, first.registry, first.image

    def start(self):
        self.net = os.path.join(self.folder, "net.d")
        os.makedirs(self.net)
        self.write_network()
        self.start_kubelet()
        wait_until(self.is_ready, 30, "the node to be ready")
        return self

    def close(self):
        self.kill_kubelet()
        self.clean()
