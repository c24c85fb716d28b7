#!/usr/bin/env python3
"""c8s image against Debian's docker-registry and skopeo: pull, push, load, save, and what goes wrong on the way. Needs C8S."""
import base64
import json
import os
import pty
import random
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import images  # noqa: E402
import peers  # noqa: E402
import tap  # noqa: E402
from cluster import Folder, wait_until  # noqa: E402

C8S = os.environ["C8S"]


class Answer:
    def __init__(self, p):
        self.code, self.out, self.err = p.returncode, p.stdout, p.stderr

    def __repr__(self):
        return f"exit {self.code}\n{self.out}\n{self.err}"


class Store:
    """A store of images in a folder, by the command line."""

    def __init__(self, folder):
        self.folder = folder
        self.env = {**os.environ, "DOCKER_CONFIG": os.path.join(folder, "docker")}

    def command(self, *args):
        return [C8S, "image", *args, "--root", self.folder]

    def __call__(self, *args, **more):
        return Answer(subprocess.run(self.command(*args), capture_output=True, text=True, timeout=60, env=self.env, **more))

    def start(self, *args):
        return subprocess.Popen(self.command(*args), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.env)

    def ids(self):
        return self("ls", "-q").out.split()

    def inspect(self, name):
        return json.loads(self("inspect", name).out)[0]

    def files(self, part):
        return sorted(os.listdir(os.path.join(self.folder, "images", part)))


class Proxy:
    """Passes bytes to a server, and cuts answers (not the first `spare` of them) after `limit` bytes, `cuts` times. delay: between parts."""

    def __init__(self, port, limit=0, cuts=0, delay=0):
        self.to, self.limit, self.cuts, self.delay, self.sent, self.requests = port, limit, cuts, delay, 0, []
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
            server = socket.create_connection(("127.0.0.1", self.to))
            threading.Thread(target=self.up, args=(client, server), daemon=True).start()
            threading.Thread(target=self.down, args=(client, server), daemon=True).start()

    def up(self, client, server):
        try:
            while data := client.recv(65536):
                self.requests.append(data)
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def down(self, client, server):
        passed = 0
        try:
            while data := server.recv(16384):
                passed += len(data)
                if self.cuts and passed > self.limit:
                    self.cuts -= 1
                    break
                client.sendall(data)
                self.sent += len(data)
                if self.delay and len(data) > 4000:
                    time.sleep(self.delay)
            client.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def noise(n, seed=1):
    return random.Random(seed).randbytes(n)


def test_pull(t, folder, registry):
    store, image = Store(folder + "/pull"), images.Image(images.busybox(), {"etc/motd": b"hello\n"})
    name = registry.put(image, "apps/busybox", "1")
    a = store("pull", name)
    t.check("an image is pulled from a registry without TLS on this machine", a.code == 0 and name in a.out, a)
    x = store.inspect(name)
    t.check("it has the id, names and layers that it should", x["id"] == image.id and x["tags"] == [name] and x["manifest"] == image.digest and
            x["digests"] == [f"{registry.host}/apps/busybox@{image.digest}"] and
            x["layers"] == [images.digest(i) for i in image.layers] and x["config"]["config"] == {"Cmd": ["sh"]}, x)
    t.check("and the size of its blobs", x["size"] == sum(map(len, image.layers)) + len(image.config) + len(image.manifest), x)
    a = store("pull", name)
    t.check("a second pull fetches nothing", a.code == 0 and a.err.count("exists") == 3, a)
    for what in (image.id, image.id[7:19], x["digests"][0], f"{name}@{image.digest}"):
        t.check(f"it is found as {what[:30]}...", store.inspect(what)["id"] == image.id)
    a = store("pull", f"{registry.host}/apps/busybox@{image.digest}")
    t.check("and pulled by its digest", a.code == 0, a)
    a = store("ls")
    t.check("it is listed", "apps/busybox" in a.out and image.id[7:20] in a.out, a)
    t.check("nothing is left of the work", store.files("ingest") == store.files("leases") == store.files("trash") == [])


def test_platforms(t, folder, registry):
    store = Store(folder + "/platforms")
    ours, other = images.Image({"a": b"ours"}), images.Image({"a": b"other"}, arch="mips64")
    name, index = registry.put_index([other, ours], "apps/multi", "1")
    a = store("pull", name)
    x = store.inspect(name)
    t.check("of several platforms ours is pulled", a.code == 0 and x["id"] == ours.id and x["digests"][0].endswith(index), (a, x))
    name, _ = registry.put_index([other], "apps/mips", "1")
    a = store("pull", name)
    t.check("and there must be one", a.code == 1 and a.err.endswith(f'failed to pull and unpack image "{name}": no match for platform in manifest: not found\n'), a)


def test_errors(t, folder, registry):
    store = Store(folder + "/errors")
    name = f"{registry.host}/apps/none:1"
    a = store("pull", name)
    want = f'failed to pull and unpack image "{name}": failed to resolve reference "{name}": {name}: not found'
    t.check("an image that does not exist", a.code == 1 and want in a.err, a)
    a = store("pull", "127.0.0.1:1/x")
    t.check("a registry that is not there", a.code == 1 and "failed to do request: Head \"http://127.0.0.1:1/v2/x/manifests/latest\": dial tcp 127.0.0.1:1: connect" in a.err, a)
    a = store("pull", "Not/Valid:1")
    t.check("a name that is none", a.code == 1 and "repository name" in store("pull", "me/App").err, a)
    t.check("an image that is not there", 'image "none": not found' in store("inspect", "none").err)


