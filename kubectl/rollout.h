/* rollout: what its commands share. */
#ifndef C8S_KUBECTL_ROLLOUT_H
#define C8S_KUBECTL_ROLLOUT_H

#include "kubectl/write.h"

/* First in the options of every command. */
struct ktl_rollout {
	struct ktl_print_flags print;
	struct ktl_write_flags write;
	struct ktl_file_flags files;
	const char *selector;
};

extern const struct ktl_flag ktl_rollout_flags[];

#define KTL_ROLLOUT_ROWS \
	{ ktl_rollout_flags, 0 }, { ktl_file_flags, offsetof(struct ktl_rollout, files) }, { ktl_print_flags, offsetof(struct ktl_rollout, print) }

enum ktl_workload { KTL_OTHER, KTL_DEPLOYMENT, KTL_DAEMON_SET, KTL_STATEFUL_SET };

enum ktl_workload ktl_workload_of(const struct ktl_info *info);
/* (suspends) The objects that are meant. */
int ktl_rollout_infos(struct ktl *k, const struct ktl_rollout *o, bool keep_going, struct ktl_infos *ret);

/*
 * How far it is: 1 when it is done, 0 not yet, with a line of text; -1 with a failure noted. revision: 0, or the one that
 * must be the running one. Pure.
 */
int ktl_rollout_state(struct ktl *k, enum ktl_workload what, struct val object, int64_t revision, str *ret_text);

extern const struct ktl_command ktl_rollout_history, ktl_rollout_status, ktl_rollout_undo;

#endif
