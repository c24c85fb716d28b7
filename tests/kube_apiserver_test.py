#!/usr/bin/env python3
"""c8s kube-apiserver as an administrator meets it: flags, the files it makes, starting, stopping. Needs C8S, the program to test."""
import os
import re
import select
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402

C8S = os.environ["C8S"]
SECONDS = 60
READY = re.compile(r"ready at https://([^:]+|\[[^]]+\]):(\d+)")


def run(*args, program=C8S, command=("kube-apiserver",)):
    return subprocess.run([program, *command, *args], capture_output=True, text=True, timeout=SECONDS)


class Server:
    """A server that is running, until the end of the with block."""

    def __init__(self, *args, program=C8S, command=("kube-apiserver",)):
        self.process = subprocess.Popen([program, *command, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.line = ""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end and not self.line.endswith("\n"):
            if select.select([self.process.stdout], [], [], 1)[0]:
                chunk = os.read(self.process.stdout.fileno(), 4096).decode()
                if not chunk:
                    break
                self.line += chunk
        found = READY.search(self.line)
        self.port = int(found.group(2)) if found else 0

    def stop(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            _, errors = self.process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            _, errors = self.process.communicate()
        return self.process.returncode, errors.decode(errors="replace")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def certificate(port, ca):
    """The serving certificate as a client sees it that trusts this authority."""
    context = ssl.create_default_context(cafile=ca)
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as plain:
        with context.wrap_socket(plain, server_hostname="localhost") as tls:
            return tls.getpeercert()


def test_usage(t):
    rows = [
        (["--secure-prot=1"], "option --secure-prot=1 is not known; did you mean --secure-port?"),
        (["--xyzzy"], "option --xyzzy is not known\n"),
        (["--secure-port=abc"], 'invalid argument "abc" for "--secure-port" flag: strconv.ParseInt: parsing "abc": invalid syntax'),
        (["--secure-port", "70000"], "--secure-port 70000 must be between 1 and 65535, inclusive."),
        (["--request-timeout=5"], 'invalid argument "5" for "--request-timeout" flag: time: missing unit in duration "5"'),
        (["--profiling", "false"], "unexpected argument 'false'"),
        (["--profiling=perhaps"], 'flag: strconv.ParseBool: parsing "perhaps": invalid syntax'),
        (["--bind-address=localhost"], 'failed to parse IP: "localhost"'),
        (["--tracing-config-file=/x"], "not supported by c8s yet: --tracing-config-file=/x"),
        (["--service-cluster-ip-range=nonsense"], "service-cluster-ip-range[0] is not a valid cidr"),
        (["--service-cluster-ip-range=10.0.0.0/30"], "must be at least 8 IP addresses"),
        (["--service-cluster-ip-range=10.0.0.0/24,10.1.0.0/24"], "must be of different IP family"),
        (["--service-cluster-ip-range=10.0.0.0/24,fd00::/112,fd01::/112"], "must not contain more than two entries"),
        (["--service-node-port-range=5-1"], "end port cannot be less than start port: 5-1"),
        (["--runtime-config=apps/v7=true"], "group version apps/v7 that has not been registered"),
        (["--feature-gates=Nonsense=true"], "unrecognized feature gate: Nonsense"),
        (["--feature-gates=NodeSwap=false"], "cannot set feature gate NodeSwap to false, feature is locked to true"),
        (["--feature-gates=ClusterTrustBundle"], "missing bool value for ClusterTrustBundle"),
        (["--feature-gates=ClusterTrustBundle=maybe"], 'invalid value of ClusterTrustBundle=maybe, err: strconv.ParseBool: parsing "maybe"'),
        (["--feature-gates=ClusterTrustBundleProjection=true"],
         "ClusterTrustBundleProjection is enabled, but depends on features that are disabled: [ClusterTrustBundle]"),
        (["--tls-cert-file=x"], "--tls-cert-file and --tls-private-key-file belong together"),
        (["--etcd-servers=host:2379"], "is not a URL as https://host:2379"),
        (["--advertise-address=fd00::1"], 'service IP family "10.0.0.0/24" must match public address family "fd00::1"'),
    ]
    for args, message in rows:
        r = run(*args, "--data-dir=/nonexistent/x")
        t.check(f"refuses {args[0]}", r.returncode == 2 and message in r.stderr, f"exit {r.returncode}\n{r.stderr}\nwanted {message}")


def test_help(t):
    r = run("--help")
    t.check("--help shows flags by groups", r.returncode == 0 and "Secure serving:" in r.stdout and "--tls-cert-file TEXT" in r.stdout, r.stdout)
    r = run("--version")
    t.check("--version", r.returncode == 0 and r.stdout.startswith("Kubernetes v1."), r.stdout)


def test_life(t):
    with tempfile.TemporaryDirectory() as parent:
        dir_ = os.path.join(parent, "made", "here")
        with Server("--data-dir", dir_, "--secure-port=0", "--bind-address=127.0.0.1") as s:
            t.check("says where it listens", s.port > 0 and f"--kubeconfig {dir_}/admin.conf" in s.line, s.line + s.stop()[1] if not s.port else "")
            names = certificate(s.port, f"{dir_}/pki/ca.crt")["subjectAltName"]
            wanted = {("DNS", n) for n in ("kubernetes", "kubernetes.default", "kubernetes.default.svc",
                                           "kubernetes.default.svc.cluster.local", "localhost")}
            wanted |= {("IP Address", a) for a in ("127.0.0.1", "10.0.0.1")}
            t.check("its certificate has the usual names", wanted <= set(names), names)
            modes = {f: stat.S_IMODE(os.stat(os.path.join(dir_, f)).st_mode) for f in ("pki/ca.key", "pki/sa.key", "admin.conf", "state.db")}
            t.check("secrets are for the owner alone", set(modes.values()) == {0o600}, modes)
            conf = open(f"{dir_}/admin.conf").read()
            t.check("admin.conf names the server", f"server: https://127.0.0.1:{s.port}\n" in conf, conf)

            r = run("--data-dir", dir_, "--secure-port=0")
            t.check("a second server on the directory is refused",
                    r.returncode == 1 and f"in use by another c8s kube-apiserver, process {s.process.pid};" in r.stderr, r.stderr)
            r = run("--data-dir", os.path.join(parent, "other"), f"--secure-port={s.port}", "--bind-address=127.0.0.1")
            t.check("a second server on the port is refused",
                    r.returncode == 1 and f"port {s.port} of 127.0.0.1 is taken by another program" in r.stderr, r.stderr)
            r = run("--data-dir", dir_, command=("certs",))
            t.check("certs shows when they end", r.returncode == 0 and r.stdout.count("days left), renewed from") == 8, r.stdout + r.stderr)
            code, errors = s.stop()
            t.check("SIGTERM stops it in good order", code == 0, f"exit {code}\n{errors}")

        before = {f: open(f"{dir_}/pki/{f}").read() for f in os.listdir(f"{dir_}/pki")}
        with Server("--data-dir", dir_, "--secure-port=0", "--bind-address=127.0.0.1", "--service-cluster-ip-range=10.7.0.0/16") as s:
            after = {f: open(f"{dir_}/pki/{f}").read() for f in os.listdir(f"{dir_}/pki")}
            changed = [f for f in before if before[f] != after[f]]
            t.check("a restart keeps what is there, and renews what no longer fits", changed == ["apiserver.crt"], changed)
            code, errors = s.stop(signal.SIGINT)
            t.check("SIGINT stops it too", code == 0, f"exit {code}\n{errors}")


def test_certificates_by_name(t):
    """--tls-sni-cert-key: names in the flag, else those of the certificate; others get the usual one."""
    with tempfile.TemporaryDirectory() as dir_:
        for name in ("flag", "own"):
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                            "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}.example", "-keyout", f"{dir_}/{name}.key",
                            "-out", f"{dir_}/{name}.crt"], check=True, capture_output=True, timeout=SECONDS)
        with Server("--data-dir", f"{dir_}/d", "--secure-port=0", "--bind-address=127.0.0.1",
                    f"--tls-sni-cert-key={dir_}/flag.crt,{dir_}/flag.key:a.example,*.b.example",
                    f"--tls-sni-cert-key={dir_}/own.crt,{dir_}/own.key") as s:
            rows = [("a.example", "flag"), ("x.b.example", "flag"), ("own.example", "own"), ("flag.example", "kube-apiserver"),
                    ("localhost", "kube-apiserver")]
            for name, wanted in rows:
                r = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{s.port}", "-servername", name], input="",
                                   capture_output=True, text=True, timeout=SECONDS)
                got = re.search(r"^subject=.*CN ?= ?(\S+)", r.stdout, re.M)
                t.check(f"{name} gets the certificate of {wanted}", got and got.group(1) == wanted, r.stdout[:400] + r.stderr)


