#include "scheduler/reference_objects.h"

#include "base/random.h"

static const char *const apps[OBJECTS_APPS] = { "web", "db", "cache" };
static const char *const spaces[OBJECTS_SPACES] = { "a", "b", "c" };
static const char *const keys[] = { "topology.kubernetes.io/zone", "kubernetes.io/hostname", "rack", "disk" };
static const char *const images[] = { "registry/big:1", "registry/huge", "small:2" };
static const char *const extended[] = { "example.com/gpu", "example.com/fpga", "other.org/key" };

#define ONE(array) (array)[random_below(ARRAY_LEN(array))]

static bool is_crowded;

void random_crowd(bool crowded) { is_crowded = crowded; }

bool random_chance(unsigned percent) { return random_below(100) < percent; }

static unsigned below(unsigned n) { return (unsigned)random_below(n); }

static const char *app(void) { return is_crowded && random_chance(85) ? apps[0] : ONE(apps); }

static const char *space(void) { return is_crowded && random_chance(90) ? spaces[2] : ONE(spaces); }

/* ---- selectors ---- */

static void add_selector(struct buf *b, const char *name)
{
	switch (below(7)) {
	case 0: buf_addf(b, "'%s':{'matchExpressions':[{'key':'tier','operator':'Exists'}]}", name); break;
	case 1: buf_addf(b, "'%s':{'matchExpressions':[{'key':'app','operator':'NotIn','values':['web']}]}", name); break;
	case 2: buf_addf(b, "'%s':{'matchExpressions':[{'key':'app','operator':'In','values':['web','db']}]}", name); break;
	case 3: buf_addf(b, "'%s':{'matchLabels':{'app':'%s'},'matchExpressions':[{'key':'tier','operator':'DoesNotExist'}]}", name, app()); break;
	case 4: buf_addf(b, "'%s':{}", name); break;
	default: buf_addf(b, "'%s':{'matchLabels':{'app':'%s'}}", name, app()); break;
	}
}

static void add_pod_term(struct buf *b)
{
	buf_addf(b, "{'topologyKey':'%s'", ONE(keys));
	if (random_chance(90)) {
		buf_addf(b, ",");
		add_selector(b, "labelSelector");
	}
	if (random_chance(20))
		buf_addf(b, ",'namespaces':['%s','%s']", space(), space());
	if (random_chance(20))
		buf_addf(b, ",'namespaceSelector':{%s}", random_chance(50) ? "'matchLabels':{'team':'x'}" : random_chance(50) ? "" :
			 "'matchExpressions':[{'key':'team','operator':'DoesNotExist'}]");
	buf_addf(b, "}");
}

static void add_pod_terms(struct buf *b, const char *name)
{
	unsigned required = random_chance(50) ? below(3) : 0, preferred = random_chance(50) ? below(3) : 0;

	buf_addf(b, "'%s':{'requiredDuringSchedulingIgnoredDuringExecution':[", name);
	for (unsigned i = 0; i < required; i++) {
		buf_addf(b, "%s", i ? "," : "");
		add_pod_term(b);
	}
	buf_addf(b, "],'preferredDuringSchedulingIgnoredDuringExecution':[");
	for (unsigned i = 0; i < preferred; i++) {
		buf_addf(b, "%s{'weight':%u,'podAffinityTerm':", i ? "," : "", below(100) + 1);
		add_pod_term(b);
		buf_addf(b, "}");
	}
	buf_addf(b, "]}");
}

