#include "apiserver/runtime_config.h"

#include "base/test.h"

static const struct resource *resource(const char *group, const char *version, const char *name)
{
	for (size_t i = 0; i < schema_n_resources; i++) {
		const struct resource *r = &schema_resources[i];
		if (str_eq(r->group, str_of(group)) && str_eq(r->version, str_of(version)) && str_eq(r->name, str_of(name)))
			return r;
	}
	fail_msg("no resource %s/%s %s", group, version, name);
	return NULL;
}

TEST(runtime_config_serves)
{
	static const struct { const char *flag, *group, *version, *name; bool served; } t[] = {
		{ "", "", "v1", "pods", true },
		{ "", "storage.k8s.io", "v1beta1", "volumeattributesclasses", false },
		{ "api/beta=true", "storage.k8s.io", "v1beta1", "volumeattributesclasses", true },
		{ "api/beta=true,storage.k8s.io/v1beta1=false", "storage.k8s.io", "v1beta1", "volumeattributesclasses", false },
		{ "storage.k8s.io/v1beta1=false,storage.k8s.io/v1beta1/volumeattributesclasses", "storage.k8s.io", "v1beta1",
		  "volumeattributesclasses", true },
		{ "api/all=true", "storage.k8s.io", "v1beta1", "volumeattributesclasses", true },
		{ "api/all=false,v1=true", "", "v1", "pods/status", true },
		{ "api/all=false,api/v1=true", "apps", "v1", "deployments", false },
		{ "apps/v1/deployments=false", "apps", "v1", "deployments/status", false },
		{ "apps/v1/deployments=false", "apps", "v1", "daemonsets", true },
		{ "apps/v1=true,apps/v1=false", "apps", "v1", "daemonsets", false },
		{ "api/ga=false,api/legacy=true,batch/v1=1", "batch", "v1", "jobs", true },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		const char *values[] = { t[i].flag, NULL };
		struct runtime_config *c;
		struct err err = ERR_INIT;
		CHECK_ROW(i, runtime_config_parse(values, &c, &err) == 0);
		CHECK_ROW(i, runtime_config_served(resource(t[i].group, t[i].version, t[i].name), c) == t[i].served);
		runtime_config_free(c);
	}
}

TEST(runtime_config_refuses)
{
	static const struct { const char *flag, *message; } t[] = {
		{ "api/all=false", "invalid runtime-config with only api/all=false" },
		{ "api/beta=yes", "invalid value api/beta=yes" },
		{ "nonsense=true", "runtime-config invalid key nonsense" },
		{ "a/b/c/d=true", "runtime-config invalid key a/b/c/d" },
		{ "extensions.example/v1=true", "unknown api groups extensions.example/v1" },
		{ "apps/v7=true", "group version apps/v7 that has not been registered" },
		{ "apps/v1=maybe", "invalid value of apps/v1: maybe, err: strconv.ParseBool: parsing \"maybe\": invalid syntax" },
		{ "apps/v1/Deployments=true", "invalid key apps/v1/Deployments: group/version/resource and resource is always lowercase plural, "
		  "not \"Deployments\"" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		const char *values[] = { t[i].flag, NULL };
		struct runtime_config *c;
		struct err err = ERR_INIT;
		CHECK_ROW(i, runtime_config_parse(values, &c, &err) == -ERR_BAD_REQUEST);
		CHECK_STR_ROW(i, err_str(&err), t[i].message);
	}
}
