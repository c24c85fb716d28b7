/* Between the files of the control-plane command. */
#ifndef C8S_CMD_CONTROL_PLANE_H
#define C8S_CMD_CONTROL_PLANE_H

#include "base/fiber.h"
#include "cmd/kube_apiserver.h"
#include "cmd/kube_controller_manager.h"
#include "cmd/kube_scheduler.h"

/* One run of the command. */
/* What flags of its own say. */
struct control_plane_own {
	int64_t listen_fd;            /* 0: none */
	int64_t run_as;               /* 0: who we are */
};

struct control_plane {
	struct control_plane_own own;
	struct kube_apiserver api;
	struct controller_manager manager;
	struct kube_scheduler scheduler;
	/* ---- of the run ---- */
	struct apiserver *server;    /* once it serves */
	struct list accounts;        /* clients of controllers */
	bool manager_ready, scheduler_ready, said;
	struct fiber_cond changed;   /* one of these, or `ended` */
	bool ended;
	int result;                  /* of what ended */
	struct err err;
};

/*
 * The flags of all three in one table, for a struct control_plane, in the arena. A name that several have stands for all of them. The ports of
 * the scheduler and of the controller manager have flags that begin with their names, and are closed unless opened.
 */
const struct flag *control_plane_flags(struct arena *a);
/* The defaults of each, then the arguments. Returns 0, or 2 after a message. */
int control_plane_parse(struct control_plane *p, int argc, char **argv, struct buf *later);

#endif
