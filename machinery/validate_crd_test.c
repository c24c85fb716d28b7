/* Expectations are the answers of Kubernetes 1.36 to these objects. */
#include "machinery/validate_testing.h"

#define CRD_WITH(meta, members) \
	"{'apiVersion':'apiextensions.k8s.io/v1','kind':'CustomResourceDefinition','metadata':{'name':'as.b.c','resourceVersion':'1'" meta "}," \
	members "}"
#define NAMES "'names':{'plural':'as','kind':'A'}"
#define CRD(versions, rest) CRD_WITH("", "'spec':{'group':'b.c','scope':'Namespaced'," NAMES ",'versions':[" versions "]" rest "}")
#define OBJECT_SCHEMA "'schema':{'openAPIV3Schema':{'type':'object'}}"
#define VERSION(name, members) "{'name':'" name "','served':true,'storage':true," OBJECT_SCHEMA members "}"
#define V1(members) CRD(VERSION("v1", members), "")
#define SECOND(members) "{'name':'v2','served':true,'storage':false," OBJECT_SCHEMA members "}"
#define ESTABLISHED(names, scope) \
	CRD_WITH("", "'spec':{'group':'b.c','scope':'" scope "'," names ",'versions':[" VERSION("v1", "") "]},'status':{'storedVersions':['v1']," \
		     "'conditions':[{'type':'Established','status':'True'}]}")
#define CONVERTED(bundle) \
	CRD_WITH("", "'spec':{'group':'b.c','scope':'Namespaced'," NAMES ",'versions':[" VERSION("v1", "") "],'conversion':{'strategy':'Webhook'," \
		     "'webhook':{'clientConfig':{'url':'https://a'" bundle "},'conversionReviewVersions':['v1']}}}," \
		     "'status':{'storedVersions':['v1'],'conditions':[{'type':'Established','status':'True'}]}")
#define STORED(versions, stored) \
	CRD_WITH("", "'spec':{'group':'b.c','scope':'Namespaced'," NAMES ",'versions':[" versions "]},'status':{'storedVersions':[" stored "]}")

