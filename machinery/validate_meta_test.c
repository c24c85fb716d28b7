/* Expectations are the answers of Kubernetes 1.36 to these objects. */
#include "machinery/validate_testing.h"

#define TEMPLATE "'template':{'spec':{'containers':[{'name':'c','image':'i'}]}}"
#define META(meta) "{'apiVersion':'v1','kind':'PodTemplate','metadata':{" meta "}," TEMPLATE "}"
#define NAMED(meta) META("'name':'x','namespace':'n'" meta)
#define STORED(meta) META("'name':'x','namespace':'n','uid':'22222222-2222-4222-8222-222222222222','resourceVersion':'5'" meta)
#define BUDGET_NAMED(name) "{'apiVersion':'policy/v1','kind':'PodDisruptionBudget','metadata':{'name':'" name "','namespace':'n'}}"
#define BUDGET(conditions) \
	"{'apiVersion':'policy/v1','kind':'PodDisruptionBudget','metadata':{'name':'x','namespace':'n'," \
	"'uid':'22222222-2222-4222-8222-222222222222','resourceVersion':'5'},'status':{'conditions':[" conditions "]}}"

TEST(validate_meta)
{
	static const struct create_row t[] = {
		{ NAMED(""),
		  "" },
		{ META(""),
		  "metadata.name: Required value: name or generateName is required\n"
		  "metadata.namespace: Required value" },
		{ META("'name':'A','namespace':'B'"),
		  "metadata.name: Invalid value: 'A': " SUBDOMAIN_TEXT "\n"
		  "metadata.namespace: Invalid value: 'B': " LABEL_TEXT },
		{ META("'name':'x','generateName':'A-','namespace':'n','generation':-1"),
		  "" },
		{ NAMED(",'labels':{'a/b/c':'x','ok':'-'},'annotations':{'A/B':'x','-':'y'}"),
		  "metadata.labels: Invalid value: 'a/b/c': a valid label key must consist of alphanumeric characters, '-',"
		  " '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or"
		  " '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional"
		  " DNS subdomain prefix and '/' (e.g. 'example.com/MyName')\n"
		  "metadata.labels: Invalid value: '-': " VALUE_TEXT "\n"
		  "metadata.annotations: Invalid value: '-': " NAME_PART_TEXT },
		{ NAMED(",'ownerReferences':[{'apiVersion':'','kind':'','name':'','uid':''},{'apiVersion':'v1',"
		      "'kind':'Event','name':'a','uid':'u','controller':true},{'apiVersion':'a/b','kind':'K',"
		      "'name':'a','uid':'u','controller':true}]"),
		  "metadata.ownerReferences.apiVersion: Invalid value: '': version must not be empty\n"
		  "metadata.ownerReferences.kind: Invalid value: '': must not be empty\n"
		  "metadata.ownerReferences.name: Invalid value: '': must not be empty\n"
		  "metadata.ownerReferences.uid: Invalid value: '': must not be empty\n"
		  "metadata.ownerReferences: Invalid value:"
		  " {'apiVersion':'v1','kind':'Event','name':'a','uid':'u','controller':true}: /v1, Kind=Event is"
		  " disallowed from being an owner\n"
		  "metadata.ownerReferences: Invalid value:"
		  " [{'apiVersion':'','kind':'','name':'','uid':''},{'apiVersion':'v1','kind':'Event','name':'a',"
		  "'uid':'u','"
		  "controller':true},{'apiVersion':'a/b','kind':'K','name':'a','uid':'u','controller':true}]: Only one"
		  " reference can have Controller set to true. Found 'true' in references for Event/a and K/a" },
		{ NAMED(",'finalizers':['foo','orphan','foregroundDeletion','-']"),
		  "metadata.finalizers: Invalid value: '-': " NAME_PART_TEXT "\n"
		  "metadata.finalizers: Invalid value: ['foo','orphan','foregroundDeletion','-']: finalizer orphan and"
		  " foregroundDeletion cannot be both set\n"
		  "metadata.finalizers[0]: Invalid value: 'foo': name is neither a standard finalizer name nor is it fully"
		  " qualified\n"
		  "metadata.finalizers[3]: Invalid value: '-': name is neither a standard finalizer name nor is it fully"
		  " qualified" },
		{ NAMED(",'managedFields':[{'manager':'a\\u0007','operation':'X','fieldsType':'Y'}]"),
		  "metadata.managedFields[0].operation: Invalid value: 'X': must be `Apply` or `Update`\n"
		  "metadata.managedFields[0].fieldsType: Invalid value: 'Y': must be `FieldsV1`\n"
		  "metadata.managedFields[0].manager: Invalid value: 'a\\a': invalid character U+0007 (at position 1)" },
		{ BUDGET_NAMED("a/b%"),
		  "metadata.name: Invalid value: 'a/b%': may not contain '/'\n"
		  "metadata.name: Invalid value: 'a/b%': may not contain '%'" },
		{ BUDGET_NAMED(".."),
		  "metadata.name: Invalid value: '..': may not be '..'" },
	};
	check_create_rows(t, ARRAY_LEN(t));
}

