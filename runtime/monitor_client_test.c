/* The client, against a monitor that a fiber of the test plays. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fiber_io.h"
#include "base/fiber_test.h"
#include "base/file.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "runtime/monitor_wire.h"

struct stage {
	char folder[32];
	int listener, fd;             /* fd: the one connection */
	struct monitor *monitor;
	int exits, lost;
	char last[32];
	int answers[8];
};

static void stage_init(struct stage *s)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct err err = ERR_INIT;

	*s = (struct stage){ .fd = -1 };
	snprintf(s->folder, sizeof(s->folder), "/tmp/c8s-monitor-XXXXXX");
	CHECK(mkdtemp(s->folder));
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/monitor.sock", s->folder);
	s->listener = monitor_wire_socket(&err);
	CHECK(s->listener >= 0 && bind(s->listener, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(s->listener, 4) == 0);
}

static void stage_done(struct stage *s)
{
	char path[64];

	monitor_free(s->monitor);
	if (s->listener >= 0)
		close(s->listener);
	if (s->fd >= 0)
		close(s->fd);
	snprintf(path, sizeof(path), "%s/monitor.sock", s->folder);
	unlink(path);
	rmdir(s->folder);
}

static void on_exit_told(void *arg, const struct monitor_exit *e)
{
	struct stage *s = arg;

	if (!e->container.n) {
		s->lost++;
		return;
	}
	s->exits++;
	snprintf(s->last, sizeof(s->last), STR_FMT "/" STR_FMT " %d", STR_ARG(e->container), STR_ARG(e->exec), e->exit_code);
}

static void expect(struct stage *s, const char *want, struct monitor_fds *ret_fds)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(MONITOR_PACKET_MAX);
	struct monitor_fds fds;

	while (monitor_wire_receive(s->fd, &b, &fds) < 0)
		CHECK(errno == EAGAIN && fiber_wait_fd(s->fd, POLLIN, NULL) >= 0);
	CHECK_STR(buf_str(&b), want);
	if (ret_fds)
		*ret_fds = fds;
	else
		monitor_fds_done(&fds);
}

static void reply(struct stage *s, const char *text, const struct monitor_fds *fds) { CHECK_INT(monitor_wire_send(s->fd, str_of(text), fds), 0); }

static int accept_one(void *arg)
{
	struct stage *s = arg;

	s->fd = fiber_accept(s->listener, NULL, NULL);
	CHECK(s->fd >= 0);
	expect(s, "{\"op\":\"follow\"}", NULL);
	reply(s, "{\"event\":\"exit\",\"id\":\"early\",\"exec\":\"\",\"exitCode\":1,\"finishedAt\":2,\"oomKilled\":false}", NULL);
	reply(s, "{}", NULL);
	return 0;
}

static void stage_connect(struct stage *s)
{
	struct fiber *f = start(accept_one, s);
	struct err err = ERR_INIT;

	CHECK_INT(monitor_connect(&(struct monitor_options){ .folder = s->folder }, on_exit_told, s, &s->monitor, &err), 0);
	join(f);
}

static int ask(struct stage *s, const char *op, struct val *ret, struct arena *a, struct err *err)
{
	return monitor_ask(s->monitor, a, OBJECT(a, F(op, VAL_STR(str_of(op)))), NULL, NULL, ret, err);
}

static int ask_number(void *arg)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct stage *s = arg;
	struct val v;
	struct err err = ERR_INIT;

	int r = ask(s, "state", &v, &a, &err);
	return r < 0 ? r : (int)val_int(v, pid);
}

FIBER_TEST(monitor_client_order)
{
	CLEANUP(stage_done) struct stage s;
	struct fiber *f[4];

	stage_init(&s);
	stage_connect(&s);
	CHECK_INT(s.exits, 1);
	CHECK_STR(str_of(s.last), "early/ 1");
	for (size_t i = 0; i < ARRAY_LEN(f); i++)
		f[i] = start(ask_number, &s);
	for (size_t i = 0; i < ARRAY_LEN(f); i++)
		expect(&s, "{\"op\":\"state\"}", NULL);
	/* The second one gives up; its answer must not be taken for another's. */
	CHECK_INT(fiber_stop(f[1]), -ERR_CANCELED);
	reply(&s, "{\"pid\":10}", NULL);
	reply(&s, "{\"event\":\"exit\",\"id\":\"c\",\"exec\":\"x\",\"exitCode\":7,\"finishedAt\":2,\"oomKilled\":false}", NULL);
	reply(&s, "{\"pid\":11}", NULL);
	reply(&s, "{\"pid\":12}", NULL);
	reply(&s, "{\"error\":\"no such thing\",\"code\":\"not_found\"}", NULL);
	CHECK_INT(join(f[0]), 10);
	CHECK_INT(join(f[2]), 12);
	CHECK_INT(join(f[3]), -ERR_NOT_FOUND);
	CHECK_STR(str_of(s.last), "c/x 7");
}

