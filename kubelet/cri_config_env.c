/*
 * The environment of a container: variables of services, then envFrom, then env, of which later ones replace earlier ones of the same
 * name. Values may name variables before them, so a short text can stand for a very long one: all of it together is bounded.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/encoding.h"
#include "base/map.h"
#include "base/path.h"
#include "codec/atoms.h"
#include "kubelet/cri_config_priv.h"
#include "kubelet/pod_rules.h"

enum { ENV_BYTES_MAX = 16 << 20, ENV_FILE_MAX = 1 << 20 };

struct env_var {
	str name, value;
	struct env_var *next;
};

/* Variables by name, in the order they came in. */
struct env_table {
	struct arena *arena;
	struct map by_name;
	struct env_var *first, **end;
	size_t bytes;
};

static void env_table_done(struct env_table *t) { map_done(&t->by_name); }

static int too_large(struct err *err) { return err_set(err, ERR_TOO_LARGE, "environment is larger than %d bytes", ENV_BYTES_MAX); }

static int env_set(struct env_table *t, str name, str value, struct err *err)
{
	struct env_var *v = map_get(&t->by_name, name);

	/* A value that is replaced was made, and so counts. */
	t->bytes += name.n + value.n;
	if (t->bytes > ENV_BYTES_MAX)
		return too_large(err);
	if (!v) {
		v = ARENA_NEW(t->arena, struct env_var);
		v->name = name;
		if (!t->end)
			t->end = &t->first;
		*t->end = v;
		t->end = &v->next;
		map_put(&t->by_name, name, v);
	}
	v->value = value;
	return 0;
}

/* A list of KeyValue; the last of a name counts. */
static int env_set_all(struct env_table *t, struct val env, struct err *err)
{
	int r = 0;
	VAL_EACH(e, env)
		if ((r = env_set(t, val_str(*e, key), val_str(*e, value), err)) < 0)
			return r;
	return r;
}

/* ---- $(NAME) ---- */

static void put_variable(struct buf *b, str name, const struct env_table *own, const struct env_table *others)
{
	const struct env_var *v = map_get(&own->by_name, name);

	if (!v && others)
		v = map_get(&others->by_name, name);
	if (v) {
		buf_add(b, v->value);
		return;
	}
	buf_add(b, STR("$("));
	buf_add(b, name);
	buf_addc(b, ')');
}

static void expand(struct buf *b, str text, const struct env_table *own, const struct env_table *others)
{
	bool closed = true; /* there may be a ')' ahead */

	for (ptrdiff_t at; (at = str_chr(text, '$')) >= 0 && (size_t)at + 1 < text.n;) {
		buf_add(b, str_head(text, (size_t)at));
		text = str_skip(text, (size_t)at);
		ptrdiff_t close = closed && text.p[1] == '(' ? str_chr(text, ')') : -1;
		if (close > 0) {
			put_variable(b, str_skip(str_head(text, (size_t)close), 2), own, others);
			text = str_skip(text, (size_t)close + 1);
			continue;
		}
		closed = closed && text.p[1] != '(';
		buf_addc(b, '$');
		if (text.p[1] == '(')
			buf_addc(b, '(');
		text = str_skip(text, text.p[1] == '$' || text.p[1] == '(' ? 2 : 1);
	}
	buf_add(b, text);
}

/* The text itself when there is nothing to expand. */
static int expand_text(struct arena *a, str text, const struct env_table *own, const struct env_table *others, str *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(ENV_BYTES_MAX);

	*ret = text;
	if (str_chr(text, '$') < 0)
		return 0;
	expand(&b, text, own, others);
	if (b.overflow)
		return too_large(err);
	*ret = arena_str(a, buf_str(&b));
	return 0;
}

str env_expand(struct arena *a, str text, struct val env)
{
	CLEANUP(env_table_done) struct env_table t = { .arena = a };
	str made;

	if (str_chr(text, '$') < 0 || env_set_all(&t, env, NULL) < 0 || expand_text(a, text, &t, NULL, &made, NULL) < 0)
		return text;
	return made;
}

