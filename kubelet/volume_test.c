#include "kubelet/volume.h"

#include <inttypes.h>
#include <linux/loop.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "base/clock.h"
#include "base/log.h"
#include "codec/atoms.h"
#include "kubelet/volume_testing.h"

/* A cluster of objects that the test changes. */
struct world {
	struct place place;
	struct kubelet_node node;
	struct volumes *volumes;
	struct val config_maps, secrets, claims, persistent, node_object; /* by name */
	int tokens;                      /* how many were asked for */
	bool tokens_fail, recursive;
	struct kubelet_hooks hooks;
	str events;
	int64_t token_life_s;
};

static int find_by_name(struct val all, str name, struct val *ret, struct err *err)
{
	*ret = val_find(all, name);
	return val_exists(*ret) ? 0 : err_set(err, ERR_NOT_FOUND, "things \"" STR_FMT "\" not found", STR_ARG(name));
}

static int get_config_map(void *arg, struct arena *a, str namespace, str name, struct val *ret, struct err *err)
{
	(void)a;
	CHECK_STR(namespace, "ns");
	return find_by_name(((struct world *)arg)->config_maps, name, ret, err);
}

static int get_secret(void *arg, struct arena *a, str namespace, str name, struct val *ret, struct err *err)
{
	(void)a;
	CHECK_STR(namespace, "ns");
	return find_by_name(((struct world *)arg)->secrets, name, ret, err);
}

static int get_claim(void *arg, struct arena *a, str namespace, str name, struct val *ret, struct err *err)
{
	(void)a, (void)namespace;
	return find_by_name(((struct world *)arg)->claims, name, ret, err);
}

static int get_persistent(void *arg, struct arena *a, str name, struct val *ret, struct err *err)
{
	(void)a;
	return find_by_name(((struct world *)arg)->persistent, name, ret, err);
}

static int get_token(void *arg, struct arena *a, struct val pod, str audience, int64_t *life_s, str *ret_token, int64_t *ret_expiry_s,
		     struct err *err)
{
	struct world *w = arg;

	(void)pod;
	if (w->tokens_fail)
		return err_set(err, ERR_UNAVAILABLE, "the server is away");
	*ret_token = arena_printf(a, "token %d for " STR_FMT, ++w->tokens, STR_ARG(audience));
	*life_s = w->token_life_s;
	*ret_expiry_s = clock_wall_ns() / NS_PER_S + w->token_life_s;
	return 0;
}

static struct val get_node(void *arg, struct arena *a)
{
	(void)a;
	return ((struct world *)arg)->node_object;
}

static bool can_recursive(void *arg, struct val pod)
{
	(void)pod;
	return ((struct world *)arg)->recursive;
}

static void add_event(void *arg, struct val pod, bool warning, const char *reason, str message)
{
	struct world *w = arg;

	(void)pod;
	w->events = arena_printf(&w->place.arena, STR_FMT "%s %s: " STR_FMT "\n", STR_ARG(w->events), warning ? "Warning" : "Normal", reason,
				 STR_ARG(message));
}

static void world_init(struct world *w)
{
	*w = (struct world){ .token_life_s = 3600, .hooks = { .event = add_event, .arg = w } };
	place_init(&w->place);
	w->node = (struct kubelet_node){ .name = STR("n1"), .root = str_of(in(&w->place, "root")), .memory_bytes = INT64_C(8) << 30,
					 .cpus_milli = 2000, .hooks = &w->hooks };
	struct volumes_options o = { .node = &w->node, .lookups = { .config_map = get_config_map, .secret = get_secret, .arg = w },
				     .token = get_token, .claim = get_claim, .persistent = get_persistent, .node_object = get_node,
				     .recursive_readonly = can_recursive, .arg = w };
	w->volumes = volumes_new(&o);
}

static void world_done(struct world *w)
{
	volumes_free(w->volumes);
	place_done(&w->place);
}

/* A pod with these volumes, all mounted into container c at /<name>. */
static struct val pod_with(struct world *w, const char *uid, const char *more, const char *volumes)
{
	struct arena *a = &w->place.arena;
	struct val list = tree(a, volumes);
	str mounts = STR("");

	VAL_EACH(v, list)
		mounts = arena_printf(a, STR_FMT "%s{\"name\":\"" STR_FMT "\",\"mountPath\":\"/" STR_FMT "\"}", STR_ARG(mounts),
				      mounts.n ? "," : "", STR_ARG(val_str(*v, name)), STR_ARG(val_str(*v, name)));
	return tree(a, arena_printf(a, "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"%s\",\"labels\":{\"l\":\"x\"}},"
				    "\"spec\":{\"serviceAccountName\":\"default\",%s\"containers\":[{\"name\":\"c\",\"resources\":"
				    "{\"limits\":{\"cpu\":\"100m\"}},\"volumeMounts\":[" STR_FMT "]}],\"volumes\":%s}}",
				    uid, more, STR_ARG(mounts), volumes).p);
}

static void mount_ok(struct world *w, struct val pod)
{
	struct err err = ERR_INIT;

	if (volumes_mount(w->volumes, pod, &err) < 0)
		fail_msg("%s", err.msg);
}

static const char *volume_path(struct world *w, const char *uid, const char *below)
{
	return in(&w->place, arena_printf(&w->place.arena, "root/pods/%s/volumes/kubernetes.io~%s", uid, below).p);
}

static str content(struct world *w, const char *uid, const char *below) { return get(&w->place, volume_path(w, uid, below)); }

