/*
 * slice_pack: endpoints into EndpointSlices with as few changes as possible: those that have a place keep it; new ones go where something
 * changes anyway, then where they just fit, then into new slices; slices that would go are taken for those that would be made. What the
 * controller of EndpointSlices and the one that mirrors Endpoints share. Pure.
 *
 *	struct slice_pack p = { .arena = a, .fresh = ..., .max = 100, .dress = ... };
 *	slice_pack_want(&p, ports, endpoint);      for each
 *	slice_pack_found(&p, slice);               for each that exists and is ours
 *	slice_pack_finish(&p);                     p.create, p.update, p.gone
 */
#ifndef C8S_CONTROLLERS_SLICE_PACK_H
#define C8S_CONTROLLERS_SLICE_PACK_H

#include "base/map.h"
#include "codec/val.h"

struct slice_group;

struct slice_pack {
	struct arena *arena;
	struct val fresh;            /* a new slice without ports and endpoints */
	size_t max;                  /* endpoints in one slice */
	bool keep_one;               /* an empty slice, where there would be none */
	/* The slice with labels, annotations and hints as they shall be. One that comes out as it went in is not written. */
	struct val (*dress)(struct arena *a, struct val slice, const void *arg);
	const void *arg;
	bool stamp;                  /* what is written has this as the time of the change that led to it; VAL_NONE: none */
	struct val trigger;
	/* The result: slices to create (by generateName), to write (by name), to delete. */
	struct val create, update, gone;

	struct map groups;           /* private: by ports */
	struct slice_group *first, **last;
	size_t n_found;
};

/* VAL_NONE as the endpoint: none (yet) has these ports. One that is wanted twice counts once. */
void slice_pack_want(struct slice_pack *p, struct val ports, struct val endpoint);
/* Of the address type of fresh. */
void slice_pack_found(struct slice_pack *p, struct val slice);
void slice_pack_finish(struct slice_pack *p);

#endif
