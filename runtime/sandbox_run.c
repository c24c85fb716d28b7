/*
 * Making a sandbox: record, network namespace, files, monitor, first process, and meanwhile its network. Whatever fails, sandbox_clear
 * removes all that there may be; after a crash the next start does the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fiber_io.h"
#include "base/file.h"
#include "base/log.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "runtime/config_json.h"
#include "runtime/events.h"
#include "runtime/store.h"
#include "runtime/userns.h"

enum { CLEAR_MS = 60000, FILE_MAX = 1 << 20, SHM_BYTES = 64 << 20 };

/* ---- files ---- */

static int write_hostname(const struct sandbox *s, struct arena *a, const char *folder, struct err *err)
{
	str name = val_str(sandbox_cri(s), hostname);
	char own[256] = "";

	if (!name.n && gethostname(own, sizeof own - 1) == 0)
		name = str_of(own);
	return file_replace(runtime_text(a, "%s/hostname", folder), arena_printf(a, STR_FMT "\n", STR_ARG(name)), 0644, err);
}

static int copy_file(struct arena *a, const char *from, const char *to, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(FILE_MAX);
	int r = file_read(from, &b, err);

	(void)a;
	if (r < 0 && r != -ERR_NOT_FOUND)
		return r;
	return file_replace(to, buf_str(&b), 0644, err);
}

static void add_line(struct buf *b, const char *word, struct val list)
{
	if (!val_len(list))
		return;
	buf_addf(b, "%s", word);
	VAL_EACH(item, list)
		buf_addf(b, " " STR_FMT, STR_ARG(val_as_str(*item)));
	buf_addc(b, '\n');
}

static int write_resolv(const struct sandbox *s, struct arena *a, const char *folder, struct err *err)
{
	struct val dns = val_get(sandbox_cri(s), dnsConfig);
	const char *path = runtime_text(a, "%s/resolv.conf", folder);
	CLEANUP(buf_done) struct buf b = BUF_INIT(FILE_MAX);

	if (val_is_nil(dns))
		return copy_file(a, "/etc/resolv.conf", path, err);
	add_line(&b, "search", val_get(dns, searches));
	VAL_EACH(server, val_get(dns, servers))
		buf_addf(&b, "nameserver " STR_FMT "\n", STR_ARG(val_as_str(*server)));
	add_line(&b, "options", val_get(dns, options));
	return file_replace(path, buf_str(&b), 0644, err);
}

static int mount_shm(const struct sandbox *s, struct arena *a, struct err *err)
{
	const char *path = sandbox_shm(s, a);

	if (runtime_is(val_get(sandbox_security(s), namespaceOptions, ipc), "NODE"))
		return 0;
	int r = file_make_dirs(path, 0700, err);
	if (r < 0)
		return r;
	if (mount("shm", path, "tmpfs", MS_NOEXEC | MS_NOSUID | MS_NODEV, runtime_text(a, "mode=1777,size=%d", SHM_BYTES)) < 0)
		return err_sys(err, errno, "mount %s", path);
	return 0;
}

/* A name to mount on. One that is there is not replaced: what another pod has just mounted on it would go. */
static int make_name(const char *path, struct err *err)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);

	if (fd < 0)
		return err_sys(err, errno, "make %s", path);
	(void)close(fd);
	return 0;
}

/* Our own pause needs a folder with nothing but names to mount on. */
static int make_own_root(const struct sandbox *s, struct arena *a, struct err *err)
{
	const char *root = sandbox_own_root(s, a), *pause = runtime_text(a, "%s/pause", root);
	static const char *const folders[] = { "proc", "dev", "sys", "etc" };
	int r = 0;

	if (access(pause, F_OK) == 0) /* the last that is made */
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(folders) && r == 0; i++)
		r = file_make_dirs(runtime_text(a, "%s/%s", root, folders[i]), 0755, err);
	if (r == 0)
		r = make_name(runtime_text(a, "%s/etc/resolv.conf", root), err);
	return r < 0 ? r : make_name(pause, err);
}

struct files {
	const struct sandbox *sandbox;
	struct arena *arena;
};

/* In the thread pool: all at once, for they are many and small. Nobody needs them after a loss of power. */
static int make_files(void *arg, struct err *err)
{
	struct files *f = arg;
	const struct sandbox *s = f->sandbox;
	struct arena *a = f->arena;
	const char *folder = sandbox_state_folder(s, a);
	int r = file_make_dirs(folder, 0700, err);

	if (r == 0)
		r = write_hostname(s, a, folder, err);
	if (r == 0)
		r = copy_file(a, "/etc/hosts", runtime_text(a, "%s/hosts", folder), err);
	if (r == 0)
		r = write_resolv(s, a, folder, err);
	if (r == 0 && !s->runtime->o.sandbox_image)
		r = make_own_root(s, a, err);
	return r < 0 ? r : mount_shm(s, a, err);
}

