/*
 * Secrets of type kubernetes.io/service-account-token: they get a token of the service account that their annotation names, with the
 * authority and the namespace that belong to it, and they go when the service account goes.
 *
 * Keys are "s" and "a" (for a Secret or an account) with all that is needed to work on one that is gone already, between line ends.
 */
#include <stdlib.h>

#include "apiserver/authn/jwt.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "codec/types.h"
#include "controllers/controller.h"
#include "controllers/secret_data.h"

enum { FILE_MAX = 1 << 20, RETRIES_MAX = 10, CLAIMS_MAX = 64 << 10 };

#define TOKEN_TYPE "kubernetes.io/service-account-token"
#define NAME_KEY "kubernetes.io/service-account.name"
#define UID_KEY "kubernetes.io/service-account.uid"

struct state {
	struct informer *secrets, *accounts;
	struct jwt_signer *signer;
	struct buf ca;                /* empty: not put into Secrets */
};

/* What a key says. */
struct item {
	str namespace, name, uid;
	str account, account_uid;     /* of a Secret; the uid may be empty */
};

static str annotation(struct val object, const char *key) { return val_as_str(val_find(val_get(object, metadata, annotations), str_of(key))); }

static bool is_token(struct val secret) { return str_eq(val_str(secret, type), STR(TOKEN_TYPE)); }

/* ---- keys ---- */

static void account_keys(struct controller *c, struct frozen *old, struct frozen *object)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val v = object ? object->val : old->val;
	controller_add(c, arena_printf(&a, "a\n" STR_FMT "\n" STR_FMT "\n" STR_FMT, STR_ARG(val_str(v, metadata, namespace)),
				       STR_ARG(val_str(v, metadata, name)), STR_ARG(val_str(v, metadata, uid))));
}

static void secret_keys(struct controller *c, struct frozen *old, struct frozen *object)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val v = object ? object->val : old->val;
	if (is_token(v) && annotation(v, NAME_KEY).n)
		controller_add(c, arena_printf(&a, "s\n" STR_FMT "\n" STR_FMT "\n" STR_FMT "\n" STR_FMT "\n" STR_FMT,
					       STR_ARG(val_str(v, metadata, namespace)), STR_ARG(val_str(v, metadata, name)),
					       STR_ARG(val_str(v, metadata, uid)), STR_ARG(annotation(v, NAME_KEY)),
					       STR_ARG(annotation(v, UID_KEY))));
}

static struct item item_of(str key)
{
	struct item i = { 0 };
	str letter, rest;
	(void)str_cut(key, '\n', &letter, &rest);
	(void)str_cut(rest, '\n', &i.namespace, &rest);
	(void)str_cut(rest, '\n', &i.name, &rest);
	(void)str_cut(rest, '\n', &i.uid, &rest);
	(void)str_cut(rest, '\n', &i.account, &i.account_uid);
	return i;
}

/* ---- looking ---- */

static bool has_uid(struct val object, str uid) { return !uid.n || str_eq(val_str(object, metadata, uid), uid); }

static str key_of(struct arena *a, str namespace, str name)
{
	return arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(namespace), STR_ARG(name));
}

/* The informer's, if it is the one with that uid. VAL_NONE: it is not. */
static struct val find(struct controller *c, struct arena *a, struct informer *i, str namespace, str name, str uid)
{
	struct frozen *object = informer_get(i, key_of(a, namespace, name));
	return object && has_uid(object->val, uid) ? controller_hold(c, a, object) : VAL_EMPTY;
}

/* (suspends) The account of a Secret, asked for when the informer does not have it; VAL_NONE: there is none. */
static int get_account(struct controller *c, struct arena *a, const struct item *i, struct val *ret, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *live = NULL;
	const struct state *s = c->state;
	*ret = find(c, a, s->accounts, i->namespace, i->account, i->account_uid);
	if (val_exists(*ret))
		return 0;
	int r = client_get(c->client, TYPE(core_v1, ServiceAccount), i->namespace, i->account, &live, err);
	if (r == -ERR_NOT_FOUND) {
		err_clear(err);
		return 0;
	}
	if (r == 0 && has_uid(live->val, i->account_uid))
		*ret = val_copy(a, live->val);
	return r;
}

/* ---- deleting ---- */

