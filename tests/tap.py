"""The few lines that a test program in Python needs to speak TAP, which Meson and tests/run count."""
import os
import signal
import sys
import time
import traceback


class Tap:
    def __init__(self):
        self.n = self.failed = 0

    def check(self, name, ok, detail=""):
        self.n += 1
        self.failed += not ok
        print(f"{'ok' if ok else 'not ok'} {self.n} - {name}")
        if not ok and detail:
            for line in str(detail).splitlines()[:40]:
                print("# " + line)
        sys.stdout.flush()

    def skip(self, name, why):
        self.n += 1
        print(f"ok {self.n} - {name} # SKIP {why}")

    def close(self):
        print(f"1..{self.n}")
        sys.exit(1 if self.failed else 0)


def wait_for(what, limit=60):
    """Calls what() until it is true, or the time is over; what it returned last."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        value = what()
        if value:
            return value
        time.sleep(0.005)
    return what()


def gone(pid):
    """Has the process ended? One that nobody has waited for yet has."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] in "ZX"
    except OSError:
        return True


def arguments(pid):
    """Those of a process, each with a NUL behind it; empty when it is gone."""
    try:
        with open(f"/proc/{pid}/cmdline", errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def pids_of(*texts):
    """Of the processes with all of these texts in their arguments, other than ours."""
    return [int(pid) for pid in filter(str.isdigit, os.listdir("/proc")) if int(pid) != os.getpid() and all(text in arguments(pid) for text in texts)]


def kill_all(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it has ended


def remove_cgroups(name):
    """Those with that in their names. Whether none is left; processes that were just killed may stay a moment."""
    left = False
    for folder, _, _ in os.walk("/sys/fs/cgroup", topdown=False):
        if name in folder:
            try:
                os.rmdir(folder)
            except OSError:
                left = True
    return not left


def run(tests):
    """Runs functions that take a Tap; an exception is a failure of that function."""
    tap = Tap()
    for test in tests:
        try:
            test(tap)
        except Exception:  # noqa: BLE001 - whatever it was, it belongs to this test
            tap.check(test.__name__, False, traceback.format_exc())
    tap.close()
