"""Another OCI runtime and a network plugin for tests that wait, at one step, until they are let go: there whoever called them is killed."""
import json
import os

import peers
from cluster import wait_until


class Gate:
    """In a folder of its own; conflist: the network configuration that gets the plugin."""

    def __init__(self, folder, conflist):
        self.folder, self.conflist = folder, conflist
        self.bin = os.path.join(self.folder, "bin")
        os.makedirs(self.bin)
        self.runtime = self.script("runtime", f"""
for word; do case $word in create|start|kill|delete) step=$word; break;; esac; done
if [ -e "{self.folder}/hold.$step" ] && mv "{self.folder}/hold.$step" "{self.folder}/at.$step"; then
    while [ ! -e "{self.folder}/go" ]; do sleep 0.01; done
fi
exec {peers.static_pod()} runc "$@"
""")
        self.script("bin/gate", f"""
read -r config
if [ -e "{self.folder}/hold.$CNI_COMMAND" ] && mv "{self.folder}/hold.$CNI_COMMAND" "{self.folder}/at.$CNI_COMMAND"; then
    while [ ! -e "{self.folder}/go" ]; do sleep 0.01; done
fi
[ $CNI_COMMAND = ADD ] && echo "$config" | python3 -c 'import json, sys; print(json.dumps(json.load(sys.stdin)["prevResult"]))'
exit 0
""")
        self.plugins(lambda plugins: plugins.append({"type": "gate"}))

    def plugins(self, change):
        with open(self.conflist) as f:
            conf = json.load(f)
        change(conf["plugins"])
        with open(self.conflist, "w") as f:
            json.dump(conf, f)

    def remove(self):
        self.plugins(lambda plugins: plugins.pop())

    def script(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as f:
            f.write("#!/bin/sh\n" + text)
        os.chmod(path, 0o755)
        return path

    def flags(self, prefix="--"):
        return prefix + "handler", f"held={self.runtime}", prefix + "cni-bin-dir", self.bin

    def hold(self, step):
        for name in os.listdir(self.folder):
            if name.split(".")[0] in ("hold", "at", "go"):
                os.unlink(os.path.join(self.folder, name))
        open(os.path.join(self.folder, f"hold.{step}"), "w").close()

    def wait(self, step):
        wait_until(lambda: os.path.exists(os.path.join(self.folder, f"at.{step}")), what=f"{step} to be held")

    def go(self):
        open(os.path.join(self.folder, "go"), "w").close()
