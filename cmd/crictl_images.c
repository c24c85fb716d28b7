/* crictl: images. */
#include <stdio.h>

#include "cmd/crictl.h"
#include "codec/atoms.h"
#include "codec/types.h"

static struct val image_request(struct crictl *c, const char *name)
{
	return OBJECT(&c->arena, F(image, OBJECT(&c->arena, F(image, VAL_STR(str_of(name))))));
}

static void add_row(const struct crictl *c, struct table *t, struct val image, str name, str tag)
{
	struct arena *a = t->arena;
	const char *cells[] = { crictl_text(a, name), crictl_text(a, tag), crictl_short_id(c, a, val_str(image, id)),
				crictl_size(a, (uint64_t)val_int(image, size)) };

	table_add(t, cells);
}

static void add_image(const struct crictl *c, struct table *t, struct val image)
{
	struct val tags = val_get(image, repoTags), digests = val_get(image, repoDigests);
	str name = STR("<none>"), digest;

	VAL_EACH(item, tags) {
		str whole = val_as_str(*item);
		ptrdiff_t colon = str_rchr(whole, ':');
		if (colon > 0)
			add_row(c, t, image, str_head(whole, (size_t)colon), str_skip(whole, (size_t)colon + 1));
	}
	if (val_len(tags))
		return;
	if (val_len(digests))
		(void)str_cut(val_as_str(val_at(digests, 0)), '@', &name, &digest);
	add_row(c, t, image, name, STR("<none>"));
}

int crictl_images(struct crictl *c, struct err *err)
{
	static const char *const heading[] = { "IMAGE", "TAG", "IMAGE ID", "SIZE" };
	struct arena *a = &c->arena;
	struct val filter = c->n ? image_request(c, c->arguments[0]) : VAL_EMPTY_OBJECT, v;
	struct table t;
	int r = crictl_call(c, &rpc_ImageService_ListImages, OBJECT(a, F(filter, filter)), &v, err);

	if (r < 0 || crictl_show_as(c, v, rpc_ImageService_ListImages.response))
		return r;
	table_init(&t, a, ARRAY_LEN(heading), heading);
	VAL_EACH(image, val_get(v, images)) {
		if (c->quiet)
			printf(STR_FMT "\n", STR_ARG(val_str(*image, id)));
		else
			add_image(c, &t, *image);
	}
	if (!c->quiet)
		table_print(&t);
	return 0;
}

int crictl_pull(struct crictl *c, struct err *err)
{
	struct arena *a = &c->arena;
	struct val request = image_request(c, c->arguments[0]), auth = VAL_EMPTY, v;

	if (c->creds) {
		str user, password;
		(void)str_cut(str_of(c->creds), ':', &user, &password);
		auth = OBJECT(a, F(username, VAL_STR(user)), F(password, VAL_STR(password)));
	} else if (c->auth) {
		auth = OBJECT(a, F(auth, VAL_STR(str_of(c->auth))));
	}
	int r = crictl_call(c, &rpc_ImageService_PullImage, val_with(a, request, auth, auth), &v, err);
	if (r < 0)
		return err_wrap(err, r, "pulling image");
	printf("Image is up to date for " STR_FMT "\n", STR_ARG(val_str(v, imageRef)));
	return 0;
}

static int remove_image(struct crictl *c, const char *name, struct err *err)
{
	struct val v, gone;
	int r = crictl_call(c, &rpc_ImageService_ImageStatus, image_request(c, name), &v, err);

	if (r < 0)
		return r;
	if (!val_has(v, image))
		return err_set(err, ERR_NOT_FOUND, "no such image %s", name);
	if ((r = crictl_call(c, &rpc_ImageService_RemoveImage, image_request(c, name), &gone, err)) < 0)
		return err_wrap(err, r, "removing image \"%s\"", name);
	struct val tags = val_get(v, image, repoTags);
	VAL_EACH(tag, tags)
		printf("Deleted: " STR_FMT "\n", STR_ARG(val_as_str(*tag)));
	if (!val_len(tags))
		printf("Deleted: " STR_FMT "\n", STR_ARG(val_str(v, image, id)));
	return 0;
}

int crictl_rmi(struct crictl *c, struct err *err)
{
	struct val v;
	int r = 0;

	for (size_t i = 0; i < c->n && r == 0; i++)
		r = remove_image(c, c->arguments[i], err);
	if (!c->all || r < 0 || (r = crictl_call(c, &rpc_ImageService_ListImages, VAL_EMPTY_OBJECT, &v, err)) < 0)
		return r;
	VAL_EACH(image, val_get(v, images))
		if (r == 0 && !val_bool(*image, pinned))
			r = remove_image(c, crictl_text(&c->arena, val_str(*image, id)), err);
	return r;
}

int crictl_inspecti(struct crictl *c, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < c->n && r == 0; i++) {
		struct val v, request = val_with(&c->arena, image_request(c, c->arguments[i]), val_of_bool(true), verbose);
		if ((r = crictl_call(c, &rpc_ImageService_ImageStatus, request, &v, err)) < 0)
			return r;
		if (!val_has(v, image))
			return err_set(err, ERR_NOT_FOUND, "no such image \"%s\" present", c->arguments[i]);
		r = crictl_show_status(c, val_get(v, image), TYPE(cri_v1, Image), val_get(v, info), err);
	}
	return r;
}

int crictl_imagefsinfo(struct crictl *c, struct err *err)
{
	struct val v;
	int r = crictl_call(c, &rpc_ImageService_ImageFsInfo, VAL_EMPTY_OBJECT, &v, err);

	return r < 0 ? r : crictl_show_status(c, v, rpc_ImageService_ImageFsInfo.response, VAL_EMPTY, err);
}
