#include "kubelet/images.h"

#include <ftw.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/encoding.h"
#include "base/file.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "codec/types.h"
#include "kubelet/credential_provider.h"
#include "kubelet/cri_testing.h"
#include "kubelet/images_priv.h"

static struct val parse(struct arena *a, const char *json)
{
	struct json_decode_options o = { 0 };
	struct err err = ERR_INIT;
	struct val v;

	if (json_decode(a, str_of(json), &o, &v, &err) < 0)
		fail_msg("%s: %s", json, err.msg);
	return v;
}

/* ---- a runtime with one registry ---- */

struct world {
	struct arena arena;
	struct cri_fake cri;
	struct images_manager *m;
	struct buf events, calls;      /* what was told, and what the runtime was asked */
	bool present;                  /* the image is on the node; its id is "sha256:i" */
	const char *user;              /* who may pull; NULL: all */
	int pull_code;                 /* else this error */
	const char *pull_error;
	int status_code;
	int64_t pull_ms, list_ms;      /* how long these take */
	unsigned pulling, pulling_most;
	struct val images;             /* of ListImages */
	const char *mountpoint;
	char root[64];
	str reason, message, ref, image_user;   /* of the last images_ensure */
	int64_t uid;
	struct err err;
};

static int answer_pull(struct world *w, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	str user = val_str(request, auth, username);

	buf_addf(&w->calls, "pull " STR_FMT " " STR_FMT ":" STR_FMT "\n", STR_ARG(val_str(request, image, image)), STR_ARG(user),
		 STR_ARG(val_str(request, auth, password)));
	w->pulling++;
	w->pulling_most = MAX(w->pulling, w->pulling_most);
	int r = w->pull_ms ? fiber_sleep_ms(w->pull_ms, err) : 0;
	w->pulling--;
	if (r < 0)
		return r;
	if (w->pull_error)
		return err_set(err, (enum err_code)w->pull_code, "%s", w->pull_error);
	if (w->user && !str_eq(user, str_of(w->user)))
		return err_set(err, ERR_INTERNAL, "denied for '" STR_FMT "'", STR_ARG(user));
	w->present = true;
	*ret = OBJECT(a, F(imageRef, VAL_LIT("sha256:i")));
	return 0;
}

static int answer(struct cri_fake *f, const struct rpc *rpc, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	struct world *w = f->arg;

	*ret = VAL_EMPTY_OBJECT;
	if (rpc == &rpc_ImageService_PullImage)
		return answer_pull(w, a, request, ret, err);
	if (rpc == &rpc_ImageService_ImageStatus) {
		if (w->status_code)
			return err_set(err, (enum err_code)w->status_code, "the disk is gone");
		if (w->present)
			*ret = OBJECT(a, F(image, OBJECT(a, F(id, VAL_LIT("sha256:i")), F(size, val_of_int(1234)), F(username, VAL_LIT("nobody")))));
	} else if (rpc == &rpc_ImageService_ListImages) {
		*ret = OBJECT(a, F(images, w->images));
		return w->list_ms ? fiber_sleep_ms(w->list_ms, err) : 0;
	} else if (rpc == &rpc_ImageService_RemoveImage) {
		str id = val_str(request, image, image);
		buf_addf(&w->calls, "remove " STR_FMT "\n", STR_ARG(id));
		struct val_builder left = val_builder(&w->arena);
		VAL_EACH(image, w->images)
			if (!str_eq(val_str(*image, id), id))
				val_add_item(&left, *image);
		w->images = val_end_list(&left);
	} else if (rpc == &rpc_ImageService_ImageFsInfo) {
		*ret = OBJECT(a, F(imageFilesystems, LIST(a, OBJECT(a, F(fsId, OBJECT(a, F(mountpoint, VAL_STR(str_of(w->mountpoint)))))))));
	}
	return 0;
}

