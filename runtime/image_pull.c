/*
 * Pulling: the name becomes a digest (HEAD), the digest a manifest, of which the configuration and the layers that are not there yet
 * are fetched by a few fibers at a time. Hashing and writing are done in the thread pool. A lease keeps everything from being
 * collected until the image has its name.
 */
#include <errno.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fiber.h"
#include "base/fiber_io.h"
#include "base/mem.h"
#include "codec/json.h"
#include "runtime/image_registry.h"

enum {
	PARALLEL = 3,               /* as Docker */
	TRIES = 5,                  /* of a blob, without a byte of progress between them */
	PAUSE_MS = 200,
	STALL_MS = 60000,           /* without a byte */
	OTHERS_MS = 50,             /* how often to look whether somebody else has finished the same blob */
};

#define ACCEPT MEDIA_DOCKER_MANIFEST ", " MEDIA_DOCKER_LIST ", " MEDIA_OCI_MANIFEST ", " MEDIA_OCI_INDEX ", */*"

struct pull {
	struct images *images;
	const char *root;
	const struct image_ref *ref;
	const struct image_progress *progress;
	struct registry *registry;
	struct arena *arena;        /* of the registry: as long as the pull */
	struct image_lease lease;
	/* The fibers that fetch take from here. */
	struct descriptor *todo;
	size_t n_todo, next;
	int failed;
	struct err err;
};

static void tell(const struct pull *p, const struct descriptor *d, uint64_t done, const char *state)
{
	if (p->progress && p->progress->layer)
		p->progress->layer(p->progress->arg, d->digest, done, (uint64_t)d->size, state);
}

/* ---- the name ---- */

/* (suspends) 0 with the digest that the host says, empty when it does not. */
static int ask_digest(struct pull *p, struct registry_host *h, str object, str *ret, struct err *err)
{
	CLEANUP(http_call_freep) struct http_call *call = NULL;
	const struct http1_head *head;
	struct registry_request q = { .method = STR("HEAD"), .suffix = arena_join(p->arena, STR("manifests/"), object), .accept = STR(ACCEPT) };
	int r = registry_send(p->registry, h, &q, &call, &head, err);
	if (r < 0)
		return r;
	if (head->status == 404)
		return err_set(err, ERR_NOT_FOUND, STR_FMT ": not found", STR_ARG(p->ref->text));
	if (head->status != 200)
		return registry_refuse(p->registry, h, &q, call, head, err);
	*ret = arena_str(p->arena, http_header_find(head->headers, head->n_headers, STR("docker-content-digest")));
	return 0;
}

/* (suspends) A manifest by tag or digest, as blob; its digest, text and media type. */
static int fetch_manifest_from(struct pull *p, struct registry_host *h, str object, str *ret_digest, str *ret_text, str *ret_media,
			       struct err *err)
{
	CLEANUP(http_call_freep) struct http_call *call = NULL;
	const struct http1_head *head;
	struct registry_request q = { .method = STR("GET"), .suffix = arena_join(p->arena, STR("manifests/"), object), .accept = STR(ACCEPT) };
	char digest[DIGEST_TEXT + 1] = "sha256:";
	str body;
	int r = registry_send(p->registry, h, &q, &call, &head, err);
	if (r < 0)
		return r;
	if (head->status == 404)
		return err_set(err, ERR_NOT_FOUND, STR_FMT ": not found", STR_ARG(p->ref->text));
	if (head->status != 200)
		return registry_refuse(p->registry, h, &q, call, head, err);
	if ((r = http_call_read_all(call, IMAGE_MANIFEST_MAX, &body, err)) < 0)
		return err_wrap(err, r, "failed to copy");
	sha256_hex(body, digest + 7);
	if (digest_is_valid(object) && !str_eq(str_of(digest), object))
		return err_set(err, ERR_INVALID, "failed commit on ref \"manifest-" STR_FMT "\": unexpected commit digest %s, expected " STR_FMT
			       ": failed precondition", STR_ARG(object), digest, STR_ARG(object));
	if ((r = image_blob_write(p->root, &p->lease, body, digest, err)) < 0)
		return r;
	*ret_digest = arena_str(p->arena, str_of(digest));
	*ret_text = arena_str(p->arena, body);
	*ret_media = arena_str(p->arena, http_header_find(head->headers, head->n_headers, STR("content-type")));
	return 0;
}

