/*
 * containerLogs. What can go wrong before the log is opened is a 400 with a text; after that the answer has begun, and whatever happens
 * is told in it, as the real kubelet does.
 */
#include "base/clock.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "kubelet/server_priv.h"
#include "runtime/logs.h"

/* ---- what is asked for ---- */

struct log_request {
	struct logs_options options;
	bool previous;
};

/* As the API decodes numbers of queries; -1: it is none. */
static int number_of(const struct kubelet_call *c, str name, int64_t *ret, bool *ret_given)
{
	str text = call_query(c, name);

	*ret_given = text.p != NULL;
	if (text.n && text.p[0] == '+')
		text = str_skip(text, 1);
	return !*ret_given || str_to_i64(text, ret) ? 0 : -1;
}

static bool flag(const struct kubelet_call *c, str name)
{
	str text = call_query(c, name);

	if (!text.p)
		return false;
	return !str_eq(text, STR("0")) && !(text.n == 5 && strncasecmp(text.p, "false", 5) == 0);
}

static int refuse(struct kubelet_call *c, int status, const char *message)
{
	call_error(c, status, "{\"message\": \"%s\"}", message);
	return -1;
}

/* sinceSeconds and sinceTime. -1: it was answered. */
static int read_since(struct kubelet_call *c, struct log_request *q)
{
	struct timestamp t;
	int64_t seconds = 0;
	bool by_seconds, by_time;
	str text = call_query(c, STR("sinceTime"));

	by_time = text.n && !str_eq(text, STR("null"));
	if (number_of(c, STR("sinceSeconds"), &seconds, &by_seconds) < 0 || (by_time && time_parse(text, &t, NULL) < 0))
		return refuse(c, 400, "Unable to decode query.");
	if ((by_seconds && text.p) || (by_seconds && seconds < 1))
		return refuse(c, 422, "Invalid request.");
	if (by_seconds)
		q->options.since_ns = seconds < INT64_MAX / NS_PER_S / 2 ? clock_wall_ns() - seconds * NS_PER_S : INT64_MIN;
	if (by_time && t.seconds > INT64_MIN / NS_PER_S && t.seconds < INT64_MAX / NS_PER_S)
		q->options.since_ns = t.seconds * NS_PER_S + t.nanos;
	return 0;
}

/* stream=Stdout and Stderr. -1: it was answered. */
static int read_stream(struct kubelet_call *c, struct log_request *q, bool tailed)
{
	str stream = call_query(c, STR("stream"));
	bool out = str_eq(stream, STR("Stdout")), err = str_eq(stream, STR("Stderr"));

	if (stream.p && !out && !err && !str_eq(stream, STR("All")))
		return refuse(c, 422, "Invalid request.");
	if ((out || err) && tailed)
		return refuse(c, 422, "Invalid request.");
	q->options.no_stdout = err;
	q->options.no_stderr = out;
	return 0;
}

static int read_request(struct kubelet_call *c, struct log_request *q)
{
	str old = call_query(c, STR("tail"));
	bool tailed, limited;

	*q = (struct log_request){ .options = LOGS_OPTIONS_INIT, .previous = flag(c, STR("previous")) };
	q->options.follow = flag(c, STR("follow"));
	q->options.timestamps = flag(c, STR("timestamps"));
	if (number_of(c, old.n ? STR("tail") : STR("tailLines"), &q->options.tail, &tailed) < 0) {
		if (!str_eq(old, STR("all")))
			return refuse(c, 400, "Unable to decode query.");
		tailed = false;
	}
	if (number_of(c, STR("limitBytes"), &q->options.limit, &limited) < 0)
		return refuse(c, 400, "Unable to decode query.");
	if ((tailed && q->options.tail < 0) || (limited && q->options.limit < 1))
		return refuse(c, 422, "Invalid request.");
	return read_since(c, q) < 0 ? -1 : read_stream(c, q, tailed);
}

/* ---- whose log ---- */

static struct val status_of_container(struct val status, str name)
{
	const struct val lists[] = { val_get(status, containerStatuses), val_get(status, initContainerStatuses),
				     val_get(status, ephemeralContainerStatuses) };

	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		VAL_EACH(one, lists[i])
			if (str_eq(val_str(*one, name), name))
				return *one;
	return VAL_EMPTY;
}

static str waiting_text(str reason)
{
	if (str_eq(reason, STR("ErrImagePull")))
		return STR("image can't be pulled");
	return str_eq(reason, STR("ImagePullBackOff")) ? STR("trying and failing to pull image") : reason;
}

