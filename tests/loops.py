"""Plays recorded behaviour of Kubernetes' controllers and scheduler (stories) on a cluster of ours: API server, controller manager, scheduler, kubelet.
It is the player of stories.py, for all kinds of objects. What differs from the stories of pods:

Names that the server chose are numbered per prefix in the order of their creation, as the recorder did. Which of several that are made at once
is which, is left to chance: when the story is over, each of ours is taken for the one of the story that it is most like, but those that an action
names.

States. Where a story rests (nothing at all changes for REST_MS, or a second before an action and until then), the states are equal. On the way from one
rest to the next each field has a value that it had there on the way, and a number is one of those between (of pods that are ready, ending or on their
nodes, any: nodes are not equally fast; the same for the sums of a deployment); what came and went there need not be seen here.

Events. The steps of a replica set (from 3 to 2, from 2 to 1) are taken together where they go one way: how many there are depends on how quickly
pods become ready. What is tried again until it succeeds is there as often as it happens to be tried.

Final objects are compared as a whole, with who has written to them."""
import collections
import copy
import itertools
import json
import re
import time

import stories
from stories import CLUSTER_WIDE, NAMESPACED, Happened, State, plain

REST_MS = 3000
ORDER_MS = 1500
TOPICS = ("cronjob-", "deploy-", "ds-", "hpa-", "job-", "rc-", "rs-", "sts-")
# Stories of pods that are about the scheduler or controllers.
OF_PODS = ("pod-scheduling-gates", "term-delete-pending-unscheduled", "vol-generic-ephemeral-no-class", "sec-pod-security-admission")

UNPLAYED = {
    "ds-two-nodes-rolling-update": "is played with the others of two nodes (loops_cluster.py)",
    **dict.fromkeys(("hpa-below-min-above-max", "hpa-missing-target-and-scaling-disabled", "hpa-without-metrics"), "there is no autoscaler yet"),
}

# What of a story differs here, by what the line about it contains, and why that is right.
DIFFERENT = {
    "job-indexed-max-failed-indexes": [
        (part, "how far a pod for the third index comes, if there is one, before the second failed one ends the job, depends on the kubelet")
        for part in ("j-2-{1}", ".status.failed: 2, not 3", ".status.terminating: 0, not 1")],
    "job-onfailure-restart": [(part, "a quicker node tells the second crash before the job has deleted the pod")
                              for part in ("Warning BackOff", "'CrashLoopBackOff', not")],
}

# Events that are repeated until what they complain about is over.
RETRIED = {"UnexpectedJob", "FailedCreate", "FailedScheduling", "FailedBinding", "ProvisioningFailed", "ExternalProvisioning", "WaitForFirstConsumer", "WaitForPodScheduled"}

TIMES = ("lastTransitionTime", "lastUpdateTime", "lastProbeTime", "lastHeartbeatTime", "startTime", "completionTime", "lastScheduleTime", "lastSuccessfulTime",
         "lastPhaseTransitionTime", "renewTime", "acquireTime", "resourceVersion")
GENERATED = re.compile(r"(.*[-/])\{(\d+)\}$")
SCALED = re.compile(r"(Scaled (?:up|down) replica set \S+) from (\d+) to (\d+)")
UNMADE = re.compile(r"(pods \")[\w.-]+-\w{5}(\" is forbidden)")
# A job of a cron job is named after the minute for which it was made.
MINUTE = re.compile(r"\b(cj)-(\d{8})\b")


def without_times(value):
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if k not in TIMES}
    return [without_times(v) for v in value] if isinstance(value, list) else value


def reduce_object(obj):
    """As the recorder did it for its timeline."""
    if obj["kind"] == "Pod":
        return stories.reduce_pod(obj)
    m = obj["metadata"]
    meta = {k: m[k] for k in ("generation", "labels", "annotations", "ownerReferences", "finalizers", "deletionGracePeriodSeconds") if m.get(k) is not None}
    if m.get("deletionTimestamp"):
        meta["deletionTimestamp"] = "set"
    rest = {k: v for k, v in obj.items() if k not in ("metadata", "kind", "apiVersion")}
    if obj["kind"] == "Node":
        rest = {"spec": {k: v for k, v in rest["spec"].items() if k != "providerID"}, "status": {"conditions": rest["status"].get("conditions", [])}}
    return {"meta": meta, **rest}


