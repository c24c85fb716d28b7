/* -f: files, directories, URLs and standard input, taken apart into documents. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fiber.h"
#include "base/mem.h"
#include "kubectl/builder.h"
#include "net/http_client.h"
#include "net/http_proxy.h"
#include "net/url.h"

enum { FILE_BYTES_MAX = 256 << 20, DEPTH_MAX = 64, URL_TRIES = 3, URL_REDIRECTS = 10 };

const struct ktl_flag ktl_file_flags[] = {
	{ "filename", 'f', KTL_LIST, offsetof(struct ktl_file_flags, filenames), NULL, "File, directory, URL, or - for standard input, with the objects", NULL },
	{ "kustomize", 'k', KTL_STRING, offsetof(struct ktl_file_flags, kustomize), NULL, NULL, NULL }, /* only to be refused in words */
	{ "recursive", 'R', KTL_BOOL, offsetof(struct ktl_file_flags, recursive), NULL, "Directories with all that are in them", NULL },
	{ 0 },
};

bool ktl_no_files(const struct ktl_file_flags *files) { return files->filenames.n == 0 && !files->kustomize[0]; }

/* ---- reading ---- */

static const char *go_error(int sys)
{
	switch (sys) {
	case ENOENT: return "no such file or directory";
	case EACCES: return "permission denied";
	case EISDIR: return "is a directory";
	case ENOTDIR: return "not a directory";
	default: return strerror(sys);
	}
}

int ktl_read_file(struct ktl *k, const char *path, str *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(FILE_BYTES_MAX);
	int fd = ktl_is(path, "-") ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = 0;
	char *room;
	if (fd < 0)
		return err_set(err, ERR_NOT_FOUND, "open %s: %s", path, go_error(errno));
	while ((room = buf_reserve(&b, 65536)) && (n = read(fd, room, 65536)) > 0)
		buf_commit(&b, (size_t)n);
	int sys = errno;
	if (fd != STDIN_FILENO)
		(void)close(fd);
	if (n < 0)
		return err_set(err, ERR_SYSTEM, "read %s: %s", path, go_error(sys));
	if (!room)
		return err_set(err, ERR_TOO_LARGE, "read %s: it is larger than %d bytes", path, FILE_BYTES_MAX);
	*ret = arena_str(&k->arena, buf_str(&b));
	return 0;
}

/* (suspends) *ret_to: where a redirect leads. */
static int fetch_once(struct ktl *k, const char *url, int *ret_status, str *ret_reason, str *ret_to, str *ret, struct err *err)
{
	struct tls_context *tls = NULL;
	struct http_proxy proxy;
	struct url parsed;
	int r = url_parse(&k->arena, str_of(url), &parsed, err);
	int through = r < 0 ? r : http_proxy_find(&k->arena, &parsed, &proxy, err);
	if (through < 0 || (r = tls_client_new(&(struct tls_options){ 0 }, &tls, err)) < 0)
		return MIN(through, r);
	struct http_client *c = http_client_new(&(struct http_client_options){ .tls = tls });
	struct http_request q = { .method = STR("GET"), .url = str_of(url), .proxy = through == 1 ? &proxy : NULL };
	const struct http1_head *head;
	struct http_call *call = NULL;
	str body = STR_NONE;
	if ((r = http_call_open(c, &q, &call, err)) == 0 && (r = http_call_head(call, &head, err)) == 0) {
		*ret_status = head->status;
		*ret_reason = arena_str(&k->arena, head->reason);
		*ret_to = arena_str(&k->arena, http_header_find(head->headers, head->n_headers, STR("location")));
		if ((r = http_call_read_all(call, FILE_BYTES_MAX, &body, err)) == 0)
			*ret = arena_str(&k->arena, body);
	}
	http_call_free(call);
	http_client_free(c);
	tls_context_free(tls);
	return r;
}

static bool is_redirect(int status) { return status == 301 || status == 302 || status == 303 || status == 307 || status == 308; }

