/*
 * Making what every cluster has. At the start all of it is written at the same time, so that a store that makes several writes
 * durable at once has few waits; later it is looked over in turn, which costs lookups in the cache when nothing is missing.
 */
#include "apiserver/bootstrap_priv.h"

#include "apiserver/cache.h"
#include "apiserver/meta.h"
#include "apiserver/service_ip.h"
#include "base/clock.h"
#include "base/fiber.h"
#include "base/file.h"
#include "base/log.h"
#include "codec/atoms.h"
#include "codec/time.h"
#include "codec/types.h"

enum {
	PASS_MS = 10000,              /* as the lease of a server (15 s) and the promise to be back within a minute ask for */
	PORT_WAIT_MS = 20,            /* while the kernel has not yet chosen the port */
	REPAIR_PASSES = 18,           /* every three minutes */
	COLLECT_PASSES = 360,         /* every hour */
	CA_FILE_MAX = 1 << 20,
};

/* ---- small things ---- */

struct val bootstrap_now(struct arena *a, bool micro)
{
	char text[TIME_TEXT_MAX];
	int64_t ns = clock_wall_ns();
	struct timestamp now = { .seconds = ns / 1000000000, .nanos = (int32_t)(ns % 1000000000) };
	if (!micro)
		now.nanos = 0;
	return val_of_str(arena_str(a, micro ? microtime_format(now, text) : time_format(now, text)));
}

struct val bootstrap_find(struct apiserver *s, struct arena *a, str group, str resource, str key)
{
	const struct kind *kind = kinds_find(&s->kinds, group, resource);
	const struct object *o = kind ? cache_get(kind, key) : NULL;
	return o ? val_copy(a, o->val) : VAL_EMPTY;
}

int bootstrap_ensure(const struct inprocess *w, struct val object, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct kind *kind = kinds_find(&w->server->kinds, w->group, w->resource);
	if (!kind || cache_get(kind, meta_key(&a, kind, val_str(object, metadata, namespace), val_str(object, metadata, name))))
		return 0;
	int r = inprocess_create(w, object, err);
	return r == -ERR_ALREADY_EXISTS ? 0 : r;
}

/* ---- single objects ---- */

static int make_namespace(struct apiserver *s, size_t i, struct err *err)
{
	static const char *const names[] = { "kube-system", "kube-public", "kube-node-lease", "default" };
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	return bootstrap_ensure(INPROCESS(s, "", "namespaces"),
				OBJECT(&a, F(metadata, OBJECT(&a, F(name, val_of_str(str_of(names[i])))))), err);
}

static int make_priority_class(struct apiserver *s, size_t i, struct err *err)
{
	static const struct {
		const char *name;
		int64_t value;
		const char *description;
	} rows[] = {
		{ "system-node-critical", 2000001000,
		  "Used for system critical pods that must not be moved from their current node." },
		{ "system-cluster-critical", 2000000000,
		  "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary." },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	return bootstrap_ensure(INPROCESS(s, "scheduling.k8s.io", "priorityclasses"),
				OBJECT(&a, F(metadata, OBJECT(&a, F(name, val_of_str(str_of(rows[i].name))))),
				       F(value, val_of_int(rows[i].value)), F(description,
									      val_of_str(str_of(rows[i].description)))), err);
}

/* One per group and version that is served: "v1." and "v1.apps". */
static int make_api_service(struct apiserver *s, size_t i, struct err *err)
{
	const struct api_version *v = &schema_api_versions[i];
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str name = arena_printf(&a, STR_FMT "." STR_FMT, STR_ARG(v->version), STR_ARG(v->group));
	if (str_eq(v->group, STR("apiregistration.k8s.io")) || /* the group that knows of the others is not among them */
	    !map_get(&s->kinds.served, arena_printf(&a, STR_FMT "/" STR_FMT, STR_ARG(v->group), STR_ARG(v->version))))
		return 0;
	struct val labels = val_put(&a, VAL_EMPTY, atom_make(&a, STR("kube-aggregator.kubernetes.io/automanaged")),
				    VAL_LIT("onstart"));
	struct val spec = OBJECT(&a, F(group, v->group.n ? val_of_str(v->group) : VAL_EMPTY),
				 F(version, val_of_str(v->version)), F(groupPriorityMinimum, val_of_int(v->group_priority)),
				 F(versionPriority, val_of_int(v->version_priority)));
	return bootstrap_ensure(INPROCESS(s, "apiregistration.k8s.io", "apiservices"),
				OBJECT(&a, F(metadata, OBJECT(&a, F(name, val_of_str(name)), F(labels, labels))),
				       F(spec, spec)), err);
}

/* ---- what aggregated servers trust ---- */

static struct val json_list(struct arena *a, const char *const *names)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	struct val_builder list = val_builder(a);
	for (size_t i = 0; names && names[i]; i++)
		val_add_item(&list, val_of_str(str_of(names[i])));
	(void)json_encode(&b, val_end_list(&list), &(struct json_encode_options){ .type = NULL }, NULL);
	return val_of_str(arena_str(a, buf_str(&b)));
}

