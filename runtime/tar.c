#include "runtime/tar.h"

#include <inttypes.h>
#include <stdio.h>

_Static_assert(sizeof(struct tar_header) == TAR_BLOCK, "a header is one block");

/* The sum is made with blanks in its own place. */
static void put_sum(struct tar_header *h)
{
	unsigned sum = 0;
	memset(h->sum, ' ', sizeof h->sum);
	for (size_t i = 0; i < sizeof *h; i++)
		sum += ((const unsigned char *)h)[i];
	(void)snprintf(h->sum, sizeof h->sum, "%06o", sum);
}

int tar_header(struct tar_header *h, const char *name, int64_t size, struct err *err)
{
	size_t n = strlen(name);
	*h = (struct tar_header){ .mode = "0000644", .uid = "0000000", .gid = "0000000", .mtime = "00000000000", .type = '0',
				  .magic = "ustar", .version = { '0', '0' } };
	if (n > sizeof h->name)
		return err_set(err, ERR_INVALID, "%s: the name is too long for an archive", name);
	if (size < 0 || size > 077777777777)
		return err_set(err, ERR_INVALID, "%s: %" PRId64 " bytes are too many for an archive", name, size);
	memcpy(h->name, name, n);
	(void)snprintf(h->size, sizeof h->size, "%011" PRIo64, size);
	put_sum(h);
	return 0;
}
