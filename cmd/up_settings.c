/* Flags of `c8s up`; what they were is kept in the data directory, in the form of --config: flags by name. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/encoding.h"
#include "base/file.h"
#include "base/file_batch.h"
#include "base/mem.h"
#include "base/path.h"
#include "cmd/machine_address.h"
#include "cmd/up.h"
#include "codec/json.h"
#include "codec/yaml.h"

#define AT(member) FLAG_WORKS, offsetof(struct up_settings, member)
#define WRITTEN_BY "# Written by c8s "

enum { FILE_MAX = 1 << 20, ARGS_MAX = 256, TAG_DIGITS = 8, PASSED_ON_MAX = 32 };

const struct flag up_flags[] = {
	FLAG_GROUP("Cluster"),
	{ "config", FLAG_STRING, AT(config), NULL, "YAML file with flags by name; those of the command line win" },
	{ "data-dir", FLAG_STRING, AT(data_dir), "/var/lib/c8s", "where everything is kept; a cluster is named by it" },
	{ "detach", FLAG_BOOL, AT(detach), "false", "return when the node is Ready; the cluster runs on" },
	{ "images", FLAG_STRING, AT(images), NULL, "folder of image archives (docker save, OCI) to have on the node from the start" },
	{ "kubeconfig", FLAG_STRING, AT(kubeconfig), NULL, "file that the way to the cluster is merged into; ~/.kube/config unless given, none if empty" },
	{ "manifests", FLAG_STRING, AT(manifests), NULL, "folder of YAML and JSON files to apply at every start" },
	{ "v", FLAG_INT, AT(verbosity), "0", "4 and more: everything is logged" },
	{ "version", FLAG_BOOL, AT(version), "false", "print the version and quit" },
	FLAG_GROUP("Control plane"),
	{ "advertise-address", FLAG_IP, AT(advertise_address), NULL, "address that other machines reach the API server at" },
	{ "bind-address", FLAG_IP, AT(bind_address), "0.0.0.0", "address that the API server listens on" },
	{ "control-plane-arg", FLAG_ARRAY, AT(control_plane_args), NULL, "flag of 'c8s control-plane', such as node-monitor-grace-period=20s; may be repeated" },
	{ "etcd-cafile", FLAG_STRING, AT(etcd_ca), NULL, "authority of etcd's certificate" },
	{ "etcd-certfile", FLAG_STRING, AT(etcd_cert), NULL, "client certificate for etcd" },
	{ "etcd-keyfile", FLAG_STRING, AT(etcd_key), NULL, "its key" },
	{ "etcd-servers", FLAG_LIST, AT(etcd_servers), NULL, "keep objects in this etcd cluster instead of the data directory" },
	{ "pki", FLAG_STRING, AT(pki), NULL, "folder with the keys of a cluster's first machine, to become another control plane of it" },
	{ "secure-port", FLAG_INT, AT(secure_port), "6443", "port of the API server" },
	{ "service-cidr", FLAG_STRING, AT(service_cidr), "10.96.0.0/16", "addresses of services" },
	FLAG_GROUP("Node"),
	{ "ca-hash", FLAG_STRING, AT(ca_hash), NULL, "with --server: hash of its authority, as 'c8s token create' prints it" },
	{ "container-runtime-endpoint", FLAG_STRING, AT(container_runtime_endpoint), NULL, "another container runtime: unix:///run/containerd/containerd.sock" },
	{ "kubelet-arg", FLAG_ARRAY, AT(kubelet_args), NULL, "flag of 'c8s kubelet', such as max-pods=50; may be repeated" },
	{ "kubelet-port", FLAG_INT, AT(kubelet_port), "10250", "port of the node's server" },
	{ "node-ip", FLAG_STRING, AT(node_ip), NULL, "address of the node; that of the default route unless given" },
	{ "node-name", FLAG_STRING, AT(node_name), NULL, "name of the node; that of the machine unless given" },
	{ "pod-cidr", FLAG_STRING, AT(pod_cidr), "10.244.0.0/16", "addresses of pods, of all nodes" },
	{ "registry-config", FLAG_STRING, AT(registry_config), NULL, "folder with mirrors and certificates of registries: HOST/hosts.toml, as containerd has it" },
	{ "server", FLAG_STRING, AT(server), NULL, "join the cluster at this URL, without a control plane here; see 'c8s join'" },
	{ "token", FLAG_STRING, AT(token), NULL, "with --server: what to join with, once" },
	{ NULL, FLAG_HEADING, FLAG_WORKS, 0, NULL, NULL },
};

/* ---- files of flags ---- */

