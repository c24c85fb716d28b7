"""Servers for tests: API servers of the program under test, and etcd clusters for them to stand on. Everything lives in a
temporary folder on loopback ports of its own and is gone when the `with` block ends."""
import atexit
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time

import peers

C8S = os.environ["C8S"]
TOKENS = 'admin-token,admin,admin,"system:masters"\nalice-token,alice,uid-alice,"devs"\n'


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_until(condition, seconds=20, what="a condition"):
    """Calls condition until it is true, and returns what it returned."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} did not come true within {seconds} s")
        time.sleep(0.02)


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.body[:2000]!r}"


class Server:
    """One API server. extra: more flags. Restarting it keeps its data."""
    command = "kube-apiserver"

    def __init__(self, folder, *extra):
        self.folder, self.extra, self.process, self.port = folder, extra, None, 0
        os.makedirs(folder, exist_ok=True)
        self.tokens = os.path.join(folder, "tokens.csv")
        with open(self.tokens, "w") as f:
            f.write(TOKENS)
        self.log = os.path.join(folder, "log")
        self.kubeconfig = os.path.join(folder, "data", "admin.conf")

    def start(self, seconds=60):
        self.port = self.port or free_port()
        with open(self.log, "ab") as log:
            begin = log.tell()
            self.process = subprocess.Popen(
                [C8S, self.command, "--data-dir", os.path.join(self.folder, "data"), "--bind-address", "127.0.0.1",
                 "--secure-port", str(self.port), "--token-auth-file", self.tokens, *self.extra], stdout=log, stderr=log)
        atexit.register(self.kill)  # also where a test ends before it comes to that

        def ready():
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended with {self.process.returncode}:\n{self.said(begin)}")
            return "ready at https://" in self.said(begin)
        wait_until(ready, seconds, "the server to be ready")
        return self

    def said(self, begin=0):
        with open(self.log, "rb") as f:
            f.seek(begin)
            return f.read().decode(errors="replace")

    def kill(self, sig=signal.SIGKILL):
        if self.process and self.process.poll() is None:
            self.process.send_signal(sig)
            self.process.wait(60)

    def stop(self):
        """In good order; its exit code."""
        self.kill(signal.SIGTERM)
        return self.process.returncode

    def connect(self, timeout=30):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(os.path.join(self.folder, "data", "pki", "ca.crt"))
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=context)

    def request(self, method, path, body=None, token="admin-token", connection=None, timeout=30, **headers):
        """Sends one request; body is an object for JSON, or text as it is. Headers by keyword: content_type=..."""
        c = connection or self.connect(timeout)
        head = {"Accept": "application/json"}
        if token:
            head["Authorization"] = "Bearer " + token
        if body is not None:
            head["Content-Type"] = "application/merge-patch+json" if method == "PATCH" else "application/json"
            body = body if isinstance(body, (str, bytes)) else json.dumps(body)
        head.update({k.replace("_", "-").title(): v for k, v in headers.items()})
        c.request(method, path, body=body, headers=head)
        r = c.getresponse()
        answer = Answer(r.status, r.headers, r.read())
        if not connection:
            c.close()
        return answer

    def kubectl(self, *args, program=None, check=True, stdin=None, timeout=60):
        program = program or peers.find("kubectl", "kubernetes-client")
        r = subprocess.run([program, "--kubeconfig", self.kubeconfig, *args], input=stdin, capture_output=True, text=True,
                           timeout=timeout, env={**os.environ, "HOME": self.folder})
        if check and r.returncode:
            raise RuntimeError(f"kubectl {' '.join(args)}: {r.returncode}\n{r.stdout}{r.stderr}")
        return r

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.kill(signal.SIGTERM)
        if self.process and self.process.returncode not in (0, -signal.SIGKILL):
            raise RuntimeError(f"the server ended with {self.process.returncode}:\n{self.said()[-6000:]}")


class ControlPlane(Server):
    """API server, controllers and scheduler in one process."""
    command = "control-plane"


class Component:
    """A program beside the API server, with the kubeconfig that the server has made for it (hollow nodes: the administrator's)."""

    def __init__(self, server, name, *flags):
        self.name, self.process, self.port = name, None, free_port()
        data = os.path.join(server.folder, "data")
        self.log = os.path.join(server.folder, f"{name}-{self.port}.log")
        pki = os.path.join(data, "pki")
        own = ["--use-service-account-credentials", "--service-account-private-key-file", f"{pki}/sa.key", "--root-ca-file", f"{pki}/ca.crt",
               "--cluster-signing-cert-file", f"{pki}/ca.crt", "--cluster-signing-key-file", f"{pki}/ca.key"]
        kubeconfig = server.kubeconfig if name == "hollow" else os.path.join(data, name.removeprefix("kube-") + ".conf")
        port = [] if name == "hollow" else ["--bind-address", "127.0.0.1", "--secure-port", str(self.port)]
        self.line = [C8S, name, "--kubeconfig", kubeconfig, *port, *(own if name == "kube-controller-manager" else []), *flags]

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.line, stdout=log, stderr=log)
        atexit.register(self.kill, signal.SIGKILL)  # also where a test ends before it comes to that
        return self

    def said(self):
        with open(self.log, "rb") as f:
            return f.read().decode(errors="replace")

    def wait_said(self, text, seconds=30):
        def there():
            if self.process.poll() is not None and text not in self.said():
                raise RuntimeError(f"{self.name} ended with {self.process.returncode}:\n{self.said()[-4000:]}")
            return text in self.said()
        wait_until(there, seconds, f"{self.name} to say '{text}'")
        return self

    def get(self, path, token=None):
        """Of its port."""
        c = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=30, context=ssl._create_unverified_context())
        c.request("GET", path, headers={"Authorization": "Bearer " + token} if token else {})
        r = c.getresponse()
        answer = Answer(r.status, r.headers, r.read())
        c.close()
        return answer

    def kill(self, sig=signal.SIGTERM):
        if self.process and self.process.poll() is None:
            self.process.send_signal(sig)
            self.process.wait(60)
        return self.process.returncode if self.process else None


