/*
 * The image of a container: there already, or pulled. Pulls that failed are not tried again for 10 s, then 20 s, up to 5 minutes, counted
 * per pod and image; meanwhile whoever asks is told what went wrong.
 */
#include "kubelet/images.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/time.h"
#include "codec/types.h"
#include "kubelet/images_priv.h"
#include "runtime/image.h"

enum { MESSAGE_MAX = 64 << 10, BACKOFFS_MAX = 10000 };

#define BACKOFF_FIRST_NS (10 * NS_PER_S)
#define BACKOFF_MAX_NS (300 * NS_PER_S)

struct backoff {
	int64_t delay_ns, since_ns;            /* as clock_now_ns counts */
	char *error;                           /* of the last pull: "ErrImagePull: ..." */
	size_t key_n;
	char key[];
};

/* One question for an image. */
struct want {
	struct images_manager *m;
	struct arena *arena;
	struct val pod, container, secrets, sandbox_config;
	str image;                             /* as the container names it */
	str repository;                        /* docker.io/library/nginx */
	struct val spec;                       /* runtime.v1.ImageSpec */
	struct val status;                     /* runtime.v1.Image, once it is there */
	str ref, reason, message;
};

static void tell(const struct want *w, bool warning, const char *reason, str message)
{
	if (w->m->o.event)
		w->m->o.event(w->pod, val_str(w->container, name), warning, reason, message, w->m->o.arg);
}

/* The waiting state: a reason, and a message, which may be longer than that in err. */
static int refuse(struct want *w, str reason, str message, struct err *err)
{
	w->reason = arena_str(w->arena, reason);
	w->message = arena_str(w->arena, message);
	return err_set(err, ERR_UNAVAILABLE, STR_FMT, STR_ARG(message));
}

/* Text with a quoted name in its middle. */
static str quoted(struct arena *a, const char *before, str name, const char *between, str after)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(MESSAGE_MAX);

	buf_add(&b, str_of(before));
	buf_add_quoted(&b, name);
	buf_add(&b, str_of(between));
	buf_add(&b, after);
	return arena_str(a, buf_str(&b));
}

/* ---- back-off ---- */

static void backoff_free(struct backoff *b)
{
	free(b->error);
	free(b);
}

static bool backoff_is_old(const struct backoff *b, int64_t now_ns) { return now_ns - b->since_ns > 2 * BACKOFF_MAX_NS; }

static str backoff_key(struct arena *a, str uid, str image)
{
	return arena_printf(a, STR_FMT "_" STR_FMT, STR_ARG(uid), STR_ARG(image));
}

/* The one in force, or NULL. */
static const struct backoff *backoff_find(const struct images_manager *m, str key)
{
	const struct backoff *b = map_get(&m->backoffs, key);
	int64_t now_ns = clock_now_ns();

	return b && !backoff_is_old(b, now_ns) && now_ns - b->since_ns < b->delay_ns ? b : NULL;
}

/* Forgets those that are over for long; when there are very many, all. */
static void backoff_clean(struct images_manager *m)
{
	struct map_iter it = map_iter(&m->backoffs);
	bool all = map_len(&m->backoffs) >= BACKOFFS_MAX;
	struct backoff *b;

	while ((b = map_next(&it, NULL)))
		if (all || backoff_is_old(b, clock_now_ns())) {
			(void)map_remove(&m->backoffs, str_span(b->key, b->key_n));
			backoff_free(b);
		}
}

static void backoff_next(struct images_manager *m, str key, str error)
{
	struct backoff *b = map_get(&m->backoffs, key);
	int64_t now_ns = clock_now_ns();

	if (!b) {
		if (map_len(&m->backoffs) >= BACKOFFS_MAX)
			backoff_clean(m);
		b = mem_zalloc(sizeof(*b) + key.n);
		memcpy(b->key, key.p, b->key_n = key.n);
		(void)map_put(&m->backoffs, str_span(b->key, b->key_n), b);
	}
	b->delay_ns = !b->delay_ns || backoff_is_old(b, now_ns) ? BACKOFF_FIRST_NS : MIN(2 * b->delay_ns, BACKOFF_MAX_NS);
	b->since_ns = now_ns;
	free(b->error);
	b->error = mem_zalloc(error.n + 1);
	memcpy(b->error, error.p, error.n);
}

