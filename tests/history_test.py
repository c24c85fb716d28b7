#!/usr/bin/env python3
"""The checker of histories can fail: each sort of wrong history is found, and right ones are not."""
import os
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402
from history import History, Operation, Watch  # noqa: E402


def op(kind, key, value, revision, start, end, outcome="ok", replaced=None):
    return Operation(kind, key, value, revision, start, end, outcome, replaced)


def watch(since, *events, name="w"):
    w = Watch(since, name)
    for e in events:
        if e[0] == "BOOKMARK":
            w.bookmark(e[1])
        else:
            w.event(*e)
    return w


C1 = op("create", "a", 1, 10, 0, 1)
U2 = op("update", "a", 2, 20, 2, 3)
LOST = op("update", "a", 9, None, 4, 5, "unknown")
REFUSED = op("update", "a", 7, None, 4, 5, "refused")
DELETE = op("delete", "a", None, None, 6, 7)
ADDED, MODIFIED = ("ADDED", "a", 10, 1), ("MODIFIED", "a", 20, 2)

RIGHT = {
    "reads of the newest value": [C1, U2, op("read", "a", 2, 20, 4, 5)],
    "a read during a write sees either": [C1, U2, op("read", "a", 1, 10, 2.5, 2.6), op("read", "a", 2, 20, 2.7, 2.8)],
    "an unknown write may have happened": [C1, U2, LOST, op("read", "a", 9, 30, 6, 7)],
    "or not": [C1, U2, LOST, op("read", "a", 2, 20, 6, 7)],
    "or happen later": [C1, U2, LOST, op("read", "a", 2, 20, 6, 7), op("read", "a", 9, 30, 8, 9)],
    "nothing after a delete": [C1, U2, DELETE, op("read", "a", None, None, 8, 9)],
    "nothing before anything": [op("read", "b", None, None, 0, 1), C1],
    "a value during its deletion": [C1, U2, DELETE, op("read", "a", 2, 20, 6.5, 9)],
    "nothing after an unknown delete": [C1, op("delete", "a", None, None, 2, 3, "unknown"), op("read", "a", None, None, 4, 5)],
    "a list": [C1, U2, op("list", None, {"a": (2, 20)}, 25, 4, 5)],
    "a conditional update": [C1, op("update", "a", 2, 20, 2, 3, replaced=10)],
    "writes at the same time in any order": [op("create", "a", 1, 11, 0, 2), op("create", "b", 2, 10, 1, 3)],
}

WRONG = {
    "two writes with one revision": ([C1, op("create", "b", 1, 10, 0, 1)], "two writes have the revision"),
    "a later write with an earlier revision": ([op("create", "a", 1, 10, 0, 1), op("create", "b", 2, 9, 2, 3)], "went back"),
    "a later write with the same revision": ([op("create", "a", 1, 10, 0, 1), op("create", "b", 2, 10, 2, 3)], "went back"),
    "an old value": ([C1, U2, op("read", "a", 1, 10, 4, 5)], "an old value"),
    "a lost write": ([C1, op("read", "a", None, None, 4, 5)], "is not there"),
    "a write lost after a delete": ([C1, U2, DELETE, op("create", "a", 3, 40, 8, 9), op("read", "a", None, None, 10, 11)], "is not there"),
    "a deleted value": ([C1, U2, DELETE, op("read", "a", 2, 20, 8, 9)], "an old value"),
    "a value from nowhere": ([C1, op("read", "a", 5, 15, 4, 5)], "nobody wrote"),
    "a value of the future": ([op("read", "a", 1, 10, 0, 1), op("create", "a", 1, 10, 2, 3)], "before it was written"),
    "a refused write with an effect": ([C1, REFUSED, op("read", "a", 7, 30, 6, 7)], "was refused"),
    "a write with two revisions": ([C1, op("read", "a", 1, 11, 4, 5)], "acknowledged with another"),
    "an unknown write with two revisions": ([C1, LOST, op("read", "a", 9, 30, 6, 7), op("read", "a", 9, 31, 8, 9)], "others saw"),
    "an unknown write that vanishes": ([C1, U2, LOST, op("read", "a", 9, 30, 6, 7), op("read", "a", 2, 20, 8, 9)], "went back"),
    "a list that is too old": ([C1, U2, op("list", None, {"a": (1, 10)}, 15, 4, 5)], "went back"),
    "a list without an object": ([C1, op("list", None, {}, 15, 4, 5)], "is not there"),
    "a list with something newer than itself": ([C1, op("list", None, {"a": (1, 10)}, 5, 0.5, 2)], "later revision"),
    "an update over another": ([C1, U2, op("update", "a", 3, 30, 4, 5, replaced=10)], "replaced a later write"),
}

