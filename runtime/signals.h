/* signals: their names, as images and CRI write them. */
#ifndef C8S_RUNTIME_SIGNALS_H
#define C8S_RUNTIME_SIGNALS_H

#include "base/str.h"

/* "SIGTERM", "TERM", "15", "RTMIN+3", "SIGRTMIN+3", "SIGRTMINPLUS3": the number; -1 for what is none. */
int signal_parse(str text);
/* CRI's name of a number, a constant; NULL: it has none. */
const char *signal_cri_name(int number);

#endif
