/* Functions of CEL that stand in tables of other files. */
#ifndef C8S_MACHINERY_CEL_FORMAT_H
#define C8S_MACHINERY_CEL_FORMAT_H

#include "machinery/cel.h"

/* "%s of %d".format([a, b]) */
cel_impl cel_string_format;
/*
 * What is wrong with a format and the types of its arguments ("" when nothing is); *ret_arg is the argument that it is about, or n
 * when it is about the whole. Texts are in the arena.
 */
str cel_format_check(struct arena *a, str format, const struct cel_type *const *types, size_t n, size_t *ret_arg);
/* indexOf and lastIndexOf of texts; lists have functions of the same names. */
cel_impl cel_string_index;
cel_impl cel_string_last_index;

#endif