int cri_config_expand(struct arena *a, struct val texts, struct val env, struct val *ret, struct err *err)
{
	CLEANUP(env_table_done) struct env_table t = { .arena = a };
	struct val_builder b = val_builder(a);
	size_t bytes = 0;
	int r = env_set_all(&t, env, err);

	VAL_EACH(text, texts) {
		str made;
		if (r < 0 || (r = expand_text(a, val_as_str(*text), &t, NULL, &made, err)) < 0)
			return r;
		if ((bytes += made.n) > ENV_BYTES_MAX)
			return err_set(err, ERR_TOO_LARGE, "command is larger than %d bytes", ENV_BYTES_MAX);
		val_add_item(&b, VAL_STR(made));
	}
	*ret = val_end_list(&b);
	return r;
}

/* ---- services ---- */

static str service_env_name(struct arena *a, str name)
{
	str made = arena_str(a, name);
	for (char *p = (char *)made.p; p < made.p + made.n; p++)
		*p = *p == '-' ? '_' : *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p;
	return made;
}

str cri_config_lower(struct arena *a, str text)
{
	str made = arena_str(a, text);
	for (char *p = (char *)made.p; p < made.p + made.n; p++)
		*p = *p >= 'A' && *p <= 'Z' ? (char)(*p - 'A' + 'a') : *p;
	return made;
}

/* As Docker's links have them: NAME_PORT_80_TCP=tcp://10.0.0.1:80 and its parts; the first port also without number. */
static int add_port_links(struct env_table *t, str service, str address, struct val port, bool first, struct err *err)
{
	struct arena *a = t->arena;
	str protocol = val_str(port, protocol).n ? val_str(port, protocol) : STR("TCP"), small = cri_config_lower(a, protocol);
	str number = arena_printf(a, "%lld", (long long)val_int(port, port));
	bool six = str_chr(address, ':') >= 0;
	str url = arena_printf(a, STR_FMT "://%s" STR_FMT "%s:" STR_FMT, STR_ARG(small), six ? "[" : "", STR_ARG(address), six ? "]" : "",
			       STR_ARG(number));
	str name = arena_printf(a, STR_FMT "_PORT_" STR_FMT "_" STR_FMT, STR_ARG(service), STR_ARG(number),
				STR_ARG(service_env_name(a, protocol)));
	int r;

	if (first && (r = env_set(t, arena_join(a, service, STR("_PORT")), url, err)) < 0)
		return r;
	if ((r = env_set(t, name, url, err)) < 0 || (r = env_set(t, arena_join(a, name, STR("_PROTO")), small, err)) < 0 ||
	    (r = env_set(t, arena_join(a, name, STR("_PORT")), number, err)) < 0)
		return r;
	return env_set(t, arena_join(a, name, STR("_ADDR")), address, err);
}

static int add_service(struct env_table *t, struct val service, struct err *err)
{
	struct arena *a = t->arena;
	struct val ports = val_get(service, spec, ports);
	str name = service_env_name(a, val_str(service, metadata, name)), address = val_str(service, spec, clusterIP);
	str port_name = arena_join(a, name, STR("_SERVICE_PORT"));
	int r;

	if ((r = env_set(t, arena_join(a, name, STR("_SERVICE_HOST")), address, err)) < 0)
		return r;
	VAL_EACH(p, ports) {
		str number = arena_printf(a, "%lld", (long long)val_int(*p, port)), own = val_str(*p, name);
		if (p == ports.items && (r = env_set(t, port_name, number, err)) < 0)
			return r;
		str suffix = own.n ? service_env_name(a, own) : STR_NONE;
		if (own.n && (r = env_set(t, arena_printf(a, STR_FMT "_" STR_FMT, STR_ARG(port_name), STR_ARG(suffix)), number, err)) < 0)
			return r;
	}
	VAL_EACH(p, ports)
		if ((r = add_port_links(t, name, address, *p, p == ports.items, err)) < 0)
			return r;
	return 0;
}

static bool service_has_address(struct val service)
{
	str address = val_str(service, spec, clusterIP);
	return address.n && !str_eq(address, STR("None"));
}

