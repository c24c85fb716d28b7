/* Failures in kubectl's words: one alone, or several, each on lines of its own. */
#include <stdio.h>

#include "kubectl/ktl.h"
#include "net/url.h"

static struct ktl_failure *note(struct ktl *k, enum ktl_failure_kind kind, str text)
{
	struct ktl_failure *f = ARENA_NEW(&k->arena, struct ktl_failure);
	f->kind = kind;
	f->text = text;
	if (!k->end)
		k->end = &k->failures;
	*k->end = f;
	k->end = &f->next;
	k->n_failures++;
	return f;
}

struct ktl_failure *ktl_last_failure(const struct ktl *k)
{
	struct ktl_failure *f = k->failures;
	while (f && f->next)
		f = f->next;
	return f;
}

int ktl_fail(struct ktl *k, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	(void)note(k, KTL_PLAIN, arena_vprintf(&k->arena, fmt, ap));
	va_end(ap);
	return -1;
}

int ktl_fail_bare(struct ktl *k, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	(void)note(k, KTL_BARE, arena_vprintf(&k->arena, fmt, ap));
	va_end(ap);
	return -1;
}

int ktl_fail_usage(struct ktl *k, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	str text = arena_vprintf(&k->arena, fmt, ap);
	va_end(ap);
	return ktl_fail(k, STR_FMT "\nSee '" STR_FMT " -h' for help and examples", STR_ARG(text), STR_ARG(k->path));
}

int ktl_fail_err(struct ktl *k, const struct err *err)
{
	bool config = str_starts(err_str(err), STR("invalid configuration: "));
	(void)note(k, config ? KTL_CONFIGURATION : KTL_PLAIN, arena_str(&k->arena, err_str(err)));
	return -1;
}

int ktl_fail_connection(struct ktl *k, const struct err *err)
{
	(void)note(k, KTL_CONNECTION, arena_str(&k->arena, err_str(err)));
	return -1;
}

int ktl_fail_status(struct ktl *k, struct val status)
{
	note(k, KTL_STATUS, val_str(status, message))->status = status;
	return -1;
}

int ktl_fail_before(struct ktl *k, const char *fmt, ...)
{
	struct ktl_failure *f = ktl_last_failure(k);
	va_list ap;
	va_start(ap, fmt);
	str text = arena_vprintf(&k->arena, fmt, ap);
	va_end(ap);
	if (f)
		f->text = arena_join(&k->arena, text, f->text);
	return -1;
}

bool ktl_failed_because(const struct ktl *k, const char *reason)
{
	const struct ktl_failure *f = ktl_last_failure(k);
	return f && f->kind == KTL_STATUS && str_eq(val_str(f->status, reason), str_of(reason));
}

void ktl_forgive(struct ktl *k)
{
	struct ktl_failure **at = &k->failures;
	while (*at && (*at)->next)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = NULL;
	k->end = at;
	k->n_failures--;
}

void ktl_forgive_not_found(struct ktl *k)
{
	struct ktl_failure **at = &k->failures;
	while (*at) {
		if ((*at)->kind == KTL_STATUS && str_eq(val_str((*at)->status, reason), STR("NotFound"))) {
			*at = (*at)->next;
			k->n_failures--;
		} else {
			at = &(*at)->next;
		}
	}
	k->end = at;
}

/* ---- printing ---- */

/* Without Go's 'Get "https://...": ' before it. */
static str without_request(str text, str *ret_url)
{
	ptrdiff_t quote = str_chr(text, '"');
	*ret_url = STR_NONE;
	if (quote < 0)
		return text;
	str rest = str_skip(text, (size_t)quote + 1);
	ptrdiff_t end = str_find(rest, STR("\": "));
	if (end < 0 || str_find(str_head(rest, (size_t)end), STR("://")) < 0)
		return text;
	*ret_url = str_head(rest, (size_t)end);
	return str_skip(rest, (size_t)end + 3);
}

static str connection_message(struct ktl *k, const struct ktl_failure *f)
{
	struct url url;
	str address, text = without_request(f->text, &address);
	if (!address.n)
		return f->text;
	if (str_find(text, STR("connection refused")) < 0)
		return arena_join(&k->arena, STR("Unable to connect to the server: "), text);
	if (url_parse(&k->arena, address, &url, NULL) == 0)
		address = url.authority;
	return arena_printf(&k->arena, "The connection to the server " STR_FMT " was refused - did you specify the right host or port?",
			    STR_ARG(address));
}

