/* Where two trees differ. */
#include "base/buf.h"
#include "codec/val.h"

enum { DIFF_PATH_MAX = 64 * 1024 };

struct diff {
	struct arena *arena;
	struct buf path;
	bool (*visit)(const struct val_change *, void *);
	void *arg;
};

static bool differ(struct diff *d, struct val before, struct val after, unsigned depth);

static bool report(struct diff *d, struct val before, struct val after)
{
	struct val_change c = { .path = arena_str(d->arena, buf_str(&d->path)), .before = before, .after = after };
	return d->visit(&c, d->arg);
}

/* Goes on with one member, whose name stands at the end of the path meanwhile. */
static bool differ_member(struct diff *d, atom key, struct val before, struct val after, unsigned depth)
{
	size_t n = d->path.n;
	str name = atom_str(key);
	/* Names that are not plain are written as map keys: metadata.labels[a.b/c]. */
	if (str_chr(name, '.') >= 0 || str_chr(name, '/') >= 0)
		buf_addf(&d->path, "[" STR_FMT "]", STR_ARG(name));
	else
		buf_addf(&d->path, "%s" STR_FMT, n ? "." : "", STR_ARG(name));
	bool more = differ(d, before, after, depth + 1);
	d->path.n = n;
	return more;
}

/* Both sides in the order of keys, member by member. */
static bool differ_objects(struct diff *d, struct val before, struct val after, unsigned depth)
{
	const struct val x = val_sorted(d->arena, before), y = val_sorted(d->arena, after);
	bool more = true;

	for (uint32_t i = 0, j = 0; more && (i < x.n || j < y.n);) {
		int order = i == x.n ? 1 : j == y.n ? -1 : str_cmp(atom_str(x.members[i].key), atom_str(y.members[j].key));
		struct val old = order <= 0 ? x.members[i].val : VAL_EMPTY, now = order >= 0 ? y.members[j].val : VAL_EMPTY;
		more = differ_member(d, order <= 0 ? x.members[i].key : y.members[j].key, old, now, depth);
		i += order <= 0;
		j += order >= 0;
	}
	return more;
}

static bool differ_lists(struct diff *d, struct val before, struct val after, unsigned depth)
{
	for (uint32_t i = 0; i < MAX(before.n, after.n); i++) {
		size_t n = d->path.n;
		buf_addf(&d->path, "[%u]", i);
		bool more = differ(d, val_at(before, i), val_at(after, i), depth + 1);
		d->path.n = n;
		if (!more)
			return false;
	}
	return true;
}

/* Below VAL_RECURSION_MAX a whole subtree counts as one place. */
static bool differ(struct diff *d, struct val before, struct val after, unsigned depth)
{
	if (depth < VAL_RECURSION_MAX && before.type == VAL_OBJECT && after.type == VAL_OBJECT)
		return differ_objects(d, before, after, depth);
	if (depth < VAL_RECURSION_MAX && before.type == VAL_LIST && after.type == VAL_LIST)
		return differ_lists(d, before, after, depth);
	return val_equal(before, after) || report(d, before, after);
}

void val_diff(struct arena *a, struct val before, struct val after, bool (*visit)(const struct val_change *, void *), void *arg)
{
	struct diff d = { .arena = a, .path = BUF_INIT(DIFF_PATH_MAX), .visit = visit, .arg = arg };
	(void)differ(&d, before, after, 0);
	buf_done(&d.path);
}