/* (suspends) A Secret that is gone or another one is fine. */
static int delete_secret(struct controller *c, str namespace, str name, str uid, struct err *err)
{
	const struct client_delete_options o = { .grace_s = -1, .uid = uid };
	int r = client_delete(c->client, TYPE(core_v1, Secret), namespace, name, &o, err);
	return r == -ERR_NOT_FOUND || r == -ERR_CONFLICT ? 0 : r;
}

/* (suspends) All tokens of an account that is gone. */
static int delete_tokens(struct controller *c, const struct item *account, struct err *err)
{
	const struct state *s = c->state;
	int r = 0;
	INFORMER_EACH(secret, informer_each_indexed(s->secrets, "namespace", account->namespace)) {
		str uid = annotation(secret->val, UID_KEY);
		if (r < 0 || !is_token(secret->val) || !str_eq(annotation(secret->val, NAME_KEY), account->name) ||
		    (uid.n && !str_eq(uid, account->uid)))
			continue;
		r = delete_secret(c, account->namespace, val_str(secret->val, metadata, name), val_str(secret->val, metadata, uid), err);
	}
	return r;
}

/* ---- an account forgets a Secret that is gone ---- */

static struct val without_secret(struct arena *a, struct val account, void *arg)
{
	const struct item *i = arg;
	struct val_builder b = val_builder(a);
	struct val had = val_get(account, secrets);
	if (!has_uid(account, i->account_uid))
		return VAL_EMPTY;
	VAL_EACH(ref, had)
		if (!str_eq(val_str(*ref, name), i->name))
			val_add_item(&b, *ref);
	if (b.n == val_len(had))
		return VAL_EMPTY;
	return val_with(a, account, b.n ? val_end_list(&b) : VAL_EMPTY, secrets);
}

