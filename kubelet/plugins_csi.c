/* CSI drivers that have registered. */
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "kubelet/plugins.h"

enum { DRIVERS_MAX = 256, NAME_MAX_BYTES = 63, ENDPOINT_MAX = 1024 };

struct driver {
	struct list link;
	struct frozen *self;   /* { name, endpoint } */
	int64_t version[3];    /* the highest that it speaks */
};

static str driver_name(const struct driver *d) { return val_str(d->self->val, name); }

static void driver_free(struct driver *d)
{
	list_remove(&d->link);
	frozen_unref(d->self);
	free(d);
}

void csi_drivers_init(struct csi_drivers *c) { list_init(&c->all); }

void csi_drivers_done(struct csi_drivers *c)
{
	LIST_EACH_SAFE(struct driver, d, &c->all, link)
		driver_free(d);
}

static struct driver *driver_find(const struct csi_drivers *c, str name)
{
	LIST_EACH(struct driver, d, &c->all, link)
		if (str_eq(driver_name(d), name))
			return d;
	return NULL;
}

/* "1.2.3", also with a "v" before it and without the later parts; only 1.x is spoken here. */
static bool version_parse(str text, int64_t ret[3])
{
	str part, rest = str_starts(text, STR("v")) ? str_skip(text, 1) : text;

	ret[1] = ret[2] = 0;
	for (int i = 0; i < 3; i++) {
		bool more = str_cut(rest, '.', &part, &rest);
		if (!str_to_i64(part, &ret[i]) || ret[i] < 0)
			return false;
		if (!more)
			break;
	}
	return ret[0] == 1;
}

static int version_cmp(const int64_t a[3], const int64_t b[3])
{
	for (int i = 0; i < 3; i++)
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	return 0;
}

/* ["a" "b"], as Go prints it. */
static void versions_text(struct val versions, char *text, size_t size)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(256);

	VAL_EACH(v, versions) {
		if (v != versions.items)
			buf_addc(&b, ' ');
		buf_add_quoted(&b, val_as_str(*v));
	}
	(void)snprintf(text, size, "[" STR_FMT "]", STR_ARG(buf_str(&b)));
}

static int highest(const struct csi_drivers *c, const char *caller, str name, struct val versions, int64_t ret[3], struct err *err)
{
	char quoted[300];
	bool found = false;

	if (!val_len(versions))
		return err_set(err, ERR_INVALID, "kubernetes.io/csi: %s for CSI driver \"" STR_FMT
			       "\" failed. Plugin returned an empty list for supported versions", caller, STR_ARG(name));
	VAL_EACH(v, versions) {
		int64_t version[3];
		if (version_parse(val_as_str(*v), version) && (!found || version_cmp(version, ret) > 0)) {
			memcpy(ret, version, sizeof(version));
			found = true;
		}
	}
	versions_text(versions, quoted, sizeof(quoted));
	if (!found)
		return err_set(err, ERR_INVALID, "kubernetes.io/csi: %s for CSI driver \"" STR_FMT "\" failed. None of the versions "
			       "specified %s are supported. err=could not find a highest supported version from versions (%s) reported by "
			       "this driver", caller, STR_ARG(name), quoted, quoted);
	const struct driver *d = driver_find(c, name);
	if (d && version_cmp(d->version, ret) >= 0)
		return err_set(err, ERR_INVALID, "kubernetes.io/csi: %s for CSI driver \"" STR_FMT "\" failed. Another driver with the same "
			       "name is already registered with a higher supported version: \"%lld.%lld.%lld\"", caller, STR_ARG(name),
			       (long long)d->version[0], (long long)d->version[1], (long long)d->version[2]);
	return 0;
}

int csi_drivers_validate(struct csi_drivers *c, str name, str endpoint, struct val versions, struct err *err)
{
	int64_t version[3];
	int r = highest(c, "ValidatePlugin", name, versions, version, err);

	return r < 0 ? err_wrap(err, r, "validation failed for CSI Driver " STR_FMT " at endpoint " STR_FMT, STR_ARG(name), STR_ARG(endpoint))
		     : 0;
}

int csi_drivers_add(struct csi_drivers *c, str name, str endpoint, struct val versions, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	int64_t version[3];
	int r = highest(c, "RegisterPlugin", name, versions, version, err);
	struct driver *d = driver_find(c, name), *before = NULL;

	if (r < 0)
		return r;
	if (!name.n || name.n > NAME_MAX_BYTES || endpoint.n > ENDPOINT_MAX)
		return err_set(err, ERR_INVALID, "the name of the CSI driver is empty or too long");
	if (d)
		driver_free(d);
	size_t n = 0;
	LIST_EACH(struct driver, other, &c->all, link) {
		n++;
		if (!before && str_cmp(driver_name(other), name) > 0)
			before = other;
	}
	if (n >= DRIVERS_MAX)
		return err_set(err, ERR_TOO_LARGE, "there are too many CSI drivers");
	d = mem_zalloc(sizeof(*d));
	d->self = val_freeze(OBJECT(&a, F(name, VAL_STR(name)), F(endpoint, VAL_STR(endpoint))));
	memcpy(d->version, version, sizeof(version));
	list_add(before ? &before->link : &c->all, &d->link);
	return 0;
}

void csi_drivers_remove(struct csi_drivers *c, str name, str endpoint)
{
	struct driver *d = driver_find(c, name);

	if (d && str_eq(val_str(d->self->val, endpoint), endpoint))
		driver_free(d);
}

struct val csi_drivers_list(const struct csi_drivers *c, struct arena *a)
{
	struct val_builder b = val_builder(a);

	LIST_EACH(struct driver, d, &c->all, link)
		val_add_item(&b, val_copy(a, d->self->val));
	return val_end_list(&b);
}
