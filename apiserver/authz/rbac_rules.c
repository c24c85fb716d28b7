/*
 * Rules and questions meet in words: a word is the one copy of a text that rules use, counted, so that what nobody's
 * rules mention any more takes no room. A question that has a word which no rule has can only be allowed by a star.
 */
#include "apiserver/authz/rbac_rules.h"

#include <stdlib.h>

#include "base/mem.h"
#include "codec/atoms.h"

struct rbac_word {
	str text;
	size_t uses;
	char bytes[];
};

/* Stands for the subresource of a resource without a slash; also of "" there may be a word, as in "pods/". */
static const struct rbac_word no_subresource;

void rbac_words_done(struct rbac_words *w) { map_done(&w->all); }

const struct rbac_word *rbac_word_find(const struct rbac_words *w, str text) { return map_get(&w->all, text); }

const struct rbac_word *rbac_word_take(struct rbac_words *w, str text)
{
	struct rbac_word *word = map_get(&w->all, text);
	if (!word) {
		word = mem_alloc(sizeof *word + text.n + 1);
		memcpy(word->bytes, text.n ? text.p : "", text.n);
		word->bytes[text.n] = '\0';
		word->text = str_span(word->bytes, text.n);
		word->uses = 0;
		map_put(&w->all, word->text, word);
	}
	word->uses++;
	return word;
}

void rbac_word_drop(struct rbac_words *w, const struct rbac_word *word)
{
	if (!word || word == &no_subresource)
		return;
	struct rbac_word *own = map_get(&w->all, word->text);
	if (--own->uses)
		return;
	map_remove(&w->all, own->text);
	free(own);
}

/* ---- verbs ---- */

static uint32_t verb_bit(str verb)
{
	static const str usual[] = {
		STR_INIT("get"), STR_INIT("list"), STR_INIT("watch"), STR_INIT("create"), STR_INIT("update"), STR_INIT("patch"),
		STR_INIT("delete"), STR_INIT("deletecollection"), STR_INIT("post"), STR_INIT("put"), STR_INIT("head"),
		STR_INIT("impersonate"), STR_INIT("bind"), STR_INIT("escalate"), STR_INIT("use"), STR_INIT("approve"),
		STR_INIT("sign"),
	};
	for (size_t i = 0; i < ARRAY_LEN(usual); i++)
		if (str_eq(verb, usual[i]))
			return 1u << i;
	return 0;
}

/* ---- compiling ---- */

static const str star = STR_INIT("*");

static struct rbac_target target_take(struct rbac_words *w, str text)
{
	str resource, subresource;
	if (!str_cut(text, '/', &resource, &subresource))
		return (struct rbac_target){ rbac_word_take(w, text), &no_subresource };
	return (struct rbac_target){ str_eq(resource, star) ? NULL : rbac_word_take(w, resource), rbac_word_take(w, subresource) };
}

/* Uses up what it needs of the room for words. */
static void compile(struct rbac_words *w, const struct val *rule, struct rbac_rule *ret, const struct rbac_word ***room)
{
	struct val verbs = val_get(*rule, verbs), groups = val_get(*rule, apiGroups), resources = val_get(*rule, resources);
	*ret = (struct rbac_rule){ .source = rule, .has_names = val_len(val_get(*rule, resourceNames)) > 0 };
	ret->others = *room;
	VAL_EACH(v, verbs) {
		uint32_t bit = verb_bit(val_as_str(*v));
		ret->verbs |= bit;
		if (str_eq(val_as_str(*v), star))
			ret->all_verbs = true;
		else if (!bit)
			ret->others[ret->n_others++] = rbac_word_take(w, val_as_str(*v));
	}
	ret->groups = ret->others + ret->n_others;
	VAL_EACH(g, groups) {
		if (str_eq(val_as_str(*g), star))
			ret->all_groups = true;
		else
			ret->groups[ret->n_groups++] = rbac_word_take(w, val_as_str(*g));
	}
	ret->targets = (struct rbac_target *)(void *)(ret->groups + ret->n_groups);
	VAL_EACH(r, resources) {
		if (str_eq(val_as_str(*r), star))
			ret->all_resources = true;
		else
			ret->targets[ret->n_targets++] = target_take(w, val_as_str(*r));
	}
	*room = ret->groups + ret->n_groups + 2 * ret->n_targets;
}

