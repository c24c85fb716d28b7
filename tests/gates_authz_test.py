#!/usr/bin/env python3
"""Authorization as its users meet it: roles and bindings, nobody gives more than they have, aggregated roles, impersonation, reviews,
and the ways that always say the same. Needs C8S, the program to test."""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster  # noqa: E402
import peers  # noqa: E402
import tap  # noqa: E402

RBAC = "/apis/rbac.authorization.k8s.io/v1"
GROUP = "rbac.authorization.k8s.io"
TOKENS = "".join(f'{n}-token,{n},uid-{n}\n' for n in ("bob", "carol", "dave", "erin", "frank", "grace", "heidi", "ivan", "judy", "kim"))


class World:
    def __init__(self, folder):
        self.server = cluster.Server(folder)
        with open(self.server.tokens, "a") as f:
            f.write(TOKENS)
        self.server.start()
        self.create("/api/v1/namespaces", "v1", "Namespace", "t")

    def create(self, path, version, kind, name, token="admin-token", **more):
        meta = {"name": name, **more.pop("meta", {})}
        return self.server.request("POST", path, {"apiVersion": version, "kind": kind, "metadata": meta, **more}, token=token)

    def role(self, name, *rules, namespace="t", token="admin-token", **more):
        path, kind = (f"/namespaces/{namespace}/roles", "Role") if namespace else ("/clusterroles", "ClusterRole")
        return self.create(RBAC + path, GROUP + "/v1", kind, name, token, rules=list(rules), **more)

    def bind(self, name, role, *subjects, namespace="t", kind="Role", token="admin-token"):
        path, own = (f"/namespaces/{namespace}/rolebindings", "RoleBinding") if namespace else \
            ("/clusterrolebindings", "ClusterRoleBinding")
        return self.create(RBAC + path, GROUP + "/v1", own, name, token, roleRef={"apiGroup": GROUP, "kind": kind, "name": role},
                           subjects=[{"kind": k, "name": n, **({"namespace": "t"} if k == "ServiceAccount" else {"apiGroup": GROUP})}
                                     for k, n in subjects])

    def get(self, path, token, **headers):
        return self.server.request("GET", path, token=token, **headers)

    def with_headers(self, path, token, *headers):
        c = self.server.connect()
        c.putrequest("GET", path)
        for name, value in [("Authorization", "Bearer " + token), ("Accept", "application/json"), *headers]:
            c.putheader(name, value)
        c.endheaders()
        r = c.getresponse()
        answer = cluster.Answer(r.status, r.headers, r.read())
        c.close()
        return answer


def rule(verbs, resources, groups="", **more):
    return {"verbs": verbs.split(), "apiGroups": groups.split(",") , "resources": resources.split(), **more}


PODS = "/api/v1/namespaces/t/pods"


