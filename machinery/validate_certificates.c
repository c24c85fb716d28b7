/* CertificateSigningRequest and ClusterTrustBundle. */
#include <openssl/err.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "base/encoding.h"
#include "codec/atoms.h"
#include "machinery/pem.h"
#include "machinery/validate_groups.h"

enum { TRUST_BUNDLE_MAX = 1 << 20, EXPIRATION_MIN = 600 };

/* ---- names of signers: example.com/path ---- */

/* One error for the first label that is wrong. */
static void check_labels_of(struct field_errors *e, const struct field_path *at, str text, name_check *check)
{
	struct name_errors found;
	str rest = text, label;

	for (bool more = true; more;) {
		more = str_cut(rest, '.', &label, &rest);
		if (!check(label, &found))
			continue;
		for (size_t i = 0; i < found.n; i++)
			field_invalid(e, at, VAL_STR(text), "validating label \"" STR_FMT "\": " STR_FMT,
				      STR_ARG(label), STR_ARG(found.text[i]));
		return;
	}
}

void check_signer_name(struct field_errors *e, const struct field_path *at, str name)
{
	enum { NAME_MAX_ALL = NAME_SUBDOMAIN_MAX + 1 + NAME_SUBDOMAIN_MAX + NAME_LABEL_MAX + 1 };
	str domain, path;

	if (!check_given(e, at, name))
		return;
	if (!str_cut(name, '/', &domain, &path) || str_chr(path, '/') >= 0) {
		field_invalid(e, at, VAL_STR(name),
			      "must be a fully qualified domain and path of the form 'example.com/signer-name'");
		return;
	}
	if (domain.n > NAME_SUBDOMAIN_MAX)
		field_too_long(e, at, NAME_SUBDOMAIN_MAX);
	check_labels_of(e, at, domain, name_check_dns1123_label);
	if (str_chr(domain, '.') < 0)
		field_invalid(e, at, VAL_STR(domain), "should be a domain with at least two segments separated by dots");
	check_labels_of(e, at, path, name_check_dns1123_subdomain);
	if (name.n > NAME_MAX_ALL)
		field_too_long(e, at, NAME_MAX_ALL);
}

/* ---- X.509 ---- */

static str decoded(struct arena *a, struct val base64)
{
	str text = val_as_str(base64);
	char *out = ARENA_ARRAY(a, char, base64_decoded_max(text.n) + 1);
	size_t n = 0;
	(void)base64_decode(out, text, &n, NULL); /* the decoder of the object has checked it */
	return str_span(out, n);
}

static void x509_freep(X509 **x) { X509_free(*x); }
static void x509_req_freep(X509_REQ **x) { X509_REQ_free(*x); }

/* NULL when the bytes are not exactly one certificate. */
static X509 *parse_certificate(str der)
{
	const unsigned char *at = (const unsigned char *)der.p;
	X509 *x = d2i_X509(NULL, &at, (long)der.n);

	ERR_clear_error(); /* the thread's list of errors is for its connections */
	if (x && (const char *)at != der.p + der.n) {
		X509_free(x);
		return NULL;
	}
	return x;
}

/* What is wrong with a PKCS#10 request, or NULL. */
static const char *request_error(str der)
{
	const unsigned char *at = (const unsigned char *)der.p;
	CLEANUP(x509_req_freep) X509_REQ *request = d2i_X509_REQ(NULL, &at, (long)der.n);

	if (!request)
		return "asn1: structure error";
	if ((const char *)at != der.p + der.n)
		return "asn1: syntax error: trailing data";
	EVP_PKEY *key = X509_REQ_get0_pubkey(request);
	if (!key)
		return "x509: unsupported public key";
	if (X509_REQ_verify(request, key) == 1)
		return NULL;
	switch (EVP_PKEY_get_base_id(key)) {
	case EVP_PKEY_RSA: return "crypto/rsa: verification error";
	case EVP_PKEY_EC: return "x509: ECDSA verification failure";
	case EVP_PKEY_ED25519: return "x509: Ed25519 verification failure";
	default: return "x509: cannot verify signature: algorithm unimplemented";
	}
}

static const char *pem_request_error(struct arena *a, str pem)
{
	struct pem_block block;
	if (!pem_next(a, &pem, &block) || !str_eq(block.type, STR("CERTIFICATE REQUEST")))
		return "PEM block type must be CERTIFICATE REQUEST";
	const char *wrong = request_error(block.bytes);
	ERR_clear_error();
	return wrong;
}