MOUNT_TEST(volumes_of_content)
{
	struct world w;

	world_init(&w);
	struct arena *a = &w.place.arena;
	w.config_maps = tree(a, "{\"cm\":{\"data\":{\"a\":\"1\",\"b\":\"2\"},\"binaryData\":{\"bin\":\"AAE=\"}}}");
	w.secrets = tree(a, "{\"se\":{\"data\":{\"u\":\"bWU=\",\"p\":\"cHc=\"}}}");
	struct val pod = pod_with(&w, "u1", "",
		"[{\"name\":\"cm\",\"configMap\":{\"name\":\"cm\",\"defaultMode\":420}},"
		"{\"name\":\"items\",\"configMap\":{\"name\":\"cm\",\"defaultMode\":420,\"items\":[{\"key\":\"a\",\"path\":\"x/y\",\"mode\":384},"
		"{\"key\":\"bin\",\"path\":\"z\"}]}},"
		"{\"name\":\"gone\",\"configMap\":{\"name\":\"nope\",\"optional\":true,\"defaultMode\":420}},"
		"{\"name\":\"optkey\",\"configMap\":{\"name\":\"cm\",\"optional\":true,\"defaultMode\":256,\"items\":["
		"{\"key\":\"none\",\"path\":\"n\"},{\"key\":\"a\",\"path\":\"a\"}]}},"
		"{\"name\":\"se\",\"secret\":{\"secretName\":\"se\",\"defaultMode\":288}},"
		"{\"name\":\"dw\",\"downwardAPI\":{\"defaultMode\":420,\"items\":[{\"path\":\"labels\",\"fieldRef\":{\"apiVersion\":\"v1\","
		"\"fieldPath\":\"metadata.labels\"}},{\"path\":\"cpu\",\"mode\":256,\"resourceFieldRef\":{\"containerName\":\"c\","
		"\"resource\":\"limits.cpu\",\"divisor\":\"1m\"}}]}},"
		"{\"name\":\"pr\",\"projected\":{\"defaultMode\":416,\"sources\":[{\"configMap\":{\"name\":\"cm\",\"items\":[{\"key\":\"a\","
		"\"path\":\"all/a\"}]}},{\"secret\":{\"name\":\"se\",\"items\":[{\"key\":\"u\",\"path\":\"all/u\",\"mode\":256}]}},"
		"{\"downwardAPI\":{\"items\":[{\"path\":\"n\",\"fieldRef\":{\"apiVersion\":\"v1\",\"fieldPath\":\"metadata.name\"}}]}},"
		"{\"serviceAccountToken\":{\"path\":\"token\",\"expirationSeconds\":600,\"audience\":\"me\"}}]}}]");
	mount_ok(&w, pod);
	CHECK_STR(content(&w, "u1", "configmap/cm/a"), "1");
	CHECK_INT(content(&w, "u1", "configmap/cm/bin").n, 2);
	CHECK_STR(content(&w, "u1", "configmap/items/x/y"), "1");
	CHECK_STR(content(&w, "u1", "configmap/items/b"), "(none)");
	CHECK_STR(content(&w, "u1", "configmap/optkey/a"), "1");
	CHECK_STR(content(&w, "u1", "secret/se/u"), "me");
	CHECK_STR(content(&w, "u1", "downward-api/dw/labels"), "l=\"x\"");
	CHECK_STR(content(&w, "u1", "downward-api/dw/cpu"), "100");
	CHECK_STR(content(&w, "u1", "projected/pr/all/u"), "me");
	CHECK_STR(content(&w, "u1", "projected/pr/token"), "token 1 for me");
	/* As the recorded ones: on the disk 777, in memory 1777. */
	CHECK_INT(mode_of(volume_path(&w, "u1", "configmap/cm")), 0777);
	CHECK_INT(mode_of(volume_path(&w, "u1", "secret/se")), 01777);
	CHECK_INT(mode_of(volume_path(&w, "u1", "projected/pr")), 01777);
	CHECK_INT(mode_of(volume_path(&w, "u1", "configmap/cm/..data/a")), 0644);
	CHECK_INT(mode_of(volume_path(&w, "u1", "configmap/items/..data/x/y")), 0600);
	CHECK_INT(mode_of(volume_path(&w, "u1", "configmap/optkey/..data/a")), 0400);
	CHECK_INT(mode_of(volume_path(&w, "u1", "secret/se/..data/u")), 0440);
	CHECK_INT(mode_of(volume_path(&w, "u1", "downward-api/dw/..data/cpu")), 0400);
	CHECK_INT(mode_of(volume_path(&w, "u1", "projected/pr/..data/all/a")), 0640);
	CHECK_INT(mode_of(volume_path(&w, "u1", "projected/pr/..data/token")), 0640);
	CHECK(volume_is_mounted(volume_path(&w, "u1", "secret/se")) && !volume_is_mounted(volume_path(&w, "u1", "configmap/cm")));

	w.config_maps = tree(a, "{\"cm\":{\"data\":{\"a\":\"new\"}}}");
	CHECK_INT(volumes_refresh(w.volumes, pod, NULL), -ERR_NOT_FOUND); /* the key that items names is gone */
	CHECK_STR(content(&w, "u1", "configmap/cm/a"), "new");
	CHECK_STR(content(&w, "u1", "configmap/cm/b"), "(none)");
	CHECK_STR(content(&w, "u1", "configmap/items/x/y"), "1");
	CHECK_STR(content(&w, "u1", "projected/pr/all/a"), "new");

	struct err err = ERR_INIT;
	struct val pods = volumes_pods(w.volumes, a);
	CHECK(val_len(pods) == 1 && str_eq(val_as_str(val_at(pods, 0)), STR("u1")));
	if (volumes_unmount(w.volumes, STR("u1"), &err) < 0)
		fail_msg("%s", err.msg);
	CHECK(access(in(&w.place, "root/pods/u1"), F_OK) < 0);
	CHECK_INT(val_len(volumes_pods(w.volumes, a)), 0);
	CHECK_INT(volumes_unmount(w.volumes, STR("u1"), NULL), 0);
	CHECK(volumes_unmount(w.volumes, STR("../u1"), NULL) < 0);
	world_done(&w);
}

MOUNT_TEST(volumes_for_a_group)
{
	struct world w;

	world_init(&w);
	w.secrets = tree(&w.place.arena, "{\"se\":{\"data\":{\"u\":\"bWU=\"}}}");
	struct val pod = pod_with(&w, "u1", "\"securityContext\":{\"runAsUser\":1000,\"fsGroup\":3000},",
		"[{\"name\":\"se\",\"secret\":{\"secretName\":\"se\",\"defaultMode\":288}},{\"name\":\"e\",\"emptyDir\":{}},"
		"{\"name\":\"pr\",\"projected\":{\"defaultMode\":420,\"sources\":[{\"serviceAccountToken\":{\"path\":\"token\"}}]}}]");
	struct stat st;
	mount_ok(&w, pod);
	CHECK_INT(mode_of(volume_path(&w, "u1", "secret/se")), 03777);
	CHECK_INT(mode_of(volume_path(&w, "u1", "secret/se/..data/u")), 0440);
	CHECK_INT(stat(volume_path(&w, "u1", "secret/se/..data/."), &st), 0);
	CHECK_INT(st.st_mode & 07777, 02755);
	CHECK_INT(group_of(volume_path(&w, "u1", "secret/se/..data/u")), 3000);
	CHECK_INT(group_of(volume_path(&w, "u1", "secret/se/..data")), 3000);
	CHECK_INT(group_of(volume_path(&w, "u1", "secret/se/u")), 3000);
	CHECK_INT(mode_of(volume_path(&w, "u1", "empty-dir/e")), 02777);
	CHECK_INT(group_of(volume_path(&w, "u1", "empty-dir/e")), 3000);
	/* A token is for the pod's user alone, and for the group to read. */
	CHECK_INT(mode_of(volume_path(&w, "u1", "projected/pr/..data/token")), 0640);
	CHECK_INT(stat(volume_path(&w, "u1", "projected/pr/..data/token"), &st), 0);
	CHECK_INT(st.st_uid, 1000);
	/* With fs.protected_symlinks, root itself may not follow this one. */
	CHECK_INT(lstat(volume_path(&w, "u1", "projected/pr/token"), &st), 0);
	CHECK_INT(st.st_uid, 1000);
	/* What the pod has made meanwhile stays as it is. */
	CHECK_INT(file_write(volume_path(&w, "u1", "empty-dir/e/own"), STR(""), 0600, NULL), 0);
	mount_ok(&w, pod);
	CHECK_INT(mode_of(volume_path(&w, "u1", "empty-dir/e/own")), 0600);
	CHECK_INT(volumes_unmount(w.volumes, STR("u1"), NULL), 0);
	world_done(&w);
}

