/* c8s certs: the certificates of a data directory, and until when they are good. */
#include <stdio.h>

#include "apiserver/pki.h"
#include "cmd/cmd.h"

static int run(int argc, char **argv)
{
	static const struct option_spec specs[] = { { 0, "data-dir", OPTION_VALUE }, { 0 } };
	struct options o = { &cmd_certs, argc, argv, 0, NULL };
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);
	const char *dir = "/var/lib/c8s";
	struct err err = ERR_INIT;
	int found;

	while ((found = options_next(&o, specs)) != OPTION_END) {
		if (found == OPTION_ARGUMENT)
			return cmd_usage(&cmd_certs, "unexpected argument '%s'; a directory is given with --data-dir", o.value);
		if (found < 0)
			return 2;
		dir = o.value;
	}
	if (pki_show(dir, &b, &err) < 0)
		return cmd_fail(&cmd_certs, &err);
	fputs(b.p, stdout);
	return 0;
}

const struct command cmd_certs = {
	.name = "certs",
	.summary = "show certificates and until when they are valid",
	.manual =
		"Usage: c8s certs [--data-dir DIR]\n"
		"\n"
		"Shows the certificates of DIR/pki (default /var/lib/c8s): what each is for, until when it is valid, and from when on it\n"
		"is going to be renewed. The API server renews them by itself, without a restart.\n"
		"\n"
		"Exit code: 0 success, 1 there are none or they cannot be read, 2 wrong usage.\n",
	.run = run,
};
