/* c8s kubectl: the command line client, as build/kubectl. */
#include "kubectl/kubectl.h"

#include "cmd/cmd.h"
#include "net/crypto_part.h"

static int run(int argc, char **argv)
{
	crypto_part_use();
	return kubectl_main(argc, argv);
}

const struct command cmd_kubectl = {
	.name = "kubectl",
	.summary = "the command line client",
	.manual = "",
	.help_within = -1, /* it has its own */
	.run = run,
};
