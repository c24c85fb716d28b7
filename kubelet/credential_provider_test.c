#include "kubelet/credential_provider.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fiber_test.h"
#include "base/file.h"
#include "base/path.h"
#include "codec/atoms.h"
#include "codec/codec.h"

#define HEADER "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\n"
#define VERSION "apiVersion: credentialprovider.kubelet.k8s.io/v1"
#define RESPONSE "{\"kind\":\"CredentialProviderResponse\",\"apiVersion\":\"credentialprovider.kubelet.k8s.io/v1\","

struct world {
	struct arena arena;
	char root[64];
	struct credential_providers *providers;
	struct buf found;
	const char *annotations;       /* of every service account */
	unsigned tokens;               /* how many were asked for; each is another one */
};

static void put(struct world *w, const char *name, const char *text, mode_t mode)
{
	CHECK_INT(file_replace(arena_printf(&w->arena, "%s/%s", w->root, name).p, str_of(text), mode, NULL), 0);
}

static struct val parse(struct arena *a, const char *json)
{
	struct val v = VAL_EMPTY;

	CHECK_INT(json_decode(a, str_of(json), &(const struct json_decode_options){ .sort_keys = true }, &v, NULL), 0);
	return v;
}

static int account(void *arg, struct arena *a, str namespace, str name, struct val *ret, struct err *err)
{
	struct world *w = arg;

	(void)err;
	*ret = parse(a, arena_printf(a, "{\"metadata\":{\"name\":\"" STR_FMT "\",\"namespace\":\"" STR_FMT "\",\"uid\":\"u-" STR_FMT
				     "\",\"annotations\":%s}}", STR_ARG(name), STR_ARG(namespace), STR_ARG(name), w->annotations).p);
	return 0;
}

static int token(void *arg, struct arena *a, str namespace, str name, struct val request, str *ret, struct err *err)
{
	struct world *w = arg;

	(void)namespace;
	(void)err;
	CHECK_STR(val_str(request, spec, boundObjectRef, uid), "p1");
	CHECK_STR(val_as_str(val_at(val_get(request, spec, audiences), 0)), "registry");
	*ret = arena_printf(a, "token-" STR_FMT "-%u", STR_ARG(name), ++w->tokens);
	return 0;
}

static void begin(struct world *w)
{
	*w = (struct world){ .root = "/tmp/kubelet-providers-XXXXXX", .found = BUF_INIT(65536), .annotations = "{}" };
	CHECK(mkdtemp(w->root));
}

static void end(struct world *w)
{
	int tree = path_open_tree("/tmp", NULL);

	credential_providers_free(w->providers);
	CHECK_INT(path_remove(tree, w->root + 5, NULL), 0);
	close(tree);
	buf_done(&w->found);
	arena_done(&w->arena);
}

/* The message of opening with this configuration; empty: it worked. */
static str open_with(struct world *w, const char *config)
{
	struct err err = ERR_INIT;
	struct credential_provider_options o = {
		.config = arena_printf(&w->arena, "%s/config.yaml", w->root).p, .bin_dir = w->root, .tokens = true, .service_account = account,
		.token = token, .arg = w,
	};

	credential_providers_free(w->providers);
	w->providers = NULL;
	if (config)
		put(w, "config.yaml", config, 0644);
	(void)credential_providers_open(&o, &w->providers, &err);
	return arena_str(&w->arena, err_str(&err));
}

static void found(void *arg, struct val auth, struct val of)
{
	struct world *w = arg;

	VAL_EACH_MEMBER(m, auth)
		buf_addf(&w->found, STR_FMT "=" STR_FMT ":" STR_FMT "@" STR_FMT "\n", STR_ARG(atom_str(m->key)), STR_ARG(val_str(m->val, username)),
			 STR_ARG(val_str(m->val, password)), STR_ARG(val_str(of, uid)));
}

static str ask_for(struct world *w, const char *image, const char *service_account)
{
	struct val pod = parse(&w->arena, arena_printf(&w->arena, "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"p1\"},"
						       "\"spec\":{\"serviceAccountName\":\"%s\"}}", service_account).p);

	buf_reset(&w->found);
	credential_providers_ask(w->providers, &w->arena, str_of(image), pod, found, w);
	return arena_str(&w->arena, buf_str(&w->found));
}

/* Programs that count their calls in the password. */
static const char counting[] =
	"#!/bin/sh\n"
	"cat > $0.in; echo x >> $0.calls\n"
	"echo '" RESPONSE "\"cacheKeyType\":\"'$1'\",'$LIFE'\"auth\":{\"r.test\":{\"username\":\"me\",\"password\":\"'$(wc -l < $0.calls)'\"}}}'\n";

