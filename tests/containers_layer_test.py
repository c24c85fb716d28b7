#!/usr/bin/env python3
"""Layers of images as containers get them: many, hostile, large, and with a runtime that is killed while it unpacks. Needs root."""
import bz2
import gzip
import hashlib
import io
import json
import lzma
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import peers  # noqa: E402
import tap  # noqa: E402
from tap import wait_for  # noqa: E402

C8S = os.environ.get("C8S", "c8s")
BUSYBOX = shutil.which("busybox") or "/bin/busybox"
TIMEOUT = 60


class Runtime:
    """`c8s runtime` in folders of its own, and crictl towards it."""

    def __init__(self, *flags):
        self.name = f"c8s-test-{random.randrange(1 << 32):08x}"
        self.folder = tempfile.mkdtemp(prefix=self.name + "-")
        self.root, self.state = os.path.join(self.folder, "root"), os.path.join(self.folder, "state")
        self.conf = os.path.join(self.folder, "net.d")
        os.makedirs(self.conf)
        self.flags = flags
        self.process = None
        self.pods = 0

    @property
    def socket(self):
        return os.path.join(self.state, "cri.sock")

    def start(self):
        self.log = open(os.path.join(self.folder, "log"), "ab")
        self.process = subprocess.Popen(
            [C8S, "runtime", "--root", self.root, "--state", self.state, "--cni-conf-dir", self.conf, "--cgroup-parent", "/" + self.name,
             "--pod-program", peers.static_pod(), *self.flags], stdout=self.log, stderr=self.log)
        if not wait_for(lambda: self.crictl("version", check=False).returncode == 0):
            raise RuntimeError(self.said())

    def said(self):
        with open(os.path.join(self.folder, "log"), errors="replace") as f:
            return f.read()

    def stop(self, sig=signal.SIGTERM):
        if self.process:
            self.process.send_signal(sig)
            self.process.wait(TIMEOUT)
            self.process = None

    def crictl(self, *args, check=True):
        r = subprocess.run([C8S, "crictl", "-r", "unix://" + self.socket, *args], capture_output=True, text=True, timeout=TIMEOUT)
        if check and r.returncode:
            raise RuntimeError(f"crictl {args}: {r.stdout}{r.stderr}\n{self.said()}")
        return r

    def image(self, *args, check=True):
        return subprocess.run([C8S, "image", "--root", self.root, *args], capture_output=True, text=True, timeout=TIMEOUT, check=check)

    def load(self, name, layers, config=None):
        """An image of these layers (plain tars, or pairs of a tar and how it is sent)."""
        files, diff_ids, names = {}, [], []
        for layer in layers:
            plain, sent = layer if isinstance(layer, tuple) else (layer, layer)
            diff_ids.append("sha256:" + hashlib.sha256(plain).hexdigest())
            names.append(hashlib.sha256(sent).hexdigest() + ".tar")
            files[names[-1]] = sent
        text = json.dumps({"architecture": {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine], "os": "linux",
                           "config": config or {}, "rootfs": {"type": "layers", "diff_ids": diff_ids}}).encode()
        files["config.json"] = text
        files["manifest.json"] = json.dumps([{"Config": "config.json", "RepoTags": [name], "Layers": names}]).encode()
        archive = os.path.join(self.folder, "image.tar")
        with tarfile.open(archive, "w") as t:
            for file, content in files.items():
                info = tarfile.TarInfo(file)
                info.size = len(content)
                t.addfile(info, io.BytesIO(content))
        self.image("load", archive)

    def write(self, name, value):
        path = os.path.join(self.folder, name)
        with open(path, "w") as f:
            json.dump(value, f)
        return path

    def pod_config(self, host_network=True):
        self.pods += 1
        options = {"network": "NODE"} if host_network else {}
        return self.write("pod.json", {"metadata": {"name": f"p{self.pods}", "namespace": "default", "uid": f"{self.name}-{self.pods}"},
                                       "log_directory": self.folder, "linux": {"security_context": {"namespace_options": options}}})

    def run(self, image, command, check=True, host_network=True, **more):
        config = self.write("container.json", {"metadata": {"name": "c"}, "image": {"image": image}, "command": command,
                                               "log_path": "c.log", "linux": {}, **more})
        r = self.crictl("run", "--no-pull", config, self.pod_config(host_network), check=check)
        return r.stdout.strip() if check else r

    def exec(self, container, *command):
        return self.crictl("exec", "-s", container, *command, check=False)

    def close(self):
        if not self.process:
            self.start()
        self.crictl("rmp", "-f", "-a", check=False)
        self.stop()
        subprocess.run(["umount", "-R", "-l", os.path.join(self.root, "snapshots")], stderr=subprocess.DEVNULL)
        self.log.close()
        tap.remove_cgroups(f"/{self.name}")
        shutil.rmtree(self.folder)


