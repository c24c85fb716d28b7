/* kubectl create configmap and secret. */
#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/encoding.h"
#include "codec/types.h"
#include "kubectl/commands.h"
#include "kubectl/create.h"
#include "net/tls.h"

struct config {
	struct ktl_create common;
	struct ktl_texts files, literals, env_files;
	const char *type;
	bool secret;
	/* what was found */
	struct val data, binary;
	str name;
};

#define APPEND_HASH { "append-hash", 0, KTL_BOOL, offsetof(struct ktl_create, append_hash), NULL, "Add a hash of what is in it to the name", NULL }

#define SOURCES \
	APPEND_HASH, \
	{ "from-env-file", 0, KTL_LIST, offsetof(struct config, env_files), NULL, "File with lines of KEY=VALUE", NULL }, \
	{ "from-file", 0, KTL_LIST, offsetof(struct config, files), NULL, "File, KEY=FILE, or directory of files", NULL }, \
	{ "from-literal", 0, KTL_ARRAY, offsetof(struct config, literals), NULL, "KEY=VALUE", NULL }

static const struct ktl_flag configmap_flags[] = { SOURCES, { 0 } };
static const struct ktl_flag secret_flags[] = {
	SOURCES,
	{ "type", 0, KTL_STRING, offsetof(struct config, type), NULL, "Type of the secret", NULL },
	{ 0 },
};

/* ---- entries ---- */

static str encoded(struct ktl *k, str value)
{
	char *p = ARENA_ARRAY(&k->arena, char, base64_encoded_len(value.n) + 1);
	return str_span(p, base64_encode(p, value));
}

static bool valid_key(str key)
{
	if (!key.n || key.n > 253 || str_eq(key, STR(".")) || str_eq(key, STR("..")) || str_starts(key, STR("..")))
		return false;
	for (size_t i = 0; i < key.n; i++)
		if (!((key.p[i] | 0x20) >= 'a' && (key.p[i] | 0x20) <= 'z') && !(key.p[i] >= '0' && key.p[i] <= '9') && !strchr("-._", key.p[i]))
			return false;
	return true;
}

#define KEY_RULE "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"

static int add_entry(struct ktl *k, struct config *c, str key, str value)
{
	atom name = atom_make(&k->arena, key);
	if (!valid_key(key))
		return c->secret ? ktl_fail(k, STR_FMT " is not valid key name for a Secret " KEY_RULE, STR_ARG(ktl_quote(k, key))) :
				   ktl_fail(k, STR_FMT " is not a valid key name for a ConfigMap: " KEY_RULE, STR_ARG(ktl_quote(k, key)));
	if (val_exists(val_member(c->data, name)) || val_exists(val_member(c->binary, name)))
		return c->secret ? ktl_fail(k, "cannot add key " STR_FMT ", another key by that name already exists", STR_ARG(key)) :
				   ktl_fail(k, "cannot add key " STR_FMT ", another key by that name already exists in Data for ConfigMap " STR_FMT,
					    STR_ARG(ktl_quote(k, key)), STR_ARG(ktl_quote(k, c->name)));
	if (c->secret)
		c->data = val_put(&k->arena, c->data, name, VAL_STR(encoded(k, value)));
	else if (str_is_utf8(value))
		c->data = val_put(&k->arena, c->data, name, VAL_STR(value));
	else
		c->binary = val_put(&k->arena, c->binary, name, VAL_STR(encoded(k, value)));
	return 0;
}

/* ---- sources ---- */

static int add_file(struct ktl *k, struct config *c, str key, const char *path)
{
	struct err err = ERR_INIT;
	str text;
	if (ktl_read_file(k, path, &text, &err) < 0)
		return ktl_fail_err(k, &err);
	return add_entry(k, c, key, text);
}

