/* A kubeconfig with certificate and key inside. */
#include "apiserver/pki_priv.h"
#include "base/encoding.h"

enum { PEM_MAX = 256 << 10 };

static const char cluster[] = "kubernetes";

static void add_data(struct buf *b, const char *name, str pem)
{
	buf_addf(b, "    %s: ", name);
	base64_encode_buf(b, pem);
	buf_addc(b, '\n');
}

void kubeconfig_build(struct buf *b, const char *server, str ca, const char *user, str cert, str key)
{
	buf_add(b, STR("apiVersion: v1\nclusters:\n- cluster:\n"));
	add_data(b, "certificate-authority-data", ca);
	buf_addf(b, "    server: %s\n  name: %s\ncontexts:\n- context:\n    cluster: %s\n    user: %s\n  name: %s@%s\n",
		 server, cluster, cluster, user, user, cluster);
	buf_addf(b, "current-context: %s@%s\nkind: Config\npreferences: {}\nusers:\n- name: %s\n  user:\n", user, cluster,
		 user);
	add_data(b, "client-certificate-data", cert);
	add_data(b, "client-key-data", key);
}

static bool has_data(str text, str pem)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(PEM_MAX);

	base64_encode_buf(&b, pem);
	return str_find(text, buf_str(&b)) >= 0;
}

bool kubeconfig_fits(str text, const char *server, str ca, str cert)
{
	return has_data(text, ca) && has_data(text, cert) && str_find(text, str_of(server)) >= 0;
}