struct rbac_rule *rbac_rules_compile(struct rbac_words *w, struct val rules, size_t *ret_n)
{
	size_t n = *ret_n = val_is(rules, VAL_LIST) ? val_len(rules) : 0, words = 0;
	if (!n)
		return NULL;
	VAL_EACH(r, rules)
		words += val_len(val_get(*r, verbs)) + val_len(val_get(*r, apiGroups)) + 2 * val_len(val_get(*r, resources));
	struct rbac_rule *all = mem_alloc(n * sizeof *all + words * sizeof(struct rbac_word *));
	const struct rbac_word **room = (const struct rbac_word **)(void *)(all + n);
	for (size_t i = 0; i < n; i++)
		compile(w, &rules.items[i], &all[i], &room);
	return all;
}

void rbac_rules_free(struct rbac_words *w, struct rbac_rule *rules, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct rbac_rule *r = &rules[i];
		for (uint32_t k = 0; k < r->n_others; k++)
			rbac_word_drop(w, r->others[k]);
		for (uint32_t k = 0; k < r->n_groups; k++)
			rbac_word_drop(w, r->groups[k]);
		for (uint32_t k = 0; k < r->n_targets; k++) {
			rbac_word_drop(w, r->targets[k].resource);
			rbac_word_drop(w, r->targets[k].subresource);
		}
	}
	free(rules);
}

/* ---- asking ---- */

/*
 * What "resource/subresource" names. A resource with a slash in it, which only reviews can ask for, ends at the slash,
 * so that the question is cut where rules are.
 */
static struct rbac_target target_find(const struct rbac_words *w, struct arena *a, str resource, str subresource)
{
	str head, tail;
	bool slash = str_cut(resource, '/', &head, &tail);
	if (slash && subresource.n)
		tail = arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(tail), STR_ARG(subresource));
	else if (subresource.n)
		tail = subresource;
	else if (!slash)
		return (struct rbac_target){ rbac_word_find(w, head), &no_subresource };
	return (struct rbac_target){ rbac_word_find(w, head), rbac_word_find(w, tail) };
}

struct rbac_question rbac_question(const struct rbac_words *w, struct arena *a, const struct authz_attributes *what)
{
	struct rbac_question q = { .is_resource = what->is_resource, .verb = verb_bit(what->verb) };
	if (!q.verb)
		q.other = rbac_word_find(w, what->verb);
	if (!what->is_resource) {
		q.path = what->path;
		return q;
	}
	q.group = rbac_word_find(w, what->group);
	q.target = target_find(w, a, what->resource, what->subresource);
	if (what->subresource.n)
		q.of_all = str_chr(what->resource, '/') < 0 ? q.target.subresource : rbac_word_find(w, what->subresource);
	q.name = what->name;
	return q;
}

static bool verb_matches(const struct rbac_rule *r, const struct rbac_question *q)
{
	if (r->all_verbs || (r->verbs & q->verb))
		return true;
	for (uint32_t i = 0; q->other && i < r->n_others; i++)
		if (r->others[i] == q->other)
			return true;
	return false;
}

static bool group_matches(const struct rbac_rule *r, const struct rbac_question *q)
{
	if (r->all_groups)
		return true;
	for (uint32_t i = 0; q->group && i < r->n_groups; i++)
		if (r->groups[i] == q->group)
			return true;
	return false;
}

static bool resource_matches(const struct rbac_rule *r, const struct rbac_question *q)
{
	if (r->all_resources)
		return true;
	for (uint32_t i = 0; i < r->n_targets; i++) {
		const struct rbac_target *t = &r->targets[i];
		if (!t->resource ? q->of_all && t->subresource == q->of_all :
				   t->resource == q->target.resource && t->subresource == q->target.subresource)
			return true;
	}
	return false;
}

static bool has(struct val list, str s)
{
	VAL_EACH(item, list)
		if (str_eq(val_as_str(*item), s))
			return true;
	return false;
}

