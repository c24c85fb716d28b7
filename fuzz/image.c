/*
 * What names and registries send us about images. The first byte says what the rest is: 'r' a reference, 'h' a hosts.toml, 'm' a manifest
 * or an index, 'c' a configuration, 'w' a WWW-Authenticate header, 'a' Docker's file of credentials.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "base/path.h"
#include "codec/json.h"
#include "fuzz/fuzz.h"
#include "runtime/image_auth.h"
#include "runtime/image_hosts.h"
#include "runtime/image_priv.h"

enum { INPUT_MAX = 256 << 10 };

/* A reference in its canonical form is one that says the same. */
static void reference(struct arena *a, str text)
{
	struct image_ref ref, again;
	struct err err = ERR_INIT;
	int r = image_ref_parse(a, text, &ref, &err);
	check(r == 0 || (r == -ERR_INVALID && err.n), "it is a reference, or why not is said");
	if (r < 0)
		return;
	check(ref.domain.n && ref.path.n && (ref.tag.n || ref.digest.n), "it has all its parts");
	check(str_find(ref.path, STR("..")) < 0 && str_chr(ref.tag, '/') < 0, "and leads nowhere else");
	check(image_ref_parse(a, ref.text, &again, NULL) == 0 && str_eq(again.text, ref.text), "the canonical form stays");
	check(str_eq(again.domain, ref.domain) && str_eq(again.path, ref.path) && str_eq(again.digest, ref.digest), "as what it is");
}

static void hosts(struct arena *a, str text)
{
	struct registry_host *list = ARENA_ARRAY(a, struct registry_host, REGISTRY_HOSTS_MAX + 1);
	size_t n;
	if (registry_hosts_parse(a, "/folder", false, STR("r.io"), text, list, &n, NULL) < 0)
		return;
	check(n >= 1 && n <= REGISTRY_HOSTS_MAX + 1 && !list[n - 1].mirror, "the last is the registry itself");
	for (size_t i = 0; i < n; i++) {
		check(list[i].authority.n && (str_eq(list[i].scheme, STR("https")) || str_eq(list[i].scheme, STR("http"))), "each can be asked");
		check(list[i].n_ca <= REGISTRY_CA_MAX && !list[i].cert_file == !list[i].key_file, "with what belongs together");
	}
}

static void descriptor(const struct descriptor *d)
{
	check(digest_is_valid(d->digest) && d->size >= 0, "content has a digest and a size");
}

static void manifest(struct arena *a, str text)
{
	struct image_manifest m;
	struct buf b = BUF_INIT(8 << 20);
	if (image_manifest_parse(a, text, STR_NONE, &m, NULL) < 0)
		return;
	if (m.index) {
		descriptor(&m.child);
		return;
	}
	descriptor(&m.config);
	check(m.n_layers <= IMAGE_LAYERS_MAX, "not too many layers");
	for (size_t i = 0; i < m.n_layers; i++)
		descriptor(&m.layers[i]);
	if (image_manifest_make(&b, &m.config, m.layers, m.n_layers, NULL) == 0) {
		struct image_manifest again;
		check(image_manifest_parse(a, buf_str(&b), STR_NONE, &again, NULL) == 0 && again.n_layers == m.n_layers &&
		      str_eq(again.config.digest, m.config.digest), "what is written says the same");
	}
	buf_done(&b);
}

static void configuration(struct arena *a, str text)
{
	struct val v;
	const str *ids;
	if (json_decode(a, text, &(struct json_decode_options){ 0 }, &v, NULL) < 0)
		return;
	for (size_t n = 0; n < 4; n++)
		for (size_t i = 0; image_diff_ids(a, v, n, &ids, NULL) == 0 && i < n; i++)
			check(digest_is_valid(ids[i]), "layers have digests");
}

static void challenge(struct arena *a, str text)
{
	struct http_header header[2] = { { STR("www-authenticate"), text }, { STR("www-authenticate"), STR("Basic realm=x") } };
	struct auth_challenge c;
	auth_challenge_parse(a, header, 1, &c);
	check(c.scheme != AUTH_NONE || (!c.realm.n && !c.scope.n), "what cannot be answered says nothing");
	auth_challenge_parse(a, header, 2, &c);
	check(c.scheme != AUTH_NONE, "a second header counts");
}

static void credentials(struct arena *a, str text)
{
	static int fd = -1;
	char name[PATH_FD_TEXT];
	struct image_auth auth;
	if (fd < 0)
		fd = memfd_create("config.json", MFD_CLOEXEC);
	check(fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, text.p, text.n, 0) == (ssize_t)text.n, "a file can be made");
	char *files[] = { (char *)(uintptr_t)path_of_fd(fd, name), NULL };
	(void)auth_find(a, files, STR("docker.io"), STR("library/nginx"), &auth, NULL);
	(void)auth_find(a, files, STR("r.io:5000"), STR("a/b"), &auth, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct arena a = ARENA_INIT;
	if (n < 1 || n > INPUT_MAX)
		return 0;
	str text = arena_str(&a, str_span((const char *)data + 1, n - 1));
	switch (data[0]) {
	case 'r': reference(&a, text); break;
	case 'h': hosts(&a, text); break;
	case 'm': manifest(&a, text); break;
	case 'c': configuration(&a, text); break;
	case 'w': challenge(&a, text); break;
	case 'a': credentials(&a, text); break;
	default: break;
	}
	arena_done(&a);
	return 0;
}