static const char *counting_config(struct arena *a, const char *key, const char *life, const char *more)
{
	return arena_printf(a, HEADER "providers:\n- name: count\n  " VERSION "\n  matchImages: ['r.test', '*.test/a']\n  defaultCacheDuration: 1h\n"
			    "  args: [%s]\n  env: [{name: LIFE, value: '%s'}]\n%s", key, life, more).p;
}

FIBER_TEST(credential_provider_answers_are_kept)
{
	static const struct {
		const char *key, *life, *same, *other, *elsewhere; /* passwords for the same image, another of the registry, another registry */
	} rows[] = {
		{ "Image", "", "1", "2", "3" },
		{ "Registry", "", "1", "1", "2" },
		{ "Global", "", "1", "1", "1" },
		{ "Image", "\"cacheDuration\":\"0s\",", "2", "3", "4" },
		{ "Registry", "\"cacheDuration\":\"5m\",", "1", "1", "2" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct world w;
		begin(&w);
		put(&w, "count", counting, 0755);
		CHECK_STR_ROW(i, open_with(&w, counting_config(&w.arena, rows[i].key, rows[i].life, "")), "");
		CHECK_STR_ROW(i, ask_for(&w, "r.test/x", "sa"), "r.test=me:1@\n");
		CHECK_STR_ROW(i, ask_for(&w, "r.test/x", "sa"), arena_printf(&w.arena, "r.test=me:%s@\n", rows[i].same).p);
		CHECK_STR_ROW(i, ask_for(&w, "r.test/y", "sa"), arena_printf(&w.arena, "r.test=me:%s@\n", rows[i].other).p);
		CHECK_STR_ROW(i, ask_for(&w, "s.test/a", "sa"), arena_printf(&w.arena, "r.test=me:%s@\n", rows[i].elsewhere).p);
		CHECK_STR_ROW(i, ask_for(&w, "s.test/b", "sa"), "");
		CHECK_STR_ROW(i, ask_for(&w, "other.example/a", "sa"), "");
		end(&w);
	}
}

FIBER_TEST(credential_provider_request)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(65536);
	struct world w;

	begin(&w);
	put(&w, "count", counting, 0755);
	CHECK_STR(open_with(&w, counting_config(&w.arena, "Image", "", "")), "");
	(void)ask_for(&w, "r.test/x", "sa");
	CHECK_INT(file_read(arena_printf(&w.arena, "%s/count.in", w.root).p, &b, NULL), 0);
	CHECK_STR(buf_str(&b), "{\"kind\":\"CredentialProviderRequest\",\"apiVersion\":\"credentialprovider.kubelet.k8s.io/v1\",\"image\":\"r.test/x\"}");
	end(&w);
}

FIBER_TEST(credential_provider_with_tokens)
{
	static const char by_account[] = "  tokenAttributes: {serviceAccountTokenAudience: registry, cacheType: ServiceAccount, requireServiceAccount: true,"
		" requiredServiceAccountAnnotationKeys: [team], optionalServiceAccountAnnotationKeys: [more]}\n";
	static const char by_token[] = "  tokenAttributes: {serviceAccountTokenAudience: registry, cacheType: Token, requireServiceAccount: false}\n";
	CLEANUP(buf_done) struct buf b = BUF_INIT(65536);
	struct world w;

	begin(&w);
	put(&w, "count", counting, 0755);
	CHECK_STR(open_with(&w, counting_config(&w.arena, "Image", "", by_account)), "");
	CHECK_STR(ask_for(&w, "r.test/x", ""), "");
	CHECK_STR(ask_for(&w, "r.test/x", "a"), "");
	w.annotations = "{\"team\":\"t\",\"secret\":\"s\"}";
	CHECK_STR(ask_for(&w, "r.test/x", "a"), "r.test=me:1@u-a\n");
	CHECK_INT(file_read(arena_printf(&w.arena, "%s/count.in", w.root).p, &b, NULL), 0);
	CHECK_STR(buf_str(&b), "{\"kind\":\"CredentialProviderRequest\",\"apiVersion\":\"credentialprovider.kubelet.k8s.io/v1\",\"image\":\"r.test/x\","
		  "\"serviceAccountToken\":\"token-a-1\",\"serviceAccountAnnotations\":{\"team\":\"t\"}}");
	CHECK_STR(ask_for(&w, "r.test/x", "a"), "r.test=me:1@u-a\n");
	CHECK_STR(ask_for(&w, "r.test/x", "b"), "r.test=me:2@u-b\n");
	w.annotations = "{\"team\":\"u\"}";
	CHECK_STR(ask_for(&w, "r.test/x", "a"), "r.test=me:3@u-a\n");
	/* By token: another one asks again; without a service account there is none. */
	CHECK_STR(open_with(&w, counting_config(&w.arena, "Image", "", by_token)), "");
	CHECK_STR(ask_for(&w, "r.test/x", "a"), "r.test=me:4@u-a\n");
	CHECK_STR(ask_for(&w, "r.test/x", "a"), "r.test=me:5@u-a\n");
	CHECK_STR(ask_for(&w, "r.test/x", ""), "r.test=me:6@\n");
	CHECK_STR(ask_for(&w, "r.test/x", ""), "r.test=me:6@\n");
	/* The token itself as a password would be kept for too long. */
	put(&w, "count", "#!/bin/sh\necho '" RESPONSE "\"cacheKeyType\":\"Image\",\"auth\":{\"r.test\":{\"username\":\"me\",\"password\":\"'"
	    "$(sed 's/.*serviceAccountToken\":\"\\([^\"]*\\)\".*/\\1/')'\"}}}'\n", 0755);
	str echoed = ask_for(&w, "r.test/z", "a");
	CHECK_STR(echoed, arena_printf(&w.arena, "r.test=me:token-a-%u@u-a\n", w.tokens).p);
	CHECK_STR(open_with(&w, counting_config(&w.arena, "Image", "", by_account)), "");
	CHECK_STR(ask_for(&w, "r.test/z", "a"), "");
	end(&w);
}

