#!/usr/bin/env python3
"""Who asks, as clients and operators meet it: certificates made by openssl(1), tokens of service accounts, bootstrap tokens,
a front proxy, strangers. Needs C8S, the program to test."""
import base64
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster  # noqa: E402
import tap  # noqa: E402

AUTHN = "/apis/authentication.k8s.io/v1"
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
UNAUTHORIZED = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "Unauthorized",
                "reason": "Unauthorized", "code": 401}


def openssl(*args, stdin=None):
    r = subprocess.run(["openssl", *args], input=stdin, capture_output=True)
    if r.returncode:
        raise RuntimeError(f"openssl {' '.join(args)}: {r.stderr.decode()}")
    return r.stdout


def unbase64(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def claims_of(token):
    return json.loads(unbase64(token.split(".")[1]))


class World:
    def __init__(self, folder):
        self.folder = folder
        self.server = cluster.Server(os.path.join(folder, "server"), "--enable-bootstrap-token-auth").start()
        everybody = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "everybody"},
                     "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
                     "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:" + group}
                                  for group in ("authenticated", "unauthenticated")]}
        r = self.server.request("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", everybody)
        assert r.status == 201, r
        self.pki = os.path.join(folder, "server", "data", "pki")
        self.key("client")
        self.other_ca = self.authority("other-ca")
        self.ca = (os.path.join(self.pki, "ca.crt"), os.path.join(self.pki, "ca.key"))
        self.proxy_ca = (os.path.join(self.pki, "front-proxy-ca.crt"), os.path.join(self.pki, "front-proxy-ca.key"))

    def file(self, name):
        return os.path.join(self.folder, name)

    def key(self, name):
        openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", self.file(name + ".key"))
        return self.file(name + ".key")

    def authority(self, name):
        """The certificate of a new authority and its key."""
        key = self.key(name)
        openssl("req", "-x509", "-new", "-key", key, "-subj", "/CN=" + name, "-days", "2", "-out", self.file(name + ".crt"))
        return self.file(name + ".crt"), key

    def through(self, ca, name, subject):
        """A certificate of an authority whom this authority has made one, that one's after it, and its key."""
        key, crt = self.key(name), self.file(name + ".crt")
        with open(self.file(name + ".ext"), "w") as f:
            f.write("basicConstraints=CA:TRUE\n")
        request = openssl("req", "-new", "-key", key, "-subj", "/CN=" + name)
        openssl("x509", "-req", "-CA", ca[0], "-CAkey", ca[1], "-set_serial", "7", "-days", "2", "-extfile", self.file(name + ".ext"),
                "-out", crt, stdin=request)
        leaf, key = self.certificate((crt, key), subject)
        with open(leaf, "a") as f:
            f.write(open(crt).read())
        return leaf, key

    def certificate(self, ca, subject, usage="clientAuth", days=2):
        """A certificate of this authority and its key."""
        name = hashlib.sha256(repr((ca, subject, usage, days)).encode()).hexdigest()[:12]
        request = openssl("req", "-new", "-key", self.file("client.key"), "-subj", subject)
        with open(self.file(name + ".ext"), "w") as f:
            f.write(f"extendedKeyUsage={usage}\n" if usage else "basicConstraints=CA:FALSE\n")
        openssl("x509", "-req", "-CA", ca[0], "-CAkey", ca[1], "-set_serial", str(int(name, 16)), "-days", str(days),
                "-extfile", self.file(name + ".ext"), "-out", self.file(name + ".crt"), stdin=request)
        return self.file(name + ".crt"), self.file("client.key")

    def connect(self, pair=None, server=None):
        c = (server or self.server).connect()
        if pair:
            c._context.load_cert_chain(*pair)
        return c

    def who(self, pair=None, token=None, server=None, connection=None, **headers):
        """The status of asking who one is, and the user."""
        c = connection or self.connect(pair, server)
        r = self.server.request("POST", AUTHN + "/selfsubjectreviews", REVIEW, token=token, connection=c, **headers)
        if not connection:
            c.close()
        return (r.status, r.json["status"]["userInfo"] if r.status == 201 else r.json)

    def account(self, name):
        self.server.request("POST", "/api/v1/namespaces/default/serviceaccounts",
                            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})

    def token(self, name, server=None, **spec):
        r = (server or self.server).request("POST", f"/api/v1/namespaces/default/serviceaccounts/{name}/token",
                                            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})
        if r.status != 201:
            raise RuntimeError(r)
        return r.json["status"]["token"]

    def review(self, token, **spec):
        return self.server.request("POST", AUTHN + "/tokenreviews", {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token, **spec}}).json["status"]


