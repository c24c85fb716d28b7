#include "machinery/field_selector.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "codec/atoms.h"

enum { TEXT_MAX = 4 << 20 };

/* ---- parsing ---- */

static int compare_strs(const void *x, const void *y) { return str_cmp(*(const str *)x, *(const str *)y); }

/* The terms between commas that no backslash precedes, in the order of their texts. */
static size_t split_terms(struct arena *a, str text, str **ret)
{
	size_t n = 0, commas = 0, start = 0;
	for (size_t i = 0; i < text.n; i++)
		commas += text.p[i] == ',';
	str *all = ARENA_ARRAY(a, str, commas + 1);
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '\\') {
			i++;
		} else if (text.p[i] == ',') {
			all[n++] = str_span(text.p + start, i - start);
			start = i + 1;
		}
	}
	all[n++] = str_skip(text, start);
	qsort(all, n, sizeof(*all), compare_strs);
	*ret = all;
	return n;
}

static bool split_operator(str term, struct field_term *ret)
{
	for (size_t i = 0; i < term.n; i++) {
		str rest = str_skip(term, i);
		bool not_equals = str_starts(rest, STR("!="));
		if (!not_equals && rest.p[0] != '=')
			continue;
		size_t length = not_equals || str_starts(rest, STR("==")) ? 2 : 1;
		*ret = (struct field_term){ .field = str_head(term, i), .value = str_skip(rest, length), .negated = not_equals };
		return true;
	}
	return false;
}

static bool needs_escape(char c) { return c == '\\' || c == ',' || c == '='; }

static int unescape(struct arena *a, str s, str *ret, struct err *err)
{
	char *out = arena_alloc(a, s.n + 1, 1);
	size_t n = 0;
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		if (c == ',' || c == '=')
			return err_set(err, ERR_BAD_REQUEST, "invalid field selector: unescaped character in value: %d", c);
		if (c == '\\') {
			str next = str_skip(s, ++i);
			if (next.n == 0 || !needs_escape(next.p[0])) {
				size_t length = str_rune(next, NULL);
				str shown = next.n && !length ? STR("\xef\xbf\xbd") : str_head(next, length);
				return err_set(err, ERR_BAD_REQUEST, "invalid field selector: invalid escape sequence: \\" STR_FMT,
					       STR_ARG(shown));
			}
			c = next.p[0];
		}
		out[n++] = c;
	}
	out[n] = '\0';
	*ret = str_span(out, n);
	return 0;
}

int field_selector_parse(struct arena *a, str text, struct field_selector *ret, struct err *err)
{
	str *parts, copy = arena_str(a, text);
	size_t n_parts = split_terms(a, copy, &parts), n = 0;
	struct field_term *terms = ARENA_ARRAY(a, struct field_term, n_parts);

	for (size_t i = 0; i < n_parts; i++) {
		if (parts[i].n == 0)
			continue;
		if (!split_operator(parts[i], &terms[n]))
			return err_set(err, ERR_BAD_REQUEST, "invalid selector: '" STR_FMT "'; can't understand '" STR_FMT "'",
				       STR_ARG(text), STR_ARG(parts[i]));
		int r = unescape(a, terms[n].value, &terms[n].value, err);
		if (r < 0)
			return r;
		if (terms[n].field.n || terms[n].value.n)
			n++;
	}
	*ret = (struct field_selector){ n, terms };
	return 0;
}

str field_selector_text(struct arena *a, const struct field_selector *s)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(TEXT_MAX);
	for (size_t i = 0; i < s->n; i++) {
		const struct field_term *t = &s->terms[i];
		if (i)
			buf_addc(&b, ',');
		buf_add(&b, t->field);
		buf_add(&b, t->negated ? STR("!=") : STR("="));
		for (size_t j = 0; j < t->value.n; j++) {
			if (needs_escape(t->value.p[j]))
				buf_addc(&b, '\\');
			buf_addc(&b, t->value.p[j]);
		}
	}
	return arena_str(a, buf_str(&b));
}

/* ---- fields ---- */

enum field_form {
	TEXT,
	BOOL,   /* true or false, also when absent */
	INT,    /* 0 when absent */
	ANY,    /* as Go prints the value; custom resources */
	ABSENT, /* accepted, but no object has it */
};

/*
 * A field label. The value is found by following the name; where the object calls it differently, path says how. The first of the
 * paths (separated by spaces) that leads to something not empty counts.
 */
struct label {
	const char *name;
	enum field_form form; /* TEXT unless said otherwise */
	const char *path;
	const char *alias_of; /* the main name of the same field */
};

/* How to read a bound field: its paths as atoms, each ended by 0, and another 0 behind the last. */
struct field_access {
	enum field_form form;
	const atom *paths;
};

#define META { .name = "metadata.name" }, { .name = "metadata.namespace" }

