/*
 * plugin: what all plugins of this folder have in common. A plugin is called with a command (ADD, DEL, CHECK, GC, STATUS, VERSION) in
 * its environment and its configuration on standard input; it answers on standard output with a result or with an error,
 * both in JSON, and its exit code. Input is bounded and checked here, results come and go in the version that the configuration
 * asks for; a plugin sees the newest form only (result.h).
 */
#ifndef C8S_CNI_PLUGIN_H
#define C8S_CNI_PLUGIN_H

#include "cni/inet.h"
#include "cni/rules.h"
#include "codec/val.h"

/* Codes of errors that the specification has. */
enum cni_code {
	CNI_INCOMPATIBLE_VERSION = 1,
	CNI_UNSUPPORTED_FIELD = 2,
	CNI_UNKNOWN_CONTAINER = 3,
	CNI_INVALID_ENVIRONMENT = 4,
	CNI_IO_FAILURE = 5,
	CNI_DECODING_FAILURE = 6,
	CNI_INVALID_CONFIG = 7,
	CNI_INVALID_NETNS = 8,
	CNI_TRY_AGAIN_LATER = 11,
	CNI_NOT_AVAILABLE = 50,
	CNI_INTERNAL = 999,
};

struct plugin {
	struct arena *arena;
	const char *command;             /* "ADD", ... */
	const char *id, *netns, *ifname; /* of the attachment; netns may be "" for DEL */
	const char *args, *path;         /* CNI_ARGS, CNI_PATH; "" when there are none */
	str text;                        /* the configuration as it came */
	struct val config;
	str version;                     /* of the configuration; never empty */
	const char *network;             /* its name */
	struct val prev;                 /* the result so far, in the newest form; VAL_NONE: none */
	enum cni_code code;              /* of the error that is being returned; 0: CNI_INTERNAL */
};

/* What a plugin does for each command. NULL: nothing, which is success. Only add has a result, in the newest form. */
struct plugin_ops {
	const char *name;
	int (*add)(struct plugin *p, struct val *ret, struct err *err);
	int (*check)(struct plugin *p, struct err *err);
	int (*del)(struct plugin *p, struct err *err);
	int (*gc)(struct plugin *p, struct err *err);
	int (*status)(struct plugin *p, struct err *err);
};

extern const struct plugin_ops plugin_bridge, plugin_host_local, plugin_loopback, plugin_portmap, plugin_ptp;

/* NULL: there is none. */
const struct plugin_ops *plugin_find(str name);

/* Sets the code and the message: return plugin_fail(p, CNI_INVALID_CONFIG, err, "..."). */
int plugin_fail(struct plugin *p, enum cni_code code, struct err *err, const char *fmt, ...) PRINTF_LIKE(4, 5);

/* A member of the configuration that must be a certain thing if it is there: else -ERR_INVALID with CNI_DECODING_FAILURE. */
int plugin_bool(struct plugin *p, const char *name, bool *ret, struct err *err);
int plugin_int(struct plugin *p, const char *name, int64_t least, int64_t most, int64_t *ret, struct err *err);
int plugin_str(struct plugin *p, const char *name, str *ret, struct err *err);
/* -ERR_INVALID with CNI_UNSUPPORTED_FIELD when it is there and not false, 0, "" or empty. */
int plugin_refuse(struct plugin *p, const char *name, struct err *err);

/* Of CNI_ARGS ("K=V;K2=V2"), the value of one; empty if it is not there. */
str plugin_arg(const struct plugin *p, str key);

/* The attachment as the owner of rules; and those that GC says are valid, in the arena. */
struct rules_owner plugin_owner(const struct plugin *p);
int plugin_valid(struct plugin *p, struct rules_owner **ret, size_t *ret_n, struct err *err);

/* Decodes the configuration and checks what is common to all: version, name, prevResult. For tests and plugin_main. */
int plugin_load(struct plugin *p, str text, struct err *err);

/* A plugin's main: all of the above with the environment and the standard descriptors of the process. Its exit code. */
int plugin_main(const struct plugin_ops *ops);

#endif
