#!/usr/bin/env python3
"""Ways out of containers that other runtimes had, tried on ours (c8s-pod runc, c8s runtime). Needs root.

Each check was seen to fail with its protection taken out of the code: a new one belongs here only when that was done."""
import contextlib
import ctypes
import fcntl
import hashlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import containers_cri_test as cri  # noqa: E402
import images  # noqa: E402
import tap  # noqa: E402
from containers_oci_test import ALL_CAPS, BUSYBOX, FOLDER, POD, ROOT, Box, until  # noqa: E402

OUTSIDE = os.path.join(FOLDER, "outside")  # what nothing may be written to
UP = "../" * 12
MIGHTY = {"capabilities": {k: ALL_CAPS for k in ("bounding", "effective", "permitted")}, "noNewPrivileges": False}
KNOB = "/proc/sys/net/ipv4/ip_unprivileged_port_start"  # as core_pattern, but each container has its own
LIBC = ctypes.CDLL(None, use_errno=True)


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def text_of(path):
    if not os.path.exists(path):
        return ""
    with open(path) as f:
        return f.read()


def put(path, text="", mode=0o644):
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


def without(b, *destinations):
    b.config["mounts"] = [m for m in b.config["mounts"] if not m["destination"].startswith(destinations)]


def bind(destination, source, *options):
    return {"destination": destination, "type": "bind", "source": source, "options": ["bind", *options]}


def mapped(b):
    """Into a user namespace, and its files with it."""
    b.config["linux"]["namespaces"].append({"type": "user"})
    b.config["linux"]["uidMappings"] = b.config["linux"]["gidMappings"] = [{"containerID": 0, "hostID": 100000, "size": 1000}]
    os.chmod(FOLDER, 0o755)
    for path, folders, files in os.walk(b.bundle):
        for f in folders + files:
            os.lchown(os.path.join(path, f), 100000, 100000)


@contextlib.contextmanager
def empty_outside():
    os.makedirs(OUTSIDE)
    try:
        yield OUTSIDE
    finally:
        shutil.rmtree(OUTSIDE)


@contextlib.contextmanager
def swapping(a, z):
    """Somebody who exchanges two names all the time."""
    a, z = a.encode(), z.encode()
    pid = os.fork()
    if pid == 0:
        LIBC.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        while True:
            LIBC.renameat2(-100, a, -100, z, 2)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_overwrite_of_the_runtime(t):
    """CVE-2019-5736: who gets into the container is held open by /proc/PID/exe, and written to later."""
    victim = os.path.join(FOLDER, "c8s-pod")
    shutil.copy(POD, victim)
    before = digest(victim)
    attack = """
    while :; do for p in /proc/[0-9]*; do case $p in /proc/1|/proc/$$) continue;; esac
      ( exec 9<$p/exe && case $(readlink /proc/self/fd/9) in */busybox) exit;; esac
        echo caught >> /caught
        for i in 1 2 3 4 5 6 7 8; do (echo broken > /proc/self/fd/9) 2>> /errors && echo written >> /written; usleep 2000; done ) 2>/dev/null
    done; done"""
    with Box(attack, runtime=[victim, "runc"], **MIGHTY) as b:
        put(os.path.join(b.rootfs, "bin/evil"), "#!/proc/self/exe\n", 0o755)
        b.create()
        with contextlib.suppress(OSError):  # it may be broken
            for _ in range(15):
                b.exec(["/bin/evil"])
                b.exec(["true"])
        b.runtime = [POD, "runc"]
        errors = text_of(os.path.join(b.rootfs, "errors"))
        t.check("the runtime's file is as it was", digest(victim) == before and not os.path.exists(os.path.join(b.rootfs, "written")), errors)
        if os.path.exists(os.path.join(b.rootfs, "caught")):
            t.check("who tried met a read-only file system", "Read-only file system" in errors, errors[:500])
        else:
            t.skip("who tried met a read-only file system", "the attacker never saw us")


