/*
 * Asking a container how it is. What the other end does wrong is a failure with a text; an error is only what kept us from asking.
 * The texts are those of Kubernetes and of Go's libraries.
 */
#include "base/buf.h"
#include "base/clock.h"
#include "base/fiber.h"
#include "codec/atoms.h"
#include "codec/time.h"
#include "codec/types.h"
#include "kubelet/cri_config.h"
#include "kubelet/probe_priv.h"
#include "net/grpc.h"
#include "net/stream.h"

/* The runtime gets this much longer than the command, to clean up. */
enum { EXEC_EXTRA_MS = 120 * 1000, TEXT_MAX = 64 << 10, GRPC_PAUSE_MS = 1000, GRPC_ANSWER_MAX = 64 << 10 };

static str text_of_buf(struct probe_check *c, const struct buf *b) { return arena_str(c->arena, buf_str(b)); }

static str duration(struct probe_check *c)
{
	char out[DURATION_TEXT_MAX];

	return arena_str(c->arena, duration_format(c->timeout_ms * NS_PER_MS, out));
}

/* ---- places ---- */

int probe_port(struct val port, struct val container, uint16_t *ret, struct err *err)
{
	int64_t n = val_as_int(port);
	str name = val_as_str(port);

	if (val_is(port, VAL_STRING)) {
		bool found = false;
		VAL_EACH(p, val_get(container, ports))
			if (!found && str_eq(val_str(*p, name), name)) {
				n = val_int(*p, containerPort);
				found = true;
			}
		if (!found && !str_to_i64(name, &n))
			return err_set(err, ERR_INVALID, "strconv.Atoi: parsing \"" STR_FMT "\": invalid syntax",
				       STR_ARG(str_head(name, 100)));
	}
	if (n <= 0 || n > UINT16_MAX)
		return err_set(err, ERR_INVALID, "invalid port number: %lld", (long long)n);
	*ret = (uint16_t)n;
	return 0;
}

int probe_host(struct probe_check *c, struct val action, str *ret, struct err *err)
{
	*ret = val_str(action, host).n ? val_str(action, host) : c->pod_ip;
	/* To dial that would be a local socket. */
	if (str_starts(*ret, STR("unix:")))
		return err_set(err, ERR_INVALID, "dial tcp: lookup " STR_FMT ": no such host", STR_ARG(str_head(*ret, 100)));
	return 0;
}

str probe_address(struct arena *a, str host, uint16_t port)
{
	bool v6 = str_chr(host, ':') >= 0;

	return arena_printf(a, "%s" STR_FMT "%s:%u", v6 ? "[" : "", STR_ARG(host), v6 ? "]" : "", port);
}

/* ---- exec ---- */

/* $(NAME) means what the container's own list gives as a plain value: what other objects say is not known here. */
static struct val command_of(struct probe_check *c)
{
	struct val_builder words = val_builder(c->arena), env = val_builder(c->arena);
	struct val command = val_get(c->handler, exec, command), known;

	if (c->hook)
		return command;
	VAL_EACH(e, val_get(c->container, env))
		val_add_item(&env, OBJECT(c->arena, F(key, val_get(*e, name)), F(value, val_get(*e, value))));
	known = val_end_list(&env);
	VAL_EACH(word, command)
		val_add_item(&words, VAL_STR(env_expand(c->arena, val_as_str(*word), known)));
	return val_end_list(&words);
}

static str joined(struct probe_check *c, struct val command)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(TEXT_MAX);

	VAL_EACH(word, command) {
		if (word != command.items)
			buf_addc(&b, ' ');
		buf_add(&b, val_as_str(*word));
	}
	return text_of_buf(c, &b);
}

/* Standard output, then standard error, up to the maximum. */
static str exec_output(struct probe_check *c, struct val answer)
{
	str out = str_head(val_str(answer, stdout), PROBE_OUTPUT_MAX);

	return arena_join(c->arena, out, str_head(val_str(answer, stderr), PROBE_OUTPUT_MAX - out.n));
}

static enum check_result exec_result(struct probe_check *c, struct val command, struct val answer)
{
	int64_t code = val_int(answer, exitCode);

	c->output = exec_output(c, answer);
	if (code == 0)
		return CHECK_SUCCESS;
	if (c->hook) {
		CLEANUP(buf_done) struct buf b = BUF_INIT(2 * TEXT_MAX);
		buf_addf(&b, "command '" STR_FMT "' exited with %lld: " STR_FMT ", message: ", STR_ARG(joined(c, command)), (long long)code,
			 STR_ARG(str_head(val_str(answer, stderr), PROBE_OUTPUT_MAX)));
		buf_add_quoted(&b, c->output);
		c->output = text_of_buf(c, &b);
	}
	return CHECK_FAILURE;
}

