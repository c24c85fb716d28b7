/*
 * host-local: gives out addresses of ranges, remembered in a folder per network: a file per address, with the attachment that
 * has it ("ID\r\nIFNAME"), last_reserved_ip.N (where range set N goes on), and lock. The layout is the reference
 * plugin's, which may work on the same folder. No crash at any moment leaves an address taken by nobody: a file gets its name only once its
 * content is complete, and empty files (the reference plugin can leave such) count as free.
 */
#ifndef C8S_CNI_HOST_LOCAL_H
#define C8S_CNI_HOST_LOCAL_H

#include "cni/plugin.h"

struct host_range {
	struct inet_net subnet;
	struct inet start, end, gateway;   /* both ends included; the gateway is never given out */
};

/* Ranges of one family, of which an attachment gets one address. */
struct host_range_set {
	struct host_range *ranges;
	size_t n;
};

struct host_local {
	struct host_range_set *sets;
	size_t n;
	struct inet *requested;            /* addresses that the caller asks for */
	size_t n_requested;
	struct val routes;
	str data_dir, resolv_conf;
};

/* Reads and checks the configuration; messages are the reference plugin's. */
int host_local_load(struct plugin *p, struct host_local *ret, struct err *err);
/* "10.1.0.1-10.1.0.254,..." */
str host_range_set_text(struct arena *a, const struct host_range_set *s);
/* The range of the set that has the address, or NULL. */
const struct host_range *host_range_for(const struct host_range_set *s, struct inet ip);

/* ---- the folder ---- */

struct host_store {
	int dir, lock;
};

#define HOST_STORE_INIT { -1, -1 }

/* Opens (makes) the folder and waits for its lock, which host_store_close gives back. */
int host_store_open(struct host_store *s, const char *folder, struct err *err);
void host_store_close(struct host_store *s);

/* 1: it is ours now; 0: somebody has it. */
int host_store_reserve(struct host_store *s, struct inet ip, const char *id, const char *ifname, size_t set, struct err *err);
/* Where the set's last address was given out; false: not known. */
bool host_store_last(struct host_store *s, size_t set, struct inet *ret);
/* Calls visit for every address that somebody has; it is given back if that returns true. */
typedef bool host_store_visit(struct inet ip, str id, str ifname, void *arg);
int host_store_each(struct host_store *s, host_store_visit *visit, void *arg, struct err *err);

/* The next free address of the set: the one after the last one given out, as long as there are any. -ERR_NOT_FOUND: none is left. */
int host_store_next(struct host_store *s, const struct host_range_set *set, size_t index, const char *id,
		    const char *ifname, struct inet *ret,
		    struct err *err);

#endif