static int add_directory(struct ktl *k, struct config *c, const char *path)
{
	struct dirent **list;
	int n = scandir(path, &list, NULL, alphasort), r = 0;
	if (n < 0)
		return ktl_fail(k, "error listing files in %s", path);
	for (int i = 0; i < n; i++) {
		const char *full = arena_printf(&k->arena, "%s/%s", path, list[i]->d_name).p;
		struct stat st;
		if (r == 0 && stat(full, &st) == 0 && S_ISREG(st.st_mode))
			r = add_file(k, c, str_of(ktl_cstr(k, str_of(list[i]->d_name))), full);
		free(list[i]);
	}
	free(list);
	return r;
}

static int add_source(struct ktl *k, struct config *c, const char *source)
{
	str key, path;
	bool named = str_cut(str_of(source), '=', &key, &path);
	struct stat st;
	if (named && !key.n)
		return ktl_fail(k, "key name for file path " STR_FMT " missing", STR_ARG(path));
	if (named && !path.n)
		return ktl_fail(k, "file path for key name " STR_FMT " missing", STR_ARG(key));
	if (named && str_chr(path, '=') >= 0)
		return ktl_fail(k, "key names or file paths cannot contain '='");
	if (!named) {
		ptrdiff_t slash = str_rchr(str_of(source), '/');
		path = str_of(source);
		key = slash < 0 ? path : str_skip(path, (size_t)slash + 1);
	}
	const char *file = ktl_cstr(k, path);
	if (stat(file, &st) < 0)
		return ktl_fail(k, "error reading %s: no such file or directory", file);
	if (!S_ISDIR(st.st_mode))
		return add_file(k, c, key, file);
	if (named)
		return ktl_fail(k, "cannot give a key name for a directory path");
	return add_directory(k, c, file);
}

static int add_literal(struct ktl *k, struct config *c, const char *literal)
{
	str key, value;
	if (!str_cut(str_of(literal), '=', &key, &value) || !key.n)
		return ktl_fail(k, "invalid literal source %s, expected key=value", literal);
	return add_entry(k, c, key, value);
}

static int add_env_file(struct ktl *k, struct config *c, const char *path)
{
	struct err err = ERR_INIT;
	str text, line, key, value;
	if (ktl_read_file(k, path, &text, &err) < 0)
		return ktl_fail_err(k, &err);
	while (text.n) {
		(void)str_cut(text, '\n', &line, &text);
		while (line.n && (line.p[0] == ' ' || line.p[0] == '\t'))
			line = str_skip(line, 1);
		if (line.n && line.p[line.n - 1] == '\r')
			line.n--;
		if (!line.n || line.p[0] == '#')
			continue;
		if (!str_cut(line, '=', &key, &value)) {
			const char *set = getenv(ktl_cstr(k, key));
			value = str_of(set ? set : "");
		}
		if (add_entry(k, c, key, value) < 0)
			return -1;
	}
	return 0;
}

static int collect(struct ktl *k, struct config *c)
{
	if (c->env_files.n && (c->files.n || c->literals.n))
		return ktl_fail(k, "from-env-file cannot be combined with from-file or from-literal");
	for (size_t i = 0; i < c->files.n; i++)
		if (add_source(k, c, c->files.v[i]) < 0)
			return -1;
	for (size_t i = 0; i < c->literals.n; i++)
		if (add_literal(k, c, c->literals.v[i]) < 0)
			return -1;
	for (size_t i = 0; i < c->env_files.n; i++)
		if (add_env_file(k, c, c->env_files.v[i]) < 0)
			return -1;
	return 0;
}

/* ---- commands ---- */

/* The name, with a hash behind it where that is wanted: of the JSON of all that matters, in letters that make no words. */
static str hashed_name(struct ktl *k, const struct ktl_create *c, str name, const char *kind, struct val data, struct val binary, struct val type)
{
	static const char from[] = "013ae";
	char hex[SHA256_HEX + 1];
	data = val_len(data) ? val_sorted(&k->arena, data) : VAL_EMPTY_OBJECT;
	if (!c->append_hash)
		return name;
	sha256_hex(ktl_json(k, OBJECT(&k->arena, F(binaryData, val_len(binary) ? val_sorted(&k->arena, binary) : VAL_EMPTY), F(data, data),
				      F(kind, VAL_STR(str_of(kind))), F(name, VAL_STR(name)), F(type, type))), hex);
	for (int i = 0; i < 10; i++) {
		const char *at = strchr(from, hex[i]);
		hex[i] = at ? "ghkmt"[at - from] : hex[i];
	}
	return arena_printf(&k->arena, STR_FMT "-%.10s", STR_ARG(name), hex);
}