/* Those of the namespace, unless the pod does not want them, and always default/kubernetes, unless the namespace has one of that name. */
static int add_services(struct env_table *t, struct val services, str namespace, bool links, struct err *err)
{
	struct val own = VAL_EMPTY, of_cluster = VAL_EMPTY;
	int r = 0;

	VAL_EACH(s, services) {
		str in = val_str(*s, metadata, namespace);
		bool kubernetes = str_eq(val_str(*s, metadata, name), STR("kubernetes"));
		if (!service_has_address(*s))
			continue;
		if (kubernetes && str_eq(in, STR("default")))
			of_cluster = *s;
		else if (!links || !str_eq(in, namespace))
			continue;
		else if (kubernetes)
			own = *s;
		else if ((r = add_service(t, *s, err)) < 0)
			return r;
	}
	if (val_exists(own))
		return add_service(t, own, err);
	return val_exists(of_cluster) ? add_service(t, of_cluster, err) : 0;
}

/* ---- where values come from ---- */

struct env_work {
	const struct kubelet_node *n;
	const struct cri_lookups *l;
	struct arena *arena;
	const struct cri_container_input *in;
	struct env_table own, services;
	struct map config_maps, secrets; /* those asked for already, by name */
};

static void env_work_done(struct env_work *w)
{
	env_table_done(&w->own);
	env_table_done(&w->services);
	map_done(&w->config_maps);
	map_done(&w->secrets);
}

enum source { CONFIG_MAP, SECRET };

/* (suspends) 1: *ret is its data. 0: there is none, and need not be. */
static int source_data(struct env_work *w, enum source kind, struct val ref, struct val *ret, struct err *err)
{
	struct map *known = kind == SECRET ? &w->secrets : &w->config_maps;
	str name = val_str(ref, name), namespace = val_str(w->in->pod, metadata, namespace);
	struct val *data = map_get(known, name), object = VAL_EMPTY;
	int r;

	if (!data) {
		__typeof__(w->l->secret) ask = kind == SECRET ? w->l->secret : w->l->config_map;
		if (!ask)
			return err_set(err, ERR_UNAVAILABLE, "couldn't get %s " STR_FMT "/" STR_FMT ", no kubeClient defined",
				       kind == SECRET ? "secret" : "configMap", STR_ARG(namespace), STR_ARG(name));
		r = ask(w->l->arg, w->arena, namespace, name, &object, err);
		if (r == -ERR_NOT_FOUND && val_bool(ref, optional))
			return 0;
		if (r == -ERR_NOT_FOUND)
			return err_set(err, ERR_NOT_FOUND, "%s \"" STR_FMT "\" not found", kind == SECRET ? "secret" : "configmap",
				       STR_ARG(name));
		if (r < 0)
			return r;
		data = ARENA_NEW(w->arena, struct val);
		*data = val_get(object, data);
		map_put(known, name, data);
	}
	*ret = *data;
	return 1;
}

static int source_value(struct env_work *w, enum source kind, struct val value, str *ret, struct err *err)
{
	str text = val_as_str(value);
	size_t n;
	int r;

	*ret = text;
	if (kind == CONFIG_MAP)
		return 0;
	char *bytes = arena_alloc(w->arena, base64_decoded_max(text.n) + 1, 1);
	if ((r = base64_decode(bytes, text, &n, err)) < 0)
		return r;
	*ret = str_span(bytes, n);
	return 0;
}

static int add_from(struct env_work *w, struct val from, struct err *err)
{
	enum source kind = val_has(from, configMapRef) ? CONFIG_MAP : SECRET;
	struct val ref = kind == SECRET ? val_get(from, secretRef) : val_get(from, configMapRef), data;
	str prefix = val_str(from, prefix), value;
	int r;

	if (val_is_nil(ref) || (r = source_data(w, kind, ref, &data, err)) == 0)
		return 0;
	if (r < 0)
		return r;
	VAL_EACH_MEMBER(m, data)
		if ((r = source_value(w, kind, m->val, &value, err)) < 0 ||
		    (r = env_set(&w->own, arena_join(w->arena, prefix, atom_str(m->key)), value, err)) < 0)
			return r;
	return 0;
}

