"""The node on which stories are played, with stand-ins for the images that they name, and the playing of many at once."""
import contextlib
import os
import queue
import re
import socket
import struct
import subprocess
import threading
import traceback

import images
import nodes
import peers
import stories

AT_ONCE_AGAIN = 3
APART_S = 0.15

# A stand-in for agnhost, which takes a moment until it listens, as the real one does.
AGNHOST = """#!/bin/sh
wait_for_end() { while :; do wait; done; }
case $1 in
netexec) trap 'exit 0' TERM; sleep 0.3; nc -ll -p 8080 -e /bin/netexec & wait_for_end;;
liveness) trap 'exit 2' TERM; date +%s > /tmp/began; nc -ll -p 8080 -e /bin/liveness & wait_for_end;;
grpc-health-checking) trap 'exit 2' TERM; sleep 0.3; nc -ll -p 5000 -e nc $HEALTH & wait_for_end;;
pause) trap 'echo "exiting because of signal \\"terminated\\"" > /dev/termination-log; exit 2' TERM; sleep 3600 & wait_for_end;;
esac
"""
NETEXEC = """#!/bin/sh
answer() { printf 'HTTP/1.1 %s\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n\\r\\n' "$1"; }
first=$(dd bs=1 count=1 2>/dev/null)
[ "$first" = "$(printf '\\026')" ] && { answer '400 Bad Request'; exit; }
read -r method target version
while read -r line && [ "${#line}" -gt 1 ]; do :; done
case $target in
/shell*) $(echo "${target#*cmd=}" | tr + ' '); answer '200 OK';;
/echo*code=404*) answer '404 Not Found';;
*) answer '200 OK';;
esac
"""
LIVENESS = """#!/bin/sh
read -r line
[ $(($(date +%s) - $(cat /tmp/began))) -gt 10 ] && code='500 Internal Server Error' || code='200 OK'
printf 'HTTP/1.1 %s\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n\\r\\n' "$code"
"""


