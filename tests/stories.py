"""Plays recorded behaviour of Kubernetes' kubelet (a story) on a node of ours and compares what can be seen of the pods.

A story has objects to create, actions with their times, and what a watch showed: the states of each object, and events. The scheduler's part is
played by the player: it binds pods that the story's scheduler bound. What is compared, and how strictly:

States. Objects are reduced as the recorder did. The states of ours, in order, must be states of the story, in the same order, and end with its
last one. A state of the story may be missing if the next one came within SKIP_MS: a faster node passes it before it can tell. A state that the
story does not have is allowed only between two of its states, when each of its fields has the value of the one or of the other (or of states
between them that came and went): it told in two steps what the other told in one. CrashLoopBackOff may be told before the wait is over, and of
a short run either side may show only the end.

Events. Per object and field path the same events (type, reason, message, source) in the same order; of the object as a whole, those that were more
than a second apart. Counts of what is done (started, killed) are equal, with one more or less for probes; of complaints that are repeated at each
look at the pod (REPEATED), not more than one more, since a node that is woken only by changes looks less often.

That a server did not listen yet when it was probed first is left to chance.

Times. A state may come sooner, not LATE_MS later than in the story, or than that after the state before. Waits between two runs of a container are those of the back-off.

Actions. Status, answer, output and exit code are the same.

What has to differ, each with its reason, is in DIFFERENT and UNPLAYED; nothing else is overlooked."""
import copy
import datetime
import glob
import http.client
import json
import os
import re
import shlex
import threading
import time

SKIP_MS = 2500
LATE_MS = 8000
WATCH_MS = 2500
REPEATED = {"BackOff", "Failed", "FailedMount", "FailedCreatePodSandBox", "ErrImageNeverPull", "InspectFailed", "Pulling", "Pulled",
            "DeadlineExceeded"}
TOPICS = ("pod-", "probe-", "hook-", "term-", "env-", "vol-", "net-", "sec-", "static-", "sched-nodename-")

# Stories that are not played.
UNPLAYED = {
    "pod-scheduling-gates": "is about the scheduler: see loops.py",
    "term-delete-pending-unscheduled": "is about the scheduler: see loops.py",
    "vol-generic-ephemeral-no-class": "is about the scheduler and the controller of volumes: see loops.py",
    "sec-pod-security-admission": "is about the controller of replica sets: see loops.py",
    "sec-procmount-hostusers": "containerd of the stories could not make user namespaces, ours can",
    "term-delete-during-crashloop": "the deletion met a container that was just being started again, by chance",
}

# What of a story differs here, by what the line about it contains, and why that is right.
DIFFERENT = {
    "env-configmap-secret": [("log of p", "Debian's busybox is older: its shell does not pass on names that no variable of its own can have")],
    "pod-crashloop-timings": [("log of p (previous)", "that kubelet had removed the container already")],
    "pod-grace-zero-in-spec": [("event of ours only: Normal Killing", "the recording ended before that kubelet told it; compare term-force-delete-grace0")],
    "probe-http-headers-host": [("log of p", "agnhost is a stand-in")],
    "net-share-process-namespace": [("exec p -c b", "process ids; the first process of a pod is one of the runtime here, not of an image with a user")],
    "vol-image-volume": [("log of p", "another image")],
    "pod-oomkilled": [("resources.limits.memory", "that kubelet read it from a control group that was gone")],
    "static-pod-mirror-lifecycle": [("Pod/sp-n1", "there a mirror that was made again got no status until the pod changed; here it gets one at once")],
}

# What in a story is an artefact of where it was recorded, and what is right.
OTHERWISE = {"pod-oomkilled": ('"reason": "Error"', '"reason": "OOMKilled"')}

# Where kinds are served: group and version, plural; those of the second table are of no namespace.
NAMESPACED = {
    "Pod": "api/v1 pods", "ConfigMap": "api/v1 configmaps", "Secret": "api/v1 secrets", "Service": "api/v1 services", "Endpoints": "api/v1 endpoints",
    "Event": "api/v1 events", "LimitRange": "api/v1 limitranges", "PersistentVolumeClaim": "api/v1 persistentvolumeclaims",
    "ReplicationController": "api/v1 replicationcontrollers", "ResourceQuota": "api/v1 resourcequotas", "Deployment": "apis/apps/v1 deployments",
    "ReplicaSet": "apis/apps/v1 replicasets", "DaemonSet": "apis/apps/v1 daemonsets", "StatefulSet": "apis/apps/v1 statefulsets",
    "ControllerRevision": "apis/apps/v1 controllerrevisions", "Job": "apis/batch/v1 jobs", "CronJob": "apis/batch/v1 cronjobs",
    "EndpointSlice": "apis/discovery.k8s.io/v1 endpointslices", "Lease": "apis/coordination.k8s.io/v1 leases",
    "PodDisruptionBudget": "apis/policy/v1 poddisruptionbudgets", "HorizontalPodAutoscaler": "apis/autoscaling/v2 horizontalpodautoscalers"}
