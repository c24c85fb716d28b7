/*
 * pause: the first process of a pod. It holds the pod's namespaces, does nothing, and buries the dead: with a shared PID namespace,
 * orphans become its children.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/defs.h"
#include "runtime/pause.h"

static void leave(int signal)
{
	(void)signal;
	_exit(0);
}

static void bury(int signal)
{
	(void)signal;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

int pause_main(void)
{
	struct sigaction stop = { .sa_handler = leave }, child = { .sa_handler = bury, .sa_flags = SA_NOCLDSTOP | SA_RESTART };
	if (sigaction(SIGINT, &stop, NULL) < 0 || sigaction(SIGTERM, &stop, NULL) < 0 || sigaction(SIGCHLD, &child, NULL) < 0)
		return 1;
	for (;;)
		(void)pause();
}
