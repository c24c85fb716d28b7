#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "kubelet/cri_config_testing.h"

TEST(env_expand_table)
{
	static const struct {
		const char *in, *want;
	} t[] = {
		{ "", "" },
		{ "plain", "plain" },
		{ "$(A)", "1" },
		{ "x$(A)y$(B)z", "x1y$(A)z" }, /* what was put in is not looked at again */
		{ "$(NONE)", "$(NONE)" },
		{ "$$(A)", "$(A)" },
		{ "$$$(A)", "$1" },
		{ "$$", "$" },
		{ "$", "$" },
		{ "a$", "a$" },
		{ "$(", "$(" },
		{ "$(A", "$(A" },
		{ "$(A$(A)", "$(A$(A)" }, /* the name is "A$(A" */
		{ "$()", "$()" },
		{ "$A $(A)", "$A 1" },
		{ "$\xc3\xa9$(A)", "$\xc3\xa9" "1" },
		{ "$($($(", "$($($(" },
		{ "$(EMPTY)|", "|" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct val env = testing_typed(&a, NULL, "[{'key':'A','value':'0'},{'key':'B','value':'$(A)'},{'key':'EMPTY'},{'key':'A','value':'1'}]");
		CHECK_STR_ROW(i, env_expand(&a, str_of(t[i].in), env), t[i].want);
	}
}

static const char config_maps[] = "{'cm':{'data':{'k':'v','other':'o'}}}";
static const char secrets[] = "{'se':{'data':{'k':'c2VjcmV0','bin':'AP8='}}}";

static unsigned asked;

static int find(struct arena *a, const char *objects, str namespace, str name, struct val *ret, struct err *err)
{
	asked++;
	CHECK_STR(namespace, "ns");
	if (str_eq(name, STR("broken")))
		return err_set(err, ERR_UNAVAILABLE, "failed to sync cache: timed out waiting for the condition");
	*ret = val_find(testing_typed(a, NULL, objects), name);
	return val_exists(*ret) ? 0 : err_set(err, ERR_NOT_FOUND, "something else");
}

static int find_config_map(void *arg, struct arena *a, str namespace, str name, struct val *ret, struct err *err)
{
	(void)arg;
	return find(a, config_maps, namespace, name, ret, err);
}

static int find_secret(void *arg, struct arena *a, str namespace, str name, struct val *ret, struct err *err)
{
	(void)arg;
	return find(a, secrets, namespace, name, ret, err);
}

static struct val list_services(void *arg, struct arena *a)
{
	return arg ? testing_typed(a, NULL, arg) : VAL_EMPTY_LIST;
}

static const struct cri_lookups lookups = { find_config_map, find_secret, list_services, NULL };

static str env_text(struct arena *a, const struct kubelet_node *n, const struct cri_lookups *l, struct val pod)
{
	struct cri_container_input in = { .pod = pod, .container = testing_container(pod), .image_uid = -1 };
	struct err err = ERR_INIT;
	struct val env = VAL_EMPTY;
	int r = container_env_make(n, l, a, &in, &env, &err);
	struct val_builder b = val_builder(a);

	VAL_EACH(e, env)
		val_add_member(&b, atom_make(a, val_str(*e, key)), val_get(*e, value));
	return testing_shown(a, r, val_end_object(&b), &err);
}

TEST(env_of_objects)
{
	static const struct {
		const char *container, *want;
	} t[] = {
		{ "'env':[{'name':'A','value':'1'},{'name':'B','value':'$(A)$(C)'},{'name':'C','value':'3'},{'name':'A','value':'2'}],",
		  "{'A':'2','B':'1$(C)','C':'3'}" },
		{ "'env':[{'name':'EMPTY'}],", "{'EMPTY':''}" },
		{ "'envFrom':[{'configMapRef':{'name':'cm'}},{'prefix':'S_','secretRef':{'name':'se'}}],'env':[{'name':'k','value':'$(S_k)'}],",
		  "{'k':'secret','other':'o','S_k':'secret','S_bin':'?'}" },
		{ "'envFrom':[{'configMapRef':{'name':'nope'}}],", "! configmap 'nope' not found" },
		{ "'envFrom':[{'secretRef':{'name':'nope'}}],", "! secret 'nope' not found" },
		{ "'envFrom':[{'configMapRef':{'name':'nope','optional':true}},{'secretRef':{'name':'nope','optional':true}}],", "{}" },
		{ "'envFrom':[{'configMapRef':{'name':'broken','optional':true}}],",
		  "! failed to sync cache: timed out waiting for the condition" },
		{ "'env':[{'name':'X','valueFrom':{'configMapKeyRef':{'name':'cm','key':'k'}}}],", "{'X':'v'}" },
		{ "'env':[{'name':'X','valueFrom':{'secretKeyRef':{'name':'se','key':'k'}}}],", "{'X':'secret'}" },
		{ "'env':[{'name':'X','valueFrom':{'configMapKeyRef':{'name':'cm','key':'z'}}}],",
		  "! couldn't find key z in ConfigMap ns/cm" },
		{ "'env':[{'name':'X','valueFrom':{'secretKeyRef':{'name':'se','key':'z'}}}],", "! couldn't find key z in Secret ns/se" },
		{ "'env':[{'name':'X','valueFrom':{'secretKeyRef':{'name':'nope','key':'z'}}}],", "! secret 'nope' not found" },
		/* Left out, so that what refers to it stays. */
		{ "'env':[{'name':'X','valueFrom':{'secretKeyRef':{'name':'nope','key':'z','optional':true}}},{'name':'Y','value':'$(X)'}],",
		  "{'Y':'$(X)'}" },
		{ "'env':[{'name':'X','valueFrom':{'configMapKeyRef':{'name':'cm','key':'z','optional':true}}}],", "{}" },
		{ "'env':[{'name':'X','valueFrom':{'fieldRef':{'apiVersion':'v1','fieldPath':'metadata.name'}}}],", "{'X':'p'}" },
		{ "'env':[{'name':'X','valueFrom':{'resourceFieldRef':{'resource':'limits.cpu','divisor':'0'}}}],", "{'X':'4'}" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct kubelet_node n = testing_node();
		str got = testing_swap(&a, env_text(&a, &n, &lookups, testing_pod(&a, "", t[i].container, "")), '"', '\'');
		str want = arena_str(&a, str_of(t[i].want));
		ptrdiff_t bytes = str_find(want, STR("'?'"));
		if (bytes > 0) { /* bytes that are no text show that they have come through */
			CHECK(str_find(got, STR("'S_bin':'")) > 0);
			got = str_head(got, (size_t)bytes);
			want = str_head(want, (size_t)bytes);
		}
		CHECK_STR_ROW(i, got, arena_str(&a, want).p);
	}
}

TEST(env_asks_once_for_an_object)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct kubelet_node n = testing_node();
	struct val pod = testing_pod(&a, "", "'envFrom':[{'secretRef':{'name':'se'}}],'env':[{'name':'X','valueFrom':{'secretKeyRef':{'name':'se','key':'k'}}}],", "");

	asked = 0;
	(void)env_text(&a, &n, &lookups, pod);
	CHECK_INT(asked, 1);
}

#define SERVICES                                                                                                                        \
	"[{'metadata':{'name':'my-svc','namespace':'ns'},'spec':{'clusterIP':'10.0.0.1','ports':[{'name':'http','protocol':'TCP','port':80}," \
	"{'name':'o-x','protocol':'UDP','port':81}]}},"                                                                                   \
	"{'metadata':{'name':'headless','namespace':'ns'},'spec':{'clusterIP':'None','ports':[{'port':80}]}},"                            \
	"{'metadata':{'name':'else','namespace':'other'},'spec':{'clusterIP':'10.0.0.2','ports':[{'port':80}]}},"                         \
	"{'metadata':{'name':'kubernetes','namespace':'default'},'spec':{'clusterIP':'fd00::1','ports':[{'port':443}]}}"

#define KUBERNETES                                                                                                                     \
	"'KUBERNETES_SERVICE_HOST':'fd00::1','KUBERNETES_SERVICE_PORT':'443','KUBERNETES_PORT':'tcp://[fd00::1]:443',"                    \
	"'KUBERNETES_PORT_443_TCP':'tcp://[fd00::1]:443','KUBERNETES_PORT_443_TCP_PROTO':'tcp','KUBERNETES_PORT_443_TCP_PORT':'443',"     \
	"'KUBERNETES_PORT_443_TCP_ADDR':'fd00::1'"

TEST(env_of_services)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct kubelet_node n = testing_node();
	struct cri_lookups l = lookups;
	struct val pod = testing_pod(&a, "", "'env':[{'name':'X','value':'$(MY_SVC_SERVICE_PORT_O_X)'},{'name':'MY_SVC_PORT','value':'mine'}],", "");

	l.arg = SERVICES "]";
	CHECK_STR(env_text(&a, &n, &l, pod),
		  "{'X':'81','MY_SVC_PORT':'mine','MY_SVC_SERVICE_HOST':'10.0.0.1','MY_SVC_SERVICE_PORT':'80','MY_SVC_SERVICE_PORT_HTTP':'80',"
		  "'MY_SVC_SERVICE_PORT_O_X':'81','MY_SVC_PORT_80_TCP':'tcp://10.0.0.1:80','MY_SVC_PORT_80_TCP_PROTO':'tcp',"
		  "'MY_SVC_PORT_80_TCP_PORT':'80','MY_SVC_PORT_80_TCP_ADDR':'10.0.0.1','MY_SVC_PORT_81_UDP':'udp://10.0.0.1:81',"
		  "'MY_SVC_PORT_81_UDP_PROTO':'udp','MY_SVC_PORT_81_UDP_PORT':'81','MY_SVC_PORT_81_UDP_ADDR':'10.0.0.1'," KUBERNETES "}");

	/* Without links there is still that of the cluster. */
	pod = val_with(&a, testing_pod(&a, "", "", ""), val_of_bool(false), spec, enableServiceLinks);
	CHECK_STR(env_text(&a, &n, &l, pod), "{" KUBERNETES "}");

	/* One of that name in the namespace goes before it, with all of its variables. */
	l.arg = SERVICES ",{'metadata':{'name':'kubernetes','namespace':'ns'},'spec':{'clusterIP':'10.0.0.9','ports':[{'port':1}]}}]";
	str got = env_text(&a, &n, &l, testing_pod(&a, "", "", ""));
	CHECK(str_find(got, STR("'KUBERNETES_SERVICE_HOST':'10.0.0.9'")) > 0);
	CHECK(str_find(got, STR("443")) < 0);
}

