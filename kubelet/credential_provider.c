/*
 * Answers are kept as long as they say, by image, by registry or for all, and for the service account whose token was part of the
 * question. Those who ask a program the same at the same time get the answer, or the error, of the first.
 */
#include "kubelet/credential_provider.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/encoding.h"
#include "base/fiber.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/process.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "kubelet/images_priv.h"

enum { OUTPUT_MAX = 1 << 20, RUN_MAX_MS = 60000, KEPT_MAX = 10000 };

extern char **environ;

struct kept {
	struct frozen *auth;          /* map of AuthConfig by pattern */
	int64_t until_ns;
	size_t key_n;
	char key[];
};

/* A question under way, and then its answer for all who have asked the same meanwhile. */
struct flight {
	unsigned users;
	bool done;
	int result;
	struct frozen *auth;          /* NULL: it failed */
	struct err err;
};

struct provider {
	struct val config;            /* kubeletconfig/v1.CredentialProvider */
	const char *program;
	struct map kept;              /* struct kept by key */
	struct map asking;            /* struct flight by key: questions under way */
	struct fiber_cond answered;
};

struct credential_providers {
	struct credential_provider_options o;
	struct arena arena;
	struct provider *items;
	size_t n;
};

/* One question to one program. */
struct question {
	struct credential_providers *all;
	struct provider *p;
	struct arena *arena;
	str image;
	struct val pod;
	struct val account;           /* coordinates; VAL_NONE: asked without a token */
	struct val annotations;
	str token;
	str account_key;              /* what answers are kept by, besides image, registry or all */
};

/* ---- what is kept ---- */

static void kept_free(struct kept *k)
{
	if (k)
		frozen_unref(k->auth);
	free(k);
}

static void clean(struct provider *p)
{
	struct map_iter it = map_iter(&p->kept);
	bool all = map_len(&p->kept) >= KEPT_MAX;
	struct kept *k;

	while ((k = map_next(&it, NULL)))
		if (all || clock_now_ns() > k->until_ns) {
			(void)map_remove(&p->kept, str_span(k->key, k->key_n));
			kept_free(k);
		}
}

static str key_of(const struct question *q, str base)
{
	return arena_printf(q->arena, "%zu:" STR_FMT STR_FMT, base.n, STR_ARG(base), STR_ARG(q->account_key));
}

static str registry_of(str image)
{
	str registry, rest;

	(void)str_cut(image, '/', &registry, &rest);
	return registry;
}

static void keep(const struct question *q, str base, struct val auth, int64_t life_ns)
{
	str key = key_of(q, base);
	struct kept *k = mem_zalloc(sizeof(*k) + key.n);

	clean(q->p);
	k->auth = val_freeze(auth);
	k->until_ns = clock_now_ns() + life_ns;
	memcpy(k->key, key.p, k->key_n = key.n);
	kept_free(map_remove(&q->p->kept, key));
	(void)map_put(&q->p->kept, str_span(k->key, k->key_n), k);
}

static bool find_kept(const struct question *q, struct val *ret)
{
	const str bases[] = { q->image, registry_of(q->image), STR("<global>") };

	for (size_t i = 0; i < ARRAY_LEN(bases); i++) {
		const struct kept *k = map_get(&q->p->kept, key_of(q, bases[i]));
		if (k && clock_now_ns() <= k->until_ns) {
			*ret = val_copy(q->arena, k->auth->val);
			return true;
		}
	}
	return false;
}

/* ---- running a program ---- */

static bool is_replaced(const char *old, struct val env)
{
	VAL_EACH(e, env) {
		str name = val_str(*e, name);
		if (strncmp(old, name.p, name.n) == 0 && old[name.n] == '=')
			return true;
	}
	return false;
}

static const char *const *make_environment(struct arena *a, struct val env)
{
	size_t n = 0, at = 0;

	while (environ && environ[n])
		n++;
	const char **all = ARENA_ARRAY(a, const char *, n + val_len(env) + 1);
	for (size_t i = 0; i < n; i++)
		if (!is_replaced(environ[i], env))
			all[at++] = environ[i];
	VAL_EACH(e, env)
		all[at++] = arena_printf(a, STR_FMT "=" STR_FMT, STR_ARG(val_str(*e, name)), STR_ARG(val_str(*e, value))).p;
	all[at] = NULL;
	return all;
}