MOUNT_TEST(volumes_that_cannot_be_mounted)
{
	static const struct { const char *volume, *text; } t[] = {
		{ "\"configMap\":{\"name\":\"nope\",\"defaultMode\":420}", "MountVolume.SetUp failed for volume \"v\" : configmap \"nope\" not found" },
		{ "\"secret\":{\"secretName\":\"nope\",\"defaultMode\":420}", "MountVolume.SetUp failed for volume \"v\" : secret \"nope\" not found" },
		{ "\"configMap\":{\"name\":\"cm\",\"defaultMode\":420,\"items\":[{\"key\":\"zz\",\"path\":\"zz\"}]}",
		  "MountVolume.SetUp failed for volume \"v\" : configmap references non-existent config key: zz" },
		{ "\"secret\":{\"secretName\":\"se\",\"defaultMode\":420,\"items\":[{\"key\":\"zz\",\"path\":\"zz\"}]}",
		  "MountVolume.SetUp failed for volume \"v\" : references non-existent secret key: zz" },
		{ "\"projected\":{\"defaultMode\":420,\"sources\":[{\"secret\":{\"name\":\"x\"}},{\"configMap\":{\"name\":\"y\"}},"
		  "{\"secret\":{\"name\":\"x\"}}]}",
		  "MountVolume.SetUp failed for volume \"v\" : [secret \"x\" not found, configmap \"y\" not found]" },
		{ "\"projected\":{\"defaultMode\":420,\"sources\":[{\"serviceAccountToken\":{\"path\":\"t\"}}]}",
		  "MountVolume.SetUp failed for volume \"v\" : failed to fetch token: the server is away" },
		{ "\"csi\":{\"driver\":\"nosuch.example.test\"}",
		  "MountVolume.SetUp failed for volume \"v\" : kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: driver name "
		  "nosuch.example.test not found in the list of registered CSI drivers" },
		{ "\"hostPath\":{\"path\":\"/dev/null\",\"type\":\"Directory\"}",
		  "MountVolume.SetUp failed for volume \"v\" : hostPath type check failed: /dev/null is not a directory" },
		{ "\"emptyDir\":{\"medium\":\"HugePages\"}", "MountVolume.SetUp failed for volume \"v\" : medium HugePages: hugePages storage "
		  "requested, but there is no resource request for huge pages" },
		{ "\"emptyDir\":{\"medium\":\"Paper\"}", "MountVolume.SetUp failed for volume \"v\" : unknown storage medium \"Paper\"" },
		{ "\"iscsi\":{}", "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to process volumes=[v]: "
		  "failed to get Plugin from volumeSpec for volume \"v\" err=no volume plugin matched" },
		{ "\"persistentVolumeClaim\":{\"claimName\":\"none\"}", "Unable to attach or mount volumes: unmounted volumes=[v], unattached "
		  "volumes=[], failed to process volumes=[v]: error processing PVC ns/none: failed to fetch PVC from API server: things \"none\" "
		  "not found" },
		{ "\"persistentVolumeClaim\":{\"claimName\":\"pending\"}", "Unable to attach or mount volumes: unmounted volumes=[v], unattached "
		  "volumes=[], failed to process volumes=[v]: error processing PVC ns/pending: PVC is not bound" },
		{ "\"persistentVolumeClaim\":{\"claimName\":\"other\"}", "Unable to attach or mount volumes: unmounted volumes=[v], unattached "
		  "volumes=[], failed to process volumes=[v]: error processing PVC ns/other: found PV object pv but its pv.Spec.ClaimRef.UID "
		  "c1 does not point to claim.UID c2" },
		{ "\"ephemeral\":{}", "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to process volumes=[v]: "
		  "PVC ns/p-v was not created for pod ns/p (pod is not owner)" },
		{ "\"persistentVolumeClaim\":{\"claimName\":\"local\"}",
		  "MountVolume.NewMounter initialization failed for volume \"missing\" : path \"/nonexistent/disk\" does not exist" },
		{ "\"persistentVolumeClaim\":{\"claimName\":\"far\"}",
		  "MountVolume.NodeAffinity check failed for volume \"far\" : no matching NodeSelectorTerms" },
	};
	struct world w;

	world_init(&w);
	struct arena *a = &w.place.arena;
	w.tokens_fail = true;
	w.config_maps = tree(a, "{\"cm\":{\"data\":{\"a\":\"1\"}}}");
	w.secrets = tree(a, "{\"se\":{\"data\":{\"a\":\"\"}}}");
	w.claims = tree(a, "{\"pending\":{\"status\":{\"phase\":\"Pending\"}},"
			   "\"other\":{\"metadata\":{\"uid\":\"c2\"},\"spec\":{\"volumeName\":\"pv\"},\"status\":{\"phase\":\"Bound\"}},"
			   "\"p-v\":{\"metadata\":{\"name\":\"p-v\",\"namespace\":\"ns\",\"uid\":\"c2\",\"ownerReferences\":[{\"uid\":\"another\","
			   "\"controller\":true}]},\"spec\":{\"volumeName\":\"pv\"},\"status\":{\"phase\":\"Bound\"}},"
			   "\"local\":{\"metadata\":{\"uid\":\"c3\"},\"spec\":{\"volumeName\":\"missing\"},\"status\":{\"phase\":\"Bound\"}},"
			   "\"far\":{\"metadata\":{\"uid\":\"c4\"},\"spec\":{\"volumeName\":\"far\"},\"status\":{\"phase\":\"Bound\"}}}");
	w.persistent = tree(a, "{\"pv\":{\"metadata\":{\"name\":\"pv\"},\"spec\":{\"claimRef\":{\"uid\":\"c1\"}}},"
			       "\"missing\":{\"metadata\":{\"name\":\"missing\"},\"spec\":{\"claimRef\":{\"uid\":\"c3\"},"
			       "\"local\":{\"path\":\"/nonexistent/disk\"}}},"
			       "\"far\":{\"metadata\":{\"name\":\"far\"},\"spec\":{\"claimRef\":{\"uid\":\"c4\"},\"local\":{\"path\":\"/\"},"
			       "\"nodeAffinity\":{\"required\":{\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"k\","
			       "\"operator\":\"In\",\"values\":[\"x\"]}]}]}}}}}");
	w.node_object = tree(a, "{\"metadata\":{\"name\":\"n1\",\"labels\":{\"k\":\"y\"}}}");
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct err err = ERR_INIT;
		struct val pod = pod_with(&w, "u1", "", arena_printf(a, "[{\"name\":\"v\",%s},{\"name\":\"ok\",\"emptyDir\":{}}]", t[i].volume).p);
		CHECK_ROW(i, volumes_mount(w.volumes, pod, &err) < 0);
		CHECK_STR_ROW(i, err_str(&err), t[i].text);
		/* The others are there all the same. */
		CHECK_ROW(i, access(volume_path(&w, "u1", "empty-dir/ok"), F_OK) == 0);
		CHECK_INT(volumes_unmount(w.volumes, STR("u1"), NULL), 0);
	}
	world_done(&w);
}

