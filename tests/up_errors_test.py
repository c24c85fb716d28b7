"""What `c8s up`, `join`, `doctor`, `status`, `down` and `reset` say when they cannot: the exit code, and words that tell what to do. Machines that
lack something are made of namespaces: mounts over what is missing, limits, other users. Nothing starts."""
import hashlib
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import nodes  # noqa: E402
import peers  # noqa: E402
import tap  # noqa: E402

# Each row: what is wrong, a shell script, the exit code, words that have to be in what is said. $c is the program, $w a folder; scripts run in a
# mount namespace of their own. "up" must have said it before it made anything.
ROWS = [
    ("no root", "setpriv --reuid 1000 --clear-groups $c up --data-dir $w/x", 1, ["user 1000, not root", "sudo"]),
    ("no root, status of root's cluster", "mkdir -m 755 $w/x; echo 'v: 0' > $w/x/up.yaml; chmod 600 $w/x/up.yaml; "
     "setpriv --reuid 1000 --clear-groups $c status --data-dir $w/x", 1, ["up.yaml cannot be read", "run this as root"]),
    ("root of a user namespace", "unshare -Ur $c doctor --data-dir $w/x", 1, ["root of a user namespace", "outside"]),
    ("no namespaces", "unshare -Ur sh -c \"echo 0 > /proc/sys/user/max_net_namespaces; $c doctor --data-dir $w/x\"", 1,
     ["PROBLEM  namespaces", "max_*_namespaces"]),
    ("no user namespaces", "unshare -Ur sh -c \"echo 0 > /proc/sys/user/max_user_namespaces; $c doctor --data-dir $w/x\"", 1,
     ["note     user namespaces", "hostUsers: false", "max_user_namespaces"]),
    ("no control groups", "mount -t tmpfs none /sys/fs/cgroup; $c up --data-dir $w/x", 1, ["cgroups: not mounted: cpu memory pids", "mount -t cgroup2"]),
    ("port taken", "$c up --data-dir $w/x --secure-port $port", 1, ["$port is taken by python3 (pid $pid)", "--secure-port"]),
    ("kubelet's port taken", "$c up --data-dir $w/x --kubelet-port $port", 1, ["$port is taken by python3 (pid $pid)", "--kubelet-port"]),
    ("ports the same", "$c up --data-dir $w/x --secure-port 7000 --kubelet-port 7000", 1, ["7000 is given twice", "--kubelet-port"]),
    ("a port that is none", "$c up --data-dir $w/x --secure-port 70000", 1, ["70000 is none", "from 1 to 65535"]),
    ("an address of another machine", "$c up --data-dir $w/x --bind-address 198.51.100.7", 1, ["198.51.100.7 is not an address of this machine", "127.0.0.1"]),
    ("a node address of another machine", "$c up --data-dir $w/x --node-ip 198.51.100.7", 1, ["198.51.100.7 is not an address of this machine", "--node-ip"]),
    ("a range that is none", "$c up --data-dir $w/x --pod-cidr ten", 1, ["'ten' is not a range", "--pod-cidr"]),
    ("ranges that overlap", "$c up --data-dir $w/x --pod-cidr 10.96.128.0/17", 1, ["overlap", "--service-cidr"]),
    ("a range that is in use", "$c up --data-dir $w/x --pod-cidr 127.0.0.0/16", 1, ["127.0.0.1 of the link lo is in it", "--pod-cidr"]),
    ("a node name that is none", "$c up --data-dir $w/x --node-name My_Node", 1, ["'My_Node' cannot be one", "--node-name"]),
    ("the name of the machine is none", "unshare -u sh -c 'echo a_b > /proc/sys/kernel/hostname; exec $0 up --data-dir $1/x' $c $w", 1, ["'a_b' cannot be one", "--node-name"]),
    ("c8s-pod is missing", "mkdir $w/bin; cp $c $w/bin/c8s; $w/bin/c8s up --data-dir $w/x", 1, ["$w/bin/c8s-pod is not there", "make install"]),
    ("a path too long for sockets", "$c up --data-dir $w/$(printf '%070d' 0)", 1, ["too long for the sockets", "at most"]),
    ("a file in the place of the folder", "echo > $w/x; $c up --data-dir $w/x", 1, ["$w/x is not a folder", "--data-dir"]),
    ("etcd's folder", "mkdir -p $w/x/member; $c up --data-dir $w/x", 1, ["holds member", "--data-dir"]),
    ("another user's folder", "mkdir $w/x; chown 1000 $w/x; $c up --data-dir $w/x", 1, ["belongs to user 1000", "chown root"]),
    ("a folder that others may change", "mkdir $w/x; chmod 777 $w/x; $c up --data-dir $w/x", 1, ["written to by other users", "chmod go-w"]),
    ("a folder behind a closed one", "mkdir -m 700 $w/x; $c up --data-dir $w/x/y", 1, ["closed to other users", "chmod o+x"]),
    ("made by a newer c8s", "mkdir $w/x; echo '# Written by c8s 99.1.2: x' > $w/x/up.yaml; echo 'fly: true' >> $w/x/up.yaml; $c up --data-dir $w/x", 1,
     ["written by c8s 99.1.2,", "newer"]),
    ("settings that nobody knows", "mkdir $w/x; echo 'fly: true' > $w/x/up.yaml; $c status --data-dir $w/x", 1, ["--fly", "up.yaml has settings"]),
    ("half removed", "mkdir -p $w/x/node; echo 'v: 0' > $w/x/up.yaml; touch $w/x/node/kubelet.conf; $c up --data-dir $w/x", 1, ["pki/ca.key is gone", "c8s reset --data-dir $w/x"]),
    ("half removed, the rest", "mkdir -p $w/x/log; touch $w/x/lock; $c reset --data-dir $w/x && ! test -e $w/x", 0, []),
    ("a full disk", "mkdir $w/x; mount -t tmpfs -o size=8m,mode=755 none $w/x; $c up --data-dir $w/x", 1, ["8 MiB free", "make room"]),
    ("a disk for reading", "mkdir $w/x; mount -t tmpfs -o ro,mode=755 none $w/x; $c up --data-dir $w/x", 1, ["$w/x is read-only", "--data-dir"]),
    ("a disk in memory", "mkdir $w/x; mount -t tmpfs -o mode=755 none $w/x; $c doctor --data-dir $w/x", 0, ["is in memory", "reboot"]),
    ("no cluster: status", "$c status --data-dir $w/x", 1, ["there is no cluster in $w/x", "c8s up --data-dir $w/x"]),
    ("no cluster: down", "$c down --data-dir $w/x", 1, ["there is no cluster in $w/x"]),
    ("no cluster: token", "$c token create --data-dir $w/x", 1, ["there is no cluster in $w/x"]),
    ("join without an address", "$c join --token abcdef.0123456789abcdef", 2, ["address is missing", "https://"]),
    ("join without a token", "$c join https://127.0.0.1:$port --data-dir $w/x", 1, ["abcdef.0123456789abcdef", "c8s token create"]),
    ("join with half a token", "$c join https://127.0.0.1:$port --token abcdef --data-dir $w/x", 1, ["abcdef.0123456789abcdef", "c8s token create"]),
    ("join where nobody is", "$c join https://127.0.0.1:1 --token abcdef.0123456789abcdef --data-dir $w/x", 1, ["127.0.0.1:1", "refused"]),
    ("join by a name that is none", "$c join https://nobody.invalid:6443 --token abcdef.0123456789abcdef --data-dir $w/x", 1, ["nobody.invalid"]),
    ("join an address that is no URL", "$c join 10.0.0.1:6443 --token abcdef.0123456789abcdef --data-dir $w/x", 1, ["https://10.0.0.1:6443"]),
    ("join with a hash that is none", "$c join https://127.0.0.1:$port --token abcdef.0123456789abcdef --ca-hash 12 --data-dir $w/x", 1, ["sha256:", "c8s token create"]),
]


