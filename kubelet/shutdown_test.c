/*
 * The machine goes down: with a stand-in for logind, which is the bus itself in one test, and behind Debian's dbus-daemon in another, where
 * that is installed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fiber_io.h"
#include "base/fiber_test.h"
#include "base/log.h"
#include "base/process.h"
#include "client/folder_testing.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "kubelet/dbus.h"
#include "kubelet/register.h"
#include "machinery/testing.h"

enum { WAIT_MS = 10000, STEP_MS = 5 };

/* ---- messages of the other side ---- */

static void add_u32(struct buf *b, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		buf_addc(b, (char)(v >> 8 * i));
}

static void pad(struct buf *b, size_t to)
{
	while (b->n % to)
		buf_addc(b, '\0');
}

static void add_field(struct buf *b, char code, char type, str value)
{
	pad(b, 8);
	buf_addc(b, code);
	buf_addc(b, 1);
	buf_addc(b, type);
	buf_addc(b, '\0');
	if (type == 'g')
		buf_addc(b, (char)value.n);
	else if (type != 'u')
		add_u32(b, (uint32_t)value.n);
	buf_add(b, value);
	if (type != 'u')
		buf_addc(b, '\0');
}

static void add_number_field(struct buf *b, char code, uint32_t v)
{
	char p[4] = { (char)v, (char)(v >> 8), (char)(v >> 16), (char)(v >> 24) };
	add_field(b, code, 'u', str_span(p, 4));
}

struct login {
	const char *address;
	const char *sender;           /* whom the bus says messages to be from; NULL: it says nothing */
	int fd;
	bool is_bus;                  /* the client talks to us directly */
	uint32_t serial;
	uint64_t delay_us;
	struct folder *folder;
	int inhibitors, kills, matches; /* how often asked */
	int held;                     /* the other end of the newest inhibitor */
	struct fiber *fiber;
};

/* signature, body: "" for none. fd: sent with it; -1: none. */
static void send_message(struct login *l, enum dbus_type type, str destination, uint32_t reply_to, const char *signature, str body, int fd)
{
	CLEANUP(buf_done) struct buf fields = BUF_INIT(4096), b = BUF_INIT(8192);
	if (type == DBUS_SIGNAL) {
		add_field(&fields, 1, 'o', STR("/org/freedesktop/login1"));
		add_field(&fields, 2, 's', STR("org.freedesktop.login1.Manager"));
		add_field(&fields, 3, 's', STR("PrepareForShutdown"));
	} else {
		add_number_field(&fields, 5, reply_to);
	}
	if (type == DBUS_ERROR)
		add_field(&fields, 4, 's', STR("org.example.Error"));
	if (destination.n)
		add_field(&fields, 6, 's', destination);
	if (l->sender)
		add_field(&fields, 7, 's', str_of(l->sender));
	if (*signature)
		add_field(&fields, 8, 'g', str_of(signature));
	if (fd >= 0)
		add_number_field(&fields, 9, 1);
	buf_add(&b, str_span((const char[]){ 'l', (char)type, 0, 1 }, 4));
	add_u32(&b, (uint32_t)body.n);
	add_u32(&b, ++l->serial);
	add_u32(&b, (uint32_t)fields.n);
	buf_add(&b, buf_str(&fields));
	pad(&b, 8);
	buf_add(&b, body);
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec v = { b.p, b.n };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
	if (fd >= 0) {
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	CHECK(sendmsg(l->fd, &m, 0) == (ssize_t)b.n);
}

static void send_shutdown(struct login *l, bool down)
{
	send_message(l, DBUS_SIGNAL, STR_NONE, 0, "b", str_span((const char[]){ down, 0, 0, 0 }, 4), -1);
}

/* ---- logind ---- */

static void answer_delay(struct login *l, const struct dbus_message *m)
{
	CLEANUP(buf_done) struct buf body = BUF_INIT(64);
	buf_add(&body, str_span("\1t\0\0\0\0\0", 8)); /* a variant with a number of 8 bytes */
	add_u32(&body, (uint32_t)l->delay_us);
	add_u32(&body, (uint32_t)(l->delay_us >> 32));
	send_message(l, DBUS_RETURN, m->sender, m->serial, "v", buf_str(&body), -1);
}

static void answer_inhibit(struct login *l, const struct dbus_message *m)
{
	static const char *const want[] = { "shutdown", "kubelet", "Kubelet needs time to handle node shutdown", "delay" };
	struct dbus_reader r = dbus_reader_of(m);
	int fds[2];
	str text;
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		CHECK(dbus_read_text(&r, 's', &text));
		CHECK_STR_ROW(i, text, want[i]);
	}
	CHECK_INT(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	if (l->held >= 0)
		close(l->held);
	l->held = fds[0];
	send_message(l, DBUS_RETURN, m->sender, m->serial, "h", str_span("\0\0\0\0", 4), fds[1]);
	close(fds[1]);
	l->inhibitors++;
}

/* SIGHUP: it reads its configuration. */
static void answer_kill(struct login *l, const struct dbus_message *m)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(4096);
	struct dbus_reader r = dbus_reader_of(m);
	uint64_t signal;
	str text;
	CHECK(dbus_read_text(&r, 's', &text) && str_eq(text, STR("systemd-logind.service")));
	CHECK(dbus_read_text(&r, 's', &text) && str_eq(text, STR("all")));
	CHECK(dbus_read_number(&r, 'i', &signal) && signal == 1);
	CHECK_INT(file_read(in_folder(l->folder, "conf.d/99-kubelet.conf"), &b, NULL), 0);
	CHECK_STR(buf_str(&b), "# Kubelet logind override\n[Login]\nInhibitDelayMaxSec=30\n");
	l->delay_us = 30 * 1000000;
	l->kills++;
	send_message(l, DBUS_RETURN, m->sender, m->serial, "", STR_NONE, -1);
}

