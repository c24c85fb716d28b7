#!/usr/bin/env python3
"""Clients that are wrong, or that mean harm: each gets the answer that Kubernetes gives, or a closed connection, and the server
goes on, in as much memory as before."""
import json
import os
import select
import socket
import ssl
import struct
import sys
import time
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402
from cluster import Folder, Server, wait_until  # noqa: E402

MAPS = "/api/v1/namespaces/default/configmaps"
LIMIT = 3 << 20
AUTH = b"Host: x\r\nAuthorization: Bearer admin-token\r\n"
JSON = "application/json"


def configmap(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def memory(s):
    """The server's resident memory, in MiB."""
    with open(f"/proc/{s.process.pid}/status") as f:
        return int(next(line for line in f if line.startswith("VmRSS:")).split()[1]) // 1024


def told(answer, status, message=None, reason=None):
    """Whether the answer is a Status like this; message may be a part of the whole."""
    if answer.status != status:
        return False
    o = answer.json
    return o["kind"] == "Status" and (message is None or message in o["message"]) and (reason is None or o.get("reason") == reason)


# ---- bodies ----

def test_json(t, s):
    rows = [
        ("not JSON", "{", "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: unexpected end of JSON input"),
        ("nothing", "", None),
        ("a word", "nonsense", "invalid character 'o' in literal null (expecting 'u')"),
        ("two values", '{"apiVersion":"v1","kind":"ConfigMap"} x', "invalid character 'x' after top-level value"),
        ("a list", "[]", "cannot unmarshal array"),
        ("a string", '"x"', "cannot unmarshal string"),
        ("a control character", '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a\nb"}}', "in string literal"),
        ("a bad escape", '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"\\q"}}', "in string escape code"),
        ("a bad number", '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generation":01}}', "after object key:value pair"),
        ("the wrong kind", '{"apiVersion":"v1","kind":"Nope"}', 'Nope in version "v1" cannot be handled as a ConfigMap: no kind "Nope" is registered for version "v1" in scheme "pkg/api/legacyscheme/scheme.go:30"'),
        ("the wrong version", '{"apiVersion":"v99","kind":"ConfigMap"}', 'no kind "ConfigMap" is registered for version "v99"'),
        ("the wrong type", '{"apiVersion":"v1","kind":"ConfigMap","metadata":"x"}', "cannot unmarshal string into Go struct field ConfigMap.metadata of type v1.ObjectMeta"),
        ("a number for a string", '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":1}}', "cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string"),
        ("a list for a map", '{"apiVersion":"v1","kind":"ConfigMap","data":[]}', "cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string"),
        ("a number that is too large", '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generation":1e400}}', None),
        ("protobuf that is none", b"k8s\x00\xff\xff\xff", None),
    ]
    for name, body, message in rows:
        kind = "application/vnd.kubernetes.protobuf" if isinstance(body, bytes) else JSON
        a = s.request("POST", MAPS, body, content_type=kind)
        t.check(f"body: {name}", told(a, 400, message, "BadRequest"), a)
    a = s.request("POST", MAPS, "{}")
    t.check("body: without a kind it is that of the path", told(a, 422, 'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required'), a)


def test_depth(t, s):
    """Nesting far beyond what any object has, in every place where it could be."""
    deep = "[" * 10000 + "]" * 10000
    maps = '{"a":' * 10000 + "1" + "}" * 10000
    for name, body in (("lists", deep), ("maps", maps), ("unclosed", "[" * 1000000), ("in a field", '{"apiVersion":"v1","kind":"ConfigMap","data":{"a":%s}}' % deep),
                       ("in an unknown field", '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"deep"},"zzz":%s}' % maps)):
        a = s.request("POST", MAPS + "?dryRun=All&fieldValidation=Strict", body)
        t.check(f"depth: {name}", told(a, 400), a)
    yaml = "a: " + "[" * 10000
    t.check("depth: YAML", told(s.request("POST", MAPS, yaml, content_type="application/yaml"), 400))
    s.request("POST", MAPS, configmap("deep"))
    for kind in ("merge-patch+json", "strategic-merge-patch+json", "json-patch+json", "apply-patch+yaml"):
        body = '[{"op":"add","path":"/data/x","value":%s}]' % maps if kind == "json-patch+json" else '{"data":{"x":%s}}' % maps
        a = s.request("PATCH", MAPS + "/deep?fieldManager=m", body, content_type="application/" + kind)
        t.check(f"depth: {kind}", a.status in (400, 422, 500) and a.json["kind"] == "Status", a)
    selector = "%28" * 3000
    t.check("depth: a selector", told(s.request("GET", f"{MAPS}?labelSelector={selector}"), 400))


def test_sizes(t, s):
    fits = json.dumps({**configmap("big"), "data": {"x": ""}})
    body = fits.replace('"x": ""', '"x": "' + "y" * (LIMIT + 1 - len(fits)) + '"')
    a = s.request("POST", MAPS, body)
    t.check("size: 3 MiB and a byte", len(body) == LIMIT + 1 and told(a, 413, "Request entity too large: limit is 3145728", "RequestEntityTooLarge"), a)
    a = s.request("POST", MAPS, body.replace("y", "", 1))
    t.check("size: 3 MiB are read, and too much for a ConfigMap", told(a, 422, "Too long: may not be more than 1048576 bytes", "Invalid"), a)
    a = s.request("PATCH", MAPS + "/none", body, content_type="application/merge-patch+json")
    t.check("size: of a patch", told(a, 413, reason="RequestEntityTooLarge"), a)
    sent = raw(s, b"POST %s HTTP/1.1\r\n%sContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" % (MAPS.encode(), AUTH) +
               b"10000\r\n" + b" " * 65536 + b"\r\n", repeat=b"10000\r\n" + b" " * 65536 + b"\r\n", times=60)
    t.check("size: in chunks without an end", status_of(sent) == 413, sent[:300])
    sent = raw(s, b"POST %s HTTP/1.1\r\n%sContent-Length: 999999999999\r\n\r\n{" % (MAPS.encode(), AUTH))
    t.check("size: announced", status_of(sent) == 413, sent[:300])


def test_patches(t, s):
    s.request("POST", MAPS, configmap("patched", a="b"))
    path = MAPS + "/patched"

    def operations(n):
        return [{"op": "add", "path": "/data/k%d" % i, "value": "v"} for i in range(n)]
    kind = "application/json-patch+json"
    a = s.request("PATCH", path, operations(1000), content_type=kind)
    t.check("patch: 1,000 operations", a.status == 200 and len(a.json["data"]) == 1001, a)
    a = s.request("PATCH", path, operations(10001), content_type=kind)
    t.check("patch: 10,001 operations", told(a, 413, "The allowed maximum operations in a JSON patch is 10000, got 10001", "RequestEntityTooLarge"), a)
    copies = [{"op": "add", "path": "/data", "value": {"a": "x" * 1000}}] + [{"op": "copy", "from": "/data", "path": "/data/d"}] * 40
    a = s.request("PATCH", path, copies, content_type=kind, timeout=60)
    t.check("patch: copies of copies of copies", a.status in (400, 413, 422) and a.json["kind"] == "Status", a)
    for body in ("", "{}", "[1]", "[{}]", '[{"op":"nope","path":"/x"}]', '[{"op":"add","path":"x","value":1}]', '[{"op":"remove","path":"/nope/nope"}]', "[null]"):
        a = s.request("PATCH", path, body, content_type=kind)
        t.check(f"patch: {body or 'nothing'}", a.status in (400, 422) and a.json["kind"] == "Status", a)
    a = s.request("PATCH", path, "{}", content_type="text/plain")
    t.check("patch: of an unknown type", told(a, 415, "415: Unsupported Media Type", "UnsupportedMediaType"), a)


def test_utf8(t, s):
    body = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"utf"},"data":{"a":"\xff\xfe\xc3"}}'
    a = s.request("POST", MAPS, body)
    # Go's decoder replaces what is no UTF-8
    t.check("UTF-8: broken in a value", a.status == 201 and a.json["data"]["a"] == "\ufffd" * 3, a)
    a = s.request("POST", MAPS, body.replace(b'"utf"', b'"\xed\xa0\x80"'))
    t.check("UTF-8: a surrogate in a name", told(a, 422, reason="Invalid"), a)
    a = s.request("POST", MAPS, json.dumps({**configmap("nul"), "data": {"a": "\0x"}}))
    t.check("UTF-8: a zero in a value is a character", a.status == 201 and a.json["data"]["a"] == "\0x", a)
    a = s.request("POST", MAPS, '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"lone"},"data":{"a":"\\ud800"}}')
    t.check("UTF-8: half of a pair", a.status == 201 and a.json["data"]["a"] == "\ufffd", a)


