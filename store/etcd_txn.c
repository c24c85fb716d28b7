/*
 * Writes. One transaction compares the key's revision and then writes, or else reads the key, so that whoever was too
 * late has what is there now in the same round trip.
 */
#include "codec/atoms.h"
#include "codec/types.h"
#include "store/etcd_priv.h"

static struct val compare_of(struct arena *a, const struct store_write *w)
{
	if (w->expect == STORE_ANY)
		return VAL_EMPTY;
	return LIST(a, OBJECT(a, F(target, VAL_LIT("MOD")), F(key, VAL_STR(w->key)),
			      F(modRevision, val_of_int(w->expect))));
}

static struct val success_of(struct arena *a, const struct store_write *w, int64_t lease)
{
	if (!w->value)
		return OBJECT(a, F(requestDeleteRange, OBJECT(a, F(key, VAL_STR(w->key)))));
	return OBJECT(a, F(requestPut, OBJECT(a, F(key, VAL_STR(w->key)), F(value, VAL_STR(store_value_str(w->value))),
					      F(lease, val_of_int(lease)))));
}

static struct val txn_of(struct arena *a, const struct store_write *w, int64_t lease)
{
	struct val failure = VAL_EMPTY;

	if (w->expect != STORE_ANY)
		failure = LIST(a, OBJECT(a, F(requestRange, OBJECT(a, F(key, VAL_STR(w->key))))));
	return OBJECT(a, F(compare, compare_of(a, w)), F(success, LIST(a, success_of(a, w, lease))), F(failure, failure));
}

/* A condition that did not hold: the key as it is. */
static int refused(struct val response, struct store_kv *ret_current)
{
	struct val kvs = val_get(response, responseRange, kvs);

	if (val_len(kvs))
		*ret_current = etcd_kv(NULL, val_at(kvs, 0), true);
	return 0;
}

int etcd_write(struct store *s, const struct store_write *w, int64_t *ret_revision, struct store_kv *ret_current,
	       struct err *err)
{
	CLEANUP(etcd_answer_done) struct etcd_answer a = ETCD_ANSWER_INIT;
	struct etcd *e = etcd_of(s);
	int64_t lease = 0;
	int r;

	if (w->ttl_s > 0 && (r = etcd_lease_get(e, w->ttl_s, &lease, err)) < 0)
		return r;
	if (w->value)
		etcd_own_add(&e->own, w->key, w->value);
	if ((r = etcd_call(e, &rpc_KV_Txn, ETCD_WRITE, txn_of(&a.arena, w, lease), &a, err)) < 0) {
		if (lease && r == -ERR_NOT_FOUND) {
			etcd_lease_forget(e, lease);
			return err_set(err, ERR_UNAVAILABLE, "etcd: the lease has gone, try again");
		}
		return r;
	}
	struct val response = val_at(val_get(a.v, responses), 0);
	if (!val_bool(a.v, succeeded))
		return refused(response, ret_current);
	if (!w->value && val_int(response, responseDeleteRange, deleted) == 0)
		return 0; /* it was not there */
	*ret_revision = val_int(a.v, header, revision);
	return 1;
}
