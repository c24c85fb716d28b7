#!/usr/bin/env python3
"""What happens when things fail: servers killed in the middle of work, etcd without a leader, full disks, damaged files. Many clients
write, read and watch all the while, and tests/history.py looks at what they were told."""
import http.client
import json
import os
import random
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
        self.complaints, self.slowest, self.next_value, self.final = [], 0.0, 0, 1 << 62
        self.lock = threading.Lock()
        self.threads = [threading.Thread(daemon=True, target=self.guarded, args=(self.write, i, keys)) for i in range(writers)]
        self.threads.append(threading.Thread(daemon=True, target=self.guarded, args=(self.list,)))
        since = int(server.request("GET", MAPS).json["metadata"]["resourceVersion"])
        self.watchers = [threading.Thread(daemon=True, target=self.guarded, args=(self.watch, f"watcher {i}", since)) for i in range(watchers)]

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
        except (OSError, http.client.HTTPException):
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
                return None
            op.outcome = "ok" if a.status < 300 else "refused"
            if a.status < 300 and kind != "delete":
                op.revision = int(a.json["metadata"]["resourceVersion"])
            return op.revision

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
        """The revision of the list; None if there was none."""
        with self.history.operation("list", None) as op:
            a = self.ask(client, "GET", f"{MAPS}?timeout={ASK_FOR}s")
            if a is None or a.status != 200:
                return None
            o = a.json
            op.value = {i["metadata"]["name"]: (i["data"]["v"], int(i["metadata"]["resourceVersion"])) for i in o["items"]}
            op.revision, op.outcome = int(o["metadata"]["resourceVersion"]), "ok"
            return op.revision

    def watch(self, name, since):
        """Goes on where it was whenever its connection ends, or with a list when the server does not know that any more."""
        client, watch = {}, None
        while not (watch and self.ending.is_set() and watch.seen >= self.final):
            if watch is None:
                watch = Watch(since, name)
                self.history.watches.append(watch)
            try:
                c = self.server.connect(AT_MOST)
                c.request("GET", f"{MAPS}?watch=1&allowWatchBookmarks=true&timeoutSeconds=10&resourceVersion={watch.seen}",
                          headers={"Authorization": "Bearer admin-token"})
                expired = self.follow(watch, c.getresponse())
                c.close()
                if expired:
                    since, watch = wait_until(lambda: self.list_once(client), 60, "a list to watch from"), None
            except (OSError, http.client.HTTPException):
                time.sleep(0.02)

    def follow(self, watch, response):
        """Reads a watch to its end; True when it ended because it began too far back."""
        while response.status == 200 and not (self.ending.is_set() and watch.seen >= self.final):
            line = response.readline()
            if not line.endswith(b"\n"):
                return False
            e = json.loads(line)
            meta = e["object"]["metadata"]
            if e["type"] == "ERROR":
                if e["object"].get("reason") not in ("Expired", "Timeout", "ServiceUnavailable", "InternalError"):
                    self.complaints.append(f"{watch.name}: {e}")
                return e["object"].get("reason") == "Expired"
            if e["type"] == "BOOKMARK":
                watch.bookmark(int(meta["resourceVersion"]))
                continue
            value = e["object"]["data"]["v"] if e["type"] != "DELETED" else None
            watch.event(e["type"], meta["name"], int(meta["resourceVersion"]), value)
        return False

    def stop(self):
        """Ends the load with a last look at everything; what was wrong."""
        self.ending.set()
        for th in self.threads:
            th.join(AT_MOST + 10)
        client, key, value = {}, "end", self.value()
        wait_until(lambda: self.list_once(client), 30, "a last list")
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": key}, "data": {"v": value}}
        self.final = self.put(client, "create", "POST", MAPS, key, value, body, None) or 0  # wakes the watchers
        for th in self.watchers:
            th.join(AT_MOST + 10)
        if not self.final or any(th.is_alive() for th in self.threads + self.watchers):
            self.complaints.append("a client hangs, or the last write failed")
        return self.complaints[:20] + self.history.problems()[:20]


def check_load(t, on, load, least):
    wrong = load.stop()
    unknown, events = load.history.count("unknown"), sum(len(w.events) for w in load.history.watches)
    t.check(f"{on}: nothing acknowledged is lost, nothing goes back, watches have no gaps", not wrong, "\n".join(wrong))
    t.check(f"{on}: and there was enough to see", load.acknowledged() >= least and events >= least,
            f"{load.acknowledged()} acknowledged, {unknown} unknown, {events} events")
    t.check(f"{on}: every answer came in time", load.slowest < AT_MOST, f"{load.slowest:.1f} s")


