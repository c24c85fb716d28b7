/*
 * SELinux. Where the kernel has it and a policy is loaded, processes of containers and their files have labels: those that the policy has
 * for containers (lxc_contexts), changed by what the pod asks for, and with two categories that no other pod of this node has. So a
 * container reaches its own pod's files and no others, whatever else it may do. Labels of the root and of what is mounted for it are
 * options of the mount; volumes that CRI says so about are relabelled.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "base/random.h"
#include "codec/atoms.h"
#include "runtime/config_json.h"
#include "runtime/snapshot_priv.h"

enum { CONFIG_MAX = 1 << 20, LABEL_MAX = 4096, CATEGORIES = 1024 };

/* user:role:type[:level] */
struct label {
	str user, role, type, level;
};

bool config_selinux_on(void)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(LABEL_MAX);

	/* "kernel": no policy is loaded */
	return access("/sys/fs/selinux/enforce", F_OK) == 0 && file_read("/proc/self/attr/current", &b, NULL) == 0 &&
	       str_find(buf_str(&b), STR(":")) > 0;
}

static struct label label_of(str text)
{
	struct label l = { .user = text };

	(void)(str_cut(text, ':', &l.user, &text) && str_cut(text, ':', &l.role, &text) && str_cut(text, ':', &l.type, &l.level));
	return l;
}

static str label_text(struct arena *a, struct label l)
{
	return arena_printf(a, STR_FMT ":" STR_FMT ":" STR_FMT "%s" STR_FMT, STR_ARG(l.user), STR_ARG(l.role), STR_ARG(l.type),
			    l.level.n ? ":" : "", STR_ARG(l.level));
}

/* ---- the policy's labels ---- */

/* The value of NAME = value or NAME = "value" in a file of lines. */
static str find_value(str text, str name)
{
	for (str line, key, value; text.n;) {
		(void)str_cut(text, '\n', &line, &text);
		if (!str_cut(line, '=', &key, &value) || !str_eq(str_trim(key), name))
			continue;
		value = str_trim(value);
		if (value.n >= 2 && value.p[0] == '"' && value.p[value.n - 1] == '"')
			value = str_span(value.p + 1, value.n - 2);
		return value;
	}
	return STR_NONE;
}

static str read_text(struct arena *a, const char *path)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(CONFIG_MAX);

	return file_read(path, &b, NULL) < 0 ? STR_NONE : arena_str(a, buf_str(&b));
}

static bool is_valid(str label)
{
	CLEANUP(fd_closep) int fd = open("/sys/fs/selinux/context", O_RDWR | O_CLOEXEC);

	return fd >= 0 && write(fd, label.p, label.n) >= 0;
}

/* Whether there is a policy for containers, and its labels; else those that all have agreed on. */
static bool policy_labels(struct arena *a, struct label *ret_process, struct label *ret_files)
{
	str text = read_text(a, "/usr/share/containers/selinux/contexts");
	str type = find_value(read_text(a, "/etc/selinux/config"), STR("SELINUXTYPE"));

	if (!text.n && type.n && str_find(type, STR("/")) < 0)
		text = read_text(a, runtime_text(a, "/etc/selinux/" STR_FMT "/contexts/lxc_contexts", STR_ARG(type)));
	str process = find_value(text, STR("process")), files = find_value(text, STR("file"));
	bool found = process.n && files.n && is_valid(process) && is_valid(files);
	*ret_process = label_of(found ? process : STR("system_u:system_r:container_t:s0"));
	*ret_files = label_of(found ? files : STR("system_u:object_r:container_file_t:s0"));
	return found;
}

/* ---- levels ---- */

static bool skip_category(str *text)
{
	size_t n = 1;

	if (!str_starts(*text, STR("c")))
		return false;
	while (n < text->n && n <= 4 && text->p[n] >= '0' && text->p[n] <= '9')
		n++;
	*text = str_skip(*text, n);
	return n > 1;
}

static bool skip_sensitivity(str *text)
{
	bool ok = text->n >= 2 && text->p[0] == 's' && text->p[1] >= '0' && text->p[1] <= '9';

	*text = str_skip(*text, ok ? 2 : 0);
	return ok;
}

static bool skip_word(str *text, str word)
{
	bool ok = str_starts(*text, word);

	*text = str_skip(*text, ok ? word.n : 0);
	return ok;
}

bool config_selinux_level_ok(str level)
{
	if (!skip_sensitivity(&level) || (skip_word(&level, STR("-")) && !skip_sensitivity(&level)))
		return false;
	if (!level.n)
		return true;
	if (!skip_word(&level, STR(":")))
		return false;
	do {
		if (!skip_category(&level) || (skip_word(&level, STR(".")) && !skip_category(&level)))
			return false;
	} while (skip_word(&level, STR(",")));
	return !level.n;
}

