/* The store: images by import, manifests of all kinds, and a process that is killed at any moment. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fiber_test.h"
#include "base/file.h"
#include "base/log.h"
#include "base/random.h"
#include "runtime/image_priv.h"
#include "runtime/tar.h"

enum { TARS = 4 };

struct world {
	struct arena arena;
	const char *folder, *root;
	struct images *images;
	size_t seen;            /* images that were found after kills */
};

static const char *tar_of(struct world *w, int i) { return arena_printf(&w->arena, "%s/%d.tar", w->folder, i).p; }

/* One file, of its own content. */
static void make_tar(struct world *w, int i)
{
	char content[2048];
	static const char end[2 * TAR_BLOCK];
	struct tar_header h;
	CLEANUP(buf_done) struct buf tar = BUF_INIT(1 << 20);
	memset(content, 'a' + i, sizeof(content));
	CHECK_INT(tar_header(&h, "file", sizeof(content), NULL), 0);
	buf_add(&tar, str_span((const char *)&h, sizeof(h)));
	buf_add(&tar, str_span(content, sizeof(content)));
	buf_add(&tar, str_span(end, sizeof(end)));
	CHECK_INT(file_write(tar_of(w, i), buf_str(&tar), 0600, NULL), 0);
}

static void world_init(struct world *w)
{
	*w = (struct world){ 0 };
	w->folder = arena_str(&w->arena, STR("/tmp/c8s-image-XXXXXX")).p;
	CHECK(mkdtemp((char *)w->folder));
	w->root = arena_printf(&w->arena, "%s/store", w->folder).p;
	for (int i = 0; i < TARS; i++)
		make_tar(w, i);
}

static void remove_all(const char *path)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct dirent *e;
	DIR *d = opendir(path);
	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			remove_all(arena_printf(&a, "%s/%s", path, e->d_name).p);
	if (d)
		closedir(d);
	(void)(d ? rmdir(path) : unlink(path));
}

static void world_done(struct world *w)
{
	remove_all(w->folder);
	arena_done(&w->arena);
}

static void open_images(struct world *w)
{
	struct err err = ERR_INIT;
	if (images_open(&(struct images_options){ .root = w->root }, &w->images, &err) < 0)
		fail_msg("%s", err.msg);
}

