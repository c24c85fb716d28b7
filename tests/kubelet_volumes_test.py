#!/usr/bin/env python3
"""Every kind of volume in real pods: what containers see of it, what goes wrong and recovers, what follows a change, what is left afterwards.
Needs C8S, the program to test, with c8s-pod beside it, and root. Argument: the runtime, c8s or containerd."""
import base64
import json
import os
import shutil
import socket
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import images  # noqa: E402
import nfs  # noqa: E402
import nodes  # noqa: E402
import pods  # noqa: E402
import tap  # noqa: E402
from cluster import wait_until  # noqa: E402
from pods import BUILT_IN, end_of, finish, put, same, waiting  # noqa: E402

FAILED = 'MountVolume.SetUp failed for volume "{}" : {}'


def mounts_of(volumes, more=None):
    return [{"name": name, "mountPath": "/" + name, **(more or {}).get(name, {})} for name in volumes]


def create(n, name, volumes, script="true", more=None, spec=None, **container):
    """A pod with these volumes, each at / and its name; more: of their mounts. The script runs once."""
    return pods.create(n, name, script, {"volumes": [{"name": v, **source} for v, source in volumes.items()], **(spec or {})}, {"mark": "old"},
                       {"note": 'with "quotes"\nand lines'}, **{"volumeMounts": mounts_of(volumes, more), **container})


def once(n, name, *args, **more):
    create(n, name, *args, **more)
    return finish(n, name)


# ---- emptyDir ----

def test_empty_dir(t, n):
    script = ("cat /disk/first; stat -c %a /disk /mem; stat -f -c %T /mem; busybox df -k /mem | tail -1 | busybox awk '{print $2}'; "
              "dd if=/dev/zero of=/mem/x bs=1M count=5 2>/dev/null || echo full")
    first = {"name": "first", "image": n.image, "command": ["sh", "-c", "echo first >/disk/first"], "volumeMounts": mounts_of(["disk"])}
    got = once(n, "empty", {"disk": {"emptyDir": {}}, "mem": {"emptyDir": {"medium": "Memory", "sizeLimit": "4Mi"}}}, script,
               spec={"initContainers": [first]})
    same(t, "emptyDir: on disk and in memory, shared by containers, with a size", got, "first\n777\n1777\ntmpfs\n4096\nfull\n")


def test_empty_dir_limit(t, n):
    create(n, "full", {"v": {"emptyDir": {"sizeLimit": "1Mi"}}}, "dd if=/dev/zero of=/v/x bs=1M count=3 2>/dev/null; sleep 1000")
    same(t, "emptyDir: a pod that uses more than its limit is evicted", end_of(n, "full"),
         ["Failed", "Evicted", 'Usage of EmptyDir volume "v" exceeds the limit "1Mi". '])


# ---- hostPath ----

def test_host_path(t, n):
    host = n.host + "/path"
    os.makedirs(host + "/folder")
    with open(host + "/file", "w") as f:
        f.write("content\n")
    with open(host + "/folder/inside", "w") as f:
        f.write("inside\n")
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(host + "/socket")
    os.mknod(host + "/block", 0o600 | 0o60000, os.makedev(7, 0))
    kinds = {"dir": ("/folder", "Directory"), "newdir": ("/new/deep", "DirectoryOrCreate"), "file": ("/file", "File"), "any": ("/folder", ""),
             "newfile": ("/made", "FileOrCreate"), "sock": ("/socket", "Socket"), "block": ("/block", "BlockDevice")}
    volumes = {name: {"hostPath": {"path": host + path, "type": kind}} for name, (path, kind) in kinds.items()}
    volumes["char"] = {"hostPath": {"path": "/dev/zero", "type": "CharDevice"}}
    got = once(n, "host", volumes, "cat /dir/inside /file /any/inside; echo made >/newdir/x; echo more >/newfile; test -S /sock && echo socket; "
               "test -b /block && echo block; test -c /char && echo char")
    same(t, "hostPath: every type", got, "inside\ncontent\ninside\nsocket\nblock\nchar\n")
    with open(host + "/new/deep/x") as x, open(host + "/made") as y:
        same(t, "hostPath: what was made is on the node", (x.read(), y.read()), ("made\n", "more\n"))
    modes = [oct(os.stat(host + p).st_mode & 0o777) for p in ("/new/deep", "/made")]
    same(t, "hostPath: with the modes of what is made", modes, ["0o755", "0o644"])
    sock.close()