static bool is_taken(const struct runtime *r, str level)
{
	LIST_EACH(struct sandbox, s, &r->sandboxes, link)
		if (str_eq(val_str(sandbox_security(s), selinuxOptions, level), level))
			return true;
	return false;
}

/* One that is being made at the same time may have the same by a chance of one in half a million. */
struct val config_selinux_pod(struct runtime *r, struct arena *a, struct val config)
{
	enum { TRIES = 1000 };
	struct val options = val_get(config, linux, securityContext, selinuxOptions);
	struct label process, files;
	str level = STR_NONE;

	if (!config_selinux_on() || val_str(options, level).n)
		return config;
	bool found = policy_labels(a, &process, &files);
	if (!process.level.n || (!found && val_is_nil(options)))
		return config;
	for (int i = 0; i < TRIES && (!level.n || is_taken(r, level)); i++) {
		uint64_t x = random_below(CATEGORIES), y = random_below(CATEGORIES - 1);
		y += y >= x;
		level = arena_printf(a, "s0:c%u,c%u", (unsigned)MIN(x, y), (unsigned)MAX(x, y));
	}
	return val_with(a, config, VAL_STR(level), linux, securityContext, selinuxOptions, level);
}

/* ---- labels of a container ---- */

/* What it asks for; without a level, its pod's. */
static str option(struct val own, struct val pod, atom name)
{
	str text = val_as_str(val_member(val_is_nil(own) ? pod : own, name));

	return text.n || name != A_level ? text : val_as_str(val_member(pod, name));
}

/* It becomes part of a mount's options, too, where other signs would have a meaning. */
static int change(str *part, str wanted, struct err *err)
{
	for (size_t i = 0; i < wanted.n; i++) {
		char c = wanted.p[i];
		if (!isalnum((unsigned char)c) && c != '_' && c != '-' && c != '.')
			return err_set(err, ERR_INTERNAL, "\"" STR_FMT "\" cannot be a part of an SELinux label", STR_ARG(wanted));
	}
	*part = wanted.n ? wanted : *part;
	return 0;
}

int config_selinux(struct arena *a, struct val own, struct val pod, struct config_labels *ret, struct err *err)
{
	struct label process, files;
	str level = option(own, pod, A_level), user = option(own, pod, A_user), role = option(own, pod, A_role), type = option(own, pod, A_type);
	int r;

	*ret = (struct config_labels){ STR_NONE, STR_NONE };
	if (level.n && !config_selinux_level_ok(level))
		return err_set(err, ERR_INTERNAL, "the format of 'level' \"" STR_FMT "\" is not correct", STR_ARG(level));
	if (!config_selinux_on())
		return 0;
	bool found = policy_labels(a, &process, &files), asked = user.n || role.n || type.n || level.n;
	if ((r = change(&process.user, user, err)) < 0 || (r = change(&files.user, user, err)) < 0 ||
	    (r = change(&process.role, role, err)) < 0 || (r = change(&process.type, type, err)) < 0)
		return r;
	process.level = level.n ? level : process.level;
	files.level = level.n ? level : files.level;
	/* A policy that knows nothing of containers: they are as without one. */
	if (asked || found)
		*ret = (struct config_labels){ label_text(a, process), label_text(a, files) };
	return 0;
}

/* ---- files that are there ---- */

/* What a system cannot live without: a mistake there is no pod's to make. */
static bool is_of_system(str path)
{
	static const char *const paths[] = {
		"/", "/bin", "/boot", "/dev", "/etc", "/etc/passwd", "/etc/pki", "/etc/shadow", "/home", "/lib", "/lib64", "/media", "/opt",
		"/proc", "/root", "/run", "/sbin", "/srv", "/sys", "/tmp", "/usr", "/var", "/var/lib", "/var/log",
	};

	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		if (str_eq(path, str_of(paths[i])))
			return true;
	return false;
}

int config_selinux_relabel(struct arena *a, str path, str label, struct err *err)
{
	if (!label.n)
		return 0;
	if (is_of_system(path_clean(a, path)))
		return err_set(err, ERR_INTERNAL, "relabel \"" STR_FMT "\" with \"" STR_FMT "\" failed: SELinux relabeling of " STR_FMT
			       " is not allowed", STR_ARG(path), STR_ARG(label), STR_ARG(path));
	CLEANUP(fd_closep) int top = open(arena_str(a, path).p, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	int r = top < 0 ? err_sys(err, errno, "open") : snapshot_label(top, arena_str(a, label).p, err);
	return r < 0 ? err_wrap(err, r, "relabel \"" STR_FMT "\" with \"" STR_FMT "\" failed", STR_ARG(path), STR_ARG(label)) : 0;
}