def narrow_roles(w, t):
    first = w.get(PODS, "alice-token")
    t.check("who has no role may nothing", first.status == 403 and first.json["message"] ==
            'pods is forbidden: User "alice" cannot list resource "pods" in API group "" in the namespace "t"', first)
    t.check("403 is not to be sniffed", first.headers["X-Content-Type-Options"] == "nosniff", first.headers)
    w.bind("early", "late", ("User", "alice"))
    r = w.get(PODS, "alice-token")
    t.check("a role that is missing is told", r.status == 403 and r.json["message"].endswith(
        ': RBAC: role.rbac.authorization.k8s.io "late" not found'), r)
    w.role("late", rule("list get", "pods"), rule("get", "configmaps", resourceNames=["one"]))
    t.check("a role that comes later counts at once", w.get(PODS, "alice-token").status == 200)
    t.check("it is for its namespace only", w.get("/api/v1/namespaces/default/pods", "alice-token").status == 403)
    names = [w.get(f"/api/v1/namespaces/t/configmaps/{n}", "alice-token").status for n in ("one", "two")]
    t.check("names", names == [404, 403], names)
    r = w.get("/api/v1/namespaces/t/configmaps?fieldSelector=metadata.name%3Done", "alice-token")
    t.check("a list of one name is about that name", r.json["message"].startswith('configmaps "one" is forbidden'), r)
    w.server.request("DELETE", RBAC + "/namespaces/t/rolebindings/early")
    t.check("and nothing once the binding is gone", w.get(PODS, "alice-token").status == 403)
    w.role("watcher", rule("get", "pods/log */scale"), namespace=None)
    w.bind("accounts", "watcher", ("Group", "system:serviceaccounts:t"), kind="ClusterRole")
    may = lambda what: w.server.kubectl("auth", "can-i", *what, "-n", "t", "--as=system:serviceaccount:t:bot", check=False).stdout
    t.check("groups of service accounts, subresources", [may(x).strip() for x in (
        ["get", "pods", "--subresource=log"], ["get", "deployments.apps", "--subresource=scale"], ["get", "pods"])] ==
        ["yes", "no", "no"])
    w.role("exec", rule("get", "pods pods/exec"))
    w.bind("exec", "exec", ("User", "dave"))
    r = w.with_headers(PODS + "/x/exec?command=ls", "dave-token", ("Connection", "Upgrade"), ("Upgrade", "websocket"))
    t.check("opening an exec by GET takes the permission to create", r.status == 403 and
            r.json["message"] == 'pods "x" is forbidden: ', r)
    everybody = w.get("/healthz", None).status, w.get("/api", None).status, w.get("/api", "alice-token").status
    t.check("strangers see that it is well, users see what there is", everybody == (200, 403, 200), everybody)


def odd_paths(w, t):
    w.role("everything", rule("*", "*", "*"))
    w.bind("everything", "everything", ("User", "ivan"))
    w.create("/api/v1/namespaces", "v1", "Namespace", "other")
    own, by_own = "/api/v1/namespaces/t", "/api/v1/namespaces/t/namespaces/other"
    t.check("who may all in a namespace may read it", w.get(own, "ivan-token").status == 200)
    answers = [w.server.request(method, by_own + tail, body, token="ivan-token").status for method, tail, body in (
        ("GET", "", None), ("DELETE", "", None), ("PATCH", "", {"metadata": {"labels": {"a": "b"}}}), ("PUT", "/finalize", {}))]
    t.check("and no other by way of it", answers == [404] * 4, answers)
    t.check("which is still there", w.get("/api/v1/namespaces/other", "admin-token").json["status"]["phase"] == "Active")
    w.role("reader", rule("get list watch", "*", "*"), namespace=None)
    w.bind("reader", "reader", ("User", "judy"), namespace=None, kind="ClusterRole")
    answers = [w.server.request("POST", f"/api/v1/watch/{x}/proxy/run", "x", token="judy-token").status
               for x in ("nodes/n", "namespaces/t/pods/p", "namespaces/t/services/s")]
    t.check("what is asked for as a watch is no way to nodes and pods", answers == [404] * 3, answers)
    strange = ("//api/v1/namespaces/t/secrets", "/api/v1/namespaces/t/secrets/", "/api/v1/namespaces/t%2fsecrets", "/%61pi/v1/secrets",
               "/api/v1/namespaces//secrets", "/api/v1/namespaces/t/secrets?fieldSelector=metadata.name%3Dx&watch=0")
    answers = [w.get(x, "kim-token").status for x in strange]
    t.check("other spellings are the same question", answers == [403] * len(strange), answers)


def makes(w, t):
    lease = lambda name: {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}}
    path = "/apis/coordination.k8s.io/v1/namespaces/t/leases/"
    w.role("changer", rule("update patch", "leases configmaps", "coordination.k8s.io,"))
    w.bind("changer", "changer", ("User", "kim"))
    r = w.server.request("PUT", path + "a", lease("a"), token="kim-token")
    t.check("an update that makes something takes the permission to create", r.status == 403 and r.json["message"] ==
            'leases.coordination.k8s.io "a" is forbidden: User "kim" cannot create resource "leases" in API group '
            '"coordination.k8s.io" in the namespace "t"', r)
    apply = lambda path, body: w.server.request("PATCH", path + "?fieldManager=x", json.dumps(body), token="kim-token",
                                                content_type="application/apply-patch+yaml")
    r = apply("/api/v1/namespaces/t/configmaps/m", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}})
    t.check("and so does apply", r.status == 403 and 'User "kim" cannot create resource "configmaps"' in r.json["message"], r)
    w.role("maker-too", rule("create", "leases configmaps", "coordination.k8s.io,"))
    w.bind("maker-too", "maker-too", ("User", "kim"))
    t.check("who has it may", w.server.request("PUT", path + "a", lease("a"), token="kim-token").status == 201 and
            apply("/api/v1/namespaces/t/configmaps/m", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}).status == 201)