def test_host_path_wrong(t, n):
    host = n.host + "/wrong"
    os.makedirs(host + "/folder")
    open(host + "/file", "w").close()
    wrong = {"dir": ("Directory", "/none", "directory"), "dirfile": ("DirectoryOrCreate", "/file", "directory"), "file": ("File", "/late", "file"),
             "filedir": ("FileOrCreate", "/folder", "file"), "sock": ("Socket", "/file", "socket file"),
             "char": ("CharDevice", "/file", "character device"), "block": ("BlockDevice", "/none", "block device")}
    create(n, "hostwrong", {v: {"hostPath": {"path": host + path, "type": kind}} for v, (kind, path, _) in wrong.items()}, "true")
    for v, (kind, path, text) in wrong.items():
        told = n.seen.event("hostwrong", "FailedMount", f'"{v}"', 20)
        same(t, f"hostPath: no {kind}", told[2], FAILED.format(v, f"hostPath type check failed: {host}{path} is not a {text}"))
    same(t, "hostPath: the pod waits", n.pod("hostwrong")["status"]["containerStatuses"][0]["state"], {"waiting": {"reason": "ContainerCreating"}})
    create(n, "hostlate", {"v": {"hostPath": {"path": host + "/late", "type": "File"}}}, "cat /v")
    n.seen.event("hostlate", "FailedMount", seconds=20)
    with open(host + "/late", "w") as f:
        f.write("late\n")
    same(t, "hostPath: the pod goes on when it is there", finish(n, "hostlate"), "late\n")


# ---- configMap, secret, downwardAPI, projected ----

def test_config_map(t, n):
    put(n, "configmaps", "cm", data={"a": "1", "b": "2"}, binaryData={"bin": base64.b64encode(b"\0\xff").decode()})
    some = {"name": "cm", "defaultMode": 0o400, "items": [{"key": "a", "path": "x/y"}, {"key": "b", "path": "b", "mode": 0o751}]}
    volumes = {"all": {"configMap": {"name": "cm"}}, "some": {"configMap": some}, "none": {"configMap": {"name": "nobody", "optional": True}},
               "part": {"configMap": {"name": "cm", "optional": True, "items": [{"key": "zz", "path": "zz"}, {"key": "a", "path": "a"}]}}}
    got = once(n, "cm", volumes, "cd /all; echo *; cat a b; busybox od -An -tx1 bin; stat -L -c %a a /some/x/y /some/b; cat /some/x/y /some/b; echo; "
               "ls /none /part; touch /all/new 2>&1; stat -f -c %T /all >/dev/null; busybox readlink a")
    same(t, "configMap: keys, items, modes, optional ones", got,
         "a b bin\n12 00 ff\n644\n400\n751\n12\n/none:\n\n/part:\na\ntouch: /all/new: Read-only file system\n..data/a\n")


def test_config_map_missing(t, n):
    create(n, "cmlate", {"v": {"configMap": {"name": "later"}}}, "cat /v/a")
    create(n, "cmkey", {"v": {"configMap": {"name": "keys", "items": [{"key": "no", "path": "p"}]}}}, "cat /v/p")
    put(n, "configmaps", "keys", data={"a": "1"})
    told = n.seen.event("cmlate", "FailedMount", "later", 20)
    same(t, "configMap: one that is not there", told[2], FAILED.format("v", 'configmap "later" not found'))
    told = n.seen.event("cmkey", "FailedMount", "references", seconds=20)
    same(t, "configMap: a key that is not there", told[2], FAILED.format("v", "configmap references non-existent config key: no"))
    put(n, "configmaps", "later", data={"a": "came"})
    n.server.request("PATCH", "/api/v1/namespaces/default/configmaps/keys", {"data": {"no": "yes"}})
    same(t, "configMap: the pods go on when they are", (finish(n, "cmlate"), finish(n, "cmkey")), ("came", "yes"))


def test_secret(t, n):
    put(n, "secrets", "sec", stringData={"a": "1", "b": "2"})
    volumes = {"all": {"secret": {"secretName": "sec"}},
               "some": {"secret": {"secretName": "sec", "defaultMode": 0o440, "items": [{"key": "b", "path": "deep/b", "mode": 0o400}, {"key": "a", "path": "a"}]}},
               "none": {"secret": {"secretName": "nobody", "optional": True}}}
    create(n, "seclate", {"v": {"secret": {"secretName": "later"}}}, "cat /v/a")
    got = once(n, "sec", volumes, "cat /all/a /all/b; stat -L -c %a /all/a /some/a /some/deep/b; stat -f -c %T /all; ls /none; touch /all/x 2>&1")
    same(t, "secret: keys, items, modes, in memory", got, "12644\n440\n400\ntmpfs\ntouch: /all/x: Read-only file system\n")
    told = n.seen.event("seclate", "FailedMount", "later", 20)
    same(t, "secret: one that is not there", told[2], FAILED.format("v", 'secret "later" not found'))
    put(n, "secrets", "later", stringData={"a": "came"})
    same(t, "secret: the pod goes on when it is", finish(n, "seclate"), "came")


def item(path, field=None, resource=None, **more):
    one = {"path": path, **more}
    if field:
        one["fieldRef"] = {"fieldPath": field}
    else:
        one["resourceFieldRef"] = {"containerName": "c", **resource}
    return one


