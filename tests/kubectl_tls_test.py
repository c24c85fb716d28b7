#!/usr/bin/env python3
"""How our kubectl meets servers: keys of all sorts that Kubernetes takes, old and new TLS, and what it says when something is wrong with a
certificate or a key. The client alone knows only a part of OpenSSL's algorithms; `c8s kubectl`, which knows them all, must not be able to
tell. Also what our API server lets others see of its TLS. Needs C8S, the program to test, KUBECTL, the client alone, and openssl."""
import http.server
import os
import ssl
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402
from cluster import C8S, Folder, Server  # noqa: E402

KUBECTL = os.environ.get("KUBECTL", os.path.join(os.path.dirname(C8S), "kubectl"))
KEYS = {
    "RSA": ["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
    "RSA, its own form": ["genrsa", "-traditional"],
    "P-256": ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
    "P-256, its own form": ["ecparam", "-name", "prime256v1", "-genkey"],
    "P-384": ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"],
    "P-521": ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-521"],
    "Ed25519": ["genpkey", "-algorithm", "ED25519"],
}


def openssl(*args):
    r = subprocess.run(["openssl", *args], capture_output=True)
    if r.returncode:
        raise RuntimeError(f"openssl {' '.join(args)}: {r.stderr.decode()}")


class World:
    """Authorities, and pairs of files of a certificate and its key. One certificate is enough for both sides."""

    def __init__(self, path):
        self.path = path

    def at(self, name):
        return os.path.join(self.path, name)

    def authority(self, name, kind="P-256"):
        openssl(*KEYS[kind], "-out", self.at(name + ".key"))
        openssl("req", "-x509", "-new", "-key", self.at(name + ".key"), "-subj", "/CN=" + name, "-days", "2", "-out", self.at(name + ".crt"))

    def pair(self, name, kind, ca="ca", sans="IP:127.0.0.1,DNS:localhost", digest="-sha256"):
        openssl(*KEYS[kind], "-out", self.at(name + ".key"))
        openssl("req", "-new", "-key", self.at(name + ".key"), "-subj", "/CN=" + name, "-out", self.at("request"))
        with open(self.at("extensions"), "w") as f:
            f.write("subjectAltName=" + sans)
        openssl("x509", "-req", "-in", self.at("request"), "-CA", self.at(ca + ".crt"), "-CAkey", self.at(ca + ".key"), "-set_serial", "7", "-days", "2",
                "-extfile", self.at("extensions"), digest, "-out", self.at(name + ".crt"))


class Tells(http.server.BaseHTTPRequestHandler):
    """Answers with how the client came."""

    def do_GET(self):
        cert = self.connection.getpeercert()
        name = dict(part[0] for part in cert["subject"])["commonName"] if cert else "nobody"
        body = f"{name} by {self.connection.version()}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class Quiet(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass


class Https:
    """A server with a certificate of the world's; set: what else its context is told."""

    def __init__(self, w, name, set=None):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(w.at(name + ".crt"), w.at(name + ".key"))
        context.load_verify_locations(w.at("ca.crt"))
        context.verify_mode = ssl.CERT_OPTIONAL
        if set:
            set(context)
        self.http = Quiet(("127.0.0.1", 0), Tells)
        self.http.socket = context.wrap_socket(self.http.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self.http.server_address[1]

    def __enter__(self):
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()


class Kubectl:
    def __init__(self, t, w):
        self.t, self.w = t, w

    def both(self, server, *flags, ca="ca", pair=None):
        """What the client alone and `c8s kubectl` make of a question to the server: exit codes, and what is printed."""
        args = ["get", "--raw", "/who", f"--server=https://127.0.0.1:{server.port}", *flags]
        args += [f"--certificate-authority={self.w.at(ca + '.crt')}"] if ca else []
        args += [f"--client-certificate={self.w.at(pair[0] + '.crt')}", f"--client-key={self.w.at(pair[1] + '.key')}"] if pair else []
        env = {**os.environ, "HOME": self.w.path, "KUBECONFIG": ""}
        runs = [subprocess.run([*program, *args], capture_output=True, text=True, timeout=60, env=env) for program in ([KUBECTL], [C8S, "kubectl"])]
        return [(r.returncode, r.stdout + r.stderr) for r in runs]

    def says(self, name, want, server, *flags, code=0, **how):
        """Both print that at the end."""
        got = self.both(server, *flags, **how)
        self.t.check(name, all(r[0] == code and r[1].endswith(want) for r in got), got)


def sorts_of_keys(k, w):
    for i, kind in enumerate(KEYS):
        w.pair(f"sort{i}", kind)
        with Https(w, f"sort{i}") as s:
            k.says(f"both sides have a key of sort {kind}", f"sort{i} by TLSv1.3\n", s, pair=(f"sort{i}", f"sort{i}"))


def authorities(k, w):
    for i, (kind, digest) in enumerate((("RSA", "-sha384"), ("P-384", "-sha512"), ("Ed25519", "-sha256"))):
        w.authority(f"ca{i}", kind)
        w.pair(f"of{i}", "P-256", f"ca{i}", digest=digest)
        with Https(w, f"of{i}") as s:
            k.says(f"an authority with a key of sort {kind}", "nobody by TLSv1.3\n", s, ca=f"ca{i}")


def versions(k, w):
    def old(ciphers):
        def set(context):
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            context.set_ciphers(ciphers)
        return set
    for name, ciphers in (("sort2", "ECDHE-ECDSA-AES256-GCM-SHA384"), ("sort0", "ECDHE-RSA-AES128-GCM-SHA256"), ("sort0", "ECDHE-RSA-CHACHA20-POLY1305"),
                          ("sort2", "ECDHE-ECDSA-AES128-SHA"), ("sort0", "ECDHE-RSA-AES256-SHA")):
        with Https(w, name, old(ciphers)) as s:
            k.says(f"TLS 1.2 with {ciphers}", "sort4 by TLSv1.2\n", s, pair=("sort4", "sort4"))
    for curve in ("prime256v1", "secp384r1", "secp521r1"):
        with Https(w, "sort2", lambda context: context.set_ecdh_curve(curve)) as s:
            k.says(f"a server that insists on {curve}", "nobody by TLSv1.3\n", s)


def errors(k, w):
    w.authority("other")
    w.pair("elsewhere", "P-256", sans="IP:127.0.0.2")
    openssl("rsa", "-aes256", "-traditional", "-passout", "pass:secret", "-in", w.at("sort1.key"), "-out", w.at("old-password.key"))
    openssl("pkey", "-aes256", "-passout", "pass:secret", "-in", w.at("sort2.key"), "-out", w.at("password.key"))
    with open(w.at("garbage.key"), "w") as f:
        f.write("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
    with Https(w, "sort2") as s:
        k.says("an authority that is not known", "tls: failed to verify certificate: x509: certificate signed by unknown authority\n", s, ca="other", code=1)
        k.says("nobody looks at the certificate", "nobody by TLSv1.3\n", s, "--insecure-skip-tls-verify", ca=None)
        k.says("another name of the server", "nobody by TLSv1.3\n", s, "--tls-server-name=localhost")
        for what, pair in (("a key of another certificate", ("sort2", "sort4")), ("a key of another sort", ("sort2", "sort0")),
                           ("a key with a password", ("sort2", "password")), ("the same in the old form", ("sort1", "old-password")),
                           ("a key that is none", ("sort2", "garbage"))):
            ours, whole = k.both(s, pair=pair)
            k.t.check(f"both programs say the same of {what}", ours == whole and ours[0] == 1 and ": " in ours[1], (ours, whole))
    with Https(w, "elsewhere") as s:
        k.says("a certificate of another address", "x509: certificate is valid for 127.0.0.2, not 127.0.0.1\n", s, code=1)


def own_server(t, w):
    """Its certificate's file has no more than the certificate, and every connection begins anew."""
    server = Server(w.at("server")).start()
    r = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{server.port}", "-showcerts", "-ign_eof"],
                       input="GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", capture_output=True, text=True, timeout=30)
    server.stop()
    t.check("the server shows what is in its file", "gitVersion" in r.stdout and r.stdout.count("BEGIN CERTIFICATE") == 1, r.stdout)
    t.check("and gives out no tickets", "gitVersion" in r.stdout and "Session Ticket" not in r.stdout, r.stdout)


t = tap.Tap()
with Folder() as folder:
    w = World(folder)
    w.authority("ca")
    k = Kubectl(t, w)
    sorts_of_keys(k, w)
    authorities(k, w)
    versions(k, w)
    errors(k, w)
    own_server(t, w)
t.close()