RIGHT_WATCHES = {
    "everything": [watch(5, ADDED, MODIFIED)],
    "a part": [watch(10, MODIFIED)],
    "not yet everything": [watch(5, ADDED)],
    "bookmarks": [watch(5, ADDED, ("BOOKMARK", 15), MODIFIED, ("BOOKMARK", 20))],
    "two of different length": [watch(5, ADDED, MODIFIED, name="x"), watch(5, ADDED, name="y")],
}

WRONG_WATCHES = {
    "a gap": ([watch(5, MODIFIED)], "revision 10 is missing"),
    "a gap before a bookmark": ([watch(5, ADDED, ("BOOKMARK", 20))], "revision 20 is missing"),
    "an event twice": ([watch(5, ADDED, ADDED)], "after revision 10"),
    "the wrong order": ([watch(5, ("MODIFIED", "a", 20, 2), ADDED)], "after revision 20"),
    "an event after a bookmark of it": ([watch(5, ADDED, ("BOOKMARK", 20), MODIFIED)], "after a bookmark"),
    "a bookmark that goes back": ([watch(5, ADDED, MODIFIED, ("BOOKMARK", 11))], "a bookmark of revision 11"),
    "the wrong type": ([watch(5, ADDED, ("DELETED", "a", 20, None))], "is not what was done"),
    "added twice": ([watch(5, ADDED, ("ADDED", "a", 20, 2))], "while the object is there"),
    "changed after its end": ([watch(5, ADDED, ("DELETED", "a", 15, None), MODIFIED)], "not there"),
    "an event from nowhere": ([watch(5, ADDED, ("MODIFIED", "a", 15, 77), MODIFIED)], "nobody wrote"),
    "two that disagree": ([watch(5, ADDED, ("DELETED", "z", 12, None), MODIFIED, name="x"), watch(5, ADDED, MODIFIED, name="y")], "x and y|y and x"),
}


def history(operations, watches=()):
    h = History()
    h.operations, h.watches = list(operations), list(watches)
    return h.problems()


def test_operations(t):
    for name, operations in RIGHT.items():
        found = history(operations)
        t.check(f"right: {name}", not found, "\n".join(found))
    for name, (operations, says) in WRONG.items():
        found = history(operations)
        t.check(f"wrong: {name}", any(says in f for f in found), found or "nothing was found")


def test_watches(t):
    for name, watches in RIGHT_WATCHES.items():
        found = history([C1, U2], watches)
        t.check(f"right watches: {name}", not found, "\n".join(found))
    for name, (watches, says) in WRONG_WATCHES.items():
        found = history([C1, U2], watches)
        t.check(f"wrong watches: {name}", any(s in f for f in found for s in says.split("|")), found or "nothing was found")


def test_recording(t):
    """Operations as clients record them, from several threads; here a store that loses every tenth write."""
    h, store, lock = History(), {}, threading.Lock()
    revision = [0]

    def client(k):
        for i in range(50):
            with h.operation("update", k, (k, i)) as o, lock:
                revision[0] += 1
                if i % 10 != 9:
                    store[k] = ((k, i), revision[0])
                o.revision, o.outcome = revision[0], "ok"
            with h.operation("read", k) as o, lock:
                (o.value, o.revision), o.outcome = store[k], "ok"
    threads = [threading.Thread(target=client, args=(k,)) for k in "abcd"]
    for th in threads:
        th.start()
    for th in threads:
        th.join()
    found = h.problems()
    t.check("every lost write is found", sum("an old value" in f for f in found) == 20 == len(found), "\n".join(found))
    try:
        with h.operation("update", "a", "x"):
            raise ConnectionError
    except ConnectionError:
        t.check("what ends by an exception is unknown", h.count("unknown") == 1)


if __name__ == "__main__":
    tap.run([test_operations, test_watches, test_recording])
