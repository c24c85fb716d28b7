/*
 * The folder is looked at as a whole whenever something happens in it, and what is there is compared with what was: so no event can be
 * missed. Each socket has a fiber, which registers it, waits for its end, and takes it back.
 */
#include "kubelet/plugins.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/fiber_io.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/proto.h"
#include "codec/types.h"
#include "kubelet/cri_client.h"

enum {
	REQUEST_MAX = 16 << 20,
	DIAL_MS = 10 * 1000, INFO_MS = 1000, NOTIFY_MS = 5 * 1000, REDIAL_MS = 50, /* as Kubernetes has the first three */
	RETRY_FIRST_MS = 500, RETRY_MAX_MS = 122 * 1000,
	SOCKETS_MAX = 256, FOLDERS_MAX = 256, LEVELS_MAX = 8, ENTRIES_MAX = 10000,
	PATH_TEXT = 1024,
	PAUSE_MS = 20,         /* between two looks, however much happens */
	LOOK_EVERY_MS = 60 * 1000,
};

/* ---- calls ---- */

int plugin_open(str path, struct grpc_channel **ret, struct err *err)
{
	char url[PATH_TEXT];
	const char *endpoints[] = { url, NULL };
	struct grpc_options o = { .endpoints = endpoints };

	if ((size_t)snprintf(url, sizeof(url), "unix://" STR_FMT, STR_ARG(path)) >= sizeof(url) || memchr(path.p, '\0', path.n))
		return err_set(err, ERR_BAD_REQUEST, "the path of the plugin's socket is too long");
	return grpc_channel_new(&o, ret, err);
}

/* Puts the text of a call's error into the words of gRPC's other users. */
static int ask_failed(struct arena *a, int r, struct err *err)
{
	if (err && r != -ERR_CANCELED)
		(void)err_set(err, err->code, STR_FMT, STR_ARG(cri_error_text(a, err)));
	return r;
}

/* (suspends) *ret_status: as grpc_call. */
static int ask(struct grpc_channel *c, const struct rpc *rpc, struct arena *a, struct val request, int64_t timeout_ms, struct val *ret,
	       int *ret_status, struct err *err)
{
	CLEANUP(grpc_message_freep) struct grpc_message *m = NULL;
	CLEANUP(buf_done) struct buf b = BUF_INIT(REQUEST_MAX);
	DEADLINE_SCOPE(timeout_ms);
	int r = proto_encode(&b, request, rpc->request, err);

	*ret_status = GRPC_OK;
	if (r < 0 || (r = grpc_call(c, rpc->path, 0, buf_str(&b), &m, ret_status, err)) < 0)
		return r;
	return proto_decode(a, arena_str(a, grpc_message_str(m)), rpc->response, ret, err);
}

int plugin_ask(struct grpc_channel *c, const struct rpc *rpc, struct arena *a, struct val request, int64_t timeout_ms, struct val *ret,
	       struct err *err)
{
	int status, r = ask(c, rpc, a, request, timeout_ms, ret, &status, err);

	return r < 0 ? ask_failed(a, r, err) : 0;
}

int plugin_ask_first(struct grpc_channel *c, const struct rpc *rpc, struct arena *a, struct val request, int64_t timeout_ms,
		     struct val *ret, struct err *err)
{
	int64_t end_ns = clock_now_ns() + DIAL_MS * NS_PER_MS;
	int status, r;

	while ((r = ask(c, rpc, a, request, timeout_ms, ret, &status, err)) == -ERR_UNAVAILABLE && status < 0 &&
	       clock_now_ns() < end_ns) {
		if ((r = fiber_sleep_ms(REDIAL_MS, err)) < 0)
			return r;
	}
	return r < 0 ? ask_failed(a, r, err) : 0;
}

/* ---- one socket ---- */

struct watch {
	const struct plugin_kind *kinds;
	size_t n_kinds;
	void *arg;
	int fd;
	struct list sockets;
	size_t n_sockets;
};

struct socket {
	struct list link;
	struct watch *watch;
	struct fiber *fiber;
	uint64_t inode;
	struct statx_timestamp born; /* with the inode: is it still the same one? */
	bool seen;
	char *path;
};

/* What has been registered. */
struct registered {
	const struct plugin_kind *kind;
	str name, endpoint;
};

/* (suspends) error: "" for success. */
static int notify(struct grpc_channel *c, struct arena *a, str error, struct err *err)
{
	struct val answer, status = OBJECT(a, F(pluginRegistered, error.n ? VAL_EMPTY : val_of_bool(true)),
					   F(error, error.n ? VAL_STR(error) : VAL_EMPTY));

	return plugin_ask(c, &rpc_Registration_NotifyRegistrationStatus, a, status, NOTIFY_MS, &answer, err);
}

