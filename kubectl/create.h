/* create: what the commands below kubectl create share. */
#ifndef C8S_KUBECTL_CREATE_H
#define C8S_KUBECTL_CREATE_H

#include "kubectl/write.h"

/* First in the options of every command that makes an object of flags. */
struct ktl_create {
	struct ktl_print_flags print;
	struct ktl_write_flags write;
	struct ktl_create_flags create;
	bool append_hash;            /* of config maps and secrets */
};

#define KTL_CREATE_SETS(table) \
	(const struct ktl_flag_set[]){ { table, 0 }, { ktl_print_flags, offsetof(struct ktl_create, print) }, \
				       { ktl_write_flags, offsetof(struct ktl_create, write) }, \
				       { ktl_create_flags, offsetof(struct ktl_create, create) }, { 0 } }

/* The one NAME. */
int ktl_create_name(struct ktl *k, str *ret);
/*
 * (suspends) Sends the object of a built-in type and prints what the server made of it; as a dry run, prints it. failed: before the
 * text of an error ("failed to create job: "); NULL: the error as it is.
 */
int ktl_create_made(struct ktl *k, const struct ktl_create *c, const struct type *type, struct val object, const char *failed);
/* { name: ..., labels: ... }; labels may be VAL_NONE. */
struct val ktl_meta(struct ktl *k, str name, struct val labels);
/* A list of texts. */
struct val ktl_text_list(struct ktl *k, const char *const *texts, size_t n);
/* What stands behind "--", as a list; VAL_NONE: nothing. */
struct val ktl_words_behind_dash(struct ktl *k);

extern const struct ktl_flag ktl_no_flags[];
extern const struct ktl_command ktl_create_clusterrole, ktl_create_clusterrolebinding, ktl_create_configmap, ktl_create_cronjob,
	ktl_create_deployment, ktl_create_ingress, ktl_create_job, ktl_create_namespace, ktl_create_pdb, ktl_create_priorityclass,
	ktl_create_quota, ktl_create_role, ktl_create_rolebinding, ktl_create_secret, ktl_create_service, ktl_create_serviceaccount,
	ktl_create_token;

#endif
