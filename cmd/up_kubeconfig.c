/*
 * The way to the cluster in a kubeconfig that may have others: the cluster, its user and its context are added under one name, what has that
 * name is replaced, and everything else stays as it is. `c8s reset` takes the three out again.
 */
#include "base/encoding.h"
#include "client/kubeconfig.h"
#include "cmd/up.h"
#include "codec/atoms.h"

enum { TEXT_MAX = 1 << 18 };

static const char default_data_dir[] = "/var/lib/c8s";

str up_name(const struct up_cluster *c, struct arena *a)
{
	return strcmp(c->settings.data_dir, default_data_dir) == 0 ? STR("c8s") : arena_printf(a, "c8s-%s", c->tag);
}

/* The list without the entry of that name, and with another one, if there is one. */
static struct val replace(struct arena *a, struct val list, str name, struct val entry)
{
	struct val_builder b = val_builder(a);

	VAL_EACH(item, list)
		if (!str_eq(val_str(*item, name), name))
			val_add_item(&b, *item);
	if (val_exists(entry))
		val_add_item(&b, entry);
	return val_end_list(&b);
}

static struct val base64(struct arena *a, str data)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(TEXT_MAX);

	base64_encode_buf(&text, data);
	return val_of_str(arena_str(a, buf_str(&text)));
}

/* Under our name; what is in it was read with care (up_admin.c). */
static struct val cluster_entry(struct arena *a, const struct client_config *admin, str name)
{
	struct val server = OBJECT(a, F(server, val_of_str(admin->server)));

	return OBJECT(a, F(cluster, val_put(a, server, atom_make(a, STR("certificate-authority-data")), base64(a, admin->ca))), F(name, val_of_str(name)));
}

static struct val user_entry(struct arena *a, const struct client_config *admin, str name)
{
	struct val_builder b = val_builder(a);

	val_add_member(&b, atom_make(a, STR("client-certificate-data")), base64(a, admin->client_cert));
	val_add_member(&b, atom_make(a, STR("client-key-data")), base64(a, admin->client_key));
	return OBJECT(a, F(name, val_of_str(name)), F(user, val_end_object(&b)));
}

static int load(struct arena *a, const char *path, struct val *ret, struct err *err)
{
	int r = kubeconfig_load(a, path, ret, err);

	if (r == -ERR_NOT_FOUND) {
		err_clear(err);
		*ret = OBJECT(a, F(kind, VAL_LIT("Config")), F(apiVersion, VAL_LIT("v1")));
		r = 0;
	}
	return r;
}

static const char *file_of(const struct up_cluster *c, struct arena *a) { return kubeconfig_main_path(a, c->settings.kubeconfig); }

int up_merge_kubeconfig(const struct up_cluster *c, struct arena *a, const char **ret, struct err *err)
{
	const char *path = file_of(c, a);
	str name = up_name(c, a);
	struct client_config admin;
	struct val doc;
	int r;

	if ((r = load(a, path, &doc, err)) < 0 || (r = up_admin(c, a, &admin, err)) < 0)
		return r;
	struct val context = OBJECT(a, F(cluster, val_of_str(name)), F(user, val_of_str(name)));
	doc = val_with(a, doc, replace(a, val_get(doc, clusters), name, cluster_entry(a, &admin, name)), clusters);
	doc = val_with(a, doc, replace(a, val_get(doc, users), name, user_entry(a, &admin, name)), users);
	doc = val_with(a, doc, replace(a, val_get(doc, contexts), name, OBJECT(a, F(name, val_of_str(name)), F(context, context))), contexts);
	if (!val_find(doc, STR("current-context")).n)
		doc = val_put(a, doc, atom_make(a, STR("current-context")), val_of_str(name));
	*ret = arena_str(a, name).p;
	return kubeconfig_save(path, doc, err);
}

int up_unmerge_kubeconfig(const struct up_cluster *c, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const char *path = file_of(c, &a);
	str name = up_name(c, &a);
	struct val doc;
	int r = kubeconfig_load(&a, path, &doc, err);

	if (r == -ERR_NOT_FOUND) {
		err_clear(err);
		return 0;
	}
	if (r < 0)
		return r;
	doc = val_with(&a, doc, replace(&a, val_get(doc, clusters), name, VAL_EMPTY), clusters);
	doc = val_with(&a, doc, replace(&a, val_get(doc, users), name, VAL_EMPTY), users);
	doc = val_with(&a, doc, replace(&a, val_get(doc, contexts), name, VAL_EMPTY), contexts);
	if (str_eq(val_as_str(val_find(doc, STR("current-context"))), name))
		doc = val_put(&a, doc, atom_make(&a, STR("current-context")), VAL_LIT(""));
	return kubeconfig_save(path, doc, err);
}
