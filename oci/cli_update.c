/* update: flags, or a file, become the "linux.resources" object that says what is to change. */
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "oci/cli.h"

enum { RESOURCES_MAX = 1 << 20 };

/* "512", "64k", "1.5" is none; "512MiB" and "1g" are. */
static bool parse_bytes(str text, int64_t *ret)
{
	static const char units[] = "kmgtp";
	size_t digits = 0;
	int shift = 0;

	if (str_eq(text, STR("-1"))) {
		*ret = -1;
		return true;
	}
	while (digits < text.n && text.p[digits] >= '0' && text.p[digits] <= '9')
		digits++;
	str unit = str_skip(text, digits);
	if (unit.n) {
		const char *at = strchr(units, unit.p[0] | 0x20);
		if (at)
			shift = (int)(at - units + 1) * 10;
		unit = at ? str_skip(unit, 1) : unit;
		if (unit.n && unit.p[0] == 'i')
			unit = str_skip(unit, 1);
		if (unit.n > 1 || (unit.n == 1 && (unit.p[0] | 0x20) != 'b'))
			return false;
	}
	if (!str_to_i64(str_head(text, digits), ret) || *ret > INT64_MAX >> shift)
		return false;
	*ret <<= shift;
	return true;
}

enum kind { NUMBER, BYTES, TEXT };

static int put(struct arena *a, struct val *v, atom part, atom name, const char *value, enum kind kind, struct err *err)
{
	const atom path[] = { part, name };
	str text = str_of(value);
	int64_t n = 0;

	if (!value || !text.n)
		return 0;
	if (kind == NUMBER && !str_to_i64(text, &n))
		return err_set(err, ERR_BAD_REQUEST, "invalid value \"%s\" for " STR_FMT "." STR_FMT, value, STR_ARG(atom_str(part)),
			       STR_ARG(atom_str(name)));
	if (kind == BYTES && !parse_bytes(text, &n))
		return err_set(err, ERR_BAD_REQUEST, "invalid value \"%s\" for " STR_FMT "." STR_FMT, value, STR_ARG(atom_str(part)),
			       STR_ARG(atom_str(name)));
	*v = val_put_path(a, *v, path, 2, kind == TEXT ? VAL_STR(text) : val_of_int(n));
	return 0;
}

static int of_flags(const struct cli *c, struct val *ret, struct err *err)
{
	const struct {
		atom part, name;
		const char *value;
		enum kind kind;
	} rows[] = {
		{ A_blockIO, A_weight, c->blkio_weight, NUMBER },
		{ A_cpu, A_period, c->cpu_period, NUMBER },
		{ A_cpu, A_quota, c->cpu_quota, NUMBER },
		{ A_cpu, A_burst, c->cpu_burst, NUMBER },
		{ A_cpu, A_shares, c->cpu_share, NUMBER },
		{ A_cpu, A_realtimePeriod, c->cpu_rt_period, NUMBER },
		{ A_cpu, A_realtimeRuntime, c->cpu_rt_runtime, NUMBER },
		{ A_cpu, A_cpus, c->cpuset_cpus, TEXT },
		{ A_cpu, A_mems, c->cpuset_mems, TEXT },
		{ A_cpu, A_idle, c->cpu_idle, NUMBER },
		{ A_memory, A_limit, c->memory, BYTES },
		{ A_memory, A_reservation, c->memory_reservation, BYTES },
		{ A_memory, A_swap, c->memory_swap, BYTES },
		{ A_pids, A_limit, c->pids_limit, NUMBER },
	};
	struct val v = VAL_EMPTY_OBJECT;

	if (c->kernel_memory || c->kernel_memory_tcp || c->l3_cache_schema || c->mem_bw_schema)
		return err_set(err, ERR_INVALID, "limits of kernel memory and of Intel RDT are not supported");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int r = put(c->arena, &v, rows[i].part, rows[i].name, rows[i].value, rows[i].kind, err);
		if (r < 0)
			return r;
	}
	*ret = v;
	return 0;
}

static int of_file(const struct cli *c, struct val *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(RESOURCES_MAX);
	bool from_stdin = str_eq(str_of(c->resources), STR("-"));
	int r = file_read(from_stdin ? "/dev/stdin" : c->resources, &text, err);

	if (r < 0)
		return r;
	return json_decode(c->arena, arena_str(c->arena, buf_str(&text)), &(struct json_decode_options){ 0 }, ret, err);
}

int cli_update(struct cli *c, struct err *err)
{
	struct val resources;
	int r = c->resources ? of_file(c, &resources, err) : of_flags(c, &resources, err);

	return r < 0 ? r : oci_update(c->root, c->argv[0], resources, err);
}
