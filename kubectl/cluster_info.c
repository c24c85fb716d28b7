/* kubectl cluster-info, and its dump: everything that helps to find out what is wrong. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/path.h"
#include "codec/types.h"
#include "kubectl/commands.h"
#include "kubectl/logs.h"
#include "kubectl/write.h"

static void print_service(const char *name, str where)
{
	bool colour = isatty(STDOUT_FILENO);
	printf(colour ? "\033[0;32m%s\033[0m is running at \033[0;33m" STR_FMT "\033[0m\n" : "%s is running at " STR_FMT "\n", name, STR_ARG(where));
}

static int run_cluster_info(struct ktl *k, void *options)
{
	const struct ktl_kind *services;
	struct client *c;
	struct val list;
	(void)options;
	if (ktl_client(k, &c) < 0 || ktl_kind_find(k, STR("services"), &services) < 0)
		return -1;
	if (ktl_list(k, services, STR("kube-system"), STR("kubernetes.io/cluster-service=true"), STR_NONE, &list) < 0)
		return -1;
	print_service("Kubernetes control plane", client_server(c));
	VAL_EACH(s, list) {
		str name = val_as_str(val_find(val_get(*s, metadata, labels), STR("kubernetes.io/name")));
		struct val port = val_at(val_get(*s, spec, ports), 0);
		name = name.n ? name : val_str(*s, metadata, name);
		print_service(ktl_cstr(k, name),
			      arena_printf(&k->arena, STR_FMT "/api/v1/namespaces/kube-system/services/" STR_FMT "%s" STR_FMT "/proxy", STR_ARG(client_server(c)),
					   STR_ARG(val_str(*s, metadata, name)), val_str(port, name).n ? ":" : "", STR_ARG(val_str(port, name))));
	}
	printf("\nTo further debug and diagnose cluster problems, use 'kubectl cluster-info dump'.\n");
	return 0;
}

/* ---- dump ---- */

struct dump {
	struct ktl_print_flags print;
	const char *directory;
	struct ktl_texts namespaces;
	bool all_namespaces;
	int64_t timeout_ns;
};

static const struct ktl_flag dump_flags[] = {
	{ "all-namespaces", 'A', KTL_BOOL, offsetof(struct dump, all_namespaces), NULL, "Of all namespaces", NULL },
	{ "namespaces", 0, KTL_LIST, offsetof(struct dump, namespaces), NULL, "Of these namespaces; else kube-system and the current one", NULL },
	{ "output-directory", 0, KTL_STRING, offsetof(struct dump, directory), NULL, "Folder to write files to; else all goes to standard output", NULL },
	{ "pod-running-timeout", 0, KTL_DURATION, offsetof(struct dump, timeout_ns), "20s", NULL, NULL },
	{ 0 },
};

static bool to_files(const struct dump *o) { return o->directory[0] && !ktl_is(o->directory, "-"); }

/* The folder of a file, made where it is missing; *ret_name: of the file in it. */
static int open_folder(struct ktl *k, str full, const char **ret_name, struct err *err)
{
	size_t slash = (size_t)str_rchr(full, '/');
	int root = path_open_tree("/", err);
	if (root < 0)
		return root;
	int folder = path_mkdirs(root, path_absolute(&k->arena, ktl_cstr(k, str_head(full, slash))).p, 0755, err);
	(void)close(root);
	*ret_name = full.p + slash + 1;
	return folder;
}

/* Standard output becomes a file of the folder. */
static int begin_file(struct ktl *k, const struct dump *o, const char *path, const char *ending)
{
	struct err err = ERR_INIT;
	const char *name;
	if (!to_files(o))
		return 0;
	str full = arena_printf(&k->arena, "%s/%s%s", o->directory, path, ending);
	ktl_flush();
	int folder = open_folder(k, full, &name, &err);
	if (folder < 0)
		return ktl_fail_err(k, &err);
	int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	(void)close(folder);
	int r = fd < 0 || dup2(fd, STDOUT_FILENO) < 0 ? ktl_fail(k, "open %s: %s", full.p, strerror(errno)) : 0;
	if (fd >= 0)
		(void)close(fd);
	return r;
}

/* (suspends) */
static int dump_list(struct ktl *k, const struct dump *o, struct ktl_printer *p, const struct type *type, str namespace, const char *file, struct val *ret)
{
	const struct ktl_kind *kind = ktl_kind_of_type(k, type);
	const char *path = namespace.n ? arena_printf(&k->arena, STR_FMT "/%s", STR_ARG(namespace), file).p : file;
	const char *ending = p->format == KTL_JSON ? ".json" : p->format == KTL_YAML ? ".yaml" : ".txt";
	if (ktl_get(k, ktl_kind_path(k, kind, namespace, STR_NONE, STR_NONE), STR_NONE, ret) < 0 || begin_file(k, o, path, ending) < 0)
		return -1;
	if (to_files(o)) /* in one stream they are documents, with --- between them */
		p->n = 0;
	return ktl_print(k, p, kind, *ret);
}