int64_t images_backoff_until(const struct images_manager *m, str pod_uid, str image)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct backoff *b = backoff_find(m, backoff_key(&a, pod_uid, image));

	return b ? clock_wall_ns() + b->since_ns + b->delay_ns - clock_now_ns() : 0;
}

/* ---- calls ---- */

/* (suspends) What the runtime has under that name; VAL_NONE: nothing. */
static int image_status(struct want *w, struct val spec, struct val *ret, struct err *err)
{
	struct val answer;
	int r = cri_ask(w->m->o.cri, &rpc_ImageService_ImageStatus, w->arena, OBJECT(w->arena, F(image, spec)), 0, &answer, err);

	if (r < 0)
		return r;
	*ret = val_get(answer, image);
	if (val_exists(*ret) && (!val_str(*ret, id).n || !val_int(*ret, size)))
		return err_set(err, ERR_INTERNAL, "Id or size of image \"" STR_FMT "\" is not set", STR_ARG(val_str(spec, image)));
	return 0;
}

/* As kubelets show errors of pulls: a code that says nothing is left out. */
static str pull_error(struct arena *a, int r, const struct err *err)
{
	return r == -ERR_INTERNAL || r == -ERR_SYSTEM ? arena_str(a, err_str(err)) : cri_error_text(a, err);
}

/* (suspends) */
static int pull_with(struct want *w, const struct image_credential *c, struct err *err)
{
	struct arena *a = w->arena;
	struct val auth = c ? OBJECT(a, F(username, VAL_STR(c->user)), F(password, VAL_STR(c->password))) : VAL_EMPTY, answer;
	struct val request = OBJECT(a, F(image, w->spec), F(auth, auth), F(sandboxConfig, w->sandbox_config));
	int r = cri_ask(w->m->o.cri, &rpc_ImageService_PullImage, a, request, -1, &answer, err);

	if (r < 0)
		return r;
	w->ref = val_str(answer, imageRef);
	if (!w->ref.n)
		return err_set(err, ERR_INTERNAL, "imageRef of image \"" STR_FMT "\" is not set", STR_ARG(val_str(w->spec, image)));
	return 0;
}

/* Several errors as one; the same is said once. */
static str joined_errors(struct arena *a, const str *errors, size_t n)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(MESSAGE_MAX);
	size_t told = 0;

	for (size_t i = 0; i < n; i++) {
		bool again = false;
		for (size_t k = 0; k < i; k++)
			again |= str_eq(errors[k], errors[i]);
		if (again)
			continue;
		buf_add(&b, told++ ? STR(", ") : STR(""));
		buf_add(&b, errors[i]);
	}
	str all = arena_str(a, buf_str(&b));
	return told > 1 ? arena_printf(a, "[" STR_FMT "]", STR_ARG(all)) : all;
}

/* (suspends) With each of the credentials in turn. 1: pulled; 0: not, *ret_error says why. */
static int pull_any(struct want *w, const struct image_credentials *all, const struct image_credential **ret_used, str *ret_error,
		    struct err *err)
{
	size_t n = MAX(all->n, (size_t)1);
	str *errors = ARENA_ARRAY(w->arena, str, n);

	if (!rate_try(&w->m->rate)) {
		*ret_error = STR("pull QPS exceeded");
		return 0;
	}
	for (size_t i = 0; i < n; i++) {
		*ret_used = all->n ? &all->items[i] : NULL;
		int r = pull_with(w, *ret_used, err);
		if (r == 0)
			return 1;
		if (r == -ERR_CANCELED || fiber_check(NULL) < 0)
			return r;
		errors[i] = pull_error(w->arena, r, err);
	}
	*ret_error = joined_errors(w->arena, errors, n);
	return 0;
}

/* ---- pulling ---- */

/* (suspends) One at a time, or as many as are allowed. */
static int turn_wait(struct images_manager *m, struct err *err)
{
	unsigned max = m->o.parallel ? m->o.parallel_max : 1;
	int r = 0;

	while (max && m->pulling >= max)
		if ((r = fiber_cond_wait(&m->turn, err)) < 0)
			return r;
	m->pulling++;
	return 0;
}

static void turn_end(struct images_manager *m)
{
	m->pulling--;
	fiber_cond_signal(&m->turn);
}

static str milliseconds(struct arena *a, int64_t ns)
{
	char out[DURATION_TEXT_MAX];

	return arena_str(a, duration_format(ns / NS_PER_MS * NS_PER_MS, out));
}

