#include "apiserver/apiserver.h"
#include "apiserver/hooks_service.h"
#include "base/test.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "machinery/testing.h"

static struct val tree(struct arena *a, const char *spec)
{
	struct val v;
	if (!spec)
		return VAL_EMPTY;
	str json = arena_printf(a, "{'metadata':{'name':'s'},'spec':{%s}}", spec);
	CHECK_INT(json_decode(a, testing_json(a, json.p), &(struct json_decode_options){ 0 }, &v, NULL), 0);
	return v;
}

static str joined(struct arena *a, struct val list)
{
	str text = STR("");
	VAL_EACH(item, list)
		text = arena_printf(a, STR_FMT "%s" STR_FMT, STR_ARG(text), text.n ? "," : "", STR_ARG(val_as_str(*item)));
	return text;
}

#define IP "'type':'ClusterIP'"
#define V4 "10.0.0.0/24"
#define DUAL "10.0.0.0/24,fd00::/112"

TEST(service_families)
{
	static const struct {
		const char *ranges, *old, *spec;
		const char *policy, *families; /* or NULL and the message behind `Service "s" is invalid: ` */
	} t[] = {
		{ V4, NULL, IP, "SingleStack", "IPv4" },
		{ V4, NULL, IP ",'ipFamilyPolicy':'PreferDualStack'", "PreferDualStack", "IPv4" },
		{ V4, NULL, IP ",'clusterIP':'None','clusterIPs':['None']", "RequireDualStack", "IPv4,IPv6" },
		{ V4, NULL, IP ",'clusterIP':'None','clusterIPs':['None'],'selector':{'a':'b'}", "SingleStack", "IPv4" },
		{ V4, NULL, "'type':'ExternalName'", "", "" },
		{ V4, NULL, IP ",'ipFamilyPolicy':'RequireDualStack'", NULL,
		  "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not configured for dual-stack services" },
		{ V4, NULL, IP ",'ipFamilies':['IPv6']", NULL, "spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster" },
		{ V4, NULL, IP ",'clusterIP':'fd00::1','clusterIPs':['fd00::1']", NULL,
		  "spec.clusterIPs[0]: Invalid value: [\"fd00::1\"]: IPv6 is not configured on this cluster" },
		{ "fd00::/112", NULL, IP, "SingleStack", "IPv6" },
		{ DUAL, NULL, IP, "SingleStack", "IPv4" },
		{ DUAL, NULL, IP ",'ipFamilyPolicy':'PreferDualStack'", "PreferDualStack", "IPv4,IPv6" },
		{ DUAL, NULL, IP ",'ipFamilyPolicy':'RequireDualStack','ipFamilies':['IPv6']", "RequireDualStack", "IPv6,IPv4" },
		{ DUAL, NULL, IP ",'clusterIP':'fd00::1','clusterIPs':['fd00::1','10.0.0.1']", NULL,
		  "spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or 'PreferDualStack' when multiple "
		  "cluster IPs are specified" },
		{ DUAL, NULL, IP ",'ipFamilies':['IPv4','IPv6']", NULL,
		  "spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or 'PreferDualStack' when multiple "
		  "IP families are specified" },
		/* a cluster that got its second family changes nobody who does not ask for it */
		{ DUAL, IP ",'ipFamilyPolicy':'PreferDualStack','ipFamilies':['IPv4'],'clusterIP':'10.0.0.9','clusterIPs':['10.0.0.9']",
		  IP ",'ipFamilyPolicy':'PreferDualStack','ipFamilies':['IPv4'],'clusterIP':'10.0.0.9','clusterIPs':['10.0.0.9']",
		  "PreferDualStack", "IPv4" },
		{ DUAL, IP ",'ipFamilyPolicy':'SingleStack','ipFamilies':['IPv4'],'clusterIP':'10.0.0.9','clusterIPs':['10.0.0.9']",
		  IP ",'ipFamilyPolicy':'PreferDualStack','ipFamilies':['IPv4'],'clusterIP':'10.0.0.9','clusterIPs':['10.0.0.9']",
		  "PreferDualStack", "IPv4,IPv6" },
		{ DUAL, IP ",'ipFamilyPolicy':'RequireDualStack','ipFamilies':['IPv4','IPv6'],'clusterIP':'10.0.0.9','clusterIPs':['10.0.0.9','fd00::9']",
		  IP ",'ipFamilyPolicy':'SingleStack','ipFamilies':['IPv4','IPv6'],'clusterIP':'10.0.0.9','clusterIPs':['10.0.0.9','fd00::9']",
		  "SingleStack", "IPv4" },
		{ DUAL, IP ",'ipFamilyPolicy':'RequireDualStack','ipFamilies':['IPv4','IPv6'],'clusterIP':'10.0.0.9','clusterIPs':['10.0.0.9','fd00::9']",
		  IP ",'ipFamilyPolicy':'RequireDualStack','ipFamilies':['IPv4','IPv6'],'clusterIP':'10.0.0.9','clusterIPs':['10.0.0.9']",
		  NULL, "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": must be 'SingleStack' to release the secondary cluster IP" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct arena a = ARENA_INIT;
		struct apiserver s = { .allocators = NULL };
		struct request q = { .server = &s, .arena = &a };
		struct allocation al = { .q = &q, .old = tree(&a, t[i].old), .service = tree(&a, t[i].spec) };
		CHECK_INT(service_ip_new(t[i].ranges, 30000, 32767, &s.allocators, NULL), 0);
		int r = families_settle(&al);
		if (t[i].policy) {
			CHECK_INT(r, 0);
			CHECK_STR(val_str(al.service, spec, ipFamilyPolicy), t[i].policy);
			CHECK_STR(joined(&a, val_get(al.service, spec, ipFamilies)), t[i].families);
		} else {
			CHECK_INT(r, -ERR_INVALID);
			CHECK_STR(str_skip(val_str(q.failure, message), sizeof "Service \"s\" is invalid: " - 1), t[i].families);
		}
		service_ip_free(s.allocators);
		arena_done(&a);
	}
}
