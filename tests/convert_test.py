#!/usr/bin/env python3
"""c8s convert as a user meets it: forms, errors, and input that means harm. Needs C8S, the program to test."""
import os
import random
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402

C8S = os.environ["C8S"]
SANITIZED = b"__asan_init" in open(C8S, "rb").read() or b"__tsan_init" in open(C8S, "rb").read()
SECONDS = 60
MEMORY = 2 << 30

POD = b"""\
apiVersion: v1
kind: Pod
metadata:
  name: web
  labels: {app: web, "1": "yes"}
spec:
  containers:
  - name: web
    image: nginx
    ports:
    - containerPort: 80
    resources:
      requests: {cpu: 0.5, memory: 1024Mi}
"""


def limit_memory():
    """Address space; sanitizers reserve terabytes of it, so they are left alone."""
    if not SANITIZED:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def convert(data, *args):
    return subprocess.run([C8S, "convert", *args], input=data, capture_output=True, timeout=SECONDS, preexec_fn=limit_memory)


def refused(t, name, data, *args, message=""):
    """An error on standard error, nothing on standard output, exit code 1."""
    r = convert(data, *args)
    text = r.stderr.decode(errors="replace")
    t.check(name, r.returncode == 1 and text.startswith("c8s convert: ") and message in text and not r.stdout,
            f"exit {r.returncode}\nstdout {r.stdout[:200]!r}\nstderr {text[:2000]}\nwanted {message!r}")


def test_forms(t):
    pb = convert(POD, "-o", "protobuf")
    t.check("YAML to protobuf", pb.returncode == 0 and pb.stdout.startswith(b"k8s\0"), pb.stderr)
    json = convert(pb.stdout, "-o", "json")
    t.check("protobuf to JSON", b'"memory": "1Gi"' in json.stdout and b'"cpu": "500m"' in json.stdout, json.stdout + json.stderr)
    back = convert(json.stdout, "-o", "protobuf")
    t.check("JSON to protobuf gives the same bytes", back.stdout == pb.stdout)
    yaml = convert(json.stdout, "-o", "yaml")
    t.check("strings that look like other types are quoted in YAML", b'    "1": "yes"\n' in yaml.stdout, yaml.stdout)
    t.check("YAML and back gives the same bytes", convert(yaml.stdout, "-o", "protobuf").stdout == pb.stdout)
    etcd = convert(b"/registry/pods/default/web\n" + pb.stdout + b"\n", "-o", "json")
    t.check("what etcdctl prints is read", etcd.stdout == json.stdout, etcd.stderr)
    kv = convert(b'{"key": "L2E=", "createRevision": 3, "value": "eA=="}', "-t", "mvccpb.KeyValue", "-o", "protobuf")
    t.check("messages of etcd are plain protobuf", kv.stdout == b"\x0a\x02/a\x10\x03\x2a\x01x", kv.stdout + kv.stderr)
    t.check("an unknown type is wrong usage", convert(POD, "-t", "core/v1.Podd").returncode == 2)
    for letter in ("-i", "-o"):
        t.check(f"an unknown form for {letter} is wrong usage", convert(POD, letter, "xml").returncode == 2)


def test_documents(t):
    two = convert(POD + b"---\n# nothing here\n---\n" + POD.replace(b"name: web\n  labels", b"name: two\n  labels"), "-o", "yaml")
    t.check("several documents", two.stdout.count(b"kind: Pod") == 2 and two.stdout.count(b"---\n") == 1, two.stdout + two.stderr)
    refused(t, "several documents have no protobuf form", POD + b"---\n" + POD, "-o", "protobuf", message="one object")
    refused(t, "nothing is not an object", b"", message="no object")
    custom = convert(b"kind: Widget\napiVersion: example.com/v1\nspec: {b: 1, a: [x, null]}\n", "-o", "json")
    t.check("a custom resource passes through", custom.returncode == 0 and custom.stdout.index(b'"a"') < custom.stdout.index(b'"b"'),
            custom.stdout + custom.stderr)
    refused(t, "a custom resource has no protobuf form", b"kind: Widget\napiVersion: example.com/v1\n", "-o", "protobuf",
            message="Widget")
    refused(t, "an object without a kind", b'{"apiVersion":"v1"}', message="Object 'Kind' is missing")


def test_fields(t):
    unknown = convert(POD.replace(b"    image:", b"    imagee: x\n    image:"), "-o", "json")
    t.check("an unknown field is a warning", unknown.returncode == 0
            and b'warning: unknown field "spec.containers[0].imagee"' in unknown.stderr, unknown.stderr)
    refused(t, "with --strict it is an error", POD.replace(b"    image:", b"    imagee: x\n    image:"), "--strict",
            message='strict decoding error: unknown field "spec.containers[0].imagee"')
    refused(t, "a mistyped field", POD.replace(b"containerPort: 80", b"containerPort: http"),
            message="cannot unmarshal string into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32")
    refused(t, "a quantity that is none", POD.replace(b"1024Mi", b"1024Mx"), message="quantities must match")