struct asker {
	struct world *world;
	char password[16];
};

static void note_password(void *arg, struct val auth, struct val of)
{
	struct asker *a = arg;

	(void)of;
	VAL_EACH_MEMBER(m, auth)
		(void)snprintf(a->password, sizeof(a->password), STR_FMT, STR_ARG(val_str(m->val, password)));
}

static int ask_along(void *arg)
{
	struct asker *a = arg;
	struct world *w = a->world;

	credential_providers_ask(w->providers, &w->arena, STR("r.test/x"), parse(&w->arena, "{\"metadata\":{\"uid\":\"p1\"}}"), note_password, a);
	return 0;
}

/* However many ask at the same time, a program that takes long is run once, also when nothing of its answer may be kept. */
FIBER_TEST(credential_provider_is_asked_once_for_all)
{
	static const struct {
		const char *end, *password;
	} rows[] = {
		{ "", "1" },
		{ "exit 3\n", "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(buf_done) struct buf calls = BUF_INIT(100);
		struct asker askers[3];
		struct fiber *fibers[ARRAY_LEN(askers)];
		struct world w;
		begin(&w);
		put(&w, "count", arena_printf(&w.arena, "%ssleep 0.1\n%s", counting, rows[i].end).p, 0755);
		CHECK_STR_ROW(i, open_with(&w, counting_config(&w.arena, "Image", "\"cacheDuration\":\"0s\",", "")), "");
		for (size_t j = 0; j < ARRAY_LEN(askers); j++) {
			askers[j] = (struct asker){ .world = &w };
			fibers[j] = start(ask_along, &askers[j]);
		}
		for (size_t j = 0; j < ARRAY_LEN(askers); j++) {
			CHECK_INT(join(fibers[j]), 0);
			CHECK_STR_ROW(i, str_of(askers[j].password), rows[i].password);
		}
		CHECK_INT(file_read(arena_printf(&w.arena, "%s/count.calls", w.root).p, &calls, NULL), 0);
		CHECK_STR_ROW(i, buf_str(&calls), "x\n");
		end(&w);
	}
}

FIBER_TEST(credential_provider_programs_that_fail)
{
	static const char *const programs[] = {
		"#!/bin/sh\nexit 3\n",
		"#!/bin/sh\necho no json\n",
		"#!/bin/sh\necho '{\"kind\":\"CredentialProviderResponse\",\"apiVersion\":\"credentialprovider.kubelet.k8s.io/v1beta1\"}'\n",
		"#!/bin/sh\necho '{\"kind\":\"Other\",\"apiVersion\":\"credentialprovider.kubelet.k8s.io/v1\"}'\n",
		"#!/bin/sh\necho '" RESPONSE "\"cacheKeyType\":\"Never\",\"auth\":{\"r.test\":{\"username\":\"a\",\"password\":\"b\"}}}'\n",
		"#!/bin/sh\necho '" RESPONSE "\"cacheKeyType\":\"Image\",\"surprise\":1}'\n",
	};

	for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
		struct world w;
		begin(&w);
		put(&w, "count", programs[i], 0755);
		CHECK_STR_ROW(i, open_with(&w, counting_config(&w.arena, "Image", "", "")), "");
		CHECK_STR_ROW(i, ask_for(&w, "r.test/x", "sa"), "");
		end(&w);
	}
}