def test_downward(t, n):
    items = [item("labels", "metadata.labels"), item("notes", "metadata.annotations"), item("name", "metadata.name"), item("one", "metadata.labels['mark']"),
             item("namespace", "metadata.namespace"), item("uid", "metadata.uid", mode=0o400), item("cpu", resource={"resource": "limits.cpu"}),
             item("milli", resource={"resource": "limits.cpu", "divisor": "1m"}), item("deep/mi", resource={"resource": "requests.memory", "divisor": "1Mi"}),
             item("least", resource={"resource": "requests.cpu"})]
    pod = create(n, "down", {"v": {"downwardAPI": {"items": items, "defaultMode": 0o644}}},
                 "cd /v; for i in labels notes name one namespace uid cpu milli deep/mi least; do cat $i; echo; done; stat -L -c %a name uid",
                 resources={"limits": {"cpu": "1500m", "memory": "64Mi"}, "requests": {"memory": "32Mi", "cpu": "250m"}})
    got = finish(n, "down")
    notes = 'note="with \\"quotes\\"\\nand lines"'
    t.check("downwardAPI: the annotation", notes in got, got)
    same(t, "downwardAPI: labels, fields, resources", [line for line in got.splitlines() if not line.startswith(("note=", "kubernetes.io/"))],
         ['app="down"', 'mark="old"', "down", "old", "default", pod["metadata"]["uid"], "2", "1500", "32", "1", "644", "400"])


def test_projected(t, n):
    put(n, "configmaps", "pcm", data={"a": "from the map"})
    put(n, "secrets", "psec", stringData={"b": "from the secret"})
    token = {"serviceAccountToken": {"path": "token", "audience": "somebody", "expirationSeconds": 700}}
    sources = [{"configMap": {"name": "pcm", "items": [{"key": "a", "path": "cm/a"}]}}, {"secret": {"name": "psec"}}, token,
               {"downwardAPI": {"items": [item("me", "metadata.name")]}}, {"configMap": {"name": "nobody", "optional": True}}]
    got = once(n, "proj", {"v": {"projected": {"sources": sources, "defaultMode": 0o640}}},
               "cd /v; cat cm/a; echo; cat b; echo; cat me; echo; stat -L -c %a b token; stat -f -c %T .; cat token; echo; "
               "ls /var/run/secrets/kubernetes.io/serviceaccount; cat /var/run/secrets/kubernetes.io/serviceaccount/namespace; echo; "
               "head -1 /var/run/secrets/kubernetes.io/serviceaccount/ca.crt").splitlines()
    same(t, "projected: all sources in one folder", got[:6] + got[7:],
         ["from the map", "from the secret", "proj", "640", "640", "tmpfs", "ca.crt", "namespace", "token", "default", "-----BEGIN CERTIFICATE-----"])
    claims = json.loads(base64.urlsafe_b64decode(got[6].split(".")[1] + "=="))
    same(t, "projected: the token is for this pod and audience", (claims["aud"], claims["kubernetes.io"]["pod"]["name"], claims["exp"] - claims["iat"]),
         (["somebody"], "proj", 700))
    review = n.server.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": got[6], "audiences": ["somebody"]}}).json["status"]
    t.check("projected: and it is good", review.get("authenticated"), review)


def certificate(n, name):
    """Of an authority, in PEM."""
    path = f"{n.host}/{name}.crt"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", path + ".key", "-out", path,
                    "-days", "2", "-subj", "/CN=" + name], check=True, capture_output=True)
    with open(path) as f:
        return f.read()


def put_bundle(n, name, pem, signer="", labels=None):
    r = n.server.request("POST", "/apis/certificates.k8s.io/v1beta1/clustertrustbundles", {
        "metadata": {"name": name, "labels": labels or {}}, "spec": {"signerName": signer, "trustBundle": pem}})
    assert r.status == 201, r


def bundle(**more):
    return {"clusterTrustBundle": {"path": "pem", **more}}


