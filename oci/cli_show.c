/* The commands that print: state, list, ps, events, features, spec. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/file.h"
#include "codec/atoms.h"
#include "codec/time.h"
#include "oci/cli.h"
#include "oci/oci_priv.h"
#include "oci/state.h"

/* ---- state and list ---- */

static struct val full_state(struct arena *a, const struct state *s, str owner)
{
	enum oci_status status = state_status(s);
	pid_t pid = status == OCI_STOPPED ? 0 : s->pid;

	return OBJECT(a, F(ociVersion, VAL_STR(s->version)), F(id, VAL_STR(s->id)), F(pid, val_of_int(pid)),
		      F(status, VAL_STR(str_of(state_status_name(status)))), F(bundle, VAL_STR(s->bundle)), F(rootfs, VAL_STR(s->rootfs)),
		      F(created, VAL_STR(s->created)), F(annotations, val_len(s->annotations) ? s->annotations : VAL_EMPTY),
		      F(owner, VAL_STR(owner)));
}

int cli_state(struct cli *c, struct err *err)
{
	struct state s;
	int r = state_open(c->root, c->argv[0], false, c->arena, &s, err);

	if (r < 0)
		return r;
	struct val v = full_state(c->arena, &s, STR(""));
	state_close(&s);
	return cli_print(v, 2, err);
}

/* The name of who made the container, from /etc/passwd alone: a static program loads no modules for names. */
static str owner_of(struct arena *a, const struct state *s)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(1 << 20);
	struct stat st;
	str line, rest, name, field;

	if (fstat(s->dir, &st) < 0 || file_read("/etc/passwd", &text, NULL) < 0)
		return STR("");
	str wanted = arena_printf(a, "%u", (unsigned)st.st_uid);
	for (rest = buf_str(&text); rest.n;) {
		str_cut(rest, '\n', &line, &rest);
		str_cut(line, ':', &name, &line);
		str_cut(line, ':', &field, &line);
		str_cut(line, ':', &field, &line);
		if (str_eq(field, wanted))
			return arena_str(a, name);
	}
	return arena_printf(a, "#" STR_FMT, STR_ARG(wanted));
}

/* In the columns of Go's tabwriter with a least width of 12 and 3 spaces between. */
static void print_table(struct val list)
{
	static const atom columns[] = { A_id, A_pid, A_status, A_bundle, A_created, A_owner };
	static const char *const titles[] = { "ID", "PID", "STATUS", "BUNDLE", "CREATED", "OWNER" };
	size_t width[ARRAY_LEN(columns)];
	char number[24];

	for (size_t k = 0; k < ARRAY_LEN(columns); k++) {
		width[k] = MAX(strlen(titles[k]) + 3, (size_t)12);
		VAL_EACH(v, list)
			width[k] = MAX(width[k], (size_t)val_member(*v, columns[k]).n + 3);
	}
	for (size_t k = 0; k < ARRAY_LEN(columns); k++)
		printf("%-*s", k + 1 < ARRAY_LEN(columns) ? (int)width[k] : 0, titles[k]);
	printf("\n");
	VAL_EACH(v, list) {
		for (size_t k = 0; k < ARRAY_LEN(columns); k++) {
			struct val cell = val_member(*v, columns[k]);
			snprintf(number, sizeof(number), "%lld", (long long)val_as_int(cell));
			str text = val_is(cell, VAL_INT) ? str_of(number) : val_as_str(cell);
			printf("%-*.*s", k + 1 < ARRAY_LEN(columns) ? (int)width[k] : 0, STR_ARG(text));
		}
		printf("\n");
	}
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return str_cmp(str_of((*a)->d_name), str_of((*b)->d_name));
}