def test_leaked_descriptors(t):
    """CVE-2024-21626: a working directory, or a program, by a descriptor that the runtime, or who called it, left open."""
    with empty_outside(), Box() as b, Box("exec sleep 1000") as long:
        program = put(os.path.join(OUTSIDE, "program"), "#!/bin/sh\necho outside\n", 0o755)
        folder = os.open(OUTSIDE, os.O_RDONLY | os.O_DIRECTORY)
        leak = fcntl.fcntl(folder, fcntl.F_DUPFD, 100)
        known = {"pass_fds": [leak]}
        long.create()
        os.symlink(f"/proc/self/fd/{leak}", os.path.join(b.rootfs, "link"))
        ways = [*(f"/proc/self/fd/{fd}" for fd in range(3, 24)), f"/proc/self/fd/{leak}", "/link"]
        os.symlink(f"/proc/self/fd/{leak}", os.path.join(long.rootfs, "link"))

        def run(cwd, *args):
            b.config["process"].update(cwd=cwd, args=list(args))
            return b.run(**known)

        def enter(cwd, *args):
            return long.exec("--cwd", cwd, list(args), **known)
        for name, go in (("run", run), ("exec", enter)):
            bad = [cwd for cwd in ways if go(cwd, "true")[0] == 0]
            t.check(f"{name}: no descriptor is a way out", not bad, bad)
            bad = [way for way in ways for cwd, path in (("/", f"{way}/program"), ("/", f"{way}/{UP}{program}"), (way, f"./{UP}{program}"))
                   if "outside" in go(cwd, path)[1]]
            t.check(f"{name}: nor for a program", not bad, bad)
            r = go("/", "ls", "/proc/self/fd")
            t.check(f"{name}: the caller's are not inside", r[1].split() == ["0", "1", "2", "3"], r)
        os.close(folder)
        os.close(leak)


def test_who_enters(t):
    """CVE-2016-9962: a process on its way in shows its descriptors, its root and its memory to those inside."""
    spy = """
    while :; do for p in /proc/[0-9]*; do
      read name < $p/comm && case $name in c8s-pod*) ;; *) continue;; esac
      for f in $p/root $p/cwd $p/fd/*; do x=$(readlink $f) && echo "$f $x" >> /links; done
      cat $p/environ >> /environ; echo >> /seen
    done 2>/dev/null; done"""
    os.environ["SECRET"] = "of-the-host"
    for user in (False, True):
        with Box(spy) as b, Box("true") as waiting:
            if user:
                b.config["process"].update(MIGHTY)
                mapped(b)
                mapped(waiting)
            r = b.create()
            for _ in range(20):
                b.exec(["true"])
            # One that shares its processes, and waits for its start.
            for n in waiting.config["linux"]["namespaces"]:
                if n["type"] in ("pid", "user"):
                    n["path"] = f"/proc/{b.state()['pid']}/ns/{n['type']}"
            for key in ("uidMappings", "gidMappings"):
                waiting.config["linux"].pop(key, None)
            w = waiting.create(start=False)
            seen = os.path.join(b.rootfs, "seen")
            saw = until(lambda: text_of(seen))
            before = len(saw)
            until(lambda: len(text_of(seen)) > before + 1)
            links, said = text_of(os.path.join(b.rootfs, "links")), text_of(os.path.join(b.rootfs, "environ"))
            t.check("who enters shows nothing of outside" + (" to a user namespace" if user else ""),
                    saw and w[0] == 0 and FOLDER not in links and "of-the-host" not in said, (r, w, links[:500], said[:200]))


