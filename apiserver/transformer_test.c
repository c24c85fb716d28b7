#include <errno.h>
#include <unistd.h>

#include "apiserver/transformer_priv.h"
#include "base/encoding.h"
#include "base/file.h"
#include "base/test.h"

/* Opens a configuration given as text; *ret is NULL and err set when it is refused. */
static int open_text(const char *yaml, struct encryption **ret, struct err *err)
{
	char path[] = "/tmp/c8s-encryption-test-XXXXXX";
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	close(fd);
	CHECK_INT(file_write(path, str_of(yaml), 0600, err), 0);
	*ret = NULL;
	int r = encryption_open(path, ret, err);
	unlink(path);
	return r;
}

#define HEAD "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n"
#define KEY16 "AwYJDA8SFRgbHiEkJyotMA=="
#define KEY32 "AwYJDA8SFRgbHiEkJyotMDM2OTw/QkVIS05RVFdaXWA="

static const str db = STR_INIT("/registry/secrets/default/db");

/* Written by Kubernetes 1.36's own transformers, with keys whose bytes are 3, 6, 9, ... */
static const struct {
	const struct provider_type *type;
	size_t key_size;
	const char *plain;
	size_t plain_size;
	const char *stored;
} vectors[] = {
	{ &provider_aesgcm, 16, "", 0, "d20a6fcf8c4234758abb19f0cf66719139061cd7fdbb3f3a5fb4067f" },
	{ &provider_aescbc, 16, "", 0, "8de90c7eed1f89ef1d700efc92d958e2b183dd26e3cc0df7f3ec954c5f07876f" },
	{ &provider_aesgcm, 24, "", 0, "39e00c57a329b24e2c95e8dfd29c560d4cab245582eb82bafc753395" },
	{ &provider_aescbc, 24, "", 0, "9b68ca237e7230da3019b8ba9c514094c6ea04781e03b2de6d2a22f7b5b159f8" },
	{ &provider_aesgcm, 32, "", 0, "15b0d35d34b7696bafdbad6c073cccc4e640de12fa48e4d94636073b" },
	{ &provider_aescbc, 32, "", 0, "ef2a9bc6703496e27ca719560d935a022c313aa5eee4a7b30e4ee2d47c0376ba" },
	{ &provider_secretbox, 32, "", 0, "71343007861620217ca560b01ed3b33f362f22188e23d987180eedf5e97cf5b5e07c7d0565240577" },
	{ &provider_aescbc, 16, "k8s\0hello", 9, "20fb5ff986b8b144bfb9aff7f929eb73be403c8d53bb1a7170e29a8947dfac71" },
	{ &provider_aesgcm, 16, "k8s\0hello", 9,
	  "083998e17cdfc354a5154c9f53bc2f1a7d61f258679519ad5022bac080fcadf127538a5022" },
	{ &provider_aesgcm, 24, "k8s\0hello", 9,
	  "4ac7e8d6c7391bb57adf511874aa8b292b555b42389c8b2779a2c49d7f43e7d9c57d661e39" },
	{ &provider_aescbc, 24, "k8s\0hello", 9, "cb1308a1a352542ed5cc01f5056cda8dd3d02461c2dc4f6183c0050af4b471ff" },
	{ &provider_aescbc, 32, "k8s\0hello", 9, "a06a0fde8a7e251e5fc6458c3b76c7c323460fecea454ed472ef5270d3fb1395" },
	{ &provider_aesgcm, 32, "k8s\0hello", 9,
	  "8342317513a78b16f03f713809b6d64acd2f0290b883997ee31ceb886c5f30ce436ae55675" },
	{ &provider_secretbox, 32, "k8s\0hello", 9,
	  "3b004f15b384a5c6cb69606a16296d59be29360b4c1d64bf461c394ca1baa6af13a4b304d60dbf602a78e8560b91ac1dc9" },
	{ &provider_aesgcm, 16, "abcdabcdabcdabcdabcdabcdabcdabcd", 32,
	  "aff7c73a8b76e4707791058ef2fb8b90e1fd3d9ce32bae3c112af36bab9c899bcc2ba56aab38fbdbeb2c84ddad4ffde93e1cb2b861f704017ec6cdb9" },
	{ &provider_aescbc, 16, "abcdabcdabcdabcdabcdabcdabcdabcd", 32,
	  "9afb7148026d8a3c5e31c0aaf2947a7fa8b9ef242653a6c0411b4192b7ac169e02c9e858e08a858aba2d6d099d3c3ac3a678a238993eade5926bbc86a56a575e" },
	{ &provider_aescbc, 32, "abcdabcdabcdabcdabcdabcdabcdabcd", 32,
	  "7baac4f6cfa9d72b7583c764686a1cb51e858f8e8e6909f92c6dd4abc7b526322181132334319ea144ce7687cc33b058098bff141d3522afdf8a3d456308afc7" },
	{ &provider_secretbox, 32, "abcdabcdabcdabcdabcdabcdabcdabcd", 32,
	  "8bb30334a43514297f76a60a0dc86456d607846b2b400850f21bec9762cf22e6ad265b454cb82bcbd85eea35fdfa49ceac52d647811005b257184acd3deffec13223d50482add46a" },
};

