/*
 * What is asked for: the first line is a method and a target, the next ones are headers, as in HTTP. Everything that
 * looks at a request before its body does so here: path and query, endpoint, media types, deadlines and all options.
 * Whatever the client writes, each says yes or fails with a Status, and a key that comes out belongs to its kind.
 */
#include "apiserver/list_options.h"
#include "apiserver/meta.h"
#include "apiserver/negotiate.h"
#include "apiserver/request_testing.h"
#include "apiserver/write.h"
#include "codec/atoms.h"
#include "fuzz/fuzz.h"

enum { INPUT_MAX = 64 * 1024 };

static void check_result(const struct call *c, int r, const char *what)
{
	if (r >= 0)
		return;
	int64_t code = val_int(c->q.failure, code);
	if (val_exists(c->q.failure))
		check(code >= 400 && code <= 599 && str_eq(val_str(c->q.failure, kind), STR("Status")), what);
	else
		check(c->err.code != ERR_NONE, what);
}

static void check_key(struct call *c)
{
	str key = STR_NONE;
	int r = meta_key_of(&c->q, &key);

	check_result(c, r, "a name is good or refused");
	if (r < 0)
		return;
	bool namespaced = c->q.endpoint->kind->namespaced;
	ptrdiff_t slash = str_chr(key, '/');
	bool two = slash > 0 && str_chr(str_skip(key, (size_t)slash + 1), '/') < 0;
	check(namespaced ? two : slash < 0, "a key has its parts, and no more");
	check(!str_eq(c->q.name, STR("..")) && !str_eq(c->q.name, STR(".")), "no name leads elsewhere");
}

static void check_options(struct call *c)
{
	static const char *const kinds[] = { "CreateOptions", "UpdateOptions", "PatchOptions" };
	struct list_options list;
	enum media media;

	check_result(c, negotiate_accept(&c->q, &c->err), "Accept");
	check_result(c, negotiate_body(&c->q, &media, &c->err), "Content-Type");
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		check_result(c, write_options(&c->q, str_of(kinds[i]), i == 2), kinds[i]);
	check(request_manager(&c->q).n <= MAX((size_t)128, c->q.field_manager.n), "managers are short");
	if (c->q.endpoint->kind)
		check_result(c, list_options_read(&c->q, &list, &c->err), "ListOptions");
	if (c->q.endpoint->kind && c->q.name.n)
		check_key(c);
}

static void run(struct call *c, str input)
{
	str line, method, target, name, value;
	str_cut(input, '\n', &line, &input);
	str_cut(line, ' ', &method, &target);
	call_new(c, method, target);
	while (input.n) {
		str_cut(input, '\n', &line, &input);
		str_cut(line, ':', &name, &value);
		call_header(c, name, value);
	}
	int r = stage_info(&c->q, &c->err);
	check_result(c, r, "the path is good or refused");
	if (r < 0)
		return;
	check_result(c, stage_deadline(&c->q, &c->err), "the deadline is good or refused");
	r = c->q.is_resource ? route(&c->q) : -1;
	if (!c->q.is_resource)
		return;
	check_result(c, r, "there is an endpoint, or not");
	check((r == 0) <= (c->q.endpoint != NULL), "what was found has an endpoint");
	if (r == 0)
		check_options(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct call c;
	static bool ready;

	if (!ready)
		call_init(&c);
	ready = true;
	if (n > INPUT_MAX)
		return 0;
	run(&c, str_span((const char *)data, n));
	arena_done(&c.arena);
	return 0;
}