/* A Location, seen from url; NULL: it is none. */
static const char *resolve(struct ktl *k, const char *url, str to)
{
	struct arena *a = &k->arena;
	struct url u;
	if (str_starts(to, STR("http://")) || str_starts(to, STR("https://")))
		return ktl_cstr(k, to);
	if (!to.n || url_parse(a, str_of(url), &u, NULL) < 0)
		return NULL;
	if (str_starts(to, STR("//")))
		return arena_printf(a, STR_FMT ":" STR_FMT, STR_ARG(u.scheme), STR_ARG(to)).p;
	if (to.p[0] != '/') {
		ptrdiff_t slash = str_rchr(u.path, '/');
		to = arena_join(a, slash < 0 ? STR("/") : str_head(u.path, (size_t)slash + 1), to);
	}
	return arena_printf(a, STR_FMT "://" STR_FMT STR_FMT, STR_ARG(u.scheme), STR_ARG(u.authority), STR_ARG(to)).p;
}

static int read_url(struct ktl *k, const char *url, str *ret)
{
	const char *at = url, *next;
	for (int i = 0, redirects = 0;; i++) {
		struct err err = ERR_INIT;
		int status = 0;
		str reason = STR_NONE, to = STR_NONE;
		int r = fetch_once(k, at, &status, &reason, &to, ret, &err);
		if (r == 0 && status == 200)
			return 0;
		if (r == 0 && is_redirect(status) && redirects++ < URL_REDIRECTS && (next = resolve(k, at, to))) {
			at = next;
			i = -1;
			continue;
		}
		if (i + 1 >= URL_TRIES || (r == 0 && status < 500)) {
			if (r < 0)
				return ktl_fail_connection(k, &err);
			return ktl_fail(k, "unable to read URL \"%s\", server reported %d " STR_FMT ", status code=%d", url, status, STR_ARG(reason), status);
		}
		(void)fiber_sleep_ms(1000, NULL);
	}
}

/* ---- documents ---- */

static void add_document(struct ktl *k, struct ktl_documents *list, str source, str json)
{
	if (list->n == list->cap) {
		struct ktl_document *more = ARENA_ARRAY(&k->arena, struct ktl_document, list->cap ? 2 * list->cap : 16);
		if (list->n)
			memcpy(more, list->v, list->n * sizeof(*more));
		list->v = more;
		list->cap = list->cap ? 2 * list->cap : 16;
	}
	list->v[list->n++] = (struct ktl_document){ source, json };
}

/* JSON texts one after another. */
static int split_json(struct ktl *k, struct ktl_documents *list, const char *source, str text)
{
	while ((text = str_trim(text)).n) {
		struct err err = ERR_INIT;
		struct val v;
		ptrdiff_t end = json_error_offset(text);
		str first = end < 0 ? text : str_head(text, (size_t)end);
		if (json_decode(&k->arena, first, &(struct json_decode_options){ 0 }, &v, &err) < 0)
			return ktl_fail(k, "error parsing %s: error converting YAML to JSON: %s", source, err.msg);
		add_document(k, list, str_of(source), str_trim(first));
		text = str_skip(text, first.n);
	}
	return 0;
}

/* What is wrong with a text that begins as JSON is said of it as JSON. */
static int fail_syntax(struct ktl *k, const char *source, str text, const struct err *yaml)
{
	struct err err = ERR_INIT;
	struct val v;
	str head = str_trim(text);
	ptrdiff_t at = json_error_offset(head);
	if (!str_starts(head, STR("{")) || at < 0 || json_decode(&k->arena, head, &(struct json_decode_options){ 0 }, &v, &err) == 0)
		return ktl_fail(k, "error parsing %s: error converting YAML to JSON: %s", source, yaml->msg);
	return ktl_fail(k, "error parsing %s: json: offset %td: %s", source, at + 1, err.msg);
}

static int split_yaml(struct ktl *k, struct ktl_documents *list, const char *source, str text)
{
	CLEANUP(yaml_closep) struct yaml_stream *s = yaml_open(text);
	CLEANUP(buf_done) struct buf json = BUF_INIT(FILE_BYTES_MAX);
	struct err err = ERR_INIT;
	int r;
	while ((r = yaml_next(s, &json, &err)) > 0) {
		if (!str_eq(buf_str(&json), STR("null")))
			add_document(k, list, str_of(source), arena_str(&k->arena, buf_str(&json)));
		buf_reset(&json);
	}
	return r < 0 ? fail_syntax(k, source, text, &err) : 0;
}

