"""Images for tests, made of busybox: as archives, as layouts, or put into a registry; registries to put them into, and a proxy before them."""
import base64
import gzip
import hashlib
import http.client
import http.server
import io
import json
import os
import shutil
import socket
import ssl
import subprocess
import tarfile
import threading
import urllib.parse

import peers
from cluster import free_port, wait_until

BUSYBOX = "/bin/busybox"
APPLETS = "sh cat echo ls sleep true false id env hostname mount ps wget nc httpd grep head tail touch mkdir rm test printf kill seq dd date stat ip md5sum stty tar".split()
ARCH = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
DOCKER_CONFIG = "application/vnd.docker.container.image.v1+json"
DOCKER_LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def busybox():
    """The files of a small system: path -> bytes, a folder (None) or a link (text)."""
    with open(BUSYBOX, "rb") as f:
        files = {"bin/busybox": f.read()}
    files.update({f"bin/{name}": "busybox" for name in APPLETS})
    files.update({"etc/passwd": b"root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000::/:/bin/sh\n", "etc/group": b"root:x:0:\nuser:x:1000:\n",
                  "tmp": None, "proc": None, "sys": None, "dev": None, "root": None})
    return files


def nginx():
    """Debian's nginx with the libraries that it needs, or None. It serves /www on port 80."""
    program = peers.find("nginx", peers.PEERS["nginx"])
    if not program:
        return None
    files, triple = {"bin/nginx": program}, f"{os.uname().machine}-linux-gnu"
    for words in map(str.split, subprocess.run(["ldd", program], capture_output=True, text=True, check=True, env=peers.libraries()).stdout.splitlines()):
        if "=>" in words:
            files[f"lib/{triple}/{words[0]}"] = words[2]
        elif words[0].startswith("/"):  # the one that loads the others
            files[words[0][1:]] = words[0]
    for name, path in files.items():
        with open(path, "rb") as f:
            files[name] = f.read()
    conf = (b"daemon off;\nuser root;\nerror_log /dev/stderr;\npid /tmp/pid;\nevents { }\nhttp { access_log /dev/stdout; "
            b"server { listen 80; root /www; } }\n")
    return {**files, "etc/nginx/nginx.conf": conf, "var/lib/nginx": None, "var/log/nginx": None, "www/index.html": b"Debian's nginx\n"}


def layer(files):
    """The tar of a layer; the same files give the same bytes. Besides what busybox() has, content may be an entry of its own (TarInfo)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, content in files.items():
            if isinstance(content, tarfile.TarInfo):
                content.name = path
                tar.addfile(content)
                continue
            info = tarfile.TarInfo(path)
            info.mode = 0o755
            if content is None:
                info.type = tarfile.DIRTYPE
            elif isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
            else:
                info.size = len(content)
                info.mode = 0o755 if path.startswith(("bin/", "lib")) else 0o644
            tar.addfile(info, io.BytesIO(content) if isinstance(content, bytes) else None)
    return out.getvalue()


def entry(kind, **members):
    """An entry of a layer: a kind of tarfile, and whatever else TarInfo has."""
    info = tarfile.TarInfo()
    info.type = kind
    for name, value in members.items():
        setattr(info, name, value)
    return info


class Image:
    """layers: dicts of files. compress: layers are gzipped, as registries have them. docker: with Docker's media types."""

    def __init__(self, *layers, config=None, compress=True, arch=ARCH, variant=None, docker=False):
        plain = [layer(files) for files in layers or (busybox(),)]
        self.layers = [gzip.compress(tar, 1, mtime=0) if compress else tar for tar in plain]
        self.plain = plain
        self.arch, self.variant, self.media_type = arch, variant, DOCKER_MANIFEST if docker else MANIFEST
        self.config = json.dumps({"architecture": arch, "os": "linux", "config": config or {"Cmd": ["sh"]},
                                  "rootfs": {"type": "layers", "diff_ids": [digest(tar) for tar in plain]}}).encode()
        self.manifest = json.dumps({
            "schemaVersion": 2, "mediaType": self.media_type,
            "config": {"mediaType": DOCKER_CONFIG if docker else CONFIG, "digest": digest(self.config), "size": len(self.config)},
            "layers": [{"mediaType": DOCKER_LAYER if docker else LAYER + ("+gzip" if compress else ""), "digest": digest(x), "size": len(x)}
                       for x in self.layers]}).encode()
        self.id, self.digest = digest(self.config), digest(self.manifest)

    def blobs(self):
        return {digest(x): x for x in (*self.layers, self.config)}

    def descriptor(self, name=None):
        platform = {"os": "linux", "architecture": self.arch, **({"variant": self.variant} if self.variant else {})}
        d = {"mediaType": self.media_type, "digest": self.digest, "size": len(self.manifest), "platform": platform}
        return {**d, "annotations": {"org.opencontainers.image.ref.name": name}} if name else d

    def docker_archive(self, path, *tags):
        """As docker save wrote it for years: plain layers, one of them by a link."""
        files = {"config.json": self.config, "manifest.json": json.dumps(
            [{"Config": "config.json", "RepoTags": tags, "Layers": [f"{i}/layer.tar" for i in range(len(self.plain))]}]).encode()}
        for i, tar in enumerate(self.plain):
            files[f"store/{i}.tar"] = tar
            files[f"{i}/layer.tar"] = f"../store/{i}.tar"
        with open(path, "wb") as f:
            f.write(layer(files))

    def layout(self, folder, name):
        os.makedirs(os.path.join(folder, "blobs", "sha256"), exist_ok=True)
        for key, data in {**self.blobs(), self.digest: self.manifest}.items():
            with open(os.path.join(folder, "blobs", "sha256", key[7:]), "wb") as f:
                f.write(data)
        for file, value in (("oci-layout", {"imageLayoutVersion": "1.0.0"}), ("index.json", {"schemaVersion": 2, "manifests": [self.descriptor(name)]})):
            with open(os.path.join(folder, file), "w") as f:
                json.dump(value, f)