/* ---- the first process ---- */

static int image_root(struct sandbox *s, str label, struct arena *a, const char **ret_root, struct val *ret_config, struct err *err)
{
	const char *userns = sandbox_userns(s, a);
	struct runtime *r = s->runtime;
	str name = str_of(r->o.sandbox_image), id;
	struct image_ref ref;
	struct image image;
	int code = image_find(r->images, name, a, &image, err);

	if (code == -ERR_NOT_FOUND) {
		if ((code = image_ref_parse(a, name, &ref, err)) < 0 ||
		    (code = image_pull(r->images, &ref, NULL, NULL, a, &id, err)) < 0)
			return err_wrap(err, code, "failed to pull image \"%s\"", r->o.sandbox_image);
		code = image_find(r->images, id, a, &image, err);
	}
	/* Pods need it also when the node is short of room. */
	if (code == 0 && !image.pinned)
		code = image_pin(r->images, name, true, err);
	if (code < 0 || (code = snapshot_unpack(r->snapshots, r->images, &image, err)) < 0)
		return code;
	*ret_config = val_get(image.config, config);
	code = snapshot_mount(r->snapshots, str_of(s->id), &image, label, a, ret_root, err);
	return code < 0 || !userns ? code : userns_map_root(*ret_root, userns, sandbox_namespaces(s), label, err);
}

static int write_bundle(struct sandbox *s, struct arena *a, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(FILE_MAX);
	struct json_encode_options plain = { .plain = true };
	struct val image = VAL_EMPTY, config;
	const char *root = NULL;
	struct config_labels labels;
	int r = config_selinux(a, val_get(sandbox_security(s), selinuxOptions), VAL_EMPTY, &labels, err);

	if (r == 0 && s->runtime->o.sandbox_image)
		r = image_root(s, labels.files, a, &root, &image, err);
	if (r < 0 || (r = config_json_sandbox(s, root, image, &labels, a, &config, err)) < 0 ||
	    (r = json_encode(&b, config, &plain, err)) < 0)
		return r;
	return store_write_file(runtime_text(a, "%s/config.json", sandbox_state_folder(s, a)), buf_str(&b), 0600, err);
}

static int start_process(struct sandbox *s, struct arena *a, struct err *err)
{
	struct monitor_options o = sandbox_monitor_options(s, a);
	struct val id = VAL_STR(str_of(s->id)), answer;
	int r = monitor_start(&o, sandbox_on_exit, s, &s->monitor, err);

	if (r < 0)
		return err_wrap(err, r, "start the monitor");
	r = sandbox_ask(s, a, OBJECT(a, F(op, VAL_LIT("create")), F(id, id), F(bundle, VAL_STR(str_of(sandbox_state_folder(s, a)))),
				     F(log, VAL_LIT(""))),
			NULL, NULL, &answer, err);
	if (r < 0)
		return err_wrap(err, r, "failed to create containerd task");
	s->pid = (pid_t)val_int(answer, pid);
	r = sandbox_ask(s, a, OBJECT(a, F(op, VAL_LIT("start")), F(id, id)), NULL, NULL, NULL, err);
	return r < 0 ? err_wrap(err, r, "failed to start sandbox container task \"%s\"", s->id) : 0;
}

/* ---- all of it ---- */

static int make_namespaces(struct sandbox *s, struct arena *a, struct err *err)
{
	const char *netns = sandbox_netns(s, a), *userns = sandbox_userns(s, a);
	int r;

	if (!netns)
		return 0;
	if (userns && (r = userns_make(userns, netns, sandbox_namespaces(s), err)) < 0)
		return err_wrap(err, r, "failed to create the user namespace of sandbox \"%s\"", s->id);
	if (!userns && (r = netns_make(netns, err)) < 0)
		return err_wrap(err, r, "failed to create network namespace for sandbox \"%s\"", s->id);
	return 0;
}

struct network {
	struct sandbox *sandbox;
	struct err err;
};

static int make_network(void *arg)
{
	struct network *n = arg;
	int r = sandbox_network_add(n->sandbox, &n->err);

	return r < 0 ? err_wrap(&n->err, r, "failed to setup network for sandbox \"%s\"", n->sandbox->id) : 0;
}

