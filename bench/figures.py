#!/usr/bin/env python3
"""The figures that c8s promises, measured here: each beside what Kubernetes 1.36.4 takes on a machine with two cores, beside its goal, and beside
programs of Debian that do the same or a part of it, in the same run. A row comes from one program of this folder, which can be run alone and tells
more then; of what is measured several times the best counts, for c8s and for the others alike
(the OCI runtimes and kubectl take turns in one series, and their medians count). Needs root, about six minutes, and a machine that has
nothing else to do. Nothing is left behind.

    figures.py [--markdown] [--into FILE] [--rounds N] [ROW ...]

Environment variable C8S: the program; c8s-pod and kubectl are beside it. --into puts the table between the marks in a Markdown file, README.md."""
import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from common import figure, median
import peers

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM_S, CLEAN_UP_S = 300, 60
MARKS = "<!-- figures: bench/figures.py --into README.md -->", "<!-- end of figures -->"
HEAD = ["measure", "Kubernetes 1.36.4", "goal", "c8s here", "met", "others here"]


# ---- how values are written ----


def seconds(value):
    return f"{value:.2f} s"


def milliseconds(value):
    return f"{value:.1f} ms"


def megabytes(value):
    return f"{value:.{0 if value >= 100 else 1 if value >= 1 else 2}f} MB"


def percent(value):
    return f"{value:.2f} %"


def rate(value):
    return f"{value:,.0f}/s" if value >= 100 else f"{value:.1f}/s"


def pod_rate(value):
    return f"{value:,.0f} pods/s"


def of_crun(value):
    return f"{value:.2f} of crun"


# ---- what is measured ----


class Row:
    """program: which one tells it. goal: "< 5 ms", or empty."""

    def __init__(self, key, program, measure, kubernetes, goal, show):
        self.key, self.program, self.measure, self.kubernetes, self.goal, self.show = key, program, measure, kubernetes, goal, show
        self.less, self.values, self.why = not goal.startswith(">"), {}, "not measured"

    def take(self, who, value):
        known = self.values.get(who, value)
        self.values[who] = min(known, value) if self.less else max(known, value)

    def met(self):
        if not self.goal or "c8s" not in self.values:
            return ""
        limit = float(re.search(r"[\d.,]+", self.goal)[0].replace(",", ""))
        return "yes" if (self.values["c8s"] < limit if self.less else self.values["c8s"] > limit) else "NO"

    def cells(self):
        ours = self.show(self.values["c8s"]) if "c8s" in self.values else self.why
        others = ", ".join(f"{who} {self.show(value)}" for who, value in sorted(self.values.items()) if who != "c8s")
        return [self.measure, self.kubernetes, self.goal, ours, self.met(), others]


def all_rows():
    return [
        Row("start_new", "node.py", "start of everything to node Ready, with new keys", "5.2 s", "< 0.3 s", seconds),
        Row("start_again", "node.py", "the same of a cluster that was there before", "", "< 0.3 s", seconds),
        Row("idle_memory", "node.py", "memory of all that runs, at rest (PSS)", "703 MB", "< 25 MB", megabytes),
        Row("idle_cpu", "node.py", "CPU of all that runs, at rest, of a core", "5 %", "< 0.2 %", percent),
        Row("pod_one", "node.py", "pod, POST to Running, one after another, p50", "717 ms", "< 40 ms", milliseconds),
        Row("pod_many", "node.py", "50 pods at once, all Running", "14.4 s", "< 1.5 s", seconds),
        Row("config_map_1", "api.py", "create ConfigMap (0.5 KiB), 1 in flight", "227/s", "> 2,500/s", rate),
        Row("config_map_64", "api.py", "create ConfigMap, 64 in flight", "739/s", "> 20,000/s", rate),
        Row("pod_64", "api.py", "create Pod, 64 in flight", "415/s", "> 10,000/s", rate),
        Row("get_pod", "api.py", "get Pod, 64 in flight", "2,254/s", "> 75,000/s", rate),
        Row("list_pods", "api.py", "list 10,000 pods (20 MB), 4 in flight", "3.0/s", "> 60/s", rate),
        Row("list_memory", "api.py", "memory of the control plane then (RSS)", "1,200 MB (API server)", "< 150 MB", megabytes),
        Row("sched_1000", "sched.py", "1,000 nodes, 3,000 pods created and bound", "232 pods/s", "> 3,000 pods/s", pod_rate),
        Row("sched_5000", "sched.py", "5,000 nodes, 5,000 pods created and bound", "138 pods/s", "> 3,000 pods/s", pod_rate),
        Row("kubectl", "kubectl.py", "kubectl get pods, the whole command", "73 ms", "< 5 ms", milliseconds),
        Row("size", None, "size of the program, stripped", "430 MB in 5 programs", "< 6 MB", megabytes),
        Row("size_pod", None, "and of c8s-pod, which runs once per pod", "", "", megabytes),
        Row("size_kubectl", None, "and of kubectl", "", "", megabytes),
        Row("monitor", "node.py", "process that stays with each pod (RSS)", "11 MB", "< 0.5 MB", megabytes),
        Row("oci", "containers.py", "OCI runtime, run to exit of /bin/true", "runc: 2 of crun", "< 0.7 of crun", of_crun),
    ]


def commands(rounds):
    """The programs, and how they are called."""
    n = str(rounds)
    return [("node.py", ["--rounds", n, "--idle-pods", "0"]), ("api.py", ["--rounds", n]), ("sched.py", ["--rounds", n]),
            ("kubectl.py", []), ("containers.py", ["--rounds", str(20 * rounds)])]


