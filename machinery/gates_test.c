#include "machinery/gates.h"

#include "base/test.h"
#include "codec/json.h"

TEST(gates_on_and_off)
{
	static const struct {
		const char *said, *name;
		bool on;
	} t[] = {
		{ "{}", "ClusterTrustBundle", false },
		{ "{}", "NodeDeclaredFeatures", true },
		{ "{}", "Nonsense", false },
		{ "{\"ClusterTrustBundle\":true}", "ClusterTrustBundle", true },
		{ "{\"AllBeta\":true}", "ClusterTrustBundle", true },
		{ "{\"AllAlpha\":true}", "ClusterTrustBundle", false },
		{ "{\"AllBeta\":true,\"ClusterTrustBundle\":false}", "ClusterTrustBundle", false },
		{ "{\"AllBeta\":false}", "NodeDeclaredFeatures", false },
		{ "{\"AllBeta\":false}", "NodeSwap", true },
	};
	struct arena a = ARENA_INIT;
	struct val said;

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CHECK_ROW(i, json_decode(&a, str_of(t[i].said), &(struct json_decode_options){ 0 }, &said, NULL) == 0);
		CHECK_ROW(i, gate_is_on(said, str_of(t[i].name)) == t[i].on);
	}
	arena_done(&a);
}