static const struct label pod_labels[] = {
	META,
	{ .name = "spec.nodeName" },
	{ .name = "spec.host", .alias_of = "spec.nodeName" },
	{ .name = "spec.restartPolicy" },
	{ .name = "spec.schedulerName" },
	{ .name = "spec.serviceAccountName" },
	{ .name = "spec.hostNetwork", .form = BOOL },
	{ .name = "status.phase" },
	{ .name = "status.podIP", .path = "status.podIP status.podIPs.0.ip" },
	{ .name = "status.podIPs", .form = ABSENT },
	{ .name = "status.nominatedNodeName" },
	{ 0 },
};

static const struct label node_labels[] = {
	{ .name = "metadata.name" },
	{ .name = "spec.unschedulable", .form = BOOL },
	{ 0 },
};

static const struct label namespace_labels[] = {
	{ .name = "metadata.name" },
	{ .name = "status.phase" },
	{ 0 },
};

static const struct label replication_controller_labels[] = {
	META,
	{ .name = "status.replicas", .form = INT },
	{ 0 },
};

static const struct label secret_labels[] = { META, { .name = "type" }, { 0 } };

static const struct label service_labels[] = {
	META,
	{ .name = "spec.clusterIP" },
	{ .name = "spec.type" },
	{ 0 },
};

static const struct label job_labels[] = {
	META,
	{ .name = "status.successful", .form = INT, .path = "status.succeeded" },
	{ 0 },
};

static const struct label signer_labels[] = {
	{ .name = "metadata.name" },
	{ .name = "spec.signerName" },
	{ 0 },
};

static const struct label pod_certificate_request_labels[] = {
	{ .name = "metadata.name" },
	{ .name = "spec.signerName" },
	{ .name = "spec.podName" },
	{ .name = "spec.nodeName" },
	{ 0 },
};

static const struct label resource_slice_labels[] = {
	{ .name = "metadata.name" },
	{ .name = "spec.nodeName" },
	{ .name = "spec.driver" },
	{ 0 },
};

/* An Event has other field names in each of its groups; the main ones are those of the core group. */
#define INVOLVED(field) { .name = "involvedObject." field, .path = "involvedObject." field " regarding." field }
#define REGARDING(field) \
	{ .name = "regarding." field, .path = "involvedObject." field " regarding." field, .alias_of = "involvedObject." field }
#define REPORTING "reportingComponent reportingController"

static const struct label event_labels[] = {
	META,
	INVOLVED("kind"), INVOLVED("namespace"), INVOLVED("name"), INVOLVED("uid"),
	INVOLVED("apiVersion"), INVOLVED("resourceVersion"), INVOLVED("fieldPath"),
	{ .name = "reason" },
	{ .name = "type" },
	{ .name = "reportingComponent", .path = REPORTING },
	{ .name = "source", .path = "source.component deprecatedSource.component " REPORTING },
	{ 0 },
};

static const struct label new_event_labels[] = {
	META,
	REGARDING("kind"), REGARDING("namespace"), REGARDING("name"), REGARDING("uid"),
	REGARDING("apiVersion"), REGARDING("resourceVersion"), REGARDING("fieldPath"),
	{ .name = "reason" },
	{ .name = "type" },
	{ .name = "reportingController", .path = REPORTING, .alias_of = "reportingComponent" },
	{ 0 },
};

static const struct label default_labels[] = { META, { 0 } };

/* How kinds word that they do not have a field. */
enum complaint { NOT_SUPPORTED, NOT_SUPPORTED_FOR_JOB, NOT_SUPPORTED_FOR_KIND, NOT_KNOWN };

static const struct {
	str group, kind;
	const struct label *labels;
	enum complaint complaint;
} kinds[] = {
	{ STR_INIT(""), STR_INIT("Pod"), pod_labels, NOT_SUPPORTED },
	{ STR_INIT(""), STR_INIT("Node"), node_labels, NOT_SUPPORTED },
	{ STR_INIT(""), STR_INIT("Namespace"), namespace_labels, NOT_SUPPORTED },
	{ STR_INIT(""), STR_INIT("ReplicationController"), replication_controller_labels, NOT_SUPPORTED },
	{ STR_INIT(""), STR_INIT("Secret"), secret_labels, NOT_SUPPORTED },
	{ STR_INIT(""), STR_INIT("Service"), service_labels, NOT_SUPPORTED },
	{ STR_INIT(""), STR_INIT("Event"), event_labels, NOT_SUPPORTED },
	{ STR_INIT("events.k8s.io"), STR_INIT("Event"), new_event_labels, NOT_SUPPORTED },
	{ STR_INIT("batch"), STR_INIT("Job"), job_labels, NOT_SUPPORTED_FOR_JOB },
	{ STR_INIT("certificates.k8s.io"), STR_INIT("CertificateSigningRequest"), signer_labels, NOT_SUPPORTED },
	{ STR_INIT("certificates.k8s.io"), STR_INIT("ClusterTrustBundle"), signer_labels, NOT_SUPPORTED },
	{ STR_INIT("certificates.k8s.io"), STR_INIT("PodCertificateRequest"), pod_certificate_request_labels, NOT_SUPPORTED },
	{ STR_INIT("resource.k8s.io"), STR_INIT("ResourceSlice"), resource_slice_labels, NOT_SUPPORTED_FOR_KIND },
};

