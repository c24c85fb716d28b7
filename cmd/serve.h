/* Programs that run until they are told to stop. */
#ifndef C8S_CMD_SERVE_H
#define C8S_CMD_SERVE_H

#include "cmd/cmd.h"

/* The environment variable with the pid of who has started us and looks after us: when that process is gone, we stop as by SIGTERM. */
#define SERVE_SUPERVISOR "C8S_SUPERVISOR"

/*
 * Runs fn on a fiber of a new loop. The first SIGTERM or SIGINT cancels that fiber, and 0 is returned once it has cleaned up; the
 * second one ends the process. SIGUSR2 shows what the fibers are doing.
 */
int cmd_serve(const char *name, int (*fn)(void *arg, struct err *err), void *arg, struct err *err);
/* What --logging-format and -v say. 0, or 2 (the exit code) after a message. */
int cmd_set_logging(const struct command *c, const char *format, int64_t verbosity);

#endif