def run_row(t, program, folder, port, row):
    what, script, code, words = row
    os.makedirs(folder, mode=0o755)
    os.chmod(folder, 0o755)
    values = {"$c": program, "$w": folder, "$port": str(port), "$pid": str(os.getpid())}
    for name, value in values.items():
        script, words = script.replace(name, value), [w.replace(name, value) for w in words]
    script = f"timeout -s INT 20 unshare -m sh -c {shlex.quote(script)}"  # what starts after all is stopped again
    r = subprocess.run(["sh", "-c", script], env={**os.environ, "HOME": folder}, capture_output=True, text=True)
    said = r.stdout + r.stderr
    t.check(what, r.returncode == code and all(w in said for w in words), f"exit code {r.returncode}, wants {words}:\n{said}")
    if " up --data-dir" in script and code:
        left = [name for name in os.listdir(folder) if os.path.exists(os.path.join(folder, name, "log"))]
        t.check(f"{what}: nothing was made", not left, left)


def forget(data):
    """A cluster that was begun has a folder of its own, which only a reset removes."""
    shutil.rmtree(f"/run/c8s/{hashlib.sha256(data.encode()).hexdigest()[:8]}", ignore_errors=True)


def main():
    t = tap.Tap()
    if why := nodes.missing(registry=False, kubectl=False):
        t.skip("errors that say what to do", why)
        t.close()
    nodes.own_namespaces()
    folder = tempfile.mkdtemp(prefix="c8s-test-")
    os.chmod(folder, 0o755)
    try:
        # Where users other than root can run it, too: the build may be in a folder that is closed to them.
        program = shutil.copy(peers.C8S, os.path.join(folder, "c8s"))
        shutil.copy(peers.static_pod(), os.path.join(folder, "c8s-pod"))
        with socket.create_server(("0.0.0.0", 0)) as taken:
            for i, row in enumerate(ROWS):
                run_row(t, program, os.path.join(folder, str(i)), taken.getsockname()[1], row)
                forget(os.path.join(folder, str(i), "x"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    t.close()


if __name__ == "__main__":
    main()
