/* One table made of three. */
#include "cmd/control_plane.h"

#define AT(member) offsetof(struct control_plane, member)

struct source {
	const struct flag *table;
	size_t offset;               /* of its struct in ours */
	const char *prefix;          /* of the flags of its port */
	const char *title;           /* before those of its groups */
	size_t port, port_end;       /* where the port's members are */
};

static const struct flag own_flags[] = {
	FLAG_GROUP("Process"),
	{ "listen-fd", FLAG_INT, FLAG_WORKS, offsetof(struct control_plane_own, listen_fd), "0",
	  "number of a descriptor that listens on --secure-port already, for those who start us; 0: there is none" },
	{ "run-as", FLAG_INT, FLAG_WORKS, offsetof(struct control_plane_own, run_as), "0", "number of the user to become, without any privilege; started as root only" },
	{ NULL, FLAG_HEADING, FLAG_WORKS, 0, NULL, NULL },
};

static const struct source sources[] = {
	{ own_flags, AT(own), NULL, NULL, 0, 0 },
	{ kube_apiserver_flags, AT(api.flags), NULL, NULL, 0, 0 },
	{ controller_manager_flags, AT(manager.flags), "controller-manager-", "Controllers: ", AT(manager.flags.server),
	  AT(manager.flags.server) + sizeof(struct component_server_flags) },
	{ kube_scheduler_flags, AT(scheduler.flags), "scheduler-", "Scheduler: ", AT(scheduler.flags.server),
	  AT(scheduler.flags.server) + sizeof(struct component_server_flags) },
};

/* What a loop in the API server's process has no use for: it needs no way to it, and is somebody without a credential. */
static bool has_no_use(const char *name)
{
	static const char *const names[] = { "kube-api-burst", "kube-api-content-type", "kube-api-qps", "kubeconfig", "leader-elect-resource-name",
					     "master", "use-service-account-credentials", "write-config-to" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

struct table {
	struct arena *arena;
	struct flag *rows;
	size_t n;
	const char *title;           /* of the group at hand, until it has a row */
};

static bool has(const struct table *t, const char *name)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->rows[i].name && strcmp(t->rows[i].name, name) == 0)
			return true;
	return false;
}

static void add(struct table *t, struct flag row)
{
	if (t->title && !has(t, row.name))
		t->rows[t->n++] = (struct flag)FLAG_GROUP(t->title);
	if (t->title && t->rows[t->n - 1].help == t->title && !t->rows[t->n - 1].name)
		t->title = NULL;
	t->rows[t->n++] = row;
}

static void add_row(struct table *t, const struct source *s, struct flag row)
{
	row.offset += row.effect == FLAG_WORKS ? s->offset : 0;
	if (row.effect == FLAG_WORKS && row.offset >= s->port && row.offset < s->port_end) {
		if (strcmp(row.name, "secure-port") == 0)
			row.initial = "0";
		row.name = arena_printf(t->arena, "%s%s", s->prefix, row.name).p;
	} else if (s->prefix && (has_no_use(row.name) || (row.effect != FLAG_WORKS && has(t, row.name)))) {
		return;
	}
	add(t, row);
}

const struct flag *control_plane_flags(struct arena *a)
{
	struct table t = { .arena = a };
	size_t n = 1;

	for (size_t i = 0; i < ARRAY_LEN(sources); i++)
		for (const struct flag *f = sources[i].table; f->name || f->help; f++)
			n++;
	t.rows = ARENA_ARRAY(a, struct flag, n);
	for (size_t i = 0; i < ARRAY_LEN(sources); i++)
		for (const struct flag *f = sources[i].table; f->name || f->help; f++)
			if (f->name)
				add_row(&t, &sources[i], *f);
			else
				t.title = sources[i].title ? arena_printf(a, "%s%s", sources[i].title, f->help).p : f->help;
	t.rows[t.n] = (struct flag){ .name = NULL };
	return t.rows;
}

int control_plane_parse(struct control_plane *p, int argc, char **argv, struct buf *later)
{
	struct arena *a = p->api.arena;
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(sources); i++)
		r = flags_parse(&cmd_control_plane, 1, argv, sources[i].table, (char *)p + sources[i].offset, a, later);
	return r == 0 ? flags_parse(&cmd_control_plane, argc, argv, control_plane_flags(a), p, a, later) : r;
}
