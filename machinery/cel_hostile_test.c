/*
 * Expressions that were written to do harm: each is compiled and run on a stack as small as a fiber's, with a limit of memory on top of those
 * of cost. Whatever comes of it, the process lives on, and soon.
 */
#include <pthread.h>
#include <sys/resource.h>

#include "base/buf.h"
#include "base/fiber_priv.h"
#include "base/test.h"
#include "machinery/cel.h"

enum { TEXT_MAX = CEL_SOURCE_MAX, LIMIT = 1000000, MEGABYTES_MAX = 512 };

/* What becomes of one: compiled and run, in a thread. */
struct attempt {
	str source;
	bool compiled, exceeded;
};

static void *try_it(void *arg)
{
	static const struct cel_env env = { .options = CEL_BINDINGS };
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(cel_program_freep) struct cel_program *p = NULL;
	struct attempt *x = arg;
	str why;

	if (cel_compile(&env, x->source, &a, &p, &why) < 0)
		return NULL;
	x->compiled = true;
	struct cel_run run = { .arena = &a, .limit = LIMIT };
	(void)cel_run(p, NULL, &run);
	x->exceeded = run.exceeded;
	return NULL;
}

static struct attempt attempt(const struct buf *source)
{
	struct attempt x = { .source = buf_str(source) };
	pthread_attr_t small;
	pthread_t thread;

	CHECK_INT(pthread_attr_init(&small), 0);
	CHECK_INT(pthread_attr_setstacksize(&small, fiber_stack_size()), 0);
	CHECK_INT(pthread_create(&thread, &small, try_it, &x), 0);
	CHECK_INT(pthread_join(thread, NULL), 0);
	(void)pthread_attr_destroy(&small);
	return x;
}

static void repeat(struct buf *b, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf_add(b, str_of(text));
}

/* Bindings are evaluated when they are used: the height of a chain of them is the sum of the heights of its links. */
TEST(cel_hostile_bindings)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(TEXT_MAX);

	for (size_t i = 0; i < 60; i++) {
		buf_addf(&b, "cel.bind(v%zu, ", i);
		repeat(&b, "-(", 60);
		if (i)
			buf_addf(&b, "v%zu", i - 1);
		else
			buf_addc(&b, '1');
		repeat(&b, ")", 60);
		buf_add(&b, STR(", "));
	}
	buf_add(&b, STR("v59"));
	repeat(&b, ")", 60);
	(void)attempt(&b);
}

TEST(cel_hostile_depths)
{
	static const struct { const char *open, *middle, *close; size_t n; } rows[] = {
		{ "[", "", "]", 240 }, { "(", "1", ")", 240 }, { "!", "true", "", 4000 }, { "{1:", "1", "}", 120 }, { "", "1", "+1", 20000 },
		{ "true?", "1", ":1", 200 }, { "[1].map(x,", "1", ")", 60 }, { "optional.of(", "1", ")", 240 }, { "type(", "1", ")", 240 },
		{ "", "1", "==1||1", 10000 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(buf_done) struct buf b = BUF_INIT(TEXT_MAX * 4);
		repeat(&b, rows[i].open, rows[i].n);
		buf_add(&b, str_of(rows[i].middle));
		repeat(&b, rows[i].close, rows[i].n);
		(void)attempt(&b);
	}
}

/* What would take gigabytes or minutes ends as too costly, or is refused; what is large but within the limits takes no more than they say. */
TEST(cel_hostile_costs)
{
	static const struct { bool allowed; const char *source; } rows[] = {
		{ false, "[0,1,2,3,4,5,6,7,8,9].map(a, [0,1,2,3,4,5,6,7,8,9].map(b, [0,1,2,3,4,5,6,7,8,9].map(c, [0,1,2,3,4,5,6,7,8,9].map(d,"
		"[0,1,2,3,4,5,6,7,8,9].map(e, [0,1,2,3,4,5,6,7,8,9].map(f, [0,1,2,3,4,5,6,7,8,9].map(g, 'x'))))))).size() > 0" },
		{ false, "cel.bind(a, 'xxxxxxxxxxxxxxxx', cel.bind(b, a+a+a+a+a+a+a+a, cel.bind(c, b+b+b+b+b+b+b+b, cel.bind(d, c+c+c+c+c+c+c+c, cel.bind(e, d+d+d+d+d+d+d+d,"
		"cel.bind(f, e+e+e+e+e+e+e+e, cel.bind(g, f+f+f+f+f+f+f+f, cel.bind(h, g+g+g+g+g+g+g+g, h+h+h+h+h+h+h+h == h))))))))" },
		{ true, "cel.bind(a, 'xxxxxxxxxxxxxxxx', cel.bind(b, a+a+a+a+a+a+a+a, cel.bind(c, b+b+b+b+b+b+b+b, cel.bind(d, c+c+c+c+c+c+c+c, cel.bind(e, d+d+d+d+d+d+d+d,"
		"e.split('').size() > e.split('').size())))))" },
		{ false, "'aaaaaaaaaaaaaaaaaaaaaaaaaaaa'.matches('((a{1000}){1000}){1000}')" },
		{ true, "[[1,2,3,4,5,6,7,8,9],[1,2,3,4,5,6,7,8,9]].map(a, [a,a,a,a,a,a,a,a].map(b, [b,b,b,b,b,b,b,b].map(c, [c,c,c,c,c,c,c,c].map(d, [d,d,d,d,d,d,d,d]))))"
		" == [[1]]" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(buf_done) struct buf b = BUF_INIT(TEXT_MAX);
		struct rusage before, after;
		buf_add(&b, str_of(rows[i].source));
		CHECK_INT(getrusage(RUSAGE_SELF, &before), 0);
		struct attempt x = attempt(&b);
		CHECK_INT(getrusage(RUSAGE_SELF, &after), 0);
		CHECK_ROW(i, rows[i].allowed || !x.compiled || x.exceeded);
		CHECK_ROW(i, (after.ru_maxrss - before.ru_maxrss) >> 10 < MEGABYTES_MAX);
	}
}
