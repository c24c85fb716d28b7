/* What the runtime is told about a container. */
#include <unistd.h>

#include "codec/atoms.h"
#include "codec/json.h"
#include "codec/types.h"
#include "kubelet/cri_config_priv.h"

enum { ANNOTATION_MAX = 4 << 20 };

str container_log_path(struct arena *a, str container, unsigned attempt)
{
	return arena_printf(a, STR_FMT "/%u.log", STR_ARG(container), attempt);
}

/* ---- hash ---- */

enum { FNV_START = 0x811c9dc5, FNV_PRIME = 0x01000193 };

static uint32_t fnv_add(uint32_t hash, str text)
{
	for (size_t i = 0; i < text.n; i++)
		hash = (hash ^ (unsigned char)text.p[i]) * FNV_PRIME;
	return hash;
}

/* FNV-1a over the bytes of {"image":...,"name":...} as Go prints a list of them, so that a container that another kubelet has made is known
 * again. */
uint32_t container_hash(struct val container)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(ANNOTATION_MAX);
	uint32_t hash = fnv_add((uint32_t)FNV_START, STR("([]uint8)["));

	buf_add(&json, STR("{\"image\":"));
	json_quote(&json, val_str(container, image), false);
	buf_add(&json, STR(",\"name\":"));
	json_quote(&json, val_str(container, name), false);
	buf_addc(&json, '}');
	for (size_t i = 0; i < json.n; i++) {
		char number[8];
		int n = snprintf(number, sizeof(number), i ? " %u" : "%u", (unsigned char)json.p[i]);
		hash = fnv_add(hash, str_span(number, (size_t)n));
	}
	return fnv_add(hash, STR("]"));
}

/* ---- labels and annotations ---- */

static void put(struct arena *a, struct val_builder *b, const char *key, str text)
{
	val_add_member(b, atom_make(a, str_of(key)), VAL_STR(text));
}

static struct val container_labels(struct arena *a, struct val pod, struct val container)
{
	struct val_builder b = val_builder(a);

	put(a, &b, "io.kubernetes.container.name", val_str(container, name));
	put(a, &b, "io.kubernetes.pod.name", val_str(pod, metadata, name));
	put(a, &b, "io.kubernetes.pod.namespace", val_str(pod, metadata, namespace));
	put(a, &b, "io.kubernetes.pod.uid", val_str(pod, metadata, uid));
	return val_end_object(&b);
}

static void put_number(struct arena *a, struct val_builder *b, const char *key, struct val number)
{
	if (!val_is_nil(number))
		put(a, b, key, arena_printf(a, "%lld", (long long)val_as_int(number)));
}

/* JSON of an object, or of a list of such; nothing when it does not fit. */
static void put_json(struct arena *a, struct val_builder *b, const char *key, struct val v, const struct type *type)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(ANNOTATION_MAX);
	const struct json_encode_options opt = { .type = type };
	int r = 0;

	if (val_is_nil(v))
		return;
	if (!val_is(v, VAL_LIST)) {
		r = json_encode(&text, v, &opt, NULL);
	} else {
		VAL_EACH(item, v) {
			buf_addc(&text, item == v.items ? '[' : ',');
			r = r < 0 ? r : json_encode(&text, *item, &opt, NULL);
		}
		buf_addc(&text, ']');
	}
	if (r >= 0 && !text.overflow)
		put(a, b, key, arena_str(a, buf_str(&text)));
}

/* What a kubelet that starts anew must know without the pod. Those of device plugins come first: the last of a name counts. */
static struct val container_annotations(struct arena *a, const struct cri_container_input *in)
{
	struct val_builder b = val_builder(a);
	struct val ports = val_get(in->container, ports);

	VAL_EACH_MEMBER(m, in->extra_annotations)
		val_add_member(&b, m->key, m->val);
	put(a, &b, "io.kubernetes.container.hash", arena_printf(a, "%x", container_hash(in->container)));
	put(a, &b, "io.kubernetes.container.restartCount", arena_printf(a, "%u", in->attempt));
	put(a, &b, "io.kubernetes.container.terminationMessagePath", val_str(in->container, terminationMessagePath));
	put(a, &b, "io.kubernetes.container.terminationMessagePolicy", val_str(in->container, terminationMessagePolicy));
	put_number(a, &b, "io.kubernetes.pod.deletionGracePeriod", val_get(in->pod, metadata, deletionGracePeriodSeconds));
	put_number(a, &b, "io.kubernetes.pod.terminationGracePeriod", val_get(in->pod, spec, terminationGracePeriodSeconds));
	put_json(a, &b, "io.kubernetes.container.preStopHandler", val_get(in->container, lifecycle, preStop),
		 TYPE(core_v1, LifecycleHandler));
	put_json(a, &b, "io.kubernetes.container.ports", val_len(ports) ? ports : VAL_EMPTY, TYPE(core_v1, ContainerPort));
	return val_end_object(&b);
}

