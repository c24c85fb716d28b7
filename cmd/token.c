/* c8s token: bootstrap tokens, with which machines join. They are Secrets of kube-system, as kubeadm makes them; controllers remove expired ones. */
#include <stdio.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/random.h"
#include "client/client.h"
#include "cmd/serve.h"
#include "cmd/up.h"
#include "codec/atoms.h"
#include "codec/time.h"
#include "codec/types.h"
#include "controllers/secret_data.h"

enum { ID_LETTERS = 6, SECRET_LETTERS = 16, PEM_MAX = 1 << 16 };

#define NAME_PREFIX "bootstrap-token-"

struct token {
	const char *data_dir, *description;
	int64_t ttl_ns;
	const char *action, *name;     /* name: of the one to delete: abcdef, or all of abcdef.0123456789abcdef */
	struct up_cluster cluster;
};

#define AT(member) FLAG_WORKS, offsetof(struct token, member)

static const struct flag flags[] = {
	FLAG_GROUP("Cluster"),
	{ "data-dir", FLAG_STRING, AT(data_dir), "/var/lib/c8s", "which one" },
	FLAG_GROUP("Of create"),
	{ "description", FLAG_STRING, AT(description), NULL, "who it is for" },
	{ "ttl", FLAG_DURATION, AT(ttl_ns), "24h0m0s", "how long it can be used; 0: for ever" },
	{ NULL, FLAG_HEADING, FLAG_WORKS, 0, NULL, NULL },
};

/* ---- making ---- */

static str random_letters(struct arena *a, size_t n)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	char *out = ARENA_ARRAY(a, char, n + 1);

	for (size_t i = 0; i < n; i++)
		out[i] = letters[random_below(sizeof(letters) - 1)];
	out[n] = '\0';
	return (str){ out, n };
}

static int authority_hash(const struct up_cluster *c, str *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf pem = BUF_INIT(PEM_MAX);
	int r = file_read(c->node_ca, &pem, err);

	return r < 0 ? r : up_authority_hash(c->arena, buf_str(&pem), ret, err);
}

/* An address that only this machine has is of no use to others. */
static bool is_local(const char *url)
{
	str host = str_skip(str_of(url), STR("https://").n);

	return str_starts(host, STR("127.")) || str_starts(host, STR("[::1]"));
}

static int create(struct token *t, struct client *client, struct err *err)
{
	struct arena *a = t->cluster.arena;
	str id = random_letters(a, ID_LETTERS), secret = random_letters(a, SECRET_LETTERS), hash;
	struct val_builder data = val_builder(a);
	char expires[TIME_TEXT_MAX];
	int r = authority_hash(&t->cluster, &hash, err);

#define ADD(key, text) val_add_member(&data, atom_make(a, STR(key)), val_of_str(text))
	ADD("auth-extra-groups", STR(UP_TOKEN_GROUP));
	if (t->description)
		ADD("description", str_of(t->description));
	if (t->ttl_ns)
		ADD("expiration", arena_str(a, time_format((struct timestamp){ (clock_wall_ns() + t->ttl_ns) / NS_PER_S, 0 }, expires)));
	ADD("token-id", id);
	ADD("token-secret", secret);
	ADD("usage-bootstrap-authentication", STR("true"));
	ADD("usage-bootstrap-signing", STR("true"));
#undef ADD
	struct val meta = OBJECT(a, F(name, val_of_str(arena_printf(a, NAME_PREFIX STR_FMT, STR_ARG(id)))), F(namespace, VAL_LIT("kube-system")));
	struct val object = OBJECT(a, F(metadata, meta), F(type, VAL_LIT("bootstrap.kubernetes.io/token")), F(stringData, val_end_object(&data)));
	if (r < 0 || (r = client_create(client, TYPE(core_v1, Secret), object, NULL, NULL, err)) < 0)
		return r;
	printf("c8s join %s --token " STR_FMT "." STR_FMT " --ca-hash " STR_FMT "\n", t->cluster.public_url, STR_ARG(id), STR_ARG(secret), STR_ARG(hash));
	if (is_local(t->cluster.public_url))
		fprintf(stderr, "c8s token: only this machine can join by it: 'c8s up --advertise-address ADDRESS' makes others reach the cluster\n");
	return 0;
}