MOUNT_TEST(volumes_several_of_which_fail)
{
	struct world w;
	struct err err = ERR_INIT;

	world_init(&w);
	struct val pod = pod_with(&w, "u1", "", "[{\"name\":\"b\",\"persistentVolumeClaim\":{\"claimName\":\"x\"}},{\"name\":\"s\",\"secret\":"
				  "{\"secretName\":\"one\",\"defaultMode\":420}},{\"name\":\"t\",\"secret\":{\"secretName\":\"two\",\"defaultMode\":420}},"
				  "{\"name\":\"a\",\"rbd\":{}}]");
	CHECK_INT(volumes_mount(w.volumes, pod, &err), -ERR_NOT_FOUND);
	CHECK_STR(err_str(&err), "MountVolume.SetUp failed for volume \"s\" : secret \"one\" not found");
	CHECK_STR(w.events, "Warning FailedMount: MountVolume.SetUp failed for volume \"t\" : secret \"two\" not found\n"
			    "Warning FailedMount: Unable to attach or mount volumes: unmounted volumes=[a b], unattached volumes=[], failed to process "
			    "volumes=[a b]: error processing PVC ns/x: failed to fetch PVC from API server: things \"x\" not found; failed to get "
			    "Plugin from volumeSpec for volume \"a\" err=no volume plugin matched\n");
	CHECK_INT(volumes_unmount(w.volumes, STR("u1"), NULL), 0);
	world_done(&w);
}

MOUNT_TEST(volumes_in_memory)
{
	static const struct { const char *volume, *more; int64_t bytes; } t[] = {
		{ "{\"medium\":\"Memory\",\"sizeLimit\":\"16Mi\"}", "", 16 << 20 },
		{ "{\"medium\":\"Memory\"}", "", INT64_C(8) << 30 },
		{ "{\"medium\":\"Memory\",\"sizeLimit\":\"64Mi\"}", "\"resources\":{\"limits\":{\"memory\":\"32Mi\"}},", 32 << 20 },
		{ "{\"medium\":\"Memory\",\"sizeLimit\":\"1Ti\"}", "", INT64_C(8) << 30 },
	};
	struct world w;

	world_init(&w);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct val pod = pod_with(&w, "u1", t[i].more, arena_printf(&w.place.arena, "[{\"name\":\"v\",\"emptyDir\":%s}]", t[i].volume).p);
		const char *path = volume_path(&w, "u1", "empty-dir/v");
		struct val usage;
		mount_ok(&w, pod);
		int top = open(path, O_PATH);
		CHECK_ROW(i, volume_is_mounted(path) && mode_of(path) == 01777);
		CLEANUP(buf_done) struct buf mounts = BUF_INIT(1 << 24);
		CHECK_INT(file_read("/proc/self/mounts", &mounts, NULL), 0);
		str size = arena_printf(&w.place.arena, "%s tmpfs rw,relatime,size=%" PRId64 "k", path, t[i].bytes >> 10);
		CHECK_ROW(i, str_find(buf_str(&mounts), size) >= 0);
		CHECK_INT(file_write(arena_printf(&w.place.arena, "%s/f", path).p, STR("x"), 0600, NULL), 0);
		mount_ok(&w, pod); /* once more: the file is still there */
		CHECK_INT(volumes_usage(w.volumes, &w.place.arena, pod, &usage, NULL), 0);
		CHECK_INT(val_int(val_at(usage, 0), usedBytes), 4096);
		CHECK_INT(val_int(val_at(usage, 0), inodesUsed), 2);
		CHECK_INT(val_int(val_at(usage, 0), capacityBytes), t[i].bytes);
		CHECK_INT(val_int(val_at(usage, 0), availableBytes), t[i].bytes - 4096);
		/* Also while somebody looks into it. */
		CHECK_INT(volumes_unmount(w.volumes, STR("u1"), NULL), 0);
		CHECK(access(in(&w.place, "root/pods/u1"), F_OK) < 0);
		close(top);
	}
	world_done(&w);
}

MOUNT_TEST(volumes_of_claims)
{
	struct world w;
	struct err err = ERR_INIT;
	struct cri_mount *mounts;
	size_t n;

	world_init(&w);
	struct arena *a = &w.place.arena;
	CHECK_INT(mkdir(in(&w.place, "disk"), 0755), 0);
	put(&w.place, "disk/f", "data", 0600);
	w.claims = tree(a, "{\"l\":{\"metadata\":{\"uid\":\"c1\"},\"spec\":{\"volumeName\":\"pv1\"},\"status\":{\"phase\":\"Bound\"}},"
			   "\"h\":{\"metadata\":{\"uid\":\"c2\"},\"spec\":{\"volumeName\":\"pv2\"},\"status\":{\"phase\":\"Bound\"}}}");
	w.persistent = tree(a, arena_printf(a,
		"{\"pv1\":{\"metadata\":{\"name\":\"pv1\",\"annotations\":{\"pv.beta.kubernetes.io/gid\":\"777\"}},\"spec\":{\"accessModes\":"
		"[\"ReadWriteOncePod\"],\"claimRef\":{\"uid\":\"c1\"},\"local\":{\"path\":\"%s\"}}},"
		"\"pv2\":{\"metadata\":{\"name\":\"pv2\"},\"spec\":{\"claimRef\":{\"uid\":\"c2\"},\"hostPath\":{\"path\":\"/some/where\"}}}}",
		in(&w.place, "disk")).p);
	const char *volumes = "[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"l\"}},"
			      "{\"name\":\"h\",\"persistentVolumeClaim\":{\"claimName\":\"h\",\"readOnly\":true}}]";
	struct val pod = pod_with(&w, "u1", "\"securityContext\":{\"fsGroup\":3000},", volumes);
	mount_ok(&w, pod);
	CHECK_STR(content(&w, "u1", "local-volume/pv1/f"), "data");
	CHECK_INT(group_of(in(&w.place, "disk/f")), 3000);
	CHECK_INT(mode_of(in(&w.place, "disk/f")), 0660);
	CHECK_INT(volumes_of_container(w.volumes, a, pod, val_at(val_get(pod, spec, containers), 0), VAL_EMPTY, &mounts, &n, &err), 0);
	CHECK_INT(n, 2);
	CHECK_STR(mounts[0].host_path, volume_path(&w, "u1", "local-volume/pv1"));
	CHECK(!mounts[0].readonly && mounts[1].readonly);
	CHECK_STR(mounts[1].host_path, "/some/where");
	struct val groups = volumes_groups(w.volumes, a, pod);
	CHECK(val_len(groups) == 1 && val_as_int(val_at(groups, 0)) == 777);
	/* The volume is for one pod only. */
	CHECK(volumes_mount(w.volumes, pod_with(&w, "u2", "", volumes), &err) < 0);
	CHECK_STR(err_str(&err), "MountVolume.SetUp failed for volume \"pv1\" : volume uses the ReadWriteOncePod access mode and is already in "
				 "use by another pod");
	/* As after a crash: nothing is known, and other mounts are inside. The data stays. */
	CHECK_INT(mkdir(volume_path(&w, "u1", "local-volume/pv1/a b"), 0755), 0);
	CHECK_INT(mount("tmpfs", volume_path(&w, "u1", "local-volume/pv1/a b"), "tmpfs", 0, ""), 0);
	CHECK_INT(mount("tmpfs", volume_path(&w, "u1", "local-volume/pv1/a b"), "tmpfs", 0, ""), 0);
	volumes_free(w.volumes);
	w.volumes = volumes_new(&(struct volumes_options){ .node = &w.node });
	if (volumes_unmount(w.volumes, STR("u1"), &err) < 0)
		fail_msg("%s", err.msg);
	CHECK(access(in(&w.place, "root/pods/u1"), F_OK) < 0);
	CHECK_STR(get(&w.place, in(&w.place, "disk/f")), "data");
	world_done(&w);
}

