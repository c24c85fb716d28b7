#include "kubelet/pod_fake.h"

#include "base/buf.h"
#include "base/test.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "codec/types.h"
#include "kubelet/cri_config.h"
#include "kubelet/pod_rules.h"

struct val fake_pod(struct arena *a, const char *spec)
{
	str text = arena_printf(a, "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u\",\"generation\":1},"
				   "\"spec\":%s}", spec);
	struct err err = ERR_INIT;
	struct val pod;

	if (json_decode(a, text, &(struct json_decode_options){ .type = TYPE(core_v1, Pod) }, &pod, &err) < 0)
		fail_msg("%s", err.msg);
	return pod;
}

/* The next word of *text; false at its end. */
static bool next_word(str *text, str *ret)
{
	str_cut(*text, ' ', ret, text);
	return ret->n > 0;
}

static struct val fake_container(struct arena *a, struct val pod, str word)
{
	str name, rest, state, attempt;
	int64_t n = 0, code = 0;
	const char *cri = "CONTAINER_UNKNOWN";
	str reason = STR_NONE;

	str_cut(word, ':', &name, &rest);
	str_cut(rest, '#', &state, &attempt);
	str_to_i64(attempt, &n);
	bool changed = str_ends(state, STR("!"));
	if (str_starts(state, STR("run"))) {
		cri = "CONTAINER_RUNNING";
	} else if (str_starts(state, STR("exit"))) {
		cri = "CONTAINER_EXITED";
		str_to_i64(str_skip(state, 4), &code);
		reason = code ? STR("Error") : STR("Completed");
	} else if (str_starts(state, STR("oom"))) {
		cri = "CONTAINER_EXITED";
		reason = STR("OOMKilled");
	} else if (str_starts(state, STR("made"))) {
		cri = "CONTAINER_CREATED";
	}
	struct val notes = val_object(a, (const struct member[]){
		{ atom_make(a, STR("io.kubernetes.container.hash")),
		  VAL_STR(changed ? STR("0") : arena_printf(a, "%x", (unsigned)container_hash(pod_find_container(pod, name)))) },
		{ atom_make(a, STR("io.kubernetes.container.restartCount")), VAL_STR(attempt) } }, 2);
	int64_t at = (100 + 10 * n) * INT64_C(1000000000);
	return OBJECT(a, F(id, VAL_STR(arena_printf(a, STR_FMT "%d", STR_ARG(name), (int)n))),
		      F(metadata, OBJECT(a, F(name, VAL_STR(name)), F(attempt, val_of_int(n)))), F(state, VAL_STR(str_of(cri))),
		      F(createdAt, val_of_int(at)), F(startedAt, val_of_int(at)), F(finishedAt, val_of_int(at + 1)),
		      F(exitCode, val_of_int(code)), F(image, OBJECT(a, F(image, VAL_LIT("i:1")))), F(imageRef, VAL_LIT("sha256:1")),
		      F(reason, reason.n ? VAL_STR(reason) : VAL_EMPTY), F(annotations, notes));
}

struct val fake_containers(struct arena *a, struct val pod, const char *text)
{
	struct val_builder b = val_builder(a);
	str rest = str_of(text), word;

	while (next_word(&rest, &word))
		val_add_item(&b, fake_container(a, pod, word));
	return val_end_list(&b);
}

struct val fake_sandboxes(struct arena *a, const char *text)
{
	struct val_builder b = val_builder(a);
	str rest = str_of(text), word, state, attempt;

	while (next_word(&rest, &word)) {
		int64_t n = 0;
		str_cut(word, '#', &state, &attempt);
		str_to_i64(attempt, &n);
		bool host = str_eq(state, STR("host")), addressed = str_eq(state, STR("ready"));
		struct val options = OBJECT(a, F(network, VAL_STR(host ? STR("NODE") : STR("POD"))));
		val_add_item(&b, OBJECT(a, F(id, VAL_STR(arena_printf(a, "s%d", (int)n))),
					F(metadata, OBJECT(a, F(attempt, val_of_int(n)))),
					F(state, str_eq(state, STR("gone")) ? VAL_LIT("SANDBOX_NOTREADY") : VAL_LIT("SANDBOX_READY")),
					F(createdAt, val_of_int((99 + 100 * n) * INT64_C(1000000000))),
					F(network, OBJECT(a, F(ip, addressed ? VAL_LIT("10.1.0.5") : VAL_EMPTY))),
					F(linux, OBJECT(a, F(namespaces, OBJECT(a, F(options, options)))))));
	}
	return val_end_list(&b);
}

