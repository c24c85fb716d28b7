#include "oci/state.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "oci/oci_priv.h"
#include "oci/sync.h"

TEST(state_ids)
{
	static const char *const good[] = { "a", "A-b_c.d+9", "..a" }, *const bad[] = { "", ".", "..", "a/b", "a b", "\xc3\xa9", "a\n" };

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		CHECK_ROW(i, state_check_id(good[i], NULL) == 0);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_ROW(i, state_check_id(bad[i], NULL) == -ERR_BAD_REQUEST);
}

/* A state of a process that lives, and then does not. */
TEST(state_of_a_process)
{
	char root[] = "/tmp/c8s-state-XXXXXX";
	struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;
	struct state s, again;

	CHECK(mkdtemp(root) != NULL);
	CHECK_INT(state_open(root, "x", false, &a, &again, &err), -ERR_NOT_FOUND);
	CHECK_STR(err_str(&err), "container does not exist");
	CHECK_INT(state_make(root, "x", &a, &s, &err), 0);
	CHECK_INT(state_make(root, "x", &a, &again, &err), -ERR_ALREADY_EXISTS);
	CHECK_INT(state_open(root, "x", false, &a, &again, &err), -ERR_NOT_FOUND);
	pid_t pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	s.version = STR("1.2.0");
	s.bundle = STR("/b");
	s.cgroup = STR("/c");
	s.pid = pid;
	s.start_time = state_start_time(pid);
	s.annotations = OBJECT(&a, F(name, VAL_LIT("n")));
	CHECK(s.start_time > 0);
	CHECK_INT(state_save(&s, &err), 0);
	CHECK_INT(state_open(root, "x", false, &a, &again, &err), 0);
	CHECK_INT(state_status(&again), OCI_CREATING);
	again.creating = false;
	CHECK_INT(state_status(&again), OCI_RUNNING);
	CHECK(again.pid == pid && again.start_time == s.start_time);
	CHECK_STR(val_str(again.annotations, name), "n");
	CHECK_STR(again.cgroup, "/c");

	CLEANUP(buf_done) struct buf text = BUF_INIT(4096);
	state_text(&text, &again, OCI_RUNNING, 7);
	CHECK_STR(buf_str(&text), "{\"ociVersion\":\"1.2.0\",\"id\":\"x\",\"status\":\"running\",\"pid\":7,\"bundle\":\"/b\",\"annotations\":{\"name\":\"n\"}}");
	/* Another process with the same pid would have begun later. */
	again.start_time--;
	CHECK_INT(state_status(&again), OCI_STOPPED);
	CHECK_INT(state_pidfd(&again, &err), -ERR_CONFLICT);
	again.start_time++;
	kill(pid, SIGKILL);
	siginfo_t info;
	CHECK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0);
	CHECK_INT(state_status(&again), OCI_STOPPED); /* a zombie */
	waitpid(pid, NULL, 0);
	CHECK_INT(state_status(&again), OCI_STOPPED);
	state_close(&again);
	CHECK_INT(state_remove(root, &s, &err), 0);
	state_close(&s);
	CHECK(rmdir(root) == 0);
	arena_done(&a);
}

TEST(sync_tells_failures)
{
	int fd[2], passed;
	struct err err = ERR_INIT, told = ERR_INIT;
	struct sync_message m;

	CHECK_INT(sync_pair(fd, &err), 0);
	err_sys(&told, 1, "mount %s", "/x");
	sync_fail(fd[1], "rootfs", &told);
	CHECK_INT(sync_next(fd[0], &m, &passed, &err), -ERR_FORBIDDEN);
	CHECK_STR(err_str(&err), "rootfs: mount /x: Operation not permitted");
	CHECK_INT(err.sys, 1);
	CHECK_INT(sync_tell_fd(fd[1], SYNC_TERMINAL, fd[1], &err), 0);
	CHECK_INT(sync_next(fd[0], &m, &passed, &err), 0);
	CHECK(m.kind == SYNC_TERMINAL && passed >= 0);
	close(passed);
	close(fd[1]);
	CHECK_INT(sync_next(fd[0], &m, &passed, &err), -ERR_UNAVAILABLE);
	CHECK_INT(m.kind, SYNC_CLOSED);
	close(fd[0]);
}

TEST(hooks)
{
	static const struct { const char *json; int r; const char *message; } t[] = {
		{ "{\"poststop\":[{\"path\":\"/bin/sh\",\"args\":[\"sh\",\"-c\",\"read x; test $x = state\"]}]}", 0, NULL },
		{ "{\"poststop\":[{\"path\":\"/bin/sh\",\"args\":[\"sh\",\"-c\",\"test $A = b\"],\"env\":[\"A=b\"]}]}", 0, NULL },
		{ "{\"prestart\":[{\"path\":\"/bin/false\"}]}", 0, NULL },
		{ "{\"poststop\":[{\"path\":\"/none\"}]}", -ERR_INTERNAL,
		  "poststop: hook /none: exit status 127, stdout+stderr: No such file or directory" },
		{ "{\"poststop\":[{\"path\":\"/bin/sh\",\"args\":[\"sh\",\"-c\",\"echo no; kill -9 $$\"]}]}", -ERR_INTERNAL,
		  "poststop: hook /bin/sh: signal 9, stdout+stderr: no" },
		{ "{\"poststop\":[{\"path\":\"/bin/sleep\",\"args\":[\"sleep\",\"60\"],\"timeout\":1}]}", -ERR_TIMEOUT,
		  "poststop: hook /bin/sleep ran past its timeout" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct arena a = ARENA_INIT;
		struct err err = ERR_INIT;
		struct val v;
		CHECK_INT(json_decode(&a, str_of(t[i].json), &(struct json_decode_options){ 0 }, &v, &err), 0);
		CHECK_ROW(i, hooks_run(v, A_poststop, STR("state\n"), &err) == t[i].r);
		if (t[i].message)
			CHECK_STR_ROW(i, err_str(&err), t[i].message);
		arena_done(&a);
	}
}