def make_namespace(s):
    s.request("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "faults"}})


def kill_server(s, load, rounds):
    """In the middle of its work, at moments that differ."""
    for i in range(rounds):
        load.more(3 + 7 * (i % 3))
        s.kill()
        s.start()
    load.more(20)


def test_sqlite_killed(t):
    with Folder() as folder, Server(os.path.join(folder, "server")) as s:
        make_namespace(s)
        load = Load(s).start()
        kill_server(s, load, 7)
        check_load(t, "sqlite, server killed", load, 80)


def test_etcd(t):
    with Folder() as folder:
        cluster = Etcd(os.path.join(folder, "etcd"), 3)
        if not cluster.program:
            t.skip("faults on etcd", "there is no etcd")
            return
        with cluster, Server(os.path.join(folder, "server"), "--etcd-servers", cluster.endpoints) as s:
            make_namespace(s)
            load = Load(s).start()
            kill_server(s, load, 3)
            check_load(t, "etcd, server killed", load, 40)
            s.request("DELETE", MAPS)
            load = Load(s).start()
            etcd_faults(cluster, load)
            check_load(t, "etcd, leader killed, paused and restarted", load, 80)
            t.check("the server itself ran all the while", s.process.poll() is None)


def etcd_faults(cluster, load):
    load.more(20)
    i = cluster.leader()
    cluster.processes[i].kill()
    cluster.processes[i].wait(30)
    load.more(20)  # without it
    cluster.start_member(i)
    wait_until(cluster.healthy, 60, "the member to come back")
    load.more(20)
    i = cluster.leader()
    cluster.processes[i].send_signal(signal.SIGSTOP)
    load.more(20, 90)  # it still holds its connections, but does not answer
    cluster.processes[i].send_signal(signal.SIGCONT)
    load.more(20)
    minority(cluster, load)


def minority(cluster, load):
    """One member of three cannot write; with the others back it goes on by itself."""
    i = cluster.leader()
    stopped = [k for k in range(3) if k != i]
    for k in stopped:
        cluster.processes[k].send_signal(signal.SIGSTOP)
    def unanswered():
        return load.history.count("unknown", ("create", "update", "delete", "read"))
    before = unanswered()
    wait_until(lambda: unanswered() >= before + 3, 60, "answers that nothing can be written")
    for k in stopped:
        cluster.processes[k].send_signal(signal.SIGCONT)
    load.more(20)


class Disk:
    """A small disk in memory."""

    def __init__(self, path, mib):
        self.path, self.mib = path, mib

    def __enter__(self):
        os.makedirs(self.path, exist_ok=True)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self.mib}m,mode=700", "tmpfs", self.path], capture_output=True)
        self.mounted = done.returncode == 0
        return self

    def fill(self):
        with open(os.path.join(self.path, "filler"), "wb", buffering=0) as f:
            for size in (1 << 16, 1 << 12):
                try:
                    while f.write(bytes(size)) == size:
                        pass
                except OSError:
                    pass

    def free(self):
        os.unlink(os.path.join(self.path, "filler"))

    def __exit__(self, *_):
        if self.mounted:
            subprocess.run(["umount", "-l", self.path], check=True)


def put_large(s, name, size=20000):
    return s.request("POST", MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"v": "x" * size}})


def test_full_disk(t):
    with Folder() as folder, Disk(os.path.join(folder, "server", "data"), 24) as disk:
        if not disk.mounted:
            t.skip("a full disk", "a tmpfs cannot be mounted here: not root?")
            return
        with Server(os.path.join(folder, "server")) as s:
            make_namespace(s)
            names = [f"before-{i}" for i in range(20) if put_large(s, f"before-{i}").status == 201]
            disk.fill()
            answers, refused = [], 0
            for i in range(400):  # the log may have room of its own for a while
                answers.append(put_large(s, f"full-{i}"))
                names += [f"full-{i}"] if answers[-1].status == 201 else []
                refused += answers[-1].status != 201
                if refused == 5:
                    break
            last = answers[-1]
            t.check("full disk: writes are refused with a reason", refused == 5 and all(
                a.status == 201 or (a.status in (500, 503, 504) and a.json["reason"]) for a in answers), last)
            t.check("full disk: the message says why", "full" in last.json["message"], last)
            listed = s.request("GET", MAPS)
            t.check("full disk: reads go on", listed.status == 200 and len(listed.json["items"]) == len(names) and
                    s.request("GET", f"{MAPS}/before-0").status == 200, listed.status)
            disk.free()
            t.check("space again: writes work without a restart", wait_until(lambda: put_large(s, f"after-{time.time_ns()}").status == 201, 30))
            t.check("space again: the server stops in good order", s.stop() == 0)
            s.start()
            there = {o["metadata"]["name"] for o in s.request("GET", MAPS).json["items"]}
            t.check("space again: everything acknowledged is there", set(names) <= there, set(names) - there)


