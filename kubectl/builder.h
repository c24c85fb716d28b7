/*
 * builder: what the arguments of a command mean. Files, directories, URLs, standard input, "TYPE NAME...", "TYPE/NAME...", "TYPE -l
 * SELECTOR" all become a list of infos: an object, or the name of one, and the resource that it belongs to.
 */
#ifndef C8S_KUBECTL_BUILDER_H
#define C8S_KUBECTL_BUILDER_H

#include "kubectl/kinds.h"

struct ktl_info {
	const struct ktl_kind *kind;
	str namespace, name;         /* namespace: empty for kinds that have none */
	struct val object;           /* VAL_NONE: only its name is known */
	str source;                  /* the file that it is from; empty: none */
};

struct ktl_infos {
	struct ktl_info *v;
	size_t n, cap;
	bool single;                 /* one object was asked for, not a list */
};

struct ktl_file_flags {
	struct ktl_texts filenames;
	const char *kustomize;
	bool recursive;
};

extern const struct ktl_flag ktl_file_flags[];

struct ktl_builder {
	const struct ktl_file_flags *files; /* NULL: none */
	struct ktl_texts args;
	str namespace;               /* for what does not say its own */
	bool enforce_namespace;      /* what says another one is an error */
	const char *selector, *field_selector; /* NULL or "": none */
	bool all;                    /* of the type */
	bool all_namespaces;
	bool types_alone;            /* a type without a name means all of its objects */
	bool keep_going;             /* failures are noted, and the others still found */
	bool names_only;             /* objects that are named are not fetched */
	bool latest;                 /* what is in files is fetched from the server */
	bool local;                  /* the server is not asked; kinds may be NULL */
	bool check;                  /* objects in files must say what they are, in the words of validation */
	bool one_type;
	bool whole_lists;            /* lists, or Tables, stay as the server sent them: name is empty, then */
	str accept;                  /* for requests; empty: JSON */
	str query;                   /* added to requests */
	str subresource;
	int64_t chunk;               /* lists come in pieces of so many; 0: whole */
};

/* (suspends) 0 also after failures when it keeps going. */
int ktl_build(struct ktl *k, const struct ktl_builder *b, struct ktl_infos *ret);
/* (suspends) The object of an info from the server. */
int ktl_fetch(struct ktl *k, struct ktl_info *info);
/* (suspends) Lists objects of a kind; *ret has its items, with apiVersion and kind. */
int ktl_list(struct ktl *k, const struct ktl_kind *kind, str namespace, str selector, str fields, struct val *ret);
bool ktl_no_files(const struct ktl_file_flags *files);

/* ---- files.c ---- */

struct ktl_document {
	str source;                  /* "STDIN", a path, a URL */
	str json;
};

struct ktl_documents {
	struct ktl_document *v;
	size_t n, cap;
	bool many;                   /* they are from a directory, a stream or several files */
};

/* (suspends) All documents of all files, in order. A failure ends the file that it is in. */
int ktl_read_files(struct ktl *k, const struct ktl_file_flags *files, bool keep_going, struct ktl_documents *ret);
/* A file as it is; path "-": standard input. "" is noted in Go's words. */
int ktl_read_file(struct ktl *k, const char *path, str *ret, struct err *err);

/* (suspends) --raw: sends a request to a path of the server, with a file (NULL: none) as it is, and prints the answer as it is. */
int ktl_raw(struct ktl *k, str method, const char *raw, const char *file);

#endif
