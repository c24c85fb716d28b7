#!/usr/bin/env python3
"""The OCI runtime (c8s-pod runc): containers as they look from inside, their life by the command line, failures with step and errno.
Debian's runc runs the same bundle for comparison. Needs root."""
import array
import fcntl
import json
import os
import random
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import peers  # noqa: E402
import tap  # noqa: E402

POD = os.path.join(os.path.dirname(os.environ["C8S"]), "c8s-pod")
NAME = f"c8s-test-oci-{random.randrange(1 << 32):08x}"
FOLDER = tempfile.mkdtemp(prefix=NAME + "-")
ROOT = os.path.join(FOLDER, "root")
BUSYBOX = shutil.which("busybox") or "/bin/busybox"
APPLETS = ("sh cat echo sleep id hostname ls mount umount ps true false env touch mkdir mknod grep readlink stat wc head tail ln ip tr cut "
           "printf kill seq pwd tty stty chmod rm rmdir dd od usleep sort uname ionice mkfifo").split()
CAPS = ["CAP_KILL", "CAP_CHOWN", "CAP_SETUID", "CAP_SETGID", "CAP_NET_BIND_SERVICE"]
ALL_CAPS = ["CAP_" + c for c in (
    "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST NET_ADMIN "
    "NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_TIME SYS_TTY_CONFIG "
    "MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP").split()]
NAMESPACES = ("pid", "network", "ipc", "uts", "mount", "cgroup")
counter = 0


def make_rootfs(path):
    for folder in ("bin", "proc", "dev", "tmp", "sys", "etc", "data"):
        os.makedirs(os.path.join(path, folder), exist_ok=True)
    shutil.copy(BUSYBOX, os.path.join(path, "bin/busybox"))
    for name in APPLETS:
        os.symlink("busybox", os.path.join(path, "bin", name))


def base_config():
    return {
        "ociVersion": "1.0.2",
        "process": {"terminal": False, "user": {"uid": 0, "gid": 0}, "args": ["true"], "env": ["PATH=/bin", "A=b"], "cwd": "/",
                    "capabilities": {k: CAPS for k in ("bounding", "effective", "permitted")}, "noNewPrivileges": True},
        "root": {"path": "rootfs", "readonly": False}, "hostname": "box",
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "strictatime", "mode=755", "size=65536k"]},
            {"destination": "/dev/pts", "type": "devpts", "source": "devpts",
             "options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"]},
            {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": ["nosuid", "noexec", "nodev", "mode=1777", "size=64k"]},
            {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["nosuid", "noexec", "nodev", "ro"]}],
        "linux": {"namespaces": [{"type": n} for n in NAMESPACES], "resources": {"devices": [{"allow": False, "access": "rwm"}]},
                  "maskedPaths": ["/proc/keys", "/proc/acpi", "/sys/firmware", "/proc/missing"],
                  "readonlyPaths": ["/proc/sys", "/proc/irq", "/proc/missing"]},
    }


class Box:
    """One bundle and container id."""

    def __init__(self, script=None, runtime=None, **process):
        global counter
        counter += 1
        self.id = f"{NAME}-{counter}"
        self.bundle = os.path.join(FOLDER, f"bundle{counter}")
        self.rootfs = os.path.join(self.bundle, "rootfs")
        os.makedirs(self.rootfs)
        make_rootfs(self.rootfs)
        self.runtime = runtime or [POD, "runc"]
        self.config = base_config()
        self.config["linux"]["cgroupsPath"] = f"/{self.id}"
        if script is not None:
            self.config["process"]["args"] = ["sh", "-c", script]
        self.config["process"].update(process)

    def save(self):
        with open(os.path.join(self.bundle, "config.json"), "w") as f:
            json.dump(self.config, f)

    def call(self, *args, **how):
        how.setdefault("stdin", subprocess.DEVNULL)
        r = subprocess.run([*self.runtime, "--root", ROOT, *args], capture_output=True, text=True, timeout=60, **how)
        return r.returncode, r.stdout, r.stderr

    def run(self, *flags, **how):
        self.save()
        return self.call("run", *flags, "--bundle", self.bundle, self.id, **how)

    def create(self, *flags, start=True):
        """Detached: stdio are files, since a pipe would stay open as long as the container lives."""
        self.save()
        with open(os.path.join(self.bundle, "out"), "w") as out:
            r = subprocess.run([*self.runtime, "--root", ROOT, "create", *flags, "--bundle", self.bundle, self.id], stdin=subprocess.DEVNULL,
                               stdout=out, stderr=out, timeout=60)
        if r.returncode == 0 and start:
            return self.call("start", self.id)
        return r.returncode, "", self.output()

    def output(self):
        with open(os.path.join(self.bundle, "out")) as f:
            return f.read()

    def exec(self, *args, **how):
        return self.call("exec", *args[:-1], self.id, *(args[-1] if isinstance(args[-1], list) else ["sh", "-c", args[-1]]), **how)

    def state(self):
        return json.loads(self.call("state", self.id)[1])

    def in_groups(self):
        return any(os.path.exists(f"/sys/fs/cgroup/{folder}{self.id}") for folder in ("", "memory/"))

    def limit(self, controller, name, unified=None):
        """A file of its cgroup, as it is outside."""
        v1 = f"/sys/fs/cgroup/{controller}/{self.id}/{name}"
        with open(v1 if os.path.exists(v1) else f"/sys/fs/cgroup/{self.id}/{unified or name}") as f:
            return f.read().strip()

    def delete(self):
        return self.call("delete", "--force", self.id)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.delete()
        shutil.rmtree(self.bundle, ignore_errors=True)


def until(what, limit=20):
    end = time.monotonic() + limit
    while not what() and time.monotonic() < end:
        time.sleep(0.01)
    return what()


def test_run(t):
    with Box("id -u; hostname; pwd; echo $A; cat; exit 7", cwd="/data") as b:
        b.save()
        rc = subprocess.run([POD, "runc", "--root", ROOT, "run", "-b", b.bundle, b.id], input="in\n", capture_output=True, text=True)
        t.check("run gives output and exit code", (rc.returncode, rc.stdout) == (7, "0\nbox\n/data\nb\nin\n"), (rc.returncode, rc.stdout, rc.stderr))
        t.check("nothing is left of it", not os.path.exists(f"{ROOT}/{b.id}") and not b.in_groups())
    with Box("exec sleep 1000") as b:
        b.save()
        p = subprocess.Popen([POD, "runc", "--root", ROOT, "run", "-b", b.bundle, b.id], stdin=subprocess.DEVNULL)
        until(lambda: b.call("state", b.id)[0] == 0 and b.state()["status"] == "running")
        b.call("kill", b.id, "KILL")
        t.check("a signal is 128 + its number", p.wait(timeout=20) == 137)
    with Box("ls /proc/self/fd; umask", user={"uid": 0, "gid": 0, "umask": 0o027}) as b:
        rc, out, err = b.run()
        t.check("no descriptor of ours is inside", out.split() == ["0", "1", "2", "3", "0027"], out + err)
    with Box("cat <&5; echo; ls /proc/self/fd | wc -l") as b:
        b.save()
        r, w = os.pipe()
        os.write(w, b"five")
        os.close(w)
        def place():
            for fd in (3, 4, 5):
                os.dup2(r, fd)
        rc = subprocess.run([POD, "runc", "--root", ROOT, "run", "--preserve-fds", "3", "-b", b.bundle, b.id], capture_output=True, text=True,
                            preexec_fn=place, pass_fds=[3, 4, 5])
        t.check("--preserve-fds passes 3, 4 and 5", rc.stdout.split() == ["five", "7"], rc.stdout + rc.stderr)
        os.close(r)
    with Box("pwd; umask", cwd="/made/for/it") as b:
        t.check("a missing cwd is made; the umask is not ours", b.run(preexec_fn=lambda: os.umask(0o077))[1] == "/made/for/it\n0022\n")
        t.check("with a usual mode", os.stat(os.path.join(b.rootfs, "made")).st_mode & 0o777 == 0o755)
    with Box("echo hi") as b:
        b.save()
        r = subprocess.run([os.environ["C8S"], "runc", "--root", ROOT, "run", "-b", b.bundle, b.id], capture_output=True, text=True)
        t.check("c8s runc is the same", r.stdout == "hi\n", r.stderr)