struct mounting {
	struct world *world;
	struct val pod;
	struct err err;
};

static int mount_one(void *arg)
{
	struct mounting *m = arg;

	return volumes_mount(m->world->volumes, m->pod, &m->err);
}

/* Of two pods that are started at the same time only one gets the volume. */
MOUNT_TEST(volumes_for_one_pod_only_are_so_from_the_beginning)
{
	struct world w;
	struct mounting one, two;

	world_init(&w);
	struct arena *a = &w.place.arena;
	CHECK_INT(mkdir(in(&w.place, "disk"), 0755), 0);
	w.claims = tree(a, "{\"l\":{\"metadata\":{\"uid\":\"c1\"},\"spec\":{\"volumeName\":\"pv1\"},\"status\":{\"phase\":\"Bound\"}}}");
	w.persistent = tree(a, arena_printf(a, "{\"pv1\":{\"metadata\":{\"name\":\"pv1\"},\"spec\":{\"accessModes\":[\"ReadWriteOncePod\"],"
					       "\"claimRef\":{\"uid\":\"c1\"},\"local\":{\"path\":\"%s\"}}}}", in(&w.place, "disk")).p);
	const char *volumes = "[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"l\"}}]";
	one = (struct mounting){ .world = &w, .pod = pod_with(&w, "u1", "", volumes) };
	two = (struct mounting){ .world = &w, .pod = pod_with(&w, "u2", "", volumes) };
	struct fiber *first = start(mount_one, &one), *second = start(mount_one, &two);
	CHECK_INT(join(first), 0);
	CHECK(join(second) < 0);
	CHECK_STR(err_str(&two.err), "MountVolume.SetUp failed for volume \"pv1\" : volume uses the ReadWriteOncePod access mode and is already in "
				     "use by another pod");
	/* The other has it when the first is gone. */
	CHECK_INT(volumes_unmount(w.volumes, STR("u1"), NULL), 0);
	mount_ok(&w, two.pod);
	CHECK_INT(volumes_unmount(w.volumes, STR("u2"), NULL), 0);
	world_done(&w);
}

MOUNT_TEST(volumes_that_two_pods_share)
{
	struct world w;

	world_init(&w);
	struct arena *a = &w.place.arena;
	CHECK_INT(mkdir(in(&w.place, "disk"), 0755), 0);
	put(&w.place, "disk/f", "data", 0600);
	w.claims = tree(a, "{\"l\":{\"metadata\":{\"uid\":\"c1\"},\"spec\":{\"volumeName\":\"v\"},\"status\":{\"phase\":\"Bound\"}}}");
	w.persistent = tree(a, arena_printf(a, "{\"v\":{\"metadata\":{\"name\":\"v\"},\"spec\":{\"claimRef\":{\"uid\":\"c1\"},\"local\":"
						"{\"path\":\"%s\"}}}}", in(&w.place, "disk")).p);
	const char *volumes = "[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"l\"}}]";
	mount_ok(&w, pod_with(&w, "u1", "\"securityContext\":{\"fsGroup\":3000},", volumes));
	mount_ok(&w, pod_with(&w, "u2", "\"securityContext\":{\"fsGroup\":4000},", volumes));
	mount_ok(&w, pod_with(&w, "u2", "\"securityContext\":{\"fsGroup\":4000},", volumes));
	CHECK_STR(content(&w, "u2", "local-volume/v/f"), "data");
	CHECK_INT(group_of(in(&w.place, "disk/f")), 3000);
	CHECK_STR(w.events, "Warning AlreadyMountedVolume: The requested fsGroup is 4000, but the volume v has GID 3000. The volume may not be "
			    "shareable.\n");
	/* The end of one is not the end of the other. */
	CHECK_INT(volumes_unmount(w.volumes, STR("u1"), NULL), 0);
	CHECK_STR(content(&w, "u2", "local-volume/v/f"), "data");
	CHECK_INT(volumes_unmount(w.volumes, STR("u2"), NULL), 0);
	CHECK_STR(get(&w.place, in(&w.place, "disk/f")), "data");
	world_done(&w);
}

static bool has_huge_pages(struct world *w)
{
	return str_find(get(&w->place, "/proc/filesystems"), STR("hugetlbfs")) >= 0 && access("/sys/kernel/mm/hugepages/hugepages-2048kB", F_OK) == 0;
}

MOUNT_TEST(volumes_of_huge_pages)
{
	struct world w;
	struct err err = ERR_INIT;

	world_init(&w);
	if (!has_huge_pages(&w)) {
		print_message("no huge pages of 2 MiB here\n");
		world_done(&w);
		return;
	}
	const char *asks = "\"resources\":{\"requests\":{\"hugepages-2Mi\":\"4Mi\"}},";
	struct val pod = pod_with(&w, "u1", asks, "[{\"name\":\"h\",\"emptyDir\":{\"medium\":\"HugePages\"}},"
				  "{\"name\":\"i\",\"emptyDir\":{\"medium\":\"HugePages-2Mi\"}}]");
	struct statfs fs;
	mount_ok(&w, pod);
	mount_ok(&w, pod);
	CHECK(statfs(volume_path(&w, "u1", "empty-dir/i"), &fs) == 0 && fs.f_type == HUGETLBFS_MAGIC && fs.f_bsize == 2 << 20);
	CHECK(volume_is_mounted(volume_path(&w, "u1", "empty-dir/h")));
	/* Another size than is mounted, and one that nobody asks for. */
	pod = pod_with(&w, "u1", "\"resources\":{\"requests\":{\"hugepages-1Gi\":\"1Gi\"}},",
		       "[{\"name\":\"i\",\"emptyDir\":{\"medium\":\"HugePages-1Gi\"}}]");
	CHECK(volumes_mount(w.volumes, pod, &err) < 0);
	CHECK_STR(err_str(&err), arena_printf(&w.place.arena, "MountVolume.SetUp failed for volume \"i\" : pod u1: mounted dir %s pagesize '2Mi' and "
					      "requested medium size '1Gi' differ", volume_path(&w, "u1", "empty-dir/i")).p);
	pod = pod_with(&w, "u2", asks, "[{\"name\":\"i\",\"emptyDir\":{\"medium\":\"HugePages-1Gi\"}}]");
	CHECK(volumes_mount(w.volumes, pod, &err) < 0);
	CHECK_STR(err_str(&err), "MountVolume.SetUp failed for volume \"i\" : medium HugePages-1Gi: hugePages storage requested, but there is no "
				 "resource request for huge pages");
	CHECK_INT(volumes_unmount(w.volumes, STR("u1"), NULL), 0);
	CHECK_INT(volumes_unmount(w.volumes, STR("u2"), NULL), 0);
	world_done(&w);
}