def test_credentials(t, folder, registry):
    store, image = Store(folder + "/creds"), images.Image({"secret": b"1"})
    name = registry.put(image, "private/app", "1")
    a = store("pull", name)
    t.check("without credentials it is refused", a.code == 1 and "pull access denied, repository does not exist or may require authorization: "
            "authorization failed: no basic auth credentials" in a.err, a)
    a = store("pull", name, "--creds", "tester:wrong")
    t.check("with wrong ones too", a.code == 1 and "401 Unauthorized" in a.err and "wrong" not in a.err, a)
    t.check("nothing is left", store.ids() == [] and store.files("blobs/sha256") == [])
    t.check("with the right ones it is pulled", store("pull", name, "--creds", registry.CREDS).code == 0)
    os.makedirs(os.path.join(folder, "creds", "docker"))
    with open(os.path.join(folder, "creds", "docker", "config.json"), "w") as f:
        json.dump({"auths": {f"http://{registry.host}/v2/": {"auth": base64.b64encode(registry.CREDS.encode()).decode()}}}, f)
    a = store("pull", name)
    t.check("also with those that docker login left", a.code == 0, a)
    a = store("push", name, f"{registry.host}/private/copy:2")
    t.check("and pushed", a.code == 0 and store("pull", f"{registry.host}/private/copy:2").code == 0, a)


def test_wrong_content(t, folder, registry):
    store, image = Store(folder + "/wrong"), images.Image({"a": noise(50000)}, {"b": noise(60000, 2)})
    name = registry.put(image, "apps/wrong", "1")
    path = registry.blob_file(images.digest(image.layers[1]))
    with open(path, "rb+") as f:
        good = f.read()
        f.seek(1000)
        f.write(b"evil")
    a = store("pull", name)
    t.check("wrong content is refused", a.code == 1 and f'failed commit on ref "layer-{images.digest(image.layers[1])}": unexpected commit digest' in a.err, a)
    t.check("and leaves nothing to see", store.ids() == [] and store.files("ingest") == [], store.files("ingest"))
    with open(path, "wb") as f:
        f.write(good[:30000])
    a = store("pull", name)
    t.check("too little content too", a.code == 1 and "failed" in a.err and store.ids() == [] and store.files("ingest") == [], a)
    with open(path, "wb") as f:
        f.write(good)
    t.check("when it is right again it is pulled", store("pull", name).code == 0)


def test_interrupted(t, folder, registry):
    image = images.Image({"big": noise(3 << 20)})
    registry.put(image, "apps/big", "1")
    size = len(image.layers[0])
    with Proxy(registry.port, limit=size // 3, cuts=2) as proxy:
        store = Store(folder + "/interrupted")
        a = store("pull", f"127.0.0.1:{proxy.port}/apps/big:1", "--plain-http")
        t.check("a download that is cut twice goes on where it was", a.code == 0 and proxy.cuts == 0 and proxy.sent < size * 1.2, (a, proxy.sent))
        t.check("by asking for the rest", sum(b"Range: bytes=" in q for q in proxy.requests) == 2)
    with Proxy(registry.port, delay=0.01) as proxy:
        store = Store(folder + "/killed")
        name = f"127.0.0.1:{proxy.port}/apps/big:1"
        p = store.start("pull", name, "--plain-http")
        ingest = os.path.join(store.folder, "images", "ingest", images.digest(image.layers[0])[7:])
        wait_until(lambda: os.path.exists(ingest) and os.path.getsize(ingest) > size // 4, what="a part of the layer")
        p.send_signal(signal.SIGKILL)
        p.communicate()
        had = os.path.getsize(ingest)
        t.check("a killed pull leaves no image", store.ids() == [])
        proxy.delay, proxy.sent = 0, 0
        a = store("pull", name, "--plain-http")
        t.check("and the next one goes on where it was", a.code == 0 and "resuming" in a.err and proxy.sent < size - had + 20000, (a, had, proxy.sent))
        t.check("leases of the dead go", store.files("leases") == [] and store.ids() == [image.id])


def test_together(t, folder, registry):
    """Several processes and one store."""
    shared, store = {"shared": noise(1 << 20)}, Store(folder + "/together")
    made = [images.Image(shared, {"own": str(i).encode() * 1000}) for i in range(4)]
    for i, image in enumerate(made):
        registry.put(image, "apps/together", str(i))
    with Proxy(registry.port, delay=0.002) as proxy:
        running = [store.start("pull", f"127.0.0.1:{proxy.port}/apps/together:{i}", "--plain-http") for i in range(4)]
        collected = [store("prune") for _ in range(3)]
        ended = [(p.communicate()[1], p.returncode) for p in running]
        t.check("four pulls and collections at the same time", all(code == 0 for _, code in ended) and all(c.code == 0 for c in collected), ended)
        t.check("give four images", sorted(store.ids()) == sorted(i.id for i in made))
        t.check("what they share is fetched once", proxy.sent < 1.5 * len(made[0].layers[0]), proxy.sent)
    t.check("all of it is there", all(store("save", i.id, "-o", "/dev/null").code == 0 for i in made))


def test_mirror(t, folder, registry):
    store, image = Store(folder + "/mirror"), images.Image({"m": b"irror"})
    registry.put(image, "library/mirrored", "1")
    hosts = os.path.join(folder, "hosts", "docker.io")
    os.makedirs(hosts)
    with open(os.path.join(hosts, "hosts.toml"), "w") as f:
        f.write(f'server = "https://127.0.0.1:1"\n[host."http://{registry.host}"]\ncapabilities = ["pull", "resolve"]\n')
    a = store("pull", "mirrored:1", "--hosts-dir", os.path.join(folder, "hosts"))
    t.check("a mirror is asked first", a.code == 0 and store.inspect("mirrored:1")["tags"] == ["docker.io/library/mirrored:1"], a)
    with open(os.path.join(hosts, "hosts.toml"), "a") as f:
        f.write("ca = [\n")
    a = store("pull", "mirrored:1", "--hosts-dir", os.path.join(folder, "hosts"))
    t.check("a mistake in its file is told", a.code == 1 and "hosts.toml: line 5: a value is missing" in a.err, a)


def test_tls(t, folder, registry):
    """A registry with a certificate of its own: only by hosts.toml."""
    made = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=r",
                           "-addext", "subjectAltName=DNS:registry.test", "-keyout", folder + "/key.pem", "-out", folder + "/cert.pem"], capture_output=True)
    if made.returncode != 0:
        t.skip("TLS", "there is no openssl")
        return
    image, store = images.Image({"tls": b"1"}), Store(folder + "/tls")
    registry.put(image, "apps/tls", "1")
    tls = f"  tls:\n    certificate: {folder}/cert.pem\n    key: {folder}/key.pem\n"
    other = images.Registry(folder + "/tls-registry", more=tls)
    shutil.copytree(registry.data, other.data)

    def answers():
        try:
            socket.create_connection(("127.0.0.1", other.port)).close()
            return True
        except OSError:
            return False
    other.answers = answers
    with other:
        a = store("pull", f"{other.host}/apps/tls:1")
        t.check("on this machine any certificate will do", a.code == 0, a)
        hosts = os.path.join(folder, "tls-hosts", "registry.test")
        os.makedirs(hosts)
        with open(hosts + "/hosts.toml", "w") as f:
            f.write(f'server = "https://{other.host}"\nca = "{folder}/cert.pem"\n')
        a = store("pull", "registry.test/apps/tls:1", "--hosts-dir", folder + "/tls-hosts")
        t.check("with a CA the name counts", a.code == 1 and "certificate" in a.err, a)
        with open(hosts + "/hosts.toml", "a") as f:
            f.write("skip_verify = true\n")
        a = store("pull", "registry.test/apps/tls:1", "--hosts-dir", folder + "/tls-hosts")
        t.check("unless told otherwise", a.code == 0, a)


