/*
 * Who the administrator is: admin.conf belongs to the control plane's user, who may write anything into it, and is read by root. So only what can
 * do no harm is taken: the authority, a certificate and its key, as data. A program that the file names is never run, and no path in it is
 * opened. Where the cluster is we know ourselves.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/encoding.h"
#include "base/file.h"
#include "base/path.h"
#include "client/kubeconfig.h"
#include "cmd/up.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "codec/yaml.h"

enum { FILE_MAX = 1 << 18 };

int up_parse_yaml(struct arena *a, str text, struct val *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(FILE_MAX);
	int r = yaml_to_json(text, &json, NULL, err);

	return r < 0 ? r : json_decode(a, arena_str(a, buf_str(&json)), &(struct json_decode_options){ .type = NULL }, ret, err);
}

/* A file, and nothing that leads to one of somebody else. */
static int read_own(const char *path, struct buf *ret, struct err *err)
{
	char name[PATH_FD_TEXT];
	struct stat st;
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), r;

	if (fd < 0)
		return err_sys(err, errno, "opening %s", path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1)
		r = err_set(err, ERR_FORBIDDEN, "%s is not the file that the control plane has made", path);
	else
		r = file_read(path_of_fd(fd, name), ret, err);
	(void)close(fd);
	return r;
}

/* The PEM texts that a member holds in base64. */
static int take(struct arena *a, struct val from, str name, str *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf pem = BUF_INIT(FILE_MAX);
	str text = val_as_str(val_find(from, name));
	int r = text.n ? base64_decode_buf(&pem, text, err) : err_set(err, ERR_INVALID, "there is none");

	if (r < 0)
		return err_wrap(err, r, STR_FMT, STR_ARG(name));
	*ret = arena_str(a, buf_str(&pem));
	return 0;
}

int up_admin(const struct up_cluster *c, struct arena *a, struct client_config *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(FILE_MAX);
	struct val doc;
	int r;

	*ret = (struct client_config){ .server = str_of(c->url) };
	if ((r = read_own(c->admin_conf, &text, err)) < 0)
		return r;
	if ((r = up_parse_yaml(a, buf_str(&text), &doc, err)) < 0)
		return err_wrap(err, r, "%s", c->admin_conf);
	struct val cluster = val_get(val_at(val_get(doc, clusters), 0), cluster), user = val_get(val_at(val_get(doc, users), 0), user);
	if ((r = take(a, cluster, STR("certificate-authority-data"), &ret->ca, err)) < 0 ||
	    (r = take(a, user, STR("client-certificate-data"), &ret->client_cert, err)) < 0 ||
	    (r = take(a, user, STR("client-key-data"), &ret->client_key, err)) < 0)
		return err_wrap(err, r, "%s", c->admin_conf);
	return 0;
}