def test_trust_bundles(t, n):
    one, two, three = (certificate(n, name) for name in ("one", "two", "three"))
    put_bundle(n, "plain", "# a comment\n" + one)
    put_bundle(n, "example.org:signer:a", two, "example.org/signer", {"use": "yes"})
    put_bundle(n, "example.org:signer:b", two + three, "example.org/signer", {"use": "yes"})
    put_bundle(n, "example.org:signer:c", one, "example.org/signer", {"use": "no"})
    role = n.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/system:cluster-trust-bundle-discovery").json
    bound = n.get("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/system:cluster-trust-bundle-discovery").json
    t.check("clusterTrustBundle: the roles that come with the feature gate", role["rules"][0]["resources"] == ["clustertrustbundles"] and
            bound["subjects"][0]["name"] == "system:serviceaccounts" and {"apiGroups": ["certificates.k8s.io"], "resources": ["clustertrustbundles"],
            "verbs": ["get", "list", "watch"]} in n.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node").json["rules"], (role, bound))
    signed = {"signerName": "example.org/signer", "labelSelector": {"matchLabels": {"use": "yes"}}}
    sources = {"name": bundle(name="plain"), "signer": bundle(**signed), "none": bundle(name="nobody", optional=True),
               "nosigner": bundle(signerName="example.org/other", labelSelector={}, optional=True)}
    create(n, "bundle", {v: {"projected": {"sources": [source]}} for v, source in sources.items()},
           'while sleep 0.1; do echo "$(echo $(cat /name/pem))|$(echo $(cat /signer/pem))|$(cat /none/pem)|$(cat /nosigner/pem)|$(stat -L -c %a /name/pem)"; done')
    flat = lambda *pems: " ".join(" ".join(pem.split("\n")).strip() for pem in pems)  # noqa: E731
    last = lambda: n.output("bundle", tailLines=1).strip().split("|")  # noqa: E731
    got = wait_until(lambda: (line := last()) and len(line) == 5 and line, 40, "the first content")
    same(t, "clusterTrustBundle: by name", got[0], flat(one))
    t.check("clusterTrustBundle: by signer and labels, each certificate once", got[1] in (flat(two, three), flat(three, two)), got[1])
    same(t, "clusterTrustBundle: optional ones are empty files", got[2:], ["", "", "644"])
    missing = {"bundlename": (bundle(name="later"), 'while getting ClusterTrustBundle: clustertrustbundle.certificates.k8s.io "later" not found'),
               "bundlesigner": (bundle(signerName="example.org/other", labelSelector={}),
                                "combination of signerName and labelSelector matched zero ClusterTrustBundles")}
    for name, (source, _) in missing.items():
        create(n, name, {"v": {"projected": {"sources": [source]}}}, "cat /v/pem")
    for name, (_, text) in missing.items():
        same(t, "clusterTrustBundle: " + name, n.seen.event(name, "FailedMount", seconds=20)[2], FAILED.format("v", text))
    put_bundle(n, "later", three)
    n.server.request("PATCH", "/apis/certificates.k8s.io/v1beta1/clustertrustbundles/plain", {"spec": {"trustBundle": two}})
    same(t, "clusterTrustBundle: the pod goes on when it is there", finish(n, "bundlename"), three)
    tap.wait_for(lambda: last()[0] == flat(two), 30)
    same(t, "clusterTrustBundle: a change is seen in the running pod", last()[0], flat(two))


def test_updates(t, n):
    put(n, "configmaps", "ucm", data={"a": "old", "gone": "x"})
    put(n, "secrets", "usec", stringData={"a": "old"})
    volumes = {"cm": {"configMap": {"name": "ucm"}}, "sec": {"secret": {"secretName": "usec"}}, "sub": {"configMap": {"name": "ucm"}},
               "down": {"downwardAPI": {"items": [item("mark", "metadata.labels['mark']")]}},
               "proj": {"projected": {"sources": [{"configMap": {"name": "ucm"}}, {"secret": {"name": "usec", "items": [{"key": "a", "path": "s"}]}}]}}}
    script = 'while sleep 0.1; do echo $(cat /cm/a) $(cat /sec/a) $(cat /proj/a) $(cat /proj/s) $(cat /down/mark) $(cat /subfile) $(cd /cm; echo *); done'
    create(n, "updates", volumes, script, {"sub": {"mountPath": "/subfile", "subPath": "a"}})
    last = lambda: n.output("updates", tailLines=1).strip()  # noqa: E731
    wait_until(lambda: last() == "old old old old old old a gone", 40, "the first content")
    for path, change in (("configmaps/ucm", {"data": {"a": "new", "gone": None, "more": "x"}}), ("secrets/usec", {"stringData": {"a": "new"}}),
                         ("pods/updates", {"metadata": {"labels": {"mark": "new"}}})):
        n.server.request("PATCH", "/api/v1/namespaces/default/" + path, change)
    tap.wait_for(lambda: last() == "new new new new new old a more", 30)
    same(t, "changes are seen in the running pod, but by subPath", last(), "new new new new new old a more")


# ---- image ----

def test_image(t, n):
    if not BUILT_IN:
        return t.check("image: containerd before 2.0 has no volumes of images", True)
    reference = n.put_image("content", images.Image({"data": None, "data/file": b"of the image\n", "data/in/x": b"deep\n"}))
    got = once(n, "image", {"img": {"image": {"reference": reference}}, "part": {"image": {"reference": reference}}},
               "cat /img/data/file /part/x; touch /img/new 2>&1", {"part": {"subPath": "data/in"}})
    same(t, "image: its files, read-only, a part of it", got, "of the image\ndeep\ntouch: /img/new: Read-only file system\n")
    create(n, "noimage", {"img": {"image": {"reference": n.registry.host + "/nothing:1"}}}, "true")
    why = waiting(n, "noimage", "ImagePullBackOff")
    t.check("image: one that is not there", "nothing:1" in why, why)


# ---- claims ----

HERE = {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [nodes.NODE]}]}]}}


