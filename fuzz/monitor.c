/*
 * What comes from a pod's monitor or from its log: a packet through a socket, as an answer and as an event; output that is cut into
 * entries, and lines of a log.
 */
#include <assert.h>
#include <sys/socket.h>
#include <unistd.h>

#include "codec/json.h"
#include "runtime/logs_format.h"
#include "runtime/monitor_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void packet(str input)
{
	struct arena a = ARENA_INIT;
	struct buf b = BUF_INIT(MONITOR_PACKET_MAX);
	struct monitor_fds in = { { 0 }, 1 }, out;
	struct val v;
	int ends[2];

	assert(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
	if (input.n && monitor_wire_send(ends[0], input, &in) == 0) {
		assert(monitor_wire_receive(ends[1], &b, &out) == (ssize_t)input.n && str_eq(buf_str(&b), input) && out.n == 1);
		monitor_fds_done(&out);
		if (json_decode(&a, buf_str(&b), &(struct json_decode_options){ 0 }, &v, NULL) == 0) {
			struct err err = ERR_INIT;
			int r = monitor_wire_fail(v, &err);
			assert(r == 0 || (err.code > ERR_NONE && r == -(int)err.code));
			struct monitor_exit e = monitor_wire_exit_of(v), again = monitor_wire_exit_of(monitor_wire_exit(&a, &e));
			assert(str_eq(e.container, again.container) && str_eq(e.exec, again.exec) && e.exit_code == again.exit_code &&
			       e.finished_ns == again.finished_ns && e.oom_killed == again.oom_killed);
		}
	}
	close(ends[0]);
	close(ends[1]);
	buf_done(&b);
	arena_done(&a);
}

/* Cut as it comes in two pieces: entries are short enough, and together are what was put in. */
static void cut(str input)
{
	struct buf held = BUF_INIT(2 * LOGS_TEXT_MAX);
	size_t lines = 0, wanted = 0;
	str pieces[2] = { str_head(input, input.n / 3), str_skip(input, input.n / 3) };

	for (size_t i = 0; i < input.n; i++)
		wanted += input.p[i] == '\n';
	for (size_t i = 0; i < 2; i++) {
		str rest = pieces[i], before, piece;
		size_t taken;
		enum logs_cut what;
		while ((what = logs_cut(buf_str(&held), rest, &before, &piece, &taken)) != LOGS_MORE) {
			assert(before.n + piece.n <= LOGS_TEXT_MAX && taken <= rest.n && (taken || held.n));
			lines += what == LOGS_FULL;
			rest = str_skip(rest, taken);
			buf_reset(&held);
		}
		buf_add(&held, rest);
		assert(held.n <= LOGS_TEXT_MAX);
	}
	assert(lines == wanted);
	buf_done(&held);
}

static void line(str input)
{
	struct logs_entry e, again;
	char head[LOGS_HEAD_MAX];
	struct buf b = BUF_INIT(2 << 20);

	if (logs_parse(input, &e, NULL) == 0) {
		assert(e.text.n <= input.n);
		buf_add(&b, logs_head(e.ns, e.stream, e.partial, head));
		buf_add(&b, e.text);
		assert(logs_parse(buf_str(&b), &again, NULL) == 0 && again.ns == e.ns && again.stream == e.stream &&
		       again.partial == e.partial && str_eq(again.text, e.text));
	}
	buf_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	str input = str_span((const char *)data, size);

	packet(input);
	cut(input);
	line(input);
	return 0;
}