def test_life(t):
    with Box("echo started; exec sleep 1000") as b:
        pid_file, log = os.path.join(b.bundle, "pid"), os.path.join(b.bundle, "log")
        b.config["annotations"] = {"a/b": "c"}
        rc = b.create("--pid-file", pid_file, start=False)
        s = b.state()
        t.check("created", rc[0] == 0 and s["status"] == "created" and s["annotations"] == {"a/b": "c"} and s["bundle"] == b.bundle, (rc, s))
        t.check("the pid file has its pid", open(pid_file).read() == str(s["pid"]))
        t.check("nothing runs before start", b.output() == "")
        t.check("an id is used once", "container with given ID already exists" in b.create(start=False)[2])
        t.check("start", b.call("start", b.id)[0] == 0 and until(lambda: b.output().startswith("started")) and b.state()["status"] == "running")
        t.check("start once", "cannot start an already running container" in b.call("start", b.id)[2])
        t.check("delete refuses one that runs", "that is not stopped: running" in b.call("delete", b.id)[2])
        listed = json.loads(b.call("list", "-f", "json")[1])
        t.check("list", [(x["id"], x["status"], x["owner"]) for x in listed] == [(b.id, "running", "root")], listed)
        t.check("list as a table", b.call("list")[1].split("\n")[0].split() == ["ID", "PID", "STATUS", "BUNDLE", "CREATED", "OWNER"])
        t.check("ps", json.loads(b.call("ps", "-f", "json", b.id)[1]) == [s["pid"]] and "sleep 1000" in b.call("ps", b.id)[1])
        t.check("pause", b.call("pause", b.id)[0] == 0 and b.state()["status"] == "paused")
        t.check("a paused one refuses exec", "cannot exec in a paused container" in b.exec("true")[2])
        t.check("resume", b.call("resume", b.id)[0] == 0 and b.state()["status"] == "running")
        stats = json.loads(b.call("events", "--stats", b.id)[1])
        t.check("events --stats", stats["data"]["pids"]["current"] == 1 and stats["data"]["cpu"]["usage"]["total"] > 0, stats)
        t.check("update", b.call("update", "--pids-limit", "20", "--memory", "64M", "--cpu-share", "512", b.id)[0] == 0 and
                (b.limit("pids", "pids.max"), b.limit("memory", "memory.limit_in_bytes", "memory.max")) == ("20", "67108864"))
        t.check("update from a file", b.call("update", "-r", "-", b.id, input='{"pids":{"limit":21}}', stdin=None)[0] == 0 and
                (b.limit("pids", "pids.max"), b.limit("memory", "memory.limit_in_bytes", "memory.max")) == ("21", "67108864"))
        t.check("update with nonsense", 'invalid value "much"' in b.call("update", "--memory", "much", b.id)[2])
        t.check("list -q, and a format that is none", b.call("list", "-q")[1] == b.id + "\n" and "invalid format option" in b.call("list", "-f", "x")[2])
        t.check("kill by name", b.call("kill", b.id, "KILL")[0] == 0 and until(lambda: b.state()["status"] == "stopped"))
        t.check("kill of a stopped one", "container not running" in b.call("--log", log, "--log-format", "json", "kill", b.id, "9")[2])
        line = json.loads(open(log).read())
        t.check("the log has it as JSON", line["level"] == "error" and "container not running" in line["msg"] and line["time"].endswith("Z"))
        b.call("--log", log + ".text", "kill", b.id, "9")
        line = open(log + ".text").read()
        t.check("or as text", line.startswith('time="') and ' level=error msg="' in line and "container not running" in line, line)
        t.check("exec in a stopped one", "cannot exec in a stopped container" in b.exec("true")[2])
        t.check("start of a stopped one", b.call("start", b.id)[0] == 1)
        t.check("delete", b.call("delete", b.id)[0] == 0 and "container does not exist" in b.call("state", b.id)[2])
        t.check("delete --force of none", b.call("delete", "--force", b.id)[0] == 0 and b.call("delete", b.id)[0] == 1)
    with Box("exec sleep 1000") as b:
        b.create()
        b.exec("for i in 1 2; do sleep 1000 </dev/null >/dev/null 2>&1 & done")
        t.check("kill --all", len(json.loads(b.call("ps", "-f", "json", b.id)[1])) == 3 and b.call("kill", "--all", b.id, "KILL")[0] == 0)
        t.check("delete --force", b.delete()[0] == 0 and not b.in_groups())
    with Box("exec sleep 1000") as b:
        b.create(start=False)
        starts = [threading.Thread(target=lambda: results.append(b.call("start", b.id)[0])) for _ in range(4)]
        results = []
        for x in starts:
            x.start()
        for x in starts:
            x.join()
        t.check("of many starts one wins", sorted(results) == [0, 1, 1, 1], results)
        t.check("a created one can be deleted", b.call("kill", b.id, "9")[0] == 0)
    for bad in ("../x", "a/b", "", ".", "a b"):
        t.check(f"id {bad!r} is refused", "invalid container ID format" in subprocess.run(
            [POD, "runc", "--root", ROOT, "state", bad], capture_output=True, text=True).stderr)
    features = json.loads(subprocess.run([POD, "runc", "features"], capture_output=True, text=True).stdout)
    t.check("features", features["linux"]["cgroup"]["v1"] and "rro" in features["mountOptions"] and "SCMP_ACT_ERRNO" in features["linux"]["seccomp"]["actions"])
    t.check("--systemd-cgroup is refused", "not supported" in subprocess.run([POD, "runc", "--systemd-cgroup", "list"], capture_output=True, text=True).stderr)


