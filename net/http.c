/* What requests and answers of all versions of HTTP have in common. */
#include "net/http.h"

str http_header_find(const struct http_header *headers, size_t n, str name)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(headers[i].name, name))
			return headers[i].value;
	return STR_NONE;
}
