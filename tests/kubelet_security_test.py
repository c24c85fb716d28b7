#!/usr/bin/env python3
"""Every setting of security, names and environment of a pod, as its processes see it; and what a node refuses.
Needs C8S, the program to test, with c8s-pod beside it, and root. Argument: the runtime, c8s or containerd."""
import json
import os
import sys
import tempfile
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import images  # noqa: E402
import nodes  # noqa: E402
import pods  # noqa: E402
import tap  # noqa: E402
from cluster import free_port  # noqa: E402
from pods import BUILT_IN, create, end_of, finish, once, put, rejected, same, waiting  # noqa: E402

IDS = "id -u; id -g; id -G"
DEFAULT_CAPS = "00000000a80425fb"


def status_of(*names):
    return "; ".join(f"grep ^{name}: /proc/self/status | busybox awk '{{print $2}}'" for name in names)


def whole(spec, **container):
    """Of a table: securityContext of the pod, and of the container."""
    return {"spec": {"securityContext": spec}, "securityContext": container}


# What one container is asked for; its script; what it says. names of pods are their keys.
CASES = {
    "user-of-pod": (whole({"runAsUser": 1000, "runAsGroup": 3000, "supplementalGroups": [4000, 5000]}), IDS, "1000\n3000\n3000 4000 5000\n"),
    "user-of-container": (whole({"runAsUser": 1000, "runAsGroup": 3000}, runAsUser=2000, runAsGroup=2001), IDS, "2000\n2001\n2001\n"),
    "user-of-image": (whole({}), IDS, "0\n0\n0\n"),
    "non-root": (whole({"runAsNonRoot": True}, runAsUser=7), "id -u", "7\n"),
    "plain": (whole({}), status_of("CapEff", "CapBnd", "NoNewPrivs", "Seccomp") + "; touch /x && echo writable",
              f"{DEFAULT_CAPS}\n{DEFAULT_CAPS}\n0\n0\nwritable\n"),
    "drop-all": (whole({}, capabilities={"drop": ["ALL"], "add": ["NET_ADMIN", "SYS_TIME"]}), status_of("CapEff", "CapPrm"), "0000000002001000\n" * 2),
    "add-drop": (whole({}, capabilities={"drop": ["CHOWN", "KILL"], "add": ["SYS_ADMIN"]}),
                 status_of("CapEff"), f"{int(DEFAULT_CAPS, 16) & ~0x21 | 1 << 21:016x}\n"),
    "caps-of-user": (whole({"runAsUser": 1000}), status_of("CapEff", "CapBnd"), f"{0:016x}\n{DEFAULT_CAPS}\n"),
    "read-only": (whole({}, readOnlyRootFilesystem=True), "touch /x 2>&1; touch /dev/shm/x && echo shm", "touch: /x: Read-only file system\nshm\n"),
    "no-escalation": (whole({}, allowPrivilegeEscalation=False), status_of("NoNewPrivs"), "1\n"),
    "masked": (whole({}), "head -c 1 /proc/kcore 2>/dev/null | busybox wc -c; ls /proc/acpi /sys/firmware 2>/dev/null | grep -v : | busybox wc -w; "
               "(echo 1 >/proc/sys/kernel/panic) 2>/dev/null || echo refused; grep -c ' /sys sysfs ro' /proc/mounts", "0\n0\nrefused\n1\n"),
    "seccomp-default": (whole({"seccompProfile": {"type": "RuntimeDefault"}}), status_of("Seccomp") + "; busybox unshare -U true 2>/dev/null || echo refused",
                        "2\nrefused\n"),
    "seccomp-unconfined": (whole({"seccompProfile": {"type": "RuntimeDefault"}}, seccompProfile={"type": "Unconfined"}), status_of("Seccomp"), "0\n"),
    "seccomp-localhost": (whole({}, seccompProfile={"type": "Localhost", "localhostProfile": "profiles/no-mkdir.json"}),
                          status_of("Seccomp") + "; mkdir /x 2>&1; touch /y && echo else", "2\nmkdir: can't create directory '/x': Operation not permitted\nelse\n"),
    "selinux": (whole({"seLinuxOptions": {"level": "s0:c1,c2"}}), "echo runs", "runs\n"),
    "sysctls": (whole({"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}, {"name": "net.ipv4.ip_local_port_range", "value": "4000 5000"},
                                   {"name": "kernel.msgmax", "value": "1234"}]}),
                "cat /proc/sys/kernel/shm_rmid_forced /proc/sys/net/ipv4/ip_local_port_range /proc/sys/kernel/msgmax", "1\n4000\t5000\n1234\n"),
}
if os.path.exists("/sys/fs/selinux/enforce"):
    del CASES["selinux"]