MOUNT_TEST(volumes_mounted_into_containers)
{
	struct world w;
	struct cri_mount *m;
	struct err err = ERR_INIT;
	size_t n;

	world_init(&w);
	struct arena *a = &w.place.arena;
	w.config_maps = tree(a, "{\"cm\":{\"data\":{\"k\":\"one\"}}}");
	struct val pod = pod_with(&w, "u1", "", "[{\"name\":\"e\",\"emptyDir\":{}},{\"name\":\"cm\",\"configMap\":{\"name\":\"cm\","
				  "\"defaultMode\":420}},{\"name\":\"im\",\"image\":{\"reference\":\"quay.io/x:1\"}}]");
	struct val container = tree(a, "{\"name\":\"c\",\"volumeMounts\":[{\"name\":\"e\",\"mountPath\":\"/e\"},{\"name\":\"e\",\"mountPath\":"
		"\"rel\",\"subPathExpr\":\"x-$(N)\",\"mountPropagation\":\"HostToContainer\"},{\"name\":\"cm\",\"mountPath\":\"/f\",\"subPath\":\"k\"},"
		"{\"name\":\"im\",\"mountPath\":\"/im\",\"subPath\":\"etc\"},{\"name\":\"e\",\"mountPath\":\"/r\",\"readOnly\":true,"
		"\"recursiveReadOnly\":\"IfPossible\",\"mountPropagation\":\"None\"}]}");
	struct val env = tree(a, "[{\"key\":\"N\",\"value\":\"p\"}]");
	mount_ok(&w, pod);
	if (volumes_of_container(w.volumes, a, pod, container, env, &m, &n, &err) < 0)
		fail_msg("%s", err.msg);
	CHECK_INT(n, 5);
	CHECK_STR(m[0].host_path, volume_path(&w, "u1", "empty-dir/e"));
	CHECK_STR(m[0].propagation, "PROPAGATION_PRIVATE");
	CHECK(!m[0].readonly && !m[0].recursive_readonly && !val_exists(m[0].image));
	CHECK_STR(m[1].container_path, "/rel");
	CHECK_STR(m[1].host_path, in(&w.place, "root/pods/u1/volume-subpaths/e/c/1"));
	CHECK_STR(m[1].propagation, "PROPAGATION_HOST_TO_CONTAINER");
	CHECK_INT(mode_of(volume_path(&w, "u1", "empty-dir/e/x-p")), 0777);
	CHECK(m[2].readonly);
	CHECK_STR(get(&w.place, m[2].host_path.p), "one");
	CHECK_STR(val_str(m[3].image, image), "quay.io/x:1");
	CHECK_STR(m[3].image_sub_path, "etc");
	CHECK(m[3].readonly && !m[3].host_path.n);
	CHECK(m[4].readonly && !m[4].recursive_readonly);
	w.recursive = true;
	CHECK_INT(volumes_of_container(w.volumes, a, pod, container, env, &m, &n, &err), 0);
	CHECK(m[4].recursive_readonly);

	/* What runs keeps its file by subPath; a container that starts later gets the new one. */
	w.config_maps = tree(a, "{\"cm\":{\"data\":{\"k\":\"two\"}}}");
	CHECK_INT(volumes_refresh(w.volumes, pod, NULL), 0);
	CHECK_STR(content(&w, "u1", "configmap/cm/k"), "two");
	CHECK_INT(volumes_of_container(w.volumes, a, pod, container, env, &m, &n, &err), 0);
	CHECK_STR(get(&w.place, m[2].host_path.p), "two");
	CHECK_INT(volumes_unmount(w.volumes, STR("u1"), &err), 0);
	CHECK(volumes_of_container(w.volumes, a, pod, container, env, &m, &n, &err) < 0);
	CHECK_STR(err_str(&err), "cannot find volume \"e\" to mount into container \"c\"");
	world_done(&w);
}

MOUNT_TEST(volumes_with_mounts_inside)
{
	struct world w;
	struct stat st;

	world_init(&w);
	w.config_maps = tree(&w.place.arena, "{\"cm\":{\"data\":{\"k\":\"one\"}}}");
	struct val pod = tree(&w.place.arena, "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u1\"},\"spec\":{\"containers\":["
		"{\"name\":\"c\",\"volumeMounts\":[{\"name\":\"cm\",\"mountPath\":\"/v\"},{\"name\":\"e\",\"mountPath\":\"/v/in/side\"},"
		"{\"name\":\"e\",\"mountPath\":\"/v/in/side/deeper\"},{\"name\":\"e\",\"mountPath\":\"/v-2/x\"},{\"name\":\"e\",\"mountPath\":"
		"\"/v/in/side-2\"}]}],\"volumes\":[{\"name\":\"cm\",\"configMap\":{\"name\":\"cm\",\"defaultMode\":420}},{\"name\":\"e\",\"emptyDir\":{}},"
		"{\"name\":\"unused\",\"configMap\":{\"name\":\"nope\",\"defaultMode\":420}}]}}");
	mount_ok(&w, pod);
	CHECK(stat(volume_path(&w, "u1", "configmap/cm/in/side"), &st) == 0 && S_ISDIR(st.st_mode));
	CHECK(stat(volume_path(&w, "u1", "configmap/cm/in/side-2"), &st) == 0);
	CHECK(stat(volume_path(&w, "u1", "configmap/cm/in/side/deeper"), &st) < 0);
	CHECK(stat(volume_path(&w, "u1", "configmap/cm/x"), &st) < 0);
	mount_ok(&w, pod);
	CHECK(stat(volume_path(&w, "u1", "configmap/cm/in/side"), &st) == 0);
	CHECK_INT(volumes_unmount(w.volumes, STR("u1"), NULL), 0);
	world_done(&w);
}