static int check_exec(struct probe_check *c, enum check_result *ret, struct err *err)
{
	struct val command = command_of(c), answer;
	int64_t seconds = c->timeout_ms / 1000;
	struct val request = OBJECT(c->arena, F(containerId, VAL_STR(c->container_id)), F(cmd, command), F(timeout, val_of_int(seconds)));
	int64_t limit_ms = c->timeout_ms ? c->timeout_ms + EXEC_EXTRA_MS : -1;
	int r = cri_ask(c->cri, &rpc_RuntimeService_ExecSync, c->arena, request, limit_ms, &answer, err);

	if (r == 0) {
		*ret = exec_result(c, command, answer);
		return 0;
	}
	if (r == -ERR_TIMEOUT && fiber_check(NULL) == 0) {
		CLEANUP(buf_done) struct buf b = BUF_INIT(2 * TEXT_MAX);
		buf_add(&b, STR("command timed out: "));
		buf_add_quoted(&b, joined(c, command));
		buf_add(&b, STR(" timed out after "));
		buf_add(&b, duration(c));
		c->output = text_of_buf(c, &b);
		err_clear(err);
		*ret = CHECK_FAILURE;
		return 0;
	}
	if (r == -ERR_CANCELED)
		return r;
	str text = cri_error_text(c->arena, err);
	return err_set(err, err->code, STR_FMT, STR_ARG(text));
}

/* ---- tcpSocket ---- */

static int check_tcp(struct probe_check *c, enum check_result *ret, struct err *err)
{
	CLEANUP(stream_freep) struct stream *s = NULL;
	struct val action = val_get(c->handler, tcpSocket);
	str host;
	uint16_t port;
	int r = probe_port(val_get(action, port), c->container, &port, err);

	if (r < 0 || (r = probe_host(c, action, &host, err)) < 0)
		return r;
	const char *name = arena_str(c->arena, host).p;
	{
		DEADLINE_SCOPE(c->timeout_ms ? c->timeout_ms : INT32_MAX);
		r = stream_dial(name, port, NULL, &s, err);
	}
	if (r == -ERR_CANCELED)
		return r;
	*ret = r < 0 ? CHECK_FAILURE : CHECK_SUCCESS;
	if (r == -ERR_TIMEOUT && !err->sys) {
		str address = probe_address(c->arena, host, port);
		c->output = arena_printf(c->arena, "dial tcp " STR_FMT ": i/o timeout", STR_ARG(address));
	} else if (r < 0) {
		c->output = arena_str(c->arena, err_str(err));
	}
	err_clear(err);
	return 0;
}

/* ---- grpc: grpc.health.v1.Health/Check, whose messages have one field each ---- */

enum { FIELD_SERVICE = 1 << 3 | 2, FIELD_STATUS = 1 << 3 | 0 };

static void add_varint(struct buf *b, uint64_t n)
{
	for (; n >= 0x80; n >>= 7)
		buf_addc(b, (char)(n | 0x80));
	buf_addc(b, (char)n);
}

