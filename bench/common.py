"""What the benchmarks have in common: processor time and memory of processes, load over HTTP/2, and figures for bench/figures.py."""
import json
import os
import re
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))
import peers  # noqa: E402


def figure(key, value, who="c8s"):
    """Tells bench/figures.py, if it is what has started us: one line for each time that something was measured, of c8s or of a peer."""
    if path := os.environ.get("C8S_FIGURES"):
        with open(path, "a") as f:
            f.write(json.dumps({"key": key, "who": who, "value": value}) + "\n")


def median(values):
    return statistics.median(values)


# ---- processes ----


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
    return int(sizes["Rss"]) * 1024 / 1e6, int(sizes["Pss"]) * 1024 / 1e6


# ---- load ----


class Load:
    """h2load against one server; headers: more of each request."""

    def __init__(self, folder, url, *headers):
        self.folder, self.url, self.headers, self.program = folder, url, headers, peers.find("h2load", "nghttp2-client")

    def run(self, path, n, connections, streams, body=None):
        """Requests per second; body: an object for JSON, or bytes."""
        args = [self.program, "-n", str(n), "-c", str(connections), "-m", str(streams)]
        if body:
            name = os.path.join(self.folder, "body")
            with open(name, "wb") as f:
                f.write(body if isinstance(body, bytes) else json.dumps(body).encode())
            args += ["-d", name]
        for header in self.headers:
            args += ["-H", header]
        out = subprocess.run([*args, self.url + path], capture_output=True, text=True, timeout=600).stdout
        good = re.search(r"status codes: (\d+) 2xx", out)
        if not good or int(good[1]) != n:
            raise RuntimeError(f"not all of {n} requests to {path} succeeded:\n{out}")
        return float(re.search(r"([\d.]+) req/s", out)[1])


def api_load(folder, server):
    """Load against an API server of tests/cluster.py, as its administrator."""
    return Load(folder, f"https://127.0.0.1:{server.port}", "authorization: Bearer admin-token", "content-type: application/json",
                "accept: application/json")
