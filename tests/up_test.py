"""`c8s up` and what belongs to it, as a user meets it: a cluster from nothing, pods on it, every process killed, down, up again, another machine's
node that joins by token, and a reset that leaves nothing. In namespaces of its own, with images from a folder."""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster  # noqa: E402
import images  # noqa: E402
import nodes  # noqa: E402
import peers  # noqa: E402
import tap  # noqa: E402

C8S = peers.C8S


class Up:
    """A cluster in a folder of its own."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="c8s-test-up-")
        os.chmod(self.folder, 0o755)  # the control plane's user has to pass
        self.data = os.path.join(self.folder, "data")
        self.env = {**os.environ, "HOME": self.folder, "C8S_PEERS": peers.FOLDER}
        self.env.pop("KUBECONFIG", None)
        self.ports = cluster.free_port(), cluster.free_port(), cluster.free_port()
        self.c8s = os.path.join(self.folder, "bin", "c8s")
        os.makedirs(os.path.dirname(self.c8s))
        self.install()

    def install(self):
        """As a package manager does: new files take the place of those that run."""
        for program in (C8S, peers.static_pod()):
            place = os.path.join(os.path.dirname(self.c8s), "c8s" if program == C8S else "c8s-pod")
            shutil.copy(program, place + ".new")
            os.rename(place + ".new", place)

    def run(self, *args, data=None, **env):
        return subprocess.run([self.c8s, args[0], *args[1:], "--data-dir", data or self.data], env={**self.env, **env}, capture_output=True, text=True, timeout=120)

    def up(self, *args, **env):
        return self.run("up", "--detach", *args, **env)

    def first(self, *args):
        return self.up("--secure-port", str(self.ports[0]), "--kubelet-port", str(self.ports[1]), "--node-name", "n1", "--pod-cidr", "10.217.0.0/16", *args)

    def kubectl(self, *args):
        return subprocess.run([peers.find("kubectl", "kubernetes-client"), *args], env=self.env, capture_output=True, text=True, timeout=60)

    def tag(self):
        return next(name for name in os.listdir("/run/c8s") if os.path.exists(f"/run/c8s/{name}/node.pid") and self.data in tap.arguments(self.pid(f"/run/c8s/{name}/node.pid")))

    @staticmethod
    def pid(path):
        with open(path) as f:
            return int(f.read())

    def processes(self):
        return tap.pids_of(self.folder)

    def parts(self):
        """The supervisor, the control plane and the node."""
        run = f"/run/c8s/{self.tag()}"
        return [self.pid(path) for path in (os.path.join(self.data, "lock"), f"{run}/control-plane.pid", f"{run}/node.pid")]

    def in_containers(self):
        """Processes of the cluster's pods."""
        group, found = f"/c8s-{self.tag()}/", []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cgroup") as f:
                    found += [int(pid)] if group in f.read() else []
            except OSError:
                pass
        return sorted(found)

    def traces(self):
        """What is on the machine of this cluster."""
        found = [f"process {tap.arguments(pid)}" for pid in self.processes()]
        with open("/proc/self/mounts") as f:
            found += [line for line in f if self.folder in line]
        links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True).stdout
        found += [line for line in links.splitlines() if "veth" in line or "c8s-" in line]
        found += [os.path.join(path, name) for path in (self.data, self.data + "2") if os.path.exists(path) for name in os.listdir(path) if name != "mine"]
        return found

    def close(self):
        for data in (self.data + "2", self.data):
            if os.path.exists(os.path.join(data, "up.yaml")):
                self.run("reset", data=data)
        tap.kill_all(self.processes())
        shutil.rmtree(self.folder, ignore_errors=True)


def make_images(folder):
    os.makedirs(folder)
    images.Image(images.busybox(), config={"Cmd": ["sh", "-c", "mkdir -p /www; echo it answers > /www/index.html; exec httpd -f -p 80 -h /www"],
                                           "Env": ["PATH=/bin"]}).docker_archive(os.path.join(folder, "web.tar"), "example.com/web:1")


