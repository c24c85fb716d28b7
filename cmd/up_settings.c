/* Flags of `c8s up`; what they were is kept in the data directory, in the form of --config: flags by name. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/encoding.h"
#include "base/file.h"
#include "cmd/up.h"
#include "codec/json.h"
#include "codec/yaml.h"

#define AT(member) FLAG_WORKS, offsetof(struct up_settings, member)

enum { FILE_MAX = 1 << 20, ARGS_MAX = 256, TAG_DIGITS = 8 };

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
	{ "etcd-cafile", FLAG_STRING, AT(etcd_ca), NULL, "authority of etcd's certificate" },
	{ "etcd-certfile", FLAG_STRING, AT(etcd_cert), NULL, "client certificate for etcd" },
	{ "etcd-keyfile", FLAG_STRING, AT(etcd_key), NULL, "its key" },
	{ "etcd-servers", FLAG_LIST, AT(etcd_servers), NULL, "keep objects in this etcd cluster instead of the data directory" },
	{ "secure-port", FLAG_INT, AT(secure_port), "6443", "port of the API server" },
	{ "service-cidr", FLAG_STRING, AT(service_cidr), "10.96.0.0/16", "addresses of services" },
	FLAG_GROUP("Node"),
	{ "ca-hash", FLAG_STRING, AT(ca_hash), NULL, "with --server: hash of its authority, as 'c8s token create' prints it" },
	{ "container-runtime-endpoint", FLAG_STRING, AT(container_runtime_endpoint), NULL, "another container runtime: unix:///run/containerd/containerd.sock" },
	{ "kubelet-port", FLAG_INT, AT(kubelet_port), "10250", "port of the node's server" },
	{ "node-ip", FLAG_STRING, AT(node_ip), NULL, "address of the node; that of the default route unless given" },
	{ "node-name", FLAG_STRING, AT(node_name), NULL, "name of the node; that of the machine unless given" },
	{ "pod-cidr", FLAG_STRING, AT(pod_cidr), "10.244.0.0/16", "addresses of pods, of all nodes" },
	{ "server", FLAG_STRING, AT(server), NULL, "join the cluster at this URL, without a control plane here; see 'c8s join'" },
	{ "token", FLAG_STRING, AT(token), NULL, "with --server: what to join with, once" },
	{ NULL, FLAG_HEADING, FLAG_WORKS, 0, NULL, NULL },
};

/* ---- files of flags ---- */

static int add_argument(struct arena *a, const struct member *m, char **args, size_t *n, const char *path, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(FILE_MAX);
	str name = atom_str(m->key);
	struct val v = m->val;
	int r;

	if (*n + 1 >= ARGS_MAX)
		return err_set(err, ERR_TOO_LARGE, "%s: there are too many settings", path);
	if (v.type == VAL_STRING) {
		buf_add(&text, val_as_str(v));
	} else if (v.type == VAL_LIST) {
		VAL_EACH(item, v) {
			if (text.n)
				buf_addc(&text, ',');
			buf_add(&text, val_as_str(*item));
		}
	} else if (v.type == VAL_OBJECT) {
		return err_set(err, ERR_INVALID, "%s: " STR_FMT ": has to be a text, a number, true, false, or a list", path, STR_ARG(name));
	} else if ((r = json_encode(&text, v, &(struct json_encode_options){ .type = NULL }, err)) < 0) {
		return r;
	}
	args[(*n)++] = (char *)arena_printf(a, "--" STR_FMT "=" STR_FMT, STR_ARG(name), STR_ARG(buf_str(&text))).p;
	return 0;
}

/* Arguments that say what the file says, behind those that are there. */
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
	VAL_EACH_MEMBER(m, document)
		if ((r = add_argument(a, m, args, n, path, err)) < 0)
			return r;
	return 0;
}

/* The command line is: program, what the file of an earlier `up` says, what --config says, what was typed; later ones win. */
static int parse(const struct command *c, struct arena *a, const char *const *files, int argc, char **argv, struct up_settings *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf later = BUF_INIT(FILE_MAX);
	char *args[ARGS_MAX];
	size_t n = 1;
	int r;

	args[0] = argv[0];
	for (size_t i = 0; files[i]; i++)
		if ((r = read_arguments(a, files[i], args, &n, err)) < 0)
			return r;
	for (int i = 1; i < argc; i++) {
		if (n + 1 >= ARGS_MAX)
			return err_set(err, ERR_TOO_LARGE, "there are too many arguments");
		args[n++] = argv[i];
	}
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
	} else if (f->type == FLAG_LIST) {
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
	return strcmp(name, "config") == 0 || strcmp(name, "data-dir") == 0 || strcmp(name, "token") == 0;
}

int up_save(const struct up_cluster *c, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(FILE_MAX);

	for (const struct flag *f = up_flags; f->name || f->help; f++)
		if (f->name && f->type != FLAG_BOOL && !is_passing(f->name))
			add_line(&b, f, &c->settings);
	int r = buf_check(&b, c->settings_file, err);
	return r < 0 ? r : file_write(c->settings_file, buf_str(&b), 0600, err);
}

/* ---- from settings to places ---- */

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

static int find_places(struct arena *a, struct up_cluster *c, struct err *err)
{
	char hex[SHA256_HEX + 1], program[1024];
	struct up_settings *s = &c->settings;
	char *real = realpath(s->data_dir, NULL);
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program));

	if (n <= 0 || n == sizeof(program)) {
		free(real);
		return err_set(err, ERR_SYSTEM, "/proc/self/exe cannot be read; is /proc mounted?");
	}
	c->program = arena_str(a, (str){ program, (size_t)n }).p;
	s->data_dir = arena_str(a, str_of(real ? real : s->data_dir)).p;
	free(real);
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
	c->node_ca = s->server ? arena_printf(a, "%s/ca.crt", c->node_dir).p : arena_printf(a, "%s/pki/ca.crt", c->control_dir).p;
	c->uid = own_uid(str_of(c->tag));
	if (!s->node_name)
		s->node_name = own_name(a);
	const char *host = s->advertise_address ? s->advertise_address :
			   strcmp(s->bind_address, "0.0.0.0") == 0 || strcmp(s->bind_address, "::") == 0 ? "127.0.0.1" : s->bind_address;
	c->url = s->server ? s->server : arena_printf(a, strchr(host, ':') ? "https://[%s]:%" PRId64 : "https://%s:%" PRId64, host, s->secure_port).p;
	return 0;
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
	if (access(kept, F_OK) == 0)
		files[n++] = kept;
	if (typed.config)
		files[n++] = typed.config;
	if ((r = parse(command, a, files, argc, argv, &ret->settings, err)) != 0)
		return r;
	return find_places(a, ret, err);
}

int up_load(const struct command *command, struct arena *a, const char *data_dir, struct up_cluster *ret, struct err *err)
{
	const char *kept = arena_printf(a, "%s/up.yaml", data_dir).p;
	const char *files[] = { kept, NULL };
	char *argv[] = { (char *)command->name, "--data-dir", (char *)data_dir, NULL };

	if (access(kept, F_OK) < 0)
		return err_set(err, ERR_NOT_FOUND, "there is no cluster in %s; 'c8s up --data-dir %s' makes one", data_dir, data_dir);
	int r = parse(command, a, files, ARRAY_LEN(argv) - 1, argv, &ret->settings, err);
	if (r > 0) /* what is wrong was printed; callers know of errors only */
		return err_set(err, ERR_INVALID, "%s has settings that this version does not understand", kept);
	return r < 0 ? r : find_places(a, ret, err);
}