static int add_argument(struct arena *a, str name, struct val v, char **args, size_t *n, const char *path, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(FILE_MAX);
	int r = 0;

	if (*n + 1 >= ARGS_MAX)
		return err_set(err, ERR_TOO_LARGE, "%s: there are too many settings", path);
	if (v.type == VAL_LIST) { /* each item is the flag once more */
		VAL_EACH(item, v)
			if (r == 0)
				r = add_argument(a, name, item->type == VAL_LIST ? VAL_EMPTY_OBJECT : *item, args, n, path, err);
		return r;
	}
	if (v.type == VAL_OBJECT)
		return err_set(err, ERR_INVALID, "%s: " STR_FMT ": has to be a text, a number, true, false, or a list of them", path, STR_ARG(name));
	if (v.type == VAL_STRING)
		buf_add(&text, val_as_str(v));
	else if ((r = json_encode(&text, v, &(struct json_encode_options){ .type = NULL }, err)) < 0)
		return r;
	args[(*n)++] = (char *)arena_printf(a, "--" STR_FMT "=" STR_FMT, STR_ARG(name), STR_ARG(buf_str(&text))).p;
	return 0;
}

/* Is the flag among the first n arguments? */
static bool is_given(char *const *args, size_t n, str name)
{
	for (size_t i = 1; i < n; i++) {
		str flag, value;
		(void)str_cut(str_of(args[i]), '=', &flag, &value);
		if (str_starts(flag, STR("-")) && str_eq(str_skip(flag, str_starts(flag, STR("--")) ? 2 : 1), name))
			return true;
	}
	return false;
}

/* Arguments that say what the file says, behind those that are there, which win. */
static int read_arguments(struct arena *a, const char *path, char **args, size_t *n, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(FILE_MAX), json = BUF_INIT(FILE_MAX);
	struct val document;
	int r = file_read(path, &text, err);

	if (r == 0)
		r = yaml_to_json(buf_str(&text), &json, NULL, err);
	if (r == 0)
		r = json_decode(a, arena_str(a, buf_str(&json)), &(struct json_decode_options){ .type = NULL }, &document, err);
	if (r < 0)
		return err_wrap(err, r, "%s", path);
	if (document.type != VAL_OBJECT)
		return err_set(err, ERR_INVALID, "%s: has to be a mapping of flags, such as 'secure-port: 6443'", path);
	const size_t before = *n;
	VAL_EACH_MEMBER(m, document)
		if (!is_given(args, before, atom_str(m->key)) && (r = add_argument(a, atom_str(m->key), m->val, args, n, path, err)) < 0)
			return r;
	return 0;
}

/* The command line is: program, what was typed, and what the files say besides; the first to say something wins, and lists are not added up. */
static int parse(const struct command *c, struct arena *a, const char *const *files, int argc, char **argv, struct up_settings *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf later = BUF_INIT(FILE_MAX);
	char *args[ARGS_MAX];
	size_t n = 1;
	int r;

	args[0] = argv[0];
	for (int i = 1; i < argc; i++) {
		if (n + 1 >= ARGS_MAX)
			return err_set(err, ERR_TOO_LARGE, "there are too many arguments");
		args[n++] = argv[i];
	}
	for (size_t i = 0; files[i]; i++)
		if ((r = read_arguments(a, files[i], args, &n, err)) < 0)
			return r;
	args[n] = NULL;
	return flags_parse(c, (int)n, args, up_flags, ret, a, &later);
}