def certificates(w, t):
    pair = w.certificate(w.ca, "/O=devs/O=ops/CN=carol")
    status, user = w.who(pair)
    t.check("a certificate of the authority names its user", status == 201 and user["username"] == "carol" and
            user["groups"] == ["devs", "ops", "system:authenticated"], user)
    der = openssl("x509", "-in", pair[0], "-outform", "DER")
    t.check("its fingerprint is the credential", user.get("extra") == {
        "authentication.kubernetes.io/credential-id": ["X509SHA256=" + hashlib.sha256(der).hexdigest()]}, user)
    for name, bad in (("an expired one", w.certificate(w.ca, "/CN=carol", days=-1)),
                      ("one of another authority", w.certificate(w.other_ca, "/O=system:masters/CN=carol")),
                      ("one for servers", w.certificate(w.ca, "/CN=carol", usage="serverAuth")),
                      ("one of the proxies' authority", w.certificate(w.proxy_ca, "/O=system:masters/CN=carol"))):
        answer = w.who(bad)
        t.check(f"{name} is refused", answer == (401, UNAUTHORIZED), answer)
        status, user = w.who(bad, token="alice-token")
        t.check(f"{name} does no harm beside a good token", status == 201 and user["username"] == "alice", user)
    status, user = w.who(w.certificate(w.ca, "/CN=dora", usage=None))
    t.check("without a usage a certificate is for all", status == 201 and user["username"] == "dora", user)
    t.check("a certificate that names nobody and is no proxy's is refused", w.who(w.certificate(w.ca, "/O=nobody")) == (401, UNAUTHORIZED))


def front_proxy(w, t):
    proxy = (os.path.join(w.pki, "front-proxy-client.crt"), os.path.join(w.pki, "front-proxy-client.key"))
    c = w.connect(proxy)
    body = json.dumps(REVIEW)
    c.putrequest("POST", AUTHN + "/selfsubjectreviews")
    for name, value in (("X-Remote-User", "erin"), ("X-Remote-Uid", "u7"), ("X-Remote-Group", "a"), ("X-Remote-Group", "b"),
                        ("X-Remote-Extra-Scopes", "one"), ("X-Remote-Extra-Scopes", "two"),
                        ("X-Remote-Extra-Example.Com%2fKey", "x%2fy"), ("X-Remote-Extra-100%", "z"),
                        ("Content-Type", "application/json"), ("Content-Length", str(len(body)))):
        c.putheader(name, value)
    c.endheaders(body.encode())
    user = json.loads(c.getresponse().read())["status"]["userInfo"]
    t.check("a proxy says who asks", user == {
        "username": "erin", "uid": "u7", "groups": ["a", "b", "system:authenticated"],
        "extra": {"scopes": ["one", "two"], "example.com/key": ["x%2fy"], "100%": ["z"]}}, user)
    status, user = w.who(proxy, X_Remote_User="system:anonymous", X_Remote_Group="system:unauthenticated")
    t.check("a stranger stays one behind a proxy", status == 201 and user["groups"] == ["system:unauthenticated"], user)
    t.check("a proxy that names nobody is nobody", w.who(proxy) == (401, UNAUTHORIZED))
    wrong_name = w.certificate(w.proxy_ca, "/CN=somebody")
    t.check("a proxy of another name is not believed", w.who(wrong_name, X_Remote_User="erin") == (401, UNAUTHORIZED))
    other = w.certificate(w.other_ca, "/CN=front-proxy-client")
    t.check("a proxy of another authority is not believed", w.who(other, X_Remote_User="erin") == (401, UNAUTHORIZED))
    expired = w.certificate(w.proxy_ca, "/CN=front-proxy-client", days=-1)
    t.check("an expired proxy is not believed", w.who(expired, X_Remote_User="erin") == (401, UNAUTHORIZED))
    user_pair = w.certificate(w.ca, "/CN=front-proxy-client")
    status, user = w.who(user_pair, X_Remote_User="erin")
    t.check("a user of the proxy's name is no proxy", user.get("username") == "front-proxy-client", user)
    status, user = w.who(token="alice-token", X_Remote_User="erin")
    t.check("headers alone say nothing", user.get("username") == "alice", user)


