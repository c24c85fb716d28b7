/* kubectl create deployment, job, cronjob. */
#include "base/random.h"
#include "codec/types.h"
#include "kubectl/create.h"

static struct val container(struct ktl *k, str name, str image, struct val command, int64_t port)
{
	struct arena *a = &k->arena;
	struct val ports = port >= 0 ? LIST(a, OBJECT(a, F(containerPort, val_of_int(port)))) : VAL_EMPTY;
	return OBJECT(a, F(name, VAL_STR(name)), F(image, VAL_STR(image)), F(command, command), F(ports, ports));
}

/* ---- deployments ---- */

struct deployment {
	struct ktl_create common;
	struct ktl_texts images;
	int64_t replicas, port;
};

static const struct ktl_flag deployment_flags[] = {
	{ "image", 0, KTL_LIST, offsetof(struct deployment, images), NULL, "Image of a container; may be given several times", NULL },
	{ "port", 0, KTL_INT, offsetof(struct deployment, port), "-1", "The port that the container listens at", NULL },
	{ "replicas", 'r', KTL_INT, offsetof(struct deployment, replicas), "1", "How many pods", NULL },
	{ 0 },
};

/* What of an image's name can be the name of a container. Where that is not all, something random makes it another one. */
static str name_of_image(struct ktl *k, str image)
{
	static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
	ptrdiff_t slash = str_rchr(image, '/');
	str rest, name = slash < 0 ? image : str_skip(image, (size_t)slash + 1);
	(void)str_cut(name, ':', &name, &rest);
	(void)str_cut(name, '@', &name, &rest);
	if (str_chr(name, '_') < 0 && str_chr(name, '.') < 0)
		return name;
	char *p = ARENA_ARRAY(&k->arena, char, name.n + 6);
	for (size_t i = 0; i < name.n; i++)
		p[i] = name.p[i] == '_' || name.p[i] == '.' ? '-' : name.p[i];
	p[name.n] = '-';
	for (size_t i = 1; i <= 5; i++)
		p[name.n + i] = letters[random_below(sizeof(letters) - 1)];
	return str_span(p, name.n + 6);
}

static int create_deployment(struct ktl *k, void *options)
{
	const struct deployment *d = options;
	struct arena *a = &k->arena;
	struct val_builder containers = val_builder(a);
	struct val command = ktl_words_behind_dash(k);
	str name;
	if (ktl_create_name(k, &name) < 0)
		return -1;
	if (d->images.n > 1 && val_exists(command))
		return ktl_fail(k, "cannot specify multiple --image options and command");
	for (size_t i = 0; i < d->images.n; i++) {
		str image = str_of(d->images.v[i]);
		val_add_item(&containers, container(k, name_of_image(k, image), image, command, i == 0 ? d->port : -1));
	}
	struct val labels = OBJECT(a, F(app, VAL_STR(name)));
	struct val template = OBJECT(a, F(metadata, OBJECT(a, F(labels, labels))), F(spec, OBJECT(a, F(containers, val_end_list(&containers)))));
	struct val spec = OBJECT(a, F(replicas, val_of_int(d->replicas)), F(selector, OBJECT(a, F(matchLabels, labels))), F(template, template));
	struct val object = OBJECT(a, F(metadata, ktl_meta(k, name, labels)), F(spec, spec));
	return ktl_create_made(k, &d->common, TYPE(apps_v1, Deployment), object, "failed to create deployment: ");
}

const struct ktl_command ktl_create_deployment = {
	.name = "deployment", .aliases = "deploy,dep", .summary = "Create a deployment with the specified name",
	.usage = "create deployment NAME --image=image -- [COMMAND] [args...] [options]", .flags = KTL_CREATE_SETS(deployment_flags),
	.examples = "  kubectl create deployment web --image=nginx --replicas=3 --port=80\n",
	.size = sizeof(struct deployment), .required = "image", .run = create_deployment,
};

/* ---- jobs ---- */

struct job {
	struct ktl_create common;
	const char *image, *from, *schedule, *restart;
};

static const struct ktl_flag job_flags[] = {
	{ "from", 0, KTL_STRING, offsetof(struct job, from), NULL, "The cron job whose job is to be run now, as cronjob/name", NULL },
	{ "image", 0, KTL_STRING, offsetof(struct job, image), NULL, "Image of the container", NULL },
	{ 0 },
};

static const struct ktl_flag cronjob_flags[] = {
	{ "image", 0, KTL_STRING, offsetof(struct job, image), NULL, "Image of the container", NULL },
	{ "restart", 0, KTL_STRING, offsetof(struct job, restart), NULL, "Restart policy of the pods: OnFailure, Never", NULL },
	{ "schedule", 0, KTL_STRING, offsetof(struct job, schedule), NULL, "When it runs, as cron has it", NULL },
	{ 0 },
};