CLUSTER_WIDE = {
    "RuntimeClass": "apis/node.k8s.io/v1 runtimeclasses", "Node": "api/v1 nodes", "Namespace": "api/v1 namespaces",
    "PersistentVolume": "api/v1 persistentvolumes", "StorageClass": "apis/storage.k8s.io/v1 storageclasses",
    "PriorityClass": "apis/scheduling.k8s.io/v1 priorityclasses", "CertificateSigningRequest": "apis/certificates.k8s.io/v1 certificatesigningrequests"}
PATCHES = {"merge": "application/merge-patch+json", "strategic": "application/strategic-merge-patch+json", "json": "application/json-patch+json"}
# What other programs than the kubelet say, and say differently.
WORDS = [
    # containerd and runc, and the built-in runtime
    (re.compile(r"failed to create containerd task: (failed to create shim task: )?(OCI runtime create failed: runc create failed: )?"), "<runtime>: "),
    (re.compile(r"(failed to exec in container: )?failed to start exec \"<id>\": (OCI runtime exec failed: exec failed: )?"), "<runtime exec>: "),
    (re.compile(r"unable to start container process: (program: )?exec"), "unable to start container process: exec"),
    (re.compile(r"[Nn]o such file or directory"), "no such file or directory"),
    (re.compile(r"failed to resolve (image|reference \"[^\"]*\"): failed to do request: Head \"https?:"), "failed to resolve image: Head \"https:"),
    (re.compile(r"(dial tcp: lookup|look up) ([\w.-]+)( on [\d.:]+)?: no such host"), r"look up \2: no such host"),
    # kubectl, whose version is Debian's
    (re.compile(r"force deleted from NS namespace"), "force deleted"),
    (re.compile(r"All commands and output from this session will be recorded in container logs, including credentials and sensitive information "
                r"passed through the command prompt.\n"), ""),
    (re.compile(r"error: container zz is not valid for pod p out of: a, b|Error from server \(BadRequest\): container zz is not valid for pod p|"
                r"error: container zz is not valid for pod p"), "container zz is not valid for pod p"),
    # other pods on the node, and its size
    (re.compile(r"used: \d+, capacity: \d+"), "used: <n>, capacity: <n>"),
    (re.compile(r"ls: /proc/\d+: no such file or directory\n"), ""),
    # clocks
    (re.compile(r"\b20\d\d-\d\d-\d\dT[\d:.]+Z|\bT[+-][\d.]+s\b"), "<time>"),
    (re.compile(r"(?<= )\d+s +(?=(kubernetes\.io|example\.test)/)"), "<age> "),
    (re.compile(r"\b(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +\d+ \d\d:\d\d\b"), "<time>"),
]
# Of cgroup v1: what a pod without a limit is told to have.
NO_LIMIT = "9007199254740988Ki"


def kind_path(kind, namespace=None):
    """The collection of a kind in a namespace, or everywhere."""
    group, plural = (NAMESPACED.get(kind) or CLUSTER_WIDE[kind]).split()
    return f"/{group}/namespaces/{namespace}/{plural}" if namespace and kind in NAMESPACED else f"/{group}/{plural}"


def folder():
    """Where the stories are; None: not on this machine."""
    path = os.environ.get("STORIES_FOLDER", os.path.join(os.path.dirname(__file__), "..", "..", "shared", "k8s-facts", "stories"))
    return path if os.path.isdir(path) else None


def load(path, topics=TOPICS):
    """All stories of these topics (of pods), long ones first."""
    found = []
    for file in glob.glob(os.path.join(path, "*.json")):
        name = os.path.basename(file)
        if name.startswith(topics):
            with open(file) as f:
                found.append(json.loads(f.read().replace(*OTHERWISE.get(name.removesuffix(".json"), ("", "")))))
    return sorted(found, key=lambda s: -s["durationMs"])


# ---- what is compared ----

TEXTS = [(re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "<uid>"), (re.compile(r"\b[0-9a-f]{64}\b"), "<id>"),
         (re.compile(r"\b[0-9a-f]{32}\b"), "<hash>"), (re.compile(r"<(uid|id|podIP|clusterIP)\d+>"), r"<\1>"),
         (re.compile(r"\b10\.(21[45]|244)\.\d+\.\d+\b"), "<podIP>"), (re.compile(r"\b10\.96\.(?!0\.)\d+\.\d+\b"), "<clusterIP>"),
         (re.compile(r"kube-api-access-(\{r\}|\w{5})"), "kube-api-access-<r>"),
         (re.compile(r"T_HIP=127.0.0.1\b"), "T_HIP=<nodeIP>"), (re.compile(r"\.\.20\d\d(_\d\d){5}\.\d+"), "..<time>")]


