/*
 * The formats that Kubernetes asks of names, label keys and values, ports, paths and the like, with the texts that its
 * users know. A check is a pure function over a slice: any thread, no allocation, time linear in the length.
 *
 *	struct name_errors e;
 *	if (name_check_dns1123_label(name, &e))
 *		for (size_t i = 0; i < e.n; i++)
 *			... e.text[i] ...
 *
 * Every check returns the number of complaints, 0 for a good value. ret may be NULL when only the answer matters. The texts
 * are literals and live forever.
 *
 * Kubernetes words the length limit in two ways. The checks of hand-written validation say "characters"; those of declarative
 * validation (name_check_short_name, ...) and of labels say "bytes". Both count bytes.
 */
#ifndef C8S_MACHINERY_NAMES_H
#define C8S_MACHINERY_NAMES_H

#include "base/arena.h"

enum { NAME_ERRORS_MAX = 6, NAME_LABEL_MAX = 63, NAME_SUBDOMAIN_MAX = 253 };

struct name_errors {
	size_t n;
	str text[NAME_ERRORS_MAX];
	str value[NAME_ERRORS_MAX]; /* what text is about: the value that was checked, or the part of it that is wrong */
};

/* So that tables of fields can name their check. */
typedef size_t name_check(str value, struct name_errors *ret);

/* The texts put together with sep between them, in the arena; a single one is returned as it is. */
str name_errors_join(struct arena *a, const struct name_errors *e, const char *sep);

/* ---- DNS ---- */

/* my-name: [a-z0-9]([-a-z0-9]*[a-z0-9])?, up to 63. */
size_t name_check_dns1123_label(str value, struct name_errors *ret);
/* example.com: labels with dots between them, up to 253. */
size_t name_check_dns1123_subdomain(str value, struct name_errors *ret);
/* The same with '_' inside of labels or before them, for DNS search paths. */
size_t name_check_dns1123_subdomain_underscore(str value, struct name_errors *ret);
/* *.example.com */
size_t name_check_wildcard_subdomain(str value, struct name_errors *ret);
/* As a label, but begins with a letter. */
size_t name_check_dns1035_label(str value, struct name_errors *ret);
/*
 * A domain of at least three parts, and one of at least two whose last dot is optional and whose parts are all labels. These
 * give one text, in which several complaints are joined by ","; an empty value is "Required value" for the caller to find.
 */
size_t name_check_fully_qualified(str value, struct name_errors *ret);
size_t name_check_fully_qualified_domain(str value, struct name_errors *ret);

/* Of declarative validation: k8s-short-name, k8s-long-name, k8s-long-name-caseless. */
size_t name_check_short_name(str value, struct name_errors *ret);
size_t name_check_long_name(str value, struct name_errors *ret);
size_t name_check_long_name_caseless(str value, struct name_errors *ret);

/* ---- labels ---- */

/* Qualified name: [subdomain/]MyName. */
size_t name_check_label_key(str value, struct name_errors *ret);
/* Empty, or up to 63 of [-A-Za-z0-9_.] with alphanumeric ends. */
size_t name_check_label_value(str value, struct name_errors *ret);
/* acme.io/any/path; value[] is the host or the path, whichever is wrong. */
size_t name_check_domain_prefixed_path(str value, struct name_errors *ret);

/* ---- other words ---- */

size_t name_check_c_identifier(str value, struct name_errors *ret);
/* Environment variables, by the relaxed rule: printable ASCII without '='. */
size_t name_check_env_var_relaxed(str value, struct name_errors *ret);
/* Keys of ConfigMap and Secret data. */
size_t name_check_config_key(str value, struct name_errors *ret);
size_t name_check_port_name(str value, struct name_errors *ret);
/* 25% */
size_t name_check_percent(str value, struct name_errors *ret);
size_t name_check_http_header(str value, struct name_errors *ret);
/* An integer as Go prints it, of any length. */
size_t name_check_decimal_integer(str value, struct name_errors *ret);
/* What stands between two slashes of a URL without being escaped; a prefix may still be "." or "..". */
size_t name_check_path_segment(str value, struct name_errors *ret);
size_t name_check_path_segment_prefix(str value, struct name_errors *ret);

/* ---- numbers with fixed bounds ---- */

size_t name_check_port_number(int64_t value, struct name_errors *ret);
/* Users and groups: 0 to 2147483647. */
size_t name_check_id(int64_t value, struct name_errors *ret);

/* ---- names of objects ---- */

/*
 * The rules that resources choose from for metadata.name, and with prefix for metadata.generateName: something will be added,
 * so a '-' may stand at the end.
 */
typedef size_t name_rule(str name, bool prefix, struct name_errors *ret);

size_t name_rule_subdomain(str name, bool prefix, struct name_errors *ret);
size_t name_rule_label(str name, bool prefix, struct name_errors *ret);
size_t name_rule_dns1035_label(str name, bool prefix, struct name_errors *ret);
size_t name_rule_path_segment(str name, bool prefix, struct name_errors *ret);

/* base, cut to 58 bytes, and 5 random characters that form no words: for metadata.generateName. */
str name_generate(struct arena *a, str base);
/* n of these characters, for parts of names that are made elsewhere. */
str name_random(struct arena *a, size_t n);

#endif