static struct val job_spec(struct ktl *k, str name, const char *image, const char *restart)
{
	struct arena *a = &k->arena;
	struct val one = container(k, name, str_of(image), ktl_words_behind_dash(k), -1);
	struct val spec = OBJECT(a, F(containers, LIST(a, one)), F(restartPolicy, VAL_STR(str_of(restart))));
	return OBJECT(a, F(template, OBJECT(a, F(spec, spec))));
}

static int job_of_cronjob(struct ktl *k, const char *from, str name, struct val *ret)
{
	struct arena *a = &k->arena;
	struct ktl_texts args = { &from, 1 };
	struct ktl_infos infos;
	str namespace;
	if (ktl_namespace(k, &namespace, NULL) < 0 || ktl_build(k, &(struct ktl_builder){ .args = args, .namespace = namespace }, &infos) < 0)
		return -1;
	if (infos.n != 1)
		return ktl_fail(k, "from must be an existing cronjob");
	struct val cron = infos.v[0].object, job = val_get(cron, spec, jobTemplate);
	if (!str_eq(val_str(cron, kind), STR("CronJob")))
		return ktl_fail(k, "unknown object type *v1." STR_FMT, STR_ARG(val_str(cron, kind)));
	struct val owner = OBJECT(a, F(apiVersion, VAL_LIT("batch/v1")), F(kind, VAL_LIT("CronJob")), F(name, val_get(cron, metadata, name)),
				  F(uid, val_get(cron, metadata, uid)), F(controller, val_of_bool(true)));
	struct val notes = val_get(job, metadata, annotations);
	notes = val_put(a, notes, atom_make(a, STR("cronjob.kubernetes.io/instantiate")), VAL_LIT("manual"));
	*ret = OBJECT(a, F(metadata, OBJECT(a, F(name, VAL_STR(name)), F(annotations, notes), F(labels, val_get(job, metadata, labels)),
					    F(ownerReferences, LIST(a, owner)))),
		      F(spec, val_get(job, spec)));
	return 0;
}

static int create_job(struct ktl *k, void *options)
{
	const struct job *j = options;
	struct val object;
	str name;
	if (ktl_create_name(k, &name) < 0)
		return -1;
	if ((j->image[0] != 0) == (j->from[0] != 0))
		return ktl_fail(k, "either --image or --from must be specified");
	if (j->from[0] && val_exists(ktl_words_behind_dash(k)))
		return ktl_fail(k, "cannot specify --from and command");
	if (j->from[0]) {
		if (job_of_cronjob(k, j->from, name, &object) < 0)
			return -1;
	} else {
		object = OBJECT(&k->arena, F(metadata, ktl_meta(k, name, VAL_EMPTY)), F(spec, job_spec(k, name, j->image, "Never")));
	}
	return ktl_create_made(k, &j->common, TYPE(batch_v1, Job), object, "failed to create job: ");
}

const struct ktl_command ktl_create_job = {
	.name = "job", .summary = "Create a job with the specified name",
	.usage = "create job NAME --image=image [--from=cronjob/name] -- [COMMAND] [args...] [options]", .flags = KTL_CREATE_SETS(job_flags),
	.examples = "  kubectl create job once --image=busybox -- date\n  kubectl create job now --from=cronjob/nightly\n",
	.size = sizeof(struct job), .run = create_job,
};

static int create_cronjob(struct ktl *k, void *options)
{
	const struct job *j = options;
	struct arena *a = &k->arena;
	str name;
	if (ktl_create_name(k, &name) < 0)
		return -1;
	struct val template = OBJECT(a, F(metadata, ktl_meta(k, name, VAL_EMPTY)),
				     F(spec, job_spec(k, name, j->image, j->restart[0] ? j->restart : "OnFailure")));
	struct val object = OBJECT(a, F(metadata, ktl_meta(k, name, VAL_EMPTY)),
				   F(spec, OBJECT(a, F(schedule, VAL_STR(str_of(j->schedule))), F(jobTemplate, template))));
	return ktl_create_made(k, &j->common, TYPE(batch_v1, CronJob), object, "failed to create cronjob: ");
}

const struct ktl_command ktl_create_cronjob = {
	.name = "cronjob", .aliases = "cj", .summary = "Create a cron job with the specified name",
	.usage = "create cronjob NAME --image=image --schedule='0/5 * * * ?' -- [COMMAND] [args...] [options]",
	.flags = KTL_CREATE_SETS(cronjob_flags), .examples = "  kubectl create cronjob nightly --image=busybox --schedule='0 3 * * *' -- date\n",
	.size = sizeof(struct job), .required = "image,schedule", .run = create_cronjob,
};