static void add_node_term(struct buf *b)
{
	switch (below(9)) {
	case 0: buf_addf(b, "{'matchExpressions':[{'key':'disk','operator':'Exists'}]}"); break;
	case 1: buf_addf(b, "{'matchExpressions':[{'key':'rack','operator':'DoesNotExist'}]}"); break;
	case 2: buf_addf(b, "{'matchExpressions':[{'key':'cores','operator':'%s','values':['4']}]}", random_chance(50) ? "Gt" : "Lt"); break;
	case 3: buf_addf(b, "{'matchExpressions':[{'key':'disk','operator':'NotIn','values':['hdd']},{'key':'cores','operator':'Exists'}]}"); break;
	case 4: buf_addf(b, "{'matchFields':[{'key':'metadata.name','operator':'%s','values':['n%u']}]}", random_chance(50) ? "In" : "NotIn",
			 below(5)); break;
	case 5: buf_addf(b, "{'matchFields':[{'key':'metadata.name','operator':'In','values':['n%u']}],"
			    "'matchExpressions':[{'key':'disk','operator':'Exists'}]}", below(5)); break;
	case 6: buf_addf(b, "{}"); break;
	default: buf_addf(b, "{'matchExpressions':[{'key':'disk','operator':'In','values':['%s']}]}", random_chance(70) ? "ssd" : "hdd"); break;
	}
}

static void add_node_affinity(struct buf *b)
{
	bool required = random_chance(60), named = random_chance(15), preferred = random_chance(50);

	buf_addf(b, "'nodeAffinity':{");
	if (required) {
		buf_addf(b, "'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[");
		for (unsigned i = 0, n = below(2) + 1; i < n; i++) {
			buf_addf(b, "%s", i ? "," : "");
			if (named)
				buf_addf(b, "{'matchFields':[{'key':'metadata.name','operator':'In','values':['n%u']}%s]}", below(5), random_chance(10) ?
					 ",{'key':'metadata.name','operator':'In','values':['n1']}" : "");
			else
				add_node_term(b);
		}
		buf_addf(b, "]}");
	}
	if (preferred) {
		buf_addf(b, "%s'preferredDuringSchedulingIgnoredDuringExecution':[", required ? "," : "");
		for (unsigned i = 0, n = below(2) + 1; i < n; i++) {
			buf_addf(b, "%s{'weight':%u,'preference':", i ? "," : "", below(100) + 1);
			add_node_term(b);
			buf_addf(b, "}");
		}
		buf_addf(b, "]");
	}
	buf_addf(b, "}");
}

static void add_constraints(struct buf *b)
{
	buf_addf(b, ",'topologySpreadConstraints':[");
	for (unsigned i = 0, n = below(3) + 1; i < n; i++) {
		buf_addf(b, "%s{'maxSkew':%u,'topologyKey':'%s','whenUnsatisfiable':'%s'", i ? "," : "", below(3) + 1, ONE(keys),
			 random_chance(50) ? "DoNotSchedule" : "ScheduleAnyway");
		if (random_chance(90)) {
			buf_addf(b, ",");
			add_selector(b, "labelSelector");
		}
		if (random_chance(20))
			buf_addf(b, ",'matchLabelKeys':['tier']");
		if (random_chance(20))
			buf_addf(b, ",'minDomains':%u", below(4) + 1);
		if (random_chance(30))
			buf_addf(b, ",'nodeAffinityPolicy':'%s'", random_chance(50) ? "Honor" : "Ignore");
		if (random_chance(30))
			buf_addf(b, ",'nodeTaintsPolicy':'%s'", random_chance(70) ? "Honor" : "Ignore");
		buf_addf(b, "}");
	}
	buf_addf(b, "]");
}

/* ---- pods ---- */

static void add_amounts(struct buf *b, const char *name)
{
	static const char *const cpus[] = { "100m", "250m", "500m", "1", "1500m", "0" };
	static const char *const memories[] = { "64Mi", "300M", "512Mi", "1Gi", "0" };
	const char *comma = "";

	buf_addf(b, "'%s':{", name);
	if (random_chance(75)) {
		buf_addf(b, "'cpu':'%s'", ONE(cpus));
		comma = ",";
	}
	if (random_chance(65)) {
		buf_addf(b, "%s'memory':'%s'", comma, ONE(memories));
		comma = ",";
	}
	if (random_chance(10)) {
		buf_addf(b, "%s'ephemeral-storage':'%uGi'", comma, below(6) + 1);
		comma = ",";
	}
	if (random_chance(10)) {
		buf_addf(b, "%s'hugepages-2Mi':'%uMi'", comma, 2 * below(4));
		comma = ",";
	}
	if (random_chance(10))
		buf_addf(b, "%s'%s':'%u'", comma, random_chance(5) ? "nobody.net/has" : ONE(extended), below(3));
	buf_addf(b, "}");
}

