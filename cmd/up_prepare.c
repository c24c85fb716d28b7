/*
 * What the children find: folders of the right owners, the authority of the cluster and the node's certificate. Both children can then
 * start at the same time: neither waits for a file of the other.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apiserver/pki.h"
#include "base/file.h"
#include "base/file_batch.h"
#include "base/path.h"
#include "cmd/up.h"
#include "runtime/snapshot_priv.h"

/* A file with further names may be somebody else's, to which that user has made one here. */
static int give(void *arg, int folder, const char *name, const struct stat *st, struct err *err)
{
	uid_t owner = *(const uid_t *)arg;

	if (st->st_uid == owner || (!S_ISDIR(st->st_mode) && st->st_nlink > 1))
		return 0;
	return fchownat(folder, name, owner, owner, AT_SYMLINK_NOFOLLOW) < 0 && errno != ENOENT ? err_sys(err, errno, "%s", name) : 0;
}

/*
 * All below becomes the control plane's: also what an earlier one, of another user, has written. By descriptors: the user may have left a
 * process that puts links in the place of folders meanwhile.
 */
static int give_away(const char *folder, uid_t uid, struct err *err)
{
	static const struct snapshot_visitor visitor = { .entry = give };
	CLEANUP(fd_closep) int top = path_open_tree(folder, err);
	int r = top < 0 ? top : snapshot_walk(top, &visitor, &uid, err);

	if (r == 0 && fchownat(top, "", uid, uid, AT_EMPTY_PATH) < 0)
		r = err_sys(err, errno, "chown");
	return r < 0 ? err_wrap(err, r, "giving %s to the user %u", folder, uid) : 0;
}

int up_make_folders(const struct up_cluster *c, struct err *err)
{
	const struct { const char *path; mode_t mode; } folders[] = {
		{ c->settings.data_dir, 0755 }, { c->control_dir, 0700 }, { c->node_dir, 0700 }, { c->log_dir, 0750 }, { c->run_dir, 0755 },
		{ arena_printf(c->arena, "%s/net.d", c->node_dir).p, 0755 },
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(folders); i++)
		r = file_make_dirs(folders[i].path, folders[i].mode, err);
	return r;
}

/* What has no flag. */
static void add_kubelet_config(const struct up_cluster *c, struct file_batch *files)
{
	/* A tenth of a laptop's disk is much: pods are evicted a little later than Kubernetes would. */
	str text = arena_printf(c->arena,
				"apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\npodLogsDir: %s/log/pods\n"
				"evictionHard: { memory.available: 100Mi, nodefs.available: 5%%, nodefs.inodesFree: 5%%, imagefs.available: 5%% }\n"
				/* Kubernetes' limits are for API servers that are slow; ours sorts out by itself who goes first. */
				"kubeAPIQPS: 1000\nkubeAPIBurst: 1000\neventRecordQPS: 500\neventBurst: 1000\n",
				c->node_dir);

	file_batch_add(files, c->kubelet_config, text, 0600);
}

int up_prepare(const struct up_cluster *c, struct err *err)
{
	CLEANUP(file_batch_done) struct file_batch files = FILE_BATCH_INIT;
	struct pki_options pki = { .dir = c->control_dir, .needs = PKI_AUTHORITY, .server = c->url, .batch = &files };
	const char *user = arena_printf(c->arena, "system:node:%s", c->settings.node_name).p;
	int r = up_forget_other_name(c, err);

	if (r == 0 && !c->settings.server && (r = up_take_pki(c, err)) >= 0 && (r = pki_ensure(&pki, err)) >= 0)
		r = pki_client_conf(&pki, user, "system:nodes", c->node_conf, err);
	if (r >= 0)
		r = up_save(c, &files, err);
	if (r < 0)
		return r;
	add_kubelet_config(c, &files);
	if ((r = file_batch_write(&files, err)) == 0 && c->uid && !c->settings.server)
		r = give_away(c->control_dir, c->uid, err);
	return r;
}