/* The same for a chain of certificates; an empty one is fine. */
static str pem_certificates_error(struct arena *a, str pem)
{
	struct pem_block block;
	size_t blocks = 0;

	if (pem.n == 0)
		return STR_NONE;
	while (pem_next(a, &pem, &block)) {
		if (!str_eq(block.type, STR("CERTIFICATE")))
			return arena_printf(a, "only CERTIFICATE PEM blocks are allowed, found \"" STR_FMT "\"",
					    STR_ARG(block.type));
		if (block.has_headers)
			return STR("no PEM block headers are permitted");
		CLEANUP(x509_freep) X509 *certificate = parse_certificate(block.bytes);
		if (!certificate)
			return STR("x509: malformed certificate");
		blocks++;
	}
	return blocks ? STR_NONE : STR("must contain at least one CERTIFICATE PEM block");
}

/* As client-go, which reads the bundle: the first block decides whether it is PEM at all. */
str ca_bundle_error(struct arena *a, struct val bundle)
{
	struct pem_block block;
	str rest = decoded(a, bundle);
	bool found = false;

	if (rest.n == 0)
		return STR_NONE;
	while (pem_next(a, &rest, &block)) {
		found = true;
		if (!str_eq(block.type, STR("CERTIFICATE")) || block.has_headers)
			continue;
		CLEANUP(x509_freep) X509 *certificate = parse_certificate(block.bytes);
		return certificate ? STR_NONE : STR("unable to load root certificates: failed to parse certificate");
	}
	return found ? STR("unable to load root certificates: no valid certificate authority data seen")
		     : STR("unable to load root certificates: unable to parse bytes as PEM block");
}

/* ---- CertificateSigningRequest ---- */

static const str usages[] = {
	STR_INIT("any"), STR_INIT("cert sign"), STR_INIT("client auth"), STR_INIT("code signing"),
	STR_INIT("content commitment"), STR_INIT("crl sign"), STR_INIT("data encipherment"),
	STR_INIT("decipher only"), STR_INIT("digital signature"), STR_INIT("email protection"),
	STR_INIT("encipher only"), STR_INIT("ipsec end system"), STR_INIT("ipsec tunnel"), STR_INIT("ipsec user"),
	STR_INIT("key agreement"), STR_INIT("key encipherment"), STR_INIT("microsoft sgc"), STR_INIT("netscape sgc"),
	STR_INIT("ocsp signing"), STR_INIT("s/mime"), STR_INIT("server auth"), STR_INIT("signing"),
	STR_INIT("timestamping"), { NULL, 0 },
};

/* What an update tolerates because the request had it before. */
struct csr_before {
	bool both_decisions, legacy_signer, double_conditions, untyped_condition, any_certificate, unknown_usages;
	bool double_usages;
};

static size_t count_conditions(struct val csr, str type)
{
	size_t n = 0;
	VAL_EACH(c, val_get(csr, status, conditions))
		n += str_eq(val_str(*c, type), type);
	return n;
}

static struct csr_before csr_before(struct arena *a, struct val csr, struct val old)
{
	CLEANUP(map_done) struct map types = MAP_INIT, seen = MAP_INIT;
	struct val certificate = val_get(old, status, certificate);
	struct csr_before b = {
		.both_decisions = count_conditions(old, STR("Approved")) && count_conditions(old, STR("Denied")),
		.legacy_signer = str_eq(val_str(old, spec, signerName), STR("kubernetes.io/legacy-unknown")),
		.any_certificate = val_equal(certificate, val_get(csr, status, certificate)) ||
				   pem_certificates_error(a, decoded(a, certificate)).n > 0,
	};
	VAL_EACH(c, val_get(old, status, conditions)) {
		b.double_conditions |= !set_add(&types, val_str(*c, type));
		b.untyped_condition |= val_str(*c, type).n == 0;
	}
	VAL_EACH(usage, val_get(old, spec, usages)) {
		b.unknown_usages |= !str_in(val_as_str(*usage), usages);
		b.double_usages |= !set_add(&seen, val_as_str(*usage));
	}
	return b;
}

