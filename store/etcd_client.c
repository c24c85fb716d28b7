/*
 * Calls to etcd. Members say "no leader" while they elect one, and then nothing was done: such calls go to another member.
 * The same holds for reads, whatever went wrong. A write that may have been carried out is never sent again: a creation
 * would meet its own key and report that someone else had made it.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/proto.h"
#include "codec/types.h"
#include "store/etcd_priv.h"

enum {
	/* As long as a member usually needs to find out that the leader is gone, and to elect another, twice over. */
	PATIENCE_MS = 5000,
	PAUSE_MS = 100,
	REQUEST_MAX = 64 << 20,
};

void etcd_answer_done(struct etcd_answer *a)
{
	arena_done(&a->arena);
	grpc_message_free(a->message);
}

/* ---- errors ---- */

struct meaning {
	str text;                 /* occurs in etcd's message */
	enum err_code code;
	bool unsure;              /* a write may have been carried out */
	bool elsewhere;           /* another member may do better */
	const char *advice;
};

static const struct meaning meanings[] = {
	{ STR_INIT("required revision has been compacted"), ERR_EXPIRED, false, false, NULL },
	{ STR_INIT("required revision is a future revision"), ERR_BAD_REQUEST, false, false, NULL },
	{ STR_INIT("database space exceeded"), ERR_UNAVAILABLE, false, false,
	  "etcd refuses writes because its database has reached its quota; compact it, run 'etcdctl defrag' for each "
	  "member and 'etcdctl alarm disarm', or raise --quota-backend-bytes" },
	{ STR_INIT("request is too large"), ERR_TOO_LARGE, false, false, NULL },
	{ STR_INIT("larger than max"), ERR_TOO_LARGE, false, false, NULL },
	{ STR_INIT("no leader"), ERR_UNAVAILABLE, false, true, NULL },
	{ STR_INIT("leader changed"), ERR_UNAVAILABLE, false, true, NULL },
	{ STR_INIT("not leader"), ERR_UNAVAILABLE, false, true, NULL },
	{ STR_INIT("not supported for learner"), ERR_UNAVAILABLE, false, true, NULL },
	{ STR_INIT("too many requests"), ERR_UNAVAILABLE, false, false, NULL },
	{ STR_INIT("corrupt cluster"), ERR_UNAVAILABLE, false, false,
	  "etcd has found that its members hold different data and refuses writes; replace the damaged member" },
	{ STR_INIT("request timed out"), ERR_UNAVAILABLE, true, true, NULL },
	{ STR_INIT("server stopped"), ERR_UNAVAILABLE, true, true, NULL },
};

static const struct meaning *meaning_of(str text)
{
	for (size_t i = 0; i < ARRAY_LEN(meanings); i++) {
		if (str_find(text, meanings[i].text) >= 0)
			return &meanings[i];
	}
	return NULL;
}

int etcd_error(int r, enum etcd_effect effect, struct err *err)
{
	const struct meaning *m = meaning_of(err_str(err));
	enum err_code code = m ? m->code : (enum err_code)-r;
	bool unsure = m ? m->unsure : code == ERR_UNAVAILABLE;

	if (effect == ETCD_WRITE && unsure)
		code = ERR_TIMEOUT;
	err->code = code;
	return m && m->advice ? err_wrap(err, -(int)code, "%s", m->advice) : -(int)code;
}

/* ---- calls ---- */

static int encode(const struct rpc *rpc, struct val request, struct buf *b, struct err *err)
{
	int r = proto_encode(b, request, rpc->request, err);
	return r < 0 ? err_wrap(err, r, "etcd request") : 0;
}

