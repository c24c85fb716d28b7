#!/usr/bin/env python3
"""Users whom others know, and decisions that others make: an OpenID provider, a token webhook and an authorization webhook, all of
them stand-ins that can misbehave. Needs C8S, the program to test, and openssl."""
import base64
import collections
import concurrent.futures
import http.server
import json
import os
import ssl
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster  # noqa: E402
import peers  # noqa: E402
import tap  # noqa: E402

SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEW = "/apis/authentication.k8s.io/v1/tokenreviews"


# ---- certificates and tokens ----

def openssl(*args, stdin=None):
    return subprocess.run([peers.find("openssl", "openssl"), *args], input=stdin, capture_output=True, check=True).stdout


class Keys:
    """Authorities, a server's certificate of each, and keys for tokens, in a folder."""

    def __init__(self, folder):
        self.folder = folder
        for ca in ("ca", "other-ca"):
            openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=" + ca,
                    "-keyout", self.at(ca + ".key"), "-out", self.at(ca + ".crt"))
            openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=server", "-keyout",
                    self.at(ca + "-server.key"), "-out", self.at("csr"))
            with open(self.at("ext"), "w") as f:
                f.write("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
            openssl("x509", "-req", "-in", self.at("csr"), "-CA", self.at(ca + ".crt"), "-CAkey", self.at(ca + ".key"), "-CAcreateserial",
                    "-days", "2", "-extfile", self.at("ext"), "-out", self.at(ca + "-server.crt"))
        for name in ("k1", "k2", "k3", "k4"):
            openssl("genrsa", "-out", self.at(name), "2048")

    def at(self, name):
        return os.path.join(self.folder, name)

    def jwk(self, name):
        modulus = openssl("rsa", "-in", self.at(name), "-noout", "-modulus").decode().strip().split("=")[1]
        return {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": name, "e": "AQAB", "n": b64(bytes.fromhex(modulus))}

    def token(self, key, claims, alg="RS256", kid=None):
        head = b64(json.dumps({"alg": alg, "kid": kid or key}).encode()) + "." + b64(json.dumps(claims).encode())
        if alg == "none":
            return head + "."
        return head + "." + b64(openssl("dgst", "-sha256", "-sign", self.at(key), stdin=head.encode()))


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


# ---- the stand-in ----

class Outside:
    """An HTTPS server: handlers by path, which get the request's object (None: a GET) and its handler, and return a status and an
    answer. Counts what was asked."""

    def __init__(self, cert, key):
        self.handlers, self.counts, self.asked, self.lock = {}, collections.Counter(), [], threading.Lock()
        outside = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def serve(self):
                path = self.path.split("?")[0]
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                question = json.loads(body) if body else None
                with outside.lock:
                    outside.counts[path] += 1
                    outside.asked.append((self.path, dict(self.headers), question))
                status, answer = outside.handlers.get(path, lambda *_: (404, "nothing here"))(question, self)
                data = answer if isinstance(answer, bytes) else answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "text/plain" if isinstance(answer, str) else "application/json")
                self.send_header("Content-Length", str(len(data)))
                if status == 302:
                    self.send_header("Location", "/elsewhere")
                self.end_headers()
                try:
                    self.wfile.write(data)
                except OSError:
                    pass

            do_GET = do_POST = serve

        class Quiet(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass

        self.server = Quiet(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def last(self, path):
        with self.lock:
            return [a for a in self.asked if a[0].split("?")[0] == path][-1]

    def kubeconfig(self, file, path, ca, user=None):
        with open(file, "w") as f:
            json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "x",
                       "clusters": [{"name": "c", "cluster": {"server": self.url + path, "certificate-authority": ca}}],
                       "users": [{"name": "u", "user": user or {}}],
                       "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}]}, f)
        return file


def review(kind, group, **status):
    return {"apiVersion": f"{group}.k8s.io/v1", "kind": kind, "status": status}


def who(server, token):
    """What SelfSubjectReview says: the user, or the status of the answer."""
    r = server.request("POST", SELF, {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}, token=token)
    return r.json["status"]["userInfo"] if r.status == 201 else r.status


def why(server, token):
    """Why a token is refused, as TokenReview tells it."""
    r = server.request("POST", REVIEW, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}})
    return r.json["status"].get("error", r.json["status"])


# ---- tokens that a webhook knows ----

def token_webhook(state):
    def handle(question, _):
        token = question["spec"]["token"]
        state[token] += 1
        if token == "good":
            return 200, review("TokenReview", "authentication", authenticated=True, user={
                "username": "gina", "uid": "g1", "groups": ["a", "b"], "extra": {"x": ["1", "2"]}})
        if token == "slow":
            time.sleep(0.5)
            return 201, review("TokenReview", "authentication", authenticated=True, user={"username": "slow"})
        if token == "elsewhere":
            return 200, review("TokenReview", "authentication", authenticated=True, user={"username": "e"}, audiences=["others"])
        if token == "unsure":
            return 200, review("TokenReview", "authentication", authenticated=False, error="the directory is down")
        if token == "shaky" and state[token] == 1:
            return 500, "try again"
        if token == "shaky":
            return 200, review("TokenReview", "authentication", authenticated=True, user={"username": "shaky"})
        if token == "garbage":
            return 200, b'{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":'
        if token == "pod":
            return 200, {"kind": "Pod", "apiVersion": "v1"}
        if token == "empty":
            return 200, b""
        if token == "huge":
            return 200, b" " * (17 << 20) + b"{}"
        if token == "redirect":
            return 302, "over there"
        if token == "forbidden":
            return 403, "I do not talk to you"
        return 200, review("TokenReview", "authentication", authenticated=False)
    return handle


def test_token_webhook(w, t):
    s, n = w.server, w.tokens
    g = who(s, "good")
    t.check("a webhook says who", g == {"username": "gina", "uid": "g1", "groups": ["a", "b", "system:authenticated"],
                                        "extra": {"x": ["1", "2"]}}, g)
    path, headers, question = w.outside.last("/token")
    t.check("the question", path == "/token?timeout=30s" and question["kind"] == "TokenReview" and
            question["apiVersion"] == "authentication.k8s.io/v1" and
            question["spec"] == {"token": "good", "audiences": ["https://kubernetes.default.svc"]} and
            headers["Authorization"] == "Bearer of-the-hook" and headers["Content-Type"] == "application/json", (path, headers, question))
    who(s, "good")
    t.check("a yes is kept", n["good"] == 1, n)
    t.check("a no", (who(s, "nobody"), who(s, "nobody")) == (401, 401), n)
    t.check("a no is kept", n["nobody"] == 1, n)
    t.check("a token for others", who(s, "elsewhere") == 401)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        names = list(pool.map(lambda _: who(s, "slow")["username"], range(8)))
    t.check("the same token at the same time is one question", names == ["slow"] * 8 and n["slow"] == 1, (names, n))


def test_token_webhook_fails(w, t):
    s, n = w.server, w.tokens
    shaky = who(s, "shaky")
    t.check("500 is asked again", shaky != 401 and shaky["username"] == "shaky" and n["shaky"] == 2, (shaky, n))
    t.check("what cannot be told is no answer", "the directory is down" in why(s, "unsure") and why(s, "unsure") and n["unsure"] == 2, n)
    for token, text in (("garbage", "unexpected end of JSON input"), ("pod", 'unexpected answer of kind "Pod" in version "v1"'),
                        ("empty", "0-length response with status code: 200 and content type: application/json"),
                        ("huge", "is larger than"), ("redirect", "the server responded with the status code 302"),
                        ("forbidden", "I do not talk to you")):
        got = why(s, token)
        t.check(f"{token} is refused", text in got and who(s, token) == 401, got)
        t.check(f"{token} is not asked again", n[token] == 2, n)
    t.check("redirects are not followed", w.outside.counts["/elsewhere"] == 0)


# ---- tokens of a provider ----

def test_provider(w, t):
    s, keys = w.server, w.keys
    iss = w.outside.url + "/realm"
    base = {"iss": iss, "aud": "kube", "sub": "alice", "exp": int(time.time()) + 600, "hd": "example", "jti": "j1"}

    def sign(key="k1", alg="RS256", kid=None, **more):
        return keys.token(key, {k: v for k, v in {**base, **more}.items() if v is not None}, alg, kid)

    def ready():
        return "not initialized" not in str(why(s, sign()))
    cluster.wait_until(ready, 15, "the provider to be found")
    t.check("a provider that is down is looked for again", w.outside.counts["/realm/.well-known/openid-configuration"] >= 2)
    u = who(s, sign(groups=["x", "y"]))
    t.check("a provider says who", u == {"username": iss + "#alice", "groups": ["oidc:x", "oidc:y", "system:authenticated"],
                                         "extra": {"authentication.kubernetes.io/credential-id": ["JTI=j1"]}}, u)
    t.check("one group", who(s, sign(groups="x"))["groups"] == ["oidc:x", "system:authenticated"])
    t.check("several audiences", who(s, sign(aud=["other", "kube"]))["username"] == iss + "#alice")
    past = int(time.time()) - 100
    shown = time.strftime("%Y-%m-%d %H:%M:%S +0000 UTC", time.gmtime(past))
    for what, token, text in (
            ("audience", sign(aud="x"), 'oidc: verify token: oidc: expected audience "kube" got ["x"]'),
            ("expired", sign(exp=past), f"oidc: verify token: oidc: token is expired (Token Expiry: {shown})"),
            ("never expires", sign(exp=None), "oidc: verify token: oidc: token is expired (Token Expiry: 0001-01-01 00:00:00 +0000 UTC)"),
            ("not yet", sign(nbf=int(time.time()) + 1000), "before the nbf (not before) time"),
            ("wrong key", sign("k2", kid="k1"), "oidc: verify token: failed to verify signature: failed to verify id token signature"),
            ("no signature", sign(alg="none"), "id token signed with unsupported algorithm, expected [\"RS256\"] got \"none\""),
            ("changed", sign()[:-8] + "AAAAAAAA", "failed to verify id token signature"),
            ("no name", sign(sub=None), 'oidc: parse username claims "sub": claim not present'),
            ("a name that is none", sign(sub=7),
             'oidc: parse username claims "sub": json: cannot unmarshal number into Go value of type string'),
            ("groups that are none", sign(groups={"a": 1}), 'oidc: parse groups claim "groups": json: cannot unmarshal object'),
            ("required claim", sign(hd=None), "oidc: required claim hd not present in ID token"),
            ("required value", sign(hd="x"), "oidc: required claim hd value does not match. Got = x, want = example"),
            ("sources that are not there", sign(_claim_names={"groups": "s"}),
             "oidc: could not expand distributed claims: oidc: no claim sources"),
            ("a source that is not there", sign(_claim_names={"groups": "s"}, _claim_sources={}), "oidc: could not expand distributed claims: "
             "id token _claim_names contained a source s missing in _claims_sources")):
        got = why(s, token)
        t.check(f"refused: {what}", text in str(got), got)
        t.check(f"401: {what}", who(s, token) == 401)
    t.check("another issuer is not asked about", "oidc" not in str(why(s, sign(iss="https://nobody"))))
    time.sleep(1.1)
    before = w.outside.counts["/realm/keys"]
    w.realm_keys.append("k3")
    t.check("a new key is fetched", who(s, sign("k3"))["username"] == iss + "#alice" and w.outside.counts["/realm/keys"] == before + 1)
    for _ in range(5):
        who(s, sign("k2", kid="k9"))
    t.check("unknown keys do not cause many fetches", w.outside.counts["/realm/keys"] <= before + 3, w.outside.counts)
    time.sleep(1.1)
    answers, go = w.outside.handlers["/realm/keys"], threading.Event()
    w.outside.handlers["/realm/keys"] = lambda *a: (go.wait(10), answers(*a))[1]
    w.realm_keys.append("k4")
    stranger = s.request("GET", "/api?timeout=50ms", token=sign("k2", kid="k9"))
    threading.Timer(0.3, go.set).start()
    u = who(s, sign("k4"))
    w.outside.handlers["/realm/keys"] = answers
    t.check("a stranger's short patience is not that of others", stranger.status != 200 and u != 401, (stranger, u))


def test_claims_elsewhere(w, t):
    """Groups that are too many for the token: it says who else knows them."""
    s, keys, url = w.server, w.keys, w.outside.url
    until = int(time.time()) + 600
    answer = {}
    w.outside.handlers["/groups"] = lambda *_: answer["is"]

    def token(**source):
        return keys.token("k1", {"iss": url + "/realm", "aud": "kube", "sub": "alice", "exp": until, "hd": "example",
                                 "_claim_names": {"groups": "s"}, "_claim_sources": {"s": source}})

    def signed(key="k1", **more):
        claims = {"iss": url + "/realm2", "aud": "kube", "exp": until, "groups": ["far", "away"], **more}
        return keys.token(key, {k: v for k, v in claims.items() if v is not None}, kid="k1")
    mine = token(endpoint=url + "/groups", access_token="of-alice")
    answer["is"] = 200, signed()
    u = who(s, mine)
    t.check("groups that another server knows", u != 401 and u["groups"] == ["oidc:far", "oidc:away", "system:authenticated"], (u, why(s, mine)))
    t.check("it is shown the token for it", w.outside.last("/groups")[1].get("Authorization") == "Bearer of-alice", w.outside.last("/groups"))
    found = w.outside.counts["/realm2/.well-known/openid-configuration"]
    answer["is"] = 200, signed(groups="one")
    t.check("their issuer is found once", who(s, mine)["groups"] == ["oidc:one", "system:authenticated"] and
            w.outside.counts["/realm2/.well-known/openid-configuration"] == found, w.outside.counts)
    t.check("a claim within the token is not looked into", who(s, token(JWT="x"))["groups"] == ["system:authenticated"])
    verify = "verify distributed claim token: "
    for what, text, answer["is"] in (
            ("a status", 'while getting distributed claim "groups": error while getting distributed claim JWT: 404 Not Found', (404, "no")),
            ("no groups", f'jwt returned by distributed claim endpoint "{url}/groups" did not contain claim: groups', (200, signed(groups=None))),
            ("for somebody else", verify + 'oidc: expected audience "kube" got ["x"]', (200, signed(aud="x"))),
            ("expired", verify + "oidc: token is expired", (200, signed(exp=1))),
            ("a wrong signature", verify + "failed to verify signature", (200, signed("k2"))),
            ("garbage", f'getting untrusted issuer from endpoint {url}/groups failed for claim "groups": ', (200, "garbage")),
            ("of nobody", f'verifying untrusted issuer {url}/nowhere failed: verifier not initialized for issuer: "{url}/nowhere"',
             (200, signed(iss=url + "/nowhere")))):
        got = why(s, mine)
        t.check(f"refused: {what}", "oidc: could not expand distributed claims: " + text in str(got) and who(s, mine) == 401, got)


# ---- who may, decided elsewhere ----

def access_webhook(state):
    def handle(question, handler):
        spec = question["spec"]
        a = spec.get("resourceAttributes") or {}
        state[(a.get("namespace"), a.get("resource"))] += 1
        if a.get("namespace") == "slow":
            time.sleep(3)
        if a.get("namespace") == "garbage":
            return 200, b"{"
        if a.get("namespace") == "yes":
            return 200, review("SubjectAccessReview", "authorization", allowed=True, reason="why not")
        if a.get("namespace") == "never":
            return 200, review("SubjectAccessReview", "authorization", allowed=False, denied=True, reason="over my dead body")
        if a.get("namespace") == "both":
            return 200, review("SubjectAccessReview", "authorization", allowed=True, denied=True)
        return 200, review("SubjectAccessReview", "authorization", allowed=False, reason="I do not know")
    return handle


def pods(s, namespace, query="", token="alice-token"):
    return s.request("GET", f"/api/v1/namespaces/{namespace}/pods{query}", token=token)


def test_access_webhook(w, t):
    s, n = w.server, w.access
    r = pods(s, "yes")
    t.check("a yes", r.status == 200, r)
    path, _, question = w.outside.last("/access")
    t.check("the question", path == "/access?timeout=1s" and question["apiVersion"] == "authorization.k8s.io/v1" and
            question["spec"] == {"resourceAttributes": {"namespace": "yes", "verb": "list", "version": "v1", "resource": "pods"},
                                 "user": "alice", "groups": ["devs", "system:authenticated"], "uid": "uid-alice"}, (path, question))
    pods(s, "yes")
    t.check("a yes is kept", n[("yes", "pods")] == 1, n)
    pods(s, "yes", "?labelSelector=a%3Db,!c,d+notin+(e,f)&fieldSelector=spec.nodeName%3Dn1,status.phase!%3DRunning")
    a = w.outside.last("/access")[2]["spec"]["resourceAttributes"]
    t.check("selectors are told", a.get("labelSelector") == {"requirements": [
        {"key": "a", "operator": "In", "values": ["b"]}, {"key": "c", "operator": "DoesNotExist"},
        {"key": "d", "operator": "NotIn", "values": ["e", "f"]}]} and a.get("fieldSelector") == {"requirements": [
            {"key": "spec.nodeName", "operator": "In", "values": ["n1"]},
            {"key": "status.phase", "operator": "NotIn", "values": ["Running"]}]}, a)
    r = pods(s, "never")
    t.check("a no", r.status == 403 and r.json["message"].endswith(': over my dead body'), r)
    r = pods(s, "maybe")
    t.check("no opinion leaves it to the next", r.status == 403 and "I do not know" in r.json["message"], r)
    pods(s, "maybe")
    t.check("a no is kept", n[("maybe", "pods")] == 1, n)
    t.check("yes and no is no", pods(s, "both").status == 500)
    long = "x" * 10000
    for _ in range(2):
        s.request("GET", f"/api/v1/namespaces/yes/pods/{long}", token="alice-token")
    t.check("large questions are not kept", n[("yes", "pods")] == 4, n)
    before = sum(n.values())
    t.check("masters are not asked about", pods(s, "never", token="admin-token").status == 200 and sum(n.values()) == before)
    r = s.request("GET", "/version", token="alice-token")
    path, _, question = w.outside.last("/access")
    t.check("paths are told", question["spec"].get("nonResourceAttributes") == {"path": "/version", "verb": "get"}, question)


def test_access_webhook_fails(w, t):
    s = w.server
    begin = time.monotonic()
    r = pods(s, "slow")
    t.check("a slow one denies", r.status == 500 and time.monotonic() - begin < 2.5, r)
    t.check("as one who could not tell", r.body.startswith(b'Internal Server Error: "/api/v1/namespaces/slow/pods": Post "https://'), r)
    t.check("Go's words", "context deadline exceeded" in s.said(), s.said()[-2000:])
    t.check("a confused one denies", pods(s, "garbage").status == 500)
    r = s.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"namespace": "slow", "verb": "list", "resource": "pods"}}}, token="alice-token")
    t.check("a review tells both", r.status == 201 and r.json["status"].get("denied") and not r.json["status"]["allowed"] and
            "context deadline exceeded" in r.json["status"].get("evaluationError", ""), r)
    r = s.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": "yes"}})
    t.check("rules are not complete", r.status == 201 and r.json["status"]["incomplete"] and
            "webhook authorizer does not support user rule resolution" in r.json["status"]["evaluationError"], r)