static size_t count_files(struct world *w, const char *sub)
{
	struct dirent *e;
	size_t n = 0;
	DIR *d = opendir(arena_printf(&w->arena, "%s/%s", w->root, sub).p);
	while (d && (e = readdir(d)))
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static int import(struct world *w, int tar, const char *name, struct err *err)
{
	struct image_ref ref;
	str id;
	int r = image_ref_parse(&w->arena, str_of(name), &ref, err);
	return r < 0 ? r : image_import(w->images, tar_of(w, tar), &ref, VAL_EMPTY, &w->arena, &id, err);
}

/* ---- in order ---- */

static int in_order(void *arg)
{
	struct world *w = arg;
	struct image image, again;
	struct image *list;
	struct err err = ERR_INIT;
	uint64_t freed;
	size_t n;
	open_images(w);
	CHECK_INT(import(w, 0, "a", &err), 0);
	CHECK_INT(import(w, 1, "b:2", &err), 0);
	CHECK_INT(image_find(w->images, STR("docker.io/library/a:latest"), &w->arena, &image, &err), 0);
	CHECK(image.n_tags == 1 && image.n_layers == 1 && image.n_digests == 0 && !image.pinned);
	CHECK_INT(image_find(w->images, image.id, &w->arena, &again, &err), 0);
	CHECK_INT(image_find(w->images, str_head(str_skip(image.id, 7), 12), &w->arena, &again, &err), 0);
	CHECK(str_eq(again.id, image.id));
	CHECK_INT(image_find(w->images, STR(""), &w->arena, &again, &err), -ERR_NOT_FOUND);
	CHECK_INT(image_find(w->images, STR("sha256:"), &w->arena, &again, &err), -ERR_NOT_FOUND);
	CHECK_INT(image_pin(w->images, STR("a"), true, &err), 0);
	CHECK_INT(image_pin(w->images, STR("nobody"), true, &err), -ERR_NOT_FOUND);
	images_free(w->images);
	open_images(w);
	CHECK_INT(image_list(w->images, &w->arena, &list, &n, &err), 0);
	CHECK(n == 2 && list[0].pinned && !list[1].pinned);
	CHECK_INT(image_remove(w->images, STR("b:2"), &err), 0);
	CHECK_INT(image_remove(w->images, STR("b:2"), &err), -ERR_NOT_FOUND);
	CHECK_STR(err_str(&err), "image \"b:2\": not found");
	CHECK_INT(count_files(w, "blobs/sha256"), 6);
	CHECK_INT(images_collect(w->images, &freed, &err), 0);
	CHECK_INT(count_files(w, "blobs/sha256"), 3);
	CHECK(freed > 2048);
	/* The image that a name is taken from stays. */
	CHECK_INT(import(w, 2, "a", &err), 0);
	CHECK_INT(image_find(w->images, image.id, &w->arena, &again, &err), 0);
	CHECK(again.n_tags == 0 && again.pinned);
	images_free(w->images);
	return 0;
}

TEST(image_store_in_order)
{
	struct world w;
	world_init(&w);
	run_loop(in_order, &w);
	world_done(&w);
}

static int damaged(void *arg)
{
	struct world *w = arg;
	struct images *m = NULL;
	struct err err = ERR_INIT;
	struct image image;
	struct image *list;
	size_t n;
	open_images(w);
	CHECK_INT(import(w, 0, "a", &err), 0);
	CHECK_INT(image_find(w->images, STR("a"), &w->arena, &image, &err), 0);
	unlink(image_blob_path(w->images, &w->arena, image.id));
	log_set_level(LOG_LEVEL_OFF);
	CHECK_INT(image_find(w->images, STR("a"), &w->arena, &image, &err), -ERR_INTERNAL);
	CHECK(image_list(w->images, &w->arena, &list, &n, &err) == 0 && n == 0);
	log_set_level(LOG_LEVEL_INFO);
	CHECK_INT(image_remove(w->images, STR("a"), &err), 0);
	images_free(w->images);
	CHECK_INT(file_write(arena_printf(&w->arena, "%s/images.json", w->root).p, STR("{\"images\": [{"), 0600, &err), 0);
	CHECK(images_open(&(struct images_options){ .root = w->root }, &m, &err) < 0);
	CHECK(str_find(err_str(&err), STR("images.json: it is damaged")) >= 0);
	return 0;
}

TEST(image_store_damaged)
{
	struct world w;
	world_init(&w);
	run_loop(damaged, &w);
	world_done(&w);
}

/* ---- killed ---- */

static int churn(void *arg)
{
	struct world *w = arg;
	open_images(w);
	while (fiber_check(NULL) == 0) {
		const char *name = arena_printf(&w->arena, "x:%d", (int)random_below(TARS)).p;
		switch (random_below(4)) {
		case 0: (void)image_remove(w->images, str_of(name), NULL); break;
		case 1: (void)images_collect(w->images, NULL, NULL); break;
		default: (void)import(w, (int)random_below(TARS), name, NULL);
		}
	}
	return 0;
}

static bool blob_is_right(struct world *w, str digest)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	char hex[SHA256_HEX + 1];
	if (image_blob_read(w->root, digest, &b, NULL) < 0)
		return false;
	sha256_hex(buf_str(&b), hex);
	return str_eq(str_of(hex), str_skip(digest, 7));
}

/* Everything that is visible is whole; what a collection leaves is needed. */
static int check_whole(void *arg)
{
	struct world *w = arg;
	struct image *list;
	size_t n;
	open_images(w);
	CHECK_INT(count_files(w, "leases"), 0);
	CHECK_INT(count_files(w, "ingest"), 0);
	CHECK_INT(image_list(w->images, &w->arena, &list, &n, NULL), 0);
	CHECK_INT(n, w->images->index.n);
	w->seen += n;
	for (size_t i = 0; i < n; i++) {
		CHECK(blob_is_right(w, list[i].id));
		CHECK(blob_is_right(w, list[i].manifest_digest));
		for (size_t k = 0; k < list[i].n_layers; k++)
			CHECK(blob_is_right(w, list[i].layers[k]));
	}
	CHECK_INT(images_collect(w->images, NULL, NULL), 0);
	CHECK(count_files(w, "blobs/sha256") <= 3 * n);
	CHECK(!n == !count_files(w, "blobs/sha256"));
	CHECK_INT(count_files(w, "trash"), 0);
	images_free(w->images);
	return 0;
}

