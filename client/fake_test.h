/* A server that is a script, for the tests of what uses a client: it keeps objects, fails when told, and tells watches what the test says. */
#ifndef C8S_CLIENT_FAKE_TEST_H
#define C8S_CLIENT_FAKE_TEST_H

#include "base/buf.h"
#include "base/fiber.h"
#include "base/omap.h"
#include "client/client_priv.h"

enum fake_kind { FAKE_EVENT, FAKE_END, FAKE_FAIL, FAKE_REFUSE };

/* What watches tell, one after another; FAKE_REFUSE is for the next that is opened, the others for one that is open. */
struct fake_step {
	enum fake_kind kind;
	enum client_event_type type;
	const char *name, *revision;
	bool initial_end;
	enum err_code error;
};

struct fake {
	struct client client;
	struct omap *objects;        /* "events/default/x" to struct frozen */
	int64_t revision;
	enum err_code fail;          /* of calls, as long as it is set */
	void (*meanwhile)(void *arg); /* called while a call is under way; NULL: nothing happens then */
	void *arg;
	struct buf log;              /* a line per call */
	const struct fake_step *steps;
	size_t n_steps, at;
	struct fiber_cond more;
};

/* (suspends) From now on it is this time, and no time passes but what fibers wait for. */
void fake_clock(int64_t wall_ns);

void fake_init(struct fake *f);
void fake_done(struct fake *f);
/* More of the script. All before it must have been told. */
void fake_tell(struct fake *f, const struct fake_step *steps, size_t n);
/* The object, borrowed; NULL: none. Key as in objects. */
struct frozen *fake_get(struct fake *f, const char *key);
/* The log so far, which begins anew with the next line. */
str fake_log(struct fake *f, struct arena *a);

#endif