REVIEWS = [(f"selfsubject{x}", "[]", "[]", "[create]") for x in (
    "reviews.authentication.k8s.io", "accessreviews.authorization.k8s.io", "rulesreviews.authorization.k8s.io")]
PATHS = ["/api/*", "/api", "/apis/*", "/apis", "/healthz", "/healthz", "/livez", "/livez", "/openapi/*", "/openapi", "/readyz", "/readyz",
         "/version/", "/version/", "/version", "/version"]


def table(rows):
    """As kubectl prints it."""
    rows = [("Resources", "Non-Resource URLs", "Resource Names", "Verbs"), *rows]
    widths = [max(len(row[i]) for row in rows) + 3 for i in range(3)]
    return "".join("".join(cell.ljust(n) for cell, n in zip(row, widths)) + row[3] + "\n" for row in rows)


def lists(w, t):
    w.role("lister", rule("get list", "pods"), rule("get", "configmaps", resourceNames=["one"]))
    w.bind("lister", "lister", ("User", "bob"))
    everybody = [("", f"[{x}]", "[]", "[get]") for x in PATHS]
    issuer = [("", f"[{x}]", "[]", "[get]") for x in ("/.well-known/openid-configuration/", "/.well-known/openid-configuration")]
    keys = [("", f"[{x}]", "[]", "[get]") for x in ("/openid/v1/jwks/", "/openid/v1/jwks")]
    account = [*REVIEWS, *issuer, *everybody[:10], *keys, *everybody[10:]]
    node = "Warning: the list may be incomplete: node authorizer does not support user rule resolution\n"
    for who, flags, rows, warning in (
            ("somebody who may everything", [], [("*.*", "[]", "[]", "[*]"), ("", "[*]", "[]", "[*]"), *REVIEWS, *everybody], ""),
            ("a narrow user", ["--as=bob"], [*REVIEWS, ("pods", "[]", "[]", "[get list]"), *everybody,
                                            ("configmaps", "[]", "[one]", "[get]")], ""),
            ("a service account", ["--as=system:serviceaccount:other:bot"], account, ""),
            ("a node", ["--as=system:node:n1", "--as-group=system:nodes"], [*REVIEWS, *everybody], node)):
        r = w.server.kubectl("auth", "can-i", "--list", "-n", "t", *flags, check=False)
        t.check(f"kubectl auth can-i --list: {who}", (r.returncode, r.stdout, r.stderr) == (0, table(rows), warning),
                f"{r}\nwanted: {table(rows)}")
    r = w.server.kubectl("auth", "can-i", "--list", "--as=system:anonymous", check=False)
    t.check("kubectl auth can-i --list: nobody", (r.returncode, r.stdout, r.stderr) == (
        1, "", 'Error from server (Forbidden): selfsubjectrulesreviews.authorization.k8s.io is forbidden: User "system:anonymous" cannot '
        'create resource "selfsubjectrulesreviews" in API group "authorization.k8s.io" at the cluster scope\n'), r)
    may = lambda *what: (lambda r: (r.returncode, r.stdout, r.stderr))(w.server.kubectl("auth", "can-i", *what, check=False))
    for name, what, answer in (
            ("yes", ["list", "pods", "-n", "t", "--as=bob"], (0, "yes\n", "")), ("no", ["list", "pods", "--as=bob"], (1, "no\n", "")),
            ("a node's own", ["get", "nodes/n1", "--as=system:node:n1", "--as-group=system:nodes"],
             (0, "yes\n", "Warning: resource 'nodes' is not namespace scoped\n\n")),
            ("a node's others", ["get", "nodes", "--as=system:node:n1", "--as-group=system:nodes"], (
                1, "no - node 'n1' cannot read all nodes, only its own Node object\n",
                "Warning: resource 'nodes' is not namespace scoped\n\n"))):
        t.check(f"kubectl auth can-i: {name}", may(*what) == answer, may(*what))


