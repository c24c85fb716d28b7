#include "store/etcd_fixture.h"

#include <ftw.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fiber.h"

const char *etcd_program(const char *name)
{
	static char path[1024];
	const char *dirs = getenv("PATH"), *peers = getenv("PEERS"), *shared = getenv("C8S_PEERS");
	static char all[4096];

	/* Of this build, or of all. */
	(void)snprintf(all, sizeof all, "%s:%s:%s/usr/bin", dirs ? dirs : "", peers ? peers : "", shared ? shared : "");
	for (str rest = str_of(all), dir; rest.n;) {
		(void)str_cut(rest, ':', &dir, &rest);
		(void)snprintf(path, sizeof path, STR_FMT "/%s", STR_ARG(dir), name);
		if (dir.n && access(path, X_OK) == 0)
			return path;
	}
	print_message("# SKIP %s was not found: install etcd-server and etcd-client, or run the tests of peers first\n",
		      name);
	return NULL;
}

/* ---- certificates ---- */

/* A shell is the plainest way to call a program a dozen times; nothing in it comes from outside. */
static const char certificates[] =
	"set -e\n"
	"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.crt -days 2 "
	"-subj /CN=test-ca\n"
	"for n in server client; do\n"
	"  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout $n.key -out $n.csr -subj /CN=$n\n"
	"  printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\\n' > $n.ext\n"
	"  openssl x509 -req -in $n.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile $n.ext -out $n.crt\n"
	"done\n";

static void make_certificates(const char *folder)
{
	const char *argv[] = { "sh", "-c", certificates, NULL };
	struct process_spec spec = { .argv = argv, .cwd = folder };
	struct process_output out = { 0 };
	struct err err = ERR_INIT;

	if (process_run(&spec, STR_NONE, 1 << 20, &out, &err) < 0 || out.status.exit_code != 0)
		fail_msg("openssl: %s " STR_FMT, err.msg, STR_ARG(buf_str(&out.err)));
	process_output_done(&out);
}

/* ---- members ---- */

static unsigned free_port(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof a;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&a, n) == 0 && getsockname(fd, (struct sockaddr *)&a, &n) == 0);
	close(fd);
	return ntohs(a.sin_port);
}

static void member_urls(struct etcd_cluster *c, unsigned i)
{
	if (c->tls)
		(void)snprintf(c->urls[i], sizeof c->urls[i], "https://127.0.0.1:%u", free_port());
	else
		(void)snprintf(c->urls[i], sizeof c->urls[i], "unix:%s/client:%u", c->folder, i);
	c->endpoints[i] = c->urls[i];
}

