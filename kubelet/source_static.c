/*
 * From a manifest to a static pod. Its uid is a hash of what the manifest says and of where it is, so that another content is another
 * pod and the same content is still the same pod after a restart of the kubelet.
 */
#include "apiserver/admission/node_restriction.h"
#include "base/encoding.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "kubelet/source_priv.h"
#include "machinery/validate.h"

enum { HASH_BYTES = 16, HASH_TEXT = 2 * HASH_BYTES, JSON_MAX = 4 * MANIFEST_MAX };

#define POD TYPE(core_v1, Pod)

/* ---- the hash: FNV-1a of 128 bits ---- */

__extension__ typedef unsigned __int128 uint128;

#define UINT128(high, low) ((uint128)UINT64_C(high) << 64 | UINT64_C(low))

static uint128 hash_add(uint128 hash, str s)
{
	for (size_t i = 0; i < s.n; i++)
		hash = (hash ^ (unsigned char)s.p[i]) * UINT128(0x0000000001000000, 0x000000000000013b);
	return hash;
}

static str hash_text(struct arena *a, uint128 hash)
{
	char bytes[HASH_BYTES], *text = ARENA_ARRAY(a, char, HASH_TEXT);

	for (size_t i = HASH_BYTES; i-- > 0; hash >>= 8)
		bytes[i] = (char)(hash & 0xff);
	return str_span(text, hex_encode(text, str_span(bytes, sizeof bytes)));
}

static int pod_hash(struct arena *a, const struct kubelet_node *node, enum source_kind kind, str place, struct val pod, str *ret,
		    struct err *err)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(JSON_MAX);
	uint128 hash = UINT128(0x6c62272e07bb0142, 0x62b821756295c58d);
	int r = json_encode(&json, pod, &(struct json_encode_options){ .type = POD }, err);

	if (r < 0)
		return r;
	hash = hash_add(hash, buf_str(&json));
	if (kind == SOURCE_FILE) {
		hash = hash_add(hash_add(hash, STR("host:")), node->name);
		hash = hash_add(hash_add(hash, STR("file:")), place);
	} else {
		hash = hash_add(hash_add(hash, STR("url:")), place);
	}
	*ret = hash_text(a, hash);
	return 0;
}

/* ---- what static pods have ---- */

/* Problems of the node do not evict it. */
static struct val tolerate(struct arena *a, struct val pod)
{
	struct val all = OBJECT(a, F(operator, VAL_LIT("Exists")), F(effect, VAL_LIT("NoExecute")));
	struct val list = val_get(pod, spec, tolerations);
	size_t i = 0;

	while (i < val_len(list) && !(str_eq(val_str(list.items[i], operator), STR("Exists")) && !val_str(list.items[i], key).n &&
				      !val_str(list.items[i], value).n && str_eq(val_str(list.items[i], effect), STR("NoExecute"))))
		i++;
	list = i < val_len(list) ? val_list_set(a, list, i, all) : val_list_append(a, list, all);
	return val_with(a, pod, list, spec, tolerations);
}

static int pod_complete(struct arena *a, const struct kubelet_node *node, enum source_kind kind, str place, struct val *pod, struct err *err)
{
	struct val p = *pod;
	str uid = val_str(p, metadata, uid), name = val_str(p, metadata, name), node_name = source_lower(a, node->name);
	int r = uid.n ? 0 : pod_hash(a, node, kind, place, p, &uid, err);

	if (r < 0)
		return r;
	p = val_with(a, p, VAL_STR(uid), metadata, uid);
	p = val_with(a, p, VAL_STR(arena_printf(a, STR_FMT "-" STR_FMT, STR_ARG(name), STR_ARG(node_name))), metadata, name);
	if (!val_str(p, metadata, namespace).n)
		p = val_with(a, p, VAL_LIT("default"), metadata, namespace);
	p = val_with(a, p, VAL_STR(node->name), spec, nodeName);
	p = pod_annotate(a, p, CONFIG_HASH, uid);
	if (kind == SOURCE_FILE)
		p = tolerate(a, p);
	p = val_with(a, p, OBJECT(a, F(phase, VAL_LIT("Pending"))), status);
	return val_canonical(a, p, POD, NULL, pod, err);
}

static int pod_check(struct arena *a, struct val pod, struct err *err)
{
	struct field_errors errors;
	const char *named;
	int r;

	field_errors_init(&errors, a);
	validate_create(POD, pod, &errors);
	if (errors.n)
		return err_set(err, ERR_INVALID, "invalid pod: " STR_FMT, STR_ARG(field_errors_plain(&errors)));
	if ((r = pod_api_reference(a, pod, &named, err)) < 0)
		return r;
	return named ? err_set(err, ERR_INVALID, "static pods may not reference %s", named) : 0;
}

static int pod_make(struct arena *a, const struct kubelet_node *node, enum source_kind kind, str place, struct val in, struct val *ret,
		    struct err *err)
{
	int r;

	if (!val_str(in, metadata, name).n)
		return err_set(err, ERR_INVALID, "invalid pod: name is needed for the pod");
	/* Folders are named by it. */
	if (str_chr(val_str(in, metadata, uid), '/') >= 0 || str_starts(val_str(in, metadata, uid), STR(".")))
		return err_set(err, ERR_INVALID, "invalid pod: its uid cannot be a file name");
	if ((r = default_object(a, POD, in, ret, err)) < 0 || (r = pod_complete(a, node, kind, place, ret, err)) < 0)
		return r;
	return pod_check(a, *ret, err);
}

/* ---- manifests ---- */

static int decode(struct arena *a, str text, struct val *ret, const struct type **ret_type, struct err *err)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(JSON_MAX);
	int r = yaml_to_json(text, &json, NULL, err);

	if (r < 0 || (r = buf_check(&json, "the manifest", err)) < 0)
		return r;
	return json_decode_object(a, arena_str(a, buf_str(&json)), NULL, ret, ret_type, err);
}

int static_pods_decode(struct arena *a, const struct kubelet_node *node, enum source_kind kind, str place, str text, bool lists,
		       struct val *ret, struct err *err)
{
	struct val_builder pods = val_builder(a);
	const struct type *type = NULL;
	struct val in, pod;
	int r = decode(a, text, &in, &type, err);

	if (r < 0)
		return r;
	if (type == POD)
		in = LIST(a, in);
	else if (lists && type == TYPE(core_v1, PodList))
		in = val_get(in, items);
	else
		return err_set(err, ERR_INVALID, "it is no Pod");
	VAL_EACH(item, in) {
		if ((r = pod_make(a, node, kind, place, *item, &pod, err)) < 0)
			return r;
		val_add_item(&pods, pod);
	}
	*ret = val_end_list(&pods);
	return 0;
}
