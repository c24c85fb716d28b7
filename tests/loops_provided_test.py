"""What controllers provide without being asked for it by a workload: volumes of the built-in provisioner, tokens in Secrets, what a node needs to
join, roles that are put together. With real containers, and each controller with its own service account."""
import base64
import json
import os
import time

import nodes
from nodes import wait_until
from tap import Tap

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1}}


class Node(nodes.Node):
    def __init__(self):
        super().__init__(loops=True)
        self.volumes = os.path.join(self.folder, "volumes")
        self.flags = ["--local-path-root", self.volumes]

    def loop_flags(self, name):
        more = {"kube-controller-manager": ["--local-path-root", self.volumes, "--controllers", "*,bootstrap-signer-controller,token-cleaner-controller"]}
        return super().loop_flags(name) + more.get(name, [])


def run_pod(node, command):
    """Runs a pod that mounts the claim, to its end; what it printed."""
    spec = {"containers": [{"name": "c", "image": node.image, "command": ["sh", "-c", command], "volumeMounts": [{"name": "v", "mountPath": "/data"}]}],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "claim"}}]}
    node.server.request("POST", "/api/v1/namespaces/default/pods", {**POD, "spec": {**POD["spec"], **spec}})
    wait_until(lambda: node.get("/api/v1/namespaces/default/pods/p").json["status"]["phase"] in ("Succeeded", "Failed"), 30, "the end of the pod")
    said = node.get("/api/v1/namespaces/default/pods/p/log").body.decode()
    node.server.request("DELETE", "/api/v1/namespaces/default/pods/p")
    wait_until(lambda: node.get("/api/v1/namespaces/default/pods/p").status == 404, 30, "the pod to be gone")
    return said


def check_volumes(t, node):
    wait_until(lambda: node.get("/apis/storage.k8s.io/v1/storageclasses/local-path").status == 200, 20, "the class")
    made = node.get("/apis/storage.k8s.io/v1/storageclasses/local-path").json
    t.check("there is a default class", made["metadata"]["annotations"]["storageclass.kubernetes.io/is-default-class"] == "true" and
            made["volumeBindingMode"] == "WaitForFirstConsumer" and made["reclaimPolicy"] == "Delete", made)
    claims = "/api/v1/namespaces/default/persistentvolumeclaims"
    r = node.server.request("POST", claims, {"metadata": {"name": "claim"}, "spec": {"accessModes": ["ReadWriteOnce"],
                                                                                    "resources": {"requests": {"storage": "1Gi"}}}})
    t.check("a claim without a class gets it", r.json["spec"].get("storageClassName") == "local-path", r)
    run_pod(node, "echo kept > /data/file")
    claim = node.get(claims + "/claim").json
    volume = node.get("/api/v1/persistentvolumes/" + claim["spec"].get("volumeName", "-")).json
    t.check("its volume is a folder of the node", claim["status"]["phase"] == "Bound" and
            volume["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"] == made["provisioner"] and
            volume["spec"]["hostPath"]["path"].startswith(node.volumes + "/pvc-") and os.path.isfile(volume["spec"]["hostPath"]["path"] + "/file"), volume)
    t.check("what one pod wrote, the next one reads", run_pod(node, "cat /data/file") == "kept\n")
    node.server.request("DELETE", claims + "/claim")
    wait_until(lambda: node.get("/api/v1/persistentvolumes/" + volume["metadata"]["name"]).status == 404, 30, "the volume to be gone")
    t.check("with the claim the folder goes", os.listdir(node.volumes) == [], os.listdir(node.volumes))


