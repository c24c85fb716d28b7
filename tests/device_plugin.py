#!/usr/bin/env python3
"""A device plugin as vendors write them, with Google's gRPC: python3 device_plugin.py FOLDER RESOURCE, FOLDER being device-plugins of a kubelet.
Commands are lines of JSON on its standard input, answers and what the kubelet asks are lines of JSON on its standard output:
["devices", {"id": "Healthy", ...}], ["register"], ["resources"] (of the pod-resources service), ["info", path] (a socket that registers itself)."""
import json
import os
import queue
import sys
import threading
from concurrent import futures

import grpc


def varint(n):
    out = b""
    while n > 0x7f:
        out, n = out + bytes([n & 0x7f | 0x80]), n >> 7
    return out + bytes([n])


def field(number, value):
    """One field of a message: a text, bytes, or a number."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def fields(data):
    """[(number, value)] of a message."""
    out, at = [], 0

    def number():
        nonlocal at
        n = shift = 0
        while True:
            n, shift, at = n | (data[at] & 0x7f) << shift, shift + 7, at + 1
            if data[at - 1] < 0x80:
                return n
    while at < len(data):
        key = number()
        if key & 7 == 0:
            out.append((key >> 3, number()))
        else:
            size = number()
            out.append((key >> 3, data[at:at + size]))
            at += size
    return out


def say(*what):
    print(json.dumps(what), flush=True)


class Plugin(grpc.GenericRpcHandler):
    def __init__(self, resource):
        self.resource, self.devices, self.lists = resource, {}, []

    def tell(self, devices):
        self.devices = devices
        for q in self.lists:
            q.put(devices)

    def service(self, call):
        methods = {"/v1beta1.DevicePlugin/GetDevicePluginOptions": self.options, "/v1beta1.DevicePlugin/Allocate": self.allocate,
                   "/v1beta1.DevicePlugin/PreStartContainer": self.pre_start, "/v1beta1.DevicePlugin/GetPreferredAllocation": self.prefer,
                   "/pluginregistration.Registration/GetInfo": self.info, "/pluginregistration.Registration/NotifyRegistrationStatus": self.notify}
        if call.method == "/v1beta1.DevicePlugin/ListAndWatch":
            return grpc.unary_stream_rpc_method_handler(self.watch)
        return grpc.unary_unary_rpc_method_handler(methods[call.method]) if call.method in methods else None

    def options(self, request, context):
        return field(1, 1) + field(2, 1)

    def watch(self, request, context):
        q = queue.Queue()
        self.lists.append(q)
        context.add_callback(lambda: q.put(None))
        q.put(self.devices)
        while (devices := q.get()) is not None:
            yield b"".join(field(1, field(1, name) + field(2, health)) for name, health in devices.items())

    def prefer(self, request, context):
        """The last ones first."""
        wish = fields(fields(request)[0][1])
        free = sorted(v.decode() for k, v in wish if k == 1)[::-1]
        return field(1, b"".join(field(1, d) for d in free[:dict(wish)[3]]))

    def allocate(self, request, context):
        ids = [v.decode() for _, v in fields(fields(request)[0][1])]
        say("Allocate", ids)
        return field(1, field(1, field(1, "DEVICES") + field(2, ",".join(ids))) +
                     field(2, field(1, "/from-plugin") + field(2, "/proc/version") + field(3, 1)) +
                     field(3, field(1, "/dev/mine") + field(2, "/dev/null") + field(3, "rw")))

    def pre_start(self, request, context):
        say("PreStartContainer", [v.decode() for _, v in fields(request)])
        return b""

    def info(self, request, context):
        return field(1, "DevicePlugin") + field(2, self.resource) + field(4, "v1beta1")

    def notify(self, request, context):
        say("NotifyRegistrationStatus", {k: v if isinstance(v, int) else v.decode() for k, v in fields(request)})
        return b""


def ask(socket, method, request):
    with grpc.insecure_channel("unix://" + socket) as channel:
        try:
            return channel.unary_unary(method)(request, timeout=10)
        except grpc.RpcError as e:
            return f"{e.code().name}: {e.details()}"


def resources(socket):
    """{pod: {container: [id, ...]}}"""
    out = {}
    for _, pod in fields(ask(socket, "/v1.PodResourcesLister/List", b"")):
        f = fields(pod)
        containers = [fields(v) for k, v in f if k == 3]
        out[dict(f)[1].decode()] = {dict(c)[1].decode(): [i.decode() for k, d in c if k == 2 for n, i in fields(d) if n == 2] for c in containers}
    return out


def serve(plugin, path):
    server = grpc.server(futures.ThreadPoolExecutor(8), handlers=[plugin])
    server.add_insecure_port("unix://" + path)
    server.start()
    return server


def main(folder, resource):
    plugin, servers = Plugin(resource), []
    servers.append(serve(plugin, os.path.join(folder, "peer.sock")))
    say("ready", grpc.__version__)
    for line in sys.stdin:
        what, *more = json.loads(line)
        if what == "devices":
            plugin.tell(more[0])
        elif what == "register":
            if not os.path.exists(os.path.join(folder, "peer.sock")):
                servers.append(serve(plugin, os.path.join(folder, "peer.sock")))
            answer = ask(os.path.join(folder, "kubelet.sock"), "/v1beta1.Registration/Register",
                         field(1, more[0] if more else "v1beta1") + field(2, "peer.sock") + field(3, resource))
            say("register", answer.decode() if isinstance(answer, bytes) else answer)
        elif what == "info":
            servers.append(serve(plugin, more[0]))
        else:
            say("resources", resources(os.path.join(folder, "..", "pod-resources", "kubelet.sock")))
    threading.Timer(2, os._exit, (0,)).start()
    for server in servers:
        server.stop(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
