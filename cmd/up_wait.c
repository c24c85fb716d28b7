/* What `c8s up` asks the cluster, as its administrator. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "client/client.h"
#include "client/kubeconfig.h"
#include "cmd/up.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "codec/time.h"
#include "codec/types.h"
#include "codec/yaml.h"

enum { MANIFEST_MAX = 16 << 20 };

int up_connect(const struct up_cluster *c, struct client **ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct client_config config;
	int r = c->settings.server ? kubeconfig_open(&a, c->node_conf, &config, err) : up_admin(c, &a, &config, err);

	if (r < 0)
		return r;
	if (up_has_several(c))
		config.servers_file = str_of(c->servers_file);
	return client_open(&config, ret, err);
}

/* Times of this form are in order as texts are. */
static bool is_ready(struct val node, str since)
{
	VAL_EACH(condition, val_get(node, status, conditions))
		if (str_eq(val_str(*condition, type), STR("Ready")))
			return str_eq(val_str(*condition, status), STR("True")) && str_cmp(val_str(*condition, lastHeartbeatTime), since) >= 0;
	return false;
}

int up_wait_node(struct client *client, const char *name, int64_t since_ns, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	char text[TIME_TEXT_MAX];
	str since = time_format((struct timestamp){ .seconds = since_ns / NS_PER_S }, text);
	struct client_watch_options o = { .list.fields = arena_printf(&a, "metadata.name=%s", name), .initial = true };

	for (;;) {
		CLEANUP(client_watch_freep) struct client_watch *w = NULL;
		struct client_event event;
		int r = client_watch(client, TYPE(core_v1, Node), &o, &w, err);

		while (r >= 0 && (r = client_watch_next(w, &event, err)) > 0)
			if (event.type != CLIENT_DELETED && event.type != CLIENT_BOOKMARK && is_ready(event.object->val, since))
				return 0;
		if (r < 0)
			return r;
	}
}

/* ---- manifests ---- */

static int apply_object(struct client *client, str json, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct type *type;
	struct val object;
	int r = json_decode_object(&a, json, NULL, &object, &type, err);

	if (r < 0)
		return r;
	if (!type)
		return err_set(err, ERR_INVALID, "there is no kind " STR_FMT " in " STR_FMT, STR_ARG(val_str(object, kind)), STR_ARG(val_str(object, apiVersion)));
	return client_apply(client, type, object, &(struct client_write_options){ .manager = STR("c8s-up"), .force = true }, NULL, err);
}

int up_apply_text(struct client *client, str text, size_t *applied, struct err *err)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(MANIFEST_MAX);
	CLEANUP(yaml_closep) struct yaml_stream *documents = yaml_open(text);
	int r;

	while ((r = yaml_next(documents, &json, err)) > 0) {
		if ((r = apply_object(client, buf_str(&json), err)) < 0)
			return r;
		++*applied;
		json.n = 0;
	}
	return r;
}

static int apply_file(struct client *client, const char *path, size_t *applied, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(MANIFEST_MAX);
	int r = file_read(path, &text, err);

	if (r == 0)
		r = up_apply_text(client, buf_str(&text), applied, err);
	return r < 0 ? err_wrap(err, r, "%s", path) : 0;
}

static int is_manifest(const struct dirent *entry)
{
	str name = str_of(entry->d_name);

	return name.p[0] != '.' && (str_ends(name, STR(".yaml")) || str_ends(name, STR(".yml")) || str_ends(name, STR(".json")));
}

int up_apply_folder(struct client *client, const char *folder, size_t *ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct dirent **entries;
	int n = scandir(folder, &entries, is_manifest, alphasort), r = 0;

	*ret = 0;
	if (n < 0)
		return err_sys(err, errno, "reading %s", folder);
	for (int i = 0; i < n; i++) {
		if (r == 0)
			r = apply_file(client, arena_printf(&a, "%s/%s", folder, entries[i]->d_name).p, ret, err);
		free(entries[i]);
	}
	free(entries);
	return r;
}