/* 1: *ret is the value. 0: there is none, and need not be. */
static int key_value(struct env_work *w, enum source kind, struct val ref, str *ret, struct err *err)
{
	str key = val_str(ref, key);
	struct val data, value;
	int r = source_data(w, kind, ref, &data, err);

	if (r <= 0)
		return r;
	value = val_find(data, key);
	if (!val_exists(value) && val_bool(ref, optional))
		return 0;
	if (!val_exists(value))
		return err_set(err, ERR_NOT_FOUND, "couldn't find key " STR_FMT " in %s " STR_FMT "/" STR_FMT, STR_ARG(key),
			       kind == SECRET ? "Secret" : "ConfigMap", STR_ARG(val_str(w->in->pod, metadata, namespace)),
			       STR_ARG(val_str(ref, name)));
	return (r = source_value(w, kind, value, ret, err)) < 0 ? r : 1;
}

/* ---- files: NAME='value' ---- */

static bool next_line(str *text, str *ret)
{
	if (!text->n)
		return false;
	str_cut(*text, '\n', ret, text);
	if (str_ends(*ret, STR("\r")))
		ret->n--;
	return true;
}

static str skip_blanks(str s)
{
	while (s.n && (*s.p == ' ' || *s.p == '\t'))
		s = str_skip(s, 1);
	return s;
}

/* What stands between the quotes, over several lines if need be; line begins behind the first one. False: the form is wrong. */
static bool quoted_value(str *text, str line, struct buf *b)
{
	ptrdiff_t end;

	while ((end = str_chr(line, '\'')) < 0) {
		buf_add(b, line);
		buf_addc(b, '\n');
		if (!next_line(text, &line))
			return false;
	}
	buf_add(b, str_head(line, (size_t)end));
	str after = skip_blanks(str_skip(line, (size_t)end + 1));
	return !after.n || *after.p == '#';
}

/* The value of a name in the text of a file into b: the first counts, and nothing behind it is looked at. False: the form is wrong. */
static bool env_file_find(str text, str key, struct buf *b)
{
	for (str line; next_line(&text, &line);) {
		str name, value;
		line = skip_blanks(line);
		if (!line.n || *line.p == '#')
			continue;
		if (!str_cut(line, '=', &name, &value) || !name.n || strchr(" \t", name.p[name.n - 1]))
			return false;
		bool wanted = str_eq(name, key), empty = skip_blanks(value).n != value.n; /* NAME= 'x' sets nothing, as in a shell */
		buf_reset(b);
		if (!empty && (!value.n || *value.p != '\'' || !quoted_value(&text, str_skip(value, 1), b)))
			return false;
		if (wanted)
			return true;
	}
	buf_reset(b);
	return true;
}

/* The containers of the pod write in that folder: links stay inside, and what is no file is not waited for. */
static int env_file_read(const char *folder, const char *path, struct buf *b)
{
	struct stat st;
	char *room;
	ssize_t n;
	int tree = path_open_tree(folder, NULL), r = -ERR_INVALID;
	int fd = tree < 0 ? -1 : path_open(tree, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, NULL);

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		while ((room = buf_reserve(b, 4096)) && (n = read(fd, room, 4096)) > 0)
			buf_commit(b, (size_t)n);
		r = room && n == 0 ? 0 : -ERR_INVALID;
	}
	if (fd >= 0)
		close(fd);
	if (tree >= 0)
		close(tree);
	return r;
}

static bool has_empty_dir(struct val pod, str name)
{
	VAL_EACH(v, val_get(pod, spec, volumes))
		if (str_eq(val_str(*v, name), name))
			return val_has(*v, emptyDir);
	return false;
}

static int file_value(struct env_work *w, struct val ref, str *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(ENV_FILE_MAX), value = BUF_INIT(ENV_FILE_MAX);
	str volume = val_str(ref, volumeName), path = val_str(ref, path), key = val_str(ref, key);

	if (!has_empty_dir(w->in->pod, volume))
		return err_set(err, ERR_NOT_FOUND, "cannot find the volume \"" STR_FMT "\" referenced by FileKeyRef", STR_ARG(volume));
	str folder = arena_printf(w->arena, STR_FMT "/pods/" STR_FMT "/volumes/kubernetes.io~empty-dir/" STR_FMT, STR_ARG(w->n->root),
				  STR_ARG(val_str(w->in->pod, metadata, uid)), STR_ARG(volume));
	if (env_file_read(folder.p, arena_str(w->arena, path).p, &text) < 0 || !env_file_find(buf_str(&text), key, &value))
		return err_set(err, ERR_INVALID, "couldn't parse env file");
	if (!value.n && val_bool(ref, optional))
		return 0;
	if (!value.n)
		return err_set(err, ERR_NOT_FOUND, "environment variable key \"" STR_FMT "\" not found in file \"" STR_FMT "/" STR_FMT "\"",
			       STR_ARG(key), STR_ARG(folder), STR_ARG(path));
	*ret = arena_str(w->arena, buf_str(&value));
	return 1;
}

