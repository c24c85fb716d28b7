/* Where in the object a decoder is, in the two notations that Kubernetes has for it, and the messages made of them. */
#include "base/buf.h"
#include "codec/assemble.h"

enum { PATH_MAX_BYTES = 64 << 10, NOTES_MAX = 10000 };

/* spec.containers[0].ports: the way to the innermost frame. */
static void strict_path(struct buf *b, const struct assembly *as)
{
	for (uint32_t i = 0; i + 1 < as->n_frames; i++) {
		const struct frame *f = &as->frames[i];
		if (f->kind == FRAME_LIST || f->kind == FRAME_FREE_LIST)
			buf_addf(b, "[%u]", as->frames[i + 1].base - f->base);
		else if (f->kind == FRAME_STRUCT)
			buf_addf(b, "%s" STR_FMT, b->n ? "." : "", STR_ARG(atom_str(f->key)));
		else
			buf_addf(b, "%s" STR_FMT, b->n ? "." : "", STR_ARG(f->key_text));
	}
}

void strict_note(struct assembly *as, const char *what, str field, uint32_t clock)
{
	CLEANUP(buf_done) struct buf path = BUF_INIT(PATH_MAX_BYTES), text = BUF_INIT(4 * PATH_MAX_BYTES);
	struct strict_errors *s = as->strict;

	/* The same mistake in a thousand places has a thousand paths to look at; some day it is enough. */
	if (s->n == ARRAY_LEN(s->text) || as->n_noted++ >= NOTES_MAX)
		return;
	strict_path(&path, as);
	if (path.n)
		buf_addc(&path, '.');
	buf_add(&path, field);
	buf_addf(&text, "%s ", what);
	buf_add_quoted(&text, buf_str(&path));
	for (size_t i = 0; i < s->n; i++)
		if (str_eq(s->text[i], buf_str(&text)))
			return;
	size_t at = s->n++;
	for (; at > as->strict_base && as->strict_when[at - 1] > clock; at--) {
		s->text[at] = s->text[at - 1];
		as->strict_when[at] = as->strict_when[at - 1];
	}
	s->text[at] = arena_str(s->arena, buf_str(&text));
	as->strict_when[at] = clock;
}

int strict_errors_fail(const struct strict_errors *s, struct err *err)
{
	CLEANUP(buf_done) struct buf all = BUF_INIT(sizeof(err->msg));

	if (!s->n)
		return 0;
	for (size_t i = 0; i < s->n && !all.overflow; i++)
		buf_addf(&all, "%s" STR_FMT, i ? ", " : "", STR_ARG(s->text[i]));
	return err_set(err, ERR_BAD_REQUEST, "strict decoding error: " STR_FMT "%s", STR_ARG(buf_str(&all)),
		       all.overflow ? ", ..." : "");
}

/* The names of the Go structs that a flattened field stands in: VolumeSource, ProbeHandler; TypeMeta in kinds. */
static void embedded_path(struct buf *b, const struct type *type, atom name)
{
	const struct field *f = type_field(type, name);

	while (f->flags & FIELD_EMBEDDED) {
		const struct type *inside = NULL;
		for (uint32_t i = 0; i < type->n_wire && !inside; i++)
			if (type->wire[i].embedded && type_field(type->wire[i].embedded, name))
				inside = type->wire[i].embedded;
		if (!inside)
			return;
		buf_addf(b, STR_FMT ".", STR_ARG(inside->name));
		type = inside;
		f = type_field(type, name);
	}
	if (type->flags & TYPE_KIND && f < type->fields + 2)
		buf_add(b, STR("TypeMeta."));
}

str misfit_message(struct assembly *as, const struct misfit *m)
{
	CLEANUP(buf_done) struct buf path = BUF_INIT(PATH_MAX_BYTES);
	const struct type *holder = NULL;
	bool inside_form = false;

	if (!m->value.n)
		return m->text;
	for (uint32_t i = 0; i < as->n_frames; i++) {
		const struct frame *f = &as->frames[i];
		inside_form |= f->form;
		if (f->kind != FRAME_STRUCT)
			continue;
		/* A decoder that runs inside a form does not get to name its struct. */
		if (!inside_form || !holder)
			holder = f->type;
		if (path.n)
			buf_addc(&path, '.');
		embedded_path(&path, f->type, f->key);
		buf_add(&path, atom_str(f->key));
	}
	if (!holder)
		return arena_printf(as->arena, "json: cannot unmarshal " STR_FMT " into Go value of type " STR_FMT,
				    STR_ARG(m->value), STR_ARG(m->go_type));
	return arena_printf(as->arena, "json: cannot unmarshal " STR_FMT " into Go struct field " STR_FMT "." STR_FMT
				       " of type " STR_FMT,
			    STR_ARG(m->value), STR_ARG(holder->name), STR_ARG(buf_str(&path)), STR_ARG(m->go_type));
}
