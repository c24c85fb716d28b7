/* crictl: images. */
#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

#include "cmd/crictl.h"
#include "codec/atoms.h"
#include "codec/types.h"

static struct val image_request(struct crictl *c, const char *name)
{
	return OBJECT(&c->arena, F(image, OBJECT(&c->arena, F(image, VAL_STR(str_of(name))))));
}

/* ---- lists ---- */

/* name:tag; names that runtimes list have a tag always. */
static void split_tag(str whole, str *ret_name, str *ret_tag)
{
	ptrdiff_t colon = str_rchr(whole, ':');

	*ret_name = colon > 0 ? str_head(whole, (size_t)colon) : whole;
	*ret_tag = colon > 0 ? str_skip(whole, (size_t)colon + 1) : STR("<none>");
}

/* As --filter names one: name:tag, name@digest, or a beginning of the id. */
static bool is_image(struct val image, str wanted)
{
	str id = val_str(image, id), first_tag = val_as_str(val_at(val_get(image, repoTags), 0));

	if (str_chr(wanted, '@') >= 0)
		return str_starts(val_as_str(val_at(val_get(image, repoDigests), 0)), wanted);
	if (str_chr(wanted, ':') >= 0 && !str_starts(wanted, STR("sha256:")))
		return str_eq(first_tag, wanted);
	return wanted.n && (str_starts(id, wanted) || str_starts(str_skip(id, strlen("sha256:")), wanted));
}

/* What stands before that image in the list (since), or behind it (before): runtimes list the newest first. */
static struct val part_of(struct arena *a, struct val list, str wanted, bool behind)
{
	struct val_builder b = val_builder(a);
	bool seen = false;

	VAL_EACH(image, list) {
		bool here = is_image(*image, wanted);
		if (!here && seen == behind)
			val_add_item(&b, *image);
		seen |= here;
	}
	return val_end_list(&b);
}

static int by_reference(struct arena *a, struct val *list, const char *pattern, struct err *err)
{
	struct val_builder b = val_builder(a);

	VAL_EACH(image, *list) {
		bool found = false;
		VAL_EACH(tag, val_get(*image, repoTags)) {
			int r = crictl_matches(pattern, val_as_str(*tag), err);
			if (r < 0)
				return r;
			found |= r > 0;
		}
		if (found)
			val_add_item(&b, *image);
	}
	*list = val_end_list(&b);
	return 0;
}

static struct val by_dangling(struct arena *a, struct val list, bool dangling)
{
	struct val_builder b = val_builder(a);

	VAL_EACH(image, list)
		if ((val_len(val_get(*image, repoTags)) == 0) == dangling)
			val_add_item(&b, *image);
	return val_end_list(&b);
}

static int filter_by(struct arena *a, struct val *list, const char *filter, struct err *err)
{
	str key, value;

	(void)str_cut(str_of(filter), '=', &key, &value);
	if (str_eq(key, STR("reference")))
		return by_reference(a, list, value.p, err);
	if (str_eq(key, STR("dangling")))
		*list = by_dangling(a, *list, str_eq(value, STR("true")));
	else if (str_eq(key, STR("before")) || str_eq(key, STR("since")))
		*list = part_of(a, *list, value, str_eq(key, STR("before")));
	else
		return err_set(err, ERR_BAD_REQUEST, "unknown filter flag: %s", filter);
	return 0;
}

/* (suspends) */
static int list_images(struct crictl *c, const char *name, struct val *ret, struct err *err)
{
	struct arena *a = &c->arena;
	struct val v, filter = name ? image_request(c, name) : VAL_EMPTY_OBJECT;
	int r = crictl_call(c, &rpc_ImageService_ListImages, OBJECT(a, F(filter, filter)), &v, err);

	*ret = val_get(v, images);
	for (size_t i = 0; r == 0 && i < c->filters.n; i++)
		r = filter_by(a, ret, c->filters.item[i], err);
	return r;
}

static void add_row(const struct crictl *c, struct table *t, struct val image, str name, str tag)
{
	struct arena *a = t->arena;
	const char *cells[6];
	str digest, before;
	size_t n = 0;

	if (!str_cut(val_as_str(val_at(val_get(image, repoDigests), 0)), '@', &before, &digest))
		digest = STR("<none>");
	cells[n++] = crictl_text(a, name);
	cells[n++] = crictl_text(a, tag);
	if (c->digests)
		cells[n++] = str_starts(digest, STR("sha256:")) ? crictl_short_id(c, a, digest) : crictl_text(a, digest);
	cells[n++] = crictl_short_id(c, a, val_str(image, id));
	cells[n++] = crictl_size(a, (uint64_t)val_int(image, size));
	if (c->pinned)
		cells[n++] = val_bool(image, pinned) ? "true" : "false";
	table_add(t, cells);
}

