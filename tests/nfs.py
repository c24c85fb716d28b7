"""An NFS server (version 4) for tests, of the kernel and Debian's nfs-kernel-server, in the network and mount namespaces of the test."""
import os
import shutil
import subprocess

PROGRAMS = ("exportfs", "rpc.nfsd", "rpc.mountd", "mount.nfs")


def missing():
    """Why there cannot be one here; None: there can."""
    if not all(shutil.which(program) for program in PROGRAMS):
        return "Debian's nfs-kernel-server is not installed (tests/machine has it)"
    for module in ("nfsd", "nfsv4"):
        subprocess.run(["modprobe", "-q", module], stderr=subprocess.DEVNULL)
    with open("/proc/filesystems") as f:
        known = f.read().split()
    return None if "nfsd" in known and "nfs4" in known else "this kernel has no NFS (tests/machine has one)"


class Export:
    """A folder that others may mount, as / of 127.0.0.1."""

    def __init__(self, folder):
        self.folder, self.mountd = folder, None

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.__exit__()
            raise

    def start(self):
        for kind, point in (("tmpfs", "/var/lib/nfs"), ("nfsd", "/proc/fs/nfsd")):
            subprocess.run(["mount", "-t", kind, kind, point], check=True)
        os.mkdir("/var/lib/nfs/v4recovery")
        for name in ("etab", "rmtab"):
            with open("/var/lib/nfs/" + name, "w"):
                pass
        subprocess.run(["exportfs", "-i", "-o", "rw,no_root_squash,no_subtree_check,insecure,fsid=0", "127.0.0.1:" + self.folder], check=True)
        self.mountd = subprocess.Popen(["rpc.mountd", "-F", "-N", "3"], stderr=subprocess.DEVNULL)
        # For some seconds, and no fewer than these, those who were here before would be let in first.
        subprocess.run(["rpc.nfsd", "-N", "3", "-G", "10", "-L", "10", "-H", "127.0.0.1", "4"], check=True)
        return self

    def __exit__(self, *_):
        subprocess.run(["rpc.nfsd", "0"])
        subprocess.run(["exportfs", "-au"])
        if self.mountd:
            self.mountd.terminate()
            self.mountd.wait()
        for point in ("/proc/fs/nfsd", "/var/lib/nfs"):
            subprocess.run(["umount", "-l", point])
