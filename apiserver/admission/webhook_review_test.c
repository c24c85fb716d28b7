#include "apiserver/admission/webhook_review.h"

#include "base/test.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"

#define V1 "\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\""
#define OLD "\"apiVersion\":\"admission.k8s.io/v1beta1\",\"kind\":\"AdmissionReview\""
#define YES "\"uid\":\"u\",\"allowed\":true"
#define RESPONSE(head, rest) "{" head ",\"response\":{" rest "}}"

TEST(webhook_answers_are_checked)
{
	static const struct {
		const char *body;
		bool old, mutating;
		const char *error; /* NULL: taken; else its beginning */
	} t[] = {
		{ RESPONSE(V1, YES), false, false, NULL },
		{ RESPONSE(V1, YES), false, true, NULL },
		{ RESPONSE(V1, YES ",\"unknown\":{\"deep\":[1]}"), false, true, NULL },
		{ RESPONSE(V1, YES ",\"patch\":\"W10=\",\"patchType\":\"JSONPatch\""), false, true, NULL },
		{ RESPONSE(V1, YES ",\"patch\":\"W10=\",\"patchType\":\"JSONPatch\""), false, false,
		  "validating webhook may not return response.patch" },
		{ RESPONSE(V1, YES ",\"patchType\":\"JSONPatch\""), false, false, "validating webhook may not return response.patchType" },
		{ RESPONSE(V1, YES ",\"patch\":\"W10=\""), false, true, "webhook returned response.patch but not response.patchType" },
		{ RESPONSE(V1, YES ",\"patchType\":\"JSONPatch\""), false, true,
		  "webhook returned response.patchType but not response.patch" },
		{ RESPONSE(V1, YES ",\"patch\":\"W10=\",\"patchType\":\"\""), false, true,
		  "webhook returned invalid response.patchType of \"\"" },
		{ RESPONSE(V1, "\"uid\":\"v\",\"allowed\":true"), false, false, "expected response.uid=\"u\", got \"v\"" },
		{ RESPONSE(V1, "\"allowed\":true"), false, false, "expected response.uid=\"u\", got \"\"" },
		{ "{" V1 "}", false, false, "webhook response was absent" },
		{ "{" V1 ",\"response\":null}", false, false, "webhook response was absent" },
		{ "{\"response\":{" YES "}}", false, false,
		  "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=" },
		{ RESPONSE("\"kind\":\"AdmissionReview\"", YES), false, false,
		  "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=AdmissionReview" },
		{ RESPONSE(OLD, YES), false, false, "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion" },
		{ RESPONSE(V1, YES), true, false, "converting (v1.AdmissionReview) to (v1beta1.AdmissionReview): unknown conversion" },
		/* the older version is less strict */
		{ RESPONSE(OLD, "\"allowed\":true"), true, true, NULL },
		{ RESPONSE(OLD, YES ",\"patch\":\"W10=\""), true, true, NULL },
		{ RESPONSE(OLD, YES ",\"patch\":\"W10=\""), true, false, NULL },
		{ "{\"response\":{\"allowed\":true}}", true, true, NULL },
		{ "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"no\"}", false, false, "no" },
		{ "{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}", false, false, "no kind \"Pod\" is registered for version \"v1\"" },
		{ "null", false, false, "webhook response was absent" },
		{ "7", false, false, "couldn't get version/kind; json parse error: json: cannot unmarshal number" },
		{ "", false, false, "couldn't get version/kind; json parse error: unexpected end of JSON input" },
		{ RESPONSE(V1, YES ",\"patch\":7"), false, true, "json: cannot unmarshal number" },
		{ RESPONSE(V1, YES ",\"patch\":\"=\",\"patchType\":\"JSONPatch\""), false, true, "illegal base64 data at input byte 0" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		const struct type *type = t[i].old ? TYPE(admission_v1beta1, AdmissionReview) : TYPE(admission_v1, AdmissionReview);
		struct err err = ERR_INIT;
		struct hook_response response;
		struct val review;
		int r = hook_response_decode(&a, str_of(t[i].body), type, &review, &err);
		if (r == 0)
			r = hook_response_of(&a, review, type, STR("u"), t[i].mutating, &response, &err);
		CHECK_ROW(i, (r < 0) == (t[i].error != NULL));
		if (r < 0)
			CHECK_STR_ROW(i, str_head(err_str(&err), strlen(t[i].error)), t[i].error);
		else
			CHECK_ROW(i, response.allowed);
	}
}

TEST(webhook_patches_are_decoded)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct type *type = TYPE(admission_v1, AdmissionReview);
	struct hook_response response;
	struct val review;
	str body = STR(RESPONSE(V1, YES ",\"patch\":\"W10=\",\"patchType\":\"JSONPatch\",\"warnings\":[\"w\"],"
				    "\"auditAnnotations\":{\"a\":\"b\"},\"status\":{\"code\":404}"));
	CHECK_INT(hook_response_decode(&a, body, type, &review, NULL), 0);
	CHECK_INT(hook_response_of(&a, review, type, STR("u"), true, &response, NULL), 0);
	CHECK_STR(response.patch, "[]");
	CHECK_STR(response.patch_type, "JSONPatch");
	CHECK_STR(val_as_str(val_at(response.warnings, 0)), "w");
	CHECK_STR(val_as_str(val_find(response.annotations, STR("a"))), "b");
	CHECK_INT(val_int(response.status, code), 404);
}
