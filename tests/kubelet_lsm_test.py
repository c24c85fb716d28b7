#!/usr/bin/env python3
"""AppArmor and SELinux as the processes of pods have them, and what they refuse. Needs a kernel that has one of them; tests/machine's has both:

    C8S=build/c8s tests/machine kubelet_lsm_test.py
    C8S=build/c8s tests/machine --append security=selinux kubelet_lsm_test.py

Needs C8S, the program to test, with c8s-pod beside it, and root. Argument: the runtime, c8s or containerd (AppArmor)."""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pods  # noqa: E402
import tap  # noqa: E402
from pods import BUILT_IN, create, finish, once, put, same, started, waiting  # noqa: E402

PARSER = "/sbin/apparmor_parser"
DEFAULT = "c8s-default" if BUILT_IN else "cri-containerd.apparmor.d"
ME = "cat /proc/self/attr/current; "


def first_line(path):
    try:
        with open(path) as f:
            return f.readline().rstrip("\n\0")
    except OSError:
        return ""


# ---- AppArmor ----

PROFILE = f"c8s-test-{os.getpid()}"
RULES = f"""profile {PROFILE} flags=(attach_disconnected, mediate_deleted) {{
  file, network, capability, umount, signal, ptrace,
  deny /denied/** w,
}}
"""
TOUCH = ME + "mkdir -p /denied; touch /denied/x 2>&1; touch /free && echo free"
CONFINED = f"{PROFILE} (enforce)\ntouch: /denied/x: Permission denied\nfree\n"
MOUNT = ME + "mount -t tmpfs x /tmp 2>/dev/null && echo mounted || echo refused"
LOCALHOST = {"type": "Localhost", "localhostProfile": PROFILE}


def of(profile, **more):
    return {"securityContext": {"appArmorProfile": profile, **more}}


ADMIN = {"capabilities": {"add": ["SYS_ADMIN"]}}
# Of the pod, of the container; the script; what it says.
APPARMOR = {
    "of-pod": (of(LOCALHOST), {}, TOUCH, CONFINED),
    "of-container": (of({"type": "Unconfined"}), of(LOCALHOST), TOUCH, CONFINED),
    "unconfined": ({}, of({"type": "Unconfined"}, **ADMIN), MOUNT, "unconfined\nmounted\n"),
    "asked-for-nothing": ({}, {"securityContext": ADMIN}, MOUNT, f"{DEFAULT} (enforce)\nrefused\n"),
    "runtime-default": (of({"type": "RuntimeDefault"}), {"securityContext": ADMIN}, MOUNT, f"{DEFAULT} (enforce)\nrefused\n"),
    "privileged": ({}, {"securityContext": {"privileged": True}}, MOUNT, "unconfined\nmounted\n"),
    "privileged-but-confined": ({}, of(LOCALHOST, privileged=True), TOUCH, CONFINED),
    "default-can-do": ({}, {}, "cd /tmp && echo x >f && cat f && chmod 700 f && rm f && kill -0 1 && echo y >/dev/shm/f && nc -l -p 1 & sleep 1; kill %1; "
                       "busybox wget -q -O - http://127.0.0.1:1/ 2>/dev/null; echo end", "x\nend\n"),
}


def parser(*args, text):
    subprocess.run([PARSER, *args], input=text, text=True, check=True)


def loaded():
    with open("/sys/kernel/security/apparmor/profiles") as f:
        return [line.split(" ")[0] for line in f]


def test_apparmor(t, n):
    for name, (pod, container, script, _) in APPARMOR.items():
        create(n, "aa-" + name, script, pod, **container)
    for name, (_, _, _, wanted) in APPARMOR.items():
        same(t, f"AppArmor: {name}", finish(n, "aa-" + name), wanted)


def test_apparmor_annotation(t, n):
    """As it was written before there was a field for it."""
    key = "container.apparmor.security.beta.kubernetes.io/c"
    made = create(n, "aa-old", TOUCH, annotations={key: "localhost/" + PROFILE})
    same(t, "AppArmor: the annotation is a field, too", made["spec"]["containers"][0]["securityContext"]["appArmorProfile"], LOCALHOST)
    same(t, "AppArmor: by an annotation", finish(n, "aa-old"), CONFINED)


def test_apparmor_exec(t, n):
    create(n, "aa-exec", "sleep 1000", of(LOCALHOST))
    started(n, "aa-exec")
    same(t, "AppArmor: who comes later has it, too", n.kubectl("exec", "aa-exec", "--", "sh", "-c", TOUCH).stdout, CONFINED)


def test_apparmor_missing(t, n):
    create(n, "aa-missing", spec=of({"type": "Localhost", "localhostProfile": "nobody-has-loaded-it"}))
    why = waiting(n, "aa-missing", "CreateContainerError")
    same(t, "AppArmor: a profile that is not loaded", why,
         "failed to get container spec opts: failed to generate apparmor spec opts: apparmor profile not found nobody-has-loaded-it")


