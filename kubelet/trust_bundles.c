#include "kubelet/trust_bundles.h"

#include <stdlib.h>

#include "base/encoding.h"
#include "base/random.h"
#include "codec/atoms.h"
#include "machinery/pem.h"
#include "machinery/selector.h"

enum { LINE = 64, SELECTOR_MAX = 100 * 1024, TEXT_MAX = 64 << 20 };

struct anchor {
	uint64_t place;               /* by which they are put into order */
	str der;
};

struct anchors {
	struct arena *arena;
	uint64_t key[2];
	struct anchor *all;
	size_t n, cap;
};

static void add(struct anchors *s, str der)
{
	if (s->n == s->cap) {
		size_t cap = s->cap ? 2 * s->cap : 16;
		struct anchor *more = ARENA_ARRAY(s->arena, struct anchor, cap);
		if (s->n)
			memcpy(more, s->all, s->n * sizeof(*more));
		s->all = more;
		s->cap = cap;
	}
	/* Multiplied with an odd number and mixed, hashes come in another order for every key. */
	uint64_t h = (str_hash(der) ^ s->key[0]) * (s->key[1] | 1);
	s->all[s->n++] = (struct anchor){ h ^ h >> 32, der };
}

static void add_bundle(struct anchors *s, struct val bundle)
{
	str rest = val_str(bundle, spec, trustBundle);
	struct pem_block block;

	while (pem_next(s->arena, &rest, &block))
		add(s, block.bytes);
}

static int by_place(const void *x, const void *y)
{
	const struct anchor *a = x, *b = y;

	if (a->place != b->place)
		return a->place < b->place ? -1 : 1;
	return str_cmp(a->der, b->der);
}

static void print(struct arena *a, struct buf *b, str der)
{
	char *text = arena_alloc(a, base64_encoded_len(der.n) + 1, 1);
	str left = str_span(text, base64_encode(text, der));

	buf_add(b, STR("-----BEGIN CERTIFICATE-----\n"));
	for (; left.n; left = str_skip(left, LINE))
		buf_addf(b, STR_FMT "\n", STR_ARG(str_head(left, LINE)));
	buf_add(b, STR("-----END CERTIFICATE-----\n"));
}

static str finish(struct anchors *s)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(TEXT_MAX);

	if (s->n)
		qsort(s->all, s->n, sizeof(*s->all), by_place);
	for (size_t i = 0; i < s->n; i++)
		if (!i || !str_eq(s->all[i].der, s->all[i - 1].der))
			print(s->arena, &b, s->all[i].der);
	return arena_str(s->arena, buf_str(&b));
}

static int by_name(struct anchors *s, struct val bundles, str name, bool optional, struct err *err)
{
	VAL_EACH(bundle, bundles)
		if (str_eq(val_str(*bundle, metadata, name), name)) {
			add_bundle(s, *bundle);
			return 0;
		}
	if (optional)
		return 0;
	return err_set(err, ERR_NOT_FOUND, "while getting ClusterTrustBundle: clustertrustbundle.certificates.k8s.io \"" STR_FMT "\" not found",
		       STR_ARG(name));
}

static int by_signer(struct anchors *s, struct val bundles, struct val projection, bool optional, struct err *err)
{
	str signer = val_str(projection, signerName);
	struct selector selector;
	bool found = false;
	int r = selector_of_object(s->arena, val_get(projection, labelSelector), &selector, err);

	if (r < 0)
		return err_wrap(err, r, "while parsing label selector");
	size_t n = selector_text(s->arena, &selector).n;
	if (n > SELECTOR_MAX)
		return err_set(err, ERR_INVALID, "label selector length (%zu) is larger than %d", n, SELECTOR_MAX);
	VAL_EACH(bundle, bundles)
		if (str_eq(val_str(*bundle, spec, signerName), signer) && selector_matches(&selector, val_get(*bundle, metadata, labels))) {
			add_bundle(s, *bundle);
			found = true;
		}
	if (found || optional)
		return 0;
	return err_set(err, ERR_NOT_FOUND, "combination of signerName and labelSelector matched zero ClusterTrustBundles");
}

int trust_bundle_pem(struct arena *a, struct val bundles, struct val projection, str *ret_pem, struct err *err)
{
	struct anchors s = { .arena = a };
	bool optional = val_bool(projection, optional);
	int r;

	random_hash_key(s.key);
	if (val_has(projection, name))
		r = by_name(&s, bundles, val_str(projection, name), optional, err);
	else
		r = by_signer(&s, bundles, projection, optional, err);
	if (r >= 0)
		*ret_pem = finish(&s);
	return r;
}
