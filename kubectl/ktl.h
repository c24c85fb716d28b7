/*
 * What every command is given: the command line, the way to the server, and how to fail.
 *
 * Functions that can fail return a negative number after they have noted why (ktl_fail and its kin); what was noted is printed at the
 * end, as kubectl words it. A command may note several failures and go on.
 */
#ifndef C8S_KUBECTL_KTL_H
#define C8S_KUBECTL_KTL_H

#include <stdarg.h>

#include "client/kubeconfig.h"
#include "client/raw.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "kubectl/flags.h"

#define KTL_VERSION "v1.36.4"
/* Larger than any object or list that a cluster holds, small enough for a laptop. */
enum { KTL_ANSWER_MAX = 512 << 20, KTL_TEXT_MAX = 1 << 30 };

struct ktl;

/* ---- commands ---- */

struct ktl_command {
	const char *name;            /* "get" */
	const char *aliases;         /* "cm,configmaps"; NULL: none */
	const char *group;           /* the heading in the list of commands; NULL: not listed */
	const char *summary;         /* one line */
	const char *manual;          /* what --help says first; NULL: the summary */
	const char *examples;        /* lines, each with two spaces before it; NULL: none */
	const char *usage;           /* behind "kubectl " */
	const struct ktl_command *const *below; /* its own commands, ended by NULL; or NULL */
	const struct ktl_flag_set *flags;
	size_t size;                 /* of the struct that the flags fill */
	const char *required;        /* flags that must be given, separated by commas; NULL: none */
	int (*run)(struct ktl *k, void *options);
};

/* ---- failures ---- */

enum ktl_failure_kind {
	KTL_PLAIN,                   /* "error: ..." */
	KTL_STATUS,                  /* the server's: "Error from server (NotFound): ..." */
	KTL_CONNECTION,              /* there was no answer */
	KTL_BARE,                    /* printed as it is */
	KTL_CONFIGURATION,           /* the kubeconfig is wrong */
};

struct ktl_failure {
	enum ktl_failure_kind kind;
	str text;
	struct val status;           /* of KTL_STATUS */
	struct ktl_failure *next;
};

/* Notes a failure; returns -1. */
int ktl_fail(struct ktl *k, const char *fmt, ...) PRINTF_LIKE(2, 3);
int ktl_fail_bare(struct ktl *k, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The same with "See 'kubectl get -h' for help and examples" below it. */
int ktl_fail_usage(struct ktl *k, const char *fmt, ...) PRINTF_LIKE(2, 3);
int ktl_fail_err(struct ktl *k, const struct err *err);
/* A Status that tells of a failure. */
int ktl_fail_status(struct ktl *k, struct val status);
/* Puts a text before that of the failure noted last. */
int ktl_fail_before(struct ktl *k, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The failure noted last; NULL: there is none. */
struct ktl_failure *ktl_last_failure(const struct ktl *k);
/* Whether the failure noted last is the server's, for this reason ("NotFound"). */
bool ktl_failed_because(const struct ktl *k, const char *reason);
/* Forgets the failure noted last. */
void ktl_forgive(struct ktl *k);
/* Forgets all that say that something does not exist. */
void ktl_forgive_not_found(struct ktl *k);
/* The text of a failure among others, as kubectl shows it in a list. */
str ktl_failure_message(struct ktl *k, const struct ktl_failure *f);
/* Prints what was noted to standard error. */
void ktl_failures_print(struct ktl *k);

/* ---- the command at work ---- */

struct ktl_globals {
	const char *kubeconfig, *context, *cluster, *user, *namespace, *server, *token, *as, *as_uid, *certificate_authority;
	const char *client_certificate, *client_key, *tls_server_name, *request_timeout, *username, *password, *cache_dir, *ignored;
	struct ktl_texts as_group, as_user_extra;
	bool insecure, disable_compression, match_server_version, warnings_as_errors;
	int64_t verbosity;
};

struct ktl {
	struct arena arena;                  /* of the whole command */
	const struct ktl_command *command;
	str path;                            /* "kubectl create deployment" */
	struct ktl_flags flags;
	struct ktl_texts args;               /* what is no flag */
	struct ktl_globals globals;
	struct ktl_failure *failures, **end; /* in the order of their coming */
	size_t n_failures;
	int exit_code;                       /* when nothing failed */
	struct client *client;               /* NULL until it is needed */
	bool has_document, has_config;
	struct val document;                 /* the kubeconfig */
	struct client_config config;
	int64_t timeout_ms;                  /* of one request; 0: none */
	struct val warned;                   /* texts of warnings that were shown */
	struct val discovery;                /* what the server has, once it was asked */
	bool discovered;
	void *kinds;                         /* of kinds.c */
};

bool ktl_given(const struct ktl *k, const char *flag);

/* ---- factory.c: configuration ---- */

int ktl_document(struct ktl *k, struct val *ret);
int ktl_config(struct ktl *k, const struct client_config **ret);
/* (suspends) */
int ktl_client(struct ktl *k, struct client **ret);
/* (suspends) Is the server of our version? version.c */
int ktl_match_version(struct ktl *k);
/* That of the flag, or of the context. *ret_explicit (may be NULL): it was given on the command line. */
int ktl_namespace(struct ktl *k, str *ret, bool *ret_explicit);

/* ---- call.c: requests (all suspend) ---- */

/* One request; its answer as a free tree with sorted members. A Status that tells of a failure is noted. */
int ktl_call(struct ktl *k, const struct client_raw *q, struct val *ret);
/* The same; the answer as text. */
int ktl_call_text(struct ktl *k, const struct client_raw *q, str *ret);
int ktl_get(struct ktl *k, str path, str query, struct val *ret);
/* A body as it comes. */
int ktl_open_stream(struct ktl *k, const struct client_raw *q, struct client_stream **ret);
/* Notes the failure that an answer is. */
int ktl_fail_answer(struct ktl *k, const struct client_answer *answer);
int ktl_fail_connection(struct ktl *k, const struct err *err);
/* "Warning: ..." on standard error, each text once. */
void ktl_warn(struct ktl *k, str text);

/* ---- small things ---- */

/* The JSON of a free tree, in the arena. */
str ktl_json(struct ktl *k, struct val v);
int ktl_parse_json(struct ktl *k, str text, struct val *ret, struct err *err);
/* A text in quotes as Go's %q has it, in the arena. */
str ktl_quote(struct ktl *k, str text);
str ktl_lower(struct ktl *k, str text);
/* A list in order, as qsort has it of items that are struct val. */
struct val ktl_sorted_list(struct ktl *k, struct val list, int (*compare)(const void *, const void *));
/* A NUL-terminated copy. */
static inline const char *ktl_cstr(struct ktl *k, str text) { return arena_str(&k->arena, text).p; }
static inline bool ktl_is(const char *text, const char *other) { return strcmp(text, other) == 0; }
/* Somebody may look at the output as it comes. The errno of the first time that it could not be written; 0: all was. */
int ktl_flush(void);

#endif