def address(c):
    return c.kubectl("get", "pod", "web", "-o", "jsonpath={.status.podIP}").stdout


def page(c, ip=None):
    ip = ip or address(c)
    return subprocess.run(["curl", "-s", "-m", "5", f"http://{ip}/"], capture_output=True, text=True).stdout


def test_up(t, c):
    make_images(os.path.join(c.folder, "images"))
    os.makedirs(os.path.join(c.folder, "manifests"))
    with open(os.path.join(c.folder, "manifests", "one.yaml"), "w") as f:
        f.write("apiVersion: v1\nkind: Namespace\nmetadata: { name: made }\n---\napiVersion: v1\nkind: ConfigMap\n"
                "metadata: { name: there, namespace: made }\ndata: { a: b }\n")
    # What somebody who was the control plane's user may have left to become the owner of a file of root's.
    os.makedirs(os.path.join(c.data, "control-plane"), 0o700)
    with open(os.path.join(c.folder, "roots"), "w") as f:
        f.write("root's")
    os.link(os.path.join(c.folder, "roots"), os.path.join(c.data, "control-plane", "another-name"))
    os.symlink(c.folder, os.path.join(c.data, "control-plane", "outside"))
    r = c.first("--images", os.path.join(c.folder, "images"), "--manifests", os.path.join(c.folder, "manifests"))
    t.check("up shows its steps and returns when the node is Ready", r.returncode == 0 and "node n1 is Ready" in r.stdout, r.stdout + r.stderr)
    t.check("kubectl finds the cluster without being told", "n1" in c.kubectl("get", "nodes").stdout)
    t.check("objects of the folder are there", c.kubectl("get", "cm", "-n", "made", "there", "-o", "jsonpath={.data.a}").stdout == "b")
    t.check("files of others stay theirs", all(os.stat(os.path.join(c.folder, name)).st_uid == 0 for name in ("", "roots")))
    with open(os.path.join(c.data, "log", "node.log")) as f:
        t.check("the node was never refused by an API server that was not there yet", "refused" not in f.read())
    run = f"/run/c8s/{c.tag()}"
    t.check("nobody else can take the lock", os.stat(os.path.join(c.data, "lock")).st_mode & 0o777 == 0o600)
    t.check("a terminal's Ctrl-C reaches the supervisor alone", len({os.getpgid(pid) for pid in c.parts()}) == 3)
    with open(f"/proc/{c.pid(run + '/control-plane.pid')}/status") as f:
        status = dict(line.split(":\t", 1) for line in f.read().splitlines() if ":\t" in line)
    t.check("the control plane is nobody special and can do nothing", status["Uid"].split()[0] != "0" and int(status["CapBnd"], 16) == 0
            and int(status["CapEff"], 16) == 0 and status["NoNewPrivs"] == "1", status)
    os.makedirs(os.path.join(c.folder, "closed"), 0o700)
    closed = subprocess.run([C8S, "doctor", "--data-dir", os.path.join(c.folder, "closed", "data")], env=c.env, capture_output=True, text=True)
    t.check("doctor says that a folder on the way is closed, and what to do", closed.returncode == 1 and "chmod o+x" in closed.stdout, closed)
    again = c.up()
    t.check("a second one for the same folder is refused and told about the first", again.returncode == 1 and "runs already" in again.stdout + again.stderr, again)
    taken = subprocess.run([C8S, "doctor", "--data-dir", c.data + "3", "--secure-port", str(c.ports[0])], env=c.env, capture_output=True, text=True)
    t.check("doctor says that the port is taken, and what to do", taken.returncode == 1 and "is taken" in taken.stdout and "--secure-port" in taken.stdout, taken)


def test_pods(t, c):
    c.kubectl("run", "web", "--image", "example.com/web:1")
    ready = c.kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=60s")
    t.check("a pod runs and answers", ready.returncode == 0 and page(c) == "it answers\n", c.kubectl("describe", "pod", "web").stdout[-1500:])