def test_apparmor_removed(t, n):
    """Somebody removes the default profile: the next pod gets it nevertheless."""
    t.check("AppArmor: the default profile is loaded", DEFAULT in loaded(), loaded())
    parser("-R", text=f"profile {DEFAULT} {{}}\n")
    t.check("AppArmor: it is removed", DEFAULT not in loaded(), loaded())
    same(t, "AppArmor: and comes back", once(n, "aa-again", ME), f"{DEFAULT} (enforce)\n")


# ---- SELinux ----

FILE = "read write create append unlink execute entrypoint"
DIR = "read write add_name remove_name search create rmdir"
OTHERS = "lnk_file chr_file blk_file sock_file fifo_file".split()  # have labels, and are free for all
SIDS = ("kernel security unlabeled fs file file_labels init any_socket port netif netmsg node igmp_packet icmp_socket tcp_socket sysctl_modprobe sysctl "
        "sysctl_fs sysctl_kernel sysctl_net sysctl_net_unix sysctl_vm sysctl_dev kmod policy scmp_packet devnull").split()
CATEGORIES = [f"c{i}" for i in range(1024)]


def policy():
    """The least that tells containers from the node: they read what they want, and write what is theirs; of other categories, neither."""
    out = ["(handleunknown allow) (mls true) (policycap nnp_nosuid_transition)", f"(class file ({FILE})) (class dir ({DIR})) (class process (transition dyntransition))",
           *(f"(class {name} (quotaon))" for name in OTHERS), f"(classorder (file dir process {' '.join(OTHERS)}))", "(sensitivity s0) (sensitivityorder (s0))", *(f"(category {c})" for c in CATEGORIES),
           f"(categoryorder ({' '.join(CATEGORIES)}))", "(sensitivitycategory s0 (range c0 c1023))", "(level low (s0)) (level high (s0 (range c0 c1023)))",
           "(role system_r) (role object_r) (role other_r)", "(typeattribute files) (typeattribute domains)"]
    for name in ("kernel_t", "container_t", "other_t"):
        out.append(f"(type {name}) (typeattributeset domains {name}) (roletype system_r {name}) (roletype other_r {name})")
    for name in ("container_file_t", "host_t", "unlabeled_t"):
        out.append(f"(type {name}) (typeattributeset files {name}) (roletype object_r {name})")
    for name in ("system_u", "other_u"):
        out.append(f"(user {name}) (userrange {name} (low high)) (userlevel {name} low)")
        out += [f"(userrole {name} {role})" for role in ("system_r", "object_r", "other_r")]
    out += ["(roleallow system_r other_r)", f"(allow kernel_t files (file ({FILE}))) (allow kernel_t files (dir ({DIR})))",
            "(allow kernel_t domains (process (transition)))", f"(allow kernel_t domains (file ({FILE}))) (allow kernel_t domains (dir ({DIR})))",
            f"(allow domains domains (file ({FILE}))) (allow domains domains (dir ({DIR})))",
            "(allow domains files (file (read execute entrypoint))) (allow domains files (dir (read search)))",
            f"(allow domains container_file_t (file ({FILE}))) (allow domains container_file_t (dir ({DIR})))"]
    out += [f"(allow domains {kind} ({name} (quotaon)))" for name in OTHERS for kind in ("files", "domains")]
    out += [f"(mlsconstrain ({name} ({perms})) (or (dom h1 h2) (eq t1 kernel_t)))" for name, perms in
            (("file", "read write append"), ("dir", "read write search add_name remove_name"))]
    out += [f"(sid {name})" for name in SIDS] + [f"(sidorder ({' '.join(SIDS)}))"]
    for name in SIDS:
        who = "system_r kernel_t" if name in ("kernel", "init", "kmod") else "object_r unlabeled_t"
        out.append(f"(sidcontext {name} (system_u {who} (low low)))")
    out += [f"(fsuse {how} {name} (system_u object_r host_t (low low)))" for how, name in
            (("xattr", "ext4"), ("xattr", "overlay"), ("trans", "tmpfs"), ("trans", "devpts"), ("trans", "mqueue"))]
    return "\n".join(out) + "\n"