class TokenRegistry:
    """One image, behind tokens: blobs are redirected to a storage elsewhere that must not see them. The first `busy` answers are 503."""

    def __init__(self, image, user="u", password="p", refresh="again", busy=0):
        self.image, self.basic, self.refresh, self.busy, self.seen = image, f"{user}:{password}", refresh, busy, []
        self.registry, self.storage = images.Server(self.answer_registry), images.Server(self.answer_storage)
        self.host = self.registry.host

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for server in (self.registry, self.storage):
            server.__exit__()

    def token(self, q, body):
        url, form = urllib.parse.urlsplit(q.path), urllib.parse.parse_qs(body)
        want = urllib.parse.parse_qs(url.query) if q.command == "GET" else form
        self.seen.append((q.command, want.get("service"), want.get("scope")))
        basic = "Basic " + base64.b64encode(self.basic.encode()).decode()
        good = q.headers.get("Authorization") == basic if q.command == "GET" else form.get("refresh_token") == [self.refresh]
        key = "token" if q.command == "GET" else "access_token"
        return (200, {}, json.dumps({key: "T0ken"}).encode()) if good else (401, {}, b"{}")

    def answer_registry(self, q, body):
        if self.busy:
            self.busy -= 1
            return 503, {}, b""
        if q.path.startswith("/token"):
            return self.token(q, body)
        if q.headers.get("Authorization") != "Bearer T0ken":
            challenge = f'Bearer realm="http://{self.host}/token",service="the registry",scope="repository:a/b:pull"'
            return 401, {"WWW-Authenticate": challenge}, b"{}"
        if "/manifests/" in q.path:
            return 200, {"Content-Type": images.MANIFEST, "Docker-Content-Digest": self.image.digest}, self.image.manifest
        return 307, {"Location": f"http://{self.storage.host}/{q.path.split('/')[-1]}?signed=1"}, b""

    def answer_storage(self, q, _):
        self.seen.append(("storage", q.headers.get("Authorization")))
        data = self.image.blobs().get(q.path[1:].split("?")[0])
        return (200, {}, data) if data else (404, {}, b"")


def test_tokens(t, folder, _):
    store, image = Store(folder + "/tokens"), images.Image({"t": b"oken"})
    with TokenRegistry(image, busy=2) as r:
        name = f"{r.host}/a/b:1"
        a = store("pull", name, "--creds", "u:p")
        t.check("a token is asked for with the credentials, and busy servers are asked again", a.code == 0 and store.ids() == [image.id], a)
        t.check("once, for this repository", [x for x in r.seen if x[0] == "GET"] == [("GET", ["the registry"], ["repository:a/b:pull"])], r.seen)
        t.check("it is not shown to where blobs are redirected to", [x for x in r.seen if x[0] == "storage"] == [("storage", None)] * 2, r.seen)
        a = store("pull", name)
        t.check("without credentials there is none", a.code == 1 and "failed to authorize: failed to fetch anonymous token: unexpected status from GET request to "
                f"http://{r.host}/token?service=the+registry&scope=repository%3Aa%2Fb%3Apull: 401 Unauthorized" in a.err, a)
        os.makedirs(store.env["DOCKER_CONFIG"])
        with open(store.env["DOCKER_CONFIG"] + "/config.json", "w") as f:
            json.dump({"auths": {r.host: {"identitytoken": r.refresh}}}, f)
        t.check("an identity token is another way", store("pull", name).code == 0 and r.seen[-1] == ("POST", ["the registry"], ["repository:a/b:pull"]), r.seen)
        with open(store.env["DOCKER_CONFIG"] + "/config.json", "w") as f:
            json.dump({"auths": {}, "credHelpers": {r.host: "pass"}}, f)
        a = store("pull", name)
        t.check("a helper is not called in silence", a.code == 1 and "docker-credential-pass, which is not supported" in a.err, a)


def test_push(t, folder, registry):
    store, other, image = Store(folder + "/push"), Store(folder + "/push2"), images.Image(images.busybox())
    archive = folder + "/push.tar"
    image.docker_archive(archive, "local/app:1")
    a = store("load", archive)
    t.check("an archive of Docker is loaded", a.code == 0 and a.out == "docker.io/local/app:1\n", a)
    to = f"{registry.host}/pushed/app:1"
    a = store("push", "local/app:1", to)
    t.check("and pushed", a.code == 0 and a.out == to + "\n", a)
    a = store("push", "local/app:1", to)
    t.check("a second time there is nothing to send", a.code == 0 and a.err.count("exists") == 2, a)
    a = other("pull", to)
    t.check("and pulled back with the same id", a.code == 0 and other.ids() == store.ids() == [image.id], a)