def test_kills(t, c):
    run = f"/run/c8s/{c.tag()}"
    started = c.kubectl("get", "pod", "web", "-o", "jsonpath={.status.containerStatuses[0].containerID}").stdout
    for part in ("control-plane", "node"):
        before = c.pid(f"{run}/{part}.pid")
        os.kill(before, signal.SIGKILL)
        t.check(f"{part} killed: another one takes its place", tap.wait_for(lambda: c.pid(f"{run}/{part}.pid") != before, 15))
        t.check("and all is well", tap.wait_for(lambda: c.run("status").returncode == 0, 30), c.run("status").stdout)
    ip = address(c)
    supervisor = c.pid(os.path.join(c.data, "lock"))
    os.kill(supervisor, signal.SIGKILL)
    t.check("supervisor killed: its parts stop", tap.wait_for(lambda: not [p for p in c.processes() if "monitor" not in tap.arguments(p)], 30),
            [tap.arguments(p) for p in c.processes()])
    t.check("pods run on", page(c, ip) == "it answers\n")
    r = c.up()
    t.check("up again needs no flags", r.returncode == 0, r.stdout + r.stderr)
    now = c.kubectl("get", "pod", "web", "-o", "jsonpath={.status.containerStatuses[0].containerID} {.status.containerStatuses[0].restartCount}").stdout
    t.check("the pod is the one of before", now == started + " 0" and page(c) == "it answers\n", now)


def test_upgrade(t, c):
    """A newer c8s is put in the place of the one that runs."""
    before = c.in_containers()
    path = "jsonpath={.status.containerStatuses[0].containerID} {.status.containerStatuses[0].state.running.startedAt}"
    started = c.kubectl("get", "pod", "web", "-o", path).stdout
    c.install()
    parts = c.parts()
    with socket.create_server(("0.0.0.0", 0)) as taken:
        for what, *flags in (("a setting that is wrong", "--node-name", "My_Node"), ("a port that another program has", "--secure-port", str(taken.getsockname()[1])),
                             ("keys that are not there", "--pki", c.folder)):
            r = c.up(*flags)
            t.check(f"{what}: the new one is refused, and the old one goes on", r.returncode == 1 and c.run("status").returncode == 0 and c.parts() == parts, r.stdout + r.stderr)
    r = c.up()
    t.check("up replaces one that runs an older file", r.returncode == 0 and "is replaced by this one" in r.stdout, r.stdout + r.stderr)
    programs = [os.readlink(f"/proc/{pid}/exe") for pid in c.parts()]
    t.check("all parts are the new one", programs == 3 * [os.path.realpath(c.c8s)], programs)
    t.check("containers run on through it", before and c.in_containers() == before and c.kubectl("get", "pod", "web", "-o", path).stdout == started
            and page(c) == "it answers\n", (before, c.in_containers()))


def test_settings(t, c):
    """Errors that are for users."""
    os.makedirs(c.data + "4")
    with open(os.path.join(c.data + "4", "up.yaml"), "w") as f:
        f.write("of-a-later-version: 1\n")
    r = c.run("status", data=c.data + "4")
    t.check("settings of another version are said to be that", r.returncode == 1 and "does not understand" in r.stderr, r)
    r = subprocess.run([c.c8s, "control-plane", "--run-as", "-1", "--data-dir", c.data + "4"], capture_output=True, text=True, timeout=20)
    t.check("a user that cannot be is refused before anything is done", r.returncode == 1 and "not the number of a user" in r.stderr
            and os.listdir(c.data + "4") == ["up.yaml"], r)