TEST(validate_meta_update)
{
	static const struct update_row t[] = {
		{ STORED(",'labels':{'a':'b'}"),
		  STORED(""), "",
		  "" },
		{ NAMED(""),
		  STORED(""), "",
		  "metadata.resourceVersion: Invalid value: '': must be specified for an update\n"
		  "metadata.resourceVersion: Invalid value: '': must be specified for an update" },
		{ META("'name':'y','namespace':'m','uid':'z','resourceVersion':'6',"
		       "'creationTimestamp':'2026-01-01T00:00:00Z'"),
		  STORED(",'creationTimestamp':'2025-01-01T00:00:00Z'"), "",
		  "metadata.name: Invalid value: 'y': field is immutable\n"
		  "metadata.namespace: Invalid value: 'm': field is immutable\n"
		  "metadata.uid: Invalid value: 'z': field is immutable\n"
		  "metadata.name: Invalid value: 'y': field is immutable\n"
		  "metadata.namespace: Invalid value: 'm': field is immutable\n"
		  "metadata.uid: Invalid value: 'z': field is immutable" },
		{ STORED(",'finalizers':['example.com/a','example.com/b']"),
		  STORED(",'finalizers':['example.com/a'],'deletionTimestamp':'2026-01-01T00:00:00Z'"), "",
		  "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new"
		  " finalizers []string{'example.com/b'}\n"
		  "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new"
		  " finalizers []string{'example.com/b'}" },
	};
	check_update_rows(t, ARRAY_LEN(t));
}

TEST(validate_conditions)
{
	static const struct update_row t[] = {
		{ BUDGET("{},{'type':'a','status':'X','observedGeneration':-1,'lastTransitionTime':'2026-01-01T00:00:00Z',"
		      "'reason':'-'},{'type':'a','status':'True','reason':'A:b',"
		      "'lastTransitionTime':'2026-01-01T00:00:00Z'}"),
		  BUDGET(""), "status",
		  "status.conditions[0].type: Invalid value: '': name part must be non-empty\n"
		  "status.conditions[0].type: Invalid value: '': " NAME_PART_TEXT "\n"
		  "status.conditions[0].status: Unsupported value: '': supported values: 'False', 'True', 'Unknown'\n"
		  "status.conditions[0].lastTransitionTime: Required value\n"
		  "status.conditions[0].reason: Required value\n"
		  "status.conditions[1].status: Unsupported value: 'X': supported values: 'False', 'True', 'Unknown'\n"
		  "status.conditions[1].observedGeneration: Invalid value: -1: must be greater than or equal to zero\n"
		  "status.conditions[1].reason: Invalid value: '-': a condition reason must start with alphabetic"
		  " character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an"
		  " alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or"
		  " 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')\n"
		  "status.conditions[2].type: Duplicate value: 'a'" },
	};
	check_update_rows(t, ARRAY_LEN(t));
}