def generations(meta, status):
    """A set that a deployment scales: in how many steps is left to chance."""
    if any(r["kind"] == "Deployment" for r in meta.get("ownerReferences", [])) and "generation" in meta:
        generation, observed = meta.pop("generation"), status.get("observedGeneration")
        if observed:
            status["observedGeneration"] = "newest" if observed == generation else "older"


def without_steps(state):
    """The same of a reduced state."""
    meta, status = dict(state.get("meta", {})), dict(state.get("status", {}))
    generations(meta, status)
    return {**state, "meta": meta, **({"status": status} if "status" in state else {})}


def whole(obj):
    """An object as the recorder wrote it at the end; who wrote what is told apart from it."""
    obj = copy.deepcopy(obj)
    m = obj["metadata"]
    m.pop("resourceVersion", None)
    m.pop("creationTimestamp", None)
    for entry in m.pop("managedFields", []):
        m.setdefault("fieldManagers", []).append(" ".join(entry[k] for k in ("manager", "operation", "subresource") if entry.get(k)))
    m["fieldManagers"] = sorted(m.get("fieldManagers", []))
    if obj["kind"] == "ReplicaSet":
        generations(m, obj["status"])
    if obj["kind"] == "Pod":
        # What a kubelet says of containers is compared by their states.
        obj["status"] = {"phase": obj["status"].get("phase")}
    return without_times(obj)


class Numbers:
    """The minutes in names of jobs, in order."""

    def __init__(self):
        self.seen = []

    def __call__(self, match):
        if match[2] not in self.seen:
            self.seen.append(match[2])
        return f"{match[1]}-<{self.seen.index(match[2]) + 1}>"


def is_known(line, known):
    """Is it one of these differences, which are pairs of a part of the line (or a pattern) and the reason?"""
    return any(part.search(line) if isinstance(part, re.Pattern) else part in line for part, _ in known)


def numeric(value):
    return isinstance(value, int) and not isinstance(value, bool)


# Sums of a deployment, whose sets tell their numbers one after the other.
SUMS = re.compile(r"\.status\.(r|updatedR)eplicas")
READY = re.compile(r"\.status\.(ready|terminating|(ready|available|unavailable|terminating)Replicas|number(Ready|Available|Unavailable|Misscheduled)|(current|updated)NumberScheduled)")


def on_the_way(obj, state, passed):
    """Has each field a value that one of these states has, or a number between those that they have?"""
    missing = object()
    any_number = SUMS if obj.startswith("Deployment/") else READY
    most = max((v for s in passed for k, v in s.leaves.items() if k.startswith(".status.") and numeric(v) and "eneration" not in k), default=0)
    for k in {k for s in (state, *passed) for k in s.leaves}:
        value, values = state.leaves.get(k, missing), [s.leaves.get(k, missing) for s in passed]
        if value in values or k.endswith(("[]", "Indexes")):
            continue
        # A count that is left out is 0.
        value, values = 0 if value is missing else value, [0 if v is missing else v for v in values]
        numbers = [v for v in values if numeric(v)] + ([0, most] if READY.fullmatch(k) or any_number.fullmatch(k) else [])
        if not numeric(value) or not numbers or not min(numbers) <= value <= max(numbers):
            return False
    return True


def rests(states, quiet):
    """The numbers of the states at which an object rested: quiet has the spans in which the whole story did."""
    return [i for i, s in enumerate(states) if i + 1 == len(states) or any(s.t <= begin and end <= states[i + 1].t for begin, end in quiet)]


def nearest(state, states):
    return min(states, key=lambda s: len(set(s.leaves.items()) ^ set(state.leaves.items())))