def test_archives(t, folder, _):
    store, image = Store(folder + "/archives"), images.Image(images.busybox(), {"x": b"y"})
    image.layout(folder + "/layout", "example.com/laid/out:2")
    a = store("load", folder + "/layout")
    t.check("an OCI layout is loaded from a folder", a.code == 0 and a.out == "example.com/laid/out:2\n" and store.ids() == [image.id], a)
    with tarfile.open(folder + "/layout.tar.xz", "w:xz", preset=0) as tar:
        for entry in sorted(os.listdir(folder + "/layout")):
            tar.add(os.path.join(folder, "layout", entry), entry)
    again = Store(folder + "/archives2")
    with open(folder + "/layout.tar.xz", "rb") as f:
        a = again("load", stdin=f)
    t.check("and from a compressed archive on standard input", a.code == 0 and again.ids() == [image.id], a)
    for form in ("docker", "oci"):
        path = f"{folder}/saved-{form}.tar"
        a = store("save", "example.com/laid/out:2", "-o", path, "--format", form)
        third = Store(f"{folder}/archives-{form}")
        b = third("load", path)
        t.check(f"what is saved as {form} is loaded again", a.code == 0 and b.code == 0 and third.ids() == [image.id] and
                b.out == "example.com/laid/out:2\n", (a, b))
    os.makedirs(folder + "/out-layout")
    a = store("save", image.id, "-o", folder + "/out-layout", "--format", "oci")
    t.check("a layout is saved into a folder", a.code == 0 and sorted(os.listdir(folder + "/out-layout")) == ["blobs", "index.json", "oci-layout"], a)
    skopeo = peers.find("skopeo", peers.PEERS["skopeo"])
    for source in (f"docker-archive:{folder}/saved-docker.tar", f"oci-archive:{folder}/saved-oci.tar:example.com/laid/out:2", f"oci:{folder}/out-layout"):
        what = f"skopeo reads {source.split(':')[0]}"
        p = skopeo and subprocess.run([skopeo, "inspect", "--config", source], capture_output=True, text=True, env=peers.libraries())
        if not p or "error while loading shared" in p.stderr:
            t.skip(what, "there is no skopeo")
        else:
            t.check(what, p.returncode == 0 and json.loads(p.stdout)["config"] == {"Cmd": ["sh"]}, p.stderr)
    if skopeo:
        p = subprocess.run([skopeo, "copy", "--insecure-policy", f"oci:{folder}/out-layout", f"docker-archive:{folder}/skopeo.tar:from/skopeo:3"],
                           capture_output=True, text=True, env=peers.libraries())
        a = third("load", folder + "/skopeo.tar")
        t.check("and what it wrote is loaded", p.returncode == 0 and a.out == "docker.io/from/skopeo:3\n", (p.stderr, a))


def test_hostile_archives(t, folder, _):
    store, image = Store(folder + "/hostile"), images.Image({"a": b"b"}, compress=False)

    def archive(files):
        with open(folder + "/hostile.tar", "wb") as f:
            f.write(images.layer(files))
        a = store("load", folder + "/hostile.tar")
        return a.code == 1 and store.ids() == [] and a.err

    def docker(config, layers, **files):
        return archive({"config": image.config, "layer": image.layers[0], **files,
                        "manifest.json": json.dumps([{"Config": config, "RepoTags": ["a:1"], "Layers": layers}]).encode()})
    t.check("no image", "unrecognized image format" in archive({"x": b"y"}))
    with open(folder + "/noise.tar", "wb") as f:
        f.write(noise(5000))
    a = store("load", folder + "/noise.tar")
    t.check("no archive", a.code == 1 and "noise.tar: Unrecognized archive format" in a.err, a)
    t.check("links to the outside", "is missing" in docker("c", ["layer"], c="../../../../etc/passwd"))
    t.check("links in a circle", "is missing" in docker("c", ["layer"], c="d", d="c"))
    t.check("fewer layers than it says", "mismatched image rootfs" in docker("config", []))
    t.check("a name that is none", "invalid reference format" in archive({
        "config": image.config, "layer": image.layers[0],
        "manifest.json": json.dumps([{"Config": "config", "RepoTags": ["../../x:1"], "Layers": ["layer"]}]).encode()}))
    t.check("an index of nothing", "sha256 digest" in archive({"oci-layout": b"{}", "index.json": json.dumps({"manifests": [{"digest": "sha256:../../x"}]}).encode()}))
    t.check("too many files", "more than 20000 files" in archive({f"f{i}": None for i in range(20001)}))
    t.check("nothing is visible, and prune removes what came", store("prune").code == 0 and store.files("blobs/sha256") == [])


def test_import(t, folder, _):
    store, files = Store(folder + "/import"), images.busybox()
    with open(folder + "/root.tar", "wb") as f:
        f.write(images.layer(files))
    subprocess.run(["gzip", "-k", "-1", folder + "/root.tar"], check=True)
    with open(folder + "/config.json", "w") as f:
        json.dump({"config": {"Entrypoint": ["/bin/sh"]}}, f)
    a = store("import", folder + "/root.tar.gz", "made/here", "--config", folder + "/config.json")
    x = store.inspect("made/here:latest")
    t.check("a root file system becomes an image", a.code == 0 and x["diff_ids"] == [images.digest(images.layer(files))] and
            x["config"]["config"] == {"Entrypoint": ["/bin/sh"]} and x["config"]["architecture"] == images.ARCH, (a, x))
    with open(folder + "/no.tar", "wb") as f:
        f.write(noise(3000))
    a = store("import", folder + "/no.tar", "made/wrong")
    t.check("but only a tar", a.code == 1 and "no.tar" in a.err, a)


def test_pinned(t, folder, _):
    store = Store(folder + "/pinned")
    for i in range(2):
        with open(folder + "/pin.tar", "wb") as f:
            f.write(images.layer({"n": str(i).encode()}))
        store("import", folder + "/pin.tar", "pinned/app")
        if i == 0:
            first = store.ids()[0]
            a = store("pin", "pinned/app")
            t.check("an image is pinned", a.code == 0 and store.inspect(first)["pinned"] is True, a)
    t.check("the one that took its name is not", store.inspect("pinned/app")["pinned"] is False)
    store("prune")
    t.check("though it has no name any more it is not pruned", first in store.ids() and store("save", first, "-o", "/dev/null").code == 0)
    a = store("unpin", first)
    store("prune")
    t.check("until it is unpinned", a.code == 0 and first not in store.ids() and len(store.files("blobs/sha256")) == 3, a)
    t.check("what is not there cannot be pinned", store("pin", "pinned/none").code == 1)