def test_links_at_targets(t):
    """CVE-2021-30465, 2024-45310: a link where something is to be mounted or made, and one that changes while we look."""
    marker = {"type": "tmpfs", "source": "marker"}
    device = {"type": "c", "major": 1, "minor": 3}
    file = put(os.path.join(FOLDER, "file"), "file")
    # Where it is put, and what of the configuration puts it there.
    targets = (("a folder", lambda c, at, n: c["mounts"].extend({"destination": f"{at}/inner{i}", **marker} for i in range(n))),
               ("a file", lambda c, at, n: c["mounts"].extend(bind(f"{at}/file{i}", file) for i in range(n))),
               ("a device", lambda c, at, n: c["linux"].update(devices=[{"path": f"{at}/device{i}", **device} for i in range(n)])),
               ("a working directory", lambda c, at, _: c["process"].update(cwd=at + "/cwd")))
    for what, ask in targets:
        for how, link in (("a path up", UP + OUTSIDE[1:]), ("an absolute path", OUTSIDE)):
            with empty_outside(), Box("echo inside") as b:
                os.rmdir(os.path.join(b.rootfs, "data"))
                os.symlink(link, os.path.join(b.rootfs, "data"))
                ask(b.config, "/data", 1)
                r = b.run()
                t.check(f"{what} by a link with {how} stays inside", os.listdir(OUTSIDE) == [] and r[1] == "inside\n", (r, os.listdir(OUTSIDE)))
        with empty_outside(), Box("echo inside") as b:
            volume = os.path.join(b.bundle, "volume")
            os.makedirs(volume + "/folder")
            os.symlink(OUTSIDE, volume + "/link")
            b.config["mounts"].append(bind("/vol", volume))
            ask(b.config, "/vol/folder", 8)
            with swapping(volume + "/folder", volume + "/link"):
                results = [b.run() for _ in range(25)]
            t.check(f"{what} by a link that comes and goes stays inside", os.listdir(OUTSIDE) == [] and any(r[1] for r in results),
                    (os.listdir(OUTSIDE), results[:3]))
    with empty_outside(), Box("true") as b:
        os.symlink(OUTSIDE + "/made", os.path.join(b.rootfs, "data/file"))
        b.config["mounts"].append(bind("/data/file", file))
        r = b.run()
        t.check("a file by a link that leads nowhere stays inside", os.listdir(OUTSIDE) == [] and r[0] == 0, r)


def special(path, kind):
    """Something at path that is not what the runtime expects there."""
    if kind == "link":
        os.symlink(KNOB, path)
    elif kind == "dangling link":
        os.symlink(OUTSIDE + "/made", path)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        os.makedirs(path)
    elif kind == "file":
        put(path)
    elif kind == "other device":
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5))


def test_replaced_devices(t):
    """CVE-2025-31133, 2025-52565: /dev/null, /dev/console and terminals that are not what they seem."""
    for kind in ("link", "dangling link", "pipe", "folder", "file", "other device"):
        with empty_outside(), Box("true") as b:
            without(b, "/dev")
            special(os.path.join(b.rootfs, "dev/null"), kind)
            r = b.run()
            t.check(f"/dev/null of the image, {kind}: refused", r[0] == 1 and "device /dev/null: something else is there" in r[2], r)
    for kind in ("missing", "link", "pipe", "file", "other device"):
        with Box(f"stat -c %t,%T /proc/keys; echo 77 1<> /proc/keys; cat {KNOB}; (echo 77 > {KNOB}) && echo written") as b:
            dev = os.path.join(b.bundle, "dev")
            os.mkdir(dev)
            without(b, "/dev")
            b.config["mounts"].append(bind("/dev", dev))
            special(dev + "/null", kind)
            r = b.run()
            t.check(f"/dev/null of a volume, {kind}: what is to be masked is", r[1] == "1,3\n1024\n", r)
    for kind in ("link", "dangling link", "folder"):
        with empty_outside(), Box("true", terminal=True) as b:
            b.config["mounts"] = [m for m in b.config["mounts"] if m["destination"] != "/dev"]
            special(os.path.join(b.rootfs, "dev/console"), kind)
            r = b.run()
            t.check(f"/dev/console of the image, {kind}: refused",
                    r[0] == 1 and "/dev/console is a link or a folder" in r[2] and os.listdir(OUTSIDE) == [], r)
    with empty_outside(), Box("tty", terminal=True) as b:
        volume = os.path.join(b.bundle, "volume")
        os.makedirs(volume)
        special(volume + "/console", "file")
        special(volume + "/link", "dangling link")
        b.config["mounts"][1] = bind("/dev", volume)
        with swapping(volume + "/console", volume + "/link"):
            results = [b.run() for _ in range(25)]
        t.check("/dev/console that comes and goes leads nowhere", os.listdir(OUTSIDE) == [] and any("/dev/pts" in r[1] for r in results), results[:3])
    for kind in ("link", "pipe", "file", "other device"):
        with Box("exec sleep 1000") as b:
            without(b, "/dev/pts", "/dev")
            os.makedirs(os.path.join(b.rootfs, "dev/pts"))
            special(os.path.join(b.rootfs, "dev/pts/ptmx"), kind)
            b.create()
            entered = b.exec("-t", "true")
            b.delete()
            b.config["process"]["terminal"] = True
            r = b.run()
            t.check(f"a terminal that is none, {kind}: refused", r[0] == 1 and "is no pseudoterminal" in r[2] and entered[0] == 255 and
                    ("is no pseudoterminal" in entered[2] or "Read-only file system" in entered[2]), (r, entered))