static void add_image(const struct crictl *c, struct table *t, struct val image)
{
	struct val tags = val_get(image, repoTags), digests = val_get(image, repoDigests);
	str name = STR("<none>"), rest;

	VAL_EACH(item, tags) {
		split_tag(val_as_str(*item), &name, &rest);
		add_row(c, t, image, name, rest);
	}
	if (val_len(tags))
		return;
	if (val_len(digests))
		(void)str_cut(val_as_str(val_at(digests, 0)), '@', &name, &rest);
	add_row(c, t, image, name, STR("<none>"));
}

/* In words. */
static void describe(struct crictl *c, struct val image)
{
	struct arena *a = &c->arena;

	printf("ID: %s\n", crictl_text(a, val_str(image, id)));
	VAL_EACH(tag, val_get(image, repoTags))
		printf("Tags: %s\n", crictl_text(a, val_as_str(*tag)));
	VAL_EACH(digest, val_get(image, repoDigests))
		printf("Digests: %s\n", crictl_text(a, val_as_str(*digest)));
	printf("Size: %s\n", crictl_size(a, (uint64_t)val_int(image, size)));
	if (val_str(image, username).n)
		printf("Username: %s\n", crictl_text(a, val_str(image, username)));
	printf("\n");
}

int crictl_images(struct crictl *c, struct err *err)
{
	const char *heading[6];
	struct arena *a = &c->arena;
	struct table t;
	struct val list;
	size_t n = 0;
	int r = crictl_check_output(c, true, err);

	if (r < 0 || (r = list_images(c, c->n ? c->arguments[0] : NULL, &list, err)) < 0 ||
	    crictl_show_as(c, OBJECT(a, F(images, list)), rpc_ImageService_ListImages.response))
		return r;
	heading[n++] = "IMAGE";
	heading[n++] = "TAG";
	if (c->digests)
		heading[n++] = "DIGEST";
	heading[n++] = "IMAGE ID";
	heading[n++] = "SIZE";
	if (c->pinned)
		heading[n++] = "PINNED";
	table_init(&t, a, n, heading);
	VAL_EACH(image, list) {
		if (c->quiet)
			printf("%s\n", crictl_text(a, val_str(*image, id)));
		else if (c->verbose)
			describe(c, *image);
		else
			add_image(c, &t, *image);
	}
	if (!c->quiet && !c->verbose)
		table_print(&t);
	return 0;
}

/* ---- fetching ---- */

static int credentials(struct crictl *c, struct val *ret, struct err *err)
{
	struct arena *a = &c->arena;
	str user, password;

	*ret = VAL_EMPTY;
	if ((c->creds != NULL) + (c->auth != NULL) + (c->username != NULL) > 1)
		return err_set(err, ERR_BAD_REQUEST, "only one of --creds, --auth and --username can be given");
	if (c->creds) {
		(void)str_cut(str_of(c->creds), ':', &user, &password);
		*ret = OBJECT(a, F(username, VAL_STR(user)), F(password, VAL_STR(password)));
	} else if (c->auth) {
		*ret = OBJECT(a, F(auth, VAL_STR(str_of(c->auth))));
	} else if (c->username) {
		const char *typed = getpass("Enter Password:");
		if (!typed)
			return err_set(err, ERR_BAD_REQUEST, "there is no terminal to ask for the password");
		*ret = OBJECT(a, F(username, VAL_STR(str_of(c->username))), F(password, VAL_STR(arena_str(a, str_of(typed)))));
	}
	return 0;
}

int crictl_pull_image(struct crictl *c, struct val image, struct val pod, str *ret_ref, struct err *err)
{
	struct val auth, v;
	int r = credentials(c, &auth, err);

	if (r == 0)
		r = crictl_call_within(c, &rpc_ImageService_PullImage,
				       OBJECT(&c->arena, F(image, image), F(auth, auth), F(sandboxConfig, pod)), c->pull_ms, &v, err);
	if (r < 0)
		return err_wrap(err, r, "pulling image");
	*ret_ref = val_str(v, imageRef);
	return 0;
}

int crictl_pull(struct crictl *c, struct err *err)
{
	struct arena *a = &c->arena;
	struct val annotations, pod = VAL_EMPTY;
	str ref;
	int r = crictl_labels(c, &c->annotations, &annotations, err);

	if (r == 0 && c->pod_config)
		r = crictl_config_read(c, c->pod_config, TYPE(cri_v1, PodSandboxConfig), &pod, err);
	if (r < 0)
		return r;
	struct val image = OBJECT(a, F(image, VAL_STR(str_of(c->arguments[0]))), F(annotations, annotations));
	if ((r = crictl_pull_image(c, image, pod, &ref, err)) < 0)
		return r;
	printf("Image is up to date for %s\n", crictl_text(a, ref));
	return 0;
}

