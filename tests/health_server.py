"""A health server of Google's gRPC, as probes ask it. It writes its port; lines that it reads, "service status", are what it tells from then on."""
import sys
from concurrent import futures

import grpc

NAME = "grpc.health.v1.Health"
services = {"": 1, "mine": 1}


def check(request, context):
    service = request[2:].decode()
    if service not in services:
        context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")
    return bytes([8, services[service]])


server = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(NAME, {"Check": grpc.unary_unary_rpc_method_handler(check)})])
port = server.add_insecure_port("0.0.0.0:0")
server.start()
print(port, flush=True)
for line in sys.stdin:
    name, status = line.split()
    services[name] = int(status)
