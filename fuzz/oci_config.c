/* config.json of a bundle, and state.json beside it: all that reads them before anything is made. What is refused is refused with words. */
#include "codec/atoms.h"
#include "codec/json.h"
#include "fuzz/fuzz.h"
#include "oci/cgroup_priv.h"
#include "oci/oci_priv.h"
#include "oci/state.h"

static void told(int r, struct err *err)
{
	check(r == 0 || err->n > 0, "a refusal says why");
	*err = (struct err)ERR_INIT;
}

static void use_process(struct val v, struct arena *a, struct err *err)
{
	struct process p;
	int r = spec_process(v, a, &p, err);

	if (r == 0) {
		check(p.args[0] && *p.cwd == '/', "a process has a program and a folder");
		process_set_home(&p, a);
	}
	told(r, err);
}

static void use_config(const struct spec *s, struct arena *a, struct err *err)
{
	struct cgroup_device_rule *rules;
	struct seccomp *filter = NULL;
	struct mount m;
	size_t n, size;

	check(spec_is_new(s, NS_MOUNT), "there is a mount namespace");
	use_process(val_get(s->config, process), a, err);
	VAL_EACH(entry, val_get(s->config, mounts))
		told(mount_read(*entry, a, &m, err), err);
	told(namespaces_check_sysctls(s, err), err);
	told(seccomp_make(val_get(s->linux_part, seccomp), &filter, err), err);
	seccomp_free(filter);
	int r = cgroup_device_rules(a, val_get(s->linux_part, resources, devices), &rules, &n, err);
	if (r >= 0)
		check(cgroup_device_program(a, rules, n, &size) && size, "rules make a program");
	told(r, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;
	struct state state = { .dir = -1 };
	struct spec spec;
	str text = str_span((const char *)data, n);

	int r = spec_decode(text, "/bundle", &a, &spec, &err);
	if (r == 0)
		use_config(&spec, &a, &err);
	told(r, &err);
	r = state_decode(text, &a, &state, &err);
	if (r == 0) {
		CLEANUP(buf_done) struct buf out = BUF_INIT(64 << 20);
		state.id = STR("x");
		state_text(&out, &state, OCI_STOPPED, 0);
		check(json_error_offset(buf_str(&out)) < 0, "a state is JSON");
	}
	told(r, &err);
	arena_done(&a);
	return 0;
}
