"""A stand-in for a kubelet: logs, exec, attach and port-forward over HTTPS and SPDY/3.1, as the API server asks for them. Commands
run on this machine; a log is a list of lines."""
import os
import queue
import socket
import ssl
import struct
import subprocess
import threading
import urllib.parse
import zlib

WORDS = """options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow
authorization cache-control connection content-base content-encoding content-language content-length content-location content-md5
content-range content-type date etag expect expires from host if-match if-modified-since if-none-match if-range if-unmodified-since
last-modified location max-forwards pragma proxy-authenticate proxy-authorization range referer retry-after server te trailer
transfer-encoding upgrade user-agent vary via warning www-authenticate method get status""".split() + [
    "200 OK", "version", "HTTP/1.1", "url", "public", "set-cookie", "keep-alive", "origin"]
DICTIONARY = b"".join(struct.pack(">I", len(w)) + w.encode() for w in WORDS) + (
    b"100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative Information"
    b"204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error"
    b"501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, "
    b"Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
    b"publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.")


def read_exactly(f, n):
    data = f.read(n)
    if len(data) < n:
        raise EOFError
    return data


class Stream:
    def __init__(self, session, number, headers):
        self.session, self.number, self.headers, self.data = session, number, headers, queue.Queue()

    def chunks(self):
        """What the other side sends, until it ends."""
        while (chunk := self.data.get()) is not None:
            yield chunk

    def write(self, data):
        for i in range(0, len(data), 1 << 16):
            part = data[i:i + (1 << 16)]
            self.session.send(struct.pack(">IBBH", self.number, 0, len(part) >> 16, len(part) & 0xffff) + part)

    def close(self):
        self.session.send(struct.pack(">II", self.number, 1 << 24))


class Session:
    """The accepting side of a SPDY/3.1 connection; on_stream is called for each new stream, in the thread that reads."""

    def __init__(self, f, sock, on_stream):
        self.file, self.socket, self.on_stream = f, sock, on_stream
        self.streams, self.lock = {}, threading.Lock()
        self.pack, self.unpack = zlib.compressobj(zdict=DICTIONARY), zlib.decompressobj(zdict=DICTIONARY)

    def send(self, data):
        with self.lock:
            self.socket.sendall(data)

    def headers(self, block):
        raw = self.unpack.decompress(block)
        n, at, out = struct.unpack(">I", raw[:4])[0], 4, {}
        for _ in range(n):
            pair = []
            for _ in range(2):
                size = struct.unpack(">I", raw[at:at + 4])[0]
                pair.append(raw[at + 4:at + 4 + size].decode())
                at += 4 + size
            out[pair[0].lower()] = pair[1]
        return out

    def reply(self, number):
        with self.lock:
            block = self.pack.compress(struct.pack(">I", 0)) + self.pack.flush(zlib.Z_SYNC_FLUSH)
            self.socket.sendall(struct.pack(">HHII", 0x8003, 2, 4 + len(block), number) + block)

    def run(self):
        try:
            while True:
                first, second = struct.unpack(">II", read_exactly(self.file, 8))
                flags, payload = second >> 24, read_exactly(self.file, second & 0xffffff)
                if first & 0x80000000:
                    self.control(first & 0xffff, flags, payload)
                elif first in self.streams:
                    if payload:
                        self.streams[first].data.put(payload)
                    if flags & 1:
                        self.streams[first].data.put(None)
        except (EOFError, OSError, ValueError):
            pass
        for s in self.streams.values():
            s.data.put(None)

    def control(self, kind, flags, payload):
        number = struct.unpack(">I", payload[:4])[0] & 0x7fffffff
        if kind == 1:
            s = self.streams[number] = Stream(self, number, self.headers(payload[10:]))
            self.reply(number)
            if flags & 1:
                s.data.put(None)
            self.on_stream(s)
        elif kind == 3 and number in self.streams:
            self.streams[number].data.put(None)
        elif kind == 6:
            self.send(struct.pack(">HHII", 0x8003, 6, 4, number))