static int list_states(struct cli *c, struct val *ret, struct err *err)
{
	struct val_builder list = val_builder(c->arena);
	struct dirent **names;
	int n = scandir(c->root, &names, NULL, by_name);

	if (n < 0 && errno != ENOENT)
		return err_sys(err, errno, "%s", c->root);
	for (int i = 0; i < n; i++) {
		struct state s;
		if (names[i]->d_name[0] != '.' && state_open(c->root, names[i]->d_name, false, c->arena, &s, NULL) == 0) {
			val_add_item(&list, full_state(c->arena, &s, owner_of(c->arena, &s)));
			state_close(&s);
		}
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	*ret = val_end_list(&list);
	return 0;
}

int cli_list(struct cli *c, struct err *err)
{
	str format = c->format ? str_of(c->format) : STR("table");
	struct val list;
	int r = list_states(c, &list, err);

	if (r < 0)
		return r;
	if (c->quiet) {
		VAL_EACH(v, list)
			printf(STR_FMT "\n", STR_ARG(val_str(*v, id)));
		return 0;
	}
	if (str_eq(format, STR("json")))
		return cli_print(val_len(list) ? list : VAL_NULL_VALUE, 0, err);
	if (!str_eq(format, STR("table")))
		return err_set(err, ERR_BAD_REQUEST, "invalid format option");
	print_table(list);
	return 0;
}

/* ---- ps ---- */

/* Lines of `ps` whose column PID is one of ours. */
static int filter_ps(str text, const pid_t *pids, size_t n, struct err *err)
{
	str line, field;
	int column = -1;
	bool title = true;

	while (text.n) {
		str_cut(text, '\n', &line, &text);
		str rest = str_trim(line);
		int64_t pid = -1;
		for (int at = 0; rest.n; at++) {
			str_cut(rest, ' ', &field, &rest);
			rest = str_trim(rest);
			if (title && str_eq(field, STR("PID")))
				column = at;
			if (!title && at == column)
				(void)str_to_i64(field, &pid);
		}
		if (title && column < 0)
			return err_set(err, ERR_INTERNAL, "couldn't find PID field in ps output");
		bool ours = title;
		for (size_t i = 0; i < n && !ours; i++)
			ours = pids[i] == pid;
		if (ours)
			printf(STR_FMT "\n", STR_ARG(line));
		title = false;
	}
	return 0;
}

static int run_ps(char **args, struct buf *ret, struct err *err)
{
	int out[2], status;
	char chunk[2048];
	ssize_t n;

	if (pipe2(out, O_CLOEXEC) < 0)
		return err_sys(err, errno, "pipe");
	pid_t pid = process_clone(0);
	if (pid == 0) {
		dup2(out[1], 1);
		execvp("ps", args);
		_exit(127);
	}
	int sys = errno;
	close(out[1]);
	while (pid > 0 && (n = read(out[0], chunk, sizeof(chunk))) > 0)
		buf_add(ret, str_span(chunk, (size_t)n));
	close(out[0]);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return err_sys(err, pid < 0 ? sys : errno, "ps");
	return status ? err_set(err, ERR_INTERNAL, "ps failed") : 0;
}

int cli_ps(struct cli *c, struct err *err)
{
	CLEANUP(cgroup_freep) struct cgroup *cgroup = NULL;
	CLEANUP(buf_done) struct buf text = BUF_INIT(64 << 20);
	struct state s;
	pid_t *pids;
	size_t n;
	int r;

	if ((r = state_open(c->root, c->argv[0], false, c->arena, &s, err)) < 0)
		return r;
	state_close(&s);
	if ((r = cgroup_open(s.cgroup.p, &cgroup, err)) < 0 || (r = cgroup_pids(cgroup, c->arena, &pids, &n, err)) < 0)
		return r;
	if (c->format && str_eq(str_of(c->format), STR("json"))) {
		struct val_builder list = val_builder(c->arena);
		for (size_t i = 0; i < n; i++)
			val_add_item(&list, val_of_int(pids[i]));
		return cli_print(val_end_list(&list), 0, err);
	}
	if (c->format && !str_eq(str_of(c->format), STR("table")))
		return err_set(err, ERR_BAD_REQUEST, "invalid format option");
	char *standard[] = { (char[]){ "ps" }, (char[]){ "-ef" }, NULL };
	c->argv[0] = standard[0];
	r = run_ps(c->argc > 1 ? c->argv : standard, &text, err);
	return r < 0 ? r : filter_ps(buf_str(&text), pids, n, err);
}

/* ---- events ---- */

static struct val number(uint64_t n) { return val_of_int(n > INT64_MAX ? INT64_MAX : (int64_t)n); }

static struct val stats_of(struct arena *a, const struct cgroup_stats *s)
{
	struct val cpu = OBJECT(a, F(usage, OBJECT(a, F(total, number(s->cpu_usage_ns)), F(kernel, number(s->cpu_system_ns)),
						   F(user, number(s->cpu_user_ns)))),
				F(throttling, OBJECT(a, F(periods, number(s->cpu_periods)), F(throttledPeriods, number(s->cpu_throttled_periods)),
						     F(throttledTime, number(s->cpu_throttled_ns)))));
	struct val memory = OBJECT(a, F(cache, number(s->memory_cache)),
				   F(usage, OBJECT(a, F(limit, number(s->memory_limit)), F(usage, number(s->memory_usage)), F(failcnt, val_of_int(0)))),
				   F(swap, OBJECT(a, F(limit, number(s->memory_swap_limit)), F(usage, number(s->memory_swap)),
						  F(failcnt, val_of_int(0)))),
				   F(raw, VAL_EMPTY_OBJECT));
	struct val pids = OBJECT(a, F(current, number(s->pids)), F(limit, s->pids_limit == UINT64_MAX ? VAL_EMPTY : number(s->pids_limit)));

	return OBJECT(a, F(cpu, cpu), F(memory, memory), F(pids, pids), F(blkio, VAL_EMPTY_OBJECT));
}

static int print_stats(struct cli *c, struct cgroup *cgroup, struct err *err)
{
	struct cgroup_stats s;
	int r = cgroup_stats(cgroup, &s, err);

	if (r < 0)
		return r;
	r = cli_print(OBJECT(c->arena, F(type, VAL_LIT("stats")), F(id, VAL_STR(str_of(c->argv[0]))), F(data, stats_of(c->arena, &s))), 0, err);
	fflush(stdout);
	return r;
}

static void tell_oom(struct cli *c, struct cgroup *cgroup, uint64_t *kills)
{
	struct cgroup_stats stats;

	if (cgroup_stats(cgroup, &stats, NULL) < 0 || stats.oom_kills <= *kills)
		return;
	*kills = stats.oom_kills;
	(void)cli_print(OBJECT(c->arena, F(type, VAL_LIT("oom")), F(id, VAL_STR(str_of(c->argv[0])))), 0, NULL);
	fflush(stdout);
}

static int follow(struct cli *c, struct cgroup *cgroup, const struct state *s, int interval_ms, struct err *err)
{
	enum { SETTLE_MS = 50 };
	CLEANUP(fd_closep) int oom = cgroup_oom_fd(cgroup, err);
	CLEANUP(fd_closep) int process = state_pidfd(s, err);
	struct cgroup_stats stats = { 0 };

	if (oom < 0 || process < 0)
		return oom < 0 ? oom : process;
	(void)cgroup_stats(cgroup, &stats, NULL);
	for (uint64_t kills = stats.oom_kills;;) {
		struct pollfd p[2] = { { process, POLLIN, 0 }, { oom, POLLIN | POLLPRI, 0 } };
		int n = poll(p, 2, interval_ms);
		int r = n == 0 ? print_stats(c, cgroup, err) : 0;
		uint64_t count;
		if (n > 0 && p[1].revents) {
			(void)!read(oom, &count, sizeof(count));
			/* v1 tells it before something is killed for it. */
			(void)poll(p, 1, SETTLE_MS);
		}
		tell_oom(c, cgroup, &kills);
		if (r < 0 || (n > 0 && p[0].revents))
			return r;
	}
}

int cli_events(struct cli *c, struct err *err)
{
	CLEANUP(cgroup_freep) struct cgroup *cgroup = NULL;
	int64_t interval = 5 * NS_PER_S;
	struct state s;
	int r;

	if (c->interval && ((r = duration_parse(str_of(c->interval), &interval, err)) < 0 || interval < NS_PER_MS))
		return r < 0 ? r : err_set(err, ERR_BAD_REQUEST, "duration interval must be greater than 0");
	if ((r = state_open(c->root, c->argv[0], false, c->arena, &s, err)) < 0)
		return r;
	if (state_status(&s) == OCI_STOPPED)
		r = err_set(err, ERR_CONFLICT, "container with id %s is not running", c->argv[0]);
	if (r == 0)
		r = cgroup_open(s.cgroup.p, &cgroup, err);
	if (r == 0)
		r = c->stats ? print_stats(c, cgroup, err) : follow(c, cgroup, &s, (int)MIN(interval / NS_PER_MS, INT64_C(86400000)), err);
	state_close(&s);
	return r;
}

/* ---- features ---- */

static struct val texts(struct arena *a, const char *const *text, size_t n)
{
	struct val_builder list = val_builder(a);

	for (size_t i = 0; i < n; i++)
		val_add_item(&list, VAL_STR(str_of(text[i])));
	return val_end_list(&list);
}

static struct val capability_names(struct arena *a)
{
	struct val_builder list = val_builder(a);
	const char *name;

	for (unsigned cap = 0; (name = spec_cap_name(cap)); cap++)
		val_add_item(&list, VAL_STR(str_of(name)));
	return val_end_list(&list);
}

static struct val switched(struct arena *a, bool on) { return OBJECT(a, F(enabled, val_of_bool(on))); }

int cli_features(struct cli *c, struct err *err)
{
	static const char *const hooks[] = { "prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop" };
	static const char *const namespaces[] = { "cgroup", "ipc", "mount", "network", "pid", "time", "user", "uts" };
	struct arena *a = c->arena;
	struct val cgroup = OBJECT(a, F(v1, val_of_bool(true)), F(v2, val_of_bool(true)), F(systemd, val_of_bool(false)),
				   F(systemdUser, val_of_bool(false)), F(rdma, val_of_bool(true)));
	struct val seccomp = OBJECT(a, F(enabled, val_of_bool(true)), F(actions, seccomp_actions(a)), F(operators, seccomp_operators(a)),
				    F(archs, seccomp_archs(a)), F(knownFlags, seccomp_flags(a)), F(supportedFlags, seccomp_flags(a)));
	struct val linux_part = OBJECT(a, F(namespaces, texts(a, namespaces, ARRAY_LEN(namespaces))), F(capabilities, capability_names(a)),
				       F(cgroup, cgroup), F(seccomp, seccomp), F(apparmor, switched(a, true)), F(selinux, switched(a, true)),
				       F(intelRdt, switched(a, false)), F(mountExtensions, OBJECT(a, F(idmap, switched(a, true)))),
				       F(netDevices, switched(a, false)));

	return cli_print(OBJECT(a, F(ociVersionMin, VAL_LIT("1.0.0")), F(ociVersionMax, VAL_LIT(OCI_VERSION)),
				F(hooks, texts(a, hooks, ARRAY_LEN(hooks))), F(mountOptions, mount_options(a)), F(linux, linux_part),
				F(annotations, VAL_EMPTY_OBJECT)),
			 4, err);
}

/* ---- spec ---- */

static const char example[] =
	"{\n"
	"\t\"ociVersion\": \"" OCI_VERSION "\",\n"
	"\t\"process\": {\n"
	"\t\t\"terminal\": true,\n"
	"\t\t\"user\": {\"uid\": 0, \"gid\": 0},\n"
	"\t\t\"args\": [\"sh\"],\n"
	"\t\t\"env\": [\"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\", \"TERM=xterm\"],\n"
	"\t\t\"cwd\": \"/\",\n"
	"\t\t\"capabilities\": {\n"
	"\t\t\t\"bounding\": [\"CAP_AUDIT_WRITE\", \"CAP_KILL\", \"CAP_NET_BIND_SERVICE\"],\n"
	"\t\t\t\"effective\": [\"CAP_AUDIT_WRITE\", \"CAP_KILL\", \"CAP_NET_BIND_SERVICE\"],\n"
	"\t\t\t\"permitted\": [\"CAP_AUDIT_WRITE\", \"CAP_KILL\", \"CAP_NET_BIND_SERVICE\"]\n"
	"\t\t},\n"
	"\t\t\"rlimits\": [{\"type\": \"RLIMIT_NOFILE\", \"hard\": 1024, \"soft\": 1024}],\n"
	"\t\t\"noNewPrivileges\": true\n"
	"\t},\n"
	"\t\"root\": {\"path\": \"rootfs\", \"readonly\": true},\n"
	"\t\"hostname\": \"runc\",\n"
	"\t\"mounts\": [\n"
	"\t\t{\"destination\": \"/proc\", \"type\": \"proc\", \"source\": \"proc\"},\n"
	"\t\t{\"destination\": \"/dev\", \"type\": \"tmpfs\", \"source\": \"tmpfs\", \"options\": [\"nosuid\", \"strictatime\", \"mode=755\", \"size=65536k\"]},\n"
	"\t\t{\"destination\": \"/dev/pts\", \"type\": \"devpts\", \"source\": \"devpts\", \"options\": [\"nosuid\", \"noexec\", \"newinstance\", \"ptmxmode=0666\", \"mode=0620\", \"gid=5\"]},\n"
	"\t\t{\"destination\": \"/dev/shm\", \"type\": \"tmpfs\", \"source\": \"shm\", \"options\": [\"nosuid\", \"noexec\", \"nodev\", \"mode=1777\", \"size=65536k\"]},\n"
	"\t\t{\"destination\": \"/dev/mqueue\", \"type\": \"mqueue\", \"source\": \"mqueue\", \"options\": [\"nosuid\", \"noexec\", \"nodev\"]},\n"
	"\t\t{\"destination\": \"/sys\", \"type\": \"sysfs\", \"source\": \"sysfs\", \"options\": [\"nosuid\", \"noexec\", \"nodev\", \"ro\"]},\n"
	"\t\t{\"destination\": \"/sys/fs/cgroup\", \"type\": \"cgroup\", \"source\": \"cgroup\", \"options\": [\"nosuid\", \"noexec\", \"nodev\", \"relatime\", \"ro\"]}\n"
	"\t],\n"
	"\t\"linux\": {\n"
	"\t\t\"resources\": {\"devices\": [{\"allow\": false, \"access\": \"rwm\"}]},\n"
	"\t\t\"namespaces\": [{\"type\": \"pid\"}, {\"type\": \"network\"}, {\"type\": \"ipc\"}, {\"type\": \"uts\"}, {\"type\": \"mount\"}, {\"type\": \"cgroup\"}],\n"
	"\t\t\"maskedPaths\": [\"/proc/acpi\", \"/proc/asound\", \"/proc/kcore\", \"/proc/keys\", \"/proc/latency_stats\", \"/proc/timer_list\", \"/proc/timer_stats\",\n"
	"\t\t\t\"/proc/sched_debug\", \"/sys/firmware\", \"/proc/scsi\"],\n"
	"\t\t\"readonlyPaths\": [\"/proc/bus\", \"/proc/fs\", \"/proc/irq\", \"/proc/sys\", \"/proc/sysrq-trigger\"]\n"
	"\t}\n"
	"}\n";

int cli_spec(struct cli *c, struct err *err)
{
	const char *path = arena_printf(c->arena, "%s/config.json", c->bundle ? c->bundle : ".").p;
	CLEANUP(fd_closep) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	if (fd < 0 && errno == EEXIST)
		return err_set(err, ERR_ALREADY_EXISTS, "File config.json exists. Remove it first");
	if (fd < 0 || write(fd, example, sizeof(example) - 1) < 0)
		return err_sys(err, errno, "%s", path);
	return 0;
}
