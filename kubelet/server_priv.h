/* Between the files of server. */
#ifndef C8S_KUBELET_SERVER_PRIV_H
#define C8S_KUBELET_SERVER_PRIV_H

#include "kubelet/server.h"
#include "net/url.h"

enum { CALL_PARTS_MAX = 6 };

/* One request, taken apart. Lives on its fiber. */
struct kubelet_call {
	struct http_exchange *x;
	const struct kubelet_server_options *o;
	struct arena *arena;          /* of the exchange */
	str path;                     /* decoded */
	str parts[CALL_PARTS_MAX];    /* "exec", "default", "web", "c" */
	size_t n_parts;
	struct url_query query;
};

/* ---- answers ---- */

void call_answer(struct kubelet_call *c, int status, str content_type, str body);
/* A plain text, as it is. */
void call_error(struct kubelet_call *c, int status, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* The same with an end of line, as Go's http.Error writes it. */
void call_http_error(struct kubelet_call *c, int status, str text);
/* An error of cri_ask, with the HTTP status that its code has. */
void call_runtime_error(struct kubelet_call *c, const struct err *err);
void call_json(struct kubelet_call *c, struct val v, const struct type *type, unsigned indent);

/* ---- answers that are made piece by piece: server_pump.c ---- */

struct pump;

/* Answers 200 with what will be written. */
struct pump *pump_begin(struct http_exchange *x, str content_type) NONNULL_RESULT;
/* (suspends while the client does not read) -ERR_GONE: it has left. */
int pump_write(struct pump *p, str text, struct err *err);
bool pump_is_stopped(const struct pump *p);
/* That was all; gives p back. */
void pump_end(struct pump *p);

/* ---- questions ---- */

/* The first parameter of that name; p is NULL when there is none. */
str call_query(const struct kubelet_call *c, str name);
/* The pod that the path names by its second and third part; VAL_NONE: there is none. */
struct val call_pod(struct kubelet_call *c);
/* The spec of one of its containers, of whichever kind. */
struct val container_spec_of(struct val pod, str name);
/* In double quotes with Go's escapes, in the arena. */
str call_quoted(struct kubelet_call *c, str text);

/* ---- handlers: each answers ---- */

/* (suspends) True: go on. Else it was answered. */
bool call_is_allowed(struct kubelet_call *c);
int call_logs(struct kubelet_call *c);
int call_exec(struct kubelet_call *c);
int call_attach(struct kubelet_call *c);
int call_port_forward(struct kubelet_call *c);
int call_run(struct kubelet_call *c);
int call_checkpoint(struct kubelet_call *c);
int call_running_pods(struct kubelet_call *c);
int call_files(struct kubelet_call *c);

#endif
