/* A store, a cache that follows it, and requests that read from it: for tests. */
#ifndef C8S_APISERVER_READ_FIXTURE_H
#define C8S_APISERVER_READ_FIXTURE_H

#include "apiserver/apiserver.h"
#include "apiserver/cache.h"
#include "apiserver/list.h"
#include "apiserver/negotiate.h"
#include "apiserver/read.h"
#include "base/fiber.h"
#include "base/test.h"

struct read_fixture {
	char folder[64], file[80];
	struct apiserver server;
	struct fiber *follower;
	struct arena arena;           /* of the last call */
	struct http_header headers[4];
	struct http_exchange http;
	struct request q;
	struct buf text;
};

/* Run on a fiber. */
void read_fixture_init(struct read_fixture *f);
void read_fixture_done(struct read_fixture *f);

/* Writes an object (JSON with ' for ") and waits until the cache has it; returns its revision. NULL removes it. */
int64_t read_fixture_put(struct read_fixture *f, str resource, const char *key, const char *json);

/*
 * A request: "GET", "LIST" or "WATCH" of "configmaps", in a namespace ("": all) with a query; accept may be NULL.
 * Returns what the read function returned.
 */
int read_fixture_call(struct read_fixture *f, const char *verb, const char *resource, const char *namespace, const char *name,
		      const char *query, const char *accept);
/* What the answer's source gives until its end or until there is nothing now, in pieces of `step` bytes; *ret_end says which. */
str read_fixture_drain(struct read_fixture *f, size_t step, bool *ret_end);
void read_fixture_stop(struct read_fixture *f);

#endif