static void answer(struct login *l, const struct dbus_message *m)
{
	if (m->type != DBUS_CALL)
		return;
	if (str_eq(m->member, STR("Get"))) {
		answer_delay(l, m);
	} else if (str_eq(m->member, STR("Inhibit"))) {
		answer_inhibit(l, m);
	} else if (str_eq(m->member, STR("KillUnit"))) {
		answer_kill(l, m);
	} else if (str_eq(m->member, STR("Hello"))) {
		/* Something that nobody waits for comes before it. */
		send_message(l, DBUS_RETURN, m->sender, 12345, "", STR_NONE, -1);
		send_message(l, DBUS_RETURN, m->sender, m->serial, "s", str_span("\4\0\0\0:1.2\0", 9), -1);
	} else if (str_eq(m->member, STR("AddMatch"))) {
		l->matches++;
		send_message(l, DBUS_RETURN, m->sender, m->serial, "", STR_NONE, -1);
	}
}

/* Until the other side is gone. */
static void serve_messages(struct login *l, struct buf *in)
{
	struct dbus_message m;
	size_t n;
	for (;;) {
		int r;
		while ((r = dbus_parse(buf_str(in), &m, &n, NULL)) > 0) {
			answer(l, &m);
			memmove(in->p, in->p + n, in->n - n);
			in->n -= n;
		}
		CHECK_INT(r, 0);
		char p[1000];
		ssize_t got = fiber_read(l->fd, p, sizeof(p), NULL);
		if (got <= 0)
			return;
		buf_add(in, str_span(p, (size_t)got));
	}
}

static void expect_line(struct login *l, struct buf *in, str begin)
{
	ptrdiff_t end;
	while ((end = str_find(buf_str(in), STR("\r\n"))) < 0) {
		char p[1000];
		ssize_t got = fiber_read(l->fd, p, sizeof(p), NULL);
		CHECK(got > 0);
		buf_add(in, str_span(p, (size_t)got));
	}
	CHECK(str_starts(buf_str(in), begin));
	memmove(in->p, in->p + end + 2, in->n - (size_t)end - 2);
	in->n -= (size_t)end + 2;
}

