#!/usr/bin/env python3
"""What the API server does per second, and what that costs: each row beside its goal and, where one can be had, beside a peer that
does only the part that cannot be left out (TLS and HTTP/2 with nghttpd, durable rows with SQLite) on the same machine in the same run.

    api.py BENCH-WATCH [--pods N] [--watchers N] [--writes-per-second N]

Starts c8s kube-apiserver (environment variable C8S) in a temporary folder, loads it with h2load, and stops it. On a machine that has
other things to do, rates say little: compare CPU per request, and the ratios. --pods 100000 tells the memory of a large cluster."""
import argparse
import json
import os
import re
import resource
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))
import cluster  # noqa: E402
import peers  # noqa: E402

NAMESPACE = "/api/v1/namespaces/default"
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "b-"}, "data": {"k": "x" * 512}}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-", "labels": {"app": "bench"}},
       "spec": {"schedulerName": "nobody", "containers": [
           {"name": "c", "image": "nginx", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}]}}
IDLE_SECONDS = 5


def cpu_seconds(pid):
    """Of all threads, to the nanosecond."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat") as f:
            total += int(f.read().split()[0])
    return total / 1e9


def memory(pid):
    """RSS and PSS in MB."""
    with open(f"/proc/{pid}/smaps_rollup") as f:
        sizes = dict(re.findall(r"^(Rss|Pss): +(\d+) kB", f.read(), re.M))
    return int(sizes["Rss"]) / 1e3, int(sizes["Pss"]) / 1e3


def say(what, value, goal="", more=""):
    print(f"{what:<42} {value:>16}  {'goal ' + goal if goal else '':<18} {more}", flush=True)


def say_memory(what, pid, goal=""):
    rss, pss = memory(pid)
    say(f"memory, {what}", f"{rss:.1f} MB RSS", goal, f"{pss:.1f} MB PSS")


class Load:
    """h2load against one server."""

    def __init__(self, folder, server):
        self.folder, self.server, self.program = folder, server, peers.find("h2load", "nghttp2-client")

    def run(self, url, n, connections, streams, body=None):
        args = [self.program, "-n", str(n), "-c", str(connections), "-m", str(streams)]
        if body:
            name = os.path.join(self.folder, "body")
            with open(name, "w") as f:
                json.dump(body, f)
            args += ["-d", name]
        for header in ("authorization: Bearer admin-token", "content-type: application/json", "accept: application/json"):
            args += ["-H", header]
        out = subprocess.run([*args, url], capture_output=True, text=True, timeout=600).stdout
        good = int(re.search(r"status codes: (\d+) 2xx", out)[1])
        if good != n:
            raise RuntimeError(f"{n - good} of {n} requests failed:\n{out}")
        return float(re.search(r"([\d.]+) req/s", out)[1])

    def row(self, what, goal, path, n, connections, streams, body=None, peer=None):
        """One row: its rate, CPU per request, and the rate as a part of the peer's, (rate, name)."""
        pid = self.server.process.pid
        before = cpu_seconds(pid)
        rate = self.run(f"https://127.0.0.1:{self.server.port}{path}", n, connections, streams, body)
        cost = (cpu_seconds(pid) - before) / n
        more = f"{cost * 1e6:,.0f} us CPU each"
        if peer and peer[0]:
            more += f", {rate / peer[0]:.2f} of {peer[1]} ({peer[0]:,.0f}/s)"
        say(what, f"{rate:,.0f}/s" if rate >= 100 else f"{rate:.1f}/s", goal, more)
        return rate


def sqlite_rate(folder, rows_per_commit, seconds=1):
    """Durable rows per second of SQLite alone."""
    name = os.path.join(folder, f"peer-{rows_per_commit}.db")
    db = sqlite3.connect(name, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, key BLOB, value BLOB)")
    n, begin = 0, time.monotonic()
    while time.monotonic() - begin < seconds:
        db.execute("BEGIN")
        db.executemany("INSERT INTO t(key, value) VALUES(?, ?)", [(b"k" * 40, b"x" * 1024)] * rows_per_commit)
        db.execute("COMMIT")
        n += rows_per_commit
    rate = n / (time.monotonic() - begin)
    db.close()
    return rate


