#!/usr/bin/env python3
"""What the API server of a control plane does per second, and what that costs: each row beside its goal and, where one can be had, beside a
peer that does only the part that cannot be left out (TLS and HTTP/2 with nghttpd, durable writes with SQLite and etcd) on the same machine
in the same run.

    api.py [--rounds N] [--pods N] [--watch BENCH-WATCH [--watchers N] [--writes-per-second N]]

Starts c8s control-plane (environment variable C8S) in a temporary folder, loads it with h2load, and stops it. On a machine that has
other things to do, rates say little: compare CPU per request, and the ratios. --pods 100000 tells the memory of a large cluster."""
import argparse
import os
import resource
import sqlite3
import subprocess
import time

from common import Load, api_load, cpu_seconds, figure, memory
import cluster
import peers

NAMESPACE = "/api/v1/namespaces/default"
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "b-"}, "data": {"k": "x" * 512}}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-", "labels": {"app": "bench"}},
       "spec": {"schedulerName": "nobody", "containers": [
           {"name": "c", "image": "nginx", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}]}}
VALUE = b"x" * 1024  # what peers write
LISTS = 40


def say(what, value, goal="", more=""):
    print(f"{what:<42} {value:>16}  {'goal ' + goal if goal else '':<18} {more}", flush=True)


def say_memory(what, pid, goal=""):
    rss, pss = memory(pid)
    say(f"memory, {what}", f"{rss:.1f} MB RSS", goal, f"{pss:.1f} MB PSS")
    return rss


# ---- peers ----


def sqlite_rate(folder, rows_per_commit, seconds=1):
    """Durable rows per second of SQLite alone."""
    db = sqlite3.connect(os.path.join(folder, f"peer-{rows_per_commit}.db"), isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, key BLOB, value BLOB)")
    n, begin = 0, time.monotonic()
    while time.monotonic() - begin < seconds:
        db.execute("BEGIN")
        db.executemany("INSERT INTO t(key, value) VALUES(?, ?)", [(b"k" * 40, VALUE)] * rows_per_commit)
        db.execute("COMMIT")
        n += rows_per_commit
    rate = n / (time.monotonic() - begin)
    db.close()
    return rate


def put_request():
    """etcd's Put as gRPC sends it: a frame of key (1) and value (2)."""
    key = b"/registry/configmaps/default/b"
    message = b"\x0a" + bytes([len(key)]) + key + b"\x12" + bytes([len(VALUE) & 0x7F | 0x80, len(VALUE) >> 7]) + VALUE
    return b"\0" + len(message).to_bytes(4, "big") + message


def etcd_rates(folder):
    """Puts per second of Debian's etcd with 1 and with 64 in flight, without TLS; None, None if it cannot be had."""
    if not (peers.find("etcd", "etcd-server") and peers.find("etcdctl", "etcd-client")):
        return None, None
    with cluster.Etcd(os.path.join(folder, "etcd")) as etcd:
        load = Load(folder, etcd.endpoints, "content-type: application/grpc", "te: trailers")
        path = "/etcdserverpb.KV/Put"
        return load.run(path, 1000, 1, 1, put_request()), load.run(path, 10000, 4, 16, put_request())