TEST(validate_crd)
{
	static const struct create_row t[] = {
		{ V1(""), "" },
		{ CRD_WITH("", "'spec':{}"),
		  "metadata.name: Invalid value: 'as.b.c': must be spec.names.plural+'.'+spec.group\n"
		  "spec.group: Required value\n"
		  "spec.scope: Required value\n"
		  "spec.versions: Invalid value: []: must have exactly one version marked as storage version\n"
		  "spec.names.plural: Required value\n"
		  "spec.names.singular: Required value\n"
		  "spec.names.kind: Required value\n"
		  "spec.names.listKind: Required value\n"
		  "status.storedVersions: Invalid value: null: must have at least one stored version" },
		{ CRD_WITH("", "'spec':{'group':'B','scope':'x','names':{'plural':'As','singular':'A','kind':'a b','listKind':'a b','shortNames':['A'],"
			       "'categories':['B']},'versions':[" VERSION("V", "") "]}"),
		  "metadata.name: Invalid value: 'as.b.c': must be spec.names.plural+'.'+spec.group\n"
		  "spec.group: Invalid value: 'B': " SUBDOMAIN_TEXT "\n"
		  "spec.scope: Unsupported value: 'x': supported values: 'Cluster', 'Namespaced'\n"
		  "spec.versions[0].name: Invalid value: 'V': " OLD_LABEL_TEXT "\n"
		  "spec.version: Invalid value: 'V': " OLD_LABEL_TEXT "\n"
		  "spec.names.plural: Invalid value: 'As': " OLD_LABEL_TEXT "\n"
		  "spec.names.singular: Invalid value: 'A': " OLD_LABEL_TEXT "\n"
		  "spec.names.kind: Invalid value: 'a b': may have mixed case, but should otherwise match: " OLD_LABEL_TEXT "\n"
		  "spec.names.listKind: Invalid value: 'a b': may have mixed case, but should otherwise match: "
		  OLD_LABEL_TEXT "\n"
		  "spec.names.shortNames[0]: Invalid value: 'A': " OLD_LABEL_TEXT "\n"
		  "spec.names.listKind: Invalid value: 'a b': kind and listKind may not be the same\n"
		  "spec.names.categories[0]: Invalid value: 'B': " OLD_LABEL_TEXT },
		{ CRD_WITH("", "'spec':{'group':'b','scope':'Cluster'," NAMES ",'versions':[" VERSION("v1", "") "]}"),
		  "metadata.name: Invalid value: 'as.b.c': must be spec.names.plural+'.'+spec.group\n"
		  "spec.group: Invalid value: 'b': should be a domain with at least one dot" },
		{ CRD("{'name':'v1','served':true,'storage':true}", ""),
		  "spec.versions[0].schema.openAPIV3Schema: Required value" },
		{ CRD(VERSION("v1", "") "," VERSION("v1", ""), ""),
		  "spec.versions: Invalid value:"
		  " [{'Name':'v1','Served':true,'Storage':true,'Deprecated':false,'DeprecationWarning':null,"
		  "'Schema':null,'Subresources':null,'AdditionalPrinterColumns':null,'SelectableFields':null},"
		  "{'Name':'v1','Served':true,'Storage':true,'Deprecated':false,'DeprecationWarning':null,"
		  "'Schema':null,'Subresources':null,'AdditionalPrinterColumns':null,'SelectableFields':null}]: must"
		  " contain unique version names\n"
		  "spec.versions: Invalid value:"
		  " [{'Name':'v1','Served':true,'Storage':true,'Deprecated':false,'DeprecationWarning':null,"
		  "'Schema':null,'Subresources':null,'AdditionalPrinterColumns':null,'SelectableFields':null},"
		  "{'Name':'v1','Served':true,'Storage':true,'Deprecated':false,'DeprecationWarning':null,"
		  "'Schema':null,'Subresources':null,'AdditionalPrinterColumns':null,'SelectableFields':null}]: must"
		  " have exactly one version marked as storage version" },
		{ CRD(VERSION("v1", ",'deprecationWarning':'a'"), ""),
		  "spec.versions[0].deprecationWarning: Invalid value: 'a': can only be set for deprecated versions" },
		{ CRD(VERSION("v1", ",'deprecated':true,'deprecationWarning':''"), ""),
		  "spec.versions[0].deprecationWarning: Invalid value: '': must not be an empty string" },
		{ CRD(VERSION("v1", ",'deprecated':true,'deprecationWarning':'a\\nb'"), ""),
		  "spec.versions[0].deprecationWarning: Invalid value: 'a\\nb': must only contain printable UTF-8"
		  " characters; non-printable character found at index 1" },
		{ CRD(VERSION("v1", ""), ",'preserveUnknownFields':true"),
		  "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set"
		  " x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead" },
		{ CRD_WITH("", "'spec':{'group':'x.k8s.io','scope':'Cluster'," NAMES ",'versions':[" VERSION("v1", "") "]}"),
		  "metadata.name: Invalid value: 'as.b.c': must be spec.names.plural+'.'+spec.group\n"
		  "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have"
		  " approval annotation 'api-approved.kubernetes.io', see"
		  " https://github.com/kubernetes/enhancements/pull/1111" },
		{ CRD_WITH(",'annotations':{'api-approved.kubernetes.io':'x'}",
			   "'spec':{'group':'x.k8s.io','scope':'Cluster'," NAMES ",'versions':[" VERSION("v1", "") "]}"),
		  "metadata.name: Invalid value: 'as.b.c': must be spec.names.plural+'.'+spec.group\n"
		  "metadata.annotations[api-approved.kubernetes.io]: Invalid value: 'x': protected groups must have"
		  " approval annotation 'api-approved.kubernetes.io' with either a URL or a reason starting with"
		  " 'unapproved', see https://github.com/kubernetes/enhancements/pull/1111" },
		{ CRD_WITH(",'annotations':{'api-approved.kubernetes.io':'unapproved, only a test'}",
			   "'spec':{'group':'b.c','scope':'Cluster'," NAMES ",'versions':[" VERSION("v1", "") "]}"),
		  "" },
	};
	check_create_rows(t, ARRAY_LEN(t));
}

