/*
 * Stories of server-side apply as tables. A row { "= apiVersion Kind reset...", title } begins a story with no object;
 * the others are its steps, each a second after the one before:
 *
 *	{ "apply MANAGER [force] [sub=..] [reset=..|only=..] [kind=..] [version=..] [at=..]", patch, want, managed }
 *	{ "update MANAGER ...", object, want, managed }
 *
 * version and kind are what the patch says of itself, at is the version of the request, if it is not that of the story.
 * Objects are given and shown without apiVersion, kind and name. managed lists the managers as
 * "NAME OPERATION[ version][/subresource] [@SECOND ]FIELDS | ..."; after a conflict, "field: message | ...".
 */
#ifndef C8S_MACHINERY_APPLY_TESTING_H
#define C8S_MACHINERY_APPLY_TESTING_H

#include "codec/atoms.h"
#include "codec/codec.h"
#include "machinery/apply.h"
#include "machinery/testing.h"

struct story_row {
	const char *what, *object, *want, *managed;
};

struct story {
	struct arena *arena;
	struct apply_request req;
	struct apply_reset reset;
	const char *paths[4];       /* of reset, for the whole story */
	str api_version;            /* of the story */
	struct val live;
	int64_t second;
};

enum { STORY_BEGIN = 1767225600 }; /* 2026-01-01T00:00:00Z */

/* Words of a row, cut off one after the other. */
TESTING str story_word(str *rest)
{
	str word;
	str_cut(*rest, ' ', &word, rest);
	return word;
}

TESTING void story_begin(struct story *s, struct arena *a, const char *what)
{
	str rest = str_of(what + 2);
	size_t n = 0;

	*s = (struct story){ .arena = a, .second = -1 };
	s->req.api_version = s->api_version = story_word(&rest);
	s->req.kind = story_word(&rest);
	s->req.type = schema_kind(s->req.api_version, s->req.kind);
	s->req.custom = apply_type_deduced();
	while (rest.n && n < ARRAY_LEN(s->paths) - 1)
		s->paths[n++] = arena_str(a, story_word(&rest)).p;
}

/* One step's options; the object gets what every object has. */
TESTING struct val story_object(struct story *s, str options, const char *quoted, bool *ret_force)
{
	struct arena *a = s->arena;
	struct val o = testing_tree(a, quoted), version = val_of_str(s->api_version), kind = val_of_str(s->req.kind);
	const char **path = (const char **)arena_zero_of(a, 2 * sizeof(char *), _Alignof(char *));

	s->reset = (struct apply_reset){ .api_version = s->api_version, .fields = s->paths };
	s->req.subresource = STR_NONE;
	s->req.api_version = s->api_version;
	while (options.n) {
		str word = story_word(&options), value = str_skip(word, (size_t)str_chr(word, '=') + 1);
		*ret_force |= str_eq(word, STR("force"));
		if (str_starts(word, STR("sub=")))
			s->req.subresource = value;
		else if (str_starts(word, STR("version=")))
			version = value.n ? val_of_str(value) : VAL_EMPTY;
		else if (str_starts(word, STR("kind=")))
			kind = value.n ? val_of_str(value) : VAL_EMPTY;
		else if (str_starts(word, STR("at=")))
			version = val_of_str(s->req.api_version = value);
		bool reset = str_starts(word, STR("reset=")), only = str_starts(word, STR("only="));
		if (reset || only)
			path[0] = arena_str(a, value).p;
		s->reset.fields = reset ? path : s->reset.fields;
		s->reset.only = only ? path : s->reset.only;
	}
	o = val_with(a, val_with(a, o, version, apiVersion), kind, kind);
	return val_with(a, o, VAL_LIT("n"), metadata, name);
}

TESTING struct val story_typed(struct story *s, struct val object)
{
	struct err err = ERR_INIT;
	if (s->req.type && val_canonical(s->arena, object, s->req.type, NULL, &object, &err) < 0)
		fail_msg("%s", err.msg);
	return object;
}