class Registry:
    """Debian's docker-registry on a loopback port. users: it wants one of user:password. Use available() first."""

    # tester:secret; bcrypt is the only kind that it reads.
    HTPASSWD = "tester:$2b$04$RJS4rzN/JW2cvQlEiBzPbeVF0oiTkDVzJRy38cw6J8JMTh5kcB1zW\n"
    CREDS = "tester:secret"

    @staticmethod
    def available():
        return peers.find("docker-registry", "docker-registry")

    def __init__(self, folder, users=False, more=""):
        self.folder, self.users, self.port = folder, users, free_port()
        os.makedirs(folder)
        self.data = os.path.join(folder, "data")
        auth = f"auth:\n  htpasswd:\n    realm: test\n    path: {folder}/htpasswd\n" if users else ""
        with open(os.path.join(folder, "htpasswd"), "w") as f:
            f.write(self.HTPASSWD)
        with open(os.path.join(folder, "config.yml"), "w") as f:
            f.write(f"version: 0.1\nlog:\n  level: warn\nstorage:\n  filesystem:\n    rootdirectory: {self.data}\n"
                    f"http:\n  addr: 127.0.0.1:{self.port}\n{auth}{more}")

    @property
    def host(self):
        return f"127.0.0.1:{self.port}"

    def __enter__(self):
        with open(os.path.join(self.folder, "log"), "wb") as log:
            self.process = subprocess.Popen([self.available(), "serve", os.path.join(self.folder, "config.yml")], stdout=log, stderr=log)
        wait_until(self.answers, what="the registry's answer")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def answers(self):
        try:
            return self.request("GET", "/v2/")[0] in (200, 401)
        except OSError:
            return False

    def request(self, method, path, body=None, kind=None):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        headers = {"Authorization": "Basic " + base64.b64encode(self.CREDS.encode()).decode()} if self.users else {}
        headers["Accept"] = ", ".join((MANIFEST, INDEX, DOCKER_MANIFEST, DOCKER_LIST))
        if kind:
            headers["Content-Type"] = kind
        c.request(method, path, body=body, headers=headers)
        r = c.getresponse()
        answer = r.status, dict(r.getheaders()), r.read()
        c.close()
        return answer

    def put_blob(self, repository, data):
        status, headers, body = self.request("POST", f"/v2/{repository}/blobs/uploads/")
        assert status == 202, body
        to = urllib.parse.urlsplit(headers["Location"])
        status, _, body = self.request("PUT", f"{to.path}?{to.query}&digest={digest(data)}", data, "application/octet-stream")
        assert status == 201, body

    def put_manifest(self, repository, tag, data, kind):
        status, _, body = self.request("PUT", f"/v2/{repository}/manifests/{tag}", data, kind)
        assert status == 201, body

    def put(self, image, repository, tag):
        """The image in the registry; its name."""
        for data in image.blobs().values():
            self.put_blob(repository, data)
        self.put_manifest(repository, tag, image.manifest, image.media_type)
        return f"{self.host}/{repository}:{tag}"

    def put_index(self, images, repository, tag, kind=INDEX):
        for image in images:
            self.put(image, repository, image.digest)
        data = json.dumps({"schemaVersion": 2, "mediaType": kind, "manifests": [i.descriptor() for i in images]}).encode()
        self.put_manifest(repository, tag, data, kind)
        return f"{self.host}/{repository}:{tag}", digest(data)

    def blob_file(self, key):
        return os.path.join(self.data, "docker", "registry", "v2", "blobs", "sha256", key[7:9], key[7:], "data")