def test_configured_issuer(w, t):
    s, keys = w.server, w.keys
    iss = w.outside.url + "/realm2"
    claims = {"iss": iss, "aud": "b", "sub": "bob", "id": "b1", "exp": int(time.time()) + 600}
    token = keys.token("k1", claims)
    # Everybody may ask who they are, if roles say so; here the webhook is asked, which has no opinion, and roles decide.
    cluster.wait_until(lambda: "not initialized" not in str(why(s, token)), 15, "the provider to be found")
    r = s.request("POST", REVIEW, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}})
    t.check("an issuer of a configuration", r.json["status"].get("user") == {
        "username": "b:bob", "uid": "b1", "groups": ["system:authenticated"]}, r)
    got = why(s, keys.token("k1", {**claims, "aud": "x"}))
    t.check("its audiences", 'oidc: expected audience in ["a" "b"] got ["x"]' in str(got), got)
    t.check("strangers at the path that is open", s.request("GET", "/livez", token=None).status == 200)
    t.check("strangers elsewhere", s.request("GET", "/api", token=None).status == 401)


def test_configuration_changes(w, t):
    """The files are looked at every few seconds: what is good counts from then on, what is not is told and changes nothing."""
    s, keys = w.server, w.keys
    claims = {"aud": "a", "sub": "bob", "id": "b1", "exp": int(time.time()) + 600}
    old, new = (keys.token("k1", {**claims, "iss": w.outside.url + path}) for path in ("/realm2", "/realm"))

    def known(token):
        return isinstance(why(s, token), dict)

    def edit(name, change):
        with open(keys.at(name)) as f:
            config = json.load(f)
        change(config)
        with open(keys.at(name), "w") as f:
            json.dump(config, f)
    edit("authn.yaml", lambda c: c["jwt"][0]["issuer"].update(url=w.outside.url + "/realm"))
    edit("authz.yaml", lambda c: c["authorizers"].pop(0))
    t.check("before", known(old) and pods(s, "never").json["message"].endswith("over my dead body"), why(s, old))
    cluster.wait_until(lambda: known(new), 20, "the new issuer to be known")
    t.check("the old issuer is not known any more", not known(old), why(s, old))
    cluster.wait_until(lambda: not pods(s, "never").json["message"].endswith("over my dead body"), 20, "the webhook not to be asked")
    edit("authz.yaml", lambda c: c["authorizers"].clear())
    edit("authn.yaml", lambda c: c.update(anonymous={"enabled": False}))
    cluster.wait_until(lambda: "at least one authorization mode must be defined" in s.said() and
                       "changed from initial configuration file" in s.said(), 20, "the failures to be told")
    t.check("what cannot be changes nothing", known(new) and s.request("GET", "/livez", token=None).status == 200 and
            pods(s, "never").status == 403)


