/* What the files that execute plugins share. */
#ifndef C8S_CNI_CNI_PRIV_H
#define C8S_CNI_CNI_PRIV_H

#include "base/buf.h"
#include "base/process.h"
#include "cni/cni.h"

enum { CNI_FILE_MAX = 1 << 20 /* of a configuration, a result, an answer */ };

struct cni {
	char *conf_dir, *cache_dir, *own_plugins;
	char **bin_dirs;                 /* NULL-ended */
	char *path;                      /* bin_dirs as CNI_PATH has them */
	/* Which version a configuration with several came down to; asking the plugins costs a process each. */
	char *agreed_for, *agreed;
	bool routes_known;               /* the rules for pods of other nodes are in force */
};

/* On the heap, with a '\0'. */
char *cni_copy(str s) NONNULL_RESULT;

/* ---- config.c ---- */

/* A network: a chain of plugins. */
struct cni_config {
	str name, version;
	bool disable_check, disable_gc;
	struct val plugins;              /* list of objects, each with a type */
	struct val versions;             /* cniVersions, if it has them */
	str text;                        /* as a list, also when it was a single plugin */
};

/* The first configuration by name, in the arena. -ERR_NOT_FOUND, -ERR_INVALID; the words are those of libcni and containerd. */
int cni_config_load(const char *dir, struct arena *a, struct cni_config *ret, struct err *err);
/* One from a text: of a list, or (single) of one plugin. */
int cni_config_parse(struct arena *a, str text, bool single, struct cni_config *ret, struct err *err);

/*
 * Whether we have written it, for ourselves: then its addresses are kept in our own folder, and nobody else gives them out. Another
 * runtime may use any other configuration at the same time, and has attachments there that we know nothing of.
 */
bool cni_config_is_own(const struct cni *c, struct arena *a, const struct cni_config *net);

/* ---- execute.c ---- */

/* One attachment, as plugins are told about it. */
struct cni_call {
	str id, netns, ifname;
	str args;                        /* "K=V;K2=V2" */
	struct val capabilities;         /* portMappings, ...: each plugin gets those that it says it can handle */
};

/* (suspends) One plugin of a network; ret NULL: no result is expected. more: members to add to its configuration. */
int cni_execute_plugin(struct cni *c, struct arena *a, const char *command, const struct cni_config *net, struct val plugin,
		       const struct cni_call *call,
		   struct val more, struct val *ret, struct err *err);
/*
 * What a plugin has written: its result, in the form of this version; or, when it has failed, why, as an error. They bound nothing: the
 * texts are.
 */
int cni_execute_result(struct arena *a, str version, str text, struct val *ret, struct err *err);
int cni_execute_failure(struct arena *a, str out, str errors, struct process_status status, struct err *err);
/* Where a plugin is; -ERR_NOT_FOUND: nowhere. *ret_own: it is ours, to be called by its name. */
int cni_execute_find(struct cni *c, struct arena *a, str type, const char **ret_path, bool *ret_own, struct err *err);
/* (suspends) Chooses among the versions of a configuration: the newest that we and all its plugins speak. */
int cni_execute_agree(struct cni *c, struct arena *a, struct cni_config *net, struct err *err);

/* ---- cache.c: <cache_dir>/results/<network>-<id>-<ifname>, as libcni has it ---- */

struct cni_cached {
	struct cni_call call;
	str network, config;
	struct val result;               /* VAL_NONE: ADD has not ended */
	bool ours;                       /* made by us, not by another runtime */
};

/* Written before ADD begins and again with its result: whatever happens in between, it is known that there is something to undo. */
int cni_cache_put(struct cni *c, const struct cni_config *net, const struct cni_call *call, struct val result, struct err *err);
void cni_cache_remove(struct cni *c, str network, const struct cni_call *call);
/* Removes what others left half written. */
void cni_cache_sweep(struct cni *c);
/* -ERR_NOT_FOUND: there is none. */
int cni_cache_get(struct cni *c, struct arena *a, str network, str id, str ifname, struct cni_cached *ret, struct err *err);
/* All, or those of one container; in the arena. Files that cannot be read are left out. */
int cni_cache_list(struct cni *c, struct arena *a, str id, struct cni_cached **ret, size_t *ret_n, struct err *err);

#endif