TESTING str story_managed(struct story *s, struct val object)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	VAL_EACH(e, val_get(object, metadata, managedFields)) {
		struct timestamp t = { 0, 0 };
		buf_addf(&b, "%s" STR_FMT " " STR_FMT, b.n ? " | " : "", STR_ARG(val_str(*e, manager)),
			 STR_ARG(val_str(*e, operation)));
		if (!str_eq(val_str(*e, apiVersion), s->req.api_version))
			buf_addf(&b, " " STR_FMT, STR_ARG(val_str(*e, apiVersion)));
		if (val_has(*e, subresource))
			buf_addf(&b, "/" STR_FMT, STR_ARG(val_str(*e, subresource)));
		buf_addc(&b, ' ');
		if (val_has(*e, time) && time_parse(val_str(*e, time), &t, NULL) == 0)
			buf_addf(&b, "@%d ", (int)(t.seconds - STORY_BEGIN));
		buf_add(&b, val_str(*e, fieldsV1));
	}
	return testing_swap(s->arena, buf_str(&b), '"', '\'');
}

TESTING str story_conflicts(struct story *s, const struct apply_conflicts *conflicts)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	for (size_t i = 0; i < conflicts->n; i++)
		buf_addf(&b, "%s" STR_FMT ": " STR_FMT, i ? " | " : "", STR_ARG(conflicts->v[i].field),
			 STR_ARG(conflicts->v[i].message));
	return testing_swap(s->arena, buf_str(&b), '"', '\'');
}

/* Without what story_object adds. Built-in objects are shown as their JSON is. */
TESTING str story_shown(struct story *s, struct val object)
{
	struct arena *a = s->arena;
	struct err err = ERR_INIT;
	struct val o = val_without(a, val_without(a, object, apiVersion), kind);

	int r = patch_document(a, o, s->req.type, &o, &err);
	o = val_without(a, val_without(a, val_without(a, o, metadata, name), metadata, uid), metadata, managedFields);
	if (!val_len(val_get(o, metadata)))
		o = val_without(a, o, metadata);
	return testing_result(a, r, o, &err);
}

TESTING void story_step(struct story *s, size_t row, const struct story_row *t)
{
	struct arena *a = s->arena;
	str rest = str_of(t->what), verb = story_word(&rest), shown, managed;
	struct apply_conflicts conflicts = { .n = 0 };
	struct err err = ERR_INIT;
	struct val out;
	bool force = false;
	int r;

	s->req.manager = story_word(&rest);
	struct val object = story_object(s, rest, t->object, &force);
	s->req.now = (struct timestamp){ STORY_BEGIN + ++s->second, 0 };
	s->req.resets = &s->reset;
	s->req.n_resets = 1;
	if (s->req.converter && val_exists(s->live)) {
		struct apply_type type;
		CHECK_ROW(row, s->req.converter->convert(s->req.converter, a, s->live, s->req.api_version, &s->live,
							 &type, &err) == 0);
	}
	if (str_eq(verb, STR("apply"))) {
		r = apply_patch(a, &s->req, s->live, object, force, &out, &conflicts, &err);
	} else {
		if (val_exists(s->live))
			object = val_with(a, object, VAL_LIT("u"), metadata, uid);
		r = apply_update(a, &s->req, s->live, story_typed(s, object), &out, &err);
	}
	if (r < 0) {
		shown = arena_join(a, STR("! "), conflicts.n ? conflicts.message : err_str(&err));
		CHECK_STR_ROW(row, testing_swap(a, shown, '"', '\''), t->want);
		CHECK_STR_ROW(row, story_conflicts(s, &conflicts), t->managed);
		return;
	}
	shown = story_shown(s, out);
	managed = story_managed(s, out);
	CHECK_STR_ROW(row, shown, t->want);
	CHECK_STR_ROW(row, managed, t->managed);
	s->live = val_with(a, out, VAL_LIT("u"), metadata, uid);
	if (s->req.type) /* the next step gets it as from a store */
		s->live = story_typed(s, s->live);
}

TESTING void stories_run(const struct story_row *t, size_t n, const struct apply_converter *converter)
{
	struct arena a = ARENA_INIT;
	struct story s;

	for (size_t i = 0; i < n; i++) {
		if (t[i].what[0] != '=') {
			story_step(&s, i, &t[i]);
			continue;
		}
		arena_reset(&a);
		story_begin(&s, &a, t[i].what);
		s.req.converter = converter;
	}
	arena_done(&a);
}

#endif