def compare_states(obj, theirs, ours, quiet):
    """The differences, as lines: per rest of the story one of our states must be it, and those before it on the way."""
    lines, at, before, rest_at = [], 0, 0, rests(theirs, quiet)
    for n, rest in enumerate(rest_at):
        last = n + 1 == len(rest_at)
        passed = theirs[before:rest + 1]
        found = next((i for i in (reversed(range(at, len(ours))) if last else range(at, len(ours))) if ours[i].leaves == theirs[rest].leaves), None)
        if found is None and "deleted" in theirs[rest].state:  # what it last said of itself depends on who was quicker
            found = next((i for i in range(at, len(ours)) if "deleted" in ours[i].state and on_the_way(obj, ours[i], passed)), None)
        if found is None:
            near = nearest(theirs[rest], ours[at:] or ours[-1:])
            lines.append(f"{obj}: never as at {theirs[rest].t} ms; nearest (at {near.t} ms): {near.difference(theirs[rest])}")
            continue
        for o in ours[at:found]:
            if not on_the_way(obj, o, passed):
                near = nearest(o, passed)
                lines.append(f"{obj} at {o.t} ms: no such state; nearest (of {near.t} ms): {o.difference(near)}")
        at, before = found + 1, rest
    lines += [f"{obj} at {o.t} ms: one more state: {o.difference(ours[i - 1])}" for i, o in enumerate(ours) if i >= at > 0]
    return lines


def together(events):
    """Events with the steps of a replica set taken as one, and what is retried as one."""
    out, scaled = [], {}
    for e in events:
        fields = dict(e.fields)
        fields["message"] = fields["message"].removeprefix("(combined from similar events): ")
        fields.pop("again", None)
        if fields["reason"] in RETRIED:
            fields.pop("reportingComponent", None)
        if m := SCALED.search(fields["message"]):
            what = f"{fields['object']} {m[1]}"
            if what in scaled and scaled[what][1] == m[2]:
                first = scaled[what][0]
                first.fields["message"] = SCALED.sub(rf"\1 from {first.begin} to {m[3]}", first.fields["message"])
                scaled[what] = (first, m[3])
                continue
            for k in [k for k in scaled if k.split()[-1] == m[1].split()[-1]]:
                del scaled[k]
        one = Happened(e.t, fields, e.count)
        same = next((o for o in out if o.fields == fields), None)
        if same:
            same.count += one.count
            continue
        if m:
            one.begin, scaled[what] = m[2], (one, m[3])
        one.order = len(out)
        out.append(one)
    return out


def compare_events(theirs, ours):
    ours_by, lines = {e.key: e for e in ours}, []
    theirs_by = {e.key: e for e in theirs}
    lines += [f"event missing: {e.fields['object']} {e}" for e in theirs if e.key not in ours_by and not stories.is_chance(e)]
    lines += [f"event of ours only: {e.fields['object']} {e} at {e.t} ms" for e in ours if e.key not in theirs_by and not stories.is_chance(e)]
    for key, e in theirs_by.items():
        reason = e.fields["reason"]
        if key not in ours_by or reason in RETRIED or reason in stories.REPEATED or reason == "Unhealthy" or SCALED.search(e.fields["message"]):
            continue
        if ours_by[key].count != e.count:
            lines.append(f"event {ours_by[key].count} times, not {e.count}: {e.fields['object']} {e}")
    both = [e for e in theirs if e.key in ours_by]
    for a, b in itertools.combinations(both, 2):
        if a.fields["object"] == b.fields["object"] and b.t - a.t > ORDER_MS and ours_by[a.key].order > ours_by[b.key].order:
            lines.append(f"events in another order: {b.fields['object']} {b} before {a}")
    return lines


