"""Fibers in gdb: (gdb) source tools/gdb-fibers.py

    info fibers             all fibers of all loops: number, loop, state, name, what it waits for
    fiber LOOP/N bt         the backtrace of a fiber that does not run (LOOP/ may be left out when N is unique)
    fiber LOOP/N COMMAND    any other command, with the fiber's innermost frame selected

Works on a live process and on a core, and changes neither: an unwinder makes the fiber's saved frame look like the
caller of the thread's innermost one. The program needs debug information. base/fiber_switch_*.S say where a switch
saves what.
"""

import gdb
import gdb.unwinder

# Offset of each register from the saved stack pointer, and where the stack pointer is after the switch returns.
LAYOUT = {
    "i386:x86-64": ("rip", "rsp", 64, {"r15": 8, "r14": 16, "r13": 24, "r12": 32, "rbx": 40, "rbp": 48, "rip": 56}),
    "aarch64": ("pc", "sp", 176, {"x29": 0, "x30": 8, "pc": 8, **{"x%d" % n: 16 + 8 * (n - 19) for n in range(19, 29)}}),
}


def walk(head, type_name, member):
    """The items of a struct list."""
    pointer = gdb.lookup_type(type_name).pointer()
    offset = next(f.bitpos // 8 for f in pointer.target().fields() if f.name == member)
    at = head["next"]
    while at != head.address:
        item = (at.cast(gdb.lookup_type("char").pointer()) - offset).cast(pointer)
        yield item.dereference()
        at = item[member]["next"]


def fibers():
    for loop in walk(gdb.parse_and_eval("loop_all"), "struct loop", "all"):
        for fiber in walk(loop["fibers"], "struct fiber", "all"):
            yield loop["name"].string(), fiber


def state(fiber):
    return str(fiber["state"]).replace("FIBER_", "").lower()


def waits_for(fiber):
    if state(fiber) != "waiting":
        return ""
    fd = int(fiber["what_fd"])
    return "for " + fiber["what"].string() + (" %d" % fd if fd >= 0 else "")


def find(name):
    loop_name, _, number = name.rpartition("/")
    found = [f for loop, f in fibers() if int(f["id"]) == int(number) and loop_name in ("", loop)]
    if len(found) != 1:
        raise gdb.GdbError("%s fiber %s" % ("more than one loop has" if found else "no", name))
    return found[0]


class FrameId:
    def __init__(self, sp, pc):
        self.sp, self.pc = sp, pc


class FiberUnwinder(gdb.unwinder.Unwinder):
    """While a fiber is chosen, claims the innermost frame of the thread and gives it that fiber as caller."""

    def __init__(self):
        super().__init__("c8s-fibers")
        self.fiber = None

    def choose(self, fiber):
        frame = gdb.newest_frame()
        self.pc_name, self.sp_name, self.size, self.saved = LAYOUT[frame.architecture().name()]
        self.pc, self.sp = int(frame.read_register(self.pc_name)), int(frame.read_register(self.sp_name))
        self.fiber = fiber
        gdb.invalidate_cached_frames()

    def forget(self):
        self.fiber = None
        gdb.invalidate_cached_frames()

    def __call__(self, pending):
        if self.fiber is None:
            return None
        pc, sp = pending.read_register(self.pc_name), pending.read_register(self.sp_name)
        if int(pc) != self.pc or int(sp) != self.sp:
            return None
        word = gdb.lookup_type("unsigned long").pointer()
        saved_sp = int(self.fiber["sp"])
        # gdb wants callers at higher addresses; the fiber's stack may well be below the thread's.
        info = pending.create_unwind_info(FrameId(gdb.Value(saved_sp), pc))
        for register, offset in self.saved.items():
            info.add_saved_register(register, gdb.Value(saved_sp + offset).cast(word).dereference())
        info.add_saved_register(self.sp_name, gdb.Value(saved_sp + self.size))
        return info


unwinder = FiberUnwinder()
gdb.unwinder.register_unwinder(None, unwinder, replace=True)


class InfoFibers(gdb.Command):
    """List all fibers of all loops."""

    def __init__(self):
        super().__init__("info fibers", gdb.COMMAND_STATUS)

    def invoke(self, args, from_tty):
        for loop, fiber in fibers():
            row = "%s/%d" % (loop, fiber["id"]), state(fiber), fiber["name"].string(), waits_for(fiber)
            print(("%-16s %-8s %-32s %s" % row).rstrip())


class Fiber(gdb.Command):
    """fiber LOOP/N COMMAND: run a command as if the thread were in that fiber."""

    def __init__(self):
        super().__init__("fiber", gdb.COMMAND_STACK)

    def invoke(self, args, from_tty):
        name, _, command = args.partition(" ")
        fiber = find(name)
        if state(fiber) == "running":
            raise gdb.GdbError("the fiber runs: its frames are those of the thread that runs its loop")
        if state(fiber) == "done":
            raise gdb.GdbError("the fiber has ended")
        unwinder.choose(fiber)
        try:
            gdb.newest_frame().older().select()
            text = gdb.execute(command or "bt", to_string=True)
        finally:
            unwinder.forget()
            gdb.newest_frame().select()
        # The innermost frame is the thread's own, not the fiber's.
        lines = [line for line in text.splitlines() if not line.startswith("#0 ")]
        print("\n".join(lines))


InfoFibers()
Fiber()
