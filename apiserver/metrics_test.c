#include "apiserver/documents_testing.h"

static bool shows(struct fixture *f, const char *line)
{
	str text = f->q.answer.bytes;
	ptrdiff_t at = str_find(text, str_of(line));
	return at >= 0 && (!at || text.p[at - 1] == '\n') && text.p[(size_t)at + strlen(line)] == '\n';
}

static struct request *pod_request(struct fixture *f, enum request_verb verb, const char *name)
{
	struct request *q = ARENA_NEW(&f->arena, struct request);
	f->http = (struct http_exchange){ .arena = &f->arena };
	q->server = &f->server;
	q->http = &f->http;
	q->is_resource = true;
	q->verb = verb;
	q->namespace = STR("default");
	q->name = str_of(name);
	q->endpoint = kinds_endpoint(&f->server.kinds, STR(""), STR("v1"), STR("pods"), STR(""));
	return q;
}

TEST(metrics_requests)
{
	struct fixture f;
	fixture_init(&f);
	struct request *get = pod_request(&f, REQUEST_GET, "x");
	metrics_request(get, 200, 4000000);
	metrics_request(get, 200, 300000000);
	metrics_request(get, 404, 90000000000);
	struct request *list = pod_request(&f, REQUEST_LIST, "");
	metrics_request(list, 200, 1);
	struct request *watch = pod_request(&f, REQUEST_WATCH, "");
	watch->answer.kind = ANSWER_SENT;
	metrics_request(watch, 200, 1);
	struct metrics_series *s = metrics_series(watch);
	metrics_longrunning(s, 1);
	metrics_watch_event(s, 1500);
	metrics_watch_event(s, 100);
	struct metrics_series *ended = metrics_series(pod_request(&f, REQUEST_CONNECT, "x"));
	metrics_longrunning(ended, 1);
	metrics_longrunning(ended, -1);
	metrics_store(f.server.metrics, get->endpoint->kind, METRICS_STORE_UPDATE, true, 30000000);
	CHECK_INT(fixture_get(&f, "/healthz", NULL), 0);
	metrics_request(&f.q, 500, 1);
	f.q.path = STR("/tmp/x");
	metrics_request(&f.q, 404, 1);

	CHECK_INT(fixture_get(&f, "/metrics", NULL), 0);
	static const char *const lines[] = {
#define POD "group=\"\",resource=\"pods\",scope=\"resource\",subresource=\"\",verb=\"GET\",version=\"v1\""
		"# TYPE apiserver_request_total counter",
		"apiserver_request_total{code=\"200\",component=\"apiserver\",dry_run=\"\"," POD "} 2",
		"apiserver_request_total{code=\"404\",component=\"apiserver\",dry_run=\"\"," POD "} 1",
		"apiserver_request_duration_seconds_bucket{component=\"apiserver\",dry_run=\"\"," POD ",le=\"0.005\"} 1",
		"apiserver_request_duration_seconds_bucket{component=\"apiserver\",dry_run=\"\"," POD ",le=\"0.4\"} 2",
		"apiserver_request_duration_seconds_bucket{component=\"apiserver\",dry_run=\"\"," POD ",le=\"60\"} 2",
		"apiserver_request_duration_seconds_bucket{component=\"apiserver\",dry_run=\"\"," POD ",le=\"+Inf\"} 3",
		"apiserver_request_duration_seconds_sum{component=\"apiserver\",dry_run=\"\"," POD "} 90.304",
		"apiserver_request_duration_seconds_count{component=\"apiserver\",dry_run=\"\"," POD "} 3",
		"apiserver_longrunning_requests{component=\"apiserver\",group=\"\",resource=\"pods\",scope=\"namespace\",subresource=\"\","
		"verb=\"WATCH\",version=\"v1\"} 1",
		"apiserver_longrunning_requests{component=\"apiserver\",group=\"\",resource=\"pods\",scope=\"resource\",subresource=\"\","
		"verb=\"CONNECT\",version=\"v1\"} 0",
		"apiserver_request_total{code=\"500\",component=\"apiserver\",dry_run=\"\",group=\"\",resource=\"\",scope=\"\","
		"subresource=\"/healthz\",verb=\"GET\",version=\"\"} 1",
		"apiserver_watch_events_total{group=\"\",resource=\"pods\",version=\"v1\"} 2",
		"apiserver_watch_events_sizes_bucket{group=\"\",resource=\"pods\",version=\"v1\",le=\"1024\"} 1",
		"apiserver_watch_events_sizes_sum{group=\"\",resource=\"pods\",version=\"v1\"} 1600",
		"etcd_request_duration_seconds_bucket{group=\"\",operation=\"update\",resource=\"pods\",le=\"0.05\"} 1",
		"etcd_request_errors_total{group=\"\",operation=\"update\",resource=\"pods\"} 1",
		"apiserver_storage_objects{resource=\"deployments.apps\"} 0",
		"# TYPE process_resident_memory_bytes gauge",
	};
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		CHECK_ROW(i, shows(&f, lines[i]));
	CHECK(str_find(f.q.answer.bytes, STR("verb=\"WATCH\",version=\"v1\",le=")) < 0);
	CHECK(str_find(f.q.answer.bytes, STR("/tmp")) < 0);
	CHECK(str_find(f.q.answer.bytes, STR("git_version=\"v1.36.4\"")) > 0);
	fixture_done(&f);
}