static str token_now(struct world *w, struct val source, int *ret)
{
	struct val pod = tree(&w->place.arena, "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u1\"},\"spec\":{\"serviceAccountName\":"
					       "\"sa\"}}");
	struct err err = ERR_INIT;
	str token = STR_NONE;

	*ret = volume_token(w->volumes, &w->place.arena, pod, source, &token, &err);
	return *ret < 0 ? arena_str(&w->place.arena, err_str(&err)) : token;
}

FIBER_TEST(volume_tokens_are_renewed)
{
	/* The life of a token that is asked for, that it gets, and for how long it is used, at least and at most. */
	static const struct { int64_t asked_s, life_s, good_s, stale_s; } t[] = {
		{ 600, 600, 600 * 80 / 100 - 10, 600 * 80 / 100 + 1 }, { 3607, 3607, 2876, 2887 }, { 7 * 86400, 7 * 86400, 86400 - 10, 86400 + 1 },
		{ 86400, 3600, 2870, 2881 },
	};
	struct world w;
	int r;

	world_init(&w);
	log_set_level(LOG_LEVEL_OFF);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		const int64_t start = INT64_C(1800000000) * NS_PER_S;
		struct val source = tree(&w.place.arena, arena_printf(&w.place.arena, "{\"audience\":\"a%zu\",\"expirationSeconds\":%" PRId64 "}", i,
								      t[i].asked_s).p);
		clock_virtual_set(0, start);
		w.token_life_s = t[i].life_s;
		w.tokens = 0;
		w.tokens_fail = false;
		CHECK_STR_ROW(i, str_head(token_now(&w, source, &r), 7), "token 1");
		clock_virtual_set(0, start + t[i].good_s * NS_PER_S);
		CHECK_STR_ROW(i, str_head(token_now(&w, source, &r), 7), "token 1");
		clock_virtual_set(0, start + t[i].stale_s * NS_PER_S);
		w.tokens_fail = true;
		CHECK_STR_ROW(i, str_head(token_now(&w, source, &r), 7), "token 1");
		w.tokens_fail = false;
		CHECK_STR_ROW(i, str_head(token_now(&w, source, &r), 7), "token 2");
		w.tokens_fail = true;
		clock_virtual_set(0, start + (t[i].stale_s + t[i].life_s + 1) * NS_PER_S);
		str text = token_now(&w, source, &r);
		CHECK_ROW(i, r == -ERR_UNAVAILABLE && str_starts(text, STR("token \"sa\"/\"ns\"/[]string{\"a")));
		CHECK_ROW(i, str_ends(text, STR("UID:\"u1\"}/\"\" expired and refresh failed: the server is away")));
		volume_tokens_forget(w.volumes, STR("u1"));
		CHECK_STR_ROW(i, token_now(&w, source, &r), "failed to fetch token: the server is away");
	}
	clock_virtual_off();
	log_set_level(LOG_LEVEL_INFO);
	world_done(&w);
}

MOUNT_TEST(volumes_of_nfs)
{
	struct world w;
	struct err err = ERR_INIT;

	world_init(&w);
	struct val pod = pod_with(&w, "u1", "", "[{\"name\":\"v\",\"nfs\":{\"server\":\"::1\",\"path\":\"/nope\",\"readOnly\":true}}]");
	CHECK(volumes_mount(w.volumes, pod, &err) < 0);
	str want = arena_printf(&w.place.arena, "MountVolume.SetUp failed for volume \"v\" : mount failed: exit status 32\nMounting command: mount\n"
				"Mounting arguments: -t nfs -o ro [::1]:/nope %s\nOutput: mount", volume_path(&w, "u1", "nfs/v"));
	CHECK(str_starts(err_str(&err), want));
	CHECK(access(volume_path(&w, "u1", "nfs/v"), F_OK) < 0);
	CHECK_INT(volumes_unmount(w.volumes, STR("u1"), NULL), 0);
	world_done(&w);
}

struct turns {
	struct world *world;
	struct val pod;
	int done;
};

static int mount_and_unmount(void *arg)
{
	struct turns *t = arg;

	for (int i = 0; i < 3; i++) {
		CHECK_INT(volumes_mount(t->world->volumes, t->pod, NULL), 0);
		CHECK_INT(volumes_unmount(t->world->volumes, STR("u1"), NULL), 0);
	}
	t->done++;
	return 0;
}

/* Calls for one pod wait for each other, also when the pod goes away before it is their turn. */
MOUNT_TEST(volumes_by_turns)
{
	struct world w;
	struct fiber *fibers[4];

	world_init(&w);
	struct turns t = { .world = &w, .pod = pod_with(&w, "u1", "", "[{\"name\":\"e\",\"emptyDir\":{\"medium\":\"Memory\"}}]") };
	for (size_t i = 0; i < ARRAY_LEN(fibers); i++)
		fibers[i] = start(mount_and_unmount, &t);
	for (size_t i = 0; i < ARRAY_LEN(fibers); i++)
		CHECK_INT(join(fibers[i]), 0);
	CHECK_INT(t.done, 4);
	CHECK_INT(val_len(volumes_pods(w.volumes, &w.place.arena)), 0);
	world_done(&w);
}

/* A block device of the kernel's, which is not opened. */
static const char *make_node(struct world *w, const char *name)
{
	const char *path = in(&w->place, name);

	CHECK_INT(mknod(path, S_IFBLK | 0600, makedev(7, 0)), 0);
	return path;
}

/* The claim c of the PersistentVolume pv, which is local at path. */
static void claim_local(struct world *w, const char *path, const char *more)
{
	struct arena *a = &w->place.arena;

	w->claims = tree(a, "{\"c\":{\"metadata\":{\"uid\":\"c1\"},\"spec\":{\"volumeName\":\"pv\"},\"status\":{\"phase\":\"Bound\"}}}");
	w->persistent = tree(a, arena_printf(a, "{\"pv\":{\"metadata\":{\"name\":\"pv\"},\"spec\":{\"claimRef\":{\"uid\":\"c1\"},%s"
						 "\"local\":{\"path\":\"%s\"}}}}", more, path).p);
}

static str devices_of(struct world *w, struct val pod, size_t container)
{
	struct arena *a = &w->place.arena;
	struct cri_container_input in = { .pod = pod, .container = val_at(val_get(pod, spec, containers), container),
					  .devices = tree(a, "[{\"hostPath\":\"/dev/gpu\"}]") };
	CLEANUP(buf_done) struct buf b = BUF_INIT(4096);
	struct err err = ERR_INIT;

	if (volumes_devices_of_container(w->volumes, a, &in, &err) < 0)
		return arena_str(a, err_str(&err));
	VAL_EACH(d, in.devices)
		buf_addf(&b, STR_FMT "=" STR_FMT ":" STR_FMT ";", STR_ARG(val_str(*d, containerPath)), STR_ARG(val_str(*d, hostPath)),
			 STR_ARG(val_str(*d, permissions)));
	return arena_str(a, buf_str(&b));
}

