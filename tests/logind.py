"""A stand-in for systemd's logind, and for the bus that it is on: a kubelet connects, asks for an inhibitor, is told that the machine goes
down, and gives the inhibitor back. Programs find it by DBUS_SYSTEM_BUS_ADDRESS."""
import os
import select
import socket
import struct
import threading

PATH, MANAGER = "/org/freedesktop/login1", "org.freedesktop.login1.Manager"
CALL, RETURN, SIGNAL = 1, 2, 4


def pad(data, to):
    return data + b"\0" * (-len(data) % to)


def text(s):
    return struct.pack("<I", len(s)) + s.encode() + b"\0"


def field(code, kind, value):
    data = {"s": text, "o": text, "g": lambda v: bytes([len(v)]) + v.encode() + b"\0", "u": lambda v: struct.pack("<I", v)}[kind](value)
    return bytes([code, 1]) + kind.encode() + b"\0" + data


def message(kind, serial, fields, body=b""):
    head = b""
    for f in fields:
        head = pad(head, 8) + f
    return pad(struct.pack("<cBBBIII", b"l", kind, 0, 1, len(body), serial, len(head)) + head, 8) + body


class Logind:
    def __init__(self, folder, delay_s=3600):
        path = os.path.join(folder, "bus")
        self.address, self.delay_s = "unix:path=" + path, delay_s
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        self.client, self.serial, self.held, self.calls = None, 1, None, []
        self.change = threading.Condition()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            try:
                self.serve(client)
            except (OSError, EOFError):
                pass  # the kubelet has ended
            client.close()

    def serve(self, client):
        stream = client.makefile("rb")
        stream.read(1)
        while (line := stream.readline()) != b"BEGIN\r\n":
            if not line:
                raise EOFError
            client.sendall(b"AGREE_UNIX_FD\r\n" if line.startswith(b"NEGOTIATE") else b"OK 0123456789abcdef0123456789abcdef\r\n")
        self.client = client
        while True:
            head = self.read(stream, 16)
            _, _, _, _, body, serial, fields = struct.unpack("<cBBBIII", head)
            fields = self.read(stream, -(-fields // 8) * 8)
            self.read(stream, body)
            self.answer(serial, self.member(fields))

    @staticmethod
    def read(stream, n):
        data = stream.read(n)
        if len(data) < n:
            raise EOFError
        return data

    @staticmethod
    def member(fields):
        """What is called: a text behind the code 3 and its type."""
        at = fields.index(b"\x03\x01s\0") + 4
        size = struct.unpack_from("<I", fields, at)[0]
        return fields[at + 4:at + 4 + size].decode()

    def answer(self, serial, member):
        head, body, fds = [field(5, "u", serial)], b"", []
        if member == "Hello":
            head, body = head + [field(8, "g", "s")], text(":1.1")
        elif member == "Get":
            head, body = head + [field(8, "g", "v")], pad(b"\x01t\0", 8) + struct.pack("<Q", self.delay_s * 1000000)
        elif member == "Inhibit":
            ours, theirs = os.pipe()
            head, body, fds = head + [field(8, "g", "h"), field(9, "u", 1)], struct.pack("<I", 0), [theirs]
        self.serial += 1
        socket.send_fds(self.client, [message(RETURN, self.serial, head, body)], fds)
        with self.change:
            if fds:
                os.close(theirs)
                self.held = ours
            self.calls.append(member)
            self.change.notify_all()

    def prepare_for_shutdown(self, down):
        self.serial += 1
        self.client.sendall(message(SIGNAL, self.serial, [field(1, "o", PATH), field(2, "s", MANAGER), field(3, "s", "PrepareForShutdown"),
                                                         field(8, "g", "b")], struct.pack("<I", down)))

    def wait_calls(self, member, n, seconds=20):
        """Until something has been called so often."""
        with self.change:
            return self.change.wait_for(lambda: self.calls.count(member) >= n, seconds)

    def wait_released(self, seconds=20):
        """Until nobody holds the inhibitor any more."""
        return bool(select.select([self.held], [], [], seconds)[0]) and os.read(self.held, 1) == b""
