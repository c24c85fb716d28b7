/* config.json: the whole. Other files of this room make its parts. */
#include "runtime/config_json.h"

#include <unistd.h>

#include "base/log.h"
#include "codec/atoms.h"
#include "oci/cgroup.h"
#include "runtime/userns.h"

#define OCI_VERSION "1.0.2" /* older runtimes refuse what is newer */
#define DEFAULT_PATH "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

enum { SANDBOX_OOM_SCORE = -998, SANDBOX_SHARES = 2 };

/* ---- environment and arguments ---- */

struct env {
	struct arena *arena;
	str *all;
	size_t n;
};

/* "NAME=value"; a later one takes the place of an earlier one of that name. */
static void env_set(struct env *e, str text)
{
	ptrdiff_t eq = str_chr(text, '=');
	str name = str_head(text, eq < 0 ? text.n : (size_t)eq + 1);

	for (size_t i = 0; i < e->n; i++)
		if (str_starts(e->all[i], name)) {
			e->all[i] = text;
			return;
		}
	e->all[e->n++] = text;
}

static struct val env_list(const struct env *e)
{
	struct val_builder b = val_builder(e->arena);

	for (size_t i = 0; i < e->n; i++)
		val_add_item(&b, VAL_STR(e->all[i]));
	return val_end_list(&b);
}

static str hostname_of(const struct sandbox *s, struct arena *a)
{
	str name = val_str(sandbox_cri(s), hostname);
	char own[256] = "";

	if (name.n || gethostname(own, sizeof own - 1) < 0)
		return name;
	return arena_str(a, str_of(own));
}

static struct val container_env(const struct config_input *in, struct arena *a)
{
	struct val of_image = val_get(in->image, Env), given = val_get(in->config, envs);
	struct env e = { a, ARENA_ARRAY(a, str, (size_t)val_len(of_image) + val_len(given) + 3), 0 };

	env_set(&e, STR(DEFAULT_PATH));
	if (val_bool(in->config, tty))
		env_set(&e, STR("TERM=xterm"));
	env_set(&e, arena_printf(a, "HOSTNAME=" STR_FMT, STR_ARG(hostname_of(in->sandbox, a))));
	VAL_EACH(item, of_image)
		env_set(&e, val_as_str(*item));
	VAL_EACH(item, given) {
		str key = val_str(*item, key), value = val_str(*item, value);
		char *text = arena_alloc(a, key.n + value.n + 2, 1);
		if (key.n)
			memcpy(text, key.p, key.n);
		text[key.n] = '=';
		if (value.n)
			memcpy(text + key.n + 1, value.p, value.n);
		env_set(&e, str_span(text, key.n + 1 + value.n));
	}
	return env_list(&e);
}

/* As Docker does it: a command takes the place of the image's both, arguments alone that of its Cmd. */
static int container_args(const struct config_input *in, struct arena *a, struct val *ret, struct err *err)
{
	struct val command = val_get(in->config, command), args = val_get(in->config, args);
	struct val_builder b = val_builder(a);

	if (!val_len(command)) {
		struct val entrypoint = val_get(in->image, Entrypoint);
		if (!val_len(args))
			args = val_get(in->image, Cmd);
		if (val_len(entrypoint) != 1 || val_as_str(val_at(entrypoint, 0)).n)
			command = entrypoint;
	}
	VAL_EACH(item, command)
		val_add_item(&b, *item);
	VAL_EACH(item, args)
		val_add_item(&b, *item);
	if (!b.n)
		return err_set(err, ERR_INTERNAL, "no command specified");
	*ret = val_end_list(&b);
	return 0;
}

/* ---- namespaces ---- */

static void add_namespace(struct val_builder *b, const char *type, const char *path)
{
	val_add_item(b, OBJECT(b->arena, F(type, VAL_STR(str_of(type))), F(path, path ? VAL_STR(str_of(path)) : VAL_EMPTY)));
}

