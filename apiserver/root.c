/* GET /: the paths that there are, in byte order. */
#include <stdlib.h>

#include "apiserver/documents_priv.h"
#include "codec/atoms.h"

static int by_text(const void *x, const void *y)
{
	const struct val *a = x, *b = y;
	return str_cmp(val_as_str(*a), val_as_str(*b));
}

struct paths {
	struct arena *arena;
	struct val *list;
	size_t n, cap;
};

static void add(struct paths *p, str path)
{
	if (p->n == p->cap) {
		struct val *more = ARENA_ARRAY(p->arena, struct val, p->cap = p->cap ? 2 * p->cap : 128);
		if (p->n)
			memcpy(more, p->list, p->n * sizeof *more);
		p->list = more;
	}
	p->list[p->n++] = val_of_str(path);
}

static void add_groups(struct paths *p, const struct request *q)
{
	const struct api_version **versions;
	size_t n = served_versions(q, &versions);

	for (size_t i = 0; i < n; i++) {
		str group = versions[i]->group, version = versions[i]->version;
		if (!group.n) {
			add(p, arena_printf(p->arena, "/api/" STR_FMT, STR_ARG(version)));
			continue;
		}
		if (!i || !str_eq(group, versions[i - 1]->group))
			add(p, arena_printf(p->arena, "/apis/" STR_FMT, STR_ARG(group)));
		add(p, arena_printf(p->arena, "/apis/" STR_FMT "/" STR_FMT, STR_ARG(group), STR_ARG(version)));
	}
}

static void add_health(struct paths *p, str endpoint)
{
	const char *check;
	add(p, arena_join(p->arena, STR("/"), endpoint));
	for (size_t i = 0; (check = health_check(i, endpoint)); i++)
		if (*check)
			add(p, arena_printf(p->arena, "/" STR_FMT "/%s", STR_ARG(endpoint), check));
}

int root_handle(struct request *q, struct err *err)
{
	static const str always[] = {
		STR_INIT("/.well-known/openid-configuration"), STR_INIT("/api"), STR_INIT("/apis"), STR_INIT("/apis/"),
		STR_INIT("/metrics"), STR_INIT("/openapi/v2"), STR_INIT("/openapi/v3"), STR_INIT("/openapi/v3/"),
		STR_INIT("/openid/v1/jwks"), STR_INIT("/version"),
	};
	struct paths p = { .arena = q->arena };

	for (size_t i = 0; i < ARRAY_LEN(always); i++)
		add(&p, always[i]);
	add_groups(&p, q);
	add_health(&p, STR("healthz"));
	add_health(&p, STR("livez"));
	add_health(&p, STR("readyz"));
	if (q->server->options.profiling)
		add(&p, STR("/debug/fibers"));
	qsort(p.list, p.n, sizeof *p.list, by_text);
	return answer_indented(q, OBJECT(q->arena, F(paths, val_list(q->arena, p.list, p.n))), err);
}