void etcd_member_start(struct etcd_cluster *c, unsigned i)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const char *client = c->tls ? c->urls[i] : arena_printf(&a, "unix://client:%u", i).p;
	const char *peer = arena_printf(&a, "unix://peer:%u", i).p, *name = arena_printf(&a, "m%u", i).p;
	str peers = STR_NONE;
	struct err err = ERR_INIT;

	/* One that was killed leaves its sockets behind, and would not start over them. */
	(void)unlink(arena_printf(&a, "%s/client:%u", c->folder, i).p);
	(void)unlink(arena_printf(&a, "%s/peer:%u", c->folder, i).p);
	for (unsigned j = 0; j < c->n; j++)
		peers = arena_printf(&a, STR_FMT "%sm%u=unix://peer:%u", STR_ARG(peers), j ? "," : "", j, j);
	const char *argv[32] = {
		"etcd", "--name", name, "--data-dir", name, "--logger", "zap", "--log-level", "fatal",
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", peers.p,
		"--quota-backend-bytes", c->quota ? c->quota : "0",
	};
	const char *tls[] = { "--cert-file", "server.crt", "--key-file", "server.key", "--client-cert-auth",
			      "--trusted-ca-file", "ca.crt" };
	size_t n = 0;
	while (argv[n])
		n++;
	if (c->tls)
		memcpy(argv + n, tls, sizeof tls);
	struct process_spec spec = { .argv = argv, .path = etcd_program("etcd"), .cwd = c->folder };
	if (process_spawn(&spec, &c->members[i], &err) < 0)
		fail_msg("%s", err.msg);
}

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *ftw)
{
	(void)s;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void remove_folder(struct etcd_cluster *c) { (void)nftw(c->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS); }

/* Without a loop, at the end of the process. */
static void stop_now(struct etcd_cluster *c)
{
	for (unsigned i = 0; i < c->n; i++) {
		pid_t pid = c->members[i] ? process_pid(c->members[i]) : 0;
		if (pid > 0 && kill(pid, SIGKILL) == 0)
			(void)waitpid(pid, NULL, 0);
	}
	remove_folder(c);
}

/* A test that fails does not come back to stop what it started. */
static struct etcd_cluster *running[8];

static void stop_running(void)
{
	for (size_t i = 0; i < ARRAY_LEN(running); i++) {
		if (running[i])
			stop_now(running[i]);
	}
}

static void replace_running(struct etcd_cluster *from, struct etcd_cluster *to)
{
	for (size_t i = 0; i < ARRAY_LEN(running); i++) {
		if (running[i] == from) {
			running[i] = to;
			return;
		}
	}
}

void etcd_cluster_start(struct etcd_cluster *c, unsigned n, bool tls, const char *quota)
{
	const char *base = getenv("TMPDIR");
	static bool registered;

	if (!registered)
		(void)atexit(stop_running);
	registered = true;
	replace_running(NULL, c);

	*c = (struct etcd_cluster){ .n = n, .tls = tls, .quota = quota };
	(void)snprintf(c->folder, sizeof c->folder, "%s/c8s-etcd-XXXXXX", base ? base : "/tmp");
	CHECK(mkdtemp(c->folder));
	if (tls)
		make_certificates(c->folder);
	for (unsigned i = 0; i < n; i++) {
		member_urls(c, i);
		etcd_member_start(c, i);
	}
}

void etcd_member_signal(struct etcd_cluster *c, unsigned i, int sig)
{
	CHECK_INT(process_kill(c->members[i], sig, NULL), 0);
}

void etcd_member_kill(struct etcd_cluster *c, unsigned i) { process_free(TAKE(c->members[i])); }

void etcd_cluster_stop(struct etcd_cluster *c)
{
	for (unsigned i = 0; i < c->n; i++)
		etcd_member_kill(c, i);
	remove_folder(c);
	replace_running(c, NULL);
}

/* ---- etcdctl ---- */

char *etcd_ctl(struct etcd_cluster *c, const char *const *args)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const char *argv[16] = { "etcdctl" }, *env[] = { "ETCDCTL_API=3", NULL };
	struct process_output out = { 0 };
	struct err err = ERR_INIT;
	str list = STR_NONE;
	size_t n = 1;

	for (unsigned i = 0; i < c->n; i++) {
		str url = str_of(c->urls[i]);
		if (!c->tls)
			url = arena_join(&a, STR("unix://"), str_skip(url, 5));
		list = arena_printf(&a, STR_FMT "%s" STR_FMT, STR_ARG(list), i ? "," : "", STR_ARG(url));
	}
	argv[n++] = arena_join(&a, STR("--endpoints="), list).p;
	if (c->tls) {
		argv[n++] = "--cacert=ca.crt";
		argv[n++] = "--cert=client.crt";
		argv[n++] = "--key=client.key";
	}
	while (*args)
		argv[n++] = *args++;
	struct process_spec spec = { .argv = argv, .path = etcd_program("etcdctl"), .env = env, .cwd = c->folder };
	if (process_run(&spec, STR_NONE, 16 << 20, &out, &err) < 0 || out.status.exit_code != 0)
		fail_msg("etcdctl: %s " STR_FMT, err.msg, STR_ARG(buf_str(&out.err)));
	char *text = buf_take(&out.out);
	process_output_done(&out);
	return text;
}