static const char *const *make_arguments(struct arena *a, const struct provider *p)
{
	struct val args = val_get(p->config, args);
	const char **argv = ARENA_ARRAY(a, const char *, (size_t)val_len(args) + 2);
	size_t n = 0;

	argv[n++] = p->program;
	VAL_EACH(arg, args)
		argv[n++] = arena_str(a, val_as_str(*arg)).p;
	argv[n] = NULL;
	return argv;
}

static int run_fails(const struct question *q, const char *why, str said, struct err *err)
{
	return err_set(err, ERR_UNAVAILABLE, "error execing credential provider plugin " STR_FMT " for image " STR_FMT ": %s: " STR_FMT,
		       STR_ARG(val_str(q->p->config, name)), STR_ARG(q->image), why, STR_ARG(said));
}

/* (suspends) */
static int run(const struct question *q, str input, str *ret, struct err *err)
{
	const struct process_spec spec = {
		.argv = make_arguments(q->arena, q->p), .env = make_environment(q->arena, val_get(q->p->config, env)), .group = true,
	};
	CLEANUP(process_output_done) struct process_output out = { 0 };
	struct err cause = ERR_INIT;
	DEADLINE_SCOPE(RUN_MAX_MS);
	int r = process_run(&spec, input, OUTPUT_MAX, &out, &cause);

	if (r == -ERR_CANCELED)
		return err_set(err, ERR_CANCELED, "canceled");
	if (r == -ERR_TIMEOUT)
		return run_fails(q, "context deadline exceeded", buf_str(&out.err), err);
	if (r < 0)
		return run_fails(q, cause.msg, buf_str(&out.err), err);
	if (out.status.signal)
		return run_fails(q, arena_printf(q->arena, "signal: %s", strsignal(out.status.signal)).p, buf_str(&out.err), err);
	if (out.status.exit_code)
		return run_fails(q, arena_printf(q->arena, "exit status %d", out.status.exit_code).p, buf_str(&out.err), err);
	*ret = arena_str(q->arena, buf_str(&out.out));
	return 0;
}

/* (suspends) */
static int execute(const struct question *q, struct credential_answer *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(OUTPUT_MAX);
	struct arena *a = q->arena;
	struct val request = OBJECT(a, F(kind, VAL_LIT("CredentialProviderRequest")), F(apiVersion, val_get(q->p->config, apiVersion)),
				    F(image, VAL_STR(q->image)), F(serviceAccountToken, q->token.n ? VAL_STR(q->token) : VAL_EMPTY),
				    F(serviceAccountAnnotations, val_len(q->annotations) ? q->annotations : VAL_EMPTY));
	str text;
	int r = json_encode(&b, request, &(struct json_encode_options){ .type = TYPE(credentialprovider_v1, CredentialProviderRequest) }, err);

	if (r < 0 || (r = run(q, buf_str(&b), &text, err)) < 0)
		return r;
	return credential_answer_parse(a, q->p->config, text, ret, err);
}

/* ---- answers ---- */

/* (suspends) Asks the program, and keeps what may be kept. */
static int ask_anew(const struct question *q, struct val *ret, struct err *err)
{
	struct credential_answer answer;
	int r = execute(q, &answer, err);

	if (r < 0)
		return err_wrap(err, r, "failed to get credential from external registry credential provider");
	if ((r = credential_answer_check(&answer, q->p->config, q->token, err)) < 0)
		return r;
	*ret = answer.auth;
	if (answer.life_ns > 0)
		keep(q, answer.scope == CREDENTIAL_IMAGE ? q->image : answer.scope == CREDENTIAL_REGISTRY ? registry_of(q->image) : STR("<global>"),
		     *ret, answer.life_ns);
	return 0;
}

static void flight_unuse(struct flight *f)
{
	if (--f->users)
		return;
	frozen_unref(f->auth);
	free(f);
}

/* (suspends) The answer to another's question. 1: the other has given up. */
static int ask_along(const struct question *q, struct flight *f, struct val *ret, struct err *err)
{
	int r = 0;

	f->users++;
	while (r == 0 && !f->done)
		r = fiber_cond_wait(&q->p->answered, err);
	if (r == 0 && f->result == 0) {
		*ret = val_copy(q->arena, f->auth->val);
	} else if (r == 0 && f->result == -ERR_CANCELED) {
		r = 1;
	} else if (r == 0) {
		*err = f->err;
		r = f->result;
	}
	flight_unuse(f);
	return r;
}

