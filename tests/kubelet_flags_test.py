#!/usr/bin/env python3
"""What c8s kubelet says to wrong flags and configurations, before it does anything. Needs C8S, the program to test."""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402

C8S = os.environ["C8S"]
HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
INVALID = "failed to validate kubelet configuration, error: invalid configuration: "


def kubelet(*flags, program=(C8S, "kubelet")):
    r = subprocess.run([*program, *flags], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    lines = [line for line in r.stderr.splitlines() if " WARN " not in line]
    return r.returncode, "\n".join(lines), r.stdout


def wrong_flags(t):
    for flags, code, want in [
        (["--nonsense"], 2, "option --nonsense is not known"),
        (["--max-podz=1"], 2, "option --max-podz=1 is not known; did you mean --max-pods?"),
        (["stray"], 2, "unexpected argument 'stray'"),
        (["--max-pods=x"], 2, 'invalid argument "x" for "--max-pods" flag: strconv.ParseInt: parsing "x": invalid syntax'),
        (["--max-pods=3000000000"], 2, 'strconv.ParseInt: parsing "3000000000": value out of range'),
        (["--sync-frequency=1"], 2, 'invalid argument "1" for "--sync-frequency" flag: time: missing unit in duration "1"'),
        (["--enable-server=x"], 2, 'invalid argument "x" for "--enable-server" flag: strconv.ParseBool: parsing "x": invalid syntax'),
        (["--address=x"], 2, 'invalid argument "x" for "--address" flag: "x" is not a valid IP address'),
        (["--feature-gates=MemoryQoS"], 2, "malformed pair, expect string=bool"),
        (["--feature-gates=MemoryQoS=x"], 2, 'invalid value of MemoryQoS: x, err: strconv.ParseBool: parsing "x": invalid syntax'),
        (["--eviction-hard=memory.available=1"], 2, "malformed pair, expect string<string"),
        (["--register-with-taints=a=b:Never"], 2, "invalid taint effect: Never, unsupported taint effect"),
        (["--register-with-taints=a:NoSchedule,a:NoSchedule"], 2, "duplicated taints with the same key and effect: {a  NoSchedule <nil>}"),
        (["--reserved-memory=0"], 2, "the reserved memory has incorrect format, expected numaNodeID:type=quantity[,type=quantity...], got 0"),
        (["--vmodule=a"], 2, '"a" does not have the pattern=N format'),
        (["--runonce"], 2, "not supported by c8s yet: --runonce=true"),
        (["--exit-on-lock-contention"], 2, "cannot exit on lock file contention: no lock file specified"),
        (["--node-labels=a=b,kubernetes.io/x=y"], 2, "unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [kubernetes.io/x]"),
        (["--node-labels=a=-"], 2, "invalid node labels: '-' - a valid label must be"),
        (["--feature-gates=Nonsense=true"], 1, "unrecognized feature gate: Nonsense"),
        (["--config=/nowhere/x"], 1, "failed to load kubelet config file, path: /nowhere/x, error: failed to load Kubelet config file "
         '/nowhere/x, error failed to read kubelet config file "/nowhere/x", error: open /nowhere/x: no such file or directory'),
        (["--config-dir=/nowhere"], 1, 'failed to merge kubelet configs: failed to walk through kubelet dropin directory "/nowhere": lstat'),
        (["--fail-cgroupv1=false", "--runtime-pod-program=/nowhere/c8s-pod"], 1, "/nowhere/c8s-pod"),
        (["--fail-cgroupv1=false", "--runtime-root=here"], 2, "--runtime-root, --runtime-state and --runtime-pod-program are absolute paths"),
    ]:
        got = kubelet(*flags)
        t.check(" ".join(flags), got[0] == code and want in got[1], got)


def flags_win(t):
    with tempfile.TemporaryDirectory() as folder:
        file, drop = os.path.join(folder, "config.yaml"), os.path.join(folder, "d")
        os.mkdir(drop)

        def write(path, text):
            with open(path, "w") as f:
                f.write(HEADER + text)

        base = ["--fail-cgroupv1=false", "--config", file]
        write(file, "maxPods: -1\n")
        got = kubelet(*base)
        t.check("a wrong file", got[0] == 1 and got[1].endswith(INVALID + "maxPods (--max-pods) -1 must not be a negative number"), got)
        got = kubelet(*base, "--max-pods=7", "--event-burst=-2")
        t.check("a flag wins over the file", got[1].endswith(INVALID + "eventBurst (--event-burst) -2 must not be a negative number"), got)
        write(os.path.join(drop, "10.conf"), "maxPods: 3\nhealthzPort: 70000\n")
        write(os.path.join(drop, "20.conf"), "healthzPort: -5\n")
        write(os.path.join(drop, "30.yaml"), "healthzPort: 1\n")
        got = kubelet(*base, "--config-dir", drop)
        t.check("files of a folder win in the order of names",
                got[1].endswith(INVALID + "healthzPort (--healthz-port) -5 must be between 1 and 65535, inclusive"), got)


def texts(t):
    code, err, out = kubelet("--help")
    t.check("--help is the manual", code == 0 and not err and "Usage: c8s kubelet" in out, (code, err))
    for flag in ["--pod-manifest-path", "--container-runtime-endpoint", "--runtime-root", "--housekeeping-interval", "-v"]:
        t.check(f"--help names {flag}", f"\n  {flag} " in out)
    code, err, out = kubelet("--version")
    t.check("--version", code == 0 and out.startswith("Kubernetes v1.36"), out)
    with tempfile.TemporaryDirectory() as folder:
        link = os.path.join(folder, "kubelet")
        os.symlink(C8S, link)
        got = kubelet("--version", program=(link,))
        t.check("called as kubelet it is the kubelet", got[0] == 0 and got[2] == out, got)


tap.run([wrong_flags, flags_win, texts])