/* The network is made while the first process is. */
static int make_parts(struct sandbox *s, struct arena *a, struct err *err)
{
	struct network network = { s, ERR_INIT };
	struct files files = { s, a };
	CLEANUP(fiber_stopp) struct fiber *networker = NULL;
	int r, made = 0;

	if (sandbox_netns(s, a) && (r = fiber_spawn(make_network, &network, &networker, err, "network of a sandbox")) < 0)
		return r;
	if ((r = fiber_blocking(make_files, &files, err)) < 0 || (r = write_bundle(s, a, err)) < 0 || (r = start_process(s, a, err)) < 0)
		return err_wrap(err, r, "failed to start sandbox \"%s\"", s->id);
	if (networker && (r = fiber_join(networker, &made, err)) < 0)
		return r;
	networker = NULL;
	if (made < 0 && err)
		*err = network.err;
	return made;
}

static int make(struct sandbox *s, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	int r = make_namespaces(s, &a, err);

	if (r < 0 || (r = make_parts(s, &a, err)) < 0)
		return r;
	s->state = SANDBOX_READY;
	return sandbox_save(s, err);
}

static int check(struct runtime *r, struct val config, str handler, const char *id, struct err *err)
{
	struct val options = val_get(config, linux, securityContext, namespaceOptions);

	if (!runtime_handler_find(r, handler))
		return err_set(err, ERR_INTERNAL, "unable to get OCI runtime for sandbox \"%s\": no runtime for \"" STR_FMT
			       "\" is configured", id, STR_ARG(handler));
	int code = userns_check(options, err);
	if (code < 0 || !userns_wanted(options))
		return code;
	if (!r->userns)
		return err_set(err, ERR_METHOD_NOT_ALLOWED, "user namespaces are not supported: %s", r->no_userns.msg);
	if (runtime_handler_find(r, handler)->program)
		return err_set(err, ERR_METHOD_NOT_ALLOWED, "user namespaces are not supported by the runtime handler \"" STR_FMT "\"",
			       STR_ARG(handler));
	if (runtime_is(val_get(options, network), "NODE"))
		return err_set(err, ERR_METHOD_NOT_ALLOWED, "a user namespace together with the node's network is not supported");
	return 0;
}

static str name_of(struct arena *a, struct val metadata)
{
	return arena_printf(a, STR_FMT "_" STR_FMT "_" STR_FMT "_%u", STR_ARG(val_str(metadata, name)),
			    STR_ARG(val_str(metadata, namespace)), STR_ARG(val_str(metadata, uid)),
			    (unsigned)val_int(metadata, attempt));
}

/* It could not be made: nothing of it may stay. */
static void undo(struct sandbox *s, str name)
{
	struct err err = ERR_INIT;
	SHIELD_SCOPE();
	DEADLINE_SCOPE(CLEAR_MS);

	s->state = SANDBOX_REMOVING;
	if (sandbox_clear(s, &err) == 0) {
		runtime_name_release(s->runtime, name);
		return;
	}
	/* Whoever cleans up later finds it. */
	log_error("a sandbox that failed cannot be removed", KV("sandbox", s->id), KV("err", &err));
	s->state = SANDBOX_NOTREADY;
	sandbox_add(s);
}

int sandbox_run(struct runtime *r, struct val config, str handler, char ret_id[RUNTIME_ID + 1], struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	int code;

	if (val_is_nil(val_get(config, metadata)))
		return err_set(err, ERR_INTERNAL, "sandbox config must include metadata");
	runtime_id_make(ret_id);
	str name = name_of(&a, val_get(config, metadata));
	if ((code = check(r, config, handler, ret_id, err)) < 0)
		return code;
	if (!runtime_name_reserve(r, name, ret_id, err))
		return err_wrap(err, -ERR_INTERNAL, "failed to reserve sandbox name \"" STR_FMT "\"", STR_ARG(name));
	struct val record = OBJECT(&a, F(id, VAL_STR(str_of(ret_id))), F(name, VAL_STR(name)), F(state, VAL_LIT("creating")),
				   F(createdAt, val_of_int(clock_wall_ns())), F(runtimeHandler, VAL_STR(handler)),
				   F(config, config_selinux_pod(r, &a, config)));
	CLEANUP(sandbox_unrefp) struct sandbox *s = sandbox_new(r, record);
	if ((code = file_make_dirs(sandbox_folder(s, &a), 0700, err)) < 0 || (code = sandbox_save(s, err)) < 0 ||
	    (code = make(s, err)) < 0) {
		undo(s, name);
		return code;
	}
	sandbox_add(s);
	if (!s->pid)
		sandbox_ended(s);
	events_tell_sandbox(s, EVENT_CREATED);
	events_tell_sandbox(s, EVENT_STARTED);
	return 0;
}