/* What all versions have alike is said to stand above them. */
TEST(validate_crd_versions)
{
	static const struct create_row t[] = {
		{ V1(",'subresources':{'scale':{}}"),
		  "spec.subresources.scale.specReplicasPath: Required value\n"
		  "spec.subresources.scale.statusReplicasPath: Required value" },
		{ CRD(VERSION("v1", ",'subresources':{'scale':{}}") "," SECOND(""), ""),
		  "spec.versions[0].subresources.scale.specReplicasPath: Required value\n"
		  "spec.versions[0].subresources.scale.statusReplicasPath: Required value" },
		{ V1(",'subresources':{'scale':{'specReplicasPath':'.spec.a','statusReplicasPath':'.status.b','labelSelectorPath':'.status.c'}}"),
		  "" },
		{ V1(",'subresources':{'scale':{'specReplicasPath':'spec','statusReplicasPath':'.spec.b','labelSelectorPath':'.metadata'}}"),
		  "spec.subresources.scale.specReplicasPath: Invalid value: 'spec': must be a simple json path"
		  " starting with .\n"
		  "spec.subresources.scale.statusReplicasPath: Invalid value: '.spec.b': should be a json path under"
		  " .status\n"
		  "spec.subresources.scale.labelSelectorPath: Invalid value: '.metadata': should be a json path under"
		  " either .spec or .status" },
		{ V1(",'additionalPrinterColumns':[{},{'name':'a','type':'x','format':'x','jsonPath':'a'},{'name':'b','type':'string','jsonPath':'.a'}]"),
		  "spec.additionalPrinterColumns[0].name: Required value\n"
		  "spec.additionalPrinterColumns[0].type: Required value: must be one of"
		  " boolean,date,integer,number,string\n"
		  "spec.additionalPrinterColumns[0].JSONPath: Required value\n"
		  "spec.additionalPrinterColumns[1].type: Invalid value: 'x': must be one of"
		  " boolean,date,integer,number,string\n"
		  "spec.additionalPrinterColumns[1].format: Invalid value: 'x': must be one of"
		  " byte,date,date-time,double,float,int32,int64,password\n"
		  "spec.additionalPrinterColumns[1].JSONPath: Invalid value: 'a': must be a simple json path starting"
		  " with ." },
		{ V1(",'selectableFields':[{},{'jsonPath':'.a'},{'jsonPath':'a'}]"),
		  "spec.selectableFields[0].jsonPath: Required value\n"
		  "spec.selectableFields[1].jsonPath: Invalid value: '.a': is an invalid path: does not refer to a"
		  " valid field\n"
		  "spec.selectableFields[2].jsonPath: Invalid value: 'a': is an invalid path: expected [ or . but got:"
		  " a" },
		{ CRD(VERSION("v1", ",'selectableFields':[{'jsonPath':'.a'}]") ",{'name':'v2','served':true,'storage':false,'schema':{'openAPIV3Schema':"
		      "{'type':'object','properties':{'a':{'type':'string'}}}},'selectableFields':[{'jsonPath':'.a'},{'jsonPath':'.metadata.name'}]}", ""),
		  "spec.versions[0].selectableFields[0].jsonPath: Invalid value: '.a': is an invalid path: does not"
		  " refer to a valid field\n"
		  "spec.versions[1].selectableFields[1].jsonPath: Invalid value: '.metadata.name': is an invalid path:"
		  " does not refer to a valid field" },
		{ CRD("{'name':'v1','served':true,'storage':true,'schema':{'openAPIV3Schema':{'type':'object','properties':{'spec':{'type':'object',"
		      "'properties':{'a':{'type':'string'},'b':{'type':'object'}}}}}},'selectableFields':[{'jsonPath':'.spec.a'},{'jsonPath':'.spec.a'},"
		      "{'jsonPath':'.spec.b'},{'jsonPath':'.spec.c'}]}", ""),
		  "spec.selectableFields[1].jsonPath: Duplicate value: '.spec.a'\n"
		  "spec.selectableFields[2].jsonPath: Invalid value: '.spec.b': must point to a field of type string,"
		  " boolean or integer. Enum string fields and strings with formats are allowed.\n"
		  "spec.selectableFields[3].jsonPath: Invalid value: '.spec.c': is an invalid path: does not refer to"
		  " a valid field" },
	};
	check_create_rows(t, ARRAY_LEN(t));
}

