/* Expectations are the answers of Kubernetes 1.36 to these objects. */
#include "machinery/validate_testing.h"

#define CSR_WITH(spec, status) \
	"{'apiVersion':'certificates.k8s.io/v1','kind':'CertificateSigningRequest','metadata':{'name':'x','resourceVersion':'1'}," \
	"'spec':{" spec "},'status':{" status "}}"
#define CSR(spec) CSR_WITH(spec, "")
#define SIGNED(members) CSR("'request':'" REQUEST "','signerName':'a.b/c','usages':['any']" members)
#define WITH_STATUS(status) CSR_WITH("'request':'" REQUEST "','signerName':'a.b/c','usages':['any']", status)
#define BUNDLE(name, members) \
	"{'apiVersion':'certificates.k8s.io/v1beta1','kind':'ClusterTrustBundle','metadata':{'name':'" name "','resourceVersion':'1'}," \
	"'spec':{" members "}}"
/* A request in PEM, as base64; the same with another name than was signed; a certificate of no authority. */
#define REQUEST \
	"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIR01HNENBUUF3RERFS01BZ0dBMVVFQXd3QllUQlpNQk1HQnlx" \
	"R1NNNDlBZ0VHQ0NxR1NNNDlBd0VIQTBJQQpCUGdyaVhWczVEbFM0bldGcVU4NWxvWEJQa0FnNHg1bkoyVC9GTHdqTlRUTkJVK0dS" \
	"c3psTTFnS2R5alY0UzltCldvdjdFbHlrYjZoYmpxVncwQzV2K1lHZ0FEQUtCZ2dxaGtqT1BRUURBZ05JQURCRkFpQXB3b3dVNG92" \
	"U2lZdEwKcnMvT1ZiNmEzREtJWTNrQStNbFBFN2tTczJybWNnSWhBTkZSNkdzeE5UMENCNkNhQW01cm5ldkF1aFU1MGdzUApreU92" \
	"Q0plV0wyRlgKLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg=="
#define FORGED_TEXT \
	"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIR01HNENBUUF3RERFS01BZ0dBMVVFQXd3QllqQlpNQk1HQnlx" \
	"R1NNNDlBZ0VHQ0NxR1NNNDlBd0VIQTBJQQpCUGdyaVhWczVEbFM0bldGcVU4NWxvWEJQa0FnNHg1bkoyVC9GTHdqTlRUTkJVK0dS" \
	"c3psTTFnS2R5alY0UzltCldvdjdFbHlrYjZoYmpxVncwQzV2K1lHZ0FEQUtCZ2dxaGtqT1BRUURBZ05JQURCRkFpQXB3b3dVNG92" \
	"U2lZdEwKcnMvT1ZiNmEzREtJWTNrQStNbFBFN2tTczJybWNnSWhBTkZSNkdzeE5UMENCNkNhQW01cm5ldkF1aFU1MGdzUApreU92" \
	"Q0plV0wyRlgKLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg=="
#define LEAF64 \
	"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJjakNDQVJpZ0F3SUJBZ0lVTDNRazFkVzRpR0VuUDNLN3lDQUJJd3BBWmJr" \
	"d0NnWUlLb1pJemowRUF3SXcKRHpFTk1Bc0dBMVVFQXd3RWJHVmhaakFnRncweU5qRXhNVFV3TnpVMk5UaGFHQTh5TVRJMk1UQXlN" \
	"akEzTlRZMQpPRm93RHpFTk1Bc0dBMVVFQXd3RWJHVmhaakJaTUJNR0J5cUdTTTQ5QWdFR0NDcUdTTTQ5QXdFSEEwSUFCUGdyCmlY" \
	"VnM1RGxTNG5XRnFVODVsb1hCUGtBZzR4NW5KMlQvRkx3ak5UVE5CVStHUnN6bE0xZ0tkeWpWNFM5bVdvdjcKRWx5a2I2aGJqcVZ3" \
	"MEM1ditZR2pVREJPTUIwR0ExVWREZ1FXQkJRdC8xcnVXd0dKd3Z0VzhOMDBQSEhUSUllUQpZREFmQmdOVkhTTUVHREFXZ0JRdC8x" \
	"cnVXd0dKd3Z0VzhOMDBQSEhUSUllUVlEQU1CZ05WSFJNQkFmOEVBakFBCk1Bb0dDQ3FHU000OUJBTUNBMGdBTUVVQ0lRRHJFc1V0" \
	"Rlg2aGpqaGozeUtyazNBSGxTb2pHb1E3Q2dHTFh4QWwKdnRDaEtRSWdEVzNYL3Y2dE8yTjR3RGVwbE00WFNsQ1BnQlB2SlBBTGlm" \
	"Z2dpNmhOU0hvPQotLS0tLUVORCBDRVJUSUZJQ0FURS0tLS0tCg=="
