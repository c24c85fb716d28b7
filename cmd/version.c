#include <stdio.h>

#include "cmd/cmd.h"

static int run(int argc, char **argv)
{
	(void)argv;
	if (argc > 1)
		return cmd_usage(&cmd_version, "no argument is expected");
	printf("c8s %s (Kubernetes %s)\n", C8S_VERSION, KUBERNETES_VERSION);
	return 0;
}

const struct command cmd_version = {
	.name = "version",
	.summary = "print the version",
	.manual = "Usage: c8s version\n\nPrints the version of c8s and of the Kubernetes API that it implements.\n",
	.run = run,
};
