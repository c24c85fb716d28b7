/*
 * How Go prints characters and numbers: Kubernetes' users see these texts in messages and objects. Pure functions, any
 * thread. For strings see buf_add_quoted.
 */
#ifndef C8S_CODEC_GO_H
#define C8S_CODEC_GO_H

#include "base/arena.h"
#include "base/buf.h"

enum { GO_REPLACEMENT = 0xfffd };

/* Writes a character in UTF-8 (at most 4 bytes, not terminated) and returns the number of bytes. */
size_t go_put_rune(char *out, uint32_t rune);

/* A character as %q prints it: 'x', '\n', '\''. */
enum { GO_QUOTE_RUNE_MAX = 16 };
void go_quote_rune(uint32_t rune, char out[GO_QUOTE_RUNE_MAX]);
/* One byte as encoding/json names it in a syntax error: taken for a character of Latin-1. */
static inline void go_quote_byte(unsigned char c, char out[GO_QUOTE_RUNE_MAX]) { go_quote_rune(c, out); }

/*
 * What a text in quotes means, with all of Go's escapes; the first byte is the quote, the last one closes it. false: it is wrong, as
 * strconv's "invalid syntax". The result lives in the arena.
 */
bool go_unquote(struct arena *a, str quoted, str *ret);

/* strings.EqualFold for texts of ASCII: letters may differ in case. */
bool go_equal_fold(str x, str y);

enum go_float_style {
	GO_FLOAT_JSON,  /* encoding/json: 0.000001, 100000, 1e+21, 1e-7 */
	GO_FLOAT_G,     /* strconv 'g': 1e-06, 100000, 1e+06 */
};

/*
 * The shortest text that reads back as the same double, or the same float when single is set; d is finite. Returns a
 * slice of out.
 */
enum { GO_FLOAT_MAX = 40 };
str go_format_float(double d, bool single, enum go_float_style style, char out[GO_FLOAT_MAX]);

/* Decimal digits of i; returns a slice of out. */
enum { GO_INT_MAX = 24 };
str go_format_int(int64_t i, char out[GO_INT_MAX]);
str go_format_uint(uint64_t u, char out[GO_INT_MAX]);

#endif
