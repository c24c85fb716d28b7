/*
 * Streams and proxies pass admission, too: the options that they are opened with are the object that is judged, and that
 * can be changed.
 */
#include "apiserver/admission/admission.h"
#include "apiserver/apiserver.h"
#include "apiserver/subresource.h"
#include "codec/atoms.h"
#include "codec/types.h"

static const struct type *options_type(const struct request *q)
{
	if (str_eq(q->subresource, STR("exec")))
		return TYPE(core_v1, PodExecOptions);
	if (str_eq(q->subresource, STR("attach")))
		return TYPE(core_v1, PodAttachOptions);
	if (str_eq(q->subresource, STR("portforward")))
		return TYPE(core_v1, PodPortForwardOptions);
	if (str_eq(q->resource, STR("pods")))
		return TYPE(core_v1, PodProxyOptions);
	return str_eq(q->resource, STR("services")) ? TYPE(core_v1, ServiceProxyOptions) : TYPE(core_v1, NodeProxyOptions);
}

static struct val flag(const struct request *q, str name)
{
	return request_query_bool(q, name) ? val_of_bool(true) : VAL_EMPTY;
}

/* All values of a parameter; numbers: those that are some. */
static struct val values(struct request *q, str name, bool numbers)
{
	struct val_builder b = val_builder(q->arena);
	for (size_t i = 0; i < q->n_query; i++) {
		int64_t n;
		if (!str_eq(q->query[i].name, name))
			continue;
		if (!numbers)
			val_add_item(&b, val_of_str(q->query[i].value));
		else if (str_to_i64(q->query[i].value, &n))
			val_add_item(&b, val_of_int(n));
	}
	return b.n ? val_end_list(&b) : VAL_EMPTY;
}

static struct val options_of(struct request *q, const struct type *type)
{
	struct val kind = val_of_str(type->name), version = VAL_LIT("v1");
	if (type == TYPE(core_v1, PodPortForwardOptions))
		return OBJECT(q->arena, F(kind, kind), F(apiVersion, version), F(ports, values(q, STR("ports"), true)));
	if (type != TYPE(core_v1, PodExecOptions) && type != TYPE(core_v1, PodAttachOptions))
		return OBJECT(q->arena, F(kind, kind), F(apiVersion, version),
			      F(path, q->rest.n ? val_of_str(q->rest) : VAL_EMPTY));
	str container = request_query(q, STR("container"));
	return OBJECT(q->arena, F(kind, kind), F(apiVersion, version), F(stdin, flag(q, STR("stdin"))),
		      F(stdout, flag(q, STR("stdout"))), F(stderr, flag(q, STR("stderr"))), F(tty, flag(q, STR("tty"))),
		      F(container, container.n ? val_of_str(container) : VAL_EMPTY),
		      F(command, type == TYPE(core_v1, PodExecOptions) ? values(q, STR("command"), false) : VAL_EMPTY));
}

/* The query that says the same as the options. */
static void take_options(struct request *q, struct val options)
{
	size_t n = 0;
	VAL_EACH_MEMBER(m, options)
		n += m->val.type == VAL_LIST ? m->val.n : 1;
	q->query = ARENA_ARRAY(q->arena, struct query_parameter, n);
	q->n_query = 0;
	VAL_EACH_MEMBER(m, options) {
		str name = atom_str(m->key);
		if (m->val.type == VAL_BOOL)
			q->query[q->n_query++] = (struct query_parameter){ name, val_as_bool(m->val) ? STR("true") : STR("false") };
		else if (m->val.type == VAL_STRING)
			q->query[q->n_query++] = (struct query_parameter){ name, val_as_str(m->val) };
		VAL_EACH(item, m->val)
			q->query[q->n_query++] = (struct query_parameter){
				name, item->type == VAL_INT ? arena_printf(q->arena, "%lld", (long long)item->i) : val_as_str(*item)
			};
	}
}

int connect_admit(struct request *q, struct err *err)
{
	const struct type *type = options_type(q);
	struct val options = options_of(q, type), before = options;
	if (request_query(q, STR("dryRun")).p)
		return fail_bad_request(q, "dryRun is not supported");
	int r = admission_pass(q, type, &options, err);
	if (r == 0 && !str_eq(q->subresource, STR("proxy")) && !val_equal(options, before))
		take_options(q, options);
	return r;
}