def test_remove(t, folder, registry):
    store = Store(folder + "/remove")
    base = {"base": noise(10000, 7)}
    one, two = images.Image(base, {"1": b"1"}), images.Image(base, {"2": b"2"})
    names = [registry.put(one, "rm/one", "1"), registry.put(one, "rm/one", "latest"), registry.put(two, "rm/two", "1")]
    for name in names:
        store("pull", name)
    a = store("rm", names[0])
    t.check("one of two tags is removed alone", a.code == 0 and store.inspect(one.id)["tags"] == [names[1]], a)
    a = store("rm", names[1])
    t.check("the image goes with the last one", a.code == 0 and store.ids() == [two.id] and "freed" in a.out, a)
    t.check("and what it alone needed, not what others share", len(store.files("blobs/sha256")) == 4, store.files("blobs/sha256"))
    t.check("what is gone cannot be removed", store("rm", names[1]).code == 1)
    registry.put(one, "rm/two", "1")
    store("pull", names[2])
    t.check("a tag that moves leaves the old image to its digest", store.inspect(names[2])["id"] == one.id and
            store.inspect(two.id)["tags"] == [])
    store("rm", two.id[7:20], one.id)
    t.check("after all there is nothing", store.files("blobs/sha256") == [] and store.ids() == [])
    t.check("wrong usage", store("pull").code == 2 and store("nonsense").code == 2)

def test_media_types(t, folder, registry):
    store = Store(folder + "/media")
    for docker, kind in ((True, images.DOCKER_LIST), (False, images.INDEX)):
        plain, later, other = (images.Image({"a": (name + kind).encode()}, arch=arch, variant=variant, docker=docker) for name, arch, variant in
                               (("plain", images.ARCH, None), ("later", images.ARCH, "v9"), ("other", "mips64", None)))
        name, index = registry.put_index([other, later, plain], "apps/kinds", kind.split(".")[1], kind)
        a = store("pull", name)
        x = store.inspect(name)
        t.check(f"of {kind} the plain one for this machine is taken", a.code == 0 and x["id"] == plain.id and x["manifest"] == plain.digest and
                x["digests"] == [f"{registry.host}/apps/kinds@{index}"], (a, x))
        name = registry.put(plain, "apps/kind", kind.split(".")[1])
        a = store("pull", f"{name}@{plain.digest}")
        t.check("and a manifest alone, by tag and digest", a.code == 0 and f"{registry.host}/apps/kind@{plain.digest}" in store.inspect(plain.id)["digests"], a)
        to = f"{registry.host}/apps/again:{kind.split('.')[1]}"
        a = store("push", plain.id, to)
        status, headers, body = registry.request("GET", f"/v2/apps/again/manifests/{plain.digest}")
        t.check("which is pushed as what it is", a.code == 0 and status == 200 and headers["Content-Type"] == plain.media_type and body == plain.manifest, a)


def test_retries(t, folder, _):
    image, times = images.Image({"a": noise(1000)}), []
    # what each request for the layer is answered with first
    faults = [(500, {}), (502, {}), (429, {"Retry-After": "1"})]

    def before(q, _):
        if q.path.endswith(images.digest(image.layers[0])):
            times.append(time.monotonic())
            if faults:
                return (*faults.pop(0), b"")
        return None
    with images.OneImage(image, before) as r:
        store = Store(folder + "/retries")
        a = store("pull", f"{r.host}/a/b:1")
        t.check("a server that is busy is asked again", a.code == 0 and len(times) == 4, (a, times))
        t.check("when it wants", times[-1] - times[-2] >= 1, times)
    with images.OneImage(image, lambda q, _: (503, {}, b"")) as r:
        a = store("pull", f"{r.host}/a/c:1")
        t.check("but not for ever", a.code == 1 and len(r.seen) == 4 and f"unexpected status from HEAD request to http://{r.host}/v2/a/c/manifests/1: "
                "503 Service Unavailable" in a.err, (a, len(r.seen)))


def test_parallel(t, folder, _):
    """Layers come side by side, and not more than a few."""
    image = images.Image(*({f"f{i}": noise(5000, i)} for i in range(6)))
    lock, now, most = threading.Condition(), [0], [0]

    def before(q, _):
        if "/blobs/" in q.path:
            with lock:
                now[0] += 1
                most[0] = max(most[0], now[0])
                lock.notify_all()
                lock.wait_for(lambda: most[0] > 2, 5)
            time.sleep(0.02)
            with lock:
                now[0] -= 1
        return None
    with images.OneImage(image, before) as r:
        a = Store(folder + "/parallel")("pull", f"{r.host}/a/b:1")
        t.check("three layers at a time", a.code == 0 and most[0] == 3, (a, most))


def test_lies(t, folder, _):
    """Servers that send something else than they should."""
    image = images.Image({"a": noise(1000)})
    evil = images.Image({"a": b"evil"})
    layer, config = images.digest(image.layers[0]), image.id

    def answering(part, data, **headers):
        return lambda q, _: (200, headers, data) if part in q.path and q.command == "GET" else None

    def cut(part):
        def before(q, _):
            if part in q.path and q.command == "GET":
                q.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nshort")
                q.connection.shutdown(socket.SHUT_RDWR)
            return None
        return before
    lies = {
        "the manifest": (answering("/manifests/", evil.manifest, **{"Content-Type": images.MANIFEST}), f'failed commit on ref "manifest-{image.digest}": unexpected commit digest'),
        "the configuration": (answering(config, image.config.replace(b"linux", b"xunil")), "unexpected commit digest"),
        "a longer configuration": (answering(config, image.config + b" "), "failed size validation"),
        "an unfinished manifest": (cut("/manifests/sha256"), "unexpected EOF"),
        "a shorter layer": (answering(layer, image.layers[0][:500]), "failed size validation"),
        "a page of HTML": (answering("/manifests/", b"<html>", **{"Content-Type": "text/html"}), "unexpected commit digest"),
    }
    for i, (what, (before, text)) in enumerate(lies.items()):
        with images.OneImage(image, before) as r:
            store = Store(f"{folder}/lies{i}")
            a = store("pull", f"{r.host}/a/b:1")
            t.check(f"{what} that is wrong is refused", a.code == 1 and text in a.err and store.ids() == [] and store.files("leases") == [], a)
            r.before = None
            a = store("pull", f"{r.host}/a/b:1")
            t.check("and forgotten", a.code == 0 and store.ids() == [image.id] and store.files("ingest") == [] and len(store.files("blobs/sha256")) == 3, a)