MOUNT_TEST(volumes_as_block_devices)
{
	static const char pod_text[] = "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u1\"},\"spec\":{\"containers\":["
		"{\"name\":\"c\",\"volumeDevices\":[{\"name\":\"v\",\"devicePath\":\"/dev/xvda\"}]},"
		"{\"name\":\"d\",\"volumeDevices\":[{\"name\":\"v\",\"devicePath\":\"dev\"}]},"
		"{\"name\":\"e\",\"volumeDevices\":[{\"name\":\"none\",\"devicePath\":\"/dev/x\"}]},{\"name\":\"f\"}],"
		"\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"c\",\"readOnly\":%s}}]}}";
	static const char block[] = "\"volumeMode\":\"Block\",";
	struct world w;
	struct err err = ERR_INIT;
	struct val usage;

	world_init(&w);
	struct arena *a = &w.place.arena;
	const char *disk = make_node(&w, "disk"), *link = in(&w.place, "root/pods/u1/volumeDevices/kubernetes.io~local-volume/pv");
	CHECK_INT(symlink(disk, in(&w.place, "by-id")), 0);
	claim_local(&w, in(&w.place, "by-id"), block);
	struct val pod = tree(a, arena_printf(a, pod_text, "false").p);
	mount_ok(&w, pod);
	mount_ok(&w, pod);
	char target[200] = "";
	CHECK(readlink(link, target, sizeof(target) - 1) > 0);
	CHECK_STR(str_of(target), disk);
	CHECK_STR(devices_of(&w, pod, 0), arena_printf(a, "=/dev/gpu:;/dev/xvda=%s:mrw;", link).p);
	CHECK_STR(devices_of(&w, pod, 1), "error DevicePath `dev` must be an absolute path");
	CHECK_STR(devices_of(&w, pod, 2), "cannot find volume \"none\" to pass into container \"e\"");
	CHECK_STR(devices_of(&w, pod, 3), "=/dev/gpu:;");
	CHECK_INT(volumes_usage(w.volumes, a, pod, &usage, &err), 0);
	CHECK_INT(val_len(usage), 0);
	CHECK_INT(volumes_unmount(w.volumes, STR("u1"), &err), 0);
	CHECK(access(in(&w.place, "root/pods/u1"), F_OK) < 0 && access(disk, F_OK) == 0);

	pod = tree(a, arena_printf(a, pod_text, "true").p);
	mount_ok(&w, pod);
	CHECK_STR(devices_of(&w, pod, 0), arena_printf(a, "=/dev/gpu:;/dev/xvda=%s:r;", link).p);
	CHECK_INT(volumes_unmount(w.volumes, STR("u1"), &err), 0);

	claim_local(&w, put(&w.place, "file", "", 0600), block);
	CHECK(volumes_mount(w.volumes, pod, &err) < 0);
	CHECK_STR(err_str(&err), arena_printf(a, "MapVolume.MapBlockVolume failed for volume \"pv\" : %s is not a block device",
					      in(&w.place, "file")).p);
	claim_local(&w, "/nonexistent/disk", block);
	CHECK(volumes_mount(w.volumes, pod, &err) < 0);
	CHECK_STR(err_str(&err), "MapVolume.EvalHostSymlinks failed for volume \"pv\" : lstat /nonexistent/disk: no such file or directory");
	claim_local(&w, disk, "\"volumeMode\":\"Filesystem\",");
	CHECK(volumes_mount(w.volumes, pod, &err) < 0);
	CHECK(str_find(err_str(&err), STR("volume v has volumeMode Filesystem, but is specified in volumeDevices")) >= 0);
	CHECK_INT(volumes_unmount(w.volumes, STR("u1"), &err), 0);
	world_done(&w);
}

/* A disk of 8 MiB in a file, which goes with the last who uses it; NULL: there are none here. */
static const char *make_disk(struct world *w, const char *name, int *ret_fd)
{
	CLEANUP(volume_close) int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC), file = open(in(&w->place, name), O_RDWR | O_CREAT, 0600);
	int n = control < 0 ? -1 : ioctl(control, LOOP_CTL_GET_FREE);
	const char *path = arena_printf(&w->place.arena, "/dev/loop%d", n).p;
	struct loop_config config = { .fd = (uint32_t)file, .info.lo_flags = LO_FLAGS_AUTOCLEAR };

	CHECK_INT(ftruncate(file, 8 << 20), 0);
	*ret_fd = n < 0 ? -1 : open(path, O_RDWR | O_CLOEXEC);
	if (*ret_fd < 0 || ioctl(*ret_fd, LOOP_CONFIGURE, &config) < 0) {
		print_message("there are no loop devices: formatting is not tested\n");
		volume_close(ret_fd);
		return NULL;
	}
	return path;
}

MOUNT_TEST(volumes_on_disks)
{
	static const char volumes[] = "[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"c\",\"readOnly\":%s}}]";
	struct world w;
	struct err err = ERR_INIT;
	int fd;

	world_init(&w);
	struct arena *a = &w.place.arena;
	const char *disk = make_disk(&w, "image", &fd), *inside = volume_path(&w, "u1", "local-volume/pv/f");
	if (disk) {
		struct val pod = pod_with(&w, "u1", "", arena_printf(a, volumes, "false").p);
		claim_local(&w, disk, "");
		CHECK(volumes_mount(w.volumes, pod_with(&w, "u0", "", arena_printf(a, volumes, "true").p), &err) < 0);
		CHECK_STR(err_str(&err), arena_printf(a, "MountVolume.MountDevice failed for volume \"pv\" : cannot mount unformatted disk "
						      "%s as we are manipulating it in read-only mode", disk).p);
		mount_ok(&w, pod); /* formatted */
		CHECK_INT(file_write(inside, STR("kept"), 0600, NULL), 0);
		CHECK_INT(volumes_unmount(w.volumes, STR("u1"), &err), 0);
		mount_ok(&w, pod); /* and never again */
		CHECK_STR(get(&w.place, inside), "kept");
		CHECK_INT(volumes_unmount(w.volumes, STR("u1"), &err), 0);

		/* Something else is on it: it is left alone. */
		CHECK_INT(pwrite(fd, (char[1024]){ 0 }, 1024, 1024), 1024);
		CHECK_INT(pwrite(fd, (char[66]){ [0] = 0, [62] = 0, [64] = 0x55, [65] = (char)0xaa }, 66, 446), 66);
		CHECK_INT(pwrite(fd, (char[16]){ 0, 0, 2, 0, (char)0x83, 0, 9, 0, 1, 0, 0, 0, 100 }, 16, 446), 16);
		CHECK_INT(fsync(fd), 0);
		CHECK(volumes_mount(w.volumes, pod, &err) < 0);
		CHECK(str_find(err_str(&err), STR("MountVolume.MountDevice failed for volume \"pv\" : mount failed: exit status 32")) >= 0);
		CHECK_INT(volumes_unmount(w.volumes, STR("u1"), &err), 0);
		volume_close(&fd);
	}
	world_done(&w);
}