# ---- paths and queries ----

def test_paths(t, s):
    rows = [
        ("/api/v1/namespaces/default/configmaps/..", (400, 404)), ("/api/v1/namespaces/default/configmaps/.", (400, 404)),
        ("/api/v1/namespaces/default/configmaps/%2e%2e", (400, 404)), ("/api/v1/namespaces/../secrets", (200, 400, 404, 500)),
        ("/api/v1/namespaces/%2e%2e/configmaps/x", (400, 404)), ("/api/v1/namespaces/default/configmaps/a%2fb", (400, 404)),
        ("/api/v1/namespaces/default%2fconfigmaps/x", (400, 404)), ("/api/v1/namespaces/default/configmaps/%00", (400, 404)),
        ("/api/v1/namespaces/default/configmaps/a%25b", (400, 404)), ("/api/v1/namespaces/default/configmaps/%zz", (400,)),
        ("/api/v1//namespaces/default/configmaps", (200, 301, 404)), ("//api/v1/namespaces", (200, 301, 404)), ("/api/v1/namespaces//configmaps", (200, 400, 404)),
        ("/api/v1/configmaps/x", (404,)), ("/api/v1/pods/x/status", (404,)), ("/api/v1/namespaces/default/nodes", (404,)),
        ("/api/v1/namespaces/default/nodes/x", (404,)), ("/apis/rbac.authorization.k8s.io/v1/namespaces/default/clusterroles", (404,)),
        ("/api/v2/pods", (404,)), ("/api/v1/nothing", (404,)), ("/apis/nothing.example.com/v1/things", (404,)), ("/apis/apps/v9/deployments", (404,)),
        ("/api/v1/namespaces/default/configmaps/" + "x" * 5000, (404, 400)), ("/api/v1/" + "a/" * 100, (404,)), ("/" + "a/" * 5000, (404,)),
        ("/api/v1/namespaces/default/configmaps/x/y/z/w", (404,)), ("/api/v1/namespaces/default/configmaps/x/nosuch", (404,)),
        ("/api/v1/watch", (400, 404)), ("/api/v1/watch/", (400, 404)), ("/nonsense", (404,)), ("/%ff%fe", (404,)), ("/api/v1/namespaces/default/configmaps/%ff", (404, 400)),
    ]
    for path, statuses in rows:
        a = s.request("GET", path)
        t.check(f"path: {path[:70]}", a.status in statuses, a)
    s.request("POST", MAPS, configmap("zero"))
    for path in (MAPS + "/zero%00x", MAPS + "%00x/zero", "/api/v1/namespaces/default%00x/configmaps/zero"):
        for method in ("GET", "DELETE"):
            a = s.request(method, path)
            t.check(f"path: nothing ends at a zero byte: {method} {path}", a.status == 404, a)
    t.check("path: least of all an object", s.request("GET", MAPS + "/zero").status == 200)
    a = s.request("POST", "/api/v1/configmaps", configmap("x"))
    t.check("path: a namespaced object at the cluster's path", a.status == 405, a)
    a = s.request("DELETE", "/api/v1/configmaps")
    t.check("path: everything of all namespaces is not deleted", a.status == 405, a)
    for target in (b"api", b"http://x/api", b"*", b"", b"/a b", b"/a\x01", b"/\xff"):
        sent = raw(s, b"GET %s HTTP/1.1\r\n%s\r\n" % (target, AUTH))
        t.check(f"target: {target!r}", status_of(sent) in (0, 200, 400, 404, 403), sent[:200])


