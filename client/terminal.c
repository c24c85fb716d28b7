#include "client/terminal.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/fiber_io.h"

static void caught(sigset_t *set)
{
	(void)sigemptyset(set);
	(void)sigaddset(set, SIGWINCH);
	(void)sigaddset(set, SIGHUP);
	(void)sigaddset(set, SIGINT);
	(void)sigaddset(set, SIGTERM);
}

int terminal_open(struct terminal *t, struct err *err)
{
	struct termios raw;
	sigset_t set;

	*t = (struct terminal){ .signals = -1 };
	if (tcgetattr(STDIN_FILENO, &t->before) < 0)
		return err_set(err, ERR_BAD_REQUEST, "input is not a terminal");
	/* signals first: from the moment the terminal is raw, nothing may end us without setting it back */
	caught(&set);
	t->blocked = sigprocmask(SIG_BLOCK, &set, &t->mask) == 0;
	if ((t->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC)) < 0)
		return err_sys(err, errno, "signalfd");
	raw = t->before;
	cfmakeraw(&raw);
	if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) < 0)
		return err_sys(err, errno, "making the terminal raw");
	t->raw = true;
	return 0;
}

void terminal_close(struct terminal *t)
{
	if (t->raw)
		(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &t->before);
	t->raw = false;
	if (t->signals >= 0)
		(void)close(t->signals);
	t->signals = -1;
	/* From here on they end us again. */
	if (t->blocked)
		(void)sigprocmask(SIG_SETMASK, &t->mask, NULL);
	t->blocked = false;
}

bool terminal_size(unsigned *ret_columns, unsigned *ret_rows)
{
	struct winsize w;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) < 0 && ioctl(STDIN_FILENO, TIOCGWINSZ, &w) < 0)
		return false;
	*ret_columns = w.ws_col;
	*ret_rows = w.ws_row;
	return w.ws_col && w.ws_row;
}

int terminal_signal(struct terminal *t, int *ret_signal, struct err *err)
{
	struct signalfd_siginfo info;
	ssize_t n = fiber_read(t->signals, &info, sizeof(info), err);

	if (n < 0)
		return (int)n;
	*ret_signal = (int)info.ssi_signo;
	return 0;
}

/* ---- leaving ---- */

enum { CTRL_P = 0x10, CTRL_Q = 0x11 };

bool detach_scan(struct detach *d, str piece, char *out, str *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < piece.n; i++) {
		char c = piece.p[i];
		if (d->half && c == CTRL_Q) {
			*ret = str_span(out, n);
			return true;
		}
		if (d->half)
			out[n++] = CTRL_P;
		d->half = c == CTRL_P;
		if (!d->half)
			out[n++] = c;
	}
	*ret = str_span(out, n);
	return false;
}