static struct val no_services_yet(void *arg, struct arena *a)
{
	(void)arg;
	(void)a;
	return VAL_EMPTY;
}

TEST(env_waits_for_services)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct kubelet_node n = testing_node();
	struct cri_lookups l = lookups, none = { 0 };

	l.services = no_services_yet;
	CHECK_STR(env_text(&a, &n, &l, testing_pod(&a, "", "", "")), "! services have not yet been read at least once, cannot construct envvars");
	/* A pod of a file cannot wait for an API server that it may be itself. */
	CHECK_STR(env_text(&a, &n, &l, testing_pod(&a, "", "", "'annotations':{'kubernetes.io/config.source':'file'},")), "{}");
	CHECK_STR(env_text(&a, &n, &none, testing_pod(&a, "", "'envFrom':[{'configMapRef':{'name':'cm'}}],", "")),
		  "! couldn't get configMap ns/cm, no kubeClient defined");
	CHECK_STR(env_text(&a, &n, &none, val_without(&a, testing_pod(&a, "", "", ""), spec, enableServiceLinks)),
		  "! nil pod.spec.enableServiceLinks encountered, cannot construct envvars");
}

TEST(env_is_bounded)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);
	struct kubelet_node n = testing_node();

	/* One that doubles with each line; and many that are large only together. */
	for (int last = 39; last >= 17; last -= 22) {
		buf_reset(&b);
		buf_add(&b, STR("'env':[{'name':'V0','value':'xxxxxxxxxxxxxxxx'}"));
		for (int i = 1; i <= last; i++)
			buf_addf(&b, ",{'name':'V%d','value':'$(V%d)$(V%d)'}", i, i - 1, i - 1);
		for (int i = 0; i < 20; i++)
			buf_addf(&b, ",{'name':'W%d','value':'$(V%d)'}", i, last);
		buf_add(&b, STR("],"));
		CHECK_STR(env_text(&a, &n, &lookups, testing_pod(&a, "", b.p, "")), "! environment is larger than 16777216 bytes");
		CHECK(a.used < (size_t)128 << 20);
	}
}

