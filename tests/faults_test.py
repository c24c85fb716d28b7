#!/usr/bin/env python3
"""What happens when things fail: servers killed in the middle of work, etcd without a leader, full disks, damaged files. Many clients
write, read and watch all the while, and tests/history.py looks at what they were told."""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402
from cluster import C8S, Etcd, Folder, Server, wait_until  # noqa: E402
from history import History, Watch  # noqa: E402

NS = "/api/v1/namespaces/faults"
MAPS = NS + "/configmaps"
ASK_FOR = 4   # seconds that a request may take, by its timeout parameter
AT_MOST = 20  # seconds that it may take on a slow machine until somebody calls it hung


class Load:
    """Writers, readers and watchers of one server, until stop(). Every answer must be one that Kubernetes gives, in time."""

    def __init__(self, server, writers=6, keys=4, watchers=2):
        self.server, self.history, self.ending = server, History(), threading.Event()
        self.complaints, self.slowest, self.next_value = [], 0.0, 0
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.guarded, args=(self.write, i, keys)) for i in range(writers)]
        self.threads.append(threading.Thread(target=self.guarded, args=(self.list,)))
        since = int(server.request("GET", MAPS).json["metadata"]["resourceVersion"])
        self.watchers = []
        for i in range(watchers):
            watch = Watch(since, f"watcher {i}")
            self.history.watches.append(watch)
            self.watchers.append(threading.Thread(target=self.guarded, args=(self.watch, watch)))

    def guarded(self, run, *args):
        try:
            run(*args)
        except Exception as e:  # noqa: BLE001 - a client that ended early would make the test weaker without a word
            self.complaints.append(f"{run.__name__} ended with {e!r}")

    def start(self):
        for th in self.threads + self.watchers:
            th.start()
        return self

    def acknowledged(self):
        return self.history.count("ok")

    def more(self, n=10, seconds=60):
        """Waits until n more writes are acknowledged."""
        begun = self.acknowledged()
        wait_until(lambda: self.acknowledged() >= begun + n, seconds, f"{n} more acknowledged writes")

    def value(self):
        with self.lock:
            self.next_value += 1
            return str(self.next_value)

    def ask(self, client, method, path, body=None):
        """One request on the client's connection: an Answer, or None when there was none."""
        begun = time.monotonic()
        try:
            if client.get("connection") is None:
                client["connection"] = self.server.connect(AT_MOST)
            a = self.server.request(method, path, body, connection=client["connection"])
            self.answered(method, path, a)
            return a
        except (OSError, __import__("http").client.HTTPException):
            if client.get("connection"):
                client["connection"].close()
            client["connection"] = None
            if self.server.process.poll() is not None:
                time.sleep(0.02)
            return None
        finally:
            self.slowest = max(self.slowest, time.monotonic() - begun)

    def answered(self, method, path, a):
        if a.status >= 400:
            status = json.loads(a.body)
            if status.get("kind") != "Status" or not status.get("reason") or not status.get("message"):
                self.complaints.append(f"{method} {path}: {a}")
            if a.status < 500 and a.status not in (404, 409, 429):
                self.complaints.append(f"{method} {path}: {a}")

    def write(self, number, keys):
        """Creates, changes (with and without a condition), reads and removes objects, some of which others write too."""
        rng, client = random.Random(number), {}
        while not self.ending.is_set():
            key = f"k{rng.randrange(keys)}" if rng.random() < 0.5 else f"w{number}-{rng.randrange(keys)}"
            held = self.read(client, key)
            if held is None:
                continue
            value = self.value()
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": key}, "data": {"v": value}}
            if held is False:
                self.put(client, "create", "POST", MAPS, key, value, body, None)
            elif rng.random() < 0.15:
                self.put(client, "delete", "DELETE", f"{MAPS}/{key}", key, None, None, None)
            else:
                replaced = held if rng.random() < 0.7 else None
                if replaced:
                    body["metadata"]["resourceVersion"] = str(replaced)
                self.put(client, "update", "PUT", f"{MAPS}/{key}", key, value, body, replaced)

    def put(self, client, kind, method, path, key, value, body, replaced):
        with self.history.operation(kind, key, value, replaced) as op:
            a = self.ask(client, method, f"{path}?timeout={ASK_FOR}s", body)
            if a is None or a.status >= 500:
                return
            op.outcome = "ok" if a.status < 300 else "refused"
            if a.status < 300 and kind != "delete":
                op.revision = int(a.json["metadata"]["resourceVersion"])

    def read(self, client, key):
        """The revision of the object, False if there is none, None if that cannot be told."""
        with self.history.operation("read", key) as op:
            a = self.ask(client, "GET", f"{MAPS}/{key}?timeout={ASK_FOR}s")
            if a is None or a.status not in (200, 404):
                return None
            op.outcome = "ok"
            if a.status == 404:
                return False
            o = a.json
            op.value, op.revision = o["data"]["v"], int(o["metadata"]["resourceVersion"])
            return op.revision

    def list(self):
        client = {}
        while not self.ending.wait(0.05):
            self.list_once(client)

    def list_once(self, client):
        with self.history.operation("list", None) as op:
            a = self.ask(client, "GET", f"{MAPS}?timeout={ASK_FOR}s")
            if a is None or a.status != 200:
                return False
            o = a.json
            op.value = {i["metadata"]["name"]: (i["data"]["v"], int(i["metadata"]["resourceVersion"])) for i in o["items"]
                        if "v" in i.get("data", {})}
            op.revision, op.outcome = int(o["metadata"]["resourceVersion"]), "ok"
            return True

    def watch(self, watch):
        """Goes on where it was whenever its connection ends."""
        while not (self.ending.is_set() and watch.seen >= self.final):
            try:
                c = self.server.connect(AT_MOST)
                c.request("GET", f"{MAPS}?watch=1&allowWatchBookmarks=true&timeoutSeconds=10&resourceVersion={watch.seen}",
                          headers={"Authorization": "Bearer admin-token"})
                r = c.getresponse()
                while r.status == 200 and not (self.ending.is_set() and watch.seen >= self.final):
                    line = r.readline()
                    if not line.endswith(b"\n"):
                        break
                    if not self.event(watch, json.loads(line)):
                        break
                c.close()
            except (OSError, __import__("http").client.HTTPException):
                time.sleep(0.02)

    def event(self, watch, e):
        if e["type"] == "ERROR":
            if e["object"].get("reason") not in ("Timeout", "ServiceUnavailable", "InternalError"):
                self.complaints.append(f"{watch.name}: {e}")
            return False
        meta = e["object"]["metadata"]
        if e["type"] == "BOOKMARK":
            watch.bookmark(int(meta["resourceVersion"]))
        elif "v" in e["object"].get("data", {}):
            value = e["object"]["data"]["v"] if e["type"] != "DELETED" else None
            watch.event(e["type"], meta["name"], int(meta["resourceVersion"]), value)
        return True

    def stop(self):
        """Ends the load with a last look at everything; what was wrong."""
        self.final = 1 << 62
        self.ending.set()
        for th in self.threads:
            th.join(AT_MOST + 10)
        client = {}
        wait_until(lambda: self.list_once(client), 30, "a last list")
        self.final = int(self.server.request("POST", MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"end-{time.time_ns()}"},
                                                          "data": {"v": "end"}}).json["metadata"]["resourceVersion"])
        self.record_end()
        for th in self.watchers:
            th.join(AT_MOST + 10)
        if any(th.is_alive() for th in self.threads + self.watchers):
            self.complaints.append("a client hangs")
        return self.complaints[:20] + self.history.problems()[:20]

    def record_end(self):
        """The write that ends the watches is not part of the history."""
        for watch in self.history.watches:
            watch.until = self.final