static int add_file(struct arena *a, struct val *data, str key, const char *path, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(CA_FILE_MAX);
	if (!path)
		return 0;
	int r = file_read(path, &b, err);
	if (r == 0)
		*data = val_put(a, *data, atom_make(a, key), val_of_str(arena_str(a, buf_str(&b))));
	return r;
}

static int trust_data(const struct apiserver_options *o, struct arena *a, struct val *ret, struct err *err)
{
	struct val data = VAL_EMPTY_OBJECT;
	int r = add_file(a, &data, STR("client-ca-file"), o->client_ca_file, err);
	if (r == 0 && o->authn.requestheader_client_ca_file) {
		const struct {
			str key;
			const char *const *names;
		} rows[] = {
			{ STR("requestheader-allowed-names"), o->authn.requestheader_allowed_names },
			{ STR("requestheader-extra-headers-prefix"), o->authn.requestheader_extra_headers_prefix },
			{ STR("requestheader-group-headers"), o->authn.requestheader_group_headers },
			{ STR("requestheader-uid-headers"), o->authn.requestheader_uid_headers },
			{ STR("requestheader-username-headers"), o->authn.requestheader_username_headers },
		};
		r = add_file(a, &data, STR("requestheader-client-ca-file"), o->authn.requestheader_client_ca_file, err);
		for (size_t i = 0; i < ARRAY_LEN(rows); i++)
			data = val_put(a, data, atom_make(a, rows[i].key), json_list(a, rows[i].names));
	}
	*ret = val_sorted(a, data);
	return r;
}

static struct val put_data(struct arena *a, struct val live, void *arg)
{
	struct val want = *(struct val *)arg, data = val_get(live, data);
	bool same = true;
	VAL_EACH_MEMBER(m, want) {
		same &= val_equal(val_member(data, m->key), m->val);
		data = val_put(a, data, m->key, m->val);
	}
	return same ? VAL_EMPTY : val_put(a, live, A_data, val_sorted(a, data));
}

static int make_trust(struct apiserver *s, size_t i, struct err *err)
{
	(void)i;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct inprocess *w = INPROCESS(s, "", "configmaps");
	struct val data, meta = OBJECT(&a, F(name, VAL_LIT("extension-apiserver-authentication")),
				       F(namespace, VAL_LIT("kube-system")));
	struct val live = bootstrap_find(s, &a, w->group, w->resource, STR("kube-system/extension-apiserver-authentication"));
	int r = trust_data(&s->options, &a, &data, err);
	if (r < 0)
		return r;
	if (!val_exists(live))
		return bootstrap_ensure(w, OBJECT(&a, F(metadata, meta), F(data, val_len(data) ? data : VAL_EMPTY)), err);
	if (!val_exists(put_data(&a, live, &data)))
		return 0;
	return inprocess_update(w, STR("kube-system"), STR("extension-apiserver-authentication"), put_data, &data, err);
}

/* Since when tokens in Secrets are dated when they are used. */
static int make_token_tracking(struct apiserver *s, size_t i, struct err *err)
{
	(void)i;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val today = val_of_str(str_head(val_as_str(bootstrap_now(&a, false)), sizeof "2006-01-02" - 1));
	struct val meta = OBJECT(&a, F(name, VAL_LIT("kube-apiserver-legacy-service-account-token-tracking")),
				 F(namespace, VAL_LIT("kube-system")));
	return bootstrap_ensure(INPROCESS(s, "", "configmaps"),
				OBJECT(&a, F(metadata, meta), F(data, val_put(&a, VAL_EMPTY, atom_make(&a, STR("since")),
									      today))), err);
}

/* ---- all of it ---- */

/* The Service needs its range, and its endpoints need nothing. */
static int make_service(struct apiserver *s, size_t i, struct err *err)
{
	int r = service_make_cidr(s, i, err);
	return r < 0 ? r : service_make_kubernetes(s, i, err);
}

static int make_endpoints(struct apiserver *s, size_t i, struct err *err)
{
	(void)i;
	return service_sync_endpoints(s, true, err);
}

/* Once, at the start: whoever removes or changes a default role later means it. */
static int make_roles(struct apiserver *s, size_t i, struct err *err)
{
	(void)i;
	return rbac_bootstrap(s, err);
}

struct part {
	int (*make)(struct apiserver *s, size_t i, struct err *err);
	size_t n;
	const char *what;
};

