"""Debian's containerd as a peer of c8s runtime: a private one with its own folder, socket, configuration and pause image. Everything it
starts is in a PID and a mount namespace with a /run of its own, so that nothing outlives the `with` block.

    why = containerd.missing()                 # None, or why there cannot be one here
    with containerd.Containerd(runtimes={"crun": "/usr/bin/crun"}, mirrors={"docker.io": "http://127.0.0.1:5000"}) as c:
        subprocess.run([C8S, "crictl", "-r", c.endpoint, "pods"])

Pods belong into c.cgroup (linux.cgroup_parent of their configuration): what is in it is removed at the end. The network is the caller's:
call own_network() first to have one that vanishes with the process."""
import ctypes
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile

import images
import peers
import tap
from cluster import wait_until

C8S = os.environ["C8S"]
PAUSE = "localhost/pause:test"
CLONE_NEWNET = 0x40000000
# The first process in the namespaces reaps orphans, and starts containerd again when it was killed. Mounts are private but those in a folder
# that is shared. crun does not work where it sees controllers of cgroup v2 beside those of v1.
SCRIPT = """while read -r _ _ _ _ point _; do case $point in "$2"*) ;; *) mount --make-private "$point" ;; esac; done </proc/self/mountinfo
mount -t tmpfs -o mode=755 run /run && mkdir /run/containerd || exit
mountpoint -q /sys/fs/cgroup/unified && mount -t tmpfs none /sys/fs/cgroup/unified
while "$0" --config "$1" & wait $!; [ -e "$3" ]; do until [ -e "$3.again" ]; do sleep 0.01; done; rm "$3" "$3.again"; done"""

CONFIG = """version = 2
root = "{root}"
state = "{state}"
oom_score = 0
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.internal.v1.restart", "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = "{socket}"
[ttrpc]
  address = "{socket}.ttrpc"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  restrict_oom_score_adj = true
  tolerate_missing_hugetlb_controller = true
  disable_hugetlb_controller = true
  disable_apparmor = {no_apparmor}
  netns_mounts_under_state_dir = true
  max_concurrent_downloads = 3
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{cni_bin}"
    conf_dir = "{cni_conf}"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "{mirrors}"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "runc"
"""
RUNTIME = """  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.{name}]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.{name}.options]
      BinaryName = "{program}"
"""


def has_apparmor():
    try:
        with open("/sys/module/apparmor/parameters/enabled") as f:
            return f.read(1) == "Y" and os.path.exists("/sbin/apparmor_parser")
    except OSError:
        return False


