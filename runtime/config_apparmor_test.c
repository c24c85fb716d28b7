#include "base/test.h"
#include "codec/atoms.h"
#include "runtime/config_json.h"

TEST(apparmor_default_text)
{
	CLEANUP(buf_done) struct buf plain = BUF_INIT(1 << 16), confined = BUF_INIT(1 << 16);

	config_apparmor_text(&plain, false, STR("unconfined"));
	CHECK(str_starts(buf_str(&plain), STR("profile c8s-default flags=(attach_disconnected, mediate_deleted) {\n  network,\n")));
	CHECK(str_ends(buf_str(&plain), STR(",\n}\n")));
	CHECK(str_find(buf_str(&plain), STR("\n  deny mount,\n")) > 0);
	/* One who runs under a profile of its own must still be able to end containers. */
	config_apparmor_text(&confined, true, STR("c8s"));
	CHECK(str_starts(buf_str(&confined), STR("abi <abi/3.0>,\nprofile c8s-default ")));
	CHECK(str_ends(buf_str(&confined), STR("\n  signal (receive) peer=\"c8s\",\n}\n")));
}

TEST(profile_forms)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	static const struct {
		const char *type, *ref, *old;
		int kind;
		const char *want;
	} t[] = {
		{ NULL, NULL, "", PROFILE_NONE, "" },
		{ NULL, NULL, "runtime/default", PROFILE_DEFAULT, "" },
		{ NULL, NULL, "docker/default", PROFILE_DEFAULT, "" },
		{ NULL, NULL, "unconfined", PROFILE_UNCONFINED, "" },
		{ NULL, NULL, "localhost/mine", PROFILE_LOCALHOST, "mine" },
		{ NULL, NULL, "mine", -1, "" },
		{ "RuntimeDefault", NULL, "unconfined", PROFILE_DEFAULT, "" }, /* the present form counts */
		{ "Unconfined", NULL, "", PROFILE_UNCONFINED, "" },
		{ "Localhost", "mine", "", PROFILE_LOCALHOST, "mine" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct config_profile p = { 0 };
		struct err err = ERR_INIT;
		struct val now = t[i].type ? OBJECT(&a, F(profileType, VAL_STR(str_of(t[i].type))),
						    F(localhostRef, t[i].ref ? VAL_STR(str_of(t[i].ref)) : VAL_EMPTY)) : VAL_EMPTY;
		int r = config_profile_of(now, str_of(t[i].old), &p, &err);
		CHECK_ROW(i, (r < 0) == (t[i].kind < 0));
		CHECK_ROW(i, r < 0 || ((int)p.kind == t[i].kind && str_eq(p.ref, str_of(t[i].want))));
	}
}