def escalation(w, t):
    w.role("maker", rule("create update patch", "roles rolebindings", GROUP), rule("get", "pods"))
    w.bind("maker", "maker", ("User", "carol"))
    r = w.role("more", rule("get list", "pods"), rule("delete", "secrets"), token="carol-token")
    t.check("a role with more than one has", r.status == 403 and r.json["message"] ==
            'roles.rbac.authorization.k8s.io "more" is forbidden: user "carol" (groups=["system:authenticated"]) is attempting to '
            'grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["pods"], Verbs:["list"]}\n'
            '{APIGroups:[""], Resources:["secrets"], Verbs:["delete"]}', r)
    t.check("a role with what one has", w.role("same", rule("get", "pods"), token="carol-token").status == 201)
    r = w.server.request("PATCH", RBAC + "/namespaces/t/roles/same", {"rules": [rule("*", "*")]}, token="carol-token")
    t.check("nor by a patch", r.status == 403 and "Verbs:[\"*\"]" in r.json["message"], r)
    w.role("strong", rule("*", "secrets"))
    r = w.bind("b", "strong", ("User", "carol"), token="carol-token")
    t.check("a binding of a role with more", r.status == 403 and r.json["message"].startswith(
        'rolebindings.rbac.authorization.k8s.io "b" is forbidden: user "carol"'), r)
    r = w.bind("b", "nothere", ("User", "carol"), token="carol-token")
    t.check("a binding of a role that is not there", r.status == 404 and r.json["message"] ==
            'roles.rbac.authorization.k8s.io "nothere" not found', r)
    t.check("a binding of a role with as much", w.bind("b", "same", ("User", "dave"), token="carol-token").status == 201)
    w.role("binder", rule("bind", "roles", GROUP, resourceNames=["strong"]), rule("escalate", "roles", GROUP, resourceNames=["same"]))
    w.bind("binder", "binder", ("User", "carol"))
    t.check("who may bind it may bind it", w.bind("c", "strong", ("User", "dave"), token="carol-token").status == 201)
    r = w.server.request("PATCH", RBAC + "/namespaces/t/roles/same", {"rules": [rule("*", "*")]}, token="carol-token")
    t.check("who may escalate it may write it", r.status == 200, r)
    w.role("roles", rule("*", "clusterroles", GROUP), namespace=None)
    w.bind("roles", "roles", ("User", "carol"), namespace=None, kind="ClusterRole")
    selector = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    t.check("escalate on all of them", w.role("agg1", namespace=None, token="carol-token", aggregationRule=selector).status == 201)
    w.role("some", rule("create update", "clusterroles", GROUP), namespace=None)
    w.bind("some", "some", ("User", "grace"), namespace=None, kind="ClusterRole")
    r = w.role("agg2", namespace=None, token="grace-token", aggregationRule=selector)
    t.check("an aggregated role needs everything", r.status == 403 and r.json["message"].endswith(
        "must have cluster-admin privileges to use the aggregationRule"), r)


def aggregation(w, t):
    rules = lambda name: [r["resources"] for r in w.get(f"{RBAC}/clusterroles/{name}", "admin-token").json["rules"] or []]
    w.role("part2", rule("get", "p2"), namespace=None, meta={"labels": {"kind": "part"}})
    w.role("whole", namespace=None, meta={"labels": {"outer": "yes"}},
           aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"kind": "part"}}]})
    w.role("outer", namespace=None, aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"outer": "yes"}}]})
    t.check("a role made of another", rules("whole") == [["p2"]] and rules("outer") == [["p2"]], rules("outer"))
    w.role("part1", rule("get", "p1"), rule("get", "p2"), namespace=None, meta={"labels": {"kind": "part"}})
    t.check("more parts, in the order of names, each rule once", rules("whole") == rules("outer") == [["p1"], ["p2"]], rules("whole"))
    w.server.request("DELETE", RBAC + "/clusterroles/part1")
    t.check("fewer parts", rules("whole") == rules("outer") == [["p2"]], rules("outer"))
    managers = {m["manager"]: m["operation"] for m in
                w.get(RBAC + "/clusterroles/whole", "admin-token").json["metadata"]["managedFields"]}
    t.check("written as Kubernetes' controller does", managers.get("clusterrole-aggregation-controller") == "Apply", managers)
    w.bind("editor", "edit", ("User", "erin"), kind="ClusterRole")
    r = w.create(PODS.replace("pods", "configmaps"), "v1", "ConfigMap", "made", token="erin-token")
    t.check("default roles have their rules once they are used", r.status == 201, r)
    out = w.server.kubectl("auth", "can-i", "list", "deployments.apps", "-n", "t", "--as=erin").stdout
    t.check("those of their parts, too", out.strip() == "yes", out)


