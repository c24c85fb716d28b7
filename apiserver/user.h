/* Questions about users. */
#ifndef C8S_APISERVER_USER_H
#define C8S_APISERVER_USER_H

#include "apiserver/request.h"

static inline bool user_in_group(const struct user *u, str group)
{
	for (size_t i = 0; i < u->n_groups; i++)
		if (str_eq(u->groups[i], group))
			return true;
	return false;
}

/* May do everything, whatever roles say. */
static inline bool user_is_master(const struct user *u) { return user_in_group(u, STR("system:masters")); }

#endif
