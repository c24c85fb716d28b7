/* The files of a pod that the kubelet itself gives to a container: /etc/hosts and the one for its last words. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/random.h"
#include "codec/atoms.h"
#include "kubelet/cri_config_priv.h"

enum { HOSTS_MAX = 1 << 20 };

static const char hosts_path[] = "/etc/hosts";

/* ---- /etc/hosts ---- */

static void add_aliases(struct buf *b, struct val aliases)
{
	if (!val_len(aliases))
		return;
	buf_add(b, STR("\n# Entries added by HostAliases.\n"));
	VAL_EACH(alias, aliases) {
		buf_add(b, val_str(*alias, ip));
		VAL_EACH(name, val_get(*alias, hostnames)) {
			buf_addc(b, '\t');
			buf_add(b, val_as_str(*name));
		}
		buf_addc(b, '\n');
	}
}

static void add_own_names(struct buf *b, struct val pod_ips, str name, str domain)
{
	buf_add(b, STR("# Kubernetes-managed hosts file.\n"
		       "127.0.0.1\tlocalhost\n"
		       "::1\tlocalhost ip6-localhost ip6-loopback\n"
		       "fe00::0\tip6-localnet\n"
		       "fe00::0\tip6-mcastprefix\n"
		       "fe00::1\tip6-allnodes\n"
		       "fe00::2\tip6-allrouters\n"));
	VAL_EACH(ip, pod_ips) {
		buf_add(b, val_str(*ip, ip));
		buf_addc(b, '\t');
		if (domain.n)
			buf_addf(b, STR_FMT "." STR_FMT "\t", STR_ARG(name), STR_ARG(domain));
		buf_add(b, name);
		buf_addc(b, '\n');
	}
}

int cri_config_hosts(const struct kubelet_node *n, const struct cri_container_input *in, struct buf *b, struct err *err)
{
	CLEANUP(arena_done) struct arena scratch = ARENA_INIT;
	str name, domain;
	int r;

	if (val_bool(in->pod, spec, hostNetwork)) {
		buf_add(b, STR("# Kubernetes-managed hosts file (host network).\n"));
		r = file_read(hosts_path, b, err);
	} else if ((r = pod_hostname(n, &scratch, in->pod, &name, &domain, err)) >= 0) {
		add_own_names(b, in->pod_ips, name, domain);
	}
	add_aliases(b, val_get(in->pod, spec, hostAliases));
	return r < 0 ? r : buf_check(b, hosts_path, err);
}

/* In place: containers that run have this very file mounted. */
static int write_in_place(const char *path, str text, mode_t mode, struct err *err)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode), r;

	if (fd < 0)
		return err_sys(err, errno, "open %s", path);
	r = fchmod(fd, mode) < 0 ? err_sys(err, errno, "chmod %s", path) : file_write_fd(fd, text, -1, path, err);
	close(fd);
	return r;
}

static bool wants_hosts(const struct cri_container_input *in)
{
	VAL_EACH(m, val_get(in->container, volumeMounts))
		if (str_eq(val_str(*m, mountPath), str_of(hosts_path)))
			return false;
	return val_len(in->pod_ips) || val_bool(in->pod, spec, hostNetwork);
}

/* ---- all of it ---- */

/* Words are worth more than none: an attempt that failed before there was a container leaves an empty file. */
static bool is_worth_more(const struct stat *x, const struct stat *y)
{
	if ((x->st_size > 0) != (y->st_size > 0))
		return x->st_size > 0;
	return x->st_mtim.tv_sec != y->st_mtim.tv_sec ? x->st_mtim.tv_sec > y->st_mtim.tv_sec : x->st_mtim.tv_nsec > y->st_mtim.tv_nsec;
}

/*
 * Of earlier attempts only the newest is left: what the last container said. Their containers may have gone without us, with 'c8s down' or
 * another runtime's commands, and then nobody else removes them while the pod lives.
 */
static void forget_words(struct arena *a, const char *folder)
{
	struct dirent **names;
	struct stat st, newest = { 0 };
	const char *kept = NULL;
	int n = scandir(folder, &names, NULL, NULL);

	for (int i = 0; i < n; i++) {
		const char *path = arena_printf(a, "%s/%s", folder, names[i]->d_name).p;
		bool file = lstat(path, &st) == 0 && S_ISREG(st.st_mode);
		bool newer = file && (!kept || is_worth_more(&st, &newest));
		const char *old = newer ? kept : file ? path : NULL;
		if (old)
			(void)unlink(old);
		if (newer) {
			kept = path;
			newest = st;
		}
		free(names[i]);
	}
	if (n >= 0)
		free(names);
}

/* A file of its own for every attempt. */
static int last_words(struct arena *a, str pod_folder, const struct cri_container_input *in, struct cri_mount *ret, struct err *err)
{
	str path = val_str(in->container, terminationMessagePath);
	str folder = arena_printf(a, STR_FMT "/containers/" STR_FMT, STR_ARG(pod_folder), STR_ARG(val_str(in->container, name)));
	uint32_t number;
	int r;

	random_bytes(&number, sizeof(number));
	str file = arena_printf(a, STR_FMT "/%08x", STR_ARG(folder), number);
	forget_words(a, folder.p);
	if ((r = file_make_dirs(folder.p, 0750, err)) < 0 || (r = write_in_place(file.p, STR_NONE, 0666, err)) < 0)
		return r;
	*ret = (struct cri_mount){ .container_path = *path.p == '/' ? path : arena_join(a, STR("/"), path), .host_path = file,
				   .selinux_relabel = true };
	return 0;
}

int container_files_make(const struct kubelet_node *n, struct arena *a, const struct cri_container_input *in, struct cri_mount ret[2],
			 size_t *ret_n, struct err *err)
{
	CLEANUP(buf_done) struct buf hosts = BUF_INIT(HOSTS_MAX);
	str name = val_str(in->container, name), log_folder = pod_log_folder(n, a, in->pod);
	str folder = arena_printf(a, STR_FMT "/pods/" STR_FMT, STR_ARG(n->root), STR_ARG(val_str(in->pod, metadata, uid)));
	str logs = arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(log_folder), STR_ARG(name));
	str file = arena_join(a, folder, STR("/etc-hosts"));
	int r;

	*ret_n = 0;
	if ((r = file_make_dirs(logs.p, 0755, err)) < 0)
		return err_wrap(err, r, "create container log directory for container " STR_FMT " failed", STR_ARG(name));
	if ((r = file_make_dirs(folder.p, 0750, err)) < 0)
		return r;
	if (wants_hosts(in)) {
		if ((r = cri_config_hosts(n, in, &hosts, err)) < 0 || (r = write_in_place(file.p, buf_str(&hosts), 0644, err)) < 0)
			return r;
		ret[(*ret_n)++] = (struct cri_mount){ .container_path = str_of(hosts_path), .host_path = file, .selinux_relabel = true };
	}
	if (!val_str(in->container, terminationMessagePath).n)
		return 0;
	if ((r = last_words(a, folder, in, &ret[*ret_n], err)) < 0)
		return r;
	(*ret_n)++;
	return 0;
}
