/* Calls about images. */
#include <dirent.h>

#include "base/clock.h"
#include "base/encoding.h"
#include "base/log.h"
#include "codec/atoms.h"
#include "runtime/cri.h"

/* The user of the image: a number, or a name. */
static void add_user(struct val *image, struct arena *a, str user)
{
	str name, group;
	int64_t uid;

	(void)str_cut(user, ':', &name, &group);
	if (str_to_i64(name, &uid))
		*image = val_with(a, *image, OBJECT(a, F(value, val_of_int(uid))), uid);
	else if (name.n)
		*image = val_with(a, *image, VAL_STR(name), username);
	else
		*image = val_with(a, *image, VAL_EMPTY_OBJECT, uid);
}

static struct val strings(struct arena *a, const str *all, size_t n)
{
	struct val_builder b = val_builder(a);

	for (size_t i = 0; i < n; i++)
		val_add_item(&b, VAL_STR(all[i]));
	return val_end_list(&b);
}

static struct val image_value(struct arena *a, const struct image *m)
{
	struct val v = OBJECT(a, F(id, VAL_STR(m->id)), F(repoTags, strings(a, m->tags, m->n_tags)),
			      F(repoDigests, strings(a, m->digests, m->n_digests)), F(size, val_of_int((int64_t)m->size)),
			      F(pinned, val_of_bool(m->pinned)));

	add_user(&v, a, val_str(m->config, config, User));
	return v;
}

static int list(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	str name = val_str(request, filter, image, image);
	struct val_builder b = val_builder(a);
	struct image *all, one;
	size_t n;
	int code;

	if (name.n) {
		code = image_find(r->images, name, a, &one, err);
		if (code == 0)
			val_add_item(&b, image_value(a, &one));
		else if (code != -ERR_NOT_FOUND)
			return code;
	} else {
		if ((code = image_list(r->images, a, &all, &n, err)) < 0)
			return code;
		for (size_t i = 0; i < n; i++)
			val_add_item(&b, image_value(a, &all[i]));
	}
	*ret = val_end_list(&b);
	return 0;
}

int cri_list_images(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	struct val images;
	int code = list(r, a, request, &images, err);

	if (code == 0)
		*ret = OBJECT(a, F(images, images));
	return code;
}

int cri_stream_images(struct runtime *r, struct cri_stream *s, struct val request, struct err *err)
{
	struct val images;
	int code = list(r, s->arena, request, &images, err);

	return code < 0 ? code : cri_send_list(s, A_images, images, err);
}

int cri_image_status(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	str name = val_str(request, image, image);
	struct val info = VAL_EMPTY;
	struct image m;
	int code = image_find(r->images, name, a, &m, err);

	if (code == -ERR_NOT_FOUND)
		return 0; /* an answer without an image says so */
	if (code < 0)
		return err_wrap(err, code, "can not resolve \"" STR_FMT "\" locally", STR_ARG(name));
	if (val_bool(request, verbose)) {
		struct val_builder b = val_builder(a);
		struct val detail = OBJECT(a, F(chainID, m.n_layers ? VAL_STR(m.diff_ids[m.n_layers - 1]) : VAL_EMPTY),
					   F(imageSpec, m.config));
		val_add_member(&b, atom_make(a, STR("info")), cri_json(a, detail, NULL));
		info = val_end_object(&b);
	}
	*ret = OBJECT(a, F(image, image_value(a, &m)), F(info, info));
	return 0;
}

/* ---- pulling ---- */

/* "user:password" in base64, as Docker keeps it. */
static int decode_auth(struct arena *a, str text, struct image_auth *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(64 << 10);
	int r = base64_decode_buf(&b, text, err);

	if (r < 0)
		return r;
	str plain = arena_str(a, buf_str(&b));
	if (!str_cut(plain, ':', &ret->user, &ret->password))
		return err_set(err, ERR_INTERNAL, "invalid decoded auth");
	while (ret->password.n && ret->password.p[ret->password.n - 1] == '\0')
		ret->password.n--;
	return 0;
}

/* Credentials for another host than that of the image are not shown to it. */
static bool is_for(str server, str domain)
{
	static const str schemes[] = { STR_INIT("https://"), STR_INIT("http://") };

	for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
		if (str_starts(server, schemes[i]))
			server = str_skip(server, schemes[i].n);
	str host, rest;
	(void)str_cut(server, '/', &host, &rest);
	return !host.n || str_eq(host, domain) ||
	       (str_eq(domain, STR("docker.io")) && (str_eq(host, STR("index.docker.io")) || str_eq(host, STR("registry-1.docker.io"))));
}

static int auth_of(struct arena *a, struct val auth, str domain, struct image_auth *ret, struct err *err)
{
	*ret = (struct image_auth){ .user = val_str(auth, username), .password = val_str(auth, password),
				    .identity_token = val_str(auth, identityToken), .registry_token = val_str(auth, registryToken) };
	if (!is_for(val_str(auth, serverAddress), domain)) {
		*ret = (struct image_auth){ 0 };
		return 0;
	}
	return !ret->user.n && val_str(auth, auth).n ? decode_auth(a, val_str(auth, auth), ret, err) : 0;
}

/* A registry that is not there does not make this service unavailable. */
static int registry_failed(int code, struct err *err)
{
	if (code != -ERR_UNAVAILABLE)
		return code;
	err->code = ERR_SYSTEM;
	return -ERR_SYSTEM;
}

static int pull(struct runtime *r, struct arena *a, struct val request, str *ret_id, struct err *err)
{
	str name = val_str(request, image, image);
	struct image_ref ref;
	struct image_auth auth;
	struct image m;
	int64_t begin = clock_now_ns();
	int code = image_ref_parse(a, name, &ref, err);

	if (code < 0)
		return err_wrap(err, code, "failed to parse image reference \"" STR_FMT "\"", STR_ARG(name));
	if ((code = auth_of(a, val_get(request, auth), ref.domain, &auth, err)) < 0)
		return code;
	bool has_auth = auth.user.n || auth.identity_token.n || auth.registry_token.n;
	if ((code = image_pull(r->images, &ref, has_auth ? &auth : NULL, NULL, a, ret_id, err)) < 0)
		return registry_failed(code, err);
	if ((code = image_find(r->images, *ret_id, a, &m, err)) < 0 ||
	    (code = snapshot_unpack(r->snapshots, r->images, &m, err)) < 0)
		return err_wrap(err, code, "failed to pull and unpack image \"" STR_FMT "\"", STR_ARG(ref.text));
	log_info("image pulled", KV("image", ref.text), KV("ms", (clock_now_ns() - begin) / NS_PER_MS));
	return 0;
}

int cri_pull_image(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	str id;

	r->pulls++;
	int code = pull(r, a, request, &id, err);
	if (--r->pulls == 0 && r->collect_wanted)
		runtime_collect(r);
	if (code == 0)
		*ret = OBJECT(a, F(imageRef, VAL_STR(id)));
	return code;
}

int cri_remove_image(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	str name = val_str(request, image, image);
	int code = image_remove(r->images, name, err);

	(void)a, (void)ret;
	if (code == -ERR_NOT_FOUND)
		return 0;
	if (code < 0)
		return err_wrap(err, code, "failed to delete image reference \"" STR_FMT "\"", STR_ARG(name));
	runtime_collect(r);
	return 0;
}
