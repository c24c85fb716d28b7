/* kubectl create: objects from files, or made of flags by the commands below it. */
#include "kubectl/create.h"

#include "kubectl/commands.h"
#include "kubectl/edit.h"

const struct ktl_flag ktl_no_flags[] = { { 0 } };

/* ---- made of flags ---- */

int ktl_create_name(struct ktl *k, str *ret)
{
	size_t n = k->flags.dash >= 0 ? (size_t)k->flags.dash : k->args.n;
	if (n != 1)
		return ktl_fail_usage(k, "exactly one NAME is required, got %zu", n);
	*ret = str_of(k->args.v[0]);
	return 0;
}

struct val ktl_meta(struct ktl *k, str name, struct val labels) { return OBJECT(&k->arena, F(name, VAL_STR(name)), F(labels, labels)); }

struct val ktl_text_list(struct ktl *k, const char *const *texts, size_t n)
{
	struct val_builder b = val_builder(&k->arena);
	for (size_t i = 0; i < n; i++)
		val_add_item(&b, VAL_STR(str_of(texts[i])));
	return val_end_list(&b);
}

struct val ktl_words_behind_dash(struct ktl *k)
{
	if (k->flags.dash < 0 || (size_t)k->flags.dash >= k->args.n)
		return VAL_EMPTY;
	return ktl_text_list(k, k->args.v + k->flags.dash, k->args.n - (size_t)k->flags.dash);
}

int ktl_create_made(struct ktl *k, const struct ktl_create *c, const struct type *type, struct val object, const char *failed)
{
	struct ktl_info info = { .kind = ktl_kind_of_type(k, type) };
	struct ktl_printer p;
	struct ktl_write w;
	struct val made;
	bool explicit;
	if (ktl_printer_init(k, &c->print, false, &p) < 0 || ktl_write_init(k, &c->write, &c->create, "kubectl-create", &p, &w) < 0 ||
	    ktl_namespace(k, &info.namespace, &explicit) < 0)
		return -1;
	p.done = "created";
	if (!info.kind->namespaced)
		info.namespace = STR_NONE;
	else if (explicit)
		object = val_with(&k->arena, object, VAL_STR(info.namespace), metadata, namespace);
	if (ktl_typed(k, type, object, &info.object) < 0)
		return -1;
	if (ktl_create_object(k, &w, &info, &made) < 0)
		return failed ? ktl_fail_plainly(k, failed) : -1;
	if (w.dry != KTL_DRY_CLIENT && ktl_typed(k, type, made, &made) < 0)
		return -1;
	return ktl_print(k, &p, info.kind, made);
}

/* ---- from files ---- */

struct create {
	struct ktl_create common;
	struct ktl_file_flags files;
	struct ktl_record_flags record;
	const char *selector, *raw;
	bool edit;
};

static const struct ktl_flag create_flags[] = {
	{ "edit", 0, KTL_BOOL, offsetof(struct create, edit), NULL, "Edit the objects before they are created", NULL },
	{ "raw", 0, KTL_STRING, offsetof(struct create, raw), NULL, "A path of the server to send the file to", NULL },
	{ "selector", 'l', KTL_STRING, offsetof(struct create, selector), NULL, "Only objects with these labels", NULL },
	{ 0 },
};

static int create_raw(struct ktl *k, const struct create *c)
{
	const char *file = c->files.filenames.n == 1 ? c->files.filenames.v[0] : NULL;
	if (c->edit)
		return ktl_fail(k, "--raw and --edit are mutually exclusive");
	if (!file)
		return ktl_fail(k, "--raw can only use a single local file or stdin");
	if (str_starts(str_of(file), STR("http://")) || str_starts(str_of(file), STR("https://")))
		return ktl_fail(k, "--raw cannot read from a url");
	if (c->files.recursive)
		return ktl_fail(k, "--raw and --recursive are mutually exclusive");
	if (c->selector[0])
		return ktl_fail(k, "--raw and --selector (-l) are mutually exclusive");
	if (c->common.print.output[0])
		return ktl_fail(k, "--raw and --output are mutually exclusive");
	return ktl_raw(k, STR("POST"), c->raw, file);
}

