/* Names of signals. */
#include "runtime/signals.h"

#include <signal.h>
#include <strings.h>

static const struct {
	const char *name;
	int number;
} signals[] = {
	{ "ABRT", SIGABRT }, { "ALRM", SIGALRM }, { "BUS", SIGBUS }, { "CHLD", SIGCHLD }, { "CLD", SIGCHLD }, { "CONT", SIGCONT },
	{ "FPE", SIGFPE }, { "HUP", SIGHUP }, { "ILL", SIGILL }, { "INT", SIGINT }, { "IO", SIGIO }, { "IOT", SIGIOT },
	{ "KILL", SIGKILL }, { "PIPE", SIGPIPE }, { "POLL", SIGPOLL }, { "PROF", SIGPROF }, { "PWR", SIGPWR }, { "QUIT", SIGQUIT },
	{ "SEGV", SIGSEGV }, { "STKFLT", SIGSTKFLT }, { "STOP", SIGSTOP }, { "SYS", SIGSYS }, { "TERM", SIGTERM },
	{ "TRAP", SIGTRAP }, { "TSTP", SIGTSTP }, { "TTIN", SIGTTIN }, { "TTOU", SIGTTOU }, { "URG", SIGURG }, { "USR1", SIGUSR1 },
	{ "USR2", SIGUSR2 }, { "VTALRM", SIGVTALRM }, { "WINCH", SIGWINCH }, { "XCPU", SIGXCPU }, { "XFSZ", SIGXFSZ },
};

/* The C library keeps the first two for itself and moves SIGRTMIN; containers mean the kernel's numbers, as containerd does. */
enum { RT_MIN = 34, RT_MAX = 64 };

static bool eq_fold(str a, const char *b) { return a.n == strlen(b) && strncasecmp(a.p, b, a.n) == 0; }
static bool starts_fold(str a, const char *b) { return a.n >= strlen(b) && strncasecmp(a.p, b, strlen(b)) == 0; }

/* What follows RTMIN or RTMAX: nothing, "+3" or "PLUS3", "-3" or "MINUS3". -1: something else. */
static int offset_of(str text, str sign, str word)
{
	int64_t n;

	if (!text.n)
		return 0;
	if (str_starts(text, sign))
		text = str_skip(text, sign.n);
	else if (str_starts(text, word))
		text = str_skip(text, word.n);
	else
		return -1;
	return str_to_i64(text, &n) && n >= 0 && n <= RT_MAX - RT_MIN ? (int)n : -1;
}

int signal_parse(str text)
{
	int64_t n;

	if (str_to_i64(text, &n))
		return n > 0 && n <= RT_MAX ? (int)n : -1;
	if (starts_fold(text, "SIG"))
		text = str_skip(text, 3);
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		if (eq_fold(text, signals[i].name))
			return signals[i].number;
	if (starts_fold(text, "RTMIN")) {
		int offset = offset_of(str_skip(text, 5), STR("+"), STR("PLUS"));
		return offset < 0 ? -1 : RT_MIN + offset;
	}
	if (starts_fold(text, "RTMAX")) {
		int offset = offset_of(str_skip(text, 5), STR("-"), STR("MINUS"));
		return offset < 0 ? -1 : RT_MAX - offset;
	}
	return -1;
}

const char *signal_cri_name(int number)
{
	static const char *const names[] = {
		[SIGABRT] = "SIGABRT", [SIGALRM] = "SIGALRM", [SIGBUS] = "SIGBUS", [SIGCHLD] = "SIGCHLD", [SIGCONT] = "SIGCONT",
		[SIGFPE] = "SIGFPE", [SIGHUP] = "SIGHUP", [SIGILL] = "SIGILL", [SIGINT] = "SIGINT", [SIGIO] = "SIGIO",
		[SIGKILL] = "SIGKILL", [SIGPIPE] = "SIGPIPE", [SIGPROF] = "SIGPROF", [SIGPWR] = "SIGPWR", [SIGQUIT] = "SIGQUIT",
		[SIGSEGV] = "SIGSEGV", [SIGSTKFLT] = "SIGSTKFLT", [SIGSTOP] = "SIGSTOP", [SIGSYS] = "SIGSYS",
		[SIGTERM] = "SIGTERM", [SIGTRAP] = "SIGTRAP", [SIGTSTP] = "SIGTSTP", [SIGTTIN] = "SIGTTIN",
		[SIGTTOU] = "SIGTTOU", [SIGURG] = "SIGURG", [SIGUSR1] = "SIGUSR1", [SIGUSR2] = "SIGUSR2",
		[SIGVTALRM] = "SIGVTALRM", [SIGWINCH] = "SIGWINCH", [SIGXCPU] = "SIGXCPU", [SIGXFSZ] = "SIGXFSZ",
		[RT_MIN] = "SIGRTMIN", "SIGRTMINPLUS1", "SIGRTMINPLUS2", "SIGRTMINPLUS3", "SIGRTMINPLUS4", "SIGRTMINPLUS5",
		"SIGRTMINPLUS6", "SIGRTMINPLUS7", "SIGRTMINPLUS8", "SIGRTMINPLUS9", "SIGRTMINPLUS10", "SIGRTMINPLUS11",
		"SIGRTMINPLUS12", "SIGRTMINPLUS13", "SIGRTMINPLUS14", "SIGRTMINPLUS15", "SIGRTMAXMINUS14", "SIGRTMAXMINUS13",
		"SIGRTMAXMINUS12", "SIGRTMAXMINUS11", "SIGRTMAXMINUS10", "SIGRTMAXMINUS9", "SIGRTMAXMINUS8", "SIGRTMAXMINUS7",
		"SIGRTMAXMINUS6", "SIGRTMAXMINUS5", "SIGRTMAXMINUS4", "SIGRTMAXMINUS3", "SIGRTMAXMINUS2", "SIGRTMAXMINUS1",
		"SIGRTMAX",
	};
	return number > 0 && (size_t)number < ARRAY_LEN(names) ? names[number] : NULL;
}