def test_wrong_certificate(w, t):
    with cluster.Server(os.path.join(w.folder, "wrong"), "--authentication-token-webhook-version=v1",
                        "--authentication-token-webhook-config-file",
                        w.outside.kubeconfig(w.keys.at("wrong.conf"), "/token", w.keys.at("other-ca.crt")),
                        "--authorization-mode=AlwaysAllow") as s:
        got = why(s, "good")
        t.check("a server that cannot be trusted", f'Post "{w.outside.url}/token?timeout=30s": tls: failed to verify certificate: x509: '
                "certificate signed by unknown authority" in str(got), got)


def refuses(t, name, text, folder, *flags):
    s = cluster.Server(os.path.join(folder, "refused"), *flags)
    try:
        s.start(20)
        s.stop()
        t.check(name, False, "it started")
    except RuntimeError as e:
        t.check(name, text in str(e), e)


def test_refused(w, t):
    exec_conf = w.outside.kubeconfig(w.keys.at("exec.conf"), "/token", w.keys.at("ca.crt"), {"exec": {"command": "x", "apiVersion": "y"}})
    refuses(t, "exec plugins", "exec plugins are not supported", w.folder, "--authentication-token-webhook-config-file", exec_conf)
    refuses(t, "versions", 'unsupported authentication webhook version "v2"', w.folder, "--authentication-token-webhook-config-file",
            w.outside.kubeconfig(w.keys.at("v2.conf"), "/token", w.keys.at("ca.crt")), "--authentication-token-webhook-version=v2")
    refuses(t, "half of the oidc flags", "oidc-issuer-url and oidc-client-id must be specified together", w.folder,
            "--oidc-issuer-url=https://x")
    with open(w.keys.at("bad.yaml"), "w") as f:
        f.write("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n- issuer: {url: 'https://x', "
                "audiences: [a]}\n  claimMappings: {username: {expression: 'claims.sub'}}\n")
    with open(w.keys.at("anonymous.yaml"), "w") as f:
        f.write("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\nanonymous: {enabled: true}\n")
    refuses(t, "strangers by a flag and by a file", "--anonymous-auth flag cannot be set when anonymous field is configured", w.folder,
            "--anonymous-auth=true", "--authentication-config", w.keys.at("anonymous.yaml"))
    refuses(t, "expressions", "CEL expressions are not supported by c8s yet", w.folder, "--authentication-config", w.keys.at("bad.yaml"))