def certificate(folder, name, names, ca=None):
    """A certificate for these names (subjectAltName), signed by itself or by that of an earlier call: the paths of it and its key."""
    cert, key = os.path.join(folder, name + ".pem"), os.path.join(folder, name + ".key")
    signed = ["-CA", ca[0], "-CAkey", ca[1]] if ca else []
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=" + name,
                    "-addext", "subjectAltName=" + names, *signed, "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key


class Server:
    """HTTP on a loopback port; answer(handler, body) gives a status, headers and data. tls: certificate and key; client_ca: whom clients
    must be signed by."""

    def __init__(self, answer, tls=None, client_ca=None):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(handler):
                body = handler.rfile.read(int(handler.headers.get("Content-Length", 0))).decode()
                status, headers, data = answer(handler, body)
                handler.send_response(status)
                for key, value in {**headers, "Content-Length": str(len(data))}.items():
                    handler.send_header(key, value)
                handler.end_headers()
                if handler.command != "HEAD":
                    handler.wfile.write(data)
            do_HEAD = do_POST = do_PUT = do_GET

            def log_message(self, *_):
                pass

        class Quiet(http.server.ThreadingHTTPServer):
            def handle_error(self, *_):
                pass  # a client that does not trust us, or has enough
        self.server = Quiet(("127.0.0.1", 0), Handler)
        self.port, self.host = self.server.server_port, f"127.0.0.1:{self.server.server_port}"
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            if client_ca:
                context.verify_mode = ssl.CERT_REQUIRED
                context.load_verify_locations(client_ca)
            # handshakes by the threads, so that one that fails does not disturb others
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class OneImage(Server):
    """A registry with one image under all names. before: an answer instead of the usual one, or None. Paths begin with prefix."""

    def __init__(self, image, before=None, prefix="/v2", **tls):
        self.image, self.before, self.prefix, self.seen = image, before, prefix, []
        super().__init__(self.answer, **tls)

    def answer(self, q, body):
        self.seen.append((q.command, q.path, dict(q.headers)))
        special = self.before(q, body) if self.before else None
        if special:
            return special
        path = q.path.split("?")[0]
        if not path.startswith(self.prefix + "/"):
            return 404, {}, b""
        if "/manifests/" in path:
            return 200, {"Content-Type": self.image.media_type, "Docker-Content-Digest": self.image.digest}, self.image.manifest
        data = self.image.blobs().get(path.split("/")[-1])
        return (200, {}, data) if data else (404, {}, b"")


class WebProxy:
    """A proxy for HTTP: passes on what is asked of it in whole, and bytes for CONNECT; names lead to this machine."""

    def __init__(self, credentials=None):
        self.credentials, self.seen = credentials, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        data = b""
        while b"\r\n\r\n" not in data:
            part = client.recv(65536)
            if not part:
                return
            data += part
        line, rest = data.split(b"\r\n", 1)
        method, target, version = line.split(b" ")
        self.seen.append((method.decode(), target.decode()))
        wanted = b"Proxy-Authorization: Basic " + base64.b64encode((self.credentials or "").encode())
        if self.credentials and wanted not in rest:
            client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            return client.close()
        url = urllib.parse.urlsplit(target if method != b"CONNECT" else b"//" + target)
        server = socket.create_connection(("127.0.0.1", url.port))
        if method == b"CONNECT":
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:  # one request for each connection
            path = url.path + (b"?" + url.query if url.query else b"")
            server.sendall(method + b" " + path + b" " + version + b"\r\nConnection: close\r\n" + rest)
        threading.Thread(target=self.copy, args=(client, server), daemon=True).start()
        self.copy(server, client)

    @staticmethod
    def copy(from_, to):
        try:
            while part := from_.recv(65536):
                to.sendall(part)
            to.shutdown(socket.SHUT_WR)
        except OSError:
            pass
