#!/usr/bin/env python3
"""Objects that the real Kubernetes wrote, in both of its forms. Skipped where the files are not there."""
import glob
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402

C8S = os.environ["C8S"]
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GOLDEN = os.environ.get("C8S_GOLDEN", os.path.join(ROOT, "..", "shared", "k8s-facts", "golden"))


def convert(data, out, *args):
    r = subprocess.run([C8S, "convert", "-o", out, *args], input=data, capture_output=True, timeout=60)
    if r.returncode or r.stderr:
        raise RuntimeError(r.stderr.decode(errors="replace"))
    return r.stdout


def compact(text):
    """JSON without its indentation, and with everything else as it was: member order, escapes, number forms."""
    return json.dumps(json.loads(text, parse_int=str, parse_float=str), separators=(",", ":"))


def check_kind(path):
    """What is wrong with the conversions of one kind, or None."""
    with open(path, "rb") as f:
        golden_json = f.read()
    with open(path[:-len("json")] + "pb", "rb") as f:
        golden_pb = f.read()
    # The one that does not tell its kind.
    args = ["--type", "meta/v1.WatchEvent"] if "WatchEvent" in path else []
    try:
        if convert(golden_json, "protobuf", *args) != golden_pb:
            return "JSON to protobuf differs"
        if compact(convert(golden_pb, "json", *args)) != compact(golden_json):
            return "protobuf to JSON differs"
        if convert(convert(golden_pb, "yaml", *args), "protobuf", *args) != golden_pb:
            return "YAML and back differs"
    except RuntimeError as e:
        return str(e)
    return None


def test_golden(t):
    paths = sorted(glob.glob(os.path.join(GOLDEN, "*.json")))
    if not paths:
        t.skip("golden objects", "no golden files beside the project")
        return
    with ThreadPoolExecutor(2) as pool:
        for path, wrong in zip(paths, pool.map(check_kind, paths)):
            t.check(os.path.basename(path)[:-len(".json")], wrong is None, wrong)


if __name__ == "__main__":
    tap.run([test_golden])