static void say(struct login *l, str line) { CHECK_INT(fiber_write(l->fd, line.p, line.n, NULL), 0); }

static struct sockaddr_un address_of(struct folder *f)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	const char *path = in_folder(f, "bus");
	memcpy(a.sun_path, path, strlen(path));
	return a;
}

/* As the bus itself: one client after the other. */
static int run_as_bus(void *arg)
{
	struct login *l = arg;
	struct sockaddr_un a = address_of(l->folder);
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	CHECK(bind(listener, (struct sockaddr *)&a, sizeof(a)) == 0 && listen(listener, 4) == 0);
	while ((l->fd = fiber_accept(listener, NULL, NULL)) >= 0) {
		CLEANUP(buf_done) struct buf in = BUF_INIT(1 << 20);
		expect_line(l, &in, str_span("\0AUTH EXTERNAL ", 15));
		say(l, STR("OK 0123456789abcdef0123456789abcdef\r\n"));
		expect_line(l, &in, STR("NEGOTIATE_UNIX_FD"));
		say(l, STR("AGREE_UNIX_FD\r\n"));
		expect_line(l, &in, STR("BEGIN"));
		serve_messages(l, &in);
		close(l->fd);
	}
	close(listener);
	return 0;
}

static void call_bus(struct login *l, const char *member, const char *text)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(4096);
	dbus_build(&(struct dbus_call){ .destination = "org.freedesktop.DBus", .path = "/org/freedesktop/DBus",
					.interface = "org.freedesktop.DBus", .member = member, .texts = { text }, .has_number = text != NULL },
		   ++l->serial, &b);
	if (text) /* the flags of RequestName are a 'u' */
		*(char *)memchr(memmem(b.p, b.n, "\1g\0\2s", 5), 'i', 6) = 'u';
	say(l, buf_str(&b));
}

/* As a service behind a bus. */
static int run_as_service(void *arg)
{
	struct login *l = arg;
	CLEANUP(buf_done) struct buf in = BUF_INIT(1 << 20);
	struct sockaddr_un a = address_of(l->folder);
	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	while (fiber_connect(l->fd, (struct sockaddr *)&a, sizeof(a), NULL) < 0)
		CHECK_INT(fiber_sleep_ms(STEP_MS, NULL), 0);
	say(l, str_span("\0AUTH EXTERNAL\r\nDATA\r\n", 22));
	expect_line(l, &in, STR("DATA"));
	expect_line(l, &in, STR("OK "));
	say(l, STR("NEGOTIATE_UNIX_FD\r\nBEGIN\r\n"));
	expect_line(l, &in, STR("AGREE_UNIX_FD"));
	call_bus(l, "Hello", NULL);
	call_bus(l, "RequestName", "org.freedesktop.systemd1");
	call_bus(l, "RequestName", "org.freedesktop.login1");
	serve_messages(l, &in);
	close(l->fd);
	return 0;
}

/* ---- the kubelet's side ---- */

struct node {
	struct folder folder;
	struct login login;
	struct shutdown_options o;
	struct fiber *fiber;
	struct buf log;
	const char *pods;
	int hang_ms;                  /* a pod named "slow" takes so long */
};

static struct val pods_of(void *arg, struct arena *a) { return testing_tree(a, ((struct node *)arg)->pods); }

static int evict(void *arg, struct val pod, str reason, str message, struct val condition, int64_t grace_s, struct err *err)
{
	struct node *n = arg;
	bool slow = str_eq(val_str(pod, metadata, name), STR("slow"));
	CHECK_STR(reason, "Terminated");
	CHECK_STR(message, "Pod was terminated in response to imminent node shutdown.");
	CHECK_STR(val_str(condition, type), "DisruptionTarget");
	CHECK_STR(val_str(condition, reason), "TerminationByKubelet");
	buf_addf(&n->log, STR_FMT ":%d ", STR_ARG(val_str(pod, metadata, name)), (int)grace_s);
	int r = fiber_sleep_ms(slow ? n->hang_ms : 30, err);
	buf_addf(&n->log, "-" STR_FMT " ", STR_ARG(val_str(pod, metadata, name)));
	return r;
}

