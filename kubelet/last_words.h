/* last_words: what a container says about its end: its termination message, from its file or from its log. */
#ifndef C8S_KUBELET_LAST_WORDS_H
#define C8S_KUBELET_LAST_WORDS_H

#include "codec/val.h"

/* (suspends) runtime.v1.ContainerStatus with the termination message behind its message, if it has ended and said something. */
struct val last_words_add(struct arena *a, struct val status);

#endif