static int create_configmap(struct ktl *k, void *options)
{
	struct config *c = options;
	if (ktl_create_name(k, &c->name) < 0 || collect(k, c) < 0)
		return -1;
	str name = hashed_name(k, &c->common, c->name, "ConfigMap", c->data, c->binary, VAL_EMPTY);
	struct val object = OBJECT(&k->arena, F(metadata, ktl_meta(k, name, VAL_EMPTY)), F(data, c->data), F(binaryData, c->binary));
	return ktl_create_made(k, &c->common, TYPE(core_v1, ConfigMap), object, "failed to create configmap: ");
}

const struct ktl_command ktl_create_configmap = {
	.name = "configmap", .aliases = "cm", .summary = "Create a config map from a local file, directory or literal value",
	.usage = "create configmap NAME [--from-file=[key=]source] [--from-literal=key1=value1] [options]", .flags = KTL_CREATE_SETS(configmap_flags),
	.examples = "  kubectl create configmap settings --from-file=app.conf --from-literal=mode=fast\n",
	.size = sizeof(struct config), .run = create_configmap,
};

static int send_secret(struct ktl *k, const struct ktl_create *common, str name, const char *type, struct val data)
{
	name = hashed_name(k, common, name, "Secret", data, VAL_EMPTY, VAL_STR(str_of(type)));
	struct val object = OBJECT(&k->arena, F(metadata, ktl_meta(k, name, VAL_EMPTY)), F(data, data), F(type, type[0] ? VAL_STR(str_of(type)) : VAL_EMPTY));
	return ktl_create_made(k, common, TYPE(core_v1, Secret), object, "failed to create secret ");
}

static int create_generic(struct ktl *k, void *options)
{
	struct config *c = options;
	c->secret = true;
	if (ktl_create_name(k, &c->name) < 0 || collect(k, c) < 0)
		return -1;
	return send_secret(k, &c->common, c->name, c->type, c->data);
}

static const struct ktl_command secret_generic = {
	.name = "generic", .summary = "Create a secret from a local file, directory, or literal value",
	.usage = "create secret generic NAME [--type=string] [--from-file=[key=]source] [--from-literal=key1=value1] [options]",
	.flags = KTL_CREATE_SETS(secret_flags), .size = sizeof(struct config), .run = create_generic,
};

struct tls {
	struct ktl_create common;
	const char *cert, *key;
};

static const struct ktl_flag tls_flags[] = {
	APPEND_HASH,
	{ "cert", 0, KTL_STRING, offsetof(struct tls, cert), NULL, "File with the certificate", NULL },
	{ "key", 0, KTL_STRING, offsetof(struct tls, key), NULL, "File with its key", NULL },
	{ 0 },
};

static int create_tls(struct ktl *k, void *options)
{
	const struct tls *t = options;
	struct tls_context *both;
	struct err err = ERR_INIT;
	struct val data = VAL_EMPTY_OBJECT;
	str name, cert, key;
	if (ktl_create_name(k, &name) < 0)
		return -1;
	if (!t->cert[0] || !t->key[0])
		return ktl_fail(k, "key and cert must be specified");
	if (ktl_read_file(k, t->cert, &cert, &err) < 0)
		return ktl_fail(k, "Cannot read file %s, %s", t->cert, err.msg);
	if (ktl_read_file(k, t->key, &key, &err) < 0)
		return ktl_fail(k, "Cannot read file %s, %s", t->key, err.msg);
	if (str_find(cert, STR("-----BEGIN")) < 0 || str_find(key, STR("-----BEGIN")) < 0)
		return ktl_fail(k, "tls: failed to find any PEM data in %s input", str_find(cert, STR("-----BEGIN")) < 0 ? "certificate" : "key");
	/* They belong together, or nobody could use them. */
	if (tls_server_new(&(struct tls_options){ .cert_pem = cert.p, .key_pem = key.p }, &both, &err) < 0)
		return ktl_fail(k, "tls: %s", err.msg);
	tls_context_free(both);
	data = val_put(&k->arena, data, atom_make(&k->arena, STR("tls.crt")), VAL_STR(encoded(k, cert)));
	data = val_put(&k->arena, data, atom_make(&k->arena, STR("tls.key")), VAL_STR(encoded(k, key)));
	return send_secret(k, &t->common, name, "kubernetes.io/tls", data);
}