static void check_csr_conditions(struct field_errors *e, const struct field_path *at, struct val conditions,
				 const struct csr_before *before)
{
	static const str decisions[] = { STR_INIT("Approved"), STR_INIT("Denied"), STR_INIT("Failed"), { NULL, 0 } };
	static const str true_only[] = { STR_INIT("True"), { NULL, 0 } };
	static const str statuses[] = { STR_INIT("False"), STR_INIT("True"), STR_INIT("Unknown"), { NULL, 0 } };
	CLEANUP(map_done) struct map seen = MAP_INIT;
	bool approved = false, denied = false;
	size_t i = 0;

	VAL_EACH(c, conditions) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		str type = val_str(*c, type);
		bool approves = str_eq(type, STR("Approved")), denies = str_eq(type, STR("Denied"));
		if (type.n == 0 && !before->untyped_condition)
			field_missing(e, FIELD(item, "type"));
		check_required_one_of(e, FIELD(item, "status"), val_str(*c, status),
				      str_in(type, decisions) ? true_only : statuses);
		approved |= approves;
		denied |= denies;
		if ((approves || denies) && approved && denied && !before->both_decisions)
			field_invalid(e, at, VAL_STR(type), "Approved and Denied conditions are mutually exclusive");
		if (!set_add(&seen, type) && !before->double_conditions)
			field_duplicate(e, FIELD(item, "type"), VAL_STR(type));
	}
}

static void check_usages(struct field_errors *e, const struct field_path *at, struct val given,
			 const struct csr_before *before)
{
	CLEANUP(map_done) struct map seen = MAP_INIT;
	size_t i = 0;

	if (val_len(given) == 0)
		field_missing(e, at);
	if (!before->unknown_usages)
		VAL_EACH(usage, given)
			check_one_of(e, FIELD_INDEX(at, i++), val_as_str(*usage), usages);
	i = 0;
	VAL_EACH(usage, given) {
		if (!set_add(&seen, val_as_str(*usage)) && !before->double_usages)
			field_duplicate(e, FIELD_INDEX(at, i), *usage);
		i++;
	}
}

/* We do not care what requests are called, beyond what holds for all names. */
static size_t accept_name(str name, bool prefix, struct name_errors *ret)
{
	(void)name, (void)prefix, (void)ret;
	return 0;
}

static void check_csr_all(struct field_errors *e, struct val csr, const struct csr_before *before)
{
	const struct field_path *at = FIELD(NULL, "spec"), *at_status = FIELD(NULL, "status");
	struct val spec = val_get(csr, spec), seconds = val_get(spec, expirationSeconds);
	str signer = val_str(spec, signerName);

	check_meta(e, csr, false, accept_name);
	const char *wrong = pem_request_error(e->arena, decoded(e->arena, val_get(spec, request)));
	if (wrong)
		field_invalid(e, FIELD(at, "request"), val_get(spec, request), "%s", wrong);
	check_usages(e, FIELD(at, "usages"), val_get(spec, usages), before);
	if (str_eq(signer, STR("kubernetes.io/legacy-unknown")) && !before->legacy_signer)
		field_invalid(e, FIELD(at, "signerName"), VAL_STR(signer),
			      "the legacy signerName is not allowed via this API version");
	else
		check_signer_name(e, FIELD(at, "signerName"), signer);
	if (val_exists(seconds) && val_as_int(seconds) < EXPIRATION_MIN)
		field_invalid(e, FIELD(at, "expirationSeconds"), seconds,
			      "may not specify a duration less than 600 seconds (10 minutes)");
	check_csr_conditions(e, FIELD(at_status, "conditions"), val_get(csr, status, conditions), before);
	if (before->any_certificate)
		return;
	str bad = pem_certificates_error(e->arena, decoded(e->arena, val_get(csr, status, certificate)));
	if (bad.n)
		field_invalid(e, FIELD(at_status, "certificate"), VAL_LIT("<certificate data>"), STR_FMT, STR_ARG(bad));
}

void check_csr(struct field_errors *e, struct val csr) { check_csr_all(e, csr, &(struct csr_before){ 0 }); }

static struct val conditions_of(struct arena *a, struct val csr, str type)
{
	struct val_builder b = val_builder(a);
	VAL_EACH(c, val_get(csr, status, conditions))
		if (str_eq(val_str(*c, type), type))
			val_add_item(&b, *c);
	return val_end_list(&b);
}

