/*
 * Decoding and encoding one Pod of about 4 KiB, beside the two usual JSON libraries of C. Each figure is the best of
 * many short rounds that take turns, so that other work on the machine disturbs all of them alike.
 *
 * bench-codec pod.json
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench/codec_peer.h"
#include "codec/codec.h"

enum { ROUNDS = 400, TIMES = 50, FILE_MAX = 1 << 20 };

struct work {
	str text;
	struct arena arena;
	struct buf out;
	struct val tree;
	const struct type *type;
};

static double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void die(const char *what, const struct err *err)
{
	fprintf(stderr, "bench-codec: %s: %s\n", what, err ? err->msg : "failed");
	exit(1);
}

static void our_decode(struct work *w)
{
	struct err err = ERR_INIT;
	arena_reset(&w->arena);
	if (json_decode_object(&w->arena, w->text, NULL, &w->tree, &w->type, &err) < 0)
		die("decode", &err);
}

static void our_encode(struct work *w)
{
	struct err err = ERR_INIT;
	struct json_encode_options opt = { .type = w->type };
	buf_reset(&w->out);
	if (json_encode(&w->out, w->tree, &opt, &err) < 0)
		die("encode", &err);
}

struct figures {
	double decode_us, encode_us;
	size_t bytes;
};

static void better(double *best, double us) { *best = *best == 0 || us < *best ? us : *best; }

static void round_ours(struct work *w, struct figures *f)
{
	double t = now_us();
	for (int i = 0; i < TIMES; i++)
		our_decode(w);
	better(&f->decode_us, (now_us() - t) / TIMES);
	t = now_us();
	for (int i = 0; i < TIMES; i++)
		our_encode(w);
	better(&f->encode_us, (now_us() - t) / TIMES);
}

static void round_peer(const struct codec_peer *p, str text, struct figures *f)
{
	double t = now_us();
	for (int i = 0; i < TIMES; i++) {
		void *tree = p->decode(text);
		if (!tree)
			die(p->name, NULL);
		p->release(tree);
	}
	better(&f->decode_us, (now_us() - t) / TIMES);
	void *tree = p->decode(text);
	t = now_us();
	for (int i = 0; i < TIMES; i++)
		(void)p->encode(tree);
	better(&f->encode_us, (now_us() - t) / TIMES);
	p->release(tree);
}

/* What a decoded tree holds on the heap. */
static size_t peer_bytes(const struct codec_peer *p, str text)
{
	size_t before = mallinfo2().uordblks;
	void *tree = p->decode(text);
	size_t after = mallinfo2().uordblks;
	p->release(tree);
	return after - before;
}

static void report(const char *name, const struct figures *f, double decode_best, double encode_best)
{
	printf("%-8s decode %7.2f us (%5.2fx)   encode %7.2f us (%5.2fx)   %6zu bytes in memory\n", name, f->decode_us,
	       decode_best / f->decode_us, f->encode_us, encode_best / f->encode_us, f->bytes);
}

static str read_file(const char *path)
{
	static char text[FILE_MAX];
	FILE *f = fopen(path, "rb");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

	if (f)
		fclose(f);
	if (!n)
		die(path, NULL);
	return str_span(text, n);
}

int main(int argc, char **argv)
{
	static const struct codec_peer *const peers[] = {
#ifdef HAVE_JANSSON
		&codec_peer_jansson,
#endif
#ifdef HAVE_JSONC
		&codec_peer_jsonc,
#endif
		NULL,
	};
	struct figures ours = { 0 }, theirs[ARRAY_LEN(peers)] = { 0 };
	struct work w = { .out = BUF_INIT(FILE_MAX) };
	size_t n_peers = ARRAY_LEN(peers) - 1;

	w.text = read_file(argc > 1 ? argv[1] : "bench/pod.json");
	for (int i = 0; i < ROUNDS; i++) {
		round_ours(&w, &ours);
		for (size_t k = 0; k < n_peers; k++)
			round_peer(peers[k], w.text, &theirs[k]);
	}
	struct frozen *frozen = val_freeze(w.tree);
	ours.bytes = frozen->size;
	/* Ratios are to the faster peer; without peers, to ourselves. */
	double decode_best = n_peers ? 0 : ours.decode_us, encode_best = n_peers ? 0 : ours.encode_us;
	for (size_t k = 0; k < n_peers; k++) {
		theirs[k].bytes = peer_bytes(peers[k], w.text);
		better(&decode_best, theirs[k].decode_us);
		better(&encode_best, theirs[k].encode_us);
	}
	printf("%zu bytes of JSON, %zu written; ratios to the faster peer%s\n", w.text.n, w.out.n,
	       n_peers < 2 ? "; jansson or json-c is not installed" : "");
	report("c8s", &ours, decode_best, encode_best);
	for (size_t k = 0; k < n_peers; k++)
		report(peers[k]->name, &theirs[k], decode_best, encode_best);
	printf("c8s      %zu bytes of arena while decoding, %zu frozen\n", w.arena.used, (size_t)frozen->size);
	frozen_unref(frozen);
	arena_done(&w.arena);
	buf_done(&w.out);
	return 0;
}