def strangers(w, t):
    status, user = w.who()
    t.check("who shows nothing is anonymous", status == 201 and user == {
        "username": "system:anonymous", "groups": ["system:unauthenticated"]}, user)
    for name, value in (("Basic", "Basic eDp5"), ("empty", "Bearer"), ("spaced", "Bearer  alice-token")):
        status, user = w.who(authorization=value)
        t.check(f"{name} credentials are none", status == 201 and user["username"] == "system:anonymous", user)
    r = w.server.request("GET", "/version", token=None, authorization="Bearer  alice-token")
    t.check("a space too many is told", "extra space before the bearer token" in r.headers.get("Warning", ""), r.headers)
    t.check("an unknown token is refused", w.who(token="nope") == (401, UNAUTHORIZED))
    t.check("also where strangers may go", w.server.request("GET", "/healthz", token="nope").status == 401)


def service_accounts(w, t):
    w.account("bot")
    token = w.server.kubectl("create", "token", "bot").stdout.strip()
    head, body, signature = token.split(".")
    status, user = w.who(token=token)
    t.check("a token from kubectl is known", status == 201 and user["username"] == "system:serviceaccount:default:bot" and
            user["groups"] == ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"] and
            user["extra"] == {"authentication.kubernetes.io/credential-id": ["JTI=" + claims_of(token)["jti"]]}, user)
    whoami = w.server.kubectl("--kubeconfig", os.devnull, "--server", f"https://127.0.0.1:{w.server.port}", "--certificate-authority", w.ca[0],
                              "--token", token, "auth", "whoami", "-o", "json")
    t.check("kubectl can use it", json.loads(whoami.stdout)["status"]["userInfo"] == user, whoami.stdout)
    raw = unbase64(signature)
    numbers = b"".join(b"\x02" + bytes([len(n)]) + n for n in
                       ((b"\0" + n if n[0] & 0x80 else n) for n in (x.lstrip(b"\0") for x in (raw[:32], raw[32:]))))
    with open(w.file("sig"), "wb") as f:
        f.write(b"\x30" + bytes([len(numbers)]) + numbers)
    r = openssl("dgst", "-sha256", "-verify", os.path.join(w.pki, "sa.pub"), "-signature", w.file("sig"),
                stdin=f"{head}.{body}".encode())
    t.check("openssl agrees with its signature", b"Verified OK" in r, r)
    keys = w.server.request("GET", "/openid/v1/jwks", accept="*/*")
    t.check("its key is published", json.loads(unbase64(head))["kid"] == keys.json["keys"][0]["kid"] and
            keys.headers["Content-Type"] == "application/jwk-set+json" and
            keys.headers["Cache-Control"] == "public, max-age=3600", (keys, keys.headers))
    key = keys.json["keys"][0]
    public = openssl("ec", "-pubin", "-in", os.path.join(w.pki, "sa.pub"), "-outform", "DER")
    t.check("as it is", list(key) == ["use", "kty", "kid", "crv", "alg", "x", "y"] and
            public.endswith(unbase64(key["x"]) + unbase64(key["y"])), key)
    about = w.server.request("GET", "/.well-known/openid-configuration").json
    t.check("and so is where to find it", about["issuer"] == claims_of(token)["iss"] and about["jwks_uri"].endswith("/openid/v1/jwks") and
            about["id_token_signing_alg_values_supported"] == ["ES256"], about)
    t.check("a changed token is refused", w.who(token=f"{head}.{body}.{'A' * len(signature)}") == (401, UNAUTHORIZED))
    none = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
    t.check("an unsigned one, too", w.who(token=f"{none}.{body}.") == (401, UNAUTHORIZED))
    t.check("one for somebody else, too", w.who(token=w.token("bot", audiences=["vault"])) == (401, UNAUTHORIZED))


