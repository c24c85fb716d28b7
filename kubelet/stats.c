/*
 * Where figures come from: containers and networks from the runtime by CRI, pods and classes from their cgroups, the node from /proc,
 * volumes from walks through them. A walk can take long, so it is done each minute, and for a single pod not before twenty times
 * what the last one took.
 */
#include "kubelet/stats.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/fiber_io.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "kubelet/cri_config.h"
#include "kubelet/pod_rules.h"
#include "kubelet/stats_priv.h"

enum { PROC_TEXT_MAX = 1 << 20, MEASURE_MS = 60000, MEASURE_SHARE = 20, RATE_MIN_MS = 1000, RATE_KEEP_S = 600 };

/* ---- the machine ---- */

struct fs_look stats_fs(const char *path)
{
	struct statvfs v;

	if (statvfs(path, &v) < 0)
		return (struct fs_look){ 0 };
	return (struct fs_look){ true, (uint64_t)v.f_blocks * v.f_frsize, (uint64_t)v.f_bavail * v.f_frsize,
				 (uint64_t)(v.f_blocks - v.f_bfree) * v.f_frsize, v.f_files, v.f_ffree };
}

/* "MemTotal:  1024 kB" or "pgfault 12": the number behind a key at the beginning of a line. */
static uint64_t number_of(str text, str key)
{
	for (str line; text.n;) {
		int64_t n;
		str number;
		(void)str_cut(text, '\n', &line, &text);
		if (!str_starts(line, key) || line.n == key.n || (line.p[key.n] != ' ' && line.p[key.n] != ':'))
			continue;
		(void)str_cut(str_trim(str_skip(line, key.n + 1)), ' ', &number, &line);
		return str_to_i64(number, &n) && n >= 0 ? (uint64_t)n : 0;
	}
	return 0;
}

struct memory_look stats_memory(void)
{
	CLEANUP(buf_done) struct buf info = BUF_INIT(PROC_TEXT_MAX), events = BUF_INIT(PROC_TEXT_MAX);
	struct memory_look m = { 0 };

	if (file_read("/proc/meminfo", &info, NULL) < 0)
		return m;
	(void)file_read("/proc/vmstat", &events, NULL);
	str text = buf_str(&info);
	uint64_t inactive = number_of(text, STR("Inactive(file)")) * 1024;
	m.total = number_of(text, STR("MemTotal")) * 1024;
	m.usage = m.total - MIN(number_of(text, STR("MemFree")) * 1024, m.total);
	m.working_set = m.usage - MIN(inactive, m.usage);
	m.rss = number_of(text, STR("AnonPages")) * 1024;
	m.swap_total = number_of(text, STR("SwapTotal")) * 1024;
	m.swap_used = m.swap_total - MIN(number_of(text, STR("SwapFree")) * 1024, m.swap_total);
	m.faults = number_of(buf_str(&events), STR("pgfault"));
	m.major_faults = number_of(buf_str(&events), STR("pgmajfault"));
	return m;
}

static int64_t proc_number(const char *path)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(PROC_TEXT_MAX);
	int64_t n;

	return file_read(path, &b, NULL) >= 0 && str_to_i64(str_trim(buf_str(&b)), &n) ? n : INT64_MAX;
}

void stats_tasks(int64_t *ret_max, int64_t *ret_now)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(PROC_TEXT_MAX);
	int64_t max = MIN(proc_number("/proc/sys/kernel/pid_max"), proc_number("/proc/sys/kernel/threads-max"));
	str rest, word, running;

	*ret_max = max == INT64_MAX ? -1 : max;
	*ret_now = -1;
	if (file_read("/proc/loadavg", &b, NULL) < 0)
		return;
	/* 1.36 3.49 4.53 2/3518 3715089 */
	rest = buf_str(&b);
	for (size_t i = 0; i < 4; i++)
		(void)str_cut(rest, ' ', &word, &rest);
	if (!str_cut(word, '/', &running, &rest) || !str_to_i64(rest, ret_now))
		*ret_now = -1;
}

