/* node: who is a node, and what the Node authorizer and NodeRestriction both have to know of it. */
#ifndef C8S_APISERVER_AUTHZ_NODE_H
#define C8S_APISERVER_AUTHZ_NODE_H

#include "apiserver/request.h"

/* Is the user a node: system:node:<name> of the group system:nodes? Its name, which may be empty, in *ret_name. */
bool user_is_node(const struct user *u, str *ret_name);

#endif