TEST(validate_crd_conversion)
{
	static const struct create_row t[] = {
		{ CRD(VERSION("v1", ""), ",'conversion':{'strategy':'Webhook','webhook':{'clientConfig':{'url':'https://a'},'conversionReviewVersions':['v1']}}"),
		  "" },
		{ CRD(VERSION("v1", ""), ",'conversion':{'strategy':'x'}"),
		  "spec.conversion.strategy: Unsupported value: 'x': supported values: 'None', 'Webhook'" },
		{ CRD(VERSION("v1", ""), ",'conversion':{'strategy':'Webhook'}"),
		  "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook\n"
		  "spec.conversion.conversionReviewVersions: Required value" },
		{ CRD(VERSION("v1", ""), ",'conversion':{'strategy':'None','webhook':{'clientConfig':{},'conversionReviewVersions':['v1']}}"),
		  "spec.conversion.webhookClientConfig: Forbidden: should not be set when strategy is not set to"
		  " Webhook\n"
		  "spec.conversion.conversionReviewVersions: Forbidden: should not be set when strategy is not set to"
		  " Webhook" },
		{ CRD(VERSION("v1", ""), ",'conversion':{'strategy':'Webhook','webhook':{'clientConfig':{},'conversionReviewVersions':['x','x','A']}}"),
		  "spec.conversion.webhookClientConfig: Required value: exactly one of url or service is required\n"
		  "spec.conversion.conversionReviewVersions[1]: Invalid value: 'x': duplicate version\n"
		  "spec.conversion.conversionReviewVersions[2]: Invalid value: 'A': " OLD_LABEL_TEXT "\n"
		  "spec.conversion.conversionReviewVersions: Invalid value: ['x','x','A']: must include at least one"
		  " of v1, v1beta1" },
	};
	check_create_rows(t, ARRAY_LEN(t));
}

TEST(validate_crd_update)
{
	static const struct update_row t[] = {
		{ ESTABLISHED(NAMES, "Namespaced"), ESTABLISHED(NAMES, "Namespaced"), "", "" },
		{ ESTABLISHED("'names':{'plural':'as','kind':'B'}", "Cluster"), ESTABLISHED(NAMES, "Namespaced"), "",
		  "spec.scope: Invalid value: 'Cluster': field is immutable\n"
		  "spec.names.kind: Invalid value: 'B': field is immutable" },
		{ CRD_WITH("", "'spec':{'group':'d.e','scope':'Cluster','names':{'plural':'bs','kind':'B'},'versions':[" VERSION("v1", "") "]}"), V1(""), "",
		  "spec.group: Invalid value: 'd.e': field is immutable\n"
		  "spec.names.plural: Invalid value: 'bs': field is immutable" },
		{ STORED(VERSION("v2", ""), "'v1'"), STORED(VERSION("v1", ""), "'v1'"), "",
		  "status.storedVersions[0]: Invalid value: 'v1': missing from spec.versions; v1 was previously a"
		  " storage version, and must remain in spec.versions until a storage migration ensures no data"
		  " remains persisted in v1 and removes v1 from status.storedVersions" },
		{ CONVERTED(",'caBundle':'AAEC'"), CONVERTED(""), "",
		  "spec.conversion.webhookClientConfig.caBundle: Invalid value: 'AAEC': unable to load root"
		  " certificates: unable to parse bytes as PEM block" },
		{ CONVERTED(",'caBundle':'AAEC'"), CONVERTED(",'caBundle':'AAEB'"), "", "" },
		{ STORED(VERSION("v1", "") "," SECOND(""), "'v1'"), STORED(VERSION("v1", ""), "'v1'"), "", "" },
		{ CRD_WITH("", "'spec':{'group':'b.c','scope':'Namespaced'," NAMES ",'versions':[" VERSION("v1", "") "]},"
			       "'status':{'acceptedNames':{'plural':'A','kind':'b c'}}"), V1(""), "status",
		  "status.acceptedNames.plural: Invalid value: 'A': " OLD_LABEL_TEXT "\n"
		  "status.acceptedNames.kind: Invalid value: 'b c': may have mixed case, but should otherwise match: "
		  OLD_LABEL_TEXT },
	};
	check_update_rows(t, ARRAY_LEN(t));
}