/* Decisions stay, and are made through a subresource of their own. */
static void check_decision(struct field_errors *e, struct val csr, struct val old, str type)
{
	const struct type *of = TYPE(certificates_v1, CertificateSigningRequestCondition);
	const struct field_path *at = FIELD(FIELD(NULL, "status"), "conditions");
	struct val now = conditions_of(e->arena, csr, type), before = conditions_of(e->arena, old, type);

	if (val_len(now) > val_len(before)) {
		field_forbidden(e, at, "updates may not add a condition of type \"" STR_FMT "\"", STR_ARG(type));
	} else if (val_len(now) == val_len(before) && !val_semantic_equal(of, now, before)) {
		str diff = form_diff(e->arena, internal_form(e->arena, of, before), internal_form(e->arena, of, now));
		field_forbidden(e, at, "updates may not modify a condition of type \"" STR_FMT "\"\n" STR_FMT,
				STR_ARG(type), STR_ARG(diff));
	}
}

static void check_csr_change(struct field_errors *e, struct val csr, struct val old, bool may_decide, bool may_issue)
{
	static const str kept[] = { STR_INIT("Approved"), STR_INIT("Denied"), STR_INIT("Failed") };
	const struct field_path *at = FIELD(NULL, "status");
	struct csr_before before = csr_before(e->arena, csr, old);

	check_csr_all(e, csr, &before);
	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		if (count_conditions(csr, kept[i]) < count_conditions(old, kept[i]))
			field_forbidden(e, FIELD(at, "conditions"),
					"updates may not remove a condition of type \"" STR_FMT "\"", STR_ARG(kept[i]));
	if (!may_decide) {
		check_decision(e, csr, old, STR("Approved"));
		check_decision(e, csr, old, STR("Denied"));
	}
	if (!str_eq(val_str(csr, status, certificate), val_str(old, status, certificate))) {
		if (!may_issue)
			field_forbidden(e, FIELD(at, "certificate"), "updates may not set certificate content");
		else if (val_str(old, status, certificate).n)
			field_forbidden(e, FIELD(at, "certificate"), "updates may not modify existing certificate content");
	}
	check_meta_update(e, csr, old);
}

void check_csr_update(struct field_errors *e, struct val csr, struct val old)
{
	check_csr_change(e, csr, old, false, false);
}

void check_csr_subresource(struct field_errors *e, str subresource, struct val csr, struct val old)
{
	check_csr_change(e, csr, old, str_eq(subresource, STR("approval")), str_eq(subresource, STR("status")));
}

/* ---- ClusterTrustBundle ---- */

static const struct val omitted = { .type = VAL_STRING, .n = sizeof("<value omitted>") - 1, .s = "<value omitted>" };

/* Named after its signer: example.com:path:name. what: what the errors begin with. */
static void check_name_of_bundle(struct field_errors *e, const struct field_path *at, str name, str signer, bool prefix, const char *what)
{
	struct name_errors found = { 0 };

	if (signer.n == 0 && str_chr(name, ':') >= 0) {
		field_invalid(e, at, VAL_STR(name),
			      "%sClusterTrustBundle without signer name must not have \":\" in its name", what);
		return;
	}
	if (signer.n) {
		str start = arena_printf(e->arena, STR_FMT ":", STR_ARG(signer));
		char *p = (char *)start.p; /* ours, just made */
		for (size_t i = 0; i < start.n; i++)
			p[i] = p[i] == '/' ? ':' : p[i];
		if (!str_starts(name, start)) {
			field_invalid(e, at, VAL_STR(name),
				      "%sClusterTrustBundle for signerName " STR_FMT " must be named with prefix " STR_FMT,
				      what, STR_ARG(signer), STR_ARG(start));
			return;
		}
		name_rule_subdomain(str_skip(name, start.n), prefix, &found);
	} else {
		name_rule_subdomain(name, prefix, &found);
	}
	for (size_t i = 0; i < found.n; i++)
		field_invalid(e, at, VAL_STR(name), "%s" STR_FMT, what, STR_ARG(found.text[i]));
}

static void check_bundle_name(struct field_errors *e, const struct field_path *at, str name, str signer, bool prefix)
{
	if (name.n)
		check_name_of_bundle(e, at, name, signer, prefix, "");
}

void check_bundle_reference(struct field_errors *e, const struct field_path *at, str name)
{
	size_t end = name.n;

	while (end && name.p[end - 1] != ':')
		end--;
	str signer = arena_str(e->arena, str_head(name, end ? end - 1 : 0));
	char *p = (char *)signer.p; /* ours, just made */
	for (size_t i = 0; i < signer.n; i++)
		p[i] = p[i] == ':' ? '/' : p[i];
	check_name_of_bundle(e, at, name, signer, false, "not a valid clustertrustbundlename: ");
}