NO_MKDIR = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO"}]}


def prepare(n):
    os.makedirs(n.root + "/seccomp/profiles", exist_ok=True)
    with open(n.root + "/seccomp/profiles/no-mkdir.json", "w") as f:
        json.dump(NO_MKDIR, f)


def test_cases(t, n):
    for name, (more, script, _) in CASES.items():
        create(n, name, script, **more)
    for name, (_, _, wanted) in CASES.items():
        same(t, f"inside: {name}", finish(n, name), wanted)


# ---- users ----

def test_groups(t, n):
    files = {**images.busybox(), "etc/group": b"root:x:0:\nuser:x:1000:\nextra:x:50000:user\n"}
    image = n.put_image("groups", images.Image(files))
    context = {"runAsUser": 1000, "runAsGroup": 3000, "supplementalGroups": [4000]}
    create(n, "merge", IDS, {"securityContext": {**context, "supplementalGroupsPolicy": "Merge"}}, image=image)
    create(n, "strict", IDS, {"securityContext": {**context, "supplementalGroupsPolicy": "Strict"}}, image=image)
    got = finish(n, "merge").split()
    same(t, "groups of the image and of the pod", (got[:3], sorted(got[3:])), (["1000", "3000", "3000"], ["4000", "50000"]))
    if BUILT_IN:
        same(t, "groups of the pod alone", finish(n, "strict"), "1000\n3000\n3000 4000\n")
        user = n.pod("strict")["status"]["containerStatuses"][0].get("user")
        same(t, "the status tells the user", user, {"linux": {"uid": 1000, "gid": 3000, "supplementalGroups": [3000, 4000]}})
    else:
        same(t, "a policy that the runtime does not know", end_of(n, "strict"), rejected(
            "SupplementalGroupsPolicyNotSupported", "SupplementalGroupsPolicy=Strict is not supported in this node"))


def test_non_root(t, n):
    named = n.put_image("named", images.Image(images.busybox(), config={"User": "user", "Cmd": ["sh"]}))
    numbered = n.put_image("numbered", images.Image(images.busybox(), config={"User": "1000", "Cmd": ["sh"]}))
    wrong = {"root": ({}, n.image, "container has runAsNonRoot and image will run as root"),
             "zero": ({"runAsUser": 0}, n.image, "container's runAsUser breaks non-root policy"),
             "named": ({}, named, "container has runAsNonRoot and image has non-numeric user (user), cannot verify user is non-root")}
    made = {name: create(n, "nonroot-" + name, "id -u", {"securityContext": {"runAsNonRoot": True}}, securityContext=security, image=image)
            for name, (security, image, _) in wrong.items()}
    create(n, "nonroot-fine", IDS, {"securityContext": {"runAsNonRoot": True}}, image=numbered)
    for name, (_, _, text) in wrong.items():
        same(t, f"runAsNonRoot: {name}", waiting(n, "nonroot-" + name, "CreateContainerConfigError"),
             f'{text} (pod: "nonroot-{name}_default({made[name]["metadata"]["uid"]})", container: c)')
    same(t, "runAsNonRoot: an image with a number", finish(n, "nonroot-fine"), "1000\n1000\n1000\n")


def test_privileged(t, n):
    with open("/proc/self/status") as f:
        own = next(line.split()[1] for line in f if line.startswith("CapEff:"))
    got = once(n, "privileged", status_of("CapEff", "Seccomp") + "; mount -t tmpfs x /tmp && echo mounted; ls /dev | busybox wc -l; "
               "test -w /proc/sys/kernel/panic && echo open; grep -c ' /sys sysfs rw' /proc/mounts", securityContext={"privileged": True}).split()
    # With containerd, /sys is as the first container of the pod had it: the pause container, read-only.
    same(t, "privileged: all capabilities, mounts, the machine's settings", got[:3] + got[4:], [own, "0", "mounted", "open", "1" if BUILT_IN else "0"])
    devices = int(once(n, "unprivileged", "ls /dev | busybox wc -l"))
    t.check("privileged: the machine's devices", int(got[3]) > devices, f"{got[3]} against {devices}")


