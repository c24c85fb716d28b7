/*
 * CSV as Go's encoding/csv reads it: fields in quotes may hold commas, line ends and doubled quotes; empty lines are
 * skipped; \r\n is a line end. Tokens are kept as SHA-256 sums, in a hash map by those: comparing sums tells an observer
 * nothing about the tokens.
 */
#include "apiserver/authn/token_file.h"

#include "apiserver/authn/authn_priv.h"
#include "base/encoding.h"
#include "base/file.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"

enum { FILE_MAX = 16 << 20, FIELDS_MAX = 64 };

struct token {
	char sum[SHA256_BYTES];
	struct user user;
};

struct tokens {
	struct arena arena;
	struct map by_sum;
};

/* ---- CSV ---- */

struct csv {
	str rest;
	unsigned line, record_line;   /* of what comes next; where the record began */
	struct buf *field;
	struct arena *arena;
};

/* Go names columns from 1, in bytes. */
static int csv_error(const struct csv *c, const char *line_start, const char *at, const char *what, struct err *err)
{
	unsigned column = (unsigned)(at - line_start) + 1;

	if (c->record_line != c->line)
		return err_set(err, ERR_BAD_REQUEST, "record on line %u; parse error on line %u, column %u: %s",
			       c->record_line, c->line, column, what);
	return err_set(err, ERR_BAD_REQUEST, "parse error on line %u, column %u: %s", c->line, column, what);
}

static bool at_line_end(str s)
{
	return s.n == 0 || s.p[0] == '\n' || (s.p[0] == '\r' && (s.n == 1 || s.p[1] == '\n'));
}

static void skip_line_end(struct csv *c)
{
	if (c->rest.n && c->rest.p[0] == '\r')
		c->rest = str_skip(c->rest, 1);
	if (c->rest.n)
		c->rest = str_skip(c->rest, 1);
	c->line++;
}

static int quoted_field(struct csv *c, const char **line_start, struct err *err)
{
	c->rest = str_skip(c->rest, 1);
	for (;;) {
		if (!c->rest.n)
			return csv_error(c, *line_start, c->rest.p, "extraneous or missing \" in quoted-field", err);
		if (at_line_end(c->rest)) {
			skip_line_end(c);
			*line_start = c->rest.p;
			buf_addc(c->field, '\n');
			continue;
		}
		char ch = c->rest.p[0];
		c->rest = str_skip(c->rest, 1);
		if (ch != '"') {
			buf_addc(c->field, ch);
		} else if (c->rest.n && c->rest.p[0] == '"') {
			buf_addc(c->field, '"');
			c->rest = str_skip(c->rest, 1);
		} else if (at_line_end(c->rest) || c->rest.p[0] == ',') {
			return 0;
		} else {
			return csv_error(c, *line_start, c->rest.p - 1, "extraneous or missing \" in quoted-field", err);
		}
	}
}

static int plain_field(struct csv *c, const char *line_start, struct err *err)
{
	size_t n = 0;

	while (n < c->rest.n && c->rest.p[n] != ',' && !at_line_end(str_skip(c->rest, n))) {
		if (c->rest.p[n] == '"')
			return csv_error(c, line_start, c->rest.p + n, "bare \" in non-quoted-field", err);
		n++;
	}
	buf_add(c->field, str_head(c->rest, n));
	c->rest = str_skip(c->rest, n);
	return 0;
}

/* Reads a record and returns the number of its fields, of which the first FIELDS_MAX are stored; 0 at the end. */
static int csv_next(struct csv *c, str *fields, struct err *err)
{
	const char *line_start;
	int n = 0, r;

	while (c->rest.n && at_line_end(c->rest))
		skip_line_end(c);
	if (!c->rest.n)
		return 0;
	c->record_line = c->line;
	line_start = c->rest.p;
	for (;;) {
		buf_reset(c->field);
		if (c->rest.n && c->rest.p[0] == '"')
			r = quoted_field(c, &line_start, err);
		else
			r = plain_field(c, line_start, err);
		if (r < 0)
			return r;
		if (n < FIELDS_MAX)
			fields[n] = arena_str(c->arena, buf_str(c->field));
		n++;
		if (at_line_end(c->rest)) {
			skip_line_end(c);
			return n;
		}
		c->rest = str_skip(c->rest, 1);
	}
}