def test_killed_often(t, folder, registry):
    """^C and kill -9 at moments that nobody chose: no half image, and the next pull does it."""
    made = [images.Image({"a": noise(600 << 10, 50 + i)}, {"b": noise(400 << 10, 60 + i)}) for i in range(2)]
    for i, image in enumerate(made):
        registry.put(image, "apps/often", str(i))
    chance, partly = random.Random(os.getpid()), 0
    with Proxy(registry.port, delay=0.003) as proxy:
        store, names = Store(folder + "/often"), [f"127.0.0.1:{proxy.port}/apps/often:{i}" for i in range(2)]
        begun = time.monotonic()
        store("pull", names[0], "--plain-http")
        usual = time.monotonic() - begun
        store("rm", names[0])
        for round in range(10):
            sig = signal.SIGINT if round % 3 == 2 else signal.SIGKILL
            running = [store.start("pull", name, "--plain-http") for name in names]
            time.sleep(chance.uniform(0, 1.2) * usual)
            for p in running:
                p.send_signal(sig)
                p.communicate()
            ended = [p.returncode for p in running]
            if sig == signal.SIGINT:
                t.check("^C ends it", all(code in (0, 1, -signal.SIGINT, 130) for code in ended), ended)
            whole = store.ids()
            partly += bool(os.path.exists(store.folder + "/images/ingest") and store.files("ingest"))
            for image in whole:
                a = store("save", image, "-o", "/dev/null")
                t.check("what is visible is whole", a.code == 0, a)
            if whole:
                store("rm", *whole)
        proxy.delay = 0
        ended = [store("pull", name, "--plain-http") for name in names]
        t.check("in the end both are pulled", all(a.code == 0 for a in ended) and sorted(store.ids()) == sorted(i.id for i in made), ended)
    t.check("some were killed midway", partly > 0, partly)
    store("prune")
    left = {part: store.files(part) for part in ("ingest", "leases", "trash")}
    t.check("and nothing is left behind", not any(left.values()) and len(store.files("blobs/sha256")) == 8 and
            sorted(os.listdir(store.folder + "/images")) == ["blobs", "images.json", "ingest", "leases", "lock", "trash"], left)


def test_hosts(t, folder, _):
    """What hosts.toml says, each to a server that insists on it."""
    ca = images.certificate(folder, "ca", "DNS:ca")
    server = images.certificate(folder, "server", "IP:127.0.0.1", ca)
    client = images.certificate(folder, "client", "DNS:client", ca)
    image = images.Image({"h": b"osts"})
    hosts = os.path.join(folder, "all-hosts", "registry.test")
    os.makedirs(hosts)

    def pull(text, name="registry.test/a/b:1", what="hosts"):
        with open(hosts + "/hosts.toml", "w") as f:
            f.write(text)
        store = Store(f"{folder}/{what}-{random.random()}")
        return store("pull", name, "--hosts-dir", os.path.join(folder, "all-hosts"))
    with images.OneImage(image, tls=server) as r:
        a = pull(f'server = "https://{r.host}"\n')
        t.check("a certificate of an unknown authority is refused", a.code == 1 and "certificate" in a.err, a)
        a = pull(f'server = "https://{r.host}"\nca = "../../ca.pem"\n')
        t.check("with its CA, by a path beside the file, it is not", a.code == 0, a)
        a = pull(f'server = "https://{r.host}"\nca = ["{ca[0]}", "{folder}/missing.pem"]\n')
        t.check("a CA that is not there is told", a.code == 1 and "unable to read CA cert: " in a.err, a)
    with images.OneImage(image, tls=server, client_ca=ca[0]) as r:
        a = pull(f'server = "https://{r.host}"\nca = "{ca[0]}"\n')
        t.check("without a client certificate that is wanted it fails", a.code == 1, a)
        a = pull(f'server = "https://{r.host}"\nca = "{ca[0]}"\nclient = [["{client[0]}", "{client[1]}"]]\n')
        t.check("with one it does not", a.code == 0, a)
    with images.OneImage(image, prefix="/cache/proxy") as r:
        at = f"http://{r.host}/cache/proxy"
        a = pull(f'[host."{at}"]\noverride_path = true\n[host."{at}".header]\nx-team = "blue"\nAuthorization = "Basic eDp5"\n')
        t.check("override_path takes the path as it is", a.code == 0 and all(p.startswith("/cache/proxy/a/b/") for _, p, _ in r.seen), (a, r.seen))
        t.check("a mirror is told whose it is", all(p.endswith("?ns=registry.test") for _, p, _ in r.seen), r.seen)
        t.check("and gets the headers", all(h.get("X-Team") == "blue" and h.get("Authorization") == "Basic eDp5" for _, _, h in r.seen), r.seen)
    with images.OneImage(image) as first, images.OneImage(image) as second:
        a = pull(f'server = "http://{second.host}"\n[host."http://{first.host}"]\ncapabilities = ["pull"]\n')
        t.check("one that only pulls is not asked what a tag is", a.code == 0 and [m for m, _, _ in second.seen] == ["HEAD"] and
                {m for m, _, _ in first.seen} == {"GET"}, (a, first.seen, second.seen))
        first.seen, second.seen = [], []
        a = pull(f'server = "http://{second.host}"\n[host."http://{first.host}"]\ncapabilities = ["resolve"]\n')
        t.check("one that only resolves is not pulled from", a.code == 0 and first.seen == [], (a, first.seen))
        first.before = lambda q, _: (404, {}, b"") if "/blobs/" in q.path else None
        a = pull(f'server = "http://{second.host}"\n[host."http://{first.host}"]\n')
        t.check("what a mirror lacks comes from the registry", a.code == 0 and any("/blobs/" in p for _, p, _ in second.seen), a)
        begun = time.monotonic()
        a = pull(f'server = "http://{second.host}"\n[host."http://127.0.0.1:1"]\n')
        t.check("and all, without waiting, when it is not there", a.code == 0 and time.monotonic() - begun < 3, a)


