/*
 * A stored value is "k8s:enc:<provider>:v1:<key>:<what the provider made>". Several providers or keys may have the same
 * prefix while keys are being changed, so one that fails to decrypt does not end the search: the next is tried.
 */
#include "apiserver/transformer_priv.h"

static const str encrypted = STR_INIT("k8s:enc:");

int transformer_encrypt(const struct transformer *t, str store_key, str plain, struct buf *ret, struct err *err)
{
	const struct provider *p = t->providers[0];
	int r;

	if (!p->type) {
		buf_add(ret, plain);
		return buf_check(ret, "the value", err);
	}
	buf_add(ret, p->type->prefix);
	buf_add(ret, p->keys[0].name);
	if ((r = p->type->encrypt(&p->keys[0], store_key, plain, ret, err)) < 0)
		return r;
	return buf_check(ret, "the encrypted value", err);
}

/* Failures of all that were tried, each text once, as Go's aggregates show them. */
struct failures {
	struct buf text;
	size_t n;
};

static void failures_done(struct failures *f)
{
	buf_done(&f->text);
}

static void add_failure(struct failures *f, str message)
{
	str seen = buf_str(&f->text), one;

	for (size_t i = 0; i < f->n; i++) {
		str_cut(seen, '\n', &one, &seen);
		if (str_eq(one, message))
			return;
	}
	buf_add(&f->text, message);
	buf_addc(&f->text, '\n');
	f->n++;
}

static int failures_report(const struct failures *f, struct err *err)
{
	str rest = buf_str(&f->text), one;
	CLEANUP(buf_done) struct buf joined = BUF_INIT(sizeof(err->msg));

	if (f->n == 0)
		return err_set(err, ERR_INTERNAL, "no matching prefix found");
	for (size_t i = 0; i < f->n; i++) {
		str_cut(rest, '\n', &one, &rest);
		if (i)
			buf_add(&joined, STR(", "));
		buf_add(&joined, one);
	}
	return err_set(err, ERR_INTERNAL, f->n > 1 ? "[" STR_FMT "]" : STR_FMT, STR_ARG(buf_str(&joined)));
}

/* Index of the key that could read the value; -1 with the failures when none could. */
static ptrdiff_t decrypt_with(const struct provider *p, str store_key, str stored, struct buf *ret, struct failures *f)
{
	str data = str_skip(stored, p->type->prefix.n);
	bool matched = false;

	for (size_t i = 0; i < p->n_keys; i++) {
		struct err err = ERR_INIT;
		const struct provider_key *k = &p->keys[i];
		if (!str_starts(data, k->name))
			continue;
		matched = true;
		if (p->type->decrypt(k, store_key, str_skip(data, k->name.n), ret, &err) == 0)
			return (ptrdiff_t)i;
		buf_commit(ret, 0); /* terminated again, whatever the attempt left behind its end */
		add_failure(f, err_str(&err));
	}
	if (!matched)
		add_failure(f, str_of(p->type->no_key));
	return -1;
}

int transformer_decrypt(const struct transformer *t, str store_key, str stored, struct buf *ret, bool *ret_stale,
			struct err *err)
{
	CLEANUP(failures_done) struct failures f = { .text = BUF_INIT(8192) };
	ptrdiff_t key = -1;
	size_t i;

	for (i = 0; i < t->n && key < 0; i++) {
		const struct provider *p = t->providers[i];
		if (!p->type && !str_starts(stored, encrypted)) {
			buf_add(ret, stored);
			key = 0;
		} else if (p->type && str_starts(stored, p->type->prefix)) {
			key = decrypt_with(p, store_key, stored, ret, &f);
		}
	}
	int r = key < 0 ? failures_report(&f, err) : buf_check(ret, "the value", err);
	if (r == 0 && ret_stale)
		*ret_stale = i != 1 || key != 0;
	return r;
}
