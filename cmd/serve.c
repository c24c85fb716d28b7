/* The loop of a program that serves, and the signals that stop it. */
#include "cmd/serve.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/fiber.h"
#include "base/fiber_io.h"
#include "base/log.h"
#include "base/loop.h"

enum { VERBOSE_DEBUG = 4 };

struct serving {
	int (*fn)(void *arg, struct err *err);
	void *arg;
	struct err *err;
	int signal_fd;
	struct fiber *main;
};

static void stop_signals(sigset_t *ret)
{
	sigemptyset(ret);
	sigaddset(ret, SIGTERM);
	sigaddset(ret, SIGINT);
}

/* From the first one on the default action is in place. */
static int listen_to_signals(void *arg)
{
	struct serving *s = arg;
	struct signalfd_siginfo info;
	sigset_t set;

	if (fiber_read(s->signal_fd, &info, sizeof(info), NULL) <= 0)
		return 0;
	log_info("stopping", KV("signal", strsignal((int)info.ssi_signo)));
	stop_signals(&set);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	fiber_cancel(s->main);
	return 0;
}

static int run(void *arg)
{
	struct serving *s = arg;
	CLEANUP(fiber_stopp) struct fiber *signals = NULL;

	s->main = fiber_self();
	int r = fiber_spawn(listen_to_signals, s, &signals, s->err, "signals");
	if (r < 0)
		return r;
	r = s->fn(s->arg, s->err);
	return r == -ERR_CANCELED ? 0 : r;
}

/* The signal is asked for first: a supervisor that ends in between is noticed either way. */
static void follow_supervisor(void)
{
	const char *pid = getenv(SERVE_SUPERVISOR);

	if (pid)
		(void)setpgid(0, 0); /* a terminal's Ctrl-C is for the supervisor: with its SIGTERM it would be our second signal */
	if (pid && (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != (pid_t)strtol(pid, NULL, 10)))
		(void)raise(SIGTERM);
	(void)unsetenv(SERVE_SUPERVISOR); /* it is not the supervisor of our children */
}

int cmd_serve(const char *name, int (*fn)(void *arg, struct err *err), void *arg, struct err *err)
{
	CLEANUP(loop_freep) struct loop *loop = NULL;
	struct serving s = { .fn = fn, .arg = arg, .err = err };
	sigset_t set;
	int r;

	stop_signals(&set);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return err_sys(err, errno, "sigprocmask");
	follow_supervisor();
	s.signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (s.signal_fd < 0)
		return err_sys(err, errno, "signalfd");
	if ((r = loop_new(name, &loop, err)) == 0 && (r = loop_dump_on_sigusr2(loop, err)) == 0)
		r = loop_run(loop, run, &s, err);
	(void)close(s.signal_fd);
	return r;
}

int cmd_set_logging(const struct command *c, const char *format, int64_t verbosity)
{
	if (strcmp(format, "json") == 0)
		log_set_format(LOG_FORMAT_JSON);
	else if (strcmp(format, "text") != 0)
		return cmd_usage(c, "--logging-format: unsupported log format '%s'; give text or json", format);
	if (verbosity >= VERBOSE_DEBUG)
		log_set_level(LOG_LEVEL_DEBUG);
	return 0;
}
