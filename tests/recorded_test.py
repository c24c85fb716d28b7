#!/usr/bin/env python3
"""Objects that were sent to a real API server, and what it answered: convert --validate says the same, word for word.
Skipped where the recordings are not there."""
import glob
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402

C8S = os.environ["C8S"]
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RECORDED = os.environ.get("C8S_RECORDED", os.path.join(ROOT, "..", "shared", "k8s-facts", "recorded"))
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

# Answers that depend on more than the object.
NEEDS_CEL = re.compile(r"[eE]xpression: Invalid value|x-kubernetes-validations|\.default: Invalid value")
NEEDS_SERVER = {
    "validation-namespaces/009",       # an admission plugin said it
    "validation-pods/095",             # one set a service account that the object does not have
    "validation-resourceclaims/020",   # labels of the namespace
    "validation-services/045",         # address families of the cluster
}


def creations(path):
    """The recorded creations whose answer depends on the object alone: (id, body, expected message or None)."""
    with open(path) as f:
        for line in f:
            r = json.loads(line)
            body = r.get("body")
            if r["method"] != "POST" or r["status"] not in (201, 422) or not isinstance(body, dict) or "kind" not in body:
                continue
            message = r["response"]["message"].strip() if r["status"] == 422 else None
            if r["id"] in NEEDS_SERVER or (message and NEEDS_CEL.search(message)):
                continue
            parts = r["path"].split("?")[0].split("/")
            if "namespaces" in parts[:-1]:
                body.setdefault("metadata", {}).setdefault("namespace", parts[parts.index("namespaces") + 1])
            yield r["id"], body, message


def check(creation):
    """What differs, or None."""
    name, body, want = creation
    r = subprocess.run([C8S, "convert", "--validate", "-o", "json"], input=json.dumps(body).encode(), capture_output=True, timeout=60)
    got = r.stderr.decode().strip() or None
    if want is None and r.returncode == 0:
        return None
    if want is not None and r.returncode == 1 and UUID.sub("UUID", got or "") == UUID.sub("UUID", want):
        return None
    return f"{name}\nwant {want or 'accepted'}\ngot  {got}"


def test_validation(t):
    paths = sorted(glob.glob(os.path.join(RECORDED, "validation-*.jsonl")))
    if not paths:
        t.skip("recorded validation", "no recordings beside the project")
        return
    with ThreadPoolExecutor(2) as pool:
        for path in paths:
            wrong = [w for w in pool.map(check, creations(path)) if w]
            t.check(os.path.basename(path)[:-len(".jsonl")], not wrong, "\n".join(wrong))


if __name__ == "__main__":
    tap.run([test_validation])
