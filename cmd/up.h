/*
 * A cluster on this machine by one command. `c8s up` is a supervisor with two children: the control plane, which runs as a user without
 * any privilege, and the node, which is root. It makes what they need, starts them again when they end, and stops them.
 *
 *	up.c              the command; down.c, status.c, reset.c: those that find a cluster by its data directory
 *	up_settings.c     settings are kept in the data directory, so that other commands need only its name
 *	up_machine.c      what the machine must have; up_place.c: what this cluster needs; each finding says what to do; doctor.c prints it
 *	up_prepare.c      folders, the user, certificates, the kubelet's files
 *	up_logs.c         logs stay short                 install.c, machine_stop.c, service_manager.c: a service of systemd
 *	up_identity.c     the node's certificate has the node's name
 *	up_authority.c    keys that several control planes share; up_servers.c: their nodes know all of them
 *	up_supervise.c    the children
 *	up_wait.c         until the node is Ready; manifests that are applied then
 *	up_objects.c      what the cluster has from the start; up_join.c, token.c, join.c: machines that join
 *	up_kubeconfig.c   the way to the cluster in somebody's kubeconfig; up_admin.c: what of the administrator's can be believed
 *	up_clean.c        what pods have left; all of it
 *
 *	DATA/up.yaml            settings: flags by name
 *	DATA/control-plane/     of the control plane's user: store, pki, admin.conf
 *	DATA/node/              of root: kubelet, runtime, net.d, pki
 *	DATA/log/               supervisor.log, control-plane.log, node.log
 *	/run/c8s/TAG/           sockets and what need not survive a reboot; TAG is made from DATA's path
 */
#ifndef C8S_CMD_UP_H
#define C8S_CMD_UP_H

#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "cmd/flags.h"

struct client;
struct client_config;
struct val;
struct file_batch;

extern const struct flag up_flags[];

/* As flags give them. */
struct up_settings {
	const char *data_dir;
	const char *kubeconfig;       /* NULL: that of the user who calls; "": none */
	const char *bind_address, *advertise_address, *node_name, *node_ip, *pod_cidr, *service_cidr;
	const char *container_runtime_endpoint;
	const char *const *etcd_servers, *etcd_ca, *etcd_cert, *etcd_key;
	const char *pki;              /* folder of keys to take over; NULL: own ones */
	const char *const *control_plane_args, *const *kubelet_args; /* "name=value", passed on */
	const char *manifests, *images, *registry_config; /* folders */
	const char *server, *token, *ca_hash; /* of a cluster to join; server NULL: it has its control plane here */
	int64_t secure_port, kubelet_port;
	int64_t verbosity;
	bool detach, version;
	const char *config;
};

/* Where everything is; made from the settings, in the arena. */
struct up_cluster {
	struct arena *arena;
	struct up_settings settings;
	const char *program;          /* ourselves */
	const char *tag;              /* eight digits that differ between data directories */
	const char *control_dir, *node_dir, *log_dir, *run_dir, *cgroup;
	const char *settings_file, *lock_file, *admin_conf, *node_conf, *bootstrap_conf, *node_ca, *kubelet_config, *servers_file;
	const char *url;              /* https://127.0.0.1:6443 */
	const char *public_url;       /* the same as other machines say it, if any can */
	const char *node_ip;          /* NULL: the machine has none */
	uid_t uid;                    /* of the control plane; 0: that of the caller */
};

/* ---- up_settings.c ---- */

/*
 * From the command line: what an earlier `up` of this data directory was told, then --config, then the arguments. 0, the exit code 2 after
 * a message, or an error.
 */
int up_open(const struct command *command, struct arena *a, int argc, char **argv, struct up_cluster *ret, struct err *err);
/* What the command line alone says, as flags of up ("--name=value", NULL-ended), without --data-dir; in the arena. 0, 2 after a message, or an error. */
int up_typed(const struct command *command, struct arena *a, int argc, char **argv, const char *const **ret, struct err *err);
/* A cluster that exists, or was begun, by its directory. -ERR_NOT_FOUND when there is none. */
int up_load(const struct command *command, struct arena *a, const char *data_dir, struct up_cluster *ret, struct err *err);
/* Adds the file of the settings to those that are going to be written. */
int up_save(const struct up_cluster *c, struct file_batch *files, struct err *err);

/* ---- up_machine.c ---- */

enum up_severity { UP_FINE, UP_WARNING, UP_PROBLEM };

/* One thing that was looked at. */
struct up_finding {
	enum up_severity severity;
	const char *what;             /* "cgroups" */
	str says;                     /* "version 2, with cpu, memory, pids" */
	str advice;                   /* empty when it is fine */
};

enum { UP_FINDINGS_MAX = 32 };

struct up_findings {
	struct up_finding items[UP_FINDINGS_MAX];
	size_t n;
};

/* Looks at the machine, and whether this cluster could start on it: its ports and its data directory. */
void up_look(struct arena *a, const struct up_cluster *c, struct up_findings *ret);
void up_tell(struct up_findings *f, enum up_severity severity, const char *what, str says, const char *advice);
/* What this cluster needs, in up_place.c: its data directory, name, addresses and ports. */
void up_look_at_place(struct arena *a, const struct up_cluster *c, struct up_findings *f);
/* The first problem as an error with its advice; 0: there is none. */
int up_check(const struct up_findings *f, struct err *err);

/* ---- up.c ---- */

/* The command up, under this name. */
int up_run(const struct command *command, int argc, char **argv);

/* ---- up_prepare.c ---- */

int up_make_folders(const struct up_cluster *c, struct err *err);
/* Makes what is missing of keys and files. Blocks. */
int up_prepare(const struct up_cluster *c, struct err *err);