static void add_line(struct buf *b, const struct flag *f, const struct up_settings *s)
{
	const char *at = (const char *)s + f->offset;
	const char *text = NULL;

	if (f->type == FLAG_STRING || f->type == FLAG_IP)
		memcpy(&text, at, sizeof(text));
	if (text) {
		buf_addf(b, "%s: ", f->name);
		json_quote(b, str_of(text), true);
		buf_addc(b, '\n');
	} else if (f->type == FLAG_INT) {
		int64_t number;
		memcpy(&number, at, sizeof(number));
		buf_addf(b, "%s: %" PRId64 "\n", f->name, number);
	} else if (f->type == FLAG_LIST || f->type == FLAG_ARRAY) {
		const char *const *items;
		memcpy(&items, at, sizeof(items));
		buf_addf(b, "%s: [", f->name);
		for (size_t i = 0; items[i]; i++) {
			if (i)
				buf_add(b, STR(", "));
			json_quote(b, str_of(items[i]), true);
		}
		buf_add(b, STR("]\n"));
	}
}

/* Flags of one start only. */
static bool is_passing(const char *name)
{
	return strcmp(name, "config") == 0 || strcmp(name, "data-dir") == 0 || strcmp(name, "pki") == 0 || strcmp(name, "token") == 0;
}

int up_save(const struct up_cluster *c, struct file_batch *files, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(FILE_MAX);

	buf_addf(&b, WRITTEN_BY "%s: flags of 'c8s up', which reads them at every start; those of the command line win.\n", C8S_VERSION);
	for (const struct flag *f = up_flags; f->name || f->help; f++)
		if (f->name && f->type != FLAG_BOOL && !is_passing(f->name))
			add_line(&b, f, &c->settings);
	int r = buf_check(&b, c->settings_file, err);
	if (r == 0)
		file_batch_add(files, c->settings_file, buf_str(&b), 0600);
	return r;
}

/* 1.2.3 as one number; 0: none. */
static int64_t version_of(const char *text)
{
	enum { STEP = 10000 };
	int part[3];

	return sscanf(text, "%d.%d.%d", &part[0], &part[1], &part[2]) == 3 ? ((int64_t)part[0] * STEP + part[1]) * STEP + part[2] : 0;
}

/* What a newer version has written is not touched: it may mean something else. */
static int check_kept(const char *path, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(FILE_MAX);
	const size_t n = sizeof(WRITTEN_BY) - 1;
	int r = file_read(path, &text, err);

	if (r == -ERR_FORBIDDEN)
		return err_set(err, ERR_FORBIDDEN, "%s cannot be read: the cluster belongs to another user; run this as root, for example with sudo", path);
	if (r < 0)
		return r;
	if (str_starts(buf_str(&text), STR(WRITTEN_BY)) && version_of(text.p + n) > version_of(C8S_VERSION))
		return err_set(err, ERR_CONFLICT, "%s was written by c8s %.*s, which is newer than this one (" C8S_VERSION "): use that one", path,
			       (int)strspn(text.p + n, "0123456789."), text.p + n);
	return 0;
}

/* ---- from settings to places ---- */

/* The data directory names the cluster: by whatever way it is given, and whether it is there yet or not, it is one path. */
static const char *real_path(struct arena *a, const char *path)
{
	str whole = path_absolute(a, path);

	for (size_t n = whole.n; n; n--) {
		if (n < whole.n && whole.p[n] != '/')
			continue;
		CLEANUP(mem_freep) char *real = realpath(arena_str(a, str_span(whole.p, n)).p, NULL);
		if (real)
			return path_clean(a, arena_printf(a, "%s/%s", real, whole.p + n)).p;
	}
	return whole.p;
}

/* They are kept, and read again by somebody who is elsewhere. */
static void make_absolute(struct arena *a, struct up_settings *s)
{
	const char **const paths[] = { &s->images, &s->kubeconfig, &s->manifests, &s->registry_config, &s->pki, &s->etcd_ca, &s->etcd_cert, &s->etcd_key };

	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		if (*paths[i] && (*paths[i])[0])
			*paths[i] = path_absolute(a, *paths[i]).p;
}

/* Users that systemd gives to services and nobody else has: no account is needed, and none is left behind. */
enum { DYNAMIC_UID_FIRST = 61184, DYNAMIC_UID_LAST = 65519 };