def own_network():
    """Moves the whole process into a new network namespace with only a loopback interface. Get peers before: there is no way out."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def missing():
    """Why containerd cannot be run here; None: it can."""
    if os.geteuid() != 0:
        return "needs root"
    for program, package in (("containerd", "containerd"), ("runc", "runc"), ("host-local", "containernetworking-plugins")):
        if not peers.find(program, package):
            return f"{program} of Debian's package {package} cannot be had"
    r = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--mount-proc", "true"], capture_output=True, text=True)
    return f"there are no mount and PID namespaces: {r.stderr.strip()}" if r.returncode else None


class Containerd:
    """runtimes: handlers beside "runc", name -> program. mirrors: registry -> URL that is asked in its place. cni_conf, cni_bin: folders;
    without them a bridge, by Debian's plugins. shared: a mount point; what the caller mounts below is seen by containerd, and vice versa."""

    def __init__(self, runtimes=None, mirrors=None, cni_conf=None, cni_bin=None, shared=None):
        self.shared = shared
        self.name = f"c8s-test-ctd-{random.randrange(1 << 32):08x}"
        self.folder = tempfile.mkdtemp(prefix=self.name + "-")
        self.cgroup = "/" + self.name
        self.socket = os.path.join(self.folder, "s")
        self.endpoint = "unix://" + self.socket
        self.log = os.path.join(self.folder, "log")
        self.killed = os.path.join(self.folder, "killed")
        self.bridge, self.process = None, None
        self.cni_bin = cni_bin or os.path.dirname(peers.find("host-local", "containernetworking-plugins"))
        self.cni_conf = cni_conf or self.make_network()
        self.certs = os.path.join(self.folder, "certs.d")
        self.config = os.path.join(self.folder, "config.toml")
        self.configure({"runc": peers.find("runc", "runc"), **(runtimes or {})}, mirrors or {})

    def make_network(self):
        folder = os.path.join(self.folder, "net.d")
        os.makedirs(folder)
        self.bridge = "ctd" + self.name[-8:]
        with open(os.path.join(folder, "10-test.conflist"), "w") as f:
            json.dump({"cniVersion": "1.0.0", "name": self.name, "plugins": [
                {"type": "bridge", "bridge": self.bridge, "isGateway": True,
                 "ipam": {"type": "host-local", "dataDir": os.path.join(self.folder, "ipam"), "ranges": [[{"subnet": "10.212.0.0/16"}]],
                          "routes": [{"dst": "0.0.0.0/0"}]}}]}, f)
        return folder

    def configure(self, runtimes, mirrors):
        with open(self.config, "w") as f:
            f.write(CONFIG.format(root=os.path.join(self.folder, "root"), state=os.path.join(self.folder, "state"), socket=self.socket,
                                  pause=PAUSE, no_apparmor="false" if has_apparmor() else "true", cni_bin=self.cni_bin, cni_conf=self.cni_conf, mirrors=self.certs))
            for name, program in runtimes.items():
                f.write(RUNTIME.format(name=name, program=program))
        for registry, url in mirrors.items():
            os.makedirs(os.path.join(self.certs, registry))
            with open(os.path.join(self.certs, registry, "hosts.toml"), "w") as f:
                f.write(f'server = "{url}"\n[host."{url}"]\n  capabilities = ["pull", "resolve"]\n')

    def said(self, begin=0):
        if not os.path.exists(self.log):
            return ""
        with open(self.log, "rb") as f:
            f.seek(begin)
            return f.read().decode(errors="replace")

    def ctr(self, *args):
        program = os.path.join(os.path.dirname(peers.find("containerd", "containerd")), "ctr")
        return subprocess.run([program, "-a", self.socket, "-n", "k8s.io", *args], capture_output=True, text=True, check=True)

    def load(self, archive):
        """Images of an archive as docker save writes it."""
        return self.ctr("images", "import", archive)

    def is_ready(self, begin=0):
        if self.process.poll() is not None:
            raise RuntimeError("containerd has ended:\n" + self.said()[-4000:])
        return "containerd successfully booted" in self.said(begin)

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def start(self):
        program = peers.find("containerd", "containerd")
        env = {**peers.libraries(), "PATH": os.pathsep.join((os.path.dirname(program), os.environ["PATH"]))}
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(["unshare", "--mount", "--propagation", "unchanged" if self.shared else "private", "--pid", "--fork",
                                             "--kill-child", "--mount-proc", "sh", "-c", SCRIPT, program, self.config, self.shared or "none", self.killed],
                                            stdout=log, stderr=log, env=env)
        wait_until(self.is_ready, what="containerd")
        pause = os.path.join(self.folder, "pause.tar")
        with open(peers.static_pod(), "rb") as f:
            images.Image({"bin/pause": f.read()}, config={"Entrypoint": ["/bin/pause"]}).docker_archive(pause, PAUSE)
        self.load(pause)
        os.unlink(pause)
        return self

    def pid(self):
        """Of containerd itself; None: it does not run."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    if f.read().split(b"\0")[1:3] == [b"--config", self.config.encode()]:
                        return int(pid)
            except OSError:
                pass  # it has ended
        return None

    def kill(self):
        """As a crash would: what it has started goes on."""
        wait_until(self.pid, what="the process of containerd")
        open(self.killed, "w").close()
        os.kill(self.pid(), signal.SIGKILL)
        wait_until(lambda: self.pid() is None, what="the end of containerd")

    def spawn_again(self):
        """After kill(); where in the log it begins."""
        begin = os.path.getsize(self.log)
        open(self.killed + ".again", "w").close()
        return begin

    def start_again(self):
        begin = self.spawn_again()
        wait_until(lambda: self.is_ready(begin), what="containerd")
        wait_until(lambda: subprocess.run([C8S, "crictl", "-r", self.endpoint, "pods"], capture_output=True).returncode == 0,
                   what="containerd to have looked at what was there")

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.process and self.process.poll() is None:
            try:
                subprocess.run([C8S, "crictl", "-r", self.endpoint, "rmp", "-f", "-a"], capture_output=True, timeout=60)
            except subprocess.TimeoutExpired:
                pass
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        if self.bridge:
            subprocess.run(["ip", "link", "del", self.bridge], capture_output=True)
        try:
            wait_until(lambda: tap.remove_cgroups(self.cgroup), 10, f"the end of {self.cgroup}")
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


if __name__ == "__main__":
    print(missing() or "containerd can run", file=sys.stderr)
