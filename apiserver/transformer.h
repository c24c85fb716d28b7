/*
 * Encryption at rest: what happens to values between the server and the store. Values that were written under an older
 * configuration are recognised by their prefix (k8s:enc:aescbc:v1:key1:) and read with the provider and key that wrote
 * them; plain ones begin otherwise.
 */
#ifndef C8S_APISERVER_TRANSFORMER_H
#define C8S_APISERVER_TRANSFORMER_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

struct transformer;
struct encryption;

/* Reads an EncryptionConfiguration (YAML or JSON): aescbc, aesgcm, secretbox, identity. */
int encryption_open(const char *path, struct encryption **ret, struct err *err);
void encryption_free(struct encryption *e);
/* The one for a resource ("secrets", or "deployments.apps"); NULL: its values are plain. */
const struct transformer *encryption_for(const struct encryption *e, str group, str resource);

/* What to store for the plain value of this store key (which is authenticated with it). */
int transformer_encrypt(const struct transformer *t, str store_key, str plain, struct buf *ret, struct err *err);
/*
 * The plain value. *ret_stale (may be NULL): it was not written by the first provider and key, so a write should renew it.
 */
int transformer_decrypt(const struct transformer *t, str store_key, str stored, struct buf *ret, bool *ret_stale,
			struct err *err);

#endif