def test_exec(t):
    with Box("exec sleep 1000") as b:
        b.create()
        t.check("exit code and output", b.exec("echo out; echo err >&2; exit 9") == (9, "out\n", "err\n"))
        t.check("a missing program is 255", b.exec(["nothing"])[0] == 255 and 'exec: "nothing": executable file not found in $PATH' in b.exec(["nothing"])[2])
        t.check("flags", b.exec("-e", "X=y", "-u", "5:6", "--cwd", "/data", "-g", "7", "echo $X; id -u; id -g; id -G; pwd")[1].split() ==
                ["y", "5", "6", "6", "7", "/data"], b.exec("-e", "X=y", "-u", "5:6", "--cwd", "/data", "-g", "7", "echo $X; id -u; id -g; id -G; pwd"))
        t.check("no descriptor of ours is inside", b.exec("ls /proc/self/fd")[1].split() == ["0", "1", "2", "3"])
        same = b.exec("for n in pid net ipc uts mnt cgroup user; do readlink /proc/1/ns/$n; readlink /proc/self/ns/$n; done")[1].split()
        t.check("in all its namespaces", len(same) == 14 and same[::2] == same[1::2], same)
        mine = b.exec("cat /proc/self/cgroup")[1]
        t.check("in its cgroup", all(line.endswith(":/") for line in mine.split()), mine)
        t.check("--cap adds", int(b.exec("-c", "CAP_SYS_TIME", "grep CapEff /proc/self/status")[1].split()[1], 16) >> 25 & 1 == 1)
        process = dict(b.config["process"], args=["sh", "-c", "echo $A; grep CapEff /proc/self/status"])
        path = os.path.join(b.bundle, "process.json")
        with open(path, "w") as f:
            json.dump(process, f)
        rc, out, err = b.call("exec", "-p", path, b.id)
        t.check("-p process.json", rc == 0 and out.startswith("b\n"), out + err)
        pid_file = os.path.join(b.bundle, "pid")
        rc = subprocess.run([POD, "runc", "--root", ROOT, "exec", "-d", "--pid-file", pid_file, b.id, "sleep", "500"], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60).returncode
        pid = int(open(pid_file).read())
        t.check("-d returns at once", rc == 0 and open(f"/proc/{pid}/cmdline").read() == "sleep\0" + "500\0")
        t.check("--no-new-privs", b.exec("--no-new-privs", "grep NoNewPrivs /proc/self/status")[1] == "NoNewPrivs:\t1\n")
        if not os.path.exists("/sys/module/apparmor"):
            t.check("labels that the kernel does not have", "AppArmor" in b.exec("--apparmor", "x", "true")[2] and
                    "selinux label is specified" in b.exec("--process-label", "x", "true")[2])
        r, w = os.pipe()
        os.write(w, b"three")
        os.close(w)
        out = subprocess.run([POD, "runc", "--root", ROOT, "exec", "--preserve-fds", "1", b.id, "sh", "-c", "cat <&3; ls /proc/self/fd | wc -l"],
                             capture_output=True, text=True, preexec_fn=lambda: os.dup2(r, 3), pass_fds=[3])
        os.close(r)
        t.check("--preserve-fds", out.stdout == "three5\n", out)
        t.check("a cwd that is not there", "chdir to cwd" in b.exec("--cwd", "/none", "true")[2])


def receive_terminal(path, tell):
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(path)
        s.listen(1)
        tell.set()
        s.settimeout(20)
        c, _ = s.accept()
        with c:
            _, control, _, _ = c.recvmsg(64, socket.CMSG_SPACE(4))
            return array.array("i", control[0][2][:4])[0]


def read_all(fd):
    data = b""
    while True:
        try:
            part = os.read(fd, 4096)
        except OSError:
            return data.decode()
        if not part:
            return data.decode()
        data += part


def test_terminal(t):
    with Box("tty; stty size; ls -l /dev/console | cut -c1; id -u; : > $(tty) && echo mine", terminal=True, user={"uid": 9, "gid": 9}, consoleSize={"height": 31, "width": 97}) as b:
        path, tell, got = os.path.join(FOLDER, "console"), threading.Event(), []
        listener = threading.Thread(target=lambda: got.append(receive_terminal(path, tell)))
        listener.start()
        tell.wait()
        rc = b.create("--console-socket", path)
        listener.join()
        out = read_all(got[0]).split()
        os.close(got[0])
        t.check("the master comes over the console socket", rc[0] == 0 and out == ["/dev/pts/0", "31", "97", "c", "9", "mine"], (rc, out))
        t.check("a terminal needs a console socket", "without setting console socket" in Box("true", terminal=True).create()[2])
    with Box("tty; echo $0", terminal=True) as b:
        b.save()
        r = b.run()
        t.check("run copies the terminal", r[0] == 0 and r[1].split() == ["/dev/pts/0", "sh"], r)
    with Box("exec sleep 1000") as b:
        b.create()
        r = b.exec("-t", "tty; test -t 0 && test -t 2 && echo yes; exit 3")
        t.check("exec -t", r[0] == 3 and r[1].split() == ["/dev/pts/0", "yes"], r)


def test_namespaces(t):
    script = "for n in pid net ipc uts mnt cgroup user; do readlink /proc/self/ns/$n; done"
    with Box("exec sleep 1000") as pod:
        pod.create()
        pid = pod.state()["pid"]
        theirs = [os.readlink(f"/proc/{pid}/ns/{n}") for n in ("pid", "net", "ipc", "uts")]
        with Box(script + "; ps; ip addr") as b:
            ours = [os.readlink(f"/proc/self/ns/{n}") for n in ("pid", "net", "ipc", "uts", "mnt", "cgroup", "user")]
            out = b.run()[1].split("\n")
            t.check("new ones are new, the user's stays", not set(out[:6]) & set(ours[:6]) and out[6] == ours[6], out)
            t.check("lo is up", "inet 127.0.0.1/8" in "\n".join(out))
            b.config["linux"]["namespaces"] = [{"type": "mount"}, {"type": "cgroup"}] + [
                {"type": x, "path": f"/proc/{pid}/ns/{y}"} for x, y in (("pid", "pid"), ("network", "net"), ("ipc", "ipc"), ("uts", "uts"))]
            del b.config["hostname"]
            rc, text, err = b.run()
            t.check("those of a pod are joined", text.split("\n")[:4] == theirs and "sleep 1000" in text, text + err)
            b.config["linux"]["namespaces"][2]["path"] = f"/proc/{pid}/ns/net"
            t.check("a path of another kind", "is no pid namespace" in b.run()[2], b.run())
            b.config["linux"]["namespaces"][2]["path"] = "/none"
            t.check("a path of nothing", "namespace path" in b.run()[2] and "No such file" in b.run()[2])
    with Box("cat /proc/uptime") as b:
        b.config["linux"]["namespaces"].append({"type": "time"})
        b.config["linux"]["timeOffsets"] = {"boottime": {"secs": 100000000, "nanosecs": 0}}
        r = b.run()
        t.check("a clock of its own", r[0] == 0 and float(r[1].split()[0]) > 100000000, r)


def test_user_namespace(t):
    def mapped(script, **process):
        b = Box(script, **process)
        b.config["linux"]["namespaces"].append({"type": "user"})
        b.config["linux"]["uidMappings"] = b.config["linux"]["gidMappings"] = [{"containerID": 0, "hostID": 100000, "size": 1000}]
        b.config["mounts"] = [m for m in b.config["mounts"]]
        os.chmod(FOLDER, 0o755)
        for path, folders, files in os.walk(b.bundle):
            for f in folders + files:
                os.lchown(os.path.join(path, f), 100000, 100000)
        return b
    with mapped("id -u; cat /proc/self/uid_map | tr -s ' '; echo x > /dev/null && echo null; echo y > /data/f; ls -l /dev/zero | cut -c1; "
                "grep CapBnd /proc/self/status; mount -t tmpfs none /tmp || echo denied") as b:
        r = b.run()
        lines = r[1].split("\n")
        t.check("root of its own", lines[:5] == ["0", " 0 100000 1000", "null", "c", "CapBnd:\t" + lines[4].split("\t")[-1]] and "denied" in r[1], r)
        t.check("a file is that of the mapped user", os.stat(os.path.join(b.rootfs, "data/f")).st_uid == 100000)
    with mapped("exec sleep 1000") as b:
        rc = b.create()
        r = b.exec("-u", "7", "id -u; cat /proc/self/uid_map | tr -s ' '")
        t.check("exec goes into it", r[1].split("\n")[:2] == ["7", " 0 100000 1000"], (rc, r))
        pid = b.state()["pid"]
        with mapped("readlink /proc/self/ns/user; id -u") as c:
            c.config["linux"]["namespaces"][-1]["path"] = f"/proc/{pid}/ns/user"
            del c.config["linux"]["uidMappings"], c.config["linux"]["gidMappings"]
            r = c.run()
            t.check("and another container joins it", r[1].split() == [os.readlink(f"/proc/{pid}/ns/user"), "0"], r)
    volume = os.path.join(FOLDER, "volume")
    os.makedirs(volume, exist_ok=True)
    open(os.path.join(volume, "mine"), "w").close()
    with mapped("stat -c %u /vol/mine; touch /vol/new") as b:
        b.config["mounts"].append({"destination": "/vol", "type": "bind", "source": volume, "options": ["rbind", "idmap"]})
        r = b.run()
        t.check("an id-mapped mount", r[1] == "0\n" and os.stat(os.path.join(volume, "new")).st_uid == 0, r)
    shutil.rmtree(volume)