static void on_event(struct val pod, str container, bool warning, const char *reason, str message, void *arg)
{
	struct world *w = arg;

	(void)pod, (void)container;
	buf_addf(&w->events, "%s %s " STR_FMT "\n", warning ? "Warning" : "Normal", reason, STR_ARG(message));
}

static struct images_manager_options usual(struct world *w)
{
	return (struct images_manager_options){ .cri = &w->cri.cri, .gc_high_percent = 85, .gc_low_percent = 80, .gc_min_age_s = 120, .event = on_event, .arg = w };
}

static void world_begin(struct world *w)
{
	*w = (struct world){ .cri = CRI_FAKE(answer, w), .events = BUF_INIT(1 << 20), .calls = BUF_INIT(1 << 20) };
	struct images_manager_options o = usual(w);
	w->m = images_manager_new(&o);
}

static int remove_path(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st, (void)kind, (void)ftw;
	return remove(path);
}

static void world_end(struct world *w)
{
	images_manager_free(w->m);
	buf_done(&w->events);
	buf_done(&w->calls);
	arena_done(&w->arena);
	if (w->root[0])
		(void)nftw(w->root, remove_path, 8, FTW_DEPTH | FTW_PHYS);
}

#define POD "{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"uid\":\"u1\"}}"

static int ensure(struct world *w, const char *image, const char *policy, struct val secrets)
{
	str container = arena_printf(&w->arena, "{\"name\":\"c\",\"image\":\"%s\",\"imagePullPolicy\":\"%s\"}", image, policy);

	err_clear(&w->err);
	w->reason = STR_NONE;
	return images_ensure(w->m, &w->arena, parse(&w->arena, POD), parse(&w->arena, container.p), secrets, VAL_EMPTY, &w->ref, &w->image_user, &w->uid,
			     &w->reason, &w->message, &w->err);
}

static void check_events(struct world *w, const char *want)
{
	CHECK_STR(buf_str(&w->events), want);
	buf_reset(&w->events);
}

static void check_calls(struct world *w, const char *want)
{
	CHECK_STR(buf_str(&w->calls), want);
	buf_reset(&w->calls);
}

/* ---- policies and texts ---- */

CLOCK_TEST(images_present_are_not_pulled)
{
	struct world w;

	world_begin(&w);
	w.present = true;
	CHECK_INT(ensure(&w, "nginx", "IfNotPresent", VAL_EMPTY), 0);
	CHECK_STR(w.ref, "sha256:i");
	CHECK_STR(w.image_user, "nobody");
	CHECK_INT(w.uid, -1);
	check_events(&w, "Normal Pulled Container image \"nginx\" already present on machine and can be accessed by the pod\n");
	CHECK_INT(ensure(&w, "nginx", "Never", VAL_EMPTY), 0);
	check_calls(&w, "");
	world_end(&w);
}

CLOCK_TEST(images_are_pulled_as_the_policy_says)
{
	struct world w;

	world_begin(&w);
	w.pull_ms = 1234;
	CHECK_INT(ensure(&w, "nginx", "IfNotPresent", VAL_EMPTY), 0);
	CHECK_STR(w.ref, "sha256:i");
	CHECK_STR(w.image_user, "nobody");
	check_events(&w, "Normal Pulling Pulling image \"nginx\"\n"
			     "Normal Pulled Successfully pulled image \"nginx\" in 1.234s (1.234s including waiting). Image size: 1234 bytes.\n");
	check_calls(&w, "pull nginx:latest :\n");
	CHECK_INT(ensure(&w, "localhost:5000/x@sha256:0000000000000000000000000000000000000000000000000000000000000000", "Always", VAL_EMPTY), 0);
	check_calls(&w, "pull localhost:5000/x@sha256:0000000000000000000000000000000000000000000000000000000000000000 :\n");
	world_end(&w);
}

