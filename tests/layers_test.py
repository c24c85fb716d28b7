#!/usr/bin/env python3
"""Arrows between folders point downward only: a file may include headers of its own folder and of folders below it."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# From top to bottom. Folders in one row do not know each other.
HOUSE = [
    ["cmd", "bench", "fuzz", "simulation", "tests"],
    ["kubectl", "trace", "ui"],
    ["controllers", "scheduler", "hollow", "kubelet", "proxy", "dns", "ingress", "cloud"],
    ["client"],
    ["apiserver"],
    ["store"],
    ["runtime"],
    ["oci", "cni"],
    ["machinery"],
    ["codec"],
    ["net"],
    ["base"],
    ["api"],
]
FLOOR = {folder: level for level, row in enumerate(HOUSE) for folder in row}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"/]+)/[^"]+"', re.M)


def wrong_arrows(folder, text):
    """The folders that a file of `folder` includes and may not."""
    return [to for to in INCLUDE.findall(text)
            if to != folder and (to not in FLOOR or FLOOR[to] <= FLOOR[folder])]


def folders_with_code():
    for folder in sorted(os.listdir(ROOT)):
        path = os.path.join(ROOT, folder)
        if os.path.isdir(path) and not folder.startswith((".", "build")):
            if any(f.endswith((".c", ".h")) for f in os.listdir(path)):
                yield folder


def test_rule(t):
    t.check("a file may use its own folder and those below",
            not wrong_arrows("codec", '#include "codec/val.h"\n#include "base/str.h"\n#include <uv.h>\n'))
    t.check("an upward arrow is found", wrong_arrows("base", '#include "codec/val.h"\n') == ["codec"])
    t.check("a sideways arrow is found", wrong_arrows("dns", '#include "proxy/proxy.h"\n') == ["proxy"])
    t.check("an unknown folder is found", wrong_arrows("codec", '#include "misc/x.h"\n') == ["misc"])


def test_tree(t):
    for folder in folders_with_code():
        if folder not in FLOOR:
            t.check(f"{folder}/ has a place in the house", False, "add it to HOUSE in tests/layers_test.py")
            continue
        bad = []
        for path, _, names in sorted(os.walk(os.path.join(ROOT, folder))):
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    with open(os.path.join(path, name)) as f:
                        bad += [f"{path}/{name} includes {to}/" for to in wrong_arrows(folder, f.read())]
        t.check(f"arrows of {folder}/ point downward", not bad, "\n".join(bad))


if __name__ == "__main__":
    tap.run([test_rule, test_tree])