/* (suspends) */
static int forget_secret(struct controller *c, struct arena *a, struct item *i, struct err *err)
{
	const struct state *s = c->state;
	struct val account = find(c, a, s->accounts, i->namespace, i->account, i->account_uid);
	if (!val_exists(account) || !val_exists(without_secret(a, account, i)))
		return 0;
	int r = client_change_object(c->client, TYPE(core_v1, ServiceAccount), i->namespace, i->account, without_secret, i, NULL, NULL, err);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

/* ---- tokens ---- */

static int make_token(const struct state *s, struct arena *a, struct val account, struct val secret, str *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(CLAIMS_MAX);
	str namespace = val_str(account, metadata, namespace), name = val_str(account, metadata, name);
	const struct {
		const char *key;
		str value;
	} claims[] = {
		{ "iss", STR("kubernetes/serviceaccount") },
		{ "kubernetes.io/serviceaccount/namespace", namespace },
		{ "kubernetes.io/serviceaccount/secret.name", val_str(secret, metadata, name) },
		{ "kubernetes.io/serviceaccount/service-account.name", name },
		{ "kubernetes.io/serviceaccount/service-account.uid", val_str(account, metadata, uid) },
		{ "sub", arena_printf(a, "system:serviceaccount:" STR_FMT ":" STR_FMT, STR_ARG(namespace), STR_ARG(name)) },
	};
	for (size_t i = 0; i < ARRAY_LEN(claims); i++) {
		buf_addc(&b, i ? ',' : '{');
		json_quote(&b, str_of(claims[i].key), true);
		buf_addc(&b, ':');
		json_quote(&b, claims[i].value, true);
	}
	buf_addc(&b, '}');
	return jwt_sign(s->signer, a, buf_str(&b), ret, err);
}

/* What a Secret lacks. */
struct lack {
	bool ca, namespace, token;
};

static struct lack lack_of(const struct state *s, struct arena *a, struct val secret)
{
	return (struct lack){
		.ca = s->ca.n && !str_eq(secret_data(a, secret, STR("ca.crt")), buf_str(&s->ca)),
		.namespace = !secret_data(a, secret, STR("namespace")).n,
		.token = !secret_data(a, secret, STR("token")).n,
	};
}

static bool lacks(struct lack l) { return l.ca || l.namespace || l.token; }

/* The Secret with all that belongs into it. */
static int fill(const struct state *s, struct arena *a, struct val account, struct val *secret, struct err *err)
{
	struct lack l = lack_of(s, a, *secret);
	struct val notes = val_get(*secret, metadata, annotations);
	if (l.ca)
		*secret = secret_data_put(a, *secret, STR("ca.crt"), buf_str(&s->ca));
	if (l.namespace)
		*secret = secret_data_put(a, *secret, STR("namespace"), val_str(*secret, metadata, namespace));
	if (l.token) {
		str token;
		int r = make_token(s, a, account, *secret, &token, err);
		if (r < 0)
			return r;
		*secret = secret_data_put(a, *secret, STR("token"), token);
	}
	notes = val_put(a, notes, atom_make(a, STR(NAME_KEY)), val_get(account, metadata, name));
	notes = val_put(a, notes, atom_make(a, STR(UID_KEY)), val_get(account, metadata, uid));
	*secret = val_with(a, *secret, notes, metadata, annotations);
	return 0;
}

/* (suspends) */
static int fill_secret(struct controller *c, struct arena *a, struct val account, struct val cached, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *live = NULL;
	const struct state *s = c->state;
	if (!lacks(lack_of(s, a, cached)))
		return 0;
	int r = client_get(c->client, TYPE(core_v1, Secret), val_str(cached, metadata, namespace), val_str(cached, metadata, name), &live, err);
	if (r < 0)
		return r == -ERR_NOT_FOUND ? 0 : r;
	struct val secret = live->val;
	if (!str_eq(val_str(secret, metadata, resourceVersion), val_str(cached, metadata, resourceVersion)) ||
	    !lacks(lack_of(s, a, secret)))
		return 0; /* the newer one comes by itself */
	if ((r = fill(s, a, account, &secret, err)) < 0)
		return r;
	r = client_update(c->client, TYPE(core_v1, Secret), secret, NULL, NULL, err);
	return r == -ERR_CONFLICT || r == -ERR_NOT_FOUND ? 0 : r;
}

/* ---- syncing ---- */

static int sync_secret(struct controller *c, struct arena *a, struct item *i, struct err *err)
{
	const struct state *s = c->state;
	struct val secret = find(c, a, s->secrets, i->namespace, i->name, i->uid), account;
	if (!val_exists(secret))
		return forget_secret(c, a, i, err);
	int r = get_account(c, a, i, &account, err);
	if (r < 0)
		return r;
	if (!val_exists(account))
		return delete_secret(c, i->namespace, i->name, i->uid, err);
	return fill_secret(c, a, account, secret, err);
}

static int sync_item(struct controller *c, struct arena *a, str key, struct err *err)
{
	const struct state *s = c->state;
	struct item i = item_of(key);
	int r = 0;
	if (key.p[0] == 's')
		r = sync_secret(c, a, &i, err);
	else if (!val_exists(find(c, a, s->accounts, i.namespace, i.name, i.uid)))
		r = delete_tokens(c, &i, err);
	if (r < 0 && r != -ERR_CANCELED && work_queue_failures(c->queue, key) >= RETRIES_MAX) {
		log_warn("giving up on the tokens of a service account", KV("namespace", i.namespace), KV("name", i.name), KV("err", err));
		return 0;
	}
	return r;
}

static int start(struct controller *c, struct err *err)
{
	struct state *s = mem_zalloc(sizeof *s);
	int r = 0;
	c->state = s;
	buf_init(&s->ca, FILE_MAX);
	if (!c->o->service_account_key_file) {
		log_warn("serviceaccount-token-controller is disabled because there is no private key");
		return 0;
	}
	if ((r = jwt_signer_open(c->o->service_account_key_file, &s->signer, err)) < 0)
		return err_wrap(err, r, "error reading key for service account token controller");
	if (c->o->root_ca_file && (r = file_read(c->o->root_ca_file, &s->ca, err)) < 0)
		return err_wrap(err, r, "error reading root CA file");
	s->secrets = controller_informer(c, TYPE(core_v1, Secret));
	s->accounts = controller_informer(c, TYPE(core_v1, ServiceAccount));
	informer_index(s->secrets, "namespace", informer_by_namespace);
	controller_watch(c, s->secrets, secret_keys);
	controller_watch(c, s->accounts, account_keys);
	c->sync = sync_item;
	return 0;
}

static void stop(struct controller *c)
{
	struct state *s = c->state;
	jwt_signer_free(s->signer);
	buf_done(&s->ca);
	free(s);
}

const struct controller_kind controller_service_account_token = {
	.name = "serviceaccount-token-controller", .start = start, .workers = 5, .stop = stop, .account = "",
};