def test_seccomp_missing(t, n):
    create(n, "seccomp-none", securityContext={"seccompProfile": {"type": "Localhost", "localhostProfile": "nothing.json"}})
    why = waiting(n, "seccomp-none", "CreateContainerError")
    t.check("a seccomp profile that is not there", "nothing.json" in why and "seccomp" in why, why)


def test_user_namespace(t, n):
    script = ("cat /proc/self/uid_map; id -u; echo x >/v/f; stat -c '%u %g' /v /v/f /cm/a /bin/busybox; mount -t tmpfs x /tmp 2>/dev/null || echo refused; "
              "head -c 1 /proc/kcore 2>/dev/null | busybox wc -c; sleep 1000")
    put(n, "configmaps", "userns", data={"a": "1"})
    volumes = {"volumes": [{"name": "v", "emptyDir": {}}, {"name": "cm", "configMap": {"name": "userns"}}]}
    mounts = [{"name": "v", "mountPath": "/v"}, {"name": "cm", "mountPath": "/cm"}]
    made = create(n, "userns", script, {"hostUsers": False, **volumes}, volumeMounts=mounts)
    handlers = n.get("/api/v1/nodes/" + nodes.NODE).json["status"].get("runtimeHandlers") or [{}]
    if not handlers[0].get("features", {}).get("userNamespaces"):
        told = n.seen.event("userns", "FailedCreatePodSandBox", seconds=20)
        t.check("hostUsers: false, where the runtime cannot", "can't set `spec.hostUsers: false`, runtime does not support user namespaces" in told[2], told)
        return
    create(n, "userns-open", "grep -c -e ' /proc/sys ' -e ' /proc/kcore ' /proc/mounts; id -u", {"hostUsers": False}, securityContext={"procMount": "Unmasked"})
    create(n, "userns-caps", status_of("CapEff") + "; mount -t tmpfs x /tmp && echo mounted", {"hostUsers": False},
           securityContext={"capabilities": {"add": ["SYS_ADMIN"]}, "appArmorProfile": {"type": "Unconfined"}})
    tap.wait_for(lambda: n.output("userns").count("\n") >= 8, 30)
    got = n.output("userns").split("\n")
    ids = list(map(int, got[0].split()))
    t.check("hostUsers: false: its users are others on the node", ids[0] == 0 and ids[1] >= 65536 and ids[2] == 65536, got)
    same(t, "hostUsers: false: files are root's, and it has no power", got[1:8], ["0", "0 0", "0 0", "0 0", "0 0", "refused", "0"])
    folder = f"{n.root}/pods/{made['metadata']['uid']}/volumes/kubernetes.io~empty-dir/v/f"
    same(t, "hostUsers: false: on the node they are root's, too", os.stat(folder).st_uid, 0)
    same(t, "procMount: Unmasked", finish(n, "userns-open"), "0\n0\n")
    t.check("hostUsers: false: its power is for itself", finish(n, "userns-caps").endswith("mounted\n"), n.output("userns-caps"))


# ---- refusals ----

def test_refused(t, n):
    create(n, "sysctl", spec={"securityContext": {"sysctls": [{"name": "net.core.somaxconn", "value": "100"}]}})
    create(n, "os", spec={"os": {"name": "windows"}})
    same(t, "a sysctl that is not safe", end_of(n, "sysctl"), rejected("SysctlForbidden", 'forbidden sysctl: "net.core.somaxconn" not allowlisted'))
    same(t, "another system", end_of(n, "os"), rejected("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"))
    told = n.seen.event("sysctl", "SysctlForbidden")
    same(t, "and the event", told[:3], ("Warning", "SysctlForbidden", 'forbidden sysctl: "net.core.somaxconn" not allowlisted'))
    if os.path.exists("/sys/module/apparmor/parameters/enabled"):
        return
    create(n, "apparmor", spec={"securityContext": {"appArmorProfile": {"type": "Localhost", "localhostProfile": "x"}}})
    create(n, "apparmor-free", "echo runs", securityContext={"appArmorProfile": {"type": "Unconfined"}})
    same(t, "AppArmor where the kernel has none", end_of(n, "apparmor"), rejected("AppArmor", "Cannot enforce AppArmor: AppArmor is not enabled on the host"))
    same(t, "AppArmor: Unconfined is no wish", finish(n, "apparmor-free"), "runs\n")