def bound_tokens(w, t):
    w.account("bound")
    made = w.server.request("POST", "/api/v1/namespaces/default/pods", {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"serviceAccountName": "bound", "automountServiceAccountToken": False, "containers": [{"name": "c", "image": "i"}]}})
    ref = {"apiVersion": "v1", "kind": "Pod", "name": "p"}
    token, long = w.token("bound", boundObjectRef=ref), w.token("bound", boundObjectRef=ref, expirationSeconds=3607)
    status, user = w.who(token=token)
    t.check("a token of a pod names the pod", status == 201 and
            user["extra"]["authentication.kubernetes.io/pod-name"] == ["p"] and
            user["extra"]["authentication.kubernetes.io/pod-uid"] == [made.json["metadata"]["uid"]], user)
    c = claims_of(long)
    t.check("a kubelet's token lives for a year", c["exp"] - c["iat"] == 365 * 24 * 3600 and
            c["kubernetes.io"]["warnafter"] - c["iat"] == 3607, c)
    w.server.request("DELETE", "/api/v1/namespaces/default/pods/p?gracePeriodSeconds=0")
    t.check("and ends with its pod", cluster.wait_until(lambda: w.who(token=token)[0] == 401, what="the token to end"))
    t.check("as a review says", w.review(token) == {"user": {}, "error": "service account token has been invalidated"}, w.review(token))
    for kind, path in (("Secret", "/api/v1/namespaces/default/secrets"), ("Node", "/api/v1/nodes")):
        made = w.server.request("POST", path, {"apiVersion": "v1", "kind": kind, "metadata": {"name": "b"}})
        ref = {"apiVersion": "v1", "kind": kind, "name": "b"}
        token = w.token("bound", boundObjectRef={**ref, "uid": made.json["metadata"]["uid"]})
        status, user = w.who(token=token)
        node = {"authentication.kubernetes.io/node-name": ["b"], "authentication.kubernetes.io/node-uid": [made.json["metadata"]["uid"]]}
        told = {k: v for k, v in user.get("extra", {}).items() if "node" in k}
        t.check(f"a token of a {kind}", status == 201 and told == (node if kind == "Node" else {}), user)
        r = w.server.request("POST", "/api/v1/namespaces/default/serviceaccounts/bound/token", {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"boundObjectRef": {**ref, "uid": "x"}}})
        t.check(f"there is none of another {kind}", r.status == 409, r)
        w.server.request("DELETE", path + "/b")
        cluster.wait_until(lambda: w.who(token=token)[0] == 401, what="the token to end")
        t.check(f"and ends with its {kind}", w.review(token)["error"] == "service account token has been invalidated", w.review(token))
    token = w.token("bound")
    w.server.request("DELETE", "/api/v1/namespaces/default/serviceaccounts/bound")
    cluster.wait_until(lambda: w.who(token=token)[0] == 401, what="the token to end")
    t.check("a token ends with its account", w.review(token)["error"] == 'serviceaccounts "bound" not found', w.review(token))
    w.account("bound")
    answer = w.review(token)
    t.check("and does not come back with its name", "does not match claim" in answer["error"] and w.who(token=token)[0] == 401, answer)


def token_reviews(w, t):
    w.account("reviewed")
    token = w.token("reviewed", audiences=["vault", "db"])
    answer = w.review(token, audiences=["db", "other"])
    t.check("a review tells the user and the audiences in common", answer["authenticated"] and answer["audiences"] == ["db"] and
            answer["user"]["username"] == "system:serviceaccount:default:reviewed" and
            "system:authenticated" in answer["user"]["groups"], answer)
    answer = w.review(token)
    t.check("or why not", answer == {"user": {}, "error": 'token audiences ["vault" "db"] is invalid for the target audiences '
            '["https://kubernetes.default.svc.cluster.local"]'}, answer)
    t.check("a token that nobody knows", w.review("nope") == {"user": {}, "error": "invalid bearer token"}, w.review("nope"))
    answer = w.review("alice-token")
    t.check("a static token is for this server", answer["authenticated"] and answer["user"]["username"] == "alice" and
            len(answer["audiences"]) == 1, answer)
    t.check("and for no other", w.review("alice-token", audiences=["db"]) == {"user": {}, "error": "invalid bearer token"})
    r = w.server.request("POST", AUTHN + "/tokenreviews", {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {}})
    t.check("a review needs a token", r.status == 400 and r.json["message"] == "token is required for TokenReview in authentication", r)