def tar(*entries):
    """(name, content) or TarInfo objects."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as t:
        for e in entries:
            if isinstance(e, tarfile.TarInfo):
                t.addfile(e)
                continue
            name, content = e
            info = tarfile.TarInfo(name)
            info.size = len(content)
            info.mode = 0o755
            t.addfile(info, io.BytesIO(content))
    return out.getvalue()


def entry(name, kind, **fields):
    info = tarfile.TarInfo(name)
    info.type = kind
    info.mode = 0o755
    for key, value in fields.items():
        setattr(info, key, value)
    return info


def busybox():
    with open(BUSYBOX, "rb") as f:
        program = f.read()
    links = [entry("bin/" + n, tarfile.SYMTYPE, linkname="busybox") for n in ("sh", "cat", "ls", "sleep", "stat", "echo", "nc", "stty", "tty")]
    folders = [entry(n, tarfile.DIRTYPE) for n in ("bin", "etc", "proc", "dev", "tmp", "sys")]
    return tar(*folders, ("bin/busybox", program), *links)


SLEEP = ["/bin/sleep", "1000"]


def test_many_layers(t, r):
    layers = [busybox()] + [tar((f"layer{i}", str(i).encode())) for i in range(150)]
    layers.append(tar(("layer5", b"replaced"), ("bin/.wh.cat", b""), (".wh.layer6", b""), ("sub/.wh..wh..opq", b"")))
    r.load("test/many:1", [(x, gzip.compress(x, 1)) for x in layers])
    c = r.run("test/many:1", SLEEP)
    seen = r.exec(c, "/bin/sh", "-c", "ls / | busybox grep -c ^layer; read x < /layer149; echo $x; read x < /layer5; echo $x; ls /bin/cat /layer6")
    t.check("a container has 152 layers", seen.stdout.split()[:3] == ["149", "149", "replaced"], seen)
    t.check("what the last layer removes is gone", "layer6: No such" in seen.stderr and "/bin/cat: No such" in seen.stderr, seen)
    c2 = r.run("test/many:1", SLEEP)
    r.exec(c, "/bin/sh", "-c", "echo mine > /layer149")
    t.check("containers do not see what others write", r.exec(c2, "/bin/busybox", "cat", "/layer149").stdout == "149")
    r.stop(signal.SIGKILL)
    r.start()
    t.check("roots stay mounted when the runtime is killed", r.exec(c, "/bin/busybox", "cat", "/layer149").stdout == "mine\n")
    r.crictl("rmp", "-f", "-a")
    mounted = [line for line in open("/proc/self/mountinfo") if r.folder in line and "/snapshots/" in line]
    t.check("nothing stays mounted without containers", not mounted, mounted)


def test_nodes(t, r):
    r.load("test/nodes:1", [busybox(), tar(
        entry("n/null", tarfile.CHRTYPE, devmajor=1, devminor=3, mode=0o666), entry("n/fifo", tarfile.FIFOTYPE),
        entry("n/su", tarfile.REGTYPE, mode=0o4755, uid=12, gid=13, mtime=1000000000), entry("n/hard", tarfile.LNKTYPE, linkname="n/su"))])
    c = r.run("test/nodes:1", SLEEP)
    out = r.exec(c, "/bin/busybox", "stat", "-c", "%F %a %u %g %h %Y", "/n/null", "/n/fifo", "/n/su").stdout.splitlines()
    t.check("devices, fifos, owners, setuid, links and times arrive",
            [x.rsplit(" ", 1)[0] for x in out] == ["character special file 666 0 0 1", "fifo 755 0 0 1", "regular empty file 4755 12 13 2"] and
            out[2].endswith(" 1000000000"), out)
    r.crictl("rmp", "-f", "-a")


def zstd(data):
    return subprocess.run(["zstd", "-q", "-c"], input=data, capture_output=True, check=True).stdout


def test_compressed(t, r):
    """Each layer in another way; the last is cut, for each in turn."""
    ways = {"plain": bytes, "gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress, **({"zstd": zstd} if shutil.which("zstd") else {})}
    layers = [(x := tar((way, way.encode())), pack(x)) for way, pack in ways.items()]
    r.load("test/compressed:1", [busybox(), *layers])
    c = r.run("test/compressed:1", SLEEP)
    out = r.exec(c, "/bin/busybox", "cat", *("/" + way for way in ways)).stdout
    t.check(f"layers come as {', '.join(ways)}", out == "".join(ways), out)
    for way, pack in ways.items():
        plain = tar(("cut", os.urandom(5000)))
        r.load(f"test/cut:{way}", [(plain, pack(plain)[:3000])])
        got = r.run(f"test/cut:{way}", SLEEP, check=False)
        t.check(f"half of one as {way} is refused", got.returncode and "is damaged" in got.stderr, got)
    r.crictl("rmp", "-f", "-a")


# As setcap leaves it: cap_net_bind_service, effective and permitted, of revision 2.
CAPABILITY = bytes.fromhex("0100000200040000000000000000000000000000")


def sparse():
    """GNU tar's own output of a file with holes."""
    folder = tempfile.mkdtemp()
    with open(folder + "/sparse", "wb") as f:
        f.seek(1 << 20)
        f.write(b"data")
        f.truncate(8 << 20)
    out = subprocess.run(["tar", "-C", folder, "--sparse", "--format=posix", "-cf", "-", "sparse"], capture_output=True, check=True).stdout
    shutil.rmtree(folder)
    return out