static struct provider_key key_of(size_t size)
{
	struct provider_key k = { .name = STR("k:"), .n = size };
	for (size_t i = 0; i < size; i++)
		k.bytes[i] = (uint8_t)(3 * i + 3);
	return k;
}

TEST(transformer_reads_what_kubernetes_wrote)
{
	for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
		struct provider_key k = key_of(vectors[i].key_size);
		const struct provider_type *type = vectors[i].type;
		struct err err = ERR_INIT;
		char raw[256];
		size_t n;
		CLEANUP(buf_done) struct buf plain = BUF_INIT(1000);
		CLEANUP(buf_done) struct buf again = BUF_INIT(1000);

		CHECK_ROW(i, hex_decode(raw, str_of(vectors[i].stored), &n, &err) == 0);
		CHECK_ROW(i, type->key_init(&k, &err) == 0);
		CHECK_ROW(i, type->decrypt(&k, db, str_span(raw, n), &plain, &err) == 0);
		CHECK_ROW(i, str_eq(buf_str(&plain), str_span(vectors[i].plain, vectors[i].plain_size)));

		/* What is written has the same length, and is read again. */
		CHECK_ROW(i, type->encrypt(&k, db, buf_str(&plain), &again, &err) == 0);
		CHECK_ROW(i, again.n == n && memcmp(again.p, raw, n) != 0);
		buf_reset(&plain);
		CHECK_ROW(i, type->decrypt(&k, db, buf_str(&again), &plain, &err) == 0);
		CHECK_ROW(i, str_eq(buf_str(&plain), str_span(vectors[i].plain, vectors[i].plain_size)));
		if (type->key_done)
			type->key_done(&k);
	}
}