static void state(void *arg, str message)
{
	struct node *n = arg;
	buf_addf(&n->log, "[" STR_FMT "] ", STR_ARG(message));
}

static int run_shutdown(void *arg) { return shutdown_run(arg, NULL); }

static void node_init(struct node *n, const char *config, int (*login_run)(void *arg))
{
	*n = (struct node){ .log = BUF_INIT(1 << 16) };
	log_set_level(LOG_LEVEL_OFF);
	folder_init(&n->folder);
	n->login = (struct login){ .folder = &n->folder, .delay_us = 5 * 1000000, .held = -1 };
	n->login.fiber = login_run ? start(login_run, &n->login) : NULL;
	n->o = (struct shutdown_options){
		.config = testing_typed(&n->folder.arena, TYPE(kubeletconfig_v1beta1, KubeletConfiguration), config), .node_name = STR("n1"),
		.root = n->folder.path, .pods = pods_of, .evict = evict, .state = state, .arg = n,
		.bus = arena_printf(&n->folder.arena, "tcp:host=x;unix:path=%s,guid=0123", in_folder(&n->folder, "bus")).p,
		.logind_folder = in_folder(&n->folder, "conf.d"),
	};
	n->fiber = start(run_shutdown, &n->o);
}

static void node_done(struct node *n)
{
	CHECK_INT(fiber_stop(n->fiber), -ERR_CANCELED);
	if (n->login.fiber)
		(void)fiber_stop(n->login.fiber);
	if (n->login.held >= 0)
		close(n->login.held);
	buf_done(&n->log);
	folder_done(&n->folder);
}

static void wait_for(const int *n, int want)
{
	for (int i = 0; i < WAIT_MS / STEP_MS && *n < want; i++)
		CHECK_INT(fiber_sleep_ms(STEP_MS, NULL), 0);
	CHECK_INT(*n, want);
}

/* Is the inhibitor given back? */
static bool is_released(struct login *l)
{
	char c;
	return read(l->held, &c, 1) == 0;
}

static void wait_for_release(struct login *l)
{
	for (int i = 0; i < WAIT_MS / STEP_MS && !is_released(l); i++)
		CHECK_INT(fiber_sleep_ms(STEP_MS, NULL), 0);
	CHECK(is_released(l));
}

static const char three_pods[] = "[{'metadata':{'name':'critical'},'spec':{'priority':2000001000,'terminationGracePeriodSeconds':30}},"
				 "{'metadata':{'name':'web'},'spec':{'terminationGracePeriodSeconds':5}},"
				 "{'metadata':{'name':'job'},'spec':{'priority':-5}}]";
static const char two_periods[] = "{'shutdownGracePeriod':'30s','shutdownGracePeriodCriticalPods':'10s'}";

static void check_shutdown(struct node *n)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(4096);
	n->pods = three_pods;
	wait_for(&n->login.inhibitors, 1);
	CHECK_INT(n->login.kills, 1);
	CHECK(!is_released(&n->login));
	send_shutdown(&n->login, true);
	wait_for_release(&n->login);
	CHECK_STR(buf_str(&n->log), "[node is shutting down] web:5 job:20 -web -job critical:10 -critical ");
	CHECK_INT(file_read(in_folder(&n->folder, "graceful_node_shutdown_state"), &text, NULL), 0);
	CHECK(str_starts(buf_str(&text), STR("{\"startTime\":\"20")) && str_find(buf_str(&text), STR("\"endTime\":\"20")) > 0);
	/* Called off: everything is as before. */
	send_shutdown(&n->login, false);
	wait_for(&n->login.inhibitors, 2);
	CHECK(str_ends(buf_str(&n->log), STR("[] ")));
	CHECK(!is_released(&n->login));
}

