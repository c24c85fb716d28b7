/* Small checks that several of the groups besides pods need. */
#include "base/encoding.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "machinery/ip.h"
#include "machinery/text_diff.h"
#include "machinery/validate_groups.h"

const str protocol_names[] = { STR_INIT("SCTP"), STR_INIT("TCP"), STR_INIT("UDP"), { NULL, 0 } };

void check_meta(struct field_errors *e, struct val object, bool namespaced, name_rule *rule)
{
	check_object_meta(e, FIELD(NULL, "metadata"), val_get(object, metadata), namespaced, rule);
}

void check_meta_update(struct field_errors *e, struct val object, struct val old)
{
	check_object_meta_update(e, FIELD(NULL, "metadata"), val_get(object, metadata), val_get(old, metadata));
}

bool check_given(struct field_errors *e, const struct field_path *at, str value)
{
	if (value.n == 0)
		field_missing(e, at);
	return value.n != 0;
}

void check_given_name(struct field_errors *e, const struct field_path *at, str value, name_check *check)
{
	if (check_given(e, at, value))
		check_name(e, at, value, check);
}

void check_name_joined(struct field_errors *e, const struct field_path *at, str value, name_check *check, const char *sep)
{
	struct name_errors found;
	if (check(value, &found))
		field_invalid(e, at, VAL_STR(value), STR_FMT, STR_ARG(name_errors_join(e->arena, &found, sep)));
}

void check_immutable_str(struct field_errors *e, const struct field_path *at, str now, str before)
{
	check_immutable(e, at, NULL, VAL_STR(now), VAL_STR(before));
}

bool list_has(struct val list, str text)
{
	VAL_EACH(item, list)
		if (str_eq(val_as_str(*item), text))
			return true;
	return false;
}

void set_add_all(struct map *set, struct val list)
{
	VAL_EACH(item, list)
		set_add(set, val_as_str(*item));
}

size_t base64_size(str base64)
{
	size_t padding = str_ends(base64, STR("==")) ? 2 : str_ends(base64, STR("=")) ? 1 : 0;
	return base64_decoded_max(base64.n) - padding;
}

str form_diff(struct arena *a, struct val before, struct val after)
{
	enum { TEXT_MAX = 4 << 20 };
	CLEANUP(buf_done) struct buf x = BUF_INIT(TEXT_MAX), y = BUF_INIT(TEXT_MAX);
	const struct json_encode_options indented = { .indent = 1 };
	struct err ignored;

	(void)json_encode(&x, before, &indented, &ignored);
	(void)json_encode(&y, after, &indented, &ignored);
	return text_diff(a, buf_str(&x), buf_str(&y));
}

/* ---- addresses ---- */

static void add_all(struct field_errors *e, const struct field_path *at, str value, const struct name_errors *found)
{
	for (size_t i = 0; i < found->n; i++)
		field_invalid(e, at, VAL_STR(value), STR_FMT, STR_ARG(found->text[i]));
}

/* Old values are looked through only for bad ones, and only as long as errors are gathered. */
static bool is_excused(struct field_errors *e, str value, struct val old)
{
	return e->n == FIELD_ERRORS_MAX || list_has(old, value);
}

void check_legacy_ip(struct field_errors *e, const struct field_path *at, str value, struct val old)
{
	struct name_errors found;
	if (ip_check_legacy(value, true, &found) && !is_excused(e, value, old))
		add_all(e, at, value, &found);
}

void check_legacy_cidr(struct field_errors *e, const struct field_path *at, str value, struct val old)
{
	struct name_errors found;
	if (cidr_check_legacy(value, true, &found) && !is_excused(e, value, old))
		add_all(e, at, value, &found);
}

void check_endpoint_ip(struct field_errors *e, const struct field_path *at, str value)
{
	static const uint8_t zeros[16];
	struct ip ip;

	if (!ip_parse(value, &ip, NULL)) {
		field_invalid(e, at, VAL_STR(value), "must be a valid IP address");
		return;
	}
	bool v4 = ip_is_v4(&ip);
	const uint8_t *b = v4 ? ip.b + 12 : ip.b;
	if (memcmp(b, zeros, v4 ? 4 : 16) == 0)
		field_invalid(e, at, VAL_STR(value), "may not be unspecified (" STR_FMT ")", STR_ARG(value));
	if (v4 ? b[0] == 127 : memcmp(b, zeros, 15) == 0 && b[15] == 1)
		field_invalid(e, at, VAL_STR(value), "may not be in the loopback range (127.0.0.0/8, ::1/128)");
	if (v4 ? b[0] == 169 && b[1] == 254 : b[0] == 0xfe && (b[1] & 0xc0) == 0x80)
		field_invalid(e, at, VAL_STR(value), "may not be in the link-local range (169.254.0.0/16, fe80::/10)");
	/* In IPv6 it is one scope among the multicast addresses, not the block that the text names. */
	if (v4 ? b[0] == 224 && b[1] == 0 && b[2] == 0 : b[0] == 0xff && (b[1] & 0x0f) == 2)
		field_invalid(e, at, VAL_STR(value),
			      "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
}

void check_protocol(struct field_errors *e, const struct field_path *at, str protocol)
{
	check_required_one_of(e, at, protocol, protocol_names);
}

void check_port_number(struct field_errors *e, const struct field_path *at, int64_t port)
{
	struct name_errors found;
	if (name_check_port_number(port, &found))
		field_invalid(e, at, val_of_int(port), STR_FMT, STR_ARG(found.text[0]));
}

void check_domain_prefixed_path(struct field_errors *e, const struct field_path *at, str value)
{
	struct name_errors found;
	if (check_given(e, at, value) && name_check_domain_prefixed_path(value, &found))
		for (size_t i = 0; i < found.n; i++)
			field_invalid(e, at, VAL_STR(found.value[i]), STR_FMT, STR_ARG(found.text[i]));
}
