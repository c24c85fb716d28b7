/* STAGE_STORE: read or write. */
#include "store/store.h"

#include "apiserver/documents.h"
#include "apiserver/pipeline.h"
#include "apiserver/read.h"
#include "apiserver/subresource.h"
#include "apiserver/write.h"

static int answered(int r)
{
	return r < 0 ? r : r == STAGE_AGAIN ? STAGE_AGAIN : STAGE_ANSWER;
}

static int read_or_write(struct request *q, struct err *err)
{
	switch (q->verb) {
	case REQUEST_GET: return read_get(q, err);
	case REQUEST_LIST: return read_list(q, err);
	case REQUEST_WATCH: return read_watch(q, err);
	case REQUEST_CREATE:
	case REQUEST_UPDATE:
	case REQUEST_PATCH: return write_commit(q, err);
	case REQUEST_DELETE: return write_delete(q, err);
	case REQUEST_DELETE_COLLECTION: return write_delete_collection(q, err);
	default: return fail_method_not_allowed(q);
	}
}

int stage_store(struct request *q, struct err *err)
{
	if (!q->is_resource) {
		int r = nonresource_handle(q, err);
		if (r == -ERR_NOT_FOUND && !val_exists(q->failure)) {
			answer_page_not_found(q);
			r = 0;
		}
		return answered(r);
	}
	const struct subresource *own = subresource_find(q);
	if (own)
		return answered(subresource_run(own, q, err));
	if (!q->endpoint->kind)
		return fail_no_such_resource(q);
	int r = read_or_write(q, err);
	return answered(r == 0 ? subresource_answer(q, err) : r);
}