class Kubelet:
    """Listens on a free port of this address until the `with` block ends. requests: what it was asked, as (method, target, headers)."""

    def __init__(self, cert, key, address="127.0.0.1"):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(cert, key)
        self.context.verify_mode = ssl.CERT_OPTIONAL
        self.context.load_verify_locations(os.path.join(os.path.dirname(cert), "ca.crt"))
        self.listener = socket.create_server((address, 0))
        self.port = self.listener.getsockname()[1]
        self.requests, self.sizes, self.open, self.connections = [], [], 0, set()
        self.log, self.more = [b"one\n", b"two\n", b"three\n"], threading.Event()

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.close()

    def drop_all(self):
        """As if the machine had lost its power: connections just break."""
        for sock in list(self.connections):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            socket.close(sock.detach())

    def accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, plain):
        self.open += 1
        try:
            with self.context.wrap_socket(plain, server_side=True) as sock, sock.makefile("rb") as f:
                self.connections.add(sock)
                try:
                    while self.request(sock, f):
                        pass
                finally:
                    self.connections.discard(sock)
        except (OSError, EOFError, ValueError):
            pass
        finally:
            self.open -= 1

    def request(self, sock, f):
        line = f.readline().decode().split()
        if len(line) != 3:
            return False
        headers, protocols = {}, []
        while (h := f.readline().decode().strip()):
            name, _, value = h.partition(":")
            headers[name.lower()] = value.strip()
            if name.lower() == "x-stream-protocol-version":
                protocols += [p.strip() for p in value.split(",")]
        subject = sock.getpeercert().get("subject", ()) if sock.getpeercert() else ()
        headers["client"] = next((v for rdn in subject for k, v in rdn if k == "commonName"), "")
        self.requests.append((line[0], line[1], headers))
        url = urllib.parse.urlsplit(line[1])
        query = urllib.parse.parse_qs(url.query)
        first = url.path.split("/")[1]
        if first == "containerLogs":
            return self.send_log(sock, query)
        if first in ("exec", "attach", "portForward") and headers.get("upgrade", "").lower() == "spdy/3.1":
            return self.upgrade(sock, f, first, query, protocols)
        body = read_exactly(f, int(headers.get("content-length", 0)))
        self.answer(sock, 404 if first == "missing" else 200, f"{line[0]} {line[1]} {len(body)}\n".encode())
        return True

    def answer(self, sock, status, body, *headers):
        head = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *headers, "", ""]
        sock.sendall("\r\n".join(head).encode() + body)

    def send_log(self, sock, query):
        if "previous" in query:
            self.answer(sock, 400, b"previous terminated container not found")
            return True
        lines = self.log[-int(query.get("tailLines", [1000])[0]):]
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n")
        for data in lines:
            sock.sendall(b"%x\r\n%s\r\n" % (len(data), data))
        while "follow" in query:
            if not self.more.wait(0.05):
                sock.sendall(b"5\r\ntick\n\r\n")  # fails once nobody reads any more
                continue
            self.more.clear()
            sock.sendall(b"5\r\nmore\n\r\n")
            break
        sock.sendall(b"0\r\n\r\n")
        return True

    def upgrade(self, sock, f, what, query, protocols):
        wanted = "portforward.k8s.io" if what == "portForward" else "v4.channel.k8s.io"
        if wanted not in protocols:
            self.answer(sock, 403, b"unable to upgrade: unable to negotiate protocol")
            return False
        sock.sendall(f"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
                     f"X-Stream-Protocol-Version: {wanted}\r\n\r\n".encode())
        if what == "portForward":
            pairs = {}
            session = Session(f, sock, lambda s: self.forward(pairs, s))
        else:
            count = 1 + sum(k in query for k in ("input", "output", "error")) + ("tty" in query) - ("tty" in query and "error" in query)
            session = Session(f, sock, lambda s: self.maybe_exec(session, query, count))
        session.run()
        return False

    def maybe_exec(self, session, query, count):
        if len(session.streams) == count:
            streams = {s.headers["streamtype"]: s for s in session.streams.values()}
            threading.Thread(target=self.execute, args=(session, query, streams), daemon=True).start()

    def execute(self, session, query, streams):
        pipe = lambda name: subprocess.PIPE if name in streams else subprocess.DEVNULL  # noqa: E731
        command = query.get("command", ["cat"])
        if "resize" in streams:
            threading.Thread(target=lambda: self.sizes.extend(streams["resize"].chunks()), daemon=True).start()
        try:
            p = subprocess.Popen(command, stdin=pipe("stdin"), stdout=pipe("stdout"), stderr=pipe("stderr"))
        except OSError as e:
            return self.finish(session, streams, f'{{"status":"Failure","message":"cannot run: {e.strerror}","reason":"InternalError"}}')
        threads = [threading.Thread(target=self.copy_out, args=(p.stdout, streams["stdout"]))] if "stdout" in streams else []
        threads += [threading.Thread(target=self.copy_out, args=(p.stderr, streams["stderr"]))] if "stderr" in streams else []
        if "stdin" in streams:
            threading.Thread(target=self.copy_in, args=(streams["stdin"], p.stdin), daemon=True).start()
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        code = p.wait()
        self.finish(session, streams, '{"metadata":{},"status":"Success"}' if code == 0 else
                    '{"metadata":{},"status":"Failure","message":"m","reason":"NonZeroExitCode",'
                    f'"details":{{"causes":[{{"reason":"ExitCode","message":"{code}"}}]}}}}')

    def finish(self, session, streams, status):
        try:
            streams["error"].write(status.encode())
            for s in streams.values():
                s.close()
        except OSError:
            pass

    @staticmethod
    def copy_out(source, stream):
        try:
            while (data := source.read1(1 << 16)):
                stream.write(data)
            stream.close()
        except OSError:
            pass  # nobody reads any more

    @staticmethod
    def copy_in(stream, sink):
        try:
            for data in stream.chunks():
                sink.write(data)
                sink.flush()
        except OSError:
            pass
        try:
            sink.close()
        except OSError:
            pass

    def forward(self, pairs, stream):
        pair = pairs.setdefault(stream.headers["requestid"], {})
        pair[stream.headers["streamtype"]] = stream
        if len(pair) == 2:
            threading.Thread(target=self.forward_pair, args=(pair["data"], pair["error"]), daemon=True).start()

    @staticmethod
    def forward_pair(data, error):
        try:
            target = socket.create_connection(("127.0.0.1", int(data.headers["port"])))
        except OSError as e:
            error.write(f"error forwarding port: {e.strerror}".encode())
            error.close()
            data.close()
            return

        def up():
            for chunk in data.chunks():
                target.sendall(chunk)
            target.shutdown(socket.SHUT_WR)
        threading.Thread(target=up, daemon=True).start()
        while (chunk := target.recv(1 << 16)):
            data.write(chunk)
        data.close()
        error.close()
