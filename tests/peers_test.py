#!/usr/bin/env python3
"""What c8s writes, read by programs that are not ours: kubectl, etcd, protoc, PyYAML."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402
from cluster import free_port  # noqa: E402
from peers import find  # noqa: E402

C8S = os.environ["C8S"]
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Texts that a careless emitter would turn into something else.
TRICKY = ["yes", "1e3", "0x1F", "0777", "1_000", "null", "~", "2001-01-01", "a: b", "# no", "-", "", " lead", "trail ", "it's", 'say "hi"',
          "tab\there", "multi\nline\n", "multi\nline", "\nfirst", "é ünï \u2028", "*a", "&b", "!c", "%d", "@e", "`f", "y", "N", "on", ".inf", "=", "<<",
          "long " * 40, "{}", "[", "key: 'v'\n  deeper\n", "\x07bell", "1:30", "0b1", "+1", "12e03", "---", "...", "? x", "| y", "> z"]

# Types of their own to PyYAML when they stand alone, and plain texts to Kubernetes' parser and ours.
PYYAML_ONLY = ["=", "<<"]

POD = {
    "apiVersion": "v1", "kind": "Pod",
    "metadata": {"name": "web", "annotations": {f"a{i}": text for i, text in enumerate(TRICKY)}},
    "spec": {"containers": [{"name": "web", "image": "nginx", "args": TRICKY}]},
}


def convert(data, out):
    r = subprocess.run([C8S, "convert", "-o", out], input=data, capture_output=True, timeout=60, check=True)
    return r.stdout


def test_yaml(t):
    """PyYAML reads YAML 1.1 as we write it."""
    try:
        import yaml
    except ImportError:
        t.skip("PyYAML reads our YAML", "python3-yaml is not installed")
        return
    pod = {**POD, "spec": {"containers": [{"name": "web", "args": [s for s in TRICKY if s not in PYYAML_ONLY]}]}}
    pod["metadata"] = {"name": "web"}
    text = convert(json.dumps(pod).encode(), "yaml")
    got = yaml.safe_load(text)
    want = json.loads(convert(json.dumps(pod).encode(), "json"))
    t.check("PyYAML reads our YAML", got == want, text.decode())


def test_kubectl(t):
    """kubectl prints an object, read from our YAML, with the same bytes."""
    kubectl = find("kubectl", "kubernetes-client")
    if not kubectl:
        t.skip("kubectl prints the same YAML", "there is no kubectl")
        return
    ours = convert(json.dumps(POD).encode(), "yaml")
    with tempfile.NamedTemporaryFile(suffix=".yaml") as f:
        f.write(ours)
        f.flush()
        r = subprocess.run([kubectl, "patch", "--local", "-f", f.name, "-p", "{}", "-o", "yaml"], capture_output=True, timeout=60)
    t.check("kubectl prints the same YAML", r.stdout == ours, r.stderr.decode() + r.stdout.decode())


def test_protoc(t):
    """protoc takes our protobuf apart: the envelope, and the message in it."""
    if not shutil.which("protoc"):
        t.skip("protoc reads our protobuf", "protobuf-compiler is not installed")
        return
    pb = convert(json.dumps(POD).encode(), "protobuf")
    r = subprocess.run(["protoc", "--decode_raw"], input=pb[4:], capture_output=True, timeout=60)
    text = r.stdout.decode()
    t.check("protoc reads our protobuf", r.returncode == 0 and '1: "v1"' in text and '2: "Pod"' in text and '2: "nginx"' in text, r.stderr.decode() + text[:500])


def wait_for(etcdctl, seconds=20):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if subprocess.run(etcdctl + ["endpoint", "health"], capture_output=True).returncode == 0:
            return True
        time.sleep(0.05)
    return False


def test_etcd(t):
    """Through a real etcd and back, as etcdctl prints it."""
    name = "an object goes through etcd unchanged"
    etcd_path, ctl_path = find("etcd", "etcd-server"), find("etcdctl", "etcd-client")
    if not etcd_path or not ctl_path:
        t.skip(name, "there is no etcd")
        return
    client, peer = free_port(), free_port()
    with tempfile.TemporaryDirectory() as folder:
        etcd = subprocess.Popen([etcd_path, "--data-dir", folder, "--listen-client-urls", f"http://127.0.0.1:{client}",
                                 "--advertise-client-urls", f"http://127.0.0.1:{client}", "--listen-peer-urls", f"http://127.0.0.1:{peer}",
                                 "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}",
                                 "--initial-cluster", f"default=http://127.0.0.1:{peer}", "--logger", "zap", "--log-level", "error"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            ctl = ["env", "ETCDCTL_API=3", ctl_path, f"--endpoints=127.0.0.1:{client}"]
            if not wait_for(ctl):
                t.check(name, False, "etcd did not start")
                return
            want = convert(json.dumps(POD).encode(), "json")
            key = "/registry/pods/default/web"
            subprocess.run(ctl + ["put", key], input=convert(want, "protobuf"), check=True, capture_output=True)
            value = subprocess.run(ctl + ["get", "--print-value-only", key], check=True, capture_output=True).stdout
            pair = subprocess.run(ctl + ["get", key], check=True, capture_output=True).stdout
            t.check(name, convert(value, "json") == want)
            t.check("with its key before it too", convert(pair, "json") == want)
        finally:
            etcd.kill()
            etcd.wait()


if __name__ == "__main__":
    tap.run([test_yaml, test_kubectl, test_protoc, test_etcd])