/* Those of the second list are about objects of the first. */
static size_t parts(struct part ret[16], bool second)
{
	size_t n = 0;
	if (second) {
		ret[n++] = (struct part){ flow_make_status, flow_n_schemas(), "condition of a flow schema" };
		return n;
	}
	ret[n++] = (struct part){ make_service, 1, "service kubernetes" };
	ret[n++] = (struct part){ make_namespace, 4, "namespace" };
	ret[n++] = (struct part){ make_priority_class, 2, "priority class" };
	ret[n++] = (struct part){ flow_make_level, flow_n_levels(), "priority level" };
	ret[n++] = (struct part){ flow_make_schema, flow_n_schemas(), "flow schema" };
	ret[n++] = (struct part){ make_api_service, schema_n_api_versions, "API service" };
	ret[n++] = (struct part){ make_trust, 1, "extension-apiserver-authentication" };
	ret[n++] = (struct part){ make_token_tracking, 1, "token tracking" };
	ret[n++] = (struct part){ identity_make_lease, 1, "lease of this server" };
	return n;
}

struct job {
	struct apiserver *server;
	struct part part;
	size_t i;
};

static int run_job(void *arg)
{
	struct job *j = arg;
	struct err err = ERR_INIT;
	int r = j->part.make(j->server, j->i, &err);
	if (r < 0 && r != -ERR_CANCELED)
		log_warn("bootstrap: cannot be made yet", KV("what", j->part.what), KV("number", j->i), KV("error", &err));
	return r;
}

static int run_jobs(struct apiserver *s, bool second, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(fiber_group_done) struct fiber_group group;
	struct part all[16];
	fiber_group_init(&group);
	size_t n = parts(all, second);
	if (!second) {
		all[n++] = (struct part){ make_endpoints, 1, "endpoints of the service kubernetes" };
		all[n++] = (struct part){ make_roles, 1, "default roles" };
	}
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < all[i].n; k++) {
			struct job *j = ARENA_NEW(&a, struct job);
			*j = (struct job){ s, all[i], k };
			int r = fiber_group_spawn(&group, run_job, j, err, "bootstrap");
			if (r < 0)
				return r;
		}
	}
	return fiber_group_wait(&group, err);
}

static int repair(struct apiserver *s)
{
	struct err err = ERR_INIT;
	int r = service_repair(s, &err);
	if (r < 0 && r != -ERR_CANCELED)
		log_warn("addresses and ports of Services could not be checked", KV("error", &err));
	return r;
}

int bootstrap_make(struct apiserver *s, struct err *err)
{
	const struct apiserver_options *o = &s->options;
	int r = service_ip_new(o->service_cluster_ip_range, o->service_node_port_first, o->service_node_port_last,
			       &s->allocators, err);
	if (r < 0 || (r = run_jobs(s, false, err)) < 0 || (r = run_jobs(s, true, err)) < 0)
		return r;
	/* A store that cannot be written to may still be read: nothing here keeps the server from starting. */
	(void)repair(s);
	return fiber_check(err);
}

/* Everything once more, in turn; the first failure ends it, since the next will be the same. */
static int look_over(struct apiserver *s, struct err *err)
{
	int r = 0;
	for (int second = 0; second < 2; second++) {
		struct part all[16];
		size_t n = parts(all, second);
		for (size_t i = 0; i < n; i++)
			for (size_t k = 0; k < all[i].n; k++)
				if ((r = all[i].make(s, k, err)) < 0)
					return err_wrap(err, r, "%s", all[i].what);
	}
	return service_sync_endpoints(s, false, err);
}

static int follow_flow(void *arg)
{
	return flow_follow(arg, NULL);
}

int bootstrap_run(struct apiserver *s, struct err *err)
{
	CLEANUP(fiber_group_done) struct fiber_group group;
	fiber_group_init(&group);
	int r = fiber_group_spawn(&group, follow_flow, s, err, "flow schemas");
	if (r == 0 && !s->options.secure_port)
		r = fiber_sleep_ms(PORT_WAIT_MS, err);
	for (unsigned pass = s->options.secure_port ? 1 : 0; r == 0; pass++) {
		if (pass && (r = fiber_sleep_ms(PASS_MS, err)) < 0)
			break;
		struct err failed = ERR_INIT;
		if (look_over(s, &failed) < 0 && fiber_check(NULL) == 0)
			log_warn("bootstrap: cannot be made yet", KV("error", &failed));
		if (pass % REPAIR_PASSES == REPAIR_PASSES - 1)
			(void)repair(s);
		if (pass % COLLECT_PASSES == COLLECT_PASSES - 1)
			(void)identity_collect(s, NULL);
		r = fiber_check(err);
	}
	service_leave(s);
	return r;
}