def nghttpd_rate(bench, body, n, streams):
    """nghttpd serving the same bytes with one thread; None if it cannot be had."""
    program = peers.find("nghttpd", "nghttp2-server")
    if not program:
        return None
    folder, port, pki = bench.load.folder, cluster.free_port(), os.path.join(bench.server.folder, "data", "pki")
    with open(os.path.join(folder, "same"), "wb") as f:
        f.write(body)
    server = subprocess.Popen([program, "-d", folder, "-a", "127.0.0.1", "-n", "1", str(port), os.path.join(pki, "apiserver.key"),
                               os.path.join(pki, "apiserver.crt")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(0.3)
        return Load(folder, f"https://127.0.0.1:{port}").run("/same", n, 4, streams)
    except RuntimeError:
        return None
    finally:
        server.terminate()
        server.wait(10)


# ---- the rows ----


class Bench:
    """One control plane and its load."""

    def __init__(self, folder, server):
        self.server, self.pid, self.load = server, server.process.pid, api_load(folder, server)

    def row(self, key, what, goal, path, n, connections, streams, body=None, **rates):
        """Its rate, CPU per request, and the rate as a part of that of peers."""
        before = cpu_seconds(self.pid)
        rate = self.load.run(NAMESPACE + path, n, connections, streams, body)
        cost = (cpu_seconds(self.pid) - before) / n
        parts = [f"{rate / other:.2f} of {who} ({other:,.0f}/s)" for who, other in rates.items() if other]
        say(what, f"{rate:,.0f}/s" if rate >= 100 else f"{rate:.1f}/s", goal, ", ".join([f"{cost * 1e6:,.0f} us CPU each", *parts]))
        figure(key, rate)
        for who, other in rates.items():
            if other:
                figure(key, other, who)
        return rate

    def get(self, path):
        return self.server.request("GET", NAMESPACE + path, timeout=120)


def reads(bench, pods):
    pod = "/pods/" + bench.get("/pods?limit=1").json["items"][0]["metadata"]["name"]
    bench.row("get_pod", "get Pod, 64 in flight", "> 75,000/s", pod, 40000, 4, 16, nghttpd=nghttpd_rate(bench, bench.get(pod).body, 40000, 16))
    path, usual = "/pods?resourceVersion=0", pods == 10000
    body = bench.get(path).body
    rate = bench.row("list_pods", f"list {pods:,} Pods, 4 in flight", "> 60/s" if usual else "", path, LISTS, 4, 1,
                     nghttpd=nghttpd_rate(bench, body, LISTS, 1))
    say("  that is", f"{rate * len(body) / 1e6:,.0f} MB/s", "", f"{len(body) / 1e6:.1f} MB each")
    figure("list_memory", say_memory("after the lists", bench.pid, "< 150 MB" if usual else ""))


def writes(bench, pods, sqlite, etcd):
    bench.row("config_map_1", "create ConfigMap, 1 in flight", "> 2,500/s", "/configmaps", 1000, 1, 1, CONFIG_MAP, SQLite=sqlite[0], etcd=etcd[0])
    bench.row("config_map_64", "create ConfigMap, 64 in flight", "> 20,000/s", "/configmaps", 10000, 4, 16, CONFIG_MAP, SQLite=sqlite[1], etcd=etcd[1])
    bench.row("pod_64", "create Pod, 64 in flight", "> 10,000/s", "/pods", pods, 4, 16, POD, SQLite=sqlite[1], etcd=etcd[1])
    say_memory(f"with {pods:,} pods", bench.pid)


def watch(args, bench):
    before, begin = cpu_seconds(bench.pid), time.monotonic()
    subprocess.run([args.watch, f"{bench.load.url}{NAMESPACE}/configmaps", os.path.join(bench.server.folder, "data", "pki", "ca.crt"),
                    "admin-token", str(args.watchers), str(args.writes_per_second)], check=True, timeout=300)
    used = cpu_seconds(bench.pid) - before
    say("  the server meanwhile", f"{100 * used / (time.monotonic() - begin):.0f} % of a core")
    say_memory("after the watchers", bench.pid)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--pods", type=int, default=10000)
    parser.add_argument("--watch", help="the program bench-watch")
    parser.add_argument("--watchers", type=int, default=1000)
    parser.add_argument("--writes-per-second", type=int, default=100)
    args = parser.parse_args()
    if not peers.find("h2load", "nghttp2-client"):
        raise SystemExit("h2load (package nghttp2-client) is missing")
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 65536), most))
    for i in range(args.rounds):
        with cluster.Folder() as folder:
            sqlite, etcd = [sqlite_rate(folder, n) for n in (1, 64)], etcd_rates(folder)
            with cluster.ControlPlane(os.path.join(folder, "server")) as server:
                account = f"{NAMESPACE}/serviceaccounts/default"
                cluster.wait_until(lambda: server.request("GET", account).status == 200, what="the service account of pods")
                bench = Bench(folder, server)
                writes(bench, args.pods, sqlite, etcd)
                reads(bench, args.pods)
                if args.watch:
                    watch(args, bench)


if __name__ == "__main__":
    main()
