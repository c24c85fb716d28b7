/*
 * ipam: asking the plugin that gives out addresses (ipam.type of the configuration), with the configuration and environment of the
 * plugin that asks. It is a program in CNI_PATH; one of our own runs in this process when CNI_PATH has none of that name, or has ours.
 */
#ifndef C8S_CNI_IPAM_H
#define C8S_CNI_IPAM_H

#include "cni/plugin.h"

/* Whether the configuration names one. */
bool ipam_used(const struct plugin *p);

/* A result with at least one address, in the newest form. When what follows fails, ipam_del gives it back. */
int ipam_add(struct plugin *p, struct val *ret, struct err *err);
int ipam_del(struct plugin *p, struct err *err);
int ipam_check(struct plugin *p, struct err *err);
int ipam_status(struct plugin *p, struct err *err);
int ipam_gc(struct plugin *p, struct err *err);

#endif