/* Certificates in PEM, for JSON: of an authority and of none. */
#define CA \
	"-----BEGIN CERTIFICATE-----\\n" \
	"MIIBcTCCARegAwIBAgIUESezC2bgDrdvwgZyk14mUaOW6pkwCgYIKoZIzj0EAwIw\\n" \
	"DTELMAkGA1UEAwwCY2EwIBcNMjYxMTE1MDc1NjU4WhgPMjEyNjEwMjIwNzU2NTha\\n" \
	"MA0xCzAJBgNVBAMMAmNhMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE+CuJdWzk\\n" \
	"OVLidYWpTzmWhcE+QCDjHmcnZP8UvCM1NM0FT4ZGzOUzWAp3KNXhL2Zai/sSXKRv\\n" \
	"qFuOpXDQLm/5gaNTMFEwHQYDVR0OBBYEFC3/Wu5bAYnC+1bw3TQ8cdMgh5BgMB8G\\n" \
	"A1UdIwQYMBaAFC3/Wu5bAYnC+1bw3TQ8cdMgh5BgMA8GA1UdEwEB/wQFMAMBAf8w\\n" \
	"CgYIKoZIzj0EAwIDSAAwRQIhAPRntaMcpGSjfxVrcBIrAiA+C/BqHyRDx3h7gkuw\\n" \
	"fErNAiB8ARxZe2j1RfkmlWAvbxVysPEQD5Qji0hROurCBNiwNQ==\\n" \
	"-----END CERTIFICATE-----\\n"
#define LEAF \
	"-----BEGIN CERTIFICATE-----\\n" \
	"MIIBcjCCARigAwIBAgIUL3Qk1dW4iGEnP3K7yCABIwpAZbkwCgYIKoZIzj0EAwIw\\n" \
	"DzENMAsGA1UEAwwEbGVhZjAgFw0yNjExMTUwNzU2NThaGA8yMTI2MTAyMjA3NTY1\\n" \
	"OFowDzENMAsGA1UEAwwEbGVhZjBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABPgr\\n" \
	"iXVs5DlS4nWFqU85loXBPkAg4x5nJ2T/FLwjNTTNBU+GRszlM1gKdyjV4S9mWov7\\n" \
	"Elykb6hbjqVw0C5v+YGjUDBOMB0GA1UdDgQWBBQt/1ruWwGJwvtW8N00PHHTIIeQ\\n" \
	"YDAfBgNVHSMEGDAWgBQt/1ruWwGJwvtW8N00PHHTIIeQYDAMBgNVHRMBAf8EAjAA\\n" \
	"MAoGCCqGSM49BAMCA0gAMEUCIQDrEsUtFX6hjjhj3yKrk3AHlSojGoQ7CgGLXxAl\\n" \
	"vtChKQIgDW3X/v6tO2N4wDeplM4XSlCPgBPvJPALifggi6hNSHo=\\n" \
	"-----END CERTIFICATE-----\\n"

