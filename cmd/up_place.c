/* What one cluster needs of its machine: a data directory that is its own, addresses, ports, a name. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "cmd/up.h"
#include "cni/inet.h"
#include "machinery/names.h"

enum { FILE_MAX = 16 << 20, DISK_LOW_MB = 1024, DISK_FULL_MB = 16, FILES_LOW = 1000, TCP_LISTEN = 10, PORT_MAX = 65535 };

/* ---- the data directory ---- */

/* What there is of a path already. */
static const char *deepest(struct arena *a, const char *path)
{
	struct stat st;

	while (stat(path, &st) < 0 && path[1]) {
		const char *slash = strrchr(path, '/');
		path = slash > path ? arena_str(a, str_span(path, (size_t)(slash - path))).p : "/";
	}
	return path;
}

/* On a full disk nothing begins; a cluster that is there may start, and make room by itself. */
static void look_at_disk(struct arena *a, const struct up_cluster *c, struct up_findings *f)
{
	const char *folder = deepest(a, c->settings.data_dir);
	struct statfs fs;

	if (statfs(folder, &fs) < 0)
		return;
	int64_t mb = (int64_t)fs.f_bavail * fs.f_bsize / (1 << 20);
	bool no_files = fs.f_files && fs.f_ffree < FILES_LOW;
	enum up_severity severity = mb < DISK_FULL_MB && access(c->settings_file, F_OK) < 0 ? UP_PROBLEM : mb < DISK_LOW_MB || no_files ? UP_WARNING : UP_FINE;
	up_tell(f, severity, "disk", arena_printf(a, "%" PRId64 " MiB%s free in %s", mb, no_files ? " and few inodes" : "", folder),
		severity == UP_PROBLEM ? "it is full: make room there, or give a folder on another disk with --data-dir" :
		"images and containers need room; with little left the node reports pressure and evicts pods");
	if (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC)
		up_tell(f, UP_WARNING, "data directory", arena_printf(a, "%s is in memory", folder), "nothing of the cluster survives a reboot");
	if (fs.f_type == OVERLAYFS_SUPER_MAGIC)
		up_tell(f, UP_WARNING, "data directory", arena_printf(a, "%s is on an overlay", folder),
			"overlays cannot be made there, and every container has a copy of its image: give a folder on a volume with --data-dir");
}

/* Whether what is written there stays: "" or what is wrong. */
static const char *try_writing(const char *folder)
{
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	const char *wrong = "";

	if (fd < 0)
		return errno == EROFS ? "is read-only" : errno == ENOSPC || errno == EDQUOT ? "is full" : errno == EOPNOTSUPP || errno == EISDIR ? "" : "cannot be written to";
	if (write(fd, "", 1) < 0)
		wrong = errno == ENOSPC || errno == EDQUOT ? "is full" : "cannot be written to";
	else if (fsync(fd) < 0)
		wrong = "cannot keep what is written (fsync fails)";
	(void)close(fd);
	return wrong;
}

/* What tells that another program keeps a cluster there; NULL: nothing does. Other files of other people are left alone. */
static const char *foreign_entry(struct arena *a, const char *dir)
{
	static const char *const strange[] = { "kubelet.conf", "pki", "server", "agent", "member", "state.db", "etc" };

	for (size_t i = 0; i < ARRAY_LEN(strange); i++)
		if (access(arena_printf(a, "%s/%s", dir, strange[i]).p, F_OK) == 0)
			return strange[i];
	return NULL;
}

/* Of a folder that no cluster was made in yet. */
static const char *wrong_with_new(struct arena *a, const struct up_cluster *c, const char **advice)
{
	const char *foreign = foreign_entry(a, c->settings.data_dir), *folder = deepest(a, c->settings.data_dir), *wrong = geteuid() == 0 ? try_writing(folder) : "";

	if (foreign) {
		*advice = "give a new or an empty one with --data-dir, or move that away";
		return arena_printf(a, "%s holds %s, which 'c8s up' has not made", c->settings.data_dir, foreign).p;
	}
	if (*wrong) {
		*advice = "give a folder on another disk with --data-dir";
		return arena_printf(a, "%s %s", folder, wrong).p;
	}
	return NULL;
}

/* Of a folder that has a cluster. */
static const char *wrong_with_old(struct arena *a, const struct up_cluster *c, const char **advice)
{
	bool began = access(c->node_conf, F_OK) == 0;

	if (!c->settings.server && began && access(arena_printf(a, "%s/pki/ca.key", c->control_dir).p, F_OK) < 0) {
		*advice = arena_printf(a, "put it back from a backup, or begin anew: 'c8s reset --data-dir %s'", c->settings.data_dir).p;
		return arena_printf(a, "%s/pki/ca.key is gone, and with it the authority of the cluster that is here", c->control_dir).p;
	}
	return NULL;
}