def run_program(name, args, log):
    """Why it failed; None: it has not. Whoever takes too long is asked to clean up."""
    with subprocess.Popen([sys.executable, os.path.join(HERE, name), *args], stdout=sys.stderr, stderr=log) as p:
        try:
            p.wait(PROGRAM_S)
        except subprocess.TimeoutExpired:
            p.send_signal(signal.SIGINT)
            p.wait(CLEAN_UP_S)
        except KeyboardInterrupt:  # which it has heard, too
            p.wait(CLEAN_UP_S)
            raise
    if p.returncode == 0:
        return None
    log.seek(0)
    said = log.read().strip().splitlines()
    return f"{name}: {said[-1] if said else f'ended with {p.returncode}'}"


def measure(rows, rounds, folder):
    """Runs the programs that these rows come from, and gives rows the values that they told."""
    os.environ["C8S_FIGURES"] = told = os.path.join(folder, "told")
    open(told, "w").close()
    sizes(folder)
    for name, args in commands(rounds):
        if any(row.program == name for row in rows):
            print(f"---- {name} {' '.join(args)}", file=sys.stderr, flush=True)
            with tempfile.TemporaryFile("w+", dir=folder) as log:
                if why := run_program(name, args, log):
                    print(why, file=sys.stderr)
                    for row in rows:
                        row.why = f"not measured: {why}" if row.program == name else row.why
    with open(told) as f:
        for line in map(json.loads, f):
            for row in rows:
                if row.key == line["key"]:
                    row.take(line["who"], line["value"])


def sizes(folder):
    def stripped(path):
        copy = os.path.join(folder, "stripped")
        subprocess.run(["strip", "-o", copy, path], check=True)
        return os.path.getsize(copy) / 1e6
    for key, name in (("size", "c8s"), ("size_pod", "c8s-pod"), ("size_kubectl", "kubectl")):
        path = os.path.join(os.path.dirname(peers.C8S), name)
        if os.path.exists(path):
            figure(key, stripped(path))
    for key, who, *names in (("size", "etcd", "etcd"), ("size", "containerd and its shim", "containerd", "containerd-shim-runc-v2"),
                             ("size", "runc", "runc"), ("size_kubectl", "Debian's", "kubectl")):
        paths = [peers.find(name, peers.PEERS.get(name, "containerd")) for name in names]
        if all(paths):
            figure(key, sum(map(os.path.getsize, paths)) / 1e6, who)


# ---- where ----


def sync_ms(folder):
    """How long the disk takes to have a block for good."""
    times = []
    with open(os.path.join(folder, "sync"), "wb") as f:
        for _ in range(200):
            f.write(b"x" * 4096)
            f.flush()
            begin = time.perf_counter()
            os.fdatasync(f.fileno())
            times.append((time.perf_counter() - begin) * 1e3)
    return median(times)


def busy_percent():
    """What all processors together have to do for others, while we do nothing."""
    def times():
        with open("/proc/stat") as f:
            fields = list(map(int, f.readline().split()[1:9]))
        return sum(fields) - fields[3] - fields[4], sum(fields)
    before = times()
    time.sleep(2)
    after = times()
    return 100 * (after[0] - before[0]) / (after[1] - before[1])


def machine(folder):
    with open("/proc/meminfo") as f:
        memory = int(re.search(r"MemTotal: +(\d+)", f.read())[1]) / (1 << 20)
    with open("/proc/cpuinfo") as f:
        model = re.search(r"model name\s*: (.*)", f.read())
    kind = subprocess.run(["findmnt", "-n", "-o", "FSTYPE", "-T", folder], capture_output=True, text=True).stdout.strip()
    text = f"{time.strftime('%Y-%m-%d', time.gmtime())}, {os.cpu_count()} cores{f' ({model[1].strip()})' if model else ''}, {memory:.0f} GiB of memory, " \
           f"Linux {os.uname().release}, data on {kind or 'an unknown file system'} (fdatasync {sync_ms(folder):.2f} ms)"
    if (busy := busy_percent()) > 5:
        text += f"; the machine had other things to do (for {busy:.0f} % of its time when this began): times are longer than they would be"
    return text


def as_markdown(where, rows):
    table = [HEAD, ["---"] * len(HEAD), *(row.cells() for row in rows)]
    return f"{where}\n\n" + "".join(f"| {' | '.join(cells)} |\n" for cells in table)


def as_text(where, rows):
    table = [HEAD, *(row.cells() for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table)]
    return f"{where}\n" + "".join("  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip() + "\n" for cells in table)


def put_into(path, text):
    with open(path) as f:
        before, rest = f.read().split(MARKS[0])
    with open(path, "w") as f:
        f.write(f"{before}{MARKS[0]}\n{text}{MARKS[1]}{rest.split(MARKS[1])[1]}")


def main():
    rows = all_rows()
    parser = argparse.ArgumentParser()
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--into", metavar="FILE")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("rows", nargs="*", metavar="ROW", help="all, or some of: " + ", ".join(row.key for row in rows))
    args = parser.parse_args()
    if unknown := set(args.rows) - {row.key for row in rows}:
        parser.error(f"there is no row {', '.join(unknown)}")
    if os.geteuid():
        sys.exit("figures: needs root, because pods do")
    rows = [row for row in rows if not args.rows or row.key in args.rows]
    folder = tempfile.mkdtemp(prefix="c8s-bench-")
    try:
        where = machine(folder)
        measure(rows, args.rounds, folder)
    finally:
        shutil.rmtree(folder)
    print(as_markdown(where, rows) if args.markdown else as_text(where, rows), end="")
    if args.into:
        put_into(args.into, as_markdown(where, rows))


if __name__ == "__main__":
    main()