static str status_message(struct ktl *k, const struct ktl_failure *f)
{
	str reason = val_str(f->status, reason);
	if (str_eq(reason, STR("Unauthorized")))
		return arena_printf(&k->arena, "error: You must be logged in to the server (" STR_FMT ")", STR_ARG(f->text));
	if (reason.n)
		return arena_printf(&k->arena, "Error from server (" STR_FMT "): " STR_FMT, STR_ARG(reason), STR_ARG(f->text));
	return arena_join(&k->arena, STR("Error from server: "), f->text);
}

str ktl_failure_message(struct ktl *k, const struct ktl_failure *f)
{
	if (f->kind == KTL_STATUS)
		return status_message(k, f);
	return f->kind == KTL_CONNECTION ? connection_message(k, f) : f->text;
}

/* What is wrong with the fields of an object, each text once. */
static void print_causes(struct ktl *k, const char *prefix, struct val causes)
{
	struct val_builder b = val_builder(&k->arena);
	VAL_EACH(c, causes) {
		str text = arena_printf(&k->arena, STR_FMT ": " STR_FMT, STR_ARG(val_str(*c, field)), STR_ARG(val_str(*c, message)));
		bool known = false;
		for (uint32_t i = 0; i < b.n && !known; i++)
			known = str_eq(val_as_str(((const struct val *)b.room)[i]), text);
		if (!known)
			val_add_item(&b, val_of_str(text));
	}
	struct val texts = val_end_list(&b);
	if (val_len(texts) == 1) {
		fprintf(stderr, "%s" STR_FMT "\n", prefix, STR_ARG(val_as_str(val_at(texts, 0))));
		return;
	}
	fprintf(stderr, "%s\n", prefix);
	VAL_EACH(t, texts)
		fprintf(stderr, "* " STR_FMT "\n", STR_ARG(val_as_str(*t)));
}

static void print_invalid(struct ktl *k, const struct ktl_failure *f)
{
	struct val details = val_get(f->status, details), causes = val_get(details, causes);
	str kind = val_str(details, kind), name = val_str(details, name), head = STR("The request is invalid");
	if (kind.n || name.n)
		head = arena_printf(&k->arena, "The " STR_FMT " " STR_FMT " is invalid", STR_ARG(kind), STR_ARG(ktl_quote(k, name)));
	else if (f->text.n && !val_len(causes))
		head = arena_printf(&k->arena, "The request is invalid: " STR_FMT, STR_ARG(f->text));
	if (val_len(causes))
		print_causes(k, ktl_cstr(k, arena_join(&k->arena, head, STR(": "))), causes);
	else
		fprintf(stderr, STR_FMT "\n", STR_ARG(head));
}

static void print_configuration(str text)
{
	str part, rest = str_skip(text, strlen("invalid configuration: "));
	if (!rest.n || rest.p[0] != '[') {
		fprintf(stderr, "Error in configuration: " STR_FMT "\n", STR_ARG(rest));
		return;
	}
	fprintf(stderr, "Error in configuration: \n");
	rest = str_head(str_skip(rest, 1), rest.n - 2);
	while (rest.n) {
		ptrdiff_t comma = str_find(rest, STR(", "));
		part = comma < 0 ? rest : str_head(rest, (size_t)comma);
		rest = comma < 0 ? STR_NONE : str_skip(rest, (size_t)comma + 2);
		fprintf(stderr, "* " STR_FMT "\n", STR_ARG(part));
	}
}

static void print_line(str text)
{
	fprintf(stderr, STR_FMT "%s", STR_ARG(text), str_ends(text, STR("\n")) ? "" : "\n");
}

static void print_one(struct ktl *k, const struct ktl_failure *f)
{
	if (f->kind == KTL_STATUS && str_eq(val_str(f->status, reason), STR("Invalid")))
		print_invalid(k, f);
	else if (f->kind == KTL_CONFIGURATION)
		print_configuration(f->text);
	else if (f->kind == KTL_PLAIN && !str_starts(f->text, STR("error: ")))
		print_line(arena_join(&k->arena, STR("error: "), f->text));
	else
		print_line(ktl_failure_message(k, f));
}

void ktl_failures_print(struct ktl *k)
{
	if (k->n_failures == 1) {
		print_one(k, k->failures);
		return;
	}
	for (const struct ktl_failure *f = k->failures; f; f = f->next)
		print_line(ktl_failure_message(k, f));
}