/* owner is the path itself, or its beginning with stars behind it. */
static bool url_covers(str owner, str path)
{
	if (str_eq(owner, path))
		return true;
	if (!str_ends(owner, star))
		return false;
	while (str_ends(owner, star))
		owner.n--;
	return str_starts(path, owner);
}

static bool url_matches(struct val urls, str path)
{
	VAL_EACH(url, urls)
		if (url_covers(val_as_str(*url), path))
			return true;
	return false;
}

bool rbac_rule_allows(const struct rbac_rule *r, const struct rbac_question *q)
{
	if (!verb_matches(r, q))
		return false;
	if (!q->is_resource)
		return url_matches(val_get(*r->source, nonResourceURLs), q->path);
	return group_matches(r, q) && resource_matches(r, q) &&
	       (!r->has_names || has(val_get(*r->source, resourceNames), q->name));
}

/* ---- giving ---- */

/* One combination of what a rule allows. */
struct part {
	str verb;
	str group, resource, name;    /* name.p NULL: of any name */
	str url;                      /* p NULL: it is of a resource */
};

static bool resource_covers(struct val owner, str resource)
{
	str head, tail;
	if (has(owner, star) || has(owner, resource))
		return true;
	if (!str_cut(resource, '/', &head, &tail))
		return false;
	VAL_EACH(r, owner)
		if (str_starts(val_as_str(*r), STR("*/")) && str_eq(str_skip(val_as_str(*r), 2), tail))
			return true;
	return false;
}

static bool rule_covers(struct val rule, const struct part *p)
{
	struct val names = val_get(rule, resourceNames), verbs = val_get(rule, verbs);
	if (!has(verbs, star) && !has(verbs, p->verb))
		return false;
	if (val_len(names) && (!p->name.p || !has(names, p->name)))
		return false;
	if (p->url.p)
		return url_matches(val_get(rule, nonResourceURLs), p->url);
	struct val groups = val_get(rule, apiGroups);
	return (has(groups, star) || has(groups, p->group)) && resource_covers(val_get(rule, resources), p->resource);
}

static bool any_covers(const struct val *owned, size_t n, const struct part *p)
{
	for (size_t i = 0; i < n; i++)
		VAL_EACH(rule, owned[i])
			if (rule_covers(*rule, p))
				return true;
	return false;
}

static struct val text_list(struct arena *a, str s) { return LIST(a, val_of_str(s)); }

static struct val part_rule(struct arena *a, const struct part *p)
{
	if (p->url.p)
		return OBJECT(a, F(verbs, text_list(a, p->verb)), F(nonResourceURLs, text_list(a, p->url)));
	return OBJECT(a, F(verbs, text_list(a, p->verb)), F(apiGroups, text_list(a, p->group)),
		      F(resources, text_list(a, p->resource)), F(resourceNames, p->name.p ? text_list(a, p->name) : VAL_EMPTY));
}

struct comparison {
	struct arena *arena;
	const struct val *owned;
	size_t n_owned;
	struct val_builder *missing;
	size_t left;                  /* combinations that may still be looked at */
};

static bool look_at(struct comparison *c, const struct part *p)
{
	if (c->left == 0)
		return false;
	c->left--;
	if (!any_covers(c->owned, c->n_owned, p))
		val_add_item(c->missing, part_rule(c->arena, p));
	return true;
}

static bool look_at_names(struct comparison *c, struct val names, struct part *p)
{
	p->name = STR_NONE;
	if (!val_len(names))
		return look_at(c, p);
	VAL_EACH(name, names) {
		p->name = val_as_str(*name);
		if (!look_at(c, p))
			return false;
	}
	return true;
}

static bool look_at_rule(struct comparison *c, struct val rule)
{
	struct part p = { .url = STR_NONE };
	VAL_EACH(group, val_get(rule, apiGroups))
		VAL_EACH(resource, val_get(rule, resources))
			VAL_EACH(verb, val_get(rule, verbs)) {
				p.group = val_as_str(*group), p.resource = val_as_str(*resource), p.verb = val_as_str(*verb);
				if (!look_at_names(c, val_get(rule, resourceNames), &p))
					return false;
			}
	p.name = STR_NONE;
	VAL_EACH(url, val_get(rule, nonResourceURLs))
		VAL_EACH(verb, val_get(rule, verbs)) {
			p.url = val_as_str(*url), p.verb = val_as_str(*verb);
			if (!look_at(c, &p))
				return false;
		}
	return true;
}

