/*
 * The etcd engine: keys and values are exactly what is given, so a cluster of Kubernetes and c8s can open each other's
 * data. All calls of a store share one connection to one member, and move to another when it is of no use.
 */
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "store/etcd_priv.h"

enum { OPEN_PAUSE_MS = 500 };

/* ---- reading ---- */

static struct val range_request(struct arena *a, const struct store_range *q)
{
	return OBJECT(a, F(key, VAL_STR(q->to.n ? etcd_from(q->from) : q->from)), F(rangeEnd, VAL_STR(q->to)),
		      F(limit, val_of_int((int64_t)q->limit)), F(revision, val_of_int(q->revision)),
		      F(keysOnly, val_of_bool(q->keys_only)), F(countOnly, val_of_bool(q->count_only)));
}

static int etcd_range(struct store *s, const struct store_range *q, struct store_page *ret, struct err *err)
{
	CLEANUP(etcd_answer_done) struct etcd_answer a = ETCD_ANSWER_INIT;
	int r = etcd_call(etcd_of(s), &rpc_KV_Range, ETCD_READ, range_request(&a.arena, q), &a, err);

	if (r < 0)
		return r;
	struct val kvs = val_get(a.v, kvs);
	struct arena *memory = store_memory_new();
	*ret = (struct store_page){
		.kvs = ARENA_ARRAY(memory, struct store_kv, val_len(kvs)),
		.count = val_int(a.v, count),
		.more = val_bool(a.v, more),
		.revision = q->revision ? q->revision : val_int(a.v, header, revision),
		.memory = memory,
	};
	VAL_EACH(kv, kvs)
		ret->kvs[ret->n++] = etcd_kv(memory, *kv, !q->keys_only);
	return 0;
}

static int etcd_get(struct store *s, str key, struct store_kv *ret, int64_t *ret_revision, struct err *err)
{
	CLEANUP(etcd_answer_done) struct etcd_answer a = ETCD_ANSWER_INIT;
	int r = etcd_call(etcd_of(s), &rpc_KV_Range, ETCD_READ, OBJECT(&a.arena, F(key, VAL_STR(key))), &a, err);

	if (r < 0)
		return r;
	*ret_revision = val_int(a.v, header, revision);
	struct val kvs = val_get(a.v, kvs);
	if (!val_len(kvs))
		return 0;
	*ret = etcd_kv(NULL, val_at(kvs, 0), true);
	ret->key = key;
	return 1;
}

int etcd_revision(struct store *s, int64_t *ret_revision, struct err *err)
{
	CLEANUP(etcd_answer_done) struct etcd_answer a = ETCD_ANSWER_INIT;
	struct val request = OBJECT(&a.arena, F(key, VAL_LIT("compact_rev_key")), F(countOnly, val_of_bool(true)));
	int r = etcd_call(etcd_of(s), &rpc_KV_Range, ETCD_READ, request, &a, err);

	if (r == 0)
		*ret_revision = val_int(a.v, header, revision);
	return r;
}

/* ---- compaction ---- */

static int etcd_compact(struct store *s, int64_t revision, struct err *err)
{
	CLEANUP(etcd_answer_done) struct etcd_answer a = ETCD_ANSWER_INIT;
	struct etcd *e = etcd_of(s);
	/* Compacting twice does no harm: the second time etcd says that it has been done. */
	int r = etcd_call(e, &rpc_KV_Compact, ETCD_READ, OBJECT(&a.arena, F(revision, val_of_int(revision))), &a, err);

	if (r == -ERR_EXPIRED) {
		err_clear(err);
		r = 0;
	}
	if (r == 0)
		e->compact_revision = MAX(e->compact_revision, revision);
	return r;
}

static void etcd_stats(struct store *s, struct store_stats *ret)
{
	const struct etcd *e = etcd_of(s);

	ret->revision = e->revision;
	ret->compact_revision = e->compact_revision;
}

/* ---- opening ---- */

static void etcd_free(struct store *s)
{
	struct etcd *e = etcd_of(s);

	fiber_group_done(&e->askers);
	grpc_channel_free(e->channel);
	etcd_own_done(&e->own);
	tls_context_free(e->tls);
	free(e);
}

static void etcd_freep(struct etcd **e)
{
	if (*e)
		etcd_free(&(*e)->store);
}

static const struct store_engine etcd_engine = {
	.name = "etcd",
	.free = etcd_free,
	.range = etcd_range,
	.get = etcd_get,
	.revision = etcd_revision,
	.write = etcd_write,
	.compact = etcd_compact,
	.watch_open = etcd_watch_open,
	.watch_next = etcd_watch_next,
	.watch_progress = etcd_watch_progress,
	.watch_free = etcd_watch_free,
	.stats = etcd_stats,
};

static int channel_open(struct etcd *e, const struct store_options *o, struct err *err)
{
	static const char *const alpn[] = { "h2", NULL };
	/* A member that has lost touch with the others says so instead of waiting. */
	static const struct http_header metadata[] = { { STR_INIT("hasleader"), STR_INIT("true") } };
	struct tls_options tls = { .ca_file = o->ca_file, .cert_file = o->cert_file, .key_file = o->key_file,
				   .alpn = alpn };
	bool https = false;
	int r;

	for (const char *const *at = o->endpoints; *at; at++)
		https |= str_starts(str_of(*at), STR("https:"));
	if (https && (r = tls_client_new(&tls, &e->tls, err)) < 0)
		return err_wrap(err, r, "etcd");
	struct grpc_options channel = { .endpoints = o->endpoints, .tls = e->tls, .metadata = metadata,
					.n_metadata = ARRAY_LEN(metadata), .max_message = INT32_MAX };
	if ((r = grpc_channel_new(&channel, &e->channel, err)) < 0)
		return err_wrap(err, r, "etcd");
	return 0;
}

int store_open_etcd(const struct store_options *o, struct store **ret, struct err *err)
{
	CLEANUP(etcd_freep) struct etcd *e = mem_zalloc(sizeof *e);
	struct err why = ERR_INIT;
	int64_t revision;
	bool told = false;
	int r;

	e->store.engine = &etcd_engine;
	fiber_cond_init(&e->lease.granted, "a lease");
	fiber_group_init(&e->askers);
	etcd_own_init(&e->own);
	if ((r = channel_open(e, o, err)) < 0)
		return r;
	while ((r = etcd_revision(&e->store, &revision, &why)) < 0) {
		if ((r != -ERR_UNAVAILABLE && r != -ERR_TIMEOUT) || fiber_sleep_ms(OPEN_PAUSE_MS, NULL) < 0)
			return err_set(err, (enum err_code)-r, "%s", why.msg);
		if (!told)
			log_warn("waiting for etcd", KV("reason", &why));
		told = true;
	}
	*ret = &TAKE(e)->store;
	return 0;
}