class Etcd:
    """A cluster of n members of Debian's etcd."""

    def __init__(self, folder, n=1):
        self.folder, self.n, self.program = folder, n, peers.find("etcd", "etcd-server")
        self.clients = [free_port() for _ in range(n)]
        self.peer_ports = [free_port() for _ in range(n)]
        self.processes = [None] * n
        self.endpoints = ",".join(f"http://127.0.0.1:{p}" for p in self.clients)

    def start_member(self, i):
        cluster = ",".join(f"m{k}=http://127.0.0.1:{p}" for k, p in enumerate(self.peer_ports))
        client, peer = (f"http://127.0.0.1:{ports[i]}" for ports in (self.clients, self.peer_ports))
        with open(os.path.join(self.folder, f"m{i}.log"), "ab") as log:
            self.processes[i] = subprocess.Popen(
                [self.program, "--name", f"m{i}", "--data-dir", os.path.join(self.folder, f"m{i}"), "--initial-cluster", cluster,
                 "--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
                 "--initial-advertise-peer-urls", peer, "--heartbeat-interval", "50", "--election-timeout", "500"],
                stdout=log, stderr=log, env={**os.environ, "ETCD_UNSUPPORTED_ARCH": "arm64"})

    def ctl(self, *args, check=True):
        program = peers.find("etcdctl", "etcd-client")
        return subprocess.run([program, "--endpoints", self.endpoints, *args], capture_output=True, check=check, timeout=60,
                              env={**os.environ, "ETCDCTL_API": "3"}).stdout

    def healthy(self):
        program = peers.find("etcdctl", "etcd-client")
        return subprocess.run([program, "--endpoints", self.endpoints, "endpoint", "health"], capture_output=True,
                              env={**os.environ, "ETCDCTL_API": "3"}).returncode == 0

    def leader(self):
        """The number of the member that leads."""
        status = json.loads(self.ctl("endpoint", "status", "-w", "json"))
        ids = {s["Endpoint"]: s["Status"]["header"]["member_id"] for s in status}
        leads = status[0]["Status"]["leader"]
        return next(i for i, p in enumerate(self.clients) if ids.get(f"http://127.0.0.1:{p}") == leads)

    def __enter__(self):
        os.makedirs(self.folder, exist_ok=True)
        for i in range(self.n):
            self.start_member(i)
        wait_until(self.healthy, 60, "etcd to be healthy")
        return self

    def __exit__(self, *_):
        for p in self.processes:
            if p and p.poll() is None:
                p.send_signal(signal.SIGCONT)
                p.kill()
                p.wait(30)


class Folder:
    """A temporary folder that is removed at the end."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="c8s-test-")
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


def uid(text):
    return re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID", text)