static int64_t boot_time(void)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(PROC_TEXT_MAX);

	return file_read("/proc/stat", &b, NULL) < 0 ? 0 : (int64_t)number_of(buf_str(&b), STR("btime")) * NS_PER_S;
}

/* ---- rates ---- */

int64_t stats_rate(struct stats *s, str key, uint64_t cpu_ns)
{
	struct rate *r = map_get(&s->rates, key);
	int64_t now = clock_now_ns();

	if (!r) {
		r = mem_zalloc(sizeof(*r));
		r->key = mem_alloc(key.n + 1);
		memcpy(r->key, key.p, key.n);
		r->key[key.n] = '\0';
		map_put(&s->rates, str_span(r->key, key.n), r);
	}
	r->used_at_ns = now;
	if (r->at_ns && now - r->at_ns < RATE_MIN_MS * NS_PER_MS)
		return r->known ? (int64_t)r->nano_cores : -1;
	r->known = r->at_ns && cpu_ns >= r->cpu_ns;
	if (r->known)
		r->nano_cores = (uint64_t)((double)(cpu_ns - r->cpu_ns) / (double)(now - r->at_ns) * 1e9);
	r->at_ns = now;
	r->cpu_ns = cpu_ns;
	return r->known ? (int64_t)r->nano_cores : -1;
}

static void rate_free(struct rate *r)
{
	free(r->key);
	free(r);
}

static void forget_rates(struct stats *s)
{
	struct map_iter it = map_iter(&s->rates);
	struct rate *r;

	while ((r = map_next(&it, NULL)))
		if (clock_now_ns() - r->used_at_ns > RATE_KEEP_S * NS_PER_S) {
			map_remove(&s->rates, str_of(r->key));
			rate_free(r);
		}
}

/* ---- volumes ---- */

static void measured_free(struct measured *m)
{
	frozen_unref(m->volumes);
	free(m->uid);
	free(m);
}

static struct val find_volume(struct val pod, str name) { return find_named(val_get(pod, spec, volumes), name); }

static struct val volume_tree(struct arena *a, struct val pod, struct val usage, int64_t now)
{
	str name = val_str(usage, name), claim = val_str(find_volume(pod, name), persistentVolumeClaim, claimName);

	if (!claim.n && val_has(find_volume(pod, name), ephemeral))
		claim = arena_printf(a, STR_FMT "-" STR_FMT, STR_ARG(val_str(pod, metadata, name)), STR_ARG(name));
	return OBJECT(a, F(time, stats_time(a, now)), F(availableBytes, val_get(usage, availableBytes)),
		      F(capacityBytes, val_get(usage, capacityBytes)), F(usedBytes, val_get(usage, usedBytes)),
		      F(inodesFree, val_get(usage, inodesFree)), F(inodes, val_get(usage, inodes)),
		      F(inodesUsed, val_get(usage, inodesUsed)), F(name, VAL_STR(name)),
		      F(pvcRef, claim.n ? OBJECT(a, F(name, VAL_STR(claim)), F(namespace, val_get(pod, metadata, namespace))) : VAL_EMPTY));
}

static void keep_measured(struct stats *s, struct val pod, struct val volumes, int64_t began)
{
	str uid = val_str(pod, metadata, uid);
	struct measured *m = map_get(&s->measured, uid);

	if (!m) {
		m = mem_zalloc(sizeof(*m));
		m->uid = mem_alloc(uid.n + 1);
		memcpy(m->uid, uid.p, uid.n);
		m->uid[uid.n] = '\0';
		map_put(&s->measured, str_span(m->uid, uid.n), m);
	}
	frozen_unref(m->volumes);
	m->volumes = val_freeze(volumes);
	m->at_ns = clock_now_ns();
	m->took_ns = m->at_ns - began;
	m->wanted = true;
}

