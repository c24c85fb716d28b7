#!/usr/bin/env python3
"""Conversations with a real API server, held again with ours: the answers are the same. Skipped where the recordings are not there."""
import collections
import concurrent.futures
import glob
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402
from cluster import Folder, Server  # noqa: E402
from recorded_test import NEEDS_CEL, RECORDED  # noqa: E402

FLAGS = ["--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--service-cluster-ip-range=10.96.0.0/16", "--allow-privileged",
         "--service-account-issuer=https://kubernetes.default.svc", "--max-requests-inflight=4000", "--max-mutating-requests-inflight=2000"]
AREAS = ["discovery", "crud", "validation", "patch", "ssa", "list", "watch", "update", "misc", "authn", "authz", "access", "admission"]
ENOUGH = 0.99
AT_ONCE = 4  # conversations wait more than they talk
AGE = re.compile(r"(\d+[smhdy])+$")

# Answers that depend on more than the API: where and from what the recorded server was built, and the words of its documentation.
OTHERS = {
    "discovery-legacy/003": "its address", "misc-builtins/005": "its port", "discovery-legacy/005": "its commit", "discovery-legacy/006": "its commit",
    **{f"discovery-openapi/00{i}": "hashes of descriptions" for i in range(1, 6)}, "authn-basic/030": "hashes of descriptions",
    "discovery-openapi/011": "the kind of its key",
    **{i: "expressions" for i in ("admission-map", "admission-vap-deny", "admission-webhook/010", "admission-webhook/011")},
    "crud-customresourcedefinitions": "the life of custom resources",
}


def is_compared(r):
    """Whether the answer can be the same; expressions are a language of their own."""
    if r["id"] in OTHERS or r["id"].split("/")[0] in OTHERS:
        return False
    return not (r["status"] == 422 and NEEDS_CEL.search(json.dumps(r["response"])))


def is_same(r):
    """Identical, but for the ages in tables: they depend on how fast the conversation went on."""
    return r["ok"] or all(all(isinstance(v, str) and AGE.match(v) for v in diff[1:3]) for diff in r.get("diffs") or [["", None, None]])


def records(path):
    with open(path) as f:
        return list(map(json.loads, f))


def copy(path, folder):
    """A conversation that does not wait for answers that are not compared."""
    copied = os.path.join(folder, os.path.basename(path))
    with open(copied, "w") as f:
        for r in records(path):
            f.write(json.dumps(r if is_compared(r) else {**r, "poll": 0}) + "\n")
    return copied


def replay(folder, paths):
    """The results of the interactions of these conversations with a server of their own, and what was said."""
    os.mkdir(folder)
    paths = [copy(p, folder) for p in paths]
    report = os.path.join(folder, "report")
    s = Server(os.path.join(folder, "server"), *FLAGS)
    s.tokens = os.path.join(RECORDED, "tokens.csv")
    with s:
        done = subprocess.run([sys.executable, os.path.join(RECORDED, "replay.py"), "--tokens", s.tokens, "--report", report,
                               "--timeout", "60", f"https://127.0.0.1:{s.port}", *paths], capture_output=True, text=True)
        ended = s.process.poll() is not None
    return records(report), ended, done.stdout + done.stderr + s.said()[-3000:]


def test_recorded(t):
    found = {p: records(p) for area in AREAS for p in glob.glob(os.path.join(RECORDED, area + "-*.jsonl"))}
    compared = {p: {r["id"] for r in found[p] if is_compared(r)} for p in found}
    waits = {p: sum(r.get("wait", 0) + bool(r.get("stream")) for r in found[p]) for p in found}
    paths = sorted((p for p in found if compared[p]), key=lambda p: (waits[p], p))
    if not paths:
        t.skip("recorded conversations", "no recordings beside the project")
        return
    with Folder() as folder, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        parts = list(pool.map(lambda i: replay(os.path.join(folder, str(i)), paths[i::AT_ONCE]), range(AT_ONCE)))
    said = "\n".join(part[2] for part in parts)
    t.check("the servers went on to the end", not any(part[1] for part in parts), said)
    areas = collections.defaultdict(list)
    for r in (r for part in parts for r in part[0]):
        if any(r["id"] in ids for ids in compared.values()):
            areas[r["id"].split("-")[0]].append(r)
    for area in AREAS:
        results = areas.get(area, [])
        wrong = [r for r in results if not is_same(r)]
        same = len(results) - len(wrong)
        # in a small area one answer that came late on a busy machine is more than one percent
        enough = results and (same >= ENOUGH * len(results) or len(wrong) == 1)
        t.check(f"{area}: {same} of {len(results)} answers are the same", enough,
                "\n".join(json.dumps(r)[:400] for r in wrong) if results else said[-4000:])
        for r in wrong if enough else ():
            print(f"# differs: {r['id']} {json.dumps(r.get('diffs') or r.get('err'))[:300]}")


if __name__ == "__main__":
    tap.run([test_recorded])