class Player(stories.Player):
    KINDS = tuple(k for k in (*NAMESPACED, *CLUSTER_WIDE) if k not in ("Lease", "RuntimeClass", "PriorityClass"))
    PATIENCE_S = 30  # many pods start at once

    def __init__(self, node, watcher, story, number):
        super().__init__(node, watcher, story, number)
        self.fixed = {UNMADE: r"\1<name>\2", self.ns: "NS", node.cgroup + "/": "/", node.root: "/var/lib/kubelet"}
        self.minutes = {MINUTE: Numbers()}
        self.generated, self.names = {}, {**self.fixed, **self.minutes}  # real name: its prefix and number; what stands for what
        self.their_names = their_names = {MINUTE: Numbers(), UNMADE: r"\1<name>\2"}
        self.timeline = [e for e in story["timeline"] if e["ev"] != "EXISTING" or not e["obj"].startswith("ConfigMap/kube-root")]
        self.theirs = self.story_states(their_names)
        self.their_events = []
        for e in story["events"]:
            fields = plain({k: e[k] for k in stories.FIELDS if e.get(k)}, their_names)
            updates = e.get("updates") or []
            self.their_events.append(Happened(e["t"], fields, (updates[-1]["count"] if updates else e["count"]) or 1))
            self.their_events[-1].last_t = updates[-1]["t"] if updates else e["t"]
        moments = sorted({s.t for states in self.theirs.values() for s in states} | {e.t for e in self.their_events} | {a["t"] for a in story["actions"]})
        self.quiet = [(a, b) for a, b in zip(moments, moments[1:]) if b - a > REST_MS] + [
            (a["t"] - 1000, a["t"]) for a in story["actions"] if not any(a["t"] - 1000 < m < a["t"] for m in moments)]
        self.kinds = {o.split("/")[0] for o in self.theirs}
        self.objects, self.told = {}, {}  # what came of each object, and of each event

    def story_states(self, names):
        objects, states = {}, {}
        for entry in self.timeline:
            obj = plain(entry["obj"], names)
            if entry["ev"] == "ADDED" or obj not in objects:
                objects[obj] = {}
            changed = entry.get("changed", {}) if entry["ev"] == "DELETED" else {k: v for k, v in entry.items() if k not in ("t", "ev", "obj")}
            objects[obj].update(without_times(plain(changed, names)) if not obj.startswith("Pod/") else plain(changed, names))
            if entry["ev"] == "DELETED":
                objects[obj]["deleted"] = True
            if "nodeName" in changed:
                objects[obj].pop("schedulingGates", None)  # the recorder does not tell that a part is gone
            s = State(entry["t"], self.tidied(without_steps(objects[obj]) if obj.startswith("ReplicaSet/") else objects[obj]))
            if not states.get(obj) or states[obj][-1].leaves != s.leaves:
                states.setdefault(obj, []).append(s)
        return states

    def tidied(self, state):
        """A state without what is left to chance."""
        return state

    # ---- what comes ----

    def wants(self, kind, name):
        return name == self.ns if kind == "Namespace" else f"{kind}/{name}" in self.theirs

    def take(self, kind, obj):
        if obj["kind"] == "Event":
            if kind != "DELETED":
                about = obj["metadata"]["name"]
                self.told.setdefault(about, []).append((self.now(), time.monotonic(), obj))
            return
        name = obj["metadata"]["name"]
        if obj["kind"] not in self.kinds or (obj["kind"] == "ConfigMap" and name == "kube-root-ca.crt"):
            return
        self.learn(obj["metadata"])
        self.objects.setdefault((obj["kind"], name), []).append((self.now(), time.monotonic(), kind, obj))
        self.see(obj["kind"], name, self.objects[obj["kind"], name][-1], self.ours)

    def learn(self, meta):
        """A name that is new, if the server chose it."""
        name, prefix = meta["name"], meta.get("generateName")
        if prefix and name not in self.generated:
            self.generated[name] = (prefix, sum(p == prefix for p, _ in self.generated.values()) + 1)
            self.rename()

    def rename(self):
        self.names = {**self.fixed, **{re.compile(rf"(?<![A-Za-z0-9-]){re.escape(name)}(?![A-Za-z0-9-])"): f"{prefix}{{{n}}}" for name, (prefix, n) in
                                       self.generated.items()}, **self.minutes}

    def see(self, kind, name, came, into):
        now, clock, ev, obj = came
        reduced = plain(reduce_object(obj), self.names)
        state = reduced if kind == "Pod" else without_times(reduced)
        if ev == "DELETED":
            state["deleted"] = True
        s = State(now, self.tidied(without_steps(state) if kind == "ReplicaSet" else state))
        s.clock = clock
        states = into.setdefault(f"{kind}/{plain(name, self.names)}", [])
        if not states or states[-1].leaves != s.leaves:
            states.append(s)

    def see_all_again(self):
        """Everything once more, with the names that are known now."""
        into = {}
        for (kind, name), all_that_came in self.objects.items():
            for came in all_that_came:
                self.see(kind, name, came, into)
        return into

    def happened(self):
        """Our events, in order."""
        out = []
        for all_that_came in self.told.values():
            now, clock, obj = all_that_came[0]
            e = Happened(now, stories.reduce_event(obj, self.names), max(o.get("count") or 1 for _, _, o in all_that_came))
            e.clock = clock
            out.append(e)
        return sorted(out, key=lambda e: e.clock)

    # ---- which of ours is which ----

    def groups(self):
        """The objects of the story by their prefix, if their names were chosen by the server, else by themselves."""
        out = {}
        for obj in self.theirs:
            m = GENERATED.match(obj)
            out.setdefault(m[1] if m else obj, []).append(obj)
        return out

    def ours_like(self, prefix):
        return [o for o in self.ours if (m := GENERATED.match(o)) and m[1] == prefix or o == prefix]

    def reached(self, _, until):
        """Has every object come to the last state that the story has before a time, or further?"""
        for prefix, objects in self.groups().items():
            free = self.ours_like(prefix)
            for obj in objects:
                want = sum(s.t < until for s in self.theirs[obj]) - 1
                if want < 0:
                    continue
                found = next((o for o in free if stories.progress(self.theirs[obj], self.ours[o]) >= want), None)
                if not found:
                    return False
                free.remove(found)
        return True

    def told_reasons(self, events, until=float("inf")):
        """How many events of each reason there are of objects with a common prefix."""
        return collections.Counter((GENERATED.sub(r"\1", e.fields["object"]), e.fields["reason"]) for e in events if e.t < until and
                                   e.fields["reason"] not in RETRIED | stories.REPEATED and not stories.is_chance(e) and not SCALED.match(e.fields["message"]))

    def wait_for_turn(self, t):
        before = [s.t for states in self.theirs.values() for s in states if s.t < t] + [e.t for e in self.their_events if e.t < t] + [
            a["t"] for a in self.story["actions"] if a["t"] < t]
        reasons = self.told_reasons(self.their_events, t)
        self.wait(lambda: self.reached(None, t) and reasons <= self.told_reasons(self.happened()), max(t - self.now(), 0) / 1000 + self.PATIENCE_S / 3)
        time.sleep((t - max(before, default=0)) / 1000)
        self.begin += (self.now() - t) / 1000

    def at_end(self):
        end = float("inf")
        return self.reached(None, end) and self.told_reasons(self.their_events) <= self.told_reasons(self.happened())

    def watched_ms(self):
        last = max([s[-1].t for s in self.theirs.values()] + [e.last_t for e in self.their_events], default=0)
        return max(self.story["durationMs"] - last, 0)

    def cut(self):
        pass

    def named(self):
        """The names that actions use: those are what they are."""
        return set(re.findall(r"[\w.-]+-\{\d+\}", json.dumps(self.story["actions"])))

    def bursts(self, states_of):
        """Of objects with a common prefix: which were made together, by numbers, and in which order they were deleted."""
        made, number, before = {}, 0, None
        for t, obj in sorted((states[0].t, obj) for obj, states in states_of.items()):
            number += before is not None and t - before > ORDER_MS
            made[obj], before = number, t
        gone = {o: t for o, states in states_of.items() if (t := next((s.t for s in states if "deletionTimestamp" in s.state.get("meta", {})), None))}
        order = {o: i for i, o in enumerate(sorted(gone, key=gone.get))}
        return {o: (made[o], order.get(o, len(states_of))) for o in states_of}

    def cost(self, theirs, ours, bursts):
        """How unlike they are."""
        def named(states, obj):
            for s in states:
                new = copy.copy(s)
                new.leaves = {k: v.replace(obj.split("/")[1], "<name>") if isinstance(v, str) else v for k, v in s.leaves.items()}
                yield new

        def told(events, obj):
            name = obj.split("/")[1]
            return {(e.fields["reason"], e.fields["message"].replace(name, "")) for e in events if name in e.fields["object"] + " " + e.fields["message"]}
        a, b = list(named(self.theirs[theirs], theirs)), list(named(self.ours[ours], ours))
        events = len(told(self.their_events, theirs) ^ told(self.happened_now, ours))
        last = len(set(a[-1].leaves.items()) ^ set(b[-1].leaves.items()))
        made, gone = (abs(x - y) for x, y in zip(bursts[0][theirs], bursts[1][ours]))
        return 100 * len(self.compare_object(theirs, a, b)) + 20 * events + 10 * last + 60 * made + 8 * gone + \
            abs(int(GENERATED.match(theirs)[2]) - int(GENERATED.match(ours)[2]))

    def identify(self):
        """Gives our objects the numbers of those that they are like."""
        renamed, self.happened_now = {}, self.happened()
        for prefix, objects in self.groups().items():
            ours = self.ours_like(prefix)
            pinned = {o for o in objects if o.split("/")[1] in self.named()}
            rest, free = [o for o in objects if o not in pinned], [o for o in ours if o not in pinned]
            if objects[0] == prefix:
                continue
            bursts = self.bursts({o: self.theirs[o] for o in objects}), self.bursts({o: self.ours[o] for o in ours})
            costs = {(t, o): self.cost(t, o, bursts) for t in rest for o in free}
            found = {}
            for t, o in sorted(costs, key=lambda pair: (costs[pair], pair)):
                if t not in found and o not in found.values():
                    found[t] = o
            better = True
            while better:
                better = next(((x, y) for x, y in itertools.combinations(found, 2) if costs[x, found[y]] + costs[y, found[x]] <
                               costs[x, found[x]] + costs[y, found[y]]), None)
                if better:
                    x, y = better
                    found[x], found[y] = found[y], found[x]
            renamed.update({o: t for t, o in found.items()})
            free = [o for o in free if o not in found.values()]
            for i, o in enumerate(free):
                renamed[o] = f"{prefix}{{{len(objects) + i + 1}}}"
        for name, (prefix, n) in list(self.generated.items()):
            kind = next(k for k, other in self.objects if other == name)
            if found := GENERATED.match(renamed.get(f"{kind}/{plain(name, self.names)}", "")):
                self.generated[name] = (prefix, int(found[2]))
        self.rename()
        self.ours = self.see_all_again()

    # ---- acting ----

    def request(self, method, path, body=None, **headers):
        return super().request(method, path, body, user_agent="story", **headers)

    def waits(self, action):
        """What was created a moment after the action before it, was so without a wait."""
        before = [a["t"] for a in self.story["actions"] if a["t"] < action["t"]]
        return not action["do"].startswith("create ") or (before and action["t"] - max(before) > 500)

    def bind(self, pod):
        pass

    def real(self, text):
        """A text of the story with our names."""
        for name in self.generated:
            text = text.replace(plain(name, self.names), name)
        return text

    def act(self, action, manifests):
        told = {**action, "do": self.real(action["do"])}
        if "sent" in action:
            told["sent"] = json.loads(self.real(json.dumps(action["sent"])))
        if action["do"].startswith("label namespace pod-security "):
            key, value = action["do"].split()[-1].split("=")
            self.compare_answer(action, self.request("PATCH", self.path("Namespace", self.ns),
                                                     {"metadata": {"labels": {"pod-security.kubernetes.io/" + key: value}}}))
            return
        super().act(told, manifests)

    # ---- judging ----

    def compare_object(self, obj, theirs, ours):
        return stories.compare_states(obj, theirs, ours, self.PATIENCE_S * 1000, 8) if obj.startswith("Pod/") else compare_states(obj, theirs, ours, self.quiet)

    def compare_final(self):
        lines = []
        ours = {f"{kind}/{plain(name, self.names)}": came[-1] for (kind, name), came in self.objects.items()}
        for key, theirs in self.story["final"].items():
            obj = plain(key.split(" ")[0], self.their_names)
            if obj not in ours:
                continue
            a, b = (State(0, self.tidied(plain(whole(o), names))) for o, names in ((ours[obj][3], self.names), (theirs, self.their_names)))
            if a.leaves != b.leaves:
                lines.append(f"{obj} at the end: {a.difference(b)}")
        return lines

    def differences(self):
        self.identify()
        lines = list(self.lines)
        for obj in sorted(set(self.theirs) | set(self.ours)):
            if obj not in self.theirs or obj not in self.ours:
                lines.append(f"{obj} is there only in {'ours' if obj in self.ours else 'the story'}")
            else:
                lines += self.compare_object(obj, self.theirs[obj], self.ours[obj])
        lines += compare_events(together(self.their_events), together(self.happened())) + self.compare_logs() + self.compare_final()
        known = DIFFERENT.get(self.story["story"], [])
        return [line for line in lines if not is_known(line, known)]

    def clean(self):
        self.request("DELETE", f"/api/v1/namespaces/{self.ns}")
