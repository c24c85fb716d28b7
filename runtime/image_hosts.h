/*
 * Where the images of a registry are fetched from: the registry itself, and mirrors before it, as a folder of hosts.toml files says.
 * The same files and rules as containerd's:
 *
 *	<folder>/<host>[_port_]/hosts.toml, or <host>:<port>/, or _default/
 *
 *	server = "https://registry.example.com"
 *	[host."https://mirror.example.com"]
 *	  capabilities = ["pull", "resolve"]
 *	  ca = "/etc/certs/mirror.pem"          # or a list
 *	  client = [["/etc/cert.pem", "/etc/key.pem"]]
 *	  skip_verify = false
 *	  override_path = false                 # the URL has the whole path, without /v2
 *	  dial_timeout = "5s"
 *	  [host."https://mirror.example.com".header]
 *	    x-custom = "value"
 *
 * Without a hosts.toml, *.crt in the folder are certificates to trust, and a *.cert with its *.key shows who we are. Unlike
 * there, a hosts.toml with a mistake is an error: nothing is fetched from elsewhere in silence.
 */
#ifndef C8S_RUNTIME_IMAGE_HOSTS_H
#define C8S_RUNTIME_IMAGE_HOSTS_H

#include "base/arena.h"
#include "base/err.h"
#include "net/http.h"

enum { REGISTRY_HOSTS_MAX = 32, REGISTRY_CA_MAX = 16 };

struct registry_host {
	str scheme, authority, path;   /* "https", "registry-1.docker.io", "/v2" */
	bool pull, resolve, push;
	bool mirror;                   /* not the registry itself: never sees credentials that were given for that */
	bool try_http;                 /* https comes first, http when that fails: on loopback */
	const char *ca_files[REGISTRY_CA_MAX];
	size_t n_ca;
	const char *cert_file, *key_file; /* NULL: none */
	bool skip_verify;
	int64_t dial_timeout_ms;       /* 0: the default */
	struct http_header *headers;   /* sent with every request */
	size_t n_headers;
};

/* In the order of trying. folder NULL: no files. Blocks; all in the arena. */
int registry_hosts_find(struct arena *a, const char *folder, bool plain_http, str domain, struct registry_host **ret, size_t *ret_n,
			struct err *err);

/* What the text of a hosts.toml in that folder says; nothing is read. Room for REGISTRY_HOSTS_MAX + 1. */
int registry_hosts_parse(struct arena *a, const char *folder, bool plain_http, str domain, str text, struct registry_host *hosts,
			 size_t *ret_n, struct err *err);

/* "localhost", 127.0.0.0/8 or ::1, with or without a port. */
bool registry_is_local(str authority);

#endif