static struct val container_namespaces(const struct config_input *in, struct arena *a)
{
	struct val security = val_get(in->config, linux, securityContext), options = val_get(security, namespaceOptions);
	struct val_builder b = val_builder(a);
	int pod = (int)in->sandbox->pid;

	add_namespace(&b, "mount", NULL);
	if (sandbox_userns(in->sandbox, a))
		add_namespace(&b, "user", sandbox_userns(in->sandbox, a));
	if (!sandbox_host_network(in->sandbox)) {
		add_namespace(&b, "network", sandbox_netns(in->sandbox, a));
		add_namespace(&b, "uts", runtime_text(a, "/proc/%d/ns/uts", pod));
	}
	if (!runtime_is(val_get(options, ipc), "NODE"))
		add_namespace(&b, "ipc", runtime_text(a, "/proc/%d/ns/ipc", pod));
	if (runtime_is(val_get(options, pid), "CONTAINER"))
		add_namespace(&b, "pid", NULL);
	else if (!runtime_is(val_get(options, pid), "NODE"))
		add_namespace(&b, "pid", runtime_text(a, "/proc/%d/ns/pid", in->target_pid ? (int)in->target_pid : pod));
	if (cgroup_mode() == CGROUP_V2 && !val_bool(security, privileged))
		add_namespace(&b, "cgroup", NULL);
	return val_end_list(&b);
}

static struct val first_namespaces(const struct sandbox *s, struct arena *a)
{
	struct val options = sandbox_namespaces(s);
	struct val_builder b = val_builder(a);

	add_namespace(&b, "mount", NULL);
	if (sandbox_userns(s, a))
		add_namespace(&b, "user", sandbox_userns(s, a));
	if (!sandbox_host_network(s)) {
		add_namespace(&b, "network", sandbox_netns(s, a));
		add_namespace(&b, "uts", NULL);
	}
	if (!runtime_is(val_get(options, ipc), "NODE"))
		add_namespace(&b, "ipc", NULL);
	if (!runtime_is(val_get(options, pid), "NODE"))
		add_namespace(&b, "pid", NULL);
	return val_end_list(&b);
}

/* A container is in the user namespace of its pod. */
static int check_userns(const struct config_input *in, struct val security, struct err *err)
{
	struct val pod = sandbox_namespaces(in->sandbox), own = val_get(security, namespaceOptions);
	int r = userns_check(own, err);

	if (r == 0 && (userns_wanted(pod) != userns_wanted(own) ||
		       (userns_wanted(pod) && !val_equal(val_get(pod, usernsOptions), val_get(own, usernsOptions)))))
		return err_set(err, ERR_INVALID, "user namespace config for sandbox is different from container");
	return r;
}

/* "uidMappings" or "gidMappings" of config.json: nothing for a pod without a user namespace. */
static struct val mappings_of(const struct sandbox *s, struct arena *a, bool users)
{
	struct val userns = val_get(sandbox_namespaces(s), usernsOptions);

	return sandbox_userns(s, a) ? userns_oci(a, users ? val_get(userns, uids) : val_get(userns, gids)) : VAL_EMPTY;
}

/* ---- annotations ---- */

static void annotate(struct val_builder *b, const char *key, str value)
{
	if (value.n)
		val_add_member(b, atom_make(b->arena, str_of(key)), VAL_STR(value));
}

static struct val annotations_of(const struct sandbox *s, struct arena *a, bool sandbox, str container, str image)
{
	struct val metadata = val_get(sandbox_cri(s), metadata);
	struct val_builder b = val_builder(a);