def test_directory_errors(t):
    with tempfile.TemporaryDirectory() as parent:
        file = os.path.join(parent, "file")
        open(file, "w").close()
        r = run("--data-dir", os.path.join(file, "x"))
        t.check("a data directory that cannot be", r.returncode == 1 and "the data directory cannot be used" in r.stderr, r.stderr)
        r = run("--data-dir", parent, command=("certs",))
        t.check("certs without certificates", r.returncode == 1 and "there are no certificates in" in r.stderr, r.stderr)


def test_kubeadm(t):
    """The command line of kubeadm's static pod, with files of an earlier run in place of kubeadm's, and called by name."""
    with tempfile.TemporaryDirectory() as parent:
        dir_ = os.path.join(parent, "d")
        with Server("--data-dir", dir_, "--secure-port=0", "--bind-address=127.0.0.1") as s:
            t.check("made files", s.port > 0, s.line)
        pki = f"{dir_}/pki"
        program = os.path.join(parent, "kube-apiserver")
        os.symlink(C8S, program)
        args = [
            "--advertise-address=127.0.0.1", "--allow-privileged=true", "--authorization-mode=Node,RBAC",
            f"--client-ca-file={pki}/ca.crt", "--enable-admission-plugins=NodeRestriction", "--enable-bootstrap-token-auth=true",
            f"--kubelet-client-certificate={pki}/apiserver-kubelet-client.crt", f"--kubelet-client-key={pki}/apiserver-kubelet-client.key",
            "--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",
            f"--proxy-client-cert-file={pki}/front-proxy-client.crt", f"--proxy-client-key-file={pki}/front-proxy-client.key",
            "--requestheader-allowed-names=front-proxy-client", f"--requestheader-client-ca-file={pki}/front-proxy-ca.crt",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-", "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-username-headers=X-Remote-User", "--secure-port=0", "--bind-address=127.0.0.1",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local", f"--service-account-key-file={pki}/sa.pub",
            f"--service-account-signing-key-file={pki}/sa.key", "--service-cluster-ip-range=10.96.0.0/12",
            f"--tls-cert-file={pki}/apiserver.crt", f"--tls-private-key-file={pki}/apiserver.key",
        ]
        other = os.path.join(parent, "other")
        with Server(*args, "--data-dir", other, program=program, command=()) as s:
            t.check("kubeadm's flags are understood", s.port > 0 and certificate(s.port, f"{pki}/ca.crt") is not None, s.line)
            t.check("nothing is made that flags name", not os.path.exists(f"{other}/pki") and not os.path.exists(f"{other}/admin.conf"))
            code, errors = s.stop()
            t.check("what has no effect yet is said", code == 0 and "--proxy-client-cert-file, --proxy-client-key-file" in errors, errors)
        shutil.rmtree(other)


tap.run([test_usage, test_help, test_life, test_certificates_by_name, test_directory_errors, test_kubeadm])