/* Of a pod as a whole: of huge pages never less than its containers ask for. */
static void add_whole(struct buf *b)
{
	buf_addf(b, ",'resources':{'requests':{'memory':'%uMi'", 256 * below(6));
	if (random_chance(50))
		buf_addf(b, ",'cpu':'%um'", 250 * below(6));
	if (random_chance(20))
		buf_addf(b, ",'hugepages-2Mi':'32Mi'");
	if (random_chance(10))
		buf_addf(b, ",'nobody.net/has':'1'");
	buf_addf(b, "}}");
}

static void add_container(struct buf *b, const char *name, bool init)
{
	static const char *const ips[] = { "", "127.0.0.1", "10.0.0.1", "0.0.0.0" };

	buf_addf(b, "{'name':'%s','image':'%s','resources':{", name, ONE(images));
	add_amounts(b, "requests");
	buf_addf(b, "}");
	if (init && random_chance(50))
		buf_addf(b, ",'restartPolicy':'Always'");
	if (random_chance(12))
		buf_addf(b, ",'ports':[{'containerPort':80,'hostPort':%u,'hostIP':'%s','protocol':'%s'}]", below(3) + 80, ONE(ips),
			 random_chance(80) ? "TCP" : "UDP");
	buf_addf(b, "}");
}

static void add_containers(struct buf *b)
{
	static const char *const names[] = { "c0", "c1" }, *const inits[] = { "i0", "i1" };

	buf_addf(b, ",'containers':[");
	for (unsigned i = 0, n = below(2) + 1; i < n; i++) {
		buf_addf(b, "%s", i ? "," : "");
		add_container(b, names[i], false);
	}
	buf_addf(b, "]");
	if (!random_chance(20))
		return;
	buf_addf(b, ",'initContainers':[");
	for (unsigned i = 0, n = below(2) + 1; i < n; i++) {
		buf_addf(b, "%s", i ? "," : "");
		add_container(b, inits[i], true);
	}
	buf_addf(b, "]");
}

static void add_tolerations(struct buf *b)
{
	static const char *const all[] = {
		"{'key':'special','operator':'Exists'}", "{'operator':'Exists'}", "{'key':'special','value':'yes','effect':'NoSchedule'}",
		"{'key':'special','operator':'Equal','value':'no'}", "{'key':'dedicated','operator':'Exists','effect':'NoExecute'}",
		"{'key':'node.kubernetes.io/unschedulable','operator':'Exists','effect':'NoSchedule'}",
		"{'key':'special','operator':'Gt','value':'1'}", "{'key':'dedicated','operator':'Exists','effect':'PreferNoSchedule'}",
	};

	buf_addf(b, ",'tolerations':[%s", ONE(all));
	if (random_chance(40))
		buf_addf(b, ",%s", ONE(all));
	buf_addf(b, "]");
}

static void add_placement(struct buf *b, bool plain)
{
	bool nodes = random_chance(20), pods = !plain && random_chance(30);

	if (random_chance(10))
		buf_addf(b, ",'nodeSelector':{'disk':'ssd'%s}", random_chance(20) ? ",'rack':'r1'" : "");
	if (random_chance(40))
		add_tolerations(b);
	if (!plain && random_chance(is_crowded ? 60 : 30))
		add_constraints(b);
	if (!nodes && !pods)
		return;
	buf_addf(b, ",'affinity':{");
	if (nodes)
		add_node_affinity(b);
	if (pods) {
		buf_addf(b, "%s", nodes ? "," : "");
		add_pod_terms(b, "podAffinity");
		buf_addf(b, ",");
		add_pod_terms(b, "podAntiAffinity");
	}
	buf_addf(b, "}");
}

