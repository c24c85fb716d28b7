/* What update (apply.c) and apply (apply_patch.c) share. */
#ifndef C8S_MACHINERY_APPLY_PRIV_H
#define C8S_MACHINERY_APPLY_PRIV_H

#include "machinery/apply.h"
#include "machinery/apply_walk.h"
#include "machinery/managed_fields.h"

/* An object in some version, as patch_document shows it, without managedFields. */
struct versioned {
	struct val v;
	struct apply_type type;
	str api_version;
};

/* One run of an operation. */
struct apply {
	struct arena *arena;
	const struct apply_request *req;
	struct managed managed;
	struct err *err;
};

static inline struct apply_type apply_request_type(const struct apply_request *req)
{
	return req->type ? apply_type_of(req->type) : req->custom;
}

static inline str apply_request_manager(const struct apply_request *req)
{
	return req->manager.n ? req->manager : STR("unknown");
}

/* An object of the request's kind with nothing in it. */
struct val apply_empty_object(struct arena *a, const struct apply_request *req);
/* The object in the version of the request. */
int apply_document(struct apply *op, struct val object, struct versioned *ret);
/* For messages: "namespace/name; group/version, Kind=kind". */
str apply_object_text(struct arena *a, struct val object);
/* 1: converted; 0: there is no such version. */
int apply_convert(struct apply *op, const struct versioned *from, str api_version, struct versioned *ret);
/* What of a set can be owned through the resource of the request, in that version. */
struct field_set apply_filter(struct apply *op, str api_version, struct field_set s);
/* Without what is never owned: the identity of the object and what only the server sets. */
struct field_set apply_without_system(struct arena *a, struct field_set s);

/* Adapts old sets to the types of today; forgets managers of versions that are gone. */
int apply_reconcile_managers(struct apply *op, const struct versioned *live);

/* For each manager, the fields that it owns and that change. */
struct apply_taken {
	struct field_set *v;
	uint32_t n;          /* managers of which something is taken */
};

/*
 * Takes from all managers but `self` (an id) what changes from one object to the other. What of it they lose because
 * it gets another value is in *ret_taken; with stop, nothing is taken if there is any of that. *ret_changes is in the
 * version of the request.
 */
int apply_take_changes(struct apply *op, const struct versioned *from, const struct versioned *to, str self,
		       bool stop, struct apply_comparison *ret_changes, struct apply_taken *ret_taken);

/* Books the change from one object to the other to an updater. */
int apply_book_update(struct apply *op, const struct versioned *from, const struct versioned *to, str manager);

/* The object with the managers as its managedFields. */
struct val apply_with_managed(struct apply *op, struct val object);

#endif
