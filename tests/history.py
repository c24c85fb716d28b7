"""What many clients did to one store, and whether one store can have answered so.

The contract is Kubernetes': one number, the revision, orders all writes. That makes the search of other linearizability
checkers unnecessary: the answers themselves say in which order everything happened, and what is left to check is that this
order agrees with the clocks of the clients and with what they read. Values are to be distinct, so that a read tells which write
it saw. An operation whose answer never came may have happened or not, until somebody sees its value.

    h = History()
    with h.operation("update", key, value) as op:   # outcome "unknown" if the block is left by an exception
        op.revision = ...
        op.outcome = "ok"                           # or "refused": it must not have had an effect
    h.watches.append(watch)
    problems = h.problems()                         # empty: all is well
"""
import bisect
import collections
import threading
import time

WRITES = ("create", "update", "delete")
EVENTS = {"create": "ADDED", "update": "MODIFIED", "delete": "DELETED"}
Event = collections.namedtuple("Event", "type key revision value")


class Operation:
    """kind: create, update, delete, read or list. The value of a read is None where there is no object; that of a list is
    {key: (value, revision)}. replaced: the revision on which an update was conditional."""

    def __init__(self, kind, key, value=None, revision=None, start=0.0, end=0.0, outcome="ok", replaced=None):
        self.kind, self.key, self.value, self.revision = kind, key, value, revision
        self.start, self.end, self.outcome, self.replaced = start, end, outcome, replaced

    def __repr__(self):
        value = "..." if self.kind == "list" else self.value
        return f"{self.kind} {self.key} {value} at revision {self.revision} ({self.outcome}, {self.start:.3f} to {self.end:.3f})"


class Watch:
    """One watcher: everything after a revision, over any number of connections. seen: it has everything up to here."""

    def __init__(self, since, name="watch"):
        self.name, self.since, self.seen, self.events = name, since, since, []

    def event(self, kind, key, revision, value=None):
        self.events.append(Event(kind, key, revision, value))
        self.seen = max(self.seen, revision)

    def bookmark(self, revision):
        self.events.append(Event("BOOKMARK", None, revision, None))
        self.seen = max(self.seen, revision)


class History:
    def __init__(self):
        self.operations, self.watches, self.lock = [], [], threading.Lock()

    def operation(self, kind, key, value=None, replaced=None):
        history = self

        class Timed(Operation):
            def __enter__(self):
                self.start, self.outcome = time.monotonic(), "unknown"
                return self

            def __exit__(self, *_):
                self.end = time.monotonic()
                with history.lock:
                    history.operations.append(self)
        return Timed(kind, key, value, replaced=replaced)

    def count(self, outcome, kinds=WRITES):
        return sum(op.outcome == outcome and op.kind in kinds for op in self.operations)

    def problems(self):
        return Checker(self.operations, self.watches).run()