CLOCK_TEST(images_that_cannot_be_have_reasons)
{
	struct world w;

	world_begin(&w);
	CHECK(ensure(&w, "example.test/none:1", "Never", VAL_EMPTY) < 0);
	CHECK_STR(w.reason, "ErrImageNeverPull");
	CHECK_STR(err_str(&w.err), "Container image \"example.test/none:1\" is not present with pull policy of Never");
	check_events(&w, "Warning ErrImageNeverPull Container image \"example.test/none:1\" is not present with pull policy of Never\n");
	CHECK(ensure(&w, "UPPER/case::x", "Always", VAL_EMPTY) < 0);
	CHECK_STR(w.reason, "InvalidImageName");
	CHECK_STR(err_str(&w.err), "Failed to apply default image tag \"UPPER/case::x\": couldn't parse image name \"UPPER/case::x\": invalid reference format");
	check_events(&w, "Warning InspectFailed Failed to apply default image tag \"UPPER/case::x\": couldn't parse image name \"UPPER/case::x\": invalid "
			 "reference format\n");
	w.status_code = ERR_INTERNAL;
	CHECK(ensure(&w, "nginx", "IfNotPresent", VAL_EMPTY) < 0);
	CHECK_STR(w.reason, "ImageInspectError");
	CHECK_STR(err_str(&w.err), "Failed to inspect image \"\": rpc error: code = Unknown desc = the disk is gone");
	buf_reset(&w.events);
	w.status_code = 0;
	w.pull_code = ERR_INTERNAL;
	w.pull_error = "RegistryUnavailable: come back later";
	CHECK(ensure(&w, "a/b", "Always", VAL_EMPTY) < 0);
	CHECK_STR(w.reason, "RegistryUnavailable");
	CHECK_STR(err_str(&w.err), "image pull failed for a/b because the registry is unavailable: come back later");
	check_events(&w, "Normal Pulling Pulling image \"a/b\"\nWarning Failed Failed to pull image \"a/b\": RegistryUnavailable: come back later\n");
	world_end(&w);
}

CLOCK_TEST(images_that_fail_are_left_alone_for_longer_and_longer)
{
	static const int delays[] = { 10, 20, 40, 80, 160, 300, 300 };
	struct world w;

	world_begin(&w);
	w.pull_code = ERR_NOT_FOUND;
	w.pull_error = "no such image";
	for (size_t i = 0; i < ARRAY_LEN(delays); i++) {
		buf_reset(&w.events);
		CHECK(ensure(&w, "x:1", "IfNotPresent", VAL_EMPTY) < 0);
		CHECK_STR(w.reason, "ErrImagePull");
		CHECK_STR(err_str(&w.err), "rpc error: code = NotFound desc = no such image");
		check_events(&w, "Normal Pulling Pulling image \"x:1\"\nWarning Failed Failed to pull image \"x:1\": rpc error: code = NotFound desc = no such image\n");
		CHECK_INT(images_backoff_until(w.m, STR("u1"), STR("x:1")), clock_wall_ns() + delays[i] * NS_PER_S);
		CHECK_INT(fiber_sleep_ms(delays[i] * 1000 - 1, NULL), 0);
		CHECK(ensure(&w, "x:1", "IfNotPresent", VAL_EMPTY) < 0);
		CHECK_STR(w.reason, "ImagePullBackOff");
		CHECK_STR(err_str(&w.err), "Back-off pulling image \"x:1\": ErrImagePull: rpc error: code = NotFound desc = no such image");
		check_events(&w, "Normal BackOff Back-off pulling image \"x:1\"\n");
		CHECK_INT(fiber_sleep_ms(1, NULL), 0);
	}
	CHECK_INT(images_backoff_until(w.m, STR("u2"), STR("x:1")), 0);
	CHECK_INT(fiber_sleep_ms(600 * 1000, NULL), 0);
	CHECK(ensure(&w, "x:1", "IfNotPresent", VAL_EMPTY) < 0);
	CHECK_INT(images_backoff_until(w.m, STR("u1"), STR("x:1")), clock_wall_ns() + 10 * NS_PER_S);
	world_end(&w);
}

struct puller {
	struct world *w;
	const char *image;
};