# ---- namespaces of the node ----

def test_host_namespaces(t, n):
    kinds = ("pid", "ipc", "net")
    # containerd's processes are in a PID namespace of its own: the node's, for the pods.
    pid = f"{n.containerd.process.pid}/ns/pid_for_children" if n.containerd else "self/ns/pid"
    node = dict(zip(kinds, (os.readlink("/proc/" + p) for p in (pid, "self/ns/ipc", "self/ns/net"))))
    look = "; ".join(f"busybox readlink /proc/self/ns/{kind}" for kind in kinds)
    for name, spec in (("none", {}), ("pid", {"hostPID": True}), ("ipc", {"hostIPC": True}), ("net", {"hostNetwork": True})):
        create(n, "ns-" + name, look, spec)
    for name in ("none", *kinds):
        shared = [kind for kind, is_ in zip(kinds, finish(n, "ns-" + name).split()) if is_ == node[kind]]
        same(t, f"namespaces shared with the node: {name}", shared, [] if name == "none" else [name])
    same(t, "hostNetwork: the node's address", n.pod("ns-net")["status"]["podIP"], "127.0.0.1")


def test_shared_processes(t, n):
    both = [{"name": "v", "mountPath": "/v"}]

    def pod(name, **spec):
        script = "while ! test -e /v/other; do sleep 0.1; done; sleep 0.2; ps; busybox tr '\\0' ' ' </proc/1/cmdline; echo"
        one = n.make(name, ("sh", "-c", script), volumeMounts=both, spec={"restartPolicy": "Never", "volumes": [{"name": "v", "emptyDir": {}}], **spec})
        one["spec"]["containers"].append({"name": "other", "image": n.image, "command": ["sh", "-c", "touch /v/other; exec sleep 5"], "volumeMounts": both})
        n.create(one)
    pod("share", shareProcessNamespace=True)
    pod("apart")
    share, apart = finish(n, "share"), finish(n, "apart")
    t.check("shareProcessNamespace: the processes of others, below the sandbox's", "sleep 5" in share and "pause" in share.splitlines()[-1], share)
    t.check("else only its own", "sleep 5" not in apart and apart.splitlines()[-1].startswith("sh -c"), apart)


def test_host_port(t, n):
    port, twice = free_port(), {"containerPort": 80, "hostPort": free_port()}
    serve = "echo hello >/tmp/index.html; httpd -f -p {} -h /tmp"
    create(n, "port", serve.format(80), ports=[{"containerPort": 80, "hostPort": port}, twice])
    n.seen.wait("port", lambda p: p["status"].get("phase") == "Running", 40, "Running")
    create(n, "port-again", ports=[twice])

    def fetch():
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=2).read()
        except OSError as e:
            return str(e)
    tap.wait_for(lambda: fetch() == b"hello\n", 10)
    same(t, "hostPort: a port of the node leads to the pod", fetch(), b"hello\n")
    same(t, "hostPort: only one pod can have it", end_of(n, "port-again"),
         rejected("NodePorts", "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"))


# ---- names ----

HOSTS = ("# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\nfe00::0\tip6-localnet\n"
         "fe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n")


