/* What is not wrong but will not do what its author thinks: Warning headers that kubectl shows. */
#ifndef C8S_APISERVER_WARNINGS_H
#define C8S_APISERVER_WARNINGS_H

#include "apiserver/request.h"

/* Warnings about q->object, which is valid. */
void warnings_add(struct request *q);

#endif
