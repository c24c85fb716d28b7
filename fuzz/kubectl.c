/* What a server sends to kubectl: shown as a table, and described. */
#include <assert.h>

#include "kubectl/describe.h"
#include "kubectl/print.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void show_table(struct ktl *k, struct val v)
{
	static const char *labels[] = { "app", "example.test/tier" };
	for (int i = 0; i < 4; i++) {
		struct ktl_table_printer p = { .options = { .wide = i & 1, .with_namespace = i & 1, .show_labels = i & 2, .no_headers = i & 2 } };
		struct buf out = BUF_INIT(1 << 24);
		struct ktl_tabs tabs;
		p.options.label_columns = (struct ktl_texts){ labels, i & 1 ? 2 : 0 };
		ktl_tabs_for_table(&tabs);
		ktl_table_print(k, &p, v, i & 1 ? STR("ADDED") : STR_NONE, &tabs);
		ktl_tabs_flush(&tabs, &out);
		/* A terminal does what escapes say; a server must not. */
		assert(!memchr(out.n ? out.p : "", '\033', out.n));
		ktl_tabs_done(&tabs);
		buf_done(&out);
	}
}

static void describe(struct ktl *k, struct val v)
{
	ktl_describe_fn *const all[] = { ktl_describe_pod, ktl_describe_secret, ktl_describe_config_map, ktl_describe_service_account, ktl_describe_cron_job,
					 ktl_describe_role, ktl_describe_binding, ktl_describe_volume, ktl_describe_storage_class, ktl_describe_network_policy,
					 ktl_describe_endpoint_slice, ktl_describe_quota, ktl_describe_autoscaler, ktl_describe_limit_range };
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		struct ktl_page p = { .k = k };
		struct buf out = BUF_INIT(1 << 24);
		ktl_tabs_for_description(&p.tabs);
		(void)all[i](&p, v);
		ktl_tabs_flush(&p.tabs, &out);
		assert(!memchr(out.n ? out.p : "", '\033', out.n));
		ktl_tabs_done(&p.tabs);
		buf_done(&out);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ktl k = { .arena = ARENA_INIT };
	struct val v, sorted;
	if (ktl_parse_json(&k, str_span((const char *)data, size), &v, NULL) == 0) {
		show_table(&k, v);
		describe(&k, v);
		(void)ktl_sort(&k, ".metadata.name", val_get(v, items), false, &sorted);
		(void)ktl_fail_status(&k, v);
		assert(ktl_failure_message(&k, k.failures).n > 0);
	}
	arena_done(&k.arena);
	return 0;
}
