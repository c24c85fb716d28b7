/*
 * machinery/: what can be done with objects apart from storing them: select, patch, apply, default, validate, print.
 * Everything here is pure: arena and values in, values out. No I/O, no clock, no state.
 */
#ifndef C8S_MACHINERY_MACHINERY_H
#define C8S_MACHINERY_MACHINERY_H

#include "machinery/field_error.h"
#include "machinery/field_selector.h"
#include "machinery/jsonpath.h"
#include "machinery/names.h"
#include "machinery/node_selector.h"
#include "machinery/patch.h"
#include "machinery/selector.h"
#include "machinery/validate.h"

#endif