# ---- the worlds ----

class World:
    def __init__(self, folder):
        self.folder, self.keys = folder, Keys(folder)
        self.outside = Outside(self.keys.at("ca-server.crt"), self.keys.at("ca-server.key"))
        self.tokens, self.access, self.realm_keys = collections.Counter(), collections.Counter(), ["k1"]
        h = self.outside.handlers
        h["/token"], h["/access"] = token_webhook(self.tokens), access_webhook(self.access)
        self.provide("/realm", fails=1)
        self.provide("/realm2")

    def provide(self, path, fails=0):
        left, well_known = [fails], path + "/.well-known/openid-configuration"

        def configuration(*_):
            left[0] -= 1
            if left[0] >= 0:
                return 503, "not now"
            return 200, {"issuer": self.outside.url + path, "jwks_uri": self.outside.url + path + "/keys"}
        self.outside.handlers[well_known] = configuration
        self.outside.handlers[path + "/keys"] = lambda *_: (200, {"keys": [self.keys.jwk(k) for k in self.realm_keys]})

    def users(self):
        return cluster.Server(
            os.path.join(self.folder, "users"), "--authorization-mode=AlwaysAllow", "--authentication-token-webhook-version=v1",
            "--service-account-issuer=https://kubernetes.default.svc", "--authentication-token-webhook-config-file",
            self.outside.kubeconfig(self.keys.at("token.conf"), "/token", self.keys.at("ca.crt"), {"token": "of-the-hook"}),
            "--oidc-issuer-url", self.outside.url + "/realm", "--oidc-client-id=kube", "--oidc-ca-file", self.keys.at("ca.crt"),
            "--oidc-groups-claim=groups", "--oidc-groups-prefix=oidc:", "--oidc-required-claim=hd=example")

    def decisions(self):
        hook = self.outside.kubeconfig(self.keys.at("access.conf"), "/access", self.keys.at("ca.crt"))
        with open(self.keys.at("authz.yaml"), "w") as f:
            json.dump({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration", "authorizers": [
                {"type": "Webhook", "name": "hook", "webhook": {
                    "timeout": "1s", "subjectAccessReviewVersion": "v1", "failurePolicy": "Deny",
                    "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": hook}}},
                {"type": "RBAC", "name": "rbac"}]}, f)
        with open(self.keys.at("ca.crt")) as f:
            ca = f.read()
        with open(self.keys.at("authn.yaml"), "w") as f:
            json.dump({"apiVersion": "apiserver.config.k8s.io/v1beta1", "kind": "AuthenticationConfiguration", "jwt": [{
                "issuer": {"url": self.outside.url + "/realm2", "audiences": ["a", "b"], "audienceMatchPolicy": "MatchAny",
                           "certificateAuthority": ca},
                "claimMappings": {"username": {"claim": "sub", "prefix": "b:"}, "uid": {"claim": "id"}}}],
                "anonymous": {"enabled": True, "conditions": [{"path": "/livez"}]}}, f)
        return cluster.Server(os.path.join(self.folder, "decisions"), "--authorization-config", self.keys.at("authz.yaml"),
                              "--authentication-config", self.keys.at("authn.yaml"))


def main():
    with cluster.Folder() as folder:
        w = World(folder)

        def decisions(t):
            with w.decisions() as w.server:
                for f in (test_access_webhook, test_access_webhook_fails, test_configured_issuer, test_configuration_changes):
                    f(w, t)

        def users(*tests):
            def run(t):
                w.server = w.users_server
                for f in tests:
                    f(w, t)
            run.__name__ = tests[0].__name__
            return run
        # The provider is found at the second try, ten seconds after the first; there is other work meanwhile.
        with w.users() as w.users_server:
            tap.run([users(test_token_webhook, test_token_webhook_fails), decisions, lambda t: test_wrong_certificate(w, t),
                     lambda t: test_refused(w, t), users(test_provider, test_claims_elsewhere)])


if __name__ == "__main__":
    main()