/* Which of two failures says more: that something is not there is more than that nobody answered; a refusal more than both. */
static int weight(int r) { return r == -ERR_UNAVAILABLE || r == -ERR_TIMEOUT || r == -ERR_SYSTEM ? 1 : r == -ERR_NOT_FOUND ? 2 : 3; }

static void keep_worse(int *kept, struct err *kept_err, int r, const struct err *err)
{
	if (*kept == 0 || weight(r) > weight(*kept)) {
		*kept = r;
		*kept_err = *err;
	}
}

/* (suspends) Asks the hosts in turn what the name is. */
static int resolve(struct pull *p, str *ret_digest, struct err *err)
{
	str object = p->ref->digest.n ? p->ref->digest : p->ref->tag, text, media;
	struct registry_host *h;
	int kept = 0;
	for (size_t i = 0; (h = registry_host(p->registry, i)); i++) {
		struct err why = ERR_INIT;
		if (!h->pull || (!h->resolve && !p->ref->digest.n))
			continue;
		int r = ask_digest(p, h, object, ret_digest, &why);
		if (r == 0 && p->ref->digest.n)
			*ret_digest = p->ref->digest;
		else if (r == 0 && !digest_is_valid(*ret_digest))
			r = fetch_manifest_from(p, h, object, ret_digest, &text, &media, &why);
		if (r == 0)
			return 0;
		if (r == -ERR_CANCELED) {
			*err = why;
			return r;
		}
		keep_worse(&kept, err, r, &why);
	}
	return kept ? kept : err_set(err, ERR_NOT_FOUND, "no resolve hosts: not found");
}

/* (suspends) From the store or from a host. */
static int get_manifest(struct pull *p, str digest, str *ret_text, str *ret_media, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(IMAGE_MANIFEST_MAX);
	struct registry_host *h;
	str same;
	int kept = 0;
	if (image_blob_have(p->root, &p->lease, digest, -1) && image_blob_read(p->root, digest, &b, NULL) == 0) {
		*ret_text = arena_str(p->arena, buf_str(&b));
		*ret_media = STR_NONE;
		return 0;
	}
	for (size_t i = 0; (h = registry_host(p->registry, i)); i++) {
		struct err why = ERR_INIT;
		int r = h->pull ? fetch_manifest_from(p, h, digest, &same, ret_text, ret_media, &why) : -ERR_NOT_FOUND;
		if (r == 0)
			return 0;
		if (h->pull)
			keep_worse(&kept, err, r, &why);
		if (r == -ERR_CANCELED)
			break;
	}
	return kept ? kept : err_set(err, ERR_NOT_FOUND, "no pull hosts: not found");
}

/* ---- blobs ---- */

struct block {
	struct image_ingest *ingest;
	struct image_lease *lease;
	const char *root;
	str digest, data;
	char committed[DIGEST_TEXT + 1];
};

static int begin_block(void *arg, struct err *err)
{
	struct block *b = arg;
	return image_ingest_open(b->root, b->digest, b->ingest, err);
}

static int write_block(void *arg, struct err *err)
{
	struct block *b = arg;
	return image_ingest_add(b->ingest, b->data, err);
}

static int commit_block(void *arg, struct err *err)
{
	struct block *b = arg;
	return image_ingest_commit(b->ingest, b->lease, b->digest, b->committed, err);
}

/* (suspends) Fills a block; less than that is the end. */
static ssize_t read_block(struct http_call *call, char *block, struct err *err)
{
	size_t n = 0;
	while (n < IMAGE_BLOCK) {
		DEADLINE_SCOPE(STALL_MS);
		ssize_t got = http_call_read(call, block + n, IMAGE_BLOCK - n, err);
		if (got < 0)
			return n ? (ssize_t)n : got; /* what came is worth keeping; the next read fails again */
		if (got == 0)
			break;
		n += (size_t)got;
	}
	return (ssize_t)n;
}