static const struct ktl_command secret_tls = {
	.name = "tls", .summary = "Create a TLS secret", .usage = "create secret tls NAME --cert=path/to/cert/file --key=path/to/key/file [options]",
	.flags = KTL_CREATE_SETS(tls_flags), .size = sizeof(struct tls), .run = create_tls,
};

struct docker {
	struct ktl_create common;
	const char *server, *username, *password, *email;
	struct ktl_texts files;
};

static const struct ktl_flag docker_flags[] = {
	APPEND_HASH,
	{ "docker-email", 0, KTL_STRING, offsetof(struct docker, email), NULL, "Email address at the registry", NULL },
	{ "docker-password", 0, KTL_STRING, offsetof(struct docker, password), NULL, "Password at the registry", NULL },
	{ "docker-server", 0, KTL_STRING, offsetof(struct docker, server), "https://index.docker.io/v1/", "Where the registry is", NULL },
	{ "docker-username", 0, KTL_STRING, offsetof(struct docker, username), NULL, "User at the registry", NULL },
	{ "from-file", 0, KTL_LIST, offsetof(struct docker, files), NULL, "File that docker login has made", NULL },
	{ 0 },
};

static str docker_config(struct ktl *k, const struct docker *d)
{
	struct arena *a = &k->arena;
	str auth = encoded(k, arena_printf(a, "%s:%s", d->username, d->password));
	struct val one = OBJECT(a, F(username, VAL_STR(str_of(d->username))), F(password, VAL_STR(str_of(d->password))),
				F(email, d->email[0] ? VAL_STR(str_of(d->email)) : VAL_EMPTY), F(auth, VAL_STR(auth)));
	struct val auths = val_put(a, VAL_EMPTY_OBJECT, atom_make(a, str_of(d->server)), one);
	return ktl_json(k, OBJECT(a, F(auths, auths)));
}

static int create_docker(struct ktl *k, void *options)
{
	const struct docker *d = options;
	struct config found = { .secret = true };
	if (ktl_create_name(k, &found.name) < 0)
		return -1;
	if (!d->files.n && (!d->username[0] || !d->password[0] || !d->server[0]))
		return ktl_fail(k, "either --from-file or the combination of --docker-username, --docker-password and --docker-server is required");
	for (size_t i = 0; i < d->files.n; i++)
		if ((strchr(d->files.v[i], '=') ? add_source(k, &found, d->files.v[i]) : add_file(k, &found, STR(".dockerconfigjson"), d->files.v[i])) < 0)
			return -1;
	if (!d->files.n && add_entry(k, &found, STR(".dockerconfigjson"), docker_config(k, d)) < 0)
		return -1;
	return send_secret(k, &d->common, found.name, "kubernetes.io/dockerconfigjson", found.data);
}

static const struct ktl_command secret_docker = {
	.name = "docker-registry", .summary = "Create a secret for use with a Docker registry",
	.usage = "create secret docker-registry NAME --docker-username=user --docker-password=password [--docker-server=string] [options]",
	.flags = KTL_CREATE_SETS(docker_flags), .size = sizeof(struct docker), .run = create_docker,
};

const struct ktl_command ktl_create_secret = {
	.name = "secret", .summary = "Create a secret using a specified subcommand", .usage = "create secret (docker-registry | generic | tls) [options]",
	.below = (const struct ktl_command *const[]){ &secret_docker, &secret_generic, &secret_tls, NULL }, .run = ktl_run_group,
};