def test_names(t, n):
    aliases = [{"ip": "1.2.3.4", "hostnames": ["one", "two"]}, {"ip": "5.6.7.8", "hostnames": ["three"]}]
    long = "name-" + "x" * 70
    create(n, "aliases", "cat /etc/hosts", {"hostAliases": aliases})
    create(n, "hostname", "hostname; hostname -f; cat /etc/hostname", {"hostname": "h", "subdomain": "s"})
    create(n, "fqdn", "hostname; cat /etc/hostname", {"hostname": "h", "subdomain": "s", "setHostnameAsFQDN": True})
    create(n, long, "hostname", labels={"app": "long"})
    create(n, "override", "hostname; cat /etc/hosts | tail -1", {"hostnameOverride": "an.other.name"})
    create(n, "fqdn-long", spec={"hostname": "h" * 60, "subdomain": "s", "setHostnameAsFQDN": True})
    create(n, "hosts-net", "head -1 /etc/hosts; tail -1 /etc/hosts; hostname", {"hostNetwork": True, "hostAliases": aliases[:1]})
    same(t, "hostAliases", finish(n, "aliases"), HOSTS + n.pod("aliases")["status"]["podIP"] +
         "\taliases\n\n# Entries added by HostAliases.\n1.2.3.4\tone\ttwo\n5.6.7.8\tthree\n")
    same(t, "hostname and subdomain", finish(n, "hostname"), "h\nh.s.default.svc.cluster.local\nh\n")
    same(t, "setHostnameAsFQDN", finish(n, "fqdn"), "h.s.default.svc.cluster.local\n" * 2)
    same(t, "a name that is too long is cut", finish(n, long), long[:63] + "\n")
    same(t, "hostnameOverride", finish(n, "override"), f"an.other.name\n{n.pod('override')['status']['podIP']}\tan.other.name\n")
    told = n.seen.event("fqdn-long", "FailedCreatePodSandBox", seconds=20)
    fqdn = "h" * 60 + ".s.default.svc.cluster.local"
    t.check("setHostnameAsFQDN: no longer than Linux allows", f"failed to construct FQDN from pod hostname and cluster domain, FQDN {fqdn} is too long "
            f"(64 characters is the max, {len(fqdn)} characters requested)" in told[2], told)
    same(t, "hostNetwork: the node's hosts and name", finish(n, "hosts-net"),
         f"# Kubernetes-managed hosts file (host network).\n1.2.3.4\tone\ttwo\n{os.uname().nodename}\n")