/* (suspends) What cannot be read is told in its place. */
static void dump_log(struct ktl *k, struct val pod, struct val container)
{
	str place = arena_printf(&k->arena, "container " STR_FMT " of pod " STR_FMT "/" STR_FMT, STR_ARG(val_str(container, name)),
				 STR_ARG(val_str(pod, metadata, namespace)), STR_ARG(val_str(pod, metadata, name)));
	printf("==== START logs for " STR_FMT " ====\n", STR_ARG(place));
	if (ktl_copy_log(k, pod, val_str(container, name), STR_NONE, STR_NONE) < 0) {
		printf("Request log error: " STR_FMT "\n", STR_ARG(ktl_last_failure(k)->text));
		ktl_forgive(k);
	}
	printf("==== END logs for " STR_FMT " ====\n", STR_ARG(place));
}

static int dump_namespace(struct ktl *k, const struct dump *o, struct ktl_printer *p, str namespace)
{
	const struct { const struct type *type; const char *file; } lists[] = {
		{ TYPE(core_v1, Event), "events" }, { TYPE(core_v1, ReplicationController), "replication-controllers" },
		{ TYPE(core_v1, Service), "services" }, { TYPE(apps_v1, DaemonSet), "daemonsets" }, { TYPE(apps_v1, Deployment), "deployments" },
		{ TYPE(apps_v1, ReplicaSet), "replicasets" }, { TYPE(core_v1, Pod), "pods" },
	};
	struct val list = VAL_EMPTY;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		if (dump_list(k, o, p, lists[i].type, namespace, lists[i].file, &list) < 0)
			return -1;
	VAL_EACH(pod, val_get(list, items)) {
		if (begin_file(k, o, arena_printf(&k->arena, STR_FMT "/" STR_FMT "/logs", STR_ARG(namespace), STR_ARG(val_str(*pod, metadata, name))).p, ".txt") < 0)
			return -1;
		VAL_EACH(c, val_get(*pod, spec, initContainers))
			dump_log(k, *pod, *c);
		VAL_EACH(c, val_get(*pod, spec, containers))
			dump_log(k, *pod, *c);
	}
	return 0;
}

/* (suspends) Which namespaces: a list of names. */
static int dumped_namespaces(struct ktl *k, const struct dump *o, struct val *ret)
{
	struct val_builder b = val_builder(&k->arena);
	struct val all;
	str current;
	if (ktl_namespace(k, &current, NULL) < 0)
		return -1;
	if (o->all_namespaces && ktl_list(k, ktl_kind_of_type(k, TYPE(core_v1, Namespace)), STR_NONE, STR_NONE, STR_NONE, &all) < 0)
		return -1;
	VAL_EACH(n, o->all_namespaces ? all : VAL_EMPTY)
		val_add_item(&b, val_get(*n, metadata, name));
	for (size_t i = 0; i < o->namespaces.n && !o->all_namespaces; i++)
		val_add_item(&b, VAL_STR(str_of(o->namespaces.v[i])));
	if (!o->all_namespaces && !o->namespaces.n) {
		val_add_item(&b, VAL_LIT("kube-system"));
		val_add_item(&b, VAL_STR(current));
	}
	*ret = val_end_list(&b);
	return 0;
}

static int run_dump(struct ktl *k, void *options)
{
	struct dump *o = options;
	struct val list, namespaces;
	struct ktl_printer p;
	if (!o->print.output[0])
		o->print.output = "json";
	if (ktl_is(o->print.output, "name"))
		return ktl_fail(k, "list types are not supported by name printing: *v1.NodeList");
	if (ktl_printer_init(k, &o->print, false, &p) < 0 || dumped_namespaces(k, o, &namespaces) < 0)
		return -1;
	int terminal = dup(STDOUT_FILENO);
	int r = dump_list(k, o, &p, TYPE(core_v1, Node), STR_NONE, "nodes", &list);
	VAL_EACH(n, r < 0 ? VAL_EMPTY : namespaces)
		if ((r = dump_namespace(k, o, &p, val_as_str(*n))) < 0)
			break;
	ktl_flush();
	(void)dup2(terminal, STDOUT_FILENO);
	(void)close(terminal);
	if (r == 0 && to_files(o))
		printf("Cluster info dumped to %s\n", o->directory);
	return r;
}

static const struct ktl_command dump = {
	.name = "dump", .summary = "Dump relevant information for debugging and diagnosis",
	.examples = "  kubectl cluster-info dump\n  kubectl cluster-info dump --all-namespaces --output-directory=/tmp/state\n",
	.usage = "cluster-info dump [options]",
	.flags = (const struct ktl_flag_set[]){ { dump_flags, 0 }, { ktl_print_flags, offsetof(struct dump, print) }, { 0 } },
	.size = sizeof(struct dump), .run = run_dump,
};

const struct ktl_command ktl_cluster_info = {
	.name = "cluster-info", .group = "Cluster Management Commands", .summary = "Display cluster information", .usage = "cluster-info [options]",
	.below = (const struct ktl_command *const[]){ &dump, NULL }, .run = run_cluster_info,
};
