/*
 * Kubernetes' resource.Quantity: an exact fixed-point number with a suffix and nano precision. Texts with a binary suffix are
 * capped at +-(2^63-1) as in Kubernetes; decimal ones are not, and saturate here at the range of 128 bits of nanos (about 1.7e29
 * units). quantity_canonical works on the text and keeps even larger ones exactly.
 */
#ifndef C8S_CODEC_QUANTITY_H
#define C8S_CODEC_QUANTITY_H

#include "base/arena.h"
#include "base/err.h"

__extension__ typedef __int128 quantity_nanos;

enum quantity_format { QUANTITY_DECIMAL_SI, QUANTITY_BINARY_SI, QUANTITY_DECIMAL_EXPONENT };

struct quantity {
	quantity_nanos nanos;
	enum quantity_format format;
};

/* Parses with Kubernetes' rules (rounding up to nano, away from zero); -ERR_BAD_REQUEST with its texts. */
int quantity_parse(str text, struct quantity *ret, struct err *err);
/* Canonical text, at most QUANTITY_TEXT_MAX bytes with the final '\0'; returns it as a slice of out. */
enum { QUANTITY_TEXT_MAX = 56 };
str quantity_format(struct quantity q, char out[QUANTITY_TEXT_MAX]);
/*
 * The text that Kubernetes writes after it has read this one. It reuses what it takes for canonical, which includes "+5",
 * "1.500" and "1E3": those are borrowed. Anything else is made in the arena.
 */
int quantity_canonical(struct arena *a, str text, str *ret, struct err *err);

struct quantity quantity_of_int(int64_t value, enum quantity_format format);
struct quantity quantity_of_milli(int64_t value, enum quantity_format format);
int quantity_cmp(struct quantity a, struct quantity b);
/* Sums keep the format of a, or take that of b when a is zero, as Kubernetes does; saturating. */
struct quantity quantity_add(struct quantity a, struct quantity b);
struct quantity quantity_sub(struct quantity a, struct quantity b);
/* Rounded up to whole units or thousandths, away from zero, as Value() and MilliValue() do; saturating. */
int64_t quantity_value(struct quantity q);
int64_t quantity_milli(struct quantity q);
/* Rounded up to 10^scale, away from zero (scale -9..0). */
struct quantity quantity_round_up(struct quantity q, int scale);

#endif
