/*
 * What device plugins say: the first byte tells the length of an answer of ListAndWatch (in eighths of the input), the rest is one of
 * Allocate. Healthy devices are devices, each counts once, and what a container is told comes from the answer, each path and name once.
 */
#include "codec/proto.h"
#include "codec/types.h"
#include "fuzz/fuzz.h"
#include "kubelet/devices_priv.h"

static void ignore(void *arg) { (void)arg; }

static void ignore_pod(void *arg, str uid)
{
	(void)arg;
	check(str_eq(uid, STR("u1")), "only pods that have devices are told");
}

static void list_devices(struct devices *d, struct offer *r, str message)
{
	struct err err = ERR_INIT;
	int told = offer_tell(d, r, message, &err);

	if (told < 0)
		return;
	check(r->listed && r->told && map_len(&r->ids) <= val_len(r->told->val) && r->n_healthy <= map_len(&r->ids),
	      "devices are counted once");
	check(offer_tell(d, r, message, &err) == 0, "the same once more is nothing new");
}

static bool has_twice(struct val list, atom key)
{
	VAL_EACH(x, list)
		for (const struct val *y = list.items; y < x; y++)
			if (str_eq(val_as_str(val_member(*x, key)), val_as_str(val_member(*y, key))))
				return true;
	return false;
}

static void allocate(struct devices *d, struct arena *a, str message)
{
	struct val answer, ids = OBJECT(a, F(name, LIST(a, VAL_LIT("a"), VAL_LIT("b"), VAL_LIT("a"))));
	struct cri_container_input in = { .pod = OBJECT(a, F(metadata, OBJECT(a, F(uid, VAL_LIT("u1"))))),
					  .container = OBJECT(a, F(name, VAL_LIT("c"))) };
	struct cri_mount *mounts;
	size_t n;

	if (proto_decode(a, message, rpc_DevicePlugin_Allocate.response, &answer, NULL) < 0)
		return;
	VAL_EACH(response, val_get(answer, containerResponses))
		(void)allocation_add(d, STR("u1"), STR("c"), STR("example.org/x"), ids, *response);
	devices_tell(d, a, &in, &mounts, &n);
	check(!has_twice(in.devices, A_containerPath) && !has_twice(in.cdi_devices, A_name) && !has_twice(in.extra_env, A_key),
	      "each is told once");
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			check(!str_eq(mounts[i].container_path, mounts[j].container_path), "each is mounted once");
	VAL_EACH(resource, devices_status(d, a, STR("u1"), STR("c")))
		check(val_len(val_get(*resource, resources)) == 2, "the status has each device once");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct arena a = ARENA_INIT;
	struct devices d = { .o = { .changed = ignore, .pod_changed = ignore_pod } };
	str in = str_span((const char *)data, n);
	size_t first = n ? (n - 1) * (data[0] & 7) / 8 : 0;

	devices_state_init(&d);
	struct offer *r = offer_add(&d, STR("example.org/x"));
	(void)allocation_add(&d, STR("u1"), STR("c"), STR("example.org/x"), OBJECT(&a, F(name, LIST(&a, VAL_LIT("a"), VAL_LIT("b")))), VAL_EMPTY);
	if (n) {
		list_devices(&d, r, str_head(str_skip(in, 1), first));
		allocate(&d, &a, str_skip(in, 1 + first));
	}
	devices_state_done(&d);
	arena_done(&a);
	return 0;
}