/* ---- tokens ---- */

static const str *split_groups(struct arena *a, str text, size_t *ret_n)
{
	size_t n = 1;

	for (size_t i = 0; i < text.n; i++)
		n += text.p[i] == ',';
	str *groups = ARENA_ARRAY(a, str, n);
	for (size_t i = 0; i < n; i++)
		str_cut(text, ',', &groups[i], &text);
	*ret_n = n;
	return groups;
}

static void add(struct tokens *t, const char *path, const str *fields, int n, int record)
{
	struct token *token = ARENA_NEW(&t->arena, struct token);

	if (!fields[0].n) {
		log_warn("an empty token in the token file is ignored", KV("file", path), KV("record", record));
		return;
	}
	sha256(fields[0], (uint8_t *)token->sum);
	token->user.name = fields[1];
	token->user.uid = fields[2];
	if (n > 3)
		token->user.groups = split_groups(&t->arena, fields[3], &token->user.n_groups);
	if (map_put(&t->by_sum, str_span(token->sum, sizeof(token->sum)), token))
		log_warn("a token occurs twice in the token file; the last one counts", KV("file", path), KV("record", record));
}

static int load(struct tokens *t, const char *path, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(FILE_MAX), field = BUF_INIT(FILE_MAX);
	struct csv c = { .line = 1, .field = &field, .arena = &t->arena };
	str fields[FIELDS_MAX];
	int n, r = file_read(path, &text, err);

	if (r < 0)
		return r;
	c.rest = buf_str(&text);
	for (int record = 1; (n = csv_next(&c, fields, err)) != 0; record++) {
		if (n < 0)
			return err_wrap(err, n, "token file '%s'", path);
		if (n < 3)
			return err_set(err, ERR_BAD_REQUEST,
				       "token file '%s' must have at least 3 columns (token, user name, user uid), found %d", path, n);
		add(t, path, fields, n, record);
	}
	return 0;
}

int authn_token_load(const char *path, struct tokens **ret, struct err *err)
{
	struct tokens *t = mem_zalloc(sizeof(*t));

	arena_init(&t->arena);
	map_init(&t->by_sum);
	int r = load(t, path, err);
	if (r < 0)
		authn_token_free(t);
	else
		*ret = t;
	return r;
}

void authn_token_free(struct tokens *t)
{
	if (!t)
		return;
	map_done(&t->by_sum);
	arena_done(&t->arena);
	free(t);
}

bool authn_token_find(const struct tokens *t, str token, struct user *ret)
{
	uint8_t sum[SHA256_BYTES];

	if (!t || !token.n)
		return false;
	sha256(token, sum);
	const struct token *found = map_get(&t->by_sum, str_span((const char *)sum, sizeof(sum)));
	if (!found)
		return false;
	*ret = found->user;
	return true;
}

/* ---- as one of the ways ---- */

static int way_token(void *self, struct arena *a, str token, const str *audiences, size_t n_audiences,
		     struct authn_identity *ret, struct err *err)
{
	(void)a, (void)audiences, (void)n_audiences, (void)err;
	return authn_token_find(self, token, &ret->user);
}

static void way_free(void *self) { authn_token_free(self); }

int authn_token_file_way(struct apiserver *s, struct authn_way *ret, struct err *err)
{
	struct tokens *tokens = NULL;
	const char *file = s->options.authn.token_auth_file;
	int r = file ? authn_token_load(file, &tokens, err) : 0;
	*ret = (struct authn_way){ .name = "token file", .self = tokens, .token = way_token, .free = way_free };
	return r;
}