def test_queries(t, s):
    rows = [
        ("limit=abc", 400, 'strconv.ParseInt: parsing "abc": invalid syntax'), ("limit=99999999999999999999", 400, "value out of range"),
        ("labelSelector=a%3D%3D%3Db", 400, "unable to parse requirement: found '=', expected: identifier"),
        ("labelSelector=!", 400, "unable to parse requirement: found '', expected: identifier"),
        ("fieldSelector=metadata.name", 400, "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
        ("fieldSelector=spec.nope%3Dx", 400, '"spec.nope" is not a known field selector: only "metadata.name", "metadata.namespace"'),
        ("continue=bogus", 400, "invalid continue token: continue key is not valid: illegal base64 data at input byte 4"),
        ("continue=" + "A" * 4000, 400, "continue"), ("resourceVersion=abc", 400, 'invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax'),
        ("resourceVersionMatch=Exact", 422, "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"),
        ("resourceVersionMatch=Nope&resourceVersion=1", 422, 'Unsupported value: "Nope": supported values: "Exact", "NotOlderThan", ""'), ("timeout=abc", 400, 'invalid timeout specified in the request URL - time: invalid duration "abc"'),
        ("%zz=1&=&&&a&%", 200, None), ("limit=-1", 200, None), ("a=b;c=d", 200, None), ("x=" + "y" * 60000, 200, None), ("&".join("a=b" for _ in range(5000)), 200, None),
        ("watch=1&timeoutSeconds=abc", 400, "strconv.ParseInt"), ("watch=1&resourceVersion=abc", 500, "strconv.ParseUint"),
        ("watch=1&sendInitialEvents=true", 422, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"), ("watch=1&timeoutSeconds=1&resourceVersion=99999999999999999999999", 500, "value out of range"),
        ("labelSelector=" + ",".join(f"k{i}%3Dv" for i in range(2000)), 200, None),
        ("labelSelector=" + "x" * 300 + "%3Dv", 400, None), ("fieldSelector=" + ",".join("metadata.name%3Dv" for i in range(2000)), 200, None),
    ]
    for query, status, message in rows:
        a = s.request("GET", f"{MAPS}?{query}")
        ok = told(a, status, message) if status != 200 else a.status == 200
        t.check(f"query: {query[:60]}", ok, a)
    for query in ("timeoutSeconds=1&resourceVersion=1", "timeoutSeconds=1&resourceVersion=9223372036854775807", "timeoutSeconds=1&limit=5", "timeoutSeconds=1&continue=x",
                  "timeoutSeconds=1&allowWatchBookmarks=maybe"):
        a = s.request("GET", f"{MAPS}?watch=1&{query}")
        t.check(f"watch: {query}", a.status in (200, 400, 410, 422, 504), a)
    for method in ("NOPE", "TRACE", "CONNECT", "PROPFIND", "get"):
        sent = raw(s, b"%s %s HTTP/1.1\r\n%sConnection: close\r\n\r\n" % (method.encode(), MAPS.encode(), AUTH))
        t.check(f"method: {method}", status_of(sent) in (400, 403, 404, 405, 501), sent[:200])
    a = s.request("PUT", MAPS, configmap("x"))
    t.check("method: PUT of a collection", told(a, 405, "the server does not allow this method on the requested resource", "MethodNotAllowed"), a)


# ---- HTTP/1 ----

def tls(s, protocols=("http/1.1",), timeout=20):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(list(protocols))
    return context.wrap_socket(socket.create_connection(("127.0.0.1", s.port), timeout))


def raw(s, data, repeat=b"", times=0, wait=3):
    """Sends bytes and returns what comes back until the connection ends or nothing more comes."""
    c, got = tls(s), b""
    try:
        c.sendall(data)
        for _ in range(times):
            c.sendall(repeat)
    except OSError:
        pass  # the server has had enough; it may have said why
    c.settimeout(wait)
    try:
        while True:
            chunk = c.recv(65536)
            if not chunk:
                break
            got += chunk
            if complete(got):
                break
    except OSError:
        pass
    c.close()
    return got


def complete(got):
    """Whether the bytes are one whole answer with a length."""
    head, _, body = got.partition(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return len(body) >= int(line.split(b":")[1])
    return False


def status_of(got):
    """The status of the first answer; 0: the connection was closed without one."""
    return int(got.split(b" ", 2)[1]) if got.startswith(b"HTTP/1.") else 0


def test_heads(t, s):
    get = b"GET /version HTTP/1.1\r\n"
    auth = AUTH
    rows = [
        ("a plain request", get + auth + b"\r\n", (200,)),
        ("a huge header", get + auth + b"X: " + b"y" * (2 << 20) + b"\r\n\r\n", (431, 400, 0)),
        ("too many headers", get + auth + b"".join(b"X-%d: y\r\n" % i for i in range(20000)) + b"\r\n", (431, 400, 0)),
        ("a huge request line", b"GET /" + b"a" * (2 << 20) + b" HTTP/1.1\r\n" + auth + b"\r\n", (414, 431, 400, 0)),
        ("no Host", get + b"Authorization: Bearer admin-token\r\n\r\n", (400,)),
        ("two Hosts", get + b"Host: a\r\nHost: b\r\n\r\n", (400,)),
        ("a space in a name", get + auth + b"X y: z\r\n\r\n", (400,)),
        ("a space before the colon", get + auth + b"X : z\r\n\r\n", (400,)),
        ("a control character in a value", get + auth + b"X: a\x01b\r\n\r\n", (400,)),
        ("a zero in a value", get + auth + b"X: a\x00b\r\n\r\n", (400,)),
        ("a lone carriage return", get + auth + b"X: a\rb\r\n\r\n", (400,)),
        ("a folded header", get + auth + b"X: a\r\n b\r\n\r\n", (400,)),
        ("no colon", get + auth + b"nonsense\r\n\r\n", (400,)),
        ("two lengths", b"POST /version HTTP/1.1\r\n" + auth + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", (400,)),
        ("a length that is none", b"POST /version HTTP/1.1\r\n" + auth + b"Content-Length: +1\r\n\r\na", (400,)),
        ("a length below zero", b"POST /version HTTP/1.1\r\n" + auth + b"Content-Length: -1\r\n\r\n", (400,)),
        ("a length beyond numbers", b"POST /version HTTP/1.1\r\n" + auth + b"Content-Length: 99999999999999999999999\r\n\r\n", (400, 413)),
        ("chunks and a length", b"POST /version HTTP/1.1\r\n" + auth + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", (400,)),
        ("an unknown encoding", b"POST /version HTTP/1.1\r\n" + auth + b"Transfer-Encoding: gzip\r\n\r\n", (400, 501)),
        ("chunked twice", b"POST /version HTTP/1.1\r\n" + auth + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", (400, 501)),
        ("HTTP/1.0", b"GET /version HTTP/1.0\r\nAuthorization: Bearer admin-token\r\n\r\n", (200,)),
        ("HTTP/0.9", b"GET /version\r\n\r\n", (400, 505, 0)),
        ("HTTP/3.0", b"GET /version HTTP/3.0\r\n" + auth + b"\r\n", (400, 505)),
        ("HTTP/2 by its name", b"GET /version HTTP/2.0\r\n" + auth + b"\r\n", (400, 505)),
        ("nonsense", b"\x00\x01\x02\x03\r\n\r\n", (400, 0)), ("an empty line first", b"\r\n" + get + auth + b"\r\n", (200, 400)),
        ("a bad chunk", b"POST %s HTTP/1.1\r\n" % MAPS.encode() + auth + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", (400,)),
        ("a chunk beyond numbers", b"POST %s HTTP/1.1\r\n" % MAPS.encode() + auth + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n", (400, 413)),
    ]
    for name, data, statuses in rows:
        sent = raw(s, data)
        t.check(f"head: {name}", status_of(sent) in statuses, sent[:300])


def test_pipelining(t, s):
    one = b"GET /version HTTP/1.1\r\n%s\r\n" % AUTH
    c = tls(s)
    c.sendall(one * 50)
    got, deadline = b"", time.monotonic() + 20
    while got.count(b"HTTP/1.1 200") < 50 and time.monotonic() < deadline:
        got += c.recv(65536)
    c.close()
    t.check("50 requests at once are answered in order", got.count(b"HTTP/1.1 200") == 50)
    sent = raw(s, b"POST %s HTTP/1.1\r\n%sContent-Type: application/json\r\nContent-Length: 4\r\n\r\n{}GET /version HTTP/1.1\r\n\r\n" % (MAPS.encode(), AUTH))
    t.check("a body is no second request", sent.count(b"HTTP/1.1 ") <= 2 and status_of(sent) == 400, sent)


def test_slow(t, s):
    """Clients that say nothing, half a head or half a body, many of them: others are served meanwhile."""
    begun = [tls(s) for _ in range(40)]
    for i, c in enumerate(begun):
        c.sendall((b"", b"GET /ver", b"POST %s HTTP/1.1\r\n%sContent-Length: 100\r\n\r\n{" % (MAPS.encode(), AUTH))[i % 3])
    plain = [socket.create_connection(("127.0.0.1", s.port)) for _ in range(20)]  # not even TLS
    started = time.monotonic()
    a = s.request("GET", "/version")
    t.check("slow clients do not hold others up", a.status == 200 and time.monotonic() - started < 10)
    c = begun[2]
    pieces = [b'"apiVersion":"v1","kind":"ConfigMap",', b'"metadata":{"name":"slow"}}']
    for piece in pieces + [b" " * (99 - sum(map(len, pieces)))]:
        time.sleep(0.1)
        c.sendall(piece)
    c.settimeout(20)
    got = c.recv(4096)
    t.check("a body in small pieces is a body", status_of(got) == 201, got)
    for c in begun + plain:
        c.close()


def test_tls(t, s):
    def talk(data):
        with socket.create_connection(("127.0.0.1", s.port), 10) as c:
            try:
                c.sendall(data)
                return c.recv(4096)
            except OSError:
                return b""
    got = talk(b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n")
    t.check("TLS: plain HTTP is told so", got.startswith(b"HTTP/1.0 400 Bad Request") and b"Client sent an HTTP request to an HTTPS server." in got, got)
    for name, data in (("garbage", os.urandom(5000)), ("a hello that lies about its size", b"\x16\x03\x01\xff\xff\x01\xff\xff\xff" + b"x" * 100), ("zeros", bytes(1000))):
        got = talk(data)
        t.check(f"TLS: {name}", not got or got[0] == 0x15 or got.startswith(b"HTTP/1.0 400"), got[:50])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
        context.wrap_socket(socket.create_connection(("127.0.0.1", s.port), 10))
        t.check("TLS: 1.1 is refused", False)
    except (OSError, ValueError):
        t.check("TLS: 1.1 is refused", True)


# ---- HTTP/2, frame by frame ----

DATA, HEADERS, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 5, 6, 7, 8, 9
END_STREAM, END_HEADERS = 1, 4


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def literal(name, value):
    return b"\x00" + bytes((len(name),)) + name + bytes((len(value),)) + value


REQUEST = b"\x82\x87" + literal(b":path", b"/version") + literal(b":authority", b"x") + literal(b"authorization", b"Bearer admin-token")


class H2:
    def __init__(self, s):
        self.socket = tls(s, ("h2",))
        assert self.socket.selected_alpn_protocol() == "h2"
        self.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0))

    def send(self, data):
        """False once the server has closed the connection."""
        try:
            self.socket.sendall(data)
            return True
        except OSError:
            return False

    def flood(self, data, times):
        """Sends again and again, reading what the server says so that it cannot wait for us; whether it closed the connection."""
        for i in range(times):
            if not self.send(data if isinstance(data, bytes) else data(i)) or self.ended(0):
                return True
        return self.ended(5)

    def ended(self, seconds):
        deadline = time.monotonic() + seconds
        try:
            while True:
                left = deadline - time.monotonic()
                if not self.socket.pending() and not select.select([self.socket], [], [], max(left, 0))[0]:
                    return False
                if not self.socket.recv(65536):
                    return True
                if left < 0:
                    return False
        except OSError:
            return True

    def frames(self, seconds=5):
        """The frames until the connection ends, GOAWAY comes, or a stream ends."""
        self.socket.settimeout(seconds)
        got, result = b"", []
        try:
            while True:
                while len(got) >= 9 and len(got) >= 9 + int.from_bytes(got[:3], "big"):
                    n = int.from_bytes(got[:3], "big")
                    result.append((got[3], got[4], int.from_bytes(got[5:9], "big"), got[9:9 + n]))
                    got = got[9 + n:]
                    if result[-1][0] in (GOAWAY, RST_STREAM) or (result[-1][0] in (DATA, HEADERS) and result[-1][1] & END_STREAM):
                        return result
                chunk = self.socket.recv(65536)
                if not chunk:
                    return result
                got += chunk
        except OSError:
            return result

    def close(self):
        self.socket.close()


def test_h2_frames(t, s):
    rows = [
        ("a request", frame(HEADERS, END_STREAM | END_HEADERS, 1, REQUEST), None),
        ("a frame that is too large", frame(DATA, 0, 1, b"x" * 20000), GOAWAY),
        ("DATA without a stream", frame(DATA, 0, 0, b"x"), GOAWAY),
        ("HEADERS on an even stream", frame(HEADERS, END_HEADERS, 2, REQUEST), GOAWAY),
        ("CONTINUATION alone", frame(CONTINUATION, END_HEADERS, 1, b""), GOAWAY),
        ("a PING of the wrong size", frame(PING, 0, 0, b"x"), GOAWAY),
        ("SETTINGS of the wrong size", frame(SETTINGS, 0, 0, b"x"), GOAWAY),
        ("a window of zero", frame(WINDOW_UPDATE, 0, 0, bytes(4)), GOAWAY),
        ("a window beyond its maximum", frame(WINDOW_UPDATE, 0, 0, b"\x7f\xff\xff\xff"), GOAWAY),
        ("broken header compression", frame(HEADERS, END_STREAM | END_HEADERS, 1, b"\xff\xff\xff\xff\xff\xff"), GOAWAY),
        ("a push from a client", frame(PUSH_PROMISE, END_HEADERS, 1, struct.pack(">I", 2) + REQUEST), GOAWAY),
        ("headers without a path", frame(HEADERS, END_STREAM | END_HEADERS, 1, b"\x82\x87"), RST_STREAM),
        ("headers in capitals", frame(HEADERS, END_STREAM | END_HEADERS, 1, REQUEST + literal(b"X", b"y")), RST_STREAM),
    ]
    for name, data, ends in rows:
        c = H2(s)
        c.send(data)
        got = c.frames()
        c.close()
        kinds = [f[0] for f in got]
        ok = DATA in kinds if ends is None else GOAWAY in kinds or ends in kinds or not any(f[2] for f in got)
        t.check(f"HTTP/2: {name}", ok, got)


def test_h2_floods(t, s):
    """Each must end by the server's closing of the connection, or cost it nothing that stays."""
    headers = frame(HEADERS, END_HEADERS | END_STREAM, 1, REQUEST)

    def reset(i):
        return b"".join(frame(HEADERS, END_HEADERS | END_STREAM, 1 + 2 * (i * 50 + k), REQUEST) + frame(RST_STREAM, 0, 1 + 2 * (i * 50 + k), struct.pack(">I", 8))
                        for k in range(50))
    floods = [
        ("rapid reset", reset, 100, True),
        ("PING", frame(PING, 0, 0, bytes(8)) * 1000, 50, False),
        ("SETTINGS", frame(SETTINGS, 0, 0, b"\x00\x03\x00\x00\x00\x64") * 1000, 50, False),
        ("CONTINUATION", lambda i: (frame(HEADERS, 0, 1, REQUEST) if i == 0 else b"") + frame(CONTINUATION, 0, 1, literal(b"x", b"y" * 100) * 100), 1000, True),
        ("empty CONTINUATION", lambda i: (frame(HEADERS, 0, 1, REQUEST) if i == 0 else b"") + frame(CONTINUATION, 0, 1) * 1000, 50, True),
        ("empty DATA", lambda i: (frame(HEADERS, END_HEADERS, 1, REQUEST.replace(b"\x82", b"\x83", 1)) if i == 0 else b"") + frame(DATA, 0, 1) * 1000, 50, False),
        ("WINDOW_UPDATE", frame(WINDOW_UPDATE, 0, 0, b"\x00\x00\x00\x01") * 1000, 50, False),
        ("priorities", frame(2, 0, 1, b"\x00\x00\x00\x00\x10") * 1000, 50, False),
        ("streams that nobody reads", lambda i: (frame(SETTINGS, 0, 0, b"\x00\x04\x00\x00\x00\x00") if i == 0 else b"") +
         b"".join(frame(HEADERS, END_HEADERS | END_STREAM, 1 + 2 * (i * 50 + k), REQUEST) for k in range(50)), 100, False),
    ]
    before = memory(s)
    for name, data, times, must_end in floods:
        c = H2(s)
        closed = c.flood(data, times)
        c.close()
        a = s.request("GET", "/version")
        t.check(f"HTTP/2 flood: {name}", a.status == 200 and (closed or not must_end), f"closed: {closed}, then {a}")
    c = H2(s)
    c.send(headers)
    t.check("HTTP/2 works after that", any(f[0] == DATA for f in c.frames()))
    c.close()
    after = memory(s)
    t.check("HTTP/2 floods leave no memory behind", after < before + 150, f"{before} MiB before, {after} MiB after")


def test_connections(t, s):
    """Connections and requests that end in the middle leave nothing."""
    fds = len(os.listdir(f"/proc/{s.process.pid}/fd"))
    for i in range(200):
        c = tls(s)
        c.sendall((b"GET %s?watch=1 HTTP/1.1\r\n%s\r\n" % (MAPS.encode(), AUTH), b"POST %s HTTP/1.1\r\n%sContent-Length: 10\r\n\r\nabc" % (MAPS.encode(), AUTH),
                   b"GET /ver")[i % 3])
        c.close()

    def gone():
        return len(os.listdir(f"/proc/{s.process.pid}/fd")) <= fds + 10
    t.check("closed connections are closed", wait_until(gone, 30, "file descriptors to be closed"))


TESTS = [test_json, test_depth, test_sizes, test_patches, test_utf8, test_paths, test_queries, test_heads, test_pipelining, test_slow, test_tls,
         test_h2_frames, test_h2_floods, test_connections]


def test_all(t):
    with Folder() as folder, Server(os.path.join(folder, "server")) as s:
        s.request("GET", "/version")
        before = memory(s)
        for test in TESTS:
            try:
                test(t, s)
            except Exception as e:  # noqa: BLE001 - the others are still worth running
                t.check(f"{test.__name__} ran to its end", False, repr(e))
            t.check(f"the server is there after {test.__name__}", s.process.poll() is None and s.request("GET", "/readyz").status == 200, s.said()[-3000:])
            if s.process.poll() is not None:
                return
        after = memory(s)
        t.check("memory stayed within bounds", after < before + 400, f"{before} MiB before, {after} MiB after")


if __name__ == "__main__":
    tap.run([test_all])
