/* Persistent volumes, claims, storage classes. */
#include "codec/types.h"
#include "kubectl/describe.h"
#include "machinery/selector.h"

static str modes_of(struct ktl *k, struct val modes)
{
	static const struct { const char *name, *shown; } known[] = {
		{ "ReadWriteOnce", "RWO" }, { "ReadOnlyMany", "ROX" }, { "ReadWriteMany", "RWX" }, { "ReadWriteOncePod", "RWOP" },
	};
	CLEANUP(buf_done) struct buf b = BUF_INIT(256);
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		bool has = false;
		VAL_EACH(m, modes)
			has |= str_eq(val_as_str(*m), str_of(known[i].name));
		if (has)
			buf_addf(&b, "%s%s", b.n ? "," : "", known[i].shown);
	}
	return arena_str(&k->arena, buf_str(&b));
}

static str class_of(struct val object)
{
	struct val old = val_find(val_get(object, metadata, annotations), STR("volume.beta.kubernetes.io/storage-class"));
	return val_exists(old) ? val_as_str(old) : val_str(object, spec, storageClassName);
}

static void say_phase(struct ktl_page *p, struct val object)
{
	str deleted = val_str(object, metadata, deletionTimestamp);
	if (deleted.n)
		ktl_say(p, 0, "Status:\tTerminating (lasts " STR_FMT ")\n", STR_ARG(ktl_age(p->k, deleted)));
	else
		ktl_say(p, 0, "Status:\t" STR_FMT "\n", STR_ARG(val_str(object, status, phase)));
}

static void say_finalizers(struct ktl_page *p, struct val object)
{
	ktl_say(p, 0, "Finalizers:\t[" STR_FMT "]\n", STR_ARG(ktl_join(p->k, val_get(object, metadata, finalizers), " ")));
}

static str storage_of(struct val amounts)
{
	str amount = val_as_str(val_find(amounts, STR("storage")));
	return amount.n ? amount : STR("0");
}

/* ---- claims ---- */

static void say_users(struct ktl_page *p, struct val pods, str claim)
{
	bool first = true;
	ktl_say(p, 0, "Used By:\t");
	VAL_EACH(pod, pods)
		VAL_EACH(v, val_get(*pod, spec, volumes))
			if (str_eq(val_str(*v, persistentVolumeClaim, claimName), claim)) {
				ktl_say(p, 0, "%s" STR_FMT "\n", first ? "" : "\t", STR_ARG(val_str(*pod, metadata, name)));
				first = false;
			}
	if (first)
		ktl_say(p, 0, "<none>\n");
}

int ktl_describe_claim(struct ktl_page *p, struct val c)
{
	struct ktl *k = p->k;
	struct val pods, source = val_get(c, spec, dataSource);
	bool bound = val_str(c, spec, volumeName).n;
	if (ktl_list(k, ktl_kind_of_type(k, TYPE(core_v1, Pod)), val_str(c, metadata, namespace), STR_NONE, STR_NONE, &pods) < 0)
		return -1;
	ktl_say_name(p, c);
	ktl_say(p, 0, "StorageClass:\t" STR_FMT "\n", STR_ARG(class_of(c)));
	say_phase(p, c);
	ktl_say(p, 0, "Volume:\t" STR_FMT "\n", STR_ARG(val_str(c, spec, volumeName)));
	ktl_say_labels(p, "Labels", val_get(c, metadata, labels));
	ktl_say_annotations(p, "Annotations", val_get(c, metadata, annotations));
	say_finalizers(p, c);
	ktl_say(p, 0, "Capacity:\t" STR_FMT "\n", STR_ARG(bound ? storage_of(val_get(c, status, capacity)) : STR_NONE));
	ktl_say(p, 0, "Access Modes:\t" STR_FMT "\n", STR_ARG(bound ? modes_of(k, val_get(c, status, accessModes)) : STR_NONE));
	if (val_has(c, spec, volumeMode))
		ktl_say(p, 0, "VolumeMode:\t" STR_FMT "\n", STR_ARG(val_str(c, spec, volumeMode)));
	if (val_exists(source)) {
		ktl_say(p, 0, "DataSource:\n");
		if (val_has(source, apiGroup))
			ktl_say(p, 1, "APIGroup:\t" STR_FMT "\n", STR_ARG(val_str(source, apiGroup)));
		ktl_say(p, 1, "Kind:\t" STR_FMT "\n", STR_ARG(val_str(source, kind)));
		ktl_say(p, 1, "Name:\t" STR_FMT "\n", STR_ARG(val_str(source, name)));
	}
	say_users(p, pods, val_str(c, metadata, name));
	ktl_say_conditions(p, val_get(c, status, conditions), "LastProbeTime", A_lastProbeTime);
	ktl_say_events(p, c, STR("PersistentVolumeClaim"));
	return 0;
}

/* ---- volumes ---- */