/* ---- files ---- */

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static str file_env(struct arena *a, const char *content, const char *ref)
{
	char root[] = "/tmp/c8s-env-XXXXXX";
	struct kubelet_node n = testing_node();
	struct err err = ERR_INIT;

	CHECK(mkdtemp(root) != NULL);
	n.root = str_of(root);
	str folder = arena_printf(a, "%s/pods/u1/volumes/kubernetes.io~empty-dir/v", root);
	CHECK_INT(file_make_dirs(folder.p, 0700, &err), 0);
	CHECK_INT(file_replace(arena_join(a, folder, STR("/f.env")).p, str_of(content), 0600, &err), 0);
	CHECK_INT(file_replace(arena_printf(a, "%s/outside", root).p, STR("K='stolen'\n"), 0600, &err), 0);
	CHECK_INT(symlink("../../../../../outside", arena_join(a, folder, STR("/link")).p), 0);
	CHECK_INT(mkfifo(arena_join(a, folder, STR("/pipe")).p, 0600), 0);
	str container = arena_printf(a, "'env':[{'name':'X','valueFrom':{'fileKeyRef':{%s}}}],", ref);
	str got = env_text(a, &n, &lookups, testing_pod(a, "'volumes':[{'name':'v','emptyDir':{}},{'name':'h','hostPath':{'path':'/'}}],", container.p, ""));
	nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	ptrdiff_t at = str_find(got, str_of(root));
	return at < 0 ? got : arena_printf(a, STR_FMT "ROOT" STR_FMT, STR_ARG(str_head(got, (size_t)at)), STR_ARG(str_skip(got, (size_t)at + strlen(root))));
}