/* (suspends) */
static int ask(const struct question *q, struct val *ret, struct err *err)
{
	struct provider *p = q->p;
	struct flight *f;
	str key = arena_printf(q->arena, "%zu:" STR_FMT STR_FMT STR_FMT, q->image.n, STR_ARG(q->image), STR_ARG(q->account_key), STR_ARG(q->token));
	int r;

	while ((f = map_get(&p->asking, key)))
		if ((r = ask_along(q, f, ret, err)) <= 0)
			return r;
	if (find_kept(q, ret))
		return 0;
	f = mem_zalloc(sizeof(*f));
	f->users = 1;
	(void)map_put(&p->asking, key, f);
	f->result = r = ask_anew(q, ret, &f->err);
	if (r == 0)
		f->auth = val_freeze(*ret);
	else
		*err = f->err;
	f->done = true;
	(void)map_remove(&p->asking, key);
	fiber_cond_broadcast(&p->answered);
	flight_unuse(f);
	return r;
}

/* ---- service accounts ---- */

static struct val pick_annotations(struct arena *a, struct val there, struct val keys, struct val picked, str *ret_missing)
{
	VAL_EACH(key, keys) {
		struct val v = val_find(there, val_as_str(*key));
		if (val_exists(v))
			picked = val_put(a, picked, atom_make(a, val_as_str(*key)), v);
		else
			*ret_missing = val_as_str(*key);
	}
	return picked;
}

/* (suspends) */
static int get_token(struct question *q, str namespace, str name, str uid, struct err *err)
{
	const struct credential_provider_options *o = &q->all->o;
	struct arena *a = q->arena;
	struct val bound = OBJECT(a, F(kind, VAL_LIT("Pod")), F(apiVersion, VAL_LIT("v1")), F(name, val_get(q->pod, metadata, name)),
				  F(uid, val_get(q->pod, metadata, uid)));
	struct val audience = val_get(q->p->config, tokenAttributes, serviceAccountTokenAudience);
	struct val spec = OBJECT(a, F(audiences, LIST(a, audience)), F(boundObjectRef, bound));
	struct val request = OBJECT(a, F(kind, VAL_LIT("TokenRequest")), F(apiVersion, VAL_LIT("authentication.k8s.io/v1")),
				    F(metadata, OBJECT(a, F(uid, VAL_STR(uid)))), F(spec, spec));
	int r = o->token(o->arg, a, namespace, name, request, &q->token, err);

	return r < 0 ? err_wrap(err, r, "failed to get service account token") : 0;
}

/* Who asks, and which annotations the program gets; with "Token", a new token is a new question. */
static str account_key(const struct question *q)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	char hex[SHA256_HEX + 1] = "";

	VAL_EACH_MEMBER(m, q->account)
		buf_addf(&b, "%u:" STR_FMT, m->val.n, STR_ARG(val_as_str(m->val)));
	VAL_EACH_MEMBER(m, q->annotations)
		buf_addf(&b, "%zu:" STR_FMT "%u:" STR_FMT, atom_str(m->key).n, STR_ARG(atom_str(m->key)), m->val.n, STR_ARG(val_as_str(m->val)));
	if (str_eq(val_str(q->p->config, tokenAttributes, cacheType), STR("Token")))
		sha256_hex(q->token, hex);
	buf_addf(&b, "token%s", hex);
	return arena_str(q->arena, buf_str(&b));
}