/* ---- removing ---- */

static int remove_image(struct crictl *c, const char *name, struct err *err)
{
	struct arena *a = &c->arena;
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
		printf("Deleted: %s\n", crictl_text(a, val_as_str(*tag)));
	if (!val_len(tags))
		printf("Deleted: %s\n", crictl_text(a, val_str(v, image, id)));
	return 0;
}

/* (suspends) Ids of the images that containers are made of. */
static int used_images(struct crictl *c, struct val *ret, struct err *err)
{
	struct arena *a = &c->arena;
	struct val_builder b = val_builder(a);
	struct val v, status;
	int r = crictl_call(c, &rpc_RuntimeService_ListContainers, VAL_EMPTY_OBJECT, &v, err);

	VAL_EACH(one, r < 0 ? VAL_EMPTY : val_get(v, containers)) {
		if (r == 0 && (r = crictl_call(c, &rpc_ImageService_ImageStatus, OBJECT(a, F(image, val_get(*one, image))), &status, err)) == 0)
			val_add_item(&b, val_get(status, image, id));
		val_add_item(&b, val_get(*one, imageRef));
	}
	*ret = val_end_list(&b);
	return r;
}

static bool is_among(struct val list, str text)
{
	VAL_EACH(item, list)
		if (str_eq(val_as_str(*item), text))
			return true;
	return false;
}

int crictl_rmi(struct crictl *c, struct err *err)
{
	struct val images, used = VAL_EMPTY_LIST;
	int r = 0;

	if (!c->n && !c->all && !c->prune)
		return err_set(err, ERR_BAD_REQUEST, "which images? Say their names or ids, --prune or --all");
	for (size_t i = 0; i < c->n && r == 0; i++)
		r = remove_image(c, c->arguments[i], err);
	if ((!c->all && !c->prune) || r < 0 || (r = list_images(c, NULL, &images, err)) < 0 ||
	    (c->prune && (r = used_images(c, &used, err)) < 0))
		return r;
	VAL_EACH(image, images)
		if (r == 0 && !val_bool(*image, pinned) && !is_among(used, val_str(*image, id)))
			r = remove_image(c, crictl_text(&c->arena, val_str(*image, id)), err);
	return r;
}

/* ---- looking ---- */

static int inspect(struct crictl *c, const char *name, struct val *all, size_t *n, struct err *err)
{
	struct val v, request = val_with(&c->arena, image_request(c, name), val_of_bool(!c->quiet), verbose);
	int r = crictl_call(c, &rpc_ImageService_ImageStatus, request, &v, err);

	if (r < 0)
		return r;
	if (!val_has(v, image))
		return err_set(err, ERR_NOT_FOUND, "no such image \"%s\" present", name);
	if (strcmp(c->output, "table") != 0)
		return crictl_status(c, val_get(v, image), TYPE(cri_v1, Image), val_get(v, info), &all[(*n)++], err);
	describe(c, val_get(v, image));
	return 0;
}

int crictl_inspecti(struct crictl *c, struct err *err)
{
	struct val found = VAL_EMPTY_LIST;
	size_t n = 0;
	int r = crictl_check_output(c, true, err);

	if (r == 0 && !c->n)
		r = list_images(c, c->name, &found, err);
	if (r < 0)
		return r;
	if (!c->n && !val_len(found))
		return err_set(err, ERR_NOT_FOUND, "No IDs provided or nothing found per filter");
	struct val *all = ARENA_ARRAY(&c->arena, struct val, c->n + val_len(found));
	for (size_t i = 0; i < c->n && r == 0; i++)
		r = inspect(c, c->arguments[i], all, &n, err);
	VAL_EACH(image, found)
		if (r == 0)
			r = inspect(c, arena_str(&c->arena, val_str(*image, id)).p, all, &n, err);
	if (r == 0)
		crictl_show_statuses(c, all, n);
	return r;
}

int crictl_imagefsinfo(struct crictl *c, struct err *err)
{
	struct val v, all;
	int r = crictl_check_output(c, false, err);

	if (r < 0 || (r = crictl_call(c, &rpc_ImageService_ImageFsInfo, VAL_EMPTY_OBJECT, &v, err)) < 0 ||
	    (r = crictl_status(c, v, rpc_ImageService_ImageFsInfo.response, VAL_EMPTY, &all, err)) < 0)
		return r;
	crictl_show_statuses(c, &all, 1);
	return 0;
}