def nghttpd_rate(load, folder, body, n):
    """nghttpd serving the same bytes, or None if it cannot be had."""
    program = peers.find("nghttpd", "nghttp2-server")
    if not program:
        return None
    with open(os.path.join(folder, "same"), "wb") as f:
        f.write(body)
    port, pki = cluster.free_port(), os.path.join(load.server.folder, "data", "pki")
    server = subprocess.Popen([program, "-d", folder, "-a", "127.0.0.1", "-n", "1", str(port), os.path.join(pki, "apiserver.key"),
                               os.path.join(pki, "apiserver.crt")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(0.3)
        return load.run(f"https://127.0.0.1:{port}/same", n, 4, 16)
    except (RuntimeError, TypeError):
        return None
    finally:
        server.terminate()
        server.wait(10)


def watch(args, server):
    pid, before, begin = server.process.pid, cpu_seconds(server.process.pid), time.monotonic()
    subprocess.run([args.watch, f"https://127.0.0.1:{server.port}{NAMESPACE}/configmaps",
                    os.path.join(server.folder, "data", "pki", "ca.crt"), "admin-token", str(args.watchers),
                    str(args.writes_per_second)], check=True, timeout=300)
    used = cpu_seconds(pid) - before
    say("  the server meanwhile", f"{100 * used / (time.monotonic() - begin):.0f} % of a core")
    say_memory("after the watchers", pid)


def run(args, folder, server):
    pid, load = server.process.pid, Load(folder, server)
    say_memory("just started", pid, "< 25 MB in all")
    before = cpu_seconds(pid)
    time.sleep(IDLE_SECONDS)
    say("CPU, idle", f"{100 * (cpu_seconds(pid) - before) / IDLE_SECONDS:.2f} %", "< 0.2 %")
    server.request("POST", f"{NAMESPACE}/serviceaccounts",
                   {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})
    one, many = ((sqlite_rate(folder, n), f"SQLite, {n} per commit") for n in (1, 64))
    load.row("create ConfigMap, 1 in flight", "> 2,500/s", f"{NAMESPACE}/configmaps", 2000, 1, 1, CONFIG_MAP, one)
    load.row("create ConfigMap, 64 in flight", "> 20,000/s", f"{NAMESPACE}/configmaps", 20000, 4, 16, CONFIG_MAP, many)
    load.row("create Pod, 64 in flight", "> 10,000/s", f"{NAMESPACE}/pods", args.pods, 4, 16, POD, many)
    say_memory(f"with {args.pods:,} pods", pid)
    listed = server.request("GET", f"{NAMESPACE}/pods?limit=1").json["items"]
    pod = f"{NAMESPACE}/pods/{listed[0]['metadata']['name']}"
    body = server.request("GET", pod).body
    peer = nghttpd_rate(load, folder, body, 40000), "nghttpd"
    load.row("get Pod, 64 in flight", "> 75,000/s", pod, 40000, 4, 16, None, peer)
    rate = load.row(f"list {args.pods:,} Pods, 4 in flight", "> 60/s" if args.pods == 10000 else "",
                    f"{NAMESPACE}/pods?resourceVersion=0", 40, 4, 1)
    size = len(server.request("GET", f"{NAMESPACE}/pods?resourceVersion=0", timeout=120).body)
    say("  that is", f"{rate * size / 1e6:,.0f} MB/s", "", f"{size / 1e6:.1f} MB each")
    say_memory("after the lists", pid, "< 150 MB" if args.pods == 10000 else "")
    watch(args, server)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("watch", help="the program bench-watch")
    parser.add_argument("--pods", type=int, default=10000)
    parser.add_argument("--watchers", type=int, default=1000)
    parser.add_argument("--writes-per-second", type=int, default=100)
    args = parser.parse_args()
    if not peers.find("h2load", "nghttp2-client"):
        print("h2load (package nghttp2-client) is missing")
        return
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 65536), most))
    with cluster.Folder() as folder:
        server = cluster.Server(os.path.join(folder, "server"))
        begin = time.monotonic()
        with server:
            say("start, first time (makes certificates)", f"{(time.monotonic() - begin) * 1e3:.0f} ms")
            server.stop()
            begin = time.monotonic()
            server.start()
            say("start", f"{(time.monotonic() - begin) * 1e3:.0f} ms", "< 300 ms")
            run(args, folder, server)


if __name__ == "__main__":
    main()
