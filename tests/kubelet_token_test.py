#!/usr/bin/env python3
"""The token of a service account in a running pod is renewed before it ends: at four fifths of its life, and the shortest life is ten minutes.
So the clock of the kubelet and of the API server is moved, with Debian's libfaketime; with LONG=1 in the environment nothing is moved, and
the test waits for eleven minutes. Needs C8S, the program to test, with c8s-pod beside it, and root."""
import base64
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import nodes  # noqa: E402
import peers  # noqa: E402
import tap  # noqa: E402

LONG = os.environ.get("LONG")
LIFE, LEEWAY, JITTER, LOOK = 600, 60, 10, 60 if LONG else 1
LIBRARY = "libfaketimeMT.so.1"


class Clock:
    """What passes of the time of all programs that were started since. They read the file again at each look at the clock."""

    def __init__(self, folder):
        self.begin, self.file, self.moved = time.monotonic(), os.path.join(folder, "clock"), 0
        self.set(0)
        if not LONG:
            os.environ.update(LD_PRELOAD=library(), FAKETIME_TIMESTAMP_FILE=self.file, FAKETIME_NO_CACHE="1", FAKETIME_DONT_FAKE_MONOTONIC="1",
                              NO_FAKE_STAT="1")

    def set(self, seconds):
        with open(self.file + ".new", "w") as f:
            f.write(f"+{seconds}\n")
        os.rename(self.file + ".new", self.file)
        self.moved = seconds

    def until(self, at):
        """Lets the time pass until so many seconds after the beginning."""
        left = self.begin + at - time.monotonic()
        if LONG:
            time.sleep(max(0, left))
        else:
            self.set(max(self.moved, int(left) + 1))


def library():
    peers.find("faketime", peers.PEERS["faketime"])
    places = (os.path.join(root, "usr/lib", f"{os.uname().machine}-linux-gnu", "faketime", LIBRARY) for root in (peers.FOLDER, "/"))
    return next(filter(os.path.exists, places), None)


def missing():
    if LONG:
        return None
    if not library():
        return "libfaketime of Debian's package libfaketime cannot be had"
    text = subprocess.run(["ldd", nodes.C8S], capture_output=True, text=True).stdout
    return "libfaketime and sanitizers do not go together" if "libasan" in text else None


def claims(token):
    return json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))


def is_good(n, token):
    r = n.server.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": token, "audiences": ["somebody"]}})
    return r.json["status"].get("authenticated", False)


def test_rotation(t, n, clock):
    source = {"serviceAccountToken": {"path": "token", "audience": "somebody", "expirationSeconds": LIFE}}
    n.create(n.make("p", spec={"volumes": [{"name": "v", "projected": {"sources": [source]}}]}, volumeMounts=[{"name": "v", "mountPath": "/v"}]))
    n.wait_phase("p", "Running", 60)

    def read():
        return n.kubectl("exec", "p", "--", "cat", "/v/token").stdout

    old = read()
    clock.begin = time.monotonic() - (time.time() - claims(old)["iat"])
    t.check("the token has the life that was asked for", claims(old)["exp"] - claims(old)["iat"] == LIFE and is_good(n, old), claims(old))
    clock.until(LIFE * 8 // 10 - JITTER - 5)
    time.sleep(LOOK + 1 if not LONG else 0)
    t.check("it stays for four fifths of it", read() == old)
    clock.until(LIFE * 8 // 10 + 1)
    tap.wait_for(lambda: time.sleep(0.2) or read() != old, 20 + LOOK * 5 // 4)
    new = read()
    t.check("then the running pod has a new one", new != old and claims(new)["iat"] >= claims(old)["iat"] + LIFE * 8 // 10 - JITTER, (claims(old), claims(new)))
    t.check("of the same pod", claims(new)["kubernetes.io"] == claims(old)["kubernetes.io"], claims(new))
    t.check("both are good until the old one ends", (is_good(n, old), is_good(n, new)) == (True, True))
    clock.until(LIFE + LEEWAY + 5)
    t.check("then only the new one is", (is_good(n, old), is_good(n, new)) == (False, True))


if __name__ == "__main__":
    tests = tap.Tap()
    why = nodes.missing() or missing()
    if why:
        tests.skip("tokens", why)
        tests.close()
    os.umask(0o022)
    nodes.own_namespaces()
    node = nodes.Node(config={} if LONG else {"syncFrequency": "1s"})
    moved = Clock(node.folder)
    with node as running:
        case = nodes.Case(test_rotation)
        case.run(running, moved)
        for found in case.found:
            tests.check(*found)
        if tests.failed:
            print("# " + running.said()[-8000:].replace("\n", "\n# "))
    tests.close()
