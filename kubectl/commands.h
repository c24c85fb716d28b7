/* The commands, each in a file of its own. */
#ifndef C8S_KUBECTL_COMMANDS_H
#define C8S_KUBECTL_COMMANDS_H

#include <stdio.h>

#include "kubectl/ktl.h"

extern const struct ktl_command ktl_annotate, ktl_api_resources, ktl_api_versions, ktl_apply, ktl_attach, ktl_auth, ktl_cluster_info, ktl_config_command,
	ktl_create, ktl_delete, ktl_describe, ktl_edit, ktl_exec, ktl_explain, ktl_get_command, ktl_label, ktl_logs, ktl_options, ktl_patch,
	ktl_replace, ktl_rollout, ktl_run, ktl_scale, ktl_version, ktl_wait;

extern const struct ktl_flag ktl_global_flags[];

/* The first word that was no flag, where one below it was wanted: shows help, or says that there is no such command. */
int ktl_run_group(struct ktl *k, void *options);
/* --help of a command; NULL: of all. */
void ktl_show_help(const struct ktl_command *c, FILE *out);
extern const struct ktl_command *const ktl_commands[]; /* ended by NULL */

#endif
