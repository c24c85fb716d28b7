/*
 * kubectl/: the command line client, with the words, tables and exit codes of Kubernetes' own kubectl.
 *
 * Around a command
 *	kubectl.c       the commands, and which one was meant     program.c       build/kubectl
 *	ktl.h           what every command is given: factory.c (configuration, client), call.c (requests, warnings),
 *	                failure.c (errors as kubectl words them)
 *	flags.h         flags as Go's pflag reads them            help.c          --help
 *	kinds.h         names of types: compiled in, or the server's discovery where they are not known
 *	builder.h       what the arguments mean: files, names, selectors become objects; files.c reads them
 *	print.h         -o: tables, JSON, YAML, names, JSONPath, custom columns;  tabs.h  columns as Go's tabwriter sets them
 *	template.h      Go's templates                            edit.h          a tree in the user's editor
 *	write.h         create, update, patch, and what is printed of them;  watch.h  events, and waiting for what an object should be
 * Commands
 *	a file each, or several for one: get*.c, describe*.c, create*.c, rollout*.c, apply*.c, delete.c, logs.c, exec.c, ...
 *
 * A command is one process: it asks for what it needs, mostly one request, prints, and ends. Everything that it makes lives in one
 * arena until then. Objects are free trees with sorted members: what the server sends is shown, also what the schema does not know.
 */
#ifndef C8S_KUBECTL_KUBECTL_H
#define C8S_KUBECTL_KUBECTL_H

/* argv[0] is the program's name. Returns the exit code; messages have been printed. */
int kubectl_main(int argc, char **argv);

#endif
