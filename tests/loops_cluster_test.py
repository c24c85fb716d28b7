"""Recorded behaviour of nodes, namespaces, volumes, services, budgets, quotas and certificates (stories) is played on a cluster of ours, and compared:
see loops_cluster.py. Without the recordings there is nothing to compare with. STORIES=all plays the long ones, too; STORIES=<pattern> those whose name
matches."""
import os

import loops_cluster
import nodes
import stories
import story_node
from tap import Tap

SHORT_MS = 9000
SHORT_ALONE_MS = 4500  # of those that are played one after another
AT_ONCE = 20


def play(tap, node, group, at_once):
    for name, lines in story_node.play_all(node, group, at_once, loops_cluster.Player):
        tap.check(name, not lines, "\n".join(lines))


def play_with_two(tap, node, group):
    with loops_cluster.SecondNode(node) as second:
        loops_cluster.Player.second = second
        if group[0]["story"] != loops_cluster.TWO_NODES[0]:
            second.start_kubelet()
            nodes.wait_until(second.is_ready, 30, "the second node to be ready")
        play(tap, node, group, 1)
    node.server.request("DELETE", "/api/v1/nodes/n2")
    for pod in node.get("/api/v1/pods?fieldSelector=spec.nodeName%3Dn2").json["items"]:  # nobody else ends them
        meta = pod["metadata"]
        node.server.request("DELETE", f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}", {"gracePeriodSeconds": 0})


def main():
    tap = Tap()
    folder, why = stories.folder(), nodes.missing()
    if not folder or why:
        tap.skip("the stories of clusters", why or "the recordings (../shared/k8s-facts/stories) are not on this machine")
        tap.close()
    found = stories.load(folder, loops_cluster.TOPICS)
    for story in found:
        if reason := loops_cluster.UNPLAYED.get(story["story"]):
            tap.skip(story["story"], reason)
    groups = loops_cluster.groups([s for s in found if s["story"] not in loops_cluster.UNPLAYED])
    groups = [story_node.choose(group, short) for group, short in zip(groups, (SHORT_MS, SHORT_ALONE_MS, SHORT_ALONE_MS))]
    nodes.own_namespaces()
    with story_node.StoryNode(loops=True) as node:
        together, alone, two = groups
        play(tap, node, together, AT_ONCE)
        play(tap, node, alone, 1)
        if two:
            play_with_two(tap, node, two)
        if kept := os.environ.get("STORIES_LOG"):
            for part in ("kubelet", *node.loops):
                with open(os.path.join(node.folder, part + ".log")) as log, open(f"{kept}.{part}", "w") as f:
                    f.write(log.read())
    tap.close()


if __name__ == "__main__":
    main()