/* ---- all of it ---- */

/* 1: *ret is the value. 0: the variable is left out. */
static int value_from(struct env_work *w, struct val from, str *ret, struct err *err)
{
	const struct cri_container_input *in = w->in;
	int r = 0;

	*ret = STR_NONE;
	if (val_has(from, configMapKeyRef))
		return key_value(w, CONFIG_MAP, val_get(from, configMapKeyRef), ret, err);
	if (val_has(from, secretKeyRef))
		return key_value(w, SECRET, val_get(from, secretKeyRef), ret, err);
	if (val_has(from, fileKeyRef))
		return file_value(w, val_get(from, fileKeyRef), ret, err);
	if (val_has(from, fieldRef))
		r = pod_field_value(w->n, w->arena, in->pod, in->pod_ips, val_get(from, fieldRef), ret, err);
	else if (val_has(from, resourceFieldRef))
		r = container_resource_value(w->n, w->arena, in->pod, in->container, val_get(from, resourceFieldRef), ret, err);
	return r < 0 ? r : 1;
}

static int add_env(struct env_work *w, struct val variable, struct err *err)
{
	str value = val_str(variable, value);
	int r;

	if (value.n)
		r = expand_text(w->arena, value, &w->own, &w->services, &value, err);
	else if ((r = value_from(w, val_get(variable, valueFrom), &value, err)) == 0)
		return 0;
	return r < 0 ? r : env_set(&w->own, val_str(variable, name), value, err);
}

static int add_all(struct env_work *w, struct err *err)
{
	struct val pod = w->in->pod, links = val_get(pod, spec, enableServiceLinks), services;
	int r;

	if (val_is_nil(links))
		return err_set(err, ERR_INVALID, "nil pod.spec.enableServiceLinks encountered, cannot construct envvars");
	services = w->l->services ? w->l->services(w->l->arg, w->arena) : VAL_EMPTY_LIST;
	if (!val_exists(services) && !pod_is_static(pod))
		return err_set(err, ERR_UNAVAILABLE, "services have not yet been read at least once, cannot construct envvars");
	if ((r = add_services(&w->services, services, val_str(pod, metadata, namespace), val_as_bool(links), err)) < 0)
		return r;
	VAL_EACH(from, val_get(w->in->container, envFrom))
		if ((r = add_from(w, *from, err)) < 0)
			return r;
	VAL_EACH(variable, val_get(w->in->container, env))
		if ((r = add_env(w, *variable, err)) < 0)
			return r;
	return 0;
}

static void list_vars(struct val_builder *b, const struct env_table *t, const struct env_table *hidden_by)
{
	for (const struct env_var *v = t->first; v; v = v->next)
		if (!hidden_by || !map_get(&hidden_by->by_name, v->name))
			val_add_item(b, OBJECT(t->arena, F(key, VAL_STR(v->name)), F(value, VAL_STR(v->value))));
}

int container_env_make(const struct kubelet_node *n, const struct cri_lookups *l, struct arena *a, const struct cri_container_input *in,
		       struct val *ret, struct err *err)
{
	CLEANUP(env_work_done) struct env_work w = { .n = n, .l = l, .arena = a, .in = in, .own.arena = a, .services.arena = a };
	struct val_builder b = val_builder(a);
	int r;

	if ((r = add_all(&w, err)) < 0)
		return r;
	list_vars(&b, &w.own, NULL);
	list_vars(&b, &w.services, &w.own);
	*ret = val_end_list(&b);
	return 0;
}
