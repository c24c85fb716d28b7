/* CreateOptions, UpdateOptions and PatchOptions: how a write is meant, from the query. */
#include "apiserver/write.h"

#include "machinery/names.h"

static void check_manager(struct field_errors *e, str manager)
{
	if (manager.n > 128)
		field_too_long(e, FIELD(NULL, "fieldManager"), 128);
	for (size_t i = 0, n; i < manager.n; i += n) {
		uint32_t rune;
		n = str_rune(str_skip(manager, i), &rune);
		if (n && rune >= 0x20 && rune != 0x7f)
			continue;
		field_invalid(e, FIELD(NULL, "fieldManager"), val_of_str(manager), "should only contain printable characters");
		return;
	}
}

/* Every value given must be "All"; several are as good as one. */
static void check_dry_run(struct request *q, struct field_errors *e)
{
	static const str supported[] = { STR_INIT("All"), { NULL, 0 } };
	struct val_builder all = val_builder(q->arena);
	bool good = true;
	for (size_t i = 0; i < q->n_query; i++) {
		if (!str_eq(q->query[i].name, STR("dryRun")))
			continue;
		q->dry_run = true;
		good = good && str_eq(q->query[i].value, STR("All"));
		val_add_item(&all, val_of_str(q->query[i].value));
	}
	if (!good)
		field_not_supported(e, FIELD(NULL, "dryRun"), val_end_list(&all), supported);
}

static void check_validation(struct request *q, struct field_errors *e)
{
	static const str supported[] = { STR_INIT(""), STR_INIT("Ignore"), STR_INIT("Strict"), STR_INIT("Warn"), { NULL, 0 } };
	q->field_validation = request_query(q, STR("fieldValidation"));
	for (const str *s = supported; s->p; s++)
		if (str_eq(q->field_validation, *s))
			return;
	field_not_supported(e, FIELD(NULL, "fieldValidation"), val_of_str(q->field_validation), supported);
}

int write_options(struct request *q, str kind, bool is_apply)
{
	struct field_errors e;
	field_errors_init(&e, q->arena);
	q->field_manager = request_query(q, STR("fieldManager"));
	q->force = request_query_bool(q, STR("force"));
	if (str_eq(kind, STR("PatchOptions"))) {
		if (is_apply && !q->field_manager.n)
			field_required(&e, FIELD(NULL, "fieldManager"), "is required for apply patch");
		if (!is_apply && request_query(q, STR("force")).p)
			field_forbidden(&e, FIELD(NULL, "force"), "may not be specified for non-apply patch");
	}
	check_manager(&e, q->field_manager);
	check_dry_run(q, &e);
	check_validation(q, &e);
	if (e.n)
		return fail_invalid(q, STR("meta.k8s.io"), kind, STR_NONE, &e);
	if (!q->field_validation.n)
		q->field_validation = STR("Warn");
	return 0;
}