def bind(n, name, source, bound=True, owner=None):
    """A claim and its volume, as the binder would leave them."""
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": True}] if owner else []
    claim = put(n, "persistentvolumeclaims", name, metadata={"name": name, "ownerReferences": owners}, spec={
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}, "storageClassName": "", "volumeName": "pv-" + name})
    reference = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": name, "uid": claim["metadata"]["uid"]}
    r = n.server.request("POST", "/api/v1/persistentvolumes", {"metadata": {"name": "pv-" + name}, "spec": {
        "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Mi"}, "claimRef": reference, "persistentVolumeReclaimPolicy": "Retain",
        **source, **({"nodeAffinity": HERE} if "local" in source else {})}})
    assert r.status == 201, r
    if bound:
        set_bound(n, name)
    return {"persistentVolumeClaim": {"claimName": name}}


def set_bound(n, name):
    r = n.server.request("PATCH", f"/api/v1/namespaces/default/persistentvolumeclaims/{name}/status", {"status": {"phase": "Bound"}})
    assert r.status == 200, r


def test_claims(t, n):
    for name in ("hp", "lo", "ro", "late"):
        os.makedirs(f"{n.host}/claim/{name}")
        with open(f"{n.host}/claim/{name}/file", "w") as f:
            f.write(name + "\n")
    late = bind(n, "late", {"local": {"path": n.host + "/claim/late"}}, bound=False)
    create(n, "claimlate", {"v": late}, "cat /v/file")
    create(n, "claimnone", {"v": bind(n, "none", {"local": {"path": n.host + "/claim/none"}})}, "cat /v/file")
    read_only = bind(n, "ro", {"local": {"path": n.host + "/claim/ro"}})
    read_only["persistentVolumeClaim"]["readOnly"] = True
    got = once(n, "claims", {"hp": bind(n, "hp", {"hostPath": {"path": n.host + "/claim/hp"}}), "ro": read_only,
                             "lo": bind(n, "lo", {"local": {"path": n.host + "/claim/lo"}})},
               "cat /hp/file /lo/file /ro/file; echo x >/hp/new; echo y >/lo/new; touch /ro/new 2>&1")
    same(t, "persistentVolumeClaim: hostPath, local, read-only", got, "hp\nlo\nro\ntouch: /ro/new: Read-only file system\n")
    with open(n.host + "/claim/hp/new") as x, open(n.host + "/claim/lo/new") as y:
        same(t, "persistentVolumeClaim: what is written is kept", (x.read(), y.read()), ("x\n", "y\n"))
    told = n.seen.event("claimlate", "FailedMount", seconds=20)
    same(t, "persistentVolumeClaim: one that is not bound", told[2], "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], "
         "failed to process volumes=[v]: error processing PVC default/late: PVC is not bound")
    set_bound(n, "late")
    same(t, "persistentVolumeClaim: the pod goes on when it is", finish(n, "claimlate"), "late\n")
    told = n.seen.event("claimnone", "FailedMount", seconds=20)
    same(t, "persistentVolumeClaim: local without its folder", told[2], 'MountVolume.NewMounter initialization failed for volume "pv-none" : '
         f'path "{n.host}/claim/none" does not exist')


def test_ephemeral(t, n):
    """A claim of the pod itself, as a controller would make it."""
    template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}}
    os.makedirs(n.host + "/claim/eph")
    for name in ("eph", "eph-other"):
        made = create(n, name, {"v": {"ephemeral": {"volumeClaimTemplate": template}}}, "echo own >/v/file; cat /v/file")
        bind(n, name + "-v", {"local": {"path": n.host + "/claim/eph"}}, owner=made if name == "eph" else None)
    same(t, "ephemeral: the claim of the pod", finish(n, "eph"), "own\n")
    told = n.seen.event("eph-other", "FailedMount", "not owner", seconds=20)
    same(t, "ephemeral: that of somebody else", told[2], "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], "
         "failed to process volumes=[v]: PVC default/eph-other-v was not created for pod default/eph-other (pod is not owner)")


def test_csi(t, n):
    create(n, "csi", {"v": {"csi": {"driver": "nobody.example.org"}}})
    told = n.seen.event("csi", "FailedMount", seconds=20)
    same(t, "csi: a driver that is not there", told[2], FAILED.format(
        "v", "kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: driver name nobody.example.org not found in the list of registered CSI drivers"))


def nfs_mounts(n):
    with open("/proc/self/mountinfo") as f:
        return [line for line in f if f"{n.root}/pods" in line and " - nfs" in line]