/* The id of the container whose log it is ("containerd://..."); empty: it was answered. */
static str log_container(struct kubelet_call *c, struct val pod, bool previous)
{
	str name = call_quoted(c, c->parts[3]), of = call_quoted(c, val_str(pod, metadata, name));
	struct val status = status_of_container(val_get(pod, status), c->parts[3]);
	struct val state = val_get(status, state);
	str last = val_str(status, lastState, terminated, containerID), id = STR_NONE;
	const char *which = "", *why = "is terminated";
	str reason = waiting_text(val_str(state, waiting, reason));

	if (!val_exists(status)) {
		why = "is not available";
	} else if (previous) {
		id = last;
		which = "previous terminated ";
		why = "not found";
	} else if (val_has(state, running)) {
		id = val_str(status, containerID);
		why = "is not available";
	} else if (val_has(state, terminated)) {
		id = val_str(state, terminated, containerID);
		id = id.n ? id : last;
	} else if (val_has(status, lastState, terminated)) {
		id = last;
	} else if (val_has(state, waiting)) {
		why = arena_printf(c->arena, "is waiting to start: " STR_FMT, STR_ARG(reason)).p;
	} else {
		why = "is waiting to start - no logs yet";
	}
	if (!id.n)
		call_error(c, 400, "%scontainer " STR_FMT " in pod " STR_FMT " %s", which, STR_ARG(name), STR_ARG(of), why);
	return id;
}

/* ---- passing it on ---- */

struct log_stream {
	struct pump *pump;
	struct cri *cri;
	str id;
};

static int write_text(void *arg, enum logs_stream stream, str text, struct err *err)
{
	struct log_stream *s = arg;

	(void)stream;
	return pump_write(s->pump, text, err);
}

/* (suspends) */
static int container_status(struct cri *cri, struct arena *a, str id, struct val *ret, struct err *err)
{
	struct val answer;
	int r = cri_ask(cri, &rpc_RuntimeService_ContainerStatus, a, OBJECT(a, F(containerId, val_of_str(id))), 0, &answer, err);

	if (r == 0)
		*ret = val_get(answer, status);
	return r;
}

/* A runtime that cannot be asked does not end the log. */
static bool still_running(void *arg)
{
	struct log_stream *s = arg;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val status;

	if (pump_is_stopped(s->pump))
		return false;
	int r = container_status(s->cri, &a, s->id, &status, NULL);
	return r < 0 ? r != -ERR_NOT_FOUND && r != -ERR_CANCELED : str_eq(val_str(status, state), STR("CONTAINER_RUNNING"));
}

/* (suspends) */
static int read_log(struct kubelet_call *c, struct log_stream *s, str full_id, const struct logs_options *o, struct err *err)
{
	struct logs_reader reader = { .write = write_text, .running = still_running, .arg = s };
	struct val status;

	if (container_status(s->cri, c->arena, s->id, &status, NULL) < 0)
		return err_set(err, ERR_NOT_FOUND, "unable to retrieve container logs for " STR_FMT, STR_ARG(full_id));
	str path = arena_str(c->arena, val_str(status, logPath));
	int r = logs_read(path.p, o, &reader, err);
	if (r == -ERR_NOT_FOUND)
		return err_set(err, ERR_NOT_FOUND, "failed to try resolving symlinks in path \"" STR_FMT "\": lstat " STR_FMT
			       ": no such file or directory", STR_ARG(path), STR_ARG(path));
	return r;
}

static int stream_log(struct kubelet_call *c, str full_id, const struct logs_options *o)
{
	ptrdiff_t at = str_find(full_id, STR("://"));
	struct err err = ERR_INIT;
	struct log_stream s = { .pump = pump_begin(c->x, STR("text/plain; charset=utf-8")), .cri = c->o->cri,
				.id = at < 0 ? full_id : str_skip(full_id, (size_t)at + 3) };
	int r = read_log(c, &s, full_id, o, &err);

	if (r < 0 && r != -ERR_CANCELED)
		(void)pump_write(s.pump, err_str(&err), NULL);
	pump_end(s.pump);
	return 0;
}

int call_logs(struct kubelet_call *c)
{
	struct log_request q;

	if (read_request(c, &q) < 0)
		return 0;
	struct val pod = call_pod(c);
	str of = call_quoted(c, c->parts[2]), name = call_quoted(c, c->parts[3]);
	if (!val_exists(pod)) {
		call_error(c, 404, "pod " STR_FMT " does not exist", STR_ARG(of));
		return 0;
	}
	if (!val_exists(container_spec_of(pod, c->parts[3]))) {
		call_error(c, 404, "container " STR_FMT " not found in pod " STR_FMT, STR_ARG(name), STR_ARG(of));
		return 0;
	}
	str id = log_container(c, pod, q.previous);
	return id.n ? stream_log(c, arena_str(c->arena, id), &q.options) : 0;
}
