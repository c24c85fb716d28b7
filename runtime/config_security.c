/* Capabilities, seccomp; profiles. */
#include <ctype.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "oci/seccomp.h"
#include "runtime/config_json.h"

enum { STATUS_MAX = 64 << 10, PROFILE_MAX = 4 << 20 };

/* ---- capabilities ---- */

/* By their numbers. */
static const char *const names[] = {
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_SETGID", "CAP_SETUID",
	"CAP_SETPCAP", "CAP_LINUX_IMMUTABLE", "CAP_NET_BIND_SERVICE", "CAP_NET_BROADCAST", "CAP_NET_ADMIN", "CAP_NET_RAW",
	"CAP_IPC_LOCK", "CAP_IPC_OWNER", "CAP_SYS_MODULE", "CAP_SYS_RAWIO", "CAP_SYS_CHROOT", "CAP_SYS_PTRACE", "CAP_SYS_PACCT",
	"CAP_SYS_ADMIN", "CAP_SYS_BOOT", "CAP_SYS_NICE", "CAP_SYS_RESOURCE", "CAP_SYS_TIME", "CAP_SYS_TTY_CONFIG", "CAP_MKNOD",
	"CAP_LEASE", "CAP_AUDIT_WRITE", "CAP_AUDIT_CONTROL", "CAP_SETFCAP", "CAP_MAC_OVERRIDE", "CAP_MAC_ADMIN", "CAP_SYSLOG",
	"CAP_WAKE_ALARM", "CAP_BLOCK_SUSPEND", "CAP_AUDIT_READ", "CAP_PERFMON", "CAP_BPF", "CAP_CHECKPOINT_RESTORE",
};

#define BIT(n) (UINT64_C(1) << (n))
/* What a container has unless it is told otherwise: containerd's set. */
static const uint64_t by_default = BIT(0) | BIT(1) | BIT(4) | BIT(3) | BIT(27) | BIT(13) | BIT(6) | BIT(7) | BIT(31) | BIT(8) |
				   BIT(10) | BIT(18) | BIT(5) | BIT(29);

/* "ALL" is all that we ourselves have. */
static uint64_t own(void)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(STATUS_MAX);

	if (file_read("/proc/self/status", &b, NULL) < 0)
		return by_default;
	const char *at = strstr(b.p, "CapEff:");
	return at ? strtoull(at + strlen("CapEff:"), NULL, 16) : by_default;
}

static bool is_all(str name) { return name.n == 3 && strncasecmp(name.p, "ALL", 3) == 0; }

/* CRI writes them without CAP_. One that nobody knows changes nothing. */
static uint64_t bit_of(str name)
{
	if (name.n >= 4 && strncasecmp(name.p, "CAP_", 4) == 0)
		name = str_skip(name, 4);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strlen(names[i]) == name.n + 4 && strncasecmp(names[i] + 4, name.p, name.n) == 0)
			return BIT(i);
	return 0;
}

static bool list_has_all(struct val list)
{
	VAL_EACH(item, list)
		if (is_all(val_as_str(*item)))
			return true;
	return false;
}

static uint64_t bits_of(struct val list)
{
	uint64_t bits = 0;

	VAL_EACH(item, list)
		bits |= bit_of(val_as_str(*item));
	return bits;
}

static struct val list_of(struct arena *a, uint64_t bits)
{
	struct val_builder b = val_builder(a);

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (bits & BIT(i))
			val_add_item(&b, VAL_STR(str_of(names[i])));
	return val_end_list(&b);
}

struct val config_capabilities(struct arena *a, struct val security)
{
	struct val change = val_get(security, capabilities);
	struct val add = val_get(change, addCapabilities), drop = val_get(change, dropCapabilities);
	struct val more = val_get(change, addAmbientCapabilities);
	uint64_t bits = by_default;

	if (val_bool(security, privileged)) {
		bits = own();
	} else {
		if (list_has_all(add))
			bits = own();
		if (list_has_all(drop))
			bits = 0;
		bits = (bits | bits_of(add)) & ~bits_of(drop);
	}
	struct val list = list_of(a, bits | bits_of(more));
	return OBJECT(a, F(bounding, list), F(effective, list), F(permitted, list),
		      F(inheritable, val_len(more) ? list_of(a, bits_of(more)) : VAL_EMPTY),
		      F(ambient, val_len(more) ? list_of(a, bits_of(more)) : VAL_EMPTY));
}

/* ---- profiles ---- */

int config_profile_of(struct val now, str old, struct config_profile *ret, struct err *err)
{
	*ret = (struct config_profile){ PROFILE_NONE, STR_NONE };
	if (!val_is_nil(now)) {
		ret->ref = val_str(now, localhostRef);
		ret->kind = runtime_is(val_get(now, profileType), "Unconfined") ? PROFILE_UNCONFINED :
			    runtime_is(val_get(now, profileType), "Localhost")	? PROFILE_LOCALHOST :
										  PROFILE_DEFAULT;
		return 0;
	}
	if (str_eq(old, STR("runtime/default")) || str_eq(old, STR("docker/default")))
		ret->kind = PROFILE_DEFAULT;
	else if (str_eq(old, STR("unconfined")))
		ret->kind = PROFILE_UNCONFINED;
	else if (str_starts(old, STR("localhost/")))
		*ret = (struct config_profile){ PROFILE_LOCALHOST, str_skip(old, strlen("localhost/")) };
	else if (old.n)
		return err_set(err, ERR_INTERNAL, "invalid security profile \"" STR_FMT "\"", STR_ARG(old));
	return 0;
}

static int load_seccomp(struct arena *a, str path, struct val *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(PROFILE_MAX);
	struct json_decode_options free_tree = { 0 };

	if (str_starts(path, STR("localhost/")))
		path = str_skip(path, strlen("localhost/"));
	int r = file_read(arena_str(a, path).p, &b, err);
	if (r < 0)
		return err_wrap(err, -ERR_INTERNAL, "cannot load seccomp profile \"" STR_FMT "\"", STR_ARG(path));
	if (json_decode(a, arena_str(a, buf_str(&b)), &free_tree, ret, err) < 0)
		return err_wrap(err, -ERR_INTERNAL, "decoding seccomp profile failed \"" STR_FMT "\"", STR_ARG(path));
	return 0;
}

int config_seccomp(struct arena *a, struct val security, struct val capabilities, struct val *ret, struct err *err)
{
	struct config_profile p;
	int r = config_profile_of(val_get(security, seccomp), val_str(security, seccompProfilePath), &p, err);

	*ret = VAL_EMPTY;
	if (r < 0 || val_bool(security, privileged))
		return r;
	if (p.kind != PROFILE_LOCALHOST && p.ref.n)
		return err_set(err, ERR_INTERNAL, "seccomp config invalid LocalhostRef must only be set if ProfileType is Localhost");
	if (p.kind == PROFILE_LOCALHOST)
		return load_seccomp(a, p.ref, ret, err);
	if (p.kind == PROFILE_DEFAULT)
		*ret = seccomp_default(a, val_get(capabilities, bounding));
	return 0;
}