TEST(validate_csr)
{
	static const struct create_row t[] = {
		{ SIGNED(""), "" },
		{ CSR(""),
		  "spec.request: Invalid value: null: PEM block type must be CERTIFICATE REQUEST\n"
		  "spec.usages: Required value\n"
		  "spec.signerName: Required value" },
		{ CSR("'request':'AAEC','signerName':'a','usages':['any','x','any']"),
		  "spec.request: Invalid value: 'AAEC': PEM block type must be CERTIFICATE REQUEST\n"
		  "spec.usages[1]: Unsupported value: 'x': supported values: 'any', 'cert sign', 'client auth', 'code"
		  " signing', 'content commitment', 'crl sign', 'data encipherment', 'decipher only', 'digital"
		  " signature', 'email protection', 'encipher only', 'ipsec end system', 'ipsec tunnel', 'ipsec user',"
		  " 'key agreement', 'key encipherment', 'microsoft sgc', 'netscape sgc', 'ocsp signing', 's/mime',"
		  " 'server auth', 'signing', 'timestamping'\n"
		  "spec.usages[2]: Duplicate value: 'any'\n"
		  "spec.signerName: Invalid value: 'a': must be a fully qualified domain and path of the form"
		  " 'example.com/signer-name'" },
		{ CSR("'request':'" FORGED_TEXT "','signerName':'a/b','usages':['any']"),
		  "spec.request: Invalid value: '" FORGED_TEXT "': x509: ECDSA verification failure\n"
		  "spec.signerName: Invalid value: 'a': should be a domain with at least two segments separated by dots" },
		{ CSR("'request':'" REQUEST "','signerName':'kubernetes.io/legacy-unknown','usages':['any'],'expirationSeconds':599"),
		  "spec.signerName: Invalid value: 'kubernetes.io/legacy-unknown': the legacy signerName is not"
		  " allowed via this API version\n"
		  "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds (10"
		  " minutes)" },
		{ CSR("'request':'" REQUEST "','signerName':'A.b/c','usages':['any']"),
		  "spec.signerName: Invalid value: 'A.b': validating label 'A': " LABEL_TEXT },
		{ CSR("'request':'" REQUEST "','signerName':'a.b/C_','usages':['any']"),
		  "spec.signerName: Invalid value: 'C_': validating label 'C_': " SUBDOMAIN_TEXT },
		{ "{'apiVersion':'certificates.k8s.io/v1','kind':'CertificateSigningRequest','metadata':{'name':'a:B.c'},"
		  "'spec':{'request':'" REQUEST "','signerName':'a.b/c','usages':['any']}}", "" },
	};
	check_create_rows(t, ARRAY_LEN(t));
}

#define TIMES "'lastUpdateTime':'2024-01-01T00:00:00Z','lastTransitionTime':'2024-01-01T00:00:00Z'"
#define APPROVED "'conditions':[{'type':'Approved','status':'True'}]"

TEST(validate_csr_update)
{
	static const struct update_row t[] = {
		{ SIGNED(",'expirationSeconds':3600"), SIGNED(""), "", "" },
		{ WITH_STATUS(APPROVED), SIGNED(""), "", "" },
		{ WITH_STATUS(APPROVED), SIGNED(""), "status",
		  "status.conditions: Forbidden: updates may not add a condition of type 'Approved'" },
		{ WITH_STATUS(APPROVED), SIGNED(""), "approval", "" },
		{ SIGNED(""), WITH_STATUS(APPROVED), "approval",
		  "status.conditions: Forbidden: updates may not remove a condition of type 'Approved'" },
		{ WITH_STATUS("'conditions':[{'type':'Approved','status':'True'},{'type':'Denied','status':'True'},{'type':'Approved','status':'True'},{}]"),
		  SIGNED(""), "approval",
		  "status.conditions: Invalid value: 'Denied': Approved and Denied conditions are mutually exclusive\n"
		  "status.conditions: Invalid value: 'Approved': Approved and Denied conditions are mutually exclusive\n"
		  "status.conditions[2].type: Duplicate value: 'Approved'\n"
		  "status.conditions[3].type: Required value\n"
		  "status.conditions[3].status: Required value" },
		{ WITH_STATUS("'conditions':[{'type':'Approved','status':'False'}]"), SIGNED(""), "approval",
		  "status.conditions[0].status: Unsupported value: 'False': supported values: 'True'" },
		{ WITH_STATUS("'conditions':[{'type':'Failed','status':'True'}]"), SIGNED(""), "status", "" },
		{ WITH_STATUS("'conditions':[{'type':'Approved','status':'True','reason':'b'," TIMES "}]"),
		  WITH_STATUS("'conditions':[{'type':'Approved','status':'True','reason':'a'," TIMES "}]"), "status",
		  "status.conditions: Forbidden: updates may not modify a condition of type 'Approved'\n"
		  "@@ -2,7 +2,7 @@\n"
		  "  {\n"
		  "   'Type': 'Approved',\n"
		  "   'Status': 'True',\n"
		  "-  'Reason': 'a',\n"
		  "+  'Reason': 'b',\n"
		  "   'Message': '',\n"
		  "   'LastUpdateTime': '2024-01-01T00:00:00Z',\n"
		  "   'LastTransitionTime': '2024-01-01T00:00:00Z'\n" },
		{ WITH_STATUS("'certificate':'" LEAF64 "'"), SIGNED(""), "status", "" },
		{ WITH_STATUS("'certificate':'AAEC'"), SIGNED(""), "status",
		  "status.certificate: Invalid value: '<certificate data>': must contain at least one CERTIFICATE PEM"
		  " block" },
		{ WITH_STATUS("'certificate':'" LEAF64 "'"), SIGNED(""), "approval", "" },
		{ WITH_STATUS("'certificate':'" REQUEST "'"), WITH_STATUS("'certificate':'" LEAF64 "'"), "status",
		  "status.certificate: Invalid value: '<certificate data>': only CERTIFICATE PEM blocks are allowed,"
		  " found 'CERTIFICATE REQUEST'\n"
		  "status.certificate: Forbidden: updates may not modify existing certificate content" },
	};
	check_update_rows(t, ARRAY_LEN(t));
}

