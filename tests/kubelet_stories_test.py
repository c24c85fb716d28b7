"""Recorded behaviour of Kubernetes' kubelet is played on a node of ours, and compared: see stories.py."""
import os
import socket
import subprocess
import sys
import threading

import images
import nodes
import peers
import stories
from tap import Tap

BUSYBOX = "e2e-test-images/busybox"
# agnhost's programs, as far as the stories use them.
AGNHOST = """#!/bin/sh
case $1 in
netexec) exec httpd -f -p 8080 -h /www;;
pause) trap 'echo; exit 2' TERM; while :; do sleep 1; done;;
esac
"""


def busybox_files():
    files = images.busybox()
    applets = subprocess.run([images.BUSYBOX, "--list"], capture_output=True, text=True, check=True).stdout.split()
    files.update({"bin/" + name: "busybox" for name in applets if name != "busybox"})
    return files


def story_images():
    files = busybox_files()
    agnhost = {**files, "bin/agnhost": AGNHOST.encode(), "www": None}
    return {"e2e-test-images/busybox:1.37.0-1": images.Image(files, config={"Cmd": ["sh"]}),
            "e2e-test-images/busybox:1.36.1-1": images.Image(files, config={"Cmd": ["sh"], "Env": ["OTHER=1"]}),
            "e2e-test-images/nonroot:1.5": images.Image(files, config={"Cmd": ["sh"], "User": "1234"}),
            "e2e-test-images/agnhost:2.63.0": images.Image(agnhost, config={"Entrypoint": ["/bin/agnhost"], "Cmd": ["pause"]})}


class StoryNode(nodes.Node):
    """registry.k8s.io is our registry; no pause image is needed."""

    def start(self):
        hosts = os.path.join(self.folder, "certs.d", "registry.k8s.io")
        os.makedirs(hosts)
        with open(os.path.join(hosts, "hosts.toml"), "w") as f:
            f.write(f'[host."http://{self.registry.host}"]\n  capabilities = ["pull", "resolve"]\n')
        self.flags = [*self.flags, "--runtime-registry-config", os.path.join(self.folder, "certs.d")]
        return super().start()


def story_node():
    return StoryNode(config={"clusterDNS": ["10.96.0.10"], "fileCheckFrequency": "2s"}, server_flags=["--service-cluster-ip-range", "10.96.0.0/16"])


def prepare(node):
    for name, image in story_images().items():
        repository, tag = name.split(":")
        node.put_image(repository, image, tag)
        node.crictl("pull", "registry.k8s.io/" + name)

# ---- main