int stats_measure(struct stats *s, struct val pod, bool fresh, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct measured *m = map_get(&s->measured, val_str(pod, metadata, uid));
	int64_t began = clock_now_ns(), age = m ? began - m->at_ns : INT64_MAX;
	struct val_builder b = val_builder(&a);
	struct val usage;
	int r;

	if (!s->o.volumes || (m && age < (fresh ? MEASURE_SHARE * m->took_ns : MEASURE_MS * NS_PER_MS)))
		return 0;
	if ((r = volumes_usage(s->o.volumes, &a, pod, &usage, err)) < 0)
		return r;
	VAL_EACH(one, usage)
		val_add_item(&b, volume_tree(&a, pod, *one, clock_wall_ns()));
	keep_measured(s, pod, val_end_list(&b), began);
	return 0;
}

static void measure_all(struct stats *s)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct map_iter it = map_iter(&s->measured);
	struct measured *m;

	while ((m = map_next(&it, NULL)))
		m->wanted = false;
	VAL_EACH(pod, s->o.pods(s->o.arg, &a)) {
		struct err err = ERR_INIT;
		if (stats_measure(s, *pod, false, &err) < 0) {
			if (fiber_check(NULL) < 0)
				return;
			log_debug("volumes cannot be measured", KV("pod", val_str(*pod, metadata, name)), KV("err", &err));
		}
		if ((m = map_get(&s->measured, val_str(*pod, metadata, uid))))
			m->wanted = true;
	}
	it = map_iter(&s->measured);
	while ((m = map_next(&it, NULL)))
		if (!m->wanted) {
			map_remove(&s->measured, str_of(m->uid));
			measured_free(m);
		}
}

/* ---- a look at the pods ---- */

static void look_at_cgroup(struct cgroup_look *l)
{
	CLEANUP(cgroup_freep) struct cgroup *g = NULL;

	if (!l->path || cgroup_open(l->path, &g, NULL) < 0 || cgroup_stats(g, &l->g, NULL) < 0)
		return;
	cgroup_limits(g, &l->limits);
	l->ok = true;
}

static void add_file(struct folder_look *l, const struct stat *st)
{
	l->bytes += (uint64_t)st->st_blocks * 512;
	l->inodes++;
}

static void look_at_folder(struct folder_look *l)
{
	DIR *dir;
	struct stat st;

	if (!l->path || lstat(l->path, &st) < 0)
		return;
	l->ok = true;
	if (!S_ISDIR(st.st_mode)) {
		add_file(l, &st);
		return;
	}
	if (!(dir = opendir(l->path)))
		return;
	for (struct dirent *e; (e = readdir(dir));)
		if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode))
			add_file(l, &st);
	closedir(dir);
}

/* In the thread pool. */
static int read_all(void *arg, struct err *err)
{
	struct look *l = arg;

	(void)err;
	look_at_cgroup(&l->root);
	look_at_cgroup(&l->top);
	look_at_cgroup(&l->self);
	for (size_t i = 0; i < l->n; i++) {
		struct pod_look *p = &l->pods[i];
		look_at_cgroup(&p->cgroup);
		look_at_cgroup(&p->own);
		look_at_folder(&p->logs);
		look_at_folder(&p->hosts);
		for (size_t k = 0; k < p->n; k++) {
			look_at_cgroup(&p->containers[k].cgroup);
			look_at_folder(&p->containers[k].logs);
		}
	}
	return 0;
}

/* What the runtime says. */
struct answers {
	struct val sandboxes, containers; /* lists */
	struct map pod_stats, stats;  /* by id: PodSandboxStats, ContainerStats */
	struct map pods;              /* by uid: core/v1.Pod */
};

static void answers_done(struct answers *w)
{
	map_done(&w->pod_stats);
	map_done(&w->stats);
	map_done(&w->pods);
}

static int ask(struct stats *s, const struct rpc *rpc, struct arena *a, struct val filter, struct val *ret, struct err *err)
{
	return cri_ask(s->o.cri, rpc, a, val_len(filter) ? OBJECT(a, F(filter, filter)) : VAL_EMPTY_OBJECT, 0, ret, err);
}

static void put_stats(struct answers *w, struct val list)
{
	VAL_EACH(one, list)
		map_put(&w->stats, val_str(*one, attributes, id), (void *)(uintptr_t)one);
}

