#include "apiserver/bootstrap.h"

int bootstrap_make(struct apiserver *s, struct err *err)
{
	(void)s;
	(void)err;
	return 0;
}

int bootstrap_run(struct apiserver *s, struct err *err)
{
	(void)s;
	(void)err;
	return 0;
}
