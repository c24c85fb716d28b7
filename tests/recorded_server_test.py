#!/usr/bin/env python3
"""Conversations with a real API server, held again with ours: the answers are the same. Skipped where the recordings are not there."""
import collections
import glob
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402
from cluster import Folder, Server  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RECORDED = os.environ.get("C8S_RECORDED", os.path.join(ROOT, "..", "shared", "k8s-facts", "recorded"))
FLAGS = ["--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--service-cluster-ip-range=10.96.0.0/16", "--allow-privileged",
         "--service-account-issuer=https://kubernetes.default.svc", "--max-requests-inflight=4000", "--max-mutating-requests-inflight=2000"]
AREAS = ["discovery", "crud", "validation", "patch", "ssa", "list", "watch", "update", "misc"]
ENOUGH = 0.99


def replay(url, paths, report):
    """The results of all interactions, by area: [(id, same, differences)]."""
    done = subprocess.run([sys.executable, os.path.join(RECORDED, "replay.py"), "--tokens", os.path.join(RECORDED, "tokens.csv"), "--report", report,
                           "--timeout", "60", url, *paths], capture_output=True, text=True)
    areas = collections.defaultdict(list)
    with open(report) as f:
        for line in f:
            r = json.loads(line)
            areas[r["id"].split("-")[0]].append(r)
    return areas, done.stdout + done.stderr


def test_recorded(t):
    paths = sorted(p for area in AREAS for p in glob.glob(os.path.join(RECORDED, area + "-*.jsonl")))
    if not paths:
        t.skip("recorded conversations", "no recordings beside the project")
        return
    with Folder() as folder:
        s = Server(os.path.join(folder, "server"), *FLAGS)
        s.tokens = os.path.join(RECORDED, "tokens.csv")
        with s:
            areas, said = replay(f"https://127.0.0.1:{s.port}", paths, os.path.join(folder, "report"))
            t.check("the server went on to the end", s.process.poll() is None, s.said()[-3000:])
    for area in AREAS:
        results = areas.get(area, [])
        wrong = [r for r in results if not r["ok"]]
        same = len(results) - len(wrong)
        t.check(f"{area}: {same} of {len(results)} answers are the same", results and same >= ENOUGH * len(results),
                "\n".join(json.dumps(r)[:400] for r in wrong) if results else said[-2000:])
        for r in wrong:
            print(f"# differs: {r['id']}")


if __name__ == "__main__":
    tap.run([test_recorded])