def impersonation(w, t):
    me = lambda token, *h: w.with_headers("/api/v1/namespaces/t/secrets", token, *h)
    r = me("frank-token", ("Impersonate-User", "alice"))
    t.check("not without permission", r.status == 403 and r.json["message"] ==
            'secrets is forbidden: User "frank" cannot impersonate-on:user-info:list resource "secrets" in API group "" in the '
            'namespace "t"', r)
    r = me("frank-token", ("Impersonate-Group", "devs"), ("Impersonate-Extra-Scopes%2fA", "x"))
    t.check("groups and extras of nobody", r.status == 400 and r.json["message"] ==
            'requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"devs"}, Extra:map[string][]string{"scopes/a":'
            '[]string{"x"}}} without impersonating a user name', r)
    w.role("actor", rule("impersonate", "users", resourceNames=["alice"]), rule("impersonate", "groups", resourceNames=["devs"]),
           rule("impersonate", "userextras/scopes/a uids", "authentication.k8s.io", resourceNames=["x"]), namespace=None)
    w.bind("actor", "actor", ("User", "frank"), namespace=None, kind="ClusterRole")
    w.role("secrets", rule("list", "secrets"))
    w.bind("secrets", "secrets", ("Group", "devs"))
    r = me("frank-token", ("Impersonate-User", "alice"), ("Impersonate-Group", "devs"), ("Impersonate-Uid", "x"),
           ("Impersonate-Extra-Scopes%2fA", "x"))
    t.check("user, group, uid and extra", r.status == 200, r)
    r = me("frank-token", ("Impersonate-User", "alice"))
    t.check("is that user then", r.status == 403 and 'User "alice" cannot list' in r.json["message"], r)
    r = me("frank-token", ("Impersonate-User", "alice"), ("Impersonate-Group", "ops"))
    t.check("each is asked for", r.status == 403 and r.json["message"] ==
            'groups "ops" is forbidden: User "frank" cannot impersonate resource "groups" in API group "" at the cluster scope', r)
    r = me("frank-token", ("Impersonate-User", "alice"), ("Impersonate-Extra-Scopes%2fA", "y"))
    t.check("each value of an extra, too", r.status == 403 and r.json["message"].startswith(
        'userextras.authentication.k8s.io "y" is forbidden: User "frank" cannot impersonate resource "userextras/scopes/a"'), r)
    who = w.server.kubectl("auth", "whoami", "-o", "json", "--as=system:serviceaccount:t:bot", check=False)
    groups = json.loads(who.stdout)["status"]["userInfo"]["groups"] if who.returncode == 0 else who.stderr
    t.check("a service account has its groups", groups == ["system:serviceaccounts", "system:serviceaccounts:t",
                                                           "system:authenticated"], groups)
    w.role("narrow", rule("impersonate:user-info", "users", "authentication.k8s.io", resourceNames=["alice"]), namespace=None)
    w.bind("narrow", "narrow", ("User", "heidi"), namespace=None, kind="ClusterRole")
    w.role("on", rule("impersonate-on:user-info:get", "pods"))
    w.bind("on", "on", ("User", "heidi"))
    got = w.with_headers(PODS + "/x", "heidi-token", ("Impersonate-User", "alice"))
    listed = w.with_headers(PODS, "heidi-token", ("Impersonate-User", "alice"))
    t.check("the narrow way", 'User "alice" cannot get' in got.json["message"] and
            'User "heidi" cannot impersonate-on:user-info:list' in listed.json["message"], (got, listed))