def test_meta(t, r):
    """Hard links across layers, capabilities of programs, holes; seen from inside."""
    program = entry("bin/bind", tarfile.REGTYPE, mode=0o755, pax_headers={"SCHILY.xattr.security.capability": CAPABILITY.decode()})
    up = tar(entry("bin/second", tarfile.LNKTYPE, linkname="bin/busybox"), entry("third", tarfile.LNKTYPE, linkname="/bin/busybox"))
    r.load("test/meta:1", [busybox(), tar(program), up, sparse()])
    c = r.run("test/meta:1", SLEEP)
    out = r.exec(c, "/bin/busybox", "stat", "-c", "%i %h %s", "/bin/busybox", "/bin/second", "/third").stdout.splitlines()
    t.check("a file of a lower layer has three names", len(set(out)) == 1 and out[0].split()[1:] == ["3", str(os.path.getsize(BUSYBOX))], out)
    layers = os.path.join(r.root, "snapshots/layers")
    found = [os.getxattr(p, "security.capability") for i in os.listdir(layers) if os.path.exists(p := f"{layers}/{i}/fs/bin/bind")]
    t.check("the capabilities of a program arrive", found == [CAPABILITY], found)
    out = r.exec(c, "/bin/sh", "-c", "busybox stat -c '%s %b' /sparse; busybox tail -c +1048577 /sparse | busybox head -c 4").stdout.split()
    t.check("and the holes of a file", out[0] == str(8 << 20) and int(out[1]) < 200 and out[2] == "data", out)
    r.crictl("rmp", "-f", "-a")


def test_collected(t, r):
    """Layers that nothing needs any more go; those of running containers stay."""
    own = [tar(("own", str(i).encode())) for i in range(2)]
    for i in range(2):
        r.load(f"test/collected:{i}", [busybox(), own[i]])
    containers = [r.run(f"test/collected:{i}", SLEEP) for i in range(2)]
    layers = os.path.join(r.root, "snapshots/layers")

    def with_own():
        return sorted(open(p).read() for i in os.listdir(layers) if os.path.exists(p := f"{layers}/{i}/fs/own"))
    r.image("pin", "test/collected:0")
    pinned = {x["repoTags"][0]: x.get("pinned", False) for x in json.loads(r.crictl("images", "-o", "json").stdout)["images"] if "collected" in x["repoTags"][0]}
    t.check("the kubelet sees what is pinned", pinned == {"docker.io/test/collected:0": True, "docker.io/test/collected:1": False}, pinned)
    before = with_own()
    r.crictl("rm", "-f", containers[1])
    for i in range(2):
        r.crictl("rmi", f"test/collected:{i}", check=False)
    gone = wait_for(lambda: with_own() == ["0"], 10)
    t.check("a layer goes with its image, unless a container has it", before == ["0", "1"] and gone, (before, with_own()))
    t.check("which goes on", r.exec(containers[0], "/bin/cat", "/own").stdout == "0")
    r.crictl("rmp", "-f", "-a")