static bool take_varint(str *s, uint64_t *ret)
{
	*ret = 0;
	for (unsigned shift = 0; s->n && shift < 64; shift += 7) {
		uint8_t byte = (uint8_t)s->p[0];
		*s = str_skip(*s, 1);
		*ret |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* What the answer says, as Go prints the enum; UNKNOWN when it says nothing. Fields of other numbers are skipped. */
static str health_of(struct arena *a, str answer)
{
	static const str names[] = { STR_INIT("UNKNOWN"), STR_INIT("SERVING"), STR_INIT("NOT_SERVING"), STR_INIT("SERVICE_UNKNOWN") };
	uint64_t tag, n, status = 0;

	while (answer.n && take_varint(&answer, &tag)) {
		switch (tag & 7) {
		case 0:
			if (!take_varint(&answer, &n))
				return names[0];
			if (tag == FIELD_STATUS)
				status = n;
			break;
		case 1:
		case 5:
			answer = str_skip(answer, (tag & 7) == 1 ? 8 : 4);
			break;
		case 2:
			if (!take_varint(&answer, &n) || n > answer.n)
				return names[0];
			answer = str_skip(answer, n);
			break;
		default:
			return names[0];
		}
	}
	return status < ARRAY_LEN(names) ? names[status] : arena_printf(a, "%d", (int)(int32_t)status);
}

/* (suspends) Asks as soon as the other end can be reached, until the time is over. */
static int ask_health(struct probe_check *c, struct grpc_channel *channel, struct grpc_message **ret, int *ret_status, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(TEXT_MAX);
	str service = val_str(c->handler, grpc, service);
	int r;

	if (service.n) {
		add_varint(&b, FIELD_SERVICE);
		add_varint(&b, service.n);
		buf_add(&b, service);
	}
	DEADLINE_SCOPE(c->timeout_ms ? c->timeout_ms : INT32_MAX);
	do
		r = grpc_call(channel, STR("/grpc.health.v1.Health/Check"), 0, buf_str(&b), ret, ret_status, err);
	while (r == -ERR_UNAVAILABLE && *ret_status < 0 && !grpc_channel_generation(channel) &&
	       (r = fiber_sleep_ms(GRPC_PAUSE_MS, err)) == 0);
	return r;
}

static str grpc_failure(struct probe_check *c, str address, int r, int status, bool connected, const struct err *err)
{
	if (r == -ERR_TIMEOUT && status < 0 && !connected) {
		str limit = duration(c);
		return arena_printf(c->arena, "timeout: failed to connect service \"" STR_FMT "\" within " STR_FMT ": context deadline exceeded",
				    STR_ARG(address), STR_ARG(limit));
	}
	if (r == -ERR_TIMEOUT) {
		str limit = duration(c);
		return arena_printf(c->arena, "timeout: health rpc did not complete within " STR_FMT, STR_ARG(limit));
	}
	if (status == GRPC_UNIMPLEMENTED)
		return arena_printf(c->arena, "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): %s",
				    err->msg);
	if (status < 0)
		status = grpc_status_of_err(err->code);
	return arena_printf(c->arena, "error: health rpc probe failed: rpc error: code = %s desc = %s", grpc_status_name(status), err->msg);
}

static int check_grpc(struct probe_check *c, enum check_result *ret, struct err *err)
{
	CLEANUP(grpc_channel_freep) struct grpc_channel *channel = NULL;
	CLEANUP(grpc_message_freep) struct grpc_message *m = NULL;
	str address = probe_address(c->arena, c->pod_ip, (uint16_t)val_int(c->handler, grpc, port));
	const char *endpoints[] = { arena_printf(c->arena, "http://" STR_FMT, STR_ARG(address)).p, NULL };
	struct grpc_options o = { .endpoints = endpoints, .max_message = GRPC_ANSWER_MAX, .connect_timeout_ms = c->timeout_ms };
	int status = -1, r = grpc_channel_new(&o, &channel, err);

	if (r < 0)
		return r;
	r = ask_health(c, channel, &m, &status, err);
	if (r == -ERR_CANCELED)
		return r;
	if (r < 0) {
		c->output = grpc_failure(c, address, r, status, grpc_channel_generation(channel) != 0, err);
		*ret = CHECK_FAILURE;
	} else {
		str health = health_of(c->arena, grpc_message_str(m));
		bool serving = str_eq(health, STR("SERVING"));
		c->output = serving ? STR("service healthy")
				    : arena_printf(c->arena, "service unhealthy (responded with \"" STR_FMT "\")", STR_ARG(health));
		*ret = serving ? CHECK_SUCCESS : CHECK_FAILURE;
	}
	err_clear(err);
	return 0;
}

/* ---- all ---- */

static int check_sleep(struct probe_check *c, enum check_result *ret, struct err *err)
{
	int r = fiber_sleep_ms(val_int(c->handler, sleep, seconds) * 1000, err);

	if (r == -ERR_TIMEOUT) {
		c->output = STR("container terminated before sleep hook finished");
		err_clear(err);
	}
	*ret = r < 0 ? CHECK_FAILURE : CHECK_SUCCESS;
	return r == -ERR_CANCELED ? r : 0;
}

int probe_check(struct probe_check *c, enum check_result *ret, struct err *err)
{
	struct err own = ERR_INIT;

	if (!err)
		err = &own;
	err_clear(err);
	*ret = CHECK_UNKNOWN;
	c->output = STR_NONE;
	if (val_has(c->handler, exec))
		return check_exec(c, ret, err);
	if (val_has(c->handler, httpGet))
		return probe_check_http(c, ret, err);
	if (val_has(c->handler, tcpSocket))
		return check_tcp(c, ret, err);
	if (val_has(c->handler, grpc))
		return check_grpc(c, ret, err);
	if (c->hook && val_has(c->handler, sleep))
		return check_sleep(c, ret, err);
	return err_set(err, ERR_INVALID, "missing probe handler for " STR_FMT "_" STR_FMT "(" STR_FMT "):" STR_FMT,
		       STR_ARG(val_str(c->pod, metadata, name)), STR_ARG(val_str(c->pod, metadata, namespace)),
		       STR_ARG(val_str(c->pod, metadata, uid)), STR_ARG(val_str(c->container, name)));
}

static enum probe_result result_of(struct probe_check *c, str *ret_output, struct err *err)
{
	enum check_result result;

	if (probe_check(c, &result, err) < 0)
		return PROBE_UNKNOWN;
	*ret_output = c->output;
	return result == CHECK_FAILURE ? PROBE_FAILURE : PROBE_SUCCESS;
}

enum probe_result probe_once(struct cri *cri, struct arena *a, struct val pod, struct val container, struct val handler, str container_id,
			     str pod_ip, int64_t timeout_ms, str *ret_output, struct err *err)
{
	struct probe_check c = { cri, a, pod, container, handler, container_id, pod_ip, timeout_ms, false, STR_NONE };

	return result_of(&c, ret_output, err);
}

enum probe_result probe_hook(struct cri *cri, struct arena *a, struct val pod, struct val container, struct val handler, str container_id,
			     str pod_ip, int64_t timeout_ms, str *ret_output, struct err *err)
{
	struct probe_check c = { cri, a, pod, container, handler, container_id, pod_ip, 0, true, STR_NONE };

	if (!timeout_ms)
		return result_of(&c, ret_output, err);
	DEADLINE_SCOPE(timeout_ms);
	return result_of(&c, ret_output, err);
}
