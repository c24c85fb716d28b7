/* The first process of a pod: c8s-pod pause. */
#ifndef C8S_RUNTIME_PAUSE_H
#define C8S_RUNTIME_PAUSE_H

/* Returns only when it cannot work: the exit code. */
int pause_main(void);

#endif