static struct container_note *note_of(struct container_note *list, size_t *n, str name)
{
	for (size_t i = 0; i < *n; i++)
		if (str_eq(list[i].name, name))
			return &list[i];
	assert_true(*n < FAKE_NOTES_MAX);
	list[*n] = (struct container_note){ .name = name };
	return &list[(*n)++];
}

size_t fake_notes(struct arena *a, const char *text, struct container_note ret[FAKE_NOTES_MAX])
{
	str rest = str_of(text), word, name, what;
	int64_t seconds;
	size_t n = 0;

	while (next_word(&rest, &word)) {
		if (str_cut(word, '=', &name, &what)) {
			note_of(ret, &n, name)->waiting_reason = arena_str(a, what);
		} else if (str_cut(word, '@', &name, &what) && str_to_i64(what, &seconds)) {
			note_of(ret, &n, name)->backoff_until_ns = seconds * INT64_C(1000000000);
		} else {
			str_cut(word, '+', &name, &what);
			if (str_eq(what, STR("started")))
				note_of(ret, &n, name)->started = true;
			else
				note_of(ret, &n, name)->ready = true;
		}
	}
	return n;
}

/* ---- statuses ---- */

static void show_reason(struct buf *b, str reason, str message)
{
	if (reason.n)
		buf_addf(b, "(" STR_FMT "%s" STR_FMT ")", STR_ARG(reason), message.n ? ": " : "", STR_ARG(message));
}

static void show_conditions(struct buf *b, struct val conditions)
{
	static const char *const names[][2] = { { "PodReadyToStartContainers", "sandbox" }, { "Initialized", "init" },
						{ "Ready", "ready" }, { "ContainersReady", "containers" },
						{ "PodScheduled", "scheduled" } };
	str shown = STR_NONE;

	VAL_EACH(c, conditions) {
		str type = val_str(*c, type), reason = val_str(*c, reason);
		for (size_t i = 0; i < ARRAY_LEN(names); i++)
			if (str_eq(type, str_of(names[i][0])))
				type = str_of(names[i][1]);
		buf_addf(b, " " STR_FMT "%s", STR_ARG(type), str_eq(val_str(*c, status), STR("True")) ? "+" : "-");
		if (!str_eq(reason, shown))
			show_reason(b, reason, val_str(*c, message));
		shown = reason;
	}
}

static void show_state(struct buf *b, struct val state)
{
	struct val w = val_get(state, waiting), t = val_get(state, terminated);

	if (val_has(state, running))
		buf_add(b, STR(" running"));
	if (val_exists(w))
		buf_addf(b, " waiting " STR_FMT, STR_ARG(val_str(w, reason)));
	if (val_exists(t))
		buf_addf(b, " terminated %d " STR_FMT, (int)val_int(t, exitCode), STR_ARG(val_str(t, reason)));
}

static void show_containers(struct buf *b, struct val list)
{
	VAL_EACH(c, list) {
		buf_addf(b, " | " STR_FMT, STR_ARG(val_str(*c, name)));
		show_state(b, val_get(*c, state));
		if (val_len(val_get(*c, lastState))) {
			buf_add(b, STR(" last"));
			show_state(b, val_get(*c, lastState));
		}
		if (val_bool(*c, started))
			buf_add(b, STR(" started"));
		if (val_bool(*c, ready))
			buf_add(b, STR(" ready"));
		if (val_int(*c, restartCount))
			buf_addf(b, " #%d", (int)val_int(*c, restartCount));
	}
}

str fake_show(struct arena *a, struct val status)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(65536);

	buf_add(&b, val_str(status, phase));
	show_reason(&b, val_str(status, reason), val_str(status, message));
	buf_add(&b, STR(" |"));
	show_conditions(&b, val_get(status, conditions));
	show_containers(&b, val_get(status, initContainerStatuses));
	show_containers(&b, val_get(status, containerStatuses));
	show_containers(&b, val_get(status, ephemeralContainerStatuses));
	return arena_str(a, buf_str(&b));
}
