#!/usr/bin/env python3
"""The client (client/) against a real API server: every call, and what happens when the server goes away."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster  # noqa: E402
import tap  # noqa: E402

CALLS = os.environ["CLIENT_CALLS"]
EXPECTED = 35


def test_calls(t):
    with cluster.Folder() as folder, cluster.Server(folder) as server:
        r = subprocess.run([CALLS, server.kubeconfig, "calls"], capture_output=True, text=True, timeout=60)
        lines = [line for line in r.stdout.splitlines() if line.startswith(("ok ", "not ok "))]
        for line in lines:
            t.check(line.removeprefix("not ").removeprefix("ok ").split(":")[0], line.startswith("ok "), line)
        t.check("all calls were made", r.returncode == 0 and len(lines) == EXPECTED, f"{len(lines)} {r.returncode} {r.stderr[-3000:]}")

        watch = subprocess.Popen([CALLS, server.kubeconfig, "watch"], stdout=subprocess.PIPE, text=True)
        watch.stdout.readline()
        server.kill()
        said = watch.communicate(timeout=30)[0]
        t.check("a server that is killed breaks its watches", watch.returncode == 0 and said.startswith("503 "), said)

        server.start()
        old = subprocess.run([CALLS, server.kubeconfig, "watch", "1"], capture_output=True, text=True, timeout=30)
        t.check("a watch from too long ago", "410 " in old.stdout and "too old resource version" in old.stdout, old.stdout)

        watch = subprocess.Popen([CALLS, server.kubeconfig, "watch"], stdout=subprocess.PIPE, text=True)
        watch.stdout.readline()
        server.stop()
        said = watch.communicate(timeout=30)[0]
        t.check("a server that stops ends its watches", watch.returncode == 0 and said.startswith(("0 ", "503 ")), said)
        gone = subprocess.run([CALLS, server.kubeconfig, "watch"], capture_output=True, text=True, timeout=60)
        t.check("no server", "503 Get " in gone.stdout and "connection refused" in gone.stdout, gone.stdout)


if __name__ == "__main__":
    tap.run([test_calls])