TEST(image_store_killed_at_any_moment)
{
	struct world w;
	world_init(&w);
	for (int i = 0; i < 25; i++) {
		pid_t child = fork();
		CHECK(child >= 0);
		if (child == 0)
			_exit(run_loop(churn, &w));
		usleep((useconds_t)(2000 + random_below(40000)));
		kill(child, SIGKILL);
		CHECK(waitpid(child, NULL, 0) == child);
		run_loop(check_whole, &w);
	}
	CHECK(w.seen > 0);
	world_done(&w);
}

/* ---- manifests ---- */

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define DESCRIPTOR "{\"digest\":\"sha256:" HEX "\",\"size\":1}"

TEST(image_manifests)
{
	static const struct {
		const char *text, *media_type, *message;
	} t[] = {
		{ "{\"schemaVersion\":2,\"config\":" DESCRIPTOR ",\"layers\":[" DESCRIPTOR "]}", "", NULL },
		{ "{\"schemaVersion\":2,\"config\":" DESCRIPTOR ",\"layers\":[" DESCRIPTOR "]}", MEDIA_DOCKER_MANIFEST, NULL },
		{ "{\"manifests\":[" DESCRIPTOR "]}", "", NULL },
		{ "{\"schemaVersion\":1,\"fsLayers\":[]}", "", "media type \"application/vnd.docker.distribution.manifest.v1+prettyjws\" is no longer supported" },
		{ "{}", "application/vnd.docker.distribution.manifest.v1+prettyjws", "is no longer supported" },
		{ "{\"manifests\":[],\"config\":" DESCRIPTOR ",\"layers\":[]}", "", "neither of an image nor an index" },
		{ "{}", "text/html", "neither of an image nor an index (media type \"text/html\")" },
		{ "[]", "", "the manifest is not an object" },
		{ "<html>", "", "the manifest is not JSON" },
		{ "{\"manifests\":[]}", "", "no match for platform in manifest: not found" },
		{ "{\"manifests\":[{\"platform\":{\"os\":\"plan9\"}}]}", "", "no match for platform in manifest: not found" },
		{ "{\"config\":{\"digest\":\"sha512:" HEX HEX "\"},\"layers\":[]}", "", "only sha256 is supported" },
		{ "{\"config\":{\"digest\":\"sha256:../../../etc/passwd\"},\"layers\":[]}", "", "invalid digest" },
		{ "{\"config\":{\"digest\":\"sha256:" HEX "\",\"size\":-1},\"layers\":[]}", "", "negative size" },
		{ "{\"config\":{\"digest\":\"sha256:" HEX "\",\"size\":99999999999},\"layers\":[]}", "", "the configuration of the image has more" },
		{ "{\"config\":" DESCRIPTOR ",\"layers\":[]}", MEDIA_OCI_INDEX, "not what its media type says" },
		{ "{\"manifests\":[" DESCRIPTOR "],\"mediaType\":\"" MEDIA_OCI_MANIFEST "\"}", "", "not what its media type says" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct image_manifest m;
		struct err err = ERR_INIT;
		int r = image_manifest_parse(&a, str_of(t[i].text), str_of(t[i].media_type), &m, &err);
		if (t[i].message ? r == 0 || str_find(err_str(&err), str_of(t[i].message)) < 0 : r < 0)
			fail_msg("row %zu: %s", i, r < 0 ? err.msg : "no error");
	}
}

TEST(image_platforms)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);
	static const char *const variants[] = { "v9", "other", "v1", "" };
	str arch = image_architecture();
	struct image_manifest m;
	buf_addf(&b, "{\"manifests\":[" DESCRIPTOR);
	for (size_t i = 0; i < ARRAY_LEN(variants); i++)
		buf_addf(&b, ",{\"digest\":\"sha256:%zx%.63s\",\"size\":1,\"platform\":{\"os\":\"linux\",\"architecture\":\"" STR_FMT
			 "\",\"variant\":\"%s\"}}", i, HEX, STR_ARG(arch), variants[i]);
	buf_addf(&b, "]}");
	CHECK_INT(image_manifest_parse(&a, buf_str(&b), STR_NONE, &m, NULL), 0);
	CHECK(m.index && m.child.digest.p[7] == '3'); /* the plain one, though it comes last */
}
