#include "cni/ipam.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "cni/result.h"
#include "codec/atoms.h"
#include "codec/json.h"

enum { ANSWER_MAX = 1 << 20, QUOTED_MAX = 200 };

extern char **environ;

static str type_of(const struct plugin *p) { return val_str(p->config, ipam, type); }

bool ipam_used(const struct plugin *p) { return type_of(p).n > 0; }

/* ---- finding ---- */

static bool is_own_program(const struct stat *found)
{
	struct stat own;
	return stat("/proc/self/exe", &own) == 0 && own.st_dev == found->st_dev && own.st_ino == found->st_ino;
}

/* The program's path in the arena, or NULL with one of our own in *ret_ops. */
static int find(struct plugin *p, const char **ret_program, const struct plugin_ops **ret_ops, struct err *err)
{
	str type = type_of(p), rest = str_of(p->path), folder;
	struct stat st;

	*ret_program = NULL;
	*ret_ops = plugin_find(type);
	if (str_chr(type, '/') >= 0)
		return plugin_fail(p, CNI_INVALID_CONFIG, err, "invalid plugin name: " STR_FMT, STR_ARG(type));
	while (rest.n) {
		(void)str_cut(rest, ':', &folder, &rest);
		const char *path = arena_printf(p->arena, STR_FMT "/" STR_FMT, STR_ARG(folder), STR_ARG(type)).p;
		if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
			continue;
		if (!*ret_ops || !is_own_program(&st))
			*ret_program = path;
		return 0;
	}
	if (!*ret_ops)
		return plugin_fail(p, CNI_INVALID_CONFIG, err, "failed to find plugin \"" STR_FMT "\" in path [%s]",
				   STR_ARG(type), p->path);
	return 0;
}

/* ---- a program ---- */

/* To its end, or until the buffer overflows. */
static void read_all(int fd, struct buf *b)
{
	for (;;) {
		char *room = buf_reserve(b, 4096);
		ssize_t n = room ? read(fd, room, 4096) : 0;
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		buf_commit(b, (size_t)n);
	}
}

/* The same text on every standard input; without a second process that would have to feed it. */
static int input_of(str text, struct err *err)
{
	int fd = memfd_create("cni", MFD_CLOEXEC);

	if (fd < 0 || write(fd, text.p, text.n) != (ssize_t)text.n || lseek(fd, 0, SEEK_SET) < 0) {
		int sys = errno;
		fd_closep(&fd);
		return err_sys(err, sys, "cannot prepare the input of a plugin");
	}
	return fd;
}

/* Runs it to its end: its exit code (128 + signal), and what it wrote. */
static int execute(struct plugin *p, const char *program, struct buf *out, struct err *err)
{
	char *argv[] = { (char *)(uintptr_t)program, NULL };
	int pipes[2], status, sys;
	posix_spawn_file_actions_t actions;
	pid_t pid;

	CLEANUP(fd_closep) int input = input_of(p->text, err);
	if (input < 0)
		return input;
	if (pipe2(pipes, O_CLOEXEC) < 0)
		return err_sys(err, errno, "cannot make a pipe");
	CLEANUP(fd_closep) int from = pipes[0];
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
	(void)posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
	sys = posix_spawn(&pid, program, &actions, NULL, argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	close(pipes[1]);
	if (sys)
		return err_sys(err, sys, "cannot run %s", program);
	read_all(from, out);
	/* It would wait for ever for somebody to read the rest. */
	if (out->overflow)
		(void)kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run_program(struct plugin *p, const char *program, const char *command, struct val *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(ANSWER_MAX), quoted = BUF_INIT(8 * QUOTED_MAX);
	struct val answer = VAL_EMPTY;

	if (setenv("CNI_COMMAND", command, 1) < 0)
		return err_sys(err, errno, "CNI_COMMAND");
	int code = execute(p, program, &out, err);
	(void)setenv("CNI_COMMAND", p->command, 1);
	if (code < 0)
		return code;
	if (out.overflow)
		return err_set(err, ERR_TOO_LARGE, "the answer of plugin \"" STR_FMT "\" is larger than %d bytes",
			       STR_ARG(type_of(p)), ANSWER_MAX);
	str text = arena_str(p->arena, buf_str(&out));
	bool readable = text.n && json_decode(p->arena, text, &(struct json_decode_options){ 0 }, &answer, NULL) == 0;
	if (code) {
		str message = val_str(answer, msg), details = val_str(answer, details);
		if (!readable || !message.n)
			return err_set(err, ERR_INTERNAL, "plugin \"" STR_FMT "\" failed with exit code %d",
				       STR_ARG(type_of(p)), code);
		p->code = (enum cni_code)val_int(answer, code);
		return err_set(err, ERR_INTERNAL, STR_FMT "%s" STR_FMT, STR_ARG(message), details.n ? "; " : "", STR_ARG(details));
	}
	if (!ret)
		return 0;
	if (!readable) {
		buf_add_quoted(&quoted, str_head(text, QUOTED_MAX));
		return err_set(err, ERR_INTERNAL, "plugin \"" STR_FMT "\" gave no result in JSON, but %s", STR_ARG(type_of(p)),
			       text.n ? quoted.p : "nothing");
	}
	return result_convert(p->arena, answer, p->version, STR(CNI_VERSION), ret, err);
}

/* ---- commands ---- */

int ipam_add(struct plugin *p, struct val *ret, struct err *err)
{
	const struct plugin_ops *ops;
	const char *program;
	int r = find(p, &program, &ops, err);

	if (r < 0 || (r = program ? run_program(p, program, "ADD", ret, err) : ops->add(p, ret, err)) < 0)
		return r;
	if (val_len(val_get(*ret, ips)))
		return 0;
	(void)ipam_del(p, NULL);
	return err_set(err, ERR_INVALID, "IPAM plugin returned missing IP config");
}

static int call(struct plugin *p, const char *command, size_t step, struct err *err)
{
	const struct plugin_ops *ops;
	const char *program;
	int r = find(p, &program, &ops, err);

	if (r < 0)
		return r;
	if (program)
		return run_program(p, program, command, NULL, err);
	int (*run)(struct plugin *, struct err *);
	memcpy(&run, (const char *)ops + step, sizeof(run));
	return run ? run(p, err) : 0;
}

int ipam_del(struct plugin *p, struct err *err) { return call(p, "DEL", offsetof(struct plugin_ops, del), err); }
int ipam_check(struct plugin *p, struct err *err) { return call(p, "CHECK", offsetof(struct plugin_ops, check), err); }
int ipam_status(struct plugin *p, struct err *err) { return call(p, "STATUS", offsetof(struct plugin_ops, status), err); }
int ipam_gc(struct plugin *p, struct err *err) { return call(p, "GC", offsetof(struct plugin_ops, gc), err); }