def test_proxy(t, folder, registry):
    """By HTTP_PROXY and HTTPS_PROXY; the names exist for the proxy alone."""
    image = images.Image({"p": b"roxy"})
    registry.put(image, "apps/proxy", "1")
    name = f"registry.test:{registry.port}/apps/proxy:1"

    def pull(what, *args, name=name, **env):
        store = Store(f"{folder}/proxy-{what}")
        store.env = {**{k: v for k, v in store.env.items() if not k.lower().endswith("_proxy")}, **env}
        return store("pull", name, *args)
    with images.WebProxy(credentials="me:pass word") as proxy:
        at = f"http://me:pass%20word@127.0.0.1:{proxy.port}"
        a = pull("plain", "--plain-http", HTTP_PROXY=at)
        t.check("a registry without TLS is reached by a proxy", a.code == 0 and ("HEAD", f"http://registry.test:{registry.port}/v2/apps/proxy/manifests/1") in proxy.seen,
                (a, proxy.seen))
        proxy.seen.clear()
        a = pull("no", "--plain-http", http_proxy=at, no_proxy=f"other.io,.test:{registry.port}")
        t.check("unless NO_PROXY names it", a.code == 1 and "registry.test: no such host" in a.err and proxy.seen == [], (a, proxy.seen))
        a = pull("local", "--plain-http", name=f"{registry.host}/apps/proxy:1", HTTP_PROXY=at)
        t.check("or it is on this machine", a.code == 0 and proxy.seen == [], (a, proxy.seen))
        a = pull("refused", "--plain-http", HTTP_PROXY=f"127.0.0.1:{proxy.port}")
        t.check("a proxy that refuses is told", a.code == 1 and "manifests/1: 407" in a.err, a)
        a = pull("gone", "--plain-http", HTTP_PROXY="http://127.0.0.1:1")
        t.check("one that is not there too", a.code == 1 and "proxyconnect tcp: dial tcp 127.0.0.1:1: connect: connection refused" in a.err, a)
        server = images.certificate(folder, "proxied", "DNS:registry.test")
        hosts = os.path.join(folder, "proxy-hosts", "registry.test")
        with images.OneImage(image, tls=server) as r:
            os.makedirs(f"{hosts}_{r.port}_")
            with open(f"{hosts}_{r.port}_/hosts.toml", "w") as f:
                f.write(f'ca = "{server[0]}"\n')
            proxy.seen.clear()
            a = pull("tls", "--hosts-dir", folder + "/proxy-hosts", name=f"registry.test:{r.port}/a/b:1", https_proxy=at, HTTP_PROXY="http://127.0.0.1:1")
            t.check("one with TLS too, verified", a.code == 0 and set(proxy.seen) == {("CONNECT", f"registry.test:{r.port}")}, (a, proxy.seen))
            a = pull("tls-refused", "--hosts-dir", folder + "/proxy-hosts", name=f"registry.test:{r.port}/a/b:1", HTTPS_PROXY=f"127.0.0.1:{proxy.port}")
            t.check("and a refusal there", a.code == 1 and "Proxy Authentication Required" in a.err, a)


def test_realm(t, folder, _):
    """Tokens come from a server of their own, with rules of its own. A proxy gives both names that are not of this machine."""
    image = images.Image({"r": b"ealm"})
    ca = images.certificate(folder, "realm-ca", "DNS:ca")
    of_registry, of_auth = (images.certificate(folder, n, f"DNS:{n}.test", ca) for n in ("registry", "auth"))

    def before(q, _):
        if q.headers.get("Authorization") == "Bearer T":
            return None
        return 401, {"WWW-Authenticate": f'Bearer realm="https://auth.test:{auth.port}/token",service="s",scope="repository:a/b:pull"'}, b""

    def hosts(**files):
        top = os.path.join(folder, f"realm-hosts-{random.random()}")
        for name, text in files.items():
            port = {"registry": r.port, "auth": auth.port}[name]
            os.makedirs(f"{top}/{name}.test_{port}_")
            with open(f"{top}/{name}.test_{port}_/hosts.toml", "w") as f:
                f.write(text)
        return top

    def pull(**files):
        store = Store(f"{folder}/realm-{random.random()}")
        store.env = {**store.env, "HTTPS_PROXY": f"127.0.0.1:{proxy.port}", "NO_PROXY": ""}
        return store("pull", f"registry.test:{r.port}/a/b:1", "--creds", "u:p", "--hosts-dir", hosts(**files))
    tokens = []

    def token(q, _):
        tokens.append(q.headers.get("Authorization"))
        return 200, {}, b'{"token": "T"}'
    with images.WebProxy() as proxy, images.OneImage(image, before, tls=of_registry) as r, images.Server(token, tls=of_auth) as auth:
        a = pull(registry="skip_verify = true\n")
        t.check("skip_verify of the registry is not for who hands out tokens", a.code == 1 and "auth.test" in a.err and "certificate" in a.err and tokens == [], (a, tokens))
        a = pull(registry="skip_verify = true\n", auth=f'ca = "{ca[0]}"\n')
        t.check("that server has its own CA", a.code == 0 and tokens, (a, tokens))
        t.check("or its own skip_verify", pull(registry=f'ca = "{ca[0]}"\n', auth="skip_verify = true\n").code == 0)
        t.check("or is signed by whom the registry is signed by", pull(registry=f'ca = "{ca[0]}"\n').code == 0)