static int too_long(const struct descriptor *d, uint64_t size, struct err *err)
{
	return err_set(err, ERR_INVALID, "failed commit on ref \"layer-" STR_FMT "\": failed size validation: %llu != %lld: failed precondition",
		       STR_ARG(d->digest), (unsigned long long)size, (long long)d->size);
}

/* (suspends) The body of an answer into the file. */
static int copy_body(struct pull *p, const struct descriptor *d, struct http_call *call, struct image_ingest *g, struct err *err)
{
	CLEANUP(mem_freep) char *block = mem_alloc(IMAGE_BLOCK);
	for (;;) {
		ssize_t n = read_block(call, block, err);
		if (n <= 0)
			return (int)n;
		if (g->size + (uint64_t)n > (uint64_t)d->size)
			return too_long(d, g->size + (uint64_t)n, err);
		struct block b = { .ingest = g, .data = str_span(block, (size_t)n) };
		int r = fiber_blocking(write_block, &b, err);
		if (r < 0)
			return r;
		tell(p, d, g->size, "downloading");
	}
}

/* "bytes 100-199/200": whether it begins where it should. */
static bool range_begins(const struct http1_head *head, uint64_t at)
{
	str text = http_header_find(head->headers, head->n_headers, STR("content-range")), unit, from, rest;
	int64_t n;
	return str_cut(text, ' ', &unit, &rest) && str_cut(rest, '-', &from, &rest) && str_to_i64(from, &n) && (uint64_t)n == at;
}

/* (suspends) One try at one host, from where the file ends. */
static int fetch_from(struct pull *p, struct registry_host *h, const struct descriptor *d, struct image_ingest *g, struct err *err)
{
	CLEANUP(http_call_freep) struct http_call *call = NULL;
	const struct http1_head *head;
	struct registry_request q = { .method = STR("GET"), .suffix = arena_join(p->arena, STR("blobs/"), d->digest) };
	if (g->size)
		q.range = arena_printf(p->arena, "bytes=%llu-", (unsigned long long)g->size);
	int r = registry_send(p->registry, h, &q, &call, &head, err);
	if (r < 0)
		return r;
	if (head->status == 404)
		return err_set(err, ERR_NOT_FOUND, "content at " STR_FMT "/" STR_FMT " not found: not found", STR_ARG(h->authority),
			       STR_ARG(q.suffix));
	bool continued = head->status == 206 && range_begins(head, g->size);
	/* A server that cannot continue begins anew. */
	if (!continued && g->size && (head->status == 200 || head->status == 206 || head->status == 416)) {
		if ((r = image_ingest_restart(g, err)) < 0)
			return r;
		if (head->status != 200)
			return err_set(err, ERR_UNAVAILABLE, "the server cannot continue the download");
	} else if (head->status != 200 && !continued) {
		return registry_refuse(p->registry, h, &q, call, head, err);
	}
	return copy_body(p, d, call, g, err);
}

/* A new try may help. */
static bool is_passing(int r)
{
	return (r == -ERR_UNAVAILABLE || r == -ERR_GONE || r == -ERR_TIMEOUT || r == -ERR_BAD_REQUEST || r == -ERR_SYSTEM) && fiber_check(NULL) == 0;
}