def plain(value, names):
    """Texts without what is different in each run; names: what stands for what, texts or patterns."""
    if isinstance(value, dict):
        return {plain(k, names): plain(v, names) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(v, names) for v in value]
    if not isinstance(value, str):
        return value
    for old, new in names.items():
        value = value.replace(old, new) if isinstance(old, str) else old.sub(new, value)
    for pattern, new in TEXTS + WORDS:
        value = pattern.sub(new, value)
    return value


def container_state(state):
    return {kind: {k: v for k, v in what.items() if k not in ("startedAt", "finishedAt", "containerID")} for kind, what in (state or {}).items()}


def reduce_container(c):
    left_out = ("image", "imageID", "containerID", "volumeMounts", "user")
    return {k: container_state(v) if k in ("state", "lastState") else v for k, v in c.items() if k not in left_out}


def reduce_status(status):
    out = {}
    for key, value in status.items():
        if key in ("podIPs", "hostIPs"):
            continue
        if key in ("podIP", "hostIP", "startTime"):
            value = "set"
        elif key == "conditions":
            value = [{k: v for k, v in c.items() if k not in ("lastProbeTime", "lastTransitionTime")} for c in value]
        elif key.endswith("ontainerStatuses"):
            value = [reduce_container(c) for c in value]
        out[key] = value
    return out


def reduce_pod(pod):
    m, spec = pod["metadata"], pod["spec"]
    meta = {k: m[k] for k in ("generation", "labels", "annotations", "ownerReferences", "finalizers", "deletionGracePeriodSeconds") if m.get(k) is not None}
    if m.get("deletionTimestamp"):
        meta["deletionTimestamp"] = "set"
    out = {"meta": meta, "status": reduce_status(pod.get("status", {})),
           "spec": {"containers": [{"name": c["name"], "image": c["image"], "resources": c.get("resources", {})} for c in spec["containers"]]}}
    for key in ("nodeName", "schedulingGates"):
        if spec.get(key):
            out[key] = spec[key]
    return out


def tidy(state):
    """What is left of a state for the comparison: without what only cgroup v1 or the clock puts there."""
    state = copy.deepcopy(state)
    resources = state.get("status", {}).get("resources", {})
    if resources.get("limits", {}).get("memory") == NO_LIMIT:
        del resources["limits"]["memory"]
        if not resources["limits"]:
            del resources["limits"]
    state.get("meta", {}).get("annotations", {}).pop("kubernetes.io/config.seen", None)
    return state


def flat(value, path="", out=None):
    """The leaves of a state by their path; elements of lists go by their name or type."""
    out = {} if out is None else out
    if isinstance(value, dict) and value:
        for k, v in value.items():
            flat(v, f"{path}.{k}", out)
    elif isinstance(value, list) and value:
        keys = [v.get("name") or v.get("type") or i if isinstance(v, dict) else i for i, v in enumerate(value)]
        out[path + "[]"] = str(keys)
        for key, v in zip(keys, value):
            flat(v, f"{path}[{key}]", out)
    else:
        out[path] = str(value) if isinstance(value, (dict, list)) else value
    return out


class State:
    def __init__(self, t, state):
        self.t, self.state, self.clock = t, tidy(state), time.monotonic()
        self.leaves = flat(self.state)

    def difference(self, other):
        """Of two states, in words: what this one has and the other has not."""
        a, b = self.leaves, other.leaves
        return "; ".join(f"{k}: {a.get(k, '-')!r}, not {b.get(k, '-')!r}" for k in sorted(set(a) | set(b)) if a.get(k, None) != b.get(k, None))


def story_states(timeline, names):
    """Per object its states; entries of a timeline hold only the parts that changed."""
    objects, states = {}, {}
    for entry in timeline:
        obj = plain(entry["obj"], names)
        if entry["ev"] == "ADDED" or obj not in objects:
            objects[obj] = {}
        if any(c["type"] == "PodScheduled" and c["status"] == "False" for c in entry.get("status", {}).get("conditions", [])):
            continue  # the scheduler had to wait; here it does not
        changed = entry.get("changed", {}) if entry["ev"] == "DELETED" else {k: v for k, v in entry.items() if k not in ("t", "ev", "obj")}
        objects[obj].update(plain(changed, names))
        if entry["ev"] == "DELETED":
            objects[obj]["deleted"] = True
        state = State(entry["t"], objects[obj])
        states.setdefault(obj, [])
        if not states[obj] or states[obj][-1].leaves != state.leaves:
            states[obj].append(state)
    return states


# What a kubelet says of a pod at first.
FIRST = re.compile(r"\.status\.conditions\[PodReadyToStartContainers\]\.status=False|"
                   r".*ontainerStatuses\[.*\]\.state\.waiting\.reason=(ContainerCreating|PodInitializing)")


