/* Views of pods for tests, written in a few words, and statuses as a few words. Not part of the program. */
#ifndef C8S_KUBELET_POD_FAKE_H
#define C8S_KUBELET_POD_FAKE_H

#include "kubelet/pod_view.h"

enum { FAKE_NOTES_MAX = 8 };

/* A core/v1.Pod "p" in "ns" of generation 1; spec is the JSON of spec. */
struct val fake_pod(struct arena *a, const char *spec);
/*
 * The newest first: "c:run#1 c:exit3#0" are two runs of container c, the older of which ended with code 3. States: run,
 * exit<code>, oom, made, lost. The annotations are as the kubelet writes them for the container's present spec; "c:run!#0" has
 * another hash.
 */
struct val fake_containers(struct arena *a, struct val pod, const char *text);
/* "ready#1 gone#0": attempts. "host#0" is ready in the network of the node, "bare#0" ready without an address. */
struct val fake_sandboxes(struct arena *a, const char *text);
/* "c=CrashLoopBackOff c+started c+ready c@15": why it waits, probes, and until which second. Returns how many. */
size_t fake_notes(struct arena *a, const char *text, struct container_note ret[FAKE_NOTES_MAX]);

/*
 * "Running | sandbox+ init+ ready-(ContainersNotReady: containers with unready status: [c]) containers- scheduled+ | c terminated
 * 3 Error last terminated 3 Error #1": phase with reason and message, conditions, statuses. A reason like that of the condition
 * before does not appear.
 */
str fake_show(struct arena *a, struct val status);

#endif