/* ---- mounts ---- */

/* Mounts of a pod with a user namespace have its ids. */
static struct val mounts(struct arena *a, const struct cri_container_input *in, struct val userns)
{
	bool selinux = access("/sys/fs/selinux/enforce", F_OK) == 0;
	struct val_builder b = val_builder(a);

	for (size_t i = 0; i < in->n_mounts; i++) {
		const struct cri_mount *m = &in->mounts[i];
		struct val uids = val_get(userns, uids), gids = val_get(userns, gids);
		val_add_item(&b, OBJECT(a, F(containerPath, VAL_STR(m->container_path)), F(hostPath, VAL_STR(m->host_path)),
					F(readonly, val_of_bool(m->readonly)),
					F(selinuxRelabel, val_of_bool(m->selinux_relabel && selinux)),
					F(propagation, m->propagation.n ? VAL_STR(m->propagation) : VAL_EMPTY),
					F(uidMappings, val_len(uids) ? uids : m->uid_mappings),
					F(gidMappings, val_len(gids) ? gids : m->gid_mappings),
					F(recursiveReadOnly, val_of_bool(m->recursive_readonly)), F(image, m->image),
					F(imageSubPath, VAL_STR(m->image_sub_path))));
	}
	return val_end_list(&b);
}

/* ---- all of it ---- */

/* SIGRTMIN+3 is SIGRTMINPLUS3 in CRI. */
static struct val stop_signal(struct arena *a, struct val container)
{
	str name = val_str(container, lifecycle, stopSignal);
	ptrdiff_t plus = str_chr(name, '+'), minus = str_chr(name, '-'), at = plus > 0 ? plus : minus;

	if (at <= 0)
		return name.n ? VAL_STR(name) : VAL_EMPTY;
	str head = str_head(name, (size_t)at), tail = str_skip(name, (size_t)at + 1);
	return VAL_STR(arena_printf(a, STR_FMT "%s" STR_FMT, STR_ARG(head), plus > 0 ? "PLUS" : "MINUS", STR_ARG(tail)));
}

/* Those of device plugins first, so that the pod's own replace them. */
static struct val joined(struct arena *a, struct val x, struct val y)
{
	struct val_builder b = val_builder(a);

	if (!val_len(x))
		return y;
	VAL_EACH(i, x)
		val_add_item(&b, *i);
	VAL_EACH(i, y)
		val_add_item(&b, *i);
	return val_end_list(&b);
}

static int config_make(const struct kubelet_node *n, const struct cri_lookups *l, struct arena *a, const struct cri_container_input *in,
		       struct val *ret, struct err *err)
{
	struct val c = in->container, env, command, args, security;
	str hostname, domain;
	int r;

	if ((r = pod_hostname(n, a, in->pod, &hostname, &domain, err)) < 0 || (r = container_env_make(n, l, a, in, &env, err)) < 0 ||
	    (r = cri_config_check_non_root(in, err)) < 0)
		return r;
	env = joined(a, in->extra_env, env);
	if ((r = cri_config_expand(a, val_get(c, command), env, &command, err)) < 0 ||
	    (r = cri_config_expand(a, val_get(c, args), env, &args, err)) < 0 ||
	    (r = cri_config_container_security(n, a, in, &security, err)) < 0)
		return r;
	struct val resources = container_resources_make(n, a, in->pod, c), userns = val_get(security, namespaceOptions, usernsOptions);
	struct val linux_config = OBJECT(a, F(resources, resources), F(securityContext, security));
	struct val config = OBJECT(
		a, F(metadata, OBJECT(a, F(name, val_get(c, name)), F(attempt, val_of_int(in->attempt)))),
		F(image, OBJECT(a, F(image, VAL_STR(in->image_ref)), F(userSpecifiedImage, val_get(c, image)))), F(command, command),
		F(args, args), F(workingDir, val_get(c, workingDir)), F(envs, env), F(mounts, mounts(a, in, userns)),
		F(devices, in->devices), F(labels, container_labels(a, in->pod, c)), F(annotations, container_annotations(a, in)),
		F(logPath, VAL_STR(container_log_path(a, val_str(c, name), in->attempt))), F(stdin, val_get(c, stdin)),
		F(stdinOnce, val_get(c, stdinOnce)), F(tty, val_get(c, tty)), F(linux, linux_config), F(CDIDevices, in->cdi_devices),
		F(stopSignal, stop_signal(a, c)));

	return cri_config_typed(a, config, TYPE(cri_v1, ContainerConfig), ret, err);
}

int container_config_make(const struct kubelet_node *n, const struct cri_lookups *l, struct arena *a, const struct cri_container_input *in,
			  struct val *ret, str *ret_reason, struct err *err)
{
	int r = config_make(n, l, a, in, ret, err);

	if (r < 0)
		*ret_reason = STR("CreateContainerConfigError");
	return r;
}