static int pull_one(void *arg)
{
	struct puller *p = arg;
	struct world *w = p->w;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str container = arena_printf(&a, "{\"name\":\"c\",\"image\":\"%s\",\"imagePullPolicy\":\"Always\"}", p->image), ref, user, reason, message;
	int64_t uid;

	return images_ensure(w->m, &a, parse(&a, POD), parse(&a, container.p), VAL_EMPTY, VAL_EMPTY, &ref, &user, &uid, &reason, &message, NULL);
}

static unsigned most_at_once(bool parallel, unsigned max, str *ret_last_event)
{
	static const char *const names[] = { "a", "b", "c" };
	struct world w;
	struct puller p[3];
	struct fiber *f[3];

	world_begin(&w);
	images_manager_free(w.m);
	struct images_manager_options o = usual(&w);
	o.parallel = parallel;
	o.parallel_max = max;
	w.m = images_manager_new(&o);
	w.pull_ms = 1000;
	for (size_t i = 0; i < 3; i++) {
		p[i] = (struct puller){ &w, names[i] };
		f[i] = start(pull_one, &p[i]);
	}
	for (size_t i = 0; i < 3; i++)
		CHECK_INT(join(f[i]), 0);
	static char last[200];
	str all = buf_str(&w.events), tail = str_skip(all, (size_t)str_rchr(str_head(all, all.n - 1), '\n') + 1);
	(void)snprintf(last, sizeof(last), STR_FMT, STR_ARG(tail));
	*ret_last_event = str_of(last);
	unsigned most = w.pulling_most;
	world_end(&w);
	return most;
}

CLOCK_TEST(images_are_pulled_in_turn_or_together)
{
	str last;

	CHECK_INT(most_at_once(false, 0, &last), 1);
	CHECK_STR(last, "Normal Pulled Successfully pulled image \"c\" in 1s (3s including waiting). Image size: 1234 bytes.\n");
	CHECK_INT(most_at_once(true, 2, &last), 2);
	CHECK_INT(most_at_once(true, 0, &last), 3);
}

CLOCK_TEST(images_are_not_pulled_too_often)
{
	struct world w;

	world_begin(&w);
	images_manager_free(w.m);
	struct images_manager_options o = usual(&w);
	o.qps = 1;
	o.burst = 1;
	w.m = images_manager_new(&o);
	CHECK_INT(ensure(&w, "a", "Always", VAL_EMPTY), 0);
	CHECK(ensure(&w, "b", "Always", VAL_EMPTY) < 0);
	CHECK_STR(w.reason, "ErrImagePull");
	CHECK_STR(err_str(&w.err), "pull QPS exceeded");
	world_end(&w);
}

/* ---- secrets ---- */