TEST(transformer_refuses_what_was_changed)
{
	static const struct { const struct provider_type *type; size_t cut; bool flip, other_key; const char *message; } t[] = {
		{ &provider_aesgcm, 0, true, false, "cipher: message authentication failed" },
		{ &provider_aesgcm, 0, false, true, "cipher: message authentication failed" },
		{ &provider_aesgcm, 30, false, false, "cipher: message authentication failed" },
		{ &provider_aesgcm, 40, false, false, "the stored data was shorter than the required size" },
		{ &provider_aescbc, 1, false, false, "the stored data is not a multiple of the block size" },
		{ &provider_aescbc, 32, false, false, "invalid PKCS7 data (empty or not padded)" },
		{ &provider_aescbc, 40, false, false, "the stored data was shorter than the required size" },
		{ &provider_secretbox, 0, true, false, "output array was not large enough for encryption" },
		{ &provider_secretbox, 40, false, false, "the stored data was shorter than the required size" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct provider_key k = key_of(32);
		struct err err = ERR_INIT;
		CLEANUP(buf_done) struct buf stored = BUF_INIT(1000);
		CLEANUP(buf_done) struct buf plain = BUF_INIT(1000);

		CHECK_INT(t[i].type->key_init(&k, &err), 0);
		CHECK_INT(t[i].type->encrypt(&k, db, STR("0123456789abcde0"), &stored, &err), 0);
		if (t[i].flip)
			stored.p[stored.n - 3] ^= 1;
		str data = str_head(buf_str(&stored), stored.n - MIN(t[i].cut, stored.n));
		CHECK_ROW(i, t[i].type->decrypt(&k, t[i].other_key ? STR("/registry/x") : db, data, &plain, &err) < 0);
		CHECK_STR_ROW(i, err_str(&err), t[i].message);
		if (t[i].type->key_done)
			t[i].type->key_done(&k);
	}
}

static void write_and_read(const struct transformer *writes, const struct transformer *reads, bool want_stale)
{
	struct err err = ERR_INIT;
	bool stale = !want_stale;
	CLEANUP(buf_done) struct buf stored = BUF_INIT(1000);
	CLEANUP(buf_done) struct buf plain = BUF_INIT(1000);

	CHECK_INT(transformer_encrypt(writes, db, STR("value"), &stored, &err), 0);
	CHECK_INT(transformer_decrypt(reads, db, buf_str(&stored), &plain, &stale, &err), 0);
	CHECK_STR(buf_str(&plain), "value");
	CHECK_INT(stale, want_stale);
}

TEST(transformer_changes_keys)
{
	struct encryption *before, *after, *plain;
	struct err err = ERR_INIT;

	CHECK_INT(open_text(HEAD "resources: [{resources: [secrets], providers: [{aescbc: {keys: [{name: a, secret: " KEY16
			    "}]}}]}]", &before, &err), 0);
	CHECK_INT(open_text(HEAD "resources: [{resources: [secrets], providers: [{aescbc: {keys: [{name: b, secret: " KEY32
			    "}, {name: a, secret: " KEY16 "}]}}, {identity: {}}]}]", &after, &err), 0);
	CHECK_INT(open_text(HEAD "resources: [{resources: [secrets], providers: [{identity: {}}, {secretbox: {keys: [{name: s, secret: "
			    KEY32 "}]}}]}]", &plain, &err), 0);
	const struct transformer *b = encryption_for(before, STR(""), STR("secrets"));
	const struct transformer *a = encryption_for(after, STR(""), STR("secrets"));
	const struct transformer *p = encryption_for(plain, STR(""), STR("secrets"));
	CHECK(a && b && p);
	write_and_read(b, b, false);
	write_and_read(b, a, true);
	write_and_read(p, a, true);
	write_and_read(p, p, false);

	CLEANUP(buf_done) struct buf stored = BUF_INIT(1000);
	CLEANUP(buf_done) struct buf out = BUF_INIT(1000);
	CHECK_INT(transformer_encrypt(a, db, STR("value"), &stored, &err), 0);
	CHECK(str_starts(buf_str(&stored), STR("k8s:enc:aescbc:v1:b:")));
	CHECK(transformer_decrypt(b, db, buf_str(&stored), &out, NULL, &err) < 0);
	CHECK_STR(err_str(&err), "no matching key was found for the provided AES transformer");
	CHECK(transformer_decrypt(p, db, buf_str(&stored), &out, NULL, &err) < 0);
	CHECK_STR(err_str(&err), "no matching prefix found");
	CHECK(transformer_decrypt(b, db, STR("plain"), &out, NULL, &err) < 0);
	encryption_free(before);
	encryption_free(after);
	encryption_free(plain);
}

TEST(encryption_finds_resources)
{
	struct encryption *e;
	struct err err = ERR_INIT;

	CHECK_INT(open_text(HEAD "resources:\n- {resources: [events], providers: [{identity: {}}]}\n"
			    "- {resources: ['*.apps'], providers: [{identity: {}}]}\n"
			    "- {resources: ['*.'], providers: [{identity: {}}]}\n", &e, &err), 0);
	CHECK(encryption_for(e, STR("apps"), STR("deployments")) != NULL);
	CHECK(encryption_for(e, STR("batch"), STR("jobs")) == NULL);
	CHECK(encryption_for(e, STR(""), STR("pods")) != encryption_for(e, STR(""), STR("events")));
	CHECK(encryption_for(NULL, STR(""), STR("pods")) == NULL);
	encryption_free(e);
}

TEST(encryption_refuses)
{
	static const struct { const char *yaml, *message; } t[] = {
		{ HEAD, "error while parsing file: resources: Required value: at least one resources is required" },
		{ HEAD "resources: [{}]", "error while parsing file: [resources[0].resources: Required value: at least one "
		  "resources[0].resources is required, resources[0].providers: Required value: at least one resources[0].providers is required]" },
		{ HEAD "resources: [{resources: [Secrets], providers: [{identity: {}}]}]",
		  "error while parsing file: resources[0].resources[0]: Invalid value: \"Secrets\": resource name should not contain capital letters" },
		{ HEAD "resources: [{resources: ['*'], providers: [{identity: {}}]}]",
		  "error while parsing file: resources[0].resources[0]: Invalid value: \"*\": use '*.' to encrypt all the resources "
		  "from core API group or *.* to encrypt all resources" },
		{ HEAD "resources: [{resources: [a, a], providers: [{identity: {}}]}]",
		  "error while parsing file: resources[0].resources: Invalid value: [\"a\",\"a\"]: the same resource cannot be specified multiple times" },
		{ HEAD "resources: [{resources: [secrets, '*.'], providers: [{identity: {}}]}]",
		  "error while parsing file: resources[0].resources: Invalid value: [\"secrets\",\"*.\"]: using overlapping resources such as "
		  "'secrets' and '*.' in the same resource list is not allowed as they will be masked" },
		{ HEAD "resources: [{resources: [secrets], providers: [{}]}]",
		  "error while parsing file: resources[0].providers[0]: Invalid value: "
		  "{\"AESGCM\":null,\"AESCBC\":null,\"Secretbox\":null,\"Identity\":null,\"KMS\":null}: provider does not contain any of the "
		  "expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity" },
		{ HEAD "resources: [{resources: [secrets], providers: [{aescbc: {keys: [{name: a, secret: aGk=}]}}]}]",
		  "error while parsing file: resources[0].providers[0].aescbc.keys[0].secret: Invalid value: \"REDACTED\": secret is not of "
		  "the expected length, got 2, expected one of [16 24 32]" },
		{ HEAD "resources: [{resources: [secrets], providers: [{secretbox: {keys: [{name: a, secret: '**'}]}}]}]",
		  "error while parsing file: resources[0].providers[0].secretbox.keys[0].secret: Invalid value: \"REDACTED\": secrets must "
		  "be base64 encoded" },
		{ HEAD "resources: [{resources: [secrets], providers: [{aesgcm: {keys: []}}]}]",
		  "error while parsing file: resources[0].providers[0].aesgcm.keys: Required value: at least one keys is required" },
		{ HEAD "resources: [{resources: [secrets], providers: [{kms: {apiVersion: v2, name: x, endpoint: 'unix:///x'}}]}]",
		  "error while parsing file: resources[0].providers[0].kms: Forbidden: KMS providers are not supported by c8s yet; use aescbc, "
		  "aesgcm, secretbox or identity" },
		{ HEAD "resources:\n- {resources: ['*.*'], providers: [{identity: {}}]}\n- {resources: [secrets], providers: [{identity: {}}]}\n",
		  "error while building transformers: resource \"secrets\" is masked by earlier rule \"*.*\"" },
		{ HEAD "resources:\n- {resources: ['*.'], providers: [{identity: {}}]}\n- {resources: [pods], providers: [{identity: {}}]}\n",
		  "error while building transformers: resource \"pods\" is masked by earlier rule \"*.\"" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct encryption *e;
		struct err err = ERR_INIT;
		CHECK_ROW(i, open_text(t[i].yaml, &e, &err) < 0);
		CHECK_STR_ROW(i, err_str(&err), t[i].message);
	}
}

TEST(encryption_reads_strictly)
{
	static const struct { const char *yaml, *part; } t[] = {
		{ "", "is empty" },
		{ "a: [", "yaml: line 1: did not find expected node content" },
		{ HEAD "resource: []", "strict decoding error: unknown field \"resource\"" },
		{ HEAD "resources: []\nresources: []", "already set in map" },
		{ "apiVersion: v1\nkind: Pod", "no kind \"Pod\" is registered for version \"v1\"" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct encryption *e;
		struct err err = ERR_INIT;
		CHECK_ROW(i, open_text(t[i].yaml, &e, &err) < 0);
		if (str_find(err_str(&err), str_of(t[i].part)) < 0)
			CHECK_STR_ROW(i, err_str(&err), t[i].part);
	}
	struct encryption *e;
	struct err err = ERR_INIT;
	CHECK_INT(encryption_open("/does/not/exist", &e, &err), -ERR_NOT_FOUND);
}