def bootstrap_tokens(w, t):
    def make(secret_id, **data):
        return w.server.request("POST", "/api/v1/namespaces/kube-system/secrets", {
            "apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token",
            "metadata": {"name": "bootstrap-token-" + secret_id}, "stringData": {
                "token-id": secret_id, "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true",
                **{k.replace("_", "-"): v for k, v in data.items()}}})
    make("abcdef", auth_extra_groups="system:bootstrappers:workers", expiration=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 60)))
    status, user = w.who(token="abcdef.0123456789abcdef")
    t.check("a bootstrap token is known", status == 201 and user == {"username": "system:bootstrap:abcdef", "groups": [
        "system:bootstrappers", "system:bootstrappers:workers", "system:authenticated"]}, user)
    t.check("its secret counts", w.who(token="abcdef.0123456789abcdee") == (401, UNAUTHORIZED))
    make("ghijkl", expiration="2020-01-01T00:00:00Z")
    t.check("an expired one does not", w.who(token="ghijkl.0123456789abcdef") == (401, UNAUTHORIZED))
    make("mnopqr", usage_bootstrap_authentication="false")
    t.check("nor one for signing only", w.who(token="mnopqr.0123456789abcdef") == (401, UNAUTHORIZED))


def websocket_tokens(w, t):
    def answer(*protocols):
        c = w.connect()
        c.request("GET", "/api/v1/namespaces/default/pods/none/exec?command=x&stdout=true", headers={
            "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol": ", ".join(protocols)})
        return c.getresponse().status

    def bearer(token):
        return "base64url.bearer.authorization.k8s.io." + base64.urlsafe_b64encode(token.encode()).rstrip(b"=").decode()
    t.check("a WebSocket may name its token", answer("v5.channel.k8s.io", bearer("admin-token")) == 404)
    t.check("a wrong one is refused", answer("v5.channel.k8s.io", bearer("nope")) == 401)
    t.check("two are refused", answer("v5.channel.k8s.io", bearer("admin-token"), bearer("admin-token")) == 401)
    t.check("without another protocol, too", answer(bearer("admin-token")) == 401)


def keys_change(w, t):
    """Another server, which strangers may not use: tokens of its old key are good for as long as that is named."""
    folder, keys = w.file("second"), []
    for i in range(2):
        keys.append(w.file(f"key{i}.pem"))
        openssl("genrsa", "-out", keys[i], "2048")
    common = ["--anonymous-auth=false", "--service-account-max-token-expiration=1h", "--service-account-issuer=https://second"]

    def server(signing, *checking):
        s = cluster.Server(folder, *common, "--service-account-signing-key-file", keys[signing],
                           *(f for k in checking for f in ("--service-account-key-file", keys[k])))
        return s.start()

    def status(s, token):
        return s.request("GET", "/version", token=token).status
    s = server(0)
    s.request("POST", "/api/v1/namespaces/default/serviceaccounts", {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "x"}})
    t.check("strangers may be kept out", s.request("GET", "/healthz", token=None).status == 401)
    old = w.token("x", server=s)
    t.check("RSA keys sign with RS256", json.loads(unbase64(old.split(".")[0]))["alg"] == "RS256" and status(s, old) == 200)
    key = s.request("GET", "/openid/v1/jwks", accept="application/jwk-set+json").json["keys"][0]
    modulus = openssl("rsa", "-in", keys[0], "-noout", "-modulus").decode().strip().split("=")[1]
    t.check("and are published so", list(key) == ["use", "kty", "kid", "alg", "n", "e"] and key["e"] == "AQAB" and
            unbase64(key["n"]).hex().upper() == modulus, key)
    r = s.request("POST", "/api/v1/namespaces/default/serviceaccounts/x/token", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}})
    c = claims_of(r.json["status"]["token"])
    t.check("the longest life is kept to", c["exp"] - c["iat"] == 3600 and r.json["spec"]["expirationSeconds"] == 3600 and
            "requested expiration of 7200 seconds shortened to 3600 seconds" in r.headers["Warning"], (c, r.headers))
    s.stop()
    s = server(1, 1, 0)
    new = w.token("x", server=s)
    t.check("both keys count while both are named", status(s, old) == 200 and status(s, new) == 200)
    s.stop()
    s = server(1)
    t.check("then only the new one", status(s, old) == 401 and status(s, new) == 200)
    s.stop()