static int play_attach(void *arg)
{
	struct stage *s = arg;
	struct monitor_fds in;

	expect(s, "{\"op\":\"attach\"}", &in);
	CHECK_INT((int)in.n, 2);
	reply(s, "{}", &(struct monitor_fds){ { in.fd[1] }, 1 });
	monitor_fds_done(&in);
	return 0;
}

FIBER_TEST(monitor_client_fds)
{
	CLEANUP(stage_done) struct stage s;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct monitor_fds out;
	struct err err = ERR_INIT;
	int ends[2];
	char c = 0;

	stage_init(&s);
	stage_connect(&s);
	CHECK_INT(pipe(ends), 0);
	struct fiber *f = start(play_attach, &s);
	CHECK_INT(monitor_ask(s.monitor, &a, OBJECT(&a, F(op, VAL_LIT("attach"))), &(struct monitor_fds){ { ends[0], ends[1] }, 2 }, &out, NULL, &err), 0);
	join(f);
	CHECK_INT((int)out.n, 1);
	CHECK(write(out.fd[0], "x", 1) == 1 && read(ends[0], &c, 1) == 1 && c == 'x');
	monitor_fds_done(&out);
	close(ends[0]);
	close(ends[1]);
}

static int play_return(void *arg)
{
	struct stage *s = arg;

	accept_one(s);
	expect(s, "{\"op\":\"state\"}", NULL);
	reply(s, "{\"containers\":[{\"id\":\"a\",\"status\":\"running\"},{\"id\":\"b\",\"status\":\"stopped\",\"exitCode\":4}]}", NULL);
	return 0;
}

FIBER_TEST(monitor_client_return)
{
	CLEANUP(stage_done) struct stage s;

	stage_init(&s);
	stage_connect(&s);
	struct fiber *waits = start(ask_number, &s);
	expect(&s, "{\"op\":\"state\"}", NULL);
	close(s.fd);
	s.fd = -1;
	struct fiber *f = start(play_return, &s);
	CHECK_INT(join(waits), -ERR_UNAVAILABLE);
	join(f);
	while (s.exits < 3)
		CHECK_INT(fiber_sleep_ms(1, NULL), 0);
	CHECK_STR(str_of(s.last), "b/ 4");
	CHECK_INT(s.lost, 0);
	/* Now it is killed. */
	close(s.listener);
	s.listener = -1;
	close(s.fd);
	s.fd = -1;
	while (!s.lost)
		CHECK_INT(fiber_sleep_ms(1, NULL), 0);
	waits = start(ask_number, &s);
	CHECK_INT(join(waits), -ERR_UNAVAILABLE);
}

FIBER_TEST(monitor_client_none)
{
	CLEANUP(stage_done) struct stage s;
	struct err err = ERR_INIT;

	stage_init(&s);
	close(s.listener);
	s.listener = -1;
	CHECK_INT(monitor_connect(&(struct monitor_options){ .folder = s.folder }, on_exit_told, &s, &s.monitor, &err), -ERR_NOT_FOUND);
	CHECK_INT(monitor_connect(&(struct monitor_options){ .folder = "/tmp/c8s-none" }, on_exit_told, &s, &s.monitor, &err), -ERR_NOT_FOUND);
	CHECK_INT(monitor_start(&(struct monitor_options){ .program = "/bin/false", .folder = s.folder, .oci_root = "/" }, on_exit_told, &s,
				&s.monitor, &err), -ERR_INTERNAL);
}

TEST(monitor_read_exit)
{
	char folder[] = "/tmp/c8s-exit-XXXXXX", path[64];
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct monitor_exit e, want = { .container = STR("c1"), .exit_code = 137, .finished_ns = 1234567890123456789, .oom_killed = true };
	CLEANUP(buf_done) struct buf text = BUF_INIT(4096);
	struct err err = ERR_INIT;

	CHECK(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/exits", folder);
	CHECK_INT(file_make_dirs(path, 0700, &err), 0);
	snprintf(path, sizeof(path), "%s/exits/c1", folder);
	CHECK_INT(json_encode(&text, monitor_wire_exit(&a, &want), &(struct json_encode_options){ 0 }, &err), 0);
	CHECK_INT(file_write(path, buf_str(&text), 0600, &err), 0);
	CHECK_INT(monitor_read_exit(folder, STR("c1"), &a, &e, &err), 0);
	CHECK_STR(e.container, "c1");
	CHECK(e.exit_code == 137 && e.finished_ns == want.finished_ns && e.oom_killed && !e.exec.n);
	CHECK_INT(monitor_read_exit(folder, STR("c2"), &a, &e, &err), -ERR_NOT_FOUND);
	CHECK_INT(monitor_read_exit(folder, STR("../exits/c1"), &a, &e, &err), -ERR_NOT_FOUND);
	CHECK_INT(file_write(path, STR("{"), 0600, &err), 0);
	CHECK_INT(monitor_read_exit(folder, STR("c1"), &a, &e, &err), -ERR_BAD_REQUEST);
	unlink(path);
	snprintf(path, sizeof(path), "%s/exits", folder);
	rmdir(path);
	rmdir(folder);
}