static const char *wrong_with_folder(struct arena *a, const struct up_cluster *c, const char **advice)
{
	static const char socket[] = "/node/kubelet/device-plugins/kubelet.sock"; /* the longest of them */
	const char *dir = c->settings.data_dir;
	struct stat st;

	*advice = "give another one with --data-dir";
	if (strlen(dir) + sizeof(socket) > sizeof(((struct sockaddr_un *)NULL)->sun_path)) {
		*advice = "give a shorter one with --data-dir";
		return arena_printf(a, "%s: the path is too long for the sockets in it (at most %zu letters)", dir,
				    sizeof(((struct sockaddr_un *)NULL)->sun_path) - sizeof(socket)).p;
	}
	if (stat(dir, &st) < 0) /* also: closed to us, who are then not root */
		return errno == ENOENT ? wrong_with_new(a, c, advice) : arena_printf(a, "%s: %s", dir, strerror(errno)).p;
	if (!S_ISDIR(st.st_mode))
		return arena_printf(a, "%s is not a folder", dir).p;
	if (st.st_uid != geteuid() && geteuid() == 0) {
		*advice = arena_printf(a, "who owns it could change everything in it: chown root %s, or give another one with --data-dir", dir).p;
		return arena_printf(a, "%s belongs to user %u", dir, st.st_uid).p;
	}
	if (st.st_mode & (S_IWGRP | S_IWOTH)) {
		*advice = arena_printf(a, "chmod go-w %s, or give another one with --data-dir", dir).p;
		return arena_printf(a, "%s can be written to by other users", dir).p;
	}
	return access(c->settings_file, F_OK) < 0 ? wrong_with_new(a, c, advice) : wrong_with_old(a, c, advice);
}

static void look_at_data(struct arena *a, const struct up_cluster *c, struct up_findings *f)
{
	const char *advice = NULL, *wrong = wrong_with_folder(a, c, &advice);

	up_tell(f, wrong ? UP_PROBLEM : UP_FINE, "data directory", str_of(wrong ? wrong : c->settings.data_dir), advice);
}

/* The control plane's user has to get there. */
static void look_at_way(struct arena *a, const struct up_cluster *c, struct up_findings *f)
{
	str path = str_of(c->settings.data_dir);
	struct stat st;

	for (size_t i = 1; i < path.n; i++) {
		if (path.p[i] != '/')
			continue;
		const char *folder = arena_str(a, str_span(path.p, i)).p;
		if (stat(folder, &st) == 0 && !(st.st_mode & S_IXOTH))
			up_tell(f, UP_PROBLEM, "data directory", arena_printf(a, "%s is closed to other users", folder),
				arena_printf(a, "the control plane runs as user %u and has to pass there: chmod o+x %s, or give another folder with --data-dir", c->uid, folder).p);
	}
}

/* ---- names and addresses ---- */

static void look_at_name(struct arena *a, const char *name, struct up_findings *f)
{
	struct name_errors errors = { 0 };
	bool wrong = name_check_dns1123_subdomain(str_of(name), &errors) > 0 || strlen(name) > NAME_LABEL_MAX; /* it is a label's value, too */

	up_tell(f, wrong ? UP_PROBLEM : UP_FINE, "node name", arena_printf(a, wrong ? "'%s' cannot be one" : "%s", name),
		"give one with --node-name: lower case letters, digits, '-' and '.', at most 63, such as 'node-1'");
}

static bool socket_address(const char *text, int64_t port, struct sockaddr_storage *ret, socklen_t *ret_n)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;

	*ret = (struct sockaddr_storage){ 0 };
	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons((uint16_t)port);
		*ret_n = sizeof(*v4);
		return true;
	}
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons((uint16_t)port);
	*ret_n = sizeof(*v6);
	return inet_pton(AF_INET6, text, &v6->sin6_addr) == 1;
}

/* 0, or the errno of binding. */
static int try_binding(const char *address, int64_t port)
{
	struct sockaddr_storage to;
	socklen_t n;
	int one = 1, fd, r = 0;

	if (!socket_address(address, port, &to, &n))
		return EADDRNOTAVAIL;
	if ((fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0)) < 0)
		return errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&to, n) < 0 || listen(fd, 1) < 0)
		r = errno;
	(void)close(fd);
	return r;
}

/* The first address of each link, for those who have to choose one. */
static str own_addresses(struct arena *a)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(FILE_MAX);
	char address[INET_TEXT];
	struct ifaddrs *all = NULL;

	(void)getifaddrs(&all);
	for (struct ifaddrs *i = all; i; i = i->ifa_next)
		if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET)
			buf_addf(&text, "%s%s", text.n ? ", " : "", inet_text(inet_of(AF_INET, &((struct sockaddr_in *)i->ifa_addr)->sin_addr), address));
	freeifaddrs(all);
	return arena_str(a, buf_str(&text));
}