def test_nfs_served(t, n):
    """In pods that say it themselves, and by claims, with options for the mount program."""
    if nfs.missing():
        return t.check("nfs # SKIP " + nfs.missing(), True)
    folder = n.host + "/exported"
    os.makedirs(folder + "/sub")
    with open(folder + "/file", "w") as f:
        f.write("served\n")
    volume, options = {"nfs": {"server": "127.0.0.1", "path": "/"}}, ["nfsvers=4.1", "timeo=123"]
    with nfs.Export(folder):
        create(n, "nfsmissing", {"v": {"nfs": {"server": "127.0.0.1", "path": "/none"}}}, "true")
        create(n, "nfsstays", {"v": volume}, "cat /v/file; echo stays >/v/stays; sleep 1000")
        create(n, "nfsread", {"v": {"nfs": {**volume["nfs"], "readOnly": True}}}, "cat /v/file; touch /v/no 2>&1")
        claimed = bind(n, "nfs", {**volume, "mountOptions": options})
        create(n, "nfsclaim", {"v": claimed, "part": {"nfs": {"server": "127.0.0.1", "path": "/sub"}}}, "grep ' /v ' /proc/mounts; echo claimed >/v/claimed; echo part >/part/deep/x",
               {"part": {"mountPath": "/part/deep", "subPath": "deep"}})
        read_only = bind(n, "nfsro", volume)
        read_only["persistentVolumeClaim"]["readOnly"] = True
        same(t, "nfs: a claim for reading", once(n, "nfsclaimro", {"v": read_only}, "touch /v/no 2>&1"), "touch: /v/no: Read-only file system\n")
        same(t, "nfs: readOnly", finish(n, "nfsread"), "served\ntouch: /v/no: Read-only file system\n")
        said = finish(n, "nfsclaim")
        t.check("nfs: mountOptions of the PersistentVolume", said.startswith("127.0.0.1:/ /v nfs4 ") and "vers=4.1," in said and "timeo=123," in said, said)
        tap.wait_for(lambda: n.output("nfsstays"), 40)
        same(t, "nfs: what the server has", n.output("nfsstays"), "served\n")
        found = {name: open(f"{folder}/{name}").read() for name in ("stays", "claimed", "sub/deep/x") if os.path.exists(f"{folder}/{name}")}
        same(t, "nfs: and what pods have written", (found, os.path.exists(folder + "/no")),
             ({"stays": "stays\n", "claimed": "claimed\n", "sub/deep/x": "part\n"}, False))
        told = n.seen.event("nfsmissing", "FailedMount", seconds=40)[2]
        t.check("nfs: what is not served", "Mounting arguments: -t nfs 127.0.0.1:/none" in told and "mount.nfs: " in told, told)
        t.check("nfs: mounted while the pod runs", len(nfs_mounts(n)) >= 1)
        n.delete("nfsstays", "nfsread", "nfsclaim", "nfsclaimro", "nfsmissing")
        tap.wait_for(lambda: not nfs_mounts(n), 40)
        same(t, "nfs: and not after that", nfs_mounts(n), [])


def test_nfs(t, n):
    """The mount program fails at once where there is no helper for NFS; where there is one, it would try for two minutes."""
    if shutil.which("mount.nfs"):
        return
    create(n, "nfs", {"v": {"nfs": {"server": "127.0.0.1", "path": "/none"}}}, "true")
    told = n.seen.event("nfs", "FailedMount", seconds=20)[2]
    uid = n.pod("nfs")["metadata"]["uid"]
    begin = FAILED.format("v", "mount failed: exit status 32\nMounting command: mount\nMounting arguments: -t nfs 127.0.0.1:/none "
                          f"{n.root}/pods/{uid}/volumes/kubernetes.io~nfs/v\nOutput: ")
    t.check("nfs: what the mount program says", told.startswith(begin) and len(told) > len(begin), told)


# ---- parts of volumes ----

def test_sub_path(t, n):
    put(n, "configmaps", "subcm", data={"a": "part", "b": "other"})
    first = {"name": "first", "image": n.image, "volumeMounts": mounts_of(["v"]),
             "command": ["sh", "-c", "mkdir -p /v/real/deep; echo inside >/v/real/deep/f; busybox ln -s real/deep /v/inner; busybox ln -s ../real /v/real/up"]}
    mounts = [("v", "/new", {"subPath": "made/by/kubelet"}), ("v", "/inner", {"subPath": "inner"}), ("cm", "/one", {"subPath": "a"}),
              ("v", "/up", {"subPath": "real/up/deep"}), ("v", "/expr", {"subPathExpr": "of/$(POD)-$(WHO)"}), ("v", "/v", {})]
    create(n, "sub", {"v": {"emptyDir": {}}, "cm": {"configMap": {"name": "subcm"}}},
           "cat /inner/f /up/f /one; echo; echo x >/new/x; echo y >/expr/y; cat /v/made/by/kubelet/x /v/of/sub-me/y; touch /one 2>&1",
           spec={"initContainers": [first]}, volumeMounts=[{"name": name, "mountPath": path, **more} for name, path, more in mounts],
           env=[{"name": "WHO", "value": "me"}, {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}])
    same(t, "subPath: folders, files, links inside, and by expression", finish(n, "sub"),
         "inside\ninside\npart\nx\ny\ntouch: /one: Read-only file system\n")


