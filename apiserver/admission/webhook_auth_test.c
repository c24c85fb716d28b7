#include "apiserver/admission/webhook_auth.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/test.h"
#include "codec/atoms.h"
#include "codec/codec.h"

static const char kubeconfig[] =
	"apiVersion: v1\nkind: Config\ncurrent-context: here\n"
	"contexts: [{name: here, context: {cluster: c, user: current}}]\n"
	"users:\n"
	"- {name: 'exact.n.svc:8443', user: {token: exact}}\n"
	"- {name: '*.n.svc:443', user: {token: star}}\n"
	"- {name: plain.example.com, user: {token: plain}}\n"
	"- {name: '*.example.com', user: {token: domain}}\n"
	"- {name: files.example.org, user: {client-certificate: cert.pem, client-key-data: a2V5, client-key: no.pem, tokenFile: /run/token}}\n"
	"- {name: current, user: {token: current}}\n";

TEST(webhooks_know_the_server_by_their_host)
{
	static const struct {
		const char *target, *token;
	} t[] = {
		{ "exact.n.svc:8443", "exact" }, { "exact.n.svc:443", "star" }, { "other.n.svc:443", "star" },
		{ "other.n.svc:8443", "current" }, { "plain.example.com:443", "plain" }, { "plain.example.com:444", "current" },
		{ "a.b.example.com:443", "domain" }, { "example.com:443", "current" }, { "10.0.0.1:443", "current" },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	char path[] = "/tmp/c8s-webhook-auth-XXXXXX";
	int fd = mkstemp(path);
	CHECK(fd >= 0);
	close(fd);
	CHECK_INT(file_write(path, str_of(kubeconfig), 0600, NULL), 0);
	struct webhook_auth *w = NULL;
	struct val config = OBJECT(&a, F(apiVersion, VAL_LIT("apiserver.config.k8s.io/v1")),
				   F(kind, VAL_LIT("WebhookAdmissionConfiguration")), F(kubeConfigFile, val_of_str(str_of(path))));
	CHECK_INT(webhook_auth_open(config, &w, NULL), 0);
	CHECK(w != NULL);
	for (size_t i = 0; w && i < ARRAY_LEN(t); i++)
		CHECK_STR_ROW(i, val_str(webhook_auth_find(w, &a, str_of(t[i].target)), token), t[i].token);
	struct webhook_options o = { .service_name = STR("other"), .service_namespace = STR("n") };
	struct webhook_files files = { 0 };
	CHECK_INT(webhook_auth_add(w, &a, &o, &files, NULL), 0);
	CHECK_STR(o.token, "star");
	CHECK(!files.token);
	o = (struct webhook_options){ .url = STR("https://files.example.org/x") };
	CHECK_INT(webhook_auth_add(w, &a, &o, &files, NULL), 0);
	CHECK_STR(str_of(files.client_cert), "/tmp/cert.pem");
	CHECK_STR(str_of(files.token), "/run/token");
	CHECK(!files.client_key);
	CHECK_STR(o.client_key, "key");
	webhook_auth_free(w);
	unlink(path);
}

TEST(webhook_configuration_is_checked)
{
	static const struct {
		const char *json, *error; /* its beginning */
	} t[] = {
		{ "{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}", "no kind \"Pod\" is registered for version \"v1\"" },
		{ "{\"kind\":\"WebhookAdmissionConfiguration\",\"apiVersion\":\"apiserver.config.k8s.io/v1\",\"kubeConfigFile\":\"x\"}",
		  "kubeConfigFile: Invalid value: \"x\": must be an absolute file path" },
		{ "{\"kind\":\"WebhookAdmissionConfiguration\",\"apiVersion\":\"apiserver.config.k8s.io/v1\",\"x\":1}",
		  "strict decoding error: unknown field \"x\"" },
		{ "{\"kind\":\"WebhookAdmissionConfiguration\",\"apiVersion\":\"apiserver.config.k8s.io/v1\",\"staticManifestsDir\":\"/x\"}",
		  "static webhook manifests dir \"/x\" configured but" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct webhook_auth *w = NULL;
		struct err err = ERR_INIT;
		struct val config;
		CHECK_INT(json_decode(&a, str_of(t[i].json), &(struct json_decode_options){ 0 }, &config, NULL), 0);
		CHECK_ROW(i, webhook_auth_open(config, &w, &err) < 0 && !w);
		CHECK_STR_ROW(i, str_head(err_str(&err), strlen(t[i].error)), t[i].error);
	}
}