static void tell_pulled(const struct want *w, int64_t pull_ns, int64_t all_ns)
{
	str pulling = milliseconds(w->arena, pull_ns), waiting = milliseconds(w->arena, all_ns);
	str rest = arena_printf(w->arena, " in " STR_FMT " (" STR_FMT " including waiting). Image size: %lld bytes.", STR_ARG(pulling),
				STR_ARG(waiting), (long long)val_int(w->status, size));

	tell(w, false, "Pulled", quoted(w->arena, "Successfully pulled image ", w->image, "", rest));
}

/* What runtimes begin the text of some errors with, and what is made of it. */
static int pull_failed(struct want *w, str key, str error, struct err *err)
{
	static const struct {
		str name;
		const char *because;
	} kinds[] = {
		{ STR_INIT("RegistryUnavailable"), "the registry is unavailable" },
		{ STR_INIT("SignatureValidationFailed"), "the signature validation failed" },
	};
	str reason = STR("ErrImagePull"), message = error;

	tell(w, true, "Failed", quoted(w->arena, "Failed to pull image ", w->image, ": ", error));
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (str_starts(error, kinds[i].name)) {
			reason = kinds[i].name;
			message = arena_printf(w->arena, "image pull failed for " STR_FMT " because %s" STR_FMT, STR_ARG(w->image),
					       kinds[i].because, STR_ARG(str_skip(error, kinds[i].name.n)));
		}
	backoff_next(w->m, key, arena_printf(w->arena, STR_FMT ": " STR_FMT, STR_ARG(reason), STR_ARG(message)));
	return refuse(w, reason, message, err);
}

/* (suspends) 1: pulled; 0: not, *ret_error says why. *ret_ns: how long it took, without waiting for others. */
static int pull_in_turn(struct want *w, const struct image_credentials *credentials, str *ret_error, int64_t *ret_ns, struct err *err)
{
	const struct image_credential *used = NULL;
	struct val status = VAL_EMPTY;
	int r = turn_wait(w->m, err);

	if (r < 0)
		return r;
	int64_t begin_ns = clock_now_ns();
	image_records_intend(w->m, w->image);
	r = pull_any(w, credentials, &used, ret_error, err);
	if (r == 1 && image_status(w, w->spec, &status, NULL) == 0) /* for its size and user; not worth failing for */
		w->status = status;
	image_records_pulled(w->m, w->image, r == 1 ? w->ref : STR_NONE, used);
	*ret_ns = clock_now_ns() - begin_ns;
	turn_end(w->m);
	return r;
}

/* (suspends) */
static int pull(struct want *w, struct err *err)
{
	str key = backoff_key(w->arena, val_str(w->pod, metadata, uid), w->image), error = STR_NONE;
	const struct backoff *b;
	struct image_credentials credentials;
	int64_t begin_ns = clock_now_ns(), pull_ns;
	int r = image_credentials_find(w->m, w->arena, w->pod, w->secrets, w->repository, &credentials, err);

	if (r == -ERR_CANCELED || r == -ERR_TIMEOUT)
		return r;
	if (r < 0)
		return refuse(w, arena_str(w->arena, err_str(err)), arena_str(w->arena, err_str(err)), err);
	if ((b = backoff_find(w->m, key))) {
		tell(w, false, "BackOff", quoted(w->arena, "Back-off pulling image ", w->image, "", STR_NONE));
		str message = quoted(w->arena, "Back-off pulling image ", w->image, ": ", str_of(b->error));
		return refuse(w, STR("ImagePullBackOff"), message, err);
	}
	tell(w, false, "Pulling", quoted(w->arena, "Pulling image ", w->image, "", STR_NONE));
	if ((r = pull_in_turn(w, &credentials, &error, &pull_ns, err)) < 0)
		return r;
	if (r == 0)
		return pull_failed(w, key, error, err);
	tell_pulled(w, pull_ns, clock_now_ns() - begin_ns);
	backoff_clean(w->m);
	return 0;
}

/* ---- the policy ---- */

static int never_pull(struct want *w, struct err *err)
{
	str message = quoted(w->arena, "Container image ", w->image, " is not present with pull policy of Never", STR_NONE);

	tell(w, true, "ErrImageNeverPull", message);
	return refuse(w, STR("ErrImageNeverPull"), message, err);
}

