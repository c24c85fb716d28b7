/*
 * device-plugins/kubelet_internal_checkpoint: who has which devices, and which resources there are, as Kubernetes' kubelet writes it, so
 * that either can take over from the other:
 *
 *	{"Data":{"PodDeviceEntries":[{"PodUID":"...","ContainerName":"...","ResourceName":"vendor.com/x","DeviceIDs":{"-1":["a"]},
 *	 "AllocResp":"<base64 of ContainerAllocateResponse>"}],"RegisteredDevices":{"vendor.com/x":["a","b"]}},"Checksum":123}
 *
 * The sum is FNV-1a, 32 bits, of the data as Go prints it.
 */
#include <stdlib.h>

#include "base/encoding.h"
#include "base/fiber_io.h"
#include "base/file.h"
#include "base/log.h"
#include "codec/json.h"
#include "codec/proto.h"
#include "codec/types.h"
#include "kubelet/devices_priv.h"

enum { FILE_MAX = 64 << 20, RESPONSE_MAX = 8 << 20 };

static const struct type *response_type(void) { return TYPE(deviceplugin_v1beta1, ContainerAllocateResponse); }

/* ---- the sum ---- */

/* [a b], or <nil> for null. */
static void print_texts(struct buf *b, struct val list)
{
	if (!val_is(list, VAL_LIST)) {
		buf_add(b, STR("<nil>"));
		return;
	}
	buf_addc(b, '[');
	VAL_EACH(x, list) {
		if (x != list.items)
			buf_addc(b, ' ');
		buf_add(b, val_as_str(*x));
	}
	buf_addc(b, ']');
}

/* map[k:[a b] ...] in the order given, or <nil>. */
static void print_map(struct buf *b, struct val map, const struct member **order)
{
	if (!val_is(map, VAL_OBJECT)) {
		buf_add(b, STR("<nil>"));
		return;
	}
	buf_add(b, STR("map["));
	for (size_t i = 0; i < map.n; i++) {
		buf_addf(b, "%s" STR_FMT ":", i ? " " : "", STR_ARG(atom_str(order[i]->key)));
		print_texts(b, order[i]->val);
	}
	buf_addc(b, ']');
}

static int by_number(const void *x, const void *y)
{
	int64_t a = 0, b = 0;

	(void)str_to_i64(atom_str((*(const struct member *const *)x)->key), &a);
	(void)str_to_i64(atom_str((*(const struct member *const *)y)->key), &b);
	return a < b ? -1 : a > b;
}

static int by_text(const void *x, const void *y)
{
	return str_cmp(atom_str((*(const struct member *const *)x)->key), atom_str((*(const struct member *const *)y)->key));
}

static const struct member **ordered(struct arena *a, struct val map, int (*cmp)(const void *x, const void *y))
{
	const struct member **all = ARENA_ARRAY(a, const struct member *, val_len(map));
	size_t n = 0;

	VAL_EACH_MEMBER(m, map)
		all[n++] = m;
	qsort(all, n, sizeof(*all), cmp);
	return all;
}

static void print_bytes(struct buf *b, struct val base64)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT(RESPONSE_MAX);

	if (!val_is(base64, VAL_STRING) || base64_decode_buf(&bytes, val_as_str(base64), NULL) < 0) {
		buf_add(b, STR("<nil>"));
		return;
	}
	buf_addc(b, '[');
	for (size_t i = 0; i < bytes.n; i++)
		buf_addf(b, "%s%u", i ? " " : "", (unsigned char)bytes.p[i]);
	buf_addc(b, ']');
}

static void print_entry(struct buf *b, struct arena *a, struct val e)
{
	static const char *const texts[] = { "PodUID", "ContainerName", "ResourceName" };
	struct val ids = val_find(e, STR("DeviceIDs"));

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		buf_addf(b, "%s%s:(string)" STR_FMT, i ? " " : "{", texts[i], STR_ARG(val_as_str(val_find(e, str_of(texts[i])))));
	buf_add(b, STR(" DeviceIDs:(checkpoint.DevicesPerNUMA)"));
	print_map(b, ids, ordered(a, ids, by_number));
	buf_add(b, STR(" AllocResp:([]uint8)"));
	print_bytes(b, val_find(e, STR("AllocResp")));
	buf_addc(b, '}');
}

static int checksum(struct arena *a, struct val data, uint32_t *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(4U * FILE_MAX);
	struct val entries = val_find(data, STR("PodDeviceEntries")), registered = val_find(data, STR("RegisteredDevices"));

	buf_add(&b, STR("(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)"));
	if (val_is(entries, VAL_LIST)) {
		buf_addc(&b, '[');
		VAL_EACH(e, entries) {
			if (e != entries.items)
				buf_addc(&b, ' ');
			print_entry(&b, a, *e);
		}
		buf_addc(&b, ']');
	} else {
		buf_add(&b, STR("<nil>"));
	}
	buf_add(&b, STR(" RegisteredDevices:(map[string][]string)"));
	print_map(&b, registered, ordered(a, registered, by_text));
	buf_addc(&b, '}');
	uint32_t sum = 2166136261U;
	for (size_t i = 0; i < b.n; i++)
		sum = (sum ^ (unsigned char)b.p[i]) * 16777619U;
	*ret = sum;
	return buf_check(&b, "the checkpoint of devices", err);
}

/* ---- writing ---- */

static struct val make(struct arena *a, const char *const *names, const struct val *vals, size_t n)
{
	struct val_builder b = val_builder(a);

	for (size_t i = 0; i < n; i++)
		val_add_member(&b, atom_make(a, str_of(names[i])), vals[i]);
	return val_end_object(&b);
}