int rbac_rules_missing(struct arena *a, const struct val *owned, size_t n, struct val wanted, struct val_builder *missing,
		       struct err *err)
{
	struct comparison c = { a, owned, n, missing, RBAC_COMBINATIONS_MAX };
	VAL_EACH(rule, wanted)
		if (!look_at_rule(&c, *rule))
			return err_set(err, ERR_TOO_LARGE, "the rules have more than %d combinations", RBAC_COMBINATIONS_MAX);
	return 0;
}

/* ---- as text ---- */

void rbac_add_quoted_list(struct buf *b, struct val list)
{
	bool first = true;
	buf_addc(b, '[');
	VAL_EACH(item, list) {
		if (!first)
			buf_addc(b, ' ');
		first = false;
		buf_add_quoted(b, val_as_str(*item));
	}
	buf_addc(b, ']');
}

/* Broken down rules that differ in their verb only. */
struct line {
	struct val rule;
	struct val_builder verbs;
	str text;
};

static str line_text(struct arena *a, struct val rule, struct val verbs)
{
	const struct {
		const char *name;
		struct val list;
	} rows[] = {
		{ "APIGroups:", val_get(rule, apiGroups) },
		{ "Resources:", val_get(rule, resources) },
		{ "NonResourceURLs:", val_get(rule, nonResourceURLs) },
		{ "ResourceNames:", val_get(rule, resourceNames) },
		{ "Verbs:", verbs },
	};
	CLEANUP(buf_done) struct buf b = BUF_INIT(16 << 20);
	buf_addc(&b, '{');
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (!val_len(rows[i].list))
			continue;
		buf_addf(&b, "%s%s", b.n > 1 ? ", " : "", rows[i].name);
		rbac_add_quoted_list(&b, rows[i].list);
	}
	buf_addc(&b, '}');
	return arena_str(a, buf_str(&b));
}

static int line_cmp(const void *x, const void *y)
{
	return str_cmp(((const struct line *)x)->text, ((const struct line *)y)->text);
}

/* What a broken down rule is about, apart from its verb; URLs are never put together. */
static str key_of(struct arena *a, struct val rule)
{
	struct val names = val_get(rule, resourceNames);
	str group = val_as_str(val_at(val_get(rule, apiGroups), 0)), resource = val_as_str(val_at(val_get(rule, resources), 0));
	return arena_printf(a, STR_FMT "\n" STR_FMT "\n%d" STR_FMT, STR_ARG(group), STR_ARG(resource), val_len(names) > 0,
			    STR_ARG(val_as_str(val_at(names, 0))));
}

static size_t put_together(struct arena *a, struct val missing, struct line *lines)
{
	struct map by_key = MAP_INIT;
	size_t n = 0;
	VAL_EACH(rule, missing) {
		str key = val_has(*rule, nonResourceURLs) ? STR_NONE : key_of(a, *rule);
		struct line *line = key.n ? map_get(&by_key, key) : NULL;
		if (!line) {
			line = &lines[n++];
			*line = (struct line){ .rule = *rule, .verbs = val_builder(a) };
			if (key.n)
				map_put(&by_key, key, line);
		}
		val_add_item(&line->verbs, val_at(val_get(*rule, verbs), 0));
	}
	map_done(&by_key);
	return n;
}

str rbac_rules_text(struct arena *a, struct val missing)
{
	struct line *lines = ARENA_ARRAY(a, struct line, val_len(missing));
	size_t n = put_together(a, missing, lines);
	for (size_t i = 0; i < n; i++)
		lines[i].text = line_text(a, lines[i].rule, val_end_list(&lines[i].verbs));
	if (n)
		qsort(lines, n, sizeof *lines, line_cmp);
	CLEANUP(buf_done) struct buf b = BUF_INIT(64 << 20);
	for (size_t i = 0; i < n; i++) {
		if (i && str_eq(lines[i].text, lines[i - 1].text))
			continue;
		buf_addf(&b, "%s", b.n ? "\n" : "");
		buf_add(&b, lines[i].text);
	}
	return arena_str(a, buf_str(&b));
}
