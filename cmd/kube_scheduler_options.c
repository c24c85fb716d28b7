/* From flags to the configuration that the scheduler runs with. */
#include "base/file.h"
#include "cmd/flags_gates.h"
#include "cmd/kube_scheduler.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "scheduler/scheduler.h"

#define CONFIG_TYPE TYPE(kubeschedulerconfig_v1, KubeSchedulerConfiguration)

enum { YAML_MAX = 4 << 20 };

/* With a file only the flags of leader election count. */
static struct flag_settings settings_in_force(const struct kube_scheduler_flags *f, struct arena *a)
{
	struct flag_settings s = f->settings;

	if (!f->config || !f->config[0])
		return s;
	s.items = ARENA_ARRAY(a, struct flag_setting, f->settings.n + 1);
	s.n = 0;
	for (size_t i = 0; i < f->settings.n; i++)
		if (str_starts(str_of(f->settings.items[i].name), STR("leader-elect")))
			s.items[s.n++] = f->settings.items[i];
	return s;
}

static int write_config(const struct command *c, const char *path, struct val config)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(YAML_MAX);
	struct err err = ERR_INIT;
	int r = yaml_encode(&text, config, CONFIG_TYPE, &err);

	if (r < 0 || (r = file_write(path, buf_str(&text), 0644, &err)) < 0)
		return cmd_fail(c, &err);
	return 0;
}

int kube_scheduler_complete(const struct command *c, const struct kube_scheduler_flags *f, struct arena *a, struct frozen **ret, struct val *ret_gates)
{
	struct flag_settings settings = settings_in_force(f, a);
	struct err err = ERR_INIT;
	struct val flags;

	if (flags_config(a, &settings, kube_scheduler_fields, CONFIG_TYPE, NULL, &flags, &err) < 0)
		return cmd_usage(c, "%s", err.msg);
	if (f->server.secure_port < 0 || f->server.secure_port > 65535)
		return cmd_usage(c, "--secure-port %lld must be between 0 and 65535, inclusive. 0 for turning off secure port",
				 (long long)f->server.secure_port);
	if (flags_gates(a, f->feature_gates, ret_gates, &err) < 0)
		return cmd_usage(c, "%s", err.msg);
	if (scheduler_config_load(f->config, flags, ret, &err) < 0)
		return cmd_fail(c, &err);
	return f->write_config_to && f->write_config_to[0] ? write_config(c, f->write_config_to, (*ret)->val) : 0;
}