/* (suspends) */
static int fetch_into(struct pull *p, const struct descriptor *d, struct image_ingest *g, struct err *err)
{
	struct registry_host *h;
	int kept = 0;
	for (size_t i = 0; (h = registry_host(p->registry, i)); i++) {
		if (!h->pull)
			continue;
		for (unsigned tries = 0; tries < TRIES; tries++) {
			uint64_t before = g->size;
			struct err why = ERR_INIT;
			int r = fetch_from(p, h, d, g, &why);
			if (g->size == (uint64_t)d->size)
				return 0;
			if (r == 0)
				r = too_long(d, g->size, &why);
			keep_worse(&kept, err, r, &why);
			if (r == -ERR_CANCELED)
				return r;
			if (r == -ERR_INVALID)
				(void)image_ingest_restart(g, NULL);
			if (g->size > before)
				tries = 0;
			/* a mirror that refuses connections is not there; there is more hope in the next one */
			bool gone = why.sys == ECONNREFUSED && registry_host(p->registry, i + 1);
			if ((!is_passing(r) || gone) && g->size <= before)
				break;
			if ((r = fiber_sleep_ms(PAUSE_MS << MIN(tries, 4u), err)) < 0)
				return r;
		}
	}
	return kept ? kept : err_set(err, ERR_NOT_FOUND, "no pull hosts: not found");
}

/* (suspends) 1: begun; 0: it is there. */
static int begin(struct pull *p, const struct descriptor *d, struct image_ingest *g, struct err *err)
{
	for (;;) {
		if (image_blob_have(p->root, &p->lease, d->digest, d->size))
			return 0;
		int r = fiber_blocking(begin_block, &(struct block){ .root = p->root, .ingest = g, .digest = d->digest }, err);
		if (r != 0)
			return r;
		tell(p, d, 0, "waiting");
		if ((r = fiber_sleep_ms(OTHERS_MS, err)) < 0)
			return r;
	}
}

/* A manifest may say any size, and a server send that much: the disk keeps some room, as when a layer is unpacked. */
static int check_room(const struct image_ingest *g, const struct descriptor *d, struct err *err)
{
	struct statvfs fs;
	if (fstatvfs(g->fd, &fs) < 0)
		return err_sys(err, errno, "statvfs");
	uint64_t room = (uint64_t)fs.f_bavail * fs.f_frsize, all = (uint64_t)fs.f_blocks * fs.f_frsize;
	uint64_t keep = MIN((uint64_t)512 << 20, all / 20), more = (uint64_t)d->size - g->size;
	if (room < keep || room - keep < more)
		return err_sys(err, ENOSPC, "content " STR_FMT " of %lld bytes", STR_ARG(d->digest), (long long)d->size);
	return 0;
}

/* (suspends) */
static int fetch_blob(struct pull *p, const struct descriptor *d, struct err *err)
{
	struct image_ingest g = { .fd = -1 };
	tell(p, d, 0, "waiting");
	int r = begin(p, d, &g, err);
	if (r == 0)
		tell(p, d, (uint64_t)d->size, "exists");
	if (r <= 0)
		return r;
	r = 0;
	if (g.size > (uint64_t)d->size)
		r = image_ingest_restart(&g, err);
	if (r == 0 && g.size)
		tell(p, d, g.size, "resuming");
	if (r == 0)
		r = check_room(&g, d, err);
	if (r == 0 && g.size != (uint64_t)d->size)
		r = fetch_into(p, d, &g, err);
	if (r == 0) {
		tell(p, d, g.size, "verifying");
		r = fiber_blocking(commit_block, &(struct block){ .ingest = &g, .lease = &p->lease, .digest = d->digest }, err);
		if (r < 0)
			(void)err_wrap(err, r, "failed commit on ref \"layer-" STR_FMT "\"", STR_ARG(d->digest));
	}
	/* What a server sent wrong is of no use; what is only not complete is, unless it fills the disk for a day. */
	image_ingest_done(&g, r != -ERR_INVALID && r != -ERR_NOT_FOUND && !(r < 0 && err->sys == ENOSPC));
	if (r == 0)
		tell(p, d, (uint64_t)d->size, "done");
	return r;
}

static int fetch_some(void *arg)
{
	struct pull *p = arg;
	while (p->failed == 0 && p->next < p->n_todo) {
		struct err err = ERR_INIT;
		int r = fetch_blob(p, &p->todo[p->next++], &err);
		if (r < 0 && p->failed == 0) {
			p->failed = r;
			p->err = err;
		}
	}
	return 0;
}