/* Runtimes of old know containers only. */
static int ask_stats(struct stats *s, struct arena *a, struct val filter, struct answers *w, struct err *err)
{
	struct val reply;
	int r = ask(s, &rpc_RuntimeService_ListPodSandboxStats, a, filter, &reply, NULL);

	if (r < 0) {
		if ((r = fiber_check(err)) < 0 || (r = ask(s, &rpc_RuntimeService_ListContainerStats, a, filter, &reply, err)) < 0)
			return r;
		put_stats(w, val_get(reply, stats));
		return 0;
	}
	VAL_EACH(one, val_get(reply, stats)) {
		map_put(&w->pod_stats, val_str(*one, attributes, id), (void *)(uintptr_t)one);
		put_stats(w, val_get(*one, linux, containers));
	}
	return 0;
}

static int ask_lists(struct stats *s, struct arena *a, struct val filter, struct answers *w, struct err *err)
{
	struct val reply;
	int r;

	map_init(&w->pod_stats);
	map_init(&w->stats);
	map_init(&w->pods);
	if ((r = ask(s, &rpc_RuntimeService_ListPodSandbox, a, filter, &reply, err)) < 0)
		return r;
	w->sandboxes = val_get(reply, items);
	if ((r = ask(s, &rpc_RuntimeService_ListContainers, a, filter, &reply, err)) < 0)
		return r;
	w->containers = val_get(reply, containers);
	VAL_EACH(pod, s->o.pods(s->o.arg, a))
		map_put(&w->pods, val_str(*pod, metadata, uid), (void *)(uintptr_t)pod);
	return 0;
}

static struct val map_val(const struct map *m, str key)
{
	const struct val *v = map_get(m, key);

	return v ? *v : VAL_EMPTY;
}

static const char *log_folder(struct stats *s, struct arena *a, struct val sandbox)
{
	return pod_log_folder(s->o.node, a, OBJECT(a, F(metadata, val_get(sandbox, metadata)))).p;
}

static void fill_pod(struct stats *s, struct arena *a, const struct answers *w, unsigned flags, struct pod_look *p)
{
	str uid = val_str(p->sandbox, metadata, uid), id = val_str(p->sandbox, id);
	const char *logs = flags & LOOK_FOLDERS ? log_folder(s, a, p->sandbox) : NULL;

	p->pod = map_val(&w->pods, uid);
	if (s->o.cgroups && val_exists(p->pod))
		p->cgroup.path = cgroups_pod_path(s->o.cgroups, a, p->pod).p;
	if (p->cgroup.path && flags & (LOOK_CGROUPS | LOOK_LEAN))
		p->own.path = arena_printf(a, "%s/" STR_FMT, p->cgroup.path, STR_ARG(id)).p;
	if (logs) {
		p->logs.path = logs;
		p->hosts.path = arena_printf(a, STR_FMT "/pods/" STR_FMT "/etc-hosts", STR_ARG(s->o.node->root), STR_ARG(uid)).p;
	}
	for (size_t i = 0; i < p->n; i++) {
		struct container_look *c = &p->containers[i];
		if (p->own.path)
			c->cgroup.path = arena_printf(a, "%s/" STR_FMT, p->cgroup.path, STR_ARG(val_str(c->container, id))).p;
		if (logs)
			c->logs.path = arena_printf(a, "%s/" STR_FMT, logs, STR_ARG(val_str(c->container, metadata, name))).p;
	}
}

/* Ready sandboxes with their running containers. */
static void arrange(struct stats *s, struct arena *a, const struct answers *w, unsigned flags, struct look *ret)
{
	CLEANUP(map_done) struct map by_sandbox = MAP_INIT;
	size_t running = 0;

	map_init(&by_sandbox);
	ret->pods = ARENA_ARRAY(a, struct pod_look, val_len(w->sandboxes) + 1);
	VAL_EACH(sandbox, w->sandboxes)
		if (sandbox_is_ready(*sandbox)) {
			struct pod_look *p = &ret->pods[ret->n++];
			*p = (struct pod_look){ .sandbox = *sandbox };
			map_put(&by_sandbox, val_str(*sandbox, id), p);
		}
	/* First how many, then which. */
	for (int round = 0; round < 2; round++) {
		struct container_look *room = round ? ARENA_ARRAY(a, struct container_look, running + 1) : NULL;
		for (size_t i = 0; round && i < ret->n; i++) {
			ret->pods[i].containers = room;
			room += ret->pods[i].n;
			ret->pods[i].n = 0;
		}
		VAL_EACH(c, w->containers) {
			struct pod_look *p = map_get(&by_sandbox, val_str(*c, podSandboxId));
			if (!p || container_cri_state(*c) != CRI_RUNNING)
				continue;
			if (round)
				p->containers[p->n] = (struct container_look){ .container = *c };
			p->n++;
			running++;
		}
	}
	for (size_t i = 0; i < ret->n; i++)
		fill_pod(s, a, w, flags, &ret->pods[i]);
}

