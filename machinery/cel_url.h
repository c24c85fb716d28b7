/* URLs as Go's net/url reads them, for CEL. */
#ifndef C8S_MACHINERY_CEL_URL_H
#define C8S_MACHINERY_CEL_URL_H

#include "base/arena.h"
#include "base/err.h"

struct cel_url {
	str text;       /* the whole, as it was given */
	str scheme;     /* in lower case */
	str host;       /* host[:port] */
	str path;       /* decoded */
	str raw_path;   /* as it was written */
	str query;      /* without '?' */
};

/* An absolute URL or a path, as url.ParseRequestURI has it; -ERR_INVALID with its text. */
int cel_url_parse(struct arena *a, str text, struct cel_url *ret, struct err *err);
/* Without and of the port; IPv6 addresses lose their brackets. */
str cel_url_hostname(const struct cel_url *u);
str cel_url_port(const struct cel_url *u);
/* The path with everything escaped that has to be. */
str cel_url_escaped_path(struct arena *a, const struct cel_url *u);
/* %41 -> A, and + -> ' ' when query is set. False when an escape is wrong. */
bool cel_url_unescape(struct arena *a, str s, bool query, str *ret);

#endif