/* ---- the others ---- */

static int list(struct token *t, struct client *client, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *secrets = NULL;
	struct arena *a = t->cluster.arena;
	struct client_list_options o = { .namespace = STR("kube-system"), .fields = STR("type=bootstrap.kubernetes.io/token") };
	int r = client_list(client, TYPE(core_v1, Secret), &o, &secrets, err);

	if (r < 0)
		return r;
	printf("%-25s %-22s %s\n", "TOKEN", "EXPIRES", "DESCRIPTION");
	VAL_EACH(secret, val_get(secrets->val, items)) {
		str expires = secret_data(a, *secret, STR("expiration"));
		str token = arena_printf(a, STR_FMT "." STR_FMT, STR_ARG(secret_data(a, *secret, STR("token-id"))), STR_ARG(secret_data(a, *secret, STR("token-secret"))));
		printf("%-25s %-22s " STR_FMT "\n", token.p, expires.n ? arena_str(a, expires).p : "<never>", STR_ARG(secret_data(a, *secret, STR("description"))));
	}
	return 0;
}

static int delete_one(struct token *t, struct client *client, struct err *err)
{
	str name = arena_printf(t->cluster.arena, NAME_PREFIX "%.*s", ID_LETTERS, t->name);
	int r = client_delete(client, TYPE(core_v1, Secret), STR("kube-system"), name, NULL, err);

	if (r == -ERR_NOT_FOUND)
		return err_set(err, ERR_NOT_FOUND, "there is no token %.*s; 'c8s token list' shows those that there are", ID_LETTERS, t->name);
	return r;
}

static int act(void *arg, struct err *err)
{
	CLEANUP(client_freep) struct client *client = NULL;
	struct token *t = arg;
	int r = up_connect(&t->cluster, &client, err);

	if (r < 0)
		return r;
	return t->action[0] == 'c' ? create(t, client, err) : t->action[0] == 'l' ? list(t, client, err) : delete_one(t, client, err);
}

static int run_command(int argc, char **argv)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf later = BUF_INIT(64);
	struct token t = { .action = argc > 1 ? argv[1] : "" };
	struct err err = ERR_INIT;
	bool delete = strcmp(t.action, "delete") == 0;
	int taken = delete ? 2 : 1, r;

	if (!delete && strcmp(t.action, "create") != 0 && strcmp(t.action, "list") != 0)
		return cmd_usage(&cmd_token, "what is to be done is missing: create, list or delete");
	if (delete && argc < 3)
		return cmd_usage(&cmd_token, "which token is to be deleted is missing: its first %d letters", ID_LETTERS);
	t.name = delete ? argv[2] : NULL;
	if ((r = flags_parse(&cmd_token, argc - taken, argv + taken, flags, &t, &a, &later)) != 0)
		return r;
	if (up_load(&cmd_token, &a, t.data_dir, &t.cluster, &err) < 0 || cmd_serve("token", act, &t, &err) < 0)
		return cmd_fail(&cmd_token, &err);
	return 0;
}

static void help(void) { flags_help(flags); }

const struct command cmd_token = {
	.name = "token",
	.summary = "tokens with which machines join a cluster",
	.manual =
		"Usage: c8s token create [--ttl 24h] [--description TEXT] [--data-dir DIR]\n"
		"       c8s token list   [--data-dir DIR]\n"
		"       c8s token delete TOKEN [--data-dir DIR]\n"
		"\n"
		"'create' prints the command that another machine joins with. A token is good for any number of machines until it\n"
		"expires or is deleted; nodes that have joined do not need it any more.\n"
		"\n"
		"Exit code: 0 success, 1 failure, 2 wrong usage.\n",
	.help = help,
	.run = run_command,
};