/* (suspends) */
static int fetch_all(struct pull *p, const struct image_manifest *m, struct err *err)
{
	CLEANUP(fiber_group_done) struct fiber_group group;
	fiber_group_init(&group);
	p->todo = ARENA_ARRAY(p->arena, struct descriptor, m->n_layers + 1);
	p->todo[p->n_todo++] = m->config;
	for (size_t i = 0; i < m->n_layers; i++) {
		bool twice = false;
		for (size_t k = 0; k < p->n_todo; k++)
			twice |= str_eq(p->todo[k].digest, m->layers[i].digest);
		if (!twice)
			p->todo[p->n_todo++] = m->layers[i];
	}
	for (size_t i = 0; i < MIN((size_t)PARALLEL, p->n_todo); i++) {
		int r = fiber_group_spawn(&group, fetch_some, p, err, "pull");
		if (r < 0)
			return r;
	}
	int r = fiber_group_wait(&group, err);
	if (r == 0 && p->failed) {
		*err = p->err;
		r = p->failed;
	}
	return r;
}

/* ---- the image ---- */

static int check_config(struct pull *p, const struct image_manifest *m, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(IMAGE_CONFIG_MAX);
	const str *ids;
	struct val config;
	int r = image_blob_read(p->root, m->config.digest, &b, err);
	if (r < 0 || (r = json_decode(p->arena, buf_str(&b), &(struct json_decode_options){ 0 }, &config, err)) < 0)
		return r;
	return image_diff_ids(p->arena, config, m->n_layers, &ids, err);
}

static int pull(struct pull *p, str *ret_id, struct err *err)
{
	struct image_manifest m;
	str target, digest, text, media;
	int r = resolve(p, &target, err);
	if (r < 0)
		return err_wrap(err, r, "failed to resolve reference \"" STR_FMT "\"", STR_ARG(p->ref->text));
	if (!digest_is_valid(target))
		return err_set(err, ERR_INVALID, "unsupported digest algorithm: " STR_FMT, STR_ARG(str_head(target, 100)));
	digest = target;
	for (int depth = 0;; depth++) {
		if ((r = get_manifest(p, digest, &text, &media, err)) < 0 || (r = image_manifest_parse(p->arena, text, media, &m, err)) < 0)
			return r;
		if (!m.index)
			break;
		if (depth == IMAGE_INDEX_DEPTH)
			return err_set(err, ERR_INVALID, "the index names indexes more than %d deep", IMAGE_INDEX_DEPTH);
		digest = m.child.digest;
	}
	if ((r = fetch_all(p, &m, err)) < 0 || (r = check_config(p, &m, err)) < 0)
		return r;
	str name = arena_printf(p->arena, STR_FMT "/" STR_FMT "@" STR_FMT, STR_ARG(p->ref->domain), STR_ARG(p->ref->path), STR_ARG(target));
	struct image_names names = { .tags = &p->ref->text, .n_tags = p->ref->digest.n ? 0 : 1, .digests = &name, .n_digests = 1 };
	*ret_id = m.config.digest;
	return image_commit(p->images, m.config.digest, digest, &names, err);
}

int image_pull(struct images *m, const struct image_ref *ref, const struct image_auth *auth, const struct image_progress *progress,
	       struct arena *a, str *ret_id, struct err *err)
{
	CLEANUP(registry_freep) struct registry *registry = NULL;
	struct err own = ERR_INIT;
	str id;
	if (!err)
		err = &own;
	int r = registry_open(m, ref, auth, false, &registry, err);
	if (r < 0)
		return err_wrap(err, r, "failed to pull and unpack image \"" STR_FMT "\"", STR_ARG(ref->text));
	struct pull p = { .images = m, .root = m->root, .ref = ref, .progress = progress, .registry = registry,
			  .arena = registry_arena(registry), .lease = { .fd = -1 } };
	if ((r = image_lease_open(m->root, &p.lease, err)) == 0)
		r = pull(&p, &id, err);
	image_lease_done(&p.lease);
	if (r < 0)
		return err_wrap(err, r, "failed to pull and unpack image \"" STR_FMT "\"", STR_ARG(ref->text));
	*ret_id = arena_str(a, id);
	return 0;
}