static int entry_make(struct arena *a, const struct allocation *x, struct val *ret, struct err *err)
{
	static const char *const names[] = { "PodUID", "ContainerName", "ResourceName", "DeviceIDs", "AllocResp" };
	CLEANUP(buf_done) struct buf bytes = BUF_INIT(RESPONSE_MAX);
	CLEANUP(buf_done) struct buf text = BUF_INIT(2 * RESPONSE_MAX);
	int r = proto_encode(&bytes, x->response, response_type(), err);

	if (r < 0)
		return r;
	base64_encode_buf(&text, buf_str(&bytes));
	const struct val vals[] = { VAL_STR(x->pod), VAL_STR(x->container), VAL_STR(x->resource), x->devices,
				    VAL_STR(arena_str(a, buf_str(&text))) };
	*ret = make(a, names, vals, ARRAY_LEN(vals));
	return 0;
}

static struct val registered_make(struct arena *a, const struct devices *d)
{
	struct val_builder b = val_builder(a);

	LIST_EACH(struct offer, r, &d->offers, link) {
		struct val_builder ids = val_builder(a);
		if (!r->listed)
			continue;
		if (r->told)
			VAL_EACH(device, r->told->val)
				if (offer_has(r, device, val_str(*device, ID)) && offer_is_healthy(r, *device))
					val_add_item(&ids, val_get(*device, ID));
		val_add_member(&b, atom_make(a, r->name), val_end_list(&ids));
	}
	return val_end_object(&b);
}

static int content_make(struct arena *a, const struct devices *d, struct buf *ret, struct err *err)
{
	static const char *const parts[] = { "PodDeviceEntries", "RegisteredDevices" }, *const whole[] = { "Data", "Checksum" };
	struct val_builder entries = val_builder(a);
	struct json_encode_options o = { 0 };
	uint32_t sum;
	int r;

	LIST_EACH(struct allocation, x, &d->allocations, link) {
		struct val entry;
		if (!val_exists(x->response))
			continue;
		if ((r = entry_make(a, x, &entry, err)) < 0)
			return r;
		val_add_item(&entries, entry);
	}
	struct val list = val_end_list(&entries);
	const struct val data[] = { val_len(list) ? list : VAL_NULL_VALUE, registered_make(a, d) };
	struct val v = make(a, parts, data, ARRAY_LEN(data));
	if ((r = checksum(a, v, &sum, err)) < 0)
		return r;
	const struct val all[] = { v, val_of_int(sum) };
	return json_encode(ret, make(a, whole, all, ARRAY_LEN(all)), &o, err);
}

struct writing {
	const char *path;
	str content;
};

static int write_file(void *arg, struct err *err)
{
	const struct writing *w = arg;

	return file_write(w->path, w->content, 0600, err);
}

int devices_save(struct devices *d, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf b = BUF_INIT(FILE_MAX);
	int r = 0;

	while (d->saving && r == 0)
		r = fiber_cond_wait(&d->saved, err);
	if (r < 0)
		return r;
	d->saving = true;
	r = content_make(&a, d, &b, err);
	if (r == 0)
		r = fiber_blocking(write_file, &(struct writing){ d->checkpoint, buf_str(&b) }, err);
	d->saving = false;
	fiber_cond_broadcast(&d->saved);
	return r < 0 && r != -ERR_CANCELED ? err_wrap(err, r, "failed to write checkpoint file \"kubelet_internal_checkpoint\"") : r;
}

/* ---- reading ---- */

static int entry_load(struct devices *d, struct arena *a, struct val e, struct err *err)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT(RESPONSE_MAX);
	str pod = val_as_str(val_find(e, STR("PodUID"))), container = val_as_str(val_find(e, STR("ContainerName")));
	str resource = val_as_str(val_find(e, STR("ResourceName")));
	struct val response;
	int r = base64_decode_buf(&bytes, val_as_str(val_find(e, STR("AllocResp"))), err);

	if (r < 0 || (r = proto_decode(a, buf_str(&bytes), response_type(), &response, err)) < 0)
		return r;
	if (!allocation_find(d, pod, container, resource))
		(void)allocation_add(d, pod, container, resource, val_find(e, STR("DeviceIDs")), response);
	return 0;
}

static int content_load(struct devices *d, struct arena *a, str text, struct err *err)
{
	struct val v;
	uint32_t sum;
	int r = json_decode(a, text, &(struct json_decode_options){ 0 }, &v, err);

	if (r < 0)
		return r;
	struct val data = val_find(v, STR("Data"));
	if ((r = checksum(a, data, &sum, err)) < 0)
		return r;
	if (val_as_int(val_find(v, STR("Checksum"))) != sum)
		return err_set(err, ERR_INVALID, "checkpoint is corrupted");
	VAL_EACH(e, val_find(data, STR("PodDeviceEntries"))) {
		struct err one = ERR_INIT;
		if (entry_load(d, a, *e, &one) < 0)
			log_error("an entry of the checkpoint of devices is ignored", KV("error", &one));
	}
	/* Known, so that the node has 0 of them until their plugins are back. */
	VAL_EACH_MEMBER(m, val_find(data, STR("RegisteredDevices"))) {
		struct offer *x = offer_find(d, atom_str(m->key));
		if (x || (x = offer_add(d, atom_str(m->key))))
			x->listed = true;
	}
	return 0;
}

void devices_load(struct devices *d)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf b = BUF_INIT(FILE_MAX);
	struct err err = ERR_INIT;
	int r = file_read(d->checkpoint, &b, &err);

	if (r == 0)
		r = content_load(d, &a, buf_str(&b), &err);
	if (r < 0 && r != -ERR_NOT_FOUND)
		log_error("the checkpoint of devices is ignored: devices of running pods may be given away twice", KV("error", &err));
}