/* The name with a tag, or a digest. */
static int name_check(struct want *w, struct err *err)
{
	struct image_ref ref;
	str name = w->image;

	if (image_ref_parse(w->arena, w->image, &ref, err) < 0) {
		str message = quoted(w->arena, "Failed to apply default image tag ", w->image, ": ", err_str(err));
		tell(w, true, "InspectFailed", message);
		return refuse(w, STR("InvalidImageName"), message, err);
	}
	if (!ref.digest.n && !str_ends(name, arena_join(w->arena, STR(":"), ref.tag)))
		name = arena_printf(w->arena, STR_FMT ":" STR_FMT, STR_ARG(name), STR_ARG(ref.tag));
	w->repository = arena_printf(w->arena, STR_FMT "/" STR_FMT, STR_ARG(ref.domain), STR_ARG(ref.path));
	w->spec = OBJECT(w->arena, F(image, VAL_STR(name)), F(annotations, val_get(w->pod, metadata, annotations)));
	return 0;
}

/* (suspends) 1: the node has it, and the pod may use it. 0: it has to be pulled. */
static int is_present(struct want *w, bool never, struct err *err)
{
	bool must_pull = true;
	int r = image_status(w, w->spec, &w->status, err);

	if (r == -ERR_CANCELED)
		return r;
	if (r < 0) {
		str message = arena_printf(w->arena, "Failed to inspect image \"\": " STR_FMT, STR_ARG(cri_error_text(w->arena, err)));
		tell(w, true, "InspectFailed", message);
		return refuse(w, STR("ImageInspectError"), message, err);
	}
	w->ref = val_str(w->status, id);
	if (w->ref.n)
		r = image_records_verify(w->m, w->arena, w->image, w->ref, w->pod, w->secrets, w->repository, &must_pull, err);
	if (r == -ERR_CANCELED || r == -ERR_TIMEOUT)
		return r;
	if (r < 0)
		return refuse(w, arena_str(w->arena, err_str(err)), arena_str(w->arena, err_str(err)), err);
	if (must_pull)
		return never ? never_pull(w, err) : 0;
	tell(w, false, "Pulled",
	     quoted(w->arena, "Container image ", w->image, " already present on machine and can be accessed by the pod", STR_NONE));
	return 1;
}

static int ensure(struct want *w, struct err *err)
{
	str policy = val_str(w->container, imagePullPolicy);
	int r = name_check(w, err);

	if (r == 0 && !str_eq(policy, STR("Always")))
		r = is_present(w, str_eq(policy, STR("Never")), err);
	return r != 0 ? MIN(r, 0) : pull(w, err);
}

/* An image that says nothing runs as root. */
static void user_of(struct val image, str *ret_user, int64_t *ret_uid)
{
	bool named = !val_has(image, uid) && val_str(image, username).n;

	*ret_user = named ? val_str(image, username) : STR_NONE;
	*ret_uid = named ? -1 : val_int(image, uid, value);
}

int images_ensure(struct images_manager *m, struct arena *a, struct val pod, struct val container, struct val secrets,
		  struct val sandbox_config, str *ret_ref, str *ret_user, int64_t *ret_uid, str *ret_reason, str *ret_message,
		  struct err *err)
{
	struct want w = { .m = m, .arena = a, .pod = pod, .container = container, .secrets = secrets, .sandbox_config = sandbox_config,
			  .image = val_str(container, image) };
	struct err own = ERR_INIT;
	int r = ensure(&w, err ? err : &own);

	if (r < 0) {
		*ret_reason = w.reason;
		*ret_message = w.message;
		return r;
	}
	*ret_ref = w.ref;
	user_of(w.status, ret_user, ret_uid);
	return 0;
}

/* ---- life ---- */

struct images_manager *images_manager_new(const struct images_manager_options *o)
{
	struct images_manager *m = mem_zalloc(sizeof(*m));

	m->o = *o;
	m->rate = (struct rate){ .qps = o->qps, .burst = o->burst, .at_ns = clock_now_ns() };
	map_init(&m->backoffs);
	map_init(&m->records);
	map_init(&m->pulling_names);
	map_init(&m->images);
	fiber_cond_init(&m->turn, "other images to be pulled");
	image_records_load(m);
	return m;
}

void images_manager_free(struct images_manager *m)
{
	struct map_iter it;
	struct backoff *b;

	if (!m)
		return;
	it = map_iter(&m->backoffs);
	while ((b = map_next(&it, NULL)))
		backoff_free(b);
	map_done(&m->backoffs);
	image_records_done(m);
	images_collect_done(m);
	free(m);
}
