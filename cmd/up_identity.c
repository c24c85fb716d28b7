/*
 * The node's certificate names the node. One that was made, or asked for, under another name is of no use to a node that is now called otherwise:
 * it goes, and with it what its kubelet has kept beside it, so that a new one comes in its place. So does one that has expired while the machine
 * was off: a kubelet can only renew what is still valid.
 */
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "client/kubeconfig.h"
#include "cmd/up.h"

enum { PEM_MAX = 1 << 18, NAME_MAX_BYTES = 300 };

/* Whom the first certificate of a text is about, and whether its time is over. */
static bool subject_of(str pem, char ret[NAME_MAX_BYTES], bool *ret_expired)
{
	BIO *bio = BIO_new_mem_buf(pem.p, (int)pem.n);
	X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
	*ret_expired = cert && X509_cmp_current_time(X509_get0_notAfter(cert)) < 0;
	bool found = cert && X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName, ret, NAME_MAX_BYTES) > 0;

	X509_free(cert);
	BIO_free(bio);
	return found;
}

/* Who the node is today; false: nobody yet. The file of rotated certificates counts before the kubeconfig, as it does for the kubelet. */
static bool current_name(const struct up_cluster *c, char ret[NAME_MAX_BYTES], bool *ret_expired)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf pem = BUF_INIT(PEM_MAX);
	struct client_config config;

	if (kubeconfig_open(&a, c->node_conf, &config, NULL) < 0)
		return false;
	if (file_read(arena_printf(&a, "%s/pki/kubelet-client-current.pem", c->node_dir).p, &pem, NULL) < 0)
		buf_add(&pem, config.client_cert);
	return subject_of(buf_str(&pem), ret, ret_expired);
}

static int forget(const struct up_cluster *c, struct err *err)
{
	int tree = path_open_tree(c->node_dir, err), r = tree < 0 ? tree : path_remove(tree, "pki", err);

	if (tree >= 0)
		(void)close(tree);
	if (r < 0 && r != -ERR_NOT_FOUND)
		return err_wrap(err, r, "removing %s/pki", c->node_dir);
	err_clear(err);
	(void)unlink(c->node_conf); /* last: as long as it is there, all of this is done again */
	return 0;
}

/* 1: the certificate is of no use any more; 0: it is, or there is none. */
static int look_at_name(const struct up_cluster *c, struct err *err)
{
	static const char prefix[] = "system:node:";
	char was[NAME_MAX_BYTES];
	bool expired;

	if (!current_name(c, was, &expired) || strncmp(was, prefix, sizeof(prefix) - 1) != 0 ||
	    (!expired && strcmp(was + sizeof(prefix) - 1, c->settings.node_name) == 0))
		return 0;
	if (c->settings.server && !c->settings.token && expired)
		return err_set(err, ERR_INVALID, "the certificate with which this machine has joined has expired; 'c8s token create' on a machine of the cluster prints the "
			       "command with which it joins again");
	if (c->settings.server && !c->settings.token)
		return err_set(err, ERR_INVALID, "this machine has joined as %s; to join as %s it needs --token again ('c8s token create' makes one)",
			       was + sizeof(prefix) - 1, c->settings.node_name);
	return 1;
}

int up_check_name(const struct up_cluster *c, struct err *err)
{
	int r = look_at_name(c, err);

	return r < 0 ? r : 0;
}

int up_forget_other_name(const struct up_cluster *c, struct err *err)
{
	int r = look_at_name(c, err);

	return r > 0 ? forget(c, err) : r;
}