def load_policy():
    with tempfile.TemporaryDirectory() as folder:
        def at(name):
            return os.path.join(folder, name)
        with open(at("policy.cil"), "w") as f:
            f.write(policy())
        subprocess.run(["secilc", "-M", "true", "-c", "33", "-o", at("policy"), "-f", at("contexts"), at("policy.cil")], check=True)
        if not os.path.exists("/sys/fs/selinux/load"):
            subprocess.run(["mount", "-t", "selinuxfs", "selinuxfs", "/sys/fs/selinux"], check=True)
        with open(at("policy"), "rb") as f, open("/sys/fs/selinux/load", "wb", buffering=0) as g:
            g.write(f.read())
    os.makedirs("/etc/selinux/test/contexts", exist_ok=True)
    with open("/etc/selinux/config", "w") as f:
        f.write("SELINUX=enforcing\nSELINUXTYPE=test\n")
    with open("/etc/selinux/test/contexts/lxc_contexts", "w") as f:
        f.write('process = "system_u:system_r:container_t:s0"\nfile = "system_u:object_r:container_file_t:s0"\n')
    enforce(True)


def enforce(on):
    with open("/sys/fs/selinux/enforce", "w") as f:
        f.write("1" if on else "0")


def label(path):
    return os.getxattr(path, "security.selinux").decode().rstrip("\0")


def clean(text):
    return text.replace("\0", "\n").split("\n")


LEVEL = r"s0:c\d+,c\d+"
ALL = {"user": "other_u", "role": "other_r", "type": "other_t", "level": "s0:c7,c9"}
SE_ME = "cat /proc/self/attr/current; echo; "


def volumes(n, **more):
    return {"volumes": [{"name": name, **v} for name, v in more.items()]}, [{"name": name, "mountPath": "/" + name} for name in more]


def test_selinux_default(t, n):
    """Without a wish: the policy's labels, and categories that are the pod's own."""
    os.makedirs(n.host + "/folder")
    put(n, "configmaps", "se", data={"a": "1"})
    spec, mounts = volumes(n, own={"emptyDir": {}}, memory={"emptyDir": {"medium": "Memory"}}, node={"hostPath": {"path": n.host + "/folder"}},
                           config={"configMap": {"name": "se"}})
    script = (SE_ME + "for p in / /own /memory /dev/shm /tmp; do touch $p/f && echo wrote $p; done; cat /config/a /var/run/secrets/kubernetes.io/serviceaccount/namespace; "
              "echo; grep -c localhost /etc/hosts; cat /etc/hostname; touch /node/f 2>&1; grep -o 'context=[^ ]*' /proc/mounts | sort -u; sleep 1000")
    first = create(n, "se-default", script, spec, volumeMounts=mounts)
    create(n, "se-second", SE_ME + "sleep 1000")
    tap.wait_for(lambda: "context=" in n.output("se-default") and "s0" in n.output("se-second"), 60)
    got = clean(n.output("se-default"))
    t.check("SELinux: the label of a process", re.fullmatch(f"system_u:system_r:container_t:{LEVEL}", got[0]), got[0])
    level = got[0].split(":", 3)[3]
    wanted = [*(f"wrote {p}" for p in ("/", "/own", "/memory", "/dev/shm", "/tmp")), "1default", "2", "se-default", "touch: /node/f: Permission denied"]
    got = [line for line in got[1:] if line]
    same(t, "SELinux: what it can and cannot do", got[:len(wanted)], wanted)
    t.check("SELinux: the label of its files", len(got) > len(wanted) and
            all(line.startswith(f'context="system_u:object_r:container_file_t:{level}"') for line in got[len(wanted):]), got[len(wanted):])
    folder = f"{n.root}/pods/{first['metadata']['uid']}/volumes/kubernetes.io~empty-dir/own"
    same(t, "SELinux: its volumes have it", [label(folder), label(folder + "/f")], [f"system_u:object_r:container_file_t:{level}"] * 2)
    t.check("SELinux: folders of the node do not", "container_file_t" not in label(n.host + "/folder"), label(n.host + "/folder"))
    second = clean(n.output("se-second"))[0]
    t.check("SELinux: another pod has other categories", second != f"system_u:system_r:container_t:{level}" and
            re.fullmatch(f"system_u:system_r:container_t:{LEVEL}", second), second)
    spec, mounts = volumes(n, stolen={"hostPath": {"path": folder}})
    same(t, "SELinux: and no way to the first one's files", once(n, "se-thief", "ls /stolen 2>&1; cat /stolen/f 2>&1", spec, volumeMounts=mounts),
         "ls: can't open '/stolen': Permission denied\ncat: can't open '/stolen/f': Permission denied\n")
    spec["securityContext"] = {"seLinuxOptions": {"level": level}}
    same(t, "SELinux: with the same categories there is", once(n, "se-friend", "ls /stolen 2>&1", spec, volumeMounts=mounts), "f\n")
    same(t, "SELinux: who comes later has the label, too", clean(n.kubectl("exec", "se-default", "--", "cat", "/proc/self/attr/current").stdout)[0],
         f"system_u:system_r:container_t:{level}")