def test_mounts(t):
    volume = os.path.join(FOLDER, "vol")
    os.makedirs(os.path.join(volume, "sub"), exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", os.path.join(volume, "sub")], check=True)
    try:
        with open(os.path.join(volume, "file"), "w") as f:
            f.write("text\n")
        def with_mount(script, *mounts):
            b = Box(script)
            b.config["mounts"] += mounts
            return b
        def bind(to, *options, source=volume):
            return {"destination": to, "type": "bind", "source": source, "options": list(options)}
        rows = [
            ("bind", [bind("/v", "bind")], "cat /v/file; ls /v/sub/../; mount | grep -c ' /v'", "text\nfile\nsub\n1\n"),
            ("rbind", [bind("/v", "rbind")], "mount | grep -c ' /v'", "2\n"),
            ("ro", [bind("/v", "rbind", "ro")], "echo x 2>/dev/null >/v/x || echo no; echo x >/v/sub/x && echo yes", "no\nyes\n"),
            ("rro", [bind("/v", "rbind", "rro")], "echo x 2>/dev/null >/v/x || echo no; echo x 2>/dev/null >/v/sub/x || echo no", "no\nno\n"),
            ("nosuid, nodev, noexec", [bind("/v", "rbind", "nosuid", "nodev", "noexec")], "mount | grep ' /v ' | grep -c nosuid,nodev,noexec", "1\n"),
            ("a file", [bind("/etc/one", "bind", "ro", source=volume + "/file")], "cat /etc/one", "text\n"),
            ("folders are made", [bind("/a/b/c", "bind")], "cat /a/b/c/file", "text\n"),
            ("tmpfs with its options", [{"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["size=128k", "mode=1777", "noexec"]}],
             "stat -c %a /tmp; mount | grep -c 'size=128k'", "1777\n1\n"),
            ("tmpfs, read-only in the end", [{"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["ro"]}, bind("/tmp/v", "bind")],
             "cat /tmp/v/file; touch /tmp/x 2>/dev/null || echo no", "text\nno\n"),
            ("private", [bind("/v", "rbind", "rprivate")], "grep ' /v ' /proc/self/mountinfo | grep -c 'master:\\|shared:'", "0\n"),
            ("cgroups", [{"destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup", "options": ["ro", "nosuid"]}],
             "cat /sys/fs/cgroup/pids/tasks /sys/fs/cgroup/cgroup.procs 2>/dev/null | head -1; mkdir /sys/fs/cgroup/pids/x /sys/fs/cgroup/x 2>/dev/null || echo no",
             "1\nno\n"),
        ]
        for name, mounts, script, want in rows:
            with with_mount(script, *mounts) as b:
                r = b.run()
                t.check(f"mount: {name}", r[1] == want, r)
        with with_mount("cd /data; stat -c '%n %a %u' . sub sub/file; cat sub/file link; stat -c %F pipe; rm pipe", {
                "destination": "/data", "type": "tmpfs", "source": "tmpfs", "options": ["tmpcopyup", "size=64k"]}) as b:
            data = os.path.join(b.rootfs, "data")
            os.makedirs(os.path.join(data, "sub"), 0o711)
            with open(os.path.join(data, "sub", "file"), "w") as f:
                f.write("copied\n")
            os.symlink("sub/file", os.path.join(data, "link"))
            os.mkfifo(os.path.join(data, "pipe"))
            os.chown(os.path.join(data, "sub"), 7, 8)
            os.chmod(data, 0o1777)
            r = b.run()
            t.check("mount: tmpcopyup", r[1] == ". 1777 0\nsub 711 7\nsub/file 644 0\ncopied\ncopied\nfifo\n" and
                    open(os.path.join(data, "sub", "file")).read() == "copied\n", r)
            with open(os.path.join(data, "big"), "w") as f:
                f.write("x" * 100000)
            t.check("tmpcopyup of more than fits", "big: No space left on device" in b.run()[2], b.run())
        with with_mount("stat -c '%a %u %g' /data; cat /data/file", {"destination": "/data", "type": "tmpfs", "source": "tmpfs",
                        "options": ["tmpcopyup", "mode=1733", "uid=5", "gid=6"]}) as b:
            os.makedirs(os.path.join(b.rootfs, "data"), exist_ok=True)
            os.chmod(os.path.join(b.rootfs, "data"), 0o755)
            with open(os.path.join(b.rootfs, "data", "file"), "w") as f:
                f.write("copied\n")
            t.check("mount: tmpcopyup leaves mode and owner as they were asked for", b.run()[1] == "1733 5 6\ncopied\n", b.run())
        with with_mount("cat /etc/resolv.conf", bind("/etc/resolv.conf", "bind", source=volume + "/file")) as b:
            os.symlink("../run/resolve/stub.conf", os.path.join(b.rootfs, "etc/resolv.conf"))
            t.check("a link that leads nowhere yet is followed inside", b.run()[1] == "text\n" and os.path.exists(os.path.join(b.rootfs, "run/resolve/stub.conf")))
        failures = [
            (bind("/v", "bind", source="/none"), "/none: No such file"),
            (bind("/v", "bind", "size=1k"), "bind mounts cannot have any filesystem-specific options applied"),
            (bind("/v", "bind", "tmpcopyup"), "tmpcopyup is only supported for tmpfs"),
            ({"destination": "/tmp", "type": "nofs"}, 'rootfs: mounting "nofs" to rootfs at "/tmp": fsopen nofs: No such device'),
            ({"destination": "/tmp", "type": "tmpfs", "options": ["size=x"]}, "Bad value for 'size'"),
            (bind("/proc/self/attr", "bind"), "it is inside /proc"),
        ]
        for mount, text in failures:
            with with_mount("true", mount) as b:
                r = b.run()
                t.check(f"refused: {text}", r[0] == 1 and text in r[2], r)
    finally:
        subprocess.run(["umount", os.path.join(volume, "sub")])
        shutil.rmtree(volume)


def mounts_outside():
    with open("/proc/self/mountinfo") as f:
        return sorted(line.split()[4] for line in f if NAME in line)


def test_propagation(t):
    volume = os.path.join(FOLDER, "shared")
    os.makedirs(volume)
    subprocess.run(["mount", "-t", "tmpfs", "none", volume], check=True)
    subprocess.run(["mount", "--make-shared", volume], check=True)
    for name in ("in", "out"):
        os.makedirs(os.path.join(volume, name))
    try:
        for root, kind in (("rslave", "rslave"), ("rshared", "rshared"), ("", "rprivate")):
            with Box("mount -t tmpfs inner /vol/in; echo mounted; exec sleep 1000") as b:
                b.config["process"]["capabilities"] = {k: ALL_CAPS for k in ("bounding", "effective", "permitted")}
                b.config["linux"]["rootfsPropagation"] = root
                b.config["mounts"].append({"destination": "/vol", "type": "bind", "source": volume, "options": ["rbind", kind]})
                rc = b.create()
                until(lambda: "mounted" in b.output())
                subprocess.run(["mount", "-t", "tmpfs", "outer", os.path.join(volume, "out")], check=True)
                inside = b.exec("mount")[1]
                seen = {x for x in mounts_outside() if not x.startswith(volume)}
                t.check(f"{kind}: outside is heard of inside", ("/vol/out" in inside) == (kind != "rprivate"), (rc, inside))
                t.check(f"{kind}: inside is heard of outside", (os.path.join(volume, "in") in mounts_outside()) == (kind == "rshared"), mounts_outside())
                t.check(f"{kind}: nothing else is", not seen, seen)
                subprocess.run(["umount", os.path.join(volume, "out")], check=True)
            if os.path.ismount(os.path.join(volume, "in")):
                subprocess.run(["umount", os.path.join(volume, "in")], check=True)
    finally:
        subprocess.run(["umount", "-R", volume])
        os.rmdir(volume)


def test_limits(t):
    with Box("cat /proc/keys | wc -c; ls /sys/firmware | wc -l; echo 1 2>/dev/null >/proc/sys/kernel/panic || echo no; stat -c %t,%T /proc/keys") as b:
        t.check("masked and read-only paths", b.run()[1] == "0\n0\nno\n1,3\n", b.run())
    with Box("touch /x 2>/dev/null || echo no; touch /dev/x && echo yes") as b:
        b.config["root"]["readonly"] = True
        t.check("a read-only root", b.run()[1] == "no\nyes\n")
    caps = {"bounding": CAPS, "effective": ["CAP_KILL"], "permitted": ["CAP_KILL"], "inheritable": ["CAP_KILL"], "ambient": ["CAP_KILL"]}
    with Box("grep -E 'Cap|NoNew' /proc/self/status", capabilities=caps, user={"uid": 5, "gid": 6, "additionalGids": [7, 8]}) as b:
        got = dict(x.split(":\t") for x in b.run()[1].strip().split("\n"))
        want = {k: f"{1 << 5:016x}" for k in ("CapInh", "CapPrm", "CapEff", "CapAmb")}
        t.check("five sets of capabilities, for a user", got == {**want, "CapBnd": "00000000000004e1", "NoNewPrivs": "1"}, got)
    with Box("grep -E 'Cap' /proc/self/status | cut -f2 | sort -u", capabilities={}) as b:
        t.check("none is none", b.run()[1] == "0000000000000000\n")
    with Box("id; grep Groups /proc/self/status", user={"uid": 5, "gid": 6, "additionalGids": [7, 8]}) as b:
        t.check("user and groups", b.run()[1] == "uid=5 gid=6 groups=7,8\nGroups:\t7 8 \n", b.run())
    with Box("ulimit -n; ulimit -Hn; cat /proc/self/oom_score_adj", rlimits=[{"type": "RLIMIT_NOFILE", "soft": 77, "hard": 99}], oomScoreAdj=500) as b:
        t.check("rlimits and oom_score_adj", b.run()[1] == "77\n99\n500\n", b.run())
    with Box("cat /proc/sys/net/ipv4/ip_unprivileged_port_start /proc/sys/kernel/shmmni") as b:
        b.config["linux"]["sysctl"] = {"net.ipv4.ip_unprivileged_port_start": "77", "kernel.shmmni": "123"}
        t.check("sysctls", b.run()[1] == "77\n123\n", b.run())
        b.config["linux"]["sysctl"] = {"kernel.panic": "1"}
        t.check("one of the host is refused", 'sysctl "kernel.panic" is not in a separate kernel namespace' in b.run()[2])
    with Box("mkdir /tmp/x; echo $?") as b:
        b.config["linux"]["seccomp"] = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 95}]}
        r = b.run()
        t.check("seccomp with no_new_privs", r[1] == "1\n" and "not supported" in r[2], r)
        b.config["process"]["noNewPrivileges"] = False
        t.check("seccomp without", "not supported" in b.run()[2])
    with Box("cat /proc/self/stat | cut -d' ' -f18-19", scheduler={"policy": "SCHED_BATCH", "nice": 5}, ioPriority={"class": "IOPRIO_CLASS_IDLE", "priority": 0}) as b:
        t.check("scheduler", b.run()[1] == "25 5\n", b.run())
    with Box("mknod /tmp/d b 8 0 2>/dev/null; cat /tmp/d 2>/dev/null || echo no; ls -l /dev/mine | cut -c1-10; stat -c %u /dev/mine; cat /dev/mine | wc -c",
             capabilities={k: ALL_CAPS for k in ("bounding", "effective", "permitted")}) as b:
        b.config["linux"]["devices"] = [{"path": "/dev/mine", "type": "c", "major": 1, "minor": 3, "fileMode": 0o640, "uid": 5}]
        t.check("devices", b.run()[1] == "no\ncrw-r-----\n5\n0\n", b.run())

FLAGS = {"ro": "ro", "nosuid": "nosuid", "nodev": "nodev", "noexec": "noexec", "noatime": "noatime", "nodiratime": "nodiratime",
         "nosymfollow": "nosymfollow", "relatime": "relatime"}


def mounts_inside(b):
    """Of a container whose program shows its mountinfo: path -> its options, and what is between them and the dash."""
    rows = [line.split() for line in b.run()[1].splitlines()]
    return {r[4]: (set(r[5].split(",")), {x.split(":")[0] for x in r[6:r.index("-")]}) for r in rows}


def test_mount_options(t):
    volume = os.path.join(FOLDER, "options")
    os.makedirs(volume)
    subprocess.run(["mount", "-t", "tmpfs", "none", volume], check=True)
    subprocess.run(["mount", "--make-shared", volume], check=True)
    os.makedirs(os.path.join(volume, "sub"))
    subprocess.run(["mount", "-t", "tmpfs", "none", os.path.join(volume, "sub")], check=True)

    def show(kinds, **linux):
        b = Box("cat /proc/self/mountinfo")
        b.config["linux"].update(linux)
        b.config["mounts"] += [{"destination": f"/m/{kind}", "type": "bind", "source": volume, "options": ["rbind", kind]} for kind in kinds]
        with b:
            return mounts_inside(b)
    try:
        got = show([*FLAGS, *("r" + x for x in FLAGS)])
        bad = [x for x in FLAGS if FLAGS[x] not in got[f"/m/{x}"][0] or x != "relatime" and FLAGS[x] in got[f"/m/{x}/sub"][0]]
        t.check("options of a mount alone", not bad, (bad, got))
        bad = [x for x in FLAGS if FLAGS[x] not in got[f"/m/r{x}"][0] or FLAGS[x] not in got[f"/m/r{x}/sub"][0]]
        t.check("and of all below it", not bad, (bad, got))
        none, both = set(), {"shared", "master"}
        want = {"rw": ({"master"}, {"master"}), "private": (none, {"master"}), "rprivate": (none, none), "slave": ({"master"}, {"master"}),
                "rslave": ({"master"}, {"master"}), "shared": (both, {"master"}), "rshared": (both, both),
                "unbindable": ({"unbindable"}, {"master"}), "runbindable": ({"unbindable"}, {"unbindable"})}
        got = show(want)
        bad = {x: (got[f"/m/{x}"][1], got[f"/m/{x}/sub"][1]) for x in want if (got[f"/m/{x}"][1], got[f"/m/{x}/sub"][1]) != want[x]}
        t.check("all propagations", not bad, bad)
        roots = {x: show([], rootfsPropagation=x)["/"][1] for x in want if x != "rw"}
        t.check("rootfsPropagation", all(roots[x] - {"master"} == {"shared": {"shared"}, "unbindable": {"unbindable"}}.get(x.removeprefix("r"), none)
                                         for x in roots), roots)
    finally:
        subprocess.run(["umount", "-R", volume])
        os.rmdir(volume)


def test_no_pivot(t):
    with Box("ls /; mount | grep -c ' on / '; cat /proc/1/comm; ls /proc/1/root/bin | head -1") as b:
        r = b.run("--no-pivot")
        t.check("--no-pivot", r[0] == 0 and r[1].split()[:7] == ["bin", "data", "dev", "etc", "proc", "sys", "tmp"], r)
        # Whoever breaks out of chroot must not find what shows the kernel: no proc or sysfs but the container's own.
        b.config["process"]["args"] = ["sh", "-c", "grep -E ' - (proc|sysfs) ' /proc/self/mountinfo | cut -d' ' -f5 | grep -v -E '^/(proc|sys)(/|$)'"]
        r = b.run("--no-pivot")
        t.check("and nothing of the host's proc and sysfs is left", r[1] == "", r)


class Agent(threading.Thread):
    """Answers system calls that a filter asks about: with EOPNOTSUPP, and goes on with the call at last."""
    RECEIVE, SEND = 0xc0502100, 0xc0182101

    def __init__(self, path, calls):
        super().__init__()
        self.calls, self.message, self.seen = calls, None, []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(1)
        self.listener.settimeout(20)

    def run(self):
        c, _ = self.listener.accept()
        with c:
            text, control, _, _ = c.recvmsg(1 << 16, socket.CMSG_SPACE(4))
        self.message = json.loads(text)
        fd = array.array("i", control[0][2][:4])[0]
        for n in range(self.calls):
            request = bytearray(80)
            fcntl.ioctl(fd, self.RECEIVE, request)
            number, pid, _, call = struct.unpack_from("=QIIi", request)
            self.seen.append((pid, call))
            last = n + 1 == self.calls
            fcntl.ioctl(fd, self.SEND, bytearray(struct.pack("=QqiI", number, 0, 0 if last else -95, int(last))))
        os.close(fd)
        self.listener.close()


def test_seccomp(t):
    def filtered(script, *rules, **more):
        b = Box(script)
        b.config["linux"]["seccomp"] = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": list(rules), **more}
        return b

    def made(action, **more):
        return {"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_" + action, **more}
    for action, more, want in (("ERRNO", {}, "1 not permitted"), ("ERRNO", {"errnoRet": 95}, "1 not supported"), ("KILL", {}, "159"),
                               ("KILL_THREAD", {}, "159"), ("KILL_PROCESS", {}, "159"), ("TRAP", {}, "159"), ("LOG", {}, "0"), ("ALLOW", {}, "0"),
                               ("TRACE", {}, "1 not implemented")):
        with filtered("(mkdir /tmp/x) 2>/tmp/e; echo $? $(grep -o 'not [a-z]*' /tmp/e)", made(action, **more)) as b:
            r = b.run()
            t.check(f"SCMP_ACT_{action}", r[1] == want + "\n", r)
    for op, value, two, refused in (("NE", 18, 0, "17 23 28"), ("LT", 18, 0, "17"), ("LE", 18, 0, "17 18"), ("EQ", 18, 0, "18"), ("GE", 23, 0, "23 28"),
                                    ("GT", 23, 0, "28"), ("MASKED_EQ", 1, 1, "17 23")):
        with filtered("for s in 17 18 23 28; do (kill -$s $$ 2>/dev/null) || echo $s; done", {
                "names": ["kill"], "action": "SCMP_ACT_ERRNO", "args": [{"index": 1, "value": value, "valueTwo": two, "op": "SCMP_CMP_" + op}]}) as b:
            r = b.run()
            t.check(f"SCMP_CMP_{op}", " ".join(r[1].split()) == refused, r)
    for nnp in (True, False):
        path = os.path.join(FOLDER, f"agent{nnp}")
        agent = Agent(path, 2)
        agent.start()
        with filtered("mkdir /tmp/x 2>&1; mkdir /tmp/y && ls -d /tmp/y", made("NOTIFY"), listenerPath=path, listenerMetadata="mine") as b:
            b.config["process"]["noNewPrivileges"] = nnp
            r = b.run()
            agent.join(20)
            m = agent.message or {}
            t.check(f"SCMP_ACT_NOTIFY, no_new_privs {nnp}: an agent answers", r[1].endswith("not supported\n/tmp/y\n") and len(agent.seen) == 2, (r, agent.seen))
            t.check("it is told of whom", (m.get("fds"), m.get("metadata"), m.get("state", {}).get("id")) == (["seccompFd"], "mine", b.id) and
                    m.get("pid") == m["state"]["pid"] > 0, m)
    with filtered("true", made("NOTIFY"), listenerPath="/none") as b:
        t.check("without an agent it does not start", "seccomp listener /none: No such file" in b.run()[2], b.run())


def test_every_limit(t):
    """Each limit as its cgroup has it."""
    v1 = os.path.isdir("/sys/fs/cgroup/memory")
    device = os.stat(FOLDER).st_dev
    device = (os.major(device), os.minor(device))
    parent = next((x for x in os.listdir("/sys/block") if open(f"/sys/block/{x}/dev").read().strip() == f"{device[0]}:{device[1]}"), None)
    rows = [("memory", "memory.limit_in_bytes", "67108864"), ("memory", "memory.memsw.limit_in_bytes", "100663296"),
            ("memory", "memory.soft_limit_in_bytes", "33554432"), ("memory", "memory.swappiness", "10"), ("cpu", "cpu.shares", "512"),
            ("cpu", "cpu.cfs_quota_us", "50000"), ("cpu", "cpu.cfs_period_us", "200000"), ("cpuset", "cpuset.cpus", "0"), ("cpuset", "cpuset.mems", "0"),
            ("pids", "pids.max", "33")]
    if not v1:
        rows = [("", "memory.max", "67108864"), ("", "memory.swap.max", "33554432"), ("", "memory.low", "33554432"), ("", "memory.high", "50331648"),
                ("", "cpu.weight", "59"), ("", "cpu.max", "50000 200000"), ("", "cpuset.cpus", "0"), ("", "cpuset.mems", "0"), ("", "pids.max", "33")]
    with Box("exec sleep 1000") as b:
        b.config["linux"]["resources"].update({
            "memory": {"limit": 64 << 20, "swap": 96 << 20, "reservation": 32 << 20, "swappiness": 10}, "unified": {} if v1 else {"memory.high": str(48 << 20)},
            "cpu": {"shares": 512, "quota": 50000, "period": 200000, "cpus": "0", "mems": "0"}, "pids": {"limit": 33}})
        if parent:
            throttle = [{"major": device[0], "minor": device[1], "rate": 12345678}]
            b.config["linux"]["resources"]["blockIO"] = {"throttleReadBpsDevice": throttle, "throttleWriteIOPSDevice": throttle}
            rows += [("blkio", f"blkio.throttle.{x}", f"{device[0]}:{device[1]} 12345678") for x in ("read_bps_device", "write_iops_device")] if v1 else [
                ("", "io.max", f"{device[0]}:{device[1]} rbps=12345678 wbps=max riops=max wiops=12345678")]
        rc = b.create()
        for controller, name, want in rows:
            if os.path.exists(f"/sys/fs/cgroup/{controller}/{name}") or os.path.exists(f"/sys/fs/cgroup/{controller}/{b.id}/{name}"):
                t.check(f"limit: {name}", b.limit(controller, name) == want, (rc, b.limit(controller, name)))
            else:
                t.skip(f"limit: {name}", "this kernel does not have it")
        if v1:
            t.check("devices", "c 1:3 rwm" in b.limit("devices", "devices.list") and "a *:*" not in b.limit("devices", "devices.list"))
        pid = str(b.state()["pid"])
        outside = [x for x in ("memory", "cpu", "cpuacct", "cpuset", "pids", "devices", "freezer", "blkio")[:8 if v1 else 1] if pid not in b.limit(x, "cgroup.procs").split()]
        t.check("it is in each hierarchy", not outside, outside)
        r = b.exec("for i in $(seq 40); do sleep 9 & done; echo all")
        t.check("and the limits bite", "all" not in r[1] or "can't fork" in r[2], r)
    with Box("sleep 1; dd if=/dev/zero of=/dev/null bs=64M count=1; sleep 1") as b:
        b.config["linux"]["resources"]["memory"] = {"limit": 16 << 20, "swap": 16 << 20}
        b.create()
        p = subprocess.Popen([POD, "runc", "--root", ROOT, "events", "--interval", "200ms", b.id], stdout=subprocess.PIPE, text=True)
        events = [json.loads(line) for line in p.stdout]
        kinds = {x["type"] for x in events}
        t.check("events: figures, and the end of what took too much", p.wait() == 0 and kinds == {"stats", "oom"}, events)
        figures = next(x for x in events if x["type"] == "stats")["data"]
        t.check("events: the limit is told", figures["memory"]["usage"]["limit"] == 16 << 20 and figures["pids"]["current"] > 0, figures)


LIMITS = {"AS": "Max address space", "CORE": "Max core file size", "CPU": "Max cpu time", "DATA": "Max data size", "FSIZE": "Max file size",
          "LOCKS": "Max file locks", "MEMLOCK": "Max locked memory", "MSGQUEUE": "Max msgqueue size", "NICE": "Max nice priority",
          "NOFILE": "Max open files", "NPROC": "Max processes", "RSS": "Max resident set", "RTPRIO": "Max realtime priority",
          "RTTIME": "Max realtime timeout", "SIGPENDING": "Max pending signals", "STACK": "Max stack size"}


def test_process(t):
    def some(name, hard):
        return {"NICE": 0, "RTPRIO": 0, "MSGQUEUE": 4096, "AS": 1 << 33, "DATA": 1 << 33, "STACK": 1 << 23}.get(name, min(hard, 64) if hard >= 0 else 64)
    wanted = {}
    for name in LIMITS:
        number = getattr(resource, "RLIMIT_" + name, None)
        hard = resource.getrlimit(number)[1] if number is not None else -1
        wanted[name] = min(some(name, hard), hard) if hard >= 0 else some(name, hard)
    limits = [{"type": "RLIMIT_" + k, "soft": v, "hard": v} for k, v in wanted.items()]
    with Box("cat /proc/self/limits", rlimits=limits) as b:
        r = b.run()
        got = {line[:26].strip(): line[26:].split()[:2] for line in r[1].splitlines()}
        bad = {k: (v, got.get(LIMITS[k])) for k, v in wanted.items() if got.get(LIMITS[k]) != [str(v), str(v)]}
        t.check("all sixteen rlimits", not bad, (bad, r[2]))
    with Box("cut -d' ' -f19,41 /proc/self/stat; ionice -p $$", scheduler={"policy": "SCHED_BATCH", "nice": 5}, ioPriority={
            "class": "IOPRIO_CLASS_BE", "priority": 6}) as b:
        r = b.run()
        t.check("scheduler and ioPriority", r[1].split("\n")[:2] == ["5 3", "best-effort: prio 6"], r)
    with Box("uname -m; cat /proc/self/personality", scheduler={"policy": "SCHED_OTHER"}) as b:
        b.config["linux"]["personality"] = {"domain": "LINUX32"}
        r = b.run()
        t.check("personality", r[1].split("\n")[1:2] == ["00000008"] and not r[1].startswith(os.uname().machine), r)
        b.config["linux"]["personality"] = {"domain": "LINUX32", "flags": ["x"]}
        t.check("a personality that is not known", "linux.personality: only the domains" in b.run()[2])
    with Box("echo $HOME") as b:
        os.mkfifo(os.path.join(b.rootfs, "etc/passwd"))
        t.check("/etc/passwd of the image is a pipe: it is not waited for", b.run()[1] == "/\n")
    with Box("cat /proc/uptime") as b:
        b.config["linux"]["namespaces"].append({"type": "time"})
        b.config["linux"]["timeOffsets"] = {"monotonic": {"secs": 5000, "nanosecs": 7}, "boottime": {"secs": 100000000, "nanosecs": 0}}
        b.config["process"]["args"] = ["sh", "-c", "cat /proc/self/timens_offsets | tr -s ' '"]
        t.check("offsets of both clocks", b.run()[1].split() == ["monotonic", "5000", "7", "boottime", "100000000", "0"], b.run())
    with Box("cat /proc/sys/net/ipv4/ip_unprivileged_port_start") as b:
        b.config["linux"]["sysctl"] = {"net/ipv4/ip_unprivileged_port_start": "78"}
        t.check("a sysctl written with slashes", b.run()[1] == "78\n", b.run())
        for name in ("net/../kernel/core_pattern", "net.//.kernel.core_pattern"):
            with open("/proc/sys/kernel/core_pattern") as f:  # as it is, should it be written
                b.config["linux"]["sysctl"] = {name: f.read().strip()}
            t.check(f"sysctl {name} is refused", "is no name of a sysctl" in b.run()[2])



def test_hooks(t):
    kinds = ("prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop")
    with Box("echo program >> /log") as b:
        log = os.path.join(b.rootfs, "log")
        script = os.path.join(b.bundle, "hook")
        with open(script, "w") as f:
            f.write(f"#!/bin/sh\nread state\necho \"$1 $state\" >> {log}\n")
        os.chmod(script, 0o755)
        b.config["hooks"] = {k: [{"path": script, "args": ["hook", k], "env": ["PATH=/bin"]}] for k in kinds if k != "startContainer"}
        b.config["hooks"]["startContainer"] = [{"path": "/bin/sh", "args": ["sh", "-c", "read state; echo startContainer $state >> /log"]}]
        r = b.run()
        until(lambda: "poststop" in open(log).read())
        lines = open(log).read().split("\n")
        order = [x.split()[0] for x in lines if x]
        t.check("six hooks", sorted(order) == sorted([*kinds, "program"]) and [x for x in order if x not in ("program", "poststart")] ==
                [k for k in kinds if k != "poststart"], (r, order))
        status = {x.split()[0]: json.loads(x.split(" ", 1)[1]) for x in lines if x and x != "program"}
        t.check("each gets the state", {k: v["status"] for k, v in status.items()} == {
            "prestart": "creating", "createRuntime": "creating", "createContainer": "creating", "startContainer": "created", "poststart": "running",
            "poststop": "stopped"} and all(v["id"] == b.id and v["bundle"] == b.bundle for v in status.values()), status)
        t.check("with one pid", len({v["pid"] for k, v in status.items() if k != "poststop"}) == 1)
        b.config["hooks"] = {"createRuntime": [{"path": "/bin/sh", "args": ["sh", "-c", "echo reason; exit 3"]}]}
        r = b.run()
        t.check("one that fails ends it", r[0] == 1 and "createRuntime: hook /bin/sh: exit status 3, stdout+stderr: reason" in r[2], r)
        b.config["hooks"] = {"createRuntime": [{"path": "/bin/sh", "args": ["sh", "-c", f"{POD} runc --root {ROOT} exec {b.id} true"]}]}
        r = b.run()
        t.check("exec waits for nobody who is being created", "cannot exec in a container that is being created" in r[2], r)
        for kind in ("createContainer", "startContainer", "poststart"):
            b.config["hooks"] = {kind: [{"path": "/bin/sh", "args": ["sh", "-c", "exit 3"]}, {"path": "/bin/sh", "args": ["sh", "-c", f"echo > {log}2"]}]}
            b.config["process"]["args"] = ["sleep", "1000"]
            r = b.run()
            t.check(f"{kind} that fails ends it, and those after it do not run", r[0] == 1 and f"{kind}: hook /bin/sh: exit status 3" in r[2] and
                    not os.path.exists(log + "2") and not os.path.exists(f"{ROOT}/{b.id}"), r)
        b.config["hooks"] = {"poststop": [{"path": "/bin/false"}]}
        b.config["process"]["args"] = ["true"]
        r = b.run()
        t.check("poststop that fails is only told of", r[0] == 0 and "poststop" in r[2] and not os.path.exists(f"{ROOT}/{b.id}"), r)
        b.config["hooks"] = {"prestart": [{"path": "/bin/sleep", "args": ["sleep", "100"], "timeout": 1}]}
        began = time.monotonic()
        t.check("one that hangs is ended", "ran past its timeout" in b.run()[2] and time.monotonic() - began < 10)
        t.check("and nothing is left", not os.path.exists(f"{ROOT}/{b.id}") and not b.in_groups())


    with Box("exec sleep 1000") as b:
        told = os.path.join(FOLDER, "told")
        b.config["hooks"] = {"poststop": [{"path": "/bin/sh", "args": ["sh", "-c", f"cat > {told}"]}]}
        b.create()
        shutil.move(b.bundle, b.bundle + ".gone")
        r = b.exec("echo in"), b.delete()
        t.check("exec, delete and poststop need no bundle any more", r[0][1] == "in\n" and r[1][0] == 0 and os.path.exists(told), r)
        shutil.move(b.bundle + ".gone", b.bundle)


def test_failures(t):
    rows = [
        ("a program that is not there", {"args": ["/none"]}, {}, 'program: exec: "/none": stat /none: No such file or directory'),
        ("a program that is none", {"args": ["/data"]}, {}, 'program: exec: "/data": Is a directory'),
        ("a cwd that is a file", {"cwd": "/bin/busybox"}, {}, "cwd: /bin/busybox: Not a directory"),
        ("an rlimit that is not allowed", {"rlimits": [{"type": "RLIMIT_NOFILE", "soft": 1 << 40, "hard": 1 << 40}]}, {}, "rlimits: setrlimit 7 to"),
        ("no args", {"args": []}, {}, "process args cannot be empty"),
        ("an unknown capability", {"capabilities": {"bounding": ["X"]}}, {}, '"X" is no capability'),
        ("an unknown limit", {"rlimits": [{"type": "RLIMIT_X"}]}, {}, '"RLIMIT_X" is no limit'),
        ("AppArmor without it", {"apparmorProfile": "x"}, {}, "AppArmor"),
        ("SELinux without it", {"selinuxLabel": "x"}, {}, "selinux label is specified in config"),
        ("an unknown namespace", {}, {"namespaces": [{"type": "x"}]}, '"x" is not known'),
        ("no mount namespace", {}, {"namespaces": [{"type": "pid"}]}, "a new mount namespace is needed"),
        ("maps without a namespace", {}, {"uidMappings": [{"containerID": 0, "hostID": 0, "size": 1}]}, "there is no user namespace"),
        ("an unknown propagation", {}, {"rootfsPropagation": "x"}, '"x" is not known'),
        ("Intel RDT", {}, {"intelRdt": {"closID": "x"}}, "linux.intelRdt: it is not supported"),
    ]
    for name, process, linux, text in rows:
        skip = (name.startswith("AppArmor") and os.path.exists("/sys/module/apparmor")) or (name.startswith("SELinux") and os.path.exists("/sys/fs/selinux"))
        with Box("true", **process) as b:
            b.config["linux"].update(linux)
            r = b.run()
            t.check(name, skip or (r[0] == 1 and text in r[2]), r)
            if os.path.exists(f"{ROOT}/{b.id}") or b.in_groups():
                t.check(f"{name}: nothing is left", False)
    with Box() as b:
        t.check("no config.json", "config.json: No such file or directory" in b.call("run", "-b", b.bundle, b.id)[2])
        with open(os.path.join(b.bundle, "config.json"), "w") as f:
            f.write("{")
        t.check("a broken config.json", b.call("run", "-b", b.bundle, b.id)[0] == 1)


# ---- beside runc ----

def test_like_runc(t):
    runc = peers.find("runc", "runc")
    if not runc:
        t.skip("as runc does it", "runc cannot be had")
        return
    scripts = {
        "status": "grep -E 'Cap|NoNew|Groups|Uid|Gid|Seccomp:' /proc/self/status",
        "devices": "ls -l /dev | tr -s ' ' | cut -d' ' -f1,3,4,5,6,10-12 | grep -v '^total' | grep -v core",
        "mounts": "mount | grep -v ' on / ' | grep -v -E 'proc/(keys|acpi)|firmware' | cut -d' ' -f3,5 | sort",
        "limits": "ulimit -n; ulimit -u; cat /proc/self/oom_score_adj",
        "namespaces": "cat /proc/self/cgroup | cut -d: -f3 | sort -u; hostname; ip addr | grep inet",
        "session": "cat /proc/self/stat | cut -d' ' -f7; cat /proc/1/environ | tr '\\0' '\\n'",
        "read-only": "for f in /proc/sys/kernel/panic /sys/x /proc/irq/x; do (echo 1 > $f) 2>&1 | grep -o 'Read-only file system\\|nonexistent directory' | head -1; done",
    }
    for name, script in scripts.items():
        got = []
        for runtime in ([POD, "runc"], [runc]):
            with Box(script, runtime=runtime) as b:
                if name == "limits":
                    b.config["process"]["rlimits"] = [{"type": "RLIMIT_NOFILE", "soft": 64, "hard": 128}]
                    b.config["process"]["oomScoreAdj"] = 300
                got.append(b.run())
        t.check(f"as runc: {name}", got[0][0] == got[1][0] == 0 and got[0][1] == got[1][1], "ours:\n" + got[0][1] + got[0][2] + "runc:\n" + got[1][1] + got[1][2])


if __name__ == "__main__":
    if os.geteuid() != 0 or not os.path.exists(BUSYBOX):
        print("1..0 # SKIP containers need root and a static busybox")
        sys.exit(0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        tap.run([test_run, test_life, test_exec, test_terminal, test_namespaces, test_user_namespace, test_mounts, test_propagation, test_mount_options, test_no_pivot, test_seccomp, test_limits, test_every_limit,
                 test_process, test_hooks,
                 test_failures, test_like_runc])
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)