def test_hostile(t, r):
    wrong = {
        "leads out of the layer": tar(("../../../../escaped", b"x")),
        "hard link to": tar(entry("h", tarfile.LNKTYPE, linkname="/etc/shadow")),
        "folders deep": tar(("d/" * 600 + "f", b"")),
        "a part of the name is longer": tar(("n" * 300, b"")),
        "is damaged": tar(("a", b"x" * 5000))[:2000],
    }
    for i, (text, layer) in enumerate(wrong.items()):
        r.load(f"test/wrong:{i}", [busybox(), layer])
        got = r.run(f"test/wrong:{i}", SLEEP, check=False)
        t.check(f"a layer is refused: {text}", got.returncode and text in got.stderr, got)
    plain = tar(("x", b"x"))
    r.load("test/liar:1", [(plain, tar(("x", b"y")))])
    got = r.run("test/liar:1", SLEEP, check=False)
    t.check("a layer that is not what the image says is refused", "wrong diff id calculated on extraction" in got.stderr, got)
    t.check("nothing of them is left", not os.listdir(os.path.join(r.root, "snapshots/tmp")), os.listdir(os.path.join(r.root, "snapshots/tmp")))
    # through links, things land inside
    r.load("test/links:1", [busybox(), tar(entry("out", tarfile.SYMTYPE, linkname="/../../../../.."), ("out/tmp/inside", b"x"),
                                           entry("abs", tarfile.SYMTYPE, linkname="/etc"), ("abs/here", b"y"))])
    c = r.run("test/links:1", SLEEP)
    t.check("entries behind links stay inside", r.exec(c, "/bin/sh", "-c", "echo $(busybox cat /tmp/inside /etc/here)").stdout == "xy\n" and
            not os.path.exists("/tmp/inside") and not os.path.exists("/etc/here"))
    r.crictl("rmp", "-f", "-a")


def test_bomb(t, r):
    """A gigabyte and more of nothing after the end of a tar, in a few kilobytes."""
    if not shutil.which("zstd"):
        t.skip("a bomb is stopped", "no zstd here")
        return
    plain = tar(("x", b"x"))
    zstd = subprocess.Popen(["zstd", "-q", "-c"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    # zstd's output is a few kilobytes: it does not wait for us
    zstd.stdin.write(plain)
    block = bytes(1 << 24)
    for _ in range(70):
        zstd.stdin.write(block)
    zstd.stdin.close()
    sent = zstd.stdout.read()
    zstd.wait()
    r.load("test/bomb:1", [(plain, sent)])
    got = r.run("test/bomb:1", SLEEP, check=False)
    t.check("a bomb is stopped", "too many for its size" in got.stderr, got)


def test_kill(t, r):
    """Killed while it unpacks: the next one begins anew, and no half layer is ever seen."""
    data = os.urandom(1 << 20)
    layers = [busybox()] + [tar(*[(f"data{i}/file{n}", data) for n in range(40)]) for i in range(3)]
    r.load("test/large:1", layers)
    snapshots = os.path.join(r.root, "snapshots")
    killed = 0
    for delay in (0.0, 0.05, 0.15):
        run = subprocess.Popen([C8S, "crictl", "-r", "unix://" + r.socket, "run", "--no-pull",
                                r.write("container.json", {"metadata": {"name": "c"}, "image": {"image": "test/large:1"}, "command": SLEEP}),
                                r.pod_config()], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        killed += bool(wait_for(lambda: any(len(n) == 64 for n in os.listdir(snapshots + "/tmp")), 10))
        time.sleep(delay)
        r.stop(signal.SIGKILL)
        run.wait(TIMEOUT)
        r.start()
        bad = [i for i in os.listdir(snapshots + "/layers")
               for folder, _, files in os.walk(f"{snapshots}/layers/{i}/fs") for f in files
               if f.startswith("file") and os.path.getsize(os.path.join(folder, f)) != len(data)]
        t.check(f"no half layer is visible, killed after {delay} s", not bad and not os.listdir(snapshots + "/tmp"), bad)
    t.check("it was killed while it unpacked", killed >= 1, killed)
    c = r.run("test/large:1", SLEEP)
    count = r.exec(c, "/bin/sh", "-c", "echo /data*/file* | busybox wc -w").stdout.strip()
    t.check("afterwards all is there", count == "120", count)
    mode = os.lstat(os.path.join(snapshots, "layers")).st_mode
    t.check("layers are for root only", stat.S_IMODE(mode) == 0o700, oct(mode))
    r.crictl("rmp", "-f", "-a")


def with_runtime(tests):
    def one(t):
        if os.geteuid() != 0:
            t.skip("layers", "needs root")
            return
        r = Runtime()
        try:
            r.start()
            for test in tests:
                test(t, r)
        finally:
            r.close()
    one.__name__ = "layers"
    return one


if __name__ == "__main__":
    tap.run([with_runtime([test_many_layers, test_nodes, test_compressed, test_meta, test_collected, test_hostile, test_bomb, test_kill])])
