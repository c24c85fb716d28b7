#include "apiserver/subresource.h"

static const struct subresource table[] = {
	{ .handle = NULL },
};

const struct subresource *subresource_find(const struct request *q)
{
	for (const struct subresource *s = table; s->handle; s++)
		if (str_eq(s->resource, q->resource) && str_eq(s->name, q->subresource) && str_eq(s->group, q->group))
			return s;
	return NULL;
}