def ran_between(state, after):
    """Containers that run in a state, and whose run a later one shows as ended."""
    paths = [k.removesuffix(".state.running") for k in state.leaves if k.endswith(".state.running")]
    return [p for p in paths if state.leaves[p + ".restartCount"] == after.leaves.get(p + ".restartCount") and
            any(k.startswith((p + ".state.terminated", p + ".lastState.terminated")) for k in after.leaves)]


def between(state, passed):
    """Has each field a value that one of these states has, of which the story's kubelet passed all but the first and the last in no time? A run
    of a container may be seen that it only saw the end of, and before it had said anything, ours may say what is said first."""
    a, missing = state.leaves, object()
    nothing_yet = ".status.startTime" not in passed[0].leaves
    free = ran_between(state, passed[-1])
    if free:
        free += [".status.conditions[Ready]", ".status.conditions[ContainersReady]", ".status.phase"]
    for k in {k for s in (state, *passed) for k in s.leaves}:
        if not (any(a.get(k, missing) == s.leaves.get(k, missing) for s in passed) or k.startswith(tuple(free)) or
                (nothing_yet and k in a and FIRST.fullmatch(f"{k}={a[k]}"))):
            return False
    return True


def is_between(state, theirs, at, steps):
    """Between the story's state of that number and one of the next, if those before that came and went."""
    for last in range(at + 1, min(at + steps, len(theirs))):
        if between(state, theirs[at:last + 1]):
            return True
        if last + 1 < len(theirs) and theirs[last + 1].t - theirs[last].t > SKIP_MS:
            return False
    return False


CONTAINER = re.compile(r"(\.status\.\w*ontainerStatuses\[[^]]+\])\.state\.waiting\.reason")
FAILED = ("RunContainerError", "PostStartHookError")


def same(ours, theirs):
    """Are they equal, but for containers of ours that already say that they wait for their next run or pull, where theirs still show the end of
    the last one, or why it failed? (The kubelet of the stories tells the first when the wait is over.)"""
    a, b = dict(ours.leaves), dict(theirs.leaves)
    for path, reason in ours.leaves.items():
        message = path.removesuffix("reason") + "message"
        if CONTAINER.fullmatch(path) and reason == "ImagePullBackOff" and b.get(path) == "ErrImagePull" and a[message].endswith(
                f": ErrImagePull: {b.get(message)}"):
            a[path], a[message] = b[path], b[message]
        if not (m := CONTAINER.fullmatch(path)) or reason != "CrashLoopBackOff" or b.get(path) not in (None, *FAILED):
            continue
        last = m[1] + ".lastState.terminated."
        shown = last if path in b else m[1] + ".state.terminated."
        ended = {k[len(shown):]: v for k, v in b.items() if k.startswith(shown)}
        if not ended or ended != {k[len(last):]: v for k, v in a.items() if k.startswith(last)}:
            return False
        for side in (a, b):
            for k in [k for k in side if k.startswith((m[1] + ".state", m[1] + ".lastState"))]:
                del side[k]
    return a == b


def follow(theirs, ours):
    """Each of our states with the number of the story's state that it is; None: of none that could come now."""
    at = 0
    for o in ours:
        rest = range(at, len(theirs))
        found = next((j for j in rest if theirs[j].leaves == o.leaves), None)
        if found is None:
            found = next((j for j in rest if same(o, theirs[j])), None)
        at = at if found is None else found
        yield o, found


def progress(theirs, ours):
    """The number of the story's state to which ours have come; -1: to none."""
    return max((found for _, found in follow(theirs, ours) if found is not None), default=-1)


def compare_states(obj, theirs, ours, late_ms=LATE_MS, steps=4):
    """The differences, as lines."""
    lines, at, came, before = [], -1, 0, None
    for o, found in follow(theirs, ours):
        quick, before = before and o.t - before.t < SKIP_MS, o
        if found is None:
            if at >= 0 and is_between(o, theirs, at, steps):
                continue
            near = min(theirs[max(at, 0):], key=lambda s: len(set(s.leaves.items()) ^ set(o.leaves.items())))
            lines.append(f"{obj} at {o.t} ms: no such state; nearest (of {near.t} ms): {o.difference(near)}")
            continue
        for j in range(at + 1, found):
            if theirs[j + 1].t - theirs[j].t > SKIP_MS and not (quick and ran_between(theirs[j], o)):
                lines.append(f"{obj} at {o.t} ms: the state of {theirs[j].t} ms is missing: {theirs[j].difference(theirs[max(j - 1, 0)])}")
        if found > at >= 0 and o.t - max(came - theirs[at].t, 0) > theirs[found].t + late_ms:
            lines.append(f"{obj} at {o.t} ms: the state of {theirs[found].t} ms is late, the one before came at {came} ms")
        if found > at:
            at, came = found, o.t
    if at != len(theirs) - 1:
        lines.append(f"{obj}: ends at the state of {theirs[at].t} ms; missing: {theirs[-1].difference(theirs[at])}")
    return lines