class Health:
    """The gRPC health service, as far as probes need it: everything is well, unless a service is asked for by name."""

    DATA, HEADERS, SETTINGS, PING = 0, 1, 4, 6

    def __init__(self):
        self.listener = socket.create_server(("0.0.0.0", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    @staticmethod
    def frame(kind, flags, stream, data=b""):
        return struct.pack(">I", len(data))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + data

    @staticmethod
    def field(name, value):
        return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value

    def answer(self, stream, message):
        head = b"\x88" + self.field(b"content-type", b"application/grpc")
        if len(message) > 5:
            return self.frame(self.HEADERS, 5, stream, head + self.field(b"grpc-status", b"5") + self.field(b"grpc-message", b"unknown service"))
        return self.frame(self.HEADERS, 4, stream, head) + self.frame(self.DATA, 0, stream, b"\0\0\0\0\2\x08\1") + \
            self.frame(self.HEADERS, 5, stream, self.field(b"grpc-status", b"0"))

    def serve(self, client):
        asked = {}
        with contextlib.suppress(OSError), client, client.makefile("rb") as f:
            f.read(24)
            client.sendall(self.frame(self.SETTINGS, 0, 0))
            while len(head := f.read(9)) == 9:
                data = f.read(int.from_bytes(head[:3], "big"))
                kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
                if kind in (self.SETTINGS, self.PING) and not flags & 1:
                    client.sendall(self.frame(kind, 1, 0, data if kind == self.PING else b""))
                elif kind == self.DATA:
                    asked[stream] = asked.get(stream, b"") + data
                if kind in (self.DATA, self.HEADERS) and flags & 1:
                    client.sendall(self.answer(stream, asked.pop(stream, b"")))


class NoNames:
    """A name server that knows no name."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 53))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            query, client = self.socket.recvfrom(512)
            self.socket.sendto(query[:2] + b"\x81\x83" + query[4:6] + bytes(6) + query[12:], client)


def story_images(health):
    files = images.busybox()
    applets = subprocess.run([images.BUSYBOX, "--list"], capture_output=True, text=True, check=True).stdout.split()
    files.update({"bin/" + name: "busybox" for name in applets if name != "busybox"})
    files.update({"etc/passwd": b"root:x:0:0:root:/root:/bin/sh\n", "etc/group": b"root:x:0:\n"})
    agnhost = {**files, "bin/agnhost": AGNHOST.encode(), "bin/netexec": NETEXEC.encode(), "bin/liveness": LIVENESS.encode()}
    return {"busybox:1.37.0-1": images.Image(files), "busybox:1.36.1-1": images.Image(files, config={"Cmd": ["sh"], "Labels": {"older": "yes"}}),
            "nonroot:1.5": images.Image(files, config={"Cmd": ["sh"], "User": "1234"}),
            "agnhost:2.63.0": images.Image(agnhost, config={"Entrypoint": ["/bin/agnhost"], "Cmd": ["pause"],
                                                            "Env": ["PATH=/bin", f"HEALTH=10.214.0.1 {health.port}"]})}


class StoryNode(nodes.Node):
    """A node as that of the stories was: two processors' worth of resources, its images already there."""

    def __init__(self, **more):
        super().__init__(config={"clusterDNS": ["10.96.0.10"], "fileCheckFrequency": "2s"}, server_flags=["--service-cluster-ip-range", "10.96.0.0/16"],
                         **more)

    def start(self):
        if self.loops:
            path = os.path.join(self.folder, "resolv.conf")
            with open(path, "w") as f:
                f.write("nameserver 127.0.0.1\n")
            subprocess.run(["mount", "--bind", path, "/etc/resolv.conf"], check=True)
        hosts = os.path.join(self.folder, "certs.d", "registry.k8s.io")
        os.makedirs(hosts)
        with open(os.path.join(hosts, "hosts.toml"), "w") as f:
            f.write(f'[host."http://{self.registry.host}"]\n  capabilities = ["pull", "resolve"]\n')
        self.flags = ["--runtime-registry-config", os.path.dirname(hosts)]
        super().start()
        self.health_service = Health()
        for name, image in story_images(self.health_service).items():
            repository, tag = ("e2e-test-images/" + name).split(":")
            self.have(repository, image, tag)
        if self.loops:
            self.have_pause()
            self.name_server = NoNames()
        return self

    def have_pause(self):
        with open(peers.static_pod(), "rb") as f:
            pause = f.read()
        for name in ("pause:3.10.2", "pause:3.10", "e2e-test-images/nginx:1.27-0"):
            repository, tag = name.split(":")
            self.have(repository, images.Image({"bin/pause": pause}, config={"Entrypoint": ["/bin/pause"], "Labels": {"name": name}}), tag)

    def have(self, repository, image, tag):
        self.put_image(repository, image, tag)
        self.crictl("pull", f"registry.k8s.io/{repository}:{tag}")


def play_once(node, chosen, first, at_once, player_type):
    """The stories with their differences, as they end; each has a number of its own, from this one on."""
    watcher, waiting, ended = stories.Watcher(node.server, player_type.KINDS), queue.Queue(), queue.Queue()
    for i, story in enumerate(chosen, first):
        waiting.put((i, story))

    def work():
        while True:
            try:
                i, story = waiting.get_nowait()
            except queue.Empty:
                return
            found, player = [], None
            try:
                player = player_type(node, watcher, story, i)
                found += player.play().differences()
            except Exception:  # noqa: BLE001 - whatever it was, it belongs to this story
                found.append(traceback.format_exc())
            try:
                if player:
                    player.clean()
            except Exception:  # noqa: BLE001
                found.append(traceback.format_exc())
            ended.put((story, found))
    for i in range(at_once):
        threading.Timer(i * APART_S, work).start()
    for _ in chosen:
        yield ended.get()


def play_all(node, chosen, at_once, player_type=stories.Player):
    """The differences of each story, by its name. What was recorded is one of the orders in which things may happen at the same time, and on a
    busy machine ours may be another: a story that differs is played again, with few others, and differs only if it does so each time."""
    left, played = chosen, 0
    for last in (False, False, True):
        again = []
        for story, found in play_once(node, left, played, at_once, player_type):
            if found and not last:
                again.append(story)
                print("\n# ".join([f"# again: {story['story']}", *(line for text in found for line in text.splitlines())]), flush=True)
            else:
                yield story["story"], found
        left, played, at_once = again, played + len(left), min(at_once, AT_ONCE_AGAIN)


def choose(found, short_ms):
    """Without STORIES=all only what is over before long."""
    wanted = os.environ.get("STORIES", "")
    if wanted == "all":
        return found
    if wanted:
        return [s for s in found if re.search(wanted, s["story"])]
    return [s for s in found if s["durationMs"] <= short_ms]