static void look_at_address(struct arena *a, const char *flag, const char *address, struct up_findings *f)
{
	if (address && try_binding(address, 0) == EADDRNOTAVAIL)
		up_tell(f, UP_PROBLEM, "addresses", arena_printf(a, "%s is not an address of this machine", address),
			arena_printf(a, "give --%s one that it has: " STR_FMT, flag, STR_ARG(own_addresses(a))).p);
}

/* Our own bridge, or one that was: the node may have had another range before. */
static bool is_own_bridge(struct arena *a, const struct up_cluster *c, const char *link)
{
	return access(arena_printf(a, "%s/runtime/cni/networks/%s", c->node_dir, link).p, F_OK) == 0;
}

/* A link with an address in that range, but for our own bridge; NULL: there is none. */
static const char *link_within(struct arena *a, const struct up_cluster *c, struct inet_net range)
{
	CLEANUP(buf_done) struct buf own = BUF_INIT(FILE_MAX);
	struct ifaddrs *all = NULL;
	const char *found = NULL;

	(void)file_read(arena_printf(a, "%s/net.d/10-c8s.conflist", c->node_dir).p, &own, NULL);
	(void)getifaddrs(&all);
	for (struct ifaddrs *i = all; i && !found; i = i->ifa_next) {
		int family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;
		if (family != AF_INET && family != AF_INET6)
			continue;
		struct inet ip = family == AF_INET ? inet_of(family, &((struct sockaddr_in *)i->ifa_addr)->sin_addr) :
						     inet_of(family, &((struct sockaddr_in6 *)i->ifa_addr)->sin6_addr);
		if (inet_net_has(range, ip) && !is_own_bridge(a, c, i->ifa_name) && str_find(buf_str(&own), arena_printf(a, "\"%s\"", i->ifa_name)) < 0)
			found = arena_printf(a, STR_FMT " of the link %s is in it", STR_ARG(inet_str(a, ip)), i->ifa_name).p;
	}
	freeifaddrs(all);
	return found;
}

static bool overlap(struct inet_net a, struct inet_net b) { return inet_net_has(a, inet_net_first(b)) || inet_net_has(b, inet_net_first(a)); }

/* What a flag says: a range, or one of each family. */
struct ranges {
	struct inet_net nets[2];
	size_t n;
};

static bool look_at_range(struct arena *a, const struct up_cluster *c, const char *flag, const char *text, struct ranges *ret, struct up_findings *f)
{
	str one, rest = str_of(text);

	for (ret->n = 0; rest.n; ret->n++) {
		const char *link;
		(void)str_cut(rest, ',', &one, &rest);
		if (ret->n == ARRAY_LEN(ret->nets) || !inet_net_parse(one, &ret->nets[ret->n])) {
			up_tell(f, UP_PROBLEM, "addresses", arena_printf(a, "'%s' is not a range", text),
				arena_printf(a, "give --%s one such as 10.100.0.0/16, or one of each family with a comma", flag).p);
			return false;
		}
		if ((link = link_within(a, c, ret->nets[ret->n])))
			up_tell(f, UP_PROBLEM, "addresses", arena_printf(a, STR_FMT " is used already: %s", STR_ARG(one), link),
				arena_printf(a, "give --%s a range that is free in your networks, such as 10.100.0.0/16; each cluster on a machine has its own", flag).p);
	}
	return true;
}

static void look_at_ranges(struct arena *a, const struct up_cluster *c, struct up_findings *f)
{
	const struct up_settings *s = &c->settings;
	struct ranges pods, services;

	if (!look_at_range(a, c, "pod-cidr", s->pod_cidr, &pods, f) || !look_at_range(a, c, "service-cidr", s->service_cidr, &services, f))
		return;
	for (size_t i = 0; i < pods.n; i++)
		for (size_t k = 0; k < services.n; k++)
			if (overlap(pods.nets[i], services.nets[k]))
				up_tell(f, UP_PROBLEM, "addresses", arena_printf(a, "%s and %s overlap", s->pod_cidr, s->service_cidr),
					"pods and services need ranges of their own: change --pod-cidr or --service-cidr");
}

/* ---- ports ---- */

/* The socket that listens there, by its inode; 0: none. */
static unsigned long listening_socket(const char *table, int64_t port)
{
	FILE *file = fopen(table, "re");
	char line[512];
	unsigned long found = 0;

	while (file && !found && fgets(line, sizeof(line), file)) {
		unsigned local = 0, state = 0;
		unsigned long inode = 0;
		if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*s %*s %*s %*s %*s %lu", &local, &state, &inode) == 3 && state == TCP_LISTEN && local == port)
			found = inode;
	}
	if (file)
		(void)fclose(file);
	return found;
}

