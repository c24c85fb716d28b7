"""Recorded behaviour of Kubernetes' controllers and scheduler (stories) is played on a cluster of ours, and compared: see loops.py. Without the
recordings there is nothing to compare with. STORIES=all plays the long ones, too; STORIES=<pattern> those whose name matches."""
import os

import loops
import nodes
import stories
import story_node
from tap import Tap

SHORT_MS = 20000
AT_ONCE = 14


def main():
    tap = Tap()
    folder, why = stories.folder(), nodes.missing()
    if not folder or why:
        tap.skip("the stories of controllers", why or "the recordings (../shared/k8s-facts/stories) are not on this machine")
        tap.close()
    found = stories.load(folder, loops.TOPICS + loops.OF_PODS)
    for story in found:
        if reason := loops.UNPLAYED.get(story["story"]):
            tap.skip(story["story"], reason)
    chosen = story_node.choose([s for s in found if s["story"] not in loops.UNPLAYED], SHORT_MS)
    nodes.own_namespaces()
    with story_node.StoryNode(loops=True) as node:
        for name, lines in story_node.play_all(node, chosen, AT_ONCE, loops.Player):
            tap.check(name, not lines, "\n".join(lines))
        if kept := os.environ.get("STORIES_LOG"):
            for part in ("kubelet", *node.loops):
                with open(os.path.join(node.folder, part + ".log")) as log, open(f"{kept}.{part}", "w") as f:
                    f.write(log.read())
    tap.close()


if __name__ == "__main__":
    main()