class Happened:
    """One event object."""

    def __init__(self, t, fields, count):
        self.t, self.fields, self.count = t, fields, count
        self.seen = [(time.monotonic(), count)]

    @property
    def key(self):
        return json.dumps(self.fields, sort_keys=True)

    def numbered(self, others):
        """Apart from earlier ones that say the same, of an earlier pod of that name."""
        self.fields["again"] = sum(e.fields == {**self.fields, "again": e.fields["again"]} for e in others)
        return self

    def __str__(self):
        f = self.fields
        return f"{f['type']} {f['reason']} {f.get('fieldPath', '')} {f['message']!r}"


FIELDS = ("type", "reason", "message", "object", "fieldPath", "component", "host", "reportingComponent", "reportingInstance", "api")


def story_events(events, names):
    out = []
    for e in events:
        if e.get("component") == "kubelet":
            fields = plain({k: e[k] for k in FIELDS if e.get(k)}, names)
            updates = e.get("updates") or []
            out.append(Happened(e["t"], fields, updates[-1]["count"] if updates else e["count"]).numbered(out))
            out[-1].last_t = updates[-1]["t"] if updates else e["t"]
    return out


def reduce_event(event, names):
    about, source = event["involvedObject"], event.get("source", {})
    fields = {"type": event.get("type"), "reason": event.get("reason"), "message": event.get("message"), "object": f"{about['kind']}/{about['name']}",
              "fieldPath": about.get("fieldPath"), "component": source.get("component"), "host": source.get("host"),
              "reportingComponent": event.get("reportingComponent"), "reportingInstance": event.get("reportingInstance"),
              "api": "events.k8s.io" if event.get("eventTime") else "v1"}
    return plain({k: v for k, v in fields.items() if v}, names)


def is_chance(event):
    """Whether a server listens already when it is probed for the first time; whether that kubelet had seen the configmap already."""
    if "failed to sync configmap cache: timed out" in event.fields["message"]:
        return True
    return event.count == 1 and event.fields["reason"] == "Unhealthy" and re.search("connection refused|failed to connect", event.fields["message"])


def least_count(event):
    if is_chance(event):
        return 0
    reason = event.fields["reason"]
    return 1 if reason in REPEATED else max(event.count - 1, 1) if reason == "Unhealthy" else event.count


def compare_events(theirs, ours):
    lines = []
    ours_by, theirs_by = {e.key: e for e in ours}, {e.key: e for e in theirs}
    lines += [f"event missing: {e}" for e in theirs if e.key not in ours_by and not is_chance(e)]
    lines += [f"event of ours only: {e} at {e.t} ms" for e in ours if e.key not in theirs_by and not is_chance(e)]
    for key, e in theirs_by.items():
        if key not in ours_by:
            continue
        n, reason = ours_by[key].count, e.fields["reason"]
        # How often a probe fails depends on when the player's next action comes.
        most = e.count + 3 if reason == "Unhealthy" else e.count + 1 if reason in REPEATED else e.count
        if not least_count(e) <= n <= most:
            lines.append(f"event {n} times, not {e.count}: {e}")
    both = [e for e in theirs if e.key in ours_by]
    for i, a in enumerate(both):
        for b in both[i + 1:]:
            same = a.fields.get("object") == b.fields.get("object")
            strict = a.fields.get("fieldPath") == b.fields.get("fieldPath") or b.t - a.t > 1000
            if same and strict and ours_by[a.key].order > ours_by[b.key].order:
                lines.append(f"events in another order: {b} before {a}")
    return lines


# ---- playing ----

class Watcher:
    """All objects of some kinds of the API server, as they come; those of each namespace go to its player, those of none to all that want them."""

    def __init__(self, server, kinds):
        self.server, self.players, self.lock = server, {}, threading.Condition()
        for kind in kinds:
            threading.Thread(target=self.watch, args=(kind,), daemon=True).start()

    def takers(self, kind, obj):
        meta = obj["metadata"]
        if kind in CLUSTER_WIDE:
            return [p for p in self.players.values() if p.wants(kind, meta["name"])]
        players = [self.players[ns] for ns in (meta.get("namespace"),) if ns in self.players]
        if kind == "Event" and meta.get("namespace") == "default":
            about = obj["involvedObject"]
            players += [p for p in self.players.values() if p.wants(about["kind"], about["name"])]
        return players

    def watch(self, kind):
        c = self.server.connect(timeout=None)
        c.request("GET", kind_path(kind) + "?watch=1", headers={"Authorization": "Bearer admin-token"})
        r = c.getresponse()
        try:
            while line := r.readline():
                event = json.loads(line)
                with self.lock:
                    for player in self.takers(kind, event["object"]):
                        player.take(event["type"], event["object"])
                        self.lock.notify_all()
        except (OSError, ValueError, http.client.HTTPException, AttributeError):
            pass  # the server has ended