/* Of one that runs: also being resized, or being deleted for another pod. */
static void add_status(struct buf *b, size_t number)
{
	buf_addf(b, ",'status':{'startTime':'2026-01-01T%02zu:%02zu:00Z','conditions':[", number / 60 % 24, number * 7 % 60);
	if (random_chance(15))
		buf_addf(b, "{'type':'DisruptionTarget','status':'True','reason':'%s'}", random_chance(70) ? "PreemptionByScheduler" : "EvictionByEvictionAPI");
	else if (random_chance(5))
		buf_addf(b, "{'type':'PodResizePending','status':'True','reason':'%s'}", random_chance(70) ? "Infeasible" : "Deferred");
	buf_addf(b, "]");
	if (random_chance(10)) {
		buf_addf(b, ",'containerStatuses':[{'name':'c0','resources':{");
		add_amounts(b, "requests");
		buf_addf(b, "},");
		add_amounts(b, "allocatedResources");
		buf_addf(b, "}]");
	}
	if (random_chance(5)) {
		buf_addf(b, ",'resources':{");
		add_amounts(b, "requests");
		buf_addf(b, "},");
		add_amounts(b, "allocatedResources");
	}
	buf_addf(b, "}");
}

static void add_metadata(struct buf *b, size_t number, bool on_node)
{
	static const char *const kinds[OBJECTS_APPS] = { "ReplicaSet", "StatefulSet", "ReplicationController" };
	unsigned owner = is_crowded ? 2 : below(OBJECTS_APPS);

	buf_addf(b, "'metadata':{'name':'p%zu','uid':'u%zu','namespace':'%s'", number, number, space());
	if (random_chance(95)) {
		buf_addf(b, ",'labels':{'app':'%s'", app());
		if (random_chance(30))
			buf_addf(b, ",'tier':'%s'", random_chance(50) ? "front" : "back");
		buf_addf(b, "}");
	}
	if (on_node && random_chance(is_crowded ? 25 : 12))
		buf_addf(b, ",'deletionTimestamp':'2026-01-02T00:00:00Z'");
	if (random_chance(40))
		buf_addf(b, ",'ownerReferences':[{'apiVersion':'%s','kind':'%s','name':'%s','uid':'o','controller':%s}]",
			 owner == 2 ? "v1" : "apps/v1", kinds[owner], apps[owner], random_chance(90) ? "true" : "false");
	buf_addf(b, "}");
}

void random_pod(struct buf *b, const struct random_pod *o)
{
	static const int priorities[] = { 0, 0, 0, 10, 100, -5, 2000000000 };

	buf_addf(b, "{");
	add_metadata(b, o->number, o->node.n > 0);
	buf_addf(b, ",'spec':{'schedulerName':'default-scheduler','priority':%d", ONE(priorities));
	if (o->node.n)
		buf_addf(b, ",'nodeName':'" STR_FMT "'", STR_ARG(o->node));
	if (random_chance(5))
		buf_addf(b, ",'preemptionPolicy':'Never'");
	if (random_chance(5))
		buf_addf(b, ",'overhead':{'cpu':'50m','memory':'10Mi'}");
	if (random_chance(8))
		add_whole(b);
	add_containers(b);
	add_placement(b, o->plain);
	if (random_chance(5))
		buf_addf(b, ",'volumes':[{'name':'v','image':{'reference':'%s'}}]", ONE(images));
	buf_addf(b, "}");
	if (o->node.n)
		add_status(b, o->number);
	buf_addf(b, "}");
}

/* ---- other kinds ---- */

static void add_node_labels(struct buf *b, size_t number)
{
	buf_addf(b, "'labels':{'number':'%zu'", number);
	if (random_chance(90))
		buf_addf(b, ",'kubernetes.io/hostname':'n%zu'", number);
	if (random_chance(85))
		buf_addf(b, ",'topology.kubernetes.io/zone':'%s'", random_chance(50) ? "z1" : random_chance(50) ? "z2" : "z3");
	if (random_chance(20))
		buf_addf(b, ",'topology.kubernetes.io/region':'r1'");
	if (random_chance(60))
		buf_addf(b, ",'rack':'r%u'", below(3));
	if (random_chance(75))
		buf_addf(b, ",'disk':'%s'", random_chance(70) ? "ssd" : "hdd");
	if (random_chance(50))
		buf_addf(b, ",'cores':'%u'", 2 * below(4) + 2);
	buf_addf(b, "}");
}