def defaults_are_put_right(w, t):
    w.server.request("DELETE", RBAC + "/clusterroles/system:discovery")
    w.server.request("PATCH", RBAC + "/clusterroles/system:basic-user", {"rules": [rule("frob", "x")]})
    w.server.request("PATCH", RBAC + "/clusterroles/system:monitoring",
                     {"metadata": {"annotations": {"rbac.authorization.kubernetes.io/autoupdate": "false"}}, "rules": []})
    w.server.request("PATCH", RBAC + "/clusterrolebindings/system:discovery", {"subjects": [{"kind": "Group", "name": "x"}]})
    w.server.request("DELETE", RBAC + "/clusterrolebindings/system:kube-dns")
    w.bind("system:kube-dns", "edit", ("User", "x"), namespace=None, kind="ClusterRole")
    before = w.get(RBAC + "/clusterroles/system:node", "admin-token").json["metadata"]["resourceVersion"]
    w.server.stop()
    w.server.start()
    get = lambda path: w.get(RBAC + path, "admin-token").json
    t.check("one that is gone is back", get("/clusterroles/system:discovery")["rules"][0]["verbs"] == ["get"])
    rules = get("/clusterroles/system:basic-user")["rules"]
    t.check("rules are added, others stay", rules[0]["verbs"] == ["frob"] and len(rules) == 4, rules)
    t.check("somebody's own is left alone", not get("/clusterroles/system:monitoring")["rules"])
    names = [s["name"] for s in get("/clusterrolebindings/system:discovery")["subjects"]]
    t.check("subjects are added, others stay", names == ["x", "system:authenticated"], names)
    t.check("a binding of another role is made anew", get("/clusterrolebindings/system:kube-dns")["roleRef"]["name"] ==
            "system:kube-dns")
    t.check("what is right is not written", get("/clusterroles/system:node")["metadata"]["resourceVersion"] == before)


def other_modes(t):
    with tempfile.TemporaryDirectory() as folder:
        with cluster.Server(folder, "--authorization-mode=AlwaysDeny") as s:
            r = s.request("GET", "/api/v1/nodes", token="alice-token")
            t.check("AlwaysDeny", r.status == 403 and r.json["message"].endswith("at the cluster scope: Everything is forbidden."), r)
            t.check("AlwaysDeny, but not the privileged", s.request("GET", "/api/v1/nodes").status == 200)
        s.extra = ("--authorization-mode=AlwaysAllow",)
        with s:
            t.check("AlwaysAllow", s.request("GET", "/api/v1/nodes", token="alice-token").status == 200)
            t.check("AlwaysAllow lets no strangers in", s.request("GET", "/api/v1/nodes", token=None).status == 401)
        for mode, want in (("Frob", 'authorization-mode "Frob" is not a valid mode'), ("ABAC", "ABAC is not supported"),
                           ("RBAC,RBAC", 'authorization-mode ["RBAC" "RBAC"] has mode specified more than once'),
                           ("Webhook", "authorization-mode Webhook's authorization config file not passed")):
            r = subprocess.run([cluster.C8S, "kube-apiserver", "--data-dir", os.path.join(folder, "bad"), "--secure-port", "0",
                                "--authorization-mode", mode], capture_output=True, text=True, timeout=30)
            t.check(f"mode {mode} is refused", r.returncode != 0 and want in r.stderr + r.stdout, r.stderr + r.stdout)


def main():
    with tempfile.TemporaryDirectory() as folder:
        w = World(folder)
        tests = [narrow_roles, odd_paths, makes, escalation, aggregation, impersonation, defaults_are_put_right]
        if peers.find("kubectl", "kubernetes-client"):
            tests.insert(1, lists)

        def one(test):
            def run(t):
                test(w, t)
            run.__name__ = test.__name__
            return run
        try:
            tap.run([*(one(test) for test in tests), other_modes])
        finally:
            w.server.kill()


main()