/* JSON texts may stand one after another without anything between them; all else, also a mapping in braces, is YAML. */
static int split(struct ktl *k, struct ktl_documents *list, const char *source, str text)
{
	if (str_starts(text, STR("\xef\xbb\xbf")))
		text = str_skip(text, 3);
	str head = str_trim(text);
	ptrdiff_t end = json_error_offset(head);
	str first = end < 0 ? head : str_trim(str_head(head, (size_t)end));
	bool json = str_starts(head, STR("{")) && first.n && json_error_offset(first) < 0;
	return json ? split_json(k, list, source, text) : split_yaml(k, list, source, text);
}

static int read_path(struct ktl *k, struct ktl_documents *list, const char *path)
{
	struct err err = ERR_INIT;
	str text;
	bool in = ktl_is(path, "-");
	if (ktl_read_file(k, path, &text, &err) < 0)
		return ktl_fail_err(k, &err);
	return split(k, list, in ? "STDIN" : path, text);
}

/* ---- directories ---- */

static int by_name(const void *x, const void *y) { return strcmp(*(const char *const *)x, *(const char *const *)y); }

static bool has_extension(const char *name)
{
	str s = str_of(name);
	return str_ends(s, STR(".json")) || str_ends(s, STR(".yaml")) || str_ends(s, STR(".yml"));
}

/* The names in it, sorted; n is their number, -1: it cannot be read. */
static const char **entries(struct ktl *k, const char *path, ptrdiff_t *ret_n)
{
	DIR *d = opendir(path);
	struct dirent *e;
	size_t n = 0, cap = 64;
	const char **names = ARENA_ARRAY(&k->arena, const char *, cap);
	*ret_n = -1;
	if (!d)
		return names;
	while ((e = readdir(d))) {
		if (ktl_is(e->d_name, ".") || ktl_is(e->d_name, ".."))
			continue;
		if (n == cap) {
			const char **more = ARENA_ARRAY(&k->arena, const char *, 2 * cap);
			memcpy(more, names, n * sizeof(*more));
			names = more;
			cap *= 2;
		}
		names[n++] = ktl_cstr(k, str_of(e->d_name));
	}
	(void)closedir(d);
	qsort(names, n, sizeof(*names), by_name);
	*ret_n = (ptrdiff_t)n;
	return names;
}

static int read_directory(struct ktl *k, struct ktl_documents *list, const char *path, bool recursive, int depth, size_t *n_files)
{
	ptrdiff_t n;
	const char **names = entries(k, path, &n);
	int r = 0;
	if (n < 0 || depth > DEPTH_MAX)
		return ktl_fail(k, "open %s: %s", path, depth > DEPTH_MAX ? "too many levels" : go_error(errno));
	for (ptrdiff_t i = 0; i < n; i++) {
		bool slash = str_ends(str_of(path), STR("/"));
		const char *full = arena_printf(&k->arena, "%s%s%s", path, slash ? "" : "/", names[i]).p;
		struct stat st;
		if (stat(full, &st) < 0)
			continue;
		if (S_ISDIR(st.st_mode)) {
			if (recursive && read_directory(k, list, full, recursive, depth + 1, n_files) < 0)
				r = -1;
		} else if (has_extension(names[i])) {
			++*n_files;
			if (read_path(k, list, full) < 0)
				r = -1;
		}
	}
	return r;
}

static int read_match(struct ktl *k, struct ktl_documents *list, const char *path, bool recursive)
{
	struct stat st;
	size_t n_files = 0;
	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return read_path(k, list, path);
	list->many = true;
	int r = read_directory(k, list, path, recursive, 0, &n_files);
	if (r == 0 && n_files == 0)
		return ktl_fail(k, "error reading [%s]: recognized file extensions are [.json .yaml .yml]", path);
	return r;
}

