"""Recorded behaviour of Kubernetes' kubelet (pod stories) is played on a node of ours, and compared: see stories.py. Without the recordings there is
nothing to compare with. STORIES=all plays the long ones, too; STORIES=<pattern> those whose name matches."""
import os

import nodes
import stories
import story_node
from tap import Tap

SHORT_MS = 35000
AT_ONCE = 20


def main():
    tap = Tap()
    folder, why = stories.folder(), nodes.missing()
    if not folder or why:
        tap.skip("the stories of pods", why or "the recordings (../shared/k8s-facts/stories) are not on this machine")
        tap.close()
    found = stories.load(folder)
    for story in found:
        if reason := stories.UNPLAYED.get(story["story"]):
            tap.skip(story["story"], reason)
    chosen = story_node.choose([s for s in found if s["story"] not in stories.UNPLAYED], SHORT_MS)
    nodes.own_namespaces()
    with story_node.StoryNode() as node:
        for name, lines in story_node.play_all(node, chosen, AT_ONCE):
            tap.check(name, not lines, "\n".join(lines))
        if kept := os.environ.get("STORIES_LOG"):
            with open(kept, "w") as f:
                f.write(node.said())
    tap.close()


if __name__ == "__main__":
    main()