def test_sub_path_tricks(t, n):
    """Links that a container makes must not lead to the files of the node."""
    os.makedirs(n.host + "/secret")
    with open(n.host + "/secret/key", "w") as f:
        f.write("the node's\n")
    links = {"root": ("/", "trick"), "etc": ("/etc", "trick"), "host": (n.host + "/secret", "trick"), "up": ("../../../../../../../.." + n.host, "trick/secret"),
             "chain": ("b", "trick"), "proc": ("/proc/1/root", "trick/etc"), "loop": ("trick", "trick"), "missing": ("/c8s-no-such-folder", "trick/x")}
    for name, (target, path) in links.items():
        first = {"name": "first", "image": n.image, "volumeMounts": mounts_of(["v"]),
                 "command": ["sh", "-c", f"busybox ln -s {target} /v/trick; busybox ln -s {n.host}/secret /v/b"]}
        create(n, "trick-" + name, {"v": {"emptyDir": {}}}, "ls -la /v; cat /v/key; sleep 1000", {"v": {"subPath": path}},
               spec={"initContainers": [first]})
    for name in links:
        same(t, f"subPath: a link out of the volume: {name}", waiting(n, "trick-" + name, "CreateContainerConfigError"),
             'failed to prepare subPath for volumeMount "v" of container "c"')
    t.check("subPath: nothing is made on the node", not os.path.exists("/c8s-no-such-folder"))


# ---- ways of mounting ----

def test_propagation(t, n):
    host = n.host + "/spread"
    os.makedirs(host + "/late")
    os.makedirs(host + "/up")
    wait = "while ! test -e /{0}/late/f && test $((i=i+1)) -lt 1500; do echo waits; sleep 0.2; done; cat /{0}/late/f"
    volume = {"name": "h", "hostPath": {"path": host}}

    def container(name, script, propagation, **more):
        return {"name": name, "image": n.image, "command": ["sh", "-c", script], **more,
                "volumeMounts": [{"name": "h", "mountPath": "/h", **({"mountPropagation": propagation} if propagation else {})}]}
    containers = [container("down", wait.format("h"), "HostToContainer"), container("alone", "sleep 2; ls /h/late", None),
                  container("up", "mount -t tmpfs up /h/up && echo from the container >/h/up/f; echo waits; while ! test -e /h/stop; do sleep 0.1; done; "
                            "busybox umount /h/up", "Bidirectional", securityContext={"privileged": True})]
    n.create({"kind": "Pod", "metadata": {"name": "spread", "namespace": "default"}, "spec": {
        "nodeName": nodes.NODE, "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": containers, "volumes": [volume]}})
    wait_until(lambda: "waits" in n.output("spread", "down") and "waits" in n.output("spread", "up"), 40, "the containers")
    subprocess.run(["mount", "-t", "tmpfs", "late", host + "/late"], check=True)
    try:
        with open(host + "/late/new", "w") as f:
            f.write("late\n")
        os.rename(host + "/late/new", host + "/late/f")  # who looks for it finds it whole
        tap.wait_for(lambda: os.path.exists(host + "/up/f"), 5)
        t.check("Bidirectional: what the container mounts is there on the node", os.path.exists(host + "/up/f"))
        open(host + "/stop", "w").close()
        end_of(n, "spread")
        t.check("HostToContainer: what the node mounts later is there", n.output("spread", "down").endswith("late\n"), n.output("spread", "down"))
        same(t, "None: what the node mounts later is not", n.output("spread", "alone"), "")
        t.check("Bidirectional: what the container unmounts is gone", not os.path.ismount(host + "/up"))
    finally:
        subprocess.run(["umount", host + "/late"], check=True)


def test_read_only(t, n):
    host = n.host + "/ro"
    os.makedirs(host + "/sub")
    subprocess.run(["mount", "-t", "tmpfs", "sub", host + "/sub"], check=True)
    source = {"hostPath": {"path": host}}
    volumes = {"ro": source, "all": source}
    try:
        create(n, "rrow", {"v": source}, "true", {"v": {"readOnly": True, "recursiveReadOnly": "Enabled"}})
        got = once(n, "ro", volumes, "touch /ro/x 2>&1; touch /ro/sub/x && echo written; touch /all/x 2>&1; touch /all/sub/x 2>&1 || echo refused",
                   {"ro": {"readOnly": True}, "all": {"readOnly": True, "recursiveReadOnly": "IfPossible"}})
        read_only = "touch: /{}: Read-only file system\n"
        same(t, "readOnly, and with all below it", got, read_only.format("ro/x") + "written\n" + read_only.format("all/x") +
             (read_only.format("all/sub/x") + "refused\n" if BUILT_IN else ""))
        mounts = {m["name"]: m.get("recursiveReadOnly") for m in n.pod("ro")["status"]["containerStatuses"][0].get("volumeMounts", [])}
        same(t, "the status tells which is", (mounts.get("ro"), mounts.get("all")), ("Disabled", "Enabled" if BUILT_IN else "Disabled"))
        if BUILT_IN:
            same(t, "recursiveReadOnly: Enabled", end_of(n, "rrow")[0], "Succeeded")
        else:
            same(t, "recursiveReadOnly: Enabled, where the runtime cannot", waiting(n, "rrow", "CreateContainerConfigError"),
                 'failed to resolve recursive read-only mode: volume "v" requested recursive read-only mode, but it is not supported by the runtime')
    finally:
        n.delete("rrow", "ro")
        subprocess.run(["umount", host + "/sub"], check=True)