def check_tokens(t, node):
    secrets = "/api/v1/namespaces/default/secrets"
    node.server.request("POST", secrets, {"metadata": {"name": "t", "annotations": {"kubernetes.io/service-account.name": "default"}},
                                          "type": "kubernetes.io/service-account-token"})
    wait_until(lambda: "token" in node.get(secrets + "/t").json.get("data", {}), 20, "the token")
    secret = node.get(secrets + "/t").json
    token = base64.b64decode(secret["data"]["token"]).decode()
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    t.check("a Secret for a service account gets a token", claims["sub"] == "system:serviceaccount:default:default" and
            claims["kubernetes.io/serviceaccount/secret.name"] == "t" and base64.b64decode(secret["data"]["namespace"]) == b"default" and
            b"BEGIN CERTIFICATE" in base64.b64decode(secret["data"]["ca.crt"]), claims)
    r = node.server.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, token=token)
    t.check("with which it can be called", r.status == 201 and r.json["status"]["userInfo"]["username"] == "system:serviceaccount:default:default", r)
    node.server.request("POST", secrets, {"metadata": {"name": "of-none", "annotations": {"kubernetes.io/service-account.name": "none"}},
                                          "type": "kubernetes.io/service-account-token"})
    wait_until(lambda: node.get(secrets + "/of-none").status == 404, 20, "the Secret of no account to be gone")
    t.check("one for an account that is not there goes", True)


def bootstrap_token(name, seconds):
    ends = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))
    return {"metadata": {"name": "bootstrap-token-" + name}, "type": "bootstrap.kubernetes.io/token",
            "stringData": {"token-id": name, "token-secret": "0123456789abcdef", "usage-bootstrap-signing": "true", "expiration": ends}}


def check_joining(t, node):
    secrets, info = "/api/v1/namespaces/kube-system/secrets", "/api/v1/namespaces/kube-public/configmaps/cluster-info"
    node.server.request("POST", "/api/v1/namespaces/kube-public/configmaps", {"metadata": {"name": "cluster-info"}, "data": {"kubeconfig": "x: y"}})
    node.server.request("POST", secrets, bootstrap_token("aaaaaa", 3600))
    node.server.request("POST", secrets, bootstrap_token("bbbbbb", 3))
    wait_until(lambda: "jws-kubeconfig-aaaaaa" in node.get(info).json["data"], 20, "the signature")
    wait_until(lambda: node.get(secrets + "/bootstrap-token-bbbbbb").status == 404, 20, "the end of a token")
    wait_until(lambda: "jws-kubeconfig-bbbbbb" not in node.get(info).json["data"], 20, "the end of its signature")
    data = node.get(info).json["data"]
    head, payload, signature = data["jws-kubeconfig-aaaaaa"].split(".")
    t.check("cluster-info is signed for those who have a token", json.loads(base64.urlsafe_b64decode(head + "==")) == {"alg": "HS256", "kid": "aaaaaa"} and
            payload == "" and signature and "jws-kubeconfig-bbbbbb" not in data, data)


def check_roles(t, node):
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    rule = {"apiGroups": ["example.test"], "resources": ["things"], "verbs": ["get"]}
    node.server.request("POST", roles, {"metadata": {"name": "things", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}}, "rules": [rule]})
    for name in ("view", "edit", "admin"):
        wait_until(lambda: rule in node.get(f"{roles}/{name}").json["rules"], 20, "the rule in " + name)
    t.check("roles are put together from others, step by step", True)
    wait_until(lambda: node.get("/api/v1/namespaces/default/configmaps/kube-root-ca.crt").status == 200, 20, "the certificate")
    node.server.request("PATCH", "/api/v1/namespaces/default/configmaps/kube-root-ca.crt", {"data": {"ca.crt": "wrong"}}, content_type="application/merge-patch+json")
    wait_until(lambda: "BEGIN" in node.get("/api/v1/namespaces/default/configmaps/kube-root-ca.crt").json["data"]["ca.crt"], 20, "the right certificate")
    node.server.request("DELETE", "/api/v1/namespaces/default/serviceaccounts/default")
    wait_until(lambda: node.get("/api/v1/namespaces/default/serviceaccounts/default").status == 200, 20, "the account")
    t.check("the account and the certificate of a namespace come again", True)


def main():
    t = Tap()
    if why := nodes.missing():
        t.skip("what controllers provide", why)
        t.close()
    nodes.own_namespaces()
    with Node() as node:
        check_joining(t, node)
        check_tokens(t, node)
        check_roles(t, node)
        check_volumes(t, node)
    t.close()


if __name__ == "__main__":
    main()
