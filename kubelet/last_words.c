#include "kubelet/last_words.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "codec/atoms.h"
#include "runtime/logs.h"

/* As much as is read from the end of the file, and from the end of the log. */
enum { FILE_MAX = 4096, LOG_LINES_MAX = 80, LOG_TEXT_MAX = 2048 };

#define PATH_ANNOTATION STR("io.kubernetes.container.terminationMessagePath")
#define POLICY_ANNOTATION STR("io.kubernetes.container.terminationMessagePolicy")

/* The file is the container's: it may be anything by now, and reading must not wait for it. */
static str read_end(struct arena *a, const char *path)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char *text = arena_alloc(a, FILE_MAX, 1);
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? STR_NONE : arena_printf(a, "Error on reading termination log %s: %s", path, strerror(errno));
	bool plain = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
	ssize_t n = plain ? pread(fd, text, FILE_MAX, st.st_size > FILE_MAX ? st.st_size - FILE_MAX : 0) : -1;
	int error = plain ? errno : EINVAL;
	close(fd);
	if (n < 0)
		return arena_printf(a, "Error on reading termination log %s: %s", path, strerror(error));
	return str_span(text, (size_t)n);
}

static int keep_end(void *arg, enum logs_stream stream, str text, struct err *err)
{
	struct buf *b = arg;

	(void)stream, (void)err;
	buf_add(b, text);
	if (buf_str(b).n > 2 * LOG_TEXT_MAX) {
		CLEANUP(arena_done) struct arena scratch = ARENA_INIT;
		str end = arena_str(&scratch, str_skip(buf_str(b), buf_str(b).n - LOG_TEXT_MAX));
		buf_reset(b);
		buf_add(b, end);
	}
	return 0;
}

static str read_log(struct arena *a, str path)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(16 << 20);
	struct logs_options o = LOGS_OPTIONS_INIT;
	struct err err = ERR_INIT;

	o.tail = LOG_LINES_MAX;
	if (logs_read(arena_str(a, path).p, &o, &(struct logs_reader){ .write = keep_end, .arg = &b }, &err) < 0)
		return arena_printf(a, "Error on reading termination message from logs: %s", err.msg);
	str text = buf_str(&b);
	return arena_str(a, str_skip(text, text.n > LOG_TEXT_MAX ? text.n - LOG_TEXT_MAX : 0));
}

struct val last_words_add(struct arena *a, struct val status)
{
	struct val notes = val_get(status, annotations);
	str path = val_as_str(val_find(notes, PATH_ANNOTATION)), said = STR_NONE, message = val_str(status, message);
	bool logs = str_eq(val_as_str(val_find(notes, POLICY_ANNOTATION)), STR("FallbackToLogsOnError")) && val_int(status, exitCode);

	if (!str_eq(val_str(status, state), STR("CONTAINER_EXITED")))
		return status;
	if (path.n && *path.p != '/')
		path = arena_join(a, STR("/"), path);
	VAL_EACH(m, val_get(status, mounts))
		if (path.n && str_eq(val_str(*m, containerPath), path)) {
			said = read_end(a, arena_str(a, val_str(*m, hostPath)).p);
			break;
		}
	if (!said.n && logs)
		said = read_log(a, val_str(status, logPath));
	if (!said.n)
		return status;
	if (message.n)
		said = arena_printf(a, STR_FMT ": " STR_FMT, STR_ARG(message), STR_ARG(said));
	return val_with(a, status, VAL_STR(said), message);
}
