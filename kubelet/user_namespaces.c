#include "kubelet/user_namespaces.h"

#include <dirent.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/json.h"

enum { IDS_PER_POD = 65536, FILE_MAX_BYTES = 4096 };

struct range {
	char *uid;                    /* of the pod that has it; NULL: none */
};

struct user_namespaces {
	const struct kubelet_node *node;
	int64_t first;
	size_t n;
	struct range *ranges;
	struct map by_uid;            /* of struct range */
};

static str path_of(const struct user_namespaces *u, struct arena *a, str uid)
{
	return arena_printf(a, STR_FMT "/pods/" STR_FMT "/userns", STR_ARG(u->node->root), STR_ARG(uid));
}

static void take(struct user_namespaces *u, struct range *r, str uid)
{
	r->uid = mem_zalloc(uid.n + 1);
	memcpy(r->uid, uid.p, uid.n);
	map_put(&u->by_uid, str_of(r->uid), r);
}

/* What a pod had before the kubelet was started. */
static void take_over(struct user_namespaces *u, str uid)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf text = BUF_INIT(FILE_MAX_BYTES);
	struct err err = ERR_INIT;
	struct val v;

	if (file_read(path_of(u, &a, uid).p, &text, &err) < 0)
		return;
	if (json_decode(&a, buf_str(&text), &(struct json_decode_options){ 0 }, &v, &err) < 0) {
		log_warn("the ids of a pod cannot be read", KV("pod", uid), KV("error", &err));
		return;
	}
	int64_t at = val_int(val_at(val_find(v, STR("uidMappings")), 0), hostId) - u->first;
	size_t i = (size_t)(at / IDS_PER_POD);
	if (at >= 0 && at % IDS_PER_POD == 0 && i < u->n && !u->ranges[i].uid)
		take(u, &u->ranges[i], uid);
	else
		log_warn("the ids of a pod are not among those that are given away", KV("pod", uid));
}

struct user_namespaces *user_namespaces_new(const struct kubelet_node *node, int64_t first, size_t n)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct user_namespaces *u = mem_zalloc(sizeof(*u));
	DIR *pods = opendir(arena_join(&a, node->root, STR("/pods")).p);

	u->node = node;
	u->first = first;
	u->n = n;
	u->ranges = mem_zalloc((n + 1) * sizeof(*u->ranges));
	map_init(&u->by_uid);
	for (struct dirent *e; pods && (e = readdir(pods));)
		if (e->d_name[0] != '.')
			take_over(u, str_of(e->d_name));
	if (pods)
		closedir(pods);
	return u;
}

void user_namespaces_free(struct user_namespaces *u)
{
	if (!u)
		return;
	for (size_t i = 0; i < u->n; i++)
		free(u->ranges[i].uid);
	map_done(&u->by_uid);
	free(u->ranges);
	free(u);
}

static struct val mapping(struct arena *a, int64_t host)
{
	return LIST(a, OBJECT(a, F(hostId, val_of_int(host)), F(containerId, val_of_int(0)), F(length, val_of_int(IDS_PER_POD))));
}

static int note_down(struct user_namespaces *u, struct arena *a, str uid, int64_t host, struct err *err)
{
	str folder = arena_printf(a, STR_FMT "/pods/" STR_FMT, STR_ARG(u->node->root), STR_ARG(uid));
	str text = arena_printf(a, "{\"uidMappings\":[{\"hostId\":%lld,\"containerId\":0,\"length\":%d}],"
				   "\"gidMappings\":[{\"hostId\":%lld,\"containerId\":0,\"length\":%d}]}",
				(long long)host, IDS_PER_POD, (long long)host, IDS_PER_POD);
	int r = file_make_dirs(folder.p, 0750, err);

	return r < 0 ? r : file_replace(path_of(u, a, uid).p, text, 0600, err);
}

int user_namespaces_of(struct user_namespaces *u, struct arena *a, struct val pod, struct val *ret, struct err *err)
{
	str uid = val_str(pod, metadata, uid);
	struct range *r = map_get(&u->by_uid, uid);
	bool is_new = !r;

	for (size_t i = 0; i < u->n && !r; i++)
		if (!u->ranges[i].uid)
			take(u, r = &u->ranges[i], uid);
	if (!r)
		return err_set(err, ERR_UNAVAILABLE, "could not find an empty slot to allocate a user namespace");
	int64_t host = u->first + (r - u->ranges) * (int64_t)IDS_PER_POD;
	int code = is_new ? note_down(u, a, uid, host, err) : 0; /* a pod that has it may run with it: it stays its own */
	if (code < 0) {
		user_namespaces_release(u, uid);
		return code;
	}
	*ret = OBJECT(a, F(mode, VAL_LIT("POD")), F(uids, mapping(a, host)), F(gids, mapping(a, host)));
	return 0;
}

void user_namespaces_release(struct user_namespaces *u, str uid)
{
	struct range *r = map_remove(&u->by_uid, uid);

	if (!r)
		return;
	free(r->uid);
	r->uid = NULL;
}
