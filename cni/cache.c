/*
 * What attachments there are, in libcni's files. They need not survive the loss of power, with which all namespaces go too, so they
 * are not synced; but nobody sees half of one.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/encoding.h"
#include "base/file.h"
#include "cni/cni_priv.h"
#include "codec/atoms.h"
#include "codec/json.h"

/* Of a file that is being written; one that has it for longer was left by somebody who was killed. */
static const str fresh_suffix = STR_INIT(".new");

enum { FRESH_MAX_S = 60 };

static str folder(struct cni *c, struct arena *a) { return arena_printf(a, "%s/results", c->cache_dir); }

static str path_of(struct cni *c, struct arena *a, str network, str id, str ifname)
{
	return arena_printf(a, "%s/results/" STR_FMT "-" STR_FMT "-" STR_FMT, c->cache_dir, STR_ARG(network), STR_ARG(id),
			    STR_ARG(ifname));
}

/* [["K", "V"], ...] */
static struct val args_to_list(struct arena *a, str args)
{
	struct val_builder list = val_builder(a);
	str pair, key, value;

	while (args.n) {
		(void)str_cut(args, ';', &pair, &args);
		(void)str_cut(pair, '=', &key, &value);
		val_add_item(&list, LIST(a, val_of_str(key), val_of_str(value)));
	}
	return list.n ? val_end_list(&list) : VAL_EMPTY;
}

static str args_of_list(struct arena *a, struct val list)
{
	str args = STR_NONE;

	VAL_EACH(pair, list) {
		str key = val_as_str(val_at(*pair, 0)), value = val_as_str(val_at(*pair, 1));
		args = arena_printf(a, STR_FMT "%s" STR_FMT "=" STR_FMT, STR_ARG(args), args.n ? ";" : "", STR_ARG(key),
				    STR_ARG(value));
	}
	return args;
}

static int write_file(const char *path, str text, struct arena *a, struct err *err)
{
	const char *fresh = arena_join(a, str_of(path), fresh_suffix).p;
	int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	ssize_t n = fd < 0 ? -1 : write(fd, text.p, text.n);
	int sys = n < 0 ? errno : ENOSPC;

	if (fd >= 0 && close(fd) < 0 && n >= 0) {
		sys = errno;
		n = -1;
	}
	if (n == (ssize_t)text.n && rename(fresh, path) == 0)
		return 0;
	sys = n == (ssize_t)text.n ? errno : sys;
	(void)unlink(fresh);
	return err_sys(err, sys, "%s", path);
}

int cni_cache_put(struct cni *c, const struct cni_config *net, const struct cni_call *call, struct val result, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf config = BUF_INIT(2 * CNI_FILE_MAX), text = BUF_INIT(4 * CNI_FILE_MAX);
	int r;

	base64_encode_buf(&config, net->text);
	struct val v = OBJECT(&a, F(kind, VAL_LIT("cniCacheV1")), F(containerId, val_of_str(call->id)),
			      F(config, val_of_str(buf_str(&config))),
			      F(ifName, val_of_str(call->ifname)), F(networkName, val_of_str(net->name)),
			      F(netns, call->netns.n ? val_of_str(call->netns) : VAL_EMPTY),
			      F(cniArgs, args_to_list(&a, call->args)),
			      F(capabilityArgs, val_len(call->capabilities) ? call->capabilities : VAL_EMPTY),
			      F(result, result), F(source, VAL_LIT("c8s")));
	if ((r = json_encode(&text, v, &(struct json_encode_options){ .plain = true }, err)) < 0 ||
	    (r = file_make_dirs(folder(c, &a).p, 0700, err)) < 0 ||
	    (r = write_file(path_of(c, &a, net->name, call->id, call->ifname).p, buf_str(&text), &a, err)) < 0)
		return err_wrap(err, r, "failed to set network \"" STR_FMT "\" cached result", STR_ARG(net->name));
	return 0;
}

void cni_cache_remove(struct cni *c, str network, const struct cni_call *call)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str path = path_of(c, &a, network, call->id, call->ifname);

	(void)unlink(path.p);
	(void)unlink(arena_join(&a, path, fresh_suffix).p);
}

void cni_cache_sweep(struct cni *c)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	DIR *d = opendir(folder(c, &a).p);
	const struct dirent *e;
	struct stat st;

	while (d && (e = readdir(d)))
		if (str_ends(str_of(e->d_name), fresh_suffix) && fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    st.st_mtime < clock_wall_ns() / NS_PER_S - FRESH_MAX_S)
			(void)unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
}

static int read_entry(struct arena *a, const char *path, struct cni_cached *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(4 * CNI_FILE_MAX), config = BUF_INIT(CNI_FILE_MAX);
	struct val v;
	int r;

	if ((r = file_read(path, &text, err)) < 0 ||
	    (r = json_decode(a, arena_str(a, buf_str(&text)), &(struct json_decode_options){ 0 }, &v, err)) < 0)
		return r;
	if (!str_eq(val_str(v, kind), STR("cniCacheV1")) || !val_str(v, networkName).n || !val_str(v, ifName).n ||
	    !val_str(v, containerId).n)
		return err_set(err, ERR_INVALID, "%s is not a cached result", path);
	if ((r = base64_decode_buf(&config, val_str(v, config), err)) < 0)
		return r;
	*ret = (struct cni_cached){
		.call = { val_str(v, containerId), val_str(v, netns), val_str(v, ifName),
			  args_of_list(a, val_get(v, cniArgs)), val_get(v, capabilityArgs) },
		.network = val_str(v, networkName),
		.config = arena_str(a, buf_str(&config)),
		.result = val_get(v, result),
		.ours = str_eq(val_str(v, source), STR("c8s")),
	};
	return 0;
}

int cni_cache_get(struct cni *c, struct arena *a, str network, str id, str ifname, struct cni_cached *ret, struct err *err)
{
	return read_entry(a, path_of(c, a, network, id, ifname).p, ret, err);
}

int cni_cache_list(struct cni *c, struct arena *a, str id, struct cni_cached **ret, size_t *ret_n, struct err *err)
{
	str dir = folder(c, a), part = arena_printf(a, "-" STR_FMT "-", STR_ARG(id));
	struct dirent **names = NULL;
	int n = scandir(dir.p, &names, NULL, alphasort);

	*ret_n = 0;
	*ret = ARENA_ARRAY(a, struct cni_cached, n > 0 ? (size_t)n : 1);
	if (n < 0)
		return errno == ENOENT ? 0 : err_sys(err, errno, STR_FMT, STR_ARG(dir));
	for (int i = 0; i < n; i++) {
		struct cni_cached *at = &(*ret)[*ret_n];
		str name = str_of(names[i]->d_name);
		/* The name is only a hint: it cannot be taken apart again. */
		if (name.p[0] != '.' && (!id.n || str_find(name, part) > 0) && !str_ends(name, fresh_suffix) &&
		    read_entry(a, arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(dir), STR_ARG(name)).p, at, NULL) == 0 &&
		    (!id.n || str_eq(at->call.id, id)))
			(*ret_n)++;
		free(names[i]);
	}
	free(names);
	return 0;
}