def test_fs_group(t, n):
    put(n, "secrets", "grouped", stringData={"a": "1"})
    for name in ("always", "match", "mismatch", "other"):
        folder = f"{n.host}/group/{name}"
        os.makedirs(folder + "/sub")
        open(folder + "/file", "w").close()
        os.chmod(folder + "/file", 0o600)
    os.chown(n.host + "/group/match", 0, 2000)
    os.chmod(n.host + "/group/match", 0o2775)
    security = {"runAsUser": 1000, "runAsGroup": 3000, "fsGroup": 2000, "supplementalGroups": [4000]}
    own = {"v": {"emptyDir": {}}, "mem": {"emptyDir": {"medium": "Memory"}}, "sec": {"secret": {"secretName": "grouped", "defaultMode": 0o400}},
           "host": {"hostPath": {"path": n.host + "/group/other"}}}
    create(n, "group", {**own, "always": bind(n, "always", {"local": {"path": n.host + "/group/always"}})},
           "stat -c '%g %a' /v /mem /host /always /always/file /always/sub; stat -L -c '%g %a' /sec/a; cat /sec/a; echo; echo x >/v/x; "
           "stat -c '%u %g' /v/x; id -u; id -g; id -G", spec={"securityContext": security})
    create(n, "groupmatch", {"match": bind(n, "match", {"local": {"path": n.host + "/group/match"}}),
                             "mismatch": bind(n, "mismatch", {"local": {"path": n.host + "/group/mismatch"}})},
           "stat -c '%g %a' /match /match/file /mismatch /mismatch/file", spec={"securityContext": {**security, "fsGroupChangePolicy": "OnRootMismatch"}})
    same(t, "fsGroup: volumes belong to the group, also with what was in them", finish(n, "group"), "2000 2777\n2000 3777\n0 755\n2000 2775\n2000 660\n2000 2775\n"
         "2000 440\n1\n1000 2000\n1000\n3000\n3000 2000 4000\n")
    same(t, "fsGroup: OnRootMismatch looks at the top only", finish(n, "groupmatch"), "2000 2775\n0 600\n2000 2775\n2000 660\n")


def test_crash(t, n):
    """What was mounted for a pod that went away while there was no kubelet is removed by the next one."""
    volumes = {"mem": {"emptyDir": {"medium": "Memory"}}, "sec": {"secret": {"secretName": "sec"}}, "lo": {"persistentVolumeClaim": {"claimName": "lo"}}}
    for name in ("crash-goes", "crash-stays"):
        create(n, name, volumes, "sleep 1000", {"mem": {"subPath": "a/b"}})
    for name in ("crash-goes", "crash-stays"):
        n.seen.wait(name, lambda p: p["status"].get("phase") == "Running", 30, "Running")
    goes, stays = (n.pod(name)["metadata"]["uid"] for name in ("crash-goes", "crash-stays"))
    n.kill_kubelet()
    n.server.request("DELETE", "/api/v1/namespaces/default/pods/crash-goes", {"gracePeriodSeconds": 0})
    n.start_kubelet()
    tap.wait_for(lambda: not any(goes in one for one in n.leftovers()), 20)
    left = n.leftovers()
    t.check("after a crash, what is left of a pod is removed", not any(goes in one for one in left), left)
    t.check("and that of others stays", sum(stays in one for one in left) > 3 and n.phase("crash-stays") == "Running", left)


def test_nothing_is_left(t, n):
    pods.leave_nothing(t, n)
    with open("/proc/self/mountinfo") as f:
        mounts = [line for line in f if n.host in line]
    t.check("nor mounts of the node's folders", not mounts, mounts)
    t.check("what is the node's stays", os.path.exists(n.host + "/path/folder/inside") and os.path.exists(n.host + "/claim/lo/new"))


TESTS = [test_empty_dir_limit, test_updates, test_propagation, test_empty_dir, test_host_path, test_host_path_wrong, test_config_map,
         test_config_map_missing, test_secret, test_downward, test_projected, test_trust_bundles, test_image, test_claims, test_ephemeral, test_csi,
         test_nfs, test_nfs_served, test_sub_path, test_sub_path_tricks, test_read_only, test_fs_group]


if __name__ == "__main__":
    gates = {"ClusterTrustBundle": True, "ClusterTrustBundleProjection": True}
    pods.run("volumes", TESTS, [test_crash, test_nothing_is_left], config={"featureGates": gates}, server_flags=[
        "--feature-gates=ClusterTrustBundle=true,ClusterTrustBundleProjection=true", "--runtime-config=certificates.k8s.io/v1beta1/clustertrustbundles"])