TEST(images_patterns_of_registries)
{
	static const struct {
		const char *pattern, *repository;
		bool want;
	} rows[] = {
		{ "registry.test", "registry.test/a/b", true },
		{ "registry.test", "other.test/a", false },
		{ "*.test", "registry.test/a", true },
		{ "*.test", "a.registry.test/a", false },
		{ "*.*.test", "a.registry.test/a", true },
		{ "r?gistry.test", "registry.test/a", true },
		{ "r*y.te*", "registry.test/a", true },
		{ "r*x.test", "registry.test/a", false },
		{ "*s*r*.test", "registry.test/a", true },
		{ "r[a-f]gistry.t[^x]st", "registry.test/a", true },
		{ "r[^a-f]gistry.test", "registry.test/a", false },
		{ "r[egistry.test", "registry.test/a", false },
		{ "*.*.", "registry.test", false },
		{ "**a**a**a**a**a**a**a**a**a**a**a**b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false },
		{ "registry.test:5000", "registry.test/a", false },
		{ "registry.test:5000", "registry.test:5000/a", true },
		{ "registry.test/team", "registry.test/team/a", true },
		{ "registry.test/team", "registry.test/other", false },
		{ "docker.io/library", "docker.io/library/nginx", true },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		CHECK_ROW(i, image_pattern_matches(str_of(rows[i].pattern), str_of(rows[i].repository)) == rows[i].want);
}

/* A list of one secret of that type. */
static struct val secret(struct world *w, const char *name, const char *type, const char *key, const char *text)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(10000);

	base64_encode_buf(&b, str_of(text));
	str json = arena_printf(&w->arena, "[{\"metadata\":{\"name\":\"%s\",\"namespace\":\"n\",\"uid\":\"uid-%s\"},\"type\":\"%s\",\"data\":{\"%s\":\"" STR_FMT "\"}}]",
				name, name, type, key, STR_ARG(buf_str(&b)));
	return parse(&w->arena, json.p);
}

static struct val docker_secret(struct world *w, const char *name, const char *auths)
{
	return secret(w, name, "kubernetes.io/dockerconfigjson", ".dockerconfigjson", arena_printf(&w->arena, "{\"auths\":%s}", auths).p);
}

CLOCK_TEST(images_secrets_are_tried_the_most_special_first)
{
	struct world w;

	world_begin(&w);
	w.user = "nobody";
	struct val s = docker_secret(&w, "s", "{\"registry.test\":{\"username\":\"host\",\"password\":\"1\"},\"https://registry.test/v2/team\":{\"auth\":\"dGVhbTpwOnE\"},"
					      "\"other.test\":{\"username\":\"x\"}}");
	CHECK(ensure(&w, "registry.test/team/a", "Always", s) < 0);
	check_calls(&w, "pull registry.test/team/a:latest team:p:q\npull registry.test/team/a:latest host:1\n");
	CHECK_STR(err_str(&w.err), "[denied for 'team', denied for 'host']");
	CHECK(ensure(&w, "third.test/a", "Always", s) < 0);
	check_calls(&w, "pull third.test/a:latest :\n");
	w.user = "hub";
	s = secret(&w, "s", "kubernetes.io/dockercfg", ".dockercfg", "{\"https://index.docker.io/v1/\":{\"auth\":\"aHViOnA=\"}}");
	CHECK_INT(ensure(&w, "nginx", "Always", s), 0);
	check_calls(&w, "pull nginx:latest hub:p\n");
	CHECK(ensure(&w, "nginx:2", "Always", docker_secret(&w, "s", "{\"a.test\":{\"auth\":\"!!!!\"}}")) < 0);
	CHECK_STR(err_str(&w.err), "illegal base64 data at input byte 0");
	CHECK(ensure(&w, "nginx:2", "Always", docker_secret(&w, "s", "{\"a.test\":{\"auth\":\"aHVi\"}}")) < 0);
	CHECK_STR(err_str(&w.err), "unable to parse auth field, must be formatted as base64(username:password)");
	world_end(&w);
}

static void check_secrets_count(const char *root, struct world *w)
{
	struct val s = docker_secret(w, "s", "{\"registry.test\":{\"username\":\"me\",\"password\":\"1\"}}");
	struct val copy = docker_secret(w, "copy", "{\"registry.test\":{\"username\":\"me\",\"password\":\"1\"}}");
	struct val changed = docker_secret(w, "s", "{\"registry.test\":{\"username\":\"me\",\"password\":\"2\"}}");
	struct val other = docker_secret(w, "other", "{\"registry.test\":{\"username\":\"you\",\"password\":\"1\"}}");
	struct images_manager_options o = usual(w);

	images_manager_free(w->m);
	o.root = root;
	w->m = images_manager_new(&o);
	w->user = "me";
	CHECK_INT(ensure(w, "registry.test/a:1", "IfNotPresent", s), 0);
	check_calls(w, "pull registry.test/a:1 me:1\n");
	if (root) {
		images_manager_free(w->m);
		w->m = images_manager_new(&o);
	}
	CHECK_INT(ensure(w, "registry.test/a:1", "IfNotPresent", s), 0);
	CHECK_INT(ensure(w, "registry.test/a:2", "Never", copy), 0);
	CHECK_INT(ensure(w, "registry.test/a:1", "IfNotPresent", changed), 0);
	check_calls(w, "");
	CHECK(ensure(w, "registry.test/a:1", "IfNotPresent", other) < 0);
	check_calls(w, "pull registry.test/a:1 you:1\n");
	CHECK(ensure(w, "registry.test/a:1", "Never", VAL_EMPTY) < 0);
	CHECK_STR(w->reason, "ErrImageNeverPull");
	/* One that anybody can pull is for all from then on. */
	w->user = NULL;
	CHECK_INT(fiber_sleep_ms(20000, NULL), 0);
	CHECK_INT(ensure(w, "registry.test/a:1", "IfNotPresent", VAL_EMPTY), 0);
	check_calls(w, "pull registry.test/a:1 :\n");
	CHECK_INT(ensure(w, "registry.test/a:1", "IfNotPresent", other), 0);
	check_calls(w, "");
}

CLOCK_TEST(images_of_a_secret_are_for_those_who_have_it)
{
	struct world w;

	world_begin(&w);
	check_secrets_count(NULL, &w);
	world_end(&w);
	world_begin(&w);
	(void)snprintf(w.root, sizeof(w.root), "/tmp/c8s-images-XXXXXX");
	CHECK(mkdtemp(w.root));
	check_secrets_count(w.root, &w);
	world_end(&w);
}

CLOCK_TEST(images_of_others_are_for_all_unless_the_policy_says_otherwise)
{
	static const struct {
		const char *policy, *allowed;
		bool pulled;
	} rows[] = {
		{ NULL, "[]", false },
		{ "NeverVerify", "[]", false },
		{ "AlwaysVerify", "[]", true },
		{ "NeverVerifyAllowlistedImages", "[\"registry.test/*\"]", false },
		{ "NeverVerifyAllowlistedImages", "[\"registry.test/a\"]", false },
		{ "NeverVerifyAllowlistedImages", "[\"other.test/*\"]", true },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct world w;
		world_begin(&w);
		images_manager_free(w.m);
		struct images_manager_options o = usual(&w);
		o.verification = rows[i].policy;
		o.allowed = parse(&w.arena, rows[i].allowed);
		w.m = images_manager_new(&o);
		w.present = true;
		CHECK_ROW(i, ensure(&w, "registry.test/a:1", "IfNotPresent", VAL_EMPTY) == 0);
		CHECK_ROW(i, (w.calls.n > 0) == rows[i].pulled);
		world_end(&w);
	}
}

/* ---- collecting ---- */

#define IMAGES                                                                                                              \
	"[{\"id\":\"a\",\"size\":10,\"repoTags\":[\"x:1\"],\"repoDigests\":[\"x@sha256:1\"]},{\"id\":\"b\",\"size\":30},"     \
	"{\"id\":\"c\",\"size\":20,\"pinned\":true},{\"id\":\"d\",\"size\":30,\"repoTags\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\"]}]"

CLOCK_TEST(images_nobody_uses_go_after_a_while)
{
	struct world w;

	world_begin(&w);
	w.mountpoint = "/";
	w.images = parse(&w.arena, "[]");
	CHECK_INT(images_manager_remove_unused(w.m, VAL_EMPTY, NULL), 0);
	w.images = parse(&w.arena, IMAGES);
	/* Seen, and b used, by now; none is of age. */
	CHECK_INT(images_manager_remove_unused(w.m, parse(&w.arena, "[\"b\"]"), NULL), 0);
	CHECK_INT(fiber_sleep_ms(121 * 1000, NULL), 0);
	CHECK_INT(images_manager_remove_unused(w.m, parse(&w.arena, "[\"x:1\"]"), NULL), 60);
	check_calls(&w, "remove d\nremove b\n");
	CHECK_INT(images_manager_remove_unused(w.m, VAL_EMPTY, NULL), 10);
	world_end(&w);
}

static int remove_unused(void *arg) { return (int)images_manager_remove_unused(((struct world *)arg)->m, VAL_EMPTY, NULL); }

/* The list of images that records are compared with is older than this one: that must not make it everybody's. */
CLOCK_TEST(images_pulled_during_a_collection_stay_those_of_their_secret)
{
	struct world w;

	world_begin(&w);
	struct val s = docker_secret(&w, "s", "{\"registry.test\":{\"username\":\"me\",\"password\":\"1\"}}");
	w.user = "me";
	w.images = parse(&w.arena, "[]");
	w.list_ms = 1000;
	struct fiber *f = start(remove_unused, &w);
	CHECK_INT(fiber_sleep_ms(1500, NULL), 0); /* it has looked at what is there, and looks once more */
	CHECK_INT(ensure(&w, "registry.test/a:1", "IfNotPresent", s), 0);
	CHECK_INT(join(f), 0);
	CHECK_INT(ensure(&w, "registry.test/a:1", "Never", s), 0);
	CHECK(ensure(&w, "registry.test/a:1", "Never", VAL_EMPTY) < 0);
	CHECK_STR(w.reason, "ErrImageNeverPull");
	/* A collection that begins later finds that it is gone. */
	CHECK_INT(fiber_sleep_ms(1000, NULL), 0);
	CHECK_INT(images_manager_remove_unused(w.m, VAL_EMPTY, NULL), 0);
	CHECK_INT(ensure(&w, "registry.test/a:1", "Never", VAL_EMPTY), 0);
	world_end(&w);
}

CLOCK_TEST(images_are_collected_by_the_usage_of_the_disk)
{
	struct world w;
	struct err err = ERR_INIT;

	world_begin(&w);
	images_manager_free(w.m);
	struct images_manager_options o = usual(&w);
	o.gc_high_percent = 101;
	w.m = images_manager_new(&o);
	w.mountpoint = "/";
	w.images = parse(&w.arena, IMAGES);
	CHECK_INT(images_manager_collect(w.m, VAL_EMPTY, &err), 0);
	images_manager_free(w.m);
	o.gc_high_percent = 0;
	o.gc_low_percent = 0;
	w.m = images_manager_new(&o);
	/* How long those of before were there nobody knows. */
	CHECK(images_manager_collect(w.m, VAL_EMPTY, &err) < 0);
	check_calls(&w, "remove a\nremove b\nremove d\n");
	w.images = parse(&w.arena, IMAGES);
	CHECK(images_manager_collect(w.m, VAL_EMPTY, &err) < 0);
	check_calls(&w, "");
	buf_reset(&w.events);
	CHECK_INT(fiber_sleep_ms(121 * 1000, NULL), 0);
	CHECK(images_manager_collect(w.m, VAL_EMPTY, &err) < 0);
	check_calls(&w, "remove a\nremove b\nremove d\n");
	CHECK(str_starts(buf_str(&w.events), STR("Warning FreeDiskSpaceFailed Insufficient free disk space on the node's image filesystem (")));
	CHECK(str_find(buf_str(&w.events), STR("Failed to free sufficient space by deleting unused images (freed 70 bytes). Investigate disk usage, as it could be "
					       "used by active images, logs, volumes, or other data.")) > 0);
	world_end(&w);
}

CLOCK_TEST(images_of_the_node_are_sorted_by_size)
{
	struct world w;
	struct val v;

	world_begin(&w);
	w.images = parse(&w.arena, IMAGES);
	CHECK_INT(images_of_node(w.m, &w.arena, &v, NULL), 0);
	CHECK_INT(val_len(v), 4);
	CHECK_INT(val_len(val_get(val_at(v, 0), names)), 5);
	CHECK_INT(val_int(val_at(v, 1), sizeBytes), 30);
	CHECK_INT(val_int(val_at(v, 2), sizeBytes), 20);
	CHECK_STR(val_as_str(val_at(val_get(val_at(v, 3), names), 0)), "x@sha256:1");
	CHECK_STR(val_as_str(val_at(val_get(val_at(v, 3), names), 1)), "x:1");
	world_end(&w);
}

/* ---- providers ---- */

static int account_of(void *arg, struct arena *a, str namespace, str name, struct val *ret, struct err *err)
{
	(void)arg;
	(void)err;
	*ret = parse(a, arena_printf(a, "{\"metadata\":{\"name\":\"" STR_FMT "\",\"namespace\":\"" STR_FMT "\",\"uid\":\"u-" STR_FMT "\"}}",
				     STR_ARG(name), STR_ARG(namespace), STR_ARG(name)).p);
	return 0;
}

static int token_of(void *arg, struct arena *a, str namespace, str name, struct val request, str *ret, struct err *err)
{
	(void)arg;
	(void)namespace;
	(void)request;
	(void)err;
	*ret = arena_join(a, STR("token-"), name);
	return 0;
}

static struct credential_providers *open_providers(struct world *w)
{
	static const char config[] =
		"apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n- name: cat\n"
		"  apiVersion: credentialprovider.kubelet.k8s.io/v1\n  matchImages: [registry.test]\n  defaultCacheDuration: 1h\n"
		"  tokenAttributes: {serviceAccountTokenAudience: a, cacheType: ServiceAccount, requireServiceAccount: true}\n";
	static const char answer[] = "{\"kind\":\"CredentialProviderResponse\",\"apiVersion\":\"credentialprovider.kubelet.k8s.io/v1\","
				     "\"cacheKeyType\":\"Image\",\"auth\":{\"registry.test\":{\"username\":\"me\",\"password\":\"1\"}}}";
	struct credential_providers *p = NULL;
	struct err err = ERR_INIT;
	const char *path = arena_printf(&w->arena, "%s/config.yaml", w->root).p, *program = arena_printf(&w->arena, "%s/cat", w->root).p;
	str script = arena_printf(&w->arena, "#!/bin/sh\ncat >/dev/null; echo '%s'\n", answer);

	CHECK_INT(file_replace(program, script, 0755, NULL), 0);
	CHECK_INT(file_replace(path, str_of(config), 0644, NULL), 0);
	struct credential_provider_options o = { .config = path, .bin_dir = w->root, .tokens = true, .service_account = account_of, .token = token_of };
	if (credential_providers_open(&o, &p, &err) < 0)
		fail_msg("%s", err.msg);
	return p;
}

static int ensure_as(struct world *w, const char *service_account)
{
	struct arena *a = &w->arena;
	struct val pod = parse(a, arena_printf(a, "{\"metadata\":{\"uid\":\"p-%s\",\"name\":\"p\",\"namespace\":\"ns\"},\"spec\":{"
					       "\"serviceAccountName\":\"%s\"}}", service_account, service_account).p);
	struct val container = parse(a, "{\"name\":\"c\",\"image\":\"registry.test/a:1\",\"imagePullPolicy\":\"IfNotPresent\"}");

	return images_ensure(w->m, a, pod, container, VAL_EMPTY, VAL_EMPTY, &w->ref, &w->image_user, &w->uid, &w->reason, &w->message, &w->err);
}

/* What was pulled with the credentials of a service account is for its pods only. */
FIBER_TEST(images_credentials_of_providers)
{
	struct world w;

	world_begin(&w);
	(void)snprintf(w.root, sizeof(w.root), "/tmp/kubelet-images-XXXXXX");
	CHECK(mkdtemp(w.root));
	struct images_manager_options o = usual(&w);
	images_manager_free(w.m);
	o.providers = open_providers(&w);
	w.m = images_manager_new(&o);
	w.user = "me";
	CHECK_INT(ensure_as(&w, "a"), 0);
	check_calls(&w, "pull registry.test/a:1 me:1\n");
	CHECK_INT(ensure_as(&w, "a"), 0);
	check_calls(&w, "");
	CHECK_INT(ensure_as(&w, "b"), 0);
	check_calls(&w, "pull registry.test/a:1 me:1\n");
	world_end(&w);
	credential_providers_free(o.providers);
}
