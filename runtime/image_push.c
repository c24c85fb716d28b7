/*
 * Pushing: blobs that the repository does not have yet, one after the other, then the manifest that names them. What the registry has
 * in another repository, where the image came from or went to before, it is asked to take over without its being sent.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fiber.h"
#include "base/fiber_io.h"
#include "base/file.h"
#include "base/mem.h"
#include "net/url.h"
#include "runtime/image_registry.h"

enum { UPLOAD_TRIES = 3, PAUSE_MS = 250 };

struct push {
	const char *root;
	struct registry *registry;
	struct registry_host *host;
	struct arena *arena;
	const struct image_progress *progress;
	str source;                 /* a repository of the same registry that has the image; empty: none is known */
};

static void tell(const struct push *p, const struct descriptor *d, uint64_t done, const char *state)
{
	if (p->progress && p->progress->layer)
		p->progress->layer(p->progress->arg, d->digest, done, (uint64_t)d->size, state);
}

/* (suspends) */
static int blob_is_there(struct push *p, const struct descriptor *d, bool *ret, struct err *err)
{
	CLEANUP(http_call_freep) struct http_call *call = NULL;
	const struct http1_head *head;
	struct registry_request q = { .method = STR("HEAD"), .suffix = arena_join(p->arena, STR("blobs/"), d->digest) };
	int r = registry_send(p->registry, p->host, &q, &call, &head, err);
	if (r < 0)
		return r;
	if (head->status != 200 && head->status != 404)
		return registry_refuse(p->registry, p->host, &q, call, head, err);
	*ret = head->status == 200;
	return 0;
}

/* (suspends) 1: the registry has taken it over from p->source. 0: *ret_url is where to upload to; empty: it wants to be asked without. */
static int begin_mount(struct push *p, str digest, str *ret_url, struct err *err)
{
	CLEANUP(http_call_freep) struct http_call *call = NULL;
	CLEANUP(buf_done) struct buf query = BUF_INIT(1 << 16);
	const struct http1_head *head;
	*ret_url = STR_NONE;
	if (!p->source.n)
		return 0;
	url_query_add(&query, STR("mount"), digest);
	url_query_add(&query, STR("from"), p->source);
	struct registry_request q = { .method = STR("POST"), .suffix = arena_join(p->arena, STR("blobs/uploads/?"), buf_str(&query)) };
	int r = registry_send(p->registry, p->host, &q, &call, &head, err);
	/* the right to read there may be missing though that to write here is not */
	if (r == -ERR_UNAUTHORIZED)
		return 0;
	if (r == 0 && head->status == 202)
		*ret_url = arena_str(p->arena, http_header_find(head->headers, head->n_headers, STR("location")));
	return r < 0 ? r : head->status == 201;
}

/* (suspends) Where to upload to. */
static int begin_upload(struct push *p, str *ret_url, struct err *err)
{
	CLEANUP(http_call_freep) struct http_call *call = NULL;
	const struct http1_head *head;
	struct registry_request q = { .method = STR("POST"), .suffix = STR("blobs/uploads/") };
	int r = registry_send(p->registry, p->host, &q, &call, &head, err);
	if (r < 0)
		return r;
	if (head->status != 202)
		return registry_refuse(p->registry, p->host, &q, call, head, err);
	*ret_url = arena_str(p->arena, http_header_find(head->headers, head->n_headers, STR("location")));
	return ret_url->n ? 0 : err_set(err, ERR_UNAVAILABLE, "the registry does not say where to upload to");
}

struct part {
	int fd;
	char *block;
};

static int read_part(void *arg, struct err *err)
{
	struct part *part = arg;
	ssize_t n;
	do
		n = read(part->fd, part->block, IMAGE_BLOCK);
	while (n < 0 && errno == EINTR);
	return n < 0 ? err_sys(err, errno, "read") : (int)n;
}

/* (suspends) */
static int send_file(struct push *p, const struct descriptor *d, struct http_call *call, struct err *err)
{
	const char *path = image_blob_path_in(p->root, p->arena, d->digest);
	CLEANUP(mem_freep) char *block = mem_alloc(IMAGE_BLOCK);
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t done = 0;
	int n, r;
	if (fd < 0)
		return err_sys(err, errno, "%s", path);
	while ((n = fiber_blocking(read_part, &(struct part){ fd, block }, err)) > 0) {
		if ((r = http_call_write(call, str_span(block, (size_t)n), err)) < 0)
			return r;
		done += (uint64_t)n;
		tell(p, d, done, "uploading");
	}
	return n < 0 ? n : http_call_write_end(call, err);
}

