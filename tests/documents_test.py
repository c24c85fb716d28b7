#!/usr/bin/env python3
"""What the API server tells about itself: OpenAPI in all its forms, health, metrics, tables with an order of their own."""
import os
import re
import signal
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import peers  # noqa: E402
import tap  # noqa: E402
from cluster import Etcd, Folder, Server, wait_until  # noqa: E402

PROTO = "application/com.github.proto-openapi.spec.{}.v1.0+protobuf"


# ---- OpenAPI ----

def fields(message):
    """(number, value) of a protobuf message; bytes for what has a length."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value
    while at < len(message):
        tag = varint()
        size = {0: 0, 1: 8, 2: None}[tag & 7]
        size = varint() if size is None else size
        yield tag >> 3, varint() if tag & 7 == 0 else message[at:at + size]
        at += size


def names(message, *path):
    """The names of the entries {name = 1, value = 2} that a path of field numbers leads to."""
    for number in path[:-1]:
        message = next(v for n, v in fields(message) if n == number)
    return [next(v for n, v in fields(entry) if n == 1).decode() for n, entry in fields(message) if n == path[-1]]


def references(tree):
    if isinstance(tree, dict):
        yield from ([tree["$ref"]] if isinstance(tree.get("$ref"), str) else [])
        tree = list(tree.values())
    for item in tree if isinstance(tree, list) else []:
        yield from references(item)


def dangling(document):
    schemas = document.get("definitions") or document.get("components", {}).get("schemas", {})
    return {r for r in references(document["paths"] | schemas) if r.rsplit("/", 1)[1] not in schemas}


def test_openapi(t, s):
    index = s.request("GET", "/openapi/v3").json["paths"]
    operations, broken, unlike = [], {}, []
    for name, where in index.items():
        url = where["serverRelativeURL"]
        plain = s.request("GET", url)
        proto = s.request("GET", url, accept=PROTO.format("v3").replace(".v1.0+", "@v1.0+"))
        document = plain.json
        operations += [op["operationId"] for path in document["paths"].values() for op in path.values() if isinstance(op, dict)]
        if dangling(document):
            broken[name] = dangling(document)
        if (proto.headers["Content-Type"], proto.headers["ETag"]) != (PROTO.format("v3"), plain.headers["ETag"]) or \
                names(proto.body, 4, 1) != list(document["paths"]) or \
                (document["components"].get("schemas") and names(proto.body, 5, 1, 1) != list(document["components"]["schemas"])):
            unlike.append(name)
    t.check("openapi v3: every reference leads somewhere", not broken, broken)
    t.check("openapi v3: protobuf has the same paths and schemas", index and not unlike, unlike)
    t.check("openapi v3: no two operations have the same name", len(set(operations)) == len(operations),
            {o for o in operations if operations.count(o) > 1})
    v2 = s.request("GET", "/openapi/v2").json
    t.check("openapi v2: every reference leads somewhere", not dangling(v2), dangling(v2))
    t.check("openapi v2: has the operations of all documents of version 3",
            set(operations) == {op["operationId"] for path in v2["paths"].values() for op in path.values() if isinstance(op, dict)})
    both = s.request("GET", "/openapi/v2", accept=PROTO.format("v2"))
    t.check("openapi v2: protobuf has the same definitions", names(both.body, 9, 1) == list(v2["definitions"]), both.headers)


# ---- kubectl ----

def test_kubectl(t, s):
    rows = [
        ("explain pod.spec.containers.resources.limits", "DESCRIPTION:"),
        ("explain hpa.spec.metrics --api-version=autoscaling/v2", "containerResource"),
        ("explain crd.spec.versions.schema.openAPIV3Schema.properties", "DESCRIPTION:"),
        ("explain flowschema.spec.rules.subjects", "serviceAccount"),
        ("explain networkpolicy.spec.ingress --recursive", "matchLabels"),
        ("explain pod.kind", "Kind of the object"),
        ("explain leases", "Name, labels"),
        ("get --raw /openapi/v3/apis/apps", '"getAppsAPIGroup"'),
        ("get --raw /livez?verbose&exclude=etcd", "[+]etcd excluded: ok"),
    ]
    if not peers.find("kubectl", "kubernetes-client"):
        t.skip("kubectl reads the documents", "there is no kubectl")
        return
    for args, want in rows:
        r = s.kubectl(*args.split(), check=False)
        t.check(f"kubectl {args}", r.returncode == 0 and want in r.stdout, r.stdout + r.stderr)


def test_table_order(t, s):
    path = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
    for name, precedence in (("zz-first", 3), ("aa-equal", 800)):
        made = s.request("POST", path, {"metadata": {"name": name}, "spec": {
            "matchingPrecedence": precedence, "priorityLevelConfiguration": {"name": "exempt"}}})
        t.check(f"a flow schema of precedence {precedence} is made", made.status == 201, made)
    rows = s.request("GET", path, accept="application/json;as=Table;v=v1;g=meta.k8s.io").json["rows"]
    shown = [(int(r["cells"][2]), r["cells"][0]) for r in rows]
    t.check("flow schemas are shown in the order in which they are asked", len(shown) > 10 and shown == sorted(shown), shown)
    listed = [o["metadata"]["name"] for o in s.request("GET", path).json["items"]]
    t.check("and listed by name", listed == sorted(listed) and "zz-first" in listed, listed)


# ---- metrics ----

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
LINE = re.compile(rf"({NAME})(?:\{{((?:{LABEL})?(?:,{LABEL})*)\}})? (NaN|[+-]?Inf|[+-]?[0-9.]+(?:e[+-]?[0-9]+)?)")


# Counters whose names Kubernetes gave before there was a rule.
UNUSUAL = {"authenticated_user_requests", "authentication_attempts", "apiserver_admission_webhook_fail_open_count",
           "apiserver_admission_webhook_rejection_count"}


def parse_metrics(text):
    """{family: (type, {(name, labels): value})}; fails on whatever Prometheus or its linter would not like."""
    families, family = {}, None
    assert text.endswith("\n"), "the last line has no end"
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name, help_ = re.fullmatch(rf"# HELP ({NAME}) (.+)", line).groups()
            assert name not in families, f"{name} comes twice"
            family = name
            families[name] = [None, {}]
            continue
        if line.startswith("# TYPE "):
            name, type_ = re.fullmatch(rf"# TYPE ({NAME}) (counter|gauge|histogram|summary)", line).groups()
            assert name == family and families[name] == [None, {}], line
            assert (type_ == "counter") == (name.endswith("_total") or name in UNUSUAL), line
            families[name][0] = type_
            continue
        found = LINE.fullmatch(line)
        assert found, f"this is no series: {line}"
        labels = re.findall(LABEL, found.group(2) or "")
        assert len({k for k, _ in labels}) == len(labels), f"a label comes twice: {line}"
        type_, series = families[family]
        name = found.group(1)
        suffixes = ("_bucket", "_sum", "_count") if type_ == "histogram" else ("",)
        assert name in {family + suffix for suffix in suffixes}, f"{name} is not of {family}"
        key = (name, tuple(sorted(labels)))
        assert key not in series, f"this series comes twice: {line}"
        series[key] = float(line.rsplit(" ", 1)[1])
    return families


def check_histograms(families):
    for family, (type_, series) in families.items():
        assert series, f"{family} is empty"
        if type_ != "histogram":
            continue
        groups = {}
        for (name, labels), value in series.items():
            rest = tuple(l for l in labels if l[0] != "le")
            groups.setdefault(rest, {})[dict(labels).get("le", name[len(family):])] = value
        for labels, values in groups.items():
            limits = [k for k in values if not k.startswith("_")]
            counts = [values[k] for k in limits]
            assert [float(k) for k in limits] == sorted(float(k) for k in limits) and limits[-1] == "+Inf", (family, labels, limits)
            assert counts == sorted(counts) and counts[-1] == values["_count"], (family, labels, values)
            assert values["_sum"] >= 0, (family, labels, values)


def total(families, name, **labels):
    """The sum over all series that have these labels."""
    family = next(f for f in (name, re.sub("_(bucket|sum|count)$", "", name)) if f in families)
    return sum(v for (n, have), v in families[family][1].items() if n == name and labels.items() <= dict(have).items())


def test_metrics(t, s):
    path = "/api/v1/namespaces/default/configmaps"
    s.request("POST", path, {"metadata": {"name": "metrics"}})
    s.request("GET", f"{path}/nope")
    s.request("POST", path + "?dryRun=All", {"metadata": {"name": "dry"}})
    watch = threading.Thread(target=s.request, args=("GET", f"{path}?watch=1&timeoutSeconds=1"))
    watch.start()

    def scrape():
        answer = s.request("GET", "/metrics")
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"), answer.headers
        return parse_metrics(answer.body.decode())
    maps = {"group": "", "version": "v1", "resource": "configmaps"}
    wait_until(lambda: "apiserver_longrunning_requests" in (f := scrape()) and total(f, "apiserver_longrunning_requests", **maps) == 1,
               what="a watch to be counted")
    watch.join()
    families = scrape()
    check_histograms(families)
    t.check("metrics: the text is well formed", len(families) > 15)
    rows = [
        ("apiserver_request_total", dict(maps, verb="POST", code="201", scope="resource", dry_run="", component="apiserver"), 1),
        ("apiserver_request_total", dict(maps, verb="POST", code="201", dry_run="All"), 1),
        ("apiserver_request_total", dict(maps, verb="GET", code="404"), 1),
        ("apiserver_request_duration_seconds_count", dict(maps, verb="GET", subresource=""), 1),
        ("apiserver_request_sli_duration_seconds_bucket", dict(maps, verb="POST", le="+Inf"), 1),
        ("apiserver_longrunning_requests", dict(maps, verb="WATCH"), 0),
        ("apiserver_watch_events_total", maps, 1),
        ("etcd_request_duration_seconds_count", {"operation": "create", "group": "", "resource": "configmaps"}, 1),
        ("apiserver_storage_objects", {"resource": "flowschemas.flowcontrol.apiserver.k8s.io"}, 11),
        ("apiserver_current_inflight_requests", {"request_kind": "mutating"}, 0),
        ("process_resident_memory_bytes", {}, 1 << 20),
        ("process_start_time_seconds", {}, 1),
        ("kubernetes_build_info", {"major": "1", "minor": "36"}, 1),
    ]
    for name, labels, least in rows:
        t.check(f"metrics: {name} {labels.get('verb', '')}", total(families, name, **labels) >= least, total(families, name, **labels))


# ---- health ----

def failures(answer):
    return re.findall(r"\[-\](\S+) failed: reason withheld", answer.body.decode())


def checks(s, endpoint):
    return set(re.findall(r"\[\+\](\S+) ok", s.request("GET", f"/{endpoint}?verbose").body.decode()))


def test_health_lists(t, s):
    live, ready, health = (checks(s, e) for e in ("livez", "readyz", "healthz"))
    t.check("readyz has checks of its own", ready - live == {"etcd-readiness", "informer-sync", "shutdown"}, ready ^ live)
    t.check("livez has one of its own", live - ready == {"loopback-serving-certificate"}, live - ready)
    t.check("healthz is what livez is", health == live, health ^ live)
    listed = set(s.request("GET", "/").json["paths"])
    single = [n for n in ready if s.request("GET", f"/readyz/{n}").body != b"ok" or f"/readyz/{n}" not in listed]
    t.check("each check has a path", not single, single)
    t.check("a check that is none", s.request("GET", "/livez/shutdown").status == 404 and s.request("GET", "/readyz/nope").status == 404)
    excluded = s.request("GET", "/readyz?verbose=1&exclude=nope&exclude=ping").body.decode()
    t.check("what cannot be excluded is told", excluded.startswith("[+]ping excluded: ok\n") and
            'warn: some health checks cannot be excluded: no matches for "nope"\n' in excluded, excluded)
    t.check("everybody may ask", s.request("GET", "/readyz", token=None).status == 200 and s.request("GET", "/livez?verbose", token=None).status == 200)


def test_without_store(t):
    if not peers.find("etcd", "etcd-server"):
        t.skip("health without etcd", "there is no etcd")
        return
    with Folder() as folder, Etcd(os.path.join(folder, "etcd")) as etcd, \
            Server(os.path.join(folder, "server"), "--etcd-servers", etcd.endpoints) as s:
        t.check("with etcd the server is ready", s.request("GET", "/readyz").status == 200)
        etcd.processes[0].send_signal(signal.SIGSTOP)
        answer = s.request("GET", "/readyz")
        t.check("etcd hangs: not ready, and nobody hears why", answer.status == 500 and failures(answer) == ["etcd", "etcd-readiness"] and
                answer.body.endswith(b"readyz check failed\n"), answer)
        answer = s.request("GET", "/readyz/etcd")
        t.check("etcd hangs: the check itself says why", answer.status == 500 and b"internal server error: etcd: " in answer.body, answer)
        etcd.processes[0].kill()
        etcd.processes[0].wait()
        answer = s.request("GET", "/livez")
        t.check("etcd is gone: livez fails too", answer.status == 500 and failures(answer) == ["etcd"], answer)
        t.check("etcd is gone: without that check it is alive", s.request("GET", "/livez?exclude=etcd").body == b"ok" and
                s.request("GET", "/livez/ping").body == b"ok")
        etcd.start_member(0)
        t.check("etcd is back: ready again", wait_until(lambda: s.request("GET", "/readyz").status == 200, 60, "readyz"))


def test_stopping(t):
    with Folder() as folder, Server(os.path.join(folder, "server"), "--shutdown-delay-duration=2s") as s:
        s.process.send_signal(signal.SIGTERM)
        answer = wait_until(lambda: (a := s.request("GET", "/readyz")).status == 500 and a, what="readyz to fail")
        t.check("stopping: not ready", failures(answer) == ["shutdown"], answer)
        t.check("stopping: alive, and still at work", s.request("GET", "/livez").body == b"ok" and
                s.request("GET", "/api/v1/namespaces/default").status == 200)
        t.check("stopping: ends in good order", s.process.wait(30) == 0)


def test_one_server(t):
    with Folder() as folder, Server(os.path.join(folder, "server")) as s:
        for part in (test_openapi, test_kubectl, test_table_order, test_metrics, test_health_lists):
            part(t, s)


if __name__ == "__main__":
    tap.run([test_one_server, test_without_store, test_stopping])
