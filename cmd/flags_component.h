/* Rows that the tables of flags of all components of the control plane have, and short words for the effects of flags. */
#ifndef C8S_CMD_FLAGS_COMPONENT_H
#define C8S_CMD_FLAGS_COMPONENT_H

#include "cmd/flags.h"

/* Effect and member of a row, for flags that fill none. */
#define TUNING FLAG_TUNING, 0
#define LATER FLAG_LATER, 0
#define REFUSED FLAG_REFUSED, 0

#define METRICS_FLAGS                                                                                                                             \
	FLAG_GROUP("Metrics"),                                                                                                                    \
	{ "allow-metric-labels", FLAG_LIST, TUNING, NULL, "values of labels of metrics that are kept" },                                         \
	{ "allow-metric-labels-manifest", FLAG_STRING, TUNING, NULL, "file with these" },                                                        \
	{ "disabled-metrics", FLAG_LIST, TUNING, NULL, "metrics that are not shown" },                                                           \
	{ "show-hidden-metrics-for-version", FLAG_STRING, TUNING, NULL, "show metrics that this version has hidden" }

/* format, verbosity: effect and member of --logging-format (a text) and of --v (a number). */
#define LOGS_FLAGS(format, verbosity)                                                                                                             \
	FLAG_GROUP("Logs"),                                                                                                                       \
	{ "log-flush-frequency", FLAG_DURATION, TUNING, "5s", "how often the log is written out; always at once here" },                         \
	{ "log-json-info-buffer-size", FLAG_STRING, TUNING, "0", "buffer of JSON logs" },                                                        \
	{ "log-json-split-stream", FLAG_BOOL, TUNING, "false", "JSON logs: information to standard output, errors to standard error" },          \
	{ "log-text-info-buffer-size", FLAG_STRING, TUNING, "0", "buffer of text logs" },                                                        \
	{ "log-text-split-stream", FLAG_BOOL, TUNING, "false", "text logs: information to standard output, errors to standard error" },          \
	{ "logging-format", FLAG_STRING, format, "text", "text or json" },                                                                       \
	{ "v", FLAG_INT, verbosity, "0", "how much is logged; from 4 on also what is for debugging" },                                           \
	{ "vmodule", FLAG_LIST, TUNING, NULL, "the same for some source files" }

/* Of versions; they go with --feature-gates. */
#define EMULATION_FLAGS                                                                                                                           \
	{ "emulated-version", FLAG_LIST, REFUSED, NULL, "behave as an older version" },                                                          \
	{ "emulation-forward-compatible", FLAG_BOOL, REFUSED, "false", "with --emulated-version: also use newer versions of APIs" },             \
	{ "min-compatibility-version", FLAG_LIST, REFUSED, NULL, "oldest version of other components to work with" }

#endif
