/*
 * c8s-pod: what starts once per pod or per call, small and static. Called by the name of one of its parts (a link to the program),
 * or with that name as its first argument, it is that part.
 */
#include <stdio.h>

#include "base/str.h"
#include "cni/cni.h"
#include "oci/oci.h"
#include "runtime/monitor.h"
#include "runtime/pause.h"

static int run_pause(int argc, char **argv)
{
	(void)argc, (void)argv;
	return pause_main();
}

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} parts[] = {
	{ "monitor", monitor_main },
	{ "pause", run_pause },
	{ "runc", oci_main },
};

/* Its exit code; -1: there is no such part. */
static int run(const char *name, int argc, char **argv)
{
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (str_eq(str_of(name), str_of(parts[i].name)))
			return parts[i].run(argc, argv);
	return cni_plugin_main(name);
}

int main(int argc, char **argv)
{
	const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
	int code = argc > 0 ? run(slash ? slash + 1 : argv[0], argc, argv) : -1;
	if (code < 0 && argc > 1)
		code = run(argv[1], argc - 1, argv + 1);
	if (code >= 0)
		return code;
	fprintf(stderr, "c8s-pod: it is called by c8s, with the name of a part: runc, monitor, pause or a CNI plugin\n");
	return 2;
}
