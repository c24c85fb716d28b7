/*
 * spec: config.json of a bundle (OCI runtime-spec 1.2), read and checked: what is wrong in it is said before anything is made.
 * The tree stays as it is in the file; what several parts need is looked up once.
 */
#ifndef C8S_OCI_SPEC_H
#define C8S_OCI_SPEC_H

#include <sys/resource.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/err.h"
#include "codec/val.h"

#define OCI_VERSION "1.2.1"

/* In the order in which they are joined: the user namespace is the last, since with it we give away our rights over the others. */
enum namespace_kind { NS_MOUNT, NS_PID, NS_NETWORK, NS_IPC, NS_UTS, NS_CGROUP, NS_TIME, NS_USER, NS_KINDS };

struct namespace_type {
	const char *name;            /* as config.json has it: "network" */
	const char *file;            /* in /proc/PID/ns: "net" */
	unsigned flag;               /* CLONE_NEWNET */
};

extern const struct namespace_type namespace_types[NS_KINDS];

struct spec {
	struct val config;           /* all of it */
	struct val linux_part;       /* its "linux" */
	const char *bundle;          /* absolute */
	const char *rootfs;          /* absolute, as it is named outside */
	struct {
		bool wanted;         /* else that of who calls us stays */
		const char *path;    /* to be joined; NULL: a new one */
	} ns[NS_KINDS];
};

/* Everything is in the arena. -ERR_NOT_FOUND: there is no config.json; -ERR_INVALID: "linux.x: what is wrong". */
int spec_read(const char *bundle, struct arena *a, struct spec *ret, struct err *err);
/* From a config.json somewhere, such as the one that is kept beside the state. rootfs is NULL: it may be gone. */
int spec_read_file(const char *file, const char *bundle, struct arena *a, struct spec *ret, struct err *err);
/* The same from its text. */
int spec_decode(str text, const char *bundle, struct arena *a, struct spec *ret, struct err *err);

static inline bool spec_is_new(const struct spec *s, enum namespace_kind k) { return s->ns[k].wanted && !s->ns[k].path; }

/* The "process" object in the form that its steps need. */
enum cap_set { CAP_SET_BOUNDING, CAP_SET_EFFECTIVE, CAP_SET_INHERITABLE, CAP_SET_PERMITTED, CAP_SET_AMBIENT, CAP_SETS };

struct process_limit {
	int resource;
	struct rlimit limit;
};

struct process {
	struct val config;           /* the rest: scheduler, ioPriority, ... */
	const char **args, **env;    /* end with NULL */
	const char *cwd;
	const char *apparmor, *selinux; /* labels; NULL: none */
	uid_t uid;
	gid_t gid, *gids;
	size_t gids_n;
	int umask;                   /* -1: 022 */
	uint64_t caps[CAP_SETS];     /* bits 1 << CAP_x */
	struct process_limit *limits;
	size_t limits_n;
	bool terminal, no_new_privs;
	unsigned width, height;      /* of the terminal; 0: as it comes */
};

int spec_process(struct val process, struct arena *a, struct process *ret, struct err *err);
/* The bits of a list of "CAP_x"; names that this kernel does not have are left out, those that nobody knows are an error. */
int spec_caps(struct val list, uint64_t *ret, struct err *err);
/* "CAP_CHOWN" of 0, and so on; NULL from the first one on that the kernel, or we, do not know. */
const char *spec_cap_name(unsigned cap);

/* A text that is passed to the kernel: -ERR_INVALID for one with a zero byte; "" for none. */
int spec_text(struct arena *a, struct val v, const char *what, const char **ret, struct err *err);

#endif
