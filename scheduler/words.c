/*
 * The texts of the table, each once. Numbers that are given back are used again, so that names and labels of pods that come and go by the
 * million take no more room than those that are there.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "scheduler/nodes_priv.h"

struct word_text {
	uint32_t refs, n;
	word number;
	char text[];
};

static str text_of(const struct word_text *w) { return str_span(w->text, w->n); }

static word number_take(struct nodes *t)
{
	if (t->n_free_texts)
		return t->free_texts[--t->n_free_texts];
	if (t->n_texts == t->cap_texts) {
		t->cap_texts = t->cap_texts ? t->cap_texts * 2 : 256;
		t->texts = mem_resize(t->texts, t->cap_texts * sizeof(*t->texts));
		t->free_texts = mem_resize(t->free_texts, t->cap_texts * sizeof(*t->free_texts));
	}
	return t->n_texts++;
}

void words_init(struct nodes *t)
{
	word none = number_take(t); /* 0 */

	t->texts[none] = NULL;
	map_init(&t->words);
}

void words_done(struct nodes *t)
{
	for (uint32_t i = 0; i < t->n_texts; i++)
		free(t->texts[i]);
	free(t->texts);
	free(t->free_texts);
	map_done(&t->words);
}

word word_make(struct nodes *t, str text)
{
	struct word_text *w = map_get(&t->words, text);

	if (!w) {
		w = mem_alloc(sizeof(*w) + text.n + 1);
		*w = (struct word_text){ .n = (uint32_t)text.n, .number = number_take(t) };
		if (text.n)
			memcpy(w->text, text.p, text.n);
		w->text[text.n] = '\0';
		t->texts[w->number] = w;
		map_put(&t->words, text_of(w), w);
	}
	w->refs++;
	return w->number;
}

word word_find(const struct nodes *t, str text)
{
	const struct word_text *w = map_get(&t->words, text);
	return w ? w->number : 0;
}

str word_str(const struct nodes *t, word w) { return w ? text_of(t->texts[w]) : STR(""); }

void word_drop(struct nodes *t, word number)
{
	struct word_text *w = t->texts[number];

	if (!w || --w->refs)
		return;
	map_remove(&t->words, text_of(w));
	t->texts[number] = NULL;
	t->free_texts[t->n_free_texts++] = number;
	free(w);
}