/* Once, with the error that the contract wants. *ret_again: there is hope in trying again. */
static int call_once(struct etcd *e, const struct rpc *rpc, enum etcd_effect effect, str request, struct etcd_answer *a,
		     bool *ret_again, struct err *err)
{
	uint64_t generation = grpc_channel_generation(e->channel);
	unsigned flags = effect == ETCD_READ ? GRPC_IDEMPOTENT : 0;
	int status;
	int r = grpc_call(e->channel, rpc->path, flags, request, &a->message, &status, err);

	*ret_again = false;
	if (r >= 0)
		return r;
	if (status < 0) { /* no member answered */
		*ret_again = r == -ERR_UNAVAILABLE;
		return r;
	}
	const struct meaning *m = meaning_of(err_str(err));
	if (m && m->elsewhere) {
		grpc_channel_move(e->channel, generation);
		*ret_again = effect == ETCD_READ || !m->unsure;
	}
	return etcd_error(r, effect, err);
}

static int call_patiently(struct etcd *e, const struct rpc *rpc, enum etcd_effect effect, str request,
			  struct etcd_answer *a, struct err *err)
{
	int64_t end_ns = clock_now_ns() + PATIENCE_MS * NS_PER_MS;

	for (;;) {
		bool again;
		int r = call_once(e, rpc, effect, request, a, &again, err);
		if (r >= 0 || !again || clock_now_ns() >= end_ns)
			return r;
		if (fiber_sleep_ms(PAUSE_MS, NULL) < 0)
			return r;
	}
}

int etcd_call(struct etcd *e, const struct rpc *rpc, enum etcd_effect effect, struct val request, struct etcd_answer *a,
	      struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(REQUEST_MAX);
	struct err local = ERR_INIT;
	DEADLINE_SCOPE(ETCD_CALL_MS);

	err = err ? err : &local;
	int r = encode(rpc, request, &b, err);

	if (r < 0 || (r = call_patiently(e, rpc, effect, buf_str(&b), a, err)) < 0)
		return err_wrap(err, r, "etcd");
	if ((r = proto_decode(&a->arena, grpc_message_str(a->message), rpc->response, &a->v, err)) < 0)
		return err_set(err, effect == ETCD_WRITE ? ERR_TIMEOUT : ERR_INTERNAL, "etcd: the answer cannot be read");
	e->revision = MAX(e->revision, val_int(a->v, header, revision));
	return 0;
}

struct store_kv etcd_kv(struct arena *a, struct val kv, bool with_value)
{
	return (struct store_kv){
		.key = a ? arena_str(a, val_str(kv, key)) : STR_NONE,
		.value = with_value ? store_value_new(val_str(kv, value)) : NULL,
		.create_revision = val_int(kv, createRevision),
		.mod_revision = val_int(kv, modRevision),
		.version = val_int(kv, version),
	};
}

/* ---- versions ---- */

/* "3.4.31-pre" as 3, 4, 31; what is missing is 0. */
static void version_parse(str text, int64_t ret[3])
{
	for (unsigned i = 0; i < 3; i++) {
		size_t n = 0;
		while (n < text.n && text.p[n] >= '0' && text.p[n] <= '9')
			n++;
		if (!str_to_i64(str_head(text, n), &ret[i]))
			ret[i] = 0;
		text = str_skip(text, n + 1);
	}
}

/* The versions that Kubernetes asks for too: before them such an answer overtakes events that are still to be sent. */
static bool version_orders_progress(str text)
{
	int64_t v[3];

	version_parse(text, v);
	if (v[0] != 3)
		return v[0] > 3;
	return v[1] > 5 || (v[1] == 5 && v[2] >= 13) || (v[1] == 4 && v[2] >= 31);
}

int etcd_progress_ordered(struct etcd *e, uint64_t generation, bool *ret_ordered, struct err *err)
{
	if (e->asked_generation != generation) {
		CLEANUP(etcd_answer_done) struct etcd_answer a = ETCD_ANSWER_INIT;
		int r = etcd_call(e, &rpc_Maintenance_Status, ETCD_READ, VAL_EMPTY_OBJECT, &a, err);
		if (r < 0)
			return r;
		/* Another member may have answered, of another version. */
		bool same = grpc_channel_generation(e->channel) == generation;
		*ret_ordered = same && version_orders_progress(val_str(a.v, version));
		if (!same)
			return 0;
		e->asked_generation = generation;
		e->progress_ordered = *ret_ordered;
	}
	*ret_ordered = e->progress_ordered;
	return 0;
}
