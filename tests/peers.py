#!/usr/bin/env python3
"""Programs that are not ours, for tests: installed, or unpacked from their Debian package beside the build. As a program: gets them
all, so that tests that run at the same time need not."""
import fcntl
import os
import shutil
import subprocess

C8S = os.environ["C8S"]
FOLDER = os.environ.get("C8S_PEERS") or os.path.join(os.path.dirname(C8S), "peers")
PATH = os.pathsep.join(os.path.join(FOLDER, "usr", folder) for folder in ("bin", "sbin", "lib/cni"))
PEERS = {"buildah": "buildah libgpgme11 libassuan0 libdevmapper1.02.1", "conmon": "conmon libglib2.0-0",
         "podman": "podman libgpgme11 libassuan0 libdevmapper1.02.1 libsubid4",
         "containerd": "containerd", "crun": "crun libyajl2", "docker-registry": "docker-registry", "etcd": "etcd-server", "etcdctl": "etcd-client", "faketime": "faketime libfaketime", "host-local": "containernetworking-plugins", "kubectl": "kubernetes-client",
         "nft": "nftables libnftables1 libnftnl11 libmnl0 libxtables12 libedit2 libbsd0 libmd0", "nginx": "nginx libpcre2-8-0", "runc": "runc",
         "skopeo": "skopeo libgpgme11 libassuan0", "strace": "strace libunwind8",
         "xtables-nft-multi": "iptables libxtables12 libip4tc2 libip6tc2 libnftnl11 libmnl0"}


def static_pod():
    """c8s-pod as it is installed: static, also where the one beside c8s is built with sanitizers."""
    return next(p for p in (os.path.join(os.path.dirname(C8S), name) for name in ("c8s-pod-static", "c8s-pod")) if os.path.exists(p))


def libraries():
    """The environment for programs whose libraries were unpacked with them."""
    triple = f"{os.uname().machine}-linux-gnu"
    return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(os.path.join(FOLDER, lib, triple) for lib in ("usr/lib", "lib"))}


def unpack(package):
    """Unpacks a Debian package beside the program under test, without installing it: no service starts, nothing is replaced."""
    os.makedirs(FOLDER, exist_ok=True)
    if any(name.startswith(package + "_") for name in os.listdir(FOLDER)):
        return PATH
    for command in (["true"], ["apt-get", "update", "-qq"]):
        subprocess.run(command, capture_output=True)
        if subprocess.run(["apt-get", "download", "-qq", package], cwd=FOLDER, capture_output=True).returncode == 0:
            break
    for name in os.listdir(FOLDER):
        if name.startswith(package + "_"):
            subprocess.run(["dpkg", "-x", os.path.join(FOLDER, name), FOLDER], check=True)
    return PATH


def find(program, package):
    """The path of a peer: installed, or from its Debian package; None if it cannot be had."""
    def there():
        return shutil.which(program) or shutil.which(program, path=PATH)
    if there() or not shutil.which("apt-get"):
        return there()
    os.makedirs(FOLDER, exist_ok=True)
    with open(os.path.join(FOLDER, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # somebody else may be unpacking it
        if not there():
            for part in package.split():
                unpack(part)
        return there()


GRPCIO = "python3-grpcio python3-six libabsl20220623 libc-ares2 libre2-9"


def grpcio():
    """The environment for programs of Debian's python3 that use Google's gRPC."""
    return {**libraries(), "PYTHONPATH": os.path.join(FOLDER, "usr/lib/python3/dist-packages")}


def grpcio_missing():
    """Why there is no gRPC for Python here; None: there is."""
    def there():
        return os.path.exists("/usr/bin/python3") and subprocess.run(["/usr/bin/python3", "-c", "import grpc"], env=grpcio(),
                                                                     capture_output=True).returncode == 0
    if there():
        return None
    os.makedirs(FOLDER, exist_ok=True)
    with open(os.path.join(FOLDER, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not there() and shutil.which("apt-get"):
            for part in GRPCIO.split():
                unpack(part)
    return None if there() else "gRPC of Debian's package python3-grpcio cannot be had"


if __name__ == "__main__":
    print("grpcio", grpcio_missing() or "is there")
    for name, package in PEERS.items():
        print(name, find(name, package) or "cannot be had")
