/*
 * Messages of D-Bus, one after the other as a bus would send them. What is in a message lies inside of it, reading its values ends, and
 * whether there is all of it does not depend on what follows.
 */
#include "fuzz/fuzz.h"
#include "kubelet/dbus.h"

static bool is_inside(str part, str whole)
{
	return !part.n || (part.p >= whole.p && part.n <= whole.n && (size_t)(part.p - whole.p) <= whole.n - part.n);
}

static void read_values(const struct dbus_message *m, str whole)
{
	struct dbus_reader r = dbus_reader_of(m);
	uint64_t number;
	str text;
	/* Each value but an empty variant takes a byte at least. */
	for (size_t i = 0; r.signature.n; i++) {
		char type = r.signature.p[0];
		check(i <= whole.n, "values end");
		if (dbus_read_text(&r, type, &text))
			check(is_inside(text, whole), "a text is in its message");
		else if (!dbus_read_number(&r, type, &number) && !dbus_read_variant(&r))
			return;
		check(r.at <= m->body.n, "the reader stays in the body");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	str in = str_span((const char *)data, n);
	struct dbus_message m, again;
	size_t used, used_again;

	while (dbus_parse(in, &m, &used, NULL) > 0) {
		str whole = str_head(in, used);
		check(used > 0 && used <= in.n, "a message has its size");
		check(dbus_parse(whole, &again, &used_again, NULL) == 1 && used_again == used, "a message is whole without what follows");
		check(dbus_parse(str_head(in, used - 1), &again, &used_again, NULL) == 0, "a message without its end is not whole");
		check(is_inside(m.path, whole) && is_inside(m.interface, whole) && is_inside(m.member, whole) && is_inside(m.error, whole) &&
		      is_inside(m.sender, whole) && is_inside(m.signature, whole) && is_inside(m.body, whole), "texts are in their message");
		read_values(&m, whole);
		in = str_skip(in, used);
	}
	return 0;
}