class Checker:
    def __init__(self, operations, watches):
        self.operations, self.watches, self.found = operations, watches, []
        self.writes = [op for op in operations if op.kind in WRITES]
        self.by_value = {(op.key, op.value): op for op in self.writes if op.kind != "delete"}
        self.by_key = collections.defaultdict(list)
        for op in self.writes:
            self.by_key[op.key].append(op)
        self.revisions = {}  # of writes whose answer did not come, but whose value was seen

    def wrong(self, text, *operations):
        self.found.append(text + "".join(f"\n    {op}" for op in operations))

    def run(self):
        self.sightings()
        self.distinct()
        self.order()
        self.conditions()
        for op in self.operations:
            if op.outcome == "ok" and op.kind == "read":
                self.read(op, op.key, op.value, op.revision)
            elif op.outcome == "ok" and op.kind == "list":
                for key in set(self.by_key) | set(op.value):
                    self.read(op, key, *op.value.get(key, (None, None)))
        for watch in self.watches:
            self.watch(watch)
        for i, one in enumerate(self.watches):
            for two in self.watches[:i]:
                self.agree(one, two)
        return self.found

    # ---- which writes happened, and when ----

    def revision(self, op):
        return op.revision if op.outcome == "ok" else self.revisions.get(id(op))

    def sighting(self, key, value, revision, by):
        op = self.by_value.get((key, value))
        if op is None:
            self.wrong(f"{by} saw {key}={value} at revision {revision}, which nobody wrote")
        elif op.outcome == "refused":
            self.wrong(f"{by} saw at revision {revision} a write that was refused", op)
        elif op.outcome == "ok" and op.revision != revision:
            self.wrong(f"{by} saw at revision {revision} a write that was acknowledged with another one", op)
        elif self.revisions.setdefault(id(op), revision) != revision:
            self.wrong(f"{by} saw at revision {revision} a write that others saw at {self.revisions[id(op)]}", op)

    def sightings(self):
        for op in self.operations:
            if op.outcome == "ok" and op.kind == "read" and op.value is not None:
                self.sighting(op.key, op.value, op.revision, op)
            elif op.outcome == "ok" and op.kind == "list":
                for key, (value, revision) in op.value.items():
                    self.sighting(key, value, revision, op)
                    if revision > op.revision:
                        self.wrong(f"a list of revision {op.revision} has {key} of the later revision {revision}", op)
        for watch in self.watches:
            for e in watch.events:
                if e.type in ("ADDED", "MODIFIED"):
                    self.sighting(e.key, e.value, e.revision, watch.name)

    def distinct(self):
        seen = {}
        for op in self.writes:
            r = self.revision(op)
            if r is not None and seen.setdefault(r, op) is not op:
                self.wrong(f"two writes have the revision {r}", seen[r], op)

    def order(self):
        """No revision goes back: neither that of the store, nor that of what is read of one key."""
        self.monotonic([(op, self.revision(op)) for op in self.writes if op.outcome == "ok" and op.revision is not None] +
                       [(op, op.revision) for op in self.operations if op.kind == "list" and op.outcome == "ok"], "the store")
        reads = collections.defaultdict(list)
        for op in self.operations:
            if op.kind == "read" and op.outcome == "ok" and op.value is not None:
                reads[op.key].append((op, op.revision))
        for key, of_key in reads.items():
            self.monotonic(of_key, key, equal=True)

    def monotonic(self, pairs, what, equal=False):
        """Of two operations one of which ended before the other began, the later one has the later revision."""
        by_end = sorted(pairs, key=lambda p: p[0].end)
        ends, newest = [p[0].end for p in by_end], []
        for op, revision in by_end:
            newest.append(max(newest[-1], (revision, len(newest))) if newest else (revision, 0))
        for op, revision in pairs:
            before = bisect.bisect_left(ends, op.start)
            if not before:
                continue
            earlier = by_end[newest[before - 1][1]]
            may_be_equal = equal or op.kind == "list"
            if revision < earlier[1] or (revision == earlier[1] and not may_be_equal):
                self.wrong(f"the revision of {what} went back from {earlier[1]} to {revision}", earlier[0], op)

    def conditions(self):
        """Between the revision that an update replaced and its own there is no other write of that key."""
        for op in self.writes:
            if op.outcome != "ok" or op.replaced is None:
                continue
            for other in self.by_key[op.key]:
                r = self.revision(other)
                if r is not None and op.replaced < r < op.revision:
                    self.wrong(f"an update of revision {op.replaced} replaced a later write", op, other)

    # ---- what was read ----

    def read(self, op, key, value, revision):
        """The value was the newest one of the key at some moment between the start and the end of the operation."""
        writes = self.by_key[key]
        if value is None:
            self.absence(op, key, writes)
            return
        own = self.by_value.get((key, value))
        if own is None:
            return
        if own.start > op.end:
            self.wrong(f"{key} was read before it was written", op, own)
        for other in writes:
            if other is own or other.outcome != "ok" or other.end >= op.start:
                continue
            r = self.revision(other)
            if (r is not None and r > revision) or (r is None and own.outcome == "ok" and other.start > own.end):
                self.wrong(f"an old value of {key} was read: revision {revision}", op, other)
                return

    def absence(self, op, key, writes):
        deletes = [d for d in writes if d.kind == "delete" and d.outcome != "refused" and d.start <= op.end]
        for w in writes:
            if w.kind == "delete" or w.outcome != "ok" or w.end >= op.start:
                continue
            if not any(d.end >= w.start or d.outcome == "unknown" for d in deletes):
                self.wrong(f"an acknowledged write of {key} is not there", op, w)
                return

    # ---- what was watched ----

    def watch(self, watch):
        last, last_bookmark, there = watch.since, watch.since, {}
        seen = {}
        for e in watch.events:
            if e.type == "BOOKMARK":
                if e.revision < max(last, last_bookmark):
                    self.wrong(f"{watch.name}: a bookmark of revision {e.revision} after revision {max(last, last_bookmark)}")
                last_bookmark = e.revision
                continue
            if e.revision <= last:
                self.wrong(f"{watch.name}: revision {e.revision} after revision {last}: {e}")
            elif e.revision <= last_bookmark:
                self.wrong(f"{watch.name}: revision {e.revision} after a bookmark of revision {last_bookmark}: {e}")
            was_there = there.get(e.key)
            if was_there is not None and was_there == (e.type == "ADDED"):
                self.wrong(f"{watch.name}: {e} while the object is {'there' if was_there else 'not there'}")
            there[e.key] = e.type != "DELETED"
            last = max(last, e.revision)
            seen[e.revision] = e
        for op in self.writes:
            r = self.revision(op)
            if r is None or not watch.since < r <= watch.seen:
                continue
            e = seen.get(r)
            if e is None:
                self.wrong(f"{watch.name}: revision {r} is missing between {watch.since} and {watch.seen}", op)
            elif e.key != op.key or e.type != EVENTS[op.kind]:
                self.wrong(f"{watch.name}: {e} is not what was done", op)

    def agree(self, one, two):
        low, high = max(one.since, two.since), min(one.seen, two.seen)
        a, b = ([e for e in w.events if e.type != "BOOKMARK" and low < e.revision <= high] for w in (one, two))
        if a != b:
            differs = next((x, y) for x, y in zip(a + [None], b + [None]) if x != y)
            self.wrong(f"{one.name} and {two.name} saw different things: {differs[0]} and {differs[1]}")