def test_mount(t, folder, registry):
    image = images.Image({"a": noise(200000, 9)}, {"b": noise(100000, 8)})
    name = registry.put(image, "mount/from", "1")
    with Proxy(registry.port) as proxy:
        store, host = Store(folder + "/mount"), f"127.0.0.1:{proxy.port}"
        store("pull", f"{host}/mount/from:1", "--plain-http")
        asked = len(proxy.requests)
        a = store("push", f"{host}/mount/from:1", f"{host}/mount/to:2", "--plain-http")
        sent = sum(map(len, proxy.requests[asked:]))
        t.check("what the registry has in another repository it takes over", a.code == 0 and a.err.count("mounted") == 3 and sent < 10000, (a, sent))
        other = Store(folder + "/mount2")
        t.check("and has it there", other("pull", f"{registry.host}/mount/to:2").code == 0 and other.ids() == [image.id])
        # a repository that the registry does not have
        image.docker_archive(folder + "/mount.tar", f"{host}/mount/never:1")
        store = Store(folder + "/mount3")
        store("load", folder + "/mount.tar")
        a = store("push", f"{host}/mount/never:1", f"{host}/mount/new:1", "--plain-http")
        t.check("else it is sent", a.code == 0 and "mounted" not in a.err and other("pull", f"{registry.host}/mount/new:1").code == 0, a)
    del name


def test_terminal(t, folder, registry):
    """Bars on a terminal, lines elsewhere."""
    image = images.Image({"big": noise(1 << 20, 77)})
    registry.put(image, "apps/bars", "1")
    with Proxy(registry.port, delay=0.004) as proxy:
        store, name = Store(folder + "/terminal"), f"127.0.0.1:{proxy.port}/apps/bars:1"
        ours, theirs = pty.openpty()
        p = subprocess.Popen(store.command("pull", name, "--plain-http"), stdout=subprocess.PIPE, stderr=theirs, env=store.env)
        os.close(theirs)
        seen = b""
        try:
            while part := os.read(ours, 65536):
                seen += part
        except OSError:
            pass  # a terminal that nobody writes to any more
        os.close(ours)
        p.communicate()
        short = images.digest(image.layers[0])[7:19].encode()
        t.check("a terminal shows a bar that grows", p.returncode == 0 and b"\x1b[2A" in seen and b">  " in seen and
                short + b": done        [" + b"=" * 30 + b"] 1.0/1.0 MB" in seen, seen[-500:])
        states = [line for line in seen.split(b"\r\n") if short + b": downloading" in line]
        t.check("in steps", len(set(states)) > 2, states)
        proxy.delay = 0
        a = Store(folder + "/terminal2")("pull", name, "--plain-http")
        t.check("elsewhere there is a line for each, at its end", a.code == 0 and "\x1b" not in a.err and
                sorted(a.err.split("\n")[:2])[0].endswith(" MB)") and a.err.count(": done (") == 2 and "downloading" not in a.err, a)
        a = Store(folder + "/terminal3")("pull", name, "--plain-http", "-q")
        t.check("and nothing when it is told to be quiet", a.code == 0 and a.err == "" and a.out.strip() == image.id, a)


def test_skopeo(t, folder, registry):
    """To and fro by way of every form that both know: digests stay."""
    skopeo = peers.find("skopeo", peers.PEERS["skopeo"])

    def run(*args):
        p = subprocess.run([skopeo, *args], capture_output=True, text=True, env=peers.libraries())
        return p.stdout if p.returncode == 0 else p.stderr
    if not skopeo or "skopeo version" not in run("--version"):
        t.skip("skopeo", "there is none")
        return
    copy = ["copy", "--insecure-policy", "--preserve-digests", "--src-tls-verify=false", "--dest-tls-verify=false"]
    for docker in (False, True):
        image, what = images.Image(images.busybox(), {"s": b"kopeo"}, docker=docker), "docker" if docker else "oci"
        name = registry.put(image, "skopeo/app", what)
        # theirs to us
        said = run(*copy, f"docker://{name}", f"dir:{folder}/sk-dir-{what}")
        archive = f"{folder}/sk-{what}.tar"
        if not docker:
            said += run(*copy, f"docker://{name}", f"oci-archive:{archive}:example.com/sk/app:1")
        else:
            said += run("copy", "--insecure-policy", "--src-tls-verify=false", f"docker://{name}", f"docker-archive:{archive}:example.com/sk/app:1")
        store = Store(f"{folder}/sk-store-{what}")
        a = store("load", archive)
        x = store.inspect("example.com/sk/app:1") if a.code == 0 else {}
        t.check(f"what skopeo copied to a {what} archive is loaded as the same image", x.get("id") == image.id and (docker or x["manifest"] == image.digest), (a, said))
        # ours to them
        store = Store(f"{folder}/sk-ours-{what}")
        store("pull", name)
        saved = f"{folder}/sk-saved-{what}.tar"
        store("save", name, "-o", saved, "--format", what)
        if not docker:
            said = run(*copy, f"oci-archive:{saved}:{name}", f"docker://{registry.host}/skopeo/back:{what}")
            status, _, _ = registry.request("GET", f"/v2/skopeo/back/manifests/{image.digest}")
            t.check("what we saved skopeo pushes under the same digest", status == 200, (said, status))
        else:
            said = run("inspect", "--raw", "--config", f"docker-archive:{saved}")
            t.check("what we saved has the same configuration to skopeo", images.digest(said.encode()) == image.id, said)
        to = f"{registry.host}/skopeo/pushed:{what}"
        a = store("push", name, to)
        said = run("inspect", "--tls-verify=false", "--format", "{{.Digest}}", f"docker://{to}")
        t.check("and what we pushed the same digest", a.code == 0 and said.strip() == image.digest, (a, said))


TESTS = [test_pull, test_platforms, test_media_types, test_errors, test_wrong_content, test_lies, test_interrupted, test_killed_often, test_retries, test_parallel,
         test_together, test_mirror, test_hosts, test_tls, test_proxy, test_tokens, test_realm, test_push, test_mount, test_archives, test_skopeo,
         test_hostile_archives, test_import, test_pinned, test_remove, test_terminal]

if __name__ == "__main__":
    with Folder() as top:
        if not images.Registry.available() or not os.path.exists(images.BUSYBOX):
            print("1..0 # SKIP docker-registry or busybox-static cannot be had")
            sys.exit(0)
        with images.Registry(top + "/registry") as plain, images.Registry(top + "/private", users=True) as private:
            def bound(test, registry):
                def call(t):
                    test(t, top, registry)
                call.__name__ = test.__name__
                return call
            tap.run([bound(test, plain) for test in TESTS] + [bound(test_credentials, private)])
