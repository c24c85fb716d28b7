/* c8s store: snapshot, restore and check the embedded store's file. */
#include <stdio.h>

#include "cmd/cmd.h"
#include "store/files.h"

/* Larger than what a store of thousands of writes a second counts between two snapshots. */
#define BUMP_DEFAULT INT64_C(1000000000)

struct store_args {
	const char *positional[3]; /* the action and its files */
	int n;
	bool force;
	int64_t bump;
};

static void print_size(const char *name, int64_t bytes)
{
	printf("%-14s %.1f MiB\n", name, (double)bytes / (1 << 20));
}

static void print_report(const struct store_report *r)
{
	printf("%-14s %lld\n", "revision", (long long)r->revision);
	printf("%-14s %lld\n", "compacted to", (long long)r->compact_revision);
	printf("%-14s %lld, %lld of them expire\n", "keys", (long long)r->keys, (long long)r->expiring);
	printf("%-14s %lld, with those not yet compacted away\n", "rows", (long long)r->rows);
	print_size("size", r->size_bytes);
	print_size("unused", r->free_bytes);
	print_size("log", r->log_bytes);
}

static int check(const struct store_args *a, struct err *err)
{
	struct store_report report;
	int r = store_file_check(a->positional[1], &report, err);

	if (r < 0)
		return r;
	printf("%-14s %s\n", "file", a->positional[1]);
	printf("%-14s %s\n", "in use", report.in_use ? "yes, by a server" : "no");
	print_report(&report);
	if (!report.sound)
		return err_set(err, ERR_UNAVAILABLE, "%s is damaged: %s; stop the server and bring back a snapshot with"
			       " 'c8s store restore'", a->positional[1], report.problem);
	printf("%-14s sound\n", "condition");
	return 0;
}

static int snapshot(const struct store_args *a, struct err *err)
{
	struct store_report report;
	int r = store_file_snapshot(a->positional[1], a->positional[2], a->force, &report, err);

	if (r == -ERR_ALREADY_EXISTS)
		return err_set(err, ERR_ALREADY_EXISTS, "%s exists already; --force replaces it", a->positional[2]);
	if (r == 0) {
		printf("%-14s %s\n", "snapshot", a->positional[2]);
		print_report(&report);
	}
	return r;
}

static int restore(const struct store_args *a, struct err *err)
{
	struct store_report report;
	int r = store_file_restore(a->positional[1], a->positional[2], a->force, a->bump, &report, err);

	if (r == -ERR_ALREADY_EXISTS)
		return err_set(err, ERR_ALREADY_EXISTS, "%s exists already; --force puts the snapshot there and keeps the old"
			       " one as %s.old", a->positional[2], a->positional[2]);
	if (r == 0) {
		printf("%-14s %s\n", "restored", a->positional[2]);
		print_report(&report);
	}
	return r;
}

static const struct action {
	const char *name, *arguments;
	int n;
	int (*run)(const struct store_args *a, struct err *err);
} actions[] = {
	{ "check", "FILE", 2, check },
	{ "snapshot", "FILE SNAPSHOT", 3, snapshot },
	{ "restore", "SNAPSHOT FILE", 3, restore },
};

enum { OPT_FORCE, OPT_BUMP };

static const struct option_spec specs[] = {
	[OPT_FORCE] = { 0, "force", OPTION_ALONE },
	[OPT_BUMP] = { 0, "bump-revision", OPTION_VALUE },
	{ 0, NULL, OPTION_ALONE },
};

static int run(int argc, char **argv)
{
	struct store_args a = { .bump = BUMP_DEFAULT };
	struct options o = { &cmd_store, argc, argv, 0, NULL };
	struct err err = ERR_INIT;
	int found;

	while ((found = options_next(&o, specs)) != OPTION_END) {
		switch (found) {
		case OPT_FORCE: a.force = true; break;
		case OPT_BUMP:
			if (!str_to_i64(str_of(o.value), &a.bump) || a.bump < 0)
				return cmd_usage(&cmd_store, "'%s' is not a number of revisions", o.value);
			break;
		case OPTION_ARGUMENT:
			if (a.n == (int)ARRAY_LEN(a.positional))
				return cmd_usage(&cmd_store, "unexpected argument '%s'", o.value);
			a.positional[a.n++] = o.value;
			break;
		default: return 2;
		}
	}
	if (!a.n)
		return cmd_usage(&cmd_store, "give check, snapshot or restore");
	for (size_t i = 0; i < ARRAY_LEN(actions); i++) {
		if (!str_eq(str_of(a.positional[0]), str_of(actions[i].name)))
			continue;
		if (a.n != actions[i].n)
			return cmd_usage(&cmd_store, "%s needs %s", actions[i].name, actions[i].arguments);
		return actions[i].run(&a, &err) < 0 ? cmd_fail(&cmd_store, &err) : 0;
	}
	return cmd_usage(&cmd_store, "there is no '%s'; give check, snapshot or restore", a.positional[0]);
}

const struct command cmd_store = {
	.name = "store",
	.summary = "snapshot, restore and check the embedded store",
	.manual =
		"Usage: c8s store check FILE\n"
		"       c8s store snapshot FILE SNAPSHOT [--force]\n"
		"       c8s store restore SNAPSHOT FILE [--force] [--bump-revision N]\n"
		"\n"
		"Looks after the file of the embedded store. check and snapshot may be used while a server runs; it does not\n"
		"notice. A store in etcd is looked after with etcd's own tools.\n"
		"\n"
		"  check      reads everything in FILE, says whether it is sound, and shows its revision, counts and sizes\n"
		"  snapshot   writes what FILE holds at this moment to SNAPSHOT, and checks it before it gets its name\n"
		"  restore    makes the store FILE from SNAPSHOT; the server must be stopped\n"
		"\n"
		"      --force             replace a snapshot; or restore over a store, which is kept as FILE.old\n"
		"      --bump-revision N   add N to the revision on restore (default 1000000000), so that clients that saw\n"
		"                          revisions after the snapshot list anew instead of waiting for them; 0: leave it\n"
		"\n"
		"Exit code: 0 success, 1 failure or a damaged file, 2 wrong usage.\n"
		"\n"
		"Examples:\n"
		"  c8s store snapshot /var/lib/c8s/control-plane/state.db /backup/store-monday.db\n"
		"  c8s store restore /backup/store-monday.db /var/lib/c8s/control-plane/state.db --force\n",
	.run = run,
};
