#include "client/servers.h"

#include "client/folder_testing.h"

#define A "https://10.0.0.1:6443"
#define B "https://10.0.0.2:6443"
#define C "https://[fd00::3]:6443"

TEST(servers_move_goes_round)
{
	static const struct {
		const char *lines;       /* NULL: there is no file */
		size_t others;
		const char *path[4];     /* where moves lead, from A */
	} t[] = {
		{ NULL, 0, { A } },
		{ "", 0, { A } },
		{ A "\n", 0, { A } },
		{ B "\n", 1, { B, A, B } },
		{ A "\n" B "\n" C, 2, { B, C, A, B } },
		{ C "\n" A "\n" C "\n", 1, { C, A, C } },
		{ "http://10.0.0.9:6443\nnonsense\nhttps://\n\n  " B "  \n", 1, { B, A } },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct folder f;
		struct servers s;
		folder_init(&f);
		const char *file = t[i].lines ? put_file(&f, "servers", t[i].lines, 0600) : in_folder(&f, "none");
		servers_init(&s, STR(A), str_of(file));
		for (size_t k = 0; k < ARRAY_LEN(t[i].path) && t[i].path[k]; k++) {
			CHECK_ROW(i, servers_move(&s, s.number) == t[i].others);
			CHECK_STR_ROW(i, str_of(s.current), t[i].path[k]);
		}
		servers_done(&s);
		folder_done(&f);
	}
}

TEST(servers_move_believes_the_newest)
{
	struct folder f;
	struct servers s;

	folder_init(&f);
	servers_init(&s, STR(A), str_of(put_file(&f, "servers", A "\n" B "\n", 0600)));
	CHECK_INT(servers_move(&s, s.number), 1);
	CHECK_STR(str_of(s.current), B);
	/* Who had tried the one before B says nothing of B. */
	CHECK_INT(servers_move(&s, s.number - 1), 1);
	CHECK_STR(str_of(s.current), B);
	/* The file is another one now, without B: all of it are others. */
	put_file(&f, "servers", C "\n", 0600);
	CHECK_INT(servers_move(&s, s.number), 2);
	CHECK_STR(str_of(s.current), A);
	CHECK_INT(servers_move(&s, s.number), 1);
	CHECK_STR(str_of(s.current), C);
	servers_done(&s);
	folder_done(&f);
}

TEST(servers_without_a_file_stay)
{
	struct servers s;

	servers_init(&s, STR(A), STR_NONE);
	CHECK_INT(servers_move(&s, s.number), 0);
	CHECK_STR(str_of(s.current), A);
	servers_done(&s);
}