static uid_t own_uid(str tag)
{
	uint64_t number = strtoull(tag.p, NULL, 16);

	return geteuid() == 0 ? (uid_t)(DYNAMIC_UID_FIRST + number % (DYNAMIC_UID_LAST - DYNAMIC_UID_FIRST + 1)) : 0;
}

static const char *own_name(struct arena *a)
{
	char name[256] = "";

	(void)gethostname(name, sizeof(name) - 1);
	for (char *p = name; *p; p++)
		if (*p >= 'A' && *p <= 'Z')
			*p = (char)(*p - 'A' + 'a');
	return arena_str(a, str_of(name[0] ? name : "localhost")).p;
}

static const char *url_of(struct arena *a, const struct up_settings *s, const char *host)
{
	return s->server ? s->server : arena_printf(a, strchr(host, ':') ? "https://[%s]:%" PRId64 : "https://%s:%" PRId64, host, s->secure_port).p;
}

/* The API server finds the same address for itself, and has it in its certificate: it is of the family that services have. */
static void find_addresses(struct arena *a, struct up_cluster *c)
{
	const struct up_settings *s = &c->settings;
	bool any = strcmp(s->bind_address, "0.0.0.0") == 0 || strcmp(s->bind_address, "::") == 0;
	const char *own = s->advertise_address ? s->advertise_address : any ? "127.0.0.1" : s->bind_address;
	char found[IP_TEXT_MAX];
	str services, second;

	(void)str_cut(str_of(s->service_cidr), ',', &services, &second);
	c->url = c->public_url = url_of(a, s, own);
	if (!s->advertise_address && any && machine_address(str_chr(services, ':') >= 0 ? AF_INET6 : AF_INET, found))
		c->public_url = url_of(a, s, found);
	c->node_ip = s->node_ip;
	if (!s->node_ip && (machine_address(AF_INET, found) || machine_address(AF_INET6, found)))
		c->node_ip = arena_str(a, str_of(found)).p;
}

static int find_places(struct arena *a, struct up_cluster *c, struct err *err)
{
	char hex[SHA256_HEX + 1], program[1024];
	struct up_settings *s = &c->settings;
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program));

	if (n <= 0 || n == sizeof(program))
		return err_set(err, ERR_SYSTEM, "/proc/self/exe cannot be read; is /proc mounted?");
	c->program = arena_str(a, (str){ program, (size_t)n }).p;
	s->data_dir = real_path(a, s->data_dir);
	make_absolute(a, s);
	sha256_hex(str_of(s->data_dir), hex);
	c->arena = a;
	c->tag = arena_printf(a, "%.*s", TAG_DIGITS, hex).p;
	c->control_dir = arena_printf(a, "%s/control-plane", s->data_dir).p;
	c->node_dir = arena_printf(a, "%s/node", s->data_dir).p;
	c->log_dir = arena_printf(a, "%s/log", s->data_dir).p;
	c->run_dir = arena_printf(a, "/run/c8s/%s", c->tag).p;
	c->cgroup = arena_printf(a, "/c8s-%s", c->tag).p;
	c->settings_file = arena_printf(a, "%s/up.yaml", s->data_dir).p;
	c->lock_file = arena_printf(a, "%s/lock", s->data_dir).p;
	c->admin_conf = arena_printf(a, "%s/admin.conf", c->control_dir).p;
	c->node_conf = arena_printf(a, "%s/kubelet.conf", c->node_dir).p;
	c->kubelet_config = arena_printf(a, "%s/kubelet.yaml", c->node_dir).p;
	c->bootstrap_conf = arena_printf(a, "%s/bootstrap.conf", c->node_dir).p;
	c->servers_file = arena_printf(a, "%s/servers", c->node_dir).p;
	c->node_ca = s->server ? arena_printf(a, "%s/ca.crt", c->node_dir).p : arena_printf(a, "%s/pki/ca.crt", c->control_dir).p;
	c->uid = own_uid(str_of(c->tag));
	if (!s->node_name)
		s->node_name = own_name(a);
	find_addresses(a, c);
	return 0;
}

static size_t length(const char *const *list)
{
	size_t n = 0;

	while (list[n])
		n++;
	return n;
}

