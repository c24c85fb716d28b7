/*
 * revision: ControllerRevisions, the history of the templates of StatefulSets and DaemonSets. The data of a revision is a strategic patch that
 * puts its template in place: {"spec":{"template":{"$patch":"replace", ...}}}.
 */
#ifndef C8S_CONTROLLERS_REVISION_H
#define C8S_CONTROLLERS_REVISION_H

#include "controllers/controller.h"

/* ---- pure ---- */

/* The data for a template; members sorted, as Go's JSON of a map has them. */
int revision_data(struct arena *a, struct val template, struct val *ret, struct err *err);
/* The template that a revision holds, in typed form. */
int revision_template(struct arena *a, struct val revision, struct val *ret, struct err *err);
/* Ten letters and digits, of the data and of how many names were taken already: those that 1.36 gives to revisions of StatefulSets. */
str revision_hash(struct arena *a, struct val data, int64_t collisions);
/* "<owner>-<hash>", with a long owner cut. */
str revision_name(struct arena *a, struct val owner, str hash);
/* The object, without name and hash label. */
struct val revision_make(struct arena *a, struct val owner, struct val owner_ref, struct val labels, struct val data, int64_t number);
/* By number, then age, then name; a list. */
struct val revisions_sorted(struct arena *a, struct val revisions);
/* The number for one more; the list is sorted. */
int64_t revisions_next(struct val sorted);
/* The newest with the same data; VAL_NONE: there is none. */
struct val revisions_find(struct val sorted, struct val data);
/* Those of the sorted list that are neither live (by name) nor within the limit of history, the oldest first. */
struct val revisions_outdated(struct arena *a, struct val sorted, int64_t limit, bool (*is_live)(str name, void *arg), void *arg);

/* ---- writing ---- */

/* (suspends) Raises the number of an older one that is wanted again. */
int revision_renumber(struct controller *c, struct arena *a, struct val revision, int64_t number, struct val *ret, struct err *err);
/* (suspends) All revisions that an owner controls, after adopting those without owner that match; sorted. */
int revisions_of(struct controller *c, struct arena *a, struct informer *revisions, struct val owner, const char *api_version, const char *kind,
		 struct val selector, struct val *ret, struct err *err);
/* What revisions_of needs. */
void revisions_index(struct informer *revisions);

#endif