	annotate(&b, "io.kubernetes.cri.container-type", sandbox ? STR("sandbox") : STR("container"));
	annotate(&b, "io.kubernetes.cri.sandbox-id", str_of(s->id));
	annotate(&b, "io.kubernetes.cri.sandbox-namespace", val_str(metadata, namespace));
	annotate(&b, "io.kubernetes.cri.sandbox-uid", val_str(metadata, uid));
	annotate(&b, "io.kubernetes.cri.sandbox-name", val_str(metadata, name));
	if (sandbox)
		annotate(&b, "io.kubernetes.cri.sandbox-log-directory", val_str(sandbox_cri(s), logDirectory));
	annotate(&b, "io.kubernetes.cri.container-name", container);
	annotate(&b, "io.kubernetes.cri.image-name", image);
	return val_end_object(&b);
}

static struct val label(str text) { return text.n ? VAL_STR(text) : VAL_EMPTY; }

/* ---- a container ---- */

static struct val container_process(const struct config_input *in, struct arena *a, struct val args, struct val capabilities)
{
	struct val security = val_get(in->config, linux, securityContext), resources = val_get(in->config, linux, resources);
	str cwd = val_str(in->config, workingDir), of_image = val_str(in->image, WorkingDir);

	return OBJECT(a, F(terminal, val_of_bool(val_bool(in->config, tty))), F(user, config_user_json(a, &in->user)), F(args, args),
		      F(env, container_env(in, a)), F(cwd, VAL_STR(cwd.n ? cwd : of_image.n ? of_image : STR("/"))),
		      F(capabilities, capabilities), F(noNewPrivileges, val_of_bool(val_bool(security, noNewPrivs))),
		      F(apparmorProfile, in->apparmor),
		      F(selinuxLabel, val_bool(security, privileged) ? VAL_EMPTY : label(in->labels.process)),
		      F(oomScoreAdj, val_is_nil(resources) ? VAL_EMPTY :
							     val_of_int(config_oom_score_adj(val_int(resources, oomScoreAdj)))));
}

static struct val paths_or_none(struct val security, struct val list)
{
	return val_bool(security, privileged) ? VAL_EMPTY_LIST : val_len(list) ? list : VAL_EMPTY_LIST;
}

int config_json_container(const struct config_input *in, struct arena *a, struct val *ret, struct err *err)
{
	struct val security = val_get(in->config, linux, securityContext);
	struct val args, mounts, devices, rules, seccomp, capabilities = config_capabilities(a, security);
	str propagation;
	int r;

	if (val_bool(security, privileged) && !val_bool(sandbox_security(in->sandbox), privileged))
		return err_set(err, ERR_INTERNAL, "no privileged container allowed in sandbox");
	if ((r = check_userns(in, security, err)) < 0)
		return r;
	if ((r = container_args(in, a, &args, err)) < 0 || (r = config_mounts(in, a, &mounts, &propagation, err)) < 0 ||
	    (r = config_devices(in, a, &devices, &rules, err)) < 0 ||
	    (r = config_seccomp(a, security, capabilities, &seccomp, err)) < 0)
		return r;
	struct val resources = val_with(a, config_resources(a, val_get(in->config, linux, resources)), rules, devices);
	struct val linux_part =
		OBJECT(a, F(namespaces, container_namespaces(in, a)), F(uidMappings, mappings_of(in->sandbox, a, true)),
		       F(gidMappings, mappings_of(in->sandbox, a, false)), F(devices, devices), F(cgroupsPath, VAL_STR(str_of(in->cgroup))),
		       F(resources, resources), F(seccomp, seccomp), F(maskedPaths, paths_or_none(security, val_get(security, maskedPaths))),
		       F(readonlyPaths, paths_or_none(security, val_get(security, readonlyPaths))),
		       F(rootfsPropagation, propagation.n ? VAL_STR(propagation) : VAL_EMPTY), F(mountLabel, label(in->labels.files)));
	*ret = OBJECT(a, F(ociVersion, VAL_LIT(OCI_VERSION)),
		      F(process, container_process(in, a, args, capabilities)),
		      F(root, OBJECT(a, F(path, VAL_STR(str_of(in->root))), F(readonly, val_of_bool(val_bool(security, readonlyRootfs))))),
		      F(mounts, mounts), F(linux, linux_part),
		      F(annotations, annotations_of(in->sandbox, a, false, val_str(in->config, metadata, name), in->image_name)));
	return config_cdi(in, a, ret, err);
}