/* (suspends) 0, or 1: nothing had to be sent. */
static int upload(struct push *p, const struct descriptor *d, struct err *err)
{
	CLEANUP(http_call_freep) struct http_call *call = NULL;
	CLEANUP(buf_done) struct buf url = BUF_INIT(1 << 16);
	const struct http1_head *head;
	str to;
	int r = begin_mount(p, d->digest, &to, err);
	if (r == 0 && !to.n)
		r = begin_upload(p, &to, err);
	if (r != 0)
		return r;
	buf_addf(&url, STR_FMT "%cdigest=" STR_FMT, STR_ARG(to), str_chr(to, '?') < 0 ? '?' : '&', STR_ARG(d->digest));
	struct registry_request q = { .method = STR("PUT"), .url = arena_str(p->arena, buf_str(&url)), .streamed = true, .content_length = d->size,
				      .content_type = STR("application/octet-stream") };
	if ((r = registry_send(p->registry, p->host, &q, &call, &head, err)) < 0)
		return r;
	struct err why = ERR_INIT;
	int sent = send_file(p, d, call, &why);
	/* A server that refused before the end says why. */
	r = http_call_head(call, &head, err);
	if (sent < 0 && (r < 0 || head->status < 300)) {
		*err = why;
		return sent;
	}
	if (r == 0 && head->status != 201)
		r = registry_refuse(p->registry, p->host, &q, call, head, err);
	return r;
}

/* (suspends) */
static int push_blob(struct push *p, const struct descriptor *d, struct err *err)
{
	bool there = false;
	int r;
	tell(p, d, 0, "waiting");
	for (unsigned tries = 1;; tries++) {
		if ((r = blob_is_there(p, d, &there, err)) == 0 && !there)
			r = upload(p, d, err);
		bool passing = r == -ERR_UNAVAILABLE || r == -ERR_GONE || r == -ERR_TIMEOUT;
		if (!passing || tries == UPLOAD_TRIES || fiber_sleep_ms(PAUSE_MS << tries, NULL) < 0)
			break;
	}
	if (r < 0)
		return err_wrap(err, r, "failed to push layer " STR_FMT, STR_ARG(d->digest));
	tell(p, d, (uint64_t)d->size, there ? "exists" : r == 1 ? "mounted" : "done");
	return 0;
}

/* (suspends) */
static int push_manifest(struct push *p, const struct image_ref *to, str text, str media_type, struct err *err)
{
	CLEANUP(http_call_freep) struct http_call *call = NULL;
	const struct http1_head *head;
	struct registry_request q = { .method = STR("PUT"), .suffix = arena_join(p->arena, STR("manifests/"), to->tag.n ? to->tag : to->digest),
				      .content_type = media_type, .body = text };
	int r = registry_send(p->registry, p->host, &q, &call, &head, err);
	if (r < 0)
		return r;
	return head->status == 201 ? 0 : registry_refuse(p->registry, p->host, &q, call, head, err);
}

static int push(struct push *p, const struct image *image, const struct image_ref *to, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(IMAGE_MANIFEST_MAX);
	struct image_manifest m;
	int r = image_blob_read(p->root, image->manifest_digest, &b, err);
	if (r < 0 || (r = image_manifest_parse(p->arena, buf_str(&b), STR_NONE, &m, err)) < 0)
		return r;
	if (to->digest.n && !str_eq(to->digest, image->manifest_digest))
		return err_set(err, ERR_INVALID, "the image is " STR_FMT ", not " STR_FMT, STR_ARG(image->manifest_digest), STR_ARG(to->digest));
	for (size_t i = 0; r == 0 && i < m.n_layers; i++)
		r = push_blob(p, &m.layers[i], err);
	if (r == 0)
		r = push_blob(p, &m.config, err);
	return r < 0 ? r : push_manifest(p, to, buf_str(&b), m.media_type, err);
}

/* Another repository of the registry that has the image, by one of its names. */
static str find_source(struct arena *a, const struct image *image, const struct image_ref *to)
{
	for (size_t i = 0; i < image->n_digests + image->n_tags; i++) {
		struct image_ref ref;
		str name = i < image->n_digests ? image->digests[i] : image->tags[i - image->n_digests];
		if (image_ref_parse(a, name, &ref, NULL) == 0 && str_eq(ref.domain, to->domain) && !str_eq(ref.path, to->path))
			return ref.path;
	}
	return STR_NONE;
}

int image_push(struct images *m, str name, const struct image_ref *to, const struct image_auth *auth,
	       const struct image_progress *progress, struct err *err)
{
	CLEANUP(registry_freep) struct registry *registry = NULL;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct err own = ERR_INIT;
	struct image image;
	if (!err)
		err = &own;
	int r = image_find(m, name, &a, &image, err);
	if (r < 0 || (r = registry_open(m, to, auth, true, &registry, err)) < 0)
		return err_wrap(err, r, "failed to push image \"" STR_FMT "\"", STR_ARG(to->text));
	struct push p = { .root = m->root, .registry = registry, .arena = registry_arena(registry), .progress = progress };
	p.source = find_source(p.arena, &image, to);
	for (size_t i = 0; (p.host = registry_host(registry, i)) && !p.host->push; i++)
		;
	r = p.host ? push(&p, &image, to, err) : err_set(err, ERR_NOT_FOUND, "no push hosts: not found");
	return r < 0 ? err_wrap(err, r, "failed to push image \"" STR_FMT "\"", STR_ARG(to->text)) : 0;
}
