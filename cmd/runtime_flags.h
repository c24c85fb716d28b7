/* The flags of the built-in runtime: those of `c8s runtime`, and of `c8s kubelet`, which has it in its process, with "runtime-" before. */
#ifndef C8S_CMD_RUNTIME_FLAGS_H
#define C8S_CMD_RUNTIME_FLAGS_H

#include "cmd/flags.h"
#include "runtime/runtime.h"

struct runtime_flags {
	const char *root, *state, *listen, *pod_program, *cni_conf_dir, *const *cni_bin_dirs, *const *cdi_dirs,
		*cgroup_parent, *sandbox_image, *registry_config, *const *handlers, *stream_address;
	int64_t stream_port;
};

#define RUNTIME_FLAG(prefix, name, type, at, member, initial, help) \
	{ prefix name, type, FLAG_WORKS, (at) + offsetof(struct runtime_flags, member), initial, help }

/* Rows of a table; at: where in its struct the struct runtime_flags is. */
#define RUNTIME_FLAGS(prefix, at) \
	RUNTIME_FLAG(prefix, "root", FLAG_STRING, at, root, "/var/lib/c8s/runtime", "images, snapshots, containers"), \
	RUNTIME_FLAG(prefix, "state", FLAG_STRING, at, state, "/run/c8s/runtime", "sockets and mounts: what need not survive a reboot"), \
	RUNTIME_FLAG(prefix, "listen", FLAG_STRING, at, listen, NULL, "where CRI is served: unix:///path; in the state folder, cri.sock, unless given"), \
	RUNTIME_FLAG(prefix, "sandbox-image", FLAG_STRING, at, sandbox_image, NULL, "image of the first process of a pod; none is needed"), \
	RUNTIME_FLAG(prefix, "registry-config", FLAG_STRING, at, registry_config, NULL, "folder with hosts.toml per registry, as containerd has it"), \
	RUNTIME_FLAG(prefix, "handler", FLAG_ARRAY, at, handlers, NULL, "NAME=PROGRAM: another OCI runtime, for the RuntimeClass handler of that name"), \
	RUNTIME_FLAG(prefix, "cdi-spec-dirs", FLAG_LIST, at, cdi_dirs, "/etc/cdi,/var/run/cdi", "where vendors describe devices (CDI); later folders win"), \
	RUNTIME_FLAG(prefix, "cgroup-parent", FLAG_STRING, at, cgroup_parent, "/c8s", "cgroup of pods that name none"), \
	RUNTIME_FLAG(prefix, "pod-program", FLAG_STRING, at, pod_program, NULL, "c8s-pod; beside this program unless given")

#define RUNTIME_NETWORK_FLAGS(prefix, at) \
	RUNTIME_FLAG(prefix, "cni-conf-dir", FLAG_STRING, at, cni_conf_dir, "/etc/cni/net.d", "where network configurations are; the first one is used"), \
	RUNTIME_FLAG(prefix, "cni-bin-dir", FLAG_LIST, at, cni_bin_dirs, "/opt/cni/bin,/usr/lib/cni", "where network plugins are; bridge, host-local," \
		     " loopback, portmap and ptp are built in"), \
	RUNTIME_FLAG(prefix, "stream-server-address", FLAG_STRING, at, stream_address, "127.0.0.1", "where exec, attach and port-forward are served"), \
	RUNTIME_FLAG(prefix, "stream-server-port", FLAG_INT, at, stream_port, "0", "its port; 0: any")

/* Checks, and fills the options; what they point to is in the flags or the arena. 0, or the exit code after a message. */
int runtime_flags_complete(const struct command *c, const char *prefix, const struct runtime_flags *f, struct arena *a,
			   struct runtime_options *ret);

#endif
