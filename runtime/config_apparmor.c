/*
 * AppArmor. A container that asks for nothing, or for the runtime's default, gets a profile of ours. The kernel takes profiles translated:
 * apparmor_parser does that and loads it, once after each start (one of another version may be there) and whenever it is gone. As with
 * containerd, a node without apparmor_parser is one without AppArmor.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/process.h"
#include "codec/atoms.h"
#include "runtime/config_json.h"

enum { PROFILES_MAX = 16 << 20, TEXT_MAX = 64 << 10, LOAD_MS = 60000 };

#define PARSER "/sbin/apparmor_parser"
#define DEFAULT_PROFILE "c8s-default"

static bool is_on(void)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(64);
	const char *container = getenv("container");

	return (!container || !*container) && access("/sys/kernel/security/apparmor", F_OK) == 0 && access(PARSER, F_OK) == 0 &&
	       file_read("/sys/module/apparmor/parameters/enabled", &b, NULL) == 0 && str_starts(buf_str(&b), STR("Y"));
}

static bool is_loaded(str profile)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(PROFILES_MAX);
	str text, line;

	if (file_read("/sys/kernel/security/apparmor/profiles", &b, NULL) < 0)
		return false;
	text = buf_str(&b);
	while (text.n) {
		(void)str_cut(text, '\n', &line, &text);
		if (str_starts(line, profile) && str_starts(str_skip(line, profile.n), STR(" (")))
			return true;
	}
	return false;
}

/* ---- the default ---- */

void config_apparmor_text(struct buf *out, bool abi, str runtime)
{
	static const char *const rules[] = {
		"network", "capability", "file", "umount", "deny mount",
		"signal (receive) peer=unconfined", "signal (send, receive) peer=" DEFAULT_PROFILE,
		"ptrace (trace, tracedby, read, readby) peer=" DEFAULT_PROFILE,
		/* of /proc: a process' own, and of the node's settings what an IPC namespace has of its own */
		"deny /proc/* w", "deny /proc/[^0-9s]*/** w", "deny /proc/s[^y]*/** w", "deny /proc/sy[^s]*/** w", "deny /proc/sys?*/** w",
		"deny /proc/sys/[^k]** w", "deny /proc/sys/k[^e]** w", "deny /proc/sys/kernel/{s,sh,[^s]**,s[^h]**,sh[^m]**} w",
		"deny /proc/sysrq-trigger rwklx", "deny /proc/kcore rwklx",
		/* of /sys: control groups */
		"deny /sys/[^f]** wklx", "deny /sys/f[^s]** wklx", "deny /sys/fs/[^c]** wklx", "deny /sys/fs/c[^g]** wklx",
		"deny /sys/firmware/** rwklx", "deny /sys/kernel/security/** rwklx", "deny /sys/devices/virtual/powercap/** rwklx",
	};

	/* What newer kernels can refuse besides this is free as long as the profile says that it does not know them. */
	if (abi)
		buf_add(out, STR("abi <abi/3.0>,\n"));
	buf_add(out, STR("profile " DEFAULT_PROFILE " flags=(attach_disconnected, mediate_deleted) {\n"));
	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		buf_addf(out, "  %s,\n", rules[i]);
	if (runtime.n && !str_eq(runtime, STR("unconfined")))
		buf_addf(out, "  signal (receive) peer=\"" STR_FMT "\",\n", STR_ARG(runtime));
	buf_add(out, STR("}\n"));
}

/* "NAME (enforce)": the profile that we ourselves have; "" is none. */
static str own_profile(struct buf *b)
{
	str name, rest;

	if (file_read("/proc/self/attr/current", b, NULL) < 0)
		return STR_NONE;
	(void)str_cut(str_trim(buf_str(b)), ' ', &name, &rest);
	return name;
}

static int load(struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(TEXT_MAX), own = BUF_INIT(4096);
	CLEANUP(process_output_done) struct process_output output = { 0 };
	static const char *const argv[] = { PARSER, "-Kr", NULL };
	DEADLINE_SCOPE(LOAD_MS);

	config_apparmor_text(&text, access("/etc/apparmor.d/abi/3.0", F_OK) == 0, own_profile(&own));
	int r = process_run(&(struct process_spec){ .argv = argv, .group = true }, buf_str(&text), TEXT_MAX, &output, err);
	if (r == 0 && output.status.exit_code)
		r = err_set(err, ERR_INTERNAL, "parser error(\"" STR_FMT "\"): exit status %d", STR_ARG(str_trim(buf_str(&output.err))),
			    output.status.exit_code);
	return r < 0 ? err_wrap(err, r, "load apparmor profile " DEFAULT_PROFILE) : 0;
}

int config_apparmor_load(struct runtime *r, struct val security, struct err *err)
{
	struct config_profile p;
	int code = config_profile_of(val_get(security, apparmor), val_str(security, apparmorProfile), &p, NULL);

	/* What is wrong with it is told with the rest of the configuration. */
	if (code < 0 || val_bool(security, privileged) || (p.kind != PROFILE_NONE && p.kind != PROFILE_DEFAULT) || !is_on())
		return 0;
	if (r->apparmor_loaded && is_loaded(STR(DEFAULT_PROFILE)))
		return 0;
	if ((code = load(err)) < 0)
		return code;
	r->apparmor_loaded = true;
	return 0;
}

/* ---- which one ---- */

static int profile(struct val security, struct val *ret, struct err *err)
{
	struct config_profile p;
	int r = config_profile_of(val_get(security, apparmor), val_str(security, apparmorProfile), &p, err);

	if (r < 0)
		return r;
	if (!is_on())
		return p.kind == PROFILE_NONE || p.kind == PROFILE_UNCONFINED ? 0 : err_set(err, ERR_INTERNAL, "apparmor is not supported");
	if (p.kind != PROFILE_LOCALHOST && p.ref.n)
		return err_set(err, ERR_INTERNAL, "apparmor config invalid LocalhostRef must only be set if ProfileType is Localhost");
	if (p.kind == PROFILE_LOCALHOST) {
		if (str_starts(p.ref, STR("localhost/")))
			p.ref = str_skip(p.ref, strlen("localhost/"));
		if (!p.ref.n)
			return err_set(err, ERR_INTERNAL, "nil apparmor profile is not supported");
		if (!is_loaded(p.ref))
			return err_set(err, ERR_INTERNAL, "apparmor profile not found " STR_FMT, STR_ARG(p.ref));
		*ret = VAL_STR(p.ref);
	} else if (p.kind != PROFILE_UNCONFINED && !val_bool(security, privileged)) {
		*ret = VAL_LIT(DEFAULT_PROFILE);
	}
	return 0;
}

int config_apparmor(struct val security, struct val *ret_profile, struct err *err)
{
	*ret_profile = VAL_EMPTY;
	int r = profile(security, ret_profile, err);

	return r < 0 ? err_wrap(err, r, "failed to generate apparmor spec opts") : 0;
}