def test_join(t, c):
    made = c.run("token", "create", "--ttl", "1h", "--description", "for a test").stdout.split()
    t.check("token create prints the command", made[:2] == ["c8s", "join"], made)
    t.check("token list shows it", "for a test" in c.run("token", "list").stdout)
    url, token, ca = made[2], made[4], made[6]
    wrong = c.run("join", url, "--token", token, "--ca-hash", "sha256:" + "0" * 64, "--kubelet-port", str(c.ports[2]), "--node-name", "n2", "--detach",
                  data=c.data + "2")
    t.check("another authority than the one named is refused", wrong.returncode == 1 and "this is not the cluster" in wrong.stdout + wrong.stderr, wrong)
    r = c.run("join", url, "--token", token, "--ca-hash", ca, "--kubelet-port", str(c.ports[2]), "--node-name", "n2", "--detach", data=c.data + "2")
    t.check("a node joins", r.returncode == 0 and "node n2 is Ready" in r.stdout, r.stdout + r.stderr)
    csrs = json.loads(c.kubectl("get", "csr", "-o", "json").stdout)["items"]
    t.check("by a request that was approved and signed", any(i["spec"]["username"] == "system:bootstrap:" + token[:6] and i["status"].get("certificate") for i in csrs))
    t.check("its status is fine", c.run("status", data=c.data + "2").returncode == 0)
    t.check("token delete removes it", c.run("token", "delete", token).returncode == 0 and "for a test" not in c.run("token", "list").stdout)
    c.run("reset", data=c.data + "2")


def test_down(t, c):
    r = c.run("down")
    t.check("down leaves no process", r.returncode == 0 and not c.processes(), r.stderr + str([tap.arguments(p) for p in c.processes()]))
    t.check("status says so", c.run("status").returncode == 1)
    damaged = os.path.join(c.folder, "damaged")
    with open(damaged, "w") as f:
        f.write("clusters: [")
    r = c.up(KUBECONFIG=damaged)
    with open(damaged) as f:
        t.check("a kubeconfig that cannot be merged keeps no cluster from running, and stays as it is", r.returncode == 0 and f.read() == "clusters: ["
                and "the kubeconfig stays as it is: " in r.stdout and "admin.conf leads to the cluster" in r.stdout, r.stdout + r.stderr)
    t.check("up brings the pod back", r.returncode == 0 and tap.wait_for(lambda: page(c) == "it answers\n", 60),
            r.stdout + r.stderr + c.kubectl("describe", "pod", "web").stdout[-1500:])


def test_reboot(t, c):
    """Everything killed at once, and what is under /run gone."""
    run = f"/run/c8s/{c.tag()}"
    for pid in [os.path.join(c.data, "lock"), f"{run}/control-plane.pid", f"{run}/node.pid"]:
        os.kill(c.pid(pid), signal.SIGKILL)
    tap.kill_all(c.processes())
    tap.wait_for(lambda: not c.processes(), 10)
    with open("/proc/self/mounts") as f:
        for path in [line.split()[1] for line in f if c.folder in line or run in line][::-1]:
            subprocess.run(["umount", "-l", path], capture_output=True)
    shutil.rmtree(run)
    r = c.up()
    t.check("after a reboot the pod comes back", r.returncode == 0 and tap.wait_for(lambda: page(c) == "it answers\n", 60),
            r.stdout + r.stderr + c.kubectl("describe", "pod", "web").stdout[-1500:])


def test_reset(t, c):
    os.makedirs(os.path.join(c.data, "mine"))
    r = c.run("reset")
    left = tap.wait_for(lambda: not c.traces(), 20)
    t.check("reset leaves nothing", r.returncode == 0 and left, r.stderr + "\n".join(c.traces()))
    t.check("but what is not ours", os.path.exists(os.path.join(c.data, "mine")) and os.path.exists(os.path.join(c.folder, "roots")))
    with open(os.path.join(c.folder, ".kube", "config")) as f:
        t.check("nor in the kubeconfig", "c8s" not in f.read())


def main():
    t = tap.Tap()
    if why := nodes.missing(registry=False):
        t.skip("clusters by one command", why)
        t.close()
    nodes.own_namespaces()
    c = Up()
    try:
        for test in (test_up, test_pods, test_kills, test_upgrade, test_settings, test_join, test_down, test_reboot, test_reset):
            test(t, c)
    finally:
        c.close()
    t.close()


if __name__ == "__main__":
    main()