/* ---- a sandbox ---- */

static struct val bind_of(struct arena *a, const char *source, const char *destination)
{
	return OBJECT(a, F(destination, VAL_STR(str_of(destination))), F(type, VAL_LIT("bind")), F(source, VAL_STR(str_of(source))),
		      F(options, LIST(a, VAL_LIT("rbind"), VAL_LIT("ro"), VAL_LIT("nosuid"), VAL_LIT("nodev"))));
}

static struct val sandbox_mounts(const struct sandbox *s, const char *root, struct arena *a)
{
	bool node_ipc = runtime_is(val_get(sandbox_security(s), namespaceOptions, ipc), "NODE");
	struct val_builder b = val_builder(a);
	struct val proc = LIST(a, VAL_LIT("nosuid"), VAL_LIT("noexec"), VAL_LIT("nodev"));

	val_add_item(&b, OBJECT(a, F(destination, VAL_LIT("/proc")), F(type, VAL_LIT("proc")), F(source, VAL_LIT("proc")),
				F(options, proc)));
	val_add_item(&b, OBJECT(a, F(destination, VAL_LIT("/dev")), F(type, VAL_LIT("tmpfs")), F(source, VAL_LIT("tmpfs")),
				F(options, LIST(a, VAL_LIT("nosuid"), VAL_LIT("strictatime"), VAL_LIT("mode=755"),
						VAL_LIT("size=65536k")))));
	val_add_item(&b, bind_of(a, node_ipc ? "/dev/shm" : sandbox_shm(s, a), "/dev/shm"));
	val_add_item(&b, bind_of(a, runtime_text(a, "%s/resolv.conf", sandbox_state_folder(s, a)), "/etc/resolv.conf"));
	if (!root)
		val_add_item(&b, bind_of(a, s->runtime->o.pod_program, "/pause"));
	return val_end_list(&b);
}

/* Pods may listen on low ports and send pings, unless they want it otherwise: as containerd has it. */
static struct val sandbox_sysctls(const struct sandbox *s, struct arena *a)
{
	struct val given = val_get(sandbox_cri(s), linux, sysctls);
	atom ports = atom_make(a, STR("net.ipv4.ip_unprivileged_port_start")), pings = atom_make(a, STR("net.ipv4.ping_group_range"));

	if (sandbox_host_network(s))
		return given;
	if (!val_exists(val_member(given, ports)))
		given = val_put(a, given, ports, VAL_LIT("0"));
	/* The kernel wants groups that there are: not all of them are in a user namespace. */
	if (!sandbox_userns(s, a) && !val_exists(val_member(given, pings)))
		given = val_put(a, given, pings, VAL_LIT("0 2147483647"));
	return given;
}

static struct val sandbox_process(const struct sandbox *s, struct val image, const struct config_labels *labels, struct arena *a,
				  struct val capabilities)
{
	struct val security = sandbox_security(s);
	struct config_user user = { .uid = (uint32_t)val_int(security, runAsUser, value),
				    .gid = (uint32_t)val_int(security, runAsGroup, value) };
	struct val wanted = val_get(security, supplementalGroups);
	uint32_t *groups = ARENA_ARRAY(a, uint32_t, (size_t)val_len(wanted) + 1);
	struct val_builder args = val_builder(a);