TEST(validate_trust_bundle)
{
	static const struct create_row t[] = {
		{ BUNDLE("x", "'trustBundle':'" CA "'"), "" },
		{ BUNDLE("a.b:c:d", "'signerName':'a.b/c','trustBundle':'" CA "'"), "" },
		{ BUNDLE("x", "'signerName':'a.b/c','trustBundle':'" CA "'"),
		  "metadata.name: Invalid value: 'x': ClusterTrustBundle for signerName a.b/c must be named with"
		  " prefix a.b:c:" },
		{ BUNDLE("a:b", "'trustBundle':'" CA CA "'"),
		  "metadata.name: Invalid value: 'a:b': ClusterTrustBundle without signer name must not have ':' in"
		  " its name\n"
		  "spec.trustBundle: Invalid value: '<value omitted>': duplicate trust anchor (indices [0 1])" },
		{ BUNDLE("A", "'trustBundle':''"),
		  "metadata.name: Invalid value: 'A': " SUBDOMAIN_TEXT "\n"
		  "spec.trustBundle: Invalid value: '<value omitted>': at least one trust anchor must be provided" },
		{ BUNDLE("x", "'trustBundle':'" LEAF "'"),
		  "spec.trustBundle: Invalid value: '<value omitted>': entry 0 does not have the CA bit set" },
		{ BUNDLE("x", "'trustBundle':'-----BEGIN CERTIFICATE-----\\nAAEC\\n-----END CERTIFICATE-----\\n"
			      "-----BEGIN X-----\\nAAEC\\n-----END X-----\\n'"),
		  "spec.trustBundle: Invalid value: '<value omitted>': entry 0 does not parse as X.509\n"
		  "spec.trustBundle: Invalid value: '<value omitted>': entry 1 has bad block type: X" },
		{ BUNDLE("a:c:d", "'signerName':'a/c','trustBundle':'" CA "'"),
		  "spec.signerName: Invalid value: 'a': should be a domain with at least two segments separated by dots" },
	};
	static const struct update_row u[] = {
		{ BUNDLE("a.b:c:d", "'signerName':'a.b/c','trustBundle':'" LEAF "'"), BUNDLE("a.b:c:d", "'signerName':'a.b/c','trustBundle':'" CA "'"), "",
		  "spec.trustBundle: Invalid value: '<value omitted>': entry 0 does not have the CA bit set" },
		{ BUNDLE("x", "'trustBundle':'" LEAF "'"), BUNDLE("x", "'trustBundle':'" LEAF "'"), "", "" },
		{ BUNDLE("a.b:c:d", "'trustBundle':'" CA "'"), BUNDLE("a.b:c:d", "'signerName':'a.b/c','trustBundle':'" CA "'"), "",
		  "metadata.name: Invalid value: 'a.b:c:d': ClusterTrustBundle without signer name must not have ':'"
		  " in its name\n"
		  "spec.signerName: Invalid value: '': field is immutable" },
	};
	check_create_rows(t, ARRAY_LEN(t));
	check_update_rows(u, ARRAY_LEN(u));
}