/* (suspends) The object in an editor, then created as it is there. */
static int create_edited(struct ktl *k, const struct ktl_write *w, struct ktl_info *info, struct ktl_printer *p)
{
	struct ktl_edited e;
	struct val made;
	int r = ktl_edit_tree(k, p->format == KTL_JSON, info->object, &e);
	if (r <= 0)
		return r;
	str namespace = val_str(e.object, metadata, namespace);
	r = ktl_kind_of(k, val_str(e.object, apiVersion), val_str(e.object, kind), &info->kind);
	if (r == 0 && !info->kind)
		r = ktl_fail(k, "the edited file does not say what kind of object it is");
	if (r == 0) {
		info->object = e.object;
		info->namespace = !info->kind->namespaced ? STR_NONE : namespace.n ? namespace : info->namespace;
		r = ktl_create_object(k, w, info, &made);
	}
	return ktl_edit_end(&e, r) < 0 ? -1 : ktl_print(k, p, info->kind, made);
}

static int run(struct ktl *k, void *options)
{
	const struct create *c = options;
	struct ktl_infos infos;
	struct ktl_printer p;
	struct ktl_write w;
	str namespace;
	bool explicit;
	if (k->args.n)
		return ktl_fail_usage(k, "Unexpected args: [%s]", k->args.v[0]);
	if (ktl_no_files(&c->files))
		return ktl_fail(k, "must specify one of -f and -k");
	if (c->raw[0])
		return create_raw(k, c);
	if (ktl_printer_init(k, &c->common.print, false, &p) < 0 ||
	    ktl_write_init(k, &c->common.write, &c->common.create, "kubectl-create", &p, &w) < 0 || ktl_namespace(k, &namespace, &explicit) < 0)
		return -1;
	p.done = "created";
	struct ktl_builder b = {
		.files = &c->files, .namespace = namespace, .enforce_namespace = explicit, .selector = c->selector, .keep_going = true,
		.check = !str_eq(w.validation, STR("Ignore")),
	};
	if (ktl_build(k, &b, &infos) < 0)
		return -1;
	for (size_t i = 0; i < infos.n; i++) {
		struct val made;
		if (c->edit)
			(void)create_edited(k, &w, &infos.v[i], &p);
		else if (ktl_create_object(k, &w, &infos.v[i], &made) == 0)
			(void)ktl_print(k, &p, infos.v[i].kind, made);
	}
	return infos.n || k->n_failures ? 0 : ktl_fail(k, "no objects passed to create");
}

const struct ktl_command ktl_create = {
	.name = "create",
	.group = "Basic Commands (Beginner)",
	.summary = "Create a resource from a file or from stdin",
	.manual = "Creates objects: those in files (JSON or YAML), or one that flags describe.",
	.examples = "  kubectl create -f pod.yaml\n  kubectl create deployment web --image=nginx --replicas=3\n  kubectl create namespace demo\n"
		    "  kubectl create configmap settings --from-file=app.conf --from-literal=mode=fast\n",
	.usage = "create -f FILENAME [options]",
	.below = (const struct ktl_command *const[]){
		&ktl_create_clusterrole, &ktl_create_clusterrolebinding, &ktl_create_configmap, &ktl_create_cronjob, &ktl_create_deployment,
		&ktl_create_ingress, &ktl_create_job, &ktl_create_namespace, &ktl_create_pdb, &ktl_create_priorityclass, &ktl_create_quota,
		&ktl_create_role, &ktl_create_rolebinding, &ktl_create_secret, &ktl_create_service, &ktl_create_serviceaccount,
		&ktl_create_token, NULL,
	},
	.flags = (const struct ktl_flag_set[]){
		{ create_flags, 0 }, { ktl_file_flags, offsetof(struct create, files) }, { ktl_print_flags, offsetof(struct create, common.print) },
		{ ktl_write_flags, offsetof(struct create, common.write) }, { ktl_create_flags, offsetof(struct create, common.create) },
		{ ktl_record_flags, offsetof(struct create, record) }, { 0 },
	},
	.size = sizeof(struct create),
	.run = run,
};
