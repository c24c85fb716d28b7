/* The program: seeds, one after the other, until one fails. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "simulation/simulation.h"

static const char usage[] =
	"Usage: simulate [--seed N | --seeds FIRST..LAST] [--calm] [--verbose]\n"
	"\n"
	"Runs a cluster of API server, scheduler, controllers and hollow nodes in this process on a virtual clock, with work and\n"
	"faults that the seed decides, and checks what must hold. The same seed gives the same run.\n"
	"\n"
	"  --seed N              one run (1)\n"
	"  --seeds FIRST..LAST   many, until one fails\n"
	"  --calm                without faults\n"
	"  --verbose             every write is shown\n"
	"\n"
	"Exit code: 0 all rules held, 1 a rule was broken (seed, rule, object and the last writes are shown), 2 wrong usage.\n";

struct arguments {
	struct sim_options options;
	uint64_t last;
};

static bool read_seeds(const char *text, bool range, struct arguments *ret)
{
	char *end;

	ret->options.seed = ret->last = strtoull(text, &end, 10);
	if (range && end != text && strncmp(end, "..", 2) == 0) {
		text = end + 2;
		ret->last = strtoull(text, &end, 10);
	}
	return end != text && !*end && ret->last >= ret->options.seed;
}

static bool read_arguments(int argc, char **argv, struct arguments *ret)
{
	*ret = (struct arguments){ .options.seed = 1, .last = 1 };
	for (int i = 1; i < argc; i++) {
		bool one = strcmp(argv[i], "--seed") == 0;
		if (strcmp(argv[i], "--calm") == 0)
			ret->options.calm = true;
		else if (strcmp(argv[i], "--verbose") == 0)
			ret->options.verbose = true;
		else if ((!one && strcmp(argv[i], "--seeds") != 0) || ++i == argc || !read_seeds(argv[i], !one, ret))
			return false;
	}
	return true;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool run_one(const struct sim_options *o, struct sim_result *ret)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(1 << 20);

	simulate(o, ret, &out);
	if (ret->failed)
		printf("seed %llu failed: " STR_FMT, (unsigned long long)o->seed, STR_ARG(buf_str(&out)));
	return !ret->failed;
}

int main(int argc, char **argv)
{
	struct arguments a;
	struct sim_result result = { 0 };
	double begun = seconds();
	unsigned long long n = 0, writes = 0;
	bool ok = true;

	if (!read_arguments(argc, argv, &a)) {
		fputs(usage, stderr);
		return 2;
	}
	for (; ok && a.options.seed <= a.last; a.options.seed++, n++) {
		ok = run_one(&a.options, &result);
		writes += result.writes;
	}
	simulate_done();
	printf("%llu seeds, %llu writes, %.1f s; the last: sum %016llx\n", n, writes, seconds() - begun, (unsigned long long)result.sum);
	return ok ? 0 : 1;
}
