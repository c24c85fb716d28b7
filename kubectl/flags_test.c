#include "base/test.h"
#include "kubectl/flags.h"

struct own {
	const char *output;
	bool watch, tty;
	int64_t tail, since;
	struct ktl_texts labels, literals;
	const char *dry;
};

struct all {
	const char *namespace;
};

static const struct ktl_flag table[] = {
	{ "output", 'o', KTL_STRING, offsetof(struct own, output), NULL, "h", NULL },
	{ "watch", 'w', KTL_BOOL, offsetof(struct own, watch), NULL, "h", NULL },
	{ "tty", 't', KTL_BOOL, offsetof(struct own, tty), NULL, "h", NULL },
	{ "tail", 0, KTL_INT, offsetof(struct own, tail), "-1", "h", NULL },
	{ "since", 0, KTL_DURATION, offsetof(struct own, since), NULL, "h", NULL },
	{ "label-columns", 'L', KTL_LIST, offsetof(struct own, labels), NULL, "h", NULL },
	{ "from-literal", 0, KTL_ARRAY, offsetof(struct own, literals), NULL, "h", NULL },
	{ "dry-run", 0, KTL_STRING, offsetof(struct own, dry), "none", "h", "unchanged" },
	{ 0 },
};
static const struct ktl_flag globals[] = { { "namespace", 'n', KTL_STRING, offsetof(struct all, namespace), NULL, "h", NULL }, { 0 } };

static int parse(struct arena *a, struct ktl_flags *f, struct own *o, struct all *g, const char *line, struct err *err)
{
	char **argv = ARENA_ARRAY(a, char *, 32);
	str word, rest = str_of(line);
	int argc = 0;
	*f = (struct ktl_flags){ .sets = (const struct ktl_flag_set[]){ { table, 0 }, { 0 } }, .target = o, .globals = globals, .global_target = g };
	*o = (struct own){ 0 };
	while (rest.n) {
		(void)str_cut(rest, ' ', &word, &rest);
		argv[argc++] = (char *)(uintptr_t)arena_str(a, word).p;
	}
	return ktl_flags_parse(f, a, argc, argv, err);
}

TEST(flags_values)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;
	struct ktl_flags f;
	struct own o;
	struct all g;
	CHECK_INT(parse(&a, &f, &o, &g, "pods -o wide -n x --tail=5 web --since 1m30s -wt -L a,b --label-columns=c --from-literal=k=v,w", &err), 0);
	CHECK_STR(str_of(o.output), "wide");
	CHECK_STR(str_of(g.namespace), "x");
	CHECK_INT(o.tail, 5);
	CHECK_INT(o.since, INT64_C(90000000000));
	CHECK(o.watch && o.tty);
	CHECK_INT(o.labels.n, 3);
	CHECK_STR(str_of(o.labels.v[2]), "c");
	CHECK_INT(o.literals.n, 1);
	CHECK_STR(str_of(o.literals.v[0]), "k=v,w");
	CHECK_INT(f.args.n, 2);
	CHECK_STR(str_of(f.args.v[1]), "web");
	CHECK_INT(f.dash, -1);
	CHECK(ktl_flag_given(&f, "tail"));
	CHECK(!ktl_flag_given(&f, "dry-run"));
	CHECK_STR(str_of(o.dry), "none");
}

TEST(flags_forms)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct ktl_flags f;
	struct own o;
	struct all g;
	CHECK_INT(parse(&a, &f, &o, &g, "-oyaml --dry-run x --watch=false p -- -o ls -l", NULL), 0);
	CHECK_STR(str_of(o.output), "yaml");
	CHECK_STR(str_of(o.dry), "unchanged"); /* the next argument is none of its own */
	CHECK(!o.watch);
	CHECK_INT(f.dash, 2);
	CHECK_INT(f.args.n, 5);
	CHECK_STR(str_of(f.args.v[2]), "-o");
	CHECK_INT(parse(&a, &f, &o, &g, "-o=json --help", NULL), 0);
	CHECK_STR(str_of(o.output), "json");
	CHECK(f.help);
	CHECK_INT(parse(&a, &f, &o, &g, "-tn ns - ", NULL), 0);
	CHECK_STR(str_of(g.namespace), "ns");
	CHECK_STR(str_of(f.args.v[0]), "-");
}

TEST(flags_errors)
{
	static const struct { const char *line, *message; } cases[] = {
		{ "--nope", "unknown flag: --nope" },
		{ "--nope=1", "unknown flag: --nope" },
		{ "-x", "unknown shorthand flag: 'x' in -x" },
		{ "-tx", "unknown shorthand flag: 'x' in -x" },
		{ "--output", "flag needs an argument: --output" },
		{ "-o", "flag needs an argument: 'o' in -o" },
		{ "--tail x", "invalid argument \"x\" for \"--tail\" flag: strconv.ParseInt: parsing \"x\": invalid syntax" },
		{ "-w=maybe", "invalid argument \"maybe\" for \"-w, --watch\" flag: strconv.ParseBool: parsing \"maybe\": invalid syntax" },
		{ "--since 3", "invalid argument \"3\" for \"--since\" flag: time: missing unit in duration \"3\"" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct err err = ERR_INIT;
		struct ktl_flags f;
		struct own o;
		struct all g;
		CHECK_INT(parse(&a, &f, &o, &g, cases[i].line, &err), -ERR_BAD_REQUEST);
		CHECK_STR(str_of(err.msg), cases[i].message);
	}
}