def test_validate(t):
    ok = convert(POD, "--validate", "-o", "json")
    t.check("a valid pod gets its defaults", ok.returncode == 0 and b'"terminationGracePeriodSeconds": 30' in ok.stdout
            and b'"protocol": "TCP"' in ok.stdout and b'"imagePullPolicy": "Always"' in ok.stdout, ok.stdout + ok.stderr)
    bad = convert(POD.replace(b"name: web\n    image", b"name: Web_\n    image").replace(b"containerPort: 80", b"containerPort: 80000"),
                  "--validate")
    text = bad.stderr.decode()
    t.check("all errors are shown at once, as the API server words them", bad.returncode == 1 and not bad.stdout
            and text.startswith('Pod "web" is invalid: [') and 'spec.containers[0].name: Invalid value: "Web_": ' in text
            and 'spec.containers[0].ports[0].containerPort: Invalid value: 80000: must be between 1 and 65535, inclusive' in text, text)


def test_hostile(t):
    refused(t, "cut off JSON", b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"we', message="line 1, column 55")
    refused(t, "a syntax error names its place", b'{"apiVersion":"v1",\n"kind":"Pod",}', message="line 2, column 14")
    refused(t, "100,000 levels of lists", b'{"apiVersion":"v1","kind":"X","a":' + b"[" * 100000, message="exceeded max depth")
    refused(t, "100,000 levels of objects", b'{"apiVersion":"v1","kind":"X","a":' + b'{"a":' * 100000, message="exceeded max depth")
    refused(t, "100,000 levels of YAML flow", b"a: " + b"[" * 100000)
    refused(t, "100,000 levels of YAML blocks", b"apiVersion: v1\nkind: X\nspec:\n" + b"- " * 100000)
    bomb = b"a: &a [x,x,x,x,x,x,x,x,x,x]\n" + b"".join(
        b"%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n" % ((c, c) + (c - 1,) * 10) for c in range(ord("b"), ord("z")))
    refused(t, "an alias bomb", b"apiVersion: v1\nkind: X\n" + bomb, message="excessive aliasing")
    refused(t, "an alias of itself", b"apiVersion: v1\nkind: X\na: &a [*a]\n")
    claims = b"k8s\0\x0a\x05\x0a\x02v1\x12\x80\x80\x80\x80\x04"  # a length of 1 GiB
    refused(t, "a length of 1 GiB that is not there", claims, message="unexpected EOF")
    refused(t, "a length of 2^63", b"k8s\0\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f")
    refused(t, "an unending varint", b"k8s\0" + b"\xff" * 1000, message="integer overflow")
    refused(t, "an unknown kind in protobuf", b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Foo\x12\x00", message="Foo")
    bad_utf8 = convert(b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"k":"\xff\xfe"}}', "-o", "json")
    t.check("invalid UTF-8 becomes U+FFFD, as in Kubernetes", bad_utf8.returncode == 0
            and b'"k": "\\ufffd\\ufffd"' in bad_utf8.stdout or "\ufffd\ufffd".encode() in bad_utf8.stdout, bad_utf8.stdout + bad_utf8.stderr)
    refused(t, "a NUL in YAML", b"a: \0b\n")
    refused(t, "a file that does not exist", b"", "-f", "/nonexistent/pod.yaml", message="No such file")
    refused(t, "a folder", b"", "-f", "/")


def survives(data, *args):
    """Either converted or refused with a message, and by no signal."""
    r = convert(data, *args)
    return r.returncode == 0 or (r.returncode == 1 and r.stderr.startswith((b"c8s convert: ", b"warning: "))), r


def test_damaged(t):
    """Every truncation and a thousand seeded bit flips of one object in each form."""
    rng = random.Random(36)
    pb = convert(POD, "-o", "protobuf").stdout
    json = convert(POD, "-o", "json").stdout
    for form, data in (("protobuf", pb), ("json", json), ("yaml", POD)):
        step = 1 if len(data) < 150 else len(data) // 150
        bad = [n for n in range(0, len(data), step) if not survives(data[:n], "-i", form)[0]]
        t.check(f"truncated {form}", not bad, f"cut at {bad}")
        bad = []
        for _ in range(150):
            copy = bytearray(data)
            for _ in range(rng.randint(1, 4)):
                at = rng.randrange(len(copy))
                copy[at] ^= 1 << rng.randrange(8)
            ok, r = survives(bytes(copy), "-i", form)
            if not ok:
                bad.append((bytes(copy), r.returncode, r.stderr[-300:]))
        t.check(f"bit flips in {form}", not bad, bad[:2])


def test_file(t):
    with tempfile.NamedTemporaryFile(suffix=".yaml") as f:
        f.write(POD)
        f.flush()
        r = convert(b"", "-f", f.name, "--output=json")
        t.check("-f reads a file", r.returncode == 0 and b'"kind": "Pod"' in r.stdout, r.stderr)


if __name__ == "__main__":
    tap.run([test_forms, test_documents, test_fields, test_validate, test_hostile, test_damaged, test_file])