/* What is wrong with one entry, or NULL. */
static const char *anchor_error(const struct pem_block *block)
{
	if (block->has_headers)
		return "has PEM block headers";
	CLEANUP(x509_freep) X509 *certificate = parse_certificate(block->bytes);
	if (!certificate)
		return "does not parse as X.509";
	uint32_t flags = X509_get_extension_flags(certificate);
	if (!(flags & EXFLAG_CA))
		return "does not have the CA bit set";
	return flags & EXFLAG_INVALID ? "has invalid basic constraints" : NULL;
}

/* Where the same anchor stands, as Go prints a list: "0 2". */
static str indices_of(struct arena *a, const str *anchors, size_t n, size_t first)
{
	str list = arena_printf(a, "%zu", first);
	for (size_t i = first + 1; i < n; i++)
		if (str_eq(anchors[i], anchors[first]))
			list = arena_printf(a, STR_FMT " %zu", STR_ARG(list), i);
	return list;
}

static void check_unique_anchors(struct field_errors *e, const struct field_path *at, const str *anchors, size_t n)
{
	CLEANUP(map_done) struct map seen = MAP_INIT, told = MAP_INIT;

	for (size_t i = 0; i < n; i++)
		if (!set_add(&seen, anchors[i]) && set_add(&told, anchors[i])) {
			size_t first = 0;
			while (!str_eq(anchors[first], anchors[i]))
				first++;
			field_invalid(e, at, omitted, "duplicate trust anchor (indices [" STR_FMT "])",
				      STR_ARG(indices_of(e->arena, anchors, n, first)));
		}
}

static void check_trust_bundle(struct field_errors *e, const struct field_path *at, str pem)
{
	enum { SMALLEST_BLOCK = 31 }; /* both lines with an empty type; bounds the number of blocks */
	struct pem_block block;
	size_t n = 0, before = e->n;

	if (pem.n > TRUST_BUNDLE_MAX) {
		field_too_long(e, at, TRUST_BUNDLE_MAX);
		return;
	}
	str *anchors = ARENA_ARRAY(e->arena, str, pem.n / SMALLEST_BLOCK + 1);
	while (pem_next(e->arena, &pem, &block)) {
		const char *wrong = str_eq(block.type, STR("CERTIFICATE")) ? anchor_error(&block) : NULL;
		if (!str_eq(block.type, STR("CERTIFICATE")))
			field_invalid(e, at, omitted, "entry %zu has bad block type: " STR_FMT, n, STR_ARG(block.type));
		else if (wrong)
			field_invalid(e, at, omitted, "entry %zu %s", n, wrong);
		anchors[n++] = block.bytes;
	}
	if (e->n != before)
		return;
	if (n == 0)
		field_invalid(e, at, omitted, "at least one trust anchor must be provided");
	check_unique_anchors(e, at, anchors, n);
}

static void check_bundle_all(struct field_errors *e, struct val bundle, bool parse)
{
	const struct field_path *at = FIELD(NULL, "spec"), *meta = FIELD(NULL, "metadata");
	str signer = val_str(bundle, spec, signerName);

	check_bundle_name(e, FIELD(meta, "generateName"), val_str(bundle, metadata, generateName), signer, true);
	check_bundle_name(e, FIELD(meta, "name"), val_str(bundle, metadata, name), signer, false);
	check_meta(e, bundle, false, accept_name);
	if (signer.n)
		check_signer_name(e, FIELD(at, "signerName"), signer);
	if (parse)
		check_trust_bundle(e, FIELD(at, "trustBundle"), val_str(bundle, spec, trustBundle));
}

void check_bundle(struct field_errors *e, struct val bundle) { check_bundle_all(e, bundle, true); }

void check_bundle_update(struct field_errors *e, struct val bundle, struct val old)
{
	check_bundle_all(e, bundle, !str_eq(val_str(bundle, spec, trustBundle), val_str(old, spec, trustBundle)));
	check_meta_update(e, bundle, old);
	check_immutable_str(e, FIELD(FIELD(NULL, "spec"), "signerName"), val_str(bundle, spec, signerName),
			    val_str(old, spec, signerName));
}
