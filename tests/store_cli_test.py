#!/usr/bin/env python3
"""c8s store as an administrator meets it: check, snapshot, restore. Needs C8S, the program to test."""
import fcntl
import os
import sqlite3
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402

C8S = os.environ["C8S"]


def store(*args):
    p = subprocess.run([C8S, "store", *args], capture_output=True, text=True, timeout=60)
    return p.returncode, p.stdout, p.stderr


def make(path, keys=20):
    """A store as store/sqlite_db.h describes the format: each key written twice, one removed."""
    db = sqlite3.connect(path)
    db.executescript("""
        PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL;
        CREATE TABLE row(revision INTEGER PRIMARY KEY, prev INTEGER NOT NULL, created INTEGER NOT NULL,
            version INTEGER NOT NULL, expires INTEGER NOT NULL, key BLOB NOT NULL, value BLOB);
        CREATE TABLE meta(name TEXT PRIMARY KEY, value) WITHOUT ROWID;
        PRAGMA application_id = 0x63387353; PRAGMA user_version = 1;""")
    rows = []
    for i in range(keys):
        rows.append((2 + i, 0, 2 + i, 1, 0, b"/k/%d" % i, b"one" * 1000))
    for i in range(keys):
        rows.append((2 + keys + i, 2 + i, 2 + i, 2, 0, b"/k/%d" % i, b"two" * 1000))
    rows.append((2 + 2 * keys, 2 + keys, 0, 0, 0, b"/k/0", None))
    db.executemany("INSERT INTO row VALUES(?,?,?,?,?,?,?)", rows)
    db.commit()
    db.close()


def field(out, name):
    return next(line.split()[-1] for line in out.splitlines() if line.startswith(name + " "))


def number(out, name):
    return int(next(line for line in out.splitlines() if line.startswith(name + " ")).split()[1].rstrip(","))


def test_check(t, d):
    make(d + "/s.db")
    code, out, err = store("check", d + "/s.db")
    t.check("a sound store", code == 0 and field(out, "condition") == "sound", out + err)
    t.check("its numbers", (number(out, "revision"), number(out, "keys"), number(out, "rows")) == (42, 19, 41), out)
    with open(d + "/s.db", "r+b") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        t.check("a server has it open", "yes, by a server" in store("check", d + "/s.db")[1])


def test_round_trip(t, d):
    make(d + "/s.db")
    code, out, err = store("snapshot", d + "/s.db", d + "/snap.db")
    t.check("snapshot", code == 0 and number(out, "revision") == 42, out + err)
    t.check("only its owner may read it", os.stat(d + "/snap.db").st_mode & 0o777 == 0o600)
    code, out, err = store("snapshot", d + "/s.db", d + "/snap.db")
    t.check("a snapshot is not overwritten", code == 1 and "--force" in err, err)
    t.check("unless asked for", store("snapshot", d + "/s.db", d + "/snap.db", "--force")[0] == 0)
    code, out, err = store("restore", d + "/snap.db", d + "/s.db")
    t.check("a store is not overwritten", code == 1 and ".old" in err, err)
    with open(d + "/s.db", "r+b") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        code, out, err = store("restore", d + "/snap.db", d + "/s.db", "--force")
        t.check("least of all one in use", code == 1 and "in use" in err, err)
    code, out, err = store("restore", d + "/snap.db", d + "/s.db", "--force", "--bump-revision", "1000")
    t.check("restore", code == 0 and number(out, "revision") == 1042 and number(out, "keys") == 19, out + err)
    code, out, err = store("restore", d + "/snap.db", d + "/new.db", "--bump-revision=0")
    t.check("restore as it was", code == 0 and number(out, "revision") == 42, out + err)
    left = sorted(f for f in os.listdir(d) if not f.startswith("s.db.old-"))  # its log is kept with it
    t.check("nothing else is left", left == ["new.db", "s.db", "s.db.old", "snap.db"], left)


def test_damage(t, d):
    make(d + "/s.db", keys=500)
    with open(d + "/s.db", "r+b") as f:
        f.seek(40 * 4096)
        f.write(b"\x05" + b"garbage" * 100)
    code, out, err = store("check", d + "/s.db")
    t.check("damage is found and named", code == 1 and "damaged" in err and "restore" in err, out + err)
    code, out, err = store("snapshot", d + "/s.db", d + "/snap.db")
    t.check("no snapshot of a damaged store", code == 1 and not os.path.exists(d + "/snap.db"), err)
    make(d + "/odd.db")
    db = sqlite3.connect(d + "/odd.db")
    db.execute("UPDATE row SET version = 7 WHERE revision = 30")
    db.commit()
    db.close()
    code, out, err = store("check", d + "/odd.db")
    t.check("rows that do not fit together", code == 1 and "revision 30" in err, out + err)


def test_usage(t, d):
    with open(d + "/text", "w") as f:
        f.write("not a database, though long enough to look at\n" * 50)
    sqlite3.connect(d + "/other.db").executescript("CREATE TABLE t(x)")
    for args, code, says in [
        ((), 2, "check, snapshot or restore"), (("defragment",), 2, "defragment"), (("check",), 2, "needs FILE"),
        (("snapshot", "a"), 2, "needs FILE SNAPSHOT"), (("check", "a", "b", "c"), 2, "unexpected"),
        (("restore", "a", "b", "--bump-revision", "-3"), 2, "-3"), (("check", d + "/nowhere"), 1, "nowhere"),
        (("check", d + "/text"), 1, "not a store of c8s"), (("check", d + "/other.db"), 1, "not a store of c8s"),
        (("snapshot", d + "/nowhere", d + "/x"), 1, "nowhere"), (("restore", d + "/text", d + "/x"), 1, "not a store"),
    ]:
        got, out, err = store(*args)
        t.check("store " + " ".join(args[:1]) + ": " + says, got == code and says in err and not out, f"{got} {out}{err}")
    t.check("manual", "restore SNAPSHOT FILE" in store("--help")[1])


def in_folder(test):
    def run(t):
        with tempfile.TemporaryDirectory() as d:
            test(t, d)
    run.__name__ = test.__name__
    return run


tap.run([in_folder(f) for f in (test_check, test_round_trip, test_damage, test_usage)])