static void fill_stats(const struct answers *w, struct look *l)
{
	for (size_t i = 0; i < l->n; i++) {
		struct pod_look *p = &l->pods[i];
		p->stats = val_get(map_val(&w->pod_stats, val_str(p->sandbox, id)), linux);
		for (size_t k = 0; k < p->n; k++)
			p->containers[k].stats = map_val(&w->stats, val_str(p->containers[k].container, id));
	}
}

static bool lacks_figures(const struct look *l)
{
	for (size_t i = 0; i < l->n; i++)
		for (size_t k = 0; k < l->pods[i].n; k++)
			if (!l->pods[i].containers[k].cgroup.ok)
				return true;
	return false;
}

int stats_look(struct stats *s, struct arena *a, str uid, unsigned flags, struct look *ret, struct err *err)
{
	CLEANUP(answers_done) struct answers w = { 0 };
	struct val selector = uid.n ? val_put(a, VAL_EMPTY_OBJECT, atom_make(a, STR("io.kubernetes.pod.uid")), VAL_STR(uid)) : VAL_EMPTY;
	struct val filter = uid.n ? OBJECT(a, F(labelSelector, selector)) : VAL_EMPTY;
	bool lean = flags & LOOK_LEAN;
	int r;

	*ret = (struct look){ 0 };
	if ((r = ask_lists(s, a, filter, &w, err)) < 0)
		return r;
	arrange(s, a, &w, flags, ret);
	if (!uid.n) {
		ret->root.path = "/";
		ret->self.path = ".";
		ret->top.path = s->o.cgroups ? cgroups_pod_path(s->o.cgroups, a, VAL_EMPTY).p : NULL;
	}
	if ((r = fiber_blocking(read_all, ret, err)) < 0 || (lean && !lacks_figures(ret)))
		return r;
	if ((r = ask_stats(s, a, filter, &w, err)) >= 0)
		fill_stats(&w, ret);
	return r;
}

/* ---- life ---- */

struct stats *stats_new(const struct stats_options *o)
{
	struct stats *s = mem_zalloc(sizeof(*s));
	struct err err = ERR_INIT;

	s->o = *o;
	map_init(&s->rates);
	map_init(&s->measured);
	map_init(&s->counters);
	if (node_machine_read(&s->arena, "", &s->machine, &err) < 0)
		log_warn("cannot read what this machine is", KV("err", &err));
	s->boot_ns = boot_time();
	s->begun_ns = clock_wall_ns();
	return s;
}

void stats_free(struct stats *s)
{
	struct map_iter it;
	struct counter *c;
	struct measured *m;
	struct rate *r;

	if (!s)
		return;
	for (it = map_iter(&s->rates); (r = map_next(&it, NULL));)
		rate_free(r);
	for (it = map_iter(&s->measured); (m = map_next(&it, NULL));)
		measured_free(m);
	for (it = map_iter(&s->counters); (c = map_next(&it, NULL));) {
		free(c->key);
		free(c);
	}
	map_done(&s->rates);
	map_done(&s->measured);
	map_done(&s->counters);
	arena_done(&s->arena);
	free(s);
}

int stats_run(struct stats *s, struct err *err)
{
	for (;;) {
		int r;
		measure_all(s);
		forget_rates(s);
		if ((r = fiber_sleep_ms(MEASURE_MS, err)) < 0)
			return r;
	}
}
