/* Which requests do something of their own, and which show another object than the stored one. */
#include "apiserver/subresource.h"

#include "apiserver/authn/authn.h"
#include "apiserver/authz/authz.h"
#include "apiserver/metrics.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "machinery/convert.h"

#define CORE STR_INIT("")

static const struct subresource table[] = {
	{ CORE, STR_INIT("bindings"), STR_INIT(""), binding_handle },
	{ CORE, STR_INIT("componentstatuses"), STR_INIT(""), component_handle },
	{ CORE, STR_INIT("nodes"), STR_INIT("proxy"), proxy_handle },
	{ CORE, STR_INIT("pods"), STR_INIT("attach"), attach_handle },
	{ CORE, STR_INIT("pods"), STR_INIT("binding"), binding_handle },
	{ CORE, STR_INIT("pods"), STR_INIT("eviction"), eviction_handle },
	{ CORE, STR_INIT("pods"), STR_INIT("exec"), exec_handle },
	{ CORE, STR_INIT("pods"), STR_INIT("log"), log_handle },
	{ CORE, STR_INIT("pods"), STR_INIT("portforward"), portforward_handle },
	{ CORE, STR_INIT("pods"), STR_INIT("proxy"), proxy_handle },
	{ CORE, STR_INIT("serviceaccounts"), STR_INIT("token"), token_request_handle },
	{ CORE, STR_INIT("services"), STR_INIT("proxy"), proxy_handle },
	{ STR_INIT("authentication.k8s.io"), STR_INIT("selfsubjectreviews"), STR_INIT(""), self_review_handle },
	{ STR_INIT("authentication.k8s.io"), STR_INIT("tokenreviews"), STR_INIT(""), token_review_handle },
	{ STR_INIT("authorization.k8s.io"), STR_INIT("localsubjectaccessreviews"), STR_INIT(""), access_review_handle },
	{ STR_INIT("authorization.k8s.io"), STR_INIT("selfsubjectaccessreviews"), STR_INIT(""), access_review_handle },
	{ STR_INIT("authorization.k8s.io"), STR_INIT("selfsubjectrulesreviews"), STR_INIT(""), rules_review_handle },
	{ STR_INIT("authorization.k8s.io"), STR_INIT("subjectaccessreviews"), STR_INIT(""), access_review_handle },
	{ .handle = NULL },
};

static const struct {
	str group, resource, name;
	const struct subresource_view *view;
} views[] = {
	{ CORE, STR_INIT("replicationcontrollers"), STR_INIT("scale"), &scale_view },
	{ STR_INIT("apps"), STR_INIT("deployments"), STR_INIT("scale"), &scale_view },
	{ STR_INIT("apps"), STR_INIT("replicasets"), STR_INIT("scale"), &scale_view },
	{ STR_INIT("apps"), STR_INIT("statefulsets"), STR_INIT("scale"), &scale_view },
};

const struct subresource *subresource_find(const struct request *q)
{
	for (const struct subresource *s = table; s->handle; s++)
		if (str_eq(s->resource, q->resource) && str_eq(s->name, q->subresource) && str_eq(s->group, q->group))
			return s;
	return NULL;
}

int subresource_run(const struct subresource *s, struct request *q, struct err *err)
{
	int r = q->verb == REQUEST_CONNECT ? connect_admit(q, err) : 0;
	if (r < 0)
		return r;
	struct metrics_series *series = q->timeout_ms ? NULL : metrics_series(q);
	metrics_longrunning(series, 1);
	r = s->handle(q, err);
	metrics_longrunning(series, -1);
	return r;
}

const struct subresource_view *subresource_view(const struct request *q)
{
	for (size_t i = 0; q->subresource.n && i < ARRAY_LEN(views); i++)
		if (str_eq(views[i].resource, q->resource) && str_eq(views[i].name, q->subresource) &&
		    str_eq(views[i].group, q->group))
			return views[i].view;
	return NULL;
}

int subresource_answer(struct request *q, struct err *err)
{
	const struct subresource_view *view = subresource_view(q);
	if (!view || q->answer.kind != ANSWER_OBJECT)
		return 0;
	struct val object = q->answer.val;
	if (q->answer.object) {
		object_unref(q->current);
		q->current = TAKE(q->answer.object); /* what is shown borrows from it */
		int r = convert_object(q->arena, q->current->val, q->endpoint->kind->hub, q->endpoint->type, &object, err);
		if (r < 0)
			return r;
	}
	int r = view->show(q, object, false, &object, err);
	answer_val(q, q->answer.status, object, view->type);
	return r;
}

void answer_created(struct request *q)
{
	struct val status = OBJECT(q->arena, F(kind, VAL_LIT("Status")), F(apiVersion, VAL_LIT("v1")),
				   F(metadata, VAL_EMPTY_OBJECT), F(status, VAL_LIT("Success")), F(code, val_of_int(201)));
	answer_done(q);
	answer_val(q, 201, status, TYPE(meta_v1, Status));
}