/* (suspends) Tells the plugin why not; the error is that. */
static int refuse(struct grpc_channel *c, struct arena *a, const char *path, str why, struct err *err)
{
	int r = notify(c, a, why, err);

	if (r < 0)
		return err_wrap(err, r, "RegisterPlugin error -- failed to send error at socket %s, err", path);
	return err_set(err, ERR_INVALID, STR_FMT, STR_ARG(why));
}

static const struct plugin_kind *kind_find(const struct watch *w, str type)
{
	for (size_t i = 0; i < w->n_kinds; i++)
		if (str_eq(w->kinds[i].type, type))
			return &w->kinds[i];
	return NULL;
}

/* (suspends) */
static int register_by(struct socket *s, struct grpc_channel *c, struct arena *a, struct registered *ret, struct err *err)
{
	void *arg = s->watch->arg;
	struct val info;
	int r = plugin_ask_first(c, &rpc_Registration_GetInfo, a, VAL_EMPTY_OBJECT, INFO_MS, &info, err);

	if (r < 0)
		return err_wrap(err, r, "RegisterPlugin error -- failed to get plugin info using RPC GetInfo at socket %s, err", s->path);
	const struct plugin_kind *k = kind_find(s->watch, val_str(info, type));
	if (!k)
		return refuse(c, a, s->path, arena_printf(a, "RegisterPlugin error -- no handler registered for plugin type: " STR_FMT
							  " at socket %s", STR_ARG(val_str(info, type)), s->path), err);
	struct registered g = { k, val_str(info, name), val_str(info, endpoint) };
	if (!g.endpoint.n)
		g.endpoint = str_of(s->path);
	if (k->validate(arg, g.name, g.endpoint, val_get(info, supportedVersions), err) < 0)
		return refuse(c, a, s->path, arena_printf(a, "RegisterPlugin error -- plugin validation failed with err: " STR_FMT,
							  STR_ARG(err_str(err))), err);
	if (k->add(arg, g.name, g.endpoint, val_get(info, supportedVersions), err) < 0)
		return refuse(c, a, s->path, arena_printf(a, "RegisterPlugin error -- plugin registration failed with err: " STR_FMT,
							  STR_ARG(err_str(err))), err);
	if ((r = notify(c, a, STR_NONE, err)) < 0) {
		k->remove(arg, g.name, g.endpoint);
		return err_wrap(err, r, "RegisterPlugin error -- failed to send registration status at socket %s, err", s->path);
	}
	*ret = g;
	return 0;
}

/* (suspends) */
static int register_once(struct socket *s, struct arena *a, struct registered *ret, struct err *err)
{
	CLEANUP(grpc_channel_freep) struct grpc_channel *c = NULL;
	int r = plugin_open(str_of(s->path), &c, err);

	return r < 0 ? r : register_by(s, c, a, ret, err);
}

/* (suspends) Until it is canceled. */
static int socket_main(void *arg)
{
	struct socket *s = arg;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct registered g = { 0 };
	int r;

	LOG_CONTEXT("socket", s->path);
	for (int64_t pause_ms = RETRY_FIRST_MS;; pause_ms = MIN(pause_ms * 2, (int64_t)RETRY_MAX_MS)) {
		struct err err = ERR_INIT;
		if ((r = register_once(s, &a, &g, &err)) >= 0)
			break;
		if (fiber_check(NULL) < 0)
			return 0;
		log_error("cannot register a plugin", KV("error", &err), KV("again_ms", pause_ms));
		arena_reset(&a);
		if (fiber_sleep_ms(pause_ms, NULL) < 0)
			return 0;
	}
	log_info("plugin registered", KV("type", g.kind->type), KV("name", g.name), KV("endpoint", g.endpoint));
	while (fiber_sleep_ms(INT64_C(24) * 3600 * 1000, NULL) == 0)
		;
	g.kind->remove(s->watch->arg, g.name, g.endpoint);
	log_info("plugin unregistered", KV("type", g.kind->type), KV("name", g.name));
	return 0;
}

/* (suspends) */
static void socket_free(struct socket *s)
{
	list_remove(&s->link);
	s->watch->n_sockets--;
	(void)fiber_stop(s->fiber);
	free(s->path);
	free(s);
}

static void socket_add(struct watch *w, const char *path, const struct statx *st)
{
	struct err err = ERR_INIT;
	struct socket *s = mem_zalloc(sizeof(*s));

	*s = (struct socket){ .watch = w, .inode = st->stx_ino, .born = st->stx_btime, .seen = true };
	size_t n = strlen(path) + 1;
	s->path = memcpy(mem_alloc(n), path, n);
	if (fiber_spawn(socket_main, s, &s->fiber, &err, "plugin") < 0) {
		log_error("cannot follow a plugin", KV("socket", path), KV("error", &err));
		free(s->path);
		free(s);
		return;
	}
	list_add(&w->sockets, &s->link);
	w->n_sockets++;
}

