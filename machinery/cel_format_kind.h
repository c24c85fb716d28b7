/* The named formats of Kubernetes' CEL library: format.dns1123Label() and others. */
#ifndef C8S_MACHINERY_CEL_FORMAT_KIND_H
#define C8S_MACHINERY_CEL_FORMAT_KIND_H

#include "machinery/names.h"

struct cel_format {
	str name;
	unsigned pattern_size;   /* of the pattern that its check counts as, for costs */
	/* The number of complaints about a value, which ret then holds. */
	size_t (*check)(str value, struct name_errors *ret);
};

#endif
