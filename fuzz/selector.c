/*
 * Selectors: the text is parsed as a label selector, a field selector and a few names. What parses must give a text that parses
 * again to the same text, and must be able to match.
 */
#include <assert.h>

#include "codec/types.h"
#include "machinery/field_selector.h"
#include "machinery/ip.h"
#include "machinery/selector.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_labels(struct arena *a, str text)
{
	struct selector s, again;
	struct err err = ERR_INIT;
	if (selector_parse(a, text, &s, &err) < 0) {
		assert(err.n > 0);
		return;
	}
	str canonical = selector_text(a, &s);
	assert(selector_parse(a, canonical, &again, NULL) == 0);
	assert(str_eq(canonical, selector_text(a, &again)));
	struct member label = { atom_make(a, STR("a")), VAL_LIT("1") };
	struct val labels = val_object(a, &label, 1);
	assert(selector_matches(&s, labels) == selector_matches(&again, labels));
}

static void try_fields(struct arena *a, str text)
{
	struct field_selector s, again;
	if (field_selector_parse(a, text, &s, NULL) < 0)
		return;
	str canonical = field_selector_text(a, &s);
	assert(field_selector_parse(a, canonical, &again, NULL) == 0);
	if (field_selector_bind(a, &s, TYPE(core_v1, Pod), NULL) == 0)
		(void)field_selector_matches(&s, VAL_EMPTY_OBJECT);
}

static void try_names(struct arena *a, str text)
{
	struct name_errors e;
	struct ip ip, again;
	char room[IP_TEXT_MAX];

	assert(name_check_label_key(text, &e) == e.n);
	assert(name_rule_subdomain(text, true, &e) == e.n);
	assert(cidr_check(a, text, &e) == e.n);
	if (ip_parse(text, &ip, NULL)) {
		assert(ip_parse(ip_format(&ip, room), &again, NULL));
		assert(ip_equal(&ip, &again));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = ARENA_INIT;
	str text = str_span((const char *)data, size);
	try_labels(&a, text);
	try_fields(&a, text);
	try_names(&a, text);
	arena_done(&a);
	return 0;
}