static void say_affinity(struct ktl_page *p, struct val required)
{
	unsigned n = 0;
	ktl_say(p, 0, val_exists(required) ? "Node Affinity:\t\n" : "Node Affinity:\t<none>\n");
	if (!val_exists(required))
		return;
	ktl_say(p, 1, val_len(val_get(required, nodeSelectorTerms)) ? "Required Terms:\t\n" : "Required Terms:\t<none>\n");
	VAL_EACH(term, val_get(required, nodeSelectorTerms)) {
		struct val rules = val_get(*term, matchExpressions);
		bool first = true;
		ktl_say(p, 2, "Term %u:\t", n++);
		if (!val_len(rules))
			ktl_say(p, 0, "<none>\n");
		VAL_EACH(r, rules) {
			struct val values = val_get(*r, values);
			if (!first)
				ktl_say(p, 2, "\t");
			ktl_say(p, 0, STR_FMT " " STR_FMT, STR_ARG(val_str(*r, key)), STR_ARG(ktl_lower(p->k, val_str(*r, operator))));
			if (val_len(values))
				ktl_say(p, 0, " [" STR_FMT "]", STR_ARG(ktl_join(p->k, values, ", ")));
			ktl_say(p, 0, "\n");
			first = false;
		}
	}
}

int ktl_describe_volume(struct ktl_page *p, struct val v)
{
	struct val spec = val_get(v, spec), claim = val_get(spec, claimRef);
	ktl_say(p, 0, "Name:\t" STR_FMT "\n", STR_ARG(val_str(v, metadata, name)));
	ktl_say_labels(p, "Labels", val_get(v, metadata, labels));
	ktl_say_annotations(p, "Annotations", val_get(v, metadata, annotations));
	say_finalizers(p, v);
	ktl_say(p, 0, "StorageClass:\t" STR_FMT "\n", STR_ARG(class_of(v)));
	say_phase(p, v);
	ktl_say(p, 0, "Claim:\t" STR_FMT "%s" STR_FMT "\n", STR_ARG(val_str(claim, namespace)), val_exists(claim) ? "/" : "", STR_ARG(val_str(claim, name)));
	ktl_say(p, 0, "Reclaim Policy:\t" STR_FMT "\n", STR_ARG(val_str(spec, persistentVolumeReclaimPolicy)));
	ktl_say(p, 0, "Access Modes:\t" STR_FMT "\n", STR_ARG(modes_of(p->k, val_get(spec, accessModes))));
	if (val_has(spec, volumeMode))
		ktl_say(p, 0, "VolumeMode:\t" STR_FMT "\n", STR_ARG(val_str(spec, volumeMode)));
	ktl_say(p, 0, "Capacity:\t" STR_FMT "\n", STR_ARG(storage_of(val_get(spec, capacity))));
	say_affinity(p, val_get(spec, nodeAffinity, required));
	ktl_say(p, 0, "Message:\t" STR_FMT "\n", STR_ARG(val_str(v, status, message)));
	ktl_say(p, 0, "Source:\n");
	ktl_say_volume_source(p, spec);
	ktl_say_events(p, v, STR("PersistentVolume"));
	return 0;
}

/* ---- classes ---- */

int ktl_describe_storage_class(struct ktl_page *p, struct val c)
{
	struct arena *a = &p->k->arena;
	struct val notes = val_get(c, metadata, annotations), options = val_get(c, mountOptions), grows = val_get(c, allowVolumeExpansion);
	bool is_default = str_eq(val_as_str(val_find(notes, STR("storageclass.kubernetes.io/is-default-class"))), STR("true")) ||
			  str_eq(val_as_str(val_find(notes, STR("storageclass.beta.kubernetes.io/is-default-class"))), STR("true"));
	ktl_say(p, 0, "Name:\t" STR_FMT "\n", STR_ARG(val_str(c, metadata, name)));
	ktl_say(p, 0, "IsDefaultClass:\t%s\n", is_default ? "Yes" : "No");
	ktl_say(p, 0, "Annotations:\t" STR_FMT "\n", STR_ARG(labels_display(a, notes)));
	ktl_say(p, 0, "Provisioner:\t" STR_FMT "\n", STR_ARG(val_str(c, provisioner)));
	ktl_say(p, 0, "Parameters:\t" STR_FMT "\n", STR_ARG(labels_display(a, val_get(c, parameters))));
	ktl_say(p, 0, "AllowVolumeExpansion:\t%s\n", !val_exists(grows) ? "<unset>" : val_as_bool(grows) ? "True" : "False");
	ktl_say(p, 0, val_len(options) ? "MountOptions:\n" : "MountOptions:\t<none>\n");
	VAL_EACH(o, options)
		ktl_say(p, 1, STR_FMT "\n", STR_ARG(val_as_str(*o)));
	if (val_has(c, reclaimPolicy))
		ktl_say(p, 0, "ReclaimPolicy:\t" STR_FMT "\n", STR_ARG(val_str(c, reclaimPolicy)));
	if (val_has(c, volumeBindingMode))
		ktl_say(p, 0, "VolumeBindingMode:\t" STR_FMT "\n", STR_ARG(val_str(c, volumeBindingMode)));
	ktl_say_events(p, c, STR("StorageClass"));
	return 0;
}