static void add_taints(struct buf *b)
{
	static const char *const all[] = {
		"{'key':'special','effect':'NoSchedule'}", "{'key':'special','value':'yes','effect':'NoSchedule'}",
		"{'key':'special','value':'no','effect':'PreferNoSchedule'}", "{'key':'dedicated','effect':'NoExecute'}",
		"{'key':'dedicated','effect':'PreferNoSchedule'}", "{'key':'other','effect':'PreferNoSchedule'}",
	};

	buf_addf(b, "'taints':[%s", ONE(all));
	if (random_chance(30))
		buf_addf(b, ",%s", ONE(all));
	buf_addf(b, "]");
}

void random_node(struct buf *b, size_t number, bool plain)
{
	static const unsigned sizes[ARRAY_LEN(images)] = { 400 << 20, 1500 << 20, 30 << 20 };
	bool tainted = random_chance(plain ? 5 : 25);

	buf_addf(b, "{'metadata':{'name':'n%zu',", number);
	add_node_labels(b, number);
	buf_addf(b, "},'spec':{");
	if (tainted)
		add_taints(b);
	buf_addf(b, "%s},'status':{'allocatable':{'cpu':'%um','memory':'%uMi','pods':'%u'", !random_chance(7) ? "" : tainted ? ",'unschedulable':true" :
		 "'unschedulable':true", 500 * (below(7) + 1), 512 * (below(8) + 1), random_chance(80) ? 10 : below(4) + 1);
	if (random_chance(60))
		buf_addf(b, ",'ephemeral-storage':'%uGi'", below(12) + 1);
	if (random_chance(50))
		buf_addf(b, ",'%s':'%u'", ONE(extended), below(4));
	if (random_chance(40))
		buf_addf(b, ",'hugepages-2Mi':'%uMi'", 4 * below(4));
	buf_addf(b, "},'images':[");
	for (size_t i = 0, n = 0; i < ARRAY_LEN(images); i++)
		if (random_chance(40))
			buf_addf(b, "%s{'names':['%s%s','sha256:%zu'],'sizeBytes':%u}", n++ ? "," : "", images[i], i == 1 ? ":latest" : "", i, sizes[i]);
	buf_addf(b, "]}}");
}

void random_namespace(struct buf *b, size_t number)
{
	buf_addf(b, "{'metadata':{'name':'%s','labels':{%s}}}", spaces[number], random_chance(50) ? "'team':'x'" : "");
}

void random_service(struct buf *b, size_t number)
{
	buf_addf(b, "{'metadata':{'name':'s','namespace':'%s'},'spec':{'selector':{%s'app':'%s'}}}", spaces[number],
		 random_chance(30) ? "'tier':'front'," : "", app());
}

void random_budget(struct buf *b, size_t number)
{
	buf_addf(b, "{'metadata':{'name':'b','namespace':'%s'},'spec':{", spaces[number]);
	if (random_chance(95))
		add_selector(b, "selector");
	buf_addf(b, "},'status':{'disruptionsAllowed':%u,'currentHealthy':1,'desiredHealthy':1,'expectedPods':1%s}}", below(3),
		 random_chance(20) ? ",'disruptedPods':{'p1':'2026-01-01T00:00:00Z'}" : "");
}

void random_owner(struct buf *b, size_t number)
{
	static const char *const kinds[OBJECTS_APPS] = { "ReplicaSet", "StatefulSet", "ReplicationController" };

	buf_addf(b, "{'apiVersion':'%s','kind':'%s','metadata':{'name':'%s','namespace':'%s'},'spec':{", number == 2 ? "v1" : "apps/v1", kinds[number],
		 apps[number], spaces[number]);
	if (number == 2)
		buf_addf(b, "'selector':{'app':'%s'}", apps[number]);
	else
		add_selector(b, "selector");
	buf_addf(b, "}}");
}