TEST(credential_provider_config)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
#define FAILED "failed to validate credential provider config: "
#define GOOD "- name: p\n  " VERSION "\n  matchImages: [a]\n  defaultCacheDuration: 1m\n"
		{ HEADER "providers:\n" GOOD, "" },
		{ HEADER, FAILED "providers: Required value: at least 1 item in plugins is required" },
		{ HEADER "providers:\n- name: a/b\n  " VERSION "\n  matchImages: [a]\n  defaultCacheDuration: 1m\n",
		  FAILED "providers.name: Invalid value: \"a/b\": provider name cannot contain '/'" },
		{ HEADER "providers:\n- name: p\n  apiVersion: v1\n  matchImages: []\n",
		  FAILED "[providers.apiVersion: Unsupported value: \"v1\": supported values: \"credentialprovider.kubelet.k8s.io/v1\", "
		  "\"credentialprovider.kubelet.k8s.io/v1alpha1\", \"credentialprovider.kubelet.k8s.io/v1beta1\", providers.matchImages: Required "
		  "value: at least 1 item in matchImages is required, providers.defaultCacheDuration: Required value]" },
		{ HEADER "providers:\n" GOOD GOOD, "duplicate provider name \"p\" found in configuration file(s)" },
		{ HEADER "providers:\n" GOOD "  tokenAttributes: {serviceAccountTokenAudience: a, requireServiceAccount: false, cacheType: x}\n",
		  FAILED "providers.tokenAttributes.cacheType: Unsupported value: \"x\": supported values: \"ServiceAccount\", \"Token\"" },
		{ HEADER "providers:\n" GOOD "  tokenAttributes: {serviceAccountTokenAudience: a, requireServiceAccount: true, cacheType: Token, "
		  "requiredServiceAccountAnnotationKeys: [k], optionalServiceAccountAnnotationKeys: [k]}\n",
		  FAILED "providers.tokenAttributes: Invalid value: []string{\"k\"}: annotation keys cannot be both required and optional" },
		{ HEADER "providers:\n- name: gone\n  " VERSION "\n  matchImages: [a]\n  defaultCacheDuration: 1m\n",
		  "plugin binary executable ROOT/gone did not exist" },
		{ HEADER "provider: []\n", "error decoding config \"ROOT/config.yaml\": strict decoding error: unknown field \"provider\"" },
		{ "kind: Pod\napiVersion: v1\n", "error decoding config \"ROOT/config.yaml\": no kind \"Pod\" is registered for version \"v1\"" },
#undef FAILED
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct world w;
		begin(&w);
		put(&w, "p", "#!/bin/sh\n", 0755);
		str got = open_with(&w, rows[i].text), want = str_of(rows[i].want);
		ptrdiff_t root = str_find(want, STR("ROOT"));
		if (root >= 0)
			want = arena_printf(&w.arena, STR_FMT "%s" STR_FMT, STR_ARG(str_head(want, (size_t)root)), w.root,
					    STR_ARG(str_skip(want, (size_t)root + 4)));
		CHECK_STR_ROW(i, got, arena_str(&w.arena, want).p);
		end(&w);
	}
}

TEST(credential_provider_config_of_a_folder)
{
	struct world w;
	struct err err = ERR_INIT;
	struct val list;

	begin(&w);
	CHECK_INT(credential_provider_config(&w.arena, w.root, true, &list, &err), -ERR_INVALID);
	CHECK_STR(err_str(&err), arena_printf(&w.arena, "no configuration files found in directory \"%s\"", w.root).p);
	put(&w, "b.yml", HEADER "providers:\n- name: second\n  " VERSION "\n  matchImages: [a]\n  defaultCacheDuration: 1m\n", 0644);
	put(&w, "a.json", "{\"apiVersion\":\"kubelet.config.k8s.io/v1beta1\",\"kind\":\"CredentialProviderConfig\",\"providers\":[{\"name\":\"first\","
	    "\"apiVersion\":\"credentialprovider.kubelet.k8s.io/v1beta1\",\"matchImages\":[\"x\"],\"defaultCacheDuration\":\"0s\"}]}", 0644);
	put(&w, "c.txt", "nothing", 0644);
	CHECK_INT(credential_provider_config(&w.arena, w.root, true, &list, &err), 0);
	CHECK_INT(val_len(list), 2);
	CHECK_STR(val_str(val_at(list, 0), name), "first");
	CHECK_STR(val_str(val_at(list, 1), name), "second");
	end(&w);
}