/* ---- up_authority.c ---- */

/* Puts the keys of --pki where up_prepare looks for keys. -ERR_CONFLICT when there are others; up_check_pki says that before anything is done. Blocks. */
int up_check_pki(const struct up_cluster *c, struct err *err);
int up_take_pki(const struct up_cluster *c, struct err *err);
/* (suspends) Sees to it that the etcd of --etcd-servers, if there is one, belongs to our authority. -ERR_CONFLICT when it is another's. */
int up_claim_store(const struct up_cluster *c, struct err *err);

/* ---- up_servers.c ---- */

/* Whether the cluster may have several API servers. */
bool up_has_several(const struct up_cluster *c);
/* The same URLs, those of this machine first, in the arena: who asks the member of etcd beside it does not lose it alone. */
const char *const *up_nearest_first(struct arena *a, const char *const *urls);
/* (suspends, until canceled) Keeps their list in servers_file. */
int up_keep_servers(const struct up_cluster *c, struct err *err);

/* ---- up_supervise.c ---- */

enum up_part { UP_CONTROL_PLANE, UP_NODE, UP_N_PARTS };

struct supervisor;

/* (suspends) Starts both; a child that ends is started again, after 100 ms at first and 10 s at most, until the supervisor is stopped. */
int supervisor_start(const struct up_cluster *c, struct supervisor **ret, struct err *err);
/* (suspends) Until this part has said that it is ready. -ERR_UNAVAILABLE with the last lines of its log when it has ended instead. */
int supervisor_wait_ready(struct supervisor *s, enum up_part part, struct err *err);
/* (suspends) First the node, then the control plane; takes NULL. */
void supervisor_stop(struct supervisor *s);
void supervisor_stopp(struct supervisor **s);

/* (suspends) Stops whoever supervises the cluster; fine when nobody does. In down.c. */
int up_stop(const struct up_cluster *c, struct err *err);
/* Whether somebody supervises this cluster; then their pid. */
bool up_running(const struct up_cluster *c, pid_t *ret);
/* -ERR_CONFLICT when somebody does. */
int up_check_stopped(const struct up_cluster *c, struct err *err);
/* Holds the cluster's lock until the process ends. -ERR_CONFLICT when another one does. */
int up_lock(const struct up_cluster *c, struct err *err);

/* ---- up_wait.c ---- */

/* As the administrator; on a machine that has joined, as its node. */
int up_connect(const struct up_cluster *c, struct client **ret, struct err *err);
/* (suspends) Until its kubelet says so; since_ns (of the wall clock): what one has said before is old. */
int up_wait_node(struct client *client, const char *name, int64_t since_ns, struct err *err);
/* (suspends) Applies the objects of a YAML text; *applied grows by each. */
int up_apply_text(struct client *client, str text, size_t *applied, struct err *err);
/* (suspends) Applies every object of the *.yaml, *.yml and *.json of a folder, by name; *ret is how many. */
int up_apply_folder(struct client *client, const char *folder, size_t *ret, struct err *err);

/* ---- up_objects.c ---- */

/* Who shows a bootstrap token belongs to it. */
#define UP_TOKEN_GROUP "system:bootstrappers:kubeadm:default-node-token"

/* (suspends) What lets machines join. */
int up_apply_objects(const struct up_cluster *c, struct client *client, struct err *err);

/* ---- up_join.c ---- */

/* "sha256:..." of the public key of a certificate, in the arena: what joining machines compare with. */
int up_authority_hash(struct arena *a, str pem, str *ret, struct err *err);
/* (suspends) Finds the cluster of settings.server, and writes what the kubelet joins with; nothing when it has joined before. */
int up_discover(const struct up_cluster *c, struct err *err);

/* ---- up_identity.c ---- */

/*
 * Removes the node's certificate if that is of another name than the node has now, or has expired. -ERR_INVALID when this machine would need a token
 * then; up_check_name says that before anything is done. Blocks.
 */
int up_check_name(const struct up_cluster *c, struct err *err);
int up_forget_other_name(const struct up_cluster *c, struct err *err);

/* ---- up_logs.c ---- */

enum { UP_LOG_MAX = 16 << 20 };

/* (suspends, until canceled) A fiber's function, for a struct up_cluster *: logs that have become longer than UP_LOG_MAX are moved aside. */
int up_keep_logs(void *cluster);

/* ---- up_admin.c ---- */

/* The administrator, in the arena: server, authority, certificate and key, whatever else the file says. Blocks. */
int up_admin(const struct up_cluster *c, struct arena *a, struct client_config *ret, struct err *err);
/* A small text in YAML as a free tree, in the arena. */
int up_parse_yaml(struct arena *a, str text, struct val *ret, struct err *err);

/* ---- up_kubeconfig.c ---- */

/* "c8s", and for clusters in other folders "c8s-TAG": of contexts and services. */
str up_name(const struct up_cluster *c, struct arena *a);
/* (suspends) Adds or replaces this cluster in a kubeconfig and makes it the current one if none is. *ret is the context's name. */
int up_merge_kubeconfig(const struct up_cluster *c, struct arena *a, const char **ret, struct err *err);
/* (suspends) Takes it out again. */
int up_unmerge_kubeconfig(const struct up_cluster *c, struct err *err);

/* ---- up_clean.c ---- */

/* (suspends) Removes all pods of the node, with their networks. */
int up_remove_pods(const struct up_cluster *c, struct err *err);
/* (suspends) Removes everything that the cluster has on the machine. */
int up_remove(const struct up_cluster *c, struct err *err);

#endif