TEST(env_of_files)
{
	static const char of_file[] = "'volumeName':'v','path':'f.env','key':'K'";
	static const struct {
		const char *content, *ref, *want;
	} t[] = {
		{ "K='v'\n", of_file, "{'X':'v'}" },
		{ "# c\n\n  A='1'\n\tK='a#b' # c\nK='second'\nwrong\n", of_file, "{'X':'a#b'}" },
		{ "K='one\r\ntwo\n three'", of_file, "{'X':'one\\ntwo\\n three'}" },
		{ "A='x\nK=no'\nK='yes'\n", of_file, "{'X':'yes'}" },
		{ "A='1'\n", of_file,
		  "! environment variable key 'K' not found in file 'ROOT/pods/u1/volumes/kubernetes.io~empty-dir/v/f.env'" },
		{ "A='1'\n", "'volumeName':'v','path':'f.env','key':'K','optional':true", "{}" },
		{ "K= 'v'\n", "'volumeName':'v','path':'f.env','key':'K','optional':true", "{}" },
		{ "K=v\n", of_file, "! couldn't parse env file" },
		{ "K ='v'\n", of_file, "! couldn't parse env file" },
		{ "K='v' w\n", of_file, "! couldn't parse env file" },
		{ "K='v\n", of_file, "! couldn't parse env file" },
		{ "K\n", of_file, "! couldn't parse env file" },
		{ "='v'\n", of_file, "! couldn't parse env file" },
		{ "", "'volumeName':'v','path':'none','key':'K'", "! couldn't parse env file" },
		{ "", "'volumeName':'w','path':'f.env','key':'K'", "! cannot find the volume 'w' referenced by FileKeyRef" },
		{ "", "'volumeName':'h','path':'f.env','key':'K'", "! cannot find the volume 'h' referenced by FileKeyRef" },
		/* What a container has put there leads nowhere else, and nobody waits for it. */
		{ "", "'volumeName':'v','path':'link','key':'K'", "! couldn't parse env file" },
		{ "", "'volumeName':'v','path':'../../../../../outside','key':'K'", "! couldn't parse env file" },
		{ "", "'volumeName':'v','path':'pipe','key':'K'", "! couldn't parse env file" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		CHECK_STR_ROW(i, testing_swap(&a, file_env(&a, t[i].content, t[i].ref), '"', '\''), t[i].want);
	}
}