int up_open(const struct command *command, struct arena *a, int argc, char **argv, struct up_cluster *ret, struct err *err)
{
	const char *files[3] = { NULL };
	struct up_settings typed = { 0 };
	size_t n = 0;
	int r = parse(command, a, files, argc, argv, &typed, err);

	if (r != 0)
		return r;
	const char *kept = arena_printf(a, "%s/up.yaml", typed.data_dir).p;
	if (typed.config)
		files[n++] = typed.config;
	if (access(kept, F_OK) == 0) {
		if ((r = check_kept(kept, err)) < 0)
			return r;
		files[n++] = kept;
	}
	if ((r = parse(command, a, files, argc, argv, &ret->settings, err)) != 0)
		return r;
	if (length(ret->settings.control_plane_args) > PASSED_ON_MAX || length(ret->settings.kubelet_args) > PASSED_ON_MAX)
		return err_set(err, ERR_TOO_LARGE, "at most %d flags are passed on", PASSED_ON_MAX);
	return find_places(a, ret, err);
}

/* The flag once, or for each of its items; nothing when it says what it says by itself. */
static void add_typed(struct arena *a, const struct flag *f, const struct up_settings *s, const char **args, size_t *n)
{
	const char *at = (const char *)s + f->offset, *text = NULL;
	const char *const *items;

	if (f->type == FLAG_LIST || f->type == FLAG_ARRAY) {
		memcpy(&items, at, sizeof(items));
		for (; *items && *n + 1 < ARGS_MAX; items++)
			args[(*n)++] = arena_printf(a, "--%s=%s", f->name, *items).p;
		return;
	}
	if (f->type == FLAG_INT) {
		int64_t number;
		memcpy(&number, at, sizeof(number));
		text = arena_printf(a, "%" PRId64, number).p;
	} else if (f->type == FLAG_STRING || f->type == FLAG_IP) {
		memcpy(&text, at, sizeof(text));
	}
	if (text && !(f->initial && strcmp(text, f->initial) == 0) && *n + 1 < ARGS_MAX)
		args[(*n)++] = arena_printf(a, "--%s=%s", f->name, text).p;
}

int up_typed(const struct command *command, struct arena *a, int argc, char **argv, const char *const **ret, struct err *err)
{
	const char *const files[] = { NULL };
	const char **args = ARENA_ARRAY(a, const char *, ARGS_MAX);
	struct up_settings typed = { 0 };
	size_t n = 0;
	int r = parse(command, a, files, argc, argv, &typed, err);

	if (r != 0)
		return r;
	make_absolute(a, &typed);
	if (typed.config)
		typed.config = path_absolute(a, typed.config).p;
	for (const struct flag *f = up_flags; f->name || f->help; f++)
		if (f->name && strcmp(f->name, "data-dir") != 0)
			add_typed(a, f, &typed, args, &n);
	args[n] = NULL;
	*ret = args;
	return 0;
}

int up_load(const struct command *command, struct arena *a, const char *data_dir, struct up_cluster *ret, struct err *err)
{
	const char *kept = arena_printf(a, "%s/up.yaml", data_dir).p;
	const char *files[] = { kept, NULL };
	char *argv[] = { (char *)command->name, "--data-dir", (char *)data_dir, NULL };
	int r;

	if (access(kept, F_OK) < 0) {
		if (errno == ENOENT && access(arena_printf(a, "%s/lock", data_dir).p, F_OK) < 0)
			return err_set(err, ERR_NOT_FOUND, "there is no cluster in %s; 'c8s up --data-dir %s' makes one, and --data-dir names one that is elsewhere", data_dir, data_dir);
		files[0] = NULL; /* it was begun, and did not get far; or is removed but for the rest */
	} else if ((r = check_kept(kept, err)) < 0) {
		return r;
	}
	r = parse(command, a, files, ARRAY_LEN(argv) - 1, argv, &ret->settings, err);
	if (r > 0) /* what is wrong was printed; callers know of errors only */
		return err_set(err, ERR_INVALID, "%s has settings that this version does not understand", kept);
	return r < 0 ? r : find_places(a, ret, err);
}
