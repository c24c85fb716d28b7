/* The program: seeds, one after the other, until one fails; several processes share them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "simulation/simulation.h"

static const char usage[] =
	"Usage: simulate [--seed N | --seeds FIRST..LAST] [--jobs N] [--calm] [--verbose]\n"
	"\n"
	"Runs a cluster of API server, schedulers, controllers and hollow nodes in this process on a virtual clock, with work and\n"
	"faults that the seed decides, and checks what must hold. The same seed gives the same run.\n"
	"\n"
	"  --seed N              one run (1)\n"
	"  --seeds FIRST..LAST   many, until one fails\n"
	"  --jobs N              so many processes share them (1)\n"
	"  --calm                without faults\n"
	"  --verbose             every write is shown\n"
	"\n"
	"Exit code: 0 all rules held, 1 a rule was broken (seed, rule, object and the last writes are shown), 2 wrong usage.\n";

enum { JOBS_MAX = 256 };

struct arguments {
	struct sim_options options;
	uint64_t last;
	uint64_t jobs;
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

static bool read_jobs(const char *text, struct arguments *ret)
{
	char *end;

	ret->jobs = strtoull(text, &end, 10);
	return end != text && !*end && ret->jobs >= 1 && ret->jobs <= JOBS_MAX;
}

static bool read_value(const char *name, const char *value, struct arguments *ret)
{
	if (strcmp(name, "--jobs") == 0)
		return read_jobs(value, ret);
	bool one = strcmp(name, "--seed") == 0;
	return (one || strcmp(name, "--seeds") == 0) && read_seeds(value, !one, ret);
}

static bool read_arguments(int argc, char **argv, struct arguments *ret)
{
	*ret = (struct arguments){ .options.seed = 1, .last = 1, .jobs = 1 };
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--calm") == 0)
			ret->options.calm = true;
		else if (strcmp(argv[i], "--verbose") == 0)
			ret->options.verbose = true;
		else if (i + 1 == argc || !read_value(argv[i], argv[i + 1], ret))
			return false;
		else
			i++;
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

/* Every jobs-th seed, from this one on. */
static bool run_share(struct arguments a)
{
	struct sim_result result = { 0 };
	double begun = seconds();
	unsigned long long n = 0, writes = 0;
	bool ok = true;

	for (; ok && a.options.seed <= a.last; a.options.seed += a.jobs, n++) {
		ok = run_one(&a.options, &result);
		writes += result.writes;
	}
	simulate_done();
	printf("%llu seeds, %llu writes, %.1f s; the last: sum %016llx\n", n, writes, seconds() - begun, (unsigned long long)result.sum);
	return ok;
}

/* Nothing has begun yet that a fork would split. */
static bool run_shares(struct arguments a)
{
	uint64_t started = 0;
	bool ok = true;
	int status;

	for (; started < a.jobs; started++, a.options.seed++) {
		pid_t pid = fork();
		if (pid == 0) {
			(void)setvbuf(stdout, NULL, _IOFBF, 1 << 20); /* what one says stays together */
			exit(run_share(a) ? 0 : 1);
		}
		if (pid < 0) {
			perror("fork");
			ok = false;
			break;
		}
	}
	for (; started > 0; started--)
		ok &= wait(&status) >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
	return ok;
}

int main(int argc, char **argv)
{
	struct arguments a;

	if (!read_arguments(argc, argv, &a)) {
		fputs(usage, stderr);
		return 2;
	}
	return (a.jobs > 1 ? run_shares(a) : run_share(a)) ? 0 : 1;
}
