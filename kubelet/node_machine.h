/* node_machine: what this machine is: processors, memory, huge pages, identities, kernel and operating system. */
#ifndef C8S_KUBELET_NODE_MACHINE_H
#define C8S_KUBELET_NODE_MACHINE_H

#include "base/arena.h"
#include "base/err.h"

enum { HUGE_PAGE_SIZES_MAX = 8 };

struct huge_pages {
	int64_t page_bytes, pages;
};

/* Texts are in the arena; "" for what cannot be found out. */
struct node_machine {
	int64_t cpus;
	int64_t memory_bytes, swap_bytes;
	struct huge_pages huge[HUGE_PAGE_SIZES_MAX]; /* by size, the smallest first */
	size_t n_huge;
	str machine_id, system_uuid, boot_id;
	str kernel_version;           /* 6.18.44 */
	str os_image;                 /* Debian GNU/Linux 12 (bookworm) */
};

/* root stands before /proc, /sys and /etc: "" but in tests. Blocks for a few reads of small files. Errors: no memory size, no processors. */
int node_machine_read(struct arena *a, const char *root, struct node_machine *ret, struct err *err);
/* Whether use of swap can be limited; v2: the machine has cgroup v2. root as above. */
bool node_has_swap_controller(struct arena *a, const char *root, bool v2);
/* As Go names it: amd64, arm64. */
str node_architecture(void);
/* Size of the file system that a folder is on. */
int node_storage_bytes(const char *folder, int64_t *ret, struct err *err);

#endif