def test_selinux_options(t, n):
    text = "other_u:other_r:other_t:s0:c7,c9"
    create(n, "se-pod", SE_ME, {"securityContext": {"seLinuxOptions": ALL}})
    create(n, "se-container", SE_ME, {"securityContext": {"seLinuxOptions": {"type": "container_t"}}}, securityContext={"seLinuxOptions": ALL})
    create(n, "se-type", SE_ME, {"securityContext": {"seLinuxOptions": {"type": "other_t"}}})
    create(n, "se-privileged", SE_ME, securityContext={"privileged": True})
    create(n, "se-unknown", "true", securityContext={"seLinuxOptions": {"type": "unknown_t"}})
    create(n, "se-bad", "true", securityContext={"seLinuxOptions": {"level": "secret"}})
    create(n, "se-trick", "true", securityContext={"seLinuxOptions": {"user": 'system_u",lowerdir=/etc,x="'}})
    for name in ("se-pod", "se-container"):
        same(t, f"SELinux: all parts of a label: {name}", clean(finish(n, name))[0], text)
    got = clean(finish(n, "se-type"))[0]
    t.check("SELinux: a type of its own", re.fullmatch(f"system_u:system_r:other_t:{LEVEL}", got), got)
    same(t, "SELinux: privileged: none of its own", clean(finish(n, "se-privileged"))[0], "system_u:system_r:kernel_t:s0")
    why = waiting(n, "se-bad", "CreateContainerError")
    t.check("SELinux: a level that is none", why.endswith("the format of 'level' \"secret\" is not correct"), why)
    why = waiting(n, "se-trick", "CreateContainerError")
    t.check("SELinux: options of a mount are no part of a label", "cannot be a part of an SELinux label" in why, why)
    end = n.seen.wait("se-unknown", lambda p: "unknown_t" in str(p["status"]), 40, "an error")
    t.check("SELinux: a type that the policy does not know", "label system_u:system_r:unknown_t:" in str(end["status"]), end["status"])


def test_selinux_volumes(t, n):
    """Two containers of a pod have the same level, also when one of them has its own options; images that are volumes can be read."""
    spec, mounts = volumes(n, both={"emptyDir": {}}, image={"image": {"reference": n.image}})
    pod = n.make("se-two", ("sh", "-c", SE_ME + "touch /both/a; while ! test -e /both/b; do sleep 0.1; done; ls /both"), spec={**spec, "restartPolicy": "Never"},
                 volumeMounts=mounts)
    pod["spec"]["containers"].append({**pod["spec"]["containers"][0], "name": "d", "securityContext": {"seLinuxOptions": {"type": "other_t"}}, "command": [
        "sh", "-c", SE_ME + "while ! test -e /both/a; do sleep 0.1; done; touch /both/b; ls /image | grep bin"]})
    n.create(pod)
    n.seen.wait("se-two", pods.ended, 60, "its end")
    c, d = (clean(n.kubectl("logs", "se-two", "-c", name).stdout) for name in "cd")
    same(t, "SELinux: two containers of one pod", [c[0].split(":")[2:], [x for x in c[1:] if x], d[0].split(":")[2], "bin" in d],
         [["container_t", *d[0].split(":")[3:]], ["a", "b"], "other_t", True])


def test_selinux_permissive(t, n):
    enforce(False)
    try:
        spec, mounts = volumes(n, node={"hostPath": {"path": n.host + "/folder"}})
        same(t, "SELinux: permissive: it is not refused", once(n, "se-permissive", "touch /node/g 2>&1 && echo wrote", spec, volumeMounts=mounts), "wrote\n")
    finally:
        enforce(True)


# ---- which ----

def missing():
    """Why nothing can be tested here; else None, and which of them there is."""
    modules = first_line("/sys/kernel/security/lsm").split(",")
    if first_line("/sys/module/apparmor/parameters/enabled") == "Y":
        return (None, "AppArmor") if os.path.exists(PARSER) else (f"there is no {PARSER} (tests/machine has it)", None)
    if "selinux" not in modules:
        return "the kernel has neither AppArmor nor SELinux (tests/machine has them)", None
    if first_line("/proc/self/attr/current") != "kernel":
        return "this system has a policy of its own (tests/machine has none)", None
    return None, "SELinux"


if __name__ == "__main__":
    why, which = missing()
    if why:
        skipped = tap.Tap()
        skipped.skip("AppArmor, SELinux", why)
        skipped.close()
    if which == "AppArmor":
        parser("-Kr", text=RULES)
        try:
            pods.run(which, [test_apparmor, test_apparmor_annotation, test_apparmor_exec, test_apparmor_missing], [test_apparmor_removed, pods.leave_nothing])
        finally:
            parser("-R", text=RULES)
    load_policy()
    pods.run(which, [test_selinux_default, test_selinux_options, test_selinux_volumes], [test_selinux_permissive, pods.leave_nothing])
