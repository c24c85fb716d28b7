#include "controllers/local_path_plan.h"

#include "controllers/plan_testing.h"

#define CLAIM(spec) "{'metadata':{'name':'c','namespace':'ns','uid':'u1','annotations':{'volume.kubernetes.io/storage-provisioner':'c8s.io/local-path'}}," \
		    "'spec':{'storageClassName':'local-path','resources':{'requests':{'storage':'1Gi'}}" spec "}}"
#define NODE "{'metadata':{'name':'n1','labels':{'kubernetes.io/hostname':'h1'}}}"

TEST(local_path_volumes)
{
	static const struct {
		const char *claim, *node;
		bool can;
	} t[] = {
		{ CLAIM(",'accessModes':['ReadWriteOnce']"), NODE, true },
		{ CLAIM(",'accessModes':['ReadWriteOncePod']"), NODE, true },
		{ CLAIM(",'accessModes':['ReadWriteMany']"), NODE, false },
		{ CLAIM(",'accessModes':['ReadWriteOnce'],'volumeMode':'Block'"), NODE, false },
		{ CLAIM(",'accessModes':['ReadWriteOnce'],'selector':{}"), NODE, false },
		{ CLAIM(",'accessModes':['ReadWriteOnce']"), NULL, false },
		{ CLAIM(",'accessModes':['ReadWriteOnce']"), "{}", false },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		str why = STR_NONE;
		struct val volume = local_path_volume(&a, tree(&a, t[i].claim), tree(&a, "{'reclaimPolicy':'Retain'}"), t[i].node ? tree(&a, t[i].node) : VAL_EMPTY,
						      "/var/lib/c8s/volumes", &why);
		CHECK_ROW(i, val_exists(volume) == t[i].can);
		CHECK_ROW(i, (why.n == 0) == t[i].can);
		CHECK_ROW(i, local_path_wants(tree(&a, t[i].claim)));
		if (!t[i].can)
			continue;
		CHECK_STR_ROW(i, val_str(volume, metadata, name), "pvc-u1");
		CHECK_STR_ROW(i, val_str(volume, spec, hostPath, path), "/var/lib/c8s/volumes/pvc-u1_ns_c");
		CHECK_STR_ROW(i, val_str(volume, spec, persistentVolumeReclaimPolicy), "Retain");
		CHECK_STR_ROW(i, val_str(volume, spec, claimRef, uid), "u1");
		CHECK_STR_ROW(i, local_path_node(volume), "h1");
		CHECK_STR_ROW(i, local_path_folder(volume), "pvc-u1_ns_c");
	}
}

TEST(local_path_folders_have_names_that_fit)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	char name[253 + 1] = "";
	str why = STR_NONE;

	memset(name, 'x', 253);
	struct val claim = tree(&a, CLAIM(",'accessModes':['ReadWriteOnce']"));
	claim = val_with(&a, claim, VAL_STR(str_of(name)), metadata, name);
	str folder = local_path_folder(local_path_volume(&a, claim, tree(&a, "{}"), tree(&a, NODE), "/v", &why));
	CHECK_INT(folder.n, 255);
	CHECK(str_starts(folder, STR("pvc-u1_ns_xx")));
}

TEST(local_path_folder_lists)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str list = folder_list_add(&a, folder_list_add(&a, STR_NONE, STR("pvc-1")), STR("pvc-2"));

	CHECK_STR(list, "pvc-1,pvc-2");
	CHECK_STR(folder_list_add(&a, list, STR("pvc-2")), "pvc-1,pvc-2");
	CHECK(folder_list_has(list, STR("pvc-2")));
	CHECK(!folder_list_has(list, STR("pvc-")));
	CHECK_STR(folder_list_remove(&a, list, STR("pvc-1")), "pvc-2");
	CHECK_STR(folder_list_remove(&a, STR("pvc-1"), STR("pvc-1")), "");
}

#define OURS(meta, policy, phase) "{'metadata':{'annotations':{'pv.kubernetes.io/provisioned-by':'c8s.io/local-path'}" meta "}," \
	"'spec':{'persistentVolumeReclaimPolicy':'" policy "','hostPath':{'path':'/x/pvc-1_ns_c'}},'status':{'phase':'" phase "'}}"
#define DELETED ",'deletionTimestamp':'x','finalizers':['local-path.c8s.io/folder']"

TEST(local_path_steps)
{
	static const struct {
		const char *volume;
		enum local_path_step want;
	} t[] = {
		{ OURS("", "Delete", "Bound"), LOCAL_PATH_REST },
		{ OURS("", "Delete", "Released"), LOCAL_PATH_REMOVE_FOLDER },
		{ OURS(DELETED, "Delete", "Released"), LOCAL_PATH_REMOVE_FOLDER },
		{ OURS("", "Retain", "Released"), LOCAL_PATH_REST },
		{ OURS(DELETED, "Retain", "Released"), LOCAL_PATH_LET_GO },
		{ OURS(DELETED, "Delete", "Bound"), LOCAL_PATH_REST },
		{ "{'spec':{'persistentVolumeReclaimPolicy':'Delete','hostPath':{'path':'/x/pvc-1'}},'status':{'phase':'Released'}}", LOCAL_PATH_REST },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_ROW(i, local_path_step(tree(&a, t[i].volume)) == t[i].want);
	CHECK_STR(local_path_folder(tree(&a, "{'spec':{'hostPath':{'path':'/etc'}}}")), "");
	CHECK_STR(local_path_folder(tree(&a, "{'spec':{'hostPath':{'path':'/x/pvc-1,pvc-2'}}}")), "");
	CHECK_STR(local_path_node(tree(&a, "{}")), "");
}
