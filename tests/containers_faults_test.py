#!/usr/bin/env python3
"""The CRI service and its monitors, killed: at fixed points of a pod's life, at any moment, and while nobody looks. Needs root."""
import os
import random
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import containers_cri_test as cri  # noqa: E402
import tap  # noqa: E402
from cluster import wait_until  # noqa: E402
from gate import Gate  # noqa: E402

NODE = None


def crictl(*args):
    return subprocess.Popen([cri.C8S, "crictl", "-r", f"unix://{NODE.socket}", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def everything_gone():
    """What is known is removed; what is left then."""
    said = NODE.crictl("rmp", "-f", "-a", check=False).stderr
    rules = NODE.inside("nft", "list", "ruleset").stdout if shutil.which("nft") else ""
    left = NODE.left() + [line for line in rules.splitlines() if "dnat" in line]
    return left + ([said] if left else [])


def test_points(t):
    gate = Gate(os.path.join(NODE.folder, "gate"), os.path.join(NODE.conf, "10-test.conflist"))
    NODE.kill(signal.SIGTERM)
    NODE.start(*gate.flags())
    mapped = [{"container_port": 80, "host_port": 18081}]

    def pod():
        return NODE.runp("held", "--runtime", "held", port_mappings=mapped)

    def container():
        p = pod()
        return p, NODE.create(p, "held", "c", ["sleep", "1000"])

    def running():
        p, c = container()
        NODE.crictl("start", c)
        return p, c
    config = NODE.file("held.pod.json", NODE.pod_config("held", port_mappings=mapped))
    run = ("runp", "--runtime", "held", config)
    # The step at which it is held, what was there before, the call during which it is killed.
    points = [
        ("the network is being made", "ADD", None, lambda: run),
        ("the first process is being made", "create", None, lambda: run),
        ("the first process is being started", "start", None, lambda: run),
        ("a container is being made", "create", container, lambda p, c: ("start", c)),
        ("a container is being started", "start", container, lambda p, c: ("start", c)),
        ("a container is being stopped", "kill", running, lambda p, c: ("stop", "-t", "0", c)),
        ("a container that ended is being deleted", "delete", running, lambda p, c: ("stop", "-t", "0", c)),
        ("a container is being removed by force", "kill", running, lambda p, c: ("rm", "-f", c)),
        ("a pod is being stopped", "kill", running, lambda p, c: ("stopp", p)),
        ("the network is being taken down", "DEL", running, lambda p, c: ("stopp", p)),
        ("a pod is being removed", "delete", running, lambda p, c: ("rmp", "-f", p)),
    ]
    for what, step, before, call in points:
        there = before() if before else ()
        gate.hold(step)
        caller = crictl(*call(*there))
        gate.wait(step)
        NODE.kill()
        caller.communicate()
        cut = call(*there)[0] == "start"
        if not cut:
            gate.go()
        NODE.start(*gate.flags())
        pods = NODE.out("pods", "-q").split()
        ok = pods == ([there[0]] if there else [])
        if cut:
            # Still on its way when it is taken up: that is an end, and what starts after all is killed.
            s = NODE.status(there[1])
            t.check(f"killed while {what}: the start has failed", (s["exitCode"], s["reason"]) == (128, "StartError"), s)
            gate.go()
        left = everything_gone()
        t.check(f"killed while {what}: it is taken up, removed, and nothing is left", ok and not left, (pods, there, left))
        if left:
            break
    NODE.kill(signal.SIGTERM)
    gate.remove()
    NODE.start()


def test_any_moment(t):
    """Killed at random moments of a pod's life; what the next one finds can be removed, and nothing is left."""
    mappings = {"userns_options": cri.USERNS} if NODE.json("info")["runtimeHandlers"][0]["features"].get("userNamespaces") else {}
    seed = random.randrange(1 << 32)
    dice = random.Random(seed)
    bad = []
    for i in range(15):
        security = {"namespace_options": {"pid": 1, **(mappings if i % 3 == 0 else {})}}
        config = NODE.file("k.pod.json", NODE.pod_config("kill", linux={"security_context": security}, port_mappings=[{"container_port": 80, "host_port": 18082}]))
        container = NODE.file("k.json", {"metadata": {"name": "k"}, "image": {"image": cri.IMAGE}, "command": ["sleep", "1000"],
                                         "linux": {"security_context": security}})
        life = subprocess.Popen(["sh", "-c", f'''C="{cri.C8S} crictl -r unix://{NODE.socket}"
            P=$($C runp {config}) && K=$($C create --no-pull $P {container} {config}) && $C start $K && $C stop -t 0 $K && $C rm $K && $C rmp -f $P'''],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        moment = dice.uniform(0.005, 0.25)
        time.sleep(moment)
        NODE.kill()
        life.wait()
        NODE.start()
        left = everything_gone()
        if left:
            bad.append((moment, left))
            break
    t.check("killed at 15 moments, nothing is left", not bad, f"seed {seed}: {bad}\n{open(NODE.log).read()[-3000:]}")


def test_restart(t):
    pod = NODE.runp("stay")
    runs = NODE.run(pod, "stay", "runs", ["sh", "-c", "i=0; while :; do echo $i; i=$((i+1)); sleep 0.1; done"])
    marks = os.path.join(NODE.folder, "marks")
    os.makedirs(marks)
    volume = [{"container_path": "/marks", "host_path": marks}]
    ends = NODE.run(pod, "stay", "ends", ["sh", "-c", "while [ ! -e /marks/go ]; do sleep 0.01; done; exit 5"], mounts=volume)
    hog = NODE.run(pod, "stay", "hog", ["sh", "-c", "while [ ! -e /marks/go ]; do sleep 0.01; done; dd if=/dev/zero of=/dev/null bs=200M count=1"],
                   mounts=volume, resources={"memory_limit_in_bytes": 32 << 20})
    made = NODE.create(pod, "stay", "made", ["sleep", "1000"], security={"run_as_user": {"value": 0}, "capabilities": {}})
    address, before, given = NODE.address(pod), NODE.status(runs), NODE.json("inspect", made)["info"]["config"]
    NODE.kill()
    open(os.path.join(marks, "go"), "w").close()
    exits = os.path.join(NODE.state, "pods", pod, "exits")
    wait_until(lambda: {ends, hog} <= set(os.listdir(exits)), what="two ends that nobody sees")
    NODE.start()
    after = NODE.status(runs)
    t.check("runs on", after["state"] == "CONTAINER_RUNNING" and after["startedAt"] == before["startedAt"], after)
    s = NODE.status(ends)
    t.check("an end that nobody saw", s["state"] == "CONTAINER_EXITED" and s["exitCode"] == 5 and s["finishedAt"] >= s["startedAt"], s)
    s = NODE.status(hog)
    t.check("one for want of memory", s["exitCode"] == 137 and s["reason"] == "OOMKilled", s)
    t.check("the address", NODE.address(pod) == address)
    now = NODE.json("inspect", made)["info"]["config"]
    security = now["linux"]["securityContext"]
    t.check("what it was made with, and that something was said of user and seccomp, though it is the zero value", now == given and
            security.get("runAsUser") == security.get("seccomp") == security.get("capabilities") == {}, (given, now))
    NODE.crictl("start", made)
    t.check("one that was only made", NODE.status(made)["state"] == "CONTAINER_RUNNING")
    t.check("exec", NODE.exec(runs, "echo", "here") == "here\n")
    wait_until(lambda: len(NODE.crictl("logs", runs).stdout.split()) > 3, what="a few lines")
    lines = NODE.crictl("logs", runs).stdout.split()
    t.check("the log has no gap", lines == [str(i) for i in range(len(lines))], lines)
    other = subprocess.run([cri.C8S, "runtime", "--root", NODE.root, "--state", NODE.state, "--cni-conf-dir", NODE.conf], capture_output=True, text=True)
    t.check("a second runtime is refused", other.returncode == 1 and "used by another runtime" in other.stderr, other.stderr)
    t.check("SIGTERM ends it in good order", NODE.kill(signal.SIGTERM) == 0, open(NODE.log).read()[-2000:])
    NODE.start()
    t.check("and pods run on", NODE.status(runs)["state"] == "CONTAINER_RUNNING")
    left = everything_gone()
    t.check("nothing is left", not left, left)


def monitor_of(pod):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline") as f:
                if pod in f.read():
                    return int(pid)
        except OSError:
            pass
    return None


def processes_of(pod):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cgroup") as cgroup, open(f"/proc/{pid}/status") as status:
                if pod in cgroup.read() and "State:\tZ" not in status.read():
                    found.append(pid)
        except OSError:
            pass
    return found


def test_monitor_killed(t):
    for down in (False, True):
        when = "while the service is down" if down else "while the service looks on"
        pod = NODE.runp("orphan")
        c = NODE.run(pod, "orphan", "o", ["sleep", "1000"])
        made = NODE.create(pod, "orphan", "made", ["sleep", "1000"])
        pid = NODE.json("inspect", c)["info"]["pid"]
        if down:
            NODE.kill()
        os.kill(monitor_of(pod), signal.SIGKILL)
        if down:
            NODE.start()
        s = NODE.finished(c)
        t.check(f"a monitor is killed {when}: its container has ended, with a reason", s["exitCode"] == 255 and s["reason"] == "Unknown" and
                "monitor" in s["message"], s)
        wait_until(lambda: tap.gone(pid), what="the end of the process itself")
        t.check("and so has its process", True)
        t.check("the pod is not ready", NODE.json("inspectp", pod)["status"]["state"] == "SANDBOX_NOTREADY")
        r = NODE.crictl("start", made, check=False)
        t.check("nothing is started in it", "is not running" in r.stderr, r.stderr)
        NODE.crictl("stop", c)
        NODE.crictl("stopp", pod)
        t.check("a pod that is stopped has no processes", tap.wait_for(lambda: not processes_of(pod), 10), processes_of(pod))
        left = everything_gone()
        t.check("nothing is left", not left, left)


def test_busy_removal(t):
    """A pod is removed while execs come in: all are answered, and the service goes on."""
    for i in range(3):
        pod = NODE.runp("busy")
        c = NODE.run(pod, "busy", "c", ["sleep", "1000"])
        calls = [crictl("exec", "-s", c, "sleep", "1000") for _ in range(6)]
        time.sleep(0.02 * i)
        NODE.crictl("rmp", "-f", pod)
        codes = [call.communicate(timeout=30) and call.returncode for call in calls]
        left = everything_gone()
        t.check("removed while execs come in", all(codes) and not left and NODE.process.poll() is None, (codes, left))


def test_damage(t):
    """Records that a broken disk has left: what cannot be read is removed, the rest is taken up."""
    pod = NODE.runp("good")
    c = NODE.run(pod, "good", "c", ["sleep", "1000"])
    NODE.kill()
    for kind, record, content in (("sandboxes", "sandbox.json", b"{"), ("containers", "container.json", b""), ("containers", "container.json", b"\0" * 4096)):
        folder = os.path.join(NODE.root, kind, "%064x" % random.randrange(1 << 200))
        os.makedirs(folder)
        with open(os.path.join(folder, record), "wb") as f:
            f.write(content)
    os.makedirs(os.path.join(NODE.root, "sandboxes", "f" * 64))
    NODE.start()
    t.check("damaged records hinder nobody", NODE.status(c)["state"] == "CONTAINER_RUNNING" and NODE.out("pods", "-q") == pod)
    left = everything_gone()
    t.check("nothing is left", not left, left)


def main():
    global NODE
    if os.geteuid() != 0:
        print("1..0 # SKIP needs root")
        return
    try:
        NODE = cri.NODE = cri.Node("f")
        cri.load_images(NODE)
        NODE.start()
        tap.run([test_restart, test_points, test_any_moment, test_monitor_killed, test_busy_removal, test_damage])
    finally:
        if NODE:
            NODE.close()
        shutil.rmtree(cri.FOLDER, ignore_errors=True)


if __name__ == "__main__":
    main()