class Player:
    """Plays one story in a namespace of its own."""

    KINDS = ("Pod", "Event")
    PATIENCE_S = 8

    def __init__(self, node, watcher, story, number):
        self.node, self.watcher, self.story = node, watcher, story
        # As long as those of the recordings: some messages tell lengths.
        self.ns = f"{number:03d}-{story['story']}"[:30].rstrip("-").ljust(30, "x")
        self.names = {self.ns: "NS", "n2": "n1", node.cgroup + "/": "/", node.root: "/var/lib/kubelet"}
        self.theirs = story_states([e for e in story["timeline"] if e["obj"].startswith("Pod/")], {"n2": "n1"})
        self.their_events = story_events(story["events"], {"n2": "n1"})
        self.ours, self.events, self.raw, self.lines = {}, {}, {}, []
        self.begin = time.monotonic()

    def wants(self, kind, name):
        """Is an object of no namespace of this story?"""
        return False

    def now(self):
        return int((time.monotonic() - self.begin) * 1000)

    def take(self, kind, obj):
        if obj.get("kind") == "Event":
            return self.take_event(obj)
        if obj["metadata"].get("generateName"):
            self.names[obj["metadata"]["name"]] = obj["metadata"]["generateName"] + "{1}"
        name = "Pod/" + plain(obj["metadata"]["name"], self.names)
        state = plain(reduce_pod(obj), self.names)
        self.raw.setdefault(name, []).append(obj)
        if kind == "DELETED":
            state["deleted"] = True
        s = State(self.now(), state)
        states = self.ours.setdefault(name, [])
        if not states or states[-1].leaves != s.leaves:
            states.append(s)
        return None

    def take_event(self, obj):
        uid = obj["metadata"]["name"]
        if obj.get("source", {}).get("component") != "kubelet":
            return
        if uid not in self.events:
            self.events[uid] = Happened(self.now(), reduce_event(obj, self.names), 1).numbered(self.events.values())
            self.events[uid].order = len(self.events)
        self.events[uid].seen.append((time.monotonic(), obj.get("count") or 1))

    def real(self, name):
        """A name of the story, as it is here."""
        return name

    def request(self, method, path, body=None, **headers):
        return self.node.server.request(method, path, body, **headers)

    def wait(self, condition, seconds):
        """Until condition() is true, which is asked whenever something happens."""
        deadline = time.monotonic() + seconds
        with self.watcher.lock:
            while not condition():
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self.watcher.lock.wait(min(left, 0.5))
        return True

    def reached(self, obj, until):
        """Has the object come to the last state that the story has before a time, or further?"""
        states = self.theirs[obj]
        return progress(states, self.ours.get(obj, [])) >= sum(s.t < until for s in states) - 1

    def wait_for_turn(self, t):
        """Until all that came before an action has come, and then as long as it was after that. Time zero moves, so that times compare."""
        before = [s.t for states in self.theirs.values() for s in states if s.t < t] + [e.t for e in self.their_events if e.t < t] + [
            a["t"] for a in self.story["actions"] if a["t"] < t]
        keys = {e.key for e in self.their_events if e.t < t}
        self.wait(lambda: all(self.reached(o, t) for o in self.theirs) and keys <= {e.key for e in self.events.values()},
                  max(t - self.now(), 0) / 1000 + 6)
        time.sleep((t - max(before, default=0)) / 1000)
        self.begin += (self.now() - t) / 1000

    def waits(self, action):
        return not action["do"].startswith("create ")

    def path(self, kind, name="", sub=""):
        p = kind_path(kind, self.ns)
        return p + (f"/{name}" if name else "") + (f"/{sub}" if sub else "")

    def bind(self, pod):
        """As the scheduler does, if it did."""
        name = pod["metadata"]["name"]
        key = "Pod/" + (pod["metadata"]["generateName"] + "{1}" if pod["metadata"].get("generateName") else name)
        if pod["spec"].get("nodeName") or not any("nodeName" in s.state for s in self.theirs.get(key, [])):
            return
        r = self.request("POST", self.path("Pod", name, "binding"), {"metadata": {"name": name}, "target": {"kind": "Node", "name": "n1"}})
        if r.status != 201:
            self.lines.append(f"the pod {name} was not bound: {r}")

    def create(self, action, manifest):
        body = copy.deepcopy(manifest)
        if body["kind"] in NAMESPACED:
            body["metadata"]["namespace"] = self.ns
        r = self.request("POST", self.path(body["kind"]), body)
        self.compare_answer(action, r)
        if r.status == 201 and body["kind"] == "Pod":
            self.bind(r.json)

    def compare_answer(self, action, r):
        if action.get("code") not in (None, r.status):
            self.lines.append(f"{action['do']}: {r.status}, not {action['code']}: {r}")
        elif action.get("answer"):
            theirs, ours = plain([action["answer"], r.json], self.names)
            ours = {k: v for k, v in ours.items() if k in theirs}
            if ours != theirs:
                self.lines.append(f"{action['do']}: {json.dumps(ours)}, not {json.dumps(theirs)}")

    def wait_for_output(self, action):
        """Until a command prints what it printed there."""
        target, command = action["do"].removeprefix("exec ").split(": ", 1)
        end = time.monotonic() + 90
        while time.monotonic() < end:
            r = self.node.kubectl("-n", self.ns, "exec", *shlex.split(target), "--", "sh", "-c", command, check=False)
            if r.stdout == action["stdout"]:
                return
            time.sleep(0.5)

    def run_program(self, action):
        verb, rest = action["do"].split(" ", 1)
        if verb == "exec":
            target, command = rest.split(": ", 1)
            r = self.node.kubectl("-n", self.ns, "exec", *shlex.split(target), "--", "sh", "-c", command, check=False)
        else:
            r = self.node.kubectl("-n", self.ns, *shlex.split(rest), check=False)
        for what, ours in (("stdout", r.stdout), ("stderr", r.stderr), ("rc", r.returncode)):
            theirs = action.get(what, ours if verb == "exec" else "" if what != "rc" else 0)
            ours, theirs = plain(ours, self.names), plain(theirs, {})
            if what == "stderr":
                ours = "".join(line for line in ours.splitlines(True) if not line.startswith("Defaulted container")) if verb == "exec" else ours
            if ours != theirs:
                self.lines.append(f"{action['do']}: {what} {ours!r}, not {theirs!r}")

    def act(self, action, manifests):
        do = action["do"]
        if do.startswith("create "):
            self.create(action, manifests.pop(0))
        elif do.startswith("write static pod manifest"):
            body = copy.deepcopy(manifests.pop(0))
            body["metadata"]["namespace"] = self.ns
            path = os.path.join(self.node.manifests, self.ns + "-" + do.split()[4])
            with open(path + ".tmp-", "w") as f:
                json.dump(body, f)
            os.rename(path + ".tmp-", path)
        elif do.startswith("remove static pod manifest"):
            os.unlink(os.path.join(self.node.manifests, self.ns + "-" + do.split()[4]))
        elif do.startswith("delete "):
            kind, name = do.split()[1].split("/")
            self.compare_answer(action, self.request("DELETE", self.path(kind, name.replace("n2", "n1")), action.get("options")))
        elif "-patch " in do:
            how, target = do.split("-patch ")
            kind, name, *sub = target.split("/")
            r = self.request("PATCH", self.path(kind, name.replace("n2", "n1"), *sub), action["patch"], content_type=PATCHES[how])
            self.compare_answer(action, r)
        elif do.startswith("post "):
            kind, name, sub = do.split()[1].split("/")
            self.compare_answer(action, self.request("POST", self.path(kind, name, sub), action["sent"]))
        elif do.startswith(("exec ", "kubectl ")):
            self.run_program(action)
        elif not do.startswith(("wait timed out", "file shows")):
            self.lines.append(f"unknown action: {do}")

    def at_end(self):
        return self.ended_at() is not None

    def ended_at(self):
        """When all was there that the story has; None: it is not yet."""
        ours, times = {e.key: e for e in self.events.values()}, [self.begin]
        for obj, states in self.theirs.items():
            times.append(next((o.clock for o, n in follow(states, self.ours.get(obj, [])) if n == len(states) - 1), None))
        for e in self.their_events:
            seen = ours[e.key].seen if e.key in ours else [(self.begin, 0)]
            times.append(next((clock for clock, count in seen if count >= least_count(e)), None))
        return None if None in times else max(times)

    def watched_ms(self):
        """For how long the recorder looked on when nothing happened any more."""
        last = max([s[-1].t for s in self.theirs.values()] + [e.last_t for e in self.their_events], default=0)
        return max(self.story["durationMs"] - last, 0)

    def cut(self):
        """Forgets what came later than the recorder looked: what goes on, goes on."""
        ended = self.ended_at()
        for e in self.events.values():
            e.count = max((count for clock, count in e.seen if ended is None or clock <= ended), default=e.seen[0][1])
        if ended is None:
            return
        end = ended + self.watched_ms() / 2000  # what comes soon after that there, may come sooner here
        self.ours = {obj: [s for s in states if s.clock <= end] for obj, states in self.ours.items()}
        self.events = {uid: e for uid, e in self.events.items() if e.seen[0][0] <= end}

    def play(self):
        self.node.make_namespace(self.ns)
        with self.watcher.lock:
            self.watcher.players[self.ns] = self
        self.begin = time.monotonic()
        manifests = list(self.story["manifests"])
        actions = self.story["actions"]
        for action, after in zip(actions, actions[1:] + [None]):
            if action["do"].startswith("file shows"):
                self.wait_for_output(after)
                self.begin += (self.now() - action["t"]) / 1000
            elif self.waits(action):
                self.wait_for_turn(action["t"])
            self.act(action, manifests)
        self.wait(self.at_end, max(self.story["durationMs"] - self.now(), 0) / 1000 + self.PATIENCE_S)
        time.sleep(min(self.watched_ms(), WATCH_MS) / 1000)
        with self.watcher.lock:
            del self.watcher.players[self.ns]
        self.cut()
        return self

    def clean(self):
        """Removes its pods, so that others have room."""
        for name in os.listdir(self.node.manifests):
            if name.startswith(self.ns):
                os.unlink(os.path.join(self.node.manifests, name))
        self.request("DELETE", self.path("Pod"), {"gracePeriodSeconds": 0})

    # ---- judging ----

    def runs(self, obj):
        """Of each container of a pod the times at which runs began and ended, by the pod's own status."""
        spans = {}
        for pod in self.raw.get(obj, []):
            for c in pod.get("status", {}).get("containerStatuses", []) + pod.get("status", {}).get("initContainerStatuses", []):
                for state in (c.get("state", {}), c.get("lastState", {})):
                    for span in state.values():
                        if span.get("containerID") or span.get("startedAt"):
                            key = c["restartCount"] - (state is c.get("lastState") and "waiting" not in c["state"])
                            spans.setdefault(c["name"], {}).setdefault(key, {}).update(span)
                message = c.get("state", {}).get("waiting", {}).get("message", "")
                if m := re.match(r"back-off (\d+m)?(\d+)s restarting", message):
                    spans.setdefault(c["name"], {}).setdefault(c["restartCount"], {})["wait"] = int((m[1] or "0m")[:-1]) * 60 + int(m[2])
        return spans

    def compare_backoffs(self):
        lines = []
        for obj in self.ours:
            for name, runs in self.runs(obj).items():
                for n, run in runs.items():
                    after = runs.get(n + 1, {})
                    if "wait" not in run or "finishedAt" not in run or "startedAt" not in after:
                        continue
                    ended, began = (datetime.datetime.fromisoformat(t) for t in (run["finishedAt"], after["startedAt"]))
                    waited = (began - ended).total_seconds()
                    if not run["wait"] - 1 <= waited <= run["wait"] + 3:
                        lines.append(f"{obj}: container {name} waited {waited} s after run {n}, not {run['wait']}")
        return lines

    def compare_final(self):
        """What is only in the whole objects: what containers have mounted, and who they run as."""
        lines = []
        for key, theirs in self.story["final"].items():
            name = plain(key.split(" ")[0], {"n2": "n1"})
            if not name.startswith("Pod/") or name not in self.raw:
                continue
            ours = self.raw[name][-1]
            for kind in ("containerStatuses", "initContainerStatuses"):
                for a, b in zip(ours["status"].get(kind, []), theirs["status"].get(kind, [])):
                    for part in ("volumeMounts", "user"):
                        x, y = plain([a.get(part), b.get(part)], self.names)
                        if x != y:
                            lines.append(f"{name}: {part} of {a['name']}: {x}, not {y}")
        return lines

    def compare_logs(self):
        lines = []
        for target, theirs in self.story.get("logs", {}).items():
            name, _, previous = target.partition(" ")
            pod, _, container = name.partition("/")
            r = self.request("GET", self.path("Pod", self.real(pod), "log") + f"?container={container}&previous={'true' if previous else 'false'}")
            ours = plain(r.body.decode(), self.names)
            if sorted(ours.splitlines()) != sorted(plain(theirs, {}).splitlines()):  # stdout and stderr come as they come
                lines.append(f"log of {target}: {ours!r}, not {theirs!r}")
        return lines

    def differences(self):
        lines = list(self.lines)
        for obj in sorted(set(self.theirs) | set(self.ours)):
            if obj not in self.theirs or obj not in self.ours:
                lines.append(f"{obj} is there only in {'ours' if obj in self.ours else 'the story'}")
            else:
                lines += compare_states(obj, self.theirs[obj], self.ours[obj])
        lines += compare_events(self.their_events, list(self.events.values())) + self.compare_backoffs() + self.compare_logs() + \
            self.compare_final()
        known = DIFFERENT.get(self.story["story"], [])
        return [line for line in lines if not any(part in line for part, _ in known)]
