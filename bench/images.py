#!/usr/bin/env python3
"""What an image costs from its OCI layout to a root file system: about 100 MB of /usr/share in three layers, by `c8s image load` and the
creation of a container, beside Debian's skopeo and umoci with the same layout, in turn in the same run. Needs root.

    images.py [ROUNDS]"""
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))
import images  # noqa: E402
import peers  # noqa: E402
from containers_layer_test import Runtime  # noqa: E402

GOAL = 0.7  # of skopeo and umoci
SOURCE, BYTES, LAYERS = "/usr/share", 100 << 20, 3
NAME = "bench.test/unpack:1"


def pick():
    """Files until there are enough bytes of them, and their size."""
    picked, size = [], 0
    for folder, folders, names in os.walk(SOURCE):
        folders.sort()
        for path in (os.path.join(folder, name) for name in sorted(names)):
            if size < BYTES and os.path.isfile(path) and not os.path.islink(path):
                picked.append(path)
                size += os.path.getsize(path)
    return picked, size


def make_layout(folder):
    """The image as an OCI layout, with compressed layers."""
    picked, size = pick()
    layers = [{} for _ in range(LAYERS)]
    for i, path in enumerate(picked):
        with open(path, "rb") as f:
            layers[i % LAYERS][path[1:]] = f.read()
    image = images.Image(*layers)
    image.layout(folder, NAME)
    print(f"{len(picked)} files of {size / 1e6:.0f} MB in {LAYERS} layers, {sum(map(len, image.layers)) / 1e6:.0f} MB compressed")


def seconds(*command, **more):
    begun = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode:
        raise RuntimeError(f"{command}: {done.stderr}")
    return time.perf_counter() - begun


def by_c8s(layout):
    r = Runtime()
    try:
        r.start()
        pod = r.crictl("runp", r.pod_config()).stdout.strip()
        container = r.write("container.json", {"metadata": {"name": "c"}, "image": {"image": NAME}, "log_path": "c.log", "linux": {}})
        crictl = [os.environ["C8S"], "crictl", "-r", "unix://" + r.socket]
        return (seconds(os.environ["C8S"], "image", "--root", r.root, "load", layout),
                seconds(*crictl, "create", "--no-pull", pod, container, os.path.join(r.folder, "pod.json")))
    finally:
        r.close()


def by_peers(skopeo, umoci, layout):
    with tempfile.TemporaryDirectory(prefix="c8s-bench-") as folder:
        return (seconds(skopeo, "copy", "--insecure-policy", f"oci:{layout}:{NAME}", f"oci:{folder}/layout:1", env=peers.libraries()),
                seconds(umoci, "unpack", "--image", f"{folder}/layout:1", f"{folder}/bundle"))


def unpack(rounds):
    skopeo, umoci = peers.find("skopeo", peers.PEERS["skopeo"]), peers.find("umoci", "umoci")
    ways = {"c8s": by_c8s, **({"skopeo and umoci": lambda layout: by_peers(skopeo, umoci, layout)} if skopeo and umoci else {})}
    folder = tempfile.mkdtemp(prefix="c8s-bench-")
    layout = os.path.join(folder, "layout")
    try:
        make_layout(layout)
        times = {name: [] for name in ways}
        for _ in range(rounds):
            for name, way in ways.items():
                times[name].append(way(layout))
    finally:
        shutil.rmtree(folder)
    middle = {name: statistics.median(map(sum, t)) for name, t in times.items()}
    for name, total in middle.items():
        parts = " + ".join(f"{statistics.median(x):.2f}" for x in zip(*times[name]))
        ratio = "" if name == "c8s" else f"   c8s takes {middle['c8s'] / total:.2f} of it, goal {GOAL}"
        print(f"from layout to root, {name:16} {total:6.2f} s ({parts}){ratio}")


if __name__ == "__main__":
    if os.geteuid():
        sys.exit("bench images: needs root")
    unpack(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