/* ---- the folder ---- */

/* One look: folders that are still to be read, as a stack. */
struct look {
	struct watch *watch;
	struct arena arena;
	struct folder {
		const char *path;
		unsigned level;
	} todo[FOLDERS_MAX];
	size_t n_todo, n_folders, n_entries;
};

static void look_folder(struct look *l, const char *path, unsigned level)
{
	if (level > LEVELS_MAX || l->n_folders == FOLDERS_MAX) {
		log_warn("a folder below that of plugins is left out: there are too many", KV("path", path));
		return;
	}
	l->todo[l->n_todo++] = (struct folder){ arena_str(&l->arena, str_of(path)).p, level };
	l->n_folders++;
}

/* (suspends) A socket: known, new, or another one under a known name. */
static void look_socket(struct look *l, const char *path, const struct statx *st)
{
	struct watch *w = l->watch;

	LIST_EACH(struct socket, s, &w->sockets, link) {
		if (strcmp(s->path, path) != 0)
			continue;
		if (s->inode == st->stx_ino && s->born.tv_sec == st->stx_btime.tv_sec && s->born.tv_nsec == st->stx_btime.tv_nsec) {
			s->seen = true;
			return;
		}
		socket_free(s);
		break;
	}
	if (w->n_sockets < SOCKETS_MAX)
		socket_add(w, path, st);
	else
		log_warn("a plugin's socket is left out: there are too many", KV("path", path));
}

/* (suspends) */
static void look_entry(struct look *l, const struct folder *f, const char *name)
{
	char path[PATH_TEXT];
	struct statx st;

	if (name[0] == '.' || (size_t)snprintf(path, sizeof(path), "%s/%s", f->path, name) >= sizeof(path) ||
	    statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_INO | STATX_BTIME, &st) < 0)
		return;
	if (S_ISDIR(st.stx_mode))
		look_folder(l, path, f->level + 1);
	else if (S_ISSOCK(st.stx_mode))
		look_socket(l, path, &st);
}

static void dir_closep(DIR **d)
{
	if (*d)
		(void)closedir(*d);
}

/* (suspends) Watched first, read then: what comes in between is seen by one of them. */
static void look_into(struct look *l, struct folder f)
{
	if (inotify_add_watch(l->watch->fd, f.path,
			      IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR | IN_DONT_FOLLOW) < 0) {
		log_warn("cannot watch a folder of plugins", KV("path", f.path), KV("error", strerror(errno)));
		return;
	}
	CLEANUP(dir_closep) DIR *d = opendir(f.path);
	const struct dirent *e;
	while (d && (e = readdir(d)) && l->n_entries++ < ENTRIES_MAX)
		look_entry(l, &f, e->d_name);
}

/* (suspends) */
static void look(struct watch *w, const char *folder)
{
	struct look *l = mem_zalloc(sizeof(*l));

	l->watch = w;
	LIST_EACH(struct socket, s, &w->sockets, link)
		s->seen = false;
	look_folder(l, folder, 0);
	while (l->n_todo)
		look_into(l, l->todo[--l->n_todo]);
	LIST_EACH_SAFE(struct socket, s, &w->sockets, link)
		if (!s->seen)
			socket_free(s);
	arena_done(&l->arena);
	free(l);
}

/* (suspends) Until something has happened, or nothing has for long. */
static int wait_event(int fd, struct err *err)
{
	_Alignas(struct inotify_event) char events[1024];
	int r;

	{
		DEADLINE_SCOPE(LOOK_EVERY_MS);
		r = fiber_wait_fd(fd, POLLIN, err);
	}
	if (r == -ERR_TIMEOUT)
		return fiber_check(err);
	while (r >= 0 && read(fd, events, sizeof(events)) > 0)
		;
	return r < 0 ? r : 0;
}

int plugins_watch(const char *folder, const struct plugin_kind *kinds, size_t n, void *arg, struct err *err)
{
	struct watch w = { .kinds = kinds, .n_kinds = n, .arg = arg };
	int r = file_make_dirs(folder, 0755, err);

	if (r < 0)
		return r;
	w.fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (w.fd < 0)
		return err_sys(err, errno, "failed to start plugin fsWatcher");
	list_init(&w.sockets);
	do
		look(&w, folder);
	while ((r = fiber_sleep_ms(PAUSE_MS, err)) == 0 && (r = wait_event(w.fd, err)) == 0);
	LIST_EACH_SAFE(struct socket, s, &w.sockets, link)
		socket_free(s);
	(void)close(w.fd);
	return r;
}