	VAL_EACH(g, wanted)
		groups[user.n_groups++] = (uint32_t)val_as_int(*g);
	user.groups = groups;
	VAL_EACH(item, val_get(image, Entrypoint))
		val_add_item(&args, *item);
	VAL_EACH(item, val_get(image, Cmd))
		val_add_item(&args, *item);
	if (!args.n)
		val_add_item(&args, VAL_LIT("/pause"));
	return OBJECT(a, F(terminal, val_of_bool(false)), F(user, config_user_json(a, &user)), F(args, val_end_list(&args)),
		      F(env, LIST(a, VAL_LIT(DEFAULT_PATH))), F(cwd, VAL_LIT("/")), F(capabilities, capabilities),
		      F(noNewPrivileges, val_of_bool(true)),
		      F(selinuxLabel, val_bool(security, privileged) ? VAL_EMPTY : label(labels->process)),
		      F(oomScoreAdj, val_of_int(config_oom_score_adj(SANDBOX_OOM_SCORE))));
}

int config_json_sandbox(const struct sandbox *s, const char *root, struct val image, const struct config_labels *labels, struct arena *a,
			struct val *ret, struct err *err)
{
	struct val capabilities = config_capabilities(a, VAL_EMPTY), seccomp;
	int r = config_seccomp(a, sandbox_security(s), capabilities, &seccomp, err);

	if (r < 0)
		return r;
	struct val resources = OBJECT(a, F(cpu, OBJECT(a, F(shares, val_of_int(SANDBOX_SHARES)))),
				      F(devices, LIST(a, OBJECT(a, F(allow, val_of_bool(false)), F(access, VAL_LIT("rwm"))))));
	/* Who shares our PID namespace comes here by /proc/PID/root, and writing to /proc/sys takes no capability. */
	struct val masked = LIST(a, VAL_LIT("/proc/acpi"), VAL_LIT("/proc/kcore"), VAL_LIT("/proc/keys"), VAL_LIT("/proc/latency_stats"),
				 VAL_LIT("/proc/sched_debug"), VAL_LIT("/proc/scsi"), VAL_LIT("/proc/timer_list"),
				 VAL_LIT("/proc/timer_stats"));
	struct val readonly = LIST(a, VAL_LIT("/proc/asound"), VAL_LIT("/proc/bus"), VAL_LIT("/proc/fs"), VAL_LIT("/proc/irq"),
				   VAL_LIT("/proc/sys"), VAL_LIT("/proc/sysrq-trigger"));
	struct val linux_part = OBJECT(a, F(namespaces, first_namespaces(s, a)), F(uidMappings, mappings_of(s, a, true)),
				       F(gidMappings, mappings_of(s, a, false)), F(sysctl, sandbox_sysctls(s, a)),
				       F(cgroupsPath, VAL_STR(str_of(runtime_text(a, "%s/%s", sandbox_cgroup(s, a), s->id)))),
				       F(resources, resources), F(seccomp, seccomp),
				       F(maskedPaths, masked), F(readonlyPaths, readonly), F(mountLabel, label(labels->files)));
	str path = str_of(root ? root : sandbox_own_root(s, a));
	*ret = OBJECT(a, F(ociVersion, VAL_LIT(OCI_VERSION)), F(process, sandbox_process(s, image, labels, a, capabilities)),
		      F(root, OBJECT(a, F(path, VAL_STR(path)), F(readonly, val_of_bool(true)))),
		      F(hostname, sandbox_host_network(s) ? VAL_EMPTY : VAL_STR(hostname_of(s, a))),
		      F(mounts, sandbox_mounts(s, root, a)), F(linux, linux_part),
		      F(annotations, annotations_of(s, a, true, STR_NONE, STR_NONE)));
	return 0;
}

struct val config_json_exec(struct arena *a, struct val config_json, struct val args, bool terminal)
{
	struct val process = val_get(config_json, process), env = val_get(process, env);

	if (terminal) {
		struct env e = { a, ARENA_ARRAY(a, str, (size_t)val_len(env) + 1), 0 };
		VAL_EACH(item, env)
			env_set(&e, val_as_str(*item));
		env_set(&e, STR("TERM=xterm"));
		process = val_with(a, process, env_list(&e), env);
	}
	process = val_with(a, process, args, args);
	return val_with(a, process, val_of_bool(terminal), terminal);
}