static int read_pattern(struct ktl *k, struct ktl_documents *list, const char *pattern, bool recursive)
{
	struct stat st;
	glob_t g;
	int r = 0;
	if (stat(pattern, &st) == 0 || errno != ENOENT)
		return read_match(k, list, pattern, recursive);
	if (glob(pattern, 0, NULL, &g) != 0)
		return ktl_fail(k, "the path \"%s\" does not exist", pattern);
	list->many |= g.gl_pathc > 1;
	for (size_t i = 0; i < g.gl_pathc; i++)
		if (read_match(k, list, ktl_cstr(k, str_of(g.gl_pathv[i])), recursive) < 0)
			r = -1;
	globfree(&g);
	return r;
}

/* ---- all ---- */

static int read_one(struct ktl *k, struct ktl_documents *list, const char *name, bool recursive)
{
	str text;
	if (ktl_is(name, "-")) {
		list->many = true;
		return read_path(k, list, name);
	}
	if (str_starts(str_of(name), STR("http://")) || str_starts(str_of(name), STR("https://")))
		return read_url(k, name, &text) < 0 ? -1 : split(k, list, name, text);
	return read_pattern(k, list, name, recursive);
}

int ktl_read_files(struct ktl *k, const struct ktl_file_flags *files, bool keep_going, struct ktl_documents *ret)
{
	*ret = (struct ktl_documents){ .many = files->filenames.n > 1 };
	if (files->kustomize[0])
		return ktl_fail(k, "kustomizations are not known to this kubectl: -k %s", files->kustomize);
	for (size_t i = 0; i < files->filenames.n; i++)
		if (read_one(k, ret, files->filenames.v[i], files->recursive) < 0 && !keep_going)
			return -1;
	return 0;
}

/* (suspends) What is asked for may have no end, as a watch or a log that is followed: it is shown as it comes. */
static int raw_stream(struct ktl *k, const struct client_raw *q)
{
	enum { PIECE = 32 * 1024 };
	CLEANUP(client_stream_freep) struct client_stream *s = NULL;
	CLEANUP(mem_freep) char *room = mem_alloc(PIECE);
	struct err err = ERR_INIT;
	ssize_t n;
	DEADLINE_SCOPE(k->timeout_ms ? k->timeout_ms : INT64_MAX / 2000000);
	if (ktl_open_stream(k, q, &s) < 0)
		return -1;
	while ((n = client_stream_read(s, room, PIECE, &err)) > 0) {
		(void)fwrite(room, 1, (size_t)n, stdout);
		if (ktl_flush() != 0)
			break;
	}
	return n < 0 ? ktl_fail_connection(k, &err) : 0;
}

/* A path, in which spaces may stand for themselves, or a whole URL, of which only the path counts. */
static int parse_raw(struct ktl *k, const char *raw, struct client_raw *ret)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(KTL_TEXT_MAX);
	bool path = raw[0] == '/';
	struct err err = ERR_INIT;
	struct url url;
	buf_add(&text, path ? STR("https://server") : STR_NONE);
	for (const char *at = raw; *at; at++)
		buf_add(&text, *at == ' ' ? STR("%20") : str_span(at, 1));
	if (url_parse(&k->arena, arena_str(&k->arena, buf_str(&text)), &url, &err) < 0)
		return ktl_fail(k, "--raw must be a valid URL path: parse " STR_FMT ": %s", STR_ARG(ktl_quote(k, str_of(raw))),
				path || strstr(raw, "://") ? err.msg : "invalid URI for request");
	ret->path = url.path.n ? url.path : STR("/");
	ret->query = url.query;
	return 0;
}

int ktl_raw(struct ktl *k, str method, const char *raw, const char *file)
{
	struct client_raw q = { .method = method, .content_type = file ? STR("application/json") : STR_NONE };
	struct err err = ERR_INIT;
	str text;
	if (parse_raw(k, raw, &q) < 0)
		return -1;
	if (file && ktl_read_file(k, file, &q.body, &err) < 0)
		return ktl_fail_err(k, &err);
	if (str_eq(method, STR("GET")))
		return raw_stream(k, &q);
	if (ktl_call_text(k, &q, &text) < 0)
		return -1;
	(void)fwrite(text.n ? text.p : "", 1, text.n, stdout);
	return 0;
}