CLUSTER = "search default.svc.cluster.local svc.cluster.local cluster.local example.org\nnameserver 10.0.0.10\noptions {}\n"
NODES = "search example.org\nnameserver 127.0.0.77\noptions {}\n"
DNS = {
    "cluster": ({}, CLUSTER.format("ndots:5")),
    "default": ({"dnsPolicy": "Default"}, NODES.format("timeout:1")),
    "none": ({"dnsPolicy": "None", "dnsConfig": {"nameservers": ["1.1.1.1"], "searches": ["a.b"], "options": [{"name": "edns0"}, {"name": "ndots", "value": "2"}]}},
             "search a.b\nnameserver 1.1.1.1\noptions edns0 ndots:2\n"),
    "merged": ({"dnsConfig": {"nameservers": ["1.1.1.1"], "searches": ["a.b", "cluster.local"], "options": [{"name": "ndots", "value": "2"}]}},
               "search default.svc.cluster.local svc.cluster.local cluster.local example.org a.b\nnameserver 10.0.0.10\nnameserver 1.1.1.1\noptions ndots:2\n"),
    "hostnet": ({"hostNetwork": True}, NODES.format("timeout:1")),
    "hostnet-cluster": ({"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}, CLUSTER.format("ndots:5")),
}


def test_dns(t, n):
    for name, (spec, _) in DNS.items():
        create(n, "dns-" + name, "cat /etc/resolv.conf", spec)
    for name, (_, wanted) in DNS.items():
        same(t, f"resolv.conf: {name}", finish(n, "dns-" + name), wanted)


# ---- environment ----

def test_services(t, n):
    service = put(n, "services", "my-svc", spec={"ports": [{"name": "web", "port": 80}, {"name": "other", "port": 90, "protocol": "UDP"}], "selector": {"a": "b"}})
    ip = service["spec"]["clusterIP"]
    create(n, "links", "env | grep -e ^MY_SVC -e ^KUBERNETES_SERVICE | busybox sort")
    create(n, "no-links", "env | grep -e ^MY_SVC -e ^KUBERNETES_SERVICE_PORT= | busybox sort", {"enableServiceLinks": False})
    got = finish(n, "links").splitlines()
    wanted = [f"MY_SVC_PORT=tcp://{ip}:80", f"MY_SVC_PORT_80_TCP=tcp://{ip}:80", f"MY_SVC_PORT_80_TCP_ADDR={ip}", "MY_SVC_PORT_80_TCP_PORT=80",
              "MY_SVC_PORT_80_TCP_PROTO=tcp", f"MY_SVC_PORT_90_UDP=udp://{ip}:90", f"MY_SVC_PORT_90_UDP_ADDR={ip}", "MY_SVC_PORT_90_UDP_PORT=90",
              "MY_SVC_PORT_90_UDP_PROTO=udp", f"MY_SVC_SERVICE_HOST={ip}", "MY_SVC_SERVICE_PORT=80", "MY_SVC_SERVICE_PORT_OTHER=90", "MY_SVC_SERVICE_PORT_WEB=80"]
    same(t, "services in the environment", sorted(line for line in got if line.startswith("MY_SVC")), sorted(wanted))
    t.check("with that of the API server", "KUBERNETES_SERVICE_PORT_HTTPS=443" in got, got)
    same(t, "enableServiceLinks: false", finish(n, "no-links"), "KUBERNETES_SERVICE_PORT=443\n")


def field(name, path):
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def resource(name, what, divisor="0"):
    return {"name": name, "valueFrom": {"resourceFieldRef": {"resource": what, "divisor": divisor}}}


def test_environment(t, n):
    put(n, "configmaps", "env", data={"a": "1", "b": "2"})
    put(n, "secrets", "env", stringData={"s": "3"})
    env = [field("V_NAME", "metadata.name"), field("V_NS", "metadata.namespace"), field("V_UID", "metadata.uid"), field("V_LABEL", "metadata.labels['a']"),
           field("V_NOTE", "metadata.annotations['note']"), field("V_NODE", "spec.nodeName"), field("V_ACCOUNT", "spec.serviceAccountName"),
           field("V_HOST", "status.hostIP"), field("V_IP", "status.podIP"), field("V_IPS", "status.podIPs"), resource("V_CPU", "limits.cpu"),
           resource("V_MILLI", "limits.cpu", "1m"), resource("V_MEM", "requests.memory", "1Mi"), resource("V_DISK", "limits.ephemeral-storage", "1Gi"),
           {"name": "V_EXPANDED", "value": "$(V_NAME)-$(PRE_a)-$$(V_NAME)-$(NOBODY)"},
           {"name": "V_KEY", "valueFrom": {"secretKeyRef": {"name": "env", "key": "s"}}},
           {"name": "V_MAYBE", "valueFrom": {"configMapKeyRef": {"name": "env", "key": "zz", "optional": True}}}]
    made = create(n, "env", "env | grep -e ^V_ -e ^PRE_ | busybox sort", labels={"a": "b"}, annotations={"note": "of the pod"}, env=env,
                  envFrom=[{"prefix": "PRE_", "configMapRef": {"name": "env"}}, {"configMapRef": {"name": "nobody", "optional": True}}],
                  resources={"limits": {"cpu": "1500m"}, "requests": {"memory": "32Mi"}})
    bad = {"map": ({"configMapKeyRef": {"name": "nobody", "key": "a"}}, 'configmap "nobody" not found'),
           "key": ({"configMapKeyRef": {"name": "env", "key": "zz"}}, "couldn't find key zz in ConfigMap default/env"),
           "secret": ({"secretKeyRef": {"name": "env", "key": "zz"}}, "couldn't find key zz in Secret default/env")}
    for name, (source, _) in bad.items():
        create(n, "env-" + name, env=[{"name": "X", "valueFrom": source}])
    got = dict(line.split("=", 1) for line in finish(n, "env").splitlines())
    disk = int(got.pop("V_DISK", 0))
    t.check("what is not limited is the node's", disk > 0, disk)
    ip = n.pod("env")["status"]["podIP"]
    same(t, "fields, resources, maps and secrets in the environment", got, {
        "V_NAME": "env", "V_NS": "default", "V_UID": made["metadata"]["uid"], "V_LABEL": "b", "V_NOTE": "of the pod", "V_NODE": nodes.NODE,
        "V_ACCOUNT": "default", "V_HOST": "127.0.0.1", "V_IP": ip, "V_IPS": ip, "V_CPU": "2", "V_MILLI": "1500", "V_MEM": "32", "V_KEY": "3",
        "V_EXPANDED": "env-1-$(V_NAME)-$(NOBODY)", "PRE_a": "1", "PRE_b": "2"})
    for name, (_, text) in bad.items():
        same(t, f"environment from what is not there: {name}", waiting(n, "env-" + name, "CreateContainerConfigError"), text)


TESTS = [test_cases, test_groups, test_non_root, test_privileged, test_seccomp_missing, test_user_namespace, test_refused, test_host_namespaces,
         test_shared_processes, test_host_port, test_names, test_dns, test_services, test_environment]

if __name__ == "__main__":
    with tempfile.NamedTemporaryFile("w") as resolv:
        resolv.write("nameserver 127.0.0.77\nsearch example.org\noptions timeout:1\n")
        resolv.flush()
        pods.run("security", TESTS, prepare=prepare, config={"allowedUnsafeSysctls": ["kernel.msg*"], "resolvConf": resolv.name})