def store_command(*args):
    return subprocess.run([C8S, "store", *args], capture_output=True, text=True, timeout=60)


def test_damage(t):
    """A file with garbage in it is found at once and never written to; a snapshot made before brings everything back."""
    with Folder() as folder, Server(os.path.join(folder, "server")) as s:
        make_namespace(s)
        for i in range(150):
            put_large(s, f"m{i}", 5000)
        db, snapshot = (os.path.join(folder, *p) for p in (("server", "data", "state.db"), ("snapshot.db",)))
        t.check("snapshot for later", store_command("snapshot", db, snapshot).returncode == 0)
        s.stop()
        with open(db, "r+b") as f:
            size = f.seek(0, 2)
            for at in range(size // 8192 * 4096, size, 16384):
                f.seek(at)
                f.write(b"\xa5" * 600)
        before = open(db, "rb").read()
        check = store_command("check", db)
        t.check("damage: store check says so and fails", check.returncode == 1 and "damaged" in check.stderr and "restore" in check.stderr, check)
        damaged_server(t, s)
        t.check("damage: the file is left as it is", open(db, "rb").read() == before)
        restored = store_command("restore", snapshot, db, "--force")
        t.check("damage: a snapshot brings it back", restored.returncode == 0, restored)
        s.start()
        t.check("damage: everything of the snapshot is there", len(s.request("GET", MAPS).json["items"]) == 150)
        t.check("damage: and can be written to", put_large(s, "more").status == 201)


def damaged_server(t, s):
    """Either it does not start and says why, or it serves reads and refuses writes."""
    try:
        s.start()
    except RuntimeError as e:
        t.check("damage: the server refuses to start and says what to do", "damaged" in str(e) and "snapshot" in str(e), e)
        return
    a = put_large(s, "no")
    t.check("damage: writes are refused", a.status in (500, 503) and a.json["reason"] and "damaged" in a.json["message"], a)
    t.check("damage: the log says what to do", "damaged" in s.said() and "snapshot" in s.said())
    s.stop()


def test_snapshot_online(t):
    """Snapshots while the server writes: each is a store as it was at one moment, and can be run."""
    with Folder() as folder, Server(os.path.join(folder, "server")) as s:
        make_namespace(s)
        db = os.path.join(folder, "server", "data", "state.db")
        load = Load(s).start()
        for i in range(3):
            load.more(10)
            snapshot = os.path.join(folder, f"snapshot-{i}.db")
            made, check = store_command("snapshot", db, snapshot), store_command("check", snapshot)
            t.check(f"snapshot {i} under load is sound", made.returncode == 0 and check.returncode == 0, (made, check))
        busy = store_command("restore", snapshot, db, "--force")
        t.check("no restore into a running server", busy.returncode == 1 and "in use" in busy.stderr, busy)
        check_load(t, "snapshots", load, 30)
        known = {(op.key, op.value, op.revision) for op in load.history.operations if op.outcome == "ok" and op.kind in ("create", "update")}
        other = os.path.join(folder, "other", "data")
        os.makedirs(other)
        t.check("restore beside it", store_command("restore", snapshot, os.path.join(other, "state.db"), "--bump-revision", "0").returncode == 0)
        with Server(os.path.join(folder, "other")) as o:
            items = {(i["metadata"]["name"], i["data"]["v"], int(i["metadata"]["resourceVersion"])) for i in o.request("GET", MAPS).json["items"]}
            t.check("a server runs on it, with what was written", items and items <= known, items - known)


if __name__ == "__main__":
    tap.run([test_sqlite_killed, test_etcd, test_full_disk, test_damage, test_snapshot_online])
