#!/usr/bin/env python3
"""`kubectl get pods` as a whole command, from its start to its end, on a control plane of c8s with a few pods: our client alone, the same as
`c8s kubectl`, and Debian's in the same run, in turn.

    kubectl.py [--rounds N]      environment variables: C8S, the program, and KUBECTL, the client alone, which else is beside it

Our programs are copied first, as by an installation: what a linker has just written lies in the page cache in small pieces, which takes a
start half a millisecond longer."""
import argparse
import os
import shutil
import time

from common import figure, median
import cluster
import peers

KUBECTL = os.environ.get("KUBECTL", os.path.join(os.path.dirname(cluster.C8S), "kubectl"))
PODS = 3


def make_pods(server):
    account = "/api/v1/namespaces/default/serviceaccounts/default"
    cluster.wait_until(lambda: server.request("GET", account).status == 200, what="the default service account")
    for i in range(PODS):
        pod = {"metadata": {"name": f"p{i}"}, "spec": {"schedulerName": "nobody", "containers": [{"name": "c", "image": "nginx"}]}}
        answer = server.request("POST", "/api/v1/namespaces/default/pods", pod)
        if answer.status != 201:
            raise RuntimeError(answer)


class Command:
    """A way to ask. Each asks once before it counts, so that files are in memory and what it keeps of the server is there."""

    def __init__(self, name, server, *words):
        self.name, self.took = name, []
        self.words = [*words, "--kubeconfig", server.kubeconfig, "get", "pods"]
        self.env = {**os.environ, "HOME": server.folder}
        self.output = os.path.join(server.folder, "output")
        self.run()
        with open(self.output) as f:
            if len(f.read().splitlines()) != PODS + 1:
                raise RuntimeError(f"{name} shows something else than the pods")
        self.took.clear()

    def run(self):
        """Not by a shell or a copy of this process, which would cost more than what is measured."""
        actions = [(os.POSIX_SPAWN_OPEN, 1, self.output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)]
        begin = time.monotonic()
        pid = os.posix_spawn(self.words[0], self.words, self.env, file_actions=actions)
        _, status = os.waitpid(pid, 0)
        self.took.append((time.monotonic() - begin) * 1000)
        if status:
            raise RuntimeError(f"{self.name} ended with status {status}")

    def median_ms(self):
        return median(self.took)


def commands(server, folder):
    """Ours first."""
    alone, whole = (shutil.copy(path, os.path.join(folder, os.path.basename(path))) for path in (KUBECTL, cluster.C8S))
    found = [Command("kubectl", server, alone), Command("c8s kubectl", server, whole, "kubectl")]
    debian = peers.find("kubectl", "kubernetes-client")
    return found + ([Command("Debian's", server, debian)] if debian else [])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60)
    rounds = parser.parse_args().rounds
    with cluster.Folder() as folder, cluster.ControlPlane(os.path.join(folder, "server")) as server:
        make_pods(server)
        asking = commands(server, folder)
        for _ in range(rounds):
            for command in asking:
                command.run()
        ours = asking[0].median_ms()
        for command in asking:
            print(f"{command.name:<12} {command.median_ms():6.1f} ms   best {min(command.took):6.1f} ms   "
                  f"{command.median_ms() / ours:5.1f} of ours{'   goal < 5 ms' if command is asking[0] else ''}", flush=True)
        figure("kubectl", ours)
        if len(asking) > 2:
            figure("kubectl", asking[2].median_ms(), "Debian's kubectl")
        else:
            print("Debian's kubectl cannot be had")


if __name__ == "__main__":
    main()