class Authorities:
    """A server whose authorities of users and of proxies are replaced while it runs. That takes some seconds, which other tests
    have for themselves."""

    def begin(self, w, t):
        self.files = {"users": w.file("users.pem"), "proxies": w.file("proxies.pem")}
        self.old, self.new = ({name: w.authority(f"{age}-{name}") for name in self.files} for age in ("old", "new"))
        self.put(self.old)
        self.server = cluster.Server(
            w.file("authorities"), "--client-ca-file", self.files["users"], "--requestheader-client-ca-file", self.files["proxies"],
            "--requestheader-allowed-names=front", "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group").start()
        names = [("users", "/O=devs/CN=vera"), ("proxies", "/CN=front")]
        self.pairs = {age: {n: w.certificate(ca[n], s) for n, s in names} for age, ca in (("old", self.old), ("new", self.new))}
        between = [w.through(self.old[n], f"between-{n}", s) for n, s in names]
        self.connections = [w.connect(pair, self.server) for pair in (*(self.pairs["old"][n] for n, _ in names), *between)]
        self.silent = [w.connect(pair, self.server) for pair in (self.pairs["old"]["users"], between[0])]
        for c in self.silent:
            c.connect()
        t.check("the authorities there are", self.known(w, "old") == ["vera", "erin"] and self.known(w, "new") == [401, 401],
                (self.known(w, "old"), self.known(w, "new")))
        t.check("those who stay connected, and others between them and the authority", self.staying(w) == [201] * 4, self.staying(w))
        self.put(self.new)

    def put(self, authorities):
        for name, path in self.files.items():
            with open(authorities[name][0]) as f, open(path + ".new", "w") as out:
                out.write(f.read())
            os.replace(path + ".new", path)

    def known(self, w, age):
        """As whom a user and a proxy's user come through; or the status."""
        answers = [w.who(self.pairs[age]["users"], server=self.server),
                   w.who(self.pairs[age]["proxies"], server=self.server, X_Remote_User="erin", X_Remote_Group="devs")]
        return [user["username"] if status == 201 else status for status, user in answers]

    def staying(self, w):
        return [w.who(connection=c, X_Remote_User="erin")[0] for c in self.connections]

    def end(self, w, t):
        cluster.wait_until(lambda: self.known(w, "new") == ["vera", "erin"], 30, "new authorities to count")
        t.check("old ones do not count any more, without a restart", self.known(w, "old") == [401, 401], self.known(w, "old"))
        t.check("nor for those who are connected still", self.staying(w) == [401] * 4, self.staying(w))
        late = [w.who(connection=c)[0] for c in self.silent]
        t.check("nor for those who had not said a word before", late == [401] * 2, late)
        with open(self.files["proxies"], "w") as f:
            f.write("nonsense\n")
        cluster.wait_until(lambda: "authorities cannot be read again" in self.server.said(), 20, "the complaint")
        t.check("what cannot be read changes nothing", self.known(w, "new") == ["vera", "erin"])
        t.check("it ends in good order", self.server.stop() == 0)


def main():
    with tempfile.TemporaryDirectory() as folder:
        w = World(folder)
        try:
            authorities = Authorities()
            tests = [authorities.begin, certificates, front_proxy, strangers, service_accounts, bound_tokens, token_reviews, bootstrap_tokens,
                     websocket_tokens, keys_change, authorities.end]

            def named(test):
                def one(t):
                    test(w, t)
                one.__name__ = test.__name__
                return one
            tap.run([named(x) for x in tests])
        finally:
            w.server.stop()


if __name__ == "__main__":
    main()
