/* /debug/...: for whoever looks into a server that misbehaves; only with --profiling. */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "apiserver/documents_priv.h"
#include "base/loop.h"

/* The dump is written to a descriptor: memory that looks like a file takes it. */
static int fibers(struct request *q, struct err *err)
{
	int fd = memfd_create("fibers", MFD_CLOEXEC);
	if (fd < 0)
		return err_sys(err, errno, "memfd_create");
	loop_dump(loop_self(), fd);
	off_t size = lseek(fd, 0, SEEK_END);
	char *text = arena_alloc(q->arena, size > 0 ? (size_t)size : 1, 1);
	ssize_t n = pread(fd, text, size > 0 ? (size_t)size : 0, 0);
	(void)close(fd);
	answer_text(q, 200, str_span(text, n > 0 ? (size_t)n : 0));
	return 0;
}

int debug_handle(struct request *q, str name, struct err *err)
{
	if (q->server->options.profiling && str_eq(name, STR("fibers")) && loop_self())
		return fibers(q, err);
	return err_set(err, ERR_NOT_FOUND, "no such path");
}