static bool holds(struct arena *a, const char *process, const char *socket)
{
	const char *folder = arena_printf(a, "/proc/%s/fd", process).p;
	DIR *dir = opendir(folder);
	struct dirent *e;
	char to[64];
	bool found = false;

	while (dir && !found && (e = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), e->d_name, to, sizeof(to));
		found = n > 0 && str_eq(str_span(to, (size_t)n), str_of(socket));
	}
	if (dir)
		(void)closedir(dir);
	return found;
}

/* The process that listens there; 0: it cannot be known. */
static pid_t listener(struct arena *a, int64_t port)
{
	unsigned long inode = listening_socket("/proc/net/tcp", port);
	DIR *dir = opendir("/proc");
	struct dirent *e = NULL;

	if (!inode)
		inode = listening_socket("/proc/net/tcp6", port);
	const char *socket = arena_printf(a, "socket:[%lu]", inode).p;
	while (dir && (e = readdir(dir)) && !(e->d_name[0] >= '1' && e->d_name[0] <= '9' && holds(a, e->d_name, socket)))
		;
	pid_t pid = e ? (pid_t)strtol(e->d_name, NULL, 10) : 0;
	if (dir)
		(void)closedir(dir);
	return pid;
}

/* "nginx (pid 123)", or as much as can be known. */
static str name_of(struct arena *a, pid_t pid)
{
	CLEANUP(buf_done) struct buf name = BUF_INIT(256);

	if (!pid || file_read(arena_printf(a, "/proc/%d/comm", pid).p, &name, NULL) < 0)
		return STR("another program");
	return arena_printf(a, STR_FMT " (pid %d)", STR_ARG(str_trim(buf_str(&name))), pid);
}

static pid_t parent_of(struct arena *a, pid_t pid)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(FILE_MAX);
	str word = STR("\nPPid:");

	if (file_read(arena_printf(a, "/proc/%d/status", pid).p, &text, NULL) < 0 || str_find(buf_str(&text), word) < 0)
		return 0;
	return (pid_t)strtol(text.p + str_find(buf_str(&text), word) + word.n, NULL, 10);
}

/* Is it this cluster, which runs, that listens there? Then a supervisor that takes the place of the one of now finds the port free. */
static bool is_own_part(struct arena *a, const struct up_cluster *c, pid_t pid)
{
	pid_t supervisor = 0;

	return pid && up_running(c, &supervisor) && supervisor > 0 && (pid == supervisor || parent_of(a, pid) == supervisor);
}

static void look_at_port(struct arena *a, const struct up_cluster *c, const char *what, const char *address, int64_t port, const char *flag, struct up_findings *f)
{
	if (port < 1 || port > PORT_MAX) {
		up_tell(f, UP_PROBLEM, what, arena_printf(a, "%" PRId64 " is none", port), arena_printf(a, "give --%s a number from 1 to %d", flag, PORT_MAX).p);
		return;
	}
	if (try_binding(address, port) != EADDRINUSE) {
		up_tell(f, UP_FINE, what, arena_printf(a, "%" PRId64 " is free", port), NULL);
		return;
	}
	pid_t by = listener(a, port);
	if (is_own_part(a, c, by))
		up_tell(f, UP_FINE, what, arena_printf(a, "%" PRId64 " is this cluster's, which runs", port), NULL);
	else
		up_tell(f, UP_PROBLEM, what, arena_printf(a, "%" PRId64 " is taken by " STR_FMT, port, STR_ARG(name_of(a, by))),
			arena_printf(a, "choose another one with --%s, or stop that program", flag).p);
}

static void look_at_ports(struct arena *a, const struct up_cluster *c, struct up_findings *f)
{
	const struct up_settings *s = &c->settings;

	if (!s->server)
		look_at_port(a, c, "API server's port", s->bind_address, s->secure_port, "secure-port", f);
	look_at_port(a, c, "kubelet's port", "0.0.0.0", s->kubelet_port, "kubelet-port", f);
	if (!s->server && s->secure_port == s->kubelet_port)
		up_tell(f, UP_PROBLEM, "ports", arena_printf(a, "%" PRId64 " is given twice", s->secure_port), "--secure-port and --kubelet-port have to differ");
}

void up_look_at_place(struct arena *a, const struct up_cluster *c, struct up_findings *f)
{
	look_at_disk(a, c, f);
	look_at_data(a, c, f);
	if (c->uid && !c->settings.server)
		look_at_way(a, c, f);
	look_at_name(a, c->settings.node_name, f);
	look_at_address(a, "node-ip", c->settings.node_ip, f);
	if (!c->settings.server) {
		look_at_address(a, "bind-address", c->settings.bind_address, f);
		look_at_ranges(a, c, f);
	}
	look_at_ports(a, c, f);
}