/* (suspends) 1: ask; 0: this program is not for this pod. */
static int set_account(struct question *q, struct err *err)
{
	const struct credential_provider_options *o = &q->all->o;
	struct val wanted = val_get(q->p->config, tokenAttributes), account, there;
	str namespace = val_str(q->pod, metadata, namespace), name = val_str(q->pod, spec, serviceAccountName), missing = STR_NONE, ignored;
	int r;

	if (!val_exists(wanted))
		return 1;
	if (!name.n)
		return !val_bool(wanted, requireServiceAccount);
	if ((r = o->service_account(o->arg, q->arena, namespace, name, &account, err)) < 0)
		return err_wrap(err, r, "failed to get service account");
	there = val_get(account, metadata, annotations);
	q->annotations = pick_annotations(q->arena, there, val_get(wanted, requiredServiceAccountAnnotationKeys), VAL_EMPTY_OBJECT, &missing);
	if (missing.p) {
		log_debug("a service account lacks an annotation that a credential provider requires", KV("provider", val_str(q->p->config, name)),
			  KV("serviceAccount", name), KV("annotation", missing));
		return 0;
	}
	q->annotations = pick_annotations(q->arena, there, val_get(wanted, optionalServiceAccountAnnotationKeys), q->annotations, &ignored);
	q->annotations = val_sorted(q->arena, q->annotations);
	if ((r = get_token(q, namespace, name, val_str(account, metadata, uid), err)) < 0)
		return r;
	q->account = OBJECT(q->arena, F(uid, val_get(account, metadata, uid)), F(namespace, VAL_STR(namespace)), F(name, VAL_STR(name)));
	q->account_key = account_key(q);
	return 1;
}

/* ---- all of them ---- */

static bool is_for(const struct provider *p, str image)
{
	VAL_EACH(pattern, val_get(p->config, matchImages))
		if (image_pattern_matches(val_as_str(*pattern), image))
			return true;
	return false;
}

void credential_providers_ask(struct credential_providers *all, struct arena *a, str repository, struct val pod,
			      void (*found)(void *arg, struct val auth, struct val account), void *arg)
{
	for (size_t i = 0; i < all->n; i++) {
		struct question q = { .all = all, .p = &all->items[i], .arena = a, .image = repository, .pod = pod };
		struct err err = ERR_INIT;
		struct val auth = VAL_EMPTY;
		if (!is_for(q.p, repository))
			continue;
		int r = set_account(&q, &err);
		if (r == 1)
			r = ask(&q, &auth, &err);
		if (r == -ERR_CANCELED)
			return;
		if (r < 0)
			log_error("Failed to provide credentials for image", KV("provider", val_str(q.p->config, name)), KV("image", repository),
				  KV("pod", val_str(pod, metadata, name)), KV("err", &err));
		else if (val_len(auth))
			found(arg, auth, q.account);
	}
}

/* ---- life ---- */

static int open_provider(struct credential_providers *all, struct val config, struct err *err)
{
	struct provider *p = &all->items[all->n++];

	p->config = config;
	p->program = arena_printf(&all->arena, "%s/" STR_FMT, all->o.bin_dir, STR_ARG(val_str(config, name))).p;
	map_init(&p->kept);
	map_init(&p->asking);
	fiber_cond_init(&p->answered, "a credential provider");
	if (access(p->program, X_OK) == 0)
		return 0;
	if (errno == ENOENT)
		return err_set(err, ERR_NOT_FOUND, "plugin binary executable %s did not exist", p->program);
	return err_sys(err, errno, "error inspecting binary executable %s", p->program);
}

int credential_providers_open(const struct credential_provider_options *o, struct credential_providers **ret, struct err *err)
{
	struct credential_providers *all = mem_zalloc(sizeof(*all));
	struct val list;
	int r = 0;

	all->o = *o;
	if (access(o->bin_dir, F_OK) < 0)
		r = errno == ENOENT ? err_set(err, ERR_NOT_FOUND, "plugin binary directory %s did not exist", o->bin_dir) :
				      err_sys(err, errno, "error inspecting binary directory %s", o->bin_dir);
	if (r == 0 && (r = credential_provider_config(&all->arena, o->config, o->tokens, &list, err)) == 0) {
		all->items = ARENA_ARRAY(&all->arena, struct provider, val_len(list));
		memset(all->items, 0, val_len(list) * sizeof(*all->items));
		VAL_EACH(config, list)
			if (r == 0)
				r = open_provider(all, *config, err);
	}
	if (r < 0) {
		credential_providers_free(all);
		return r;
	}
	*ret = all;
	return 0;
}

void credential_providers_free(struct credential_providers *all)
{
	if (!all)
		return;
	for (size_t i = 0; i < all->n; i++) {
		struct map_iter it = map_iter(&all->items[i].kept);
		struct kept *k;
		while ((k = map_next(&it, NULL))) {
			(void)map_remove(&all->items[i].kept, str_span(k->key, k->key_n));
			kept_free(k);
		}
		map_done(&all->items[i].kept);
		map_done(&all->items[i].asking);
	}
	arena_done(&all->arena);
	free(all);
}