static int complain(enum complaint complaint, const struct type *kind, str field, struct err *err)
{
	CLEANUP(buf_done) struct buf quoted = BUF_INIT(TEXT_MAX);
	buf_add_quoted(&quoted, field);
	switch (complaint) {
	case NOT_SUPPORTED: break;
	case NOT_SUPPORTED_FOR_JOB:
		return err_set(err, ERR_BAD_REQUEST, "field label " STR_FMT " not supported for Job", STR_ARG(buf_str(&quoted)));
	case NOT_SUPPORTED_FOR_KIND:
		return err_set(err, ERR_BAD_REQUEST,
			       "field label not supported for " STR_FMT "/" STR_FMT ", Kind=" STR_FMT ": " STR_FMT,
			       STR_ARG(kind->package->group), STR_ARG(kind->package->version), STR_ARG(kind->name), STR_ARG(field));
	case NOT_KNOWN:
		return err_set(err, ERR_BAD_REQUEST,
			       STR_FMT " is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
			       STR_ARG(buf_str(&quoted)));
	}
	return err_set(err, ERR_BAD_REQUEST, "field label not supported: " STR_FMT, STR_ARG(field));
}

/* ---- binding ---- */

static const struct field_access *compile(struct arena *a, enum field_form form, str paths)
{
	struct field_access *access = ARENA_NEW(a, struct field_access);
	atom *out = ARENA_ARRAY(a, atom, paths.n + 3); /* a step is at least one character and what separates it */
	access->form = form;
	access->paths = out;
	for (bool more = paths.n > 0; more;) {
		str path, step;
		more = str_cut(paths, ' ', &path, &paths);
		for (bool deeper = true; deeper;) {
			deeper = str_cut(path, '.', &step, &path);
			*out++ = atom_make(a, step);
		}
		*out++ = 0;
	}
	*out = 0;
	return access;
}

int field_selector_bind(struct arena *a, struct field_selector *s, const struct type *kind, struct err *err)
{
	const struct label *labels = default_labels;
	enum complaint complaint = NOT_KNOWN;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (str_eq(kinds[i].group, kind->package->group) && str_eq(kinds[i].kind, kind->name)) {
			labels = kinds[i].labels;
			complaint = kinds[i].complaint;
		}
	for (size_t i = 0; i < s->n; i++) {
		struct field_term *t = &s->terms[i];
		const struct label *l = labels;
		while (l->name && !str_eq(t->field, str_of(l->name)))
			l++;
		if (!l->name)
			return complain(complaint, kind, t->field, err);
		if (l->alias_of)
			t->field = str_of(l->alias_of);
		t->access = compile(a, l->form, l->path ? str_of(l->path) : t->field);
	}
	return 0;
}

int field_selector_bind_custom(struct arena *a, struct field_selector *s, bool namespaced, const str *selectable, size_t n,
			       struct err *err)
{
	for (size_t i = 0; i < s->n; i++) {
		struct field_term *t = &s->terms[i];
		bool known = str_eq(t->field, STR("metadata.name")) || (namespaced && str_eq(t->field, STR("metadata.namespace")));
		for (size_t j = 0; j < n && !known; j++)
			known = str_eq(t->field, str_skip(selectable[j], str_starts(selectable[j], STR("."))));
		if (!known)
			return complain(NOT_SUPPORTED, NULL, t->field, err);
		t->access = compile(a, ANY, t->field);
	}
	return 0;
}

/* ---- matching ---- */

enum { ROOM = 32 };

static str value_text(struct val v, enum field_form form, char room[ROOM])
{
	if (form == BOOL || (form == ANY && v.type == VAL_BOOL))
		return val_as_bool(v) ? STR("true") : STR("false");
	if (form == INT || (form == ANY && v.type == VAL_INT))
		return str_span(room, (size_t)snprintf(room, ROOM, "%lld", (long long)val_as_int(v)));
	return val_as_str(v);
}

/* A number steps into a list: of that, paths here only need the first item. */
static struct val step(struct val v, atom key) { return val_is(v, VAL_LIST) ? val_at(v, 0) : val_member(v, key); }

static str read_field(const struct field_access *access, struct val object, char room[ROOM])
{
	str text = STR_NONE;
	if (access->form == ABSENT)
		return text;
	for (const atom *p = access->paths; *p && text.n == 0; p++) {
		struct val v = object;
		for (; *p; p++)
			v = step(v, *p);
		text = value_text(v, access->form, room);
	}
	return text;
}

bool field_selector_matches(const struct field_selector *s, struct val object)
{
	char room[ROOM];
	for (size_t i = 0; i < s->n; i++) {
		const struct field_term *t = &s->terms[i];
		if (str_eq(read_field(t->access, object, room), t->value) == t->negated)
			return false;
	}
	return true;
}

bool field_selector_requires(const struct field_selector *s, str field, str *ret_value)
{
	for (size_t i = 0; i < s->n; i++)
		if (!s->terms[i].negated && str_eq(s->terms[i].field, field)) {
			*ret_value = s->terms[i].value;
			return true;
		}
	return false;
}