def test_false_proc(t):
    """CVE-2019-16884, 2019-19921, 2023-27561, 2025-52881: what is written to /proc goes to the kernel and nowhere else."""
    for folder, kind in (("proc", "proc"), ("sys", "sysfs")):
        with Box("true") as b:
            os.rmdir(os.path.join(b.rootfs, folder))
            os.makedirs(os.path.join(b.rootfs, "fake"))
            os.symlink("fake", os.path.join(b.rootfs, folder))
            r = b.run()
            t.check(f"/{folder} of the image is a link: refused", r[0] == 1 and f'filesystem "{kind}" must be mounted on ordinary directory' in r[2], r)
    for link in ("/proc", "/proc/self/attr", "/proc/sys/net"):
        for what in ("bind", "tmpfs", "cgroup"):
            with Box("true") as b:
                os.rmdir(os.path.join(b.rootfs, "data"))
                os.symlink(link, os.path.join(b.rootfs, "data"))
                b.config["mounts"].append({"destination": "/data", "type": what, "source": FOLDER, "options": ["bind"] if what == "bind" else []})
                r = b.run()
                t.check(f"a {what} by a link to {link}: refused", r[0] == 1 and "it is inside /proc" in r[2], r)
    with Box(f"cat {KNOB.replace('proc', 'true')} /true/1/oom_score_adj", oomScoreAdj=555) as b:
        fake = os.path.join(b.rootfs, "fake")
        targets = [os.path.join(fake, x) for x in (KNOB.removeprefix("/proc/"), "1/oom_score_adj", "self/oom_score_adj")]
        for target in targets:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            put(target)
        b.config["linux"]["sysctl"] = {"net.ipv4.ip_unprivileged_port_start": "77"}
        b.config["mounts"][0] = bind("/proc", fake)
        b.config["mounts"].append({"destination": "/true", "type": "proc", "source": "proc"})
        r = b.run()
        t.check("run: a sysctl and oom_score_adj do not go to a false /proc, but to the true one", not any(map(text_of, targets)) and r[1] == "77\n555\n", r)
    # The container itself puts another one there, before somebody comes in.
    with Box("mount -t tmpfs x /proc; mkdir -p /proc/self/attr; for f in self/oom_score_adj self/attr/exec; do echo -n > /proc/$f; done; "
             "echo ready; exec sleep 1000", **MIGHTY) as b:
        b.create()
        until(lambda: "ready" in b.output())
        process = put(os.path.join(b.bundle, "process.json"), json.dumps(dict(b.config["process"], args=["sleep", "1000"], oomScoreAdj=666)))
        pid_file = os.path.join(b.bundle, "pid")
        subprocess.run([POD, "runc", "--root", ROOT, "exec", "-d", "--pid-file", pid_file, "-p", process, b.id], stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
        r = b.exec("cat /proc/self/*")
        t.check("exec: nor does it then", text_of(f"/proc/{text_of(pid_file)}/oom_score_adj") == "666\n" and r[1] == "", r)


def test_devices_of_the_host(t):
    """A /dev of the host in the container, whatever its path is spelled like: nothing in it is replaced."""
    for spelled, dev, other in (("/dev", None, None), ("/dev/", None, None), ("//dev/.", None, None), ("/data/../dev", None, None), ("/other", None, "dev"),
                                ("/data", "data", None), ("/data", "/data", None)):
        with Box("cat /dev/ptmx") as b:
            fake = os.path.join(b.bundle, "dev")
            os.makedirs(fake)
            os.mknod(fake + "/null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            put(fake + "/ptmx", "of the host")
            without(b, "/dev")
            b.config["mounts"].append(bind(spelled, fake))
            if dev:
                os.rmdir(os.path.join(b.rootfs, "dev"))
                os.symlink(dev, os.path.join(b.rootfs, "dev"))
            if other:
                os.symlink(other, os.path.join(b.rootfs, "other"))
            r = b.run()
            t.check(f"/dev of the host at {spelled} stays as it is" + (f", with /dev a link to {dev}" if dev else ""),
                    (r[1] == "of the host" or (dev and "/dev is no ordinary directory" in r[2])) and sorted(os.listdir(fake)) == ["null", "ptmx"], (r, os.listdir(fake)))


def can_open(path):
    with contextlib.suppress(OSError), open(path, "rb"):
        return True
    return False


def test_device_files(t):
    """Device files that come with the image, or are made by somebody who may: they cannot be opened."""
    path = next(filter(can_open, ("/dev/fuse", "/dev/loop-control", "/dev/sda", "/dev/vda")), None)
    if not path:
        t.skip("devices of the host", "there is none that we can open")
        return
    st = os.stat(path)
    make = f"mknod /tmp/made {'b' if stat.S_ISBLK(st.st_mode) else 'c'} {os.major(st.st_rdev)} {os.minor(st.st_rdev)}"
    look = f"rm -f /tmp/made; {make}; for f in /tmp/made /image; do test -e $f && ( : < $f ) && echo opened; done 2>&1; echo ready"
    with Box(look + "; exec sleep 1000", **MIGHTY) as b:
        os.mknod(os.path.join(b.rootfs, "image"), 0o666 | stat.S_IFMT(st.st_mode), st.st_rdev)
        b.create()
        until(lambda: "ready" in b.output())
        for name, said in (("run", b.output()), ("exec", b.exec(look)[1])):
            t.check(f"{name}: {path} of the host cannot be opened", "opened" not in said and said.count("not permitted") == 2, said)


def test_cgroups(t):
    """CVE-2022-0492 and its kind: nothing of the cgroups above is seen, mounted anew or not."""
    look = "cat /proc/self/cgroup | cut -d: -f3; ls -R /sys/fs/cgroup; mount -t cgroup -o pids x /tmp || mount -t cgroup2 x /tmp; ls -a /tmp; umount /tmp"
    with Box(look + "; echo ready; exec sleep 1000", **MIGHTY) as b:
        b.config["mounts"].append({"destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup"})
        b.create()
        until(lambda: "ready" in b.output())
        for name, said in (("run", b.output()), ("exec", b.exec(look)[1])):
            lines = said.split("\n")
            t.check(f"{name}: the container's cgroup is the top", lines[0] == "/" and b.id not in said and "release_agent" not in said and
                    said.count("cgroup.procs") > 1, said)


def test_identity(t):
    """What those who call the runtime are does not go in: groups, capabilities to be inherited, the user of outside."""
    with empty_outside(), Box("id -G; grep -E 'Cap(Inh|Amb)' /proc/self/status", user={"uid": 7, "gid": 7}) as b, Box("exec sleep 1000") as long:
        long.create()
        for name, go in (("run", b.run), ("exec", lambda **how: long.exec("-u", "7:7", b.config["process"]["args"], **how))):
            r = go(preexec_fn=lambda: os.setgroups([0, 4242]))
            t.check(f"{name}: no group and no capability of the caller", r[1].split() == ["7", "CapInh:", "0" * 16, "CapAmb:", "0" * 16], r)
    with empty_outside(), Box("cat /vol/secret; exec sleep 1000", **MIGHTY) as b:
        put(os.path.join(OUTSIDE, "secret"), "secret", 0o600)
        b.config["mounts"].append(bind("/vol", OUTSIDE))
        mapped(b)
        r = b.create()
        until(lambda: b.output())
        said = b.output(), b.exec("cat /vol/secret")
        t.check("root of a user namespace is nobody outside, nor is who enters", "secret" in said[0] and "Permission denied" in said[0] and
                said[1][1] == "" and "Permission denied" in said[1][2], (r, said))


def test_old_root(t):
    """The root of the host is left behind, and nobody comes in before all is in its place."""
    with empty_outside(), Box("cut -d' ' -f5 /proc/self/mountinfo", **MIGHTY) as b:
        r = b.run()
        t.check("it is not below ours", r[1].split().count("/") == 1 and set(r[1].split()) <= {
            "/", "/proc", "/dev", "/dev/pts", "/dev/shm", "/sys", "/proc/keys", "/proc/acpi", "/sys/firmware", "/proc/sys", "/proc/irq"}, r)
        got = os.path.join(OUTSIDE, "got")
        b.config["hooks"] = {"createRuntime": [{"path": "/bin/sh", "args": ["sh", "-c", f"{POD} runc --root {ROOT} exec {b.id} stat /proc/keys > {got}"]}]}
        b.run()
        t.check("an exec while it is made, before anything is masked, is refused", os.path.exists(got) and text_of(got) == "", text_of(got))


def test_images(t):
    """CVE-2022-23648 and its kind: what an image says of its files is looked for in the image, by the runtime too."""
    with empty_outside(), contextlib.closing(cri.Node("escapes", network=False)) as node:
        put(os.path.join(OUTSIDE, "secret"), "secret")
        put(os.path.join(OUTSIDE, "passwd"), "intruder:x:4321:4321::/:/bin/sh\n")
        before = os.listdir(OUTSIDE)
        up = UP + OUTSIDE[1:]
        files = {**images.busybox(), "etc/passwd": up + "/passwd", "etc/hosts": OUTSIDE + "/hosts", "absolute": OUTSIDE, "up": up}
        archive = os.path.join(FOLDER, "image.tar")
        images.Image(files, config={"Cmd": ["sh"], "Volumes": {"/absolute": {}, "/up": {}, "/" + up: {}}}).docker_archive(archive, cri.IMAGE)
        subprocess.run([cri.C8S, "image", "--root", node.root, "load", archive], check=True, capture_output=True)
        node.start()
        space = {"namespace_options": {"network": 2, "pid": 1}}
        pod = node.runp("pod", linux={"security_context": space})

        def make(name, *command, **more):
            try:
                return node.exec(node.run(pod, "pod", name, ["sleep", "1000"], **{"security": space, **more}), *command)
            except cri.Failed as e:
                return str(e)
        said = make("volumes", "sh", "-c", f"ls /absolute /up {OUTSIDE}; touch /absolute/new && echo done")
        t.check("volumes of the image", "secret" not in said and "done" in said, said)
        said = make("user", "id", "-u", security={**space, "run_as_username": "intruder"})
        t.check("users of the image", "4321" not in said and "unable to find user intruder" in said, said)
        for i, path in enumerate(("absolute", "up", up)):
            said = make(f"path{i}", "ls", "/sub", mounts=[{"container_path": "/sub", "image": {"image": cri.IMAGE}, "image_sub_path": path}])
            t.check(f"a path in an image that is mounted: {path}", "secret" not in said and "failed to mount image volume" in said, said)
        t.check("nothing is written outside", os.listdir(OUTSIDE) == before, os.listdir(OUTSIDE))


def main():
    if os.geteuid() != 0 or not os.path.exists(BUSYBOX):
        print("1..0 # SKIP containers need root and a static busybox")
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    tap.run([test_overwrite_of_the_runtime, test_leaked_descriptors, test_who_enters, test_links_at_targets, test_replaced_devices, test_false_proc,
             test_devices_of_the_host, test_device_files, test_cgroups, test_identity, test_old_root, test_images])


if __name__ == "__main__":
    try:
        main()
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)
        shutil.rmtree(cri.FOLDER, ignore_errors=True)
