/* Semantic versions (semver.org 2.0.0): 1.2.3-rc.1+build.5. Pure functions, any thread. */
#ifndef C8S_MACHINERY_SEMVER_H
#define C8S_MACHINERY_SEMVER_H

#include "base/str.h"

struct semver {
	uint64_t major, minor, patch;
	str pre, build; /* without '-' and '+'; slices of the text */
};

/* False for any other text: numbers have no leading zeros and fit 64 bits. */
bool semver_parse(str text, struct semver *ret);
/* By precedence: builds do not count, a pre-release is less than its release. */
int semver_cmp(const struct semver *a, const struct semver *b);

#endif