FIBER_TEST(shutdown_ends_pods_by_priority)
{
	static struct node n;
	node_init(&n, two_periods, run_as_bus);
	check_shutdown(&n);
	CHECK_INT(n.login.matches, 1);
	/* The bus is started anew: so are we, with a new inhibitor. */
	CHECK_INT(shutdown(n.login.fd, SHUT_RDWR), 0);
	wait_for(&n.login.inhibitors, 3);
	CHECK_INT(n.login.kills, 1);
	node_done(&n);
}

/* Any user of the machine may send us the signal. */
FIBER_TEST(shutdown_is_for_logind_to_say)
{
	static struct node n;
	node_init(&n, two_periods, run_as_bus);
	n.pods = three_pods;
	wait_for(&n.login.inhibitors, 1);
	n.login.sender = ":1.66";
	send_shutdown(&n.login, true);
	n.login.sender = NULL;
	CHECK_INT(fiber_sleep_ms(100, NULL), 0);
	CHECK(!is_released(&n.login));
	CHECK_STR(buf_str(&n.log), "");
	check_shutdown(&n);
	node_done(&n);
}

FIBER_TEST(shutdown_waits_no_longer_than_it_may)
{
	static struct node n;
	node_init(&n, "{'shutdownGracePeriodByPodPriority':[{'priority':100,'shutdownGracePeriodSeconds':1},"
		      "{'priority':0,'shutdownGracePeriodSeconds':1}]}", run_as_bus);
	n.hang_ms = 60000;
	n.pods = "[{'metadata':{'name':'slow'},'spec':{'priority':99}},{'metadata':{'name':'next'},'spec':{'priority':100}}]";
	wait_for(&n.login.inhibitors, 1);
	CHECK_INT(n.login.kills, 0);
	int64_t began_ns = clock_now_ns();
	send_shutdown(&n.login, true);
	wait_for_release(&n.login);
	CHECK(clock_now_ns() - began_ns >= NS_PER_S);
	CHECK_STR(buf_str(&n.log), "[node is shutting down] slow:1 next:1 -next -slow ");
	node_done(&n);
}

FIBER_TEST(shutdown_without_periods_does_nothing)
{
	struct shutdown_options o = { .config = VAL_EMPTY };
	CHECK_INT(shutdown_run(&o, NULL), 0);
}

FIBER_TEST(shutdown_without_a_bus_tries_again)
{
	static struct node n;
	node_init(&n, two_periods, NULL);
	CHECK_INT(fiber_sleep_ms(50, NULL), 0);
	n.login.fiber = start(run_as_bus, &n.login);
	wait_for(&n.login.inhibitors, 1);
	node_done(&n);
}

/* ---- with the bus of Debian ---- */

static const char bus_config[] = "<busconfig><type>custom</type><listen>unix:path=%s</listen><auth>EXTERNAL</auth>"
				 "<policy context='default'><allow send_destination='*'/><allow receive_sender='*'/><allow own='*'/></policy>"
				 "</busconfig>";

FIBER_TEST_IF(access("/usr/bin/dbus-daemon", X_OK) == 0, shutdown_with_a_real_bus)
{
	static struct node n;
	struct folder f;
	folder_init(&f);
	node_init(&n, two_periods, run_as_service);
	str text = arena_printf(&f.arena, bus_config, in_folder(&n.folder, "bus"));
	const char *const argv[] = { "/usr/bin/dbus-daemon", "--nofork", "--nopidfile",
				     arena_printf(&f.arena, "--config-file=%s", put_file(&f, "bus.conf", text.p, 0644)).p, NULL };
	struct process *bus = NULL;
	CHECK_INT(process_spawn(&(struct process_spec){ .argv = argv, .n_fds = 0 }, &bus, NULL), 0);
	check_shutdown(&n);
	node_done(&n);
	process_free(bus);
	folder_done(&f);
}
